/* Elementary functions as straight-line polynomials.

   Every function here is free of branches and of table look-ups, so that a plain loop
   over a block vectorises; every operation is an IEEE addition, multiplication,
   division, square root or bit operation, so that each lane gives the same bits in SSE2,
   AVX2 and AVX-512 code, in the body of a loop and in its remainder.  (Compile with
   -ffp-contract=off; there is no fused multiply-add anywhere.)

   Polynomial coefficients interpolate at Chebyshev points of the stated interval; the
   error of the polynomial is given beside it.  Double-double arithmetic follows Dekker
   (1971) and Knuth; its relative error is below 2^-100 where nothing underflows. */
#ifndef PE_ELEMENTARY_H
#define PE_ELEMENTARY_H

#include "pyengine.h"
#include "simd.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define PE_INLINE static inline __attribute__((always_inline))
#else
#define PE_INLINE static inline
#endif

PE_INLINE uint64_t pe_bits(double x) {
    uint64_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

PE_INLINE double pe_from_bits(uint64_t b) {
    double x;
    memcpy(&x, &b, sizeof x);
    return x;
}

#define PE_MAGIC 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to an integer */

/* x = k log 2 + r, exp(r) in [0.707, 1.415]; |x| < 2^40.  Error of exp(r) below 0.52 ulp
   plus that of r (2^-60 absolute for |k| < 2^11). */
PE_INLINE double pe_exp_parts(double x, double *k) {
    double t = x * 0x1.71547652b82fep+0 + PE_MAGIC;
    double n = t - PE_MAGIC;
    double r = (x - n * 0x1.62e42fefp-1) - n * 0x1.473de6af278edp-34;
    /* Estrin's order keeps the chain short; |error| < 1.3e-17 on |r| < 0.3466 */
    double r2 = r * r, r4 = r2 * r2;
    double q0 = (0.5000000000000001 + 0.16666666666666669 * r) +
                r2 * (0.041666666666624164 + 0.008333333333330065 * r);
    double q4 = (0.0013888888917197209 + 0.00019841269863040922 * r) +
                r2 * (2.4801521321606647e-05 + 2.7557268479724004e-06 * r);
    double q8 = 2.7620076242527254e-07 + 2.510037611136142e-08 * r;
    double q = q0 + r4 * (q4 + r4 * q8);
    *k = n;
    return 1.0 + (r + r2 * q);
}

/* m * 2^k for integral k, |k| <= 2044, m near 1 or smaller: at most one rounding when the
   result is normal. */
PE_INLINE double pe_scale(double m, double k) {
    double k1 = (k * 0.5 + PE_MAGIC) - PE_MAGIC;
    double k2 = k - k1;
    uint64_t b1 = pe_bits(k1 + (PE_MAGIC + 1023.0)) << 52;
    uint64_t b2 = pe_bits(k2 + (PE_MAGIC + 1023.0)) << 52;
    return (m * pe_from_bits(b1)) * pe_from_bits(b2);
}

/* exp(x) for -708 <= x <= 709: below 1 ulp. */
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

/* log(x) for normal positive x: below 1 ulp (the rational reduction of fdlibm). */
PE_INLINE double pe_log(double x) {
    uint64_t b = pe_bits(x);
    uint64_t kk = (b - UINT64_C(0x3FE6A09E667F3BCD) + (UINT64_C(1023) << 52)) >> 52;
    double k = pe_from_bits(kk | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
    double m = pe_from_bits(b - ((kk - 1023) << 52));
    double f = m - 1.0;
    double s = f / (2.0 + f);
    double z = s * s, w = z * z;
    double t1 =
        w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    double t2 =
        z * (6.666666666666735130e-01 +
             w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    double r = t1 + t2, hfsq = 0.5 * f * f;
    return k * 6.93147180369123816490e-01 - ((hfsq - (s * (hfsq + r) + k * 1.90821492927058770002e-10)) - f);
}

/* log(1 - t) for 0 <= t < 1: below 2 ulp. */
PE_INLINE double pe_log1m(double t) {
    double u = 1.0 - t;
    double c = ((1.0 - u) - t) / u;
    return t < 1.1e-16 ? -t : pe_log(u) + c;
}

/* ---- double-double ---- */

PE_INLINE pe_dd pe_fast_two_sum(double a, double b) {
    pe_dd r;
    r.h = a + b;
    r.l = b - (r.h - a);
    return r;
}

PE_INLINE pe_dd pe_two_sum(double a, double b) {
    pe_dd r;
    double t;
    r.h = a + b;
    t = r.h - a;
    r.l = (a - (r.h - t)) + (b - t);
    return r;
}

PE_INLINE pe_dd pe_two_prod(double a, double b) {
    pe_dd r;
    double t = 134217729.0 * a, ah = t - (t - a), al = a - ah;
    double v = 134217729.0 * b, bh = v - (v - b), bl = b - bh;
    r.h = a * b;
    r.l = ((ah * bh - r.h) + ah * bl + al * bh) + al * bl;
    return r;
}

PE_INLINE pe_dd pe_dd_make(double h, double l) {
    pe_dd r;
    r.h = h;
    r.l = l;
    return r;
}

PE_INLINE pe_dd pe_dd_add(pe_dd a, pe_dd b) {
    pe_dd s = pe_two_sum(a.h, b.h), t = pe_two_sum(a.l, b.l);
    s = pe_fast_two_sum(s.h, s.l + t.h);
    return pe_fast_two_sum(s.h, s.l + t.l);
}

/* The same for terms that do not cancel: |a + b| >= max(|a|, |b|) / 8. */
PE_INLINE pe_dd pe_dd_add_fast(pe_dd a, pe_dd b) {
    pe_dd s = pe_two_sum(a.h, b.h);
    return pe_fast_two_sum(s.h, s.l + (a.l + b.l));
}

PE_INLINE pe_dd pe_dd_add_d(pe_dd a, double b) {
    pe_dd s = pe_two_sum(a.h, b);
    return pe_fast_two_sum(s.h, s.l + a.l);
}

PE_INLINE pe_dd pe_dd_square(pe_dd a) {
    pe_dd p = pe_two_prod(a.h, a.h);
    return pe_fast_two_sum(p.h, p.l + 2.0 * (a.h * a.l));
}

PE_INLINE pe_dd pe_dd_mul(pe_dd a, pe_dd b) {
    pe_dd p = pe_two_prod(a.h, b.h);
    return pe_fast_two_sum(p.h, p.l + (a.h * b.l + a.l * b.h));
}

PE_INLINE pe_dd pe_dd_mul_d(pe_dd a, double b) {
    pe_dd p = pe_two_prod(a.h, b);
    return pe_fast_two_sum(p.h, p.l + a.l * b);
}

PE_INLINE pe_dd pe_dd_div(pe_dd a, pe_dd b) {
    double q = a.h / b.h;
    pe_dd p = pe_two_prod(q, b.h);
    double r = ((a.h - p.h) - p.l + a.l - q * b.l) / b.h;
    return pe_fast_two_sum(q, r);
}

PE_INLINE pe_dd pe_dd_scale(pe_dd a, double s) {
    return pe_dd_make(a.h * s, a.l * s);
}

/* f - log(1 + f) for 1 + f in [0.7071, 1.4143], relative error below 2^-62.  With r = f/(2 + f) and
   z = r^2 it is f r - 2 r^3 (1/3 + z/5 + z^2/7 + ...); the second term is at most 6 % of the first,
   and the part of its bracket that is in plain double at most 2 % of that. */
PE_INLINE pe_dd pe_dd_f_minus_log1p(pe_dd f) {
    pe_dd r = pe_dd_div(f, pe_dd_add_d(f, 2.0));
    pe_dd z = pe_dd_square(r), p, w;
    double z2 = z.h * z.h; /* (atanh(r)/r - 1 - z/3 - z^2/5)/z^3: error 6e-18 */
    double t0 = (0.14285714285714285 + 0.11111111111111474 * z.h) +
                z2 * (0.09090909090650438 + 0.07692307762450579 * z.h);
    double t4 = (0.06666657338810156 + 0.058830250052096154 * z.h) +
                z2 * (0.05236451383079807 + 0.05308533727538497 * z.h);
    double t = t0 + z2 * z2 * t4;
    t = (t * z.h + 0.2) * z.h;
    p = pe_fast_two_sum(0x1.5555555555555p-2, t);
    p.l += 0x1.5555555555555p-56;
    p = pe_dd_mul(pe_dd_mul(z, r), p);
    w = pe_dd_mul(f, r);
    return pe_dd_add_fast(w, pe_dd_make(-2.0 * p.h, -2.0 * p.l));
}

/* log a for a.h normal and positive; absolute error below 2^-66 + 2^-100 |log a|. */
PE_INLINE pe_dd pe_dd_log(pe_dd a) {
    uint64_t kk = (pe_bits(a.h) - UINT64_C(0x3FE6A09E667F3BCD) + (UINT64_C(1023) << 52)) >> 52;
    double k = pe_from_bits(kk | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
    double sc = pe_from_bits((2046 - kk) << 52);
    pe_dd f = pe_fast_two_sum(a.h * sc - 1.0, a.l * sc);
    pe_dd w = pe_dd_f_minus_log1p(f), t = pe_two_prod(k, 0x1.62e42fefa39efp-1);
    t.l += k * 0x1.abc9e3b39803fp-56;
    return pe_dd_add(t, pe_dd_add(f, pe_dd_make(-w.h, -w.l)));
}

#endif
