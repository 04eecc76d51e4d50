/* The sums of one kind of step on a certified line, for tools/audit_sums.py, which compares them. */
#include <math.h>
#include <stdlib.h>

#include "pair.h"
#include "shifted.h"

enum { LOG_M = 2, HEAD = 4, EACH = 3 };

static int sums(pe_pair *pair, double lambda, double ht, size_t runs, int every_t, int *conjugate,
                double *out) {
    pe_contours *contours;
    pe_shifted s = {0};
    int status = pe_pair_contours(pair, 0, &contours);
    if (!status) status = pe_shifted_begin(&s, &contours->groups[0], lambda, PE_FARTHEST);
    if (!status) status = pe_shifted_finish(&s, every_t ? INFINITY : (double)(runs * PE_SHIFTED_RUN) * ht);
    if (!status) {
        pe_shifted_step(&s, ht);
        *conjugate = s.is_conjugate;
        out[0] = INFINITY;
        for (size_t i = 0; i < s.n_parts; i++) out[0] = fmin(out[0], s.part[i].cut);
        out[1] = s.log_m.h;
        out[LOG_M] = s.log_m.l;
        out[LOG_M + 1] = s.log_m_error;
        for (size_t run = 0; run < runs; run++) {
            double re[PE_SHIFTED_RUN], im[PE_SHIFTED_RUN], error[PE_SHIFTED_RUN];
            pe_shifted_values(&s, run * PE_SHIFTED_RUN, re, im, error);
            for (size_t k = 0; k < PE_SHIFTED_RUN; k++) {
                double *row = out + HEAD + EACH * (run * PE_SHIFTED_RUN + k);
                row[0] = re[k];
                row[1] = im[k];
                row[2] = error[k];
            }
        }
    }
    pe_shifted_free(&s);
    return status;
}

/* Status of a step of DP-SGD at lambda; the end of the law, log M as a sum of two doubles and its error
 * bound; then re and im of R(t) - 1 at t = k ht with a bound of the error, k < 16 runs, and R conjugate or not.  With
 * every_t the nodes are those that serve all t. */
int audit_sums(double noise, double p, int reversed, double lambda, double ht, size_t runs, int every_t,
               int *conjugate, double *out) {
    const double steps = 1.0;
    pe_pair *pair = NULL;
    int status = pe_pair_new(1, &noise, &p, &steps, reversed, 3e7, &pair);
    if (!status) status = sums(pair, lambda, ht, runs, every_t, conjugate, out);
    if (pair) pe_pair_free(pair);
    return status;
}

/* The same of a step of mixtures, which are given as to pe_pair_add_mixtures. */
int audit_mixtures(size_t alternatives, const double *log_share, const size_t *sizes, const double *shift,
                   const double *weight, const size_t *terms, const double *exact, double lambda, double ht,
                   size_t runs, int every_t, int *conjugate, double *out) {
    const double none = 1.0;
    pe_pair *pair = NULL;
    int status = pe_pair_new(0, &none, &none, &none, 0, 3e7, &pair);
    if (!status)
        status = pe_pair_add_mixtures(pair, 1.0, alternatives, log_share, sizes, shift, weight, terms, exact);
    if (!status) status = sums(pair, lambda, ht, runs, every_t, conjugate, out);
    if (pair) pe_pair_free(pair);
    return status;
}
