/* Pieces of the axis of r for Theorem 5 of docs/theory/sector_laws.md: the ellipses about them with the ranges of both
 * arguments, and the nodes of Gauss's rules on them.  They do not depend on the laws and are shared.  Called by
 * sector_sums.c. */

#include <math.h>
#include <stdlib.h>

#include "arithmetic.h"
#include "doubles.h"
#include "sector.h"

static const double WIDEST = 3.0; /* largest imaginary half axis of an ellipse, below pi, */
static const double LONGEST = 4.0; /* and in units of half a piece */
/* just below pi/2: up to this |Im r| both parts have moduli of at most Y */
static const double QUARTER = 1.57;
static const double BESIDE = 1.0; /* least |Re r| of ellipses with a larger imaginary half axis */
static const double MOST_BYTES = 6e7; /* memory of pieces kept from one law to the next */

const int pe_sector_sizes[PE_SECTOR_RULES] = {8, 12, 16, 20, 24, 32, 40, 48};

/* P_n and its derivative at x, 0 < x < 1. */
static pe_dd legendre(int n, pe_dd x, pe_dd *slope) {
    pe_dd before = pe_dd_of(1.0), p = x;
    for (int k = 2; k <= n; k++) {
        const pe_dd next =
            pe_dd_sub(pe_dd_mul_d(pe_dd_mul(x, p), 2.0 * k - 1.0), pe_dd_mul_d(before, k - 1.0));
        before = p;
        p = pe_dd_div(next, pe_dd_of(k));
    }
    const pe_dd rest = pe_dd_sub(pe_dd_of(1.0), pe_dd_square(x));
    *slope = pe_dd_div(pe_dd_mul_d(pe_dd_sub(before, pe_dd_mul(x, p)), n), rest);
    return p;
}

/* Gauss's rule of n (even) nodes on [-1, 1], falling, to about 2^-95; weights to one or two units of 2^-53. */
static void gauss_rule(int n, pe_dd *place, double *weight) {
    for (int i = 0; i < n / 2; i++) {
        pe_dd x = pe_dd_of(pe_d_cos(3.14159265358979323846 * (i + 0.75) / (n + 0.5))), slope;
        for (int step = 0; step < 5; step++) x = pe_dd_sub(x, pe_dd_div(legendre(n, x, &slope), slope));
        legendre(n, x, &slope);
        const pe_dd rest = pe_dd_sub(pe_dd_of(1.0), pe_dd_square(x));
        place[i] = x;
        place[n - 1 - i] = pe_dd_neg(x);
        weight[i] = weight[n - 1 - i] = 2.0 / pe_dd_mul(rest, pe_dd_square(slope)).h;
    }
}

struct pe_sector_pieces {
    pe_sector_piece *root[2][2 * PE_SECTOR_ROOTS]; /* [of_losses] */
    pe_dd place[PE_SECTOR_RULES][PE_SECTOR_MOST_NODES];
    double weight[PE_SECTOR_RULES][PE_SECTOR_MOST_NODES];
    double bytes;
};

pe_sector_pieces *pe_sector_pieces_new(void) {
    pe_sector_pieces *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    for (int i = 0; i < PE_SECTOR_RULES; i++) gauss_rule(pe_sector_sizes[i], p->place[i], p->weight[i]);
    return p;
}

static void free_piece(pe_sector_piece *m) {
    if (!m) return;
    for (int i = 0; i < PE_SECTOR_RULES; i++) free(m->nodes[i]);
    for (int i = 0; i < 2; i++) free_piece(m->part[i]);
    free(m);
}

static void clear(pe_sector_pieces *p) {
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < 2 * PE_SECTOR_ROOTS; i++) {
            free_piece(p->root[k][i]);
            p->root[k][i] = NULL;
        }
    p->bytes = 0.0;
}

void pe_sector_pieces_free(pe_sector_pieces *p) {
    if (!p) return;
    clear(p);
    free(p);
}

void pe_sector_pieces_trim(pe_sector_pieces *p) {
    if (p->bytes > MOST_BYTES) clear(p);
}

/* log|x/Y| = -log|1 + e^-(r + iv)|, and the argument of x/Y */
static double log_share(double r, double v, double *angle) {
    const double e = pe_d_exp(-fabs(r)), real = r > 0.0 ? 1.0 + e * pe_d_cos(v) : e + pe_d_cos(v);
    const double imag = (r > 0.0 ? e : 1.0) * pe_d_sin(v);
    *angle = pe_d_atan2(imag, real);
    return fmin(r, 0.0) - pe_d_log(pe_d_hypot(real, imag));
}

/* Bounds of log|x/Y| and of |arg x/Y| on [from, to] + i [-v, v] (proof of Theorem 5).  For v <= pi/2 the modulus rises
 * with Re r and |Im r|, and the angle falls with Re r. */
static void share_range(double from, double to, double v, double *least, double *most, double *turn) {
    double unused;
    *least = log_share(from, 0.0, &unused);
    if (v > QUARTER && from > 0.0) { /* |1 + e^-r| >= 1 - e^-Re r */
        *most = -pe_d_log1p(-pe_d_exp(-from));
        const double sine = pe_d_exp(-from);
        *turn = pe_d_atan2(sine, sqrt((1.0 - sine) * (1.0 + sine)));
        return;
    }
    *most = log_share(to, v, &unused);
    log_share(from, v, turn);
}

/* The range of both arguments on [from, to] + i [-v, v]. */
static void set_range(pe_sector_range *s, double from, double to, double v, int of_losses) {
    double turn_a = v, turn_b = v;
    if (of_losses) {
        s->a_from = from;
        s->a_to = to;
        s->b_from = -to;
        s->b_to = -from;
    } else {
        share_range(from, to, v, &s->a_from, &s->a_to, &turn_a);
        share_range(-to, -from, v, &s->b_from, &s->b_to, &turn_b);
    }
    s->turn_a = turn_a * turn_a * (1.0 + 1e-9);
    s->turn_b = turn_b * turn_b * (1.0 + 1e-9);
}

static pe_sector_piece *new_piece(pe_sector_pieces *p, double mid, double half, int of_losses) {
    pe_sector_piece *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    p->bytes += sizeof *m;
    m->mid = mid;
    m->half = half;
    m->log_width = pe_d_log(2.0 * half);
    set_range(&m->real, mid - half, mid + half, 0.0, of_losses);
    double imag = fmin(WIDEST / half, LONGEST);
    for (int i = 0; i < PE_SECTOR_ELLIPSES; i++, imag *= 0.70710678118654752) {
        pe_sector_ellipse *e = m->ellipse + i;
        const double real = sqrt(1.0 + imag * imag), rho = (imag + real) * (1.0 - 1e-12);
        const double from = mid - half * real, to = mid + half * real;
        set_range(&e->range, from, to, half * imag, of_losses);
        const int is_near = !of_losses && half * imag > QUARTER && from < BESIDE && to > -BESIDE;
        e->log_rho = is_near ? 0.0 : pe_d_log(rho);
        e->log_factor = pe_d_log(64.0 / 15.0 * half / (1.0 - 1.0 / (rho * rho)));
    }
    return m;
}

pe_sector_piece *pe_sector_root(pe_sector_pieces *p, long i, int of_losses) {
    if (i < -PE_SECTOR_ROOTS || i >= PE_SECTOR_ROOTS) return NULL;
    pe_sector_piece **m = &p->root[of_losses][i + PE_SECTOR_ROOTS];
    const double half = 0.5 * PE_SECTOR_ROOT;
    if (!*m) *m = new_piece(p, ((double)i + 0.5) * PE_SECTOR_ROOT, half, of_losses);
    return *m;
}

pe_sector_piece *pe_sector_half(pe_sector_pieces *p, pe_sector_piece *m, int which, int of_losses) {
    if (!m->part[which]) {
        const double half = 0.5 * m->half;
        m->part[which] = new_piece(p, m->mid + (which ? half : -half), half, of_losses);
    }
    return m->part[which];
}

const double *pe_sector_rule(pe_sector_pieces *p, pe_sector_piece *m, int rule, int of_losses) {
    if (m->nodes[rule]) return m->nodes[rule];
    const size_t n = (size_t)pe_sector_sizes[rule];
    double *out = malloc(PE_SECTOR_PARTS * n * sizeof(double));
    if (!out) return NULL;
    p->bytes += (double)(PE_SECTOR_PARTS * n * sizeof(double));
    for (size_t j = 0; j < n; j++) {
        /* rising; the half is a power of 2 */
        const pe_dd r = pe_dd_add_d(pe_dd_scale(p->place[rule][n - 1 - j], m->half), m->mid);
        pe_dd of_a = pe_dd_neg(r), of_b = r; /* w minus the arguments of F_a and F_b */
        if (!of_losses) {
            const pe_dd size = pe_dd_abs(r);
            const int is_large = size.h > 600.0; /* where log(1 + e^-|r|) is far below all units */
            const pe_dd above = is_large ? pe_dd_of(0.0) : pe_dd_log1p(pe_dd_exp(pe_dd_neg(size)));
            of_a = r.h > 0.0 ? above : pe_dd_add(above, size);
            of_b = r.h > 0.0 ? pe_dd_add(above, size) : above;
        }
        const double high_a = nearbyint(of_a.h / PE_SECTOR_GRID) * PE_SECTOR_GRID;
        const double high_b = nearbyint(of_b.h / PE_SECTOR_GRID) * PE_SECTOR_GRID;
        out[j] = high_a;
        out[n + j] = -pe_dd_add_d(of_a, -high_a).h;
        out[2 * n + j] = high_b;
        out[3 * n + j] = -pe_dd_add_d(of_b, -high_b).h;
        out[4 * n + j] = m->half * p->weight[rule][j];
    }
    return m->nodes[rule] = out;
}
