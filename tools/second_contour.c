/* Functionals of composed steps that are known by nodes on a vertical line, in long double.

   A second computation beside the engines', for tools/second_contour.py: straight lines, the
   trapezoidal rule in z and in t, no code of csrc/. */

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef long double real;
typedef long double complex number;

#define MOST_KINDS 4
#define AFRESH 32   /* values of t between which phases are turned on */

/* e^ix - 1, and less = e^ix - 1 - ix: without a difference, however small x is */
typedef struct {
    number whole, less;
} phase;

typedef struct {
    number *loss;   /* less the mean of the tilted law */
    number *share;  /* of the tilted law */
    phase *at, *by; /* at t, and of one step in t */
    long nodes;
    real log_m, mean, variance, steps, moduli;
    real rounding; /* of log_m, about */
} kind;

static void release(kind *k, int kinds)
{
    for (int i = 0; i < kinds; i++) {
        free(k[i].loss);
        free(k[i].share);
        free(k[i].at);
    }
}

static int allocated(kind *k, long nodes)
{
    k->nodes = nodes;
    if (nodes > 40000)
        return 0;
    k->loss = malloc(nodes * sizeof(number));
    k->share = malloc(nodes * sizeof(number));
    k->at = malloc(2 * nodes * sizeof(phase));
    k->by = k->at + nodes;
    return 1;
}

/* x y, without the care for infinities that the language asks for */
static inline number times(number x, number y)
{
    real a = creall(x), b = cimagl(x), c = creall(y), d = cimagl(y);
    return (a * c - b * d) + I * (a * d + b * c);
}

/* for Im x >= 0, and for real exponents ix */
static phase phase_of(number x)
{
    number ix = I * x, square = times(ix, ix);
    phase p;
    if (creall(x) * creall(x) + cimagl(x) * cimagl(x) < 0.09L) {
        number series = 1.0L;
        for (int i = 15; i >= 3; i--)
            series = 1.0L + times(ix, series) / i;
        p.less = 0.5L * times(square, series);
        p.whole = ix + p.less;
    } else {
        real s = sinl(0.5L * creall(x)), grown = expm1l(-cimagl(x));
        p.whole = grown - 2.0L * (1.0L + grown) * s * s + I * (1.0L + grown) * sinl(creall(x));
        p.less = p.whole - ix;
    }
    return p;
}

/* log(1 + r), |arg| < pi */
static number log_of_one_and(number r)
{
    real x = creall(r), y = cimagl(r), above = 2.0L * x + x * x + y * y;
    real modulus = above > -0.5L ? 0.5L * log1pl(above) : logl(hypotl(1.0L + x, y));
    return modulus + I * atan2l(y, 1.0L + x);
}

/* From losses and logs of weights under A to the law tilted by lam. */
static void tilt(kind *k, real steps, real lam)
{
    number total = 0.0L, first = 0.0L, second = 0.0L;
    real top = 0.0L, terms = 0.0L;
    for (long j = 0; j < k->nodes; j++)
        top = fmaxl(top, lam * creall(k->loss[j]) + creall(k->share[j]));
    if (top > 1.0L) {
        for (long j = 0; j < k->nodes; j++)
            total += k->share[j] = cexpl(k->share[j] + lam * k->loss[j] - top);
        k->log_m = top + logl(creall(total));
    } else { /* near 1: what it differs by is a sum of differences */
        for (long j = 0; j < k->nodes; j++) {
            number weight = cexpl(k->share[j]), more = phase_of(-I * lam * k->loss[j]).whole;
            total += times(weight, more);
            terms += cabsl(times(weight, more));
            k->share[j] = weight + times(weight, more);
        }
        k->log_m = log1pl(creall(total));
        total = 0.0L;
        for (long j = 0; j < k->nodes; j++)
            total += k->share[j];
    }
    k->rounding = LDBL_EPSILON * (top > 1.0L ? 1.0L + fabsl(k->log_m) : terms);
    k->moduli = 0.0L;
    for (long j = 0; j < k->nodes; j++) {
        k->share[j] /= total;
        k->moduli += cabsl(k->share[j]);
        first += times(k->share[j], k->loss[j]);
    }
    for (long j = 0; j < k->nodes; j++) {
        k->loss[j] -= first;
        second += times(k->share[j], times(k->loss[j], k->loss[j]));
    }
    k->mean = creall(first);
    k->variance = creall(second);
    k->steps = steps;
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

/* log of the transform at lam + it over that at lam, less the phase of the mean; t is the `turn`-th */
static number log_ratio(const kind *k, real t, long turn)
{
    number sum = 0.0L;
    int near = t * sqrtl(k->variance) < 1.0L;
    for (long j = 0; j < k->nodes; j++) {
        phase p = k->at[j], q = k->by[j];
        if (turn % AFRESH == 0) { /* so that errors do not grow */
            p = phase_of(t * k->loss[j]);
        } else {
            number both = times(p.whole, q.whole);
            p.whole += q.whole + both;
            p.less += q.less + both;
        }
        k->at[j] = p;
        sum += times(k->share[j], near ? p.less : p.whole); /* the same: the mean of the losses is 0 */
    }
    return log_of_one_and(sum);
}

typedef struct {
    real exponent, mean, variance, rounding;
} sums;

static sums summed(const kind *k, int kinds)
{
    sums s = {0.0L, 0.0L, 0.0L, 0.0L};
    for (int i = 0; i < kinds; i++) {
        s.exponent += k[i].steps * k[i].log_m;
        s.mean += k[i].steps * k[i].mean;
        s.variance += k[i].steps * k[i].variance;
        s.rounding += k[i].steps * k[i].rounding;
    }
    return s;
}

/* Mean and deviation of the tilted sum, the log of its mass, and about what rounding makes of it. */
static int put_moments(kind *k, int kinds, real lam, double *out)
{
    sums s = summed(k, kinds);
    release(k, kinds);
    out[0] = (double)s.mean;
    out[1] = (double)sqrtl(s.variance);
    out[2] = (double)(s.exponent - lam * s.mean);
    out[3] = (double)s.rounding;
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
        for (long j = 0; j < k[i].nodes; j++)
            k[i].by[j] = phase_of(dt * k[i].loss[j]);
    number at_end = 0.0L;
    for (int i = 0; i < kinds; i++)
        at_end += k[i].steps * log_ratio(&k[i], dt * most, 0);
    if (past == 0.0L && creall(at_end) > -0.5L * depth) { /* it does not fall in time */
        release(k, kinds);
        return 0;
    }
    real *total = calloc(3 * n, sizeof(real));
    number *at = malloc(2 * n * sizeof(number)), *by = at + n; /* e^{it(mean - c)} */
    for (int i = 0; i < n; i++)
        by[i] = cexpl(I * dt * (s.mean - c[i]));
    int quiet = 0, done = 0;
    for (int m = 0; m < most && !done; m++) {
        real t = dt * m;
        number log_of = 0.0L, lambda = lam + I * t;
        for (int i = 0; i < kinds; i++)
            log_of += k[i].steps * log_ratio(&k[i], t, m);
        number whole = (m ? 2.0L : 1.0L) * dt / (2.0L * pi) * cexpl(log_of);
        number of_a = whole / lambda, of_b = whole / (lambda - 1.0L), of_both = of_a / (lambda - 1.0L);
        for (int i = 0; i < n; i++) {
            real x = creall(at[i]), y = cimagl(at[i]), u = creall(by[i]), v = cimagl(by[i]);
            at[i] = m % AFRESH ? x * u - y * v + I * (x * v + y * u) : cexpl(I * t * (s.mean - c[i]));
            x = creall(at[i]);
            y = cimagl(at[i]);
            total[3 * i] += x * creall(of_a) - y * cimagl(of_a);
            total[3 * i + 1] += x * creall(of_b) - y * cimagl(of_b);
            total[3 * i + 2] += x * creall(of_both) - y * cimagl(of_both);
        }
        quiet = creall(log_of) < -depth ? quiet + 1 : 0;
        done = quiet > 20.0L + past * (m - quiet);
        real rest = (real)most / (m + 1); /* what falls more slowly than a Gaussian ends too late */
        if (m % 250 == 249 && -creall(log_of) * rest * rest < depth)
            break;
    }
    free(at);
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

/* Moments and logs of steps whose nodes are given.  Spacings are parts of natural ones, and the sum ends
   where the transform has stayed below e^-depth. */
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
