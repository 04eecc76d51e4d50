/* Trigonometric sums of lines: Lemma 5 (c) of docs/theory/line.md.  Interface in kinds.h; called by loss_lines.c. */

#include <math.h>

#include "doubles.h"
#include "kinds.h"
#include "lane_trig.h"
#include "simd.h"

enum {
    MOST_KINDS = 3, /* of weights */
    RUN = 8, /* blocks of lanes that are summed plainly before the total is compensated */
};

static const double FARTHEST = 1e8; /* largest angle for which pe_vcosm1_sinmx is proven */

/* Sums in lanes; sums of runs are added with compensation. */
PE_CLONES
static void sums_at(double z, size_t blocks, size_t stride, const double *frequency, size_t kinds,
                    const double *real, const double *imag, double *out) {
    double sum[MOST_KINDS][PE_LANES] = {{0.0}}, low[MOST_KINDS][PE_LANES] = {{0.0}};
    const size_t used = kinds < MOST_KINDS ? kinds : MOST_KINDS;
    for (size_t first = 0; first < blocks; first += RUN) {
        double part[MOST_KINDS][PE_LANES] = {{0.0}};
        const size_t last = first + RUN < blocks ? first + RUN : blocks;
        for (size_t i = first; i < last; i++) {
            double u[PE_LANES], v[PE_LANES];
            for (int l = 0; l < PE_LANES; l++) {
                const double angle = z * frequency[i * PE_LANES + l];
                double cm1, smx;
                pe_vcosm1_sinmx(angle, &cm1, &smx);
                u[l] = 1.0 + cm1;
                v[l] = angle + smx;
            }
            for (size_t k = 0; k < used; k++) {
                const double *p = real + k * stride + i * PE_LANES, *q = imag + k * stride + i * PE_LANES;
                for (int l = 0; l < PE_LANES; l++) part[k][l] += u[l] * p[l] + v[l] * q[l];
            }
        }
        for (size_t k = 0; k < used; k++)
            for (int l = 0; l < PE_LANES; l++) {
                const double before = sum[k][l], added = part[k][l], now = before + added;
                const double back = now - before;
                low[k][l] += (before - (now - back)) + (added - back);
                sum[k][l] = now;
            }
    }
    for (size_t k = 0; k < used; k++) out[k] = pe_lane_sum(sum[k]) + pe_lane_sum(low[k]);
}

/* The same by pe_d_cos and pe_d_sin, for larger angles. */
static void far_sums_at(double z, size_t size, const double *frequency, size_t kinds, const double *real,
                        const double *imag, double *out) {
    for (size_t k = 0; k < kinds; k++) out[k] = 0.0;
    for (size_t i = 0; i < size; i++) {
        const double angle = z * frequency[i], u = pe_d_cos(angle), v = pe_d_sin(angle);
        for (size_t k = 0; k < kinds; k++) out[k] += u * real[k * size + i] + v * imag[k * size + i];
    }
}

void pe_trig_sums(size_t n, const double *z, size_t size, const double *frequency, size_t kinds,
                  const double *real, const double *imag, double *out) {
    for (size_t i = 0; i < n; i++) {
        const double most = size ? fabs(z[i]) * frequency[size - 1] : 0.0;
        if (most < FARTHEST)
            sums_at(z[i], size / PE_LANES, size, frequency, kinds, real, imag, out + kinds * i);
        else far_sums_at(z[i], size, frequency, kinds, real, imag, out + kinds * i);
    }
}
