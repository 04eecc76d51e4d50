/* Runs the kernels on extremes, for the sanitizers (make sanitize).
 *
 * A new elementwise kernel is one line in UNARY; any other kernel gets a function that returns the
 * number of failures, and one line in CASES.  Accuracy is judged by the Python tests; here arrays
 * have exactly the size that is passed, so that a read or write beyond them is caught, and the
 * array form must give the bits of the scalar form.  Rows of the composed loss must be consistent in
 * themselves: a failure is a row of NaN, probabilities are at most 1 and add up to 1 within the
 * errors that the row claims.
 */
#include "checks.h"

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

static int run_unary(void) {
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

/* ---- composed privacy loss ------------------------------------------------------------------- */

static const double NOISES[] = {0.2, 1.0, 100.0};
static const double RATES[] = {1e-7, 0.01, 0.5, 1.0 - DBL_EPSILON / 2, 1.0};
static const double TARGETS[] = {-1e-300, -1e-16, -0.1, -0.69314718055994531, -20.0, -300.0, -760.0};
static const int SOLVED[] = {PE_A_ABOVE, PE_A_BELOW, PE_PROFILE};

/* Thresholds around the smallest loss, which the caller appends. */
static const double THRESHOLDS[] = {
    0.0, -0.0, 1e-300, -1e-300, 1e-8,    -1e-8,    1.0,      -1.0,      50.0, -50.0,
    1e6, -1e6, 1e17,   -1e17,   DBL_MAX, -DBL_MAX, INFINITY, -INFINITY, NAN,
};

static const double *PRINTED; /* noise, p, steps, reversed of the pair at work */

static int check_rows(const char *name, int functional, size_t n, const double *x, const double *rows) {
    int failures = 0;
    for (size_t i = 0; i < n; ++i) {
        const double *row = rows + PE_ROW * i;
        const int wrong = row_is_wrong(row);
        if (!wrong) continue;
        fprintf(stderr, "%s(noise %g, p %.17g, steps %g, reversed %g; functional %d, %.17g): rule %d:", name,
                PRINTED[0], PRINTED[1], PRINTED[2], PRINTED[3], functional, x[i], wrong);
        for (size_t k = 0; k < PE_ROW; ++k) fprintf(stderr, " %.17g", row[k]);
        fprintf(stderr, "\n");
        ++failures;
    }
    return failures;
}

/* The thresholds and the doubles around the smallest loss; returns how many. */
static size_t make_thresholds(double p, double steps, int reversed, double *x) {
    size_t n = LENGTH(THRESHOLDS);
    memcpy(x, THRESHOLDS, sizeof THRESHOLDS);
    if (p < 1.0) {
        const double floor = steps * log1p(-p) * (reversed ? -1.0 : 1.0);
        x[n++] = floor;
        x[n++] = nextafter(floor, INFINITY);
        x[n++] = nextafter(floor, -INFINITY);
        x[n++] = floor * (1.0 - 1e-9);
    }
    return n;
}

enum { MOST = LENGTH(THRESHOLDS) + 4 };

/* The bounds of an answer, in the order value, lower, upper, hold its value. */
static int check_step(const char *name, size_t width, size_t n, const double *x, const double *out) {
    int failures = 0;
    for (size_t i = 0; i < n; ++i) {
        const double *answer = out + width * i;
        if (!(answer[1] <= answer[0] && answer[0] <= answer[2])) {
            fprintf(stderr, "%s(noise %g, p %.17g, order %g; %.17g): %a not within %a, %a\n", name,
                    PRINTED[0], PRINTED[1], PRINTED[3], x[i], answer[0], answer[1], answer[2]);
            ++failures;
        }
    }
    return failures;
}

static int run_step(void) {
    static const double LEVELS[] = {1e-300, 1e-30, 1e-6, 0.01, 0.3, 0.5, 0.9, 1.0 - 1e-9};
    static const double EPSILONS[] = {0.0, 1e-12, 1e-3, 0.5, 3.0, 40.0, 700.0};
    int failures = 0;
    double out[7 * LENGTH(LEVELS)];
    for (size_t a = 0; a < LENGTH(NOISES); ++a)
        for (size_t b = 0; b < LENGTH(RATES); ++b)
            for (int order = PE_ADD; order <= PE_ADD_REMOVE; ++order) {
                const double mu = 1.0 / NOISES[a], p = RATES[b];
                const pe_step step = {
                    .mu = {mu, 0.0},
                    .half_square = {0.5 * mu * mu, 0.5 * fma(mu, mu, -(mu * mu))},
                    .p = {p, 0.0},
                    .rest = {1.0 - p, 0.0},
                    .log_p = {log(p), 0.0},
                    .floor = {log1p(-p), 0.0},
                    .plain = p == 1.0,
                    .order = order,
                    .inexact = 1,
                };
                const double printed[4] = {NOISES[a], p, 1.0, order};
                PRINTED = printed;
                pe_step_trade_off(&step, LENGTH(LEVELS), LEVELS, out);
                failures += check_step("step_trade_off", 7, LENGTH(LEVELS), LEVELS, out);
                pe_step_profile(&step, LENGTH(EPSILONS), EPSILONS, out);
                failures += check_step("step_profile", 3, LENGTH(EPSILONS), EPSILONS, out);
                pe_step_epsilon(&step, LENGTH(LEVELS), LEVELS, out);
                failures += check_step("step_epsilon", 3, LENGTH(LEVELS), LEVELS, out);
            }
    return failures;
}

/* Every question to one pair; two orders of asking must give the same bits. */
static int ask_pair(size_t n_kinds, const double *noise, const double *p, const double *steps, int reversed,
                    double cost_limit) {
    int failures = 0;
    const double printed[4] = {noise[0], p[0], steps[0], reversed};
    double c[MOST];
    const size_t n = make_thresholds(p[0], steps[0], reversed, c);
    double *kept = allocate(PE_ROW * n), *rows = allocate(PE_ROW * n);
    PRINTED = printed;
    for (int order = 0; order < 2; ++order) {
        pe_pair *pair;
        if (pe_pair_new(n_kinds, noise, p, steps, reversed, cost_limit, &pair) == PE_OK) {
            double *solved = allocate(PE_ROW * LENGTH(TARGETS));
            for (size_t q = 0; order && q < LENGTH(SOLVED); ++q) {
                pe_pair_solve(pair, SOLVED[q], LENGTH(TARGETS), TARGETS, solved);
                failures += check_rows("pair_solve", SOLVED[q], LENGTH(TARGETS), TARGETS, solved);
                for (size_t i = 0; i < LENGTH(TARGETS); ++i) { /* alone, the same bits */
                    double row[PE_ROW];
                    pe_pair_solve(pair, SOLVED[q], 1, &TARGETS[i], row);
                    for (size_t k = 0; k < PE_ROW; ++k)
                        if (differ(row[k], solved[PE_ROW * i + k])) {
                            fprintf(stderr,
                                    "pair_solve(noise %g, p %.17g, steps %g; functional %d, "
                                    "%g): column %zu alone %a, among others %a\n",
                                    noise[0], p[0], steps[0], SOLVED[q], TARGETS[i], k, row[k],
                                    solved[PE_ROW * i + k]);
                            ++failures;
                        }
                }
            }
            free(solved);
            if (order) {
                pe_pair_at(pair, PE_A_ABOVE, n, c, rows);
                failures += check_rows("pair_at", PE_A_ABOVE, n, c, rows);
            }
            pe_pair_at(pair, PE_PROFILE, n, c, order ? rows : kept);
            failures += check_rows("pair_at", PE_PROFILE, n, c, order ? rows : kept);
            pe_pair_at(pair, PE_PROFILE, 0, NULL, NULL);
            double *proven = allocate(PE_ROW * n);
            for (size_t q = 0; q < LENGTH(SOLVED); ++q) {
                pe_pair_certify(pair, SOLVED[q], n, c, proven);
                failures += check_rows("pair_certify", SOLVED[q], n, c, proven);
                pe_pair_certify_beyond(pair, SOLVED[q], n, c, 0x1p-49, proven);
            }
            free(proven);
        }
        pe_pair_free(pair);
    }
    for (size_t k = 0; k < PE_ROW * n; ++k)
        if (differ(kept[k], rows[k])) {
            fprintf(stderr,
                    "pair(noise %g, p %.17g, steps %g, reversed %d): c = %g depends on the "
                    "past: %a, %a\n",
                    noise[0], p[0], steps[0], reversed, c[k / PE_ROW], kept[k], rows[k]);
            ++failures;
        }
    free(kept);
    free(rows);
    return failures;
}

static int run_pair(void) {
    int failures = 0;
    const double cost_limit = 2e4; /* what exceeds it is a status, at a thousandth of the time */
    /* the levels of truncation are slow at small noise, so not all combinations */
    static const double PAIRS[][4] = {
        {0.2, 1e-7, 1e8, 0}, {1.0, 0.01, 2.0, 0},   {1.0, 1.0 - DBL_EPSILON / 2, 1e8, 0},
        {1.0, 1.0, 1e4, 1},  {100.0, 1e-7, 1.0, 1}, {100.0, 0.5, 1e8, 1},
    };
    for (size_t k = 0; k < LENGTH(PAIRS); ++k)
        failures += ask_pair(1, &PAIRS[k][0], &PAIRS[k][1], &PAIRS[k][2], PAIRS[k][3] != 0.0, cost_limit);
    const double noise[] = {0.8, 4.0, 1.5, 50.0}, p[] = {0.001, 1.0, 1e-6, 0.9};
    const double steps[] = {1e4, 3.0, 7.0, 1.0};
    failures += ask_pair(LENGTH(noise), noise, p, steps, 0, cost_limit);
    /* two families of many kinds, one of them next to equal, beside kinds by themselves */
    enum { MANY = 150 };
    double many_noise[MANY], many_p[MANY], many_steps[MANY];
    for (size_t i = 0; i < MANY; ++i) {
        many_noise[i] = i % 2 ? 1.0 + (double)i * DBL_EPSILON : 2.0 + 0.01 * (double)i;
        many_p[i] = i % 2 ? 0.25 : 0.0625;
        many_steps[i] = i < 4 ? 1e3 : (double)(1 + i % 3);
    }
    failures += ask_pair(MANY, many_noise, many_p, many_steps, 0, cost_limit);
    failures += ask_pair(MANY, many_noise, many_p, many_steps, 1, cost_limit);
    return failures;
}

/* Mixtures of normals: one that is the sampled Gaussian has its rows, and two that the release tells apart,
 * but are the same, are one. */
static int run_mixtures(void) {
    static const double NOISE[] = {1.25}, P[] = {0.125}, STEPS[] = {300.0};
    static const double SHIFT[] = {0.0, 0.0, 0.8, 0.0, 0.0, 0.8};
    static const double WEIGHT[] = {1.0, 0.875, 0.125, 1.0, 0.875, 0.125};
    static const double SHARES[] = {-0.28768207245178093, -1.3862943611198906}; /* 3/4, 1/4 */
    static const double WHOLE[] = {0.0}, C[] = {-3.0, -0.5, 0.0, 0.7};
    static const size_t SIZES[] = {1, 2, 1, 2}, TERMS[] = {2, 2};
    /* shift, weight in A and in B, as two doubles each, after the share of the pair */
#define BOTH_TERMS 0.0, 0.0, 1.0, 0.0, 0.875, 0.0, 0.8, -4.440892098500626e-17, 0.0, 0.0, 0.125, 0.0
    static const double EXACT[2][28] = {{1.0, 0.0, BOTH_TERMS},
                                        {0.75, 0.0, BOTH_TERMS, 0.25, 0.0, BOTH_TERMS}};
    int failures = 0;
    pe_pair *pairs[3];
    failures += pe_pair_new(1, NOISE, P, STEPS, 0, 3e7, &pairs[0]) != PE_OK;
    for (int k = 1; k < 3; ++k) {
        failures += pe_pair_new(0, NOISE, P, STEPS, 0, 3e7, &pairs[k]) != PE_OK;
        failures += pe_pair_add_mixtures(pairs[k], STEPS[0], (size_t)k, k == 1 ? WHOLE : SHARES, SIZES, SHIFT,
                                         WEIGHT, TERMS, EXACT[k - 1]) != PE_OK;
    }
    failures += pe_pair_add_mixtures(pairs[2], 1.0, PE_ALTERNATIVES + 1, SHARES, SIZES, SHIFT, WEIGHT, NULL,
                                     NULL) != PE_TOO_COSTLY;
    double rows[3][LENGTH(C) * PE_ROW];
    for (int k = 0; k < 3; ++k) pe_pair_at(pairs[k], PE_PROFILE, LENGTH(C), C, rows[k]);
    for (size_t i = 0; i < LENGTH(C); ++i)
        for (int k = 1; k < 3; ++k) {
            const double one = rows[0][i * PE_ROW + 2 + PE_PROFILE];
            const double other = rows[k][i * PE_ROW + 2 + PE_PROFILE];
            if (!(fabs(one - other) < 1e-11 * (1.0 + fabs(one)))) {
                printf("mixtures: %g and %g at %g\n", one, other, C[i]);
                ++failures;
            }
        }
    double proven[LENGTH(C) * PE_ROW];
    for (int k = 0; k < 3; ++k) { /* and so do the proofs, between whose bounds the values lie */
        failures += pe_pair_certify(pairs[k], PE_PROFILE, LENGTH(C), C, proven) != PE_OK;
        for (size_t i = 0; i < LENGTH(C); ++i) {
            const double *row = proven + i * PE_ROW + 2;
            const double off = row[PE_PROFILE] - rows[0][i * PE_ROW + 2 + PE_PROFILE];
            const double error = row[PE_FUNCTIONALS + PE_PROFILE];
            if (!(error < 1e-9 && fabs(off) <= error + 1e-13)) {
                printf("mixtures: %g off, proven to %g at %g\n", off, error, C[i]);
                ++failures;
            }
        }
    }
    failures += pe_pair_add_mixtures(pairs[1], 1.0, 1, WHOLE, SIZES, SHIFT, WEIGHT, NULL, NULL) != PE_OK;
    failures += pe_pair_certify(pairs[1], PE_PROFILE, 1, C, proven) == PE_OK; /* nothing exact is known */
    for (int k = 0; k < 3; ++k) pe_pair_free(pairs[k]);
    return failures;
}

static int run_law(void) {
    int failures = 0;
    for (size_t a = 0; a < LENGTH(NOISES); ++a)
        for (size_t b = 0; b < LENGTH(RATES); ++b) {
            if (RATES[b] == 1.0) continue;
            pe_law *laws[3] = {NULL, NULL, NULL}; /* one step, two and three */
            size_t made = 0;
            const size_t enough = a == b ? 4000 : 200, depth = a == b ? 3 : 1;
            const double deepest = b % 2 ? -160.0 : -780.0;
            const double p = RATES[b], shifts[2] = {1.0 / NOISES[a], 2.0 / NOISES[a]};
            const double ratios[2] = {p / (1.0 - p), 1e-3 * p}, rests[2] = {0.0, 0.0};
            const size_t terms = 1 + a % 2;
            const double floor = -log1p(ratios[0] + (terms > 1 ? ratios[1] : 0.0));
            if (pe_law_step(terms, shifts, ratios, rests, floor, 0.0, deepest, enough, &laws[0]) == PE_OK)
                made = 1;
            while (made && made < depth) {
                if (pe_law_convolve(laws[made - 1], laws[0], enough, &laws[made]) != PE_OK) break;
                ++made;
            }
            for (size_t k = 0; k < made; ++k)
                for (int reversed = 0; reversed < 2; ++reversed) {
                    const double printed[4] = {NOISES[a], RATES[b], (double)k + 1.0, reversed};
                    double c[MOST];
                    const size_t n = make_thresholds(RATES[b], (double)k + 1.0, reversed, c);
                    double *rows = allocate(PE_ROW * n);
                    PRINTED = printed;
                    pe_law_at(laws[k], reversed, n, c, rows);
                    failures += check_rows("law_at", -1, n, c, rows);
                    free(rows);
                    rows = allocate(PE_ROW * LENGTH(TARGETS));
                    for (size_t q = 0; q < LENGTH(SOLVED); ++q) {
                        pe_law_solve(laws[k], reversed, SOLVED[q], LENGTH(TARGETS), TARGETS, rows);
                        failures += check_rows("law_solve", SOLVED[q], LENGTH(TARGETS), TARGETS, rows);
                    }
                    free(rows);
                    failures += pe_law_panels(laws[k]) == 0;
                }
            for (size_t k = 0; k < LENGTH(laws); ++k) pe_law_free(laws[k]);
        }
    return failures;
}

/* Kernels of three arguments with strides: every triple of extremes and a sweep of bit patterns, in
   blocks of every length up to 70, must give the bits of single evaluations. */
typedef size_t (*ternary_form)(int, size_t, const char *, ptrdiff_t, const char *, ptrdiff_t, const char *,
                               ptrdiff_t, char *, ptrdiff_t);

static size_t relaxed(int what, size_t n, const char *p, ptrdiff_t sp, const char *d, ptrdiff_t sd,
                      const char *m, ptrdiff_t sm, char *out, ptrdiff_t so) {
    return pe_relaxed_strided(what & 3, what >> 2, n, p, sp, d, sd, m, sm, out, so);
}

static size_t one_step(int what, size_t count, const char *p, ptrdiff_t sp, const char *d, ptrdiff_t sd,
                       const char *n, ptrdiff_t sn, char *out, ptrdiff_t so) {
    return pe_one_step_sgd_strided(what, count, p, sp, d, sd, n, sn, d, sd, out, so);
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

static int run_ternary(void) {
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

static int run_cpu(void) {
    const int level = pe_simd_level();
    return level != 0 && level != 1 && level != 3 && level != 4;
}

/* From rows to answers: rows of extremes stay inside their arrays, one by one gives the bits of all
 * together, and values lie between their bounds. */
static int run_answers(void) {
    enum { COUNT = 400 };
    int failures = 0;
    double *rows = allocate(PE_ROW * COUNT), *alpha = allocate(COUNT), *out = allocate(6 * COUNT);
    double *errors = allocate(COUNT), *logs = allocate(COUNT);
    unsigned char good[COUNT];
    for (size_t i = 0; i < PE_ROW * COUNT; ++i) rows[i] = EXTREMES[(i * 7 + i / PE_ROW) % LENGTH(EXTREMES)];
    for (size_t i = 0; i < COUNT; ++i) {
        alpha[i] = ((double)i + 0.5) / COUNT;
        /* from here on a row of probabilities, as an engine gives it */
        if (i >= COUNT / 2)
            for (int f = 0; f < PE_FUNCTIONALS; ++f) {
                rows[PE_ROW * i + 2 + (size_t)f] = log(alpha[(i * 3 + (size_t)f) % (i + 1)]);
                rows[PE_ROW * i + 2 + PE_FUNCTIONALS + (size_t)f] = 1e-13;
            }
    }
    pe_log_tails(COUNT, alpha, logs);
    pe_rows_judge(COUNT, rows, PE_A_ABOVE, 1e-11, 1e-9, errors, good);
    pe_trade_off_answers(COUNT, alpha, rows, out);
    for (size_t i = 0; i < COUNT; ++i) {
        double one[6];
        const double *row = rows + PE_ROW * i;
        pe_trade_off_answers(1, &alpha[i], row, one);
        if (differ(logs[i], pe_log_tail(alpha[i]))) ++failures;
        if (good[i] != pe_row_good(row, PE_A_ABOVE, 1e-11, 1e-9)) ++failures;
        for (int k = 0; k < 6; ++k)
            if (differ(one[k], out[6 * i + (size_t)k])) ++failures;
        for (int k = 0; k < 6 && i >= COUNT / 2; k += 3)
            if (!(one[k] >= 0.0 && one[k] <= 1.0)) ++failures;
    }
    pe_profile_answers(COUNT, rows, out);
    for (size_t i = COUNT / 2; i < COUNT; ++i)
        if (!(out[3 * i + 1] <= out[3 * i] && out[3 * i] <= out[3 * i + 2])) ++failures;
    pe_epsilon_answers(COUNT, rows, out);
    for (size_t i = 0; i < COUNT; ++i)
        if (!(out[3 * i] >= 0.0)) ++failures;
    pe_natural_logs(COUNT, alpha, logs);
    for (size_t i = 0; i < COUNT; ++i)
        if (differ(logs[i], pe_natural_log(alpha[i]))) ++failures;
    free(rows);
    free(alpha);
    free(out);
    free(errors);
    free(logs);
    return failures;
}

/* Polynomials on panels: outside of them and at what is no number there is no value, and inside the sum of their
 * coefficients at the right end. */
static int run_panels(void) {
    enum { PANELS = 3 };
    double coefficients[PANELS * PE_CHEBYSHEV], out[LENGTH(EXTREMES)], sum = 0.0;
    int failures = 0;
    for (size_t j = 0; j < LENGTH(coefficients); ++j) coefficients[j] = 1.0 / (double)(1 + j % PE_CHEBYSHEV);
    for (size_t j = 0; j < PE_CHEBYSHEV; ++j) sum += coefficients[j];
    for (int of_log = 0; of_log < 2; ++of_log) {
        pe_chebyshev_panels(LENGTH(EXTREMES), EXTREMES, 0.25, -1, PANELS, coefficients, of_log, out);
        for (size_t i = 0; i < LENGTH(EXTREMES); ++i) {
            const int inside = EXTREMES[i] >= -0.25 && EXTREMES[i] < 0.5;
            if (inside ? !(fabs(out[i]) <= exp(sum)) : !isnan(out[i])) ++failures;
        }
        const double end = nextafter(0.25, 0.0), expected = of_log ? exp(sum) : sum;
        pe_chebyshev_panels(1, &end, 0.25, -1, PANELS, coefficients, of_log, out);
        if (!(fabs(out[0] / expected - 1.0) < 1e-13)) ++failures;
    }
    return failures;
}

/* ---- lattice engine ------------------------------------------------------------------------------ */

static int run_lattice(void) {
    int failures = 0;
    static const double SHIFTS[] = {0.0, 1e-3, 5.0, 60.0};
    for (size_t s = 0; s < LENGTH(SHIFTS); ++s)
        for (size_t n = 0; n <= 300; n += n < 4 ? 1 : 37) { /* masses of a partition add up to 1 */
            double *z = allocate(n), *mass = allocate(n ? n + 1 : 0), total = 0.0;
            for (size_t i = 0; i < n; ++i)
                z[i] = -45.0 + 90.0 * ((double)i + 0.5) / (double)n + (i % 3 ? 1e-9 : 0.0);
            pe_normal_cells(n, z, SHIFTS[s], mass);
            for (size_t i = 0; n && i <= n; ++i) total += exp(mass[i]);
            if (n && !(fabs(total - 1.0) < 1e-12)) {
                fprintf(stderr, "normal_cells(%zu, shift %g): total %a\n", n, SHIFTS[s], total);
                ++failures;
            }
            free(z);
            free(mass);
        }
    for (int outer = 0; outer < 2; ++outer)
        for (size_t n = 1; n <= 200; n += 33) {
            const pe_lattice grid = {
                .origin = -1.0,
                .spacing = 2.0 / (double)n,
                .tilt = outer ? -3.0 : 0.5,
                .centre = 0.5 * (double)n,
                .outer = outer,
            };
            double *log_a = allocate(n), *log_b = allocate(n), *error = allocate(n);
            double *ratio = allocate(n), *shift = allocate(n + 1), *points = allocate(3 * (n + 1));
            for (size_t i = 0; i < n; ++i) {
                log_a[i] = i % 7 == 3 ? -INFINITY : -log((double)n);
                log_b[i] = i % 11 == 5 ? -INFINITY : log_a[i] - 1.0 + grid.spacing * ((double)i + 0.3);
                ratio[i] = isfinite(log_a[i]) && isfinite(log_b[i]) ? log_b[i] - log_a[i] : 0.0;
                error[i] = i % 5 ? 1e-15 : 0.0;
            }
            for (size_t i = 0; i <= n; ++i) shift[i] = i % 2 ? 1e-16 : 0.0;
            memset(points, 0, 3 * (n + 1) * sizeof(double));
            const pe_cells cells = {1, n, log_a, log_b, ratio, error, error, shift};
            pe_lattice_masses out = {points, points + n + 1, points + 2 * (n + 1), 0.0, 0.0};
            pe_lattice_cells(&grid, &cells, &out);
            free(ratio);
            failures += !(fabs(pe_sum_less_one(n + 1, points) + 1.0) < 1e9);
            for (size_t i = 0; i < 3 * (n + 1); ++i)
                if (!(points[i] >= 0.0) || !isfinite(points[i])) ++failures;
            failures += !(out.lost >= 0.0) || !(out.error > 0.0);
            double *sums = allocate(n + 1), *profile = allocate(n + 1), both[2];
            pe_discounted_sums(n + 1, points, -0.01, sums);
            pe_profile_sums(n + 1, points, -0.01, grid.spacing, sums, profile);
            pe_exponential_sums(n + 1, points, grid.centre, 0.1, both);
            failures += !(sums[n] >= 0.0) || !(profile[n] >= 0.0) || !(both[0] >= 0.0);
            double *moments = allocate(PE_BLOCK_MOMENTS * (n / 16 + 1)), *low = allocate(2 * 5);
            const double reach = pe_low_frequencies(n + 1, points, 3, 1024, 16, 5, moments, low);
            failures += !(reach >= 0.0) || low[0] != 0.0 || !(low[8] <= 0.0);
            const int64_t place[2] = {0, 5};
            const double pair[2] = {0.75, 0.25};
            double tables[2 * 32 + 2 * 35], even[2] = {1.0, 1.0}, odd[2] = {0.0, 0.0};
            pe_sparse_power(2, 1024, 2, place, pair, 0.0, 0.0, 1000.0, 3, 5, tables, NULL, low, even, odd);
            failures += !(fabs(low[0] - 1.0) <= even[0] * odd[0]) || !(hypot(low[2], low[3]) <= 1.0);
            free(moments);
            free(low);
            free(log_a);
            free(log_b);
            free(error);
            free(shift);
            free(points);
            free(sums);
            free(profile);
        }
    static const double STEPS[] = {1.0, 2.0, 3.0, 1000.0, 1e6, 9007199254740992.0};
    for (size_t k = 0; k < LENGTH(STEPS); ++k)
        for (size_t n = 0; n <= 130; n += 13) { /* on the unit circle, inside it, and 0 */
            double *z = allocate(2 * n), *other = allocate(2 * n), *bound = allocate(n);
            double *slack = allocate(n);
            for (size_t i = 0; i < n; ++i) {
                const double r = i % 4 ? 1.0 / (double)(i % 4) : (i ? 1.0 : 0.0);
                z[2 * i] = other[2 * i] = r * cos((double)i);
                z[2 * i + 1] = other[2 * i + 1] = r * sin((double)i);
                bound[i] = 1.0;
                slack[i] = 0.0;
            }
            pe_spectrum_power(n, z, STEPS[k], 1e-15, k % 2 ? other : NULL, bound, slack);
            for (size_t i = 0; i < n; ++i)
                if (!(hypot(z[2 * i], z[2 * i + 1]) <= bound[i] * (1.0 + 4e-16 * STEPS[k])) ||
                    !(slack[i] >= 0.0)) {
                    fprintf(stderr, "spectrum_power(%g): modulus %a above %a\n", STEPS[k],
                            hypot(z[2 * i], z[2 * i + 1]), bound[i]);
                    ++failures;
                }
            free(z);
            free(other);
            free(bound);
            free(slack);
        }
    return failures;
}

/* Every variate reaches the ends of this table: all cells are read, none beyond. */
static int run_sampling(void) {
    enum { CELLS = 7 };
    int failures = 0;
    double *coefficients = allocate(4 * CELLS);
    for (size_t i = 0; i < 4 * CELLS; ++i) coefficients[i] = i % 4 ? 0.0 : (double)(i / 4);
    const pe_loss_table table[2] = {
        {5, -0.5, CELLS, CELLS - 1e-9, coefficients},
        {0, 0.0, 1.0, CELLS - 1e-9, coefficients},
    };
    for (size_t n = 0; n <= 300; n += 75) {
        double *all = allocate(n), *part = allocate(n);
        pe_sample_losses(7, 0, n, 2, table, all);
        const size_t split = n / 3;
        pe_sample_losses(7, 0, split, 2, table, part);
        pe_sample_losses(7, split, n - split, 2, table, part + split);
        for (size_t i = 0; i < n; ++i)
            if (differ(all[i], part[i]) || !(all[i] >= 0.0 && all[i] <= 5.0 * (CELLS - 1))) {
                fprintf(stderr, "sample %zu of %zu: %a and %a\n", i, n, all[i], part[i]);
                ++failures;
            }
        free(all);
        free(part);
    }
    free(coefficients);
    return failures;
}

/* Of every length of the last block; angles up to the largest. */
static int run_transforms(void) {
    int failures = 0;
    const double frequency[3] = {0.0, 1.5, 1e8 * (1.0 - 0x1p-50)};
    for (size_t m = 0; m <= 40; ++m) {
        double *apart = allocate(m), *share = allocate(m), real[3], imag[3];
        for (size_t j = 0; j < m; ++j) {
            apart[j] = j % 3 ? 1.0 / (double)j : -5e-324;
            share[j] = 1.0 / (double)m;
        }
        pe_loss_transform(3, frequency, m, apart, share, real, imag);
        failures += real[0] != 0.0 || imag[0] != 0.0;
        for (int i = 0; i < 3; ++i) failures += !(hypot(real[i] + 1.0, imag[i]) < 1.0 + 1e-14);
        free(apart);
        free(share);
    }
    return failures;
}

/* Polynomials on panels, of one coefficient and of many; the mass of a convolution is the product of both. */
static int run_legendre(void) {
    int failures = 0;
    static const size_t SIZES[] = {1, 2, 3, 17, 40};
    for (size_t k = 0; k < LENGTH(SIZES); ++k) {
        const size_t size = SIZES[k], points = 1 + 3 * k;
        double *table = allocate(size * size * size), *weight = allocate(size * size * (size + 1));
        memset(weight, 0, size * size * (size + 1) * sizeof(double));
        failures += pe_legendre_products(size, table, weight) != PE_OK || !(fabs(table[0] - 0.5) < 1e-15);
        double *a = allocate(2 * size * points), *b = allocate(2 * size * points);
        double *out = allocate(4 * size * points);
        for (size_t i = 0; i < 2 * size * points; ++i) a[i] = b[i] = i / (2 * points) ? 0.0 : 1.0;
        for (int same = 0; same < 2; ++same) { /* the square of 1 + i, times one half */
            const int status =
                pe_panel_products(points, size, size, size, size, table, a, same ? a : b, same, out);
            failures += status != PE_OK || !(fabs(out[0]) < 1e-15) || !(fabs(out[1] - 1.0) < 1e-15);
        }
        const double rest[3] = {0.0, 1e-300, 1.0}, half = 0.5, one = 1.0;
        const int64_t panel[3] = {0, 0, 0};
        double *scale = allocate(size), ends[3];
        for (size_t i = 0; i < size; ++i) scale[i] = sqrt(2.0 * (double)i + 1.0);
        pe_panel_ends(3, rest, panel, size, weight, scale, 0.0, 0.0, 1.0, 1, &half, &one, ends);
        failures += ends[0] != 0.0 || !(ends[1] >= 0.0) || !isfinite(ends[2]);
        long double *place = malloc((size + 1) * sizeof *place),
                    *weights = malloc((size + 1) * sizeof *place);
        long double *value = malloc(size * (size + 1) * sizeof *place), sum = 0.0L;
        if (!place || !weights || !value) exit(EXIT_FAILURE);
        pe_gauss_nodes(size + 1, place, weights);
        pe_legendre_extended(size, size + 1, place, value);
        for (size_t i = 0; i <= size; ++i) sum += weights[i] * value[i];
        failures += !(fabsl(sum - 1.0L) < 1e-15L);
        free(place);
        free(weights);
        free(value);
        free(scale);
        free(table);
        free(weight);
        free(a);
        free(b);
        free(out);
    }
    return failures;
}

static const struct {
    const char *name;
    int (*run)(void);
} CASES[] = {
    {"vector instructions", run_cpu},          {"elementwise kernels", run_unary},
    {"one step in closed form", run_step},     {"composed loss, inversion", run_pair},
    {"composed loss, mixtures", run_mixtures}, {"composed loss, convolution", run_law},
    {"lattice engine", run_lattice},           {"from rows to answers", run_answers},
    {"polynomials on panels", run_panels},     {"kernels of three arguments", run_ternary},
    {"random losses", run_sampling},           {"transforms of losses", run_transforms},
    {"Legendre polynomials", run_legendre},
};

int main(void) {
    int failures = 0;
    for (size_t k = 0; k < LENGTH(CASES); ++k) {
        const int failed = CASES[k].run();
        printf("%-40s %s\n", CASES[k].name, failed ? "FAILED" : "ok");
        failures += failed;
    }
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
