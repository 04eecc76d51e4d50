/* A door to rows of divided laws alone, for tools/audit_divided.py. */
#include "divided.h"
#include "pair.h"

int audit_divided_row(pe_pair *pair, double c, double *row) {
    pe_contours *contours;
    const int status = pe_pair_contours(pair, 0, &contours);
    pe_fail_row(row);
    return status ? status : pe_divided_row(contours, PE_PROFILE, c, row);
}
