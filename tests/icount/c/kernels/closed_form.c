#include "kernel.h"

enum { COUNT = 512 };

static pe_step step;
static double *epsilon, *level, *out;

/* noise 0.8, probability 0.01; the small parts of the sums of two doubles do not change the work */
static void prepare(void) {
    const double mu = 1.25, p = 0.01;
    step = (pe_step){.mu = {mu, 0.0},
                     .half_square = {0.5 * mu * mu, 0.0},
                     .p = {p, 0.0},
                     .rest = {1.0 - p, 0.0},
                     .log_p = {log(p), 0.0},
                     .floor = {log1p(-p), 0.0},
                     .order = PE_REMOVE};
    epsilon = icount_doubles(COUNT);
    level = icount_doubles(COUNT);
    out = icount_doubles(7 * COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        epsilon[i] = icount_between(0.0, 4.0, i);
        level[i] = exp(icount_between(-60.0, -6.0, i));
    }
}

static void require_values(size_t width) {
    for (size_t i = 0; i < COUNT; i++) {
        const double *answer = out + width * i;
        icount_require(answer[1] <= answer[0] && answer[0] <= answer[2] && answer[2] < 1e3,
                       "values lie between bounds");
    }
}

static void closed_form_at(void) {
    pe_step_profile(&step, COUNT, epsilon, out);
    require_values(3);
}
KERNEL("closed_form_at", prepare, closed_form_at);

static void closed_form_solve(void) {
    step.order = PE_ADD;
    pe_step_trade_off(&step, COUNT, level, out);
    step.order = PE_REMOVE;
    require_values(7);
}
KERNEL("closed_form_solve", prepare, closed_form_solve);

static void closed_form_epsilon(void) {
    pe_step_epsilon(&step, COUNT, level, out);
    require_values(3);
}
KERNEL("closed_form_epsilon", prepare, closed_form_epsilon);
