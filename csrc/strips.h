/* The strip of analyticity of one group's integrand on one line, and the nodes in z that it allows. */
#ifndef PE_STRIPS_H
#define PE_STRIPS_H

#include "loss_nodes.h"

enum { PE_SHIFTS = 3 };

/* One group on one line: the range of z that matters, and what the integrand does when z is moved
 * by +-ia off the real axis, for several a inside the strip of analyticity |Im z| < pi/mu. */
typedef struct {
    double z_lo, z_hi; /* of a group without any weight: z_hi below z_lo */
    double lambda;
    double a[PE_SHIFTS];
    int is_moved[PE_SHIFTS];
    double mass;         /* of the tilted law, among the alternatives */
    double log_centring; /* of the Gaussians that the centred sums subtract, relative to M(lambda) */
    double log_h;  /* log of the spacing of the coarse nodes, */
    size_t from, m; /* of which these carry weight: whole lanes */
    double *
        block; /* per shift: log of the moved integrand at t = 0, and arg of the ratio, once they are moved */
    double *local; /* log of the tilted weights, and the slope of the loss in z */
} pe_strip;

/* Fills a strip that is zero for the line Re lambda = const, whose M(lambda) on the coarse grid has the
 * logarithm log_m; `tilted` are the weights of the group's part of it there, in units of M, and `room` is
 * for as many numbers.  The caller frees block.  Returns a status. */
int pe_strip_new(pe_strip *st, const pe_group *g, double lambda, double log_m, const double *tilted,
                 double *room);

/* Windows of a leading group and of its alternatives for |t| <= t_top, and their nodes in all; false
 * where these are too many. */
int pe_strip_windows(const pe_group *g, pe_strip *st, double lambda, double t_top, pe_span *windows,
                     double *count);

#endif
