/* Rows from divided laws: what paths with a large loss hold beyond a threshold, docs/theory/divided_lines.md. */
#ifndef PE_DIVIDED_H
#define PE_DIVIDED_H

#include "spectral.h"

/* Puts the row at c from the paths with a large loss, with a bound of what the others hold, in the place of one at hand, or
 * of NaN, if it proves more of the functional; a status.  Lines are kept in contours->proven, and made where they may
 * err less than the row at hand. */
int pe_divided_row(pe_contours *contours, int functional, double c, double *row);

/* Lines that were made, the last one first. */
typedef struct pe_divided_line {
    struct pe_divided_line *before;
    struct pe_certified *head,
        *line; /* of the first values, which tell its errors; NULL where it was not made */
    double c; /* the threshold that it was made for, */
    int way; /* and which number of large losses, and tapers */
} pe_divided_line;

void pe_divided_free(pe_divided_line *lines);
size_t pe_divided_bytes(const pe_divided_line *lines);

#endif
