#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lane_trig.h"
#include "simd.h"
#include "spectral.h"

/* One contour of the spectral engine; docs/theory/spectral.md derives every bound used here. */

static const double PI = 3.14159265358979323846;
static const double ALIAS_TOL = 1e-15;      /* relative excess allowed to the aliases */
static const double QUADRATURE_TOL = 2e-16; /* absolute error allowed in n log M */
static const double DECAY = 41.0;           /* the t sum stops where its terms are below e^-41 */
static const double FEW_STEPS = 64.0;
enum { FINE_BLOCKS = 800 };                 /* values of t from which blocks grow by less */
static const double ROTATION_COST = 0.25;   /* of a node by rotation, beside one by itself */
static const double MARGIN = 4.0;           /* of the error terms that are estimates */
static const size_t MAX_NODES_T = 4000000;
static const double MAX_NODES_Z = 1e6;

/* log of a bound on |erfc(x + iy)/erfc(x)|: e^{y^2}, and for x < 0 also 2 + e^{y^2-x^2}. */
static double taper_growth(double x, double y) {
    if (x >= 0.0) return y * y;
    double d = y * y - x * x;
    return d > 40.0 ? d : log(2.0 + exp(d));
}

enum { SHIFTS = 3 };

/* One group on one line: the range of z that matters, and what the integrand does when z is moved
 * by +-ia off the real axis, for several a inside the strip of analyticity |Im z| < pi/mu. */
typedef struct {
    double z_lo, z_hi; /* of a group without any weight: z_hi below z_lo */
    double a[SHIFTS];
    double mass;         /* of the tilted law, among the alternatives */
    double log_centring; /* of the Gaussians that the centred sums subtract, relative to M(lambda) */
    size_t count;  /* coarse nodes that carry weight */
    size_t m;      /* the same, rounded up to a multiple of PE_LANES */
    double *block; /* per shift: log of the moved integrand at t = 0, and arg of the ratio */
    double *local; /* log of the tilted density, and the slope of the loss in z */
} strip;

/* Range of z in which the group's terms matter, from the coarse grid; 0 where there is none. */
static int strip_window(const pe_group *g, double lambda, double log_m, const double *tilted, size_t *from,
                        size_t *to, strip *st) {
    const pe_nodes *s = &g->part;
    double small = 1e-19 / g->n, scale = exp(-fmax(log_m, 0.0));
    size_t lo = s->m, hi = 0, end = s->m - 1;
    for (size_t j = 0; j < s->m; j++) {
        double own = s->w[j] * (1.0 + fabs(lambda) * fabs(s->r[j])) * scale;
        if (tilted[j] + own > small) {
            if (lo == s->m) lo = j;
            hi = j;
        }
    }
    if (lo == s->m) { /* another alternative has all the weight, or nothing has any */
        st->z_hi = st->z_lo - 1.0;
        return g->log_share < 0.0;
    }
    while (s->w[end] == 0.0 && s->logw[end] < -1e8) end--; /* padding */
    if (tilted[end] * g->n > 1e-18) return 0; /* the tilt goes on beyond the window */
    if (g->law && tilted[0] * g->n > 1e-18) return 0;
    st->z_lo = s->z0 + (double)lo * s->h - (lo ? s->h : 0.0);
    /* what falls below the limit falls within one spacing, unless the law is cut there */
    st->z_hi = s->z0 + (double)hi * s->h + (hi < end ? s->h : 0.0);
    for (*from = 0; *from < s->m && tilted[*from] < 1e-60;) ++*from;
    for (*to = s->m; *to > *from && tilted[*to - 1] < 1e-60;) --*to;
    return 1;
}

/* The shift i of the sampled Gaussian's integrand. */
static void move_sampled(strip *st, const pe_group *g, const pe_nodes *s, double lambda, double log_m,
                         size_t from, int i) {
    double power = g->reversed ? 1.0 - lambda : lambda, rest = 1.0 - g->p, a = st->a[i];
    double co = cos(g->mu * a), si = sin(g->mu * a);
    double *moved = st->block + 2 * (size_t)i * st->m, *angle = moved + st->m;
    for (size_t k = 0; k < st->count; k++) {
        size_t j = from + k;
        double ratio = exp(g->reversed ? -s->l[j] : s->l[j]), u = fmax(ratio - rest, 0.0);
        double re = rest + u * co, im = u * si;
        double x = (s->z0 + (double)j * s->h - g->taper_z) / g->taper_s;
        moved[k] = s->logw[j] + lambda * s->l[j] - log_m;
        if (power != 0.0) moved[k] += 0.5 * power * log((re * re + im * im) / (ratio * ratio));
        if (x > -INFINITY) moved[k] += taper_growth(x, a / g->taper_s);
        angle[k] = atan2(im, re);
    }
}

/* The same of a pair of mixtures. */
static void move_mixtures(strip *st, const pe_group *g, const pe_nodes *s, double lambda, double log_m,
                          size_t from, int i) {
    double a = st->a[i], *moved = st->block + 2 * (size_t)i * st->m, *angle = moved + st->m;
    for (size_t k = 0; k < st->count; k++) {
        size_t j = from + k;
        double z = s->z0 + (double)j * s->h;
        pe_moved at = pe_mixtures_moved(g->law, z, a);
        moved[k] = s->logw[j] + lambda * s->l[j] - log_m;
        moved[k] += lambda * at.log_b + (1.0 - lambda) * at.log_a;
        const double far[2] = {z - g->taper_z, g->taper_low - z};
        for (int end = 0; end < 2; end++)
            if (far[end] > -INFINITY) moved[k] += taper_growth(far[end] / g->taper_s, a / g->taper_s);
        angle[k] = fabs(at.angle);
    }
}

static int strip_new(strip *st, const pe_group *g, double lambda, double log_m) {
    const pe_nodes *s = &g->part;
    if (g->table) { /* its nodes are what they are, unless the tilt goes on beyond them */
        double ends[2];
        for (int end = 0; end < 2; end++) {
            size_t j = end ? g->table->m - 1 : 0;
            ends[end] = g->table->log_weight[j] + lambda * g->table->loss[j] - log_m;
        }
        return g->n * exp(fmax(ends[0], ends[1])) > 1e-18 ? PE_TOO_COSTLY : PE_OK;
    }
    double *tilted = malloc((s->m + 1) * sizeof(double));
    if (!tilted) return PE_NO_MEMORY;
    pe_nodes_tilt(s, lambda, log_m, tilted);
    size_t from = 0, to = 0;
    int found = strip_window(g, lambda, log_m, tilted, &from, &to, st);
    for (size_t j = 0; j < s->m; j++) st->mass += tilted[j];
    free(tilted);
    if (!found) return PE_TOO_COSTLY;
    size_t count = to - from;
    st->m = (count + PE_LANES - 1) / PE_LANES * PE_LANES;
    st->block = malloc((2 * (SHIFTS + 1) * st->m + 1) * sizeof(double));
    if (!st->block) return PE_NO_MEMORY;
    double range = g->law ? pe_mixtures_range(g->law) : g->mu;
    double change = g->law ? pe_mixtures_change(g->law) : g->p, rest = 1.0 - g->p;
    double a_top = fmin(0.95 * PI / range, sqrt(2.0 * log(2.0 * g->n / QUADRATURE_TOL)));
    st->log_centring = log(1.0 + 2.0 * change * (1.0 + fabs(lambda))) - fmin(log_m, 0.0);
    st->local = st->block + 2 * SHIFTS * st->m;
    st->count = count;
    for (size_t k = 0; k < count; k++) {
        size_t j = from + k;
        double ratio = exp(g->reversed ? -s->l[j] : s->l[j]);
        double slope = g->law ? fabs(pe_mixtures_slope(g->law, s->z0 + (double)j * s->h))
                              : g->mu * fmax(1.0 - rest / ratio, 0.0);
        st->local[k] = s->logw[j] + lambda * s->l[j] - log_m - log(s->h);
        st->local[st->m + k] = slope;
    }
    for (int i = 0; i < SHIFTS; i++) {
        double *moved = st->block + 2 * (size_t)i * st->m, *angle = moved + st->m;
        st->a[i] = a_top * (i + 2.0) / (SHIFTS + 1.0);
        if (g->law) move_mixtures(st, g, s, lambda, log_m, from, i);
        else move_sampled(st, g, s, lambda, log_m, from, i);
        for (size_t k = count; k < st->m; k++) {
            moved[k] = -1e9;
            angle[k] = 0.0;
        }
    }
    return PE_OK;
}

PE_CLONES static double strip_sum(const double *moved, const double *angle, size_t m, double t,
                                  double shift) {
    double sum[PE_LANES] = {0};
    for (size_t k = 0; k < m; k += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) sum[u] += pe_vexp(moved[k + u] + t * angle[k + u] - shift);
    return pe_lane_sum(sum);
}

/* Node spacing for arguments lambda + i t, |t| <= t_top: the trapezoidal rule errs by at most
 * 2 exp(-2 pi a/h) times the integral of |integrand| on Im z = +-a; the best shift a is taken.  The
 * Gaussians that centre the sums are no smaller on wider strips: by Poisson's formula they err by
 * 2 exp(-2 pi^2/h^2), and limit the spacing by themselves. */
static double strip_spacing(const strip *st, double n, double t_top) {
    double log_target = log(2.0 * n / QUADRATURE_TOL), best = 0.0;
    double widest = PI * sqrt(2.0 / (log_target + st->log_centring));
    for (int i = 0; i < SHIFTS; i++) {
        const double *moved = st->block + 2 * (size_t)i * st->m, *angle = moved + st->m;
        double a = st->a[i], top = -1e9;
        for (size_t k = 0; k < st->m; k++) {
            double v = moved[k] + t_top * angle[k];
            top = v > top ? v : top;
        }
        double sum = strip_sum(moved, angle, st->m, t_top, top);
        double bound = top + log(2.0 * sum) + 0.5 * a * a;
        double h = 2.0 * PI * a / fmax(bound + log_target, 1.0);
        if (h > best) best = h;
    }
    /* The strip is that of the window alone: beyond its ends e^{t arg W} may grow without limit.  At
     * each z the spacing must resolve the local frequency t dl/dz, and a Gaussian's width besides. */
    double frequency = 0.0;
    for (size_t k = 0; k < st->count; k++) {
        double room = log_target + st->local[k];
        if (room <= 0.0) continue;
        frequency = fmax(frequency, t_top * st->local[st->m + k] + sqrt(2.0 * room));
    }
    if (frequency > 0.0) best = fmin(best, 2.0 * PI / frequency);
    return fmin(best, widest);
}

/* Windows of a leading group and of its alternatives for |t| <= t_top, and their nodes in all; false
 * where these are too many. */
static int strip_windows(const pe_group *g, const strip *st, double lambda, double t_top, pe_span *windows,
                         double *count) {
    *count = 0.0;
    for (size_t i = 0; i < g->alternatives; i++) {
        pe_span *w = &windows[i];
        if (g[i].table) {
            *w = pe_table_window(g[i].table, g->n, lambda);
            *count += (double)w->m;
            if (!(t_top <= g[i].table->t_max)) return 0;
            continue;
        }
        w->z0 = st[i].z_lo;
        w->h = strip_spacing(&st[i], g->n, t_top);
        double own = (st[i].z_hi - st[i].z_lo) / w->h;
        if (!(own < MAX_NODES_Z)) return 0;
        w->m = st[i].z_hi < st[i].z_lo ? 0 : (size_t)own + 1;
        *count += fmax(own, 0.0);
    }
    return *count < MAX_NODES_Z;
}

/* Sums of w_j (cos t l_j - 1) and w_j (sin t l_j - t l_j), with small error relative to themselves. */
PE_CLONES static void oscillating_sums(const double *l, const double *w, size_t m, double t, double *re,
                                       double *im) {
    double c[PE_LANES] = {0}, s[PE_LANES] = {0};
    for (size_t j = 0; j < m; j += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            double b = t * l[j + u], cm1, smx;
            pe_vcosm1_sinmx(b, &cm1, &smx);
            c[u] += w[j + u] * cm1;
            s[u] += w[j + u] * smx;
        }
    *re = pe_lane_sum(c);
    *im = pe_lane_sum(s);
}

enum { RUN = 16 }; /* values of t between two anchors of a rotation */

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

/* Adds n (log R(t_k) - i t_k K'), R(t) = M(lambda + i t)/M(lambda), of one group for t_k = k ht,
 * first <= k < last; the factor R of a single step goes into the product in singles instead. */
static int group_exponents(const pe_group *g, double lambda, const strip *st, double ht, size_t first,
                           size_t last, int decayed, double *e_re, double *e_im, double *singles,
                           double *budget) {
    pe_span windows[PE_ALTERNATIVES];
    double count;
    int rotate = decayed || g->n < FEW_STEPS;
    if (!strip_windows(g, st, lambda, (double)(last - 1) * ht, windows, &count)) return PE_TOO_COSTLY;
    *budget -= (count + 1.0) * (double)(last - first) * (rotate ? ROTATION_COST : 1.0);
    if (*budget < 0.0) return PE_TOO_COSTLY;
    pe_nodes nodes;
    if (pe_nodes_new(&nodes, g, windows)) return PE_NO_MEMORY;
    pe_cumulants k = {0, 0, 0};
    pe_nodes_cumulants(&nodes, 1.0, lambda, &k);
    double *w = nodes.d; /* the defects are no longer needed */
    pe_nodes_tilt(&nodes, lambda, k.k0, w);
    if (rotate) {
        double total = 0.0;
        for (size_t j = 0; j < nodes.m; j++) total += w[j];
        for (size_t i = first; i < last; i += RUN) {
            double re[RUN], im[RUN];
            rotating_sums(nodes.l, w, nodes.m, (double)i * ht, ht, re, im);
            for (size_t q = i; q < last && q < i + RUN; q++) {
                double a = re[q - i] - total, b = im[q - i], mean = (double)q * ht * k.k1;
                if (g->n == 1.0) { /* one logarithm for all single steps */
                    double x = singles[2 * q], y = singles[2 * q + 1];
                    singles[2 * q] = x * (1.0 + a) - y * b;
                    singles[2 * q + 1] = x * b + y * (1.0 + a);
                    e_im[q] -= mean;
                } else {
                    add_power(g->n, a, b, mean, &e_re[q], &e_im[q]);
                }
            }
        }
    } else {
        for (size_t i = first; i < last; i++) {
            double t = (double)i * ht, a, b;
            oscillating_sums(nodes.l, w, nodes.m, t, &a, &b);
            /* the mean comes from the cumulants: recomputed from sines it would lose digits */
            add_power(g->n, a, b + t * k.k1, t * k.k1, &e_re[i], &e_im[i]);
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
        for (int q = 0; q < 4; q++) ln->mass[q] += hypot(w[2 * q], w[2 * q + 1]);
    }
    return PE_OK;
}

/* Cumulants on nodes fine enough for full accuracy, and each group's strip. */
static int fine_cumulants(const pe_contours *contours, pe_line *ln, strip *strips) {
    double lambda = ln->lambda, v = contours->gaussian_variance, scale = 0.0, rotated = 0.0;
    pe_cumulants k = {0.5 * v * lambda * (lambda - 1.0), v * (lambda - 0.5), v};
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives) {
        const pe_group *g = &contours->groups[i];
        pe_cumulants coarse = {0, 0, 0};
        pe_nodes_cumulants(&g->grid, 1.0, lambda, &coarse);
        for (size_t j = 0; j < g->alternatives; j++) {
            int status = strip_new(&strips[i + j], &g[j], lambda, coarse.k0);
            if (status) return status;
            scale += g->n * strips[i + j].mass * fabs(g[j].log_share); /* which is rounded */
        }
        pe_span windows[PE_ALTERNATIVES];
        double count;
        if (!strip_windows(g, &strips[i], lambda, 0.0, windows, &count)) return PE_TOO_COSTLY;
        pe_nodes nodes;
        if (pe_nodes_new(&nodes, g, windows)) return PE_NO_MEMORY;
        pe_nodes_cumulants(&nodes, g->n, lambda, &k);
        pe_nodes_free(&nodes);
        scale += fabs(g->n * coarse.k0);
        if (g->n < FEW_STEPS) rotated += g->n;
    }
    /* R carries the rounding of its sum, which the power n multiplies: where sums are rotated, that
     * of each kind's whole sum */
    ln->term_rounding = DBL_EPSILON * (3.0 + rotated);
    ln->k0 = k.k0;
    ln->c_ref = k.k1;
    ln->sd = sqrt(k.k2);
    ln->rounding = DBL_EPSILON * (1.5 * scale + 2.0 * fabs(lambda * ln->c_ref) + 4.0);
    return PE_OK;
}

/* The t range grows by blocks; each block has nodes in z fine enough for its own largest t. */
static int transform_values(const pe_contours *contours, pe_line *ln, const strip *strips, double **e_re,
                            double **e_im) {
    double budget = contours->cost_limit, v = contours->gaussian_variance, steps = 0.0;
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives)
        steps += contours->groups[i].n;
    double first = 9.0 / (ln->sd * ln->ht);
    if (!(first < (double)MAX_NODES_T)) return PE_TOO_COSTLY;
    size_t done = 0, cap = (size_t)first + 16;
    for (;; done = cap, cap += cap < FINE_BLOCKS ? cap / 2 : cap / 4) {
        if (cap > MAX_NODES_T) return PE_TOO_COSTLY;
        double *re = realloc(*e_re, cap * sizeof(double));
        if (!re) return PE_NO_MEMORY;
        *e_re = re;
        double *im = realloc(*e_im, cap * sizeof(double));
        if (!im) return PE_NO_MEMORY;
        *e_im = im;
        double *singles = malloc(2 * cap * sizeof(double));
        if (!singles) return PE_NO_MEMORY;
        for (size_t i = done; i < cap; i++) {
            double t = (double)i * ln->ht;
            re[i] = -0.5 * v * t * t;
            im[i] = singles[2 * i + 1] = 0.0;
            singles[2 * i] = 1.0;
        }
        /* the power n multiplies an error of R, and |R|^n what is left of it */
        double top = done ? -INFINITY : 0.0;
        for (size_t i = done - done / 3; i < done; i++) top = fmax(top, re[i]);
        int decayed = steps * exp(top) < 1.0, status = PE_OK;
        for (size_t i = 0; i < contours->n_groups && !status; i += contours->groups[i].alternatives)
            status = group_exponents(&contours->groups[i], ln->lambda, &strips[i], ln->ht, done, cap, decayed,
                                     re, im, singles, &budget);
        for (size_t i = done; i < cap && !status; i++)
            add_power(1.0, singles[2 * i] - 1.0, singles[2 * i + 1], 0.0, &re[i], &im[i]);
        free(singles);
        if (status) return status;
        /* blocks on different nodes see tilted weights with different rounding */
        if (done) ln->term_rounding = fmax(ln->term_rounding, 10.0 * DBL_EPSILON);
        size_t run = 0;
        for (size_t i = done ? done - 8 : 1; i < cap; i++) {
            run = re[i] < -DECAY ? run + 1 : 0;
            if (run < 8) continue;
            /* what is left out, if it goes on to decay as since half of t: at least as a power */
            double power = (re[i / 2] - re[i]) / log(2.0);
            if (power < 2.0) continue;
            ln->truncation = exp(re[i]) * (double)(i + 1) / (power - 1.0);
            ln->nt = i + 1;
            return PE_OK;
        }
    }
}

int pe_line_build(const pe_contours *contours, pe_line *ln) {
    strip *strips = calloc(contours->n_groups + 1, sizeof *strips);
    if (!strips) return PE_NO_MEMORY;
    double *e_re = NULL, *e_im = NULL;
    int status = fine_cumulants(contours, ln, strips);
    if (!status) {
        ln->ht = 2.0 * PI / pe_line_period(contours, ln);
        status = transform_values(contours, ln, strips, &e_re, &e_im);
    }
    if (!status) status = pe_line_set_weights(ln, e_re, e_im);
    for (size_t i = 0; i < contours->n_groups; i++) free(strips[i].block);
    free(strips);
    free(e_re);
    free(e_im);
    return status;
}

void pe_line_free(pe_line *ln) {
    if (ln) free(ln->weights);
    free(ln);
}

PE_CLONES void pe_line_sums(const pe_line *ln, const double *c, double sum[4][PE_LANES]) {
    double x[PE_LANES], cr[PE_LANES], ci[PE_LANES], ur[PE_LANES], ui[PE_LANES];
    double s0[PE_LANES] = {0}, s1[PE_LANES] = {0}, s2[PE_LANES] = {0}, s3[PE_LANES] = {0};
    for (int u = 0; u < PE_LANES; u++) {
        double cm1, smx;
        x[u] = -ln->ht * (c[u] - ln->c_ref);
        pe_vcosm1_sinmx(x[u], &cm1, &smx);
        cr[u] = 1.0 + cm1;
        ci[u] = x[u] + smx;
    }
    for (size_t k0 = 0; k0 < ln->nt; k0 += 16) {
        double start = (double)k0;
        for (int u = 0; u < PE_LANES; u++) {
            double cm1, smx, angle = start * x[u];
            pe_vcosm1_sinmx(angle, &cm1, &smx);
            ur[u] = 1.0 + cm1;
            ui[u] = angle + smx;
        }
        size_t end = k0 + 16 < ln->nt ? k0 + 16 : ln->nt;
        double b0[PE_LANES] = {0}, b1[PE_LANES] = {0}, b2[PE_LANES] = {0}, b3[PE_LANES] = {0};
        for (size_t k = k0; k < end; k++) {
            const double *w = ln->weights + 8 * k;
            for (int u = 0; u < PE_LANES; u++) {
                double re = ur[u], im = ui[u];
                b0[u] += w[0] * re - w[1] * im;
                b1[u] += w[2] * re - w[3] * im;
                b2[u] += w[4] * re - w[5] * im;
                b3[u] += w[6] * re - w[7] * im;
                ur[u] = re * cr[u] - im * ci[u];
                ui[u] = re * ci[u] + im * cr[u];
            }
        }
        for (int u = 0; u < PE_LANES; u++) { /* sums of sums: rounding does not grow with all nt */
            s0[u] += b0[u];
            s1[u] += b1[u];
            s2[u] += b2[u];
            s3[u] += b3[u];
        }
    }
    double f = ln->ht / PI;
    for (int u = 0; u < PE_LANES; u++) {
        sum[0][u] = f * s0[u];
        sum[1][u] = f * s1[u];
        sum[2][u] = f * s2[u];
        sum[3][u] = f * s3[u];
    }
}

/* A functional and its complement to 1. */
static void set_pair(pe_row *row, int natural, int other, double log_value, double error) {
    double rest = -expm1(log_value);
    row->log_value[natural] = log_value;
    row->error[natural] = error;
    row->log_value[other] = rest > 0.0 ? log(rest) : -INFINITY;
    if (log_value < -0.5) row->log_value[other] = log1p(-exp(log_value));
    row->error[other] = INFINITY;
    if (rest > 0.0 && error < INFINITY) row->error[other] = error * exp(log_value) / rest + DBL_EPSILON;
}

static void evaluate_one(const pe_contours *contours, const pe_line *ln, double c, const double *s,
                         pe_row *row) {
    double error[4], l = ln->lambda, base = ln->k0 - l * c;
    double tail_alias = 0.0, profile_alias = 0.0, last_t = ln->ht * (double)ln->nt;
    for (int side = 0; side < 2; side++) {
        double theta = ln->theta[side], step = exp(-fabs(theta - l) * 2.0 * PI / ln->ht);
        double bound = exp(ln->theta_k[side] - theta * c - base) * step / (1.0 - step);
        tail_alias += bound;
        /* (1 - e^x)+ <= e^{theta x}/(1 + |theta|) for theta <= 0 */
        profile_alias += l < 0.0 ? bound / (1.0 + fabs(theta)) : bound;
    }
    double exponent = ln->rounding + DBL_EPSILON * fabs(l * (c - ln->c_ref));
    double sign[4] = {1.0, l, l - 1.0, l * (l - 1.0)};
    double decay[4] = {1.0, last_t, last_t, last_t * last_t};
    for (int q = 0; q < 4; q++) {
        double omitted = ln->truncation * ln->ht / PI / decay[q];
        double rounding = ln->term_rounding * ln->mass[q] * ln->ht / PI;
        double alias = q == 3 ? profile_alias : tail_alias;
        error[q] = (alias + MARGIN * (omitted + rounding)) / fabs(s[q]) + MARGIN * exponent;
        if (!(s[q] * sign[q] > 0.0) || !(error[q] < 1.0)) error[q] = INFINITY;
    }
    double log_a = base + log(fabs(s[1])), log_b = base + c + log(fabs(s[2]));
    double log_h = base + log(fabs(s[3])), cut = contours->log_cut;
    if (cut > -INFINITY) {
        /* Removing large z takes at most the mass of the cut from the tail on their side (under B,
         * where the pair is reversed, also at most e^c of it), and at most that share of the other
         * tail and of a profile that falls as z grows.  Cut at both ends, every tail loses. */
        int rev = contours->reversed, both = contours->both_ends;
        double cut_b = rev && !both ? cut + fmin(c, 0.0) : cut;
        error[1] += exp(both || (l > 0.0) != rev ? cut - log_a : cut);
        error[2] += exp(both || (l > 1.0) != rev ? cut_b - log_b : cut);
        error[3] += exp(both || rev ? cut - log_h : cut);
    }
    row->density_log = base + log(fabs(s[0]));
    set_pair(row, l > 0 ? PE_A_ABOVE : PE_A_BELOW, l > 0 ? PE_A_BELOW : PE_A_ABOVE, log_a, error[1]);
    set_pair(row, l > 1 ? PE_B_ABOVE : PE_B_BELOW, l > 1 ? PE_B_BELOW : PE_B_ABOVE, log_b, error[2]);
    row->log_value[PE_PROFILE] = log_h;
    row->error[PE_PROFILE] = error[3];
    if (l > 1.0) { /* the sum is E max(0, e^{S-c} - 1) = e^{-c} - 1 + E max(0, 1 - e^{S-c}) */
        row->log_value[PE_PROFILE] = NAN;
        row->error[PE_PROFILE] = INFINITY;
    } else if (l > 0.0) { /* the sum is E min(1, e^{S-c}) */
        pe_row side;
        set_pair(&side, 0, 1, log_h, error[3]);
        row->log_value[PE_PROFILE] = side.log_value[1];
        row->error[PE_PROFILE] = side.error[1];
    }
}

void pe_line_evaluate(const pe_contours *contours, const pe_line *ln, size_t n, const double *c,
                      pe_row *rows) {
    double padded[PE_LANES], sum[4][PE_LANES];
    for (size_t u = 0; u < PE_LANES; u++) padded[u] = u < n ? c[u] : c[0];
    pe_line_sums(ln, padded, sum);
    for (size_t u = 0; u < n; u++) {
        double s[4] = {sum[0][u], sum[1][u], sum[2][u], sum[3][u]};
        evaluate_one(contours, ln, c[u], s, &rows[u]);
    }
}

/* Whether a functional is what the sums on a line are, not the complement of it. */
static int is_natural(double lambda, int functional) {
    switch (functional) {
    case PE_A_ABOVE:
        return lambda > 0.0;
    case PE_A_BELOW:
        return !(lambda > 0.0);
    case PE_B_ABOVE:
        return lambda > 1.0;
    case PE_B_BELOW:
        return !(lambda > 1.0);
    default:
        return !(lambda > 0.0); /* its slope takes B's lower tail */
    }
}

void pe_line_slopes(const pe_contours *contours, const pe_line *ln, int functional, size_t n, const double *c,
                    double *value, double *slope) {
    const double l = ln->lambda;
    if (!is_natural(l, functional)) {
        pe_row rows[PE_LANES];
        pe_line_evaluate(contours, ln, n, c, rows);
        for (size_t u = 0; u < n; u++) {
            value[u] = rows[u].log_value[functional];
            slope[u] = pe_row_slope(&rows[u], functional, c[u]);
        }
        return;
    }
    double padded[PE_LANES], sum[4][PE_LANES];
    for (size_t u = 0; u < PE_LANES; u++) padded[u] = u < n ? c[u] : c[0];
    pe_line_sums(ln, padded, sum);
    for (size_t u = 0; u < n; u++) {
        const double base = ln->k0 - l * c[u];
        pe_row row;
        row.density_log = functional == PE_PROFILE ? NAN : base + log(fabs(sum[0][u]));
        row.log_value[PE_B_BELOW] = functional == PE_PROFILE ? base + c[u] + log(fabs(sum[2][u])) : NAN;
        const int which = functional == PE_PROFILE                               ? 3
                          : functional == PE_A_ABOVE || functional == PE_A_BELOW ? 1
                                                                                 : 2;
        row.log_value[functional] = base + (which == 2 ? c[u] : 0.0) + log(fabs(sum[which][u]));
        value[u] = row.log_value[functional];
        slope[u] = pe_row_slope(&row, functional, c[u]);
    }
}

double pe_row_slope(const pe_row *row, int functional, double c) {
    double v = row->log_value[functional];
    switch (functional) {
    case PE_A_ABOVE:
        return -exp(row->density_log - v);
    case PE_A_BELOW:
        return exp(row->density_log - v);
    case PE_B_ABOVE:
        return -exp(row->density_log + c - v);
    case PE_B_BELOW:
        return exp(row->density_log + c - v);
    default:
        return exp(row->log_value[PE_B_BELOW] - c - v);
    }
}
