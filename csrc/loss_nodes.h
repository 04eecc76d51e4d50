/* One step as a discrete measure, and the real cumulants of the composed loss under it.
 *
 * A pair (A, B) of one step: mixtures of normals (normals.h), or z ~ N(0,1) without the record and the
 * mixture (1-p) N(0,1) + p N(mu,1) with it, where A is the first law, or the second where the pair is
 * reversed.  Likelihood ratio
 * dB/dA = 1 + r, loss l = log1p(r).  E_A r = 0 exactly, which removes the linear term from every
 * cumulant: K = log1p(E_A[(1+r)^lambda - 1 - lambda r]), a sum of terms of one sign for real lambda.
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
    double *l;    /* privacy loss */
    double *r;    /* likelihood ratio minus 1 */
    double *d;    /* r - l >= 0 */
    double *w;    /* h * density of A */
    double *logw;
    double *peak; /* largest log weight of each PE_LANES nodes, once they are weighed */
} pe_nodes;

/* A law known by nodes of its own: sums over them are as good as integrals of e^{(lambda + it) l} as long
 * as |t| <= t_max. */
typedef struct {
    size_t m;
    const double *loss, *log_weight; /* losses are monotone */
    const double *peak;              /* largest log weight of each PE_TABLE_BLOCK nodes */
    double t_max;
} pe_table;

enum { PE_TABLE_BLOCK = 64 };

/* One kind of step.  A step that is one of several pairs, of which the release shows which, is as many
 * groups behind each other: the first one leads, and its nodes are those of all. */
typedef struct {
    double noise, mu, p,
        n; /* n is 0 of points of a family, which have no steps of their own: noise_nodes.h */
    int reversed;
    int family, point; /* family is -1 of others */
    const pe_mixtures *law; /* the pair, if it is not the sampled Gaussian of noise and p, */
    const pe_table *table;  /* nor known by a table */
    const pe_terms *exact;  /* that pair for proofs, NULL where its numbers are not known so well */
    double log_share;       /* log of the probability of this pair among its alternatives */
    size_t alternatives;    /* of a leading group: how many there are, itself included */
    /* The density is multiplied by chi(z) = erfc((z - taper_z)/taper_s)/2: it removes what lies far
     * out with too little probability to matter, without an edge that the sums would feel.  Where the
     * pair is one of mixtures, also by chi(-z) with taper_low for -taper_z. */
    double taper_z, taper_low, taper_s;
    pe_nodes grid; /* coarse grids over the windows of z of all alternatives, of a leading group */
    pe_nodes part; /* those nodes of the grid that are of this group */
} pe_group;

/* Nodes z0 + j h, j < m, of one group. */
typedef struct {
    double z0, h;
    size_t m;
} pe_span;

typedef struct {
    double k0, k1, k2; /* K, K', K'' */
} pe_cumulants;

/* The nodes of a table that matter to n K(lambda) and to n log M on the line through lambda, in whole blocks:
 * what is left out changes them by less than m e^-50.  Its first node is z0 and its spacing 1. */
pe_span pe_table_window(const pe_table *table, double n, double lambda);

/* Losses and log weights of a leading group and of its alternatives, a window for each; a status. */
int pe_nodes_new(pe_nodes *nodes, const pe_group *g, const pe_span *windows);

/* The weights themselves and the defects of such nodes, which cumulants need. */
void pe_nodes_weigh(const pe_nodes *nodes);
void pe_nodes_free(pe_nodes *nodes);

/* A view of the nodes of one alternative. */
pe_nodes pe_nodes_part(const pe_nodes *nodes, const pe_span *windows, size_t index);

/* The nodes of a table's grid that lie in a window of it. */
pe_nodes pe_nodes_within(const pe_nodes *nodes, const pe_span *window);

/* Adds n K(lambda) and its derivatives for one group on the given nodes. */
void pe_nodes_cumulants(const pe_nodes *nodes, double n, double lambda, pe_cumulants *sum);

/* Tilted weights w_j exp(lambda l_j - log_norm), zero outside a double's range. */
void pe_nodes_tilt(const pe_nodes *nodes, double lambda, double log_norm, double *tilted);

/* The same in units of their sum, of which the log is returned. */
double pe_nodes_tilt_to_one(const pe_nodes *nodes, double lambda, double *tilted);

#endif
