/* The density of a sum of two independent losses by Gauss's rules on pieces, with bounds of their remainders: Theorem 5
 * of docs/theory/sector_laws.md.
 *
 *     F(w) = integral of F_a(w - log(1 + e^-r)) F_b(w - log(1 + e^r)) dr over the real line,
 *
 * and where losses of epochs are added (Theorem 8) that of F_a(w - m + r) F_b(m - r), with some m.  Called by
 * sector_laws.c. */

#include <math.h>
#include <stdlib.h>

#include "arithmetic.h"
#include "doubles.h"
#include "lane_trig.h"
#include "sector.h"
#include "simd.h"

enum { TOGETHER = PE_SECTOR_TOGETHER, MOST_PIECES = 512 };

static const double UNIT = 0x1p-53;
static const double EXPONENT = 36.0; /* rules are chosen for remainders of e^-EXPONENT of the sum */
static const double NEGLIGIBLE = 38.0; /* pieces below e^-NEGLIGIBLE of the sum are left out */
static const double LOG_2 = 0.69314718055994530942;
static const double ACCURATE = 2e-15; /* relative remainder for which a sum is not formed once more */
static const double HOPELESS = 1e-2; /* relative remainder from which on a sum is given up */
static const double NARROWEST = 1.0; /* width in cells of pieces beyond panels that are not halved any more */
static const double SLACK = 1e-8; /* added to logs of bounds, for their own rounding */
static const double SECTOR = 0.616; /* square of the largest angle in the sector, below (pi/4)^2 */
static const double TOO_LARGE = 1e250; /* sum, in units of what was expected, that is formed once more */
static const double LEAST = -700.0; /* exponents below it are replaced by it, as e^x would underflow */

/* Inlined, as fmax is a call; not for NaN. */
PE_INLINE double larger(double x, double y) {
    return x > y ? x : y;
}

/* The pieces and rules chosen for sums at all w of an interval. */
typedef struct {
    pe_sector_sums *s;
    const pe_sector *a, *b;
    double from_a, to_a, from_b, to_b; /* range of the arguments of F_a and F_b where a node's parts are 0 */
    double level; /* bounds are in units of e^level */
    double least; /* width up to which pieces beyond panels are not halved */
    int is_even; /* whether the integrand is even in r: then only r > 0 is summed */
    double left; /* bound of the remainders of the rules and of all that is left out, in units of e^level */
    size_t n;
    struct {
        pe_sector_piece *piece;
        int rule;
    } chosen[MOST_PIECES];
} cover;

/* m, the argument of F_b at r = 0 where losses are added: both laws are then equally far above their starts. */
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

/* log of a bound of the integrand on a piece of the real line. */
static double real_bound(const cover *k, const pe_sector_range *at) {
    return pe_sector_top(&k->a->cells, k->from_a + at->a_from, k->to_a + at->a_to) +
           pe_sector_top(&k->b->cells, k->from_b + at->b_from, k->to_b + at->b_to);
}

/* The same of its modulus on an ellipse. */
static double ellipse_bound(const cover *k, const pe_sector_range *at) {
    return real_bound(k, at) + at->turn_a * pe_sector_kappa(&k->a->cells, k->to_a + at->a_to) +
           at->turn_b * pe_sector_kappa(&k->b->cells, k->to_b + at->b_to);
}

/* Whether a density is analytic and bounded up to w and an angle, turn = angle^2: in the sector, or at every angle up to
 * kinds.turned. */
static int is_analytic(const pe_sector *a, double w, double turn) {
    if (a->kinds.are_ratios) return 1;
    return w <= a->cells.end && (turn <= SECTOR || w + a->cells.width <= a->kinds.turned);
}

/* The rule of fewest nodes with a remainder of at most e^-EXPONENT on a piece, and the log of its remainder; -1 if
 * there is none. */
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

/* Whether on all of a piece the argument of F_a or of F_b is outside of its panels, for every w. */
static int is_beyond(const cover *k, const pe_sector_range *at) {
    return k->from_a + at->a_from > pe_sector_high(k->a) || k->to_a + at->a_to < pe_sector_low(k->a) ||
           k->from_b + at->b_from > pe_sector_high(k->b) || k->to_b + at->b_to < pe_sector_low(k->b);
}

/* Chooses a rule for a piece, or leaves it out, or halves it. */
static void choose(cover *k, pe_sector_piece *m, int depth) {
    if (!m) {
        k->s->status = PE_NO_MEMORY;
        return;
    }
    const double all = real_bound(k, &m->real) + m->log_width - k->level;
    const int beyond = is_beyond(k, &m->real);
    if (all < -NEGLIGIBLE || (beyond && 2.0 * m->half <= k->least)) {
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

/* log of a bound of the integral over r < end of e^(slope (w_a(r) - w_a(end))), w_a the argument of F_a: log|x/Y| has
 * the slope 1/(1 + e^r), which falls as r grows. */
static double log_tail_integral(const cover *k, double slope, double end) {
    return k->s->of_losses ? -pe_d_log(slope) : pe_d_log1p(pe_d_exp(end)) - pe_d_log(slope);
}

/* The first and the last root piece: beyond them the argument of F_a, or of F_b, is below the start of its cells, where
 * that density falls (Lemma 4).  log_beside: log of a bound of the integral beyond them, with the largest value that
 * the other density may have there. */
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
                           log_tail_integral(k, a->low_slope, left);
    const double below_b = b->cells.top[0] +
                           pe_sector_top(&a->cells, least_a, of_losses ? INFINITY : k->to_a) +
                           log_tail_integral(k, b->low_slope, -right);
    *log_beside = (k->is_even ? below_b : pe_log_add(below_a, below_b)) + SLACK;
    return 1;
}

/* Estimate of the log of a sum: the bound on the narrow piece that is found by halving towards the larger bound. */
static double estimated_log(cover *k, long first, long last) {
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
    return best ? top + best->log_width : -INFINITY; /* half of the sum if is_even */
}

/* Chooses rules for all pieces; returns 0 if too much is left out or there is no piece within both laws. */
static int choose_all(cover *k, double level) {
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

/* Upper bound of the integral over a piece, in units of e^level, halving it as far as that helps. */
static double sum_of_bounds(const cover *k, pe_sector_piece *m, double level) {
    const double all = m ? real_bound(k, &m->real) + m->log_width - level : INFINITY;
    if (!m || all < -NEGLIGIBLE || 2.0 * m->half <= k->least) return pe_d_exp(fmin(all, 700.0));
    double sum = 0.0;
    for (int i = 0; i < 2; i++)
        sum += sum_of_bounds(k, pe_sector_half(k->s->pieces, m, i, k->s->of_losses), level);
    return sum;
}

static double least_width(const pe_sector *a, const pe_sector *b) {
    return NARROWEST * fmin(a->cells.width, b->cells.width);
}

double pe_sector_sum_bound(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double from,
                           double to) {
    cover k;
    long first, last;
    double log_beside, sum = 0.0;
    set_places(&k, s, a, b, from - s->shift, to - s->shift);
    k.least = 2.0 * least_width(a, b);
    if (!roots_of(&k, &first, &last, &log_beside)) return INFINITY;
    const double level = estimated_log(&k, first, last);
    if (!isfinite(level)) return INFINITY;
    for (long i = first; i <= last; i++)
        sum += sum_of_bounds(&k, pe_sector_root(s->pieces, i, s->of_losses), level);
    return pe_log_add(level + pe_d_log(sum), log_beside) + SLACK + (k.is_even ? LOG_2 : 0.0);
}

/* ---- values of panels ------------------------------------------------------------------------------------ */

/* x on a panel from the distance to its middle; a step of Horner's rule: functions, for the audits of rounding */
PE_INLINE double inner(double high, double low, double scale) {
    return (high + low) * scale;
}

PE_INLINE double horner(double c, double x, double b) {
    return c + x * b;
}

/* Values of a panel's polynomial by Horner's rule at distances high + low from its middle; four independent rows at a
 * time hide the latency. */
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

/* Arguments of a law's density, `lanes` for each node, clipped to its panels. */
PE_INLINE void put_arguments(int lanes, double begin, double end, size_t n, const double *parts,
                             const double *lows, const double *w, double *place, double *low) {
    for (size_t j = 0; j < n; j++)
        for (int l = 0; l < lanes; l++) {
            const double at = w[l] - parts[j], more = at < begin ? begin : at;
            place[(size_t)lanes * j + (size_t)l] = more > end ? end : more;
            low[(size_t)lanes * j + (size_t)l] = lows[j];
        }
}

PE_CLONES static void set_arguments(int lanes, double begin, double end, size_t n, const double *parts,
                                    const double *lows, const double *w, double *place, double *low) {
    if (lanes == 1) put_arguments(1, begin, end, n, parts, lows, w, place, low);
    else put_arguments(TOGETHER, begin, end, n, parts, lows, w, place, low);
}

/* Terms of a sum: exponents as whole parts, which add up without rounding, rests, and bounds of their errors. */
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

PE_CLONES static void subtract_middle(size_t n, double *place, double middle) {
    for (size_t i = 0; i < n; i++) place[i] -= middle; /* exact */
}

/* Adds log F of a law, and its error, at w minus the node's part, for n nodes and `lanes` (1 or TOGETHER) rising w. */
static void add_values(const pe_sector *a, size_t lanes, size_t n, const double *parts, const double *lows,
                       const double *w, terms *t) {
    enum { MOST = PE_SECTOR_MOST_NODES * TOGETHER };
    double place[MOST], low[MOST], value[MOST];
    set_arguments((int)lanes, a->edge[0], a->edge[a->n], n, parts, lows, w, place, low);
    const size_t all = n * lanes;
    size_t p = pe_sector_panel(a, place[0]);
    for (size_t i = 0, m; i < all; i += m) {
        while (p > 0 && place[i] < a->edge[p]) p--;
        while (p + 1 < a->n && place[i] >= a->edge[p + 1]) p++;
        const double lo = a->edge[p], hi = p + 1 == a->n ? INFINITY : a->edge[p + 1];
        /* m: whole rows of lanes in this panel, or part of one row */
        for (m = 0; i + m < all && (i + m) % lanes == 0; m += lanes)
            if (place[i + m] < lo || place[i + m + lanes - 1] >= hi) break;
        if (!m) do
                m++;
            while ((i + m) % lanes && place[i + m] < hi);
        const double half = 0.5 * (a->edge[p + 1] - lo);
        subtract_middle(m, place + i, lo + half);
        panel_values(a->coef + PE_SECTOR_TERMS * p, 1.0 / half, m, place + i, low + i, value);
        add_run(m, value, a->whole[p], a->off[p], t->whole + i, t->rest + i, t->error + i);
    }
}

/* Sums with the rounding of their additions kept apart, and their errors. */
typedef struct {
    double sum[TOGETHER], rest[TOGETHER], error[TOGETHER];
} totals;

/* Adds the terms of n nodes to the sums of `lanes` w. */
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

/* Removes the terms of nodes outside of the panels and adds their bounds to `lost`. */
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

/* The sums over all chosen pieces at 1 or TOGETHER values of w, and a bound of what each lacks. */
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

/* A little below the log of sums for w in [from, to], extrapolated from the last ones. */
static double expected(const pe_sector_sums *s, double from, double to) {
    return s->value + fmin(s->slope * (from - s->near), s->slope * (to - s->near)) - 2.5;
}

static double expected_of(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double w, double least) {
    cover k;
    long first, last;
    double log_beside;
    set_places(&k, s, a, b, w, w);
    k.least = least;
    return roots_of(&k, &first, &last, &log_beside) ? estimated_log(&k, first, last) : -INFINITY;
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
        const int is_known = choose_all(&k, level);
        if (is_known) add_pieces(&k, lanes, w, &of, lost);
        if (s->status) break;
        double least = INFINITY, most = 0.0, largest = 0.0, log_sum[TOGETHER];
        for (size_t l = 0; l < lanes && is_known; l++) {
            log_sum[l] = pe_d_log(k.is_even ? 2.0 * of.sum[l] : of.sum[l]);
            least = fmin(least, level + log_sum[l]);
            largest = of.sum[l] < TOO_LARGE ? larger(largest, of.sum[l]) : INFINITY;
            most = larger(most, lost[l] / of.sum[l]);
        }
        if (!is_known || !isfinite(least) || !(largest < TOO_LARGE)) {
            if (was_near) continue;
            break;
        }
        s->is_near = 1;
        s->near = w[n - 1];
        s->value = level + log_sum[n - 1];
        s->slope = n > 1 ? (s->value - (level + log_sum[0])) / (w[n - 1] - w[0]) : 0.0;
        s->lost = lost[0] / of.sum[0];
        for (size_t l = 0; l < n; l++) {
            /* in units: exponentials and weights, additions, the logarithm */
            const double of_terms = 8.0, of_sums = 2.0, of_logs = 4.0 * fabs(log_sum[l]) + 1.0;
            whole[l] = level;
            rest[l] = log_sum[l];
            error[l] =
                (of.error[l] / of.sum[l] + (of_sums + of_terms + of_logs) * UNIT + lost[l] / of.sum[l]) *
                (1.0 + 1e-6);
        }
        if (most < ACCURATE || level < least + 0.5) break;
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
