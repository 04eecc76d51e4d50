/* Pairs of mixtures of unit normals, as functions of a complex z.
 *
 * A has the density phi(z) a(z), a(z) = sum of weight exp(shift (z - shift/2)), and B likewise; the
 * privacy loss is log b(z)/a(z), and is monotone in z.  Weights add up to 1.
 */
#ifndef PE_NORMALS_H
#define PE_NORMALS_H

#include <stddef.h>

#include "types.h"

typedef struct {
    size_t n;
    const double *shift, *weight; /* shifts rise */
} pe_normals;

typedef struct {
    pe_normals a, b;
} pe_mixtures;

/* A pair of mixtures over the union of their shifts, in sums of two doubles that are exact to their last digits. */
typedef struct {
    size_t n;
    pe_dd share;                /* probability of this pair among its alternatives */
    pe_dd *shift, *of_a, *of_b; /* shifts rise; weights, of which either may be 0 */
} pe_terms;

/* The loss l, e^l - 1 without cancellation, and log a at z. */
typedef struct {
    double l, r, log_a;
} pe_mixed_loss;

pe_mixed_loss pe_mixtures_at(const pe_mixtures *m, double z);

/* Largest distance of two shifts of one side: a and b have no zeros where |Im z| is below pi over it. */
double pe_mixtures_range(const pe_mixtures *m);

/* Half the L1 distance of both sets of weights. */
double pe_mixtures_change(const pe_mixtures *m);

/* dl/dz */
double pe_mixtures_slope(const pe_mixtures *m, double z);

/* Changes of log|a| and log|b|, and arg b/a, from z to z + iy inside of that strip. */
typedef struct {
    double log_a, log_b, angle;
} pe_moved;

pe_moved pe_mixtures_moved(const pe_mixtures *m, double z, double y);

/* Upper bounds of the probabilities above and below x */
double pe_normals_above(const pe_normals *s, double x);
double pe_normals_below(const pe_normals *s, double x);

#endif
