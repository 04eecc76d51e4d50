/* Nodes on the real line in sums of two doubles, and M - 1, with bounds of their errors: Lemma 5 of
 * docs/theory/gaussian.md.  Lanes are consecutive nodes; within a run exponentials follow by products from those of its
 * first nodes, which is cheaper.  Called by shifted_nodes.c. */

#include <math.h>
#include <stdlib.h>

#include "simd.h"
#include "wide_nodes.h"

enum { RUN = 8 }; /* blocks of PE_LANES nodes */

/* largest exponent at a node, so that nothing over- or underflows */
static const double MOST_EXPONENT = 600.0;
static const double OF_RUN = 24.0; /* error of the products of a run, in units of PE_WIDE_UNIT */

/* A term of both sides (the same shift, with its weights in a and in b): parts that do not depend on the node. */
typedef struct {
    pe_dd shift, of_a, of_b, moving;
    double weight_a, weight_b;
    double fixed, per_x; /* error of the exponential: fixed + per_x |x| */
    pe_dd rise[RUN]; /* e^{c k h}, k in lanes */
    pe_dds first; /* e^{c (x - c/2)} at the first nodes of this run */
} real_term;

typedef struct {
    const pe_part *part;
    real_term *terms;
    size_t n;
    pe_dd s;
    double h, count;
    pe_dd narrow[RUN]; /* h e^{-(k h)^2/2}/sqrt(2 pi), k in lanes */
    /* e^{-x^2/2 - k x h} at step k of the run, x its first nodes, and the factor to step k + 1 */
    pe_dds bell, fall;
    pe_wide_sums sums; /* M - 1, its error, and the largest s log W */
} real_line;

/* A side, or the difference of both, at PE_LANES nodes, and its error. */
typedef struct {
    pe_dds sum;
    double rounding[PE_LANES];
} real_side;

int pe_real_nodes_serve(const pe_part *part) {
    if (part->y != 0.0 || part->law.log_taper) return 0;
    const double x = fmax(fabs(part->x_low), fabs(part->x_high)) + RUN * PE_LANES * part->h,
                 c = part->law.farthest;
    return 0.5 * x * x < MOST_EXPONENT && c * (x + c) < MOST_EXPONENT;
}

static void set_terms(real_line *line) {
    const pe_terms *t = &line->part->terms;
    const double h = line->h * PE_LANES;
    for (size_t j = 0; j < t->n; j++) {
        real_term *term = &line->terms[j];
        const pe_dd c = t->shift[j], step = pe_dd_exp(pe_dd_mul_d(c, h));
        const double size = fabs(c.h);
        term->shift = c;
        term->of_a = t->of_a[j];
        term->of_b = t->of_b[j];
        term->moving = c.h == 0.0 ? pe_dd_of(0.0) : pe_dd_sub(term->of_a, term->of_b);
        term->weight_a = term->of_a.h;
        term->weight_b = term->of_b.h;
        term->fixed = 6.0 + OF_RUN + size * (4.0 * size + 12.0 * line->h) + (double)t->n;
        term->per_x = 4.0 * size;
        term->rise[0] = pe_dd_of(1.0);
        for (int k = 1; k < RUN; k++) term->rise[k] = pe_dd_mul(term->rise[k - 1], step);
    }
}

/* The exponentials of all terms and of the bell at the first nodes of a run */
PE_CLONES static void start_run(real_line *line, double first) {
    const double h = line->h;
    for (int u = 0; u < PE_LANES; u++) {
        const double x = (first + u) * h;
        const pe_dd start = pe_dd_scale(pe_two_square(x), -0.5);
        pe_set_lane(&line->bell, u, pe_dd_exp(start));
        pe_set_lane(&line->fall, u, pe_dd_exp(pe_two_prod(-PE_LANES * h, x)));
    }
    for (size_t j = 0; j < line->n; j++) {
        real_term *term = &line->terms[j];
        const pe_dd c = term->shift, half = pe_dd_scale(c, -0.5);
        for (int u = 0; u < PE_LANES; u++) {
            const pe_dd y = pe_dd_add_d(half, (first + u) * h);
            pe_set_lane(&term->first, u, pe_dd_exp(pe_dd_mul(c, y)));
        }
    }
}

/* Both sides, and their difference as the sum of (of_a - of_b)(e - 1), which does not cancel */
PE_INLINE void add_terms(const real_line *line, int k, const double *x, real_side *a, real_side *b,
                         real_side *moved) {
    for (size_t j = 0; j < line->n; j++) {
        const real_term *t = &line->terms[j];
        /* a term with shift 0 has e = 1 exactly */
        const double moving = t->moving.h == 0.0 ? 0.0 : t->weight_a + t->weight_b;
        for (int u = 0; u < PE_LANES; u++) {
            const pe_dd e = pe_dd_mul(pe_lane(&t->first, u), t->rise[k]);
            const double wrong = e.h * (t->fixed + t->per_x * fabs(x[u]));
            pe_set_lane(&a->sum, u, pe_dd_add_fast(pe_lane(&a->sum, u), pe_dd_mul(t->of_a, e)));
            pe_set_lane(&b->sum, u, pe_dd_add_fast(pe_lane(&b->sum, u), pe_dd_mul(t->of_b, e)));
            a->rounding[u] += t->weight_a * wrong;
            b->rounding[u] += t->weight_b * wrong;
            const pe_dd above_one = pe_dd_mul(t->moving, pe_dd_add_d(e, -1.0));
            pe_set_lane(&moved->sum, u, pe_dd_add_fast(pe_lane(&moved->sum, u), above_one));
            moved->rounding[u] += moving * (wrong + 2.0);
        }
    }
}

/* log W, and log(1 + r) - r, from the logs of both sides where r is not small */
PE_CLONES static void put_far_logs(const real_side *a, const real_side *b, const pe_dds *ratio,
                                   const double *near, pe_dds *log_of, pe_dds *log_tail) {
    pe_dds far, tail;
    for (int u = 0; u < PE_LANES; u++) {
        const pe_dd l = pe_dd_sub(pe_dd_log(pe_lane(&b->sum, u)), pe_dd_log(pe_lane(&a->sum, u)));
        pe_set_lane(&far, u, l);
        pe_set_lane(&tail, u, pe_dd_neg(pe_dd_add(l, pe_lane(ratio, u))));
    }
    for (int u = 0; u < PE_LANES; u++) {
        if (near[u] > 0.0) continue;
        pe_set_lane(log_of, u, pe_lane(&far, u));
        pe_set_lane(log_tail, u, pe_lane(&tail, u));
    }
}

/* Writes the nodes of step k of a run from index `at` on, and adds their terms of M - 1, bell times (e^{s log W} - 1 -
 * s log W + s (log W + r)); only the first `live` are nodes. */
PE_CLONES static void add_nodes(real_line *line, int k, double first, const pe_wide_nodes *nodes, size_t at,
                                double live) {
    real_side a = {{{0}, {0}}, {0}}, b = a, moved = a;
    double x[PE_LANES], near[PE_LANES], of_b[PE_LANES], ratio_error[PE_LANES], counts[PE_LANES];
    double least = 1.0;
    pe_dds ratio, log_of, log_tail;
    for (int u = 0; u < PE_LANES; u++) {
        x[u] = (first + k * PE_LANES + u) * line->h;
        counts[u] = live - u;
    }
    add_terms(line, k, x, &a, &b, &moved);
    /* log W and log(1 + r) - r */
    for (int u = 0; u < PE_LANES; u++) {
        const pe_dd r = pe_dd_div(pe_lane(&moved.sum, u), pe_lane(&b.sum, u));
        const int is_near = (r.h > -0.29) & (r.h < 0.41);
        const pe_dd f = pe_dd_make(is_near ? r.h : 0.0, is_near ? r.l : 0.0);
        const pe_dd rest = pe_dd_f_minus_log1p(f);
        pe_set_lane(&ratio, u, r);
        pe_set_lane(&log_tail, u, pe_dd_neg(rest));
        pe_set_lane(&log_of, u, pe_dd_add_fast(rest, pe_dd_neg(f)));
        near[u] = is_near ? 1.0 : 0.0;
        of_b[u] = b.rounding[u] / b.sum.h[u];
        ratio_error[u] = moved.rounding[u] / b.sum.h[u] + fabs(r.h) * (of_b[u] + 8.0);
    }
    for (int u = 0; u < PE_LANES; u++) least = near[u] < least ? near[u] : least;
    if (least < 1.0) put_far_logs(&a, &b, &ratio, near, &log_of, &log_tail);
    /* W^s, and W^s - 1 - s log W */
    const pe_dd s = line->s, narrow = line->narrow[k];
    const double size_of_s = fabs(s.h), count = line->count;
    pe_wide_sums sums = line->sums;
    const pe_dds starts = line->bell, falls = line->fall;
    pe_dds of_nodes, powers, bells;
    double roundings[PE_LANES], log_errors[PE_LANES], zeros[PE_LANES] = {0};
    for (int u = 0; u < PE_LANES; u++) {
        const pe_dd l = pe_lane(&log_of, u), exponent = pe_dd_mul(s, l);
        const int is_low = exponent.h < -10000.0, is_live = counts[u] > 0.0,
                  is_far = exponent.h > PE_FAR_POWER;
        const pe_dd raisable = pe_dd_choose(is_low, pe_dd_of(-10000.0), exponent);
        double power;
        const pe_dd z = pe_dd_without_log2(raisable, &power);
        const pe_dd small = pe_dd_exp_tail(z);
        const pe_dd whole = pe_dd_add_less(pe_dd_of(1.0), pe_dd_add_less(z, small));
        const double far_power = pe_clamp(power, 0.0, 2000.0), with_bell = is_far ? far_power : 0.0;
        const double one = pe_power_of_2(-pe_clamp(with_bell, 0.0, 1022.0));
        const pe_dd raised = pe_dd_scale(whole, pe_power_of_2(pe_clamp(power - with_bell, -1020.0, 1020.0)));
        const pe_dd less = pe_dd_scale(pe_dd_add_d(exponent, 1.0), -one);
        const pe_dd tail = pe_dd_choose(power == 0.0, small, pe_dd_add(raised, less));
        const pe_dd centre = pe_dd_scale(pe_dd_mul(s, pe_lane(&log_tail, u)), -one);
        const pe_dd term = pe_dd_add(tail, centre);
        const pe_dd bell = pe_dd_raise(pe_dd_mul(pe_lane(&starts, u), narrow), with_bell);
        const pe_dd of_node = pe_dd_mul(bell, pe_lane(&b.sum, u));
        const double rounding = 20.0 + OF_RUN + 2.0 * x[u] * x[u] + of_b[u];
        const double reach = fabs(l.h), of_a = a.rounding[u] / a.sum.h[u];
        const double of_logs = of_a + of_b[u] + 8.0, of_ratio = 2.0 * ratio_error[u];
        const double log_error = (near[u] > 0.0 ? of_ratio : of_logs) + 8.0 * reach;
        const double own =
            of_node.h * pe_centred_error(size_of_s, reach, log_error, fabs(ratio.h[u]), ratio_error[u],
                                         raised.h, fabs(term.h), rounding + count, one) +
            PE_UNDERFLOW;
        const pe_dd added = pe_dd_choose(is_live, pe_dd_mul(of_node, term), pe_dd_of(0.0));
        const double most = exponent.h < sums.most[u] ? sums.most[u] : exponent.h; /* NaN stays */
        pe_set_lane(&sums.total, u, pe_dd_add(pe_lane(&sums.total, u), added));
        sums.error[u] += is_live ? own : 0.0;
        sums.most[u] = is_live ? most : sums.most[u];
        pe_set_lane(&of_nodes, u, of_node);
        pe_set_lane(&powers, u, raised);
        roundings[u] = rounding;
        log_errors[u] = log_error;
        pe_set_lane(&bells, u, pe_dd_mul(pe_lane(&starts, u), pe_lane(&falls, u)));
    }
    line->bell = bells;
    line->sums = sums;
    pe_put_pairs(nodes, PE_BELL_RE, at, &of_nodes);
    pe_put_pairs(nodes, PE_LOG_RE, at, &log_of);
    pe_put_pairs(nodes, PE_RAISED_RE, at, &powers);
    static const int IMAGINARY[] = {PE_BELL_IM, PE_LOG_IM, PE_RAISED_IM};
    for (int i = 0; i < 3; i++)
        for (int part = 0; part < 2; part++) pe_put_lanes(nodes, IMAGINARY[i] + part, at, zeros);
    pe_put_lanes(nodes, PE_POWER, at, powers.h);
    pe_put_lanes(nodes, PE_SIZE, at, of_nodes.h);
    pe_put_lanes(nodes, PE_ROUNDING, at, roundings);
    pe_put_lanes(nodes, PE_LOG_ERROR, at, log_errors);
}

int pe_real_nodes(const pe_part *part, const pe_wide_nodes *nodes, size_t at, pe_dd *above_one,
                  double *error) {
    const double first = ceil(part->x_low / part->h);
    real_line line = {.part = part,
                      .n = part->terms.n,
                      .s = pe_two_sum(part->law.q, -1.0),
                      .h = part->h,
                      .count = (double)part->count};
    line.terms = malloc(line.n * sizeof *line.terms);
    if (!line.terms) return PE_NO_MEMORY;
    set_terms(&line);
    for (int k = 0; k < RUN; k++) {
        const pe_dd square = pe_two_square(k * PE_LANES * part->h);
        line.narrow[k] =
            pe_dd_mul_d(pe_dd_exp(pe_dd_neg(pe_dd_add(pe_dd_scale(square, 0.5), PE_HALF_LOG_2PI))), part->h);
    }
    for (int u = 0; u < PE_LANES; u++) line.sums.most[u] = -INFINITY;
    for (size_t j = 0; j < part->count; j += PE_LANES) {
        const size_t k = j / PE_LANES % RUN;
        if (!k) start_run(&line, first + (double)j);
        add_nodes(&line, (int)k, first + (double)(j - k * PE_LANES), nodes, at + j,
                  (double)(part->count - j));
    }
    free(line.terms);
    *above_one = pe_dd_of(0.0);
    *error = 0.0;
    double most = -INFINITY;
    for (int u = 0; u < PE_LANES; u++) {
        *above_one = pe_dd_add(*above_one, pe_lane(&line.sums.total, u));
        *error += line.sums.error[u];
        most = !(line.sums.most[u] < most) ? line.sums.most[u] : most;
    }
    return most < PE_MOST_POWER ? PE_OK : PE_TOO_COSTLY;
}
