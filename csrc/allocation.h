/* The law of the loss of epochs of random allocation, an estimate: allocation.c and epoch_rows.c. */
#ifndef PE_ALLOCATION_H
#define PE_ALLOCATION_H

#include "tabulated.h"

struct pe_epoch {
    pe_log_density density; /* of L = log dP/dQ under Q */
    double mu, steps;
    int doublings; /* from one epoch's law to that of several */
    size_t panels; /* on each, both densities change by at most about e^10 */
    double *edge;
    size_t *piece; /* of the density, for each panel */
    double *below[2], *above[2]; /* logs of the masses of Q and P left and right of each edge */
    double defect[2];            /* masses of Q and P minus 1, before normalisation */
};

#endif
