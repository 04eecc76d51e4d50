#include "shifted_nodes.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "lane_trig.h"
#include "wide_nodes.h"

/* The nodes of one kind of step in long double; docs/theory/certified.md proves what stands here. */

#define U 0x1p-53

static const double NOTHING = -140.0; /* log of a weight that counts for M at most */

/* ---- complex functions in long double --------------------------------------------------------------- */

/* e^{ix}; the C library takes long for arguments beyond pi/4.  The multiple of pi/2 that is taken away is a sum of three
 * products, two of them exact as they have few bits, so that the argument errs by less than LDBL_EPSILON. */
static pe_wide_complex turn_of(pe_wide x) {
    static const pe_wide QUARTER[] = {0x1.921fb544p+0L, 0x1.0b4611a6p-34L, 0x98cc51701b839a25p-132L};
    if (x == 0.0L) return (pe_wide_complex){1.0L, 0.0L};
    if (fabsl(x) < 0.78L || !(fabsl(x) < 0x1p22L)) return (pe_wide_complex){cosl(x), sinl(x)};
    const long whole = lrintl(x * 0.63661977236758134308L);
    const pe_wide k = (pe_wide)whole;
    const pe_wide r = ((x - k * QUARTER[0]) - k * QUARTER[1]) - k * QUARTER[2];
    const pe_wide co = cosl(r), si = sinl(r);
    switch (whole & 3) {
    case 0:
        return (pe_wide_complex){co, si};
    case 1:
        return (pe_wide_complex){-si, co};
    case 2:
        return (pe_wide_complex){-co, -si};
    default:
        return (pe_wide_complex){si, -co};
    }
}

static pe_wide modulus(pe_wide_complex z) {
    return z.im == 0.0L ? fabsl(z.re) : sqrtl(z.re * z.re + z.im * z.im);
}

/* As pe_wide_series, for complex z */
static pe_wide_complex series(const pe_wide *c, int n, pe_wide_complex z) {
    if (z.im == 0.0L) return (pe_wide_complex){pe_wide_series(c, n, z.re), 0.0L};
    pe_wide_complex sum = {c[0], 0.0L};
    for (int k = 1; k < n; k++) {
        sum = pe_wide_product(sum, z);
        sum.re += c[k];
    }
    return pe_wide_product(pe_wide_product(z, z), sum);
}

/* e^z - 1 - z, and e^z with its modulus */
static pe_wide_complex exp_remainder(pe_wide_complex z, pe_wide_complex *power, pe_wide *size) {
    const pe_wide square = z.re * z.re + z.im * z.im;
    if (square < PE_EXP_SQUARE) {
        const pe_wide_complex tail = square < PE_NEAR
                                         ? series(PE_EXP_SERIES + PE_EXP_TERMS - PE_EXP_NEAR, PE_EXP_NEAR, z)
                                         : series(PE_EXP_SERIES, PE_EXP_TERMS, z);
        *power = (pe_wide_complex){1.0L + (z.re + tail.re), z.im + tail.im};
        *size = modulus(*power);
        return tail;
    }
    const pe_wide e = *size = expl(z.re);
    const pe_wide_complex turn = turn_of(z.im);
    *power = (pe_wide_complex){e * turn.re, e * turn.im};
    return (pe_wide_complex){power->re - 1.0L - z.re, power->im - z.im};
}

/* log(1 + r) - r, given log(1 + r) */
static pe_wide_complex log_remainder(pe_wide_complex r, pe_wide_complex log_of) {
    const pe_wide square = r.re * r.re + r.im * r.im;
    if (square < PE_NEAR) return series(PE_LOG_SERIES + PE_LOG_TERMS - PE_LOG_NEAR, PE_LOG_NEAR, r);
    if (square < PE_LOG_SQUARE) return series(PE_LOG_SERIES, PE_LOG_TERMS, r);
    return (pe_wide_complex){log_of.re - r.re, log_of.im - r.im};
}

static double double_modulus(double re, double im) {
    return im == 0.0 ? fabs(re) : hypot(re, im);
}

/* ---- nodes ------------------------------------------------------------------------------------------- */

/* The ratio 1/W = a/b = 1 + r at a node, with its error in units of LDBL_EPSILON. */
typedef struct {
    pe_wide_complex r;
    double error;
} wide_ratio;

/* A side over phi, with the sum of its terms less 1 each, and of their moduli and roundings. */
typedef struct {
    pe_wide_complex sum, less_one;
    pe_wide moduli, rounding;
} wide_side;

static void add_term(wide_side *s, pe_wide weight, pe_wide_complex less_one, pe_wide_complex term, pe_wide e,
                     pe_wide units) {
    s->sum.re += weight * term.re;
    s->sum.im += weight * term.im;
    s->less_one.re += weight * less_one.re;
    s->less_one.im += weight * less_one.im;
    s->moduli += fabsl(weight) * e;
    s->rounding += fabsl(weight) * e * units;
}

/* log|s|, close to 1 from the terms less 1 */
static pe_wide log_modulus(pe_wide_complex less_one, pe_wide_complex sum) {
    const pe_wide above = less_one.re * (2.0L + less_one.re) + less_one.im * less_one.im;
    return above > -0.5L ? 0.5L * log1pl(above) : 0.5L * logl(sum.re * sum.re + sum.im * sum.im);
}

/* arg(x + iy), on the real line without a call */
static pe_wide argument(pe_wide x, pe_wide y) {
    return y == 0.0L && x > 0.0L ? 0.0L : atan2l(y, x);
}

static void set_node(const pe_part *s, pe_wide x, const pe_wide *co, const pe_wide *si, pe_wide_node *node,
                     wide_ratio *ratio) {
    const pe_terms *t = &s->terms;
    const pe_wide y = s->y;
    wide_side a = {{0.0L, 0.0L}, {0.0L, 0.0L}, 0.0L, 0.0L}, b = a, moved = a;
    pe_wide moved_rounding = 0.0L;
    for (size_t j = 0; j < t->n; j++) {
        const pe_wide c = t->shift[j], e = c == 0.0L ? 1.0L : expl(c * (x - 0.5L * c));
        const pe_wide_complex term = {e * co[j], e * si[j]}, less_one = {term.re - 1.0L, term.im};
        const pe_wide units = 6.0L + 4.0L * fabsl(c) * (fabsl(x) + fabsl(c)) + (pe_wide)t->n;
        add_term(&a, t->of_a[j], less_one, term, e, units);
        add_term(&b, t->of_b[j], less_one, term, e, units);
        if (c == 0.0L || t->of_a[j] == t->of_b[j]) continue; /* nothing moves, without an error */
        add_term(&moved, t->of_a[j] - t->of_b[j], less_one, term, e, units);
        moved_rounding += (t->of_a[j] + t->of_b[j]) * (e * units + 2.0L);
    }
    const pe_wide square = b.sum.re * b.sum.re + b.sum.im * b.sum.im, size_b = modulus(b.sum);
    ratio->r =
        b.sum.im == 0.0L && moved.less_one.im == 0.0L
            ? (pe_wide_complex){moved.less_one.re / b.sum.re, 0.0L}
            : pe_wide_product(moved.less_one, (pe_wide_complex){b.sum.re / square, -b.sum.im / square});
    const double r = (double)modulus(ratio->r);
    if (r < 0.5) {
        node->log_of.re = -log_modulus(ratio->r, (pe_wide_complex){1.0L + ratio->r.re, ratio->r.im});
        node->log_of.im = -argument(1.0L + ratio->r.re, ratio->r.im);
    } else {
        node->log_of.re = log_modulus(b.less_one, b.sum) - log_modulus(a.less_one, a.sum);
        node->log_of.im = argument(b.sum.re, b.sum.im) - argument(a.sum.re, a.sum.im);
    }
    const double of_a = (double)(a.rounding / modulus(a.sum)), of_b = (double)(b.rounding / size_b);
    const double reach = fabs((double)node->log_of.re) + fabs((double)node->log_of.im);
    ratio->error = (double)(moved_rounding / size_b) + r * (of_b + 8.0);
    node->log_error = (r < 0.5 ? 2.0 * ratio->error : of_a + of_b + 8.0) + 8.0 * reach;
    const pe_wide bell = expl(0.5L * (y * y - x * x) - PE_HALF_LOG_2PI) * s->h;
    const pe_wide_complex turn = turn_of(x * y);
    node->bell = pe_wide_product((pe_wide_complex){bell * turn.re, -bell * turn.im}, b.sum);
    node->size = bell * b.moduli;
    node->rounding = 20.0 + 2.0 * (double)(x * x + fabsl(x * y)) + (double)(b.rounding / b.moduli);
}

/* Multiplies a node by the taper of its law. */
static void taper_node(const pe_part *s, pe_wide x, pe_wide_node *node) {
    const pe_tapered factor = pe_taper_at(&s->law.taper, x, s->y);
    node->bell = pe_wide_product(node->bell, (pe_wide_complex){factor.re, factor.im});
    node->size *= factor.size;
    node->rounding += factor.units + 4.0;
}

/* phi b h W^s e^-unit, with its error in a sum of `count` such terms, and the log of |W^s| */
static pe_wide_complex plain_term(pe_wide_node *node, pe_wide s, pe_wide unit, double count, double *error,
                                  double *power) {
    const pe_wide_complex exponent = {s * node->log_of.re, s * node->log_of.im};
    const pe_wide modulus_of = expl(exponent.re - unit);
    const pe_wide_complex turn = turn_of(exponent.im);
    const double reach = (double)(fabsl(exponent.re) + fabsl(exponent.im) + fabsl(unit));
    const double units = node->rounding + fabs((double)s) * node->log_error + 3.0 * reach + 20.0 + count;
    node->raised = (pe_wide_complex){modulus_of * turn.re, modulus_of * turn.im};
    node->power = modulus_of;
    *power = (double)exponent.re;
    *error = (double)(node->size * modulus_of) * units;
    return pe_wide_product(node->bell, node->raised);
}

/* phi b h (W^s + s r - 1), with its error in a sum of `count` such terms, and the log of |W^s| */
static pe_wide_complex centred_term(pe_wide_node *node, const wide_ratio *ratio, pe_wide s, double count,
                                    double *error, double *power) {
    const pe_wide_complex exponent = {s * node->log_of.re, s * node->log_of.im};
    const pe_wide_complex tail = exp_remainder(exponent, &node->raised, &node->power),
                          log_tail =
                              log_remainder(ratio->r, (pe_wide_complex){-node->log_of.re, -node->log_of.im});
    const pe_wide_complex term = {tail.re - s * log_tail.re, tail.im - s * log_tail.im};
    *power = (double)exponent.re;
    *error = (double)(node->size * pe_centred_error(fabs((double)s), (double)modulus(node->log_of),
                                                    node->log_error, (double)modulus(ratio->r), ratio->error,
                                                    node->power, modulus(term), node->rounding + count));
    return pe_wide_product(node->bell, term);
}

/* log of the unit of W^s at the nodes of a part */
static pe_wide unit_of(const pe_part *s) {
    return s->law.log_taper ? (pe_wide)s->window.log_total : 0.0L;
}

/* Nodes of one part into `nodes`, and its M - 1, or M e^-log_total of a tapered law. */
static int fill_nodes(pe_part *s, pe_wide_node *nodes, pe_wide *above_one, double *error) {
    const size_t n = s->terms.n;
    pe_wide *turn = malloc(2 * n * sizeof *turn), power_of_b = (pe_wide)s->law.q - 1.0L;
    if (!turn) return PE_NO_MEMORY;
    for (size_t j = 0; j < n; j++) {
        turn[j] = cosl(s->terms.shift[j] * s->y);
        turn[n + j] = sinl(s->terms.shift[j] * s->y);
    }
    const double first = ceil(s->x_low / s->h);
    *above_one = 0.0L;
    *error = 0.0;
    int status = PE_OK;
    for (size_t j = 0; j < s->count && !status; j++) {
        double own, power;
        const pe_wide x = (pe_wide)(first + (double)j) * (pe_wide)s->h;
        wide_ratio ratio;
        set_node(s, x, turn, turn + n, &nodes[j], &ratio);
        if (s->law.log_taper) {
            taper_node(s, x, &nodes[j]);
            *above_one += plain_term(&nodes[j], power_of_b, unit_of(s), (double)s->count, &own, &power).re;
        } else *above_one += centred_term(&nodes[j], &ratio, power_of_b, (double)s->count, &own, &power).re;
        *error += own;
        /* where W^s is below all numbers what it misses is a part of the error of the 1 beside it */
        if (!(power < PE_MOST_POWER) || (s->law.log_taper && !(power > -PE_MOST_POWER)))
            status = PE_TOO_COSTLY;
    }
    free(turn);
    return status;
}

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

/* From long double to double once; the mean, which the number of steps magnifies, stays in long double. */
static void put_nodes(pe_shifted *s, const pe_part *part, const pe_wide_node *nodes, size_t at, pe_wide *mean,
                      double *mean_error) {
    const pe_wide power = (pe_wide)part->law.q - 1.0L;
    const pe_wide scale = part->terms.share * expl(unit_of(part) - s->log_m);
    const double size_of_power = fabs((double)power), count = (double)s->m, eps = (double)LDBL_EPSILON;
    for (size_t j = 0; j < part->count; j++) {
        const pe_wide_node *node = &nodes[j];
        const pe_wide l = node->log_of.re, v = node->log_of.im;
        const pe_wide_complex raised = {node->raised.re * scale, node->raised.im * scale};
        const pe_wide_complex weight = pe_wide_product(node->bell, raised),
                              term = pe_wide_product(weight, node->log_of);
        const size_t i = at + j;
        mean[2 * i] = term.re;
        mean[2 * i + 1] = term.im;
        s->weight_re[i] = (double)weight.re;
        s->weight_im[i] = (double)weight.im;
        s->loss[i] = (double)l;
        s->angle[i] = fmax((double)v, 0.0);
        s->size[i] = double_modulus(s->weight_re[i], s->weight_im[i]);
        s->reach[i] = double_modulus(s->loss[i], s->angle[i]);
        s->longest = fmax(s->longest, s->reach[i]);
        /* errors of the weight, with the moduli of the terms of b in its place, and of log W */
        const double whole = fmax(s->size[i], (double)(node->size * node->power * scale)),
                     of_log = eps * node->log_error;
        const double of_weight =
            eps * (node->rounding + size_of_power * (2.0 * s->reach[i] + node->log_error) + 20.0);
        if (s->size[i] > 0.0) s->rounding = fmax(s->rounding, of_weight * whole / s->size[i] / U);
        s->drifts[i] = whole * of_log;
        s->drift += s->drifts[i];
        s->bend += s->drifts[i] * s->reach[i];
        *mean_error += whole * (s->reach[i] * (of_weight + eps * count) + of_log);
    }
}

/* Moves nodes together that count at other t than 0, and returns how many they are: those that stand for the Gaussians
 * alone, which centre the sum for M, may have losses that are large, and would be rotated at each t. */
static size_t drop_nothing(pe_shifted *s, pe_wide_node *nodes) {
    size_t kept = 0, at = 0;
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_part *part = &s->part[i];
        const pe_wide least = expl((pe_wide)NOTHING + s->log_m - unit_of(part));
        const size_t before = kept, end = at + part->count;
        for (; at < end; at++)
            if (nodes[at].size * nodes[at].power > least) nodes[kept++] = nodes[at];
        part->count = kept - before;
    }
    /* of the sum at t and of that at 0; weights are known far better than to a factor e */
    s->slack += 2.0 * exp(NOTHING + 1.0) * (double)(at - kept);
    return kept;
}

int pe_shifted_fill(pe_shifted *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_part *part = &s->part[i];
        part->count = (size_t)(floor(part->x_high / part->h) - ceil(part->x_low / part->h)) + 1;
        count += part->count;
    }
    pe_wide_node *nodes = malloc(count * sizeof *nodes);
    int status = nodes ? PE_OK : PE_NO_MEMORY;
    pe_wide *mean = NULL;
    pe_wide total = 0.0L;
    double error = 0.0;
    for (size_t i = 0, at = 0; i < s->n_parts && !status; at += s->part[i++].count) {
        pe_part *part = &s->part[i];
        pe_wide above_one;
        double own;
        status = pe_real_nodes_serve(part) ? pe_real_nodes(part, nodes + at, &above_one, &own)
                                           : fill_nodes(part, nodes + at, &above_one, &own);
        const pe_wide size = (part->law.log_taper ? 0.0L : 1.0L) + above_one;
        if (!status && !(size > 0.0L)) status = PE_TOO_COSTLY;
        if (status) break;
        total += part->terms.share * above_one;
        error += (double)part->terms.share * own;
        part->log_m =
            part->law.log_taper ? part->window.log_total + (double)logl(size) : (double)log1pl(above_one);
    }
    /* the sums of a tapered law, which has one part, are not centred */
    const int is_tapered = s->part[0].law.log_taper != NULL;
    const pe_wide whole = (is_tapered ? 0.0L : 1.0L) + total;
    if (!status && !(whole > 0.0L)) status = PE_TOO_COSTLY;
    if (!status) {
        s->log_m = is_tapered ? s->part[0].window.log_total + logl(whole) : log1pl(total);
        const double eps = (double)LDBL_EPSILON;
        s->log_m_error = (double)(2.0L * eps * (pe_wide)error / whole) + 4.0 * eps * fabs((double)s->log_m);
        count = drop_nothing(s, nodes);
        /* where sums are beyond all doubles their errors are known no more */
        status = isfinite(s->log_m_error) ? new_arrays(s, count) : PE_TOO_COSTLY;
        mean = status ? NULL : calloc(2 * s->m, sizeof *mean);
        if (!status && !mean) status = PE_NO_MEMORY;
    }
    if (!status) {
        double mean_error = 0.0;
        for (size_t i = 0, at = 0; i < s->n_parts; at += s->part[i++].count)
            put_nodes(s, &s->part[i], nodes + at, at, mean, &mean_error);
        pe_wide mean_re = 0.0L, mean_im = 0.0L;
        for (size_t i = 0; i < count; i++) {
            mean_re += mean[2 * i];
            mean_im += mean[2 * i + 1];
        }
        s->mean_re = (double)mean_re;
        s->mean_im = (double)mean_im;
        s->rounding += s->log_m_error / U; /* all weights have that of M */
        s->mean_error = 2.0 * mean_error + U * (fabs(s->mean_re) + fabs(s->mean_im));
        status = pe_shifted_arrange(s, mean);
    }
    free(nodes);
    free(mean);
    return status;
}
