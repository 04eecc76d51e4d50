/* The law of one epoch of random allocation, and a composition of a law that is known by nodes. */
#include "kernel.h"

#include <math.h>

enum { NODES = 8192, QUESTIONS = 4 };

static double *loss, *log_weight, *c, *rows;

static void inputs(void) {
    c = icount_doubles(QUESTIONS);
    rows = icount_doubles(QUESTIONS * PE_ROW);
    for (size_t i = 0; i < QUESTIONS; i++) c[i] = icount_between(-1.0, 1.0, i);
}

static void epoch(void) {
    pe_epoch *made;
    const int status = pe_epoch_new(1.0, 1000.0, 1.0, &made);
    icount_require(status == PE_OK, "the law is tabulated");
    pe_epoch_at(made, 0, QUESTIONS, c, rows);
    pe_epoch_free(made);
    icount_require_numbers(rows, QUESTIONS);
}
KERNEL("epoch", inputs, epoch);

/* N(-s^2/2, s^2), of which most nodes carry nothing that matters. */
static void nodes(void) {
    const double s = 0.1, spacing = 80.0 / NODES;
    inputs();
    loss = icount_doubles(NODES);
    log_weight = icount_doubles(NODES);
    for (size_t i = 0; i < NODES; i++) {
        const double z = spacing * ((double)i - NODES / 2);
        loss[i] = s * (z - 0.5 * s);
        log_weight[i] = -0.5 * z * z + log(spacing) - 0.91893853320467274178;
    }
}

static void listed_one_contour(void) {
    pe_pair *pair;
    int status = pe_pair_new(0, loss, loss, loss, 0, 2e8, &pair);
    icount_require(status == PE_OK, "the pair is made");
    status = pe_pair_add_table(pair, 100.0, NODES, loss, log_weight, 300.0);
    icount_require(status == PE_OK, "the law is taken");
    pe_pair_at(pair, PE_PROFILE, 1, c, rows);
    pe_pair_free(pair);
    icount_require(pe_row_good(rows, PE_PROFILE, 1e-11, 1e-9), "the row is accurate");
}
KERNEL("listed_one_contour", nodes, listed_one_contour);
