#include <math.h>

#include "doubles.h"
#include "loss_law.h"

/* A reversed pair has the laws exchanged and the loss negated: its upper side is the lower one. */
static double functional_at(const pe_law *a, const pe_rules *r, int reversed, int functional, double w) {
    static const int MIRROR[] = {PE_B_BELOW, PE_B_ABOVE, PE_A_BELOW, PE_A_ABOVE};
    if (functional == PE_PROFILE)
        return reversed ? pe_law_integral(a, r, w, INFINITY, PE_GAIN_ABOVE, pe_d_exp(w))
                        : pe_law_integral(a, r, -INFINITY, w, PE_GAIN_BELOW, pe_d_exp(w));
    switch (reversed ? MIRROR[functional] : functional) {
    case PE_A_ABOVE:
        return pe_law_integral(a, r, w, INFINITY, PE_UNDER_A, 0.0);
    case PE_A_BELOW:
        return pe_law_integral(a, r, -INFINITY, w, PE_UNDER_A, 0.0);
    case PE_B_ABOVE:
        return pe_law_integral(a, r, w, INFINITY, PE_UNDER_B, 0.0);
    default:
        return pe_law_integral(a, r, -INFINITY, w, PE_UNDER_B, 0.0);
    }
}

/* d log(functional) / dw where its log is v; for A's tails and the profile negative where it falls as w grows. */
static double log_slope(const pe_law *a, const pe_rules *r, int reversed, int functional, double w,
                        double v) {
    double y = pe_d_exp(w), c = y + a->floor;
    if (functional == PE_PROFILE) {
        double rest = functional_at(a, r, reversed, PE_B_BELOW, w);
        return (reversed ? -pe_d_exp(rest + c - v) : pe_d_exp(rest - c - v)) * y;
    }
    /* the density of the law that the functional is a tail of, B's of the unreversed pair with e^c */
    int of_b = functional == PE_B_ABOVE || functional == PE_B_BELOW;
    double g = pe_panel_value(a, pe_find_panel(a, w), w) + (of_b != (reversed != 0) ? c : 0.0);
    return ((functional == PE_A_ABOVE) == (reversed != 0) ? 1.0 : -1.0) * pe_d_exp(g - v);
}

static void law_row(const pe_law *a, const pe_rules *r, int reversed, double w, double c, double *row) {
    int inside = w > a->edge[0] && w < a->edge[a->n];
    row[0] = c;
    row[1] = inside ? pe_panel_value(a, pe_find_panel(a, w), w) - w + (reversed ? -c : 0.0) : -INFINITY;
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
                                          : (a->defect < PE_LAW_MISSING ? 0.0 : INFINITY);
    }
}

void pe_law_at(const pe_law *a, int reversed, size_t n, const double *c, double *rows) {
    pe_rules r;
    pe_law_rules(&r);
    for (size_t i = 0; i < n; i++) {
        double y = ((reversed ? -c[i] : c[i]) - a->floor) - a->floor_low;
        law_row(a, &r, reversed, y > 0.0 ? pe_d_log(y) : -INFINITY, c[i], rows + PE_ROW * i);
    }
}

void pe_law_solve(const pe_law *a, int reversed, int functional, size_t n, const double *log_target,
                  double *rows) {
    pe_rules r;
    pe_law_rules(&r);
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
        double *row = rows + PE_ROW * i, c = pe_d_exp(w) + a->floor;
        law_row(a, &r, reversed, w, reversed ? -c : c, row);
        row[2 + PE_FUNCTIONALS + functional] += fabs(row[2 + functional] - log_target[i]);
    }
}
