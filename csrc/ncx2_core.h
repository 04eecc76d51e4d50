/* The contour integral of the noncentral chi-squared distribution, over blocks of points.
   Internal to csrc; the derivation is in docs/special/ncx2.md. */
#ifndef PE_NCX2_CORE_H
#define PE_NCX2_CORE_H

#include "elementary.h"

#define PE_NCX2_BLOCK 32
#define PE_NCX2_MAX 0x1p300 /* arguments of the block are at most this */

enum { PE_WANT_TAIL = 1, PE_WANT_DENSITY = 2, PE_WANT_SLOPE = 4 };

/* In: the first three rows, x > 0, d > 0, lambda >= 0, finite, at most PE_NCX2_MAX; x and lambda are
   double-doubles.  Out: the rest, as asked for.  side > 0 (x above the mean): the tail is the
   survival function; side < 0: the distribution function.  phi + log(t) is the log of that tail,
   psi + log(g) the log of the density f, slope is x f'/f (it takes all three flags to get it). */
typedef struct {
    double xh[PE_NCX2_BLOCK], xl[PE_NCX2_BLOCK];
    double lh[PE_NCX2_BLOCK], ll[PE_NCX2_BLOCK];
    double d[PE_NCX2_BLOCK];
    double side[PE_NCX2_BLOCK];
    double phi_h[PE_NCX2_BLOCK], phi_l[PE_NCX2_BLOCK];
    double psi_h[PE_NCX2_BLOCK], psi_l[PE_NCX2_BLOCK];
    double t[PE_NCX2_BLOCK], g[PE_NCX2_BLOCK], slope[PE_NCX2_BLOCK];
} pe_ncx2_block;

void pe_ncx2_block_eval(pe_ncx2_block *b, int n, int want);
void pe_ncx2_finish(int what, const pe_ncx2_block *b, int n, double *out);
double pe_ncx2_rescale(pe_ncx2_block *b, int i);
void pe_ncx2_unscale(pe_ncx2_block *b, int i, double s);

/* A quantile in the making.  In: d, lambda and the logs of both tail probabilities, lower and upper,
   as double-doubles.  Out: x as a double-double, 0 where it underflows. */
typedef struct {
    double d;
    pe_dd lam, log_lower, log_upper, x;
    double low, high;
    int open;
} pe_ncx2_root;

void pe_ncx2_solve(pe_ncx2_root *roots, int n);

/* A noncentrality, or degrees of freedom, in the making.  In: of_df, the other one of both, x and the
   logs of both tails; x, d and lambda in (0, 2^200], lambda also 0.  Out: y, NaN where there is none. */
typedef struct {
    int of_df;
    double d;
    pe_dd x, lam, log_lower, log_upper, y;
    double low, high, last, last_g, slope;
    int count, open;
} pe_ncx2_parameter;

void pe_ncx2_find(pe_ncx2_parameter *all, int n);
void pe_ncx2_atom_quantile(pe_dd lam, pe_dd log_lower, pe_dd log_upper, pe_dd *x);
double pe_dd_root(pe_dd square);
int pe_ncx2_target(int upper, int logarithm, double p, pe_dd *log_lower, pe_dd *log_upper);

/* Row m for a tail.  Without degrees of freedom there is an atom of weight exp(-lambda/2) at 0, and
   F_(0, lambda)(x) = 1 - F_(2, x)(lambda): the caller exchanges the sides of such a row. */
PE_INLINE void pe_ncx2_set_tail(pe_ncx2_block *b, int m, pe_dd x, double d, pe_dd lam) {
    int atom = d == 0.0;
    b->xh[m] = atom ? lam.h : x.h;
    b->xl[m] = atom ? lam.l : x.l;
    b->lh[m] = atom ? x.h : lam.h;
    b->ll[m] = atom ? x.l : lam.l;
    b->d[m] = atom ? 2.0 : d;
}

/* exp(h + l) * t for t > 0: one rounding more than exp, gradual underflow. */
PE_INLINE double pe_exp_times(double h, double l, double t) {
    double c = h < -1400.0 ? -1400.0 : (h > 1400.0 ? 1400.0 : h);
    double k, m = pe_exp_parts(c, &k);
    return pe_scale((m + m * l) * t, k);
}

#endif
