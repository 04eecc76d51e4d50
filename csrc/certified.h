/* Rows of the spectral engine whose errors are proven: docs/theory/line.md. */
#ifndef PE_CERTIFIED_H
#define PE_CERTIFIED_H

#include "shifted.h"
#include "spectral.h"

typedef struct pe_certified {
    int status;              /* of its making: PE_TOO_COSTLY where the proof does not apply */
    double work;             /* nodes times values, where they are known, */
    double refused_from;     /* and from where on they were too many; 0 where they were not */
    pe_line line;            /* lambda, c_ref, ht, nt, weights, mass and theta are used */
    pe_dd log_m;             /* K(lambda) */
    double log_m_error;
    double mean_error;       /* bound of the error of c_ref as the mean that the phases lack */
    double uncertain[4];     /* bound of the errors of the weights, summed */
    double omitted[4];       /* bound of what lies beyond the last t */
    double removed[2];       /* bounds of the probabilities under A and B of what the ends of z remove */
    int is_divided;          /* whether only paths with a large loss are summed; the others have at most */
    double zero_lost[2];     /* these under A and under B, and */
    double zero_theta, zero_k; /* e^(zero_k - zero_theta c) under A beyond c, and e^c times that under B */
    struct pe_certified *others; /* their line; NULL where that bound stands for them */
} pe_certified;

/* Builds the line at line.lambda, everything else zero, for thresholds up to `spread` from the mean.  Returns
 * a status. */
int pe_certified_build(const pe_contours *contours, double spread, pe_certified *line);
void pe_certified_free(pe_certified *line);
size_t pe_certified_bytes(const pe_certified *line);

/* What Chernoff's bounds at one lambda need, for all thresholds. */
typedef struct pe_chernoff {
    double lambda;
    double k;          /* upper bound of K(lambda) of the law that ends far out, */
    double removed[2]; /* and bounds of the probabilities under A and B of what lies beyond */
} pe_chernoff;

void pe_certified_chernoff_at(const pe_contours *contours, double lambda, pe_chernoff *out);

/* log of the bound of the profile at lambda < 0: (1 - e^x)+ is at most e^(lambda x) (-lambda)^(-lambda)/(1 - lambda)^(1 -
 * lambda), where both touch (C. Canonne, G. Kamath, T. Steinke (2020), Prop. 12). */
double pe_chernoff_exponent(double k, double lambda, double c);

/* The row of Chernoff's bounds e^{K(lambda) - lambda c}: with errors of 1, from 0 to the bound. */
void pe_certified_chernoff(const pe_chernoff *at, double c, pe_row *row);

/* As pe_line_evaluate; the true value lies within the relative error of each functional. */
void pe_certified_evaluate(const pe_certified *line, size_t n, const double *c, pe_row *rows);

/* About the least relative error that a functional of known logarithm has in a row of a line: that of its values. */
double pe_certified_least_error(const pe_certified *line, int functional, double c, double log_value);

/* One such row from sums of two doubles, each of whose angles is formed afresh: where rounding counts; of a divided law
 * that of all paths. */
void pe_certified_evaluate_closely(const pe_certified *line, double c, pe_row *row);

#endif
