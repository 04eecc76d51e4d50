/* The density of L with e^L = p e^x + q e^y at PE_BLOCK losses at once, by trapezoidal sums over v = x - y: an estimate
 * (docs/estimates.md).  Called by allocation.c.
 *
 * On the half v >= 0 x is the larger part; the other half is the same with both parts exchanged.  All losses share the
 * lattice of v, so that a term is a loop over losses that the compiler vectorises.  The integrand has maxima near v = 0,
 * where both parts share the sum, and at the v where y is typical and x is nearly the whole sum.  Where these are far
 * apart each has a lattice of its own, the second one starting from a v that differs from loss to loss.
 */
#include <math.h>
#include <string.h>

#include "convolved.h"
#include "doubles.h"
#include "simd.h"

#define AGREED 3e-8 /* relative difference of the even and odd lattices; their union errs by its square */
#define WIDEST 0.25 /* largest spacing of the lattice */
#define BEND 0.1 /* the second lattice: u = bend k, v = start + (d / bend) sinh u, bend <= BEND */
#define NO_TERMS (-4e6) /* log of an empty sum */

enum { STEPS = 8 }; /* lattice points of a chunk, after which the sum may end */
/* Points of the second lattice at most, and of the first one up to the second maximum for the second to be used */
enum { MOST_NUMBERS = 200, LEAST_NUMBERS = 40 };

/* The half of the integral where x >= y: the larger value x has the weight 1 - q, the smaller one q. */
typedef struct {
    const pe_log_density *large, *small;
    double q, mode; /* mode: of the smaller value's law */
    size_t *near;
} half;

/* Sums of the terms at even and at odd points of the lattice, times e^-scale, for each loss. */
typedef struct {
    double even[PE_BLOCK], odd[PE_BLOCK], scale[PE_BLOCK];
} sums;

/* Logs of the terms of STEPS lattice points. */
typedef struct {
    double log[STEPS][PE_BLOCK];
} chunk;

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

/* Terms at v = k d, (k + 1) d, ... */
PE_CLONES
static void about_zero(const half *h, const double *loss, double k, double d, chunk *c) {
    double x[PE_BLOCK], y[PE_BLOCK], a[PE_BLOCK], b[PE_BLOCK], v[STEPS], shift[STEPS];
    for (int s = 0; s < STEPS; s++) {
        v[s] = (k + s) * d;
        shift[s] = pe_log1m(-h->q * expm1_lane(-v[s]));
    }
    for (int s = 0; s < STEPS; s++) {
        for (int l = 0; l < PE_BLOCK; l++) {
            x[l] = loss[l] - shift[s];
            y[l] = x[l] - v[s];
        }
        pe_log_density_lanes(h->large, x, &h->near[0], a);
        pe_log_density_lanes(h->small, y, &h->near[1], b);
        for (int l = 0; l < PE_BLOCK; l++) c->log[s][l] = a[l] + b[l];
    }
}

/* Terms of the second lattice for u = bend k, bend (k + 1), ...; dv/du = (d / bend) cosh u. */
PE_CLONES
static void about_start(const half *h, const double *loss, const double *start, double k, double d,
                        double bend, chunk *c) {
    double x[PE_BLOCK], y[PE_BLOCK], a[PE_BLOCK], b[PE_BLOCK], shift[STEPS], weight[STEPS];
    for (int s = 0; s < STEPS; s++) {
        double up = pe_exp(bend * (k + s)), down = 1.0 / up;
        shift[s] = (0.5 / bend) * d * (up - down);
        weight[s] = pe_log(0.5 * (up + down));
    }
    for (int s = 0; s < STEPS; s++) {
        for (int l = 0; l < PE_BLOCK; l++) {
            double v = start[l] + shift[s];
            x[l] = loss[l] - pe_log1m(-h->q * expm1_lane(-v));
            y[l] = x[l] - v;
        }
        pe_log_density_lanes(h->large, x, &h->near[0], a);
        pe_log_density_lanes(h->small, y, &h->near[1], b);
        for (int l = 0; l < PE_BLOCK; l++) c->log[s][l] = a[l] + b[l] + weight[s];
    }
}

/* Adds a chunk that begins with an even point; `top`: its largest term for each loss. */
PE_CLONES
static void add(sums *restrict s, const chunk *restrict c, double *restrict top) {
    for (int l = 0; l < PE_BLOCK; l++) top[l] = c->log[0][l];
    for (int i = 1; i < STEPS; i++)
        for (int l = 0; l < PE_BLOCK; l++) top[l] = c->log[i][l] > top[l] ? c->log[i][l] : top[l];
    for (int l = 0; l < PE_BLOCK; l++) {
        double scale = top[l] > s->scale[l] ? top[l] : s->scale[l], d = s->scale[l] - scale;
        double shrink = pe_exp(d < -700.0 ? -700.0 : d);
        s->even[l] *= shrink;
        s->odd[l] *= shrink;
        s->scale[l] = scale;
    }
    for (int i = 0; i < STEPS; i += 2) {
        for (int l = 0; l < PE_BLOCK; l++) { /* e^-700 is negligible beside the largest term */
            double one = c->log[i][l] - s->scale[l], two = c->log[i + 1][l] - s->scale[l];
            s->even[l] += pe_exp(one < -700.0 ? -700.0 : one);
            s->odd[l] += pe_exp(two < -700.0 ? -700.0 : two);
        }
    }
}

static void clear(sums *s) {
    for (int l = 0; l < PE_BLOCK; l++) {
        s->even[l] = s->odd[l] = 0.0;
        s->scale[l] = NO_TERMS;
    }
}

/* Whether for every loss the last term is below e^-PE_FALL of the largest one, and terms fall. */
static int is_spent(const sums *s, const double *top, const double *last, const double *before) {
    for (int l = 0; l < PE_BLOCK; l++) {
        if (top[l] <= 0.5 * PE_NOWHERE) continue;
        if (!(last[l] < s->scale[l] - PE_FALL && last[l] <= before[l])) return 0;
    }
    return 1;
}

/* The first point of a chunk (from its end if backwards) at which the terms of all losses have fallen by e^-PE_FALL and,
 * unless `beside` (the other lattice covers what follows), fall; removes the terms beyond it.  -1 if there is none. */
static int cut(const sums *s, chunk *c, int backwards, int beside) {
    for (int i = 1; i < STEPS; i++) {
        int now = backwards ? STEPS - 1 - i : i, before = backwards ? now + 1 : now - 1, all = 1;
        for (int l = 0; l < PE_BLOCK; l++) {
            double v = c->log[now][l];
            all &= v < s->scale[l] - PE_FALL && (beside || v <= c->log[before][l]);
        }
        if (!all) continue;
        for (int j = i + 1; j < STEPS; j++)
            for (int l = 0; l < PE_BLOCK; l++) c->log[backwards ? STEPS - 1 - j : j][l] = PE_NOWHERE;
        return i;
    }
    return -1;
}

/* Counts a chunk; returns whether the work is within its limit. */
static int counts(pe_parts *w) {
    w->blocks += STEPS;
    if (w->blocks > PE_MOST_BLOCKS && !w->failed) w->failed = PE_TOO_COSTLY;
    return !w->failed;
}

/* Sums the lattice from v = 0 (half weight, as both halves share it) up to `least` or further; with `beside`, where the
 * second maximum has its own lattice, until the terms are negligible.  Returns its end. */
static double add_from_zero(pe_parts *w, const half *h, const double *loss, double least, int beside,
                            sums *s) {
    double d = w->spacing, top[PE_BLOCK];
    chunk c;
    for (long k = 0; counts(w); k += STEPS) {
        about_zero(h, loss, (double)k, d, &c);
        if (k == 0)
            for (int l = 0; l < PE_BLOCK; l++) c.log[0][l] -= 0.69314718055994530942;
        int at = beside ? cut(s, &c, 0, 1) : -1;
        add(s, &c, top);
        if (at >= 0) return (double)(k + at) * d;
        if ((double)(k + STEPS) * d > least && is_spent(s, top, c.log[STEPS - 1], c.log[STEPS - 2]))
            return (double)(k + STEPS) * d;
    }
    return INFINITY;
}

/* Sums the second lattice in both directions from `start`.  Returns how far down it reaches; infinite if it meets the
 * first one. */
static double add_about(pe_parts *w, const half *h, const double *loss, const double *start, double least,
                        sums *s) {
    double d = w->spacing, top[PE_BLOCK];
    chunk c;
    for (long k = 0; counts(w) && k < MOST_NUMBERS; k += STEPS) {
        about_start(h, loss, start, (double)k, d, w->bend, &c);
        add(s, &c, top);
        if (is_spent(s, top, c.log[STEPS - 1], c.log[STEPS - 2])) break;
    }
    for (long k = -1; counts(w) && k > -MOST_NUMBERS; k -= STEPS) {
        about_start(h, loss, start, (double)(k - (STEPS - 1)), d, w->bend, &c);
        int at = cut(s, &c, 1, 0);
        double reach = -d / w->bend * pe_d_sinh(w->bend * (double)(k - (at < 0 ? STEPS - 1 : at)));
        if (reach > least) return INFINITY;
        add(s, &c, top);
        if (at >= 0) return reach;
    }
    return INFINITY;
}

/* The v at which y is the mode of its law, 0 if there is none, for each loss; the least and the largest of them. */
static void second_maxima(const half *h, const double *loss, double *start, double *ends) {
    double p = 1.0 - h->q;
    ends[0] = INFINITY;
    ends[1] = 0.0;
    for (int l = 0; l < PE_BLOCK; l++) {
        double x = loss[l] - h->mode;
        start[l] = x <= 0.0 ? 0.0 : x > 600.0 ? x - pe_d_log(p) : pe_d_log1p(pe_d_expm1(x) / p);
        ends[0] = fmin(ends[0], start[l]);
        ends[1] = fmax(ends[1], start[l]);
    }
}

/* Whether for every loss the integrand falls by e^-PE_FALL between the second maximum and v = 0. */
static int are_apart(pe_parts *w, const half *h, const double *loss, const double *start) {
    double half_way[PE_BLOCK];
    chunk between, at;
    for (int l = 0; l < PE_BLOCK; l++) half_way[l] = 0.5 * start[l];
    about_start(h, loss, half_way, 0.0, 0.0, BEND, &between);
    about_start(h, loss, start, 0.0, 0.0, BEND, &at);
    for (int l = 0; l < PE_BLOCK; l++)
        if (!(between.log[0][l] < at.log[0][l] - PE_FALL)) return 0;
    return counts(w);
}

/* Both halves with one spacing: the logs of the integrals; returns the largest relative difference of even and odd
 * sums. */
static double integrate(pe_parts *w, const double *loss, double *out) {
    int same = w->f == w->g, n = same ? 1 : 2;
    half halves[2] = {{w->f, w->g, 1.0 - w->p, w->mode[1], w->near[0]},
                      {w->g, w->f, w->p, w->mode[0], w->near[1]}};
    sums centre, side[2];
    double ends[2][2], reach[2] = {INFINITY, INFINITY}, d = w->spacing, worst = 0.0;
    clear(&centre);
    for (int i = 0; i < n; i++) {
        double start[PE_BLOCK];
        clear(&side[i]);
        second_maxima(&halves[i], loss, start, ends[i]);
        if (ends[i][0] < LEAST_NUMBERS * d || !are_apart(w, &halves[i], loss, start)) continue;
        reach[i] = add_about(w, &halves[i], loss, start, ends[i][0], &side[i]);
        if (reach[i] < INFINITY)
            for (int l = 0; l < PE_BLOCK; l++) centre.scale[l] = fmax(centre.scale[l], side[i].scale[l]);
        else clear(&side[i]);
    }
    sums before = centre;
    for (int i = 0; i < n && !w->failed; i++) {
        int beside = reach[i] < INFINITY;
        double end = add_from_zero(w, &halves[i], loss, beside ? 0.0 : ends[i][1], beside, &centre);
        if (!beside || end <= ends[i][0] - reach[i]) continue;
        /* both lattices meet: start again with one for this half */
        reach[i] = INFINITY;
        clear(&side[i]);
        centre = before;
        i = -1;
    }
    for (int l = 0; l < PE_BLOCK; l++) {
        double sum = centre.even[l] + centre.odd[l], off = fabs(centre.even[l] - centre.odd[l]);
        for (int i = 0; i < n; i++) {
            double unit = pe_d_exp(side[i].scale[l] - centre.scale[l]);
            sum += unit * (side[i].even[l] + side[i].odd[l]);
            off += unit * fabs(side[i].even[l] - side[i].odd[l]);
        }
        if (centre.scale[l] <= 0.5 * PE_NOWHERE) {
            out[l] = -INFINITY;
            continue;
        }
        out[l] = centre.scale[l] + pe_d_log((same ? 2.0 : 1.0) * sum * d); /* both halves are equal then */
        if (!pe_is_below_floor(w, loss[l], out[l])) worst = fmax(worst, off / sum);
    }
    return worst;
}

void pe_convolved_shares(pe_parts *w, const double *loss, double *out) {
    for (int trial = 0; trial < 60 && !w->failed; trial++) {
        double d = w->spacing, off = integrate(w, loss, out);
        if (off < AGREED) {
            double next = fmin(pe_next_spacing(d, off, 0.1 * AGREED), WIDEST);
            w->spacing = next * fmax(fmin(next / w->last, 1.0), 0.8); /* extrapolates a falling trend */
            w->last = next;
            w->bend = fmin(1.2 * w->bend, BEND);
            return;
        }
        double factor = off > 1e-2 ? 0.5 : 0.8;
        w->spacing *= factor;
        w->bend *= factor;
    }
    if (!w->failed) w->failed = PE_TOO_COSTLY;
}
