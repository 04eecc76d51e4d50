"""The hull of both orders of a pair with known tail masses, from the best test of each slope.

The hull is the supremum of all lines below both trade-off functions.  At α it is the maximum over c
of min(K₁(c), K₂(c)) - e^c α, where K_i(c) is the minimum of B_i(not E) + e^c A_i(E) over events E,
attained by {loss > c}.  That is concave in e^c, and its derivative is A_i(loss > c) - α for the
order i with the smaller K_i.  So the threshold is found as for one order, with the events of that
order.  Two tests with levels on both sides of α give a chord as upper bound and lines as lower
bound.  All sums have positive terms, so small errors keep their digits (docs/theory/finite).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine._support.status import finished
from pyengine.engines.answers import ErrorCurve, Judged
from pyengine.engines.curves import larger, smaller
from pyengine.engines.exact.levels import (
    ERRORS,
    ROUNDING,
    ComposedLaw,
    LevelQuestions,
    Parts,
    Tails,
    brackets,
    everywhere,
)
from pyengine.engines.functionals import array
from pyengine.engines.hull import BothOrders

__all__ = ["ExactBothOrders"]

FloatArray = npt.NDArray[np.float64]


class _BetterOrder:
    """At each threshold c, the event of the order with the smaller K_i(c)."""

    def __init__(self, add: ComposedLaw, remove: ComposedLaw) -> None:
        self._laws = (add, remove)

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss of both."""
        lows, highs = zip(*(law.support() for law in self._laws), strict=True)
        return min(lows), max(highs)

    def tails(self, c: FloatArray) -> Tails:
        """Masses of the better event at threshold c, and of its complement."""
        first, second = (np.concatenate(law.tails(c)) for law in self._laws)
        found, c = np.empty((len(Tails._fields), c.size)), np.ascontiguousarray(c)
        out = array(found.reshape(-1), writable=True)
        lib.pe_level_better(c.size, array(c), array(first), array(second), out)
        return Tails(*found)


class ExactBothOrders(LevelQuestions, BothOrders):
    """Questions on both orders of a composition: adjacency ``add_remove``."""

    _add: Any
    _remove: Any

    def __init__(self, add: Any, remove: Any) -> None:
        BothOrders.__init__(self, add, remove)
        self.engine, self.is_light = add.engine, add.is_light and remove.is_light
        # a symmetric law is one object for both orders
        self._is_one_law = add.law is remove.law

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, npt.NDArray[np.bool_]] | None:
        """Errors at α = 0 and 1, where the hull needs no threshold."""
        if self._is_one_law:
            return super()._settled(alpha)
        curve, alone = ErrorCurve.trivial(alpha), self._is_alone(alpha)
        if alone.any():
            first, second = (pair.trade_off(alpha[alone]) for pair in (self._add, self._remove))
            curve.beta.put(alone, smaller(first.beta, second.beta))
            curve.gamma.put(alone, larger(first.gamma, second.gamma))
        return curve, alone | (alpha >= 1.0)

    def _is_alone(self, alpha: FloatArray) -> npt.NDArray[np.bool_]:
        """Where the level is 0: only outcomes impossible under A are rejected."""
        return np.asarray(alpha == 0.0)

    def _is_inside(self, level: float) -> bool:
        return super()._is_inside(level) and not self._is_one_law

    def _expected(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Brackets of the thresholds at which the A-mass of the better event falls to α."""
        laws = self._add.law, self._remove.law
        better = _BetterOrder(*laws)
        is_narrowed = all(law.is_narrowed for law in laws)
        return everywhere(better, alpha) if is_narrowed else brackets(better, alpha)

    def _found(self, alpha: FloatArray) -> tuple[Parts, Parts, FloatArray]:
        """Errors at levels inside, from the events of the better order."""
        found, level = np.empty((2, 3, alpha.size)), np.ascontiguousarray(alpha)
        add, remove = (order.law.tests for order in (self._add, self._remove))
        at, low, high = map(array, (level, *self._expected(level)))
        room = array(found.reshape(-1), writable=True)
        status = lib.pe_tests_hull(add.core, remove.core, level.size, at, low, high, ROUNDING, room)
        finished(status, "tests of both orders")
        beta, gamma = ((x[0], x[1], x[2]) for x in found)
        return beta, gamma, np.empty(0)

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number."""
        if self._is_one_law and name in ERRORS:
            found: Judged = self._add.one(name, x)
            return found
        return super().one(name, x)
