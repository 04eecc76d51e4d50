#include "extremes.h"

/* One step in closed form, and laws of composed losses. */

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

int run_step(void) {
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
                pe_pair_certify(pair, SOLVED[q], PE_THOROUGH, n, c, proven);
                failures += check_rows("pair_certify", SOLVED[q], n, c, proven);
                pe_pair_certify_beyond(pair, SOLVED[q], 0x1p-49, PE_THOROUGH, n, c, proven);
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

int run_pair(void) {
    int failures = 0;
    const double cost_limit = 2e4; /* what exceeds it is a status, at a thousandth of the time */
    /* the levels of truncation are slow at small noise, so not all combinations */
    static const double PAIRS[][4] = {
        {0.2, 1e-7, 1e8, 0},   {1.0, 0.01, 2.0, 0},    {1.0, 1.0 - DBL_EPSILON / 2, 1e8, 0},
        {1.0, 1.0, 1e4, 1},    {100.0, 1e-7, 1.0, 1},  {100.0, 0.5, 1e8, 1},
        {1e-5, 0.01, 10.0, 0}, {1e-19, 0.01, 10.0, 1}, {1e-300, 0.01, 10.0, 0},
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

/* A pair as a kind of step on lines, at tilts and ends of all sizes: bounds are numbers or infinite, and values that are
 * known lie below them. */
static int one_kind(pe_pair *pair) {
    static const double TILTS[] = {-1e6, -40.0, -0.25, 0.0, 0.375, 0.5, 1.0, 1.5, 60.0, 1e6};
    static const double T[] = {1e-3, 1.0, 40.0, 1e4};
    enum { VALUES = 40 };
    int failures = 0;
    double k[3 * LENGTH(TILTS)], above[3], beyond[LENGTH(T)];
    failures += pe_pair_cumulants(pair, LENGTH(TILTS), TILTS, k) == PE_NO_MEMORY;
    for (size_t i = 0; i < LENGTH(TILTS); ++i)
        for (double farthest = 8.0; farthest <= 40.0; farthest += 16.0) {
            pe_mixture_kind *kind;
            pe_kind_at at;
            pe_pair_log_above(pair, TILTS[i], above);
            if (pe_mixture_kind_new(pair, TILTS[i], farthest, &kind)) continue;
            pe_mixture_kind_beyond(kind, LENGTH(T), T, beyond);
            for (size_t j = 0; j < LENGTH(T); ++j) failures += isnan(beyond[j]);
            failures += isnan(pe_mixture_kind_log_above(kind, TILTS[i] + 1.0));
            if (!pe_mixture_kind_finish(kind, 39.0 * 0.25, 60.0 * 0.25, &at)) {
                double log[VALUES], angle[VALUES], error[VALUES], top[VALUES];
                failures += pe_mixture_kind_values(kind, VALUES, 0.25, log, angle, error, top) != PE_OK;
                failures += !(at.log_beyond <= 1.0 || isinf(at.log_beyond)) || isnan(at.tail);
                for (int j = 0; j < VALUES; ++j) failures += isnan(top[j]) || !(log[j] <= top[j] + 1e-9);
            }
            pe_mixture_kind_free(kind);
        }
    return failures;
}

/* Mixtures of normals: one that is the sampled Gaussian has its rows, and two that the release tells apart,
 * but are the same, are one. */
int run_mixtures(void) {
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
        failures += pe_pair_certify(pairs[k], PE_PROFILE, PE_THOROUGH, LENGTH(C), C, proven) != PE_OK;
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
    for (int k = 0; k < 3; ++k) failures += one_kind(pairs[k]);
    pe_mixture_kind_free(NULL);
    failures += pe_pair_add_mixtures(pairs[1], 1.0, 1, WHOLE, SIZES, SHIFT, WEIGHT, NULL, NULL) != PE_OK;
    failures += pe_pair_certify(pairs[1], PE_PROFILE, PE_THOROUGH, 1, C, proven) ==
                PE_OK; /* nothing exact is known */
    for (int k = 0; k < 3; ++k) pe_pair_free(pairs[k]);
    return failures;
}
