/* Masses of a composition by one FFT in sums of two doubles (docs/theory/lattice.md). */
#include "arithmetic.h"
#include "doubles.h"
#include "pyengine.h"
#include "simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL 0x1p-93   /* rounding of one level of a transform, with that of its roots */
#define PRODUCT 0x1p-98 /* of one product of a power */

/* Complex numbers in sums of two doubles, each of the four parts in an array of its own. */
typedef struct {
    double *re_h, *re_l, *im_h, *im_l;
} wide_array;

PE_INLINE pe_ddc number_at(const wide_array *x, size_t i) {
    return (pe_ddc){pe_dd_make(x->re_h[i], x->re_l[i]), pe_dd_make(x->im_h[i], x->im_l[i])};
}

PE_INLINE void put(const wide_array *x, size_t i, pe_ddc z) {
    x->re_h[i] = z.re.h;
    x->re_l[i] = z.re.l;
    x->im_h[i] = z.im.h;
    x->im_l[i] = z.im.l;
}

PE_INLINE pe_ddc times(pe_ddc a, pe_ddc b) {
    return (pe_ddc){pe_dd_sub(pe_dd_mul(a.re, b.re), pe_dd_mul(a.im, b.im)),
                    pe_dd_add(pe_dd_mul(a.re, b.im), pe_dd_mul(a.im, b.re))};
}

static wide_array part_of(double *room, size_t n) {
    return (wide_array){room, room + n, room + 2 * n, room + 3 * n};
}

/* e^{-2 pi i j/n}, j < n/2, as products of those of powers of 2, which are halved angles of a right one */
static void fill_roots(size_t n, const wide_array *root) {
    pe_ddc turn[64];
    size_t bits = 0;
    turn[0] = (pe_ddc){pe_dd_of(-1.0), pe_dd_of(0.0)};
    for (size_t size = 2; size < n; size *= 2, ++bits) {
        pe_ddc next = {pe_dd_of(0.0), pe_dd_of(-1.0)};
        if (bits > 0) {
            const pe_dd half = pe_dd_scale(pe_dd_add_d(turn[bits].re, 1.0), 0.5);
            next.re = pe_dd_sqrt(half);
            next.im = pe_dd_div(turn[bits].im, pe_dd_scale(next.re, 2.0));
        }
        turn[bits + 1] = next;
    }
    put(root, 0, (pe_ddc){pe_dd_of(1.0), pe_dd_of(0.0)});
    for (size_t size = 1; size < n / 2; size *= 2, --bits)
        for (size_t j = 0; j < size; ++j) put(root, size + j, times(number_at(root, j), turn[bits]));
}

/* One level of Stockham's transform: the numbers of stride s are pairs of 2m */
PE_CLONES static void level_of(size_t m, size_t s, const wide_array *x, const wide_array *root,
                               const wide_array *y) {
    for (size_t p = 0; p < m; ++p) {
        const pe_ddc w = number_at(root, p * s);
        for (size_t q = 0; q < s; ++q) {
            const pe_ddc a = number_at(x, q + s * p), b = number_at(x, q + s * (p + m));
            const pe_ddc sum = {pe_dd_add(a.re, b.re), pe_dd_add(a.im, b.im)};
            const pe_ddc rest = {pe_dd_sub(a.re, b.re), pe_dd_sub(a.im, b.im)};
            put(y, q + s * 2 * p, sum);
            put(y, q + s * (2 * p + 1), times(rest, w));
        }
    }
}

/* The transform of x, which is in x or in y: returns where */
static wide_array transformed(size_t n, wide_array x, wide_array y, const wide_array *root) {
    for (size_t m = n / 2, s = 1; m >= 1; m /= 2, s *= 2) {
        level_of(m, s, &x, root, &y);
        const wide_array swap = x;
        x = y;
        y = swap;
    }
    return x;
}

static pe_ddc power_of(pe_ddc z, uint64_t steps) {
    pe_ddc power = {pe_dd_of(1.0), pe_dd_of(0.0)};
    for (;; z = times(z, z)) {
        if (steps & 1) power = times(power, z);
        steps >>= 1;
        if (steps == 0) return power;
    }
}

/* Multiply the product by powers of a transform; what is below all that counts becomes 0 */
static void multiply(size_t n, const wide_array *x, double steps, double error, const wide_array *product,
                     double *bound, double *slack) {
    for (size_t j = 0; j < n; ++j) {
        const pe_ddc z = number_at(x, j);
        const double modulus = pe_d_hypot(z.re.h, z.im.h) * (1.0 + 0x1p-49) + error;
        const double log_power = steps * pe_d_log(modulus);
        const int is_zero = log_power < -600.0;
        const pe_ddc none = {pe_dd_of(0.0), pe_dd_of(0.0)};
        put(product, j, is_zero ? none : times(number_at(product, j), power_of(z, (uint64_t)steps)));
        bound[j] *= is_zero ? 0x1p-865 : pe_d_exp(log_power) * (1.0 + 1e-9);
        slack[j] += is_zero ? 1.0 : steps * error / modulus;
    }
}

/* The masses of one step, at their indices modulo the period; how many times they were laid over each other */
static size_t lay(size_t n, const pe_masses *step, const wide_array *x) {
    memset(x->re_h, 0, 4 * n * sizeof(double));
    size_t at = (size_t)((((-step->centre) % (int64_t)n) + (int64_t)n) % (int64_t)n);
    for (size_t k = 0; k < step->size; ++k, at = (at + 1) % n) {
        const pe_ddc z = number_at(x, at);
        put(x, at, (pe_ddc){pe_dd_add_d(z.re, step->mass[k]), z.im});
    }
    return step->size / n;
}

int pe_wide_sum(size_t n, size_t kinds, const pe_masses *steps, double *mass, double *noise) {
    double *room = malloc(16 * n * sizeof(double));
    if (!room) return PE_NO_MEMORY;
    double *bound = room + 14 * n, *slack = bound + n, levels = 0.0, total = 0.0, all = 0.0;
    const wide_array x = part_of(room, n), y = part_of(room + 4 * n, n);
    const wide_array product = part_of(room + 8 * n, n), root = part_of(room + 12 * n, n / 2);
    fill_roots(n, &root);
    for (size_t size = 1; size < n; size *= 2) levels += LEVEL;
    for (size_t j = 0; j < n; ++j) {
        put(&product, j, (pe_ddc){pe_dd_of(1.0), pe_dd_of(0.0)});
        bound[j] = 1.0;
        slack[j] = 0.0;
    }
    for (size_t i = 0; i < kinds; ++i) {
        const double error = levels + PRODUCT * (double)lay(n, &steps[i], &x);
        const wide_array found = transformed(n, x, y, &root);
        multiply(n, &found, steps[i].steps, error, &product, bound, slack);
        total += steps[i].steps + 1.0;
    }
    for (size_t j = 0; j < n; ++j) {
        all += bound[j] * (slack[j] + PRODUCT * total + levels);
        const pe_ddc z = number_at(&product, j);
        put(&product, j, (pe_ddc){z.re, pe_dd_neg(z.im)}); /* its transform is the inverse's conjugate */
    }
    const wide_array found = transformed(n, product, y, &root);
    for (size_t j = 0; j < n; ++j) mass[j] = fmax(found.re_h[j] / (double)n, 0.0);
    *noise = all / (double)n * (1.0 + 1e-9) + 1e-260;
    free(room);
    return PE_OK;
}
