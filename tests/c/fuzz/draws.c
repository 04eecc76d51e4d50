#include "fuzz.h"

/* Random numbers, and what a failed law prints. */

static uint64_t STATE, INPUT;
static int FAILURES;

void begin_input(uint64_t seed, uint64_t input) {
    INPUT = input;
    STATE = (seed << 40) + input; /* an input does not depend on those before it */
    random_bits();
}

int failures(void) {
    return FAILURES;
}

uint64_t random_bits(void) /* SplitMix64 */
{
    uint64_t z = STATE += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

size_t below(size_t n) {
    return (size_t)(random_bits() % n);
}

double uniform(double low, double high) {
    return low + (high - low) * ((double)(random_bits() >> 11) * 0x1p-53);
}

double log_uniform(double low, double high) {
    return exp(uniform(log(low), log(high)));
}

double anything(void) {
    double x;
    const uint64_t bits = random_bits();
    switch (below(4)) {
    case 0:
        memcpy(&x, &bits, sizeof x);
        return x;
    case 1:
        x = EXTREMES[bits % LENGTH(EXTREMES)];
        return below(2) ? x : nextafter(x, bits >> 63 ? INFINITY : -INFINITY);
    case 2:
        return uniform(-50.0, 50.0);
    default:
        return (bits & 1 ? -1.0 : 1.0) * log_uniform(1e-18, 1e18);
    }
}

double probability(void) {
    const double p = below(2) ? uniform(0.0, 1.0) : log_uniform(1e-300, 1.0);
    return below(8) ? p : (below(2) ? 0.0 : 1.0);
}

void require(int ok, const char *kernel, const char *law, double at) {
    if (ok) return;
    if (++FAILURES > 20) return; /* enough to see what is wrong */
    fprintf(stderr, "input %llu, %s: %s at %a (%.17g)\n", (unsigned long long)INPUT, kernel, law, at, at);
}

double *filled(size_t n, double (*value)(void)) {
    double *block = allocate(n);
    for (size_t i = 0; i < n; ++i) block[i] = value();
    return block;
}
