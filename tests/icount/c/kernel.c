#include "kernel.h"

#include "driver.h"

#include <stdio.h>
#include <string.h>

static icount_kernel *first;

/* Sorted by name, so that the order of linking does not matter. */
void icount_register(icount_kernel *kernel) {
    icount_kernel **place = &first;
    while (*place != NULL && strcmp((*place)->name, kernel->name) < 0) place = &(*place)->next;
    kernel->next = *place;
    *place = kernel;
}

const icount_kernel *icount_first(void) {
    return first;
}

void icount_require(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "not so: %s\n", what);
        exit(EXIT_FAILURE);
    }
}

void icount_require_numbers(const double *x, size_t n) {
    int good = n > 0;
    for (size_t i = 0; i < n; i++) good &= x[i] == x[i];
    icount_require(good, "all results are numbers");
}

double *icount_doubles(size_t n) {
    /* on whole cache lines, so that no clone's time depends on where the heap begins */
    const size_t bytes = (n * sizeof(double) / 64 + 1) * 64;
    double *block = aligned_alloc(64, bytes);
    icount_require(block != NULL, "there is memory");
    memset(block, 0, bytes);
    return block;
}

double icount_between(double low, double high, size_t i) {
    const double golden = 0.61803398874989485; /* multiples of it fill (0, 1) evenly, modulo 1 */
    const double x = golden * ((double)i + 0.5);
    return low + (high - low) * (x - floor(x));
}
