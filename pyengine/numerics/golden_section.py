"""Minima of unimodal functions, by golden section."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["lowest"]

FloatArray = npt.NDArray[np.float64]

RATIO = 0.5 * (5.0**0.5 - 1.0)


def lowest(
    function: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    *,
    rounds: int,
    on_plateau: Callable[[FloatArray], Any] | None = None,
    is_close: Callable[[FloatArray, FloatArray], Any] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the minima of unimodal functions, and the values there, by golden section.

    Each round evaluates one point and shrinks the interval by 0.618, until ``is_close`` holds for
    all.  ``on_plateau`` says whether to go left from the left one of two points of equal value.  A
    minimum is found to about half of the digits, its value to nearly all.

    J. Kiefer, Sequential minimax search for a maximum (1953).
    """
    x, y = high - RATIO * (high - low), low + RATIO * (high - low)
    f, g = function(x), function(y)
    for _ in range(rounds):
        if is_close is not None and np.all(is_close(low, high)):
            break
        left = f <= g if on_plateau is None else (f < g) | ((f == g) & on_plateau(x))
        low, high = np.where(left, low, x), np.where(left, y, high)
        probe = np.where(left, high - RATIO * (high - low), low + RATIO * (high - low))
        x, y = np.where(left, probe, y), np.where(left, x, probe)
        value = function(probe)
        f, g = np.where(left, value, g), np.where(left, f, value)
    return np.asarray(np.where(f <= g, x, y)), np.asarray(np.minimum(f, g))
