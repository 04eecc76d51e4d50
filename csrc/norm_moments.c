/* Moments of gradient norms for individual accounting: docs/theory/individual.md, "Sums of polynomials".  Interface in
 * kinds.h; called by pyengine/accounting/records.py. */

#include <stdint.h>
#include <string.h>

#include "kinds.h"

/* Adds weight times the polynomials of a row of the basis. */
static inline void add_row(double *moments, const double *row, int degree, double weight) {
    for (int d = 0; d < degree; d++) moments[d] += weight * row[d];
}

void pe_norm_moments(const pe_norm_grid *grid, size_t records, size_t columns, const double *norm,
                     double clip, const double *times, const double *basis, double *moments, double *count,
                     double *below) {
    const int degree = grid->degree, rows = grid->rows, shift = 52 - grid->bits;
    const int64_t base = (int64_t)(1023 - grid->octaves) << grid->bits;
    const int64_t nodes = (int64_t)grid->octaves << grid->bits;
    const uint64_t rest = ((uint64_t)1 << shift) - 1;
    const double unit = 1.0 / (double)((uint64_t)1 << shift);
    const uint64_t least_bits = (uint64_t)(1023 - grid->octaves) << 52;
    double least;
    memcpy(&least, &least_bits, sizeof least);
    for (size_t i = 0; i < records; i++) {
        const double *own = norm + i * columns;
        double *sums = moments + i * (size_t)(nodes / rows) * (size_t)degree;
        double all = 0.0, low = 0.0;
        for (size_t j = 0; j < columns; j++) {
            const double ratio = own[j] / clip, u = ratio < 1.0 ? ratio : 1.0;
            if (!(u > 0.0)) continue;
            all += times[j];
            if (u < least) {
                low += times[j];
                continue;
            }
            uint64_t bits;
            memcpy(&bits, &u, sizeof bits);
            const int64_t index = (int64_t)(bits >> shift) - base;
            const double share = (double)(bits & rest) * unit;
            if (index == nodes) { /* u = 1, the end of the last block */
                add_row(sums + (nodes / rows - 1) * degree, basis + rows * degree, degree, times[j]);
                continue;
            }
            add_row(sums + index / rows * degree, basis + index % rows * degree, degree,
                    times[j] * (1.0 - share));
            const int64_t next = index + 1, last = next == nodes;
            add_row(sums + (next / rows - last) * degree, basis + (last ? rows : next % rows) * degree,
                    degree, times[j] * share);
        }
        count[i] += all;
        below[i] += low;
    }
}

enum { SIDE = 4 }; /* independent records, to hide the latency */

void pe_turned_sums(size_t records, size_t n, const double *parts, const double *turn, double *out) {
    for (size_t i = 0; i < records; i += SIDE) {
        const size_t left = records - i < SIDE ? records - i : SIDE;
        double re[SIDE] = {0}, im[SIDE] = {0}, c[SIDE] = {0}, s[SIDE] = {0};
        const double *own[SIDE];
        for (size_t u = 0; u < SIDE; u++) {
            const size_t at = i + (u < left ? u : 0);
            own[u] = parts + 2 * n * at;
            c[u] = turn[2 * at];
            s[u] = turn[2 * at + 1];
        }
        for (size_t f = n; f-- > 0;)
            for (int u = 0; u < SIDE; u++) {
                const double x = re[u] + own[u][2 * f], y = im[u] + own[u][2 * f + 1];
                re[u] = x * c[u] - y * s[u];
                im[u] = x * s[u] + y * c[u];
            }
        for (size_t u = 0; u < left; u++) out[i + u] = re[u];
    }
}
