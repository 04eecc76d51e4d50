/* Random inputs to the kernels: what the kinds of inputs share. */
#ifndef PYENGINE_FUZZ_H
#define PYENGINE_FUZZ_H

#include "../checks.h"

void begin_input(uint64_t seed, uint64_t input);
uint64_t random_bits(void);
size_t below(size_t n);
double uniform(double low, double high);
double log_uniform(double low, double high);
/* A double of any kind: any bits, an extreme or a neighbour of one, or a common number. */
double anything(void);
double probability(void);
double *filled(size_t n, double (*value)(void));

/* Counts and prints a law that a kernel broke. */
void require(int ok, const char *kernel, const char *law, double at);
int failures(void);

/* elementwise.c */
void fuzz_unary(void);
void fuzz_ternary(void);

/* composed_loss.c */
void fuzz_pair(void);
void fuzz_law(void);
void fuzz_answers(void);

/* lattice.c */
void fuzz_normal_cells(void);
void fuzz_lattice(void);
void fuzz_sums(void);
void fuzz_spectrum(void);

/* gauss.c */
void fuzz_gauss(void);

/* transforms.c */
void fuzz_loss_transform(void);
void fuzz_loss_transform_grid(void);
void fuzz_lane_log(void);
void fuzz_node_sums(void);
void fuzz_powers(void);

/* lines.c */
void fuzz_trig_sums(void);
void fuzz_place_integrals(void);
void fuzz_levels(void);
void fuzz_level_search(void);

/* exact_sums.c */
void fuzz_exact_sums(void);

/* random_losses.c */
void fuzz_sampling(void);

#endif
