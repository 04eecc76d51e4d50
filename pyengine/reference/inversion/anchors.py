"""Thresholds for which contours are made, so that neighbouring questions share a transform.

A contour serves thresholds around the one that it was made for.  If that were the threshold asked
first, answers would depend on earlier questions.  So the law alone divides the thresholds into
cells, and each cell has one threshold for which its contour is made: its anchor.
"""

from __future__ import annotations

import math

from pyengine.reference.cumulants import Cumulants
from pyengine.reference.recent import Recent

__all__ = ["Anchors"]

WIDTH = 10.0  # of a cell, in the exponent of Chernoff's bound
ORDINARY = 4  # cells on either side of the mean; farther out there are none
RATIO = 1.6  # largest ratio of the ends of a cell, as distances from the least loss, if narrow
SHARE = 0.65  # place of the anchor in a cell: a contour loses more accuracy outwards than inwards
MOST_KEPT = 16  # ends of cells


class Anchors:
    """Cells of the thresholds of a law and their anchors, by its cumulants in double precision.

    ``narrow``: whether a contour serves only thresholds of a bounded ratio, as a hyperbola does.
    """

    def __init__(self, cumulants: Cumulants, *, narrow: bool) -> None:
        self._cumulants, self._narrow = cumulants, narrow
        self._ends: Recent[tuple[float, float]] = Recent(MOST_KEPT)

    def of(self, threshold: float) -> float | None:
        """Return the anchor for a threshold of the sum of Y; None in the far tails."""
        exponent = self._cumulants.exponent(self._cumulants.saddle(threshold))
        index = math.floor(exponent / WIDTH)
        if not -ORDINARY <= index < ORDINARY:
            return None
        low, high = self._ends.get(index, lambda: self._between(index))
        if not low <= threshold < high:  # rounding, at an end of the cell
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
        """Return the ends of the cell of an index: thresholds."""
        cumulants = self._cumulants
        low, high = (
            cumulants.mean_variance(cumulants.tilt_of((index + k) * WIDTH))[0] for k in (0, 1)
        )
        return low, high
