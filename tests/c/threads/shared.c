/* Threads that share what the Python side shares, under ThreadSanitizer: make threads.
 *
 * Kernels have no globals, so calls on arrays of their own need no care; a law on pieces is
 * immutable once made, and any number of threads may ask it.  (A pe_pair is not: its questions hold
 * a lock.)  Each thread must get the bits that one thread alone gets.
 */
#include "../checks.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 20, POINTS = 24 };

static pe_sector *LAW;
static double TARGETS[POINTS], LEVELS[POINTS];

typedef struct {
    double rows[PE_ROW * POINTS], places[POINTS], tail[POINTS], sums[POINTS], cells[POINTS + 1];
} answers;

static void ask(answers *out) {
    const ptrdiff_t s = sizeof(double);
    const double df = 3.0, nc = 2.0;
    pe_sector_at(LAW, 0, POINTS, LEVELS, out->rows);
    pe_sector_solve(LAW, 1, PE_A_ABOVE, POINTS, TARGETS, out->places);
    pe_ncx2_strided(PE_NCX2_SF, POINTS, (const char *)LEVELS, s, (const char *)&df, 0, (const char *)&nc, 0,
                    (char *)out->tail, s);
    pe_log_ndtr_array(LEVELS, out->sums, POINTS);
    pe_normal_cells(POINTS, LEVELS, 0.5, out->cells);
}

static void *work(void *expected) {
    answers *mine = malloc(sizeof *mine);
    size_t differences = mine == NULL;
    for (int round = 0; mine != NULL && round < ROUNDS; ++round) {
        memset(mine, 0, sizeof *mine);
        ask(mine);
        differences += memcmp(mine, expected, sizeof *mine) != 0;
    }
    free(mine);
    return (void *)differences;
}

int main(void) {
    static answers expected;
    size_t failures = 0;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < POINTS; ++i) {
        TARGETS[i] = -0.1 - 2.0 * (double)i;
        LEVELS[i] = 0.01 + 0.3 * (double)i;
    }
    pe_sector *one = NULL;
    pe_sector_pieces *pieces = pe_sector_pieces_new();
    const double shift[2] = {1.0, 0.0}, ratio[2] = {0.1 / 0.9, 0.0}, floor[2] = {log1p(-0.1), 0.0};
    if (!pieces || pe_sector_step(shift, ratio, floor, 0.1, -75.0, -75.0, 2.0, -INFINITY, &one) != PE_OK ||
        pe_sector_convolve(one, one, pieces, &LAW) != PE_OK || pe_sector_keep(LAW) != PE_OK) {
        fprintf(stderr, "no law\n");
        return EXIT_FAILURE;
    }
    memset(&expected, 0, sizeof expected);
    ask(&expected);
    for (size_t k = 0; k < THREADS; ++k)
        if (pthread_create(&threads[k], NULL, work, &expected) != 0) return EXIT_FAILURE;
    for (size_t k = 0; k < THREADS; ++k) {
        void *differences;
        pthread_join(threads[k], &differences);
        failures += (size_t)differences;
    }
    pe_sector_free(one);
    pe_sector_free(LAW);
    pe_sector_pieces_free(pieces);
    printf("%d threads, %d rounds each: %zu answers differ\n", THREADS, ROUNDS, failures);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
