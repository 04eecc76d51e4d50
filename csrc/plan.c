#include <math.h>
#include <stddef.h>

#include "answers.h"
#include "doubles.h"
#include "pair.h"
#include "proven.h"

/* Parameters in, answer out: questions about floats by rows of proven lines, of one order of a pair or of both.  What
 * arrays are answered in pyengine/engines/certified.py and certified_hull.py has the same bits. */

enum { ERRORS = 2 + PE_FUNCTIONALS, UNKNOWN = -1 }; /* arrays may ask others for it */

static const double TINY = 1e-30;      /* values below have the second of the widest widths */
static const double NOTHING = 1e-305;  /* an answer below this is as narrow as doubles show */
static const double NEAR_ZERO =
    0.0625; /* part of a bound of the profile at 0 from which on delta may be above it */
static const double NEXT_TO_LINE = 1e-6; /* thresholds whose levels may be on the hull's line */

enum { HAS_LARGEST = 1, HAS_MOST = 2, HAS_LIKELY = 4, HAS_ZERO = 8, HAS_STRAIGHT = 16 };

/* One order, as it is asked. */
typedef struct {
    const pe_plan *plan;
    pe_order *order;
    pe_pair *pair;
} side;

/* As Python has them, where one is NaN as well */
static double larger(double a, double b) {
    return b > a ? b : a;
}

static double smaller(double a, double b) {
    return b < a ? b : a;
}

/* ---- what is known of an order ------------------------------------------------------------------------ */

static double largest_loss(const side *s) {
    pe_order *order = s->order;
    if (!(order->known & HAS_LARGEST)) {
        double out[3] = {INFINITY, INFINITY, INFINITY};
        if (!s->pair->reversed) pe_largest_loss(s->pair->n, s->pair->p, s->pair->steps, out);
        order->largest = out[2];
        order->known |= HAS_LARGEST;
    }
    return order->largest;
}

static double most_at_zero(const side *s) {
    pe_order *order = s->order;
    const pe_pair *pair = s->pair;
    if (!(order->known & HAS_MOST)) {
        order->most_at_zero =
            pe_pair_others(pair) ? 1.0 : pe_most_at_zero(pair->n, pair->noise, pair->p, pair->steps);
        order->known |= HAS_MOST;
    }
    return order->most_at_zero;
}

static double likely(const side *s) {
    pe_order *order = s->order;
    const pe_pair *pair = s->pair;
    if (!(order->known & HAS_LIKELY)) {
        order->likely = pe_pair_others(pair) ? -INFINITY
                                             : pe_log_next_to_largest(pair->n, pair->noise, pair->p,
                                                                      pair->steps, pair->reversed);
        order->known |= HAS_LIKELY;
    }
    return order->likely;
}

/* The number of steps, all of which are sampled; infinite where others are among them. */
static double sampled_steps(const side *s) {
    const pe_pair *pair = s->pair;
    double steps = 0.0;
    int is_sampled = !pe_pair_others(pair);
    for (size_t i = 0; i < pair->n; i++) {
        steps += pair->steps[i];
        is_sampled &= pair->p[i] != 1.0;
    }
    return is_sampled && steps > 0.0 ? steps : INFINITY;
}

/* Whether laws of few steps may know more than lines do. */
static int has_laws(const side *s) {
    return sampled_steps(s) <= s->plan->few;
}

/* Which lines are asked: laws of the fewest steps come before those of much work. */
static int thorough(const side *s) {
    return sampled_steps(s) <= s->plan->fewest ? PE_SOON : PE_THOROUGH;
}

/* ---- rows --------------------------------------------------------------------------------------------- */

static int certify(const side *s, int functional, double c, double *row) {
    if (thorough(s) == PE_SOON) return pe_pair_certify_soon(s->pair, functional, 1, &c, row);
    return pe_pair_certify(s->pair, functional, 1, &c, row);
}

/* A row at a threshold, or where the log of a functional has a value; PE_TOO_COSTLY where arrays may have another. */
static int row_at(const side *s, int functional, double x, int by_value, double *row) {
    const pe_plan *plan = s->plan;
    const int status = by_value
                           ? pe_pair_certify_beyond(s->pair, functional, 1, &x, plan->slack, thorough(s), row)
                           : certify(s, functional, x, row);
    if (status == PE_NO_MEMORY || row[ERRORS + functional] <= plan->enough)
        return status == PE_NO_MEMORY ? status : PE_OK;
    return isnan(row[0]) || (has_laws(s) && row[2 + functional] >= plan->smallest) ? PE_TOO_COSTLY : PE_OK;
}

/* A value between proven bounds that are close enough; 0 where they are not, or cross. */
static int put(const pe_plan *plan, double lower, double upper, double value, double *out) {
    const double most = plan->widest[upper < TINY] * upper, width = upper - lower;
    if (!(upper > NOTHING && width >= 0.0 && width <= most && most < INFINITY)) return 0;
    out[0] = smaller(larger(value, lower), upper);
    out[1] = lower;
    out[2] = upper;
    return 1;
}

static void put_zero(double *out) {
    out[0] = out[1] = out[2] = 0.0;
}

/* Value and bounds of the profile in a row */
static void profile_of(const pe_plan *plan, const double *row, double *out) {
    double bounds[PE_BOUNDS], best[3];
    pe_bounds_of_rows(1, row, plan->slack, bounds);
    pe_profile_answers(1, row, best);
    out[0] = best[0];
    out[1] = bounds[4 * PE_PROFILE + 2];
    out[2] = bounds[4 * PE_PROFILE + 3];
}

/* The row at 0, as far as lines say all of it. */
static int row_at_zero(const side *s, int functional, double *row) {
    if (certify(s, functional, 0.0, row) == PE_NO_MEMORY) return PE_NO_MEMORY;
    const int is_close = pe_row_good(row, functional, s->plan->enough, s->plan->enough);
    return has_laws(s) && !is_close ? UNKNOWN : PE_OK;
}

/* The profile at 0, and levels between which the hull of both orders is the line 1 - alpha less that. */
static int know_zero(const side *s) {
    pe_order *order = s->order;
    if (order->known & HAS_ZERO) return PE_OK;
    double row[PE_ROW], found[3];
    const int status = row_at_zero(s, PE_PROFILE, row);
    if (status) return status;
    profile_of(s->plan, row, found);
    const double upper = smaller(found[2], most_at_zero(s));
    order->zero[0] = smaller(larger(found[0], found[1]), upper);
    order->zero[1] = found[1];
    order->zero[2] = upper;
    order->known |= HAS_ZERO;
    return PE_OK;
}

static int know_straight(const side *s) {
    pe_order *order = s->order;
    const int status = know_zero(s);
    if (status || order->known & HAS_STRAIGHT) return status;
    double row[PE_ROW], bounds[PE_BOUNDS];
    const int found = row_at_zero(s, PE_A_ABOVE, row);
    if (found) return found;
    pe_bounds_of_rows(1, row, s->plan->slack, bounds);
    const double *a = bounds + 4 * PE_A_ABOVE + 2, *b = bounds + 4 * PE_B_BELOW + 2;
    order->straight[0] = smaller(a[1], b[1]);
    order->straight[1] = larger(a[0], b[0]);
    order->known |= HAS_STRAIGHT;
    return PE_OK;
}

/* ---- one order ---------------------------------------------------------------------------------------- */

static int profile(const side *s, double epsilon, double *out) {
    double row[PE_ROW], found[3];
    if (!(epsilon > 0.0 && epsilon < INFINITY)) return PE_TOO_COSTLY;
    if (epsilon >= largest_loss(s)) {
        put_zero(out);
        return PE_OK;
    }
    const int status = row_at(s, PE_PROFILE, -epsilon, 0, row);
    if (status) return status;
    profile_of(s->plan, row, found);
    return put(s->plan, found[1], found[2], found[0], out) ? PE_OK : PE_TOO_COSTLY;
}

/* Whether even the profile at 0 is no larger, which is looked at where it may be. */
static int is_zero(const side *s, double delta, int *out) {
    const double most = most_at_zero(s);
    *out = delta >= most;
    if (*out || !(delta >= NEAR_ZERO * most)) return PE_OK;
    const int status = know_zero(s);
    if (!status) *out = delta >= s->order->zero[2];
    return status;
}

static int epsilon_of(const side *s, double delta, double *out) {
    double row[PE_ROW], found[3];
    int nothing;
    if (!(delta > 0.0 && delta < 1.0)) return PE_TOO_COSTLY;
    int status = is_zero(s, delta, &nothing);
    if (status) return status;
    if (nothing) {
        put_zero(out);
        return PE_OK;
    }
    status = row_at(s, PE_PROFILE, pe_natural_log(delta), 1, row);
    if (status) return status;
    const int is_known = pe_bounds_epsilon(delta, row, s->plan->slack, found);
    return is_known && put(s->plan, found[0], found[1], found[2], out) ? PE_OK : PE_TOO_COSTLY;
}

/* Both errors at a level, each with its bounds, and the threshold of their row; NaN where they have none. */
typedef struct {
    double beta[3], gamma[3], c;
} errors_at;

static int level(const side *s, double alpha, errors_at *out) {
    const pe_pair *pair = s->pair;
    const int functional = alpha <= 0.5 ? PE_A_ABOVE : PE_A_BELOW;
    const double tail = alpha <= 0.5 ? alpha : 1.0 - alpha, log_tail = pe_natural_log(tail);
    double found[7], row[PE_ROW] = {NAN};
    if (!(log_tail < likely(s) && pe_next_to_largest(pair->n, pair->noise, pair->p, pair->steps,
                                                     pair->reversed, functional, log_tail, found))) {
        const int status = row_at(s, functional, log_tail, 1, row);
        if (status) return status;
        if (!pe_bounds_level(functional, tail, row, s->plan->slack, found)) return PE_TOO_COSTLY;
    }
    out->c = row[0];
    const int is_close = put(s->plan, found[0], found[1], found[4], out->beta) &&
                         put(s->plan, found[2], found[3], found[5], out->gamma);
    return is_close ? PE_OK : PE_TOO_COSTLY;
}

/* ---- the hull of both orders -------------------------------------------------------------------------- */

/* Bounds in [0, 1] from those that were rounded twice. */
static void put_outwards(double lower, double value, double upper, double *out) {
    out[0] = value;
    out[1] = fmax(nextafter(nextafter(lower, -1.0), -1.0), 0.0);
    out[2] = fmin(nextafter(nextafter(upper, 2.0), 2.0), 1.0);
}

static int is_narrow(const double *found, const double *widest) {
    if (!(found[1] <= found[2])) return 0;
    return found[2] <= NOTHING || (found[2] - found[1]) / found[2] <= widest[found[2] < TINY];
}

size_t pe_straight_levels(size_t n, const double *alpha, const double *zero, const double *straight,
                          const double *widest, double *beta, double *gamma, unsigned char *where) {
    size_t known = 0;
    for (size_t i = 0; i < n; i++, beta += 3, gamma += 3) {
        const double x = alpha[i];
        where[i] = 0;
        if (!(x >= straight[0] && x <= straight[1])) continue;
        /* 1 - alpha is rounded by less than `off`, which is much beside a small beta */
        const double rest = 1.0 - x, off = x < 0.5 ? 0x1p-53 : 0.0;
        put_outwards((rest - zero[2]) - off, rest - zero[0], (rest - zero[1]) + off, beta);
        put_outwards(x + zero[1], x + zero[0], x + zero[2], gamma);
        where[i] = (unsigned char)(is_narrow(beta, widest) && is_narrow(gamma, widest));
        known += where[i];
    }
    return known;
}

static int straight_at(const side *add, double alpha, errors_at *out) {
    unsigned char where;
    const int status = know_straight(add);
    if (status) return status;
    pe_straight_levels(1, &alpha, add->order->zero, add->order->straight, add->plan->widest, out->beta,
                       out->gamma, &where);
    return where ? PE_OK : PE_TOO_COSTLY;
}

/* Whether a profile is surely at most a known number: by Chernoff's bounds, else by a line. */
static int is_below(const side *s, double epsilon, double known, int *out) {
    const double c = -epsilon;
    const int is_ended = epsilon >= largest_loss(s);
    *out = is_ended && known >= 0.0;
    for (int closely = 0; !is_ended && !*out && closely < 2; closely++) {
        double row[PE_ROW], found[3];
        const int status = closely ? certify(s, PE_PROFILE, c, row)
                                   : pe_pair_chernoff_below(s->pair, c, pe_natural_log(known), row);
        if (status == PE_NO_MEMORY) return status;
        profile_of(s->plan, row, found);
        *out = found[2] <= known;
    }
    return PE_OK;
}

/* Both errors by one row of one order, where its tangent does not cut the other's curve. */
static int alone_at(const side *add, const side *remove, double alpha, errors_at *out) {
    const side *own = alpha <= 0.5 ? add : remove;
    const pe_plan *plan = own->plan;
    int status = level(own, alpha, out);
    if (status) return status;
    const double c = out->c;
    if (!(alpha <= 0.5 ? c >= 0.0 : c <= 0.0)) return PE_TOO_COSTLY;
    if (fabs(c) < NEXT_TO_LINE) {
        errors_at line;
        status = straight_at(add, alpha, &line);
        if (!status) *out = line;
        if (status != PE_TOO_COSTLY) return status;
    }
    const int functional = alpha <= 0.5 ? PE_A_ABOVE : PE_A_BELOW;
    const double tail = alpha <= 0.5 ? alpha : 1.0 - alpha;
    double row[PE_ROW], bounds[PE_BOUNDS], below[2], gain;
    status = row_at(own, functional, c, 0, row);
    if (status) return status;
    pe_bounds_of_rows(1, row, plan->slack, bounds);
    pe_bounds_line(1, functional, &tail, row, bounds, plan->slack, &below[0], &below[1]);
    pe_bounds_gain(1, row, bounds, plan->slack, &gain);
    int is_alone;
    status = is_below(add, fabs(c), gain, &is_alone);
    if (status || !is_alone) return status ? status : PE_TOO_COSTLY;
    double *beta = out->beta, *gamma = out->gamma;
    const double low = larger(below[0], nextafter(1.0 - below[1], 0.0));
    const double high = smaller(smaller(below[1], nextafter(1.0 - below[0], 2.0)), 1.0);
    if (beta[2] - low > 2.0 * (beta[2] - beta[1]) || high - gamma[1] > 2.0 * (gamma[2] - gamma[1]))
        return PE_TOO_COSTLY;
    beta[0] = smaller(larger(beta[0], low), beta[2]);
    gamma[0] = smaller(larger(gamma[0], gamma[1]), high);
    beta[1] = low;
    gamma[2] = high;
    return PE_OK;
}

static int of_level(const side *first, const side *second, int question, double alpha, double *out) {
    errors_at found;
    if (!(alpha > 0.0 && alpha < 1.0)) return PE_TOO_COSTLY;
    int status = second ? alone_at(first, second, alpha, &found) : level(first, alpha, &found);
    if (second && status == PE_TOO_COSTLY) status = straight_at(first, alpha, &found);
    if (status) return status;
    for (int i = 0; i < 3; i++) out[i] = question == PE_ASKS_BETA ? found.beta[i] : found.gamma[i];
    /* no digit of gamma is known where less than its level was found: the upper bound is safe */
    if (question == PE_ASKS_GAMMA && out[0] < alpha) out[0] = out[2];
    return PE_OK;
}

static int of_order(const side *s, int question, double x, double *out) {
    return question == PE_ASKS_DELTA ? profile(s, x, out) : epsilon_of(s, x, out);
}

/* The larger profile or epsilon of both orders, of which that of `remove` is mostly known to be it. */
static int of_both(const side *add, const side *remove, int question, double x, double *out) {
    double other[3];
    int is_alone, status = of_order(remove, question, x, out);
    if (status) return status;
    const int is_delta = question == PE_ASKS_DELTA;
    status = is_below(add, is_delta ? x : out[1], is_delta ? out[1] : x, &is_alone);
    if (status || is_alone) return status;
    status = of_order(add, question, x, other);
    for (int i = 0; i < 3 && !status; i++) out[i] = larger(out[i], other[i]);
    return status;
}

int pe_plan_one(pe_plan *plan, pe_pair *first, pe_pair *second, int question, double x, double *out) {
    const side one = {plan, &plan->order[0], first}, two = {plan, &plan->order[1], second};
    int status;
    if (question == PE_ASKS_BETA || question == PE_ASKS_GAMMA)
        status = of_level(&one, second ? &two : NULL, question, x, out);
    else status = second ? of_both(&one, &two, question, x, out) : of_order(&one, question, x, out);
    return status == UNKNOWN ? PE_TOO_COSTLY : status;
}

/* ---- many mechanisms ---------------------------------------------------------------------------------- */

/* The pairs of one mechanism, as long as it is asked about. */
typedef struct {
    int status; /* of their making */
    pe_plan plan;
    pe_pair *pair[2];
} run;

static void end(run *r) {
    for (int i = 0; i < 2; i++) {
        pe_pair_free(r->pair[i]);
        r->pair[i] = NULL;
    }
}

static void begin(run *r, const pe_plan *like, int orders, double cost_limit, const double *noise,
                  const double *rate, const double *steps) {
    const int first = orders == PE_REMOVE ? 1 : 0, last = orders == PE_ADD ? 0 : 1;
    r->plan = *like;
    r->status = PE_OK;
    for (int reversed = first, i = 0; reversed <= last && !r->status; reversed++, i++)
        r->status = pe_pair_new(1, noise, rate, steps, reversed, cost_limit, &r->pair[i]);
}

int pe_plan_many(const pe_plan *like, int orders, double cost_limit, size_t n, const double *noise,
                 const double *rate, const double *steps, int question, const double *x,
                 const volatile unsigned char *stop, double *out, unsigned char *answered) {
    run r = {.pair = {NULL, NULL}};
    int status = PE_OK;
    for (size_t i = 0; i < n; i++) answered[i] = 0;
    for (size_t i = 0; i < n && status != PE_NO_MEMORY && !*stop; i++) {
        const size_t b = i - 1;
        const int is_same = i && noise[i] == noise[b] && rate[i] == rate[b] && steps[i] == steps[b];
        if (!is_same) {
            end(&r);
            begin(&r, like, orders, cost_limit, noise + i, rate + i, steps + i);
        }
        status = r.status;
        if (!status) status = pe_plan_one(&r.plan, r.pair[0], r.pair[1], question, x[i], out + 3 * i);
        answered[i] = status == PE_OK;
    }
    end(&r);
    return status == PE_NO_MEMORY ? status : PE_OK;
}
