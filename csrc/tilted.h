/* The tilted density F = phi a^(1-q) b^q of one step, where phi a and phi b are the densities of the two laws, mixtures
 * of unit normals: its values and upper bounds of its integrals on the real line (tilted.c) and on lines Im z = y
 * (tilted_lines.c), and the window that holds its mass (tilted_windows.c).  Proofs: docs/theory/gaussian.md, Lemmas 1,
 * 2.
 *
 * Shifts of a are at most 0 and those of b at least 0, so that log a falls, log b rises, and both are convex.  Bounds
 * are sums over cells of width PE_CELL, each with an upper bound of log F on it. */
#ifndef PE_TILTED_H
#define PE_TILTED_H

#include <stddef.h>

#include "normals.h"
#include "taper.h"

typedef struct {
    pe_normals a, b;
    double q;
    double farthest; /* largest distance of a shift from 0 */
    double start; /* of the first of n cells of width PE_CELL */
    size_t n;
    double *block; /* memory of the arrays below; NULL if another law owns them */
    double *log_side[2], *slope[2]; /* log a and log b and their slopes at the ends of the cells, */
    double *share[2]; /* and the shares of their terms, `stride` numbers for each term */
    size_t stride;
    double *room; /* for the shares at one x */
    /* 1 - cos of the height times each term's distance from the first shift, then from the last */
    double *turned[2];
    double *value; /* log F at the ends of the cells */
    double *most; /* upper bound of log F on each cell */
    double *concave, *fall; /* the concave part of log F and its slope at those ends */
    pe_taper taper[2]; /* factors of F (division of the law), */
    int n_tapers;
    /* the sums of their logs and of the slopes at those ends; NULL if none */
    double *log_taper, *taper_slope;
    /* |F(x + iv)| <= F(x) e^(bulge v^2) where no side grows: 1/2 + sum of 1/width^2 of the tapers */
    double bulge;
} pe_tilted;

#define PE_CELL 0.25

/* Makes the cells, from where F is negligible up to `end`; PE_TOO_COSTLY if they are too many. */
int pe_tilted_new(pe_tilted *t, pe_normals a, pe_normals b, double q, double end);
void pe_tilted_free(pe_tilted *t);

/* The same law at another power; shares the sides' arrays of `known`, which must be freed later. */
int pe_tilted_power(pe_tilted *t, const pe_tilted *known, double q, double end);

/* The law times one more taper (two at most); shares the sides' arrays of `known`, which must be freed later. */
int pe_tilted_tapered(pe_tilted *t, const pe_tilted *known, const pe_taper *taper, double end);

/* The end of the last cell */
double pe_tilted_end(const pe_tilted *t);

/* log F, and log a or log b */
double pe_tilted_log(const pe_tilted *t, double x);
double pe_tilted_log_side(const pe_tilted *t, int side, double x);

/* Sum of F e^-unit over x = j h, first <= j <= last */
double pe_tilted_nodes(const pe_tilted *t, double first, double last, double h, double unit);

/* Half the l1 distance of the weights of a and b: the mean of |b/a - 1| under phi a is at most twice that */
double pe_tilted_change(const pe_tilted *t);

/* Slope of log b/a, the privacy loss */
double pe_tilted_loss_slope(const pe_tilted *t, double x);

/* Prepares t for the bounds below on lines |Im z| <= y; 0 if the terms of a side with a negative power may cancel
 * there. */
int pe_tilted_lift(const pe_tilted *t, double y);

/* The growth at x: log of an upper bound of |F(x + iv)| e^(-bulge v^2)/F(x) for |v| <= y (Lemma 1) */
double pe_tilted_growth(const pe_tilted *t, double x);

/* Upper bound of the integral of |F| e^(-bulge v^2) over x in [low, high], |v| <= y, in units of e^unit, by whole cells;
 * low may be -infinity.  Each cell counts (1 + wider) times its width, as trapezoidal sums need. */
double pe_tilted_sum(const pe_tilted *t, double low, double high, double unit, double wider);

/* The same of F on the real line, low being finite */
double pe_tilted_rest(const pe_tilted *t, double low, double high, double unit);

/* Upper bound of the integral of |F| e^(-bulge v^2) up to `high`, |v| <= y, in units of e^unit, given that the integral
 * of F is at most `whole` */
double pe_tilted_lifted(const pe_tilted *t, double high, double unit, double whole);

/* Upper bound of |arg b/a| at x + iv for |v| <= y, y < pi/farthest, as prepared by pe_tilted_lift */
double pe_tilted_angle(const pe_tilted *t, double y, double x);

/* The end of the first cell from `from` on where the log of |F| e^(-bulge v^2) e^(time |arg b/a|) is below `level`, or
 * of the last cell */
double pe_tilted_edge(const pe_tilted *t, double from, double y, double time, double level);

/* Upper bound of the integral of |F| e^(-bulge v^2) e^(time |arg b/a|) up to `high`, in units of e^unit */
double pe_tilted_raised(const pe_tilted *t, double y, double high, double time, double unit);

/* Upper bound of the integral of |F| e^(-bulge y^2) e^(-time arg)/arg, arg = arg b/a, up to `high` on Im z = y, in
 * units of e^unit; t is prepared for y */
double pe_tilted_over_angle(const pe_tilted *t, double y, double high, double time, double unit);

/* The same without the division by arg */
double pe_tilted_turned(const pe_tilted *t, double y, double high, double time, double unit);

/* Upper bound of |s| |integral of F e^{i s loss} over [low, high]| for all real s, in units of e^unit, by parts in the
 * loss: the ends and the variation of F over the slope of the loss (Theorem 8) */
double pe_tilted_variation(const pe_tilted *t, double low, double high, double unit);

/* The interval on which F is summed. */
typedef struct {
    double low, high; /* F has below e^-need of its integral on either side */
    double end; /* where the law is cut off: the end of the cells, or the gap before a mode far out */
    double log_total; /* estimate of the log of the integral up to there */
    int is_whole; /* whether the law is not cut off before the end of the cells */
} pe_window;

/* Finds the window; returns whether there is one. */
int pe_tilted_window(const pe_tilted *t, double need, pe_window *w);

/* The same without cutting the law off: mass between w->high and the end of the cells is left to the caller. */
int pe_tilted_whole(const pe_tilted *t, double need, pe_window *w);

/* The mean under F of the slope of the loss, and of the loss, up to w->end */
double pe_tilted_mean_slope(const pe_tilted *t, const pe_window *w);
double pe_tilted_mean_loss(const pe_tilted *t, const pe_window *w);

#endif
