/* Upper bounds of the tilted density on lines Im z = y and of its integrals there, by cells: growth of moduli (Lemma 1
 * of docs/theory/gaussian.md) and arguments of b/a (Theorem 4 (b), Lemma 9). */

#include <math.h>
#include <stdlib.h>

#include "doubles.h"
#include "lane_log.h"
#include "simd.h"
#include "tilted_cells.h"

static const double PI = 3.14159265358979323846;
/* Largest growth for which one bound of all x is taken instead of a sum over cells: e^16 costs few digits of a
 * spacing. */
static const double LOOSE = 16.0;

/* ---- growth ---------------------------------------------------------------------------------------- */

/* Whether |F(x + iy)| may exceed F(x) e^(bulge y^2): only a side with a negative power grows */
static int grows(const pe_tilted *t) {
    return (t->q > 1.0 && t->a.n > 1) || (t->q < 0.0 && t->b.n > 1);
}

/* 1 - cos(2 half) */
static double less_cosine(double half) {
    const double sine = pe_d_sin(half);
    return 2.0 * sine * sine;
}

int pe_tilted_lift(const pe_tilted *t, double y) {
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = pe_side_of(t, side);
        const double first = s->shift[0], last = s->shift[s->n - 1];
        if (s->n == 1) continue;
        if (!((last - first) * y < PI)) {
            if (pe_power_of(t, side) < 0.0) return 0;
            continue;
        }
        double *up = t->turned[side], *down = up + s->n;
        up[0] = down[s->n - 1] = 0.0;
        up[s->n - 1] = down[0] = less_cosine(0.5 * (last - first) * y);
        for (size_t j = 1; j + 1 < s->n; j++) {
            up[j] = less_cosine(0.5 * (s->shift[j] - first) * y);
            down[j] = less_cosine(0.5 * (last - s->shift[j]) * y);
        }
    }
    return 1;
}

/* 1 - cos of half the range of the shifts, from 1 - cos of the range */
static double half_range(const pe_normals *s, const double *turned) {
    return (1.0 - sqrt(fmax(1.0 - 0.5 * turned[s->n - 1], 0.0))) * (1.0 + 1e-12);
}

/* log 1/(1 - most), rounded up */
PE_INLINE double shrinks_by(double most) {
    return most < 1.0 ? -pe_d_log1p(-most) * (1.0 + PE_OUTWARDS) + 1e-15 : INFINITY;
}

PE_INLINE double smaller(double a, double b) {
    return a < b ? a : b;
}

/* Upper bound of the growth for all x */
static double most_growth(const pe_tilted *t) {
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = pe_side_of(t, side);
        const double power = pe_power_of(t, side);
        if (power < 0.0 && s->n > 1) sum -= power * shrinks_by(half_range(s, t->turned[side]));
    }
    return sum;
}

/* Upper bound of log s(x)/|s(x + iv)| for x between two ends of cells, `left` and `right` being the shares there (Lemma
 * 1).  With shares as probabilities |s(x + iv)|/s(x) = |E e^{i v shift}|.  Turned by the middle of the shifts, every
 * term has a cosine of at least that of half the range; turned by an outermost shift, the mean of 1 - cos is monotone
 * in x, as the shares move to larger shifts. */
static double shrinks(const pe_normals *s, const double *turned, const double *left, const double *right,
                      size_t stride) {
    double up = 0.0, down = 0.0;
    for (size_t j = 0; j < s->n; j++) {
        up += right[j * stride] * turned[j];
        down += left[j * stride] * turned[s->n + j];
    }
    return shrinks_by(smaller(half_range(s, turned), smaller(up, down)));
}

/* Growth for x between ends of cells `left` and `right` */
static double growth(const pe_tilted *t, size_t left, size_t right) {
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = pe_side_of(t, side);
        const double power = pe_power_of(t, side);
        if (power >= 0.0 || s->n == 1) continue;
        const double *share = t->share[side];
        sum -= power * shrinks(s, t->turned[side], share + left, share + right, t->stride);
    }
    return sum;
}

enum { CHUNK = 64 }; /* cells per pass, so that temporaries are small arrays */

/* Adds the growth over each of the cells [from, from + m), m <= CHUNK. */
PE_INLINE void add_growths(const pe_tilted *t, size_t from, size_t m, double *out) {
    double sum[CHUNK], up[CHUNK], down[CHUNK];
    for (size_t i = 0; i < m; i++) sum[i] = 0.0;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = pe_side_of(t, side);
        const double power = pe_power_of(t, side), *turned = t->turned[side];
        if (power >= 0.0 || s->n == 1) continue;
        for (size_t i = 0; i < m; i++) up[i] = down[i] = 0.0;
        for (size_t j = 0; j < s->n; j++) {
            const double *share = t->share[side] + j * t->stride + from;
            const double rising = turned[j], falling = turned[s->n + j];
            for (size_t i = 0; i < m; i++) {
                up[i] += share[i + 1] * rising;
                down[i] += share[i] * falling;
            }
        }
        const double half = half_range(s, turned);
        for (size_t i = 0; i < m; i++) sum[i] -= power * shrinks_by(smaller(half, smaller(up[i], down[i])));
    }
    for (size_t i = 0; i < m; i++) out[i] += sum[i];
}

/* Growth left of the first cell, from the bounds that rise with x. */
static double growth_before(const pe_tilted *t) {
    double sum = 0.0;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = pe_side_of(t, side);
        const double power = pe_power_of(t, side), *turned = t->turned[side];
        if (power >= 0.0 || s->n == 1) continue;
        double up = 0.0;
        for (size_t j = 0; j < s->n; j++) up += t->share[side][j * t->stride] * turned[j];
        sum -= power * shrinks_by(fmin(up, half_range(s, turned)));
    }
    return sum;
}

double pe_tilted_growth(const pe_tilted *t, double x) {
    double sum = 0.0, slope;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = pe_side_of(t, side);
        const double power = pe_power_of(t, side);
        if (power >= 0.0 || s->n == 1) continue;
        pe_side_at(s, x, &slope, t->room);
        sum -= power * shrinks(s, t->turned[side], t->room, t->room, 1);
    }
    return sum;
}

/* ---- sums over cells ------------------------------------------------------------------------------- */

/* Sum of e^(most - unit) over cells [from, to), rounded up by 1e-300 each. */
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

/* The same with the growth of each cell */
PE_CLONES static double sum_growing(const pe_tilted *t, size_t from, size_t to, double unit) {
    double sum = 0.0;
    for (size_t i = from; i < to; i += CHUNK) {
        double e[CHUNK];
        const size_t m = to - i < CHUNK ? to - i : CHUNK;
        for (size_t u = 0; u < m; u++) e[u] = t->most[i + u] - unit;
        add_growths(t, i, m, e);
        for (size_t u = 0; u < m; u++) e[u] = e[u] > -700.0 ? pe_d_exp(e[u]) : 1e-300;
        for (size_t u = 0; u < m; u++) sum += e[u];
    }
    return sum;
}

static double sum_cells(const pe_tilted *t, double low, double high, double unit, int is_growing) {
    const size_t from = pe_cell_of(t, low, 0), last = pe_cell_of(t, high, 1);
    const double sum = is_growing ? sum_growing(t, from, last, unit) : sum_plain(t, from, last, unit);
    return sum * PE_CELL * (1.0 + 1e-8);
}

double pe_tilted_rest(const pe_tilted *t, double low, double high, double unit) {
    return sum_cells(t, low, high, unit, 0);
}

double pe_tilted_sum(const pe_tilted *t, double low, double high, double unit, double wider) {
    const int is_growing = grows(t);
    double sum = sum_cells(t, low, high, unit, is_growing) * (1.0 + wider);
    if (low < t->start) {
        const double rate = pe_rate_before(t);
        if (!(rate > 1.0)) return INFINITY;
        const double one = pe_d_exp(t->value[0] - unit + (is_growing ? growth_before(t) : 0.0));
        sum += one * (1.0 / rate + wider * PE_CELL);
    }
    return sum * (1.0 + 1e-8);
}

double pe_tilted_lifted(const pe_tilted *t, double high, double unit, double whole) {
    if (!grows(t)) return whole;
    const double most = most_growth(t);
    return most < LOOSE ? whole * pe_d_exp(most) * (1.0 + 1e-9)
                        : pe_tilted_sum(t, -INFINITY, high, unit, 0.0);
}

/* ---- angles ---------------------------------------------------------------------------------------- */

/* Upper bounds of |arg| of a side at height y at ends of cells [from, from + m), m <= CHUNK, from the shares there
 * (proof of Theorem 4 (b)).  Turned back by the shift nearest 0, the side has a real part of at least 1 - (mean of 1 -
 * cos) of its modulus and an imaginary part of at most y times the mean distance from that shift. */
PE_INLINE void angles_below(const pe_tilted *t, int side, size_t from, size_t m, double y, double *out) {
    const pe_normals *s = pe_side_of(t, side);
    const double near = side ? s->shift[0] : -s->shift[s->n - 1],
                 far = side ? s->shift[s->n - 1] : -s->shift[0], sign = side ? 1.0 : -1.0;
    const double *turned = t->turned[side] + (side ? 0 : s->n);
    if (s->n == 1) { /* a single term has the argument shift * y */
        for (size_t i = 0; i < m; i++) out[i] = near * y;
        return;
    }
    double most[CHUNK];
    for (size_t i = 0; i < m; i++) most[i] = 0.0;
    for (size_t j = 0; j < s->n; j++) {
        const double *share = t->share[side] + j * t->stride + from;
        for (size_t i = 0; i < m; i++) most[i] += share[i] * turned[j];
    }
    const double *slope = t->slope[side] + from;
    for (size_t i = 0; i < m; i++) {
        const double sine = y * (sign * slope[i] - near) / (1.0 - most[i]);
        /* asin x <= pi/3 x up to 1/2 */
        const double closer = near * y + 1.0472 * fabs(sine) + 1e-12;
        const double most_of = sine < 0.5 ? closer : far * y;
        out[i] = most[i] < 0.9 ? most_of : far * y;
    }
}

double pe_tilted_angle(const pe_tilted *t, double y, double x) {
    double of_a = 0.0, of_b = 0.0;
    angles_below(t, 0, pe_cell_of(t, x, 0), 1, y, &of_a);
    angles_below(t, 1, pe_cell_of(t, x, 1), 1, y, &of_b);
    return of_a + of_b;
}

double pe_tilted_edge(const pe_tilted *t, double from, double y, double time, double level) {
    const int is_growing = grows(t);
    size_t i = pe_cell_of(t, from, 1);
    for (; i < t->n; i++) {
        double of_a = 0.0, of_b = 0.0;
        angles_below(t, 0, i, 1, y, &of_a);
        angles_below(t, 1, i, 1, y, &of_b);
        const double here = t->value[i] + (is_growing ? growth(t, i, i) : 0.0) + time * (of_a + of_b);
        if (here < level) break;
    }
    return pe_edge_of(t, i);
}

PE_CLONES static double sum_raised(const pe_tilted *t, size_t last, double y, double time, double unit) {
    const int is_growing = grows(t);
    double sum = 0.0;
    for (size_t i = 0; i < last; i += CHUNK) {
        double of_a[CHUNK], of_b[CHUNK], e[CHUNK], top = -INFINITY;
        const size_t m = last - i < CHUNK ? last - i : CHUNK;
        const double *most = t->most + i;
        angles_below(t, 0, i, m, y, of_a);
        angles_below(t, 1, i + 1, m, y, of_b);
        for (size_t u = 0; u < m; u++) e[u] = most[u] - unit + time * (of_a[u] + of_b[u]);
        if (is_growing) add_growths(t, i, m, e);
        for (size_t u = 0; u < m; u++) top = e[u] > top ? e[u] : top;
        if (!(top < 700.0)) return INFINITY;
        for (size_t u = 0; u < m; u++) e[u] = pe_vexp(e[u]) + 1e-300;
        for (size_t u = 0; u < m; u++) sum += e[u];
    }
    return sum;
}

double pe_tilted_raised(const pe_tilted *t, double y, double high, double time, double unit) {
    const double rate = pe_rate_before(t);
    double of_b = 0.0;
    angles_below(t, 1, 0, 1, y, &of_b);
    const double first =
        t->value[0] - unit + (grows(t) ? growth_before(t) : 0.0) + time * (of_b - t->a.shift[0] * y);
    if (!(rate > 1.0) || !(first < 700.0)) return INFINITY;
    const double sum =
        pe_d_exp(first) / rate + PE_CELL * sum_raised(t, pe_cell_of(t, high, 1), y, time, unit);
    return sum * (1.0 + 1e-8);
}

/* |arg| of a side at the ends of the first m cells on Im z = y, given cosines and sines of y times its shifts; `room`
 * holds m numbers. */
PE_CLONES static void set_angles(const pe_tilted *t, int side, size_t m, const double *co, const double *si,
                                 double *restrict room, double *restrict out) {
    const pe_normals *s = pe_side_of(t, side);
    for (size_t i = 0; i < m; i++) room[i] = out[i] = 0.0;
    for (size_t j = 0; j < s->n; j++) {
        const double *share = t->share[side] + j * t->stride, re = co[j], im = si[j];
        for (size_t i = 0; i < m; i++) {
            room[i] += share[i] * re;
            out[i] += share[i] * im;
        }
    }
    for (size_t i = 0; i < m; i++) out[i] = pe_vargument(room[i], fabs(out[i]));
}

/* Sum over the first cells of e^(most - unit - time arg), divided by arg if `over`, given |arg| of a and b at their
 * ends */
PE_CLONES static double sum_turned(const pe_tilted *t, size_t last, const double *of_a, const double *of_b,
                                   double time, double unit, int over) {
    const int is_growing = grows(t);
    double sum = 0.0;
    for (size_t i = 0; i < last; i += PE_LANES) {
        double e[PE_LANES], least[PE_LANES], most = -INFINITY;
        for (size_t u = 0; u < PE_LANES; u++) {
            const size_t k = i + u < last ? i + u : last - 1;
            least[u] = (of_b[k] + of_a[k + 1]) * (1.0 - 1e-9);
            e[u] = i + u < last ? t->most[k] - unit - time * least[u] : -INFINITY;
        }
        if (is_growing) add_growths(t, i, last - i < PE_LANES ? last - i : PE_LANES, e);
        for (int u = 0; u < PE_LANES; u++) most = e[u] > most ? e[u] : most;
        if (!(most < 700.0)) return INFINITY;
        for (int u = 0; u < PE_LANES; u++) e[u] = (pe_vexp(e[u]) + 1e-300) / (over ? least[u] : 1.0);
        sum += pe_lane_sum(e);
    }
    return sum;
}

/* pe_tilted_over_angle, or without `over` pe_tilted_turned */
static double turned(const pe_tilted *t, double y, double high, double time, double unit, int over) {
    const int is_growing = grows(t);
    const size_t last = pe_cell_of(t, high, 1), m = pe_padded_ends(last);
    const size_t terms = t->a.n > t->b.n ? t->a.n : t->b.n;
    double *of_a = calloc(3 * m + 2 * terms, sizeof(double)), *of_b = of_a + m, *room = of_b + m,
           *co = room + m, *si = co + terms;
    if (!of_a) return INFINITY;
    for (int side = 0; side < 2; side++) {
        const pe_normals *s = pe_side_of(t, side);
        if (s->n == 1 && s->shift[0] == 0.0) continue; /* its argument is 0 */
        for (size_t j = 0; j < s->n; j++) {
            co[j] = pe_d_cos(s->shift[j] * y);
            si[j] = pe_d_sin(s->shift[j] * y);
        }
        set_angles(t, side, m, co, si, room, side ? of_b : of_a);
    }
    /* |arg a| falls with x and arg b rises.  Left of the first cell the argument is at least that of a there; if a has
     * none, at least that of the first term of b, whose share falls to the left more slowly than F does */
    double rate = pe_rate_before(t), angle = of_a[0], sum;
    if (!(angle > 0.0)) {
        const double least = pe_smallest_positive(&t->b);
        rate -= least;
        for (size_t j = 0; j < t->b.n; j++)
            if (t->b.shift[j] == least) angle = t->share[1][j * t->stride] * pe_d_sin(least * y);
    }
    if (!(angle > 0.0) || !(rate > 1.0)) sum = INFINITY;
    else
        sum = pe_d_exp(t->value[0] - unit + (is_growing ? growth_before(t) : 0.0)) /
              (rate * (over ? angle : 1.0));
    if (isfinite(sum)) sum += PE_CELL * sum_turned(t, last, of_a, of_b, time, unit, over);
    free(of_a);
    return sum * (1.0 + 1e-8);
}

double pe_tilted_over_angle(const pe_tilted *t, double y, double high, double time, double unit) {
    return turned(t, y, high, time, unit, 1);
}

double pe_tilted_turned(const pe_tilted *t, double y, double high, double time, double unit) {
    return turned(t, y, high, time, unit, 0);
}

double pe_tilted_variation(const pe_tilted *t, double low, double high, double unit) {
    const size_t first = pe_cell_of(t, low, 0), last = pe_cell_of(t, high, 1);
    double sum = 0.0, ends = 0.0;
    for (size_t i = first; i < last; i++) {
        const double least = (t->slope[1][i] - t->slope[0][i + 1]) * (1.0 - 1e-9);
        const double value = pe_d_exp(t->most[i] - unit) / least;
        const double x = fmax(fabs(pe_edge_of(t, i)), fabs(pe_edge_of(t, i + 1)));
        double change = x + fabs(1.0 - t->q) * fabs(t->slope[0][i]) + fabs(t->q) * t->slope[1][i + 1];
        if (t->log_taper) change += fmax(fabs(t->taper_slope[i]), fabs(t->taper_slope[i + 1]));
        /* |l''| <= farthest l': the variance of a shift is at most its mean times the farthest one */
        sum += PE_CELL * value * (change + t->farthest);
        if (i == first || i + 1 == last) ends += value;
    }
    return last > first ? (sum + 2.0 * ends) * (1.0 + 1e-8) + 1e-300 : 0.0;
}
