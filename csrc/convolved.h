/* The density of a sum of two parts at given losses, by trapezoidal sums: shares.c and loss_sums.c, for allocation.c. */
#ifndef PE_CONVOLVED_H
#define PE_CONVOLVED_H

#include "doubles.h"
#include "tabulated.h"

#define PE_FALL 38.0 /* terms below e^-PE_FALL of the largest one are left out */
#define PE_MOST_BLOCKS 3000000L /* limit of the work for one law */

typedef struct pe_parts pe_parts;
struct pe_parts {
    /* log of the density of both parts together at PE_BLOCK increasing or decreasing losses */
    void (*convolved)(pe_parts *w, const double *loss, double *out);
    const pe_log_density *f, *g;
    double p; /* weight of f in e^L = p e^x + (1 - p) e^y */
    double floor; /* log of the larger one of both laws' densities below which few digits are needed */
    double spacing; /* of the integral's lattice, kept from call to call */
    double last; /* the last value proposed for it */
    double bend; /* of the second lattice, at most 0.1 (shares.c) */
    double mode[2]; /* about the modes of f and g */
    long blocks; /* number of blocks of PE_BLOCK values of the integrand so far */
    int failed; /* a status */
    size_t near[2][2]; /* pieces that were used last, where the next search begins */
};

void pe_convolved_shares(pe_parts *w, const double *loss, double *out);
void pe_convolved_losses(pe_parts *w, const double *loss, double *out);

/* The density between two losses, down to where it and e^L times it fall to e^-left on the left and e^-right on the
 * right; w->failed is a status. */
void pe_density_of_parts(pe_parts *w, const double *ends, double left, double right, pe_log_density *out);

PE_INLINE int pe_is_below_floor(const pe_parts *w, double loss, double log_density) {
    return log_density + (loss > 0.0 ? loss : 0.0) < w->floor;
}

/* The spacing for the next loss, from the relative difference `off` of the sums over even and over odd terms: the log of
 * the error is proportional to 1/d^2 for a normal law. */
PE_INLINE double pe_next_spacing(double d, double off, double goal) {
    return fmin(d * sqrt(pe_d_log(off + 1e-16) / pe_d_log(goal)), 1.4 * d);
}

#endif
