/* Log densities of a loss as piecewise polynomials: tabulated.c. */
#ifndef PE_TABULATED_H
#define PE_TABULATED_H

#include <stddef.h>

#include "elementary.h"

enum { PE_DEGREE_NODES = 16, PE_BLOCK = 16, PE_GROUP = 8 };

#define PE_NOWHERE (-1e6) /* log density outside of the pieces */

/* n pieces between n + 1 increasing edges; on each a sum of 16 Chebyshev polynomials of the place in
 * the piece.  Outside the density counts as 0. */
typedef struct {
    size_t n, room;
    double *edge, *coef;
} pe_log_density;

/* Chebyshev points of the first kind on [-1, 1], and the matrix from values there to coefficients. */
typedef struct {
    double point[PE_DEGREE_NODES], matrix[PE_DEGREE_NODES][PE_DEGREE_NODES];
} pe_chebyshev;

void pe_chebyshev_init(pe_chebyshev *c);
void pe_chebyshev_fit(const pe_chebyshev *c, const double *value, double *coef);

int pe_log_density_append(pe_log_density *f, double a, double b, const double *coef);
void pe_log_density_free(pe_log_density *f);

/* Values at PE_BLOCK places in increasing or decreasing order; *hint is a piece near the first one. */
void pe_log_density_block(const pe_log_density *f, const double *x, size_t *hint, double *out);

/* Gauss-Legendre rule of 16 points: halves of its places, and weights. */
extern const double pe_gauss_place[8], pe_gauss_weight[8];

/* Clenshaw's recurrence for 16 coefficients. */
PE_INLINE double pe_clenshaw(const double *c, double x) {
    double u = 2.0 * x, p = c[15], q = c[14] + u * p;
    p = c[13] + (u * q - p), q = c[12] + (u * p - q);
    p = c[11] + (u * q - p), q = c[10] + (u * p - q);
    p = c[9] + (u * q - p), q = c[8] + (u * p - q);
    p = c[7] + (u * q - p), q = c[6] + (u * p - q);
    p = c[5] + (u * q - p), q = c[4] + (u * p - q);
    p = c[3] + (u * q - p), q = c[2] + (u * p - q);
    p = c[1] + (u * q - p);
    return c[0] + (x * p - q);
}

PE_INLINE size_t pe_piece_of(const pe_log_density *f, double x, size_t i) {
    while (i > 0 && x < f->edge[i]) i--;
    while (i + 1 < f->n && x >= f->edge[i + 1]) i++;
    return i;
}

PE_INLINE void pe_log_density_group(const pe_log_density *f, const double *x, size_t *hint, double *out) {
    size_t one = pe_piece_of(f, x[0], *hint), two = pe_piece_of(f, x[PE_GROUP - 1], one);
    double lowest = f->edge[0], highest = f->edge[f->n];
    *hint = two;
    size_t first = one < two ? one : two, last = one < two ? two : one;
    double value[PE_GROUP] = {0.0}; /* a place of its own, so that nothing else can change with it */
    for (size_t i = first; i <= last; i++) {
        double a = f->edge[i], b = f->edge[i + 1], middle = 0.5 * (a + b), scale = 2.0 / (b - a);
        double from = i == first ? -INFINITY : a;
        const double *c = f->coef + i * PE_DEGREE_NODES;
        for (int l = 0; l < PE_GROUP; l++) {
            double u = (x[l] - middle) * scale;
            u = u < -1.0 ? -1.0 : u;
            u = u > 1.0 ? 1.0 : u;
            double v = pe_clenshaw(c, u), before = value[l];
            value[l] = x[l] >= from ? v : before;
        }
    }
    for (int l = 0; l < PE_GROUP; l++) {
        double v = value[l];
        v = x[l] < lowest ? PE_NOWHERE : v;
        out[l] = x[l] > highest ? PE_NOWHERE : v;
    }
}

PE_INLINE void pe_log_density_lanes(const pe_log_density *f, const double *x, size_t *hint, double *out) {
    for (int l = 0; l < PE_BLOCK; l += PE_GROUP) pe_log_density_group(f, x + l, hint, out + l);
}

#endif
