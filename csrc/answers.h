/* From rows and laws to answers with bounds. */
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

/* ---- levels of a test from masses at thresholds: levels.c ----------------------------------------------------
 *
 * `tails` are six arrays of `points` rows of n numbers: A's masses above and below thresholds c, B's, bounds on their
 * relative errors, and by how much thresholds are moved (docs/theory/conversions).  Arrays of c, reach and the bounds of
 * single points have that shape as well.
 *
 * Error           bounds are safe where the few operations of a bound err by at most `rounding` of its terms: 16 2^-53
 */

/* Masses of A above and below a threshold and bounds on their errors, and of B, from integrals of both laws on the line
 * through `tilt` and bounds on their errors.  `rest` are the masses of both laws' finite losses and what those are off
 * by; `removed` is what both laws lack. */
void pe_level_masses(double tilt, const double *value, const double *error, const double *rest,
                     const double *removed, double *out);

/* Tails from masses of A above and below, and of B, each followed by bounds on absolute errors: what is not known to be
 * above 0 is as large as it may be. */
void pe_level_tails(size_t n, const double *masses, const double *shift, double *out);

/* Bounds of A's mass above less alpha. */
void pe_level_excess(size_t points, size_t n, const double *alpha, const double *tails, double rounding,
                     double *least, double *most);

/* Lower bounds of beta and upper ones of gamma on lines of slopes e^(c -+ reach). */
void pe_level_tangents(size_t points, size_t n, const double *alpha, const double *c, const double *reach,
                       const double *tails, double rounding, double *below, double *above);

/* At what distance from c slopes are on one side of it for sure, though they are rounded. */
double pe_level_reach(double shift, double c);

/* Seven arrays of n numbers: beta on the line between the points on both sides of a level, its lower bound and its upper
 * one, gamma with both, and c of the first of those points.  Points are at least 2, in falling order of c; `shown` is
 * B's mass where A has none. */
void pe_level_errors(size_t points, size_t n, const double *alpha, const double *c, const double *tails,
                     double rounding, double shown, double *out);

/* Upper bounds of beta and lower ones of gamma from chances between two points, which are in falling order of c: one
 * that surely does not exceed the level, and a later one. */
void pe_level_chord(size_t points, size_t n, const double *alpha, const double *tails, double rounding,
                    double *beta, double *gamma);

/* Beta and gamma on the line between the points on both sides of a level. */
void pe_level_between(size_t points, size_t n, const double *alpha, const double *tails, double *beta,
                      double *gamma);

/* Tails of the order whose line of slope e^c is the lower one. */
void pe_level_better(size_t n, const double *c, const double *first, const double *second, double *out);

/* ---- tests on both sides of levels: level_search.c ---------------------------------------------------------------
 *
 * Tests {S > c} of a law whose masses are known: tails as above at n thresholds, and about A's and B's masses above and
 * below a single one.  Losses lie in `support`; `jump` are those that may be atoms, rising.  Both functions return a
 * status.
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
} pe_tests;

/* A narrow bracket of the place where a falling function becomes negative, which is in `ends` for sure and expected in
 * another bracket.  `room` is a width that is narrow enough beside a rounding, jumps are where it may jump, and values up
 * to `noise` are as good as 0: a place with one is both ends. */
int pe_falling_root(pe_function of, void *handle, const double *expected, const double *ends, double room,
                    size_t jumps, const double *jump, double noise, double *out);

/* Four thresholds in falling order for each level in (0, 1), which are expected between `low` and `high`, and their tails:
 * A's mass is surely at most alpha at the first one, and surely at least that at the last one, where there are such. */
int pe_tests_at_levels(const pe_tests *tests, size_t n, const double *alpha, const double *low,
                       const double *high, double rounding, double *c, double *tails);

/* What pe_level_errors says of those tests. */
int pe_tests_errors(const pe_tests *tests, size_t n, const double *alpha, const double *low,
                    const double *high, double rounding, double shown, double *out);

/* The first six of those of the hull of both orders of a pair (docs/theory/finite), from the tests of whichever has the
 * lower line; and the same from four thresholds for each level with tails of those tests. */
int pe_tests_hull(const pe_tests *add, const pe_tests *remove, size_t n, const double *alpha,
                  const double *low, const double *high, double rounding, double *out);
int pe_hull_from(const pe_tests *add, const pe_tests *remove, size_t n, const double *alpha, const double *c,
                 const double *tails, double rounding, double *out);

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

#endif
