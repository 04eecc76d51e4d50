#include "fuzz.h"

/* Rows and answers of the composed loss. */

static void check_rows(const char *name, size_t n, const double *at, const double *rows) {
    for (size_t i = 0; i < n; ++i) require(!row_is_wrong(rows + PE_ROW * i), name, "a consistent row", at[i]);
}

static double log_target(void) {
    return below(4) ? -log_uniform(1e-300, 760.0) : -uniform(0.0, 2.0) - 1e-17;
}

static const int SOLVED[] = {PE_A_ABOVE, PE_A_BELOW, PE_PROFILE};

static double first_shift(void) {
    return below(2) ? 0.0 : uniform(-3.0, 3.0);
}

/* Random shifts that rise from the first one, and weights of sum 1. */
static void fill_normals(size_t n, double at, double *shift, double *weight) {
    double total = 0.0;
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
        fill_normals(n, first_shift(), shift, of_a);
        fill_normals(n, first_shift(), shift, of_b);
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
        for (size_t side = 0; side < 2; ++side) sizes[2 * i + side] = 1 + below(MOST);
        /* no shift of one side is above one of the other: the loss is monotone */
        const size_t of_a = used, of_b = used + sizes[2 * i], falls = below(2);
        const size_t low = falls ? of_b : of_a, high = falls ? of_a : of_b, m = sizes[2 * i + falls];
        fill_normals(m, first_shift(), shift + low, weight + low);
        fill_normals(sizes[2 * i + 1 - falls], shift[low + m - 1], shift + high, weight + high);
        used = of_b + sizes[2 * i + 1];
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

/* Bounds of rows that may be anything: in order, between 0 and 1, and those of one row the same. */
static void bounds_of_rows(int functional, size_t n, const double *rows) {
    for (size_t i = 0; i < n; ++i) {
        const double *row = rows + PE_ROW * i;
        double bounds[PE_BOUNDS], level[6], epsilon[3], tail = uniform(0.0, 0.5), beyond, at;
        pe_bounds_of_rows(1, row, 0x1p-49, bounds);
        for (int f = 0; f < PE_FUNCTIONALS; ++f) {
            const double *one = bounds + 4 * f;
            require(one[0] <= one[1] && one[2] >= 0.0 && one[2] <= one[3] && one[3] <= 1.0, "bounds_of_rows",
                    "bounds in order", one[2]);
        }
        if (functional == PE_PROFILE) {
            pe_bounds_epsilon(tail, row, 0x1p-49, epsilon);
            require(epsilon[0] >= 0.0, "bounds_epsilon", "a lower bound", epsilon[0]);
            continue;
        }
        pe_bounds_level(functional, tail, row, 0x1p-49, level);
        pe_bounds_aside(1, functional, &tail, row, bounds, 0, NULL, &beyond, &at);
        for (size_t attempt = 1; attempt <= PE_ASIDES; ++attempt)
            pe_bounds_aside(1, functional, &tail, row, bounds, attempt, bounds, &beyond, &at);
        require(isnan(at), "bounds_aside", "an end", at);
    }
}

void fuzz_pair(void) {
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
            pe_pair_certify(pair, functional, PE_THOROUGH, n, c, rows);
            check_rows("pair_certify", n, c, rows);
            pe_pair_certify_beyond(pair, functional, 0x1p-49, PE_THOROUGH, n, target, rows);
            bounds_of_rows(functional, n, rows);
        }
        free(rows);
        free(c);
        free(target);
    }
    pe_pair_free(pair);
}

void fuzz_law(void) {
    pe_sector *one = NULL, *two = NULL;
    pe_sector_pieces *pieces = pe_sector_pieces_new();
    const double noise = log_uniform(0.3, 30.0), p = log_uniform(1e-7, 0.999);
    const double shift[2] = {1.0 / noise, 1e-17 * (double)below(9)}, ratio[2] = {p / (1.0 - p), 0.0};
    const double floor[2] = {log1p(-p), 0.0}, deepest = below(2) ? -75.0 : -200.0;
    const size_t n = below(4);
    if (pieces && pe_sector_step(shift, ratio, floor, p, deepest, -75.0, 2.0, -INFINITY, &one) == PE_OK) {
        pe_sector *law = one;
        if (below(4) == 0 && pe_sector_convolve(one, one, pieces, &two) == PE_OK) law = two;
        double *rows = allocate(PE_ROW * n), *c = filled(n, anything);
        double *target = filled(n, log_target), *found = allocate(n);
        const int reversed = (int)below(2);
        for (size_t i = 0; i < n; ++i)
            if (!isfinite(c[i])) c[i] = 0.0;
        if (pe_sector_at(law, reversed, n, c, rows) == PE_OK) check_rows("sector_at", n, c, rows);
        if (pe_sector_keep(law) == PE_OK)
            pe_sector_solve(law, reversed, SOLVED[below(LENGTH(SOLVED))], n, target, found);
        free(rows);
        free(c);
        free(target);
        free(found);
    }
    pe_sector_free(one);
    pe_sector_free(two);
    pe_sector_pieces_free(pieces);
}

/* Rows of any bits must not lead outside the arrays; rows of probabilities give bounds in order. */
void fuzz_answers(void) {
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
