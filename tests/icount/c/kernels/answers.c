#include "kernel.h"

enum { COUNT = 2048 };

static double *alpha, *rows, *out;

static void prepare(void) {
    alpha = icount_doubles(COUNT);
    rows = icount_doubles(COUNT * PE_ROW);
    out = icount_doubles(COUNT * 6);
    for (size_t i = 0; i < COUNT; i++) {
        double *row = rows + i * PE_ROW;
        alpha[i] = icount_between(0.0, 1.0, i);
        for (size_t f = 0; f < PE_FUNCTIONALS; f++) {
            row[2 + f] = icount_between(-30.0, -0.01, i + f);
            row[2 + PE_FUNCTIONALS + f] = 1e-13;
        }
    }
}

static void trade_off_answers(void) {
    pe_trade_off_answers(COUNT, alpha, rows, out);
    icount_require_numbers(out, COUNT * 6);
}
KERNEL("trade_off_answers", prepare, trade_off_answers);

static void profile_answers(void) {
    pe_profile_answers(COUNT, rows, out);
    icount_require_numbers(out, COUNT * 3);
}
KERNEL("profile_answers", prepare, profile_answers);

enum { PANELS = 32 };

static double *coefficients;

static void prepare_panels(void) {
    alpha = icount_doubles(COUNT);
    coefficients = icount_doubles(PANELS * PE_CHEBYSHEV);
    out = icount_doubles(COUNT);
    for (size_t i = 0; i < COUNT; i++) alpha[i] = icount_between(0.0, 1.0, i);
    for (size_t i = 0; i < PANELS * PE_CHEBYSHEV; i++) coefficients[i] = icount_between(-1.0, 1.0, i);
}

static void chebyshev_panels(void) {
    pe_chebyshev_panels(COUNT, alpha, 1.0 / PANELS, 0, PANELS, coefficients, 1, out);
    icount_require_numbers(out, COUNT);
}
KERNEL("chebyshev_panels", prepare_panels, chebyshev_panels);
