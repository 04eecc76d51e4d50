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

typedef int (*question)(pe_pair *, int, size_t, const double *, double *);

/* From nothing to one row: grids, a contour or a line in extended precision, its evaluation. */
static void from_nothing(size_t kinds, const double *noise, const double *p, const double *steps,
                         question ask, int functional, double at) {
    pe_pair *pair;
    const int made = pe_pair_new(kinds, noise, p, steps, 0, COST_LIMIT, &pair);
    icount_require(made == PE_OK, "the pair is made");
    ask(pair, functional, 1, &at, rows);
    pe_pair_free(pair);
    require_values(1, functional);
}

static void spectral_one_contour(void) {
    from_nothing(1, &NOISE, &P, &STEPS, pe_pair_at, PE_PROFILE, 1.0);
}
KERNEL("spectral_one_contour", inputs, spectral_one_contour);

static void spectral_many_kinds(void) {
    from_nothing(KINDS, noises, ps, ones, pe_pair_solve, PE_A_ABOVE, -7.0);
}
KERNEL("spectral_many_kinds", inputs, spectral_many_kinds);

static int beyond(pe_pair *pair, int functional, size_t n, const double *target, double *out) {
    return pe_pair_certify_beyond(pair, functional, 0x1p-49, PE_THOROUGH, n, target, out);
}

static int proven_at(pe_pair *pair, int functional, size_t n, const double *at, double *out) {
    return pe_pair_certify(pair, functional, PE_THOROUGH, n, at, out);
}

static void certified_one_line(void) {
    from_nothing(1, &NOISE, &P, &STEPS, proven_at, PE_PROFILE, 1.0);
}
KERNEL("certified_one_line", inputs, certified_one_line);

static void certified_one_root(void) {
    from_nothing(1, &NOISE, &P, &STEPS, beyond, PE_A_ABOVE, -7.0);
}
KERNEL("certified_one_root", inputs, certified_one_root);

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

static void with_proven_lines(void) {
    with_contours();
    pe_pair_certify(kept, PE_PROFILE, PE_THOROUGH, COUNT, c, rows);
}

static void certified_rows(void) {
    pe_pair_certify(kept, PE_PROFILE, PE_THOROUGH, COUNT, c, rows);
    require_values(COUNT, PE_PROFILE);
}
KERNEL("certified_rows", with_proven_lines, certified_rows);
