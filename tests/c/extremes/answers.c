#include "extremes.h"

/* From rows to answers: rows of extremes stay inside their arrays, one by one gives the bits of all
 * together, and values lie between their bounds. */
int run_answers(void) {
    enum { COUNT = 400 };
    int failures = 0;
    double *rows = allocate(PE_ROW * COUNT), *alpha = allocate(COUNT), *out = allocate(6 * COUNT);
    double *errors = allocate(COUNT);
    unsigned char good[COUNT];
    for (size_t i = 0; i < PE_ROW * COUNT; ++i) rows[i] = EXTREMES[(i * 7 + i / PE_ROW) % LENGTH(EXTREMES)];
    for (size_t i = 0; i < COUNT; ++i) {
        alpha[i] = ((double)i + 0.5) / COUNT;
        /* from here on a row of probabilities, as an engine gives it */
        if (i >= COUNT / 2)
            for (int f = 0; f < PE_FUNCTIONALS; ++f) {
                rows[PE_ROW * i + 2 + (size_t)f] = log(alpha[(i * 3 + (size_t)f) % (i + 1)]);
                rows[PE_ROW * i + 2 + PE_FUNCTIONALS + (size_t)f] = 1e-13;
            }
    }
    pe_rows_judge(COUNT, rows, PE_A_ABOVE, 1e-11, 1e-9, errors, good);
    pe_trade_off_answers(COUNT, alpha, rows, out);
    for (size_t i = 0; i < COUNT; ++i) {
        double one[6];
        const double *row = rows + PE_ROW * i;
        pe_trade_off_answers(1, &alpha[i], row, one);
        if (good[i] != pe_row_good(row, PE_A_ABOVE, 1e-11, 1e-9)) ++failures;
        for (int k = 0; k < 6; ++k)
            if (differ(one[k], out[6 * i + (size_t)k])) ++failures;
        for (int k = 0; k < 6 && i >= COUNT / 2; k += 3)
            if (!(one[k] >= 0.0 && one[k] <= 1.0)) ++failures;
    }
    pe_profile_answers(COUNT, rows, out);
    for (size_t i = COUNT / 2; i < COUNT; ++i)
        if (!(out[3 * i + 1] <= out[3 * i] && out[3 * i] <= out[3 * i + 2])) ++failures;
    pe_epsilon_answers(COUNT, rows, out);
    for (size_t i = 0; i < COUNT; ++i)
        if (!(out[3 * i] >= 0.0)) ++failures;
    free(rows);
    free(alpha);
    free(out);
    free(errors);
    return failures;
}
