/* Mixtures of normals as one kind of step on lines that other kinds share (docs/theory/kinds.md), by the parts of proven
 * lines (certified.c).  Interface in contours.h; called by pyengine/engines/vertical_lines/normal_steps.py. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "certified_parts.h"
#include "contours.h"
#include "pair.h"

struct pe_mixture_kind {
    pe_composition q;
    pe_certified known; /* log M, mean and removed mass, once there are nodes */
};

void pe_mixture_kind_free(pe_mixture_kind *kind) {
    if (!kind) return;
    for (size_t i = 0; i < kind->q.n_kinds; i++) pe_shifted_free(&kind->q.kinds[i]);
    free(kind->q.kinds);
    free(kind);
}

int pe_mixture_kind_new(pe_pair *pair, double lambda, double farthest, pe_mixture_kind **out) {
    pe_contours *contours;
    *out = NULL;
    pe_pair_retry(pair);
    int status = pe_pair_is_exact(pair) ? pe_pair_contours(pair, 0, &contours) : PE_TOO_COSTLY;
    if (status) return status;
    /* both lambda and 1 - lambda must be doubles, as one of them is the power of the likelihood ratio */
    if (1.0 - (1.0 - lambda) != lambda || lambda == 0.0 || lambda == 1.0) return PE_TOO_COSTLY;
    pe_mixture_kind *kind = calloc(1, sizeof *kind);
    if (!kind) return PE_NO_MEMORY;
    kind->q =
        (pe_composition){.contours = contours, .gaussian = contours->exact_variance.h, .farthest = farthest};
    kind->known.line.lambda = lambda;
    kind->q.kinds = calloc(contours->n_groups + 1, sizeof *kind->q.kinds);
    status = kind->q.kinds ? pe_begin_kinds(&kind->q, 0.0, &kind->known.line) : PE_NO_MEMORY;
    if (status) pe_mixture_kind_free(kind);
    else *out = kind;
    return status;
}

void pe_mixture_kind_beyond(pe_mixture_kind *kind, size_t n, const double *t, double *log_modulus) {
    for (size_t i = 0; i < n; i++) log_modulus[i] = pe_modulus_beyond(&kind->q, t[i]);
}

double pe_mixture_kind_log_above(const pe_mixture_kind *kind, double lambda) {
    return pe_cumulant_above(kind->q.contours, kind->q.kinds, lambda);
}

int pe_mixture_kind_finish(pe_mixture_kind *kind, double t_last, double t_top, pe_kind_at *out) {
    /* no bound at smaller t tells the height: make find_best (envelope.c) try all, once */
    for (size_t i = 0; i < kind->q.n_kinds; i++)
        for (size_t j = 0; j < kind->q.kinds[i].n_parts; j++) kind->q.kinds[i].part[j].height.fall = INFINITY;
    pe_modulus_beyond(&kind->q, t_last); /* in units of an estimate of M, which the next call converts to M */
    const int status = pe_finish_kinds(&kind->q, t_top, &kind->known);
    if (status) return status;
    const double beyond = pe_known_beyond(&kind->q, t_last);
    const pe_certified *c = &kind->known;
    double nodes = 0.0;
    for (size_t i = 0; i < kind->q.n_kinds; i++) nodes += (double)kind->q.kinds[i].m;
    const double high = c->log_m.h, tail = pe_integral_beyond(&kind->q, t_last, beyond);
    if (!isfinite(high + c->log_m_error + c->line.c_ref + c->mean_error + beyond + tail))
        return PE_TOO_COSTLY;
    *out = (pe_kind_at){{high, c->log_m.l},
                        c->log_m_error + 0x1p-104 * fabs(high),
                        c->line.c_ref,
                        c->mean_error,
                        {c->removed[0], c->removed[1]},
                        nodes,
                        beyond,
                        tail};
    return PE_OK;
}

int pe_mixture_kind_values(const pe_mixture_kind *kind, size_t n, double ht, double *log_modulus,
                           double *angle, double *error, double *top) {
    pe_values v = {0};
    const int status = pe_run_values(&kind->q, n, ht, &v);
    for (size_t k = 0; !status && k < n; k++) {
        log_modulus[k] = v.re[k];
        angle[k] = v.im[k];
        error[k] = v.error[k] + (double)k * ht * kind->known.mean_error;
        top[k] = v.top[k];
    }
    free(v.re);
    return status;
}

int pe_pair_cumulants(pe_pair *pair, size_t n, const double *lambda, double *out) {
    pe_contours *contours;
    pe_pair_retry(pair);
    const int status = pe_pair_contours(pair, 0, &contours);
    for (size_t i = 0; !status && i < n; i++) {
        const pe_cumulants k = pe_contours_cumulants(contours, lambda[i]);
        out[3 * i] = k.k0;
        out[3 * i + 1] = k.k1;
        out[3 * i + 2] = k.k2;
    }
    return status;
}

int pe_pair_log_above(pe_pair *pair, double lambda, double *out) {
    pe_contours *contours;
    pe_chernoff found;
    pe_pair_retry(pair);
    const int status = pe_pair_is_exact(pair) ? pe_pair_contours(pair, 0, &contours) : PE_TOO_COSTLY;
    if (status) return status;
    pe_certified_chernoff_at(contours, lambda, &found);
    out[0] = found.k;
    out[1] = found.removed[0];
    out[2] = found.removed[1];
    return PE_OK;
}
