/* Panels of an epoch's density, on each of which both laws' densities change by at most about e^10: panels.c. */
#ifndef PE_PANELS_H
#define PE_PANELS_H

#include "allocation.h"

/* Divides a density by its mass, which is 1 up to errors; `defect`: the masses of both laws minus 1.  A status. */
int pe_normalise(pe_log_density *f, double *defect);

/* Makes the panels of an epoch, and the masses on both sides of each edge.  A status. */
int pe_epoch_masses(struct pe_epoch *epoch);

#endif
