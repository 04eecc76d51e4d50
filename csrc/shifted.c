#include "shifted.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "lane_trig.h"
#include "simd.h"

/* The nodes of one kind of step; docs/theory/certified.md proves what stands here. */

#define U 0x1p-53

static const double PI = 3.14159265358979323846;
static const pe_wide HALF_LOG_2PI = 0.918938533204672741780329736405617640L;
static const double MISS = 0x1p-56; /* what nodes may miss of n log M */
static const double MARGIN = 4.0;   /* of the window, in nats, for the growth on the lines */
static const double HIGHEST = 1.2;  /* of a line: the sums of moduli grow as e^(y^2/2) */
static const double FARTHEST = 40.0; /* of z from the shifts: what lies beyond is removed */
static const double MAX_NODES = 40000;
static const double WIDEST = 0.75;   /* spacing of nodes on the real line, */
static const double HALF_STRIP = 8.0; /* and half the height of their strip */
static const double FAR = 3.0; /* shift from which on sums over cells are no estimates */
static const double TOO_FAST =
    30.0; /* growth at half a unit's height from which the real line is not tried */

/* Rounded down to 20 bits: multiples of it by integers below 2^33 are doubles. */
static double short_number(double x) {
    int exponent;
    const double mantissa = frexp(x, &exponent);
    return ldexp(floor(mantissa * 0x1p20), exponent - 20);
}

/* ---- the pair, between shifts of either sign ------------------------------------------------------- */

static int set_terms(pe_part *part, const pe_group *g) {
    const size_t n = g->exact ? g->exact->n : 2;
    part->wide_block = malloc(3 * n * sizeof(pe_wide));
    if (!part->wide_block) return PE_NO_MEMORY;
    pe_terms *t = &part->terms;
    pe_wide *at = part->wide_block;
    *t = (pe_terms){n, g->exact ? g->exact->share : 1.0L, at, at + n, at + 2 * n};
    if (!g->exact) {
        t->shift[0] = 0.0L;
        t->shift[1] = 1.0L / (pe_wide)g->noise;
        t->of_a[0] = 1.0L;
        t->of_a[1] = 0.0L;
        t->of_b[0] = 1.0L - (pe_wide)g->p;
        t->of_b[1] = g->p;
    }
    for (size_t j = 0; g->exact && j < n; j++) {
        t->shift[j] = g->exact->shift[j];
        t->of_a[j] = g->exact->of_a[j];
        t->of_b[j] = g->exact->of_b[j];
    }
    return PE_OK;
}

static void exchange(pe_terms *t) {
    pe_wide *of_a = t->of_a;
    t->of_a = t->of_b;
    t->of_b = of_a;
}

static void reflect(pe_terms *t) {
    for (size_t i = 0, j = t->n - 1; i <= j && j < t->n; i++, j--) {
        pe_wide *columns[] = {t->shift, t->of_a, t->of_b};
        for (int k = 0; k < 3; k++) {
            const pe_wide here = columns[k][i];
            columns[k][i] = columns[k][j];
            columns[k][j] = here;
        }
        t->shift[i] = -t->shift[i];
        if (i != j) t->shift[j] = -t->shift[j];
    }
}

/* Whether no shift of A is above 0 and none of B below: then the loss rises with z. */
static int rises(const pe_terms *t) {
    for (size_t j = 0; j < t->n; j++)
        if ((t->of_a[j] > 0.0L && t->shift[j] > 0.0L) || (t->of_b[j] > 0.0L && t->shift[j] < 0.0L)) return 0;
    return 1;
}

/* The sides in doubles, for bounds. */
static int set_law(pe_part *part, double q, double limit) {
    const pe_terms *t = &part->terms;
    part->block = malloc(4 * t->n * sizeof(double));
    if (!part->block) return PE_NO_MEMORY;
    pe_normals side[2];
    double *at = part->block;
    for (int k = 0; k < 2; k++) {
        const pe_wide *weight = k ? t->of_b : t->of_a;
        double *shift = at, *share = at + t->n;
        size_t n = 0;
        for (size_t j = 0; j < t->n; j++)
            if (weight[j] > 0.0L) {
                shift[n] = (double)t->shift[j];
                share[n++] = (double)weight[j];
            }
        if (!n) return PE_TOO_COSTLY; /* weights that are all 0 are no law */
        side[k] = (pe_normals){n, shift, share};
        at += 2 * t->n;
    }
    part->cut = isinf(limit) ? FARTHEST + side[1].shift[side[1].n - 1] : limit;
    return pe_tilted_new(&part->law, side[0], side[1], q, part->cut);
}

/* Of (A, B) at lambda and (B, A) at 1 - lambda the one whose power is at least one half: a mode far out
 * then lies at large z. */
static int set_part(pe_part *part, const pe_group *g, double lambda, int is_conjugate) {
    if (g->table || (g->law && !g->exact)) return PE_TOO_COSTLY;
    int status = set_terms(part, g), reflected = 0;
    if (status) return status;
    if (g->reversed) exchange(&part->terms);
    if (is_conjugate) exchange(&part->terms);
    if (!rises(&part->terms)) {
        reflect(&part->terms);
        reflected = 1;
        if (!rises(&part->terms)) return PE_TOO_COSTLY;
    }
    status = set_law(part, is_conjugate ? 1.0 - lambda : lambda, reflected ? -g->taper_low : g->taper_z);
    if (!status) part->cut = pe_tilted_end(&part->law);
    return status;
}

int pe_shifted_parts(pe_shifted *s, const pe_group *lead, double lambda) {
    *s = (pe_shifted){.steps = lead->n, .is_conjugate = lambda < 0.5, .n_parts = lead->alternatives};
    int status = PE_OK;
    for (size_t i = 0; i < s->n_parts && !status; i++)
        status = set_part(&s->part[i], &lead[i], lambda, s->is_conjugate);
    return status;
}

void pe_shifted_free(pe_shifted *s) {
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_tilted_free(&s->part[i].law);
        free(s->part[i].block);
        free(s->part[i].wide_block);
        s->part[i].block = NULL;
        s->part[i].wide_block = NULL;
    }
    free(s->weight_re);
    free(s->small);
    s->weight_re = NULL;
    s->small = NULL;
}

/* ---- height and spacing ----------------------------------------------------------------------------- */

/* Nodes on a line Im z = y in the strip |Im z - y| <= half.  On the shifted line y = half the integrand falls with every
 * t >= 0 in all of the strip; on the real line, y = 0, it grows by at most e^(time |arg|) up to t = time. */
typedef struct {
    double y, half, time;
} strip;

/* What the edge of the window and what lies beyond it add to the sum of phi R^q on a line, to the sums
 * that centre it included. */
static double outside(const pe_part *s, const strip *at, double h) {
    const pe_tilted *t = &s->law;
    const double top = at->y + at->half, x = s->x_high, of_a = fabs(t->q - 1.0), unit = s->window.log_total;
    const double of_b = 1.0 + of_a; /* of the Gaussians that centre */
    /* the vertical edge: the Gaussians that centre are phi a and phi b */
    const double bell = -0.5 * x * x - 0.91893853320467274178;
    const double plain =
        exp(bell + pe_tilted_log_side(t, 0, x)) * of_a + exp(bell + pe_tilted_log_side(t, 1, x)) * of_b;
    if (!pe_tilted_lift(t, top)) return INFINITY;
    const double turned = at->time > 0.0 ? at->time * pe_tilted_angle(t, at->half, x) : 0.0;
    double sum = 2.0 * at->half * exp(0.5 * top * top) *
                 (exp(pe_tilted_log(t, x) + pe_tilted_growth(t, x) + turned - unit) + plain * exp(-unit));
    /* beyond it on the real line */
    sum += pe_tilted_rest(t, x, s->cut, unit);
    sum += (of_a * pe_normals_above(&t->a, x) + of_b * pe_normals_above(&t->b, x)) * exp(-unit);
    /* below the window the sums themselves go on, on the line */
    const double low = s->x_low, grown = exp(0.5 * at->y * at->y);
    sum += grown * pe_tilted_sum(t, -INFINITY, low, unit, h / PE_CELL);
    const double first = of_a * pe_normals_below(&t->a, low) + of_b * pe_normals_below(&t->b, low);
    /* a sum of Gaussians is at most their integral and the largest term of each */
    const double next = exp(-0.5 * low * low - 0.91893853320467274178);
    sum +=
        grown *
        (first * (1.0 + h) +
         h * next * (of_a * exp(pe_tilted_log_side(t, 0, low)) + of_b * exp(pe_tilted_log_side(t, 1, low)))) *
        exp(-unit);
    return sum * (1.0 + 1e-8);
}

/* Bound of the moduli's integrals on both edges of the strip up to `high`, in units of e^log_total. */
static double on_lines(const pe_part *s, const strip *at, double high) {
    const pe_tilted *t = &s->law;
    const double top = at->y + at->half, grown = exp(0.5 * top * top), unit = s->window.log_total;
    if (!pe_tilted_lift(t, top)) return INFINITY;
    const double centring = (1.0 + 2.0 * pe_tilted_change(t) * fabs(t->q - 1.0)) * exp(-unit);
    if (at->time > 0.0)
        return 2.0 * grown * (pe_tilted_raised(t, at->half, high, at->time, unit) + centring) * (1.0 + 1e-8);
    const double line = pe_tilted_lifted(t, high, unit, 1.1);
    return (1.1 + grown * line + (1.0 + grown) * centring) * (1.0 + 1e-8);
}

/* Nodes of a strip with edges of moduli `size`, up to an edge from `high` on, where they miss little and are fewer than
 * those of the part so far.  Whether they are fewer. */
static int try_strip(pe_part *s, const strip *at, double size, double high, double target) {
    const double widest = at->time > 0.0 ? WIDEST : 0.5,
                 before = s->h > 0.0 ? (s->x_high - s->x_low) / s->h : INFINITY;
    const double h = short_number(fmin(2.0 * PI * at->half / log(1.0 + size / target), widest));
    const double known = s->x_high, edge = (ceil(high / h) + 0.5) * h;
    if (!(h > 0.0 && (edge - s->x_low) / h < before) || edge > s->cut) return 0;
    s->x_high = edge;
    const double missed = size / expm1(2.0 * PI * at->half / h) + outside(s, at, h);
    if (!(missed <= 4.0 * target)) {
        s->x_high = known;
        return 0;
    }
    s->missed = missed;
    s->h = h;
    s->y = at->y;
    return 1;
}

/* The first place from the window's end on where the edge of such a strip holds little. */
static double edge_of_strip(const pe_part *s, const strip *at, double target) {
    const double level = log(0.5 * target / at->half) - 0.5 * at->half * at->half + s->window.log_total;
    return pe_tilted_edge(&s->law, s->window.high, at->half, at->time, level);
}

/* Height and spacing of the fewest nodes that miss little for t up to t_top: on the real line where the integrand turns
 * slowly, or on a shifted line, which serves every t.  Whether there are any. */
static int find_height(pe_part *s, double target, double t_top) {
    const pe_window *w = &s->window;
    const double farthest = s->law.farthest, top = fmin(HIGHEST, 0.495 * PI / farthest);
    s->x_low = w->low;
    s->h = 0.0;
    const double slope = pe_tilted_loss_slope(&s->law, w->high);
    const double highest = fmin(HALF_STRIP, 0.95 * PI / farthest);
    for (int i = 0; i < 8 && 0.5 * t_top * slope < TOO_FAST; i++) {
        const double a = highest * pow(0.75, i);
        const strip at = {0.0, a, t_top};
        if (!pe_tilted_lift(&s->law, a)) continue;
        const double high = edge_of_strip(s, &at, target);
        const int is_known = s->h > 0.0;
        if (!try_strip(s, &at, on_lines(s, &at, high + 1.5 * WIDEST), high, target) && is_known) break;
    }
    for (int i = 0; i < 18 && !(s->h > 0.0); i++) {
        const double y = short_number(top * pow(0.75, i));
        const strip at = {y, y, 0.0};
        try_strip(s, &at, on_lines(s, &at, w->high + 1.0), w->high, target);
    }
    return s->h > 0.0 && (s->x_high - s->x_low) / s->h < MAX_NODES;
}

/* ---- nodes -------------------------------------------------------------------------------------------- */

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
    const pe_wide k = rintl(x * 0.63661977236758134308L);
    const pe_wide r = ((x - k * QUARTER[0]) - k * QUARTER[1]) - k * QUARTER[2];
    const pe_wide co = cosl(r), si = sinl(r);
    switch ((long)k & 3) {
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

/* z^2 times the sum of c_k z^k, the highest first */
static wide_complex series(const pe_wide *c, int n, wide_complex z) {
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
    return sqrtl(z.re * z.re + z.im * z.im);
}

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
    const pe_wide square = b.sum.re * b.sum.re + b.sum.im * b.sum.im, size_b = sqrtl(square);
    node->ratio = product(moved.less_one, (wide_complex){b.sum.re / square, -b.sum.im / square});
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

/* Nodes of one part into `nodes`, and its M - 1. */
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
        set_node(s, (pe_wide)(first + (double)j) * (pe_wide)s->h, turn, turn + n, &nodes[j]);
        *above_one += centred_term(&nodes[j], power_of_b, (double)s->count, &own, &power).re;
        *error += own;
        if (!(fabs(power) < 11000.0)) status = PE_TOO_COSTLY;
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
        s->size[i] = hypot(s->weight_re[i], s->weight_im[i]);
        s->reach[i] = hypot(s->loss[i], s->angle[i]);
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

static int fill(pe_shifted *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_part *part = &s->part[i];
        part->count = (size_t)(floor(part->x_high / part->h) - ceil(part->x_low / part->h)) + 1;
        count += part->count;
    }
    wide_node *nodes = malloc(count * sizeof *nodes);
    int status = nodes ? new_arrays(s, count) : PE_NO_MEMORY;
    pe_wide *mean = status ? NULL : calloc(2 * s->m, sizeof *mean);
    if (!mean) status = PE_NO_MEMORY;
    pe_wide total = 0.0L;
    double error = 0.0;
    for (size_t i = 0, at = 0; i < s->n_parts && !status; at += s->part[i++].count) {
        pe_part *part = &s->part[i];
        pe_wide above_one;
        double own;
        status = fill_nodes(part, nodes + at, &above_one, &own);
        if (!status && !(1.0L + above_one > 0.0L)) status = PE_TOO_COSTLY;
        if (status) break;
        total += part->terms.share * above_one;
        error += (double)part->terms.share * own;
        part->log_m = (double)log1pl(above_one);
    }
    if (!status && !(1.0L + total > 0.0L)) status = PE_TOO_COSTLY;
    if (!status) {
        s->log_m = log1pl(total);
        const double scale = (double)(1.0L / (1.0L + total)), eps = (double)LDBL_EPSILON;
        s->log_m_error = 2.0 * eps * error * scale + 4.0 * eps * fabs((double)s->log_m);
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

static double target_of(const pe_shifted *s) {
    return MISS / s->steps;
}

int pe_shifted_begin(pe_shifted *s, const pe_group *lead, double lambda) {
    const int status = pe_shifted_parts(s, lead, lambda);
    if (status) return status;
    if (s->is_conjugate && 1.0 - (1.0 - lambda) != lambda) return PE_TOO_COSTLY;
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_part *part = &s->part[i];
        if (!pe_tilted_window(&part->law, -log(target_of(s)) + MARGIN, &part->window)) return PE_TOO_COSTLY;
        part->cut = part->window.end; /* sums may end a little further out */
        part->x_low = part->window.low;
        part->x_high = part->window.high;
        part->log_m = part->window.log_total;
    }
    /* sums over cells err by e^(-2 pi^2/(farthest cell)) or so, and tell nothing of how parts add up */
    if (s->n_parts > 1 || s->part[0].law.farthest > FAR) return pe_shifted_finish(s, INFINITY);
    s->log_m = s->part[0].window.log_total;
    s->mean_re = pe_tilted_mean_loss(&s->part[0].law, &s->part[0].window);
    return PE_OK;
}

/* What was said in units of an estimate of M. */
static void rescale(pe_shifted *s, double estimate) {
    const double moved = estimate - (double)s->log_m, factor = exp(moved) * (1.0 + 1e-12);
    pe_envelope *known = &s->part[0].height.best;
    known->modulus *= factor;
    known->falls *= factor;
    known->rest *= factor;
    s->log_beyond += moved + 1e-12;
}

int pe_shifted_finish(pe_shifted *s, double t_top) {
    const double target = target_of(s), estimate = (double)s->log_m;
    if (s->weight_re) return PE_OK;
    s->t_top = t_top;
    for (size_t i = 0; i < s->n_parts; i++)
        if (!find_height(&s->part[i], target, t_top)) return PE_TOO_COSTLY;
    const int status = fill(s);
    if (status) return status;
    double missed = 0.0;
    for (size_t i = 0; i < s->n_parts; i++) {
        const pe_part *part = &s->part[i];
        /* log_total was an estimate: on_lines allows for 1.1 of it, and the rest is relative to the sum */
        if (!(part->log_m <= part->window.log_total + 0.09)) return PE_TOO_COSTLY;
        missed += (double)part->terms.share * exp(part->window.log_total - (double)s->log_m) * part->missed;
    }
    missed *= 1.0 + 1e-6;
    if (!(missed <= 16.0 * target)) return PE_TOO_COSTLY;
    s->slack += 2.0 * missed; /* of the sum at t and of that at 0, over which it is taken */
    s->log_m_error += 2.0 * missed;
    rescale(s, estimate);
    return PE_OK;
}
