/* The strip of analyticity of one group's integrand on one line, and the windows of nodes in z that it allows: for
 * lines of estimates (contour.c). */
#ifndef PE_STRIPS_H
#define PE_STRIPS_H

#include "loss_nodes.h"

enum { PE_SHIFTS = 3 };

/* One group on one line: the range of z that carries weight, and the integrand's modulus on Im z = +-a for several a
 * inside of the strip of analyticity |Im z| < pi/mu. */
typedef struct {
    double z_lo, z_hi; /* z_hi < z_lo if the group has no weight */
    double lambda;
    double a[PE_SHIFTS];
    int is_moved[PE_SHIFTS];
    double mass; /* share of the tilted law among the alternatives */
    double log_centring; /* log of the mass, over M(lambda), of the Gaussians that centred sums subtract */
    double log_h; /* log of the spacing of the coarse nodes, */
    size_t from, m; /* and those that carry weight, in whole lanes */
    /* for each a, once is_moved: log of the integrand's modulus at t = 0, and arg of the likelihood ratio */
    double *block;
    double *local; /* log of the tilted weights, then the slope of the loss in z */
} pe_strip;

/* Fills a zeroed strip for the line through lambda.  log_m: log M(lambda) on the coarse grid; tilted: the weights of the
 * group's part of the grid over M; room: as many numbers.  The caller frees block.  Returns a status. */
int pe_strip_new(pe_strip *st, const pe_group *g, double lambda, double log_m, const double *tilted,
                 double *room);

/* Windows of all alternatives of a leading group for |t| <= t_top, and the number of their nodes; returns 0 if these are
 * too many. */
int pe_strip_windows(const pe_group *g, pe_strip *st, double lambda, double t_top, pe_span *windows,
                     double *count);

#endif
