/* Random inputs: sums of equal Laplace losses, laws of finitely many losses, both together, and their profiles. */
#include "fuzz.h"

static const double U = 0x1p-53;
enum { POINTS = 5, A_ABOVE = 0, A_BELOW, B_ABOVE, B_BELOW, TAILS = 6, PARTS = 3 };
enum { BESIDE = 40 }; /* most finite losses beside another law */

static double positive(void) {
    return log_uniform(1e-6, 1.0);
}

static double near_nothing(void) {
    return uniform(-1.0, 1.0) * 1e-17;
}

/* Finite losses beside a law: masses and profiles are averages of those at each loss. */
static void beside(pe_laplace_sum *law, double end) {
    const size_t n = 1 + below(BESIDE);
    double *loss = filled(n, probability), *a = filled(n, positive), *b = filled(n, positive);
    double *low = filled(n, near_nothing), tails[TAILS * POINTS], out[PARTS * POINTS];
    double c[POINTS], one[TAILS], part[PARTS];
    pe_mixed_law mixed = {n,
                          loss,
                          a,
                          b,
                          1e-15,
                          -end,
                          1.0,
                          {NULL, NULL, below(2) ? low : NULL, 1e-30},
                          law,
                          pe_laplace_sum_tails,
                          pe_laplace_sum_profile};
    for (size_t i = 0; i < POINTS; ++i) c[i] = uniform(-1.1, 1.1) * (end + 1.0);
    require(pe_mixed_law_tails(&mixed, POINTS, c, tails) == PE_OK, "mixed_law", "a status", end);
    require(pe_mixed_law_profile(&mixed, POINTS, c, NULL, out) == PE_OK, "mixed_law", "a status", end);
    for (size_t i = 0; i < POINTS; ++i) {
        long double masses[4] = {0.0L}, value = 0.0L;
        for (size_t j = 0; j < n; ++j) {
            const double up = c[i] - loss[j], at = c[i] + loss[j];
            require(pe_laplace_sum_tails(law, 1, &up, one) == PE_OK, "laplace_sum", "a status", up);
            require(pe_laplace_sum_profile(law, 1, &at, NULL, part) == PE_OK, "laplace_sum", "a status", at);
            for (int k = 0; k < 4; ++k) masses[k] += (long double)one[k] * (k < B_ABOVE ? a : b)[j];
            value += (long double)part[0] * a[j];
        }
        for (int k = 0; k < 4; ++k)
            require(fabsl(tails[k * POINTS + i] - masses[k]) <= 50.0L * U * masses[k], "mixed_law_tails",
                    "averages", c[i]);
        require(fabsl(out[i] - value) <= out[POINTS + i] + 50.0L * U * value, "mixed_law_profile", "averages",
                c[i]);
        require(out[POINTS + i] >= 0.0 && out[2 * POINTS + i] >= 0.0, "mixed_law_profile",
                "no negative error", c[i]);
    }
    free(loss);
    free(a);
    free(b);
    free(low);
}

/* Positive polynomials and atoms of no law in particular: masses lie in order, and mirror each other. */
static void of_any_sum(void) {
    const size_t steps = below(20) ? 1 + below(12) : 1 + below(PE_LAPLACE_STEPS);
    double *curve = filled(steps * steps, positive), *atoms = filled(steps + 1, positive);
    double *even = filled(steps, positive), *odd = filled(steps, positive);
    double *below_ = filled(steps + 1, positive), *above = filled(steps + 1, positive);
    double *tallest = filled(steps + 1, positive);
    const double ratio = log_uniform(1e-12, 40.0), end = (double)steps * ratio;
    pe_laplace_sum law = {steps,      ratio, 1e-5,   1e-15, below(2) ? 1e-300 : 0.0,
                          {end, 0.0}, curve, atoms,  even,  odd,
                          below_,     above, tallest};
    double c[POINTS], tails[TAILS * POINTS], out[PARTS * POINTS];
    for (size_t i = 0; i < POINTS; ++i)
        c[i] = below(3) ? uniform(-1.1, 1.1) * end : (2.0 * (double)below(steps + 1) - (double)steps) * ratio;
    require(pe_laplace_sum_tails(&law, POINTS, c, tails) == PE_OK, "laplace_sum", "a status", ratio);
    require(pe_laplace_sum_profile(&law, POINTS, c, NULL, out) == PE_OK, "laplace_sum", "a status", ratio);
    for (size_t i = 0; i < POINTS; ++i) {
        double one[4];
        require(pe_laplace_sum_roughly(&law, c[i], one) == PE_OK, "laplace_sum", "a status", ratio);
        for (size_t part = 0; part < 4; ++part) {
            require(one[part] == tails[part * POINTS + i], "laplace_sum", "the same bits alone", c[i]);
            require(one[part] >= 0.0, "laplace_sum", "no negative mass", c[i]);
        }
        require(out[POINTS + i] >= 0.0 && out[2 * POINTS + i] >= 0.0, "laplace_sum", "no negative error",
                c[i]);
    }
    if (steps < 20) beside(&law, end);
    free(curve);
    free(atoms);
    free(even);
    free(odd);
    free(below_);
    free(above);
    free(tallest);
}

/* Steps of either kind: coefficients are positive, and all mass together is 1. */
static void of_steps(void) {
    const size_t steps = 1 + below(below(4) ? 12 : 60);
    const int has_atoms = below(2) != 0;
    const double ratio = log_uniform(1e-9, 40.0);
    double *curve = allocate(steps * steps), *atoms = allocate(steps + 1);
    require(pe_laplace_sum_law(steps, ratio, has_atoms, curve, atoms) == PE_OK, "laplace_sum_law", "a status",
            ratio);
    long double whole = 0.0L;
    for (size_t i = 0; i < steps * steps; ++i) {
        require(curve[i] >= 0.0, "laplace_sum_law", "no negative coefficient", ratio);
        whole += (long double)curve[i] / (long double)steps;
    }
    for (size_t i = 0; i <= steps; ++i) whole += atoms[i];
    require(fabsl(whole - 1.0L) <= (16.0L * (long double)steps + 8.0L) * U, "laplace_sum_law", "a whole of 1",
            ratio);
    free(curve);
    free(atoms);
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
    pe_laplace_sum law = {1,     ratio, 0.5 * whole, 300.0 * U, 0.0,   {ratio, 0.0}, &curve,
                          atoms, &even, &odd,        before,    after, tallest};
    const double c = uniform(-1.0, 1.0) * ratio, epsilon = fabs(c);
    const long double mass = 0.5L * expl(-0.5L * ((long double)c + ratio));
    const long double profile = -expm1l(0.5L * ((long double)epsilon - ratio));
    double tails[TAILS], out[PARTS], found[3];
    require(pe_laplace_sum_tails(&law, 1, &c, tails) == PE_OK, "laplace_sum", "a status", ratio);
    const long double off = (tails[4] + 0.5L * tails[5] + 40.0L * U) * mass;
    require(fabsl(tails[A_ABOVE] - mass) <= off, "laplace_sum", "A above", c);
    require(fabsl(tails[A_BELOW] - (1.0L - mass)) <= tails[4] + off, "laplace_sum", "A below", c);
    require(pe_laplace_sum_profile(&law, 1, &epsilon, NULL, out) == PE_OK, "laplace_sum", "a status", ratio);
    require(fabsl(out[0] - profile) <= out[1], "laplace_sum_profile", "its value", epsilon);
    const long double slope = 0.5L * expl(0.5L * ((long double)epsilon - ratio));
    require(out[2] == 0.0 || fabsl(out[2] - slope) <= 100.0L * U, "laplace_sum_profile", "its fall", epsilon);
    /* the epsilon of any delta is mu + 2 log(1 - delta) */
    const double delta = below(2) ? log_uniform(1e-300, 1.0) : uniform(0.0, 1.0);
    const long double exact = fmaxl(ratio + 2.0L * log1pl(-(long double)delta), 0.0L);
    const pe_profile asked = {&law, pe_laplace_sum_profile, NULL, {0.0, 0.0, 0.0}, ratio, ratio, ratio};
    require(pe_profile_epsilons(&asked, 1, &delta, found) == PE_OK, "profile_epsilons", "a status", delta);
    require(found[1] <= exact + U * ratio && found[2] >= exact - U * ratio, "profile_epsilons", "a bracket",
            delta);
    require(found[2] - found[1] <= 4e3 * U * (ratio + 1.0 / (1.0 - delta)), "profile_epsilons", "a close one",
            delta);
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
    pe_finite_law law = {.n = n,
                         .loss = loss,
                         .a_above = above,
                         .a_below = up_to,
                         .b_above = above,
                         .b_below = up_to,
                         .a = mass,
                         .a_up_to = up_to,
                         .error = 1e-15,
                         .log_error = 1e-16,
                         .shift = 1e-15};
    double c[POINTS], tails[TAILS * POINTS];
    for (size_t i = 0; i < POINTS; ++i) c[i] = below(2) ? loss[below(n)] : uniform(-1.0, loss[n - 1] + 1.0);
    require(pe_finite_law_tails(&law, POINTS, c, tails) == PE_OK, "finite_law", "a status", c[0]);
    for (size_t i = 0; i < POINTS; ++i) {
        double one[4];
        size_t at = 0;
        while (at < n && loss[at] <= c[i]) ++at;
        require(pe_finite_law_roughly(&law, c[i], one) == PE_OK, "finite_law", "a status", c[i]);
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

static double spread(void) {
    return below(3) ? log_uniform(1e-9, 4.0) : uniform(0.0, 4.0);
}

static int low_parts(void *handle, const double **low, double *error) {
    *low = handle;
    *error = 1e-30;
    return below(20) ? PE_OK : PE_RAISED;
}

/* A pair of finitely many losses: epsilon is where the sum over them, in long doubles, is delta. */
static void of_profiles(void) {
    const size_t n = 1 + below(below(10) ? 8 : 400);
    double *loss = filled(n, spread), *a = filled(n, positive), *low = calloc(n, sizeof *low);
    double *a_to = calloc(n + 1, sizeof *a_to), *b_to = calloc(n + 1, sizeof *b_to);
    double delta[POINTS], out[3 * POINTS], again[3 * POINTS], one[3], sum = 0.0;
    loss[0] -= uniform(0.0, 8.0);
    for (size_t i = 1; i < n; ++i) loss[i] += loss[i - 1];
    for (size_t i = 0; i < n; ++i) sum += a[i];
    const double lost = below(3) ? 0.0 : log_uniform(1e-12, 0.5);
    for (size_t i = 0; i < n; ++i) {
        a[i] *= (1.0 - lost) / sum;
        a_to[i + 1] = a_to[i] + a[i];
        b_to[i + 1] = b_to[i] + a[i] * exp(loss[i]);
    }
    pe_finite_law law = {n,
                         loss,
                         a_to,
                         a_to,
                         b_to,
                         b_to,
                         a,
                         a_to,
                         1e-15,
                         1e-17,
                         1e-16,
                         loss[0],
                         {below(2) ? low_parts : NULL, low, NULL, 0.0}};
    const double end = fmax(-loss[0], 0.0);
    const pe_profile asked = {&law,
                              pe_finite_law_profile,
                              below(2) ? pe_finite_law_start : NULL,
                              {lost, 0.0, 0.0},
                              end * (1.0 + 4.0 * U),
                              end,
                              end};
    const size_t kind = below(8);
    for (size_t i = 0; i < POINTS; ++i)
        delta[i] = kind == 0 ? anything() : kind < 4 ? log_uniform(1e-320, 1.0) : probability();
    const int status = pe_profile_epsilons(&asked, POINTS, delta, out);
    require(status == PE_OK || status == PE_RAISED, "profile_epsilons", "a status", delta[0]);
    for (size_t i = 0; i < POINTS && status == PE_OK && kind; ++i) {
        require(out[POINTS + i] <= out[i] && out[i] <= out[2 * POINTS + i], "profile_epsilons", "in order",
                delta[i]);
        long double over[2] = {lost - (long double)delta[i], lost - (long double)delta[i]};
        for (size_t side = 0; side < 2; ++side)
            for (size_t j = 0; j < n; ++j)
                over[side] +=
                    a[j] * -expm1l(fminl((long double)out[(side + 1) * POINTS + i] + loss[j], 0.0L));
        const long double off = 2e-19L * (sum + 1.0L);
        require(out[POINTS + i] == 0.0 || over[0] >= -off, "profile_epsilons", "a lower bound", delta[i]);
        require(over[1] <= off || isinf(out[2 * POINTS + i]), "profile_epsilons", "an upper bound", delta[i]);
        require(pe_profile_epsilons(&asked, 1, delta + i, one) != PE_OK ||
                    (one[0] == out[i] && one[1] == out[POINTS + i] && one[2] == out[2 * POINTS + i]) ||
                    !law.parts.low,
                "profile_epsilons", "the same bits alone", delta[i]);
        require(pe_profile_deltas(&asked, POINTS, out, again) != PE_OK || !(again[0] < again[POINTS]),
                "profile_deltas", "in order", delta[i]);
    }
    free(loss);
    free(a);
    free(low);
    free(a_to);
    free(b_to);
}

/* Values that are no profile, any bits among them: the search ends, and what it finds is in order. */
static int any_profile(void *law, size_t n, const double *epsilon, const double *low, double *out) {
    (void)law;
    (void)low;
    for (size_t i = 0; i < n; ++i) {
        out[i] = below(3) ? exp(-epsilon[i]) * uniform(0.9, 1.0) : anything();
        out[n + i] = below(3) ? log_uniform(1e-18, 1e-3) : fabs(anything());
        out[2 * n + i] = below(3) ? exp(-epsilon[i]) : anything();
    }
    return below(200) ? PE_OK : PE_RAISED;
}

static void of_no_profile(void) {
    const double end = below(4) ? log_uniform(1e-300, 1e300) : fabs(anything());
    const pe_profile asked = {NULL, any_profile, NULL, {below(2) ? 0.0 : probability(), 0.0, 0.0},
                              end,  end,         end};
    double delta[POINTS], out[3 * POINTS];
    if (!(end <= 1.7976931348623157e308)) return;
    for (size_t i = 0; i < POINTS; ++i) delta[i] = below(3) ? log_uniform(1e-320, 1.0) : probability();
    const int status = pe_profile_epsilons(&asked, POINTS, delta, out);
    for (size_t i = 0; i < POINTS && status == PE_OK; ++i)
        require(out[POINTS + i] <= out[i] && out[i] <= out[2 * POINTS + i], "profile_epsilons", "in order",
                delta[i]);
}

void fuzz_exact_sums(void) {
    const size_t kind = below(10);
    if (kind < 2) of_losses();
    else if (kind < 4) of_profiles();
    else if (kind == 4) of_no_profile();
    else if (kind < 8) of_any_sum();
    else if (kind == 8) of_steps();
    else of_one_step();
}
