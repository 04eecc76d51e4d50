/* Bounds of one kind of step that do not come from its nodes: of the transform's modulus from some t on (Theorem 8 and
 * Lemma 9 of docs/theory/gaussian.md), of log M at other real tilts (Lemma 10), and of the removed mass (Lemma 3).
 * Interface in shifted.h; called by certified.c and divided.c. */

#include <math.h>

#include "doubles.h"
#include "lane_log.h"
#include "lane_trig.h"
#include "shifted.h"
#include "simd.h"

static const double PI = 3.14159265358979323846;
static const double MAX_NODES = 40000;
static const double OUT = 1.0 + 1e-8; /* factor outwards, for the rounding of bounds */
static const double WIDEST = 0.5; /* largest spacing of sums, in z */
/* other heights are tried if -log(modulus)/t^2 is below so much of the last one */
static const double FALLS = 0.8;
enum { HEIGHTS = 30 }; /* heights tried for a tapered law, at most */
/* of the digits asked for, where a sum with all of them needs too many nodes */
static const double FEWER = 0.6;

static const pe_envelope NONE = {INFINITY, 0.0, 0.0, INFINITY, INFINITY};

/* Half height of the strip about Im z = y that allows the widest spacing of a sum with a quadrature error of e^-digits;
 * returns that spacing, 0 if there is none.  `size`: integral of the modulus along an edge of the strip. */
static double strip_of(const pe_part *s, double y, double digits, double *half, double *size) {
    const pe_tilted *law = &s->law;
    const double unit = s->log_m, highest = PI / law->farthest, at_edge = pe_tilted_log(law, s->x_high);
    const double most = fmin(fmin(0.499 * highest, 0.9 * (highest - y)), 3.0);
    double best = 0.0;
    /* ends where no lower strip can have a wider spacing */
    for (double a = most; a > 0.02 * most && 2.0 * PI * a / digits > best; a *= 0.5) {
        const double grown = pe_d_exp(0.5 * (a * a + y * y));
        const double plain = pe_d_log(2.0 * a * grown) + at_edge - unit; /* growth is not negative */
        if (plain > -digits || !pe_tilted_lift(law, a + y)) continue;
        if (plain + pe_tilted_growth(law, s->x_high) > -digits) continue;
        const double one = grown * pe_tilted_lifted(law, s->x_high + 1.5 * WIDEST, unit, 1.0);
        const double h = 2.0 * PI * a / (pe_d_log(1.0 + 2.0 * one) + digits);
        if (h > best) {
            best = h;
            *half = a;
            *size = one;
        }
    }
    return fmin(best, WIDEST);
}

/* A side at PE_LANES points x + iy, co and si being cosine and sine of its shifts times y: log of its modulus,
 * |argument| */
PE_INLINE void sides_on_line(const pe_normals *s, const double *x, const double *co, const double *si,
                             double *log_of, double *angle) {
    double top[PE_LANES] = {0}, re[PE_LANES] = {0}, im[PE_LANES] = {0}, above[PE_LANES] = {0};
    for (size_t j = 0; j < s->n; j++)
        for (int u = 0; u < PE_LANES; u++) {
            const double e = s->shift[j] * (x[u] - 0.5 * s->shift[j]);
            top[u] = e > top[u] ? e : top[u];
        }
    for (int u = 0; u < PE_LANES; u++)
        top[u] = top[u] > 600.0 ? top[u] : 0.0; /* divided out if it would overflow */
    for (size_t j = 0; j < s->n; j++)
        for (int u = 0; u < PE_LANES; u++) {
            const double e = pe_vexp(s->shift[j] * (x[u] - 0.5 * s->shift[j]) - top[u]);
            re[u] += s->weight[j] * e * co[j];
            im[u] += s->weight[j] * e * si[j];
            above[u] += s->weight[j] * (e * co[j] - 1.0);
        }
    for (int u = 0; u < PE_LANES; u++) {
        const double square = above[u] * (2.0 + above[u]) + im[u] * im[u];
        const double r = top[u] == 0.0 ? square : -1.0, small = r > -0.5 ? r : 0.0;
        const double near = pe_vlog1p_real(small, 1.0 + small), far = pe_log(re[u] * re[u] + im[u] * im[u]);
        log_of[u] = top[u] + 0.5 * (r > -0.5 ? near : far);
    }
    for (int u = 0; u < PE_LANES; u++) angle[u] = pe_vargument(re[u], fabs(im[u]));
}

enum { TERMS = 256 }; /* largest number of terms of a side */

/* Cosines and sines of the shifts times y */
typedef struct {
    double co[2][TERMS], si[2][TERMS];
} turns;

static int set_turns(const pe_tilted *t, double y, turns *at) {
    const pe_normals *sides[] = {&t->a, &t->b};
    for (int k = 0; k < 2; k++) {
        if (sides[k]->n > TERMS) return 0;
        for (size_t j = 0; j < sides[k]->n; j++) {
            at->co[k][j] = pe_d_cos(sides[k]->shift[j] * y);
            at->si[k][j] = pe_d_sin(sides[k]->shift[j] * y);
        }
    }
    return 1;
}

/* Sum of sqrt(2 pi) |F| e^{-t arg W} e^-unit over the nodes x = j h, first <= j <= last, on Im z = y */
PE_CLONES static double sum_on_line(const pe_tilted *law, const turns *turn, double t, double y, double unit,
                                    double first, double last, double h) {
    double sum[PE_LANES] = {0};
    const int plain_a = law->a.n == 1 && law->a.shift[0] == 0.0,
              plain_b = law->b.n == 1 && law->b.shift[0] == 0.0;
    for (double j = first; j <= last; j += PE_LANES) {
        double x[PE_LANES], log_a[PE_LANES] = {0}, log_b[PE_LANES] = {0}, of_a[PE_LANES] = {0},
                            of_b[PE_LANES] = {0}, e[PE_LANES], most = -INFINITY;
        for (int u = 0; u < PE_LANES; u++) x[u] = (j + u <= last ? j + u : last) * h;
        if (!plain_a) sides_on_line(&law->a, x, turn->co[0], turn->si[0], log_a, of_a);
        if (!plain_b) sides_on_line(&law->b, x, turn->co[1], turn->si[1], log_b, of_b);
        for (int u = 0; u < PE_LANES; u++)
            e[u] = 0.5 * (y * y - x[u] * x[u]) + (1.0 - law->q) * log_a[u] + law->q * log_b[u] - unit -
                   t * (of_a[u] + of_b[u]);
        for (int u = 0; u < PE_LANES; u++) {
            e[u] = j + u <= last ? e[u] : -INFINITY;
            most = e[u] > most ? e[u] : most;
        }
        if (!(most < 700.0)) return INFINITY;
        for (int u = 0; u < PE_LANES; u++) sum[u] += pe_vexp(e[u]);
    }
    return pe_lane_sum(sum);
}

/* Theorem 8 at height y, over M: B_y(t) as a trapezoidal sum (Lemma 9), and the path that goes down at the edge of the
 * window to the real line. */
static pe_envelope envelope_at(const pe_part *s, double t, double y, double digits) {
    const pe_tilted *law = &s->law;
    const double unit = s->log_m, theta = law->farthest * y;
    double a = 0.0, size = INFINITY;
    const double h = strip_of(s, y, digits, &a, &size);
    if (!(h > 0.0)) return NONE;
    const double x_low = s->x_low - 2.0, last = ceil(s->x_high / h), edge = (last + 0.5) * h;
    turns turn;
    if (!((edge - x_low) / h < MAX_NODES) || edge > s->cut || !set_turns(law, y, &turn)) return NONE;
    const double sum = sum_on_line(law, &turn, t, y, unit, ceil(x_low / h), last, h);
    const double scale = 0.3989422804014327 * h * (1.0 + 1e-10);
    const double waves = pe_d_expm1(2.0 * PI * a / h), grown = pe_d_exp(0.5 * (a * a + y * y)),
                 lifted = pe_d_exp(0.5 * y * y);
    const double at_edge = pe_tilted_log(law, edge) - unit;
    /* the vertical edge of the strip of the sum; */
    pe_tilted_lift(law, a + y);
    const double side = 2.0 * a * grown * pe_d_exp(at_edge + pe_tilted_growth(law, edge));
    pe_tilted_lift(law, y);
    /* the way down and the rest of the real line: at most falls/t and at most rest, the smaller one where the loss
     * hardly rises any more; */
    const double top = lifted * pe_d_exp(at_edge + pe_tilted_growth(law, edge));
    const double down =
        top / (pe_tilted_loss_slope(law, edge) * (theta > 1e-9 ? pe_d_sin(theta) / theta : 1.0));
    const double falls = (down + pe_tilted_variation(law, edge, s->cut, unit)) * OUT;
    const double rest = (y * top + pe_tilted_rest(law, edge, s->cut, unit)) * OUT;
    /* and the mass below the nodes */
    const double below = lifted * pe_tilted_sum(law, -INFINITY, x_low, unit, h / PE_CELL);
    const double modulus = (sum * scale + 2.0 * size / waves + side + below + fmin(falls / t, rest)) * OUT;
    return (pe_envelope){modulus, y, edge, falls, rest};
}

/* The same for a tapered law by sums over cells (docs/theory/divided_lines.md, Lemma 2); the path goes down at its end,
 * where e^(bulge eta^2 - t arg) <= e^(-t arg/2) at every height eta <= y if that holds at y. */
static pe_envelope envelope_of_tapered(const pe_part *s, double t, double y) {
    const pe_tilted *law = &s->law;
    const double theta = law->farthest * y, edge = pe_tilted_end(law);
    if (!pe_tilted_lift(law, y)) return NONE;
    const double turn = pe_tilted_loss_slope(law, edge) * (theta > 1e-9 ? pe_d_sin(theta) / theta : 1.0);
    if (!(law->bulge * y <= 0.5 * t * turn)) return NONE;
    const double sum = pe_d_exp(law->bulge * y * y) * pe_tilted_turned(law, y, edge, t, s->log_m);
    const double at_edge = pe_d_exp(pe_tilted_log(law, edge) - s->log_m + pe_tilted_growth(law, edge));
    const double falls = 2.0 * at_edge / turn * OUT, rest = y * at_edge * OUT;
    return (pe_envelope){(sum + fmin(falls / t, rest)) * OUT, y, edge, falls, rest};
}

/* t times a bound of the integral over dt/t from t on of the last envelope. */
static double integral_of(const pe_part *s, double t, const pe_envelope *e) {
    if (!isfinite(e->modulus)) return INFINITY;
    pe_tilted_lift(&s->law, e->y);
    const double lifted = pe_d_exp(s->law.bulge * e->y * e->y);
    const double over = pe_tilted_over_angle(&s->law, e->y, e->edge, t, s->log_m);
    /* t times the integral of min(rest, falls/t) dt/t: `rest` up to falls/rest, then falls/t */
    const double near = t * e->rest;
    const double beyond = near > 0.0 && near < e->falls ? near * (1.0 + pe_d_log(e->falls / near)) : e->falls;
    return (lifted * over + beyond) * OUT;
}

/* Sets the best bound over heights y.  The first y is t times the mean slope of the loss, or in proportion to the last
 * best one; others are tried if the bound has fallen by less than FALLS of what a Gaussian's would since the last t. */
static void find_best(pe_part *s, double t, double digits) {
    const double most = fmin(12.0, 0.85 * PI / s->law.farthest);
    pe_height *at = &s->height;
    if (s->law.log_taper) { /* no proportion is known: try heights from the top */
        at->best = NONE;
        for (int i = 0; i < HEIGHTS; i++) {
            const pe_envelope next = envelope_of_tapered(s, t, most * pe_d_pow(0.75, i));
            if (next.modulus < at->best.modulus) at->best = next;
            else if (isfinite(at->best.modulus)) break;
        }
        return;
    }
    if (!(at->per_t > 0.0)) at->per_t = fmax(pe_tilted_mean_slope(&s->law, &s->window), 1e-12);
    const double first = fmin(t * at->per_t, most), known = at->fall;
    at->best = envelope_at(s, t, first, digits);
    at->fall = -pe_d_log(at->best.modulus) / (t * t);
    if (at->fall > FALLS * known) return;
    for (int up = 0; up < 2; up++) {
        double y = first;
        for (int i = 0; i < 9; i++) {
            y = up ? fmin(y * 1.5, most) : y / 1.5;
            const pe_envelope next = envelope_at(s, t, y, digits);
            const int better = next.modulus < at->best.modulus;
            if (better) at->best = next;
            if ((!better && i) || y == most) break;
        }
    }
    if (!isfinite(at->best.modulus)) return;
    at->per_t = at->best.y / t;
    at->fall = -pe_d_log(at->best.modulus) / (t * t);
}

/* Upper bound of the share of an alternative in M */
static double share_of(const pe_shifted *s, const pe_part *part) {
    return part->terms.share.h * pe_d_exp(part->log_m - s->log_m.h) * OUT;
}

double pe_shifted_envelope(pe_shifted *s, double t, double digits) {
    double sum = 0.0;
    for (size_t i = 0; i < s->n_parts; i++) {
        pe_part *part = &s->part[i];
        find_best(part, t, digits);
        /* fewer digits serve where other kinds make the product small */
        if (!isfinite(part->height.best.modulus)) find_best(part, t, FEWER * digits);
        sum += share_of(s, part) * part->height.best.modulus;
    }
    return sum;
}

double pe_shifted_beyond(const pe_shifted *s, double t) {
    double sum = 0.0;
    for (size_t i = 0; i < s->n_parts; i++)
        sum += share_of(s, &s->part[i]) * integral_of(&s->part[i], t, &s->part[i].height.best);
    return sum;
}

/* log of a bound of the integral over the vertical edge of a strip of half height a about the real line, in units of
 * e^unit, given log F there and its growth */
static double edge_log(const pe_tilted *t, double a, double at_edge, double growth, double unit) {
    return pe_d_log(2.0 * a) + t->bulge * a * a + at_edge + growth - unit;
}

/* Upper bound of log M of one alternative at power q (Lemma 10) */
static double part_above(const pe_part *s, double q, double digits) {
    pe_tilted t;
    pe_window w;
    const int failed = pe_tilted_power(&t, &s->law, q, s->cut);
    double h = 0.0, miss = INFINITY, half = 0.0, found = INFINITY;
    /* where the window does not end before the cut, the sum goes on to the last node before that */
    if (!failed && pe_tilted_whole(&t, digits, &w)) {
        const int is_ended = w.is_whole || t.log_taper;
        const double at_end = is_ended ? pe_tilted_log(&t, w.high) : 0.0;
        /* ends where no lower strip can have a wider spacing; growth is at least 0 */
        for (double a = fmin(0.98 * PI / t.farthest, 6.0);
             a > 0.01 && fmin(2.0 * PI * a / digits, WIDEST) > h; a *= 0.7) {
            if (is_ended && edge_log(&t, a, at_end, 0.0, w.log_total) > -digits) continue;
            if (!pe_tilted_lift(&t, a)) continue;
            if (is_ended && edge_log(&t, a, at_end, pe_tilted_growth(&t, w.high), w.log_total) > -digits)
                continue;
            const double grown = pe_d_exp(t.bulge * a * a);
            const double size = 2.0 * grown * pe_tilted_lifted(&t, w.high + 1.5 * WIDEST, w.log_total, 1.1);
            const double next = fmin(2.0 * PI * a / (pe_d_log(1.0 + size) + digits), WIDEST);
            if (next > h) {
                h = next;
                half = a;
                miss = size / pe_d_expm1(2.0 * PI * a / h);
            }
        }
    }
    if (h > 0.0 && (w.high - w.low) / h < MAX_NODES) {
        double last = ceil(w.high / h);
        while ((last + 0.5) * h > w.end) last -= 1.0;
        const double edge = (last + 0.5) * h;
        const double sum = h * pe_tilted_nodes(&t, ceil(w.low / h), last, h, w.log_total);
        pe_tilted_lift(&t, half);
        double beyond =
            pe_d_exp(edge_log(&t, half, pe_tilted_log(&t, edge), pe_tilted_growth(&t, edge), w.log_total));
        pe_tilted_lift(&t, 0.0); /* mass outside of the sum, on the real line */
        beyond += pe_tilted_sum(&t, -INFINITY, w.low, w.log_total, h / PE_CELL);
        beyond += pe_tilted_rest(&t, edge, w.end, w.log_total);
        const double reach = (fabs(q) + fabs(1.0 - q)) * t.farthest * fmax(fabs(w.low), edge) +
                             fabs(w.log_total) +
                             (t.log_taper ? fabs(t.log_taper[0]) + fabs(t.log_taper[t.n]) : 0.0);
        if (sum < 1.1) found = w.log_total + pe_d_log(sum + miss + beyond) + 1e-14 * (10.0 + reach);
    }
    if (!failed) pe_tilted_free(&t);
    return found;
}

double pe_shifted_log_above(const pe_shifted *s, double lambda) {
    const double q = s->is_conjugate ? 1.0 - lambda : lambda, digits = pe_d_log(1e6 * s->steps);
    if (s->n_parts == 1) return part_above(&s->part[0], q, digits);
    double top = -INFINITY, log_part[PE_ALTERNATIVES], sum = 0.0;
    for (size_t i = 0; i < s->n_parts; i++) {
        log_part[i] = pe_d_log(s->part[i].terms.share.h) + part_above(&s->part[i], q, digits);
        top = fmax(top, log_part[i]);
    }
    if (!isfinite(top)) return INFINITY;
    for (size_t i = 0; i < s->n_parts; i++) sum += pe_d_exp(log_part[i] - top);
    return top + pe_d_log(sum) + 1e-14 * (10.0 + fabs(top));
}

void pe_shifted_removed(const pe_shifted *s, double *of_a, double *of_b) {
    double sums[2] = {0.0, 0.0};
    for (size_t i = 0; i < s->n_parts; i++) {
        const pe_part *part = &s->part[i];
        sums[0] += part->terms.share.h * pe_normals_above(&part->law.a, part->cut) * OUT;
        sums[1] += part->terms.share.h * pe_normals_above(&part->law.b, part->cut) * OUT;
    }
    *of_a = fmax(sums[s->is_conjugate], 5e-324);
    *of_b = fmax(sums[!s->is_conjugate], 5e-324);
}
