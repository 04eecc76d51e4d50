/* Random inputs: sums of equal Laplace losses, and laws of finitely many losses. */
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

/* Rising losses, some equal to thresholds: masses are those of the losses counted one by one. */
static void of_losses(void) {
    const size_t n = below(10) ? 1 + below(8) : 1 + below(3000);
    double *loss = filled(n, probability), *mass = filled(n, positive);
    double *above = filled(n + 1, positive), *up_to = filled(n + 1, positive);
    for (size_t i = 1; i < n; ++i) loss[i] += loss[i - 1];
    up_to[0] = above[n] = 0.0;
    for (size_t i = 0; i < n; ++i) up_to[i + 1] = up_to[i] + mass[i];
    for (size_t i = n; i > 0; --i) above[i - 1] = above[i] + mass[i - 1];
    const pe_finite_law law = {n, loss, above, up_to, above, up_to, 1e-15, 1e-16, 1e-15};
    double c[POINTS], tails[TAILS * POINTS];
    for (size_t i = 0; i < POINTS; ++i) c[i] = below(2) ? loss[below(n)] : uniform(-1.0, loss[n - 1] + 1.0);
    require(pe_finite_law_tails((void *)&law, POINTS, c, tails) == PE_OK, "finite_law", "a status", c[0]);
    for (size_t i = 0; i < POINTS; ++i) {
        double one[4];
        size_t at = 0;
        while (at < n && loss[at] <= c[i]) ++at;
        require(pe_finite_law_roughly((void *)&law, c[i], one) == PE_OK, "finite_law", "a status", c[i]);
        require(one[A_ABOVE] == above[at] && one[A_BELOW] == up_to[at], "finite_law", "its masses", c[i]);
        for (size_t part = 0; part < 4; ++part)
            require(one[part] == tails[part * POINTS + i], "finite_law", "the same bits alone", c[i]);
        require(tails[4 * POINTS + i] >= 1e-15, "finite_law", "its error", c[i]);
    }
    free(loss);
    free(mass);
    free(above);
    free(up_to);
}

void fuzz_exact_sums(void) {
    const size_t kind = below(6);
    if (kind < 2) of_losses();
    else if (kind < 5) of_any_sum();
    else of_one_step();
}
