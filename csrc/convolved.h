/* The density of a sum of two parts at places that are asked for: shares.c and loss_sums.c. */
#ifndef PE_CONVOLVED_H
#define PE_CONVOLVED_H

#include "doubles.h"
#include "tabulated.h"

#define PE_FALL 38.0 /* what of an integrand is e^-PE_FALL of the rest is left out */
#define PE_MOST_BLOCKS 3000000L

typedef struct pe_parts pe_parts;
struct pe_parts {
    /* log of the density of both parts together at PE_BLOCK increasing or decreasing losses */
    void (*convolved)(pe_parts *w, const double *loss, double *out);
    const pe_log_density *f, *g;
    double p;          /* the first one's share of a sum of shares */
    double floor;      /* log of the larger of both densities below which a few digits do */
    double spacing;    /* of the lattice of the integral, kept from one call to the next */
    double last;       /* what it was meant to be before */
    double bend;       /* the second lattice's, at most 0.1 (shares.c) */
    double mode[2];    /* of both parts, about */
    long blocks;       /* of PE_BLOCK values of the integrand so far */
    int failed;        /* a status */
    size_t near[2][2]; /* pieces that were met last */
};

void pe_convolved_shares(pe_parts *w, const double *loss, double *out);
void pe_convolved_losses(pe_parts *w, const double *loss, double *out);

/* The density between two losses, as far as it and e^L times it are above e^-left on the left and
 * e^-right on the right; w->failed tells whether that was possible. */
void pe_density_of_parts(pe_parts *w, const double *ends, double left, double right, pe_log_density *out);

PE_INLINE int pe_is_below_floor(const pe_parts *w, double loss, double log_density) {
    return log_density + (loss > 0.0 ? loss : 0.0) < w->floor;
}

/* The spacing for the next place, from how far even and odd terms are apart: the logarithm of the error
 * goes with the square of its inverse for a normal law, with the inverse at worst. */
PE_INLINE double pe_next_spacing(double d, double off, double goal) {
    return fmin(d * sqrt(pe_d_log(off + 1e-16) / pe_d_log(goal)), 1.4 * d);
}

#endif
