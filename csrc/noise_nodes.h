/* Many kinds of sampled Gaussian steps that differ in noise: few kinds in their place. */
#ifndef PE_NOISE_NODES_H
#define PE_NOISE_NODES_H

#include <stddef.h>

#include "loss_nodes.h"

enum {
    PE_FAMILIES = 8,      /* sets of kinds that are interpolated, at most */
    PE_NOISE_POINTS = 28, /* Chebyshev points of 1/noise^2 */
    PE_CONTROLS = 2,      /* kinds of each set by which the interpolation is judged */
};

/* Kinds of one rate, M of each of which is the sum of share[j] M at the j-th point. */
typedef struct {
    size_t members;
    double *share; /* PE_NOISE_POINTS of each member */
    double *steps; /* of each member */
    double total;  /* of the steps */
    size_t control[PE_CONTROLS]; /* members that are computed as well */
} pe_family;

/* Kinds in the place of others: those that stand for themselves, and the points and controls of families, which
 * have no steps of their own. */
typedef struct {
    size_t n;
    double *noise, *p, *steps;
    int *family; /* -1: stands for itself */
    int *point;  /* of its family; from PE_NOISE_POINTS on a control */
    size_t families;
    pe_family set[PE_FAMILIES];
    double *block;
} pe_kinds;

/* Kinds in the place of n others; a status.  Without families there is nothing to be gained. */
int pe_kinds_new(size_t n, const double *noise, const double *p, const double *steps, pe_kinds *out);
void pe_kinds_free(pe_kinds *kinds);
size_t pe_kinds_bytes(const pe_kinds *kinds);

/* One step's cumulants at all points and controls of all families. */
typedef struct {
    pe_cumulants at[PE_FAMILIES][PE_NOISE_POINTS + PE_CONTROLS];
} pe_noise_cumulants;

/* Adds K of all members and its derivatives. */
void pe_kinds_cumulants(const pe_kinds *kinds, const pe_noise_cumulants *found, pe_cumulants *sum);

/* What the sum of n log M of all members is off by, as far as the controls tell. */
double pe_kinds_cumulants_miss(const pe_kinds *kinds, const pe_noise_cumulants *found);

/* What the transforms of members are multiplied into, at t = (first + k) ht, k < count. */
typedef struct {
    size_t first, count;
    double ht;
    double *re, *im; /* log of the product, without the means' phases, of members of more than one step */
    double *singles_re, *singles_im; /* product of those of single steps, means' phases in im */
    double *room;                    /* 2 count numbers */
} pe_noise_block;

/* Adds all members; values are M(lambda + i t)/M(lambda) at the points and controls of one family after the other, as
 * count real parts and count imaginary ones each. */
void pe_kinds_add(const pe_kinds *kinds, const pe_noise_cumulants *found, const double *values,
                  const pe_noise_block *out);

/* What the sum of n log M of all members is off by at each t, as far as the controls tell. */
void pe_kinds_miss(const pe_kinds *kinds, const pe_noise_cumulants *found, const double *values,
                   const pe_noise_block *out, double *miss);

#endif
