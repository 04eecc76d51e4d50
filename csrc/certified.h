/* A vertical line with proven errors, and rows from it: Theorem 3 of docs/theory/line.md.  proven.c chooses such lines,
 * certified.c and (of divided laws) divided.c build them. */
#ifndef PE_CERTIFIED_H
#define PE_CERTIFIED_H

#include "shifted.h"
#include "spectral.h"

typedef struct pe_certified {
    int status; /* of pe_certified_build: PE_TOO_COSTLY where the proof does not apply */
    double work; /* nodes times values; 0 if not known */
    double refused_from; /* the limit of work that the line exceeded; 0 if none */
    pe_line line; /* lambda, k0, c_ref, sd, ht, nt, weights, mass and theta are used */
    pe_dd log_m; /* K(lambda), */
    double log_m_error; /* and a bound of its error */
    double mean_error; /* bound of the rounding of c_ref as the sum of the kinds' means */
    double uncertain[4]; /* bounds of the sums of the errors of the weights, as line.mass */
    double omitted[4]; /* bounds of the sums of the moduli beyond the last t */
    double removed[2]; /* bounds of the probabilities under A and B that are cut off at the ends of z */
    int is_divided; /* whether only paths with a large loss are summed (divided.c) */
    /* The paths without one: mass that is cut off under A and B, and Chernoff's bound beyond c, e^(zero_k -
     * zero_theta c) under A and e^c times that under B. */
    double zero_lost[2], zero_theta, zero_k;
    struct pe_certified *others; /* the line of the paths without a large loss; NULL if that bound is used */
} pe_certified;

/* Builds the line at line.lambda, everything else zero, for thresholds up to `spread` from the mean.  Returns
 * a status. */
int pe_certified_build(const pe_contours *contours, double spread, pe_certified *line);
void pe_certified_free(pe_certified *line);
size_t pe_certified_bytes(const pe_certified *line);

/* Chernoff's bounds at one lambda. */
typedef struct pe_chernoff {
    double lambda;
    double k; /* upper bound of K(lambda) of the law that is cut off far out, */
    double removed[2]; /* and bounds of the probabilities under A and B that are cut off */
} pe_chernoff;

void pe_certified_chernoff_at(const pe_contours *contours, double lambda, pe_chernoff *out);

/* Log of the bound of the profile at lambda < 0: (1 - e^x)+ <= e^(lambda x) (-lambda)^(-lambda)/(1 - lambda)^(1 -
 * lambda) (C. Canonne, G. Kamath, T. Steinke (2020), Prop. 12). */
double pe_chernoff_exponent(double k, double lambda, double c);

/* The row of Chernoff's bounds e^{K(lambda) - lambda c}: half of each with a relative error of 1. */
void pe_certified_chernoff(const pe_chernoff *at, double c, pe_row *row);

/* As pe_line_evaluate; the true value lies within the relative error of each functional. */
void pe_certified_evaluate(const pe_certified *line, size_t n, const double *c, pe_row *rows);

/* The relative error of a functional, of which the logarithm is given, from the values and the truncation alone: about
 * the least that a row of the line has. */
double pe_certified_least_error(const pe_certified *line, int functional, double c, double log_value);

/* One such row by summation in sums of two doubles, where the rounding of the sum counts; of a divided law the row of
 * all paths, with and without a large loss. */
void pe_certified_evaluate_closely(const pe_certified *line, double c, pe_row *row);

#endif
