/* Mixtures of normals as functions of z; interface in normals.h. */

#include "normals.h"
#include "doubles.h"
#include "normal.h"

#include <math.h>

static double exponent(const pe_normals *s, size_t j, double z) {
    return s->shift[j] * (z - 0.5 * s->shift[j]);
}

/* sum of the weights times e^exponent - 1, and the largest exponent */
static double change_at(const pe_normals *s, double z, double *largest) {
    double sum = 0.0;
    for (size_t j = 0; j < s->n; j++) {
        double x = exponent(s, j, z);
        *largest = fmax(*largest, x);
        sum += s->weight[j] * pe_d_expm1(fmin(x, 700.0));
    }
    return sum;
}

static double log_sum_at(const pe_normals *s, double z) {
    double top = -INFINITY, sum = 0.0;
    for (size_t j = 0; j < s->n; j++) top = fmax(top, pe_d_log(s->weight[j]) + exponent(s, j, z));
    for (size_t j = 0; j < s->n; j++) sum += pe_d_exp(pe_d_log(s->weight[j]) + exponent(s, j, z) - top);
    return top + pe_d_log(sum);
}

/* log(1 + change), from the sum itself where change is near -1 or a term may overflow */
static double log_of(const pe_normals *s, double z, double change, double largest) {
    return change < -0.5 || largest > 600.0 ? log_sum_at(s, z) : pe_d_log1p(change);
}

pe_mixed_loss pe_mixtures_at(const pe_mixtures *m, double z) {
    double largest = -INFINITY;
    double of_a = change_at(&m->a, z, &largest), of_b = change_at(&m->b, z, &largest);
    pe_mixed_loss out;
    out.log_a = log_of(&m->a, z, of_a, largest);
    double r = (of_b - of_a) / (1.0 + of_a);
    if (largest <= 600.0 && of_a > -0.5 && fabs(r) < 0.5) {
        out.r = r;
        out.l = pe_d_log1p(r);
        return out;
    }
    out.l = log_of(&m->b, z, of_b, largest) - out.log_a;
    out.r = pe_d_expm1(out.l);
    return out;
}

static double range_of(const pe_normals *s) {
    return s->shift[s->n - 1] - s->shift[0];
}

double pe_mixtures_range(const pe_mixtures *m) {
    return fmax(range_of(&m->a), range_of(&m->b));
}

double pe_mixtures_change(const pe_mixtures *m) {
    const pe_normals *a = &m->a, *b = &m->b;
    double total = 0.0;
    for (size_t i = 0, j = 0; i < a->n || j < b->n;) {
        double x = i < a->n ? a->shift[i] : INFINITY, y = j < b->n ? b->shift[j] : INFINITY;
        double difference = 0.0;
        if (x <= y) difference += a->weight[i++];
        if (y <= x) difference -= b->weight[j++];
        total += fabs(difference);
    }
    return 0.5 * total;
}

static double mean_shift(const pe_normals *s, double z) {
    double top = -INFINITY, sum = 0.0, first = 0.0;
    for (size_t j = 0; j < s->n; j++) top = fmax(top, pe_d_log(s->weight[j]) + exponent(s, j, z));
    for (size_t j = 0; j < s->n; j++) {
        double share = pe_d_exp(pe_d_log(s->weight[j]) + exponent(s, j, z) - top);
        sum += share;
        first += share * s->shift[j];
    }
    return first / sum;
}

double pe_mixtures_slope(const pe_mixtures *m, double z) {
    return mean_shift(&m->b, z) - mean_shift(&m->a, z);
}

/* log|s(z + iy)/s(z)| and the argument, continuous in y: turned back by the smallest shift, the terms have arguments
 * between 0 and y times the range, below pi. */
static double moved_side(const pe_normals *s, double z, double y, double *angle) {
    double top = -INFINITY, sum = 0.0, re = 0.0, im = 0.0, low = s->shift[0];
    for (size_t j = 0; j < s->n; j++) top = fmax(top, pe_d_log(s->weight[j]) + exponent(s, j, z));
    for (size_t j = 0; j < s->n; j++) {
        double share = pe_d_exp(pe_d_log(s->weight[j]) + exponent(s, j, z) - top);
        double turn = (s->shift[j] - low) * y;
        sum += share;
        re += share * pe_d_cos(turn);
        im += share * pe_d_sin(turn);
    }
    *angle = low * y + pe_d_atan2(im, re);
    return 0.5 * pe_d_log((re * re + im * im) / (sum * sum));
}

pe_moved pe_mixtures_moved(const pe_mixtures *m, double z, double y) {
    pe_moved out;
    double of_a, of_b;
    out.log_a = moved_side(&m->a, z, y, &of_a);
    out.log_b = moved_side(&m->b, z, y, &of_b);
    out.angle = of_b - of_a;
    return out;
}

double pe_normals_above(const pe_normals *s, double x) {
    double sum = 0.0;
    for (size_t j = 0; j < s->n; j++)
        sum += s->weight[j] * pe_erfc((x - s->shift[j]) * 0.70710678118654752440);
    return fmax(0.5 * sum * (1.0 + 1e-9), 5e-324); /* the smallest double if erfc underflows */
}

double pe_normals_below(const pe_normals *s, double x) {
    double sum = 0.0;
    for (size_t j = 0; j < s->n; j++)
        sum += s->weight[j] * pe_erfc((s->shift[j] - x) * 0.70710678118654752440);
    return fmax(0.5 * sum * (1.0 + 1e-9), 5e-324);
}
