#include <math.h>

#include "pyengine.h"

static const double NOTHING = 750.0; /* beyond this exponent exp is 0 */

/* What lies on whole panels from the first one on that begins at y or above. */
static double whole_panels(const pe_panel_row *row, const pe_panel_rule *rule, size_t first, double y) {
    double total = 0.0;
    for (size_t i = first; i < row->panels; i++) {
        const double apart = row->start + row->length * (double)i - y, exponent = rule->rate * apart;
        if (exponent > NOTHING) break;
        const double share = exp(-exponent);
        if (rule->bent != 0.0) {
            /* 1 - e^(-u - v) is 1 - e^-u and e^-u (1 - e^-v) */
            const double outer = -expm1(-rule->bent * apart);
            total += share * (outer * rule->inner[i] + (1.0 - outer) * rule->part[i]);
        } else {
            total += share * rule->inner[i];
        }
    }
    return total;
}

static double atoms_beyond(const pe_panel_row *row, const pe_panel_rule *rule, double y, int closed) {
    double total = 0.0;
    const double behind = floor(y - row->lowest);
    const size_t first = behind > 0.0 ? (behind < (double)row->atoms ? (size_t)behind : row->atoms) : 0;
    for (size_t i = first; i < row->atoms; i++) {
        const double apart = row->lowest + (double)i - y, exponent = rule->rate * apart;
        if (exponent > NOTHING) break;
        if (closed ? apart < 0.0 : apart <= 0.0) continue;
        double share = exp(-exponent);
        if (rule->bent != 0.0) share *= -expm1(-rule->bent * apart);
        total += share * row->atom[i];
    }
    return total;
}

void pe_panel_beyond(const pe_panel_row *row, const pe_panel_rule *rule, size_t n, const double *y,
                     int closed, double *out) {
    for (size_t i = 0; i < n; i++) {
        /* the first whole panel: ends of panels are doubles, so that no rounding misplaces y */
        const double behind = ceil((y[i] - row->start) / row->length);
        size_t first = behind > 0.0 ? (behind < (double)row->panels ? (size_t)behind : row->panels) : 0;
        while (first > 0 && row->start + row->length * (double)(first - 1) >= y[i]) first--;
        while (first < row->panels && row->start + row->length * (double)first < y[i]) first++;
        double total = whole_panels(row, rule, first, y[i]);
        if (first > 0) {
            const int64_t cut = (int64_t)first - 1;
            const double end = row->start + row->length * (double)cut + row->length;
            if (y[i] < end) {
                const double rest = (end - y[i]) / row->length;
                double found;
                pe_panel_ends(1, &rest, &cut, row->size, row->series, row->scale, rule->rate * row->length,
                              rule->bent * row->length, rule->reach, rule->nodes, rule->place, rule->weight,
                              &found);
                total += found;
            }
        }
        out[i] = total + atoms_beyond(row, rule, y[i], closed);
    }
}
