/* The functions of csrc/arithmetic.h on arrays of sums of two doubles, for tests/test_arithmetic.py. */
#include <stddef.h>

#include "arithmetic.h"

void dd_exp(size_t n, const pe_dd *x, pe_dd *out);
void dd_exp_tail(size_t n, const pe_dd *x, pe_dd *out);
void dd_log(size_t n, const pe_dd *x, pe_dd *out);
void dd_log1p(size_t n, const pe_dd *x, pe_dd *out);
void dd_log_1_less_exp(size_t n, const pe_dd *x, pe_dd *out);
void dd_log_expm1(size_t n, const pe_dd *y, pe_dd *out);
void dd_turn(size_t n, const pe_dd *x, pe_dd *cosine, pe_dd *sine);
void dd_turn_parts(size_t n, const pe_dd *x, pe_dd *of_cosine, pe_dd *of_sine);
void dd_angle(size_t n, const pe_dd *x, const pe_dd *y, pe_dd *out);
void dd_operations(size_t n, const pe_dd *a, const pe_dd *b, pe_dd *out);

void dd_exp(size_t n, const pe_dd *x, pe_dd *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_dd_exp(x[i]);
}

void dd_exp_tail(size_t n, const pe_dd *x, pe_dd *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_dd_exp_tail(x[i]);
}

void dd_log(size_t n, const pe_dd *x, pe_dd *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_dd_log(x[i]);
}

void dd_log1p(size_t n, const pe_dd *x, pe_dd *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_dd_log1p(x[i]);
}

void dd_log_1_less_exp(size_t n, const pe_dd *x, pe_dd *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_dd_log_1_less_exp(x[i]);
}

void dd_log_expm1(size_t n, const pe_dd *y, pe_dd *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_dd_log_expm1(pe_dd_log(y[i]), y[i]);
}

void dd_turn(size_t n, const pe_dd *x, pe_dd *cosine, pe_dd *sine) {
    for (size_t i = 0; i < n; i++) cosine[i] = pe_dd_turn(x[i], &sine[i]);
}

void dd_turn_parts(size_t n, const pe_dd *x, pe_dd *of_cosine, pe_dd *of_sine) {
    for (size_t i = 0; i < n; i++) of_cosine[i] = pe_dd_turn_parts(x[i], &of_sine[i]);
}

void dd_angle(size_t n, const pe_dd *x, const pe_dd *y, pe_dd *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_dd_angle(x[i], y[i]);
}

/* Sum, difference, product and quotient, four numbers each */
void dd_operations(size_t n, const pe_dd *a, const pe_dd *b, pe_dd *out) {
    for (size_t i = 0; i < n; i++, out += 4) {
        out[0] = pe_dd_add(a[i], b[i]);
        out[1] = pe_dd_sub(a[i], b[i]);
        out[2] = pe_dd_mul(a[i], b[i]);
        out[3] = pe_dd_div(a[i], b[i]);
    }
}
