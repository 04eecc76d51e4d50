/* The spacing of nodes in z that one line allows, from the integrand's moduli in the strip of analyticity.
 * docs/estimates.md derives the bounds used here.  Called by contour.c. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"
#include "lane_log.h"
#include "lane_trig.h"
#include "simd.h"
#include "strips.h"

static const double PI = 3.14159265358979323846;
static const double QUADRATURE_TOL = 2e-16; /* absolute error allowed in n log M */
static const double MAX_NODES_Z = 1e6;

/* log of a bound on |erfc(x + iy)/erfc(x)|: e^{y^2}, and for x < 0 also 2 + e^{y^2-x^2}. */
static double taper_growth(double x, double y) {
    if (x >= 0.0) return y * y;
    double d = y * y - x * x;
    return d > 40.0 ? d : pe_d_log(2.0 + pe_d_exp(d));
}

/* Sizes of the nodes' terms: the tilted weight, plus `scale` times the terms that centred sums subtract. */
PE_CLONES static void set_sizes(const pe_nodes *s, double lambda, double scale, const double *tilted,
                                double *size) {
    const double power = fabs(lambda), *W = s->w, *R = s->r;
    for (size_t j = 0; j < s->m; j += PE_LANES) {
        double sum[PE_LANES];
        for (int u = 0; u < PE_LANES; u++)
            sum[u] = tilted[j + u] + W[j + u] * (1.0 + power * fabs(R[j + u])) * scale;
        memcpy(size + j, sum, sizeof sum);
    }
}

/* Sets the range of z outside of which the group's terms are negligible, from the coarse grid; 0 if there is none. */
static int strip_window(const pe_group *g, double lambda, double log_m, const double *tilted, double *size,
                        size_t *from, size_t *to, pe_strip *st) {
    const pe_nodes *s = &g->part;
    const double small = 1e-19 / fmax(g->n, 1.0);
    size_t lo = 0, hi = s->m - 1, end = s->m - 1;
    set_sizes(s, lambda, pe_d_exp(-fmax(log_m, 0.0)), tilted, size);
    while (lo < s->m && !(size[lo] > small)) lo++;
    while (hi > lo && !(size[hi] > small)) hi--;
    if (lo == s->m) { /* no weight: acceptable for one of several alternatives */
        st->z_hi = st->z_lo - 1.0;
        return g->log_share < 0.0;
    }
    while (s->w[end] == 0.0 && s->logw[end] < -1e8) end--; /* padding */
    if (tilted[end] * fmax(g->n, 1.0) > 1e-18) return 0; /* weight beyond the coarse grid */
    if (g->law && tilted[0] * g->n > 1e-18) return 0;
    st->z_lo = s->z0 + (double)lo * s->h - (lo ? s->h : 0.0);
    /* one spacing further, unless the grid ends there */
    st->z_hi = s->z0 + (double)hi * s->h + (hi < end ? s->h : 0.0);
    for (*from = 0; *from < s->m && tilted[*from] < 1e-60;) ++*from;
    for (*to = s->m; *to > *from && tilted[*to - 1] < 1e-60;) --*to;
    *from = *from / PE_LANES * PE_LANES;
    *to = (*to + PE_LANES - 1) / PE_LANES * PE_LANES;
    return 1;
}

/* Sets the logs of the tilted weights and the slopes of the loss of the sampled Gaussian. */
PE_CLONES static void set_local(const pe_strip *st, const pe_group *g, double log_m) {
    const pe_nodes *s = &g->part;
    const double sign = g->reversed ? -1.0 : 1.0, rest = 1.0 - g->p;
    for (size_t k = 0; k < st->m; k += PE_LANES) {
        double weight[PE_LANES], slope[PE_LANES];
        for (int u = 0; u < PE_LANES; u++) {
            const double l = s->l[st->from + k + u], down = sign * l, near = down > -700.0 ? -down : 700.0;
            const double up = 1.0 - rest * pe_vexp(near);
            weight[u] = s->logw[st->from + k + u] + st->lambda * l - log_m;
            slope[u] = g->mu * (up > 0.0 ? up : 0.0);
        }
        memcpy(st->local + k, weight, sizeof weight);
        memcpy(st->local + st->m + k, slope, sizeof slope);
    }
}

/* The same of a pair of mixtures. */
static void set_mixed_local(const pe_strip *st, const pe_group *g, double log_m) {
    const pe_nodes *s = &g->part;
    for (size_t k = 0; k < st->m; k++) {
        const double z = s->z0 + (double)(st->from + k) * s->h;
        st->local[k] = s->logw[st->from + k] + st->lambda * s->l[st->from + k] - log_m;
        st->local[st->m + k] = fabs(pe_mixtures_slope(g->law, z));
    }
}

/* Log modulus of the integrand on Im z = +-a (but for the normal density's e^{a^2/2}), and the argument of the
 * likelihood ratio, of the sampled Gaussian. */
PE_CLONES static void move_sampled(const pe_strip *st, const pe_group *g, double a, double *moved) {
    const double power = g->reversed ? 1.0 - st->lambda : st->lambda;
    const double co = pe_d_cos(g->mu * a), si = pe_d_sin(g->mu * a), per_mu = 1.0 / g->mu;
    for (size_t k = 0; k < st->m; k += PE_LANES) {
        double log_moved[PE_LANES], angle[PE_LANES];
        for (int u = 0; u < PE_LANES; u++) {
            const double up = st->local[st->m + k + u] * per_mu, re = 1.0 - up + up * co, im = up * si;
            log_moved[u] = st->local[k + u] + 0.5 * power * pe_log(re * re + im * im);
            angle[u] = pe_vargument(re, im);
        }
        memcpy(moved + k, log_moved, sizeof log_moved);
        memcpy(moved + st->m + k, angle, sizeof angle);
    }
    for (size_t k = 0; k < st->m && g->taper_z < INFINITY; k++) {
        const double z = g->part.z0 + (double)(st->from + k) * g->part.h;
        moved[k] += taper_growth((z - g->taper_z) / g->taper_s, a / g->taper_s);
    }
}

/* The same of a pair of mixtures. */
static void move_mixtures(const pe_strip *st, const pe_group *g, double a, double *moved) {
    for (size_t k = 0; k < st->m; k++) {
        const double z = g->part.z0 + (double)(st->from + k) * g->part.h;
        const pe_moved at = pe_mixtures_moved(g->law, z, a);
        moved[k] = st->local[k] + st->lambda * at.log_b + (1.0 - st->lambda) * at.log_a;
        const double far[2] = {z - g->taper_z, g->taper_low - z};
        for (int end = 0; end < 2; end++)
            if (far[end] > -INFINITY) moved[k] += taper_growth(far[end] / g->taper_s, a / g->taper_s);
        moved[st->m + k] = fabs(at.angle);
    }
}

static double lane_total(const double *x, size_t m) {
    double sum[PE_LANES] = {0};
    for (size_t k = 0; k < m; k += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) sum[u] += x[k + u];
    return pe_lane_sum(sum);
}

int pe_strip_new(pe_strip *st, const pe_group *g, double lambda, double log_m, const double *tilted,
                 double *room) {
    const pe_nodes *s = &g->part;
    if (g->table) { /* has its own nodes; only check that there is no weight beyond them */
        double ends[2];
        for (int end = 0; end < 2; end++) {
            size_t j = end ? g->table->m - 1 : 0;
            ends[end] = g->table->log_weight[j] + lambda * g->table->loss[j] - log_m;
        }
        return g->n * pe_d_exp(fmax(ends[0], ends[1])) > 1e-18 ? PE_TOO_COSTLY : PE_OK;
    }
    size_t from = 0, to = 0;
    const int found = strip_window(g, lambda, log_m, tilted, room, &from, &to, st);
    st->mass = lane_total(tilted, s->m);
    if (!found) return PE_TOO_COSTLY;
    st->m = to - from;
    st->from = from;
    st->lambda = lambda;
    st->block = malloc((2 * (PE_SHIFTS + 1) * st->m + 1) * sizeof(double));
    if (!st->block) return PE_NO_MEMORY;
    double range = g->law ? pe_mixtures_range(g->law) : g->mu;
    double change = g->law ? pe_mixtures_change(g->law) : g->p;
    double a_top = fmin(0.95 * PI / range, sqrt(2.0 * pe_d_log(2.0 * fmax(g->n, 1.0) / QUADRATURE_TOL)));
    st->log_centring = pe_d_log(1.0 + 2.0 * change * (1.0 + fabs(lambda))) - fmin(log_m, 0.0);
    st->log_h = pe_d_log(s->h);
    st->local = st->block + 2 * PE_SHIFTS * st->m;
    if (g->law) set_mixed_local(st, g, log_m);
    else set_local(st, g, log_m);
    for (int i = 0; i < PE_SHIFTS; i++) st->a[i] = a_top * (i + 2.0) / (PE_SHIFTS + 1.0);
    return PE_OK;
}

/* The integrand on the lines of shift i, computed when first asked for. */
static const double *moved_to(pe_strip *st, const pe_group *g, int i) {
    double *moved = st->block + 2 * (size_t)i * st->m;
    if (!st->is_moved[i]) {
        if (g->law) move_mixtures(st, g, st->a[i], moved);
        else move_sampled(st, g, st->a[i], moved);
        st->is_moved[i] = 1;
    }
    return moved;
}

/* log of the sum of |integrand| on one pair of lines Im z = +-a, at t. */
PE_CLONES static double strip_log_sum(const double *moved, const double *angle, size_t m, double t) {
    double sum[PE_LANES] = {0}, tops[PE_LANES], top = -1e9;
    for (int u = 0; u < PE_LANES; u++) tops[u] = -1e9;
    for (size_t k = 0; k < m; k += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            const double v = moved[k + u] + t * angle[k + u];
            tops[u] = v > tops[u] ? v : tops[u];
        }
    for (int u = 0; u < PE_LANES; u++) top = tops[u] > top ? tops[u] : top;
    for (size_t k = 0; k < m; k += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) sum[u] += pe_vexp(moved[k + u] + t * angle[k + u] - top);
    return top + pe_d_log(pe_lane_sum(sum));
}

/* The largest local frequency that the nodes must resolve: t times the slope of the loss plus sqrt(2 x), x being the
 * log of the node's weight over the error allowed, e^-room. */
PE_CLONES static double top_frequency(const double *local, const double *slope, size_t m, double t,
                                      double room) {
    double tops[PE_LANES] = {0}, top = 0.0;
    for (size_t k = 0; k < m; k += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            const double above = room + local[k + u], own = above > 0.0 ? above : 0.0;
            const double here = t * slope[k + u] + sqrt(2.0 * own), counts = above > 0.0 ? here : 0.0;
            tops[u] = counts > tops[u] ? counts : tops[u];
        }
    for (int u = 0; u < PE_LANES; u++) top = tops[u] > top ? tops[u] : top;
    return top;
}

/* Node spacing for |t| <= t_top.  The trapezoidal rule errs by at most 2 exp(-2 pi a/h) times the integral of the
 * modulus on Im z = +-a; the best shift a is taken (one is skipped if even an integral of 1, its least value at t = 0,
 * would not make it better).  The Gaussians that centre the sums err by 2 exp(-2 pi^2/h^2), by Poisson's formula, on
 * any strip, and limit the spacing as well. */
static double strip_spacing(pe_strip *st, const pe_group *g, double t_top) {
    const double log_target = pe_d_log(2.0 * fmax(g->n, 1.0) / QUADRATURE_TOL);
    const double widest = PI * sqrt(2.0 / (log_target + st->log_centring));
    double best = 0.0;
    if (!st->m) return widest;
    for (int i = PE_SHIFTS - 1; i >= 0; i--) {
        const double a = st->a[i], least = pe_d_log(2.0) + 0.5 * a * a + log_target;
        if (best * least >= 2.0 * PI * a) continue;
        const double *moved = moved_to(st, g, i);
        const double bound = least + strip_log_sum(moved, moved + st->m, st->m, t_top);
        best = fmax(best, 2.0 * PI * a / fmax(bound, 1.0));
    }
    /* moduli are known inside of the window only, and e^{t arg W} may grow beyond its ends: so the spacing must resolve
     * the local frequency at each z, too */
    const double frequency =
        top_frequency(st->local, st->local + st->m, st->m, t_top, log_target - st->log_h);
    if (frequency > 0.0) best = fmin(best, 2.0 * PI / frequency);
    return fmin(best, widest);
}

int pe_strip_windows(const pe_group *g, pe_strip *st, double lambda, double t_top, pe_span *windows,
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
        w->h = strip_spacing(&st[i], &g[i], t_top);
        double own = (st[i].z_hi - st[i].z_lo) / w->h;
        if (!(own < MAX_NODES_Z)) return 0;
        w->m = st[i].z_hi < st[i].z_lo ? 0 : (size_t)own + 1;
        *count += fmax(own, 0.0);
    }
    return *count < MAX_NODES_Z;
}
