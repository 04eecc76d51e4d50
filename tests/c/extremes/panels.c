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

/* Nodes of steps: shares have the sum 1, exponentials and logarithms are each other's inverses. */
int run_step_nodes(void) {
    enum { SIZE = 10, PANELS = 3, NODES = SIZE * PANELS };
    static const double TILTS[] = {-40.0, 0.0, 0.5, 1.0, 700.0};
    double place[2 * SIZE], weight[2 * SIZE], loss[2 * NODES], mass[2 * NODES], power[NODES];
    double share[NODES], apart[NODES], logs[2 * NODES], back[2 * NODES], powers[NODES], top;
    const double edges[PANELS + 1] = {0.0, 1.0, 3.0, 4.0};
    const pe_laplace_branch branch = {{4.0, 0.0}, {3.0, 0.0}, {-1.0, 0.0}, {1.0, 0.0}, {0.5, 0.0}, 1.0};
    const pe_laplace_branch wide = {{340.0, 0.0}, {1.0, 0.0}, {-170.0, 0.0}, {2.0, 0.0}, {0.0, 0.0}, 1.0};
    pe_dd log_mean;
    int failures = 0;
    pe_gauss_nodes(SIZE, place, weight);
    for (size_t i = 0; i < NODES; ++i) power[i] = 0.0;
    for (int is_wide = 0; is_wide < 2; ++is_wide) {
        pe_laplace_nodes(is_wide ? &wide : &branch, PANELS, edges, SIZE, place, weight, loss, mass);
        pe_wide_log(NODES, mass, power, logs);
        pe_wide_exp(NODES, logs, back, powers);
        for (size_t i = 0; i < NODES; ++i)
            failures += !(fabs(ldexp(back[i], (int)(powers[i] - power[i])) / mass[i] - 1.0) < 1e-13);
        for (size_t k = 0; k < LENGTH(TILTS); ++k) {
            double sum = 0.0;
            const double centre =
                pe_step_at_tilt(NODES, loss, mass, power, TILTS[k], &log_mean, share, apart);
            for (size_t i = 0; i < NODES; ++i) {
                sum += share[i];
                failures += !(fabs(apart[i] + centre - loss[i]) <= 1e-12 * (1.0 + fabs(loss[i])));
            }
            failures += !(fabs(sum - 1.0) < 1e-14);
            const double over = pe_log_mean_of_nodes(NODES, loss, logs, TILTS[k], &top);
            failures += !(fabs(top + over - log_mean.h) <= 1e-13 * (1.0 + fabs(log_mean.h)));
            failures += pe_less_product(log_mean, 1.0, log_mean.h) != log_mean.l;
        }
    }
    return failures;
}

/* Corners of values at nodes, convex or not, also of tiny ones and of none: the first and the last node stay, nodes rise,
 * and so do slopes (of values less (1 - k)+, to which -1 belongs up to node 1). */
int run_corners(void) {
    enum { MOST = 60 };
    static const double SIZES[] = {1.0, 1e-300, 5e-324, 0.0};
    double x[MOST], k[MOST], value[MOST], slopes[MOST];
    int64_t corner[MOST];
    int failures = 0;
    for (size_t n = 1; n <= MOST; n += n < 4 ? 1 : 14)
        for (size_t s = 0; s < 2 * LENGTH(SIZES); ++s) {
            const size_t middle = n / 2;
            for (size_t i = 0; i < n; ++i) {
                x[i] = 0.3 * ((double)i - (double)middle);
                k[i] = exp(x[i]);
                value[i] = SIZES[s / 2] * (s % 2 ? fabs(sin(7.0 * (double)i)) : exp(-fabs(x[i])));
            }
            const size_t count = pe_call_corners(n, middle, x, k, value, corner, slopes);
            failures += !(count >= 1 && count <= n && corner[0] == 0 && corner[count - 1] == (int64_t)n - 1);
            for (size_t i = 1; i < count; ++i) failures += !(corner[i] > corner[i - 1]);
            for (size_t i = 2; i < count; ++i) {
                const double own = corner[i] <= (int64_t)middle ? -1.0 : 0.0;
                const double before = corner[i - 1] <= (int64_t)middle ? -1.0 : 0.0;
                failures += !((slopes[i] - slopes[i - 1]) + (own - before) >= 0.0);
            }
        }
    return failures;
}
