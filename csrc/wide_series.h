/* Complex numbers in long double, and the two series that centred sums need. */
#ifndef PE_WIDE_SERIES_H
#define PE_WIDE_SERIES_H

#include "normals.h"

typedef struct {
    pe_wide re, im;
} pe_wide_complex;

static inline pe_wide_complex pe_wide_product(pe_wide_complex a, pe_wide_complex b) {
    return (pe_wide_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* e^z - 1 - z for |z| < 1/2, and log(1 + z) - z for |z| < 0.1: z^2 times a sum of c_k z^k, the highest first, of which
 * the last 10 or 12 serve where |z| is below 2^-6. */
enum { PE_EXP_TERMS = 19, PE_EXP_NEAR = 10, PE_LOG_TERMS = 23, PE_LOG_NEAR = 12 };
#define PE_NEAR 0x1p-12L /* squares of |z| below which those serve, and below which either series does */
#define PE_EXP_SQUARE 0.25L
#define PE_LOG_SQUARE 0.01L

/* 1/20! and so on to 1/2! */
static const pe_wide PE_EXP_SERIES[PE_EXP_TERMS] = {1 / 2432902008176640000.0L,
                                                    1 / 121645100408832000.0L,
                                                    1 / 6402373705728000.0L,
                                                    1 / 355687428096000.0L,
                                                    1 / 20922789888000.0L,
                                                    1 / 1307674368000.0L,
                                                    1 / 87178291200.0L,
                                                    1 / 6227020800.0L,
                                                    1 / 479001600.0L,
                                                    1 / 39916800.0L,
                                                    1 / 3628800.0L,
                                                    1 / 362880.0L,
                                                    1 / 40320.0L,
                                                    1 / 5040.0L,
                                                    1 / 720.0L,
                                                    1 / 120.0L,
                                                    1 / 24.0L,
                                                    1 / 6.0L,
                                                    1 / 2.0L};
static const pe_wide PE_LOG_SERIES[PE_LOG_TERMS] = {
    -1 / 24.0L, 1 / 23.0L, -1 / 22.0L, 1 / 21.0L, -1 / 20.0L, 1 / 19.0L, -1 / 18.0L, 1 / 17.0L,
    -1 / 16.0L, 1 / 15.0L, -1 / 14.0L, 1 / 13.0L, -1 / 12.0L, 1 / 11.0L, -1 / 10.0L, 1 / 9.0L,
    -1 / 8.0L,  1 / 7.0L,  -1 / 6.0L,  1 / 5.0L,  -1 / 4.0L,  1 / 3.0L,  -1 / 2.0L};

/* Even and odd powers by themselves, as neither waits for the other then. */
static inline pe_wide pe_wide_series(const pe_wide *c, int n, pe_wide z) {
    const pe_wide square = z * z;
    pe_wide upper = c[0], lower = c[1];
    int k = 2;
    for (; k + 1 < n; k += 2) {
        upper = upper * square + c[k];
        lower = lower * square + c[k + 1];
    }
    if (k < n) return square * ((upper * square + c[k]) + z * lower);
    return square * (z * upper + lower);
}

static inline pe_wide pe_wide_exp_series(pe_wide z) {
    return z * z < PE_NEAR ? pe_wide_series(PE_EXP_SERIES + PE_EXP_TERMS - PE_EXP_NEAR, PE_EXP_NEAR, z)
                           : pe_wide_series(PE_EXP_SERIES, PE_EXP_TERMS, z);
}

static inline pe_wide pe_wide_log_series(pe_wide z) {
    return z * z < PE_NEAR ? pe_wide_series(PE_LOG_SERIES + PE_LOG_TERMS - PE_LOG_NEAR, PE_LOG_NEAR, z)
                           : pe_wide_series(PE_LOG_SERIES, PE_LOG_TERMS, z);
}

#endif
