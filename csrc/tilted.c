#include "tilted.h"
#include "pyengine.h"

#include <math.h>
#include <stdlib.h>

#include "lane_log.h"
#include "lane_trig.h"
#include "simd.h"

/* docs/theory/certified.md proves what stands here. */

static const double PI = 3.14159265358979323846;
static const double HALF_LOG_2PI = 0.91893853320467274178;
static const double ROUNDING = 1e-9; /* of logs of bounds, outwards */
static const double REACH = 42.0;    /* below -REACH a normal tail is nothing */
static const double MAX_CELLS = 16384;
static const double LOOSE = 16.0; /* log of a factor that is not worth a sum */

enum { ROOM = 8 }; /* cells between the end of a window and that of the law */

/* ---- values -------------------------------------------------------------------------------------- */

/* log of the mixture over phi, its slope and the shares of its terms */
static double side_at(const pe_normals *s, double x, double *slope, double *share) {
    if (s->n == 1 && s->shift[0] == 0.0) {
        share[0] = 1.0;
        *slope = 0.0;
        return 0.0;
    }
    double top = -INFINITY, change = 0.0, sum = 0.0, first = 0.0;
    for (size_t j = 0; j < s->n; j++) top = fmax(top, s->shift[j] * (x - 0.5 * s->shift[j]));
    for (size_t j = 0; j < s->n; j++) {
        const double e = s->shift[j] * (x - 0.5 * s->shift[j]);
        if (e != 0.0) change += s->weight[j] * expm1(fmin(e, 600.0));
        share[j] = e == top ? s->weight[j] : s->weight[j] * exp(e - top);
        sum += share[j];
    }
    for (size_t j = 0; j < s->n; j++) {
        share[j] /= sum;
        first += share[j] * s->shift[j];
    }
    *slope = first;
    /* beside -1 the change would lose what is left */
    return top <= 600.0 && change > -0.5 ? log1p(change) : top + log(sum);
}

static double power_of(const pe_tilted *t, int side) {
    return side ? t->q : 1.0 - t->q;
}

static const pe_normals *side_of(const pe_tilted *t, int side) {
    return side ? &t->b : &t->a;
}

static double edge_of(const pe_tilted *t, size_t i) {
    return t->start + (double)i * PE_CELL;
}

double pe_tilted_end(const pe_tilted *t) {
    return edge_of(t, t->n);
}

static double smallest_positive(const pe_normals *s) {
    for (size_t j = 0; j < s->n; j++)
        if (s->shift[j] > 0.0) return s->shift[j];
    return 0.0;
}

/* Left of the start log F rises steeply, by more than 1/(b/a - 1) may. */
static double start_of(const pe_normals *a, const pe_normals *b, double q) {
    return -REACH + fmax(1.0, 1.0 - q) * a->shift[0] - smallest_positive(b);
}

/* Ends of cells in whole lanes: those beyond the last one serve nothing. */
static size_t padded_ends(size_t cells) {
    return (cells + PE_LANES) / PE_LANES * PE_LANES;
}

/* The terms of a side at the ends of cells, whose logarithms are at most `out`, over e^out: their sum, the sum with the
 * shifts, and in `change` their sum less 1 where nothing is taken out. */
PE_INLINE void cell_terms(const pe_normals *s, double start, const double *out, double *sum, double *first,
                          double *change, double *share) {
    const size_t n = s->n;
    for (size_t j = 0; j < n; j++) {
        const double c = s->shift[j], w = s->weight[j];
        for (int u = 0; u < PE_LANES; u++) {
            const double x = start + u * PE_CELL, e = c * (x - 0.5 * c) - out[u], power = pe_vexp(e);
            const double low = e < 600.0 ? e : 600.0, own = w * power;
            change[u] += w * pe_vexpm1(low, power);
            share[(size_t)u * n + j] = own;
            sum[u] += own;
            first[u] += own * c;
        }
    }
}

/* log of a side over phi, its slope and the shares of its terms at the ends of cells. */
PE_CLONES static void set_side(const pe_tilted *t, const pe_normals *s, double *log_side, double *slope,
                               double *share) {
    const size_t n = s->n;
    for (size_t i = 0; i <= t->n; i += PE_LANES) {
        const double start = t->start + (double)i * PE_CELL;
        double out[PE_LANES], sum[PE_LANES] = {0}, first[PE_LANES] = {0}, change[PE_LANES] = {0};
        for (int u = 0; u < PE_LANES; u++) out[u] = -INFINITY;
        for (size_t j = 0; j < n; j++)
            for (int u = 0; u < PE_LANES; u++) {
                const double c = s->shift[j], e = c * (start + u * PE_CELL - 0.5 * c);
                out[u] = e > out[u] ? e : out[u];
            }
        /* terms are taken as they are where they are doubles, else beside the largest one */
        for (int u = 0; u < PE_LANES; u++) out[u] = fabs(out[u]) <= 600.0 ? 0.0 : out[u];
        cell_terms(s, start, out, sum, first, change, share + i * n);
        for (int u = 0; u < PE_LANES; u++) {
            /* beside -1 the change would lose what is left */
            const int is_change = out[u] == 0.0 && change[u] > -0.5;
            const double r = is_change ? change[u] : 0.0;
            log_side[i + u] = (is_change ? pe_vlog1p_real(r, 1.0 + r) : pe_log(sum[u])) + out[u];
            slope[i + u] = first[u] / sum[u];
        }
        for (int u = 0; u < PE_LANES; u++)
            for (size_t j = 0; j < n; j++) share[(i + u) * n + j] /= sum[u];
    }
}

/* Room for what depends on the power, and values from what does not. */
static double *set_power(pe_tilted *t, double *at) {
    const size_t m = padded_ends(t->n);
    t->value = at;
    t->most = at + m;
    t->concave = at + 2 * m;
    t->fall = at + 3 * m;
    at += 4 * m;
    for (int side = 0; side < 2; side++) {
        t->turned[side] = at;
        at += 2 * side_of(t, side)->n;
    }
    t->room = at;
    return at + t->a.n + t->b.n;
}

/* log F at the ends of cells, and its largest value over each: chords lie above what is convex, a tangent at either end
 * above what is concave, and their sum is linear. */
PE_CLONES static void set_values(pe_tilted *t) {
    const double power[2] = {power_of(t, 0), power_of(t, 1)};
    /* the sides with negative powers are concave */
    const double down[2] = {power[0] < 0.0 ? power[0] : 0.0, power[1] < 0.0 ? power[1] : 0.0};
    for (size_t i = 0; i <= t->n; i += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            const double x = t->start + (double)(i + u) * PE_CELL, bell = -0.5 * x * x;
            const double a = t->log_side[0][i + u], b = t->log_side[1][i + u];
            t->value[i + u] = (bell - HALF_LOG_2PI) + power[0] * a + power[1] * b;
            t->concave[i + u] = bell + down[0] * a + down[1] * b;
            t->fall[i + u] = -x + down[0] * t->slope[0][i + u] + down[1] * t->slope[1][i + u];
        }
    for (size_t i = 0; i < t->n; i++) {
        const double left = t->value[i], right = t->value[i + 1], curve = t->concave[i + 1] - t->concave[i];
        const double first = right - curve + t->fall[i] * PE_CELL,
                     last = left + curve - t->fall[i + 1] * PE_CELL;
        const double from_left = first > left ? first : left, from_right = last > right ? last : right;
        t->most[i] =
            (from_left < from_right ? from_left : from_right) + ROUNDING * (1.0 + fabs(left) + fabs(right));
    }
}

int pe_tilted_new(pe_tilted *t, pe_normals a, pe_normals b, double q, double end) {
    *t = (pe_tilted){.a = a, .b = b, .q = q};
    t->farthest = fmax(-a.shift[0], b.shift[b.n - 1]);
    t->start = start_of(&a, &b, q);
    const double cells = ceil((end - t->start) / PE_CELL);
    if (!(cells > 0.0 && cells < MAX_CELLS)) return PE_TOO_COSTLY;
    t->n = (size_t)cells;
    const size_t m = padded_ends(t->n), terms = a.n + b.n;
    t->block = malloc((8 * m + m * terms + 3 * terms) * sizeof(double));
    if (!t->block) return PE_NO_MEMORY;
    double *at = set_power(t, t->block);
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = side_of(t, side);
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
        return pe_tilted_new(t, known->a, known->b, q, end);
    *t = *known;
    t->q = q;
    t->n = (size_t)cells;
    t->block = malloc((4 * padded_ends(t->n) + 3 * (t->a.n + t->b.n)) * sizeof(double));
    if (!t->block) return PE_NO_MEMORY;
    set_power(t, t->block);
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
        sum += power_of(t, side) * side_at(side_of(t, side), x, &slope, t->room);
    return sum;
}

/* log of a side over phi at places, as side_at has it, times its power, added */
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

PE_CLONES double pe_tilted_nodes(const pe_tilted *t, double first, double last, double h, double unit) {
    double total[PE_LANES] = {0};
    for (double j = first; j <= last; j += PE_LANES) {
        double x[PE_LANES], e[PE_LANES];
        for (int u = 0; u < PE_LANES; u++) {
            x[u] = (j + u <= last ? j + u : last) * h;
            e[u] = (-0.5 * x[u] * x[u] - HALF_LOG_2PI) - unit;
        }
        for (int side = 0; side < 2; side++) {
            const pe_normals *s = side_of(t, side);
            if (s->n > 1 || s->shift[0] != 0.0) add_sides(s, power_of(t, side), x, e);
        }
        for (int u = 0; u < PE_LANES; u++) {
            const double term = e[u] < 700.0 ? pe_vexp(e[u]) : INFINITY;
            total[u] += j + u <= last ? term : 0.0;
        }
    }
    return pe_lane_sum(total);
}

double pe_tilted_log_side(const pe_tilted *t, int side, double x) {
    double slope;
    return side_at(side_of(t, side), x, &slope, t->room);
}

double pe_tilted_change(const pe_tilted *t) {
    const pe_mixtures both = {t->a, t->b};
    return pe_mixtures_change(&both);
}

double pe_tilted_loss_slope(const pe_tilted *t, double x) {
    double of_a, of_b;
    side_at(&t->a, x, &of_a, t->room);
    side_at(&t->b, x, &of_b, t->room);
    return of_b - of_a;
}

double pe_normals_above(const pe_normals *s, double x) {
    double sum = 0.0;
    for (size_t j = 0; j < s->n; j++) sum += s->weight[j] * erfc((x - s->shift[j]) * 0.70710678118654752440);
    return fmax(0.5 * sum * (1.0 + 1e-9), 5e-324); /* where erfc underflows, the smallest number does */
}

double pe_normals_below(const pe_normals *s, double x) {
    double sum = 0.0;
    for (size_t j = 0; j < s->n; j++) sum += s->weight[j] * erfc((s->shift[j] - x) * 0.70710678118654752440);
    return fmax(0.5 * sum * (1.0 + 1e-9), 5e-324);
}

/* ---- lines beside the real one --------------------------------------------------------------------- */

/* Whether |F| exceeds F e^(y^2/2) anywhere on a line Im z = y: whether one of the powers is negative */
static int grows(const pe_tilted *t) {
    return (t->q > 1.0 && t->a.n > 1) || (t->q < 0.0 && t->b.n > 1);
}

int pe_tilted_lift(const pe_tilted *t, double y) {
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = side_of(t, side);
        const double first = s->shift[0], last = s->shift[s->n - 1];
        if (s->n == 1) continue;
        if (!((last - first) * y < PI)) {
            if (power_of(t, side) < 0.0) return 0;
            continue;
        }
        double *turned = t->turned[side];
        for (size_t j = 0; j < s->n; j++) {
            const double up = sin(0.5 * (s->shift[j] - first) * y),
                         down = sin(0.5 * (last - s->shift[j]) * y);
            turned[j] = 2.0 * up * up;
            turned[s->n + j] = 2.0 * down * down;
        }
    }
    return 1;
}

/* 1 - cos of half the range of the shifts, from 1 - cos of the range */
static double half_range(const pe_normals *s, const double *turned) {
    return (1.0 - sqrt(fmax(1.0 - 0.5 * turned[s->n - 1], 0.0))) * (1.0 + 1e-12);
}

static double shrinks_by(double most) {
    return most < 1.0 ? -log1p(-most) * (1.0 + ROUNDING) + 1e-15 : INFINITY;
}

/* Growth at no place exceeds this. */
static double most_growth(const pe_tilted *t) {
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = side_of(t, side);
        const double power = power_of(t, side);
        if (power < 0.0 && s->n > 1) sum -= power * shrinks_by(half_range(s, t->turned[side]));
    }
    return sum;
}

/* log of s(x)/|s(x + iv)| at most.  With the terms' shares as probabilities the ratio is |E e^{i v shift}|: turned
 * by the mean of the outermost shifts, all terms have a cosine of at least that of half the range; turned by
 * one of them, the mean of 1 - cos rises or falls with x, as the shares move to larger shifts. */
static double shrinks(const pe_normals *s, const double *turned, const double *left, const double *right) {
    double up = 0.0, down = 0.0;
    for (size_t j = 0; j < s->n; j++) {
        up += right[j] * turned[j];
        down += left[j] * turned[s->n + j];
    }
    return shrinks_by(fmin(half_range(s, turned), fmin(up, down)));
}

/* Growth between places whose shares are given: at cells `left` and `right` */
static double growth(const pe_tilted *t, size_t left, size_t right) {
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = side_of(t, side);
        const double power = power_of(t, side);
        if (power >= 0.0 || s->n == 1) continue;
        sum -=
            power * shrinks(s, t->turned[side], t->share[side] + left * s->n, t->share[side] + right * s->n);
    }
    return sum;
}

/* Growth left of the first cell: only what rises with x is known there. */
static double growth_before(const pe_tilted *t) {
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = side_of(t, side);
        const double power = power_of(t, side), *turned = t->turned[side];
        if (power >= 0.0 || s->n == 1) continue;
        double up = 0.0;
        for (size_t j = 0; j < s->n; j++) up += t->share[side][j] * turned[j];
        sum -= power * shrinks_by(fmin(up, half_range(s, turned)));
    }
    return sum;
}

double pe_tilted_growth(const pe_tilted *t, double x) {
    double sum = 0.0, slope;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = side_of(t, side);
        const double power = power_of(t, side);
        if (power >= 0.0 || s->n == 1) continue;
        side_at(s, x, &slope, t->room);
        sum -= power * shrinks(s, t->turned[side], t->room, t->room);
    }
    return sum;
}

/* ---- sums over cells ------------------------------------------------------------------------------- */

/* The slope of log F up to the first cell is at least this: convex parts fall at most as their smallest shift says,
 * slopes of concave ones are largest at the end. */
static double rate_before(const pe_tilted *t) {
    double rate = -t->start;
    for (int side = 0; side < 2; side++) {
        const double power = power_of(t, side);
        rate += power * (power >= 0.0 ? side_of(t, side)->shift[0] : t->slope[side][0]);
    }
    return rate;
}

static size_t cell_of(const pe_tilted *t, double x, int up) {
    const double at = (x - t->start) / PE_CELL, whole = up ? ceil(at + 1e-9) : floor(at - 1e-9);
    return (size_t)fmin(fmax(whole, 0.0), (double)t->n);
}

/* Sum of e^(most - unit) over cells [from, to). */
PE_CLONES static double sum_plain(const pe_tilted *t, size_t from, size_t to, double unit) {
    double sum[PE_LANES] = {0}, top = -INFINITY, rest = 0.0;
    for (size_t i = from; i < to; i++) top = t->most[i] > top ? t->most[i] : top;
    if (!(top - unit < 700.0)) return INFINITY;
    size_t i = from;
    for (; i + PE_LANES <= to; i += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) sum[u] += pe_vexp(t->most[i + u] - unit) + 1e-300;
    for (; i < to; i++) rest += pe_vexp(t->most[i] - unit) + 1e-300;
    return pe_lane_sum(sum) + rest;
}

static double sum_cells(const pe_tilted *t, double low, double high, double unit, int is_growing) {
    const size_t from = cell_of(t, low, 0), last = cell_of(t, high, 1);
    double sum = 0.0;
    if (!is_growing) sum = sum_plain(t, from, last, unit);
    for (size_t i = from; is_growing && i < last; i++) {
        const double e = t->most[i] - unit + growth(t, i, i + 1);
        sum += e > -700.0 ? exp(e) : 1e-300;
    }
    return sum * PE_CELL * (1.0 + 1e-8);
}

double pe_tilted_rest(const pe_tilted *t, double low, double high, double unit) {
    return sum_cells(t, low, high, unit, 0);
}

double pe_tilted_sum(const pe_tilted *t, double low, double high, double unit, double wider) {
    const int is_growing = grows(t);
    double sum = sum_cells(t, low, high, unit, is_growing) * (1.0 + wider);
    if (low < t->start) {
        const double rate = rate_before(t);
        if (!(rate > 1.0)) return INFINITY;
        const double one = exp(t->value[0] - unit + (is_growing ? growth_before(t) : 0.0));
        sum += one * (1.0 / rate + wider * PE_CELL);
    }
    return sum * (1.0 + 1e-8);
}

double pe_tilted_lifted(const pe_tilted *t, double high, double unit, double whole) {
    if (!grows(t)) return whole;
    const double most = most_growth(t);
    /* a looser bound costs less than its digits are worth */
    return most < LOOSE ? whole * exp(most) * (1.0 + 1e-9) : pe_tilted_sum(t, -INFINITY, high, unit, 0.0);
}

/* Bounds of |arg| of a side at height y at the ends of cells [from, from + m), each from the shares there: turned back by the
 * shift next to 0, the side has a positive real part where the mean of 1 - cos is below 1, and sin |arg| is at most y
 * times the mean distance from that shift over its modulus. */
PE_INLINE void angles_below(const pe_tilted *t, int side, size_t from, size_t m, double y, double *out) {
    const pe_normals *s = side_of(t, side);
    const double near = side ? s->shift[0] : -s->shift[s->n - 1],
                 far = side ? s->shift[s->n - 1] : -s->shift[0], sign = side ? 1.0 : -1.0;
    const double *turned = t->turned[side] + (side ? 0 : s->n);
    for (size_t i = 0; i < m && s->n == 1; i++) out[i] = near * y; /* one term alone turns by its shift */
    for (size_t i = 0; i < m && s->n > 1; i++) {
        const double *share = t->share[side] + (from + i) * s->n;
        double most = 0.0;
        for (size_t j = 0; j < s->n; j++) most += share[j] * turned[j];
        const double sine = y * (sign * t->slope[side][from + i] - near) / (1.0 - most);
        /* asin x <= pi/3 x up to 1/2 */
        out[i] = most < 0.9 && sine < 0.5 ? near * y + 1.0472 * fabs(sine) + 1e-12 : far * y;
    }
}

double pe_tilted_angle(const pe_tilted *t, double y, double x) {
    double of_a = 0.0, of_b = 0.0;
    angles_below(t, 0, cell_of(t, x, 0), 1, y, &of_a);
    angles_below(t, 1, cell_of(t, x, 1), 1, y, &of_b);
    return of_a + of_b;
}

double pe_tilted_edge(const pe_tilted *t, double from, double y, double time, double level) {
    const int is_growing = grows(t);
    size_t i = cell_of(t, from, 1);
    for (; i < t->n; i++) {
        double of_a = 0.0, of_b = 0.0;
        angles_below(t, 0, i, 1, y, &of_a);
        angles_below(t, 1, i, 1, y, &of_b);
        const double here = t->value[i] + (is_growing ? growth(t, i, i) : 0.0) + time * (of_a + of_b);
        if (here < level) break;
    }
    return edge_of(t, i);
}

PE_CLONES static double sum_raised(const pe_tilted *t, size_t last, double y, double time, double unit) {
    const int is_growing = grows(t);
    double sum = 0.0;
    for (size_t i = 0; i < last; i += PE_LANES) {
        double of_a[PE_LANES], of_b[PE_LANES], e[PE_LANES], most = -INFINITY;
        const size_t m = last - i < PE_LANES ? last - i : PE_LANES;
        angles_below(t, 0, i, m, y, of_a);
        angles_below(t, 1, i + 1, m, y, of_b);
        for (size_t u = 0; u < PE_LANES; u++) e[u] = -INFINITY;
        for (size_t u = 0; u < m; u++) {
            e[u] = t->most[i + u] - unit + time * (of_a[u] + of_b[u]);
            if (is_growing) e[u] += growth(t, i + u, i + u + 1);
            most = e[u] > most ? e[u] : most;
        }
        if (!(most < 700.0)) return INFINITY;
        for (int u = 0; u < PE_LANES; u++) e[u] = pe_vexp(e[u]) + 1e-300;
        sum += pe_lane_sum(e);
    }
    return sum;
}

double pe_tilted_raised(const pe_tilted *t, double y, double high, double time, double unit) {
    const double rate = rate_before(t);
    double of_b = 0.0;
    angles_below(t, 1, 0, 1, y, &of_b);
    const double first =
        t->value[0] - unit + (grows(t) ? growth_before(t) : 0.0) + time * (of_b - t->a.shift[0] * y);
    if (!(rate > 1.0) || !(first < 700.0)) return INFINITY;
    const double sum = exp(first) / rate + PE_CELL * sum_raised(t, cell_of(t, high, 1), y, time, unit);
    return sum * (1.0 + 1e-8);
}

/* Arguments of a side at the ends of the first m cells, whole lanes, on a line with the cosines and sines of its shifts */
PE_CLONES static void set_angles(const pe_tilted *t, int side, size_t m, const double *co, const double *si,
                                 double *out) {
    const pe_normals *s = side_of(t, side);
    for (size_t i = 0; i < m; i += PE_LANES) {
        double re[PE_LANES] = {0}, im[PE_LANES] = {0};
        for (size_t j = 0; j < s->n; j++)
            for (int u = 0; u < PE_LANES; u++) {
                const double share = t->share[side][(i + u) * s->n + j];
                re[u] += share * co[j];
                im[u] += share * si[j];
            }
        for (int u = 0; u < PE_LANES; u++) out[i + u] = pe_vargument(re[u], fabs(im[u]));
    }
}

/* Sum of e^(most - unit - time arg)/arg over the first cells, given arguments at their ends */
PE_CLONES static double sum_over_angle(const pe_tilted *t, size_t last, const double *of_a,
                                       const double *of_b, double time, double unit) {
    const int is_growing = grows(t);
    double sum = 0.0;
    for (size_t i = 0; i < last; i += PE_LANES) {
        double e[PE_LANES], least[PE_LANES], most = -INFINITY;
        for (size_t u = 0; u < PE_LANES; u++) {
            const size_t k = i + u < last ? i + u : last - 1;
            least[u] = (of_b[k] + of_a[k + 1]) * (1.0 - 1e-9);
            e[u] = i + u < last ? t->most[k] - unit - time * least[u] : -INFINITY;
            if (is_growing && i + u < last) e[u] += growth(t, k, k + 1);
            most = e[u] > most ? e[u] : most;
        }
        if (!(most < 700.0)) return INFINITY;
        for (int u = 0; u < PE_LANES; u++) e[u] = (pe_vexp(e[u]) + 1e-300) / least[u];
        sum += pe_lane_sum(e);
    }
    return sum;
}

double pe_tilted_over_angle(const pe_tilted *t, double y, double high, double time, double unit) {
    const int is_growing = grows(t);
    const size_t last = cell_of(t, high, 1), m = padded_ends(last);
    const size_t terms = t->a.n > t->b.n ? t->a.n : t->b.n;
    double *of_a = calloc(2 * (m + terms), sizeof(double)), *of_b = of_a + m, *co = of_b + m,
           *si = co + terms;
    if (!of_a) return INFINITY;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = side_of(t, side);
        if (s->n == 1 && s->shift[0] == 0.0) continue; /* it does not turn */
        for (size_t j = 0; j < s->n; j++) {
            co[j] = cos(s->shift[j] * y);
            si[j] = sin(s->shift[j] * y);
        }
        set_angles(t, side, m, co, si, side ? of_b : of_a);
    }
    /* that of a falls with x, that of b rises; left of the first cell: either a alone, or one term of b, which falls no
     * faster than F rises */
    double rate = rate_before(t), angle = of_a[0], sum;
    if (!(angle > 0.0)) {
        const double least = smallest_positive(&t->b);
        rate -= least;
        for (size_t j = 0; j < t->b.n; j++)
            if (t->b.shift[j] == least) angle = t->share[1][j] * sin(least * y);
    }
    if (!(angle > 0.0) || !(rate > 1.0)) sum = INFINITY;
    else sum = exp(t->value[0] - unit + (is_growing ? growth_before(t) : 0.0)) / (rate * angle);
    if (isfinite(sum)) sum += PE_CELL * sum_over_angle(t, last, of_a, of_b, time, unit);
    free(of_a);
    return sum * (1.0 + 1e-8);
}

double pe_tilted_variation(const pe_tilted *t, double low, double high, double unit) {
    const size_t first = cell_of(t, low, 0), last = cell_of(t, high, 1);
    double sum = 0.0, ends = 0.0;
    for (size_t i = first; i < last; i++) {
        const double least = (t->slope[1][i] - t->slope[0][i + 1]) * (1.0 - 1e-9);
        const double value = exp(t->most[i] - unit) / least;
        const double x = fmax(fabs(edge_of(t, i)), fabs(edge_of(t, i + 1)));
        const double change = x + fabs(1.0 - t->q) * fabs(t->slope[0][i]) + fabs(t->q) * t->slope[1][i + 1];
        /* the variance of a shift is at most its mean times the farthest */
        sum += PE_CELL * value * (change + t->farthest);
        if (i == first || i + 1 == last) ends += value;
    }
    return last > first ? (sum + 2.0 * ends) * (1.0 + 1e-8) + 1e-300 : 0.0;
}

/* ---- windows ---------------------------------------------------------------------------------------- */

/* log of the trapezoidal sum up to the end of a cell */
PE_CLONES static double log_total(const pe_tilted *t, size_t last) {
    double top = -INFINITY, sum[PE_LANES] = {0}, rest = 0.0;
    for (size_t i = 0; i <= last; i++) top = t->value[i] > top ? t->value[i] : top;
    size_t i = 0;
    for (; i + PE_LANES <= last + 1; i += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) sum[u] += pe_vexp(t->value[i + u] - top);
    for (; i <= last; i++) rest += pe_vexp(t->value[i] - top);
    return top + log((pe_lane_sum(sum) + rest) * PE_CELL);
}

/* Whether the Gaussians that centre the sums of phi b (b/a)^(q-1) are below `plain` beyond x on one side */
static int centre_is_small(const pe_tilted *t, double x, int above, double plain) {
    const double of_a = above ? pe_normals_above(&t->a, x) : pe_normals_below(&t->a, x);
    const double of_b = above ? pe_normals_above(&t->b, x) : pe_normals_below(&t->b, x);
    const double power = fabs(t->q - 1.0);
    return log(power * of_a + (1.0 + power) * of_b) <= plain;
}

/* Of the cells from `inner`, where it need not be, to `outer` in either direction the first end beyond which it is;
 * they fall outwards. */
static size_t small_centre(const pe_tilted *t, size_t inner, size_t outer, double plain) {
    const int above = outer > inner;
    while (inner != outer) {
        const size_t middle = above ? (inner + outer) / 2 : (inner + outer + 1) / 2;
        if (centre_is_small(t, edge_of(t, middle), above, plain)) outer = middle;
        else inner = above ? middle + 1 : middle - 1;
    }
    return inner;
}

/* The first cell in [low, high] from which on the sum up to `high` is below e^level; high where there is none */
static size_t high_end(const pe_tilted *t, size_t low, size_t high, double level, double plain) {
    const size_t least = small_centre(t, low, high, plain);
    double sum = 0.0;
    size_t i = high;
    while (i > least && (sum += PE_CELL * exp(t->most[i - 1] - level)) <= 1.0) i--;
    return i;
}

/* The place behind the first mode where the density is least */
static size_t valley_of(const pe_tilted *t, size_t *mode) {
    size_t top = 0, valley;
    while (top < t->n && t->value[top + 1] > t->value[top]) top++;
    valley = top;
    for (size_t i = top; i <= t->n; i++)
        if (t->value[i] < t->value[valley]) valley = i;
    *mode = top;
    return valley;
}

/* Ends of the window where [first, end] holds the law. */
static int put_window(const pe_tilted *t, size_t high, size_t end, double level, double plain, pe_window *w) {
    const size_t most = small_centre(t, high, 0, plain);
    double sum = exp(t->value[0] - level) / fmax(rate_before(t), 1e-300);
    size_t low = 0;
    while (low < most && (sum += PE_CELL * exp(t->most[low] - level)) <= 1.0) low++;
    w->low = edge_of(t, low);
    w->high = edge_of(t, high);
    w->end = edge_of(t, end);
    return low < high;
}

static void set_levels(const pe_tilted *t, size_t last, double need, pe_window *w, double *level,
                       double *plain) {
    w->log_total = log_total(t, last);
    *level = w->log_total - need;
    *plain = fmin(w->log_total, 0.0) - need;
}

int pe_tilted_window(const pe_tilted *t, double need, pe_window *w) {
    double level, plain;
    size_t end = t->n, mode;
    set_levels(t, end, need, w, &level, &plain);
    size_t high = high_end(t, 0, end, level, plain);
    w->is_whole = high + ROOM <= end;
    if (!w->is_whole) { /* there is a mode far out: the law ends in the gap before it */
        end = valley_of(t, &mode);
        set_levels(t, end, need, w, &level, &plain);
        double sum = 0.0;
        while (end < t->n && (sum += PE_CELL * exp(t->most[end] - level)) <= 0.5) end++;
        high = high_end(t, mode, end, level, plain);
        if (high + ROOM > end) return 0;
    }
    return put_window(t, high, end, level, plain, w);
}

int pe_tilted_whole(const pe_tilted *t, double need, pe_window *w) {
    double level, plain;
    size_t mode;
    set_levels(t, t->n, need, w, &level, &plain);
    size_t high = high_end(t, 0, t->n, level, plain);
    w->is_whole = high + ROOM <= t->n;
    if (!w->is_whole) high = (size_t)fmin((double)valley_of(t, &mode), (double)t->n - ROOM);
    return put_window(t, high, t->n, level, plain, w);
}

/* Mean under F of what b has less what a has, over the ends of cells up to w->end */
PE_CLONES static double mean_of(const pe_tilted *t, const pe_window *w, double *const parts[2]) {
    double sum[PE_LANES] = {0}, first[PE_LANES] = {0};
    for (size_t i = 0; i <= t->n; i += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            const double x = t->start + (double)(i + u) * PE_CELL;
            const double e = pe_vexp(t->value[i + u] - w->log_total);
            const double own = i + u <= t->n && x <= w->end ? e : 0.0;
            sum[u] += own;
            first[u] += own * (parts[1][i + u] - parts[0][i + u]);
        }
    return pe_lane_sum(first) / pe_lane_sum(sum);
}

double pe_tilted_mean_slope(const pe_tilted *t, const pe_window *w) {
    return mean_of(t, w, t->slope);
}

double pe_tilted_mean_loss(const pe_tilted *t, const pe_window *w) {
    return mean_of(t, w, t->log_side);
}
