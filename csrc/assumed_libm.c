#include "assumed_libm.h"

#include <float.h>
#include <stddef.h>

#include "libm_points.h"
#include "pyengine.h"

typedef long double (*function_at)(long double x, long double y);

typedef struct {
    const char *name;
    double allowed;
    int is_wide;
    const pe_libm_point *points;
    int count;
    function_at at;
} assumed;

#define IN_DOUBLES(name)                                                                                     \
    static long double name##_at(long double x, long double y) {                                             \
        return (void)y, name((double)x);                                                                     \
    }
#define IN_LONG_DOUBLES(name)                                                                                \
    static long double name##_at(long double x, long double y) {                                             \
        return (void)y, name(x);                                                                             \
    }
#define OF_TWO(name)                                                                                         \
    static long double name##_at(long double x, long double y) {                                             \
        return name((double)x, (double)y);                                                                   \
    }
/* beside each other compilers take sine and cosine from one function, as they do elsewhere */
#define SINES(name, real, sine, cosine, wanted)                                                              \
    static long double name##_at(long double x, long double y) {                                             \
        const real value[2] = {cosine((real)x), sine((real)x)};                                              \
        volatile real other = value[!(wanted)];                                                              \
        return (void)other, (void)y, value[wanted];                                                          \
    }

IN_DOUBLES(exp)
IN_DOUBLES(expm1)
IN_DOUBLES(log)
IN_DOUBLES(log1p)
IN_DOUBLES(erfc)
OF_TWO(atan2)
OF_TWO(hypot)
IN_LONG_DOUBLES(expl)
IN_LONG_DOUBLES(logl)
IN_LONG_DOUBLES(log1pl)
SINES(sin, double, sin, cos, 1)
SINES(cos, double, sin, cos, 0)
SINES(sinl, long double, sinl, cosl, 1)
SINES(cosl, long double, sinl, cosl, 0)

static long double atan2l_at(long double x, long double y) {
    return atan2l(x, y);
}

#define ENTRY(name, allowed, is_wide, points)                                                                \
    {#name, allowed, is_wide, points, (int)(sizeof points / sizeof *points), name##_at}

static const assumed FUNCTIONS[] = {
    ENTRY(exp, PE_LIBM_ELEMENTARY, 0, EXP_POINTS), ENTRY(expm1, PE_LIBM_ELEMENTARY, 0, EXPM1_POINTS),
    ENTRY(log, PE_LIBM_ELEMENTARY, 0, LOG_POINTS), ENTRY(log1p, PE_LIBM_ELEMENTARY, 0, LOG1P_POINTS),
    ENTRY(sin, PE_LIBM_CURVED, 0, SIN_POINTS),     ENTRY(cos, PE_LIBM_CURVED, 0, COS_POINTS),
    ENTRY(atan2, PE_LIBM_CURVED, 0, ATAN2_POINTS), ENTRY(hypot, PE_LIBM_CURVED, 0, HYPOT_POINTS),
    ENTRY(erfc, PE_LIBM_ERFC, 0, ERFC_POINTS),     ENTRY(expl, PE_LIBM_WIDE, 1, EXP_POINTS),
    ENTRY(logl, PE_LIBM_WIDE, 1, LOG_POINTS),      ENTRY(log1pl, PE_LIBM_WIDE, 1, LOG1P_POINTS),
    ENTRY(sinl, PE_LIBM_WIDE, 1, SIN_POINTS),      ENTRY(cosl, PE_LIBM_WIDE, 1, COS_POINTS),
    ENTRY(atan2l, PE_LIBM_WIDE, 1, ATAN2_POINTS),
};

/* below it the low part of a true value is itself rounded by a part of a unit of long doubles */
static const double SMALLEST_WIDE = 1e-300;

int pe_libm_functions(void) {
    return (int)(sizeof FUNCTIONS / sizeof *FUNCTIONS);
}

const char *pe_libm_name(int function) {
    return FUNCTIONS[function].name;
}

double pe_libm_allowed(int function) {
    return FUNCTIONS[function].allowed;
}

int pe_libm_points(int function, const pe_libm_point **points) {
    *points = FUNCTIONS[function].points;
    return FUNCTIONS[function].count;
}

double pe_libm_error(int function) {
    const assumed *f = &FUNCTIONS[function];
    double worst = 0.0;
    for (int i = 0; i < f->count; i++) {
        const pe_libm_point *p = &f->points[i];
        const double size = fabs(p->high);
        if (f->is_wide && size < SMALLEST_WIDE && size > 0.0) continue;
        const long double off = (f->at(p->x, p->y) - p->high) - p->low;
        int exponent;
        frexp(p->high, &exponent);
        const double unit =
            size > 0.0 ? ldexp(f->is_wide ? (double)LDBL_EPSILON : DBL_EPSILON, exponent - 1) : 0.0;
        const double error = off == 0.0L ? 0.0 : (double)(fabsl(off) / fmaxl(unit, DBL_TRUE_MIN));
        if (!(error <= worst)) worst = error >= 0.0 ? error : INFINITY; /* not a number, too */
    }
    return worst;
}
