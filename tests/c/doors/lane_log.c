/* The functions of csrc/lane_log.h on arrays, for tests/test_lane_log.py. */
#include <stddef.h>

#include "lane_log.h"

void log_next_to_1(size_t n, const double *a, const double *b, double *re, double *im);
void argument(size_t n, const double *x, const double *y, double *out);
void exp_less_1(size_t n, const double *x, double *out);
void log_above_1(size_t n, const double *r, double *out);

void log_next_to_1(size_t n, const double *a, const double *b, double *re, double *im) {
    for (size_t i = 0; i < n; i++) pe_vlog1p(a[i], b[i], &re[i], &im[i]);
}

void argument(size_t n, const double *x, const double *y, double *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_vargument(x[i], y[i]);
}

void exp_less_1(size_t n, const double *x, double *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_vexpm1(x[i], pe_vexp(x[i]));
}

void log_above_1(size_t n, const double *r, double *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_vlog1p_real(r[i], 1.0 + r[i]);
}
