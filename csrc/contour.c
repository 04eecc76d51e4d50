/* Builds a line of estimates: chooses the spacing of t by Chernoff bounds of the aliases, computes the transform
 * M(lambda + it)^n of all kinds of steps until it has decayed, and estimates truncation and rounding.  pe_line_build is
 * called by spectral.c; the choice of thetas also by certified.c.  Derivations: docs/theory/line.md,
 * docs/estimates.md. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "doubles.h"
#include "lane_trig.h"
#include "node_sums.h"
#include "simd.h"
#include "spectral.h"
#include "strips.h"

static const double PI = 3.14159265358979323846;
static const double ALIAS_TOL = 1e-15; /* aliases allowed, relative to the value at c_ref */
static const double PERIOD_SLACK = 1.05; /* accepted period over the shortest one */
static const double DECAY = 41.0; /* the sum over t ends where its terms are below e^-41 */
/* steps of a kind below which rounding is estimated from the whole sum */
static const double FEW_STEPS = 64.0;
enum { PLAIN_TRIES = 3 }; /* steps to the shortest period before every second one halves its bracket */
enum { FINE_BLOCKS = 800 }; /* values of t from which blocks grow by a quarter instead of a half */
static const double ROTATION_COST = 0.25; /* a node by rotation, in units of one exponential */
static const size_t MAX_NODES_T = 4000000; /* values of t */
static const size_t MAX_POINTS = 1000000; /* values at points of families in one block: 8 MB */

/* Log of about the value of a functional at c_ref, to which aliases are compared */
static double value_log(const pe_line *ln) {
    return ln->k0 - ln->lambda * ln->c_ref - pe_d_log(3.0 * ln->sd * (fabs(ln->lambda) + 1.0));
}

/* The number that period times |theta - lambda| must exceed for aliases below ALIAS_TOL, given k0 = K(theta). */
static double needed(const pe_line *ln, double theta, double k0) {
    const double small = k0 - theta * ln->c_ref - value_log(ln) - pe_d_log(ALIAS_TOL);
    /* left of 0 the profile has another pole factor, and its aliases a factor 1/(1 + |theta|) */
    return ln->lambda < 0.0 ? small + fmax(0.0, pe_d_log((1.0 + fabs(ln->lambda)) / (1.0 + fabs(theta))))
                            : small;
}

/* Map: the aliasing bound of the spectral engine | test_dp_sgd | theory/line */
/* Chooses theta on one side of the line.  The trapezoidal sum at c is sum_k e^{lambda k T} F(c + k T) with F >= 0; for
 * theta beyond lambda, in the same interval between poles, its terms k > 0 (k < 0 on the other side) stay below
 * exp(K(theta) - theta c - |theta - lambda| k T) (docs/theory/line, Theorem 3).  The theta chosen makes them small
 * enough with a period T of at most PERIOD_SLACK times the shortest that any theta allows, as far as K is known.
 *
 * T(d) = (f(d) + L)/d at d = |theta - lambda|, where L > 0 and f is convex, f(0) = f'(0) = 0.  So d f' - f - L
 * increases with d and is 0 at the best d, and tangents bound T at other d from below. */
static void choose_theta(const pe_contours *contours, pe_line *ln, int side) {
    const double lam = ln->lambda, sign = side ? 1.0 : -1.0, level = needed(ln, lam, ln->k0); /* L */
    double limit = INFINITY, lo = 0.0, hi = INFINITY, best = INFINITY;
    if (side == 0 && lam > 0.0) limit = lam > 1.0 ? lam - 1.0 : lam;
    if (side == 1 && lam < 1.0) limit = lam < 0.0 ? -lam : 1.0 - lam;
    double d = fmin(sqrt(-2.0 * pe_d_log(ALIAS_TOL)) / ln->sd, limit);
    ln->theta_k[side] = INFINITY;
    for (int it = 0; it < 60; it++) {
        const double theta = lam + sign * d;
        pe_cumulants k = {0.0, NAN, NAN}; /* K <= 0 at the poles, as both laws have masses of at most 1 */
        if (theta != 0.0 && theta != 1.0) k = pe_contours_cumulants(contours, theta);
        const double small = needed(ln, theta, k.k0);
        double next = NAN;
        if (small < INFINITY) {
            if (small / d < best) {
                best = small / d;
                ln->theta[side] = theta;
                ln->theta_k[side] = k.k0;
            }
            const double f = small - level; /* at a pole, where K' is not at hand, taken for a square */
            const double slope = isnan(k.k1) ? 2.0 * fmax(f, 0.0) / d : sign * (k.k1 - ln->c_ref);
            const double excess = d * slope - small, power = d * slope / f;
            if (excess <= 0.0 && (d == limit || small <= PERIOD_SLACK * d * slope)) break;
            if (excess > 0.0 && small * (excess + level) <= PERIOD_SLACK * level * d * slope) break;
            if (excess > 0.0) hi = d;
            else lo = d;
            next = d * pe_d_pow(level / ((power - 1.0) * f), 1.0 / power);
        } else { /* K is not known at this theta */
            hi = d;
        }
        if (!(next > lo && next < hi)) next = hi < INFINITY ? (lo > 0.0 ? sqrt(lo * hi) : 0.5 * hi) : 2.0 * d;
        /* where f bends sharply, power steps from either side do not converge */
        if (it >= PLAIN_TRIES && it % 2 && lo > 0.0 && hi < INFINITY) next = sqrt(lo * hi);
        if (hi <= lo * PERIOD_SLACK) break;
        d = fmin(next, limit);
    }
}

void pe_line_choose_thetas(const pe_contours *contours, pe_line *ln) {
    for (int side = 0; side < 2; side++) choose_theta(contours, ln, side);
}

double pe_line_period(const pe_line *ln) {
    double longest = 0.0;
    for (int side = 0; side < 2; side++) {
        const double theta = ln->theta[side], d = fabs(theta - ln->lambda);
        longest = fmax(longest, d > 0.0 ? needed(ln, theta, ln->theta_k[side]) / d : INFINITY);
    }
    return longest + 3.0 * ln->sd; /* the line serves c within 3 sd of c_ref */
}

/* A block of values of the line, at t_k = k ht, first <= k < last.  re, im and beats hold all blocks, singles and points
 * this one. */
typedef struct {
    size_t first, last;
    double ht;
    double budget; /* node evaluations left */
    double rotated; /* sum over kinds of steps times the weight of the nodes summed by rotation */
    double *re, *im; /* log of the transform, less i t K' */
    double *beats; /* log of the sum of the moduli of a step's alternatives over the modulus of their sum */
    /* product of the transforms of kinds with one step: all real parts, then all imaginary ones */
    double *singles;
    double *points; /* transforms at the points of families, as pe_kinds_add takes them */
    pe_noise_cumulants at; /* cumulants at those points */
} block;

/* Stores the values of a point of a family. */
static void keep_point(block *b, const pe_group *g, const double *re, const double *im, size_t q, size_t n) {
    const size_t count = b->last - b->first;
    const size_t place = (size_t)g->family * (PE_NOISE_POINTS + PE_CONTROLS) + (size_t)g->point;
    double *x = b->points + 2 * place * count + (q - b->first);
    for (size_t i = 0; i < n; i++) {
        x[i] = 1.0 + re[i];
        x[i + count] = im[i];
    }
}

/* Multiplies `singles` by the values 1 + re + i im of a kind with one step: one logarithm serves all such kinds. */
static void multiply_single(block *b, const double *re, const double *im, const double *mean, size_t q,
                            size_t n) {
    double *u = b->singles + (q - b->first), *v = u + (b->last - b->first);
    for (size_t i = 0; i < n; i++) {
        const double x = u[i], y = v[i];
        u[i] = x * (1.0 + re[i]) - y * im[i];
        v[i] = x * im[i] + y * (1.0 + re[i]);
        b->im[q + i] -= mean[i];
    }
}

/* Adds n (log(1 + re + i im) - i mean). */
static void add_steps(block *b, double steps, const double *re, const double *im, const double *mean,
                      size_t q, size_t n) {
    double out_re[PE_RUN] = {0}, out_im[PE_RUN] = {0};
    pe_add_powers(steps, re, im, mean, out_re, out_im);
    for (size_t i = 0; i < n; i++) {
        b->re[q + i] += out_re[i];
        b->im[q + i] += out_im[i];
    }
}

/* Adds to the beats of a kind with alternatives: where these cancel, their sum 1 + re + i im is small at one t and large
 * again later, so has_decayed must judge the sum of their moduli. */
static void add_beats(block *b, const pe_group *g, const double *moduli, const double *re, const double *im,
                      size_t q, size_t n) {
    for (size_t i = 0; i < n && g->alternatives > 1; i++) {
        const double own = fmax(pe_d_hypot(1.0 + re[i], im[i]), 1e-300);
        b->beats[q + i] += g->n * fmax(pe_d_log(moduli[i] / own), 0.0);
    }
}

/* The node sums of a kind of step, one for each alternative. */
typedef struct {
    size_t n;
    pe_node_sums part[PE_ALTERNATIVES];
    double mass[PE_ALTERNATIVES]; /* sum of the tilted weights */
    double small_mean; /* sum of weight times loss over the small nodes (node_sums.h) of all alternatives */
} kind_sums;

static void set_sums(kind_sums *s, const pe_group *g, const pe_nodes *nodes, const pe_span *windows,
                     double mean, double ht, double t_top) {
    double large_mean = 0.0, size = 0.0, small_mean = 0.0, small_size = 0.0;
    s->n = g->alternatives;
    for (size_t i = 0; i < s->n; i++) {
        const pe_nodes part = pe_nodes_part(nodes, windows, i);
        double *const turn[] = {part.r, part.logw}; /* these arrays are free to be overwritten */
        s->mass[i] = 0.0;
        for (size_t j = 0; j < part.m; j++) s->mass[i] += part.w[j];
        pe_node_sums_new(&s->part[i], part.l, part.w, turn, part.m, ht, t_top);
        large_mean += s->part[i].mean;
        size += s->part[i].size;
        small_mean += s->part[i].small_mean;
        small_size += s->part[i].small_size;
    }
    /* where losses of both signs cancel in the sum, the mean from the cumulants has more digits */
    s->small_mean = small_size < fabs(mean) + size ? small_mean : mean - large_mean;
}

/* M(lambda + it)/M(lambda) - 1 of a run of t and, with alternatives, the sum of their moduli over M(lambda). */
static void sums_of_run(const kind_sums *s, size_t from, double ht, double *re, double *im, double *moduli) {
    pe_node_sums_run(&s->part[0], from, re, im);
    for (size_t k = 0; k < PE_RUN && s->n > 1; k++) {
        const double first = (double)(from + k) * ht * s->part[0].small_mean;
        moduli[k] = pe_d_hypot(s->mass[0] + re[k], im[k] + first);
    }
    for (size_t i = 1; i < s->n; i++) {
        double c[PE_RUN], d[PE_RUN];
        pe_node_sums_run(&s->part[i], from, c, d);
        for (size_t k = 0; k < PE_RUN; k++) {
            const double first = (double)(from + k) * ht * s->part[i].small_mean;
            re[k] += c[k];
            im[k] += d[k];
            moduli[k] += pe_d_hypot(s->mass[i] + c[k], d[k] + first);
        }
    }
    for (size_t k = 0; k < PE_RUN; k++) im[k] += (double)(from + k) * ht * s->small_mean;
}

/* Adds n (log R(t_k) - i t_k K'), R(t) = M(lambda + it)/M(lambda), of one kind; `one` has the cumulants of one step. */
static int group_exponents(const pe_group *g, double lambda, pe_strip *st, const pe_cumulants *one,
                           block *b) {
    pe_span windows[PE_ALTERNATIVES];
    double count, ht = b->ht;
    const size_t values = b->last - b->first, runs = (values + PE_RUN - 1) / PE_RUN;
    if (!pe_strip_windows(g, st, lambda, (double)(b->last - 1) * ht, windows, &count)) return PE_TOO_COSTLY;
    b->budget -= (count + 1.0) * (double)values * ROTATION_COST;
    if (b->budget < 0.0) return PE_TOO_COSTLY;
    pe_nodes nodes;
    if (pe_nodes_new(&nodes, g, windows)) return PE_NO_MEMORY;
    pe_nodes_tilt(&nodes, lambda, one->k0, nodes.w);
    kind_sums sums;
    set_sums(&sums, g, &nodes, windows, one->k1, ht, (double)(b->first + runs * PE_RUN - 1) * ht);
    for (size_t i = 0; i < sums.n && g->n >= FEW_STEPS; i++) b->rotated += g->n * sums.part[i].weight;
    if (g->family >= 0) b->at.at[g->family][g->point] = *one;
    for (size_t i = b->first; i < b->last; i += PE_RUN) {
        double re[PE_RUN], im[PE_RUN], moduli[PE_RUN], mean[PE_RUN];
        const size_t n = b->last - i < PE_RUN ? b->last - i : PE_RUN;
        sums_of_run(&sums, i, ht, re, im, moduli);
        for (size_t q = 0; q < PE_RUN; q++) mean[q] = (double)(i + q) * ht * one->k1;
        if (g->family >= 0) keep_point(b, g, re, im, i, n);
        else if (g->n == 1.0) multiply_single(b, re, im, mean, i, n);
        else add_steps(b, g->n, re, im, mean, i, n);
        add_beats(b, g, moduli, re, im, i, n);
    }
    pe_nodes_free(&nodes);
    return PE_OK;
}

/* Analyticity strips of a kind, one for each alternative, and log M(lambda) from its coarse grid. */
static int group_strips(const pe_group *g, double lambda, pe_strip *strips, double *log_m) {
    const size_t m = g->grid.m;
    double *tilted = malloc((2 * m + 1) * sizeof(double));
    if (!tilted) return PE_NO_MEMORY;
    *log_m = pe_nodes_tilt_to_one(&g->grid, lambda, tilted);
    int status = PE_OK;
    for (size_t j = 0; j < g->alternatives && !status; j++)
        status =
            pe_strip_new(&strips[j], &g[j], lambda, *log_m, tilted + (g[j].part.l - g->grid.l), tilted + m);
    free(tilted);
    return status;
}

/* Cumulants of one step of each kind, on nodes fine enough for full accuracy, and of the whole line; strips of each. */
static int fine_cumulants(const pe_contours *contours, pe_line *ln, pe_strip *strips, pe_cumulants *one) {
    double lambda = ln->lambda, v = contours->gaussian_variance, scale = 0.0, rotated = 0.0;
    pe_noise_cumulants points;
    pe_cumulants k = {0.5 * v * lambda * (lambda - 1.0), v * (lambda - 0.5), v};
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives) {
        const pe_group *g = &contours->groups[i];
        double log_m;
        const int status = group_strips(g, lambda, &strips[i], &log_m);
        if (status) return status;
        for (size_t j = 0; j < g->alternatives; j++)
            scale += g->n * strips[i + j].mass * fabs(g[j].log_share); /* as log_share is rounded */
        pe_span windows[PE_ALTERNATIVES];
        double count;
        if (!pe_strip_windows(g, &strips[i], lambda, 0.0, windows, &count)) return PE_TOO_COSTLY;
        pe_nodes nodes;
        if (pe_nodes_new(&nodes, g, windows)) return PE_NO_MEMORY;
        pe_nodes_weigh(&nodes);
        pe_nodes_cumulants(&nodes, 1.0, lambda, &one[i]);
        pe_nodes_free(&nodes);
        k.k0 += g->n * one[i].k0; /* n is 0 for points of families */
        k.k1 += g->n * one[i].k1;
        k.k2 += g->n * one[i].k2;
        if (g->family >= 0) points.at[g->family][g->point] = one[i];
        scale += fabs(g->n * log_m);
        if (g->n < FEW_STEPS) rotated += g->n;
    }
    double miss = 0.0;
    if (contours->kinds) {
        const double before = k.k0;
        pe_kinds_cumulants(contours->kinds, &points, &k);
        miss = pe_kinds_cumulants_miss(contours->kinds, &points);
        scale += fabs(k.k0 - before);
        for (size_t f = 0; f < contours->kinds->families; f++) rotated += contours->kinds->set[f].total;
    }
    /* the power n multiplies the rounding of the sum R; transform_values does this for kinds of many steps */
    ln->term_rounding = DBL_EPSILON * (3.0 + rotated);
    ln->k0 = k.k0;
    ln->c_ref = k.k1;
    ln->sd = sqrt(k.k2);
    ln->rounding = miss + DBL_EPSILON * (1.5 * scale + 2.0 * fabs(lambda * ln->c_ref) + 4.0);
    return PE_OK;
}

/* Adds the kinds of all families by interpolation; its error enters term_rounding, times the modulus at that t. */
static int add_families(const pe_kinds *kinds, pe_line *ln, block *b) {
    const size_t count = b->last - b->first;
    double *room = malloc(3 * count * sizeof(double)), *miss = room + 2 * count;
    if (!room) return PE_NO_MEMORY;
    const pe_noise_block out = {
        b->first, count, b->ht, b->re + b->first, b->im + b->first, b->singles, b->singles + count, room};
    pe_kinds_add(kinds, &b->at, b->points, &out);
    pe_kinds_miss(kinds, &b->at, b->points, &out, miss);
    for (size_t k = 0; k < count; k++) {
        const double modulus = pe_d_exp(out.re[k]) * pe_d_hypot(out.singles_re[k], out.singles_im[k]);
        ln->term_rounding = fmax(ln->term_rounding, miss[k] * fmin(modulus, 1.0));
    }
    free(room);
    return PE_OK;
}

/* Adds the logarithm of `singles`. */
static void add_singles(block *b) {
    static const double NO_MEAN[PE_RUN] = {0};
    const size_t count = b->last - b->first;
    for (size_t i = 0; i < count; i += PE_RUN) {
        double re[PE_RUN] = {0}, im[PE_RUN] = {0};
        const size_t n = count - i < PE_RUN ? count - i : PE_RUN;
        for (size_t k = 0; k < n; k++) {
            re[k] = b->singles[i + k] - 1.0;
            im[k] = b->singles[i + k + count];
        }
        add_steps(b, 1.0, re, im, NO_MEAN, b->first + i, n);
    }
}

/* Computes one block. */
static int block_values(const pe_contours *contours, pe_line *ln, pe_strip *strips, const pe_cumulants *one,
                        block *b) {
    const double v = contours->gaussian_variance;
    const size_t count = b->last - b->first, each = 2 * (PE_NOISE_POINTS + PE_CONTROLS) * count;
    const size_t points = contours->kinds ? contours->kinds->families * each : 0;
    if (points > MAX_POINTS) return PE_TOO_COSTLY;
    b->singles = malloc((2 * count + points) * sizeof(double));
    if (!b->singles) return PE_NO_MEMORY;
    b->points = b->singles + 2 * count;
    for (size_t i = b->first; i < b->last; i++) {
        double t = (double)i * b->ht;
        b->re[i] = -0.5 * v * t * t;
        b->beats[i] = b->im[i] = b->singles[i - b->first + count] = 0.0;
        b->singles[i - b->first] = 1.0;
    }
    int status = PE_OK;
    for (size_t i = 0; i < contours->n_groups && !status; i += contours->groups[i].alternatives)
        status = group_exponents(&contours->groups[i], ln->lambda, &strips[i], &one[i], b);
    if (!status && contours->kinds) status = add_families(contours->kinds, ln, b);
    if (!status) add_singles(b);
    free(b->singles);
    return status;
}

/* Whether 8 values in a row before `cap`, with their beats, are below e^-DECAY; sets nt and the estimate of the
 * truncation. */
static int has_decayed(pe_line *ln, const block *b, size_t done, size_t cap) {
    size_t run = 0;
    for (size_t i = done ? done - 8 : 1; i < cap; i++) {
        const double now = b->re[i] + b->beats[i];
        run = now < -DECAY ? run + 1 : 0;
        if (run < 8) continue;
        /* estimate: from t on it decays like the power of t that it has had since t/2 */
        double power = (b->re[i / 2] + b->beats[i / 2] - now) / pe_d_log(2.0);
        if (power < 2.0) continue;
        ln->truncation = pe_d_exp(now) * (double)(i + 1) / (power - 1.0);
        ln->nt = i + 1;
        return 1;
    }
    return 0;
}

/* Values of the transform, block by block until it has decayed; each block has nodes fine enough for its largest t. */
static int transform_values(const pe_contours *contours, pe_line *ln, pe_strip *strips,
                            const pe_cumulants *one, double *out[3]) {
    double first = 9.0 / (ln->sd * ln->ht);
    if (!(first >= 0.0 && first < (double)MAX_NODES_T)) return PE_TOO_COSTLY;
    size_t done = 0, cap = (size_t)first + 16;
    block b = {.ht = ln->ht, .budget = contours->cost_limit};
    for (;; done = cap, cap += cap < FINE_BLOCKS ? cap / 2 : cap / 4) {
        if (cap > MAX_NODES_T) return PE_TOO_COSTLY;
        for (int i = 0; i < 3; i++) {
            double *longer = realloc(out[i], cap * sizeof(double));
            if (!longer) return PE_NO_MEMORY;
            out[i] = longer;
        }
        b.re = out[0];
        b.im = out[1];
        b.beats = out[2];
        /* rounding of rotations times the number of steps, and times the modulus |R|^n before this block */
        double top = done ? -INFINITY : 0.0;
        for (size_t i = done - done / 3; i < done; i++) top = fmax(top, b.re[i] + b.beats[i]);
        b.rotated = 0.0;
        b.first = done;
        b.last = cap;
        const int status = block_values(contours, ln, strips, one, &b);
        if (status) return status;
        ln->term_rounding =
            fmax(ln->term_rounding, DBL_EPSILON * (3.0 + b.rotated * pe_d_exp(fmin(top, 0.0))));
        /* each block has its own nodes, whose weights have other roundings */
        if (done) ln->term_rounding = fmax(ln->term_rounding, 10.0 * DBL_EPSILON);
        if (has_decayed(ln, &b, done, cap)) return PE_OK;
    }
}

int pe_line_build(const pe_contours *contours, pe_line *ln) {
    const size_t n = contours->n_groups + 1;
    pe_strip *strips = calloc(n, sizeof *strips + sizeof(pe_cumulants));
    if (!strips) return PE_NO_MEMORY;
    pe_cumulants *one = (pe_cumulants *)(strips + n);
    double *values[3] = {NULL, NULL, NULL};
    int status = fine_cumulants(contours, ln, strips, one);
    if (!status) {
        pe_line_choose_thetas(contours, ln);
        ln->ht = 2.0 * PI / pe_line_period(ln);
        status = transform_values(contours, ln, strips, one, values);
    }
    if (!status) status = pe_line_set_weights(ln, values[0], values[1]);
    for (size_t i = 0; i < contours->n_groups; i++) free(strips[i].block);
    free(strips);
    for (int i = 0; i < 3; i++) free(values[i]);
    return status;
}

void pe_line_free(pe_line *ln) {
    if (ln) free(ln->weights);
    free(ln);
}
