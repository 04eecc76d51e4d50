"""Functionals on vertical lines, refined until they agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from contour_truths import LEAST_LOG

__all__ = ["CHOICES", "LOOSE", "Line"]

STILL = 1e-15  # relative change that the last refinement may make
ROUNDINGS = 4.0  # largest error of the sum of the terms of log M, in their units
LOOSE = 2e-14  # the same where large numbers of steps prevent smaller changes
# parts of natural spacings in z and in t, how far nodes reach, and how far the transform falls
CHOICES = (
    (1.5, 1.0, 11.0, 44.0),
    (1.1, 0.8, 11.7, 47.0),
    (0.8, 0.6, 12.2, 50.0),
    (0.55, 0.42, 12.6, 52.0),
    (0.35, 0.25, 13.0, 53.0),
)


class Line:
    """Functionals on the vertical line through a tilt; each kind has its own nodes.

    ``rounding`` is about the effect of millions of steps on the rounding of one, which no
    refinement shows.
    """

    rounding = 0.0

    def moments(self) -> tuple[float, float, float] | None:
        """Mean and deviation of the tilted sum, and K(λ) - λ mean: about the log of A's mass."""
        raise NotImplementedError

    def inverted(
        self, choice: tuple[float, float, float, float], c: npt.NDArray[np.float64]
    ) -> Any | None:
        """Logs of both masses and of the profile by one choice of spacings and ends."""
        raise NotImplementedError

    def logs(self, c: npt.NDArray[np.float64]) -> tuple[Any, float] | None:
        """Logs of both masses and of the profile, shape (n, 3), and their errors."""
        last, best, least = None, None, LOOSE
        self.moments()
        for choice in CHOICES:
            out = self.inverted(choice, c)
            if out is None or not np.isfinite(out).all():
                break
            if last is not None:
                # values far below all that are asked count as 0 in every truth
                off = float(np.abs(np.where(out > 2.0 * LEAST_LOG, out - last, 0.0)).max())
                if off <= least:
                    best, least = out, off
                if off <= STILL:
                    break
            last = out
        return None if best is None else (best, max(least, STILL) + ROUNDINGS * self.rounding)
