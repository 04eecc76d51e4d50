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

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import ErrorCurve, Judged
from pyengine.engines.curves import larger, smaller
from pyengine.engines.exact.levels import (
    ERRORS,
    ComposedLaw,
    LevelQuestions,
    Parts,
    Tails,
    Thresholds,
    between,
    chord,
    reach_of,
    tangents,
    thresholds,
)
from pyengine.engines.hull import BothOrders
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["ExactBothOrders", "hull"]

FloatArray = npt.NDArray[np.float64]

ASIDE = 4.0  # steps to the thresholds on both sides of one, in reaches: an atom is on one side


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
        first, second = (law.tails(c) for law in self._laws)
        better = _is_lower(second, first, c)
        return Tails(*(np.where(better, y, x) for x, y in zip(first, second, strict=True)))


def _is_lower(one: Tails, other: Tails, c: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether a line of slope e^c is below another one, from the tail that has the digits."""
    weight = fn.exp(-np.abs(c))
    gains = [
        np.where(c < 0.0, weight * x.a_below - x.b_below, weight * x.b_above - x.a_above)
        for x in (one, other)
    ]
    # where e^|c| is beyond all doubles, the heavier mass that only one law shows
    alone = np.where(c < 0.0, one.a_below > other.a_below, one.b_above > other.b_above)
    return np.where(gains[0] == gains[1], alone, gains[0] > gains[1])


Points = Callable[[Thresholds, FloatArray], tuple[FloatArray, Tails]]


def hull(
    add: ComposedLaw,
    remove: ComposedLaw,
    alpha: FloatArray,
    find: Points = thresholds,
) -> tuple[Parts, Parts]:
    """Return proven bounds of β and γ of the hull of two laws, one the reverse of the other.

    Levels lie in (0, 1]; ``find`` finds thresholds on both sides of each, as `thresholds` does.
    """
    c, points = find(_BetterOrder(add, remove), alpha)
    beta, gamma, _ = between(points, alpha)
    beta_upper, gamma_lower = chord(points, alpha)
    # atoms are on one side of a threshold: thresholds beside it see them from the other one
    aside = ASIDE * (reach_of(points, c) + UNIT * np.abs(c))
    c = np.concatenate([c - aside, c, c + aside])
    seen = [Tails(*(x.reshape(c.shape) for x in law.tails(c.ravel()))) for law in (add, remove)]
    reach = np.maximum(*(reach_of(tails, c) for tails in seen))
    lines = [tangents(tails, c, alpha, reach) for tails in seen]
    beta_lower = np.minimum(*(line[0] for line in lines)).max(axis=0)
    gamma_upper = np.maximum(*(line[1] for line in lines)).min(axis=0)
    slack = 2.0 * UNIT
    of_beta = (
        beta,
        np.maximum(beta_lower, 1.0 - gamma_upper - slack),
        np.minimum(beta_upper, 1.0 - gamma_lower + slack),
    )
    of_gamma = (
        gamma,
        np.maximum(gamma_lower, 1.0 - beta_upper - slack),
        np.minimum(gamma_upper, 1.0 - beta_lower + slack),
    )
    return of_beta, of_gamma


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

    def _found(self, alpha: FloatArray) -> tuple[Parts, Parts, FloatArray]:
        """By the events of the better order."""
        return *hull(self._add.law, self._remove.law, alpha), np.empty(0)

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number."""
        if self._is_one_law and name in ERRORS:
            found: Judged = self._add.one(name, x)
            return found
        return super().one(name, x)
