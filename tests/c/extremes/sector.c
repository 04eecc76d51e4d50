#include "extremes.h"

/* Laws with proven errors, at extreme noise, rates, depths and thresholds. */

static const double NOISES[] = {0.05, 0.3, 1.0, 1e3};
static const double RATES[] = {1e-300, 1e-7, 0.01, 1.0 - DBL_EPSILON / 2};
static const double DEPTHS[] = {-30.0, -200.0};
static const double BEYOND[] = {0.0, 1e-320, 1e-18, 1e-9, 1e-3, 0.1, 1.0, 30.0, 1e9, DBL_MAX, INFINITY, NAN};

static int check_law(const pe_sector *law, double noise, double p, double steps) {
    int failures = 0;
    double c[LENGTH(BEYOND)], rows[LENGTH(BEYOND) * PE_ROW];
    for (int reversed = 0; reversed < 2; ++reversed) {
        for (size_t i = 0; i < LENGTH(BEYOND); ++i) {
            c[i] = steps * log1p(-p) + BEYOND[i];
            if (reversed) c[i] = -c[i];
        }
        pe_sector_at(law, reversed, LENGTH(BEYOND), c, rows);
        for (size_t i = 0; i < LENGTH(BEYOND); ++i) {
            const double *row = rows + PE_ROW * i;
            int wrong = row_is_wrong(row);
            /* both sides of a threshold add up to 1 within their errors */
            for (int side = 0; side < 2 && !isnan(row[0]); ++side) {
                const double *value = row + 2 + (side ? PE_B_ABOVE : PE_A_ABOVE),
                             *error = value + PE_FUNCTIONALS;
                const double one = exp(value[0]) + exp(value[1]);
                if (isfinite(error[0]) && isfinite(error[1]) && fabs(one - 1.0) > error[0] + error[1])
                    wrong = 100;
            }
            if (!wrong) continue;
            fprintf(stderr, "sector_at(noise %g, p %g, steps %g, reversed %d; %.17g): rule %d\n", noise, p,
                    steps, reversed, c[i], wrong);
            ++failures;
        }
    }
    return failures + (pe_sector_panels(law) == 0) + !(pe_sector_error(law) < 1e-6) +
           (pe_sector_bytes(law) == 0);
}

/* Losses of means of ratios, from one ratio to two epochs of two. */
static int run_epochs(pe_sector_pieces *pieces) {
    int failures = 0;
    for (size_t a = 0; a < LENGTH(NOISES); ++a)
        for (size_t d = 0; d < LENGTH(DEPTHS); ++d) {
            const double shift[2] = {1.0 / NOISES[a], 0.0};
            pe_sector *one, *epoch = NULL, *both = NULL, *none = NULL;
            const int status = pe_sector_ratio(shift, DEPTHS[d], 2.0, &one);
            if (!status) {
                double ends[2];
                pe_sector_ends(one, ends);
                failures += !(ends[0] < ends[1]) || pe_sector_work(one) != 0.0;
                failures += check_law(one, NOISES[a], 0.0, 1.0);
            }
            if (!status && pe_sector_convolve(one, one, pieces, &epoch) == PE_OK) {
                failures += check_law(epoch, NOISES[a], 0.0, 2.0);
                if (pe_sector_compose(epoch, one, pieces, &both) == PE_OK) {
                    failures += check_law(both, NOISES[a], 0.0, 3.0);
                    /* losses are no ratios */
                    failures += pe_sector_convolve(both, one, pieces, &none) != PE_TOO_COSTLY;
                }
            }
            pe_sector_free(one);
            pe_sector_free(epoch);
            pe_sector_free(both);
            pe_sector_free(none);
        }
    return failures;
}

int run_sector(void) {
    int failures = 0;
    pe_sector_pieces *pieces = pe_sector_pieces_new();
    if (!pieces) return 1;
    for (size_t a = 0; a < LENGTH(NOISES); ++a)
        for (size_t b = 0; b < LENGTH(RATES); ++b)
            for (size_t d = 0; d < LENGTH(DEPTHS); ++d) {
                const double shift[2] = {1.0 / NOISES[a], 0.0}, p = RATES[b];
                const double ratio[2] = {p / (1.0 - p), 0.0}, least[2] = {log1p(-p), 0.0};
                pe_sector *one, *two = NULL;
                const int status =
                    pe_sector_step(shift, ratio, least, p, DEPTHS[d], DEPTHS[d], 2.0, -INFINITY, &one);
                if (!status) failures += check_law(one, NOISES[a], p, 1.0);
                if (!status && a != 1 && pe_sector_convolve(one, one, pieces, &two) == PE_OK)
                    failures += check_law(two, NOISES[a], p, 2.0);
                pe_sector_free(one);
                pe_sector_free(two);
            }
    failures += run_epochs(pieces);
    pe_sector_pieces_free(pieces);
    return failures;
}
