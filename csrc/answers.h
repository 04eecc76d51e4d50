/* From rows (masses and the profile at a threshold, with proven errors) to beta, gamma, delta and epsilon with
 * bounds. */
#ifndef PE_ANSWERS_H
#define PE_ANSWERS_H

#include "contours.h"

/* ---- one step in closed form: closed_form.c ----------------------------------------------------
 *
 * N(0,1) against (1-p) N(0,1) + p N(mu,1), in this order, reversed, or the worse of both; with p = 1,
 * `plain`, also any composition of Gaussians, mu^2 being the sum of their squares.
 */
enum { PE_ADD = 0, PE_REMOVE = 1, PE_ADD_REMOVE = 2 };

typedef struct {
    pe_dd mu, half_square; /* 2^-400 <= mu <= 2^400, mu^2/2 */
    pe_dd p, rest; /* 0 < p <= 1, 1 - p */
    pe_dd log_p, floor; /* log p and log(1 - p), each to 2^-105 relative; not used where plain */
    int plain, order;
    int inexact; /* 0 where rest.h + rest.l is 1 - p exactly */
} pe_step;

/* out: value, lower and upper bound; for a trade-off function those of beta, those of gamma, and c: the slope is -e^c.
 *
 * Domain          0 <= alpha <= 1, 0 <= epsilon <= infinity, 0 <= delta <= 1
 * Method          closed forms in sums of two doubles; inverses by Newton's method
 * Error           bounds are proven, floating point included (docs/theory/closed_form)
 */
void pe_step_trade_off(const pe_step *step, size_t n, const double *alpha, double *out);
void pe_step_profile(const pe_step *step, size_t n, const double *epsilon, double *out);
void pe_step_epsilon(const pe_step *step, size_t n, const double *delta, double *out);

/* ---- levels of a test from masses at thresholds: levels.c ----------------------------------------------------
 *
 * `tails` holds six arrays of points x n numbers: A's masses above and below the thresholds c, B's masses above and
 * below, a bound of their relative errors, and a bound of the error of c (docs/theory/conversions).  The arrays c, reach
 * and the bounds at single points are points x n as well.
 *
 * Error           bounds allow `rounding` times the sum of the terms for a bound's few operations: 16 2^-53
 */

/* A's masses above and below a threshold with bounds of their errors, then B's, from the integrals of A and B on the
 * line through `tilt` and bounds of their errors.  `rest`: the masses of finite losses of A and B, and their errors;
 * `removed`: bounds of the masses that were cut off A and B. */
void pe_level_masses(double tilt, const double *value, const double *error, const double *rest,
                     const double *removed, double *out);

/* Tails from masses of A above and below, and of B, each followed by a bound of its absolute error.  A mass that is not
 * proven to be positive is replaced by its upper bound. */
void pe_level_tails(size_t n, const double *masses, const double *shift, double *out);

/* Lower and upper bounds of A(S > c) - alpha. */
void pe_level_excess(size_t points, size_t n, const double *alpha, const double *tails, double rounding,
                     double *least, double *most);

/* Lower bounds of beta and upper ones of gamma on lines of slopes e^(c -+ reach). */
void pe_level_tangents(size_t points, size_t n, const double *alpha, const double *c, const double *reach,
                       const double *tails, double rounding, double *below, double *above);

/* A distance r at which the computed e^(c - r) and e^(c + r) lie surely below and above the true slope, c being off by
 * at most `shift`. */
double pe_level_reach(double shift, double c);

/* out: seven arrays of n numbers: beta on the line between the two points next to the level, its lower and upper bound,
 * gamma likewise, and c of the first of those points.  At least 2 points, c falling; `shown` is B's mass where A has
 * none. */
void pe_level_errors(size_t points, size_t n, const double *alpha, const double *c, const double *tails,
                     double rounding, double shown, double *out);

/* Upper bounds of beta and lower bounds of gamma from a randomised test between two points (c falling): one whose level
 * is proven to be at most alpha, and a later one. */
void pe_level_chord(size_t points, size_t n, const double *alpha, const double *tails, double rounding,
                    double *beta, double *gamma);

/* Beta and gamma on the line between the points on both sides of a level. */
void pe_level_between(size_t points, size_t n, const double *alpha, const double *tails, double *beta,
                      double *gamma);

/* Tails of the order whose line of slope e^c is the lower one. */
void pe_level_better(size_t n, const double *c, const double *first, const double *second, double *out);

/* ---- tests on both sides of levels: level_search.c ---------------------------------------------------------------
 *
 * The tests {S > c} of a law.  `tails`: tails as above at n thresholds; `roughly`: estimates of A's and B's masses above
 * and below one threshold, or NULL where the expected bracket of a threshold is closed; both return a status.  Losses lie
 * in `support`; `jump`: the losses that may be atoms, rising.  Thresholds are narrowed to a width of `room`, or to a
 * small part of the expected bracket where that is 0.
 */
typedef int (*pe_tails_of)(void *law, size_t n, const double *c, double *tails);
typedef int (*pe_function)(void *handle, double x, double *out);
typedef struct {
    void *law;
    pe_tails_of tails;
    pe_function roughly;
    double support[2];
    int has_atoms;
    size_t jumps;
    const double *jump;
    double room;
} pe_tests;

/* Brackets the x at which a decreasing function changes sign: certainly within `ends`, probably within `expected`.
 * Stops at a width of `room` and some roundings of x.  `jump`: where the function may jump.  An x with |f(x)| <= noise
 * becomes both ends of the bracket. */
int pe_falling_root(pe_function of, void *handle, const double *expected, const double *ends, double room,
                    size_t jumps, const double *jump, double noise, double *out);

/* For each level in (0, 1), whose threshold is expected between `low` and `high`, four falling thresholds and their
 * tails: A(S > c) is proven to be at most alpha at the first and at least alpha at the last, where such exist. */
int pe_tests_at_levels(const pe_tests *tests, size_t n, const double *alpha, const double *low,
                       const double *high, double rounding, double *c, double *tails);

/* pe_level_errors at those thresholds. */
int pe_tests_errors(const pe_tests *tests, size_t n, const double *alpha, const double *low,
                    const double *high, double rounding, double shown, double *out);

/* The first six arrays of pe_level_errors for the hull of both orders (docs/theory/finite): at each slope the tails of
 * the order whose tangent is lower. */
int pe_tests_hull(const pe_tests *add, const pe_tests *remove, size_t n, const double *alpha,
                  const double *low, const double *high, double rounding, double *out);

/* ---- profiles of laws, and their inverses: profile_search.c -------------------------------------------------------
 *
 * A profile at finite epsilon + low, with low at most an ulp of epsilon (NULL: all 0).  out: three arrays of n:
 * H_{e^epsilon}(A || B) of finite losses S, a bound of its absolute error, which is 0 only where the value is proven to be 0,
 * and e^epsilon B(S <= -epsilon), by which it falls with epsilon: an estimate, 0 where it is unknown.
 */
typedef int (*pe_profile_of)(void *law, size_t n, const double *epsilon, const double *low, double *out);

/* `start`: an estimate of the epsilon at which the profile equals delta, or NULL.  `alone`: A's mass at loss -inf as a sum
 * of two doubles, and a bound of its error.  `end`: an epsilon with no mass in doubles beyond it; `least` and `most`: bounds
 * of the largest epsilon. */
typedef struct {
    void *law;
    pe_profile_of profile;
    pe_function start;
    double alone[3], end, least, most;
} pe_profile;

/* Value, lower and upper bound of the profile at n epsilon >= 0, which may be infinite; of 3 arrays of n. */
int pe_profile_deltas(const pe_profile *profile, size_t n, const double *epsilon, double *out);

/* Value, lower and upper bound of the smallest epsilon >= 0 at which the profile is at most delta, for n delta in [0, 1]. */
int pe_profile_epsilons(const pe_profile *profile, size_t n, const double *delta, double *out);

/* Low parts of losses, and a bound of the error of double and low part together: asked for once, where they are needed.
 * `ask` is NULL where there are none. */
typedef int (*pe_ask_low)(void *handle, const double **low, double *error);
typedef struct {
    pe_ask_low ask;
    void *handle;
    const double *low;
    double error;
} pe_low_parts;

/* Whether low parts are known, if need be from now on; else `status` says whether a call failed. */
int pe_low_parts_known(pe_low_parts *parts, int *status);

/* Relative error of a profile above which losses are taken with low parts */
#define PE_WEAK 0x1p-33

/* ---- laws of finitely many losses: finite_law.c --------------------------------------------------------
 *
 * `loss`: n losses, rising; the masses of both laws above and up to the i-th of them, n + 1 each, infinite losses included.
 * `a`: A's mass of each; `a_up_to`: as `a_below` without infinite losses.  `error` and `log_error`: relative error of a
 * mass m, e + d max(-log m, 0); `shift`: error of the losses; `least`: lower bound of the smallest loss.
 */
typedef struct {
    size_t n;
    const double *loss, *a_above, *a_below, *b_above, *b_below, *a, *a_up_to;
    double error, log_error, shift, least;
    pe_low_parts parts;
} pe_finite_law;

/* As pe_tests takes them. */
int pe_finite_law_tails(void *law, size_t n, const double *c, double *tails);
int pe_finite_law_roughly(void *law, double c, double *masses);

/* As pe_profile takes them; no low parts of epsilon. */
int pe_finite_law_profile(void *law, size_t n, const double *epsilon, const double *low, double *out);
int pe_finite_law_start(void *law, double delta, double *epsilon);

/* ---- finite losses beside another law: mixed_law.c -----------------------------------------------------
 *
 * n finite losses with A's and B's masses of a relative error `error`, and another law, whose profile takes low parts.
 * `least`: the smallest loss of both together; `largest`: largest size of a finite loss.
 */
typedef struct {
    size_t n;
    const double *loss, *a, *b;
    double error, least, largest;
    pe_low_parts parts;
    void *law;
    pe_tails_of tails;
    pe_profile_of profile;
} pe_mixed_law;

/* As pe_tests and pe_profile take them. */
int pe_mixed_law_tails(void *law, size_t n, const double *c, double *tails);
int pe_mixed_law_roughly(void *law, double c, double *masses);
int pe_mixed_law_profile(void *law, size_t n, const double *epsilon, const double *low, double *out);

/* ---- sums of equal Laplace losses: laplace_sum.c -------------------------------------------------------
 *
 * The sum of N = `steps` losses of ratio mu.  With x = (S + N mu)/(2 mu), A's law without its atoms is `scale` e^(-mu x)
 * times a polynomial on each unit interval, whose Bernstein coefficients are the rows of `curve`.  Without `scale`:
 * `atoms` has A's N + 1 atoms; `even` and `odd`, for each interval, the polynomial's integrals against cosh and sinh of
 * mu (1 - s); `below` and `above` A's masses of the intervals before each and from each on; `tallest` the largest
 * coefficient of each, and 0.  `end`: the largest loss; `error`: relative error of masses; `lost`: absolute error of
 * masses that underflow.
 */
#define PE_LAPLACE_STEPS 400 /* most steps */
typedef struct {
    size_t steps;
    double ratio, scale, error, lost;
    pe_dd end;
    const double *curve, *atoms, *even, *odd, *below, *above, *tallest;
} pe_laplace_sum;

/* `curve` and, without their factors e^(-mu n), `atoms` of a sum of steps with atoms at the ends, or of steps of bounded
 * range, without `scale`: sums and products of positive numbers. */
int pe_laplace_sum_law(size_t steps, double ratio, int has_atoms, double *curve, double *atoms);

/* As pe_tests takes them. */
int pe_laplace_sum_tails(void *law, size_t n, const double *c, double *tails);
int pe_laplace_sum_roughly(void *law, double c, double *masses);

/* As pe_profile takes it, at any finite epsilon. */
int pe_laplace_sum_profile(void *law, size_t n, const double *epsilon, const double *low, double *out);

/* Integrals over (0, 1) of cosh and sinh of rate (1 - s) against each of `size` Bernstein polynomials, for rates up to
 * 40: power series of positive terms, as the integral of (1 - s)^i against one is a quotient of factorials.  The same array
 * for both has their sum. */
void pe_bernstein_exponentials(double rate, size_t size, double *even, double *odd);

/* ---- from rows with proven errors to bounds: row_bounds.c ----------------------------------------------
 *
 * PE_BOUNDS numbers for each threshold: for each functional, lower and upper bound of its log, then of its value.  All
 * are moved outwards by the relative error `slack`, for rounding; a functional that the row does not give has the bounds
 * 0 and 1.
 */
void pe_bounds_of_rows(size_t n, const double *rows, double slack, double *bounds);

/* Lower bounds of beta and upper bounds of gamma: T lies above its tangent of slope -e^c.  `tail` is alpha (functional
 * PE_A_ABOVE), or 1 - alpha (PE_A_BELOW) for levels above 1/2. */
void pe_bounds_line(size_t n, int functional, const double *tail, const double *c, const double *bounds,
                    double slack, double *beta, double *gamma);

/* Upper bounds of beta and lower bounds of gamma from the tests at c and at `beyond`, a threshold whose test is proven
 * to have a level of at most alpha; infinity where there is none. */
void pe_bounds_chord(size_t n, int functional, const double *tail, const double *beyond, const double *bounds,
                     double slack, double *beta, double *gamma);

/* Finds `beyond` by attempts 0, 1, ...: keeps those thresholds `at` of the last attempt that serve, by their bounds
 * `there`, and puts new candidates into `at`, NaN where none is needed.  Returns the number of candidates: 0 at attempt
 * PE_ASIDES, which only judges the last ones. */
size_t pe_bounds_aside(size_t n, int functional, const double *tail, const double *c, const double *bounds,
                       size_t attempt, const double *there, double *beyond, double *at);

/* Improves the bounds of beta by those of gamma = 1 - beta and conversely, as the smaller one has more digits, and
 * limits them to 1. */
void pe_bounds_cross(size_t n, double *beta_low, double *beta_high, double *gamma_low, double *gamma_high);

/* Values (not bounds) of beta and gamma, and of epsilon, on the tangent at the row's threshold; NaN from rows of NaN. */
void pe_bounds_best(size_t n, int functional, const double *tail, const double *rows, double *beta,
                    double *gamma);
void pe_bounds_best_epsilon(size_t n, const double *delta, const double *rows, double *epsilon);

/* The same for one row, with the bits of arrays.  pe_bounds_level: lower and upper bound of beta and of gamma, and both
 * values; 0 if a second threshold is needed.  pe_bounds_epsilon: lower and upper bound, and the value; 0 if the row does
 * not prove them. */
int pe_bounds_level(int functional, double tail, const double *row, double slack, double *out);
int pe_bounds_epsilon(double delta, const double *row, double slack, double *out);

/* Lower bounds of epsilon(delta) from the tangent at epsilon' = -c of the profile, which is convex in e^epsilon; 0 where
 * the tangent gives none.  `step`: about how much epsilon' must grow until its profile is proven to be at most delta. */
void pe_bounds_tangent(size_t n, const double *delta, const double *c, const double *bounds, double slack,
                       double *lower, double *step);

/* Lower bounds of the profile at epsilon = |c|: of (B, A) where c >= 0, of (A, B) where c < 0. */
void pe_bounds_gain(size_t n, const double *c, const double *bounds, double slack, double *gain);

/* ---- bounds that need no transform: ends.c --------------------------------------------------------------
 *
 * Of n kinds of sampled Gaussian steps.  pe_largest_loss: the largest -S under A without the record, -sum of steps
 * log(1 - p), with a lower and an upper bound.  pe_most_at_zero: upper bound of the profile at 0, the sum of the total
 * variations of the steps, and at most the probability that any step samples the record.
 */
void pe_largest_loss(size_t n, const double *p, const double *steps, double *out);
double pe_most_at_zero(size_t n, const double *noise, const double *p, const double *steps);

/* Levels so small that the test takes, or leaves out, only outcomes whose likelihood ratio is the largest one up to some
 * roundings: there hardly any step samples the record, and the threshold is the largest loss in doubles.
 *
 * pe_log_next_to_largest: log of the tail below which pe_next_to_largest answers; -infinity if it never does.
 * pe_next_to_largest: for each level seven numbers: lower and upper bound of beta and of gamma, both values, and a
 *                 threshold; the first is NaN if log_tail is too large, or if the functional is not the one that is
 *                 small at this end of the loss.  Returns how many levels are answered
 * Method          the total loss is within y of its end if each of the n steps is within y/n of its own, which has at
 *                 least the product of the probabilities of the steps
 */
double pe_log_next_to_largest(size_t n, const double *noise, const double *p, const double *steps,
                              int reversed);
size_t pe_next_to_largest(size_t n, const double *noise, const double *p, const double *steps, int reversed,
                          int functional, size_t levels, const double *log_tail, double *out);

/* ---- parameters in, answer out: plan.c ------------------------------------------------------------------
 *
 * Facts about one order, each computed when first needed; `known` has a bit for each, and is 0 at first.
 */
enum { PE_ASKS_BETA = 0, PE_ASKS_GAMMA = 1, PE_ASKS_DELTA = 2, PE_ASKS_EPSILON = 3 };

typedef struct {
    int known;
    double largest; /* upper bound of epsilon with a positive profile; bit 1 of `known` */
    double most_at_zero; /* upper bound of the profile at 0 that needs no row */
    double likely; /* log of the levels below which pe_next_to_largest answers */
    double zero[3]; /* the profile at 0: value, lower and upper bound */
    double straight[2]; /* lowest and highest level of the straight part of the hull of both orders */
} pe_order;

/* Limits of a question. */
typedef struct {
    double widest[2]; /* largest relative width of an answer, and of one below 1e-30 */
    double enough; /* relative error of a row up to which no law on pieces is asked for */
    double few; /* steps up to which there are laws on pieces, */
    double fewest; /* and up to which these come before costly lines */
    double smallest; /* log of the values from which on laws on pieces answer */
    double slack; /* relative rounding by which bounds are moved outwards (row_bounds.c) */
    pe_order order[2];
} pe_plan;

/* out: value, lower and upper bound; of one order if `second` is NULL, else of `first`, add, and `second`, remove.
 *
 * Domain          x inside of the domain of the question; its ends are left to arrays
 * Returns         a status: PE_TOO_COSTLY where arrays, or engines other than lines, may answer
 */
int pe_plan_one(pe_plan *plan, pe_pair *first, pe_pair *second, int question, double x, double *out);

/* The same of n compositions of equal steps, `orders` being PE_ADD, PE_REMOVE or PE_ADD_REMOVE: 3 numbers for each, and
 * whether it was answered.  Consecutive equal compositions share their lines.  The work ends once *stop is not 0; what
 * is left is not answered. */
int pe_plan_many(const pe_plan *like, int orders, double cost_limit, size_t n, const double *noise,
                 const double *rate, const double *steps, int question, const double *x,
                 const volatile unsigned char *stop, double *out, unsigned char *answered);

/* beta and gamma (value, lower, upper) at the levels where the hull of both orders is the line 1 - alpha - (profile at
 * 0) and the bounds are narrow enough, which `where` marks.  Returns how many there are. */
size_t pe_straight_levels(size_t n, const double *alpha, const double *zero, const double *straight,
                          const double *widest, double *beta, double *gamma, unsigned char *where);

/* ---- from rows to answers: functionals.c ------------------------------------------------------------
 *
 * Relative error of a row for one functional: its own and, for a tail of A, that of the better known of B's tails,
 * unless that one underflows; infinite where there is no row.
 */
double pe_row_error(const double *row, int functional);

/* Whether that error is within a limit, which is another one for values below 1e-30. */
int pe_row_good(const double *row, int functional, double limit, double limit_tiny);
void pe_rows_judge(size_t n, const double *rows, int functional, double limit, double limit_tiny,
                   double *errors, unsigned char *good);

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

/* out[i * n + j], i < rows: sum_k coefficients[(which[j] * rows + i) * terms + k] T_k(t[j]). */
void pe_chebyshev_series(size_t n, const double *t, const int *which, size_t rows, size_t terms,
                         const double *coefficients, double *out);

#endif
