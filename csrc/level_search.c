/* Finds thresholds whose tests have levels just below and just above given ones, and the bounds of beta and gamma that
 * levels.c makes of them, for one order or the hull of both.  The search is a choice; the bounds are proven by the
 * masses at whatever thresholds it ends (docs/theory/conversions.md, finite.md).  Interface in answers.h. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "answers.h"
#include "doubles.h"

static const double UNIT = DBL_EPSILON / 2;
/* Attempts to bracket a root; steps to a root; moves of a threshold past a level; thresholds of a level; arrays of tails;
 * the thresholds of the hull: each one, and one on both sides. */
enum { TRIES = 12, STEPS = 400, MOVES = 64, POINTS = 4, TAILS = 6, SIDES = 3 };
enum { A_ABOVE, A_BELOW, B_ABOVE, B_BELOW };

/* Width of the bracket of a threshold, relative to the expected one, with atoms and without */
static const double NEAR = 1e-10, SMOOTH = 1e-7;
static const double GROWTH = 4.0; /* factor of steps outwards to bracket a root */
/* factor of the distance of a threshold that is not proven to be on its side */
static const double FURTHER = 8.0;
/* largest distance between a threshold that is proven to be on its side and one that is not */
static const double FLAT = 0.0625;
/* log of an estimated mass over its level up to which a threshold serves, without atoms */
static const double CLOSE = 1e-9;
static const double NO_LOG = 1e300; /* stands for the logarithm of a mass of 0 */
static const double ASIDE = 4.0; /* distance of the thresholds beside one, in units of pe_level_reach */

/* max(a, b) and min(a, b) as Python has them: a if either is NaN */
static double larger(double a, double b) {
    return b > a ? b : a;
}

static double smaller(double a, double b) {
    return b < a ? b : a;
}

/* ---- roots of decreasing functions ------------------------------------------------------------------- */

typedef struct {
    pe_function of;
    void *handle;
    int status;
} function;

/* NaN once a call has failed, which ends all searches. */
static double value_at(function *f, double x) {
    double out = NAN;
    if (!f->status) f->status = f->of(f->handle, x, &out);
    return f->status ? NAN : out;
}

typedef struct {
    double at, value;
} point;

static point point_at(function *f, double x) {
    const point found = {x, value_at(f, x)};
    return found;
}

/* Number of jumps <= x, or < x if `below` */
static size_t jumps_to(size_t n, const double *jump, double x, int below) {
    size_t first = 0, last = n;
    while (first < last) {
        const size_t middle = (first + last) / 2;
        if (below ? jump[middle] < x : jump[middle] <= x) first = middle + 1;
        else last = middle;
    }
    return first;
}

/* Narrows the bracket by bisection over the jumps, until no jump is inside or the sign changes at one (to +-near).
 * Elsewhere a level on an atom, where the function has no root, would take many halvings. */
static void between_jumps(function *f, size_t n, const double *jump, double near, point *low, point *high) {
    for (;;) {
        const size_t first = jumps_to(n, jump, low->at + near, 0);
        const size_t last = jumps_to(n, jump, high->at - near, 1);
        if (first >= last) return;
        const double at = jump[(first + last) / 2];
        const point before = point_at(f, at - near);
        if (before.value < 0.0) {
            *high = before;
            continue;
        }
        const point after = point_at(f, at + near);
        *low = after;
        if (!(after.value < 0.0)) continue;
        *low = before;
        *high = after;
        return;
    }
}

/* Part of the way from a to b for the next step: inverse quadratic interpolation by a, b, c, or 1/2 */
static double part_of_way(point a, point b, point c) {
    const double fa = a.value, fb = b.value, fc = c.value;
    if (!isfinite(fa - fb) || !isfinite(fc - fb) || fc == fa || fc == fb || c.at == b.at) return 0.5;
    const double xi = (a.at - b.at) / (c.at - b.at), phi = (fa - fb) / (fc - fb);
    if (!(phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi)) return 0.5;
    const double inner = fa / (fb - fa) * fc / (fb - fc);
    return inner + (c.at - a.at) / (b.at - a.at) * fa / (fc - fa) * fb / (fc - fb);
}

/* Narrows a bracket by inverse quadratic interpolation or halving, by the rule of Chandrupatla (1997); the same as
 * pyengine.numerics.bracketing for arrays. */
static void close_bracket(function *f, point a, point b, double room, double noise, double *out) {
    point c = b;
    double t = isfinite(a.value - b.value) && a.value != b.value ? a.value / (a.value - b.value) : 0.5;
    for (int step = 0; step < STEPS && !f->status; step++) {
        const double nearest = fabs(a.value) < fabs(b.value) ? fabs(a.at) : fabs(b.at);
        const double limit = a.at != b.at ? (2.0 * UNIT * nearest + room) / fabs(b.at - a.at) : 1.0;
        if (limit > 0.5) break;
        const point x = point_at(f, a.at + smaller(larger(t, limit), 1.0 - limit) * (b.at - a.at));
        if (fabs(x.value) <= noise) {
            out[0] = out[1] = x.at;
            return;
        }
        c = a;
        if ((x.value > 0.0) != (a.value > 0.0)) {
            c = b;
            b = a;
        }
        a = x;
        t = part_of_way(a, b, c);
    }
    out[0] = smaller(a.at, b.at);
    out[1] = larger(a.at, b.at);
}

int pe_falling_root(pe_function of, void *handle, const double *expected, const double *ends, double room,
                    size_t jumps, const double *jump, double noise, double *out) {
    function f = {of, handle, PE_OK};
    const double least = ends[0], most = ends[1];
    point low = {smaller(larger(expected[0], least), most), INFINITY};
    point high = {smaller(larger(expected[1], least), most), -INFINITY};
    if (low.at > least) low.value = value_at(&f, low.at);
    if (low.value >= 0.0 && high.at < most) high.value = value_at(&f, high.at);
    double step = larger(high.at - low.at, 1e-12 * (most - least));
    for (int attempt = 0; attempt < TRIES && !f.status; attempt++) {
        const int is_last = attempt == TRIES - 1;
        if (low.value >= 0.0 && high.value <= 0.0) break;
        if (low.value < 0.0) {
            high = low;
            low.at = is_last ? least : larger(low.at - step, least);
            low.value = low.at > least ? value_at(&f, low.at) : INFINITY;
        } else {
            low = high;
            high.at = is_last ? most : smaller(high.at + step, most);
            high.value = high.at < most ? value_at(&f, high.at) : -INFINITY;
        }
        step *= GROWTH;
    }
    if (jumps) between_jumps(&f, jumps, jump, room, &low, &high);
    out[0] = low.at;
    out[1] = high.at;
    if (!jumps || !(high.at - low.at <= 2.0 * room)) close_bracket(&f, high, low, room, noise, out);
    return f.status;
}

/* ---- tests on both sides of levels ---------------------------------------------------------------------- */

typedef struct {
    const pe_tests *tests;
    double goal; /* log alpha, or log(1 - alpha), */
    int part; /* and the mass that is to equal it, A_ABOVE or A_BELOW */
} wanted;

/* Log of A(S > c)/alpha, or minus log of A(S <= c)/(1 - alpha): decreasing in c. */
static int over_level(void *handle, double c, double *out) {
    const wanted *at = handle;
    const double sign = at->part == A_ABOVE ? 1.0 : -1.0;
    double masses[4];
    const int status = at->tests->roughly(at->tests->law, c, masses);
    const double mass = masses[at->part];
    *out = !status && mass > 0.0 ? sign * (pe_d_log(mass) - at->goal) : -sign * NO_LOG;
    return status;
}

/* The next distance of a threshold from the root, by steps outwards and then bisection; `unsure` is the largest one that
 * is not proven to be on its side, `sure` the smallest one that is.  Errors of tails depend on the other thresholds of
 * the call, so what was proven may no longer be.  Returns whether the tails there are still missing. */
static int is_moved(double *apart, double *unsure, double *sure, int is_open) {
    *(is_open ? unsure : sure) = *apart;
    if (*unsure >= *sure) *sure = INFINITY;
    if (*sure == INFINITY) *apart *= FURTHER;
    else if (*sure - *unsure > FLAT) *apart = 0.5 * (*sure + *unsure);
    else *apart = *sure;
    return is_open || *apart != *sure;
}

int pe_tests_at_levels(const pe_tests *tests, size_t n, const double *alpha, const double *low,
                       const double *high, double rounding, double *c, double *tails) {
    const double room = 32.0 * UNIT * (1.0 + larger(fabs(tests->support[0]), fabs(tests->support[1])));
    const double ends[2] = {tests->support[0] - room, tests->support[1] + room};
    double *least = malloc((2 * POINTS + 6) * (n + 1) * sizeof *least), *most = least + POINTS * n;
    if (!least) return PE_NO_MEMORY;
    /* up, and then down */
    double *apart = least + 2 * POINTS * n, *unsure = apart + 2 * n, *sure = unsure + 2 * n;
    int status = PE_OK;
    for (size_t i = 0; i < n && !status; i++) {
        /* the error of values between thresholds is of second order in their distance, of first beside an atom */
        const double near =
            tests->room > 0.0 ? tests->room : (tests->has_atoms ? NEAR : SMOOTH) * fabs(high[i] - low[i]);
        const double expected[2] = {low[i], high[i]};
        const int is_small = alpha[i] <= 0.5;
        wanted at = {tests, pe_d_log(is_small ? alpha[i] : 1.0 - alpha[i]), is_small ? A_ABOVE : A_BELOW};
        double root[2] = {low[i], high[i]};
        if (tests->roughly)
            status = pe_falling_root(over_level, &at, expected, ends, near, tests->jumps, tests->jump,
                                     tests->has_atoms ? 0.0 : CLOSE, root);
        for (size_t j = 0; j < POINTS; j++) c[j * n + i] = root[j % 2];
        /* first and last threshold differ from the root by more than its rounding */
        apart[i] = apart[n + i] = near + 64.0 * UNIT * (fabs(root[0]) + 0x1p-10 * fabs(ends[1]));
    }
    double *top = c, *bottom = c + (POINTS - 1) * n;
    for (size_t i = 0; i < 2 * n; i++) {
        unsure[i] = 0.0;
        sure[i] = INFINITY;
    }
    for (int attempt = 0, is_open = 1; attempt < MOVES && is_open && !status; attempt++) {
        for (size_t i = 0; i < n; i++) {
            top[i] = smaller(c[n + i] + apart[i], ends[1]);
            bottom[i] = larger(c[2 * n + i] - apart[n + i], ends[0]);
        }
        status = tests->tails(tests->law, POINTS * n, c, tails);
        if (status) break;
        pe_level_excess(POINTS, n, alpha, tails, rounding, least, most);
        is_open = 0;
        for (size_t i = 0; i < n; i++) {
            is_open |= is_moved(apart + i, unsure + i, sure + i, most[i] > 0.0 && top[i] < ends[1]);
            is_open |= is_moved(apart + n + i, unsure + n + i, sure + n + i,
                                least[(POINTS - 1) * n + i] < 0.0 && bottom[i] > ends[0]);
        }
    }
    free(least);
    return status;
}

int pe_tests_errors(const pe_tests *tests, size_t n, const double *alpha, const double *low,
                    const double *high, double rounding, double shown, double *out) {
    double *c = malloc((1 + TAILS) * POINTS * (n + 1) * sizeof *c), *tails = c + POINTS * n;
    if (!c) return PE_NO_MEMORY;
    const int status = pe_tests_at_levels(tests, n, alpha, low, high, rounding, c, tails);
    if (!status) pe_level_errors(POINTS, n, alpha, c, tails, rounding, shown, out);
    free(c);
    return status;
}

/* ---- the hull of both orders ------------------------------------------------------------------------------ */

/* B(S > c) - e^c A(S > c) times e^-c for c >= 0, e^c A(S <= c) - B(S <= c) for c < 0: the larger one of two orders has
 * the lower tangent of slope -e^c */
static double gain(const double *masses, size_t apart, double c) {
    const double weight = pe_d_exp(-fabs(c));
    return c < 0.0 ? weight * masses[A_BELOW * apart] - masses[B_BELOW * apart]
                   : weight * masses[B_ABOVE * apart] - masses[A_ABOVE * apart];
}

void pe_level_better(size_t n, const double *c, const double *first, const double *second, double *out) {
    for (size_t i = 0; i < n; i++) {
        const double one = gain(first + i, n, c[i]), other = gain(second + i, n, c[i]);
        /* where e^-|c| underflows, the order with the larger mass of one law that the other lacks */
        const size_t alone = (c[i] < 0.0 ? A_BELOW : B_ABOVE) * n + i;
        const int is_second = one == other ? second[alone] > first[alone] : other > one;
        for (size_t part = 0; part < TAILS; part++)
            out[part * n + i] = (is_second ? second : first)[part * n + i];
    }
}

typedef struct {
    const pe_tests *order[2];
} orders;

static int better_roughly(void *law, double c, double *masses) {
    const orders *both = law;
    double found[2][4];
    int status = PE_OK;
    for (int i = 0; i < 2 && !status; i++) status = both->order[i]->roughly(both->order[i]->law, c, found[i]);
    if (status) return status;
    const int is_second = gain(found[1], 1, c) > gain(found[0], 1, c);
    for (int part = 0; part < 4; part++) masses[part] = found[is_second][part];
    return PE_OK;
}

static int better_tails(void *law, size_t n, const double *c, double *tails) {
    const orders *both = law;
    double *found = malloc(2 * TAILS * (n + 1) * sizeof *found);
    if (!found) return PE_NO_MEMORY;
    int status = PE_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = both->order[i]->tails(both->order[i]->law, n, c, found + i * TAILS * n);
    if (!status) pe_level_better(n, c, found, found + TAILS * n, tails);
    free(found);
    return status;
}

/* Union of the jumps of both orders, rising */
static size_t joined(const pe_tests *a, const pe_tests *b, double *out) {
    size_t n = 0;
    for (size_t i = 0, j = 0; i < a->jumps || j < b->jumps;) {
        const int is_first = j == b->jumps || (i < a->jumps && a->jump[i] <= b->jump[j]);
        const double next = is_first ? a->jump[i++] : b->jump[j++];
        if (!n || next != out[n - 1]) out[n++] = next;
    }
    return n;
}

static int hull_from(const pe_tests *add, const pe_tests *remove, size_t n, const double *alpha,
                     const double *c, const double *tails, double rounding, double *out) {
    const size_t points = SIDES * POINTS, all = points * n;
    const orders both = {{add, remove}};
    double *at = malloc(((2 + 2 * TAILS + 4) * points + 4) * (n + 1) * sizeof *at);
    double *reach = at + all, *seen = reach + all, *line = seen + 2 * TAILS * all, *chord = line + 4 * all;
    int status = at ? PE_OK : PE_NO_MEMORY;
    /* an atom at a threshold lies on one side of it, which rounding may change: ask on both sides as well */
    for (size_t k = 0; k < POINTS * n && !status; k++) {
        const double aside =
            ASIDE * (pe_level_reach(tails[(TAILS - 1) * POINTS * n + k], c[k]) + UNIT * fabs(c[k]));
        for (size_t side = 0; side < SIDES; side++)
            at[side * POINTS * n + k] = c[k] + ((double)side - 1.0) * aside;
    }
    for (int i = 0; i < 2 && !status; i++)
        status = both.order[i]->tails(both.order[i]->law, all, at, seen + i * TAILS * all);
    for (size_t k = 0; k < all && !status; k++) {
        const double *shift = seen + (TAILS - 1) * all + k;
        reach[k] = larger(pe_level_reach(shift[0], at[k]), pe_level_reach(shift[TAILS * all], at[k]));
    }
    for (int i = 0; i < 2 && !status; i++)
        pe_level_tangents(points, n, alpha, at, reach, seen + i * TAILS * all, rounding, line + i * all,
                          line + (2 + i) * all);
    if (!status) {
        pe_level_between(POINTS, n, alpha, tails, chord, chord + n);
        pe_level_chord(POINTS, n, alpha, tails, rounding, chord + 2 * n, chord + 3 * n);
    }
    for (size_t i = 0; i < n && !status; i++) {
        double beta = -INFINITY, gamma = INFINITY;
        for (size_t k = i; k < all; k += n) {
            beta = larger(beta, smaller(line[k], line[all + k]));
            gamma = smaller(gamma, larger(line[2 * all + k], line[3 * all + k]));
        }
        const double slack = 2.0 * UNIT, most = chord[2 * n + i], least = chord[3 * n + i];
        const double found[6] = {
            chord[i],     larger(beta, 1.0 - gamma - slack), smaller(most, 1.0 - least + slack),
            chord[n + i], larger(least, 1.0 - most - slack), smaller(gamma, 1.0 - beta + slack)};
        for (size_t k = 0; k < 6; k++) out[k * n + i] = found[k];
    }
    free(at);
    return status;
}

int pe_tests_hull(const pe_tests *add, const pe_tests *remove, size_t n, const double *alpha,
                  const double *low, const double *high, double rounding, double *out) {
    orders both = {{add, remove}};
    double *jump = malloc((add->jumps + remove->jumps + 1) * sizeof *jump);
    double *c = malloc((1 + TAILS) * POINTS * (n + 1) * sizeof *c), *tails = c + POINTS * n;
    int status = jump && c ? PE_OK : PE_NO_MEMORY;
    if (!status) {
        const pe_tests better = {
            &both,
            better_tails,
            add->roughly && remove->roughly ? better_roughly : NULL,
            {smaller(add->support[0], remove->support[0]), larger(add->support[1], remove->support[1])},
            add->has_atoms || remove->has_atoms,
            joined(add, remove, jump),
            jump,
            smaller(add->room, remove->room)};
        status = pe_tests_at_levels(&better, n, alpha, low, high, rounding, c, tails);
    }
    if (!status) status = hull_from(add, remove, n, alpha, c, tails, rounding, out);
    free(jump);
    free(c);
    return status;
}
