/* Runs the kernels on extremes, for the sanitizers (make sanitize).
 *
 * A new elementwise kernel is one line in UNARY of elementwise.c; any other kernel gets a function that
 * returns the number of failures, and one line in CASES.  Accuracy is judged by the Python tests; here arrays
 * have exactly the size that is passed, so that a read or write beyond them is caught, and the
 * array form must give the bits of the scalar form.  Rows of the composed loss must be consistent in
 * themselves: a failure is a row of NaN, probabilities are at most 1 and add up to 1 within the
 * errors that the row claims.
 */
#include "extremes.h"

static int run_cpu(void) {
    const int level = pe_simd_level();
    return level != 0 && level != 1 && level != 3 && level != 4;
}

static const struct {
    const char *name;
    int (*run)(void);
} CASES[] = {
    {"vector instructions", run_cpu},
    {"elementwise kernels", run_unary},
    {"one step in closed form", run_step},
    {"composed loss, inversion", run_pair},
    {"composed loss, mixtures", run_mixtures},
    {"lattice engine", run_lattice},
    {"from rows to answers", run_answers},
    {"polynomials on panels", run_panels},
    {"kernels of three arguments", run_ternary},
    {"random losses", run_sampling},
    {"losses of random steps", run_random_steps},
    {"transforms of losses", run_transforms},
    {"bounds at levels", run_levels},
    {"masses of lines", run_line_masses},
    {"sums on lines", run_line_sums},
    {"integrals along rays", run_rays},
    {"Gauss's nodes", run_gauss},
    {"nodes of steps", run_step_nodes},
    {"corners of call functions", run_corners},
    {"laws with proven errors", run_sector},
};

int main(void) {
    int failures = 0;
    for (size_t k = 0; k < LENGTH(CASES); ++k) {
        const int failed = CASES[k].run();
        printf("%-40s %s\n", CASES[k].name, failed ? "FAILED" : "ok");
        failures += failed;
    }
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
