#include <math.h>
#include <stdlib.h>

#include "doubles.h"
#include "loss_law.h"

static const double HALF_LOG_2PI = 0.91893853320467274178;
enum { NEWTON_STEPS = 60 }; /* up to 13 were seen for 400 random mixtures, mostly 3 */

/* e^Y - 1 = sum of the terms ratio exp(shift z - shift^2/2), z standard normal under A. */
typedef struct {
    size_t terms;
    const double *shift, *ratio;
    const double *rest; /* log of the ratio beyond that of its double */
    double *base;       /* of one z at a time: exponents at z = 0 */
} step_law;

/* The ratio of a term and e^Y - 1 is formed before its logarithm, whose error is then small beside 1,
 * not beside the logarithms of both: all steps share it. */
static void set_bases(const step_law *s, double log_em1, double em1) {
    for (size_t j = 0; j < s->terms; j++) {
        double ratio = s->ratio[j] / em1, half = 0.5 * s->shift[j] * s->shift[j];
        int within = ratio > 1e-290 && ratio < 1e290;
        s->base[j] = (within ? pe_d_log(ratio) : pe_d_log(s->ratio[j]) - log_em1) + s->rest[j] - half;
    }
}

/* Log of the sum of the terms exp(base + shift z), and its derivative. */
static double log_terms(const step_law *s, double z, double *slope) {
    double top = -INFINITY, total = 0.0, moved = 0.0;
    for (size_t j = 0; j < s->terms; j++) top = fmax(top, s->base[j] + s->shift[j] * z);
    for (size_t j = 0; j < s->terms; j++) {
        double share = pe_d_exp(s->base[j] + s->shift[j] * z - top);
        total += share;
        moved += share * s->shift[j];
    }
    *slope = moved / total;
    return top + pe_d_log(total);
}

/* The z where the sum of the terms is 1, with the slope of its logarithm there.  That logarithm is convex
 * and at least that of each term: from where the first term reaches 1, Newton's method falls to the root. */
static double place_of(const step_law *s, double *slope) {
    double z = INFINITY;
    for (size_t j = 0; j < s->terms; j++) z = fmin(z, -s->base[j] / s->shift[j]);
    *slope = s->shift[0];
    if (s->terms == 1) return z;
    for (int k = 0; k < NEWTON_STEPS; k++) {
        double step = log_terms(s, z, slope) / *slope;
        z -= step;
        if (step <= 1e-15 * (1.0 + fabs(z))) break;
    }
    return z;
}

static double step_density(const void *context, double w, double rest) {
    const step_law *s = context;
    double y = pe_d_exp(w) * (1.0 + rest), em1 = y < 700.0 ? pe_d_expm1(y) : INFINITY, slope;
    double log_em1 = y > 30.0    ? y + pe_d_log1p(-pe_d_exp(-y))
                     : w < -30.0 ? w + rest + 0.5 * y
                                 : pe_d_log(em1);
    set_bases(s, log_em1, em1);
    double z = place_of(s, &slope);
    double log_slope = (w < -30.0 ? 0.5 * y : w + y - log_em1) - pe_d_log(slope);
    return -HALF_LOG_2PI - 0.5 * z * z + log_slope;
}

int pe_law_step(size_t terms, const double *shift, const double *ratio, const double *rest, double floor,
                double floor_low, double deepest, size_t max_panels, pe_law **out) {
    pe_law *a = calloc(1, sizeof *a);
    double *base = malloc((terms ? terms : 1) * sizeof(double));
    *out = a;
    if (!a || !base) {
        free(base);
        return PE_NO_MEMORY;
    }
    step_law s = {terms, shift, ratio, rest, base};
    a->floor = floor;
    a->floor_low = floor_low;
    a->deepest = deepest;
    double reach = sqrt(-2.0 * deepest), largest = 0.0, slope;
    for (size_t j = 0; j < terms; j++) largest = fmax(largest, shift[j]);
    set_bases(&s, 0.0, 1.0);
    double low = log_terms(&s, -reach, &slope), high = log_terms(&s, reach + largest, &slope);
    pe_rules r;
    pe_law_rules(&r);
    /* log log1p(e^x), in both cases to a fraction of the reach */
    low = low < -30.0 ? low : pe_d_log(pe_d_log1p(pe_d_exp(low)));
    high = high < 700.0 ? pe_d_log(pe_d_log1p(pe_d_exp(high))) : pe_d_log(high);
    int status = pe_law_fill(a, step_density, &s, low, high, &r, max_panels);
    free(base);
    if (!status) pe_law_normalise(a, &r);
    return status;
}
