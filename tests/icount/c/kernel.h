/* What a file of kernels/ gives to the drivers: what to do before counting, and what to count. */
#ifndef ICOUNT_KERNEL_H
#define ICOUNT_KERNEL_H

#include "pyengine.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct icount_kernel {
    const char *name;
    void (*prepare)(void); /* inputs and room for the results; not counted */
    void (*run)(void);     /* the work, which may be repeated; it requires that its results are good */
    struct icount_kernel *next;
} icount_kernel;

void icount_register(icount_kernel *kernel);

/* Ends the process where the condition does not hold: a kernel that refuses its inputs is quick. */
void icount_require(int condition, const char *what);
void icount_require_numbers(const double *x, size_t n);

double *icount_doubles(size_t n);
/* The i-th of a fixed sequence of numbers that fill the interval evenly. */
double icount_between(double low, double high, size_t i);

#define KERNEL(kernel_name, before, work)                                                                    \
    __attribute__((constructor)) static void register_##work(void) {                                         \
        static icount_kernel kernel = {kernel_name, before, work, NULL};                                     \
        icount_register(&kernel);                                                                            \
    }                                                                                                        \
    typedef int icount_end_of_##work /* the semicolon is the caller's */

#endif
