/* The nodes of one kind of step: height and spacing (shifted_height.c), then weights and losses (shifted_nodes.c). */
#ifndef PE_SHIFTED_NODES_H
#define PE_SHIFTED_NODES_H

#include "shifted.h"

/* Sets height and spacing of the fewest nodes whose quadrature error is about `target` for t up to t_top: on the real
 * line, or on a shifted line, which serves every t.  Returns whether there are any. */
int pe_shifted_height(pe_part *part, double target, double t_top);

/* Makes the nodes of all parts, given height and spacing of each, and sets log M and the mean of log W.  A status. */
int pe_shifted_fill(pe_shifted *s);

#endif
