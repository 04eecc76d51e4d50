/* Many sampled Gaussian kinds of one rate as interpolations between few: M of a step is an entire function of 1/noise^2
 * for all practical purposes, so it is interpolated in that at Chebyshev points.  Errors are estimates
 * (docs/estimates.md).  Called by pair.c and contour.c; never by proofs. */

#include "noise_nodes.h"
#include "doubles.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "simd.h"

static const double PI = 3.14159265358979323846;
static const double OCTAVE = 2.0; /* largest noise of a family over its smallest */
/* least half range of 1/noise^2 over its middle, so that points differ */
static const double NARROWEST = 0.02;
static const double FEW_STEPS = 64.0; /* steps of a member, below: they multiply the error of M */
static const double ROUNDED = 8.0 * DBL_EPSILON; /* difference of two values by rounding, counted elsewhere */
enum {
    ALL = PE_NOISE_POINTS + PE_CONTROLS,
    WORTH = 2 * ALL, /* members from which on a family is cheaper */
};

/* ---- which kinds -------------------------------------------------------------------------------------- */

typedef struct {
    double noise, p, steps;
} kind;

static int by_rate_and_noise(const void *a, const void *b) {
    const kind *x = a, *y = b;
    const int x_many = x->steps >= FEW_STEPS, y_many = y->steps >= FEW_STEPS;
    if (x_many != y_many) return x_many - y_many;
    if (x->p != y->p) return x->p < y->p ? -1 : 1;
    return (x->noise > y->noise) - (x->noise < y->noise);
}

static void put(pe_kinds *out, double noise, double p, double steps, int family, int point) {
    const size_t i = out->n++;
    out->noise[i] = noise;
    out->p[i] = p;
    out->steps[i] = steps;
    out->family[i] = family;
    out->point[i] = point;
}

/* The variable of interpolation: M is even in 1/noise, and grows like an exponential of 1/noise^2 where noise is
 * small. */
static double square(double noise) {
    return 1.0 / (noise * noise);
}

/* Values of the Lagrange polynomials of the Chebyshev points v at x. */
static void lagrange(const double *v, double x, double *value) {
    double sum = 0.0;
    for (int j = 0; j < PE_NOISE_POINTS; j++) {
        if (x == v[j]) {
            for (int i = 0; i < PE_NOISE_POINTS; i++) value[i] = i == j;
            return;
        }
        value[j] = (j % 2 ? -1.0 : 1.0) * pe_d_sin(PI * (j + 0.5) / PE_NOISE_POINTS) / (x - v[j]);
        sum += value[j];
    }
    for (int j = 0; j < PE_NOISE_POINTS; j++) value[j] /= sum;
}

/* The kind with the largest product of distances to the points, where the interpolation is expected to be worst. */
static size_t farthest(const double *v, const kind *kinds, size_t n) {
    size_t best = 0;
    double most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        double log_product = 0.0;
        for (int j = 0; j < PE_NOISE_POINTS; j++)
            log_product += pe_d_log(fabs(square(kinds[i].noise) - v[j]));
        if (log_product > most) {
            most = log_product;
            best = i;
        }
    }
    return best;
}

/* Replaces n kinds of one rate, noise rising, by a family. */
static int put_family(pe_kinds *out, const kind *kinds, size_t n) {
    const double low = square(kinds[n - 1].noise), high = square(kinds[0].noise), middle = 0.5 * (low + high);
    const double half = fmax(0.5 * (high - low), NARROWEST * middle);
    const int number = (int)out->families;
    pe_family *set = &out->set[number];
    *set = (pe_family){.members = n};
    set->share = malloc((PE_NOISE_POINTS + 1) * n * sizeof(double));
    if (!set->share) return PE_NO_MEMORY;
    set->steps = set->share + PE_NOISE_POINTS * n;
    out->families++;
    double v[PE_NOISE_POINTS];
    for (int j = 0; j < PE_NOISE_POINTS; j++) {
        const double noise = 1.0 / sqrt(middle + half * pe_d_cos(PI * (j + 0.5) / PE_NOISE_POINTS));
        put(out, noise, kinds->p, 0.0, number, j);
        v[j] = square(noise); /* of the rounded noise, which the groups get */
    }
    for (size_t i = 0; i < n; i++) {
        lagrange(v, square(kinds[i].noise), set->share + PE_NOISE_POINTS * i);
        set->steps[i] = kinds[i].steps;
        set->total += kinds[i].steps;
    }
    for (size_t k = 0; k < PE_CONTROLS; k++) {
        const size_t from = k * n / PE_CONTROLS;
        set->control[k] = from + farthest(v, kinds + from, n / PE_CONTROLS);
        put(out, kinds[set->control[k]].noise, kinds->p, 0.0, number, (int)(PE_NOISE_POINTS + k));
    }
    return PE_OK;
}

/* How many of the first kinds may form one family */
static size_t octave(const kind *kinds, size_t n) {
    size_t count = 0;
    while (count < n && kinds[count].p == kinds->p && kinds[count].noise <= OCTAVE * kinds->noise &&
           kinds[count].steps < FEW_STEPS)
        count++;
    return count;
}

int pe_kinds_new(size_t n, const double *noise, const double *p, const double *steps, pe_kinds *out) {
    *out = (pe_kinds){0};
    if (n < WORTH) return PE_OK;
    kind *sorted = malloc(n * sizeof *sorted);
    out->block = malloc(3 * n * sizeof(double));
    out->family = malloc(2 * n * sizeof *out->family);
    int status = sorted && out->block && out->family ? PE_OK : PE_NO_MEMORY;
    out->noise = out->block;
    out->p = out->noise + n;
    out->steps = out->p + n;
    out->point = out->family + n;
    if (!status) {
        for (size_t i = 0; i < n; i++) sorted[i] = (kind){noise[i], p[i], steps[i]};
        qsort(sorted, n, sizeof *sorted, by_rate_and_noise);
    }
    for (size_t i = 0; i < n && !status;) {
        const size_t count = octave(sorted + i, n - i);
        if (sorted[i].p < 1.0 && count >= WORTH && out->families < PE_FAMILIES) {
            status = put_family(out, sorted + i, count);
            i += count;
        } else {
            put(out, sorted[i].noise, sorted[i].p, sorted[i].steps, -1, 0);
            i++;
        }
    }
    free(sorted);
    return status;
}

void pe_kinds_free(pe_kinds *kinds) {
    for (size_t f = 0; f < kinds->families; f++) free(kinds->set[f].share);
    free(kinds->block);
    free(kinds->family);
    *kinds = (pe_kinds){0};
}

size_t pe_kinds_bytes(const pe_kinds *kinds) {
    size_t total = kinds->n * (3 * sizeof(double) + 2 * sizeof(int));
    for (size_t f = 0; f < kinds->families; f++)
        total += (PE_NOISE_POINTS + 1) * kinds->set[f].members * sizeof(double);
    return total;
}

/* ---- cumulants ---------------------------------------------------------------------------------------- */

/* M, M' and M'' at the points of one family, and M - 1, as M may be near 1. */
typedef struct {
    double excess[PE_NOISE_POINTS], m[PE_NOISE_POINTS], first[PE_NOISE_POINTS], second[PE_NOISE_POINTS];
} moments;

static void set_moments(moments *out, const pe_cumulants *at) {
    for (int j = 0; j < PE_NOISE_POINTS; j++) {
        out->excess[j] = pe_d_expm1(at[j].k0);
        out->m[j] = pe_d_exp(at[j].k0);
        out->first[j] = out->m[j] * at[j].k1;
        out->second[j] = out->m[j] * (at[j].k2 + at[j].k1 * at[j].k1);
    }
}

static pe_cumulants member(const moments *at, const double *share) {
    double excess = 0.0, first = 0.0, second = 0.0;
    for (int j = 0; j < PE_NOISE_POINTS; j++) {
        excess += share[j] * at->excess[j];
        first += share[j] * at->first[j];
        second += share[j] * at->second[j];
    }
    const double mean = first / (1.0 + excess);
    return (pe_cumulants){pe_d_log1p(excess), mean, second / (1.0 + excess) - mean * mean};
}

void pe_kinds_cumulants(const pe_kinds *kinds, const pe_noise_cumulants *found, pe_cumulants *sum) {
    for (size_t f = 0; f < kinds->families; f++) {
        const pe_family *set = &kinds->set[f];
        moments at;
        set_moments(&at, found->at[f]);
        for (size_t i = 0; i < set->members; i++) {
            const pe_cumulants one = member(&at, set->share + PE_NOISE_POINTS * i);
            sum->k0 += set->steps[i] * one.k0;
            sum->k1 += set->steps[i] * one.k1;
            sum->k2 += set->steps[i] * one.k2;
        }
    }
}

double pe_kinds_cumulants_miss(const pe_kinds *kinds, const pe_noise_cumulants *found) {
    double miss = 0.0;
    for (size_t f = 0; f < kinds->families; f++) {
        const pe_family *set = &kinds->set[f];
        double most = 0.0;
        moments at;
        set_moments(&at, found->at[f]);
        for (size_t k = 0; k < PE_CONTROLS; k++) {
            const pe_cumulants one = member(&at, set->share + PE_NOISE_POINTS * set->control[k]);
            const double apart = fabs(one.k0 - found->at[f][PE_NOISE_POINTS + k].k0);
            most = isnan(apart) ? INFINITY : fmax(most, apart);
        }
        miss += set->total * most;
    }
    return miss;
}

/* ---- values ------------------------------------------------------------------------------------------- */

/* Sums of share[j] times the real and the imaginary parts at all points. */
PE_CLONES static void combine(const double *share, const double *values, size_t count, double *re,
                              double *im) {
    for (size_t k = 0; k < count; k++) re[k] = im[k] = 0.0;
    for (int j = 0; j < PE_NOISE_POINTS; j++) {
        const double *x = values + 2 * (size_t)j * count, *y = x + count, s = share[j];
        for (size_t k = 0; k < count; k++) {
            re[k] += s * x[k];
            im[k] += s * y[k];
        }
    }
}

/* M(lambda + i t)/M(lambda) of a member for all t; returns (log M)' at lambda. */
static double member_values(const moments *at, const double *share, const double *values, size_t count,
                            double *re, double *im) {
    const pe_cumulants one = member(at, share);
    const double own = pe_d_exp(-one.k0);
    double scaled[PE_NOISE_POINTS];
    for (int j = 0; j < PE_NOISE_POINTS; j++) scaled[j] = share[j] * at->m[j] * own;
    combine(scaled, values, count, re, im);
    return one.k1;
}

/* Multiplies the products of single steps by a member's values. */
PE_CLONES static void multiply(double *x, double *y, const double *re, const double *im, size_t count) {
    for (size_t k = 0; k < count; k++) {
        const double a = x[k], b = y[k];
        x[k] = a * re[k] - b * im[k];
        y[k] = a * im[k] + b * re[k];
    }
}

void pe_kinds_add(const pe_kinds *kinds, const pe_noise_cumulants *found, const double *values,
                  const pe_noise_block *out) {
    const size_t count = out->count;
    double *re = out->room, *im = re + count;
    for (size_t f = 0; f < kinds->families; f++, values += 2 * ALL * count) {
        const pe_family *set = &kinds->set[f];
        moments at;
        set_moments(&at, found->at[f]);
        for (size_t i = 0; i < set->members; i++) {
            const double n = set->steps[i];
            const double mean = member_values(&at, set->share + PE_NOISE_POINTS * i, values, count, re, im);
            if (n == 1.0) multiply(out->singles_re, out->singles_im, re, im, count);
            for (size_t k = 0; k < count; k++) {
                out->im[k] -= n * (double)(out->first + k) * out->ht * mean;
                if (n == 1.0) continue;
                out->re[k] += 0.5 * n * pe_d_log(re[k] * re[k] + im[k] * im[k]);
                out->im[k] += n * pe_d_atan2(im[k], re[k]);
            }
        }
    }
}

void pe_kinds_miss(const pe_kinds *kinds, const pe_noise_cumulants *found, const double *values,
                   const pe_noise_block *out, double *miss) {
    const size_t count = out->count;
    double *re = out->room, *im = re + count;
    for (size_t k = 0; k < count; k++) miss[k] = 0.0;
    for (size_t f = 0; f < kinds->families; f++, values += 2 * ALL * count) {
        const pe_family *set = &kinds->set[f];
        moments at;
        set_moments(&at, found->at[f]);
        for (size_t c = 0; c < PE_CONTROLS; c++) {
            const double *x = values + 2 * (PE_NOISE_POINTS + c) * count, *y = x + count;
            member_values(&at, set->share + PE_NOISE_POINTS * set->control[c], values, count, re, im);
            for (size_t k = 0; k < count; k++)
                miss[k] += set->total * fmax(pe_d_hypot(re[k] - x[k], im[k] - y[k]) - ROUNDED, 0.0) /
                           pe_d_hypot(x[k], y[k]);
        }
    }
}
