/* Turns rows with proven errors into bounds of beta, gamma, epsilon and the profile (docs/theory/conversions.md).  All
 * bounds are moved outwards by `slack`, a relative error that covers the few operations of each.  Called by plan.c and
 * pyengine/engines/certified.py; interface in answers.h. */

#include <math.h>
#include <stddef.h>

#include "answers.h"
#include "doubles.h"

enum { ERRORS = 2 + PE_FUNCTIONALS }; /* where a row's relative errors begin */

static const double LEAST = 5e-324; /* the smallest double, upper bound of a value that underflows */
static const double LARGEST_LOG = 800.0; /* no log of a double is larger: bounds the rounding of e^log */
static const double ROUNDED = 2.5e-16; /* error of 1 - x, rounded, from x itself */
/* Distances from c to a second threshold, in units of e^(log of the tail - log density): losses may be tiny. */
static const double ASIDE[PE_ASIDES] = {1e-3, 1e-5, 1e-2, 1e-7, 1e-1, 1e-9, 1.0, 1e-11};

/* ---- bounds of the log and of the value of one functional ------------------------------------------- */

static double log_low(const double *bounds, int functional) {
    return bounds[4 * functional];
}

static double log_high(const double *bounds, int functional) {
    return bounds[4 * functional + 1];
}

static double low(const double *bounds, int functional) {
    return bounds[4 * functional + 2];
}

static double high(const double *bounds, int functional) {
    return bounds[4 * functional + 3];
}

static void put(double *bounds, int functional, double lower, double upper, double slack) {
    double *out = bounds + 4 * functional;
    out[0] = lower;
    out[1] = upper;
    /* NaN, where a bound is not known, gives 0 and 1 */
    out[2] = lower > -INFINITY ? pe_d_exp(lower) * (1.0 - slack) : 0.0;
    out[3] = upper < 0.0 ? fmin(fmax(pe_d_exp(upper) * (1.0 + slack), LEAST), 1.0) : 1.0;
}

void pe_bounds_of_rows(size_t n, const double *rows, double slack, double *bounds) {
    for (size_t i = 0; i < n; i++, rows += PE_ROW, bounds += PE_BOUNDS)
        for (int f = 0; f < PE_FUNCTIONALS; f++) {
            const double value = rows[2 + f], error = rows[ERRORS + f];
            if (error <= 1.0 && isfinite(value)) {
                const double rounded = slack * (1.0 + fabs(value)); /* of the sums of logs */
                put(bounds, f, value + pe_d_log1p(-error) - rounded,
                    fmin(value + pe_d_log1p(error) + rounded, 0.0), slack);
            } else put(bounds, f, -INFINITY, 0.0, slack);
        }
}

/* ---- a level of the trade-off function --------------------------------------------------------------- */

/* Lower and upper bound of a_c - alpha, where a_c = A(S > c) is the level of the test at c. */
static double level_low(const double *bounds, int functional, double tail) {
    return functional == PE_A_ABOVE ? low(bounds, functional) - tail : tail - high(bounds, functional);
}

static double level_high(const double *bounds, int functional, double tail) {
    return functional == PE_A_ABOVE ? high(bounds, functional) - tail : tail - low(bounds, functional);
}

/* A lower bound of alpha / a_c, at most 1: gamma is concave and at least 0 at 0. */
static double share_of_level(const double *bounds, int functional, double tail) {
    const double most = functional == PE_A_ABOVE ? high(bounds, functional) : 1.0 - low(bounds, functional);
    return fmin((functional == PE_A_ABOVE ? tail : 1.0 - tail) / most, 1.0);
}

/* x e^c, also where e^c overflows and the product does not */
static double times_exp(double x, double c) {
    return x == 0.0 ? 0.0 : copysign(pe_d_exp(pe_d_log(fabs(x)) + c), x);
}

void pe_bounds_line(size_t n, int functional, const double *tail, const double *c, const double *bounds,
                    double slack, double *beta, double *gamma) {
    for (size_t i = 0; i < n; i++, bounds += PE_BOUNDS) {
        double moved = times_exp(level_low(bounds, functional, tail[i]), c[i]);
        moved -= fabs(moved) * (slack * (LARGEST_LOG + fabs(c[i])));
        const double least = low(bounds, PE_B_BELOW) + moved;
        beta[i] = least > 0.0 ? least * (1.0 - slack) : 0.0; /* also if NaN */
        const double most = (high(bounds, PE_B_ABOVE) - moved) * (1.0 + slack);
        gamma[i] = isnan(most) ? INFINITY : most;
    }
}

size_t pe_bounds_aside(size_t n, int functional, const double *tail, const double *c, const double *bounds,
                       size_t attempt, const double *there, double *beyond, double *at) {
    size_t open = 0;
    for (size_t i = 0; i < n; i++) {
        const double *row = bounds + PE_BOUNDS * i;
        if (attempt == 0) beyond[i] = INFINITY;
        else if (!isnan(at[i]) && level_high(there + PE_BOUNDS * i, functional, tail[i]) <= 0.0)
            beyond[i] = at[i];
        const double density = fmin(log_low(row, PE_B_BELOW), log_low(row, PE_B_ABOVE));
        const double least = log_low(row, functional), most = log_high(row, functional);
        const double value = isnan(density) ? NAN : fmin(1.0, pe_d_exp(least - density));
        const int is_open =
            level_high(row, functional, tail[i]) > 0.0 && isinf(beyond[i]) && attempt < PE_ASIDES;
        at[i] = is_open ? c[i] + ASIDE[attempt] * value + 4.0 * (most - least) : NAN;
        if (!isfinite(at[i])) at[i] = NAN;
        open += !isnan(at[i]);
    }
    return open;
}

void pe_bounds_chord(size_t n, int functional, const double *tail, const double *beyond, const double *bounds,
                     double slack, double *beta, double *gamma) {
    for (size_t i = 0; i < n; i++, bounds += PE_BOUNDS) {
        const double most = level_high(bounds, functional, tail[i]);
        double moved = most <= 0.0 ? 0.0 : times_exp(most, beyond[i]);
        moved *= 1.0 + slack * (LARGEST_LOG + (isfinite(beyond[i]) ? fabs(beyond[i]) : 0.0));
        const double upper = (high(bounds, PE_B_BELOW) + moved) * (1.0 + slack);
        const double lower = low(bounds, PE_B_ABOVE) - moved;
        beta[i] = isnan(upper) ? INFINITY : upper;
        gamma[i] = lower > 0.0 ? lower * (1.0 - slack) : 0.0; /* also if NaN */
        const double through_0 = low(bounds, PE_B_ABOVE) * share_of_level(bounds, functional, tail[i]);
        gamma[i] = fmax(gamma[i], through_0 * (1.0 - 4.0 * slack));
    }
}

void pe_bounds_best(size_t n, int functional, const double *tail, const double *rows, double *beta,
                    double *gamma) {
    for (size_t i = 0; i < n; i++, rows += PE_ROW) {
        const double level = pe_d_exp(rows[2 + functional]);
        const double moved = times_exp(functional == PE_A_ABOVE ? level - tail[i] : tail[i] - level, rows[0]);
        const double log_below = rows[2 + PE_B_BELOW], log_above = rows[2 + PE_B_ABOVE];
        double below = pe_d_exp(log_below), above = pe_d_exp(log_above);
        /* both sum to 1: one that is known better gives the other, where that leaves it more digits */
        const double error = below * rows[ERRORS + PE_B_BELOW], other = above * rows[ERRORS + PE_B_ABOVE];
        if (other > error + ROUNDED) above = -pe_d_expm1(log_below);
        if (error > other + ROUNDED) below = -pe_d_expm1(log_above);
        beta[i] = below + moved;
        gamma[i] = above - moved;
    }
}

void pe_bounds_cross(size_t n, double *beta_low, double *beta_high, double *gamma_low, double *gamma_high) {
    for (size_t i = 0; i < n; i++) {
        gamma_low[i] = fmax(gamma_low[i], nextafter(1.0 - beta_high[i], 0.0));
        beta_low[i] = fmax(beta_low[i], nextafter(1.0 - gamma_high[i], 0.0));
        beta_high[i] = fmin(beta_high[i], nextafter(1.0 - gamma_low[i], 2.0));
        gamma_high[i] = fmin(gamma_high[i], nextafter(1.0 - beta_low[i], 2.0));
        beta_high[i] = fmin(beta_high[i], 1.0);
        gamma_high[i] = fmin(gamma_high[i], 1.0);
    }
}

int pe_bounds_level(int functional, double tail, const double *row, double slack, double *out) {
    double bounds[PE_BOUNDS], beyond, at;
    pe_bounds_of_rows(1, row, slack, bounds);
    if (pe_bounds_aside(1, functional, &tail, row, bounds, 0, NULL, &beyond, &at)) return 0;
    pe_bounds_line(1, functional, &tail, row, bounds, slack, &out[0], &out[3]);
    pe_bounds_chord(1, functional, &tail, &beyond, bounds, slack, &out[1], &out[2]);
    pe_bounds_cross(1, &out[0], &out[1], &out[2], &out[3]);
    pe_bounds_best(1, functional, &tail, row, &out[4], &out[5]);
    return 1;
}

void pe_bounds_gain(size_t n, const double *c, const double *bounds, double slack, double *gain) {
    static const double STEEPEST = 700.0; /* log of the largest slope for which a bound is formed */
    for (size_t i = 0; i < n; i++, bounds += PE_BOUNDS) {
        const double weight = pe_d_exp(fmin(fabs(c[i]), STEEPEST)) * (1.0 + slack);
        const int more = c[i] >= 0.0 ? PE_B_ABOVE : PE_A_BELOW, less = c[i] >= 0.0 ? PE_A_ABOVE : PE_B_BELOW;
        gain[i] = (low(bounds, more) - weight * high(bounds, less)) * (1.0 - slack);
    }
}

/* ---- epsilon ------------------------------------------------------------------------------------------- */

void pe_bounds_tangent(size_t n, const double *delta, const double *c, const double *bounds, double slack,
                       double *lower, double *step) {
    for (size_t i = 0; i < n; i++, bounds += PE_BOUNDS) {
        const double start = -c[i], least = low(bounds, PE_PROFILE), height = least - delta[i];
        const double slope = height >= 0.0 ? log_high(bounds, PE_B_BELOW) : log_low(bounds, PE_B_BELOW);
        const double gained = height * pe_d_exp(-slope - start);
        /* log1p of less than -1/2 would lose digits */
        const double way = gained > -0.5 ? pe_d_log1p(gained) : NAN;
        const double moved = (start + way) - slack * (4.0 * fabs(start) + LARGEST_LOG * fabs(way));
        lower[i] = isfinite(moved) && moved > 0.0 ? moved : 0.0;
        const double log_width = pe_d_log((high(bounds, PE_PROFILE) - least) + fabs(height));
        const double first = 2.0 * pe_d_exp(log_width - log_low(bounds, PE_B_BELOW) - start);
        step[i] = (isfinite(first) ? first : 0.0) + 16.0 * slack * fabs(start);
    }
}

void pe_bounds_best_epsilon(size_t n, const double *delta, const double *rows, double *epsilon) {
    for (size_t i = 0; i < n; i++, rows += PE_ROW) {
        const double height = pe_d_exp(rows[2 + PE_PROFILE]) - delta[i];
        epsilon[i] = pe_d_log1p(height * pe_d_exp(rows[0] - rows[2 + PE_B_BELOW])) - rows[0];
    }
}

int pe_bounds_epsilon(double delta, const double *row, double slack, double *out) {
    double bounds[PE_BOUNDS], step;
    pe_bounds_of_rows(1, row, slack, bounds);
    pe_bounds_tangent(1, &delta, row, bounds, slack, &out[0], &step);
    out[1] = -row[0];
    pe_bounds_best_epsilon(1, &delta, row, &out[2]);
    return out[0] > 0.0 && out[0] > out[1] - 2.0 * step && high(bounds, PE_PROFILE) <= delta;
}
