/* Tails and profiles of laws of finitely many losses, from their masses and the sums of masses above and up to each
 * (docs/theory/finite.md, Lemma 1).
 * Interface in answers.h; pyengine.engines.exact.finite makes the sums. */

#include <float.h>
#include <math.h>

#include "answers.h"
#include "doubles.h"

static const double UNIT = DBL_EPSILON / 2;
static const double SUBNORMAL = 2e-317; /* absolute rounding of a sum of many masses below the normal range */
enum { BLOCK = 64 }; /* atoms whose weights are computed together */
enum { A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERROR, SHIFT, TAILS };

/* Number of losses <= c */
static size_t losses_to(const pe_finite_law *law, double c) {
    size_t first = 0, last = law->n;
    while (first < last) {
        const size_t middle = (first + last) / 2;
        if (law->loss[middle] <= c) first = middle + 1;
        else last = middle;
    }
    return first;
}

static void masses_at(const pe_finite_law *law, double c, double *masses) {
    const size_t at = losses_to(law, c);
    masses[A_ABOVE] = law->a_above[at];
    masses[A_BELOW] = law->a_below[at];
    masses[B_ABOVE] = law->b_above[at];
    masses[B_BELOW] = law->b_below[at];
}

int pe_finite_law_tails(void *law, size_t n, const double *c, double *tails) {
    const pe_finite_law *of = law;
    for (size_t i = 0; i < n; i++) {
        double masses[4], least = 1.0;
        masses_at(of, c[i], masses);
        for (size_t part = 0; part < 4; part++) {
            tails[part * n + i] = masses[part];
            if (masses[part] > 0.0) least = fmin(least, masses[part]);
        }
        tails[ERROR * n + i] = of->error - of->log_error * pe_d_log(least);
        tails[SHIFT * n + i] = of->shift;
    }
    return PE_OK;
}

int pe_finite_law_roughly(void *law, double c, double *masses) {
    masses_at(law, c, masses);
    return PE_OK;
}

/* Sum over the first n atoms of A's mass times (1 - e^(epsilon + loss))^+ */
static double gains(const pe_finite_law *law, size_t n, double epsilon, const double *low) {
    double sum = 0.0, left = 0.0;
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t size = n - first < BLOCK ? n - first : BLOCK;
        double gain[BLOCK];
        for (size_t i = 0; i < size; i++) {
            const pe_dd at = pe_two_sum(epsilon, law->loss[first + i]);
            const double exponent = low ? at.h + (at.l + low[first + i]) : at.h;
            gain[i] = law->a[first + i] * -pe_d_expm1(exponent < 0.0 ? exponent : 0.0);
        }
        for (size_t i = 0; i < size; i++) {
            const pe_dd both = pe_two_sum(sum, gain[i]);
            sum = both.h;
            left += both.l;
        }
    }
    return sum + left;
}

/* e^x times a mass, which is at most 1 and may be small */
static double raised(double mass, double x) {
    const double root = pe_d_exp(0.5 * x), value = mass > 0.0 ? mass * root * root : 0.0;
    return value < 1.0 ? value : 1.0;
}

static int profile_at(pe_finite_law *law, double epsilon, double *value, double *error, double *fall) {
    int status = PE_OK;
    const double shift = law->shift + 4.0 * UNIT * fabs(epsilon);
    const size_t near = losses_to(law, shift - epsilon);
    const double size = fmax(fabs(law->loss[0]), fabs(law->loss[law->n - 1])) + fabs(epsilon);
    *value = gains(law, near, epsilon, NULL);
    /* 1 - e^x has slope at most 1 for x <= 0: an error s of the losses costs at most s A(S <= -epsilon + s) */
    *error = 1.01 * shift * law->a_up_to[near];
    if (*error > PE_WEAK * *value && pe_low_parts_known(&law->parts, &status)) {
        *value = gains(law, near, epsilon, law->parts.low);
        *error = 1.01 * (law->parts.error + 8.0 * UNIT * UNIT * size) * law->a_up_to[near];
    }
    /* with weights in [0, 1], a sum keeps the relative error of its masses */
    const double depth = *value > 0.0 ? fmax(-pe_d_log(*value), 0.0) : 0.0;
    *error += (1.5 * (law->error + law->log_error * depth) + 64.0 * UNIT) * *value;
    if (shift - epsilon > law->least) *error += SUBNORMAL;
    *fall = raised(law->b_below[losses_to(law, -epsilon)], epsilon);
    return status;
}

/* Map: the profile of a law of finitely many losses | test_exact | theory/finite */
int pe_finite_law_profile(void *law, size_t n, const double *epsilon, const double *low, double *out) {
    (void)low;
    int status = PE_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = profile_at(law, epsilon[i], out + i, out + n + i, out + 2 * n + i);
    return status;
}

/* A(S <= -epsilon) - e^epsilon B(S <= -epsilon) for the first k atoms, at the epsilon of another one */
static double about(const pe_finite_law *law, size_t k, double epsilon) {
    return law->a_up_to[k] - raised(law->b_below[k], epsilon);
}

int pe_finite_law_start(void *law, double delta, double *epsilon) {
    const pe_finite_law *of = law;
    size_t first = 0, last = of->n;
    /* the first atoms, whose profile is delta before the next atom counts */
    while (first < last) {
        const size_t middle = (first + last) / 2;
        if (about(of, middle, -of->loss[middle]) < delta) first = middle + 1;
        else last = middle;
    }
    *epsilon = pe_d_log((of->a_up_to[first] - delta) / of->b_below[first]);
    return PE_OK;
}
