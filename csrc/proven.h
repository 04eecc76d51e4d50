/* Inside of the spectral engine: the lines of a contours whose errors are proven. */
#ifndef PE_PROVEN_H
#define PE_PROVEN_H

#include <stddef.h>

#include "spectral.h"

void pe_proven_free(pe_proven *proven);
size_t pe_proven_bytes(const pe_proven *proven);

#endif
