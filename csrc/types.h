/* Types, statuses and sizes that all of the core shares. */
#ifndef PE_TYPES_H
#define PE_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* A number as a sum of two doubles, |l| at most half an ulp of h. */
typedef struct {
    double h, l;
} pe_dd;

/* The status that every function of the core returns that can fail.  pyengine/_support/status.py turns those other
 * than PE_OK into exceptions.  Other functions that return int are predicates, or return an index or a count. */
enum pe_status {
    PE_OK = 0,
    PE_NO_MEMORY = 1,
    PE_TOO_COSTLY = 2, /* needs more work than allowed, or the proof does not apply */
    PE_RAISED = 3,     /* a callback of the caller failed */
};

/* Functionals of the privacy loss S at a threshold c: Lemma 1 of docs/theory/line.md. */
enum pe_functional {
    PE_A_ABOVE = 0, /* A(S > c) */
    PE_A_BELOW = 1, /* A(S <= c) */
    PE_B_ABOVE = 2, /* B(S > c) */
    PE_B_BELOW = 3, /* B(S <= c) */
    PE_PROFILE = 4, /* E_A max(0, 1 - e^{S-c}): the hockey-stick divergence H(A||B) at epsilon = -c */
};

enum {
    PE_FUNCTIONALS = 5,
    PE_ALTERNATIVES = 4, /* at most so many pairs of laws for one step, of which the release shows one */
    PE_CHEBYSHEV = 16, /* Chebyshev coefficients of a panel */
    PE_KERNELS = 3,  /* 1/lambda, 1/(lambda - 1) and their product: A's masses, B's, and profiles */
    PE_ROW = 12, /* numbers of a row: c, log density of S under A, 5 log values, 5 relative errors */
    /* numbers of a row's bounds: 2 of the log and 2 of the value of each functional (row_bounds.c) */
    PE_BOUNDS = 20,
    PE_ASIDES = 8, /* attempts to find a second threshold (pe_bounds_aside) */
};

#endif
