/* The tilted density F = phi a^(1-q) b^q of one step, a and b mixtures of normals over phi, on the real line and
 * on lines Im z = y: where it has weight, and upper bounds of what lies outside.
 *
 * Shifts of a are at most 0 and those of b at least 0, so that log a falls, log b rises, and both are convex. */
#ifndef PE_TILTED_H
#define PE_TILTED_H

#include <stddef.h>

#include "normals.h"
#include "taper.h"

typedef struct {
    pe_normals a, b;
    double q;
    double farthest; /* largest distance of a shift from 0 */
    double start; /* of the first of n cells, which are PE_CELL wide */
    size_t n;
    double *block;
    double *log_side[2], *slope[2]; /* of a and b at the ends of the cells, */
    double *share[2]; /* and those of their terms, `stride` numbers for each */
    size_t stride;
    double *room; /* for the shares at one place */
    double *turned[2]; /* what a height turns each term by, from the first shift and from the last */
    double *value; /* log F at the ends of the cells */
    double *most; /* log of its largest value over each cell */
    double *concave, *fall; /* the parts of log F that are concave, and their slope, at those ends */
    pe_taper
        taper[2]; /* factors of F; of their logs and the slopes at those ends, NULL where there is none */
    int n_tapers;
    double *log_taper, *taper_slope;
    double bulge; /* |F(x + iv)| is at most F(x) e^(bulge v^2) where no side grows: 1/2 without a taper */
} pe_tilted;

#define PE_CELL 0.25

/* Cells from where F is nothing up to `end`; a status, PE_TOO_COSTLY where they would be too many. */
int pe_tilted_new(pe_tilted *t, pe_normals a, pe_normals b, double q, double end);
void pe_tilted_free(pe_tilted *t);

/* The same of another power, with what does not depend on it: `known` is to be freed later. */
int pe_tilted_power(pe_tilted *t, const pe_tilted *known, double q, double end);

/* The same of the same power times a taper, the first one or the second; `known` is to be freed later. */
int pe_tilted_tapered(pe_tilted *t, const pe_tilted *known, const pe_taper *taper, double end);

/* The last end of a cell */
double pe_tilted_end(const pe_tilted *t);

/* log F, and log a or log b */
double pe_tilted_log(const pe_tilted *t, double x);
double pe_tilted_log_side(const pe_tilted *t, int side, double x);

/* Sum of F e^-unit over x = j h, first <= j <= last */
double pe_tilted_nodes(const pe_tilted *t, double first, double last, double h, double unit);

/* Half the distance of both sets of weights: the mean of |b/a - 1| under phi a is at most twice that */
double pe_tilted_change(const pe_tilted *t);

/* Slope of log b/a, the privacy loss */
double pe_tilted_loss_slope(const pe_tilted *t, double x);

/* Makes t ready for lines |Im z| <= y; 0 where their terms are not within a half plane. */
int pe_tilted_lift(const pe_tilted *t, double y);

/* log of an upper bound of |F(x + iv)| e^(-bulge v^2)/F(x) on the lines that t was made ready for */
double pe_tilted_growth(const pe_tilted *t, double x);

/* Upper bound of the integral of |F| e^(-bulge v^2) over x in [low, high] on those lines, in units of e^unit, rounded
 * outwards to whole cells; low may be -infinity.  Each cell counts `wider` times its width more. */
double pe_tilted_sum(const pe_tilted *t, double low, double high, double unit, double wider);

/* The same of F itself, low being finite */
double pe_tilted_rest(const pe_tilted *t, double low, double high, double unit);

/* Upper bound of the integral of |F| e^(-bulge v^2) up to `high` on those lines, in units of e^unit, where that of F is
 * at most `whole` */
double pe_tilted_lifted(const pe_tilted *t, double high, double unit, double whole);

/* Upper bound of |arg b/a| on the lines |Im z| <= y that t was made ready for, below pi over the farthest shift */
double pe_tilted_angle(const pe_tilted *t, double y, double x);

/* The first end of a cell from `from` on where log of |F| e^(-bulge v^2) e^(time |arg|) is below a level on that line, or the
 * last */
double pe_tilted_edge(const pe_tilted *t, double from, double y, double time, double level);

/* Upper bound of the integral of |F| e^(-bulge v^2) e^(time |arg|) up to `high` on such a line, in units of e^unit */
double pe_tilted_raised(const pe_tilted *t, double y, double high, double time, double unit);

/* Upper bound of the integral of |F| e^(-bulge v^2) e^(-time arg)/arg up to `high` on the line of the last height, where arg is
 * that of b/a, in units of e^unit */
double pe_tilted_over_angle(const pe_tilted *t, double y, double high, double time, double unit);

/* The same without the division by arg */
double pe_tilted_turned(const pe_tilted *t, double y, double high, double time, double unit);

/* Upper bound of |s| times the modulus of the integral of F e^{i s loss} over [low, high] for any s, in units
 * of e^unit: the variation of F over the slope of the loss and its ends */
double pe_tilted_variation(const pe_tilted *t, double low, double high, double unit);

/* Where F is summed. */
typedef struct {
    double low, high; /* outside it is below e^-need of the whole */
    double end; /* of the law: that of the cells, or of a gap before a mode far out */
    double log_total; /* estimate of the log of the integral */
    int is_whole; /* whether the law need not end before the cells do */
} pe_window;

/* Whether there is such a window */
int pe_tilted_window(const pe_tilted *t, double need, pe_window *w);

/* The same for the law up to the end of the cells, whatever lies between the window and that end. */
int pe_tilted_whole(const pe_tilted *t, double need, pe_window *w);

/* The mean under F of the slope of the loss, and of the loss, up to w->end */
double pe_tilted_mean_slope(const pe_tilted *t, const pe_window *w);
double pe_tilted_mean_loss(const pe_tilted *t, const pe_window *w);

#endif
