/* Sets and restores the floating-point environment: see environment.h. */

#include "environment.h"

#if defined(PE_SSE)

enum { FLAGS = 0x3f, MXCSR = 0x1f80 };

#ifdef PE_X87
/* Without flags: with exceptions unmasked, one that is raised already would be trapped later. */
static void set_x87(void) {
    const uint16_t word = 0x037f;
    __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(word));
}
#endif

void pe_environment_set(pe_environment *host) {
    host->mxcsr = _mm_getcsr();
#ifdef PE_X87
    __asm__ volatile("fnstenv %0" : "=m"(host->x87));
    set_x87();
#endif
    _mm_setcsr(MXCSR);
}

void pe_environment_restore(const pe_environment *host) {
    if (!host->differs) {
        _mm_setcsr((_mm_getcsr() & FLAGS) | MXCSR);
#ifdef PE_X87
        set_x87();
#endif
        return;
    }
    _mm_setcsr(host->mxcsr);
#ifdef PE_X87
    __asm__ volatile("fldenv %0" : : "m"(host->x87));
#endif
}

#elif defined(PE_FPCR)

static void set_fpcr(uint64_t word) {
    __asm__ volatile("msr fpcr, %0" : : "r"(word));
}

void pe_environment_set(pe_environment *host) {
    __asm__ volatile("mrs %0, fpcr" : "=r"(host->fpcr));
    set_fpcr(0);
}

void pe_environment_restore(const pe_environment *host) {
    set_fpcr(host->differs ? host->fpcr : 0);
}

#else

void pe_environment_set(pe_environment *host) {
    fegetenv(&host->all);
    fesetenv(FE_DFL_ENV);
}

void pe_environment_restore(const pe_environment *host) {
    fesetenv(&host->all);
}

#endif
