/* What a host may do to its floating-point environment, for tests/environments.py; x86-64 only. */
#include <stdint.h>
#include <xmmintrin.h>

void host_set(uint32_t mxcsr, uint32_t x87);
uint32_t host_mxcsr(void);
uint32_t host_x87(void);

void host_set(uint32_t mxcsr, uint32_t x87) {
    uint16_t word = (uint16_t)x87;
    __asm__ volatile("fldcw %0" : : "m"(word));
    _mm_setcsr(mxcsr);
}

uint32_t host_mxcsr(void) {
    return _mm_getcsr();
}

uint32_t host_x87(void) {
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    return word;
}
