#include "lane_trig.h"
#include "pyengine.h"
#include "simd.h"

/* Sums in lanes over blocks of losses; the last block is filled up with nothing. */
PE_CLONES
static void transform_at(double frequency, size_t blocks, const double *apart, const double *share,
                         double *real, double *imag) {
    double x[PE_LANES] = {0.0}, y[PE_LANES] = {0.0};
    for (size_t i = 0; i < blocks; i++) {
        for (int l = 0; l < PE_LANES; l++) {
            double b = frequency * apart[i * PE_LANES + l], cm1, smx;
            pe_vcosm1_sinmx(b, &cm1, &smx);
            x[l] += share[i * PE_LANES + l] * cm1;
            y[l] += share[i * PE_LANES + l] * (b + smx);
        }
    }
    *real += pe_lane_sum(x);
    *imag += pe_lane_sum(y);
}

void pe_loss_transform(size_t n, const double *frequency, size_t m, const double *apart, const double *share,
                       double *real, double *imag) {
    double last_apart[PE_LANES] = {0.0}, last_share[PE_LANES] = {0.0};
    const size_t blocks = m / PE_LANES, rest = m % PE_LANES;
    for (size_t l = 0; l < rest; l++) {
        last_apart[l] = apart[blocks * PE_LANES + l];
        last_share[l] = share[blocks * PE_LANES + l];
    }
    for (size_t i = 0; i < n; i++) {
        real[i] = imag[i] = 0.0;
        transform_at(frequency[i], blocks, apart, share, real + i, imag + i);
        if (rest) transform_at(frequency[i], 1, last_apart, last_share, real + i, imag + i);
    }
}
