/* The window of z that holds the mass of the tilted density, cut off before a mode far out, and means of the loss under
 * it.  Choices and estimates: what lies outside of the window is bounded by tilted_lines.c. */

#include <math.h>

#include "doubles.h"
#include "simd.h"
#include "tilted_cells.h"

enum { ROOM = 8 }; /* least number of cells between the end of a window and that of the law */

/* log of the trapezoidal sum of F over the ends of cells 0..last */
PE_CLONES static double log_total(const pe_tilted *t, size_t last) {
    double top = -INFINITY, sum[PE_LANES] = {0}, rest = 0.0;
    for (size_t i = 0; i <= last; i++) top = t->value[i] > top ? t->value[i] : top;
    size_t i = 0;
    for (; i + PE_LANES <= last + 1; i += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) sum[u] += pe_vexp(t->value[i + u] - top);
    for (; i <= last; i++) rest += pe_vexp(t->value[i] - top);
    return top + pe_d_log((pe_lane_sum(sum) + rest) * PE_CELL);
}

/* Whether the Gaussians that centre the sum for log M (Lemma 5) have a log mass below `plain` beyond x on one side */
static int centre_is_small(const pe_tilted *t, double x, int above, double plain) {
    if (t->log_taper) return 1; /* sums of tapered laws are not centred */
    const double of_a = above ? pe_normals_above(&t->a, x) : pe_normals_below(&t->a, x);
    const double of_b = above ? pe_normals_above(&t->b, x) : pe_normals_below(&t->b, x);
    const double power = fabs(t->q - 1.0);
    return pe_d_log(power * of_a + (1.0 + power) * of_b) <= plain;
}

/* The first end of a cell, going from `inner` towards `outer`, beyond which centre_is_small holds; by bisection. */
static size_t small_centre(const pe_tilted *t, size_t inner, size_t outer, double plain) {
    const int above = outer > inner;
    while (inner != outer) {
        const size_t middle = above ? (inner + outer) / 2 : (inner + outer + 1) / 2;
        if (centre_is_small(t, pe_edge_of(t, middle), above, plain)) outer = middle;
        else inner = above ? middle + 1 : middle - 1;
    }
    return inner;
}

/* The first cell in [low, high] from which on the bounds up to `high` add up to at most e^level; high if there is
 * none */
static size_t high_end(const pe_tilted *t, size_t low, size_t high, double level, double plain) {
    const size_t least = small_centre(t, low, high, plain);
    double sum = 0.0;
    size_t i = high;
    while (i > least && (sum += PE_CELL * pe_d_exp(t->most[i - 1] - level)) <= 1.0) i--;
    return i;
}

/* The end of a cell right of the first mode where F is least; sets the mode */
static size_t valley_of(const pe_tilted *t, size_t *mode) {
    size_t top = 0, valley;
    while (top < t->n && t->value[top + 1] > t->value[top]) top++;
    valley = top;
    for (size_t i = top; i <= t->n; i++)
        if (t->value[i] < t->value[valley]) valley = i;
    *mode = top;
    return valley;
}

/* Sets the window up to `high` of the law that is cut off at `end`; returns whether it is not empty. */
static int put_window(const pe_tilted *t, size_t high, size_t end, double level, double plain, pe_window *w) {
    const size_t most = small_centre(t, high, 0, plain);
    double sum = pe_d_exp(t->value[0] - level) / fmax(pe_rate_before(t), 1e-300);
    size_t low = 0;
    while (low < most && (sum += PE_CELL * pe_d_exp(t->most[low] - level)) <= 1.0) low++;
    w->low = pe_edge_of(t, low);
    w->high = pe_edge_of(t, high);
    w->end = pe_edge_of(t, end);
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
    if (!w->is_whole) { /* a mode far out: cut the law off in the gap before it */
        end = valley_of(t, &mode);
        set_levels(t, end, need, w, &level, &plain);
        double sum = 0.0;
        while (end < t->n && (sum += PE_CELL * pe_d_exp(t->most[end] - level)) <= 0.5) end++;
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

/* Mean under F, on the ends of cells from w->low to w->end, of parts[1] - parts[0] */
PE_CLONES static double mean_of(const pe_tilted *t, const pe_window *w, double *const parts[2]) {
    double sum[PE_LANES] = {0}, first[PE_LANES] = {0}, rest = 0.0, rest_first = 0.0;
    const double *value = t->value, *of_a = parts[0], *of_b = parts[1], unit = w->log_total;
    const size_t last = pe_cell_of(t, w->end, 0);
    size_t i = pe_cell_of(t, w->low, 0);
    for (; i + PE_LANES <= last + 1; i += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            const double own = pe_vexp(value[i + u] - unit);
            sum[u] += own;
            first[u] += own * (of_b[i + u] - of_a[i + u]);
        }
    for (; i <= last; i++) {
        const double own = pe_vexp(value[i] - unit);
        rest += own;
        rest_first += own * (of_b[i] - of_a[i]);
    }
    return (pe_lane_sum(first) + rest_first) / (pe_lane_sum(sum) + rest);
}

double pe_tilted_mean_slope(const pe_tilted *t, const pe_window *w) {
    return mean_of(t, w, t->slope);
}

double pe_tilted_mean_loss(const pe_tilted *t, const pe_window *w) {
    return mean_of(t, w, t->log_side);
}
