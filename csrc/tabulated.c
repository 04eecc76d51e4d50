/* Log densities as polynomials on pieces; interface in tabulated.h. */

#include "tabulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"
#include "simd.h"

static const double HALF_PI = 1.57079632679489661923;

/* cos(pi m / 32), reduced to an argument of at most pi/4 */
static double cosine(int m) {
    const int half = 2 * PE_DEGREE_NODES;
    m %= 2 * half;
    if (m > half) m = 2 * half - m;
    if (2 * m > half) return -cosine(half - m);
    double unit = HALF_PI / PE_DEGREE_NODES;
    return 4 * m > half ? pe_d_sin((half / 2 - m) * unit) : pe_d_cos(m * unit);
}

void pe_chebyshev_init(pe_chebyshev *c) {
    for (int j = 0; j < PE_DEGREE_NODES; j++) {
        c->point[j] = cosine(2 * j + 1);
        for (int i = 0; i < PE_DEGREE_NODES; i++)
            c->matrix[i][j] = (i ? 2.0 : 1.0) / PE_DEGREE_NODES * cosine(i * (2 * j + 1));
    }
}

void pe_chebyshev_fit(const pe_chebyshev *c, const double *value, double *coef) {
    double base = value[PE_DEGREE_NODES / 2]; /* differences round less */
    for (int i = 0; i < PE_DEGREE_NODES; i++) {
        double sum = 0.0;
        for (int j = 0; j < PE_DEGREE_NODES; j++) sum += c->matrix[i][j] * (value[j] - base);
        coef[i] = sum;
    }
    coef[0] += base;
}

static int grown(double **rows, size_t size) {
    double *now = realloc(*rows, size * sizeof(double));
    if (now) *rows = now;
    return now ? PE_OK : PE_NO_MEMORY;
}

/* Appends a piece without coefficients. */
static int append(pe_log_density *f, double a, double b) {
    if (f->n == f->room) {
        size_t room = 2 * f->room + 32;
        if (grown(&f->edge, room + 1) || grown(&f->middle, room) || grown(&f->scale, room) ||
            grown(&f->coef, room * PE_DEGREE_NODES))
            return PE_NO_MEMORY;
        f->room = room;
    }
    f->edge[f->n] = a;
    f->edge[f->n + 1] = b;
    f->middle[f->n] = 0.5 * (a + b);
    f->scale[f->n] = 2.0 / fabs(b - a);
    f->n++;
    return PE_OK;
}

int pe_log_density_append(pe_log_density *f, double a, double b, const double *coef) {
    /* coefficients of T_(i-1) and T_i, which are integers */
    double before[PE_DEGREE_NODES] = {0.0}, now[PE_DEGREE_NODES] = {1.0};
    int status = append(f, a, b);
    if (status) return status;
    double *powers = f->coef + (f->n - 1) * PE_DEGREE_NODES;
    for (int k = 0; k < PE_DEGREE_NODES; k++) powers[k] = 0.0;
    for (int i = 0; i < PE_DEGREE_NODES; i++) {
        for (int k = 0; k <= i; k++) powers[k] += coef[i] * now[k];
        double next[PE_DEGREE_NODES] = {0.0};
        for (int k = 0; k < PE_DEGREE_NODES; k++)
            next[k] = (k > 0 ? (i ? 2.0 : 1.0) * now[k - 1] : 0.0) - (i ? before[k] : 0.0);
        memcpy(before, now, sizeof now);
        memcpy(now, next, sizeof now);
    }
    return PE_OK;
}

int pe_log_density_copy(pe_log_density *f, const pe_log_density *other, size_t i) {
    double a = other->edge[i], b = other->edge[i + 1];
    int status = append(f, fmin(a, b), fmax(a, b));
    if (status) return status;
    memcpy(f->coef + (f->n - 1) * PE_DEGREE_NODES, other->coef + i * PE_DEGREE_NODES,
           PE_DEGREE_NODES * sizeof(double));
    return PE_OK;
}

void pe_log_density_free(pe_log_density *f) {
    free(f->edge);
    free(f->middle);
    free(f->scale);
    free(f->coef);
    memset(f, 0, sizeof *f);
}

PE_CLONES
void pe_log_density_block(const pe_log_density *f, const double *x, size_t *hint, double *out) {
    pe_log_density_lanes(f, x, hint, out);
}

const double pe_gauss_place[8] = {0.09501250983763744, 0.2816035507792589, 0.45801677765722737,
                                  0.6178762444026438,  0.755404408355003,  0.8656312023878318,
                                  0.9445750230732326,  0.9894009349916499};
const double pe_gauss_weight[8] = {0.1894506104550685,   0.18260341504492358, 0.16915651939500254,
                                   0.14959598881657674,  0.12462897125553388, 0.09515851168249279,
                                   0.062253523938647894, 0.027152459411754096};
