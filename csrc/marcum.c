/* Marcum's Q function, and compositions of noncentral chi-squared tails with quantiles that would
   lose digits if they were put together from rounded values.  See functions.h. */
#include "doubles.h"
#include "functions.h"
#include "ncx2_core.h"

#define BLOCK PE_NCX2_BLOCK
#define MAX_ROOT 0x1p149  /* a and b up to here are squared exactly within the block's range */
#define MIN_ROOT 0x1p-500 /* b below: its square loses digits */

static inline double get(const char *p, ptrdiff_t stride, size_t i) {
    return *(const double *)(const void *)(p + (ptrdiff_t)i * stride);
}

static inline void put(char *p, ptrdiff_t stride, size_t i, double value) {
    *(double *)(void *)(p + (ptrdiff_t)i * stride) = value;
}

/* x from a double-double, clear of the range where products of its low part vanish. */
static void set_point(pe_ncx2_block *b, int i, pe_dd x, double d, pe_dd lam) {
    b->xh[i] = x.h;
    b->xl[i] = x.l;
    b->lh[i] = lam.h;
    b->ll[i] = lam.l;
    b->d[i] = d;
}

/* Values where no integral is needed: 1, or 2 outside the domain.
   `what` is one of PE_NCX2_CDF (the complement P = 1 - Q), SF (Q) and their logarithms. */
static int marcum_edge(int what, double order, double a, double b, double *out) {
    int log_form = what & 2, upper = what & 1;
    double zero = log_form ? -INFINITY : 0.0, one = log_form ? 0.0 : 1.0, big;

    if (!(order >= 0.0 && order < INFINITY && a >= 0.0 && a < INFINITY && b >= 0.0)) {
        *out = NAN;
        return isnan(order) || isnan(a) || isnan(b) ? 1 : 2;
    }
    if (order == 0.0 && (a == 0.0 || b < MIN_ROOT)) { /* the atom exp(-a^2/2) at 0 is all or below b */
        double half = a == 0.0 ? 0.0 : 0.5 * fmax(a * a, 0x1p-1022), atom = pe_d_exp(-half);
        if (what == PE_NCX2_CDF) *out = a < MAX_ROOT ? atom * (1.0 - 0.5 * pe_two_prod(a, a).l) : atom;
        else if (what == PE_NCX2_LOGCDF) *out = -half;
        else if (what == PE_NCX2_SF) *out = -pe_d_expm1(-half);
        else *out = half > 0.7 ? pe_d_log1p(-atom) : pe_d_log(-pe_d_expm1(-half));
        return 1;
    }
    if (b == 0.0 || b == INFINITY) {
        *out = (b == 0.0) == upper ? one : zero;
        return 1;
    }
    big = fmax(a, b);
    if (big > MAX_ROOT || order > PE_NCX2_MAX / 4) {
        /* So far out that a tail is 0, 1 or, at equal a and b, nearly 1/2, and the exponent is all of
           its logarithm: homogeneous of degree 2 in (a, b, sqrt(order)). */
        double s = big > 0x1p500 ? ldexp(1.0, 400 - ilogb(big)) : 1.0, value;
        value = pe_ncx2(what, fmax(b * s * (b * s), 0x1p-1022),
                        fmax(fmin(order, 0x1p1022) * s * s * 2.0, 1e-100), a * s * (a * s));
        *out = log_form && value < -1.0 ? value / s / s : value;
        return 1;
    }
    return 0;
}

size_t pe_marcum_strided(int what, size_t n, const char *order, ptrdiff_t sm, const char *a, ptrdiff_t sa,
                         const char *b, ptrdiff_t sb, char *out, ptrdiff_t so) {
    pe_ncx2_block block;
    size_t at[BLOCK], outside = 0;
    double result[BLOCK];
    int atom[BLOCK];

    for (size_t i = 0; i < n;) {
        int m = 0;
        for (; i < n && m < BLOCK; i++) {
            double mu = get(order, sm, i), ai = get(a, sa, i), bi = get(b, sb, i), value;
            int end = marcum_edge(what, mu, ai, bi, &value);
            if (end) {
                outside += end == 2;
                put(out, so, i, value);
                continue;
            }
            if (bi < MIN_ROOT) { /* b^2 underflows: P ~ b^(2 mu), found from its logarithm below */
                double x = fmax(bi * bi, 0x1p-1022), lam = ai * ai, tail;
                double more = 2.0 * mu * (pe_d_log(bi) - 0.5 * pe_d_log(x));
                tail = pe_ncx2(PE_NCX2_LOGCDF, x, 2.0 * mu, lam) + more;
                if (what == PE_NCX2_LOGCDF) value = tail;
                else if (what == PE_NCX2_CDF) value = pe_d_exp(tail);
                else if (what == PE_NCX2_SF) value = -pe_d_expm1(tail);
                else value = tail < -0.7 ? pe_d_log1p(-pe_d_exp(tail)) : pe_d_log(-pe_d_expm1(tail));
                put(out, so, i, value);
                continue;
            }
            atom[m] = mu == 0.0;
            pe_ncx2_set_tail(&block, m, pe_two_prod(bi, bi), 2.0 * mu, pe_two_prod(ai, ai));
            at[m++] = i;
        }
        if (m == 0) continue;
        pe_ncx2_block_eval(&block, m, PE_WANT_TAIL);
        for (int j = 0; j < m; j++) block.side[j] = atom[j] ? -block.side[j] : block.side[j];
        pe_ncx2_finish(what, &block, m, result);
        for (int j = 0; j < m; j++) put(out, so, at[j], result[j]);
    }
    return outside;
}

/* The b with Q = p (bit 0 of `what` set) or P = p; bit 1: p is given by its logarithm. */
size_t pe_marcum_inverse_strided(int what, size_t n, const char *order, ptrdiff_t sm, const char *a,
                                 ptrdiff_t sa, const char *p, ptrdiff_t sp, char *out, ptrdiff_t so) {
    pe_ncx2_root roots[BLOCK];
    size_t at[BLOCK], outside = 0;

    for (size_t i = 0; i < n;) {
        int m = 0;
        for (; i < n && m < BLOCK; i++) {
            double mu = get(order, sm, i), ai = get(a, sa, i), pi = get(p, sp, i), value = NAN;
            int valid = mu >= 0.0 && mu < PE_NCX2_MAX / 4 && ai >= 0.0 && ai < MAX_ROOT;
            pe_ncx2_root *t = roots + m;
            int end = pe_ncx2_target(what & 1, what & 2, pi, &t->log_lower, &t->log_upper);
            if (mu == 0.0 && valid && end != 2) { /* an atom at 0 */
                pe_dd lam = pe_two_prod(ai, ai);
                value = end < 0 || ai == 0.0 ? 0.0 : INFINITY;
                if (end == 0 && lam.h > 0.0) {
                    pe_ncx2_atom_quantile(lam, t->log_lower, t->log_upper, &t->x);
                    value = pe_dd_root(t->x);
                } else if (end == 0) value = 0.0;
                put(out, so, i, value);
                continue;
            }
            if (end == 0 && valid) {
                t->d = 2.0 * mu;
                t->lam = pe_two_prod(ai, ai);
                at[m++] = i;
                continue;
            }
            if (end != 2 && valid) value = end < 0 ? 0.0 : INFINITY;
            else outside += !(isnan(mu) || isnan(ai) || isnan(pi));
            put(out, so, i, value);
        }
        pe_ncx2_solve(roots, m);
        for (int j = 0; j < m; j++) {
            double r = pe_dd_root(roots[j].x);
            if (r == INFINITY) /* b^2 overflows, b does not */
                r = sqrt(roots[j].lam.h) + 1.4142135623730951 * sqrt(-roots[j].log_upper.h);
            put(out, so, at[j], r);
        }
    }
    return outside;
}

/* A tail at factor * quantile: the quantile of (d, lam1) at p stays a double-double between. */
typedef struct {
    double d;
    pe_dd lam1, lam2, factor;
} composition;

static void compose(pe_ncx2_root *roots, const composition *c, int m, int what, double *result) {
    pe_ncx2_block block;
    double fixed[BLOCK];
    int at[BLOCK], k = 0;

    pe_ncx2_solve(roots, m);
    for (int j = 0; j < m; j++) {
        pe_dd x = pe_dd_mul(roots[j].x, c[j].factor);
        if (!(x.h > 0.0) || x.h > PE_NCX2_MAX) { /* the quantile left the range of the block */
            result[j] = pe_ncx2(what, x.h, c[j].d, c[j].lam2.h);
            continue;
        }
        set_point(&block, k, x, c[j].d, c[j].lam2);
        at[k++] = j;
    }
    if (k == 0) return;
    pe_ncx2_block_eval(&block, k, PE_WANT_TAIL);
    pe_ncx2_finish(what, &block, k, fixed);
    for (int j = 0; j < k; j++) result[at[j]] = fixed[j];
}

/* beta(alpha) = 1 - F_{(n-1)K}(n/(n-1) F^{-1}_{nK}(alpha)), d degrees of freedom; `what` is
   PE_NCX2_SF or PE_NCX2_LOGSF for beta, PE_NCX2_CDF or PE_NCX2_LOGCDF for 1 - beta. */
size_t pe_one_step_sgd_strided(int what, size_t count, const char *alpha, ptrdiff_t sp, const char *df,
                               ptrdiff_t sd, const char *n, ptrdiff_t sn, const char *k, ptrdiff_t sk,
                               char *out, ptrdiff_t so) {
    pe_ncx2_root roots[BLOCK];
    composition c[BLOCK];
    size_t at[BLOCK], outside = 0;
    double result[BLOCK];
    int log_form = what & 2, upper = what & 1;
    double zero = log_form ? -INFINITY : 0.0, one = log_form ? 0.0 : 1.0;

    for (size_t i = 0; i < count;) {
        int m = 0;
        for (; i < count && m < BLOCK; i++) {
            double d = get(df, sd, i), ni = get(n, sn, i), ki = get(k, sk, i), value = NAN;
            double pi = get(alpha, sp, i);
            pe_ncx2_root *t = roots + m;
            int end = pe_ncx2_target(0, 0, pi, &t->log_lower, &t->log_upper);
            int valid = d > 0.0 && d < 0x1p200 && ni > 1.0 && ni < 0x1p100 && ki >= 0.0 && ki < 0x1p100;
            if (end != 0 || !valid) {
                if (end != 2 && valid) /* alpha = 0: beta = 1; alpha = 1: beta = 0 */
                    value = (end < 0) == upper ? one : zero;
                else outside += !(isnan(pi) || isnan(d) || isnan(ni) || isnan(ki));
                put(out, so, i, value);
                continue;
            }
            pe_dd n1 = pe_two_sum(ni, -1.0);
            c[m].d = t->d = d;
            c[m].lam1 = t->lam = pe_two_prod(ni, ki);
            c[m].lam2 = pe_dd_mul_d(n1, ki);
            c[m].factor = pe_dd_div(pe_dd_make(ni, 0.0), n1);
            at[m++] = i;
        }
        if (m == 0) continue;
        compose(roots, c, m, what, result);
        for (int j = 0; j < m; j++) put(out, so, at[j], result[j]);
    }
    return outside;
}

/* j(alpha) = F_{d, mu^2}(SF^{-1}_{d, 0}(alpha)), and with `inverse` alpha from j.  `what` selects
   the value, its complement or a logarithm: bit 0 the complement, bit 1 the logarithm. */
size_t pe_relaxed_strided(int what, int inverse, size_t count, const char *p, ptrdiff_t sp, const char *df,
                          ptrdiff_t sd, const char *mu, ptrdiff_t sm, char *out, ptrdiff_t so) {
    pe_ncx2_root roots[BLOCK];
    composition c[BLOCK];
    size_t at[BLOCK], outside = 0;
    double result[BLOCK];
    int log_form = what & 2, complement = what & 1;
    double zero = log_form ? -INFINITY : 0.0, one = log_form ? 0.0 : 1.0;
    /* j is a lower tail at an upper quantile, its inverse an upper tail at a lower quantile */
    int tail = log_form | (complement ^ (inverse ? 1 : 0));

    for (size_t i = 0; i < count;) {
        int m = 0;
        for (; i < count && m < BLOCK; i++) {
            double d = get(df, sd, i), mi = get(mu, sm, i), pi = get(p, sp, i), value = NAN;
            pe_ncx2_root *t = roots + m;
            int end = pe_ncx2_target(!inverse, 0, pi, &t->log_lower, &t->log_upper);
            int valid = d > 0.0 && d < 0x1p200 && mi >= 0.0 && mi < 0x1p100;
            if (end != 0 || !valid) {
                if (end != 2 && valid) /* decreasing from 1 at 0 to 0 at 1, both ways */
                    value = (pi == 0.0) != complement ? one : zero;
                else outside += !(isnan(pi) || isnan(d) || isnan(mi));
                put(out, so, i, value);
                continue;
            }
            pe_dd square = pe_two_prod(mi, mi), none = pe_dd_make(0.0, 0.0);
            c[m].d = t->d = d;
            t->lam = inverse ? square : none;
            c[m].lam1 = t->lam;
            c[m].lam2 = inverse ? none : square;
            c[m].factor = pe_dd_make(1.0, 0.0);
            at[m++] = i;
        }
        if (m == 0) continue;
        compose(roots, c, m, tail, result);
        for (int j = 0; j < m; j++) put(out, so, at[j], result[j]);
    }
    return outside;
}
