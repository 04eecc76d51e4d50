#include "fuzz.h"

/* Functions of arrays: one argument, and three with strides. */

/* ---- one argument ---- */

void fuzz_unary(void) {
    static const struct {
        const char *name;
        double (*scalar)(double);
        void (*array)(const double *, double *, size_t);
        double from, to, least, most; /* domain and range */
    } KERNELS[] = {
        {"normal_pdf", pe_normal_pdf, pe_normal_pdf_array, -INFINITY, INFINITY, 0.0, 0.3989422804014327},
        {"ndtr", pe_ndtr, pe_ndtr_array, -INFINITY, INFINITY, 0.0, 1.0},
        {"log_ndtr", pe_log_ndtr, pe_log_ndtr_array, -INFINITY, INFINITY, -INFINITY, 0.0},
        {"ndtri", pe_ndtri, pe_ndtri_array, 0.0, 1.0, -INFINITY, INFINITY},
        {"ndtri_exp", pe_ndtri_exp, pe_ndtri_exp_array, -INFINITY, 0.0, -INFINITY, INFINITY},
    };
    const size_t k = below(LENGTH(KERNELS)), n = below(40);
    double *x = filled(n, anything), *out = allocate(n);
    KERNELS[k].array(x, out, n);
    for (size_t i = 0; i < n; ++i) {
        const int inside = x[i] >= KERNELS[k].from && x[i] <= KERNELS[k].to;
        require(inside == !isnan(out[i]), KERNELS[k].name, "NaN outside the domain only", x[i]);
        require(!inside || (out[i] >= KERNELS[k].least && out[i] <= KERNELS[k].most), KERNELS[k].name,
                "range", x[i]);
        require(!differ(out[i], KERNELS[k].scalar(x[i])), KERNELS[k].name, "the bits alone", x[i]);
    }
    KERNELS[k].array(x, x, n);
    for (size_t i = 0; i < n; ++i)
        require(!differ(out[i], x[i]), KERNELS[k].name, "the bits in place", out[i]);
    free(x);
    free(out);
}

/* ---- three arguments with strides ---- */

void fuzz_ternary(void) {
    static const struct {
        const char *name;
        ternary_form run;
        size_t functions;
        unsigned probabilities; /* bit i: function i gives a probability; bit 8 + i: its logarithm */
    } KERNELS[] = {
        {"ncx2", pe_ncx2_strided, 6, 0x0c03},     {"ncx2 quantile", pe_ncx2_quantile_strided, 4, 0},
        {"marcum", pe_marcum_strided, 4, 0x0c03}, {"marcum inverse", pe_marcum_inverse_strided, 4, 0},
        {"relaxed", relaxed, 8, 0xcc33},          {"one step", one_step, 4, 0x0c03},
    };
    const size_t k = below(LENGTH(KERNELS)), n = below(9);
    const size_t what = below(KERNELS[k].functions);
    double *in[3], *out;
    ptrdiff_t stride[4];
    for (size_t j = 0; j < 4; ++j) /* in doubles: 0 repeats one number, the last is the result's */
        stride[j] = (ptrdiff_t)(j < 3 ? below(3) : 1 + below(3));
    for (size_t j = 0; j < 3; ++j) {
        const int common = below(2) == 0;
        const size_t size = n ? (n - 1) * (size_t)stride[j] + 1 : 0;
        in[j] = allocate(size);
        for (size_t i = 0; i < size; ++i)
            in[j][i] = !common ? anything() : j == 0 ? probability() : log_uniform(1e-6, 1e8);
    }
    out = allocate(n ? (n - 1) * (size_t)stride[3] + 1 : 0);
    const ptrdiff_t s = sizeof(double);
    const size_t outside =
        KERNELS[k].run((int)what, n, (char *)in[0], s * stride[0], (char *)in[1], s * stride[1],
                       (char *)in[2], s * stride[2], (char *)out, s * stride[3]);
    size_t expected = 0;
    for (size_t i = 0; i < n; ++i) {
        const double *x[3], value = out[i * (size_t)stride[3]];
        for (size_t j = 0; j < 3; ++j) x[j] = in[j] + i * (size_t)stride[j];
        const int given = !isnan(*x[0]) && !isnan(*x[1]) && !isnan(*x[2]);
        double one;
        expected += isnan(value) && given;
        require(given || isnan(value), KERNELS[k].name, "NaN for NaN", value);
        KERNELS[k].run((int)what, 1, (const char *)x[0], s, (const char *)x[1], s, (const char *)x[2], s,
                       (char *)&one, s);
        require(!differ(one, value), KERNELS[k].name, "the bits alone", *x[0]);
        if (isnan(value)) continue;
        if (KERNELS[k].probabilities >> what & 1)
            require(value >= 0.0 && value <= 1.0, KERNELS[k].name, "a probability", *x[0]);
        else if (KERNELS[k].probabilities >> (8 + what) & 1)
            require(value <= 0.0, KERNELS[k].name, "a log probability", *x[0]);
        else if (what < 5) /* quantiles and densities; not the density's logarithm */
            require(value >= 0.0, KERNELS[k].name, "not negative", *x[0]);
    }
    require(outside == expected, KERNELS[k].name, "the number outside the domain", (double)outside);
    for (size_t j = 0; j < 3; ++j) free(in[j]);
    free(out);
}
