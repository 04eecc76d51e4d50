/* The floating-point environment in which all of this package computes, whatever its host has set.
 *
 * The default one: rounding to nearest, subnormal numbers kept in operands and results, no exception
 * trapped, and 64 bits of mantissa in the x87 unit where long double is computed there.
 * pe_environment_enter sets it where the thread has another, and pe_environment_leave gives back what
 * the thread had.  Between default environments the two cost a dozen instructions.
 */
#ifndef PE_ENVIRONMENT_H
#define PE_ENVIRONMENT_H

#include <stdint.h>

#if defined(_MSC_VER) && defined(_M_X64) /* its long double is double: the x87 unit is not used */
#include <intrin.h>
#define PE_SSE 1
#elif defined(__GNUC__) && defined(__x86_64__)
#include <xmmintrin.h>
#define PE_SSE 1
#define PE_X87 1
#elif defined(__GNUC__) && defined(__aarch64__)
#define PE_FPCR 1
#else
#include <fenv.h>
#endif

/* The environment that a thread had. */
typedef struct {
#if defined(PE_SSE)
    uint32_t mxcsr;
#ifdef PE_X87
    unsigned char x87[28]; /* as fnstenv writes it */
#endif
#elif defined(PE_FPCR)
    uint64_t fpcr;
#else
    fenv_t all;
#endif
    int differs; /* from the default environment */
} pe_environment;

/* Called by the two below if the environment is not the default one. */
void pe_environment_set(pe_environment *host);
void pe_environment_restore(const pe_environment *host);

/* Whether the thread's environment differs from the default one, apart from exception flags. */
static inline int pe_environment_differs(void) {
#if defined(PE_SSE)
    /* the bits of DAZ, of the masks, of rounding and of FTZ */
    int differs = (_mm_getcsr() & 0xffc0) != 0x1f80;
#ifdef PE_X87
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    differs |= (word & 0x0f3f) != 0x033f; /* rounding, precision, masks */
#endif
    return differs;
#elif defined(PE_FPCR)
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word != 0;
#else
    return 1; /* <fenv.h> cannot tell whether subnormal numbers are kept */
#endif
}

static inline void pe_environment_enter(pe_environment *host) {
    host->differs = pe_environment_differs();
    if (host->differs) pe_environment_set(host);
}

/* Also restores if the code that ran since has changed the environment. */
static inline void pe_environment_leave(const pe_environment *host) {
    if (host->differs || pe_environment_differs()) pe_environment_restore(host);
}

#endif
