#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pyengine.h"
#include "simd.h"
#include "vecmath.h"

/* The law of Y = S - (smallest S) as a density on the axis w = log Y, kept as the logarithm of
 * g(w) = density of w, piecewise polynomial on panels that adapt to it.  Sums are direct integrals
 * of positive terms, so that tails keep their relative accuracy whatever their shape; see
 * docs/theory/convolution.md. */

enum { N = 16 }; /* nodes of a panel, and of the Gauss-Legendre rule */
static const double LOG2 = 0.69314718055994530942;
static const double HALF_LOG_2PI = 0.91893853320467274178;
static const double MAX_WIDTH = 2.0, MIN_WIDTH = 1e-6;
static const double MISSING = 1e-9;    /* mass that a law may miss, as an estimate of its error */
static const double KINK = 40.0;        /* relative size of an edge that no sum feels, as a log */
static const double MAX_CHANGE = 25.0; /* of log g over one panel */
static const double MAX_WORK = 2.5e7; /* applications of the rule for one law, some 25 s */
static const double PIECE_CHANGE = 12.0; /* of the log integrand over one application of the rule */

struct pe_law {
    size_t n, room;
    double *edge;   /* n + 1 */
    double *coef;   /* n * N Chebyshev coefficients */
    double *peak;   /* n bounds of log g on the panels */
    double floor, floor_low; /* smallest S, as a sum of two doubles */
    double defect;  /* estimate of the relative error of g in its bulk */
    int depth;      /* convolutions that led here */
    double work;    /* applications of the rule that they took */
    double deepest; /* log densities below it are left out */
};

typedef struct {
    double x[N], w[N];      /* Gauss-Legendre on [-1, 1] */
    double node[N];         /* Chebyshev points */
    double to_cheb[N][N];   /* values at the points -> Chebyshev coefficients */
} rules;

static void make_rules(rules *r) {
    const double pi = 3.14159265358979323846;
    for (int i = 0; i < N / 2; i++) {
        double x = cos(pi * (i + 0.75) / (N + 0.5)), d = 1.0;
        for (int it = 0; it < 20; it++) {
            double a = 1.0, b = x;
            for (int k = 2; k <= N; k++) {
                double c = ((2 * k - 1) * x * b - (k - 1) * a) / k;
                a = b;
                b = c;
            }
            d = N * (x * b - a) / (x * x - 1.0);
            double step = b / d;
            x -= step;
            if (fabs(step) < 1e-16) break;
        }
        r->x[i] = -x;
        r->x[N - 1 - i] = x;
        r->w[i] = r->w[N - 1 - i] = 2.0 / ((1.0 - x * x) * d * d);
    }
    for (int i = 0; i < N; i++) {
        r->node[i] = cos(pi * (i + 0.5) / N);
        for (int k = 0; k < N; k++) r->to_cheb[k][i] = (k ? 2.0 : 1.0) / N * cos(pi * k * (i + 0.5) / N);
    }
}

/* ---- panels ------------------------------------------------------------------------------ */

static inline double clenshaw(const double *c, double t) {
    double b1 = c[N - 1], b2 = 0.0;
    for (int k = N - 2; k > 0; k--) {
        double b0 = c[k] + (2.0 * t * b1 - b2);
        b2 = b1;
        b1 = b0;
    }
    return c[0] + (t * b1 - b2);
}

static inline double panel_value(const pe_law *a, size_t i, double w) {
    double lo = a->edge[i], hi = a->edge[i + 1];
    return clenshaw(a->coef + N * i, 2.0 * (w - lo) / (hi - lo) - 1.0);
}

static size_t find_panel(const pe_law *a, double w) {
    size_t lo = 0, hi = a->n;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (a->edge[mid] <= w) lo = mid;
        else hi = mid;
    }
    return lo;
}

/* At w + rest: a narrow law far from its smallest loss feels what w leaves out. */
typedef double (*log_density)(const void *context, double w, double rest);

static int add_panel(pe_law *a, double lo, double hi, const double *coef, double peak) {
    if (a->n == a->room) {
        size_t room = a->room ? 2 * a->room : 64;
        double *edge = realloc(a->edge, (room + 1) * sizeof(double));
        if (!edge) return PE_NO_MEMORY;
        a->edge = edge;
        double *grown = realloc(a->coef, room * N * sizeof(double));
        if (!grown) return PE_NO_MEMORY;
        a->coef = grown;
        double *peaks = realloc(a->peak, room * sizeof(double));
        if (!peaks) return PE_NO_MEMORY;
        a->peak = peaks;
        a->room = room;
    }
    memcpy(a->coef + N * a->n, coef, N * sizeof(double));
    a->peak[a->n] = peak;
    a->edge[a->n] = lo;
    a->edge[++a->n] = hi;
    return PE_OK;
}

/* Panels for f over [lo, hi], from left to right, halved until the last coefficients vanish. */
static int fill(pe_law *a, log_density f, const void *context, double lo, double hi, const rules *r,
                size_t max_panels) {
    double stack[64], parent[64], left = lo;
    int depth = 0;
    stack[depth] = hi;
    parent[depth++] = INFINITY;
    while (depth) {
        double right = stack[depth - 1], values[N], top = -INFINITY, low = INFINITY;
        int usable = 1, wide = right - left > MAX_WIDTH;
        for (int i = 0; i < N && usable && !wide; i++) {
            int q = i % 2 ? N - 1 - i / 2 : i / 2; /* from the ends inwards: most splits show early */
            double off = 0.5 * (right - left) * (1.0 + r->node[q]), w = left + off, back = w - left;
            values[q] = f(context, w, (left - (w - back)) + (off - back)); /* exact, Knuth */
            if (!isfinite(values[q])) usable = 0;
            top = fmax(top, values[q]);
            low = fmin(low, values[q]);
            wide = top - low > MAX_CHANGE;
        }
        /* what rounding of the values and of w itself leaves in the coefficients, in 5e-15 */
        double reach_w = fmax(fabs(left), fabs(right)), slope = (top - low) / (right - left);
        double size = 1.0 + 0.1 * fmax(fabs(top), fabs(low)) + 0.2 * reach_w * slope, tail = 0.0;
        double coef[N];
        for (int k = 0; k < N && usable && !wide; k++) {
            coef[k] = 0.0;
            for (int i = 0; i < N; i++) coef[k] += r->to_cheb[k][i] * values[i];
            if (k >= N - 3) tail = fmax(tail, fabs(coef[k]));
        }
        wide = wide || !usable;
        /* coefficients that halving does not shrink are rounding errors of the values */
        int noise = tail < 5e-15 * size || (tail < 1e-12 * size && tail > 0.5 * parent[depth - 1]);
        if (right - left > MIN_WIDTH && depth < 62 && (wide || !noise)) {
            stack[depth] = 0.5 * (left + right);
            parent[depth - 1] = parent[depth] = wide ? INFINITY : tail;
            depth++;
            continue;
        }
        if (wide || a->n >= max_panels) return PE_TOO_COSTLY;
        /* between the Chebyshev points a panel of this variation rises little above them */
        int status = add_panel(a, left, right, coef, top + 0.05 * (top - low) + 1e-3);
        if (status) return status;
        left = right;
        depth--;
    }
    return PE_OK;
}

void pe_law_free(pe_law *a) {
    if (!a) return;
    free(a->edge);
    free(a->coef);
    free(a->peak);
    free(a);
}

size_t pe_law_panels(const pe_law *a) {
    return a->n;
}

size_t pe_law_bytes(const pe_law *a) {
    return sizeof *a + a->room * (N + 2) * sizeof(double);
}

static void normalise(pe_law *a, const rules *r);

/* ---- one step ----------------------------------------------------------------------------- */

typedef struct {
    double mu, rho, log_rho;
    double rest; /* log rho beyond the log of the double rho */
} step_law;

static step_law step_of(double noise, double p) {
    double q = 1.0 - p, lost = (1.0 - q) - p, rho = p / q;
    step_law s = {1.0 / noise, rho, log(p) - log1p(-p), fma(-rho, q, p) / p - lost / q};
    return s;
}

/* e^Y - 1 = rho exp(mu z - mu^2/2), rho = p/(1-p).  The ratio is formed before its logarithm, whose error
 * is then small beside 1, not beside the logarithms of both: all steps share it. */
static double step_density(const void *context, double w, double rest) {
    const step_law *s = context;
    double y = exp(w) * (1.0 + rest), log_em1 = y > 30.0 ? y + log1p(-exp(-y)) : log(expm1(y));
    if (w < -30.0) log_em1 = w + rest + 0.5 * y;
    double ratio = y < 30.0 ? expm1(y) / s->rho : 0.0;
    double above = ratio > 1e-290 && ratio < 1e290 ? log(ratio) - s->rest : log_em1 - s->log_rho;
    double z = above / s->mu + 0.5 * s->mu;
    double log_slope = (w < -30.0 ? 0.5 * y : w + y - log_em1) - log(s->mu);
    return -HALF_LOG_2PI - 0.5 * z * z + log_slope;
}

int pe_law_step(double noise, double p, double floor, double floor_low, double deepest, size_t max_panels,
                pe_law **out) {
    pe_law *a = calloc(1, sizeof *a);
    *out = a;
    if (!a) return PE_NO_MEMORY;
    step_law s = step_of(noise, p);
    a->floor = floor;
    a->floor_low = floor_low;
    a->deepest = deepest;
    double reach = sqrt(-2.0 * deepest);
    double low = s.log_rho + s.mu * (-reach - 0.5 * s.mu);
    double high = s.log_rho + s.mu * (reach + 0.5 * s.mu);
    rules r;
    make_rules(&r);
    /* log log1p(e^x), in both cases to a fraction of the reach */
    low = low < -30.0 ? low : log(log1p(exp(low)));
    high = high < 700.0 ? log(log1p(exp(high))) : log(high);
    int status = fill(a, step_density, &s, low, high, &r, max_panels);
    if (!status) normalise(a, &r);
    return status;
}

/* ---- convolution --------------------------------------------------------------------------- */

typedef struct {
    const pe_law *a, *b;
    const rules *r;
    double *cut;   /* per segment: both ends, both panels, bound of the log integrand */
    size_t room;
    int failed;
    double floor; /* of the sum */
    double work;  /* applications of the rule, those of both laws included */
} pair_of_laws;

/* Accumulates sum = e^{top} * total with terms e^{value} * weight. */
typedef struct {
    double top, total;
} log_sum;

static void accumulate(log_sum *s, double top, double total) {
    if (!(total > 0.0)) return;
    if (top > s->top) {
        s->total = s->total * exp(s->top - top) + total;
        s->top = top;
    } else {
        s->total += total * exp(top - s->top);
    }
}

/* log(1 - q) for 0 <= q <= 1/2, branch-free. */
static inline double vlog1m(double q) {
    double s = -q / (2.0 - q), z = s * s, p = 1.0 / 35.0;
    for (int k = 33; k >= 3; k -= 2) p = p * z + 1.0 / k;
    return 2.0 * (s + s * z * p);
}

/* The rule on u in [u0, u1] for exp(l_a(u) + l_b(log(y - e^u))) y/(y - e^u), x = e^u <= y/2, y = e^{w + rest}.
 * Places are formed as distances from the panels' ends: rounded beside the distance, not beside w. */
PE_CLONES static void half_piece(const double *ca, double a_lo, double a_hi, const double *cb, double b_lo,
                                 double b_hi, double w, double rest, double u0, double u1, const double *gx,
                                 const double *gw, double *top, double *total) {
    double e[N];
    double mid = 0.5 * (u0 + u1), half = 0.5 * (u1 - u0);
    double sa = 2.0 / (a_hi - a_lo), from_a = mid - a_lo;
    double sb = 2.0 / (b_hi - b_lo), from_b = (w - b_lo) + rest, ratio = (mid - w) - rest;
    for (int i = 0; i < N; i++) {
        double off = half * gx[i], l = vlog1m(pe_vexp(ratio + off));
        double ta = sa * (from_a + off) - 1.0, tb = sb * (from_b + l) - 1.0;
        double a1 = ca[N - 1], a2 = 0.0, b1 = cb[N - 1], b2 = 0.0;
        for (int k = N - 2; k > 0; k--) {
            double a0 = ca[k] + (2.0 * ta * a1 - a2), b0 = cb[k] + (2.0 * tb * b1 - b2);
            a2 = a1;
            a1 = a0;
            b2 = b1;
            b1 = b0;
        }
        e[i] = (ca[0] + (ta * a1 - a2)) + (cb[0] + (tb * b1 - b2)) - l;
    }
    double m = e[0], s = 0.0;
    for (int i = 1; i < N; i++) m = e[i] > m ? e[i] : m;
    for (int i = 0; i < N; i++) s += gw[i] * pe_vexp(e[i] - m);
    *top = m;
    *total = s * half;
}

/* Log of the integrand of half_piece at one u. */
static double log_integrand(const pe_law *a, const pe_law *b, size_t ia, size_t ib, double w, double u) {
    double l = u - w < -37.0 ? 0.0 : log1p(-exp(u - w));
    return panel_value(a, ia, u) + panel_value(b, ib, w + l) - l;
}

/* Contribution of x = e^u <= y/2 drawn from a, y - x from b. */
static void half_integral(pair_of_laws *pair, const pe_law *a, const pe_law *b, double w, double rest,
                          log_sum *sum) {
    double u1 = w - LOG2, u0 = a->edge[0], b_top = b->edge[b->n];
    if (b_top < w) {
        double need = b_top < w - LOG2 ? u1 : w + log1p(-exp(b_top - w));
        u0 = fmax(u0, need);
    }
    if (a->edge[a->n] < u1) u1 = a->edge[a->n];
    double b_at_end = w + log1p(-exp(u1 - w));
    if (b_at_end < b->edge[0]) {
        if (w <= b->edge[0]) return;
        u1 = w + log1p(-exp(b->edge[0] - w));
    }
    if (!(u1 > u0)) return;
    size_t ia = find_panel(a, u0), ib = find_panel(b, w + log1p(-exp(u0 - w)));
    /* pass 1: breakpoints, panel numbers, bound of the log integrand */
    size_t n = 0, most = a->n + b->n + 2;
    if (pair->room < most) {
        double *grown = realloc(pair->cut, 5 * most * sizeof(double));
        if (!grown) {
            pair->failed = 1;
            return;
        }
        pair->cut = grown;
        pair->room = most;
    }
    double top_bound = -INFINITY, u = u0;
    while (u < u1 && n < most) {
        double next = fmin(u1, a->edge[ia + 1]);
        int step_a = a->edge[ia + 1] <= u1, step_b = 0;
        double edge_b = b->edge[ib];
        if (edge_b > w - LOG2 - 1e-9 && edge_b < w) {
            double ub = w + log1p(-exp(edge_b - w));
            if (ub <= next) {
                step_a = ub == next && step_a;
                step_b = 1;
                next = fmax(ub, u);
            }
        }
        if (next > u) {
            double *c = pair->cut + 5 * n++;
            c[0] = u;
            c[1] = next;
            c[2] = (double)ia;
            c[3] = (double)ib;
            c[4] = a->peak[ia] + b->peak[ib] + LOG2; /* bound of the log integrand */
            top_bound = fmax(top_bound, c[4]);
        }
        u = next;
        if (step_a && ia + 1 < a->n) ia++;
        else if (step_a) break;
        if (step_b) {
            if (ib == 0) break;
            ib--;
        }
    }
    /* pass 2: the best of the promising middles; pass 3: all that can matter beside it */
    double best = sum->total > 0.0 ? sum->top : -INFINITY;
    for (size_t i = 0; i < n; i++) {
        double *c = pair->cut + 5 * i;
        if (c[4] < fmax(top_bound - 40.0, best)) continue;
        double middle = log_integrand(a, b, (size_t)c[2], (size_t)c[3], w, 0.5 * (c[0] + c[1]));
        best = fmax(best, middle + log(c[1] - c[0]) - 6.0);
    }
    for (size_t i = 0; i < n; i++) {
        const double *c = pair->cut + 5 * i;
        if (c[4] + log(c[1] - c[0]) < best - 42.0) continue;
        size_t pa = (size_t)c[2], pb = (size_t)c[3];
        double middle = log_integrand(a, b, pa, pb, w, 0.5 * (c[0] + c[1]));
        double change = fmax(fabs(log_integrand(a, b, pa, pb, w, c[0]) - middle),
                             fabs(log_integrand(a, b, pa, pb, w, c[1]) - middle));
        int pieces = 1 + (int)fmin(2.0 * change / PIECE_CHANGE, 64.0);
        for (int k = 0; k < pieces; k++) {
            double lo = c[0] + (c[1] - c[0]) * k / pieces;
            double hi = c[0] + (c[1] - c[0]) * (k + 1) / pieces, top, total;
            half_piece(a->coef + N * pa, a->edge[pa], a->edge[pa + 1], b->coef + N * pb, b->edge[pb],
                       b->edge[pb + 1], w, rest, lo, hi, pair->r->x, pair->r->w, &top, &total);
            accumulate(sum, top, total);
        }
        pair->work += pieces;
    }
}

static double sum_density(const void *context, double w, double rest) {
    pair_of_laws *pair = *(pair_of_laws *const *)context;
    log_sum sum = {-INFINITY, 0.0};
    if (pair->work > MAX_WORK) return NAN;
    half_integral(pair, pair->a, pair->b, w, rest, &sum);
    if (pair->a == pair->b) sum.total *= 2.0;
    else half_integral(pair, pair->b, pair->a, w, rest, &sum);
    return sum.total > 0.0 ? sum.top + log(sum.total) : -INFINITY;
}

/* What is integrated against the law of the unreversed A; s = e^w + floor, y_c = c - floor. */
typedef enum {
    UNDER_A,    /* 1 */
    UNDER_B,    /* e^s */
    GAIN_BELOW, /* 1 - e^{s-c} */
    GAIN_ABOVE, /* e^s (1 - e^{c-s}) */
} weight;

/* log of the integral of a weight over w in [from, to] */
static double integral(const pe_law *a, const rules *r, double from, double to, weight mode, double y_c) {
    from = fmax(from, a->edge[0]);
    to = fmin(to, a->edge[a->n]);
    log_sum sum = {-INFINITY, 0.0};
    if (!(to > from)) return -INFINITY;
    size_t first = find_panel(a, from), last = find_panel(a, to);
    for (size_t i = first; i <= last; i++) {
        double lo = fmax(from, a->edge[i]), hi = fmin(to, a->edge[i + 1]);
        if (!(hi > lo)) continue;
        double e0 = panel_value(a, i, lo), e1 = panel_value(a, i, hi);
        double em = panel_value(a, i, 0.5 * (lo + hi));
        double change = fmax(fabs(em - e0), fabs(e1 - em));
        if (mode != UNDER_A) change += exp(hi) - exp(lo);
        int pieces = 1 + (int)fmin(2.0 * change / PIECE_CHANGE, 256.0);
        for (int k = 0; k < pieces; k++) {
            double p0 = lo + (hi - lo) * k / pieces, p1 = lo + (hi - lo) * (k + 1) / pieces;
            double e[N], m = -INFINITY, total = 0.0;
            for (int j = 0; j < N; j++) {
                double w = 0.5 * (p0 + p1) + 0.5 * (p1 - p0) * r->x[j];
                e[j] = panel_value(a, i, w);
                if (mode == UNDER_B || mode == GAIN_ABOVE) e[j] += exp(w);
                if (mode == GAIN_BELOW) e[j] += log(-expm1(exp(w) - y_c));
                if (mode == GAIN_ABOVE) e[j] += log(-expm1(y_c - exp(w)));
                m = fmax(m, e[j]);
            }
            if (!(m > -INFINITY)) continue;
            for (int j = 0; j < N; j++) total += r->w[j] * exp(e[j] - m);
            accumulate(&sum, m, total * 0.5 * (p1 - p0));
        }
    }
    double shift = mode == UNDER_B || mode == GAIN_ABOVE ? a->floor : 0.0;
    return sum.total > 0.0 ? sum.top + log(sum.total) + shift : -INFINITY;
}

/* Cut the ends where the density is negligible under A and under B. */
static void trim(pe_law *a) {
    size_t first = 0, last = a->n;
    while (first + 1 < last && panel_value(a, first, a->edge[first + 1]) < a->deepest) first++;
    while (last > first + 1) {
        double w = a->edge[last - 1], s = exp(w) + a->floor;
        if (panel_value(a, last - 1, w) + fmax(s, 0.0) > a->deepest) break;
        last--;
    }
    memmove(a->edge, a->edge + first, (last - first + 1) * sizeof(double));
    memmove(a->coef, a->coef + N * first, (last - first) * N * sizeof(double));
    memmove(a->peak, a->peak + first, (last - first) * sizeof(double));
    a->n = last - first;
}

/* Scales g to total mass 1.  What was missing, and what the mass under B still misses, is the error
 * estimate: all errors of the halves have gone into these two numbers. */
static void normalise(pe_law *a, const rules *r) {
    double under_a = integral(a, r, -INFINITY, INFINITY, UNDER_A, 0.0);
    for (size_t i = 0; i < a->n; i++) {
        a->coef[N * i] -= under_a;
        a->peak[i] -= under_a;
    }
    double under_b = integral(a, r, -INFINITY, INFINITY, UNDER_B, 0.0);
    a->defect = 4.0 * (fabs(under_a) + fabs(under_b));
}

/* Where the density under A (side 0) or under B (side 1) is largest, to within a panel. */
static double mode(const pe_law *a, int side) {
    double best = -INFINITY, at = a->edge[0];
    for (size_t i = 0; i < a->n; i++) {
        double w = 0.5 * (a->edge[i] + a->edge[i + 1]);
        double v = side ? panel_value(a, i, w) + exp(w) : a->peak[i];
        if (v > best) {
            best = v;
            at = w;
        }
    }
    return at;
}

/* Log density of the sum under A, and on the right side under the law where it is larger. */
static double side_density(pair_of_laws **context, int side, double w) {
    double v = sum_density(context, w, 0.0);
    return side ? v + fmax(0.0, exp(w) + (*context)->floor) : v;
}

int pe_law_convolve(const pe_law *a, const pe_law *b, size_t max_panels, pe_law **out) {
    pe_law *c = calloc(1, sizeof *c);
    *out = c;
    if (!c) return PE_NO_MEMORY;
    rules r;
    make_rules(&r);
    c->deepest = fmax(a->deepest, b->deepest);
    double sum = a->floor + b->floor, back = sum - a->floor;
    double lost = (a->floor - (sum - back)) + (b->floor - back); /* exact, Knuth */
    double low_part = lost + (a->floor_low + b->floor_low);
    c->floor = sum + low_part;
    c->floor_low = low_part - (c->floor - sum);
    pair_of_laws pair = {a, b, &r, NULL, 0, 0, c->floor, a->work + (b == a ? 0.0 : b->work)};
    pair_of_laws *context = &pair;
    double low = fmax(a->edge[0], b->edge[0]) + 1e-9, a1 = a->edge[a->n], b1 = b->edge[b->n];
    double high = fmax(a1, b1) + log1p(exp(-fabs(a1 - b1))) - 1e-9;
    /* move the ends in, from what is possible to what is worth keeping */
    for (int side = 0; side < 2; side++) {
        double in = log(exp(mode(a, side)) + exp(mode(b, side))), out_ = side ? high : low;
        if (!(side_density(&context, side, in) > c->deepest)) in = fmin(fmax(a1, b1), high);
        for (int it = 0; it < 60 && fabs(in - out_) > 1e-4 * (1.0 + fabs(in)); it++) {
            double mid = 0.5 * (in + out_);
            if (side_density(&context, side, mid) > c->deepest) in = mid;
            else out_ = mid;
        }
        if (side) high = in;
        else low = in;
    }
    /* the cut ends of a and b show in the sum as kinks; go no further than there unless they are
     * below rounding */
    double centre = log(exp(mode(a, 0)) + exp(mode(b, 0)));
    for (int which = 0; which < 2; which++) {
        double at = which ? b1 : a1;
        if (at >= high || at <= low) continue;
        if (side_density(&context, 1, at - 1e-9) >= c->deepest + KINK) continue;
        if (at > centre) high = at - 1e-9;
        else low = at + 1e-9;
    }
    int status = high > low ? fill(c, sum_density, &context, low, high, &r, max_panels) : PE_TOO_COSTLY;
    free(pair.cut);
    c->work = pair.work;
    if (pair.failed) return PE_NO_MEMORY;
    if (status) return status;
    trim(c);
    normalise(c, &r);
    if (!(c->defect < MISSING)) return PE_TOO_COSTLY; /* the ends were cut too far in */
    c->depth = 1 + (a->depth > b->depth ? a->depth : b->depth);
    return PE_OK;
}

/* ---- questions ----------------------------------------------------------------------------- */

/* A reversed pair has the laws exchanged and the loss negated: its upper side is the lower one. */
static double functional_at(const pe_law *a, const rules *r, int reversed, int functional, double w) {
    static const int MIRROR[] = {PE_B_BELOW, PE_B_ABOVE, PE_A_BELOW, PE_A_ABOVE};
    if (functional == PE_PROFILE)
        return reversed ? integral(a, r, w, INFINITY, GAIN_ABOVE, exp(w))
                        : integral(a, r, -INFINITY, w, GAIN_BELOW, exp(w));
    switch (reversed ? MIRROR[functional] : functional) {
    case PE_A_ABOVE:
        return integral(a, r, w, INFINITY, UNDER_A, 0.0);
    case PE_A_BELOW:
        return integral(a, r, -INFINITY, w, UNDER_A, 0.0);
    case PE_B_ABOVE:
        return integral(a, r, w, INFINITY, UNDER_B, 0.0);
    default:
        return integral(a, r, -INFINITY, w, UNDER_B, 0.0);
    }
}

/* d log(functional) / dw where its log is v; negative where it falls as w grows. */
static double log_slope(const pe_law *a, const rules *r, int reversed, int functional, double w, double v) {
    double y = exp(w), c = y + a->floor;
    if (functional == PE_PROFILE) {
        double rest = functional_at(a, r, reversed, PE_B_BELOW, w);
        return (reversed ? -exp(rest + c - v) : exp(rest - c - v)) * y;
    }
    double g = panel_value(a, find_panel(a, w), w) + (reversed ? c : 0.0);
    return ((functional == PE_A_ABOVE) == (reversed != 0) ? 1.0 : -1.0) * exp(g - v);
}

static void law_row(const pe_law *a, const rules *r, int reversed, double w, double c, double *row) {
    int inside = w > a->edge[0] && w < a->edge[a->n];
    row[0] = c;
    row[1] = inside ? panel_value(a, find_panel(a, w), w) - w + (reversed ? -c : 0.0) : -INFINITY;
    for (int q = 0; q < PE_FUNCTIONALS; q++) {
        row[2 + q] = fmin(functional_at(a, r, reversed, q, w), 0.0);
        double size = fabs(row[2 + q]), steep = 0.0;
        /* a threshold is known to the rounding of w, and each convolution has added half a unit, as its
         * places are rounded beside the distance from a panel's end */
        double depth = 1.0 + a->depth, places = 1.0 + fabs(w) + 0.5 * depth;
        if (size < INFINITY && inside) steep = fabs(log_slope(a, r, reversed, q, w, row[2 + q])) * places;
        /* beyond the ends of the law there is nothing of the size that it keeps */
        row[2 + PE_FUNCTIONALS + q] = size < INFINITY
                                          ? a->defect + depth * (3e-14 + 1e-15 * size) + 1e-16 * steep
                                          : (a->defect < MISSING ? 0.0 : INFINITY);
    }
}

void pe_law_at(const pe_law *a, int reversed, size_t n, const double *c, double *rows) {
    rules r;
    make_rules(&r);
    for (size_t i = 0; i < n; i++) {
        double y = ((reversed ? -c[i] : c[i]) - a->floor) - a->floor_low;
        law_row(a, &r, reversed, y > 0.0 ? log(y) : -INFINITY, c[i], rows + PE_ROW * i);
    }
}

void pe_law_solve(const pe_law *a, int reversed, int functional, size_t n, const double *log_target,
                  double *rows) {
    rules r;
    make_rules(&r);
    double up = (functional == PE_A_ABOVE) == (reversed != 0) ? 1.0 : -1.0;
    for (size_t i = 0; i < n; i++) {
        double lo = a->edge[0], hi = a->edge[a->n], w = 0.5 * (lo + hi), last = INFINITY;
        for (int it = 0; it < 200 && hi - lo > 4e-16 * fabs(w); it++) {
            double v = functional_at(a, &r, reversed, functional, w), miss = log_target[i] - v;
            if (miss * up > 0.0) lo = w;
            else hi = w;
            double step = miss / log_slope(a, &r, reversed, functional, w, v);
            if (fabs(step) <= 1e-10) { /* the next step is lost in rounding */
                w += step;
                break;
            }
            double next = w + step;
            if (!(next > lo && next < hi) || fabs(step) > 0.6 * fabs(last)) next = 0.5 * (lo + hi);
            last = next - w;
            w = next;
        }
        double *row = rows + PE_ROW * i, c = exp(w) + a->floor;
        law_row(a, &r, reversed, w, reversed ? -c : c, row);
        row[2 + PE_FUNCTIONALS + functional] += fabs(row[2 + functional] - log_target[i]);
    }
}
