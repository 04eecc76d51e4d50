#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic.h"
#include "lane_trig.h"
#include "sector.h"
#include "simd.h"

/* The density of a sum by the trapezoidal rule, with its remainder; docs/theory/sector_laws.md.
 *
 *     F(w) = integral of F_a(w - log(1 + e^-r)) F_b(w - log(1 + e^r)) dr over the real line,
 *
 * and where losses are added that of F_a(w - m + r) F_b(m - r), with some m. */

static const double LEAST_EXPONENT = -680.0;
static const double UNIT = 0x1p-53;
static const double EXPONENT = 44.0; /* 2 pi strip/h: the rule leaves e^-EXPONENT of what is on its lines */
static const double WIDEST = 0.78; /* strip, below pi/4 */
static const double NOTHING = 46.0; /* terms below e^-NOTHING of the largest one are left out */
static const double WELL = 4e-16; /* remainder that is good enough, */
static const double TOO_WELL =
    5e-18; /* and one that a wider spacing may serve, next to what the rule leaves at best */
static const double AT_FIRST = 3.0; /* strip, in kappa^-1/2 */
static const double HOPELESS = 1e-3; /* what the ends lack, where no strip helps */
static const double BLOCK = 0.25; /* width of a block at most, in kappa^-1/2 */

static const double MOST_NODES = 5e5; /* of a strip on either side, 40 MB */

enum { NARROWER = 6 }; /* strips that are tried at one place */

/* Of numbers: fmax is a call. */
PE_INLINE double larger(double x, double y) {
    return x > y ? x : y;
}

/* Both places on the line, whose imaginary parts are the strip, and the nodes. */
static void add_losses(pe_sector_nodes *m) {
    for (long j = -m->most; j <= m->most + 1; j++) {
        const size_t at = (size_t)(j + m->most);
        m->modulus[at] = m->real_modulus[at] = m->h * ((double)j - 0.5);
        m->angle[at] = m->strip;
        m->part_high[at] = m->h * (double)j;
        m->part_low[at] = 0.0;
    }
}

static int make_nodes(pe_sector_nodes *m, int number, double reach, int of_losses) {
    m->strip = WIDEST * pow(2.0, -0.5 * number);
    m->h = 2.0 * 3.14159265358979323846 * m->strip / EXPONENT;
    if (of_losses)
        m->h = floor(m->h / PE_SECTOR_EDGE) * PE_SECTOR_EDGE; /* multiples are exact, and it leaves no more */
    if (!(reach / m->h < MOST_NODES)) return PE_TOO_COSTLY;
    m->most = (long)ceil(reach / m->h) + 4;
    const size_t n = 2 * (size_t)m->most + 2;
    m->part_high = malloc(5 * n * sizeof(double));
    if (!m->part_high) return PE_NO_MEMORY;
    m->part_low = m->part_high + n;
    m->modulus = m->part_low + n;
    m->angle = m->modulus + n;
    m->real_modulus = m->angle + n;
    if (of_losses) {
        add_losses(m);
        return PE_OK;
    }
    for (long j = -m->most; j <= m->most; j++) {
        const double r = m->h * (double)j; /* exact */
        const pe_dd above = pe_dd_log1p(pe_dd_exp(pe_dd_of(fmax(-fabs(r), LEAST_EXPONENT))));
        const pe_dd part = r > 0.0 ? pe_dd_add_d(above, r) : above;
        const double high = nearbyint(part.h / PE_SECTOR_GRID) * PE_SECTOR_GRID;
        m->part_high[j + m->most] = high;
        m->part_low[j + m->most] = pe_dd_add_d(part, -high).h;
    }
    for (long j = -m->most; j <= m->most + 1; j++) {
        const double r = m->h * ((double)j - 0.5), e = exp(-fabs(r));
        /* |1 + e^-(r + i strip)|^2, of the larger of its terms */
        const double real = r > 0.0 ? 1.0 + e * cos(m->strip) : e + cos(m->strip);
        const double imag = (r > 0.0 ? e : 1.0) * sin(m->strip);
        const size_t at = (size_t)(j + m->most);
        m->modulus[at] = fmin(r, 0.0) - log(hypot(real, imag));
        m->angle[at] = atan2(imag, real);
        m->real_modulus[at] = fmin(r, 0.0) - log1p(e);
    }
    return PE_OK;
}

static const pe_sector_nodes *nodes_of(pe_sector_sums *s, int number) {
    pe_sector_nodes *m = &s->nodes[number];
    if (!m->part_high && (s->status = make_nodes(m, number, s->reach, s->of_losses))) return NULL;
    return m;
}

void pe_sector_sums_free(pe_sector_sums *s) {
    for (int i = 0; i < PE_SECTOR_STRIPS; i++) free(s->nodes[i].part_high);
    free(s->room);
}

/* Room for 8 numbers of each of n nodes. */
static int has_room(pe_sector_sums *s, size_t n) {
    if (s->n_room < n) {
        free(s->room);
        s->room = malloc(8 * n * sizeof(double));
        s->n_room = s->room ? n : 0;
        if (!s->room) s->status = PE_NO_MEMORY;
    }
    return s->room != NULL;
}

/* ---- bounds on a line -------------------------------------------------------------------------------- */

typedef struct {
    const pe_sector *a, *b;
    const pe_sector_nodes *m;
    const double *modulus;
    int is_real, of_losses;
} line;

/* The place m of b at r = 0 where losses are added: halfway between what both laws have at their starts. */
static double middle_of(const line *l, double w) {
    const double of_a = pe_sector_start(l->a), of_b = pe_sector_start(l->b);
    const double m = 0.5 * ((w - of_a) + of_b);
    return nearbyint(m / PE_SECTOR_EDGE) * PE_SECTOR_EDGE;
}

/* Log of a bound of the integral over r up to `end` of e^(slope (w_a(r) - w_a(end))): on the line Im r = s the log of
 * |x/Y| has the slope Re 1/(1 + e^(r + is)), which falls as r grows; `cosine` is that of s. */
static double log_falling(const line *l, double slope, double end, double cosine) {
    if (l->of_losses) return -log(slope) + 1e-9;
    const double t = exp(end);
    return log((1.0 + 2.0 * t * cosine + t * t) / ((1.0 + t * cosine) * slope)) + 1e-9;
}

/* What is left of the end where the cells of one law stop, which is at r = end: its density falls there by its
 * slope. */
static double beside(const line *l, const pe_sector *a, const pe_sector *b, double from, double to,
                     double end, double strip) {
    const double low = pe_sector_start(a);
    const double growth = strip * strip * (pe_sector_kappa(&a->cells, low) + pe_sector_kappa(&b->cells, to));
    return a->cells.top[0] + pe_sector_top(&b->cells, from, to) + growth +
           log_falling(l, a->low_slope, end, cos(strip));
}

/* Log of a bound of the integral of the modulus, for sums at places of [from, to]. */
static double line_bound(pe_sector_sums *s, const line *l, double from, double to) {
    const pe_sector *a = l->a, *b = l->b;
    const pe_sector_nodes *m = l->m;
    const long most = m->most;
    const double *x = l->modulus + most, *angle = m->angle + most;
    const double low_a = pe_sector_start(a), low_b = pe_sector_start(b);
    /* cells j of r, from j - 1/2 to j + 1/2, whose right end has a above its low end, and whose left end has b so */
    long first = -most, last = most;
    const double middle = l->of_losses ? middle_of(l, 0.5 * (from + to)) : 0.0;
    const double from_a = l->of_losses ? from - middle : from, to_a = l->of_losses ? to - middle : to;
    const double from_b = l->of_losses ? middle : from, to_b = l->of_losses ? middle : to;
    const double reach_a = to_a - low_a, reach_b = to_b - low_b;
    if (!(reach_a > 0.0 && reach_b > 0.0)) return INFINITY;
    first = (long)fmax(-(double)most, floor(-(reach_a + 1.0) / m->h));
    while (first < most && to_a + x[first + 1] <= low_a) first++;
    last = (long)fmin((double)most, ceil((reach_b + 1.0) / m->h));
    while (last > -most && to_b + x[1 - last] <= low_b) last--;
    if (first > last || first <= -most || last >= most) return INFINITY;
    const size_t n = (size_t)(last - first + 1);
    if (!has_room(s, n)) return INFINITY;
    double top = -INFINITY, *bound = s->room;
    for (size_t i = 0; i < n; i++) {
        const long j = first + (long)i;
        const double end_a = to_a + x[j + 1], end_b = to_b + x[1 - j];
        double found =
            pe_sector_top(&a->cells, from_a + x[j], end_a) + pe_sector_top(&b->cells, from_b + x[-j], end_b);
        if (!l->is_real) {
            const double turn_a = angle[j], turn_b = angle[-j];
            found += turn_a * turn_a * pe_sector_kappa(&a->cells, end_a) +
                     turn_b * turn_b * pe_sector_kappa(&b->cells, end_b);
        }
        bound[i] = found;
        top = larger(top, found);
    }
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += bound[i] > top - 60.0 ? exp(bound[i] - top) : 1e-26;
    double all = top + log(m->h * sum);
    const double strip = l->is_real ? 0.0 : m->strip;
    /* where losses are added the other one may be anywhere beyond */
    const double most_b = l->of_losses ? INFINITY : to, most_a = l->of_losses ? INFINITY : to;
    all = pe_log_add(all, beside(l, a, b, from_b + x[-first], most_b, m->h * ((double)first - 0.5), strip));
    all = pe_log_add(all, beside(l, b, a, from_a + x[last + 1], most_a, -m->h * ((double)last + 0.5), strip));
    return all + 1e-9 * (1.0 + fabs(all));
}

double pe_sector_sum_bound(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double from,
                           double to) {
    from -= s->shift;
    to -= s->shift;
    const pe_sector_nodes *m = nodes_of(s, s->strip);
    if (!m) return INFINITY;
    const line l = {a, b, m, m->real_modulus, 1, s->of_losses};
    return line_bound(s, &l, from, to);
}

/* ---- the sum ------------------------------------------------------------------------------------------- */

/* Values of one panel's polynomial at places given as distances from its middle in two parts. */
PE_CLONES static void panel_values(const double *c, double scale, size_t n, const double *high,
                                   const double *low, double *out) {
    /* many together, as each step of one recurrence waits for the one before */
    enum { TOGETHER = 2 * PE_LANES };
    for (size_t i = 0; i < n; i += TOGETHER) {
        const size_t m = n - i < TOGETHER ? n - i : TOGETHER;
        double twice[TOGETHER] = {0.0}, b1[TOGETHER], b2[TOGETHER];
        for (size_t l = 0; l < m; l++) twice[l] = 2.0 * ((high[i + l] + low[i + l]) * scale);
        for (int l = 0; l < TOGETHER; l++) {
            b1[l] = c[PE_SECTOR_TERMS - 1];
            b2[l] = 0.0;
        }
        for (int k = PE_SECTOR_TERMS - 2; k > 0; k--)
            for (int l = 0; l < TOGETHER; l++) {
                const double b0 = c[k] + (twice[l] * b1[l] - b2[l]);
                b2[l] = b1[l];
                b1[l] = b0;
            }
        for (int l = 0; l < TOGETHER; l++) b1[l] = c[0] + (0.5 * twice[l] * b1[l] - b2[l]);
        for (size_t l = 0; l < m; l++) out[i + l] = b1[l];
    }
}

double pe_sector_value(const pe_sector *a, size_t panel, double w_high, double w_low) {
    const double lo = a->edge[panel], half = 0.5 * (a->edge[panel + 1] - lo);
    const double high = w_high - (lo + half);
    double out;
    panel_values(a->coef + PE_SECTOR_TERMS * panel, 1.0 / half, 1, &high, &w_low, &out);
    return out;
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

/* Adds values at n places that rise or fall to `out`, and what they may be off by to `error`; `place` is
 * used up. */
static void add_values(const pe_sector *a, size_t n, double *place, const double *low, double *value,
                       double *out, double *error) {
    for (size_t i = 0, m; i < n; i += m) {
        const size_t p = pe_sector_panel(a, place[i]);
        const double lo = a->edge[p], hi = a->edge[p + 1], half = 0.5 * (hi - lo), mid = lo + half;
        const int is_last = p + 1 == a->n;
        for (m = 0; i + m < n; m++) {
            const double w = place[i + m];
            if (w < lo || (w >= hi && !is_last)) break;
            place[i + m] = w - mid; /* exact */
        }
        panel_values(a->coef + PE_SECTOR_TERMS * p, 1.0 / half, m, place + i, low + i, value);
        for (size_t l = 0; l < m; l++) {
            out[i + l] += value[l];
            error[i + l] += a->off[p];
        }
    }
}

PE_CLONES static void weighed(size_t n, const double *exponent, const double *error, double top, double *sum,
                              double *sum_error) {
    double total[PE_LANES] = {0.0}, off[PE_LANES] = {0.0};
    size_t i = 0;
    for (; i + PE_LANES <= n; i += PE_LANES)
        for (int l = 0; l < PE_LANES; l++) {
            const double e = pe_vexp(exponent[i + l] - top);
            total[l] += e;
            off[l] += e * error[i + l];
        }
    for (; i < n; i++) {
        const double e = pe_vexp(exponent[i] - top);
        total[0] += e;
        off[0] += e * error[i];
    }
    *sum = *sum_error = 0.0;
    for (int l = 0; l < PE_LANES; l++) {
        *sum += total[l];
        *sum_error += off[l];
    }
}

/* Sum of exp(x - top), of which those that are nothing count for more */
static double sum_of(size_t n, const double *x, double top) {
    double sum = 1e-9;
    for (size_t i = 0; i < n; i++) sum += x[i] > top - 60.0 ? exp(x[i] - top) : 1e-26;
    return sum;
}

/* Both places of n nodes, of which the one of a rises with the index and the one of b falls, and a bound of the log of
 * each term. */
PE_CLONES static void bound_terms(const pe_sector_cells *a, const pe_sector_cells *b, size_t n, double w_a,
                                  double w_b, const double *rising, const double *falling, double *at_a,
                                  double *at_b, double *bound) {
    const double last_a = (double)a->n, last_b = (double)b->n;
    for (size_t i = 0; i < n; i++) {
        at_a[i] = w_a - rising[-(ptrdiff_t)i];
        at_b[i] = w_b - falling[i];
        double cell_a = (at_a[i] - a->from) * a->often, cell_b = (at_b[i] - b->from) * b->often;
        cell_a =
            cell_a < last_a ? cell_a : last_a; /* the entry after the last cell is that of what is beyond */
        cell_b = cell_b < last_b ? cell_b : last_b;
        cell_a = cell_a > 0.0 ? cell_a : 0.0;
        cell_b = cell_b > 0.0 ? cell_b : 0.0;
        bound[i] = a->top[(int)cell_a] + b->top[(int)cell_b];
    }
}

/* The nodes whose terms count; both places, the lower part of each, and a bound of the log of all others in `left`. */
static size_t choose_nodes(pe_sector_sums *s, const line *l, double w, double **parts, double *left) {
    const pe_sector *a = l->a, *b = l->b;
    const pe_sector_nodes *m = l->m;
    const long most = m->most;
    const double *high = m->part_high + most, *low = m->part_low + most;
    const double low_a = pe_sector_start(a), low_b = pe_sector_start(b);
    const double w_b = l->of_losses ? middle_of(l, w) : w, w_a = l->of_losses ? w - w_b : w;
    if (!(w_a > low_a && w_b > low_b)) return 0;
    const double far_a = l->of_losses ? w_a - low_a : log(expm1(fmin(w - low_a, 700.0)));
    const double far_b = l->of_losses ? w_b - low_b : log(expm1(fmin(w - low_b, 700.0)));
    long first = (long)fmax(-(double)most, floor(-far_a / m->h) - 2.0);
    while (first < most && w_a - high[-first] < low_a) first++;
    long last = (long)fmin((double)most, ceil(far_b / m->h) + 2.0);
    while (last > -most && w_b - high[last] < low_b) last--;
    if (first > last || first <= -most || last >= most) return 0;
    const size_t n = (size_t)(last - first + 1);
    if (!has_room(s, n)) return 0;
    for (int i = 0; i < 8; i++) parts[i] = s->room + (size_t)i * n;
    /* nodes beyond the panels are left out as well, by their bounds */
    const double end_a = pe_sector_low(a), end_b = pe_sector_low(b);
    const double high_a = pe_sector_high(a), high_b = pe_sector_high(b);
    double *bound = parts[7], *out = parts[6], top = -INFINITY, above = -INFINITY;
    double *at_a = parts[0], *at_b = parts[2];
    bound_terms(&a->cells, &b->cells, n, w_a, w_b, high - first, high + first, at_a, at_b, bound);
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        if (at_a[i] > high_a || at_b[i] > high_b || at_a[i] < end_a || at_b[i] < end_b) {
            above = larger(above, bound[i]);
            out[n_out++] = bound[i];
            bound[i] = -INFINITY;
        }
        top = larger(top, bound[i]);
    }
    if (!isfinite(top)) return 0;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (bound[i] < top - NOTHING) continue;
        const long j = first + (long)i;
        at_a[kept] = at_a[i];
        parts[1][kept] = -low[-j];
        at_b[kept] = at_b[i];
        parts[3][kept] = -low[j];
        kept++;
    }
    /* nodes beyond the low ends: F falls there, so that they are at most its integral and one more */
    const double h_a = pe_log_add(log(m->h), log_falling(l, a->low_slope, m->h * (double)first, 1.0));
    const double h_b = pe_log_add(log(m->h), log_falling(l, b->low_slope, -m->h * (double)last, 1.0));
    const double most_b = l->of_losses ? INFINITY : w, most_a = l->of_losses ? INFINITY : w;
    const double below_a = a->cells.top[0] + pe_sector_top(&b->cells, w_b - high[first] - 1e-9, most_b) + h_a;
    const double below_b = b->cells.top[0] + pe_sector_top(&a->cells, w_a - high[-last] - 1e-9, most_a) + h_b;
    double beyond = pe_log_add(below_a, below_b);
    if (n_out) beyond = pe_log_add(beyond, above + log(m->h * sum_of(n_out, out, above)));
    *left = pe_log_add(beyond, top - NOTHING + log(m->h * (double)n));
    return kept;
}

/* The sum, what rounding and both laws make it off by, and what it lacks, both relative. */
static double sum_with(pe_sector_sums *s, const line *l, double w, double *error, double *lost) {
    double *parts[8], left, sum, off;
    const size_t n = choose_nodes(s, l, w, parts, &left);
    *error = *lost = INFINITY;
    if (!n) return -INFINITY;
    double *exponent = parts[4], *rounding = parts[5], *value = parts[6];
    memset(exponent, 0, n * sizeof(double));
    memset(rounding, 0, n * sizeof(double));
    add_values(l->a, n, parts[0], parts[1], value, exponent, rounding);
    add_values(l->b, n, parts[2], parts[3], value, exponent, rounding);
    double top = -INFINITY;
    for (size_t i = 0; i < n; i++) top = larger(top, exponent[i]);
    for (size_t i = 0; i < n; i++) exponent[i] = larger(exponent[i], top - 2.0 * NOTHING);
    weighed(n, exponent, rounding, top, &sum, &off);
    s->work += (double)n;
    const double log_value = top + log(sum * l->m->h);
    /* differences from the largest exponent are at most NOTHING and what bounds in cells are above values */
    const double spread = 2.0 * NOTHING;
    const double of_logs = 8.0 * fabs(log_value - top) + fabs(log_value);
    *error = off / sum + ((double)n / PE_LANES + 20.0 + spread + of_logs) * UNIT;
    *lost = exp(left - log_value);
    return log_value;
}

/* What the rule leaves of a sum whose log is `value`, relative to it: by a bound for the block that w is in, or where
 * that is not good enough by one for w alone. */
static double rest_of(pe_sector_sums *s, const line *l, int number, double w, double value) {
    const double leaves = log(2.0) - EXPONENT + 1e-9 - value;
    const double kappa = pe_sector_kappa(&l->a->cells, w) + pe_sector_kappa(&l->b->cells, w);
    const double width = pe_power_of_two(BLOCK / sqrt(kappa));
    const double index = floor(w / width), from = index * width, to = from + width;
    pe_sector_block *block = &s->blocks[(size_t)fmod(fabs(index), PE_SECTOR_BLOCKS)];
    if (block->strip != number + 1 || block->from != from || block->to != to)
        *block = (pe_sector_block){from, to, line_bound(s, l, from, to), number + 1};
    const double rest = exp(leaves + block->bound);
    return rest < WELL ? rest : fmin(rest, exp(leaves + line_bound(s, l, w, w)));
}

double pe_sector_sum(pe_sector_sums *s, const pe_sector *a, const pe_sector *b, double w, double *error) {
    w -= s->shift;
    if (s->strip < 0) {
        const double kappa = fmin(pe_sector_kappa(&a->cells, w), pe_sector_kappa(&b->cells, w));
        s->strip =
            (int)fmin(fmax(floor(2.0 * log2(WIDEST * sqrt(kappa) / AT_FIRST)), 0.0), PE_SECTOR_STRIPS - 1.0);
    }
    const int first = s->strip;
    double best = -INFINITY, least = INFINITY;
    s->lost = INFINITY;
    *error = INFINITY;
    for (int number = first; number < PE_SECTOR_STRIPS && number < first + NARROWER; number++) {
        const pe_sector_nodes *m = nodes_of(s, number);
        if (m && s->work > s->budget) s->status = PE_TOO_COSTLY;
        if (s->status) return NAN;
        line l = {a, b, m, m->modulus, 0, s->of_losses};
        double off, lost;
        const double value = sum_with(s, &l, w, &off, &lost);
        if (s->status) return NAN;
        if (!isfinite(value)) continue; /* no node lies within both laws */
        const double rest = rest_of(s, &l, number, w, value);
        if (!isfinite(rest)) continue;
        if (lost > HOPELESS && !isfinite(least)) return value;
        if (!(rest < 0.2 * least)) break; /* what the ends lack counts, and no narrower strip has it */
        s->strip = number;
        least = rest;
        best = value;
        s->lost = rest + lost;
        *error = (off + s->lost) * (1.0 + 1e-6);
        if (rest < WELL) break;
    }
    if (least < TOO_WELL && s->strip > 0) s->strip--;
    return best;
}
