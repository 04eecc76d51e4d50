/* libpyengine: special functions of pyengine for programs in C and for what calls C.
 *
 * Names, arguments, domains and accuracy are those of pyengine.special, whose pages say what was measured; results have
 * the same bits as there.  NaN in gives NaN out, and so does an argument outside the domain.
 *
 * Threads     every function may be called from any number of threads at once: there is no state, no lock, no allocation
 *             and no output.
 * Environment a function computes in the default floating-point environment (rounding to nearest, subnormal numbers kept)
 *             and gives the caller's back; errno and the flags of exceptions are not part of an answer.
 * Versions    what is declared here stays, with its meaning, as long as PYENGINE_API_VERSION does; new functions raise
 *             PYENGINE_API_MINOR.  A program checks when it starts that the library is as new as the header it was
 *             compiled with:
 *
 *                 if (!PYENGINE_IS_COMPATIBLE()) abort();
 */
#ifndef LIBPYENGINE_H
#define LIBPYENGINE_H

#define PYENGINE_API_VERSION 1
#define PYENGINE_API_MINOR 0

#if defined(_WIN32)
#define PYENGINE_API
#else
#define PYENGINE_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The versions of the library that is loaded, 1000 PYENGINE_API_VERSION + PYENGINE_API_MINOR. */
PYENGINE_API int pyengine_api_version(void);

#define PYENGINE_IS_COMPATIBLE()                                                                             \
    (pyengine_api_version() / 1000 == PYENGINE_API_VERSION &&                                                \
     pyengine_api_version() % 1000 >= PYENGINE_API_MINOR)

/* The standard normal distribution: density, distribution function, its logarithm, quantiles of p and of y = log p. */
PYENGINE_API double pyengine_normal_pdf(double x);
PYENGINE_API double pyengine_ndtr(double x);
PYENGINE_API double pyengine_log_ndtr(double x);
PYENGINE_API double pyengine_ndtri(double p);
PYENGINE_API double pyengine_ndtri_exp(double y);

/* The noncentral chi-squared distribution with df degrees of freedom and noncentrality nc. */
PYENGINE_API double pyengine_ncx2_cdf(double x, double df, double nc);
PYENGINE_API double pyengine_ncx2_sf(double x, double df, double nc);
PYENGINE_API double pyengine_ncx2_logcdf(double x, double df, double nc);
PYENGINE_API double pyengine_ncx2_logsf(double x, double df, double nc);
PYENGINE_API double pyengine_ncx2_pdf(double x, double df, double nc);
PYENGINE_API double pyengine_ncx2_logpdf(double x, double df, double nc);

/* The x at which cdf (ppf) or sf (isf) is p, or has the logarithm log_p. */
PYENGINE_API double pyengine_ncx2_ppf(double p, double df, double nc);
PYENGINE_API double pyengine_ncx2_isf(double p, double df, double nc);
PYENGINE_API double pyengine_ncx2_ppf_exp(double log_p, double df, double nc);
PYENGINE_API double pyengine_ncx2_isf_exp(double log_p, double df, double nc);

/* The noncentrality or the degrees of freedom at which cdf or sf (_sf) is p, or has the logarithm log_p (_exp). */
PYENGINE_API double pyengine_ncx2_nc(double p, double x, double df);
PYENGINE_API double pyengine_ncx2_nc_sf(double p, double x, double df);
PYENGINE_API double pyengine_ncx2_nc_exp(double log_p, double x, double df);
PYENGINE_API double pyengine_ncx2_nc_sf_exp(double log_p, double x, double df);
PYENGINE_API double pyengine_ncx2_df(double p, double x, double nc);
PYENGINE_API double pyengine_ncx2_df_sf(double p, double x, double nc);
PYENGINE_API double pyengine_ncx2_df_exp(double log_p, double x, double nc);
PYENGINE_API double pyengine_ncx2_df_sf_exp(double log_p, double x, double nc);

/* Marcum's Q function, P = 1 - Q, and their logarithms. */
PYENGINE_API double pyengine_marcum_q(double order, double a, double b);
PYENGINE_API double pyengine_marcum_p(double order, double a, double b);
PYENGINE_API double pyengine_log_marcum_q(double order, double a, double b);
PYENGINE_API double pyengine_log_marcum_p(double order, double a, double b);

/* The b, or the a (_inv_a), at which Q or P is p, or has the logarithm log_p (_exp). */
PYENGINE_API double pyengine_marcum_q_inv(double order, double a, double p);
PYENGINE_API double pyengine_marcum_q_inv_exp(double order, double a, double log_p);
PYENGINE_API double pyengine_marcum_q_inv_a(double order, double b, double p);
PYENGINE_API double pyengine_marcum_q_inv_a_exp(double order, double b, double log_p);
PYENGINE_API double pyengine_marcum_p_inv(double order, double a, double p);
PYENGINE_API double pyengine_marcum_p_inv_exp(double order, double a, double log_p);
PYENGINE_API double pyengine_marcum_p_inv_a(double order, double b, double p);
PYENGINE_API double pyengine_marcum_p_inv_a_exp(double order, double b, double log_p);

/* Trade-off function beta of one noisy gradient step with n terms and squared norm ratio k, 1 - beta, and their logarithms. */
PYENGINE_API double pyengine_one_step_sgd_beta(double alpha, double df, double n, double k);
PYENGINE_API double pyengine_one_step_sgd_power(double alpha, double df, double n, double k);
PYENGINE_API double pyengine_log_one_step_sgd_beta(double alpha, double df, double n, double k);
PYENGINE_API double pyengine_log_one_step_sgd_power(double alpha, double df, double n, double k);

/* Trade-off function of the relaxed threat model, its inverse, and their logarithms. */
PYENGINE_API double pyengine_relaxed_beta(double alpha, double df, double mu);
PYENGINE_API double pyengine_log_relaxed_beta(double alpha, double df, double mu);
PYENGINE_API double pyengine_relaxed_alpha(double beta, double df, double mu);
PYENGINE_API double pyengine_log_relaxed_alpha(double beta, double df, double mu);

#ifdef __cplusplus
}
#endif

#endif
