/* One step of a group of records: the loss is log w_0 + s, e^s - 1 = sum over k of a_k e^(k t), t = mu z, of weights that
 * are binomial ones but for their rounding; docs/theory/sector_laws.md. */
#ifndef PE_SECTOR_GROUP_H
#define PE_SECTOR_GROUP_H

#include <stddef.h>

#include "arithmetic.h"
#include "sector.h"

enum { PE_LARGEST_GROUP = 32 };

/* Below log(0.02): up to there the root is a series. */
#define PE_GROUP_TURNED -3.9121

typedef struct {
    size_t size;
    double square; /* of the shift */
    pe_dd log_a[PE_LARGEST_GROUP]; /* of k = 1 to size */
    double log_weight[PE_LARGEST_GROUP + 1]; /* w_k, of k = 0 to size */
} pe_group;

/* PE_TOO_COSTLY where weights are none of a binomial law. */
int pe_group_make(pe_group *g, pe_dd shift, size_t size, const double *ratios, const double *floor);

/* The t of a loss, log(sum of k a_k e^(k t)), and the sizes of what was added on the way. */
typedef struct {
    pe_dd t, log_slope;
    double size[2];
} pe_group_root;
pe_group_root pe_group_solve(const pe_group *g, pe_dd log_em1);

/* s at t, and log(e^s - 1). */
double pe_group_log_em1(const pe_group *g, double t);

/* Bounds of |p(s) - 1|, |s p'(s)| and |d^2 log p/dw^2| over |s|, and by how much base growth is larger: a status. */
int pe_group_growth(const pe_group *g, double *over, double *base);

#endif
