/* One step of a group of records: the loss is log w_0 + s, e^s - 1 = sum over k of a_k e^(k t), t = mu z, with binomial
 * weights up to rounding: docs/theory/sector_laws.md, Lemma 9.  Called by sector_laws.c. */
#ifndef PE_SECTOR_GROUP_H
#define PE_SECTOR_GROUP_H

#include <stddef.h>

#include "arithmetic.h"
#include "sector.h"

enum { PE_LARGEST_GROUP = 32 };

/* Just below log 0.02: up to this w the density is analytic at every angle. */
#define PE_GROUP_TURNED -3.9121

typedef struct {
    size_t size;
    double square; /* mu^2 */
    pe_dd log_a[PE_LARGEST_GROUP]; /* k = 1 to size */
    double log_weight[PE_LARGEST_GROUP + 1]; /* log w_k, k = 0 to size */
} pe_group;

/* From the ratios w_k/w_0 as sums of two doubles, and log w_0 in `floor`; PE_TOO_COSTLY if the weights are not
 * binomial. */
int pe_group_make(pe_group *g, pe_dd shift, size_t size, const double *ratios, const double *floor);

/* The root t of a loss, log(sum of k a_k e^(k t)), and sizes of terms for the error bound of one_density. */
typedef struct {
    pe_dd t, log_slope;
    double size[2];
} pe_group_root;
pe_group_root pe_group_solve(const pe_group *g, pe_dd log_em1);

/* log(e^s - 1) at t */
double pe_group_log_em1(const pe_group *g, double t);

/* Proves over[0..2] and `base` of pe_sector_bent.  A status: PE_TOO_COSTLY where it fails. */
int pe_group_growth(const pe_group *g, double *over, double *base);

#endif
