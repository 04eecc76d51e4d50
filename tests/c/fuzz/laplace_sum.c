/* Random inputs: sums of equal Laplace losses. */
#include "fuzz.h"

static const double U = 0x1p-53;
enum { POINTS = 5, A_ABOVE = 0, A_BELOW, TAILS = 6 };

static double positive(void) {
    return log_uniform(1e-6, 1.0);
}

/* Positive polynomials and atoms of no law in particular: masses lie in order, and mirror each other. */
static void of_any_sum(void) {
    const size_t steps = below(20) ? 1 + below(12) : 1 + below(PE_LAPLACE_STEPS);
    double *curve = filled(steps * steps, positive), *atoms = filled(steps + 1, positive);
    double *even = filled(steps, positive), *odd = filled(steps, positive);
    double *below_ = filled(steps + 1, positive), *above = filled(steps + 1, positive);
    double *tallest = filled(steps + 1, positive);
    const double ratio = log_uniform(1e-12, 40.0), end = (double)steps * ratio;
    const pe_laplace_sum law = {steps,      ratio, 1.0,    1e-15, below(2) ? 1e-300 : 0.0,
                                {end, 0.0}, curve, atoms,  even,  odd,
                                below_,     above, tallest};
    double c[POINTS], low[POINTS] = {0.0}, tails[TAILS * POINTS], value[POINTS], error[POINTS];
    for (size_t i = 0; i < POINTS; ++i)
        c[i] = below(3) ? uniform(-1.1, 1.1) * end : (2.0 * (double)below(steps + 1) - (double)steps) * ratio;
    require(pe_laplace_sum_tails((void *)&law, POINTS, c, tails) == PE_OK, "laplace_sum", "a status", ratio);
    pe_laplace_sum_profile(&law, POINTS, c, low, value, error);
    for (size_t i = 0; i < POINTS; ++i) {
        double one[4];
        require(pe_laplace_sum_roughly((void *)&law, c[i], one) == PE_OK, "laplace_sum", "a status", ratio);
        for (size_t part = 0; part < 4; ++part) {
            require(one[part] == tails[part * POINTS + i], "laplace_sum", "the same bits alone", c[i]);
            require(one[part] >= 0.0, "laplace_sum", "no negative mass", c[i]);
        }
        require(error[i] >= 0.0, "laplace_sum", "no negative error", c[i]);
    }
    free(curve);
    free(atoms);
    free(even);
    free(odd);
    free(below_);
    free(above);
    free(tallest);
}

/* One step: A(S > c) = e^(-(c + mu)/2)/2 and its mirror image, H_{e^epsilon} = 1 - e^((epsilon - mu)/2). */
static void of_one_step(void) {
    const double ratio = log_uniform(1e-3, 40.0), whole = 2.0 + ratio, fall = exp(-ratio);
    double curve = ratio / whole, even, odd;
    pe_bernstein_exponentials(ratio, 1, &even, &odd);
    require(fabs(even * ratio / sinh(ratio) - 1.0) < 1e-13, "bernstein_exponentials", "cosh", ratio);
    even *= curve;
    odd *= curve;
    const double inner = fall * (even + odd);
    const double atoms[2] = {1.0 / whole, fall / whole}, before[2] = {0.0, inner}, after[2] = {inner, 0.0};
    const double tallest[2] = {curve, 0.0};
    const pe_laplace_sum law = {1,     ratio, 0.5 * whole, 300.0 * U, 0.0,   {ratio, 0.0}, &curve,
                                atoms, &even, &odd,        before,    after, tallest};
    const double c = uniform(-1.0, 1.0) * ratio, epsilon = fabs(c), low = 0.0;
    const long double mass = 0.5L * expl(-0.5L * ((long double)c + ratio));
    const long double profile = -expm1l(0.5L * ((long double)epsilon - ratio));
    double tails[TAILS], value, error;
    require(pe_laplace_sum_tails((void *)&law, 1, &c, tails) == PE_OK, "laplace_sum", "a status", ratio);
    const long double off = (tails[4] + 0.5L * tails[5] + 40.0L * U) * mass;
    require(fabsl(tails[A_ABOVE] - mass) <= off, "laplace_sum", "A above", c);
    require(fabsl(tails[A_BELOW] - (1.0L - mass)) <= tails[4] + off, "laplace_sum", "A below", c);
    pe_laplace_sum_profile(&law, 1, &epsilon, &low, &value, &error);
    require(fabsl(value - profile) <= error, "laplace_sum_profile", "its value", epsilon);
}

void fuzz_laplace_sum(void) {
    if (below(4)) of_any_sum();
    else of_one_step();
}
