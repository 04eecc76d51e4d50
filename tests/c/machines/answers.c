/* Answers of the core in bits, to be compared between machines by tools/cross.py.
 *
 * Each line is the name of a kernel and the bits of one of its answers.  Arguments come from integers, so that
 * they are the same everywhere.
 */
#include "environment.h"
#include "pyengine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 200, THRESHOLDS = 6 };

static uint64_t state;

/* Uniform in [low, high): a linear congruential generator, of whose state the 40 highest bits count. */
static double between(double low, double high) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (high - low) * ((double)(state >> 24) * 0x1p-40);
}

static void print(const char *name, size_t n, const double *values) {
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        if (values[i] != values[i])
            bits = UINT64_C(0x7ff8000000000000); /* machines differ in what a NaN is */
        printf("%s %016" PRIx64 "\n", name, bits);
    }
}

static void normal(void) {
    static const struct {
        const char *name;
        double (*f)(double);
        double low, high;
    } functions[] = {
        {"normal_pdf", pe_normal_pdf, -39.0, 39.0}, {"ndtr", pe_ndtr, -39.0, 9.0},
        {"log_ndtr", pe_log_ndtr, -1e3, 9.0},       {"ndtri", pe_ndtri, 0.0, 1.0},
        {"ndtri_exp", pe_ndtri_exp, -1e3, 0.0},
    };
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        for (int i = 0; i < POINTS; i++) {
            const double y = functions[k].f(between(functions[k].low, functions[k].high));
            print(functions[k].name, 1, &y);
        }
}

static void noncentral(void) {
    static const char *const names[] = {"ncx2_cdf",   "ncx2_sf",  "ncx2_logcdf",
                                        "ncx2_logsf", "ncx2_pdf", "ncx2_logpdf"};
    const ptrdiff_t one = sizeof(double);
    for (int what = PE_NCX2_CDF; what <= PE_NCX2_LOGPDF; what++)
        for (int i = 0; i < POINTS; i++) {
            const double df = between(0.01, 300.0), nc = between(0.0, 300.0), x = between(0.0, 900.0);
            const double y = pe_ncx2(what, x, df, nc);
            print(names[what], 1, &y);
        }
    for (int i = 0; i < POINTS; i++) {
        double order = between(0.5, 50.0), a = between(0.0, 20.0), b = between(0.0, 30.0), y;
        double p = between(0.0, 1.0);
        pe_marcum_strided(PE_NCX2_SF, 1, (char *)&order, one, (char *)&a, one, (char *)&b, one, (char *)&y,
                          one);
        print("marcum_q", 1, &y);
        pe_ncx2_quantile_strided(0, 1, (char *)&p, one, (char *)&order, one, (char *)&a, one, (char *)&y,
                                 one);
        print("ncx2_ppf", 1, &y);
    }
}

/* N(0, 1) against N(mu, 1): values between proven bounds. */
static void closed_form(void) {
    pe_step step = {.p = {1.0, 0.0}, .plain = 1, .order = PE_ADD_REMOVE};
    for (int i = 0; i < POINTS; i++) {
        const double mu = floor(between(1.0, 4096.0)) / 1024.0; /* of which half the square is exact */
        double x = between(0.0, 1.0), out[7];
        step.mu = (pe_dd){mu, 0.0};
        step.half_square = (pe_dd){0.5 * mu * mu, 0.0};
        pe_step_trade_off(&step, 1, &x, out);
        print("closed_form_trade_off", 6, out);
        pe_step_epsilon(&step, 1, &x, out);
        print("closed_form_epsilon", 3, out);
        x *= 8.0;
        pe_step_profile(&step, 1, &x, out);
        print("closed_form_profile", 3, out);
    }
}

/* DP-SGD: rows with proven errors and rows with estimated ones. */
static void composed(void) {
    static const double noise[] = {1.0, 0.7, 2.5}, p[] = {0.01, 0.25, 1.0 / 64}, steps[] = {1000, 30, 8000};
    double c[THRESHOLDS], rows[THRESHOLDS * PE_ROW];
    for (int k = 0; k < 3; k++) {
        pe_pair *pair;
        if (pe_pair_new(1, noise + k, p + k, steps + k, k == 1, 2e8, &pair) != PE_OK) continue;
        for (int i = 0; i < THRESHOLDS; i++) c[i] = between(-4.0, 2.0);
        pe_pair_certify(pair, PE_PROFILE, PE_THOROUGH, THRESHOLDS, c, rows);
        print("composed_certified", THRESHOLDS * PE_ROW, rows);
        pe_pair_at(pair, PE_PROFILE, THRESHOLDS, c, rows);
        print("composed_estimated", THRESHOLDS * PE_ROW, rows);
        pe_pair_free(pair);
    }
}

/* The law of steps on panels, and the law of an epoch of random allocation. */
static void laws(void) {
    double c[THRESHOLDS], rows[THRESHOLDS * PE_ROW];
    pe_epoch *epoch;
    for (int i = 0; i < THRESHOLDS; i++) c[i] = between(-1.0, 1.0);
    if (pe_epoch_new(1.0, 100.0, 1.0, &epoch) == PE_OK) {
        pe_epoch_at(epoch, 0, THRESHOLDS, c, rows);
        print("epoch", THRESHOLDS * PE_ROW, rows);
        pe_epoch_free(epoch);
    }
}

static void random_numbers(void) {
    uint64_t words[4];
    for (uint64_t i = 0; i < 50; i++) {
        pe_threefry(1, 2, i, 3, words);
        printf("threefry %016" PRIx64 " %016" PRIx64 "\n", words[0], words[1]);
    }
}

int main(void) {
    pe_environment host;
    pe_environment_enter(&host);
    normal();
    noncentral();
    closed_form();
    composed();
    laws();
    random_numbers();
    pe_environment_leave(&host);
    return 0;
}
