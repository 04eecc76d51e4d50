#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"
#include "lane_trig.h"
#include "loss_law.h"
#include "simd.h"

static const double LOG2 = 0.69314718055994530942;
static const double KINK = 40.0;        /* relative size of an edge that no sum feels, as a log */
static const double MAX_WORK = 2.5e7; /* applications of the rule for one law, some 25 s */

/* Between two breakpoints: its ends, the panel of either law, a bound of the log integrand. */
typedef struct {
    double lo, hi, bound;
    size_t ia, ib;
} segment;

typedef struct {
    const pe_law *a, *b;
    const pe_rules *r;
    segment *cut;
    size_t room;
    int failed;   /* a status */
    double floor; /* of the sum */
    double work;  /* applications of the rule, those of both laws included */
} pair_of_laws;

/* log(1 - q) for 0 <= q <= 1/2, branch-free. */
static inline double vlog1m(double q) {
    double s = -q / (2.0 - q), z = s * s, p = 1.0 / 35.0;
    for (int k = 33; k >= 3; k -= 2) p = p * z + 1.0 / k;
    return 2.0 * (s + s * z * p);
}

/* The rule on u in [u0, u1] for exp(l_a(u) + l_b(log(y - e^u))) y/(y - e^u), x = e^u <= y/2, y = e^{w + rest}.
 * Places are formed as distances from the panels' ends: rounded beside the distance, not beside w. */
PE_CLONES static void half_piece(const double *ca, double a_lo, double a_hi, const double *cb, double b_lo,
                                 double b_hi, double w, double rest, double u0, double u1, const double *gx,
                                 const double *gw, double *top, double *total) {
    double e[PE_RULE];
    double mid = 0.5 * (u0 + u1), half = 0.5 * (u1 - u0);
    double sa = 2.0 / (a_hi - a_lo), from_a = mid - a_lo;
    double sb = 2.0 / (b_hi - b_lo), from_b = (w - b_lo) + rest, ratio = (mid - w) - rest;
    for (int i = 0; i < PE_RULE; i++) {
        double off = half * gx[i], l = vlog1m(pe_vexp(ratio + off));
        double ta = sa * (from_a + off) - 1.0, tb = sb * (from_b + l) - 1.0;
        double a1 = ca[PE_RULE - 1], a2 = 0.0, b1 = cb[PE_RULE - 1], b2 = 0.0;
        for (int k = PE_RULE - 2; k > 0; k--) {
            double a0 = ca[k] + (2.0 * ta * a1 - a2), b0 = cb[k] + (2.0 * tb * b1 - b2);
            a2 = a1;
            a1 = a0;
            b2 = b1;
            b1 = b0;
        }
        e[i] = (ca[0] + (ta * a1 - a2)) + (cb[0] + (tb * b1 - b2)) - l;
    }
    double m = e[0], s = 0.0;
    for (int i = 1; i < PE_RULE; i++) m = e[i] > m ? e[i] : m;
    for (int i = 0; i < PE_RULE; i++) s += gw[i] * pe_vexp(e[i] - m);
    *top = m;
    *total = s * half;
}

/* Log of the integrand of half_piece at one u. */
static double log_integrand(const pe_law *a, const pe_law *b, size_t ia, size_t ib, double w, double u) {
    double l = u - w < -37.0 ? 0.0 : pe_d_log1p(-pe_d_exp(u - w));
    return pe_panel_value(a, ia, u) + pe_panel_value(b, ib, w + l) - l;
}

/* The u = log x, x <= y/2, at which both densities are known; 0 where there is none. */
static int common_range(const pe_law *a, const pe_law *b, double w, double *u0, double *u1) {
    double b_top = b->edge[b->n];
    *u1 = w - LOG2;
    *u0 = a->edge[0];
    if (b_top < w) *u0 = fmax(*u0, b_top < w - LOG2 ? *u1 : w + pe_d_log1p(-pe_d_exp(b_top - w)));
    if (a->edge[a->n] < *u1) *u1 = a->edge[a->n];
    if (w + pe_d_log1p(-pe_d_exp(*u1 - w)) < b->edge[0]) {
        if (w <= b->edge[0]) return 0;
        *u1 = w + pe_d_log1p(-pe_d_exp(b->edge[0] - w));
    }
    return *u1 > *u0;
}

/* Breakpoints of both laws on [u0, u1]: the number of segments, and the largest bound of the log integrand. */
static size_t cut_segments(pair_of_laws *pair, const pe_law *a, const pe_law *b, double w, double u0,
                           double u1, double *top_bound) {
    size_t ia = pe_find_panel(a, u0), ib = pe_find_panel(b, w + pe_d_log1p(-pe_d_exp(u0 - w)));
    size_t n = 0, most = a->n + b->n + 2;
    *top_bound = -INFINITY;
    if (pair->room < most) {
        segment *grown = realloc(pair->cut, most * sizeof *grown);
        if (!grown) {
            pair->failed = PE_NO_MEMORY;
            return 0;
        }
        pair->cut = grown;
        pair->room = most;
    }
    double u = u0;
    while (u < u1 && n < most) {
        double next = fmin(u1, a->edge[ia + 1]);
        int step_a = a->edge[ia + 1] <= u1, step_b = 0;
        double edge_b = b->edge[ib];
        if (edge_b > w - LOG2 - 1e-9 && edge_b < w) {
            double ub = w + pe_d_log1p(-pe_d_exp(edge_b - w));
            if (ub <= next) {
                step_a = ub == next && step_a;
                step_b = 1;
                next = fmax(ub, u);
            }
        }
        if (next > u) {
            const segment c = {u, next, a->peak[ia] + b->peak[ib] + LOG2, ia, ib};
            pair->cut[n++] = c;
            *top_bound = fmax(*top_bound, c.bound);
        }
        u = next;
        if (step_a && ia + 1 < a->n) ia++;
        else if (step_a) break;
        if (step_b) {
            if (ib == 0) break;
            ib--;
        }
    }
    return n;
}

/* The integral over one segment, in pieces on which the integrand changes little. */
static void segment_integral(pair_of_laws *pair, const pe_law *a, const pe_law *b, const segment *c, double w,
                             double rest, pe_log_sum *sum) {
    double middle = log_integrand(a, b, c->ia, c->ib, w, 0.5 * (c->lo + c->hi));
    double change = fmax(fabs(log_integrand(a, b, c->ia, c->ib, w, c->lo) - middle),
                         fabs(log_integrand(a, b, c->ia, c->ib, w, c->hi) - middle));
    int pieces = 1 + (int)fmin(2.0 * change / PE_LAW_PIECE_CHANGE, 64.0);
    for (int k = 0; k < pieces; k++) {
        double lo = c->lo + (c->hi - c->lo) * k / pieces;
        double hi = c->lo + (c->hi - c->lo) * (k + 1) / pieces, top, total;
        half_piece(a->coef + PE_RULE * c->ia, a->edge[c->ia], a->edge[c->ia + 1], b->coef + PE_RULE * c->ib,
                   b->edge[c->ib], b->edge[c->ib + 1], w, rest, lo, hi, pair->r->x, pair->r->w, &top, &total);
        pe_accumulate(sum, top, total);
    }
    pair->work += pieces;
}

/* Contribution of x = e^u <= y/2 drawn from a, y - x from b. */
static void half_integral(pair_of_laws *pair, const pe_law *a, const pe_law *b, double w, double rest,
                          pe_log_sum *sum) {
    double u0, u1, top_bound;
    if (!common_range(a, b, w, &u0, &u1)) return;
    const size_t n = cut_segments(pair, a, b, w, u0, u1, &top_bound);
    /* first the best of the promising middles, then all that can matter beside it */
    double best = sum->total > 0.0 ? sum->top : -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const segment *c = pair->cut + i;
        if (c->bound < fmax(top_bound - 40.0, best)) continue;
        double middle = log_integrand(a, b, c->ia, c->ib, w, 0.5 * (c->lo + c->hi));
        best = fmax(best, middle + pe_d_log(c->hi - c->lo) - 6.0);
    }
    for (size_t i = 0; i < n; i++) {
        const segment *c = pair->cut + i;
        if (c->bound + pe_d_log(c->hi - c->lo) >= best - 42.0) segment_integral(pair, a, b, c, w, rest, sum);
    }
}

static double sum_density(const void *context, double w, double rest) {
    pair_of_laws *pair = *(pair_of_laws *const *)context;
    pe_log_sum sum = {-INFINITY, 0.0};
    if (pair->work > MAX_WORK) return NAN;
    half_integral(pair, pair->a, pair->b, w, rest, &sum);
    if (pair->a == pair->b) sum.total *= 2.0;
    else half_integral(pair, pair->b, pair->a, w, rest, &sum);
    return sum.total > 0.0 ? sum.top + pe_d_log(sum.total) : -INFINITY;
}

/* Cut the ends where the density is negligible under A and under B. */
static void trim(pe_law *a) {
    size_t first = 0, last = a->n;
    while (first + 1 < last && pe_panel_value(a, first, a->edge[first + 1]) < a->deepest) first++;
    while (last > first + 1) {
        double w = a->edge[last - 1], s = pe_d_exp(w) + a->floor;
        if (pe_panel_value(a, last - 1, w) + fmax(s, 0.0) > a->deepest) break;
        last--;
    }
    memmove(a->edge, a->edge + first, (last - first + 1) * sizeof(double));
    memmove(a->coef, a->coef + PE_RULE * first, (last - first) * PE_RULE * sizeof(double));
    memmove(a->peak, a->peak + first, (last - first) * sizeof(double));
    a->n = last - first;
}

/* Where the density under A (side 0) or under B (side 1) is largest, to within a panel. */
static double mode(const pe_law *a, int side) {
    double best = -INFINITY, at = a->edge[0];
    for (size_t i = 0; i < a->n; i++) {
        double w = 0.5 * (a->edge[i] + a->edge[i + 1]);
        double v = side ? pe_panel_value(a, i, w) + pe_d_exp(w) : a->peak[i];
        if (v > best) {
            best = v;
            at = w;
        }
    }
    return at;
}

/* Log density of the sum under A, and on the right side under the law where it is larger. */
static double side_density(pair_of_laws **context, int side, double w) {
    double v = sum_density(context, w, 0.0);
    return side ? v + fmax(0.0, pe_d_exp(w) + (*context)->floor) : v;
}

int pe_law_convolve(const pe_law *a, const pe_law *b, size_t max_panels, pe_law **out) {
    pe_law *c = calloc(1, sizeof *c);
    *out = c;
    if (!c) return PE_NO_MEMORY;
    pe_rules r;
    pe_law_rules(&r);
    c->deepest = fmax(a->deepest, b->deepest);
    double sum = a->floor + b->floor, back = sum - a->floor;
    double lost = (a->floor - (sum - back)) + (b->floor - back); /* exact, Knuth */
    double low_part = lost + (a->floor_low + b->floor_low);
    c->floor = sum + low_part;
    c->floor_low = low_part - (c->floor - sum);
    pair_of_laws pair = {a, b, &r, NULL, 0, 0, c->floor, a->work + (b == a ? 0.0 : b->work)};
    pair_of_laws *context = &pair;
    double low = fmax(a->edge[0], b->edge[0]) + 1e-9, a1 = a->edge[a->n], b1 = b->edge[b->n];
    double high = fmax(a1, b1) + pe_d_log1p(pe_d_exp(-fabs(a1 - b1))) - 1e-9;
    /* move the ends in, from what is possible to what is worth keeping */
    for (int side = 0; side < 2; side++) {
        double in = pe_d_log(pe_d_exp(mode(a, side)) + pe_d_exp(mode(b, side))), out_ = side ? high : low;
        if (!(side_density(&context, side, in) > c->deepest)) in = fmin(fmax(a1, b1), high);
        for (int it = 0; it < 60 && fabs(in - out_) > 1e-4 * (1.0 + fabs(in)); it++) {
            double mid = 0.5 * (in + out_);
            if (side_density(&context, side, mid) > c->deepest) in = mid;
            else out_ = mid;
        }
        if (side) high = in;
        else low = in;
    }
    /* the cut ends of a and b show in the sum as kinks; go no further than there unless they are
     * below rounding */
    double centre = pe_d_log(pe_d_exp(mode(a, 0)) + pe_d_exp(mode(b, 0)));
    for (int which = 0; which < 2; which++) {
        double at = which ? b1 : a1;
        if (at >= high || at <= low) continue;
        if (side_density(&context, 1, at - 1e-9) >= c->deepest + KINK) continue;
        if (at > centre) high = at - 1e-9;
        else low = at + 1e-9;
    }
    int status =
        high > low ? pe_law_fill(c, sum_density, &context, low, high, &r, max_panels) : PE_TOO_COSTLY;
    free(pair.cut);
    c->work = pair.work;
    if (pair.failed) return pair.failed;
    if (status) return status;
    trim(c);
    pe_law_normalise(c, &r);
    if (!(c->defect < PE_LAW_MISSING)) return PE_TOO_COSTLY; /* the ends were cut too far in */
    c->depth = 1 + (a->depth > b->depth ? a->depth : b->depth);
    return PE_OK;
}
