/* Panels of an epoch's density, with their masses under both laws: estimates (docs/estimates.md).  Called by
 * allocation.c. */
#include "panels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"

typedef struct {
    size_t n, room;
    double *edge;
    size_t *piece;
} panels;

static int append_panel(panels *p, double end, size_t piece) {
    if (p->n + 2 > p->room) {
        size_t room = 2 * p->room + 256;
        double *edge = realloc(p->edge, room * sizeof(double));
        if (edge) p->edge = edge;
        size_t *rows = realloc(p->piece, room * sizeof(size_t));
        if (rows) p->piece = rows;
        if (!edge || !rows) return PE_NO_MEMORY;
        p->room = room;
    }
    p->piece[p->n++] = piece;
    p->edge[p->n] = end;
    return PE_OK;
}

#define CHANGE 5.0 /* largest change of either log density between an end of a panel and its middle */

static int split_panels(panels *p, const pe_log_density *f, size_t piece, double a, double b, double at_a,
                        double at_b) {
    double middle = 0.5 * (a + b), width = middle - a, v = pe_log_density_at(f, middle, piece);
    double one = fabs(v - at_a), two = fabs(at_b - v);
    if ((one + width > CHANGE || two + width > CHANGE) && p->n < 100000) {
        int status = split_panels(p, f, piece, a, middle, at_a, v);
        return status ? status : split_panels(p, f, piece, middle, b, v, at_b);
    }
    return append_panel(p, b, piece);
}

/* Masses of a panel under both laws, times e^-scale. */
static void panel_masses(const pe_log_density *f, size_t piece, double a, double b, double scale,
                         double *masses) {
    double x[PE_BLOCK], v[PE_BLOCK], middle = 0.5 * (a + b), radius = 0.5 * (b - a);
    for (int i = 0; i < 8; i++) {
        x[7 - i] = middle - radius * pe_gauss_place[i];
        x[8 + i] = middle + radius * pe_gauss_place[i];
    }
    pe_log_density_block(f, x, &piece, v);
    masses[0] = masses[1] = 0.0;
    for (int l = 0; l < PE_BLOCK; l++) {
        double weight = radius * pe_gauss_weight[l < 8 ? 7 - l : l - 8];
        masses[0] += weight * pe_d_exp(v[l] - scale);
        masses[1] += weight * pe_d_exp(v[l] + x[l] - scale);
    }
}

static int make_panels(panels *p, const pe_log_density *f) {
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < f->n; i++) {
        double a = f->edge[i], b = f->edge[i + 1];
        int status = split_panels(p, f, i, a, b, pe_log_density_at(f, a, i), pe_log_density_at(f, b, i));
        if (status) return status;
        p->edge[0] = f->edge[0];
    }
    return PE_OK;
}

int pe_normalise(pe_log_density *f, double *defect) {
    panels p;
    double total[2] = {0.0, 0.0};
    int status = make_panels(&p, f);
    for (size_t i = 0; i < p.n && !status; i++) {
        double masses[2], v = pe_log_density_at(f, p.edge[i], p.piece[i]);
        if (v + (p.edge[i] > 0.0 ? p.edge[i + 1] : 0.0) < -80.0 - CHANGE) continue;
        panel_masses(f, p.piece[i], p.edge[i], p.edge[i + 1], 0.0, masses);
        total[0] += masses[0];
        total[1] += masses[1];
    }
    free(p.edge);
    free(p.piece);
    defect[0] = total[0] - 1.0;
    defect[1] = total[1] - 1.0;
    double excess = pe_d_log1p(defect[0]);
    for (size_t i = 0; i < f->n; i++) f->coef[i * PE_DEGREE_NODES] -= excess;
    return status;
}

int pe_epoch_masses(struct pe_epoch *epoch) {
    panels p;
    int status = make_panels(&p, &epoch->density);
    if (status) return status;
    size_t n = p.n;
    epoch->panels = n;
    epoch->edge = p.edge;
    epoch->piece = p.piece;
    double *block = malloc(4 * (n + 1) * sizeof(double)), *mass = malloc(2 * n * sizeof(double));
    double *level = malloc(n * sizeof(double));
    status = block && mass && level ? PE_OK : PE_NO_MEMORY;
    for (int law = 0; law < 2; law++) {
        epoch->below[law] = block ? block + (2 * law) * (n + 1) : NULL;
        epoch->above[law] = block ? block + (2 * law + 1) * (n + 1) : NULL;
    }
    for (size_t i = 0; i < n && !status; i++) {
        level[i] = pe_log_density_at(&epoch->density, p.edge[i], p.piece[i]);
        panel_masses(&epoch->density, p.piece[i], p.edge[i], p.edge[i + 1], level[i], mass + 2 * i);
    }
    for (int law = 0; law < 2 && !status; law++) {
        double *below = epoch->below[law], *above = epoch->above[law];
        below[0] = above[n] = -INFINITY;
        /* units that follow the sums, so that each partial sum has relative accuracy */
        double unit = level[0], sum = 0.0;
        for (size_t i = 0; i < n; i++) {
            if (level[i] > unit + 50.0) {
                sum *= pe_d_exp(unit - level[i]);
                unit = level[i];
            }
            sum += mass[2 * i + law] * pe_d_exp(level[i] - unit);
            below[i + 1] = unit + pe_d_log(sum);
        }
        unit = level[n - 1];
        sum = 0.0;
        for (size_t i = n; i-- > 0;) {
            if (level[i] > unit + 50.0) {
                sum *= pe_d_exp(unit - level[i]);
                unit = level[i];
            }
            sum += mass[2 * i + law] * pe_d_exp(level[i] - unit);
            above[i] = unit + pe_d_log(sum);
        }
    }
    free(mass);
    free(level);
    return status;
}
