#include "fuzz.h"

/* Sampled losses. */

void fuzz_sampling(void) {
    const size_t cells = 1 + below(9), n = below(20);
    double *coefficients = allocate(4 * cells), *all = allocate(n), one;
    for (size_t i = 0; i < 4 * cells; ++i) coefficients[i] = uniform(-1.0, 1.0);
    const pe_loss_table table = {
        .steps = below(6),
        .low = below(4) ? uniform(-9.0, 9.0) : anything(),
        .per_width = log_uniform(1e-6, 1e6),
        .last = (double)cells - 1e-9,
        .coefficients = coefficients,
    };
    if (isfinite(table.low)) {
        const uint64_t seed = random_bits(), first = random_bits();
        pe_sample_losses(seed, first, n, 1, &table, all);
        for (size_t i = 0; i < n; ++i) {
            pe_sample_losses(seed, first + i, 1, 1, &table, &one);
            require(!differ(one, all[i]), "sample_losses", "the bits alone", all[i]);
            require(fabs(all[i]) <= 4.0 * (double)table.steps, "sample_losses", "size", all[i]);
        }
    }
    free(coefficients);
    free(all);
}
