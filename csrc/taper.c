/* Tapers on the real line and, in sums of two doubles, in the complex plane: erfc by a trapezoidal sum and a residue
 * ("Values of the taper" in docs/theory/divided_lines.md).  Called by tilted.c and plane_nodes.c. */

#include "taper.h"

#include <math.h>

#include "arithmetic_lanes.h"
#include "doubles.h"
#include "normal.h"
#include "simd.h"

static const double ROOT_PI = 1.77245385090551602730;
static const double FAR_OUT = 20.0; /* argument of erfc from which on its asymptotic series is used */

double pe_taper_log(const pe_taper *t, double x, double *slope) {
    const double u = -t->rise * (x - t->at) / t->width, turn = -t->rise / t->width;
    if (u < FAR_OUT) {
        const double value = pe_erfc(u);
        *slope = -turn * 2.0 / ROOT_PI * pe_d_exp(-u * u) / value;
        return u < -0.5 ? pe_d_log1p(-0.5 * pe_erfc(-u)) : pe_d_log(0.5 * value);
    }
    /* erfc(u) = e^(-u^2)/(u sqrt(pi)) (1 + series) */
    const double v = 0.5 / (u * u);
    const double series = -v * (1.0 - 3.0 * v * (1.0 - 5.0 * v * (1.0 - 7.0 * v * (1.0 - 9.0 * v))));
    *slope = -turn * 2.0 * u / (1.0 + series);
    return -u * u - pe_d_log(2.0 * u * ROOT_PI) + pe_d_log1p(series);
}

/* ---- in the plane ----------------------------------------------------------------------------------- */

enum { NODES = 20 }; /* of the trapezoidal sum on either side of 0 */
static const double SPACING = 0.40625; /* h: the sum errs by e^(-pi^2/h^2) < 1e-25 */
static const double NEAREST = 0.25; /* least distance, in spacings, from the nodes to the pole's real part */

/* Nodes t = k h or (k + 1/2) h, and e^{-t^2}. */
static void set_bells(int is_half, double *t, pe_dd *e) {
    for (int k = 0; k <= 2 * NODES; k++) {
        t[k] = ((double)(k - NODES) + (is_half ? 0.5 : 0.0)) * SPACING;
        e[k] = pe_dd_exp(pe_dd_neg(pe_two_square(t[k])));
    }
}

/* The residue's term of a pole z = zr + i zi with zi < pi/h */
PE_INLINE pe_ddc residue(pe_dd zr, pe_dd zi, int is_half) {
    /* 2 e^(-z^2)/(1 -+ e^(-2 pi i z/h)) */
    const pe_dd per_spacing = pe_dd_scale(pe_dd_div(PE_PI, pe_dd_of(SPACING)), 2.0);
    const pe_dd grown = pe_dd_exp(pe_dd_mul(per_spacing, zi));
    pe_dd sine, turned;
    const pe_dd cosine = pe_dd_turn(pe_dd_neg(pe_dd_mul(per_spacing, zr)), &sine);
    const pe_dd signed_growth = pe_dd_scale(grown, is_half ? 1.0 : -1.0);
    const pe_ddc below = {pe_dd_add_d(pe_dd_mul(signed_growth, cosine), 1.0), pe_dd_mul(signed_growth, sine)};
    const pe_dd size = pe_dd_exp(pe_dd_sub(pe_dd_square(zi), pe_dd_square(zr)));
    const pe_dd co = pe_dd_turn(pe_dd_scale(pe_dd_mul(zr, zi), -2.0), &turned);
    const pe_ddc above = pe_ddc_scale(pe_ddc_times((pe_ddc){co, turned}, size), 2.0);
    const pe_ddc product = pe_ddc_mul(above, (pe_ddc){below.re, pe_dd_neg(below.im)});
    const pe_dd square = pe_ddc_square(below);
    return (pe_ddc){pe_dd_div(product.re, square), pe_dd_div(product.im, square)};
}

/* PE_LANES arguments of erfc: u + iv with u >= 0 (sign 1), or -u - iv (sign -1), where erfc is 2 minus that of u + iv */
typedef struct {
    pe_dds u, re, im;
    double sign[PE_LANES];
} lanes;

/* erfc(u + iv) e^(u^2 - v^2), |v| <= 1.  With z = -v + iu it is e^(-2iuv) i/pi times the integral of e^(-t^2)/(z - t):
 * a trapezoidal sum and, where the pole lies below pi over the spacing, its residue. */
PE_CLONES static void scale_erfc(pe_dd height, int is_half, const double *t, const pe_dd *e, lanes *at) {
    const pe_dd per_pi = pe_dd_div(pe_dd_of(SPACING), PE_PI);
    pe_dds sr = {{0}, {0}}, si = sr;
    const lanes known = *at;
    for (int k = 0; k <= 2 * NODES; k++)
        for (int i = 0; i < PE_LANES; i++) {
            const pe_dd zi = pe_lane(&known.u, i), zr = pe_dd_scale(height, -known.sign[i]);
            const pe_dd dr = pe_dd_add_d(zr, -t[k]);
            const pe_dd part = pe_dd_div(e[k], pe_dd_add_fast(pe_dd_square(dr), pe_dd_square(zi)));
            pe_set_lane(&sr, i, pe_dd_add(pe_lane(&sr, i), pe_dd_mul(part, dr)));
            pe_set_lane(&si, i, pe_dd_add(pe_lane(&si, i), part));
        }
    for (int i = 0; i < PE_LANES; i++) {
        /* i h/pi times the sum, whose imaginary part is -si zi */
        const pe_dd zi = pe_lane(&known.u, i), zr = pe_dd_scale(height, -known.sign[i]);
        const pe_ddc w = {pe_dd_mul(pe_dd_mul(pe_lane(&si, i), zi), per_pi),
                          pe_dd_mul(pe_lane(&sr, i), per_pi)};
        const int is_below = zi.h < 3.14159265358979323846 / SPACING;
        const pe_ddc pole = residue(zr, pe_dd_choose(is_below, zi, pe_dd_of(1.0)), is_half);
        const pe_dd re = pe_dd_choose(is_below, pole.re, pe_dd_of(0.0)),
                    im = pe_dd_choose(is_below, pole.im, pe_dd_of(0.0));
        const pe_ddc whole = {pe_dd_add(w.re, re), pe_dd_add(w.im, im)};
        pe_ddc turn;
        turn.re = pe_dd_turn(pe_dd_scale(pe_dd_mul(zi, zr), 2.0), &turn.im);
        const pe_ddc value = pe_ddc_mul(whole, turn);
        pe_set_lane(&at->re, i, value.re);
        pe_set_lane(&at->im, i, value.im);
    }
}

/* The tapers, from erfc(u + iv) e^(u^2 - v^2) */
PE_CLONES static void put_values(pe_dd height, const lanes *known, pe_tapered *found) {
    const lanes at = *known;
    pe_tapered out;
    const pe_dd square = pe_dd_square(height);
    for (int i = 0; i < PE_LANES; i++) {
        const pe_dd u = pe_lane(&at.u, i), squares = pe_dd_sub(square, pe_dd_square(u));
        const int is_complement = at.sign[i] < 0.0,
                  is_low = squares.h < -12000.0; /* kept from leaving the range of `power` */
        const pe_dd exponent = pe_dd_choose(is_low, pe_dd_of(-12000.0), squares);
        double power;
        const pe_dd half = pe_dd_scale(pe_dd_exp_parts(exponent, &power), 0.5);
        const double modulus = half.h * sqrt(at.re.h[i] * at.re.h[i] + at.im.h[i] * at.im.h[i]);
        /* a complement, 2 - erfc, has power 0 */
        const double limited = pe_power_of_2(pe_clamp(power, -1020.0, 1020.0)),
                     own = is_complement ? limited : 1.0;
        const pe_ddc value = {pe_lane(&at.re, i), pe_lane(&at.im, i)};
        const pe_ddc scaled = pe_ddc_scale(pe_ddc_times(value, half), own * at.sign[i]);
        const pe_dd re = pe_dd_choose(is_complement, pe_dd_add_d(scaled.re, 1.0), scaled.re);
        const double complement = 1.0 + modulus * own;
        out.re[i] = re.h;
        out.re_low[i] = re.l;
        out.im[i] = scaled.im.h;
        out.im_low[i] = scaled.im.l;
        out.size[i] = is_complement ? complement : modulus;
        out.power[i] = is_complement ? 0.0 : power;
        out.units[i] = 600.0 + 12.0 * (u.h * u.h + height.h * height.h);
    }
    *found = out;
}

void pe_taper_at(const pe_taper *t, const double *x, double y, pe_tapered *out) {
    /* the real part of the pole is +-y/width; nodes are integers of h or, if one of these is near it, halves */
    const double place = fabs(y / t->width) / SPACING, off = fabs(place - floor(place) - 0.5);
    const int is_half = off > NEAREST;
    const pe_dd per_width = pe_dd_div(pe_dd_of(-t->rise), pe_dd_of(t->width)),
                height = pe_dd_mul_d(per_width, y);
    double node[2 * NODES + 1];
    pe_dd bell[2 * NODES + 1];
    lanes at;
    for (int i = 0; i < PE_LANES; i++) {
        const pe_dd u = pe_dd_mul(per_width, pe_two_sum(x[i], -t->at));
        at.sign[i] = u.h < 0.0 ? -1.0 : 1.0;
        pe_set_lane(&at.u, i, pe_dd_scale(u, at.sign[i]));
    }
    set_bells(is_half, node, bell);
    scale_erfc(height, is_half, node, bell, &at);
    put_values(height, &at, out);
}
