/* The law of e^L = S/t, S a sum of t lognormal numbers, by doubling.
 *
 * With densities f_j of L_j = log(S_j/j), p = j/(j + k), q = 1 - p and e^L = p e^x + q e^y, v = x - y,
 *
 *     f_{j+k}(L) = integral of f_j(x) f_k(y) dv,   x = L - log(p + q e^-v),   y = x - v,
 *
 * as the map (x, y) -> (L, v) has the Jacobian 1.  The integrand is positive and analytic, so the
 * trapezoidal rule converges geometrically and nothing cancels; L_j has its bulk near 0, where
 * doubles are dense.  The densities for t need those for floor(t/2^i) and ceil(t/2^i) only.  Errors are
 * estimates (docs/estimates).  The integral is in shares.c, that for sums of epochs in loss_sums.c, pieces
 * of the density are made in density_pieces.c, masses in panels.c.  Interface in laws.h.
 */
/* Map: random allocation, the law of one epoch | test_allocated_law | theory/allocation */
#include "allocation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "convolved.h"
#include "doubles.h"
#include "laws.h"
#include "panels.h"

static const double HALF_LOG_2PI = 0.91893853320467274178;

#define DEPTH 790.0     /* densities are tabulated down to e^-DEPTH */
#define MOST_LOSS 600.0 /* largest loss, so that e^L is a double */
#define MARGIN                                                                                               \
    (PE_FALL + 2.0) /* nats by which a part reaches further than its sum, whose end it then does not affect */

/* f_1, in pieces on which log values have about one size. */
static int first_density(pe_log_density *f, double mu, double lowest, double highest) {
    double edge[64], mean = -0.5 * mu * mu, left = (mean - lowest) / mu, right = (highest - mean) / mu;
    int n = 0;
    edge[n++] = lowest;
    for (double u = left / 1.7; u > 2.0; u /= 1.7) edge[n++] = mean - mu * u;
    for (double u = 2.0; u < right / 1.3; u *= 1.7) edge[n++] = mean + mu * u;
    edge[n] = highest;
    for (int i = 0; i < n; i++) {
        double middle = 0.5 * (edge[i] + edge[i + 1]), d = 0.5 * (edge[i + 1] - edge[i]) / mu;
        double z = (middle - mean) / mu, coef[PE_DEGREE_NODES] = {0.0};
        coef[0] = -0.5 * z * z - 0.25 * d * d - pe_d_log(mu) - HALF_LOG_2PI;
        coef[1] = -z * d;
        coef[2] = -0.25 * d * d;
        int status = pe_log_density_append(f, edge[i], edge[i + 1], coef);
        if (status) return status;
    }
    return PE_OK;
}

/* The density of the sum of w->f and w->g, normalised. */
static int doubled(pe_parts *w, pe_log_density *out, double left, double right, double *defect) {
    const pe_log_density *f = w->f, *g = w->g;
    int is_sum = w->convolved == pe_convolved_losses;
    double low = f->edge[0], high = f->edge[f->n], ends[2] = {g->edge[0], g->edge[g->n]};
    ends[0] = is_sum ? low + ends[0] : fmin(low, ends[0]);
    ends[1] = is_sum ? high + ends[1] : fmax(high, ends[1]);
    pe_density_of_parts(w, ends, left, right, out);
    if (!w->failed) w->failed = pe_normalise(out, defect);
    return w->failed;
}

static int bits_above(long n) {
    int levels = 0;
    while (((n + (1L << levels) - 1) >> levels) > 1) levels++;
    return levels;
}

/* One sum of a chain.  Parts are equal where possible, as unequal ones take twice the time, and never differ much, as
 * the integrand would be wide and narrow at once. */
typedef struct {
    long n, a, b; /* n = a + b */
    int above; /* number of sums on the longest way from here to the whole */
    pe_log_density density;
} sum_of_parts;

#define UNEQUAL 2.1 /* time of a sum of unequal parts over that of equal ones */

enum { MOST_SUMS = 80 };

typedef struct {
    int count;
    sum_of_parts sums[MOST_SUMS]; /* n falling: the whole first, n = 1 last */
} chain;

/* Time of the sums of h and of h + 1 parts */
static double cost_of_pair(long h) {
    return h > 1 ? 1.0 + UNEQUAL + cost_of_pair(h / 2) : 1.0;
}

/* Time of the sum of n parts, and how to divide n: 3 m as 2 m + m, 5 m as 4 m + m, else (divisor 2) into halves. */
static double cost_of(long n, long *divisor) {
    long below;
    *divisor = 2;
    if (n == 1) return 0.0;
    if (n % 2 == 0) return 1.0 + cost_of(n / 2, &below);
    double best = UNEQUAL + cost_of_pair(n / 2);
    for (long k = 3; k <= 5; k += 2) {
        if (n % k) continue;
        double cost = UNEQUAL + (k == 3 ? 1.0 : 2.0) + cost_of(n / k, &below);
        if (cost >= best) continue;
        best = cost;
        *divisor = k;
    }
    return best;
}

static void add_sum(chain *c, long n, long a, long b) {
    for (int i = 0; i < c->count; i++)
        if (c->sums[i].n == n) return;
    sum_of_parts s = {.n = n, .a = a, .b = b};
    c->sums[c->count++] = s;
}

static void make_chain(chain *c, long n) {
    c->count = 0;
    while (n > 1) {
        long divisor = 2;
        cost_of(n, &divisor);
        if (n % 2 == 0) {
            add_sum(c, n, n / 2, n / 2);
        } else if (divisor == 2) {
            long h =
                n /
                2; /* both h and h + 1 are needed: the even one from halves, the odd one from half and rest */
            add_sum(c, n, h, h + 1);
            while (h > 1) {
                long even = h % 2 ? h + 1 : h, half = even / 2, odd = 2 * h + 1 - even;
                add_sum(c, odd, odd - half, half);
                add_sum(c, even, half, half);
                h /= 2;
            }
            add_sum(c, 2, 1, 1);
            break;
        } else {
            long m = n / divisor;
            add_sum(c, n, n - m, m);
            if (divisor == 5) add_sum(c, 4 * m, 2 * m, 2 * m);
            add_sum(c, 2 * m, m, m);
        }
        n /= divisor;
    }
    add_sum(c, 1, 0, 0);
    for (int i = 0; i < c->count; i++) { /* sort by falling n; a sum's `above` follows from larger ones */
        for (int k = i + 1; k < c->count; k++) {
            if (c->sums[k].n <= c->sums[i].n) continue;
            sum_of_parts other = c->sums[i];
            c->sums[i] = c->sums[k];
            c->sums[k] = other;
        }
        for (int k = 0; k < i; k++) {
            const sum_of_parts *s = &c->sums[k];
            if (s->a != c->sums[i].n && s->b != c->sums[i].n) continue;
            if (s->above + 1 > c->sums[i].above) c->sums[i].above = s->above + 1;
        }
    }
}

static const pe_log_density *density_of(const chain *c, long n) {
    int i = c->count - 1;
    while (c->sums[i].n != n) i--;
    return &c->sums[i].density;
}

/* Replaces the density of one part by that of the whole sum of the chain. */
static int of_parts(pe_parts *w, chain *c, pe_log_density *f, double left, double right, double *defect) {
    int status = PE_OK;
    c->sums[c->count - 1].density = *f;
    for (int i = c->count - 2; i >= 0 && !status; i--) {
        sum_of_parts *s = &c->sums[i];
        w->f = density_of(c, s->a);
        w->g = density_of(c, s->b);
        w->p = (double)s->a / (double)s->n;
        status = doubled(w, &s->density, left, right + MARGIN * s->above, defect);
    }
    for (int i = 1; i < c->count; i++) pe_log_density_free(&c->sums[i].density);
    *f = c->sums[0].density;
    return status;
}

static int make_density(struct pe_epoch *epoch, long epochs) {
    pe_parts w;
    chain shares, losses;
    memset(&w, 0, sizeof w);
    make_chain(&shares, (long)epoch->steps);
    make_chain(&losses, epochs);
    double mu = epoch->mu, left = DEPTH + 50.0, last = DEPTH + MARGIN;
    double once = last + MARGIN * losses.sums[losses.count - 1].above;
    double right = once + MARGIN * shares.sums[shares.count - 1].above;
    double lowest = -mu * (0.5 * mu + sqrt(2.0 * left));
    double highest = mu * (0.5 * mu + sqrt(2.0 * right)); /* e^L f has its mean at mu^2/2 */
    int status = first_density(&epoch->density, mu, lowest, highest);
    if (status) return status;
    w.spacing = mu < 0.6 ? 0.3 * mu : 0.2;
    w.bend = 0.1;
    w.convolved = pe_convolved_shares;
    status = of_parts(&w, &shares, &epoch->density, left, once, epoch->defect);
    if (status || epochs == 1) return status;
    w.convolved = pe_convolved_losses;
    w.spacing *= 0.5; /* of y, no longer of x - y */
    return of_parts(&w, &losses, &epoch->density, left, last, epoch->defect);
}

int pe_epoch_new(double noise, double steps, double epochs, pe_epoch **out) {
    struct pe_epoch *epoch = *out = calloc(1, sizeof *epoch);
    if (!epoch) return PE_NO_MEMORY;
    epoch->mu = 1.0 / noise;
    epoch->steps = steps;
    epoch->doublings = bits_above((long)epochs);
    int status = make_density(epoch, (long)epochs);
    if (!status && epoch->density.edge[epoch->density.n] > MOST_LOSS) status = PE_TOO_COSTLY;
    return status ? status : pe_epoch_masses(epoch);
}

void pe_epoch_free(pe_epoch *epoch) {
    if (!epoch) return;
    pe_log_density_free(&epoch->density);
    free(epoch->edge);
    free(epoch->piece);
    free(epoch->below[0]); /* the block of all four */
    free(epoch);
}

size_t pe_epoch_bytes(const pe_epoch *epoch) {
    return sizeof *epoch + epoch->density.room * (PE_DEGREE_NODES + 3) * sizeof(double) +
           epoch->panels * (5 * sizeof(double) + sizeof(size_t));
}

void pe_epoch_ends(const pe_epoch *epoch, double *out) {
    out[0] = epoch->density.edge[0];
    out[1] = epoch->density.edge[epoch->density.n];
    out[2] = epoch->defect[0];
    out[3] = epoch->defect[1];
}

void pe_epoch_log_density(const pe_epoch *epoch, size_t n, const double *loss, double *out) {
    const pe_log_density *f = &epoch->density;
    size_t piece = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(loss[i] >= f->edge[0] && loss[i] <= f->edge[f->n])) {
            out[i] = isnan(loss[i]) ? NAN : -INFINITY;
            continue;
        }
        piece = pe_piece_of(f, loss[i], piece);
        out[i] = pe_log_density_at(f, loss[i], piece);
    }
}
