"""The hull of both orders where masses are known, from the best test of each slope.

The hull is the largest of all lines below both functions: its value at α is the maximum over c of
min(K₁(c), K₂(c)) - e^c α, where K_i(c) is the smallest sum of B's mass off an event and e^c times
A's mass on it, and the event that attains it is {loss > c}.  That is concave in e^c, and its slope
is the A-mass of the better order's event less α.  So the threshold is found as for one order, with
the events of whichever order has the lower line: the points on both sides of α are two tests, and
what lies between them is bounded by their chord from above and by lines below both functions from
below.  All sums have positive terms, so that the digits of small errors are kept
(docs/theory/finite).
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
)
from pyengine.engines.functionals import array
from pyengine.engines.hull import BothOrders

__all__ = ["ExactBothOrders"]

FloatArray = npt.NDArray[np.float64]


class _BetterOrder:
    """The events of the order whose line of a slope is the lower one."""

    def __init__(self, add: ComposedLaw, remove: ComposedLaw) -> None:
        self._laws = (add, remove)

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss of both."""
        lows, highs = zip(*(law.support() for law in self._laws), strict=True)
        return min(lows), max(highs)

    @property
    def losses(self) -> FloatArray | None:
        """Those of both; the better order may change between them as well."""
        first, second = (law.losses for law in self._laws)
        return None if first is None or second is None else np.union1d(first, second)

    def tails(self, c: FloatArray) -> Tails:
        """Masses of the better event of threshold c, and its complement."""
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
        self.engine = add.engine
        # a law that is its own mirror image is kept once
        self._is_one_law = add.law is remove.law

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, npt.NDArray[np.bool_]] | None:
        """Where only one law of a pair shows something, and at 1."""
        if self._is_one_law:
            return super()._settled(alpha)
        curve, alone = ErrorCurve.trivial(alpha), self._is_alone(alpha)
        if alone.any():
            first, second = (pair.trade_off(alpha[alone]) for pair in (self._add, self._remove))
            curve.beta.put(alone, smaller(first.beta, second.beta))
            curve.gamma.put(alone, larger(first.gamma, second.gamma))
        return curve, alone | (alpha >= 1.0)

    def _is_alone(self, alpha: FloatArray) -> npt.NDArray[np.bool_]:
        """Levels of what only one law of a pair shows."""
        return np.asarray(alpha == 0.0)

    def _is_inside(self, level: float) -> bool:
        return super()._is_inside(level) and not self._is_one_law

    def _expected(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Brackets of the thresholds at which A's mass of the better event falls to α."""
        return brackets(_BetterOrder(self._add.law, self._remove.law), alpha)

    def _found(self, alpha: FloatArray) -> tuple[Parts, Parts, FloatArray]:
        """By the events of the better order."""
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
