/* One kind of step: its transform M(lambda + it)/M(lambda) for t >= 0 with proven errors, from nodes on a line Im z = y,
 * bounds of it beyond the last t, and upper bounds of log M.  shifted.c (the law), shifted_height.c (which nodes),
 * shifted_nodes.c, real_nodes.c and plane_nodes.c (the nodes), shifted_values.c (values), envelope.c (bounds); used by
 * certified.c, divided.c and mixture_kind.c.  Proofs: docs/theory/gaussian.md. */
#ifndef PE_SHIFTED_H
#define PE_SHIFTED_H

#include <stddef.h>

#include "loss_nodes.h"
#include "tilted.h"

/* A bound of the transform's modulus from some t on (Theorem 8), from the line Im z = y up to x = edge. */
typedef struct {
    double modulus;
    double y, edge;
    /* the part beyond the edge is at most rest and at most falls/t (K and R of Theorem 8) */
    double falls, rest;
} pe_envelope;

/* The last such bound, and where the search for the next height begins. */
typedef struct {
    pe_envelope best;
    double per_t, fall; /* y/t, and -log(modulus)/t^2; 0 before the first bound */
} pe_height;

/* One alternative of a step: a pair of mixtures of normals, the shifts of a at most 0 and those of b at least 0. */
typedef struct {
    pe_terms terms; /* in sums of two doubles */
    pe_dd *wide_block; /* memory of the terms */
    double *block; /* memory of the shifts and weights in doubles */
    pe_tilted law;
    pe_window window;
    double y, h; /* height of the line of nodes, 0 for the real line, and their spacing, both of 20 bits */
    double x_low, x_high; /* window of the nodes; x_high lies half a spacing beyond the last one */
    double cut; /* z above it are cut off */
    double missed; /* bound of the quadrature error, in units of e^window.log_total */
    size_t count; /* nodes */
    double log_m; /* log M of this alternative */
    pe_height height;
} pe_part;

enum {
    PE_MOMENTS = 21, /* orders 2 to 22 */
    PE_LEVELS_OF_SIZE = 28, /* levels of |log W|, by factors of 2 */
    PE_COLUMNS = 7, /* arrays of one number for each node */
};

/* One level: the nodes with |log W| <= 2^(top - level), up to whole lanes, are small (summed by moments), the others
 * large (summed by rotation).  Lemma 6. */
typedef struct {
    size_t large; /* number of large nodes: they come first */
    double sum_re, sum_im; /* sum of their weights, */
    double size, drift; /* of |weight|, and of |weight| times the error of log W */
    double mean_re, mean_im; /* sum of weight log W over the small nodes, */
    double square, depth; /* and of |weight| |log W|^2; number of additions in such a sum */
    double re[PE_MOMENTS], im[PE_MOMENTS]; /* sums of weight (i log W / 2^top)^k / k! over the small nodes */
} pe_small;

typedef struct {
    double steps, t_top; /* number of steps; nodes serve 0 <= t <= t_top */
    int is_conjugate; /* q = 1 - lambda and a, b are exchanged: the transform is the conjugate of this one */
    size_t n_parts;
    pe_part part[PE_ALTERNATIVES];
    size_t m; /* nodes of all parts, padded to PE_LANES */
    double *weight_re, *weight_im; /* of the tilted law: share phi a W^q h / M, W = b/a */
    double *loss, *angle; /* log W = loss + i angle */
    double *size, *reach; /* |weight| and |log W| */
    double *drifts; /* |weight| times the error of log W */
    double ht, *turn_re, *turn_im; /* spacing of t, and W^{i ht} */
    double longest; /* the largest |log W|, */
    int top; /* and the exponent of the least power of 2 that is not below it */
    pe_small *small; /* the levels that differ, */
    unsigned char of_level[PE_LEVELS_OF_SIZE]; /* and the index of each level in `small` */
    pe_dd log_m; /* log M */
    double log_m_error; /* bound of its error */
    double mean_re, mean_im; /* sum of weight log W, whose real part is (log M)' */
    double mean_error; /* bound of its error */
    double slack; /* bound of the quadrature error of M(t)/M for all t <= t_top, nodes left out included */
    /* largest relative error of a weight before it is rounded to double, in units of 2^-53 */
    double rounding;
    double log_beyond; /* log of the last value of pe_shifted_envelope */
    double drift, bend; /* sums of |weight| times the error of log W, and of that times |log W| */
} pe_shifted;

/* largest distance of z from the shifts, in standard deviations: normal tails underflow */
#define PE_FARTHEST 40.0

/* Begins the kind of group `lead` at lambda, cut off at `farthest` from the shifts, with estimates of log M and the
 * mean.  pe_shifted_envelope may be called then, in units of that estimate of M.  PE_TOO_COSTLY where the proof does
 * not apply: 1 - lambda is needed and not a double, or there is no window, or the nodes are too many.  To be freed in
 * any case. */
int pe_shifted_begin(pe_shifted *s, const pe_group *lead, double lambda, double farthest);

/* Makes the nodes for 0 <= t <= t_top, and log M; rescales earlier envelopes to units of M.  A status. */
int pe_shifted_finish(pe_shifted *s, double t_top);
void pe_shifted_free(pe_shifted *s);

/* The law of one alternative times a taper, up to the same cut; `whole` must be freed later.  A status. */
int pe_shifted_tapered(pe_shifted *s, const pe_shifted *whole, const pe_taper *taper);

/* Begins a tapered law, as pe_shifted_begin does; log M is the log of its integral.  A status. */
int pe_shifted_place(pe_shifted *s, double steps);

/* The alternatives of a kind at lambda without nodes.  A status. */
int pe_shifted_parts(pe_shifted *s, const pe_group *lead, double lambda, double farthest);

/* Sorts the nodes by |log W| and sums the levels for pe_shifted_values; `mean` holds each node's weight times log W,
 * real and imaginary part.  A status. */
int pe_shifted_arrange(pe_shifted *s, const pe_dd *mean);

enum { PE_SHIFTED_RUN = 16 }; /* values of t computed together */

/* Sets the spacing of t. */
void pe_shifted_step(pe_shifted *s, double ht);

/* R(t) - 1, R = M(q + it)/M(q), at t = (first + k) ht, k < PE_SHIFTED_RUN, with bounds of the absolute errors. */
void pe_shifted_values(const pe_shifted *s, size_t first, double *re, double *im, double *error);

/* Upper bound of |R| for all arguments >= t, with a quadrature error of about e^-digits in it; then, for the same t, t
 * times an upper bound of the integral of |R| over dt/t beyond. */
double pe_shifted_envelope(pe_shifted *s, double t, double digits);
double pe_shifted_beyond(const pe_shifted *s, double t);

/* Upper bound of log M at another lambda of the same law with the same cut, with an error small enough for the number of
 * steps; infinity if there is none (Lemma 10). */
double pe_shifted_log_above(const pe_shifted *s, double lambda);

/* Upper bounds of the probabilities under A and under B that are cut off (Lemma 3). */
void pe_shifted_removed(const pe_shifted *s, double *of_a, double *of_b);

#endif
