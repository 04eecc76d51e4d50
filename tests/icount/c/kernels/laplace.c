/* The kernels of Laplace steps: transforms of losses, tables of polynomials, and laws on panels. */
#include "kernel.h"

#include <string.h>

enum { LOSSES = 226, FREQUENCIES = 64, SIZE = 24, POINTS = 65, PANELS = 8, PLACES = 32 };

static double *apart, *share, *frequency, *real, *imag;
static double *table, *weight, *series, *spectrum, *sums;
static double *rest, *scale, *place, *part, *ends;
static int64_t panel[PLACES];
static double *factor, *node, *ray, *rays;
static int64_t ray_blocks[FREQUENCIES], ray_row[FREQUENCIES];

static void prepare_transform(void) {
    apart = icount_doubles(LOSSES);
    share = icount_doubles(LOSSES);
    frequency = icount_doubles(FREQUENCIES);
    real = icount_doubles(FREQUENCIES);
    imag = icount_doubles(FREQUENCIES);
    for (size_t i = 0; i < LOSSES; i++) {
        apart[i] = icount_between(-0.01, 0.03, i);
        share[i] = 1.0 / LOSSES;
    }
    for (size_t i = 0; i < FREQUENCIES; i++) frequency[i] = 1000.0 * (double)i;
}

static void laplace_transform(void) {
    pe_loss_transform(FREQUENCIES, frequency, LOSSES, apart, share, real, imag);
    icount_require_numbers(real, FREQUENCIES);
    icount_require(real[1] < 0.0, "the transform is below 1");
}
KERNEL("laplace_transform", prepare_transform, laplace_transform);

static void laplace_transform_grid(void) {
    const int status = pe_loss_transform_grid(FREQUENCIES, 1000.0, LOSSES, apart, share, real, imag);
    icount_require(status == PE_OK, "there is memory");
    icount_require(real[1] < 0.0, "the transform is below 1");
}
KERNEL("laplace_transform_grid", prepare_transform, laplace_transform_grid);

static void prepare_rays(void) {
    enum { SIZE_OF_RAY = 256, KINDS = 3 };
    factor = icount_doubles(2 * FREQUENCIES);
    node = icount_doubles(2 * SIZE_OF_RAY);
    ray = icount_doubles(KINDS * SIZE_OF_RAY);
    rays = icount_doubles(2 * KINDS * FREQUENCIES);
    for (size_t i = 0; i < SIZE_OF_RAY; i++) {
        node[i] = -0.7 * (double)i;
        node[SIZE_OF_RAY + i] = 100.0 + 0.7 * (double)i;
    }
    for (size_t i = 0; i < KINDS * SIZE_OF_RAY; i++) ray[i] = 1.0 / SIZE_OF_RAY;
    for (size_t i = 0; i < FREQUENCIES; i++) {
        factor[2 * i] = icount_between(0.01, 1.0, i);
        ray_blocks[i] = SIZE_OF_RAY / 8;
    }
}

static void laplace_rays(void) {
    pe_ray_sums(FREQUENCIES, factor, ray_blocks, ray_row, 256, node, node + 256, 3, ray, ray, rays);
    icount_require_numbers(rays, (size_t)6 * FREQUENCIES);
}
KERNEL("laplace_rays", prepare_rays, laplace_rays);

static void prepare_table(void) {
    table = icount_doubles((size_t)SIZE * SIZE * SIZE);
    weight = icount_doubles((size_t)SIZE * SIZE * (SIZE + 1));
}

static void laplace_table(void) {
    memset(weight, 0, (size_t)SIZE * SIZE * (SIZE + 1) * sizeof(double));
    icount_require(pe_legendre_products(SIZE, table, weight) == PE_OK, "there is memory");
    icount_require(fabs(table[0] - 0.5) < 1e-15, "masses are multiplied");
}
KERNEL("laplace_table", prepare_table, laplace_table);

static void prepare_products(void) {
    prepare_table();
    laplace_table();
    spectrum = icount_doubles((size_t)2 * SIZE * POINTS);
    sums = icount_doubles((size_t)4 * SIZE * POINTS);
    for (size_t i = 0; i < (size_t)2 * SIZE * POINTS; i++) spectrum[i] = icount_between(-1.0, 1.0, i);
}

static void laplace_products(void) {
    const int status = pe_panel_products(POINTS, SIZE, SIZE, SIZE, SIZE, table, spectrum, spectrum, 1, sums);
    icount_require(status == PE_OK, "there is memory");
    icount_require_numbers(sums, (size_t)4 * SIZE * POINTS);
}
KERNEL("laplace_products", prepare_products, laplace_products);

static void prepare_ends(void) {
    series = icount_doubles((size_t)PANELS * SIZE);
    rest = icount_doubles(PLACES);
    scale = icount_doubles(SIZE);
    place = icount_doubles(PLACES);
    part = icount_doubles(PLACES);
    ends = icount_doubles(PLACES);
    for (size_t i = 0; i < (size_t)PANELS * SIZE; i++) series[i] = i % SIZE ? 0.01 : 1.0;
    for (size_t i = 0; i < SIZE; i++) scale[i] = sqrt(2.0 * (double)i + 1.0);
    for (size_t i = 0; i < PLACES; i++) {
        rest[i] = icount_between(0.0, 1.0, i);
        place[i] = ((double)i + 0.5) / PLACES;
        part[i] = 1.0 / PLACES;
        panel[i] = (int64_t)(i % PANELS);
    }
}

static void laplace_ends(void) {
    pe_panel_ends(PLACES, rest, panel, SIZE, series, scale, 0.5, 0.1, 1.0, PLACES, place, part, ends);
    icount_require_numbers(ends, PLACES);
}
KERNEL("laplace_ends", prepare_ends, laplace_ends);

enum { LINE = 512, AT = 5, BEYOND = 64, ROWS = 4, PARTS = 6 };

static double *line_node, *line_weight, *line_sum, *line_at, *atom, *inner, *tails, *level, *found;

static void prepare_line(void) {
    line_node = icount_doubles(LINE);
    line_weight = icount_doubles((size_t)2 * LINE);
    line_sum = icount_doubles((size_t)2 * AT);
    line_at = icount_doubles(AT);
    for (size_t i = 0; i < LINE; i++) line_node[i] = 0.1 * (double)i;
    for (size_t i = 0; i < (size_t)2 * LINE; i++) line_weight[i] = 1.0 / LINE;
    for (size_t i = 0; i < AT; i++) line_at[i] = icount_between(-3.0, 3.0, i);
}

/* Masses of two laws at some thresholds of many steps. */
static void laplace_line(void) {
    pe_trig_sums(AT, line_at, LINE, line_node, 2, line_weight, line_weight, line_sum);
    icount_require_numbers(line_sum, (size_t)2 * AT);
}
KERNEL("laplace_line", prepare_line, laplace_line);

static void prepare_beyond(void) {
    prepare_ends();
    atom = icount_doubles(BEYOND);
    inner = icount_doubles(PANELS);
    for (size_t i = 0; i < PANELS; i++) inner[i] = 0.1;
    for (size_t i = 0; i < BEYOND; i++) atom[i] = 1e-3;
}

/* A law of few steps beyond places. */
static void laplace_beyond(void) {
    const pe_panel_row row = {0.0, 0.5, 0.0, PANELS, SIZE, BEYOND, series, scale, atom};
    const pe_panel_rule rule = {0.5, 0.1, 1.0, PLACES, place, part, inner, inner};
    pe_panel_beyond(&row, &rule, PLACES, rest, 0, ends);
    icount_require_numbers(ends, PLACES);
}
KERNEL("laplace_beyond", prepare_beyond, laplace_beyond);

static void prepare_levels(void) {
    tails = icount_doubles((size_t)PARTS * ROWS * PLACES);
    level = icount_doubles((size_t)(ROWS + 1) * PLACES);
    found = icount_doubles((size_t)4 * PLACES);
    for (size_t i = 0; i < (size_t)ROWS * PLACES; i++) {
        const double x = icount_between(0.2, 0.8, i), masses[] = {1.0 - x, x, 1.0 - x * x, x * x, 1e-15, 0.0};
        for (size_t part_of = 0; part_of < PARTS; part_of++)
            tails[part_of * ROWS * PLACES + i] = masses[part_of];
        level[PLACES + i] = log(2.0 * x);
    }
    for (size_t i = 0; i < PLACES; i++) level[i] = icount_between(0.1, 0.9, i);
}

static void laplace_levels(void) {
    pe_level_bounds(ROWS, PLACES, level, level + PLACES, tails, 0x1p-49, 0.0, found);
    icount_require_numbers(found, (size_t)4 * PLACES);
}
KERNEL("laplace_levels", prepare_levels, laplace_levels);
