/* Compositions of mixtures of normals: rows from sums along vertical lines (estimated and proven), and such a
 * composition as one kind of step among others. */
#ifndef PE_CONTOURS_H
#define PE_CONTOURS_H

#include "types.h"

/* ---- composed privacy loss of subsampled Gaussian steps -----------------------------------------
 * Estimates: loss_nodes.c, strips.c, contour.c, contour_rows.c, spectral.c.  Proofs: proven.c, certified.c, divided.c.
 *
 * An ordered pair (A, B) of laws; S is the sum of the losses log dB/dA of all steps.
 */

typedef struct pe_pair pe_pair;

/* A composition of n kinds of steps, each with its noise multiplier, sampling probability in (0, 1]
 * and number of steps >= 1.  A is the law without the record and B with it; the other way round
 * where reversed.  cost_limit bounds the node evaluations spent on one contour.  Returns a status;
 * *out must be freed in any case.  Not safe for concurrent use: contours are built when first
 * needed and kept.
 */
int pe_pair_new(size_t n, const double *noise, const double *p, const double *steps, int reversed,
                double cost_limit, pe_pair **out);

/* Adds steps whose law is one of `alternatives` pairs of mixtures of unit normals; the release shows which, and
 * log_share is the log of its probability.  sizes: the numbers of normals of A and of B for each pair; shift (rising
 * within a side) and weight (of sum 1): those of all sides, one after the other.  The privacy loss must be monotone in
 * z.  To be called before anything is asked of the pair.
 *
 * exact, for proofs: the same as sums of two doubles with relative errors of at most 2^-64, for each alternative its
 * probability and, for each of its `terms` shifts of both sides, rising, the shift and its weights in A and in B.  With
 * NULL nothing is proven.  / */
int pe_pair_add_mixtures(pe_pair *pair, double steps, size_t alternatives, const double *log_share,
                         const size_t *sizes, const double *shift, const double *weight, const size_t *terms,
                         const double *exact);

/* Adds steps of a law given by m nodes: losses L, and logs of their probabilities under A.  The sums over them must
 * give E_A e^{(lambda + it) L} for |t| <= t_max and all lambda asked for, to the precision of doubles relative to t =
 * 0.  To be called before anything is asked.  / */
int pe_pair_add_table(pe_pair *pair, double steps, size_t m, const double *loss, const double *log_weight,
                      double t_max);
void pe_pair_free(pe_pair *pair);
size_t pe_pair_bytes(const pe_pair *pair); /* memory of a pair with the contours built so far */

/* Rows of PE_ROW values at each c, on contours that suit the named functional, or at the c that
 * solves log functional = log_target (for PE_A_ABOVE, PE_A_BELOW and PE_PROFILE).
 *
 * Domain          c finite; log_target < 0, not below -760
 * Method          trapezoidal rule on a vertical line near the saddle point (docs/theory/line)
 * Errors          relative, per functional; infinite where the contour does not give it.  Aliases
 *                 are bounded; quadrature, truncation and rounding are estimates.
 * Returns         the worst status; a row that failed is NaN
 */
int pe_pair_at(pe_pair *pair, int functional, size_t n, const double *c, double *rows);
int pe_pair_solve(pe_pair *pair, int functional, size_t n, const double *log_target, double *rows);

/* As pe_pair_at, with relative errors that are proven; NaN where the proof does not apply.  PE_SOON: lines of little work
 * only, asked of few sampled Gaussian steps before their law is made. */
enum { PE_THOROUGH = 1, PE_SOON = 2 };
int pe_pair_certify(pe_pair *pair, int functional, int thorough, size_t n, const double *c, double *rows);

/* Replaces rows (also those of NaN) by rows of divided laws where these have smaller errors; some 0.1 s each. */
int pe_pair_certify_divided(pe_pair *pair, int functional, size_t n, const double *c, double *rows);

/* Chernoff's bounds as rows with relative errors of 1: proof that a value is tiny. */
int pe_pair_chernoff(pe_pair *pair, size_t n, const double *c, double *rows);

/* As pe_pair_solve by rows of pe_pair_certify: slower, for where pe_pair_solve has no contour. */
int pe_pair_certified_solve(pe_pair *pair, int functional, size_t n, const double *log_target, double *rows);

/* Proven rows just beyond the roots of log functional = log_target: the functional, its bounds moved outwards by
 * `slack`, is proven to be below its target, or above it for PE_A_BELOW.  NaN if the line of the root's place does not
 * prove that; other lines of pe_pair_certify may. */
int pe_pair_certify_beyond(pe_pair *pair, int functional, double slack, int thorough, size_t n,
                           const double *log_target, double *rows);

/* ---- a pair as one kind of step on lines that other kinds share: mixture_kind.c ------------------
 *
 * Its transform M(s) = E_A e^{s S}, S the sum of the pair's losses, on the line Re s = lambda, with lambda != 0, 1 such
 * that 1 - lambda is a double, too.  The law is cut off at `farthest` <= 40 from the shifts of its normals, or further
 * out if the nodes' window reaches further.
 *
 * Method          nodes, values and bounds of the proven lines of pe_pair_certify (docs/theory/gaussian)
 * Returns         a status: PE_TOO_COSTLY where the proof does not apply
 */
typedef struct pe_mixture_kind pe_mixture_kind;

/* Known once there are nodes. */
typedef struct {
    double log_m[2]; /* log M(lambda) as a sum of two doubles, */
    double log_m_error; /* and a bound of its error */
    double mean; /* about (log M)'; t times it is taken off the angles */
    double mean_error; /* bound of its rounding; t times it is part of the values' `error` */
    double removed[2]; /* bounds of the probabilities under A and B that are cut off */
    double nodes; /* their number */
    double log_beyond; /* log of a bound of |M(lambda + it)/M(lambda)| for t >= t_last, */
    double tail; /* and bound of the integral of that modulus over dt/t from t_last on */
} pe_kind_at;

/* Begins the kind at lambda. */
int pe_mixture_kind_new(pe_pair *pair, double lambda, double farthest, pe_mixture_kind **out);
void pe_mixture_kind_free(pe_mixture_kind *kind);

/* Estimates, before there are nodes, of the log of a bound of |M(lambda + it')/M(lambda)| for all t' >= t > 0. */
void pe_mixture_kind_beyond(pe_mixture_kind *kind, size_t n, const double *t, double *log_modulus);

/* Upper bound of log M at another real lambda. */
double pe_mixture_kind_log_above(const pe_mixture_kind *kind, double lambda);

/* Makes nodes for values up to t_top, once for each kind, and bounds the transform from t_last on. */
int pe_mixture_kind_finish(pe_mixture_kind *kind, double t_last, double t_top, pe_kind_at *out);

/* Values at t = k ht for k < n, in whole runs of 16 up to t_top, where ht has at most 20 bits: log modulus and angle of
 * e^{-it mean} M(lambda + it)/M(lambda), a bound of the relative error of its exponential, and the log of a bound of the
 * modulus. */
int pe_mixture_kind_values(const pe_mixture_kind *kind, size_t n, double ht, double *log_modulus,
                           double *angle, double *error, double *top);

/* Estimates of log M and its first two derivatives at real lambda, three numbers for each. */
int pe_pair_cumulants(pe_pair *pair, size_t n, const double *lambda, double *out);

/* Three numbers: upper bounds of log M at a real lambda, of the law cut off at 40 from its shifts, and of the
 * probabilities under A and B that are cut off. */
int pe_pair_log_above(pe_pair *pair, double lambda, double *out);

#endif
