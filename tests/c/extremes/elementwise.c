#include "extremes.h"

/* Functions of arrays: one argument, and three with strides. */

typedef double (*scalar_form)(double);
typedef void (*array_form)(const double *, double *, size_t);

static const struct {
    const char *name;
    scalar_form scalar;
    array_form array;
} UNARY[] = {
    {"normal_pdf", pe_normal_pdf, pe_normal_pdf_array}, {"ndtr", pe_ndtr, pe_ndtr_array},
    {"log_ndtr", pe_log_ndtr, pe_log_ndtr_array},       {"ndtri", pe_ndtri, pe_ndtri_array},
    {"ndtri_exp", pe_ndtri_exp, pe_ndtri_exp_array},
};

static int compare(const char *name, scalar_form scalar, array_form array, const double *x, size_t n) {
    int failures = 0;
    double *in = allocate(n), *out = allocate(n);
    memcpy(in, x, n * sizeof(double));
    array(in, out, n);
    array(in, in, n); /* in place */
    for (size_t i = 0; i < n; ++i)
        if (differ(out[i], scalar(x[i])) || differ(in[i], out[i])) {
            fprintf(stderr, "%s(%a): scalar %a, array %a, in place %a\n", name, x[i], scalar(x[i]), out[i],
                    in[i]);
            ++failures;
        }
    free(in);
    free(out);
    return failures;
}

int run_unary(void) {
    int failures = 0;
    /* Doubles at equal steps of their bit pattern: every binade, both signs, infinities, NaNs. */
    enum { COUNT = 60000 };
    double *sweep = allocate(COUNT);
    for (size_t i = 0; i < COUNT; ++i) {
        const uint64_t bits = (uint64_t)i * (UINT64_MAX / COUNT);
        memcpy(&sweep[i], &bits, sizeof bits);
    }
    for (size_t k = 0; k < LENGTH(UNARY); ++k) {
        for (size_t n = 0; n <= LENGTH(EXTREMES); ++n)
            failures += compare(UNARY[k].name, UNARY[k].scalar, UNARY[k].array, EXTREMES, n);
        failures += compare(UNARY[k].name, UNARY[k].scalar, UNARY[k].array, sweep, COUNT);
    }
    free(sweep);
    return failures;
}

static const struct {
    const char *name;
    ternary_form run;
    int functions;
} TERNARY[] = {
    {"ncx2", pe_ncx2_strided, 6},     {"ncx2 quantile", pe_ncx2_quantile_strided, 4},
    {"marcum", pe_marcum_strided, 4}, {"marcum inverse", pe_marcum_inverse_strided, 4},
    {"relaxed", relaxed, 8},          {"one step", one_step, 4},
};

/* Kernels of three arguments with strides: every triple of extremes and a sweep of bit patterns, in
   blocks of every length up to 70, must give the bits of single evaluations. */
int run_ternary(void) {
    int failures = 0;
    const ptrdiff_t s = sizeof(double);
    for (size_t k = 0; k < LENGTH(TERNARY); ++k)
        for (int what = 0; what < TERNARY[k].functions; ++what) {
            uint64_t state = 99;
            for (size_t n = 0; n <= 70; ++n) {
                double *in[3], *out = allocate(n);
                for (int j = 0; j < 3; ++j) {
                    in[j] = allocate(n);
                    for (size_t i = 0; i < n; ++i) {
                        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                        if (state >> 62 == 0) {
                            memcpy(&in[j][i], &state, sizeof state);
                        } else if (state >> 62 == 1) {
                            in[j][i] = EXTREMES[(state >> 20) % LENGTH(EXTREMES)];
                        } else {
                            in[j][i] = ldexp((double)(state >> 11) * 0x1p-53, (int)(state % 50) - 8);
                            if (j == 0 && state >> 62 == 2) in[j][i] = (double)(state >> 11) * 0x1p-52 - 1.0;
                        }
                    }
                }
                const size_t outside = TERNARY[k].run(what, n, (char *)in[0], s, (char *)in[1], s,
                                                      (char *)in[2], s, (char *)out, s);
                size_t expected = 0;
                for (size_t i = 0; i < n; ++i)
                    expected += isnan(out[i]) && !(isnan(in[0][i]) || isnan(in[1][i]) || isnan(in[2][i]));
                if (outside != expected) {
                    fprintf(stderr, "%s %d: %zu arguments outside the domain, not %zu\n", TERNARY[k].name,
                            what, outside, expected);
                    ++failures;
                }
                for (size_t i = 0; i < n; ++i) {
                    double one;
                    TERNARY[k].run(what, 1, (char *)(in[0] + i), s, (char *)(in[1] + i), s,
                                   (char *)(in[2] + i), s, (char *)&one, s);
                    if (differ(one, out[i])) {
                        fprintf(stderr, "%s %d(%a, %a, %a): alone %a, in array %a\n", TERNARY[k].name, what,
                                in[0][i], in[1][i], in[2][i], one, out[i]);
                        ++failures;
                    }
                }
                for (int j = 0; j < 3; ++j) free(in[j]);
                free(out);
            }
        }
    return failures;
}
