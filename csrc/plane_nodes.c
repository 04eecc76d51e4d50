/* Nodes on a line Im z = y, also of tapered laws, in sums of two doubles, and M - 1, with bounds of their errors: Lemma
 * 5 of docs/theory/gaussian.md.  Lanes are consecutive nodes.  Called by shifted_nodes.c. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simd.h"
#include "wide_nodes.h"

static const double FAR_TERM = 200.0; /* exponent from which on a power of 2 is kept apart from the sides */
static const double NEAR_1 = 0x1p-6; /* |r| below which log(1 + r) - r is a series */
static const double MOST_EXPONENT = 30000.0; /* largest exponent at a node */
static const pe_dd LOG_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

/* A term of both sides (the same shift c, with its weights in a and in b): e^{icy}, and parts of its error. */
typedef struct {
    pe_dd shift, of_a, of_b, moving;
    pe_ddc turn;
    double weight_a, weight_b, fixed, per_x; /* error of the exponential: fixed + per_x |x| */
} wide_term;

/* A side over a power of 2, the sum of the moduli of its terms, and a bound of its error. */
typedef struct {
    pe_dds re, im;
    double moduli[PE_LANES], rounding[PE_LANES];
} wide_side;

typedef struct {
    const pe_part *part;
    wide_term *terms;
    size_t n;
    pe_dd s, unit; /* power of W, and log of the unit of W^s */
    double y, h, count;
    pe_wide_sums sums; /* M - 1, its error, and the range of s log W */
} wide_line;

/* PE_LANES nodes in the making. */
typedef struct {
    /* near: 1 if r is small; turned: 1 if log W needs an angle, as r is not small enough for the series */
    double x[PE_LANES], near[PE_LANES], turned[PE_LANES];
    double r[PE_LANES], ratio_error[PE_LANES], log_error[PE_LANES];
    double rounding[PE_LANES], size[PE_LANES];
    double power[PE_LANES]; /* exponent of 2 that size and bell are to be multiplied by */
    double counts[PE_LANES]; /* positive for nodes; the others fill the lanes */
    wide_side a, b, moved;
    pe_dds ratio_re, ratio_im; /* r, where 1/W = 1 + r */
    pe_dds log_re, log_im, tail_re, tail_im; /* log W, and log(1 + r) - r */
    pe_dds bell_re, bell_im;
} wide_lanes;

/* The exponent of 2 of the larger one of both parts, |z| from 2^-1000 to 2^1000 */
PE_INLINE double power_of(pe_ddc z) {
    const double re = fabs(z.re.h), im = fabs(z.im.h), most = re > im ? re : im;
    return pe_from_bits((pe_bits(most) >> 52) | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
}

PE_INLINE void add_term(wide_side *s, int u, pe_dd weight, double size, pe_ddc term, double e, double units) {
    const pe_ddc part = pe_ddc_times(term, weight);
    pe_set_lane(&s->re, u, pe_dd_add_fast(pe_lane(&s->re, u), part.re));
    pe_set_lane(&s->im, u, pe_dd_add_fast(pe_lane(&s->im, u), part.im));
    s->moduli[u] += size * e;
    s->rounding[u] += size * (e * units);
}

/* Both sides over 2^power, and their difference as the sum of (of_a - of_b)(e - 1) */
PE_CLONES static void set_sides(const wide_line *line, wide_lanes *at) {
    double top[PE_LANES];
    memset(&at->a, 0, sizeof at->a);
    memset(&at->b, 0, sizeof at->b);
    memset(&at->moved, 0, sizeof at->moved);
    for (int u = 0; u < PE_LANES; u++) top[u] = -INFINITY;
    for (size_t j = 0; j < line->n; j++)
        for (int u = 0; u < PE_LANES; u++) {
            const double c = line->terms[j].shift.h, e = c * (at->x[u] - 0.5 * c);
            top[u] = e > top[u] ? e : top[u];
        }
    for (int u = 0; u < PE_LANES; u++) {
        const double k = (top[u] * 0x1.71547652b82fep+0 + PE_MAGIC) - PE_MAGIC;
        at->power[u] = fabs(top[u]) > FAR_TERM ? k : 0.0;
    }
    for (size_t j = 0; j < line->n; j++) {
        const wide_term *t = &line->terms[j];
        const pe_dd c = t->shift, half = pe_dd_scale(c, -0.5);
        const double moving = t->moving.h == 0.0 ? 0.0 : t->weight_a + t->weight_b;
        for (int u = 0; u < PE_LANES; u++) {
            const pe_dd exponent = pe_dd_mul(c, pe_dd_add_d(half, at->x[u]));
            const int is_low = exponent.h < -10000.0;
            double k;
            const pe_dd m =
                pe_dd_exp_parts(pe_dd_make(is_low ? -10000.0 : exponent.h, is_low ? 0.0 : exponent.l), &k);
            const pe_dd e = pe_dd_scale(m, pe_power_of_2(pe_clamp(k - at->power[u], -1020.0, 1020.0)));
            /* the differences of the weights add up to 0, so 1 may be subtracted or not: it is, unless terms are far */
            const double one = at->power[u] == 0.0 ? 1.0 : 0.0;
            const double units = t->fixed + t->per_x * fabs(at->x[u]);
            pe_ddc term = pe_ddc_times(t->turn, e);
            add_term(&at->a, u, t->of_a, t->weight_a, term, e.h, units);
            add_term(&at->b, u, t->of_b, t->weight_b, term, e.h, units);
            term.re = pe_dd_add_d(term.re, -one);
            add_term(&at->moved, u, t->moving, 0.0, term, 0.0, 0.0);
            at->moved.rounding[u] += moving * (e.h * units + 2.0 * one);
        }
    }
}

/* r = a/b - 1 with its error and, where r is small, log(1 + r) - r and log W = -log(1 + r) */
PE_CLONES static void set_ratios(wide_lanes *at) {
    for (int u = 0; u < PE_LANES; u++) {
        const pe_ddc b = pe_lane_pair(&at->b.re, &at->b.im, u),
                     moved = pe_lane_pair(&at->moved.re, &at->moved.im, u);
        const double down = pe_power_of_2(-power_of(b));
        const pe_ddc unit = pe_ddc_scale(b, down), turned = {unit.re, pe_dd_neg(unit.im)};
        const pe_ddc over = pe_ddc_mul(pe_ddc_scale(moved, down), turned);
        const pe_dd square = pe_ddc_square(unit);
        const pe_ddc r = {pe_dd_div(over.re, square), pe_dd_div(over.im, square)};
        const double size_b = sqrt(square.h) / down, of_b = at->b.rounding[u] / size_b;
        /* |1 + r|^2 = 1 + f */
        const pe_dd size = pe_ddc_square(r), f = pe_dd_add(pe_dd_scale(r.re, 2.0), size);
        const double modulus = sqrt(size.h + 1e-300);
        const int is_near = (f.h > -0.29) & (f.h < 0.41) & (modulus < 0.5);
        const pe_dd rest = pe_dd_f_minus_log1p(pe_dd_make(is_near ? f.h : 0.0, is_near ? f.l : 0.0));
        const pe_dd tail = pe_dd_scale(pe_dd_sub(size, rest), 0.5);
        /* the series r^2 (-1/2 + r/3 - ...), in doubles after the first term */
        const int is_next = modulus < NEAR_1;
        const double x = is_next ? r.re.h : 0.0, y = is_next ? r.im.h : 0.0;
        double p = -1.0 / 12.0, q = 0.0;
        for (int k = 11; k > 2; k--) {
            const double next = (p * x - q * y) + (k % 2 ? 1.0 : -1.0) / k;
            q = p * y + q * x;
            p = next;
        }
        const double next = p * x - q * y;
        q = p * y + q * x;
        const pe_ddc factor = {pe_dd_add_d(pe_dd_of(-0.5), next), pe_dd_of(q)};
        const pe_ddc series = pe_ddc_mul(pe_ddc_mul(r, r), factor);
        pe_set_lane(&at->tail_re, u, pe_dd_choose(is_next, series.re, tail));
        pe_set_lane(&at->tail_im, u, series.im);
        pe_set_lane_pair(&at->ratio_re, &at->ratio_im, u, r);
        const pe_ddc log_of = {pe_dd_neg(pe_dd_add(r.re, pe_lane(&at->tail_re, u))),
                               pe_dd_neg(pe_dd_add(r.im, series.im))};
        pe_set_lane_pair(&at->log_re, &at->log_im, u, log_of);
        at->near[u] = is_near ? 1.0 : 0.0;
        at->turned[u] = is_next ? 0.0 : 1.0;
        at->r[u] = modulus;
        at->ratio_error[u] = at->moved.rounding[u] / size_b + modulus * (of_b + 8.0);
        at->log_error[u] = 2.0 * at->ratio_error[u];
    }
}

/* The imaginary part of log W where r is small but too large for the series */
PE_CLONES static void set_angles(wide_lanes *at) {
    pe_dds angle;
    for (int u = 0; u < PE_LANES; u++) {
        const pe_dd x = pe_dd_add_d(pe_lane(&at->ratio_re, u), 1.0), y = pe_lane(&at->ratio_im, u);
        pe_set_lane(&angle, u, pe_dd_angle(x, y));
    }
    for (int u = 0; u < PE_LANES; u++) {
        if (!(at->turned[u] * at->near[u] > 0.0)) continue;
        pe_set_lane(&at->log_im, u, pe_dd_neg(pe_lane(&angle, u)));
        pe_set_lane(&at->tail_im, u, pe_dd_sub(pe_lane(&angle, u), pe_lane(&at->ratio_im, u)));
    }
}

/* log of a side (without its power of 2 `power`), and the relative error of the side */
PE_INLINE pe_ddc log_of_side(const wide_side *s, int u, double *error) {
    const pe_ddc z = pe_lane_pair(&s->re, &s->im, u);
    const double power = power_of(z);
    const pe_ddc unit = pe_ddc_scale(z, pe_power_of_2(-power));
    const pe_dd square = pe_ddc_square(unit);
    *error = s->rounding[u] * pe_power_of_2(-power) / sqrt(square.h);
    return (pe_ddc){pe_dd_add(pe_dd_scale(pe_dd_log(square), 0.5), pe_dd_mul_d(LOG_2, power)),
                    pe_dd_angle(unit.re, unit.im)};
}

/* log W, and log(1 + r) - r, where r is not small */
PE_CLONES static void set_far_logs(wide_lanes *at) {
    pe_dds log_re, log_im;
    double errors[PE_LANES];
    for (int u = 0; u < PE_LANES; u++) {
        double of_a, of_b;
        const pe_ddc a = log_of_side(&at->a, u, &of_a), b = log_of_side(&at->b, u, &of_b);
        pe_set_lane(&log_re, u, pe_dd_sub(b.re, a.re));
        pe_set_lane(&log_im, u, pe_dd_sub(b.im, a.im));
        errors[u] = of_a + of_b + 8.0;
    }
    for (int u = 0; u < PE_LANES; u++) {
        if (at->near[u] > 0.0) continue;
        pe_set_lane(&at->log_re, u, pe_lane(&log_re, u));
        pe_set_lane(&at->log_im, u, pe_lane(&log_im, u));
        pe_set_lane(&at->tail_re, u, pe_dd_neg(pe_dd_add(pe_lane(&log_re, u), pe_lane(&at->ratio_re, u))));
        pe_set_lane(&at->tail_im, u, pe_dd_neg(pe_dd_add(pe_lane(&log_im, u), pe_lane(&at->ratio_im, u))));
        at->log_error[u] = errors[u];
    }
}

/* phi b h over a power of 2, and its relative error */
PE_CLONES static void set_bells(const wide_line *line, wide_lanes *at) {
    const pe_dd height = pe_two_square(line->y);
    for (int u = 0; u < PE_LANES; u++) {
        const double x = at->x[u];
        const pe_dd squares = pe_dd_sub(height, pe_two_square(x));
        double k;
        const pe_dd exponent = pe_dd_sub(pe_dd_scale(squares, 0.5), PE_HALF_LOG_2PI);
        const pe_dd m = pe_dd_mul_d(pe_dd_exp_parts(exponent, &k), line->h);
        pe_dd sine;
        const pe_dd cosine = pe_dd_turn(pe_two_prod(x, line->y), &sine);
        const pe_ddc b = pe_lane_pair(&at->b.re, &at->b.im, u);
        const double power = power_of(b), down = pe_power_of_2(-power);
        const pe_ddc turned = pe_ddc_mul((pe_ddc){cosine, pe_dd_neg(sine)}, pe_ddc_scale(b, down));
        pe_set_lane_pair(&at->bell_re, &at->bell_im, u, pe_ddc_times(turned, m));
        at->size[u] = m.h * (at->b.moduli[u] * down);
        at->rounding[u] = 20.0 + 2.0 * (x * x + fabs(x * line->y)) + at->b.rounding[u] / at->b.moduli[u];
        at->power[u] += k + power;
        at->log_error[u] += 8.0 * (fabs(at->log_re.h[u]) + fabs(at->log_im.h[u]));
    }
}

/* Multiplies the bells by a taper. */
static void taper_lanes(const wide_line *line, const pe_taper *taper, wide_lanes *at) {
    pe_tapered factor;
    pe_taper_at(taper, at->x, line->y, &factor);
    for (int u = 0; u < PE_LANES; u++) {
        const pe_ddc product =
            pe_ddc_mul(pe_lane_pair(&at->bell_re, &at->bell_im, u),
                       (pe_ddc){{factor.re[u], factor.re_low[u]}, {factor.im[u], factor.im_low[u]}});
        pe_set_lane_pair(&at->bell_re, &at->bell_im, u, product);
        at->size[u] *= factor.size[u];
        at->power[u] += factor.power[u];
        at->rounding[u] += factor.units[u] + 4.0;
    }
}

/* e^z over a power of 2; and e^z - 1 - z if is_small: the power is 0 and |Im z| below about pi/4 */
typedef struct {
    pe_ddc raised, tail;
    pe_dd modulus;
    double power;
    int is_small;
} wide_power;

PE_INLINE wide_power power_at(pe_ddc z) {
    const int is_low = z.re.h < -12000.0;
    double k, quarters;
    const pe_dd x = pe_dd_without_log2(pe_dd_make(is_low ? -12000.0 : z.re.h, is_low ? 0.0 : z.re.l), &k);
    const pe_dd rest = pe_dd_exp_tail(x), above = pe_dd_add_less(x, rest);
    const pe_dd modulus = pe_dd_add_less(pe_dd_of(1.0), above);
    pe_dd of_sine;
    const pe_dd v = pe_dd_without_turns(z.im, &quarters), of_cosine = pe_dd_turn_parts(v, &of_sine);
    const pe_dd co = pe_dd_add_less(pe_dd_of(1.0), pe_dd_neg(of_cosine)),
                si = pe_dd_add_less(v, pe_dd_neg(of_sine));
    const pe_ddc turn = pe_ddc_quarters((pe_ddc){co, si}, quarters);
    /* e^x cos v - 1 - x = (e^x - 1 - x) - e^x (1 - cos v), e^x sin v - v = (e^x - 1) sin v - (v - sin v) */
    const pe_ddc tail = {pe_dd_sub(rest, pe_dd_mul(modulus, of_cosine)),
                         pe_dd_sub(pe_dd_mul(above, si), of_sine)};
    const pe_ddc raised = pe_ddc_times(turn, modulus);
    return (wide_power){raised, tail, modulus, k, fabs(k) + fabs(quarters) == 0.0};
}

/* The factors of the bells in the sum for M (re, im), and W^s e^-unit (raised) */
typedef struct {
    pe_dds re, im, raised_re, raised_im;
    /* modulus of raised; exponent of 2 that is moved from it to the bell; error of the factor, in units */
    double modulus[PE_LANES], up[PE_LANES], error[PE_LANES];
    double power[PE_LANES], angle[PE_LANES]; /* real part and |imaginary part| of s log W */
} wide_terms;

/* Factors of a tapered law: W^s e^-unit */
PE_CLONES static void plain_terms(const wide_line *line, const wide_lanes *at, wide_terms *out) {
    const pe_dd s = line->s, unit = line->unit;
    const double size_of_s = fabs(s.h), size_of_unit = fabs(unit.h), count = line->count;
    for (int u = 0; u < PE_LANES; u++) {
        const pe_ddc z = pe_ddc_times(pe_lane_pair(&at->log_re, &at->log_im, u), s);
        const wide_power w = power_at((pe_ddc){pe_dd_sub(z.re, unit), z.im});
        const double angle = fabs(z.im.h), reach = fabs(z.re.h) + angle + size_of_unit;
        pe_set_lane_pair(&out->re, &out->im, u, w.raised);
        pe_set_lane_pair(&out->raised_re, &out->raised_im, u, w.raised);
        out->modulus[u] = w.modulus.h;
        out->up[u] = w.power;
        out->error[u] =
            w.modulus.h * (at->rounding[u] + size_of_s * at->log_error[u] + 3.0 * reach + 20.0 + count);
        out->power[u] = z.re.h;
        out->angle[u] = angle;
    }
}

/* Factors of a whole law, centred: W^s - 1 - s log W - s (log(1 + r) - r) */
PE_CLONES static void centred_terms(const wide_line *line, const wide_lanes *known, wide_terms *out) {
    const wide_lanes at = *known;
    wide_terms found;
    const pe_dd s = line->s;
    const double size_of_s = fabs(s.h), count = line->count;
    for (int u = 0; u < PE_LANES; u++) {
        const pe_ddc log_of = pe_lane_pair(&at.log_re, &at.log_im, u), z = pe_ddc_times(log_of, s);
        const wide_power w = power_at(z);
        const double with_bell = z.re.h > PE_FAR_POWER ? w.power : 0.0;
        const double own_power = pe_power_of_2(pe_clamp(w.power - with_bell, -1020.0, 1020.0));
        const double one = pe_power_of_2(-pe_clamp(with_bell, -1020.0, 1022.0));
        const pe_ddc raised = pe_ddc_scale(w.raised, own_power);
        const double modulus = w.modulus.h * own_power;
        const pe_ddc less = {pe_dd_scale(pe_dd_add_d(z.re, 1.0), -one), pe_dd_scale(z.im, -one)};
        const pe_ddc large = {pe_dd_add(raised.re, less.re), pe_dd_add(raised.im, less.im)};
        const pe_ddc tails = pe_ddc_times(pe_lane_pair(&at.tail_re, &at.tail_im, u), s);
        const pe_ddc centre = pe_ddc_scale(tails, -one);
        const pe_dd re = pe_dd_add(pe_dd_choose(w.is_small, w.tail.re, large.re), centre.re);
        const pe_dd im = pe_dd_add(pe_dd_choose(w.is_small, w.tail.im, large.im), centre.im);
        /* upper bounds also where the squares underflow */
        const double of_log = pe_modulus(log_of.re.h, log_of.im.h) + 1e-150;
        const double of_term = pe_modulus(re.h, im.h) + 1e-150 * one;
        pe_set_lane_pair(&found.re, &found.im, u, (pe_ddc){re, im});
        pe_set_lane_pair(&found.raised_re, &found.raised_im, u, raised);
        found.modulus[u] = modulus;
        found.up[u] = with_bell;
        found.error[u] = pe_centred_error(size_of_s, of_log, at.log_error[u], at.r[u], at.ratio_error[u],
                                          modulus, of_term, at.rounding[u] + count, one);
        found.power[u] = z.re.h;
        found.angle[u] = fabs(z.im.h);
    }
    *out = found;
}

/* Writes the nodes, and adds their terms to the sum for M. */
PE_CLONES static void put_lanes(wide_line *line, const wide_lanes *at, const wide_terms *terms,
                                const pe_wide_nodes *nodes, size_t i) {
    pe_wide_sums sums = line->sums;
    pe_dds bell_re, bell_im;
    double sizes[PE_LANES];
    for (int u = 0; u < PE_LANES; u++) {
        const int is_live = at->counts[u] > 0.0;
        const double up = pe_clamp(at->power[u] + terms->up[u], -2040.0, 2040.0);
        const pe_ddc bell = {pe_dd_raise(pe_lane(&at->bell_re, u), up),
                             pe_dd_raise(pe_lane(&at->bell_im, u), up)};
        const double size = pe_scale(at->size[u], up), own = size * terms->error[u] + PE_UNDERFLOW;
        const pe_dd product = pe_ddc_mul(bell, pe_lane_pair(&terms->re, &terms->im, u)).re;
        const pe_dd added = pe_dd_choose(is_live, product, pe_dd_of(0.0));
        const double power = terms->power[u], angle = terms->angle[u];
        const double most = power < sums.most[u] ? sums.most[u] : power; /* NaN stays */
        const double least = power > sums.least[u] ? sums.least[u] : power;
        const double widest = angle < sums.widest[u] ? sums.widest[u] : angle;
        pe_set_lane(&sums.total, u, pe_dd_add(pe_lane(&sums.total, u), added));
        sums.error[u] += is_live ? own : 0.0;
        sums.most[u] = is_live ? most : sums.most[u];
        sums.least[u] = is_live ? least : sums.least[u];
        sums.widest[u] = is_live ? widest : sums.widest[u];
        pe_set_lane_pair(&bell_re, &bell_im, u, bell);
        sizes[u] = size;
    }
    line->sums = sums;
    pe_put_pairs(nodes, PE_BELL_RE, i, &bell_re);
    pe_put_pairs(nodes, PE_BELL_IM, i, &bell_im);
    pe_put_pairs(nodes, PE_LOG_RE, i, &at->log_re);
    pe_put_pairs(nodes, PE_LOG_IM, i, &at->log_im);
    pe_put_pairs(nodes, PE_RAISED_RE, i, &terms->raised_re);
    pe_put_pairs(nodes, PE_RAISED_IM, i, &terms->raised_im);
    pe_put_lanes(nodes, PE_POWER, i, terms->modulus);
    pe_put_lanes(nodes, PE_SIZE, i, sizes);
    pe_put_lanes(nodes, PE_ROUNDING, i, at->rounding);
    pe_put_lanes(nodes, PE_LOG_ERROR, i, at->log_error);
}

static void set_terms(wide_line *line) {
    const pe_terms *t = &line->part->terms;
    for (size_t j = 0; j < t->n; j++) {
        wide_term *term = &line->terms[j];
        const double size = fabs(t->shift[j].h);
        term->shift = t->shift[j];
        term->of_a = t->of_a[j];
        term->of_b = t->of_b[j];
        term->moving = size == 0.0 ? pe_dd_of(0.0) : pe_dd_sub(term->of_a, term->of_b);
        term->turn.re = pe_dd_turn(pe_dd_mul_d(term->shift, line->y), &term->turn.im);
        term->weight_a = term->of_a.h;
        term->weight_b = term->of_b.h;
        term->fixed = 6.0 + 4.0 * size * size + (double)t->n;
        term->per_x = 4.0 * size;
    }
}

int pe_plane_nodes(const pe_part *s, const pe_wide_nodes *nodes, size_t at, pe_dd *above_one, double *error) {
    const double first = ceil(s->x_low / s->h), far = fmax(fabs(s->x_low), fabs(s->x_high)) + PE_LANES * s->h;
    if (!(far * (0.5 * far + s->law.farthest) + s->law.farthest * s->law.farthest < MOST_EXPONENT))
        return PE_TOO_COSTLY;
    wide_line line = {.part = s,
                      .n = s->terms.n,
                      .s = pe_two_sum(s->law.q, -1.0),
                      .unit = pe_dd_of(pe_unit_of(s)),
                      .y = s->y,
                      .h = s->h,
                      .count = (double)s->count};
    line.terms = malloc(line.n * sizeof *line.terms);
    if (!line.terms) return PE_NO_MEMORY;
    set_terms(&line);
    for (int u = 0; u < PE_LANES; u++) {
        line.sums.most[u] = -INFINITY;
        line.sums.least[u] = INFINITY;
    }
    for (size_t j = 0; j < s->count; j += PE_LANES) {
        wide_lanes lanes;
        wide_terms terms;
        double near = 1.0, turned = 0.0;
        for (int u = 0; u < PE_LANES; u++) {
            lanes.x[u] = (first + (double)(j + (size_t)u)) * s->h;
            lanes.counts[u] = (double)(s->count - j) - u;
        }
        set_sides(&line, &lanes);
        set_ratios(&lanes);
        for (int u = 0; u < PE_LANES; u++) {
            near = fmin(near, lanes.near[u]);
            turned = fmax(turned, lanes.turned[u] * lanes.near[u]);
        }
        if (turned > 0.0) set_angles(&lanes);
        if (near < 1.0) set_far_logs(&lanes);
        set_bells(&line, &lanes);
        if (s->law.log_taper) {
            for (int i = 0; i < s->law.n_tapers; i++) taper_lanes(&line, &s->law.taper[i], &lanes);
            plain_terms(&line, &lanes, &terms);
        } else centred_terms(&line, &lanes, &terms);
        put_lanes(&line, &lanes, &terms, nodes, at + j);
    }
    free(line.terms);
    *above_one = pe_dd_of(0.0);
    *error = 0.0;
    /* W^s may underflow beside the 1 of a centred term, but not in a tapered law */
    const double lowest = s->law.log_taper ? -PE_MOST_POWER : -INFINITY;
    int status = PE_OK;
    for (int u = 0; u < PE_LANES; u++) {
        *above_one = pe_dd_add(*above_one, pe_lane(&line.sums.total, u));
        *error += line.sums.error[u];
        if (!(line.sums.most[u] < PE_MOST_POWER && line.sums.least[u] > lowest &&
              line.sums.widest[u] < PE_MOST_ANGLE))
            status = PE_TOO_COSTLY;
    }
    return status;
}
