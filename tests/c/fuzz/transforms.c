#include "fuzz.h"

#include "lane_log.h"
#include "node_sums.h"

/* Transforms of laws: sums over losses, sums over nodes with moments of the small ones, and logarithms of their values;
 * against the C library in long double. */

static const double U = 0x1p-53;

static double loss(void) {
    return below(8) ? (below(2) ? 1.0 : -1.0) * log_uniform(1e-12, 50.0) : 0.0;
}

static double share(void) {
    return below(6) ? log_uniform(1e-30, 1.0) : 0.0;
}

void fuzz_loss_transform(void) {
    const size_t n = 1 + below(9), m = below(60);
    double *frequency = allocate(n), *apart = filled(m, loss), *weight = filled(m, share);
    double *real = allocate(n), *imag = allocate(n), re, im;
    for (size_t i = 0; i < n; ++i) frequency[i] = below(9) ? log_uniform(1e-9, 1.9e6) : 0.0;
    pe_loss_transform(n, frequency, m, apart, weight, real, imag);
    for (size_t i = 0; i < n; ++i) {
        long double x = 0.0L, y = 0.0L, size = 0.0L;
        for (size_t j = 0; j < m; ++j) {
            const long double b = (long double)frequency[i] * apart[j], half = sinl(0.5L * b);
            x -= 2.0L * weight[j] * half * half;
            y += weight[j] * sinl(b);
            size += weight[j] * fabsl(b);
        }
        require(hypotl(real[i] - x, imag[i] - y) <= (long double)((double)m / 8.0 + 20.0) * U * size,
                "loss_transform", "within its bound", frequency[i]);
        pe_loss_transform(1, frequency + i, m, apart, weight, &re, &im);
        require(!differ(re, real[i]) && !differ(im, imag[i]), "loss_transform", "the bits alone",
                frequency[i]);
    }
    free(frequency);
    free(apart);
    free(weight);
    free(real);
    free(imag);
}

/* At multiples of a spacing of few digits, as those of frequencies are exact. */
void fuzz_loss_transform_grid(void) {
    const size_t n = 1 + below(100), m = below(60);
    const double spacing = (float)log_uniform(1e-9, 1.9e4);
    double *apart = filled(m, loss), *weight = filled(m, share), *real = allocate(n), *imag = allocate(n);
    require(pe_loss_transform_grid(n, spacing, m, apart, weight, real, imag) == PE_OK, "loss_transform_grid",
            "memory", spacing);
    for (size_t i = 0; i < n; ++i) {
        const long double t = (long double)spacing * (double)i;
        long double x = 0.0L, y = 0.0L, size = 0.0L;
        for (size_t j = 0; j < m; ++j) {
            const long double b = t * apart[j], half = sinl(0.5L * b);
            x -= 2.0L * weight[j] * half * half;
            y += weight[j] * sinl(b);
            size += weight[j] * fabsl(b);
        }
        require(hypotl(real[i] - x, imag[i] - y) <= (long double)((double)m / 8.0 + 40.0) * U * size,
                "loss_transform_grid", "within its bound", (double)t);
    }
    free(apart);
    free(weight);
    free(real);
    free(imag);
}

/* A point of the disc in which the logarithm is asked, its edge and its axes included, next to |1 + z| = 1 as well. */
static void near_one(double *a, double *b) {
    do {
        const double radius = below(3) ? 0.25 * log_uniform(1e-20, 1.0) : 0.25, angle = uniform(-3.2, 3.2);
        *a = below(9) ? radius * cos(angle) : 0.0;
        *b = below(9) ? radius * sin(angle) : 0.0;
        if (below(4) == 0) *a = -0.5 * *b * *b * (1.0 + uniform(-1e-9, 1e-9));
    } while (*a * *a + *b * *b > PE_LOG_REACH * PE_LOG_REACH);
}

void fuzz_lane_log(void) {
    double a, b, re, im;
    near_one(&a, &b);
    pe_vlog1p(a, b, &re, &im);
    const long double square = (long double)a * a + (long double)b * b, both = 2.0L * a + square;
    const long double size = 2.0L * fabsl(a) + square, angle = atan2l(b, 1.0L + a);
    /* the last is what long double itself errs by */
    require(fabsl(re - 0.5L * log1pl(both)) <= (7.0L + 0.01L) * U * size, "vlog1p", "real part", a);
    require(fabsl(im - angle) <= 8.0L * U * fabsl(angle), "vlog1p", "imaginary part", b);
    const double x = below(2) ? uniform(-700.0, 690.0) : uniform(-0.6, 0.6);
    const long double less = expm1l(x);
    require(fabsl(pe_vexpm1(x, pe_vexp(x)) - less) <= 6.0L * U * fabsl(less), "vexpm1", "6 units", x);
    const double r = below(2) ? log_uniform(1e-300, 1e6) : uniform(-0.999, 0.5);
    const long double log_of = log1pl(r);
    require(fabsl(pe_vlog1p_real(r, 1.0 + r) - log_of) <= 6.0L * U * fabsl(log_of), "vlog1p_real", "6 units",
            r);
    const double right = (below(2) ? 1.0 : -1.0) * log_uniform(1e-12, 1e12), up = log_uniform(1e-12, 1e12);
    const long double turned = atan2l(up, right);
    require(fabsl(pe_vargument(right, up) - turned) <= 16.0L * U * turned, "vargument", "16 units", right);
}

/* Sums of one run over all nodes, of which those of lanes below the limit are small, and what they may err by. */
typedef struct {
    long double re, im, error;
} true_sum;

/* sin b - b, which cancels next to 0 */
static long double sine_less(long double b) {
    if (fabsl(b) > 1.0L) return sinl(b) - b;
    long double term = b, sum = 0.0L;
    for (int k = 1; k < 15; ++k) {
        term *= -b * b / (long double)(2 * k * (2 * k + 1));
        sum += term;
    }
    return sum;
}

static true_sum sum_at(size_t m, const double *l, const double *w, double limit, long double t) {
    true_sum s = {0.0L, 0.0L, 0.0L};
    for (size_t j = 0; j < m; j += PE_LANES) {
        double top = 0.0;
        for (size_t u = 0; u < PE_LANES; ++u) top = fmax(top, fabs(l[j + u]));
        for (size_t u = 0; u < PE_LANES; ++u) {
            const long double b = t * l[j + u], half = sinl(0.5L * b), weight = w[j + u];
            const int is_small = top < limit;
            s.re -= 2.0L * weight * half * half;
            s.im += weight * (is_small ? sine_less(b) : sinl(b));
            s.error += weight * (is_small ? 0.5L * b * b : 1.0L + 0.1L * fabsl(b));
        }
    }
    return s;
}

void fuzz_node_sums(void) {
    const size_t m = PE_LANES * (1 + below(12)), runs = 1 + below(6);
    const double ht = log_uniform(1e-3, 1e3), t_top = ht * (double)(runs * PE_RUN - 1);
    double *l = allocate(m), *w = filled(m, share), *first = allocate(m), *second = allocate(m);
    double *losses = allocate(m), *weights = allocate(m), total = 0.0;
    const double largest = log_uniform(1e-6, 1e3) / t_top; /* losses rise as those of nodes do */
    for (size_t j = 0; j < m; ++j) l[j] = largest * log_uniform(1e-9, 1.0) * (below(2) ? 1.0 : -1.0);
    for (size_t j = 0; j < m; ++j) total += w[j];
    for (size_t j = 0; j < m; ++j) w[j] = total > 0.0 ? w[j] / total : 1.0 / (double)m;
    memcpy(losses, l, m * sizeof(double));
    memcpy(weights, w, m * sizeof(double));
    pe_node_sums sums;
    double *const turn[2] = {first, second};
    pe_node_sums_new(&sums, l, w, turn, m, ht, t_top);
    require(sums.large <= m && sums.large % PE_LANES == 0, "node_sums_new", "whole lanes",
            (double)sums.large);
    const size_t run = PE_RUN * below(runs);
    double re[PE_RUN], im[PE_RUN];
    pe_node_sums_run(&sums, run, re, im);
    for (size_t k = 0; k < PE_RUN; ++k) {
        const long double t = (long double)(run + k) * ht;
        const true_sum s = sum_at(m, losses, weights, 2.0 / t_top, t);
        const long double off = hypotl(re[k] - s.re, im[k] - s.im);
        require(off <= 240.0L * U * s.error + 1e-300L, "node_sums_run", "the sums", (double)t);
    }
    free(l);
    free(w);
    free(first);
    free(second);
    free(losses);
    free(weights);
}

/* Powers of a run of values, all next to 1 or not. */
void fuzz_powers(void) {
    const double steps = floor(log_uniform(1.0, 1e8));
    const int near = below(2) == 0;
    double a[PE_RUN], b[PE_RUN], mean[PE_RUN], re[PE_RUN] = {0.0}, im[PE_RUN] = {0.0};
    for (size_t k = 0; k < PE_RUN; ++k) {
        near_one(&a[k], &b[k]);
        if (!near) {
            const double radius = uniform(1e-3, 1.0), angle = uniform(-3.1, 3.1);
            a[k] = radius * cos(angle) - 1.0;
            b[k] = radius * sin(angle);
        }
        mean[k] = uniform(-1.0, 1.0) * b[k];
    }
    pe_add_powers(steps, a, b, mean, re, im);
    for (size_t k = 0; k < PE_RUN; ++k) {
        const long double x = 1.0L + a[k], y = b[k], square = (long double)a[k] * a[k] + y * y;
        const long double modulus = hypotl(x, y), angle = atan2l(y, x);
        const long double log_of = modulus < 0.5L ? logl(modulus) : 0.5L * log1pl(2.0L * a[k] + square);
        /* 1 + a rounds once */
        const long double units =
            8.0L * (2.0L * fabsl(a[k]) + square) / (modulus * modulus) + 8.0L * fabsl(log_of);
        const long double turned = 10.0L * (fabsl(angle) + fabsl(mean[k])) + 2.0L * fabsl(y) / modulus;
        require(fabsl(re[k] - steps * log_of) <= steps * U * units, "add_powers", "log of the modulus", a[k]);
        require(fabsl(im[k] - steps * (angle - mean[k])) <= steps * U * turned, "add_powers", "argument",
                b[k]);
    }
}
