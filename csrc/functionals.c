#include <float.h>
#include <math.h>

#include "answers.h"
#include "doubles.h"

/* From the rows of an engine to what was asked, for one value and for arrays of them alike. */

static const double HALF_ULP = DBL_EPSILON / 2;
static const double SUBNORMAL = 1e-323; /* rounding below the normal range: a 0 is not exact */
static const double UNDERFLOW_LOG = -760.0; /* logs below are 0 in double precision */
static const double TINY_LOG = -69.0;       /* log 1e-30 */

enum { ERRORS = 2 + PE_FUNCTIONALS };

double pe_row_error(const double *row, int functional) {
    double own = row[ERRORS + functional];
    if (isnan(own)) return INFINITY;
    if (functional != PE_PROFILE) {
        double other = fmin(row[ERRORS + PE_B_ABOVE], row[ERRORS + PE_B_BELOW]);
        double smaller = fmin(row[2 + PE_B_ABOVE], row[2 + PE_B_BELOW]);
        int vanishes = smaller < UNDERFLOW_LOG && other < 0.1;
        if (!vanishes && !(other <= own)) own = other;
    }
    return isnan(own) ? INFINITY : own;
}

static int is_good(const double *row, int functional, double error, double limit, double limit_tiny) {
    double value = row[2 + functional];
    if (functional != PE_PROFILE) value = fmin(value, fmin(row[2 + PE_B_ABOVE], row[2 + PE_B_BELOW]));
    return error <= (value < TINY_LOG ? limit_tiny : limit);
}

int pe_row_good(const double *row, int functional, double limit, double limit_tiny) {
    return is_good(row, functional, pe_row_error(row, functional), limit, limit_tiny);
}

void pe_rows_judge(size_t n, const double *rows, int functional, double limit, double limit_tiny,
                   double *errors, unsigned char *good) {
    for (size_t i = 0; i < n; i++) {
        errors[i] = pe_row_error(rows + PE_ROW * i, functional);
        good[i] = (unsigned char)is_good(rows + PE_ROW * i, functional, errors[i], limit, limit_tiny);
    }
}

double pe_log_tail(double alpha) {
    return pe_d_log(alpha <= 0.5 ? alpha : 1.0 - alpha); /* the difference is exact */
}

void pe_log_tails(size_t n, const double *alpha, double *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_log_tail(alpha[i]);
}

double pe_natural_log(double x) {
    return pe_d_log(x);
}

void pe_natural_logs(size_t n, const double *x, double *out) {
    for (size_t i = 0; i < n; i++) out[i] = pe_d_log(x[i]);
}

/* value, lower, upper */
static void put(double *out, double value, double error) {
    out[0] = value;
    out[1] = value - error;
    out[2] = value + error;
}

/* beta and gamma add up to 1, and the smaller one is the certain one. */
static void complement(const double *small, double *large) {
    if (!(small[0] < 0.5)) return;
    large[0] = 1.0 - small[0];
    large[1] = 1.0 - small[2] - 4.0 * HALF_ULP;
    large[2] = 1.0 - small[1] + 4.0 * HALF_ULP;
}

/* Absolute from relative errors; what is not known is infinite, also beside a value of 0. */
static double absolute(double value, double relative) {
    return isfinite(relative) ? value * relative : INFINITY;
}

void pe_trade_off_answers(size_t n, const double *alpha, const double *rows, double *out) {
    static const int SIDES[] = {PE_B_BELOW, PE_B_ABOVE};
    for (size_t i = 0; i < n; i++) {
        const double *row = rows + PE_ROW * i;
        double *beta = out + 6 * i, *gamma = beta + 3;
        int functional = alpha[i] <= 0.5 ? PE_A_ABOVE : PE_A_BELOW;
        double tail = alpha[i] <= 0.5 ? alpha[i] : 1.0 - alpha[i];
        /* an error of the solved tail moves B's tail by e^c times as much */
        double shift = fmin(pe_d_exp(row[0]) * tail * row[ERRORS + functional], 1.0);
        double value[2], error[2];
        for (int k = 0; k < 2; k++) {
            value[k] = pe_d_exp(fmin(row[2 + SIDES[k]], 0.0));
            error[k] = absolute(value[k], row[ERRORS + SIDES[k]]);
        }
        /* beta and gamma add up to 1: either one is known as well as the other one shows */
        const double apart = fabs(1.0 - value[0] - value[1]);
        for (int k = 0; k < 2; k++) {
            const double own = fmin(error[k], error[1 - k] + apart);
            const double all = own + shift + 4.0 * value[k] * HALF_ULP + SUBNORMAL;
            put(k ? gamma : beta, value[k], fmin(all, 1.0));
        }
        complement(beta, gamma);
        complement(gamma, beta);
        /* true of every trade-off function, and rounding must not hide it */
        gamma[0] = fmin(fmax(gamma[0], alpha[i]), 1.0);
        beta[0] = fmin(fmax(beta[0], 0.0), 1.0 - alpha[i]);
    }
}

void pe_profile_answers(size_t n, const double *rows, double *out) {
    for (size_t i = 0; i < n; i++) {
        const double *row = rows + PE_ROW * i;
        double value = pe_d_exp(fmin(row[2 + PE_PROFILE], 0.0));
        double error = absolute(value, row[ERRORS + PE_PROFILE] + 4.0 * HALF_ULP);
        put(out + 3 * i, value, fmin(error + SUBNORMAL, 1.0));
    }
}

void pe_epsilon_answers(size_t n, const double *rows, double *out) {
    for (size_t i = 0; i < n; i++) {
        const double *row = rows + PE_ROW * i;
        double epsilon = fmax(-row[0], 0.0);
        /* d log delta / d epsilon = -e^epsilon B(S <= -epsilon) / delta */
        double slope = pe_d_exp(row[2 + PE_B_BELOW] + epsilon - row[2 + PE_PROFILE]);
        put(out + 3 * i, epsilon, row[ERRORS + PE_PROFILE] / slope + 2.0 * HALF_ULP * (1.0 + epsilon));
    }
}
