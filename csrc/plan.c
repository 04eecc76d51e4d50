/* Answers one question (beta, gamma, delta or epsilon of a float) about sampled Gaussian steps: asks proven.c for a
 * row and row_bounds.c for its bounds, and accepts these if they are narrow enough.  Called by pyengine/engines/plan.py.
 * Arrays take the same steps in pyengine/engines/certified.py and certified_hull.py, with the same bits, and answer what
 * is refused here (PE_TOO_COSTLY).  Proof: docs/theory/conversions.md. */

#include <math.h>
#include <stddef.h>

#include "answers.h"
#include "doubles.h"
#include "pair.h"
#include "proven.h"

/* ERRORS: where a row's relative errors begin.  LEFT_TO_ARRAYS: the status where another engine may prove more. */
enum { ERRORS = 2 + PE_FUNCTIONALS, LEFT_TO_ARRAYS = -1 };

static const double TINY = 1e-30; /* answers below it may be as wide as widest[1], others as widest[0] */
static const double NEAR_UNDERFLOW = 1e-305; /* upper bounds up to this need not be narrow */
/* of most_at_zero: only a larger delta may be above the profile at 0 */
static const double ZERO_SHARE = 0.0625;
static const double STRAIGHT_C = 1e-6; /* |c| below which the level may be on the hull's straight part */

/* Bits of pe_order.known */
enum { HAS_LARGEST = 1, HAS_MOST = 2, HAS_LIKELY = 4, HAS_ZERO = 8, HAS_STRAIGHT = 16 };

/* One order of the pair, (P,Q) or (Q,P), with what is known of it and the limits of the question. */
typedef struct {
    const pe_plan *plan;
    pe_order *order;
    pe_pair *pair;
} side;

/* max(a, b) and min(a, b) as Python has them: a if either is NaN */
static double larger(double a, double b) {
    return b > a ? b : a;
}

static double smaller(double a, double b) {
    return b < a ? b : a;
}

/* ---- facts about an order, each computed once ---------------------------------------------------------- */

/* Upper bound of -S under A: the profile is 0 from this epsilon on. */
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

/* Upper bound of the profile at epsilon = 0 that needs no row. */
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

/* Log of the levels below which the test takes the outcomes of the largest likelihood ratio alone (ends.c). */
static double log_largest_ratio_level(const side *s) {
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

/* The number of steps if all are sampled Gaussian steps, else infinity. */
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

/* Whether the steps are few enough for a law on pieces (sector_laws.c), which may prove more than lines do. */
static int has_sector_law(const side *s) {
    return sampled_steps(s) <= s->plan->few;
}

/* PE_SOON: only lines of little work, as the law of so few steps takes less time than a costly line. */
static int thoroughness(const side *s) {
    return sampled_steps(s) <= s->plan->fewest ? PE_SOON : PE_THOROUGH;
}

/* ---- rows --------------------------------------------------------------------------------------------- */

static int certify(const side *s, int functional, double c, double *row) {
    return pe_pair_certify(s->pair, functional, thoroughness(s), 1, &c, row);
}

/* The row at threshold x or, by_value, at a threshold just beyond the one where the log of the functional is x.
 * PE_TOO_COSTLY if there is none, or if its error is large and another engine may have a better one. */
static int row_at(const side *s, int functional, double x, int by_value, double *row) {
    const pe_plan *plan = s->plan;
    const int status =
        by_value ? pe_pair_certify_beyond(s->pair, functional, plan->slack, thoroughness(s), 1, &x, row)
                 : certify(s, functional, x, row);
    if (status == PE_NO_MEMORY || row[ERRORS + functional] <= plan->enough)
        return status == PE_NO_MEMORY ? status : PE_OK;
    return isnan(row[0]) || (has_sector_law(s) && row[2 + functional] >= plan->smallest) ? PE_TOO_COSTLY
                                                                                         : PE_OK;
}

/* Writes the value, clipped to its bounds, and these; returns 0 if they are too wide, cross, or underflow. */
static int put_answer(const pe_plan *plan, double lower, double upper, double value, double *out) {
    const double most = plan->widest[upper < TINY] * upper, width = upper - lower;
    if (!(upper > NEAR_UNDERFLOW && width >= 0.0 && width <= most && most < INFINITY)) return 0;
    out[0] = smaller(larger(value, lower), upper);
    out[1] = lower;
    out[2] = upper;
    return 1;
}

static void put_zero(double *out) {
    out[0] = out[1] = out[2] = 0.0;
}

/* Value, lower and upper bound of the profile from a row */
static void profile_of(const pe_plan *plan, const double *row, double *out) {
    double bounds[PE_BOUNDS], best[3];
    pe_bounds_of_rows(1, row, plan->slack, bounds);
    pe_profile_answers(1, row, best);
    out[0] = best[0];
    out[1] = bounds[4 * PE_PROFILE + 2];
    out[2] = bounds[4 * PE_PROFILE + 3];
}

/* The row at c = 0. */
static int row_at_zero(const side *s, int functional, double *row) {
    if (certify(s, functional, 0.0, row) == PE_NO_MEMORY) return PE_NO_MEMORY;
    const int is_close = pe_row_good(row, functional, s->plan->enough, s->plan->enough);
    return has_sector_law(s) && !is_close ? LEFT_TO_ARRAYS : PE_OK;
}

/* order->zero: value, lower and upper bound of the profile at epsilon = 0. */
static int find_profile_at_zero(const side *s) {
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

/* order->straight: lowest and highest level at which the hull of both orders is 1 - alpha - (profile at 0). */
static int find_straight(const side *s) {
    pe_order *order = s->order;
    const int status = find_profile_at_zero(s);
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

/* delta(epsilon) of one order */
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
    return put_answer(s->plan, found[1], found[2], found[0], out) ? PE_OK : PE_TOO_COSTLY;
}

/* Whether epsilon is 0, as the profile at 0 is proven to be at most delta. */
static int is_epsilon_zero(const side *s, double delta, int *out) {
    const double most = most_at_zero(s);
    *out = delta >= most;
    if (*out || !(delta >= ZERO_SHARE * most)) return PE_OK;
    const int status = find_profile_at_zero(s);
    if (!status) *out = delta >= s->order->zero[2];
    return status;
}

/* epsilon(delta) of one order */
static int epsilon_of(const side *s, double delta, double *out) {
    double row[PE_ROW], found[3];
    int is_zero;
    if (!(delta > 0.0 && delta < 1.0)) return PE_TOO_COSTLY;
    int status = is_epsilon_zero(s, delta, &is_zero);
    if (status) return status;
    if (is_zero) {
        put_zero(out);
        return PE_OK;
    }
    status = row_at(s, PE_PROFILE, pe_d_log(delta), 1, row);
    if (status) return status;
    const int is_known = pe_bounds_epsilon(delta, row, s->plan->slack, found);
    return is_known && put_answer(s->plan, found[0], found[1], found[2], out) ? PE_OK : PE_TOO_COSTLY;
}

/* beta and gamma at a level, each as value, lower and upper bound; c is the threshold of their row, NaN if they needed
 * none. */
typedef struct {
    double beta[3], gamma[3], c;
} errors_at;

/* beta and gamma of one order: the row is solved for the smaller one of alpha and 1 - alpha. */
static int errors_of_order(const side *s, double alpha, errors_at *out) {
    const pe_pair *pair = s->pair;
    const int functional = alpha <= 0.5 ? PE_A_ABOVE : PE_A_BELOW;
    const double tail = alpha <= 0.5 ? alpha : 1.0 - alpha, log_tail = pe_d_log(tail);
    double found[7], row[PE_ROW] = {NAN};
    if (!(log_tail < log_largest_ratio_level(s) &&
          pe_next_to_largest(pair->n, pair->noise, pair->p, pair->steps, pair->reversed, functional, 1,
                             &log_tail, found))) {
        const int status = row_at(s, functional, log_tail, 1, row);
        if (status) return status;
        if (!pe_bounds_level(functional, tail, row, s->plan->slack, found)) return PE_TOO_COSTLY;
    }
    out->c = row[0];
    const int is_close = put_answer(s->plan, found[0], found[1], found[4], out->beta) &&
                         put_answer(s->plan, found[2], found[3], found[5], out->gamma);
    return is_close ? PE_OK : PE_TOO_COSTLY;
}

/* ---- the hull of both orders -------------------------------------------------------------------------- */

/* Value and bounds in [0, 1]; each bound moves outwards by two ulps, as it was rounded twice. */
static void put_outwards(double lower, double value, double upper, double *out) {
    out[0] = value;
    out[1] = fmax(nextafter(nextafter(lower, -1.0), -1.0), 0.0);
    out[2] = fmin(nextafter(nextafter(upper, 2.0), 2.0), 1.0);
}

static int is_narrow(const double *found, const double *widest) {
    if (!(found[1] <= found[2])) return 0;
    return found[2] <= NEAR_UNDERFLOW || (found[2] - found[1]) / found[2] <= widest[found[2] < TINY];
}

size_t pe_straight_levels(size_t n, const double *alpha, const double *zero, const double *straight,
                          const double *widest, double *beta, double *gamma, unsigned char *where) {
    size_t known = 0;
    for (size_t i = 0; i < n; i++, beta += 3, gamma += 3) {
        const double x = alpha[i];
        where[i] = 0;
        if (!(x >= straight[0] && x <= straight[1])) continue;
        /* 1 - alpha is rounded by less than `off`; it is exact for alpha >= 1/2 */
        const double rest = 1.0 - x, off = x < 0.5 ? 0x1p-53 : 0.0;
        put_outwards((rest - zero[2]) - off, rest - zero[0], (rest - zero[1]) + off, beta);
        put_outwards(x + zero[1], x + zero[0], x + zero[2], gamma);
        where[i] = (unsigned char)(is_narrow(beta, widest) && is_narrow(gamma, widest));
        known += where[i];
    }
    return known;
}

/* beta and gamma of the hull where it is straight; PE_TOO_COSTLY elsewhere. */
static int errors_on_straight(const side *add, double alpha, errors_at *out) {
    unsigned char where;
    const int status = find_straight(add);
    if (status) return status;
    pe_straight_levels(1, &alpha, add->order->zero, add->order->straight, add->plan->widest, out->beta,
                       out->gamma, &where);
    return where ? PE_OK : PE_TOO_COSTLY;
}

/* Whether the profile at epsilon is proven to be at most `known`: by Chernoff's bound, else by a line. */
static int is_profile_below(const side *s, double epsilon, double known, int *out) {
    const double c = -epsilon;
    const int is_ended = epsilon >= largest_loss(s);
    *out = is_ended && known >= 0.0;
    for (int closely = 0; !is_ended && !*out && closely < 2; closely++) {
        double row[PE_ROW], found[3];
        const int status = closely ? certify(s, PE_PROFILE, c, row)
                                   : pe_pair_chernoff_below(s->pair, c, pe_d_log(known), row);
        if (status == PE_NO_MEMORY) return status;
        profile_of(s->plan, row, found);
        *out = found[2] <= known;
    }
    return PE_OK;
}

/* beta and gamma of the hull from one row of one order: if this order's tangent lies below the other order's curve too,
 * the hull is this order's curve at alpha. */
static int errors_by_one_order(const side *add, const side *remove, double alpha, errors_at *out) {
    const side *own = alpha <= 0.5 ? add : remove;
    const pe_plan *plan = own->plan;
    int status = errors_of_order(own, alpha, out);
    if (status) return status;
    const double c = out->c;
    if (!(alpha <= 0.5 ? c >= 0.0 : c <= 0.0)) return PE_TOO_COSTLY;
    if (fabs(c) < STRAIGHT_C) {
        errors_at line;
        status = errors_on_straight(add, alpha, &line);
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
    int is_hull;
    status = is_profile_below(add, fabs(c), gain, &is_hull);
    if (status || !is_hull) return status ? status : PE_TOO_COSTLY;
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

/* beta or gamma, of one order or, with a second one, of the hull of both */
static int answer_level(const side *first, const side *second, int question, double alpha, double *out) {
    errors_at found;
    if (!(alpha > 0.0 && alpha < 1.0)) return PE_TOO_COSTLY;
    int status =
        second ? errors_by_one_order(first, second, alpha, &found) : errors_of_order(first, alpha, &found);
    if (second && status == PE_TOO_COSTLY) status = errors_on_straight(first, alpha, &found);
    if (status) return status;
    for (int i = 0; i < 3; i++) out[i] = question == PE_ASKS_BETA ? found.beta[i] : found.gamma[i];
    /* gamma >= alpha, so a smaller value has no correct digit: give the upper bound */
    if (question == PE_ASKS_GAMMA && out[0] < alpha) out[0] = out[2];
    return PE_OK;
}

static int answer_order(const side *s, int question, double x, double *out) {
    return question == PE_ASKS_DELTA ? profile(s, x, out) : epsilon_of(s, x, out);
}

/* The larger delta or epsilon of both orders: mostly that of `remove`, which a bound of the profile of `add` proves. */
static int answer_both(const side *add, const side *remove, int question, double x, double *out) {
    double other[3];
    int is_largest, status = answer_order(remove, question, x, out);
    if (status) return status;
    const int is_delta = question == PE_ASKS_DELTA;
    status = is_profile_below(add, is_delta ? x : out[1], is_delta ? out[1] : x, &is_largest);
    if (status || is_largest) return status;
    status = answer_order(add, question, x, other);
    for (int i = 0; i < 3 && !status; i++) out[i] = larger(out[i], other[i]);
    return status;
}

int pe_plan_one(pe_plan *plan, pe_pair *first, pe_pair *second, int question, double x, double *out) {
    const side one = {plan, &plan->order[0], first}, two = {plan, &plan->order[1], second};
    int status;
    if (question == PE_ASKS_BETA || question == PE_ASKS_GAMMA)
        status = answer_level(&one, second ? &two : NULL, question, x, out);
    else status = second ? answer_both(&one, &two, question, x, out) : answer_order(&one, question, x, out);
    return status == LEFT_TO_ARRAYS ? PE_TOO_COSTLY : status;
}

/* ---- many mechanisms ---------------------------------------------------------------------------------- */

/* The pairs of the mechanism asked about now; consecutive equal mechanisms share them. */
typedef struct {
    int status; /* of pe_pair_new */
    pe_plan plan;
    pe_pair *pair[2];
} run;

static void end_run(run *r) {
    for (int i = 0; i < 2; i++) {
        pe_pair_free(r->pair[i]);
        r->pair[i] = NULL;
    }
}

static void begin_run(run *r, const pe_plan *like, int orders, double cost_limit, const double *noise,
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
            end_run(&r);
            begin_run(&r, like, orders, cost_limit, noise + i, rate + i, steps + i);
        }
        status = r.status;
        if (!status) status = pe_plan_one(&r.plan, r.pair[0], r.pair[1], question, x[i], out + 3 * i);
        answered[i] = status == PE_OK;
    }
    end_run(&r);
    return status == PE_NO_MEMORY ? status : PE_OK;
}
