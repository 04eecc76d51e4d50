/* Shared by divided.c (paths with a large loss) and small_losses.c (paths without one): docs/theory/divided_lines.md. */
#ifndef PE_DIVIDED_PARTS_H
#define PE_DIVIDED_PARTS_H

#include "certified_parts.h"

/* nats: 1 - taper is e^-PE_SPARED where the law of small losses is cut off */
#define PE_SPARED 46.0

/* A divided law under construction */
typedef struct {
    pe_composition q;
    pe_taper *taper; /* of each kind */
    pe_shifted *above, *below; /* the kinds times their tapers, and times 1 minus their tapers */
    /* G_chi/G at the line's tilt for each kind, and bounds of the relative errors */
    double *share, *share_error;
    pe_shifted *full; /* the kinds before they are faded out by a second taper; NULL if they are not */
    pe_certified c;
} pe_divided;

/* Sets `below` to a kind times 1 - taper, cut off; adds the mass that is cut off to `lost`, under A and under B.  A
 * status. */
int pe_small_losses(pe_shifted *below, const pe_shifted *whole, const pe_taper *taper, double lost[2]);

/* Sets zero_theta and zero_k of d->c to the least bound of the paths without a large loss beyond c; `scale`: one large
 * loss. */
void pe_small_bound(pe_divided *d, double c, double scale);

/* Makes d->c.others, a line of the paths without a large loss for thresholds about c.  A status. */
int pe_small_line(pe_divided *d, double c);

/* Begins the kinds of a line, each faded out at z = `at` by a falling taper; `full`, the kinds before that, must be
 * freed later.  Adds the mass that is removed to `lost`, under A and under B.  A status. */
int pe_fading_kinds(const pe_contours *contours, double at, double width, pe_shifted *full, pe_composition *q,
                    pe_line *ln, double lost[2]);

/* Upper bound of the log of a real transform at theta */
typedef double (*pe_transform)(const pe_divided *d, double theta);

/* Sets the thetas and the spacing of t: on each side the theta, of a few, with the shortest period that makes the
 * aliases at c e^-38 of e^base, the sum at t = 0.  A status. */
int pe_divided_period(const pe_divided *d, pe_line *ln, double base, double c, pe_transform above);

#endif
