/* Functionals of composed Poisson-sampled Gaussian steps on a vertical line, in long double.

   A second computation beside the engines', for tools/second_contour.py: straight lines, the
   trapezoidal rule in z and in t, no code of csrc/. */

#include <complex.h>
#include <math.h>
#include <stdlib.h>

typedef long double real;
typedef long double complex number;

#define MOST_KINDS 4
#define DIRECT 300.0L /* steps from which the rounding of phases that are turned on counts */

typedef struct {
    real *loss;  /* less the mean of the tilted law */
    real *share; /* of the tilted law */
    real *turn;  /* cosines and sines of one step in t, and of t itself */
    long nodes;
    real log_m, mean, variance, steps;
} kind;

static int tilted(double noise, double p, double steps, real lam, real spacing, real reach, kind *k)
{
    real mu = 1.0L / noise, far = lam * mu;
    real low = fminl(0.0L, far) - reach, high = fmaxl(mu, far) + reach;
    k->nodes = (long)ceill((high - low) / spacing);
    if (k->nodes > 40000)
        return 0;
    k->loss = malloc(2 * k->nodes * sizeof(real));
    k->share = malloc(2 * k->nodes * sizeof(real));
    k->turn = malloc(4 * k->nodes * sizeof(real));
    real total = 0.0L, first = 0.0L, second = 0.0L, top = 0.0L;
    for (long j = 0; j < k->nodes; j++) {
        real z = low + (j + 0.5L) * spacing, x = mu * z - 0.5L * mu * mu;
        real loss = p == 1.0 ? x : log1pl(p * expm1l(x));
        if (x > 60.0L && p < 1.0) /* without the overflow of the exponential */
            loss = x + logl(p) + log1pl((1.0L - p) / p * expl(-x));
        k->loss[j] = loss;
        k->share[j] = -0.5L * z * z;
        top = fmaxl(top, lam * loss - 0.5L * z * z);
    }
    real root = spacing / sqrtl(2.0L * acosl(-1.0L));
    if (top > 1.0L) {
        for (long j = 0; j < k->nodes; j++)
            total += k->share[j] = root * expl(k->share[j] + lam * k->loss[j] - top);
        k->log_m = top + logl(total);
    } else { /* near 1: what it differs by is a sum of differences */
        for (long j = 0; j < k->nodes; j++) {
            real weight = root * expl(k->share[j]);
            total += weight * expm1l(lam * k->loss[j]);
            k->share[j] = weight * expl(lam * k->loss[j]);
        }
        k->log_m = log1pl(total);
        total = 0.0L;
        for (long j = 0; j < k->nodes; j++)
            total += k->share[j];
    }
    for (long j = 0; j < k->nodes; j++)
        first += (k->share[j] /= total) * k->loss[j];
    for (long j = 0; j < k->nodes; j++) {
        k->loss[j] -= first;
        second += k->share[j] * k->loss[j] * k->loss[j];
    }
    k->mean = first;
    k->variance = second;
    k->steps = steps;
    return 1;
}

/* log of the transform at lam + it over that at lam, less the phase of the mean */
static number log_ratio(const kind *k, real t, long turn)
{
    real even = 0.0L, odd = 0.0L;
    if (k->steps >= DIRECT) {
        for (long j = 0; j < k->nodes; j++) {
            real x = t * k->loss[j], s = sinl(0.5L * x);
            even -= k->share[j] * 2.0L * s * s;
            odd += k->share[j] * (fabsl(x) < 1e-3L
                                      ? -x * x * x / 6.0L * (1.0L - x * x / 20.0L * (1.0L - x * x / 42.0L))
                                      : sinl(x) - x);
        }
    } else {
        real *at = k->turn, *by = k->turn + 2 * k->nodes;
        for (long j = 0; j < k->nodes; j++) {
            if (turn % 16 == 0) { /* afresh, so that errors do not grow */
                at[2 * j] = cosl(t * k->loss[j]);
                at[2 * j + 1] = sinl(t * k->loss[j]);
            } else {
                real c = at[2 * j] * by[2 * j] - at[2 * j + 1] * by[2 * j + 1];
                at[2 * j + 1] = at[2 * j] * by[2 * j + 1] + at[2 * j + 1] * by[2 * j];
                at[2 * j] = c;
            }
            even += k->share[j] * (at[2 * j] - 1.0L);
            odd += k->share[j] * at[2 * j + 1];
        }
    }
    /* log(1 + w) by the real and the imaginary part, without a difference where it is small */
    real x = 1.0L + even, square = x * x + odd * odd;
    real log_modulus = square < 0.5L ? 0.5L * logl(square)
                                     : 0.5L * log1pl(2.0L * even + even * even + odd * odd);
    return log_modulus + I * atan2l(odd, x);
}

static void release(kind *k, int kinds)
{
    for (int i = 0; i < kinds; i++) {
        free(k[i].loss);
        free(k[i].share);
        free(k[i].turn);
    }
}

/* Mean and deviation of the tilted sum, and the log of its mass, by one rule in z. */
int tilted_sum(int kinds, const double *noise, const double *p, const double *steps, double lam,
               double *out)
{
    kind k[MOST_KINDS];
    real mean = 0.0L, variance = 0.0L, exponent = 0.0L;
    for (int i = 0; i < kinds; i++) {
        if (!tilted(noise[i], p[i], steps[i], lam, fminl(0.1L, 0.12L * noise[i]), 11.0L, &k[i])) {
            release(k, i);
            return 0;
        }
        exponent += k[i].steps * k[i].log_m;
        mean += k[i].steps * k[i].mean;
        variance += k[i].steps * k[i].variance;
    }
    release(k, kinds);
    out[0] = (double)mean;
    out[1] = (double)sqrtl(variance);
    out[2] = (double)(exponent - lam * mean);
    return 1;
}

/* Logs of three functionals at each threshold: the masses of A and of B beyond it, and the
   profile there; 0 where the sum over t is too long.  Spacings are parts of natural ones; nodes reach
   so far beyond where the laws sit, and the sum ends where the transform has stayed below e^-depth. */
int invert(int kinds, const double *noise, const double *p, const double *steps, double lam,
           double fine_z, double fine_t, double reach, double depth, int most, int n, const double *c,
           long double *out)
{
    kind k[MOST_KINDS];
    real exponent = 0.0L, mean = 0.0L, variance = 0.0L, pole = fminl(fabsl(lam), fabsl(lam - 1.0L));
    for (int i = 0; i < kinds; i++) {
        if (!tilted(noise[i], p[i], steps[i], lam, fine_z * fminl(0.1L, 0.12L * noise[i]), reach, &k[i])) {
            release(k, i);
            return 0;
        }
        exponent += k[i].steps * k[i].log_m;
        mean += k[i].steps * k[i].mean;
        variance += k[i].steps * k[i].variance;
    }
    real pi = acosl(-1.0L), dt = fine_t * fminl(2.0L * pi / (11.0L * sqrtl(variance)), 2.0L * pi * pole / 46.0L);
    for (int i = 0; i < kinds; i++)
        for (long j = 0; j < k[i].nodes; j++) {
            k[i].turn[2 * (k[i].nodes + j)] = cosl(dt * k[i].loss[j]);
            k[i].turn[2 * (k[i].nodes + j) + 1] = sinl(dt * k[i].loss[j]);
        }
    real *sums = calloc(3 * n, sizeof(real));
    int quiet = 0, done = 0;
    for (int m = 0; m < most && !done; m++) {
        real t = dt * m;
        number total = 0.0L, lambda = lam + I * t;
        for (int i = 0; i < kinds; i++)
            total += k[i].steps * log_ratio(&k[i], t, m);
        real weight = (m ? 2.0L : 1.0L) * dt / (2.0L * pi);
        for (int i = 0; i < n; i++) {
            number term = weight * cexpl(total + I * t * (mean - c[i]));
            sums[3 * i] += creall(term / lambda);
            sums[3 * i + 1] += creall(term / (lambda - 1.0L));
            sums[3 * i + 2] += creall(term / (lambda * (lambda - 1.0L)));
        }
        quiet = creall(total) < -depth ? quiet + 1 : 0;
        real rest = (real)most / (m + 1); /* a transform that falls more slowly than a Gaussian ends too late */
        if (m % 250 == 249 && -creall(total) * rest * rest < depth)
            break;
        done = quiet > 20;
    }
    for (int i = 0; i < n && done; i++) {
        real scale = exponent - (real)lam * c[i], sign = lam > 1.0 ? 1.0L : -1.0L;
        real right = lam > 1.0 ? c[i] : 0.0L; /* H is of B and A there */
        out[3 * i] = logl(sign * sums[3 * i]) + scale;
        out[3 * i + 1] = logl(sign * sums[3 * i + 1]) + scale + c[i];
        out[3 * i + 2] = logl(sums[3 * i + 2]) + scale + right;
    }
    free(sums);
    release(k, kinds);
    return done;
}
