/* One kind of step on a line Im z = y: its transform for all t >= 0 with a proven error. */
#ifndef PE_SHIFTED_H
#define PE_SHIFTED_H

#include <stddef.h>

#include "mixture.h"
#include "tilted.h"

typedef long double pe_wide;

typedef struct {
    double steps;
    pe_tilted law; /* its q is the power of the likelihood ratio that stands for lambda */
    pe_wide wide_mu;
    double y, h;          /* height of the line and spacing of its nodes, both of few bits */
    double x_low, x_high; /* window of the nodes; the upper edge lies half a spacing beyond the last */
    double x_end;         /* end of the gap in which the law is cut; infinite where no gap is needed */
    double cut;           /* larger z are removed from the law */
    double edge;          /* bound of phi R^q / M on [x_high, x_end] */
    size_t m;             /* nodes, padded to PE_LANES */
    double *weight_re, *weight_im; /* of the tilted law: phi W^q / M h */
    double *loss, *angle;          /* log W = loss + i angle */
    double *size, *reach;          /* |weight| and |log W| */
    double longest;                /* the largest |log W| */
    pe_wide log_m;        /* log M */
    double log_m_error;   /* bound of its error */
    double mean_re, mean_im; /* sum of weight log W, whose real part is (log M)' */
    double mean_error;
    double slack; /* bound, for all t >= 0, of what the exact sum over all nodes misses of M(t)/M */
} pe_shifted;

/* Builds it for the law without the z above some cut, at most `limit`; 0, -1 without
 * memory, 1 where the proof does not apply or nodes are too many. */
int pe_shifted_new(pe_shifted *s, double noise, double p, double steps, double q, double limit);
void pe_shifted_free(pe_shifted *s);

enum { PE_SHIFTED_RUN = 16 };

/* R(t) - 1, R = M(q + it)/M(q), at t = (first + k) ht, k < PE_SHIFTED_RUN, with bounds of the
 * absolute errors. */
void pe_shifted_values(const pe_shifted *s, size_t first, double ht, double *re, double *im, double *error);

/* Upper bounds of |R| for all arguments >= t, and of the integral of a bound of |R| beyond t; sums on the
 * line miss e^-digits; slope is that of the loss in z where the search for a line starts. */
void pe_shifted_envelope(const pe_shifted *s, double t, double slope, double digits, double *bound,
                         double *integral);

/* Upper bound of log M(q) of one step without the z above a cut, close enough for its power; infinite
 * where there is none. */
double pe_shifted_log_above(double noise, double p, double steps, double q, double cut);

/* Upper bounds of the probabilities of what the cut removes, under N(0, 1) and under the mixture. */
void pe_shifted_removed(const pe_shifted *s, double *plain, double *mixture);

#endif
