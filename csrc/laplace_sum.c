/* Tails and profile of a sum of equal Laplace losses, or of losses of bounded range, from the Bernstein coefficients of
 * its density on each unit interval (docs/theory/finite.md, Lemma 4).  All terms are positive.  Interface in answers.h;
 * pyengine.engines.exact.laplace holds the coefficients. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "answers.h"
#include "doubles.h"

static const double UNIT = DBL_EPSILON / 2;
static const double SUBNORMAL = 2e-317; /* absolute error of sums with terms below the normal doubles */
static const double NEGLIGIBLE = 1e-20; /* rest of an exponential series, relative to its first term */
static const double LOST = 0x1p-36; /* part of a difference below which its digits are lost */
enum { MOST = PE_LAPLACE_STEPS, TERMS = 140 }; /* terms of the series at rates up to 40 */
enum { A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERROR, SHIFT, TAILS };

/* A running sum with what rounding takes off: of positive terms, its error stays below 2u. */
static pe_dd with(pe_dd sum, double x) {
    const pe_dd both = pe_two_sum(sum.h, x);
    return (pe_dd){both.h, sum.l + both.l};
}

/* From k steps, the coefficients of the k polynomials of degree k - 1 and the k + 1 atoms, to those of one step more, in
 * `out`: a convolution with atoms at 0 and 1 and mu times the uniform law on (0, 1), divided by `whole`.  `share`: room for
 * k numbers.  Every coefficient has at most 11 roundings. */
static void one_more(size_t k, double ratio, double whole, int has_atoms, const double *curve,
                     const double *atoms, double *share, double *out) {
    const double degree = (double)k, scale = ratio / degree;
    for (size_t i = 0; i < k; i++) share[i] = (double)i / degree;
    for (size_t i = 0; i < (k + 1) * (k + 1); i++) out[i] = 0.0;
    for (size_t j = 0; j < k; j++) {
        const double *row = curve + j * k;
        double *first = out + j * (k + 1), *second = first + k + 1;
        /* the integral over one interval ends in the next one */
        pe_dd below = {0.0, 0.0}, above = {0.0, 0.0};
        for (size_t i = 0; i < k; i++) {
            below = with(below, row[i]);
            above = with(above, row[k - 1 - i]);
            first[i + 1] += scale * (below.h + below.l);
            second[k - 1 - i] += scale * (above.h + above.l);
        }
        if (!has_atoms) continue;
        /* the same polynomial with its degree raised by one */
        for (size_t i = 1; i < k; i++) {
            const double raised = share[i] * row[i - 1] + share[k - i] * row[i];
            first[i] += raised;
            second[i] += raised;
        }
        first[0] += row[0];
        second[0] += row[0];
        first[k] += row[k - 1];
        second[k] += row[k - 1];
    }
    for (size_t j = 0; j <= k; j++)
        for (size_t i = 0; i <= k; i++)
            out[j * (k + 1) + i] = (out[j * (k + 1) + i] + ratio * atoms[j]) / whole;
}

/* Map: the law of a sum of equal Laplace losses | test_exact | theory/finite */
int pe_laplace_sum_law(size_t steps, double ratio, int has_atoms, double *curve, double *atoms) {
    double *other = malloc(steps * (steps + 1) * sizeof *other), *share = other + steps * steps;
    double *from = steps % 2 ? other : curve;
    if (!other) return PE_NO_MEMORY;
    const double whole = has_atoms ? 2.0 + ratio : ratio;
    for (size_t k = 0; k <= steps; k++) atoms[k] = k ? 0.0 : 1.0;
    for (size_t k = 0; k < steps; k++) {
        double *into = from == curve ? other : curve;
        one_more(k, ratio, whole, has_atoms, from, atoms, share, into);
        for (size_t j = k + 1; j > 0; j--) atoms[j] = has_atoms ? (atoms[j] + atoms[j - 1]) / whole : 0.0;
        atoms[0] = has_atoms ? atoms[0] / whole : 0.0;
        from = into;
    }
    free(other);
    return PE_OK;
}

/* A place x in [0, N]: interval j, and the lengths t and 1 - t of it below and above x.  `y`: distance of x from the
 * nearer end, the upper one if `flip`; `near`: that of the loss, negative beyond the end. */
typedef struct {
    size_t j;
    double x, t, rest, y, near;
    int flip;
} place;

static place mirrored(const pe_laplace_sum *law, place at) {
    const place found = {
        law->steps - 1 - at.j, (double)law->steps - at.x, at.rest, at.t, at.y, at.near, !at.flip};
    return found;
}

/* The place of the loss c + low, measured from the nearer end to keep its digits there; relative error of `near` 4u */
static place place_of(const pe_laplace_sum *law, double c, double low) {
    const double steps = (double)law->steps, sign = (c > 0.0) - (c < 0.0);
    const pe_dd high = pe_two_sum(law->end.h, -fabs(c));
    const double near = high.h + (high.l + (law->end.l - sign * low));
    const double y = fmin(fmax(near / (2.0 * law->ratio), 0.0), 0.5 * steps);
    const double j = fmin(floor(y), steps - 1.0), t = y - j;
    const place found = {(size_t)j, y, t, 1.0 - t, y, near, 0};
    return c > 0.0 ? mirrored(law, found) : found;
}

/* Bernstein coefficients on (0, t), and on (t, 1) in `right`, with rest = 1 - t: de Casteljau's algorithm */
static void split(const pe_laplace_sum *law, place at, double *left, double *right) {
    const size_t size = law->steps;
    const double *row = law->curve + at.j * size;
    for (size_t k = 0; k < size; k++) right[k] = row[k];
    for (size_t r = 0; r < size; r++) {
        left[r] = right[0];
        for (size_t k = 0; k + r + 1 < size; k++) right[k] = at.rest * right[k] + at.t * right[k + 1];
    }
}

void pe_bernstein_exponentials(double rate, size_t size, double *even, double *odd) {
    double term[MOST], rest = 1.0;
    const double whole = (double)size;
    for (size_t k = 0; k < size; k++) odd[k] = 0.0;
    for (size_t k = 0; k < size; k++) even[k] = term[k] = 1.0 / whole;
    for (size_t i = 1; i < TERMS && rest > NEGLIGIBLE; i++) {
        const double power = (double)i, step = rate / power;
        double *into = i % 2 ? odd : even;
        for (size_t k = 0; k < size; k++) {
            term[k] *= step * ((whole - 1.0 - (double)k + power) / (whole + power));
            into[k] += term[k];
        }
        rest *= step;
    }
}

static double product(size_t size, const double *a, const double *b) {
    double sum = 0.0;
    for (size_t k = 0; k < size; k++) sum += a[k] * b[k];
    return sum;
}

/* A's masses above and below a place, without atoms and `scale`; `below` and `above`: e^(rate (1 - s)) integrated against
 * each polynomial, for the rates of the parts of the interval below and above the place */
static void curve_masses(const pe_laplace_sum *law, place at, const double *below, const double *above,
                         double *mass_above, double *mass_below) {
    double left[MOST], right[MOST];
    split(law, at, left, right);
    const double end = pe_d_exp(-law->ratio * ((double)at.j + 1.0)), own = pe_d_exp(-law->ratio * at.x);
    *mass_above = law->above[at.j + 1] + at.rest * end * product(law->steps, right, above);
    *mass_below = law->below[at.j] + at.t * own * product(law->steps, left, below);
}

/* Whether atom n lies above a place, both measured from the place's nearer end */
static int is_above(const pe_laplace_sum *law, place at, size_t n) {
    const int is_beyond = at.near < 0.0;
    return at.flip ? (double)(law->steps - n) < at.y && !is_beyond : (double)n > at.y || is_beyond;
}

static void tails_at(const pe_laplace_sum *law, double c, double *out) {
    const place at = place_of(law, c, 0.0);
    double below[MOST], above[MOST];
    pe_bernstein_exponentials(law->ratio * at.t, law->steps, below, below);
    pe_bernstein_exponentials(law->ratio * at.rest, law->steps, above, above);
    curve_masses(law, at, below, above, out + A_ABOVE, out + A_BELOW);
    curve_masses(law, mirrored(law, at), above, below, out + B_BELOW, out + B_ABOVE);
    double least = INFINITY;
    for (size_t n = 0; n <= law->steps; n++) {
        const int is_over = is_above(law, at, n);
        out[is_over ? A_ABOVE : A_BELOW] += law->atoms[n];
        out[is_over ? B_ABOVE : B_BELOW] += law->atoms[law->steps - n];
    }
    for (int part = A_ABOVE; part <= B_BELOW; part++) {
        out[part] *= law->scale;
        least = fmin(least, out[part]);
    }
    /* rounding of x shifts c; that of the mirrored x, of the ratio and of exponents changes masses; beyond both ends 0 is
     * exact */
    out[SHIFT] = 4.0 * UNIT * fabs(at.near);
    out[ERROR] = law->error + 4.0 * UNIT * (double)law->steps * law->ratio;
    if (law->lost > 0.0 && at.near > 0.0) out[ERROR] += law->lost / least;
}

int pe_laplace_sum_tails(void *law, size_t n, const double *c, double *tails) {
    for (size_t i = 0; i < n; i++) {
        double found[TAILS];
        tails_at(law, c[i], found);
        for (size_t part = 0; part < TAILS; part++) tails[part * n + i] = found[part];
    }
    return PE_OK;
}

int pe_laplace_sum_roughly(void *law, double c, double *masses) {
    double found[TAILS];
    tails_at(law, c, found);
    for (int part = A_ABOVE; part <= B_BELOW; part++) masses[part] = found[part];
    return PE_OK;
}

static void profile_at(const pe_laplace_sum *law, double epsilon, double low, double *value, double *error,
                       double *falls) {
    const double rate = law->ratio, steps = (double)law->steps;
    const place at = place_of(law, -epsilon, -low);
    const double fall = pe_d_exp(-rate * at.x);
    double left[MOST], right[MOST], even[MOST], odd[MOST];
    split(law, at, left, right);
    pe_bernstein_exponentials(rate * at.t, law->steps, even, odd);
    const double curved = product(law->steps, left, odd);
    /* A's mass below the place without its atoms; the integral of 2 e^(-rate x) sinh(rate (x - y)) over y < x */
    const double inner = law->below[at.j] + fall * at.t * (product(law->steps, left, even) + curved);
    double total = 2.0 * fall * at.t * curved;
    for (size_t i = 0; i < at.j; i++) {
        const double end = (double)i + 1.0, drop = -pe_d_expm1(-2.0 * rate * fmax(at.x - end, 0.0));
        total += pe_d_exp(-rate * end) * (drop * law->even[i] + (2.0 - drop) * law->odd[i]);
    }
    for (size_t n = 0; n <= law->steps && (double)n < at.x; n++)
        total += law->atoms[n] * -pe_d_expm1(-2.0 * rate * (at.x - (double)n));
    const int is_beyond = at.near <= 0.0, is_whole = is_beyond && epsilon < 0.0;
    *value = law->scale * total;
    if (is_beyond && epsilon > 0.0) *value = 0.0;
    if (is_whole) *value = -pe_d_expm1(epsilon + low);
    const double gap = is_whole ? 1.0 : at.near;
    /* error of the distance from the nearer end, and of mirroring */
    const double end = law->end.h;
    const double shift = UNIT * (4.0 * fmax(gap, 0.0) + UNIT * (8.0 * (end + fabs(epsilon)))) +
                         UNIT * 8.0 * end * (epsilon < 0.0);
    *error = *falls = 0.0;
    if (!(gap > -shift)) return;
    /* A's mass up to the place, plus atoms and density within the error of the place */
    const double moved = fmin(shift, rate) / rate + 8.0 * UNIT * at.x; /* no overflow of a quotient */
    double atoms = 0.0;
    for (size_t n = 0; n <= law->steps && (double)n <= at.x + moved; n++) atoms += law->atoms[n];
    const double density = fall * fmax(law->tallest[at.j], law->tallest[at.j + 1]);
    const double mass = law->scale * (inner + atoms), below = mass + law->scale * moved * density;
    /* what is left of A's mass, unless it is lost in its rounding */
    if (mass - *value > LOST * mass) *falls = mass - *value;
    /* rounding of the ratio and of exponents */
    const double relative = law->error + UNIT * steps * (2.0 + 4.0 * rate);
    *error = *value * relative + shift * below + fmax(law->lost, SUBNORMAL);
    if (!(*value > 0.5) || is_beyond || law->lost > 0.0) return;
    /* next to 1, what is left to it has the digits: A's mass above the place and e^epsilon times B's below */
    double tails[TAILS];
    tails_at(law, -epsilon, tails);
    const double root = pe_d_exp(0.5 * epsilon), rest = tails[A_ABOVE] + tails[B_BELOW] * root * root;
    const double off = (tails[ERROR] + 16.0 * UNIT) * rest + (tails[SHIFT] + fabs(low)) * below + UNIT;
    if (!(off < *error)) return;
    *value = 1.0 - rest;
    *error = off;
}

/* Map: the profile of a sum of equal Laplace losses | test_exact | theory/finite */
int pe_laplace_sum_profile(void *law, size_t n, const double *epsilon, const double *low, double *out) {
    for (size_t i = 0; i < n; i++)
        profile_at(law, epsilon[i], low ? low[i] : 0.0, out + i, out + n + i, out + 2 * n + i);
    return PE_OK;
}
