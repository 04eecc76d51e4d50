/* Kernels of lines that Python prepares (pyengine/engines/vertical_lines): nodes and transforms of kinds of steps, sums
 * over them, and masses and profiles of one order; and sums over gradient norms. */
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

/* ---- corners of call functions: call_corners.c ----------------------------------------------------------
 *
 * Definition      the nodes at which the largest convex function below (k, C) at k = e^x has corners, from
 *                 value = C - (1 - k)+; both ends are among them.  Returns their number; slopes[j] is that of
 *                 value on the way from corner j - 1 to j, or of C if 1 = k[middle] lies between them
 * Domain          n > 0, x ascending, x[middle] = 0
 * Method          Andrew's monotone chain
 * Error           that of slopes; no proof rests on which nodes are left (docs/theory/adaptive)
 */
size_t pe_call_corners(size_t n, size_t middle, const double *x, const double *k, const double *value,
                       int64_t *corner, double *slopes);

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

/* Integrals beyond the turn of a line: ray_sums.c.  Nodes and weights of a ray; for each place `kinds` rows of `size`
 * weights. */
typedef struct {
    const double *node_real, *node_imag, *weight_real, *weight_imag;
    size_t size, kinds;
} pe_ray;

/* For kinds first, first + 1, ...: the sum over all places of the imaginary part of the sum of e^{x node} weight, on the
 * right ray where the place lies at x < 0 from the threshold, else on the left one.
 *
 * Domain          as of pe_ray_sums; a place takes about log2(reach/|x|) + 1 panels of `blocks` blocks of 8 nodes,
 *                 at least `least` and at most `most`, which both rays have
 * Error           as of pe_ray_sums
 */
void pe_place_integrals(size_t places, const double *x, double reach, int64_t least, int64_t most,
                        size_t blocks, const pe_ray *right, const pe_ray *left, size_t first, size_t kinds,
                        double *out);

/* Adds to out the integrals on the line (docs/theory/line, Lemma 1) of atoms of masses `mass` at those places, by plain
 * sums (docs/theory/laplace). */
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
 * pe_line_pole: a residue sign e^(constant + apart c) in the aliases (Lemma 4) with the relative error `known` and one for
 * |apart c|; none if constant is -infinity.  pe_line_side: bound e^(log_mean - tilt c + fall)/over of aliases by a tilt
 * beside the line.  pe_line_turn: beyond the turn of a line, places as high and low parts, the masses of their atoms, and
 * panels of both rays in `chunks`, which begin at begin[]; error[] and turned[] are the errors of each kernel up to a
 * chunk, and those per distance of each place.
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
    /* numbers of panels: least, most, most for values without errors, and those that are filled */
    int64_t least, most, about, known;
    pe_ray right, left;
    const int64_t *begin;
    const double *error, *turned;
} pe_line_turn;

/* A line, with the parts of its errors that do not depend on the threshold. */
typedef struct {
    double tilt, log_error, off_centre; /* errors of log_mean, and of the centre */
    pe_dd log_mean, centre; /* K at the tilt, and the number taken off the losses */
    /* relative errors of angles, thresholds, the exponent of the scale and its log, and exponents of poles */
    double angle_unit, threshold_unit, exponent_unit, log_unit, pole_unit;
    /* for each kernel: error at any threshold, per distance from the centre, more for angles beyond the lanes, and
     * factor of the bound by the sides; removed masses of A and B */
    double error[PE_KERNELS], per_distance[PE_KERNELS], far[PE_KERNELS], left[PE_KERNELS], removed[2];
    pe_line_pole poles[PE_KERNELS][2];
    pe_line_side sides[2];
    size_t size; /* weights of the sum up to the turn; 0 if the line does not serve */
    const double *frequency, *real, *imag;
    const pe_line_turn *turn; /* NULL if it is not turned */
} pe_loss_line;

/* K(tilt) - tilt c, the log of the scale, and bounds of its errors */
void pe_loss_line_scale(const pe_loss_line *at, size_t n, const double *c, double *log, double *error);

/* Integrals of kernels first, first + 1, ... at thresholds, and bounds of their errors; with error = NULL fewer panels are
 * used.  form: over the scale, times it, or times it with an e^c for profiles.
 *
 * Domain          finite c; room: one number for each place
 * Returns         0, or the number of panels that are needed if fewer are filled
 */
enum { PE_RELATIVE = 0, PE_SCALED = 1, PE_SCALED_OF_B = 2 };
int64_t pe_loss_line_at(const pe_loss_line *at, double *room, size_t n, const double *c, size_t first,
                        size_t kinds, int form, double *value, double *error);

/* One order of a composition on its lines.
 *
 * Definition      exchanged: the lines are those of the pair (B, A).  rest: masses of finite losses of A and B, and their
 *                 errors; alone: mass of the first law at the loss -infinity and of the second at +infinity, 0 if
 *                 is_whole.  c has an error of at most max(shift[0] (|c| + shift[1]), shift[2]).  line[i] through tilt[i]
 *                 serves masses for limit[i - 1] <= c <= limit[i], and has an error of about e^(log_weight[i] - tilt[i] c)
 *                 for profiles.  make: makes a line that is NULL, or more of its panels, and returns a status.  place and
 *                 loss: normal deviates and the losses with about their tails; room: margin of the former
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

/* Masses of A above and below thresholds, and of B, each followed by bounds of absolute errors; tails, and estimates of
 * the four masses at one threshold, as pe_tests takes them. */
int pe_line_law_masses(const pe_line_law *law, size_t n, const double *c, double *out);
int pe_line_law_tails(void *law, size_t n, const double *c, double *tails);
int pe_line_law_roughly(void *law, double c, double *masses);

/* The profile and a bound of its error; and an estimate at one epsilon, by the line for `near` if that serves. */
int pe_line_law_profile(const pe_line_law *law, size_t n, const double *epsilon, double *value,
                        double *error);
int pe_line_law_profile_about(const pe_line_law *law, double near, double epsilon, double *out);

/* Thresholds between which A(S > c) is expected to be alpha; not proven. */
void pe_line_law_expected(const pe_line_law *law, size_t n, const double *alpha, double *low, double *high);

/* ---- n >= 2 Gauss-Legendre nodes on (0, 1), rising, and weights: gauss.c ---------------------------------
 *
 * Definition      arrays of n sums of two doubles: n high parts, then n low parts
 * Method          Newton's method on the recurrence of the polynomials with maximum 1
 * Error           docs/theory/line
 */
void pe_gauss_nodes(size_t n, double *place, double *weight);

/* ---- nodes of steps on lines: step_nodes.c -------------------------------------------------------------
 *
 * Definition      nodes of the losses origin + sign log(1 + (e^v - 1)/slope), v in (0, span), span <= 340, with density
 *                 (falling e^(-v/2) + rising e^(v/2))/4, by Gauss's rules between the edges, the last of which is span.
 *                 Arrays of n sums of two doubles: n high parts, then n low parts.
 * Error           docs/theory/line
 */
typedef struct {
    pe_dd span, slope, origin, falling, rising;
    double sign;
} pe_laplace_branch;

void pe_laplace_nodes(const pe_laplace_branch *branch, size_t panels, const double *edges, size_t size,
                      const double *place, const double *weight, double *loss, double *mass);

/* value 2^power = e^x for x <= 16000; 0 for x below -16000. */
void pe_wide_exp(size_t n, const double *x, double *value, double *power);

/* log(x 2^power) for x that are normal doubles, minus infinity for 0. */
void pe_wide_log(size_t n, const double *x, const double *power, double *value);

/* The log of the mean of e^(tilt loss), each node's share of that mean, and each loss minus the centre; returns the
 * centre, a number near the tilted mean. */
double pe_step_at_tilt(size_t n, const double *loss, const double *mass, const double *power, double tilt,
                       pe_dd *log_mean, double *share, double *apart);

/* That log minus `top`, the log of the largest term. */
double pe_log_mean_of_nodes(size_t n, const double *loss, const double *log_mass, double tilt, double *top);

/* Sums of the first 1, ..., n numbers */
void pe_running_sums(size_t n, const double *x, double *out);

/* a - b c, rounded */
double pe_less_product(pe_dd a, double b, double c);

#endif
