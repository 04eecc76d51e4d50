#include <math.h>

#include "shifted.h"

/* What a proof needs of one step beside its values: bounds beyond a t, and of the real transform.
 * docs/theory/certified.md. */

static const double PI = 3.14159265358979323846;
static const double MAX_NODES = 40000;
static const double OUT = 1.0 + 1e-8;
static const double WIDEST = 0.5; /* spacing in z */

typedef struct {
    double modulus, integral;
} envelope;

static const envelope NONE = {INFINITY, INFINITY};

/* Half the height of the strip about Im z = y, with the widest spacing of a sum that misses e^-digits. */
static double strip(const pe_shifted *s, double y, double digits, double *half, double *size) {
    const double most = fmin(fmin(0.499 * PI / s->law.mu, 0.9 * (PI / s->law.mu - y)), 3.0);
    double best = 0.0;
    for (double a = most; a > 0.02 * most; a *= 0.5) {
        const double grown = exp(0.5 * (a * a + y * y)), wide = s->law.mu * (a + y);
        const double side = log(2.0 * a * grown) + pe_tilted_log(&s->law, s->law.q, s->x_high) -
                            (double)s->log_m + pe_tilted_log_growth(&s->law, s->law.q, wide, s->x_high);
        if (side > -digits) continue;
        const double one = s->law.q >= 0.0
                               ? grown
                               : grown * pe_tilted_below(&s->law, s->law.q, 0, wide, s->x_low,
                                                         s->x_high + 1.5 * WIDEST, (double)s->log_m);
        const double h = 2.0 * PI * a / (log(1.0 + 2.0 * one) + digits);
        if (h > best) {
            best = h;
            *half = a;
            *size = one;
        }
    }
    return fmin(best, WIDEST);
}

/* Sums of phi |W|^q e^{-t arg W} on the line Im z = y, and of its integral over larger t; beyond the edge of
 * the window the path goes back to the real line. */
static envelope envelope_at(const pe_shifted *s, double t, double y, double digits) {
    const pe_tilted *law = &s->law;
    const double q = law->q, power = q + 1.0, mu = law->mu, log_m = (double)s->log_m;
    const double theta = mu * y, co = cos(theta), si = sin(theta);
    double a = 0.0, size = INFINITY;
    const double h = strip(s, y, digits, &a, &size);
    if (!(h > 0.0)) return NONE;
    const double x_low = fmin(s->x_low, -mu) - 2.0, last = ceil(s->x_high / h), edge = (last + 0.5) * h;
    if (!((edge - x_low) / h < MAX_NODES) || edge > s->x_end ||
        !(isinf(s->x_end) || pe_tilted_is_valley(law, edge, s->x_end)))
        return NONE;
    double sum = 0.0, over = 0.0;
    for (double j = ceil(x_low / h); j <= last; j++) {
        const double x = j * h, e = mu * (x - 0.5 * mu);
        if (e > 700.0) return NONE;
        const double grown = exp(e), rest = (1.0 - law->p) + law->p * grown * co;
        const double up = law->p * grown * si, above = law->p * (grown * co - 1.0);
        const double square = above * (2.0 + above) + up * up;
        const double log_w = 0.5 * (square > -0.5 ? log1p(square) : log(rest * rest + up * up));
        const double angle = atan2(up, rest);
        const double base = 0.5 * (y * y - x * x) + q * log_w - log_m - t * angle;
        sum += exp(base);
        over += exp(base + log_w - e);
    }
    const double scale = 0.3989422804014327 * h * (1.0 + 1e-10);
    const double waves = expm1(2.0 * PI * a / h), wide = mu * (a + y), grown = exp(0.5 * (a * a + y * y));
    const double lifted = exp(0.5 * y * y), shift = mu * (edge - 0.5 * mu);
    /* edges of the sum, and of the path that goes down there */
    const double bell = pe_tilted_log(law, q, edge) - log_m;
    const double side = 2.0 * a * grown * exp(bell + pe_tilted_log_growth(law, q, wide, edge));
    const double down = y * lifted * exp(bell + pe_tilted_log_growth(law, q, theta, edge));
    const double side_over =
        2.0 * a * grown *
        exp(pe_tilted_log(law, power, edge) - shift - log_m + pe_tilted_log_growth(law, power, wide, edge));
    const double loss_slope = pe_tilted_loss_slope(law, edge);
    /* both parts beyond the edge fall as 1/t */
    const double falls =
        down / (y * loss_slope * (theta > 1e-9 ? si / theta : 1.0)) + 6.0 * s->edge / loss_slope;
    /* nodes below the window: a sum is at most the integral and one term */
    const double below =
        lifted * (1.0 + h * (fabs(x_low) + fabs(q) * mu)) *
        exp(pe_tilted_beyond(law, q, x_low, 0) - log_m + pe_tilted_log_growth_below(law, q, theta, x_low));
    envelope found;
    found.modulus = (sum * scale + 2.0 * size / waves + side + below + falls / t) * OUT;
    const double size_over = grown * pe_tilted_below(law, power, 1, wide, x_low, edge, log_m);
    const double rate = -x_low - mu + fmin(power, 0.0) * pe_tilted_loss_slope(law, x_low);
    const double below_over = rate > 0.0
                                  ? lifted * (1.0 / rate + h) *
                                        exp(pe_tilted_log(law, power, x_low) - mu * (x_low - 0.5 * mu) -
                                            log_m + pe_tilted_log_growth_below(law, power, theta, x_low))
                                  : INFINITY;
    found.integral =
        ((over * scale + 2.0 * size_over / waves + side_over + below_over) / (law->p * si) + falls) * OUT;
    return found;
}

void pe_shifted_envelope(const pe_shifted *s, double t, double slope, double digits, double *bound,
                         double *integral) {
    const double most = fmin(12.0, 0.85 * PI / s->law.mu), first = fmin(t * slope, most);
    envelope best = envelope_at(s, t, first, digits);
    for (int up = 0; up < 2; up++) {
        double y = first;
        for (int i = 0; i < 9; i++) {
            y = up ? fmin(y * 1.5, most) : y / 1.5;
            const envelope next = envelope_at(s, t, y, digits);
            const int better = next.modulus < best.modulus;
            if (better) best = next;
            if ((!better && i) || y == most) break;
        }
    }
    *bound = best.modulus;
    *integral = best.integral;
}

/* log of what the edge of the window adds to a sum over the strip of half height a, in units of e^unit */
static double edge_log(const pe_tilted *t, double a, double edge, double unit) {
    return log(2.0 * a) + 0.5 * a * a + pe_tilted_log(t, t->q, edge) +
           pe_tilted_log_growth(t, t->q, t->mu * a, edge) - unit;
}

double pe_shifted_log_above(double noise, double p, double steps, double q, double cut) {
    const pe_tilted t = {.mu = 1.0 / noise, .p = p, .q = q};
    const double digits = log(1e6 * steps);
    pe_window w;
    if (!pe_tilted_window(&t, digits, cut, cut, &w)) return INFINITY;
    double h = 0.0, miss = INFINITY, half = 0.0;
    for (double a = fmin(0.98 * PI / t.mu, 6.0); a > 0.01; a *= 0.7) {
        const double grown = exp(0.5 * a * a);
        if (isinf(w.end) && edge_log(&t, a, w.high, w.log_total) > -digits) continue;
        const double size = 2.0 * (q >= 0.0 ? 1.1 * grown
                                            : grown * pe_tilted_below(&t, q, 0, t.mu * a, w.low,
                                                                      w.high + 1.5 * WIDEST, w.log_total));
        const double next = fmin(2.0 * PI * a / (log(1.0 + size) + digits), WIDEST);
        if (next > h) {
            h = next;
            half = a;
            miss = size / expm1(2.0 * PI * a / h);
        }
    }
    if (!(h > 0.0) || !((w.high - w.low) / h < MAX_NODES)) return INFINITY;
    double last = ceil(w.high / h), edge = (last + 0.5) * h;
    while (edge > cut && isfinite(w.end)) {
        last -= 1.0;
        edge -= h;
    }
    double sum = 0.0;
    for (double j = ceil(w.low / h); j <= last; j++) sum += exp(pe_tilted_log(&t, q, j * h) - w.log_total);
    sum *= h;
    if (!(sum < 1.1)) return INFINITY;
    double beyond = exp(edge_log(&t, half, edge, w.log_total));
    beyond +=
        exp(pe_tilted_beyond(&t, q, w.low, 0) - w.log_total) * (1.0 + h * (fabs(w.low) + fabs(q) * t.mu));
    if (isinf(w.end)) beyond += exp(pe_tilted_beyond(&t, q, edge, 1) - w.log_total);
    else if (edge < cut) beyond += exp(pe_tilted_integral(&t, q, 0, 0.0, edge, cut) - w.log_total);
    const double reach = fabs(q) * t.mu * fmax(fabs(w.low), edge) + fabs(w.log_total);
    return w.log_total + log(sum + miss + beyond) + 1e-14 * (10.0 + reach);
}

void pe_shifted_removed(const pe_shifted *s, double *plain, double *mixture) {
    const double x = s->cut, root = 0.70710678118654752440;
    /* where erfc underflows, the smallest number does */
    const double first = fmax(0.5 * erfc(x * root) * OUT, 5e-324);
    const double second = fmax(0.5 * erfc((x - s->law.mu) * root) * OUT, 5e-324);
    *plain = first;
    *mixture = (1.0 - s->law.p) * first + s->law.p * second;
}
