#include "fuzz.h"

/* Cells, sums and spectra of lattices. */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void fuzz_normal_cells(void) {
    const size_t n = 1 + below(40);
    const double shift = below(2) ? uniform(-60.0, 60.0) : log_uniform(1e-12, 1e3);
    const double width = log_uniform(1e-12, 100.0), middle = below(2) ? shift : uniform(-50.0, 50.0);
    double *z = allocate(n), *mass = allocate(n + 1), total = 0.0;
    for (size_t i = 0; i < n; ++i) z[i] = middle + width * uniform(-1.0, 1.0);
    qsort(z, n, sizeof(double), by_size);
    size_t kept = 1;
    for (size_t i = 1; i < n; ++i)
        if (z[i] > z[kept - 1]) z[kept++] = z[i];
    double *edges = allocate(kept);
    memcpy(edges, z, kept * sizeof(double));
    pe_normal_cells(kept, edges, shift, mass);
    for (size_t i = 0; i <= kept; ++i) {
        require(mass[i] <= 1e-12, "normal_cells", "the log of a probability", mass[i]);
        total += exp(mass[i]);
    }
    require(fabs(total - 1.0) < 1e-11, "normal_cells", "masses add up to 1", total);
    free(z);
    free(edges);
    free(mass);
}

static double mass(void) {
    return below(6) ? log_uniform(1e-300, 1.0) : 0.0;
}

void fuzz_lattice(void) {
    const size_t n = 1 + below(60), start = 1 + below(5), points = start + n;
    const double reach = log_uniform(1e-6, 100.0);
    const pe_lattice grid = {
        .origin = uniform(-reach, reach),
        .spacing = 2.0 * reach / (double)n,
        .tilt = uniform(-100.0, 100.0) / (1.0 + reach),
        .centre = uniform(0.0, (double)points),
        .log_scale_a = uniform(-100.0, 100.0),
        .log_scale_b = uniform(-100.0, 100.0),
        .outer = (int)below(2),
    };
    double *log_a = allocate(n), *log_b = allocate(n), *error = allocate(n), *ratio = allocate(n);
    double *log_ratio = allocate(n), *shift = allocate(n + 1), *sums[3];
    for (size_t i = 0; i < n; ++i) {
        const double loss = grid.origin + grid.spacing * ((double)(start + i) - uniform(0.0, 1.0));
        log_a[i] = below(8) ? -log_uniform(1e-3, 700.0) : -INFINITY;
        log_b[i] = below(8) ? fmin(log_a[i] + loss, 0.0) : -INFINITY;
        log_ratio[i] = isfinite(log_a[i]) && isfinite(log_b[i]) ? log_b[i] - log_a[i] : 0.0;
        error[i] = below(2) ? log_uniform(1e-17, 1e-9) : 0.0;
        ratio[i] = below(2) ? log_uniform(1e-17, 1e-9) : 0.0;
    }
    for (size_t i = 0; i <= n; ++i) shift[i] = below(2) ? log_uniform(1e-18, 1e-10) : 0.0;
    for (size_t j = 0; j < 3; ++j) {
        sums[j] = allocate(points);
        memset(sums[j], 0, points * sizeof(double));
    }
    const pe_cells cells = {start, n, log_a, log_b, log_ratio, error, ratio, shift};
    pe_lattice_masses out = {sums[0], sums[1], sums[2], 0.0, 0.0};
    pe_lattice_cells(&grid, &cells, &out);
    for (size_t j = 0; j < 3; ++j)
        for (size_t i = 0; i < points; ++i)
            require(sums[j][i] >= 0.0, "lattice_cells", "masses are not negative", sums[j][i]);
    require(out.lost >= 0.0, "lattice_cells", "the lost mass is not negative", out.lost);
    for (size_t j = 0; j < 3; ++j) free(sums[j]);
    free(log_a);
    free(log_b);
    free(error);
    free(ratio);
    free(log_ratio);
    free(shift);
}

void fuzz_sums(void) {
    const size_t n = 1 + below(below(20) ? 50 : 3 * PE_SUM_BLOCK);
    const double log_q = below(8) ? -log_uniform(1e-12, 50.0) : 0.0, h = log_uniform(1e-12, 10.0);
    double *y = filled(n, mass), *plain = allocate(n), *lower = allocate(n), *profile = allocate(n);
    double both[2];
    pe_discounted_sums(n, y, log_q, plain);
    pe_profile_sums(n, y, log_q, h, lower, profile);
    for (size_t i = 0; i < n; ++i) {
        require(plain[i] >= y[i] * (1.0 - 1e-9), "discounted_sums", "at least the last term", y[i]);
        require(lower[i] <= plain[i] * (1.0 + 1e-9) + DBL_MIN, "profile_sums", "smaller ratio", y[i]);
        require(profile[i] >= 0.0 && profile[i] <= plain[i] * (1.0 + 1e-9) + DBL_MIN, "profile_sums",
                "part of the sum", profile[i]);
    }
    pe_exponential_sums(n, y, uniform(0.0, (double)n), uniform(-600.0, 600.0) / (double)n, both);
    require(both[0] >= 0.0, "exponential_sums", "not negative", both[0]);
    free(y);
    free(plain);
    free(lower);
    free(profile);
}

void fuzz_spectrum(void) {
    const size_t n = below(40);
    const int with_other = below(2) == 0;
    const double steps = below(2) ? floor(log_uniform(1.0, 9007199254740992.0)) : (double)(1 + below(9));
    double *z = allocate(2 * n), *other = allocate(2 * n), *bound = allocate(n), *slack = allocate(n);
    for (size_t i = 0; i < n; ++i) {
        const double r = below(6) ? log_uniform(1e-300, 1.0) : (double)below(2), t = uniform(-3.2, 3.2);
        z[2 * i] = r * cos(t);
        z[2 * i + 1] = r * sin(t);
        other[2 * i] = r * sin(t);
        other[2 * i + 1] = r * cos(t);
        bound[i] = 1.0;
        slack[i] = 0.0;
    }
    pe_spectrum_power(n, z, steps, 1e-15, with_other ? other : NULL, bound, slack);
    for (size_t i = 0; i < n; ++i) {
        const double size = hypot(z[2 * i], z[2 * i + 1]);
        require(size <= bound[i] * (1.0 + 4e-16 * steps + 1e-12), "spectrum_power", "modulus", size);
        require(bound[i] >= 1e-260 && slack[i] >= 0.0, "spectrum_power", "bound and slack", bound[i]);
    }
    free(z);
    free(other);
    free(bound);
    free(slack);
}
