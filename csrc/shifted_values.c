/* Values of the transform of one kind of step at many t, with bounds of their errors: Lemma 6 of
 * docs/theory/gaussian.md.  Nodes with t |log W| < 2 are summed by their moments, the others by rotation.  Called by
 * certified.c and divided.c. */

#include "doubles.h"
#include "shifted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic.h"
#include "lane_log.h"
#include "lane_trig.h"
#include "simd.h"

#define U 0x1p-53 /* unit roundoff */

/* ---- nodes by size, and moments of the small ones -------------------------------------------------- */

enum { LEAST_EXPONENT = -2000 }; /* stands for the exponent of 0 */

/* Exponent of the least power of 2 that is not below x >= 0 */
static int exponent_of(double x) {
    int exponent;
    return x > 0.0 ? (frexp(x, &exponent) == 0.5 ? exponent - 1 : exponent) : LEAST_EXPONENT;
}

/* Sorts the nodes by level, the largest |log W| first, by counting; order[i] becomes the old index of node i. */
static int sort_nodes(pe_shifted *s, const int *level, size_t *order) {
    size_t start[PE_LEVELS_OF_SIZE + 1] = {0};
    for (size_t j = 0; j < s->m; j++) start[level[j] + 1]++;
    for (int i = 0; i < PE_LEVELS_OF_SIZE; i++) start[i + 1] += start[i];
    for (size_t j = 0; j < s->m; j++) order[start[level[j]]++] = j;
    double *sorted = malloc(PE_COLUMNS * s->m * sizeof(double));
    if (!sorted) return PE_NO_MEMORY;
    for (size_t k = 0; k < PE_COLUMNS; k++)
        for (size_t j = 0; j < s->m; j++) sorted[k * s->m + j] = s->weight_re[k * s->m + order[j]];
    memcpy(s->weight_re, sorted, PE_COLUMNS * s->m * sizeof(double));
    free(sorted);
    return PE_OK;
}

/* Adds the moments of nodes [from, to), whole lanes, of log W in units of 2^top; unit = 2^-top. */
PE_CLONES static void add_moments(const pe_shifted *s, size_t from, size_t to, double unit, pe_small *out) {
    double re[PE_MOMENTS][PE_LANES] = {{0}}, im[PE_MOMENTS][PE_LANES] = {{0}};
    double square[PE_LANES] = {0};
    for (size_t j = from; j < to; j += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            const double zr = -unit * s->angle[j + u], zi = unit * s->loss[j + u];
            double xr = s->weight_re[j + u] * zr - s->weight_im[j + u] * zi,
                   xi = s->weight_re[j + u] * zi + s->weight_im[j + u] * zr;
            square[u] += s->size[j + u] * s->reach[j + u] * s->reach[j + u];
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 32 /* else the loop over lanes is not vectorised */
#endif
            for (int k = 0; k < PE_MOMENTS; k++) {
                const double next = xr * zr - xi * zi;
                xi = xr * zi + xi * zr;
                xr = next;
                re[k][u] += xr;
                im[k][u] += xi;
            }
        }
    double factorial = 1.0;
    for (int k = 0; k < PE_MOMENTS; k++) {
        factorial *= k + 2;
        out->re[k] += pe_lane_sum(re[k]) / factorial;
        out->im[k] += pe_lane_sum(im[k]) / factorial;
    }
    out->square += pe_lane_sum(square);
}

/* Sums of the large nodes [0, large) and of the mean of the small ones for all n levels, as prefix sums: `large` falls
 * from one level to the next. */
static void put_sums(pe_shifted *s, size_t n, const pe_dd *mean, const size_t *order) {
    pe_dd sum_re = pe_dd_of(0.0), sum_im = sum_re, mean_re = sum_re, mean_im = sum_re;
    double size = 0.0, drift = 0.0;
    size_t j = 0;
    for (size_t i = n; i-- > 0;) {
        pe_small *out = &s->small[i];
        for (; j < out->large; j++) {
            sum_re = pe_dd_add_d(sum_re, s->weight_re[j]);
            sum_im = pe_dd_add_d(sum_im, s->weight_im[j]);
            size += s->size[j];
            drift += s->drifts[j];
        }
        out->sum_re = sum_re.h;
        out->sum_im = sum_im.h;
        out->size = size;
        out->drift = drift;
    }
    j = s->m;
    for (size_t i = 0; i < n; i++) {
        pe_small *out = &s->small[i];
        for (; j > out->large; j--) {
            mean_re = pe_dd_add(mean_re, mean[2 * order[j - 1]]);
            mean_im = pe_dd_add(mean_im, mean[2 * order[j - 1] + 1]);
        }
        out->mean_re = mean_re.h;
        out->mean_im = mean_im.h;
    }
}

int pe_shifted_arrange(pe_shifted *s, const pe_dd *mean) {
    s->top = exponent_of(s->longest);
    size_t *order = malloc(s->m * (sizeof *order + sizeof(int)));
    s->small = malloc(PE_LEVELS_OF_SIZE * sizeof *s->small);
    if (!order || !s->small) {
        free(order);
        return PE_NO_MEMORY;
    }
    int *level = (int *)(order + s->m);
    for (size_t j = 0; j < s->m; j++) {
        const int exponent = exponent_of(s->reach[j]);
        level[j] = PE_LEVELS_OF_SIZE - 1;
        if (exponent > s->top - PE_LEVELS_OF_SIZE + 1) level[j] = s->top - exponent;
    }
    const int status = sort_nodes(s, level, order);
    const double unit = ldexp(1.0, -s->top);
    size_t end = s->m, n = 0;
    for (int i = PE_LEVELS_OF_SIZE - 1; i >= 0 && !status; i--) {
        size_t from = end; /* lanes belong to the level of their largest node */
        while (from && level[order[from - PE_LANES]] >= i) from -= PE_LANES;
        if (from < end || !n) { /* else it is the same as the last one */
            pe_small *at = &s->small[n];
            *at = n ? at[-1] : (pe_small){0};
            at->large = from;
            if (from < end) {
                add_moments(s, from, end, unit, at);
                at->depth += (double)(end - from) / PE_LANES + 1.0;
            }
            end = from;
            n++;
        }
        s->of_level[i] = (unsigned char)(n - 1);
    }
    if (!status) put_sums(s, n, mean, order);
    free(order);
    return status;
}

/* ---- values ------------------------------------------------------------------------------------------ */

/* Adds to a run, at t = (first + k) ht: the moments' part, sum of weight (e^{i t log W} - 1 - i t log W) over the small
 * nodes; it times their mean; and minus the sum of the weights of the large nodes. */
PE_CLONES static void add_small(const pe_small *of, int top, double first, double ht, double *re,
                                double *im) {
    const double unit = ldexp(1.0, top);
    for (int k = 0; k < PE_SHIFTED_RUN; k++) {
        const double t = (first + k) * ht, x = unit * t;
        double sr = of->re[PE_MOMENTS - 1], si = of->im[PE_MOMENTS - 1];
        for (int i = PE_MOMENTS - 2; i >= 0; i--) {
            sr = sr * x + of->re[i];
            si = si * x + of->im[i];
        }
        re[k] = ((re[k] - of->sum_re) - t * of->mean_im) + sr * x * x;
        im[k] = ((im[k] - of->sum_im) + t * of->mean_re) + si * x * x;
    }
}

/* e^{i t log W} = e^{-t v} e^{itl} */
PE_INLINE void lane_power(double t, double l, double v, double *co, double *si) {
    double cm1, smx, b = t * l, e = pe_vexp(-t * v);
    pe_vcosm1_sinmx(b, &cm1, &smx);
    *co = e * (1.0 + cm1);
    *si = e * (smx + b);
}

PE_CLONES void pe_shifted_step(pe_shifted *s, double ht) {
    s->ht = ht;
    for (size_t j = 0; j < s->m; j += PE_LANES)
        for (int u = 0; u < PE_LANES; u++)
            lane_power(ht, s->loss[j + u], s->angle[j + u], &s->turn_re[j + u], &s->turn_im[j + u]);
}

/* Sums of weight e^{i t log W} over the first `nodes` nodes at a run of t, by rotation from t = start. */
PE_CLONES static void rotated_run(const pe_shifted *s, size_t nodes, double start, double *re, double *im) {
    double c[PE_SHIFTED_RUN][PE_LANES] = {{0}}, d[PE_SHIFTED_RUN][PE_LANES] = {{0}};
    for (size_t j = 0; j < nodes; j += PE_LANES) {
        for (int u = 0; u < PE_LANES; u++) {
            const double ar = s->weight_re[j + u], ai = s->weight_im[j + u];
            const double pr = s->turn_re[j + u], pi = s->turn_im[j + u];
            double co, si;
            lane_power(start, s->loss[j + u], s->angle[j + u], &co, &si);
            double xr = ar * co - ai * si, xi = ar * si + ai * co;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16
#endif
            for (int k = 0; k < PE_SHIFTED_RUN; k++) {
                c[k][u] += xr;
                d[k][u] += xi;
                const double next = xr * pr - xi * pi;
                xi = xr * pi + xi * pr;
                xr = next;
            }
        }
    }
    for (int k = 0; k < PE_SHIFTED_RUN; k++) {
        re[k] = pe_lane_sum(c[k]);
        im[k] = pe_lane_sum(d[k]);
    }
}

/* Sums over the large nodes of |weight| e^(-low angle), and of that times high |log W|, for the rounding of
 * rotations. */
PE_CLONES static void moduli(const pe_shifted *s, size_t nodes, double low, double high, double out[2]) {
    double plain[PE_LANES] = {0}, turned[PE_LANES] = {0};
    for (size_t j = 0; j < nodes; j += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            const double e = s->size[j + u] * pe_vexp(-low * s->angle[j + u]);
            plain[u] += e;
            turned[u] += e * high * s->reach[j + u];
        }
    out[0] = pe_lane_sum(plain);
    out[1] = pe_lane_sum(turned);
}

/* Bound of the absolute error of R(t) for low <= t <= high: the sum of Lemma 6. */
static double error_between(const pe_shifted *s, const pe_small *of, double low, double high) {
    double sums[2];
    moduli(s, of->large, low, high, sums);
    const double deep = (double)of->large / PE_LANES + 8.0;
    const double rotated =
        U * ((177.0 + s->rounding + deep) * sums[0] + 8.0 * sums[1] + (8.0 + s->rounding) * of->size);
    const double moments = U * (44.0 + 2.2 * of->depth + s->rounding) * (0.5 * high * high * of->square);
    const double small_mean =
        high * pe_d_hypot(of->mean_re, of->mean_im); /* all weights have the error of log M */
    const double mean = U * 4.0 * small_mean + s->log_m_error * small_mean + high * s->mean_error;
    const double drift = high * of->drift + high * fmin(2.0 * s->drift, high * s->bend);
    return ((rotated + moments + mean + drift) + s->slack) * (1.0 + 1e-9);
}

void pe_shifted_values(const pe_shifted *s, size_t first, double *re, double *im, double *error) {
    /* errors grow with t: within a run they are bounded up to each of these k, more finely for small t */
    static const size_t EARLY[] = {0, 1, 2, 3, 5, 7, 10, 15}, LATER[] = {7, 15}, LATE[] = {15};
    const size_t *ends = !first ? EARLY : first < 4 * PE_SHIFTED_RUN ? LATER : LATE;
    const double ht = s->ht, start = (double)first * ht, end = (double)(first + PE_SHIFTED_RUN - 1) * ht;
    /* the first level whose small nodes have t |log W| < 2 up to `end` */
    const int least = s->top + exponent_of(end) - 1;
    /* beyond these limits of the nodes, and of pe_vcosm1_sinmx, errors are infinite */
    const int is_known = least < PE_LEVELS_OF_SIZE && end <= s->t_top && end * s->longest < 1e7;
    const pe_small *of = &s->small[s->of_level[least > 0 && is_known ? least : 0]];
    rotated_run(s, of->large, start, re, im);
    add_small(of, s->top, (double)first, ht, re, im);
    for (size_t from = 0, i = 0; from < PE_SHIFTED_RUN; from = ends[i++] + 1) {
        const double low = (double)(first + from) * ht, high = (double)(first + ends[i]) * ht;
        const double bound = is_known ? error_between(s, of, low, high) : INFINITY;
        for (size_t k = from; k <= ends[i]; k++) error[k] = bound;
    }
    if (!first) /* R(0) is 1 */
        re[0] = im[0] = error[0] = 0.0;
}
