/* Bounds of beta and gamma at levels from the masses of A and B at a few thresholds with errors: tangents below the
 * trade-off function, chords above it (docs/theory/conversions.md).  Interface in answers.h; called by level_search.c
 * and by the engines of laws other than sampled Gaussians. */

#include <float.h>
#include <math.h>

#include "answers.h"
#include "doubles.h"

static const double UNIT = DBL_EPSILON / 2;
static const double SUBNORMAL = 2e-317; /* absolute rounding of a sum of many masses below the normal range */

enum { A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERROR, SHIFT }; /* the six arrays of tails */

void pe_level_masses(double tilt, const double *value, const double *error, const double *rest,
                     const double *removed, double *out) {
    for (size_t law = 0; law < 2; law++) {
        const int below = !(tilt > (double)law);
        const double mass = below ? -value[law] : value[law];
        const double inside = mass < 0.0 ? 0.0 : mass > 1.0 ? 1.0 : mass;
        const double most = (isnan(error[law]) ? 1.0 : error[law]) * (1.0 + 1e-9) + SUBNORMAL + removed[law];
        double *part = out + 4 * law;
        part[below] = inside;
        part[!below] = rest[law] - inside;
        part[below + 2] = most;
        part[!below + 2] = most + UNIT + rest[law + 2];
    }
}

/* The larger of both; NaN if either is NaN. */
static double larger(double x, double y) {
    return x > y || isnan(x) ? x : y;
}

void pe_level_tails(size_t n, const double *masses, const double *shift, double *out) {
    for (size_t i = 0; i < n; i++) {
        double most = 0.0;
        for (size_t part = 0; part < 4; part++) {
            const double mass = masses[2 * part * n + i], given = masses[(2 * part + 1) * n + i];
            const double off = isnan(given) ? 1.0 : given;
            const int unknown = mass <= off && off > 0.0;
            const double known = unknown ? fmin(off, 1.0) : mass, share = off > 0.0 ? off / known : 0.0;
            most = larger(most, unknown ? larger(share, 1.0) : share);
            out[part * n + i] = known;
        }
        out[ERROR * n + i] = most;
        out[SHIFT * n + i] = shift[i];
    }
}

/* The tails of one level: entry i of each row of n points. */
typedef struct {
    const double *tails;
    size_t whole, n; /* points * n, the length of an array, and n */
    double rounding; /* of the few operations of a bound, relative to its terms */
} column;

static double tail_of(const column *at, int part, size_t point) {
    return at->tails[(size_t)part * at->whole + point * at->n];
}

static column column_at(size_t points, size_t n, const double *tails, double rounding, size_t i) {
    const column found = {tails + i, points * n, n, rounding};
    return found;
}

/* Bounds of A(S > c) - alpha, the better ones of those from the mass above and from the mass below. */
static void excess(const column *at, size_t point, double alpha, double *least, double *most) {
    const double error = tail_of(at, ERROR, point) + at->rounding, rest = 1.0 - alpha;
    const double above = tail_of(at, A_ABOVE, point), below = tail_of(at, A_BELOW, point);
    const double low = above * (1.0 - error) - SUBNORMAL - alpha;
    const double low_off = rest - below * (1.0 + error) - at->rounding * rest - SUBNORMAL;
    const double high = above * (1.0 + error) + SUBNORMAL - alpha;
    const double high_off = rest - below * (1.0 - error) + at->rounding * rest + SUBNORMAL;
    *least = low > low_off ? low : low_off;
    *most = high < high_off ? high : high_off;
}

void pe_level_excess(size_t points, size_t n, const double *alpha, const double *tails, double rounding,
                     double *least, double *most) {
    for (size_t i = 0; i < n; i++) {
        const column at = column_at(points, n, tails, rounding, i);
        for (size_t j = 0; j < points; j++) excess(&at, j, alpha[i], least + j * n + i, most + j * n + i);
    }
}

/* Twice the error of log(e^c) as computed, by the rounding of c and of the exponential. */
static double exp_error(double c) {
    return 8.0 * UNIT * (1.0 + fabs(c));
}

/* x + y, moved up (side 1) or down (-1) by the rounding of either. */
static double safe(const column *at, double x, double y, double side) {
    return x + y + side * (at->rounding * (fabs(x) + fabs(y)) + SUBNORMAL);
}

/* 1 - error, but not below 0: two errors above 1 would make a positive bound */
static double left_by(double error) {
    return error < 1.0 ? 1.0 - error : 0.0;
}

/* Lower bound of beta and upper bound of gamma on the tangents of slopes -e^(c -+ reach). */
static void tangent(const column *at, size_t point, double c, double reach, double least, double *below,
                    double *above) {
    const double error = tail_of(at, ERROR, point) + at->rounding;
    const double loss = tail_of(at, SHIFT, point) + reach + 0.5 * exp_error(c);
    const double kept = tail_of(at, B_BELOW, point) * left_by(error) * left_by(loss);
    const double grown = tail_of(at, B_ABOVE, point) * (1.0 + error) * pe_d_exp(loss);
    const double low = safe(at, kept, pe_d_exp(c - reach) * least, -1.0);
    const double high = safe(at, grown, -pe_d_exp(c + reach) * least, 1.0);
    *below = isfinite(low) ? low : 0.0; /* no bound if the slope overflows */
    *above = isfinite(high) ? high : 1.0;
}

/* Map: tangents below a trade-off function | test_exact_levels | theory/conversions */
void pe_level_tangents(size_t points, size_t n, const double *alpha, const double *c, const double *reach,
                       const double *tails, double rounding, double *below, double *above) {
    for (size_t i = 0; i < n; i++) {
        const column at = column_at(points, n, tails, rounding, i);
        for (size_t j = 0; j < points; j++) {
            const size_t k = j * n + i;
            double least, most;
            excess(&at, j, alpha[i], &least, &most);
            tangent(&at, j, c[k], reach[k], least, below + k, above + k);
        }
    }
}

double pe_level_reach(double shift, double c) {
    return shift + 0.5 * exp_error(c);
}

static double reach_of(const column *at, size_t point, double c) {
    return pe_level_reach(tail_of(at, SHIFT, point), c);
}

/* Lower and upper bound of beta and of gamma at one level, the best over all points; `shown` as in answers.h. */
static void bounds(const column *at, size_t points, double alpha, const double *c, double shown,
                   double *out) {
    /* slopes of T: at most e^steep in size at levels from alpha on, at least e^flat at levels up to alpha */
    double steep = INFINITY, flat = -INFINITY, least, most;
    for (size_t j = 0; j < points; j++) {
        const double place = c[j * at->n], reach = reach_of(at, j, place);
        excess(at, j, alpha, &least, &most);
        if (most <= 0.0 && place + reach < steep) steep = place + reach;
        if (least >= 0.0 && place - reach > flat) flat = place - reach;
    }
    const double steepest = pe_d_exp(steep), flattest = pe_d_exp(flat);
    double beta_lower = -INFINITY, beta_upper = INFINITY, gamma_lower = -INFINITY, gamma_upper = INFINITY;
    double largest = 0.0;
    for (size_t j = 0; j < points; j++) {
        const double place = c[j * at->n], error = tail_of(at, ERROR, j) + at->rounding;
        double below, above;
        excess(at, j, alpha, &least, &most);
        const double chord = most > 0.0 ? steepest * most : flattest * most;
        const double upper = safe(at, tail_of(at, B_BELOW, j) * (1.0 + error), chord, 1.0);
        beta_upper = fmin(beta_upper, isfinite(upper) ? upper : 1.0);
        /* a test of too high a level, taken with probability alpha/level, has that share of its gamma */
        const double kept = tail_of(at, B_ABOVE, j) * (1.0 - error);
        const double thinned = kept * fmin(alpha / (alpha + fmax(most, 0.0)), 1.0);
        const double lower = fmax(safe(at, kept, -chord, -1.0), thinned * (1.0 - at->rounding) - SUBNORMAL);
        gamma_lower = fmax(gamma_lower, isfinite(lower) ? lower : 0.0);
        tangent(at, j, place, reach_of(at, j, place), least, &below, &above);
        beta_lower = fmax(beta_lower, below);
        gamma_upper = fmin(gamma_upper, above);
        largest = fmax(largest, error);
    }
    gamma_lower = fmax(gamma_lower, shown * (1.0 - largest));
    const double slack = 2.0 * UNIT;
    out[0] = fmax(beta_lower, 1.0 - gamma_upper - slack);
    out[1] = fmin(beta_upper, 1.0 - gamma_lower + slack);
    out[2] = fmax(gamma_lower, 1.0 - beta_upper - slack);
    out[3] = fmin(gamma_upper, 1.0 - beta_lower + slack);
}

/* Map: chords above a trade-off function, from two tests | test_hull | theory/conversions */
void pe_level_chord(size_t points, size_t n, const double *alpha, const double *tails, double rounding,
                    double *beta, double *gamma) {
    for (size_t i = 0; i < n; i++) {
        const column at = column_at(points, n, tails, rounding, i);
        beta[i] = 1.0;
        gamma[i] = 0.0;
        for (size_t j = 0; j < points; j++) {
            double least, low, high;
            excess(&at, j, alpha[i], &least, &low);
            if (!(low <= 0.0)) continue;
            const double off = tail_of(&at, B_BELOW, j) * (1.0 + (tail_of(&at, ERROR, j) + rounding));
            const double on = tail_of(&at, B_ABOVE, j) * (1.0 - (tail_of(&at, ERROR, j) + rounding));
            beta[i] = fmin(beta[i], off + SUBNORMAL);
            gamma[i] = fmax(gamma[i], on - SUBNORMAL);
            for (size_t k = j + 1; k < points; k++) {
                excess(&at, k, alpha[i], &least, &high);
                if (!(high > 0.0)) continue;
                const double first = high / (high - low), second = -low / (high - low);
                const double off_k = tail_of(&at, B_BELOW, k) * (1.0 + (tail_of(&at, ERROR, k) + rounding));
                const double on_k = tail_of(&at, B_ABOVE, k) * (1.0 - (tail_of(&at, ERROR, k) + rounding));
                beta[i] = fmin(beta[i], safe(&at, first * off, second * off_k, 1.0));
                gamma[i] = fmax(gamma[i], safe(&at, first * on, second * on_k, -1.0));
            }
        }
    }
}

/* x clipped to [0, 1]; NaN becomes 0. */
static double part_of(double x) {
    return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
}

/* Values of beta and gamma on the line between the two points next to a level; returns the index of the first. */
static size_t between(const column *at, size_t points, double level, double *out) {
    const double rest = 1.0 - level;
    const int small = level <= 0.5;
    size_t under = 0;
    for (size_t j = 0; j < points; j++)
        under += !(small ? tail_of(at, A_ABOVE, j) > level : tail_of(at, A_BELOW, j) < rest);
    const size_t first = under && under < points ? under - 1 : under ? points - 2 : 0, last = first + 1;
    const double off = tail_of(at, B_BELOW, first), off_last = tail_of(at, B_BELOW, last);
    const double on = tail_of(at, B_ABOVE, first), on_last = tail_of(at, B_ABOVE, last);
    const double jump = fmax(on < 0.5 ? on_last - on : off - off_last, 0.0);
    double share, other;
    if (small) {
        const double above = tail_of(at, A_ABOVE, first);
        share = (level - above) / (tail_of(at, A_ABOVE, last) - above);
        other = 1.0 - share;
    } else {
        /* not 1 - share, which has no digits where share is nearly 1 */
        const double below = tail_of(at, A_BELOW, first), below_last = tail_of(at, A_BELOW, last);
        share = (below - rest) / (below - below_last);
        other = (rest - below_last) / (below - below_last);
    }
    out[0] = off_last + (isnan(other) ? 1.0 : part_of(other)) * jump;
    out[1] = on + part_of(share) * jump;
    return under ? under - 1 : 0;
}

void pe_level_errors(size_t points, size_t n, const double *alpha, const double *c, const double *tails,
                     double rounding, double shown, double *out) {
    for (size_t i = 0; i < n; i++) {
        const column at = column_at(points, n, tails, rounding, i);
        double values[2], ends[4];
        const size_t row = between(&at, points, alpha[i], values);
        bounds(&at, points, alpha[i], c + i, shown, ends);
        const double found[7] = {values[0], ends[0], ends[1], values[1], ends[2], ends[3], c[row * n + i]};
        for (size_t k = 0; k < 7; k++) out[k * n + i] = found[k];
    }
}

void pe_level_between(size_t points, size_t n, const double *alpha, const double *tails, double *beta,
                      double *gamma) {
    for (size_t i = 0; i < n; i++) {
        const column at = column_at(points, n, tails, 0.0, i);
        double found[2];
        between(&at, points, alpha[i], found);
        beta[i] = found[0];
        gamma[i] = found[1];
    }
}
