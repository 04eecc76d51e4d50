"""The logarithm of a sampled likelihood ratio, log(1 - p + p e^l)."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal, log_of_rest

__all__ = ["Share", "sampled_loss", "share_of"]

FloatArray = npt.NDArray[np.float64]


class Share(NamedTuple):
    """Doubles next to p and 1 - p for an exact p in (0, 1), and next to their logarithms.

    Each is rounded from its exact value: 1 - p of a rounded p near 1 would have no digits.
    """

    p: float
    rest: float
    log_p: float
    log_rest: float
    log_rest_low: float  # log(1 - p) is the sum of both


@kept(1024)
def share_of(probability: float | Fraction) -> Share:
    """Return the doubles of a sampling probability in (0, 1), which may be an exact number."""
    p = Fraction(probability)
    log_rest, low = log_of_rest(p)
    return Share(float(p), float(1 - p), float(CONTEXT.ln(as_decimal(p))), log_rest, low)


def sampled_loss(probability: float | Fraction, loss: npt.ArrayLike) -> FloatArray:
    """Return log(1 - p + p e^loss), for p in (0, 1), without overflow or cancellation.

    The relative error is below 24 units, plus the error of the loss times the slope of the map.
    """
    p, rest, *_ = share_of(probability)
    loss = np.asarray(loss, dtype=np.float64)
    with np.errstate(over="ignore"):
        change = p * fn.expm1(np.minimum(loss, 700.0))
        found = fn.log1p(np.maximum(change, -0.5))
        if (change < -0.5).any():  # where p is above 1/2: both terms are positive
            low = fn.log(rest + p * fn.exp(np.minimum(loss, 0.0)))
            found = np.where(change < -0.5, low, found)
        if (loss > 700.0).any():
            far = np.maximum(loss, 0.0) + fn.log(p + rest * fn.exp(-np.maximum(loss, 0.0)))
            found = np.where(loss > 700.0, far, found)
    return np.asarray(found)
