/* The corners of the largest convex function below the values of a call function at nodes: docs/theory/adaptive.md, "Two
 * laws on a grid".  Interface in kinds.h; called by pyengine/accounting/kernels.py. */

#include "doubles.h"
#include "kinds.h"

/* Slope of the values' chord over nodes a < b, less that of (1 - k)+ if node 1 is not between them. */
static double slope(size_t a, size_t b, size_t middle, const double *x, const double *k,
                    const double *value) {
    const double gap = k[a] * pe_d_expm1(x[b] - x[a]), rise = (value[b] - value[a]) / gap;
    return a < middle && middle < b ? rise + pe_d_expm1(x[a]) / gap : rise;
}

size_t pe_call_corners(size_t n, size_t middle, const double *x, const double *k, const double *value,
                       int64_t *corner, double *slopes) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const double own = i <= middle ? -1.0 : 0.0;
        double last = 0.0;
        while (count) {
            const size_t top = (size_t)corner[count - 1];
            const double before = top <= middle ? -1.0 : 0.0;
            last = slope(top, i, middle, x, k, value);
            if (count == 1 || (last - slopes[count - 1]) + (own - before) >= 0.0) break;
            count--;
        }
        corner[count] = (int64_t)i;
        slopes[count++] = last;
    }
    return count;
}
