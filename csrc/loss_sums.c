/* The density of a sum of two losses, the integral of f(L - y) g(y) dy, by trapezoidal sums: an estimate
 * (docs/estimates.md).  Called by allocation.c.
 *
 * Each part may be a sum of several large losses, so that the integrand has many maxima; a coarse lattice
 * finds them.
 */
#include <math.h>

#include "convolved.h"
#include "doubles.h"
#include "simd.h"

#define AGREED                                                                                               \
    2e-13    /* relative difference of two lattices that is accepted; 3e-8 might hide a narrow maximum */
#define STRIDE 4        /* spacing of the coarse lattice, in those of the fine one */
#define MOST_SCANS 8192 /* blocks of the coarse lattice */

/* Sums of the terms at even and at odd points of the lattice, times e^-scale, and the difference of both sums with terms
 * times a slope (lean), as errors at two mirror-image maxima may cancel in the plain difference. */
typedef struct {
    double even, odd, lean, scale;
} sums;

/* Adds a block of terms; the slope's values are from + l slope.  PE_BLOCK is even, so each block begins with an even
 * point. */
PE_CLONES
static void add(sums *s, const double *exponent, double from, double slope) {
    double e[PE_BLOCK], one = 0.0, two = 0.0, lean = 0.0;
    for (int l = 0; l < PE_BLOCK; l++) {
        double d = exponent[l] - s->scale;
        double y = pe_exp(d < -700.0 ? -700.0 : d);
        e[l] = d < -700.0 ? 0.0 : y;
    }
    for (int l = 0; l < PE_BLOCK; l += 2) {
        one += e[l];
        two += e[l + 1];
        lean += (from + l * slope) * e[l] - (from + (l + 1) * slope) * e[l + 1];
    }
    s->lean += lean;
    s->even += one;
    s->odd += two;
}

static double largest(const double *x) {
    double top = x[0];
    for (int l = 1; l < PE_BLOCK; l++) top = x[l] > top ? x[l] : top;
    return top;
}

/* Logs of f(x) g(y) at y = k d, (k + stride) d, ..., x + y = loss = whole d + rest; x and y have relative accuracy, also
 * near 0. */
PE_CLONES
static void exponents(pe_parts *w, double k, double stride, double whole, double rest, double *out) {
    double x[PE_BLOCK], y[PE_BLOCK], a[PE_BLOCK], b[PE_BLOCK], d = w->spacing;
    for (int l = 0; l < PE_BLOCK; l++) {
        double at = k + l * stride;
        y[l] = at * d;
        x[l] = (whole - at) * d + rest;
    }
    pe_log_density_lanes(w->f, x, &w->near[0][0], a);
    pe_log_density_lanes(w->g, y, &w->near[0][1], b);
    for (int l = 0; l < PE_BLOCK; l++) out[l] = a[l] + b[l];
}

static double convolved(pe_parts *w, double loss) {
    const pe_log_density *f = w->f, *g = w->g;
    double lowest = fmax(g->edge[0], loss - f->edge[f->n]);
    double highest = fmin(g->edge[g->n], loss - f->edge[0]);
    if (!(lowest < highest)) return -INFINITY;
    for (int trial = 0; trial < 60 && !w->failed; trial++) {
        double d = w->spacing, whole = nearbyint(loss / d), rest = fma(-whole, d, loss);
        double first = floor(lowest / d), e[PE_BLOCK], top[MOST_SCANS], best = -INFINITY;
        double scans = ceil((highest / d - first + 1.0) / (STRIDE * PE_BLOCK));
        if (!(scans <= MOST_SCANS)) break;
        size_t n = (size_t)scans;
        for (size_t i = 0; i < n; i++) {
            double k = first + (double)i * STRIDE * PE_BLOCK;
            exponents(w, k, STRIDE, whole, rest, e);
            w->blocks++;
            top[i] = largest(e);
            best = fmax(best, top[i]);
        }
        if (best <= 0.5 * PE_NOWHERE) return -INFINITY;
        sums s = {0.0, 0.0, 0.0, best};
        double width = highest - lowest;
        for (size_t i = 0; i < n; i++) {
            /* maxima between points of the coarse lattice are little above these, except narrow ones where x or y is
             * near 0 */
            double from = first + (double)i * STRIDE * PE_BLOCK - PE_BLOCK;
            double to = from + (STRIDE + 2) * PE_BLOCK;
            int is_narrow = (from <= 0.0 && to >= 0.0) || (from <= whole && to >= whole);
            double beside = fmax(i ? top[i - 1] : PE_NOWHERE, i + 1 < n ? top[i + 1] : PE_NOWHERE);
            if (!is_narrow && fmax(top[i], beside) < s.scale - PE_FALL - 10.0) continue;
            for (int j = 0; j < STRIDE; j++) {
                double k = first + ((double)i * STRIDE + j) * PE_BLOCK, at;
                exponents(w, k, 1.0, whole, rest, e);
                w->blocks++;
                at = largest(e);
                if (at > s.scale) {
                    double shrink = pe_d_exp(s.scale - at);
                    s.even *= shrink;
                    s.odd *= shrink;
                    s.lean *= shrink;
                    s.scale = at;
                }
                add(&s, e, (2.0 * k * d - loss) / width, 2.0 * d / width);
            }
        }
        if (w->blocks > PE_MOST_BLOCKS) break;
        double sum = s.even + s.odd, off = fmax(fabs(s.even - s.odd), fabs(s.lean)) / sum;
        double value = s.scale + pe_d_log(sum * d);
        if (fabs(s.even - s.odd) < 0.3 * sum && pe_is_below_floor(w, loss, value)) return value;
        if (off < AGREED) {
            w->spacing = pe_next_spacing(d, off, 0.1 * AGREED);
            return value;
        }
        w->spacing = d * (off > 1e-2 ? 0.5 : 0.8);
    }
    if (!w->failed) w->failed = PE_TOO_COSTLY;
    return NAN;
}

void pe_convolved_losses(pe_parts *w, const double *loss, double *out) {
    for (int l = 0; l < PE_BLOCK; l++) out[l] = w->failed ? NAN : convolved(w, loss[l]);
}
