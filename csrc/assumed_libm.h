#ifndef PE_ASSUMED_LIBM_H
#define PE_ASSUMED_LIBM_H

#include <math.h>

/* What proofs assume of the C library: bounds of errors in units in the last place (docs/theory/arithmetic.md). */

#define PE_LIBM_ELEMENTARY 2 /* exp, expm1, log, log1p in doubles */
#define PE_LIBM_CURVED 4     /* sin, cos, atan2 and hypot in doubles */
#define PE_LIBM_WIDE 4       /* exp, log, log1p, sin, cos and atan2 in long doubles, which NumPy calls */
#define PE_LIBM_ERFC 8       /* in doubles */

#endif
