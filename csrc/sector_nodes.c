/* Values of a law at nodes of quadrature rules and its bounds on ellipses, for engines that integrate it against the law
 * of other steps (pyengine/engines).  Proofs: docs/theory/sector_laws.md.  Interface in laws.h. */

#include <math.h>

#include "doubles.h"
#include "sector.h"

static const double UNIT = 0x1p-53;
static const double HIGHEST = 0.78; /* largest angle of the sector that is used, below pi/4 */

/* Upper bound of |slope| of a panel's polynomial in w */
static double steepest(const pe_sector *a, size_t panel) {
    const double *c = a->coef + PE_SECTOR_TERMS * panel;
    double sum = 0.0;
    for (int k = 1; k < PE_SECTOR_TERMS; k++) sum += k * fabs(c[k]);
    return 2.0 * sum / (a->edge[panel + 1] - a->edge[panel]);
}

void pe_sector_densities(const pe_sector *a, size_t n, const double *from, const double *step, double *value,
                         double *error) {
    const double low = pe_sector_low(a), high = pe_sector_high(a);
    for (size_t i = 0; i < n; i++) {
        const double at = from[i] + step[i];
        value[i] = -INFINITY;
        error[i] = INFINITY;
        if (!(at >= low && at <= high)) continue;
        const size_t panel = pe_sector_panel(a, at);
        const double lo = a->edge[panel], mid = lo + 0.5 * (a->edge[panel + 1] - lo);
        value[i] = pe_sector_value(a, panel, from[i], step[i]);
        /* slope times the rounding of the node and of its distance from the panel's middle */
        const double moved = 4.0 * UNIT * (fabs(step[i]) + fabs(from[i] - mid));
        error[i] = 1.001 * a->off[panel] + 4.0 * UNIT * fabs(value[i]) + moved * steepest(a, panel);
    }
}

void pe_sector_ellipses(const pe_sector *a, size_t n, const double *mid, const double *half, size_t m,
                        const double *rho, double *bound) {
    const pe_sector_cells *cells = &a->cells;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            const double real = 0.5 * half[i] * (rho[j] + 1.0 / rho[j]);
            const double imag = 0.5 * half[i] * (rho[j] - 1.0 / rho[j]), to = mid[i] + real;
            bound[m * i + j] = imag > HIGHEST || to > cells->end - cells->width
                                   ? INFINITY
                                   : pe_sector_top(cells, mid[i] - real, to) +
                                         imag * imag * pe_sector_kappa(cells, to) + 1e-9;
        }
}

void pe_sector_beyond(const pe_sector *a, double *out) {
    const double floor = a->floor + a->floor_low;
    const double all[8] = {a->floor,    a->floor_low,        pe_sector_low(a), pe_sector_high(a),
                           a->below[0], a->below[1] + floor, a->tail[0],       a->tail[1]};
    for (int i = 0; i < 8; i++) out[i] = all[i];
}
