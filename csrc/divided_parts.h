/* What the paths with a large loss and those without one share, docs/theory/divided_lines.md. */
#ifndef PE_DIVIDED_PARTS_H
#define PE_DIVIDED_PARTS_H

#include "certified_parts.h"

#define PE_SPARED 46.0 /* of what a taper leaves where the laws below it end, in nats */

typedef struct {
    pe_composition q;
    pe_taper *taper; /* of each kind */
    pe_shifted *above, *below; /* the kinds times their tapers, and times 1 less those */
    double *share, *share_error;
    pe_shifted *full; /* the kinds that fade out, before they do; NULL where none does */
    pe_certified c;
} pe_divided;

/* A kind times 1 less its taper; adds what that holds beyond the end that it is given to `lost`, under A and under B.  A
 * status. */
int pe_small_losses(pe_shifted *below, const pe_shifted *whole, const pe_taper *taper, double lost[2]);

/* Sets the least bound of what the paths without a large loss have beyond c; `scale` is one large loss. */
void pe_small_bound(pe_divided *d, double c, double scale);

/* Puts a line of those paths for thresholds about c into d->c.others; a status. */
int pe_small_line(pe_divided *d, double c);

/* Begins the kinds of a line whose laws fade out at a z, each by a taper of a width; `full` is to be freed later.  Adds what
 * fades to `lost`, under A and under B.  A status. */
int pe_fading_kinds(const pe_contours *contours, double at, double width, pe_shifted *full, pe_composition *q,
                    pe_line *ln, double lost[2]);

/* Upper bound of the log of a real transform */
typedef double (*pe_transform)(const pe_divided *d, double theta);

/* Thetas and the spacing of t: the shortest period among some that leaves little of the aliases at c, where `base` is the
 * log of the sum at t = 0.  A status. */
int pe_divided_period(const pe_divided *d, pe_line *ln, double base, double c, pe_transform above);

#endif
