/* Inside of the spectral engine: a composition, and its contours at each level of truncation. */
#ifndef PE_PAIR_H
#define PE_PAIR_H

#include "contours.h"
#include "loss_nodes.h"
#include "spectral.h"

/* Level 0 keeps the whole law.  The others serve values down to a log-probability and remove the
 * z that carry less than e^-41 of it: where one large step is likelier than many small ones, the
 * exponential tilt would otherwise meet a mode far out that has no probability. */
enum {
    PE_N_LEVELS = 8,
    PE_FEW_KINDS =
        PE_N_LEVELS, /* the whole law, with few kinds of steps in the place of many: noise_nodes.h */
    PE_N_CONTOURS,
};
extern const double PE_LEVELS[PE_N_LEVELS];

/* A kind of step that is one of several pairs of mixtures. */
typedef struct {
    double steps;
    size_t alternatives;
    double log_share[PE_ALTERNATIVES];
    pe_mixtures law[PE_ALTERNATIVES];
    double *block;       /* shifts and weights */
    pe_terms *exact;     /* the same for proofs, one for each alternative, NULL where they are not known */
    pe_dd *exact_block; /* their shifts and weights */
} pe_mixed_step;

/* A kind of step that is known by a table. */
typedef struct {
    double steps;
    pe_table table;
    double *block; /* losses, weights and peaks */
} pe_listed_step;

struct pe_pair {
    size_t n;
    double *noise, *p, *steps;
    size_t n_mixed, n_listed;
    pe_mixed_step *mixed;
    pe_listed_step *listed;
    int reversed;
    double cost_limit;
    pe_contours *levels[PE_N_CONTOURS];
    pe_kinds few; /* kinds in the place of its own; has no families where they are few anyway */
};

/* Whether there are contours of PE_FEW_KINDS. */
int pe_pair_has_few(const pe_pair *pair);

/* Kinds of steps beside the sampled Gaussians: of mixtures and of tables. */
size_t pe_pair_others(const pe_pair *pair);

/* Whether the numbers of all steps are known well enough for proofs. */
int pe_pair_is_exact(const pe_pair *pair);

/* The contours of a level, a set that is made when it is first asked for.  Returns a status. */
int pe_pair_contours(pe_pair *pair, int level, pe_contours **out);

/* A new question: forgets that memory was short in an earlier one. */
void pe_pair_retry(pe_pair *pair);

#endif
