/* Many kinds of sampled Gaussian steps that differ in noise: few kinds in their place. */
#ifndef PE_NOISE_NODES_H
#define PE_NOISE_NODES_H

#include <stddef.h>

#include "loss_nodes.h"

enum {
    PE_FAMILIES = 8,      /* at most so many families */
    PE_NOISE_POINTS = 28, /* Chebyshev points in 1/noise^2 of a family */
    PE_CONTROLS = 2,      /* members of a family that are computed to estimate the interpolation's error */
};

/* A family: kinds of one sampling rate, M of each of which is interpolated as the sum of share[j] times M at point j. */
typedef struct {
    size_t members;
    double *share; /* PE_NOISE_POINTS for each member */
    double *steps; /* of each member */
    double total;  /* sum of the steps */
    size_t control[PE_CONTROLS]; /* indices of the controls */
} pe_family;

/* The kinds that are computed: those that stand for themselves, and the points and controls of families, which have no
 * steps of their own. */
typedef struct {
    size_t n;
    double *noise, *p, *steps;
    int *family; /* -1: stands for itself */
    int *point;  /* index in its family; controls from PE_NOISE_POINTS on */
    size_t families;
    pe_family set[PE_FAMILIES];
    double *block; /* memory of noise, p and steps */
} pe_kinds;

/* Replaces n kinds; a status.  Without families (out->families is 0) nothing is gained. */
int pe_kinds_new(size_t n, const double *noise, const double *p, const double *steps, pe_kinds *out);
void pe_kinds_free(pe_kinds *kinds);
size_t pe_kinds_bytes(const pe_kinds *kinds);

/* One step's cumulants at all points and controls of all families. */
typedef struct {
    pe_cumulants at[PE_FAMILIES][PE_NOISE_POINTS + PE_CONTROLS];
} pe_noise_cumulants;

/* Adds K, K' and K'' of all members. */
void pe_kinds_cumulants(const pe_kinds *kinds, const pe_noise_cumulants *found, pe_cumulants *sum);

/* Estimate of the error of the sum of n log M of all members, from the controls. */
double pe_kinds_cumulants_miss(const pe_kinds *kinds, const pe_noise_cumulants *found);

/* The values at t = (first + k) ht, k < count, to which those of members are added. */
typedef struct {
    size_t first, count;
    double ht;
    /* log of the product of members of several steps; less t times the means of all members */
    double *re, *im;
    double *singles_re, *singles_im; /* product of the transforms of members of one step */
    double *room;                    /* 2 count numbers */
} pe_noise_block;

/* Adds all members; values are M(lambda + i t)/M(lambda) at the points and controls of one family after the other, as
 * count real parts and count imaginary ones each. */
void pe_kinds_add(const pe_kinds *kinds, const pe_noise_cumulants *found, const double *values,
                  const pe_noise_block *out);

/* Estimate of the error of the sum of n log M of all members at each t, from the controls. */
void pe_kinds_miss(const pe_kinds *kinds, const pe_noise_cumulants *found, const double *values,
                   const pe_noise_block *out, double *miss);

#endif
