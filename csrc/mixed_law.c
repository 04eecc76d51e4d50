/* Finite losses beside a law in closed form: its masses and profiles, averaged over the finite losses
 * (docs/theory/finite.md).  Interface in answers.h; pyengine.engines.exact.mixed has the losses. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "answers.h"
#include "doubles.h"

static const double UNIT = DBL_EPSILON / 2;
static const double SUBNORMAL = 2e-317; /* absolute error of sums with terms below the normal doubles */
enum { A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERROR, SHIFT, TAILS, PARTS = 3 };
enum { MOST_POINTS = 1 << 16 }; /* of one call of the law, to bound the memory */

static size_t rows_of(const pe_mixed_law *law, size_t n) {
    const size_t most = law->n < MOST_POINTS ? MOST_POINTS / law->n : 1;
    return n < most ? n : most;
}

/* Averages of the law's masses over those of both laws at n thresholds; `found` has room for all points */
static int tails_at(const pe_mixed_law *law, size_t n, const double *c, double *point, double *found,
                    double *out, size_t apart) {
    const size_t size = law->n, all = n * size;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < size; j++) point[i * size + j] = c[i] - law->loss[j];
    const int status = law->tails(law->law, all, point, found);
    for (size_t i = 0; i < n && !status; i++) {
        double sums[TAILS] = {0.0};
        for (size_t j = 0; j < size; j++) {
            const double *at = found + i * size + j;
            sums[A_ABOVE] += at[A_ABOVE * all] * law->a[j];
            sums[A_BELOW] += at[A_BELOW * all] * law->a[j];
            sums[B_ABOVE] += at[B_ABOVE * all] * law->b[j];
            sums[B_BELOW] += at[B_BELOW * all] * law->b[j];
            if (!(at[ERROR * all] <= sums[ERROR])) sums[ERROR] = at[ERROR * all];
            if (!(at[SHIFT * all] <= sums[SHIFT])) sums[SHIFT] = at[SHIFT * all];
        }
        sums[ERROR] += law->error + UNIT * ((double)size + 4.0);
        /* a loss errs as the log of a ratio of two masses, and c - loss is rounded */
        sums[SHIFT] += 2.0 * law->error + 8.0 * UNIT * (1.0 + fabs(c[i]) + law->largest);
        for (size_t part = 0; part < TAILS; part++) out[part * apart + i] = sums[part];
    }
    return status;
}

int pe_mixed_law_tails(void *law, size_t n, const double *c, double *tails) {
    const pe_mixed_law *of = law;
    const size_t rows = rows_of(of, n), points = rows * of->n;
    double *point = calloc((1 + TAILS) * (points + 1), sizeof *point);
    int status = point ? PE_OK : PE_NO_MEMORY;
    for (size_t i = 0; i < n && !status; i += rows) {
        const size_t some = n - i < rows ? n - i : rows;
        status = tails_at(of, some, c + i, point, point + points, tails + i, n);
    }
    free(point);
    return status;
}

int pe_mixed_law_roughly(void *law, double c, double *masses) {
    double found[TAILS];
    const int status = pe_mixed_law_tails(law, 1, &c, found);
    for (size_t part = A_ABOVE; part <= B_BELOW && !status; part++) masses[part] = found[part];
    return status;
}

/* Averages over A of the law's profiles at n epsilon, their errors and falls; with the low parts of losses if there are
 * any. */
static int averages(const pe_mixed_law *law, size_t n, const double *epsilon, const double *low,
                    double *point, double *found, double *out) {
    const size_t size = law->n, all = n * size;
    double *left = low ? point + all : NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < size; j++) {
            const pe_dd at = pe_two_sum(epsilon[i], law->loss[j]);
            point[i * size + j] = at.h;
            if (low) left[i * size + j] = at.l + low[j];
        }
    const int status = law->profile(law->law, all, point, left, found);
    for (size_t i = 0; i < n && !status; i++) {
        double sums[PARTS] = {0.0}, largest = 0.0;
        for (size_t j = 0; j < size; j++) {
            const double *at = found + i * size + j;
            for (size_t part = 0; part < PARTS; part++) sums[part] += at[part * all] * law->a[j];
            if (at[all] > 0.0) largest = 1.0;
        }
        sums[1] += SUBNORMAL * largest;
        for (size_t part = 0; part < PARTS; part++) out[part * n + i] = sums[part];
    }
    return status;
}

/* The profiles of n epsilon, which the room of `work` has place for */
static int profiles(pe_mixed_law *law, size_t n, const double *epsilon, double *work, double *out,
                    size_t apart) {
    const size_t all = n * law->n;
    double *found = work + 2 * all, *tails = found + TAILS * all, *place = tails + TAILS * n;
    double *average = place + n, own[PARTS];
    int status = averages(law, n, epsilon, NULL, work, found, average);
    for (size_t i = 0; i < n; i++) {
        const double shift = 4.0 * UNIT * (fabs(epsilon[i]) + law->largest) + 2.0 * law->error;
        place[i] = -epsilon[i] + 2.0 * shift;
    }
    if (!status) status = tails_at(law, n, place, work, found, tails, n);
    for (size_t i = 0; i < n && !status; i++) {
        const double size = fabs(epsilon[i]) + law->largest, shift = 4.0 * UNIT * size + 2.0 * law->error;
        /* a shift of the threshold changes the profile by at most the shift times A's mass below it */
        const double below = tails[A_BELOW * n + i] * (1.0 + tails[ERROR * n + i]);
        double off = shift * below;
        for (size_t part = 0; part < PARTS; part++) own[part] = average[part * n + i];
        if (own[1] + off > PE_WEAK * own[0] && pe_low_parts_known(&law->parts, &status)) {
            status = averages(law, 1, epsilon + i, law->parts.low, work, found, own);
            off = (1.01 * law->parts.error + 8.0 * UNIT * UNIT * size) * below;
        }
        const double relative = law->error + UNIT * ((double)law->n + 4.0);
        /* next to the smallest loss, the threshold may be on either side of it */
        out[i] = own[0];
        out[apart + i] = own[1] + 1.01 * relative * own[0] + off + (place[i] > law->least ? SUBNORMAL : 0.0);
        out[2 * apart + i] = own[2];
    }
    return status;
}

/* Map: the profile of finite losses beside a law in closed form | test_exact | theory/finite */
int pe_mixed_law_profile(void *law, size_t n, const double *epsilon, const double *low, double *out) {
    (void)low;
    pe_mixed_law *of = law;
    const size_t rows = rows_of(of, n);
    double *work = malloc(((2 + TAILS) * of->n + TAILS + 1 + PARTS) * (rows + 1) * sizeof *work);
    int status = work ? PE_OK : PE_NO_MEMORY;
    for (size_t i = 0; i < n && !status; i += rows)
        status = profiles(of, n - i < rows ? n - i : rows, epsilon + i, work, out + i, n);
    free(work);
    return status;
}
