#include "taper.h"

#include <float.h>
#include <math.h>

/* docs/theory/divided_lines.md says what stands here. */

static const double ROOT_PI = 1.77245385090551602730;
static const double FAR_OUT = 20.0; /* argument of erfc from which on its logarithm is a series */

double pe_taper_log(const pe_taper *t, double x, double *slope) {
    const double u = -t->rise * (x - t->at) / t->width, turn = -t->rise / t->width;
    if (u < FAR_OUT) {
        const double value = erfc(u);
        *slope = -turn * 2.0 / ROOT_PI * exp(-u * u) / value;
        return u < -0.5 ? log1p(-0.5 * erfc(-u)) : log(0.5 * value);
    }
    /* erfc(u) = e^(-u^2)/(u sqrt(pi)) (1 + series) */
    const double v = 0.5 / (u * u);
    const double series = -v * (1.0 - 3.0 * v * (1.0 - 5.0 * v * (1.0 - 7.0 * v * (1.0 - 9.0 * v))));
    *slope = -turn * 2.0 * u / (1.0 + series);
    return -u * u - log(2.0 * u * ROOT_PI) + log1p(series);
}

/* ---- in the plane ----------------------------------------------------------------------------------- */

enum { NODES = 20 }; /* on either side of 0 */
static const pe_wide SPACING = 0.40625L;
static const pe_wide PI = 3.14159265358979323846264338327950288L;
static const pe_wide NEAREST = 0.25L; /* of a spacing, from the nodes to the pole */

/* erfc(x + iy) e^(x^2 - y^2), x >= 0, |y| <= 1.  With z = -y + ix it is e^(-2ixy) i/pi times the integral of
 * e^(-t^2)/(z - t): a trapezoidal sum and, where the pole lies below pi over the spacing, its residue. */
static void scaled_erfc(pe_wide x, pe_wide y, pe_wide *re, pe_wide *im) {
    const pe_wide h = SPACING, zr = -y, zi = x;
    const pe_wide at = zr / h, off = fabsl(at - floorl(at) - 0.5L); /* from a half node */
    const int is_half = off > NEAREST; /* nodes are integers, or halves where a pole is near an integer */
    pe_wide sr = 0.0L, si = 0.0L;
    for (int k = -NODES; k <= NODES; k++) {
        const pe_wide t = ((pe_wide)k + (is_half ? 0.5L : 0.0L)) * h, dr = zr - t, e = expl(-t * t);
        const pe_wide square = dr * dr + zi * zi;
        sr += e * dr / square;
        si -= e * zi / square;
    }
    /* i h/pi times the sum */
    pe_wide wr = -si * h / PI, wi = sr * h / PI;
    if (zi < PI / h) { /* 2 e^(-z^2)/(1 -+ e^(-2 pi i z/h)) */
        const pe_wide grown = expl(2.0L * PI * zi / h), turn = -2.0L * PI * zr / h;
        const pe_wide sign = is_half ? 1.0L : -1.0L;
        const pe_wide dr = 1.0L + sign * grown * cosl(turn), di = sign * grown * sinl(turn);
        const pe_wide e = 2.0L * expl(zi * zi - zr * zr), er = e * cosl(-2.0L * zr * zi),
                      ei = e * sinl(-2.0L * zr * zi), square = dr * dr + di * di;
        wr += (er * dr + ei * di) / square;
        wi += (ei * dr - er * di) / square;
    }
    const pe_wide co = cosl(2.0L * x * y), si2 = -sinl(2.0L * x * y);
    *re = wr * co - wi * si2;
    *im = wr * si2 + wi * co;
}

pe_tapered pe_taper_at(const pe_taper *t, pe_wide x, pe_wide y) {
    const pe_wide sign = -(pe_wide)t->rise / (pe_wide)t->width;
    pe_wide u = sign * (x - (pe_wide)t->at), v = sign * y;
    const int is_complement = u < 0.0L;
    if (is_complement) {
        u = -u;
        v = -v;
    }
    pe_wide re, im;
    scaled_erfc(u, v, &re, &im);
    const pe_wide scale = 0.5L * expl(v * v - u * u), modulus = scale * sqrtl(re * re + im * im);
    pe_tapered out = {scale * re, scale * im, modulus, 600.0 + 12.0 * (double)(u * u + v * v)};
    if (is_complement) {
        out.re = 1.0L - out.re;
        out.im = -out.im;
        out.size = 1.0L + modulus;
    }
    return out;
}
