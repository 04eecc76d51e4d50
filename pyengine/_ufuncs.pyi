# Elementwise special functions, written in C (csrc/python/ufuncs.c).
import numpy as np

log_marcum_p: np.ufunc
log_marcum_q: np.ufunc
log_one_step_sgd_beta: np.ufunc
log_one_step_sgd_power: np.ufunc
log_relaxed_alpha: np.ufunc
log_relaxed_beta: np.ufunc
marcum_p: np.ufunc
marcum_p_inv: np.ufunc
marcum_p_inv_exp: np.ufunc
marcum_q: np.ufunc
marcum_q_inv: np.ufunc
marcum_q_inv_exp: np.ufunc
ncx2_cdf: np.ufunc
ncx2_isf: np.ufunc
ncx2_isf_exp: np.ufunc
ncx2_logcdf: np.ufunc
ncx2_logpdf: np.ufunc
ncx2_logsf: np.ufunc
ncx2_pdf: np.ufunc
ncx2_ppf: np.ufunc
ncx2_ppf_exp: np.ufunc
ncx2_sf: np.ufunc
one_step_sgd_beta: np.ufunc
one_step_sgd_power: np.ufunc
relaxed_alpha: np.ufunc
relaxed_beta: np.ufunc
