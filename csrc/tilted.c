/* The tilted density on the real line, and upper bounds of log F on cells: Lemma 2 of docs/theory/gaussian.md. */

#include "tilted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"
#include "lane_log.h"
#include "simd.h"
#include "tilted_cells.h"

static const double HALF_LOG_2PI = 0.91893853320467274178;
/* Distance of the first cell below the shifts for q < 0, where a normal tail underflows, and for q >= 0, where the tilt
 * gives no weight to small z and the tail is below 1e-55 of the whole */
static const double REACH = 42.0, NEAR = 16.0;
static const double MAX_CELLS = 16384;

double pe_side_at(const pe_normals *s, double x, double *slope, double *share) {
    if (s->n == 1 && s->shift[0] == 0.0) {
        share[0] = 1.0;
        *slope = 0.0;
        return 0.0;
    }
    double top = -INFINITY, change = 0.0, sum = 0.0, first = 0.0;
    for (size_t j = 0; j < s->n; j++) top = fmax(top, s->shift[j] * (x - 0.5 * s->shift[j]));
    for (size_t j = 0; j < s->n; j++) {
        const double e = s->shift[j] * (x - 0.5 * s->shift[j]);
        if (e != 0.0) change += s->weight[j] * pe_d_expm1(fmin(e, 600.0));
        share[j] = e == top ? s->weight[j] : s->weight[j] * pe_d_exp(e - top);
        sum += share[j];
    }
    for (size_t j = 0; j < s->n; j++) {
        share[j] /= sum;
        first += share[j] * s->shift[j];
    }
    *slope = first;
    /* near -1 log1p(change) would lose digits */
    return top <= 600.0 && change > -0.5 ? pe_d_log1p(change) : top + pe_d_log(sum);
}

double pe_tilted_end(const pe_tilted *t) {
    return pe_edge_of(t, t->n);
}

/* Start of the cells.  Left of it log F rises steeply, even times 1/(b/a - 1).  For q >= 0 the factor b^q moves the mass
 * of F to the right, and a^(1-q), of a power of at most 1, to the left by no more than its shift. */
static double start_of(const pe_normals *a, const pe_normals *b, double q) {
    return -(q >= 0.0 ? NEAR : REACH) + fmax(1.0, 1.0 - q) * a->shift[0] - pe_smallest_positive(b);
}

/* The terms of a side at PE_LANES ends of cells, over e^out: their sum, their sum times the shifts, and (where out is 0)
 * their sum minus 1 in `change`. */
PE_INLINE void cell_terms(const pe_normals *s, double start, const double *out, double *sum, double *first,
                          double *change, double *share, size_t stride) {
    int is_plain = 1;
    for (int u = 0; u < PE_LANES; u++) is_plain &= out[u] == 0.0;
    for (size_t j = 0; j < s->n; j++) {
        const double c = s->shift[j], w = s->weight[j];
        double own[PE_LANES], less_one[PE_LANES];
        const int is_one = c == 0.0 && is_plain;
        if (is_one)
            for (int u = 0; u < PE_LANES; u++) {
                own[u] = w;
                less_one[u] = 0.0;
            }
        if (!is_one)
            for (int u = 0; u < PE_LANES; u++) {
                const double x = start + u * PE_CELL, e = c * (x - 0.5 * c) - out[u], power = pe_vexp(e);
                own[u] = w * power;
                less_one[u] = w * pe_vexpm1(e < 600.0 ? e : 600.0, power);
            }
        for (int u = 0; u < PE_LANES; u++) {
            change[u] += less_one[u];
            sum[u] += own[u];
            first[u] += own[u] * c;
        }
        memcpy(share + j * stride, own, sizeof own);
    }
}

/* pe_side_at for all ends of cells. */
PE_CLONES static void set_side(const pe_tilted *t, const pe_normals *s, double *log_side, double *slope,
                               double *share) {
    for (size_t i = 0; i <= t->n; i += PE_LANES) {
        const double start = t->start + (double)i * PE_CELL;
        double out[PE_LANES], sum[PE_LANES] = {0}, first[PE_LANES] = {0}, change[PE_LANES] = {0},
                              log_of[PE_LANES], mean[PE_LANES];
        for (int u = 0; u < PE_LANES; u++) out[u] = -INFINITY;
        for (size_t j = 0; j < s->n; j++)
            for (int u = 0; u < PE_LANES; u++) {
                const double c = s->shift[j], e = c * (start + u * PE_CELL - 0.5 * c);
                out[u] = e > out[u] ? e : out[u];
            }
        /* the largest term is divided out only where it would over- or underflow */
        for (int u = 0; u < PE_LANES; u++) out[u] = fabs(out[u]) <= 600.0 ? 0.0 : out[u];
        cell_terms(s, start, out, sum, first, change, share + i, t->stride);
        int are_changes = 1;
        for (int u = 0; u < PE_LANES; u++) {
            /* near -1 log1p(change) would lose digits */
            const int is_change = out[u] == 0.0 && change[u] > -0.5;
            const double r = is_change ? change[u] : 0.0;
            log_of[u] = pe_vlog1p_real(r, 1.0 + r);
            mean[u] = first[u] / sum[u];
            are_changes &= is_change;
        }
        if (!are_changes)
            for (int u = 0; u < PE_LANES; u++) {
                const int is_change = out[u] == 0.0 && change[u] > -0.5;
                const double far = pe_log(sum[u]);
                log_of[u] = is_change ? log_of[u] : far;
            }
        for (int u = 0; u < PE_LANES; u++) log_of[u] += out[u];
        memcpy(log_side + i, log_of, sizeof log_of);
        memcpy(slope + i, mean, sizeof mean);
        for (size_t j = 0; j < s->n; j++)
            for (int u = 0; u < PE_LANES; u++) share[j * t->stride + i + (size_t)u] /= sum[u];
    }
}

/* Places the arrays that depend on the power q in the block from `at` on; returns the end of them. */
static double *place_arrays(pe_tilted *t, double *at) {
    const size_t m = pe_padded_ends(t->n);
    t->value = at;
    t->most = at + m;
    t->concave = at + 2 * m;
    t->fall = at + 3 * m;
    at += 4 * m;
    for (int side = 0; side < 2; side++) {
        t->turned[side] = at;
        at += 2 * pe_side_of(t, side)->n;
    }
    t->room = at;
    return at + t->a.n + t->b.n;
}

/* log F at the ends of cells, and upper bounds on each cell: the chord of the convex part plus a tangent of the concave
 * part at either end is linear and above log F. */
PE_CLONES static void set_values(pe_tilted *t) {
    const double power[2] = {pe_power_of(t, 0), pe_power_of(t, 1)};
    /* log of a side times a negative power is concave */
    const double down[2] = {power[0] < 0.0 ? power[0] : 0.0, power[1] < 0.0 ? power[1] : 0.0};
    /* none of these arrays overlap */
    const double *restrict log_a = t->log_side[0], *restrict log_b = t->log_side[1],
                           *restrict slope_a = t->slope[0], *restrict slope_b = t->slope[1];
    double *restrict value = t->value, *restrict concave = t->concave, *restrict fall = t->fall,
                     *restrict most = t->most;
    const double start = t->start;
    const size_t n = t->n;
    for (size_t i = 0; i <= n; i++) {
        const double x = start + (double)i * PE_CELL, bell = -0.5 * x * x;
        value[i] = (bell - HALF_LOG_2PI) + power[0] * log_a[i] + power[1] * log_b[i];
        concave[i] = bell + down[0] * log_a[i] + down[1] * log_b[i];
        fall[i] = -x + down[0] * slope_a[i] + down[1] * slope_b[i];
    }
    for (size_t i = 0; t->log_taper && i <= n; i++) {
        value[i] += t->log_taper[i];
        concave[i] += t->log_taper[i]; /* erfc is log-concave */
        fall[i] += t->taper_slope[i];
    }
    for (size_t i = 0; i < n; i++) {
        const double left = value[i], right = value[i + 1], curve = concave[i + 1] - concave[i];
        const double first = right - curve + fall[i] * PE_CELL, last = left + curve - fall[i + 1] * PE_CELL;
        const double from_left = first > left ? first : left, from_right = last > right ? last : right;
        most[i] = (from_left < from_right ? from_left : from_right) +
                  PE_OUTWARDS * (1.0 + fabs(left) + fabs(right));
    }
}

int pe_tilted_new(pe_tilted *t, pe_normals a, pe_normals b, double q, double end) {
    *t = (pe_tilted){.a = a, .b = b, .q = q, .bulge = 0.5};
    t->farthest = fmax(-a.shift[0], b.shift[b.n - 1]);
    t->start = start_of(&a, &b, q);
    const double cells = ceil((end - t->start) / PE_CELL);
    if (!(cells > 0.0 && cells < MAX_CELLS)) return PE_TOO_COSTLY;
    t->n = (size_t)cells;
    const size_t m = pe_padded_ends(t->n), terms = a.n + b.n;
    t->stride = m;
    t->block = malloc((8 * m + m * terms + 3 * terms) * sizeof(double));
    if (!t->block) return PE_NO_MEMORY;
    double *at = place_arrays(t, t->block);
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = pe_side_of(t, side);
        t->log_side[side] = at;
        t->slope[side] = at + m;
        t->share[side] = at + 2 * m;
        at += 2 * m + s->n * m;
        if (s->n > 1 || s->shift[0] != 0.0) {
            set_side(t, s, t->log_side[side], t->slope[side], t->share[side]);
            continue;
        }
        for (size_t i = 0; i < m; i++) {
            t->log_side[side][i] = t->slope[side][i] = 0.0;
            t->share[side][i] = 1.0;
        }
    }
    set_values(t);
    return PE_OK;
}

int pe_tilted_power(pe_tilted *t, const pe_tilted *known, double q, double end) {
    const double cells = ceil((end - known->start) / PE_CELL);
    if (start_of(&known->a, &known->b, q) != known->start || !(cells > 0.0 && cells <= (double)known->n))
        return known->log_taper ? PE_TOO_COSTLY : pe_tilted_new(t, known->a, known->b, q, end);
    *t = *known;
    t->q = q;
    t->n = (size_t)cells;
    t->block = malloc((4 * pe_padded_ends(t->n) + 3 * (t->a.n + t->b.n)) * sizeof(double));
    if (!t->block) return PE_NO_MEMORY;
    place_arrays(t, t->block);
    set_values(t);
    return PE_OK;
}

int pe_tilted_tapered(pe_tilted *t, const pe_tilted *known, const pe_taper *taper, double end) {
    *t = *known;
    if (known->n_tapers == 2) {
        t->block = NULL;
        return PE_TOO_COSTLY;
    }
    t->n = pe_cell_of(known, end, 1);
    t->taper[t->n_tapers++] = *taper;
    t->bulge += 1.0 / (taper->width * taper->width);
    const size_t m = pe_padded_ends(t->n);
    t->block = malloc((6 * m + 3 * (t->a.n + t->b.n)) * sizeof(double));
    if (!t->block) return PE_NO_MEMORY;
    t->log_taper = t->block;
    t->taper_slope = t->block + m;
    for (size_t i = 0; i <= t->n; i++) {
        t->log_taper[i] = pe_taper_log(taper, pe_edge_of(t, i), &t->taper_slope[i]);
        if (!known->log_taper) continue;
        t->log_taper[i] += known->log_taper[i];
        t->taper_slope[i] += known->taper_slope[i];
    }
    place_arrays(t, t->block + 2 * m);
    set_values(t);
    return PE_OK;
}

void pe_tilted_free(pe_tilted *t) {
    free(t->block);
    t->block = NULL;
}

double pe_tilted_log(const pe_tilted *t, double x) {
    double sum = -0.5 * x * x - HALF_LOG_2PI, slope;
    for (int side = 0; side < 2; side++)
        sum += pe_power_of(t, side) * pe_side_at(pe_side_of(t, side), x, &slope, t->room);
    for (int i = 0; i < t->n_tapers; i++) sum += pe_taper_log(&t->taper[i], x, &slope);
    return sum;
}

/* Adds power * log of a side at PE_LANES x, computed as in pe_side_at. */
PE_INLINE void add_sides(const pe_normals *s, double power, const double *x, double *log_of) {
    double top[PE_LANES], change[PE_LANES] = {0}, sum[PE_LANES] = {0};
    for (int u = 0; u < PE_LANES; u++) top[u] = -INFINITY;
    for (size_t j = 0; j < s->n; j++)
        for (int u = 0; u < PE_LANES; u++) {
            const double c = s->shift[j], e = c * (x[u] - 0.5 * c), low = e < 600.0 ? e : 600.0;
            top[u] = e > top[u] ? e : top[u];
            change[u] += s->weight[j] * pe_vexpm1(low, pe_vexp(low));
        }
    for (size_t j = 0; j < s->n; j++)
        for (int u = 0; u < PE_LANES; u++) {
            const double c = s->shift[j];
            sum[u] += s->weight[j] * pe_vexp(c * (x[u] - 0.5 * c) - top[u]);
        }
    for (int u = 0; u < PE_LANES; u++) {
        const int is_change = top[u] <= 600.0 && change[u] > -0.5;
        const double r = is_change ? change[u] : 0.0, rest = is_change ? 0.0 : top[u];
        log_of[u] += power * ((is_change ? pe_vlog1p_real(r, 1.0 + r) : pe_log(sum[u])) + rest);
    }
}

/* Adds the log of a taper at PE_LANES x. */
static void add_taper(const pe_taper *taper, const double *x, double *log_of) {
    double slope;
    for (int u = 0; u < PE_LANES; u++) log_of[u] += pe_taper_log(taper, x[u], &slope);
}

PE_CLONES double pe_tilted_nodes(const pe_tilted *t, double first, double last, double h, double unit) {
    double total[PE_LANES] = {0};
    for (double j = first; j <= last; j += PE_LANES) {
        double x[PE_LANES], e[PE_LANES];
        for (int u = 0; u < PE_LANES; u++) {
            x[u] = (j + u <= last ? j + u : last) * h;
            e[u] = (-0.5 * x[u] * x[u] - HALF_LOG_2PI) - unit;
        }
        for (int side = 0; side < 2; side++) {
            const pe_normals *s = pe_side_of(t, side);
            if (s->n > 1 || s->shift[0] != 0.0) add_sides(s, pe_power_of(t, side), x, e);
        }
        for (int i = 0; i < t->n_tapers; i++) add_taper(&t->taper[i], x, e);
        for (int u = 0; u < PE_LANES; u++) {
            const double term = e[u] < 700.0 ? pe_vexp(e[u]) : INFINITY;
            total[u] += j + u <= last ? term : 0.0;
        }
    }
    return pe_lane_sum(total);
}

double pe_tilted_log_side(const pe_tilted *t, int side, double x) {
    double slope;
    return pe_side_at(pe_side_of(t, side), x, &slope, t->room);
}

double pe_tilted_change(const pe_tilted *t) {
    const pe_mixtures both = {t->a, t->b};
    return pe_mixtures_change(&both);
}

double pe_tilted_loss_slope(const pe_tilted *t, double x) {
    double of_a, of_b;
    pe_side_at(&t->a, x, &of_a, t->room);
    pe_side_at(&t->b, x, &of_b, t->room);
    return of_b - of_a;
}
