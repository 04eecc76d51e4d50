/* Sums of random losses; interface in laws.h, called by pyengine/engines/inverse_cdf.py.  Sample i takes its normal
 * variates 2j and 2j+1 of table g from the block (i, j) of Threefry-2x64-20 (Salmon et al. 2011) with key (seed, g): any
 * split of the samples over threads gives the same numbers, and so does any machine, as elementary.h has the same bits
 * everywhere. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "elementary.h"
#include "laws.h"

enum { BLOCK = 128 }; /* samples computed together */

PE_INLINE uint64_t rotated(uint64_t x, int by) {
    return (x << by) | (x >> (64 - by));
}

#define ROUND(by)                                                                                            \
    do {                                                                                                     \
        a += b;                                                                                              \
        b = rotated(b, by);                                                                                  \
        b ^= a;                                                                                              \
    } while (0)

#define INJECT(first, second, number)                                                                        \
    do {                                                                                                     \
        a += (first);                                                                                        \
        b += (second) + (number);                                                                            \
    } while (0)

PE_INLINE void threefry(uint64_t k0, uint64_t k1, uint64_t a, uint64_t b, uint64_t *x, uint64_t *y) {
    uint64_t k2 = UINT64_C(0x1BD11BDAA9FC1A22) ^ k0 ^ k1;
    INJECT(k0, k1, 0);
    ROUND(16);
    ROUND(42);
    ROUND(12);
    ROUND(31);
    INJECT(k1, k2, 1);
    ROUND(16);
    ROUND(32);
    ROUND(24);
    ROUND(21);
    INJECT(k2, k0, 2);
    ROUND(16);
    ROUND(42);
    ROUND(12);
    ROUND(31);
    INJECT(k0, k1, 3);
    ROUND(16);
    ROUND(32);
    ROUND(24);
    ROUND(21);
    INJECT(k1, k2, 4);
    ROUND(16);
    ROUND(42);
    ROUND(12);
    ROUND(31);
    INJECT(k2, k0, 5);
    *x = a;
    *y = b;
}

void pe_threefry(uint64_t k0, uint64_t k1, uint64_t c0, uint64_t c1, uint64_t *out) {
    threefry(k0, k1, c0, c1, out, out + 1);
}

/* uniform in (0, 1), a multiple of 2^-53 */
PE_INLINE double uniform(uint64_t bits) {
    return pe_from_bits((bits >> 12) | UINT64_C(0x3FF0000000000000)) - (1.0 - 0x1p-53);
}

/* Adds the losses of the pair of variates j, or of its first one only. */
PE_CLONES static void sample_pair(uint64_t seed, uint64_t stream, uint64_t first, uint64_t j, int both,
                                  const pe_loss_table *t, double *sum) {
    double u[BLOCK], v[BLOCK], x[BLOCK], y[BLOCK];
    for (size_t i = 0; i < BLOCK; i++) {
        uint64_t a, b;
        threefry(seed, stream, first + i, j, &a, &b);
        u[i] = uniform(a);
        v[i] = uniform(b);
    }
    for (size_t i = 0; i < BLOCK; i++) { /* Box and Muller */
        double s, c, r = sqrt(-2.0 * pe_log(u[i]));
        uint64_t sign;
        pe_sincos_pi(2.0 * v[i], &s, &c, &sign);
        r = pe_from_bits(pe_bits(r) ^ sign);
        x[i] = r * c;
        y[i] = r * s;
    }
    for (int k = 0; k <= both; k++) {
        const double *z = k ? y : x;
        for (size_t i = 0; i < BLOCK; i++) {
            double q = (z[i] - t->low) * t->per_width;
            q = q > 0.0 ? q : 0.0;
            q = q < t->last ? q : t->last;
            int32_t cell = (int32_t)q;
            const double *p = t->coefficients + 4 * (size_t)(uint32_t)cell;
            double d = q - (double)cell;
            sum[i] += p[0] + d * (p[1] + d * (p[2] + d * p[3]));
        }
    }
}

void pe_sample_losses(uint64_t seed, uint64_t first, size_t n, size_t tables, const pe_loss_table *table,
                      double *out) {
    double sum[BLOCK];
    for (size_t start = 0; start < n; start += BLOCK) {
        for (size_t i = 0; i < BLOCK; i++) sum[i] = 0.0;
        for (size_t g = 0; g < tables; g++) {
            uint64_t steps = table[g].steps;
            for (uint64_t j = 0; 2 * j < steps; j++)
                sample_pair(seed, g, first + start, j, 2 * j + 1 < steps, &table[g], sum);
        }
        for (size_t i = 0; i < BLOCK && start + i < n; i++) out[start + i] = sum[i];
    }
}
