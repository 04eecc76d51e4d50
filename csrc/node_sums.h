/* Sums over weighted nodes of a transform's values at runs of t. */
#ifndef PE_NODE_SUMS_H
#define PE_NODE_SUMS_H

#include <stddef.h>

enum {
    PE_RUN = 16,         /* values of t of a run */
    PE_SMALL_TERMS = 11, /* even and odd moments each: up to the 23rd */
};

/* Nodes for steps of ht up to a largest t: losses with t |l| < 2 as moments, the others by themselves. */
typedef struct {
    size_t large;            /* nodes by themselves, in whole lanes: */
    const double *l, *w;     /* their losses and weights, */
    const double *turn[2];   /* and e^{i ht l} */
    double weight, mean; /* sums of w and of w l over them, */
    double size;         /* and of w |l| */
    double small_mean, small_size; /* of w l and w |l| over the others */
    double ht, t_top;
    double even[PE_SMALL_TERMS],
        odd[PE_SMALL_TERMS]; /* sums of w (t_top l/2)^k/k! with their signs, the highest first */
} pe_node_sums;

/* Of m nodes, whole lanes, up to t_top > 0; the large ones move to the front of both arrays, which are kept in use
 * beside the two more of that length in `turn`. */
void pe_node_sums_new(pe_node_sums *s, double *l, double *w, double *const turn[2], size_t m, double ht,
                      double t_top);

/* Sums of w (cos t l - 1), and of w (sin t l - t l) of small nodes with w sin t l of the others, at
 * t = (first + k) ht <= t_top, k < PE_RUN. */
void pe_node_sums_run(const pe_node_sums *s, size_t first, double *re, double *im);

/* Adds n (log(1 + a + ib) - i mean) for the values of a run. */
void pe_add_powers(double n, const double *a, const double *b, const double *mean, double *re, double *im);

#endif
