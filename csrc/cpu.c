/* Which clone of the array kernels runs: see functions.h and simd.h. */

#include "functions.h"

#include "simd.h"

int pe_simd_level(void) {
#ifdef PE_HAS_CLONES
    /* the same tests, in the same order, as in the resolver of the clones */
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return 4;
    if (__builtin_cpu_supports("x86-64-v3")) return 3;
    return 1;
#else
    return 0;
#endif
}
