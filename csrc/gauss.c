#include <math.h>

#include "pyengine.h"

/* P_n and P_{n-1} with maximum 1, and the sum of the squares of p_0 to p_{n-1}. */
static void ends_of_recurrence(size_t n, long double t, long double *last, long double *before,
                               long double *squares) {
    long double two = 0.0L, one = 1.0L, sum = 0.0L;
    for (size_t k = 0; k < n; k++) {
        const long double m = (long double)k;
        sum += (2.0L * m + 1.0L) * one * one;
        const long double next = ((2.0L * m + 1.0L) * t * one - m * two) / (m + 1.0L);
        two = one;
        one = next;
    }
    *last = one;
    *before = two;
    *squares = sum;
}

void pe_gauss_nodes(size_t n, long double *place, long double *weight) {
    const double pi = 3.14159265358979323846;
    const double order = (double)n;
    for (size_t i = n / 2; i < n; i++) { /* the others are their mirror images */
        const double angle = pi * ((double)(n - 1 - i) + 0.75) / (order + 0.5);
        long double s = 0.5 + 0.5 * (1.0 - (1.0 - 1.0 / order) / (8.0 * order * order)) * cos(angle);
        long double last, before, squares, change = 1.0L;
        /* Newton's method: the error after a step is some n^2 times the square of its change */
        for (int step = 0; step < 6 && fabsl(change) > 1e-13L; step++) {
            const long double t = 2.0L * s - 1.0L;
            ends_of_recurrence(n, t, &last, &before, &squares);
            const long double slope = (long double)n * (before - t * last) / (1.0L - t * t);
            change = last / (2.0L * slope);
            s -= change;
        }
        ends_of_recurrence(n, 2.0L * s - 1.0L, &last, &before, &squares);
        place[i] = s;
        place[n - 1 - i] = i == n - 1 - i ? s : 1.0L - s;
        weight[i] = weight[n - 1 - i] = 1.0L / squares;
    }
}
