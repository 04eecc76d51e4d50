/* NumPy ufuncs over the kernels of csrc: the extension module pyengine._ufuncs.
 *
 * Each ufunc has one loop, over doubles; the kernels take strides as NumPy gives them.  They are
 * serial and need no lock, and NumPy lets go of the interpreter lock around long loops.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fenv.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <numpy/ufuncobject.h>

#include "environment.h"
#include "pyengine.h"

/* The kernel that the loop of one ufunc calls. */
typedef struct {
    int what, inverse;
} selector;

typedef void (*kernel)(char **args, const npy_intp *steps, size_t n, const selector *s);

typedef struct {
    kernel run;
    selector select;
} task;

#define THREE_ARGUMENTS args[0], steps[0], args[1], steps[1], args[2], steps[2], args[3], steps[3]
#define KERNEL(name, call)                                                                                   \
    static void name(char **args, const npy_intp *steps, size_t n, const selector *s) {                      \
        call;                                                                                                \
    }

KERNEL(run_ncx2, pe_ncx2_strided(s->what, n, THREE_ARGUMENTS))
KERNEL(run_quantile, pe_ncx2_quantile_strided(s->what, n, THREE_ARGUMENTS))
KERNEL(run_marcum, pe_marcum_strided(s->what, n, THREE_ARGUMENTS))
KERNEL(run_marcum_inverse, pe_marcum_inverse_strided(s->what, n, THREE_ARGUMENTS))
KERNEL(run_parameter, pe_ncx2_parameter_strided(s->what, s->inverse, n, THREE_ARGUMENTS))
KERNEL(run_marcum_a, pe_ncx2_parameter_strided(s->what, PE_MARCUM_OF_A, n, args[2], steps[2], args[1],
                                               steps[1], args[0], steps[0], args[3], steps[3]))
KERNEL(run_relaxed, pe_relaxed_strided(s->what, s->inverse, n, THREE_ARGUMENTS))
KERNEL(run_sgd, pe_one_step_sgd_strided(s->what, n, THREE_ARGUMENTS, args[4], steps[4]))

/* Vector code raises flags in lanes that are thrown away; NaN and infinity in the results speak for
   themselves, so no warning is due. */
static void loop(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data) {
    const task *t = data;
    pe_environment host;
    pe_environment_enter(&host);
    t->run(args, steps, (size_t)dimensions[0], &t->select);
    feclearexcept(FE_ALL_EXCEPT);
    pe_environment_leave(&host);
}

/* A call with plain numbers goes to the kernel directly: NumPy's way there takes 0.5 us.  Anything
   else is left to the ufunc.  The limited API of Python 3.10 has neither the type of this call nor the
   flag beside the number of arguments, so both stand here as PEP 590 fixes them. */
typedef PyObject *(*vectorcall)(PyObject *, PyObject *const *, size_t, PyObject *);
static const size_t OFFSET_FLAG = (size_t)1 << (8 * sizeof(size_t) - 1);

static vectorcall ufunc_call;
static allocfunc new_scalar; /* of numpy.float64 */

/* The ValueError of an integer beyond doubles, in the place of the OverflowError that it raised. */
static void refuse_size(const char *name, int index, PyObject *value) {
    PyErr_Clear();
    PyObject *bits = PyObject_CallMethod(value, "bit_length", NULL);
    if (bits == NULL) return;
    PyErr_Format(PyExc_ValueError,
                 "argument %d of %s must be at most 1.798e+308 in size, the largest double, got an integer "
                 "of %S bits",
                 index + 1, name, bits);
    Py_DECREF(bits);
}

static PyObject *call_scalars(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    const PyUFuncObject *ufunc = (PyUFuncObject *)self;
    const int count = ufunc->nin;
    static const npy_intp steps[5]; /* zeros */
    double value[5];
    char *at[5];
    PyObject *result;

    if (names != NULL || (nargsf & ~OFFSET_FLAG) != (size_t)count)
        return ufunc_call(self, args, nargsf, names);
    for (int i = 0; i < count; i++) {
        if (PyFloat_CheckExact(args[i]) || PyArray_IsScalar(args[i], Double)) {
            value[i] = PyFloat_AsDouble(args[i]);
        } else if (PyLong_CheckExact(args[i])) {
            value[i] = PyLong_AsDouble(args[i]);
            if (value[i] == -1.0 && PyErr_Occurred()) {
                refuse_size(ufunc->name, i, args[i]);
                return NULL;
            }
        } else {
            return ufunc_call(self, args, nargsf, names);
        }
        at[i] = (char *)&value[i];
    }
    at[count] = (char *)&value[count];
    const task *t = ufunc->data[0];
    t->run(at, steps, 1, &t->select);
    result = new_scalar(&PyDoubleArrType_Type, 0);
    if (result != NULL) ((PyDoubleScalarObject *)result)->obval = value[count];
    return result;
}

/* NumPy's own work before and after the loop, such as conversions, is part of the call. */
static PyObject *call_guarded(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    pe_environment host;
    PyObject *result;

    pe_environment_enter(&host);
    result = call_scalars(self, args, nargsf, names);
    pe_environment_leave(&host);
    return result;
}

static const char DOUBLES[] = {NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE};

typedef struct {
    const char *name;
    int inputs;
    task job;
    const char *doc;
} entry;

#define X_DF_NC                                                                                              \
    "\n\nParameters\n----------\nx : array_like\n    Point, any real number.\n"                              \
    "df : array_like\n    Degrees of freedom, 0 <= df < inf; at 0 there is an atom at x = 0.\n"              \
    "nc : array_like\n    Noncentrality, 0 <= nc < inf; 0 is the central distribution.\n"
#define P_DF_NC(line)                                                                                        \
    "\n\nParameters\n----------\n" line "df : array_like\n    Degrees of freedom, 0 <= df < inf.\n"          \
    "nc : array_like\n    Noncentrality, 0 <= nc < inf.\n"
#define ORDER_A_B                                                                                            \
    "\n\nParameters\n----------\norder : array_like\n    Order, 0 <= order < inf, need not be an "           \
    "integer.\na : array_like\n    0 <= a < inf.\nb : array_like\n    b >= 0.\n"
#define ORDER_A_P(line)                                                                                      \
    "\n\nParameters\n----------\norder : array_like\n    Order, 0 <= order < inf.\n"                         \
    "a : array_like\n    0 <= a < inf.\n" line
#define PROBABILITY "p : array_like\n    Probability in [0, 1].\n"
#define LOG_PROBABILITY "log_p : array_like\n    Logarithm of a probability, log_p <= 0.\n"
#define P_X(line, other)                                                                                     \
    "\n\nParameters\n----------\n" line "x : array_like\n    Point, 0 < x <= 2^200.\n" other
#define OF_DF "df : array_like\n    Degrees of freedom, 0 <= df <= 2^200.\n"
#define OF_NC "nc : array_like\n    Noncentrality, 0 <= nc <= 2^200.\n"
#define ORDER_B_P(line)                                                                                      \
    "\n\nParameters\n----------\norder : array_like\n    Order, 0 <= order <= 2^199.\n"                      \
    "b : array_like\n    0 < b <= 2^100.\n" line
#define SGD                                                                                                  \
    "\n\nThe test statistic of a member has the law of one noisy gradient step with n terms and "            \
    "squared\nnorm ratio k: beta(alpha) = 1 - F_{(n-1) k}(n/(n-1) F^{-1}_{n k}(alpha)) with df "             \
    "degrees of freedom.\n\nParameters\n----------\nalpha : array_like\n    Type-I error in "                \
    "[0, 1].\ndf : array_like\n    Degrees of freedom, 0 < df.\nn : array_like\n    Number of "              \
    "terms, n > 1.\nk : array_like\n    k >= 0.\n"
#define RELAXED(first)                                                                                       \
    "\n\nParameters\n----------\n" first " : array_like\n    Probability in [0, 1].\n"                       \
    "df : array_like\n    Degrees of freedom, 0 < df.\nmu : array_like\n    Length of the "                  \
    "shift, mu >= 0.\n"
#define RETURNS(line) "\nReturns\n-------\nfloat64 or ndarray\n    " line "\n"
#define NONE "Rounded to a few units in the last place; NaN outside the domain, and where there is none."
#define FEW "Rounded to a few units in the last place; NaN outside the domain."

static entry TABLE[] = {
    {"ncx2_cdf",
     3,
     {run_ncx2, {PE_NCX2_CDF, 0}},
     "Distribution function of the noncentral chi-squared distribution." X_DF_NC RETURNS(FEW)},
    {"ncx2_sf",
     3,
     {run_ncx2, {PE_NCX2_SF, 0}},
     "Survival function of the noncentral chi-squared distribution." X_DF_NC RETURNS(FEW)},
    {"ncx2_logcdf",
     3,
     {run_ncx2, {PE_NCX2_LOGCDF, 0}},
     "Logarithm of the noncentral chi-squared distribution function." X_DF_NC RETURNS(FEW)},
    {"ncx2_logsf",
     3,
     {run_ncx2, {PE_NCX2_LOGSF, 0}},
     "Logarithm of the noncentral chi-squared survival function." X_DF_NC RETURNS(FEW)},
    {"ncx2_pdf",
     3,
     {run_ncx2, {PE_NCX2_PDF, 0}},
     "Density of the noncentral chi-squared distribution." X_DF_NC RETURNS(FEW)},
    {"ncx2_logpdf",
     3,
     {run_ncx2, {PE_NCX2_LOGPDF, 0}},
     "Logarithm of the noncentral chi-squared density." X_DF_NC RETURNS(FEW)},
    {"ncx2_ppf",
     3,
     {run_quantile, {0, 0}},
     "Quantile of the noncentral chi-squared distribution: cdf(x) = p." P_DF_NC(PROBABILITY) RETURNS(FEW)},
    {"ncx2_isf",
     3,
     {run_quantile, {1, 0}},
     "Upper quantile of the noncentral chi-squared distribution: sf(x) = p." P_DF_NC(PROBABILITY)
         RETURNS(FEW)},
    {"ncx2_ppf_exp",
     3,
     {run_quantile, {2, 0}},
     "Quantile from the logarithm of a probability: logcdf(x) = log_p." P_DF_NC(LOG_PROBABILITY)
         RETURNS(FEW)},
    {"ncx2_isf_exp",
     3,
     {run_quantile, {3, 0}},
     "Upper quantile from the logarithm of a probability: logsf(x) = log_p." P_DF_NC(LOG_PROBABILITY)
         RETURNS(FEW)},
    {"marcum_q",
     3,
     {run_marcum, {PE_NCX2_SF, 0}},
     "Marcum's Q function Q_order(a, b)." ORDER_A_B RETURNS(FEW)},
    {"marcum_p",
     3,
     {run_marcum, {PE_NCX2_CDF, 0}},
     "Complement 1 - Q_order(a, b) of Marcum's Q function." ORDER_A_B RETURNS(FEW)},
    {"log_marcum_q",
     3,
     {run_marcum, {PE_NCX2_LOGSF, 0}},
     "Logarithm of Marcum's Q function." ORDER_A_B RETURNS(FEW)},
    {"log_marcum_p",
     3,
     {run_marcum, {PE_NCX2_LOGCDF, 0}},
     "Logarithm of the complement of Marcum's Q function." ORDER_A_B RETURNS(FEW)},
    {"marcum_q_inv",
     3,
     {run_marcum_inverse, {1, 0}},
     "The b with Q_order(a, b) = p." ORDER_A_P(PROBABILITY) RETURNS(FEW)},
    {"marcum_p_inv",
     3,
     {run_marcum_inverse, {0, 0}},
     "The b with 1 - Q_order(a, b) = p." ORDER_A_P(PROBABILITY) RETURNS(FEW)},
    {"marcum_q_inv_exp",
     3,
     {run_marcum_inverse, {3, 0}},
     "The b with log Q_order(a, b) = log_p." ORDER_A_P(LOG_PROBABILITY) RETURNS(FEW)},
    {"marcum_p_inv_exp",
     3,
     {run_marcum_inverse, {2, 0}},
     "The b with log(1 - Q_order(a, b)) = log_p." ORDER_A_P(LOG_PROBABILITY) RETURNS(FEW)},
    {"ncx2_nc",
     3,
     {run_parameter, {0, PE_NCX2_OF_NC}},
     "The noncentrality at which cdf(x) = p." P_X(PROBABILITY, OF_DF) RETURNS(NONE)},
    {"ncx2_nc_sf",
     3,
     {run_parameter, {1, PE_NCX2_OF_NC}},
     "The noncentrality at which sf(x) = p." P_X(PROBABILITY, OF_DF) RETURNS(NONE)},
    {"ncx2_nc_exp",
     3,
     {run_parameter, {2, PE_NCX2_OF_NC}},
     "The noncentrality at which logcdf(x) = log_p." P_X(LOG_PROBABILITY, OF_DF) RETURNS(NONE)},
    {"ncx2_nc_sf_exp",
     3,
     {run_parameter, {3, PE_NCX2_OF_NC}},
     "The noncentrality at which logsf(x) = log_p." P_X(LOG_PROBABILITY, OF_DF) RETURNS(NONE)},
    {"ncx2_df",
     3,
     {run_parameter, {0, PE_NCX2_OF_DF}},
     "The degrees of freedom at which cdf(x) = p." P_X(PROBABILITY, OF_NC) RETURNS(NONE)},
    {"ncx2_df_sf",
     3,
     {run_parameter, {1, PE_NCX2_OF_DF}},
     "The degrees of freedom at which sf(x) = p." P_X(PROBABILITY, OF_NC) RETURNS(NONE)},
    {"ncx2_df_exp",
     3,
     {run_parameter, {2, PE_NCX2_OF_DF}},
     "The degrees of freedom at which logcdf(x) = log_p." P_X(LOG_PROBABILITY, OF_NC) RETURNS(NONE)},
    {"ncx2_df_sf_exp",
     3,
     {run_parameter, {3, PE_NCX2_OF_DF}},
     "The degrees of freedom at which logsf(x) = log_p." P_X(LOG_PROBABILITY, OF_NC) RETURNS(NONE)},
    {"marcum_q_inv_a",
     3,
     {run_marcum_a, {1, 0}},
     "The a with Q_order(a, b) = p." ORDER_B_P(PROBABILITY) RETURNS(NONE)},
    {"marcum_p_inv_a",
     3,
     {run_marcum_a, {0, 0}},
     "The a with 1 - Q_order(a, b) = p." ORDER_B_P(PROBABILITY) RETURNS(NONE)},
    {"marcum_q_inv_a_exp",
     3,
     {run_marcum_a, {3, 0}},
     "The a with log Q_order(a, b) = log_p." ORDER_B_P(LOG_PROBABILITY) RETURNS(NONE)},
    {"marcum_p_inv_a_exp",
     3,
     {run_marcum_a, {2, 0}},
     "The a with log(1 - Q_order(a, b)) = log_p." ORDER_B_P(LOG_PROBABILITY) RETURNS(NONE)},
    {"one_step_sgd_beta",
     4,
     {run_sgd, {PE_NCX2_SF, 0}},
     "Trade-off function of one noisy gradient step against a membership test." SGD RETURNS(FEW)},
    {"one_step_sgd_power",
     4,
     {run_sgd, {PE_NCX2_CDF, 0}},
     "1 - beta(alpha), the power of the membership test on one noisy gradient step." SGD RETURNS(FEW)},
    {"log_one_step_sgd_beta",
     4,
     {run_sgd, {PE_NCX2_LOGSF, 0}},
     "log beta(alpha) of one noisy gradient step." SGD RETURNS(FEW)},
    {"log_one_step_sgd_power",
     4,
     {run_sgd, {PE_NCX2_LOGCDF, 0}},
     "log(1 - beta(alpha)) of one noisy gradient step." SGD RETURNS(FEW)},
    {"relaxed_beta",
     3,
     {run_relaxed, {0, 0}},
     "Trade-off function j of the relaxed threat model, F_{df, mu^2}(SF^{-1}_{df, 0}(alpha))." RELAXED(
         "alpha") RETURNS(FEW)},
    {"log_relaxed_beta",
     3,
     {run_relaxed, {2, 0}},
     "Logarithm of the trade-off function of the relaxed threat model." RELAXED("alpha") RETURNS(FEW)},
    {"relaxed_alpha",
     3,
     {run_relaxed, {0, 1}},
     "Inverse trade-off function of the relaxed threat model, SF_{df, 0}(F^{-1}_{df, mu^2}(beta))." RELAXED(
         "beta") RETURNS(FEW)},
    {"log_relaxed_alpha",
     3,
     {run_relaxed, {2, 1}},
     "Logarithm of the inverse trade-off function of the relaxed threat model." RELAXED("beta") RETURNS(FEW)},
};

#define COUNT (sizeof TABLE / sizeof *TABLE)

/* NumPy keeps these addresses for the life of the ufuncs. */
static PyUFuncGenericFunction LOOPS[COUNT];
static void *DATA[COUNT];

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pyengine._ufuncs",
    .m_doc = "Elementwise special functions as NumPy ufuncs.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__ufuncs(void) {
    PyObject *module;

    import_array();
    import_umath();
    new_scalar = (allocfunc)PyType_GetSlot(&PyDoubleArrType_Type, Py_tp_alloc);
    module = PyModule_Create(&MODULE);
    if (module == NULL) return NULL;
    for (size_t i = 0; i < COUNT; i++) {
        entry *e = TABLE + i;
        PyObject *ufunc;
        LOOPS[i] = loop;
        DATA[i] = &e->job;
        ufunc = PyUFunc_FromFuncAndData(LOOPS + i, DATA + i, (char *)DOUBLES, 1, e->inputs, 1, PyUFunc_None,
                                        e->name, e->doc, 0);
        if (ufunc == NULL || PyModule_AddObject(module, e->name, ufunc) < 0) {
            Py_XDECREF(ufunc);
            Py_DECREF(module);
            return NULL;
        }
        if (((PyUFuncObject *)ufunc)->vectorcall != NULL) {
            ufunc_call = (vectorcall)((PyUFuncObject *)ufunc)->vectorcall;
            ((PyUFuncObject *)ufunc)->vectorcall = (void *)call_guarded;
        }
    }
    return module;
}
