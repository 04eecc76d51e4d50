/* Tails of laws of finitely many losses, from the sums of masses above and up to each (docs/theory/finite.md, Lemma 1).
 * Interface in answers.h; pyengine.engines.exact.finite makes the sums. */

#include <math.h>

#include "answers.h"
#include "doubles.h"

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
