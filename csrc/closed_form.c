/* Proven answers for one step of the sampled Gaussian, or for Gaussians under any composition: profile, epsilon,
 * trade-off function and hull.  The constants and bounds are derived in docs/theory/closed_form.md;
 * tools/prove_normal.py checks them.  Interface in answers.h; called by pyengine/engines/closed_form.py.
 *
 * A is N(0,1) and B = r N(0,1) + p N(mu,1), r = 1 - p, for PE_ADD; the other way round for PE_REMOVE.  Thresholds of z
 * are sums of two doubles, so that their rounding does not matter.  Probabilities are kept times 2^200, so that values
 * near the smallest doubles do not underflow. */

#include <float.h>
#include <math.h>

#include "answers.h"
#include "doubles.h"
#include "elementary.h"
#include "functions.h"
#include "normal.h"

#define U 0x1p-53 /* unit roundoff */
_Static_assert(PE_ULP_ELEMENTARY <= 2, "docs/theory/closed_form.md counts no more");
/* Bounds of relative errors in units of U. */
#define TAIL 32.0 /* of tail() */
#define MIXED 36.0 /* of a sum of two tails in mixture_residual() */
#define WITHIN 40.0 /* of 1 - profile, where the profile is near 1 */
#define BEYOND 96.0 /* of a profile as a difference of Mills ratios */

static const double SCALE = 0x1p200, UNSCALE = 0x1p-200;
static const pe_dd LOG_SCALE = {0x1.1542457337d43p+7, -0x1.e3948c376279dp-49};
static const double INV_SQRT_2PI = 0x1.9884533d43651p-2;
static const double FAR = 60.0; /* 2^200 e^(-60^2/2) underflows */
static const double SMALLEST = 0x1p-1074; /* added to bounds for underflow */
static const double ORDINARY = 1.0; /* epsilon from which on s is a sum of logs; below it log1p of expm1 */

static pe_dd minus(pe_dd a) {
    return pe_dd_make(-a.h, -a.l);
}

/* 2^200 exp(-t^2/2) for |t| <= FAR */
static double gauss(pe_dd t) {
    const pe_dd square = pe_two_prod(t.h, t.h);
    const pe_dd exponent = pe_two_sum(-0.5 * square.h, LOG_SCALE.h);
    const double low = exponent.l + (LOG_SCALE.l - (0.5 * square.l + t.h * t.l));
    const double e = pe_d_exp(exponent.h);
    return e + e * low;
}

/* 2^200 times the density at t */
static double density(pe_dd t) {
    return fabs(t.h) > FAR ? 0.0 : gauss(t) * INV_SQRT_2PI;
}

/* 2^200 Phi(-|t|) from the density */
static double small_tail(pe_dd t, double phi) {
    const pe_dd size = t.h < 0.0 ? minus(t) : t;
    return phi / (size.h + (size.l + pe_normal_excess(size.h)));
}

/* 2^200 Phi(-t) */
static double tail(pe_dd t) {
    const double small = small_tail(t, density(t));
    return t.h < 0.0 ? SCALE - small : small;
}

/* ---- the mixture ------------------------------------------------------------------------------ */

typedef struct {
    double value; /* F(x) - alpha for the mixture's distribution function F, times 2^200 */
    double error; /* bound of its absolute error */
    double slope; /* density of the mixture, times 2^200 */
} residual;

/* F(x) - alpha in three forms: from both lower tails, from both upper tails, and, where alpha is near r, from the two
 * small tails in between.  The one with the smallest error is taken. */
static residual mixture_residual(const pe_step *q, pe_dd x, double alpha) {
    const pe_dd y = pe_dd_add(x, minus(q->mu));
    const double stay_phi = density(x), go_phi = density(y), r = q->rest.h, p = q->p.h;
    const double stay_small = small_tail(x, stay_phi), go_small = small_tail(y, go_phi);
    const double stay_above = r * (x.h < 0.0 ? SCALE - stay_small : stay_small);
    const double stay_below = r * (x.h < 0.0 ? stay_small : SCALE - stay_small);
    const double go_above = p * (y.h < 0.0 ? SCALE - go_small : go_small);
    const double go_below = p * (y.h < 0.0 ? go_small : SCALE - go_small);
    const double below = stay_below + go_below, above = stay_above + go_above;
    const pe_dd rest = pe_dd_add_d(q->rest, -alpha);
    residual f;
    f.slope = r * stay_phi + p * go_phi;
    f.value = below - alpha * SCALE;
    f.error = MIXED * U * below;
    const double upper_error = MIXED * U * above + (alpha < 0.5 ? U * SCALE : 0.0);
    if (upper_error < f.error) {
        f.value = (1.0 - alpha) * SCALE - above;
        f.error = upper_error;
    }
    const double middle_error =
        MIXED * U * (go_below + stay_above) + (4.0 * U * fabs(rest.l) + 0x1p-105 * q->inexact) * SCALE;
    if (middle_error < f.error) {
        f.value = (rest.h * SCALE + (go_below - stay_above)) + rest.l * SCALE;
        f.error = middle_error;
    }
    f.error += 4.0 * U * fabs(f.value);
    return f;
}

/* ---- profiles --------------------------------------------------------------------------------- */

typedef struct {
    double value; /* times 2^200 */
    double error; /* bound of its relative error */
    double rate; /* about -d log value / d argument */
    double lost; /* 2^200 - value/weight where that is the smaller one, else infinite */
    double lost_error; /* bound of its absolute error */
} profile;

/* Profile of N(0,1) against N(mu,1) at epsilon = s: Phi(-t) - e^s Phi(-t - mu), s = mu t + mu^2/2 >= 0; rate by s. */
static profile gaussian_profile(const pe_step *q, pe_dd t) {
    profile g = {0.0, 0.0, 0.0, INFINITY, INFINITY};
    const double x = t.h + q->mu.h, phi = density(t), second = phi * pe_mills(x);
    if (t.h < 0.0 && q->mu.h > 0.5) {
        g.lost = phi * pe_mills(-t.h) + second;
        g.lost_error = WITHIN * U * g.lost;
        g.value = SCALE - g.lost;
        g.error = U + g.lost_error / g.value;
    } else {
        g.value = phi * pe_mills_difference(t.h, q->mu.h);
        g.error = BEYOND * U;
    }
    if (g.value > 0.0) g.rate = second / g.value;
    return g;
}

/* Whether epsilon is proven to be at least the largest loss. */
static int beyond_largest(const pe_step *q, double epsilon) {
    return q->order == PE_ADD && !q->plain && pe_dd_add_d(q->floor, epsilon).h > 0x1p-103 * fabs(q->floor.h);
}

/* H(A||B) at e^epsilon for epsilon >= 0; rate by epsilon. */
static profile profile_at(const pe_step *q, double epsilon) {
    const profile none = {0.0, 0.0, 0.0, INFINITY, INFINITY};
    double weight = 1.0, weight_error = 0.0, s_error, weight_rate = 0.0, s_rate = 1.0;
    pe_dd s;
    if (q->plain) {
        s = pe_dd_make(epsilon, 0.0);
        s_error = 0.0;
    } else if (q->order == PE_ADD && epsilon > 0.0) { /* at 0 both orders agree */
        const pe_dd y = pe_dd_add_d(q->floor, epsilon); /* epsilon minus the largest loss */
        if (!(y.h < 0.0)) { /* at or beyond the largest loss, or too near to it to tell */
            profile end = none;
            end.error = beyond_largest(q, epsilon) ? 0.0 : INFINITY;
            return end;
        }
        weight = -pe_d_expm1(y.h);
        weight_error = 6.0 * U + 0x1p-103 * fabs(q->floor.h / y.h);
        weight_rate = pe_d_exp(epsilon) * q->rest.h / weight;
        s_rate = 1.0 + weight_rate;
        if (epsilon < ORDINARY) {
            s = pe_dd_make(pe_d_log1p(pe_d_expm1(epsilon) / weight), 0.0);
            s_error = s.h * (10.0 * U + weight_error);
        } else {
            const double odds = pe_d_log(weight);
            s = pe_dd_add(pe_two_sum(epsilon, -odds), q->log_p);
            s_error = weight_error + 4.0 * U * fabs(odds) + U;
        }
    } else {
        weight = q->p.h;
        weight_error = U;
        if (epsilon < ORDINARY) {
            const double above = pe_d_expm1(epsilon), odds = above / q->p.h;
            s_rate = (above + 1.0) / (above + q->p.h);
            if (odds < 1e300) {
                s = pe_dd_make(pe_d_log1p(odds), 0.0);
                s_error = 12.0 * U * s.h;
            } else {
                s = pe_dd_add_d(minus(q->log_p), pe_d_log(above));
                s_error = 8.0 * U * (1.0 + fabs(q->log_p.h));
            }
        } else {
            const double part = -q->rest.h * pe_d_exp(-epsilon);
            s = pe_dd_add_d(pe_dd_add(pe_dd_make(epsilon, 0.0), minus(q->log_p)), pe_d_log1p(part));
            s_error = 8.0 * U;
            s_rate = 1.0 / (1.0 + part);
        }
    }
    const pe_dd rise = pe_dd_add(s, minus(q->half_square));
    if (rise.h > FAR * q->mu.h) return none;
    s_error += 0x1p-98 * (s.h + q->half_square.h);
    profile h = gaussian_profile(q, pe_dd_div(rise, q->mu));
    const double moved = 1.01 * s_error * h.rate; /* log G is concave in s: the rate grows slowly */
    h.error += weight_error + 2.0 * U + moved;
    h.lost_error += moved * h.value;
    const int saturated = rise.h + s_error < -FAR * q->mu.h; /* G is 1 within an error of s */
    if (!saturated && !(s_error * (1.0 + h.rate) < 0x1p-10)) h.error = h.lost_error = INFINITY;
    h.value *= weight;
    h.rate = h.rate * s_rate + weight_rate;
    return h;
}

/* ---- bounds ------------------------------------------------------------------------------------- */

static double below(double value, double error) {
    const double bound = value - value * (error + 2.0 * U);
    return bound > 0.0 ? fmax(bound * UNSCALE - SMALLEST, 0.0) : 0.0;
}

static double above(double value, double error, double most) {
    const double bound = value + value * (error + 2.0 * U);
    return bound < SCALE * most ? fmin(bound * UNSCALE + SMALLEST, most) : most;
}

static void put(double *out, double value, double lower, double upper) {
    out[0] = fmin(fmax(value, lower), upper);
    out[1] = lower;
    out[2] = upper;
}

static void one_profile(const pe_step *q, double epsilon, double *out) {
    if (epsilon == INFINITY || beyond_largest(q, epsilon)) {
        put(out, 0.0, 0.0, 0.0);
        return;
    }
    const profile h = profile_at(q, epsilon);
    const double most = q->plain ? 1.0 : fmin(q->p.h + 2.0 * U * q->p.h, 1.0);
    put(out, h.value * UNSCALE, below(h.value, h.error), above(h.value, h.error, most));
}

/* ---- epsilon ------------------------------------------------------------------------------------ */

/* Estimate by Newton's method in s on the log of the profile, which is concave, from where the profile is too small. */
static double rough_epsilon(const pe_step *q, double delta) {
    const double log_target = pe_d_log(delta), log_p = q->plain ? 0.0 : q->log_p.h;
    const double quantile = -pe_ndtri_exp(fmin(log_target - log_p, -1e-17));
    double s = q->half_square.h + q->mu.h * quantile;
    if (!(s > 0.0)) s = 1e-3 * q->half_square.h;
    for (int it = 0; it < 60; it++) {
        const pe_dd t = pe_dd_div(pe_dd_add_d(minus(q->half_square), s), q->mu);
        const profile g = gaussian_profile(q, t);
        double value = pe_d_log(g.value * UNSCALE) + log_p, rate = g.rate;
        if (q->order == PE_ADD && !q->plain) {
            const double mixed = q->p.h * pe_d_exp(-s) + q->rest.h;
            value -= s + pe_d_log(mixed);
            rate += q->rest.h / mixed;
        }
        const double step = (value - log_target) / rate;
        if (!(fabs(step) > 1e-15 * s)) break;
        s = s + step > 0.0 ? s + step : 0.1 * s;
    }
    if (q->plain) return s;
    if (q->order == PE_ADD) return fmin(-pe_d_log1p(q->p.h * pe_d_expm1(-s)), -q->floor.h);
    return s < 600.0 ? pe_d_log1p(q->p.h * pe_d_expm1(s)) : s + q->log_p.h;
}

typedef struct {
    double value, error; /* times 2^200 */
} difference;

/* H(epsilon) - delta from a profile at epsilon, with the bound of its error. */
static difference profile_difference(const pe_step *q, const profile *h, double epsilon, double delta) {
    difference d;
    d.value = h->value - delta * SCALE;
    d.error = h->value * (h->error + 2.0 * U) + 2.0 * U * fabs(d.value);
    if (q->plain || q->order != PE_ADD || epsilon == 0.0) { /* (p - delta) - p lost, if more accurate */
        const pe_dd rest = pe_dd_add_d(q->p, -delta);
        const double lost = q->p.h * h->lost, other = rest.h * SCALE - lost + rest.l * SCALE;
        const double other_error =
            q->p.h * h->lost_error + 4.0 * U * (lost + fabs(other)) +
            (4.0 * U * fabs(rest.l) + (q->p.l != 0.0 ? 0x1p-105 * q->p.h : 0.0)) * SCALE;
        if (other_error < d.error) {
            d.value = other;
            d.error = other_error;
        }
    }
    return d;
}

/* 1 if H(epsilon) is proven to be at least delta, -1 if at most, else 0. */
static int compare(const pe_step *q, double epsilon, double delta) {
    if (delta > q->p.h || (delta == q->p.h && q->p.l == 0.0)) return -1; /* profiles are below p */
    const profile h = profile_at(q, epsilon);
    if (h.value == 0.0 && h.error == 0.0) return -1; /* below all doubles */
    const difference d = profile_difference(q, &h, epsilon, delta);
    return d.value >= d.error ? 1 : d.value <= -d.error ? -1 : 0;
}

static void one_epsilon(const pe_step *q, double delta, double *out) {
    const int bounded = q->order == PE_ADD && !q->plain; /* whether there is a largest loss */
    const double largest = bounded ? -q->floor.h : INFINITY;
    if (delta == 0.0 || delta == 1.0) {
        const double end = delta == 1.0 ? 0.0 : largest;
        const int open = bounded && delta == 0.0;
        put(out, end, open ? nextafter(end, 0.0) : end, open ? nextafter(end, INFINITY) : end);
        return;
    }
    if (compare(q, 0.0, delta) < 0) {
        put(out, 0.0, 0.0, 0.0);
        return;
    }
    double at = rough_epsilon(q, delta);
    profile h = profile_at(q, at);
    double known = h.error;
    for (int it = 0; it < 3 && h.value > 0.0 && h.rate > 0.0; it++) {
        const difference d = profile_difference(q, &h, at, delta);
        const double moved = at + pe_d_log1p(d.value / (delta * SCALE)) / h.rate;
        known = d.error / (delta * SCALE);
        if (!(moved >= 0.0 && moved <= largest)) break;
        at = moved;
        h = profile_at(q, at);
    }
    /* the bounds are proven by comparing profiles at both ends, whatever the estimate */
    double ends[2] = {0.0, bounded ? nextafter(largest, INFINITY) : INFINITY};
    const double first = 1.5 * known / h.rate + 2.0 * U * at;
    for (int side = 0; side < 2; side++) {
        double reach = isfinite(first) ? first : 4.0 * U * at;
        for (int it = 0; it < 50; it++, reach *= it < 20 ? 2.0 : 1e12) {
            const double end =
                side ? fmax(at + reach, nextafter(at, INFINITY)) : fmin(at - reach, nextafter(at, -INFINITY));
            if (!(end > 0.0 && end < ends[1])) break;
            if (compare(q, end, delta) != (side ? -1 : 1)) continue;
            ends[side] = end;
            break;
        }
    }
    put(out, at, ends[0], ends[1]);
}

/* ---- the trade-off function ----------------------------------------------------------------------- */

typedef struct {
    pe_dd at, low, high;
} threshold;

/* Phi(x) - level with a bound of its error. */
static residual tail_residual(pe_dd x, double level) {
    const double phi = density(x), small = small_tail(x, phi);
    const double value = x.h > 0.0 ? SCALE - small : small;
    const residual f = {value - level * SCALE, (TAIL + 1.0) * U * value, phi};
    return f;
}

static residual residual_at(const pe_step *q, pe_dd x, double alpha, int mixed) {
    return mixed ? mixture_residual(q, x, alpha) : tail_residual(x, alpha);
}

/* Widens [at, at] until the signs of the residual at both ends are proven. */
static threshold checked(const pe_step *q, pe_dd at, double alpha, int mixed) {
    const residual here = residual_at(q, at, alpha, mixed);
    const double first = 1.5 * (here.error + fabs(here.value)) / here.slope;
    const double most = FAR + fabs(at.h) + (mixed ? q->mu.h : 0.0);
    threshold x = {at, pe_dd_make(-most, 0.0), pe_dd_make(most, 0.0)};
    for (int side = -1; side <= 1; side += 2) {
        double reach = first < 1.0 ? first + U * U : 1.0;
        for (; reach < most; reach *= 2.0) {
            const pe_dd end = pe_dd_add_d(at, side * reach);
            const residual f = residual_at(q, end, alpha, mixed);
            if (side * f.value < f.error) continue;
            if (side < 0) x.low = end;
            else x.high = end;
            break;
        }
    }
    return x;
}

/* x <= 0 with Phi(x) = level, level in (0, 1/2], between checked bounds. */
static threshold solve_tail(const pe_step *q, double level) {
    pe_dd x = pe_dd_make(fmin(pe_ndtri(level), 0.0), 0.0);
    for (int it = 0; it < 2; it++) {
        const residual f = tail_residual(x, level);
        x = pe_dd_add_d(x, -f.value / f.slope);
        if (x.h > 0.0) x = pe_dd_make(0.0, 0.0);
    }
    return checked(q, x, level, 0);
}

/* x with F(x) = alpha for the mixture, between checked bounds: Newton's method inside a bracket. */
static threshold solve_mixture(const pe_step *q, double alpha) {
    /* bracket: F lies between Phi(x - mu) and Phi(x), */
    const int up = alpha > 0.5;
    const double level = up ? 1.0 - alpha : alpha, z = (up ? -1.0 : 1.0) * pe_ndtri(level);
    double low = z - 1e-12 * (1.0 + fabs(z)), high = z + q->mu.h + 1e-12 * (1.0 + fabs(z));
    /* and between the larger term of its side and twice that; these ends are nearer, but rounded more where one term is
     * nearly the level, so their signs are checked */
    const double shares[] = {level / q->rest.h, level / q->p.h};
    for (int k = 0; k < 4; k++) {
        const double share = shares[k % 2] * (k < 2 ? 1.0 : 0.5);
        if (!(share < 1.0)) continue;
        const double end = (k % 2 ? q->mu.h : 0.0) + (up ? -1.0 : 1.0) * pe_ndtri(share);
        if (!(end > low && end < high)) continue;
        if (mixture_residual(q, pe_dd_make(end, 0.0), alpha).value < 0.0) low = end;
        else high = end;
    }
    pe_dd x = pe_dd_make(0.5 * (low + high), 0.0);
    double before = INFINITY; /* length of the last step */
    for (int it = 0; it < 200; it++) {
        const residual f = mixture_residual(q, x, alpha);
        const double ratio = f.value / (level * SCALE);
        if (f.value < 0.0) low = x.h;
        else high = x.h;
        /* far from the root Newton's step for the logarithm of the tail, which is nearly linear */
        const double signed_ratio = up ? -ratio : ratio;
        double step = -f.value / f.slope;
        if (fabs(ratio) > 1e-3 && signed_ratio > -1.0)
            step *= pe_d_log1p(signed_ratio) / signed_ratio * (1.0 + signed_ratio);
        const int last = fabs(step) <= 1e-12 * (1.0 + fabs(x.h));
        const pe_dd moved = pe_dd_add_d(x, step);
        if (last || !(high - low > 4.0 * U * fabs(low))) {
            if (last) x = moved;
            break;
        }
        /* halve where steps do not shrink fast, as between two tiny tails */
        const int fast = fabs(step) < 0.5 * before && moved.h > low && moved.h < high;
        const pe_dd next = fast ? moved : pe_dd_make(0.5 * (low + high), 0.0);
        before = fabs(next.h - x.h);
        x = next;
    }
    return checked(q, x, alpha, 1);
}

/* log(r + p e^s) at the threshold x: the loss of the unreversed pair */
static double loss_at(const pe_step *q, pe_dd x) {
    const pe_dd s = pe_dd_add(pe_dd_mul(q->mu, x), minus(q->half_square));
    if (q->plain) return s.h;
    if (s.h > 600.0) return s.h + q->log_p.h;
    const double r = q->p.h * pe_d_expm1(s.h);
    return r < -0.5 ? pe_d_log(q->rest.h + q->p.h * pe_d_exp(s.h)) : pe_d_log1p(r);
}

/* T(P, Q): alpha = Phi(-x). */
static void trade_off_add(const pe_step *q, double alpha, double *out) {
    /* above 1/2 solve 1 - alpha = Phi(x), as 1 - alpha is exact */
    const int high = alpha > 0.5;
    const double rest = 1.0 - alpha;
    const threshold y = solve_tail(q, high ? rest : alpha);
    /* y is x if high, else -x */
    const pe_dd at = high ? y.at : minus(y.at);
    const pe_dd least = high ? y.low : minus(y.high), most = high ? y.high : minus(y.low);
    const double stay_above = q->rest.h * alpha * SCALE, stay_below = q->rest.h * rest * SCALE;
    const double error = MIXED * U;
    const pe_dd mu = minus(q->mu);
    double values[2][3];
    const pe_dd places[3] = {at, least, most};
    for (int k = 0; k < 3; k++) {
        const pe_dd moved = pe_dd_add(places[k], mu);
        values[0][k] = stay_below + q->p.h * tail(minus(moved)); /* beta */
        values[1][k] = stay_above + q->p.h * tail(moved); /* gamma */
    }
    put(out, values[0][0] * UNSCALE, below(values[0][1], error), above(values[0][2], error, 1.0));
    put(out + 3, values[1][0] * UNSCALE, below(values[1][2], error), above(values[1][1], error, 1.0));
    out[6] = loss_at(q, at);
}

/* T(Q, P): alpha is the mixture's mass below x. */
static void trade_off_remove(const pe_step *q, double alpha, double *out) {
    const threshold x = solve_mixture(q, alpha);
    const double error = TAIL * U;
    put(out, tail(x.at) * UNSCALE, below(tail(x.high), error), above(tail(x.low), error, 1.0));
    put(out + 3, tail(minus(x.at)) * UNSCALE, below(tail(minus(x.low)), error),
        above(tail(minus(x.high)), error, 1.0));
    out[6] = -loss_at(q, x.at);
}

/* The line of slope -1 that touches both curves: gamma = alpha + H(0). */
static void tangent(const pe_step *q, double alpha, double *out) {
    const pe_dd middle = pe_dd_scale(q->mu, 0.5);
    const profile h = profile_at(q, 0.0);
    const double gamma = h.value + alpha * SCALE;
    put(out + 3, gamma * UNSCALE, below(gamma, h.error + U), above(gamma, h.error + U, 1.0));
    if (q->mu.h > 1.0) { /* 1 - alpha - p, exactly, plus p - H(0) */
        const pe_dd left = pe_two_sum(q->rest.h, -alpha);
        const double first = (left.h + (left.l + q->rest.l)) * SCALE;
        const double second = 2.0 * q->p.h * tail(middle), beta = fmax(first + second, 0.0);
        const double error = 3.0 * U * fabs(first) + MIXED * U * second + 0x1p-105 * q->inexact * SCALE;
        const double relative = beta > 0.0 ? error / beta : INFINITY;
        put(out, beta * UNSCALE, below(beta, relative), above(fmax(beta, error), relative, 1.0));
        if (!(beta > error)) out[1] = 0.0;
    } else {
        const double beta = (1.0 - alpha) * SCALE - h.value;
        const double error = h.error * h.value / beta + U * SCALE / beta;
        put(out, beta * UNSCALE, below(beta, error), above(beta, error, 1.0));
    }
    out[6] = 0.0;
}

/* Lower convex hull of both orders: T of PE_ADD up to the point (a, b) of slope -1, the tangent there to
 * (b, a), and T of PE_REMOVE beyond (docs/theory/closed_form). */
static void trade_off_hull(const pe_step *q, double alpha, double *out) {
    const pe_dd middle = pe_dd_scale(q->mu, 0.5);
    const double level = alpha * SCALE, a = tail(middle);
    const double b = q->rest.h * tail(minus(middle)) + q->p.h * a;
    const double slack_a = a * (TAIL + 2.0) * U, slack_b = b * (MIXED + 2.0) * U;
    const int left = level <= a + slack_a, right = level >= b - slack_b;
    double curve[7];
    if (left) trade_off_add(q, alpha, curve);
    else if (right) trade_off_remove(q, alpha, curve);
    if ((left && level < a - slack_a) || (right && level > b + slack_b)) {
        for (int k = 0; k < 7; k++) out[k] = curve[k];
        return;
    }
    tangent(q, alpha, out);
    if (left ||
        right) { /* too near to the point to tell: bounds of both, as the tangent lies below the curve */
        out[2] = fmax(out[2], curve[2]);
        out[4] = fmin(out[4], curve[4]);
    }
}

static void one_trade_off(const pe_step *q, double alpha, double *out) {
    if (alpha == 0.0 || alpha == 1.0) {
        put(out, 1.0 - alpha, 1.0 - alpha, 1.0 - alpha);
        put(out + 3, alpha, alpha, alpha);
        out[6] = alpha == 0.0 ? INFINITY : -INFINITY;
        return;
    }
    if (q->plain || q->order == PE_ADD) trade_off_add(q, alpha, out);
    else if (q->order == PE_REMOVE) trade_off_remove(q, alpha, out);
    else trade_off_hull(q, alpha, out);
    /* beta <= 1 - alpha and gamma >= alpha for every trade-off function */
    out[0] = fmax(fmin(out[0], 1.0 - alpha), out[1]);
    for (int k = 3; k < 6; k++) out[k] = fmax(out[k], alpha);
}

void pe_step_trade_off(const pe_step *step, size_t n, const double *alpha, double *out) {
    for (size_t i = 0; i < n; ++i) one_trade_off(step, alpha[i], out + 7 * i);
}

void pe_step_profile(const pe_step *step, size_t n, const double *epsilon, double *out) {
    for (size_t i = 0; i < n; ++i) one_profile(step, epsilon[i], out + 3 * i);
}

void pe_step_epsilon(const pe_step *step, size_t n, const double *delta, double *out) {
    for (size_t i = 0; i < n; ++i) one_epsilon(step, delta[i], out + 3 * i);
}
