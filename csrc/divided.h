/* Rows from divided laws, where one large loss decides: docs/theory/divided_lines.md.  Called by proven.c. */
#ifndef PE_DIVIDED_H
#define PE_DIVIDED_H

#include "spectral.h"

/* Replaces `row` (which may be NaN) by the row at c of a divided law if that has a smaller error of the functional.
 * Lines are kept in contours->proven; one is built only where it may have a smaller error than the row.  A status. */
int pe_divided_row(pe_contours *contours, int functional, double c, double *row);

/* List of the lines that were built, the last one first. */
typedef struct pe_divided_line {
    struct pe_divided_line *before;
    /* head: the line with its first values only, which show its least error; NULL if not built */
    struct pe_certified *head, *line;
    double c; /* the threshold that it was built for, */
    int way; /* and the way to divide the law (divided.c) */
} pe_divided_line;

void pe_divided_free(pe_divided_line *lines);
size_t pe_divided_bytes(const pe_divided_line *lines);

#endif
