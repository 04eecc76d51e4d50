/* Shared by tilted.c, tilted_lines.c, tilted_windows.c and divided.c: cells of pe_tilted and its sides. */
#ifndef PE_TILTED_CELLS_H
#define PE_TILTED_CELLS_H

#include <math.h>

#include "lane_trig.h"
#include "tilted.h"

#define PE_OUTWARDS 1e-9 /* relative rounding of logs, by which bounds are moved outwards */

/* log of a side (mixture over phi), its slope and the shares of its terms at x */
double pe_side_at(const pe_normals *s, double x, double *slope, double *share);

static inline double pe_power_of(const pe_tilted *t, int side) {
    return side ? t->q : 1.0 - t->q;
}

static inline const pe_normals *pe_side_of(const pe_tilted *t, int side) {
    return side ? &t->b : &t->a;
}

static inline double pe_edge_of(const pe_tilted *t, size_t i) {
    return t->start + (double)i * PE_CELL;
}

static inline double pe_smallest_positive(const pe_normals *s) {
    for (size_t j = 0; j < s->n; j++)
        if (s->shift[j] > 0.0) return s->shift[j];
    return 0.0;
}

/* Number of ends of cells, rounded up to whole lanes. */
static inline size_t pe_padded_ends(size_t cells) {
    return (cells + PE_LANES) / PE_LANES * PE_LANES;
}

static inline size_t pe_cell_of(const pe_tilted *t, double x, int up) {
    const double at = (x - t->start) / PE_CELL, whole = up ? ceil(at + 1e-9) : floor(at - 1e-9);
    return (size_t)fmin(fmax(whole, 0.0), (double)t->n);
}

/* Lower bound of the slope of log F left of the first cell (Lemma 2): a convex part has at least the slope of its
 * smallest shift, a concave one at least its slope at the cell. */
static inline double pe_rate_before(const pe_tilted *t) {
    double rate = -t->start;
    for (int side = 0; side < 2; side++) {
        const double power = pe_power_of(t, side);
        rate += power * (power >= 0.0 ? pe_side_of(t, side)->shift[0] : t->slope[side][0]);
    }
    if (t->log_taper) rate += t->taper_slope[0];
    return rate;
}

#endif
