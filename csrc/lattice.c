/* Kernels of the lattice engine; the bounds that rest on them are proven in docs/theory/lattice.md. */
#include "normal.h"
#include "pyengine.h"
#include "simd.h"
#include "vmath.h"

#include <math.h>

#define LOG_SQRT_2PI 0x1.d67f1c864beb5p-1

/* ---- masses of the normal distribution between given points ------------------------------------ */

/* With half width d and middle m the mass is phi(m) 2d sum_k He_2k(m) d^2k/(2k+1)!; narrow enough
   where (|m| + 4) d <= 0.3: the first term left out is below 1e-16. */
#define NARROW 0.3

PE_CLONES static void narrow_cells(size_t n, const double *z, double shift, double *out)
{
    for (size_t i = 0; i < n; ++i) {
        double width = z[i + 1] - z[i], d = 0.5 * width;
        double m = (z[i] - shift) + d, q = m * m, e = d * d;
        double h2 = q - 1.0, h4 = (q - 6.0) * q + 3.0;
        double h6 = ((q - 15.0) * q + 45.0) * q - 15.0;
        double h8 = (((q - 28.0) * q + 210.0) * q - 420.0) * q + 105.0;
        double h10 = ((((q - 45.0) * q + 630.0) * q - 3150.0) * q + 4725.0) * q - 945.0;
        double s = e * (h2 / 6.0 + e * (h4 / 120.0 + e * (h6 / 5040.0 + e * (h8 / 362880.0 +
                   e * (h10 / 39916800.0)))));
        double use = (fabs(m) + 4.0) * d <= NARROW ? 1.0 : 0.0;
        s = use != 0.0 ? s : 0.0;
        out[i] = use != 0.0 ? pe_log(width + width * s) - 0.5 * q - LOG_SQRT_2PI : NAN;
    }
}

static double wide_cell(double low, double high)
{
    if (low < 0.0 && high > 0.0)
        return log(pe_ndtr(high) - pe_ndtr(low));
    if (high <= 0.0) {
        double t = -low;
        low = -high;
        high = t;
    }
    /* phi(low) (m(low) - m(high) e^-t): both terms of the sum below are positive */
    double t = 0.5 * (high - low) * (high + low);
    double sum = pe_mills_difference(low, high - low) - pe_mills(high) * expm1(-t);
    return log(sum) - 0.5 * low * low - LOG_SQRT_2PI;
}

void pe_normal_cells(size_t n, const double *z, double shift, double *log_mass)
{
    if (n == 0)
        return;
    log_mass[0] = pe_log_ndtr(z[0] - shift);
    log_mass[n] = pe_log_ndtr(shift - z[n - 1]);
    narrow_cells(n - 1, z, shift, log_mass + 1);
    for (size_t i = 1; i < n; ++i)
        if (isnan(log_mass[i]))
            log_mass[i] = wide_cell(z[i - 1] - shift, z[i] - shift);
}
