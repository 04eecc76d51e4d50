#include "extremes.h"

int run_lattice(void) {
    int failures = 0;
    static const double SHIFTS[] = {0.0, 1e-3, 5.0, 60.0};
    for (size_t s = 0; s < LENGTH(SHIFTS); ++s)
        for (size_t n = 0; n <= 300; n += n < 4 ? 1 : 37) { /* masses of a partition add up to 1 */
            double *z = allocate(n), *mass = allocate(n ? n + 1 : 0), total = 0.0;
            for (size_t i = 0; i < n; ++i)
                z[i] = -45.0 + 90.0 * ((double)i + 0.5) / (double)n + (i % 3 ? 1e-9 : 0.0);
            pe_normal_cells(n, z, SHIFTS[s], mass);
            for (size_t i = 0; n && i <= n; ++i) total += exp(mass[i]);
            if (n && !(fabs(total - 1.0) < 1e-12)) {
                fprintf(stderr, "normal_cells(%zu, shift %g): total %a\n", n, SHIFTS[s], total);
                ++failures;
            }
            free(z);
            free(mass);
        }
    for (int outer = 0; outer < 2; ++outer)
        for (size_t n = 1; n <= 200; n += 33) {
            const pe_lattice grid = {
                .origin = -1.0,
                .spacing = 2.0 / (double)n,
                .tilt = outer ? -3.0 : 0.5,
                .centre = 0.5 * (double)n,
                .outer = outer,
            };
            double *log_a = allocate(n), *log_b = allocate(n), *error = allocate(n);
            double *ratio = allocate(n), *shift = allocate(n + 1), *points = allocate(3 * (n + 1));
            for (size_t i = 0; i < n; ++i) {
                log_a[i] = i % 7 == 3 ? -INFINITY : -log((double)n);
                log_b[i] = i % 11 == 5 ? -INFINITY : log_a[i] - 1.0 + grid.spacing * ((double)i + 0.3);
                ratio[i] = isfinite(log_a[i]) && isfinite(log_b[i]) ? log_b[i] - log_a[i] : 0.0;
                error[i] = i % 5 ? 1e-15 : 0.0;
            }
            for (size_t i = 0; i <= n; ++i) shift[i] = i % 2 ? 1e-16 : 0.0;
            memset(points, 0, 3 * (n + 1) * sizeof(double));
            const pe_cells cells = {1, n, log_a, log_b, ratio, error, error, shift};
            pe_lattice_masses out = {points, points + n + 1, points + 2 * (n + 1), 0.0, 0.0};
            pe_lattice_cells(&grid, &cells, &out);
            free(ratio);
            for (size_t i = 0; i < 3 * (n + 1); ++i)
                if (!(points[i] >= 0.0) || !isfinite(points[i])) ++failures;
            failures += !(out.lost >= 0.0) || !(out.error > 0.0);
            double *sums = allocate(n + 1), *profile = allocate(n + 1), both[2];
            pe_discounted_sums(n + 1, points, -0.01, sums);
            pe_profile_sums(n + 1, points, -0.01, grid.spacing, sums, profile);
            pe_exponential_sums(n + 1, points, grid.centre, 0.1, both);
            failures += !(sums[n] >= 0.0) || !(profile[n] >= 0.0) || !(both[0] >= 0.0);
            free(log_a);
            free(log_b);
            free(error);
            free(shift);
            free(points);
            free(sums);
            free(profile);
        }
    static const double STEPS[] = {1.0, 2.0, 3.0, 1000.0, 1e6, 9007199254740992.0};
    for (size_t k = 0; k < LENGTH(STEPS); ++k)
        for (size_t n = 0; n <= 130; n += 13) { /* on the unit circle, inside it, and 0 */
            double *z = allocate(2 * n), *other = allocate(2 * n), *bound = allocate(n);
            double *slack = allocate(n);
            for (size_t i = 0; i < n; ++i) {
                const double r = i % 4 ? 1.0 / (double)(i % 4) : (i ? 1.0 : 0.0);
                z[2 * i] = other[2 * i] = r * cos((double)i);
                z[2 * i + 1] = other[2 * i + 1] = r * sin((double)i);
                bound[i] = 1.0;
                slack[i] = 0.0;
            }
            pe_spectrum_power(n, z, STEPS[k], 1e-15, k % 2 ? other : NULL, bound, slack);
            for (size_t i = 0; i < n; ++i)
                if (!(hypot(z[2 * i], z[2 * i + 1]) <= bound[i] * (1.0 + 4e-16 * STEPS[k])) ||
                    !(slack[i] >= 0.0)) {
                    fprintf(stderr, "spectrum_power(%g): modulus %a above %a\n", STEPS[k],
                            hypot(z[2 * i], z[2 * i + 1]), bound[i]);
                    ++failures;
                }
            free(z);
            free(other);
            free(bound);
            free(slack);
        }
    for (size_t n = 0; n <= 40;
         n += n < 3 ? 1 : 13) /* masses of means add up; products below doubles vanish */
        for (int square = 0; square < 2; ++square) {
            const size_t m = square ? n : 2 * n, cells = n ? 7 : 0;
            double *x = allocate(n), *a = allocate(n), *y = allocate(m), *b = allocate(m);
            double *edge = allocate(cells + 1), *mass = allocate(cells), *share = allocate(cells),
                   total = 0.0;
            for (size_t i = 0; i < n; ++i) x[i] = exp((double)i), a[i] = i ? 0x1p-600 : 1.0;
            for (size_t i = 0; i < m; ++i)
                y[i] = exp((double)i / (square ? 1.0 : 2.0)), b[i] = i ? 0x1p-600 : 1.0;
            for (size_t k = 0; k < cells; ++k) mass[k] = share[k] = 0.0;
            for (size_t k = 0; n && k <= cells; ++k)
                edge[k] = 0.9 * exp(((double)n + 0.5) * (double)k / (double)cells);
            pe_mean_cells(n, x, a, m, square ? x : y, square ? a : b, 0.5, 0.5, square, cells, edge, mass,
                          share);
            for (size_t k = 0; k < cells; ++k) {
                total += mass[k];
                failures += !(share[k] >= 0.0) || !(share[k] <= mass[k]);
            }
            failures += n && total != 1.0;
            free(x);
            free(a);
            free(y);
            free(b);
            free(edge);
            free(mass);
            free(share);
        }
    return failures;
}
