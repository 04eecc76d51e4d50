/* Kernels of the lattice engine: masses of normal cells, rounding of a step's losses to the lattice, powers of a
 * spectrum, and sums over lattices.  Interface and errors in laws.h; bounds that rest on them are proven in
 * docs/theory/lattice.md.  Called by pyengine/engines/lattice. */
#include "doubles.h"
#include "elementary.h"
#include "functions.h"
#include "laws.h"
#include "normal.h"
#include "simd.h"

#include <math.h>

#define LOG_SQRT_2PI 0x1.d67f1c864beb5p-1
#define TWO_PI 0x1.921fb54442d18p+2

/* ---- masses of the normal distribution between given points ------------------------------------ */

/* With half width d and middle m the mass is phi(m) 2d sum_k He_2k(m) d^2k/(2k+1)!; narrow enough
   where (|m| + 4) d <= 0.3: the first term left out is below 1e-16. */
#define NARROW 0.3

PE_CLONES static void narrow_cells(size_t n, const double *z, double shift, double *out) {
    for (size_t i = 0; i < n; ++i) {
        double width = z[i + 1] - z[i], d = 0.5 * width;
        double m = (z[i] - shift) + d, q = m * m, e = d * d;
        double h2 = q - 1.0, h4 = (q - 6.0) * q + 3.0;
        double h6 = ((q - 15.0) * q + 45.0) * q - 15.0;
        double h8 = (((q - 28.0) * q + 210.0) * q - 420.0) * q + 105.0;
        double h10 = ((((q - 45.0) * q + 630.0) * q - 3150.0) * q + 4725.0) * q - 945.0;
        double s = e * (h2 / 6.0 +
                        e * (h4 / 120.0 + e * (h6 / 5040.0 + e * (h8 / 362880.0 + e * (h10 / 39916800.0)))));
        double use = (fabs(m) + 4.0) * d <= NARROW ? 1.0 : 0.0;
        s = use != 0.0 ? s : 0.0;
        out[i] = use != 0.0 ? pe_log(width + width * s) - 0.5 * q - LOG_SQRT_2PI : NAN;
    }
}

static double wide_cell(double low, double high) {
    if (low < 0.0 && high > 0.0) return pe_d_log(pe_ndtr(high) - pe_ndtr(low));
    if (high <= 0.0) {
        double t = -low;
        low = -high;
        high = t;
    }
    /* phi(low) (m(low) - m(high) e^-t): both terms of the sum below are positive */
    double t = 0.5 * (high - low) * (high + low);
    double sum = pe_mills_difference(low, high - low) - pe_mills(high) * pe_d_expm1(-t);
    return pe_d_log(sum) - 0.5 * low * low - LOG_SQRT_2PI;
}

void pe_normal_cells(size_t n, const double *z, double shift, double *log_mass) {
    if (n == 0) return;
    log_mass[0] = pe_log_ndtr(z[0] - shift);
    log_mass[n] = pe_log_ndtr(shift - z[n - 1]);
    narrow_cells(n - 1, z, shift, log_mass + 1);
    for (size_t i = 1; i < n; ++i)
        if (isnan(log_mass[i])) log_mass[i] = wide_cell(z[i - 1] - shift, z[i] - shift);
}

/* ---- one step on the lattice --------------------------------------------------------------------- */

#define UNIT 0x1p-53

/* Constants of a lattice of spacing h: tilt h, e^h - 1, e^-(tilt h), 1 - e^-h, min(h, 1) */
typedef struct {
    double h, per, rise, down, lost_share, wide;
} lattice_step;

/* A cell between points k - 1 and k: its tilted mass of A; `ratio`, the log ratio of both masses minus the loss of the
 * lower point; bounds of the relative error of masses (error), of that of the ratio (doubt), and of the shift of the
 * cell's ends (edge). */
typedef struct {
    size_t k;
    int no_a, no_b;
    double log_a, log_b, mass, ratio, error, doubt, edge;
} lattice_cell;

static lattice_step step_of(const pe_lattice *grid) {
    const double h = grid->spacing, per = grid->tilt * h;
    return (lattice_step){h, per, pe_d_expm1(h), pe_d_exp(-per), -pe_d_expm1(-h), h < 1.0 ? h : 1.0};
}

PE_INLINE lattice_cell cell_of(const pe_lattice *grid, const lattice_step *step, const pe_cells *cells,
                               size_t i) {
    lattice_cell c = {.k = cells->start + i, .log_a = cells->log_a[i], .log_b = cells->log_b[i]};
    c.no_a = !(c.log_a > -INFINITY);
    c.no_b = !(c.log_b > -INFINITY);
    if (c.no_a && c.no_b) return c;
    const double below = grid->origin + step->h * ((double)c.k - 1.0);
    const double *shift = cells->shift + i;
    c.edge = shift[0] > shift[1] ? shift[0] : shift[1];
    const double place = step->per * ((double)c.k - grid->centre);
    const double sizes = (c.no_a ? 0.0 : fabs(c.log_a)) + (c.no_b ? 0.0 : fabs(c.log_b));
    /* relative errors of masses and exponents */
    c.error = cells->error[i] +
              UNIT * (12.0 + 3.0 * (sizes + fabs(place) + fabs(grid->log_scale_a) + fabs(grid->log_scale_b)));
    const double apart = c.no_a || c.no_b ? 0.0 : cells->log_ratio[i];
    c.ratio = c.no_b ? -INFINITY : c.no_a ? INFINITY : apart - below;
    /* the error of the log ratio, and of the shares of both points, which lie h apart */
    c.doubt = cells->ratio_error[i] + UNIT * (24.0 * step->wide + 3.0 * (fabs(apart) + fabs(below)));
    c.mass = pe_d_exp(c.log_a + place - grid->log_scale_a);
    return c;
}

/* Splits the cell's mass of A onto points k, k - 1 and k - 2 so that the profile can only grow (outer) or only fall. */
PE_INLINE void spread_cell(const lattice_step *step, const lattice_cell *c, int outer,
                           pe_lattice_masses *out) {
    const double s = c->error;
    if (outer && c->edge > step->h) { /* ratios may lie below those of point k - 2: none is safe but 0 */
        out->lost += pe_d_exp(c->log_a) * (1.0 + 4.0 * s);
        return;
    }
    double spill = 0.0, whole = c->mass, g = c->ratio;
    if (outer) { /* raising both masses by one factor is safe; the ratio is lowered by its error */
        whole *= 1.0 + 2.0 * s;
        g -= c->doubt + 2.0 * c->edge;
        spill = 4.0 * c->edge / step->lost_share;
    } else {
        whole *= 1.0 - (3.0 * s + 4.0 * c->edge + 2.0 * c->doubt);
    }
    double two = spill < 1.0 ? spill : 1.0, one, none; /* shares of points k - 2, k - 1, k */
    double f = pe_d_expm1(g) / step->rise;
    f = f > 1.0 ? 1.0 : f;
    if (f >= 0.0) {
        none = (1.0 - two) * f;
        one = (1.0 - two) * (1.0 - f);
    } else if (outer) {
        f = pe_d_expm1(g + step->h) / step->rise;
        none = 0.0;
        one = (1.0 - two) * f;
        two += (1.0 - two) * (1.0 - f);
        if (f < 0.0) { /* the ratio's error exceeds the spacing, or B has no mass here */
            out->lost += pe_d_exp(c->log_a) * (1.0 + 4.0 * s);
            one = two = 0.0;
        }
    } else {
        none = 0.0;
        one = 1.0;
        two = 0.0;
    }
    double *at = out->spread + c->k;
    at[0] += whole * none;
    at[-1] += whole * one * step->down;
    if (two > 0.0) {
        if (c->k >= 2) at[-2] += whole * two * (step->down * step->down);
        else out->lost += pe_d_exp(c->log_a) * two * (1.0 + 4.0 * s);
    }
}

/* Puts the cell as a whole onto the nearer point, for masses of tests: any function of the outcome is a test. */
PE_INLINE void place_cell(const pe_lattice *grid, const lattice_step *step, const lattice_cell *c,
                          pe_lattice_masses *out) {
    const int outer = grid->outer, up = c->ratio >= 0.25 * step->h;
    const size_t to = up ? c->k : c->k - 1;
    if (!c->no_a) {
        const double at =
            (up ? c->mass : c->mass * step->down) * (outer ? 1.0 - 2.0 * c->error : 1.0 + 2.0 * c->error);
        out->a[to] += at;
        if (outer && !c->no_b) { /* B's mass from A's, so that both are low by the same factor */
            const double scales = fabs(grid->log_scale_a) + fabs(grid->log_scale_b);
            const double move = up ? c->ratio - step->h : c->ratio;
            double image = at * pe_d_exp(move), units = 16.0;
            if (fabs(move) < 0.25) { /* expm1 has all digits, so fewer roundings count */
                const double away = pe_d_expm1(move);
                image = at + at * away;
                units = 4.0 + 16.0 * fabs(away);
            }
            out->b[to] += image * (1.0 + c->doubt + UNIT * (units + 4.0 * (scales + fabs(grid->origin))));
        }
    }
    if (!c->no_b && (c->no_a || !outer))
        out->b[to] +=
            pe_d_exp(c->log_b + (step->per - step->h) * ((double)to - grid->centre) - grid->log_scale_b) *
            (1.0 + 2.0 * c->error);
}

void pe_lattice_cells(const pe_lattice *grid, const pe_cells *cells, pe_lattice_masses *out) {
    const lattice_step step = step_of(grid);
    for (size_t i = 0; i < cells->n; ++i) {
        const lattice_cell c = cell_of(grid, &step, cells, i);
        if (c.no_a && c.no_b) continue;
        if (c.error > out->error) out->error = c.error;
        if (!c.no_a) spread_cell(&step, &c, grid->outer, out);
        place_cell(grid, &step, &c, out);
    }
}

/* ---- powers of a spectrum -------------------------------------------------------------------------- */

#define LANES 64

PE_CLONES static void power_block(const double *re, const double *im, double steps, double error,
                                  double *out_re, double *out_im, double *bound, double *slack) {
    double zr[LANES], zi[LANES], m[LANES], pr[LANES], pi[LANES], pm[LANES];
    for (int i = 0; i < LANES; ++i) {
        zr[i] = re[i];
        zi[i] = im[i];
        m[i] = sqrt(re[i] * re[i] + im[i] * im[i]) * (1.0 + 0x1p-50) + error;
        slack[i] = steps * error / m[i];
        /* powers that underflow are set to 0, as arithmetic with subnormal numbers is slow */
        double dead = steps * pe_log(m[i]) < -600.0 ? 0.0 : 1.0;
        zr[i] *= dead;
        zi[i] *= dead;
        m[i] = dead != 0.0 ? m[i] : 0.0;
        pr[i] = 1.0;
        pi[i] = 0.0;
        pm[i] = 1.0;
    }
    for (uint64_t left = (uint64_t)steps;;) {
        if (left & 1)
            for (int i = 0; i < LANES; ++i) {
                double r = pr[i] * zr[i] - pi[i] * zi[i];
                pi[i] = pr[i] * zi[i] + pi[i] * zr[i];
                pr[i] = r;
                pm[i] *= m[i];
            }
        left >>= 1;
        if (left == 0) break;
        for (int i = 0; i < LANES; ++i) {
            double r = zr[i] * zr[i] - zi[i] * zi[i];
            zi[i] = 2.0 * zr[i] * zi[i];
            zr[i] = r;
            m[i] *= m[i];
        }
    }
    for (int i = 0; i < LANES; ++i) {
        out_re[i] = pr[i];
        out_im[i] = pi[i];
        bound[i] = pm[i] > 1e-260 ? pm[i] : 1e-260;
    }
}

void pe_spectrum_power(size_t n, double *z, double steps, double error, const double *other, double *bound,
                       double *slack) {
    double re[LANES], im[LANES], pr[LANES], pi[LANES], pb[LANES], ps[LANES];
    for (size_t at = 0; at < n; at += LANES) {
        const size_t count = n - at < LANES ? n - at : LANES;
        for (size_t i = 0; i < LANES; ++i) {
            re[i] = i < count ? z[2 * (at + i)] : 0.0;
            im[i] = i < count ? z[2 * (at + i) + 1] : 0.0;
        }
        power_block(re, im, steps, error, pr, pi, pb, ps);
        for (size_t i = 0; i < count; ++i) {
            const double *o = other ? other + 2 * (at + i) : NULL;
            z[2 * (at + i)] = o ? pr[i] * o[0] - pi[i] * o[1] : pr[i];
            z[2 * (at + i) + 1] = o ? pr[i] * o[1] + pi[i] * o[0] : pi[i];
            bound[at + i] *= pb[i];
            slack[at + i] += ps[i];
        }
    }
}

/* ---- sums ----------------------------------------------------------------------------------------------- */

void pe_exponential_sums(size_t n, const double *y, double centre, double rate, double *out) {
    double powers[LANES], total = 0.0, first = 0.0;
    for (int i = 0; i < LANES; ++i) powers[i] = pe_d_exp(rate * i);
    for (size_t at = 0; at < n; at += LANES) {
        const size_t count = n - at < LANES ? n - at : LANES;
        double sum = 0.0, moment = 0.0;
        for (size_t i = 0; i < count; ++i) {
            const double term = y[at + i] * powers[i];
            sum += term;
            moment += term * (double)i;
        }
        if (sum > 0.0) {
            const double factor = pe_d_exp(rate * ((double)at - centre));
            total += factor * sum;
            first += factor * (moment + sum * ((double)at - centre));
        }
    }
    out[0] = total;
    out[1] = first;
}

/* ---- discounted sums ---------------------------------------------------------------------------------- */

/* e^(rate (i + 1)), i below the length of a block */
static void fill_powers(size_t n, double rate, double *power) {
    const size_t count = n < PE_SUM_BLOCK ? n : PE_SUM_BLOCK;
    for (size_t i = 0; i < count; ++i) power[i] = pe_d_exp(rate * (double)(i + 1));
}

void pe_discounted_sums(size_t n, const double *y, double log_q, double *sums) {
    const double q = pe_d_exp(log_q);
    double power[PE_SUM_BLOCK], carried = 0.0, local = 0.0;
    fill_powers(n, log_q, power);
    for (size_t j = 0; j < n; ++j) {
        const size_t i = j % PE_SUM_BLOCK;
        if (i == 0) {
            carried = j ? sums[j - 1] : 0.0;
            local = 0.0;
        }
        local = q * local + y[j];
        sums[j] = local + power[i] * carried;
    }
}

void pe_profile_sums(size_t n, const double *y, double log_q, double h, double *below, double *profile) {
    const double q = pe_d_exp(log_q), qb = pe_d_exp(log_q - h), gain = -pe_d_expm1(-h);
    double power[PE_SUM_BLOCK], fall[PE_SUM_BLOCK], rest[PE_SUM_BLOCK];
    double r0 = 0.0, d0 = 0.0, r = 0.0, d = 0.0;
    fill_powers(n, log_q, power);
    fill_powers(n, -h, fall);
    for (size_t i = 0; i < PE_SUM_BLOCK && i < n; ++i) rest[i] = pe_d_expm1(-h * (double)(i + 1));
    for (size_t j = 0; j < n; ++j) {
        const size_t i = j % PE_SUM_BLOCK;
        if (i == 0) {
            r0 = j ? below[j - 1] : 0.0;
            d0 = j ? profile[j - 1] : 0.0;
            r = d = 0.0;
        }
        d = q * (d + gain * r);
        r = qb * r + y[j];
        below[j] = r + power[i] * fall[i] * r0;
        profile[j] = d + power[i] * (d0 - rest[i] * r0);
    }
}
