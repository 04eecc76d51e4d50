/* The standard normal distribution: density, distribution function, quantiles, and their
 * logarithmic forms.  Definitions, methods and observed errors are in functions.h.
 */

#include "normal.h"
#include "doubles.h"
#include "functions.h"

static const double INV_SQRT_2PI = 0x1.9884533d43651p-2;
static const double SQRT_2PI = 0x1.40d931ff62706p+1;
static const double LOG_2PI = 0x1.d67f1c864beb5p+0;
static const double LN2_HI = 0x1.62e42fefa39efp-1;
static const double LN2_LO = 0x1.abc9e3b39803fp-56;
static const double ROOT_2 = 0x1.6a09e667f3bcdp+0;
static const double ROOT_2_OVER_PI = 0x1.9884533d43651p-1;
static const double EXP_MINUS_40 = 0x1.39792499b1a24p-58;

/* Limits between approximations. */
#define CENTRAL_X 0.7             /* CENTRAL is fitted up to x^2 = 1/2 */
#define FAR_X 6.0                 /* NEAR below, FAR above */
#define ZERO_X 40.0               /* Phi(-40) < 2^-1100 */
#define CENTRAL_ERFC 0.49         /* below CENTRAL_X over the root of 2 */
#define ZERO_ERFC 27.5            /* erfc(27.5) < 2^-1095 */
#define CENTRAL_Q 0.425           /* |p - 1/2| up to which QUANTILE is used */
#define CENTRAL_EDGE 0x1.72p-3    /* 185/1024, just above CENTRAL_Q^2 */
#define LOG_LOW -2.590267165445827    /* log(1/2 - CENTRAL_Q) */
#define LOG_HIGH -0.07796154146971185 /* log(1/2 + CENTRAL_Q) */
#define START_S 40.0              /* START is fitted up to sqrt(-2 log p) = 40.25 */
#define LEADING_Y -1e20           /* below, -sqrt(-2 y) is the quantile to 18 digits */

/* CENTRE on [0.0, 0.5]: approximation error 6.7e-17 */
static const double CENTRE_P[5] = {
    0x1.9884533d43651p-2,  0x1.807324d37f2fbp-6,  0x1.cfd08d57b47d3p-9,
    0x1.9c3ac0a5aaa0fp-15, 0x1.836c59e6d222ap-20,
};
static const double CENTRE_Q[5] = {
    0x1.0000000000000p+0,  0x1.cdcadc035f0aap-3,  0x1.5f731882fe455p-6,
    0x1.0ff1c861a8f7ep-10, 0x1.70bf4a5a09ef6p-16,
};
/* NEAR on [0.0, 6.0]: approximation error 6.7e-17 */
static const double NEAR_P[10] = {
    0x1.9884533d43651p-1,  0x1.d3a5287c17f83p-1,  0x1.1674384cb2039p-1,  0x1.afd67ab5c1d2cp-3,
    0x1.d83167e238284p-5,  0x1.75da8e4287997p-7,  0x1.aabfba9cbb86ap-10, 0x1.525fea2e4f149p-13,
    0x1.53345fe3d1241p-17, 0x1.49f8d458f78d8p-22,
};
static const double NEAR_Q[11] = {
    0x1.0000000000000p+0,  0x1.99a4a2d8895bcp+0,  0x1.46158682a486ap+0,  0x1.4caaf17fcfb8ap-1,
    0x1.dc9f77e114d6cp-3,  0x1.f25d7576c9fb9p-5,  0x1.805e422a4de72p-7,  0x1.b00c7bdc8bbf8p-10,
    0x1.53a9e758c7637p-13, 0x1.53345e6485de9p-17, 0x1.49f8d4d9797bfp-22,
};
/* FAR on [0.0, 0.027777777777777776]: approximation error 1.2e-16 */
static const double FAR_P[6] = {
    0x1.fffffffffffffp-1,  0x1.96bbd1b569a1ep+5,  0x1.a28826fd9b148p+9,
    0x1.43076adec5c01p+12, 0x1.3d23e6795b995p+13, 0x1.6305a8e87aa79p+11,
};
static const double FAR_Q[6] = {
    0x1.0000000000000p+0,  0x1.a6bbd1b56998cp+5,  0x1.d25fa1344ba40p+9,
    0x1.9b38a6c8ad86ep+12, 0x1.0c8189e0a235ep+14, 0x1.60e4232414427p+13,
};
/* QUANTILE on [0.0, 0.1806640625]: approximation error 1.2e-16 */
static const double QUANTILE_P[9] = {
    0x1.380ef7681376bp+2,  0x1.a4ecf353a7eddp+7,  0x1.b92d2fc2926eep+11,
    0x1.c78f80569aebbp+14, 0x1.e5ff882158d14p+16, 0x1.0144dc0c3a12ap+18,
    0x1.d8f005926a021p+17, 0x1.0ca439da079bep+16, 0x1.396f06f84042cp+9,
};
static const double QUANTILE_Q[9] = {
    0x1.0000000000000p+0,  0x1.89868988e62bbp+5,  0x1.e46215ff31561p+9,
    0x1.323b8d778d26dp+13, 0x1.a90f702466a7ap+15, 0x1.419342e6c0dc7p+17,
    0x1.f0a6d94410f61p+17, 0x1.50bd84cf6044cp+17, 0x1.1629a3bcb0916p+15,
};
/* START on [0.0, 38.0]: approximation error 1.9e-8 */
static const double START_P[8] = {
    0x1.68755b7a66509p+0, 0x1.3cb2d5eaad93dp+1,  0x1.690ffe668e4c1p+0,  0x1.602fae1c4de90p-2,
    0x1.35f770e78310bp-5, 0x1.d64c3685f1106p-10, 0x1.0d2e5c1ae8721p-15, 0x1.4e1f9d0b040e6p-23,
};
static const double START_Q[7] = {
    0x1.0000000000000p+0,  0x1.cc0310e91f57ap-1,  0x1.18f59da600544p-2,  0x1.179accfec5227p-5,
    0x1.c3de5c1cf1caep-10, 0x1.0a3f62a50a642p-15, 0x1.4e1f6dbd81fcdp-23,
};

#define LENGTH(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define RATIONAL(table, x) (horner(table##_P, LENGTH(table##_P), x) / horner(table##_Q, LENGTH(table##_Q), x))

static inline double horner(const double *c, int n, double x) {
    double sum = c[n - 1];
    for (int i = n - 2; i >= 0; --i) sum = sum * x + c[i];
    return sum;
}

/* The rounding error of x*x: x*x - (x*x rounded), for |x| < 2^480.  Dekker's splitting instead of
 * fma, which is a slow library call on machines without the instruction. */
static inline double square_low(double x, double rounded) {
    const double c = 134217729.0 * x;
    const double high = c - (c - x);
    const double low = x - high;
    return ((high * high - rounded) + 2.0 * high * low) + low * low;
}

/* factor * exp(-y - low) for 0 <= y < 750 and a low that is small. */
static inline double times_exponential(double y, double low, double factor) {
    if (y < 700.0) {
        const double e = pe_d_exp(-y);
        return factor * (e - e * low);
    }
    /* exp would be subnormal and lose digits; the shift by 40 is exact in the exponent. */
    const double e = pe_d_exp(40.0 - y);
    return factor * (e - e * low) * EXP_MINUS_40;
}

/* factor * exp(-x^2/2) for 0 <= x <= ZERO_X. */
static inline double times_gaussian(double x, double factor) {
    const double square = x * x;
    return times_exponential(0.5 * square, 0.5 * square_low(x, square), factor);
}

/* phi(x)/Phi(-x) - x for x >= 0: from sqrt(2/pi) falling to 1/x.  Everything in the tail is built
 * on this difference because its own rounding error matters less and less as x grows. */
static inline double excess(double x) {
    if (x < FAR_X) return RATIONAL(NEAR, x);
    const double inverse = 1.0 / x;
    const double z = inverse * inverse;
    return inverse * RATIONAL(FAR, z);
}

/* Phi(-x) exp(x^2/2) for x >= 0. */
static inline double scaled_tail(double x) {
    return INV_SQRT_2PI / (x + excess(x));
}

/* Phi(-x) for x >= 0. */
static inline double upper_tail(double x) {
    return x > ZERO_X ? 0.0 : times_gaussian(x, scaled_tail(x));
}

/* The x with Phi(x) = 1/2 + q, |q| <= CENTRAL_Q. */
static inline double central_quantile(double q) {
    const double z = q * q;
    const double r = CENTRAL_EDGE - z;
    return q * (SQRT_2PI + z * RATIONAL(QUANTILE, r));
}

/* The x > 0 with log Phi(-x) = y, y <= about LOG_LOW. */
static double tail_quantile(double y) {
    if (y < LEADING_Y) return 2.0 * sqrt(-0.5 * y); /* -2 y may overflow */
    const double s = sqrt(-2.0 * y);
    double x;
    if (s < START_S) {
        const double t = s - 2.25;
        x = RATIONAL(START, t);
    } else {
        /* Two rounds of x^2 = s^2 - log(2 pi x^2) - 2/x^2 + ...: 1e-9 relative at s = 40. */
        const double square = -2.0 * y;
        const double rough = square - LOG_2PI - 2.0 * pe_d_log(s);
        x = sqrt(square - LOG_2PI - pe_d_log(rough) - 2.0 / rough);
    }
    /* Halley's step on f(x) = log Phi(-x) - y.  The starting value is good to 2e-8, the step to
     * its cube; the residual is the only place where rounding matters, hence the exact square. */
    const double square = x * x;
    const double rest = excess(x);
    const double hazard = x + rest;
    const double quadratic = (-0.5 * square - y) - 0.5 * square_low(x, square);
    const double f = quadratic + pe_d_log(INV_SQRT_2PI / hazard);
    const double newton = f / hazard;
    return x + newton / (1.0 + 0.5 * newton * rest);
}

double pe_normal_pdf(double x) {
    const double a = fabs(x);
    return a > ZERO_X ? 0.0 : times_gaussian(a, INV_SQRT_2PI);
}

double pe_ndtr(double x) {
    const double a = fabs(x);
    if (a < CENTRAL_X) return 0.5 + x * RATIONAL(CENTRE, x * x);
    return x < 0.0 ? upper_tail(a) : 1.0 - upper_tail(a);
}

double pe_log_ndtr(double x) {
    if (x < -CENTRAL_X) return -0.5 * x * x + pe_d_log(scaled_tail(-x));
    if (x < CENTRAL_X) return pe_d_log(0.5 + x * RATIONAL(CENTRE, x * x));
    return pe_d_log1p(-upper_tail(x));
}

double pe_ndtri(double p) {
    if (!(p >= 0.0 && p <= 1.0)) return NAN;
    const double q = p - 0.5;
    if (fabs(q) <= CENTRAL_Q) return central_quantile(q);
    if (p == 0.0 || p == 1.0) return copysign(INFINITY, q);
    return q < 0.0 ? -tail_quantile(pe_d_log(p)) : tail_quantile(pe_d_log(1.0 - p));
}

double pe_ndtri_exp(double y) {
    if (!(y <= 0.0)) return NAN;
    if (y < LOG_LOW) return -tail_quantile(y);
    if (y <= LOG_HIGH) return central_quantile(0.5 * pe_d_expm1((y + LN2_HI) + LN2_LO));
    return y == 0.0 ? INFINITY : tail_quantile(pe_d_log(-pe_d_expm1(y)));
}

/* erfc(x) = 2 Phi(-sqrt(2) x), with exp(-x^2) of x itself */
double pe_erfc(double x) {
    const double a = fabs(x), t = a * ROOT_2;
    if (a < CENTRAL_ERFC) return 1.0 - 2.0 * x * ROOT_2 * RATIONAL(CENTRE, t * t);
    const double square = a * a;
    const double tail =
        a < ZERO_ERFC ? times_exponential(square, square_low(a, square), ROOT_2_OVER_PI / (t + excess(t)))
                      : 0.0;
    return x < 0.0 ? 2.0 - tail : x == x ? tail : x;
}

#define ARRAY_FORM(name)                                                                                     \
    void name##_array(const double *x, double *out, size_t n) {                                              \
        for (size_t i = 0; i < n; ++i) out[i] = name(x[i]);                                                  \
    }

ARRAY_FORM(pe_normal_pdf)
ARRAY_FORM(pe_ndtr)
ARRAY_FORM(pe_log_ndtr)
ARRAY_FORM(pe_ndtri)
ARRAY_FORM(pe_ndtri_exp)

double pe_normal_excess(double x) {
    return excess(x);
}

double pe_mills(double t) {
    return t >= 0.0 ? 1.0 / (t + excess(t)) : pe_ndtr(-t) / pe_normal_pdf(t);
}

/* Gauss-Legendre rule on [0, 1], lower half */
static const double LEGENDRE_NODE[4] = {0x1.454e34f533998p-6, 0x1.a06d536d82f88p-4, 0x1.e5dad4f9af698p-3,
                                        0x1.a214dac30e32fp-2};
static const double LEGENDRE_WEIGHT[4] = {0x1.9ea1d04ca0374p-5, 0x1.c76fb531d2b96p-4, 0x1.413c50a255615p-3,
                                          0x1.736360b199343p-3};

/* -m'(t) = 1 - t m(t) = e/(t + e), without cancellation on either side */
static double mills_slope(double t) {
    if (t < 0.0) return 1.0 - t * pe_mills(t);
    const double e = excess(t);
    return e / (t + e);
}

double pe_mills_difference(double t, double step) {
    double end = t + step;
    if (step * fmax(1.0, -t) <= 0.5) {
        /* Gauss-Legendre rule for the integral of the slope: error below 1e-15 of it */
        double sum = 0.0;
        for (int k = 0; k < 4; k++)
            sum += LEGENDRE_WEIGHT[k] * (mills_slope(t + step * LEGENDRE_NODE[k]) +
                                         mills_slope(t + step * (1.0 - LEGENDRE_NODE[k])));
        return step * sum;
    }
    if (t >= 0.0) {
        double e0 = excess(t), e1 = excess(end);
        return (step + (e1 - e0)) / ((t + e0) * (end + e1));
    }
    return pe_mills(t) - pe_mills(end);
}
