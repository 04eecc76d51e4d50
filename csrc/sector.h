/* Laws of sums of losses, and of means of likelihood ratios, with proven errors: docs/theory/sector_laws.md.
 *
 * Y = S - (smallest S), or the sum of ratios, has the density F(w) of w = log Y.  F is analytic in the sector
 * |arg Y| <= pi/4 and grows there by e^(kappa arg^2) at most, so that rules and polynomials have remainders that are
 * known. */
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
    PE_SECTOR_TERMS = 20,  /* coefficients of a panel */
    PE_SECTOR_CHECKS = 64, /* places where a panel is held against the law */
    PE_SECTOR_SHORTENED = 4, /* times that the last panels are halved */
};

/* What places, and the parts of the axis that tables hold, are multiples of: places of at most 2^8. */
#define PE_SECTOR_GRID 0x1p-44
/* Least panel, and what ends of panels are multiples of. */
#define PE_SECTOR_EDGE 0x1p-30
/* What parts of logs that are added without rounding are multiples of; logs are below 2^20. */
#define PE_SECTOR_WHOLE 0x1p-16

enum { PE_SECTOR_KINDS = 32 };

/* How p(s) = s dt/ds of a step of a group grows: |p - 1|, |s p'| and |d^2 log p/dw^2| are at most these times |s|, and
 * what plain steps have as the base of growth is so many times larger.  All are 0 of one record. */
typedef struct {
    double over[3], base;
} pe_sector_bent;

/* All kinds of steps whose sum a law is: mu z = log(e^s - 1) + offset for a loss of s beyond the smallest one, at most
 * that of groups, or log s + offset for a likelihood ratio s.  A law of losses of means of ratios is of one kind, whose
 * rate and offset say how it grows and falls. */
typedef struct {
    int are_ratios, are_means;
    size_t n;
    double turned; /* the log of losses up to which the density is analytic at any angle */
    double number[PE_SECTOR_KINDS], rate[PE_SECTOR_KINDS], offset[PE_SECTOR_KINDS]; /* rate = mu^-2 */
    pe_sector_bent bent[PE_SECTOR_KINDS];
} pe_sector_kinds;

/* Cells of one width along the axis. */
typedef struct {
    double from, width, often, end; /* the width is a power of 2, and this its inverse */
    size_t n;
    double *top;   /* n + 1 upper bounds of log F, the last one of it to the right of all cells */
    double *kappa; /* upper bounds of kappa */
    size_t blocks;
    double *
        most; /* on level k the largest bound of 2^k blocks of cells from each on; NULL before they are indexed */
} pe_sector_cells;

/* The integral of a weight beyond an edge of a panel: e^top total, and the log of a bound of its error. */
typedef struct {
    double top, total, log_error;
} pe_sector_mass;

struct pe_sector {
    size_t n, room;
    double *edge; /* n + 1; panels are powers of 2 wide */
    double *whole; /* of each panel a multiple of PE_SECTOR_WHOLE, about log F in the middle, */
    double *coef; /* and coefficients of the rest of log F: of powers of the place, from -1 to 1 */
    double *rounding; /* bound of what rounding does to a value of each, */
    double *off; /* and with what each is off by from log F */
    double *checked; /* largest distance from the law at places of the check, with all errors */
    double error; /* the largest of what panels are off by */
    double start; /* where cells begin, at edge[0] or to the left of it: */
    double low_slope; /* there and below, log F falls at least so steeply */
    double tail[2]; /* logs of bounds of the probabilities under A and B above the last edge, */
    double below[2]; /* and below the first one */
    double floor, floor_low; /* the loss is this and Y, or w where ratios are summed, whose mean counts */
    double floor_size; /* of all logs of numbers of ratios that are in it, or in w */
    double deepest; /* log density where the low end is */
    double work; /* nodes that were summed on the way here */
    double farthest; /* up to there tables go, and sums are asked */
    pe_sector_kinds kinds;
    pe_sector_cells cells;
    pe_sector_mass *kept; /* of both sides of all edges; NULL before rows are asked for again and again */
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

/* What the high end of a sum loses at most, in kappa^-1/2. */
#define PE_SECTOR_LOST 0.4

/* A part of the axis of r = log(x/(Y - x)), or where losses w are added of what one of both has beyond some place: places
 * of both laws there, or on an ellipse about it, as distances from that of the sum, and squares of how far they turn. */
typedef struct {
    double a_from, a_to, b_from, b_to, turn_a, turn_b;
} pe_sector_range;

enum {
    PE_SECTOR_RULES = 8, /* of Gauss, */
    PE_SECTOR_MOST_NODES = 48, /* the largest number of their nodes */
    PE_SECTOR_PARTS = 5, /* numbers of each node: high and low parts for both laws, and the weight */
    PE_SECTOR_ELLIPSES = 6,
    PE_SECTOR_ROOTS = 128, /* pieces on either side, */
    PE_SECTOR_ROOT = 4, /* and their width */
    PE_SECTOR_DEEPEST = 24, /* times that pieces are halved */
    PE_SECTOR_TOGETHER = 16, /* sums that are made together */
};

typedef struct {
    pe_sector_range range;
    double log_rho,
        log_factor; /* of the axes, 0 of an ellipse about a pole, and of 64/15 half/(1 - rho^-2) */
} pe_sector_ellipse;

typedef struct pe_sector_piece pe_sector_piece;
struct pe_sector_piece {
    double mid, half, log_width;
    pe_sector_range real;
    pe_sector_ellipse ellipse[PE_SECTOR_ELLIPSES]; /* from wide to narrow */
    pe_sector_piece *part[2];
    double *nodes[PE_SECTOR_RULES];
};

extern const int pe_sector_sizes[PE_SECTOR_RULES];

/* NULL where there is no memory, or none is so far out. */
pe_sector_piece *pe_sector_root(pe_sector_pieces *p, long i, int of_losses);
pe_sector_piece *pe_sector_half(pe_sector_pieces *p, pe_sector_piece *m, int which, int of_losses);

/* Nodes of a rule, PE_SECTOR_PARTS numbers of each; what is taken from the place of a sum for a, a multiple of
 * PE_SECTOR_GRID, less a rest, for b, and its weight. */
const double *pe_sector_rule(pe_sector_pieces *p, pe_sector_piece *m, int rule, int of_losses);

/* Frees what is kept if that is much. */
void pe_sector_pieces_trim(pe_sector_pieces *p);

/* What one convolution needs again and again. */
typedef struct {
    int of_losses; /* whether w are added, and not e^w, */
    double shift; /* and from that sum to the w of the whole, near whose floor 0 is: places stay below 2^8 */
    pe_sector_pieces *pieces;
    int is_near; /* whether there are sums that were made last: */
    double near, value,
        slope; /* a place, the log of the sum, and its slope, which say what is asked for next */
    double lost; /* what the last sum lacks at the ends of both laws and by its rule, relative to it */
    double work; /* nodes that were summed, */
    double budget; /* and the most of them */
    int status;
} pe_sector_sums;

/* log F of the sum of both at w, a multiple of PE_SECTOR_GRID; `error` bounds what it is off by. */
double pe_sector_sum(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double w, double *error);

/* The same at up to PE_SECTOR_TOGETHER places that rise, as a multiple of PE_SECTOR_WHOLE and a rest; NaN, and a status,
 * where work is refused. */
void pe_sector_sums_at(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, size_t n, const double *w,
                       double *whole, double *rest, double *error);

/* Log of a bound of the density of the sum between two places. */
double pe_sector_sum_bound(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double from, double to);

/* Values as sums of two doubles, with errors, at up to PE_SECTOR_TOGETHER places of the axis that rise. */
typedef void (*pe_sector_density)(void *context, size_t n, const double *w, double *value, double *rest,
                                  double *error);

/* Panels from edge[0] on, as long as they and what lies beside them stay below `limit`: what is missing is at most
 * PE_SECTOR_LOST/sqrt(kappa). */
int pe_sector_fill(pe_sector *c, pe_sector_density f, void *context, double limit);

/* Bounds of log F on cells between the first and the last edge. */
void pe_sector_fill_cells(pe_sector *c);

/* Finds what panels are off by between places of the check, with bounds in cells beyond the end of the last one. */
int pe_sector_prove(pe_sector *c);

double pe_sector_value(const pe_sector *a, size_t panel, double w_high, double w_low);
/* At n places, without the panel's whole part. */
void pe_sector_rests(const pe_sector *a, size_t panel, size_t n, double w_high, const double *w_low,
                     double *out);
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
    return a->kinds.are_ratios ? w + 1e-12 * fabs(w) : pe_d_exp(w) * (1.0 + 1e-12);
}

PE_INLINE size_t pe_sector_cell(const pe_sector_cells *c, double w) {
    const double at = (w - c->from) * c->often;
    if (!(at >= 1.0)) return 0;
    return at < (double)c->n ? (size_t)at : c->n - 1;
}

enum { PE_SECTOR_BLOCK = 8 };

/* The largest bound in cells between two places; left of the first one F falls. */
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

/* Makes ranges of cells quick to ask; bounds may only be raised from then on. */
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
