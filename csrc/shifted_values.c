#include "shifted.h"

#include <math.h>

#include "lane_trig.h"
#include "simd.h"

/* The transform of one kind of step at many t, with its error; docs/theory/certified.md. */

#define U 0x1p-53

/* e^z - 1 - z for Re z <= 0 */
static inline void remainder_of(double zr, double zi, double *er, double *ei) {
    static const double C[] = {
        1.0 / 2.0,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5040.0,
        1.0 / 40320.0,
        1.0 / 362880.0,
        1.0 / 3628800.0,
        1.0 / 39916800.0,
        1.0 / 479001600.0,
        1.0 / 6227020800.0,
        1.0 / 87178291200.0,
        1.0 / 1307674368000.0,
        1.0 / 20922789888000.0,
        1.0 / 355687428096000.0,
        1.0 / 6402373705728000.0,
    };
    const double near = zr * zr + zi * zi < 1.0 ? 1.0 : 0.0, r = near * zr, i = near * zi;
    double sr = C[16], si = 0.0;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16
#endif
    for (int k = 15; k >= 0; k--) {
        const double next = sr * r - si * i + C[k];
        si = sr * i + si * r;
        sr = next;
    }
    const double qr = r * r - i * i, qi = 2.0 * r * i;
    double cm1, smx;
    pe_vcosm1_sinmx(zi, &cm1, &smx);
    const double e = pe_vexp(zr), far_r = (e * (1.0 + cm1) - 1.0) - zr, far_i = e * (smx + zi) - zi;
    *er = near * (qr * sr - qi * si) + (1.0 - near) * far_r;
    *ei = near * (qr * si + qi * sr) + (1.0 - near) * far_i;
}

/* Sums of weight (e^{i t log W} - 1 - i t log W) at a run of t. */
PE_CLONES static void centred_run(const pe_shifted *s, double start, double ht, double *re, double *im) {
    double c[PE_SHIFTED_RUN][PE_LANES] = {{0}}, d[PE_SHIFTED_RUN][PE_LANES] = {{0}};
    for (size_t j = 0; j < s->m; j += PE_LANES) {
        for (int u = 0; u < PE_LANES; u++) {
            const double ar = s->weight_re[j + u], ai = s->weight_im[j + u];
            const double zr = -s->angle[j + u], zi = s->loss[j + u];
            double er, ei, fr, fi;
            remainder_of(start * zr, start * zi, &er, &ei);
            remainder_of(ht * zr, ht * zi, &fr, &fi);
            const double hr = ht * zr, hi = ht * zi, dr = hr + fr, di = hi + fi, mr = 1.0 + dr;
            const double tr = start * zr, ti = start * zi;
            const double br = fr + (tr * dr - ti * di), bi = fi + (tr * di + ti * dr);
            const double gr = hr * dr - hi * di, gi = hr * di + hi * dr;
            double xr = ar * er - ai * ei, xi = ar * ei + ai * er;
            double qr = ar * br - ai * bi, qi = ar * bi + ai * br;
            const double kr = ar * gr - ai * gi, ki = ar * gi + ai * gr;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16
#endif
            for (int k = 0; k < PE_SHIFTED_RUN; k++) {
                c[k][u] += xr;
                d[k][u] += xi;
                const double next = (xr * mr - xi * di) + qr;
                xi = (xr * di + xi * mr) + qi;
                xr = next;
                qr += kr;
                qi += ki;
            }
        }
    }
    for (int k = 0; k < PE_SHIFTED_RUN; k++) {
        re[k] = pe_lane_sum(c[k]);
        im[k] = pe_lane_sum(d[k]);
    }
}

/* Sums of weight e^{i t log W} at a run of t. */
PE_CLONES static void plain_run(const pe_shifted *s, double start, double ht, double *re, double *im) {
    double c[PE_SHIFTED_RUN][PE_LANES] = {{0}}, d[PE_SHIFTED_RUN][PE_LANES] = {{0}};
    for (size_t j = 0; j < s->m; j += PE_LANES) {
        for (int u = 0; u < PE_LANES; u++) {
            const double ar = s->weight_re[j + u], ai = s->weight_im[j + u];
            const double l = s->loss[j + u], v = s->angle[j + u];
            double cm1, smx, b = start * l, e = pe_vexp(-start * v);
            pe_vcosm1_sinmx(b, &cm1, &smx);
            double co = e * (1.0 + cm1), si = e * (smx + b);
            double xr = ar * co - ai * si, xi = ar * si + ai * co;
            b = ht * l;
            e = pe_vexp(-ht * v);
            pe_vcosm1_sinmx(b, &cm1, &smx);
            co = e * (1.0 + cm1);
            si = e * (smx + b);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16
#endif
            for (int k = 0; k < PE_SHIFTED_RUN; k++) {
                c[k][u] += xr;
                d[k][u] += xi;
                const double next = xr * co - xi * si;
                xi = xr * si + xi * co;
                xr = next;
            }
        }
    }
    for (int k = 0; k < PE_SHIFTED_RUN; k++) {
        re[k] = pe_lane_sum(c[k]);
        im[k] = pe_lane_sum(d[k]);
    }
}

/* Sums of moduli that bound the rounding of both kinds of runs between t = low and t = high. */
PE_CLONES static void moduli(const pe_shifted *s, double low, double high, double ht, double out[3]) {
    double plain[PE_LANES] = {0}, turned[PE_LANES] = {0}, centred[PE_LANES] = {0};
    for (size_t j = 0; j < s->m; j += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            const double b = high * s->reach[j + u], small = 0.5 * b * b, large = 2.0 + b;
            const double e = s->size[j + u] * pe_vexp(-low * s->angle[j + u]);
            plain[u] += e;
            turned[u] += e * b;
            centred[u] +=
                s->size[j + u] * (small < large ? small : large) * (1.0 + 16.0 * ht * s->reach[j + u]);
        }
    out[0] = pe_lane_sum(plain);
    out[1] = pe_lane_sum(turned);
    out[2] = pe_lane_sum(centred);
}

void pe_shifted_values(const pe_shifted *s, size_t first, double ht, double *re, double *im, double *error) {
    /* errors grow with t: within a run they are bounded at these values of k */
    static const size_t EARLY[] = {0, 1, 2, 3, 5, 7, 10, 15}, LATE[] = {7, 15};
    const size_t *ends = first ? LATE : EARLY, parts = first ? 2 : 8;
    const double start = (double)first * ht, depth = (double)s->m / PE_LANES + 8.0;
    const double mean = hypot(s->mean_re, s->mean_im);
    double plain[8], centred[8];
    for (size_t i = 0; i < parts; i++) {
        const double t = (double)(first + ends[i]) * ht;
        const double low = i ? (double)(first + ends[i - 1] + 1) * ht : start;
        double sums[3];
        moduli(s, low, t, ht, sums);
        plain[i] = U * ((161.0 + s->rounding + depth) * sums[0] + 8.0 * sums[1]) + t * s->drift;
        centred[i] = U * ((200.0 + s->rounding + depth) * sums[2] + 4.0 * t * mean) + t * s->mean_error +
                     t * fmin(2.0 * s->drift, t * s->bend);
        if (!(t * s->longest < 1e7)) /* the reduction of angles */
            plain[i] = centred[i] = INFINITY;
    }
    const int by_remainder = centred[parts - 1] <= plain[parts - 1];
    (by_remainder ? centred_run : plain_run)(s, start, ht, re, im);
    for (size_t k = 0, i = 0; k < PE_SHIFTED_RUN; k++) {
        const double t = (double)(first + k) * ht;
        if (k > ends[i]) i++;
        re[k] -= by_remainder ? t * s->mean_im : 1.0;
        im[k] += by_remainder ? t * s->mean_re : 0.0;
        error[k] = ((by_remainder ? centred[i] : plain[i]) + s->slack) * (1.0 + 1e-9);
    }
    if (!first) /* R(0) is 1 */
        re[0] = im[0] = error[0] = 0.0;
}
