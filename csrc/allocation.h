/* The law of the loss of one epoch of random allocation: allocation.c and epoch_rows.c. */
#ifndef PE_ALLOCATION_H
#define PE_ALLOCATION_H

#include "tabulated.h"

/* One panel for every stretch of the line on which neither density changes by more than e^10 or so;
 * logs of the masses of both laws left of each edge and right of it. */
struct pe_epoch {
    pe_log_density density; /* of L = log dP/dQ under Q */
    double mu, steps;
    int doublings; /* of one epoch's law to that of several */
    size_t panels;
    double *edge;
    size_t *piece;
    double *below[2], *above[2]; /* of Q, of P */
    double defect[2];            /* masses of Q and P that were not 1 before they were divided by */
};

#endif
