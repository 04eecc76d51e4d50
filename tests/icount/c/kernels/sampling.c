#include "kernel.h"

enum { COUNT = 1024, CELLS = 64 };

static double *coefficients, *out;

static void prepare(void) {
    coefficients = icount_doubles(4 * CELLS);
    out = icount_doubles(COUNT);
    for (size_t i = 0; i < 4 * CELLS; i++) coefficients[i] = icount_between(0.0, 1.0, i);
}

static void sample_losses(void) {
    const pe_loss_table table = {10, -8.0, CELLS / 16.0, CELLS - 1e-9, coefficients};
    pe_sample_losses(7, 0, COUNT, 1, &table, out);
    icount_require_numbers(out, COUNT);
}
KERNEL("sample_losses", prepare, sample_losses);
