/* Nodes of one alternative of a step in sums of two doubles, before they are rounded: made by real_nodes.c and
 * plane_nodes.c, taken by shifted_nodes.c.  Errors: Lemma 5 of docs/theory/gaussian.md. */
#ifndef PE_WIDE_NODES_H
#define PE_WIDE_NODES_H

#include "arithmetic_lanes.h"
#include "shifted.h"

/* Sums over lanes of nodes for M - 1 and its error, and the range of arguments that functions were asked for. */
typedef struct {
    pe_dds total;
    double error[PE_LANES], most[PE_LANES], least[PE_LANES], widest[PE_LANES];
} pe_wide_sums;

/* Columns of nodes; of sums of two doubles the high parts, then the low parts.  Errors are in units of PE_WIDE_UNIT.
 * Where the bell underflows and the power overflows, a power of 2 is moved from the latter to the former. */
enum {
    PE_BELL_RE = 0, /* phi b h at the node */
    PE_BELL_IM = 2,
    PE_LOG_RE = 4, /* log W */
    PE_LOG_IM = 6,
    PE_RAISED_RE = 8, /* W^s e^-unit, s = q - 1, */
    PE_RAISED_IM = 10,
    PE_POWER = 12, /* and its modulus */
    PE_SIZE, /* phi h times the sum of the moduli of the terms of b, at least |bell| */
    PE_ROUNDING, /* of the bell, relative to size */
    PE_LOG_ERROR, /* of log W */
    PE_NODE_COLUMNS,
};

typedef struct {
    size_t stride;
    double *block;
} pe_wide_nodes;

PE_INLINE double *pe_column(const pe_wide_nodes *nodes, int column) {
    return nodes->block + (size_t)column * nodes->stride;
}

/* Stores PE_LANES numbers, or sums of two doubles, from node i on. */
PE_INLINE void pe_put_lanes(const pe_wide_nodes *nodes, int column, size_t i, const double *lanes) {
    memcpy(pe_column(nodes, column) + i, lanes, PE_LANES * sizeof *lanes);
}

PE_INLINE void pe_put_pairs(const pe_wide_nodes *nodes, int column, size_t i, const pe_dds *lanes) {
    pe_put_lanes(nodes, column, i, lanes->h);
    pe_put_lanes(nodes, column + 1, i, lanes->l);
}

/* The largest |log |W^s|| at a node; powers of 2 are kept apart, so it may exceed that of a double. */
#define PE_MOST_POWER 10900.0

/* |log |W^s|| from which on its power of 2 is moved to the bell. */
#define PE_FAR_POWER 300.0

/* Bound of the error of a sum by underflow of its terms. */
#define PE_UNDERFLOW 1e-290

/* Bound of the error of W^s - 1 - s log W - s (log(1 + r) - r), a term of M - 1, in units of PE_WIDE_UNIT times `one`.
 * l, r and raised: moduli of log W, r and W^s; log_error and ratio_error: errors of log W and r; term: modulus of the
 * term; rounding: relative error of its weight. */
PE_INLINE double pe_centred_error(double s, double l, double log_error, double r, double ratio_error,
                                  double raised, double term, double rounding, double one) {
    const double reach = s * l, wrong = s * log_error;
    const double near = r * (30.0 * r + 1.5 * ratio_error), far = 10.0 * (r + l) + ratio_error + log_error;
    const double others = one * s * (r < 0.07 ? near : far) + term * rounding;
    const double small = reach * (30.0 * reach + 1.5 * wrong),
                 large = (30.0 + 30.0 * reach + wrong) * (one + raised);
    return (reach < 0.3 ? small : large) + others;
}

/* Whether pe_real_nodes serves: the nodes are on the real line and nothing there is near the limits of doubles. */
int pe_real_nodes_serve(const pe_part *part);

/* Writes the nodes of a part on the real line from index `at` on, up to whole lanes; M - 1 with a bound of its error in
 * units of PE_WIDE_UNIT.  A status. */
int pe_real_nodes(const pe_part *part, const pe_wide_nodes *nodes, size_t at, pe_dd *above_one,
                  double *error);

/* The same on any line; for a tapered law M e^-log_total instead of M - 1. */
int pe_plane_nodes(const pe_part *part, const pe_wide_nodes *nodes, size_t at, pe_dd *above_one,
                   double *error);

/* log of the unit of W^s in the column PE_RAISED */
PE_INLINE double pe_unit_of(const pe_part *part) {
    return part->law.log_taper ? part->window.log_total : 0.0;
}

#endif
