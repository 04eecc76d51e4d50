#include "kernel.h"

enum { COUNT = 4096 };

static double *in, *out;

/* Both tails and the middle, as the quantiles see them: probabilities and their logarithms. */
static void fill(double low, double high) {
    in = icount_doubles(COUNT);
    out = icount_doubles(COUNT);
    for (size_t i = 0; i < COUNT; i++) in[i] = icount_between(low, high, i);
}

static void arguments(void) {
    fill(-37.0, 8.0);
}

static void probabilities(void) {
    fill(-690.0, 0.0);
    for (size_t i = 0; i < COUNT; i++) in[i] = i % 2 ? exp(in[i]) : 1.0 + in[i] / 690.0;
}

static void logarithms(void) {
    fill(-7.0, 9.0);
    for (size_t i = 0; i < COUNT; i++) in[i] = -exp(in[i]);
}

static void normal_pdf(void) {
    pe_normal_pdf_array(in, out, COUNT);
    icount_require_numbers(out, COUNT);
}
KERNEL("normal_pdf", arguments, normal_pdf);

static void ndtr(void) {
    pe_ndtr_array(in, out, COUNT);
    icount_require_numbers(out, COUNT);
}
KERNEL("ndtr", arguments, ndtr);

static void log_ndtr(void) {
    pe_log_ndtr_array(in, out, COUNT);
    icount_require_numbers(out, COUNT);
}
KERNEL("log_ndtr", arguments, log_ndtr);

static void ndtri(void) {
    pe_ndtri_array(in, out, COUNT);
    icount_require_numbers(out, COUNT);
}
KERNEL("ndtri", probabilities, ndtri);

static void ndtri_exp(void) {
    pe_ndtri_exp_array(in, out, COUNT);
    icount_require_numbers(out, COUNT);
}
KERNEL("ndtri_exp", logarithms, ndtri_exp);
