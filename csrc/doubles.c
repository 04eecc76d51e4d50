/* The functions of doubles.h at one number and on arrays, for Python. */

#include "doubles.h"
#include "functions.h"
#include "normal.h"
#include "simd.h"
#include <stddef.h>

#if defined(__GNUC__)
#define WHOLE __attribute__((flatten)) /* a loop over a function that is called is no vector code */
#else
#define WHOLE
#endif

#define OF_ONE(name, of)                                                                                     \
    double pe_##name##_at(double x) {                                                                        \
        return of(x);                                                                                        \
    }                                                                                                        \
    WHOLE PE_CLONES void pe_##name##_array(size_t n, const double *x, double *out) {                         \
        for (size_t i = 0; i < n; i++) out[i] = of(x[i]);                                                    \
    }
#define OF_TWO(name, of)                                                                                     \
    double pe_##name##_at(double x, double y) {                                                              \
        return of(x, y);                                                                                     \
    }                                                                                                        \
    WHOLE PE_CLONES void pe_##name##_array(size_t n, const double *x, const double *y, double *out) {        \
        for (size_t i = 0; i < n; i++) out[i] = of(x[i], y[i]);                                              \
    }

OF_ONE(exp, pe_d_exp)
OF_ONE(expm1, pe_d_expm1)
OF_ONE(log, pe_d_log)
OF_ONE(log1p, pe_d_log1p)
OF_ONE(sin, pe_d_sin)
OF_ONE(cos, pe_d_cos)
OF_ONE(erfc, pe_erfc)
OF_TWO(atan2, pe_d_atan2)
OF_TWO(hypot, pe_d_hypot)
OF_TWO(pow, pe_d_pow)
OF_TWO(logaddexp, pe_d_logaddexp)

void pe_log_sums(size_t n, const double *x, double *out) {
    double sum = -INFINITY;
    for (size_t i = 0; i < n; i++) out[i] = sum = pe_d_logaddexp(sum, x[i]);
}
