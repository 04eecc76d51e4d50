/* What lines with proven errors share with those of divided laws. */
#ifndef PE_CERTIFIED_PARTS_H
#define PE_CERTIFIED_PARTS_H

#include "certified.h"

typedef struct {
    const pe_contours *contours;
    pe_shifted *kinds;
    size_t n_kinds;
    double gaussian; /* variance of the plain Gaussian steps */
    double farthest; /* from the shifts, that z is taken to; PE_FARTHEST is as far as it goes */
    const pe_shifted *above; /* the kinds above their tapers; NULL where the law is not divided, */
    const double *share,
        *share_error; /* and what their transforms are of those of the kinds at lambda, with bounds of
                                        * its relative errors */
} pe_composition;

typedef struct {
    double *re, *im; /* log of the transform over its value at t = 0, without the mean's phase */
    double *error;   /* bound of the relative error of its exponential */
    double *top;     /* log of a bound of the modulus, where the relative error is of no use */
    /* of a divided law: log of the product of 1 - (above its taper)/(whole), and a bound of its error */
    double *below_re, *below_im, *below_error;
} pe_values;

/* Spacings have few bits, so that their multiples are exact. */
double pe_short_number(double x);

/* Begins all kinds with estimates of their log M and mean, which place the line and its last t. */
int pe_begin_kinds(pe_composition *q, double spread, pe_line *ln);

/* Nodes of all kinds up to t_top, and what is known of the whole by them. */
int pe_finish_kinds(pe_composition *q, double t_top, pe_certified *c);

/* log of a bound of the transform's modulus from t on; the same by what the kinds were asked last, at t and before they had
 * nodes; and bound of the integral of that modulus over dt/t from t on, given the former. */
double pe_modulus_beyond(const pe_composition *q, double t);
double pe_known_beyond(const pe_composition *q, double t);
double pe_integral_beyond(const pe_composition *q, double t, double modulus);

/* Upper bound of K(theta) of the laws of a line, or of those at theta itself where there is no line. */
double pe_cumulant_above(const pe_contours *contours, const pe_shifted *kinds, double theta);

/* Values at nt multiples of ht, whole runs of them; `re` is to be freed. */
int pe_run_values(const pe_composition *q, size_t nt, double ht, pe_values *v);

/* The nodes, the values and the weights of a line whose kinds are begun, with thetas and a spacing of t.  A status. */
int pe_sum_line(pe_composition *q, pe_certified *c);

/* Sums the errors of the weights at the distances of their poles. */
void pe_sum_errors(const pe_values *v, pe_certified *c);

/* Adds one kind's part of `below` to a run of values from its transform R - 1 there. */
void pe_add_below(const pe_shifted *kind, const pe_shifted *above, double share, double share_error,
                  size_t first, const double *re, const double *im, const double *error, const pe_values *v);

#endif
