/* Chooses height and spacing of the nodes of one alternative, and bounds their quadrature error: Theorem 4 of
 * docs/theory/gaussian.md.  Called by shifted.c. */

#include "doubles.h"
#include "shifted_nodes.h"

#include <math.h>

static const double PI = 3.14159265358979323846;
static const double HIGHEST = 1.2; /* largest y sqrt(2 bulge) of a line, as moduli grow like e^(bulge y^2) */
static const double MAX_NODES = 40000;
static const double WIDEST = 0.75; /* largest spacing of nodes on the real line, */
static const double HALF_STRIP = 8.0; /* and largest half height of their strip */
static const double GROWN = 1e5; /* integral of moduli from which on lower lines are tried */
/* nats by which e^(t |arg|) grows in 1/2 of height: no real line from here on */
static const double TOO_FAST = 30.0;

/* x rounded down to 20 bits, so that its multiples by integers below 2^33 are doubles. */
static double short_number(double x) {
    int exponent;
    const double mantissa = frexp(x, &exponent);
    return ldexp(floor(mantissa * 0x1p20), exponent - 20);
}

/* Nodes on Im z = y in the strip |Im z - y| <= half.  Theorem 4 (a), y = half: the integrand falls with t in all of the
 * strip.  Theorem 4 (b), y = 0: it grows by at most e^(time |arg|) for 0 <= t <= time. */
typedef struct {
    double y, half, time;
} strip;

/* Bound of the errors at the edges: the vertical edge at x_high, what lies beyond it on the real line, and the part of
 * the sum below x_low; for the integrand and, on lines of whole laws, for the Gaussians that centre the sum for log
 * M. */
static double outside(const pe_part *s, const strip *at, double h) {
    const pe_tilted *t = &s->law;
    const double top = at->y + at->half, x = s->x_high, unit = s->window.log_total;
    /* factors of the centring Gaussians phi a and phi b; the sums of a tapered law are not centred */
    const double of_a = t->log_taper ? 0.0 : fabs(t->q - 1.0), of_b = t->log_taper ? 0.0 : 1.0 + of_a;
    const double of_one = t->log_taper ? 0.0 : pe_d_exp(-unit);
    /* the vertical edge */
    const double bell = -0.5 * x * x - 0.91893853320467274178;
    const double plain = pe_d_exp(bell + pe_tilted_log_side(t, 0, x)) * of_a +
                         pe_d_exp(bell + pe_tilted_log_side(t, 1, x)) * of_b;
    if (!pe_tilted_lift(t, top)) return INFINITY;
    const double turned = at->time > 0.0 ? at->time * pe_tilted_angle(t, at->half, x) : 0.0;
    double sum = 2.0 * at->half * pe_d_exp(t->bulge * top * top) *
                 (pe_d_exp(pe_tilted_log(t, x) + pe_tilted_growth(t, x) + turned - unit) + plain * of_one);
    /* beyond it on the real line */
    sum += pe_tilted_rest(t, x, s->cut, unit);
    sum += (of_a * pe_normals_above(&t->a, x) + of_b * pe_normals_above(&t->b, x)) * of_one;
    /* below the window: the sum on the line that is left out */
    const double low = s->x_low, grown = pe_d_exp(t->bulge * at->y * at->y);
    sum += grown * pe_tilted_sum(t, -INFINITY, low, unit, h / PE_CELL);
    const double first = of_a * pe_normals_below(&t->a, low) + of_b * pe_normals_below(&t->b, low);
    /* a sum of Gaussians is at most their integral and the largest term of each */
    const double next = pe_d_exp(-0.5 * low * low - 0.91893853320467274178);
    sum += grown *
           (first * (1.0 + h) + h * next *
                                    (of_a * pe_d_exp(pe_tilted_log_side(t, 0, low)) +
                                     of_b * pe_d_exp(pe_tilted_log_side(t, 1, low)))) *
           of_one;
    return sum * (1.0 + 1e-8);
}

/* Bound of N_+ + N_- of Theorem 4, the integrals of the modulus along both edges of the strip up to `high`, in units of
 * e^log_total. */
static double on_lines(const pe_part *s, const strip *at, double high) {
    const pe_tilted *t = &s->law;
    const double top = at->y + at->half, grown = pe_d_exp(t->bulge * top * top), unit = s->window.log_total;
    if (!pe_tilted_lift(t, top)) return INFINITY;
    const double centring =
        t->log_taper ? 0.0 : (1.0 + 2.0 * pe_tilted_change(t) * fabs(t->q - 1.0)) * pe_d_exp(-unit);
    if (at->time > 0.0)
        return 2.0 * grown * (pe_tilted_raised(t, at->half, high, at->time, unit) + centring) * (1.0 + 1e-8);
    const double line = pe_tilted_lifted(t, high, unit, 1.1);
    return (1.1 + grown * line + (1.0 + grown) * centring) * (1.0 + 1e-8);
}

/* Takes the nodes of a strip, N_+ + N_- = size, with the upper edge at `high` or just above, if their error is small and
 * they are fewer than those found so far.  Returns whether it took them. */
static int try_strip(pe_part *s, const strip *at, double size, double high, double target) {
    const double widest = at->time > 0.0 ? WIDEST : 0.5,
                 before = s->h > 0.0 ? (s->x_high - s->x_low) / s->h : INFINITY;
    const double h = short_number(fmin(2.0 * PI * at->half / pe_d_log(1.0 + size / target), widest));
    const double known = s->x_high, edge = (ceil(high / h) + 0.5) * h;
    if (!(h > 0.0 && (edge - s->x_low) / h < before) || edge > s->cut) return 0;
    s->x_high = edge;
    const double missed = size / pe_d_expm1(2.0 * PI * at->half / h) + outside(s, at, h);
    if (!(missed <= 4.0 * target)) {
        s->x_high = known;
        return 0;
    }
    s->missed = missed;
    s->h = h;
    s->y = at->y;
    return 1;
}

/* Where, from the window's end on, the vertical edge of a strip about the real line has an integral below the target. */
static double edge_of_strip(const pe_part *s, const strip *at, double target) {
    const double level =
        pe_d_log(0.5 * target / at->half) - s->law.bulge * at->half * at->half + s->window.log_total;
    return pe_tilted_edge(&s->law, s->window.high, at->half, at->time, level);
}

int pe_shifted_height(pe_part *s, double target, double t_top) {
    const pe_window *w = &s->window;
    const double farthest = s->law.farthest,
                 top = fmin(HIGHEST * sqrt(0.5 / s->law.bulge), 0.495 * PI / farthest);
    s->x_low = w->low;
    s->h = 0.0;
    const double slope = pe_tilted_loss_slope(&s->law, w->high);
    const double highest = fmin(HALF_STRIP, 0.95 * PI / farthest);
    for (int i = 0; i < 8 && 0.5 * t_top * slope < TOO_FAST; i++) {
        const double a = highest * pe_d_pow(0.75, i);
        const strip at = {0.0, a, t_top};
        if (!pe_tilted_lift(&s->law, a)) continue;
        const double high = edge_of_strip(s, &at, target);
        const int is_known = s->h > 0.0;
        if (!try_strip(s, &at, on_lines(s, &at, high + 1.5 * WIDEST), high, target) && is_known) break;
    }
    for (int i = 0, is_done = s->h > 0.0; i < 18 && !is_done; i++) {
        const double y = short_number(top * pe_d_pow(0.75, i));
        const strip at = {y, y, 0.0};
        const double size = on_lines(s, &at, w->high + 1.0);
        const int is_known = s->h > 0.0, is_better = try_strip(s, &at, size, w->high, target);
        is_done = is_better ? size < GROWN : is_known;
    }
    return s->h > 0.0 && (s->x_high - s->x_low) / s->h < MAX_NODES;
}
