/* Rows from divided laws: what paths with a large loss hold beyond a threshold, docs/theory/divided_lines.md. */
#ifndef PE_DIVIDED_H
#define PE_DIVIDED_H

#include "spectral.h"

/* The row at c from the paths with a large loss, with a bound of what the others hold, on the line that proves most of
 * the functional; a status, PE_TOO_COSTLY where it proves nothing. */
int pe_divided_row(const pe_contours *contours, int functional, double c, double *row);

#endif
