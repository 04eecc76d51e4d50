/* The vertical lines (contours) of one pair at one level of truncation, and what lines of estimates and of proofs share.
 * Private to the core: spectral.c chooses lines, contour.c builds those of estimates, contour_rows.c sums on them. */
#ifndef PE_SPECTRAL_H
#define PE_SPECTRAL_H

#include "lane_trig.h"
#include "loss_nodes.h"
#include "noise_nodes.h"

/* A tilt lambda at a given signed root w = sign(lambda) sqrt(2 (lambda K' - K)); A(S > K') is about Phi(-w). */
typedef struct pe_edge {
    struct pe_edge *before; /* the one that was made before it */
    double lambda, sd; /* sd = sqrt(K''(lambda)) */
    double cost; /* node evaluations of the searches for this edge and for those on the way to it */
    pe_cumulants k;
    double approximation[PE_FUNCTIONALS]; /* values of pe_edge_log, NaN until asked for */
} pe_edge;

enum {
    PE_PLACES = 48, /* places -48..48, 2.5 apart in w: w up to 120, log-probabilities down to -7200 */
    PE_NOWHERE = PE_PLACES + 1, /* instead of a place whose search costs too much */
    PE_TABLE = 16, /* points of a line's table, a multiple of PE_LANES */
    PE_NEAR = 8, /* proven lines beside a pole, at 4^-1 ... 4^-8 over sd */
    PE_REACHES = 4, /* proven lines of a place: for thresholds 3, 24, 192 and 1536 sd from the mean */
};

#define PE_HALF_PITCH 1.25 /* distance of edges in the signed root */
#define PE_BEYOND_LOG -800.0 /* log of a bound below which every value underflows */

/* A vertical line Re lambda = const with everything that does not depend on c. */
typedef struct pe_line {
    struct pe_line *before; /* the one that was made before it */
    int status; /* of pe_line_build; a line that failed is kept, not tried again */
    double lambda;
    double k0, c_ref, sd; /* K, K', sqrt(K'') at lambda */
    double ht; /* spacing in t; the period is 2 pi / ht */
    size_t nt;
    double *weights; /* per node 4 complex numbers: transform times 1 and each kernel of Lemma 1 */
    double mass[4]; /* sums of their moduli */
    double theta[2], theta_k[2]; /* tilts left and right of lambda that bound the aliases, and K there */
    double truncation; /* estimate of the omitted range of t, in units of the integrand */
    double rounding; /* estimate of the absolute error of the exponent K - lambda c */
    double term_rounding; /* estimate of the relative error of one term of the sums */
    /* log values and slopes on a grid of c around the place, from which Newton's method starts */
    int has_table[PE_FUNCTIONALS];
    double table_c, table_step;
    double table[PE_FUNCTIONALS][PE_TABLE], slope[PE_FUNCTIONALS][PE_TABLE];
} pe_line;

/* A line beside a pole; sd is 0 until it is placed. */
typedef struct {
    double lambda, sd;
    pe_cumulants k;
} pe_near_place;

/* Proven lines of all places; the first index tells how the place was moved clear of the poles, as in
 * pe_contours.lines. */
typedef struct {
    struct pe_certified *at[4][2 * PE_PLACES + 1];
} pe_proven_places;

/* Proven lines, by how far from their mean they serve thresholds, and the other proven bounds of a place. */
typedef struct pe_proven {
    pe_proven_places *reach[PE_REACHES]; /* NULL until one is asked for */
    struct pe_certified *near[PE_REACHES][2][PE_NEAR]; /* left of the pole 0, and right of 1 */
    pe_near_place near_place[2][PE_NEAR];
    struct pe_chernoff *chernoff[2 * PE_PLACES + 1];
    struct pe_divided_line *divided;
} pe_proven;

typedef struct {
    size_t n_groups;
    pe_group *groups;
    const pe_kinds *kinds; /* whose families are among the groups; NULL where there are none */
    double gaussian_variance; /* sum of n mu^2 over the steps with p = 1, */
    pe_dd exact_variance; /* and the same as a sum of two doubles, for proofs */
    double cost_limit; /* node evaluations allowed for one line of estimates */
    double most_work; /* nodes times values allowed for a proven line in this question */
    double search_limit; /* node evaluations allowed for the search for an edge */
    int reversed;
    int both_ends; /* whether small z are cut off as well as large ones */
    int no_memory; /* whether an edge could not be allocated in this question */
    double log_cut; /* log of a bound of the probability that is cut off */
    pe_edge *edges[4 * PE_PLACES + 3]; /* places are the even ones */
    pe_line *lines[4][2 * PE_PLACES + 1];
    pe_edge *last_edge; /* list of all edges by `before`, as most places are empty */
    pe_line *last_line; /* the same of lines */
    struct pe_proven *proven; /* NULL until a proven line is asked for */
} pe_contours;

pe_cumulants pe_contours_cumulants(const pe_contours *contours, double lambda);

/* Builds the line at ln->lambda; ln is otherwise zero.  Returns a status. */
int pe_line_build(const pe_contours *contours, pe_line *ln);
void pe_line_free(pe_line *ln);

/* Sets the line's thetas to those that need the shortest period for small aliases, and K there; INFINITY if K is known
 * nowhere on that side. */
void pe_line_choose_thetas(const pe_contours *contours, pe_line *ln);

/* The period that keeps the aliases small, given K at the thetas. */
double pe_line_period(const pe_line *ln);

/* Sets the weights, e^{e_re + i e_im} at t = k ht (half of it at t = 0) times 1, 1/lambda, 1/(lambda-1),
 * 1/(lambda(lambda-1)), and the sums of their moduli. */
int pe_line_set_weights(pe_line *ln, const double *e_re, const double *e_im);

/* The four sums, times ht/pi, at PE_LANES thresholds; rotations start anew every 16 terms. */
void pe_line_sums(const pe_line *ln, const double *c, double sum[4][PE_LANES]);

/* One row of results at c. */
typedef struct {
    double density_log;
    double log_value[PE_FUNCTIONALS], error[PE_FUNCTIONALS];
    double rounded; /* of proven rows: the largest share that the rounding of a sum has in a kernel's error */
} pe_row;

/* Rows at c[0..n-1], n <= PE_LANES.  A row's bits do not depend on its neighbours. */
void pe_line_evaluate(const pe_contours *contours, const pe_line *ln, size_t n, const double *c,
                      pe_row *rows);

/* The log of a functional and its derivative by c at c[0..n-1], n <= PE_LANES, with the same bits as rows. */
void pe_line_slopes(const pe_contours *contours, const pe_line *ln, int functional, size_t n, const double *c,
                    double *value, double *slope);

/* Edge i: the lambda with signed root i PE_HALF_PITCH.  NULL without memory, beyond the last place, or where the search
 * costs too much. */
pe_edge *pe_contours_edge(pe_contours *contours, int i);

/* Log of a functional at c = K' of an edge, to a few per cent. */
double pe_edge_log(pe_edge *e, int functional);

/* The status after pe_contours_edge has returned NULL. */
int pe_edge_status(const pe_contours *contours);

/* The abscissa of a place, moved at least 1/sd away from the poles 0 and 1, to the side on which
 * the functional has the smaller error.  `moved`: whether it was. */
double pe_clear_of_poles(double lambda, double sd, int functional, int *moved);

/* The place whose saddle point is nearest to c, searched from `place` on; PE_NOWHERE if an edge is missing. */
int pe_contours_nearest(pe_contours *contours, double c, int place);

/* The place where an approximation of the log of a functional is nearest to a target; PE_NOWHERE as above. */
int pe_contours_of_value(pe_contours *contours, int functional, double log_target);

/* Thresholds at which the log of a functional on the line of a place has n <= PE_LANES values, to about 1e-8 sd; NaN, or
 * a threshold far from the line, where there is none.  Each has the bits that it has alone. */
void pe_contours_roots(pe_contours *contours, const pe_line *ln, int place, int functional, size_t n,
                       const double *log_target, double *root);

/* A row as PE_ROW numbers; a row of NaN; and the relative error of a row over what is good enough: above 1, try
 * again. */
void pe_put_row(const pe_row *row, double c, double *out);
void pe_fail_row(double *out);
double pe_row_shortfall(const double *row, int functional);

/* d log(functional) / dc at c */
double pe_row_slope(const pe_row *row, int functional, double c);

#endif
