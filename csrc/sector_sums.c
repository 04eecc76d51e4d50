#include <math.h>
#include <stdlib.h>

#include "arithmetic.h"
#include "doubles.h"
#include "lane_trig.h"
#include "sector.h"
#include "simd.h"

/* The density of a sum by Gauss's rules on pieces, with their remainders; docs/theory/sector_laws.md.
 *
 *     F(w) = integral of F_a(w - log(1 + e^-r)) F_b(w - log(1 + e^r)) dr over the real line,
 *
 * and where losses are added that of F_a(w - m + r) F_b(m - r), with some m. */

enum { TOGETHER = PE_SECTOR_TOGETHER, MOST_PIECES = 512 };

static const double UNIT = 0x1p-53;
static const double EXPONENT = 36.0; /* a rule may leave e^-EXPONENT of the sum */
static const double NOTHING = 38.0; /* pieces below e^-NOTHING of it are left out */
static const double LOG_2 = 0.69314718055994530942;
static const double WELL = 2e-15; /* what is lacking that is good enough */
static const double HOPELESS = 1e-2; /* what the ends lack, where no pieces help */
static const double ENDED = 1.0;     /* width of pieces beyond panels, in cells */
static const double SLACK = 1e-8; /* of logs of bounds, for their own rounding */
static const double SECTOR = 0.616; /* square of its angle, below (pi/4)^2 */
static const double TOO_MANY = 1e250; /* sum in units of what was expected */
static const double LEAST = -700.0; /* differences of exponents; terms below it count as larger */

/* Of numbers: fmax is a call. */
PE_INLINE double larger(double x, double y) {
    return x > y ? x : y;
}

/* Sums at places of [from, to]. */
typedef struct {
    pe_sector_sums *s;
    const pe_sector *a, *b;
    double from_a, to_a, from_b, to_b; /* places of both parts where the distances of a piece are 0 */
    double level; /* bounds are in units of e^level */
    double least; /* width of pieces that are not divided */
    int is_even;  /* whether the integrand is: then everything is that of r > 0, and half of the whole */
    double left;  /* what is left out, and what rules may leave */
    size_t n;
    struct {
        pe_sector_piece *piece;
        int rule;
    } chosen[MOST_PIECES];
} cover;

/* The place m of b at r = 0 where losses are added: halfway between what both laws have at their starts. */
static double middle_of(const pe_sector *a, const pe_sector *b, double w) {
    const double m = 0.5 * ((w - pe_sector_start(a)) + pe_sector_start(b));
    return nearbyint(m / PE_SECTOR_EDGE) * PE_SECTOR_EDGE;
}

static void set_places(cover *k, pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double from,
                       double to) {
    const double m = s->of_losses ? middle_of(a, b, 0.5 * (from + to)) : 0.0;
    k->s = s;
    k->a = a;
    k->b = b;
    k->from_a = s->of_losses ? from - m : from;
    k->to_a = s->of_losses ? to - m : to;
    k->from_b = s->of_losses ? m : from;
    k->to_b = s->of_losses ? m : to;
    k->left = 0.0;
    k->n = 0;
    k->is_even = a == b && !s->of_losses;
}

/* ---- bounds ---------------------------------------------------------------------------------------------- */

/* Log of a bound of the integrand's modulus on the real line. */
static double real_bound(const cover *k, const pe_sector_range *at) {
    return pe_sector_top(&k->a->cells, k->from_a + at->a_from, k->to_a + at->a_to) +
           pe_sector_top(&k->b->cells, k->from_b + at->b_from, k->to_b + at->b_to);
}

/* The same on an ellipse. */
static double ellipse_bound(const cover *k, const pe_sector_range *at) {
    return real_bound(k, at) + at->turn_a * pe_sector_kappa(&k->a->cells, k->to_a + at->a_to) +
           at->turn_b * pe_sector_kappa(&k->b->cells, k->to_b + at->b_to);
}

/* Whether a part is analytic up to its place and turn: in the sector, or up to a Y that all of the last cell is below. */
static int is_analytic(const pe_sector *a, double place, double turn) {
    if (a->kinds.are_ratios) return 1;
    return place <= a->cells.end && (turn <= SECTOR || place + a->cells.width <= a->kinds.turned);
}

/* The rule of fewest nodes that leaves little enough of a piece, and the log of what it may leave; none is -1. */
static int rule_for(const cover *k, const pe_sector_piece *m, double *leaves) {
    double nodes = PE_SECTOR_MOST_NODES + 1.0, log_rho = 0.0, bound = 0.0;
    for (int i = 0; i < PE_SECTOR_ELLIPSES; i++) {
        const pe_sector_ellipse *e = m->ellipse + i;
        if (!(e->log_rho > 0.0) || !is_analytic(k->a, k->to_a + e->range.a_to, e->range.turn_a) ||
            !is_analytic(k->b, k->to_b + e->range.b_to, e->range.turn_b))
            continue;
        const double all = ellipse_bound(k, &e->range) + e->log_factor - k->level;
        const double own = 0.5 * (all + EXPONENT) / e->log_rho;
        if (own < nodes) {
            nodes = own;
            log_rho = e->log_rho;
            bound = all;
        }
    }
    for (int rule = 0; rule < PE_SECTOR_RULES; rule++)
        if (pe_sector_sizes[rule] >= nodes) {
            *leaves = bound - 2.0 * pe_sector_sizes[rule] * log_rho;
            return rule;
        }
    return -1;
}

/* Whether a piece lies beyond the panels of a law for all sums. */
static int is_beyond(const cover *k, const pe_sector_range *at) {
    return k->from_a + at->a_from > pe_sector_high(k->a) || k->to_a + at->a_to < pe_sector_low(k->a) ||
           k->from_b + at->b_from > pe_sector_high(k->b) || k->to_b + at->b_to < pe_sector_low(k->b);
}

/* Chooses rules for a piece and its parts. */
static void choose(cover *k, pe_sector_piece *m, int depth) {
    if (!m) {
        k->s->status = PE_NO_MEMORY;
        return;
    }
    const double all = real_bound(k, &m->real) + m->log_width - k->level;
    const int beyond = is_beyond(k, &m->real);
    if (all < -NOTHING || (beyond && 2.0 * m->half <= k->least)) {
        k->left += pe_d_exp(all + SLACK);
        return;
    }
    double leaves;
    const int rule = beyond ? -1 : rule_for(k, m, &leaves);
    if (rule >= 0 && k->n < MOST_PIECES) {
        k->left += pe_d_exp(leaves + SLACK);
        k->chosen[k->n].piece = m;
        k->chosen[k->n++].rule = rule;
        return;
    }
    if (depth == PE_SECTOR_DEEPEST) k->left = INFINITY;
    for (int i = 0; i < 2 && k->left < HOPELESS && !k->s->status; i++)
        choose(k, pe_sector_half(k->s->pieces, m, i, k->s->of_losses), depth + 1);
}

/* Log of a bound of the integral over r up to `end` of e^(slope (w_a(r) - w_a(end))): log|x/Y| has the slope
 * 1/(1 + e^r), which falls as r grows. */
static double log_falling(const cover *k, double slope, double end) {
    return k->s->of_losses ? -pe_d_log(slope) : pe_d_log1p(pe_d_exp(end)) - pe_d_log(slope);
}

/* Roots that count: a of the first one, and b of the last one, have places above the starts of their laws.  What is to the
 * left and to the right of them is left out: one of both densities falls there, and the other one may be anywhere. */
static int roots_of(const cover *k, long *first, long *last, double *log_beside) {
    const pe_sector *a = k->a, *b = k->b;
    const double reach_a = k->to_a - pe_sector_start(a), reach_b = k->to_b - pe_sector_start(b);
    if (!(reach_a > 0.0 && reach_b > 0.0)) return 0;
    const int of_losses = k->s->of_losses;
    const double far_a = of_losses ? reach_a : pe_d_log(pe_d_expm1(fmin(reach_a, 600.0)));
    const double far_b = of_losses ? reach_b : pe_d_log(pe_d_expm1(fmin(reach_b, 600.0)));
    *first = k->is_even ? 0 : (long)floor(-far_a / PE_SECTOR_ROOT - 1e-6);
    *last = (long)floor(far_b / PE_SECTOR_ROOT + 1e-6);
    if (*first < -PE_SECTOR_ROOTS || *last >= PE_SECTOR_ROOTS || *first > *last) return 0;
    const double left = (double)*first * PE_SECTOR_ROOT, right = (double)(*last + 1) * PE_SECTOR_ROOT;
    const double least_b = k->from_b - (of_losses ? left : pe_d_log1p(pe_d_exp(left))) - 1e-6;
    const double least_a = k->from_a - (of_losses ? -right : pe_d_log1p(pe_d_exp(-right))) - 1e-6;
    const double below_a = a->cells.top[0] +
                           pe_sector_top(&b->cells, least_b, of_losses ? INFINITY : k->to_b) +
                           log_falling(k, a->low_slope, left);
    const double below_b = b->cells.top[0] +
                           pe_sector_top(&a->cells, least_a, of_losses ? INFINITY : k->to_a) +
                           log_falling(k, b->low_slope, -right);
    *log_beside = (k->is_even ? below_b : pe_log_add(below_a, below_b)) + SLACK;
    return 1;
}

/* About the log of a sum: a bound of the narrow piece that the widest bounds lead to. */
static double about(cover *k, long first, long last) {
    const int of_losses = k->s->of_losses;
    pe_sector_piece *best = NULL;
    double top = -INFINITY;
    for (long i = first; i <= last; i++) {
        pe_sector_piece *m = pe_sector_root(k->s->pieces, i, of_losses);
        if (!m) break;
        const double own = real_bound(k, &m->real);
        if (!best || own > top) best = m, top = own;
    }
    for (int depth = 0; best && depth < PE_SECTOR_DEEPEST && 2.0 * best->half > k->least; depth++) {
        pe_sector_piece *part[2];
        double own[2];
        for (int i = 0; i < 2; i++) {
            part[i] = pe_sector_half(k->s->pieces, best, i, of_losses);
            if (!part[i]) return -INFINITY;
            own[i] = real_bound(k, &part[i]->real);
        }
        best = part[own[1] > own[0]];
        top = larger(own[0], own[1]);
    }
    return best ? top + best->log_width : -INFINITY; /* of half where that is all */
}

/* Chooses rules for all pieces; 0 where the ends of the laws lack too much, or no node lies within both. */
static int covered(cover *k, double level) {
    long first, last;
    double log_beside;
    if (!roots_of(k, &first, &last, &log_beside)) return 0;
    k->level = level;
    k->left = pe_d_exp(fmin(log_beside - level, 600.0));
    k->n = 0;
    for (long i = first; i <= last && k->left < HOPELESS && !k->s->status; i++)
        choose(k, pe_sector_root(k->s->pieces, i, k->s->of_losses), 0);
    return k->n > 0 && k->left < HOPELESS && !k->s->status;
}

/* Pieces of the bound of a density. */
static double sum_of_bounds(const cover *k, pe_sector_piece *m, double level) {
    const double all = m ? real_bound(k, &m->real) + m->log_width - level : INFINITY;
    if (!m || all < -NOTHING || 2.0 * m->half <= k->least) return pe_d_exp(fmin(all, 700.0));
    double sum = 0.0;
    for (int i = 0; i < 2; i++)
        sum += sum_of_bounds(k, pe_sector_half(k->s->pieces, m, i, k->s->of_losses), level);
    return sum;
}

static double least_width(const pe_sector *a, const pe_sector *b) {
    return ENDED * fmin(a->cells.width, b->cells.width);
}

double pe_sector_sum_bound(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double from,
                           double to) {
    cover k;
    long first, last;
    double log_beside, sum = 0.0;
    set_places(&k, s, a, b, from - s->shift, to - s->shift);
    k.least = 2.0 * least_width(a, b);
    if (!roots_of(&k, &first, &last, &log_beside)) return INFINITY;
    const double level = about(&k, first, last);
    if (!isfinite(level)) return INFINITY;
    for (long i = first; i <= last; i++)
        sum += sum_of_bounds(&k, pe_sector_root(s->pieces, i, s->of_losses), level);
    return pe_log_add(level + pe_d_log(sum), log_beside) + SLACK + (k.is_even ? LOG_2 : 0.0);
}

/* ---- values of panels ------------------------------------------------------------------------------------ */

PE_INLINE double inner(double high, double low, double scale) {
    return (high + low) * scale;
}

PE_INLINE double horner(double c, double x, double b) {
    return c + x * b;
}

/* Values of a panel's polynomial at places given as distances from its middle in two parts, by Horner's rule: four rows
 * at a time, as each step waits for the one before. */
PE_CLONES static void panel_values(const double *c, double scale, size_t n, const double *high,
                                   const double *low, double *out) {
    enum { ROWS = 4 * TOGETHER };
    size_t i = 0;
    for (; i + ROWS <= n; i += ROWS) {
        const double *h = high + i, *o = low + i;
        double x[TOGETHER], y[TOGETHER], z[TOGETHER], w[TOGETHER],
            *of_x = out + i, *of_y = of_x + TOGETHER, *of_z = of_y + TOGETHER, *of_w = of_z + TOGETHER;
        double a[TOGETHER], b[TOGETHER], d[TOGETHER], e[TOGETHER];
        for (int l = 0; l < TOGETHER; l++) {
            x[l] = inner(h[l], o[l], scale);
            y[l] = inner(h[TOGETHER + l], o[TOGETHER + l], scale);
            z[l] = inner(h[2 * TOGETHER + l], o[2 * TOGETHER + l], scale);
            w[l] = inner(h[3 * TOGETHER + l], o[3 * TOGETHER + l], scale);
            a[l] = b[l] = d[l] = e[l] = c[PE_SECTOR_TERMS - 1];
        }
        for (int k = PE_SECTOR_TERMS - 2; k >= 0; k--)
            for (int l = 0; l < TOGETHER; l++) {
                a[l] = horner(c[k], x[l], a[l]);
                b[l] = horner(c[k], y[l], b[l]);
                d[l] = horner(c[k], z[l], d[l]);
                e[l] = horner(c[k], w[l], e[l]);
            }
        for (int l = 0; l < TOGETHER; l++) {
            of_x[l] = a[l];
            of_y[l] = b[l];
            of_z[l] = d[l];
            of_w[l] = e[l];
        }
    }
    for (; i < n; i += TOGETHER) {
        const size_t m = n - i < TOGETHER ? n - i : TOGETHER;
        double x[TOGETHER] = {0.0}, b[TOGETHER];
        for (size_t l = 0; l < m; l++) x[l] = inner(high[i + l], low[i + l], scale);
        for (int l = 0; l < TOGETHER; l++) b[l] = c[PE_SECTOR_TERMS - 1];
        for (int k = PE_SECTOR_TERMS - 2; k >= 0; k--)
            for (int l = 0; l < TOGETHER; l++) b[l] = horner(c[k], x[l], b[l]);
        for (size_t l = 0; l < m; l++) out[i + l] = b[l];
    }
}

void pe_sector_rests(const pe_sector *a, size_t panel, size_t n, double w_high, const double *w_low,
                     double *out) {
    enum { MOST = 128 };
    const double lo = a->edge[panel], half = 0.5 * (a->edge[panel + 1] - lo), at = w_high - (lo + half);
    double high[MOST];
    for (size_t i = 0; i < MOST && i < n; i++) high[i] = at;
    for (size_t i = 0; i < n; i += MOST)
        panel_values(a->coef + PE_SECTOR_TERMS * panel, 1.0 / half, n - i < MOST ? n - i : MOST, high,
                     w_low + i, out + i);
}

double pe_sector_value(const pe_sector *a, size_t panel, double w_high, double w_low) {
    double rest;
    pe_sector_rests(a, panel, 1, w_high, &w_low, &rest);
    return a->whole[panel] + rest;
}

size_t pe_sector_panel(const pe_sector *a, double w) {
    size_t lo = 0, hi = a->n;
    while (hi - lo > 1) {
        const size_t mid = (lo + hi) / 2;
        if (a->edge[mid] <= w) lo = mid;
        else hi = mid;
    }
    return lo;
}

/* Places of a law, so many of them for each node; those beyond its ends are moved to these. */
PE_INLINE void put_places(int lanes, double begin, double end, size_t n, const double *parts,
                          const double *lows, const double *w, double *place, double *low) {
    for (size_t j = 0; j < n; j++)
        for (int l = 0; l < lanes; l++) {
            const double at = w[l] - parts[j], more = at < begin ? begin : at;
            place[(size_t)lanes * j + (size_t)l] = more > end ? end : more;
            low[(size_t)lanes * j + (size_t)l] = lows[j];
        }
}

PE_CLONES static void set_places_of(int lanes, double begin, double end, size_t n, const double *parts,
                                    const double *lows, const double *w, double *place, double *low) {
    if (lanes == 1) put_places(1, begin, end, n, parts, lows, w, place, low);
    else put_places(TOGETHER, begin, end, n, parts, lows, w, place, low);
}

/* Terms of a sum: exponents as wholes, which are added without rounding, and rests, with what these are off by. */
typedef struct {
    double whole[PE_SECTOR_MOST_NODES * TOGETHER], rest[PE_SECTOR_MOST_NODES * TOGETHER],
        error[PE_SECTOR_MOST_NODES * TOGETHER];
} terms;

PE_CLONES static void add_run(size_t n, const double *value, double more, double off, double *whole,
                              double *rest, double *error) {
    for (size_t i = 0; i < n; i++) {
        whole[i] += more;
        rest[i] += value[i];
        error[i] += off;
    }
}

PE_CLONES static void less_middle(size_t n, double *place, double middle) {
    for (size_t i = 0; i < n; i++) place[i] -= middle; /* exact */
}

/* Adds values of a law at rising places of sums, 1 or TOGETHER, each less what n nodes say, and what they may be off by. */
static void add_values(const pe_sector *a, size_t lanes, size_t n, const double *parts, const double *lows,
                       const double *w, terms *t) {
    enum { MOST = PE_SECTOR_MOST_NODES * TOGETHER };
    double place[MOST], low[MOST], value[MOST];
    set_places_of((int)lanes, a->edge[0], a->edge[a->n], n, parts, lows, w, place, low);
    const size_t all = n * lanes;
    size_t p = pe_sector_panel(a, place[0]);
    for (size_t i = 0, m; i < all; i += m) {
        while (p > 0 && place[i] < a->edge[p]) p--;
        while (p + 1 < a->n && place[i] >= a->edge[p + 1]) p++;
        const double lo = a->edge[p], hi = p + 1 == a->n ? INFINITY : a->edge[p + 1];
        /* rows that are in one panel, or a part of one */
        for (m = 0; i + m < all && (i + m) % lanes == 0; m += lanes)
            if (place[i + m] < lo || place[i + m + lanes - 1] >= hi) break;
        if (!m) do
                m++;
            while ((i + m) % lanes && place[i + m] < hi);
        const double half = 0.5 * (a->edge[p + 1] - lo);
        less_middle(m, place + i, lo + half);
        panel_values(a->coef + PE_SECTOR_TERMS * p, 1.0 / half, m, place + i, low + i, value);
        add_run(m, value, a->whole[p], a->off[p], t->whole + i, t->rest + i, t->error + i);
    }
}

/* A sum in two parts, so that additions round next to nothing. */
typedef struct {
    double sum[TOGETHER], rest[TOGETHER], error[TOGETHER];
} totals;

/* Adds terms of n nodes at so many places to their sums, and what these are off by. */
PE_INLINE void add_terms(int lanes, size_t n, const double *weight, const terms *t, totals *s) {
    for (size_t i = 0, at = 0; i < n; i++, at += (size_t)lanes)
        for (int l = 0; l < lanes; l++) {
            const double apart = t->whole[at + (size_t)l] + t->rest[at + (size_t)l];
            const double less = apart > LEAST ? apart : LEAST;
            const double e = weight[i] * pe_vexp(less < 700.0 ? less : 700.0);
            const double sum = s->sum[l] + e, part = sum - s->sum[l];
            s->rest[l] += (s->sum[l] - (sum - part)) + (e - part); /* exact, Knuth */
            s->sum[l] = sum;
            s->error[l] += e * (t->error[at + (size_t)l] + UNIT * (less < 0.0 ? -less : less));
        }
}

PE_CLONES static void weigh(int lanes, size_t n, const double *weight, const terms *t, totals *s) {
    if (lanes == 1) add_terms(1, n, weight, t, s);
    else add_terms(TOGETHER, n, weight, t, s);
}

/* ---- the sum ------------------------------------------------------------------------------------------- */

/* Terms of nodes beyond the panels are nothing; a bound of each is added to what the sum lacks. */
static void leave_out(const cover *k, size_t lanes, size_t n, const double *parts, const double *w_a,
                      const double *w_b, double *whole, double *lost) {
    const pe_sector *a = k->a, *b = k->b;
    const double *of_a = parts, *of_b = parts + 2 * n, *weight = parts + 4 * n;
    const double low_a = pe_sector_low(a), low_b = pe_sector_low(b), high_a = pe_sector_high(a),
                 high_b = pe_sector_high(b);
    for (size_t j = 0; j < n; j++)
        for (size_t l = 0; l < lanes; l++) {
            const double at_a = w_a[l] - of_a[j], at_b = w_b[l] - of_b[j];
            if (at_a >= low_a && at_a <= high_a && at_b >= low_b && at_b <= high_b) continue;
            const double bound = pe_sector_top(&a->cells, at_a, at_a) + pe_sector_top(&b->cells, at_b, at_b);
            lost[l] += weight[j] * pe_d_exp(fmin(bound - k->level + SLACK, 700.0));
            whole[lanes * j + l] = -1e300;
        }
}

/* The sums of a cover at 1 or TOGETHER places; what each lacks is put beside it. */
static void add_pieces(cover *k, size_t lanes, const double *w, totals *of, double *lost) {
    terms t;
    double own_a[TOGETHER], own_b[TOGETHER];
    pe_sector_sums *s = k->s;
    for (int l = 0; l < TOGETHER; l++) {
        own_a[l] = s->of_losses ? w[l] - k->to_b : w[l];
        own_b[l] = s->of_losses ? k->to_b : w[l];
        of->sum[l] = of->rest[l] = of->error[l] = 0.0;
        lost[l] = k->left;
    }
    const double low_a = pe_sector_low(k->a), low_b = pe_sector_low(k->b);
    const double high_a = pe_sector_high(k->a), high_b = pe_sector_high(k->b);
    for (size_t i = 0; i < k->n; i++) {
        pe_sector_piece *m = k->chosen[i].piece;
        const int rule = k->chosen[i].rule;
        const size_t n = (size_t)pe_sector_sizes[rule];
        const double *parts = pe_sector_rule(s->pieces, m, rule, s->of_losses);
        if (!parts) {
            s->status = PE_NO_MEMORY;
            return;
        }
        for (size_t j = 0; j < n * lanes; j++) {
            t.whole[j] = -k->level;
            t.rest[j] = t.error[j] = 0.0;
        }
        add_values(k->a, lanes, n, parts, parts + n, own_a, &t);
        add_values(k->b, lanes, n, parts + 2 * n, parts + 3 * n, own_b, &t);
        const pe_sector_range *at = &m->real;
        if (k->from_a + at->a_from < low_a || k->to_a + at->a_to > high_a || k->from_b + at->b_from < low_b ||
            k->to_b + at->b_to > high_b)
            leave_out(k, lanes, n, parts, own_a, own_b, t.whole, lost);
        weigh((int)lanes, n, parts + 4 * n, &t, of);
        s->work += (double)(n * lanes);
    }
    for (size_t l = 0; l < lanes; l++) of->sum[l] += of->rest[l];
}

/* The log that sums between two places have at least, by those that were made last. */
static double expected(const pe_sector_sums *s, double from, double to) {
    return s->value + fmin(s->slope * (from - s->near), s->slope * (to - s->near)) - 2.5;
}

static double expected_of(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double w, double least) {
    cover k;
    long first, last;
    double log_beside;
    set_places(&k, s, a, b, w, w);
    k.least = least;
    return roots_of(&k, &first, &last, &log_beside) ? about(&k, first, last) : -INFINITY;
}

void pe_sector_sums_at(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, size_t n,
                       const double *places, double *whole, double *rest, double *error) {
    enum { TRIALS = 4 };
    const size_t lanes = n == 1 ? 1 : TOGETHER;
    double w[TOGETHER], lost[TOGETHER];
    totals of;
    for (size_t l = 0; l < TOGETHER; l++) w[l] = places[l < n ? l : n - 1] - s->shift;
    for (size_t l = 0; l < n; l++) {
        whole[l] = -INFINITY;
        rest[l] = 0.0;
        error[l] = INFINITY;
    }
    s->lost = INFINITY;
    cover k;
    set_places(&k, s, a, b, w[0], w[TOGETHER - 1]);
    k.least = least_width(a, b);
    double level = 0.0;
    int is_near = s->is_near;
    for (int trial = 0; trial < TRIALS; trial++) {
        if (s->work > s->budget) s->status = PE_TOO_COSTLY;
        if (s->status) break;
        if (is_near) {
            level = expected(s, w[0], w[TOGETHER - 1]);
        } else if (trial == 0 || s->is_near) {
            level = fmin(expected_of(s, a, b, w[0], k.least), expected_of(s, a, b, w[TOGETHER - 1], k.least));
            s->is_near = 0;
        }
        const int was_near = is_near;
        is_near = 0;
        if (!isfinite(level)) break;
        level = pe_sector_whole(level);
        const int is_known = covered(&k, level);
        if (is_known) add_pieces(&k, lanes, w, &of, lost);
        if (s->status) break;
        double least = INFINITY, most = 0.0, largest = 0.0, log_sum[TOGETHER];
        for (size_t l = 0; l < lanes && is_known; l++) {
            log_sum[l] = pe_d_log(k.is_even ? 2.0 * of.sum[l] : of.sum[l]);
            least = fmin(least, level + log_sum[l]);
            largest = of.sum[l] < TOO_MANY ? larger(largest, of.sum[l]) : INFINITY;
            most = larger(most, lost[l] / of.sum[l]);
        }
        if (!is_known || !isfinite(least) || !(largest < TOO_MANY)) {
            if (was_near) continue;
            break;
        }
        s->is_near = 1;
        s->near = w[n - 1];
        s->value = level + log_sum[n - 1];
        s->slope = n > 1 ? (s->value - (level + log_sum[0])) / (w[n - 1] - w[0]) : 0.0;
        s->lost = lost[0] / of.sum[0];
        for (size_t l = 0; l < n; l++) {
            /* of exponentials and weights, and additions in two parts */
            const double of_terms = 8.0, of_sums = 2.0, of_logs = 4.0 * fabs(log_sum[l]) + 1.0;
            whole[l] = level;
            rest[l] = log_sum[l];
            error[l] =
                (of.error[l] / of.sum[l] + (of_sums + of_terms + of_logs) * UNIT + lost[l] / of.sum[l]) *
                (1.0 + 1e-6);
        }
        if (most < WELL || level < least + 0.5) break;
        level = least - 0.5;
    }
    if (s->status)
        for (size_t l = 0; l < n; l++) whole[l] = NAN;
}

double pe_sector_sum(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double w, double *error) {
    double whole, rest;
    s->is_near = 0;
    pe_sector_sums_at(s, a, b, 1, &w, &whole, &rest, error);
    s->is_near = 0;
    return whole + rest;
}
