/* Shared by the proven lines of whole laws (certified.c) and of divided laws (divided.c, small_losses.c). */
#ifndef PE_CERTIFIED_PARTS_H
#define PE_CERTIFIED_PARTS_H

#include "certified.h"

typedef struct {
    const pe_contours *contours;
    pe_shifted *kinds;
    size_t n_kinds;
    double gaussian; /* variance of the loss of the unsampled Gaussian steps */
    /* distance from the shifts at which z is cut off, at most PE_FARTHEST; 0 before it is chosen */
    double farthest;
    const pe_shifted *above; /* the kinds times their tapers; NULL if the law is not divided, */
    /* their transforms over those of the kinds at lambda, and bounds of the relative errors */
    const double *share, *share_error;
} pe_composition;

typedef struct {
    double *re, *im; /* log of the transform over its value at t = 0, times e^(-it mean) */
    double *error; /* bound of the relative error of its exponential; infinite where only `top` holds */
    double *top; /* log of an upper bound of the modulus */
    /* of a divided law: sum of n log(1 - (above its taper)/(whole)) over the kinds, and a bound of its error */
    double *below_re, *below_im, *below_error;
} pe_values;

/* x rounded down to 20 bits, so that multiples of a spacing are exact. */
double pe_short_number(double x);

/* Begins all kinds, with estimates of log M and of the mean, by which the spacing and the last t are chosen. */
int pe_begin_kinds(pe_composition *q, double spread, pe_line *ln);

/* Makes the nodes of all kinds for t up to t_top; sets log M, the mean and the removed masses of the line with
 * errors. */
int pe_finish_kinds(pe_composition *q, double t_top, pe_certified *c);

/* pe_modulus_beyond: log of a bound of the transform's modulus from t on.  pe_known_beyond: the same from the bounds
 * that the kinds gave at this t when last asked.  pe_integral_beyond: bound of the integral of the modulus over dt/t
 * from t on, given that log. */
double pe_modulus_beyond(const pe_composition *q, double t);
double pe_known_beyond(const pe_composition *q, double t);
double pe_integral_beyond(const pe_composition *q, double t, double modulus);

/* Upper bound of K(theta): of the laws of a line, cut off as there, or if kinds is NULL of laws cut off at
 * PE_FARTHEST. */
double pe_cumulant_above(const pe_contours *contours, const pe_shifted *kinds, double theta);

/* Values at k ht, k < nt, in whole runs of PE_SHIFTED_RUN; `re` owns the memory. */
int pe_run_values(const pe_composition *q, size_t nt, double ht, pe_values *v);

/* Completes a line whose kinds are begun and whose thetas and ht are set: last t, nodes, values, weights, their errors
 * and the truncation.  A status. */
int pe_sum_line(pe_composition *q, pe_certified *c);

/* Adds the errors of the values, times the moduli of the four kernels, to c->uncertain. */
void pe_sum_errors(const pe_values *v, pe_certified *c);

/* Adds one kind's part to v->below for a run of t, given the values R - 1 of its whole transform. */
void pe_add_below(const pe_shifted *kind, const pe_shifted *above, double share, double share_error,
                  size_t first, const double *re, const double *im, const double *error, const pe_values *v);

#endif
