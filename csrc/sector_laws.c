/* Builds laws on panels: of one step (a sampled Gaussian, a group, or a likelihood ratio), and of the sum of two
 * independent losses, with the bounds beyond their ends: docs/theory/sector_laws.md.  Interface in laws.h; called by
 * pyengine/engines/sector.py and certified_epochs.py.  Where laws end is a choice. */

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "arithmetic.h"
#include "doubles.h"
#include "functions.h"
#include "sector.h"
#include "sector_group.h"

static const double MOST_WORK = 6e7; /* nodes of all sums that lead to a law, some seconds */
static const double LOG_2 = 0.69314718055994530942;
static const double HIGHEST = 6.5, LOWEST = -200.0; /* range of w: of losses, */
static const double HIGHEST_RATIO = 200.0,
                    HIGHEST_LOSS = 250.0; /* of ratios, and of losses of epochs, below 2^8 */
static const double FALLEN = 40.0; /* nats by which F falls from the first edge to the start of the cells */
enum { MOST_DROPPED = 4 }; /* last panels that are dropped if they cannot be proven */
static const double LOST = 4e-15; /* share of a sum that may be missing at the ends of its panels */

void pe_sector_free(pe_sector *a) {
    if (!a) return;
    free(a->edge);
    free(a->whole);
    free(a->coef);
    free(a->rounding);
    free(a->off);
    free(a->checked);
    free(a->kept);
    pe_sector_free_cells(&a->cells);
    free(a);
}

size_t pe_sector_bytes(const pe_sector *a) {
    return sizeof *a + a->room * (PE_SECTOR_TERMS + 5) * sizeof(double) + 2 * a->cells.n * sizeof(double) +
           (a->cells.most ? a->cells.blocks * 20 * sizeof(double) : 0) +
           (a->kept ? 6 * (a->n + 1) * sizeof *a->kept : 0);
}

double pe_sector_error(const pe_sector *a) {
    return a->error;
}

size_t pe_sector_panels(const pe_sector *a) {
    return a->n;
}

double pe_sector_work(const pe_sector *a) {
    return a->work;
}

double pe_sector_reach(const pe_sector *a) {
    return a->farthest;
}

void pe_sector_ends(const pe_sector *a, double *ends) {
    for (int i = 0; i < 2; i++) {
        const double w = i ? pe_sector_high(a) : pe_sector_low(a);
        ends[i] = a->floor + (a->kinds.are_ratios ? w : pe_d_exp(w));
    }
}

/* w rounded to a multiple of PE_SECTOR_EDGE */
static double round_to_edge(double w) {
    return nearbyint(w / PE_SECTOR_EDGE) * PE_SECTOR_EDGE;
}

/* Makes cells of about a tenth of kappa^-1/2. */
static int make_cells(pe_sector *c) {
    const double to =
        fmax(c->farthest, pe_sector_high(c) + 4.0 / sqrt(pe_sector_growth(&c->kinds, pe_sector_high(c))));
    const double wide = 0.1 / sqrt(pe_sector_growth(&c->kinds, c->edge[0]));
    const double narrow = 0.3 / sqrt(pe_sector_growth(&c->kinds, pe_sector_high(c)));
    return pe_sector_make_cells(&c->cells, &c->kinds, pe_power_of_two(fmin(wide, narrow)), c->start, to);
}

/* Sets the start of the cells, at or left of the first edge, where the slope of Lemma 4 is positive and F is
 * negligible; at least `least_start`.  Losses of few steps fall from the first edge on. */
static int set_start(pe_sector *c, double least_start) {
    c->start = c->edge[0];
    c->low_slope = pe_sector_slope(&c->kinds, c->start);
    if (c->kinds.are_ratios || !(c->low_slope > 0.0)) {
        /* the slope of ratios is linear in w; that of losses nearly so */
        const double rate =
            c->kinds.are_ratios ? 2.0 * pe_sector_growth(&c->kinds, 0.0) : pe_sector_rates(&c->kinds);
        const double least = sqrt(rate);
        if (c->low_slope < least) c->start -= (least - c->low_slope) / rate;
        c->start = fmax(c->start - FALLEN / fmax(c->low_slope, least), least_start);
        c->start = fmin(round_to_edge(c->start) + PE_SECTOR_EDGE, c->edge[0]);
        c->low_slope = pe_sector_slope(&c->kinds, c->start);
    }
    return c->low_slope > 0.0 ? PE_OK : PE_TOO_COSTLY;
}

/* Bounds the probabilities under A and B below the first edge, by cells and the slope left of them. */
static void set_below(pe_sector *c) {
    const pe_sector_cells *t = &c->cells;
    const double low = c->edge[0];
    for (int of_b = 0; of_b < 2; of_b++) {
        double all = t->top[0] - pe_d_log(c->low_slope) + (of_b ? pe_sector_loss(c, c->start) : 0.0);
        for (size_t i = 0; i < t->n && t->from + (double)i * t->width < low; i++) {
            const double right = fmin(t->from + (double)(i + 1) * t->width, low);
            all = pe_log_add(all, t->top[i] + pe_d_log(t->width) + (of_b ? pe_sector_loss(c, right) : 0.0));
        }
        c->below[of_b] = all + 1e-9;
    }
}

/* ---- one step ------------------------------------------------------------------------------------------ */

typedef struct {
    int is_ratio;
    pe_dd shift, offset; /* mu, and b = mu^2/2 - log(p/(1 - p)), or mu^2/2 for a ratio */
    const pe_group *group; /* NULL for one record */
} one_step;

/* t = mu z at a loss, and the log of e^s/(dt/ds), which is log(e^s - 1) for one record. */
static pe_group_root root_of(const one_step *s, pe_dd log_em1) {
    if (s->group) return pe_group_solve(s->group, log_em1);
    return (pe_group_root){.t = pe_dd_add(log_em1, s->offset),
                           .log_slope = log_em1,
                           .size = {fabs(log_em1.h), fabs(s->offset.h)}};
}

/* log F_1(w) with a bound of its error (Lemma 1). */
static pe_dd one_density(const one_step *s, double w, double *error) {
    const pe_dd at = pe_dd_of(w), y = s->is_ratio ? pe_dd_of(0.0) : pe_dd_exp(at);
    const pe_group_root root = root_of(s, s->is_ratio ? at : pe_dd_log_expm1(at, y));
    const pe_dd z = pe_dd_div(root.t, s->shift), log_shift = pe_dd_log(s->shift);
    const pe_dd bell = pe_dd_add(pe_dd_add(pe_dd_scale(pe_dd_square(z), 0.5), PE_HALF_LOG_2PI), log_shift);
    const pe_dd value = pe_dd_sub(pe_dd_add_d(pe_dd_sub(y, root.log_slope), w), bell);
    const double slope = fabs(z.h / s->shift.h) + (s->group ? 1.0 + (double)s->group->size : 1.0);
    const double size = fabs(w) + root.size[0] + root.size[1] + y.h + 1.0 + fabs(log_shift.h);
    *error = 16.0 * PE_WIDE_UNIT * (slope * size + z.h * z.h);
    return value;
}

static void step_density(void *context, size_t n, const double *w, double *value, double *rest,
                         double *error) {
    for (size_t i = 0; i < n; i++) {
        const pe_dd own = one_density(context, w[i], error + i);
        value[i] = own.h;
        rest[i] = own.l;
    }
}

/* w of the loss at z */
static double w_of(const one_step *s, double z) {
    const double t = s->shift.h * z;
    const double log_em1 =
        s->group ? pe_group_log_em1(s->group, t) : pe_dd_sub(pe_dd_mul_d(s->shift, z), s->offset).h;
    if (s->is_ratio || log_em1 < -30.0) return log_em1;
    return log_em1 > 700.0 ? pe_d_log(log_em1) : pe_d_log(pe_d_log1p(pe_d_exp(log_em1)));
}

static double log_tail(double z) {
    return pe_log_ndtr(-z);
}

/* log of an upper bound of the probability under B above z. */
static double group_tail(const pe_group *g, double z, double mu) {
    double all = -INFINITY;
    for (size_t k = 0; k <= g->size; k++)
        all = pe_log_add(all, g->log_weight[k] + log_tail(z - (double)k * mu));
    return all + 1e-9;
}

/* Upper end of one step's panels.  Each of the convolutions of a power may trim its sum by PE_SECTOR_LOST/sqrt(kappa),
 * so the panels start far enough out that w survives. */
static double end_before_trims(double steps, const pe_sector_kinds *k, double w) {
    for (double rest = 1.0; rest < steps; rest *= 2.0) {
        pe_sector_kinds part = *k;
        part.number[0] = floor(steps / rest);
        w += 2.0 * PE_SECTOR_LOST / sqrt(pe_sector_growth(&part, w));
    }
    return w;
}

/* Estimate of the w above which the sum of all steps has a probability below e^deepest: k large losses, of one record
 * or of j records in a batch, and all small ones. */
static double farthest_of(const one_step *s, double probability, double steps, double deepest, double high) {
    const size_t size = s->group ? s->group->size : 1;
    const double mu = s->shift.h, mean = steps * probability * (double)size;
    const double spread = sqrt(pe_d_expm1(mu * mu) / steps), reach = sqrt(-2.0 * deepest);
    const double small = mean / (1.0 - probability) * (1.0 + fmin(reach * spread, 4.0));
    double large = pe_d_exp(high);
    for (double k = 1.0; k <= fmin(steps, 300.0); k++) {
        const double rarity = pe_d_log_gamma(k + 1.0) - k * pe_d_log(mean),
                     rest = 0.6 * -deepest - fmax(rarity, 0.0);
        if (rest <= 0.0) continue;
        large = fmax(large, k * (0.5 * mu * mu + pe_d_log(probability)) + mu * sqrt(2.0 * k * rest));
        for (size_t j = 2; j <= size; j++) {
            const double shift = mu * (double)j, weight = s->group->log_weight[j];
            large = fmax(large, k * (0.5 * shift * shift + weight) + shift * sqrt(2.0 * k * rest));
        }
    }
    return pe_d_log(large + small);
}

/* The same for a sum of ratios. */
static double farthest_ratio(const one_step *s, double steps, double deepest, double high) {
    const double mu = s->shift.h, spread = sqrt(pe_d_expm1(mu * mu) / steps);
    double large = pe_d_exp(high);
    for (double k = 2.0; k <= fmin(steps, 300.0); k++) {
        const double rest = -deepest - fmax(pe_d_log_gamma(k + 1.0) - k * pe_d_log(steps), 0.0);
        if (rest > 0.0) large = fmax(large, k * pe_d_exp(mu * (mu + sqrt(2.0 * rest / k)) - 0.5 * mu * mu));
    }
    return pe_d_log(large + steps * (1.0 + fmin(sqrt(-2.0 * deepest) * spread, 4.0)));
}

/* Makes the law of one step of any kind: panels from `low` on, cells, proof, and probabilities beyond the ends. */
static int make_step(pe_sector *c, one_step *s, double probability, double low, double high) {
    c->kinds.are_ratios = s->is_ratio;
    c->edge = malloc(sizeof(double) * 2);
    if (!c->edge) return PE_NO_MEMORY;
    c->edge[0] = low;
    if (!s->is_ratio && !(pe_sector_slope(&c->kinds, low) > 0.0))
        return PE_TOO_COSTLY; /* F must fall to the left */
    int status =
        pe_sector_fill(c, step_density, s, high + PE_SECTOR_LOST / sqrt(pe_sector_growth(&c->kinds, high)));
    if (status) return status;
    high = pe_sector_high(c);
    if ((status = set_start(c, LOWEST)) || (status = make_cells(c))) return status;
    for (size_t i = 0, first = pe_sector_cell(&c->cells, low); i < first;
         i++) { /* largest at the right end */
        const double right = c->cells.from + (double)(i + 1) * c->cells.width;
        double error;
        c->cells.top[i] = one_density(s, right, &error).h + error + 1e-8;
    }
    pe_sector_fill_cells(c);
    /* beyond the last panel F_1 falls if L p > mu^2 there ("Ends" in the docs) */
    const double y = pe_d_exp(high), mu = s->shift.h;
    const pe_dd at = pe_dd_of(high), log_em1 = s->is_ratio ? at : pe_dd_log_expm1(at, pe_dd_exp(at));
    const double z = pe_dd_div(root_of(s, log_em1).t, s->shift).h;
    const double least = fmax(1.0, s->group ? y / (double)s->group->size : y); /* lower bound of p there */
    if (!(s->is_ratio ? z > 1e-9 : z * least / mu > 1.0 + 1e-9)) return PE_TOO_COSTLY;
    for (size_t i = pe_sector_cell(&c->cells, high) + 1; i < c->cells.n; i++)
        c->cells.top[i] = pe_sector_value(c, c->n - 1, high, 0.0) + 1e-8;
    c->cells.top[c->cells.n] = pe_sector_value(c, c->n - 1, high, 0.0) + 1e-8;
    if ((status = pe_sector_index_cells(&c->cells)) || (status = pe_sector_prove(c))) return status;
    set_below(c);
    const double z_less = z - 1e-9 * (1.0 + fabs(z));
    const double of_a = log_tail(z_less), of_shifted = log_tail(z_less - mu);
    c->tail[0] = of_a + 1e-9 * fabs(of_a);
    if (s->group) c->tail[1] = group_tail(s->group, z_less, mu);
    else
        c->tail[1] = s->is_ratio
                         ? of_shifted
                         : pe_log_add(pe_d_log1p(-probability) + of_a, pe_d_log(probability) + of_shifted);
    c->tail[1] += 1e-9 * fabs(c->tail[1]);
    return PE_OK;
}

static void set_kind(pe_sector *c, const one_step *s) {
    c->kinds.n = 1;
    c->kinds.are_ratios = s->is_ratio;
    c->kinds.number[0] = 1.0;
    c->kinds.rate[0] = pe_dd_div(pe_dd_of(1.0), pe_dd_square(s->shift)).h * (1.0 + 4.0 * DBL_EPSILON);
    c->kinds.offset[0] = s->offset.h + 4.0 * DBL_EPSILON * fabs(s->offset.h);
}

int pe_sector_step(const double *shift, const double *ratio, const double *floor_parts, double probability,
                   double deepest, double rarest, double steps, double reach, pe_sector **out) {
    pe_sector *c = calloc(1, sizeof *c);
    *out = c;
    if (!c) return PE_NO_MEMORY;
    one_step s = {.shift = pe_two_sum(shift[0], shift[1])};
    s.offset = pe_dd_sub(pe_dd_scale(pe_dd_square(s.shift), 0.5), pe_dd_log(pe_two_sum(ratio[0], ratio[1])));
    set_kind(c, &s);
    c->floor = floor_parts[0];
    c->floor_low = floor_parts[1];
    c->deepest = deepest;
    const double low = round_to_edge(w_of(&s, -sqrt(-2.0 * deepest)));
    const double high = w_of(&s, sqrt(-2.0 * rarest) + s.shift.h);
    c->farthest = end_before_trims(steps, &c->kinds, farthest_of(&s, probability, steps, rarest, high));
    c->farthest = fmax(c->farthest, reach);
    if (c->farthest > HIGHEST || low < LOWEST) return PE_TOO_COSTLY;
    return make_step(c, &s, probability, low, round_to_edge(end_before_trims(steps, &c->kinds, high)));
}

int pe_sector_group(const double *shift, size_t size, const double *ratios, const double *floor_parts,
                    double deepest, double rarest, double steps, double reach, pe_sector **out) {
    pe_sector *c = calloc(1, sizeof *c);
    *out = c;
    if (!c) return PE_NO_MEMORY;
    pe_group group;
    one_step s = {.shift = pe_two_sum(shift[0], shift[1]), .group = &group};
    int status = pe_group_make(&group, s.shift, size, ratios, floor_parts);
    if (status) return status;
    s.offset = pe_dd_neg(group.log_a[0]);
    set_kind(c, &s);
    if ((status = pe_group_growth(&group, c->kinds.bent[0].over, &c->kinds.bent[0].base))) return status;
    c->kinds.turned = PE_GROUP_TURNED;
    c->floor = floor_parts[0];
    c->floor_low = floor_parts[1];
    c->deepest = deepest;
    const double mu = s.shift.h, rate = ratios[0] / ((double)size + ratios[0]);
    double far = 0.0; /* largest z, over the numbers of records in the batch, that is as likely as e^rarest */
    for (size_t k = 1; k <= size; k++)
        far = fmax(far, (double)k * mu + sqrt(fmax(2.0 * (group.log_weight[k] - rarest), 0.0)));
    const double low = round_to_edge(w_of(&s, -sqrt(-2.0 * deepest))), high = w_of(&s, far);
    c->farthest = end_before_trims(steps, &c->kinds, farthest_of(&s, rate, steps, rarest, high));
    c->farthest = fmax(c->farthest, reach);
    if (c->farthest > HIGHEST || low < LOWEST) return PE_TOO_COSTLY;
    return make_step(c, &s, rate, low, round_to_edge(end_before_trims(steps, &c->kinds, high)));
}

int pe_sector_ratio(const double *shift, double deepest, double steps, pe_sector **out) {
    pe_sector *c = calloc(1, sizeof *c);
    *out = c;
    if (!c) return PE_NO_MEMORY;
    one_step s = {.is_ratio = 1, .shift = pe_two_sum(shift[0], shift[1])};
    s.offset = pe_dd_scale(pe_dd_square(s.shift), 0.5);
    set_kind(c, &s);
    c->deepest = deepest;
    const double reach = sqrt(-2.0 * deepest);
    const double low = round_to_edge(w_of(&s, -reach));
    const double high = w_of(&s, reach + s.shift.h);
    c->farthest = end_before_trims(steps, &c->kinds, farthest_ratio(&s, steps, deepest, high));
    if (c->farthest > HIGHEST_RATIO || low < LOWEST) return PE_TOO_COSTLY;
    return make_step(c, &s, 1.0, low, round_to_edge(end_before_trims(steps, &c->kinds, high)));
}

/* ---- the sum of two ------------------------------------------------------------------------------------ */

typedef struct {
    pe_sector_sums sums;
    const pe_sector *a, *b;
} two_laws;

static void sum_density(void *context, size_t n, const double *w, double *value, double *rest,
                        double *error) {
    two_laws *t = context;
    pe_sector_sums_at(&t->sums, t->a, t->b, n, w, value, rest, error);
}

static int is_same(const pe_sector_kinds *a, size_t i, const pe_sector_kinds *b, size_t j) {
    const double *one = a->bent[i].over, *other = b->bent[j].over;
    return a->rate[i] == b->rate[j] && a->offset[i] == b->offset[j] && a->bent[i].base == b->bent[j].base &&
           one[0] == other[0] && one[1] == other[1] && one[2] == other[2];
}

/* The kinds of a sum of losses, or of ratios: those of both parts. */
static int joined_kinds(const pe_sector_kinds *a, const pe_sector_kinds *b, pe_sector_kinds *c) {
    *c = *a;
    c->turned = fmin(a->turned, b->turned);
    if (a->are_ratios != b->are_ratios || a->are_means || b->are_means) return PE_TOO_COSTLY;
    for (size_t i = 0; i < b->n; i++) {
        size_t j = 0;
        while (j < c->n && !is_same(c, j, b, i)) j++;
        if (j == PE_SECTOR_KINDS) return PE_TOO_COSTLY;
        if (j == c->n) {
            c->rate[j] = b->rate[i];
            c->offset[j] = b->offset[i];
            c->bent[j] = b->bent[i];
            c->number[j] = 0.0;
            c->n++;
        }
        c->number[j] += b->number[i];
    }
    return PE_OK;
}

/* The kind of a sum of losses of epochs (Theorem 8): kappa_c = kappa_a kappa_b/(kappa_a + kappa_b), and the slope at 0
 * as the mean of those of both parts with weights kappa_b and kappa_a. */
static void added_kinds(const pe_sector_kinds *a, const pe_sector_kinds *b, double shift,
                        pe_sector_kinds *c) {
    const pe_sector_kinds *part[] = {a, b};
    double rate[2], fall[2]; /* log F has at least the slope -(rate w + fall) */
    for (int i = 0; i < 2; i++) {
        rate[i] = pe_sector_rates(part[i]);
        fall[i] = -pe_sector_slope(part[i], 0.0);
    }
    const double both = rate[0] + rate[1], of_a = rate[1] / both, of_b = rate[0] / both;
    *c = (pe_sector_kinds){.are_ratios = 1, .are_means = 1, .n = 1};
    c->number[0] = 1.0;
    c->rate[0] = rate[0] * of_a; /* rounding is allowed for in pe_sector_slope and pe_sector_growth */
    c->offset[0] = (of_a * fall[0] + of_b * fall[1]) / c->rate[0];
    c->offset[0] += 1e-8 * fabs(c->offset[0]) - shift;
}

static double mode_of(const pe_sector *a) {
    size_t best = 0;
    for (size_t i = 1; i < a->cells.n; i++)
        if (a->cells.top[i] > a->cells.top[best]) best = i;
    return a->cells.from + ((double)best + 0.5) * a->cells.width;
}

/* Whether the law may reach down to w: its density is above `deepest`, and little of the sum is missing there. */
static int is_within(two_laws *t, const pe_sector *c, double w) {
    double error;
    const double value = pe_sector_sum(&t->sums, t->a, t->b, round_to_edge(w), &error);
    return value > c->deepest && t->sums.lost < LOST;
}

/* w of the sum of parts at w = of_a and of_b */
static double sum_of(const two_laws *t, double of_a, double of_b) {
    return t->sums.of_losses ? (of_a + of_b) + t->sums.shift : pe_d_log(pe_d_exp(of_a) + pe_d_exp(of_b));
}

static double centre_of(const two_laws *t) {
    return sum_of(t, mode_of(t->a), mode_of(t->b));
}

/* *end becomes the largest w, about, up to it, at which less than LOST is missing because both parts end. */
static int find_high(two_laws *t, double *end) {
    double in = fmin(centre_of(t), *end), error;
    double out = fmin(*end, sum_of(t, pe_sector_high(t->a), pe_sector_high(t->b)));
    for (int i = 0; i < 16 && out > in; i++) {
        const double middle = i ? 0.5 * (in + out) : out;
        pe_sector_sum(&t->sums, t->a, t->b, round_to_edge(middle), &error);
        if (t->sums.status) return t->sums.status;
        if (t->sums.lost < LOST) in = middle;
        else out = middle;
    }
    *end = in;
    return PE_OK;
}

/* Sets the first edge, left of the bulk, by is_within, and the start of the cells. */
static int find_low(two_laws *t, pe_sector *c, double high) {
    double out = t->sums.of_losses ? sum_of(t, pe_sector_low(t->a), pe_sector_low(t->b))
                                   : fmax(pe_sector_low(t->a), pe_sector_low(t->b));
    double in = fmin(centre_of(t), high);
    for (int i = 0; !is_within(t, c, in); i++) {
        if (t->sums.status) return t->sums.status;
        if (i == 20) return PE_TOO_COSTLY;
        in -= 0.05 * (in - out);
    }
    for (int i = 0; i < 40 && in - out > 0.02 / sqrt(pe_sector_growth(&c->kinds, in)); i++) {
        const double middle = 0.5 * (in + out);
        if (is_within(t, c, middle)) in = middle;
        else out = middle;
        if (t->sums.status) return t->sums.status;
    }
    c->edge = malloc(2 * sizeof(double));
    if (!c->edge) return PE_NO_MEMORY;
    c->edge[0] = round_to_edge(in);
    if (c->kinds.are_ratios && c->edge[0] < LOWEST) return PE_TOO_COSTLY;
    return set_start(c, sum_of(t, pe_sector_start(t->a), pe_sector_start(t->b)));
}

/* Logs of bounds of the probabilities, under A or B: mass[i] in cell i (left of it too for i = 0), tail[i] from its
 * left end on. */
static void tails_of(const pe_sector *a, int of_b, double *mass, double *tail) {
    const pe_sector_cells *t = &a->cells;
    const double high = pe_sector_high(a);
    double all = a->tail[of_b];
    for (size_t i = t->n; i-- > 0;) {
        const double left = t->from + (double)i * t->width, right = left + t->width;
        mass[i] = -INFINITY;
        if (left < high) {
            const double end = fmin(right, high);
            mass[i] =
                t->top[i] + pe_d_log(t->width) + (of_b ? pe_sector_loss(a, end) + a->floor + 1e-9 : 1e-9);
        }
        all = pe_log_add(all, mass[i]);
        tail[i] = all;
    }
    const double low = pe_sector_start(a);
    const double less =
        t->top[0] - pe_d_log(a->low_slope) + (of_b ? pe_sector_loss(a, low) + a->floor + 1e-9 : 1e-9);
    mass[0] = pe_log_add(mass[0], less);
}

/* log of a bound of the probability that the sum is above w, each part under A or B: one part alone is above it, or both
 * together, by cells of one and tails of the other. */
static double sum_tail(const pe_sector *a, int of_b_a, const pe_sector *b, int of_b_b, double w,
                       int of_losses, double *room) {
    double *mass_a = room, *tail_a = mass_a + a->cells.n, *mass_b = tail_a + a->cells.n,
           *tail_b = mass_b + b->cells.n;
    tails_of(a, of_b_a, mass_a, tail_a);
    if (a == b && of_b_a == of_b_b) tail_b = tail_a;
    else tails_of(b, of_b_b, mass_b, tail_b);
    double all = of_losses
                     ? pe_log_add(a->tail[of_b_a], b->tail[of_b_b])
                     : pe_log_add(tail_a[pe_sector_cell(&a->cells, w)], tail_b[pe_sector_cell(&b->cells, w)]);
    for (size_t i = 0; i < a->cells.n; i++) {
        if (!(mass_a[i] > -INFINITY)) continue;
        const double right = a->cells.from + (double)(i + 1) * a->cells.width;
        double rest = right < w ? w + pe_d_log(-pe_d_expm1(right - w)) - 1e-9 * (1.0 + fabs(w)) : -INFINITY;
        if (of_losses) rest = w - right - 1e-9 * (1.0 + fabs(w));
        const double beyond = rest > b->cells.from ? tail_b[pe_sector_cell(&b->cells, rest)] : 0.0;
        all = pe_log_add(all, mass_a[i] + fmin(beyond, 0.0));
    }
    return fmin(all + 1e-6, 0.0);
}

static double number_of(const pe_sector *a) {
    double sum = 0.0;
    for (size_t i = 0; i < a->kinds.n; i++) sum += a->kinds.number[i];
    return sum;
}

/* The same of the whole under A or B: under B all losses have B's law, but of ratios only one, which is in either
 * part. */
static double whole_tail(const two_laws *t, int of_b, double w, double *room) {
    const pe_sector *a = t->a, *b = t->b;
    const int of_losses = t->sums.of_losses;
    if (of_losses || !of_b || !a->kinds.are_ratios)
        return sum_tail(a, of_b, b, of_b, w - t->sums.shift, of_losses, room);
    const double of_a = number_of(a), of_other = number_of(b), both = pe_d_log(of_a + of_other);
    const double in_a = sum_tail(a, 1, b, 0, w, 0, room), in_b = sum_tail(a, 0, b, 1, w, 0, room);
    return fmin(pe_log_add(pe_d_log(of_a) - both + in_a, pe_d_log(of_other) - both + in_b) + 1e-9, 0.0);
}

/* Bounds the probabilities above the last panel: by cells up to `end`, by whole_tail beyond. */
static int find_tails(two_laws *t, pe_sector *c, double end) {
    const pe_sector *a = t->a, *b = t->b;
    double *room = malloc(2 * (a->cells.n + b->cells.n) * sizeof(double));
    if (!room) return PE_NO_MEMORY;
    for (int of_b = 0; of_b < 2; of_b++) {
        double all = whole_tail(t, of_b, end, room);
        const pe_sector_cells *cells = &c->cells;
        const size_t last = pe_sector_cell(cells, end);
        for (size_t i = pe_sector_cell(cells, pe_sector_high(c)); i <= last; i++) {
            const double right = cells->from + (double)(i + 1) * cells->width;
            all = pe_log_add(all, cells->top[i] + pe_d_log(cells->width) +
                                      (of_b ? pe_sector_loss(c, right) + c->floor : 0.0));
        }
        c->tail[of_b] = fmin(all + 1e-6, 0.0);
    }
    free(room);
    return PE_OK;
}

/* log of a bound of F from w on: one part is at least half of the sum, and the density of the other integrates to 1. */
static double half_bound(const two_laws *t, double w) {
    if (t->sums.of_losses) { /* one part is above its share `own` or `other` of w */
        w -= t->sums.shift;
        const double own = 0.5 * (w + mode_of(t->a) - mode_of(t->b)), other = w - own;
        const double more = pe_sector_top(&t->a->cells, own - 1e-9 * (1.0 + fabs(own)), INFINITY);
        return pe_log_add(more, pe_sector_top(&t->b->cells, other - 1e-9 * (1.0 + fabs(other)), INFINITY)) +
               1e-9;
    }
    const double half = w - LOG_2 - 1e-9;
    const double of_a = pe_sector_top(&t->a->cells, half, INFINITY);
    return pe_log_add(of_a, pe_sector_top(&t->b->cells, half, INFINITY)) + LOG_2 + 1e-9;
}

/* Bounds the cells below the first edge by pe_sector_sum_bound, of losses several at a time, more of them further
 * away. */
static void fill_below(two_laws *t, pe_sector *c) {
    enum { FINE = 8 };
    pe_sector_cells *cells = &c->cells;
    size_t end = pe_sector_cell(cells, c->edge[0]) + 1;
    const size_t all = end;
    while (end > 0) {
        const size_t together = c->kinds.are_ratios ? 1 : 1 + (all - end) / FINE;
        const size_t first = end > together ? end - together : 0;
        const double left = cells->from + (double)first * cells->width;
        const double right = cells->from + (double)end * cells->width;
        if (left < c->edge[0]) {
            const double bound = pe_sector_sum_bound(&t->sums, t->a, t->b, left, right);
            for (size_t i = first; i < end; i++) cells->top[i] = fmax(cells->top[i], bound);
        }
        end = first;
    }
}

/* Bounds the cells from the high end on, several at a time, and all beyond them. */
static void fill_beyond(two_laws *t, pe_sector *c) {
    enum { TOGETHER = 8, FINE = 32 };
    const pe_sector *a = t->a, *b = t->b;
    pe_sector_cells *cells = &c->cells;
    const size_t first = pe_sector_cell(cells, pe_sector_high(c));
    size_t last;
    for (size_t i = first; i < cells->n; i = last) {
        /* cells one by one for ratios, as the sums made of this law need close bounds next to its end */
        last = i + (c->kinds.are_ratios ? 1 : TOGETHER) + (i - first) / FINE;
        last = last < cells->n ? last : cells->n;
        const double left = cells->from + (double)i * cells->width;
        const double right = cells->from + (double)last * cells->width;
        double bound = half_bound(t, left);
        bound = fmin(bound, pe_sector_sum_bound(&t->sums, a, b, left, right));
        for (size_t j = i; j < last; j++) {
            const int is_beyond = cells->from + (double)j * cells->width > pe_sector_high(c);
            cells->top[j] = is_beyond ? bound : fmax(cells->top[j], bound);
        }
    }
    cells->top[cells->n] = half_bound(t, cells->end);
}

/* Bounds all cells and proves the panels. */
static int prove_panels(two_laws *t, pe_sector *c) {
    int status = make_cells(c);
    if (status) return status;
    pe_sector_fill_cells(c);
    if (c->start < c->edge[0]) fill_below(t, c);
    fill_beyond(t, c);
    if (t->sums.status) return t->sums.status;
    for (size_t i = 0; i < c->cells.n; i++)
        if (c->cells.top[i] > 1e300) return PE_TOO_COSTLY;
    return (status = pe_sector_index_cells(&c->cells)) ? status : pe_sector_prove(c);
}

static int make_sum(two_laws *t, pe_sector *c) {
    const pe_sector *a = t->a, *b = t->b;
    const int of_losses = t->sums.of_losses;
    c->farthest =
        of_losses ? fmin(sum_of(t, a->farthest, b->farthest), HIGHEST_LOSS) : fmin(a->farthest, b->farthest);
    double end = c->farthest;
    int status = PE_OK;
    if (of_losses) added_kinds(&a->kinds, &b->kinds, t->sums.shift, &c->kinds);
    else status = joined_kinds(&a->kinds, &b->kinds, &c->kinds);
    if (!status && c->kinds.are_ratios && !of_losses) {
        const pe_dd log_number =
            pe_dd_log(pe_dd_of(number_of(c))); /* the loss is that of the mean of the ratios */
        c->floor = -log_number.h;
        c->floor_low = -log_number.l;
        c->floor_size = log_number.h;
    }
    if (!status) status = find_high(t, &end);
    if (!status) status = find_low(t, c, end);
    if (!status) status = pe_sector_fill(c, sum_density, t, end);
    if (t->sums.status) return t->sums.status;
    if (status) return status;
    /* bounds beyond the last panel are coarse, so that the ellipses about it may be too: then it is dropped */
    status = prove_panels(t, c);
    for (int i = 0; i < MOST_DROPPED && status == PE_TOO_COSTLY && c->n > 1; i++) {
        c->n--;
        pe_sector_free_cells(&c->cells);
        status = prove_panels(t, c);
    }
    if (status) return status;
    set_below(c);
    return find_tails(t, c, end);
}

static int new_sum(const pe_sector *a, const pe_sector *b, int of_losses, pe_sector_pieces *pieces,
                   pe_sector **out) {
    pe_sector *c = calloc(1, sizeof *c);
    *out = c;
    if (!c) return PE_NO_MEMORY;
    const double sum = a->floor + b->floor, back = sum - a->floor;
    const double lost = (a->floor - (sum - back)) + (b->floor - back); /* exact, Knuth */
    const double low_part = lost + (a->floor_low + b->floor_low);
    c->floor = sum + low_part;
    c->floor_low = low_part - (c->floor - sum);
    c->deepest = fmax(a->deepest, b->deepest);
    c->floor_size = a->floor_size + b->floor_size;
    two_laws t = {.a = a, .b = b};
    t.sums.of_losses = of_losses;
    if (of_losses) { /* moves the floor into w, exactly, so that it is near 0 */
        t.sums.shift = round_to_edge(c->floor);
        c->floor -= t.sums.shift;
    }
    pe_sector_pieces_trim(pieces);
    t.sums.pieces = pieces;
    /* a power and its factor have most of their work in common */
    t.sums.budget =
        MOST_WORK - (a->kinds.are_ratios ? fmax(a->work, b->work) : a->work + (a == b ? 0.0 : b->work));
    const int status = make_sum(&t, c);
    c->work = MOST_WORK - t.sums.budget + t.sums.work;
    return status;
}

int pe_sector_convolve(const pe_sector *a, const pe_sector *b, pe_sector_pieces *pieces, pe_sector **out) {
    return new_sum(a, b, 0, pieces, out);
}

int pe_sector_compose(const pe_sector *a, const pe_sector *b, pe_sector_pieces *pieces, pe_sector **out) {
    *out = NULL;
    return a->kinds.are_ratios && b->kinds.are_ratios ? new_sum(a, b, 1, pieces, out) : PE_TOO_COSTLY;
}
