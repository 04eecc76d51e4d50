#include "tilted.h"

#include <math.h>
#include <stdlib.h>

/* docs/theory/certified.md proves what stands here. */

static const double PI = 3.14159265358979323846;
static const double HALF_LOG_2PI = 0.91893853320467274178;
static const double LOG_2 = 0.6931471805599453;
static const double ROUNDING = 1e-9; /* of logs of bounds, outwards */
static const double CELL = 0.25;     /* width of the cells of upper sums */
static const double REACH = 42.0;    /* below -REACH a normal tail is nothing */

enum { SCANNED = 2048 };

double pe_tilted_log_ratio(const pe_tilted *t, double x) {
    const double e = t->mu * (x - 0.5 * t->mu);
    if (e > 600.0) return e + log(t->p);
    const double r = t->p * expm1(e);
    /* 1 - p is exact for p >= 1/2; beside -1, r would lose what is left of the ratio */
    return r < -0.5 ? log((1.0 - t->p) + t->p * exp(e)) : log1p(r);
}

double pe_tilted_loss_slope(const pe_tilted *t, double x) {
    return t->mu * -expm1(log1p(-t->p) - pe_tilted_log_ratio(t, x));
}

double pe_tilted_log(const pe_tilted *t, double power, double x) {
    return power * pe_tilted_log_ratio(t, x) - 0.5 * x * x - HALF_LOG_2PI;
}

double pe_tilted_log_growth(const pe_tilted *t, double power, double theta, double x) {
    if (!(theta < PI)) return INFINITY;
    if (power >= 0.0) return 0.0;
    const double half = sin(0.5 * theta), s = t->mu * (x - 0.5 * t->mu);
    const double u = 4.0 * (1.0 - t->p) * half * half * exp(log(t->p) + s - 2.0 * pe_tilted_log_ratio(t, x));
    return 0.5 * power * log1p(-fmin(u, half * half)) * (1.0 + ROUNDING) + ROUNDING;
}

/* log of the ratio of the two parts of the mixture is 0 */
static double middle(const pe_tilted *t) {
    return 0.5 * t->mu + (log1p(-t->p) - log(t->p)) / t->mu;
}

double pe_tilted_log_growth_below(const pe_tilted *t, double power, double theta, double x) {
    return pe_tilted_log_growth(t, power, theta, fmin(x, middle(t))); /* it grows up to the middle */
}

/* log of the largest |R|^power over a cell for all angles up to theta */
static double cell_log_power(const pe_tilted *t, double power, double theta, double low, double high) {
    if (power >= 0.0) return power * pe_tilted_log_ratio(t, high);
    const double at_low = power * pe_tilted_log_ratio(t, low) + pe_tilted_log_growth(t, power, theta, low);
    const double at_high = power * pe_tilted_log_ratio(t, high) + pe_tilted_log_growth(t, power, theta, high);
    const double co = cos(theta), least = -(1.0 - t->p) * co; /* the rho with the least modulus */
    double log_power = fmax(at_low, at_high);
    if (least > 0.0) {
        const double x = 0.5 * t->mu + log(least / t->p) / t->mu;
        if (x > low - 1e-6 && x < high + 1e-6)
            log_power = fmax(log_power, power * log((1.0 - t->p) * sin(theta)));
    }
    return log_power;
}

double pe_tilted_integral(const pe_tilted *t, double power, int k, double theta, double low, double high) {
    if (!(theta < PI)) return INFINITY;
    const double centre = -(double)k * t->mu;
    double top = -INFINITY, sum = 0.0;
    for (double left = low; left < high; left += CELL) {
        const double right = fmin(left + CELL, high);
        const double x = fmin(fmax(centre, left), right);
        const double e = -0.5 * x * x - (double)k * t->mu * (x - 0.5 * t->mu) - HALF_LOG_2PI +
                         cell_log_power(t, power, theta, left, right) + log(right - left);
        if (e > top) {
            sum = sum * exp(top - e) + 1.0;
            top = e;
        } else {
            sum += exp(e - top);
        }
    }
    return top + log(sum) + ROUNDING * (1.0 + fabs(top));
}

double pe_tilted_below(const pe_tilted *t, double power, int k, double theta, double low, double high,
                       double unit) {
    const double start = fmin(low, -(double)k * t->mu) - 6.0;
    /* e^{-ks} phi is a Gaussian about -k mu, by a change of its centre the density of the tail */
    const double shift = (double)k * t->mu,
                 rate = -start - shift + fmin(power, 0.0) * pe_tilted_loss_slope(t, start);
    if (!(rate > 0.0)) return INFINITY;
    const double tail = pe_tilted_log(t, power, start) - shift * (start - 0.5 * t->mu) - log(rate) +
                        pe_tilted_log_growth_below(t, power, theta, start);
    return (exp(tail - unit) + exp(pe_tilted_integral(t, power, k, theta, start, high) - unit)) *
           (1.0 + 1e-8);
}

/* Logs of the parts of R^power <= 2^(power-1) ((1-p)^power + p^power e^(power s)), power > 1: phi times the
 * first above x, and all of phi times the second. */
static void split(const pe_tilted *t, double power, double x, double *near, double *far) {
    const double twice = (power - 1.0) * LOG_2;
    *near = twice + power * log1p(-t->p) - 0.5 * x * x - HALF_LOG_2PI;
    *far = twice + power * log(t->p) + 0.5 * power * (power - 1.0) * t->mu * t->mu;
}

static double log_add(double a, double b) {
    return fmax(a, b) + log1p(exp(-fabs(a - b)));
}

double pe_tilted_beyond_mode(const pe_tilted *t, double power, double x) {
    double near, far;
    split(t, power, x, &near, &far);
    return log_add(near, far);
}

double pe_tilted_beyond(const pe_tilted *t, double power, double x, int above) {
    double rate;
    if (above) rate = power > 0.0 ? x - power * t->mu : x;
    else rate = power < 0.0 ? -x + power * pe_tilted_loss_slope(t, x) : -x;
    double bound = rate > 0.0 ? pe_tilted_log(t, power, x) - log(rate) : INFINITY;
    if (above && power > 1.0 && x > 0.0) {
        double near, far;
        split(t, power, x, &near, &far);
        bound = fmin(bound, log_add(near - log(x), far));
    }
    return bound + ROUNDING * (1.0 + fabs(bound));
}

int pe_tilted_is_valley(const pe_tilted *t, double low, double high) {
    if (high <= low) return 1;
    /* (log phi R^q)'' + 1 = q (log R)'' rises up to the middle and falls behind it */
    const double first = t->q * pe_tilted_loss_slope(t, low) - low;
    const double last = t->q * pe_tilted_loss_slope(t, high) - high;
    return first < 0.0 && (t->q <= 0.0 || last >= 0.0 || high <= middle(t));
}

typedef struct {
    double x0, step;
    int n;
    double g[SCANNED];
} scan;

static double log_sum(const scan *c, int n) {
    double top = -INFINITY, sum = 0.0;
    for (int i = 0; i < n; i++) top = fmax(top, c->g[i]);
    for (int i = 0; i < n; i++) sum += exp(c->g[i] - top);
    return top + log(sum * c->step);
}

/* Whether all that is summed is below `level` from x on: phi R^q and the Gaussians that centre it. */
static int is_small(const pe_tilted *t, double x, double level, double plain) {
    return pe_tilted_log(t, t->q, x) <= level && pe_tilted_log(t, 0.0, x) <= plain &&
           pe_tilted_log(t, 1.0, x) + log(fmax(fabs(t->q), 1e-300)) <= plain;
}

static int whole_window(const pe_tilted *t, const scan *c, double level, double plain, pe_window *w) {
    w->end = INFINITY;
    for (int i = c->n - 1; i >= 0; i--) {
        const double x = c->x0 + i * c->step;
        if (!(x > 0.0) || !(pe_tilted_beyond(t, t->q, x, 1) <= level) || !is_small(t, x, level, plain)) {
            w->high = x + c->step;
            return i < c->n - 1;
        }
    }
    return 0;
}

int pe_tilted_window(const pe_tilted *t, double need, double limit, double end, pe_window *w) {
    scan c = {.x0 = -REACH};
    const double top = fmin(limit, end);
    c.step = fmax(CELL, (top + REACH) / (SCANNED - 1));
    c.n = (int)((top + REACH) / c.step) + 1;
    for (int i = 0; i < c.n; i++) c.g[i] = pe_tilted_log(t, t->q, c.x0 + i * c.step);
    const int is_cut = isfinite(end);
    w->log_total = log_sum(&c, c.n);
    double level = w->log_total - need, plain = fmin(w->log_total, 0.0) - need;
    if (!whole_window(t, &c, level, plain, w)) {
        int mode = 0, valley, last;
        while (mode < c.n - 1 && c.g[mode + 1] > c.g[mode]) mode++;
        valley = mode;
        for (int i = mode; i < c.n; i++)
            if (c.g[i] < c.g[valley]) valley = i;
        w->log_total = log_sum(&c, valley + 1);
        level = w->log_total - need;
        plain = fmin(w->log_total, 0.0) - need;
        int first = mode;
        while (first < valley && !is_small(t, c.x0 + first * c.step, level, plain)) first++;
        for (last = valley; last + 1 < c.n && c.g[last + 1] <= level; last++);
        w->high = c.x0 + first * c.step;
        w->end = is_cut ? end : c.x0 + last * c.step;
        if (!is_cut && !(w->high < w->end && is_small(t, w->high, level, plain))) return 0;
    }
    int i = 0;
    while (i < c.n - 1 && is_small(t, c.x0 + (i + 1) * c.step, level, plain)) i++;
    w->low = c.x0 + i * c.step;
    return w->low < w->high;
}
