/* Inside of the spectral engine: the contours of one pair at one level of truncation. */
#ifndef PE_SPECTRAL_H
#define PE_SPECTRAL_H

#include "lane_trig.h"
#include "loss_nodes.h"
#include "noise_nodes.h"

typedef struct pe_edge {
    struct pe_edge *before; /* the one that was made before it */
    double lambda, sd;
    double cost; /* evaluations of nodes that the searches up to this edge took */
    pe_cumulants k;
    double approximation[PE_FUNCTIONALS]; /* what pe_edge_log has returned, else NaN */
} pe_edge;

enum {
    PE_PLACES = 48, /* places -48..48: signed roots to 120, log-probabilities to -7200 */
    PE_NOWHERE = PE_PLACES + 1, /* not a place: the search for it is too costly */
    PE_TABLE = 16, /* points of a line's table, whole lanes */
    PE_NEAR = 8,     /* proven lines nearer to a pole than one standard deviation, by factors of 4 */
    PE_REACHES = 4, /* of proven lines: 3, 24, 192 and 1536 standard deviations about the mean */
};

#define PE_HALF_PITCH 1.25    /* edges are this far apart in the signed root */
#define PE_BEYOND_LOG -800.0 /* log of a bound below which a value is no double */

/* A vertical line Re lambda = const with everything that does not depend on c. */
typedef struct pe_line {
    struct pe_line *before; /* the one that was made before it */
    int status;           /* of its making; a line that failed is kept, not tried again */
    double lambda;
    double k0, c_ref, sd; /* K, K', sqrt(K'') at lambda */
    double ht;            /* spacing in t; the period is 2 pi / ht */
    size_t nt;
    double *weights;      /* per node 4 complex numbers: transform times each pole factor */
    double mass[4];       /* sums of their moduli */
    double theta[2], theta_k[2]; /* Chernoff exponents of the aliases and K there */
    double truncation;    /* estimate of the omitted range of t, in units of the integrand */
    double rounding;      /* estimate of the error of the exponent K - lambda c */
    double term_rounding; /* estimate of the relative error of one term of the sums */
    /* log values and slopes on a grid of c around the place: where Newton's method starts */
    int has_table[PE_FUNCTIONALS];
    double table_c, table_step;
    double table[PE_FUNCTIONALS][PE_TABLE], slope[PE_FUNCTIONALS][PE_TABLE];
} pe_line;

/* Where a line beside a pole stands; sd is 0 until it is known. */
typedef struct {
    double lambda, sd;
    pe_cumulants k;
} pe_near_place;

/* Lines with proven errors of all places, as those of estimates. */
typedef struct {
    struct pe_certified *at[4][2 * PE_PLACES + 1];
} pe_proven_places;

/* Such lines, by how far from their mean they serve, and what else proofs need of a place. */
typedef struct pe_proven {
    pe_proven_places *reach[PE_REACHES]; /* NULL until one is asked for */
    struct pe_certified *near[PE_REACHES][2][PE_NEAR]; /* beside a pole */
    pe_near_place near_place[2][PE_NEAR];
    struct pe_chernoff *chernoff[2 * PE_PLACES + 1];
    struct pe_divided_line *divided;
} pe_proven;

typedef struct {
    size_t n_groups;
    pe_group *groups;
    const pe_kinds *kinds;    /* whose families are among the groups; NULL where there are none */
    double gaussian_variance; /* sum of n mu^2 over the steps with p = 1, */
    pe_dd exact_variance;   /* and for proofs */
    double cost_limit;   /* of one contour, */
    double most_work; /* nodes times values of a line with proven errors, as it is asked now, */
    double search_limit; /* and of the way to an edge, in evaluations of nodes */
    int reversed;
    int both_ends; /* whether small z are removed as well as large ones */
    int no_memory; /* whether an edge could not be allocated in this question */
    double log_cut; /* log of a bound on the probability removed at the ends of z */
    pe_edge *edges[4 * PE_PLACES + 3]; /* at half steps from place to place */
    pe_line *lines[4][2 * PE_PLACES + 1];
    pe_edge *last_edge; /* that was made, before which the others were: most places are empty */
    pe_line *last_line;
    struct pe_proven *proven; /* lines with proven errors; NULL until one is asked for */
} pe_contours;

pe_cumulants pe_contours_cumulants(const pe_contours *contours, double lambda);

/* Builds the line at ln->lambda; ln is otherwise zero.  Returns a status. */
int pe_line_build(const pe_contours *contours, pe_line *ln);
void pe_line_free(pe_line *ln);

/* Sets the line's thetas, where K lets the aliases be small with a short period, and K there: INFINITY if it is known
 * nowhere. */
void pe_line_choose_thetas(const pe_contours *contours, pe_line *ln);

/* The period that keeps the aliases small, given K at the thetas. */
double pe_line_period(const pe_line *ln);

/* The transform times 1, 1/lambda, 1/(lambda-1), 1/(lambda(lambda-1)) from its logarithm at t = k ht,
 * half of it at t = 0, and the sums of their moduli. */
int pe_line_set_weights(pe_line *ln, const double *e_re, const double *e_im);

/* The four sums at PE_LANES thresholds, by rotations that are re-anchored every 16 terms. */
void pe_line_sums(const pe_line *ln, const double *c, double sum[4][PE_LANES]);

/* One row of results at c. */
typedef struct {
    double density_log;
    double log_value[PE_FUNCTIONALS], error[PE_FUNCTIONALS];
    double rounded; /* the largest part of a kernel's error that is the rounding of its sum; of proven rows */
} pe_row;

/* Rows at c[0..n-1], n <= PE_LANES.  A row's bits do not depend on its neighbours. */
void pe_line_evaluate(const pe_contours *contours, const pe_line *ln, size_t n, const double *c,
                      pe_row *rows);

/* The log of a functional and its derivative by c at c[0..n-1], n <= PE_LANES, with the bits of rows. */
void pe_line_slopes(const pe_contours *contours, const pe_line *ln, int functional, size_t n, const double *c,
                    double *value, double *slope);

/* Edge i: the lambda whose signed root is i half steps from place to place; NULL without memory, beyond the
 * last place, or where the way to it is too costly. */
pe_edge *pe_contours_edge(pe_contours *contours, int i);

/* Log of a functional at c = K' of an edge, to a few per cent. */
double pe_edge_log(pe_edge *e, int functional);

/* The status that an edge of NULL stands for. */
int pe_edge_status(const pe_contours *contours);

/* The abscissa of a place, moved at least 1/sd away from the poles 0 and 1, to the side on which
 * the functional in question loses the least. */
double pe_clear_of_poles(double lambda, double sd, int functional, int *moved);

/* The place whose saddle point is nearest to c, looked for from `place`; PE_NOWHERE where no edge tells. */
int pe_contours_nearest(pe_contours *contours, double c, int place);

/* The place where an approximation of the log of a functional is nearest to a target; PE_NOWHERE as above. */
int pe_contours_of_value(pe_contours *contours, int functional, double log_target);

/* The thresholds on the line of a place at which the log of a functional has n <= PE_LANES values, to some 8 digits of
 * its standard deviation; NaN, or another one, where there is none.  Each is what it is without the others. */
void pe_contours_roots(pe_contours *contours, const pe_line *ln, int place, int functional, size_t n,
                       const double *log_target, double *root);

/* A row as PE_ROW numbers, one that failed, and its error relative to what is good enough: above 1, try again. */
void pe_put_row(const pe_row *row, double c, double *out);
void pe_fail_row(double *out);
double pe_row_shortfall(const double *row, int functional);

/* d log(functional) / dc at c */
double pe_row_slope(const pe_row *row, int functional, double c);

#endif
