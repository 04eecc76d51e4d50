#include "ladder.h"

#include "certified.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vecmath.h"

/* Which contour serves which question: rungs at fixed steps of the signed root of the loss's
 * saddle-point exponent, so that a result depends on the pair and the argument alone, never on what
 * was asked before. */

static const double REACH = 40.0;      /* a normal tail is below 1e-348 there */
static const double COARSE_H = 0.4;    /* node spacing of the coarse grids, at most */
static const double HALF_PITCH = 1.25; /* edges are this far apart in the signed root */

/* Level 0 keeps the whole law.  The others serve values down to a log-probability and remove the
 * z that carry less than e^-41 of it: where one large step is likelier than many small ones, the
 * exponential tilt would otherwise meet a mode far out that has no probability. */
static const double LEVELS[] = {-INFINITY, -8.0, -20.0, -40.0, -80.0, -160.0, -320.0, -770.0};
enum { N_LEVELS = sizeof LEVELS / sizeof *LEVELS };
static const double CUT = 41.0;
static const double GOOD = 6e-12;       /* relative error that needs no second attempt, */
static const double GOOD_TINY = 6e-10;  /* the same where the value is below e^-69 */
static const double NEAR_LEVEL = 3.0;   /* logs that an approximation of a value may be off */
static const double ENOUGH = 1e2;       /* times these, of a proven row */
static const double NEAR_CENTRE = -7.0; /* log of a tail whose complement loses few digits */
static const double FIRST_COST = 0.05;  /* share of the cost limit spent on the whole law */

/* A kind of step that is one of several pairs of mixtures. */
typedef struct {
    double steps;
    size_t alternatives;
    double log_share[PE_ALTERNATIVES];
    pe_mixtures law[PE_ALTERNATIVES];
    double *block; /* shifts and weights */
} mixed_step;

/* A kind of step that is known by a table. */
typedef struct {
    double steps;
    pe_table table;
    double *block; /* losses and weights */
} listed_step;

struct pe_pair {
    size_t n;
    double *noise, *p, *steps;
    size_t n_mixed, n_listed;
    mixed_step *mixed;
    listed_step *listed;
    int reversed;
    double cost_limit;
    pe_ladder *levels[N_LEVELS];
};

int pe_pair_new(size_t n, const double *noise, const double *p, const double *steps, int reversed,
                double cost_limit, pe_pair **out) {
    pe_pair *pair = calloc(1, sizeof *pair);
    *out = pair;
    if (!pair) return PE_NO_MEMORY;
    pair->noise = malloc((3 * n + 1) * sizeof(double));
    if (!pair->noise) return PE_NO_MEMORY;
    pair->n = n;
    pair->p = pair->noise + n;
    pair->steps = pair->p + n;
    memcpy(pair->noise, noise, n * sizeof(double));
    memcpy(pair->p, p, n * sizeof(double));
    memcpy(pair->steps, steps, n * sizeof(double));
    pair->reversed = reversed;
    pair->cost_limit = cost_limit;
    return PE_OK;
}

int pe_pair_add_mixtures(pe_pair *pair, double steps, size_t alternatives, const double *log_share,
                         const size_t *sizes, const double *shift, const double *weight) {
    if (!alternatives || alternatives > PE_ALTERNATIVES) return PE_TOO_COSTLY;
    size_t total = 0;
    for (size_t i = 0; i < 2 * alternatives; i++) total += sizes[i];
    mixed_step *grown = realloc(pair->mixed, (pair->n_mixed + 1) * sizeof *grown);
    if (!grown) return PE_NO_MEMORY;
    pair->mixed = grown;
    mixed_step *step = &grown[pair->n_mixed];
    step->steps = steps;
    step->alternatives = alternatives;
    step->block = malloc((2 * total + 1) * sizeof(double));
    if (!step->block) return PE_NO_MEMORY;
    pair->n_mixed++;
    memcpy(step->block, shift, total * sizeof(double));
    memcpy(step->block + total, weight, total * sizeof(double));
    const double *at = step->block;
    for (size_t i = 0; i < alternatives; i++) {
        step->log_share[i] = log_share[i];
        pe_normals *sides[] = {&step->law[i].a, &step->law[i].b};
        for (int side = 0; side < 2; side++) {
            sides[side]->n = sizes[2 * i + (size_t)side];
            sides[side]->shift = at;
            sides[side]->weight = at + total;
            at += sides[side]->n;
        }
    }
    return PE_OK;
}

int pe_pair_add_table(pe_pair *pair, double steps, size_t m, const double *loss, const double *log_weight,
                      double t_max) {
    if (!m) return PE_TOO_COSTLY;
    listed_step *grown = realloc(pair->listed, (pair->n_listed + 1) * sizeof *grown);
    if (!grown) return PE_NO_MEMORY;
    pair->listed = grown;
    double *block = malloc(2 * m * sizeof(double));
    if (!block) return PE_NO_MEMORY;
    memcpy(block, loss, m * sizeof(double));
    memcpy(block + m, log_weight, m * sizeof(double));
    grown[pair->n_listed++] = (listed_step){steps, {m, block, block + m, t_max}, block};
    return PE_OK;
}

/* Steps without proofs: of mixtures and of tables. */
static size_t unproven(const pe_pair *pair) {
    return pair->n_mixed + pair->n_listed;
}

enum {
    PROVEN_RUNGS = 4 * (2 * PE_RUNGS + 1),
    PROVEN_LINES = PE_REACHES * (PROVEN_RUNGS + 2 * PE_NEAR),
};

static pe_certified *proven_line(const pe_proven *proven, int i) {
    return i < PE_REACHES * PROVEN_RUNGS ? (&proven->rung[0][0][0])[i]
                                         : (&proven->near[0][0][0])[i - PE_REACHES * PROVEN_RUNGS];
}

static void proven_free(pe_proven *proven) {
    for (int i = 0; proven && i < PROVEN_LINES; i++) pe_certified_free(proven_line(proven, i));
    free(proven);
}

static size_t proven_bytes(const pe_proven *proven) {
    size_t total = proven ? sizeof *proven : 0;
    for (int i = 0; proven && i < PROVEN_LINES; i++) {
        const pe_certified *line = proven_line(proven, i);
        if (line) total += pe_certified_bytes(line);
    }
    return total;
}

static void ladder_free(pe_ladder *ladder) {
    if (!ladder) return;
    for (size_t i = 0; i < ladder->n_groups; i++) pe_nodes_free(&ladder->groups[i].grid);
    free(ladder->groups);
    for (size_t i = 0; i < sizeof ladder->edges / sizeof *ladder->edges; i++) free(ladder->edges[i]);
    for (int s = 0; s < 4; s++)
        for (int i = 0; i <= 2 * PE_RUNGS; i++) {
            pe_line_free(ladder->lines[s][i]);
        }
    proven_free(ladder->proven);
    free(ladder);
}

void pe_pair_free(pe_pair *pair) {
    if (!pair) return;
    for (int i = 0; i < N_LEVELS; i++) ladder_free(pair->levels[i]);
    for (size_t i = 0; i < pair->n_mixed; i++) free(pair->mixed[i].block);
    for (size_t i = 0; i < pair->n_listed; i++) free(pair->listed[i].block);
    free(pair->mixed);
    free(pair->listed);
    free(pair->noise);
    free(pair);
}

static size_t ladder_bytes(const pe_ladder *ladder) {
    size_t total = sizeof *ladder;
    for (size_t i = 0; i < ladder->n_groups; i++)
        total += sizeof *ladder->groups + 5 * ladder->groups[i].grid.m * sizeof(double);
    for (size_t i = 0; i < sizeof ladder->edges / sizeof *ladder->edges; i++)
        if (ladder->edges[i]) total += sizeof **ladder->edges;
    for (int s = 0; s < 4; s++)
        for (int i = 0; i <= 2 * PE_RUNGS; i++) {
            const pe_line *ln = ladder->lines[s][i];
            if (ln) total += sizeof *ln + (ln->weights ? 8 * ln->nt * sizeof(double) : 0);
        }
    total += proven_bytes(ladder->proven);
    return total;
}

size_t pe_pair_bytes(const pe_pair *pair) {
    size_t total = sizeof *pair + 3 * pair->n * sizeof(double) + pair->n_mixed * sizeof(mixed_step);
    for (size_t i = 0; i < pair->n_listed; i++)
        total += sizeof(listed_step) + 2 * pair->listed[i].table.m * sizeof(double);
    for (int i = 0; i < N_LEVELS; i++)
        if (pair->levels[i]) total += ladder_bytes(pair->levels[i]);
    return total;
}

/* The x with Phi(-x) <= exp(log_mass), from Phi(-x) <= exp(-x^2/2)/2. */
static double normal_reach(double log_mass) {
    return sqrt(fmax(0.0, -2.0 * (log_mass + 0.69)));
}

/* What a ladder removes of the ends of a group's z. */
typedef struct {
    int whole;       /* nothing */
    double log_mass; /* log of the probability that each end may lose */
} removal;

/* Narrow enough that the tilt e^{lambda l} does not outgrow the taper before its end; what is removed
 * grows with its width. */
static double taper_of(pe_group *g, double range, double *wider) {
    g->taper_s = fmin(0.5, 0.05 / range);
    *wider = sqrt(1.0 + 0.5 * g->taper_s * g->taper_s);
    return g->taper_s;
}

static void set_window(pe_span *w, const removal *removed, double s, double range, double low, double high) {
    w->h = COARSE_H * fmin(fmax(1.0 / range, 0.25), 1.0);
    if (!removed->whole) w->h = fmin(w->h, 0.5 * s);
    w->m = (size_t)((high - low) / w->h) + 1;
    w->z0 = high - w->h * (double)(w->m - 1);
}

static void sampled_group(pe_group *g, const removal *removed, pe_span *w) {
    double mu = g->mu, wider, s = taper_of(g, mu, &wider), each = removed->log_mass;
    double end = wider * fmax(normal_reach(each), mu + normal_reach(each - log(g->p)));
    g->taper_z = removed->whole ? INFINITY : end;
    g->taper_low = -INFINITY;
    set_window(w, removed, s, mu, -REACH, removed->whole ? REACH + mu : end + 8.0 * s);
}

static void mixed_group(pe_group *g, const removal *removed, pe_span *w) {
    const pe_normals *sides[] = {&g->law->a, &g->law->b};
    double low = INFINITY, high = -INFINITY, first = INFINITY, last = -INFINITY, wider;
    for (int i = 0; i < 2; i++) {
        first = fmin(first, sides[i]->shift[0]);
        last = fmax(last, sides[i]->shift[sides[i]->n - 1]);
    }
    double s = taper_of(g, last - first, &wider);
    for (int i = 0; i < 2; i++)
        for (size_t j = 0; j < sides[i]->n; j++) {
            double each = removed->log_mass - g->log_share - log(sides[i]->weight[j]);
            double reach = wider * normal_reach(each);
            low = fmin(low, sides[i]->shift[j] - reach);
            high = fmax(high, sides[i]->shift[j] + reach);
        }
    g->taper_z = removed->whole ? INFINITY : high;
    g->taper_low = removed->whole ? -INFINITY : low;
    set_window(w, removed, s, last - first, removed->whole ? first - REACH : low - 8.0 * s,
               removed->whole ? last + REACH : high + 8.0 * s);
}

/* The coarse grid of a leading group whose alternatives are set. */
static int add_grid(pe_ladder *ladder, pe_group *g, const removal *removed) {
    pe_span windows[PE_ALTERNATIVES];
    for (size_t i = 0; i < g->alternatives; i++)
        if (g[i].table) windows[i] = (pe_span){0.0, 1.0, g[i].table->m};
        else if (g[i].law) mixed_group(&g[i], removed, &windows[i]);
        else sampled_group(&g[i], removed, &windows[i]);
    if (pe_nodes_new(&g->grid, g, windows)) return PE_NO_MEMORY;
    for (size_t i = 0; i < g->alternatives; i++) g[i].part = pe_nodes_part(&g->grid, windows, i);
    ladder->n_groups += g->alternatives;
    return PE_OK;
}

static int ladder_new(const pe_pair *pair, int level, pe_ladder **out) {
    pe_ladder *ladder = calloc(1, sizeof *ladder);
    *out = ladder;
    if (!ladder) return PE_NO_MEMORY;
    size_t most = pair->n + PE_ALTERNATIVES * pair->n_mixed + pair->n_listed;
    ladder->groups = calloc(most + 1, sizeof *ladder->groups);
    if (!ladder->groups) return PE_NO_MEMORY;
    int whole = level == 0;
    ladder->cost_limit = pair->cost_limit * (double)(pair->n + unproven(pair)) * (whole ? FIRST_COST : 1.0);
    ladder->reversed = pair->reversed;
    ladder->both_ends = unproven(pair) > 0;
    double total = 1.0, log_mass = LEVELS[level] - CUT;
    for (size_t i = 0; i < pair->n; i++) total += pair->steps[i];
    for (size_t i = 0; i < pair->n_mixed; i++) total += pair->mixed[i].steps;
    for (size_t i = 0; i < pair->n_listed; i++) total += pair->listed[i].steps;
    removal removed = {whole, log_mass - log(total)};
    ladder->log_cut = log_mass + log(2.0); /* both parts of the mixture lose their share */
    if (ladder->both_ends) ladder->log_cut += log(2.0);
    for (size_t i = 0; i < pair->n; i++) {
        double mu = 1.0 / pair->noise[i];
        if (pair->p[i] == 1.0) {
            ladder->gaussian_variance += pair->steps[i] * mu * mu;
            continue;
        }
        pe_group *g = &ladder->groups[ladder->n_groups];
        g->noise = pair->noise[i];
        g->mu = mu;
        g->p = pair->p[i];
        g->n = pair->steps[i];
        g->reversed = pair->reversed;
        g->alternatives = 1;
        int status = add_grid(ladder, g, &removed);
        if (status) return status;
    }
    for (size_t i = 0; i < pair->n_mixed; i++) {
        const mixed_step *step = &pair->mixed[i];
        pe_group *g = &ladder->groups[ladder->n_groups];
        for (size_t j = 0; j < step->alternatives; j++) {
            g[j].n = step->steps;
            g[j].law = &step->law[j];
            g[j].log_share = step->log_share[j];
            g[j].alternatives = step->alternatives - j;
        }
        int status = add_grid(ladder, g, &removed);
        if (status) return status;
    }
    for (size_t i = 0; i < pair->n_listed; i++) {
        pe_group *g = &ladder->groups[ladder->n_groups];
        g->n = pair->listed[i].steps;
        g->table = &pair->listed[i].table;
        g->alternatives = 1;
        int status = add_grid(ladder, g, &removed);
        if (status) return status;
    }
    return PE_OK;
}

static int get_ladder(pe_pair *pair, int level, pe_ladder **out) {
    if (!pair->levels[level]) {
        pe_ladder *fresh;
        int status = ladder_new(pair, level, &fresh);
        if (status) {
            ladder_free(fresh);
            return status;
        }
        pair->levels[level] = fresh;
    }
    *out = pair->levels[level];
    return PE_OK;
}

pe_cumulants pe_ladder_cumulants(const pe_ladder *ladder, double lambda) {
    double v = ladder->gaussian_variance;
    pe_cumulants k = {0.5 * v * lambda * (lambda - 1.0), v * (lambda - 0.5), v};
    for (size_t i = 0; i < ladder->n_groups; i += ladder->groups[i].alternatives)
        pe_nodes_cumulants(&ladder->groups[i].grid, ladder->groups[i].n, lambda, &k);
    return k;
}

/* w(lambda) = sign(lambda) sqrt(2 (lambda K' - K)), increasing; A(S > K') is about Phi(-w). */
static double signed_root(double lambda, const pe_cumulants *k) {
    double kl = lambda * k->k1 - k->k0;
    return copysign(sqrt(2.0 * (kl > 0.0 ? kl : 0.0)), lambda);
}

/* exp(x^2/2) Phi(-x): the factor that turns a Chernoff bound into an approximation. */
static double mills(double x) {
    if (x < 25.0) return exp(0.5 * x * x) * 0.5 * erfc(x * 0.70710678118654752440);
    double y = 1.0 / (x * x);
    return 0.39894228040143267794 / x * (1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)));
}

/* Saddle-point approximation of the log of a functional at c = K'(lambda); it places the first
 * contour and enters no result. */
static double approximation(const pe_edge *e, int functional) {
    double l = e->lambda, s = e->sd, base = e->k.k0 - l * e->k.k1;
    double small = base + log(mills(fabs(l) * s));
    if (functional == PE_A_ABOVE) return l >= 0 ? small : log1p(-exp(small));
    if (functional == PE_A_BELOW) return l <= 0 ? small : log1p(-exp(small));
    double a = fmax(-l, 0.05 / s);
    return fmin(base + log(mills(a * s) - mills((a + 1) * s) + 1e-300), -1e-17);
}

/* Edge i: the lambda with w(lambda) = i HALF_PITCH, to two digits; even edges are rungs. */
static const pe_edge *edge(pe_ladder *ladder, int i) {
    pe_edge **slot = &ladder->edges[i + 2 * PE_RUNGS + 1];
    if (*slot) return *slot;
    pe_edge *e = malloc(sizeof *e);
    if (!e) {
        ladder->no_memory = 1; /* searches for a rung end there */
        return NULL;
    }
    double target = fabs(HALF_PITCH * i), sign = i < 0 ? -1.0 : 1.0, lo = 0.0, hi = INFINITY;
    pe_cumulants k = pe_ladder_cumulants(ladder, 0.0);
    double a = target / sqrt(k.k2);
    const pe_edge *inner = i ? ladder->edges[i - (int)sign + 2 * PE_RUNGS + 1] : NULL;
    if (inner) a = fabs(inner->lambda) + HALF_PITCH / inner->sd;
    for (int it = 0; i && it < 200; it++) {
        k = pe_ladder_cumulants(ladder, sign * a);
        double w = fabs(signed_root(sign * a, &k));
        if (fabs(w - target) <= 0.02) break;
        if (w < target) lo = a;
        else hi = a;
        if (hi <= lo * (1.0 + 1e-12)) break; /* the window ends the range of w */
        double next = fmin(a + (target - w) * w / (a * k.k2), 4.0 * a);
        if (!(next > lo && next < hi)) next = hi < INFINITY ? (lo > 0 ? sqrt(lo * hi) : 0.25 * hi) : 2.0 * a;
        a = next;
    }
    e->lambda = sign * a;
    e->k = k;
    e->sd = sqrt(k.k2);
    for (int f = 0; f < PE_FUNCTIONALS; f++) e->approximation[f] = approximation(e, f);
    *slot = e;
    return e;
}

static int increasing(int functional) {
    return functional != PE_A_ABOVE;
}

/* The abscissa of a rung, moved at least 1/sd away from the poles 0 and 1, to the side on which
 * the functional is the small one; a profile is not to be had beyond 1. */
static double clear_of_poles(double lambda, double sd, int functional, int *moved) {
    double gap = 1.0 / sd;
    int to_right = functional == PE_A_ABOVE, inner = gap < 0.4; /* is there room between the poles? */
    *moved = 1;
    if (functional == PE_PROFILE && lambda > 1.0 - gap) return inner ? 1.0 - gap : -gap;
    *moved = 0;
    if (lambda <= -gap || lambda >= 1.0 + gap || (inner && lambda >= gap && lambda <= 1.0 - gap))
        return lambda;
    *moved = 1;
    if (!inner) return to_right ? 1.0 + gap : -gap;
    if (lambda < gap) return to_right ? gap : -gap;
    return to_right ? 1.0 + gap : 1.0 - gap;
}

static int rung_line(pe_ladder *ladder, int rung, int functional, pe_line **out) {
    const pe_edge *e = edge(ladder, 2 * rung);
    if (!e) return PE_NO_MEMORY;
    int moved;
    double lambda = clear_of_poles(e->lambda, e->sd, functional, &moved);
    int variant = !moved ? 0 : functional == PE_PROFILE ? 1 : functional == PE_A_ABOVE ? 2 : 3;
    pe_line **slot = &ladder->lines[variant][rung + PE_RUNGS];
    if (!*slot) {
        pe_line *ln = calloc(1, sizeof *ln);
        if (!ln) return PE_NO_MEMORY;
        ln->lambda = lambda;
        ln->status = pe_line_build(ladder, ln);
        if (ln->status == PE_NO_MEMORY) {
            pe_line_free(ln);
            return PE_NO_MEMORY;
        }
        *slot = ln;
    }
    *out = *slot;
    return (*slot)->status;
}

/* How far from its mean a line serves thresholds. */
static double spread_to(double distance, double sd, int *reach) {
    double spread = 3.0 * sd;
    for (*reach = 0; *reach < PE_REACHES - 1 && distance > spread; ++*reach) spread *= 8.0;
    return spread;
}

static int kept_certified(const pe_ladder *ladder, double lambda, double spread, pe_certified **slot,
                          pe_certified **out) {
    if (!*slot) {
        pe_certified *line = calloc(1, sizeof *line);
        if (!line) return PE_NO_MEMORY;
        line->line.lambda = lambda;
        line->status = pe_certified_build(ladder, spread, line);
        if (line->status == PE_NO_MEMORY) {
            pe_certified_free(line);
            return PE_NO_MEMORY;
        }
        *slot = line;
    }
    *out = *slot;
    return (*slot)->status;
}

/* The line with proven errors at a rung's abscissa, whose aliases are small at c. */
static int rung_certified(pe_ladder *ladder, int rung, int functional, double c, pe_certified **out) {
    const pe_edge *e = edge(ladder, 2 * rung);
    if (!e) return PE_NO_MEMORY;
    int moved;
    double lambda = clear_of_poles(e->lambda, e->sd, functional, &moved);
    int variant = !moved ? 0 : functional == PE_PROFILE ? 1 : functional == PE_A_ABOVE ? 2 : 3;
    int reach;
    double spread = spread_to(fabs(c - e->k.k1), e->sd, &reach);
    return kept_certified(ladder, lambda, spread, &ladder->proven->rung[reach][variant][rung + PE_RUNGS],
                          out);
}

/* The line 4^-(i+1) standard deviations beside the pole 0, or 1, on the side where the functional is small:
 * it loses some digits to the pole, and sees little of a mode far out. */
static int near_certified(pe_ladder *ladder, int i, int functional, double c, pe_certified **out) {
    int to_right = functional == PE_A_ABOVE;
    double gap = ldexp(1.0, -2 * i - 2) / sqrt(pe_ladder_cumulants(ladder, 0.0).k2);
    double lambda = to_right ? 1.0 + gap : -gap;
    pe_cumulants k = pe_ladder_cumulants(ladder, lambda);
    int reach;
    double spread = spread_to(fabs(c - k.k1), sqrt(k.k2), &reach);
    return kept_certified(ladder, lambda, spread, &ladder->proven->near[reach][to_right][i], out);
}

/* The rung whose saddle point is nearest to c. */
static int rung_of_c(pe_ladder *ladder, double c, int rung) {
    const pe_edge *e;
    while (rung < PE_RUNGS && (e = edge(ladder, 2 * rung + 1)) && c > e->k.k1) rung++;
    while (rung > -PE_RUNGS && (e = edge(ladder, 2 * rung - 1)) && c < e->k.k1) rung--;
    return rung;
}

static int rung_of_value(pe_ladder *ladder, int functional, double log_target) {
    double up = increasing(functional) ? 1.0 : -1.0;
    int rung = 0;
    const pe_edge *e;
    while (rung < PE_RUNGS && (e = edge(ladder, 2 * rung + 1)) &&
           up * (e->approximation[functional] - log_target) < 0.0 &&
           !(functional == PE_PROFILE && e->k.k1 > 0.0)) /* profiles are asked at c <= 0 */
        rung++;
    while (rung > -PE_RUNGS && (e = edge(ladder, 2 * rung - 1)) &&
           up * (e->approximation[functional] - log_target) > 0.0)
        rung--;
    return rung;
}

/* Log values and slopes on PE_TABLE points around a rung. */
static int fill_table(pe_ladder *ladder, int rung, pe_line *ln) {
    const pe_edge *left = edge(ladder, 2 * rung - 1), *right = edge(ladder, 2 * rung + 1);
    if (!left || !right) return PE_NO_MEMORY;
    double width = right->k.k1 - left->k.k1;
    ln->table_c = left->k.k1 - 0.4 * width;
    ln->table_step = 1.8 * width / (PE_TABLE - 1);
    for (size_t i = 0; i < PE_TABLE; i += PE_LANES) {
        size_t n = PE_TABLE - i < PE_LANES ? PE_TABLE - i : PE_LANES;
        double c[PE_LANES];
        pe_row rows[PE_LANES];
        for (size_t u = 0; u < n; u++) c[u] = ln->table_c + (double)(i + u) * ln->table_step;
        pe_line_evaluate(ladder, ln, n, c, rows);
        for (size_t u = 0; u < n; u++)
            for (int f = 0; f < PE_FUNCTIONALS; f++) {
                int usable = rows[u].error[f] < 0.1;
                ln->table[f][i + u] = usable ? rows[u].log_value[f] : NAN;
                ln->slope[f][i + u] = pe_row_slope(&rows[u], f, c[u]);
            }
    }
    ln->has_table = 1;
    return PE_OK;
}

/* c from the table by inverse cubic Hermite interpolation; NaN where the table has no bracket. */
static double table_guess(const pe_line *ln, int functional, double log_target) {
    const double *v = ln->table[functional], *d = ln->slope[functional];
    double up = increasing(functional) ? 1.0 : -1.0;
    int lo = 0, hi = PE_TABLE - 1;
    if (!(up * (log_target - v[lo]) >= 0.0 && up * (v[hi] - log_target) >= 0.0)) return NAN;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (!(up * (v[mid] - log_target) > 0.0)) lo = mid;
        else hi = mid;
    }
    double gap = v[hi] - v[lo], t = (log_target - v[lo]) / gap, h = ln->table_step;
    double d0 = gap / d[lo], d1 = gap / d[hi], r = 1.0 - t;
    double c = t * t * (3.0 - 2.0 * t) * h + r * r * t * d0 - t * t * r * d1;
    return ln->table_c + lo * h + c;
}

/* Newton's method on the log of the functional along one line, safeguarded by a bracket; stops
 * where c leaves the neighbourhood that the line serves. */
static double newton(const pe_ladder *ladder, const pe_line *ln, int functional, double log_target,
                     double c) {
    double lo = -INFINITY, hi = INFINITY, up = increasing(functional) ? 1.0 : -1.0;
    double reach = 5.0 * ln->sd, start = c;
    pe_row row;
    for (int it = 0; it < 80; it++) {
        pe_line_evaluate(ladder, ln, 1, &c, &row);
        double miss = log_target - row.log_value[functional];
        if (miss * up > 0.0) lo = c;
        else hi = c;
        double step = miss / pe_row_slope(&row, functional, c);
        if (fabs(step) <= 1e-9 * ln->sd || fabs(step) <= 4e-16 * fabs(c))
            return c + step; /* quadratic convergence: a further step is lost in rounding */
        double next = c + step;
        if (!isfinite(step) || !(next > lo && next < hi))
            next = lo > -INFINITY && hi < INFINITY ? 0.5 * (lo + hi) : c + copysign(0.5 * ln->sd, miss * up);
        if (fabs(next - start) > reach) return start + copysign(reach, next - start);
        c = next;
    }
    return c;
}

/* Thresholds for n <= PE_LANES targets on one line: from the table two steps together; one by one
 * where the table does not help. */
static void roots_on_line(const pe_ladder *ladder, const pe_line *ln, int functional, size_t n,
                          const double *log_target, double *c) {
    pe_row rows[PE_LANES];
    int rough[PE_LANES];
    for (size_t u = 0; u < n; u++) {
        c[u] = table_guess(ln, functional, log_target[u]);
        rough[u] = !isfinite(c[u]);
        if (rough[u]) c[u] = ln->c_ref;
    }
    for (int pass = 0; pass < 2; pass++) {
        pe_line_evaluate(ladder, ln, n, c, rows);
        for (size_t u = 0; u < n; u++) {
            double miss = log_target[u] - rows[u].log_value[functional];
            double step = miss / pe_row_slope(&rows[u], functional, c[u]);
            /* after two steps the rest is below rounding only if the last one was small */
            if (!(fabs(step) <= (pass ? 1e-8 : 1e-2) * ln->sd)) rough[u] = 1;
            if (!rough[u]) c[u] += step;
        }
    }
    for (size_t u = 0; u < n; u++)
        if (rough[u]) c[u] = newton(ladder, ln, functional, log_target[u], ln->c_ref);
}

static void put_row(const pe_row *row, double c, double *out) {
    out[0] = c;
    out[1] = row->density_log;
    memcpy(out + 2, row->log_value, sizeof row->log_value);
    memcpy(out + 2 + PE_FUNCTIONALS, row->error, sizeof row->error);
}

static void fail_row(double *out) {
    for (int q = 0; q < PE_ROW; q++) out[q] = NAN;
}

/* The error that matters to whoever asked for a functional, relative to what is good enough: its
 * own, and for a tail also that of the small one of the two tails under B.  Above 1: try again. */
static double shortfall(const double *row, int functional) {
    const double *value = row + 2, *error = value + PE_FUNCTIONALS;
    double own = error[functional], small = value[functional];
    if (functional != PE_PROFILE) {
        own = own > error[PE_B_ABOVE] || own > error[PE_B_BELOW] ? own
                                                                 : fmin(error[PE_B_ABOVE], error[PE_B_BELOW]);
        small = fmin(small, fmin(value[PE_B_ABOVE], value[PE_B_BELOW]));
    }
    own /= small < -69.0 ? GOOD_TINY : GOOD;
    return own >= 0.0 ? own : INFINITY; /* NaN */
}

/* What is asked at n arguments of one ladder: rows and, where asked by value, thresholds.  The
 * arguments are taken rung by rung, in batches; one whose threshold turns out to belong to another
 * rung is taken there, unless its row is accurate as it is. */
static int ask_ladder(pe_pair *pair, int level, int functional, int by_value, size_t n, const double *x,
                      double *rows) {
    pe_ladder *ladder;
    int status = get_ladder(pair, level, &ladder);
    int *rung = malloc((n + 1) * sizeof(int));
    if (status || !rung) {
        free(rung);
        return PE_NO_MEMORY;
    }
    enum { DONE = PE_RUNGS + 1 };
    for (size_t i = 0; i < n; i++) {
        fail_row(rows + PE_ROW * i);
        rung[i] = by_value ? rung_of_value(ladder, functional, x[i]) : rung_of_c(ladder, x[i], 0);
        if (isnan(x[i])) rung[i] = DONE;
    }
    for (int round = 0; round < 12 && !status; round++)
        for (int r = -PE_RUNGS; r <= PE_RUNGS && !status; r++) {
            size_t i = 0;
            while (i < n && rung[i] != r) i++;
            if (i == n) continue;
            pe_line *ln;
            int built = rung_line(ladder, r, functional, &ln);
            if (built == PE_NO_MEMORY) status = built;
            if (!built && by_value && !ln->has_table) status = fill_table(ladder, r, ln);
            while (i < n && !status) {
                size_t index[PE_LANES], m = 0;
                double target[PE_LANES], c[PE_LANES];
                pe_row out[PE_LANES];
                for (; i < n && m < PE_LANES; i++)
                    if (rung[i] == r) {
                        target[m] = c[m] = x[i];
                        index[m++] = i;
                        rung[i] = DONE;
                    }
                if (built || !m) continue;
                if (by_value) roots_on_line(ladder, ln, functional, m, target, c);
                pe_line_evaluate(ladder, ln, m, c, out);
                for (size_t u = 0; u < m; u++) {
                    /* a root that was not reached is an error of the functional like any other */
                    if (by_value) out[u].error[functional] += fabs(out[u].log_value[functional] - target[u]);
                    put_row(&out[u], c[u], rows + PE_ROW * index[u]);
                    if (!by_value || shortfall(rows + PE_ROW * index[u], functional) <= 0.2) continue;
                    int nearest = rung_of_c(ladder, c[u], r);
                    if (nearest != r && round < 11) rung[index[u]] = nearest;
                }
            }
        }
    free(rung);
    return status;
}

/* Only the upper end of z is cut, unless there are mixtures.  What is small there: the lower tail and the
 * profile of a reversed pair, the upper tail of the other. */
static int guard(const pe_pair *pair, int functional) {
    if (unproven(pair)) return functional;
    if (functional == PE_PROFILE) return pair->reversed ? PE_PROFILE : -1;
    return pair->reversed ? PE_A_BELOW : PE_A_ABOVE;
}

/* Beyond the ladder's end the profile at c <= 0 is known to the last bit: K(lambda) - lambda c bounds
 * the log of A(S <= c) where lambda < 0, and of A(S > c), B(S <= c) and 1 minus the profile where
 * 0 <= lambda <= 1. */
static int beyond_ladder(pe_pair *pair, double c, double *row) {
    pe_ladder *ladder;
    if (!(c <= 0.0) || get_ladder(pair, 0, &ladder)) return 0;
    int rung = rung_of_c(ladder, c, 0);
    if (rung != -PE_RUNGS && rung != PE_RUNGS) return 0;
    const pe_edge *e = edge(ladder, 2 * rung);
    if (!e || e->lambda > 1.0 || !(e->k.k0 - e->lambda * c < -800.0)) return 0;
    row[0] = c;
    row[1] = -INFINITY;
    for (int f = 0; f < PE_FUNCTIONALS; f++) {
        int above = f == PE_A_ABOVE || f == PE_B_ABOVE;
        row[2 + f] = f == PE_PROFILE ? 0.0 : -INFINITY;
        if (rung < 0) row[2 + f] = above ? 0.0 : -INFINITY;
        else if (f == PE_A_BELOW || f == PE_B_ABOVE) row[2 + f] = 0.0;
        row[2 + PE_FUNCTIONALS + f] = 0.0;
    }
    return 1;
}

static int ask(pe_pair *pair, int functional, int by_value, size_t n, const double *x, double *rows) {
    int status = ask_ladder(pair, 0, functional, by_value, n, x, rows);
    int g = guard(pair, functional), worst = status;
    for (size_t i = 0; i < n && status != PE_NO_MEMORY; i++) {
        double *row = rows + PE_ROW * i, other[PE_ROW], best = shortfall(row, functional);
        if (best <= 1.0 || isnan(x[i])) continue;
        if (!by_value && beyond_ladder(pair, x[i], row)) continue;
        if (by_value && functional != PE_PROFILE && x[i] > NEAR_CENTRE) {
            /* the complement is as good a question, and its contour runs on the other side */
            double rest = log1p(-exp(x[i]));
            status =
                ask_ladder(pair, 0, functional == PE_A_ABOVE ? PE_A_BELOW : PE_A_ABOVE, 1, 1, &rest, other);
            if (status == PE_NO_MEMORY) break;
            /* a missed root is an error of the tail that was asked for, not of its complement only:
             * where the complement comes out tiny, its own error says nothing about this one */
            other[2 + PE_FUNCTIONALS + functional] += fabs(other[2 + functional] - x[i]);
            double next = shortfall(other, functional);
            if (next < best) {
                memcpy(row, other, sizeof other);
                best = next;
            }
            if (best <= 1.0) continue;
        }
        int level = 1;
        if (by_value && g == functional)
            while (level < N_LEVELS - 1 && x[i] < LEVELS[level]) level++;
        for (; level < N_LEVELS; level++) {
            status = ask_ladder(pair, level, functional, by_value, 1, &x[i], other);
            if (status == PE_NO_MEMORY) break;
            double next = shortfall(other, functional);
            if (next < best) {
                memcpy(row, other, sizeof other);
                best = next;
            }
            if (by_value || g < 0 || other[2 + g] >= LEVELS[level]) break;
        }
        if (!(row[0] == row[0])) worst = PE_TOO_COSTLY;
    }
    return status == PE_NO_MEMORY ? status : worst;
}

static int ask_all(pe_pair *pair, int functional, int by_value, size_t n, const double *x, double *rows) {
    for (int i = 0; i < N_LEVELS; i++)
        if (pair->levels[i]) pair->levels[i]->no_memory = 0;
    int status = ask(pair, functional, by_value, n, x, rows);
    for (int i = 0; i < N_LEVELS; i++)
        if (pair->levels[i] && pair->levels[i]->no_memory) status = PE_NO_MEMORY;
    return status;
}

int pe_pair_at(pe_pair *pair, int functional, size_t n, const double *c, double *rows) {
    return ask_all(pair, functional, 0, n, c, rows);
}

int pe_pair_solve(pe_pair *pair, int functional, size_t n, const double *log_target, double *rows) {
    return ask_all(pair, functional, 1, n, log_target, rows);
}

/* The row of a proven line, where it is better than what is in `row`. */
static int certify_on(int status, const pe_certified *line, int functional, double c, double *row) {
    if (status) return status;
    pe_row out;
    double found[PE_ROW];
    pe_certified_evaluate(line, 1, &c, &out);
    put_row(&out, c, found);
    if (isnan(row[0]) || shortfall(found, functional) < shortfall(row, functional))
        memcpy(row, found, sizeof found);
    return PE_OK;
}

/* The nearest contour first; then laws without large z, as the estimates take them; then contours nearer to
 * the poles, where a law of few large losses keeps digits enough; at last Chernoff's bounds, which say all where
 * a value is beyond the doubles. */
static int certify_one(pe_pair *pair, int functional, double c, double *row) {
    pe_ladder *ladder;
    int status = get_ladder(pair, 0, &ladder);
    const pe_edge *e = status ? NULL : edge(ladder, 2 * rung_of_c(ladder, c, 0));
    if (!e) return PE_NO_MEMORY;
    /* the first level that serves so small a value, and one more, as an approximation may mislead */
    int first = 1;
    while (first < N_LEVELS - 1 && LEVELS[first] > e->approximation[functional] - NEAR_LEVEL) first++;
    const int levels[] = {0, first, first < N_LEVELS - 1 ? first + 1 : first - 1};
    for (int i = 0; i < 3; i++) {
        pe_ladder *cut;
        pe_certified *line = NULL;
        status = get_ladder(pair, levels[i], &cut);
        if (!status && !cut->proven && !(cut->proven = calloc(1, sizeof *cut->proven))) status = PE_NO_MEMORY;
        if (!status) status = rung_certified(cut, rung_of_c(cut, c, 0), functional, c, &line);
        status = certify_on(status, line, functional, c, row);
        if (status == PE_NO_MEMORY) return status;
        if (shortfall(row, functional) <= ENOUGH) return PE_OK;
    }
    for (int rung = rung_of_c(ladder, c, 0); rung; rung /= 2) {
        pe_certified *line = NULL;
        status = rung_certified(ladder, rung / 2, functional, c, &line);
        status = certify_on(status, line, functional, c, row);
        if (status == PE_NO_MEMORY || shortfall(row, functional) <= ENOUGH) break;
    }
    for (int i = 0; i < PE_NEAR && status != PE_NO_MEMORY; i++) {
        if (shortfall(row, functional) <= ENOUGH) return PE_OK;
        pe_certified *line = NULL;
        status = near_certified(ladder, i, functional, c, &line);
        status = certify_on(status, line, functional, c, row);
    }
    if (status != PE_NO_MEMORY && !(row[2 + PE_FUNCTIONALS + functional] < 1.0)) {
        pe_row bounds;
        pe_certified_chernoff(ladder, e->lambda, c, &bounds);
        put_row(&bounds, c, row);
    }
    if (status == PE_NO_MEMORY) return status;
    return row[2 + PE_FUNCTIONALS + functional] <= 1.0 ? PE_OK : PE_TOO_COSTLY;
}

int pe_pair_certify(pe_pair *pair, int functional, size_t n, const double *c, double *rows) {
    int status = PE_OK, worst = PE_OK;
    for (size_t i = 0; i < n && status != PE_NO_MEMORY; i++) {
        double *row = rows + PE_ROW * i;
        fail_row(row);
        if (unproven(pair)) worst = PE_TOO_COSTLY;
        if (!isfinite(c[i]) || unproven(pair)) continue;
        status = certify_one(pair, functional, c[i], row);
        if (status) worst = status;
    }
    return worst;
}
