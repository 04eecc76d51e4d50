/* Random inputs to the kernels under the sanitizers: make fuzz, or by hand
 *
 *     build/sanitize/fuzz [inputs] [seed]
 *
 * One input is one call of one kernel: arrays of random length and exactly that size, random strides,
 * doubles of any bits where the kernel takes any, and random members of the domain where the caller
 * keeps to one (csrc/pyengine.h says which).  Besides what the sanitizers see, each result must keep
 * the laws that hold for every input: NaN where, and only where, an argument lies outside the domain,
 * probabilities in [0, 1], the same bits alone as in an array, bounds in order.  A failure prints the
 * input's number; the same seed gives the same inputs.
 */
#include "fuzz.h"

#include <time.h>

/* Costly kernels are drawn less often: weights out of 1000. */
static const struct {
    const char *name;
    void (*run)(void);
    size_t weight;
} KINDS[] = {
    {"one argument", fuzz_unary, 185},     {"three arguments", fuzz_ternary, 170},
    {"inversion", fuzz_pair, 2},           {"laws on pieces", fuzz_law, 3},
    {"answers", fuzz_answers, 130},        {"normal cells", fuzz_normal_cells, 70},
    {"lattice cells", fuzz_lattice, 70},   {"sums", fuzz_sums, 70},
    {"spectrum", fuzz_spectrum, 50},       {"random losses", fuzz_sampling, 40},
    {"Gauss's nodes", fuzz_gauss, 10},     {"losses' transforms", fuzz_loss_transform, 20},
    {"sums on lines", fuzz_trig_sums, 20}, {"integrals of places", fuzz_place_integrals, 20},
    {"bounds at levels", fuzz_levels, 20}, {"tests at levels", fuzz_level_search, 20},
    {"exact sums", fuzz_exact_sums, 20},   {"transforms on grids", fuzz_loss_transform_grid, 20},
    {"logs on lanes", fuzz_lane_log, 30},  {"sums over nodes", fuzz_node_sums, 20},
    {"powers", fuzz_powers, 10},
};

int main(int count, char **arguments) {
    const uint64_t inputs = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000;
    const uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    size_t drawn[LENGTH(KINDS)] = {0}, total = 0;
    clock_t taken[LENGTH(KINDS)] = {0};
    for (size_t k = 0; k < LENGTH(KINDS); ++k) total += KINDS[k].weight;
    for (uint64_t input = 0; input < inputs; ++input) {
        begin_input(seed, input);
        size_t k = 0, ticket = below(total);
        while (ticket >= KINDS[k].weight) ticket -= KINDS[k++].weight;
        const clock_t start = clock();
        KINDS[k].run();
        taken[k] += clock() - start;
        ++drawn[k];
    }
    for (size_t k = 0; k < LENGTH(KINDS); ++k)
        printf("%-20s %8zu inputs  %7.1f s\n", KINDS[k].name, drawn[k], (double)taken[k] / CLOCKS_PER_SEC);
    printf("%llu inputs, seed %llu: %d failures\n", (unsigned long long)inputs, (unsigned long long)seed,
           failures());
    return failures() ? EXIT_FAILURE : EXIT_SUCCESS;
}
