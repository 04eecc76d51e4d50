/* Elementary functions of all doubles, in place of those of the C library.

   Each takes every double, infinities and NaN included, has no branch and no table, and gives the same bits with every
   compiler, instruction set and C library (elementary.h says why).  Errors in units in the last place, which proofs count,
   stand below; docs/theory/arithmetic.md has what is proven, tools/prove_arithmetic.py the proof. */
#ifndef PE_DOUBLES_H
#define PE_DOUBLES_H

#include "elementary.h"

#define PE_ULP_ELEMENTARY 2 /* exp, expm1, log, log1p */
#define PE_ULP_CURVED 4     /* sin, cos, atan2, hypot, pow */
#define PE_ULP_ERFC 8       /* erfc, in units of 2^-52 of itself */

#define PE_MOST_TURNED 0x1p50 /* sines and cosines of larger numbers are NaN */

static inline double pe_d_exp(double x) {
    double k;
    const double above = x < -746.0 ? -746.0 : x;
    const double m = pe_exp_parts(above > 710.0 ? 710.0 : above, &k);
    return pe_scale(m, k);
}

/* 2 ((s - 1/2) + s (e^(r + c) - 1)), small c */
PE_INLINE double pe_expm1_near(double r, double c, double s) {
    const double rest = r * r * pe_exp_series(r) + (c + c * r);
    return 2.0 * pe_dd_add_d(pe_two_sum(s - 0.5, s * r), s * rest).h;
}

static inline double pe_d_expm1(double x) {
    const double above = x < -40.0 ? -40.0 : x, at = above > 710.0 ? 710.0 : above;
    const double t = at * 0x1.71547652b82fep+0 + PE_MAGIC, n = t - PE_MAGIC;
    const double high = at - n * 0x1.62e42fefp-1, low = n * 0x1.473de6af278edp-34;
    const double r = high - low, s = pe_power_of_2(n - 1.0);
    const double value = pe_expm1_near(r, (high - r) - low, s);
    return fabs(x) < 0x1p-54 ? x : value;
}

static inline double pe_d_log(double x) {
    double k;
    const int is_small = x < 0x1p-1022;
    const double f = pe_log_parts(is_small ? x * 0x1p54 : x, &k);
    const double value = pe_log_near(f, is_small ? k - 54.0 : k, 0.0);
    return x > 0.0 ? (x < INFINITY ? value : x) : x == 0.0 ? -INFINITY : NAN;
}

/* Near 0 from x itself, else from the rounded 1 + x and its error */
static inline double pe_d_log1p(double x) {
    double k;
    const int is_near = x > -0.29 && x < 0.41;
    const pe_dd sum = pe_two_sum(1.0, x);
    const double f = pe_log_parts(is_near ? 1.0 : sum.h, &k);
    const double value = pe_log_near(is_near ? x : f, k, is_near ? 0.0 : sum.l / sum.h);
    const double shown = fabs(x) < 0x1p-54 ? x : value;
    return x > -1.0 ? (x < INFINITY ? shown : x) : x == -1.0 ? -INFINITY : NAN;
}

/* r with x = k pi/2 + r + low, |r| < 0.786 for |x| < 2^50 */
PE_INLINE double pe_without_turns(double x, double *k, double *low) {
    const double t = x * 0x1.45f306dc9c883p-1 + PE_MAGIC, n = t - PE_MAGIC;
    const pe_dd first = pe_two_prod(n, 0x1.921fb54442d18p+0), second = pe_two_prod(n, 0x1.1a62633145c07p-54);
    const pe_dd rest = pe_two_sum(x - first.h, -first.l), both = pe_two_sum(rest.h, -second.h);
    const double last = (rest.l + both.l) - (second.l + n * -0x1.f1976b7ed8fbcp-110);
    const pe_dd r = pe_fast_two_sum(both.h, last);
    *k = n;
    *low = r.l;
    return r.h;
}

/* sin(r + c) for |r| < 0.786 and small c */
PE_INLINE double pe_sine_near(double r, double c) {
    const double z = r * r;
    double p = 1.0 / 355687428096000.0;
    p = p * z - 1.0 / 1307674368000.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    return r + (r * z * p + c * (1.0 - 0.5 * z));
}

/* cos(r + c) */
PE_INLINE double pe_cosine_near(double r, double c) {
    const double z = r * r;
    double p = -1.0 / 6402373705728000.0;
    p = p * z + 1.0 / 20922789888000.0;
    p = p * z - 1.0 / 87178291200.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z - 1.0 / 3628800.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z - 1.0 / 720.0;
    p = p * z + 1.0 / 24.0;
    const pe_dd whole = pe_fast_two_sum(1.0, -0.5 * z);
    return pe_dd_add_d(whole, z * z * p - r * c).h;
}

/* sin(x + quarters pi/2); NaN for |x| >= PE_MOST_TURNED. */
PE_INLINE double pe_turned_sine(double x, double quarters) {
    double k, c;
    const double r = pe_without_turns(x, &k, &c);
    const uint64_t q = pe_bits((k + quarters) + PE_MAGIC);
    const double size = (q & 1) ? pe_cosine_near(r, c) : pe_sine_near(r, c);
    const double value = (q & 2) ? -size : size;
    return fabs(x) < PE_MOST_TURNED ? value : NAN;
}

static inline double pe_d_sin(double x) {
    const double value = pe_turned_sine(x, 0.0);
    return fabs(x) < 0x1p-30 ? x : value;
}

static inline double pe_d_cos(double x) {
    return pe_turned_sine(x, 1.0);
}

/* The angle whose tangent is w, |w| < 0.4143; c is added: (atan(w) - w)/w^3 interpolates in w^2 at Chebyshev points up to
   0.1716, w^2 times it errs by less than 5.5e-18. */
PE_INLINE double pe_angle_near(double w, double c) {
    const double z = w * w;
    const double fourth = z * z;
    const double eighth = fourth * fourth;
    const double p0 = (-0.3333333333333333 + 0.19999999999995513 * z) +
                      fourth * (-0.1428571428466518 + 0.11111111015146714 * z);
    const double p4 = (-0.0909090457366906 + 0.07692183087342026 * z) +
                      fourth * (-0.06664509989818045 + 0.058581362519061465 * z);
    const double p8 = (-0.05085383488842831 + 0.03922974453661223 * z) + fourth * -0.019174543572021332;
    return w + (w * z * (p0 + eighth * (p4 + eighth * p8)) + c);
}

/* The angle of x + iy, from -pi to pi; infinities together are not a number, as is no number. */
static inline double pe_d_atan2(double y, double x) {
    const double of_x = fabs(x), of_y = fabs(y);
    const int is_steep = of_y > of_x;
    const double large = is_steep ? of_y : of_x, small = is_steep ? of_x : of_y;
    const double q = large > 0.0 ? small / large : large + small;
    const int is_half = q > 0.4142135623730950;
    const double w = is_half ? (q - 1.0) / (q + 1.0) : q;
    const double near = pe_angle_near(w, is_half ? 0x1.1a62633145c07p-55 : 0.0);
    const double first = is_half ? 0x1.921fb54442d18p-1 + near : near;
    const double halves = is_steep ? 1.0 : x < 0.0 ? 2.0 : 0.0;
    const double turned = is_steep != (x < 0.0) ? -first : first;
    const double value = halves * 0x1.921fb54442d18p+0 + (turned + halves * 0x1.1a62633145c07p-54);
    return y < 0.0 ? -value : value;
}

/* sqrt(x^2 + y^2): of both times a power of 2 that brings the larger one next to 1 */
static inline double pe_d_hypot(double x, double y) {
    const double of_x = fabs(x), of_y = fabs(y);
    const double large = of_x > of_y ? of_x : of_y, small = of_x > of_y ? of_y : of_x;
    const uint64_t exponent = pe_bits(large) >> 52;
    const double unit = pe_from_bits((exponent < 2046 ? 2046 - exponent : 1) << 52);
    const double a = large * unit, b = small * unit, value = sqrt(a * a + b * b) / unit;
    return large < INFINITY ? value : large;
}

/* log(e^x + e^y) */
static inline double pe_d_logaddexp(double x, double y) {
    const double large = x > y ? x : y, small = x > y ? y : x;
    return large + pe_d_log1p(pe_d_exp(large == small ? 0.0 : small - large));
}

/* x^y for x from 0 to 2^1022, 0 for y > 0 alone: e^(y log x) in sums of two doubles */
static inline double pe_d_pow(double x, double y) {
    const double base = x > 0.0 ? x : 1.0, most = 1400.0;
    const int is_small = base < 0x1p-1022;
    double k;
    const pe_dd log = pe_dd_log1p(pe_two_sum(is_small ? base * 0x1p54 : base, -1.0));
    const pe_dd unit = pe_dd_mul_d((pe_dd){0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}, 54.0);
    const pe_dd of_base = pe_dd_choose(is_small, pe_dd_sub(log, unit), log);
    const pe_dd product = pe_dd_mul_d(of_base, y);
    const double about = of_base.h * y; /* whose sign is known where the product overflows */
    const int is_far = !(fabs(about) < most);
    const pe_dd m = pe_dd_exp_parts(pe_dd_choose(is_far, pe_dd_of(about < 0.0 ? -most : most), product), &k);
    return x > 0.0 ? pe_scale(m.h, k) : x == 0.0 && y > 0.0 ? 0.0 : NAN;
}

/* ---- estimates, which place lines and ends ------------------------------------------------------------ */

static inline double pe_d_log2(double x) {
    return 1.44269504088896340736 * pe_d_log(x);
}

static inline double pe_d_sinh(double x) {
    const double m = pe_d_expm1(fabs(x)), size = 0.5 * (m + m / (1.0 + m));
    return x < 0.0 ? -size : size;
}

/* log Gamma(x) for x >= 1, to some 1e-14 */
static inline double pe_d_log_gamma(double x) {
    double product = 1.0;
    for (; x < 12.0; x += 1.0) product *= x;
    const double z = 1.0 / (x * x);
    const double series =
        (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z / 1188.0)))) / x;
    return (x - 0.5) * pe_d_log(x) - x + 0.91893853320467274178 + series - pe_d_log(product);
}

#endif
