/* The kernels of Laplace steps: transforms of losses, sums on lines and along rays, and bounds at levels. */
#include "kernel.h"

enum { LOSSES = 226, FREQUENCIES = 64, PLACES = 32 };

static double *apart, *share, *frequency, *real, *imag;
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

enum { LINE = 512, AT = 5, ROWS = 4, PARTS = 6 };

static double *line_node, *line_weight, *line_sum, *line_at, *tails, *level, *found;

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

static void prepare_levels(void) {
    tails = icount_doubles((size_t)PARTS * ROWS * PLACES);
    level = icount_doubles((size_t)(ROWS + 1) * PLACES);
    found = icount_doubles((size_t)7 * PLACES);
    for (size_t i = 0; i < (size_t)ROWS * PLACES; i++) {
        const double x = icount_between(0.2, 0.8, i), masses[] = {1.0 - x, x, 1.0 - x * x, x * x, 1e-15, 0.0};
        for (size_t part_of = 0; part_of < PARTS; part_of++)
            tails[part_of * ROWS * PLACES + i] = masses[part_of];
        level[PLACES + i] = log(2.0 * x);
    }
    for (size_t i = 0; i < PLACES; i++) level[i] = icount_between(0.1, 0.9, i);
}

static void laplace_levels(void) {
    pe_level_errors(ROWS, PLACES, level, level + PLACES, tails, 0x1p-49, 0.0, found);
    icount_require_numbers(found, (size_t)7 * PLACES);
}
KERNEL("laplace_levels", prepare_levels, laplace_levels);
