/* Transforms of laws with finitely many losses: docs/theory/laplace.md.  Interface and errors in kinds.h. */

#include <stdlib.h>

#include "kinds.h"
#include "lane_trig.h"
#include "simd.h"

enum { PART = 256 }; /* losses that are summed before the parts are: the error grows with PART instead of m */

/* Adds the sums over blocks of PE_LANES losses at one frequency. */
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
    const size_t whole = m / PE_LANES, rest = m % PE_LANES;
    for (size_t l = 0; l < rest; l++) {
        last_apart[l] = apart[whole * PE_LANES + l];
        last_share[l] = share[whole * PE_LANES + l];
    }
    for (size_t i = 0; i < n; i++) {
        real[i] = imag[i] = 0.0;
        for (size_t first = 0; first < whole; first += PART / PE_LANES) {
            const size_t blocks = whole - first < PART / PE_LANES ? whole - first : PART / PE_LANES;
            transform_at(frequency[i], blocks, apart + first * PE_LANES, share + first * PE_LANES, real + i,
                         imag + i);
        }
        if (rest) transform_at(frequency[i], 1, last_apart, last_share, real + i, imag + i);
    }
}

/* ---- at multiples of a spacing -------------------------------------------------------------------------- */

enum {
    RUN = 32, /* frequencies of a run */
    GROUP = 16 /* losses that are summed before the groups are */
};

/* Cosines and sines of all losses at the frequencies r spacing of the first run. */
PE_CLONES
static void run_table(double spacing, size_t m, const double *apart, double *cosine, double *sine) {
    for (size_t j = 0; j < m; j++)
        for (int r = 0; r < RUN; r++) {
            const double b = spacing * (double)r * apart[j];
            double cm1, smx;
            pe_vcosm1_sinmx(b, &cm1, &smx);
            cosine[j * RUN + (size_t)r] = 1.0 + cm1;
            sine[j * RUN + (size_t)r] = b + smx;
        }
}

/* Adds share (e^{ia} - 1) e^{ib} over the losses of a part, a being the angle at the begin of the run and b that
 * within. */
PE_CLONES
static void add_run(double begin, size_t m, const double *apart, const double *share, const double *cosine,
                    const double *sine, double *real, double *imag) {
    double part_x[RUN] = {0.0}, part_y[RUN] = {0.0};
    for (size_t first = 0; first < m; first += GROUP) {
        double x[RUN] = {0.0}, y[RUN] = {0.0}, u[GROUP], v[GROUP];
        const size_t size = m - first < GROUP ? m - first : GROUP;
        for (size_t j = 0; j < size; j++) {
            const double a = begin * apart[first + j];
            double cm1, smx;
            pe_vcosm1_sinmx(a, &cm1, &smx);
            u[j] = share[first + j] * cm1;
            v[j] = share[first + j] * (a + smx);
        }
        for (size_t j = 0; j < size; j++) {
            const double *c = cosine + (first + j) * RUN, *s = sine + (first + j) * RUN;
            for (int r = 0; r < RUN; r++) {
                x[r] += u[j] * c[r] - v[j] * s[r];
                y[r] += u[j] * s[r] + v[j] * c[r];
            }
        }
        for (int r = 0; r < RUN; r++) {
            part_x[r] += x[r];
            part_y[r] += y[r];
        }
    }
    for (int r = 0; r < RUN; r++) {
        real[r] += part_x[r];
        imag[r] += part_y[r];
    }
}

int pe_loss_transform_grid(size_t n, double spacing, size_t m, const double *apart, const double *share,
                           double *real, double *imag) {
    double within_real[RUN], within_imag[RUN], frequency[RUN];
    double *table = malloc((m ? m : 1) * 2 * RUN * sizeof *table);
    if (!table) return PE_NO_MEMORY;
    for (int r = 0; r < RUN; r++) frequency[r] = spacing * (double)r;
    pe_loss_transform(RUN, frequency, m, apart, share, within_real, within_imag);
    run_table(spacing, m, apart, table, table + m * RUN);
    for (size_t first = 0; first < n; first += RUN) {
        double x[RUN] = {0.0}, y[RUN] = {0.0};
        for (size_t at = 0; first && at < m; at += PART) {
            const double *cosine = table + at * RUN, *sine = table + (m + at) * RUN;
            add_run(spacing * (double)first, m - at < PART ? m - at : PART, apart + at, share + at, cosine,
                    sine, x, y);
        }
        for (size_t r = 0; r < RUN && first + r < n; r++) {
            real[first + r] = x[r] + within_real[r];
            imag[first + r] = y[r] + within_imag[r];
        }
    }
    free(table);
    return PE_OK;
}
