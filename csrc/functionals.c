/* Turns rows with estimated errors into values of beta, gamma, delta and epsilon with lower and upper bounds (as good as
 * the estimates), and judges rows by their error.  Interface in answers.h; called by pyengine/engines/functionals.py. */

#include <float.h>
#include <math.h>

#include "answers.h"
#include "doubles.h"

static const double HALF_ULP = DBL_EPSILON / 2;
static const double SUBNORMAL = 1e-323; /* absolute rounding below the normal range, added to every error */
static const double UNDERFLOW_LOG = -760.0; /* logs below it are those of values that underflow */
static const double TINY_LOG = -69.0; /* log 1e-30 */

enum { ERRORS = 2 + PE_FUNCTIONALS }; /* where a row's relative errors begin */

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

/* value, lower, upper */
static void put(double *out, double value, double error) {
    out[0] = value;
    out[1] = value - error;
    out[2] = value + error;
}

/* Sets the larger one of beta and gamma to 1 minus the smaller one, which is known better. */
static void complement(const double *small, double *large) {
    if (!(small[0] < 0.5)) return;
    large[0] = 1.0 - small[0];
    large[1] = 1.0 - small[2] - 4.0 * HALF_ULP;
    large[2] = 1.0 - small[1] + 4.0 * HALF_ULP;
}

/* Absolute error from a relative one; infinite if that is not finite, also for a value of 0. */
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
        /* an error of A's tail, at which c was solved, moves B's tail by e^c times as much */
        double shift = fmin(pe_d_exp(row[0]) * tail * row[ERRORS + functional], 1.0);
        double value[2], error[2];
        for (int k = 0; k < 2; k++) {
            value[k] = pe_d_exp(fmin(row[2 + SIDES[k]], 0.0));
            error[k] = absolute(value[k], row[ERRORS + SIDES[k]]);
        }
        /* beta + gamma = 1, so each also has the other's error and what the sum misses */
        const double apart = fabs(1.0 - value[0] - value[1]);
        for (int k = 0; k < 2; k++) {
            const double own = fmin(error[k], error[1 - k] + apart);
            const double all = own + shift + 4.0 * value[k] * HALF_ULP + SUBNORMAL;
            put(k ? gamma : beta, value[k], fmin(all, 1.0));
        }
        complement(beta, gamma);
        complement(gamma, beta);
        /* gamma >= alpha and beta <= 1 - alpha for every trade-off function */
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
