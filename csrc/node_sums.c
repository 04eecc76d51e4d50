/* Sums over nodes by moments and by rotation; interface in node_sums.h. */

#include "node_sums.h"

#include <math.h>
#include <string.h>

#include "doubles.h"
#include "lane_log.h"
#include "lane_trig.h"
#include "simd.h"

/* Adds the moments of PE_LANES nodes, orders 2 on. */
static inline void add_moments(const double *l, const double *w, double unit, double (*even)[PE_LANES],
                               double (*odd)[PE_LANES]) {
    for (int u = 0; u < PE_LANES; u++) {
        const double y = unit * l[u];
        double x = w[u] * y;
        for (int k = 0; k < PE_SMALL_TERMS; k++) {
            x *= y;
            even[k][u] += x;
            x *= y;
            odd[k][u] += x;
        }
    }
}

/* Moves large nodes to the front, in whole lanes, and sums the moments of the others; returns the number of large
 * nodes. */
PE_CLONES static size_t split_nodes(double *l, double *w, size_t m, double limit, pe_node_sums *s) {
    double even[PE_SMALL_TERMS][PE_LANES] = {{0}}, odd[PE_SMALL_TERMS][PE_LANES] = {{0}};
    double weight[PE_LANES] = {0}, mean[PE_LANES] = {0}, size[PE_LANES] = {0};
    double small_mean[PE_LANES] = {0}, small_size[PE_LANES] = {0};
    const double unit = 1.0 / limit;
    size_t large = 0;
    for (size_t j = 0; j < m; j += PE_LANES) {
        double top = 0.0;
        for (int u = 0; u < PE_LANES; u++) top = fabs(l[j + u]) > top ? fabs(l[j + u]) : top;
        if (top < limit) {
            for (int u = 0; u < PE_LANES; u++) {
                const double x = w[j + u] * l[j + u];
                small_mean[u] += x;
                small_size[u] += fabs(x);
            }
            add_moments(l + j, w + j, unit, even, odd);
            continue;
        }
        for (int u = 0; u < PE_LANES; u++) {
            const double x = w[j + u] * l[j + u];
            weight[u] += w[j + u];
            mean[u] += x;
            size[u] += fabs(x);
        }
        memmove(l + large, l + j, PE_LANES * sizeof(double));
        memmove(w + large, w + j, PE_LANES * sizeof(double));
        large += PE_LANES;
    }
    double factorial = 1.0;
    for (int k = 0; k < PE_SMALL_TERMS; k++) {
        const double sign = k % 2 ? 1.0 : -1.0;
        factorial *= 2 * k + 2;
        s->even[PE_SMALL_TERMS - 1 - k] = sign * pe_lane_sum(even[k]) / factorial;
        factorial *= 2 * k + 3;
        s->odd[PE_SMALL_TERMS - 1 - k] = sign * pe_lane_sum(odd[k]) / factorial;
    }
    s->weight = pe_lane_sum(weight);
    s->mean = pe_lane_sum(mean);
    s->size = pe_lane_sum(size);
    s->small_mean = pe_lane_sum(small_mean);
    s->small_size = pe_lane_sum(small_size);
    return large;
}

PE_CLONES static void set_turns(const double *l, size_t m, double ht, double *co, double *si) {
    for (size_t j = 0; j < m; j += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            double cm1, smx;
            pe_vcosm1_sinmx(ht * l[j + u], &cm1, &smx);
            co[j + u] = 1.0 + cm1;
            si[j + u] = smx + ht * l[j + u];
        }
}

void pe_node_sums_new(pe_node_sums *s, double *l, double *w, double *const turn[2], size_t m, double ht,
                      double t_top) {
    s->ht = ht;
    s->t_top = t_top;
    s->l = l;
    s->w = w;
    s->turn[0] = turn[0];
    s->turn[1] = turn[1];
    s->large = split_nodes(l, w, m, 2.0 / t_top, s);
    set_turns(l, s->large, ht, turn[0], turn[1]);
}

/* Sums of w_j cos t l_j and w_j sin t l_j of large nodes at t = start + k ht, k < PE_RUN, by rotation. */
PE_CLONES static void rotated(const pe_node_sums *s, double start, double *re, double *im) {
    double c[PE_RUN][PE_LANES] = {{0}}, d[PE_RUN][PE_LANES] = {{0}};
    for (size_t j = 0; j < s->large; j += PE_LANES) {
        for (int u = 0; u < PE_LANES; u++) {
            const double b = start * s->l[j + u], w = s->w[j + u];
            double cm1, smx;
            pe_vcosm1_sinmx(b, &cm1, &smx);
            double x = w * (1.0 + cm1), y = w * (smx + b);
            const double p = s->turn[0][j + u], q = s->turn[1][j + u];
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16 /* else x and y are stored and loaded in each pass */
#endif
            for (int k = 0; k < PE_RUN; k++) {
                double a = x, b0 = y;
                c[k][u] += a;
                d[k][u] += b0;
                x = a * p - b0 * q;
                y = a * q + b0 * p;
            }
        }
    }
    for (int k = 0; k < PE_RUN; k++) {
        re[k] = pe_lane_sum(c[k]);
        im[k] = pe_lane_sum(d[k]);
    }
}

/* Adds the sums of small nodes, and minus the weight of the large ones. */
PE_CLONES static void add_small(const pe_node_sums *s, double first, double *re, double *im) {
    for (int k = 0; k < PE_RUN; k++) {
        const double x = 2.0 * ((first + k) * s->ht / s->t_top), square = x * x;
        double even = s->even[0], odd = s->odd[0];
        for (int i = 1; i < PE_SMALL_TERMS; i++) {
            even = even * square + s->even[i];
            odd = odd * square + s->odd[i];
        }
        re[k] = (re[k] - s->weight) + even * square;
        im[k] += odd * (square * x);
    }
}

void pe_node_sums_run(const pe_node_sums *s, size_t first, double *re, double *im) {
    rotated(s, (double)first * s->ht, re, im);
    add_small(s, (double)first, re, im);
}

PE_CLONES static void add_near_powers(double n, const double *a, const double *b, const double *mean,
                                      double *re, double *im) {
    for (int k = 0; k < PE_RUN; k++) {
        double x, y;
        pe_vlog1p(a[k], b[k], &x, &y);
        re[k] += n * x;
        im[k] += n * (y - mean[k]);
    }
}

void pe_add_powers(double n, const double *a, const double *b, const double *mean, double *re, double *im) {
    double top = 0.0;
    for (int k = 0; k < PE_RUN; k++) top = fmax(top, a[k] * a[k] + b[k] * b[k]);
    if (top <= PE_LOG_REACH * PE_LOG_REACH) {
        add_near_powers(n, a, b, mean, re, im);
        return;
    }
    for (int k = 0; k < PE_RUN; k++) {
        const double x = 1.0 + a[k], square = x * x + b[k] * b[k];
        re[k] += n * 0.5 *
                 (square < 0.25 ? pe_d_log(square) : pe_d_log1p(2.0 * a[k] + (a[k] * a[k] + b[k] * b[k])));
        im[k] += n * (pe_d_atan2(b[k], x) - mean[k]);
    }
}
