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

static void release(kind *k, int kinds)
{
    for (int i = 0; i < kinds; i++) {
        free(k[i].loss);
        free(k[i].share);
        free(k[i].turn);
    }
}

static int allocated(kind *k, long nodes)
{
    k->nodes = nodes;
    if (nodes > 40000)
        return 0;
    k->loss = malloc(2 * nodes * sizeof(real));
    k->share = malloc(2 * nodes * sizeof(real));
    k->turn = malloc(4 * nodes * sizeof(real));
    return 1;
}

/* From losses and logs of weights under A to the law tilted by lam. */
static void tilt(kind *k, real steps, real lam)
{
    real total = 0.0L, first = 0.0L, second = 0.0L, top = 0.0L;
    for (long j = 0; j < k->nodes; j++)
        top = fmaxl(top, lam * k->loss[j] + k->share[j]);
    if (top > 1.0L) {
        for (long j = 0; j < k->nodes; j++)
            total += k->share[j] = expl(k->share[j] + lam * k->loss[j] - top);
        k->log_m = top + logl(total);
    } else { /* near 1: what it differs by is a sum of differences */
        for (long j = 0; j < k->nodes; j++) {
            real weight = expl(k->share[j]);
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
}

static int sampled(double noise, double p, double steps, real lam, real spacing, real reach, kind *k)
{
    real mu = 1.0L / noise, far = lam * mu;
    real low = fminl(0.0L, far) - reach, high = fmaxl(mu, far) + reach;
    if (!allocated(k, (long)ceill((high - low) / spacing)))
        return 0;
    real root = logl(spacing / sqrtl(2.0L * acosl(-1.0L)));
    for (long j = 0; j < k->nodes; j++) {
        real z = low + (j + 0.5L) * spacing, x = mu * z - 0.5L * mu * mu;
        real loss = p == 1.0 ? x : log1pl(p * expm1l(x));
        if (x > 60.0L && p < 1.0) /* without the overflow of the exponential */
            loss = x + logl(p) + log1pl((1.0L - p) / p * expl(-x));
        k->loss[j] = loss;
        k->share[j] = root - 0.5L * z * z;
    }
    tilt(k, steps, lam);
    return 1;
}

/* Steps whose nodes are given: losses and logs of weights under A, those of one kind after the other's. */
static int listed(int kinds, const long *counts, const long double *log_weight, const long double *loss,
                  const double *steps, real lam, kind *k)
{
    for (int i = 0; i < kinds; i++) {
        if (!allocated(&k[i], counts[i])) {
            release(k, i);
            return 0;
        }
        for (long j = 0; j < counts[i]; j++) {
            k[i].loss[j] = *loss++;
            k[i].share[j] = *log_weight++;
        }
        tilt(&k[i], steps[i], lam);
    }
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

static int all_sampled(int kinds, const double *noise, const double *p, const double *steps, real lam,
                       real fine, real reach, kind *k)
{
    for (int i = 0; i < kinds; i++)
        if (!sampled(noise[i], p[i], steps[i], lam, fine * fminl(0.1L, 0.12L * noise[i]), reach, &k[i])) {
            release(k, i);
            return 0;
        }
    return 1;
}

typedef struct {
    real exponent, mean, variance;
} sums;

static sums summed(const kind *k, int kinds)
{
    sums s = {0.0L, 0.0L, 0.0L};
    for (int i = 0; i < kinds; i++) {
        s.exponent += k[i].steps * k[i].log_m;
        s.mean += k[i].steps * k[i].mean;
        s.variance += k[i].steps * k[i].variance;
    }
    return s;
}

/* Mean and deviation of the tilted sum, and the log of its mass. */
static int put_moments(kind *k, int kinds, real lam, double *out)
{
    sums s = summed(k, kinds);
    release(k, kinds);
    out[0] = (double)s.mean;
    out[1] = (double)sqrtl(s.variance);
    out[2] = (double)(s.exponent - lam * s.mean);
    return 1;
}

/* Logs of three functionals at each threshold: the masses of A and of B beyond it, and the
   profile there; 0 where the sum over t is too long.  A transform that may rise again is followed
   for so many times as long as it took to fall. */
static int put_logs(kind *k, int kinds, real lam, real fine_t, real depth, real past, int most, int n,
                    const double *c, long double *out)
{
    sums s = summed(k, kinds);
    real pole = fminl(fabsl(lam), fabsl(lam - 1.0L)), pi = acosl(-1.0L);
    real dt = fine_t * fminl(2.0L * pi / (11.0L * sqrtl(s.variance)), 2.0L * pi * pole / 46.0L);
    for (int i = 0; i < kinds; i++)
        for (long j = 0; j < k[i].nodes; j++) {
            k[i].turn[2 * (k[i].nodes + j)] = cosl(dt * k[i].loss[j]);
            k[i].turn[2 * (k[i].nodes + j) + 1] = sinl(dt * k[i].loss[j]);
        }
    real *total = calloc(3 * n, sizeof(real));
    int quiet = 0, done = 0;
    for (int m = 0; m < most && !done; m++) {
        real t = dt * m;
        number log_of = 0.0L, lambda = lam + I * t;
        for (int i = 0; i < kinds; i++)
            log_of += k[i].steps * log_ratio(&k[i], t, m);
        real weight = (m ? 2.0L : 1.0L) * dt / (2.0L * pi);
        for (int i = 0; i < n; i++) {
            number term = weight * cexpl(log_of + I * t * (s.mean - c[i]));
            total[3 * i] += creall(term / lambda);
            total[3 * i + 1] += creall(term / (lambda - 1.0L));
            total[3 * i + 2] += creall(term / (lambda * (lambda - 1.0L)));
        }
        quiet = creall(log_of) < -depth ? quiet + 1 : 0;
        done = quiet > 20.0L + past * (m - quiet);
        real rest = (real)most / (m + 1); /* what falls more slowly than a Gaussian ends too late */
        if (m % 250 == 249 && -creall(log_of) * rest * rest < depth)
            break;
    }
    for (int i = 0; i < n && done; i++) {
        real scale = s.exponent - lam * c[i], sign = lam > 1.0L ? 1.0L : -1.0L;
        real right = lam > 1.0L ? c[i] : 0.0L; /* H is of B and A there */
        out[3 * i] = logl(sign * total[3 * i]) + scale;
        out[3 * i + 1] = logl(sign * total[3 * i + 1]) + scale + c[i];
        out[3 * i + 2] = logl(total[3 * i + 2]) + scale + right;
    }
    free(total);
    release(k, kinds);
    return done;
}

/* Moments and logs of sampled and plain steps.  Spacings are parts of natural ones; nodes reach so far
   beyond where the laws sit, and the sum ends where the transform has stayed below e^-depth. */
int tilted_sum(int kinds, const double *noise, const double *p, const double *steps, double lam,
               double *out)
{
    kind k[MOST_KINDS];
    return all_sampled(kinds, noise, p, steps, lam, 1.0L, 11.0L, k) && put_moments(k, kinds, lam, out);
}

int invert(int kinds, const double *noise, const double *p, const double *steps, double lam,
           double fine_z, double fine_t, double reach, double depth, int most, int n, const double *c,
           long double *out)
{
    kind k[MOST_KINDS];
    return all_sampled(kinds, noise, p, steps, lam, fine_z, reach, k) &&
           put_logs(k, kinds, lam, fine_t, depth, 0.0L, most, n, c, out);
}

/* The same of steps whose nodes are given. */
int listed_sum(int kinds, const long *counts, const long double *log_weight, const long double *loss,
               const double *steps, double lam, double *out)
{
    kind k[MOST_KINDS];
    return listed(kinds, counts, log_weight, loss, steps, lam, k) && put_moments(k, kinds, lam, out);
}

int listed_invert(int kinds, const long *counts, const long double *log_weight, const long double *loss,
                  const double *steps, double lam, double fine_t, double depth, double past, int most, int n,
                  const double *c, long double *out)
{
    kind k[MOST_KINDS];
    return listed(kinds, counts, log_weight, loss, steps, lam, k) &&
           put_logs(k, kinds, lam, fine_t, depth, past, most, n, c, out);
}
