#include <float.h>
#include <math.h>

#include "answers.h"
#include "doubles.h"
#include "kinds.h"

/* Integrals at thresholds, from what is the same for all of a line (docs/theory/line, docs/theory/laplace). */

static const double UNIT = DBL_EPSILON / 2;
static const double SLACK = 1.0 + 1e-9;
static const double LARGEST = 600.0;        /* exponent of what says nothing */
static const double FARTHEST = 0.999e8;     /* angles that sums take in lanes */
static const double CHERNOFF = 1.0 + 1e-6; /* what an integral is at most, in its scale, and that rounded */
static const double FUNCTION = 4.0; /* units that an exponential errs by */

static double larger_exp(double x) {
    return x < LARGEST ? pe_d_exp(x) : INFINITY;
}

/* K(tilt) - tilt c, and a bound on its error */
static double scale_at(const pe_loss_line *at, double c, double *error) {
    const double log = pe_less_product(at->log_mean, at->tilt, c);
    const double size = fabs(at->log_mean.h) + fabs(at->tilt * c);
    *error = at->log_error + at->exponent_unit * size + at->log_unit * fabs(log);
    return log;
}

void pe_loss_line_scale(const pe_loss_line *at, size_t n, const double *c, double *log, double *error) {
    for (size_t i = 0; i < n; i++) log[i] = scale_at(at, c[i], error + i);
}

/* Distances of places from a threshold, and how many panels the nearest one takes */
static int64_t set_apart(const pe_line_turn *turn, double c, int64_t most, double *x) {
    double nearest = INFINITY;
    for (size_t j = 0; j < turn->places; j++) {
        const pe_dd place = {turn->place[j], turn->place[turn->places + j]}, at = {c, 0.0};
        x[j] = pe_dd_sub(place, at).h;
        nearest = fmin(nearest, fabs(x[j]));
    }
    const double needed = nearest > 0.0 ? pe_d_log2(turn->reach / nearest) + 2.0 : INFINITY;
    return !(needed < (double)most) ? most : needed > (double)turn->least ? (int64_t)needed : turn->least;
}

/* What poles between the sides add to the values that a sum has from thresholds whole periods away, or that bounded */
static double residues(const pe_loss_line *at, double c, size_t kernel, int is_error) {
    double sum = 0.0;
    for (int j = 0; j < 2; j++) {
        const pe_line_pole *pole = &at->poles[kernel][j];
        const double moved = pole->apart * c, exponent = pole->constant + moved;
        const double off = pole->known + at->pole_unit * fabs(moved);
        sum += is_error ? larger_exp(exponent) * off : pole->sign * pe_d_exp(fmin(exponent, LARGEST));
    }
    return sum;
}

static void sums_at(const pe_loss_line *at, double c, int64_t panels, const double *x, size_t first,
                    size_t kinds, double *out) {
    const double z = -pe_less_product(at->centre, 1.0, c);
    const size_t row = first * at->size;
    pe_trig_sums(1, &z, at->size, at->frequency, kinds, at->real + row, at->imag + row, out);
    for (size_t k = 0; k < kinds; k++) out[k] -= residues(at, c, first + k, 0);
    const pe_line_turn *turn = at->turn;
    if (!turn) return;
    double beyond[PE_KERNELS];
    pe_place_integrals(turn->places, x, turn->reach, turn->least, panels, turn->blocks, &turn->right,
                       &turn->left, first, kinds, beyond);
    for (size_t k = 0; k < kinds; k++) out[k] += beyond[k];
    pe_atom_integrals(turn->places, x, turn->atom, at->tilt, first, kinds, out);
}

/* Bound on what a sum has from other thresholds less the poles' part, or on what rules leave out, by tilts beside it */
static double beside(const pe_loss_line *at, double c) {
    double log_error, sum = 0.0;
    const double log = scale_at(at, c, &log_error);
    for (int i = 0; i < 2; i++) {
        const pe_line_side *side = &at->sides[i];
        sum += larger_exp(side->log_mean - side->tilt * c - log + log_error + side->fall) / side->over;
    }
    return sum;
}

static void errors_at(const pe_loss_line *at, double c, int64_t panels, const double *x, size_t first,
                      size_t kinds, double *out) {
    const double z = fabs(pe_less_product(at->centre, 1.0, c)), left = beside(at, c);
    const double angle = at->angle_unit * z + at->off_centre + at->threshold_unit * fabs(c);
    const int is_far = z * at->frequency[at->size - 1] >= FARTHEST;
    const pe_line_turn *turn = at->turn;
    size_t chunk = 0;
    while (turn && chunk + 1 < turn->chunks && turn->begin[chunk + 1] < panels) chunk++;
    for (size_t k = first; k < first + kinds; k++) {
        double error = at->error[k] + at->per_distance[k] * angle;
        error += residues(at, c, k, 1) + at->left[k] * left;
        if (is_far) error += at->far[k];
        if (turn) {
            const size_t row = chunk * PE_KERNELS + k;
            double turned = 0.0;
            for (size_t j = 0; j < turn->places; j++)
                turned += fabs(x[j]) * turn->turned[row * turn->places + j];
            error += turn->error[row] + turned;
        }
        out[k - first] = error * SLACK;
    }
}

int64_t pe_loss_line_at(const pe_loss_line *at, double *room, size_t n, const double *c, size_t first,
                        size_t kinds, int form, double *value, double *error) {
    for (size_t i = 0; i < n; i++) {
        const pe_line_turn *turn = at->turn;
        const int64_t panels = turn ? set_apart(turn, c[i], error ? turn->most : turn->about, room) : 0;
        if (turn && panels > turn->known) return panels;
        double sum[PE_KERNELS], off[PE_KERNELS] = {0.0}, log_error;
        sums_at(at, c[i], panels, room, first, kinds, sum);
        if (error) errors_at(at, c[i], panels, room, first, kinds, off);
        const double log = scale_at(at, c[i], &log_error);
        for (size_t k = 0; k < kinds; k++) {
            /* what a sum does not know to the scale, Chernoff's bound on it, is between 0 and the bound */
            const int of_b = first + k == 1 || (first + k == 2 && form == PE_SCALED_OF_B),
                      is_open = form != PE_RELATIVE && !(off[k] <= 1.0);
            const double exponent = of_b ? log + c[i] : log;
            const double scale = form == PE_RELATIVE ? 1.0 : pe_d_exp(fmin(exponent, LARGEST));
            const double known = is_open ? 0.0 : sum[k], unknown = is_open ? CHERNOFF : off[k];
            const double rounding = (2.0 * FUNCTION + fabs(exponent) + fabs(c[i])) * UNIT;
            const double relative = 1.01 * (log_error + rounding) + 4.0 * UNIT;
            value[k * n + i] = scale * known;
            if (!error) continue;
            error[k * n + i] =
                form == PE_RELATIVE ? unknown : scale * (unknown + (fabs(known) + unknown) * relative);
        }
    }
    return 0;
}

int64_t pe_loss_line_masses(const pe_loss_line *at, double *room, size_t n, const double *c,
                            const double *rest, double *out) {
    for (size_t i = 0; i < n; i++) {
        double value[2], error[2], masses[8];
        const int64_t panels = pe_loss_line_at(at, room, 1, c + i, 0, 2, PE_SCALED, value, error);
        if (panels) return panels;
        pe_level_masses(at->tilt, value, error, rest, at->removed, masses);
        for (size_t part = 0; part < 8; part++) out[part * n + i] = masses[part];
    }
    return 0;
}
