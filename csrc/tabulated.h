/* Log densities of a loss as piecewise polynomials: tabulated.c. */
#ifndef PE_TABULATED_H
#define PE_TABULATED_H

#include <stddef.h>

#include "elementary.h"

enum { PE_DEGREE_NODES = 16, PE_BLOCK = 16, PE_GROUP = 8 };

#define PE_NOWHERE (-1e6) /* stands for the log density outside of the pieces */

/* n pieces between n + 1 increasing edges; on each a polynomial of 16 monomial coefficients in u = (x - middle) scale,
 * from -1 to 1.  Chebyshev coefficients fall by a factor of about 9 each, so the change to monomials, which grow by at
 * most 2.4 each, costs no digits. */
typedef struct {
    size_t n, room;
    double *edge, *middle, *scale, *coef;
} pe_log_density;

/* Chebyshev points of the first kind on [-1, 1], and the matrix from values there to coefficients. */
typedef struct {
    double point[PE_DEGREE_NODES], matrix[PE_DEGREE_NODES][PE_DEGREE_NODES];
} pe_chebyshev;

void pe_chebyshev_init(pe_chebyshev *c);
void pe_chebyshev_fit(const pe_chebyshev *c, const double *value, double *coef);

/* Appends a piece, given by Chebyshev coefficients; edges may also decrease.  A status. */
int pe_log_density_append(pe_log_density *f, double a, double b, const double *coef);
/* Appends piece i of another density; a status. */
int pe_log_density_copy(pe_log_density *f, const pe_log_density *other, size_t i);
void pe_log_density_free(pe_log_density *f);

/* Values at PE_BLOCK increasing or decreasing x; *hint is a piece near the first one. */
void pe_log_density_block(const pe_log_density *f, const double *x, size_t *hint, double *out);

/* Gauss-Legendre rule of 16 nodes on [-1, 1]: the positive nodes, and their weights. */
extern const double pe_gauss_place[8], pe_gauss_weight[8];

/* The polynomial of 16 coefficients by Estrin's scheme, for a short chain of dependent operations. */
PE_INLINE double pe_polynomial(const double *c, double u) {
    double u2 = u * u, u4 = u2 * u2;
    double q0 = (c[0] + c[1] * u) + (c[2] + c[3] * u) * u2;
    double q4 = (c[4] + c[5] * u) + (c[6] + c[7] * u) * u2;
    double q8 = (c[8] + c[9] * u) + (c[10] + c[11] * u) * u2;
    double q12 = (c[12] + c[13] * u) + (c[14] + c[15] * u) * u2;
    return (q0 + q4 * u4) + (q8 + q12 * u4) * (u4 * u4);
}

PE_INLINE size_t pe_piece_of(const pe_log_density *f, double x, size_t i) {
    while (i > 0 && x < f->edge[i]) i--;
    while (i + 1 < f->n && x >= f->edge[i + 1]) i++;
    return i;
}

PE_INLINE double pe_log_density_at(const pe_log_density *f, double x, size_t piece) {
    return pe_polynomial(f->coef + piece * PE_DEGREE_NODES, (x - f->middle[piece]) * f->scale[piece]);
}

PE_INLINE void pe_log_density_group(const pe_log_density *f, const double *restrict x, size_t *hint,
                                    double *restrict out) {
    size_t one = pe_piece_of(f, x[0], *hint), two = pe_piece_of(f, x[PE_GROUP - 1], one);
    *hint = two;
    size_t first = one < two ? one : two, last = one < two ? two : one;
    double least = fmin(x[0], x[PE_GROUP - 1]), most = fmax(x[0], x[PE_GROUP - 1]);
    double value[PE_GROUP]; /* a place of its own, so that nothing else can change with it */
    for (int l = 0; l < PE_GROUP; l++)
        value[l] =
            pe_polynomial(f->coef + first * PE_DEGREE_NODES, (x[l] - f->middle[first]) * f->scale[first]);
    for (size_t i = first + 1; i <= last; i++) {
        double middle = f->middle[i], scale = f->scale[i], from = f->edge[i];
        const double *c = f->coef + i * PE_DEGREE_NODES;
        for (int l = 0; l < PE_GROUP; l++) {
            double v = pe_polynomial(c, (x[l] - middle) * scale), before = value[l];
            value[l] = x[l] >= from ? v : before;
        }
    }
    for (int l = 0; l < PE_GROUP; l++) out[l] = value[l];
    if (least >= f->edge[0] && most <= f->edge[f->n]) return;
    for (int l = 0; l < PE_GROUP; l++)
        if (!(x[l] >= f->edge[0] && x[l] <= f->edge[f->n])) out[l] = PE_NOWHERE;
}

PE_INLINE void pe_log_density_lanes(const pe_log_density *f, const double *x, size_t *hint, double *out) {
    for (int l = 0; l < PE_BLOCK; l += PE_GROUP) pe_log_density_group(f, x + l, hint, out + l);
}

#endif
