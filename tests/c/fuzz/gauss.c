#include "fuzz.h"

static double *numbers(size_t n) {
    double *block = calloc(n + (n == 0), sizeof *block);
    if (block == NULL) exit(EXIT_FAILURE);
    return block;
}

/* The sums of upper and lower parts */
static long double *extended(size_t n, const double *parts) {
    long double *block = calloc(n, sizeof *block);
    if (block == NULL) exit(EXIT_FAILURE);
    for (size_t i = 0; i < n; ++i) block[i] = (long double)parts[i] + (long double)parts[n + i];
    return block;
}

/* P_k with maximum 1 at a point of (0, 1) */
static long double polynomial(size_t k, long double s) {
    const long double t = 2.0L * s - 1.0L;
    long double two = 0.0L, one = 1.0L;
    for (size_t j = 0; j < k; ++j) {
        const long double next =
            ((2.0L * (long double)j + 1.0L) * t * one - (long double)j * two) / ((long double)j + 1.0L);
        two = one;
        one = next;
    }
    return one;
}

/* A rule of n nodes is exact for polynomials of degree 2 n - 1: those beyond the first have no integral. */
void fuzz_gauss(void) {
    const size_t n = 2 + below(60), size = 1 + below(2 * n);
    double *places = numbers(2 * n), *weights = numbers(2 * n);
    pe_gauss_nodes(n, places, weights);
    long double *place = extended(n, places), *weight = extended(n, weights);
    for (size_t i = 0; i < n; ++i) {
        require(weight[i] > 0.0L && place[i] > 0.0L && place[i] < 1.0L, "gauss_nodes", "in (0, 1)",
                (double)place[i]);
        require(i == 0 || place[i] > place[i - 1], "gauss_nodes", "rising", (double)place[i]);
        require(fabsl(place[i] + place[n - 1 - i] - 1.0L) < 1e-18L, "gauss_nodes", "symmetric", (double)n);
    }
    for (size_t k = 0; k < size; ++k) {
        const double degree = (double)k;
        long double sum = 0.0L;
        for (size_t i = 0; i < n; ++i) sum += weight[i] * polynomial(k, place[i]);
        require(fabsl(sum - (k == 0 ? 1.0L : 0.0L)) <= (4.0 + 8.0 * degree + 6.0 * degree * degree) * 0x1p-61,
                "gauss_nodes", "exact", degree);
    }
    free(places);
    free(weights);
    free(place);
    free(weight);
}
