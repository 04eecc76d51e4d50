/* What kinds of steps offer to lines: nodes, transforms, and sums over them. */
#ifndef PE_KINDS_H
#define PE_KINDS_H

#include "types.h"

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

/* The sums over all places of the imaginary part of the sum of e^{x node} weight, on the ray to the right where the
 * place is at x < 0 from a threshold, else on that to the left, for some kinds from a first one on.
 *
 * Domain          as of pe_ray_sums; a place takes about log2(reach/|x|) + 1 panels of `blocks` blocks of 8 nodes,
 *                 at least `least` and at most `most`, which both rays have
 * Error           as of pe_ray_sums
 */
void pe_place_integrals(size_t places, const double *x, double reach, int64_t least, int64_t most,
                        size_t blocks, const pe_ray *right, const pe_ray *left, size_t first, size_t kinds,
                        double *out);

/* What atoms at those places have in the integrals of e^{-tilt x} over the poles' sides, added to `out`
 * (docs/theory/laplace): sums one after the other. */
void pe_atom_integrals(size_t places, const double *x, const double *mass, double tilt, size_t first,
                       size_t kinds, double *out);

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

/* ---- integrals on a line: loss_lines.c ----------------------------------------------------------------------------
 *
 * What poles add to aliases, sign e^(constant + apart c), to a relative error `known` and one for |apart c|; one whose
 * constant is minus infinity adds nothing.  Bounds at a tilt beside a line: e^(log_mean - tilt c + fall)/over.  Beyond the
 * turn of a line: places as upper parts and lower ones, what atoms have there, and panels of both rays in `chunks`,
 * the first of which begins at begin[0]; up to each the errors of the kernels, and what they are for each place's distance.
 */
typedef struct {
    double sign, apart, constant, known;
} pe_line_pole;
typedef struct {
    double tilt, log_mean, fall, over;
} pe_line_side;
typedef struct {
    size_t places, blocks, chunks;
    const double *place, *atom;
    double reach;
    /* panels: of any place, next to it, of estimates, and that there are */
    int64_t least, most, about, known;
    pe_ray right, left;
    const int64_t *begin;
    const double *error, *turned;
} pe_line_turn;

/* A line: K at its tilt and the centre of the losses; what an angle, a threshold, the scale's exponent and logarithm and a
 * pole's exponent are off by, relative; for each kernel the errors that are the same for all thresholds, those for
 * angles, for angles beyond the lanes, and for what the sides bound; and weights of the sum up to the turn. */
typedef struct {
    double tilt, log_error, off_centre;
    pe_dd log_mean, centre;
    double angle_unit, threshold_unit, exponent_unit, log_unit, pole_unit;
    double error[PE_KERNELS], per_distance[PE_KERNELS], far[PE_KERNELS], left[PE_KERNELS], removed[2];
    pe_line_pole poles[PE_KERNELS][2];
    pe_line_side sides[2];
    size_t size;
    const double *frequency, *real, *imag;
    const pe_line_turn *turn; /* 0 where it is not turned */
} pe_loss_line;

/* K(tilt) - tilt c, and bounds on the errors */
void pe_loss_line_scale(const pe_loss_line *at, size_t n, const double *c, double *log, double *error);

/* Integrals of some kernels at thresholds, and bounds on their errors unless `error` is 0, for which fewer panels do:
 * relative to the scale, with it, or with it and that of profiles times e^c.
 *
 * Domain          finite c; room for as many numbers as there are places
 * Returns         0, or how many panels are needed beside places, where there are fewer
 */
enum { PE_RELATIVE = 0, PE_SCALED = 1, PE_SCALED_OF_B = 2 };
int64_t pe_loss_line_at(const pe_loss_line *at, double *room, size_t n, const double *c, size_t first,
                        size_t kinds, int form, double *value, double *error);

/* One order of a composition on its lines.
 *
 * Definition      the losses of A's law, or of the exchanged pair; `rest` are the masses of finite losses and what those
 *                 are off by, `alone` what the first law of the order has at the loss -infinity and the second one at
 *                 +infinity, none of which if `is_whole`; thresholds are moved by shift[0] (|c| + shift[1]), or by
 *                 shift[2] if that is more.  line[i] through tilt[i] serves masses from limit[i - 1] to limit[i], and errs
 *                 for profiles by about e^(log_weight[i] - tilt[i] c); one of no size says nothing.  `make` makes a line
 *                 that is NULL, and panels beside places, and returns a status.  `place` are deviations below losses, and
 *                 `room` is how far around one they are expected.
 */
typedef int (*pe_make_line)(void *order, size_t index, int64_t panels);
typedef struct {
    int exchanged, is_bounded, is_whole;
    double ends[2], rest[4], removed[2], alone[2], shift[3], room;
    size_t lines, places;
    const double *tilt, *log_weight, *limit, *place, *loss;
    const pe_loss_line **line;
    pe_make_line make;
    void *order;
} pe_line_law;

/* Masses of A above thresholds and below, and of B, each followed by bounds on absolute errors; those and tails as of
 * `pe_tests`; about the four masses at one threshold. */
int pe_line_law_masses(const pe_line_law *law, size_t n, const double *c, double *out);
int pe_line_law_tails(void *law, size_t n, const double *c, double *tails);
int pe_line_law_roughly(void *law, double c, double *masses);

/* The profile and a bound on its error, and about that at one epsilon, by the line of one nearby if that serves. */
int pe_line_law_profile(const pe_line_law *law, size_t n, const double *epsilon, double *value,
                        double *error);
int pe_line_law_profile_about(const pe_line_law *law, double near, double epsilon, double *out);

/* Between which losses A's mass above is expected to come to alpha; not proven. */
void pe_line_law_expected(const pe_line_law *law, size_t n, const double *alpha, double *low, double *high);

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
 *                 power of 2.  Losses origin + sign log(1 + (e^v - 1)/slope) for v in (0, span), span <= 340, of the density
 *                 (falling e^(-v/2) + rising e^(v/2))/4, by Gauss's rules between the edges, the last of which is span.
 * Error           docs/theory/line
 */
typedef struct {
    pe_dd span, slope, origin, falling, rising;
    double sign;
} pe_laplace_branch;

void pe_laplace_nodes(const pe_laplace_branch *branch, size_t panels, const double *edges, size_t size,
                      const double *place, const double *weight, double *loss, double *mass);

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
double pe_less_product(pe_dd a, double b, double c);

#endif
