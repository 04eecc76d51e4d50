/* One kind of step on lines Im z = y: its transform for t >= 0 with a proven error. */
#ifndef PE_SHIFTED_H
#define PE_SHIFTED_H

#include <stddef.h>

#include "loss_nodes.h"
#include "tilted.h"

/* A bound on one line: of the modulus from some t on, and what that of its integral needs. */
typedef struct {
    double modulus;
    double y, edge;
    double falls, rest; /* what lies beyond the edge is at most rest, and at most falls over t */
} pe_envelope;

/* The last of them, and where the search for the next one begins. */
typedef struct {
    pe_envelope best;
    double per_t, fall; /* height over t, and -log modulus over t^2: 0 before the first one */
} pe_height;

/* One of the pairs that a step may be, between mixtures of normals whose shifts are at most 0 and at least 0. */
typedef struct {
    pe_terms terms;
    pe_dd *wide_block;
    double *block; /* shifts and weights of both sides of the law */
    pe_tilted law;
    pe_window window;
    double y, h; /* height of the line, 0 where it is the real one, and spacing of its nodes: of few bits */
    double x_low, x_high; /* window of the nodes; the upper edge lies half a spacing beyond the last */
    double cut; /* larger z are removed from the law */
    double missed; /* bound of what the nodes miss, in units of e^window.log_total */
    size_t count; /* nodes */
    double log_m; /* log of its own M */
    pe_height height;
} pe_part;

enum {
    PE_MOMENTS = 21, /* the second to the 22nd */
    PE_LEVELS_OF_SIZE = 28, /* powers of 2 of |log W| */
    PE_COLUMNS = 7, /* arrays of one number for each node */
};

/* Sums over the small nodes of one level, those with |log W| <= 2^(top - level) up to whole lanes, and over the others. */
typedef struct {
    size_t large; /* nodes that are not small: they come first */
    double sum_re, sum_im; /* of the weights of those, */
    double size, drift; /* of their moduli, and times the errors of log W */
    double mean_re, mean_im; /* sum of weight log W of the small nodes, */
    double square, depth; /* of |weight| |log W|^2; additions of which a sum is made, at most */
    double re[PE_MOMENTS], im[PE_MOMENTS]; /* of weight (i log W / 2^top)^k / k! */
} pe_small;

typedef struct {
    double steps, t_top; /* nodes serve t up to t_top */
    int is_conjugate; /* the transform at lambda + it is the conjugate of that of its power at 1 - lambda + it */
    size_t n_parts;
    pe_part part[PE_ALTERNATIVES];
    size_t m; /* nodes of all parts, padded to PE_LANES */
    double *weight_re, *weight_im; /* of the tilted law: share phi a W^q h / M, W = b/a */
    double *loss, *angle; /* log W = loss + i angle */
    double *size, *reach; /* |weight| and |log W| */
    double *drifts; /* |weight| times the error of log W */
    double ht, *turn_re, *turn_im; /* spacing of t, and W^{i ht} */
    double longest; /* the largest |log W|, */
    int top; /* and the power of 2 that is not below it */
    pe_small *small; /* for levels that differ, */
    unsigned char of_level[PE_LEVELS_OF_SIZE]; /* and which of them is that of each */
    pe_dd log_m; /* log M */
    double log_m_error; /* bound of its error */
    double mean_re, mean_im; /* sum of weight log W, whose real part is (log M)' */
    double mean_error;
    double slack; /* bound, for all those t, of what the exact sum over all nodes misses of M(t)/M */
    double rounding; /* largest relative error of a weight before its last rounding, in units of that */
    double log_beyond; /* of what pe_shifted_envelope has found last */
    double drift, bend; /* sums of |weight| times the error of log W, and times |log W| as well */
} pe_shifted;

#define PE_FARTHEST 40.0 /* of z from the shifts, where normal tails are nothing */

/* Begins it for the law without what lies beyond `farthest` of the shifts, with estimates of log M and of the mean; a status, PE_TOO_COSTLY where
 * the proof does not apply, as where 1 - lambda is needed and is no double, or nodes are too many.  Envelopes can be
 * asked then, in units of that estimate.  To be freed in any case. */
int pe_shifted_begin(pe_shifted *s, const pe_group *lead, double lambda, double farthest);

/* Adds the nodes for 0 <= t <= t_top, and log M; what envelopes have said comes in units of M.  A status. */
int pe_shifted_finish(pe_shifted *s, double t_top);
void pe_shifted_free(pe_shifted *s);

/* The law of one part times a taper, up to the same cut; `whole` is to be freed later.  A status. */
int pe_shifted_tapered(pe_shifted *s, const pe_shifted *whole, const pe_taper *taper);

/* Begins a tapered law of a number of steps, as pe_shifted_begin does: its transform, whose R(0) is 1, over its own size, whose
 * log is log M.  A status. */
int pe_shifted_place(pe_shifted *s, double steps);

/* The parts of a leading group at some power of the likelihood ratio, without their nodes; as above. */
int pe_shifted_parts(pe_shifted *s, const pe_group *lead, double lambda, double farthest);

/* Sorts the nodes by |log W| and sums what is small, given each node's weight times log W in two doubles, real and
 * imaginary part: for pe_shifted_values.  A status. */
int pe_shifted_arrange(pe_shifted *s, const pe_dd *mean);

enum { PE_SHIFTED_RUN = 16 };

/* Sets the spacing of t, and R(t) - 1, R = M(q + it)/M(q), at t = (first + k) ht, k < PE_SHIFTED_RUN, with bounds of the
 * absolute errors. */
void pe_shifted_step(pe_shifted *s, double ht);
void pe_shifted_values(const pe_shifted *s, size_t first, double *re, double *im, double *error);

/* Upper bound of |R| for all arguments >= t; sums on the line miss e^-digits.  Then, for the same t, one of the integral
 * of a bound of |R| beyond it. */
double pe_shifted_envelope(pe_shifted *s, double t, double digits);
double pe_shifted_beyond(const pe_shifted *s, double t);

/* Upper bound of log M at another lambda of the same law without what is cut, close enough for its power; infinite
 * where there is none. */
double pe_shifted_log_above(const pe_shifted *s, double lambda);

/* Upper bounds of the probabilities of what the cut removes, under A and under B. */
void pe_shifted_removed(const pe_shifted *s, double *of_a, double *of_b);

#endif
