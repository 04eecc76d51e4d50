/* Fits polynomials to log F on panels of w and proves their errors: Theorem 6 of docs/theory/sector_laws.md.  Called by
 * sector_laws.c. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic.h"
#include "doubles.h"
#include "sector.h"
#include "simd.h"

enum { TERMS = PE_SECTOR_TERMS, CHECKS = PE_SECTOR_CHECKS, TURNS = 48 }; /* TURNS: arcs of half an ellipse */

static const double UNIT = 0x1p-53;
static const double PI = 3.14159265358979323846;
static const double REACH = 1.5; /* half width of a panel, in kappa^-1/2 */
static const double LONGEST = 1.0; /* largest width of a panel in w, */
static const double SHORTEST = 0x1p-14; /* and smallest, as points of the check are rounded to the grid */
static const double MOST_CHANGE = 30.0; /* largest change of log F on a panel */
static const double BESIDE = 1.0; /* margin beyond the last panel, in its widths */

/* Makes room for one more panel. */
static int grow(pe_sector *c) {
    if (c->n < c->room) return PE_OK;
    const size_t room = c->room ? 2 * c->room : 64;
    double *edge = realloc(c->edge, (room + 1) * sizeof(double));
    if (edge) c->edge = edge;
    double *whole = realloc(c->whole, room * sizeof(double));
    if (whole) c->whole = whole;
    double *coef = realloc(c->coef, room * TERMS * sizeof(double));
    if (coef) c->coef = coef;
    double *rounding = realloc(c->rounding, room * sizeof(double));
    if (rounding) c->rounding = rounding;
    double *off = realloc(c->off, room * sizeof(double));
    if (off) c->off = off;
    double *checked = realloc(c->checked, room * sizeof(double));
    if (checked) c->checked = checked;
    if (!edge || !whole || !coef || !rounding || !off || !checked) return PE_NO_MEMORY;
    c->room = room;
    return PE_OK;
}

/* Bound of the rounding of a value of the polynomial: an error in step k of Horner's rule is one of coefficient k,
 * relative to the sum of the moduli from there on; x is rounded once, as half of a panel is a power of 2.  Returns that
 * of a term of a convolution, *of_value that of a value alone. */
static double rounding_of(const double *c, double half, double span, double *of_value) {
    double all = 0.0, slope = 0.0, sum = 0.0;
    for (int k = 0; k < TERMS; k++) {
        all += (2.0 * k + 1.0) * fabs(c[k]);
        slope += k * fabs(c[k]);
        sum += fabs(c[k]);
    }
    /* in a convolution: the addition of the other law's value, and the rounding of log(1 + e^r) times the slope */
    const double of_parts = 0x1p-9 * (1.0 + span) / half;
    *of_value = UNIT * (all + slope) * (1.0 + 1e-6);
    return *of_value + UNIT * (of_parts * slope + sum) * (1.0 + 1e-6);
}

/* Changes of basis: power[k][j] is the coefficient of x^j in T_k, chebyshev[k][j] that of T_k in x^j. */
typedef struct {
    double power[TERMS][TERMS], chebyshev[TERMS][TERMS];
} bases;

static void make_bases(bases *t) {
    memset(t, 0, sizeof *t);
    t->power[0][0] = t->power[1][1] = t->chebyshev[0][0] = t->chebyshev[1][1] = 1.0;
    for (int k = 2; k < TERMS; k++)
        for (int j = 0; j <= k; j++)
            t->power[k][j] = (j ? 2.0 * t->power[k - 1][j - 1] : 0.0) - t->power[k - 2][j];
    for (int j = 2; j < TERMS; j++) /* x T_0 = T_1, x T_k = (T_(k-1) + T_(k+1))/2 */
        for (int k = 0; k <= j; k++) {
            const double of_less = k ? t->chebyshev[k - 1][j - 1] * (k == 1 ? 1.0 : 0.5) : 0.0;
            t->chebyshev[k][j] = of_less + (k + 1 < j ? 0.5 * t->chebyshev[k + 1][j - 1] : 0.0);
        }
}

/* cos(pi k/(2 CHECKS)) */
typedef struct {
    double cosine[4 * CHECKS];
} turns;

static void make_turns(turns *t) {
    pe_dd sine;
    for (int k = 0; k < 4 * CHECKS; k++)
        t->cosine[k] = pe_dd_turn(pe_dd_div(pe_dd_mul_d(PE_PI, k), pe_dd_of(2 * CHECKS)), &sine).h;
}

/* Adds the least-squares polynomial of degree TERMS - 1 at the Chebyshev points, disregarding their rounding to the
 * grid: a choice, as the error of the result is proven afterwards. */
static void add_polynomial(const turns *t, const bases *of, const double *value, double *c) {
    double mean = 0.0, all = 0.0;
    for (int i = 0; i < CHECKS; i++) mean += value[i] / CHECKS;
    for (int k = 0; k < TERMS; k++) {
        double sum = 0.0;
        for (int i = 0; i < CHECKS; i++)
            sum += (value[i] - mean) * t->cosine[k * (2 * (CHECKS - 1 - i) + 1) % (4 * CHECKS)];
        all = k ? 2.0 * sum / CHECKS : mean + sum / CHECKS;
        for (int j = k % 2; j <= k; j += 2) c[j] += all * of->power[k][j];
    }
}

/* Point i of the check on a panel, rounded to the grid. */
static double place_of(const turns *t, double lo, double width, int i) {
    const double off = 0.5 * width * (1.0 + t->cosine[2 * i + 1]);
    return lo + nearbyint(off / PE_SECTOR_GRID) * PE_SECTOR_GRID;
}

/* Appends a panel from lo on; *resolved: whether its polynomial agrees with the law at the points.  A status. */
static int try_panel(pe_sector *c, const turns *t, const bases *of, pe_sector_density f, void *context,
                     double lo, double width, int *resolved) {
    enum { TOGETHER = PE_SECTOR_TOGETHER };
    double value[CHECKS], rest[CHECKS], error[CHECKS], place[CHECKS], top = -INFINITY, least = INFINITY;
    *resolved = 0;
    for (int i = 0; i < CHECKS; i++) place[i] = place_of(t, lo, width, CHECKS - 1 - i); /* rising */
    for (int i = 0; i < CHECKS; i += TOGETHER) {
        const int n = CHECKS - i < TOGETHER ? CHECKS - i : TOGETHER;
        f(context, (size_t)n, place + i, value + i, rest + i, error + i);
        for (int q = i; q < i + n; q++) {
            if (!isfinite(value[q]) || !(error[q] < 0.1)) return PE_OK;
            top = fmax(top, value[q] + rest[q]);
            least = fmin(least, value[q] + rest[q]);
        }
        if (top - least > MOST_CHANGE) return PE_OK;
    }
    int status = grow(c);
    if (status) return status;
    double *coef = c->coef + TERMS * c->n, miss[CHECKS], step[CHECKS], far = 0.0, largest = 0.0;
    const double whole = c->whole[c->n] = pe_sector_whole(0.5 * (top + least));
    memset(coef, 0, TERMS * sizeof(double));
    c->edge[c->n] = lo;
    c->edge[c->n + 1] = lo + width;
    c->n++;
    for (int i = 0; i < CHECKS; i++) {
        step[i] = place[i] - lo; /* exact */
        miss[i] = value[i] = (value[i] - whole) + rest[i];
        error[i] += 2.0 * UNIT * fabs(value[i]);
    }
    /* the second fit corrects for the rounding of points and coefficients */
    for (int trial = 0; trial < 2; trial++) {
        add_polynomial(t, of, miss, coef);
        pe_sector_rests(c, c->n - 1, CHECKS, lo, step, miss);
        for (int i = 0; i < CHECKS; i++) miss[i] = value[i] - miss[i];
    }
    for (int i = 0; i < CHECKS; i++) {
        far = fmax(far, fabs(miss[i]));
        largest = fmax(largest, fabs(miss[i]) + error[i]);
    }
    double of_value;
    const double rounding = rounding_of(coef, 0.5 * width, c->farthest - c->edge[0], &of_value),
                 size = 1.0 + fmax(fabs(top), fabs(least)) + (top - least);
    c->rounding[c->n - 1] = rounding;
    c->checked[c->n - 1] = largest + of_value;
    *resolved = far < 2e-15 * size;
    return PE_OK;
}

/* Largest width of a panel that ends at w */
static double wanted_width(const pe_sector *c, double w) {
    return fmin(LONGEST, 2.0 * REACH / sqrt(pe_sector_growth(&c->kinds, w)));
}

int pe_sector_fill(pe_sector *c, pe_sector_density f, void *context, double limit) {
    turns t;
    bases of;
    make_turns(&t);
    make_bases(&of);
    double lo = c->edge[0], width = pe_power_of_two(wanted_width(c, lo));
    int shortened = 0; /* how often the last panel was halved, to end nearer to the limit */
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
            const int status = try_panel(c, &t, &of, f, context, lo, width, &resolved);
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
                for (int k = 2; k < TERMS; k++) bend += fabs(c->coef[TERMS * p + (size_t)k]) * k * (k - 1.0);
            }
            const double next = fmin(to, c->edge[p + 1]), part = (next - from) / half;
            const double ends = fmax(pe_sector_value(c, p, from, 0.0), pe_sector_value(c, p, next, 0.0));
            top = fmax(top, ends + 0.125 * bend * part * part + 1e-8);
            if (next <= from) break;
            from = next;
        }
        t->top[i] = top;
    }
    /* where cells begin at the low end, F to the left of it is below its value there */
    t->top[first] = fmax(t->top[first], pe_sector_value(c, 0, c->edge[0], 0.0) + 1e-8);
}

/* cos and sin of k times the middle angle of each arc, and the cosines of the ends of arcs */
typedef struct {
    double cosine[TERMS][TURNS], sine[TERMS][TURNS], end[TURNS + 1];
} arcs;

static void make_arcs(arcs *t) {
    for (int j = 0; j <= TURNS; j++) t->end[j] = pe_d_cos(j * (PI / TURNS));
    for (int k = 0; k < TERMS; k++)
        for (int j = 0; j < TURNS; j++) {
            t->cosine[k][j] = pe_d_cos(k * ((j + 0.5) * (PI / TURNS)));
            t->sine[k][j] = pe_d_sin(k * ((j + 0.5) * (PI / TURNS)));
        }
}

/* Real part of the polynomial in the middle of each arc, sum of weight[k] cos(k angle), and its slope in the angle. */
PE_CLONES static void on_arcs(const arcs *t, const double *weight, double *value, double *tilt) {
    for (int j = 0; j < TURNS; j++) value[j] = tilt[j] = 0.0;
    for (int k = 0; k < TERMS; k++) {
        const double own = weight[k], slope = k * weight[k];
        for (int j = 0; j < TURNS; j++) {
            value[j] += own * t->cosine[k][j];
            tilt[j] -= slope * t->sine[k][j];
        }
    }
}

/* log of a bound of |F e^-g|, g the panel's polynomial, on the ellipse about the panel whose half axes add up to rho
 * half panels; infinite where F is not bounded. */
static double ellipse_bound(const pe_sector *c, const arcs *t, size_t p, const double *chebyshev,
                            double rho) {
    const double lo = c->edge[p], half = 0.5 * (c->edge[p + 1] - lo), mid = lo + half;
    const double real = 0.5 * (rho + 1.0 / rho), imag = 0.5 * (rho - 1.0 / rho);
    /* analytic in the sector, or at every angle up to kinds.turned */
    const double to = mid + half * real;
    const int everywhere = c->kinds.are_ratios || to + c->cells.width <= c->kinds.turned;
    if ((!everywhere && half * imag > 0.78) || to > c->cells.end) return INFINITY;
    double slope = 0.0, power = 1.0, size = 0.0, of_x = 1.0, top = -INFINITY;
    double weight[TERMS], value[TURNS], tilt[TURNS];
    for (int k = 0; k < TERMS; k++, power *= rho, of_x *= real) {
        weight[k] = chebyshev[k] * 0.5 * (power + 1.0 / power);
        slope += fabs(weight[k]) * (double)k;
        size += fabs(c->coef[TERMS * p + (size_t)k]) * of_x; /* for the rounding of the change of basis */
    }
    /* bound of the second derivative in the angle */
    double bend = 0.0;
    for (int k = 1; k < TERMS; k++) bend += fabs(weight[k]) * (double)k * k;
    const double turn = PI / TURNS;
    on_arcs(t, weight, value, tilt);
    for (int j = 0; j < TURNS; j++) {
        const double left = mid + half * real * t->end[j + 1], right = mid + half * real * t->end[j];
        const double height = half * imag * fmin(1.0, t->sine[1][j] + 0.5 * turn);
        const double least = value[j] - 0.5 * turn * fabs(tilt[j]) - 0.125 * turn * turn * bend;
        const double top_here = pe_sector_top(&c->cells, left, right) +
                                height * height * pe_sector_kappa(&c->cells, right) - least;
        top = fmax(top, top_here);
    }
    return top - c->whole[p] + 1e-9 * (1.0 + slope) + 64.0 * UNIT * size;
}

/* By the degree of a polynomial: the bound C of its largest value over that at the points of the check. */
typedef struct {
    double often[CHECKS];
} degrees;

enum { LOWEST_DEGREE = 12, HIGHEST_DEGREE = CHECKS - 8, DEGREE_STEP = 2 };

static void make_degrees(degrees *t) {
    for (int degree = LOWEST_DEGREE; degree < HIGHEST_DEGREE; degree += DEGREE_STEP)
        t->often[degree] = 1.0 / pe_d_cos(PI * degree / (2.0 * CHECKS) + 1e-5);
}

/* |F e^-g - 1| <= alpha + beta h on a panel, h being the largest of all panels (Theorem 6): the best of several
 * ellipses and degrees d. */
static void between_places(const pe_sector *c, const arcs *t, const bases *of, const degrees *d, size_t p,
                           double *alpha, double *beta) {
    static const double RHO[] = {1.5, 1.8, 2.1, 2.5, 3.0, 3.6, 4.4, 5.5, 7.0, 9.0, 12.0};
    const double off = pe_d_expm1(c->checked[p]);
    double best = INFINITY, chebyshev[TERMS] = {0.0};
    for (int k = 0; k < TERMS; k++)
        for (int j = k; j < TERMS; j += 2)
            chebyshev[k] += c->coef[TERMS * p + (size_t)j] * of->chebyshev[k][j];
    *alpha = *beta = INFINITY;
    for (size_t i = 0; i < sizeof RHO / sizeof *RHO; i++) {
        const double rho = RHO[i], bound = pe_d_exp(fmin(ellipse_bound(c, t, p, chebyshev, rho), 600.0));
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
    bases of;
    degrees d;
    make_arcs(&t);
    make_bases(&of);
    make_degrees(&d);
    for (size_t p = 0; p < c->n; p++) {
        between_places(c, &t, &of, &d, p, c->off + p, times + p);
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
