#include <float.h>
#include <math.h>

#include "normal.h"
#include "pyengine.h"

/* Pairs whose trade-off function is a formula.  Everything is a function of the threshold x of z:
 * one step of the Poisson-subsampled Gaussian, z ~ N(0,1) against (1-p) N(0,1) + p N(mu,1); with
 * p = 1 the Gaussian under any composition. */

static const double HALF_LOG_2PI = 0.91893853320467274178;

/* log of exp(a) + exp(b) */
static double log_add(double a, double b) {
    double top = fmax(a, b), low = fmin(a, b);
    return top == -INFINITY ? top : top + log1p(exp(low - top));
}

/* log of the Gaussian profile Phi(x) - exp(-s) Phi(x - mu), s = mu x - mu^2/2 */
static double gaussian_profile(double x, double mu) {
    if (x <= 5.0) {
        double t = -x;
        if (t < -38.0) t = -38.0;
        return -0.5 * x * x - HALF_LOG_2PI + log(pe_mills_difference(t, mu));
    }
    double s = mu * (x - 0.5 * mu);
    if (mu <= x) return log(-expm1(-s) + pe_normal_pdf(x) * pe_mills_difference(x - mu, mu));
    return log1p(-pe_ndtr(-x) - pe_normal_pdf(x) * pe_mills(mu - x));
}

/* Threshold of z at which the loss of the unreversed pair is c. */
static double z_of_loss(const pe_step *q, double c) {
    double s; /* log-likelihood ratio of the two Gaussians */
    if (q->p == 1.0) return ((c + q->half_sq) + q->half_sq_low) / q->mu;
    double y = (c - q->floor) - q->floor_low; /* above the smallest loss */
    if (c < 0.0 && expm1(c) < -0.5 * q->p)
        s = y > 0.0 ? log(expm1(y)) + log1p(-q->p) - log(q->p) : -INFINITY;
    else if (c > 1.0) s = c - log(q->p) + log1p(-(1.0 - q->p) * exp(-c));
    else s = log1p(expm1(c) / q->p);
    return ((s + q->half_sq) + q->half_sq_low) / q->mu;
}

static double loss_of_z(const pe_step *q, double z) {
    double s = q->mu * (z - 0.5 * q->mu);
    if (q->p == 1.0) return s;
    double r = q->p * expm1(s);
    if (r > 1e300) return s + log(q->p);
    return r < -0.5 ? log((1.0 - q->p) + q->p * exp(s)) : log1p(r);
}

/* The five log values at threshold x. */
static void values(const pe_step *q, double x, double *v) {
    double stay = log1p(-q->p), go = log(q->p);
    double p_above = pe_log_ndtr(-x), p_below = pe_log_ndtr(x);
    double q_above = log_add(stay + p_above, go + pe_log_ndtr(q->mu - x));
    double q_below = log_add(stay + p_below, go + pe_log_ndtr(x - q->mu));
    if (q->reversed) {
        v[PE_A_ABOVE] = q_below;
        v[PE_A_BELOW] = q_above;
        v[PE_B_ABOVE] = p_below;
        v[PE_B_BELOW] = p_above;
        v[PE_PROFILE] = go + gaussian_profile(q->mu - x, q->mu);
    } else {
        /* the Gaussian part's share of e^c at the threshold, from x: c may round to its infimum */
        double odds = (go - stay) + q->mu * (x - 0.5 * q->mu);
        double part = odds < 0.0 ? odds - log1p(exp(odds)) : -log1p(exp(-odds));
        v[PE_A_ABOVE] = p_above;
        v[PE_A_BELOW] = p_below;
        v[PE_B_ABOVE] = q_above;
        v[PE_B_BELOW] = q_below;
        v[PE_PROFILE] = x == -INFINITY ? -INFINITY : fmin(part + gaussian_profile(x, q->mu), 0.0);
    }
}

static void put(const pe_step *q, double x, double c, double *row) {
    row[0] = c;
    row[1] = NAN; /* the density is not asked of a closed form */
    values(q, x, row + 2);
    for (int k = 0; k < PE_FUNCTIONALS; k++) {
        double v = row[2 + k];
        /* a profile of 0 may come of its cancellation, too */
        /* below log 2 the threshold's error is |log p| units of it, squared in the exponent */
        double size = isfinite(v) ? 4.0 + (2.0 - log(q->p)) * fabs(v) : 1.0;
        if (isfinite(v)) size += 0.5 * q->mu * sqrt(1.0 + 2.0 * fabs(v)); /* last place of x */
        row[2 + PE_FUNCTIONALS + k] = isfinite(v) || k == PE_PROFILE
                                          ? 4.0 * DBL_EPSILON * size
                                          : DBL_EPSILON;
    }
}

void pe_step_at(const pe_step *q, size_t n, const double *c, double *rows) {
    for (size_t i = 0; i < n; i++)
        put(q, z_of_loss(q, q->reversed ? -c[i] : c[i]), c[i], rows + PE_ROW * i);
}

/* The x at which a log functional has the wanted value: bisection on x in doubles, finished by
 * secant steps of its own bracket (Illinois), each at most halving the work that is left. */
static double solve_x(const pe_step *q, int functional, double target) {
    if (q->p == 1.0 || !q->reversed) {
        if (functional == PE_A_ABOVE) return q->reversed ? q->mu + pe_ndtri_exp(target)
                                                         : -pe_ndtri_exp(target);
        if (functional == PE_A_BELOW) return q->reversed ? q->mu - pe_ndtri_exp(target)
                                                         : pe_ndtri_exp(target);
    }
    /* beyond these thresholds every functional that is solved for is 0 or 1 to e^-800 */
    double lo = -41.0, hi = 41.0 + q->mu, v[PE_FUNCTIONALS];
    if (functional == PE_PROFILE && q->reversed) lo += q->mu;
    if (functional == PE_PROFILE && !q->reversed) hi = 41.0;
    double f_lo = NAN, f_hi = NAN;
    int rising = q->reversed == (functional == PE_A_ABOVE), last = 0;
    for (int it = 0; it < 200 && hi - lo > 2e-16 * (fabs(lo) + fabs(hi)); it++) {
        double x = 0.5 * (lo + hi);
        if (it > 6 && isfinite(f_lo) && isfinite(f_hi)) {
            double secant = lo - f_lo * (hi - lo) / (f_hi - f_lo);
            if (secant > lo && secant < hi) x = secant;
        }
        values(q, x, v);
        double f = (v[functional] - target) * (rising ? 1.0 : -1.0);
        if (f == 0.0) return x;
        if (f < 0.0) {
            if (last == -1) f_hi *= 0.5;
            last = -1;
            lo = x;
            f_lo = f;
        } else {
            if (last == 1) f_lo *= 0.5;
            last = 1;
            hi = x;
            f_hi = f;
        }
    }
    return 0.5 * (lo + hi);
}

void pe_step_solve(const pe_step *q, int functional, size_t n, const double *log_target,
                   double *rows) {
    for (size_t i = 0; i < n; i++) {
        double x = solve_x(q, functional, log_target[i]), c = loss_of_z(q, x);
        put(q, x, q->reversed ? -c : c, rows + PE_ROW * i);
    }
}
