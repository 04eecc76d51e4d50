#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lane_log.h"
#include "lane_trig.h"
#include "simd.h"
#include "strips.h"

/* How far nodes in z may stand apart on one line; docs/theory/spectral.md derives every bound used here. */

static const double PI = 3.14159265358979323846;
static const double QUADRATURE_TOL = 2e-16; /* absolute error allowed in n log M */
static const double MAX_NODES_Z = 1e6;

/* log of a bound on |erfc(x + iy)/erfc(x)|: e^{y^2}, and for x < 0 also 2 + e^{y^2-x^2}. */
static double taper_growth(double x, double y) {
    if (x >= 0.0) return y * y;
    double d = y * y - x * x;
    return d > 40.0 ? d : log(2.0 + exp(d));
}

/* Range of z in which the group's terms matter, from the coarse grid; 0 where there is none. */
static int strip_window(const pe_group *g, double lambda, double log_m, const double *tilted, size_t *from,
                        size_t *to, pe_strip *st) {
    const pe_nodes *s = &g->part;
    double small = 1e-19 / fmax(g->n, 1.0), scale = exp(-fmax(log_m, 0.0));
    size_t lo = s->m, hi = 0, end = s->m - 1;
    for (size_t j = 0; j < s->m; j++) {
        const double own = s->w[j] * (1.0 + fabs(lambda) * fabs(s->r[j])) * scale;
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
    if (tilted[end] * fmax(g->n, 1.0) > 1e-18) return 0; /* the tilt goes on beyond the window */
    if (g->law && tilted[0] * g->n > 1e-18) return 0;
    st->z_lo = s->z0 + (double)lo * s->h - (lo ? s->h : 0.0);
    /* what falls below the limit falls within one spacing, unless the law is cut there */
    st->z_hi = s->z0 + (double)hi * s->h + (hi < end ? s->h : 0.0);
    for (*from = 0; *from < s->m && tilted[*from] < 1e-60;) ++*from;
    for (*to = s->m; *to > *from && tilted[*to - 1] < 1e-60;) --*to;
    *from = *from / PE_LANES * PE_LANES;
    *to = (*to + PE_LANES - 1) / PE_LANES * PE_LANES;
    return 1;
}

/* Sets the local frequencies of the sampled Gaussian, and nodes [from, from + m), whole lanes, of its integrand moved
 * to the lines Im z = +-a of all shifts, in units of the likelihood ratio. */
PE_CLONES static void move_sampled(const pe_strip *st, const pe_group *g, const pe_nodes *s, double lambda,
                                   size_t from) {
    const double power = g->reversed ? 1.0 - lambda : lambda, rest = 1.0 - g->p,
                 sign = g->reversed ? -1.0 : 1.0;
    double co[PE_SHIFTS], si[PE_SHIFTS];
    for (int i = 0; i < PE_SHIFTS; i++) {
        co[i] = cos(g->mu * st->a[i]);
        si[i] = sin(g->mu * st->a[i]);
    }
    for (size_t k = 0; k < st->m; k += PE_LANES) {
        double low[PE_LANES], up[PE_LANES], slope[PE_LANES];
        for (int u = 0; u < PE_LANES; u++) {
            const double down = sign * s->l[from + k + u], near = down > -700.0 ? -down : 700.0;
            low[u] = rest * pe_vexp(near);
        }
        for (int u = 0; u < PE_LANES; u++) {
            const double other = 1.0 - low[u];
            up[u] = other > 0.0 ? other : 0.0;
            slope[u] = g->mu * up[u];
        }
        memcpy(st->local + st->m + k, slope, sizeof slope);
        for (int i = 0; i < PE_SHIFTS; i++) {
            double *moved = st->block + 2 * (size_t)i * st->m + k;
            double log_moved[PE_LANES], angle[PE_LANES];
            for (int u = 0; u < PE_LANES; u++) {
                const double re = low[u] + up[u] * co[i], im = up[u] * si[i];
                log_moved[u] = st->local[k + u] + 0.5 * power * pe_log(re * re + im * im);
                angle[u] = pe_vargument(re, im);
            }
            memcpy(moved, log_moved, sizeof log_moved);
            memcpy(moved + st->m, angle, sizeof angle);
        }
    }
    for (size_t k = 0; k < st->m && g->taper_z < INFINITY; k++) {
        const double x = (s->z0 + (double)(from + k) * s->h - g->taper_z) / g->taper_s;
        for (int i = 0; i < PE_SHIFTS; i++)
            st->block[2 * (size_t)i * st->m + k] += taper_growth(x, st->a[i] / g->taper_s);
    }
}

/* The same of a pair of mixtures, for one shift. */
static void move_mixtures(const pe_strip *st, const pe_group *g, const pe_nodes *s, double lambda,
                          size_t from, int i) {
    double a = st->a[i], *moved = st->block + 2 * (size_t)i * st->m, *angle = moved + st->m;
    for (size_t k = 0; k < st->m; k++) {
        double z = s->z0 + (double)(from + k) * s->h;
        pe_moved at = pe_mixtures_moved(g->law, z, a);
        if (!i) st->local[st->m + k] = fabs(pe_mixtures_slope(g->law, z));
        moved[k] = st->local[k] + lambda * at.log_b + (1.0 - lambda) * at.log_a;
        const double far[2] = {z - g->taper_z, g->taper_low - z};
        for (int end = 0; end < 2; end++)
            if (far[end] > -INFINITY) moved[k] += taper_growth(far[end] / g->taper_s, a / g->taper_s);
        angle[k] = fabs(at.angle);
    }
}

int pe_strip_new(pe_strip *st, const pe_group *g, double lambda, double log_m) {
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
    st->m = to - from;
    st->block = malloc((2 * (PE_SHIFTS + 1) * st->m + 1) * sizeof(double));
    if (!st->block) return PE_NO_MEMORY;
    double range = g->law ? pe_mixtures_range(g->law) : g->mu;
    double change = g->law ? pe_mixtures_change(g->law) : g->p;
    double a_top = fmin(0.95 * PI / range, sqrt(2.0 * log(2.0 * fmax(g->n, 1.0) / QUADRATURE_TOL)));
    st->log_centring = log(1.0 + 2.0 * change * (1.0 + fabs(lambda))) - fmin(log_m, 0.0);
    st->log_h = log(s->h);
    st->local = st->block + 2 * PE_SHIFTS * st->m;
    for (size_t k = 0; k < st->m; k++) st->local[k] = s->logw[from + k] + lambda * s->l[from + k] - log_m;
    for (int i = 0; i < PE_SHIFTS; i++) {
        st->a[i] = a_top * (i + 2.0) / (PE_SHIFTS + 1.0);
        if (g->law) move_mixtures(st, g, s, lambda, from, i);
    }
    if (!g->law) move_sampled(st, g, s, lambda, from);
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
static double strip_spacing(const pe_strip *st, double n, double t_top) {
    double log_target = log(2.0 * n / QUADRATURE_TOL), best = 0.0;
    double widest = PI * sqrt(2.0 / (log_target + st->log_centring));
    for (int i = 0; i < PE_SHIFTS; i++) {
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
    for (size_t k = 0; k < st->m; k++) {
        double room = log_target + st->local[k] - st->log_h;
        if (room <= 0.0) continue;
        const double here = t_top * st->local[st->m + k] + sqrt(2.0 * room);
        if (here > frequency) frequency = here;
    }
    if (frequency > 0.0) best = fmin(best, 2.0 * PI / frequency);
    return fmin(best, widest);
}

int pe_strip_windows(const pe_group *g, const pe_strip *st, double lambda, double t_top, pe_span *windows,
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
        w->h = strip_spacing(&st[i], fmax(g->n, 1.0), t_top);
        double own = (st[i].z_hi - st[i].z_lo) / w->h;
        if (!(own < MAX_NODES_Z)) return 0;
        w->m = st[i].z_hi < st[i].z_lo ? 0 : (size_t)own + 1;
        *count += fmax(own, 0.0);
    }
    return *count < MAX_NODES_Z;
}
