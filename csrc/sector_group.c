/* Steps of groups: the root t of a loss in sums of two doubles, and a proof of how p = s dt/ds grows in the sector, by
 * discs of t along arg s = pi/4: Lemma 9 of docs/theory/sector_laws.md. */

#include "sector_group.h"

#include <math.h>

#include "doubles.h"

static const double PI = 3.14159265358979323846;
static const double NEARLY = 0x1p-40; /* largest relative distance of weights from binomial ones */
static const double START = 0.02; /* losses up to which C_j are bounded by the series, as 1/2 + REST[j] */
static const double REST[3] = {0.0464, 0.0959, 0.2168};
static const double SPARE = 0.2; /* by how much a bound over a disc may exceed that at its centre */
static const double FARTHEST = 300.0; /* loss by which the largest term must have taken over */
static const double MOST_GROWTH = 100.0; /* largest C_j for which a law is made */
static const double CANCELLED = 1e4; /* largest sum of moduli of terms over the modulus of their sum */
static const double OUTWARDS = 1.0 + 1e-9; /* factor for the rounding of bounds */
static const double LEAST_RADIUS = 1e-4; /* of a disc of t */
enum { MOST_DISCS = 20000, NEWTON = 60 };

int pe_group_make(pe_group *g, pe_dd shift, size_t size, const double *ratios, const double *floor) {
    if (size < 2 || size > PE_LARGEST_GROUP) return PE_TOO_COSTLY;
    g->size = size;
    g->log_weight[0] = floor[0];
    const pe_dd half_square = pe_dd_scale(pe_dd_square(shift), 0.5);
    g->square = 2.0 * half_square.h;
    const double odds = ratios[0] / (double)size;
    double binomial = 1.0;
    for (size_t k = 1; k <= size; k++) {
        const pe_dd ratio = pe_two_sum(ratios[2 * (k - 1)], ratios[2 * (k - 1) + 1]);
        binomial *= odds * (double)(size - k + 1) / (double)k;
        /* smaller weights would lose relative accuracy to underflow */
        if (!(binomial > 0x1p-900 && fabs(ratio.h / binomial - 1.0) < NEARLY)) return PE_TOO_COSTLY;
        const pe_dd log_ratio = pe_dd_log(ratio);
        g->log_a[k - 1] = pe_dd_sub(log_ratio, pe_dd_mul_d(half_square, (double)(k * k)));
        g->log_weight[k] = floor[0] + log_ratio.h;
    }
    return PE_OK;
}

/* ---- the root ------------------------------------------------------------------------------------------ */

/* sum[j] = sum over k of k^j a_k e^(k t) e^-top, j = 0 to 2 */
static void sums_at(const pe_group *g, double t, double *top, double *sum) {
    *top = -INFINITY;
    for (size_t k = 1; k <= g->size; k++) *top = fmax(*top, g->log_a[k - 1].h + (double)k * t);
    sum[0] = sum[1] = sum[2] = 0.0;
    for (size_t k = 1; k <= g->size; k++) {
        const double one = pe_d_exp(g->log_a[k - 1].h + (double)k * t - *top);
        sum[0] += one;
        sum[1] += (double)k * one;
        sum[2] += (double)(k * k) * one;
    }
}

double pe_group_log_em1(const pe_group *g, double t) {
    double top, sum[3];
    sums_at(g, t, &top, sum);
    return top + pe_d_log(sum[0]);
}

/* The root in doubles by Newton's method from the right, where one term alone equals the sum wanted; it decreases, as
 * the log of the sum is convex in t. */
static double root_of(const pe_group *g, double log_em1) {
    double t = INFINITY, top, sum[3];
    for (size_t k = 1; k <= g->size; k++) t = fmin(t, (log_em1 - g->log_a[k - 1].h) / (double)k);
    for (int i = 0; i < NEWTON; i++) {
        sums_at(g, t, &top, sum);
        const double step = (top + pe_d_log(sum[0]) - log_em1) * sum[0] / sum[1];
        t -= step;
        if (!(fabs(step) > 4.0 * 0x1p-53 * (1.0 + fabs(t)))) break;
    }
    return t;
}

pe_group_root pe_group_solve(const pe_group *g, pe_dd log_em1) {
    const double near = root_of(g, log_em1.h);
    double top, sum[3];
    sums_at(g, near, &top, sum);
    pe_dd all = pe_dd_of(0.0), slopes = all;
    double sizes = 0.0;
    for (size_t i = 0; i < g->size; i++) {
        const double k = (double)(i + 1);
        const pe_dd own = pe_dd_add(g->log_a[i], pe_two_prod(k, near));
        const pe_dd one = pe_dd_exp(pe_dd_add_d(own, -top));
        all = pe_dd_add(all, one);
        slopes = pe_dd_add(slopes, pe_dd_mul_d(one, k));
        sizes += one.h * (fabs(g->log_a[i].h) + k * fabs(near) + fabs(top) + k * k * g->square + 2.0);
    }
    const pe_dd miss = pe_dd_sub(pe_dd_sub(log_em1, pe_dd_of(top)), pe_dd_log(all));
    const double slope = slopes.h / all.h;
    /* one Newton step; its square is below the error bound */
    const pe_dd step = pe_dd_of(miss.h / slope);
    pe_group_root found = {.t = pe_dd_add(pe_dd_of(near), step)};
    const double turned = sum[2] / sum[1]; /* derivative of log_slope */
    found.log_slope = pe_dd_add_d(pe_dd_add_d(pe_dd_log(slopes), top), turned * step.h);
    const double most = (double)(g->size * g->size); /* bound of the second derivatives of both logs */
    const double left = fabs(miss.h) * 0x1p-50 + most * step.h * step.h;
    found.size[0] = fabs(log_em1.h) + fabs(near);
    found.size[1] = sizes / all.h + (double)g->size + left / PE_WIDE_UNIT;
    return found;
}

/* ---- growth -------------------------------------------------------------------------------------------- */

/* A disc of complex numbers of radius `off`; the operations below contain all results of numbers in their operands. */
typedef struct {
    double re, im, off;
} disc;

static double size_of(disc a) {
    return pe_d_hypot(a.re, a.im);
}

static disc rounded(double re, double im, double off) {
    return (disc){re, im, off * OUTWARDS + 1e-13 * (fabs(re) + fabs(im))};
}

static disc plus(disc a, disc b) {
    return rounded(a.re + b.re, a.im + b.im, a.off + b.off);
}

static disc times(disc a, disc b) {
    const double off = size_of(a) * b.off + (size_of(b) + b.off) * a.off;
    const double lost = 1e-15 * size_of(a) * size_of(b);
    return rounded(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re, off + lost);
}

static disc scaled(disc a, double x) {
    return rounded(a.re * x, a.im * x, a.off * fabs(x));
}

/* 1/a, of infinite radius if a contains 0 */
static disc inverse(disc a) {
    const double size = size_of(a), square = size * size;
    const double off = a.off < size ? a.off / (size * (size - a.off)) : INFINITY;
    return rounded(a.re / square, -a.im / square, off);
}

/* Largest modulus in a */
static double most_of(disc a) {
    return (size_of(a) + a.off) * OUTWARDS;
}

/* At a complex t: the terms 1 and a_k e^(k t) over their sum and their moduli, the logarithm S of the sum (up to
 * multiples of 2 pi i), the sum of the moduli, and the mean of k */
typedef struct {
    double re[PE_LARGEST_GROUP + 1], im[PE_LARGEST_GROUP + 1], size[PE_LARGEST_GROUP + 1];
    double log_re, log_im, all;
    double mean_re, mean_im;
} terms;

static void terms_at(const pe_group *g, double re, double im, terms *out) {
    double top = 0.0, sum_re = 0.0, sum_im = 0.0, turn_re = 1.0, turn_im = 0.0;
    const double one_re = pe_d_cos(im), one_im = pe_d_sin(im);
    for (size_t k = 1; k <= g->size; k++) top = fmax(top, g->log_a[k - 1].h + (double)k * re);
    for (size_t k = 0; k <= g->size; k++) {
        out->size[k] = pe_d_exp((k ? g->log_a[k - 1].h + (double)k * re : 0.0) - top);
        out->re[k] = out->size[k] * turn_re;
        out->im[k] = out->size[k] * turn_im;
        sum_re += out->re[k];
        sum_im += out->im[k];
        const double next = turn_re * one_re - turn_im * one_im;
        turn_im = turn_re * one_im + turn_im * one_re;
        turn_re = next;
    }
    const double square = sum_re * sum_re + sum_im * sum_im, size = sqrt(square);
    out->log_re = top + pe_d_log(size);
    out->log_im = pe_d_atan2(sum_im, sum_re);
    out->all = out->mean_re = out->mean_im = 0.0;
    for (size_t k = 0; k <= g->size; k++) {
        const double x = out->re[k], y = out->im[k];
        out->re[k] = (x * sum_re + y * sum_im) / square;
        out->im[k] = (y * sum_re - x * sum_im) / square;
        out->all += out->size[k] /= size;
        out->mean_re += (double)k * out->re[k];
        out->mean_im += (double)k * out->im[k];
    }
}

/* The first four derivatives of S(t) on the disc of the given radius about t: the cumulants of k with the terms as
 * complex weights, formed from moments about an integer near the mean.  Returns whether they are bounded. */
static int slopes_on(const pe_group *g, const terms *at, double radius, disc *slope) {
    const double middle = nearbyint(at->mean_re);
    double by[PE_LARGEST_GROUP + 1], moved = 0.0;
    disc mean[4];
    for (size_t k = 0; k <= g->size; k++) {
        by[k] = at->size[k] * pe_d_expm1(fabs((double)k - middle) * radius);
        moved += by[k];
    }
    for (int j = 0; j < 4; j++) {
        double re = 0.0, im = 0.0, off = 0.0, size = 0.0;
        for (size_t k = 0; k <= g->size; k++) {
            const double away = (double)k - middle;
            double power = away;
            for (int i = 0; i < j; i++) power *= away;
            re += power * at->re[k];
            im += power * at->im[k];
            off += fabs(power) * by[k];
            size += fabs(power) * at->size[k];
        }
        mean[j] =
            rounded(re, im, (off + pe_d_hypot(re, im) * moved) / (1.0 - moved) + 1e-12 * at->all * size);
    }
    const disc first = mean[0], square = times(first, first);
    slope[0] = plus(first, (disc){middle, 0.0, 0.0});
    slope[1] = plus(mean[1], scaled(square, -1.0));
    slope[2] = plus(plus(mean[2], scaled(times(first, mean[1]), -3.0)), scaled(times(first, square), 2.0));
    const disc by_third = scaled(times(first, mean[2]), -4.0),
               by_second = scaled(times(mean[1], mean[1]), -3.0);
    const disc by_both = scaled(times(square, mean[1]), 12.0), by_first = scaled(times(square, square), -6.0);
    slope[3] = plus(plus(plus(mean[3], by_third), plus(by_second, by_both)), by_first);
    return moved < 0.5 && at->all < CANCELLED;
}

/* size[]: largest |p - 1|/|s|, |p'|/|s|, |(log p)''|/|s|, |(log p)'''|/|s| and |p| on a disc of s, derivatives by
 * w = log s, given S' to S'''' there. */
enum { SIZES = 5 };
static void sizes_of(disc s, const disc *slope, double *size) {
    const disc one = {1.0, 0.0, 0.0}, minus = {-1.0, 0.0, 0.0}, by = inverse(slope[0]);
    const double least = (size_of(s) - s.off) / OUTWARDS;
    const disc p = times(s, by), bend = times(slope[1], by), third = times(slope[2], by);
    const disc turned = plus(one, times(minus, times(p, bend))); /* p'/p */
    const disc first = times(p, turned);
    /* first and second derivative of bend by t */
    const disc bent = plus(third, times(minus, times(bend, bend)));
    const disc twice =
        plus(plus(times(slope[3], by), times(minus, times(bend, third))), scaled(times(bend, bent), -2.0));
    const disc bend_1 = times(bent, p), bend_2 = plus(times(times(twice, p), p), times(bent, first));
    const disc log_2 = times(minus, plus(times(bend_1, p), times(bend, first)));
    const disc second = times(p, plus(times(turned, turned), log_2)); /* p'' = p (p'/p)^2 + p (log p)'' */
    const disc log_3 = plus(plus(times(bend_2, p), scaled(times(bend_1, first), 2.0)), times(bend, second));
    size[0] = most_of(plus(p, minus)) / least;
    size[1] = most_of(first) / least;
    size[2] = most_of(log_2) / least;
    size[3] = most_of(log_3) / least;
    size[4] = most_of(p);
}

/* Raises over[0..2] to the first three sizes on the disc of s of radius way |s|, given S' to S'''' at its centre (`at`)
 * and on all of it (`slope`): a size f/s moves by at most its derivative by log s, f'/s - f/s, times the way.  Returns
 * whether the bounds stay within SPARE of those at the centre. */
static int raise_over(disc s, double way, const disc *at, const disc *slope, double *over) {
    double here[SIZES], most[SIZES];
    const double size = size_of(s);
    sizes_of(s, at, here);
    sizes_of((disc){s.re, s.im, way * size}, slope, most);
    const double log_way = way / (1.0 - way);
    /* p'' is (p')^2/p + p (log p)'', and s/p is S' */
    const double second = most[4] * most[2] + most[1] * most[1] * most_of(slope[0]);
    const double turn[3] = {most[1] + most[0], second + most[1], most[3] + most[2]};
    for (int j = 0; j < 3; j++) {
        const double own = fmin(most[j], here[j] + log_way * turn[j]) * OUTWARDS;
        if (!(own < fmax(over[j], here[j] + SPARE))) return 0;
        over[j] = fmax(over[j], own);
    }
    return 1;
}

/* The same for all |s| >= r by bounds in closed form, once the last term outweighs the others; returns whether it
 * does. */
static int has_taken_over(const pe_group *g, double r, double *over) {
    const double size = (double)g->size, em1 = pe_d_expm1(0.7071067 * r);
    if (!(r > 3.0 * size)) return 0;
    const double t = root_of(g, pe_d_log(em1)), below = t - 1e-9 * (1.0 + fabs(t));
    double eta[4] = {0.0}; /* sums over k of (size - k)^j a_k/a_size e^(-(size - k) t) */
    for (size_t k = 0; k < g->size; k++) {
        const double less = size - (double)k;
        const double log_a = k ? g->log_a[k - 1].h : 0.0;
        double own = pe_d_exp(log_a - g->log_a[g->size - 1].h - less * below) * OUTWARDS;
        for (int j = 0; j < 4; j++, own *= less) eta[j] += own;
    }
    if (!(eta[0] < 0.25)) return 0;
    const double first = eta[1] / (1.0 - eta[0]), second = eta[2] / (1.0 - eta[0]),
                 third = eta[3] / (1.0 - eta[0]);
    const double slope = size - first, bend = (second + first * first) / slope,
                 turn = (third + 3.0 * first * second + 2.0 * first * first * first) / slope;
    if (!(slope > 0.0)) return 0;
    const double p = r / slope, turned = 1.0 + p * bend;
    over[0] = fmax(over[0], OUTWARDS * (1.0 / slope + 1.0 / r));
    over[1] = fmax(over[1], OUTWARDS * (turned / slope));
    over[2] = fmax(over[2], OUTWARDS * ((turn + bend * bend) * p + bend * turned) / slope);
    return 1;
}

/* Newton's method for the t of s = s_re + i s_im from a t nearby, on the branch of the logarithm nearest to s. */
static int follow(const pe_group *g, double s_re, double s_im, double *re, double *im, terms *at,
                  double *miss) {
    for (int i = 0; i < NEWTON; i++) {
        terms_at(g, *re, *im, at);
        const double off_re = at->log_re - s_re;
        double off_im = at->log_im - s_im;
        off_im -= 2.0 * PI * nearbyint(off_im / (2.0 * PI));
        *miss = pe_d_hypot(off_re, off_im);
        if (*miss < 1e-9 * s_re) return 1;
        const double of_re = at->mean_re, of_im = at->mean_im;
        const double square = of_re * of_re + of_im * of_im;
        *re -= (off_re * of_re + off_im * of_im) / square;
        *im -= (off_im * of_re - off_re * of_im) / square;
    }
    return 0;
}

/* How far along arg s = pi/4 the image of the disc of t reaches, on which S is one to one and the bounds are raised; 0
 * if that is not proven or the bounds would exceed SPARE. */
static double step_from(const pe_group *g, double r, double im, double miss, double radius, const terms *at,
                        const disc *here, double *over) {
    disc slope[4];
    const double s = 0.70710678118654752 * r, last_slit = PI * (double)(g->size - 1);
    if (!slopes_on(g, at, radius, slope)) return 0.0;
    const double least = size_of(slope[0]) - slope[0].off, bent = most_of(slope[1]) * radius;
    if (!(bent < 0.5 * least) || !(most_of(slope[0]) * radius < 3.0)) return 0.0;
    /* |S(t) - S(t_0)| >= (|S'(t_0)| - bent) |t - t_0| */
    const double reach = (least - bent) * radius - miss - 1e-9 * r, step = 0.8 * reach;
    if (!(reach > 0.0) || (s - reach <= last_slit && im + radius >= PI)) return 0.0;
    return raise_over((disc){s, s, 2.0 * miss}, step / r, here, slope, over) ? step : 0.0;
}

/* Follows arg s = pi/4 from START on, disc by disc, until the last term has taken over. */
int pe_group_growth(const pe_group *g, double *over, double *base) {
    const double turn = 0.70710678118654752;
    for (int j = 0; j < 3; j++) over[j] = 0.5 + REST[j];
    double r = START, re = pe_d_log(START) - g->log_a[0].h, im = 0.25 * PI, from_re = re, from_im = im,
           radius = 0.5;
    double wanted = 0.01;
    int status = PE_TOO_COSTLY;
    terms at;
    disc here[4];
    for (int i = 0; i < MOST_DISCS && r < FARTHEST; i++) {
        const double s = r * turn;
        double miss;
        if (!follow(g, s, s, &re, &im, &at, &miss) || !slopes_on(g, &at, 0.0, here)) break;
        /* t must lie in the last disc, where the root is unique; the first one is that of the series at START */
        if (pe_d_hypot(re - from_re, im - from_im) > 0.9 * radius) break;
        double step = 0.0;
        for (radius = 2.0 * wanted; step == 0.0 && radius > LEAST_RADIUS; radius *= 0.5)
            step = step_from(g, r, im, miss, radius, &at, here, over);
        if (step == 0.0 || !(fmax(over[0], fmax(over[1], over[2])) < MOST_GROWTH)) break;
        wanted = radius *= 2.0;
        r += step;
        from_re = re;
        from_im = im;
        if (has_taken_over(g, r, over)) {
            status = PE_OK;
            break;
        }
    }
    const double zero = pe_d_log1p(pe_d_exp(pe_group_log_em1(g, 0.0))); /* the loss at t = 0 */
    *base = OUTWARDS * (1.0 + over[1] * (1.0 + over[0] * zero) * zero / 2.7182);
    return status;
}
