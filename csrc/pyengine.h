/* C interface of the numerical core.
 *
 * Every function is pure: no globals, no allocation, no printing, no Python.  Array forms are
 * serial and elementwise: out[i] has the same bits as the scalar form at x[i], whatever n is, and
 * out may be equal to x.  NaN in gives NaN out; an argument outside the domain gives NaN.
 *
 * "Observed error" is the largest error measured against 60-digit arithmetic, in units of the last
 * place of the true value rounded to double (ulp), by tests/test_special_normal.py, which fails
 * when it is exceeded by a factor 4.
 */
#ifndef PYENGINE_H
#define PYENGINE_H

#include <stddef.h>

/* Standard normal density.
 *
 * Definition      phi(x) = exp(-x^2/2)/sqrt(2 pi)
 * Domain          all x
 * Method          x^2 as an exact sum of two doubles, so that rounding the exponent costs nothing;
 *                 scaled by a power of e below the normal range, so that it is rounded once
 * Observed error  2.6 ulp
 * Source          T. J. Dekker, Numer. Math. 18 (1971) 224, for the exact square
 */
double pe_normal_pdf(double x);
void pe_normal_pdf_array(const double *x, double *out, size_t n);

/* Standard normal distribution function.
 *
 * Definition      Phi(x) = integral of phi from -infinity to x
 * Domain          all x
 * Method          |x| < 0.7: 1/2 + x R(x^2); left of it phi(x)/(|x| + e(|x|)), where the excess e of
 *                 the hazard rate over its argument is a rational function of |x| below 6 and of
 *                 1/x^2 above; right tail by reflection
 * Observed error  3.3 ulp, also where the result is subnormal
 * Source          intervals as W. J. Cody, Math. Comp. 23 (1969) 631; coefficients by
 *                 tools/normal_coefficients.py
 */
double pe_ndtr(double x);
void pe_ndtr_array(const double *x, double *out, size_t n);

/* Logarithm of the standard normal distribution function.
 *
 * Definition      log Phi(x)
 * Domain          all x
 * Method          x < -0.7: -x^2/2 - log(sqrt(2 pi) (|x| + e(|x|))); |x| < 0.7: log Phi; else
 *                 log1p(-Phi(-x))
 * Observed error  3.6 ulp
 * Source          as pe_ndtr
 */
double pe_log_ndtr(double x);
void pe_log_ndtr_array(const double *x, double *out, size_t n);

/* Quantile of the standard normal distribution.
 *
 * Definition      the x with Phi(x) = p
 * Domain          0 <= p <= 1; -infinity and infinity at the ends
 * Method          |p - 1/2| <= 0.425: rational function; else one Halley step on log Phi from a
 *                 rational starting value, with a residual accurate beyond double precision
 * Observed error  2.2 ulp
 * Source          variables of M. J. Wichura, Appl. Statist. 37 (1988) 477; coefficients by
 *                 tools/normal_coefficients.py
 */
double pe_ndtri(double p);
void pe_ndtri_array(const double *p, double *out, size_t n);

/* Quantile of the standard normal distribution at a probability given by its logarithm.
 *
 * Definition      the x with log Phi(x) = y
 * Domain          y <= 0; -infinity at y = -infinity, infinity at y = 0
 * Method          as pe_ndtri; the centre from expm1(y + log 2), the right tail from expm1(y), so
 *                 that no digit of y is lost; below -1e20 the leading term -sqrt(-2 y) is exact
 * Observed error  3.9 ulp
 * Source          as pe_ndtri
 */
double pe_ndtri_exp(double y);
void pe_ndtri_exp_array(const double *y, double *out, size_t n);

/* ---- composed privacy loss of subsampled Gaussian steps: transform.c -------------------------
 *
 * S is the sum of the privacy losses log dQ/dP of all steps, P without the record, Q with it.
 */
enum pe_status {
    PE_OK = 0,
    PE_NO_MEMORY = 1,
    PE_TOO_COSTLY = 2, /* the transform decays too slowly for the given limit of work */
};

/* The six functionals of a threshold c. */
enum pe_functional {
    PE_P_ABOVE = 0,    /* P(S > c) */
    PE_P_BELOW = 1,    /* P(S <= c) */
    PE_Q_ABOVE = 2,    /* Q(S > c) */
    PE_Q_BELOW = 3,    /* Q(S <= c) */
    PE_PROFILE_QP = 4, /* E_Q max(0, 1 - e^{c-S}), the profile H(Q||P) at epsilon = c */
    PE_PROFILE_PQ = 5, /* E_P max(0, 1 - e^{S-c}), the profile H(P||Q) at epsilon = -c */
};

enum { PE_ROW = 14 }; /* c, log density of S under P, 6 log values, 6 relative errors */

typedef struct pe_mixture pe_mixture;

/* A composition of n kinds of steps: noise multiplier, sampling probability in (0, 1], number of
 * steps >= 1 of each.  cost_limit bounds the node evaluations spent on one line.  Returns a status;
 * *out must be freed in any case.  Not safe for concurrent use: lines are built when first needed.
 */
int pe_mixture_new(size_t n, const double *noise, const double *p, const double *steps,
                   double cost_limit, pe_mixture **out);
void pe_mixture_free(pe_mixture *mix);

/* K(lambda) = log E_P e^{lambda S} and its first two derivatives, to about 6 digits. */
void pe_mixture_cumulants(const pe_mixture *mix, double lambda, double *out);

/* Rows of PE_ROW values at each c, for the functional that is wanted accurately; or at the c that
 * solves log functional = log_target.
 *
 * Method          trapezoidal rule on a vertical line near the saddle point (docs/theory/spectral)
 * Errors          relative, per functional; infinite where a line does not give it.  Aliases and
 *                 quadrature are bounded, truncation and rounding are estimates.
 */
int pe_mixture_at(pe_mixture *mix, int functional, size_t n, const double *c, double *rows);
int pe_mixture_solve(pe_mixture *mix, int functional, size_t n, const double *log_target,
                     double *rows);

#endif
