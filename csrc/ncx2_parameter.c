/* The noncentrality or the degrees of freedom at which a tail of the noncentral chi-squared
   distribution is given, see functions.h and docs/special/ncx2.md. */
#include "doubles.h"
#include "functions.h"
#include "ncx2_core.h"

#define BLOCK PE_NCX2_BLOCK
#define MAX_EVALUATIONS 120
#define LARGEST 0x1p200      /* largest value of a known argument */
#define FAR_LOG (-0x1p280)   /* below: the leading term of the exponent is the answer */
#define NEAR 1e-3 /* residual of logs below which the step uses differences of normal quantiles */
#define NOISE 1e-14
#define SLACK (8 * 0x1p-52) /* by which log p may exceed the largest value that any parameter has */

/* The variable of the secant steps, in which the normal quantile of the tail is nearly linear. */
static double place(const pe_ncx2_parameter *t, double y, int in_log) {
    if (in_log) return pe_d_log(y);
    return sqrt(y + (t->of_df ? 2.0 * t->lam.h : 0.5 * t->d) + 0.5);
}

static int is_log(const pe_ncx2_parameter *t, double y) {
    return t->of_df && t->lam.h == 0.0 && y < 1.0; /* the upper tail is proportional to df there */
}

static void set_row(pe_ncx2_block *b, int m, const pe_ncx2_parameter *t) {
    pe_dd y = pe_dd_make(t->y.h, 0.0), lam = t->of_df ? t->lam : y;
    pe_ncx2_set_tail(b, m, t->x, t->of_df ? y.h : t->d, lam);
}

/* The log of the tail minus its goal, signed so that it is positive where y is too small. */
static double residual(const pe_ncx2_parameter *t, const pe_ncx2_block *b, int i) {
    int below = b->side[i] < 0.0, lower = t->log_lower.h < t->log_upper.h;
    pe_dd goal = lower ? t->log_lower : t->log_upper;
    double rho;
    if (below == lower) {
        pe_dd log_t = pe_dd_log(pe_dd_make(b->t[i], 0.0));
        pe_dd apart = pe_dd_add(pe_dd_make(b->phi_h[i], b->phi_l[i]), pe_dd_make(-goal.h, -goal.l));
        rho = pe_dd_add(apart, log_t).h;
    } else {
        double v = pe_exp_times(b->phi_h[i], b->phi_l[i], b->t[i]);
        rho = pe_log1m(v < 1.0 - 0x1p-53 ? v : 1.0 - 0x1p-53) - goal.h;
    }
    return lower ? rho : -rho;
}

/* The same as a difference of normal quantiles: with h = phi/Phi at the goal's z, a log that is larger by
   rho is at z + rho/h + (z + h) rho^2/(2 h^2) + ... */
static double in_quantiles(const pe_ncx2_parameter *t, double r) {
    int lower = t->log_lower.h < t->log_upper.h;
    double goal = lower ? t->log_lower.h : t->log_upper.h, z = pe_ndtri_exp(goal);
    double rho = lower ? r : -r, apart;
    if (fabs(r) < NEAR) {
        double hazard = z < -30.0 ? -z - 1.0 / z : pe_d_exp(-0.5 * z * z - 0.9189385332046728 - goal);
        double first = rho / hazard;
        apart = first + 0.5 * (z + hazard) * first * first;
    } else apart = pe_ndtri_exp(fmin(rho + goal, -0x1p-1000)) - z;
    return lower ? apart : -apart;
}

/* A point between the ends of the bracket, also where they differ by orders of magnitude. */
static double between(double low, double high, double y) {
    if (high == INFINITY) return fmax(16.0 * y, 1.0);
    if (low == 0.0) return high * 0x1p-40;
    return low < 0.25 * high ? sqrt(low) * sqrt(high) : 0.5 * (low + high);
}

/* The y at which a normal law of the same mean and variance has the goal: v^2 + c v = x + ..., v as in `place`. */
static double normal_guess(const pe_ncx2_parameter *t) {
    int lower = t->log_lower.h < t->log_upper.h;
    double z = pe_ndtri_exp(lower ? t->log_lower.h : t->log_upper.h), half, rest, v;
    z = lower ? z : -z;
    half = t->of_df ? 0.7071067811865476 * z : z;
    rest = t->of_df ? t->x.h + t->lam.h : t->x.h - 0.5 * t->d;
    v = sqrt(fmax(half * half + rest, 0.0)) - half;
    return v > 0.0 ? v * v - (t->of_df ? 2.0 * t->lam.h : 0.5 * t->d) : 0.0;
}

/* One safeguarded secant step; the last one is kept in double-double. */
static void advance(pe_ncx2_parameter *t, double r) {
    double y = t->y.h, g = in_quantiles(t, r), next, slope, v, step, moved;
    int in_log = is_log(t, y), has_last = t->last >= 0.0 && (!in_log || t->last > 0.0), is_noise, is_last;

    if (r == 0.0) {
        t->open = 0;
        return;
    }
    if (r > 0.0) t->low = y;
    else t->high = y;
    v = place(t, y, in_log);
    slope = has_last ? t->slope : (t->of_df ? -1.4142135623730951 : -1.0);
    /* two residuals that differ by rounding only: keep the last slope, and y is accurate enough */
    is_noise = t->count > 1 && fabs(r) < NEAR &&
               fabs(g - t->last_g) < NOISE * fmax(1.0, -fmin(t->log_lower.h, t->log_upper.h));
    if (has_last && !is_noise) { /* the difference of roots by that of their squares */
        double before = place(t, t->last, in_log);
        slope = (g - t->last_g) / (in_log ? v - before : (y - t->last) / (v + before));
    }
    step = -g / slope;
    step = fmin(step, in_log ? 40.0 : 7.0 * v + 1.0);
    moved = in_log ? y * pe_d_expm1(step) : step * (2.0 * v + step);
    next = in_log ? y * pe_d_exp(step) : y + moved;
    /* the last step: what it leaves is about its product with the one before, or below rounding; where y
       is large the law is normal, and the slope known */
    is_last =
        has_last && fabs(moved) < 1e-3 * y && (is_noise || fabs(moved) * fabs(y - t->last) <= 1e-18 * y * y);
    is_last |= (has_last || v > 1e4) && fabs(moved) <= 0x1p-53 * y;
    if (is_last && slope < 0.0 && next >= 0.0) {
        t->y = pe_two_sum(y, moved);
        t->open = 0;
        return;
    }
    if (y == 0.0) { /* far from the answer a difference of quantiles is of little use */
        double guess = normal_guess(t);
        if (fabs(g) > 1.0 && guess > 0.0) next = guess;
    }
    /* halve a bracket that shrinks slowly */
    if (!(slope < 0.0 && next > t->low && next < t->high) || (t->count > 12 && t->count % 3 == 0))
        next = between(t->low, t->high, y);
    next = fmin(next, PE_NCX2_MAX);
    if (next < 0x1p-1074) { /* the answer underflows */
        t->y = pe_dd_make(0.0, 0.0);
        t->open = 0;
        return;
    }
    t->last = y == 0.0 && fabs(g) > 30.0 ? -1.0 : y; /* a quantile of 1 to all digits */
    t->last_g = g;
    t->slope = slope;
    t->count++;
    if (!(next > t->low && next < t->high) || next == y) { /* no double is left between the ends */
        t->open = 0;
        return;
    }
    t->y = pe_dd_make(next, 0.0);
}

/* Far out the exponent alone decides: -(sqrt(x) - sqrt(nc))^2/2, or -(df/2)(log(df/x) - 1). */
static double far_out(const pe_ncx2_parameter *t) {
    double twice = -2.0 * t->log_lower.h, y;
    if (!t->of_df) {
        double root = sqrt(t->x.h) + 1.4142135623730951 * sqrt(-t->log_lower.h);
        return root * root;
    }
    if (twice == INFINITY) twice = 0x1.fffffffffffffp1023;
    y = twice / 400.0;
    for (int k = 0; k < 60; k++) y = twice / (pe_d_log(y) - pe_d_log(t->x.h) - 1.0);
    return -t->log_lower.h > 0x1p1022 ? 2.0 * (-t->log_lower.h / (pe_d_log(y) - pe_d_log(t->x.h) - 1.0)) : y;
}

static void begin(pe_ncx2_parameter *t) {
    t->low = 0.0;
    t->high = INFINITY;
    t->last = -1.0;
    t->last_g = 0.0;
    t->count = 0;
    t->open = 1;
    /* y = 0 comes first, as it shows whether there is an answer; but a tail is 1 at df = nc = 0 */
    t->y = pe_dd_make(0.0, 0.0);
    if (t->of_df && t->lam.h == 0.0) t->y.h = fmin(fmax(normal_guess(t), 0.25), PE_NCX2_MAX);
    if (t->log_lower.h < FAR_LOG) {
        t->y = pe_dd_make(far_out(t), 0.0);
        t->open = 0;
    }
}

void pe_ncx2_find(pe_ncx2_parameter *all, int n) {
    pe_ncx2_block b;
    int at[BLOCK], flipped[BLOCK];

    for (int i = 0; i < n; i++) begin(all + i);
    for (int k = 0; k < MAX_EVALUATIONS; k++) {
        int m = 0;
        for (int i = 0; i < n; i++)
            if (all[i].open) {
                set_row(&b, m, all + i);
                flipped[m] = all[i].of_df && all[i].y.h == 0.0;
                at[m++] = i;
            }
        if (m == 0) break;
        pe_ncx2_block_eval(&b, m, PE_WANT_TAIL);
        for (int j = 0; j < m; j++) {
            pe_ncx2_parameter *t = all + at[j];
            double r;
            if (flipped[j]) b.side[j] = -b.side[j];
            r = residual(t, &b, j);
            if (t->y.h == 0.0 && !(r > 0.0)) { /* 0, or no parameter has so large a lower tail */
                double goal = fmin(t->log_lower.h, t->log_upper.h);
                t->open = 0;
                if (!(-r <= SLACK * fmax(1.0, -goal))) t->y = pe_dd_make(NAN, 0.0);
                continue;
            }
            advance(t, r);
        }
    }
}

/* F_(0, nc)(x) = 1 - F_(2, x)(nc): the quantile of a law with an atom at 0 is a noncentrality. */
void pe_ncx2_atom_quantile(pe_dd lam, pe_dd log_lower, pe_dd log_upper, pe_dd *x) {
    pe_ncx2_parameter t;
    if (lam.h > LARGEST) { /* sqrt(x) - sqrt(nc) is normal to all digits */
        int lower = log_lower.h < log_upper.h;
        double z = pe_ndtri_exp(lower ? log_lower.h : log_upper.h), root = sqrt(lam.h) + (lower ? z : -z);
        *x = pe_dd_make(root > 0.0 ? root * root : 0.0, 0.0);
        return;
    }
    t.of_df = 0;
    t.d = 2.0;
    t.x = lam;
    t.lam = pe_dd_make(0.0, 0.0);
    t.log_lower = log_upper;
    t.log_upper = log_lower;
    pe_ncx2_find(&t, 1);
    *x = isnan(t.y.h) ? pe_dd_make(0.0, 0.0) : t.y; /* NaN: p is within the atom */
}

static inline double get(const char *p, ptrdiff_t stride, size_t i) {
    return *(const double *)(const void *)(p + (ptrdiff_t)i * stride);
}

static inline void put(char *p, ptrdiff_t stride, size_t i, double value) {
    *(double *)(void *)(p + (ptrdiff_t)i * stride) = value;
}

/* nc at df = 0, where -2 log F is it at x = 0 and a quantile of (2, x) elsewhere. */
static pe_dd without_df(const pe_ncx2_parameter *t) {
    pe_ncx2_root root;
    if (t->x.h == 0.0) return pe_dd_make(-2.0 * t->log_lower.h, -2.0 * t->log_lower.l);
    root.d = 2.0;
    root.lam = t->x;
    root.log_lower = t->log_upper;
    root.log_upper = t->log_lower;
    pe_ncx2_solve(&root, 1);
    return root.x;
}

/* The answer where p is 0 or 1; `end` as returned by pe_ncx2_target. */
static double at_end(const pe_ncx2_parameter *t, int end) {
    if (end < 0) return INFINITY;
    return (t->of_df ? t->lam.h == 0.0 : t->d == 0.0) ? 0.0 : NAN;
}

double pe_dd_root(pe_dd square) {
    /* sqrt(h + l) = sqrt(h) + (h - r^2 + l)/(2 r) */
    double r = sqrt(square.h);
    pe_dd s = pe_two_prod(r, r);
    return r > 0x1p-400 && r < 0x1p500 ? r + ((square.h - s.h) - s.l + square.l) / (2.0 * r) : r;
}

size_t pe_ncx2_parameter_strided(int what, int unknown, size_t n, const char *p, ptrdiff_t sp, const char *x,
                                 ptrdiff_t sx, const char *other, ptrdiff_t so, char *out, ptrdiff_t sr) {
    pe_ncx2_parameter all[BLOCK];
    size_t at[BLOCK], outside = 0;
    int of_df = unknown == PE_NCX2_OF_DF, root = unknown == PE_MARCUM_OF_A;

    for (size_t i = 0; i < n;) {
        int m = 0;
        for (; i < n && m < BLOCK; i++) {
            double pi = get(p, sp, i), xi = get(x, sx, i), oi = get(other, so, i), value = NAN;
            pe_ncx2_parameter *t = all + m;
            int end = pe_ncx2_target(what & 1, what & 2, pi, &t->log_lower, &t->log_upper);
            int is_zero = !of_df && oi == 0.0; /* of df */
            int valid = end != 2 && oi >= 0.0 && oi <= (root ? 0.5 * LARGEST : LARGEST) &&
                        (xi > 0.0 || (is_zero && xi == 0.0)) && xi <= (root ? 0x1p100 : LARGEST);
            t->of_df = of_df;
            t->d = root ? 2.0 * oi : oi;
            t->x = root ? pe_two_prod(xi, xi) : pe_dd_make(xi, 0.0);
            t->lam = pe_dd_make(of_df ? oi : 0.0, 0.0);
            if (valid && root && xi > 0.0 && !(t->x.h > 0x1p-1000)) valid = 0;
            if (valid && end == 0 && !is_zero) {
                at[m++] = i;
                continue;
            }
            if (valid) {
                value = end != 0 ? at_end(t, end) : 0.0;
                if (end == 0) {
                    pe_dd found = without_df(t);
                    value = root ? pe_dd_root(found) : found.h;
                }
            } else outside += !(isnan(pi) || isnan(xi) || isnan(oi));
            put(out, sr, i, value);
        }
        pe_ncx2_find(all, m);
        for (int j = 0; j < m; j++) {
            outside += isnan(all[j].y.h);
            put(out, sr, at[j], root ? pe_dd_root(all[j].y) : all[j].y.h);
        }
    }
    return outside;
}
