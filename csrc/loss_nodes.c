/* Nodes of sampled Gaussians, mixtures and tables, and cumulants by sums over them; interface in loss_nodes.h. */

#include "loss_nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"
#include "functions.h"
#include "lane_log.h"
#include "lane_trig.h"
#include "simd.h"

static const double HALF_LOG_2PI = 0.91893853320467274178;
static const double INVISIBLE = -100.0; /* log of terms that are below rounding in every centred sum */
/* -log of n times a tilted weight, relative, that a table may leave out */
static const double NEGLIGIBLE = 50.0;

/* r - log1p(r), |r| <= 0.1, without cancellation */
static inline double small_defect(double r) {
    static const double SERIES[] = {1.0 / 16.0,  -1.0 / 15.0, 1.0 / 14.0, -1.0 / 13.0, 1.0 / 12.0,
                                    -1.0 / 11.0, 1.0 / 10.0,  -1.0 / 9.0, 1.0 / 8.0,   -1.0 / 7.0,
                                    1.0 / 6.0,   -1.0 / 5.0,  1.0 / 4.0,  -1.0 / 3.0,  1.0 / 2.0};
    double sum = -1.0 / 17.0;
    for (int k = 0; k < 15; k++) sum = SERIES[k] + r * sum;
    return r * r * sum;
}

/* log(erfc(x)/2) */
static double log_taper(double x) {
    return x > -7.0 ? pe_log_ndtr(-1.41421356237309504880 * x) : 0.0;
}

/* Nodes of the sampled Gaussian without the taper.  Where r overflows it is set to a large number. */
PE_CLONES static void plain_nodes(pe_nodes *nodes, double mu, double p, int reversed, double z0, double h,
                                  double log_h) {
    const double rest = 1.0 - p, log_p = pe_d_log(p); /* 1 - p is exact for p >= 1/2 */
    for (size_t j = 0; j < nodes->m; j += PE_LANES) {
        double l[PE_LANES], r[PE_LANES], logw[PE_LANES];
        for (int u = 0; u < PE_LANES; u++) {
            const double z = z0 + (double)(j + u) * h, s = mu * (z - 0.5 * mu);
            const double near = s < 700.0 ? s : 700.0, e = pe_vexp(near);
            const double up = p * pe_vexpm1(near, e);
            /* near r = -1, as p -> 1, 1 - p + p e^s has more digits than 1 + r */
            const int is_low = up < -0.5;
            const double ratio = is_low ? rest + p * e : 1.0 + up;
            const double left = is_low ? 0.0 : (up - (ratio - 1.0)) / ratio;
            const double log_ratio = s < 700.0 ? pe_log(ratio) + left : log_p + s;
            r[u] = reversed ? -up / ratio : up;
            l[u] = reversed ? -log_ratio : log_ratio;
            logw[u] = (log_h - HALF_LOG_2PI - 0.5 * z * z) + (reversed ? log_ratio : 0.0);
        }
        memcpy(nodes->l + j, l, sizeof l);
        memcpy(nodes->r + j, r, sizeof r);
        memcpy(nodes->logw + j, logw, sizeof logw);
    }
}

/* Nodes of the sampled Gaussian. */
static void sampled_nodes(pe_nodes *nodes, const pe_group *g, const pe_span *w) {
    plain_nodes(nodes, g->mu, g->p, g->reversed, w->z0, w->h, pe_d_log(w->h));
    for (size_t j = w->m; j-- > 0;) {
        const double taper = log_taper((w->z0 + (double)j * w->h - g->taper_z) / g->taper_s);
        if (!(taper < 0.0)) break;
        nodes->logw[j] += taper;
    }
    for (size_t j = w->m; j < nodes->m; j++) nodes->logw[j] = -1e9;
}

/* Nodes of a pair of mixtures. */
static void mixed_nodes(pe_nodes *nodes, const pe_group *g, const pe_span *w) {
    double log_h = pe_d_log(w->h) + g->log_share - HALF_LOG_2PI;
    for (size_t j = 0; j < nodes->m; j++) {
        double z = w->z0 + (double)j * w->h;
        pe_mixed_loss at = pe_mixtures_at(g->law, z);
        double logw = log_h - 0.5 * z * z + at.log_a;
        logw += log_taper((z - g->taper_z) / g->taper_s);
        logw += log_taper((g->taper_low - z) / g->taper_s);
        nodes->l[j] = at.l;
        nodes->r[j] = at.r;
        nodes->logw[j] = j < w->m ? logw : -1e9;
    }
}

/* Nodes of a window of a table. */
static void listed_nodes(pe_nodes *nodes, const pe_table *table, const pe_span *w) {
    size_t first = (size_t)w->z0;
    for (size_t j = 0; j < nodes->m; j++) {
        size_t i = first + (j < w->m ? j : w->m - 1);
        double l = table->loss[i];
        nodes->l[j] = l;
        nodes->r[j] = pe_d_expm1(l);
        nodes->logw[j] = j < w->m ? table->log_weight[i] : -1e9;
    }
}

pe_span pe_table_window(const pe_table *table, double n, double lambda) {
    size_t blocks = (table->m + PE_TABLE_BLOCK - 1) / PE_TABLE_BLOCK, from = blocks, to = 0;
    double known = -INFINITY; /* lower bound of the log of the largest tilted weight */
    for (size_t b = 0; b < blocks; b++) {
        size_t first = b * PE_TABLE_BLOCK,
               last = first + PE_TABLE_BLOCK < table->m ? first + PE_TABLE_BLOCK : table->m;
        double x = lambda * table->loss[first], y = lambda * table->loss[last - 1];
        known = fmax(known, table->peak[b] + fmin(x, y));
    }
    /* a term of a centred sum is at most a tilted weight plus w (1 + |lambda r|); the sum is added to 1 */
    double least = known - NEGLIGIBLE - pe_d_log(n), own_least = fmax(known, 0.0) - NEGLIGIBLE - pe_d_log(n);
    for (size_t b = 0; b < blocks; b++) {
        size_t first = b * PE_TABLE_BLOCK,
               last = first + PE_TABLE_BLOCK < table->m ? first + PE_TABLE_BLOCK : table->m;
        double a = table->loss[first], c = table->loss[last - 1];
        double own = table->peak[b] + pe_d_log1p(fabs(lambda)) + fmax(0.0, fmax(a, c));
        if (table->peak[b] + fmax(lambda * a, lambda * c) < least && own < own_least) continue;
        if (from > b) from = b;
        to = b + 1;
    }
    size_t first = from * PE_TABLE_BLOCK,
           last = to * PE_TABLE_BLOCK < table->m ? to * PE_TABLE_BLOCK : table->m;
    return (pe_span){(double)first, 1.0, last - first};
}

static size_t padded(size_t m) {
    return (m + PE_LANES - 1) / PE_LANES * PE_LANES;
}

/* The nodes of a window, which begin at `from` in the arrays */
static pe_nodes slice(const pe_nodes *nodes, const pe_span *window, size_t from) {
    return (pe_nodes){padded(window->m),
                      window->z0,
                      window->h,
                      nodes->lowest,
                      nodes->highest,
                      nodes->l + from,
                      nodes->r + from,
                      nodes->d + from,
                      nodes->w + from,
                      nodes->logw + from,
                      nodes->peak + from / PE_LANES};
}

pe_nodes pe_nodes_part(const pe_nodes *nodes, const pe_span *windows, size_t index) {
    size_t from = 0;
    for (size_t i = 0; i < index; i++) from += padded(windows[i].m);
    return slice(nodes, &windows[index], from);
}

int pe_nodes_new(pe_nodes *nodes, const pe_group *g, const pe_span *windows) {
    size_t m = 0;
    for (size_t i = 0; i < g->alternatives; i++) m += padded(windows[i].m);
    double *block = malloc((5 * m + m / PE_LANES + 1) * sizeof(double));
    if (!block) return PE_NO_MEMORY;
    nodes->m = m;
    nodes->z0 = windows->z0;
    nodes->h = windows->h;
    nodes->lowest = INFINITY;
    nodes->highest = -INFINITY;
    nodes->l = block;
    nodes->r = block + m;
    nodes->d = block + 2 * m;
    nodes->w = block + 3 * m;
    nodes->logw = block + 4 * m;
    nodes->peak = block + 5 * m;
    for (size_t i = 0; i < g->alternatives; i++) {
        pe_nodes part = pe_nodes_part(nodes, windows, i);
        if (g[i].table) listed_nodes(&part, g[i].table, &windows[i]);
        else if (g[i].law) mixed_nodes(&part, &g[i], &windows[i]);
        else sampled_nodes(&part, &g[i], &windows[i]);
        if (!part.m) continue;
        double first = part.l[0], last = part.l[part.m - 1]; /* the loss is monotone in z */
        nodes->lowest = fmin(nodes->lowest, fmin(first, last));
        nodes->highest = fmax(nodes->highest, fmax(first, last));
    }
    return PE_OK;
}

PE_CLONES void pe_nodes_weigh(const pe_nodes *nodes) {
    for (size_t j = 0; j < nodes->m; j += PE_LANES) {
        double d[PE_LANES], w[PE_LANES], top = -INFINITY;
        for (int u = 0; u < PE_LANES; u++) {
            const double r = nodes->r[j + u], near = fabs(r) > 0.1 ? 0.0 : r;
            const double defect = small_defect(near), far = r - nodes->l[j + u];
            d[u] = fabs(r) > 0.1 ? far : defect;
            w[u] = pe_vexp(nodes->logw[j + u]);
        }
        for (int u = 0; u < PE_LANES; u++) top = nodes->logw[j + u] > top ? nodes->logw[j + u] : top;
        memcpy(nodes->d + j, d, sizeof d);
        memcpy(nodes->w + j, w, sizeof w);
        nodes->peak[j / PE_LANES] = top;
    }
}

pe_nodes pe_nodes_within(const pe_nodes *nodes, const pe_span *window) {
    return slice(nodes, window, (size_t)window->z0);
}

void pe_nodes_free(pe_nodes *nodes) {
    free(nodes->l);
    nodes->l = NULL;
}

/* Weighted sums of (1+r)^lambda - 1 - lambda r, of l e^x - r and of l^2 e^x, x = lambda l */
typedef struct {
    double m, l1, l2;
} sums;

/* Whether PE_LANES nodes are below rounding in all centred sums: a term is at most w (e^x + 1 + |lambda| e^l). */
static inline int is_invisible(const pe_nodes *nodes, double lambda, double log_power, size_t j) {
    const double first = nodes->l[j], last = nodes->l[j + PE_LANES - 1]; /* the loss is monotone */
    /* comparisons, as fmax is a call */
    const double most = first > last ? first : last, x = lambda * first, y = lambda * last;
    const double tilted = x > y ? x : y, larger = most > tilted ? most : tilted;
    return nodes->peak[j / PE_LANES] + (larger > 0.0 ? larger : 0.0) + log_power < INVISIBLE;
}

/* Adds PE_LANES nodes.  near_only: all |x| < 1/2, where the difference is formed from the tail of exp; far_only: all
 * above.  by_log: w e^x is formed in the exponent, for x beyond the range of exp.  No branches on lanes, so that the
 * inner loop is vectorised. */
static inline void add_centred(const pe_nodes *nodes, size_t j, double lambda, double by_log, int near_only,
                               int far_only, double m[PE_LANES], double l1[PE_LANES], double l2[PE_LANES]) {
    const double outside = 1.0 - by_log;
    for (int u = 0; u < PE_LANES; u++) {
        const double l = nodes->l[j + u], d = nodes->d[j + u], w = nodes->w[j + u], x = lambda * l;
        const double wr = w * nodes->r[j + u];
        const double is_near = near_only ? 1.0 : far_only ? 0.0 : fabs(x) < 0.5 ? 1.0 : 0.0;
        const double is_far = 1.0 - is_near, y = is_near * x;
        const double g = far_only ? 0.0 : pe_vexp_tail(y), ey = g + y;
        const double we =
            near_only ? w + w * ey : (outside * w + by_log) * pe_vexp(x + by_log * nodes->logw[j + u]);
        if (!far_only) {
            m[u] += is_near * (w * (g - lambda * d));
            l1[u] += is_near * (w * (l * ey - d));
        }
        if (!near_only) {
            m[u] += is_far * ((we - w) - lambda * wr);
            l1[u] += is_far * (l * we - wr);
        }
        l2[u] += l * l * we;
    }
}

PE_CLONES static void centred_sums(const pe_nodes *nodes, double lambda, double by_log, sums *out) {
    double m[PE_LANES] = {0}, l1[PE_LANES] = {0}, l2[PE_LANES] = {0};
    const double log_power = pe_d_log1p(fabs(lambda));
    for (size_t j = 0; j < nodes->m; j += PE_LANES) {
        if (is_invisible(nodes, lambda, log_power, j)) continue;
        const double x = lambda * nodes->l[j], y = lambda * nodes->l[j + PE_LANES - 1]; /* monotone between */
        const int is_near = fabs(x) < 0.5 && fabs(y) < 0.5;
        const int is_far = fabs(x) >= 0.5 && fabs(y) >= 0.5 && (x > 0.0) == (y > 0.0);
        if (is_near) add_centred(nodes, j, lambda, by_log, 1, 0, m, l1, l2);
        else if (is_far) add_centred(nodes, j, lambda, by_log, 0, 1, m, l1, l2);
        else add_centred(nodes, j, lambda, by_log, 0, 0, m, l1, l2);
    }
    out->m = pe_lane_sum(m);
    out->l1 = pe_lane_sum(l1);
    out->l2 = pe_lane_sum(l2);
}

PE_CLONES static void scaled_sums(const pe_nodes *nodes, double lambda, double shift, sums *out) {
    double m[PE_LANES] = {0}, l1[PE_LANES] = {0}, l2[PE_LANES] = {0};
    for (size_t j = 0; j < nodes->m; j += PE_LANES) {
        for (int u = 0; u < PE_LANES; u++) {
            double l = nodes->l[j + u];
            double e = pe_vexp(nodes->logw[j + u] + lambda * l - shift);
            m[u] += e;
            l1[u] += l * e;
            l2[u] += l * l * e;
        }
    }
    out->m = pe_lane_sum(m);
    out->l1 = pe_lane_sum(l1);
    out->l2 = pe_lane_sum(l2);
}

void pe_nodes_cumulants(const pe_nodes *nodes, double n, double lambda, pe_cumulants *sum) {
    double top_x = fmax(lambda * nodes->lowest, lambda * nodes->highest), top_e = -1e300;
    for (size_t j = 0; j < nodes->m && top_x > 600.0; j++)
        top_e = fmax(top_e, lambda * nodes->l[j] + nodes->logw[j]);
    sums s;
    double k0, k1, k2;
    if (top_e > 600.0) { /* M itself leaves the range of a double; M - 1 is then M */
        scaled_sums(nodes, lambda, top_e, &s);
        k0 = top_e + pe_d_log(s.m);
        k1 = s.l1 / s.m;
        k2 = s.l2 / s.m - k1 * k1;
    } else {
        centred_sums(nodes, lambda, top_x > 600.0 ? 1.0 : 0.0, &s);
        double m = 1.0 + s.m;
        k0 = pe_d_log1p(s.m);
        k1 = s.l1 / m;
        k2 = s.l2 / m - k1 * k1;
    }
    sum->k0 += n * k0;
    sum->k1 += n * k1;
    sum->k2 += n * k2;
}

PE_CLONES void pe_nodes_tilt(const pe_nodes *nodes, double lambda, double log_norm, double *tilted) {
    for (size_t j = 0; j < nodes->m; j += PE_LANES)
        for (int u = 0; u < PE_LANES; u++)
            tilted[j + u] = pe_vexp(nodes->logw[j + u] + lambda * nodes->l[j + u] - log_norm);
}

PE_CLONES static double top_tilted(const pe_nodes *nodes, double lambda) {
    double tops[PE_LANES], top = -INFINITY;
    for (int u = 0; u < PE_LANES; u++) tops[u] = -INFINITY;
    for (size_t j = 0; j < nodes->m; j += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            const double x = nodes->logw[j + u] + lambda * nodes->l[j + u];
            tops[u] = x > tops[u] ? x : tops[u];
        }
    for (int u = 0; u < PE_LANES; u++) top = tops[u] > top ? tops[u] : top;
    return top;
}

double pe_nodes_tilt_to_one(const pe_nodes *nodes, double lambda, double *tilted) {
    const double top = top_tilted(nodes, lambda);
    double sum[PE_LANES] = {0};
    pe_nodes_tilt(nodes, lambda, top, tilted);
    for (size_t j = 0; j < nodes->m; j += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) sum[u] += tilted[j + u];
    const double total = pe_lane_sum(sum), unit = 1.0 / total;
    for (size_t j = 0; j < nodes->m; j++) tilted[j] *= unit;
    return top + pe_d_log(total);
}
