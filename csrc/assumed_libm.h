#ifndef PE_ASSUMED_LIBM_H
#define PE_ASSUMED_LIBM_H

#include <math.h>

/* What proofs assume of the C library: bounds of errors in units in the last place (docs/theory/libm.md). */

#define PE_LIBM_ELEMENTARY 2 /* exp, expm1, log, log1p in doubles */
#define PE_LIBM_CURVED 4     /* sin, cos, atan2 and hypot in doubles */
#define PE_LIBM_WIDE 4       /* exp, log, log1p, sin, cos and atan2 in long doubles */
#define PE_LIBM_ERFC 8       /* in doubles */

/* log(e^y - 1) for y = e^w > 0, off by 12 LDBL_EPSILON (1 + |w|) at most, and by what y is off by.  Some library's
 * expm1l errs by hundreds of units, so there is none here; docs/theory/sector_laws.md counts. */
static inline long double pe_log_expm1(long double w, long double y) {
    if (y > 40.0L) return y;
    if (y >= 0.25L) return y + log1pl(-expl(-y));
    /* of sinh(y/2)/(y/2); the next term is 7/(6 14 14!) y^14 */
    const long double s = y * y;
    const long double log_sinhc =
        s * (1.0L / 24.0L -
             s * (1.0L / 2880.0L -
                  s * (1.0L / 181440.0L - s * (1.0L / 9676800.0L - s * (1.0L / 479001600.0L -
                                                                        s * (691.0L / 15692092416000.0L))))));
    return w + (0.5L * y + log_sinhc);
}

#endif
