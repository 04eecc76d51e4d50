/* Elementary functions as straight-line polynomials.

   Every function here is free of branches and of table look-ups, so that a plain loop
   over a block vectorises; every operation is an IEEE addition, multiplication,
   division, square root or bit operation, so that each lane gives the same bits in SSE2,
   AVX2 and AVX-512 code, in the body of a loop and in its remainder.  (Compile with
   -ffp-contract=off; there is no fused multiply-add anywhere.)

   Polynomial coefficients interpolate at Chebyshev points of the stated interval; the
   error of the polynomial is given beside it.  docs/theory/arithmetic.md bounds all errors, and
   tools/prove_arithmetic.py proves those bounds from the text here. */
#ifndef PE_ELEMENTARY_H
#define PE_ELEMENTARY_H

#include "arithmetic.h"
#include "simd.h"

/* (e^r - 1 - r)/r^2; Estrin's order keeps the chain short; r^2 times it errs by less than 2e-19 on |r| < 0.3467 */
PE_INLINE double pe_exp_series(double r) {
    const double r2 = r * r;
    const double r4 = r2 * r2;
    const double q0 = (0.5 + 0.1666666666666667 * r) + r2 * (0.04166666666666667 + 0.00833333333332612 * r);
    const double q4 = (0.0013888888888883737 + 0.00019841269874873975 * r) +
                      r2 * (2.480158732558584e-05 + 2.755725533255441e-06 * r);
    const double q8 = (2.7557273594799413e-07 + 2.510524515390137e-08 * r) + r2 * 2.0914707069612355e-09;
    return q0 + r4 * (q4 + r4 * q8);
}

/* e^r there */
PE_INLINE double pe_exp_near(double r) {
    return 1.0 + (r + r * r * pe_exp_series(r));
}

/* x = k log 2 + r, exp(r) in [0.707, 1.415]; |x| < 2^40.  log 2 is a sum of two doubles, the first one of 32 bits. */
PE_INLINE double pe_exp_parts(double x, double *k) {
    double t = x * 0x1.71547652b82fep+0 + PE_MAGIC;
    double n = t - PE_MAGIC;
    *k = n;
    return pe_exp_near((x - n * 0x1.62e42fefp-1) - n * 0x1.473de6af278edp-34);
}

/* exp(x) for -708 <= x <= 709 */
PE_INLINE double pe_exp(double x) {
    double k, m = pe_exp_parts(x, &k);
    return m * pe_from_bits(pe_bits(k + (PE_MAGIC + 1023.0)) << 52);
}

/* sin and cos of pi x times (-1)^j where x = j + r, |r| <= 1/2, and that sign as a bit mask:
   absolute error below 4e-16 for |x| < 3e5. */
PE_INLINE void pe_sincos_pi(double x, double *s, double *c, uint64_t *sign) {
    double t = x + PE_MAGIC;
    double n = t - PE_MAGIC;
    double r = x - n;
    double z = r * r;
    double z2 = z * z, z4 = z2 * z2;
    double p0 =
        (-5.167712780049969 + 2.55016403987734 * z) + z2 * (-0.5992645293203425 + 0.08214588659673801 * z);
    double p4 = (-0.007370430719454655 + 0.0004663008729636968 * z) +
                z2 * (-2.190619802773916e-05 + 7.725698395474577e-07 * z);
    double q0 =
        (4.058712126416768 + -1.3352627688545886 * z) + z2 * (0.23533063035882246 + -0.02580689138774896 * z);
    double q4 = (0.001929574273791906 + -0.00010463780074737437 * z) +
                z2 * (4.301629034029225e-06 + -1.3522943962171573e-07 * z);
    double p = p0 + z4 * p4;
    double q = q0 + z4 * q4;
    *s = r * 3.141592653589793 + r * z * p;
    *c = 1.0 - (4.934802200544679 * z - z2 * q);
    *sign = pe_bits(t) << 63;
}

/* x = 2^k (1 + f) for normal positive x, 1 + f in [0.7071, 1.4143] */
PE_INLINE double pe_log_parts(double x, double *k) {
    const uint64_t b = pe_bits(x);
    const uint64_t kk = (b - UINT64_C(0x3FE6A09E667F3BCD) + (UINT64_C(1023) << 52)) >> 52;
    *k = pe_from_bits(kk | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
    return pe_from_bits(b - ((kk - 1023) << 52)) - 1.0;
}

/* k log 2 + log(1 + f) + c for a small c (the rational approximation of fdlibm) */
PE_INLINE double pe_log_near(double f, double k, double c) {
    const double s = f / (2.0 + f);
    const double z = s * s;
    const double w = z * z;
    const double t1 =
        w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double t2 =
        z * (6.666666666666735130e-01 +
             w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    const double r = t1 + t2;
    const double half = 0.5 * f * f;
    const double rest = (half - (s * (half + r) + (k * 1.90821492927058770002e-10 + c))) - f;
    return k * 6.93147180369123816490e-01 - rest;
}

/* log(x) for normal positive x */
PE_INLINE double pe_log(double x) {
    double k;
    const double f = pe_log_parts(x, &k);
    return pe_log_near(f, k, 0.0);
}

/* log(1 - t) for 0 <= t < 1: below 2 ulp. */
PE_INLINE double pe_log1m(double t) {
    double u = 1.0 - t;
    double c = ((1.0 - u) - t) / u;
    return t < 1.1e-16 ? -t : pe_log(u) + c;
}

#endif
