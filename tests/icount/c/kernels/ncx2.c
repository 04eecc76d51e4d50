/* The noncentral chi-squared distribution at the settings of the published benchmarks. */
#include "kernel.h"

enum { EACH = 256, SETTINGS = 6, COUNT = EACH * SETTINGS };

/* degrees of freedom and noncentrality */
static const double SETTING[SETTINGS][2] = {
    {1.0, 0.36}, {10.0, 10.0}, {1e4, 1e4}, {650.0, 3.25e5}, {7.96e5, 7.96e8}, {1e9, 1e10},
};
static double *x, *p, *log_p, *out;

static void prepare(void) {
    x = icount_doubles(COUNT);
    p = icount_doubles(COUNT);
    log_p = icount_doubles(COUNT);
    out = icount_doubles(COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const double df = SETTING[i / EACH][0], nc = SETTING[i / EACH][1];
        x[i] = fabs(df + nc + sqrt(2.0 * df + 4.0 * nc) * icount_between(-8.0, 8.0, i));
        p[i] = icount_between(0.0, 1.0, i);
        log_p[i] = -exp(icount_between(-7.0, 9.0, i));
    }
}

static void tails(int what) {
    const ptrdiff_t each = sizeof(double);
    for (size_t k = 0; k < SETTINGS; k++) {
        const size_t outside =
            pe_ncx2_strided(what, EACH, (const char *)(x + k * EACH), each, (const char *)&SETTING[k][0], 0,
                            (const char *)&SETTING[k][1], 0, (char *)(out + k * EACH), each);
        icount_require(outside == 0, "arguments lie in the domain");
    }
    icount_require_numbers(out, COUNT);
}

static void quantiles(int what, const double *given) {
    const ptrdiff_t each = sizeof(double);
    for (size_t k = 0; k < SETTINGS; k++) {
        const size_t outside = pe_ncx2_quantile_strided(
            what, EACH, (const char *)(given + k * EACH), each, (const char *)&SETTING[k][0], 0,
            (const char *)&SETTING[k][1], 0, (char *)(out + k * EACH), each);
        icount_require(outside == 0, "arguments lie in the domain");
    }
    icount_require_numbers(out, COUNT);
}

static void ncx2_cdf(void) {
    tails(PE_NCX2_CDF);
}
KERNEL("ncx2_cdf", prepare, ncx2_cdf);

static void ncx2_sf(void) {
    tails(PE_NCX2_SF);
}
KERNEL("ncx2_sf", prepare, ncx2_sf);

static void ncx2_logsf(void) {
    tails(PE_NCX2_LOGSF);
}
KERNEL("ncx2_logsf", prepare, ncx2_logsf);

static void ncx2_pdf(void) {
    tails(PE_NCX2_PDF);
}
KERNEL("ncx2_pdf", prepare, ncx2_pdf);

static void ncx2_ppf(void) {
    quantiles(0, p);
}
KERNEL("ncx2_ppf", prepare, ncx2_ppf);

static void ncx2_isf_exp(void) {
    quantiles(3, log_p);
}
KERNEL("ncx2_isf_exp", prepare, ncx2_isf_exp);
