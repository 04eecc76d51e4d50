/* Gauss-Legendre nodes and weights in sums of two doubles.  Interface in kinds.h. */

#include "arithmetic.h"
#include "doubles.h"
#include "kinds.h"

/* Legendre polynomials P_n and P_{n-1} at t, and the sum over k < n of (2k + 1) P_k^2, whose inverse is the weight. */
static void recurrence(size_t n, pe_dd t, pe_dd *last, pe_dd *before, pe_dd *squares) {
    pe_dd two = pe_dd_of(0.0), one = pe_dd_of(1.0), sum = pe_dd_of(0.0);
    for (size_t k = 0; k < n; k++) {
        const double m = (double)k;
        sum = pe_dd_add_fast(sum, pe_dd_mul_d(pe_dd_square(one), 2.0 * m + 1.0));
        const pe_dd raised = pe_dd_mul(pe_dd_mul_d(t, 2.0 * m + 1.0), one);
        const pe_dd next = pe_dd_div(pe_dd_sub(raised, pe_dd_mul_d(two, m)), pe_dd_of(m + 1.0));
        two = one;
        one = next;
    }
    *last = one;
    *before = two;
    *squares = sum;
}

static pe_dd twice_less_1(pe_dd s) {
    return pe_dd_add_d(pe_dd_scale(s, 2.0), -1.0);
}

static void set(double *out, size_t n, size_t i, pe_dd value) {
    out[i] = value.h;
    out[n + i] = value.l;
}

void pe_gauss_nodes(size_t n, double *place, double *weight) {
    const double pi = 3.14159265358979323846;
    const double order = (double)n;
    for (size_t i = n / 2; i < n; i++) { /* the others are their mirror images */
        const double angle = pi * ((double)(n - 1 - i) + 0.75) / (order + 0.5);
        pe_dd s = pe_dd_of(0.5 + 0.5 * (1.0 - (1.0 - 1.0 / order) / (8.0 * order * order)) * pe_d_cos(angle));
        pe_dd last, before, squares;
        double change = 1.0;
        /* Newton's method: the error after a step is about n^2 times the square of its change */
        for (int step = 0; step < 6 && fabs(change) > 1e-13; step++) {
            const pe_dd t = twice_less_1(s);
            recurrence(n, t, &last, &before, &squares);
            const pe_dd apart = pe_dd_sub(before, pe_dd_mul(t, last));
            const pe_dd slope =
                pe_dd_div(pe_dd_mul_d(apart, order), pe_dd_add_d(pe_dd_neg(pe_dd_square(t)), 1.0));
            const pe_dd moved = pe_dd_div(last, pe_dd_scale(slope, 2.0));
            s = pe_dd_sub(s, moved);
            change = moved.h;
        }
        recurrence(n, twice_less_1(s), &last, &before, &squares);
        const pe_dd share = pe_dd_div(pe_dd_of(1.0), squares);
        set(place, n, i, s);
        set(weight, n, i, share);
        set(weight, n, n - 1 - i, share);
        if (i != n - 1 - i) set(place, n, n - 1 - i, pe_dd_add_d(pe_dd_neg(s), 1.0));
    }
}
