/* The tilted density phi(z) R(z)^q of one step, R = 1 - p + p e^{mu z - mu^2/2}, on the real line and on lines
 * Im z = b: where it has weight, and upper bounds of what lies outside. */
#ifndef PE_TILTED_H
#define PE_TILTED_H

typedef struct {
    double mu, p, q;
} pe_tilted;

double pe_tilted_log_ratio(const pe_tilted *t, double x);

/* (log R)' = mu (1 - (1-p)/R) */
double pe_tilted_loss_slope(const pe_tilted *t, double x);

/* log (phi R^power) */
double pe_tilted_log(const pe_tilted *t, double power, double x);

/* log of an upper bound of (|R(x + i b)|/R(x))^power for mu |b| <= theta */
double pe_tilted_log_growth(const pe_tilted *t, double power, double theta, double x);

/* The same for all places up to x */
double pe_tilted_log_growth_below(const pe_tilted *t, double power, double theta, double x);

/* log of a bound of the integral over x in [low, high] of phi(x) e^{-k s} |R(x + i b)|^power for
 * mu |b| <= theta, s = mu x - mu^2/2 */
double pe_tilted_integral(const pe_tilted *t, double power, int k, double theta, double low, double high);

/* The same from -infinity, not as a log but in units of e^unit; low is where little is left */
double pe_tilted_below(const pe_tilted *t, double power, int k, double theta, double low, double high,
                       double unit);

/* log of a bound of phi R^power above x for power > 1, where the mode far out has no weight */
double pe_tilted_beyond_mode(const pe_tilted *t, double power, double x);

/* log of a bound of the integral of phi R^power beyond x on one side; infinite where there is none */
double pe_tilted_beyond(const pe_tilted *t, double power, double x, int above);

/* Where phi R^q is summed. */
typedef struct {
    double low, high; /* outside it is below e^-need of the whole */
    double end; /* infinite where all above `high` is small, else the law has to end there */
    double log_total; /* estimate of the log of the integral */
} pe_window;

/* Whether there is such a window: of a law that ends at `end`, or, where that is infinite, at any place up to
 * `limit`: then in the gap before a mode far out. */
int pe_tilted_window(const pe_tilted *t, double need, double limit, double end, pe_window *w);

/* Whether the density is largest at one of the ends of [low, high] */
int pe_tilted_is_valley(const pe_tilted *t, double low, double high);

#endif
