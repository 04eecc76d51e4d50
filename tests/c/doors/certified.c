/* A door to the bound of K(theta) for tests/test_certified_cumulants.py, which holds it against its definition. */
#include "certified.h"

double door_gaussian_cumulant(double variance, double theta);
double door_chernoff_exponent(double lambda);

/* Of plain Gaussian steps with a variance in all, and of nothing else. */
double door_gaussian_cumulant(double variance, double theta) {
    const pe_contours contours = {.exact_variance = {variance, 0.0}};
    pe_chernoff found;
    pe_certified_chernoff_at(&contours, theta, &found);
    return found.k;
}

double door_chernoff_exponent(double lambda) {
    return pe_chernoff_exponent(0.0, lambda, 0.0);
}
