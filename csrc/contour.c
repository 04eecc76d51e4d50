#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "lane_trig.h"
#include "simd.h"
#include "spectral.h"
#include "strips.h"

/* The transform along one contour of the spectral engine; docs/theory/spectral.md derives every bound used here. */

static const double PI = 3.14159265358979323846;
static const double ALIAS_TOL = 1e-15;      /* relative excess allowed to the aliases */
static const double DECAY = 41.0;           /* the t sum stops where its terms are below e^-41 */
static const double FEW_STEPS = 64.0;
enum { FINE_BLOCKS = 800 };                 /* values of t from which blocks grow by less */
static const double ROTATION_COST = 0.25;   /* of a node by rotation, beside one by itself */
static const size_t MAX_NODES_T = 4000000;
static const size_t MAX_POINTS = 1000000; /* values at points of families in one block: 8 MB */

enum { RUN = 16 }; /* values of t between two anchors of a rotation */

/* Sums of w_j (cos b - 1) and w_j (sin b - b), b = t l_j, at t = start + k ht, k < RUN, with small error relative to
 * themselves: e(b) = e^{ib} - 1 - ib is rotated, e(b + h) = e(b) e^{ih} + e(h) + ib (e^{ih} - 1). */
PE_CLONES static void centred_sums(const double *l, const double *w, size_t m, double start, double ht,
                                   double *re, double *im) {
    double c[RUN][PE_LANES] = {{0}}, s[RUN][PE_LANES] = {{0}};
    for (size_t j = 0; j < m; j += PE_LANES) {
        for (int u = 0; u < PE_LANES; u++) {
            double b = start * l[j + u], h = ht * l[j + u], v = w[j + u], er, ei, fr, fi;
            pe_vcosm1_sinmx(b, &er, &ei);
            pe_vcosm1_sinmx(h, &fr, &fi);
            double di = h + fi, co = 1.0 + fr; /* e^{ih} */
            double x = v * er, y = v * ei;
            double p = v * (fr - b * di), q = v * (fi + b * fr), dp = -v * (h * di), dq = v * (h * fr);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16 /* with the loop over k rolled up, x and y would travel through memory */
#endif
            for (int k = 0; k < RUN; k++) {
                c[k][u] += x;
                s[k][u] += y;
                double next = (x * co - y * di) + p;
                y = (x * di + y * co) + q;
                x = next;
                p += dp;
                q += dq;
            }
        }
    }
    for (int k = 0; k < RUN; k++) {
        re[k] = pe_lane_sum(c[k]);
        im[k] = pe_lane_sum(s[k]);
    }
}

/* Sums of w_j cos t l_j and w_j sin t l_j at t = start + k ht, k < RUN, by rotation: faster, with an
 * error small only beside the sum of the w_j. */
PE_CLONES static void rotating_sums(const double *l, const double *w, size_t m, double start, double ht,
                                    double *re, double *im) {
    double c[RUN][PE_LANES] = {{0}}, s[RUN][PE_LANES] = {{0}};
    for (size_t j = 0; j < m; j += PE_LANES) {
        for (int u = 0; u < PE_LANES; u++) {
            double b = start * l[j + u], h = ht * l[j + u], cm1, smx;
            pe_vcosm1_sinmx(b, &cm1, &smx);
            double x = w[j + u] * (1.0 + cm1), y = w[j + u] * (smx + b);
            pe_vcosm1_sinmx(h, &cm1, &smx);
            double p = 1.0 + cm1, q = smx + h;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16 /* with the loop over k rolled up, x and y would travel through memory */
#endif
            for (int k = 0; k < RUN; k++) {
                double a = x, b0 = y;
                c[k][u] += a;
                s[k][u] += b0;
                x = a * p - b0 * q;
                y = a * q + b0 * p;
            }
        }
    }
    for (int k = 0; k < RUN; k++) {
        re[k] = pe_lane_sum(c[k]);
        im[k] = pe_lane_sum(s[k]);
    }
}

/* Map: the aliasing bound of the spectral engine | test_dp_sgd | theory/spectral */
/* Chernoff's bound on the aliases of one side.  The trapezoidal sum at c is
 * sum_k e^{lambda k T} F(c + k T) with F >= 0; for theta beyond lambda, in the same interval between
 * poles, the terms k > 0 (k < 0 on the other side) stay below
 * exp(K(theta) - theta c - |theta - lambda| k T).  Returns the T that makes them small enough. */
static double side_period(const pe_contours *contours, pe_line *ln, int side, double value_log) {
    double lam = ln->lambda, sign = side ? 1.0 : -1.0, limit = INFINITY;
    if (side == 0 && lam > 0.0) limit = lam > 1.0 ? lam - 1.0 : lam;
    if (side == 1 && lam < 1.0) limit = lam < 0.0 ? -lam : 1.0 - lam;
    double shift = sqrt(-2.0 * log(ALIAS_TOL)) / ln->sd, best = INFINITY, factor = 1.0;
    int growing = 0;
    for (int it = 0; it < 60; it++) {
        double delta = fmin(shift * factor, limit), theta = lam + sign * delta;
        pe_cumulants k = pe_contours_cumulants(contours, theta);
        double small = k.k0 - theta * ln->c_ref - value_log - log(ALIAS_TOL);
        /* a profile is smaller than a tail by its pole, and so is the bound of its aliases */
        if (lam < 0.0) small += fmax(0.0, log((1.0 + fabs(lam)) / (1.0 + fabs(theta))));
        if (!(small < INFINITY) && !growing) { /* K is not known so far out */
            factor *= 0.5;
            continue;
        }
        double t = small / delta;
        if (t < best) {
            best = t;
            ln->theta[side] = theta;
            ln->theta_k[side] = k.k0;
            if (growing && delta == limit) break;
            factor *= growing ? 2.0 : 0.5;
        } else if (!growing && it == 1) { /* smaller is worse: try larger */
            growing = 1;
            factor = 2.0;
        } else {
            break;
        }
    }
    return best;
}

double pe_line_period(const pe_contours *contours, pe_line *ln) {
    double lam = ln->lambda;
    double value_log = ln->k0 - lam * ln->c_ref - log(3.0 * ln->sd * (fabs(lam) + 1.0));
    double left = side_period(contours, ln, 0, value_log);
    double right = side_period(contours, ln, 1, value_log);
    return fmax(left, right) + 3.0 * ln->sd; /* the line serves c within 3 sd of c_ref */
}

/* Adds n (log(1 + a + ib) - i mean). */
static void add_power(double n, double a, double b, double mean, double *e_re, double *e_im) {
    double x = 1.0 + a, square = x * x + b * b;
    *e_re += n * 0.5 * (square < 0.25 ? log(square) : log1p(2.0 * a + (a * a + b * b)));
    *e_im += n * (atan2(b, 1.0 + a) - mean);
}

/* The values at t_k = k ht, first <= k < last, of one line. */
typedef struct {
    size_t first, last;
    double ht, budget;
    int decayed; /* whether the modulus is so small that rotations are good enough */
    double *re, *im; /* of all k: log of the transform */
    double *beats; /* of all k: by how much the moduli of alternatives exceed that of their sum, as logs */
    double *
        singles; /* of each k of these: product of the factors of single steps, whose real parts come first */
    double *points; /* of each k of these: values of the points of families, as pe_kinds_add takes them */
    pe_noise_cumulants at; /* cumulants at those points */
} block;

/* The values of a point of a family. */
static void keep_point(block *b, const pe_group *g, const double *re, const double *im, double total,
                       size_t q, size_t n) {
    const size_t count = b->last - b->first;
    const size_t place = (size_t)g->family * (PE_NOISE_POINTS + PE_CONTROLS) + (size_t)g->point;
    double *x = b->points + 2 * place * count + (q - b->first);
    for (size_t i = 0; i < n; i++) {
        x[i] = 1.0 + (re[i] - total);
        x[i + count] = im[i];
    }
}

/* Adds n (log R - i mean) of sums that were rotated; the factor R of a single step goes into the product in singles
 * instead. */
static void add_rotated(block *b, const pe_group *g, const double *re, const double *im, double total,
                        double k1, size_t first, size_t n) {
    const size_t count = b->last - b->first;
    for (size_t i = 0; i < n; i++) {
        const size_t q = first + i;
        double c = re[i] - total, s = im[i], mean = (double)q * b->ht * k1;
        if (g->n == 1.0) { /* one logarithm for all single steps */
            double *u = &b->singles[q - b->first], *v = u + count, x = *u, y = *v;
            *u = x * (1.0 + c) - y * s;
            *v = x * s + y * (1.0 + c);
            b->im[q] -= mean;
        } else {
            add_power(g->n, c, s, mean, &b->re[q], &b->im[q]);
        }
    }
}

/* The nodes of one kind of step with their tilted weights, and where each alternative has its own. */
typedef struct {
    const pe_nodes *nodes;
    const double *w;
    const pe_span *windows;
    int rotate;
} tilted_nodes;

/* The sums of a run, and of alternatives the sum of their moduli in `moduli`: what two of them leave of each other
 * at one t comes back later, as they beat. */
static void sums_of_run(const tilted_nodes *s, size_t alternatives, double start, double ht, double *re,
                        double *im, double *moduli) {
    if (alternatives == 1) {
        (s->rotate ? rotating_sums : centred_sums)(s->nodes->l, s->w, s->nodes->m, start, ht, re, im);
        return;
    }
    for (size_t k = 0; k < RUN; k++) re[k] = im[k] = moduli[k] = 0.0;
    for (size_t i = 0; i < alternatives; i++) {
        const pe_nodes part = pe_nodes_part(s->nodes, s->windows, i);
        const double *w = s->w + (part.l - s->nodes->l);
        double c[RUN], d[RUN], mass = 0.0, first = 0.0;
        (s->rotate ? rotating_sums : centred_sums)(part.l, w, part.m, start, ht, c, d);
        for (size_t j = 0; j < part.m && !s->rotate; j++) {
            mass += w[j];
            first += w[j] * part.l[j];
        }
        for (size_t k = 0; k < RUN; k++) {
            re[k] += c[k];
            im[k] += d[k];
            moduli[k] += hypot(mass + c[k], d[k] + (start + (double)k * ht) * first);
        }
    }
}

/* What the moduli of alternatives have beside that of their sum, 1 + re + i im. */
static void add_beats(block *b, const pe_group *g, double re, double im, double moduli, size_t q) {
    const double own = fmax(hypot(1.0 + re, im), 1e-300);
    if (g->alternatives > 1) b->beats[q] += g->n * fmax(log(moduli / own), 0.0);
}

/* Adds n (log R(t_k) - i t_k K'), R(t) = M(lambda + i t)/M(lambda), of one group. */
static int group_exponents(const pe_group *g, double lambda, const pe_strip *st, block *b) {
    pe_span windows[PE_ALTERNATIVES];
    double count, ht = b->ht;
    int rotate = b->decayed || g->n < FEW_STEPS;
    if (!pe_strip_windows(g, st, lambda, (double)(b->last - 1) * ht, windows, &count)) return PE_TOO_COSTLY;
    b->budget -= (count + 1.0) * (double)(b->last - b->first) * (rotate ? ROTATION_COST : 1.0);
    if (b->budget < 0.0) return PE_TOO_COSTLY;
    pe_nodes nodes;
    if (pe_nodes_new(&nodes, g, windows)) return PE_NO_MEMORY;
    pe_cumulants k = {0, 0, 0};
    pe_nodes_cumulants(&nodes, 1.0, lambda, &k);
    double *w = nodes.d; /* the defects are no longer needed */
    pe_nodes_tilt(&nodes, lambda, k.k0, w);
    const tilted_nodes sums = {&nodes, w, windows, rotate};
    double total = 0.0;
    for (size_t j = 0; j < nodes.m; j++) total += w[j];
    if (rotate && g->family >= 0) b->at.at[g->family][g->point] = k;
    for (size_t i = b->first; i < b->last; i += RUN) {
        double re[RUN], im[RUN], moduli[RUN];
        sums_of_run(&sums, g->alternatives, (double)i * ht, ht, re, im, moduli);
        const size_t n = b->last - i < RUN ? b->last - i : RUN;
        if (rotate && g->family >= 0) keep_point(b, g, re, im, total, i, n);
        else if (rotate) add_rotated(b, g, re, im, total, k.k1, i, n);
        for (size_t q = i; q < i + n; q++) {
            /* the mean comes from the cumulants: recomputed from sines it would lose digits */
            const double mean = (double)q * ht * k.k1, x = re[q - i] - (rotate ? total : 0.0),
                         y = im[q - i] + (rotate ? 0.0 : mean);
            if (!rotate) add_power(g->n, x, y, mean, &b->re[q], &b->im[q]);
            add_beats(b, g, x, y, moduli[q - i], q);
        }
    }
    pe_nodes_free(&nodes);
    return PE_OK;
}

/* The transform times 1, 1/lambda, 1/(lambda-1), 1/(lambda(lambda-1)); half weight at t = 0. */
int pe_line_set_weights(pe_line *ln, const double *e_re, const double *e_im) {
    ln->weights = malloc(8 * ln->nt * sizeof(double));
    if (!ln->weights) return PE_NO_MEMORY;
    double l = ln->lambda;
    for (size_t k = 0; k < ln->nt; k++) {
        double t = (double)k * ln->ht, a = exp(e_re[k]) * (k ? 1.0 : 0.5);
        double x = a * cos(e_im[k]), y = a * sin(e_im[k]);
        double n0 = l * l + t * t, n1 = (l - 1) * (l - 1) + t * t;
        double *w = ln->weights + 8 * k;
        w[0] = x;
        w[1] = y;
        w[2] = (x * l + y * t) / n0;
        w[3] = (y * l - x * t) / n0;
        w[4] = (x * (l - 1) + y * t) / n1;
        w[5] = (y * (l - 1) - x * t) / n1;
        w[6] = (w[4] * l + w[5] * t) / n0;
        w[7] = (w[5] * l - w[4] * t) / n0;
        const double r0 = sqrt(n0), r1 = sqrt(n1);
        ln->mass[0] += a;
        ln->mass[1] += a / r0;
        ln->mass[2] += a / r1;
        ln->mass[3] += a / (r0 * r1);
    }
    return PE_OK;
}

/* Cumulants on nodes fine enough for full accuracy, and each group's strip. */
static int fine_cumulants(const pe_contours *contours, pe_line *ln, pe_strip *strips) {
    double lambda = ln->lambda, v = contours->gaussian_variance, scale = 0.0, rotated = 0.0;
    pe_noise_cumulants points;
    pe_cumulants k = {0.5 * v * lambda * (lambda - 1.0), v * (lambda - 0.5), v};
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives) {
        const pe_group *g = &contours->groups[i];
        pe_cumulants coarse = {0, 0, 0};
        pe_nodes_cumulants(&g->grid, 1.0, lambda, &coarse);
        for (size_t j = 0; j < g->alternatives; j++) {
            int status = pe_strip_new(&strips[i + j], &g[j], lambda, coarse.k0);
            if (status) return status;
            scale += g->n * strips[i + j].mass * fabs(g[j].log_share); /* which is rounded */
        }
        pe_span windows[PE_ALTERNATIVES];
        double count;
        if (!pe_strip_windows(g, &strips[i], lambda, 0.0, windows, &count)) return PE_TOO_COSTLY;
        pe_nodes nodes;
        if (pe_nodes_new(&nodes, g, windows)) return PE_NO_MEMORY;
        if (g->family < 0) {
            pe_nodes_cumulants(&nodes, g->n, lambda, &k);
        } else {
            points.at[g->family][g->point] = (pe_cumulants){0, 0, 0};
            pe_nodes_cumulants(&nodes, 1.0, lambda, &points.at[g->family][g->point]);
        }
        pe_nodes_free(&nodes);
        scale += fabs(g->n * coarse.k0);
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
    /* R carries the rounding of its sum, which the power n multiplies: where sums are rotated, that
     * of each kind's whole sum */
    ln->term_rounding = DBL_EPSILON * (3.0 + rotated);
    ln->k0 = k.k0;
    ln->c_ref = k.k1;
    ln->sd = sqrt(k.k2);
    ln->rounding = miss + DBL_EPSILON * (1.5 * scale + 2.0 * fabs(lambda * ln->c_ref) + 4.0);
    return PE_OK;
}

/* Adds the members of all families; what is missed of them is an error of every term, as far as it has not decayed. */
static int add_families(const pe_kinds *kinds, pe_line *ln, block *b) {
    const size_t count = b->last - b->first;
    double *room = malloc(3 * count * sizeof(double)), *miss = room + 2 * count;
    if (!room) return PE_NO_MEMORY;
    const pe_noise_block out = {
        b->first, count, b->ht, b->re + b->first, b->im + b->first, b->singles, b->singles + count, room};
    pe_kinds_add(kinds, &b->at, b->points, &out);
    pe_kinds_miss(kinds, &b->at, b->points, &out, miss);
    for (size_t k = 0; k < count; k++) {
        const double modulus = exp(out.re[k]) * hypot(out.singles_re[k], out.singles_im[k]);
        ln->term_rounding = fmax(ln->term_rounding, miss[k] * fmin(modulus, 1.0));
    }
    free(room);
    return PE_OK;
}

/* Values of one block of t on all groups. */
static int block_values(const pe_contours *contours, pe_line *ln, const pe_strip *strips, block *b) {
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
        status = group_exponents(&contours->groups[i], ln->lambda, &strips[i], b);
    if (!status && contours->kinds) status = add_families(contours->kinds, ln, b);
    for (size_t i = 0; i < count && !status; i++)
        add_power(1.0, b->singles[i] - 1.0, b->singles[i + count], 0.0, &b->re[b->first + i],
                  &b->im[b->first + i]);
    free(b->singles);
    return status;
}

/* Whether the transform is next to nothing before `cap`; what is left out then.  Where it beats, its envelope is
 * judged. */
static int has_decayed(pe_line *ln, const block *b, size_t done, size_t cap) {
    size_t run = 0;
    for (size_t i = done ? done - 8 : 1; i < cap; i++) {
        const double now = b->re[i] + b->beats[i];
        run = now < -DECAY ? run + 1 : 0;
        if (run < 8) continue;
        /* if it goes on to decay as since half of t: at least as a power */
        double power = (b->re[i / 2] + b->beats[i / 2] - now) / log(2.0);
        if (power < 2.0) continue;
        ln->truncation = exp(now) * (double)(i + 1) / (power - 1.0);
        ln->nt = i + 1;
        return 1;
    }
    return 0;
}

/* The t range grows by blocks; each block has nodes in z fine enough for its own largest t. */
static int transform_values(const pe_contours *contours, pe_line *ln, const pe_strip *strips,
                            double *out[3]) {
    double steps = 0.0;
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives)
        steps += contours->groups[i].n;
    double first = 9.0 / (ln->sd * ln->ht);
    if (!(first < (double)MAX_NODES_T)) return PE_TOO_COSTLY;
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
        /* the power n multiplies an error of R, and |R|^n what is left of it */
        double top = done ? -INFINITY : 0.0;
        for (size_t i = done - done / 3; i < done; i++) top = fmax(top, b.re[i] + b.beats[i]);
        b.decayed = steps * exp(top) < 1.0;
        b.first = done;
        b.last = cap;
        const int status = block_values(contours, ln, strips, &b);
        if (status) return status;
        /* blocks on different nodes see tilted weights with different rounding */
        if (done) ln->term_rounding = fmax(ln->term_rounding, 10.0 * DBL_EPSILON);
        if (has_decayed(ln, &b, done, cap)) return PE_OK;
    }
}

int pe_line_build(const pe_contours *contours, pe_line *ln) {
    pe_strip *strips = calloc(contours->n_groups + 1, sizeof *strips);
    if (!strips) return PE_NO_MEMORY;
    double *values[3] = {NULL, NULL, NULL};
    int status = fine_cumulants(contours, ln, strips);
    if (!status) {
        ln->ht = 2.0 * PI / pe_line_period(contours, ln);
        status = transform_values(contours, ln, strips, values);
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
