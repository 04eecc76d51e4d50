"""Special functions, accurate in relative terms over the whole range of double precision.

Every function broadcasts like a NumPy function and returns a Python float for a scalar.  NaN in
gives NaN out, and so does an argument outside the domain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib

__all__ = ["log_ndtr", "ndtr", "ndtri", "ndtri_exp", "normal_pdf"]

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
    if isinstance(x, (float, int)):
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
    if isinstance(x, (float, int)):
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
    if isinstance(x, (float, int)):
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
    if isinstance(p, (float, int)):
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
    if isinstance(y, (float, int)):
        return lib.pe_ndtri_exp(y)
    return _elementwise(lib.pe_ndtri_exp_array, "y", y)
