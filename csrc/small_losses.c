/* Divided laws: the paths without a large loss (docs/theory/divided_lines.md, Theorem 1 and below), as a Chernoff bound
 * or as a line of their own, and laws faded out by a second taper.  Called by divided.c. */

#include <math.h>
#include <stdlib.h>

#include "arithmetic.h"
#include "divided_parts.h"
#include "doubles.h"
#include "tilted_cells.h"

#define OUT (1.0 + 1e-9) /* factor outwards, for the rounding of bounds */

static const double ROOM = 2.5; /* in z, beyond where 1 - taper is about e^(-3.5 PE_SPARED), to the cut */
enum { TRIES = 18, CLOSER = 14 }; /* thetas tried for the bound, and refinements of the best one */

int pe_small_losses(pe_shifted *below, const pe_shifted *whole, const pe_taper *taper, double lost[2]) {
    const pe_taper falling = {taper->at, taper->width, -taper->rise};
    const int status = pe_shifted_tapered(below, whole, &falling);
    if (status) return status;
    pe_part *part = &below->part[0];
    const double end = taper->at + taper->width * sqrt(3.5 * PE_SPARED) + ROOM;
    /* cut off where almost nothing is left, as large thetas would magnify it */
    part->cut =
        pe_edge_of(&whole->part[0].law, pe_cell_of(&whole->part[0].law, fmin(end, whole->part[0].cut), 0));
    for (int side = 0; side < 2; side++) {
        pe_tilted plain;
        if (pe_tilted_power(&plain, &part->law, side, pe_tilted_end(&part->law))) return PE_TOO_COSTLY;
        const double rest = pe_tilted_rest(&plain, part->cut, pe_tilted_end(&part->law), 0.0);
        pe_tilted_free(&plain);
        lost[side != below->is_conjugate] += whole->steps * rest * OUT;
    }
    return PE_OK;
}

/* Upper bound of the log of the real transform of the paths without a large loss */
static double log_above(const pe_divided *d, double theta) {
    double k = 0.5 * d->q.gaussian * theta * (theta - 1.0);
    for (size_t j = 0; j < d->q.n_kinds; j++)
        k += d->q.kinds[j].steps * pe_shifted_log_above(&d->below[j], theta);
    return k + 1e-12 * (1.0 + fabs(k));
}

/* log of the bound beyond c at theta; kept if it is the least */
static double try_theta(pe_divided *d, double c, double theta) {
    const double k = log_above(d, theta), value = k - theta * c;
    if (value < d->c.zero_k - d->c.zero_theta * c) {
        d->c.zero_theta = theta;
        d->c.zero_k = k;
    }
    return value;
}

void pe_small_bound(pe_divided *d, double c, double scale) {
    const double side = d->c.line.lambda > 0.5 ? 1.0 : -1.0;
    d->c.zero_k = INFINITY;
    d->c.zero_theta = d->c.line.lambda;
    double best = INFINITY, away = 12.0 / scale, ratio = 1.2;
    for (int i = 0; i < TRIES; i++) {
        const double here = 12.0 * pe_d_pow(1.2, i) / scale;
        const double value = try_theta(d, c, d->c.line.lambda + side * here);
        if (value < best) {
            best = value;
            away = here;
        }
    }
    for (int i = 0; i < CLOSER && best < INFINITY; i++) {
        ratio = sqrt(ratio);
        double centre = away;
        for (int way = -1; way < 2; way += 2) {
            const double here = way > 0 ? centre * ratio : centre / ratio;
            const double value = try_theta(d, c, d->c.line.lambda + side * here);
            if (value < best) {
                best = value;
                away = here;
            }
        }
    }
}

/* Begins the kinds times 1 - taper, with the tapers of d, at the line's lambda */
static int begin(const pe_divided *d, pe_shifted *whole, pe_composition *q, pe_certified *c) {
    const pe_contours *contours = d->q.contours;
    pe_line *ln = &c->line;
    ln->k0 = 0.5 * q->gaussian * ln->lambda * (ln->lambda - 1.0);
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives) {
        const size_t j = q->n_kinds++;
        int status = pe_shifted_parts(&whole[j], &contours->groups[i], ln->lambda, PE_FARTHEST);
        if (!status) status = pe_small_losses(&q->kinds[j], &whole[j], &d->taper[j], c->removed);
        if (!status) status = pe_shifted_place(&q->kinds[j], whole[j].steps);
        if (status) return status;
        ln->k0 += q->kinds[j].steps * q->kinds[j].log_m.h;
    }
    return PE_OK;
}

static int build(const pe_divided *d, double c, pe_shifted *whole, pe_composition *q, pe_certified *out) {
    pe_line *ln = &out->line;
    int status = begin(d, whole, q, out);
    if (!status) status = pe_divided_period(d, ln, ln->k0 - ln->lambda * c, c, log_above);
    if (status) return status;
    /* a choice: the standard deviation, by a second difference, from which the search for the last t starts */
    const double step = 0.01 * fmin(fabs(ln->lambda), fabs(ln->lambda - 1.0));
    const double bend =
        log_above(d, ln->lambda + step) + log_above(d, ln->lambda - step) - 2.0 * log_above(d, ln->lambda);
    ln->sd = sqrt(fmax(bend, 1e-12)) / step;
    const double lost[2] = {out->removed[0], out->removed[1]};
    status = pe_sum_line(q, out);
    /* pe_sum_line counts the large losses as removed, which the other line sums */
    for (int side = 0; side < 2; side++) out->removed[side] = lost[side];
    return status;
}

int pe_small_line(pe_divided *d, double c) {
    const size_t n = d->q.n_kinds;
    pe_composition q = {.contours = d->q.contours, .gaussian = d->q.gaussian, .farthest = PE_FARTHEST};
    pe_certified *out = calloc(1, sizeof *out);
    pe_shifted *whole = calloc(n, sizeof *whole);
    q.kinds = calloc(n, sizeof *q.kinds);
    int status = PE_NO_MEMORY;
    if (out && whole && q.kinds) {
        out->line.lambda = 1.0 - (1.0 - d->c.zero_theta);
        status = build(d, c, whole, &q, out);
    }
    for (size_t i = 0; i < q.n_kinds; i++) {
        pe_shifted_free(&q.kinds[i]);
        pe_shifted_free(&whole[i]);
    }
    free(whole);
    free(q.kinds);
    if (status) pe_certified_free(out);
    else d->c.others = out;
    return status;
}

/* Adds the mass of a law times a taper, under A and under B. */
static int add_mass(const pe_shifted *whole, const pe_taper *taper, double lost[2]) {
    pe_shifted part;
    int status = pe_shifted_tapered(&part, whole, taper);
    const double end = status ? 0.0 : pe_tilted_end(&part.part[0].law);
    for (int side = 0; side < 2 && !status; side++) {
        pe_tilted plain;
        status = pe_tilted_power(&plain, &part.part[0].law, side, end);
        if (!status)
            lost[side != whole->is_conjugate] +=
                whole->steps * pe_tilted_rest(&plain, plain.start, end, 0.0) * OUT;
        pe_tilted_free(&plain);
    }
    pe_shifted_free(&part);
    return status;
}

int pe_fading_kinds(const pe_contours *contours, double at, double width, pe_shifted *full, pe_composition *q,
                    pe_line *ln, double lost[2]) {
    const pe_taper falling = {at, width, -1}, rising = {at, width, 1};
    ln->k0 = 0.5 * q->gaussian * ln->lambda * (ln->lambda - 1.0);
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives) {
        const size_t j = q->n_kinds++;
        int status = pe_shifted_parts(&full[j], &contours->groups[i], ln->lambda, PE_FARTHEST);
        if (!status) status = add_mass(&full[j], &rising, lost);
        if (!status) status = pe_shifted_tapered(&q->kinds[j], &full[j], &falling);
        if (!status) status = pe_shifted_place(&q->kinds[j], full[j].steps);
        if (status) return status;
        ln->k0 += q->kinds[j].steps * q->kinds[j].log_m.h;
    }
    return PE_OK;
}
