"""Products of bounds with exponentials, also below the normal range of doubles.

An exponential below the normal range has few digits or none, even if it is multiplied by a large
factor.  So it is applied as a square, and the product is rounded outwards.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine.numerics import functions as fn

__all__ = ["lower_times_exp", "upper_times_exp"]

FloatArray = npt.NDArray[np.float64]

NORMAL = (
    700.0  # exponents of this size are of normal doubles, and so is half of twice as large ones
)
LOST = 1e-323  # two units of the subnormal doubles: the rounding of both products


def lower_times_exp(x: FloatArray, exponent: float) -> FloatArray:
    """Lower bounds of x e^exponent, x >= 0, up to the relative rounding of exponentials.

    The exponent is capped at 700, which only lowers them.
    """
    if exponent >= -NORMAL:
        return np.asarray(x * fn.exp(min(exponent, NORMAL)))
    if exponent < -2.0 * NORMAL:
        return np.zeros(x.shape)
    half = fn.exp(0.5 * exponent)
    return np.asarray(np.maximum((x * half) * half - LOST, 0.0))


def upper_times_exp(x: FloatArray, exponent: float) -> FloatArray:
    """Upper bounds of x e^exponent, x >= 0, up to the relative rounding of exponentials.

    Infinite if the exponent is above 700, and for an infinite x times 0.
    """
    if exponent > NORMAL:
        return np.full(x.shape, math.inf)
    if exponent >= -NORMAL:
        raised = x * fn.exp(exponent)
    else:
        half = fn.exp(0.5 * max(exponent, -2.0 * NORMAL))
        raised = (x * half) * half + LOST
    return np.where(np.isnan(raised), math.inf, raised)
