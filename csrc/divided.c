/* Proven lines of divided laws: each kind's law is split by a taper into small and large losses, and the paths with at
 * least one large loss are summed alone (docs/theory/divided_lines.md, Theorem 1).  Where to divide, and which lines to
 * keep, are choices; proven are pe_add_below, divide, above_at, beyond and build.  Interface in divided.h. */

#include "divided.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic.h"
#include "divided_parts.h"
#include "doubles.h"
#include "tilted_cells.h"

#define U 0x1p-53 /* unit roundoff */
#define OUT (1.0 + 1e-9) /* factor outwards, for the rounding of bounds */

static const double PI = 3.14159265358979323846;
static const double OMITTED = -36.0; /* log of the modulus, over t = 0, from which on nothing is summed */
/* The gap before a mode far out, where the law is cut off; z is that of the deciding loss */
static const double ROOM = 2.5; /* in z, from the least place back to where it must be deep */
static const double RISE = 3.0; /* nats by which the law must rise again for a mode, */
static const double HIGHER = 12.0; /* by which it may exceed its value at z, */
static const double DEEP = 43.0; /* and by which it must have fallen below that */
/* The tapers */
/* nats that the paths without a large loss are to lie below the value, */
static const double NEGLIGIBLE = 32.0;
static const double COMPARABLE = -2.0; /* or this where they have a line of their own */
static const double STILL = 0.05; /* nats by which moving the tapers out must improve that bound */
static const double LEFT = 7.0; /* nats by which F times taper may exceed its value at z below z */
static const double FADED = 90.0; /* added to z^2 of the deciding loss: z^2 where a law is faded out */
/* Log of the largest expected number of large losses under a line's tilt, for each way; NaN: the law is faded out */
static const double NUMBER[] = {INFINITY, 0.5, NAN};
enum {
    /* ways 0, 1: NUMBER[0], NUMBER[1] with negligible small paths; 2, 3: with comparable ones, */
    NUMBERS = 2,
    WAYS = 2 * NUMBERS + 2, /* 4, 5: faded-out laws, comparable or balanced */
    TRIES = 8, /* positions of the tapers */
    MOST_KINDS = 32, /* kinds of steps: each has its own taper */
    COARSE = 6, /* bits of the thresholds, from the mean of the bulk, that lines are built for, */
    FINE = 9, /* and where rows of those lines are not accurate */
    FEW_KEPT = 16, /* lines kept at least, of some MB each, */
    MOST_KEPT = 512, /* and at most, if all take no more than */
    MOST_BYTES = 1 << 24,
};
static const double LEAST_SHARE = 1e-290; /* the smallest share with all digits */
/* Relative errors of rows and lines */
/* rows of faded-out laws above it are dropped, as other engines know more */
static const double WIDEST = 1e-5;
static const double CLOSE = 1e-9; /* a line this good makes further ways or a finer threshold unnecessary, */
static const double NARROW = 1e-10; /* as does a row this good */
/* share of a line's values that is computed first, to learn its least error, */
static const double HEAD = 0.015625;
static const double GAIN = 0.7; /* which must be below so much of the row's error for the whole line */
static const double POOR = 1e-8; /* rows above it are improved by most lines: no head is built */
static const double NEARLY = 16.0; /* a least error so many times the row's makes a finer threshold useless */
static const double MAX_VALUES = 260000; /* below 2^18, so that angles are exact as sums of two doubles */
static const double MOST_WORK = 4e8; /* nodes times values of a kind */

/* ---- values ------------------------------------------------------------------------------------------ */

void pe_add_below(const pe_shifted *kind, const pe_shifted *above, double share, double share_error,
                  size_t first, const double *re, const double *im, const double *error, const pe_values *v) {
    double of_re[PE_SHIFTED_RUN], of_im[PE_SHIFTED_RUN], of_error[PE_SHIFTED_RUN];
    const double n = kind->steps, sign = kind->is_conjugate ? -1.0 : 1.0;
    pe_shifted_values(above, first, of_re, of_im, of_error);
    for (size_t k = 0; k < PE_SHIFTED_RUN; k++) {
        const double x = 1.0 + re[k], y = im[k], square = x * x + y * y, modulus = sqrt(square);
        const double a = 1.0 + of_re[k], b = of_im[k];
        const double qr = share * (a * x + b * y) / square, qi = share * (b * x - a * y) / square;
        const double size = pe_d_hypot(qr, qi), least = modulus - error[k] - 2.0 * U;
        /* Lemma 4: errors of both transforms and of the share, and a dozen operations */
        const double off = (share * (of_error[k] + 2.0 * U) + size * (error[k] + 2.0 * U)) / least +
                           (share_error + 24.0 * U) * size;
        const size_t i = first + k;
        v->below_re[i] += n * 0.5 * pe_d_log1p(size * size - 2.0 * qr);
        v->below_im[i] += sign * n * pe_d_atan2(-qi, 1.0 - qr);
        const double kept = 1.0 - size - off, own = n * (off / kept + 16.0 * U * size / (kept * kept));
        v->below_error[i] += own + 2.0 * U * (fabs(v->below_re[i]) + fabs(v->below_im[i]));
        if (!(least > 0.0) || !(size + off < 0.9995)) v->below_error[i] = INFINITY;
    }
}

/* Turns the transform of all paths into that of the paths with a large loss, times 1 - e^below, over its value
 * e^log_first at t = 0 (Lemma 4). */
static void divide(const pe_values *v, size_t n, double log_first) {
    for (size_t i = 0; i < n; i++) {
        const double x = v->below_re[i], y = v->below_im[i], half = pe_d_sin(0.5 * y), e = pe_d_exp(x);
        const double re = 2.0 * half * half - pe_d_expm1(x) * pe_d_cos(y), im = -e * pe_d_sin(y),
                     size = pe_d_hypot(re, im);
        const double off = (1.0 + size) * pe_d_expm1(fmin(v->below_error[i], 700.0)) +
                           16.0 * U * (fabs(pe_d_expm1(x)) + 2.0 * half * half + fabs(im));
        const double log_of = size > 0.0 ? pe_d_log(size) : -800.0, log_most = pe_d_log(size + off);
        v->re[i] += log_of - log_first;
        v->im[i] += size > 0.0 ? pe_d_atan2(im, re) : 0.0;
        v->error[i] += off / size + U * (16.0 + 4.0 * (fabs(log_of) + fabs(log_first) + fabs(v->re[i])));
        v->top[i] +=
            log_most - log_first + 8.0 * U * (1.0 + fabs(log_most) + fabs(log_first) + fabs(v->top[i]));
        if (!(v->below_error[i] < 1.0)) { /* only known: the modulus is at most that at t = 0 */
            v->error[i] = INFINITY;
            v->top[i] = 1e-6;
        }
        v->re[i] = fmax(v->re[i], -740.0);
    }
}

/* ---- where the law is divided: choices --------------------------------------------------------------- */

typedef struct {
    double lambda;
    double loss; /* the loss of one step that decides */
    double end; /* z of the gap before a mode far out, where laws are cut off; infinite if there is none */
    double nearer; /* in z: the laws below the tapers end so far before that of the loss, */
    double width; /* width of the tapers, in z, */
    double away; /* which are centred so far before that end */
    /* nats that paths without a large loss are to lie below the value; NaN: no more than the others */
    double less;
    double fades; /* z where the law is faded out; infinite if it is not */
} division;

/* The z at which a law has a loss, by bisection */
static double place_of(const pe_tilted *law, double loss, double end) {
    double low = law->start, high = end;
    for (int it = 0; it < 60; it++) {
        const double x = 0.5 * (low + high);
        const double here = pe_tilted_log_side(law, 1, x) - pe_tilted_log_side(law, 0, x);
        if (here < loss) low = x;
        else high = x;
    }
    return 0.5 * (low + high);
}

/* ---- the line ------------------------------------------------------------------------------------------ */

static void free_divided(pe_divided *d) {
    for (size_t i = 0; i < d->q.n_kinds; i++) {
        if (d->above) pe_shifted_free(&d->above[i]);
        if (d->below) pe_shifted_free(&d->below[i]);
        pe_shifted_free(&d->q.kinds[i]);
    }
    free(d->q.kinds);
    free(d->above);
    free(d->below);
    for (size_t i = 0; d->full && i < d->q.n_kinds; i++) pe_shifted_free(&d->full[i]);
    free(d->full);
    free(d->taper);
    free(d->share);
    free(d->share_error);
    free(d->c.line.weights);
    pe_certified_free(d->c.others);
}

/* Sets the tapers of all kinds, and the laws times taper and times 1 - taper */
static int set_tapers(pe_divided *d, const division *how) {
    for (size_t i = 0; i < d->q.n_kinds; i++) {
        const pe_shifted *kind = &d->q.kinds[i];
        if (kind->n_parts != 1) return PE_TOO_COSTLY; /* steps with alternatives are not served */
        const pe_part *known = &kind->part[0];
        const double z = place_of(&known->law, how->loss, known->cut) - how->nearer;
        d->taper[i] = (pe_taper){z - how->away, how->width, 1};
        int status = pe_shifted_tapered(&d->above[i], kind, &d->taper[i]);
        if (!status) status = pe_shifted_place(&d->above[i], 1.0);
        if (!status) status = pe_small_losses(&d->below[i], kind, &d->taper[i], d->c.zero_lost);
        if (status) return status;
    }
    return PE_OK;
}

/* Upper bound of log D(theta), the real transform of the paths with a large loss, at theta outside of (0, 1): Theorem
 * 1. */
static double above_at(const pe_divided *d, double theta) {
    double sum = 0.0, top = -INFINITY, others = 0.5 * d->q.gaussian * theta * (theta - 1.0),
           log_of[MOST_KINDS];
    for (size_t i = 0; i < d->q.n_kinds; i++) {
        const double n = d->q.kinds[i].steps;
        log_of[i] = pe_d_log(n) + pe_shifted_log_above(&d->above[i], theta);
        top = fmax(top, log_of[i]);
        if (theta != 0.0 && theta != 1.0)
            others += fmax(n * pe_shifted_log_above(&d->q.kinds[i], theta), 0.0);
    }
    if (!(top < INFINITY) || !(others < INFINITY)) return INFINITY;
    for (size_t i = 0; i < d->q.n_kinds; i++) sum += pe_d_exp(log_of[i] - top);
    return top + pe_d_log(sum) + others + 1e-9 * (1.0 + fabs(top) + others);
}

int pe_divided_period(const pe_divided *d, pe_line *ln, double base, double c, pe_transform above) {
    const double l = ln->lambda, pole = l > 1.0 ? 1.0 : 0.0;
    static const double INWARD[] = {1.0, 0.75, 0.5, 0.3},
                        OUTWARD[] = {0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0};
    double longest = 0.0;
    for (int outward = 0; outward < 2; outward++) {
        double best = INFINITY;
        const int side = outward == (l > 1.0), tries = outward ? 9 : 4; /* theta[1] lies right of lambda */
        for (int i = 0; i < tries; i++) {
            const double away = outward ? OUTWARD[i] : INWARD[i];
            const double theta =
                outward ? l + (l - pole) * away : (away == 1.0 ? pole : l + (pole - l) * away);
            const double k = above(d, theta);
            const double period = (k - theta * c - base + 38.0) / fabs(theta - l);
            if (!(period < best)) continue;
            best = period;
            ln->theta[side] = theta;
            ln->theta_k[side] = k;
        }
        if (!(best < INFINITY)) return PE_TOO_COSTLY;
        longest = fmax(longest, best);
    }
    ln->ht = pe_short_number(2.0 * PI / fmax(longest, 1e-300));
    return ln->ht > 0.0 ? PE_OK : PE_TOO_COSTLY;
}

/* log of a bound of |D| from t on, over its value at t = 0; from the kinds' last envelopes unless is_asked */
static double beyond(pe_divided *d, double t, double log_first, int is_asked) {
    double sum = 0.0;
    for (size_t i = 0; i < d->q.n_kinds; i++) {
        pe_shifted *above = &d->above[i];
        if (is_asked) above->log_beyond = pe_d_log(pe_shifted_envelope(above, t, 12.0 - OMITTED));
        sum += d->q.kinds[i].steps * d->share[i] * pe_d_exp(above->log_beyond);
    }
    return pe_d_log(sum) - log_first - 0.5 * d->q.gaussian * t * t + 1e-8;
}

/* log of a kind's share G_chi/G, at least -680 so that its exponential is a double */
static pe_dd share_of(const pe_divided *d, size_t i) {
    const pe_dd log_share = pe_dd_sub(d->above[i].log_m, d->q.kinds[i].log_m);
    return pe_dd_choose(log_share.h > -680.0, log_share, pe_dd_of(-680.0));
}

static void set_shares(pe_divided *d) {
    for (size_t i = 0; i < d->q.n_kinds; i++) d->share[i] = pe_d_exp(share_of(d, i).h);
}

/* log of 1 - prod (1 - share)^n, the transform at t = 0 over that of all paths */
static double first_of(const pe_divided *d) {
    pe_dd below = pe_dd_of(0.0);
    for (size_t i = 0; i < d->q.n_kinds; i++) {
        const pe_dd others = pe_dd_log1p(pe_dd_neg(pe_dd_exp(share_of(d, i))));
        below = pe_dd_add(below, pe_dd_mul_d(others, d->q.kinds[i].steps));
    }
    return below.h < -40.0 ? 0.0 : pe_dd_log_1_less_exp(below).h;
}

static int shares_serve(const pe_divided *d) {
    for (size_t i = 0; i < d->q.n_kinds; i++)
        if (!(d->share[i] > LEAST_SHARE && d->share[i] < 0.999)) return 0;
    return 1;
}

/* The first k of some, for which the modulus from k ht on is below e^OMITTED; 0 if there is none. */
static size_t last_value(pe_divided *d, double log_first) {
    const double ht = d->c.line.ht;
    double t = 4.0 * ht;
    for (int i = 0; i < 60; i++) {
        const size_t k = (size_t)ceil(t / ht) + 1;
        if (!((double)k < MAX_VALUES)) return 0;
        const double left = beyond(d, (double)k * ht, log_first, 1);
        if (left <= OMITTED) return k;
        t = (double)k * ht * (left > 0.3 * OMITTED ? 1.7 : 1.15);
    }
    return 0;
}

static void free_tapers(pe_divided *d) {
    for (size_t i = 0; i < d->q.n_kinds; i++) {
        pe_shifted_free(&d->above[i]);
        pe_shifted_free(&d->below[i]);
        d->above[i] = d->below[i] = (pe_shifted){0};
    }
    d->c.zero_lost[0] = d->c.zero_lost[1] = 0.0;
}

/* Sets the tapers, the shares, and the bound of the paths without a large loss beyond c.  A status. */
static int try_tapers(pe_divided *d, const division *how, double c) {
    free_tapers(d);
    const int status = set_tapers(d, how);
    if (status) return status;
    set_shares(d);
    if (!shares_serve(d)) return PE_TOO_COSTLY;
    pe_small_bound(d, c, how->loss);
    return PE_OK;
}

/* Sets the period and the number of values; returns whether there are any. */
static int places_values(pe_divided *d, double c, int *status) {
    pe_line *ln = &d->c.line;
    const double log_first = first_of(d);
    *status = pe_divided_period(d, ln, ln->k0 + log_first - ln->lambda * c, c, above_at);
    if (!*status) ln->nt = last_value(d, log_first);
    return !*status && ln->nt;
}

/* Moves the tapers until the paths without a large loss have how->less nats less than the value beyond c, then narrows
 * them until the values of t are few enough.  Where moving them stops to help, as small losses add up to c, takes those
 * with the least bound. */
static int place_line(pe_divided *d, division *how, double c, double log_value) {
    double least = INFINITY;
    division nearest = *how;
    int status = PE_OK;
    for (int i = 0; i < TRIES; i++) {
        status = try_tapers(d, how, c);
        if (status) break;
        double left = d->c.zero_k - d->c.zero_theta * c;
        if (isnan(how->less)) { /* both parts have lines: minimise the larger one of them */
            left = fmax(left, d->c.line.k0 + first_of(d) - d->c.line.lambda * c);
            if (left < least) {
                least = left;
                nearest = *how;
            }
            how->away *= 1.15;
            continue;
        }
        if (left < least - STILL) {
            least = left;
            nearest = *how;
        }
        if (left > log_value - how->less) {
            how->away *= 1.3;
            continue;
        }
        if (places_values(d, c, &status)) return PE_OK;
        if (status) return status;
        how->away *= 0.7;
        how->width *= 0.7;
    }
    if (!(least < INFINITY)) return status ? status : PE_TOO_COSTLY;
    *how = nearest;
    for (int i = 0; i < TRIES; i++) {
        status = try_tapers(d, how, c);
        if (status || places_values(d, c, &status)) return status;
        if (status) return status;
        how->away *= 0.7;
        how->width *= 0.7;
    }
    return PE_TOO_COSTLY;
}

/* Builds the line, or its first values only: `part` of all. */
static int build(pe_divided *d, division *how, double c, double log_value, double part) {
    pe_line *ln = &d->c.line;
    d->c.is_divided = 1;
    double faded[2] = {0.0, 0.0};
    int status = d->full ? pe_fading_kinds(d->q.contours, how->fades, how->width, d->full, &d->q, ln, faded)
                         : pe_begin_kinds(&d->q, 0.0, ln);
    if (!status) status = place_line(d, how, c, log_value);
    if (status) return status;
    if (d->c.zero_k - d->c.zero_theta * c > log_value - NEGLIGIBLE) {
        status = pe_small_line(d, c);
        if (status == PE_NO_MEMORY) return status; /* without a line the bound is used */
    }
    status = pe_finish_kinds(&d->q, INFINITY, &d->c);
    for (int side = 0; side < 2; side++) d->c.removed[side] += faded[side];
    for (size_t i = 0; i < d->q.n_kinds && !status; i++) {
        status = pe_shifted_finish(&d->above[i], INFINITY);
        if (status) break;
        const pe_shifted *whole = &d->q.kinds[i], *above = &d->above[i];
        const double nodes = (double)(whole->m + above->m);
        if (nodes * (double)ln->nt > MOST_WORK) return PE_TOO_COSTLY;
        const double logs = fabs(whole->log_m.h) + fabs(above->log_m.h);
        d->share_error[i] =
            (whole->log_m_error + above->log_m_error + 8.0 * PE_WIDE_UNIT * (1.0 + logs)) * OUT;
    }
    if (status) return status;
    set_shares(d);
    if (!shares_serve(d)) return PE_TOO_COSTLY;
    const double log_first = first_of(d);
    const double next = (double)ln->nt * ln->ht, last = next - ln->ht;
    const double rest = beyond(d, next, log_first, 0);
    ln->nt = (size_t)ceil((double)ln->nt * part);
    double integral = 0.0;
    for (size_t i = 0; i < d->q.n_kinds; i++)
        integral += d->q.kinds[i].steps * d->share[i] * pe_shifted_beyond(&d->above[i], next);
    integral *= pe_d_exp(-log_first) / next * OUT;
    pe_values v = {0};
    for (size_t i = 0; i < d->q.n_kinds; i++) pe_shifted_step(&d->above[i], ln->ht);
    d->q.above = d->above;
    d->q.share = d->share;
    d->q.share_error = d->share_error;
    status = pe_run_values(&d->q, ln->nt, ln->ht, &v);
    if (!status) {
        const size_t padded = (ln->nt + PE_SHIFTED_RUN - 1) / PE_SHIFTED_RUN * PE_SHIFTED_RUN;
        divide(&v, padded, log_first);
        status = pe_line_set_weights(ln, v.re, v.im);
    }
    if (!status) {
        /* log_first enters the values and log_m alike, so its error cancels */
        d->c.log_m = pe_dd_add_d(d->c.log_m, log_first);
        ln->k0 = d->c.log_m.h;
        pe_sum_errors(&v, &d->c);
        const double ratio = OUT / ln->ht;
        d->c.omitted[0] = INFINITY;
        d->c.omitted[1] = d->c.omitted[2] = (ln->ht * pe_d_exp(rest) / next + integral) * ratio;
        d->c.omitted[3] = pe_d_exp(rest) / last * ratio;
    }
    free(v.re);
    return status;
}

static double loss_at(const pe_tilted *law, size_t i) {
    return law->log_side[1][i] - law->log_side[0][i];
}

/* The z in the gap beyond z, where the law of power q is least, if a mode far out follows; infinite if none does, NaN if
 * the gap is not wide and deep enough. */
static double gap_beyond(const pe_tilted *law, double q, double z) {
    size_t least = law->n;
    const size_t first = pe_cell_of(law, z, 1);
    const double top = q * loss_at(law, first) - 0.5 * z * z;
    double lowest = INFINITY, most = -INFINITY;
    for (size_t i = first; i <= law->n; i++) {
        const double x = pe_edge_of(law, i), here = q * loss_at(law, i) - 0.5 * x * x;
        if (here < lowest) {
            lowest = here;
            least = i;
        }
        most = fmax(most, here);
        if (here > lowest + RISE && lowest < most - RISE) break; /* a mode far out begins */
    }
    if (most > top + HIGHER) return NAN;
    const double x = pe_edge_of(law, least) - ROOM;
    if (!(x > z)) return NAN;
    const size_t before = pe_cell_of(law, x, 0);
    const double there = q * loss_at(law, before) - 0.5 * x * x;
    if (!(there < top - DEEP)) return NAN;
    return least < law->n ? pe_edge_of(law, least) : INFINITY;
}

/* log of the largest F times taper below z, over F at z, for power q */
static double left_below(const pe_tilted *law, double q, double z, const pe_taper *taper) {
    double most = -INFINITY, slope;
    const size_t first = pe_cell_of(law, z, 1);
    for (size_t i = 0; i <= first; i++) {
        const double x = pe_edge_of(law, i);
        most = fmax(most, q * loss_at(law, i) - 0.5 * x * x + pe_taper_log(taper, x, &slope));
    }
    return most - (q * loss_at(law, first) - 0.5 * z * z);
}

/* About the log of the expected number of steps with a loss near that of z under the tilt q. */
static double log_number(const pe_tilted *law, double steps, double q, double z) {
    double most = -INFINITY;
    for (size_t i = pe_cell_of(law, 0.5 * z, 0); i <= law->n && pe_edge_of(law, i) <= 1.5 * z; i++) {
        const double x = pe_edge_of(law, i);
        most = fmax(most, q * loss_at(law, i) - 0.5 * x * x);
    }
    return pe_d_log(steps) + most;
}

/* The division for a large loss, at z, of one kind; PE_TOO_COSTLY if there is none. */
static int divide_at(const pe_tilted *law, double steps, double z, double loss, double number,
                     int is_reversed, division *how) {
    const double slope = pe_tilted_loss_slope(law, z), least = 1.0 + fmin(1.0 / slope, 1.0);
    if (!(slope > 0.0)) return PE_TOO_COSTLY;
    double q = fmax(z / slope, least);
    /* limit the expected number of large losses: more of them add up to far beyond the threshold */
    while (isfinite(number) && q > least && log_number(law, steps, q, z) > number) q = fmax(0.95 * q, least);
    how->fades = isnan(number) ? sqrt(z * z + FADED) : INFINITY;
    how->end = INFINITY;
    while (isinf(how->fades) && isnan(how->end = gap_beyond(law, q, z))) {
        if (q <= least) return PE_TOO_COSTLY;
        q = fmax(0.8 * q, least);
    }
    how->lambda = is_reversed ? 1.0 - q : q;
    how->loss = loss;
    how->nearer = fmin(0.35, 0.35 / law->farthest);
    for (int i = 0; i < 9; i++) {
        how->width = pe_d_pow(0.75, i) * fmin(1.0, 1.0 / law->farthest);
        how->away = how->width * sqrt(PE_SPARED + how->nearer * z);
        const pe_taper taper = {z - how->nearer - how->away, how->width, 1};
        if (left_below(law, q, z, &taper) < LEFT) break;
    }
    return PE_OK;
}

/* The division for threshold c, for the kind that is likeliest to make the large loss; log_value: about the log of its
 * probability. */
static int choose(const pe_contours *contours, double c, double number, division *how, double *log_value) {
    const double side = contours->reversed ? -1.0 : 1.0;
    const double middle = pe_contours_cumulants(contours, contours->reversed ? 1.0 : 0.0).k1;
    const double loss = side * (c - middle);
    if (!(loss > 0.0)) return PE_TOO_COSTLY;
    double best = -INFINITY;
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives) {
        const pe_group *g = &contours->groups[i];
        pe_shifted s;
        int status = pe_shifted_parts(&s, g, contours->reversed ? -1.0 : 2.0, PE_FARTHEST);
        if (!status && s.n_parts == 1) {
            const pe_tilted *law = &s.part[0].law;
            const double z = place_of(law, loss, s.part[0].cut), log_of = pe_d_log(g->n) - 0.5 * z * z;
            division one;
            if (log_of > best && !divide_at(law, g->n, z, loss, number, contours->reversed, &one)) {
                best = log_of;
                *how = one;
            }
        }
        pe_shifted_free(&s);
    }
    *log_value = best;
    return best > -INFINITY ? PE_OK : PE_TOO_COSTLY;
}

/* A copy of the contours whose laws are cut off at z = end; its groups are to be freed. */
static int ending(const pe_contours *contours, double end, pe_contours *out) {
    *out = *contours;
    if (!contours->n_groups) return PE_TOO_COSTLY;
    out->groups = malloc(contours->n_groups * sizeof *out->groups);
    if (!out->groups) return PE_NO_MEMORY;
    memcpy(out->groups, contours->groups, contours->n_groups * sizeof *out->groups);
    for (size_t i = 0; i < contours->n_groups; i++) {
        out->groups[i].taper_z = end;
        out->groups[i].taper_low = -end;
    }
    return PE_OK;
}

/* Builds the line, or `part` of it, for threshold c; it serves those next to c as well. */
static int make_line(const pe_contours *contours, division *how, double c, double log_value, double part,
                     pe_certified *out) {
    pe_contours own;
    int status = ending(contours, how->end, &own);
    if (status) return status;
    pe_divided d = {.q = {.contours = &own, .gaussian = contours->exact_variance.h, .farthest = PE_FARTHEST}};
    d.c.line.lambda = 1.0 - (1.0 - how->lambda);
    if (!(d.c.line.lambda < 0.0 || d.c.line.lambda > 1.0)) {
        free(own.groups);
        return PE_TOO_COSTLY;
    }
    d.q.kinds = calloc(contours->n_groups, sizeof *d.q.kinds);
    d.above = calloc(contours->n_groups, sizeof *d.above);
    d.below = calloc(contours->n_groups, sizeof *d.below);
    d.taper = calloc(contours->n_groups, sizeof *d.taper);
    d.share = calloc(contours->n_groups, sizeof *d.share);
    d.share_error = calloc(contours->n_groups, sizeof *d.share_error);
    d.full = isfinite(how->fades) ? calloc(contours->n_groups, sizeof *d.full) : NULL;
    status = d.q.kinds && d.above && d.below && d.taper && d.share && d.share_error &&
                     (d.full || isinf(how->fades))
                 ? build(&d, how, c, log_value, part)
                 : PE_NO_MEMORY;
    if (!status) {
        *out = d.c;
        d.c.line.weights = NULL; /* which the line has now */
        d.c.others = NULL;
    }
    free_divided(&d);
    free(own.groups);
    return status;
}

/* The threshold whose line serves c: c - (mean of the bulk) rounded to so many bits.  So a row does not depend on
 * earlier questions. */
static double served_by(const pe_contours *contours, double c, int bits) {
    const double middle = pe_contours_cumulants(contours, contours->reversed ? 1.0 : 0.0).k1;
    int exponent;
    if (!isfinite(middle) || c == middle) return c;
    (void)frexp(c - middle, &exponent);
    return middle + ldexp(nearbyint(ldexp(c - middle, bits - exponent)), exponent - bits);
}

/* Builds the line, or `part` of it, of one of the WAYS unless *out has it; a failure is kept as its status.  A second
 * number of large losses that leads to the same lambda, `taken`, gets no line. */
static int make_way(const pe_contours *contours, const pe_divided_line *at, double part, double taken,
                    pe_certified **out) {
    if (*out) return PE_OK;
    division how = {0};
    double log_value;
    pe_certified *line = calloc(1, sizeof *line);
    if (!line) return PE_NO_MEMORY;
    const int way = at->way, fades = way >= 2 * NUMBERS;
    int status = choose(contours, at->c, NUMBER[fades ? NUMBERS : way % NUMBERS], &how, &log_value);
    const double lambda = how.lambda;
    if (way % NUMBERS && !fades && lambda == taken) status = PE_TOO_COSTLY;
    how.less = way < NUMBERS ? NEGLIGIBLE : way < WAYS - 1 ? COMPARABLE : NAN;
    if (!status) status = make_line(contours, &how, at->c, log_value, part, line);
    line->status = status;
    line->line.lambda = lambda;
    *out = line;
    return status == PE_NO_MEMORY ? PE_NO_MEMORY : PE_OK;
}

static size_t bytes_of(const pe_divided_line *at) {
    return sizeof *at + (at->head ? pe_certified_bytes(at->head) : 0) +
           (at->line ? pe_certified_bytes(at->line) : 0);
}

/* Frees the oldest lines beyond the limits. */
static void keep_few(pe_divided_line *lines) {
    size_t bytes = 0;
    for (int kept = 1; lines && (kept < FEW_KEPT || bytes < MOST_BYTES) && kept < MOST_KEPT; kept++) {
        bytes += bytes_of(lines);
        lines = lines->before;
    }
    if (!lines) return;
    pe_divided_free(lines->before);
    lines->before = NULL;
}

/* The list's entry for a way at a threshold, a new one if needed; NULL without memory. */
static pe_divided_line *kept_way(pe_contours *contours, double c, int way) {
    pe_divided_line *at = contours->proven->divided;
    while (at && !(at->c == c && at->way == way)) at = at->before;
    if (at || !(at = calloc(1, sizeof *at))) return at;
    *at = (pe_divided_line){.before = contours->proven->divided, .c = c, .way = way};
    contours->proven->divided = at;
    keep_few(at);
    return at;
}

/* About the least relative error of a functional on a line, from its first values. */
static double least_error(const pe_certified *head, int functional, double c, double log_value) {
    const int of_b = functional == PE_B_ABOVE || functional == PE_B_BELOW;
    const double log_others = head->zero_k - head->zero_theta * c + (of_b ? c : 0.0) - log_value;
    return pe_certified_least_error(head, functional, c, log_value) +
           (head->others ? 0.0 : pe_d_exp(log_others));
}

static double error_of(const double *row, int functional) {
    return row[2 + PE_FUNCTIONALS + functional];
}

/* Improves `row` by one way after the other, on lines built for threshold `middle`, building a whole line only where its
 * head promises a smaller error.  `close`: the least error of these lines, proven or promised. */
static int row_of(pe_contours *contours, int functional, double middle, double c, double *close,
                  double *row) {
    double taken = NAN;
    for (int way = 0; way < WAYS; way++) {
        if (way >= NUMBERS && (*close <= CLOSE || error_of(row, functional) <= NARROW)) break;
        pe_divided_line *at = kept_way(contours, middle, way);
        if (!at) return PE_NO_MEMORY;
        const int is_known = error_of(row, functional) <= POOR;
        pe_certified **first = is_known ? &at->head : &at->line;
        int status = make_way(contours, at, is_known ? HEAD : 1.0, taken, first);
        if (status) return status;
        taken = (*first)->line.lambda;
        if ((*first)->status) continue;
        if (is_known) {
            const double error = least_error(at->head, functional, c, row[2 + functional]);
            *close = fmin(*close, error);
            if (error > GAIN * error_of(row, functional)) continue;
        }
        status = make_way(contours, at, 1.0, NAN, &at->line);
        if (status) return status;
        if (at->line->status) continue;
        double found[PE_ROW];
        pe_row out;
        pe_certified_evaluate_closely(at->line, c, &out);
        pe_put_row(&out, c, found);
        if (way >= 2 * NUMBERS && !(error_of(found, functional) <= WIDEST)) continue;
        *close = fmin(*close, error_of(found, functional));
        if (isnan(row[0]) || pe_row_shortfall(found, functional) < pe_row_shortfall(row, functional))
            memcpy(row, found, sizeof found);
        if (pe_row_shortfall(row, functional) <= 1.0) break;
    }
    return PE_OK;
}

int pe_divided_row(pe_contours *contours, int functional, double c, double *row) {
    if (contours->n_groups > MOST_KINDS) return PE_TOO_COSTLY;
    if (!contours->proven && !(contours->proven = calloc(1, sizeof *contours->proven))) return PE_NO_MEMORY;
    const double middle = served_by(contours, c, COARSE);
    double close = INFINITY;
    const int status = row_of(contours, functional, middle, c, &close, row);
    /* a line built for a threshold nearer to c, as the law may change much between thresholds that share a line */
    const double error = error_of(row, functional);
    const int is_known = close <= CLOSE || error <= NARROW || (isfinite(close) && close > NEARLY * error);
    if (status || is_known || middle == c) return status;
    return row_of(contours, functional, served_by(contours, c, FINE), c, &close, row);
}

void pe_divided_free(pe_divided_line *lines) {
    while (lines) {
        pe_divided_line *before = lines->before;
        if (lines->line) pe_certified_free(lines->line);
        if (lines->head) pe_certified_free(lines->head);
        free(lines);
        lines = before;
    }
}

size_t pe_divided_bytes(const pe_divided_line *lines) {
    size_t total = 0;
    for (; lines; lines = lines->before) total += bytes_of(lines);
    return total;
}
