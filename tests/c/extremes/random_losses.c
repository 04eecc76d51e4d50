#include "extremes.h"

/* Every variate reaches the ends of this table: all cells are read, none beyond. */
int run_sampling(void) {
    enum { CELLS = 7 };
    int failures = 0;
    double *coefficients = allocate(4 * CELLS);
    for (size_t i = 0; i < 4 * CELLS; ++i) coefficients[i] = i % 4 ? 0.0 : (double)(i / 4);
    const pe_loss_table table[2] = {
        {5, -0.5, CELLS, CELLS - 1e-9, coefficients},
        {0, 0.0, 1.0, CELLS - 1e-9, coefficients},
    };
    for (size_t n = 0; n <= 300; n += 75) {
        double *all = allocate(n), *part = allocate(n);
        pe_sample_losses(7, 0, n, 2, table, all);
        const size_t split = n / 3;
        pe_sample_losses(7, 0, split, 2, table, part);
        pe_sample_losses(7, split, n - split, 2, table, part + split);
        for (size_t i = 0; i < n; ++i)
            if (differ(all[i], part[i]) || !(all[i] >= 0.0 && all[i] <= 5.0 * (CELLS - 1))) {
                fprintf(stderr, "sample %zu of %zu: %a and %a\n", i, n, all[i], part[i]);
                ++failures;
            }
        free(all);
        free(part);
    }
    free(coefficients);
    return failures;
}

/* All steps or none with the record, blocks of one step and of many, values beyond all doubles. */
int run_random_steps(void) {
    int failures = 0;
    const double weight[3] = {0.5, 0.25, 0.25};
    for (size_t k = 1; k <= 5; ++k)
        for (size_t t = k; t <= 21; t += 5)
            for (size_t placed = 0; placed <= k; placed += k)
                for (int far = 0; far < 2; ++far) {
                    const size_t n = 3, others = t - placed, replicates = 2;
                    const pe_random_steps s = {
                        others,
                        k,
                        placed,
                        replicates,
                        far ? 1e200 : 0.5,
                        (double)k / (double)t,
                        0.0,
                        placed ? 3 : 0,
                        0.5,
                        -0.125,
                        1.0,
                        weight,
                    };
                    const size_t room = pe_random_steps_room(&s, n), drawn = replicates * placed * n;
                    double *z = allocate(others * n), *x = allocate(drawn), *share = allocate(drawn);
                    double *work = allocate(room), *out = allocate(3 * replicates * n);
                    for (size_t i = 0; i < others * n; ++i) z[i] = (double)(i % 7) - 3.0;
                    for (size_t i = 0; i < drawn; ++i) x[i] = (double)(i % 5) - 1.0;
                    for (size_t i = 0; i < drawn; ++i) share[i] = i % 2 ? 0.0 : 1.0 - 0x1p-53;
                    pe_random_step_losses(&s, n, z, x, share, work, out);
                    for (size_t i = 0; i < 3 * replicates * n; ++i)
                        failures += far ? !isnan(out[i]) : !(fabs(out[i]) < 100.0);
                    free(z), free(x), free(share), free(work), free(out);
                }
    return failures;
}

/* Of every length of the last block; angles up to the largest. */
int run_transforms(void) {
    int failures = 0;
    const double frequency[3] = {0.0, 1.5, 1e8 * (1.0 - 0x1p-50)};
    for (size_t m = 0; m <= 40; ++m) {
        double *apart = allocate(m), *share = allocate(m), real[3], imag[3];
        for (size_t j = 0; j < m; ++j) {
            apart[j] = j % 3 ? 1.0 / (double)j : -5e-324;
            share[j] = 1.0 / (double)m;
        }
        pe_loss_transform(3, frequency, m, apart, share, real, imag);
        failures += real[0] != 0.0 || imag[0] != 0.0;
        double grid_real[65], grid_imag[65];
        failures += pe_loss_transform_grid(m + 25, 1e6, m, apart, share, grid_real, grid_imag) != PE_OK;
        failures += grid_real[0] != 0.0 || grid_imag[0] != 0.0;
        for (size_t i = 0; i < m + 25; ++i)
            failures += !(hypot(grid_real[i] + 1.0, grid_imag[i]) < 1.0 + 1e-13) && m;
        for (int i = 0; i < 3; ++i) failures += !(hypot(real[i] + 1.0, imag[i]) < 1.0 + 1e-14);
        free(apart);
        free(share);
    }
    return failures;
}

/* Exponents that are 0, below all doubles, and at the largest angle; 0, 1 and 2 blocks of nodes. */
int run_rays(void) {
    int failures = 0;
    double real[16], imag[16], p[96], q[96], out[18];
    const double factor[6] = {0.0, 0.0, 1e300, 0.0, 0.0, 1e8 * (1.0 - 0x1p-50)};
    const int64_t row[3] = {1, 0, 1}, blocks[3] = {2, 1, 0};
    for (int j = 0; j < 16; ++j) real[j] = j ? -1.0 : -0.0, imag[j] = 0.0;
    for (int j = 0; j < 96; ++j) p[j] = 1.0, q[j] = j / 16 % 3;
    pe_ray_sums(3, factor, blocks, row, 16, real, imag, 3, p, q, out);
    for (int k = 0; k < 3; ++k) {
        failures += out[2 * k] != 16.0 || out[2 * k + 1] != 16.0 * k;
        failures += out[6 + 2 * k] != 1.0 || out[7 + 2 * k] != k;
        failures += out[12 + 2 * k] != 0.0 || out[13 + 2 * k] != 0.0;
    }
    pe_ray_sums(1, factor + 4, blocks, row, 16, real, imag, 1, p, q, out);
    /* 16 weights 1 + i, and what e^{ib} errs by at the largest angle */
    failures += !(hypot(out[0], out[1]) <= 16.0 * sqrt(2.0) * (1.0 + 2.02e8 * 0x1p-53));
    return failures;
}
