/* Sums and pair products of two independent groups of random numbers together, on nodes or in cells.  Definition, domain
 * and error are in laws.h; called by pyengine/laws/state_bounds.py (docs/theory/epochs.md).
 */
#include "laws.h"

/* Products of masses below this are left out, as smaller ones might lose digits. */
static const double LEAST = 0x1p-1000;

/* x clipped to [0, 1] */
static double within(double x) {
    return x > 0.0 ? x < 1.0 ? x : 1.0 : 0.0;
}

/* The cell of x between increasing nodes, searched from cell k. */
static size_t cell_of(size_t nodes, const double *node, double x, size_t k) {
    while (k + 2 < nodes && x > node[k + 1]) k++;
    while (k && x < node[k]) k--;
    return k;
}

/* Shares of the upper and the lower node of a cell, each with relative accuracy next to the ends of [0, 1]. */
static void shares(size_t rows, const double *node, size_t k, double rho, double rest, double *up,
                   double *down) {
    if (k == 0) {
        *up = within(rho / node[1]), *down = 1.0 - *up;
        return;
    }
    *down = within(k + 2 == rows ? rest / (1.0 - node[k]) : (node[k + 1] - rho) / (node[k + 1] - node[k]));
    *up = 1.0 - *down;
}

void pe_state_cells(size_t n, const double *first, size_t m, const double *second, int is_square,
                    double slope, size_t lines, const double *line, size_t rows, const double *node,
                    int is_apart, double *out, double *count) {
    const double *x = first, *p = first + n, *a = first + 2 * n, *y = second, *q = second + m,
                 *b = second + 2 * m;
    const size_t cells = (lines - 1) * (rows > 1 ? rows - 1 : 1);
    size_t i = 0, k = 0, above = 0;
    for (size_t f = 0; f < n; f++) {
        const size_t end = is_square ? f + 1 : m;
        const double twice = is_square ? 2.0 * a[f] : a[f], cross = 2.0 * x[f];
        for (size_t g = 0; g < end; g++) {
            const double weight = is_square && g == f ? a[f] * b[g] : twice * b[g];
            if (weight < LEAST) continue;
            const double sum = x[f] + y[g], products = p[f] + q[g] + cross * y[g];
            const double place = products + slope * sum;
            i = cell_of(lines, line, place, i);
            count[i] += 1.0;
            const double *row = node + i * rows;
            const double rho = rows > 1 ? slope * sum / place : 1.0, rest = products / place;
            if (rows > 1) k = cell_of(rows, row, rho, k);
            if (!is_apart) {
                double *home = out + i * (cells / (lines - 1)) + k;
                home[0] += weight;
                home[cells] += weight * sum;
                home[2 * cells] += weight * products;
                continue;
            }
            const double right = within((place - line[i]) / (line[i + 1] - line[i]));
            double *low = out + i * rows, *high = low + rows;
            if (rows == 1) {
                low[0] += weight * (1.0 - right);
                high[0] += weight * right;
                continue;
            }
            double up, down;
            shares(rows, row, k, rho, rest, &up, &down);
            low[k] += weight * (1.0 - right) * down;
            low[k + 1] += weight * (1.0 - right) * up;
            row += rows;
            above = cell_of(rows, row, rho, above);
            shares(rows, row, above, rho, rest, &up, &down);
            high[above] += weight * right * down;
            high[above + 1] += weight * right * up;
        }
    }
}
