/* Values of Chebyshev polynomials on panels, from which thousands of answers without bounds are interpolated
 * (docs/estimates.md), and masses of steps with corners (docs/theory/kinds.md).  Interface in answers.h. */

#include <math.h>
#include <string.h>

#include "answers.h"
#include "doubles.h"
#include "lane_trig.h"
#include "simd.h"

/* smaller logs take pe_d_exp, as pe_vexp gives no subnormal numbers */
static const double LEAST_LOG = -700.0;

/* PE_LANES values of sums of c_j T_j(t) by Clenshaw's rule; NaN outside of the panels. */
static inline void panel_values(const double *s, double width, double first, size_t panels,
                                const double *coefficients, double *out) {
    double t[PE_LANES], b1[PE_LANES] = {0}, b2[PE_LANES] = {0};
    int row[PE_LANES], is_known[PE_LANES];
    for (int u = 0; u < PE_LANES; u++) {
        const double place = s[u] / width, panel = floor(place), own = panel - first;
        is_known[u] = (own >= 0.0) & (own < (double)panels);
        row[u] = PE_CHEBYSHEV * (int)(is_known[u] ? own : 0.0);
        t[u] = 2.0 * (place - panel) - 1.0;
    }
    for (int j = PE_CHEBYSHEV - 1; j > 0; j--)
        for (int u = 0; u < PE_LANES; u++) {
            const double b0 = coefficients[row[u] + j] + 2.0 * t[u] * b1[u] - b2[u];
            b2[u] = b1[u];
            b1[u] = b0;
        }
    for (int u = 0; u < PE_LANES; u++)
        out[u] = is_known[u] ? coefficients[row[u]] + t[u] * b1[u] - b2[u] : NAN;
}

PE_CLONES void pe_chebyshev_panels(size_t n, const double *s, double width, long first, size_t panels,
                                   const double *coefficients, int of_log, double *out) {
    for (size_t i = 0; i < n; i += PE_LANES) {
        const size_t m = n - i < PE_LANES ? n - i : PE_LANES;
        double place[PE_LANES], value[PE_LANES], power[PE_LANES];
        for (size_t u = 0; u < PE_LANES; u++) place[u] = s[u < m ? i + u : i];
        panel_values(place, width, (double)first, panels, coefficients, value);
        for (int u = 0; u < PE_LANES; u++) power[u] = pe_vexp(value[u] < 709.0 ? value[u] : 709.0);
        for (size_t u = 0; u < m; u++) {
            const int is_plain = value[u] > LEAST_LOG && value[u] < 709.0;
            out[i + u] = !of_log ? value[u] : is_plain ? power[u] : pe_d_exp(value[u]);
        }
    }
}

/* PE_LANES series of any length, at t in [-1, 1], by Clenshaw's rule */
static inline void series_values(size_t terms, const double *const *series, const double *t, double *out) {
    double b1[PE_LANES] = {0}, b2[PE_LANES] = {0};
    for (size_t j = terms - 1; j > 0; j--)
        for (int u = 0; u < PE_LANES; u++) {
            const double b0 = series[u][j] + 2.0 * t[u] * b1[u] - b2[u];
            b2[u] = b1[u];
            b1[u] = b0;
        }
    for (int u = 0; u < PE_LANES; u++) out[u] = series[u][0] + t[u] * b1[u] - b2[u];
}

PE_CLONES void pe_chebyshev_series(size_t n, const double *t, const int *which, size_t rows, size_t terms,
                                   const double *coefficients, double *out) {
    for (size_t i = 0; i < n; i += PE_LANES) {
        const size_t m = n - i < PE_LANES ? n - i : PE_LANES;
        for (size_t row = 0; row < rows; row++) {
            double place[PE_LANES], value[PE_LANES];
            const double *series[PE_LANES];
            for (size_t u = 0; u < PE_LANES; u++) {
                const size_t at = u < m ? i + u : i;
                place[u] = t[at];
                series[u] = coefficients + ((size_t)which[at] * rows + row) * terms;
            }
            series_values(terms, series, place, value);
            for (size_t u = 0; u < m; u++) out[row * n + i + u] = value[u];
        }
    }
}
