/* Laws of sums of losses, and of means of likelihood ratios, with proven errors: docs/theory/sector_laws.md.
 *
 * Y = S - (smallest S), or the sum of ratios, has the density F(w) of w = log Y.  F is analytic in the sector
 * |arg Y| <= pi/4 and grows there by e^(kappa arg^2) at most, so that rules and polynomials have remainders that are
 * known. */
#ifndef PE_SECTOR_H
#define PE_SECTOR_H

#include <math.h>
#include <stddef.h>

#include "pyengine.h"

#ifndef PE_INLINE
#define PE_INLINE static inline
#endif

enum {
    PE_SECTOR_TERMS = 24,  /* coefficients of a panel */
    PE_SECTOR_CHECKS = 96, /* places where a panel is held against the law */
    PE_SECTOR_SHORTENED = 4, /* times that the last panels are halved */
};

/* What places, and the parts of the axis that tables hold, are multiples of: places of at most 2^8. */
#define PE_SECTOR_GRID 0x1p-44
/* Least panel, and what ends of panels are multiples of. */
#define PE_SECTOR_EDGE 0x1p-30

enum { PE_SECTOR_KINDS = 32 };

/* All kinds of steps whose sum a law is: mu z = log(e^s - 1) + offset for a loss of s beyond the smallest one, or
 * log s + offset for a likelihood ratio s.  A law of losses of means of ratios is of one kind, whose rate and offset
 * say how it grows and falls. */
typedef struct {
    int are_ratios, are_means;
    size_t n;
    double number[PE_SECTOR_KINDS], rate[PE_SECTOR_KINDS], offset[PE_SECTOR_KINDS]; /* rate = mu^-2 */
} pe_sector_kinds;

/* Cells of one width along the axis. */
typedef struct {
    double from, width, often, end; /* the width is a power of 2, and this its inverse */
    size_t n;
    double *top;   /* n + 1 upper bounds of log F, the last one of it to the right of all cells */
    double *kappa; /* upper bounds of kappa */
} pe_sector_cells;

struct pe_sector {
    size_t n, room;
    double *edge;     /* n + 1; panels are powers of 2 wide */
    double *coef;     /* PE_SECTOR_TERMS Chebyshev coefficients of log F of each */
    double *rounding; /* bound of what rounding does to a value of each, */
    double *off;      /* and with what each is off by from log F */
    double *checked;  /* largest distance from the law at places of the check, with all errors */
    double error;     /* the largest of what panels are off by */
    double start;     /* where cells begin, at edge[0] or to the left of it: */
    double low_slope; /* there and below, log F falls at least so steeply */
    double tail[2];   /* logs of bounds of the probabilities under A and B above the last edge, */
    double below[2];  /* and below the first one */
    double floor, floor_low; /* the loss is this and Y, or w where ratios are summed, whose mean counts */
    double floor_size;       /* of all logs of numbers of ratios that are in it, or in w */
    double deepest;   /* log density where the low end is */
    double work;      /* nodes that were summed on the way here */
    double farthest;  /* up to there tables go, and sums are asked */
    pe_sector_kinds kinds;
    pe_sector_cells cells;
};

PE_INLINE double pe_sector_low(const pe_sector *a) {
    return a->edge[0];
}
PE_INLINE double pe_sector_start(const pe_sector *a) {
    return a->start;
}
PE_INLINE double pe_sector_high(const pe_sector *a) {
    return a->edge[a->n];
}

/* Lines Im r = strip, nodes and cells of r = log(x/(Y - x)) at multiples of h; or, where losses w are added, of what one
 * of both has beyond some place. */
typedef struct {
    double strip, h;
    long most;                      /* nodes -most ... most */
    double *part_high, *part_low;   /* log(1 + e^(jh)), a multiple of PE_SECTOR_GRID and the rest; or jh */
    double *modulus, *angle;        /* of x/Y on the line at r = (j - 1/2) h, j = -most ... most + 1 */
    double *real_modulus;           /* the same on the real line */
} pe_sector_nodes;

#define PE_SECTOR_LOST 0.4

enum { PE_SECTOR_STRIPS = 26, PE_SECTOR_BLOCKS = 64 };

/* Log of a bound of the integral on one line, for all sums in a block of the axis. */
typedef struct {
    double from, to, bound;
    int strip; /* 1 + its number; 0 where there is none */
} pe_sector_block;

/* What one convolution needs again and again. */
typedef struct {
    int of_losses; /* whether w are added, and not e^w, */
    double shift; /* and from that sum to the w of the whole, near whose floor 0 is: places stay below 2^8 */
    pe_sector_nodes nodes[PE_SECTOR_STRIPS];
    pe_sector_block blocks[PE_SECTOR_BLOCKS];
    int strip; /* the one that served last; below 0 at first */
    double reach; /* of r: the largest distance between a sum and the low ends of its parts, and 2 */
    double *room; /* of a sum */
    size_t n_room;
    double lost; /* what the last sum lacks at the ends of both laws and on its lines, relative to it */
    double work; /* nodes that were summed, */
    double budget; /* and the most of them */
    int status;
} pe_sector_sums;

void pe_sector_sums_free(pe_sector_sums *s);

/* log F of the sum of both at w, a multiple of PE_SECTOR_GRID; `error` bounds what it is off by. */
double pe_sector_sum(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double w, double *error);

/* Log of a bound of the density of the sum between two places; only nodes that have been made are used. */
double pe_sector_sum_bound(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double from, double to);

/* Values with an error at any place of the axis. */
typedef double (*pe_sector_density)(void *context, double w, double *error);

/* Panels from edge[0] on, as long as they and what lies beside them stay below `limit`: what is missing is at most
 * PE_SECTOR_LOST/sqrt(kappa). */
int pe_sector_fill(pe_sector *c, pe_sector_density f, void *context, double limit);

/* Bounds of log F on cells between the first and the last edge. */
void pe_sector_fill_cells(pe_sector *c);

/* Finds what panels are off by between places of the check, with bounds in cells beyond the end of the last one. */
int pe_sector_prove(pe_sector *c);

double pe_sector_value(const pe_sector *a, size_t panel, double w_high, double w_low);
size_t pe_sector_panel(const pe_sector *a, double w);

/* Where F falls to the left of w: its least slope in w. */
double pe_sector_slope(const pe_sector_kinds *k, double w);

/* Cells over [from, to], with kappa in them: upper bounds, also of all that lies to the left of a cell. */
int pe_sector_make_cells(pe_sector_cells *c, const pe_sector_kinds *k, double width, double from, double to);
void pe_sector_free_cells(pe_sector_cells *c);

/* Sum of all rates; kappa up to w without cells. */
double pe_sector_rates(const pe_sector_kinds *k);
double pe_sector_growth(const pe_sector_kinds *k, double w);

/* Upper bound of log dB/dA up to w, beyond the floor. */
PE_INLINE double pe_sector_loss(const pe_sector *a, double w) {
    return a->kinds.are_ratios ? w + 1e-12 * fabs(w) : exp(w) * (1.0 + 1e-12);
}

PE_INLINE size_t pe_sector_cell(const pe_sector_cells *c, double w) {
    const double at = (w - c->from) * c->often;
    if (!(at >= 1.0)) return 0;
    return at < (double)c->n ? (size_t)at : c->n - 1;
}

/* The largest bound in cells between two places; left of the first one F falls. */
PE_INLINE double pe_sector_top(const pe_sector_cells *c, double from, double to) {
    const size_t first = pe_sector_cell(c, from), last = pe_sector_cell(c, to);
    double top = c->top[first];
    for (size_t i = first + 1; i <= last; i++) top = c->top[i] > top ? c->top[i] : top;
    return to > c->end && c->top[c->n] > top ? c->top[c->n] : top;
}

PE_INLINE double pe_sector_kappa(const pe_sector_cells *c, double w) {
    return c->kappa[pe_sector_cell(c, w)];
}

/* The largest power of 2 up to x > 0. */
PE_INLINE double pe_power_of_two(double x) {
    int e;
    frexp(x, &e);
    return ldexp(1.0, e - 1);
}

/* exp(a) + exp(b) of logs */
PE_INLINE double pe_log_add(double a, double b) {
    const double top = fmax(a, b);
    return top == -INFINITY ? top : top + log1p(exp(fmin(a, b) - top));
}

#endif
