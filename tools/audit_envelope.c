/* What csrc/envelope.c bounds of one step of DP-SGD, for tools/audit_envelope.py, which compares it. */
#include <math.h>

#include "pair.h"
#include "shifted.h"

static int group_of(double noise, double p, int reversed, pe_pair **pair, const pe_group **group) {
    const double steps = 1.0;
    pe_contours *contours;
    int status = pe_pair_new(1, &noise, &p, &steps, reversed, 3e7, pair);
    if (!status) status = pe_pair_contours(*pair, 0, &contours);
    if (!status) *group = &contours->groups[0];
    return status;
}

/* Bounds of |R| from each t on, and of the integral beyond it, with sums that miss e^-digits; a status. */
int audit_envelope(double noise, double p, int reversed, double lambda, double digits, size_t n,
                   const double *t, double *modulus, double *beyond) {
    pe_pair *pair = NULL;
    const pe_group *group;
    pe_shifted s = {0};
    int status = group_of(noise, p, reversed, &pair, &group);
    if (!status) status = pe_shifted_begin(&s, group, lambda, PE_FARTHEST);
    if (!status) status = pe_shifted_finish(&s, t[n - 1]);
    for (size_t i = 0; i < n && !status; i++) {
        modulus[i] = pe_shifted_envelope(&s, t[i], digits);
        beyond[i] = pe_shifted_beyond(&s, t[i]);
    }
    pe_shifted_free(&s);
    if (pair) pe_pair_free(pair);
    return status;
}

/* Bounds of log M, with sums that miss e^-digits, and of the probabilities of what the cut removes; a status. */
int audit_above(double noise, double p, int reversed, double lambda, double digits, double *out) {
    pe_pair *pair = NULL;
    const pe_group *group;
    pe_shifted s = {0};
    int status = group_of(noise, p, reversed, &pair, &group);
    if (!status) status = pe_shifted_parts(&s, group, lambda, PE_FARTHEST);
    if (!status) {
        s.steps = exp(digits) * 1e-6; /* which is how it takes its digits */
        out[0] = pe_shifted_log_above(&s, lambda);
        pe_shifted_removed(&s, &out[1], &out[2]);
        out[3] = s.part[0].cut;
    }
    pe_shifted_free(&s);
    if (pair) pe_pair_free(pair);
    return status;
}
