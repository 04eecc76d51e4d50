/* Elementary and special functions: the normal law, the noncentral chi-squared one, Marcum's Q.
 *
 * "Observed error" is the largest error measured against 60-digit arithmetic, in units of the last
 * place of the true value rounded to double (ulp), by tests/test_special_normal.py, which fails
 * when it is exceeded by a factor 4.
 */
#ifndef PE_FUNCTIONS_H
#define PE_FUNCTIONS_H

#include "types.h"

/* The clone of the array kernels that this machine runs.
 *
 * Definition      4 or 3 for the clone of x86-64-v4 or -v3, 1 for the default one, 0 where the
 *                 compiler made no clones (csrc/simd.h)
 */
int pe_simd_level(void);

/* Elementary functions, at a number and at n of them.
 *
 * Domain          all doubles; sin and cos up to 2^50, pow of normal x below 2^1022 and of 0 to a positive power; NaN
 *                 elsewhere
 * Method          csrc/doubles.h: polynomials after a reduction; the same bits on every machine
 * Error           2 units in the last place of exp, expm1, log and log1p, 4 of sin, cos, atan2(y, x), hypot and pow, 16
 *                 units of 2^-53 of erfc itself (docs/theory/arithmetic); logaddexp is made of these: log(e^x + e^y), of
 *                 which pe_log_sums gives running sums.
 */
double pe_exp_at(double x);
double pe_expm1_at(double x);
double pe_log_at(double x);
double pe_log1p_at(double x);
double pe_sin_at(double x);
double pe_cos_at(double x);
double pe_erfc_at(double x);
double pe_atan2_at(double x, double y);
double pe_hypot_at(double x, double y);
double pe_pow_at(double x, double y);
double pe_logaddexp_at(double x, double y);
void pe_exp_array(size_t n, const double *x, double *out);
void pe_expm1_array(size_t n, const double *x, double *out);
void pe_log_array(size_t n, const double *x, double *out);
void pe_log1p_array(size_t n, const double *x, double *out);
void pe_sin_array(size_t n, const double *x, double *out);
void pe_cos_array(size_t n, const double *x, double *out);
void pe_erfc_array(size_t n, const double *x, double *out);
void pe_atan2_array(size_t n, const double *x, const double *y, double *out);
void pe_hypot_array(size_t n, const double *x, const double *y, double *out);
void pe_pow_array(size_t n, const double *x, const double *y, double *out);
void pe_logaddexp_array(size_t n, const double *x, const double *y, double *out);
void pe_log_sums(size_t n, const double *x, double *out);

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

/* Noncentral chi-squared distribution with df degrees of freedom and noncentrality nc.
 *
 * Definition      F(x) = P(|Z + m|^2 <= x) for df = dimension and |m|^2 = nc, for any real df > 0 by
 *                 analytic continuation: the Poisson(nc/2) mixture of chi-squared(df + 2j); its
 *                 complement, density and their logarithms, as `what` says
 * Domain          df >= 0, nc >= 0, both finite; any x; else NaN.  Accuracy is shown for df from 1e-6
 *                 to 1e10, nc to 1e13; at df = 0 there is an atom of weight exp(-nc/2) at 0
 * Method          midpoint rule on the parabola through the saddle point of the inversion integral,
 *                 exponent in double-double; short series for df < 1/2 with nc x < 1/4
 * Observed error  tails 3.4 units of 2^-52 relative down to 1e-300, logs 4.0, densities 2.7; logs of
 *                 densities 1.8 relative to max(1, |log f|) for df >= 1/2, 7.4 below
 * Source          docs/special/ncx2.md; nodes by tools/make_ncx2_nodes.py
 *
 * This and the functions below return the number of elements whose arguments lie outside the domain,
 * not counting NaN arguments, for callers that turn it into an error; the ufuncs leave it at NaN.
 * Strides are in bytes; out may be one of the inputs.
 */
enum pe_ncx2_function {
    PE_NCX2_CDF = 0,
    PE_NCX2_SF = 1,
    PE_NCX2_LOGCDF = 2,
    PE_NCX2_LOGSF = 3,
    PE_NCX2_PDF = 4,
    PE_NCX2_LOGPDF = 5,
};

double pe_ncx2(int what, double x, double df, double nc);
size_t pe_ncx2_strided(int what, size_t n, const char *x, ptrdiff_t sx, const char *df, ptrdiff_t sd,
                       const char *nc, ptrdiff_t sl, char *out, ptrdiff_t so);

/* Quantiles of the noncentral chi-squared distribution.
 *
 * Definition      the x with F(x) = p, or 1 - F(x) = p where bit 0 of `what` is set; where bit 1 is
 *                 set, p is given by its logarithm
 * Domain          0 <= p <= 1 (log p <= 0), df and nc as above; else NaN.  0 where x underflows
 * Method          start from r* = r + log(v/r)/r, Halley steps on the log of the smaller tail with a
 *                 double-double residual; at most 100 evaluations
 * Observed error  1.5 units of u/2 + 2^-52 max(1, |log p|)/(x f/p), u = 2^-52
 * Source          docs/special/ncx2.md
 */
size_t pe_ncx2_quantile_strided(int what, size_t n, const char *p, ptrdiff_t sp, const char *df, ptrdiff_t sd,
                                const char *nc, ptrdiff_t sl, char *out, ptrdiff_t so);

/* The noncentrality or the degrees of freedom at which a tail is given.
 *
 * Definition      the nc, df or a (as `unknown` says) with F(x) = p or 1 - F(x) = p, p by its logarithm
 *                 as `what` says; `other` is df, nc or Marcum's order, and x is his b for a
 * Domain          0 <= p <= 1, 0 < x and other from 0 to 2^200 (b to 2^100, order to 2^199), and a p
 *                 that some nc, df or a >= 0 has; else NaN.  x = 0 is allowed at df = 0
 * Method          secant steps on the normal quantile of the smaller tail, against the root of
 *                 nc + df/2 or df + 2 nc, with a double-double residual; at most 120 evaluations
 * Observed error  3.0 units of u/2 + 2^-52 max(1, |log p|)/c, c = |d log p/d log nc| or d log df
 * Source          docs/special/ncx2.md
 */
enum pe_ncx2_unknown { PE_NCX2_OF_NC = 0, PE_NCX2_OF_DF = 1, PE_MARCUM_OF_A = 2 };

size_t pe_ncx2_parameter_strided(int what, int unknown, size_t n, const char *p, ptrdiff_t sp, const char *x,
                                 ptrdiff_t sx, const char *other, ptrdiff_t so, char *out, ptrdiff_t sr);

/* Marcum's Q function.
 *
 * Definition      Q_order(a, b) = 1 - F(b^2) with df = 2 order, nc = a^2: PE_NCX2_SF in `what`;
 *                 PE_NCX2_CDF for 1 - Q, PE_NCX2_LOGSF and PE_NCX2_LOGCDF for their logarithms
 * Domain          order >= 0, a >= 0, both finite, b >= 0; else NaN
 * Method          as pe_ncx2, with exact squares
 * Observed error  3.1 units of 2^-52
 * Source          docs/special/marcum.md
 */
size_t pe_marcum_strided(int what, size_t n, const char *order, ptrdiff_t sm, const char *a, ptrdiff_t sa,
                         const char *b, ptrdiff_t sb, char *out, ptrdiff_t so);

/* The b at which Q (bit 0 of `what` set) or 1 - Q equals p; bit 1: p is given by its logarithm.
 *
 * Method          the root of the quantile, both in double-double
 * Observed error  1.5 units of u/2 + 2^-52 max(1, |log p|)/(b f/p)
 */
size_t pe_marcum_inverse_strided(int what, size_t n, const char *order, ptrdiff_t sm, const char *a,
                                 ptrdiff_t sa, const char *p, ptrdiff_t sp, char *out, ptrdiff_t so);

/* Trade-off function of one noisy gradient step.
 *
 * Definition      beta(alpha) = 1 - F_{(n-1)k}(n/(n-1) F^{-1}_{nk}(alpha)), df degrees of freedom:
 *                 PE_NCX2_SF in `what`; PE_NCX2_CDF for 1 - beta, LOGSF and LOGCDF for logarithms
 * Domain          0 <= alpha <= 1, df > 0, n > 1, k >= 0, at most 2^100 (df: 2^200); else NaN
 * Method          the quantile stays a double-double between the two evaluations
 * Observed error  log beta: 2.5 units of 2^-52 relative
 * Source          docs/special/compositions.md
 */
size_t pe_one_step_sgd_strided(int what, size_t count, const char *alpha, ptrdiff_t sp, const char *df,
                               ptrdiff_t sd, const char *n, ptrdiff_t sn, const char *k, ptrdiff_t sk,
                               char *out, ptrdiff_t so);

/* Trade-off function of the relaxed threat model and its inverse.
 *
 * Definition      j(alpha) = F_{mu^2}(SF_0^{-1}(alpha)), df degrees of freedom; `inverse`: alpha of
 *                 j.  Bit 0 of `what` for the complement, bit 1 for a logarithm
 * Domain          0 <= p <= 1, 0 < df < 2^200, 0 <= mu < 2^100; else NaN
 * Observed error  log j: 2.9 units of 2^-52 relative
 * Source          docs/special/compositions.md
 */
size_t pe_relaxed_strided(int what, int inverse, size_t count, const char *p, ptrdiff_t sp, const char *df,
                          ptrdiff_t sd, const char *mu, ptrdiff_t sm, char *out, ptrdiff_t so);

#endif
