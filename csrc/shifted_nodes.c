#include "shifted_nodes.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "lane_trig.h"

/* The nodes of one kind of step in long double; docs/theory/certified.md proves what stands here. */

#define U 0x1p-53

static const double NOTHING = -140.0; /* log of a weight that counts for M at most */
static const pe_wide HALF_LOG_2PI = 0.918938533204672741780329736405617640L;

/* ---- complex functions in long double --------------------------------------------------------------- */

typedef struct {
    pe_wide re, im;
} wide_complex;

static wide_complex product(wide_complex a, wide_complex b) {
    return (wide_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* e^{ix}; the C library takes long for arguments beyond pi/4.  The multiple of pi/2 that is taken away is a sum of three
 * products, two of them exact as they have few bits, so that the argument errs by less than LDBL_EPSILON. */
static wide_complex turn_of(pe_wide x) {
    static const pe_wide QUARTER[] = {0x1.921fb544p+0L, 0x1.0b4611a6p-34L, 0x98cc51701b839a25p-132L};
    if (x == 0.0L) return (wide_complex){1.0L, 0.0L};
    if (fabsl(x) < 0.78L || !(fabsl(x) < 0x1p22L)) return (wide_complex){cosl(x), sinl(x)};
    const long whole = lrintl(x * 0.63661977236758134308L);
    const pe_wide k = (pe_wide)whole;
    const pe_wide r = ((x - k * QUARTER[0]) - k * QUARTER[1]) - k * QUARTER[2];
    const pe_wide co = cosl(r), si = sinl(r);
    switch (whole & 3) {
    case 0:
        return (wide_complex){co, si};
    case 1:
        return (wide_complex){-si, co};
    case 2:
        return (wide_complex){-co, -si};
    default:
        return (wide_complex){si, -co};
    }
}

/* Where |z| is below 2^-6 the last nine terms of a series are not needed, or the last twelve. */
static const pe_wide NEAR = 0x1p-12L;

/* z^2 times the sum of c_k z^k for real z, the highest first; even and odd powers by themselves, as neither waits for the
 * other then. */
static pe_wide real_series(const pe_wide *c, int n, pe_wide z) {
    const pe_wide square = z * z;
    pe_wide upper = c[0], lower = c[1];
    int k = 2;
    for (; k + 1 < n; k += 2) {
        upper = upper * square + c[k];
        lower = lower * square + c[k + 1];
    }
    if (k < n) return square * ((upper * square + c[k]) + z * lower);
    return square * (z * upper + lower);
}

/* The same for complex z */
static wide_complex series(const pe_wide *c, int n, wide_complex z) {
    if (z.im == 0.0L) return (wide_complex){real_series(c, n, z.re), 0.0L}; /* all nodes on the real line */
    wide_complex sum = {c[0], 0.0L};
    for (int k = 1; k < n; k++) {
        sum = product(sum, z);
        sum.re += c[k];
    }
    return product(product(z, z), sum);
}

/* e^z - 1 - z */
static wide_complex exp_remainder(wide_complex z) {
    /* 1/20! and so on to 1/2! */
    static const pe_wide INVERSES[] = {1 / 2432902008176640000.0L,
                                       1 / 121645100408832000.0L,
                                       1 / 6402373705728000.0L,
                                       1 / 355687428096000.0L,
                                       1 / 20922789888000.0L,
                                       1 / 1307674368000.0L,
                                       1 / 87178291200.0L,
                                       1 / 6227020800.0L,
                                       1 / 479001600.0L,
                                       1 / 39916800.0L,
                                       1 / 3628800.0L,
                                       1 / 362880.0L,
                                       1 / 40320.0L,
                                       1 / 5040.0L,
                                       1 / 720.0L,
                                       1 / 120.0L,
                                       1 / 24.0L,
                                       1 / 6.0L,
                                       1 / 2.0L};
    const pe_wide square = z.re * z.re + z.im * z.im;
    if (square < NEAR) return series(INVERSES + 9, 10, z);
    if (square < 0.25L) return series(INVERSES, 19, z);
    const pe_wide e = expl(z.re);
    const wide_complex turn = turn_of(z.im);
    return (wide_complex){e * turn.re - 1.0L - z.re, e * turn.im - z.im};
}

/* log(1 + r) - r, given log(1 + r) */
static wide_complex log_remainder(wide_complex r, wide_complex log_of) {
    static const pe_wide SERIES[] = {-1 / 24.0L, 1 / 23.0L, -1 / 22.0L, 1 / 21.0L, -1 / 20.0L, 1 / 19.0L,
                                     -1 / 18.0L, 1 / 17.0L, -1 / 16.0L, 1 / 15.0L, -1 / 14.0L, 1 / 13.0L,
                                     -1 / 12.0L, 1 / 11.0L, -1 / 10.0L, 1 / 9.0L,  -1 / 8.0L,  1 / 7.0L,
                                     -1 / 6.0L,  1 / 5.0L,  -1 / 4.0L,  1 / 3.0L,  -1 / 2.0L};
    const pe_wide square = r.re * r.re + r.im * r.im;
    if (square < NEAR) return series(SERIES + 11, 12, r);
    if (square < 0.01L) return series(SERIES, 23, r);
    return (wide_complex){log_of.re - r.re, log_of.im - r.im};
}

static pe_wide modulus(wide_complex z) {
    return z.im == 0.0L ? fabsl(z.re) : sqrtl(z.re * z.re + z.im * z.im);
}

static double double_modulus(double re, double im) {
    return im == 0.0 ? fabs(re) : hypot(re, im);
}

/* ---- nodes ------------------------------------------------------------------------------------------- */

/* One node: the ratio 1/W = a/b = 1 + r and the logarithm of W.  Errors are in units of LDBL_EPSILON. */
typedef struct {
    wide_complex bell;   /* phi b h at the node */
    wide_complex ratio;  /* r */
    wide_complex log_of; /* log W */
    pe_wide size;        /* at least |bell|, with the moduli of the terms of b in the place of their sum */
    double rounding;     /* of the bell, relative to size */
    double ratio_error;  /* of r */
    double log_error;    /* of log W */
} wide_node;

/* A side over phi, with the sum of its terms less 1 each, and of their moduli and roundings. */
typedef struct {
    wide_complex sum, less_one;
    pe_wide moduli, rounding;
} wide_side;

static void add_term(wide_side *s, pe_wide weight, wide_complex less_one, wide_complex term, pe_wide e,
                     pe_wide units) {
    s->sum.re += weight * term.re;
    s->sum.im += weight * term.im;
    s->less_one.re += weight * less_one.re;
    s->less_one.im += weight * less_one.im;
    s->moduli += fabsl(weight) * e;
    s->rounding += fabsl(weight) * e * units;
}

/* log|s|, close to 1 from the terms less 1 */
static pe_wide log_modulus(wide_complex less_one, wide_complex sum) {
    const pe_wide above = less_one.re * (2.0L + less_one.re) + less_one.im * less_one.im;
    return above > -0.5L ? 0.5L * log1pl(above) : 0.5L * logl(sum.re * sum.re + sum.im * sum.im);
}

/* arg(x + iy), on the real line without a call */
static pe_wide argument(pe_wide x, pe_wide y) {
    return y == 0.0L && x > 0.0L ? 0.0L : atan2l(y, x);
}

static void set_node(const pe_part *s, pe_wide x, const pe_wide *co, const pe_wide *si, wide_node *node) {
    const pe_terms *t = &s->terms;
    const pe_wide y = s->y;
    wide_side a = {{0.0L, 0.0L}, {0.0L, 0.0L}, 0.0L, 0.0L}, b = a, moved = a;
    pe_wide moved_rounding = 0.0L;
    for (size_t j = 0; j < t->n; j++) {
        const pe_wide c = t->shift[j], e = c == 0.0L ? 1.0L : expl(c * (x - 0.5L * c));
        const wide_complex term = {e * co[j], e * si[j]}, less_one = {term.re - 1.0L, term.im};
        const pe_wide units = 6.0L + 4.0L * fabsl(c) * (fabsl(x) + fabsl(c)) + (pe_wide)t->n;
        add_term(&a, t->of_a[j], less_one, term, e, units);
        add_term(&b, t->of_b[j], less_one, term, e, units);
        if (c == 0.0L || t->of_a[j] == t->of_b[j]) continue; /* nothing moves, without an error */
        add_term(&moved, t->of_a[j] - t->of_b[j], less_one, term, e, units);
        moved_rounding += (t->of_a[j] + t->of_b[j]) * (e * units + 2.0L);
    }
    const pe_wide square = b.sum.re * b.sum.re + b.sum.im * b.sum.im, size_b = modulus(b.sum);
    node->ratio = b.sum.im == 0.0L && moved.less_one.im == 0.0L
                      ? (wide_complex){moved.less_one.re / b.sum.re, 0.0L}
                      : product(moved.less_one, (wide_complex){b.sum.re / square, -b.sum.im / square});
    const double r = (double)modulus(node->ratio);
    if (r < 0.5) {
        node->log_of.re = -log_modulus(node->ratio, (wide_complex){1.0L + node->ratio.re, node->ratio.im});
        node->log_of.im = -argument(1.0L + node->ratio.re, node->ratio.im);
    } else {
        node->log_of.re = log_modulus(b.less_one, b.sum) - log_modulus(a.less_one, a.sum);
        node->log_of.im = argument(b.sum.re, b.sum.im) - argument(a.sum.re, a.sum.im);
    }
    const double of_a = (double)(a.rounding / modulus(a.sum)), of_b = (double)(b.rounding / size_b);
    const double reach = fabs((double)node->log_of.re) + fabs((double)node->log_of.im);
    node->ratio_error = (double)(moved_rounding / size_b) + r * (of_b + 8.0);
    node->log_error = (r < 0.5 ? 2.0 * node->ratio_error : of_a + of_b + 8.0) + 8.0 * reach;
    const pe_wide bell = expl(0.5L * (y * y - x * x) - HALF_LOG_2PI) * s->h;
    const wide_complex turn = turn_of(x * y);
    node->bell = product((wide_complex){bell * turn.re, -bell * turn.im}, b.sum);
    node->size = bell * b.moduli;
    node->rounding = 20.0 + 2.0 * (double)(x * x + fabsl(x * y)) + (double)(b.rounding / b.moduli);
}

/* Multiplies a node by the taper of its law. */
static void taper_node(const pe_part *s, pe_wide x, wide_node *node) {
    const pe_tapered factor = pe_taper_at(&s->law.taper, x, s->y);
    node->bell = product(node->bell, (wide_complex){factor.re, factor.im});
    node->size *= factor.size;
    node->rounding += factor.units + 4.0;
}

/* phi b h W^s e^-unit, with its error in a sum of `count` such terms, and the log of |W^s| */
static wide_complex plain_term(const wide_node *node, pe_wide s, pe_wide unit, double count, double *error,
                               double *power) {
    const wide_complex exponent = {s * node->log_of.re, s * node->log_of.im};
    const pe_wide modulus_of = expl(exponent.re - unit);
    const wide_complex turn = turn_of(exponent.im);
    const double reach = (double)(fabsl(exponent.re) + fabsl(exponent.im) + fabsl(unit));
    const double units = node->rounding + fabs((double)s) * node->log_error + 3.0 * reach + 20.0 + count;
    *power = (double)exponent.re;
    *error = (double)(node->size * modulus_of) * units;
    return product(node->bell, (wide_complex){modulus_of * turn.re, modulus_of * turn.im});
}

/* phi b h (W^s + s r - 1), with its error in a sum of `count` such terms, and the log of |W^s| */
static wide_complex centred_term(const wide_node *node, pe_wide s, double count, double *error,
                                 double *power) {
    const wide_complex exponent = {s * node->log_of.re, s * node->log_of.im};
    *power = (double)exponent.re;
    const wide_complex tail = exp_remainder(exponent),
                       log_tail =
                           log_remainder(node->ratio, (wide_complex){-node->log_of.re, -node->log_of.im});
    const wide_complex term = {tail.re - s * log_tail.re, tail.im - s * log_tail.im};
    const double size_s = fabs((double)s), r = (double)modulus(node->ratio),
                 l = (double)modulus(node->log_of);
    const double reach = size_s * l, wrong = size_s * node->log_error;
    /* far out the power may be beyond all doubles where the bell is below them */
    const pe_wide own = reach < 0.3
                            ? reach * (30.0 * reach + 1.5 * wrong)
                            : (30.0 + 30.0 * reach + wrong) *
                                  (1.0L + (*power < 700.0 ? (pe_wide)exp(*power) : expl(exponent.re)));
    const double centre = r < 0.07 ? r * (30.0 * r + 1.5 * node->ratio_error)
                                   : 10.0 * (r + l) + node->ratio_error + node->log_error;
    *error = (double)(node->size * (own + size_s * centre + modulus(term) * (node->rounding + count)));
    return product(node->bell, term);
}

/* Nodes of one part into `nodes`, and its M - 1, or M e^-log_total of a tapered law. */
static int fill_nodes(pe_part *s, wide_node *nodes, pe_wide *above_one, double *error) {
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
        set_node(s, x, turn, turn + n, &nodes[j]);
        if (s->law.log_taper) {
            taper_node(s, x, &nodes[j]);
            *above_one +=
                plain_term(&nodes[j], power_of_b, s->window.log_total, (double)s->count, &own, &power).re;
        } else *above_one += centred_term(&nodes[j], power_of_b, (double)s->count, &own, &power).re;
        *error += own;
        /* where W^s is below all numbers what it misses is a part of the error of the 1 beside it */
        if (!(power < 11000.0) || (s->law.log_taper && !(power > -11000.0))) status = PE_TOO_COSTLY;
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
static void put_nodes(pe_shifted *s, const pe_part *part, const wide_node *nodes, size_t at, pe_wide *mean,
                      double *mean_error) {
    const pe_wide power = (pe_wide)part->law.q - 1.0L;
    const double size_of_power = fabs((double)power), count = (double)s->m, eps = (double)LDBL_EPSILON;
    for (size_t j = 0; j < part->count; j++) {
        const wide_node *node = &nodes[j];
        const pe_wide l = node->log_of.re, v = node->log_of.im;
        const pe_wide size = part->terms.share * expl(power * l - s->log_m);
        const wide_complex turn = turn_of(power * v);
        const wide_complex weight = product(node->bell, (wide_complex){size * turn.re, size * turn.im}),
                           term = product(weight, node->log_of);
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
        const double whole = fmax(s->size[i], (double)(node->size * size)), of_log = eps * node->log_error;
        const double of_weight =
            eps * (node->rounding + size_of_power * (2.0 * s->reach[i] + node->log_error) + 12.0);
        if (s->size[i] > 0.0) s->rounding = fmax(s->rounding, of_weight * whole / s->size[i] / U);
        s->drifts[i] = whole * of_log;
        s->drift += s->drifts[i];
        s->bend += s->drifts[i] * s->reach[i];
        *mean_error += whole * (s->reach[i] * (of_weight + eps * count) + of_log);
    }
}

/* Moves nodes together that count at other t than 0, and returns how many they are: those that stand for the Gaussians
 * alone, which centre the sum for M, may have losses that are large, and would be rotated at each t. */
static size_t drop_nothing(pe_shifted *s, wide_node *nodes) {
    size_t kept = 0, at = 0;
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_part *part = &s->part[i];
        const pe_wide power = (pe_wide)part->law.q - 1.0L;
        const size_t before = kept, end = at + part->count;
        for (; at < end; at++) {
            const pe_wide log_size = power * nodes[at].log_of.re - s->log_m + logl(nodes[at].size);
            if (log_size > (pe_wide)NOTHING) nodes[kept++] = nodes[at];
        }
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
    wide_node *nodes = malloc(count * sizeof *nodes);
    int status = nodes ? PE_OK : PE_NO_MEMORY;
    pe_wide *mean = NULL;
    pe_wide total = 0.0L;
    double error = 0.0;
    for (size_t i = 0, at = 0; i < s->n_parts && !status; at += s->part[i++].count) {
        pe_part *part = &s->part[i];
        pe_wide above_one;
        double own;
        status = fill_nodes(part, nodes + at, &above_one, &own);
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
        const double scale = (double)(1.0L / whole), eps = (double)LDBL_EPSILON;
        s->log_m_error = 2.0 * eps * error * scale + 4.0 * eps * fabs((double)s->log_m);
        count = drop_nothing(s, nodes);
        status = new_arrays(s, count);
        mean = status ? NULL : calloc(2 * s->m, sizeof *mean);
        if (!mean) status = PE_NO_MEMORY;
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
