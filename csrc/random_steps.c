/* Losses of samples of an epoch with a record in k of t steps, drawn with the set of the k steps fixed; interface in
 * laws.h, called by pyengine/laws/random_steps.py.
 *
 * The elementary symmetric polynomial e_k comes from the coefficients of prod (1 + u y_i), each factor divided by its
 * value at u y_i: then they are the probabilities of k successes of independent coins with odds u y_i, sums of positive
 * terms below 1.  The coefficients of the steps without the record are shared by all replicates.  / */

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "doubles.h"
#include "elementary.h"
#include "laws.h"

#define LARGEST 690.0 /* largest exponent for which a value is formed */
#define LEAST 1e-280 /* smallest coefficient with all digits: what underflows is negligible beside it */

/* y(x) and g(x) of laws.h; bad[l] is raised where an exponent exceeds LARGEST */
PE_CLONES static void values(const pe_random_steps *s, size_t n, const double *x, double *y, double *g,
                             double *bad) {
    for (size_t l = 0; l < n; l++) {
        double own = s->mu * x[l] - 0.5 * s->mu * s->mu;
        double base = s->base * x[l] + s->level;
        double by = s->spacing * x[l];
        double last = base + (double)s->shifts * by, reach = own > base ? own : base;
        reach = last > reach ? last : reach;
        bad[l] += reach <= LARGEST ? 0.0 : 1.0;
        own = own < -700.0 ? -700.0 : own;
        base = base < -700.0 ? -700.0 : base;
        by = by < -700.0 ? -700.0 : by;
        own = own < LARGEST ? own : LARGEST;
        base = base < LARGEST ? base : LARGEST;
        by = by < LARGEST ? by : LARGEST;
        double step = pe_exp(by), sum = 0.0;
        for (size_t m = s->shifts; m-- > 0;) sum = sum * step + s->weight[m];
        y[l] = pe_exp(own);
        g[l] = pe_exp(base) * sum;
    }
}

/* Multiplies the polynomials p by (no + yes v), yes = u y/(1 + u y), no = 1/(1 + u y); adds log(1 + u y) to log_of. */
PE_CLONES static void factor(size_t n, size_t degree, double u, const double *y, double *p, double *log_of,
                             double *yes, double *no) {
    for (size_t l = 0; l < n; l++) {
        double a = u * y[l];
        a = a < 1e300 ? a : 1e300;
        no[l] = 1.0 / (1.0 + a);
        yes[l] = a * no[l];
        log_of[l] += pe_log(1.0 + a);
    }
    for (size_t j = degree; j > 0; j--) {
        double *to = p + j * n;
        const double *from = to - n;
        for (size_t l = 0; l < n; l++) to[l] = no[l] * to[l] + yes[l] * from[l];
    }
    for (size_t l = 0; l < n; l++) p[l] *= no[l];
}

/* The coefficient of v^degree in p q, q of degree `placed` */
PE_CLONES static void product(size_t n, size_t degree, const double *p, size_t placed, const double *q,
                              double *out) {
    for (size_t l = 0; l < n; l++) out[l] = 0.0;
    for (size_t j = 0; j <= placed; j++) {
        const double *a = p + (degree - j) * n, *b = q + j * n;
        for (size_t l = 0; l < n; l++) out[l] += a[l] * b[l];
    }
}

/* The polynomial 1 */
static void unit(size_t n, size_t degree, double *p) {
    memset(p, 0, (degree + 1) * n * sizeof *p);
    for (size_t l = 0; l < n; l++) p[l] = 1.0;
}

/* Number of steps before block j; the first blocks have one step less than the last ones if k does not divide t. */
static size_t first_of(const pe_random_steps *s, size_t j) {
    size_t steps = s->others + s->placed, size = steps / s->degree, shorter = s->degree - steps % s->degree;
    return j * size + (j > shorter ? j - shorter : 0);
}

/* End of the steps of block j that stay in it wherever the `placed` steps with the record are. */
static size_t core_end(const pe_random_steps *s, size_t j) {
    size_t first = first_of(s, j), end = first_of(s, j + 1);
    return end - first > s->placed ? end - s->placed : first;
}

/* log of the product of the blocks' means, the k steps put into blocks at random */
static double of_blocks(const pe_random_steps *s, size_t n, size_t l, const double *y, const double *core,
                        const double *mine, const double *share, double *sum, size_t *taken) {
    size_t k = s->degree, steps = s->others + s->placed;
    for (size_t j = 0; j < k; j++) sum[j] = 0.0, taken[j] = 0;
    for (size_t i = 0; i < s->placed; i++) {
        double at = share[i * n + l] * (double)(steps - i);
        size_t j = 0;
        for (; j + 1 < k; j++) {
            double room = (double)(first_of(s, j + 1) - first_of(s, j) - taken[j]);
            if (at < room) break;
            at -= room;
        }
        while (taken[j] == first_of(s, j + 1) - first_of(s, j)) j--; /* full, where rounding chose it */
        taken[j]++;
        sum[j] += mine[i * n + l];
    }
    double log_of = 0.0;
    size_t before = 0;
    for (size_t j = 0; j < k; j++) {
        size_t first = first_of(s, j), end = first_of(s, j + 1);
        size_t from = first - before, to = end - (before + taken[j]), inner = core_end(s, j);
        before += taken[j];
        if (inner > first) {
            sum[j] += core[j * n + l];
            for (size_t i = from; i < first; i++) sum[j] += y[i * n + l];
            for (size_t i = inner; i < to; i++) sum[j] += y[i * n + l];
        } else {
            for (size_t i = from; i < to; i++) sum[j] += y[i * n + l];
        }
        log_of += pe_log(sum[j] / (double)(end - first));
    }
    return log_of;
}

size_t pe_random_steps_room(const pe_random_steps *s, size_t n) {
    return (s->others + 2 * s->placed + 5 * s->degree + 16) * n + 2 * s->degree;
}

void pe_random_step_losses(const pe_random_steps *s, size_t n, const double *z, const double *x,
                           const double *share, double *work, double *out) {
    const size_t k = s->degree, rows = (k + 1) * n;
    double *y = work, *g = y + s->others * n, *mine = g + n;
    double *p = mine + s->placed * n, *q = p + rows, *own = q + rows, *other = own + rows;
    double *core = other + rows, *logs = core + k * n, *bad = logs + 4 * n, *far = bad + n;
    double *yes = far + n, *no = yes + n, *sum = no + n;
    size_t *taken = (size_t *)(void *)(sum + k);
    memset(logs, 0, 2 * n * sizeof *logs);
    memset(bad, 0, n * sizeof *bad);
    unit(n, k, p);
    unit(n, k, q);
    for (size_t i = 0; i < s->others; i++) {
        values(s, n, z + i * n, y + i * n, g, bad);
        factor(n, k, s->odds, y + i * n, p, logs, yes, no);
        if (s->shifts) factor(n, k, s->odds, g, q, logs + n, yes, no);
    }
    memset(core, 0, k * n * sizeof *core);
    for (size_t j = 0; j < k; j++)
        for (size_t i = first_of(s, j), end = core_end(s, j); i < end; i++)
            for (size_t l = 0; l < n; l++) core[j * n + l] += y[i * n + l];
    for (size_t r = 0; r < s->replicates; r++) {
        const double *at = x + r * s->placed * n, *by = share + r * s->placed * n;
        double *to = out + 3 * r * n;
        unit(n, s->placed, own);
        unit(n, s->placed, other);
        memset(logs + 2 * n, 0, 2 * n * sizeof *logs);
        memset(far, 0, n * sizeof *far);
        for (size_t i = 0; i < s->placed; i++) {
            values(s, n, at + i * n, mine + i * n, g, far);
            factor(n, s->placed, s->odds, mine + i * n, own, logs + 2 * n, yes, no);
            if (s->shifts) factor(n, s->placed, s->odds, g, other, logs + 3 * n, yes, no);
        }
        product(n, k, p, s->placed, own, to);
        product(n, k, q, s->placed, other, to + n);
        for (size_t l = 0; l < n; l++) {
            int asked = s->shifts > 0, known = to[l] >= LEAST && bad[l] == 0.0 && far[l] == 0.0;
            known = known && (!asked || to[n + l] >= LEAST);
            double rest = (double)k * pe_d_log(s->odds) + s->log_choices;
            to[l] = known ? pe_d_log(to[l]) + (logs[l] + logs[2 * n + l]) - rest : NAN;
            to[n + l] = !known  ? NAN
                        : asked ? pe_d_log(to[n + l]) + (logs[n + l] + logs[3 * n + l]) - rest
                                : 0.0;
            to[2 * n + l] = known ? of_blocks(s, n, l, y, core, mine, by, sum, taken) : NAN;
        }
    }
}
