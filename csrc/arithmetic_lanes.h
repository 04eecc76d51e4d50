/* Sums of two doubles on lanes: the compiler vectorises loops over these. */
#ifndef PE_ARITHMETIC_LANES_H
#define PE_ARITHMETIC_LANES_H

#include "arithmetic.h"
#include "lane_trig.h"

/* One number for each of PE_LANES lanes */
typedef struct {
    double h[PE_LANES], l[PE_LANES];
} pe_dds;

PE_INLINE pe_dd pe_lane(const pe_dds *x, int u) {
    return pe_dd_make(x->h[u], x->l[u]);
}

PE_INLINE void pe_set_lane(pe_dds *x, int u, pe_dd value) {
    x->h[u] = value.h;
    x->l[u] = value.l;
}

PE_INLINE pe_ddc pe_lane_pair(const pe_dds *re, const pe_dds *im, int u) {
    return (pe_ddc){pe_lane(re, u), pe_lane(im, u)};
}

PE_INLINE void pe_set_lane_pair(pe_dds *re, pe_dds *im, int u, pe_ddc value) {
    pe_set_lane(re, u, value.re);
    pe_set_lane(im, u, value.im);
}

PE_INLINE double pe_modulus(double re, double im) {
    return sqrt(re * re + im * im);
}

/* x clipped to [low, high]; NaN becomes low */
PE_INLINE double pe_clamp(double x, double low, double high) {
    const double above = x > low ? x : low;
    return above < high ? above : high;
}

#endif
