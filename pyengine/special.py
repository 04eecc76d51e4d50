"""Special functions, accurate in relative terms over the whole range of double precision.

Every function broadcasts like a NumPy function and returns a float for a scalar.  NaN in gives NaN
out, and so does an argument outside the domain.  The functions of the noncentral chi-squared
distribution, Marcum's Q function and their compositions are NumPy ufuncs (``out=``, ``where=``);
`threaded` spreads one over the cores for large arrays.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support import checks
from pyengine._support.pool import shared_pool
from pyengine._ufuncs import (
    log_marcum_p,
    log_marcum_q,
    log_one_step_sgd_beta,
    log_one_step_sgd_power,
    log_relaxed_alpha,
    log_relaxed_beta,
    marcum_p,
    marcum_p_inv,
    marcum_p_inv_a,
    marcum_p_inv_a_exp,
    marcum_p_inv_exp,
    marcum_q,
    marcum_q_inv,
    marcum_q_inv_a,
    marcum_q_inv_a_exp,
    marcum_q_inv_exp,
    ncx2_cdf,
    ncx2_df,
    ncx2_df_exp,
    ncx2_df_sf,
    ncx2_df_sf_exp,
    ncx2_isf,
    ncx2_isf_exp,
    ncx2_logcdf,
    ncx2_logpdf,
    ncx2_logsf,
    ncx2_nc,
    ncx2_nc_exp,
    ncx2_nc_sf,
    ncx2_nc_sf_exp,
    ncx2_pdf,
    ncx2_ppf,
    ncx2_ppf_exp,
    ncx2_sf,
    one_step_sgd_beta,
    one_step_sgd_power,
    relaxed_alpha,
    relaxed_beta,
)

__all__ = [
    "log_marcum_p",
    "log_marcum_q",
    "log_ndtr",
    "log_one_step_sgd_beta",
    "log_one_step_sgd_power",
    "log_relaxed_alpha",
    "log_relaxed_beta",
    "marcum_p",
    "marcum_p_inv",
    "marcum_p_inv_a",
    "marcum_p_inv_a_exp",
    "marcum_p_inv_exp",
    "marcum_q",
    "marcum_q_inv",
    "marcum_q_inv_a",
    "marcum_q_inv_a_exp",
    "marcum_q_inv_exp",
    "ncx2_cdf",
    "ncx2_df",
    "ncx2_df_exp",
    "ncx2_df_sf",
    "ncx2_df_sf_exp",
    "ncx2_isf",
    "ncx2_isf_exp",
    "ncx2_logcdf",
    "ncx2_logpdf",
    "ncx2_logsf",
    "ncx2_nc",
    "ncx2_nc_exp",
    "ncx2_nc_sf",
    "ncx2_nc_sf_exp",
    "ncx2_pdf",
    "ncx2_ppf",
    "ncx2_ppf_exp",
    "ncx2_sf",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "normal_pdf",
    "one_step_sgd_beta",
    "one_step_sgd_power",
    "relaxed_alpha",
    "relaxed_beta",
    "threaded",
]

FloatArray = npt.NDArray[np.float64]


def _elementwise(
    kernel: Callable[[Any, Any, int], None], name: str, x: npt.ArrayLike
) -> FloatArray | float:
    values = np.asarray(x)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers, got an array of dtype {values.dtype}")
    values = np.asarray(values, dtype=np.float64, order="C")
    out = np.empty_like(values)
    kernel(
        ffi.from_buffer("double[]", values),
        ffi.from_buffer("double[]", out, require_writable=True),
        values.size,
    )
    return out if out.ndim else float(out)


@overload
def normal_pdf(x: float) -> float: ...
@overload
def normal_pdf(x: float | npt.ArrayLike) -> FloatArray | float: ...
def normal_pdf(x: float | npt.ArrayLike) -> FloatArray | float:
    """Density of the standard normal distribution.

    Parameters
    ----------
    x : array_like
        Any real numbers.

    Returns
    -------
    float or ndarray
        φ(x) = exp(−x²/2)/√(2π), rounded to a few units in the last place.

    Examples
    --------
    >>> normal_pdf(0.0)
    0.3989422804014327
    """
    if isinstance(x, float):
        return lib.pe_normal_pdf(x)
    return _elementwise(lib.pe_normal_pdf_array, "x", x)


@overload
def ndtr(x: float) -> float: ...
@overload
def ndtr(x: float | npt.ArrayLike) -> FloatArray | float: ...
def ndtr(x: float | npt.ArrayLike) -> FloatArray | float:
    """Distribution function of the standard normal distribution.

    Parameters
    ----------
    x : array_like
        Any real numbers.

    Returns
    -------
    float or ndarray
        Φ(x), rounded to a few units in the last place, also where it is below the smallest
        normal number.

    See Also
    --------
    log_ndtr : its logarithm, which does not underflow.
    ndtri : its inverse.

    Examples
    --------
    >>> ndtr(0.0)
    0.5
    >>> ndtr(-38.0)
    2.88542835e-316
    """
    if isinstance(x, float):
        return lib.pe_ndtr(x)
    return _elementwise(lib.pe_ndtr_array, "x", x)


@overload
def log_ndtr(x: float) -> float: ...
@overload
def log_ndtr(x: float | npt.ArrayLike) -> FloatArray | float: ...
def log_ndtr(x: float | npt.ArrayLike) -> FloatArray | float:
    """Logarithm of the distribution function of the standard normal distribution.

    Parameters
    ----------
    x : array_like
        Any real numbers.

    Returns
    -------
    float or ndarray
        log Φ(x), rounded to a few units in the last place in both tails.

    See Also
    --------
    ndtri_exp : its inverse.

    Examples
    --------
    >>> log_ndtr(0.0)
    -0.6931471805599453
    """
    if isinstance(x, float):
        return lib.pe_log_ndtr(x)
    return _elementwise(lib.pe_log_ndtr_array, "x", x)


@overload
def ndtri(p: float) -> float: ...
@overload
def ndtri(p: float | npt.ArrayLike) -> FloatArray | float: ...
def ndtri(p: float | npt.ArrayLike) -> FloatArray | float:
    """Quantile of the standard normal distribution.

    Parameters
    ----------
    p : array_like
        Probabilities in [0, 1].

    Returns
    -------
    float or ndarray
        The x with Φ(x) = p, rounded to a few units in the last place; NaN outside [0, 1].

    See Also
    --------
    ndtri_exp : the same from the logarithm of the probability.

    Examples
    --------
    >>> ndtri(0.5)
    0.0
    >>> ndtri(0.0)
    -inf
    """
    if isinstance(p, float):
        return lib.pe_ndtri(p)
    return _elementwise(lib.pe_ndtri_array, "p", p)


@overload
def ndtri_exp(y: float) -> float: ...
@overload
def ndtri_exp(y: float | npt.ArrayLike) -> FloatArray | float: ...
def ndtri_exp(y: float | npt.ArrayLike) -> FloatArray | float:
    """Quantile of the standard normal distribution from the logarithm of the probability.

    Parameters
    ----------
    y : array_like
        Logarithms of probabilities, y ≤ 0.

    Returns
    -------
    float or ndarray
        The x with log Φ(x) = y, rounded to a few units in the last place, from y = −1e308 to
        y = −5e−324; NaN for y > 0.

    See Also
    --------
    log_ndtr : its inverse.

    Examples
    --------
    >>> ndtri_exp(-1e300)
    -1.4142135623730951e+150
    """
    if isinstance(y, float):
        return lib.pe_ndtri_exp(y)
    return _elementwise(lib.pe_ndtri_exp_array, "y", y)


_BLOCK = 4096  # elements below which handing work to a thread costs more than it saves


def threaded(
    function: np.ufunc,
    *arguments: npt.ArrayLike,
    out: FloatArray | None = None,
    workers: int | None = None,
) -> FloatArray | float:
    """A ufunc of this module applied to large arrays on several cores.

    The kernels are serial and let go of the interpreter lock; this splits the broadcast arguments
    into contiguous parts and gives them to a thread pool that all calls share.  The result has the
    same bits as ``function(*arguments)``.

    Parameters
    ----------
    function : ufunc
        Any elementwise function with one result, such as `ncx2_cdf`.
    *arguments : array_like
        Its arguments, broadcast against each other.
    out : ndarray, optional
        Where to put the result; a float64 array of the broadcast shape.
    workers : int, optional
        Number of parts computed at the same time, at least 1; by default one per core.

    Returns
    -------
    float or ndarray
        What ``function(*arguments)`` returns.

    Raises
    ------
    ValueError
        If `workers` is below 1 or `out` has another shape or type than the result.

    Examples
    --------
    >>> x = np.linspace(0.0, 100.0, 5)
    >>> threaded(ncx2_cdf, x, 10.0, 30.0)
    array([0.        , 0.08984814, 0.80809496, 0.99436895, 0.99995634])
    """
    if not isinstance(function, np.ufunc):
        raise ValueError(f"function must be a NumPy ufunc, got {checks.shown(function)}")
    if workers is None:
        workers = os.cpu_count() or 1
    workers = checks.count("workers", workers, least=1)
    arrays = np.broadcast_arrays(*arguments)
    shape = arrays[0].shape
    if out is not None and (out.shape != shape or out.dtype != np.float64):
        raise ValueError(
            f"out must be a float64 array of shape {shape}, got {out.dtype} of shape {out.shape}"
        )
    size = arrays[0].size
    if workers == 1 or size < 2 * _BLOCK or not shape:
        result: FloatArray | float = function(*arguments, out=out)
        return result
    target = np.empty(shape) if out is None else out
    # Cut along the longest axis.
    axis = int(np.argmax(shape))
    parts = min(4 * workers, max(1, size // _BLOCK), shape[axis])
    edges = np.linspace(0, shape[axis], parts + 1).astype(int)
    views = [np.moveaxis(a, axis, 0) for a in (*arrays, target)]

    def run(first: int, last: int) -> None:
        *inputs, output = (v[first:last] for v in views)
        function(*inputs, out=output)

    # At most `workers` parts are under way: each worker takes the next part when it is done.
    jobs = pairwise(edges)
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                job = next(jobs, None)
            if job is None:
                return
            run(*job)

    pool = shared_pool()
    futures = [pool.submit(work) for _ in range(min(workers, parts) - 1)]
    work()
    for future in futures:
        future.result()
    return target
