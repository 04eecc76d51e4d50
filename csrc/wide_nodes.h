/* Nodes of one kind of step in long double, before they are rounded. */
#ifndef PE_WIDE_NODES_H
#define PE_WIDE_NODES_H

#include <float.h>

#include "shifted.h"
#include "wide_series.h"

/* One node: the ratio 1/W = a/b = 1 + r, the logarithm of W, and W^s, s = q - 1.  Errors are in units of LDBL_EPSILON. */
typedef struct {
    pe_wide_complex bell;   /* phi b h at the node */
    pe_wide_complex log_of; /* log W */
    pe_wide_complex raised; /* W^s e^-unit, */
    pe_wide power;          /* and its modulus, whose square may be beyond all numbers */
    pe_wide size; /* at least |bell|, with the moduli of the terms of b in the place of their sum */
    double rounding; /* of the bell, relative to size */
    double log_error; /* of log W */
} pe_wide_node;

/* The largest log of |W^s| at a node, and the lowest one of a tapered law: numbers of that size are held. */
#define PE_MOST_POWER (0.67 * LDBL_MAX_EXP)

static const pe_wide PE_HALF_LOG_2PI = 0.918938533204672741780329736405617640L;

/* Bound of the error of W^s - 1 - s log W - s (log(1 + r) - r), whose modulus is `term`, in a sum with weights that err by
 * `rounding`: of log W and of r, whose moduli are l and r, and of W^s, whose modulus is `raised`. */
static inline pe_wide pe_centred_error(double s, double l, double log_error, double r, double ratio_error,
                                       pe_wide raised, pe_wide term, double rounding) {
    const double reach = s * l, wrong = s * log_error;
    const double centre =
        r < 0.07 ? r * (30.0 * r + 1.5 * ratio_error) : 10.0 * (r + l) + ratio_error + log_error;
    const pe_wide others = s * centre + term * rounding;
    /* far out the power may be beyond all doubles where the bell is below them */
    return reach < 0.3 ? reach * (30.0 * reach + 1.5 * wrong) + others
                       : (30.0 + 30.0 * reach + wrong) * (1.0L + raised) + others;
}

/* Whether the part's line is the real one, and what is formed there is a double by far. */
int pe_real_nodes_serve(const pe_part *part);

/* Those of a part on the real line, and its M - 1 with a bound of its error in units of LDBL_EPSILON.  A status. */
int pe_real_nodes(const pe_part *part, pe_wide_node *nodes, pe_wide *above_one, double *error);

#endif
