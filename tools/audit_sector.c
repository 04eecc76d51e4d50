/* Doors to parts of laws with proven errors, for tools/audit_sector.py. */
#include "sector.h"
#include "spectral.h"

/* A row without an answer, as in spectral.c, which needs all other engines. */
void pe_fail_row(double *row) {
    for (int i = 0; i < PE_ROW; i++) row[i] = NAN;
}

/* log F of the sum of both at w, a multiple of PE_SECTOR_GRID, with what it is off by and what it lacks. */
int audit_sector_sum(const pe_sector *a, const pe_sector *b, int of_losses, double w, double *found) {
    pe_sector_sums s = {.of_losses = of_losses, .pieces = pe_sector_pieces_new(), .budget = 1e8};
    if (!s.pieces) return PE_NO_MEMORY;
    found[0] = pe_sector_sum(&s, a, b, w, &found[1]);
    found[2] = s.lost;
    const int status = s.status;
    pe_sector_pieces_free(s.pieces);
    return status;
}

/* log F, what it is off by, a bound from its cell, and kappa there. */
void audit_sector_density(const pe_sector *a, double w, double *found) {
    const size_t panel = pe_sector_panel(a, w);
    found[0] = pe_sector_value(a, panel, w, 0.0);
    found[1] = a->off[panel];
    found[2] = pe_sector_top(&a->cells, w, w);
    found[3] = pe_sector_kappa(&a->cells, w);
}

/* Ends of panels. */
double audit_sector_edge(const pe_sector *a, size_t panel) {
    return a->edge[panel];
}

/* Both ends, the slope below the low one, and logs of the probabilities above the high one. */
void audit_sector_ends(const pe_sector *a, double *found) {
    found[0] = pe_sector_low(a);
    found[1] = pe_sector_high(a);
    found[2] = a->low_slope;
    found[3] = a->tail[0];
    found[4] = a->tail[1];
    found[5] = a->farthest;
}

double audit_sector_growth(const pe_sector *a, double w) {
    return pe_sector_growth(&a->kinds, w);
}

double audit_sector_slope(const pe_sector *a, double w) {
    return pe_sector_slope(&a->kinds, w);
}
