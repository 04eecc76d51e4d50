/* Types, statuses and sizes that all of the core shares. */
#ifndef PE_TYPES_H
#define PE_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* A number as a sum of two doubles, |l| at most half an ulp of h. */
typedef struct {
    double h, l;
} pe_dd;

/* What functions return that can fail, inside of the core as well: one of these and nothing else, 0 if all
 * is well.  Memory that is not to be had is told from work that is too much, and neither is answered in
 * silence: pyengine/_support/status.py turns them into errors.  Other functions that return int are predicates, or
 * say which of several things they mean. */
enum pe_status {
    PE_OK = 0,
    PE_NO_MEMORY = 1,
    PE_TOO_COSTLY = 2, /* beyond the limit of work, or of what is proven */
    PE_RAISED = 3,     /* what a function of the caller's returned that had none */
};

/* Functionals of a threshold c. */
enum pe_functional {
    PE_A_ABOVE = 0, /* A(S > c) */
    PE_A_BELOW = 1, /* A(S <= c) */
    PE_B_ABOVE = 2, /* B(S > c) */
    PE_B_BELOW = 3, /* B(S <= c) */
    PE_PROFILE = 4, /* E_A max(0, 1 - e^{S-c}): the hockey-stick divergence H(A||B) at epsilon = -c */
};

enum {
    PE_FUNCTIONALS = 5,
    PE_ALTERNATIVES = 4, /* pairs that one step may be */
    PE_CHEBYSHEV = 16, /* coefficients of a panel */
    PE_KERNELS = 3,  /* of integrals on lines: of A's masses, B's, and profiles */
    PE_ROW = 12, /* c, log of the density of S under A, 5 log values, 5 relative errors */
    PE_BOUNDS = 20, /* of proven rows: row_bounds.c */
    PE_ASIDES = 8,  /* attempts at a second threshold */
};

#endif
