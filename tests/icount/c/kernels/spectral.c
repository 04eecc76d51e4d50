/* The run of 10,000 steps of Lebeda et al. (2024), and one of many kinds of steps. */
#include "kernel.h"

enum { COUNT = 512, KINDS = 50 };

static const double NOISE = 0.8, P = 0.001, STEPS = 10000.0, COST_LIMIT = 2e8;
static double *log_target, *c, *rows, *noises, *ps, *ones;
static pe_pair *kept;

static void require_values(size_t n, int functional) {
    for (size_t i = 0; i < n; i++)
        icount_require(pe_row_good(rows + i * PE_ROW, functional, 1e-11, 1e-9), "rows are accurate");
}

static void inputs(void) {
    log_target = icount_doubles(COUNT);
    c = icount_doubles(COUNT);
    rows = icount_doubles(COUNT * PE_ROW);
    noises = icount_doubles(KINDS);
    ps = icount_doubles(KINDS);
    ones = icount_doubles(KINDS);
    for (size_t i = 0; i < COUNT; i++) {
        log_target[i] = icount_between(-20.0, -0.7, i);
        c[i] = icount_between(0.0, 6.0, i);
    }
    for (size_t i = 0; i < KINDS; i++) {
        noises[i] = 2.0 + 0.04 * (double)i;
        ps[i] = 0.05;
        ones[i] = 4.0;
    }
}

static void with_contours(void) {
    inputs();
    const int made = pe_pair_new(1, &NOISE, &P, &STEPS, 0, COST_LIMIT, &kept);
    icount_require(made == PE_OK, "the pair is made");
    for (size_t i = 0; i < COUNT; i++) { /* all contours that the work below asks for */
        pe_pair_solve(kept, PE_A_ABOVE, 1, log_target + i, rows);
        pe_pair_at(kept, PE_PROFILE, 1, c + i, rows);
    }
}

/* From nothing to one row: grids, a contour, its evaluation. */
static void spectral_one_contour(void) {
    const double at = 1.0;
    pe_pair *pair;
    const int made = pe_pair_new(1, &NOISE, &P, &STEPS, 0, COST_LIMIT, &pair);
    icount_require(made == PE_OK, "the pair is made");
    pe_pair_at(pair, PE_PROFILE, 1, &at, rows);
    pe_pair_free(pair);
    require_values(1, PE_PROFILE);
}
KERNEL("spectral_one_contour", inputs, spectral_one_contour);

static void spectral_many_kinds(void) {
    const double at = -7.0;
    pe_pair *pair;
    const int made = pe_pair_new(KINDS, noises, ps, ones, 0, COST_LIMIT, &pair);
    icount_require(made == PE_OK, "the pair is made");
    pe_pair_solve(pair, PE_A_ABOVE, 1, &at, rows);
    pe_pair_free(pair);
    require_values(1, PE_A_ABOVE);
}
KERNEL("spectral_many_kinds", inputs, spectral_many_kinds);

static void spectral_solve(void) {
    pe_pair_solve(kept, PE_A_ABOVE, COUNT, log_target, rows);
    require_values(COUNT, PE_A_ABOVE);
}
KERNEL("spectral_solve", with_contours, spectral_solve);

static void spectral_at(void) {
    pe_pair_at(kept, PE_PROFILE, COUNT, c, rows);
    require_values(COUNT, PE_PROFILE);
}
KERNEL("spectral_at", with_contours, spectral_at);

/* From nothing to one proven row: grids, a line in extended precision, its evaluation. */
static void certified_one_line(void) {
    const double at = 1.0;
    pe_pair *pair;
    const int made = pe_pair_new(1, &NOISE, &P, &STEPS, 0, COST_LIMIT, &pair);
    icount_require(made == PE_OK, "the pair is made");
    pe_pair_certify(pair, PE_PROFILE, 1, &at, rows);
    pe_pair_free(pair);
    require_values(1, PE_PROFILE);
}
KERNEL("certified_one_line", inputs, certified_one_line);

static void with_proven_lines(void) {
    with_contours();
    pe_pair_certify(kept, PE_PROFILE, COUNT, c, rows);
}

static void certified_rows(void) {
    pe_pair_certify(kept, PE_PROFILE, COUNT, c, rows);
    require_values(COUNT, PE_PROFILE);
}
KERNEL("certified_rows", with_proven_lines, certified_rows);
