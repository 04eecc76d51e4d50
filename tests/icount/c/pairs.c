/* Times two builds of the same kernels in turn, in one process: prints for each kernel the median of
 * the ratios, second library over first, each of two samples that follow one another.
 */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 41, LEAST = 200000 /* ns of a sample */ };

typedef const icount_kernel *(*list)(void);

static const icount_kernel *kernels_of(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    icount_require(library != NULL, "the library is loaded");
    void *symbol = dlsym(library, "icount_first");
    icount_require(symbol != NULL, "the library has kernels");
    list first;
    memcpy(&first, &symbol, sizeof first); /* ISO C has no cast from an object to a function */
    return first();
}

/* Time of this thread: what others do on the core is not counted. */
static double sample(const icount_kernel *kernel, size_t repeats) {
    struct timespec start, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    for (size_t i = 0; i < repeats; i++) kernel->run();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return 1e9 * (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    icount_require(argc == 3, "two libraries are given");
    const icount_kernel *a = kernels_of(argv[1]), *b = kernels_of(argv[2]);
    for (; a != NULL && b != NULL; a = a->next, b = b->next) {
        double ratio[ROUNDS];
        icount_require(strcmp(a->name, b->name) == 0, "both libraries have the same kernels");
        a->prepare();
        b->prepare();
        sample(a, 1);
        sample(b, 1);
        const size_t repeats = 1 + (size_t)(LEAST / (sample(a, 1) + 1.0));
        for (size_t k = 0; k < ROUNDS; k++) {
            double first, second; /* each goes first every other time */
            if (k % 2) {
                second = sample(b, repeats);
                first = sample(a, repeats);
            } else {
                first = sample(a, repeats);
                second = sample(b, repeats);
            }
            ratio[k] = second / first;
        }
        qsort(ratio, ROUNDS, sizeof *ratio, ascending);
        printf("%s %.4f\n", a->name, ratio[ROUNDS / 2]);
        fflush(stdout);
    }
    icount_require(a == NULL && b == NULL, "both libraries have the same kernels");
    return EXIT_SUCCESS;
}
