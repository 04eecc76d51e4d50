/* Random inputs to the kernels under the sanitizers: make fuzz, or by hand
 *
 *     build/sanitize/fuzz [inputs] [seed]
 *
 * One input is one call of one kernel: arrays of random length and exactly that size, random strides,
 * doubles of any bits where the kernel takes any, and random members of the domain where the caller
 * keeps to one (csrc/pyengine.h says which).  Besides what the sanitizers see, each result must keep
 * the laws that hold for every input: NaN where, and only where, an argument lies outside the domain,
 * probabilities in [0, 1], the same bits alone as in an array, bounds in order.  A failure prints the
 * input's number; the same seed gives the same inputs.
 */
#include "../checks.h"

#include <time.h>

static uint64_t STATE;
static int FAILURES;
static uint64_t INPUT;

static uint64_t random_bits(void) /* SplitMix64 */
{
    uint64_t z = STATE += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t below(size_t n) {
    return (size_t)(random_bits() % n);
}

static double uniform(double low, double high) {
    return low + (high - low) * ((double)(random_bits() >> 11) * 0x1p-53);
}

static double log_uniform(double low, double high) {
    return exp(uniform(log(low), log(high)));
}

/* A double of any kind: any bits, an extreme or a neighbour of one, or a common number. */
static double anything(void) {
    double x;
    const uint64_t bits = random_bits();
    switch (below(4)) {
    case 0:
        memcpy(&x, &bits, sizeof x);
        return x;
    case 1:
        x = EXTREMES[bits % LENGTH(EXTREMES)];
        return below(2) ? x : nextafter(x, bits >> 63 ? INFINITY : -INFINITY);
    case 2:
        return uniform(-50.0, 50.0);
    default:
        return (bits & 1 ? -1.0 : 1.0) * log_uniform(1e-18, 1e18);
    }
}

static double probability(void) {
    const double p = below(2) ? uniform(0.0, 1.0) : log_uniform(1e-300, 1.0);
    return below(8) ? p : (below(2) ? 0.0 : 1.0);
}

static void require(int ok, const char *kernel, const char *law, double at) {
    if (ok) return;
    if (++FAILURES > 20) return; /* enough to see what is wrong */
    fprintf(stderr, "input %llu, %s: %s at %a (%.17g)\n", (unsigned long long)INPUT, kernel, law, at, at);
}

static double *filled(size_t n, double (*value)(void)) {
    double *block = allocate(n);
    for (size_t i = 0; i < n; ++i) block[i] = value();
    return block;
}

/* ---- one argument ---- */

static void fuzz_unary(void) {
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

typedef size_t (*ternary_form)(int, size_t, const char *, ptrdiff_t, const char *, ptrdiff_t, const char *,
                               ptrdiff_t, char *, ptrdiff_t);

static size_t relaxed(int what, size_t n, const char *p, ptrdiff_t sp, const char *d, ptrdiff_t sd,
                      const char *m, ptrdiff_t sm, char *out, ptrdiff_t so) {
    return pe_relaxed_strided(what & 3, what >> 2, n, p, sp, d, sd, m, sm, out, so);
}

/* Four arguments: the third also takes the place of the fourth. */
static size_t one_step(int what, size_t count, const char *p, ptrdiff_t sp, const char *d, ptrdiff_t sd,
                       const char *n, ptrdiff_t sn, char *out, ptrdiff_t so) {
    return pe_one_step_sgd_strided(what, count, p, sp, d, sd, n, sn, n, sn, out, so);
}

static void fuzz_ternary(void) {
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

/* ---- composed loss ---- */

static void check_rows(const char *name, size_t n, const double *at, const double *rows) {
    for (size_t i = 0; i < n; ++i) require(!row_is_wrong(rows + PE_ROW * i), name, "a consistent row", at[i]);
}

static double log_target(void) {
    return below(4) ? -log_uniform(1e-300, 760.0) : -uniform(0.0, 2.0) - 1e-17;
}

static const int SOLVED[] = {PE_A_ABOVE, PE_A_BELOW, PE_PROFILE};

/* Random shifts that rise, and weights of sum 1. */
static void fill_normals(size_t n, double *shift, double *weight) {
    double total = 0.0, at = below(2) ? 0.0 : uniform(-3.0, 3.0);
    for (size_t i = 0; i < n; ++i) {
        shift[i] = at;
        at += log_uniform(1e-3, 10.0);
        total += weight[i] = log_uniform(1e-8, 1.0);
    }
    for (size_t i = 0; i < n; ++i) weight[i] /= total;
}

enum { MOST_TERMS = 5 };

/* The same numbers for proofs, of shifts that are ordered as those proofs want them or not, and not those of the
 * mixtures: the kernel takes them as they are. */
static void fill_exact(size_t alternatives, size_t *terms, double *exact) {
    for (size_t i = 0; i < alternatives; ++i) {
        double shift[MOST_TERMS], of_a[MOST_TERMS], of_b[MOST_TERMS];
        const size_t n = terms[i] = 1 + below(MOST_TERMS);
        fill_normals(n, shift, of_a);
        fill_normals(n, shift, of_b);
        *exact++ = 1.0 / (double)alternatives;
        *exact++ = 0.0;
        for (size_t j = 0; j < n; ++j) {
            const double numbers[] = {shift[j], of_a[j], of_b[j]};
            for (int k = 0; k < 3; ++k) {
                *exact++ = k && below(4) == 0 ? 0.0 : numbers[k];
                *exact++ = 0.0;
            }
        }
    }
}

/* Steps of mixtures, told apart or not, and of a table. */
static void add_steps(pe_pair *pair) {
    enum { MOST = 5 };
    double shift[2 * PE_ALTERNATIVES * MOST], weight[2 * PE_ALTERNATIVES * MOST];
    double log_share[PE_ALTERNATIVES];
    size_t sizes[2 * PE_ALTERNATIVES], used = 0;
    const size_t alternatives = 1 + below(PE_ALTERNATIVES);
    for (size_t i = 0; i < alternatives; ++i) {
        log_share[i] = -log((double)alternatives);
        for (size_t side = 0; side < 2; ++side) {
            const size_t m = 1 + below(MOST);
            sizes[2 * i + side] = m;
            fill_normals(m, shift + used, weight + used);
            used += m;
        }
    }
    size_t terms[PE_ALTERNATIVES];
    double exact[PE_ALTERNATIVES * (2 + 6 * MOST_TERMS)];
    fill_exact(alternatives, terms, exact);
    if (below(2)) {
        const int known = below(2) != 0;
        pe_pair_add_mixtures(pair, floor(log_uniform(1.0, 1e6)), alternatives, log_share, sizes, shift,
                             weight, known ? terms : NULL, known ? exact : NULL);
    }
    if (below(3) == 0) {
        const size_t m = 1 + below(40);
        double *loss = allocate(m), *log_weight = allocate(m);
        const double spacing = log_uniform(1e-3, 1.0);
        for (size_t i = 0; i < m; ++i) {
            loss[i] = spacing * ((double)i - 0.5 * (double)m);
            log_weight[i] = log(spacing) - 0.5 * loss[i] * loss[i];
        }
        pe_pair_add_table(pair, floor(log_uniform(1.0, 1e6)), m, loss, log_weight, 3.0 / spacing);
        free(loss);
        free(log_weight);
    }
}

static void fuzz_pair(void) {
    double noise[3], p[3], steps[3];
    const size_t kinds = 1 + below(3), n = below(4);
    for (size_t i = 0; i < kinds; ++i) {
        noise[i] = log_uniform(0.2, 100.0);
        p[i] = below(4) ? log_uniform(1e-7, 1.0) : 1.0;
        steps[i] = floor(log_uniform(1.0, 1e8));
    }
    pe_pair *pair;
    if (pe_pair_new(kinds, noise, p, steps, (int)below(2), 1e3, &pair) == PE_OK) {
        double *rows = allocate(PE_ROW * n), *c = allocate(n), *target = filled(n, log_target);
        if (below(2)) add_steps(pair);
        const double size = log_uniform(1e-6, 1e6);
        for (size_t i = 0; i < n; ++i) { /* finite */
            c[i] = below(3) ? size * uniform(-1.0, 1.0) : anything();
            if (!isfinite(c[i])) c[i] = 0.0;
        }
        const int functional = SOLVED[below(LENGTH(SOLVED))];
        pe_pair_at(pair, functional, n, c, rows);
        check_rows("pair_at", n, c, rows);
        pe_pair_solve(pair, functional, n, target, rows);
        check_rows("pair_solve", n, target, rows);
        if (below(4) == 0) {
            pe_pair_certify(pair, functional, n, c, rows);
            check_rows("pair_certify", n, c, rows);
        }
        free(rows);
        free(c);
        free(target);
    }
    pe_pair_free(pair);
}

static void fuzz_law(void) {
    pe_law *one = NULL, *two = NULL;
    const double noise = log_uniform(0.3, 30.0), p = log_uniform(1e-7, 0.999);
    const size_t panels = 4 + below(200), n = below(4), terms = 1 + below(3);
    double shift[3], ratio[3], rest[3], all = 0.0;
    for (size_t j = 0; j < terms; ++j) {
        shift[j] = (double)(j + 1) / noise;
        ratio[j] = j ? ratio[j - 1] * log_uniform(1e-9, 1.0) : p / (1.0 - p);
        rest[j] = 1e-17 * (double)below(9);
        all += ratio[j];
    }
    const double deepest = below(2) ? -160.0 : -780.0;
    if (pe_law_step(terms, shift, ratio, rest, -log1p(all), 0.0, deepest, panels, &one) == PE_OK) {
        const pe_law *law = one;
        if (below(4) == 0 && pe_law_convolve(one, one, panels, &two) == PE_OK) law = two;
        double *rows = allocate(PE_ROW * n), *c = filled(n, anything);
        double *target = filled(n, log_target);
        const int reversed = (int)below(2);
        pe_law_at(law, reversed, n, c, rows);
        check_rows("law_at", n, c, rows);
        pe_law_solve(law, reversed, SOLVED[below(LENGTH(SOLVED))], n, target, rows);
        check_rows("law_solve", n, target, rows);
        free(rows);
        free(c);
        free(target);
    }
    pe_law_free(one);
    pe_law_free(two);
}

/* Rows of any bits must not lead outside the arrays; rows of probabilities give bounds in order. */
static void fuzz_answers(void) {
    const size_t n = below(6);
    const int probable = below(2) == 0;
    double *rows = filled(PE_ROW * n, anything), *alpha = filled(n, probability);
    double *out = allocate(6 * n), *errors = allocate(n);
    unsigned char *good = malloc(n + (n == 0));
    if (good == NULL) exit(EXIT_FAILURE);
    for (size_t i = 0; probable && i < n; ++i) {
        double *value = rows + PE_ROW * i + 2;
        alpha[i] = fmin(fmax(alpha[i], DBL_MIN), 1.0 - DBL_EPSILON);
        const double power = alpha[i] + (1.0 - alpha[i]) * uniform(0.0, 1.0);
        value[PE_A_ABOVE] = log(alpha[i]);
        value[PE_A_BELOW] = log1p(-alpha[i]);
        value[PE_B_ABOVE] = log(power);
        value[PE_B_BELOW] = log1p(-power);
        value[PE_PROFILE] = -log_uniform(1e-17, 760.0);
        for (size_t f = 0; f < PE_FUNCTIONALS; ++f)
            value[PE_FUNCTIONALS + f] = log_uniform(1e-13, 1e-2); /* logs above are rounded */
    }
    pe_rows_judge(n, rows, (int)below(PE_FUNCTIONALS), 1e-11, 1e-9, errors, good);
    pe_trade_off_answers(n, alpha, rows, out);
    for (size_t i = 0; probable && i < 2 * n; ++i)
        require(out[3 * i + 1] <= out[3 * i] && out[3 * i] <= out[3 * i + 2] && out[3 * i] >= 0.0 &&
                    out[3 * i] <= 1.0,
                "trade_off_answers", "bounds in order", out[3 * i]);
    pe_profile_answers(n, rows, out);
    for (size_t i = 0; probable && i < n; ++i)
        require(out[3 * i + 1] <= out[3 * i] && out[3 * i] <= out[3 * i + 2], "profile_answers",
                "bounds in order", out[3 * i]);
    pe_epsilon_answers(n, rows, out);
    free(rows);
    free(alpha);
    free(out);
    free(errors);
    free(good);
}

/* ---- lattice ---- */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fuzz_normal_cells(void) {
    const size_t n = 1 + below(40);
    const double shift = below(2) ? uniform(-60.0, 60.0) : log_uniform(1e-12, 1e3);
    const double width = log_uniform(1e-12, 100.0), middle = below(2) ? shift : uniform(-50.0, 50.0);
    double *z = allocate(n), *mass = allocate(n + 1), total = 0.0;
    for (size_t i = 0; i < n; ++i) z[i] = middle + width * uniform(-1.0, 1.0);
    qsort(z, n, sizeof(double), by_size);
    size_t kept = 1;
    for (size_t i = 1; i < n; ++i)
        if (z[i] > z[kept - 1]) z[kept++] = z[i];
    double *edges = allocate(kept);
    memcpy(edges, z, kept * sizeof(double));
    pe_normal_cells(kept, edges, shift, mass);
    for (size_t i = 0; i <= kept; ++i) {
        require(mass[i] <= 1e-12, "normal_cells", "the log of a probability", mass[i]);
        total += exp(mass[i]);
    }
    require(fabs(total - 1.0) < 1e-11, "normal_cells", "masses add up to 1", total);
    free(z);
    free(edges);
    free(mass);
}

static double mass(void) {
    return below(6) ? log_uniform(1e-300, 1.0) : 0.0;
}

static void fuzz_lattice(void) {
    const size_t n = 1 + below(60), start = 1 + below(5), points = start + n;
    const double reach = log_uniform(1e-6, 100.0);
    const pe_lattice grid = {
        .origin = uniform(-reach, reach),
        .spacing = 2.0 * reach / (double)n,
        .tilt = uniform(-100.0, 100.0) / (1.0 + reach),
        .centre = uniform(0.0, (double)points),
        .log_scale_a = uniform(-100.0, 100.0),
        .log_scale_b = uniform(-100.0, 100.0),
        .outer = (int)below(2),
    };
    double *log_a = allocate(n), *log_b = allocate(n), *error = allocate(n), *ratio = allocate(n);
    double *log_ratio = allocate(n), *shift = allocate(n + 1), *sums[3];
    for (size_t i = 0; i < n; ++i) {
        const double loss = grid.origin + grid.spacing * ((double)(start + i) - uniform(0.0, 1.0));
        log_a[i] = below(8) ? -log_uniform(1e-3, 700.0) : -INFINITY;
        log_b[i] = below(8) ? fmin(log_a[i] + loss, 0.0) : -INFINITY;
        log_ratio[i] = isfinite(log_a[i]) && isfinite(log_b[i]) ? log_b[i] - log_a[i] : 0.0;
        error[i] = below(2) ? log_uniform(1e-17, 1e-9) : 0.0;
        ratio[i] = below(2) ? log_uniform(1e-17, 1e-9) : 0.0;
    }
    for (size_t i = 0; i <= n; ++i) shift[i] = below(2) ? log_uniform(1e-18, 1e-10) : 0.0;
    for (size_t j = 0; j < 3; ++j) {
        sums[j] = allocate(points);
        memset(sums[j], 0, points * sizeof(double));
    }
    const pe_cells cells = {start, n, log_a, log_b, log_ratio, error, ratio, shift};
    pe_lattice_masses out = {sums[0], sums[1], sums[2], 0.0, 0.0};
    pe_lattice_cells(&grid, &cells, &out);
    for (size_t j = 0; j < 3; ++j)
        for (size_t i = 0; i < points; ++i)
            require(sums[j][i] >= 0.0, "lattice_cells", "masses are not negative", sums[j][i]);
    require(out.lost >= 0.0, "lattice_cells", "the lost mass is not negative", out.lost);
    for (size_t j = 0; j < 3; ++j) free(sums[j]);
    free(log_a);
    free(log_b);
    free(error);
    free(ratio);
    free(log_ratio);
    free(shift);
}

static void fuzz_sums(void) {
    const size_t n = 1 + below(below(20) ? 50 : 3 * PE_SUM_BLOCK);
    const double log_q = below(8) ? -log_uniform(1e-12, 50.0) : 0.0, h = log_uniform(1e-12, 10.0);
    double *y = filled(n, mass), *plain = allocate(n), *lower = allocate(n), *profile = allocate(n);
    double both[2];
    pe_discounted_sums(n, y, log_q, plain);
    pe_profile_sums(n, y, log_q, h, lower, profile);
    for (size_t i = 0; i < n; ++i) {
        require(plain[i] >= y[i] * (1.0 - 1e-9), "discounted_sums", "at least the last term", y[i]);
        require(lower[i] <= plain[i] * (1.0 + 1e-9) + DBL_MIN, "profile_sums", "smaller ratio", y[i]);
        require(profile[i] >= 0.0 && profile[i] <= plain[i] * (1.0 + 1e-9) + DBL_MIN, "profile_sums",
                "part of the sum", profile[i]);
    }
    double total = 0.0;
    for (size_t i = 0; i < n; ++i) total += y[i];
    require(fabs(pe_sum_less_one(n, y) - (total - 1.0)) <= 1e-15 * (double)n * (1.0 + total), "sum_less_one",
            "is the plain sum but for rounding", total);
    pe_exponential_sums(n, y, uniform(0.0, (double)n), uniform(-600.0, 600.0) / (double)n, both);
    require(both[0] >= 0.0, "exponential_sums", "not negative", both[0]);
    free(y);
    free(plain);
    free(lower);
    free(profile);
}

static void fuzz_sparse_power(void) {
    const size_t count = 1 + below(PE_MOST_SPARSE), n = 1 + below(40);
    const int64_t points = (int64_t)(2 * n) << below(12);
    const int bits = 1 + (int)below(6);
    const size_t room = ((size_t)2 << bits) + 2 * (size_t)(points / ((int64_t)1 << bits) + 3);
    int64_t *place = malloc(count * sizeof *place);
    double *y = filled(count, mass), *tables = allocate(room), *z = allocate(2 * n);
    double *bound = allocate(n), *slack = allocate(n), total = 0.0;
    for (size_t k = 0; k < count; ++k) total += y[k];
    for (size_t k = 0; k < count; ++k) {
        place[k] = (int64_t)below((size_t)points);
        y[k] = total > 0.0 ? y[k] / total : 1.0 / (double)count;
    }
    for (size_t j = 0; j < n; ++j) {
        bound[j] = 1.0;
        slack[j] = 0.0;
    }
    pe_sparse_power(n, points, count, place, y, pe_sum_less_one(count, y), 0.0, 1.0 + (double)below(1000000),
                    (int64_t)below((size_t)points), bits, tables, NULL, z, bound, slack);
    for (size_t j = 0; j < n; ++j)
        require(hypot(z[2 * j], z[2 * j + 1]) <= bound[j] * (1.0 + slack[j]), "sparse_power", "is bounded",
                bound[j]);
    free(place);
    free(y);
    free(tables);
    free(z);
    free(bound);
    free(slack);
}

static void fuzz_frequencies(void) {
    const size_t n = 1 + below(200), block = 2 * (1 + below(8)), count = 1 + below(8);
    const int64_t points = (int64_t)(8 * block * count) << below(20);
    const size_t blocks = (n + block - 1) / block;
    double *y = filled(n, mass), *moments = allocate(PE_BLOCK_MOMENTS * blocks);
    double *z = allocate(2 * count), total = 0.0;
    for (size_t i = 0; i < n; ++i) total += y[i];
    for (size_t i = 0; i < n && total > 0.0; ++i) y[i] /= total;
    const size_t centre = below(n);
    const double d = pe_low_frequencies(n, y, (int64_t)centre, points, block, count, moments, z);
    double distance = 0.0;
    for (size_t i = 0; i < n; ++i) distance += y[i] * fabs((double)i - (double)centre);
    require(d >= distance * (1.0 - 1e-12) && d <= (double)(n + block), "low_frequencies",
            "bounds the mean distance", d);
    for (size_t j = 0; j < count; ++j)
        require(z[2 * j] <= 1e-9 && hypot(z[2 * j], z[2 * j + 1]) <= 2.0 + 1e-9, "low_frequencies",
                "within the unit circle about -1", z[2 * j]);
    free(y);
    free(moments);
    free(z);
}

static void fuzz_spectrum(void) {
    const size_t n = below(40);
    const int with_other = below(2) == 0;
    const double steps = below(2) ? floor(log_uniform(1.0, 9007199254740992.0)) : (double)(1 + below(9));
    double *z = allocate(2 * n), *other = allocate(2 * n), *bound = allocate(n), *slack = allocate(n);
    for (size_t i = 0; i < n; ++i) {
        const double r = below(6) ? log_uniform(1e-300, 1.0) : (double)below(2), t = uniform(-3.2, 3.2);
        z[2 * i] = r * cos(t);
        z[2 * i + 1] = r * sin(t);
        other[2 * i] = r * sin(t);
        other[2 * i + 1] = r * cos(t);
        bound[i] = 1.0;
        slack[i] = 0.0;
    }
    pe_spectrum_power(n, z, steps, 1e-15, with_other ? other : NULL, bound, slack);
    for (size_t i = 0; i < n; ++i) {
        const double size = hypot(z[2 * i], z[2 * i + 1]);
        require(size <= bound[i] * (1.0 + 4e-16 * steps + 1e-12), "spectrum_power", "modulus", size);
        require(bound[i] >= 1e-260 && slack[i] >= 0.0, "spectrum_power", "bound and slack", bound[i]);
    }
    free(z);
    free(other);
    free(bound);
    free(slack);
}

/* ---- random losses ---- */

static void fuzz_sampling(void) {
    const size_t cells = 1 + below(9), n = below(20);
    double *coefficients = allocate(4 * cells), *all = allocate(n), one;
    for (size_t i = 0; i < 4 * cells; ++i) coefficients[i] = uniform(-1.0, 1.0);
    const pe_loss_table table = {
        .steps = below(6),
        .low = below(4) ? uniform(-9.0, 9.0) : anything(),
        .per_width = log_uniform(1e-6, 1e6),
        .last = (double)cells - 1e-9,
        .coefficients = coefficients,
    };
    if (isfinite(table.low)) {
        const uint64_t seed = random_bits(), first = random_bits();
        pe_sample_losses(seed, first, n, 1, &table, all);
        for (size_t i = 0; i < n; ++i) {
            pe_sample_losses(seed, first + i, 1, 1, &table, &one);
            require(!differ(one, all[i]), "sample_losses", "the bits alone", all[i]);
            require(fabs(all[i]) <= 4.0 * (double)table.steps, "sample_losses", "size", all[i]);
        }
    }
    free(coefficients);
    free(all);
}

/* Costly kernels are drawn less often: weights out of 1000. */
static const struct {
    const char *name;
    void (*run)(void);
    size_t weight;
} KINDS[] = {
    {"one argument", fuzz_unary, 265},     {"three arguments", fuzz_ternary, 250},
    {"inversion", fuzz_pair, 2},           {"convolution", fuzz_law, 3},
    {"answers", fuzz_answers, 130},        {"normal cells", fuzz_normal_cells, 70},
    {"lattice cells", fuzz_lattice, 70},   {"sums", fuzz_sums, 70},
    {"frequencies", fuzz_frequencies, 50}, {"sparse_power", fuzz_sparse_power, 50},
    {"spectrum", fuzz_spectrum, 50},       {"random losses", fuzz_sampling, 40},
};

int main(int count, char **arguments) {
    const uint64_t inputs = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000;
    const uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    size_t drawn[LENGTH(KINDS)] = {0}, total = 0;
    clock_t taken[LENGTH(KINDS)] = {0};
    for (size_t k = 0; k < LENGTH(KINDS); ++k) total += KINDS[k].weight;
    for (INPUT = 0; INPUT < inputs; ++INPUT) {
        STATE = (seed << 40) + INPUT; /* an input does not depend on those before it */
        random_bits();
        size_t k = 0, ticket = below(total);
        while (ticket >= KINDS[k].weight) ticket -= KINDS[k++].weight;
        const clock_t start = clock();
        KINDS[k].run();
        taken[k] += clock() - start;
        ++drawn[k];
    }
    for (size_t k = 0; k < LENGTH(KINDS); ++k)
        printf("%-20s %8zu inputs  %7.1f s\n", KINDS[k].name, drawn[k], (double)taken[k] / CLOCKS_PER_SEC);
    printf("%llu inputs, seed %llu: %d failures\n", (unsigned long long)inputs, (unsigned long long)seed,
           FAILURES);
    return FAILURES ? EXIT_FAILURE : EXIT_SUCCESS;
}
