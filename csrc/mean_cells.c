/* The law of a weighted mean of two independent positive numbers, in cells.  Definition, domain and error are in laws.h;
 * called by pyengine/laws/epoch_bounds.py (docs/theory/epochs.md).
 */
#include "laws.h"

/* Products of masses below this are left out, as smaller ones might lose digits. */
static const double LEAST = 0x1p-1000;

void pe_mean_cells(size_t n, const double *x, const double *a, size_t m, const double *y, const double *b,
                   double p, double q, int is_square, size_t cells, const double *edge, double *mass,
                   double *share) {
    if (!n || !m || !cells) return;
    size_t first = 0; /* cell of the smallest mean of a row; it does not fall from row to row */
    for (size_t i = 0; i < n; i++) {
        const double part = p * x[i], twice = is_square ? 2.0 * a[i] : a[i];
        const size_t count = is_square ? i + 1 : m;
        while (first + 1 < cells && part + q * y[0] > edge[first + 1]) first++;
        size_t k = first;
        double total = 0.0, above = 0.0, low = edge[k], scale = 1.0 / (edge[k + 1] - low);
        for (size_t j = 0; j < count; j++) {
            const double mean = part + q * y[j];
            if (mean > edge[k + 1] && k + 1 < cells) {
                mass[k] += total;
                share[k] += above;
                total = above = 0.0;
                do k++;
                while (mean > edge[k + 1] && k + 1 < cells);
                low = edge[k], scale = 1.0 / (edge[k + 1] - low);
            }
            const double weight = is_square && j == i ? a[i] * b[j] : twice * b[j];
            if (weight < LEAST) continue;
            total += weight;
            above += weight * ((mean - low) * scale);
        }
        mass[k] += total;
        share[k] += above;
    }
}
