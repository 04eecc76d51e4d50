/* What the programs that run the kernels under the sanitizers share (extremes/, fuzz/, threads/). */
#ifndef PYENGINE_CHECKS_H
#define PYENGINE_CHECKS_H

#include "pyengine.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

static const double EXTREMES[] = {
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    0.7,
    -0.7,
    6.0,
    -6.0,
    38.0,
    -38.0,
    40.0,
    -40.0,
    0.075,
    0.925,
    4.9406564584124654e-324,
    -4.9406564584124654e-324,
    DBL_MIN,
    -DBL_MIN,
    DBL_EPSILON,
    -DBL_EPSILON,
    1.0 - DBL_EPSILON / 2,
    1.0 + DBL_EPSILON,
    1e-300,
    -1e-300,
    1e20,
    -1e20,
    1e154,
    -1e154,
    1e300,
    -1e300,
    DBL_MAX,
    -DBL_MAX,
    INFINITY,
    -INFINITY,
    NAN,
};

/* Exactly n doubles, so that a read or write beyond them is caught; zeros, as the compiler cannot know
   that kernels read nothing of an empty array. */
static inline double *allocate(size_t n) {
    double *block = calloc(n + (n == 0), sizeof(double));
    if (block == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    return block;
}

/* Whether two doubles have other bits; NaNs are equal. */
static inline int differ(double a, double b) {
    return isnan(a) ? !isnan(b) : memcmp(&a, &b, sizeof a) != 0;
}

/* Functions of three arguments with strides, so that one table holds them all. */
typedef size_t (*ternary_form)(int, size_t, const char *, ptrdiff_t, const char *, ptrdiff_t, const char *,
                               ptrdiff_t, char *, ptrdiff_t);

static inline size_t relaxed(int what, size_t n, const char *p, ptrdiff_t sp, const char *d, ptrdiff_t sd,
                             const char *m, ptrdiff_t sm, char *out, ptrdiff_t so) {
    return pe_relaxed_strided(what & 3, what >> 2, n, p, sp, d, sd, m, sm, out, so);
}

/* Four arguments: the third also takes the place of the fourth. */
static inline size_t one_step(int what, size_t count, const char *p, ptrdiff_t sp, const char *d,
                              ptrdiff_t sd, const char *n, ptrdiff_t sn, char *out, ptrdiff_t so) {
    return pe_one_step_sgd_strided(what, count, p, sp, d, sd, n, sn, n, sn, out, so);
}

/* Which rule a row of the composed loss breaks, 0 if none: a failure is a row of NaN, probabilities are
 * at most 1 and those of both tails add up to 1 within the errors that the row claims. */
static inline int row_is_wrong(const double *row) {
    const double *value = row + 2, *error = row + 2 + PE_FUNCTIONALS;
    int failed = 1;
    for (size_t k = 0; k < PE_ROW; ++k)
        if (!isnan(row[k])) failed = 0;
    if (failed || isnan(row[0])) return 0; /* no answer, or no question */
    for (size_t q = 0; q < PE_FUNCTIONALS; ++q) {
        if (!(error[q] >= 0.0) && !isnan(value[q])) return 1;
        if (error[q] < 1e-6 && !(value[q] <= error[q])) return 2;
    }
    for (size_t q = 0; q < PE_PROFILE; q += 2) { /* both tails under A, then under B */
        const double above = exp(value[q]), below = exp(value[q + 1]);
        const double allowed = above * error[q] + below * error[q + 1] + 8.0 * DBL_EPSILON;
        if (error[q] < 1e-6 && error[q + 1] < 1e-6 && !(fabs(above + below - 1.0) <= allowed)) return 3;
    }
    return 0;
}

#endif
