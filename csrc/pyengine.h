/* C interface of the numerical core.
 *
 * No globals, no printing, no Python.  Array forms are serial and elementwise: out[i] has the same bits as the scalar form at x[i], whatever n is, and
 * out may be equal to x.  NaN in gives NaN out; an argument outside the domain gives NaN.
 *
 * "Observed error" is the largest error measured against 60-digit arithmetic, in units of the last
 * place of the true value rounded to double (ulp), by tests/test_special_normal.py, which fails
 * when it is exceeded by a factor 4.
 */
#ifndef PYENGINE_H
#define PYENGINE_H

#include <stddef.h>
#include <stdint.h>

/* A number as a sum of two doubles, |l| at most half an ulp of h. */
typedef struct {
    double h, l;
} pe_dd;

/* Which clone of the array kernels this machine runs.
 *
 * Definition      4 or 3 for the clone of x86-64-v4 or -v3, 1 for the default one, 0 where the
 *                 compiler made no clones (csrc/simd.h)
 */
int pe_simd_level(void);

/* Elementary functions, at a number and at n of them.
 *
 * Domain          all doubles; sin and cos up to 2^50, pow of normal x below 2^1022 and of 0 to a positive power; NaN
 *                 elsewhere
 * Method          csrc/doubles.h: polynomials after a reduction; the same bits on every machine
 * Error           2 units in the last place of exp, expm1, log and log1p, 4 of sin, cos, atan2(y, x), hypot and pow, 16
 *                 units of 2^-53 of erfc itself (docs/theory/arithmetic); logaddexp is made of these: log(e^x + e^y), of
 *                 which pe_log_sums gives running sums.
 */
double pe_exp_at(double x);
double pe_expm1_at(double x);
double pe_log_at(double x);
double pe_log1p_at(double x);
double pe_sin_at(double x);
double pe_cos_at(double x);
double pe_erfc_at(double x);
double pe_atan2_at(double x, double y);
double pe_hypot_at(double x, double y);
double pe_pow_at(double x, double y);
double pe_logaddexp_at(double x, double y);
void pe_exp_array(size_t n, const double *x, double *out);
void pe_expm1_array(size_t n, const double *x, double *out);
void pe_log_array(size_t n, const double *x, double *out);
void pe_log1p_array(size_t n, const double *x, double *out);
void pe_sin_array(size_t n, const double *x, double *out);
void pe_cos_array(size_t n, const double *x, double *out);
void pe_erfc_array(size_t n, const double *x, double *out);
void pe_atan2_array(size_t n, const double *x, const double *y, double *out);
void pe_hypot_array(size_t n, const double *x, const double *y, double *out);
void pe_pow_array(size_t n, const double *x, const double *y, double *out);
void pe_logaddexp_array(size_t n, const double *x, const double *y, double *out);
void pe_log_sums(size_t n, const double *x, double *out);

/* Standard normal density.
 *
 * Definition      phi(x) = exp(-x^2/2)/sqrt(2 pi)
 * Domain          all x
 * Method          x^2 as an exact sum of two doubles, so that rounding the exponent costs nothing;
 *                 scaled by a power of e below the normal range, so that it is rounded once
 * Observed error  2.6 ulp
 * Source          T. J. Dekker, Numer. Math. 18 (1971) 224, for the exact square
 */
double pe_normal_pdf(double x);
void pe_normal_pdf_array(const double *x, double *out, size_t n);

/* Standard normal distribution function.
 *
 * Definition      Phi(x) = integral of phi from -infinity to x
 * Domain          all x
 * Method          |x| < 0.7: 1/2 + x R(x^2); left of it phi(x)/(|x| + e(|x|)), where the excess e of
 *                 the hazard rate over its argument is a rational function of |x| below 6 and of
 *                 1/x^2 above; right tail by reflection
 * Observed error  3.3 ulp, also where the result is subnormal
 * Source          intervals as W. J. Cody, Math. Comp. 23 (1969) 631; coefficients by
 *                 tools/normal_coefficients.py
 */
double pe_ndtr(double x);
void pe_ndtr_array(const double *x, double *out, size_t n);

/* Logarithm of the standard normal distribution function.
 *
 * Definition      log Phi(x)
 * Domain          all x
 * Method          x < -0.7: -x^2/2 - log(sqrt(2 pi) (|x| + e(|x|))); |x| < 0.7: log Phi; else
 *                 log1p(-Phi(-x))
 * Observed error  3.6 ulp
 * Source          as pe_ndtr
 */
double pe_log_ndtr(double x);
void pe_log_ndtr_array(const double *x, double *out, size_t n);

/* Quantile of the standard normal distribution.
 *
 * Definition      the x with Phi(x) = p
 * Domain          0 <= p <= 1; -infinity and infinity at the ends
 * Method          |p - 1/2| <= 0.425: rational function; else one Halley step on log Phi from a
 *                 rational starting value, with a residual accurate beyond double precision
 * Observed error  2.2 ulp
 * Source          variables of M. J. Wichura, Appl. Statist. 37 (1988) 477; coefficients by
 *                 tools/normal_coefficients.py
 */
double pe_ndtri(double p);
void pe_ndtri_array(const double *p, double *out, size_t n);

/* Quantile of the standard normal distribution at a probability given by its logarithm.
 *
 * Definition      the x with log Phi(x) = y
 * Domain          y <= 0; -infinity at y = -infinity, infinity at y = 0
 * Method          as pe_ndtri; the centre from expm1(y + log 2), the right tail from expm1(y), so
 *                 that no digit of y is lost; below -1e20 the leading term -sqrt(-2 y) is exact
 * Observed error  3.9 ulp
 * Source          as pe_ndtri
 */
double pe_ndtri_exp(double y);
void pe_ndtri_exp_array(const double *y, double *out, size_t n);

/* ---- composed privacy loss of subsampled Gaussian steps -----------------------------------------
 * loss_nodes.c, strips.c, contour.c, contour_rows.c, spectral.c
 *
 * An ordered pair (A, B) of laws; S is the sum of the losses log dB/dA of all steps.
 */
/* What functions return that can fail, inside of the core as well: one of these and nothing else, 0 if all
 * is well.  Memory that is not to be had is told from work that is too much, and neither is answered in
 * silence: pyengine/_support/status.py turns them into errors.  Other functions that return int are predicates, or
 * say which of several things they mean. */
enum pe_status {
    PE_OK = 0,
    PE_NO_MEMORY = 1,
    PE_TOO_COSTLY = 2, /* beyond the limit of work, or of what is proven */
};

/* Functionals of a threshold c. */
enum pe_functional {
    PE_A_ABOVE = 0, /* A(S > c) */
    PE_A_BELOW = 1, /* A(S <= c) */
    PE_B_ABOVE = 2, /* B(S > c) */
    PE_B_BELOW = 3, /* B(S <= c) */
    PE_PROFILE = 4, /* E_A max(0, 1 - e^{S-c}): the hockey-stick divergence H(A||B) at epsilon = -c */
};

enum {
    PE_FUNCTIONALS = 5,
    PE_ALTERNATIVES = 4, /* pairs that one step may be */
    PE_CHEBYSHEV = 16, /* coefficients of a panel */
    PE_ROW = 12, /* c, log of the density of S under A, 5 log values, 5 relative errors */
    PE_BOUNDS = 20, /* of proven rows: row_bounds.c */
    PE_ASIDES = 8,  /* attempts at a second threshold */
};

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

/* The same where few sampled Gaussian steps have no close row elsewhere: divided laws, some 0.1 s each, are asked, too. */
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

/* ---- one epoch of random allocation: allocation.c, epoch_rows.c ---------------------------------
 *
 * The law of L = log dP/dQ, Q = N(0, sigma^2 I_t), P the mean of N(e_i, sigma^2 I_t), or the sum of the
 * losses of several such epochs.
 */
typedef struct pe_epoch pe_epoch;

/* The density of L under Q, and the masses of its tails under both laws.  Immutable once made; *out
 * must be freed in any case.  Returns a status.
 *
 * Domain          0.1 <= noise, steps an integer from 2 to 2^30, epochs one from 1 on
 * Method          doubling by convolution of densities in logarithms (docs/estimates)
 * Error           an estimate, see there
 */
int pe_epoch_new(double noise, double steps, double epochs, pe_epoch **out);
void pe_epoch_free(pe_epoch *epoch);
size_t pe_epoch_bytes(const pe_epoch *epoch);

/* Four numbers: the least and the largest loss of the table, beyond which both laws have a mass below
 * e^-760; the masses of Q and P before they were made 1, less 1. */
void pe_epoch_ends(const pe_epoch *epoch, double *out);

/* Log of the density of L under Q; -infinity beyond the ends. */
void pe_epoch_log_density(const pe_epoch *epoch, size_t n, const double *loss, double *out);

/* Rows as of pe_pair_at and pe_pair_solve, with A = Q and B = P, or reversed with A = P, B = Q and
 * the loss -L. */
int pe_epoch_at(const pe_epoch *epoch, int functional, size_t n, const double *c, double *rows);
int pe_epoch_solve(const pe_epoch *epoch, int functional, size_t n, const double *log_target, double *rows);
int pe_epoch_reversed_at(const pe_epoch *epoch, int functional, size_t n, const double *c, double *rows);
int pe_epoch_reversed_solve(const pe_epoch *epoch, int functional, size_t n, const double *log_target,
                            double *rows);

/* ---- one step in closed form: closed_form.c ----------------------------------------------------
 *
 * N(0,1) against (1-p) N(0,1) + p N(mu,1), in this order, reversed, or the worse of both; with p = 1,
 * `plain`, also any composition of Gaussians, mu^2 being the sum of their squares.
 */
enum { PE_ADD = 0, PE_REMOVE = 1, PE_ADD_REMOVE = 2 };

typedef struct {
    pe_dd mu, half_square; /* 2^-400 <= mu <= 2^400, mu^2/2 */
    pe_dd p, rest;         /* 0 < p <= 1, 1 - p */
    pe_dd log_p, floor;    /* log p and log(1 - p), each to 2^-105 relative; not used where plain */
    int plain, order;
    int inexact; /* 0 where rest.h + rest.l is 1 - p exactly */
} pe_step;

/* Values between bounds.  Three numbers: the value, a lower and an upper bound; for a trade-off function
 * those of beta, those of gamma and the c of the slope -e^c.
 *
 * Domain          0 <= alpha <= 1, 0 <= epsilon <= infinity, 0 <= delta <= 1
 * Method          closed forms in sums of two doubles; inverses by Newton's method
 * Error           bounds are proven, floating point included (docs/theory/closed_form)
 */
void pe_step_trade_off(const pe_step *step, size_t n, const double *alpha, double *out);
void pe_step_profile(const pe_step *step, size_t n, const double *epsilon, double *out);
void pe_step_epsilon(const pe_step *step, size_t n, const double *delta, double *out);

/* ---- sums over gradient norms, and over frequencies: norm_moments.c -------------------------------------
 *
 * Definition      moments[i][b][d] += times[j] times polynomial d of the norm j of record i on its block b,
 *                 interpolated linearly between the nodes 2^-octaves (1 + k 2^-bits) 2^m of norm / clip;
 *                 `rows` nodes are a block, basis has `degree` polynomials at rows + 1 of them.  count:
 *                 norms > 0; below: those below the first node
 * Domain          norm >= 0 finite, clip > 0, 2 <= bits <= 20, rows a divisor of 2^bits
 * Error           as of sums of so many products: (columns + 4) 2^-53 times those of absolute values
 */
typedef struct {
    int octaves, bits, rows, degree;
} pe_norm_grid;
void pe_norm_moments(const pe_norm_grid *grid, size_t records, size_t columns, const double *norm,
                     double clip, const double *times, const double *basis, double *moments, double *count,
                     double *below);

/* Definition      out[i] = Re of the sum over f = 1, ..., n of parts[i][f] turn[i]^f, |turn[i]| = 1
 * Method          Horner's scheme
 * Error           8 n 2^-53 times the sum of |parts[i][f]|, if turn is within 2^-52
 */
void pe_turned_sums(size_t records, size_t n, const double *parts, const double *turn, double *out);

/* ---- transforms of laws with finitely many losses: loss_transform.c -------------------------------------
 *
 * Definition      sum over j of share[j] (e^{i t apart[j]} - 1) at each of n frequencies t
 * Domain          |t apart[j]| < 1e8; share[j] >= 0
 * Method          e^{ib} - 1 by csrc/lane_trig.h, sums in 8 lanes
 * Error           at most (m/8 + 20) 2^-53 times the sum of share[j] |t apart[j]|, of the modulus
 *                 (docs/theory/laplace)
 */
void pe_loss_transform(size_t n, const double *frequency, size_t m, const double *apart, const double *share,
                       double *real, double *imag);

/* The same at the frequencies k spacing, k < n.
 *
 * Domain          as above, with k spacing exact
 * Method          e^{i(a + b)} - 1 is (e^{ia} - 1) e^{ib} and e^{ib} - 1, a the angle at the begin of a run of 32 frequencies
 * Error           at most (m/8 + 40) 2^-53 times the sum of share[j] |t apart[j]|
 * Returns         a status
 */
int pe_loss_transform_grid(size_t n, double spacing, size_t m, const double *apart, const double *share,
                           double *real, double *imag);

/* ---- integrals along rays: ray_sums.c ----------------------------------------------------------------------
 *
 * Definition      sum over j < 8 blocks[i] of e^{factor[i] node[j]} weight[j] at each of n complex factors, for
 *                 each of at most 3 kinds of weights in row[i] of them
 * Domain          the real part of factor node is at most 0, and the imaginary one below 1e8 in size; size
 *                 is a multiple of 8, weights are rows of kinds of size numbers, out pairs for each kind
 * Method          e^z by csrc/lane_trig.h, sums in 8 lanes; 0 where the real part is below -708
 * Error           at most (size/8 + 16 + 6 |factor node|) 2^-53 for each term (docs/theory/laplace)
 */
void pe_ray_sums(size_t n, const double *factor, const int64_t *blocks, const int64_t *row, size_t size,
                 const double *node_real, const double *node_imag, size_t kinds, const double *weight_real,
                 const double *weight_imag, double *out);

/* Integrals beyond the turn of a line: ray_sums.c.  Nodes and weights of a ray; weights are rows of places of `kinds`
 * rows of `size` numbers. */
typedef struct {
    const double *node_real, *node_imag, *weight_real, *weight_imag;
    size_t size, kinds;
} pe_ray;

/* For n thresholds the sums over all places of the imaginary part of the sum of e^{x node} weight, on the ray to the
 * right where the place is at x < 0 from the threshold, else on that to the left, for some kinds from a first one on.
 *
 * Domain          as of pe_ray_sums; a place takes about log2(reach/|x|) + 1 panels of `blocks` blocks of 8 nodes,
 *                 at least `least` and at most `most`, which both rays have
 * Error           as of pe_ray_sums
 */
void pe_place_integrals(size_t n, size_t places, const double *x, double reach, int64_t least, int64_t most,
                        size_t blocks, const pe_ray *right, const pe_ray *left, size_t first, size_t kinds,
                        double *out);

/* What atoms at those places have in the integrals of e^{-tilt x} over the poles' sides, added to `out`
 * (docs/theory/laplace): sums one after the other. */
void pe_atom_integrals(size_t n, size_t places, const double *x, const double *mass, double tilt,
                       size_t first, size_t kinds, double *out);

/* ---- trigonometric sums: trig_sums.c -----------------------------------------------------------------------
 *
 * Definition      sum over j of real[k, j] cos(z t_j) + imag[k, j] sin(z t_j) at each of n numbers z, for at most 3
 *                 kinds k; out has n rows
 * Domain          size a multiple of 8, frequencies from 0 on, rising
 * Method          e^{ib} by csrc/lane_trig.h, sums in 8 lanes; sines of csrc/doubles.h and one sum where an angle may exceed 1e8
 * Error           at most (size + 12 + 4 z t_j) 2^-53 for each weight's modulus; NaN where an angle is 2^50 or more
 */
void pe_trig_sums(size_t n, const double *z, size_t size, const double *frequency, size_t kinds,
                  const double *real, const double *imag, double *out);

/* ---- levels of a test from masses at thresholds: levels.c ----------------------------------------------------
 *
 * `tails` are six arrays of `points` rows of n numbers: A's masses above and below thresholds c, B's, bounds on their
 * relative errors, and by how much thresholds are moved (docs/theory/conversions).  Arrays of c, reach and the bounds of
 * single points have that shape as well.
 *
 * Error           bounds are safe where the few operations of a bound err by at most `rounding` of its terms: 16 2^-53
 */

/* Bounds of A's mass above less alpha. */
void pe_level_excess(size_t points, size_t n, const double *alpha, const double *tails, double rounding,
                     double *least, double *most);

/* Lower bounds of beta and upper ones of gamma on lines of slopes e^(c -+ reach). */
void pe_level_tangents(size_t points, size_t n, const double *alpha, const double *c, const double *reach,
                       const double *tails, double rounding, double *below, double *above);

/* Four numbers for each level: a lower and an upper bound of beta, and of gamma.  `shown` is B's mass where A has
 * none. */
void pe_level_bounds(size_t points, size_t n, const double *alpha, const double *c, const double *tails,
                     double rounding, double shown, double *out);

/* Beta and gamma on the line between the points on both sides of a level, of at least 2 in falling order of c, and
 * the row of the first. */
void pe_level_between(size_t points, size_t n, const double *alpha, const double *tails, double *out,
                      int64_t *row);

/* ---- n >= 2 Gauss-Legendre nodes on (0, 1), rising, and weights: gauss.c ---------------------------------
 *
 * Definition      sums of two doubles: n upper parts in each array, and n lower ones
 * Method          Newton's method on the recurrence of the polynomials with maximum 1
 * Error           docs/theory/line
 */
void pe_gauss_nodes(size_t n, double *place, double *weight);

/* ---- nodes of steps on lines: step_nodes.c -------------------------------------------------------------
 *
 * Definition      arrays of n sums of two doubles have n upper parts, and n lower ones behind them; a mass is one times a
 *                 power of 2.  Losses origin + sign log(1 + (e^v - 1)/slope) for v in (0, span), span <= 60, of the density
 *                 (falling e^(-v/2) + rising e^(v/2))/4, by Gauss's rules between the edges, the last of which is span.
 *                 Losses in [-epsilon, epsilon], epsilon <= 8192, of a density proportional to e^(-loss/2).
 * Error           docs/theory/line
 */
typedef struct {
    pe_dd span, slope, origin, falling, rising;
    double sign;
} pe_laplace_branch;

void pe_laplace_nodes(const pe_laplace_branch *branch, size_t panels, const double *edges, size_t size,
                      const double *place, const double *weight, double *loss, double *mass);

void pe_range_nodes(double epsilon, size_t panels, size_t size, const double *place, const double *weight,
                    double *loss, double *mass, double *power);

/* value 2^power = e^x for x <= 16000; of x below -16000 nothing. */
void pe_wide_exp(size_t n, const double *x, double *value, double *power);

/* log(x 2^power) for x that are normal doubles, minus infinity for 0. */
void pe_wide_log(size_t n, const double *x, const double *power, double *value);

/* The log of the mean of e^(tilt loss), each node's share of it, and how far each loss is from the centre, which is
 * returned and next to the tilted mean. */
double pe_step_at_tilt(size_t n, const double *loss, const double *mass, const double *power, double tilt,
                       pe_dd *log_mean, double *share, double *apart);

/* That log less `top`, the largest term's. */
double pe_log_mean_of_nodes(size_t n, const double *loss, const double *log_mass, double tilt, double *top);

/* Sums of the first 1, ..., n numbers */
void pe_running_sums(size_t n, const double *x, double *out);

/* a - b c, rounded */
void pe_less_products(const pe_dd *a, double b, size_t n, const double *c, double *out);

/* ---- from rows with proven errors to bounds: row_bounds.c ----------------------------------------------
 *
 * PE_BOUNDS numbers for each threshold: for each functional lower and upper bound of its log, and of its
 * value.  `slack` is a relative error by which all of them are moved outwards, for rounding; what a row
 * does not know is bounded by 0 and 1.
 */
void pe_bounds_of_rows(size_t n, const double *rows, double slack, double *bounds);

/* Lower bounds of beta and upper ones of gamma from tests of thresholds c: T lies above its tangent of slope
 * -e^c.  The level is `tail` of the functional, PE_A_ABOVE, or PE_A_BELOW for levels above 1/2. */
void pe_bounds_line(size_t n, int functional, const double *tail, const double *c, const double *bounds,
                    double slack, double *beta, double *gamma);

/* Upper bounds of beta and lower ones of gamma from tests of thresholds c, and others `beyond` at which the level
 * is proven to be passed; infinity where that is not known. */
void pe_bounds_chord(size_t n, int functional, const double *tail, const double *beyond, const double *bounds,
                     double slack, double *beta, double *gamma);

/* The way to `beyond`: thresholds `at` that may serve, at the first attempt and, where `there`, the bounds at those of
 * the last attempt, proves nothing, at the others; NaN where none is needed.  Returns how many are to be asked: 0 at
 * attempt PE_ASIDES, which only judges. */
size_t pe_bounds_aside(size_t n, int functional, const double *tail, const double *c, const double *bounds,
                       size_t attempt, const double *there, double *beyond, double *at);

/* Each of beta and gamma also bounds the other, which has the digits where one of them is near 1; none is above 1. */
void pe_bounds_cross(size_t n, double *beta_low, double *beta_high, double *gamma_low, double *gamma_high);

/* What rows near a threshold say of beta and gamma, and of epsilon, were they exact: on the tangent.  NaN where they say
 * nothing. */
void pe_bounds_best(size_t n, int functional, const double *tail, const double *rows, double *beta,
                    double *gamma);
void pe_bounds_best_epsilon(size_t n, const double *delta, const double *rows, double *epsilon);

/* All of that for one row: lower and upper bounds of beta and of gamma, and both values, with the bits of arrays; 0
 * where a second threshold is needed.  And both bounds of epsilon and its value; 0 where one row does not prove them. */
int pe_bounds_level(int functional, double tail, const double *row, double slack, double *out);
int pe_bounds_epsilon(double delta, const double *row, double slack, double *out);

/* Lower bounds of epsilon at delta from profiles at thresholds c = -epsilon', which are convex in e^epsilon, and how
 * far from epsilon' a profile is on the right side of delta; the bounds are 0 where the tangent says nothing. */
void pe_bounds_tangent(size_t n, const double *delta, const double *c, const double *bounds, double slack,
                       double *lower, double *step);

/* Lower bounds of the profile at |c| that a line of slope e^c has: of B against A where c >= 0. */
void pe_bounds_gain(size_t n, const double *c, const double *bounds, double slack, double *gain);

/* ---- what steps say without a transform: ends.c ---------------------------------------------------------
 *
 * Of n kinds of sampled Gaussian steps: the largest loss of A without the record, -sum of steps log(1 - p), with a lower
 * and an upper bound; an upper bound of the profile at 0, the sum of what lies between the laws of the steps, and no
 * more than the probability that any step samples.
 */
void pe_largest_loss(size_t n, const double *p, const double *steps, double *out);
double pe_most_at_zero(size_t n, const double *noise, const double *p, const double *steps);

/* Levels whose tests take next to nothing but the outcomes of the largest likelihood ratio, or leave out nothing else:
 * no step samples the record there, or nearly so, and thresholds differ from the largest loss by less than doubles do.
 *
 * Definition      the log of the tail that is the level, below which there are bounds: -infinity where there are none; and
 *                 these: lower and upper ones of beta and of gamma, both values, and a threshold.  0 where ratios are
 *                 further apart, or the tail is not the functional that suits the order
 * Method          losses of steps beyond the smallest one add up: all n are at most y/n with A's probability of at least
 *                 the product of those of each
 */
double pe_log_next_to_largest(size_t n, const double *noise, const double *p, const double *steps,
                              int reversed);
int pe_next_to_largest(size_t n, const double *noise, const double *p, const double *steps, int reversed,
                       int functional, double log_tail, double *out);

/* ---- parameters in, answer out: plan.c ------------------------------------------------------------------
 *
 * What is known of one order besides its rows; `known` tells what of it, and is 0 at first.
 */
enum { PE_ASKS_BETA = 0, PE_ASKS_GAMMA = 1, PE_ASKS_DELTA = 2, PE_ASKS_EPSILON = 3 };

typedef struct {
    int known;
    double largest;      /* upper bound of the loss: bit 1 of `known` where it is given */
    double most_at_zero; /* upper bound of the profile at 0 that needs no row */
    double likely;       /* log of levels below which tests take the largest ratio alone */
    double zero[3];      /* the profile at 0 and its bounds */
    double straight[2];  /* levels between which the hull of both orders is a line */
} pe_order;

/* How questions are asked: with bounds of values and of those below 1e-30 that are no wider than `widest`, relative.
 * Rows of errors of `enough` need no law of few steps, which others have whose values' logs are not below `smallest`,
 * and which comes before all lines but the nearest ones for the `fewest` steps. */
typedef struct {
    double widest[2], enough, few, fewest, smallest, slack;
    pe_order order[2];
} pe_plan;

/* Value, lower and upper bound of an answer: of one order where there is no second pair, else of `add` and `remove`.
 *
 * Domain          x as of the question; at the ends of the domain arrays know the answer
 * Returns         a status: PE_TOO_COSTLY where arrays, or engines other than lines, may know more
 */
int pe_plan_one(pe_plan *plan, pe_pair *first, pe_pair *second, int question, double x, double *out);

/* The same of n compositions of equal steps, `orders` being PE_ADD, PE_REMOVE or PE_ADD_REMOVE: 3 numbers for each, and
 * whether they are the answer.  Neighbours that are equal share their lines.  A `stop` that is not 0 ends the work:
 * what was not reached is not answered. */
int pe_plan_many(const pe_plan *like, int orders, double cost_limit, size_t n, const double *noise,
                 const double *rate, const double *steps, int question, const double *x,
                 const volatile unsigned char *stop, double *out, unsigned char *answered);

/* Where levels of the hull of both orders are on the line 1 - alpha less the profile at 0, and close enough: beta and
 * gamma there, each with its bounds.  Returns how many are. */
size_t pe_straight_levels(size_t n, const double *alpha, const double *zero, const double *straight,
                          const double *widest, double *beta, double *gamma, unsigned char *where);

/* ---- from rows to answers: functionals.c ------------------------------------------------------------
 *
 * Error that matters to whoever asked for a functional: its own and, for a tail, that of the smaller
 * of B's two tails, unless that one is 0 in double precision; infinite where there is no row.
 */
double pe_row_error(const double *row, int functional);

/* Whether that error is within a limit, which is another one for values below 1e-30. */
int pe_row_good(const double *row, int functional, double limit, double limit_tiny);
void pe_rows_judge(size_t n, const double *rows, int functional, double limit, double limit_tiny,
                   double *errors, unsigned char *good);

/* Log of alpha, or of 1 - alpha above 1/2: the tail that is solved for, PE_A_ABOVE or PE_A_BELOW;
 * and the plain logarithm: NumPy's has other bits. */
double pe_log_tail(double alpha);
void pe_log_tails(size_t n, const double *alpha, double *out);
double pe_natural_log(double x);
void pe_natural_logs(size_t n, const double *x, double *out);

/* Values with lower and upper bounds: 6 numbers, for beta and for gamma, from rows solved for the
 * tails of 0 < alpha < 1; 3 numbers for a profile; 3 for the epsilon at which it was solved.
 */
void pe_trade_off_answers(size_t n, const double *alpha, const double *rows, double *out);
void pe_profile_answers(size_t n, const double *rows, double *out);
void pe_epsilon_answers(size_t n, const double *rows, double *out);

/* ---- interpolated answers: chebyshev.c --------------------------------------------------------------
 *
 * Values at s[0..n-1] of the polynomials sum_j coefficients[PE_CHEBYSHEV * i + j] T_j(t), i < panels, where panel
 * i covers [(first + i) width, (first + i + 1) width) and t runs from -1 to 1 over it; their exponentials where
 * they are logs.  NaN outside of the panels, and on one whose coefficients are NaN.
 */
void pe_chebyshev_panels(size_t n, const double *s, double width, long first, size_t panels,
                         const double *coefficients, int of_log, double *out);

/* ---- composed privacy loss with proven errors: sector_*.c ----------------------------------------------- */

typedef struct pe_sector pe_sector;
typedef struct pe_sector_pieces pe_sector_pieces;
pe_sector_pieces *pe_sector_pieces_new(void);
void pe_sector_pieces_free(pe_sector_pieces *p);

/* The law under N(0, 1) of the loss of one Poisson-sampled Gaussian step, and of the sum of two independent losses.
 *
 * Definition      shift = 1/noise, ratio = p/(1 - p) and floor = log(1 - p), the smallest loss, each as a sum of two
 *                 doubles; `deepest` is the log density at the low end of the law, `rarest` about the log probability under
 *                 B above the high one; `steps` is how many steps sums will have, which makes the high end lie far
 *                 enough; `reach`, up to where tables go at least, is the largest pe_sector_reach of all steps of a sum;
 *                 `pieces` are nodes that sums of one thread share
 * Domain          0 < p < 1; *out must be freed in any case
 * Method          the density over the logarithm of the loss beyond the smallest one, polynomials on panels; sums by
 *                 Gauss's rule; what both are off by is proven (docs/theory/sector_laws)
 * Returns         a status: PE_TOO_COSTLY where no proof is found, or at too high a price
 */
int pe_sector_step(const double *shift, const double *ratio, const double *floor, double probability,
                   double deepest, double rarest, double steps, double reach, pe_sector **out);
/* The law of one likelihood ratio of a plain Gaussian step, of as many as `steps` whose mean is asked. */
int pe_sector_ratio(const double *shift, double deepest, double steps, pe_sector **out);
int pe_sector_convolve(const pe_sector *a, const pe_sector *b, pe_sector_pieces *pieces, pe_sector **out);
/* The law of both losses together, of means of ratios. */
int pe_sector_compose(const pe_sector *a, const pe_sector *b, pe_sector_pieces *pieces, pe_sector **out);
void pe_sector_free(pe_sector *a);
size_t pe_sector_bytes(const pe_sector *a);
size_t pe_sector_panels(const pe_sector *a);
/* Nodes that were summed on the way to a law; what its loss has at both ends. */
double pe_sector_work(const pe_sector *a);
double pe_sector_reach(const pe_sector *a);
void pe_sector_ends(const pe_sector *a, double *ends);
double pe_sector_error(const pe_sector *a); /* proven bound of the relative error of densities */

/* Keeps integrals beyond all edges of panels, which rows and thresholds of a law need: a status. */
int pe_sector_keep(pe_sector *a);

/* Rows as pe_pair_at gives them, whose errors are proven: a status. */
int pe_sector_at(const pe_sector *a, int reversed, size_t n, const double *c, double *rows);

/* Thresholds where the log of a functional has values, of a law that keeps its integrals: the ends of the law where they lie
 * beyond these, NaN for NaN.  They enter no bound. */
void pe_sector_solve(const pe_sector *a, int reversed, int functional, size_t n, const double *log_target,
                     double *c);

/* What sums with other laws need of a law of losses over w, the logarithm of the loss beyond the smallest one: logs of
 * densities of w at n places from + step, NaN-free between both ends, with bounds of their errors, those of places within 4
 * units of `step` included; logs of bounds of its modulus on ellipses about [mid - half, mid + half], of shape (n, m), whose
 * half axes add up to rho half, INFINITY where it may not be analytic; and the smallest loss as a sum of two doubles, both
 * ends, and logs of bounds of the probabilities under A and B below the first one and above the last one. */
void pe_sector_densities(const pe_sector *a, size_t n, const double *from, const double *step, double *value,
                         double *error);
void pe_sector_ellipses(const pe_sector *a, size_t n, const double *mid, const double *half, size_t m,
                        const double *rho, double *bound);
void pe_sector_beyond(const pe_sector *a, double *out);

/* A loss as a function of a standard normal variate x: cubics on cells of equal width from `low` on,
 * in q = (x - low) per_width, held beyond the ends.  `last` is the largest q taken, below the number
 * of cells; cell k is c[4k] + c[4k+1] d + c[4k+2] d^2 + c[4k+3] d^3, d = q - k.  The loss is drawn
 * `steps` times, independently. */
typedef struct {
    uint64_t steps;
    double low, per_width, last;
    const double *coefficients;
} pe_loss_table;

/* One block of the counter-based generator Threefry-2x64 with 20 rounds, for tests: two words.
 *
 * Source          J. Salmon, M. Moraes, R. Dror, D. Shaw, Parallel random numbers: as easy as 1, 2, 3
 *                 (SC 2011)
 */
void pe_threefry(uint64_t k0, uint64_t k1, uint64_t c0, uint64_t c1, uint64_t *out);

/* Sums of random losses: out[i] is sample first + i, the sum over all tables and their steps.
 *
 * Method          standard normal variates of Box and Muller from Threefry with key (seed, table) and
 *                 counter (sample, pair of steps): the same numbers for any split into calls
 */
void pe_sample_losses(uint64_t seed, uint64_t first, size_t n, size_t tables, const pe_loss_table *table,
                      double *out);
/* ---- samples of an epoch with k random steps of a record: random_steps.c ---------------------------
 *
 * One step's value is y(x) = e^(mu x - mu^2/2), the ratio of N(mu, 1) to N(0, 1), and
 * g(x) = e^(base x + level) sum_m weight[m] e^(m spacing x), m < shifts, that of the laws which samples come from.
 */
typedef struct {
    size_t others, degree, placed; /* steps without the record, k, and steps in x: k or 0 */
    size_t replicates;             /* draws of the steps in x for one draw of the others */
    double mu, odds, log_choices;  /* odds > 0 about k/t; log of the number of sets of k steps */
    size_t shifts; /* 0 where the second row is not asked for, which is 0 then */
    double base, level, spacing;
    const double *weight;
} pe_random_steps;

/* Doubles of working memory for n draws. */
size_t pe_random_steps_room(const pe_random_steps *s, size_t n);

/* Three rows of n for each replicate: log(e_k(y)/C(t, k)), log(e_k(g)/C(t, k)), and the sum over k blocks of
 * log(mean of y over the block), the steps in x being in places of the t that are drawn without replacement.
 *
 * Domain          z: others rows of n; x, share: placed rows of n for each replicate, share in [0, 1)
 * Failure         NaN where values leave the range of doubles
 * Observed error  below 4e-15 times the number of steps
 */
void pe_random_step_losses(const pe_random_steps *s, size_t n, const double *z, const double *x,
                           const double *share, double *work, double *out);

/* ---- proven bounds of one epoch: mean_cells.c ----------------------------------------------------
 *
 * The law of the mean p X + q Y of independent numbers, where X takes the value x[i] with mass a[i] and Y
 * the value y[j] with mass b[j], in the cells between edge[k] and edge[k + 1].
 *
 * Definition      added to mass[k] (caller zeroes it): the mass of the cell; to share[k]: the integral of
 *                 (mean - edge[k])/(edge[k + 1] - edge[k]) over it
 * Domain          x, y positive and increasing, edge (cells + 1 values) as well, with all means between
 *                 the outermost ones but for rounding; masses finite, >= 0.  is_square: X and Y have the
 *                 same law and p = q, and x is y, a is b
 * Method          sums of positive terms, row by row; a mean on an edge is counted below it
 * Error           at most n + m + 4 roundings of each term of a mass, 8 more of a share beside it; products
 *                 below 2^-1000 are left out
 */
void pe_mean_cells(size_t n, const double *x, const double *a, size_t m, const double *y, const double *b,
                   double p, double q, int is_square, size_t cells, const double *edge, double *mass,
                   double *share);

/* ---- lattice engine: lattice.c -----------------------------------------------------------------
 *
 * Logs of the N(shift, 1)-masses below z[0], between successive z[i], and above z[n-1] (n + 1 values).
 *
 * Domain          n >= 1 increasing finite z
 * Method          middle and half width, Hermite series, where the cell is narrow; Mills' ratio else.
 *                 Widths are differences of the given doubles, so narrow cells lose nothing
 * Observed error  of log_mass, relative to the mass: 1 unit of 2^-52 (4 + |log_mass| + (|z| + |shift|)^2)
 */
void pe_normal_cells(size_t n, const double *z, double shift, double *log_mass);

/* Masses of n cells of one step, put on the lattice origin + k spacing, k = 0, 1, ..., and tilted.
 *
 * Cell i lies between points start + i - 1 and start + i, start >= 1; shift has n + 1 entries, the rest
 * n.  Added to (caller zeroes them): spread, the A-masses of the pair with each cell split onto its
 * ends; a and b, both laws of the index that a test may use.  Masses of A at point k are multiplied by
 * e^{tilt spacing (k - centre) - log_scale_a}, those of B by e^{(tilt - 1) spacing (k - centre) -
 * log_scale_b}.  lost: A-mass of spread that goes to loss -infinity, not tilted; error: the largest
 * relative error of a mass.
 *
 * log_ratio       log of the ratio of both masses, which may be known better than log_b - log_a
 * error           bounds the relative error of each mass, ratio_error the error of log_ratio
 * outer           1: spread is rounded to raise H(A||B), a down, and b up but for the factor by which
 *                 a is down; 0: spread to lower the integral of min(A, tB), a and b up.  Rounding,
 *                 errors and shift are covered (docs/theory/lattice)
 */
typedef struct {
    double origin, spacing, tilt, centre, log_scale_a, log_scale_b;
    int outer;
} pe_lattice;
typedef struct {
    size_t start, n;
    const double *log_a, *log_b, *log_ratio, *error, *ratio_error, *shift;
} pe_cells;
typedef struct {
    double *spread, *a, *b;
    double lost, error;
} pe_lattice_masses;
void pe_lattice_cells(const pe_lattice *grid, const pe_cells *cells, pe_lattice_masses *out);

/* z[j]^steps, n complex numbers as pairs, times other[j] where other is not NULL, in place.
 *
 * error bounds |z[j] - truth|.  bound[j] is multiplied by (|z[j]| + error)^steps, at least 1e-260, and
 * slack[j] raised by steps error/(|z[j]| + error), so that with all factors |result - truth| <=
 * bound (slack + 3 2^-53 total steps).
 *
 * Domain          steps an integer from 1 to 2^53, |z[j]| <= 1 + error
 */
void pe_spectrum_power(size_t n, double *z, double steps, double error, const double *other, double *bound,
                       double *slack);

/* Sums of y_k e^{rate (k - centre)} and of (k - centre) times that, y >= 0.
 *
 * Relative error  of the first at most 2^-53 (n/32 + 70 + 6 |rate| max |k - centre|)
 */
void pe_exponential_sums(size_t n, const double *y, double centre, double rate, double *out);

/* Sums of y_k q^(j-k) over k <= j, q = e^log_q <= 1, y >= 0.
 *
 * Relative error  at most 2^-51 (2 PE_SUM_BLOCK + n/PE_SUM_BLOCK) (1 + |log_q|)
 */
#define PE_SUM_BLOCK 2048
void pe_discounted_sums(size_t n, const double *y, double log_q, double *sums);

/* The same with q e^-h in below, and the sums of y_k q^(j-k) (1 - e^{-h (j-k)}) in profile. */
void pe_profile_sums(size_t n, const double *y, double log_q, double h, double *below, double *profile);

/* Noncentral chi-squared distribution with df degrees of freedom and noncentrality nc.
 *
 * Definition      F(x) = P(|Z + m|^2 <= x) for df = dimension and |m|^2 = nc, for any real df > 0 by
 *                 analytic continuation: the Poisson(nc/2) mixture of chi-squared(df + 2j); its
 *                 complement, density and their logarithms, as `what` says
 * Domain          df >= 0, nc >= 0, both finite; any x; else NaN.  Accuracy is shown for df from 1e-6
 *                 to 1e10, nc to 1e13; at df = 0 there is an atom of weight exp(-nc/2) at 0
 * Method          midpoint rule on the parabola through the saddle point of the inversion integral,
 *                 exponent in double-double; short series for df < 1/2 with nc x < 1/4
 * Observed error  tails 3.4 units of 2^-52 relative down to 1e-300, logs 4.0, densities 2.7; logs of
 *                 densities 1.8 relative to max(1, |log f|) for df >= 1/2, 7.4 below
 * Source          docs/special/ncx2.md; nodes by tools/make_ncx2_nodes.py
 *
 * This and the functions below return the number of elements whose arguments lie outside the domain,
 * not counting NaN arguments, for callers that turn it into an error; the ufuncs leave it at NaN.
 * Strides are in bytes; out may be one of the inputs.
 */
enum pe_ncx2_function {
    PE_NCX2_CDF = 0,
    PE_NCX2_SF = 1,
    PE_NCX2_LOGCDF = 2,
    PE_NCX2_LOGSF = 3,
    PE_NCX2_PDF = 4,
    PE_NCX2_LOGPDF = 5,
};

double pe_ncx2(int what, double x, double df, double nc);
size_t pe_ncx2_strided(int what, size_t n, const char *x, ptrdiff_t sx, const char *df, ptrdiff_t sd,
                       const char *nc, ptrdiff_t sl, char *out, ptrdiff_t so);

/* Quantiles of the noncentral chi-squared distribution.
 *
 * Definition      the x with F(x) = p, or 1 - F(x) = p where bit 0 of `what` is set; where bit 1 is
 *                 set, p is given by its logarithm
 * Domain          0 <= p <= 1 (log p <= 0), df and nc as above; else NaN.  0 where x underflows
 * Method          start from r* = r + log(v/r)/r, Halley steps on the log of the smaller tail with a
 *                 double-double residual; at most 100 evaluations
 * Observed error  1.5 units of u/2 + 2^-52 max(1, |log p|)/(x f/p), u = 2^-52
 * Source          docs/special/ncx2.md
 */
size_t pe_ncx2_quantile_strided(int what, size_t n, const char *p, ptrdiff_t sp, const char *df, ptrdiff_t sd,
                                const char *nc, ptrdiff_t sl, char *out, ptrdiff_t so);

/* The noncentrality or the degrees of freedom at which a tail is given.
 *
 * Definition      the nc, df or a (as `unknown` says) with F(x) = p or 1 - F(x) = p, p by its logarithm
 *                 as `what` says; `other` is df, nc or Marcum's order, and x is his b for a
 * Domain          0 <= p <= 1, 0 < x and other from 0 to 2^200 (b to 2^100, order to 2^199), and a p
 *                 that some nc, df or a >= 0 has; else NaN.  x = 0 is allowed at df = 0
 * Method          secant steps on the normal quantile of the smaller tail, against the root of
 *                 nc + df/2 or df + 2 nc, with a double-double residual; at most 120 evaluations
 * Observed error  3.0 units of u/2 + 2^-52 max(1, |log p|)/c, c = |d log p/d log nc| or d log df
 * Source          docs/special/ncx2.md
 */
enum pe_ncx2_unknown { PE_NCX2_OF_NC = 0, PE_NCX2_OF_DF = 1, PE_MARCUM_OF_A = 2 };

size_t pe_ncx2_parameter_strided(int what, int unknown, size_t n, const char *p, ptrdiff_t sp, const char *x,
                                 ptrdiff_t sx, const char *other, ptrdiff_t so, char *out, ptrdiff_t sr);

/* Marcum's Q function.
 *
 * Definition      Q_order(a, b) = 1 - F(b^2) with df = 2 order, nc = a^2: PE_NCX2_SF in `what`;
 *                 PE_NCX2_CDF for 1 - Q, PE_NCX2_LOGSF and PE_NCX2_LOGCDF for their logarithms
 * Domain          order >= 0, a >= 0, both finite, b >= 0; else NaN
 * Method          as pe_ncx2, with exact squares
 * Observed error  3.1 units of 2^-52
 * Source          docs/special/marcum.md
 */
size_t pe_marcum_strided(int what, size_t n, const char *order, ptrdiff_t sm, const char *a, ptrdiff_t sa,
                         const char *b, ptrdiff_t sb, char *out, ptrdiff_t so);

/* The b at which Q (bit 0 of `what` set) or 1 - Q equals p; bit 1: p is given by its logarithm.
 *
 * Method          the root of the quantile, both in double-double
 * Observed error  1.5 units of u/2 + 2^-52 max(1, |log p|)/(b f/p)
 */
size_t pe_marcum_inverse_strided(int what, size_t n, const char *order, ptrdiff_t sm, const char *a,
                                 ptrdiff_t sa, const char *p, ptrdiff_t sp, char *out, ptrdiff_t so);

/* Trade-off function of one noisy gradient step.
 *
 * Definition      beta(alpha) = 1 - F_{(n-1)k}(n/(n-1) F^{-1}_{nk}(alpha)), df degrees of freedom:
 *                 PE_NCX2_SF in `what`; PE_NCX2_CDF for 1 - beta, LOGSF and LOGCDF for logarithms
 * Domain          0 <= alpha <= 1, df > 0, n > 1, k >= 0, at most 2^100 (df: 2^200); else NaN
 * Method          the quantile stays a double-double between the two evaluations
 * Observed error  log beta: 2.5 units of 2^-52 relative
 * Source          docs/special/compositions.md
 */
size_t pe_one_step_sgd_strided(int what, size_t count, const char *alpha, ptrdiff_t sp, const char *df,
                               ptrdiff_t sd, const char *n, ptrdiff_t sn, const char *k, ptrdiff_t sk,
                               char *out, ptrdiff_t so);

/* Trade-off function of the relaxed threat model and its inverse.
 *
 * Definition      j(alpha) = F_{mu^2}(SF_0^{-1}(alpha)), df degrees of freedom; `inverse`: alpha of
 *                 j.  Bit 0 of `what` for the complement, bit 1 for a logarithm
 * Domain          0 <= p <= 1, 0 < df < 2^200, 0 <= mu < 2^100; else NaN
 * Observed error  log j: 2.9 units of 2^-52 relative
 * Source          docs/special/compositions.md
 */
size_t pe_relaxed_strided(int what, int inverse, size_t count, const char *p, ptrdiff_t sp, const char *df,
                          ptrdiff_t sd, const char *mu, ptrdiff_t sm, char *out, ptrdiff_t so);

#endif
