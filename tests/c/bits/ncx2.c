/* Prints the bits of the noncentral chi-squared functions on a fixed set of arguments, so that builds
 * for different processors can be compared (tests/test_special_ufuncs.py).
 */
#include "pyengine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define N 1501

static uint64_t state = 12345;

static double uniform(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

static void print(const double *v) {
    for (int i = 0; i < N; i++) {
        uint64_t bits;
        memcpy(&bits, v + i, sizeof bits);
        printf("%016" PRIx64 "\n", bits);
    }
}

int main(void) {
    static double x[N], d[N], l[N], p[N], out[N];
    const ptrdiff_t s = sizeof(double);
    for (int i = 0; i < N; i++) {
        d[i] = ldexp(1.0 + uniform(), (int)(uniform() * 36) - 2);
        l[i] = i % 9 == 0 ? 0.0 : ldexp(1.0 + uniform(), (int)(uniform() * 60) - 16);
        x[i] = fabs(d[i] + l[i] + sqrt(2 * d[i] + 4 * l[i]) * (60 * uniform() - 30));
        p[i] = uniform();
    }
    for (int what = PE_NCX2_CDF; what <= PE_NCX2_LOGPDF; what++) {
        pe_ncx2_strided(what, N, (char *)x, s, (char *)d, s, (char *)l, s, (char *)out, s);
        print(out);
    }
    for (int what = 0; what < 2; what++) {
        pe_ncx2_quantile_strided(what, N, (char *)p, s, (char *)d, s, (char *)l, s, (char *)out, s);
        print(out);
        pe_relaxed_strided(2, what, N, (char *)p, s, (char *)d, s, (char *)l, s, (char *)out, s);
        print(out);
    }
    return 0;
}
