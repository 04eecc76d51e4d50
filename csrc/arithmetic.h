/* Sums of two doubles, and elementary functions of them.

   A pe_dd is the exact sum of two doubles, |l| <= ulp(h)/2.  Operations are made of Dekker's and Knuth's error-free
   transformations, functions of operations: every result has the same bits with every compiler, instruction set and C
   library that rounds doubles as IEEE 754 says.  No function has a branch or a table, so that a loop over lanes becomes
   vector code.  docs/theory/arithmetic.md bounds all errors; tools/prove_arithmetic.py reads the polynomials here and
   proves those of the functions, wherefore these are written as declarations of single numbers. */
#ifndef PE_ARITHMETIC_H
#define PE_ARITHMETIC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "types.h"

#if defined(__GNUC__)
#define PE_INLINE static inline __attribute__((always_inline))
#else
#define PE_INLINE static inline
#endif

/* Unit of the errors of sums of two doubles in proofs: an operation has far less, a function less than one. */
#define PE_WIDE_UNIT 0x1p-63

#define PE_MAGIC 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to an integer */

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

typedef struct {
    pe_dd re, im;
} pe_ddc;

/* ---- without an error ------------------------------------------------------------------------------- */

/* a + b where |a| >= |b| or a is 0 */
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

/* For |a|, |b| and |a b| from 2^-900 to 2^990 */
PE_INLINE pe_dd pe_two_prod(double a, double b) {
    pe_dd r;
    double t = 134217729.0 * a, ah = t - (t - a), al = a - ah;
    double v = 134217729.0 * b, bh = v - (v - b), bl = b - bh;
    r.h = a * b;
    r.l = ((ah * bh - r.h) + ah * bl + al * bh) + al * bl;
    return r;
}

PE_INLINE pe_dd pe_two_square(double a) {
    pe_dd r;
    double t = 134217729.0 * a, h = t - (t - a), l = a - h;
    r.h = a * a;
    r.l = ((h * h - r.h) + 2.0 * (h * l)) + l * l;
    return r;
}

PE_INLINE pe_dd pe_dd_make(double h, double l) {
    pe_dd r;
    r.h = h;
    r.l = l;
    return r;
}

PE_INLINE pe_dd pe_dd_of(double x) {
    return pe_dd_make(x, 0.0);
}

PE_INLINE pe_dd pe_dd_neg(pe_dd a) {
    return pe_dd_make(-a.h, -a.l);
}

/* Times a power of 2 */
PE_INLINE pe_dd pe_dd_scale(pe_dd a, double s) {
    return pe_dd_make(a.h * s, a.l * s);
}

PE_INLINE pe_dd pe_dd_abs(pe_dd a) {
    return pe_dd_scale(a, a.h < 0.0 ? -1.0 : 1.0);
}

/* One or the other, without a branch */
PE_INLINE pe_dd pe_dd_choose(int holds, pe_dd a, pe_dd b) {
    return pe_dd_make(holds ? a.h : b.h, holds ? a.l : b.l);
}

/* 2^k for integral k of at most 1022 either way */
PE_INLINE double pe_power_of_2(double k) {
    return pe_from_bits(pe_bits(k + (PE_MAGIC + 1023.0)) << 52);
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

/* ---- operations: errors below 2^-102 of the result, but for pe_dd_add_fast --------------------------- */

PE_INLINE pe_dd pe_dd_add(pe_dd a, pe_dd b) {
    pe_dd s = pe_two_sum(a.h, b.h), t = pe_two_sum(a.l, b.l);
    s = pe_fast_two_sum(s.h, s.l + t.h);
    return pe_fast_two_sum(s.h, s.l + t.l);
}

/* Error below 2^-102 (|a| + |b|): for terms that do not cancel. */
PE_INLINE pe_dd pe_dd_add_fast(pe_dd a, pe_dd b) {
    pe_dd s = pe_two_sum(a.h, b.h);
    return pe_fast_two_sum(s.h, s.l + (a.l + b.l));
}

/* The same where |a.h| >= |b.h| */
PE_INLINE pe_dd pe_dd_add_less(pe_dd a, pe_dd b) {
    pe_dd s = pe_fast_two_sum(a.h, b.h);
    return pe_fast_two_sum(s.h, s.l + (a.l + b.l));
}

PE_INLINE pe_dd pe_dd_sub(pe_dd a, pe_dd b) {
    return pe_dd_add(a, pe_dd_neg(b));
}

PE_INLINE pe_dd pe_dd_add_d(pe_dd a, double b) {
    pe_dd s = pe_two_sum(a.h, b);
    return pe_fast_two_sum(s.h, s.l + a.l);
}

PE_INLINE pe_dd pe_dd_square(pe_dd a) {
    pe_dd p = pe_two_square(a.h);
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

static const pe_dd PE_PI = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
static const pe_dd PE_HALF_LOG_2PI = {0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55};

/* ---- exponentials ------------------------------------------------------------------------------------- */

/* x = k log 2 + z, |z| < 0.3467; |x| < 2^14.  log 2 is a sum of three doubles, the first two of 32 and 37 bits. */
PE_INLINE pe_dd pe_dd_without_log2(pe_dd x, double *k) {
    double t = x.h * 0x1.71547652b82fep+0 + PE_MAGIC, n = t - PE_MAGIC;
    pe_dd z = pe_two_sum(x.h - n * 0x1.62e42feep-1, -n * 0x1.a39ef35790000p-33);
    *k = n;
    return pe_two_sum(z.h, z.l + (x.l - n * 0x1.e3b39803f2f6bp-72));
}

/* e^z - 1 - z for |z| < 0.3467: that of an eighth, thrice doubled, as e^2w - 1 - 2w = 2 t + (w + t)^2. */
PE_INLINE pe_dd pe_dd_exp_tail(pe_dd z) {
    const pe_dd w = pe_dd_scale(z, 0.125);
    const double x = w.h;
    double p = 1.0 / 39916800.0;
    p = p * x + 1.0 / 3628800.0;
    p = p * x + 1.0 / 362880.0;
    p = p * x + 1.0 / 40320.0;
    p = p * x + 1.0 / 5040.0;
    p = p * x + 1.0 / 720.0;
    p = p * x + 1.0 / 120.0;
    p = p * x + 1.0 / 24.0;
    p = p * x + 1.0 / 6.0;
    p = p * x;
    const pe_dd first = pe_dd_mul(pe_dd_square(w), pe_fast_two_sum(0.5, p));
    const pe_dd sum_of_first = pe_dd_add_less(w, first);
    const pe_dd second = pe_dd_add_fast(pe_dd_scale(first, 2.0), pe_dd_square(sum_of_first));
    const pe_dd sum_of_second = pe_dd_add_less(pe_dd_scale(w, 2.0), second);
    const pe_dd third = pe_dd_add_fast(pe_dd_scale(second, 2.0), pe_dd_square(sum_of_second));
    const pe_dd sum_of_third = pe_dd_add_less(pe_dd_scale(w, 4.0), third);
    return pe_dd_add_fast(pe_dd_scale(third, 2.0), pe_dd_square(sum_of_third));
}

/* e^x = m 2^k, m from 0.7 to 1.42; |x| < 2^14 */
PE_INLINE pe_dd pe_dd_exp_parts(pe_dd x, double *k) {
    const pe_dd z = pe_dd_without_log2(x, k);
    const pe_dd tail = pe_dd_exp_tail(z);
    return pe_dd_add_less(pe_dd_of(1.0), pe_dd_add_less(z, tail));
}

/* e^x for -690 < x < 690 */
PE_INLINE pe_dd pe_dd_exp(pe_dd x) {
    double k;
    const pe_dd m = pe_dd_exp_parts(x, &k);
    return pe_dd_scale(m, pe_power_of_2(k));
}

/* ---- logarithms --------------------------------------------------------------------------------------- */

/* f - log(1 + f) for 1 + f in [0.7071, 1.4143].  With r = f/(2 + f) and
   z = r^2 it is f r - 2 r^3 (1/3 + z/5 + z^2/7 + ...); the second term is at most 6 % of the first,
   and the part of its bracket that is in plain double at most 2 % of that. */
PE_INLINE pe_dd pe_dd_f_minus_log1p(pe_dd f) {
    const pe_dd r = pe_dd_div(f, pe_dd_add_d(f, 2.0));
    const pe_dd z = pe_dd_square(r);
    const double x = z.h;
    const double square = x * x; /* (atanh(r)/r - 1 - z/3 - z^2/5)/z^3: error 6e-18 */
    const double t0 = (0.14285714285714285 + 0.11111111111111474 * x) +
                      square * (0.09090909090650438 + 0.07692307762450579 * x);
    const double t4 = (0.06666657338810156 + 0.058830250052096154 * x) +
                      square * (0.05236451383079807 + 0.05308533727538497 * x);
    const double t = t0 + square * square * t4;
    const double u = (t * x + 0.2) * x;
    const pe_dd bracket = pe_dd_add_d(pe_dd_make(0x1.5555555555555p-2, 0x1.5555555555555p-56), u);
    const pe_dd cube = pe_dd_mul(pe_dd_mul(z, r), bracket);
    return pe_dd_add_fast(pe_dd_mul(f, r), pe_dd_scale(cube, -2.0));
}

/* log(1 + f) there */
PE_INLINE pe_dd pe_dd_log1p_near(pe_dd f) {
    return pe_dd_add_fast(f, pe_dd_neg(pe_dd_f_minus_log1p(f)));
}

/* log a for a.h normal, positive and below 2^1022; absolute error below 2^-64 + 2^-100 |log a|. */
PE_INLINE pe_dd pe_dd_log(pe_dd a) {
    uint64_t kk = (pe_bits(a.h) - UINT64_C(0x3FE6A09E667F3BCD) + (UINT64_C(1023) << 52)) >> 52;
    double k = pe_from_bits(kk | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
    double sc = pe_from_bits((2046 - kk) << 52);
    pe_dd f = pe_fast_two_sum(a.h * sc - 1.0, a.l * sc);
    pe_dd w = pe_dd_f_minus_log1p(f), t = pe_two_prod(k, 0x1.62e42fefa39efp-1);
    t.l += k * 0x1.abc9e3b39803fp-56;
    return pe_dd_add(t, pe_dd_add(f, pe_dd_neg(w)));
}

/* log(1 + r), r > -1: next to 0 relative to itself */
PE_INLINE pe_dd pe_dd_log1p(pe_dd r) {
    const int near = r.h > -0.29 && r.h < 0.41;
    const pe_dd f = pe_dd_choose(near, r, pe_dd_of(0.0));
    return pe_dd_choose(near, pe_dd_log1p_near(f), pe_dd_log(pe_dd_add_d(r, 1.0)));
}

/* log(1 - e^x) for -690 < x < 0 */
PE_INLINE pe_dd pe_dd_log_1_less_exp(pe_dd x) {
    const int near = x.h > -0.3;
    const pe_dd z = pe_dd_choose(near, x, pe_dd_of(-0.1));
    const pe_dd whole = pe_dd_add_d(pe_dd_neg(pe_dd_exp(x)), 1.0);
    return pe_dd_log(pe_dd_choose(near, pe_dd_neg(pe_dd_add_less(z, pe_dd_exp_tail(z))), whole));
}

/* log(e^y - 1) for y = e^w, -690 < w and y < 690 */
PE_INLINE pe_dd pe_dd_log_expm1(pe_dd w, pe_dd y) {
    const int near = y.h < 0.3, far = y.h > 40.0;
    const pe_dd z = pe_dd_choose(near, y, pe_dd_of(0.1)),
                back = pe_dd_choose(near, pe_dd_of(-1.0), pe_dd_neg(y));
    const pe_dd small = pe_dd_add(w, pe_dd_log1p_near(pe_dd_div(pe_dd_exp_tail(z), z)));
    const pe_dd large = pe_dd_choose(far, y, pe_dd_add(y, pe_dd_log_1_less_exp(back)));
    return pe_dd_choose(near, small, large);
}

/* ---- sines, cosines and angles ------------------------------------------------------------------------ */

/* 1 - cos x and x - sin x for |x| < 0.786: those of a quarter, twice doubled, as
   1 - cos 2w = 2 sin^2 w and 2w - sin 2w = 2 (w - sin w) + 2 sin w (1 - cos w). */
PE_INLINE pe_dd pe_dd_turn_parts(pe_dd angle, pe_dd *of_sine) {
    const pe_dd w = pe_dd_scale(angle, 0.25);
    const pe_dd z = pe_dd_square(w);
    const double x = z.h;
    double p = 1.0 / 6227020800.0;
    p = p * x - 1.0 / 39916800.0;
    p = p * x + 1.0 / 362880.0;
    p = p * x - 1.0 / 5040.0;
    p = p * x + 1.0 / 120.0;
    p = -(p * x);
    double q = -1.0 / 87178291200.0;
    q = q * x + 1.0 / 479001600.0;
    q = q * x - 1.0 / 3628800.0;
    q = q * x + 1.0 / 40320.0;
    q = q * x - 1.0 / 720.0;
    q = q * x + 1.0 / 24.0;
    q = -(q * x);
    const pe_dd sixth = pe_dd_add_d(pe_dd_make(0x1.5555555555555p-3, 0x1.5555555555555p-57), p);
    const pe_dd first = pe_dd_mul(pe_dd_mul(w, z), sixth);
    const pe_dd cosine = pe_dd_mul(z, pe_fast_two_sum(0.5, q));
    const pe_dd sine = pe_dd_add_less(w, pe_dd_neg(first));
    const pe_dd mixed = pe_dd_mul(sine, cosine);
    const pe_dd second = pe_dd_scale(pe_dd_add_fast(first, mixed), 2.0);
    const pe_dd next_cosine = pe_dd_scale(pe_dd_square(sine), 2.0);
    const pe_dd next_sine = pe_dd_add_less(pe_dd_scale(w, 2.0), pe_dd_neg(second));
    const pe_dd next_mixed = pe_dd_mul(next_sine, next_cosine);
    *of_sine = pe_dd_scale(pe_dd_add_fast(second, next_mixed), 2.0);
    return pe_dd_scale(pe_dd_square(next_sine), 2.0);
}

/* x = k pi/2 + r, |r| < 0.786, for |x| < 2^20.  pi/2 is a sum of three doubles, the first two of 33 bits. */
PE_INLINE pe_dd pe_dd_without_turns(pe_dd x, double *k) {
    double t = x.h * 0x1.45f306dc9c883p-1 + PE_MAGIC, n = t - PE_MAGIC;
    pe_dd r = pe_two_sum(x.h - n * 0x1.921fb54400000p+0, -n * 0x1.0b4611a600000p-34);
    *k = n;
    return pe_two_sum(r.h, r.l + (x.l - n * 0x1.3198a2e037073p-69));
}

#define PE_MOST_ANGLE 0x1p20

/* i^k a */
PE_INLINE pe_ddc pe_ddc_quarters(pe_ddc a, double k) {
    const double q = 0.25 * k, f = q - ((q + PE_MAGIC) - PE_MAGIC), size = fabs(f);
    const int odd = size == 0.25;
    const double minus = size > 0.3 ? -1.0 : 1.0, sign = f > 0.0 ? -1.0 : 1.0;
    const double of_re = odd ? sign : minus, of_im = odd ? -sign : minus;
    pe_ddc r;
    r.re = pe_dd_scale(pe_dd_choose(odd, a.im, a.re), of_re);
    r.im = pe_dd_scale(pe_dd_choose(odd, a.re, a.im), of_im);
    return r;
}

/* cos x, and sin x, for |x| < PE_MOST_ANGLE */
PE_INLINE pe_dd pe_dd_turn(pe_dd x, pe_dd *sine) {
    double k;
    pe_dd of_sine;
    const pe_dd r = pe_dd_without_turns(x, &k);
    const pe_dd of_cosine = pe_dd_turn_parts(r, &of_sine);
    const pe_dd co = pe_dd_add_less(pe_dd_of(1.0), pe_dd_neg(of_cosine));
    const pe_dd si = pe_dd_add_less(r, pe_dd_neg(of_sine));
    const pe_ddc turned = pe_ddc_quarters((pe_ddc){co, si}, k);
    *sine = turned.im;
    return turned.re;
}

/* Eight times the angle whose tangent is q, |q| < 0.2, to some units of itself */
PE_INLINE double pe_eight_angles(double q) {
    const double z = q * q;
    double sum = -1.0 / 23.0;
    sum = sum * z + 1.0 / 21.0;
    sum = sum * z - 1.0 / 19.0;
    sum = sum * z + 1.0 / 17.0;
    sum = sum * z - 1.0 / 15.0;
    sum = sum * z + 1.0 / 13.0;
    sum = sum * z - 1.0 / 11.0;
    sum = sum * z + 1.0 / 9.0;
    sum = sum * z - 1.0 / 7.0;
    sum = sum * z + 1.0 / 5.0;
    sum = sum * z - 1.0 / 3.0;
    return 8.0 * (q + q * z * sum);
}

/* An angle in [-pi, pi] that is within 2^-45 of itself of that of x + iy, not both 0 */
PE_INLINE double pe_near_angle(double x, double y) {
    const double most = fabs(x) > fabs(y) ? fabs(x) : fabs(y), u = x / most, v = fabs(y) / most;
    const double size = sqrt(u * u + v * v), first = v / (size + fabs(u));
    const double second = first / (1.0 + sqrt(1.0 + first * first));
    const double angle = pe_eight_angles(second / (1.0 + sqrt(1.0 + second * second)));
    const double whole = x < 0.0 ? 3.14159265358979323846 - angle : angle;
    return y < 0.0 ? -whole : whole;
}

/* The angle of x + iy, moduli from 2^-400 to 2^400: turned back by one that is near, what is left is its sine. */
PE_INLINE pe_dd pe_dd_angle(pe_dd x, pe_dd y) {
    const double near = pe_near_angle(x.h, y.h);
    pe_dd si;
    const pe_dd co = pe_dd_turn(pe_dd_of(near), &si);
    const pe_dd re = pe_dd_add_fast(pe_dd_mul(x, co), pe_dd_mul(y, si));
    const pe_dd im = pe_dd_sub(pe_dd_mul(y, co), pe_dd_mul(x, si));
    return pe_dd_add(pe_dd_of(near), pe_dd_make(im.h / re.h, 0.0));
}

/* ---- complex numbers ---------------------------------------------------------------------------------- */

/* Error below 2^-100 |a| |b| */
PE_INLINE pe_ddc pe_ddc_mul(pe_ddc a, pe_ddc b) {
    pe_ddc r;
    r.re = pe_dd_add_fast(pe_dd_mul(a.re, b.re), pe_dd_neg(pe_dd_mul(a.im, b.im)));
    r.im = pe_dd_add_fast(pe_dd_mul(a.re, b.im), pe_dd_mul(a.im, b.re));
    return r;
}

PE_INLINE pe_ddc pe_ddc_times(pe_ddc a, pe_dd b) {
    pe_ddc r;
    r.re = pe_dd_mul(a.re, b);
    r.im = pe_dd_mul(a.im, b);
    return r;
}

PE_INLINE pe_ddc pe_ddc_scale(pe_ddc a, double s) {
    pe_ddc r;
    r.re = pe_dd_scale(a.re, s);
    r.im = pe_dd_scale(a.im, s);
    return r;
}

/* |a|^2 */
PE_INLINE pe_dd pe_ddc_square(pe_ddc a) {
    return pe_dd_add_fast(pe_dd_square(a.re), pe_dd_square(a.im));
}

/* Times 2^k for |k| <= 2044: where the result is below 2^-960 its digits are lost */
PE_INLINE pe_dd pe_dd_raise(pe_dd a, double k) {
    return pe_dd_make(pe_scale(a.h, k), pe_scale(a.l, k));
}

#endif
