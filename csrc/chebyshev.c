#include <math.h>

#include "pyengine.h"

/* Clenshaw's rule for the sum of c_j T_j(t). */
static double clenshaw(const double *c, double t) {
    double b1 = 0.0, b2 = 0.0;
    for (int j = PE_CHEBYSHEV - 1; j > 0; j--) {
        const double b0 = c[j] + 2.0 * t * b1 - b2;
        b2 = b1;
        b1 = b0;
    }
    return c[0] + t * b1 - b2;
}

void pe_chebyshev_panels(size_t n, const double *s, double width, long first, size_t panels,
                         const double *coefficients, int of_log, double *out) {
    for (size_t i = 0; i < n; i++) {
        const double place = s[i] / width, panel = floor(place);
        const double row = panel - (double)first;
        out[i] = NAN;
        if (!(row >= 0.0 && row < (double)panels)) continue;
        const double value = clenshaw(coefficients + PE_CHEBYSHEV * (size_t)row, 2.0 * (place - panel) - 1.0);
        out[i] = of_log ? exp(value) : value;
    }
}
