#include "pyengine.h"
#include "simd.h"

#include <math.h>
#include <stdlib.h>

/* docs/theory/panels.md bounds the errors of what is made here. */

enum { NODES = 16 }; /* of a block */

/* ---- values ---------------------------------------------------------------------------------------- */

PE_CLONES
void pe_legendre_values(size_t size, size_t n, const double *s, double *out) {
    for (size_t i = 0; i < n; i++) {
        out[i] = 1.0;
        if (size > 1) out[n + i] = 2.0 * s[i] - 1.0;
    }
    for (size_t k = 1; k + 1 < size; k++) {
        const double odd = (double)(2 * k + 1), before = (double)k, next = (double)(k + 1);
        const double *two = out + (k - 1) * n, *one = out + k * n;
        double *made = out + (k + 1) * n;
        for (size_t i = 0; i < n; i++) made[i] = (odd * (2.0 * s[i] - 1.0) * one[i] - before * two[i]) / next;
    }
    for (size_t k = 1; k < size; k++) {
        const double scale = sqrt((double)(2 * k + 1));
        for (size_t i = 0; i < n; i++) out[k * n + i] *= scale;
    }
}

void pe_legendre_extended(size_t size, size_t n, const long double *s, long double *out) {
    for (size_t i = 0; i < n; i++) {
        const long double t = 2.0L * s[i] - 1.0L;
        long double two = 0.0L, one = 1.0L;
        for (size_t k = 0; k < size; k++) {
            const long double m = (long double)k;
            out[k * n + i] = one * sqrtl(2.0L * m + 1.0L);
            const long double next = ((2.0L * m + 1.0L) * t * one - m * two) / (m + 1.0L);
            two = one;
            one = next;
        }
    }
}

void pe_extended_product(size_t rows, size_t inner, size_t columns, const long double *a,
                         const long double *b, long double *out) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            const long double *x = a + i * inner, *y = b + j * inner;
            long double even = 0.0L, odd = 0.0L;
            size_t k = 0;
            for (; k + 1 < inner; k += 2) {
                even += x[k] * y[k];
                odd += x[k + 1] * y[k + 1];
            }
            if (k < inner) even += x[k] * y[k];
            out[i * columns + j] = even + odd;
        }
}

/* ---- Gauss's nodes --------------------------------------------------------------------------------- */

/* P_n and P_{n-1} with maximum 1, and the sum of the squares of p_0 to p_{n-1}. */
static void ends_of_recurrence(size_t n, long double t, long double *last, long double *before,
                               long double *squares) {
    long double two = 0.0L, one = 1.0L, sum = 0.0L;
    for (size_t k = 0; k < n; k++) {
        const long double m = (long double)k;
        sum += (2.0L * m + 1.0L) * one * one;
        const long double next = ((2.0L * m + 1.0L) * t * one - m * two) / (m + 1.0L);
        two = one;
        one = next;
    }
    *last = one;
    *before = two;
    *squares = sum;
}

void pe_gauss_nodes(size_t n, long double *place, long double *weight) {
    const double pi = 3.14159265358979323846;
    const double order = (double)n;
    for (size_t i = n / 2; i < n; i++) { /* the others are their mirror images */
        const double angle = pi * ((double)(n - 1 - i) + 0.75) / (order + 0.5);
        long double s = 0.5 + 0.5 * (1.0 - (1.0 - 1.0 / order) / (8.0 * order * order)) * cos(angle);
        long double last, before, squares, change = 1.0L;
        /* Newton's method: the error after a step is some n^2 times the square of its change */
        for (int step = 0; step < 6 && fabsl(change) > 1e-13L; step++) {
            const long double t = 2.0L * s - 1.0L;
            ends_of_recurrence(n, t, &last, &before, &squares);
            const long double slope = (long double)n * (before - t * last) / (1.0L - t * t);
            change = last / (2.0L * slope);
            s -= change;
        }
        ends_of_recurrence(n, 2.0L * s - 1.0L, &last, &before, &squares);
        place[i] = s;
        place[n - 1 - i] = i == n - 1 - i ? s : 1.0L - s;
        weight[i] = weight[n - 1 - i] = 1.0L / squares;
    }
}

/* ---- convolutions of polynomials ------------------------------------------------------------------- */

static double sign_of(size_t k) {
    return k % 2 ? -1.0 : 1.0;
}

/* The next plane of integrals of polynomials with maximum 1, from those of one and two smaller indices: what may not
 * be 0 of it, which lies around what was there before. */
static void next_plane(size_t i, size_t size, size_t room, const long double *inverse, const long double *two,
                       const long double *one, long double *next) {
    for (size_t j = i; j < size; j++) {
        const long double *here = one + j * room, *before = two + j * room;
        const size_t last = i + j + 3 < room ? i + j + 3 : room;
        long double *made = next + j * room;
        for (size_t k = j > i + 2 ? j - i - 2 : 0; k < last; k++) {
            made[k] = i ? before[k] : -here[k];
            if (k && k + 1 < room)
                made[k] += (long double)(2 * i + 1) * inverse[k] * (here[k - 1] - here[k + 1]);
        }
    }
}

/* Entries whose smallest index is i: the table is symmetric but for signs. */
static void fill_plane(size_t i, size_t size, size_t room, const long double *plane, const long double *root,
                       double *table, double *weight) {
    for (size_t j = i; j < size; j++)
        for (size_t k = j > 2 * i + 1 ? j - i - 1 : i; k <= i + j + 1 && k < 2 * size; k++) {
            const double entry = (double)(plane[j * room + k] * root[i] * root[k] * root[j]);
            if (k >= size) { /* nothing but a part of all norms */
                weight[(i * size + j) * (size + 1) + size] += entry * entry;
                if (j > i) weight[(j * size + i) * (size + 1) + size] += entry * entry;
                continue;
            }
            table[(i * size + j) * size + k] = table[(j * size + i) * size + k] = entry;
            table[(j * size + k) * size + i] = table[(k * size + j) * size + i] = sign_of(i + k) * entry;
        }
}

/* From squares beyond the table, and its entries, to norms, for a pair of indices. */
static void finish_pair(size_t i, size_t j, size_t size, const double *table, double *weight) {
    double squares = weight[size];
    for (size_t k = size + 1; k-- > 0;) {
        if (k < size) squares += table[k] * table[k];
        weight[k] = sqrt(squares) * (1.0 + 1e-9) + (k <= i + j + 1 ? 1e-15 : 0.0);
    }
}

int pe_legendre_products(size_t size, double *table, double *weight) {
    const size_t room = 2 * size + 2, plane = size * room, row = size + 1;
    long double *memory = calloc(3 * plane + 2 * room, sizeof *memory);
    if (!memory) return PE_NO_MEMORY;
    long double *two = memory, *one = memory + plane, *next = memory + 2 * plane, *root = memory + 3 * plane;
    long double *inverse = root + room;
    for (size_t k = 0; k < room; k++) {
        root[k] = sqrtl((long double)(2 * k + 1));
        inverse[k] = 1.0L / (long double)(2 * k + 1);
    }
    for (size_t i = 0; i < size * size * size; i++) table[i] = 0.0;
    for (size_t i = 0; i < size * size * row; i++) weight[i] = 0.0;
    one[0] = 0.5L;
    for (size_t j = 0; j < size; j++) {
        const long double m = (long double)j;
        one[j * room + j + 1] = 1.0L / (2.0L * (2.0L * m + 1.0L) * (2.0L * m + 3.0L));
        if (j) one[j * room + j - 1] = -1.0L / (2.0L * (2.0L * m + 1.0L) * (2.0L * m - 1.0L));
    }
    for (size_t i = 0; i < size; i++) {
        fill_plane(i, size, room, one, root, table, weight);
        if (i + 1 == size) break;
        next_plane(i, size, room, inverse, two, one, next);
        long double *spare = two;
        two = one;
        one = next;
        next = spare;
    }
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < size; j++) {
            const size_t at = i * size + j;
            finish_pair(i, j, size, table + at * size, weight + at * row);
        }
    free(memory);
    return PE_OK;
}

/* ---- integrals over the last parts of panels ------------------------------------------------------- */

/* Values of a polynomial at a block of nodes. */
PE_CLONES
static void block_values(size_t size, const double *coefficients, const double *scale, const double *t,
                         double *density) {
    double two[NODES], one[NODES];
    for (int q = 0; q < NODES; q++) {
        two[q] = 0.0;
        one[q] = 1.0;
        density[q] = 0.0;
    }
    for (size_t k = 0; k < size; k++) {
        const double odd = (double)(2 * k + 1), m = (double)k, last = (double)(k + 1);
        const double c = coefficients[k] * scale[k];
        for (int q = 0; q < NODES; q++) {
            density[q] += c * one[q];
            const double next = (odd * t[q] * one[q] - m * two[q]) / last;
            two[q] = one[q];
            one[q] = next;
        }
    }
}

void pe_panel_ends(size_t n, const double *rest, const int64_t *panel, size_t size, const double *series,
                   const double *scale, double rate, double bent, double reach, size_t count,
                   const double *place, const double *weight, double *out) {
    for (size_t i = 0; i < n; i++) {
        const double part = rest[i] < reach ? rest[i] : reach;
        const double *coefficients = series + (size_t)panel[i] * size;
        double total = 0.0;
        for (size_t first = 0; first < count; first += NODES) {
            double t[NODES], density[NODES];
            const size_t nodes = count - first < NODES ? count - first : NODES;
            for (size_t q = 0; q < NODES; q++) {
                const double at = q < nodes ? part * place[first + q] : 0.0;
                t[q] = 2.0 * (1.0 - (rest[i] - at)) - 1.0;
            }
            block_values(size, coefficients, scale, t, density);
            for (size_t q = 0; q < nodes; q++) {
                const double at = part * place[first + q];
                double kernel = exp(-rate * at);
                if (bent != 0.0) kernel *= -expm1(-bent * at);
                total += weight[first + q] * density[q] * kernel;
            }
        }
        out[i] = part * total;
    }
}
