/* One panel for every stretch of the line on which neither density changes by more than e^10 or so: panels.c. */
#ifndef PE_PANELS_H
#define PE_PANELS_H

#include "allocation.h"

/* Divides a density by its mass, which is 1 but for the errors of the step that made it; what both laws'
 * masses were off by.  A status. */
int pe_normalise(pe_log_density *f, double *defect);

/* The panels of an epoch, and the masses on both sides of each; a status. */
int pe_epoch_masses(struct pe_epoch *epoch);

#endif
