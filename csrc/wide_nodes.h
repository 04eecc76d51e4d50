/* Nodes of one kind of step in sums of two doubles, before they are rounded. */
#ifndef PE_WIDE_NODES_H
#define PE_WIDE_NODES_H

#include "arithmetic_lanes.h"
#include "shifted.h"

/* Sums of lanes over all nodes that count, and ends of what functions can be asked for. */
typedef struct {
    pe_dds total;
    double error[PE_LANES], most[PE_LANES], least[PE_LANES], widest[PE_LANES];
} pe_wide_sums;

/* Columns of nodes, the pairs as one column after the other.  Errors are in units of PE_WIDE_UNIT.  Far out a bell and a
 * power may be beyond all doubles where their product is none: then the former has a power of 2 that the latter lacks. */
enum {
    PE_BELL_RE = 0,    /* phi b h at the node */
    PE_BELL_IM = 2,
    PE_LOG_RE = 4,     /* log W */
    PE_LOG_IM = 6,
    PE_RAISED_RE = 8,  /* W^s e^-unit, s = q - 1, */
    PE_RAISED_IM = 10,
    PE_POWER = 12,     /* and its modulus */
    PE_SIZE,           /* at least |bell|, with the moduli of the terms of b in the place of their sum */
    PE_ROUNDING,       /* of the bell, relative to size */
    PE_LOG_ERROR,      /* of log W */
    PE_NODE_COLUMNS,
};

typedef struct {
    size_t stride;
    double *block;
} pe_wide_nodes;

PE_INLINE double *pe_column(const pe_wide_nodes *nodes, int column) {
    return nodes->block + (size_t)column * nodes->stride;
}

/* Puts what some lanes have into the columns from `column` on. */
PE_INLINE void pe_put_lanes(const pe_wide_nodes *nodes, int column, size_t i, const double *lanes) {
    memcpy(pe_column(nodes, column) + i, lanes, PE_LANES * sizeof *lanes);
}

PE_INLINE void pe_put_pairs(const pe_wide_nodes *nodes, int column, size_t i, const pe_dds *lanes) {
    pe_put_lanes(nodes, column, i, lanes->h);
    pe_put_lanes(nodes, column + 1, i, lanes->l);
}

/* The largest log of |W^s| at a node, and the lowest one of a tapered law: numbers of that size are held. */
#define PE_MOST_POWER 10900.0

/* From it on the power of 2 of W^s is with the bell. */
#define PE_FAR_POWER 300.0

/* Of sums whose terms are below all doubles: what a node misses by underflow is less by far. */
#define PE_UNDERFLOW 1e-290

/* Bound of the error of W^s - 1 - s log W - s (log(1 + r) - r), whose modulus is `term`, in a sum with weights that err by
 * `rounding`: of log W and of r, whose moduli are l and r, and of W^s, whose modulus is `raised`; in units of `one`. */
PE_INLINE double pe_centred_error(double s, double l, double log_error, double r, double ratio_error,
                                  double raised, double term, double rounding, double one) {
    const double reach = s * l, wrong = s * log_error;
    const double near = r * (30.0 * r + 1.5 * ratio_error), far = 10.0 * (r + l) + ratio_error + log_error;
    const double others = one * s * (r < 0.07 ? near : far) + term * rounding;
    const double small = reach * (30.0 * reach + 1.5 * wrong),
                 large = (30.0 + 30.0 * reach + wrong) * (one + raised);
    return (reach < 0.3 ? small : large) + others;
}

/* Whether the part's line is the real one, and what is formed there is a double by far. */
int pe_real_nodes_serve(const pe_part *part);

/* Those of a part on the real line from place `at` on, up to whole lanes, and its M - 1 with a bound of its error in
 * units of PE_WIDE_UNIT.  A status. */
int pe_real_nodes(const pe_part *part, const pe_wide_nodes *nodes, size_t at, pe_dd *above_one,
                  double *error);

/* The same on any line, or M e^-log_total of a tapered law. */
int pe_plane_nodes(const pe_part *part, const pe_wide_nodes *nodes, size_t at, pe_dd *above_one,
                   double *error);

/* log of the unit of W^s at the nodes of a part */
PE_INLINE double pe_unit_of(const pe_part *part) {
    return part->law.log_taper ? part->window.log_total : 0.0;
}

#endif
