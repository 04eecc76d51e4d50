/* Inside of the spectral engine: the lines of a contours whose errors are proven. */
#ifndef PE_PROVEN_H
#define PE_PROVEN_H

#include <stddef.h>

#include "pair.h"
#include "spectral.h"

void pe_proven_free(pe_proven *proven);
size_t pe_proven_bytes(const pe_proven *proven);

/* pe_pair_chernoff at one threshold; a row of NaN where its profile is estimated to be above e^log_most. */
int pe_pair_chernoff_below(pe_pair *pair, double c, double log_most, double *row);

#endif
