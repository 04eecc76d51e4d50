/* Noncentral chi-squared tails and density by one contour integral; see ncx2_core.h. */
#include "ncx2_core.h"

#include "doubles.h"
#include "ncx2_nodes.h"

#define BLOCK PE_NCX2_BLOCK

#define LN2_H 0x1.62e42fefa39efp-1
#define LN2_L 0x1.abc9e3b39803fp-56
#define PI 3.141592653589793
#define TINY_X 0x1p-500
#define TINY_SHIFT 300

/* Above this curvature the nodes need no table: s = (k + 1/2) h with h = FLAT_STEP / sqrt(kappa).
   The error of the rule is then below 6e-17 (tools/make_ncx2_nodes.py measures it). */
#define FLAT_NODES 12
#define FLAT_STEP 0.4885
#define POLE_LIMIT 0.7071067811865475 /* sin(pi/4): the strip in which the integrand decays */
#define MAX_E 0x1p200

typedef struct {
    double e[BLOCK], a[BLOCK], b[BLOCK], dd[BLOCK], kappa[BLOCK];
    double eta[BLOCK], arg[BLOCK], slope[BLOCK], h2_pi[BLOCK], sine[BLOCK];
} work;

/* d + S with S = sqrt(d^2 + 4 lambda x) */
PE_INLINE pe_dd root_sum(double d, pe_dd lam, pe_dd x) {
    pe_dd q = pe_dd_add_fast(pe_two_prod(d, d), pe_dd_scale(pe_dd_mul(lam, x), 4.0));
    double s0 = sqrt(q.h);
    s0 = s0 > d ? s0 : d;
    pe_dd t = pe_two_prod(s0, s0);
    pe_dd sum = pe_fast_two_sum(s0, ((q.h - t.h) - t.l + q.l) / (s0 + s0));
    return pe_dd_add_d(sum, d);
}

/* x - d - lambda */
PE_INLINE pe_dd from_mean(double d, pe_dd lam, pe_dd x) {
    pe_dd t = pe_two_sum(x.h, -d);
    pe_dd r = pe_two_sum(t.h, -lam.h);
    pe_dd delta = pe_two_sum(r.l, t.l);
    r = pe_two_sum(r.h, delta.h);
    return pe_two_sum(r.h, r.l + (delta.l + (x.l - lam.l)));
}

/* A saddle point u, e = u - 1, and where u lies as a power of two times m. */
typedef struct {
    pe_dd u, e;
    double down, shift; /* what a tiny x was scaled by, and the same as a power of two */
} saddle_point;

/* e = 2 delta / (2 lambda + d + S) near the mean, u = 2 x / (d + S) elsewhere */
PE_INLINE saddle_point saddle_at(pe_dd lam, pe_dd x, pe_dd sum, pe_dd delta) {
    double up = x.h < TINY_X ? 0x1p300 : 1.0;
    saddle_point at;
    at.down = x.h < TINY_X ? 0x1p-300 : 1.0;
    at.shift = x.h < TINY_X ? (double)TINY_SHIFT : 0.0;
    double uh = 2.0 * x.h / sum.h;
    int central = (uh > 0.5) & (uh < 2.0);
    pe_dd den = pe_dd_add_fast(sum, pe_dd_scale(lam, 2.0)), num;
    num.h = central ? 2.0 * delta.h : 2.0 * (x.h * up);
    num.l = central ? 2.0 * delta.l : 2.0 * (x.l * up);
    den.h = central ? den.h : sum.h;
    den.l = central ? den.l : sum.l;
    pe_dd ratio = pe_dd_div(num, den);
    at.u = pe_dd_add_d(ratio, 1.0);
    at.u.h = central ? at.u.h : ratio.h;
    at.u.l = central ? at.u.l : ratio.l;
    at.e = pe_dd_add_d(pe_dd_scale(ratio, at.down), -1.0);
    at.e.h = central ? ratio.h : at.e.h;
    at.e.l = central ? ratio.l : at.e.l;
    return at;
}

/* e - log u, and log u itself */
PE_INLINE pe_dd log_defect(const saddle_point *at, pe_dd *log_u) {
    /* u = 2^k m, f = m - 1 */
    uint64_t bits = pe_bits(at->u.h);
    uint64_t kk = (bits - UINT64_C(0x3FE6A09E667F3BCD) + (UINT64_C(1023) << 52)) >> 52;
    double k = pe_from_bits(kk | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
    double sc = pe_from_bits((2046 - kk) << 52);
    int same = k == 0.0;
    pe_dd f = pe_fast_two_sum(at->u.h * sc - 1.0, at->u.l * sc);
    f.h = same ? at->e.h : f.h;
    f.l = same ? at->e.l : f.l;
    pe_dd log1pmx = pe_dd_f_minus_log1p(f);
    k -= at->shift;
    pe_dd t = pe_two_prod(k, LN2_H);
    t.l += k * LN2_L;
    *log_u = pe_dd_add(t, pe_dd_add(f, pe_dd_make(-log1pmx.h, -log1pmx.l)));
    /* (e - f) - k log 2 + (f - log m); the first two vanish for k = 0 */
    pe_dd g = pe_dd_add_fast(pe_dd_add_fast(at->e, pe_dd_make(-f.h, -f.l)), pe_dd_make(-t.h, -t.l));
    g.h = k == 0.0 ? 0.0 : g.h;
    g.l = k == 0.0 ? 0.0 : g.l;
    return pe_dd_add_fast(g, log1pmx);
}

/* The pole s = +-i sin(eta) of the tail's integrand. */
PE_INLINE void set_pole(work *restrict w, int i, double ee, double root, double delta) {
    double sine = fabs(ee) / (1.0 + root);
    sine = sine < POLE_LIMIT ? sine : 1.0;
    double cosine = sqrt(1.0 - sine * sine);
    double v = sine * sine / (2.0 * (1.0 + cosine));
    double v2 = v * v, v4 = v2 * v2; /* asin on v < 0.1466: error 1.5e-16 */
    double poly = ((0.16666666666666655 + 0.07500000000017258 * v) +
                   v2 * (0.044642857104135306 + 0.03038194780434884 * v)) +
                  v4 * (((0.022372011576451082 + 0.01735646607450354 * v) +
                         v2 * (0.013908712407635268 + 0.012072086413322728 * v)) +
                        v4 * (0.0069176466287217435 + 0.01647978448639439 * v));
    double half = sqrt(v);
    w->eta[i] = sine < 1.0 ? 2.0 * (half + half * v * poly) : -1.0;
    w->sine[i] = sine; /* the pole of the flat rule */
    w->slope[i] = fabs(delta) / root * cosine;
}

/* Saddle point, curvature and the exponent there: everything that a point needs before its nodes.
   phi0 = -(lambda/2) e^2 - (d/2)(e - log u) and log u in double-double. */
PE_INLINE void saddle_for(pe_ncx2_block *restrict p, work *restrict w, int n, int want) {
    for (int i = 0; i < n; i++) {
        double d = p->d[i];
        pe_dd x = pe_dd_make(p->xh[i], p->xl[i]), lam = pe_dd_make(p->lh[i], p->ll[i]), log_u;
        pe_dd sum = root_sum(d, lam, x), delta = from_mean(d, lam, x);
        saddle_point at = saddle_at(lam, x, sum, delta);
        pe_dd g = log_defect(&at, &log_u);
        pe_dd phi = pe_dd_add_fast(pe_dd_mul(lam, pe_dd_square(at.e)), pe_dd_mul_d(g, d));
        phi = pe_dd_scale(phi, -0.5);
        if (want & PE_WANT_DENSITY) { /* phi0 - log u */
            pe_dd psi = pe_dd_add(phi, pe_dd_make(-log_u.h, -log_u.l));
            p->psi_h[i] = psi.h;
            p->psi_l[i] = psi.l;
        }
        double u1 = at.u.h * at.down, ee = at.e.h;
        double a = 0.25 * sum.h, b = 0.5 * lam.h * u1;
        p->side[i] = ee < 0.0 ? -1.0 : 1.0;
        p->phi_h[i] = phi.h;
        p->phi_l[i] = phi.l;
        w->e[i] = ee > MAX_E ? MAX_E : ee;
        w->a[i] = a;
        w->b[i] = b;
        w->dd[i] = 0.5 * d;
        w->kappa[i] = 2.0 * (a + b);
        if (want & PE_WANT_TAIL) set_pole(w, i, ee, sqrt(u1), delta.h);
    }
}

PE_CLONES static void saddle_density(pe_ncx2_block *restrict p, work *restrict w, int n) {
    saddle_for(p, w, n, PE_WANT_DENSITY);
}

PE_CLONES static void saddle_tail(pe_ncx2_block *restrict p, work *restrict w, int n) {
    saddle_for(p, w, n, PE_WANT_TAIL);
}

PE_CLONES static void saddle_both(pe_ncx2_block *restrict p, work *restrict w, int n) {
    saddle_for(p, w, n, PE_WANT_TAIL | PE_WANT_DENSITY);
}

/* The sums over nodes go in three passes over a group of points: exponents of all their nodes in a
   row, then one loop over the row for the complex exponentials, then each point's sum.  One long
   loop costs less than many short ones, because its constants are loaded once. */
#define GROUP 8
#define ROW (GROUP * PE_NODES_MAX)

typedef struct {
    double re[ROW], im[ROW], s[ROW], q[ROW];
} node_row;

/* The exponent re + i pi im on the nodes of the table. */
PE_INLINE void table_exponents(const pe_bin *bin, double b, double dd, double *restrict re,
                               double *restrict im) {
    const double *fb = pe_node_fb + bin->first, *fd = pe_node_fd + bin->first;
    const double *gb = pe_node_gb + bin->first, *gd = pe_node_gd + bin->first;
    int n = bin->n;
    for (int k = 0; k < n; k++) {
        re[k] = dd * fd[k] + b * fb[k];
        im[k] = dd * gd[k] + b * gb[k];
    }
}

/* The same for large curvature, by the power series in s of the exponent. */
PE_INLINE void flat_exponents(double h, double kappa, double b, double dd, double *restrict re,
                              double *restrict im, double *restrict s, double *restrict q) {
    static const double node[FLAT_NODES] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5};
    double c3 = 4.0 * b + 0.6666666666666666 * dd, c4 = 5.0 * b + 0.5 * dd;
    double c5 = 6.0 * b + 0.4 * dd, c6 = 7.0 * b + 0.3333333333333333 * dd;
    double c7 = 8.0 * b + 0.2857142857142857 * dd, c8 = 9.0 * b + 0.25 * dd;
    double c9 = 10.0 * b + 0.2222222222222222 * dd, c10 = 11.0 * b + 0.2 * dd;
    double c11 = 12.0 * b + 0.18181818181818182 * dd;
    double turn = h * 0.3183098861837907;
    for (int k = 0; k < FLAT_NODES; k++) {
        double sk = node[k] * h, z = sk * sk;
        s[k] = sk;
        q[k] = z;
        re[k] = z * (-kappa + z * (c4 - z * (c6 - z * (c8 - z * c10))));
        im[k] = z * (node[k] * turn) * (c3 - z * (c5 - z * (c7 - z * (c9 - z * c11))));
    }
}

/* re, im become the real and imaginary part of exp(re + i pi im). */
PE_INLINE void exponentials(int n, double *restrict re, double *restrict im) {
    for (int k = 0; k < n; k++) {
        double sn, cs, m = pe_exp(re[k]);
        uint64_t sign;
        pe_sincos_pi(im[k], &sn, &cs, &sign);
        m = pe_from_bits(pe_bits(m) ^ sign);
        re[k] = m * cs;
        im[k] = m * sn;
    }
}

/* Four running sums, whatever the width of the vectors; v has room for three zeros at its end. */
PE_INLINE double four_sums(double *v, int n) {
    double r[4] = {v[0], v[1], v[2], v[3]};
    v[n] = v[n + 1] = v[n + 2] = 0.0;
    for (int k = 4; k < n; k += 4)
        for (int j = 0; j < 4; j++) r[j] += v[k + j];
    return (r[0] + r[2]) + (r[1] + r[3]);
}

static const double ONES[FLAT_NODES] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

PE_INLINE void sums_for(pe_ncx2_block *restrict p, work *restrict w, int n, int want) {
    node_row row;
    double v[PE_NODES_MAX + 3];
    for (int start = 0; start < n; start += GROUP) {
        int end = start + GROUP < n ? start + GROUP : n, filled = 0;
        const pe_bin *bins[GROUP];
        for (int i = start; i < end; i++) {
            double kappa = w->kappa[i];
            if (kappa < (double)(1 << PE_NODES_HIGH)) {
                int64_t index = (int64_t)(pe_bits(kappa) >> 50) - ((1023 + PE_NODES_LOW) << 2);
                const pe_bin *bin = pe_bins + (index > 0 ? index : 0);
                bins[i - start] = bin;
                table_exponents(bin, w->b[i], w->dd[i], row.re + filled, row.im + filled);
                filled += bin->n;
            } else {
                double h = FLAT_STEP / sqrt(kappa);
                bins[i - start] = NULL;
                flat_exponents(h, kappa, w->b[i], w->dd[i], row.re + filled, row.im + filled, row.s + filled,
                               row.q + filled);
                filled += FLAT_NODES;
            }
        }
        exponentials(filled, row.re, row.im);
        filled = 0;
        for (int i = start; i < end; i++) {
            const pe_bin *bin = bins[i - start];
            const double *re = row.re + filled, *im = row.im + filled;
            const double *s = bin ? pe_node_s + bin->first : row.s + filled;
            const double *q = bin ? pe_node_q + bin->first : row.q + filled;
            const double *ch = bin ? pe_node_ch + bin->first : ONES;
            int nodes = bin ? bin->n : FLAT_NODES;
            double root = sqrt(w->kappa[i]), e = w->e[i], eta = w->eta[i];
            double h2_pi = bin ? bin->h2_pi : FLAT_STEP / root * 0.6366197723675814;
            double two_pi_h = bin ? bin->two_pi_h : root * (2.0 * PI / FLAT_STEP);
            filled += nodes;
            if (want & PE_WANT_TAIL) {
                for (int k = 0; k < nodes; k++) {
                    double eq = e + q[k];
                    v[k] =
                        ch[k] * (re[k] * (e - q[k]) - im[k] * (s[k] * (eq + 2.0))) / (eq * eq + 4.0 * q[k]);
                }
                double sum = four_sums(v, nodes) * h2_pi;
                p->t[i] = e < 0.0 ? -sum : sum;
                /* the pole counts where moving past it pays: its term falls with eta */
                eta = bin || eta < 0.0 ? eta : w->sine[i];
                w->arg[i] = ((eta >= 0.0) & (w->slope[i] < two_pi_h)) ? eta * two_pi_h : -1.0;
            }
            if (want & PE_WANT_DENSITY) {
                for (int k = 0; k < nodes; k++) v[k] = ch[k] * (re[k] - im[k] * s[k]);
                double sum = four_sums(v, nodes);
                p->g[i] = sum * (0.5 * h2_pi);
                if (want & PE_WANT_SLOPE) { /* the mean of 1 - z over the integrand of f */
                    for (int k = 0; k < nodes; k++)
                        v[k] = ch[k] * (3.0 * q[k] * re[k] + s[k] * (2.0 - q[k]) * im[k]);
                    p->slope[i] = -w->a[i] * (e + four_sums(v, nodes) / sum);
                }
            }
        }
    }
}

PE_CLONES static void sums_tail(pe_ncx2_block *restrict p, work *restrict w, int n) {
    sums_for(p, w, n, PE_WANT_TAIL);
}

PE_CLONES static void sums_density(pe_ncx2_block *restrict p, work *restrict w, int n) {
    sums_for(p, w, n, PE_WANT_DENSITY);
}

PE_CLONES static void sums_all(pe_ncx2_block *restrict p, work *restrict w, int n) {
    sums_for(p, w, n, PE_WANT_TAIL | PE_WANT_DENSITY | PE_WANT_SLOPE);
}

/* t += exp(-phi0) / (1 + exp(2 pi eta / h)) where the pole counts. */
PE_CLONES static void poles(pe_ncx2_block *restrict p, const work *restrict w, int n) {
    for (int i = 0; i < n; i++) {
        double arg = w->arg[i], depth = -p->phi_h[i];
        int use = arg >= 0.0;
        double a = (use & (arg < 300.0)) ? arg : 300.0;
        double z = (use & (depth < 300.0)) ? depth : 0.0;
        double pole = pe_exp(z) / (1.0 + pe_exp(a));
        p->t[i] += use ? pole : 0.0;
    }
}

/* log Gamma(1 + a), |a| <= 1/4: -gamma a + sum zeta(k) (-a)^k / k. */
static const double LGAMMA1P[] = {
    0.8224670334241132,   -0.40068563438653143,  0.27058080842778454,  -0.20738555102867398,
    0.1695571769974082,   -0.1440498967688461,   0.12550966952474304,  -0.11133426586956469,
    0.1000994575127818,   -0.09095401714582904,  0.083353840546109,    -0.0769325164113522,
    0.07143294629536133,  -0.06666870588242046,  0.06250095514121304,  -0.058823978658684585,
    0.055555767627403614, -0.05263167937961666,  0.05000004769810169,  -0.047619070330142226,
    0.04545455629320467,  -0.04347826605304026,  0.04166666915034121,  -0.04000000119214014,
    0.03846153903467518,  -0.037037037312989324, 0.035714285847333355, -0.034482758684919304};

static double lgamma1p(double a) {
    double r = 0.0;
    for (int k = (int)(sizeof LGAMMA1P / sizeof *LGAMMA1P) - 1; k >= 0; k--) r = r * a + LGAMMA1P[k];
    return a * (r * a - 0.5772156649015329);
}

/* Parameters a = d/2, y = x/2, l = lambda/2 of a point for series. */
typedef struct {
    double a, y, l;
} halves;

/* The density: y^(a-1) e^(-y-l)/(2 Gamma(a)) sum_j z^j/(j! (a)_j), z = l y.  Returns a log y - log Gamma(1+a). */
static double small_df_density(pe_ncx2_block *p, int i, halves h) {
    static const pe_dd LN2 = {LN2_H, LN2_L};
    /* the exponent a log y - log Gamma(1+a) - y - l in double-double: the deep tail has it alone */
    double up = h.y < 0x1p-1000 ? 0x1p100 : 1.0, down = h.y < 0x1p-1000 ? -100.0 : 0.0;
    pe_dd log_y = pe_dd_add(pe_dd_log(pe_dd_make(h.y * up, 0.0)), pe_dd_mul_d(LN2, down));
    pe_dd power = pe_dd_add_d(pe_dd_mul_d(log_y, h.a), -lgamma1p(h.a));
    double term = 1.0, sum = h.a, moment = 0.0, z = h.l * h.y;
    for (int j = 1; j < 20; j++) {
        term *= j == 1 ? z : z / (j * (h.a + (j - 1)));
        sum += term;
        moment += j * term;
    }
    p->slope[i] = h.a - 1.0 - h.y + moment / sum;
    pe_dd phi = pe_dd_add(power, pe_two_sum(-h.y, -h.l));
    pe_dd psi = pe_dd_add(phi, pe_dd_make(-log_y.h, -log_y.l));
    p->phi_h[i] = phi.h;
    p->phi_l[i] = phi.l;
    p->psi_h[i] = psi.h;
    p->psi_l[i] = psi.l;
    p->g[i] = 0.5 * sum;
    return power.h;
}

/* F/(y^a e^(-y-l)/Gamma(1+a)) = sum_j z^j/(j! (1+a)_j) sum_k y^k/(1+a+j)_k for y < 1 */
static double small_df_below(halves h) {
    double f = 0.0, term = 1.0, z = h.l * h.y;
    for (int j = 0; j < 14; j++) {
        double inner = 1.0, v = 1.0;
        for (int k = 1; k < 22; k++) {
            v *= h.y / (h.a + j + k);
            inner += v;
        }
        f += term * inner;
        term *= z / ((j + 1.0) * (h.a + (j + 1.0)));
    }
    return f;
}

/* The same of the survival function: of Q = y^a e^-y/Gamma(1+a) times r, then r += y^j/(1+a)_j at each j. */
static double small_df_above(halves h, double base) {
    double r, step = 1.0, sum = 0.0;
    if (h.y < 1.0) {
        double series = 0.0, v = 1.0;
        for (int k = 1; k < 22; k++) {
            v *= -h.y / k;
            series += v / (h.a + k);
        }
        r = (-pe_d_expm1(base) - pe_d_exp(base) * h.a * series) * pe_d_exp(h.y - base);
    } else { /* continued fraction, from the back */
        double c = 0.0;
        for (int k = 120; k >= 1; k--) c = k * (k - h.a) / (h.y + (2 * k + 1) - h.a - c);
        r = h.a / (h.y + 1.0 - h.a - c);
    }
    for (int j = 0; j < 20; j++) { /* r and step carry the weight l^j/j! with them */
        sum += r;
        r = (r + step) * (h.l / (j + 1.0));
        step *= h.l / (j + 1.0) * (h.y / (h.a + (j + 1.0)));
    }
    return sum;
}

/* Point i by series.  Only for d < 1/2 together with kappa < 1/2, that is
   lambda x < 1/4: too flat for the contour.  All sums have positive terms, or lose at most a
   factor 4; every loop is bounded. */
static void small_df(pe_ncx2_block *p, int i) {
    const halves h = {0.5 * p->d[i], 0.5 * p->xh[i], 0.5 * p->lh[i]};
    const double base = small_df_density(p, i, h);
    if (h.y < 1.0) {
        const double f = small_df_below(h);
        p->side[i] = -1.0;
        p->t[i] = f;
        if (!(p->phi_h[i] + pe_d_log(f) > -0.7)) return;
    }
    p->side[i] = 1.0;
    p->t[i] = small_df_above(h, base);
}

/* 1 / Gamma(1 + a) by powers of a - 1, 1/4 <= a <= 3/2: relative error below 6e-18. */
#define RGAMMA_TERMS 17
static const double RGAMMA[RGAMMA_TERMS] = {1.0,
                                            -0.42278433509846713,
                                            -0.23309373642178677,
                                            0.19109110138769067,
                                            -0.024552490005399205,
                                            -0.01764524455011201,
                                            0.008023273022269043,
                                            -0.0008043297761517951,
                                            -0.0003608378166434762,
                                            0.00014559614684456733,
                                            -1.7545853916297917e-05,
                                            -2.5890155488768356e-06,
                                            1.338464428131859e-06,
                                            -2.0543766784298148e-07,
                                            -5.024967243961088e-11,
                                            6.289508261754447e-09,
                                            -1.392490698948969e-09};

/* The distribution function left of the mean for small parameters, with a = d/2, y = x/2,
   l = lambda/2:  y^a e^(-y-l) / Gamma(1+a)  sum_m y^m / (1+a)_m  sum_(j<=m) l^j / j!.
   All terms are positive; what follows SERIES_TERMS of them is below 3e-18 of the sum. */
#define SERIES_PARAMETER 3.0
#define SERIES_TERMS 27

static int series_applies(const pe_ncx2_block *b, int i) {
    double x = b->xh[i], lam = b->lh[i], d = b->d[i];
    return (d >= 0.5) & (d <= SERIES_PARAMETER) & (lam <= SERIES_PARAMETER) & (x < d + lam) & (x > 0x1p-900) &
           (b->xl[i] == 0.0) & (b->ll[i] == 0.0);
}

PE_CLONES static void series(pe_ncx2_block *restrict p, int n) {
    static const double inverse[SERIES_TERMS] = {
        0.0,      1.0,      1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,
        1.0 / 9,  1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15, 1.0 / 16, 1.0 / 17,
        1.0 / 18, 1.0 / 19, 1.0 / 20, 1.0 / 21, 1.0 / 22, 1.0 / 23, 1.0 / 24, 1.0 / 25, 1.0 / 26};
    for (int i = 0; i < n; i++) {
        double a = 0.5 * p->d[i], y = 0.5 * p->xh[i], l = 0.5 * p->lh[i];
        double term = 1.0, weight = 1.0, weights = 1.0, sum = 0.0, gamma = 0.0;
        pe_dd phi = pe_dd_mul_d(pe_dd_log(pe_dd_make(y, 0.0)), a);
        phi = pe_dd_add(phi, pe_two_sum(-y, -l));
#pragma GCC unroll 32
        for (int m = 1; m < SERIES_TERMS; m++) {
            term *= y / (a + m);
            weight *= l * inverse[m];
            weights += weight;
            sum += term * weights;
        }
#pragma GCC unroll 32
        for (int k = RGAMMA_TERMS - 1; k >= 0; k--) gamma = gamma * (a - 1.0) + RGAMMA[k];
        p->side[i] = -1.0;
        p->phi_h[i] = phi.h;
        p->phi_l[i] = phi.l;
        p->t[i] = gamma + gamma * sum;
    }
}

static void contour_tail(pe_ncx2_block *b, int n, int filled) {
    work w;
    saddle_tail(b, &w, filled);
    sums_tail(b, &w, n);
    poles(b, &w, n);
    for (int i = 0; i < n; i++)
        if (b->d[i] < 0.5 && !(w.kappa[i] >= 0.5)) small_df(b, i);
}

#define WHOLE(n) (((n) + 3) & ~3)

/* Copies n points of b to a block of their own, filled to whole vectors with the last one. */
static void gather(const pe_ncx2_block *restrict b, const int *restrict at, int n,
                   pe_ncx2_block *restrict part) {
    for (int j = 0; j < WHOLE(n); j++) {
        int i = at[j < n ? j : n - 1];
        part->xh[j] = b->xh[i];
        part->xl[j] = b->xl[i];
        part->lh[j] = b->lh[i];
        part->ll[j] = b->ll[i];
        part->d[j] = b->d[i];
    }
}

static void scatter(pe_ncx2_block *restrict b, const int *restrict at, int n,
                    const pe_ncx2_block *restrict part) {
    for (int j = 0; j < n; j++) {
        b->side[at[j]] = part->side[j];
        b->phi_h[at[j]] = part->phi_h[j];
        b->phi_l[at[j]] = part->phi_l[j];
        b->t[at[j]] = part->t[j];
    }
}

/* Tails alone: the series where it applies, the contour elsewhere. */
static void tails(pe_ncx2_block *b, int n) {
    pe_ncx2_block part;
    int near[BLOCK + 1], far[BLOCK + 1], m = 0, rest = 0;
    for (int i = 0; i < n; i++) { /* without a branch that would be hard to predict */
        int applies = series_applies(b, i);
        near[m] = i;
        far[rest] = i;
        m += applies;
        rest += 1 - applies;
    }
    if (m == 0) {
        contour_tail(b, n, n);
        return;
    }
    gather(b, near, m, &part);
    series(&part, WHOLE(m));
    scatter(b, near, m, &part);
    if (rest > 0) {
        gather(b, far, rest, &part);
        contour_tail(&part, rest, WHOLE(rest));
        scatter(b, far, rest, &part);
    }
}

void pe_ncx2_block_eval(pe_ncx2_block *b, int n, int want) {
    work w;
    if (want == PE_WANT_TAIL) {
        tails(b, n);
        return;
    }
    if (want == PE_WANT_DENSITY) {
        saddle_density(b, &w, n);
        sums_density(b, &w, n);
    } else {
        saddle_both(b, &w, n);
        sums_all(b, &w, n);
        poles(b, &w, n);
    }
    for (int i = 0; i < n; i++)
        if (b->d[i] < 0.5 && !(w.kappa[i] >= 0.5)) small_df(b, i);
}
