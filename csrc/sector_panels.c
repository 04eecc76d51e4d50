#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic.h"
#include "doubles.h"
#include "sector.h"

/* Polynomials of log F on panels, and what they are off by; docs/theory/sector_laws.md. */

enum { TERMS = PE_SECTOR_TERMS, CHECKS = PE_SECTOR_CHECKS, TURNS = 48 };

static const double UNIT = 0x1p-53;
static const double PI = 3.14159265358979323846;
static const double REACH = 1.5;       /* half of a panel, in kappa^-1/2, */
static const double LONGEST = 1.0;     /* its largest width, */
static const double SHORTEST =
    0x1p-14; /* and the smallest one: places of the check are rounded to the grid */
static const double MOST_CHANGE = 30.0; /* of log F on one */
static const double BESIDE = 1.0;      /* how much of a panel's width the axis goes on after the last one */

static int grow(pe_sector *c) {
    if (c->n < c->room) return PE_OK;
    const size_t room = c->room ? 2 * c->room : 64;
    double *edge = realloc(c->edge, (room + 1) * sizeof(double));
    if (edge) c->edge = edge;
    double *coef = realloc(c->coef, room * TERMS * sizeof(double));
    if (coef) c->coef = coef;
    double *rounding = realloc(c->rounding, room * sizeof(double));
    if (rounding) c->rounding = rounding;
    double *off = realloc(c->off, room * sizeof(double));
    if (off) c->off = off;
    double *checked = realloc(c->checked, room * sizeof(double));
    if (checked) c->checked = checked;
    if (!edge || !coef || !rounding || !off || !checked) return PE_NO_MEMORY;
    c->room = room;
    return PE_OK;
}

/* What rounding does to a value of the polynomial: an error in step k of Clenshaw's recurrence is one in the
 * coefficient k, whose polynomial is at most 1; the place is rounded once, beside its distance from the middle. */
static double rounding_of(const double *c, double half, double span) {
    double all = 0.0, b1 = 0.0, b2 = 0.0, slope = 0.0, sum = 0.0;
    for (int k = TERMS - 1; k >= 0; k--) {
        double own = 0.0; /* of |b_k|, by the coefficients from k on */
        for (int j = k; j < TERMS; j++) own += (j - k + 1.0) * fabs(c[j]);
        all += own + 4.0 * b1 + b2;
        b2 = b1;
        b1 = own;
        slope += (double)k * k * fabs(c[k]);
        sum += fabs(c[k]);
    }
    /* the value of another panel is added, which counts for both; and what log(1 + e^r) errs by */
    const double of_parts = 0x1p-9 * (1.0 + span) / half;
    return UNIT * (all + (2.0 + of_parts) * slope + sum) * (1.0 + 1e-6);
}

/* cos(pi k/(2 CHECKS)) for whole k */
typedef struct {
    double cosine[4 * CHECKS];
} turns;

static void make_turns(turns *t) {
    pe_dd sine;
    for (int k = 0; k < 4 * CHECKS; k++)
        t->cosine[k] = pe_dd_turn(pe_dd_div(pe_dd_mul_d(PE_PI, k), pe_dd_of(2 * CHECKS)), &sine).h;
}

/* Adds the polynomial of degree TERMS - 1 of least squares at the places of the check, had they not been rounded.  No
 * bound depends on how well it is done. */
static void add_polynomial(const turns *t, const double *value, double *c) {
    double mean = 0.0;
    for (int i = 0; i < CHECKS; i++) mean += value[i] / CHECKS;
    for (int k = 0; k < TERMS; k++) {
        double sum = 0.0;
        for (int i = 0; i < CHECKS; i++)
            sum += (value[i] - mean) * t->cosine[k * (2 * (CHECKS - 1 - i) + 1) % (4 * CHECKS)];
        c[k] += k ? 2.0 * sum / CHECKS : mean + sum / CHECKS;
    }
}

/* Place i of the check on a panel, rounded to the grid. */
static double place_of(const turns *t, double lo, double width, int i) {
    const double off = 0.5 * width * (1.0 + t->cosine[2 * i + 1]);
    return lo + nearbyint(off / PE_SECTOR_GRID) * PE_SECTOR_GRID;
}

/* One panel from lo on; whether it resolves the law. */
static int try_panel(pe_sector *c, const turns *t, pe_sector_density f, void *context, double lo,
                     double width, int *resolved) {
    enum { TOGETHER = PE_SECTOR_TOGETHER };
    double value[CHECKS], error[CHECKS], place[CHECKS], top = -INFINITY, least = INFINITY;
    *resolved = 0;
    for (int i = 0; i < CHECKS; i++) place[i] = place_of(t, lo, width, CHECKS - 1 - i); /* rising */
    for (int i = 0; i < CHECKS; i += TOGETHER) {
        const int n = CHECKS - i < TOGETHER ? CHECKS - i : TOGETHER;
        f(context, (size_t)n, place + i, value + i, error + i);
        for (int q = i; q < i + n; q++) {
            if (!isfinite(value[q]) || !(error[q] < 0.1)) return PE_OK;
            top = fmax(top, value[q]);
            least = fmin(least, value[q]);
        }
        if (top - least > MOST_CHANGE) return PE_OK;
    }
    int status = grow(c);
    if (status) return status;
    double *coef = c->coef + TERMS * c->n, miss[CHECKS], far = 0.0, largest = 0.0;
    memset(coef, 0, TERMS * sizeof(double));
    c->edge[c->n] = lo;
    c->edge[c->n + 1] = lo + width;
    c->n++;
    /* what is left the first time is mostly what the rounding of places has done */
    memcpy(miss, value, sizeof miss);
    for (int trial = 0; trial < 2; trial++) {
        add_polynomial(t, miss, coef);
        for (int i = 0; i < CHECKS; i++) miss[i] = value[i] - pe_sector_value(c, c->n - 1, place[i], 0.0);
    }
    for (int i = 0; i < CHECKS; i++) {
        far = fmax(far, fabs(miss[i]));
        largest = fmax(largest, fabs(miss[i]) + error[i]);
    }
    const double rounding = rounding_of(coef, 0.5 * width, c->farthest - c->edge[0]),
                 size = 1.0 + fmax(fabs(top), fabs(least)) + (top - least);
    c->rounding[c->n - 1] = rounding;
    c->checked[c->n - 1] = largest + rounding;
    *resolved = far < 2e-15 * size;
    return PE_OK;
}

static double wanted_width(const pe_sector *c, double w) {
    return fmin(LONGEST, 2.0 * REACH / sqrt(pe_sector_growth(&c->kinds, w)));
}

int pe_sector_fill(pe_sector *c, pe_sector_density f, void *context, double limit) {
    turns t;
    make_turns(&t);
    double lo = c->edge[0], width = pe_power_of_two(wanted_width(c, lo));
    int shortened = 0; /* the last panels, so that less of the axis is lost */
    for (;;) {
        while (width > SHORTEST && width > wanted_width(c, lo + width)) width *= 0.5;
        if (lo + width * (1.0 + BESIDE) > limit) {
            if (++shortened > PE_SECTOR_SHORTENED) return c->n ? PE_OK : PE_TOO_COSTLY;
            width *= 0.5;
            continue;
        }
        const size_t before = c->n;
        int resolved = 0;
        for (; width > SHORTEST; width *= 0.5) {
            const int status = try_panel(c, &t, f, context, lo, width, &resolved);
            if (status) return status;
            if (resolved) break;
            c->n = before;
        }
        if (!resolved) return PE_TOO_COSTLY;
        lo += width;
        c->edge[c->n] = lo;
        if (!shortened && 2.0 * width <= wanted_width(c, lo + 2.0 * width)) width *= 2.0;
    }
}

void pe_sector_fill_cells(pe_sector *c) {
    pe_sector_cells *t = &c->cells;
    const size_t first = pe_sector_cell(t, c->edge[0]), last = pe_sector_cell(t, pe_sector_high(c));
    size_t p = 0;
    double bend = -1.0, half = 1.0;
    for (size_t i = first; i <= last; i++) {
        double from = fmax(t->from + (double)i * t->width, c->edge[0]);
        const double to = fmin(t->from + (double)(i + 1) * t->width, pe_sector_high(c));
        double top = -INFINITY;
        while (from < to || top == -INFINITY) {
            while (p + 1 < c->n && c->edge[p + 1] <= from) p++, bend = -1.0;
            if (bend < 0.0) {
                half = 0.5 * (c->edge[p + 1] - c->edge[p]);
                bend = 0.0;
                for (int k = 2; k < TERMS; k++)
                    bend += fabs(c->coef[TERMS * p + (size_t)k]) * k * k * (k * k - 1.0) / 3.0;
            }
            const double next = fmin(to, c->edge[p + 1]), part = (next - from) / half;
            const double ends = fmax(pe_sector_value(c, p, from, 0.0), pe_sector_value(c, p, next, 0.0));
            top = fmax(top, ends + 0.125 * bend * part * part + 1e-8);
            if (next <= from) break;
            from = next;
        }
        t->top[i] = top;
    }
    /* if cells begin there, what lies to the left of the low end is below its value there */
    t->top[first] = fmax(t->top[first], pe_sector_value(c, 0, c->edge[0], 0.0) + 1e-8);
}

/* cos and sin of k times the middle of each arc of an ellipse */
typedef struct {
    double cosine[TURNS][TERMS], sine[TURNS][TERMS], end[TURNS + 1]; /* and cosines of both ends */
} arcs;

static void make_arcs(arcs *t) {
    for (int j = 0; j <= TURNS; j++) t->end[j] = pe_d_cos(j * (PI / TURNS));
    for (int j = 0; j < TURNS; j++)
        for (int k = 0; k < TERMS; k++) {
            t->cosine[j][k] = pe_d_cos(k * ((j + 0.5) * (PI / TURNS)));
            t->sine[j][k] = pe_d_sin(k * ((j + 0.5) * (PI / TURNS)));
        }
}

/* Log of a bound of |F e^-polynomial| on an ellipse about a panel, whose axes add up to rho times its half. */
static double ellipse_bound(const pe_sector *c, const arcs *t, size_t p, double rho) {
    const double lo = c->edge[p], half = 0.5 * (c->edge[p + 1] - lo), mid = lo + half;
    const double real = 0.5 * (rho + 1.0 / rho), imag = 0.5 * (rho - 1.0 / rho);
    if (half * imag > 0.78 || mid + half * real > c->cells.end) return INFINITY;
    const double *coef = c->coef + TERMS * p;
    double slope = 0.0, power = 1.0, top = -INFINITY, weight[TERMS];
    for (int k = 0; k < TERMS; k++, power *= rho) {
        weight[k] = coef[k] * 0.5 * (power + 1.0 / power);
        slope += fabs(weight[k]) * (double)k;
    }
    /* the second derivative of the polynomial in the angle */
    double bend = 0.0;
    for (int k = 1; k < TERMS; k++) bend += fabs(weight[k]) * (double)k * k;
    const double turn = PI / TURNS;
    for (int j = 0; j < TURNS; j++) {
        const double left = mid + half * real * t->end[j + 1], right = mid + half * real * t->end[j];
        const double height = half * imag * fmin(1.0, t->sine[j][1] + 0.5 * turn);
        double value = 0.0, tilt = 0.0;
        for (int k = 0; k < TERMS; k++) {
            value += weight[k] * t->cosine[j][k];
            tilt -= k * weight[k] * t->sine[j][k];
        }
        const double least = value - 0.5 * turn * fabs(tilt) - 0.125 * turn * turn * bend;
        const double top_here = pe_sector_top(&c->cells, left, right) +
                                height * height * pe_sector_kappa(&c->cells, right) - least;
        top = fmax(top, top_here);
    }
    return top + 1e-9 * (1.0 + slope);
}

/* The largest value of a polynomial beside that at places of the check, by its degree. */
typedef struct {
    double often[CHECKS];
} degrees;

enum { LOWEST_DEGREE = 12, HIGHEST_DEGREE = CHECKS - 8, DEGREE_STEP = 2 };

static void make_degrees(degrees *t) {
    for (int degree = LOWEST_DEGREE; degree < HIGHEST_DEGREE; degree += DEGREE_STEP)
        t->often[degree] = 1.0 / pe_d_cos(PI * degree / (2.0 * CHECKS) + 1e-5);
}

/* What a panel is off by, at most alpha + beta h, with h the largest of all panels: the best of several ellipses and
 * degrees of the polynomial that is held to its values at the places of the check. */
static void between_places(const pe_sector *c, const arcs *t, const degrees *d, size_t p, double *alpha,
                           double *beta) {
    static const double RHO[] = {1.5, 1.8, 2.1, 2.5, 2.9, 3.4, 4.0, 5.0, 6.0, 8.0};
    const double off = pe_d_expm1(c->checked[p]);
    double best = INFINITY;
    *alpha = *beta = INFINITY;
    for (size_t i = 0; i < sizeof RHO / sizeof *RHO; i++) {
        const double rho = RHO[i], bound = pe_d_exp(fmin(ellipse_bound(c, t, p, rho), 600.0));
        const double less = 1.0 / (rho * rho) * (1.0 + 1e-12);
        double power = 2.0 * pe_d_pow(rho, -LOWEST_DEGREE) / (rho - 1.0);
        for (int degree = LOWEST_DEGREE; degree < HIGHEST_DEGREE; degree += DEGREE_STEP, power *= less) {
            const double often = d->often[degree];
            const double rest = power * (often + 1.0);
            const double own = often * off + rest * (2.0 * bound + 1.0);
            if (!(own < best)) continue;
            best = own;
            *alpha = often * off + rest * (1.0 + bound);
            *beta = rest * bound;
        }
    }
}

int pe_sector_prove(pe_sector *c) {
    double alpha = 0.0, beta = 0.0, *times = malloc(c->n * sizeof(double));
    if (!times) return PE_NO_MEMORY;
    arcs t;
    degrees d;
    make_arcs(&t);
    make_degrees(&d);
    for (size_t p = 0; p < c->n; p++) {
        between_places(c, &t, &d, p, c->off + p, times + p);
        alpha = fmax(alpha, c->off[p]);
        beta = fmax(beta, times[p]);
    }
    const int is_proven = beta < 0.5 && alpha < 1e-6;
    const double h = alpha / (1.0 - beta) * (1.0 + 1e-9);
    c->error = 0.0;
    for (size_t p = 0; p < c->n && is_proven; p++) {
        c->off[p] = -pe_d_log1p(-fmin(h, c->off[p] + times[p] * h)) * (1.0 + 1e-6) + c->rounding[p];
        c->error = fmax(c->error, c->off[p]);
    }
    free(times);
    if (!is_proven) return PE_TOO_COSTLY;
    pe_sector_raise_cells(&c->cells, c->error);
    return PE_OK;
}
