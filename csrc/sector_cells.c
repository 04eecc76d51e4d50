/* Bounds of how the density of a sum of losses grows in the sector (kappa) and of its slope to the left: Lemmas 2 to 4
 * of docs/theory/sector_laws.md; and the table of cells that holds kappa and bounds of log F. */

#include <math.h>
#include <stdlib.h>

#include "doubles.h"
#include "sector.h"

static const double OUTWARDS = 1.0 + 1e-9; /* factor for the rounding of bounds */
static const double SMALL = 0.01; /* losses up to which q(r) is bounded by a multiple of r */
static const double COSINE = 0.70710678118654752; /* cos(pi/4), rounded downwards */

/* P_1 of Lemma 2: upper bound of |p|, p(s) = s/(1 - e^-s), |s| = r, |arg s| <= pi/4 or r <= 1, */
static double most_p(double r) {
    return fmin(1.0 + r / 2.0 + r * r / 11.75, -r / pe_d_expm1(-COSINE * r));
}

/* and P_2, of |s p'(s)| = |p| |1 - s/(e^s - 1)|. */
static double most_slope(double r) {
    const double p = -r / pe_d_expm1(-COSINE * r);
    return fmin(r / 2.0 + r * r / 5.75, p * (1.0 + p * pe_d_exp(-COSINE * r)));
}

/* max(L, 0) of Lemma 2 at a loss r */
static double largest_root(double r, double offset) {
    const double log_em1 = r > 30.0 ? r : pe_d_log(pe_d_expm1(r));
    return fmax(log_em1 + offset, 0.0);
}

/* Upper bound of q(r)/r for from <= r <= to, the largest over the kinds (Lemma 2; groups by Lemma 9). */
static double growth_ratio(const pe_sector_kinds *k, double from, double to) {
    double most = 0.0;
    for (size_t i = 0; i < k->n; i++) {
        const double root = largest_root(to, k->offset[i]), rate = k->rate[i];
        const double *over = k->bent[i].over;
        double q;
        if (k->bent[i].base > 0.0) {
            q = 0.5 * (rate * (over[0] * (2.0 + over[0] * to) + over[1] * root) + over[2]);
        } else if (to <= SMALL) {
            q = 0.5 * rate * (1.01 + 0.502 * root) + 0.251;
        } else {
            const double p = most_p(to), slope = most_slope(to);
            q = 0.5 * (rate * ((p * p - 1.0) + slope * root) + slope) / from;
        }
        most = fmax(most, q);
    }
    return most;
}

double pe_sector_rates(const pe_sector_kinds *k) {
    double sum = 0.0;
    for (size_t i = 0; i < k->n; i++) sum += k->number[i] * k->rate[i];
    return sum;
}

/* The part of kappa that does not depend on the losses, the sum of n/(2 mu^2) (for groups times their base). */
static double base_growth(const pe_sector_kinds *k) {
    double sum = 0.0;
    for (size_t i = 0; i < k->n; i++) {
        const double own = k->number[i] * k->rate[i];
        sum += k->bent[i].base > 0.0 ? own * k->bent[i].base : own;
    }
    return 0.5 * sum;
}

double pe_sector_growth(const pe_sector_kinds *k, double w) {
    if (k->are_ratios) return 0.5 * pe_sector_rates(k) * OUTWARDS;
    const double y = pe_d_exp(w), step = 0x1p-4;
    double ratio = growth_ratio(k, 0.0, SMALL);
    for (double r = SMALL; r < y; r *= pe_d_exp(step))
        ratio = fmax(ratio, growth_ratio(k, r, r * pe_d_exp(step)));
    return (base_growth(k) + y * ratio) * OUTWARDS;
}

double pe_sector_slope(const pe_sector_kinds *k, double w) {
    const double y = pe_d_exp(w), all = pe_sector_rates(k);
    double logs = 0.0, offsets = 0.0, rate = 0.0, offset = -INFINITY, bent = 0.0;
    for (size_t i = 0; i < k->n; i++) {
        logs += k->number[i] * k->rate[i] * pe_d_log(k->rate[i] / all);
        offsets += k->number[i] * k->rate[i] * k->offset[i];
        rate = fmax(rate, k->rate[i]);
        offset = fmax(offset, k->offset[i]);
        bent = fmax(bent, k->bent[i].over[1]);
    }
    const double correction =
        k->are_ratios ? 0.0 : rate * (y + largest_root(y, offset) * (y / 2.0 + y * y / 12.0)) + bent * y;
    const double size = all * fabs(w) + fabs(logs) + fabs(offsets) + correction;
    return -(all * w + logs + offsets + correction) - 1e-9 * size;
}

int pe_sector_make_cells(pe_sector_cells *c, const pe_sector_kinds *k, double width, double from, double to) {
    const double n = ceil((to - from) / width) + 1.0;
    if (!(n < 4e6)) return PE_TOO_COSTLY;
    c->from = from;
    c->width = width;
    c->often = 1.0 / width;
    c->n = (size_t)n;
    c->end = from + width * (double)c->n;
    c->top = malloc((2 * c->n + 1) * sizeof(double));
    if (!c->top) return PE_NO_MEMORY;
    c->kappa = c->top + c->n + 1;
    c->top[c->n] = -INFINITY;
    const double base = base_growth(k), step = pe_d_exp(width);
    double ratio = growth_ratio(k, 0.0, SMALL);
    const double first = pe_d_exp(from);
    for (double r = SMALL; !k->are_ratios && r < first; r *= 1.05)
        ratio = fmax(ratio, growth_ratio(k, r, r * 1.05));
    for (size_t i = 0; i < c->n; i++) {
        if (k->are_ratios) {
            c->top[i] = -INFINITY;
            c->kappa[i] = pe_sector_growth(k, from);
            continue;
        }
        const double left = pe_d_exp(from + (double)i * width), right = left * step * OUTWARDS;
        if (right > SMALL) ratio = fmax(ratio, growth_ratio(k, left, right));
        c->top[i] = -INFINITY;
        c->kappa[i] = (base + right * ratio) * OUTWARDS;
    }
    return PE_OK;
}

/* Number of levels of the index: runs of 1, 2, 4, ... blocks */
static size_t levels_of(const pe_sector_cells *c) {
    size_t levels = 1;
    while (c->blocks >> levels) levels++;
    return levels;
}

static void fill_index(pe_sector_cells *c) {
    for (size_t i = 0; i < c->blocks; i++) {
        const double *top = c->top + PE_SECTOR_BLOCK * i;
        double most = top[0];
        for (size_t j = 1; j < PE_SECTOR_BLOCK; j++) most = fmax(most, top[j]);
        c->most[i] = most;
    }
    for (size_t level = 1; level < levels_of(c); level++) {
        const size_t half = (size_t)1 << (level - 1);
        const double *below = c->most + c->blocks * (level - 1);
        double *row = c->most + c->blocks * level;
        for (size_t i = 0; i + 2 * half <= c->blocks; i++) row[i] = fmax(below[i], below[i + half]);
    }
}

int pe_sector_index_cells(pe_sector_cells *c) {
    c->blocks = c->n / PE_SECTOR_BLOCK; /* cells after the last whole block are not indexed */
    c->most = calloc(levels_of(c) * c->blocks + 1, sizeof(double));
    if (!c->most) return PE_NO_MEMORY;
    fill_index(c);
    return PE_OK;
}

void pe_sector_raise_cells(pe_sector_cells *c, double more) {
    for (size_t i = 0; i <= c->n; i++) c->top[i] += more;
    fill_index(c);
}

void pe_sector_free_cells(pe_sector_cells *c) {
    free(c->top);
    free(c->most);
    c->top = c->kappa = c->most = NULL;
    c->n = 0;
}
