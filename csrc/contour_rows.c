/* Weights and sums of a line (used by certified.c as well), and rows of functionals with estimated errors made of them,
 * for spectral.c.  docs/theory/line.md (Lemma 1, Theorem 3), docs/estimates.md. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "doubles.h"
#include "lane_trig.h"
#include "simd.h"
#include "spectral.h"

static const double PI = 3.14159265358979323846;
static const double MARGIN = 4.0; /* factor on those error terms that are estimates */
static const double LARGEST_LOG = 700.0; /* log modulus at which weights are capped */
static const double MOST_ANGLE = 1e8; /* largest angle, in radians, for which pe_vcosm1_sinmx is made */

/* x + iy = e^{re + i im} for |im| < 1e7, the modulus capped at e^LARGEST_LOG. */
PE_CLONES static void lane_exponentials(const double *re, const double *im, double *x, double *y) {
    for (int u = 0; u < PE_LANES; u++) {
        double cm1, smx;
        const double a = pe_vexp(re[u] < LARGEST_LOG ? re[u] : LARGEST_LOG);
        pe_vcosm1_sinmx(im[u], &cm1, &smx);
        x[u] = a * (1.0 + cm1);
        y[u] = a * (im[u] + smx);
    }
}

/* The weights of values k ... k + n - 1 of t, n <= PE_LANES, given the transform x + iy there. */
PE_CLONES static void put_weights(pe_line *ln, size_t k, size_t n, const double *x, const double *y) {
    const double l = ln->lambda, m = l - 1.0;
    double w[8][PE_LANES], mass[4][PE_LANES];
    for (int u = 0; u < PE_LANES; u++) {
        const double t = (double)(k + u) * ln->ht, n0 = l * l + t * t, n1 = m * m + t * t;
        const double near = 1.0 / n0, far = 1.0 / n1;
        w[0][u] = x[u];
        w[1][u] = y[u];
        w[2][u] = (x[u] * l + y[u] * t) * near;
        w[3][u] = (y[u] * l - x[u] * t) * near;
        w[4][u] = (x[u] * m + y[u] * t) * far;
        w[5][u] = (y[u] * m - x[u] * t) * far;
        w[6][u] = (w[4][u] * l + w[5][u] * t) * near;
        w[7][u] = (w[5][u] * l - w[4][u] * t) * near;
        const double a = sqrt(x[u] * x[u] + y[u] * y[u]), r0 = sqrt(near), r1 = sqrt(far);
        mass[0][u] = a;
        mass[1][u] = a * r0;
        mass[2][u] = a * r1;
        mass[3][u] = a * (r0 * r1);
    }
    for (size_t u = 0; u < n; u++) {
        for (int q = 0; q < 8; q++) ln->weights[8 * (k + u) + q] = w[q][u];
        for (int q = 0; q < 4; q++) ln->mass[q] += mass[q][u];
    }
}

int pe_line_set_weights(pe_line *ln, const double *e_re, const double *e_im) {
    ln->weights = malloc(8 * ln->nt * sizeof(double));
    if (!ln->weights) return PE_NO_MEMORY;
    for (size_t k = 0; k < ln->nt; k += PE_LANES) {
        const size_t n = ln->nt - k < PE_LANES ? ln->nt - k : PE_LANES;
        double re[PE_LANES] = {0}, im[PE_LANES] = {0}, x[PE_LANES], y[PE_LANES], top = 0.0;
        for (size_t u = 0; u < n; u++) {
            re[u] = e_re[k + u];
            im[u] = e_im[k + u];
            top = fmax(top, fabs(im[u]));
        }
        if (top < 1e7) {
            lane_exponentials(re, im, x, y);
        } else {
            for (int u = 0; u < PE_LANES; u++) {
                x[u] = pe_d_exp(re[u]) * pe_d_cos(im[u]);
                y[u] = pe_d_exp(re[u]) * pe_d_sin(im[u]);
            }
        }
        if (!k) {
            x[0] *= 0.5;
            y[0] *= 0.5;
        }
        put_weights(ln, k, n, x, y);
    }
    return PE_OK;
}

PE_CLONES void pe_line_sums(const pe_line *ln, const double *c, double sum[4][PE_LANES]) {
    double x[PE_LANES], cr[PE_LANES], ci[PE_LANES], ur[PE_LANES], ui[PE_LANES];
    double s0[PE_LANES] = {0}, s1[PE_LANES] = {0}, s2[PE_LANES] = {0}, s3[PE_LANES] = {0};
    for (int u = 0; u < PE_LANES; u++) {
        double cm1, smx, turn = -ln->ht * (c[u] - ln->c_ref);
        /* NaN for thresholds too far from the line's centre */
        x[u] = fabs(turn) * (double)ln->nt < MOST_ANGLE ? turn : NAN;
        pe_vcosm1_sinmx(x[u], &cm1, &smx);
        cr[u] = 1.0 + cm1;
        ci[u] = x[u] + smx;
    }
    for (size_t k0 = 0; k0 < ln->nt; k0 += 16) {
        double start = (double)k0;
        for (int u = 0; u < PE_LANES; u++) {
            double cm1, smx, angle = start * x[u];
            pe_vcosm1_sinmx(angle, &cm1, &smx);
            ur[u] = 1.0 + cm1;
            ui[u] = angle + smx;
        }
        size_t end = k0 + 16 < ln->nt ? k0 + 16 : ln->nt;
        double b0[PE_LANES] = {0}, b1[PE_LANES] = {0}, b2[PE_LANES] = {0}, b3[PE_LANES] = {0};
        for (size_t k = k0; k < end; k++) {
            const double *w = ln->weights + 8 * k;
            for (int u = 0; u < PE_LANES; u++) {
                double re = ur[u], im = ui[u];
                b0[u] += w[0] * re - w[1] * im;
                b1[u] += w[2] * re - w[3] * im;
                b2[u] += w[4] * re - w[5] * im;
                b3[u] += w[6] * re - w[7] * im;
                ur[u] = re * cr[u] - im * ci[u];
                ui[u] = re * ci[u] + im * cr[u];
            }
        }
        for (int u = 0; u < PE_LANES; u++) { /* two-stage sum: rounding grows with nt/16 instead of nt */
            s0[u] += b0[u];
            s1[u] += b1[u];
            s2[u] += b2[u];
            s3[u] += b3[u];
        }
    }
    double f = ln->ht / PI;
    for (int u = 0; u < PE_LANES; u++) {
        sum[0][u] = f * s0[u];
        sum[1][u] = f * s1[u];
        sum[2][u] = f * s2[u];
        sum[3][u] = f * s3[u];
    }
}

/* Sets a functional and its complement to 1; the error of `natural` is relative. */
static void set_pair(pe_row *row, int natural, int other, double log_value, double error) {
    double rest = -pe_d_expm1(log_value);
    row->log_value[natural] = log_value;
    row->error[natural] = error;
    row->log_value[other] = rest > 0.0 ? pe_d_log(rest) : -INFINITY;
    if (log_value < -0.5) row->log_value[other] = pe_d_log1p(-pe_d_exp(log_value));
    row->error[other] = INFINITY;
    if (rest > 0.0 && error < INFINITY) row->error[other] = error * pe_d_exp(log_value) / rest + DBL_EPSILON;
}

/* The row at c from the four sums s: aliases by Chernoff's bounds at the thetas, truncation, rounding and cut. */
static void evaluate_one(const pe_contours *contours, const pe_line *ln, double c, const double *s,
                         pe_row *row) {
    double error[4], l = ln->lambda, base = ln->k0 - l * c;
    double tail_alias = 0.0, profile_alias = 0.0, last_t = ln->ht * (double)ln->nt;
    for (int side = 0; side < 2; side++) {
        double theta = ln->theta[side], way = fabs(theta - l) * 2.0 * PI / ln->ht;
        /* one exponential, as a product of two may be infinity times 0 */
        double bound = pe_d_exp(ln->theta_k[side] - theta * c - base - way) / (1.0 - pe_d_exp(-way));
        tail_alias += bound;
        /* (1 - e^x)+ <= e^{theta x}/(1 + |theta|) for theta <= 0 */
        profile_alias += l < 0.0 ? bound / (1.0 + fabs(theta)) : bound;
    }
    double exponent = ln->rounding + DBL_EPSILON * fabs(l * (c - ln->c_ref));
    double sign[4] = {1.0, l, l - 1.0, l * (l - 1.0)};
    double decay[4] = {1.0, last_t, last_t, last_t * last_t};
    for (int q = 0; q < 4; q++) {
        double omitted = ln->truncation * ln->ht / PI / decay[q];
        double rounding = ln->term_rounding * ln->mass[q] * ln->ht / PI;
        double alias = q == 3 ? profile_alias : tail_alias;
        error[q] = (alias + MARGIN * (omitted + rounding)) / fabs(s[q]) + MARGIN * exponent;
        if (!(s[q] * sign[q] > 0.0) || !(error[q] < 1.0)) error[q] = INFINITY;
    }
    double log_a = base + pe_d_log(fabs(s[1])), log_b = base + c + pe_d_log(fabs(s[2]));
    double log_h = base + pe_d_log(fabs(s[3])), cut = contours->log_cut;
    if (cut > -INFINITY) {
        /* Cutting off large z takes at most e^cut from the tail on their side (under B of a reversed pair at most
         * e^c times that), and at most a share e^cut of the other tail and of a profile that falls as z grows.  Where
         * both ends are cut, every functional may lose e^cut. */
        int rev = contours->reversed, both = contours->both_ends;
        double cut_b = rev && !both ? cut + fmin(c, 0.0) : cut;
        error[1] += pe_d_exp(both || (l > 0.0) != rev ? cut - log_a : cut);
        error[2] += pe_d_exp(both || (l > 1.0) != rev ? cut_b - log_b : cut);
        error[3] += pe_d_exp(both || rev ? cut - log_h : cut);
    }
    row->density_log = base + pe_d_log(fabs(s[0]));
    set_pair(row, l > 0 ? PE_A_ABOVE : PE_A_BELOW, l > 0 ? PE_A_BELOW : PE_A_ABOVE, log_a, error[1]);
    set_pair(row, l > 1 ? PE_B_ABOVE : PE_B_BELOW, l > 1 ? PE_B_BELOW : PE_B_ABOVE, log_b, error[2]);
    row->log_value[PE_PROFILE] = log_h;
    row->error[PE_PROFILE] = error[3];
    if (l > 1.0) { /* the sum is E max(0, e^{S-c} - 1) = e^{-c} - 1 + E max(0, 1 - e^{S-c}) */
        row->log_value[PE_PROFILE] = NAN;
        row->error[PE_PROFILE] = INFINITY;
    } else if (l > 0.0) { /* the sum is E min(1, e^{S-c}) */
        pe_row side;
        set_pair(&side, 0, 1, log_h, error[3]);
        row->log_value[PE_PROFILE] = side.log_value[1];
        row->error[PE_PROFILE] = side.error[1];
    }
}

void pe_line_evaluate(const pe_contours *contours, const pe_line *ln, size_t n, const double *c,
                      pe_row *rows) {
    double padded[PE_LANES], sum[4][PE_LANES];
    for (size_t u = 0; u < PE_LANES; u++) padded[u] = u < n ? c[u] : c[0];
    pe_line_sums(ln, padded, sum);
    for (size_t u = 0; u < n; u++) {
        double s[4] = {sum[0][u], sum[1][u], sum[2][u], sum[3][u]};
        evaluate_one(contours, ln, c[u], s, &rows[u]);
    }
}

/* Whether a line's sums give the functional itself, not its complement (Lemma 1). */
static int is_natural(double lambda, int functional) {
    switch (functional) {
    case PE_A_ABOVE:
        return lambda > 0.0;
    case PE_A_BELOW:
        return !(lambda > 0.0);
    case PE_B_ABOVE:
        return lambda > 1.0;
    case PE_B_BELOW:
        return !(lambda > 1.0);
    default:
        return !(lambda > 0.0); /* the profile, whose slope needs B's lower tail */
    }
}

void pe_line_slopes(const pe_contours *contours, const pe_line *ln, int functional, size_t n, const double *c,
                    double *value, double *slope) {
    const double l = ln->lambda;
    if (!is_natural(l, functional)) {
        pe_row rows[PE_LANES];
        pe_line_evaluate(contours, ln, n, c, rows);
        for (size_t u = 0; u < n; u++) {
            value[u] = rows[u].log_value[functional];
            slope[u] = pe_row_slope(&rows[u], functional, c[u]);
        }
        return;
    }
    double padded[PE_LANES], sum[4][PE_LANES];
    for (size_t u = 0; u < PE_LANES; u++) padded[u] = u < n ? c[u] : c[0];
    pe_line_sums(ln, padded, sum);
    for (size_t u = 0; u < n; u++) {
        const double base = ln->k0 - l * c[u];
        pe_row row;
        row.density_log = functional == PE_PROFILE ? NAN : base + pe_d_log(fabs(sum[0][u]));
        row.log_value[PE_B_BELOW] = functional == PE_PROFILE ? base + c[u] + pe_d_log(fabs(sum[2][u])) : NAN;
        const int which = functional == PE_PROFILE                               ? 3
                          : functional == PE_A_ABOVE || functional == PE_A_BELOW ? 1
                                                                                 : 2;
        row.log_value[functional] = base + (which == 2 ? c[u] : 0.0) + pe_d_log(fabs(sum[which][u]));
        value[u] = row.log_value[functional];
        slope[u] = pe_row_slope(&row, functional, c[u]);
    }
}

double pe_row_slope(const pe_row *row, int functional, double c) {
    double v = row->log_value[functional];
    switch (functional) {
    case PE_A_ABOVE:
        return -pe_d_exp(row->density_log - v);
    case PE_A_BELOW:
        return pe_d_exp(row->density_log - v);
    case PE_B_ABOVE:
        return -pe_d_exp(row->density_log + c - v);
    case PE_B_BELOW:
        return pe_d_exp(row->density_log + c - v);
    default:
        return pe_d_exp(row->log_value[PE_B_BELOW] - c - v);
    }
}
