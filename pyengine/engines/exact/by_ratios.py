"""Brackets of a falling function's root, narrowed by ratios of the distances from both ends.

Profiles of bounded losses fall in straight lines next to the largest ε and hardly at all next to no
ε, so that halving would take as many evaluations as a root has leading zeros, or nines.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["Bracket", "narrowed"]

FloatArray = npt.NDArray[np.float64]
Bracket = tuple[FloatArray, FloatArray, FloatArray, FloatArray]

FAR_APART = 64.0  # distances from an end whose ratio is narrowed
LARGEST_FACTOR = FAR_APART**8  # by which a bracket that reaches an end is narrowed at once
SMALLEST = 1e-290  # a distance below this is as good as 0


def narrowed(
    function: Callable[[FloatArray, npt.NDArray[np.bool_]], FloatArray],
    bracket: Bracket,
    end: float,
) -> Bracket:
    """Return brackets whose ends have like distances from 0, and like ones from the largest place.

    The function is asked at places with a mask of the functions that they are for.  Brackets are
    lower and upper ends in [0, ``end``] and the values there, > 0 and not; those of which both ends
    are the same stay as they are.
    """
    low, high, at_low, at_high = (x.copy() for x in bracket)
    for is_last in (False, True):
        factor = np.full(low.size, FAR_APART)
        while True:
            # distances from the end that they are narrowed from
            small, large = (end - high, end - low) if is_last else (low, high)
            apart = np.where(small > 0.0, np.sqrt(small) * np.sqrt(large), large / factor)
            middle = end - apart if is_last else apart
            far = (large > np.maximum(FAR_APART * small, SMALLEST)) & (low < middle)
            far &= middle < high
            if not far.any():
                break
            value = function(middle[far], far)
            above = value > 0.0
            for ends, values, moved in ((low, at_low, above), (high, at_high, ~above)):
                at = np.flatnonzero(far)[moved]
                ends[at], values[at] = middle[at], value[moved]
            factor = np.minimum(factor * factor, LARGEST_FACTOR)
    return low, high, at_low, at_high
