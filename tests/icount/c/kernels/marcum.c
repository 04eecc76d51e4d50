#include "kernel.h"

enum { EACH = 128, SETTINGS = 4, COUNT = EACH * SETTINGS };

/* order and a; b around sqrt(a^2 + 2 order), where Q falls */
static const double SETTING[SETTINGS][2] = {{0.5, 0.6}, {5.0, 3.0}, {325.0, 570.0}, {5000.0, 100.0}};
static double *b, *p, *out;

static void prepare(void) {
    b = icount_doubles(COUNT);
    p = icount_doubles(COUNT);
    out = icount_doubles(COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const double order = SETTING[i / EACH][0], a = SETTING[i / EACH][1];
        b[i] = fabs(sqrt(a * a + 2.0 * order) + icount_between(-6.0, 6.0, i));
        p[i] = icount_between(0.0, 1.0, i);
    }
}

static void marcum_q(void) {
    const ptrdiff_t each = sizeof(double);
    for (size_t k = 0; k < SETTINGS; k++) {
        const size_t outside =
            pe_marcum_strided(PE_NCX2_SF, EACH, (const char *)&SETTING[k][0], 0, (const char *)&SETTING[k][1],
                              0, (const char *)(b + k * EACH), each, (char *)(out + k * EACH), each);
        icount_require(outside == 0, "arguments lie in the domain");
    }
    icount_require_numbers(out, COUNT);
}
KERNEL("marcum_q", prepare, marcum_q);

static void marcum_q_inverse(void) {
    const ptrdiff_t each = sizeof(double);
    for (size_t k = 0; k < SETTINGS; k++) {
        const size_t outside =
            pe_marcum_inverse_strided(1, EACH, (const char *)&SETTING[k][0], 0, (const char *)&SETTING[k][1],
                                      0, (const char *)(p + k * EACH), each, (char *)(out + k * EACH), each);
        icount_require(outside == 0, "arguments lie in the domain");
    }
    icount_require_numbers(out, COUNT);
}
KERNEL("marcum_q_inverse", prepare, marcum_q_inverse);
