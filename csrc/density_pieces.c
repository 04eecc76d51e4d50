/* The density of a sum of two parts as polynomials on pieces, from loss 0 outwards: estimates (docs/estimates.md).
 * Called by allocation.c.
 *
 * The log density is interpolated at the Chebyshev points of a piece; the last two coefficients tell whether the
 * piece is short enough, and how long the next one may be.
 */
#include <math.h>
#include <string.h>

#include "convolved.h"
#include "doubles.h"

#define LOOSE 5.0 /* nats by which an end may miss the depth asked for */
#define MOST_TRIALS 100000
#define SHORTEST 1e-12 /* length of a piece */

enum { LAST = PE_DEGREE_NODES - 1 };

typedef struct {
    double radius, value[PE_DEGREE_NODES], coef[PE_DEGREE_NODES];
    double longer; /* factor of length for the next piece; below 1: this one is too long */
} piece;

static void sample(pe_parts *w, const pe_chebyshev *chebyshev, double a, double b, piece *p) {
    double loss[PE_DEGREE_NODES], middle = 0.5 * (a + b), radius = 0.5 * (b - a);
    for (int i = 0; i < PE_DEGREE_NODES; i++) loss[i] = middle + radius * chebyshev->point[i];
    w->convolved(w, loss, p->value);
    p->radius = radius;
}

/* Coefficients of a piece, and `longer`.  Large and small log values do not share a piece, as its rounding is that of
 * the large ones. */
static void fit(const pe_chebyshev *chebyshev, piece *p) {
    double least = INFINITY, most = -INFINITY, size = 0.0, smallest = INFINITY;
    for (int i = 0; i < PE_DEGREE_NODES; i++) {
        double v = p->value[i];
        least = fmin(least, v);
        most = fmax(most, v);
        size = fmax(size, fabs(v));
        smallest = fmin(smallest, fabs(v));
    }
    pe_chebyshev_fit(chebyshev, p->value, p->coef);
    double rest = fabs(p->coef[LAST]) + fabs(p->coef[LAST - 1]), goal = 4e-15 + 4e-16 * size;
    if (rest > goal) { /* coefficient n is proportional to the n-th power of the length */
        p->longer = fmax(fmin(0.95 * pe_d_pow(goal / rest, 1.0 / LAST), 0.9), 0.25);
    } else { /* coefficients from n on are rounding: a longer piece may have that from LAST on only */
        int n = LAST;
        while (n > 4 && fabs(p->coef[n - 1]) <= goal) n--;
        p->longer = fmin(fmax(0.95 * pe_d_exp(-pe_d_log(4e-16) * (1.0 / n - 1.0 / LAST)), 1.0), 2.0);
    }
    double range = (most - least) / (6.0 + 2.0 * smallest);
    if (range > 1.0) p->longer = fmin(p->longer, 0.9 / range);
    else p->longer = fmin(p->longer, fmax(1.3 / range, 1.0));
}

/* Where the larger one of both laws' densities falls to e^-depth on the piece from `inner` to `outer`, by linear
 * interpolation; NaN if it does not. */
static double end_in(const pe_chebyshev *chebyshev, const piece *p, double inner, double outer,
                     double depth) {
    double before = inner, at_before = INFINITY;
    for (int i = 0; i < PE_DEGREE_NODES; i++) {
        int j = outer > inner ? LAST - i : i; /* points decrease */
        double x = 0.5 * (inner + outer) + p->radius * chebyshev->point[j];
        double v = p->value[j] + fmax(x, 0.0);
        if (!(v >= -depth - LOOSE)) {
            if (!isfinite(at_before) || !isfinite(v)) return before;
            return before + (x - before) * fmax(at_before + depth, 0.0) / (at_before - v);
        }
        before = x;
        at_before = v;
    }
    return NAN;
}

/* Appends pieces from 0 to `bound`, or to where both densities have fallen to e^-depth. */
static void outwards(pe_parts *w, const pe_chebyshev *chebyshev, double bound, double depth, double length,
                     pe_log_density *out) {
    double a = 0.0, reached = INFINITY;
    w->floor = -depth - LOOSE;
    w->last = w->spacing;
    for (int trial = 0; trial < MOST_TRIALS && !w->failed; trial++) {
        double b = bound > 0.0 ? a + length : a - length;
        piece p;
        if (fabs(b) >= fabs(bound)) b = bound;
        if (reached <= -depth + LOOSE || a == bound) return;
        sample(w, chebyshev, fmin(a, b), fmax(a, b), &p);
        if (w->failed) return;
        double end = end_in(chebyshev, &p, a, b, depth);
        if (!isnan(end)) {
            length *= 0.25;
            if (end != a) length = fabs(end - a);
            if (length < SHORTEST) w->failed = PE_TOO_COSTLY;
            continue;
        }
        fit(chebyshev, &p);
        length = p.longer * fabs(b - a);
        if (p.longer < 1.0) continue;
        w->failed = pe_log_density_append(out, a, b, p.coef);
        if (w->failed) return;
        reached = b > 0.0 ? p.value[0] + b : p.value[LAST];
        a = b;
    }
    if (!w->failed) w->failed = PE_TOO_COSTLY;
}

/* The length of the first piece beyond 0. */
static double first_length(const pe_log_density *f) {
    size_t i = pe_piece_of(f, 0.0, f->n / 2);
    return f->edge[i + 1] - f->edge[i];
}

/* About the loss at which a density is largest. */
static double mode(const pe_log_density *f) {
    double at = 0.0, most = -INFINITY;
    for (size_t i = 0; i < f->n; i++) {
        for (int j = 0; j < 8; j++) {
            double x = f->edge[i] + 0.125 * j * (f->edge[i + 1] - f->edge[i]);
            double v = pe_log_density_at(f, x, i);
            at = v > most ? x : at;
            most = v > most ? v : most;
        }
    }
    return at;
}

void pe_density_of_parts(pe_parts *w, const double *ends, double left, double right, pe_log_density *out) {
    pe_chebyshev chebyshev;
    pe_log_density below = {0};
    double length = fmin(first_length(w->f), first_length(w->g));
    pe_chebyshev_init(&chebyshev);
    memset(w->near, 0, sizeof w->near);
    w->mode[0] = mode(w->f);
    w->mode[1] = w->g == w->f ? w->mode[0] : mode(w->g);
    outwards(w, &chebyshev, ends[0], left, length, &below);
    for (size_t i = below.n; i-- > 0 && !w->failed;) {
        w->failed = pe_log_density_copy(out, &below, i);
    }
    pe_log_density_free(&below);
    if (!w->failed) outwards(w, &chebyshev, ends[1], right, length, out);
}
