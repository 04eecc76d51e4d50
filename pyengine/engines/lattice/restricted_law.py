"""Part of a step: the outcomes whose loss lies in an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pyengine.laws.base import Cells, CellsAlone, FloatArray, StepLaw

__all__ = ["RestrictedLaw", "is_small", "whole_of"]


@dataclass(frozen=True)
class RestrictedLaw(CellsAlone):
    """The pair (A, B) on the outcomes with low < L <= high: two measures of mass below 1.

    Parameters
    ----------
    law : StepLaw
        The whole step.
    low, high : float
        Ends of the interval, -inf and inf allowed; finite losses only.
    """

    law: StepLaw
    low: float
    high: float

    def support(self) -> tuple[float, float]:
        """Support of the whole, cut."""
        lowest, highest = self.law.support()
        return max(lowest, self.low), min(highest, self.high)

    def support_error(self) -> float:
        """That of the whole."""
        return self.law.support_error()

    def limits(self) -> tuple[float, float]:
        """Limits of the whole, cut."""
        lowest, highest = self.law.limits()
        return max(lowest, self.low), min(highest, self.high)

    def left_out(self) -> float:
        """That of the whole, at most."""
        return self.law.left_out()

    def infinite(self) -> tuple[float, float]:
        """None: masses at infinite losses belong to no interval."""
        return 0.0, 0.0

    def spacing(self) -> tuple[float, float] | None:
        """Lattice of the whole."""
        return self.law.spacing()

    def cells(self, edges: FloatArray) -> Cells:
        """Cells of the whole with the ends among the edges, without those beyond them.

        An edge's rounding depends on the edge alone, so that adjoining intervals share no outcome.
        """
        ends = np.array([x for x in (self.low, self.high) if math.isfinite(x)])
        inner = np.union1d(edges, ends)
        whole = self.law.cells(inner)
        left, right = np.append(-math.inf, inner), np.append(inner, math.inf)
        kept = np.flatnonzero((left >= self.low) & (right <= self.high))
        home = np.searchsorted(edges, right[kept])
        log_a, log_b = (np.full(edges.size + 1, -math.inf) for _ in range(2))
        error, ratio, finer = (np.zeros(edges.size + 1) for _ in range(3))
        log_a[home], log_b[home] = whole.log_a[kept], whole.log_b[kept]
        error[home], ratio[home] = whole.error[kept], whole.ratio_error[kept]
        finer[home] = whole.log_ratio[kept]
        shift = whole.shift[np.searchsorted(inner, edges)]
        for end, off in zip(ends, whole.shift[np.searchsorted(inner, ends)], strict=True):
            at = int(np.searchsorted(edges, end))
            beside = slice(max(at - 1, 0), at + 1)
            shift[beside] = np.maximum(shift[beside], off)
        return Cells(log_a, log_b, error, shift, ratio, finer)


def is_small(law: StepLaw) -> bool:
    """Whether a law is the part of a step above all cuts."""
    return isinstance(law, RestrictedLaw) and law.high == math.inf


def whole_of(law: StepLaw) -> StepLaw:
    """The step of which a law is a part, or the law itself."""
    return law.law if isinstance(law, RestrictedLaw) else law
