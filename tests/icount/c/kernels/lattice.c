/* The kernels of one bracket: masses of cells, one pass over them, spectra and sums. */
#include "kernel.h"

#include <string.h>

enum { CELLS = 4096, POINTS = CELLS + 1 };

static double *z, *log_a, *log_b, *log_ratio, *error, *shift, *spread, *a, *b, *sums, *profile;
static double *spectrum, *power, *bound, *slack;

static void prepare(void) {
    z = icount_doubles(POINTS);
    log_a = icount_doubles(CELLS + 2);
    log_b = icount_doubles(CELLS + 2);
    log_ratio = icount_doubles(CELLS + 2);
    error = icount_doubles(CELLS);
    shift = icount_doubles(POINTS);
    spread = icount_doubles(POINTS);
    a = icount_doubles(POINTS);
    b = icount_doubles(POINTS);
    sums = icount_doubles(POINTS);
    profile = icount_doubles(POINTS);
    spectrum = icount_doubles(2 * POINTS);
    power = icount_doubles(2 * POINTS);
    bound = icount_doubles(POINTS);
    slack = icount_doubles(POINTS);
    for (size_t i = 0; i < POINTS; i++) {
        const double angle = 0.5 * (double)i / POINTS;
        z[i] = -38.0 + 76.0 * (double)i / CELLS;
        sums[i] = 1.0 / POINTS;
        spectrum[2 * i] = cos(angle) * (1.0 - 1e-5 * (double)i);
        spectrum[2 * i + 1] = sin(angle) * (1.0 - 1e-5 * (double)i);
    }
    for (size_t i = 0; i < CELLS; i++) {
        error[i] = 1e-15;
        shift[i] = 1e-16;
        log_a[i] = -0.5 * z[i] * z[i] - 5.0;
        log_ratio[i] = 0.02 * ((double)i + 0.5) - 41.0;
        log_b[i] = log_a[i] + log_ratio[i];
    }
}

static void lattice_normal_cells(void) {
    pe_normal_cells(POINTS, z, 0.5, log_a);
    icount_require_numbers(log_a, CELLS + 2);
}
KERNEL("lattice_normal_cells", prepare, lattice_normal_cells);

static void lattice_cells(void) {
    const pe_lattice grid = {
        .origin = -41.0, .spacing = 0.02, .tilt = -3.0, .centre = 0.5 * CELLS, .outer = 1};
    memset(spread, 0, POINTS * sizeof(double));
    memset(a, 0, POINTS * sizeof(double));
    memset(b, 0, POINTS * sizeof(double));
    const pe_cells cells = {1, CELLS, log_a, log_b, log_ratio, error, error, shift};
    pe_lattice_masses out = {spread, a, b, 0.0, 0.0};
    pe_lattice_cells(&grid, &cells, &out);
    icount_require_numbers(spread, POINTS);
    icount_require(spread[CELLS / 2] > 0.0, "cells have mass");
}
KERNEL("lattice_cells", prepare, lattice_cells);

static void lattice_spectrum_power(void) {
    memcpy(power, spectrum, 2 * POINTS * sizeof(double));
    for (size_t i = 0; i < POINTS; i++) {
        bound[i] = 1.0;
        slack[i] = 0.0;
    }
    pe_spectrum_power(POINTS, power, 1000.0, 1e-15, NULL, bound, slack);
    icount_require_numbers(power, 2 * POINTS);
}
KERNEL("lattice_spectrum_power", prepare, lattice_spectrum_power);

static void lattice_exponential_sums(void) {
    double both[2];
    pe_exponential_sums(POINTS, sums, 0.5 * POINTS, 0.01, both);
    icount_require(both[0] > 0.0, "the sum is positive");
}
KERNEL("lattice_exponential_sums", prepare, lattice_exponential_sums);

static void lattice_discounted_sums(void) {
    pe_discounted_sums(POINTS, sums, -0.01, a);
    icount_require(a[CELLS] > 0.0, "the sum is positive");
}
KERNEL("lattice_discounted_sums", prepare, lattice_discounted_sums);

static void lattice_profile_sums(void) {
    pe_profile_sums(POINTS, sums, -0.01, 0.02, a, profile);
    icount_require(profile[CELLS] > 0.0, "the sum is positive");
}
KERNEL("lattice_profile_sums", prepare, lattice_profile_sums);
