/* The steps of a composition, and the coarse grids in z of its kinds at each level of truncation: from these come the
 * cumulants that place lines (spectral.c, proven.c).  Choices only; lines compute on nodes of their own. */

#include "pair.h"

#include "arithmetic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"
#include "proven.h"

static const double REACH = 40.0; /* standard deviations: a normal tail is below 1e-348 there */
static const double COARSE_H = 0.4; /* largest spacing in z of the coarse grids */

const double PE_LEVELS[PE_N_LEVELS] = {-INFINITY, -8.0, -20.0, -40.0, -80.0, -160.0, -320.0, -770.0};
static const double FAMILY_ERROR = 1e-9; /* largest relative error of K by families that is accepted */
static const double CUT = 41.0; /* -log of the share of a level's smallest value that may be cut off */
/* node evaluations per kind of step in the search for a place: 0.3 s */
static const double SEARCH_COST = 1e8;
/* Nodes of a coarse grid: 160 MB, and SEARCH_COST evaluates them only two dozen times. */
static const double MOST_NODES = 4e6;
static const double FIRST_COST = 0.05; /* share of the cost limit for level 0, which is tried first */

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
    return pe_kinds_new(n, noise, p, steps, &pair->few);
}

/* Stores the laws of a step as sums of two doubles: of each alternative its probability, then of each term the shift and
 * the weights in A and in B. */
static int add_exact(pe_mixed_step *step, const size_t *terms, const double *exact) {
    size_t total = 0;
    for (size_t i = 0; i < step->alternatives; i++) total += 3 * terms[i];
    step->exact = malloc(step->alternatives * sizeof *step->exact);
    step->exact_block = malloc(total * sizeof *step->exact_block);
    if (!step->exact || !step->exact_block) return PE_NO_MEMORY;
    pe_dd *at = step->exact_block;
    for (size_t i = 0; i < step->alternatives; i++) {
        const size_t n = terms[i];
        step->exact[i] = (pe_terms){n, pe_two_sum(exact[0], exact[1]), at, at + n, at + 2 * n};
        exact += 2;
        for (size_t j = 0; j < 3 * n; j++, exact += 2) at[j % 3 * n + j / 3] = pe_two_sum(exact[0], exact[1]);
        at += 3 * n;
    }
    return PE_OK;
}

int pe_pair_add_mixtures(pe_pair *pair, double steps, size_t alternatives, const double *log_share,
                         const size_t *sizes, const double *shift, const double *weight, const size_t *terms,
                         const double *exact) {
    if (!alternatives || alternatives > PE_ALTERNATIVES) return PE_TOO_COSTLY;
    size_t total = 0;
    for (size_t i = 0; i < 2 * alternatives; i++) total += sizes[i];
    pe_mixed_step *grown = realloc(pair->mixed, (pair->n_mixed + 1) * sizeof *grown);
    if (!grown) return PE_NO_MEMORY;
    pair->mixed = grown;
    pe_mixed_step *step = &grown[pair->n_mixed];
    *step = (pe_mixed_step){.steps = steps, .alternatives = alternatives};
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
    return exact ? add_exact(step, terms, exact) : PE_OK;
}

int pe_pair_add_table(pe_pair *pair, double steps, size_t m, const double *loss, const double *log_weight,
                      double t_max) {
    if (!m) return PE_TOO_COSTLY;
    pe_listed_step *grown = realloc(pair->listed, (pair->n_listed + 1) * sizeof *grown);
    if (!grown) return PE_NO_MEMORY;
    pair->listed = grown;
    size_t blocks = (m + PE_TABLE_BLOCK - 1) / PE_TABLE_BLOCK;
    double *block = malloc((2 * m + blocks) * sizeof(double)), *peak = block + 2 * m;
    if (!block) return PE_NO_MEMORY;
    memcpy(block, loss, m * sizeof(double));
    memcpy(block + m, log_weight, m * sizeof(double));
    for (size_t b = 0; b < blocks; b++) peak[b] = -INFINITY;
    for (size_t j = 0; j < m; j++) peak[j / PE_TABLE_BLOCK] = fmax(peak[j / PE_TABLE_BLOCK], log_weight[j]);
    grown[pair->n_listed++] = (pe_listed_step){steps, {m, block, block + m, peak, t_max}, block};
    return PE_OK;
}

size_t pe_pair_others(const pe_pair *pair) {
    return pair->n_mixed + pair->n_listed;
}

int pe_pair_is_exact(const pe_pair *pair) {
    for (size_t i = 0; i < pair->n_mixed; i++)
        if (!pair->mixed[i].exact) return 0;
    return !pair->n_listed;
}

static void contours_free(pe_contours *contours) {
    if (!contours) return;
    for (size_t i = 0; i < contours->n_groups; i++) pe_nodes_free(&contours->groups[i].grid);
    free(contours->groups);
    for (pe_edge *e = contours->last_edge, *before; e; e = before) {
        before = e->before;
        free(e);
    }
    for (pe_line *ln = contours->last_line, *before; ln; ln = before) {
        before = ln->before;
        pe_line_free(ln);
    }
    pe_proven_free(contours->proven);
    free(contours);
}

void pe_pair_free(pe_pair *pair) {
    if (!pair) return;
    for (int i = 0; i < PE_N_CONTOURS; i++) contours_free(pair->levels[i]);
    pe_kinds_free(&pair->few);
    for (size_t i = 0; i < pair->n_mixed; i++) {
        free(pair->mixed[i].block);
        free(pair->mixed[i].exact);
        free(pair->mixed[i].exact_block);
    }
    for (size_t i = 0; i < pair->n_listed; i++) free(pair->listed[i].block);
    free(pair->mixed);
    free(pair->listed);
    free(pair->noise);
    free(pair);
}

static size_t contours_bytes(const pe_contours *contours) {
    size_t total = sizeof *contours;
    for (size_t i = 0; i < contours->n_groups; i++)
        total += sizeof *contours->groups + 5 * contours->groups[i].grid.m * sizeof(double);
    for (const pe_edge *e = contours->last_edge; e; e = e->before) total += sizeof *e;
    for (const pe_line *ln = contours->last_line; ln; ln = ln->before)
        total += sizeof *ln + (ln->weights ? 8 * ln->nt * sizeof(double) : 0);
    total += pe_proven_bytes(contours->proven);
    return total;
}

size_t pe_pair_bytes(const pe_pair *pair) {
    size_t total = sizeof *pair + pe_kinds_bytes(&pair->few) + 3 * pair->n * sizeof(double) +
                   pair->n_mixed * sizeof(pe_mixed_step);
    for (size_t i = 0; i < pair->n_listed; i++)
        total +=
            sizeof(pe_listed_step) +
            (2 * pair->listed[i].table.m + pair->listed[i].table.m / PE_TABLE_BLOCK + 1) * sizeof(double);
    for (int i = 0; i < PE_N_CONTOURS; i++)
        if (pair->levels[i]) total += contours_bytes(pair->levels[i]);
    return total;
}

/* The x with Phi(-x) <= exp(log_mass), from Phi(-x) <= exp(-x^2/2)/2. */
static double normal_reach(double log_mass) {
    return sqrt(fmax(0.0, -2.0 * (log_mass + 0.69)));
}

/* How much a level cuts off the ends of z. */
typedef struct {
    int whole; /* nothing is cut off */
    double log_mass; /* log of the probability that one step may lose at each end */
} removal;

/* Width s of the taper erfc((z - z0)/s)/2 of a group whose shifts span `range`: narrow enough that the tilt e^{lambda l}
 * does not outgrow it.  `wider`: by how much the taper widens a normal. */
static double taper_of(pe_group *g, double range, double *wider) {
    g->taper_s = fmin(0.5, 0.05 / range);
    *wider = sqrt(1.0 + 0.5 * g->taper_s * g->taper_s);
    return g->taper_s;
}

static void set_window(pe_span *w, const removal *removed, double s, double range, double low, double high) {
    w->h = COARSE_H * fmin(fmax(1.0 / range, 0.25), 1.0);
    if (!removed->whole) w->h = fmin(w->h, 0.5 * s);
    const double count = floor((high - low) / w->h) + 1.0;
    if (!(count <= MOST_NODES)) {
        w->m = 0; /* tells add_grid that they are too many */
        return;
    }
    w->m = (size_t)count;
    w->z0 = high - w->h * (double)(w->m - 1);
}

/* How far below 0 the nodes of a sampled Gaussian reach.  The tilted law of a line with signed root w has divergence
 * w^2/2 from A, so each of n equal steps at most w^2/(2n), and z has a tilted mean of at least -|w|/sqrt(n).  Where the
 * mean is negative the tilt is log-concave, and the weight is below 1e-55 at 16 from the mean. */
static double left_reach(const pe_group *g) {
    return fmin(REACH, 16.0 + 2.0 * PE_HALF_PITCH * (PE_PLACES + 1) / sqrt(g->n > 1.0 ? g->n : 1.0));
}

static void sampled_group(pe_group *g, const removal *removed, pe_span *w) {
    double mu = g->mu, wider, s = taper_of(g, mu, &wider), each = removed->log_mass;
    double end = wider * fmax(normal_reach(each), mu + normal_reach(each - pe_d_log(g->p)));
    g->taper_z = removed->whole ? INFINITY : end;
    g->taper_low = -INFINITY;
    set_window(w, removed, s, mu, -left_reach(g), removed->whole ? REACH + mu : end + 8.0 * s);
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
            double each = removed->log_mass - g->log_share - pe_d_log(sides[i]->weight[j]);
            double reach = wider * normal_reach(each);
            low = fmin(low, sides[i]->shift[j] - reach);
            high = fmax(high, sides[i]->shift[j] + reach);
        }
    g->taper_z = removed->whole ? INFINITY : high;
    g->taper_low = removed->whole ? -INFINITY : low;
    set_window(w, removed, s, last - first, removed->whole ? first - REACH : low - 8.0 * s,
               removed->whole ? last + REACH : high + 8.0 * s);
}

/* Makes the coarse grid of a kind: of group g, the first of its alternatives, which are set. */
static int add_grid(pe_contours *contours, pe_group *g, const removal *removed) {
    pe_span windows[PE_ALTERNATIVES];
    for (size_t i = 0; i < g->alternatives; i++)
        if (g[i].table) windows[i] = (pe_span){0.0, 1.0, g[i].table->m};
        else if (g[i].law) mixed_group(&g[i], removed, &windows[i]);
        else sampled_group(&g[i], removed, &windows[i]);
    for (size_t i = 0; i < g->alternatives; i++)
        if (!windows[i].m) return PE_TOO_COSTLY;
    int status = pe_nodes_new(&g->grid, g, windows);
    if (status) return status;
    pe_nodes_weigh(&g->grid);
    for (size_t i = 0; i < g->alternatives; i++) g[i].part = pe_nodes_part(&g->grid, windows, i);
    contours->n_groups += g->alternatives;
    return PE_OK;
}

/* Adds the sampled Gaussian steps: those with p = 1 as a variance, the others as groups. */
static int add_sampled(pe_contours *contours, const pe_kinds *kinds, int reversed, const removal *removed) {
    for (size_t i = 0; i < kinds->n; i++) {
        const double mu = 1.0 / kinds->noise[i];
        if (kinds->p[i] == 1.0) {
            contours->gaussian_variance += kinds->steps[i] * mu * mu;
            const pe_dd exact = pe_dd_div(pe_dd_of(1.0), pe_dd_of(kinds->noise[i]));
            contours->exact_variance =
                pe_dd_add(contours->exact_variance, pe_dd_mul_d(pe_dd_square(exact), kinds->steps[i]));
            continue;
        }
        pe_group *g = &contours->groups[contours->n_groups];
        g->noise = kinds->noise[i];
        g->mu = mu;
        g->p = kinds->p[i];
        g->n = kinds->steps[i];
        g->reversed = reversed;
        g->alternatives = 1;
        g->family = kinds->family ? kinds->family[i] : -1;
        g->point = kinds->family ? kinds->point[i] : 0;
        const int status = add_grid(contours, g, removed);
        if (status) return status;
    }
    contours->kinds = kinds->families ? kinds : NULL;
    return PE_OK;
}

int pe_pair_has_few(const pe_pair *pair) {
    return pair->few.families > 0;
}

static int contours_new(const pe_pair *pair, int level, pe_contours **out) {
    pe_contours *contours = calloc(1, sizeof *contours);
    *out = contours;
    if (!contours) return PE_NO_MEMORY;
    size_t most = pair->n + PE_ALTERNATIVES * pair->n_mixed + pair->n_listed;
    contours->groups = calloc(most + 1, sizeof *contours->groups);
    if (!contours->groups) return PE_NO_MEMORY;
    int few = level == PE_FEW_KINDS, whole = few || level == 0;
    contours->cost_limit =
        pair->cost_limit * (double)(pair->n + pe_pair_others(pair)) * (whole ? FIRST_COST : 1.0);
    contours->most_work = INFINITY;
    contours->search_limit = SEARCH_COST * (double)most;
    contours->reversed = pair->reversed;
    contours->both_ends = pe_pair_others(pair) > 0;
    double total = 1.0, log_mass = PE_LEVELS[few ? 0 : level] - CUT;
    for (size_t i = 0; i < pair->n; i++) total += pair->steps[i];
    for (size_t i = 0; i < pair->n_mixed; i++) total += pair->mixed[i].steps;
    for (size_t i = 0; i < pair->n_listed; i++) total += pair->listed[i].steps;
    removal removed = {whole, log_mass - pe_d_log(total)};
    contours->log_cut = log_mass + pe_d_log(2.0); /* both normals of the mixture lose as much */
    if (contours->both_ends) contours->log_cut += pe_d_log(2.0);
    const pe_kinds own = {.n = pair->n, .noise = pair->noise, .p = pair->p, .steps = pair->steps};
    const int status = add_sampled(contours, few ? &pair->few : &own, pair->reversed, &removed);
    if (status) return status;
    for (size_t i = 0; i < pair->n_mixed; i++) {
        const pe_mixed_step *step = &pair->mixed[i];
        pe_group *g = &contours->groups[contours->n_groups];
        for (size_t j = 0; j < step->alternatives; j++) {
            g[j].n = step->steps;
            g[j].family = -1;
            g[j].law = &step->law[j];
            g[j].log_share = step->log_share[j];
            g[j].exact = step->exact ? &step->exact[j] : NULL;
            g[j].alternatives = step->alternatives - j;
        }
        const int made = add_grid(contours, g, &removed);
        if (made) return made;
    }
    for (size_t i = 0; i < pair->n_listed; i++) {
        pe_group *g = &contours->groups[contours->n_groups];
        g->n = pair->listed[i].steps;
        g->family = -1;
        g->table = &pair->listed[i].table;
        g->alternatives = 1;
        const int made = add_grid(contours, g, &removed);
        if (made) return made;
    }
    return PE_OK;
}

int pe_pair_contours(pe_pair *pair, int level, pe_contours **out) {
    if (!pair->levels[level]) {
        pe_contours *fresh;
        int status = contours_new(pair, level, &fresh);
        if (status) {
            contours_free(fresh);
            return status;
        }
        pair->levels[level] = fresh;
    }
    *out = pair->levels[level];
    return PE_OK;
}

static void add_cumulants(const pe_group *g, double lambda, pe_cumulants *k) {
    pe_nodes nodes = g->grid;
    if (g->table) {
        pe_span window = pe_table_window(g->table, g->n, lambda);
        nodes = pe_nodes_within(&g->grid, &window);
    }
    pe_nodes_cumulants(&nodes, g->n, lambda, k);
}

pe_cumulants pe_contours_cumulants(const pe_contours *contours, double lambda) {
    double v = contours->gaussian_variance;
    pe_cumulants k = {0.5 * v * lambda * (lambda - 1.0), v * (lambda - 0.5), v};
    pe_noise_cumulants points;
    for (size_t i = 0; i < contours->n_groups; i += contours->groups[i].alternatives) {
        const pe_group *g = &contours->groups[i];
        if (g->family < 0) {
            add_cumulants(g, lambda, &k);
        } else {
            pe_cumulants *one = &points.at[g->family][g->point];
            *one = (pe_cumulants){0, 0, 0};
            pe_nodes_cumulants(&g->grid, 1.0, lambda, one);
        }
    }
    if (!contours->kinds) return k;
    const double miss = pe_kinds_cumulants_miss(contours->kinds, &points);
    pe_kinds_cumulants(contours->kinds, &points, &k);
    /* at large |lambda|, where the kind of least noise dominates, the interpolation between kinds fails */
    if (!(miss <= FAMILY_ERROR * (1.0 + fabs(k.k0)))) k = (pe_cumulants){INFINITY, NAN, NAN};
    return k;
}
