/* One kind of step on lines Im z = y: its transform for all t >= 0 with a proven error. */
#ifndef PE_SHIFTED_H
#define PE_SHIFTED_H

#include <stddef.h>

#include "loss_nodes.h"
#include "tilted.h"

/* One of the pairs that a step may be, between mixtures of normals whose shifts are at most 0 and at least 0. */
typedef struct {
    pe_terms terms;
    pe_wide *wide_block;
    double *block; /* shifts and weights of both sides of the law */
    pe_tilted law;
    pe_window window;
    double y, h;          /* height of the line and spacing of its nodes, both of few bits */
    double x_low, x_high; /* window of the nodes; the upper edge lies half a spacing beyond the last */
    double cut;           /* larger z are removed from the law */
    double missed;        /* bound of what the nodes miss, in units of e^window.log_total */
    size_t count;         /* nodes */
    double log_m;         /* log of its own M */
    double height_per_t;  /* where the search for the best bound beyond some t begins; 0 before the first */
} pe_part;

typedef struct {
    double steps;
    int is_conjugate; /* the transform at lambda + it is the conjugate of that of its power at 1 - lambda + it */
    size_t n_parts;
    pe_part part[PE_ALTERNATIVES];
    size_t m; /* nodes of all parts, padded to PE_LANES */
    double *weight_re, *weight_im; /* of the tilted law: share phi a W^q h / M, W = b/a */
    double *loss, *angle; /* log W = loss + i angle */
    double *size, *reach; /* |weight| and |log W| */
    double longest; /* the largest |log W| */
    pe_wide log_m; /* log M */
    double log_m_error; /* bound of its error */
    double mean_re, mean_im; /* sum of weight log W, whose real part is (log M)' */
    double mean_error;
    double slack; /* bound, for all t >= 0, of what the exact sum over all nodes misses of M(t)/M */
    double rounding; /* largest relative error of a weight before its last rounding, in units of that */
    double drift, bend; /* sums of |weight| times the error of log W, and times |log W| as well */
} pe_shifted;

/* Builds it for the law without some large z; a status, PE_TOO_COSTLY where the proof does not apply, as where
 * 1 - lambda is needed and is no double, or nodes are too many.  To be freed in any case. */
int pe_shifted_new(pe_shifted *s, const pe_group *lead, double lambda);
void pe_shifted_free(pe_shifted *s);

/* The parts of a leading group at some power of the likelihood ratio, without their nodes; as above. */
int pe_shifted_parts(pe_shifted *s, const pe_group *lead, double lambda);

enum { PE_SHIFTED_RUN = 16 };

/* R(t) - 1, R = M(q + it)/M(q), at t = (first + k) ht, k < PE_SHIFTED_RUN, with bounds of the
 * absolute errors. */
void pe_shifted_values(const pe_shifted *s, size_t first, double ht, double *re, double *im, double *error);

/* Upper bounds of |R| for all arguments >= t, and of the integral of a bound of |R| beyond t; sums on the
 * line miss e^-digits. */
void pe_shifted_envelope(pe_shifted *s, double t, double digits, double *bound, double *integral);

/* Upper bound of log M at another lambda of the same law without what is cut, close enough for its power; infinite
 * where there is none. */
double pe_shifted_log_above(const pe_shifted *s, double lambda);

/* Upper bounds of the probabilities of what the cut removes, under A and under B. */
void pe_shifted_removed(const pe_shifted *s, double *of_a, double *of_b);

#endif
