/* Nodes in z of one kind of step (losses and weights under A), and cumulants of the loss from sums over them: estimates
 * (docs/estimates.md), for choosing lines and for lines of estimates.  Used by pair.c, contour.c and strips.c.
 *
 * A pair (A, B) of one step: mixtures of normals (normals.h), or z ~ N(0,1) without the record and the
 * mixture (1-p) N(0,1) + p N(mu,1) with it, where A is the first law, or the second where the pair is
 * reversed.  Likelihood ratio dB/dA = 1 + r, loss l = log1p(r).  E_A r = 0 exactly, which removes the linear
 * term: K = log1p(E_A[(1+r)^lambda - 1 - lambda r]), a sum of terms of one sign for real lambda.
 */
#ifndef PE_LOSS_NODES_H
#define PE_LOSS_NODES_H

#include <stddef.h>

#include "normals.h"

/* Nodes z0 + j h, j < m (m is a multiple of PE_LANES; surplus nodes have weight 0). */
typedef struct {
    size_t m;
    double z0, h;
    double lowest, highest; /* of the losses */
    double *l; /* privacy loss */
    double *r; /* likelihood ratio minus 1 */
    double *d; /* r - l >= 0 */
    double *w; /* h * density of A */
    double *logw;
    double *peak; /* largest log weight of each PE_LANES nodes, once they are weighed */
} pe_nodes;

/* A law given by its own nodes: sums over them are integrals of e^{(lambda + it) l} to rounding for |t| <= t_max. */
typedef struct {
    size_t m;
    const double *loss, *log_weight; /* losses are monotone */
    const double *peak; /* largest log weight of each PE_TABLE_BLOCK nodes */
    double t_max;
} pe_table;

enum { PE_TABLE_BLOCK = 64 };

/* One kind of step, or one alternative of it.  A step that is one of several pairs, of which the release shows which, is
 * as many consecutive groups: the first one leads and has the nodes of all. */
typedef struct {
    double noise, mu, p, n; /* n steps; 0 for points of a family (noise_nodes.h) */
    int reversed;
    int family, point; /* family is -1 for kinds that stand for themselves */
    const pe_mixtures *law; /* the pair, if it is not the sampled Gaussian of noise and p, */
    const pe_table *table; /* or a table; else NULL */
    const pe_terms *exact; /* the mixtures in sums of two doubles, for proofs; NULL if not given */
    double log_share; /* log of the probability of this alternative */
    size_t alternatives; /* of a leading group: number of alternatives, itself included */
    /* At a level of truncation the density is multiplied by chi(z) = erfc((z - taper_z)/taper_s)/2, which cuts off
     * large z smoothly, so that trapezoidal sums stay accurate; for mixtures also by chi(-z) with taper_low for
     * -taper_z. */
    double taper_z, taper_low, taper_s;
    pe_nodes grid; /* of a leading group: coarse grids of all alternatives, one after the other */
    pe_nodes part; /* the part of the grid of this group */
} pe_group;

/* Nodes z0 + j h, j < m, of one group. */
typedef struct {
    double z0, h;
    size_t m;
} pe_span;

typedef struct {
    double k0, k1, k2; /* K, K', K'' */
} pe_cumulants;

/* The nodes of a table, in whole blocks, that matter for n K(lambda) and n log M on the line through lambda: the others
 * change them by less than m e^-50.  z0 is the index of the first node; h is 1. */
pe_span pe_table_window(const pe_table *table, double n, double lambda);

/* Losses and log weights of a leading group and of its alternatives, a window for each; a status. */
int pe_nodes_new(pe_nodes *nodes, const pe_group *g, const pe_span *windows);

/* Sets w, d and peak of such nodes, which cumulants need. */
void pe_nodes_weigh(const pe_nodes *nodes);
void pe_nodes_free(pe_nodes *nodes);

/* A view of the nodes of one alternative. */
pe_nodes pe_nodes_part(const pe_nodes *nodes, const pe_span *windows, size_t index);

/* A view of the nodes of a table's grid that lie in a window. */
pe_nodes pe_nodes_within(const pe_nodes *nodes, const pe_span *window);

/* Adds n times K(lambda), K' and K'' by sums over the nodes. */
void pe_nodes_cumulants(const pe_nodes *nodes, double n, double lambda, pe_cumulants *sum);

/* Tilted weights w_j exp(lambda l_j - log_norm); 0 where that underflows. */
void pe_nodes_tilt(const pe_nodes *nodes, double lambda, double log_norm, double *tilted);

/* The same over their sum; returns the log of the sum. */
double pe_nodes_tilt_to_one(const pe_nodes *nodes, double lambda, double *tilted);

#endif
