/* The law of one kind of step for proofs: its pair in sums of two doubles, oriented so that the loss rises with z, the
 * window and cut, and the two stages of its transform (begin: estimates and bounds; finish: nodes and log M).  Proofs:
 * docs/theory/gaussian.md. */

#include "shifted.h"

#include <math.h>
#include <stdlib.h>

#include "arithmetic.h"
#include "doubles.h"
#include "shifted_nodes.h"

static const double MISS = 0x1p-56; /* quadrature error aimed at, of log M of all steps */
static const double MARGIN = 4.0; /* nats added to the window for the growth on lines, */
static const double WIDER = 16.0; /* and for tapered laws, which fall faster at their ends */
static const double ROOM = 13.0; /* in z, from the farthest tilted term to the cut */
static const double FAR = 3.0; /* shift from which on sums over cells are too coarse as estimates */

/* ---- the pair, with shifts of a at most 0 and of b at least 0 -------------------------------------- */

static int set_terms(pe_part *part, const pe_group *g) {
    const size_t n = g->exact ? g->exact->n : 2;
    part->wide_block = malloc(3 * n * sizeof(pe_dd));
    if (!part->wide_block) return PE_NO_MEMORY;
    pe_terms *t = &part->terms;
    pe_dd *at = part->wide_block;
    *t = (pe_terms){n, g->exact ? g->exact->share : pe_dd_of(1.0), at, at + n, at + 2 * n};
    if (!g->exact) {
        t->shift[0] = pe_dd_of(0.0);
        t->shift[1] = pe_dd_div(pe_dd_of(1.0), pe_dd_of(g->noise));
        t->of_a[0] = pe_dd_of(1.0);
        t->of_a[1] = pe_dd_of(0.0);
        t->of_b[0] = pe_two_sum(1.0, -g->p);
        t->of_b[1] = pe_dd_of(g->p);
    }
    for (size_t j = 0; g->exact && j < n; j++) {
        t->shift[j] = g->exact->shift[j];
        t->of_a[j] = g->exact->of_a[j];
        t->of_b[j] = g->exact->of_b[j];
    }
    return PE_OK;
}

static void exchange(pe_terms *t) {
    pe_dd *of_a = t->of_a;
    t->of_a = t->of_b;
    t->of_b = of_a;
}

static void reflect(pe_terms *t) {
    for (size_t i = 0, j = t->n - 1; i <= j && j < t->n; i++, j--) {
        pe_dd *columns[] = {t->shift, t->of_a, t->of_b};
        for (int k = 0; k < 3; k++) {
            const pe_dd here = columns[k][i];
            columns[k][i] = columns[k][j];
            columns[k][j] = here;
        }
        t->shift[i] = pe_dd_neg(t->shift[i]);
        if (i != j) t->shift[j] = pe_dd_neg(t->shift[j]);
    }
}

/* Whether no shift of a is above 0 and none of b below: then the loss rises with z. */
static int rises(const pe_terms *t) {
    for (size_t j = 0; j < t->n; j++)
        if ((t->of_a[j].h > 0.0 && t->shift[j].h > 0.0) || (t->of_b[j].h > 0.0 && t->shift[j].h < 0.0))
            return 0;
    return 1;
}

/* The tilted law with sides in doubles, for bounds, and its cut: `limit` or, if that is infinite, a distance of
 * `farthest` from the shifts. */
static int set_law(pe_part *part, double q, double limit, double farthest) {
    const pe_terms *t = &part->terms;
    part->block = malloc(4 * t->n * sizeof(double));
    if (!part->block) return PE_NO_MEMORY;
    pe_normals side[2];
    double *at = part->block;
    for (int k = 0; k < 2; k++) {
        const pe_dd *weight = k ? t->of_b : t->of_a;
        double *shift = at, *share = at + t->n;
        size_t n = 0;
        for (size_t j = 0; j < t->n; j++)
            if (weight[j].h > 0.0) {
                shift[n] = t->shift[j].h;
                share[n++] = weight[j].h;
            }
        if (!n) return PE_TOO_COSTLY; /* all weights underflow */
        side[k] = (pe_normals){n, shift, share};
        at += 2 * t->n;
    }
    /* tilted, the farthest term is centred at q times its shift */
    const double last = side[1].shift[side[1].n - 1],
                 beyond = fmin(fmax(farthest, q * last + ROOM), PE_FARTHEST);
    part->cut = isinf(limit) ? last + beyond : limit;
    return pe_tilted_new(&part->law, side[0], side[1], q, part->cut);
}

/* Sets one alternative: (A, B) at lambda or (B, A) at 1 - lambda, whichever has a power q >= 1/2, so that a mode far out
 * lies at large z; reflected if the loss falls with z. */
static int set_part(pe_part *part, const pe_group *g, double lambda, int is_conjugate, double farthest) {
    if (g->table || (g->law && !g->exact)) return PE_TOO_COSTLY;
    int status = set_terms(part, g), reflected = 0;
    if (status) return status;
    if (g->reversed) exchange(&part->terms);
    if (is_conjugate) exchange(&part->terms);
    if (!rises(&part->terms)) {
        reflect(&part->terms);
        reflected = 1;
        if (!rises(&part->terms)) return PE_TOO_COSTLY;
    }
    status =
        set_law(part, is_conjugate ? 1.0 - lambda : lambda, reflected ? -g->taper_low : g->taper_z, farthest);
    if (!status) part->cut = pe_tilted_end(&part->law);
    return status;
}

int pe_shifted_parts(pe_shifted *s, const pe_group *lead, double lambda, double farthest) {
    *s = (pe_shifted){.steps = lead->n, .is_conjugate = lambda < 0.5, .n_parts = lead->alternatives};
    int status = PE_OK;
    for (size_t i = 0; i < s->n_parts && !status; i++)
        status = set_part(&s->part[i], &lead[i], lambda, s->is_conjugate, farthest);
    return status;
}

void pe_shifted_free(pe_shifted *s) {
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_tilted_free(&s->part[i].law);
        free(s->part[i].block);
        free(s->part[i].wide_block);
        s->part[i].block = NULL;
        s->part[i].wide_block = NULL;
    }
    free(s->weight_re);
    free(s->small);
    s->weight_re = NULL;
    s->small = NULL;
}

/* ---- both stages ------------------------------------------------------------------------------------ */

/* Quadrature error aimed at for one step */
static double target_of(const pe_shifted *s) {
    return MISS / s->steps;
}

int pe_shifted_begin(pe_shifted *s, const pe_group *lead, double lambda, double farthest) {
    const int status = pe_shifted_parts(s, lead, lambda, farthest);
    if (status) return status;
    if (s->is_conjugate && 1.0 - (1.0 - lambda) != lambda) return PE_TOO_COSTLY;
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_part *part = &s->part[i];
        if (!pe_tilted_window(&part->law, -pe_d_log(target_of(s)) + MARGIN, &part->window))
            return PE_TOO_COSTLY;
        /* the cut may run through a mode far out: the caller tries PE_FARTHEST */
        if (!part->window.is_whole && farthest < PE_FARTHEST) return PE_TOO_COSTLY;
        part->cut = part->window.end;
        part->x_low = part->window.low;
        part->x_high = part->window.high;
        part->log_m = part->window.log_total;
    }
    /* sums over cells are no estimates of log M for alternatives, or for large shifts, where they err by about
     * e^(-2 pi^2/(farthest cell)) */
    if (s->n_parts > 1 || s->part[0].law.farthest > FAR) return pe_shifted_finish(s, INFINITY);
    s->log_m = pe_dd_of(s->part[0].window.log_total);
    s->mean_re = pe_tilted_mean_loss(&s->part[0].law, &s->part[0].window);
    return PE_OK;
}

int pe_shifted_tapered(pe_shifted *s, const pe_shifted *whole, const pe_taper *taper) {
    *s = (pe_shifted){.steps = whole->steps, .is_conjugate = whole->is_conjugate};
    if (whole->n_parts != 1) return PE_TOO_COSTLY;
    const pe_part *known = &whole->part[0];
    s->part[0].terms = known->terms; /* memory of the whole law */
    s->part[0].cut = known->cut;
    s->n_parts = 1;
    return pe_tilted_tapered(&s->part[0].law, &known->law, taper, known->cut);
}

int pe_shifted_place(pe_shifted *s, double steps) {
    pe_part *part = &s->part[0];
    s->steps = steps;
    if (!pe_tilted_window(&part->law, -pe_d_log(target_of(s)) + WIDER, &part->window) ||
        !part->window.is_whole)
        return PE_TOO_COSTLY;
    /* a taper is narrower than a cell, so log M is estimated by a finer sum */
    double width = INFINITY;
    for (int i = 0; i < part->law.n_tapers; i++) width = fmin(width, part->law.taper[i].width);
    const double h = fmin(0.25 * width, PE_CELL), unit = part->window.log_total;
    part->window.log_total += pe_d_log(
        h * pe_tilted_nodes(&part->law, ceil(part->window.low / h), floor(part->window.high / h), h, unit));
    part->x_low = part->window.low;
    part->x_high = part->window.high;
    part->log_m = part->window.log_total;
    s->log_m = pe_dd_of(part->log_m);
    return PE_OK;
}

/* Converts earlier envelopes from units of an estimate of M to M. */
static void rescale(pe_shifted *s, double estimate) {
    const double moved = estimate - s->log_m.h, factor = pe_d_exp(moved) * (1.0 + 1e-12);
    pe_envelope *known = &s->part[0].height.best;
    known->modulus *= factor;
    known->falls *= factor;
    known->rest *= factor;
    s->log_beyond += moved + 1e-12;
}

int pe_shifted_finish(pe_shifted *s, double t_top) {
    const double target = target_of(s), estimate = s->log_m.h;
    if (s->weight_re) return PE_OK;
    s->t_top = t_top;
    for (size_t i = 0; i < s->n_parts; i++)
        if (!pe_shifted_height(&s->part[i], target, t_top)) return PE_TOO_COSTLY;
    const int status = pe_shifted_fill(s);
    if (status) return status;
    double missed = 0.0;
    for (size_t i = 0; i < s->n_parts; i++) {
        const pe_part *part = &s->part[i];
        /* log_total is an estimate, of which on_lines (shifted_height.c) allows 1.1 times */
        if (!(part->log_m <= part->window.log_total + 0.09)) return PE_TOO_COSTLY;
        missed += part->terms.share.h * pe_d_exp(part->window.log_total - s->log_m.h) * part->missed;
    }
    missed *= 1.0 + 1e-6;
    if (!(missed <= 16.0 * target)) return PE_TOO_COSTLY;
    s->slack += 2.0 * missed; /* of the sum at t, and of that at 0 by which it is divided */
    s->log_m_error += 2.0 * missed;
    rescale(s, estimate);
    return PE_OK;
}
