/* The law of e^L = S/t, S a sum of t lognormal numbers, by doubling.
 *
 * With densities f_j of L_j = log(S_j/j), p = j/(j + k), q = 1 - p and e^L = p e^x + q e^y, v = x - y,
 *
 *     f_{j+k}(L) = integral of f_j(x) f_k(y) dv,   x = L - log(p + q e^-v),   y = x - v,
 *
 * as the map (x, y) -> (L, v) has the Jacobian 1.  The integrand is positive and analytic, so the
 * trapezoidal rule converges geometrically and nothing cancels; L_j has its bulk near 0, where
 * doubles are dense.  t needs floor(t/2^i) and ceil(t/2^i) only.  See docs/theory/allocation.
 */
/* Map: random allocation, the law of one epoch | test_allocated_law | theory/allocation */
#include "allocation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "elementary.h"
#include "pyengine.h"
#include "simd.h"

static const double HALF_LOG_2PI = 0.91893853320467274178, LOG_2 = 0.69314718055994530942;

#define DEPTH 790.0 /* densities are known down to e^-DEPTH */
#define FALL 38.0   /* what of an integrand is e^-FALL of the rest is left out */
#define AGREED 3e-8 /* two lattices agree to this: their union has the square of it */
#define SUMS_AGREED 2e-13 /* there a narrow maximum may hide below 3e-8 of a wide one */
#define MOST_BLOCKS 3000000L
#define MOST_LOSS 600.0 /* e^L stays a double */

typedef struct work work;
struct work {
    double (*convolved)(work *w, double loss); /* log of the density of both parts together */
    pe_chebyshev chebyshev;
    double spacing; /* of v, kept from one place to the next */
    long blocks;    /* of the integrand so far */
    int is_rough;   /* an end is sought: a few digits do, and the table may be left */
    int failed;
    pe_log_density *out;
    const pe_log_density *f, *g;
    double p;
    size_t near[2][2]; /* pieces that were met last, of the larger and the smaller share */
};

/* The half of the integral where x >= y: the larger value has the weight 1 - q. */
typedef struct {
    const pe_log_density *large, *small;
    double q, loss;
    size_t *near;
} half;

/* e^x - 1 with relative accuracy, for x <= 0: below 2 ulp. */
PE_INLINE double expm1_lane(double x) {
    double xc = x < -700.0 ? -700.0 : x;
    double n = (xc * 0x1.71547652b82fep+0 + PE_MAGIC) - PE_MAGIC;
    double r = (xc - n * 0x1.62e42fefp-1) - n * 0x1.473de6af278edp-34;
    double r2 = r * r, r4 = r2 * r2;
    double q0 = (1.0 / 2 + 1.0 / 6 * r) + r2 * (1.0 / 24 + 1.0 / 120 * r);
    double q4 = (1.0 / 720 + 1.0 / 5040 * r) + r2 * (1.0 / 40320 + 1.0 / 362880 * r);
    double q8 = (1.0 / 3628800 + 1.0 / 39916800 * r) + r2 * (1.0 / 479001600 + 1.0 / 6227020800 * r);
    double e = r + r2 * (q0 + r4 * (q4 + r4 * q8));
    double two = pe_from_bits(pe_bits(n + (PE_MAGIC + 1023.0)) << 52);
    return two * e + (two - 1.0);
}

/* Logs of the integrand at v = first, first + step, ... */
PE_CLONES
static void exponents(half *h, double first, double step, double *out) {
    double x[PE_BLOCK], y[PE_BLOCK], a[PE_BLOCK], b[PE_BLOCK];
    double q = h->q, loss = h->loss;
    for (int l = 0; l < PE_BLOCK; l++) {
        double v = first + l * step;
        x[l] = loss - pe_log1m(-q * expm1_lane(-v));
        y[l] = x[l] - v;
    }
    pe_log_density_lanes(h->large, x, &h->near[0], a);
    pe_log_density_lanes(h->small, y, &h->near[1], b);
    for (int l = 0; l < PE_BLOCK; l++) out[l] = a[l] + b[l];
}

/* Sums of the terms at even and at odd numbers of the lattice, times e^-scale, and the difference of such
 * sums of the terms times a slope: errors at two maxima that are mirror images may cancel in the first. */
typedef struct {
    double even, odd, lean, scale;
} sums;

PE_CLONES
static void add(sums *s, const double *exponent, long number, double top, double from, double slope) {
    double e[PE_BLOCK], one = 0.0, two = 0.0, lean = 0.0;
    if (top > s->scale) {
        double shrink = exp(s->scale - top);
        s->even *= shrink;
        s->odd *= shrink;
        s->lean *= shrink;
        s->scale = top;
    }
    for (int l = 0; l < PE_BLOCK; l++) {
        double d = exponent[l] - s->scale;
        double y = pe_exp(d < -700.0 ? -700.0 : d);
        e[l] = d < -700.0 ? 0.0 : y;
    }
    for (int l = 0; l < PE_BLOCK; l += 2) {
        one += e[l];
        two += e[l + 1];
        lean += (from + l * slope) * e[l] - (from + (l + 1) * slope) * e[l + 1];
    }
    s->lean += number & 1 ? -lean : lean;
    s->even += number & 1 ? two : one;
    s->odd += number & 1 ? one : two;
}

static double largest(const double *x) {
    double top = x[0];
    for (int l = 1; l < PE_BLOCK; l++) top = x[l] > top ? x[l] : top;
    return top;
}

/* A local maximum of the integrand at positive v where one share is nearly the whole sum. */
typedef struct {
    long number;
    double top;
    int is_there;
} jump;

static jump find_jump(work *w, half *h) {
    jump j = {0, -INFINITY, 0};
    if (h->loss <= 0.0) return j;
    double p = 1.0 - h->q, e[PE_BLOCK];
    double v = h->loss > 600.0 ? h->loss - log(p) : log1p(expm1(h->loss) / p);
    long at = (long)(v / w->spacing), stride = 1;
    if (at < PE_BLOCK / 2) return j; /* the first block holds it */
    for (int trial = 0; trial < 60; trial++) {
        long first = at - stride * (PE_BLOCK / 2);
        if (first < 0) first = 0;
        exponents(h, (double)first * w->spacing, (double)stride * w->spacing, e);
        w->blocks++;
        int best = 0;
        for (int l = 1; l < PE_BLOCK; l++) best = e[l] > e[best] ? l : best;
        long found = first + best * stride;
        j.top = e[best];
        if (j.top <= 0.5 * PE_NOWHERE) return j;
        int at_edge = (best == 0 && first > 0) || best == PE_BLOCK - 1;
        if (at_edge && found != at) {
            stride *= 8;
        } else if (stride == 1) {
            at = found;
            break;
        } else {
            stride /= 8;
        }
        at = found;
    }
    j.number = at;
    j.is_there = at > 0;
    return j;
}

/* Whether an integrand has fallen far enough by its last value, and falls there. */
static int is_spent(double last, double before, double scale) {
    return last < scale - FALL && last <= before;
}

/* Adds the terms of v >= 0, that of v = 0 counted half. */
static void add_half(work *w, half *h, jump j, sums *s) {
    double e[PE_BLOCK], top, d = w->spacing;
    long k = 0;
    for (;;) {
        exponents(h, (double)k * d, d, e);
        w->blocks++;
        if (k == 0) e[0] -= LOG_2; /* it belongs to the other half as well */
        top = largest(e);
        add(s, e, k, top, 0.0, 0.0);
        k += PE_BLOCK;
        if (top <= 0.5 * PE_NOWHERE) break;
        if (is_spent(e[PE_BLOCK - 1], e[PE_BLOCK - 2], s->scale)) break;
        if (top < s->scale - FALL && j.is_there && j.number >= k) break;
        if (w->blocks > MOST_BLOCKS) {
            w->failed = PE_TOO_COSTLY;
            return;
        }
    }
    if (!j.is_there || j.top < s->scale - FALL || j.number < k) return;
    long start = j.number - PE_BLOCK / 2;
    if (start < k) start = k;
    for (long b = start;; b += PE_BLOCK) {
        exponents(h, (double)b * d, d, e);
        w->blocks++;
        top = largest(e);
        add(s, e, b, top, 0.0, 0.0);
        if (is_spent(e[PE_BLOCK - 1], e[PE_BLOCK - 2], s->scale)) break;
    }
    for (long b = start - PE_BLOCK; b > k - PE_BLOCK; b -= PE_BLOCK) {
        exponents(h, (double)b * d, d, e);
        w->blocks++;
        for (long l = 0; l < k - b; l++) e[l] = PE_NOWHERE; /* summed already */
        top = largest(e);
        add(s, e, b, top, 0.0, 0.0);
        if (is_spent(e[0], e[1], s->scale)) break;
        if (w->blocks > MOST_BLOCKS) {
            w->failed = PE_TOO_COSTLY;
            return;
        }
    }
}

/* The spacing for the next place, from how far even and odd terms are apart: the logarithm of the error
 * goes with the square of its inverse for a normal law, with the inverse at worst. */
static double next_spacing(double d, double off, double goal) {
    return fmin(d * sqrt(log(off + 1e-16) / log(goal)), 1.4 * d);
}

/* log f_{j+k}(loss) of two shares of a sum */
static double of_shares(work *w, double loss) {
    int same = w->f == w->g;
    for (int trial = 0; trial < 60 && !w->failed; trial++) {
        half one = {w->f, w->g, 1.0 - w->p, loss, w->near[0]}, two = {w->g, w->f, w->p, loss, w->near[1]};
        jump first = find_jump(w, &one), second = {0, -INFINITY, 0};
        if (!same) second = find_jump(w, &two);
        sums s = {0.0, 0.0, 0.0, first.top > second.top ? first.top : second.top};
        add_half(w, &one, first, &s);
        if (same) { /* both halves are equal, and v = 0 counted half */
            s.even *= 2.0;
            s.odd *= 2.0;
        } else {
            add_half(w, &two, second, &s);
        }
        if (s.scale <= 0.5 * PE_NOWHERE) return -INFINITY;
        double sum = s.even + s.odd, off = fabs(s.even - s.odd) / sum, d = w->spacing;
        if (off < (w->is_rough ? 0.3 : AGREED)) {
            w->spacing = fmin(next_spacing(d, off, 0.1 * AGREED), 0.25);
            return s.scale + log(sum * d);
        }
        w->spacing = d * (off > 1e-2 ? 0.5 : 0.8);
    }
    if (!w->failed) w->failed = PE_TOO_COSTLY;
    return NAN;
}

#define STRIDE 4        /* of the lattice that finds where terms matter */
#define MOST_SCANS 8192 /* blocks of that lattice */

/* Logs of f(x) g(y), y = k d, (k + stride) d, ... and x + y = loss = whole d + rest: both are as exact as
 * they are small. */
PE_CLONES
static void sum_exponents(work *w, double k, double stride, double whole, double rest, double *out) {
    double x[PE_BLOCK], y[PE_BLOCK], a[PE_BLOCK], b[PE_BLOCK], d = w->spacing;
    for (int l = 0; l < PE_BLOCK; l++) {
        double at = k + l * stride;
        y[l] = at * d;
        x[l] = (whole - at) * d + rest;
    }
    pe_log_density_lanes(w->f, x, &w->near[0][0], a);
    pe_log_density_lanes(w->g, y, &w->near[0][1], b);
    for (int l = 0; l < PE_BLOCK; l++) out[l] = a[l] + b[l];
}

/* log of the density of the sum of two losses.  Each may be a sum of several large ones, so that the
 * integrand has many maxima: a coarse lattice tells where they are. */
static double of_sums(work *w, double loss) {
    const pe_log_density *f = w->f, *g = w->g;
    double lowest = fmax(g->edge[0], loss - f->edge[f->n]);
    double highest = fmin(g->edge[g->n], loss - f->edge[0]);
    if (!(lowest < highest)) return -INFINITY;
    for (int trial = 0; trial < 60 && !w->failed; trial++) {
        double d = w->spacing, whole = nearbyint(loss / d), rest = fma(-whole, d, loss);
        double first = floor(lowest / d), e[PE_BLOCK], top[MOST_SCANS], best = -INFINITY;
        double scans = ceil((highest / d - first + 1.0) / (STRIDE * PE_BLOCK));
        if (!(scans <= MOST_SCANS)) break;
        size_t n = (size_t)scans;
        for (size_t i = 0; i < n; i++) {
            double k = first + (double)i * STRIDE * PE_BLOCK;
            sum_exponents(w, k, STRIDE, whole, rest, e);
            w->blocks++;
            top[i] = largest(e);
            best = fmax(best, top[i]);
        }
        if (best <= 0.5 * PE_NOWHERE) return -INFINITY;
        sums s = {0.0, 0.0, 0.0, best};
        double width = highest - lowest;
        for (size_t i = 0; i < n; i++) {
            /* a maximum between two places of the coarse lattice is little above them, but for the
             * narrow ones where one part is next to 0 */
            double from = first + (double)i * STRIDE * PE_BLOCK - PE_BLOCK;
            double to = from + (STRIDE + 2) * PE_BLOCK;
            int is_narrow = (from <= 0.0 && to >= 0.0) || (from <= whole && to >= whole);
            double beside = fmax(i ? top[i - 1] : PE_NOWHERE, i + 1 < n ? top[i + 1] : PE_NOWHERE);
            if (!is_narrow && fmax(top[i], beside) < s.scale - FALL - 10.0) continue;
            for (int j = 0; j < STRIDE; j++) {
                double k = first + ((double)i * STRIDE + j) * PE_BLOCK;
                sum_exponents(w, k, 1.0, whole, rest, e);
                w->blocks++;
                /* PE_BLOCK is even, so each block begins as the first one */
                add(&s, e, 0, largest(e), (2.0 * k * d - loss) / width, 2.0 * d / width);
            }
        }
        if (w->blocks > MOST_BLOCKS) break;
        double sum = s.even + s.odd, off = fmax(fabs(s.even - s.odd), fabs(s.lean)) / sum;
        if (off < (w->is_rough ? 0.3 : SUMS_AGREED)) {
            w->spacing = next_spacing(d, off, 0.1 * SUMS_AGREED);
            return s.scale + log(sum * d);
        }
        w->spacing = d * (off > 1e-2 ? 0.5 : 0.8);
    }
    if (!w->failed) w->failed = PE_TOO_COSTLY;
    return NAN;
}

/* Whether the pieces of the first factor between a and b are so small that one will not do here. */
static int is_too_long(const work *w, double a, double b) {
    const pe_log_density *f = w->f;
    if (a >= f->edge[f->n] || b <= f->edge[0]) return 0;
    for (size_t i = pe_piece_of(f, a, 0); i < f->n && f->edge[i] < b; i++)
        if (2.2 * (f->edge[i + 1] - f->edge[i]) < b - a) return 1;
    return 0;
}

static void refine(work *w, double a, double b, int level) {
    double middle = 0.5 * (a + b), radius = 0.5 * (b - a);
    if (!is_too_long(w, a, b)) {
        double value[PE_DEGREE_NODES], coef[PE_DEGREE_NODES];
        double least = INFINITY, most = -INFINITY, size = 0.0, smallest = INFINITY;
        for (int i = 0; i < PE_DEGREE_NODES; i++) {
            double v = value[i] = w->convolved(w, middle + radius * w->chebyshev.point[i]);
            if (!isfinite(v) && !w->failed) w->failed = PE_TOO_COSTLY;
            if (w->failed) return;
            least = v < least ? v : least;
            most = v > most ? v : most;
            size = fabs(v) > size ? fabs(v) : size;
            smallest = fabs(v) < smallest ? fabs(v) : smallest;
        }
        pe_chebyshev_fit(&w->chebyshev, value, coef);
        double rest = fabs(coef[PE_DEGREE_NODES - 1]) + fabs(coef[PE_DEGREE_NODES - 2]);
        /* large and small values do not share a piece, which would have the roundings of the large */
        if (most - least <= 6.0 + 2.0 * smallest && rest <= 4e-15 + 4e-16 * size) {
            if (pe_log_density_append(w->out, a, b, coef)) w->failed = PE_NO_MEMORY;
            return;
        }
    }
    if (level > 40) {
        w->failed = PE_TOO_COSTLY;
        return;
    }
    refine(w, a, middle, level + 1);
    if (!w->failed) refine(w, middle, b, level + 1);
}

/* Where the larger of both densities, f and e^L f, has fallen to e^-depth, between 0 and bound. */
static double end_of(work *w, double bound, double depth) {
    double base = w->convolved(w, 0.0), inner = 0.0, outer = bound, x = 0.5 * bound;
    double at_inner = 0.0, at_outer = NAN, goal = sqrt(base + depth);
    for (int trial = 0; trial < 100 && !w->failed; trial++) {
        double v = w->convolved(w, x) + (x > 0.0 ? x : 0.0);
        if (fabs(v + depth) < 5.0) return x;
        double fall = v < base ? sqrt(base - v) : 0.0; /* nearly linear for a normal law */
        if (v > -depth) {
            inner = x;
            at_inner = fall;
        } else {
            outer = x;
            at_outer = fall;
        }
        double middle = 0.5 * (inner + outer), next = middle;
        if (isfinite(at_outer) && trial % 3)
            next = inner + (goal - at_inner) / (at_outer - at_inner) * (outer - inner);
        x = fabs(next - middle) <= 0.5 * fabs(outer - inner) ? next : middle;
        if (fabs(outer - inner) <= 1e-9 * fabs(outer)) return inner;
    }
    return inner;
}

/* f_1, in pieces that keep values of one size together. */
static int first_density(pe_log_density *f, double mu, double lowest, double highest) {
    double edge[64], mean = -0.5 * mu * mu, left = (mean - lowest) / mu, right = (highest - mean) / mu;
    int n = 0;
    edge[n++] = lowest;
    for (double u = left / 1.7; u > 2.0; u /= 1.7) edge[n++] = mean - mu * u;
    for (double u = 2.0; u < right / 1.3; u *= 1.7) edge[n++] = mean + mu * u;
    edge[n] = highest;
    for (int i = 0; i < n; i++) {
        double middle = 0.5 * (edge[i] + edge[i + 1]), d = 0.5 * (edge[i + 1] - edge[i]) / mu;
        double z = (middle - mean) / mu, coef[PE_DEGREE_NODES] = {0.0};
        coef[0] = -0.5 * z * z - 0.25 * d * d - log(mu) - HALF_LOG_2PI;
        coef[1] = -z * d;
        coef[2] = -0.25 * d * d;
        if (pe_log_density_append(f, edge[i], edge[i + 1], coef)) return -1;
    }
    return 0;
}

/* Panels of a density, with their masses under both laws. */
static double at_place(const pe_log_density *f, double x, size_t piece) {
    double a = f->edge[piece], b = f->edge[piece + 1];
    return pe_clenshaw(f->coef + piece * PE_DEGREE_NODES, (x - 0.5 * (a + b)) * (2.0 / (b - a)));
}

typedef struct {
    size_t n, room;
    double *edge;
    size_t *piece;
} panels;

static int append_panel(panels *p, double end, size_t piece) {
    if (p->n + 2 > p->room) {
        size_t room = 2 * p->room + 256;
        double *edge = realloc(p->edge, room * sizeof(double));
        if (edge) p->edge = edge;
        size_t *rows = realloc(p->piece, room * sizeof(size_t));
        if (rows) p->piece = rows;
        if (!edge || !rows) return -1;
        p->room = room;
    }
    p->piece[p->n++] = piece;
    p->edge[p->n] = end;
    return 0;
}

#define CHANGE 5.0 /* of the logs between an end of a panel and its middle */

static int split_panels(panels *p, const pe_log_density *f, size_t piece, double a, double b, double at_a,
                        double at_b) {
    double middle = 0.5 * (a + b), width = middle - a, v = at_place(f, middle, piece);
    double one = fabs(v - at_a), two = fabs(at_b - v);
    if ((one + width > CHANGE || two + width > CHANGE) && p->n < 100000) {
        return split_panels(p, f, piece, a, middle, at_a, v) || split_panels(p, f, piece, middle, b, v, at_b);
    }
    return append_panel(p, b, piece);
}

/* Masses of a panel under both laws, times e^-scale. */
static void panel_masses(const pe_log_density *f, size_t piece, double a, double b, double scale,
                         double *masses) {
    double x[PE_BLOCK], v[PE_BLOCK], middle = 0.5 * (a + b), radius = 0.5 * (b - a);
    for (int i = 0; i < 8; i++) {
        x[7 - i] = middle - radius * pe_gauss_place[i];
        x[8 + i] = middle + radius * pe_gauss_place[i];
    }
    pe_log_density_block(f, x, &piece, v);
    masses[0] = masses[1] = 0.0;
    for (int l = 0; l < PE_BLOCK; l++) {
        double weight = radius * pe_gauss_weight[l < 8 ? 7 - l : l - 8];
        masses[0] += weight * exp(v[l] - scale);
        masses[1] += weight * exp(v[l] + x[l] - scale);
    }
}

static int make_panels(panels *p, const pe_log_density *f) {
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < f->n; i++) {
        double a = f->edge[i], b = f->edge[i + 1];
        if (split_panels(p, f, i, a, b, at_place(f, a, i), at_place(f, b, i))) return -1;
        p->edge[0] = f->edge[0];
    }
    return 0;
}

/* Divides a density by its mass, which is 1 but for the errors of the step that made it. */
static int normalise(pe_log_density *f, double *defect) {
    panels p;
    double total[2] = {0.0, 0.0};
    int status = make_panels(&p, f);
    for (size_t i = 0; i < p.n && !status; i++) {
        double masses[2], v = at_place(f, p.edge[i], p.piece[i]);
        if (v + (p.edge[i] > 0.0 ? p.edge[i + 1] : 0.0) < -80.0 - CHANGE) continue;
        panel_masses(f, p.piece[i], p.edge[i], p.edge[i + 1], 0.0, masses);
        total[0] += masses[0];
        total[1] += masses[1];
    }
    free(p.edge);
    free(p.piece);
    defect[0] = total[0] - 1.0;
    defect[1] = total[1] - 1.0;
    double excess = log1p(defect[0]);
    for (size_t i = 0; i < f->n; i++) f->coef[i * PE_DEGREE_NODES] -= excess;
    return status;
}

static int doubled(work *w, pe_log_density *out, double left, double right, double *defect) {
    int is_sum = w->convolved == of_sums;
    double one = w->f->edge[0], two = w->g->edge[0];
    double lowest = is_sum ? one + two : fmin(one, two);
    one = w->f->edge[w->f->n];
    two = w->g->edge[w->g->n];
    double highest = is_sum ? one + two : fmax(one, two);
    w->out = out;
    memset(w->near, 0, sizeof w->near);
    w->is_rough = 1;
    lowest = end_of(w, lowest, left);
    highest = end_of(w, highest, right);
    w->is_rough = 0;
    if (!w->failed) refine(w, lowest, highest, 0);
    if (!w->failed && normalise(out, defect)) w->failed = PE_NO_MEMORY;
    return w->failed;
}

static int copied(pe_log_density *out, const pe_log_density *f) {
    for (size_t i = 0; i < f->n; i++)
        if (pe_log_density_append(out, f->edge[i], f->edge[i + 1], f->coef + i * PE_DEGREE_NODES)) return -1;
    return 0;
}

static int bits_above(long n) {
    int levels = 0;
    while (((n + (1L << levels) - 1) >> levels) > 1) levels++;
    return levels;
}

#define MARGIN (FALL + 2.0) /* what lies beyond the right end of a part is e^-FALL of its sum there */

/* Replaces a density by that of n parts, from those of floor(n/2^i) and ceil(n/2^i) parts, i from the
 * number of bits down. */
static int of_parts(work *w, pe_log_density *f, long n, double left, double *right, double *defect) {
    pe_log_density now[2] = {*f, {0}};
    long have = 1;
    int status = PE_OK;
    memset(f, 0, sizeof *f);
    for (int i = bits_above(n) - 1; i >= 0 && !status; i--) {
        long need = n >> i, last = (n + (1L << i) - 1) >> i;
        pe_log_density next[2] = {{0}, {0}};
        *right -= MARGIN;
        for (long m = need; m <= last && !status; m++) {
            pe_log_density *out = &next[m - need];
            if (m == 1) {
                status = copied(out, &now[0]) ? PE_NO_MEMORY : PE_OK;
                continue;
            }
            w->f = &now[m / 2 - have];
            w->g = &now[m - m / 2 - have];
            w->p = (double)(m / 2) / (double)m;
            status = doubled(w, out, left, *right, defect);
        }
        for (int k = 0; k < 2; k++) {
            pe_log_density_free(&now[k]);
            now[k] = next[k];
        }
        have = need;
    }
    *f = now[0];
    pe_log_density_free(&now[1]);
    return status;
}

static int make_density(struct pe_epoch *epoch, long epochs) {
    work w;
    memset(&w, 0, sizeof w);
    pe_chebyshev_init(&w.chebyshev);
    double mu = epoch->mu;
    long t = (long)epoch->steps;
    double left = DEPTH + 50.0;
    double right = DEPTH + MARGIN * (bits_above(t) + bits_above(epochs) + 1);
    double lowest = -mu * (0.5 * mu + sqrt(2.0 * left));
    double highest = mu * (0.5 * mu + sqrt(2.0 * right)); /* e^L f has its mean at mu^2/2 */
    if (first_density(&epoch->density, mu, lowest, highest)) return PE_NO_MEMORY;
    w.spacing = mu < 0.6 ? 0.3 * mu : 0.2;
    w.convolved = of_shares;
    int status = of_parts(&w, &epoch->density, t, left, &right, epoch->defect);
    if (status || epochs == 1) return status;
    w.convolved = of_sums;
    w.spacing *= 0.5; /* of y, no longer of x - y */
    return of_parts(&w, &epoch->density, epochs, left, &right, epoch->defect);
}

static int tabulate_masses(struct pe_epoch *epoch) {
    panels p;
    if (make_panels(&p, &epoch->density)) return PE_NO_MEMORY;
    size_t n = p.n;
    epoch->panels = n;
    epoch->edge = p.edge;
    epoch->piece = p.piece;
    double *block = malloc(4 * (n + 1) * sizeof(double)), *mass = malloc(2 * n * sizeof(double));
    double *level = malloc(n * sizeof(double));
    int status = block && mass && level ? 0 : PE_NO_MEMORY;
    for (int law = 0; law < 2; law++) {
        epoch->below[law] = block ? block + (2 * law) * (n + 1) : NULL;
        epoch->above[law] = block ? block + (2 * law + 1) * (n + 1) : NULL;
    }
    for (size_t i = 0; i < n && !status; i++) {
        level[i] = at_place(&epoch->density, p.edge[i], p.piece[i]);
        panel_masses(&epoch->density, p.piece[i], p.edge[i], p.edge[i + 1], level[i], mass + 2 * i);
    }
    for (int law = 0; law < 2 && !status; law++) {
        double *below = epoch->below[law], *above = epoch->above[law];
        below[0] = above[n] = -INFINITY;
        /* sums in units that follow them, so that rounding counts relative to each sum */
        double unit = level[0], sum = 0.0;
        for (size_t i = 0; i < n; i++) {
            if (level[i] > unit + 50.0) {
                sum *= exp(unit - level[i]);
                unit = level[i];
            }
            sum += mass[2 * i + law] * exp(level[i] - unit);
            below[i + 1] = unit + log(sum);
        }
        unit = level[n - 1];
        sum = 0.0;
        for (size_t i = n; i-- > 0;) {
            if (level[i] > unit + 50.0) {
                sum *= exp(unit - level[i]);
                unit = level[i];
            }
            sum += mass[2 * i + law] * exp(level[i] - unit);
            above[i] = unit + log(sum);
        }
    }
    free(mass);
    free(level);
    return status;
}

int pe_epoch_new(double noise, double steps, double epochs, pe_epoch **out) {
    struct pe_epoch *epoch = *out = calloc(1, sizeof *epoch);
    if (!epoch) return PE_NO_MEMORY;
    epoch->mu = 1.0 / noise;
    epoch->steps = steps;
    epoch->doublings = bits_above((long)epochs);
    int status = make_density(epoch, (long)epochs);
    if (!status && epoch->density.edge[epoch->density.n] > MOST_LOSS) status = PE_TOO_COSTLY;
    return status ? status : tabulate_masses(epoch);
}

void pe_epoch_free(pe_epoch *epoch) {
    if (!epoch) return;
    pe_log_density_free(&epoch->density);
    free(epoch->edge);
    free(epoch->piece);
    free(epoch->below[0]); /* the block of all four */
    free(epoch);
}

size_t pe_epoch_bytes(const pe_epoch *epoch) {
    return sizeof *epoch + epoch->density.room * (PE_DEGREE_NODES + 1) * sizeof(double) +
           epoch->panels * (5 * sizeof(double) + sizeof(size_t));
}

void pe_epoch_ends(const pe_epoch *epoch, double *out) {
    out[0] = epoch->density.edge[0];
    out[1] = epoch->density.edge[epoch->density.n];
    out[2] = epoch->defect[0];
    out[3] = epoch->defect[1];
}

void pe_epoch_log_density(const pe_epoch *epoch, size_t n, const double *loss, double *out) {
    const pe_log_density *f = &epoch->density;
    size_t piece = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(loss[i] >= f->edge[0] && loss[i] <= f->edge[f->n])) {
            out[i] = isnan(loss[i]) ? NAN : -INFINITY;
            continue;
        }
        piece = pe_piece_of(f, loss[i], piece);
        out[i] = at_place(f, loss[i], piece);
    }
}
