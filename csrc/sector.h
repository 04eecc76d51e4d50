/* Laws of sums of losses, and of means of likelihood ratios, as polynomials on panels with proven errors:
 * docs/theory/sector_laws.md.  Private to sector_*.c; the interface is in laws.h.
 *
 * Y = S - (smallest S), or the sum of ratios; F(w) is the density of w = log Y under A.  F is analytic in the sector
 * |arg Y| <= pi/4 and |F(w + iv)| <= F(w) e^(kappa(w) v^2) there, which bounds the remainders of rules and
 * polynomials. */
#ifndef PE_SECTOR_H
#define PE_SECTOR_H

#include <math.h>
#include <stddef.h>

#include "doubles.h"
#include "laws.h"

#ifndef PE_INLINE
#define PE_INLINE static inline
#endif

enum {
    PE_SECTOR_TERMS = 20,  /* coefficients of a panel's polynomial */
    PE_SECTOR_CHECKS = 64, /* Chebyshev points at which a panel is compared to the law (Theorem 6) */
    PE_SECTOR_SHORTENED = 4, /* times that the last panel may be halved */
};

/* All w, up to 2^8, at which sums are asked, and the tabulated high parts of nodes, are multiples of this. */
#define PE_SECTOR_GRID 0x1p-44
/* Least width of a panel, of which all edges are multiples. */
#define PE_SECTOR_EDGE 0x1p-30
/* The whole part of a log (below 2^20) is a multiple of this, so that whole parts add up without rounding. */
#define PE_SECTOR_WHOLE 0x1p-16

enum { PE_SECTOR_KINDS = 32 }; /* different steps of a law, at most */

/* Growth of a group's step (Lemma 9): |p - 1|, |s p'| and |d^2 log p/dw^2| are at most over[0..2] |s|, p = s dt/ds;
 * `base` multiplies v^2/(2 mu^2).  All are 0 for a step of one record. */
typedef struct {
    double over[3], base;
} pe_sector_bent;

/* The kinds of steps whose sum a law is: mu z = log(e^s - 1) + offset (for groups at most that) for a loss s above the
 * smallest one, or log s + offset for a likelihood ratio s.  A law of losses of means of ratios counts as one kind with
 * a rate and an offset that give its growth and slope (Theorem 8). */
typedef struct {
    int are_ratios, are_means;
    size_t n;
    double turned; /* w up to which the density is analytic at every angle (Lemma 2: r <= 1) */
    double number[PE_SECTOR_KINDS], rate[PE_SECTOR_KINDS], offset[PE_SECTOR_KINDS]; /* rate = mu^-2 */
    pe_sector_bent bent[PE_SECTOR_KINDS];
} pe_sector_kinds;

/* Table of bounds on cells of one width along w. */
typedef struct {
    double from, width, often, end; /* width is a power of 2, often = 1/width */
    size_t n;
    double *top; /* upper bounds of log F on the cells, then one of it right of all cells */
    double *kappa; /* upper bounds of kappa on the cells */
    size_t blocks; /* of PE_SECTOR_BLOCK cells */
    double *most; /* at level k: largest bound of 2^k blocks from each on; NULL until indexed */
} pe_sector_cells;

/* The integral of a weight beyond an edge of a panel, e^top total, and the log of a bound of its error. */
typedef struct {
    double top, total, log_error;
} pe_sector_mass;

struct pe_sector {
    size_t n, room; /* panels, and allocated */
    double *edge; /* n + 1 edges; widths of panels are powers of 2 */
    double *whole; /* whole part of log F of each panel, a multiple of PE_SECTOR_WHOLE, */
    double *coef; /* and polynomial of the rest in x from -1 to 1 over the panel, monomial coefficients */
    double *rounding; /* bound of the rounding of a value of each panel */
    double *off; /* bound of |computed - log F| on each panel, rounding included */
    double *checked; /* largest |computed - log F| at the points of the check, errors included */
    double error; /* the largest `off` */
    double start; /* where cells begin, at edge[0] or to the left; */
    double low_slope; /* left of it log F has at least this slope (Lemma 4) */
    double tail[2]; /* logs of bounds of the probabilities under A and B above the last edge, */
    double below[2]; /* and below the first one */
    double floor, floor_low; /* the loss is floor + floor_low + Y, or + w for ratios (log of their mean) */
    double floor_size; /* sum of the logs of numbers of ratios that entered it or w, for rounding */
    double deepest; /* log density at which the low end was placed */
    double work; /* nodes that were summed for this law and its parts */
    double farthest; /* w up to which cells go and sums are asked */
    pe_sector_kinds kinds;
    pe_sector_cells cells;
    pe_sector_mass *kept; /* integrals on both sides of all edges; NULL before pe_sector_keep */
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

/* By how much, in units of kappa^-1/2, the last panel may end before the limit of pe_sector_fill. */
#define PE_SECTOR_LOST 0.4

/* Of an interval of r (Theorem 5), or of an ellipse about it: the ranges of the arguments of F_a and F_b minus w, and
 * the squares of the largest angles of both parts.  r = log(x/(Y - x)), or where losses are added the argument
 * itself. */
typedef struct {
    double a_from, a_to, b_from, b_to, turn_a, turn_b;
} pe_sector_range;

enum {
    PE_SECTOR_RULES = 8, /* Gauss's rules, */
    PE_SECTOR_MOST_NODES = 48, /* of at most so many nodes */
    PE_SECTOR_PARTS = 5, /* numbers of each node: high and low part for both laws, and the weight */
    PE_SECTOR_ELLIPSES = 6, /* ellipses tried about each piece */
    PE_SECTOR_ROOTS = 128, /* largest pieces of the axis of r on either side of 0, */
    PE_SECTOR_ROOT = 4, /* and their width */
    PE_SECTOR_DEEPEST = 24, /* times that a piece may be halved */
    PE_SECTOR_TOGETHER = 16, /* values of w for which sums are formed together */
};

typedef struct {
    pe_sector_range range;
    double log_rho; /* log of the sum of the half axes over half the piece; 0 if the ellipse meets a pole */
    double log_factor; /* log of 64/15 half/(1 - rho^-2) */
} pe_sector_ellipse;

/* An interval [mid - half, mid + half] of r */
typedef struct pe_sector_piece pe_sector_piece;
struct pe_sector_piece {
    double mid, half, log_width;
    pe_sector_range real; /* on the interval */
    pe_sector_ellipse ellipse[PE_SECTOR_ELLIPSES]; /* from wide to narrow */
    pe_sector_piece *part[2]; /* its halves, NULL until asked for, */
    double *nodes[PE_SECTOR_RULES]; /* and the nodes of rules on it */
};

extern const int pe_sector_sizes[PE_SECTOR_RULES]; /* numbers of nodes */

/* Piece i of width PE_SECTOR_ROOT, and a half of a piece; NULL without memory or beyond PE_SECTOR_ROOTS. */
pe_sector_piece *pe_sector_root(pe_sector_pieces *p, long i, int of_losses);
pe_sector_piece *pe_sector_half(pe_sector_pieces *p, pe_sector_piece *m, int which, int of_losses);

/* Nodes of a rule on a piece: arrays of n numbers, PE_SECTOR_PARTS of them.  The argument of F_a is w - out[j] + out[n
 * + j], where out[j] is a multiple of PE_SECTOR_GRID; that of F_b alike by the next two arrays; the weights come
 * last. */
const double *pe_sector_rule(pe_sector_pieces *p, pe_sector_piece *m, int rule, int of_losses);

/* Frees all pieces if they take much memory. */
void pe_sector_pieces_trim(pe_sector_pieces *p);

/* State of one convolution. */
typedef struct {
    int of_losses; /* whether w are added (losses of epochs), not e^w, */
    double shift; /* and then the w of the result minus the sum of both w, so that |w| stays below 2^8 */
    pe_sector_pieces *pieces;
    int is_near; /* whether the last sums predict the size of the next ones: */
    double near, value, slope; /* w, the log of the sum there, and its slope */
    double lost; /* bound of the remainder and of what was left out of the last sum, relative to it */
    double work; /* nodes that were summed, */
    double budget; /* and their limit */
    int status;
} pe_sector_sums;

/* log F of the sum of both laws at w, a multiple of PE_SECTOR_GRID, and a bound of its error. */
double pe_sector_sum(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double w, double *error);

/* The same at n <= PE_SECTOR_TOGETHER rising w, as a multiple of PE_SECTOR_WHOLE and a rest; NaN and s->status where the
 * limit of work is reached. */
void pe_sector_sums_at(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, size_t n, const double *w,
                       double *whole, double *rest, double *error);

/* Log of an upper bound of the density of the sum for w in [from, to]. */
double pe_sector_sum_bound(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double from, double to);

/* log F as value + rest with bounds of the errors, at up to PE_SECTOR_TOGETHER rising w. */
typedef void (*pe_sector_density)(void *context, size_t n, const double *w, double *value, double *rest,
                                  double *error);

/* Makes panels from edge[0] on, as long as each and the margin beside it end below `limit`; at most
 * PE_SECTOR_LOST/sqrt(kappa) is missing there. */
int pe_sector_fill(pe_sector *c, pe_sector_density f, void *context, double limit);

/* Bounds log F on the cells between the first and the last edge, from the polynomials. */
void pe_sector_fill_cells(pe_sector *c);

/* Proves the errors of all panels (Theorem 6), given bounds on all cells; raises these by the error.  A status. */
int pe_sector_prove(pe_sector *c);

/* The polynomial of a panel at w_high + w_low; and at n points without the panel's whole part. */
double pe_sector_value(const pe_sector *a, size_t panel, double w_high, double w_low);
void pe_sector_rests(const pe_sector *a, size_t panel, size_t n, double w_high, const double *w_low,
                     double *out);
size_t pe_sector_panel(const pe_sector *a, double w);

/* Lower bound of the slope of log F left of w (Lemma 4). */
double pe_sector_slope(const pe_sector_kinds *k, double w);

/* Makes cells over [from, to] with their kappa, which bounds that of all smaller w too, and no bounds of F yet. */
int pe_sector_make_cells(pe_sector_cells *c, const pe_sector_kinds *k, double width, double from, double to);
void pe_sector_free_cells(pe_sector_cells *c);

/* Sum of all rates mu^-2; and an upper bound of kappa for all losses up to w. */
double pe_sector_rates(const pe_sector_kinds *k);
double pe_sector_growth(const pe_sector_kinds *k, double w);

/* Upper bound of log dB/dA up to w, beyond the floor. */
PE_INLINE double pe_sector_loss(const pe_sector *a, double w) {
    return a->kinds.are_ratios ? w + 1e-12 * fabs(w) : pe_d_exp(w) * (1.0 + 1e-12);
}

PE_INLINE size_t pe_sector_cell(const pe_sector_cells *c, double w) {
    const double at = (w - c->from) * c->often;
    if (!(at >= 1.0)) return 0;
    return at < (double)c->n ? (size_t)at : c->n - 1;
}

enum { PE_SECTOR_BLOCK = 8 };

/* Upper bound of log F on [from, to]; left of the first cell F falls. */
PE_INLINE double pe_sector_top(const pe_sector_cells *c, double from, double to) {
    size_t first = pe_sector_cell(c, from), last = pe_sector_cell(c, to);
    double top = c->top[first];
    const size_t left = first / PE_SECTOR_BLOCK + 1, right = last / PE_SECTOR_BLOCK;
    if (c->most && right > left) { /* whole blocks, and what is beside them */
        size_t level = 0, often = right - left;
        const double *row = c->most;
        while (often >> (level + 1)) row += c->blocks, level++;
        const double one = row[left], other = row[right - ((size_t)1 << level)];
        top = one > top ? one : top;
        top = other > top ? other : top;
        for (size_t i = first + 1; i < left * PE_SECTOR_BLOCK; i++) top = c->top[i] > top ? c->top[i] : top;
        first = right * PE_SECTOR_BLOCK - 1;
    }
    for (size_t i = first + 1; i <= last; i++) top = c->top[i] > top ? c->top[i] : top;
    return to > c->end && c->top[c->n] > top ? c->top[c->n] : top;
}

/* Indexes the cells for pe_sector_top; their bounds may only be raised afterwards. */
int pe_sector_index_cells(pe_sector_cells *c);
void pe_sector_raise_cells(pe_sector_cells *c, double more);

PE_INLINE double pe_sector_kappa(const pe_sector_cells *c, double w) {
    return c->kappa[pe_sector_cell(c, w)];
}

PE_INLINE double pe_sector_whole(double log) {
    return nearbyint(log / PE_SECTOR_WHOLE) * PE_SECTOR_WHOLE;
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
    return top == -INFINITY ? top : top + pe_d_log1p(pe_d_exp(fmin(a, b) - top));
}

#endif
