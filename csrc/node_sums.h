/* Sums of w_j e^{i t l_j} over nodes at runs of t, for lines of estimates (contour.c).  Errors: docs/estimates.md, "Sums
 * over nodes". */
#ifndef PE_NODE_SUMS_H
#define PE_NODE_SUMS_H

#include <stddef.h>

enum {
    PE_RUN = 16, /* values of t computed together */
    PE_SMALL_TERMS = 11, /* even moments, and odd ones: orders 2 to 23 */
};

/* Nodes prepared for t = k ht <= t_top: small ones, with t_top |l| < 2, as moments; large ones by rotation. */
typedef struct {
    size_t large; /* number of large nodes, in whole lanes, */
    const double *l, *w; /* their losses and weights, */
    const double *turn[2]; /* and cosines and sines of ht l */
    double weight, mean; /* sums of w and of w l over the large nodes, */
    double size; /* and of w |l| */
    double small_mean, small_size; /* sums of w l and of w |l| over the small nodes */
    double ht, t_top;
    /* signed sums of w (t_top l/2)^k/k! over the small nodes, the highest order first */
    double even[PE_SMALL_TERMS], odd[PE_SMALL_TERMS];
} pe_node_sums;

/* Prepares m nodes, whole lanes, for t up to t_top > 0.  The large ones move to the front of l and w; these arrays and
 * the two of length m in `turn` must live as long as s. */
void pe_node_sums_new(pe_node_sums *s, double *l, double *w, double *const turn[2], size_t m, double ht,
                      double t_top);

/* re: sum of w (cos t l - 1); im: sum of w (sin t l - t l) over small nodes and of w sin t l over large ones; at
 * t = (first + k) ht <= t_top, k < PE_RUN. */
void pe_node_sums_run(const pe_node_sums *s, size_t first, double *re, double *im);

/* Adds n (log(1 + a + ib) - i mean) for a run of values. */
void pe_add_powers(double n, const double *a, const double *b, const double *mean, double *re, double *im);

#endif
