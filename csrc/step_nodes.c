/* Nodes of Laplace steps on lines, and transforms of nodes at a tilt, in sums of two doubles: docs/theory/laplace.md,
 * line.md.  Interface in kinds.h; called by pyengine/engines/vertical_lines. */
#include <stddef.h>

#include "arithmetic.h"
#include "doubles.h"
#include "kinds.h"
#include "simd.h"

#define LEAST_EXPONENT -16000.0 /* smallest argument of pe_dd_exp_parts */
#define UNDERFLOW_LOG -800.0 /* log of a term, over the largest one, below which it underflows */

static const pe_dd LOG_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

PE_INLINE pe_dd at(const double *parts, size_t n, size_t i) {
    return pe_dd_make(parts[i], parts[n + i]);
}

PE_INLINE void put(double *parts, size_t n, size_t i, pe_dd x) {
    parts[i] = x.h;
    parts[n + i] = x.l;
}

/* e^x - 1 for 0 <= x < 690 */
PE_INLINE pe_dd grown(pe_dd x) {
    const int near = x.h < 0.3;
    const pe_dd z = pe_dd_choose(near, x, pe_dd_of(0.1));
    const pe_dd small = pe_dd_add_less(z, pe_dd_exp_tail(z)), large = pe_dd_add_d(pe_dd_exp(x), -1.0);
    return pe_dd_choose(near, small, large);
}

/* m 2^k = e^x; m is 0 for x <= LEAST_EXPONENT. */
PE_INLINE pe_dd exp_parts(pe_dd x, double *k) {
    const int is_nothing = !(x.h > LEAST_EXPONENT);
    const pe_dd m = pe_dd_exp_parts(pe_dd_choose(is_nothing, pe_dd_of(0.0), x), k);
    return pe_dd_choose(is_nothing, pe_dd_of(0.0), m);
}

PE_CLONES
void pe_laplace_nodes(const pe_laplace_branch *b, size_t panels, const double *edges, size_t size,
                      const double *place, const double *weight, double *loss, double *mass) {
    const size_t n = panels * size;
    for (size_t j = 0; j < panels; j++) {
        const pe_dd left = pe_dd_of(edges[j]), right = j + 1 < panels ? pe_dd_of(edges[j + 1]) : b->span;
        const pe_dd width = pe_dd_sub(right, left);
        for (size_t i = 0; i < size; i++) {
            const pe_dd v = pe_dd_add_fast(left, pe_dd_mul(width, at(place, size, i)));
            const pe_dd half = pe_dd_exp(pe_dd_scale(v, 0.5)), back = pe_dd_div(pe_dd_of(1.0), half);
            const pe_dd away = pe_dd_log1p(pe_dd_div(grown(v), b->slope));
            const pe_dd density = pe_dd_add_fast(pe_dd_mul(b->falling, back), pe_dd_mul(b->rising, half));
            const pe_dd share = pe_dd_scale(pe_dd_mul(width, at(weight, size, i)), 0.25);
            put(loss, n, j * size + i, pe_dd_add(b->origin, pe_dd_scale(away, b->sign)));
            put(mass, n, j * size + i, pe_dd_mul(share, density));
        }
    }
}

PE_CLONES
void pe_wide_exp(size_t n, const double *x, double *value, double *power) {
    for (size_t i = 0; i < n; i++) put(value, n, i, exp_parts(at(x, n, i), power + i));
}

PE_CLONES
void pe_wide_log(size_t n, const double *x, const double *power, double *value) {
    for (size_t i = 0; i < n; i++) {
        const pe_dd a = at(x, n, i);
        const pe_dd raised = pe_dd_mul_d(LOG_2, power[i]);
        const pe_dd log = pe_dd_add(raised, pe_dd_log(pe_dd_choose(a.h > 0.0, a, pe_dd_of(1.0))));
        put(value, n, i, pe_dd_choose(a.h > 0.0, log, pe_dd_of(-INFINITY)));
    }
}

/* Replaces the logs of the terms in `high` by the terms over e^top, as sums of two doubles in high and low. */
PE_CLONES
static void put_terms(size_t n, const double *loss, const double *mass, const double *power, double tilt,
                      double top, double *high, double *low) {
    for (size_t i = 0; i < n; i++) {
        double k;
        const int counts = high[i] - top > UNDERFLOW_LOG;
        const pe_dd x = pe_dd_add_d(pe_dd_mul_d(at(loss, n, i), tilt), -top);
        const pe_dd m = pe_dd_mul(at(mass, n, i), exp_parts(x, &k));
        const pe_dd term = pe_dd_raise(m, counts ? k + power[i] : -2000.0);
        high[i] = counts ? term.h : 0.0;
        low[i] = counts ? term.l : 0.0;
    }
}

double pe_step_at_tilt(size_t n, const double *loss, const double *mass, const double *power, double tilt,
                       pe_dd *log_mean, double *share, double *apart) {
    double top = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        share[i] = tilt * loss[i] + (pe_d_log(mass[i]) + power[i] * LOG_2.h);
        top = share[i] > top ? share[i] : top;
    }
    put_terms(n, loss, mass, power, tilt, top, share, apart);
    pe_dd total = pe_dd_of(0.0), moment = pe_dd_of(0.0);
    for (size_t i = 0; i < n; i++) {
        const pe_dd term = pe_dd_make(share[i], apart[i]);
        total = pe_dd_add_fast(total, term);
        moment = pe_dd_add_fast(moment, pe_dd_mul_d(term, loss[i]));
    }
    const double centre = moment.h / total.h;
    for (size_t i = 0; i < n; i++) {
        share[i] = pe_dd_div(pe_dd_make(share[i], apart[i]), total).h;
        apart[i] = pe_dd_add_d(at(loss, n, i), -centre).h;
    }
    *log_mean = pe_dd_add_d(pe_dd_log(total), top);
    return centre;
}

/* The log of term i; -infinity if it has no mass */
PE_INLINE pe_dd log_term(size_t n, const double *loss, const double *log_mass, double tilt, size_t i) {
    const int has_mass = log_mass[i] > -INFINITY;
    const pe_dd log = pe_dd_choose(has_mass, at(log_mass, n, i), pe_dd_of(0.0));
    const pe_dd x = pe_dd_add(pe_dd_mul_d(at(loss, n, i), tilt), log);
    return pe_dd_choose(has_mass, x, pe_dd_of(-INFINITY));
}

double pe_log_mean_of_nodes(size_t n, const double *loss, const double *log_mass, double tilt, double *top) {
    double most = -INFINITY, sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double x = log_term(n, loss, log_mass, tilt, i).h;
        most = x > most ? x : most;
    }
    for (size_t i = 0; i < n; i++) {
        const pe_dd x = log_term(n, loss, log_mass, tilt, i);
        sum += pe_d_exp(x.h - most + x.l);
    }
    *top = most;
    return pe_d_log(sum);
}

void pe_running_sums(size_t n, const double *x, double *out) {
    pe_dd sum = pe_dd_of(0.0);
    for (size_t i = 0; i < n; i++) {
        sum = pe_dd_add(sum, at(x, n, i));
        put(out, n, i, sum);
    }
}

double pe_less_product(pe_dd a, double b, double c) {
    const pe_dd product = pe_two_prod(b, c);
    const int is_usual = product.l - product.l == 0.0;
    return is_usual ? pe_dd_sub(a, product).h : a.h - product.h;
}
