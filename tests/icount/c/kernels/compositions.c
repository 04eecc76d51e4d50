/* Trade-off functions that keep a quantile between two tails. */
#include "kernel.h"

enum { COUNT = 512 };

static double *alpha, *out;

static void prepare(void) {
    alpha = icount_doubles(COUNT);
    out = icount_doubles(COUNT);
    for (size_t i = 0; i < COUNT; i++) alpha[i] = exp(icount_between(-30.0, 0.0, i));
}

static void one_step_sgd(void) {
    static const double df = 650.0, n = 500.0, k = 1.5;
    const ptrdiff_t each = sizeof(double);
    const size_t outside =
        pe_one_step_sgd_strided(PE_NCX2_SF, COUNT, (const char *)alpha, each, (const char *)&df, 0,
                                (const char *)&n, 0, (const char *)&k, 0, (char *)out, each);
    icount_require(outside == 0, "arguments lie in the domain");
    icount_require_numbers(out, COUNT);
}
KERNEL("one_step_sgd", prepare, one_step_sgd);

static void relaxed(void) {
    static const double df = 100.0, mu = 1.5;
    const ptrdiff_t each = sizeof(double);
    const size_t outside = pe_relaxed_strided(0, 0, COUNT, (const char *)alpha, each, (const char *)&df, 0,
                                              (const char *)&mu, 0, (char *)out, each);
    icount_require(outside == 0, "arguments lie in the domain");
    icount_require_numbers(out, COUNT);
}
KERNEL("relaxed", prepare, relaxed);
