/* A smooth step from 0 to 1 along z, by which a law is divided into what lies below a place and what lies above. */
#ifndef PE_TAPER_H
#define PE_TAPER_H

#include "normals.h"

/* erfc(-rise (z - at)/width)/2: from 0 to 1 where rise is 1, from 1 to 0 where it is -1; 0 where there is none. */
typedef struct {
    double at, width;
    int rise;
} pe_taper;

/* Its logarithm at a real place, and the slope of that, which falls. */
double pe_taper_log(const pe_taper *t, double x, double *slope);

/* Its value at x + iy, |y| <= width; a bound of its modulus and of those of its parts, and of their error in units of
 * LDBL_EPSILON of that bound. */
typedef struct {
    pe_wide re, im, size;
    double units;
} pe_tapered;

pe_tapered pe_taper_at(const pe_taper *t, pe_wide x, pe_wide y);

#endif
