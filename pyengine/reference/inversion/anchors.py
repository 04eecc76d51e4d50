"""Thresholds for which contours are made, so that neighbouring questions share a transform.

A contour serves thresholds around the one that it was made for.  Were that the one that happened to
be asked first, the error of an answer would depend on what came before it.  So the line of
thresholds is cut into cells, by the law alone, and each cell has one threshold: its anchor.
"""

from __future__ import annotations

import math

from pyengine.reference.cumulants import Cumulants
from pyengine.reference.recent import Recent

__all__ = ["Anchors"]

WIDTH = 10.0  # of a cell, in the exponent of Chernoff's bound
ORDINARY = 4  # cells on either side of the mean; tails beyond have few neighbours
RATIO = 1.6  # of the ends of a cell, as distances from the least loss, for a hyperbola
SHARE = 0.65  # where in a cell the anchor lies: a contour loses more outwards than inwards
MOST_KEPT = 16


class Anchors:
    """Cells of the thresholds of a law and their anchors, by its cumulants in double precision.

    ``narrow``: whether contours serve a bounded ratio of thresholds only, as hyperbolas do.
    """

    def __init__(self, cumulants: Cumulants, *, narrow: bool) -> None:
        self._cumulants, self._narrow = cumulants, narrow
        self._ends: Recent[tuple[float, float]] = Recent(MOST_KEPT)

    def of(self, threshold: float) -> float | None:
        """Return the anchor of the cell of a threshold of the sum of Y; None far in the tails."""
        exponent = self._cumulants.exponent(self._cumulants.saddle(threshold))
        index = math.floor(exponent / WIDTH)
        if not -ORDINARY <= index < ORDINARY:
            return None
        low, high = self._ends.get(index, lambda: self._between(index))
        if not low <= threshold < high:  # by rounding, at an end
            return None
        if self._narrow:
            if not low > 0:
                return None
            parts = math.ceil(math.log(high / low) / math.log(RATIO))
            part = math.floor(parts * math.log(threshold / low) / math.log(high / low))
            low, high = (low * (high / low) ** ((part + k) / parts) for k in (0, 1))
        share = SHARE if index >= 0 else 1 - SHARE
        return low + share * (high - low)

    def _between(self, index: int) -> tuple[float, float]:
        """Return the ends of a cell."""
        cumulants = self._cumulants
        low, high = (
            cumulants.mean_variance(cumulants.tilt_of((index + k) * WIDTH))[0] for k in (0, 1)
        )
        return low, high
