/* Integrals with errors at thresholds on lines that Python has prepared (docs/theory/line.md, Lemmas 4 and 5;
 * laplace.md), and from them masses and profiles of one order of a composition of any kinds.  Interface in kinds.h;
 * called by pyengine/engines/vertical_lines. */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "answers.h"
#include "doubles.h"
#include "functions.h"
#include "kinds.h"

static const double UNIT = DBL_EPSILON / 2;
static const double SLACK = 1.0 + 1e-9; /* factor outwards, for the rounding of bounds */
static const double LARGEST_EXPONENT = 600.0; /* bounds with larger exponents are infinite */
static const double FARTHEST = 0.999e8; /* largest angle for which the lanes of pe_trig_sums are used */
/* bound of an integral in units of its scale e^(K - tilt c) (Lemma 2) */
static const double CHERNOFF = 1.0 + 1e-6;
static const double FUNCTION = 4.0; /* error of an exponential, in units of 2^-53 */
static const double SUBNORMAL = 2e-317; /* absolute rounding of a sum below the normal range */

static double larger_exp(double x) {
    return x < LARGEST_EXPONENT ? pe_d_exp(x) : INFINITY;
}

/* K(tilt) - tilt c, the log of the scale, and a bound of its error */
static double scale_at(const pe_loss_line *at, double c, double *error) {
    const double log = pe_less_product(at->log_mean, at->tilt, c);
    const double size = fabs(at->log_mean.h) + fabs(at->tilt * c);
    *error = at->log_error + at->exponent_unit * size + at->log_unit * fabs(log);
    return log;
}

void pe_loss_line_scale(const pe_loss_line *at, size_t n, const double *c, double *log, double *error) {
    for (size_t i = 0; i < n; i++) log[i] = scale_at(at, c[i], error + i);
}

/* Sets the distances of the places (where the rays begin) from a threshold; returns the number of panels that the
 * nearest one needs. */
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

/* The part of the aliases that poles between the line and the side tilts add (Lemma 4), or a bound of its error */
static double residues(const pe_loss_line *at, double c, size_t kernel, int is_error) {
    double sum = 0.0;
    for (int j = 0; j < 2; j++) {
        const pe_line_pole *pole = &at->poles[kernel][j];
        const double moved = pole->apart * c, exponent = pole->constant + moved;
        const double off = pole->known + at->pole_unit * fabs(moved);
        sum +=
            is_error ? larger_exp(exponent) * off : pole->sign * pe_d_exp(fmin(exponent, LARGEST_EXPONENT));
    }
    return sum;
}

/* The integrals over the scale: trapezoidal sum, minus residues, plus the rays and atoms beyond the turn */
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

/* Bound over the scale of the aliases apart from the residues, or of the remainder of quadrature rules, by the side
 * tilts */
static double aliases(const pe_loss_line *at, double c) {
    double log_error, sum = 0.0;
    const double log = scale_at(at, c, &log_error);
    for (int i = 0; i < 2; i++) {
        const pe_line_side *side = &at->sides[i];
        sum += larger_exp(side->log_mean - side->tilt * c - log + log_error + side->fall) / side->over;
    }
    return sum;
}

/* Bounds of the errors of sums_at */
static void errors_at(const pe_loss_line *at, double c, int64_t panels, const double *x, size_t first,
                      size_t kinds, double *out) {
    const double z = fabs(pe_less_product(at->centre, 1.0, c)), left = aliases(at, c);
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
            /* with an error above 1 only Chernoff's bound is left: the value lies between 0 and the scale */
            const int of_b = first + k == 1 || (first + k == 2 && form == PE_SCALED_OF_B),
                      is_open = form != PE_RELATIVE && !(off[k] <= 1.0);
            const double exponent = of_b ? log + c[i] : log;
            const double scale = form == PE_RELATIVE ? 1.0 : pe_d_exp(fmin(exponent, LARGEST_EXPONENT));
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

/* ---- one order on its lines ------------------------------------------------------------------------------ */

enum { MASSES = 4 };

/* Memory for the distances of places from a threshold, shared by the lines of one order. */
typedef struct {
    double *place;
    size_t size;
} places;

static int grow(places *room, const pe_loss_line *at) {
    const size_t size = at->turn ? at->turn->places : 0;
    if (size <= room->size) return PE_OK;
    free(room->place);
    room->size = 0;
    room->place = malloc(size * sizeof *room->place);
    if (!room->place) return PE_NO_MEMORY;
    room->size = size;
    return PE_OK;
}

/* Integrals of some kernels at a threshold by line `index`, which is made if needed; *line becomes NULL if the line does
 * not serve.  `error` may be NULL. */
static int integrals(const pe_line_law *law, size_t index, double c, places *room, size_t first, size_t kinds,
                     int form, const pe_loss_line **line, double *value, double *error) {
    int status = law->line[index] ? PE_OK : law->make(law->order, index, 0);
    for (int64_t panels = 1; panels && !status;) {
        const pe_loss_line *at = *line = law->line[index];
        if (!at->size) {
            *line = NULL;
            return PE_OK;
        }
        status = grow(room, at);
        if (status) break;
        panels = pe_loss_line_at(at, room->place, 1, &c, first, kinds, form, value, error);
        if (panels) status = law->make(law->order, index, panels);
    }
    return status;
}

/* The line that serves masses at a loss, by bisection */
static size_t line_for(const pe_line_law *law, double c) {
    size_t index = 0, last = law->lines - 1;
    while (index < last) {
        const size_t middle = (index + last) / 2;
        if (law->limit[middle] < c) index = middle + 1;
        else last = middle;
    }
    return index;
}

/* The line with the smallest error for profiles; `at_hand` is preferred if its error is at most e^SPARED times as
 * large. */
static size_t line_for_profile(const pe_line_law *law, double c, size_t at_hand) {
    static const double SPARED = 3.0;
    size_t best = 0;
    double least = INFINITY;
    for (size_t i = 0; i < law->lines; i++) {
        const double own = law->log_weight[i] - c * law->tilt[i], cost = i == at_hand ? own - SPARED : own;
        if (!(cost < least)) continue;
        least = cost;
        best = i;
    }
    return best;
}

static int is_inside(const pe_line_law *law, double c) {
    return isfinite(c) && (!law->is_bounded || (c >= nextafter(law->ends[0], -INFINITY) &&
                                                c <= nextafter(law->ends[1], INFINITY)));
}

/* A's masses above and below a threshold and bounds of their errors, then B's, in the order of the line's own law */
static int masses_at(const pe_line_law *law, double c, places *room, double *out) {
    const pe_loss_line *line = NULL;
    double value[2], error[2];
    for (size_t k = 0; k < 2 * MASSES; k++) out[k] = 1.0; /* values and errors of 1 if no line serves */
    if (is_inside(law, c)) {
        const int status = integrals(law, line_for(law, c), c, room, 0, 2, PE_SCALED, &line, value, error);
        if (!status && line) pe_level_masses(line->tilt, value, error, law->rest, line->removed, out);
        return status;
    }
    for (size_t of = 0; of < 2; of++) {
        double *part = out + 4 * of;
        if (c < law->ends[0] || c > law->ends[1]) {
            part[0] = c < law->ends[0] ? law->rest[of] : 0.0;
            part[1] = law->rest[of] - part[0];
            part[2] = part[3] = law->rest[of + 2];
        }
        part[2] += law->removed[of];
        part[3] += law->removed[of];
    }
    return PE_OK;
}

int pe_line_law_masses(const pe_line_law *law, size_t n, const double *c, double *out) {
    places room = {NULL, 0};
    int status = PE_OK;
    for (size_t i = 0; i < n && !status; i++) {
        double found[2 * MASSES];
        status = masses_at(law, law->exchanged ? -c[i] : c[i], &room, found);
        for (size_t k = 0; k < MASSES; k++) {
            const size_t part = law->exchanged ? MASSES - 1 - k : k, at = 4 * (part / 2) + part % 2;
            const double alone = k == 1 || k == 2 ? law->alone[k - 1] : 0.0;
            const double mass = alone ? found[at] + alone : found[at];
            out[2 * k * n + i] = mass;
            out[(2 * k + 1) * n + i] = alone ? found[at + 2] + 4.0 * UNIT * mass : found[at + 2];
        }
    }
    free(room.place);
    return status;
}

int pe_line_law_tails(void *law, size_t n, const double *c, double *tails) {
    const pe_line_law *of = law;
    double *masses = malloc((2 * MASSES + 1) * (n + 1) * sizeof *masses), *shift = masses + 2 * MASSES * n;
    if (!masses) return PE_NO_MEMORY;
    const int status = pe_line_law_masses(of, n, c, masses);
    for (size_t i = 0; i < n; i++) shift[i] = fmax(of->shift[0] * (fabs(c[i]) + of->shift[1]), of->shift[2]);
    if (!status) pe_level_tails(n, masses, shift, tails);
    free(masses);
    return status;
}

int pe_line_law_roughly(void *given, double threshold, double *masses) {
    const pe_line_law *law = given;
    const double c = law->exchanged ? -threshold : threshold;
    const int is_outside = law->is_bounded && !(c >= law->ends[0] && c <= law->ends[1]);
    const pe_loss_line *line = NULL;
    double value[2] = {0.0, 0.0}, found[MASSES];
    places room = {NULL, 0};
    const int status =
        is_outside ? PE_OK : integrals(law, line_for(law, c), c, &room, 0, 2, PE_SCALED, &line, value, NULL);
    free(room.place);
    for (size_t k = 0; k < MASSES; k++) masses[k] = 1.0;
    if (status || !(is_outside || line)) return status;
    for (size_t of = 0; of < 2; of++) {
        const double rest = law->rest[of];
        const int below = is_outside ? c < law->ends[0] : !(line->tilt > (double)of);
        const double mass = below ? -value[of] : value[of], positive = 0.0 > mass ? 0.0 : mass;
        found[2 * of + (size_t)below] = rest < positive ? rest : positive;
        found[2 * of + (size_t)!below] = rest - found[2 * of + (size_t)below];
    }
    for (size_t k = 0; k < MASSES; k++) masses[k] = found[law->exchanged ? MASSES - 1 - k : k];
    masses[1] += law->alone[0];
    masses[2] += law->alone[1];
    return PE_OK;
}

/* ---- profiles ---- */

/* e^epsilon, capped */
static double grown(double epsilon) {
    return pe_d_exp(fmin(epsilon, LARGEST_EXPONENT));
}

/* Mass of finite losses of the first law minus e^epsilon times that of the second one */
static double difference(const pe_line_law *law, double epsilon) {
    const double first = law->rest[law->exchanged], second = law->rest[!law->exchanged];
    const double own = -pe_d_expm1(epsilon) * first;
    return first == second ? own : own + grown(epsilon) * (first - second);
}

/* Bound of its error where either law has mass that the other lacks */
static double off_difference(const pe_line_law *law, double epsilon) {
    const double first = law->rest[law->exchanged], second = law->rest[!law->exchanged];
    const double factor = grown(epsilon), less = pe_d_expm1(fmin(epsilon, LARGEST_EXPONENT));
    const double apart = fabs(less) * first + factor * fabs(first - second);
    return UNIT * (1.01 * (first + factor * (first + second)) + (FUNCTION + 4.0) * apart);
}

/* Upper bound of e^epsilon; 1 - difference if both masses are 1 */
static double at_least(const pe_line_law *law, double epsilon, double less) {
    return law->is_whole ? 1.0 - less : SLACK * grown(epsilon);
}

/* What turns the integral on a line into the profile (Lemma 1): 0, the first law's mass, or the difference of masses */
static double pole_of(const pe_line_law *law, double tilt, double epsilon) {
    if (law->exchanged ? tilt >= 1.0 : tilt <= 0.0) return 0.0;
    return 0.0 < tilt && tilt < 1.0 ? law->rest[law->exchanged] : difference(law, epsilon);
}

static int form_of(const pe_line_law *law) {
    return law->exchanged ? PE_SCALED_OF_B : PE_SCALED;
}

/* The profile at an epsilon inside of the support, with its error and the removed mass; unchanged if no line serves */
static int profile_inside(const pe_line_law *law, double epsilon, double c, places *room, double *value,
                          double *error, double *lost) {
    const pe_loss_line *line = NULL;
    const int of_b = law->exchanged;
    double found, off;
    const int status =
        integrals(law, line_for_profile(law, c, SIZE_MAX), c, room, 2, 1, form_of(law), &line, &found, &off);
    if (status || !line) return status;
    const double tilt = line->tilt, pole = pole_of(law, tilt, epsilon), all = found + pole;
    const int has_pole = of_b ? tilt < 1.0 : tilt > 0.0, is_one = 0.0 < tilt && tilt < 1.0;
    *value = all < 0.0 ? 0.0 : all > 1.0 ? 1.0 : all;
    *error = off * SLACK + (FUNCTION + 2.0) * UNIT * fabs(pole);
    if (has_pole && !law->is_whole) *error += is_one ? UNIT : off_difference(law, epsilon);
    *lost = line->removed[of_b];
    /* the pole's part takes the second law for whole: e^epsilon times its removed mass */
    if (of_b ? tilt <= 0.0 : tilt >= 1.0) *error += at_least(law, epsilon, pole) * line->removed[!of_b];
    return status;
}

int pe_line_law_profile(const pe_line_law *law, size_t n, const double *epsilon, double *value,
                        double *error) {
    places room = {NULL, 0};
    const int of_b = law->exchanged;
    const double alone = law->alone[0];
    int status = PE_OK;
    for (size_t i = 0; i < n && !status; i++) {
        const double c = of_b ? epsilon[i] : -epsilon[i];
        const int above = c > law->ends[1], below = c < law->ends[0];
        const int inside = is_inside(law, c), whole = of_b ? below : above;
        double found = 0.0, off = 1.0, lost = law->removed[of_b];
        if (inside) status = profile_inside(law, epsilon[i], c, &room, &found, &off, &lost);
        else if (whole) {
            found = difference(law, epsilon[i]);
            off = 4.0 * UNIT + at_least(law, epsilon[i], found) * law->removed[!of_b];
            if (!law->is_whole) off += off_difference(law, epsilon[i]);
        } else if (above || below) off = 0.0;
        off = (isnan(off) ? 1.0 : off) + (inside || whole ? SUBNORMAL : 0.0) + lost;
        value[i] = alone ? found + alone : found;
        error[i] = alone ? off + 4.0 * UNIT * value[i] : off;
    }
    free(room.place);
    return status;
}

int pe_line_law_profile_about(const pe_line_law *law, double near, double epsilon, double *out) {
    const int of_b = law->exchanged;
    const double c = of_b ? epsilon : -epsilon;
    const int below = c < law->ends[0];
    if (law->is_bounded && !(c >= law->ends[0] && c <= law->ends[1])) {
        *out = law->alone[0] + (below == of_b ? difference(law, epsilon) : 0.0);
        return PE_OK;
    }
    const size_t at_hand = line_for_profile(law, of_b ? near : -near, SIZE_MAX);
    const pe_loss_line *line = NULL;
    places room = {NULL, 0};
    double value;
    const int status =
        integrals(law, line_for_profile(law, c, at_hand), c, &room, 2, 1, form_of(law), &line, &value, NULL);
    free(room.place);
    *out = status || !line ? 1.0 : law->alone[0] + (value + pole_of(law, line->tilt, epsilon));
    return status;
}

/* ---- expected thresholds ---- */

/* Linear interpolation between rising places, constant beyond them. */
static double interpolated(size_t n, const double *place, const double *value, double x) {
    if (isnan(x)) return x;
    if (x > place[n - 1]) return value[n - 1];
    if (x < place[0]) return value[0];
    size_t first = 0, last = n;
    while (last - first > 1) {
        const size_t middle = (first + last) / 2;
        if (place[middle] <= x) first = middle;
        else last = middle;
    }
    if (first == n - 1 || place[first] == x) return value[first];
    const double slope = (value[first + 1] - value[first]) / (place[first + 1] - place[first]);
    return slope * (x - place[first]) + value[first];
}

void pe_line_law_expected(const pe_line_law *law, size_t n, const double *alpha, double *low, double *high) {
    static const double TINIEST = 1e-300;
    const double sign = law->exchanged ? 1.0 : -1.0, first = law->rest[law->exchanged];
    for (size_t i = 0; i < n; i++) {
        const double of_rest = fmin(alpha[i] / fmax(first, TINIEST), 1.0 - UNIT);
        const double at = sign * pe_ndtri(of_rest);
        low[i] = -sign * interpolated(law->places, law->place, law->loss, at + sign * law->room);
        high[i] = -sign * interpolated(law->places, law->place, law->loss, at - sign * law->room);
    }
}
