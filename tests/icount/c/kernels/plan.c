/* Many compositions of equal steps in one call, each from nothing to an answer with bounds. */
#include "kernel.h"

enum { MANY = 64, MOST_LEFT = 4 /* of them, to laws of few steps and to arrays */ };

static const double COST_LIMIT = 3e7;
static double *noise, *rate, *steps, *x, *answers;
static unsigned char answered[MANY], stop;
static pe_plan how;

static void runs(double low, double high) {
    noise = icount_doubles(MANY);
    rate = icount_doubles(MANY);
    steps = icount_doubles(MANY);
    x = icount_doubles(MANY);
    answers = icount_doubles(MANY * 3);
    for (size_t i = 0; i < MANY; i++) {
        noise[i] = icount_between(0.9, 3.0, i);
        rate[i] = exp(icount_between(log(0.003), log(0.1), 3 * i));
        steps[i] = floor(exp(icount_between(log(1e3), log(1e4), 5 * i)));
        x[i] = exp(icount_between(log(low), log(high), 7 * i));
    }
    /* as pyengine/engines/equal_steps.py has it for bounds */
    how = (pe_plan){.enough = 3e-11, .few = 1000.0, .smallest = -160.0};
    how.slack = 0x1p-49;
    how.widest[0] = how.widest[1] = 1e-4;
}

static void ask(int question, int orders) {
    size_t left = 0;
    const int status = pe_plan_many(&how, orders, COST_LIMIT, MANY, noise, rate, steps, question, x, &stop,
                                    answers, answered);
    icount_require(status == PE_OK, "the call ends well");
    for (size_t i = 0; i < MANY; i++) {
        left += !answered[i];
        if (answered[i]) icount_require_numbers(answers + 3 * i, 3);
    }
    icount_require(left <= MOST_LEFT, "most are answered");
}

static void levels(void) {
    runs(1e-6, 0.1);
}

static void many_gammas(void) {
    ask(PE_ASKS_GAMMA, PE_ADD);
}
KERNEL("many_gammas", levels, many_gammas);

static void many_epsilons(void) {
    ask(PE_ASKS_EPSILON, PE_ADD_REMOVE);
}
KERNEL("many_epsilons", levels, many_epsilons);

static void thresholds(void) { /* some standard deviations of the loss, about */
    runs(0.5, 4.0);
    for (size_t i = 0; i < MANY; i++) x[i] *= rate[i] * sqrt(steps[i]) / noise[i];
}

static void many_deltas(void) {
    ask(PE_ASKS_DELTA, PE_ADD_REMOVE);
}
KERNEL("many_deltas", thresholds, many_deltas);
