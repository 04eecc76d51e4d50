#include "fuzz.h"

/* Sums on lines and along rays, and bounds at levels; against the C library in long double, or
 * the same from single parts. */

static const double U = 0x1p-53;

static double weight_of(void) {
    return uniform(-1.0, 1.0) * log_uniform(1e-12, 1.0);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void fuzz_trig_sums(void) {
    const size_t n = 1 + below(4), size = 8 * (1 + below(12)), kinds = 1 + below(3);
    const double most = below(8) ? log_uniform(1e-6, 1e4) : 1e9;
    double *z = allocate(n), *t = allocate(size), *out = allocate(n * kinds), one[3];
    double *re = filled(kinds * size, weight_of), *im = filled(kinds * size, weight_of);
    for (size_t i = 0; i < n; ++i) z[i] = below(6) ? uniform(-1.0, 1.0) * most : 0.0;
    for (size_t i = 0; i < size; ++i) t[i] = uniform(0.0, 10.0);
    qsort(t, size, sizeof(double), compare);
    pe_trig_sums(n, z, size, t, kinds, re, im, out);
    for (size_t i = 0; i < n; ++i) {
        for (size_t k = 0; k < kinds; ++k) {
            long double sum = 0.0L, error = 0.0L;
            for (size_t j = 0; j < size; ++j) {
                const long double b = (long double)z[i] * t[j], p = re[k * size + j], q = im[k * size + j];
                sum += p * cosl(b) + q * sinl(b);
                error += (fabsl(p) + fabsl(q)) * ((long double)(size + 12) + 4.0L * fabsl(b)) * U;
            }
            require(fabsl(out[i * kinds + k] - sum) <= error, "trig_sums", "the sum", z[i]);
        }
        pe_trig_sums(1, z + i, size, t, kinds, re, im, one);
        for (size_t k = 0; k < kinds; ++k)
            require(!differ(one[k], out[i * kinds + k]), "trig_sums", "the bits alone", z[i]);
    }
    free(z);
    free(t);
    free(out);
    free(re);
    free(im);
}

static double node_real(void) {
    return -log_uniform(1e-6, 1e3);
}

static double node_imag(void) {
    return uniform(0.0, 1e3);
}

/* A line that is turned beside the sums of its parts, at a threshold of 0; panels are asked for where there are too few. */
static void whole_line(size_t places, const double *x, const double *mass, double tilt, double reach,
                       const pe_ray *ray, size_t first, size_t used) {
    enum { PANELS = 7, SIZE = 16 };
    const double zero = 0.0, pole = uniform(-2.0, 2.0), constant = uniform(-40.0, 1.0);
    const int64_t begin[] = {0, 3};
    double t[SIZE], sums[3], parts[3], beyond[3], off[3], error[6], *re = filled((size_t)3 * SIZE, weight_of);
    double *place = allocate(2 * places), *turned = filled(6 * places, probability), *room = allocate(places);
    for (size_t j = 0; j < SIZE; ++j) t[j] = (double)j;
    for (size_t k = 0; k < 6; ++k) error[k] = probability();
    for (size_t j = 0; j < places; ++j) {
        place[j] = x[j];
        place[places + j] = 0.0;
    }
    pe_line_turn turn = {.places = places,
                         .blocks = 2,
                         .chunks = 2,
                         .place = place,
                         .atom = mass,
                         .reach = reach,
                         .least = 2,
                         .most = PANELS,
                         .about = 3,
                         .known = PANELS,
                         .right = ray[0],
                         .left = ray[1],
                         .begin = begin,
                         .error = error,
                         .turned = turned};
    const pe_line_pole none = {0.0, 0.0, -INFINITY, 0.0}, added = {1.0, pole, constant, 1e-15};
    const pe_loss_line line = {.tilt = tilt,
                               .error = {1e-16, 1e-16, 1e-16},
                               .size = SIZE,
                               .frequency = t,
                               .real = re,
                               .imag = re,
                               .turn = &turn,
                               .poles = {{added, none}, {none, none}, {none, none}},
                               .sides = {{.log_mean = -40.0, .over = 1.0}, {.log_mean = -40.0, .over = 1.0}}};
    require(!pe_loss_line_at(&line, room, 1, &zero, first, used, PE_RELATIVE, sums, off), "loss_line",
            "panels", reach);
    pe_trig_sums(1, &zero, SIZE, t, used, re + first * SIZE, re + first * SIZE, parts);
    if (first == 0) parts[0] -= exp(constant);
    pe_place_integrals(places, x, reach, 2, PANELS, 2, &ray[0], &ray[1], first, used, beyond);
    for (size_t k = 0; k < used; ++k) parts[k] += beyond[k];
    pe_atom_integrals(places, x, mass, tilt, first, used, parts);
    for (size_t k = 0; k < used; ++k) {
        require(fabs(parts[k] - sums[k]) <= 1e-12 * fabs(parts[k]) + 1e-14, "loss_line", "the sum", x[0]);
        require(off[k] >= fmin(error[first + k], error[3 + first + k]), "loss_line", "the error", x[0]);
    }
    turn.known = 0;
    require(pe_loss_line_at(&line, room, 1, &zero, first, used, PE_RELATIVE, sums, off) > 0, "loss_line",
            "no panels", reach);
    free(re);
    free(place);
    free(turned);
    free(room);
}

/* Place by place, by `pe_ray_sums`. */
void fuzz_place_integrals(void) {
    enum { BLOCKS = 2, PANELS = 7 };
    const size_t n = 1 + below(3), places = 1 + below(5), size = (size_t)8 * BLOCKS * PANELS;
    const size_t first = below(3), used = 1 + below(3 - first);
    const double reach = log_uniform(1e-3, 1e3);
    double *node[2][2], *weight[2][2], *x = allocate(n * places), *out = allocate(n * used), *mass;
    pe_ray ray[2];
    for (int side = 0; side < 2; ++side) {
        for (int part = 0; part < 2; ++part) weight[side][part] = filled(places * 3 * size, weight_of);
        node[side][0] = filled(size, node_real);
        node[side][1] = filled(size, node_imag);
        /* to the right distances are below 0 */
        for (size_t j = 0; j < size && side == 0; ++j) node[side][0][j] *= -1.0;
        const pe_ray made = {node[side][0], node[side][1], weight[side][0], weight[side][1], size, 3};
        ray[side] = made;
    }
    for (size_t i = 0; i < n * places; ++i)
        x[i] = below(6) ? (below(2) ? 1.0 : -1.0) * log_uniform(1e-9, 1e2) : 0.0;
    for (size_t i = 0; i < n; ++i)
        pe_place_integrals(places, x + i * places, reach, 2, PANELS, BLOCKS, &ray[0], &ray[1], first, used,
                           out + i * used);
    for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < used; ++k) {
            double sum = 0.0;
            for (size_t j = 0; j < places; ++j) {
                const double at = x[i * places + j], factor[2] = {at, 0.0};
                const double panels = fmin(fmax(ceil(log2(reach / fabs(at))) + 1.0, 2.0), PANELS);
                const int64_t blocks = BLOCKS * (int64_t)panels, row = (int64_t)j;
                const pe_ray *own = &ray[at < 0.0 ? 0 : 1];
                double found[6];
                pe_ray_sums(1, factor, &blocks, &row, size, own->node_real, own->node_imag, 3,
                            own->weight_real, own->weight_imag, found);
                sum += found[2 * (first + k) + 1];
            }
            require(!differ(sum, out[i * used + k]), "place_integrals", "the sum of places", x[i * places]);
        }
    mass = filled(places, probability);
    const double tilt = uniform(-3.0, 4.0);
    for (size_t i = 0; i < n * used; ++i) out[i] = 0.0;
    for (size_t i = 0; i < n; ++i)
        pe_atom_integrals(places, x + i * places, mass, tilt, first, used, out + i * used);
    for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < used; ++k) {
            long double sum = 0.0L, moduli = 0.0L;
            for (size_t j = 0; j < places; ++j) {
                const long double at = x[i * places + j], a = tilt, b = tilt - 1.0L;
                long double one = a > 0.0L ? (at > 0.0L) * expl(-a * at) : -(at <= 0.0L) * expl(-a * at);
                const long double other =
                    b > 0.0L ? (at > 0.0L) * expl(-b * at) : -(at <= 0.0L) * expl(-b * at);
                if (first + k == 1) one = other;
                /* 1/(s (s - 1)) is the difference of both, which cancels: by parts, then */
                if (first + k == 2)
                    one = b > 0.0L   ? (at > 0.0L ? -expl(-b * at) * expm1l(-at) : 0.0L)
                          : a < 0.0L ? (at < 0.0L ? -expl(-a * at) * expm1l(at) : 0.0L)
                                     : -expl(at > 0.0L ? -a * at : -b * at);
                if (one == 0.0L) continue;
                sum += mass[j] * one;
                moduli += mass[j] * fabsl(one) * (1.0L + fmaxl(fabsl(a), fabsl(b)) * fabsl(at));
            }
            require(fabsl(out[i * used + k] - sum) <= (16.0L + (long double)places) * U * moduli + 1e-300L,
                    "atom_integrals", "the sum of atoms", x[i * places]);
        }
    whole_line(places, x, mass, tilt, reach, ray, first, used);
    for (int side = 0; side < 2; ++side)
        for (int part = 0; part < 2; ++part) {
            free(node[side][part]);
            free(weight[side][part]);
        }
    free(x);
    free(out);
    free(mass);
}

/* That pair as a law that is searched: its threshold c is at x = e^c/2. */
static int searched_roughly(void *handle, double c, double *masses) {
    const double x = fmin(0.5 * exp(c), 1.0), own[4] = {1.0 - x, x, (1.0 - x) * (1.0 + x), x * x};
    (void)handle;
    for (int k = 0; k < 4; ++k) masses[k] = own[k];
    return PE_OK;
}

static int searched_tails(void *handle, size_t n, const double *c, double *tails) {
    const double error = *(const double *)handle;
    for (size_t i = 0; i < n; ++i) {
        double masses[4];
        searched_roughly(handle, c[i], masses);
        for (size_t k = 0; k < 4; ++k)
            tails[k * n + i] = masses[k] * (1.0 + 0.5 * error * uniform(-1.0, 1.0));
        tails[4 * n + i] = error + 16.0 * U * (1.0 + fabs(c[i]));
        tails[5 * n + i] = 0.0;
    }
    return PE_OK;
}

static int refused(void *handle, double x, double *out) {
    (void)handle;
    *out = x;
    return PE_RAISED;
}

/* The pair of the densities 1 and 2 x on (0, 1), of the loss log 2 x, whose T(alpha) is found from any guess. */
void fuzz_level_search(void) {
    enum { LEVELS = 3 };
    static const double JUMPS[] = {-1.0, 0.25, 0.5};
    double error = below(4) ? log_uniform(1e-16, 1e-6) : 0.0, alpha[LEVELS], low[LEVELS], high[LEVELS];
    double out[7][LEVELS], hull[6][LEVELS], root[2];
    const int is_searched = below(3) != 0; /* or expected closely */
    const pe_tests law = {&error,
                          searched_tails,
                          is_searched ? searched_roughly : NULL,
                          {-40.0, log(2.0)},
                          below(2),
                          below(LENGTH(JUMPS) + 1),
                          JUMPS,
                          below(2) ? log_uniform(1e-15, 1e-9) : 0.0};
    const double farthest = is_searched ? 5.0 : 1e-6;
    for (size_t i = 0; i < LEVELS; ++i) {
        alpha[i] = below(2) ? log_uniform(1e-9, 1.0) : 1.0 - log_uniform(1e-9, 1.0);
        low[i] = log(2.0 * (1.0 - alpha[i])) - log_uniform(1e-9, farthest) * uniform(-0.2, 1.0);
        high[i] = low[i] + log_uniform(1e-9, farthest);
    }
    require(pe_tests_errors(&law, LEVELS, alpha, low, high, 16.0 * U, 0.0, out[0]) == PE_OK, "tests_errors",
            "a status", alpha[0]);
    require(pe_tests_hull(&law, &law, LEVELS, alpha, low, high, 16.0 * U, hull[0]) == PE_OK, "tests_hull",
            "a status", alpha[0]);
    for (size_t i = 0; i < LEVELS; ++i) {
        const long double a = alpha[i], beta = (1.0L - a) * (1.0L - a), gamma = a * (2.0L - a);
        for (int of = 0; of < 2; ++of) {
            double (*found)[LEVELS] = of ? hull : out;
            const char *name = of ? "tests_hull" : "tests_errors";
            require(found[1][i] <= beta && found[2][i] >= beta, name, "beta lies between", alpha[i]);
            require(found[4][i] <= gamma && found[5][i] >= gamma, name, "gamma lies between", alpha[i]);
            /* a hull does not tell levels from 1 that masses err by as much */
            const int is_told = !of || error < 0.01 * (1.0 - alpha[i]);
            require(!is_told ||
                        found[5][i] - found[4][i] <= 100.0 * error + 1e-6 * fabs(high[i] - low[i]) + 1e-9,
                    name, "bounds are close", alpha[i]);
        }
    }
    const double ends[2] = {-1.0, 1.0}, expected[2] = {0.0, 0.1};
    require(pe_falling_root(refused, NULL, expected, ends, 0.0, 0, NULL, 0.0, root) == PE_RAISED,
            "falling_root", "a status", 0.0);
}

/* The pair of the densities 1 and 2 x on (0, 1), of the loss log 2 x, has T(alpha) = (1 - alpha)^2. */
void fuzz_levels(void) {
    enum { POINTS = 4, LEVELS = 3 };
    double alpha[LEVELS], c[POINTS][LEVELS], tails[6][POINTS][LEVELS], reach[POINTS][LEVELS];
    double out[7][LEVELS], least[POINTS][LEVELS], most[POINTS][LEVELS];
    double below_line[POINTS][LEVELS], above_line[POINTS][LEVELS];
    const double error = below(4) ? log_uniform(1e-16, 1e-2) : 0.5 * U, width = log_uniform(1e-9, 0.3);
    for (size_t i = 0; i < LEVELS; ++i) {
        alpha[i] = below(2) ? log_uniform(1e-9, 1.0) : 1.0 - log_uniform(1e-9, 1.0);
        double place[POINTS];
        /* the outer ones are surely on their sides mostly */
        for (size_t j = 0; j < POINTS; ++j) place[j] = (1.0 - alpha[i]) * (1.0 + width * uniform(-1.0, 1.0));
        qsort(place, POINTS, sizeof(double), compare);
        for (size_t j = 0; j < POINTS; ++j) {
            const double x = fmin(place[POINTS - 1 - j], 1.0);
            c[j][i] = log(2.0 * x);
            const double exact[4] = {1.0 - x, x, (1.0 - x) * (1.0 + x), x * x};
            for (int k = 0; k < 4; ++k) tails[k][j][i] = exact[k] * (1.0 + 0.5 * error * uniform(-1.0, 1.0));
            tails[4][j][i] = error + 4.0 * U;
            tails[5][j][i] = 4.0 * U;
            reach[j][i] = tails[5][j][i] + 4.0 * U * (1.0 + fabs(c[j][i]));
        }
    }
    pe_level_excess(POINTS, LEVELS, alpha, tails[0][0], 16.0 * U, least[0], most[0]);
    pe_level_tangents(POINTS, LEVELS, alpha, c[0], reach[0], tails[0][0], 16.0 * U, below_line[0],
                      above_line[0]);
    pe_level_errors(POINTS, LEVELS, alpha, c[0], tails[0][0], 16.0 * U, 0.0, out[0]);
    double worst[LEVELS], kept[LEVELS];
    pe_level_chord(POINTS, LEVELS, alpha, tails[0][0], 16.0 * U, worst, kept);
    for (size_t i = 0; i < LEVELS; ++i) {
        const long double a = alpha[i], beta = (1.0L - a) * (1.0L - a), gamma = a * (2.0L - a);
        for (size_t j = 0; j < POINTS; ++j) {
            const long double x = 0.5L * expl(c[j][i]), slack = 4.0L * U * (1.0L + fabsl(c[j][i])) * x;
            const long double true_excess = (1.0L - a) - x;
            require(least[j][i] <= true_excess + slack && most[j][i] >= true_excess - slack, "level_excess",
                    "the mass less the level", alpha[i]);
            require(below_line[j][i] <= beta && above_line[j][i] >= gamma, "level_tangents", "a line below",
                    alpha[i]);
        }
        require(out[1][i] <= beta && out[2][i] >= beta, "level_errors", "beta lies between", alpha[i]);
        require(out[4][i] <= gamma && out[5][i] >= gamma, "level_errors", "gamma lies between", alpha[i]);
        require(worst[i] >= beta && kept[i] <= gamma, "level_chord", "a chord above", alpha[i]);
        require(fabsl(out[0][i] + out[3][i] - 1.0L) <= 4.0L * (error + U), "level_errors", "add up to 1",
                alpha[i]);
    }
}
