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

/* Polynomials on panels, of one coefficient and of many; the mass of a convolution is the product of both. */
int run_legendre(void) {
    int failures = 0;
    static const size_t SIZES[] = {1, 2, 3, 17, 40};
    for (size_t k = 0; k < LENGTH(SIZES); ++k) {
        const size_t size = SIZES[k], points = 1 + 3 * k;
        double *table = allocate(size * size * size), *weight = allocate(size * size * (size + 1));
        memset(weight, 0, size * size * (size + 1) * sizeof(double));
        failures += pe_legendre_products(size, table, weight) != PE_OK || !(fabs(table[0] - 0.5) < 1e-15);
        double *a = allocate(2 * size * points), *b = allocate(2 * size * points);
        double *out = allocate(4 * size * points);
        for (size_t i = 0; i < 2 * size * points; ++i) a[i] = b[i] = i / (2 * points) ? 0.0 : 1.0;
        for (int same = 0; same < 2; ++same) { /* the square of 1 + i, times one half */
            const int status =
                pe_panel_products(points, size, size, size, size, table, a, same ? a : b, same, out);
            failures += status != PE_OK || !(fabs(out[0]) < 1e-15) || !(fabs(out[1] - 1.0) < 1e-15);
        }
        const double rest[3] = {0.0, 1e-300, 1.0}, half = 0.5, one = 1.0;
        const int64_t panel[3] = {0, 0, 0};
        double *scale = allocate(size), ends[3];
        for (size_t i = 0; i < size; ++i) scale[i] = sqrt(2.0 * (double)i + 1.0);
        pe_panel_ends(3, rest, panel, size, weight, scale, 0.0, 0.0, 1.0, 1, &half, &one, ends);
        failures += ends[0] != 0.0 || !(ends[1] >= 0.0) || !isfinite(ends[2]);
        long double *place = malloc((size + 1) * sizeof *place),
                    *weights = malloc((size + 1) * sizeof *place);
        long double *value = malloc(size * (size + 1) * sizeof *place), sum = 0.0L;
        if (!place || !weights || !value) exit(EXIT_FAILURE);
        pe_gauss_nodes(size + 1, place, weights);
        pe_legendre_extended(size, size + 1, place, value);
        for (size_t i = 0; i <= size; ++i) sum += weights[i] * value[i];
        failures += !(fabsl(sum - 1.0L) < 1e-15L);
        free(place);
        free(weights);
        free(value);
        free(scale);
        free(table);
        free(weight);
        free(a);
        free(b);
        free(out);
    }
    return failures;
}
