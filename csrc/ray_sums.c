/* Integrals along rays, by which lines end beyond their turn (docs/theory/laplace.md).  Interface in kinds.h; called by
 * loss_lines.c and pyengine/engines/vertical_lines. */

#include <math.h>

#include "doubles.h"
#include "kinds.h"
#include "lane_trig.h"
#include "simd.h"

enum { MOST_KINDS = 3 }; /* of weights */

/* Sum over nodes of e^{factor node} weight for each kind, in lanes. */
PE_CLONES
static void sums_at(double real, double imag, size_t blocks, size_t stride, const double *node_real,
                    const double *node_imag, size_t kinds, const double *weight_real,
                    const double *weight_imag, double *out) {
    double x[MOST_KINDS][PE_LANES] = {{0.0}}, y[MOST_KINDS][PE_LANES] = {{0.0}};
    const size_t used = kinds < MOST_KINDS ? kinds : MOST_KINDS;
    for (size_t i = 0; i < blocks; i++) {
        double u[PE_LANES], v[PE_LANES];
        for (int l = 0; l < PE_LANES; l++) {
            const double a = node_real[i * PE_LANES + l], b = node_imag[i * PE_LANES + l];
            const double angle = real * b + imag * a, e = pe_vexp(real * a - imag * b);
            double cm1, smx;
            pe_vcosm1_sinmx(angle, &cm1, &smx);
            u[l] = e * (1.0 + cm1);
            v[l] = e * (angle + smx);
        }
        for (size_t k = 0; k < used; k++) {
            const double *p = weight_real + k * stride + i * PE_LANES,
                         *q = weight_imag + k * stride + i * PE_LANES;
            for (int l = 0; l < PE_LANES; l++) {
                x[k][l] += u[l] * p[l] - v[l] * q[l];
                y[k][l] += u[l] * q[l] + v[l] * p[l];
            }
        }
    }
    for (size_t k = 0; k < used; k++) {
        out[2 * k] = pe_lane_sum(x[k]);
        out[2 * k + 1] = pe_lane_sum(y[k]);
    }
}

void pe_ray_sums(size_t n, const double *factor, const int64_t *panels, const int64_t *row, size_t size,
                 const double *node_real, const double *node_imag, size_t kinds, const double *weight_real,
                 const double *weight_imag, double *out) {
    for (size_t i = 0; i < n; i++) {
        const size_t at = (size_t)row[i] * kinds * size;
        sums_at(factor[2 * i], factor[2 * i + 1], (size_t)panels[i], size, node_real, node_imag, kinds,
                weight_real + at, weight_imag + at, out + 2 * kinds * i);
    }
}

void pe_place_integrals(size_t places, const double *x, double reach, int64_t least, int64_t most,
                        size_t blocks, const pe_ray *right, const pe_ray *left, size_t first, size_t kinds,
                        double *out) {
    for (size_t k = 0; k < kinds; k++) out[k] = 0.0;
    for (size_t j = 0; j < places; j++) {
        const pe_ray *ray = x[j] < 0.0 ? right : left;
        const double needed = ceil(pe_d_log2(reach / fabs(x[j]))) + 1.0;
        const int64_t panels = !(needed < (double)most) ? most
                               : needed > (double)least ? (int64_t)needed
                                                        : least;
        const size_t at = (j * ray->kinds + first) * ray->size;
        double found[2 * MOST_KINDS];
        sums_at(x[j], 0.0, blocks * (size_t)panels, ray->size, ray->node_real, ray->node_imag, kinds,
                ray->weight_real + at, ray->weight_imag + at, found);
        for (size_t k = 0; k < kinds; k++) out[k] += found[2 * k + 1];
    }
}

/* The value of the three integrals on the line of a tilt for a unit atom at distance x from the threshold (Lemma 1 of
 * docs/theory/line.md). */
static double atom_weight(size_t kind, double tilt, double x) {
    if (kind < 2) {
        const double apart = tilt - (double)kind;
        if (apart > 0.0) return x > 0.0 ? pe_d_exp(-apart * x) : 0.0;
        return x > 0.0 ? 0.0 : -pe_d_exp(-apart * x);
    }
    if (tilt > 1.0) return x > 0.0 ? pe_d_exp(-(tilt - 1.0) * x) * -pe_d_expm1(-x) : 0.0;
    if (tilt < 0.0) return x < 0.0 ? pe_d_exp(-tilt * x) * -pe_d_expm1(x) : 0.0;
    return -pe_d_exp(-tilt * x + fmin(x, 0.0));
}

void pe_atom_integrals(size_t places, const double *x, const double *mass, double tilt, size_t first,
                       size_t kinds, double *out) {
    for (size_t k = 0; k < kinds; k++) {
        double total = 0.0;
        for (size_t j = 0; j < places; j++) total += mass[j] * atom_weight(first + k, tilt, x[j]);
        out[k] += total;
    }
}
