/* The functions of libpyengine for programs in C, declared in pyengine/include/libpyengine.h.
 *
 * Each function calls the kernel of the ufunc or the function of that name, in the default environment.
 */
#include "../pyengine/include/libpyengine.h"
#include "environment.h"
#include "functions.h"

#define NUMBER(x) (const char *)&(x), 0
#define THREE(x, y, z) NUMBER(x), NUMBER(y), NUMBER(z)
#define RESULT (char *)&found, 0

/* One public function: its arguments, and the call that leaves its answer in `found`. */
#define PUBLIC(name, arguments, call)                                                                        \
    double pyengine_##name arguments {                                                                       \
        pe_environment host;                                                                                 \
        double found;                                                                                        \
        pe_environment_enter(&host);                                                                         \
        call;                                                                                                \
        pe_environment_leave(&host);                                                                         \
        return found;                                                                                        \
    }
#define ONE(name) PUBLIC(name, (double x), found = pe_##name(x))
#define POINT(name, what) PUBLIC(name, (double x, double df, double nc), found = pe_ncx2(what, x, df, nc))
#define QUANTILE(name, what)                                                                                 \
    PUBLIC(name, (double p, double df, double nc),                                                           \
           pe_ncx2_quantile_strided(what, 1, THREE(p, df, nc), RESULT))
#define PARAMETER(name, what, unknown)                                                                       \
    PUBLIC(name, (double p, double x, double other),                                                         \
           pe_ncx2_parameter_strided(what, unknown, 1, THREE(p, x, other), RESULT))
#define MARCUM(name, what)                                                                                   \
    PUBLIC(name, (double order, double a, double b), pe_marcum_strided(what, 1, THREE(order, a, b), RESULT))
#define MARCUM_B(name, what)                                                                                 \
    PUBLIC(name, (double order, double a, double p),                                                         \
           pe_marcum_inverse_strided(what, 1, THREE(order, a, p), RESULT))
#define MARCUM_A(name, what)                                                                                 \
    PUBLIC(name, (double order, double b, double p),                                                         \
           pe_ncx2_parameter_strided(what, PE_MARCUM_OF_A, 1, THREE(p, b, order), RESULT))
#define GRADIENT(name, what)                                                                                 \
    PUBLIC(name, (double alpha, double df, double n, double k),                                              \
           pe_one_step_sgd_strided(what, 1, THREE(alpha, df, n), NUMBER(k), RESULT))
#define RELAXED(name, what, inverse)                                                                         \
    PUBLIC(name, (double p, double df, double mu),                                                           \
           pe_relaxed_strided(what, inverse, 1, THREE(p, df, mu), RESULT))

int pyengine_api_version(void) {
    return 1000 * PYENGINE_API_VERSION + PYENGINE_API_MINOR;
}

ONE(normal_pdf)
ONE(ndtr)
ONE(log_ndtr)
ONE(ndtri)
ONE(ndtri_exp)

POINT(ncx2_cdf, PE_NCX2_CDF)
POINT(ncx2_sf, PE_NCX2_SF)
POINT(ncx2_logcdf, PE_NCX2_LOGCDF)
POINT(ncx2_logsf, PE_NCX2_LOGSF)
POINT(ncx2_pdf, PE_NCX2_PDF)
POINT(ncx2_logpdf, PE_NCX2_LOGPDF)

QUANTILE(ncx2_ppf, 0)
QUANTILE(ncx2_isf, 1)
QUANTILE(ncx2_ppf_exp, 2)
QUANTILE(ncx2_isf_exp, 3)

PARAMETER(ncx2_nc, 0, PE_NCX2_OF_NC)
PARAMETER(ncx2_nc_sf, 1, PE_NCX2_OF_NC)
PARAMETER(ncx2_nc_exp, 2, PE_NCX2_OF_NC)
PARAMETER(ncx2_nc_sf_exp, 3, PE_NCX2_OF_NC)
PARAMETER(ncx2_df, 0, PE_NCX2_OF_DF)
PARAMETER(ncx2_df_sf, 1, PE_NCX2_OF_DF)
PARAMETER(ncx2_df_exp, 2, PE_NCX2_OF_DF)
PARAMETER(ncx2_df_sf_exp, 3, PE_NCX2_OF_DF)

MARCUM(marcum_q, PE_NCX2_SF)
MARCUM(marcum_p, PE_NCX2_CDF)
MARCUM(log_marcum_q, PE_NCX2_LOGSF)
MARCUM(log_marcum_p, PE_NCX2_LOGCDF)

MARCUM_B(marcum_p_inv, 0)
MARCUM_B(marcum_q_inv, 1)
MARCUM_B(marcum_p_inv_exp, 2)
MARCUM_B(marcum_q_inv_exp, 3)

MARCUM_A(marcum_p_inv_a, 0)
MARCUM_A(marcum_q_inv_a, 1)
MARCUM_A(marcum_p_inv_a_exp, 2)
MARCUM_A(marcum_q_inv_a_exp, 3)

GRADIENT(one_step_sgd_beta, PE_NCX2_SF)
GRADIENT(one_step_sgd_power, PE_NCX2_CDF)
GRADIENT(log_one_step_sgd_beta, PE_NCX2_LOGSF)
GRADIENT(log_one_step_sgd_power, PE_NCX2_LOGCDF)

RELAXED(relaxed_beta, 0, 0)
RELAXED(log_relaxed_beta, 2, 0)
RELAXED(relaxed_alpha, 0, 1)
RELAXED(log_relaxed_alpha, 2, 1)
