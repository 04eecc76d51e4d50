/* Laws with proven errors: of a few sampled steps, and of two epochs of random allocation. */
#include "kernel.h"

#include <math.h>

enum { QUESTIONS = 4 };

static const double DEEPEST = -200.0, DEEPEST_EPOCH = -230.0;
static double *c, *rows;
static pe_sector_pieces *pieces; /* which sums of one thread share */

static void inputs(void) {
    c = icount_doubles(QUESTIONS);
    rows = icount_doubles(QUESTIONS * PE_ROW);
    pieces = pe_sector_pieces_new();
    icount_require(pieces != NULL, "there is memory");
    for (size_t i = 0; i < QUESTIONS; i++) c[i] = icount_between(0.1, 1.0, i);
}

static void asked(pe_sector *law) {
    pe_sector_at(law, 0, QUESTIONS, c, rows);
    pe_sector_free(law);
    icount_require_numbers(rows, QUESTIONS);
}

/* Two steps of noise 1, sampled at a rate of 1/1000. */
static void sector_steps(void) {
    const double shift[] = {1.0, 0.0}, ratio[] = {1.0 / 999.0, 0.0},
                 floor_parts[] = {-1.0005003335835335e-3, 0.0};
    pe_sector *one, *two;
    int status = pe_sector_step(shift, ratio, floor_parts, 1e-3, DEEPEST, DEEPEST, 2.0, -INFINITY, &one);
    icount_require(status == PE_OK, "the law of a step is made");
    status = pe_sector_convolve(one, one, pieces, &two);
    icount_require(status == PE_OK, "the law of both steps is made");
    pe_sector_free(one);
    asked(two);
}
KERNEL("sector_steps", inputs, sector_steps);

/* Two epochs of two steps of noise 1. */
static void sector_epochs(void) {
    const double shift[] = {1.0, 0.0};
    pe_sector *one, *epoch, *both;
    int status = pe_sector_ratio(shift, DEEPEST_EPOCH, 2.0, &one);
    icount_require(status == PE_OK, "the law of a ratio is made");
    status = pe_sector_convolve(one, one, pieces, &epoch);
    icount_require(status == PE_OK, "the law of an epoch is made");
    status = pe_sector_compose(epoch, epoch, pieces, &both);
    icount_require(status == PE_OK, "the law of both epochs is made");
    pe_sector_free(one);
    pe_sector_free(epoch);
    asked(both);
}
KERNEL("sector_epochs", inputs, sector_epochs);
