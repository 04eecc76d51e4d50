#include "pyengine.h"
#include "simd.h"

#include <stdlib.h>

/* Sums over pairs of degrees at a block of frequencies, real and imaginary parts side by side. */
enum { BLOCK = 16, BOTH = 2 * BLOCK };

typedef struct {
    size_t first, second, made, size;
    const double *table;
    int same;
} degrees;

/* parts[k] += sum over j of T[i, j, k] b[j], for even i + j and behind it for odd ones; what is 0 is left out.  The
 * length of a block is an argument, so that the compiler makes vectors of it and not of k. */
PE_CLONES
static void of_degree(const degrees *d, size_t both, size_t i, const double *restrict b,
                      double *restrict parts, double *restrict twice) {
    for (size_t j = d->same ? i : 0; j < d->second; j++) {
        const size_t apart = i > j ? i - j : j - i;
        const size_t least = apart ? apart - 1 : 0, last = i + j + 2 < d->made ? i + j + 2 : d->made;
        const double *entry = d->table + (i * d->size + j) * d->size, *z = b + j * both;
        double *sum = parts + ((i + j) % 2) * d->made * both;
        const double factor = d->same && j > i ? 2.0 : 1.0;
        for (size_t l = 0; l < both; l++) twice[l] = factor * z[l];
        for (size_t k = least; k < last; k++) {
            const double e = entry[k];
            double *restrict here = sum + k * both;
            for (size_t l = 0; l < both; l++) here[l] += e * twice[l];
        }
    }
}

/* sums += a parts, complex numbers; parts become 0. */
PE_CLONES
static void add_product(size_t n, const double *restrict a, double *restrict parts, double *restrict sums) {
    for (size_t k = 0; k < n; k++)
        for (int l = 0; l < BLOCK; l++) {
            const double x = parts[k * BOTH + l], y = parts[k * BOTH + BLOCK + l];
            sums[k * BOTH + l] += a[l] * x - a[BLOCK + l] * y;
            sums[k * BOTH + BLOCK + l] += a[l] * y + a[BLOCK + l] * x;
            parts[k * BOTH + l] = parts[k * BOTH + BLOCK + l] = 0.0;
        }
}

static void gather(size_t n, size_t points, size_t start, const double *z, double *block) {
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l < BLOCK; l++) {
            const size_t at = start + l < points ? start + l : points - 1;
            block[i * BOTH + l] = z[2 * (i * points + at)];
            block[i * BOTH + BLOCK + l] = z[2 * (i * points + at) + 1];
        }
}

int pe_panel_products(size_t points, size_t first, size_t second, size_t made, size_t size,
                      const double *table, const double *a, const double *b, int same, double *out) {
    const degrees d = {first, second, made, size, table, same};
    const size_t sums_at = (first + second) * BOTH, parts_at = sums_at + 2 * made * BOTH;
    double *memory = calloc(parts_at + (2 * made + 1) * BOTH, sizeof *memory);
    if (!memory) return PE_NO_MEMORY;
    double *left = memory, *right = memory + first * BOTH, *sums = memory + sums_at,
           *parts = memory + parts_at;
    double *twice = parts + 2 * made * BOTH;
    for (size_t start = 0; start < points; start += BLOCK) {
        gather(first, points, start, a, left);
        gather(second, points, start, b, right);
        for (size_t k = 0; k < 2 * made * BOTH; k++) sums[k] = 0.0;
        for (size_t i = 0; i < first; i++) {
            of_degree(&d, BOTH, i, right, parts, twice);
            add_product(2 * made, left + i * BOTH, parts, sums);
        }
        for (size_t k = 0; k < 2 * made; k++)
            for (size_t l = 0; l < BLOCK && start + l < points; l++) {
                out[2 * (k * points + start + l)] = sums[k * BOTH + l];
                out[2 * (k * points + start + l) + 1] = sums[k * BOTH + BLOCK + l];
            }
    }
    free(memory);
    return PE_OK;
}
