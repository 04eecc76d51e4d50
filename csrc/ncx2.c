/* The noncentral chi-squared distribution: tails, density, logarithms.  Definitions, methods and
 * observed errors are in functions.h.
 */
#include "doubles.h"
#include "functions.h"
#include "ncx2_core.h"

#define BLOCK PE_NCX2_BLOCK

/* Values where no integral is needed: 1, or 2 for arguments outside the domain; 0 where one is. */
static int edge(int what, double x, double df, double nc, double *out) {
    int log_form = what == PE_NCX2_LOGCDF || what == PE_NCX2_LOGSF || what == PE_NCX2_LOGPDF;
    double zero = log_form ? -INFINITY : 0.0, one = log_form ? 0.0 : 1.0;

    if (!(df >= 0.0 && df < INFINITY && nc >= 0.0 && nc < INFINITY) || isnan(x)) {
        *out = NAN;
        return isnan(x) || isnan(df) || isnan(nc) ? 1 : 2;
    }
    if (x > 0.0 && x < INFINITY && df + nc > 0.0) return 0;
    switch (what) {
    case PE_NCX2_CDF:
    case PE_NCX2_LOGCDF:
        if (x == 0.0 && df == 0.0) *out = log_form ? -0.5 * nc : pe_d_exp(-0.5 * nc); /* the atom */
        else *out = x > 0.0 ? one : zero;
        return 1;
    case PE_NCX2_SF:
    case PE_NCX2_LOGSF:
        if (x == 0.0 && df == 0.0) {
            double atom = pe_d_exp(-0.5 * nc);
            if (!log_form) *out = -pe_d_expm1(-0.5 * nc);
            else *out = nc > 1.0 ? pe_d_log1p(-atom) : pe_d_log(-pe_d_expm1(-0.5 * nc));
        } else *out = x > 0.0 ? zero : one;
        return 1;
    default: /* the density at 0 is that of the limit from the right */
        if (x != 0.0 || df > 2.0) *out = zero; /* also at x > 0 without degrees of freedom */
        else if (df < 2.0) *out = INFINITY;
        else *out = what == PE_NCX2_PDF ? 0.5 * pe_d_exp(-0.5 * nc) : -0.5 * nc - 0.6931471805599453;
        return 1;
    }
}

PE_CLONES static void finish_tail(const pe_ncx2_block *restrict b, int n, double wanted_side,
                                  double *restrict out) {
    for (int i = 0; i < n; i++) {
        double v = pe_exp_times(b->phi_h[i], b->phi_l[i], b->t[i]);
        out[i] = b->side[i] == wanted_side ? v : 1.0 - v;
    }
}

PE_CLONES static void finish_log_tail(const pe_ncx2_block *restrict b, int n, double wanted_side,
                                      double *restrict out) {
    for (int i = 0; i < n; i++) {
        double v = pe_exp_times(b->phi_h[i], b->phi_l[i], b->t[i]);
        double direct = b->phi_h[i] + (b->phi_l[i] + pe_log(b->t[i]));
        double other = pe_log1m(v < 0.9375 ? v : 0.9375);
        out[i] = b->side[i] == wanted_side ? direct : other;
    }
}

PE_CLONES static void finish_pdf(const pe_ncx2_block *restrict b, int n, double *restrict out) {
    for (int i = 0; i < n; i++) out[i] = pe_exp_times(b->psi_h[i], b->psi_l[i], b->g[i]);
}

PE_CLONES static void finish_log_pdf(const pe_ncx2_block *restrict b, int n, double *restrict out) {
    for (int i = 0; i < n; i++) out[i] = b->psi_h[i] + (b->psi_l[i] + pe_log(b->g[i]));
}

void pe_ncx2_finish(int what, const pe_ncx2_block *b, int n, double *out) {
    switch (what) {
    case PE_NCX2_CDF:
        finish_tail(b, n, -1.0, out);
        return;
    case PE_NCX2_SF:
        finish_tail(b, n, 1.0, out);
        return;
    case PE_NCX2_LOGCDF:
        finish_log_tail(b, n, -1.0, out);
        return;
    case PE_NCX2_LOGSF:
        finish_log_tail(b, n, 1.0, out);
        return;
    case PE_NCX2_PDF:
        finish_pdf(b, n, out);
        return;
    default:
        finish_log_pdf(b, n, out);
    }
}

/* Brings arguments beyond the range of the block into it.  The exponent is homogeneous of degree
   one in (x, d, lambda); all else is negligible beside it there. */
double pe_ncx2_rescale(pe_ncx2_block *b, int i) {
    double big, s;
    if (b->xh[i] <= PE_NCX2_MAX && b->lh[i] <= PE_NCX2_MAX && b->d[i] <= PE_NCX2_MAX) return 1.0;
    big = fmax(fmax(b->xh[i], b->lh[i]), b->d[i]);
    s = ldexp(1.0, 290 - ilogb(big));
    b->xh[i] = fmax(b->xh[i] * s, 0x1p-1000);
    b->xl[i] = b->ll[i] = 0.0;
    b->lh[i] *= s;
    b->d[i] = fmax(b->d[i] * s, 0x1p-400);
    return 1.0 / s;
}

void pe_ncx2_unscale(pe_ncx2_block *b, int i, double s) {
    b->phi_h[i] *= s;
    b->phi_l[i] *= s;
    b->psi_h[i] = b->phi_h[i];
    b->psi_l[i] = b->phi_l[i];
    b->g[i] /= s;
}

static inline double get(const char *p, ptrdiff_t stride, size_t i) {
    return *(const double *)(const void *)(p + (ptrdiff_t)i * stride);
}

size_t pe_ncx2_strided(int what, size_t n, const char *x, ptrdiff_t sx, const char *df, ptrdiff_t sd,
                       const char *nc, ptrdiff_t sl, char *out, ptrdiff_t so) {
    int want = what == PE_NCX2_PDF || what == PE_NCX2_LOGPDF ? PE_WANT_DENSITY : PE_WANT_TAIL;
    pe_ncx2_block b;
    size_t at[BLOCK];
    double result[BLOCK], scale[BLOCK];
    int atom[BLOCK];
    size_t outside = 0;

    for (size_t i = 0; i < n;) {
        int m = 0, scaled = 0;
        for (; i < n && m < BLOCK; i++) {
            double xi = get(x, sx, i), di = get(df, sd, i), li = get(nc, sl, i), value;
            int end = edge(what, xi, di, li, &value);
            if (end) {
                outside += end == 2;
                *(double *)(void *)(out + (ptrdiff_t)i * so) = value;
                continue;
            }
            atom[m] = di == 0.0;
            pe_ncx2_set_tail(&b, m, pe_dd_make(xi, 0.0), di, pe_dd_make(li, 0.0));
            if (atom[m] && want == PE_WANT_DENSITY) b.d[m] = 4.0; /* f_(0, nc)(x) = f_(4, x)(nc) */
            scale[m] = pe_ncx2_rescale(&b, m);
            scaled |= scale[m] != 1.0;
            at[m++] = i;
        }
        if (m == 0) continue;
        pe_ncx2_block_eval(&b, m, want);
        if (scaled)
            for (int j = 0; j < m; j++)
                if (scale[j] != 1.0) pe_ncx2_unscale(&b, j, scale[j]);
        if (want == PE_WANT_TAIL)
            for (int j = 0; j < m; j++) b.side[j] = atom[j] ? -b.side[j] : b.side[j];
        pe_ncx2_finish(what, &b, m, result);
        for (int j = 0; j < m; j++) *(double *)(void *)(out + (ptrdiff_t)at[j] * so) = result[j];
    }
    return outside;
}

double pe_ncx2(int what, double x, double df, double nc) {
    double out;
    (void)pe_ncx2_strided(what, 1, (const char *)&x, 0, (const char *)&df, 0, (const char *)&nc, 0,
                          (char *)&out, 0);
    return out;
}
