/* Builds a vertical line with proven errors and evaluates rows on it: the four error terms of Theorem 3 of
 * docs/theory/line.md (aliases, truncation, values, rounding of the sum) and the removed mass (Lemma 6).  Transforms of
 * the kinds of steps with errors come from shifted*.c, bounds beyond the last t from envelope.c.  Called by proven.c.
 * Tests: tests/test_error_terms.py. */

#include "certified_parts.h"

#include <math.h>
#include <stdlib.h>

#include "arithmetic.h"
#include "doubles.h"
#include "lane_log.h"
#include "lane_trig.h"
#include "simd.h"

_Static_assert(PE_ULP_ELEMENTARY <= 4 && PE_ULP_CURVED <= 4, "docs/theory/line.md counts no more");

#define U 0x1p-53 /* unit roundoff */
/* Factor outwards, for the rounding of bounds that are formed in some dozens of operations */
#define OUT (1.0 + 1e-9)

static const double PI = 3.14159265358979323846;
/* The last t */
/* log of the modulus, relative to t = 0, from which on nothing is summed */
static const double OMITTED = -34.0;
static const double MAX_VALUES = 260000; /* below 2^18, so that angles are exact as sums of two doubles */
static const double FASTEST = 8.0; /* largest factor from one trial t to the next */
static const double WASTE = 0.85;  /* a t that could be smaller by this factor is tried again */
static const double STRETCH = 4.0; /* factor between the t at which the bound of the truncation is split */
enum {
    STRETCHES = 60, /* at most so many splits */
    ANCHORS = 16,   /* values of t for which one cosine and sine serve, in sums of two doubles */
};
/* The thetas of the aliases */
static const double FAR_ABOVE = 0.5; /* excess of the bound of K over its estimate that is accepted */
static const double NEARER = 0.85;   /* factor on |theta - lambda| where it is not, */
enum { MOST_MOVES = 8 };             /* at most so many times */
/* Where z is cut off */
static const double ASIDE = 3.0; /* difference of signed roots of the values served; places are 2.5 apart */
static const double NEGLIGIBLE = 45.0; /* -log of the share of a value that is cut off */
static const double WINDOW = 6.0; /* in z, from the end of the nodes' window to the cut */
static const double LEAST_SUM = 1e-300; /* sums between this and its inverse have a logarithm */
static const double WORK = 130.0; /* nodes times values of one line, in units of the cost limit, */
static const double MOST_WORK = 4e8; /* and at most so many for each kind */

double pe_short_number(double x) {
    int exponent;
    const double mantissa = frexp(x, &exponent);
    return ldexp(floor(mantissa * 0x1p20), exponent - 20);
}

/* ---- truncation: Lemma 7 of docs/theory/line.md ---------------------------------------------------- */

double pe_known_beyond(const pe_composition *q, double t) {
    double sum = -0.5 * q->gaussian * t * t;
    for (size_t i = 0; i < q->n_kinds; i++) sum += q->kinds[i].steps * q->kinds[i].log_beyond;
    return sum + 1e-9 * (1.0 + fabs(sum)) + 1e-6;
}

double pe_modulus_beyond(const pe_composition *q, double t) {
    for (size_t i = 0; i < q->n_kinds; i++) {
        /* the power of many steps magnifies the error of the factor; that of few must be small itself */
        const double n = q->kinds[i].steps, digits = fmax(pe_d_log(1e6 * n), 8.0 - OMITTED / n);
        q->kinds[i].log_beyond = pe_d_log(pe_shifted_envelope(&q->kinds[i], t, digits));
    }
    return pe_known_beyond(q, t);
}

/* Bound of the integral of the modulus from t on, given its log at t: the integral of any one kind's factor, times the
 * others at t, which bound them from there on. */
static double integral_at(const pe_composition *q, double t, double modulus) {
    double least = q->gaussian > 0.0 ? -pe_d_log(q->gaussian * t) : INFINITY;
    for (size_t i = 0; i < q->n_kinds; i++)
        least = fmin(least, pe_d_log(pe_shifted_beyond(&q->kinds[i], t)) - q->kinds[i].log_beyond);
    return pe_d_exp(modulus + least);
}

/* Up to STRETCH t the bound at t serves, and so on from there; the least of all splits. */
double pe_integral_beyond(const pe_composition *q, double t, double modulus) {
    double near = 0.0, least = integral_at(q, t, modulus) / t;
    for (int i = 0; i < STRETCHES; i++) {
        near += pe_d_log(STRETCH) * pe_d_exp(modulus);
        if (!(least > 2.0 * near)) break;
        t *= STRETCH;
        modulus = pe_modulus_beyond(q, t);
        least = fmin(least, near + integral_at(q, t, modulus) / t);
    }
    return least;
}

/* About the first k for which the modulus from t = k ht on is below e^OMITTED; 0 if none was found.  Newton's steps for
 * log modulus ~ t^2; it falls more slowly where rare losses are large. */
static size_t last_value(const pe_composition *q, double ht, double sd, double *found) {
    const double farthest = 0.99 * MAX_VALUES * ht;
    double t = sqrt(-2.0 * OMITTED) / sd;
    for (int it = 0, refined = 0; it < 40; it++) {
        const size_t k = (size_t)ceil(t / ht) + 1;
        if (!((double)k < MAX_VALUES)) return 0;
        t = (double)k * ht;
        *found = pe_modulus_beyond(q, t);
        const double still = *found < 0.0 ? sqrt(OMITTED / *found) : FASTEST;
        if (*found <= OMITTED && (refined++ || still > WASTE)) return k;
        const double next = t * (*found <= OMITTED ? 1.02 * still : fmin(fmax(1.01 * still, 1.03), FASTEST));
        t = t < 0.97 * farthest ? fmin(next, farthest) : next;
    }
    return 0;
}

/* ---- values: Lemma 8 of docs/theory/line.md --------------------------------------------------------- */

/* A value R = 1 + a + ib of one step at t with a bound of its absolute error; log R = log_r + i arg; of_log: bound of
 * the error of log_r in units of U; top: log of an upper bound of |R|. */
typedef struct {
    double t, b, error, modulus, log_r, arg, of_log, top;
} one_value;

/* Adds n (log R - i t mean) and a bound of its error. */
PE_INLINE void put_value(const pe_shifted *s, const one_value *r, double *re, double *im, double *error,
                         double *top) {
    const double n = s->steps, mean = r->t * s->mean_re;
    *re += n * r->log_r;
    *im += (s->is_conjugate ? -n : n) * (r->arg - mean);
    *top += n * r->top;
    const double rounding = r->of_log + 8.0 * fabs(r->arg) + 4.0 * fabs(mean) + 2.0 * fabs(r->b) / r->modulus;
    *error += n * (r->error / (r->modulus - r->error) + U * rounding) + 2.0 * U * (fabs(*re) + fabs(*im));
}

static void add_value(const pe_shifted *s, double t, double a, double b, double error, const pe_values *v,
                      size_t k) {
    const double x = 1.0 + a, square = x * x + b * b;
    const double modulus = sqrt(square), defect = 2.0 * a + (a * a + b * b);
    const double log_r = square < 0.25 ? 0.5 * pe_d_log(square) : 0.5 * pe_d_log1p(defect);
    const double top = pe_d_log(modulus + error + 2.0 * U); /* a rounds once */
    /* log1p errs by its argument; for |R| < 1/2 the logarithm errs by that of R, in which a is rounded in units of 1 */
    const double of_log = square < 0.25 ? 4.0 * fabs(a) / modulus + 16.0 + 8.0 * fabs(log_r)
                                        : 4.0 * (2.0 * fabs(a) + a * a + b * b) / square + 4.0 * fabs(log_r);
    const one_value r = {
        t, b, error, modulus, log_r, pe_d_atan2(b, x), of_log, top + 4.0 * U * (1.0 + fabs(top))};
    put_value(s, &r, &v->re[k], &v->im[k], &v->error[k], &v->top[k]);
    if (!(error < 0.25 * modulus)) v->error[k] = INFINITY;
}

/* The same for a run of values near 1 with errors below 0.1, by the logarithm of lane_log.h. */
PE_CLONES static void add_near(const pe_shifted *s, size_t first, double ht, const double *a, const double *b,
                               const double *error, const pe_values *v) {
    for (int k = 0; k < PE_SHIFTED_RUN; k++) {
        double log_r, arg;
        pe_vlog1p(a[k], b[k], &log_r, &arg);
        const double modulus = sqrt((1.0 + a[k]) * (1.0 + a[k]) + b[k] * b[k]);
        const double of_log = 7.0 * (2.0 * fabs(a[k]) + (a[k] * a[k] + b[k] * b[k]));
        /* log(|R| + e) is at most log |R| + e/|R| */
        const double top = log_r + (error[k] + 2.0 * U) / modulus;
        const one_value r = {((double)first + k) * ht,
                             b[k],
                             error[k],
                             modulus,
                             log_r,
                             arg,
                             of_log + 4.0 * fabs(log_r),
                             top + U * (8.0 + of_log + 4.0 * fabs(top))};
        put_value(s, &r, &v->re[first + (size_t)k], &v->im[first + (size_t)k], &v->error[first + (size_t)k],
                  &v->top[first + (size_t)k]);
    }
}

static void add_run(const pe_shifted *s, size_t first, double ht, const double *a, const double *b,
                    const double *error, const pe_values *v) {
    double top = 0.0, worst = 0.0;
    for (int k = 0; k < PE_SHIFTED_RUN; k++) {
        top = fmax(top, a[k] * a[k] + b[k] * b[k]);
        worst = fmax(worst, error[k]);
    }
    if (top <= PE_LOG_REACH * PE_LOG_REACH && worst < 0.1) {
        add_near(s, first, ht, a, b, error, v);
        return;
    }
    for (size_t k = 0; k < PE_SHIFTED_RUN; k++)
        add_value(s, (double)(first + k) * ht, a[k], b[k], error[k], v, first + k);
}

int pe_run_values(const pe_composition *q, size_t nt, double ht, pe_values *v) {
    const size_t padded = (nt + PE_SHIFTED_RUN - 1) / PE_SHIFTED_RUN * PE_SHIFTED_RUN;
    v->re = calloc((q->above ? 7 : 4) * padded, sizeof(double));
    if (!v->re) return PE_NO_MEMORY;
    v->im = v->re + padded;
    v->error = v->re + 2 * padded;
    v->top = v->re + 3 * padded;
    v->below_re = q->above ? v->re + 4 * padded : NULL;
    v->below_im = q->above ? v->re + 5 * padded : NULL;
    v->below_error = q->above ? v->re + 6 * padded : NULL;
    for (size_t k = 0; k < padded; k++) {
        const double t = (double)k * ht;
        v->re[k] = v->top[k] = -0.5 * q->gaussian * t * t;
        v->error[k] = 4.0 * U * fabs(v->re[k]);
        v->top[k] += 4.0 * U * fabs(v->re[k]);
    }
    for (size_t i = 0; i < q->n_kinds; i++) {
        pe_shifted_step(&q->kinds[i], ht);
        for (size_t first = 0; first < padded; first += PE_SHIFTED_RUN) {
            double re[PE_SHIFTED_RUN], im[PE_SHIFTED_RUN], error[PE_SHIFTED_RUN];
            pe_shifted_values(&q->kinds[i], first, re, im, error);
            add_run(&q->kinds[i], first, ht, re, im, error, v);
            if (q->above)
                pe_add_below(&q->kinds[i], &q->above[i], q->share[i], q->share_error[i], first, re, im, error,
                             v);
        }
    }
    return PE_OK;
}

PE_CLONES void pe_sum_errors(const pe_values *v, pe_certified *c) {
    const double l = c->line.lambda, ht = c->line.ht;
    double sum[4][PE_LANES] = {{0}};
    for (size_t k = 0; k < c->line.nt; k += PE_LANES) /* arrays are whole runs */
        for (int u = 0; u < PE_LANES; u++) {
            const size_t i = k + (size_t)u;
            /* capped: the true modulus is at most 1 */
            const double log_own = v->re[i] < 700.0 ? v->re[i] : 700.0;
            const double t = (double)i * ht, own = pe_vexp(log_own) * (i ? 1.0 : 0.5);
            const double relative =
                v->error[i] + t * c->mean_error + (12.0 + 2.0 * fabs(v->im[i]) + 2.0 * fabs(v->re[i])) * U;
            const double few = relative < 600.0 ? relative : 600.0;
            const double most = own + (v->top[i] < 700.0 ? pe_vexp(v->top[i]) : INFINITY);
            const double grown = own * pe_vexpm1(few, pe_vexp(few));
            const double own_error = relative < 600.0 && grown < most ? grown : most;
            /* values after the last one only fill the run */
            const double error = i < c->line.nt ? own_error : 0.0;
            const double near = 1.0 / (l * l + t * t), far = 1.0 / ((l - 1.0) * (l - 1.0) + t * t);
            sum[0][u] += error;
            sum[1][u] += error * sqrt(near);
            sum[2][u] += error * sqrt(far);
            sum[3][u] += error * sqrt(near) * sqrt(far);
        }
    for (int f = 0; f < 4; f++) c->uncertain[f] += pe_lane_sum(sum[f]) * OUT;
    for (int f = 0; f < 4; f++) c->uncertain[f] += 24.0 * U * c->line.mass[f];
}

/* ---- the line ---------------------------------------------------------------------------------------- */

double pe_cumulant_above(const pe_contours *contours, const pe_shifted *kinds, double theta) {
    if (theta == 0.0 || theta == 1.0) return 0.0;
    const double v = contours->exact_variance.h;
    double sum = 0.5 * v * theta * (theta - 1.0), size = fabs(sum);
    for (size_t i = 0, k = 0; i < contours->n_groups; i += contours->groups[i].alternatives, k++) {
        const pe_group *g = &contours->groups[i];
        pe_shifted parts;
        double one = INFINITY;
        if (kinds) {
            one = pe_shifted_log_above(&kinds[k], theta);
        } else {
            if (!pe_shifted_parts(&parts, g, theta, PE_FARTHEST)) one = pe_shifted_log_above(&parts, theta);
            pe_shifted_free(&parts);
        }
        sum += g->n * one;
        size += g->n * fabs(one);
    }
    return sum + 1e-12 * size;
}

static void add_removed(const pe_shifted *s, double removed[2]) {
    double of_a, of_b;
    pe_shifted_removed(s, &of_a, &of_b);
    removed[0] += s->steps * of_a * OUT;
    removed[1] += s->steps * of_b * OUT;
}

/* The distance from the shifts at which z is cut off: what lies beyond has less than e^-NEGLIGIBLE of any value that the
 * line serves, the signed roots of these being at most ASIDE from its own. */
static double farthest_of(const pe_composition *q, const pe_cumulants *k, double spread, double lambda) {
    double steps = 1.0;
    for (size_t i = 0; i < q->contours->n_groups; i++) steps += q->contours->groups[i].n;
    const double root = sqrt(2.0 * fmax(lambda * k->k1 - k->k0, 0.0)) + ASIDE;
    const double of_b =
        fmin(k->k1 - spread, 0.0); /* log of the factor e^c that B's masses have besides, if below 1 */
    const double mass = -0.5 * root * root + of_b - NEGLIGIBLE - pe_d_log(steps);
    return mass > -1e3 ? fmin(sqrt(-2.0 * mass) + WINDOW, PE_FARTHEST) : PE_FARTHEST;
}

int pe_begin_kinds(pe_composition *q, double spread, pe_line *ln) {
    const double lambda = ln->lambda, v = q->gaussian;
    const pe_contours *contours = q->contours;
    const pe_cumulants about = pe_contours_cumulants(contours, lambda);
    if (!(q->farthest > 0.0)) q->farthest = farthest_of(q, &about, spread, lambda);
    ln->k0 = 0.5 * v * lambda * (lambda - 1.0);
    ln->c_ref = v * (lambda - 0.5);
    ln->sd = sqrt(about.k2);
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives) {
        pe_shifted *s = &q->kinds[q->n_kinds++];
        const int status = pe_shifted_begin(s, &contours->groups[i], lambda, q->farthest);
        if (status) return status;
        ln->k0 += s->steps * s->log_m.h;
        ln->c_ref += (s->is_conjugate ? -s->steps : s->steps) * s->mean_re;
    }
    return PE_OK;
}

int pe_finish_kinds(pe_composition *q, double t_top, pe_certified *c) {
    const double lambda = c->line.lambda;
    pe_dd log_m = pe_dd_mul(pe_dd_mul_d(q->contours->exact_variance, 0.5 * lambda), pe_two_sum(lambda, -1.0));
    double error = 8.0 * PE_WIDE_UNIT * fabs(log_m.h), mean = q->gaussian * (lambda - 0.5);
    double parts = fabs(mean);
    for (size_t i = 0; i < q->n_kinds; i++) {
        pe_shifted *s = &q->kinds[i];
        const int status = pe_shifted_finish(s, t_top);
        if (status) return status;
        log_m = pe_dd_add(log_m, pe_dd_mul_d(s->log_m, s->steps));
        error += s->steps * s->log_m_error + 4.0 * PE_WIDE_UNIT * fabs(log_m.h);
        mean += (s->is_conjugate ? -s->steps : s->steps) * s->mean_re;
        parts += s->steps * fabs(s->mean_re);
        add_removed(s, c->removed);
    }
    c->log_m = log_m;
    c->log_m_error = error * OUT;
    c->line.k0 = log_m.h;
    c->line.c_ref = mean;
    c->mean_error = (4.0 + (double)q->n_kinds) * U * parts;
    return PE_OK;
}

/* Sets nt and the log of a bound of the modulus from nt ht on, and makes the nodes up to there. */
static int end_of_sum(pe_composition *q, pe_certified *c, double *rest) {
    pe_line *ln = &c->line;
    ln->nt = last_value(q, ln->ht, ln->sd, rest);
    if (!ln->nt) return PE_TOO_COSTLY;
    /* a little further, as values come in whole runs */
    const int status = pe_finish_kinds(q, 1.01 * (double)(ln->nt + 2 * PE_SHIFTED_RUN) * ln->ht, c);
    if (status) return status;
    *rest = pe_known_beyond(q, (double)ln->nt * ln->ht);
    double nodes = 0.0;
    for (size_t i = 0; i < q->n_kinds; i++) nodes += (double)q->kinds[i].m;
    const double most = fmin(WORK * q->contours->cost_limit, MOST_WORK * (double)q->n_kinds);
    c->work = nodes * (double)ln->nt; /* unsampled steps have no nodes */
    if (c->work > q->contours->most_work) c->refused_from = q->contours->most_work;
    return c->work <= fmin(most, q->contours->most_work) ? PE_OK : PE_TOO_COSTLY;
}

/* Replaces the estimate of K(theta) by an upper bound.  Where that is FAR_ABOVE it, as the tilt theta puts weight where
 * the law is cut off, theta is moved towards the line.  Returns whether there is a bound. */
static int prove_theta(const pe_composition *q, pe_line *ln, int side) {
    const double away = side ? ln->theta[1] - ln->lambda : ln->lambda - ln->theta[0];
    if (!(away > 0.0)) return 0; /* no theta was found on this side */
    for (int it = 0; it < MOST_MOVES; it++) {
        const double theta = ln->theta[side], estimate = ln->theta_k[side];
        ln->theta_k[side] = pe_cumulant_above(q->contours, q->kinds, theta);
        if (ln->theta_k[side] <= estimate + FAR_ABOVE) return 1;
        ln->theta[side] = ln->lambda + NEARER * (theta - ln->lambda);
        ln->theta_k[side] = pe_contours_cumulants(q->contours, ln->theta[side]).k0;
    }
    ln->theta_k[side] = pe_cumulant_above(q->contours, q->kinds, ln->theta[side]);
    return isfinite(ln->theta_k[side]);
}

int pe_sum_line(pe_composition *q, pe_certified *c) {
    pe_line *ln = &c->line;
    double rest;
    pe_values v = {0};
    int status = end_of_sum(q, c, &rest);
    if (!status) status = pe_run_values(q, ln->nt, ln->ht, &v);
    if (!status) status = pe_line_set_weights(ln, v.re, v.im);
    if (!status) {
        pe_sum_errors(&v, c);
        const double last = (double)(ln->nt - 1) * ln->ht, next = (double)ln->nt * ln->ht,
                     ratio = OUT / ln->ht;
        /* the terms fall, so their sum is at most the first one and the integral from there on */
        const double beyond = ln->ht * pe_d_exp(rest) / next + pe_integral_beyond(q, next, rest);
        c->omitted[0] = INFINITY; /* the density serves as a slope only */
        c->omitted[1] = c->omitted[2] = beyond * ratio;
        c->omitted[3] = pe_d_exp(rest) / last * ratio;
    }
    free(v.re);
    return status;
}

static int build(pe_composition *q, double spread, pe_certified *c) {
    pe_line *ln = &c->line;
    int status = pe_begin_kinds(q, spread, ln);
    if (status) return status;
    /* pe_line_period allows for thresholds 3 sd from the mean */
    const double farther = fmax(spread - 3.0 * ln->sd, 0.0);
    pe_line_choose_thetas(q->contours, ln);
    for (int side = 0; side < 2; side++)
        if (!prove_theta(q, ln, side)) return PE_TOO_COSTLY;
    ln->ht = pe_short_number(2.0 * PI / (pe_line_period(ln) + farther));
    if (!(ln->ht > 0.0)) return PE_TOO_COSTLY;
    return pe_sum_line(q, c);
}

int pe_certified_build(const pe_contours *contours, double spread, pe_certified *c) {
    /* so that both lambda and 1 - lambda are doubles, as one of them is the power of the likelihood ratio */
    c->line.lambda = 1.0 - (1.0 - c->line.lambda);
    if (c->line.lambda == 0.0 || c->line.lambda == 1.0) return PE_TOO_COSTLY;
    const pe_certified fresh = *c;
    double farthest = 0.0; /* chosen by farthest_of */
    for (;;) {
        pe_composition q = {
            .contours = contours, .gaussian = contours->exact_variance.h, .farthest = farthest};
        q.kinds = calloc(contours->n_groups + 1, sizeof *q.kinds);
        const int status = q.kinds ? build(&q, spread, c) : PE_NO_MEMORY;
        for (size_t i = 0; i < q.n_kinds; i++) pe_shifted_free(&q.kinds[i]);
        free(q.kinds);
        /* once more with z up to PE_FARTHEST: the window of the nodes may need more than the values do */
        if (status != PE_TOO_COSTLY || c->refused_from > 0.0 || !(q.farthest < PE_FARTHEST)) return status;
        farthest = PE_FARTHEST;
        free(c->line.weights);
        *c = fresh;
    }
}

void pe_certified_free(pe_certified *c) {
    if (!c) return;
    free(c->line.weights);
    pe_certified_free(c->others);
    free(c);
}

size_t pe_certified_bytes(const pe_certified *c) {
    return sizeof *c + (c->line.weights ? 8 * c->line.nt * sizeof(double) : 0) +
           (c->others ? pe_certified_bytes(c->others) : 0);
}

/* ---- rows --------------------------------------------------------------------------------------------- */

/* Sets a functional and its complement to 1, with relative errors. */
static void put_pair(pe_row *row, int natural, int other, double log_value, double error) {
    row->log_value[natural] = log_value;
    row->error[natural] = error;
    row->log_value[other] = NAN;
    row->error[other] = INFINITY;
    const double value = pe_d_exp(log_value), rest = -pe_d_expm1(log_value);
    const double moved = value * error * OUT + 4.0 * U * value;
    if (rest > 2.0 * moved) {
        row->log_value[other] = log_value < -0.5 ? pe_d_log1p(-value) : pe_d_log(rest);
        row->error[other] = moved / (rest - moved) * OUT + 8.0 * U;
    }
}

/* The profile E(1 - e^{S-c})+ from log and relative error of E(e^{S-c} - 1)+: their difference is
 * 1 - E e^{S-c} = 1 - e^{-c}, as A and B have the same null sets. */
static void put_parity(pe_row *row, double c, double log_value, double error) {
    const double value = pe_d_exp(log_value), apart = pe_d_expm1(-c), rest = value - apart;
    const double moved = (value * error + 8.0 * U * (value + fabs(apart))) * OUT;
    row->log_value[PE_PROFILE] = NAN;
    row->error[PE_PROFILE] = INFINITY;
    if (!(rest > 2.0 * moved)) return;
    row->log_value[PE_PROFILE] = pe_d_log(rest);
    row->error[PE_PROFILE] = moved / (rest - moved) * OUT + (8.0 + 8.0 * fabs(pe_d_log(rest))) * U;
}

/* Bound of the probability beyond c that the line does not sum, under A or under B */
static double removed_at(const pe_certified *q, int of_b, double c) {
    if (!q->is_divided) return q->removed[of_b];
    if (q->others) return q->removed[of_b] + q->zero_lost[of_b];
    const double exponent = q->zero_k - (q->zero_theta - of_b) * c;
    return q->removed[of_b] + q->zero_lost[of_b] +
           pe_d_exp(exponent + 1e-12 * (1.0 + fabs(q->zero_k) + fabs(q->zero_theta * c))) * OUT;
}

/* At PE_LANES thresholds: base = K(lambda) - lambda c, kept = base + theta c for both thetas, and the logs of the values
 * by the four sums; all formed in sums of two doubles. */
typedef struct {
    double base[PE_LANES], kept[2][PE_LANES], value[4][PE_LANES];
} row_logs;

PE_CLONES static void set_logs(const pe_certified *q, const double *c, double (*sum)[PE_LANES],
                               row_logs *out) {
    const pe_dd log_m = q->log_m;
    const double l = q->line.lambda, low = q->line.theta[0], high = q->line.theta[1];
    row_logs found;
    for (int u = 0; u < PE_LANES; u++) {
        const double t = c[u];
        const pe_dd base = pe_dd_sub(log_m, pe_two_prod(l, t));
        found.base[u] = base.h;
        found.kept[0][u] = pe_dd_add(base, pe_two_prod(low, t)).h;
        found.kept[1][u] = pe_dd_add(base, pe_two_prod(high, t)).h;
        found.value[1][u] = pe_dd_add(base, pe_dd_log(pe_dd_of(fabs(sum[1][u])))).h;
        found.value[2][u] = pe_dd_add(pe_dd_add_d(base, t), pe_dd_log(pe_dd_of(fabs(sum[2][u])))).h;
        found.value[3][u] = pe_dd_add(base, pe_dd_log(pe_dd_of(fabs(sum[3][u])))).h;
    }
    *out = found;
}

/* What the sums with kernels 1 to 3 give, A's tail, B's tail and the profile's: logs and relative errors */
typedef struct {
    double log_value[4], error[4], density_log, rounded;
} row_parts;

/* The parts at c, the threshold of lane u, from the sums s, which are rounded by `rounding` times the sums of moduli. */
static void parts_of(const pe_certified *q, double c, const double *s, const row_logs *logs, int u,
                     double rounding, row_parts *out) {
    const pe_line *ln = &q->line;
    const double l = ln->lambda, f = ln->ht / PI, base = logs->base[u];
    const double of_base = q->log_m_error + 4.0 * PE_WIDE_UNIT * (fabs(q->log_m.h) + fabs(l * c));
    double alias = 0.0, profile_alias = 0.0;
    for (int side = 0; side < 2; side++) {
        const double theta = ln->theta[side];
        const double way = fabs(theta - l) * 2.0 * PI / ln->ht, kept = logs->kept[side][u];
        const double rounded = 8.0 * U * (fabs(ln->theta_k[side]) + fabs(kept) + way) + of_base +
                               4.0 * PE_WIDE_UNIT * fabs(theta * c);
        /* one exponential, as a product of two may be infinity times 0 */
        const double bound =
            pe_d_exp(ln->theta_k[side] - kept - way + rounded) / (1.0 - pe_d_exp(-way) * OUT) * OUT;
        alias += bound;
        profile_alias += l < 0.0 ? bound / (1.0 + fabs(theta)) : bound;
    }
    const double sign[4] = {1.0, l, l - 1.0, l * (l - 1.0)};
    double *log_value = out->log_value, *error = out->error;
    out->rounded = 0.0;
    for (int k = 1; k < 4; k++) {
        const double miss =
            f * (q->omitted[k] + q->uncertain[k] + rounding * ln->mass[k]) + (k == 3 ? profile_alias : alias);
        out->rounded = fmax(out->rounded, f * rounding * ln->mass[k] / miss);
        const int of_b = k == 2 || (k == 3 && l > 1.0); /* E(e^{S-c} - 1)+ <= e^{-c} B(S > c) */
        const double lost = removed_at(q, of_b, c);
        const double removed = lost * pe_d_exp(-base - (of_b ? c : 0.0));
        const double size = fabs(s[k]);
        log_value[k] = logs->value[k][u];
        error[k] = INFINITY;
        if (!(s[k] * sign[k] > 0.0) || !(miss < 0.1 * size) || !(size > LEAST_SUM && size < 1.0 / LEAST_SUM))
            continue;
        if (!(removed < size)) { /* only known to lie between 0 and the removed mass plus twice the sum */
            const double cut = pe_d_log(lost) - (of_b && k == 3 ? c : 0.0) + 1e-9 + 2.0 * U * fabs(c);
            log_value[k] =
                fmax(cut, log_value[k] + 0.7) + pe_d_log1p(pe_d_exp(-fabs(cut - log_value[k] - 0.7))) - 0.69;
            error[k] = 1.0;
            continue;
        }
        const double wide = 4.0 * PE_WIDE_UNIT * (fabs(q->log_m.h) + fabs(l * c) + fabs(c));
        error[k] = (pe_d_expm1(miss / (size - miss) + q->log_m_error + wide + 8.0 * U +
                               2.0 * U * fabs(log_value[k])) +
                    removed / size) *
                   OUT;
    }
    out->density_log = base + pe_d_log(fabs(s[0]));
}

static void put_parts(double l, double c, const row_parts *parts, pe_row *row) {
    const double *log_value = parts->log_value, *error = parts->error;
    row->rounded = parts->rounded;
    row->density_log = parts->density_log;
    put_pair(row, l > 0 ? PE_A_ABOVE : PE_A_BELOW, l > 0 ? PE_A_BELOW : PE_A_ABOVE, log_value[1], error[1]);
    put_pair(row, l > 1 ? PE_B_ABOVE : PE_B_BELOW, l > 1 ? PE_B_BELOW : PE_B_ABOVE, log_value[2], error[2]);
    row->log_value[PE_PROFILE] = log_value[3];
    row->error[PE_PROFILE] = error[3];
    if (l > 1.0) { /* the sum is E(e^{S-c} - 1)+ */
        put_parity(row, c, log_value[3], error[3]);
    } else if (l > 0.0) { /* the sum is E min(1, e^{S-c}) */
        pe_row side;
        put_pair(&side, 0, 1, log_value[3], error[3]);
        row->log_value[PE_PROFILE] = side.log_value[1];
        row->error[PE_PROFILE] = side.error[1];
    }
}

double pe_certified_least_error(const pe_certified *q, int functional, double c, double log_value) {
    const int of_b = functional == PE_B_ABOVE || functional == PE_B_BELOW;
    const int k = functional == PE_PROFILE ? 3 : of_b ? 2 : 1;
    const double base = q->log_m.h - q->line.lambda * c + (of_b ? c : 0.0);
    return q->line.ht / PI * (q->omitted[k] + q->uncertain[k]) * pe_d_exp(base - log_value);
}

static double last_time(const pe_line *ln) {
    return (double)ln->nt * ln->ht;
}

void pe_certified_evaluate(const pe_certified *q, size_t n, const double *c, pe_row *rows) {
    double padded[PE_LANES], sum[4][PE_LANES];
    for (size_t u = 0; u < PE_LANES; u++) padded[u] = u < n ? c[u] : c[0];
    row_logs logs;
    pe_line_sums(&q->line, padded, sum);
    set_logs(q, padded, sum, &logs);
    for (size_t u = 0; u < n; u++) {
        const double s[4] = {sum[0][u], sum[1][u], sum[2][u], sum[3][u]};
        /* Lemma 5 (a): angles of the rotations, sums in two stages */
        const double angle = last_time(&q->line) * fabs(c[u] - q->line.c_ref);
        const double rounding = U * (200.0 + (double)q->line.nt / 16.0 + 8.0 * angle +
                                     2.0 * last_time(&q->line) * (fabs(c[u]) + fabs(q->line.c_ref)));
        row_parts parts;
        parts_of(q, c[u], s, &logs, (int)u, rounding, &parts);
        put_parts(q->line.lambda, c[u], &parts, &rows[u]);
    }
}

/* The four sums in sums of two doubles; turn = -ht (c - c_ref). */
PE_CLONES static void sum_closely(const pe_line *ln, pe_dd turn, double *s) {
    pe_dd step_im, sum[4], re = pe_dd_of(1.0), im = pe_dd_of(0.0);
    const pe_dd step_re = pe_dd_turn(turn, &step_im);
    for (int i = 0; i < 4; i++) sum[i] = pe_dd_of(0.0);
    for (size_t k = 0; k < ln->nt; k++) {
        const double *w = ln->weights + 8 * k;
        if (k % ANCHORS == 0) re = pe_dd_turn(pe_dd_mul_d(turn, (double)k), &im);
        for (int i = 0; i < 4; i++) {
            const pe_dd term = pe_dd_add_fast(pe_dd_mul_d(re, w[2 * i]), pe_dd_mul_d(im, -w[2 * i + 1]));
            sum[i] = pe_dd_add(sum[i], term);
        }
        const pe_dd next = pe_dd_sub(pe_dd_mul(re, step_re), pe_dd_mul(im, step_im));
        im = pe_dd_add(pe_dd_mul(re, step_im), pe_dd_mul(im, step_re));
        re = next;
    }
    for (int i = 0; i < 4; i++) s[i] = pe_dd_mul_d(sum[i], ln->ht / PI).h;
}

static void parts_closely(const pe_certified *q, double c, row_parts *out) {
    const pe_line *ln = &q->line;
    double s[4];
    const double angle = last_time(ln) * fabs(c - ln->c_ref);
    sum_closely(ln, pe_dd_mul_d(pe_two_sum(ln->c_ref, -c), ln->ht), s);
    /* Lemma 5 (b): 15 products by a step that errs by less than 4 units in each part */
    const double rounding = PE_WIDE_UNIT * (16.0 + 15.0 * 8.0 + (double)ln->nt + 8.0 * angle);
    double padded[PE_LANES], sum[4][PE_LANES];
    row_logs logs;
    for (int u = 0; u < PE_LANES; u++) {
        padded[u] = c;
        for (int i = 0; i < 4; i++) sum[i][u] = s[i];
    }
    set_logs(q, padded, sum, &logs);
    parts_of(q, c, s, &logs, 0, angle < PE_MOST_ANGLE ? rounding : INFINITY, out);
}

/* Parts with an error above 1 become half of their Chernoff bound e^(K - lambda c), with the removed mass, at an error
 * of 1. */
static void bound_parts(const pe_certified *q, double c, row_parts *parts) {
    const double log_most = q->log_m.h - q->line.lambda * c;
    const double off =
        q->log_m_error + 8.0 * U * (1.0 + fabs(q->log_m.h) + fabs(q->line.lambda * c) + fabs(c));
    for (int k = 1; k < 4; k++) {
        if (parts->error[k] <= 1.0) continue;
        const int of_b = k == 2 || (k == 3 && q->line.lambda > 1.0);
        const double most = log_most + (k == 2 ? c : 0.0) + off;
        const double lost = pe_d_log(removed_at(q, of_b, c)) - (of_b && k == 3 ? c : 0.0) + off;
        const double top = fmax(most, lost);
        parts->log_value[k] = top + pe_d_log1p(pe_d_exp(fmin(most, lost) - top)) - 0.69;
        parts->error[k] = 1.0;
    }
}

void pe_certified_evaluate_closely(const pe_certified *q, double c, pe_row *row) {
    row_parts parts;
    parts_closely(q, c, &parts);
    if (q->others) {
        row_parts small;
        parts_closely(q->others, c, &small);
        bound_parts(q, c, &parts);
        bound_parts(q->others, c, &small);
        for (int k = 1; k < 4; k++) {
            const double top = fmax(parts.log_value[k], small.log_value[k]);
            const double large = pe_d_exp(parts.log_value[k] - top), few = pe_d_exp(small.log_value[k] - top);
            parts.log_value[k] = top + pe_d_log(large + few);
            parts.error[k] = ((parts.error[k] * large + small.error[k] * few) / (large + few) +
                              8.0 * U * (1.0 + fabs(top))) *
                             OUT;
        }
        const double apart = parts.density_log - small.density_log;
        parts.density_log = fmax(parts.density_log, small.density_log) + pe_d_log1p(pe_d_exp(-fabs(apart)));
        parts.rounded = fmax(parts.rounded, small.rounded);
    }
    put_parts(q->line.lambda, c, &parts, row);
}

void pe_certified_chernoff_at(const pe_contours *contours, double lambda, pe_chernoff *out) {
    *out = (pe_chernoff){lambda, pe_cumulant_above(contours, NULL, lambda), {0.0, 0.0}};
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives) {
        pe_shifted parts;
        if (pe_shifted_parts(&parts, &contours->groups[i], lambda, PE_FARTHEST))
            out->removed[0] = out->removed[1] = INFINITY;
        else add_removed(&parts, out->removed);
        pe_shifted_free(&parts);
    }
}

double pe_chernoff_exponent(double k, double l, double c) {
    return k - l * c + (l * pe_d_log1p(-1.0 / l) - pe_d_log1p(-l));
}

/* Log of half of e^exponent + removed, rounded upwards */
static double chernoff_log(double exponent, double log_removed, double rounding) {
    const double large = fmax(exponent, log_removed);
    return large + 1e-9 * (1.0 + fabs(large)) + rounding +
           pe_d_log1p(pe_d_exp(fmin(exponent, log_removed) - large)) - 0.69;
}

void pe_certified_chernoff(const pe_chernoff *at, double c, pe_row *row) {
    const double l = at->lambda, k = at->k, *removed = at->removed;
    row->density_log = NAN;
    for (int f = 0; f < PE_FUNCTIONALS; f++) {
        row->log_value[f] = NAN;
        row->error[f] = INFINITY;
    }
    if (!isfinite(k) || l == 0.0 || l == 1.0) return;
    double bound[2]; /* logs of half of the bounds: with a relative error of 1 they cover 0 to the bound */
    for (int i = 0; i < 2; i++)
        bound[i] = chernoff_log(k - (l - i) * c, pe_d_log(removed[i]), 8.0 * U * (fabs(k) + fabs(l * c)));
    put_pair(row, l > 0.0 ? PE_A_ABOVE : PE_A_BELOW, l > 0.0 ? PE_A_BELOW : PE_A_ABOVE, bound[0], 1.0);
    put_pair(row, l > 1.0 ? PE_B_ABOVE : PE_B_BELOW, l > 1.0 ? PE_B_BELOW : PE_B_ABOVE, bound[1], 1.0);
    if (l < 0.0) {
        row->log_value[PE_PROFILE] = chernoff_log(pe_chernoff_exponent(k, l, c), pe_d_log(removed[0]),
                                                  8.0 * U * (fabs(k) + fabs(l * c)));
        row->error[PE_PROFILE] = 1.0;
    } else if (l < 1.0) { /* E min(1, e^{S-c}) <= e^{K - lambda c} */
        pe_row side;
        put_pair(&side, 0, 1, bound[0], 1.0);
        row->log_value[PE_PROFILE] = side.log_value[1];
        row->error[PE_PROFILE] = side.error[1];
    }
}
