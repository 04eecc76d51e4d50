/* The proven lines that a pe_contours keeps: proven.c. */
#ifndef PE_PROVEN_H
#define PE_PROVEN_H

#include <stddef.h>

#include "pair.h"
#include "spectral.h"

void pe_proven_free(pe_proven *proven);
size_t pe_proven_bytes(const pe_proven *proven);

/* pe_pair_chernoff at one threshold; a row of NaN if the bound of the profile is estimated to exceed e^log_most. */
int pe_pair_chernoff_below(pe_pair *pair, double c, double log_most, double *row);

#endif
