#include "doubles.h"
#include "loss_law.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MAX_WIDTH = 2.0, MIN_WIDTH = 1e-6; /* of a panel */
static const double MAX_CHANGE = 25.0; /* of log g over one panel */

void pe_law_rules(pe_rules *r) {
    const double pi = 3.14159265358979323846;
    for (int i = 0; i < PE_RULE / 2; i++) {
        double x = pe_d_cos(pi * (i + 0.75) / (PE_RULE + 0.5)), d = 1.0;
        for (int it = 0; it < 20; it++) {
            double a = 1.0, b = x;
            for (int k = 2; k <= PE_RULE; k++) {
                double c = ((2 * k - 1) * x * b - (k - 1) * a) / k;
                a = b;
                b = c;
            }
            d = PE_RULE * (x * b - a) / (x * x - 1.0);
            double step = b / d;
            x -= step;
            if (fabs(step) < 1e-16) break;
        }
        r->x[i] = -x;
        r->x[PE_RULE - 1 - i] = x;
        r->w[i] = r->w[PE_RULE - 1 - i] = 2.0 / ((1.0 - x * x) * d * d);
    }
    for (int i = 0; i < PE_RULE; i++) {
        r->node[i] = pe_d_cos(pi * (i + 0.5) / PE_RULE);
        for (int k = 0; k < PE_RULE; k++)
            r->to_cheb[k][i] = (k ? 2.0 : 1.0) / PE_RULE * pe_d_cos(pi * k * (i + 0.5) / PE_RULE);
    }
}

static int add_panel(pe_law *a, double lo, double hi, const double *coef, double peak) {
    if (a->n == a->room) {
        size_t room = a->room ? 2 * a->room : 64;
        double *edge = realloc(a->edge, (room + 1) * sizeof(double));
        if (!edge) return PE_NO_MEMORY;
        a->edge = edge;
        double *grown = realloc(a->coef, room * PE_RULE * sizeof(double));
        if (!grown) return PE_NO_MEMORY;
        a->coef = grown;
        double *peaks = realloc(a->peak, room * sizeof(double));
        if (!peaks) return PE_NO_MEMORY;
        a->peak = peaks;
        a->room = room;
    }
    memcpy(a->coef + PE_RULE * a->n, coef, PE_RULE * sizeof(double));
    a->peak[a->n] = peak;
    a->edge[a->n] = lo;
    a->edge[++a->n] = hi;
    return PE_OK;
}

int pe_law_fill(pe_law *a, pe_log_density f, const void *context, double lo, double hi, const pe_rules *r,
                size_t max_panels) {
    double stack[64], parent[64], left = lo;
    int depth = 0;
    stack[depth] = hi;
    parent[depth++] = INFINITY;
    while (depth) {
        double right = stack[depth - 1], values[PE_RULE], top = -INFINITY, low = INFINITY;
        int usable = 1, wide = right - left > MAX_WIDTH;
        for (int i = 0; i < PE_RULE && usable && !wide; i++) {
            int q = i % 2 ? PE_RULE - 1 - i / 2 : i / 2; /* from the ends inwards: most splits show early */
            double off = 0.5 * (right - left) * (1.0 + r->node[q]), w = left + off, back = w - left;
            values[q] = f(context, w, (left - (w - back)) + (off - back)); /* exact, Knuth */
            if (!isfinite(values[q])) usable = 0;
            top = fmax(top, values[q]);
            low = fmin(low, values[q]);
            wide = top - low > MAX_CHANGE;
        }
        /* what rounding of the values and of w itself leaves in the coefficients, in 5e-15 */
        double reach_w = fmax(fabs(left), fabs(right)), slope = (top - low) / (right - left);
        double size = 1.0 + 0.1 * fmax(fabs(top), fabs(low)) + 0.2 * reach_w * slope, tail = 0.0;
        double coef[PE_RULE];
        for (int k = 0; k < PE_RULE && usable && !wide; k++) {
            coef[k] = 0.0;
            for (int i = 0; i < PE_RULE; i++) coef[k] += r->to_cheb[k][i] * values[i];
            if (k >= PE_RULE - 3) tail = fmax(tail, fabs(coef[k]));
        }
        wide = wide || !usable;
        /* coefficients that halving does not shrink are rounding errors of the values */
        int noise = tail < 5e-15 * size || (tail < 1e-12 * size && tail > 0.5 * parent[depth - 1]);
        if (right - left > MIN_WIDTH && depth < 62 && (wide || !noise)) {
            stack[depth] = 0.5 * (left + right);
            parent[depth - 1] = parent[depth] = wide ? INFINITY : tail;
            depth++;
            continue;
        }
        if (wide || a->n >= max_panels) return PE_TOO_COSTLY;
        /* between the Chebyshev points a panel of this variation rises little above them */
        int status = add_panel(a, left, right, coef, top + 0.05 * (top - low) + 1e-3);
        if (status) return status;
        left = right;
        depth--;
    }
    return PE_OK;
}

void pe_law_free(pe_law *a) {
    if (!a) return;
    free(a->edge);
    free(a->coef);
    free(a->peak);
    free(a);
}

size_t pe_law_panels(const pe_law *a) {
    return a->n;
}

size_t pe_law_bytes(const pe_law *a) {
    return sizeof *a + a->room * (PE_RULE + 2) * sizeof(double);
}

double pe_law_integral(const pe_law *a, const pe_rules *r, double from, double to, pe_law_weight mode,
                       double y_c) {
    from = fmax(from, a->edge[0]);
    to = fmin(to, a->edge[a->n]);
    pe_log_sum sum = {-INFINITY, 0.0};
    if (!(to > from)) return -INFINITY;
    size_t first = pe_find_panel(a, from), last = pe_find_panel(a, to);
    for (size_t i = first; i <= last; i++) {
        double lo = fmax(from, a->edge[i]), hi = fmin(to, a->edge[i + 1]);
        if (!(hi > lo)) continue;
        double e0 = pe_panel_value(a, i, lo), e1 = pe_panel_value(a, i, hi);
        double em = pe_panel_value(a, i, 0.5 * (lo + hi));
        double change = fmax(fabs(em - e0), fabs(e1 - em));
        if (mode != PE_UNDER_A) change += pe_d_exp(hi) - pe_d_exp(lo);
        int pieces = 1 + (int)fmin(2.0 * change / PE_LAW_PIECE_CHANGE, 256.0);
        for (int k = 0; k < pieces; k++) {
            double p0 = lo + (hi - lo) * k / pieces, p1 = lo + (hi - lo) * (k + 1) / pieces;
            double e[PE_RULE], m = -INFINITY, total = 0.0;
            for (int j = 0; j < PE_RULE; j++) {
                double w = 0.5 * (p0 + p1) + 0.5 * (p1 - p0) * r->x[j];
                e[j] = pe_panel_value(a, i, w);
                if (mode == PE_UNDER_B || mode == PE_GAIN_ABOVE) e[j] += pe_d_exp(w);
                if (mode == PE_GAIN_BELOW) e[j] += pe_d_log(-pe_d_expm1(pe_d_exp(w) - y_c));
                if (mode == PE_GAIN_ABOVE) e[j] += pe_d_log(-pe_d_expm1(y_c - pe_d_exp(w)));
                m = fmax(m, e[j]);
            }
            if (!(m > -INFINITY)) continue;
            for (int j = 0; j < PE_RULE; j++) total += r->w[j] * pe_d_exp(e[j] - m);
            pe_accumulate(&sum, m, total * 0.5 * (p1 - p0));
        }
    }
    double shift = mode == PE_UNDER_B || mode == PE_GAIN_ABOVE ? a->floor : 0.0;
    return sum.total > 0.0 ? sum.top + pe_d_log(sum.total) + shift : -INFINITY;
}

void pe_law_normalise(pe_law *a, const pe_rules *r) {
    double under_a = pe_law_integral(a, r, -INFINITY, INFINITY, PE_UNDER_A, 0.0);
    for (size_t i = 0; i < a->n; i++) {
        a->coef[PE_RULE * i] -= under_a;
        a->peak[i] -= under_a;
    }
    double under_b = pe_law_integral(a, r, -INFINITY, INFINITY, PE_UNDER_B, 0.0);
    a->defect = 4.0 * (fabs(under_a) + fabs(under_b));
}
