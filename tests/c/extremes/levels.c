#include "extremes.h"

/* Bounds of levels where nothing is known of some or of all masses: none says anything that is wrong. */
int run_levels(void) {
    enum { POINTS = 4, PARTS = 6 };
    static const double LEVELS[] = {5e-324, 1e-300, 0.25, 0.5, 0.75, 1.0 - 0x1p-53};
    static const double FAR[] = {5e-324, 800.0, 1e300, INFINITY};
    static const double ERRORS[] = {0.0, 0x1p-53, 1.0, INFINITY};
    int failures = 0;
    for (size_t i = 0; i < LENGTH(LEVELS); ++i)
        for (size_t j = 0; j < LENGTH(FAR); ++j)
            for (size_t k = 0; k < LENGTH(ERRORS); ++k) {
                double tails[PARTS][POINTS], c[POINTS], out[7], below[POINTS], above[POINTS];
                for (size_t q = 0; q < POINTS; ++q) {
                    /* of two laws that are equal, with all masses on one side but for one point */
                    const double share = q < 2 ? 0.0 : q == 2 ? LEVELS[i] : 1.0;
                    const double own[PARTS] = {share, 1.0 - share, share, 1.0 - share, ERRORS[k], 0.0};
                    for (size_t part = 0; part < PARTS; ++part) tails[part][q] = own[part];
                    c[q] = q == 0 ? FAR[j] : q == POINTS - 1 ? -FAR[j] : 0.0; /* every event is best at 0 */
                }
                pe_level_errors(POINTS, 1, LEVELS + i, c, tails[0], 0x1p-49, 0.0, out);
                pe_level_tangents(POINTS, 1, LEVELS + i, c, tails[5], tails[0], 0x1p-49, below, above);
                const double beta = 1.0 - LEVELS[i];
                failures += !(out[1] <= beta) || !(out[2] >= beta) || !(out[4] <= LEVELS[i]) ||
                            !(out[5] >= LEVELS[i]);
                failures += !(fabs(out[3] - LEVELS[i]) <= 0x1p-50 * LEVELS[i]) || !(fabs(out[6]) <= FAR[j]);
                for (size_t q = 0; q < POINTS; ++q) failures += !isfinite(below[q]) || !isfinite(above[q]);
                double worst, least;
                pe_level_chord(POINTS, 1, LEVELS + i, tails[0], 0x1p-49, &worst, &least);
                failures += !(worst >= beta) || !(least <= LEVELS[i]);
            }
    return failures;
}

/* Tails of masses with errors up to all of them, and masses of integrals that are next to nothing or unknown. */
int run_line_masses(void) {
    static const double SIZES[] = {0.0, 5e-324, 1e-300, 0x1p-53, 0.5, 1.0, INFINITY, NAN};
    static const double REMOVED[2] = {0.0, 1e-12}, REST[4] = {1.0, 1.0, 0.0, 0.0};
    int failures = 0;
    for (size_t i = 0; i < LENGTH(SIZES); ++i)
        for (size_t j = 0; j < LENGTH(SIZES); ++j) {
            const double mass = fmin(SIZES[i], 1.0), error = SIZES[j], shift = 0.0;
            const double masses[8] = {mass, error, mass, error, mass, error, mass, error};
            double tails[6], found[8];
            pe_level_tails(1, masses, &shift, tails);
            for (size_t part = 0; part < 4; ++part) /* at most what it was and its error, relatively */
                failures += !(tails[part] * (1.0 + tails[4]) >=
                              fmin(mass + (isnan(error) ? 1.0 : error), 1.0) * (1.0 - 0x1p-50));
            for (double tilt = -1.0; tilt <= 2.0; tilt += 1.5) {
                const double both[2] = {mass, -mass}, off[2] = {error, error};
                pe_level_masses(tilt, both, off, REST, REMOVED, found);
                for (size_t law = 0; law < 2; ++law) {
                    const double *of = found + 4 * law;
                    failures += !(of[0] >= 0.0) || !(of[1] >= 0.0) || !(of[0] + of[1] == 1.0);
                    failures += !(of[2] >= REMOVED[law]) || !(of[3] >= REMOVED[law]);
                    failures += error > 0.0 && !(fmin(of[2], of[3]) >= fmin(error, 1.0));
                }
            }
        }
    return failures;
}

/* Lines of any number of lanes, with angles 0 and beyond those that lanes take. */
int run_line_sums(void) {
    int failures = 0;
    static const double FAR[] = {0.0, 5e-324, 1.0, 1e8, 1e16, 1e300};
    for (size_t size = 8; size <= 40; size += 8) {
        double *t = allocate(size), *re = allocate(size), *im = allocate(size), out[LENGTH(FAR)];
        for (size_t j = 0; j < size; ++j) {
            t[j] = (double)j;
            re[j] = 1.0 / (double)size;
            im[j] = 0.0;
        }
        pe_trig_sums(LENGTH(FAR), FAR, size, t, 1, re, im, out);
        failures += !(fabs(out[0] - 1.0) < 1e-14) || !(fabs(out[1] - 1.0) < 1e-14);
        for (size_t i = 0; i < LENGTH(FAR); ++i) { /* beyond angles of 2^50 nothing is known */
            const int is_known = FAR[i] * t[size - 1] < 0x1p50;
            failures += is_known ? !(fabs(out[i]) < 1.0 + 1e-14) : !isnan(out[i]);
        }
        free(t);
        free(re);
        free(im);
    }
    return failures;
}
