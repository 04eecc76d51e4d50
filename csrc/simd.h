/* Runtime dispatch to the vector instructions of the machine.
 *
 * Put PE_CLONES before the definition of an array kernel whose loop the compiler vectorises: the
 * function is compiled for AVX-512, AVX2 and the baseline, and the loader picks one.  With
 * -ffp-contract=off every clone returns the same bits.  The levels are named x86-64-v4 and -v3
 * because names of single processors (arch=haswell) silently fall back to the baseline on
 * processors of another maker.  The attribute needs ifunc support, which sanitizers break (their
 * run-time is not initialised yet when the resolver runs), hence the conditions.
 */
#ifndef PE_SIMD_H
#define PE_SIMD_H

#include <limits.h> /* any header of the C library: defines __GLIBC__ */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define PE_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PE_SANITIZED 1
#endif

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) &&                     \
    defined(__linux__) && defined(__GLIBC__) && !defined(PE_SANITIZED)
#define PE_HAS_CLONES 1
#endif

#if defined(PE_TARGET) /* one level alone, to be measured: -DPE_TARGET='"arch=x86-64-v3"' */
#define PE_CLONES __attribute__((target(PE_TARGET)))
#elif defined(PE_HAS_CLONES)
#define PE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PE_CLONES
#endif

#endif
