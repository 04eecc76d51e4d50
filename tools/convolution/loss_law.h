#ifndef PYENGINE_LOSS_LAW_H
#define PYENGINE_LOSS_LAW_H

#include <math.h>
#include <stddef.h>

#include "doubles.h"
#include "pyengine.h"

/* The law of Y = S - (smallest S) as a density on the axis w = log Y, kept as the logarithm of
 * g(w) = density of w, piecewise polynomial on panels that adapt to it.  Sums are direct integrals
 * of positive terms, so that tails keep their relative accuracy whatever their shape.  It shares no code with laws on pieces
 * and lines, and says what these are held against in audits; its own errors are estimates. */

enum { PE_RULE = 16 }; /* nodes of a panel, and of the Gauss-Legendre rule */

/* Mass that a law may miss, as an estimate of its error. */
#define PE_LAW_MISSING 1e-9
/* Change of the log integrand over one application of the rule. */
#define PE_LAW_PIECE_CHANGE 12.0

typedef struct pe_law pe_law;

/* The law under A of the loss of one step, A = N(0, 1) and B = w_0 (N(0, 1) + sum of ratio_j N(shift_j, 1)), and
 * of the sum of two independent losses: terms >= 1 of shift > 0, ratio > 0, `rest` the log of each ratio beyond that
 * of its double.  floor + floor_low is log w_0, the smallest loss, to twice double precision; densities are kept down
 * to a log of deepest, for log values down to half of it.  Immutable once made; *out must be freed in any case.
 *
 * Method          log density over log(S - smallest S), piecewise polynomials of degree 15; sums as
 *                 Gauss-Legendre integrals of positive terms
 * Returns         a status: PE_TOO_COSTLY where max_panels or half a minute do not suffice
 */
int pe_law_step(size_t terms, const double *shift, const double *ratio, const double *rest, double floor,
                double floor_low, double deepest, size_t max_panels, pe_law **out);
int pe_law_convolve(const pe_law *a, const pe_law *b, size_t max_panels, pe_law **out);
void pe_law_free(pe_law *a);
size_t pe_law_panels(const pe_law *a);
size_t pe_law_bytes(const pe_law *a); /* memory of a law */

/* Rows as pe_pair_at and pe_pair_solve give them; all functionals at once.  Errors are estimates. */
void pe_law_at(const pe_law *a, int reversed, size_t n, const double *c, double *rows);
void pe_law_solve(const pe_law *a, int reversed, int functional, size_t n, const double *log_target,
                  double *rows);

struct pe_law {
    size_t n, room;
    double *edge;   /* n + 1 */
    double *coef;   /* n * PE_RULE Chebyshev coefficients */
    double *peak;   /* n bounds of log g on the panels */
    double floor, floor_low; /* smallest S, as a sum of two doubles */
    double defect;  /* estimate of the relative error of g in its bulk */
    int depth;      /* convolutions that led here */
    double work;    /* applications of the rule that they took */
    double deepest; /* log densities below it are left out */
};

typedef struct {
    double x[PE_RULE], w[PE_RULE];      /* Gauss-Legendre on [-1, 1] */
    double node[PE_RULE];         /* Chebyshev points */
    double to_cheb[PE_RULE][PE_RULE];   /* values at the points -> Chebyshev coefficients */
} pe_rules;

void pe_law_rules(pe_rules *r);

static inline double pe_clenshaw(const double *c, double t) {
    double b1 = c[PE_RULE - 1], b2 = 0.0;
    for (int k = PE_RULE - 2; k > 0; k--) {
        double b0 = c[k] + (2.0 * t * b1 - b2);
        b2 = b1;
        b1 = b0;
    }
    return c[0] + (t * b1 - b2);
}

static inline double pe_panel_value(const pe_law *a, size_t i, double w) {
    double lo = a->edge[i], hi = a->edge[i + 1];
    return pe_clenshaw(a->coef + PE_RULE * i, 2.0 * (w - lo) / (hi - lo) - 1.0);
}

static inline size_t pe_find_panel(const pe_law *a, double w) {
    size_t lo = 0, hi = a->n;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (a->edge[mid] <= w) lo = mid;
        else hi = mid;
    }
    return lo;
}

/* Accumulates sum = e^{top} * total with terms e^{value} * weight. */
typedef struct {
    double top, total;
} pe_log_sum;

static inline void pe_accumulate(pe_log_sum *s, double top, double total) {
    if (!(total > 0.0)) return;
    if (top > s->top) {
        s->total = s->total * pe_d_exp(s->top - top) + total;
        s->top = top;
    } else {
        s->total += total * pe_d_exp(top - s->top);
    }
}

/* At w + rest: a narrow law far from its smallest loss feels what w leaves out. */
typedef double (*pe_log_density)(const void *context, double w, double rest);

/* Panels for f over [lo, hi], from left to right, halved until the last coefficients vanish. */
int pe_law_fill(pe_law *a, pe_log_density f, const void *context, double lo, double hi, const pe_rules *r,
                size_t max_panels);

/* What is integrated against the law of the unreversed A; s = e^w + floor, y_c = c - floor. */
typedef enum {
    PE_UNDER_A,    /* 1 */
    PE_UNDER_B,    /* e^s */
    PE_GAIN_BELOW, /* 1 - e^{s-c} */
    PE_GAIN_ABOVE, /* e^s (1 - e^{c-s}) */
} pe_law_weight;

/* Log of the integral of a weight over w in [from, to]. */
double pe_law_integral(const pe_law *a, const pe_rules *r, double from, double to, pe_law_weight mode,
                       double y_c);

/* Scales g to total mass 1.  What was missing, and what the mass under B still misses, is the error
 * estimate: all errors of the halves have gone into these two numbers. */
void pe_law_normalise(pe_law *a, const pe_rules *r);

#endif
