/* Symbols of the C library that every machine with glibc has.
 *
 * glibc gave exp, log, log2 and pow a second version in 2.29 and hypot one in 2.35, which differ in nothing but
 * errno: both names run the same code.  A module that is linked where it is built would ask for the newest,
 * and a wheel would load on few machines.  With glibc build_ffi.py includes this file ahead of every source,
 * so it must include nothing itself: what follows chooses the features of the headers.
 */
#if defined(__x86_64__)
#define PE_BASE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define PE_BASE "GLIBC_2.17"
#endif

#ifdef PE_BASE
__asm__(".symver exp, exp@" PE_BASE);
__asm__(".symver log, log@" PE_BASE);
__asm__(".symver log2, log2@" PE_BASE);
__asm__(".symver pow, pow@" PE_BASE);
__asm__(".symver hypot, hypot@" PE_BASE);
#endif
