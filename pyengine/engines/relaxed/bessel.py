"""Log of the confluent hypergeometric limit function: the likelihood ratio of a squared length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine import special
from pyengine.numerics import functions as fn

__all__ = ["log_0f1", "solve_log_0f1"]

FloatArray = npt.NDArray[np.float64]

NEAR = 4.0  # z/a up to which the series is summed


def log_0f1(a: float, z: FloatArray) -> FloatArray:
    """Log 0F1(; a; z) for a >= 1/2, z >= 0, accurate in relative terms.

    Near 0 by its series; further out as a difference of two logarithmic densities, noncentral over
    central chi-squared, which is by then large against the rounding of both.
    """
    result = np.empty_like(z)
    near = z <= NEAR * a
    if near.any():
        part = z[near]
        term = np.ones_like(part)
        total = np.zeros_like(part)
        for k in range(1, 200):
            term = term * part / (k * (a + k - 1.0))
            total += term
            if k % 8 == 0 and not np.any(term > 1e-18 * total):
                break
        result[near] = fn.log1p(total)
    far = ~near
    if far.any():
        # nc x / 4 = z; x = 2a + nc is where both densities are evaluated best
        part = z[far]
        half = np.sqrt(a * a + 4.0 * part) - a  # nc/1 of x = 2a + nc, nc x = 4 z
        x = 2.0 * a + half
        nc = 4.0 * part / x
        result[far] = (
            special.ncx2_logpdf(x, 2.0 * a, nc) - special.ncx2_logpdf(x, 2.0 * a, 0.0) + nc / 2.0
        )
    return result


def solve_log_0f1(a: float, w: FloatArray) -> FloatArray:
    """The z >= 0 with log 0F1(; a; z) = w, for w >= 0.

    The function is concave with slope 1/a at 0, so Newton's method from a w climbs to the root.
    """
    z = a * w
    for _ in range(100):
        value = log_0f1(a, z)
        slope = fn.exp(log_0f1(a + 1.0, z) - value) / a
        step = (w - value) / slope
        z = np.maximum(z + step, 0.0)
        if not np.any(np.abs(step) > 1e-9 * z):  # the error is now the square of that
            break
    return z
