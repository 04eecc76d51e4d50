/* Makes the nodes of one kind of step: takes them in sums of two doubles from real_nodes.c or plane_nodes.c, forms log M
 * and the mean of the loss, and rounds weights and losses to double once, with bounds of their errors.  Lemma 5 of
 * docs/theory/gaussian.md.  Called by shifted.c. */

#include "shifted_nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"
#include "simd.h"
#include "wide_nodes.h"

#define U 0x1p-53 /* unit roundoff */

/* log of the weights, over M, up to which nodes are left out for t > 0 */
static const double NEGLIGIBLE = -140.0;
static const double MOST_SUM = 0x1p960; /* largest M - 1, whose low part is a normal double */

static int new_arrays(pe_shifted *s, size_t count) {
    s->m = (count + PE_LANES - 1) / PE_LANES * PE_LANES;
    s->weight_re = calloc((PE_COLUMNS + 2) * s->m, sizeof(double));
    if (!s->weight_re) return PE_NO_MEMORY;
    s->weight_im = s->weight_re + s->m;
    s->loss = s->weight_re + 2 * s->m;
    s->angle = s->weight_re + 3 * s->m;
    s->size = s->weight_re + 4 * s->m;
    s->reach = s->weight_re + 5 * s->m;
    s->drifts = s->weight_re + 6 * s->m;
    s->turn_re = s->weight_re + PE_COLUMNS * s->m;
    s->turn_im = s->turn_re + s->m;
    return PE_OK;
}

/* Constants of a part: factor scale * 2^power = share e^(unit - log M) of its weights, |q - 1|, and number of nodes */
typedef struct {
    pe_dd scale;
    double power, size_of_power, count;
} part_scale;

/* PE_LANES nodes: the columns of wide_nodes.h, and from them weights, terms of the mean and bounds of their errors */
typedef struct {
    pe_dds bell_re, bell_im, raised_re, raised_im, log_re, log_im, mean_re, mean_im;
    double weight_re[PE_LANES], weight_im[PE_LANES], angle[PE_LANES], size[PE_LANES], reach[PE_LANES];
    double power[PE_LANES], least[PE_LANES], rounding[PE_LANES], log_error[PE_LANES];
    double whole[PE_LANES], of_weight[PE_LANES];
} weighed;

/* Bound of the relative error of a weight, of_weight, and of the modulus that it refers to, `whole` */
PE_INLINE void put_bounds(weighed *at, int u, const part_scale *of, double size, double reach) {
    const double bound = pe_scale(at->least[u] * at->power[u] * of->scale.h, of->power);
    at->size[u] = size;
    at->reach[u] = reach;
    at->whole[u] = size > bound ? size : bound;
    at->of_weight[u] =
        PE_WIDE_UNIT * (at->rounding[u] + of->size_of_power * (2.0 * reach + at->log_error[u]) + 20.0);
}

PE_CLONES static void weigh(const part_scale *scale, weighed *nodes) {
    weighed at = *nodes;
    const part_scale of = *scale;
    for (int u = 0; u < PE_LANES; u++) {
        const pe_ddc bell = pe_lane_pair(&at.bell_re, &at.bell_im, u),
                     log_of = pe_lane_pair(&at.log_re, &at.log_im, u);
        const pe_ddc raised = pe_lane_pair(&at.raised_re, &at.raised_im, u);
        const pe_ddc plain = pe_ddc_times(pe_ddc_mul(bell, raised), of.scale);
        const pe_ddc weight = {pe_dd_raise(plain.re, of.power), pe_dd_raise(plain.im, of.power)};
        const double v = log_of.im.h, angle = v > 0.0 ? v : 0.0;
        pe_set_lane_pair(&at.mean_re, &at.mean_im, u, pe_ddc_mul(weight, log_of));
        at.weight_re[u] = weight.re.h;
        at.weight_im[u] = weight.im.h;
        at.angle[u] = angle;
        put_bounds(&at, u, &of, pe_modulus(weight.re.h, weight.im.h), pe_modulus(log_of.re.h, angle));
    }
    *nodes = at;
}

/* The same on the real line */
PE_CLONES static void weigh_real(const part_scale *scale, weighed *nodes) {
    weighed at = *nodes;
    const part_scale of = *scale;
    for (int u = 0; u < PE_LANES; u++) {
        const pe_dd bell = pe_lane(&at.bell_re, u), log_of = pe_lane(&at.log_re, u);
        const pe_dd plain = pe_dd_mul(pe_dd_mul(bell, pe_lane(&at.raised_re, u)), of.scale);
        const pe_dd weight = pe_dd_raise(plain, of.power);
        pe_set_lane_pair(&at.mean_re, &at.mean_im, u, (pe_ddc){pe_dd_mul(weight, log_of), pe_dd_of(0.0)});
        at.weight_re[u] = weight.h;
        at.weight_im[u] = at.angle[u] = 0.0;
        put_bounds(&at, u, &of, fabs(weight.h), fabs(log_of.h));
    }
    *nodes = at;
}

PE_INLINE void take_lanes(const pe_wide_nodes *nodes, int column, size_t i, double *lanes) {
    memcpy(lanes, pe_column(nodes, column) + i, PE_LANES * sizeof *lanes);
}

static void take_nodes(const pe_wide_nodes *nodes, size_t i, weighed *at) {
    pe_dds *pairs[] = {&at->bell_re, &at->bell_im, &at->log_re, &at->log_im, &at->raised_re, &at->raised_im};
    for (int k = 0; k < 6; k++) {
        take_lanes(nodes, 2 * k, i, pairs[k]->h);
        take_lanes(nodes, 2 * k + 1, i, pairs[k]->l);
    }
    take_lanes(nodes, PE_POWER, i, at->power);
    take_lanes(nodes, PE_SIZE, i, at->least);
    take_lanes(nodes, PE_ROUNDING, i, at->rounding);
    take_lanes(nodes, PE_LOG_ERROR, i, at->log_error);
}

static inline double larger(double a, double b) {
    return b > a ? b : a;
}

/* Rounds the nodes of a part to double; terms of the mean, whose error the number of steps magnifies, stay sums of
 * two. */
static void put_nodes(pe_shifted *s, const pe_part *part, const pe_wide_nodes *nodes, size_t at, pe_dd *mean,
                      double *mean_error) {
    part_scale of = {.size_of_power = fabs(part->law.q - 1.0), .count = (double)s->m};
    of.scale = pe_dd_mul(part->terms.share,
                         pe_dd_exp_parts(pe_dd_sub(pe_dd_of(pe_unit_of(part)), s->log_m), &of.power));
    const int is_real = pe_real_nodes_serve(part);
    for (size_t j = 0; j < part->count; j += PE_LANES) {
        weighed w;
        take_nodes(nodes, at + j, &w);
        if (is_real) weigh_real(&of, &w);
        else weigh(&of, &w);
        for (size_t u = 0; u < PE_LANES && j + u < part->count; u++) {
            const size_t i = at + j + u;
            const double of_log = PE_WIDE_UNIT * w.log_error[u];
            mean[2 * i] = pe_lane(&w.mean_re, (int)u);
            mean[2 * i + 1] = pe_lane(&w.mean_im, (int)u);
            s->weight_re[i] = w.weight_re[u];
            s->weight_im[i] = w.weight_im[u];
            s->loss[i] = w.log_re.h[u];
            s->angle[i] = w.angle[u];
            s->size[i] = w.size[u];
            s->reach[i] = w.reach[u];
            s->longest = larger(s->longest, w.reach[u]);
            if (w.size[u] > 0.0)
                s->rounding = larger(s->rounding, w.of_weight[u] * w.whole[u] / w.size[u] / U);
            s->drifts[i] = w.whole[u] * of_log;
            s->drift += s->drifts[i];
            s->bend += s->drifts[i] * w.reach[u];
            *mean_error += w.whole[u] * (w.reach[u] * (w.of_weight[u] + PE_WIDE_UNIT * of.count) + of_log);
        }
    }
}

static void move_nodes(const pe_wide_nodes *nodes, size_t from, size_t n, size_t to) {
    for (int k = 0; from != to && n && k < PE_NODE_COLUMNS; k++)
        memmove(pe_column(nodes, k) + to, pe_column(nodes, k) + from, n * sizeof(double));
}

/* Removes nodes of negligible weight and returns how many are left.  Nodes far out serve only the Gaussians that centre
 * the sum for log M; their losses may be large, so that they would have to be rotated at each t. */
static size_t drop_negligible(pe_shifted *s, const pe_wide_nodes *nodes) {
    size_t kept = 0, at = 0;
    const double *size = pe_column(nodes, PE_SIZE), *power = pe_column(nodes, PE_POWER);
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_part *part = &s->part[i];
        const double least = pe_d_exp(fmax(NEGLIGIBLE + s->log_m.h - pe_unit_of(part), -700.0));
        const size_t before = kept, end = at + part->count;
        while (at < end) {
            const size_t from = at;
            while (at < end && size[at] * power[at] > least) at++;
            move_nodes(nodes, from, at - from, kept);
            kept += at - from;
            while (at < end && !(size[at] * power[at] > least)) at++;
        }
        part->count = kept - before;
    }
    /* twice, for the sum at t and for that at 0; e^1 covers the errors of the weights */
    s->slack += 2.0 * pe_d_exp(NEGLIGIBLE + 1.0) * (double)(at - kept);
    return kept;
}

/* Makes the wide nodes of all parts, and log M of each part and of the kind with a bound of its error.  A status. */
static int put_log_m(pe_shifted *s, const pe_wide_nodes *nodes) {
    pe_dd total = pe_dd_of(0.0);
    double error = 0.0;
    /* the sums of a tapered law, which has one part, are not centred */
    const int is_tapered = s->part[0].law.log_taper != NULL;
    const double centre = is_tapered ? 0.0 : 1.0;
    for (size_t i = 0, at = 0; i < s->n_parts; at += s->part[i++].count) {
        pe_part *part = &s->part[i];
        pe_dd above_one;
        double own;
        const int status = pe_real_nodes_serve(part) ? pe_real_nodes(part, nodes, at, &above_one, &own)
                                                     : pe_plane_nodes(part, nodes, at, &above_one, &own);
        if (status) return status;
        if (!(centre + above_one.h > 0.0 && above_one.h < MOST_SUM)) return PE_TOO_COSTLY;
        total = pe_dd_add(total, pe_dd_mul(part->terms.share, above_one));
        error += part->terms.share.h * own;
        part->log_m = is_tapered ? part->window.log_total + pe_d_log(above_one.h) : pe_d_log1p(above_one.h);
    }
    const double whole = centre + total.h;
    if (!(whole > 0.0)) return PE_TOO_COSTLY;
    s->log_m = is_tapered ? pe_dd_add_d(pe_dd_log(total), s->part[0].window.log_total) : pe_dd_log1p(total);
    s->log_m_error = 2.0 * PE_WIDE_UNIT * error / whole + 4.0 * PE_WIDE_UNIT * fabs(s->log_m.h);
    /* infinite or NaN where a sum overflowed */
    return isfinite(s->log_m_error) ? PE_OK : PE_TOO_COSTLY;
}

/* Weights and losses of all nodes in doubles, and the mean of log W.  A status. */
static int put_means(pe_shifted *s, const pe_wide_nodes *nodes, size_t count) {
    int status = new_arrays(s, count);
    pe_dd *mean = status ? NULL : calloc(2 * s->m, sizeof *mean);
    if (!status && !mean) status = PE_NO_MEMORY;
    double mean_error = 0.0;
    if (!status) {
        for (size_t i = 0, at = 0; i < s->n_parts; at += s->part[i++].count)
            put_nodes(s, &s->part[i], nodes, at, mean, &mean_error);
        pe_dd mean_re = pe_dd_of(0.0), mean_im = mean_re;
        for (size_t i = 0; i < count; i++) {
            mean_re = pe_dd_add(mean_re, mean[2 * i]);
            mean_im = pe_dd_add(mean_im, mean[2 * i + 1]);
        }
        s->mean_re = mean_re.h;
        s->mean_im = mean_im.h;
        s->rounding += s->log_m_error / U; /* the error of M is common to all weights */
        s->mean_error = 2.0 * mean_error + U * (fabs(s->mean_re) + fabs(s->mean_im));
        status = pe_shifted_arrange(s, mean);
    }
    free(mean);
    return status;
}

int pe_shifted_fill(pe_shifted *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_part *part = &s->part[i];
        part->count = (size_t)(floor(part->x_high / part->h) - ceil(part->x_low / part->h)) + 1;
        count += part->count;
    }
    pe_wide_nodes nodes = {count + PE_LANES, NULL}; /* whole lanes are written */
    nodes.block = malloc(PE_NODE_COLUMNS * nodes.stride * sizeof(double));
    int status = nodes.block ? put_log_m(s, &nodes) : PE_NO_MEMORY;
    if (!status) status = put_means(s, &nodes, drop_negligible(s, &nodes));
    free(nodes.block);
    return status;
}
