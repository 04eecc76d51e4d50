/* A smooth step from 0 to 1 along z, by which a law is divided into what lies below a place and what lies above. */
#ifndef PE_TAPER_H
#define PE_TAPER_H

#include "lane_trig.h"

/* erfc(-rise (z - at)/width)/2: from 0 to 1 where rise is 1, from 1 to 0 where it is -1; 0 where there is none. */
typedef struct {
    double at, width;
    int rise;
} pe_taper;

/* Its logarithm at a real place, and the slope of that, which falls. */
double pe_taper_log(const pe_taper *t, double x, double *slope);

/* Its values at x + iy, |y| <= width, on lanes: parts as sums of two doubles, a bound of the modulus and of those of its
 * parts, all over a power of 2, and of their error in units of PE_WIDE_UNIT of that bound. */
typedef struct {
    double re[PE_LANES], re_low[PE_LANES], im[PE_LANES], im_low[PE_LANES], size[PE_LANES], power[PE_LANES];
    double units[PE_LANES];
} pe_tapered;

void pe_taper_at(const pe_taper *t, const double *x, double y, pe_tapered *out);

#endif
