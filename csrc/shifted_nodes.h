/* The nodes of one kind of step: where they lie, and what they are. */
#ifndef PE_SHIFTED_NODES_H
#define PE_SHIFTED_NODES_H

#include "shifted.h"

/* Height and spacing of the fewest nodes that miss little for t up to t_top: on the real line where the integrand turns
 * slowly, or on a shifted line, which serves every t.  Whether there are any. */
int pe_shifted_height(pe_part *part, double target, double t_top);

/* The nodes of all parts, given height and spacing of each, log M and the mean of log W.  A status. */
int pe_shifted_fill(pe_shifted *s);

#endif
