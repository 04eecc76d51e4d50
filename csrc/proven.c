#include "proven.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "certified.h"
#include "pair.h"

/* Which line with proven errors serves a threshold; docs/theory/certified.md. */

static const double NEAR_LEVEL = 3.0; /* logs that an approximation of a value may be off */
static const double ENOUGH = 1e2;     /* times what is good enough of an estimate, of a proven row */

enum {
    PROVEN_PLACES = 4 * (2 * PE_PLACES + 1),
    PROVEN_LINES = PE_REACHES * (PROVEN_PLACES + 2 * PE_NEAR),
};

static pe_certified *proven_line(const pe_proven *proven, int i) {
    return i < PE_REACHES * PROVEN_PLACES ? (&proven->place[0][0][0])[i]
                                          : (&proven->near[0][0][0])[i - PE_REACHES * PROVEN_PLACES];
}

void pe_proven_free(pe_proven *proven) {
    for (int i = 0; proven && i < PROVEN_LINES; i++) pe_certified_free(proven_line(proven, i));
    for (int i = 0; proven && i <= 2 * PE_PLACES; i++) free(proven->chernoff[i]);
    free(proven);
}

size_t pe_proven_bytes(const pe_proven *proven) {
    size_t total = proven ? sizeof *proven : 0;
    for (int i = 0; proven && i < PROVEN_LINES; i++) {
        const pe_certified *line = proven_line(proven, i);
        if (line) total += pe_certified_bytes(line);
    }
    for (int i = 0; proven && i <= 2 * PE_PLACES; i++)
        if (proven->chernoff[i]) total += sizeof *proven->chernoff[i];
    return total;
}

/* How far from its mean a line serves thresholds. */
static double spread_to(double distance, double sd, int *reach) {
    double spread = 3.0 * sd;
    for (*reach = 0; *reach < PE_REACHES - 1 && distance > spread; ++*reach) spread *= 8.0;
    return spread;
}

static int kept_certified(const pe_contours *contours, double lambda, double spread, pe_certified **slot,
                          pe_certified **out) {
    if (!*slot) {
        pe_certified *line = calloc(1, sizeof *line);
        if (!line) return PE_NO_MEMORY;
        line->line.lambda = lambda;
        line->status = pe_certified_build(contours, spread, line);
        if (line->status == PE_NO_MEMORY) {
            pe_certified_free(line);
            return PE_NO_MEMORY;
        }
        *slot = line;
    }
    *out = *slot;
    return (*slot)->status;
}

/* The line with proven errors at a place's abscissa, whose aliases are small at c. */
static int certified_at(pe_contours *contours, int place, int functional, double c, pe_certified **out) {
    const pe_edge *e = pe_contours_edge(contours, 2 * place);
    if (!e) return pe_edge_status(contours);
    int moved;
    double lambda = pe_clear_of_poles(e->lambda, e->sd, functional, &moved);
    int variant = !moved ? 0 : functional == PE_PROFILE ? 1 : functional == PE_A_ABOVE ? 2 : 3;
    int reach;
    double spread = spread_to(fabs(c - e->k.k1), e->sd, &reach);
    return kept_certified(contours, lambda, spread,
                          &contours->proven->place[reach][variant][place + PE_PLACES], out);
}

/* The line 4^-(i+1) standard deviations beside the pole 0, or 1, on the side where the functional is small:
 * it loses some digits to the pole, and sees little of a mode far out. */
static int near_certified(pe_contours *contours, int i, int functional, double c, pe_certified **out) {
    int to_right = functional == PE_A_ABOVE;
    pe_near_place *at = &contours->proven->near_place[to_right][i];
    if (at->sd == 0.0) {
        double gap = ldexp(1.0, -2 * i - 2) / sqrt(pe_contours_cumulants(contours, 0.0).k2);
        at->lambda = to_right ? 1.0 + gap : -gap;
        pe_cumulants k = pe_contours_cumulants(contours, at->lambda);
        at->mean = k.k1;
        at->sd = sqrt(k.k2);
    }
    int reach;
    double spread = spread_to(fabs(c - at->mean), at->sd, &reach);
    return kept_certified(contours, at->lambda, spread, &contours->proven->near[reach][to_right][i], out);
}

/* Chernoff's bounds at a place, as a row; it says nothing where its error is above 1. */
static int chernoff_row(pe_contours *contours, int place, double lambda, double c, double *row) {
    pe_chernoff **at = &contours->proven->chernoff[place + PE_PLACES];
    if (!*at) {
        if (!(*at = calloc(1, sizeof **at))) return PE_NO_MEMORY;
        pe_certified_chernoff_at(contours, lambda, *at);
    }
    pe_row bounds;
    pe_certified_chernoff(*at, c, &bounds);
    pe_put_row(&bounds, c, row);
    return PE_OK;
}

static int with_proven(pe_contours *contours) {
    if (!contours->proven) contours->proven = calloc(1, sizeof *contours->proven);
    return contours->proven ? PE_OK : PE_NO_MEMORY;
}

/* The row of a proven line, where it is better than what is in `row`. */
static int certify_on(int status, const pe_certified *line, int functional, double c, double *row) {
    if (status) return status;
    pe_row out;
    double found[PE_ROW];
    pe_certified_evaluate(line, 1, &c, &out);
    pe_put_row(&out, c, found);
    if (isnan(row[0]) || pe_row_shortfall(found, functional) < pe_row_shortfall(row, functional))
        memcpy(row, found, sizeof found);
    return PE_OK;
}

/* The nearest contour first; then laws without large z, as the estimates take them; then contours nearer to
 * the poles, where a law of few large losses keeps digits enough; at last Chernoff's bounds, which say all where
 * a value is beyond the doubles. */
static int certify_one(pe_pair *pair, int functional, double c, double *row) {
    pe_contours *contours;
    int status = pe_pair_contours(pair, 0, &contours);
    if (!status) status = with_proven(contours);
    if (status) return status;
    const int nearest = pe_contours_nearest(contours, c, 0);
    const pe_edge *e = pe_contours_edge(contours, 2 * nearest);
    if (!e) return pe_edge_status(contours);
    /* where neither law's tail is a double no line could say more; a profile needs one bound only */
    const double of_a = e->k.k0 - e->lambda * c, of_b = functional == PE_PROFILE ? of_a : of_a + c;
    if (fmax(of_a, of_b) < PE_BEYOND_LOG) {
        status = chernoff_row(contours, nearest, e->lambda, c, row);
        if (status || row[2 + PE_FUNCTIONALS + functional] <= 1.0) return status;
        pe_fail_row(row);
    }
    /* the first level that serves so small a value, and one more, as an approximation may mislead */
    int first = 1;
    while (first < PE_N_LEVELS - 1 && PE_LEVELS[first] > e->approximation[functional] - NEAR_LEVEL) first++;
    const int levels[] = {0, first, first < PE_N_LEVELS - 1 ? first + 1 : first - 1};
    for (int i = 0; i < 3; i++) {
        pe_contours *cut;
        pe_certified *line = NULL;
        status = pe_pair_contours(pair, levels[i], &cut);
        if (!status) status = with_proven(cut);
        if (!status) status = certified_at(cut, pe_contours_nearest(cut, c, 0), functional, c, &line);
        status = certify_on(status, line, functional, c, row);
        if (status == PE_NO_MEMORY) return status;
        if (pe_row_shortfall(row, functional) <= ENOUGH) return PE_OK;
    }
    for (int place = nearest; place; place /= 2) {
        pe_certified *line = NULL;
        status = certified_at(contours, place / 2, functional, c, &line);
        status = certify_on(status, line, functional, c, row);
        if (status == PE_NO_MEMORY || pe_row_shortfall(row, functional) <= ENOUGH) break;
    }
    for (int i = 0; i < PE_NEAR && status != PE_NO_MEMORY; i++) {
        if (pe_row_shortfall(row, functional) <= ENOUGH) return PE_OK;
        pe_certified *line = NULL;
        status = near_certified(contours, i, functional, c, &line);
        status = certify_on(status, line, functional, c, row);
    }
    if (status != PE_NO_MEMORY && !(row[2 + PE_FUNCTIONALS + functional] < 1.0)) {
        status = chernoff_row(contours, nearest, e->lambda, c, row);
    }
    if (status == PE_NO_MEMORY) return status;
    return row[2 + PE_FUNCTIONALS + functional] <= 1.0 ? PE_OK : PE_TOO_COSTLY;
}

int pe_pair_certify(pe_pair *pair, int functional, size_t n, const double *c, double *rows) {
    int status = PE_OK, worst = PE_OK;
    pe_pair_retry(pair);
    for (size_t i = 0; i < n && status != PE_NO_MEMORY; i++) {
        double *row = rows + PE_ROW * i;
        pe_fail_row(row);
        if (!pe_pair_is_exact(pair)) worst = PE_TOO_COSTLY;
        if (!isfinite(c[i]) || !pe_pair_is_exact(pair)) continue;
        status = certify_one(pair, functional, c[i], row);
        if (status) worst = status;
    }
    return worst;
}
