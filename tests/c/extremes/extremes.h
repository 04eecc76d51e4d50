/* The kernels on extremes: what cases.c runs.  Each function returns the number of its failures. */
#ifndef PYENGINE_EXTREMES_H
#define PYENGINE_EXTREMES_H

#include "../checks.h"

/* elementwise.c */
int run_unary(void);
int run_ternary(void);

/* composed_loss.c */
int run_step(void);
int run_pair(void);
int run_mixtures(void);

/* sector.c */
int run_sector(void);

/* answers.c */
int run_answers(void);

/* lattice.c */
int run_lattice(void);

/* panels.c */
int run_panels(void);
int run_gauss(void);
int run_step_nodes(void);
int run_corners(void);

/* random_losses.c */
int run_sampling(void);
int run_random_steps(void);
int run_transforms(void);
int run_rays(void);

/* levels.c */
int run_levels(void);
int run_line_masses(void);
int run_line_sums(void);

#endif
