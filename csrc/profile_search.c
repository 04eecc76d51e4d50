/* Profiles of a law with their bounds, and the epsilon at which a profile falls to a given delta.  The search is a choice;
 * the bounds are proven by the profiles at whatever places it ends (docs/theory/finite.md).  Interface in answers.h. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "answers.h"
#include "doubles.h"

static const double UNIT = DBL_EPSILON / 2;
static const double BELOW_DOUBLES = 1e-300; /* a value below this is 0 if its lower bound is */
static const double SMALLEST = 1e-290; /* a distance below this counts as 0, */
static const double ROOM = 1e-300; /* and a bracket of this width as closed */
static const double FAR_APART =
    64.0; /* ratio of distances of both ends of a bracket that is halved in its logarithm */
static const double LARGEST_FACTOR = 0x1p48;
static const double CURVED =
    0.125; /* change of a profile from which on it is not taken as linear in e^epsilon, */
static const double CLOSE = 0x1p-28,
                    NEARLY = 0x1p-20; /* and those from which on steps are within roundings */
/* Steps of one search after which every second one halves its bracket, and after which it ends */
enum { FREE_STEPS = 12, STEPS = 800 };
enum { TRIES = 4 }; /* places next to the expected one, before a bound is taken as it is */
enum { LOWER, VALUE, UPPER, SIDES };

int pe_low_parts_known(pe_low_parts *parts, int *status) {
    if (!parts->low && parts->ask) *status = parts->ask(parts->handle, &parts->low, &parts->error);
    return !*status && parts->low;
}

/* The profile at one epsilon, with A's mass at loss -inf, as value + left; `inner` is without it. */
typedef struct {
    double epsilon, inner, value, left, error, fall;
} place;

static place place_at(const pe_profile *of, double epsilon, double inner, double error, double fall) {
    const double lost = of->alone[0], value = inner + lost, part = value - inner;
    const double left = ((inner - (value - part)) + (lost - part)) + of->alone[1];
    const double rounding = of->alone[1] != 0.0 ? 0x1p-105 * lost : 0.0;
    const place found = {epsilon, inner, value, left, error + of->alone[2] + rounding, fall};
    return found;
}

/* Places of n epsilon, which may be infinite */
static int places_at(const pe_profile *of, size_t n, const double *epsilon, place *out) {
    double *at = malloc(4 * (n + 1) * sizeof *at), *found = at + n;
    if (!at) return PE_NO_MEMORY;
    size_t finite = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(epsilon[i])) at[finite++] = epsilon[i];
    const int status = finite ? of->profile(of->law, finite, at, NULL, found) : PE_OK;
    for (size_t i = 0, k = 0; i < n && !status; i++) {
        if (isfinite(epsilon[i])) {
            out[i] = place_at(of, epsilon[i], found[k], found[finite + k], found[2 * finite + k]);
            k++;
        } else out[i] = place_at(of, epsilon[i], 0.0, 0.0, 0.0);
    }
    free(at);
    return status;
}

static double clipped(double x, double least, double most) {
    return x < least ? least : x > most ? most : x;
}

int pe_profile_deltas(const pe_profile *profile, size_t n, const double *epsilon, double *out) {
    place *at = malloc((n + 1) * sizeof *at);
    int status = at ? places_at(profile, n, epsilon, at) : PE_NO_MEMORY;
    for (size_t i = 0; i < n && !status; i++) {
        const double off = at[i].error + 1.01 * fabs(at[i].left);
        double lower = at[i].value - off, upper = at[i].value + off;
        /* round outwards: the error may be far below the last place of the sum */
        if (at[i].error > 0.0 || at[i].left != 0.0) {
            lower = nextafter(lower, 0.0);
            upper = nextafter(upper, 2.0);
        }
        lower = clipped(lower, 0.0, 1.0);
        upper = clipped(upper, 0.0, 1.0);
        /* if the lower bound is 0, the upper bound is the safe value */
        const int is_unknown = lower == 0.0 && upper > BELOW_DOUBLES;
        out[i] = is_unknown ? upper : at[i].value > 1.0 ? 1.0 : at[i].value;
        out[n + i] = lower;
        out[2 * n + i] = upper;
    }
    free(at);
    return status;
}

/* ---- epsilon ------------------------------------------------------------------------------------------- */

/* The search for one delta: for the profile's lower bound, its value and its upper bound, the largest epsilon at which it
 * is known to be above delta, the smallest at which it is known not to be (infinite: none yet), and the result if there
 * is one.  `side`: the one that is searched; `last`: the last place; `apart`: distance from the expected epsilon at which
 * a bound is tried. */
typedef struct {
    double delta, low[SIDES], high[SIDES], found[SIDES];
    int is_found[SIDES], side, steps, tries;
    double x, apart, factor;
    place last;
} search;

/* Above 0 if and only if the profile, or a bound of it, is above delta.  Next to delta the first difference is exact, and
 * the sum has the sign of its terms; the rounding of the last ones is within the added part of the error. */
static double over(const place *at, double delta, int side) {
    const double error = ((double)side - 1.0) * (1.0 + 4.0 * UNIT) * at->error;
    const double excess = (at->value - delta) + (at->left + error);
    if (delta >= 1.0) return -1.0;
    /* the lower bound of a profile that is not known is 0, and the upper one is 1 */
    return isnan(excess) ? (side == LOWER ? -1.0 : 1.0) : excess;
}

/* The epsilon at which the profile equals delta, by the last place: it is convex in e^epsilon, so the linear step stays
 * above delta; far away it is taken as a power of the distance from the end.  NaN or infinite if there is no step. */
static double expected(const search *at, const pe_profile *of) {
    const place *last = &at->last;
    const double inner = last->inner, gap = of->end - last->epsilon;
    const double goal = (at->delta - of->alone[0]) - of->alone[1] - ((double)at->side - 1.0) * last->error;
    if (!(last->fall > 0.0) || !(inner > 0.0)) return NAN;
    if (!(goal > 0.0)) return INFINITY;
    const double above = over(last, at->delta, at->side),
                 linear = last->epsilon + pe_d_log1p(above / last->fall);
    if (fabs(above) < CURVED * inner) return linear;
    const double power = last->fall * gap / inner;
    const double far = last->epsilon - gap * pe_d_expm1((pe_d_log(goal) - pe_d_log(inner)) / power);
    if (!(power > 1.0)) return linear;
    return far < of->end ? far : fmax(linear, of->end - gap / FAR_APART);
}

/* A point between both ends: the mean of the logarithms of their distances from 0 or from `end` where these differ much.
 * Profiles of bounded losses are linear next to 0 and next to the largest epsilon, so a root may be close to either. */
static double middle_of(search *at, double low, double high, double end) {
    const double small[2] = {low, end - high}, large[2] = {high, end - low};
    for (int i = 0; i < 2; i++) {
        if (!(large[i] > FAR_APART * small[i]) || !(large[i] > SMALLEST)) continue;
        const double apart = small[i] > 0.0 ? sqrt(small[i]) * sqrt(large[i]) : large[i] / at->factor;
        const double middle = i ? end - apart : apart;
        if (!(small[i] > 0.0) && at->factor < LARGEST_FACTOR) at->factor *= at->factor;
        if (low < middle && middle < high) return middle;
    }
    return low + 0.5 * (high - low);
}

static void settle(search *at, double found) {
    at->found[at->side] = found;
    at->is_found[at->side] = 1;
}

static double closed_width(double high) {
    return 4.0 * UNIT * high + ROOM;
}

/* Ends the search of one side, or names its next place. */
static void advance_side(search *at, const pe_profile *of) {
    const int side = at->side, is_bounded = at->high[side] < INFINITY;
    const double low = at->low[side], high = is_bounded ? at->high[side] : of->end;
    const double above = over(&at->last, at->delta, side), size = fabs(above), inner = at->last.inner;
    const double y = expected(at, of);
    const double room = 2.0 * UNIT * y + (at->last.fall > 0.0 ? 0.25 * UNIT * inner / at->last.fall : 0.0);
    const int is_near =
        isfinite(y) && (size <= (side == VALUE ? CLOSE : NEARLY) * fmin(inner, at->last.fall) ||
                        fabs(y - at->last.epsilon) <= 8.0 * UNIT * y);
    if ((is_bounded && high - low <= closed_width(high)) || at->steps++ > STEPS) {
        settle(at, side == LOWER ? low : side == VALUE || is_bounded ? high : of->most);
        return;
    }
    if (is_near && side == VALUE) settle(at, clipped(y, low, high));
    const int is_proven = side == LOWER ? at->last.epsilon == low : is_bounded && at->last.epsilon == high;
    at->tries += is_near;
    const double most = at->tries > TRIES && is_proven ? INFINITY : 2.0 * fmax(room, at->apart);
    if (is_near && side == LOWER && y - low <= most) settle(at, low);
    if (is_near && side == UPPER && is_bounded && high - y <= most) settle(at, high);
    if (at->is_found[side]) return;
    double x = y;
    if (side == VALUE && y >= high && y - high <= room) x = high - room;
    if (side != VALUE) {
        /* on the side where the bound is proven, farther away after a place so near was not */
        const int is_short = is_near && at->apart > 0.0 && (side == LOWER) != (above > 0.0);
        at->apart = is_short ? 4.0 * at->apart : room;
        x = side == LOWER ? fmin(y, high) - at->apart : fmax(y, low) + at->apart;
    }
    if (x >= of->end && !is_bounded) x = of->end;
    else if (!(x > low && x < high) || (at->steps > FREE_STEPS && at->steps % 2)) {
        x = middle_of(at, low, high, of->end);
        if (!(x > low && x < high))
            x = high; /* no double between them, or the end, which was not asked yet */
    }
    at->x = x;
}

/* Goes on to the next place; returns whether there is one. */
static int advance(search *at, const pe_profile *of) {
    static const int ORDER[SIDES] = {VALUE, LOWER, UPPER};
    for (int k = 0; k < SIDES; k++) {
        if (at->is_found[ORDER[k]]) continue;
        if (at->side != ORDER[k]) {
            at->side = ORDER[k];
            at->steps = at->tries = 0;
            at->apart = 0.0;
            at->factor = FAR_APART;
        }
        advance_side(at, of);
        if (!at->is_found[ORDER[k]]) return 1;
    }
    return 0;
}

/* Takes the profile at a place into account for all sides. */
static void take(search *at, const pe_profile *of, const place *seen) {
    /* where no mass is left in doubles the largest epsilon is known by its bounds alone */
    const double beyond[SIDES] = {fmin(of->least, of->end), of->end, of->most};
    at->last = *seen;
    for (int side = LOWER; side < SIDES; side++) {
        if (at->is_found[side]) continue;
        if (over(seen, at->delta, side) > 0.0) {
            if (seen->epsilon >= of->end) {
                at->found[side] = beyond[side];
                at->is_found[side] = 1;
            } else if (seen->epsilon < at->high[side]) at->low[side] = fmax(at->low[side], seen->epsilon);
        } else if (seen->epsilon > at->low[side]) at->high[side] = fmin(at->high[side], seen->epsilon);
    }
}

/* Whether delta is 0 and no loss is -inf, so that the largest epsilon is asked for */
static int is_largest(const pe_profile *of, double delta) {
    return delta == 0.0 && of->alone[0] == 0.0 && of->alone[2] == 0.0;
}

/* The search for delta after the profile at 0 and infinity */
static search begun(const pe_profile *of, double delta, const place *ends) {
    search at = {.delta = delta, .side = SIDES, .last = ends[0]};
    for (int side = LOWER; side < SIDES; side++) {
        const int is_infinite = over(ends + 1, delta, side) > 0.0;
        at.high[side] = INFINITY;
        at.is_found[side] = is_infinite || !(over(ends, delta, side) > 0.0);
        at.found[side] = is_infinite ? INFINITY : 0.0;
    }
    if (of->end == 0.0) take(&at, of, ends);
    return at;
}

/* Value, lower and upper bound from the results of all sides */
static void put(const pe_profile *of, const search *at, size_t n, double *out) {
    double lower = at->found[LOWER], value = at->found[VALUE], upper = at->found[UPPER];
    if (is_largest(of, at->delta)) {
        lower = of->least;
        upper = of->most;
        value = of->most == INFINITY ? of->most : clipped(of->end, of->least, of->most);
    }
    value = clipped(value, lower, fmax(value, upper));
    /* if epsilon may be infinite, that is the safe value; -0 + 0 is 0 */
    out[0] = (upper == INFINITY ? upper : value) + 0.0;
    out[n] = lower + 0.0;
    out[2 * n] = fmax(upper, value) + 0.0;
}

int pe_profile_epsilons(const pe_profile *profile, size_t n, const double *delta, double *out) {
    static const double ENDS[2] = {0.0, INFINITY};
    search *all = malloc((n + 1) * sizeof *all);
    place *seen = malloc((n + 1) * sizeof *seen), ends[2];
    size_t *open = malloc((n + 1) * sizeof *open), left = 0;
    double *x = malloc((n + 1) * sizeof *x);
    int status = all && seen && open && x ? places_at(profile, 2, ENDS, ends) : PE_NO_MEMORY;
    for (size_t i = 0; i < n && !status; i++) {
        all[i] = begun(profile, delta[i], ends);
        if (is_largest(profile, delta[i]) || !advance(all + i, profile)) continue;
        double start = NAN;
        if (profile->start) status = profile->start(profile->law, delta[i] - profile->alone[0], &start);
        if (start > 0.0 && start < profile->end) all[i].x = start;
        open[left++] = i;
    }
    while (left && !status) {
        size_t kept = 0;
        for (size_t k = 0; k < left; k++) x[k] = all[open[k]].x;
        status = places_at(profile, left, x, seen);
        for (size_t k = 0; k < left && !status; k++) {
            search *at = all + open[k];
            take(at, profile, seen + k);
            if (advance(at, profile)) open[kept++] = open[k];
        }
        left = kept;
    }
    for (size_t i = 0; i < n && !status; i++) put(profile, all + i, n, out + i);
    free(all);
    free(seen);
    free(open);
    free(x);
    return status;
}
