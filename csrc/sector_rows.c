/* Rows (tails and profiles at thresholds) of a law on panels with proven errors: Theorem 7 of
 * docs/theory/sector_laws.md; and the search for thresholds, a choice.  Interface in laws.h; called by
 * pyengine/engines/sector.py. */

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic.h"
#include "doubles.h"
#include "sector.h"
#include "spectral.h"

static const double UNIT = 0x1p-53;
static const double RULE_ERROR = 1e-14; /* relative error of an integral by the errors of nodes and weights */

enum {
    PIECES = 4, /* of a panel, each with its rule */
    RULE = 16, /* nodes of Gauss's rule */
};

/* Gauss's rule on [-1, 1]. */
typedef struct {
    double x[RULE], w[RULE];
} gauss_rule;

static void make_rule(gauss_rule *r, int n) {
    const double pi = 3.14159265358979323846;
    for (int i = 0; i < n / 2; i++) {
        double x = pe_d_cos(pi * (i + 0.75) / (n + 0.5)), d = 1.0;
        for (int it = 0; it < 20; it++) {
            double a = 1.0, b = x;
            for (int k = 2; k <= n; k++) {
                const double c = ((2 * k - 1) * x * b - (k - 1) * a) / k;
                a = b;
                b = c;
            }
            d = n * (x * b - a) / (x * x - 1.0);
            const double step = b / d;
            x -= step;
            if (fabs(step) < 1e-16) break;
        }
        r->x[i] = -x;
        r->x[n - 1 - i] = x;
        r->w[i] = r->w[n - 1 - i] = 2.0 / ((1.0 - x * x) * d * d);
    }
}

/* The weight that is integrated against F; s is the loss, c the threshold. */
typedef enum {
    UNDER_A, /* 1 */
    UNDER_B, /* e^s */
    GAIN_BELOW, /* 1 - e^(s-c) */
    GAIN_ABOVE, /* e^s (1 - e^(c-s)) */
} integrand;

/* The number total e^top. */
typedef struct {
    double top, total;
} scaled_sum;

static void accumulate(scaled_sum *s, double top, double total) {
    if (!(total > 0.0)) return;
    if (top > s->top) {
        s->total = s->total * pe_d_exp(s->top - top) + total;
        s->top = top;
    } else {
        s->total += total * pe_d_exp(top - s->top);
    }
}

/* A threshold: w = high + low with error `off`, y the loss above the floor (e^w, or w for ratios), c the loss. */
typedef struct {
    double high, low, y, c, off;
} place;

static const double LEAST_LOSS = 1e-280; /* smallest loss above the floor, far below all panels */

/* An integral under construction */
typedef struct {
    const pe_sector *a;
    const gauss_rule *r;
    place at;
    integrand weight;
    scaled_sum sum;
    double pieces; /* number of pieces in the sum */
    double log_error; /* log of a bound of its absolute error */
} integral;

static int is_gain(integrand weight) {
    return weight == GAIN_BELOW || weight == GAIN_ABOVE;
}

/* log of the weight at w = w_high + w_low, given w minus that of the threshold, without the floor, and a bound of its
 * rounding. */
static double log_weight(const integral *q, double w_high, double w_low, double distance, double *error) {
    const int is_ratio = q->a->kinds.are_ratios;
    double x, y, y_log;
    switch (q->weight) {
    case UNDER_A:
        *error = 0.0;
        return 0.0;
    case UNDER_B:
        y = is_ratio ? w_high + w_low : pe_dd_exp(pe_two_sum(w_high, w_low)).h;
        *error = 4.0 * UNIT * fabs(y);
        return y;
    case GAIN_BELOW:
        x = is_ratio ? -distance : q->at.y * -pe_d_expm1(distance); /* c - s */
        y_log = pe_d_log(-pe_d_expm1(-x));
        *error = (20.0 + 8.0 * fabs(y_log)) * UNIT;
        return y_log;
    default:
        x = is_ratio ? distance : q->at.y * pe_d_expm1(distance); /* s - c */
        *error = (16.0 + (x + 1.0) * (10.0 + 2.0 * fabs(distance)) + 4.0 * fabs(q->at.y)) * UNIT;
        return q->at.y + (x > 40.0 ? x + pe_d_log1p(-pe_d_exp(-x)) : pe_d_log(pe_d_expm1(x)));
    }
}

/* log of a bound of the weight's modulus for Re w <= to */
static double weight_bound(const integral *q, double to) {
    const double y = pe_sector_loss(q->a, to);
    switch (q->weight) {
    case UNDER_A:
        return 0.0;
    case UNDER_B:
        return y;
    case GAIN_BELOW:
        return pe_d_log1p(pe_d_exp(fmin(y - q->at.y, 700.0)));
    default:
        return pe_log_add(y, q->at.y);
    }
}

/* log of the remainder of the rule on [mid - half, mid + half]: 64/15 half rho^-32/(1 - rho^-2) times the largest
 * modulus on the ellipse, the best of some rho (Theorem 7). */
static double log_remainder(const integral *q, double mid, double half) {
    static const double RHO[] = {2.0, 3.0, 4.5, 7.0, 11.0};
    const pe_sector_cells *cells = &q->a->cells;
    const double end = cells->end;
    double best = INFINITY;
    for (size_t i = 0; i < sizeof RHO / sizeof *RHO; i++) {
        const double rho = RHO[i], real = 0.5 * half * (rho + 1.0 / rho),
                     imag = 0.5 * half * (rho - 1.0 / rho);
        if (imag > 0.78 || mid + real > end - cells->width) break;
        const double top = pe_sector_top(cells, mid - real, mid + real) +
                           imag * imag * pe_sector_kappa(cells, mid + real) + weight_bound(q, mid + real);
        best =
            fmin(best, top + pe_d_log(64.0 / 15.0 * half / (1.0 - 1.0 / (rho * rho))) - 32.0 * pe_d_log(rho));
    }
    return best + 1e-9;
}

/* Adds the integral over a piece of a panel, whose ends have low parts as one of them may be the threshold.  `known`:
 * values of the polynomial at its nodes, or NULL. */
static void add_piece(integral *q, size_t panel, double from, double from_low, double to, double to_low,
                      const double *known) {
    const pe_sector *a = q->a;
    const double half = 0.5 * ((to - from) + (to_low - from_low));
    double e[RULE], off[RULE], step[RULE], low[RULE], top = -INFINITY, sum = 0.0, error = 0.0;
    if (!(half > 0.0)) return;
    for (int i = 0; i < RULE; i++) {
        step[i] = half * (1.0 + q->r->x[i]);
        low[i] = from_low + step[i];
    }
    if (known) memcpy(e, known, sizeof e);
    else pe_sector_rests(a, panel, RULE, from, low, e);
    for (int i = 0; i < RULE; i++) {
        const double distance = ((from - q->at.high) + (from_low - q->at.low)) + step[i];
        const double value = e[i], weight = log_weight(q, from, low[i], distance, &off[i]);
        e[i] = value + weight;
        off[i] += 3.0 * UNIT * (fabs(value) + fabs(weight));
        top = fmax(top, e[i]);
    }
    top = pe_sector_whole(top);
    for (int i = 0; i < RULE; i++) {
        const double share = q->r->w[i] * pe_d_exp(e[i] - top);
        sum += share;
        error += share * (off[i] + UNIT * fabs(e[i] - top));
    }
    top += a->whole[panel]; /* exact */
    const double log_value = top + pe_d_log(sum * half);
    const double rounding = error / sum + pe_d_expm1(a->off[panel]) * (1.0 + 1e-6) + RULE_ERROR;
    accumulate(&q->sum, top, sum * half);
    q->pieces += 1.0;
    q->log_error = pe_log_add(q->log_error, log_value + pe_d_log(rounding));
    q->log_error = pe_log_add(q->log_error, log_remainder(q, from + from_low + half, half));
}

/* Adds the pieces of a panel on one side of the threshold. */
static void add_panel(integral *q, size_t panel, int above, const double *known) {
    const double lo = q->a->edge[panel], width = (q->a->edge[panel + 1] - lo) / PIECES, w = q->at.high;
    for (int k = 0; k < PIECES; k++) {
        const double left = lo + k * width, right = left + width;
        if (left == w || right == w) q->at.off += fabs(q->at.low);
        if (above && right > w) {
            if (left < w) add_piece(q, panel, w, q->at.low, right, 0.0, NULL);
            else add_piece(q, panel, left, 0.0, right, 0.0, known ? known + RULE * k : NULL);
        } else if (!above && left < w) {
            if (right > w) add_piece(q, panel, left, 0.0, w, q->at.low, NULL);
            else add_piece(q, panel, left, 0.0, right, 0.0, known ? known + RULE * k : NULL);
        }
    }
}

/* ---- integrals beyond edges of panels ------------------------------------------------------------------ */

enum { MASSES = 6 }; /* integrals kept of an edge: of three weights below it, and of three above it */

static const pe_sector_mass ZERO = {-INFINITY, 0.0, -INFINITY};

/* Index of the integral of a weight on one side of an edge. */
static int kept_at(integrand weight, int above) {
    return (above ? 3 : 0) + (is_gain(weight) ? 2 : weight == UNDER_B);
}

static double log_of_mass(const pe_sector_mass *m) {
    return m->total > 0.0 ? m->top + pe_d_log(m->total) : -INFINITY;
}

/* The integral as a mass, with the rounding of the sum over its pieces. */
static pe_sector_mass mass_of(const integral *q) {
    pe_sector_mass m = {q->sum.top, q->sum.total, q->log_error};
    m.log_error = pe_log_add(m.log_error, log_of_mass(&m) + pe_d_log(UNIT * (8.0 + 8.0 * q->pieces)));
    return m;
}

/* Adds e^log_factor * factor times another integral; `units`: relative error of both factors in units of 2^-53. */
static void add_mass(pe_sector_mass *m, double log_factor, double factor, double units,
                     const pe_sector_mass *more) {
    if (!(factor > 0.0) || !(more->total > 0.0)) return;
    const pe_sector_mass own = {more->top + log_factor, more->total * factor,
                                more->log_error + log_factor + pe_d_log(factor)};
    /* the number of the smaller exponent is rescaled, which rounds */
    const double apart = m->total > 0.0 ? fabs(m->top - own.top) : 0.0;
    const double moved = log_of_mass(m->top < own.top ? m : &own) + pe_d_log(UNIT * (apart + 1.0));
    units += 2.0 + (log_factor == 0.0 ? 0.0 : 2.0 * (fabs(more->top) + fabs(log_factor)));
    m->log_error =
        pe_log_add(pe_log_add(m->log_error, own.log_error), log_of_mass(&own) + pe_d_log(UNIT * units));
    scaled_sum sum = {m->top, m->total};
    accumulate(&sum, own.top, own.total);
    m->top = sum.top;
    m->total = sum.total;
    m->log_error = pe_log_add(pe_log_add(m->log_error, moved), log_of_mass(m) + pe_d_log(8.0 * UNIT));
}

/* Adds the integral beyond an edge, from those that are kept.  A gain is split at the edge (below Theorem 7): the gain
 * with the threshold at the edge, and the mass beyond the edge times the gain from there to the threshold. */
static void add_beyond(const integral *q, pe_sector_mass *m, size_t edge, int above,
                       const pe_sector_mass *kept) {
    const pe_sector_mass *side = kept + MASSES * edge, *whole = side + kept_at(UNDER_A, above);
    const int is_ratio = q->a->kinds.are_ratios;
    if (!is_gain(q->weight)) {
        add_mass(m, 0.0, 1.0, 0.0, side + kept_at(q->weight, above));
        return;
    }
    const double d = (q->a->edge[edge] - q->at.high) - q->at.low;
    const double way = is_ratio ? d : q->at.y * pe_d_expm1(d);
    const double x = fmax(above ? way : -way, 0.0); /* negative if the low part of w passes the edge */
    const double of_x = 10.0 + 2.0 * fabs(d); /* relative error of x, in units */
    if (above) { /* e^s - e^c: e^s less that of the edge, and the edge's */
        add_mass(m, 0.0, 1.0, 0.0, side + kept_at(q->weight, above));
        const int is_large = x > 40.0;
        add_mass(m, q->at.y + (is_large ? x : 0.0), is_large ? -pe_d_expm1(-x) : pe_d_expm1(x),
                 (x + 1.0) * of_x + 4.0 * fabs(q->at.y) + 8.0, whole);
    } else { /* 1 - e^(s - c) */
        const double gained = -pe_d_expm1(-x);
        add_mass(m, 0.0, pe_d_exp(-x), x * of_x + 4.0, side + kept_at(q->weight, above));
        add_mass(m, 0.0, gained, of_x + 4.0, whole);
    }
}

/* The integral of a weight beyond an edge, from that beyond the next edge and the panel in between, with the values at
 * its nodes. */
static pe_sector_mass mass_beyond(const pe_sector *a, const gauss_rule *r, size_t edge, integrand weight,
                                  int above, const double *values, const pe_sector_mass *kept) {
    if (edge == (above ? a->n : 0)) return ZERO;
    const double w = a->edge[edge];
    const double y = a->kinds.are_ratios ? w : pe_dd_exp(pe_dd_of(w)).h;
    integral q = {a, r, {.high = w, .y = y}, weight, {-INFINITY, 0.0}, 0.0, -INFINITY};
    add_panel(&q, above ? edge : edge - 1, above, values);
    pe_sector_mass m = mass_of(&q);
    add_beyond(&q, &m, above ? edge + 1 : edge - 1, above, kept);
    return m;
}

/* Values of the polynomial at the nodes of all pieces of a panel. */
static void values_of(const pe_sector *a, const gauss_rule *r, size_t panel, double *value) {
    const double lo = a->edge[panel], width = (a->edge[panel + 1] - lo) / PIECES;
    double step[RULE];
    for (int i = 0; i < RULE; i++) step[i] = 0.5 * width * (1.0 + r->x[i]);
    for (int k = 0; k < PIECES; k++) pe_sector_rests(a, panel, RULE, lo + k * width, step, value + RULE * k);
}

/* All integrals that are kept; NULL without memory. */
static pe_sector_mass *masses_of(const pe_sector *a, const gauss_rule *r) {
    static const integrand WEIGHTS[2][3] = {{UNDER_A, UNDER_B, GAIN_BELOW}, {UNDER_A, UNDER_B, GAIN_ABOVE}};
    pe_sector_mass *kept = malloc(MASSES * (a->n + 1) * sizeof *kept);
    if (!kept) return NULL;
    for (int above = 0; above < 2; above++)
        for (size_t i = 0; i <= a->n; i++) {
            const size_t edge = above ? a->n - i : i;
            double value[PIECES * RULE] = {0.0};
            if (i) values_of(a, r, above ? edge : edge - 1, value);
            for (int k = 0; k < 3; k++)
                kept[MASSES * edge + (size_t)kept_at(WEIGHTS[above][k], above)] =
                    mass_beyond(a, r, edge, WEIGHTS[above][k], above, value, kept);
        }
    return kept;
}

int pe_sector_keep(pe_sector *a) {
    gauss_rule r;
    make_rule(&r, RULE);
    if (!a->kept) a->kept = masses_of(a, &r);
    return a->kept ? PE_OK : PE_NO_MEMORY;
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

/* log of the integral of a weight on one side of the threshold, without the floor; q->log_error becomes the log of a
 * bound of its error, that of the threshold excluded. */
static double integral_beyond(integral *q, int above, const pe_sector_mass *kept) {
    const size_t here = pe_sector_panel(q->a, q->at.high);
    add_panel(q, here, above, NULL);
    pe_sector_mass m = mass_of(q);
    add_beyond(q, &m, above ? here + 1 : here, above, kept);
    q->log_error = m.log_error;
    return log_of_mass(&m);
}

/* log of the functional with the floor, and a bound of its relative error, all parts included. */
static double functional_of(const pe_sector *a, const pe_sector_mass *kept, const gauss_rule *r,
                            const place *at, integrand weight, int above, double *relative) {
    integral q = {a, r, *at, weight, {-INFINITY, 0.0}, 0.0, -INFINITY};
    const int of_b = weight == UNDER_B || weight == GAIN_ABOVE;
    const double log_sum = integral_beyond(&q, above, kept), floor = of_b ? a->floor : 0.0;
    /* beyond the ends of the panels */
    const double beyond = above ? a->tail[of_b] - floor : a->below[of_b];
    /* error of the threshold times the density there */
    const double to = at->high + 2.0 * q.at.off + 1e-12;
    double moved = pe_sector_top(&a->cells, at->high - 2.0 * q.at.off - 1e-12, to) + pe_d_log(q.at.off);
    if (weight == UNDER_B) moved += pe_sector_loss(a, to);
    if (is_gain(weight)) { /* the slope in c is at most the tail under the law of the threshold */
        double own;
        const double tail = functional_of(a, kept, r, at, UNDER_A, above, &own),
                     most = fmin(0.0, tail + pe_d_log1p(own));
        const double turn = a->kinds.are_ratios ? 1.0 : at->y; /* of the loss with w */
        moved = pe_d_log(q.at.off * turn) + most + (above ? at->y : 0.0);
    }
    double error = pe_log_add(pe_log_add(q.log_error, beyond), moved) - log_sum;
    /* also where it is large, as the other side may follow from it */
    error = pe_d_exp(fmin(error, 700.0)) + UNIT * (16.0 + 8.0 * fabs(log_sum) + 4.0 * fabs(floor));
    *relative = (error < 0.5 ? pe_d_expm1(error) : 2.0 * error) * (1.0 + 1e-6);
    return log_sum + floor + (of_b ? a->floor_low : 0.0);
}

/* Replaces the larger one of two complementary tails by 1 minus the smaller one if that has a smaller error. */
static void complete(double *value, double *error, int one, int other) {
    for (int side = 0; side < 2; side++) {
        const int small = side ? other : one, large = side ? one : other;
        const double share = pe_d_exp(value[small]);
        if (!(share < 0.5) || !(error[small] < 1e300)) continue;
        const double own = share * error[small] / (1.0 - share) * (1.0 + 1e-9) + 12.0 * UNIT;
        if (!(error[large] <= own)) {
            value[large] = pe_d_log1p(-share);
            error[large] = own;
        }
    }
}

static void sector_row(const pe_sector *a, const pe_sector_mass *kept, const gauss_rule *r, int reversed,
                       double c, double *row) {
    pe_fail_row(row);
    const double own = reversed ? -c : c;
    const pe_dd y = pe_dd_add_d(pe_two_sum(own, -a->floor), -a->floor_low);
    const int is_ratio = a->kinds.are_ratios;
    if (!(is_ratio ? fabs(y.h) < 700.0 : y.h > LEAST_LOSS && y.h < 700.0)) return;
    const pe_dd w = is_ratio ? y : pe_dd_log(y);
    place at = {.high = w.h, .low = w.l, .y = y.h, .c = own};
    /* the logs of numbers of ratios in the floor have errors of at most 4 units each */
    const double of_floor = is_ratio ? 6.0 * a->floor_size : fabs(a->floor);
    at.off = PE_WIDE_UNIT * ((fabs(own) + of_floor) / (is_ratio ? 1.0 : at.y) + 4.0 + fabs(at.high));
    if (!(at.high > pe_sector_low(a) && at.high < pe_sector_high(a)) || at.off > 1e-6) return;
    double value[PE_FUNCTIONALS], error[PE_FUNCTIONALS];
    const int below_a = reversed ? PE_B_ABOVE : PE_A_BELOW, above_a = reversed ? PE_B_BELOW : PE_A_ABOVE;
    const int below_b = reversed ? PE_A_ABOVE : PE_B_BELOW, above_b = reversed ? PE_A_BELOW : PE_B_ABOVE;
    value[below_a] = functional_of(a, kept, r, &at, UNDER_A, 0, &error[below_a]);
    value[above_a] = functional_of(a, kept, r, &at, UNDER_A, 1, &error[above_a]);
    value[below_b] = functional_of(a, kept, r, &at, UNDER_B, 0, &error[below_b]);
    value[above_b] = functional_of(a, kept, r, &at, UNDER_B, 1, &error[above_b]);
    value[PE_PROFILE] =
        functional_of(a, kept, r, &at, reversed ? GAIN_ABOVE : GAIN_BELOW, reversed, &error[PE_PROFILE]);
    complete(value, error, below_a, above_a);
    complete(value, error, below_b, above_b);
    row[0] = c;
    row[1] = pe_sector_value(a, pe_sector_panel(a, at.high), at.high, at.low) - (is_ratio ? 0.0 : at.high) +
             (reversed ? own : 0.0);
    for (int f = 0; f < PE_FUNCTIONALS; f++) {
        row[2 + f] = fmin(value[f], 0.0);
        row[2 + PE_FUNCTIONALS + f] = error[f] < 1.0 ? error[f] : INFINITY;
    }
}

int pe_sector_at(const pe_sector *a, int reversed, size_t n, const double *c, double *rows) {
    gauss_rule r;
    make_rule(&r, RULE);
    pe_sector_mass *own = a->kept ? NULL : masses_of(a, &r);
    const pe_sector_mass *kept = a->kept ? a->kept : own;
    for (size_t i = 0; i < n && !kept; i++) pe_fail_row(rows + PE_ROW * i);
    for (size_t i = 0; i < n && kept; i++) sector_row(a, kept, &r, reversed, c[i], rows + PE_ROW * i);
    free(own);
    return kept ? PE_OK : PE_NO_MEMORY;
}

/* ---- search for thresholds: choices -------------------------------------------------------------------- */

/* The weight and the side of the integral that is a functional. */
static integrand weight_of(int functional, int reversed, int *above) {
    *above = reversed != (functional == PE_A_ABOVE || functional == PE_B_ABOVE);
    if (functional == PE_PROFILE) return *above ? GAIN_ABOVE : GAIN_BELOW;
    return reversed == (functional == PE_A_ABOVE || functional == PE_A_BELOW) ? UNDER_B : UNDER_A;
}

/* The w at which the log of an integral equals `goal`: bisection over edges, then regula falsi with halving. */
static double place_of(const pe_sector *a, const gauss_rule *r, integrand weight, int above, double goal) {
    enum { MOST_STEPS = 60 };
    const pe_sector_mass *kept = a->kept + kept_at(weight, above);
    const double sign = above ? -1.0 : 1.0;
    size_t first = 0, last = a->n;
    while (last - first > 1) {
        const size_t middle = (first + last) / 2;
        if (sign * (log_of_mass(kept + MASSES * middle) - goal) < 0.0) first = middle;
        else last = middle;
    }
    double low = a->edge[first], high = a->edge[last];
    double of_low = sign * (log_of_mass(kept + MASSES * first) - goal);
    double of_high = sign * (log_of_mass(kept + MASSES * last) - goal);
    if (of_low >= 0.0 || of_high <= 0.0) return of_low >= 0.0 ? low : high;
    for (int it = 0; it < MOST_STEPS && high - low > 4.0 * UNIT * fmax(fabs(low), 1.0); it++) {
        const double middle = low + 0.5 * (high - low), way = of_low / (of_low - of_high);
        /* every third step halves, as with regula falsi one end may stay */
        double w = it % 3 < 2 && of_low > -700.0 ? low + way * (high - low) : middle;
        if (!(w > low && w < high)) w = middle;
        const place at = {.high = w, .y = a->kinds.are_ratios ? w : pe_d_exp(w)};
        integral q = {a, r, at, weight, {-INFINITY, 0.0}, 0.0, -INFINITY};
        const double miss = sign * (integral_beyond(&q, above, a->kept) - goal);
        if (miss < 0.0) {
            low = w;
            of_low = miss;
        } else {
            high = w;
            of_high = miss;
        }
        if (fabs(miss) < 4.0 * UNIT * fmax(1.0, fabs(goal))) return w;
    }
    return low + 0.5 * (high - low);
}

void pe_sector_solve(const pe_sector *a, int reversed, int functional, size_t n, const double *log_target,
                     double *c) {
    gauss_rule r;
    make_rule(&r, RULE);
    int above;
    const integrand weight = weight_of(functional, reversed, &above);
    const int of_b = weight == UNDER_B || weight == GAIN_ABOVE;
    for (size_t i = 0; i < n; i++) {
        c[i] = NAN;
        if (!a->kept || isnan(log_target[i])) continue;
        const double w = place_of(a, &r, weight, above, log_target[i] - (of_b ? a->floor : 0.0));
        const double loss = a->floor + (a->kinds.are_ratios ? w : pe_d_exp(w));
        c[i] = reversed ? -loss : loss;
    }
}
