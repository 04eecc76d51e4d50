/* Chooses the line with proven errors that gives a row (pe_pair_certify and relatives in contours.h), keeps lines for
 * further thresholds, and tries others while a row's error is too large: laws without large z, lines nearer to a pole, a
 * divided law, Chernoff's bounds.  Called by plan.c and pyengine/engines/spectral.py.  All here is a choice and cannot
 * make a bound wrong; what is proven is in certified.c and divided.c (docs/theory/line.md, divided_lines.md). */

#include "proven.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "certified.h"
#include "divided.h"
#include "doubles.h"
#include "pair.h"

static const double NEAR_LEVEL = 3.0; /* by how much the log of an approximated value may be wrong */
/* Largest shortfall (pe_row_shortfall: error over that of a good estimate) of a proven row that is accepted; and the one
 * above which its sum is formed again in sums of two doubles, if rounding makes at least ROUNDED of its error. */
static const double SETTLED = 8.0;
static const double REFINED = 2.0;
static const double ROUNDED = 0.25;

/* Relative error up to which neither a divided law (0.1 s) nor, where lines stop to improve, a line nearer to a pole
 * (each takes four times as many values as the one before) is worth its time.  Up to FEW_STEPS a divided law is asked
 * all the same: the alternative, a law on pieces, takes longer. */
static const double SMALL_ERROR = 1e-9;
static const double FEW_STEPS = 1000.0;
/* Noise multiplier up to which a step's large losses stand apart from the others, so that dividing works well. */
static const double SMALL_NOISE = 0.7;

static const double NEAR_BOUND = 0.1; /* by how much the estimated log of Chernoff's bound may be wrong */
/* PE_SOON: nodes times values of a line for each doubling of the steps, half a millisecond to one; more where noise is
 * small (first entry), as more lines are accurate there. */
static const double SOON_WORK[2] = {2e6, 9e5};
/* relative error of a row that no other law would make much smaller */
static const double SOON_ERROR = 1e-11;
static const double WORSE = 2.0; /* a line is skipped if its values' error alone is so many times the row's */
static const double FAR_OUT = 8.0; /* standard deviations from the mean of a line to a threshold */
static const double VALUES = 4.0 * 0x1p-53; /* least error of a line's values, over sd: 24 units times 0.2 */

enum {
    MOST_WORSE = 2, /* lines in a row without improvement, after which a small error is accepted */
    ROOT_STEPS = 60, /* rows that a search for a threshold may take */
    LINES_OF_REACH = 4 * (2 * PE_PLACES + 1),
    LINES_BESIDE_POLES = PE_REACHES * 2 * PE_NEAR,
};

/* Inlined, as most places are empty. */
static inline void free_line(pe_certified *line) {
    if (line) pe_certified_free(line);
}

void pe_proven_free(pe_proven *proven) {
    if (!proven) return;
    for (int reach = 0; reach < PE_REACHES; reach++) {
        for (int i = 0; proven->reach[reach] && i < LINES_OF_REACH; i++)
            free_line((&proven->reach[reach]->at[0][0])[i]);
        free(proven->reach[reach]);
    }
    for (int i = 0; i < LINES_BESIDE_POLES; i++) free_line((&proven->near[0][0][0])[i]);
    for (int i = 0; i <= 2 * PE_PLACES; i++)
        if (proven->chernoff[i]) free(proven->chernoff[i]);
    pe_divided_free(proven->divided);
    free(proven);
}

static size_t bytes_of(const pe_certified *line) {
    return line ? pe_certified_bytes(line) : 0;
}

size_t pe_proven_bytes(const pe_proven *proven) {
    size_t total = proven ? sizeof *proven : 0;
    for (int reach = 0; proven && reach < PE_REACHES; reach++) {
        if (!proven->reach[reach]) continue;
        total += sizeof *proven->reach[reach];
        for (int i = 0; i < LINES_OF_REACH; i++) total += bytes_of((&proven->reach[reach]->at[0][0])[i]);
    }
    for (int i = 0; proven && i < LINES_BESIDE_POLES; i++) total += bytes_of((&proven->near[0][0][0])[i]);
    for (int i = 0; proven && i <= 2 * PE_PLACES; i++)
        if (proven->chernoff[i]) total += sizeof *proven->chernoff[i];
    return proven ? total + pe_divided_bytes(proven->divided) : total;
}

/* The smallest of the PE_REACHES distances from its mean up to which a line is built that covers `distance`. */
static double spread_to(double distance, double sd, int *reach) {
    double spread = 3.0 * sd;
    for (*reach = 0; *reach < PE_REACHES - 1 && distance > spread; ++*reach) spread *= 8.0;
    return spread;
}

/* The line at lambda for thresholds up to `spread` from its mean, built unless *slot has it.  A line refused for its
 * work is built again if the limit is larger now. */
static int kept_certified(const pe_contours *contours, double lambda, double spread, pe_certified **slot,
                          pe_certified **out) {
    if (*slot && (*slot)->refused_from > 0.0 && (*slot)->refused_from < contours->most_work) {
        pe_certified_free(*slot);
        *slot = NULL;
    }
    if (!*slot) {
        pe_certified *line = calloc(1, sizeof *line);
        if (!line) return PE_NO_MEMORY;
        line->line.lambda = lambda;
        line->status = pe_certified_build(contours, spread, line);
        if (line->status == PE_NO_MEMORY) {
            pe_certified_free(line);
            return PE_NO_MEMORY;
        }
        *slot = line;
    }
    *out = *slot;
    /* a costlier line that is kept is refused, so that an answer does not depend on earlier questions */
    return (*slot)->work > contours->most_work ? PE_TOO_COSTLY : (*slot)->status;
}

/* The line of a place, clear of the poles, built for thresholds as far from its mean as c. */
static int certified_at(pe_contours *contours, int place, int functional, double c, pe_certified **out) {
    const pe_edge *e = pe_contours_edge(contours, 2 * place);
    if (!e) return pe_edge_status(contours);
    int moved;
    double lambda = pe_clear_of_poles(e->lambda, e->sd, functional, &moved);
    int variant = !moved ? 0 : functional == PE_PROFILE ? 1 : functional == PE_A_ABOVE ? 2 : 3;
    int reach;
    double spread = spread_to(fabs(c - e->k.k1), e->sd, &reach);
    pe_proven_places **places = &contours->proven->reach[reach];
    if (!*places && !(*places = calloc(1, sizeof **places))) return PE_NO_MEMORY;
    return kept_certified(contours, lambda, spread, &(*places)->at[variant][place + PE_PLACES], out);
}

/* Whether rounding of its values alone makes a line's error WORSE than the row's, so that it need not be built. */
static int is_useless(double lambda, const pe_cumulants *k, double sd, int functional, double c,
                      const double *row) {
    const double error = pe_row_error(row, functional);
    const int of_b = functional == PE_B_ABOVE || functional == PE_B_BELOW;
    if (!(error <= 1.0)) return 0;
    /* the mean lies beyond the threshold, in a mode far out: the line takes a law that is cut before that mode */
    if ((lambda < 0.5 ? c - k->k1 : k->k1 - c) > FAR_OUT * sd) return 0;
    const double base = k->k0 - lambda * c + (of_b ? c : 0.0) - row[2 + functional];
    double pole = 1.0;
    if (functional == PE_PROFILE || !of_b) pole *= pe_d_hypot(lambda, 1.0 / sd);
    if (functional == PE_PROFILE || of_b) pole *= pe_d_hypot(lambda - 1.0, 1.0 / sd);
    return VALUES / (sd * pole) * pe_d_exp(base) > WORSE * error;
}

/* The line at 4^-(i+1) / sd left of the pole 0, or right of 1, whichever makes the functional small.  It loses some
 * digits to the pole, but its tilt gives little weight to a mode far out. */
static int near_certified(pe_contours *contours, int i, int functional, double c, const double *row,
                          pe_certified **out) {
    int to_right = functional == PE_A_ABOVE;
    pe_near_place *at = &contours->proven->near_place[to_right][i];
    if (at->sd == 0.0) {
        double gap = ldexp(1.0, -2 * i - 2) / sqrt(pe_contours_cumulants(contours, 0.0).k2);
        at->lambda = to_right ? 1.0 + gap : -gap;
        at->k = pe_contours_cumulants(contours, at->lambda);
        at->sd = sqrt(at->k.k2);
    }
    if (is_useless(at->lambda, &at->k, at->sd, functional, c, row)) return PE_TOO_COSTLY;
    int reach;
    double spread = spread_to(fabs(c - at->k.k1), at->sd, &reach);
    return kept_certified(contours, at->lambda, spread, &contours->proven->near[reach][to_right][i], out);
}

/* Chernoff's bounds at a place as a row: values with a relative error of 1, above 1 where there is no bound. */
static int chernoff_row(pe_contours *contours, int place, double lambda, double c, double *row) {
    pe_chernoff **at = &contours->proven->chernoff[place + PE_PLACES];
    if (!*at) {
        if (!(*at = calloc(1, sizeof **at))) return PE_NO_MEMORY;
        pe_certified_chernoff_at(contours, lambda, *at);
    }
    pe_row bounds;
    pe_certified_chernoff(*at, c, &bounds);
    pe_put_row(&bounds, c, row);
    return PE_OK;
}

static double steps_of(const pe_contours *contours) {
    double steps = 0.0;
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives)
        steps += contours->groups[i].n;
    return steps;
}

/* The contours of a level of truncation (pair.h), with room for proven lines and the limit of work of `thorough`. */
static int proven_contours(pe_pair *pair, int level, int thorough, pe_contours **out) {
    const int status = pe_pair_contours(pair, level, out);
    if (status) return status;
    if (!(*out)->proven) (*out)->proven = calloc(1, sizeof *(*out)->proven);
    int is_small = 1;
    for (size_t i = 0; i < pair->n; i++) is_small &= pair->noise[i] <= SMALL_NOISE;
    const double soon = SOON_WORK[!is_small] * (1.0 + pe_d_log2(steps_of(*out)));
    (*out)->most_work = thorough == PE_SOON ? soon : INFINITY;
    return (*out)->proven ? PE_OK : PE_NO_MEMORY;
}

/* Replaces `row` if the new one has a smaller error. */
static void keep_better(const pe_row *out, int functional, double c, double *row) {
    double found[PE_ROW];
    pe_put_row(out, c, found);
    if (isnan(row[0]) || pe_row_shortfall(found, functional) < pe_row_shortfall(row, functional))
        memcpy(row, found, sizeof found);
}

/* The same, and once more with the line's sum in sums of two doubles where rounding makes a good part of the error. */
static void keep_better_of_line(const pe_certified *line, const pe_row *out, int functional, double c,
                                double *row) {
    keep_better(out, functional, c, row);
    const double shortfall = pe_row_shortfall(row, functional);
    if (!(shortfall > REFINED) || !isfinite(shortfall) || out->rounded < ROUNDED) return;
    pe_row close;
    pe_certified_evaluate_closely(line, c, &close);
    keep_better(&close, functional, c, row);
}

/* One threshold of a question. */
typedef struct {
    size_t index; /* of its row */
    double c;
    int nearest; /* place */
    int status;
    pe_certified *line; /* of that place; NULL if there is none or if Chernoff's bounds were enough */
} threshold;

static int is_settled(int status, const double *row, int functional) {
    return status == PE_NO_MEMORY || pe_row_shortfall(row, functional) <= SETTLED;
}

/* The line of the nearest place; or the row itself, from Chernoff's bounds, where both tails (of a profile the one) are
 * below all doubles, so that no line could improve it. */
static int nearest_line(pe_contours *contours, int functional, double c, threshold *at, double *row) {
    at->nearest = pe_contours_nearest(contours, c, 0);
    const pe_edge *e = pe_contours_edge(contours, 2 * at->nearest);
    if (!e) return pe_edge_status(contours);
    const double of_a = e->k.k0 - e->lambda * c, of_b = functional == PE_PROFILE ? of_a : of_a + c;
    if (fmax(of_a, of_b) < PE_BEYOND_LOG) {
        const int status = chernoff_row(contours, at->nearest, e->lambda, c, row);
        if (status || row[2 + PE_FUNCTIONALS + functional] <= 1.0) return status;
        pe_fail_row(row);
    }
    return certified_at(contours, at->nearest, functional, c, &at->line);
}

/* Rows of one line at n <= PE_LANES thresholds. */
static void rows_on(const pe_certified *line, int functional, size_t n, const double *c,
                    double (*rows)[PE_ROW]) {
    pe_row out[PE_LANES];
    pe_certified_evaluate(line, n, c, out);
    for (size_t u = 0; u < n; u++) {
        pe_fail_row(rows[u]);
        keep_better_of_line(line, &out[u], functional, c[u], rows[u]);
    }
}

/* The row of a line, unless rounding of its values alone makes it WORSE than the row at hand. */
static int certify_on(int status, pe_certified *line, int functional, double c, double *row) {
    if (status) return status;
    const double error = pe_row_error(row, functional);
    if (error <= 1.0 && pe_certified_least_error(line, functional, c, row[2 + functional]) > WORSE * error)
        return PE_OK;
    pe_row out;
    pe_certified_evaluate(line, 1, &c, &out);
    keep_better_of_line(line, &out, functional, c, row);
    return PE_OK;
}

static int by_line(const void *a, const void *b) {
    const threshold *x = a, *y = b;
    if (x->line != y->line) return (uintptr_t)x->line < (uintptr_t)y->line ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* By c, as a divided law serves the thresholds next to its own and only some are kept. */
static int by_place(const void *a, const void *b) {
    const threshold *x = a, *y = b;
    return (x->c > y->c) - (x->c < y->c);
}

/* Rows of the lines of the nearest places, PE_LANES thresholds of one line at a time. */
static void on_nearest_lines(threshold *at, size_t n, int functional, const double *c, double *rows) {
    qsort(at, n, sizeof *at, by_line);
    for (size_t i = 0, m; i < n; i += m) {
        double x[PE_LANES];
        pe_row out[PE_LANES];
        for (m = 0; m < PE_LANES && i + m < n && at[i + m].line == at[i].line; m++) x[m] = c[at[i + m].index];
        if (!at[i].line || at[i].status) continue;
        pe_certified_evaluate(at[i].line, m, x, out);
        for (size_t u = 0; u < m; u++)
            keep_better_of_line(at[i].line, &out[u], functional, x[u], rows + PE_ROW * at[i + u].index);
    }
}

/* How many lines in succession, the last one included, have not improved a row whose error is below 1. */
static int count_worse(const double *row, int functional, double *error, int before) {
    const double now = row[2 + PE_FUNCTIONALS + functional];
    const int improves = !(now < 1.0) || now < *error;
    *error = now;
    return improves ? 0 : before + 1;
}

/* The relative error of a row above which a divided law is asked. */
static double least_error_to_divide(const pe_contours *contours) {
    return steps_of(contours) > FEW_STEPS ? SMALL_ERROR : 0.0;
}

/* The same in pe_pair_certify: infinite, never, with PE_SOON and where few sampled Gaussian steps have a law on pieces,
 * which comes first; pe_pair_certify_divided asks for the rest later. */
static double least_error_to_divide_now(const pe_pair *pair, const pe_contours *contours, int thorough) {
    const double left = least_error_to_divide(contours);
    if (thorough == PE_SOON) return INFINITY;
    int has_law = left == 0.0 && !pe_pair_others(pair);
    for (size_t i = 0; i < pair->n; i++)
        has_law = has_law && pair->p[i] < 1.0 && pair->noise[i] > SMALL_NOISE;
    return has_law ? INFINITY : left;
}

/* Improves a row that the nearest place's line leaves too wide, stopping once it is good enough: lines of laws without
 * large z; the line on the other side of the pole; lines of places nearer to 0, then beside the pole, where a law with
 * few large losses keeps enough digits; a divided law; at last Chernoff's bounds. */
static int certify_farther(pe_pair *pair, pe_contours *contours, int functional, double c, int thorough,
                           const threshold *at, double *row) {
    pe_edge *e = pe_contours_edge(contours, 2 * at->nearest);
    if (!e) return pe_edge_status(contours);
    /* the place's own value, moved to c as by a normal law: a mode far out may leave no nearer place */
    const double away = (c - e->k.k1) / e->sd, of_edge = pe_edge_log(e, functional) - 0.5 * away * away;
    const double value = row[2 + PE_FUNCTIONALS + functional] < 0.5 ? row[2 + functional] : of_edge;
    int status = at->status;
    /* the first level of truncation for so small a value and two others, as the value is approximate */
    int first = 1;
    while (first < PE_N_LEVELS - 1 && PE_LEVELS[first] > value - NEAR_LEVEL) first++;
    const int levels[] = {first, first < PE_N_LEVELS - 1 ? first + 1 : first - 1,
                          first < PE_N_LEVELS - 2 ? first + 2 : first - 2};
    for (int i = 0; i < 3 && !is_settled(status, row, functional); i++) {
        pe_contours *cut;
        pe_certified *line = NULL;
        status = proven_contours(pair, levels[i], thorough, &cut);
        if (!status) status = certified_at(cut, pe_contours_nearest(cut, c, 0), functional, c, &line);
        status = certify_on(status, line, functional, c, row);
    }
    /* the other side of the pole, where the tilt gives less weight to large and rare losses */
    if (!is_settled(status, row, functional)) {
        pe_certified *line = NULL;
        const int other = functional == PE_A_ABOVE ? PE_A_BELOW : PE_A_ABOVE;
        status = certified_at(contours, at->nearest, other, c, &line);
        status = certify_on(status, line, functional, c, row);
    }
    double error = row[2 + PE_FUNCTIONALS + functional];
    int worse = 0;
    for (int place = at->nearest; place && !is_settled(status, row, functional); place /= 2) {
        pe_certified *line = NULL;
        const pe_edge *nearer = pe_contours_edge(contours, 2 * (place / 2));
        status = !nearer ? pe_edge_status(contours)
                 : is_useless(nearer->lambda, &nearer->k, nearer->sd, functional, c, row)
                     ? PE_TOO_COSTLY
                     : certified_at(contours, place / 2, functional, c, &line);
        status = certify_on(status, line, functional, c, row);
        worse = count_worse(row, functional, &error, worse);
    }
    for (int i = 0; i < PE_NEAR && !is_settled(status, row, functional); i++) {
        if (worse >= MOST_WORSE && row[2 + PE_FUNCTIONALS + functional] <= SMALL_ERROR) break;
        pe_certified *line = NULL;
        status = near_certified(contours, i, functional, c, row, &line);
        status = certify_on(status, line, functional, c, row);
        worse = count_worse(row, functional, &error, worse);
    }
    /* negated, as the error is NaN if no line gave a row */
    const double left = least_error_to_divide_now(pair, contours, thorough);
    const int divides = left < INFINITY && !(row[2 + PE_FUNCTIONALS + functional] <= left);
    if (divides && !is_settled(status, row, functional)) {
        status = pe_divided_row(contours, functional, c, row);
    }
    if (status != PE_NO_MEMORY && !(row[2 + PE_FUNCTIONALS + functional] < 1.0))
        status = chernoff_row(contours, at->nearest, e->lambda, c, row);
    if (status == PE_NO_MEMORY) return status;
    return row[2 + PE_FUNCTIONALS + functional] <= 1.0 ? PE_OK : PE_TOO_COSTLY;
}

static int certify(pe_pair *pair, int functional, size_t n, const double *c, int thorough, threshold *at,
                   double *rows) {
    pe_contours *contours;
    int status = proven_contours(pair, 0, thorough, &contours), worst = PE_OK;
    size_t finite = 0;
    for (size_t i = 0; i < n && !status; i++) {
        if (!isfinite(c[i])) continue;
        threshold *next = &at[finite++];
        *next = (threshold){.index = i, .c = c[i]};
        next->status = nearest_line(contours, functional, c[i], next, rows + PE_ROW * i);
        if (next->status == PE_NO_MEMORY) status = PE_NO_MEMORY;
    }
    if (status) return status;
    on_nearest_lines(at, finite, functional, c, rows);
    qsort(at, finite, sizeof *at, by_place);
    for (size_t i = 0; i < finite && status != PE_NO_MEMORY; i++) {
        double *row = rows + PE_ROW * at[i].index;
        if (is_settled(at[i].status, row, functional)) continue;
        if (!at[i].line && !at[i].status) continue; /* from Chernoff's bounds */
        status = certify_farther(pair, contours, functional, at[i].c, thorough, &at[i], row);
        if (status) worst = status;
    }
    return worst;
}

int pe_pair_certify(pe_pair *pair, int functional, int thorough, size_t n, const double *c, double *rows) {
    pe_pair_retry(pair);
    for (size_t i = 0; i < n; i++) pe_fail_row(rows + PE_ROW * i);
    if (!pe_pair_is_exact(pair)) return n ? PE_TOO_COSTLY : PE_OK;
    threshold *at = malloc((n + 1) * sizeof *at);
    if (!at) return PE_NO_MEMORY;
    const int status = certify(pair, functional, n, c, thorough, at, rows);
    free(at);
    return status;
}

int pe_pair_certify_divided(pe_pair *pair, int functional, size_t n, const double *c, double *rows) {
    pe_contours *contours;
    pe_pair_retry(pair);
    if (!pe_pair_is_exact(pair)) return PE_OK;
    int status = proven_contours(pair, 0, PE_THOROUGH, &contours);
    threshold *at = status ? NULL : calloc(n + 1, sizeof *at);
    if (!at) return status ? status : PE_NO_MEMORY;
    for (size_t i = 0; i < n; i++) at[i] = (threshold){.index = i, .c = c[i]};
    qsort(at, n, sizeof *at, by_place);
    for (size_t i = 0; i < n && status != PE_NO_MEMORY; i++) {
        double *row = rows + PE_ROW * at[i].index;
        if (isfinite(at[i].c) && !(row[2 + PE_FUNCTIONALS + functional] <= least_error_to_divide(contours)))
            status = pe_divided_row(contours, functional, at[i].c, row);
    }
    free(at);
    return status == PE_NO_MEMORY ? status : PE_OK;
}

int pe_pair_chernoff(pe_pair *pair, size_t n, const double *c, double *rows) {
    pe_contours *contours;
    pe_pair_retry(pair);
    for (size_t i = 0; i < n; i++) pe_fail_row(rows + PE_ROW * i);
    if (!pe_pair_is_exact(pair)) return n ? PE_TOO_COSTLY : PE_OK;
    int status = proven_contours(pair, 0, PE_THOROUGH, &contours), worst = PE_OK;
    if (status) return status;
    for (size_t i = 0; i < n && status != PE_NO_MEMORY; i++) {
        if (!isfinite(c[i])) continue;
        const int place = pe_contours_nearest(contours, c[i], 0);
        const pe_edge *e = pe_contours_edge(contours, 2 * place);
        status =
            e ? chernoff_row(contours, place, e->lambda, c[i], rows + PE_ROW * i) : pe_edge_status(contours);
        if (status) worst = status;
    }
    return status == PE_NO_MEMORY ? status : worst;
}

int pe_pair_chernoff_below(pe_pair *pair, double c, double log_most, double *row) {
    pe_contours *contours;
    pe_pair_retry(pair);
    pe_fail_row(row);
    if (!pe_pair_is_exact(pair)) return PE_TOO_COSTLY;
    const int status = pe_pair_contours(pair, 0, &contours);
    if (status) return status;
    const pe_edge *e = pe_contours_edge(contours, 2 * pe_contours_nearest(contours, c, 0));
    if (!e) return pe_edge_status(contours);
    const int is_above =
        e->lambda < 0.0 && pe_chernoff_exponent(e->k.k0, e->lambda, c) > log_most + NEAR_BOUND;
    return is_above ? PE_OK : pe_pair_chernoff(pair, 1, &c, row);
}

/* The fields of a row that pe_row_slope reads */
static pe_row row_values(const double *row) {
    pe_row values = {.density_log = row[1]};
    memcpy(values.log_value, row + 2, sizeof values.log_value);
    return values;
}

/* The next threshold of a search: Newton's step, at most `most` long, or halving where that leaves the bracket
 * (low, high); half of `most` to the side of the root where one end is open. */
static double next_threshold(double c, double step, double low, double high, double most, double side) {
    const double next = c + fmin(fmax(step, -most), most);
    if (next > low && next < high) return next;
    return isfinite(low) && isfinite(high) ? 0.5 * (low + high) : c + copysign(0.5 * most, side);
}

/* The proven row at the threshold where the log of a functional is `log_target`, by Newton's method on proven rows that
 * starts at the place of an approximation. */
static void solve_proven(pe_pair *pair, int functional, double log_target, double *row) {
    pe_contours *contours;
    pe_fail_row(row);
    if (isnan(log_target) || pe_pair_contours(pair, 0, &contours)) return;
    int place = pe_contours_of_value(contours, functional, log_target);
    const pe_edge *e = place == PE_NOWHERE ? NULL : pe_contours_edge(contours, 2 * place);
    if (!e) return;
    double c = e->k.k1, low = -INFINITY, high = INFINITY, known = NAN;
    for (int it = 0; it < ROOT_STEPS; it++) {
        double found[PE_ROW];
        pe_pair_certify(pair, functional, PE_THOROUGH, 1, &c, found);
        const double error = found[2 + PE_FUNCTIONALS + functional];
        if (!(error < 0.5)) { /* nothing is proven at c: go towards the last proven row, or place 0 */
            if (isnan(known) && (!place || !(e = pe_contours_edge(contours, 2 * (place /= 2))))) return;
            c = isnan(known) ? e->k.k1 : 0.5 * (c + known);
            continue;
        }
        known = c;
        memcpy(row, found, sizeof found);
        const pe_row values = row_values(found);
        const double miss = log_target - found[2 + functional];
        const double side = functional == PE_A_ABOVE ? -miss : miss;
        const double step = miss / pe_row_slope(&values, functional, c);
        if (side > 0.0) low = c;
        else high = c;
        const double next = next_threshold(c, step, low, high, e->sd, side);
        if (fabs(miss) <= error || fabs(next - c) <= 4e-16 * fabs(c)) return;
        c = next;
    }
}

int pe_pair_certified_solve(pe_pair *pair, int functional, size_t n, const double *log_target, double *rows) {
    for (size_t i = 0; i < n; i++) pe_fail_row(rows + PE_ROW * i);
    if (!pe_pair_is_exact(pair)) return n ? PE_TOO_COSTLY : PE_OK;
    for (size_t i = 0; i < n; i++) solve_proven(pair, functional, log_target[i], rows + PE_ROW * i);
    return PE_OK;
}

enum { MOST_MOVES = 4 }; /* from place to place */

/* Up to PE_LANES targets of one place, solved together with the bits of each alone. */
typedef struct {
    size_t n;
    const double *log_target[PE_LANES];
    double *row[PE_LANES];
    int status[PE_LANES]; /* PE_OK if the row is proven to lie just beyond its target */
    double c[PE_LANES]; /* the root, which may belong to another place; NaN if there is none */
} targets;

/* The log value to aim at, so that the row with its error and slack lies beyond the target: below it, or above it for
 * PE_A_BELOW. */
static double beyond(const double *row, int functional, double slack, double log_target, double *margin) {
    *margin = 1.001 * row[2 + PE_FUNCTIONALS + functional] + slack * (8.0 + 4.0 * fabs(log_target));
    return log_target + (functional == PE_A_BELOW ? *margin : -*margin);
}

/* Whether a log value is close enough to the one aimed at. */
static int is_hit(double miss, double margin, double target) {
    return fabs(miss) <= 0.01 * margin + 0x1p-51 * fabs(target);
}

/* Rows just beyond the roots t->c: one Newton step from the row at the root to the value of `beyond`, then a check. */
static void beyond_roots(const pe_certified *line, int functional, double slack, targets *t) {
    double rows[PE_LANES][PE_ROW], c[PE_LANES], there[PE_LANES], target[PE_LANES], margin[PE_LANES];
    size_t of[PE_LANES], n = 0, m = 0;
    for (size_t u = 0; u < t->n; u++) {
        t->status[u] = PE_TOO_COSTLY;
        if (!isfinite(t->c[u])) continue;
        of[n] = u;
        c[n++] = t->c[u];
    }
    if (!n) return;
    rows_on(line, functional, n, c, rows);
    for (size_t i = 0; i < n; i++) {
        const double *near = rows[i], log_target = *t->log_target[of[i]];
        const pe_row values = row_values(near);
        target[m] = beyond(near, functional, slack, log_target, &margin[m]);
        there[m] = c[i] + (target[m] - near[2 + functional]) / pe_row_slope(&values, functional, c[i]);
        if (!(margin[m] < 0.1) || !isfinite(there[m])) continue;
        of[m++] = of[i];
    }
    if (!m) return;
    rows_on(line, functional, m, there, rows);
    for (size_t i = 0; i < m; i++) {
        const int found = is_hit(rows[i][2 + functional] - target[i], margin[i], target[i]);
        memcpy(t->row[of[i]], rows[i], sizeof rows[i]);
        if (found && is_settled(PE_OK, rows[i], functional)) t->status[of[i]] = PE_OK;
    }
}

/* Solves for the targets on the line of one place. */
static int solve_at(pe_contours *contours, int place, int functional, double slack, targets *t) {
    const pe_edge *e = pe_contours_edge(contours, 2 * place);
    pe_certified *line = NULL;
    int status = e ? certified_at(contours, place, functional, e->k.k1, &line) : pe_edge_status(contours);
    for (size_t u = 0; u < t->n; u++) {
        t->status[u] = status;
        t->c[u] = NAN;
    }
    if (status) return status;
    double target[PE_LANES];
    for (size_t u = 0; u < t->n; u++) target[u] = *t->log_target[u];
    pe_contours_roots(contours, &line->line, place, functional, t->n, target, t->c);
    beyond_roots(line, functional, slack, t);
    return PE_OK;
}

/* The same for one target, moving to the place that its root belongs to, until it stays. */
static int solve_from(pe_contours *contours, int place, int moves, int functional, double slack, targets *t) {
    for (; moves < MOST_MOVES; moves++) {
        const int status = solve_at(contours, place, functional, slack, t);
        if (status || !t->status[0]) return status;
        if (!isfinite(t->c[0])) return PE_TOO_COSTLY;
        const int nearest = pe_contours_nearest(contours, t->c[0], place);
        if (nearest == place) break;
        place = nearest;
    }
    return PE_TOO_COSTLY;
}

/* The same for one target by Newton's method on rows of any line of little work; gives up at the first row whose error
 * exceeds SOON_ERROR, or after MOST_ROWS. */
static int solve_soon(pe_pair *pair, pe_contours *contours, int functional, double log_target, double slack,
                      double *row) {
    enum { MOST_ROWS = 12 };
    const int place = pe_contours_of_value(contours, functional, log_target);
    const pe_edge *e = place == PE_NOWHERE ? NULL : pe_contours_edge(contours, 2 * place);
    if (!e) return PE_TOO_COSTLY;
    double c = e->k.k1, low = -INFINITY, high = INFINITY;
    for (int it = 0; it < MOST_ROWS; it++) {
        double margin;
        if (pe_pair_certify(pair, functional, PE_SOON, 1, &c, row) == PE_NO_MEMORY) return PE_NO_MEMORY;
        if (!(row[2 + PE_FUNCTIONALS + functional] <= SOON_ERROR)) break;
        const pe_row values = row_values(row);
        const double target = beyond(row, functional, slack, log_target, &margin);
        const double miss = target - row[2 + functional], side = functional == PE_A_ABOVE ? -miss : miss;
        if (is_hit(miss, margin, target)) return PE_OK;
        if (side > 0.0) low = c;
        else high = c;
        c = next_threshold(c, miss / pe_row_slope(&values, functional, c), low, high, e->sd, side);
    }
    pe_fail_row(row);
    return PE_TOO_COSTLY;
}

/* Solves for the targets of a place together, then one by one for those whose root belongs to another place.  A target
 * without a proven row gets a row of NaN. */
static int solve_together(pe_contours *contours, int place, int functional, double slack, targets *t) {
    int worst = solve_at(contours, place, functional, slack, t);
    for (size_t u = 0; u < t->n && worst != PE_NO_MEMORY; u++) {
        int status = t->status[u];
        if (status == PE_OK) continue;
        if (isfinite(t->c[u])) {
            const int nearest = pe_contours_nearest(contours, t->c[u], place);
            targets one = {.n = 1, .log_target = {t->log_target[u]}, .row = {t->row[u]}};
            if (nearest != place) status = solve_from(contours, nearest, 1, functional, slack, &one);
        }
        if (!status) continue;
        pe_fail_row(t->row[u]);
        worst = status;
    }
    return worst;
}

int pe_pair_certify_beyond(pe_pair *pair, int functional, double slack, int thorough, size_t n,
                           const double *log_target, double *rows) {
    pe_contours *contours;
    pe_pair_retry(pair);
    for (size_t i = 0; i < n; i++) pe_fail_row(rows + PE_ROW * i);
    if (!pe_pair_is_exact(pair)) return n ? PE_TOO_COSTLY : PE_OK;
    int status = proven_contours(pair, 0, thorough, &contours), worst = PE_OK;
    if (status) return status;
    targets t = {.n = 0};
    int at = 0;
    for (size_t i = 0; i <= n && status != PE_NO_MEMORY; i++) {
        const int ends = i == n;
        if (!ends && !isfinite(log_target[i])) continue;
        const int place = ends ? at : pe_contours_of_value(contours, functional, log_target[i]);
        if (t.n && (ends || place != at || t.n == PE_LANES)) {
            status = solve_together(contours, at, functional, slack, &t);
            if (status) worst = status;
            t.n = 0;
        }
        if (ends) break;
        at = place;
        t.log_target[t.n] = &log_target[i];
        t.row[t.n++] = rows + PE_ROW * i;
    }
    for (size_t i = 0; i < n && thorough == PE_SOON && status != PE_NO_MEMORY; i++) {
        double *row = rows + PE_ROW * i;
        if (!isfinite(log_target[i]) || !isnan(row[0])) continue;
        status = solve_soon(pair, contours, functional, log_target[i], slack, row);
    }
    return status == PE_NO_MEMORY ? status : worst;
}
