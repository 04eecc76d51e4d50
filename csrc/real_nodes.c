#include <math.h>
#include <stdlib.h>

#include "wide_nodes.h"

/* Nodes on the real line, where all is real; docs/theory/certified.md proves what stands here.  Those of a run take their
 * exponentials from its first one, as calls of the C library for long double are most of a node's time. */

enum { RUN = 8 };

static const double MOST_EXPONENT = 600.0; /* of what is formed at a node */
static const double OF_RUN =
    24.0; /* products of a run, and the constants in them, in units of LDBL_EPSILON */

/* What a side or a difference of sides is at a node, and the error of that. */
typedef struct {
    pe_wide sum, less_one;
    double rounding;
} real_side;

/* A term of both sides, with what does not depend on the node. */
typedef struct {
    pe_wide shift, of_a, of_b, moving;
    double weight_a, weight_b;
    double fixed, per_x; /* error of the exponential: fixed + per_x |x| */
    pe_wide rise[RUN];   /* e^{c k h} */
    pe_wide power[RUN];  /* e^{c (x - c/2)} at the nodes of this run */
} real_term;

int pe_real_nodes_serve(const pe_part *part) {
    if (part->y != 0.0 || part->law.log_taper) return 0;
    const double x = fmax(fabs(part->x_low), fabs(part->x_high)) + RUN * part->h, c = part->law.farthest;
    return 0.5 * x * x < MOST_EXPONENT && c * (x + c) < MOST_EXPONENT;
}

static real_term *new_terms(const pe_part *part) {
    const pe_terms *t = &part->terms;
    const pe_wide h = part->h;
    real_term *terms = malloc(t->n * sizeof *terms);
    for (size_t j = 0; terms && j < t->n; j++) {
        real_term *term = &terms[j];
        const pe_wide c = t->shift[j], step = c == 0.0L ? 1.0L : expl(c * h);
        const double size = fabs((double)c);
        term->shift = c;
        term->of_a = t->of_a[j];
        term->of_b = t->of_b[j];
        term->moving = c == 0.0L ? 0.0L : term->of_a - term->of_b;
        term->weight_a = (double)term->of_a;
        term->weight_b = (double)term->of_b;
        term->fixed = 6.0 + OF_RUN + size * (4.0 * size + 12.0 * part->h) + (double)t->n;
        term->per_x = 4.0 * size;
        term->rise[0] = 1.0L;
        for (int k = 1; k < RUN; k++) term->rise[k] = term->rise[k - 1] * step;
        for (int k = 0; k < RUN; k++) term->power[k] = 1.0L;
    }
    return terms;
}

/* The exponentials of all terms at x + k h, k < RUN */
static void start_run(real_term *terms, size_t n, pe_wide x) {
    for (size_t j = 0; j < n; j++) {
        const pe_wide c = terms[j].shift;
        if (c == 0.0L) continue;
        const pe_wide first = expl(c * (x - 0.5L * c));
        for (int k = 0; k < RUN; k++) terms[j].power[k] = first * terms[j].rise[k];
    }
}

/* log(1 + less_one) of a side */
static pe_wide log_of(const real_side *s) {
    return s->less_one > -0.5L ? log1pl(s->less_one) : logl(s->sum);
}

/* Node k of a run, at x, whose bell is phi h; and its e^{s log W} - 1 - s log W + s (log W + r), with its error in a sum
 * of `count` such terms. */
static pe_wide set_node(const real_term *terms, size_t n, int k, double x, pe_wide bell, pe_wide s,
                        double count, pe_wide_node *node, double *error) {
    real_side a = {0.0L, 0.0L, 0.0}, b = a, moved = a;
    const double far = fabs(x);
    for (size_t j = 0; j < n; j++) {
        const real_term *t = &terms[j];
        const pe_wide e = t->power[k], less_one = e - 1.0L;
        const double wrong = (double)e * (t->fixed + t->per_x * far);
        a.sum += t->of_a * e;
        b.sum += t->of_b * e;
        a.less_one += t->of_a * less_one;
        b.less_one += t->of_b * less_one;
        a.rounding += t->weight_a * wrong;
        b.rounding += t->weight_b * wrong;
        if (t->moving == 0.0L) continue; /* nothing moves, without an error */
        moved.less_one += t->moving * less_one;
        moved.rounding += (t->weight_a + t->weight_b) * (wrong + 2.0);
    }
    const double size_a = (double)a.sum, size_b = (double)b.sum;
    const double of_a = a.rounding / size_a, of_b = b.rounding / size_b;
    const pe_wide ratio = moved.less_one / b.sum;
    const double r = fabs((double)ratio), ratio_error = moved.rounding / size_b + r * (of_b + 8.0);
    /* log W and log(1 + r) - r, r being the smaller the more of them are series */
    pe_wide l, log_tail;
    if (r * r < (double)PE_LOG_SQUARE) {
        log_tail = pe_wide_log_series(ratio);
        l = -(ratio + log_tail);
    } else {
        l = r < 0.5 ? -log1pl(ratio) : log_of(&b) - log_of(&a);
        log_tail = -l - ratio;
    }
    const double reach = fabs((double)l);
    const double log_error = (r < 0.5 ? 2.0 * ratio_error : of_a + of_b + 8.0) + 8.0 * reach;
    /* W^s, and W^s - 1 - s log W */
    const pe_wide exponent = s * l;
    pe_wide raised, tail;
    if (exponent * exponent < PE_EXP_SQUARE) {
        tail = pe_wide_exp_series(exponent);
        raised = 1.0L + (exponent + tail);
    } else {
        raised = expl(exponent);
        tail = raised - 1.0L - exponent;
    }
    const pe_wide term = tail - s * log_tail;
    node->bell = (pe_wide_complex){bell * b.sum, 0.0L};
    node->size = node->bell.re;
    node->log_of = (pe_wide_complex){l, 0.0L};
    node->raised = (pe_wide_complex){raised, 0.0L};
    node->power = raised;
    node->rounding = 20.0 + OF_RUN + 2.0 * x * x + of_b;
    node->log_error = log_error;
    *error = (double)(node->size * pe_centred_error(fabs((double)s), reach, log_error, r, ratio_error, raised,
                                                    fabsl(term), node->rounding + count));
    return node->bell.re * term;
}

int pe_real_nodes(const pe_part *part, pe_wide_node *nodes, pe_wide *above_one, double *error) {
    const size_t n = part->terms.n, count = part->count;
    const pe_wide h = part->h, s = (pe_wide)part->law.q - 1.0L;
    const double first = ceil(part->x_low / part->h);
    pe_wide narrow[RUN]; /* h e^{-(k h)^2/2} over the root of 2 pi */
    real_term *terms = new_terms(part);
    if (!terms) return PE_NO_MEMORY;
    for (int k = 0; k < RUN; k++) narrow[k] = expl(-0.5L * (k * h) * (k * h) - PE_HALF_LOG_2PI) * h;
    *above_one = 0.0L;
    *error = 0.0;
    int status = PE_OK;
    for (size_t at = 0; at < count && !status; at += RUN) {
        const pe_wide start = (pe_wide)(first + (double)at) * h, fall = expl(-start * h);
        pe_wide bell = expl(-0.5L * start * start); /* e^{-start^2/2 - k start h} at node k */
        start_run(terms, n, start);
        for (int k = 0; k < RUN && at + (size_t)k < count; k++, bell *= fall) {
            double own;
            const double x = (first + (double)(at + (size_t)k)) * part->h;
            pe_wide_node *node = &nodes[at + (size_t)k];
            *above_one += set_node(terms, n, k, x, bell * narrow[k], s, (double)count, node, &own);
            *error += own;
            if (!(s * node->log_of.re < PE_MOST_POWER)) status = PE_TOO_COSTLY;
        }
    }
    free(terms);
    return status;
}
