/* A taper: a smooth step from 0 to 1 (or 1 to 0) along z, by which a law is divided into small and large losses:
 * docs/theory/divided_lines.md, Lemma 3. */
#ifndef PE_TAPER_H
#define PE_TAPER_H

#include "lane_trig.h"

/* erfc(-rise (z - at)/width)/2: rises from 0 to 1 if rise is 1, falls from 1 to 0 if it is -1. */
typedef struct {
    double at, width;
    int rise;
} pe_taper;

/* Its logarithm at a real x, and the slope of that. */
double pe_taper_log(const pe_taper *t, double x, double *slope);

/* Its values at x + iy, |y| <= width: 2^power times (re + re_low) + i (im + im_low), where the modulus is at most size
 * and the error at most `units` PE_WIDE_UNIT size. */
typedef struct {
    double re[PE_LANES], re_low[PE_LANES], im[PE_LANES], im_low[PE_LANES], size[PE_LANES], power[PE_LANES];
    double units[PE_LANES];
} pe_tapered;

void pe_taper_at(const pe_taper *t, const double *x, double y, pe_tapered *out);

#endif
