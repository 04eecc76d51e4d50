#include "extremes.h"

/* Polynomials on panels: outside of them and at what is no number there is no value, and inside the sum of their
 * coefficients at the right end. */
int run_panels(void) {
    enum { PANELS = 3 };
    double coefficients[PANELS * PE_CHEBYSHEV], out[LENGTH(EXTREMES)], sum = 0.0;
    int failures = 0;
    for (size_t j = 0; j < LENGTH(coefficients); ++j) coefficients[j] = 1.0 / (double)(1 + j % PE_CHEBYSHEV);
    for (size_t j = 0; j < PE_CHEBYSHEV; ++j) sum += coefficients[j];
    for (int of_log = 0; of_log < 2; ++of_log) {
        pe_chebyshev_panels(LENGTH(EXTREMES), EXTREMES, 0.25, -1, PANELS, coefficients, of_log, out);
        for (size_t i = 0; i < LENGTH(EXTREMES); ++i) {
            const int inside = EXTREMES[i] >= -0.25 && EXTREMES[i] < 0.5;
            if (inside ? !(fabs(out[i]) <= exp(sum)) : !isnan(out[i])) ++failures;
        }
        const double end = nextafter(0.25, 0.0), expected = of_log ? exp(sum) : sum;
        pe_chebyshev_panels(1, &end, 0.25, -1, PANELS, coefficients, of_log, out);
        if (!(fabs(out[0] / expected - 1.0) < 1e-13)) ++failures;
    }
    return failures;
}

/* Gauss's rules of few nodes and of many: weights have the sum 1. */
int run_gauss(void) {
    enum { MOST = 80 };
    int failures = 0;
    static const size_t SIZES[] = {2, 3, 17, 40, MOST};
    for (size_t k = 0; k < LENGTH(SIZES); ++k) {
        double place[2 * MOST], weights[2 * MOST], sum = 0.0;
        pe_gauss_nodes(SIZES[k], place, weights);
        for (size_t i = 0; i < 2 * SIZES[k]; ++i) sum += weights[i];
        failures += !(fabs(sum - 1.0) < 1e-14);
    }
    return failures;
}
