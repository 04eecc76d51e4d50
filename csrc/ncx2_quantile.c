/* Quantiles of the noncentral chi-squared distribution, see functions.h and docs/special/ncx2.md. */
#include "doubles.h"
#include "functions.h"
#include "ncx2_core.h"

#define BLOCK PE_NCX2_BLOCK
#define MAX_EVALUATIONS 100
#define MAX_START 64
#define LOG_U_LIMIT 800.0 /* exp(-800) times 1e10 is below the smallest double */
#define FAR_LOG -1e60     /* below: (sqrt(lambda) + sqrt(-2 log p))^2 to all digits */
#define FAR_PARAMETER 1e70 /* beyond: the starting value is the answer */

/* r and its correction: r* = r + log(v/r)/r has nearly the standard normal distribution. */
static double r_star(double d, double lam, double log_u, double *slope) {
    double e = pe_d_expm1(log_u), u = 1.0 + e;
    double root = sqrt(lam + 0.5 * d), r, v;
    if (fabs(log_u) < 1e-4) { /* leading terms in e of r and of the correction */
        *slope = root;
        return (e - d / 6.0 * e * e / (root * root)) * root + 0.5 * (lam + d / 3.0) / (root * root * root);
    }
    r = sqrt(e * e * lam + d * (e - log_u));
    v = fabs(e) * sqrt(0.5 * d + lam * u);
    *slope = fabs(e) * (lam * u + 0.5 * d) / r;
    return log_u > 0.0 ? r + pe_d_log(v / r) / r : -(r + pe_d_log(v / r) / r);
}

/* log u at which r* equals the normal quantile of the target. */
static double start(const pe_ncx2_root *t) {
    int lower = t->log_lower.h < t->log_upper.h;
    double z = pe_ndtri_exp(lower ? t->log_lower.h : t->log_upper.h);
    double lam = t->lam.h, d = fmax(t->d, 1e-100), scale = sqrt(lam + 0.5 * d);
    double low = -LOG_U_LIMIT, high = LOG_U_LIMIT;
    double enough = fmax(1e-3, fmin(0.1, 0.1 / scale)); /* tolerance: r* itself errs by about 1/scale^3 */
    double w, step;
    z = lower ? z : -z;
    step = z / scale;
    if (step > -0.5) w = pe_d_log1p(step);
    else /* deep in the lower tail: the exponent is lambda/2 + (d/2)(-1 - log u) there */
        w = fmin(-0.5, (lam - z * z) / d - 1.0);
    for (int i = 0; i < MAX_START; i++) {
        double slope, value, r, next;
        w = fmin(fmax(w, low), high);
        value = r_star(d, lam, w, &slope);
        r = value - z;
        if (r <= 0.0) low = w;
        else /* also where r overflows to NaN */ high = w;
        next = w - r / slope;
        if (fabs(r) < enough) return next;
        if (w > 0.5 && z > 0.0) /* r grows like a power of u: step on log r */
            next = w - value * pe_d_log(value / z) / slope;
        else if (w < -0.5) /* r^2 is nearly linear in log u */
            next = w - 0.5 * (value * value - z * z) / (value * slope);
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        step = next - w;
        w = next;
        if (fabs(step) < 1e-12) break;
    }
    return w;
}

#define CENTRAL_PARAMETER 20.0
#define CENTRAL_MOST 0.3 /* largest w: the remainder is up to 4e-3 w there, and 3e-6 w at 0.07 */

/* Start of a central quantile in the lower tail: with a = d/2, y = x/2 and w^a = p Gamma(1+a) the
   lower tail is y^a (1 - a y/(a+1) + ...)/Gamma(1+a), whose reversion is y = w (1 + w/(a+1) + ...).
   Where that does not serve: 0. */
static double central_start(double a, double log_p) {
    double w = pe_d_exp((log_p + pe_d_log_gamma(1.0 + a)) / a), b = a + 1.0, c = a + 2.0, e = a + 3.0;
    if (!(w < CENTRAL_MOST)) return 0.0;
    double c3 = (3.0 * a + 5.0) / (2.0 * b * b * c);
    double c4 = ((8.0 * a + 33.0) * a + 31.0) / (3.0 * b * b * b * c * e);
    double c5 = ((((125.0 * a + 1179.0) * a + 3971.0) * a + 5661.0) * a + 2888.0) /
                (24.0 * (b * c * b) * (b * c * b) * e * (a + 4.0));
    return 2.0 * w * (1.0 + w * (1.0 / b + w * (c3 + w * (c4 + w * c5))));
}

/* One safeguarded Halley step on the log of the tail: in log x left of the mean, where log F is
   nearly linear in log x, in x right of it.  (For tiny d the smaller tail can be the upper one far
   left of the mean as well.) */
static void advance(pe_ncx2_root *t, const pe_ncx2_block *b, int i) {
    pe_dd log_t = pe_dd_log(pe_dd_make(b->t[i], 0.0)), rho;
    double x = t->x.h, d = t->d, lam = t->lam.h, hazard, h1, bend, step, factor, size;
    int below = b->side[i] < 0.0;
    pe_dd goal = below ? t->log_lower : t->log_upper;

    /* log(tail) - log(target), without rounding the large parts */
    rho = pe_dd_add(pe_dd_make(b->phi_h[i], b->phi_l[i]), pe_dd_make(-goal.h, -goal.l));
    rho = pe_dd_add(rho, log_t);
    if (!below) /* make it increase with x */
        rho = pe_dd_make(-rho.h, -rho.l);
    if (rho.h > 0.0) t->high = x;
    else t->low = x;

    /* h1 = x density / tail */
    hazard = b->psi_h[i] - b->phi_h[i];
    if (x > 1e-200) h1 = x * pe_exp_times(hazard, b->psi_l[i] - b->phi_l[i], b->g[i] / b->t[i]);
    else /* the hazard itself may overflow */ h1 = pe_exp_times(hazard + pe_d_log(x), 0.0, b->g[i] / b->t[i]);
    int in_log = below || x < 0.5 * (d + lam);
    /* h'' / h' in the variable of the step */
    bend = (in_log ? 1.0 : 0.0) + b->slope[i] + (below ? -h1 : h1);
    step = -rho.h / h1;
    if (fabs(rho.h) < 1.0) { /* far away Newton's step alone: bend may be all rounding there */
        factor = 1.0 + 0.5 * step * bend;
        step /= factor > 0.5 ? (factor < 2.0 ? factor : 2.0) : 0.5;
    }

    /* The error after the step, relative to x, is about step^3 h1^2.  Stop where that is a twentieth of
       u/2 + eps/h1. */
    size = fabs(step);
    if ((size * size * size * (1.0 + h1) * (1.0 + h1) < 5e-18 + 1e-17 / h1 && size < 0.01) ||
        (h1 > 0.0 && size <= 0x1p-53)) { /* no double is nearer */
        double move = size < 1e-9 || !in_log ? x * step : x * pe_d_expm1(step);
        pe_dd s = pe_two_sum(x, move);
        t->x = pe_fast_two_sum(s.h, s.l + t->x.l);
        t->open = 0;
        return;
    }
    double next = in_log ? x * pe_d_exp(step > 60.0 ? 60.0 : step) : x * (1.0 + step);
    if (!(next > t->low && next < t->high)) {
        double lo = t->low, hi = t->high;
        if (hi == INFINITY) next = x * (in_log ? 0x1p40 : 4.0);
        else if (lo == 0.0) next = x * 0x1p-40;
        else next = lo < 0.25 * hi ? sqrt(lo) * sqrt(hi) : 0.5 * (lo + hi);
        /* no double is left between the ends */
        if (!(next > lo && next < hi) || (hi < INFINITY && hi - lo <= 0x1p-52 * hi)) {
            t->open = 0;
            if (lo == 0.0) t->x = pe_dd_make(0.0, 0.0);
            return;
        }
    }
    t->x = pe_dd_make(fmin(next, PE_NCX2_MAX), 0.0);
    if (next < 0x1p-1074) t->open = 0;
}

void pe_ncx2_solve(pe_ncx2_root *roots, int n) {
    pe_ncx2_block b;
    int at[BLOCK];

    for (int i = 0; i < n; i++) {
        pe_ncx2_root *t = roots + i;
        double d = t->d, lam = t->lam.h, w, u;
        t->open = 0;
        t->low = 0.0;
        t->high = INFINITY;
        if (t->log_upper.h < FAR_LOG) {
            double root = sqrt(lam) + sqrt(-2.0 * t->log_upper.h);
            t->x = pe_dd_make(root * root, 0.0);
            continue;
        }
        t->x = pe_dd_make(0.0, 0.0);
        if (lam == 0.0 && d >= 0.5 && d <= CENTRAL_PARAMETER) t->x.h = central_start(0.5 * d, t->log_lower.h);
        if (!(t->x.h > 0.0)) {
            w = start(t);
            u = pe_d_exp(w);
            t->x.h = d * u + lam * u * u;
        }
        if (d > FAR_PARAMETER || lam > FAR_PARAMETER) continue;
        if (!(t->x.h > 0.0)) {
            if (d >= 0.5) continue;
            t->x.h = 0x1p-1070;
        }
        t->x.h = fmin(t->x.h, PE_NCX2_MAX);
        t->open = 1;
    }
    for (int k = 0; k < MAX_EVALUATIONS; k++) {
        int m = 0;
        for (int i = 0; i < n; i++)
            if (roots[i].open) {
                b.xh[m] = roots[i].x.h;
                b.xl[m] = roots[i].x.l;
                b.lh[m] = roots[i].lam.h;
                b.ll[m] = roots[i].lam.l;
                b.d[m] = roots[i].d;
                at[m++] = i;
            }
        if (m == 0) break;
        pe_ncx2_block_eval(&b, m, PE_WANT_TAIL | PE_WANT_DENSITY | PE_WANT_SLOPE);
        for (int j = 0; j < m; j++) advance(roots + at[j], &b, j);
    }
}

/* Logs of both tails for a given lower or upper tail probability or its logarithm.  Returns -1 for
   lower tail 0, 1 for lower tail 1, 2 for no probability, otherwise 0. */
int pe_ncx2_target(int upper, int logarithm, double p, pe_dd *log_lower, pe_dd *log_upper) {
    pe_dd this, other;
    if (logarithm) {
        if (!(p <= 0.0)) return 2;
        if (p == 0.0 || p == -INFINITY) return (p == 0.0) == !upper ? 1 : -1;
        this = pe_dd_make(p, 0.0);
        other =
            pe_dd_make(p < -0.6931471805599453 ? pe_d_log1p(-pe_d_exp(p)) : pe_d_log(-pe_d_expm1(p)), 0.0);
    } else {
        if (!(p >= 0.0 && p <= 1.0)) return 2;
        if (p == 0.0 || p == 1.0) return (p == 1.0) == !upper ? 1 : -1;
        if (p < 0x1p-1022)
            this = pe_dd_add(pe_dd_log(pe_dd_make(p * 0x1p60, 0.0)),
                             pe_dd_make(-0x1.4cb5ecf0a9650p+5, -0x1.0886a2bc2f41ep-49));
        else this = pe_dd_log(pe_dd_make(p, 0.0));
        other = p < 0x1p-60 ? pe_dd_make(-p, 0.0) : pe_dd_log(pe_two_sum(1.0, -p));
    }
    *log_lower = upper ? other : this;
    *log_upper = upper ? this : other;
    return 0;
}

static inline double get(const char *p, ptrdiff_t stride, size_t i) {
    return *(const double *)(const void *)(p + (ptrdiff_t)i * stride);
}

size_t pe_ncx2_quantile_strided(int what, size_t n, const char *p, ptrdiff_t sp, const char *df, ptrdiff_t sd,
                                const char *nc, ptrdiff_t sl, char *out, ptrdiff_t so) {
    pe_ncx2_root roots[BLOCK];
    size_t at[BLOCK];
    int upper = what & 1, logarithm = what & 2;
    size_t outside = 0;

    for (size_t i = 0; i < n;) {
        int m = 0;
        for (; i < n && m < BLOCK; i++) {
            double d = get(df, sd, i), lam = get(nc, sl, i), pi = get(p, sp, i), value = NAN;
            pe_ncx2_root *t = roots + m;
            int end = pe_ncx2_target(upper, logarithm, pi, &t->log_lower, &t->log_upper);
            if (d == 0.0 && end != 2 && lam >= 0.0 && lam < INFINITY) { /* an atom at 0 */
                value = end < 0 || lam == 0.0 ? 0.0 : INFINITY;
                if (end == 0 && lam > 0.0) {
                    pe_ncx2_atom_quantile(pe_dd_make(lam, 0.0), t->log_lower, t->log_upper, &t->x);
                    value = t->x.h;
                }
                *(double *)(void *)(out + (ptrdiff_t)i * so) = value;
                continue;
            }
            if (end == 0 && d > 0.0 && d < INFINITY && lam >= 0.0 && lam < INFINITY) {
                t->d = d;
                t->lam = pe_dd_make(lam, 0.0);
                at[m++] = i;
                continue;
            }
            if (end != 2 && d > 0.0 && d < INFINITY && lam >= 0.0 && lam < INFINITY)
                value = end < 0 ? 0.0 : INFINITY;
            else outside += !(isnan(pi) || isnan(d) || isnan(lam));
            *(double *)(void *)(out + (ptrdiff_t)i * so) = value;
        }
        pe_ncx2_solve(roots, m);
        for (int j = 0; j < m; j++) *(double *)(void *)(out + (ptrdiff_t)at[j] * so) = roots[j].x.h;
    }
    return outside;
}
