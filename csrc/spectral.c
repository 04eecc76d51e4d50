/* Chooses the line of estimates that answers a question about a pair, and solves for thresholds on it: pe_pair_at and
 * pe_pair_solve of contours.h, called by pyengine/engines/spectral.py.  Lines stand at places, fixed steps of the signed
 * root w = sign(lambda) sqrt(2 (lambda K' - K)), so that a result depends on the pair and the argument alone, never on
 * earlier questions.  Errors of rows are estimates (docs/estimates.md); proven rows use the same places (proven.c). */

#include "spectral.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"
#include "lane_trig.h"
#include "normal.h"
#include "pair.h"

enum { PLAIN_TRIES = 5 }; /* Newton steps for an edge before every second one halves the bracket */
static const double NEAR_EDGE = 0.05; /* tolerance of the signed root of an edge */

static const double GOOD = 6e-12; /* relative error that needs no second attempt, */
static const double GOOD_TINY = 6e-10; /* and where the value is below e^-69 */
static const double NEAR_CENTRE = -7.0; /* log of the tails whose complement is tried, which loses 3 digits */

/* w(lambda) = sign(lambda) sqrt(2 (lambda K' - K)), increasing; A(S > K') is about Phi(-w). */
static double signed_root(double lambda, const pe_cumulants *k) {
    double kl = lambda * k->k1 - k->k0;
    return copysign(sqrt(2.0 * (kl > 0.0 ? kl : 0.0)), lambda);
}

/* exp(x^2/2) Phi(-x): the factor from a Chernoff bound to the saddle-point approximation. */
static double mills(double x) {
    if (x < 25.0) return pe_d_exp(0.5 * x * x) * 0.5 * pe_erfc(x * 0.70710678118654752440);
    double y = 1.0 / (x * x);
    return 0.39894228040143267794 / x * (1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)));
}

/* Saddle-point approximation of the log of a functional at c = K'(lambda), used to choose a place only. */
static double saddle_point_log(const pe_edge *e, int functional) {
    double l = e->lambda, s = e->sd, base = e->k.k0 - l * e->k.k1;
    double small = base + pe_d_log(mills(fabs(l) * s));
    if (functional == PE_A_ABOVE) return l >= 0 ? small : pe_d_log1p(-pe_d_exp(small));
    if (functional == PE_A_BELOW) return l <= 0 ? small : pe_d_log1p(-pe_d_exp(small));
    if (l > 0.0)
        return pe_d_log1p(
            -fmin(pe_d_exp(base + pe_d_log(mills(l * s) + mills(fmax(1.0 - l, 0.0) * s))), 0.9));
    double a = fmax(-l, 0.05 / s);
    return fmin(base + pe_d_log(mills(a * s) - mills((a + 1) * s) + 1e-300), -1e-17);
}

/* The same, kept with the edge. */
double pe_edge_log(pe_edge *e, int functional) {
    double *known = &e->approximation[functional];
    if (isnan(*known)) *known = saddle_point_log(e, functional);
    return *known;
}

/* The edge from which edge i is searched for: the one that every search for a place, which tests odd edges, passes
 * before i.  So neither the edge nor its cost depends on earlier questions. */
static int inner_edge(int i) {
    int sign = i < 0 ? -1 : 1;
    if (i % 2) return abs(i) > 2 ? i - 2 * sign : 0;
    return i - sign;
}

/* Newton's step in log|lambda| and log|w|: from |lambda| = a, where |w| = w, to |w| = target. */
static double newton_lambda(double a, double w, double k2, double target) {
    const double power =
        a * a * k2 / (w * w); /* d log w / d log a: 1 near 0, more where the law has a tail */
    return a * pe_d_pow(target / w, 1.0 / fmax(power, 1.0));
}

/* Sets the edge's lambda to one with |w| = target within NEAR_EDGE, starting at |lambda| = a; |w| is smaller at lo.
 * Sets its cumulants and adds to its cost. */
static void search_edge(const pe_contours *contours, pe_edge *e, double target, double sign, double lo,
                        double a) {
    double hi = INFINITY, nodes = 0.0;
    int is_known = 1;
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives)
        nodes += (double)contours->groups[i].grid.m;
    for (int it = 0; it < 200 && e->cost <= contours->search_limit; it++) {
        e->lambda = sign * a;
        e->k = pe_contours_cumulants(contours, e->lambda);
        e->cost += nodes;
        is_known = is_known && e->k.k0 < INFINITY;
        double w = e->k.k0 < INFINITY ? fabs(signed_root(e->lambda, &e->k)) : INFINITY;
        if (fabs(w - target) <= NEAR_EDGE) return;
        if (w < target) lo = a;
        else hi = a;
        /* w stays below the target: the law is cut off, or K is not known further out */
        if (hi <= lo * (1.0 + (is_known ? 1e-12 : 0.01))) break;
        double next = w > 0.0 && w < INFINITY ? fmin(newton_lambda(a, w, e->k.k2, target), 4.0 * a) : 0.0;
        if (!(next > lo && next < hi)) next = hi < INFINITY ? (lo > 0 ? sqrt(lo * hi) : 0.25 * hi) : 2.0 * a;
        if (it >= PLAIN_TRIES && it % 2 && lo > 0.0 && hi < INFINITY) next = sqrt(lo * hi);
        a = next;
    }
    if (!is_known) e->cost = INFINITY; /* neither this edge nor one beyond it exists */
}

pe_edge *pe_contours_edge(pe_contours *contours, int i) {
    if (abs(i) > 2 * PE_PLACES + 1) return NULL;
    pe_edge **slot = &contours->edges[i + 2 * PE_PLACES + 1];
    if (*slot) return (*slot)->cost <= contours->search_limit ? *slot : NULL;
    const pe_edge *inner = i ? pe_contours_edge(contours, inner_edge(i)) : NULL;
    if (i && !inner) return NULL;
    pe_edge *e = calloc(1, sizeof *e);
    if (!e) {
        contours->no_memory = 1; /* searches for a place end there */
        return NULL;
    }
    if (i) {
        e->cost = inner->cost;
        const double target = fabs(PE_HALF_PITCH * i), from = fabs(inner->lambda);
        const double w = fabs(signed_root(inner->lambda, &inner->k));
        search_edge(contours, e, target, i < 0 ? -1.0 : 1.0, w < target ? from : 0.0,
                    w > 0.0 ? newton_lambda(from, w, inner->k.k2, target) : target / inner->sd);
    } else {
        e->k = pe_contours_cumulants(contours, 0.0);
    }
    e->sd = sqrt(e->k.k2);
    for (int f = 0; f < PE_FUNCTIONALS; f++) e->approximation[f] = NAN;
    e->before = contours->last_edge;
    *slot = contours->last_edge = e;
    return e->cost <= contours->search_limit ? e : NULL;
}

int pe_edge_status(const pe_contours *contours) {
    return contours->no_memory ? PE_NO_MEMORY : PE_TOO_COSTLY;
}

static int increasing(int functional) {
    return functional != PE_A_ABOVE;
}

double pe_clear_of_poles(double lambda, double sd, int functional, int *moved) {
    double gap = 1.0 / sd;
    int to_right = functional == PE_A_ABOVE, inner = gap < 0.4; /* is there room between the poles? */
    *moved = 1;
    if (functional == PE_PROFILE && lambda > 1.0 - gap) return inner ? 1.0 - gap : -gap;
    *moved = 0;
    if (lambda <= -gap || lambda >= 1.0 + gap || (inner && lambda >= gap && lambda <= 1.0 - gap))
        return lambda;
    *moved = 1;
    if (!inner) return to_right ? 1.0 + gap : -gap;
    if (lambda < gap) return to_right ? gap : -gap;
    return to_right ? 1.0 + gap : 1.0 - gap;
}

static int line_at(pe_contours *contours, int place, int functional, pe_line **out) {
    const pe_edge *e = pe_contours_edge(contours, 2 * place);
    if (!e) return pe_edge_status(contours);
    int moved;
    double lambda = pe_clear_of_poles(e->lambda, e->sd, functional, &moved);
    int variant = !moved ? 0 : functional == PE_PROFILE ? 1 : functional == PE_A_ABOVE ? 2 : 3;
    pe_line **slot = &contours->lines[variant][place + PE_PLACES];
    if (!*slot) {
        pe_line *ln = calloc(1, sizeof *ln);
        if (!ln) return PE_NO_MEMORY;
        ln->lambda = lambda;
        ln->status = pe_line_build(contours, ln);
        if (ln->status == PE_NO_MEMORY) {
            pe_line_free(ln);
            return PE_NO_MEMORY;
        }
        ln->before = contours->last_line;
        *slot = contours->last_line = ln;
    }
    *out = *slot;
    return (*slot)->status;
}

int pe_contours_nearest(pe_contours *contours, double c, int place) {
    for (int up = 1; up >= 0; up--)
        while (up ? place < PE_PLACES : place > -PE_PLACES) {
            const pe_edge *e = pe_contours_edge(contours, 2 * place + (up ? 1 : -1));
            if (!e) return PE_NOWHERE;
            if (up ? !(c > e->k.k1) : !(c < e->k.k1)) break;
            place += up ? 1 : -1;
        }
    return place;
}

int pe_contours_of_value(pe_contours *contours, int functional, double log_target) {
    double rising = increasing(functional) ? 1.0 : -1.0;
    int place = 0;
    for (int up = 1; up >= 0; up--)
        while (up ? place < PE_PLACES : place > -PE_PLACES) {
            pe_edge *e = pe_contours_edge(contours, 2 * place + (up ? 1 : -1));
            if (!e) return PE_NOWHERE;
            double beyond = rising * (pe_edge_log(e, functional) - log_target);
            if (up ? !(beyond < 0.0) : !(beyond > 0.0)) break;
            if (up && functional == PE_PROFILE && e->k.k1 > 0.0) break; /* profiles are asked at c <= 0 */
            place += up ? 1 : -1;
        }
    return place;
}

/* Log values of a functional and their slopes on PE_TABLE points around a place. */
static int fill_table(pe_contours *contours, int place, pe_line *ln, int functional) {
    const pe_edge *left = pe_contours_edge(contours, 2 * place - 1),
                  *right = pe_contours_edge(contours, 2 * place + 1);
    if (!left || !right) return pe_edge_status(contours);
    double width = right->k.k1 - left->k.k1;
    ln->table_c = left->k.k1 - 0.4 * width;
    ln->table_step = 1.8 * width / (PE_TABLE - 1);
    for (size_t i = 0; i < PE_TABLE; i += PE_LANES) {
        double c[PE_LANES];
        for (size_t u = 0; u < PE_LANES; u++) c[u] = ln->table_c + (double)(i + u) * ln->table_step;
        pe_line_slopes(contours, ln, functional, PE_LANES, c, ln->table[functional] + i,
                       ln->slope[functional] + i);
    }
    ln->has_table[functional] = 1;
    return PE_OK;
}

/* Where a monotone function with values v and slopes d at n points `step` apart has the value `target`, as a distance
 * from the first point, by inverse cubic Hermite interpolation; NaN outside of the values.  up: 1 rising, -1 falling. */
static double inverse_hermite(const double *v, const double *d, int n, double step, double up,
                              double target) {
    int lo = 0, hi = n - 1;
    if (!(up * (target - v[lo]) >= 0.0 && up * (v[hi] - target) >= 0.0)) return NAN;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (!(up * (v[mid] - target) > 0.0)) lo = mid;
        else hi = mid;
    }
    double gap = v[hi] - v[lo], t = (target - v[lo]) / gap;
    double d0 = gap / d[lo], d1 = gap / d[hi], r = 1.0 - t;
    return lo * step + (t * t * (3.0 - 2.0 * t) * step + r * r * t * d0 - t * t * r * d1);
}

/* Threshold from the line's table; NaN where the table does not enclose the value. */
static double table_guess(const pe_line *ln, int functional, double log_target) {
    return ln->table_c + inverse_hermite(ln->table[functional], ln->slope[functional], PE_TABLE,
                                         ln->table_step, increasing(functional) ? 1.0 : -1.0, log_target);
}

/* Newton's method for the threshold on one line, safeguarded by a bracket; stops at 5 sd from where it began, beyond
 * which the line does not serve. */
static double newton(const pe_contours *contours, const pe_line *ln, int functional, double log_target,
                     double c) {
    double lo = -INFINITY, hi = INFINITY, up = increasing(functional) ? 1.0 : -1.0;
    double reach = 5.0 * ln->sd, start = c;
    for (int it = 0; it < 80; it++) {
        double value, slope;
        pe_line_slopes(contours, ln, functional, 1, &c, &value, &slope);
        double miss = log_target - value;
        if (miss * up > 0.0) lo = c;
        else hi = c;
        double step = miss / slope;
        if (fabs(step) <= 1e-9 * ln->sd || fabs(step) <= 4e-16 * fabs(c))
            return c + step; /* quadratic convergence: a further step is lost in rounding */
        double next = c + step;
        if (!isfinite(step) || !(next > lo && next < hi))
            next = lo > -INFINITY && hi < INFINITY ? 0.5 * (lo + hi) : c + copysign(0.5 * ln->sd, miss * up);
        if (fabs(next - start) > reach) return start + copysign(reach, next - start);
        c = next;
    }
    return c;
}

void pe_contours_roots(pe_contours *contours, const pe_line *ln, int place, int functional, size_t n,
                       const double *log_target, double *root) {
    const pe_edge *left = pe_contours_edge(contours, 2 * place - 1),
                  *right = pe_contours_edge(contours, 2 * place + 1);
    for (size_t u = 0; u < n; u++) root[u] = NAN;
    if (!left || !right) return;
    const double width = right->k.k1 - left->k.k1, first = left->k.k1 - 0.2 * width,
                 step = 1.4 * width / (PE_LANES - 1), up = increasing(functional) ? 1.0 : -1.0;
    double c[PE_LANES], value[PE_LANES], slope[PE_LANES], x[PE_LANES];
    for (int u = 0; u < PE_LANES; u++) c[u] = first + u * step;
    pe_line_slopes(contours, ln, functional, PE_LANES, c, value, slope);
    size_t open[PE_LANES], n_open = 0;
    for (size_t u = 0; u < n; u++) {
        x[u] = first + inverse_hermite(value, slope, PE_LANES, step, up, log_target[u]);
        if (isfinite(x[u])) open[n_open++] = u;
    }
    for (int it = 0; it < 4 && n_open; it++) {
        for (size_t i = 0; i < n_open; i++) c[i] = x[open[i]];
        pe_line_slopes(contours, ln, functional, n_open, c, value, slope);
        size_t left_open = 0;
        for (size_t i = 0; i < n_open; i++) {
            const size_t u = open[i];
            const double move = (log_target[u] - value[i]) / slope[i];
            if (!(fabs(move) <= 0.1 * ln->sd)) continue;
            x[u] += move;
            if (fabs(move) <= 1e-4 * ln->sd) root[u] = x[u]; /* the error left is quadratic in the step */
            else open[left_open++] = u;
        }
        n_open = left_open;
    }
    for (size_t u = 0; u < n; u++)
        if (isnan(root[u])) root[u] = newton(contours, ln, functional, log_target[u], ln->c_ref);
}

/* Thresholds for n <= PE_LANES targets on one line: two Newton steps from the table for all together; newton() for
 * those that need more. */
static void roots_on_line(const pe_contours *contours, const pe_line *ln, int functional, size_t n,
                          const double *log_target, double *c) {
    double value[PE_LANES], slope[PE_LANES];
    int rough[PE_LANES];
    for (size_t u = 0; u < n; u++) {
        c[u] = table_guess(ln, functional, log_target[u]);
        rough[u] = !isfinite(c[u]);
        if (rough[u]) c[u] = ln->c_ref;
    }
    for (int pass = 0; pass < 2; pass++) {
        pe_line_slopes(contours, ln, functional, n, c, value, slope);
        for (size_t u = 0; u < n; u++) {
            double step = (log_target[u] - value[u]) / slope[u];
            /* convergence is quadratic: the error is below rounding if the last step was small */
            if (!(fabs(step) <= (pass ? 1e-8 : 1e-2) * ln->sd)) rough[u] = 1;
            if (!rough[u]) c[u] += step;
        }
    }
    for (size_t u = 0; u < n; u++)
        if (rough[u]) c[u] = newton(contours, ln, functional, log_target[u], ln->c_ref);
}

void pe_put_row(const pe_row *row, double c, double *out) {
    out[0] = c;
    out[1] = row->density_log;
    memcpy(out + 2, row->log_value, sizeof row->log_value);
    memcpy(out + 2 + PE_FUNCTIONALS, row->error, sizeof row->error);
}

void pe_fail_row(double *out) {
    for (int q = 0; q < PE_ROW; q++) out[q] = NAN;
}

/* The error is that of the functional and, for a tail, of the better known one of B's two tails. */
double pe_row_shortfall(const double *row, int functional) {
    const double *value = row + 2, *error = value + PE_FUNCTIONALS;
    double own = error[functional], small = value[functional];
    if (functional != PE_PROFILE) {
        own = own > error[PE_B_ABOVE] || own > error[PE_B_BELOW] ? own
                                                                 : fmin(error[PE_B_ABOVE], error[PE_B_BELOW]);
        small = fmin(small, fmin(value[PE_B_ABOVE], value[PE_B_BELOW]));
    }
    own /= small < -69.0 ? GOOD_TINY : GOOD;
    return own >= 0.0 ? own : INFINITY; /* NaN */
}

/* Arguments by place: those of place r are order[start[r + PE_PLACES]] up to the next start. */
typedef struct {
    size_t n, start[2 * PE_PLACES + 2];
    int *place; /* of each argument, or PE_NOWHERE */
    /* moved[0..n-1]: arguments to be asked (again), at the place that they belong to */
    size_t *order, *moved;
} places;

/* Sorts the arguments in `moved` by place. */
static void sort_places(places *p) {
    size_t at[2 * PE_PLACES + 1];
    memset(p->start, 0, sizeof p->start);
    for (size_t i = 0; i < p->n; i++)
        if (p->place[p->moved[i]] != PE_NOWHERE) p->start[p->place[p->moved[i]] + PE_PLACES + 1]++;
    for (int r = 0; r <= 2 * PE_PLACES; r++) p->start[r + 1] += at[r] = p->start[r];
    for (size_t i = 0; i < p->n; i++)
        if (p->place[p->moved[i]] != PE_NOWHERE)
            p->order[at[p->place[p->moved[i]] + PE_PLACES]++] = p->moved[i];
    p->n = 0;
}

/* Answers the arguments of one place, PE_LANES at a time; adds to `moved` those whose root belongs to another place and
 * whose row is not accurate. */
static int ask_place(pe_contours *contours, int r, int functional, int by_value, const double *x,
                     double *rows, places *p) {
    const size_t *order = p->order + p->start[r + PE_PLACES];
    const size_t count = p->start[r + PE_PLACES + 1] - p->start[r + PE_PLACES];
    if (!count) return PE_OK;
    pe_line *ln;
    int built = line_at(contours, r, functional, &ln);
    if (!built && by_value && !ln->has_table[functional]) built = fill_table(contours, r, ln, functional);
    if (built) return built == PE_NO_MEMORY ? PE_NO_MEMORY : PE_OK;
    for (size_t i = 0; i < count; i += PE_LANES) {
        const size_t m = count - i < PE_LANES ? count - i : PE_LANES;
        double target[PE_LANES], c[PE_LANES];
        pe_row out[PE_LANES];
        for (size_t u = 0; u < m; u++) target[u] = c[u] = x[order[i + u]];
        if (by_value) roots_on_line(contours, ln, functional, m, target, c);
        pe_line_evaluate(contours, ln, m, c, out);
        for (size_t u = 0; u < m; u++) {
            double *row = rows + PE_ROW * order[i + u];
            /* what the root misses of the target counts as an error of the functional */
            if (by_value) out[u].error[functional] += fabs(out[u].log_value[functional] - target[u]);
            pe_put_row(&out[u], c[u], row);
            if (!by_value || pe_row_shortfall(row, functional) <= 0.2) continue;
            const int nearest = pe_contours_nearest(contours, c[u], r);
            if (nearest == r) continue;
            p->place[order[i + u]] = nearest;
            p->moved[p->n++] = order[i + u];
        }
    }
    return PE_OK;
}

enum { MOST_MOVES = 12 }; /* rounds over the places */

/* Rows at n arguments from the contours of one level: at thresholds x or, by_value, at those where the log of the
 * functional is x. */
static int ask_contours(pe_pair *pair, int level, int functional, int by_value, size_t n, const double *x,
                        double *rows) {
    pe_contours *contours;
    int status = pe_pair_contours(pair, level, &contours);
    if (status == PE_TOO_COSTLY)
        for (size_t i = 0; i < n; i++) pe_fail_row(rows + PE_ROW * i);
    if (status) return status;
    places p = {.n = n};
    p.order = malloc((2 * n + 1) * sizeof *p.order);
    p.place = malloc((n + 1) * sizeof *p.place);
    if (!p.order || !p.place) status = PE_NO_MEMORY;
    for (size_t i = 0; i < n && !status; i++) {
        pe_fail_row(rows + PE_ROW * i);
        p.moved = p.order + n;
        p.moved[i] = i;
        p.place[i] = by_value ? pe_contours_of_value(contours, functional, x[i])
                              : pe_contours_nearest(contours, x[i], 0);
        if (isnan(x[i])) p.place[i] = PE_NOWHERE;
    }
    for (int move = 0; move < MOST_MOVES && p.n && !status; move++) {
        sort_places(&p);
        for (int r = -PE_PLACES; r <= PE_PLACES && !status; r++)
            status = ask_place(contours, r, functional, by_value, x, rows, &p);
    }
    free(p.order);
    free(p.place);
    return status;
}

/* The functional whose size tells whether a level's cut is harmless; -1 if none.  Without mixtures only the upper end of
 * z is cut, where the lower tail and the profile of a reversed pair are small, and the upper tail of the other. */
static int guard(const pe_pair *pair, int functional) {
    if (pe_pair_others(pair)) return functional;
    if (functional == PE_PROFILE) return pair->reversed ? PE_PROFILE : -1;
    return pair->reversed ? PE_A_BELOW : PE_A_ABOVE;
}

/* Beyond the last place a row at c <= 0 is 0 and 1 in doubles: K(lambda) - lambda c bounds the log of A(S <= c) where
 * lambda < 0, and of A(S > c), B(S <= c) and 1 minus the profile where 0 <= lambda <= 1.  Returns whether it applies. */
static int beyond_contours(pe_pair *pair, double c, double *row) {
    pe_contours *contours;
    if (!(c <= 0.0) || pe_pair_contours(pair, 0, &contours)) return 0;
    int place = pe_contours_nearest(contours, c, 0);
    if (abs(place) != PE_PLACES) return 0;
    const pe_edge *e = pe_contours_edge(contours, 2 * place);
    if (!e || e->lambda > 1.0 || !(e->k.k0 - e->lambda * c < PE_BEYOND_LOG)) return 0;
    row[0] = c;
    row[1] = -INFINITY;
    for (int f = 0; f < PE_FUNCTIONALS; f++) {
        int above = f == PE_A_ABOVE || f == PE_B_ABOVE;
        row[2 + f] = f == PE_PROFILE ? 0.0 : -INFINITY;
        if (place < 0) row[2 + f] = above ? 0.0 : -INFINITY;
        else if (f == PE_A_BELOW || f == PE_B_ABOVE) row[2 + f] = 0.0;
        row[2 + PE_FUNCTIONALS + f] = 0.0;
    }
    return 1;
}

/* Rows of the whole law: by interpolation between few kinds of steps, and from all kinds where that is not accurate. */
static int ask_whole(pe_pair *pair, int functional, int by_value, size_t n, const double *x, double *rows) {
    if (!pe_pair_has_few(pair)) return ask_contours(pair, 0, functional, by_value, n, x, rows);
    int status = ask_contours(pair, PE_FEW_KINDS, functional, by_value, n, x, rows);
    for (size_t i = 0; i < n && status != PE_NO_MEMORY; i++) {
        double *row = rows + PE_ROW * i, own[PE_ROW], best = pe_row_shortfall(row, functional);
        if (best <= 1.0 || isnan(x[i])) continue;
        status = ask_contours(pair, 0, functional, by_value, 1, &x[i], own);
        if (status != PE_NO_MEMORY && !(pe_row_shortfall(own, functional) >= best))
            memcpy(row, own, sizeof own);
    }
    return status;
}

/* Rows of the whole law; where one is not accurate also from the complement and from the levels of truncation. */
static int ask(pe_pair *pair, int functional, int by_value, size_t n, const double *x, double *rows) {
    int status = ask_whole(pair, functional, by_value, n, x, rows);
    int g = guard(pair, functional), worst = status;
    for (size_t i = 0; i < n && status != PE_NO_MEMORY; i++) {
        double *row = rows + PE_ROW * i, other[PE_ROW], best = pe_row_shortfall(row, functional);
        if (best <= 1.0 || isnan(x[i])) continue;
        if (!by_value && beyond_contours(pair, x[i], row)) continue;
        if (by_value && functional != PE_PROFILE && x[i] > NEAR_CENTRE) {
            /* solve for the complement, whose line lies on the other side of the pole */
            double rest = pe_d_log1p(-pe_d_exp(x[i]));
            status =
                ask_contours(pair, 0, functional == PE_A_ABOVE ? PE_A_BELOW : PE_A_ABOVE, 1, 1, &rest, other);
            if (status == PE_NO_MEMORY) break;
            /* what the root misses is an error of the tail that was asked for: the complement's own error, relative to a
             * tiny complement, does not show it */
            other[2 + PE_FUNCTIONALS + functional] += fabs(other[2 + functional] - x[i]);
            double next = pe_row_shortfall(other, functional);
            if (next < best) {
                memcpy(row, other, sizeof other);
                best = next;
            }
            if (best <= 1.0) continue;
        }
        int level = 1;
        if (by_value && g == functional)
            while (level < PE_N_LEVELS - 1 && x[i] < PE_LEVELS[level]) level++;
        for (; level < PE_N_LEVELS; level++) {
            status = ask_contours(pair, level, functional, by_value, 1, &x[i], other);
            if (status == PE_NO_MEMORY) break;
            double next = pe_row_shortfall(other, functional);
            if (next < best) {
                memcpy(row, other, sizeof other);
                best = next;
            }
            if (by_value || g < 0 || other[2 + g] >= PE_LEVELS[level]) break;
        }
        if (!(row[0] == row[0])) worst = PE_TOO_COSTLY;
    }
    return status == PE_NO_MEMORY ? status : worst;
}

void pe_pair_retry(pe_pair *pair) {
    for (int i = 0; i < PE_N_CONTOURS; i++)
        if (pair->levels[i]) pair->levels[i]->no_memory = 0;
}

static int ask_all(pe_pair *pair, int functional, int by_value, size_t n, const double *x, double *rows) {
    pe_pair_retry(pair);
    int status = ask(pair, functional, by_value, n, x, rows);
    for (int i = 0; i < PE_N_CONTOURS; i++)
        if (pair->levels[i] && pair->levels[i]->no_memory) status = PE_NO_MEMORY;
    return status;
}

int pe_pair_at(pe_pair *pair, int functional, size_t n, const double *c, double *rows) {
    return ask_all(pair, functional, 0, n, c, rows);
}

int pe_pair_solve(pe_pair *pair, int functional, size_t n, const double *log_target, double *rows) {
    return ask_all(pair, functional, 1, n, log_target, rows);
}
