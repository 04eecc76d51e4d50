/* A composition of steps (struct pe_pair), and its contours at each level of truncation.  Private to the core. */
#ifndef PE_PAIR_H
#define PE_PAIR_H

#include "contours.h"
#include "loss_nodes.h"
#include "spectral.h"

/* Level 0 keeps the whole law.  Level i serves values down to e^PE_LEVELS[i] and cuts off the z that carry less than
 * e^-41 of that.  Where one large loss is likelier than many small ones, the exponential tilt would otherwise put its
 * weight on a mode far out whose probability does not matter. */
enum {
    PE_N_LEVELS = 8,
    PE_FEW_KINDS = PE_N_LEVELS, /* the whole law by interpolation between few kinds of steps: noise_nodes.h */
    PE_N_CONTOURS,
};
extern const double PE_LEVELS[PE_N_LEVELS];

/* Steps of one pair of mixtures of normals, or of several of which the release shows one. */
typedef struct {
    double steps;
    size_t alternatives;
    double log_share[PE_ALTERNATIVES]; /* logs of the probabilities of the alternatives */
    pe_mixtures law[PE_ALTERNATIVES];
    double *block; /* memory of the shifts and weights */
    pe_terms *exact; /* the laws as sums of two doubles, for proofs; NULL if not given */
    pe_dd *exact_block; /* memory of their shifts and weights */
} pe_mixed_step;

/* Steps of a law given as a table of losses and weights. */
typedef struct {
    double steps;
    pe_table table;
    double *block; /* memory of losses, weights and the largest weight of each block */
} pe_listed_step;

struct pe_pair {
    size_t n; /* kinds of sampled Gaussian steps, */
    double *noise, *p, *steps; /* with noise multiplier, sampling probability and number of steps of each */
    size_t n_mixed, n_listed;
    pe_mixed_step *mixed;
    pe_listed_step *listed;
    int reversed; /* whether A is the law with the record */
    double cost_limit; /* node evaluations allowed for one contour */
    pe_contours *levels[PE_N_CONTOURS]; /* NULL until asked for */
    pe_kinds few; /* families of kinds for PE_FEW_KINDS; none where the kinds are few anyway */
};

/* Whether there are contours of PE_FEW_KINDS. */
int pe_pair_has_few(const pe_pair *pair);

/* Number of kinds of steps that are not sampled Gaussians: mixtures and tables. */
size_t pe_pair_others(const pe_pair *pair);

/* Whether the laws of all steps are given exactly enough for proofs. */
int pe_pair_is_exact(const pe_pair *pair);

/* The contours of a level, made when first asked for.  Returns a status. */
int pe_pair_contours(pe_pair *pair, int level, pe_contours **out);

/* To be called at the start of a question: forgets that memory was short in an earlier one. */
void pe_pair_retry(pe_pair *pair);

#endif
