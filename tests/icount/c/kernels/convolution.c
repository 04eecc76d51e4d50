#include "kernel.h"

enum { COUNT = 128, MAX_PANELS = 4000 };

static const double SHIFT = 1.0, RATIO = 0.01 / 0.99, REST = 0.0, P = 0.01, DEEPEST = -160.0;
static pe_law *step;
static double *c, *rows;

static pe_law *one_step(void) {
    pe_law *law;
    const int made = pe_law_step(1, &SHIFT, &RATIO, &REST, log1p(-P), 0.0, DEEPEST, MAX_PANELS, &law);
    icount_require(made == PE_OK, "the law of one step is made");
    return law;
}

static void prepare(void) {
    step = one_step();
    c = icount_doubles(COUNT);
    rows = icount_doubles(COUNT * PE_ROW);
    for (size_t i = 0; i < COUNT; i++) c[i] = icount_between(0.0, 3.0, i);
}

static void convolution_step(void) {
    pe_law_free(one_step());
}
KERNEL("convolution_step", prepare, convolution_step);

static void convolution_cell(void) {
    pe_law *sum;
    const int made = pe_law_convolve(step, step, MAX_PANELS, &sum);
    icount_require(made == PE_OK, "the law of two steps is made");
    pe_law_free(sum);
}
KERNEL("convolution_cell", prepare, convolution_cell);

static void convolution_at(void) {
    pe_law_at(step, 0, COUNT, c, rows);
    for (size_t i = 0; i < COUNT; i++)
        icount_require(rows[i * PE_ROW + 2 + PE_PROFILE] <= 1e-9, "values are probabilities");
}
KERNEL("convolution_at", prepare, convolution_at);
