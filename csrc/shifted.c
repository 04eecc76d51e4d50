#include "shifted.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "simd.h"
#include "vecmath.h"

/* docs/theory/certified.md proves what stands here. */

#define U 0x1p-53

static const double PI = 3.14159265358979323846;
static const pe_wide HALF_LOG_2PI = 0.918938533204672741780329736405617640L;
static const double MISS = 0x1p-62;   /* what nodes may miss of n log M */
static const double MARGIN = 4.0;     /* of the window, in nats, for the growth on the lines */
static const double HIGHEST = 0.8;    /* of a line: the sums of moduli grow as e^(y^2/2) */
static const double MAX_NODES = 40000;

/* Rounded down to 20 bits: multiples of it by integers below 2^33 are doubles. */
static double short_number(double x) {
    int exponent;
    const double mantissa = frexp(x, &exponent);
    return ldexp(floor(mantissa * 0x1p20), exponent - 20);
}

/* What the edge of the window and what lies beyond it add to the sum of phi R^q on a line, to the sums
 * that centre it included. */
static double outside(const pe_shifted *s, double y, double h) {
    const pe_tilted *t = &s->law;
    const double b = 2.0 * y, x = s->x_high, size = fabs(t->q);
    const double bell = pe_tilted_log(t, 0.0, x), ratio = exp(pe_tilted_log_ratio(t, x));
    const double edge = exp(pe_tilted_log(t, t->q, x) + pe_tilted_log_growth(t, t->q, t->mu * b, x)) +
                        exp(bell) * (1.0 + size * (1.0 + ratio));
    double sum = b * exp(0.5 * b * b) * edge;
    if (isinf(s->x_end)) sum += exp(pe_tilted_beyond(t, t->q, x, 1));
    else sum += (s->x_end - x) * exp(fmax(pe_tilted_log(t, t->q, x), pe_tilted_log(t, t->q, s->x_end)));
    sum += (1.0 + size) * exp(pe_tilted_beyond(t, 0.0, x, 1)) + size * exp(pe_tilted_beyond(t, 1.0, x, 1));
    /* below the window the sums themselves go on, on the line */
    const double low = s->x_low, grown = exp(0.5 * y * y), first = 1.0 + h * (fabs(low) + size * t->mu);
    sum += grown * first *
           (exp(pe_tilted_beyond(t, t->q, low, 0) + pe_tilted_log_growth_below(t, t->q, t->mu * y, low)) +
            (1.0 + 2.0 * size) * exp(pe_tilted_beyond(t, 0.0, low, 0)));
    return sum * (1.0 + 1e-8);
}

/* Bound of the moduli's integrals on the lines 0 and 2y, in units of e^log_total. */
static double on_lines(const pe_shifted *s, double y, double log_total) {
    const pe_tilted *t = &s->law;
    const double b = 2.0 * y, grown = exp(0.5 * b * b);
    const double centring = (1.0 + 2.0 * t->p * fabs(t->q)) * exp(-log_total);
    double line;
    if (t->q >= 0.0) line = 1.1 * grown;
    else line = grown * pe_tilted_below(t, t->q, 0, t->mu * b, s->x_low, s->x_high, log_total);
    return (1.1 + line + (1.0 + grown) * centring) * (1.0 + 1e-8);
}

/* Height and spacing: of the heights y = a, with what the lines 0 and 2 y allow, the one with the
 * widest spacing.  Returns what is missed, relative to e^log_total; x_high becomes the edge. */
static double find_height(pe_shifted *s, const pe_window *w, double target) {
    double best = INFINITY, best_h = 0.0, best_y = 0.0, edge = 0.0;
    const double top = fmin(HIGHEST, 0.495 * PI / s->law.mu);
    s->x_low = w->low;
    for (int i = 0; i < 18; i++) {
        const double y = short_number(top * pow(0.75, i));
        s->x_high = w->high + 1.0; /* the edge lies at most one and a half spacings above the window */
        const double size = on_lines(s, y, w->log_total);
        const double h = short_number(fmin(2.0 * PI * y / log(1.0 + size / target), 0.5));
        if (!(h > best_h)) continue;
        s->x_high = (ceil(w->high / h) + 0.5) * h;
        const double missed = size / expm1(2.0 * PI * y / h) + outside(s, y, h) * exp(-w->log_total);
        if (s->x_high <= s->x_end && missed <= 4.0 * target) {
            best = missed;
            best_h = h;
            best_y = y;
            edge = s->x_high;
        }
    }
    s->h = best_h;
    s->y = best_y;
    s->x_high = edge;
    if (isfinite(s->x_end) && !pe_tilted_is_valley(&s->law, edge, s->x_end)) return INFINITY;
    return best;
}

typedef struct {
    pe_wide re, im;
} wide_complex;

static wide_complex product(wide_complex a, wide_complex b) {
    return (wide_complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* e^z - 1 - z */
static wide_complex exp_remainder(wide_complex z) {
    if (z.re * z.re + z.im * z.im < 0.25L) {
        wide_complex sum = {0.0L, 0.0L};
        pe_wide factorial = 2.432902008176640000e18L; /* 20! */
        for (int k = 20; k >= 2; k--) {
            sum = product(sum, z);
            sum.re += 1.0L / factorial;
            factorial /= k;
        }
        return product(product(z, z), sum);
    }
    const pe_wide e = expl(z.re);
    return (wide_complex){e * cosl(z.im) - 1.0L - z.re, e * sinl(z.im) - z.im};
}

/* log(1 + r) - r, given log(1 + r) */
static wide_complex log_remainder(wide_complex r, wide_complex log_of) {
    if (r.re * r.re + r.im * r.im < 0.01L) {
        wide_complex sum = {0.0L, 0.0L};
        for (int k = 24; k >= 2; k--) {
            sum = product(sum, r);
            sum.re += (k % 2 ? 1.0L : -1.0L) / k;
        }
        return product(product(r, r), sum);
    }
    return (wide_complex){log_of.re - r.re, log_of.im - r.im};
}

typedef struct {
    wide_complex ratio, log_of; /* r and log(1 + r) */
} wide_step;

static wide_step step_at(const pe_shifted *s, pe_wide x) {
    const pe_wide theta = s->wide_mu * s->y, e = expl(s->wide_mu * (x - 0.5L * s->wide_mu));
    const pe_wide p = s->law.p, co = cosl(theta), si = sinl(theta);
    wide_step w;
    w.ratio = (wide_complex){p * (e * co - 1.0L), p * e * si};
    const pe_wide rest = (1.0L - p) + p * e * co;
    const pe_wide above = w.ratio.re * (2.0L + w.ratio.re) + w.ratio.im * w.ratio.im;
    w.log_of.re = above > -0.5L ? 0.5L * log1pl(above) : 0.5L * logl(rest * rest + w.ratio.im * w.ratio.im);
    w.log_of.im = atan2l(w.ratio.im, rest);
    return w;
}

/* The nodes, from long double to double once; sums that the power n magnifies stay in long double. */
static int fill(pe_shifted *s) {
    const pe_wide q = s->law.q, y = s->y, eps = LDBL_EPSILON;
    const double first = ceil(s->x_low / s->h);
    const size_t count = (size_t)(floor(s->x_high / s->h) - first) + 1;
    s->m = (count + PE_LANES - 1) / PE_LANES * PE_LANES;
    s->weight_re = calloc(6 * s->m, sizeof(double));
    wide_complex *bell = malloc(count * sizeof *bell);
    wide_step *steps = malloc(count * sizeof *steps);
    if (!s->weight_re || !bell || !steps) {
        free(bell);
        free(steps);
        return -1;
    }
    s->weight_im = s->weight_re + s->m;
    s->loss = s->weight_re + 2 * s->m;
    s->angle = s->weight_re + 3 * s->m;
    s->size = s->weight_re + 4 * s->m;
    s->reach = s->weight_re + 5 * s->m;
    wide_complex sum = {0.0L, 0.0L}, mean = {0.0L, 0.0L};
    pe_wide error = 0.0L, mean_error = 0.0L, largest = 0.0L;
    for (size_t j = 0; j < count; j++) {
        const pe_wide x = (pe_wide)(first + (double)j) * (pe_wide)s->h;
        const pe_wide size = expl(0.5L * (y * y - x * x) - HALF_LOG_2PI) * s->h;
        bell[j] = (wide_complex){size * cosl(x * y), -size * sinl(x * y)};
        steps[j] = step_at(s, x);
        const wide_complex power = {q * steps[j].log_of.re, q * steps[j].log_of.im};
        largest = fmaxl(largest, fabsl(power.re));
        if (!(largest < 11000.0L)) break;
        const wide_complex tail = exp_remainder(power);
        const wide_complex log_tail = log_remainder(steps[j].ratio, steps[j].log_of);
        const wide_complex term = {tail.re + q * log_tail.re, tail.im + q * log_tail.im};
        const wide_complex part = product(bell[j], term);
        sum.re += part.re;
        sum.im += part.im;
        /* relative errors of bell (x y, x^2/2), power and the terms; `far` where terms cancel */
        const pe_wide reach = fabsl(power.re) + fabsl(power.im);
        const pe_wide ratio = fabsl(steps[j].ratio.re) + fabsl(steps[j].ratio.im);
        const pe_wide p = s->law.p, size_q = fabsl(q);
        const pe_wide own =
            reach < 0.3L ? reach * (reach + size_q * p) : (1.0L + reach) * (1.0L + expl(power.re));
        const pe_wide centre = ratio < 0.07L ? size_q * ratio * (ratio + p) : size_q * ratio + reach;
        error += size * (own + centre) * (40.0L + 4.0L * x * x + 4.0L * fabsl(x * y) + (pe_wide)count);
    }
    int status = largest < 11000.0L && 1.0L + sum.re > 0.0L ? 0 : 1;
    if (!status) {
        s->log_m = log1pl(sum.re);
        const pe_wide scale = 1.0L / (1.0L + sum.re);
        s->log_m_error = (double)(2.0L * eps * error * scale + 4.0L * eps * fabsl(s->log_m));
        for (size_t j = 0; j < count; j++) {
            const pe_wide l = steps[j].log_of.re, v = steps[j].log_of.im;
            const pe_wide size = expl(q * l - s->log_m);
            const wide_complex turn = {size * cosl(q * v), size * sinl(q * v)};
            const wide_complex weight = product(bell[j], turn);
            const wide_complex part = product(weight, steps[j].log_of);
            mean.re += part.re;
            mean.im += part.im;
            s->weight_re[j] = (double)weight.re;
            s->weight_im[j] = (double)weight.im;
            s->loss[j] = (double)l;
            s->angle[j] = (double)v;
            s->size[j] = hypot(s->weight_re[j], s->weight_im[j]);
            s->reach[j] = hypot(s->loss[j], s->angle[j]);
            s->longest = fmax(s->longest, s->reach[j]);
            const pe_wide x = (pe_wide)(first + (double)j) * (pe_wide)s->h;
            mean_error += (pe_wide)(s->size[j] * s->reach[j]) *
                          (60.0L + 4.0L * x * x + 8.0L * fabsl(q) * (fabsl(l) + v) + (pe_wide)count);
        }
        s->mean_re = (double)mean.re;
        s->mean_im = (double)mean.im;
        s->mean_error = (double)(2.0L * eps * mean_error) + U * (fabs(s->mean_re) + fabs(s->mean_im));
    }
    free(bell);
    free(steps);
    return status;
}

int pe_shifted_new(pe_shifted *s, double noise, double p, double steps, double q, double limit) {
    *s = (pe_shifted){.steps = steps, .law = {.p = p, .q = q, .mu = 1.0 / noise}};
    s->wide_mu = 1.0L / (pe_wide)noise;
    const double target = MISS / steps;
    pe_window w;
    if (!pe_tilted_window(&s->law, -log(target) + MARGIN, limit, INFINITY, &w)) return 1;
    s->x_end = w.end;
    const double missed = find_height(s, &w, target);
    s->cut = isinf(w.end) ? fmax(limit, s->x_high + 1.0) : w.end; /* sums may end a little further out */
    if (!(missed <= 4.0 * target) || !((s->x_high - s->x_low) / s->h < MAX_NODES)) return 1;
    const int status = fill(s);
    if (status) return status;
    /* log_total was an estimate: on_lines allows for 1.1 of it, and the rest is relative to the sum */
    if (!((double)s->log_m <= w.log_total + 0.09)) {
        pe_shifted_free(s);
        return 1;
    }
    s->slack = missed * exp(w.log_total - (double)s->log_m) * (1.0 + 1e-6);
    if (!(s->slack <= 16.0 * target)) {
        pe_shifted_free(s);
        return 1;
    }
    s->log_m_error += 2.0 * s->slack;
    s->edge = pe_tilted_log(&s->law, q, s->x_high);
    if (!isinf(s->x_end)) s->edge = fmax(s->edge, pe_tilted_log(&s->law, q, s->x_end));
    else if (q > 1.0) /* a mode far out that has no weight */
        s->edge = fmax(s->edge, pe_tilted_beyond_mode(&s->law, q, s->x_high));
    s->edge = exp(s->edge - (double)s->log_m);
    return 0;
}

void pe_shifted_free(pe_shifted *s) {
    free(s->weight_re);
    s->weight_re = NULL;
}

/* ---- values for t ------------------------------------------------------------------------------ */

/* e^z - 1 - z for Re z <= 0 */
static inline void remainder_of(double zr, double zi, double *er, double *ei) {
    static const double C[] = {
        1.0 / 2.0,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5040.0,
        1.0 / 40320.0,
        1.0 / 362880.0,
        1.0 / 3628800.0,
        1.0 / 39916800.0,
        1.0 / 479001600.0,
        1.0 / 6227020800.0,
        1.0 / 87178291200.0,
        1.0 / 1307674368000.0,
        1.0 / 20922789888000.0,
        1.0 / 355687428096000.0,
        1.0 / 6402373705728000.0,
    };
    const double near = zr * zr + zi * zi < 1.0 ? 1.0 : 0.0, r = near * zr, i = near * zi;
    double sr = C[16], si = 0.0;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16
#endif
    for (int k = 15; k >= 0; k--) {
        const double next = sr * r - si * i + C[k];
        si = sr * i + si * r;
        sr = next;
    }
    const double qr = r * r - i * i, qi = 2.0 * r * i;
    double cm1, smx;
    pe_vcosm1_sinmx(zi, &cm1, &smx);
    const double e = pe_vexp(zr), far_r = (e * (1.0 + cm1) - 1.0) - zr, far_i = e * (smx + zi) - zi;
    *er = near * (qr * sr - qi * si) + (1.0 - near) * far_r;
    *ei = near * (qr * si + qi * sr) + (1.0 - near) * far_i;
}

/* Sums of weight (e^{i t log W} - 1 - i t log W) at a run of t. */
PE_CLONES static void centred_run(const pe_shifted *s, double start, double ht, double *re, double *im) {
    double c[PE_SHIFTED_RUN][PE_LANES] = {{0}}, d[PE_SHIFTED_RUN][PE_LANES] = {{0}};
    for (size_t j = 0; j < s->m; j += PE_LANES) {
        for (int u = 0; u < PE_LANES; u++) {
            const double ar = s->weight_re[j + u], ai = s->weight_im[j + u];
            const double zr = -s->angle[j + u], zi = s->loss[j + u];
            double er, ei, fr, fi;
            remainder_of(start * zr, start * zi, &er, &ei);
            remainder_of(ht * zr, ht * zi, &fr, &fi);
            const double hr = ht * zr, hi = ht * zi, dr = hr + fr, di = hi + fi, mr = 1.0 + dr;
            const double tr = start * zr, ti = start * zi;
            const double br = fr + (tr * dr - ti * di), bi = fi + (tr * di + ti * dr);
            const double gr = hr * dr - hi * di, gi = hr * di + hi * dr;
            double xr = ar * er - ai * ei, xi = ar * ei + ai * er;
            double qr = ar * br - ai * bi, qi = ar * bi + ai * br;
            const double kr = ar * gr - ai * gi, ki = ar * gi + ai * gr;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16
#endif
            for (int k = 0; k < PE_SHIFTED_RUN; k++) {
                c[k][u] += xr;
                d[k][u] += xi;
                const double next = (xr * mr - xi * di) + qr;
                xi = (xr * di + xi * mr) + qi;
                xr = next;
                qr += kr;
                qi += ki;
            }
        }
    }
    for (int k = 0; k < PE_SHIFTED_RUN; k++) {
        re[k] = pe_lane_sum(c[k]);
        im[k] = pe_lane_sum(d[k]);
    }
}

/* Sums of weight e^{i t log W} at a run of t. */
PE_CLONES static void plain_run(const pe_shifted *s, double start, double ht, double *re, double *im) {
    double c[PE_SHIFTED_RUN][PE_LANES] = {{0}}, d[PE_SHIFTED_RUN][PE_LANES] = {{0}};
    for (size_t j = 0; j < s->m; j += PE_LANES) {
        for (int u = 0; u < PE_LANES; u++) {
            const double ar = s->weight_re[j + u], ai = s->weight_im[j + u];
            const double l = s->loss[j + u], v = s->angle[j + u];
            double cm1, smx, b = start * l, e = pe_vexp(-start * v);
            pe_vcosm1_sinmx(b, &cm1, &smx);
            double co = e * (1.0 + cm1), si = e * (smx + b);
            double xr = ar * co - ai * si, xi = ar * si + ai * co;
            b = ht * l;
            e = pe_vexp(-ht * v);
            pe_vcosm1_sinmx(b, &cm1, &smx);
            co = e * (1.0 + cm1);
            si = e * (smx + b);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16
#endif
            for (int k = 0; k < PE_SHIFTED_RUN; k++) {
                c[k][u] += xr;
                d[k][u] += xi;
                const double next = xr * co - xi * si;
                xi = xr * si + xi * co;
                xr = next;
            }
        }
    }
    for (int k = 0; k < PE_SHIFTED_RUN; k++) {
        re[k] = pe_lane_sum(c[k]);
        im[k] = pe_lane_sum(d[k]);
    }
}

/* Sums of moduli that bound the rounding of both kinds of runs between t = low and t = high. */
PE_CLONES static void moduli(const pe_shifted *s, double low, double high, double ht, double out[3]) {
    double plain[PE_LANES] = {0}, turned[PE_LANES] = {0}, centred[PE_LANES] = {0};
    for (size_t j = 0; j < s->m; j += PE_LANES)
        for (int u = 0; u < PE_LANES; u++) {
            const double b = high * s->reach[j + u], small = 0.5 * b * b, large = 2.0 + b;
            const double e = s->size[j + u] * pe_vexp(-low * s->angle[j + u]);
            plain[u] += e;
            turned[u] += e * b;
            centred[u] +=
                s->size[j + u] * (small < large ? small : large) * (1.0 + 16.0 * ht * s->reach[j + u]);
        }
    out[0] = pe_lane_sum(plain);
    out[1] = pe_lane_sum(turned);
    out[2] = pe_lane_sum(centred);
}

void pe_shifted_values(const pe_shifted *s, size_t first, double ht, double *re, double *im, double *error) {
    /* errors grow with t: within a run they are bounded at these values of k */
    static const size_t EARLY[] = {0, 1, 2, 3, 5, 7, 10, 15}, LATE[] = {7, 15};
    const size_t *ends = first ? LATE : EARLY, parts = first ? 2 : 8;
    const double start = (double)first * ht, depth = (double)s->m / PE_LANES + 8.0;
    const double mean = hypot(s->mean_re, s->mean_im);
    double plain[8], centred[8];
    for (size_t i = 0; i < parts; i++) {
        const double t = (double)(first + ends[i]) * ht;
        const double low = i ? (double)(first + ends[i - 1] + 1) * ht : start;
        double sums[3];
        moduli(s, low, t, ht, sums);
        plain[i] = U * ((161.0 + depth) * sums[0] + 8.0 * sums[1]);
        centred[i] = U * ((200.0 + depth) * sums[2] + 4.0 * t * mean) + t * s->mean_error;
        if (!(t * s->longest < 1e7)) /* the reduction of angles */
            plain[i] = centred[i] = INFINITY;
    }
    const int by_remainder = centred[parts - 1] <= plain[parts - 1];
    (by_remainder ? centred_run : plain_run)(s, start, ht, re, im);
    for (size_t k = 0, i = 0; k < PE_SHIFTED_RUN; k++) {
        const double t = (double)(first + k) * ht;
        if (k > ends[i]) i++;
        re[k] -= by_remainder ? t * s->mean_im : 1.0;
        im[k] += by_remainder ? t * s->mean_re : 0.0;
        error[k] = ((by_remainder ? centred[i] : plain[i]) + s->slack) * (1.0 + 1e-9);
    }
    if (!first) /* R(0) is 1 */
        re[0] = im[0] = error[0] = 0.0;
}
