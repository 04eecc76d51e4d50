/* Bounds for sampled Gaussian steps that need no transform: the largest loss, the profile at 0, and levels whose test
 * takes only outcomes next to the largest likelihood ratio.  Interface in answers.h; called by plan.c and
 * pyengine/engines/gaussian.py.  Proofs: docs/theory/conversions.md, Lemmas 4 and 5. */

#include <math.h>

#include "answers.h"
#include "arithmetic.h"
#include "doubles.h"
#include "functions.h"
#include "normal.h"

static const double U = 0x1p-53; /* unit roundoff */
static const double ROUNDED = 0x1p-49; /* relative rounding of a bound's few operations */

/* -sum of n log(1 - p), with a lower and an upper bound; infinite if a rate is 1. */
void pe_largest_loss(size_t n, const double *p, const double *steps, double *out) {
    pe_dd sum = pe_dd_of(0.0);
    double number = 0.0;
    int is_infinite = 0;
    for (size_t i = 0; i < n; i++) {
        is_infinite |= p[i] == 1.0;
        sum = pe_dd_sub(sum, pe_two_prod(steps[i], pe_d_log1p(-p[i])));
        number += steps[i];
    }
    const double value = is_infinite ? INFINITY : sum.h, off = is_infinite ? 0.0 : 16.0 * U * value;
    out[0] = value;
    out[1] = value - (off + number * 0x1p-1074);
    out[2] = value + (off + number * 0x1p-1074);
}

/* Upper bound of erf(x) for x > 0: for x < 1/2 a partial sum of its alternating series, which ends with a positive
 * term. */
static double erf_above(double x) {
    enum { TERMS = 8 };
    if (x >= 0.5) return 1.0 - pe_erfc(x) * (1.0 - 0x1p-48);
    const double square = x * x;
    double sum = 0.0;
    for (int k = TERMS; k > 0; k--) sum = (1.0 / (2 * k + 1) - sum) * square / k;
    return 1.12837916709551257390 * x * (1.0 - sum);
}

double pe_most_at_zero(size_t n, const double *noise, const double *p, const double *steps) {
    pe_dd apart = pe_dd_of(0.0), none = pe_dd_of(0.0);
    int is_sampled = 1;
    for (size_t i = 0; i < n; i++) {
        apart = pe_dd_add(apart, pe_two_prod(steps[i], p[i] * erf_above(0.35355339059327376220 / noise[i])));
        is_sampled &= p[i] != 1.0;
        if (is_sampled) none = pe_dd_add(none, pe_two_prod(steps[i], pe_d_log1p(-p[i])));
    }
    const double most = is_sampled ? fmin(apart.h, -pe_d_expm1(none.h)) : apart.h;
    return fmin(most * (1.0 + ROUNDED) + 0x1p-1000, 1.0);
}

/* ---- levels next to the largest ratio ----------------------------------------------------------------- */

enum { DISTANCES = 3, MOST_STEPS = 100 }; /* for more steps the levels concerned underflow */
/* How far below the largest loss an outcome may be: the relative width of the bounds. */
static const double APART[DISTANCES] = {0x1p-48, 0x1p-44, 0x1p-40};
static const double INWARDS = 1e-9; /* margin for logarithms whose relative error is some 1e-14 */
static const double SMALLEST = -700.0; /* log of the smallest level: smaller doubles lose digits */

/* Log of a lower bound of the probability under A that the total loss is within `apart` of its end. */
static double log_probability(size_t n, const double *noise, const double *p, const double *steps,
                              int reversed, double number, double apart) {
    const double log_excess = pe_d_log(pe_d_expm1(apart / number));
    double total = 0.0;
    for (size_t i = 0; i < n; i++) {
        /* up to this z the loss s above its end, e^s - 1 = p/(1 - p) e^(mu z - mu^2/2), is below apart/number */
        const double log_rest = pe_d_log1p(-p[i]);
        const double z = (log_excess + log_rest - pe_d_log(p[i])) * noise[i] + 0.5 / noise[i];
        /* if A is the law with the record: only outcomes in which no step samples it are counted */
        total += steps[i] * (pe_log_ndtr(z - INWARDS * (1.0 + fabs(z))) + (reversed ? log_rest : 0.0));
    }
    return total * (1.0 + INWARDS);
}

double pe_log_next_to_largest(size_t n, const double *noise, const double *p, const double *steps,
                              int reversed) {
    double number = 0.0;
    int is_sampled = 1;
    for (size_t i = 0; i < n; i++) {
        number += steps[i];
        is_sampled &= p[i] != 1.0;
    }
    if (!(number > 0.0 && number <= MOST_STEPS && is_sampled)) return -INFINITY;
    return log_probability(n, noise, p, steps, reversed, number, APART[DISTANCES - 1]);
}

/* The answer at one level, whose log is known to be small enough. */
static void answer_level(size_t n, const double *noise, const double *p, const double *steps, int reversed,
                         double log_tail, double *out) {
    double number = 0.0, largest[3];
    for (size_t i = 0; i < n; i++) number += steps[i];
    pe_largest_loss(n, p, steps, largest);
    int at = 0;
    while (at < DISTANCES - 1 &&
           !(log_tail < log_probability(n, noise, p, steps, reversed, number, APART[at])))
        at++;
    const double least = largest[1] - APART[at], most = largest[2];
    const double moved = ROUNDED * (1.0 + fabs(log_tail) + most);
    const double ratio[2] = {reversed ? least : -most, reversed ? most : -least};
    const double low = pe_d_exp(log_tail + ratio[0] - moved) * (1.0 - ROUNDED);
    const double high = fmin(pe_d_exp(log_tail + ratio[1] + moved) * (1.0 + ROUNDED), 1.0);
    const double own = low + 0.5 * (high - low);
    double *alike = out + (reversed ? 2 : 0), *rest = out + (reversed ? 0 : 2);
    alike[0] = low;
    alike[1] = high;
    rest[0] = fmax(nextafter(1.0 - high, 0.0), 0.0);
    rest[1] = fmin(nextafter(1.0 - low, 2.0), 1.0);
    out[4] = reversed ? 1.0 - own : own;
    out[5] = reversed ? own : 1.0 - own;
    out[6] = 0.5 * (ratio[0] + ratio[1]);
}

size_t pe_next_to_largest(size_t n, const double *noise, const double *p, const double *steps, int reversed,
                          int functional, size_t levels, const double *log_tail, double *out) {
    const int serves = functional == (reversed ? PE_A_ABOVE : PE_A_BELOW);
    const double likely = serves ? pe_log_next_to_largest(n, noise, p, steps, reversed) : -INFINITY;
    size_t answered = 0;
    for (size_t i = 0; i < levels; i++, out += 7) {
        const int is_known = log_tail[i] > SMALLEST && log_tail[i] < likely;
        if (is_known) answer_level(n, noise, p, steps, reversed, log_tail[i], out);
        else out[0] = NAN;
        answered += (size_t)is_known;
    }
    return answered;
}
