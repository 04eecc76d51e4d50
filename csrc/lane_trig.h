/* Lane-wise elementary functions for the transforms.
 *
 * Each function works on one double, has no branch and no library call, so a loop of LANES
 * iterations over it becomes vector code, and every instruction set gives the same bits
 * (the project is compiled with -ffp-contract=off).
 */
#ifndef PE_LANE_TRIG_H
#define PE_LANE_TRIG_H

#include "arithmetic.h"

#define PE_LANES 8

/* Domain of a function without branches, outside of which bits wrap silently; checked in the programs that run the
 * kernels under sanitizers. */
#ifdef PE_CHECK_DOMAINS
#include <assert.h>
#define PE_DOMAIN(holds) assert(holds)
#else
#define PE_DOMAIN(holds) ((void)0)
#endif

/* (exp(r) - 1 - r)/r^2 for small r */
static inline double pe_vexp_series(double r) {
    PE_DOMAIN(!(r < -0.5 || r > 0.5));
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    return p;
}

/* exp(x) for x <= 709; 0 below -708 (no subnormal results).  Relative error below 1.75 units of 2^-53
 * (tools/prove_arithmetic.py).  Reduction x = k ln2 + r, |r| <= ln2/2, Taylor polynomial of degree 13 (truncation
 * 2e-18). */
static inline double pe_vexp(double x) {
    PE_DOMAIN(!(x > 709.0)); /* NaN is NaN */
    const double shift = 0x1.8p52;
    double xc = x < -708.0 ? -708.0 : x;
    double kd = xc * 0x1.71547652b82fep+0 + shift;
    uint64_t ki = pe_bits(kd);
    kd -= shift;
    double r = (xc - kd * 0x1.62e42fefa3800p-1) - kd * 0x1.ef35793c76730p-45;
    double e = 1.0 + (r + r * r * pe_vexp_series(r));
    double y = e * pe_from_bits((ki + 1023) << 52);
    return x < -708.0 ? 0.0 : y;
}

/* cos(b) - 1 and sin(b) - b for |b| < 2^50, with small *relative* error near b = 0.  Up to |b| = 1e8 these with 1 and b
 * added again, e^{ib}, err by 4.9 + |b| units, 4.9 + 2.01 |b| from 2^20 on (tools/prove_arithmetic.py).  Reduction by
 * pi/2 in three parts, minimax-quality Taylor polynomials on [-pi/4, pi/4]. */
static inline void pe_vcosm1_sinmx(double b, double *cm1, double *smx) {
    PE_DOMAIN(!(b <= -0x1p50 || b >= 0x1p50)); /* the multiple of pi/2 is an integer of 52 bits */
    const double shift = 0x1.8p52;
    double kd = b * 0x1.45f306dc9c883p-1 + shift;
    uint64_t k = pe_bits(kd);
    kd -= shift;
    double y = ((b - kd * 0x1.921fb54400000p+0) - kd * 0x1.0b4611a600000p-34) - kd * 0x1.3198a2e037073p-69;
    double z = y * y;
    double s = -1.0 / 1307674368000.0;
    s = s * z + 1.0 / 6227020800.0;
    s = s * z - 1.0 / 39916800.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    s = s * z * y; /* sin y - y */
    double c = 1.0 / 20922789888000.0;
    c = c * z - 1.0 / 87178291200.0;
    c = c * z + 1.0 / 479001600.0;
    c = c * z - 1.0 / 3628800.0;
    c = c * z + 1.0 / 40320.0;
    c = c * z - 1.0 / 720.0;
    c = c * z + 1.0 / 24.0;
    c = c * z - 0.5;
    c = c * z; /* cos y - 1 */
    double sn = y + s, cs = 1.0 + c;
    uint64_t q = k & 3;
    double big_s = (q & 1) ? cs : sn;
    double big_c = (q & 1) ? sn : cs;
    big_s = (q & 2) ? -big_s : big_s;
    big_c = ((q + 1) & 2) ? -big_c : big_c;
    int near = kd == 0.0;
    *cm1 = near ? c : big_c - 1.0;
    *smx = near ? s : big_s - b;
}

/* Sum of the lanes in a fixed order. */
static inline double pe_lane_sum(const double *x) {
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

#endif
