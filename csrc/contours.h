/* Compositions of mixtures of normals on contours: rows, and a pair as one kind among others. */
#ifndef PE_CONTOURS_H
#define PE_CONTOURS_H

#include "types.h"

/* ---- composed privacy loss of subsampled Gaussian steps -----------------------------------------
 * loss_nodes.c, strips.c, contour.c, contour_rows.c, spectral.c
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

/* Adds steps of a pair of mixtures of unit normals, or of one of several such pairs of which the
 * release shows which it was, each with the log of its probability.  sizes has the numbers of normals
 * of A and of B for each pair; shift (rising within a side) and weight (of sum 1) have them one behind
 * the other.  The privacy loss must be monotone in z.  To be called before anything is asked of the pair.
 *
 * For proofs the same once more, as sums of two doubles that err by 2^-64 at most, relative: for each
 * alternative its probability and, for each of `terms` shifts of both sides, rising, the shift and its
 * weights in A and in B.  NULL where the numbers are not known so well: then nothing is proven.
 */
int pe_pair_add_mixtures(pe_pair *pair, double steps, size_t alternatives, const double *log_share,
                         const size_t *sizes, const double *shift, const double *weight, const size_t *terms,
                         const double *exact);

/* Adds steps of a law that is known by m nodes: losses, and logs of the probabilities under A.  Sums over
 * them stand for expectations of e^{(lambda + it) L} with |t| <= t_max, to the last digits of a double
 * relative to t = 0, for all lambda that are asked for.  To be called before anything is asked.
 */
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
/* As pe_pair_at, with relative errors that are proven; NaN where the proof does not apply. */
int pe_pair_certify(pe_pair *pair, int functional, size_t n, const double *c, double *rows);

/* Puts rows of divided laws, some 0.1 s each, in the place of those at hand, or of NaN, where they prove more. */
int pe_pair_certify_divided(pe_pair *pair, int functional, size_t n, const double *c, double *rows);

/* The same from all lines of little work: what few sampled Gaussian steps ask before a law is made. */
int pe_pair_certify_soon(pe_pair *pair, int functional, size_t n, const double *c, double *rows);
/* Chernoff's bounds at thresholds, as rows whose errors are proven and large: they say what is next to nothing. */
int pe_pair_chernoff(pe_pair *pair, size_t n, const double *c, double *rows);
/* As pe_pair_solve, with rows of pe_pair_certify alone: slower, and where pe_pair_solve has no contour. */
int pe_pair_certified_solve(pe_pair *pair, int functional, size_t n, const double *log_target, double *rows);

/* Proven rows at thresholds that are looked for on the proven lines themselves: so little beyond the root that the
 * functional, its bounds moved outwards by `slack`, lies below its value, or above it for PE_A_BELOW.  NaN where one
 * line does not prove enough, and other lines of pe_pair_certify may.  `thorough` is one of these. */
enum { PE_THOROUGH = 1, PE_SOON = 2 };
int pe_pair_certify_beyond(pe_pair *pair, int functional, size_t n, const double *log_target, double slack,
                           int thorough, double *rows);
int pe_pair_at(pe_pair *pair, int functional, size_t n, const double *c, double *rows);
int pe_pair_solve(pe_pair *pair, int functional, size_t n, const double *log_target, double *rows);

/* ---- a pair as one kind of step on lines that other kinds share: mixture_kind.c ------------------
 *
 * With M(s) = E_A e^{s S}, S the sum of the pair's losses, on the line Re s = lambda: lambda != 0, 1 such that
 * 1 - lambda is a double, too.  The law ends `farthest`, at most 40, from the shifts of its normals; or further out, where
 * the window of its nodes needs that.
 *
 * Method          nodes, values and bounds of the proven lines of pe_pair_certify (docs/theory/gaussian)
 * Returns         a status: PE_TOO_COSTLY where the proof does not apply
 */
typedef struct pe_mixture_kind pe_mixture_kind;

/* What is known once there are nodes. */
typedef struct {
    double log_m[2];   /* log M(lambda), the sum of both, */
    double log_m_error;
    double mean;       /* a number next to (log M)', which the angles lack times t */
    double mean_error; /* of that, which `error` of the values has times t */
    double removed[2]; /* bounds of the probabilities under A and B of what lies beyond the ends */
    double nodes;      /* their number */
    double log_beyond; /* log of a bound of |M(lambda + it)/M(lambda)| for t >= t_last, */
    double tail;       /* and of the integral of such a bound over dt/t */
} pe_kind_at;

/* At lambda, of the law that ends `farthest` from its shifts. */
int pe_mixture_kind_new(pe_pair *pair, double lambda, double farthest, pe_mixture_kind **out);
void pe_mixture_kind_free(pe_mixture_kind *kind);

/* Before there are nodes: logs of bounds, about, of |M(lambda + it')/M(lambda)| for all t' >= t > 0. */
void pe_mixture_kind_beyond(pe_mixture_kind *kind, size_t n, const double *t, double *log_modulus);

/* Upper bound of log M at another place of the real line. */
double pe_mixture_kind_log_above(const pe_mixture_kind *kind, double lambda);

/* Nodes for values up to t_top, once for each kind, and what is known from t_last on. */
int pe_mixture_kind_finish(pe_mixture_kind *kind, double t_last, double t_top, pe_kind_at *out);

/* Values at t = k ht for k < n, in whole runs of 16 up to t_top, ht of at most 20 bits: log modulus and angle of
 * e^{-it mean} M(lambda + it)/M(lambda), the relative error of its exponential, and log of a bound of the modulus. */
int pe_mixture_kind_values(const pe_mixture_kind *kind, size_t n, double ht, double *log_modulus,
                           double *angle, double *error, double *top);

/* Estimates of log M and its first two derivatives at real places, three numbers for each. */
int pe_pair_cumulants(pe_pair *pair, size_t n, const double *lambda, double *out);

/* Upper bound of log M at a place of the real line, of the law that ends 40 from its shifts, and of what that lacks of A and
 * of B: three numbers. */
int pe_pair_log_above(pe_pair *pair, double lambda, double *out);

#endif
