#include "fuzz.h"

/* Legendre polynomials, and products and integrals of them, against the same in long double. */

static const double U = 0x1p-53;

static long double *extended(size_t n) {
    long double *block = calloc(n + (n == 0), sizeof *block);
    if (block == NULL) exit(EXIT_FAILURE);
    return block;
}

/* Bound of the rounding of p_n (docs/theory/panels), the argument's included */
static double growth(size_t n) {
    const double k = (double)n;
    return sqrt(2.0 * k + 1.0) * (4.0 + 8.0 * k + 6.0 * k * k) * U;
}

static double part(void) {
    return below(4) ? uniform(0.0, 1.0) : (below(2) ? log_uniform(1e-300, 1e-3) : (double)below(2));
}

static double coefficient(void) {
    return below(5) ? uniform(-1.0, 1.0) : 0.0;
}

void fuzz_legendre(void) {
    const size_t size = 1 + below(40), n = 1 + below(20);
    double *s = filled(n, part), *out = allocate(size * n), *alone = allocate(size);
    long double *wide = extended(n), *values = extended(size * n);
    for (size_t i = 0; i < n; ++i) wide[i] = s[i];
    pe_legendre_values(size, n, s, out);
    pe_legendre_extended(size, n, wide, values);
    const size_t chosen = below(n);
    pe_legendre_values(size, 1, s + chosen, alone);
    for (size_t k = 0; k < size; ++k) {
        require(!differ(alone[k], out[k * n + chosen]), "legendre_values", "the bits alone", s[chosen]);
        for (size_t i = 0; i < n; ++i) {
            const double off = (double)fabsl(out[k * n + i] - values[k * n + i]);
            require(off <= growth(k), "legendre_values", "within its bound", s[i]);
            require(fabs(out[k * n + i]) <= sqrt(2.0 * (double)k + 1.0) + growth(k), "legendre_values",
                    "at most the value at 1", s[i]);
        }
    }
    free(s);
    free(out);
    free(alone);
    free(wide);
    free(values);
}

/* A rule of n nodes is exact for polynomials of degree 2 n - 1: those beyond the first have no integral. */
void fuzz_gauss(void) {
    const size_t n = 2 + below(60), size = 1 + below(2 * n);
    long double *place = extended(n), *weight = extended(n), *values = extended(size * n);
    long double *one = extended(1);
    pe_gauss_nodes(n, place, weight);
    pe_legendre_extended(size, n, place, values);
    for (size_t i = 0; i < n; ++i) {
        require(weight[i] > 0.0L && place[i] > 0.0L && place[i] < 1.0L, "gauss_nodes", "in (0, 1)",
                (double)place[i]);
        require(i == 0 || place[i] > place[i - 1], "gauss_nodes", "rising", (double)place[i]);
        require(fabsl(place[i] + place[n - 1 - i] - 1.0L) < 1e-18L, "gauss_nodes", "symmetric", (double)n);
    }
    for (size_t k = 0; k < size; ++k) {
        pe_extended_product(1, n, 1, weight, values + k * n, one);
        require(fabsl(one[0] - (k == 0 ? 1.0L : 0.0L)) <= growth(k) / 256.0, "gauss_nodes", "exact",
                (double)k);
    }
    free(place);
    free(weight);
    free(values);
    free(one);
}

void fuzz_extended_product(void) {
    const size_t rows = 1 + below(6), inner = below(12), columns = 1 + below(6);
    long double *a = extended(rows * inner), *b = extended(columns * inner), *out = extended(rows * columns);
    for (size_t i = 0; i < rows * inner; ++i) a[i] = coefficient();
    for (size_t i = 0; i < columns * inner; ++i) b[i] = coefficient();
    pe_extended_product(rows, inner, columns, a, b, out);
    for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < columns; ++j) {
            long double sum = 0.0L;
            for (size_t k = 0; k < inner; ++k) sum += a[i * inner + k] * b[j * inner + k];
            require(fabsl(out[i * columns + j] - sum) <= 1e-17L * (long double)inner, "extended_product",
                    "the sum of products", (double)sum);
        }
    free(a);
    free(b);
    free(out);
}

/* What a table of convolutions says of p_i * p_j at a place, against Gauss's rule on (0, s). */
static void check_convolution(size_t size, const double *table, size_t i, size_t j) {
    enum { RULE = 40 };
    const long double s = uniform(0.0, 1.0);
    const size_t top = i > j ? i : j;
    long double place[RULE], weight[RULE], here[RULE], there[RULE], sum = 0.0L, found = 0.0L;
    long double *p = extended((top + 1) * RULE), *q = extended((top + 1) * RULE), *r = extended(size);
    pe_gauss_nodes(RULE, place, weight);
    for (size_t k = 0; k < RULE; ++k) {
        here[k] = s * place[k];
        there[k] = s - here[k];
    }
    pe_legendre_extended(top + 1, RULE, here, p);
    pe_legendre_extended(top + 1, RULE, there, q);
    pe_legendre_extended(size, 1, &s, r);
    for (size_t k = 0; k < RULE; ++k) sum += s * weight[k] * p[i * RULE + k] * q[j * RULE + k];
    for (size_t k = 0; k < size; ++k) found += table[(i * size + j) * size + k] * r[k];
    require(fabsl(found - sum) <= 1e-14L * (long double)size, "legendre_products", "the convolution",
            (double)s);
    free(p);
    free(q);
    free(r);
}

void fuzz_products(void) {
    const size_t size = 1 + below(18), points = 1 + below(40);
    const size_t first = 1 + below(size), made = 1 + below(size);
    const int same = (int)below(2);
    const size_t second = same ? first : 1 + below(size);
    double *table = allocate(size * size * size), *weight = allocate(size * size * (size + 1));
    require(pe_legendre_products(size, table, weight) == PE_OK, "legendre_products", "memory", (double)size);
    const size_t x = below(size), y = below(size);
    if (x + y + 2 <= size) check_convolution(size, table, x, y);
    for (size_t m = 0; m <= size; ++m) {
        const double *norm = weight + (x * size + y) * (size + 1);
        double squares = 0.0;
        for (size_t k = m; k < size; ++k) {
            const double entry = table[(x * size + y) * size + k];
            squares += entry * entry;
            require(!differ(entry, table[(y * size + x) * size + k]), "legendre_products", "symmetric",
                    entry);
        }
        require(norm[m] >= sqrt(squares) && (m == 0 || norm[m] <= norm[m - 1]), "legendre_products", "norms",
                norm[m]);
    }
    double *a = filled(2 * first * points, coefficient);
    double *b = same ? a : filled(2 * second * points, coefficient);
    double *out = allocate(4 * made * points);
    require(pe_panel_products(points, first, second, made, size, table, a, b, same, out) == PE_OK,
            "panel_products", "memory", (double)size);
    const size_t at = below(points), k = below(made);
    for (int odd = 0; odd < 2; ++odd) {
        long double re = 0.0L, im = 0.0L;
        for (size_t i = 0; i < first; ++i)
            for (size_t j = (i + (size_t)odd) % 2; j < second; j += 2) {
                const double *u = a + 2 * (i * points + at), *v = b + 2 * (j * points + at);
                const long double entry = table[(i * size + j) * size + k];
                re += entry * ((long double)u[0] * v[0] - (long double)u[1] * v[1]);
                im += entry * ((long double)u[0] * v[1] + (long double)u[1] * v[0]);
            }
        const double *found = out + 2 * (((size_t)odd * made + k) * points + at);
        require(hypot((double)(found[0] - re), (double)(found[1] - im)) <=
                    64.0 * U * (double)(first * second),
                "panel_products", "the sum over pairs", found[0]);
    }
    free(table);
    free(weight);
    free(a);
    if (!same) free(b);
    free(out);
}

void fuzz_panel_ends(void) {
    const size_t n = 1 + below(6), size = 1 + below(24), panels = 1 + below(4), count = 2 + below(40);
    const double reach = below(2) ? 1.0 : uniform(1e-3, 1.0), rate = below(3) ? log_uniform(1e-6, 40.0) : 0.0;
    const double bent = below(2) ? log_uniform(1e-6, 10.0) : 0.0;
    double *rest = filled(n, part), *series = filled(panels * size, coefficient), *scale = allocate(size);
    double *place = allocate(count), *weight = allocate(count), *out = allocate(n), one;
    long double *nodes = extended(count), *weights = extended(count), *p = extended(size), most = 0.0L;
    int64_t *panel = malloc(n * sizeof *panel);
    if (panel == NULL) exit(EXIT_FAILURE);
    pe_gauss_nodes(count, nodes, weights);
    for (size_t i = 0; i < count; ++i) {
        place[i] = (double)nodes[i];
        weight[i] = (double)weights[i];
    }
    for (size_t k = 0; k < size; ++k) scale[k] = sqrt(2.0 * (double)k + 1.0);
    for (size_t k = 0; k < size; ++k) most += scale[k] * growth(k) / U;
    for (size_t i = 0; i < n; ++i) panel[i] = (int64_t)below(panels);
    pe_panel_ends(n, rest, panel, size, series, scale, rate, bent, reach, count, place, weight, out);
    for (size_t i = 0; i < n; ++i) {
        const long double length = rest[i] < reach ? rest[i] : reach;
        long double sum = 0.0L;
        for (size_t q = 0; q < count; ++q) {
            const long double x = length * place[q], s = 1.0L - (rest[i] - x);
            long double density = 0.0L, kernel = expl(-rate * x);
            if (bent != 0.0) kernel *= -expm1l(-bent * x);
            pe_legendre_extended(size, 1, &s, p);
            for (size_t k = 0; k < size; ++k) density += series[(size_t)panel[i] * size + k] * p[k];
            sum += weight[q] * density * kernel;
        }
        require(fabsl(out[i] - length * sum) <= (100.0 + rate + bent) * U * most * length + 1e-320L,
                "panel_ends", "the integral", rest[i]);
        pe_panel_ends(1, rest + i, panel + i, size, series, scale, rate, bent, reach, count, place, weight,
                      &one);
        require(!differ(one, out[i]), "panel_ends", "the bits alone", rest[i]);
    }
    free(rest);
    free(series);
    free(scale);
    free(place);
    free(weight);
    free(out);
    free(nodes);
    free(weights);
    free(p);
    free(panel);
}
