/* Laws of losses: epochs of random allocation, sums of few steps on pieces, samples, cells, and masses on a lattice. */
#ifndef PE_LAWS_H
#define PE_LAWS_H

#include "types.h"

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

/* Four numbers: the least and the largest loss of the table, beyond which both laws have a mass below e^-760; the
 * masses of Q and P before they were normalised to 1, minus 1. */
void pe_epoch_ends(const pe_epoch *epoch, double *out);

/* Log of the density of L under Q; -infinity beyond the ends. */
void pe_epoch_log_density(const pe_epoch *epoch, size_t n, const double *loss, double *out);

/* Rows as of pe_pair_at and pe_pair_solve, with A = Q and B = P, or reversed with A = P, B = Q and
 * the loss -L. */
int pe_epoch_at(const pe_epoch *epoch, int reversed, size_t n, const double *c, double *rows);
int pe_epoch_solve(const pe_epoch *epoch, int reversed, int functional, size_t n, const double *log_target,
                   double *rows);

/* ---- composed privacy loss with proven errors: sector_*.c ----------------------------------------------- */

typedef struct pe_sector pe_sector;
typedef struct pe_sector_pieces pe_sector_pieces;
pe_sector_pieces *pe_sector_pieces_new(void);
void pe_sector_pieces_free(pe_sector_pieces *p);

/* The law under N(0, 1) of the loss of one Poisson-sampled Gaussian step, and of the sum of two independent losses.
 *
 * Definition      shift = 1/noise, ratio = p/(1 - p) and floor = log(1 - p), the smallest loss, each as a sum of two
 *                 doubles; deepest: log density at the low end; rarest: about the log probability under B above the high
 *                 end; steps: number of steps of the sums to come, for which the high end is placed; reach: least w up to
 *                 which bounds are tabulated, the largest pe_sector_reach of all steps of a sum; pieces: nodes shared by
 *                 the sums of one thread
 * Domain          0 < p < 1; *out must be freed in any case
 * Method          polynomials on panels for the density of the log of the loss above the smallest one; sums by Gauss's
 *                 rule; errors of both are proven (docs/theory/sector_laws)
 * Returns         a status: PE_TOO_COSTLY where no proof is found, or with too much work
 */
int pe_sector_step(const double *shift, const double *ratio, const double *floor, double probability,
                   double deepest, double rarest, double steps, double reach, pe_sector **out);

/* The same for a group of 2 to 32 records, each in the batch with the same probability: ratios w_k/w_0 of the
 * probabilities that k of them are, k = 1 to size, and floor = log(w_0), as sums of two doubles. */
int pe_sector_group(const double *shift, size_t size, const double *ratios, const double *floor,
                    double deepest, double rarest, double steps, double reach, pe_sector **out);

/* The law of the likelihood ratio of one unsampled Gaussian step; `steps` of them will be averaged. */
int pe_sector_ratio(const double *shift, double deepest, double steps, pe_sector **out);

/* The law of the sum of two losses, or of two sums of ratios. */
int pe_sector_convolve(const pe_sector *a, const pe_sector *b, pe_sector_pieces *pieces, pe_sector **out);

/* The law of the sum of two losses that are logs of means of ratios (epochs). */
int pe_sector_compose(const pe_sector *a, const pe_sector *b, pe_sector_pieces *pieces, pe_sector **out);
void pe_sector_free(pe_sector *a);
size_t pe_sector_bytes(const pe_sector *a);
size_t pe_sector_panels(const pe_sector *a);
double pe_sector_work(const pe_sector *a); /* nodes that were summed for a law and its parts */
double pe_sector_reach(const pe_sector *a); /* w up to which bounds are tabulated */
void pe_sector_ends(const pe_sector *a, double *ends); /* smallest and largest loss of the panels */
double pe_sector_error(const pe_sector *a); /* proven bound of the relative error of densities */

/* Computes and keeps the integrals beyond all edges of panels, which rows and thresholds need.  A status. */
int pe_sector_keep(pe_sector *a);

/* Rows as pe_pair_at gives them, whose errors are proven: a status. */
int pe_sector_at(const pe_sector *a, int reversed, size_t n, const double *c, double *rows);

/* Thresholds at which the log of a functional has given values, after pe_sector_keep; the ends of the law where they lie
 * beyond these, NaN for NaN.  Choices: they enter no bound. */
void pe_sector_solve(const pe_sector *a, int reversed, int functional, size_t n, const double *log_target,
                     double *c);

/* For integrals against other laws, over w, the log of the loss above the smallest one.  pe_sector_densities: log
 * densities at n points from + step, -infinity outside of the panels, with bounds of their errors, those by an error of
 * 4 units of `step` included.  pe_sector_ellipses: logs of bounds of the modulus on ellipses about [mid - half, mid +
 * half], of shape (n, m), whose half axes add up to rho half; infinite where it may not be analytic.  pe_sector_beyond:
 * the smallest loss as a sum of two doubles, w of both ends, and logs of bounds of the probabilities below the first
 * end under A and B, and above the last one. */
void pe_sector_densities(const pe_sector *a, size_t n, const double *from, const double *step, double *value,
                         double *error);
void pe_sector_ellipses(const pe_sector *a, size_t n, const double *mid, const double *half, size_t m,
                        const double *rho, double *bound);
void pe_sector_beyond(const pe_sector *a, double *out);

/* A loss as a function of a standard normal variate x: cubics on cells of equal width from `low` on, in
 * q = (x - low) per_width, constant beyond the ends.  `last` is the largest q used, below the number of cells; cell k is
 * c[4k] + c[4k+1] d + c[4k+2] d^2 + c[4k+3] d^3, d = q - k.  The loss is drawn `steps` times, independently. */
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
 * One step has the ratio y(x) = e^(mu x - mu^2/2) of N(mu, 1) to N(0, 1), and
 * g(x) = e^(base x + level) sum_m weight[m] e^(m spacing x), m < shifts, the ratio of the law that x is drawn from.
 */
typedef struct {
    size_t others, degree, placed; /* steps without the record, k, and steps with it (k or 0) */
    size_t replicates; /* draws of the steps with the record for one draw of the others */
    double mu, odds, log_choices; /* odds > 0 about k/t; log of the number of sets of k steps */
    size_t shifts; /* 0: the second row is not needed, and is 0 */
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

/* ---- proven bounds of an epoch with two steps of a record: state_cells.c ---------------------------
 *
 * Groups of positive numbers have a sum x and twice the sum p of the products of pairs.  Of a group that takes
 * (first[i], first[n + i]) with mass first[2n + i], and an independent one, both of the group that they make
 * have the place w = p + slope x and the share rho = slope x/w in [0, 1].
 *
 * Definition      is_apart: added to out[i rows + k] (caller zeroes it): the masses on the node (line[i],
 *                 node[i rows + k]) when each state goes along its rho to both lines beside it, and on each to both
 *                 nodes beside it, with its means kept.  Otherwise cells of lines - 1 by max(rows - 1, 1): masses,
 *                 then integrals of x, then of p.  To count[i]: how many states lie between line[i] and line[i + 1]
 * Domain          lines >= 2, line positive and increasing, with all w between its ends but for rounding; rows 1,
 *                 where all shares are as one, or >= 3 nodes of each line that increase from 0 to 1.  Sums > 0,
 *                 products >= 0.  is_square: both groups have the same law, and second is first
 * Method          sums of positive terms; shares of a cell from the nearer end of [0, 1]
 * Error           at most count[i - 1] + count[i] + 8 roundings of each term of a mass or integral, of states that
 *                 are off by factors of 8 units beside 8/min(rho, 1 - rho) within the inner nodes; products of
 *                 masses below 2^-1000 are left out
 */
void pe_state_cells(size_t n, const double *first, size_t m, const double *second, int is_square,
                    double slope, size_t lines, const double *line, size_t rows, const double *node,
                    int is_apart, double *out, double *count);

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

#endif
