/* Rows (tails and profiles with estimated errors) of the law of an epoch of random allocation; interface in laws.h.
 *
 * Every integral is a sum of positive terms: Gauss-Legendre rules from the threshold to the ends of its
 * panel, and the tabulated masses of the panels beyond.  So each tail has the relative accuracy of the
 * density there.
 */
#include <math.h>

#include "allocation.h"
#include "doubles.h"
#include "laws.h"

/* Tails of the law of L at a threshold: its masses below and above under Q and P, and the two
 * profiles, E_Q(1 - e^{L-k})+ from below and E_Q(e^L - e^k)+ from above. */
enum { Q_BELOW, Q_ABOVE, P_BELOW, P_ABOVE, LOW_PROFILE, HIGH_PROFILE, TAILS };

#define BEYOND 42.0 /* parts below e^-BEYOND of a sum are left out */

/* Estimated relative error of a mass with log m: EACH + PER_LOG |m|, and half as much again for each doubling of epochs
 * (docs/estimates). */
#define EACH 2e-13
#define PER_LOG 4e-15

static double log_sum(double a, double b) {
    double large = a > b ? a : b, small = a > b ? b : a;
    return small == -INFINITY ? large : large + pe_d_log1p(pe_d_exp(small - large));
}

/* log(1 - e^x) for x < 0 */
static double log_rest(double x) {
    return x < -0.6931 ? pe_d_log1p(-pe_d_exp(x)) : pe_d_log(-pe_d_expm1(x));
}

/* Integrals over [a, b], within one panel, of f, e^{L-k} f and |e^{L-k} - 1| f, in units of e^unit. */
static void integrate(const struct pe_epoch *e, size_t panel, double a, double b, double k, double unit,
                      double *out) {
    const pe_log_density *f = &e->density;
    size_t piece = e->piece[panel];
    double x[PE_BLOCK], v[PE_BLOCK], middle = 0.5 * (a + b), radius = 0.5 * (b - a);
    for (int i = 0; i < 8; i++) {
        x[7 - i] = middle - radius * pe_gauss_place[i];
        x[8 + i] = middle + radius * pe_gauss_place[i];
    }
    pe_log_density_block(f, x, &piece, v);
    out[0] = out[1] = out[2] = 0.0;
    for (int l = 0; l < PE_BLOCK; l++) {
        double weight = radius * pe_gauss_weight[l < 8 ? 7 - l : l - 8] * pe_d_exp(v[l] - unit);
        double change = pe_d_expm1(x[l] - k);
        out[0] += weight;
        out[1] += weight + weight * change;
        out[2] += weight * fabs(change);
    }
}

/* A threshold, its panel, and the log density there. */
typedef struct {
    size_t panel;
    double k, level;
} place;

static size_t panel_of(const struct pe_epoch *e, double k) {
    size_t low = 0, high = e->panels;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (e->edge[middle] <= k) low = middle;
        else high = middle;
    }
    return low;
}

static place place_of(const struct pe_epoch *e, double k) {
    place p = {panel_of(e, k), k, 0.0};
    const pe_log_density *f = &e->density;
    size_t piece = e->piece[p.panel];
    p.level = pe_log_density_at(f, k, piece);
    return p;
}

/* The four masses at a threshold inside of the table; the larger one of two tails is 1 minus the smaller one. */
static void masses(const struct pe_epoch *e, place p, double *out) {
    double low[3], high[3], a = e->edge[p.panel], b = e->edge[p.panel + 1];
    integrate(e, p.panel, a, p.k, p.k, p.level, low);
    integrate(e, p.panel, p.k, b, p.k, p.level, high);
    for (int law = 0; law < 2; law++) {
        double unit = p.level + (law ? p.k : 0.0);
        double below = log_sum(unit + pe_d_log(low[law]), e->below[law][p.panel]);
        double above = log_sum(unit + pe_d_log(high[law]), e->above[law][p.panel + 1]);
        if (below < above) above = log_rest(below);
        else below = log_rest(above);
        out[law ? P_BELOW : Q_BELOW] = below;
        out[law ? P_ABOVE : Q_ABOVE] = above;
    }
}

/* Log of one of the two profiles.  Panels farther than 1 from the threshold enter by the difference of their tabulated
 * masses under both laws, which then loses few digits. */
static double profile(const struct pe_epoch *e, place p, int high) {
    double sum = 0.0, part[3];
    size_t i = p.panel;
    /* unit: the mass of the tail, as the density at the threshold may be e^-700 of it */
    double whole = high ? e->above[1][i] - p.k : e->below[0][i + 1];
    double unit = whole > p.level ? whole : p.level;
    double from = high ? p.k : e->edge[i], to = high ? e->edge[i + 1] : p.k;
    for (;;) {
        integrate(e, i, from, to, p.k, unit, part);
        sum += part[2];
        if (high ? i + 1 == e->panels : i == 0) return unit + pe_d_log(sum) + (high ? p.k : 0.0);
        double far = high ? to - p.k : p.k - from;
        size_t edge = high ? i + 1 : i;
        double q = high ? e->above[0][edge] : e->below[0][edge];
        double rest = (high ? e->above[1][edge] : e->below[1][edge]) - p.k;
        double most = high ? rest : q, now = unit + pe_d_log(sum);
        if (most < now - BEYOND) return now + (high ? p.k : 0.0);
        if (far > 1.0) {
            double beyond = high ? rest + log_rest(q - rest) : q + log_rest(rest - q);
            return log_sum(now, beyond) + (high ? p.k : 0.0);
        }
        i = high ? i + 1 : i - 1;
        from = e->edge[i];
        to = e->edge[i + 1];
    }
}

static double error_of(const struct pe_epoch *e, double log_mass) {
    return log_mass == -INFINITY ? 0.0 : (1.0 + 0.5 * e->doublings) * (EACH - PER_LOG * log_mass);
}

static const int OF_A_AND_B[2][PE_FUNCTIONALS] = {
    {Q_ABOVE, Q_BELOW, P_ABOVE, P_BELOW, LOW_PROFILE},
    {P_BELOW, P_ABOVE, Q_BELOW, Q_ABOVE, HIGH_PROFILE},
};

static void row_at(const struct pe_epoch *e, int reversed, double c, double *row) {
    double k = reversed ? -c : c, tail[TAILS], level;
    double lowest = e->edge[0], highest = e->edge[e->panels];
    if (isnan(c)) return;
    if (k > lowest && k < highest) {
        place p = place_of(e, k);
        masses(e, p, tail);
        tail[LOW_PROFILE] = profile(e, p, 0);
        tail[HIGH_PROFILE] = profile(e, p, 1);
        level = p.level;
    } else { /* no mass beyond: E(1 - e^{L-k})+ = 1 - e^-k on the right */
        int left = k <= lowest;
        tail[Q_BELOW] = tail[P_BELOW] = left ? -INFINITY : 0.0;
        tail[Q_ABOVE] = tail[P_ABOVE] = left ? 0.0 : -INFINITY;
        tail[LOW_PROFILE] = left ? -INFINITY : log_rest(-k);
        tail[HIGH_PROFILE] = left ? log_rest(k) : -INFINITY;
        level = -INFINITY;
    }
    row[0] = c;
    row[1] = reversed ? level + k : level;
    for (int i = 0; i < PE_FUNCTIONALS; i++) {
        row[2 + i] = tail[OF_A_AND_B[reversed][i]];
        row[2 + PE_FUNCTIONALS + i] = error_of(e, row[2 + i]);
    }
}

/* Log of one tail or profile, and its derivative by the threshold. */
static double value_at(const struct pe_epoch *e, int which, double k, double *slope) {
    place p = place_of(e, k);
    double tail[TAILS], rate;
    masses(e, p, tail);
    if (which == LOW_PROFILE) {
        tail[which] = profile(e, p, 0);
        rate = tail[P_BELOW] - k;
    } else if (which == HIGH_PROFILE) {
        tail[which] = profile(e, p, 1);
        rate = tail[Q_ABOVE] + k;
    } else {
        rate = p.level + (which == P_BELOW || which == P_ABOVE ? k : 0.0);
    }
    *slope = pe_d_exp(rate - tail[which]);
    if (which == Q_ABOVE || which == P_ABOVE || which == HIGH_PROFILE) *slope = -*slope;
    return tail[which];
}

/* The threshold at which the log of a tail or profile is `target`, by Newton's method in a bracket; NaN if it is
 * outside of the table. */
static double threshold(const struct pe_epoch *e, int which, double target) {
    int rising = which == Q_BELOW || which == P_BELOW || which == LOW_PROFILE;
    size_t low = 0, high = e->panels;
    double slope;
    while (high - low > 1) { /* the panel where the tail passes the target */
        size_t i = (low + high) / 2;
        double v;
        if (which == LOW_PROFILE || which == HIGH_PROFILE) v = value_at(e, which, e->edge[i], &slope);
        else v = rising ? e->below[which == P_BELOW][i] : e->above[which == P_ABOVE][i];
        if ((v < target) == rising) low = i;
        else high = i;
    }
    double a = e->edge[low], b = e->edge[high], k = 0.5 * (a + b);
    for (int trial = 0; trial < 100; trial++) {
        double off = value_at(e, which, k, &slope) - target;
        if ((off < 0.0) == rising) a = k;
        else b = k;
        double next = k - off / slope;
        if (!(next > a && next < b)) next = 0.5 * (a + b);
        double change = fabs(next - k);
        k = next;
        if (change <= 2e-16 * fabs(k) || b - a <= 2e-16 * fabs(b)) break;
    }
    if (k <= e->edge[0] || k >= e->edge[e->panels]) return NAN;
    double off = value_at(e, which, k, &slope) - target;
    return fabs(off) <= 1e-9 * (1.0 + fabs(target)) ? k : NAN;
}

int pe_epoch_at(const pe_epoch *e, int reversed, size_t n, const double *c, double *rows) {
    for (size_t i = 0; i < n; i++) row_at(e, reversed, c[i], rows + i * PE_ROW);
    return PE_OK;
}

int pe_epoch_solve(const pe_epoch *e, int reversed, int functional, size_t n, const double *log_target,
                   double *rows) {
    for (size_t i = 0; i < n; i++) {
        double k = threshold(e, OF_A_AND_B[reversed][functional], log_target[i]);
        row_at(e, reversed, reversed ? -k : k, rows + i * PE_ROW);
    }
    return PE_OK;
}
