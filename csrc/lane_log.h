/* Logarithm of 1 + z and its inverse on lanes, as in lane_trig.h. */
#ifndef PE_LANE_LOG_H
#define PE_LANE_LOG_H

#include <math.h>

#include "elementary.h"
#include "lane_trig.h"

#define PE_LOG_REACH 0.25 /* of |a + ib| */

/* log(1 + a + ib) for |a + ib| <= 1/4.  With q = 2|a| + a^2 + b^2 the real part errs by at most 7q units of 2^-53, and
 * the imaginary part by at most 8 units relative to itself (docs/theory/gaussian.md): 2 artanh s for
 * s = z/(2 + z), whose real part (2a + a^2 + b^2)/|2 + z|^2 is formed without cancellation of 1. */
static inline void pe_vlog1p(double a, double b, double *re, double *im) {
    PE_DOMAIN(!(a * a + b * b > PE_LOG_REACH * PE_LOG_REACH));
    double square = a * a + b * b, top = 2.0 * a + square;
    double inverse = 1.0 / (4.0 + (2.0 * a + top));
    double sr = top * inverse, si = (2.0 * b) * inverse;
    double wr = sr * sr - si * si, wi = 2.0 * (sr * si);
    static const double ODD[] = {1.0 / 17.0, 1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0,
                                 1.0 / 9.0,  1.0 / 7.0,  1.0 / 5.0,  1.0 / 3.0};
    double pr = 1.0 / 19.0, pi = 0.0;
    for (int k = 0; k < 8; k++) {
        double next = (pr * wr - pi * wi) + ODD[k];
        pi = pr * wi + pi * wr;
        pr = next;
    }
    double tr = 1.0 + (pr * wr - pi * wi), ti = pr * wi + pi * wr;
    *re = 2.0 * (sr * tr - si * ti);
    *im = 2.0 * (si * tr + sr * ti);
}

/* The argument of x + iy for y >= 0, not both 0, to some ten units of itself: eight times that of its eighth, which lies
 * below 0.2. */
static inline double pe_vargument(double x, double y) {
    PE_DOMAIN(!(y < 0.0) && !(x == 0.0 && y == 0.0));
    const double size = sqrt(x * x + y * y), first = y / (size + fabs(x));
    const double second = first / (1.0 + sqrt(1.0 + first * first));
    const double angle = pe_eight_angles(second / (1.0 + sqrt(1.0 + second * second)));
    return x < 0.0 ? 3.14159265358979323846 - angle : angle;
}

/* exp(x) - 1 - x for |x| < 1/2, where the exponential's own series lacks two terms */
static inline double pe_vexp_tail(double x) {
    const double square = x * x, fourth = square * square;
    const double rest = fourth * (fourth * fourth) * (1.0 / 87178291200.0 + x / 1307674368000.0);
    return square * (pe_vexp_series(x) + rest);
}

/* exp(x) - 1 for x <= 709, given exp(x) */
static inline double pe_vexpm1(double x, double e) {
    PE_DOMAIN(!(x > 709.0));
    const double near = fabs(x) < 0.5 ? x : 0.0;
    return fabs(x) < 0.5 ? near + pe_vexp_tail(near) : e - 1.0;
}

/* log(1 + r) for real r > -1, given the rounded 1 + r: what it lacks is added to first order. */
static inline double pe_vlog1p_real(double r, double above) {
    PE_DOMAIN(!(r <= -1.0));
    return pe_log(above) + (r - (above - 1.0)) / above;
}

#endif
