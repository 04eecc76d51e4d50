"""Questions on a law with proven masses above and below any threshold.

`pyengine.engines.exact.levels` bounds the trade-off function; its value is that of the chord
between the two tests with thresholds on both sides of a level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine._support.status import finished
from pyengine.engines.answers import Answer, ErrorCurve, Questions, names
from pyengine.engines.exact.levels import (
    ANSWERS,
    BELOW_DOUBLES,
    ROUNDING,
    SUBNORMAL,
    ComposedLaw,
    LevelQuestions,
    Parts,
    bounded,
)
from pyengine.engines.functionals import array
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import falling_bracket
from pyengine.numerics.rounding import UNIT

__all__ = ["ThresholdQuestions"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

LARGEST = 1.7976931348623157e308
FAR_APART = 64.0  # ratio of the distances of both ends of a bracket up to which it is narrowed
LARGEST_FACTOR = FAR_APART**8  # largest factor per step while one distance is 0
SMALLEST = 1e-290  # a distance below this counts as 0
Ends = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


class ThresholdQuestions(LevelQuestions):
    """All questions on one composed law."""

    def __init__(self, law: ComposedLaw, engine: str = "exact") -> None:
        self.law, self.engine, self.is_light = law, engine, law.is_light

    def beside(self, remove: ThresholdQuestions) -> Questions:
        """The hull, from the masses of both orders."""
        from pyengine.engines.exact.both import ExactBothOrders

        return ExactBothOrders(self, remove)

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """Errors at α = 1, and at 0, where γ is B's mass at loss inf; and the mask of these."""
        curve, none, shown = ErrorCurve.trivial(alpha), alpha == 0.0, self.shown
        curve.c = np.where(none, np.inf, -np.inf)
        if none.any() and shown > 0.0:
            end = self.law.support()[1]
            beyond = self.law.tails(np.array([end + 32.0 * UNIT * (1.0 + abs(end))]))
            error = float(beyond.error[0]) + 8.0 * UNIT
            hidden = 1.0 - shown if shown < 0.5 else float(beyond.b_below[0])
            for answer, mass in ((curve.beta, hidden), (curve.gamma, shown)):
                value = np.array([mass])
                off = (error * value + SUBNORMAL) * self.law.meets
                answer.put(none, bounded((value, value - off, value + off), 0.0, 1.0, self.engine))
        return curve, none | (alpha == 1.0)

    def _found(self, alpha: FloatArray) -> tuple[Parts, Parts, FloatArray]:
        """β and γ by formulas, or from two tests on both sides of each level."""
        known = self.law.formulas(alpha)
        if known is not None:
            return known
        out, level, tests = (
            np.empty((ANSWERS, alpha.size)),
            np.ascontiguousarray(alpha),
            self.law.tests,
        )
        at, low, high = map(array, (level, *self.law.expected(level)))
        room = array(out.reshape(-1), writable=True)
        status = lib.pe_tests_errors(
            tests.core, level.size, at, low, high, ROUNDING, self.shown, room
        )
        finished(status, "tests at levels")
        return (out[0], out[1], out[2]), (out[3], out[4], out[5]), out[6]

    @property
    def shown(self) -> float:
        """B's mass at loss inf, where A has none."""
        return self.law.infinite()[1]

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        value, left, error = self._profile(epsilon)
        answer = Answer.around(
            value, error + 1.01 * np.abs(left), names(self.engine, value.size), True
        )
        # round outwards: the error may be far below the last place of the sum
        rounded = (error > 0.0) | (left != 0.0)
        answer.lower = np.where(rounded, np.nextafter(answer.lower, 0.0), answer.lower)
        answer.upper = np.where(rounded, np.nextafter(answer.upper, 2.0), answer.upper)
        np.clip(answer.lower, 0.0, 1.0, out=answer.lower)
        np.clip(answer.upper, 0.0, 1.0, out=answer.upper)
        # if the lower bound is 0, the upper bound is the safe value
        unknown = (answer.lower == 0.0) & (answer.upper > BELOW_DOUBLES)
        answer.value = np.where(unknown, answer.upper, np.minimum(value, 1.0))
        return answer

    def _profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Profile as a sum of two doubles, and its absolute error; ε may be infinite."""
        lost, low, lost_error = self.law.alone()
        inner, error = np.zeros(epsilon.size), np.zeros(epsilon.size)
        finite = np.isfinite(epsilon)
        if finite.any():
            inner[finite], error[finite] = self.law.profile(epsilon[finite])
        value = inner + lost
        part = value - inner
        left = ((inner - (value - part)) + (lost - part)) + low
        return value, left, error + lost_error + 2.0**-105 * lost * (low != 0.0)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ.

        Brackets are first narrowed geometrically, then by interpolation.
        """
        size = delta.size
        if not size:
            return Answer.exact(np.zeros(0))
        # bounds of the largest ε, and the ε from which on no mass is left in doubles
        most, least = (max(0.0 - x, 0.0) for x in self.law.lowest())
        end = min(max(-self.law.support()[0], 0.0) * (1.0 + 4.0 * UNIT), LARGEST)
        # for the lower bound of the profile, its value and its upper bound, all at once
        slack, last = (np.repeat(x, size) for x in ((-1.0, 0.0, 1.0), (min(least, end), end, most)))
        levels = np.tile(delta, 3)

        def excess(epsilon: FloatArray, some: npt.NDArray[Any]) -> FloatArray:
            """Log of profile over δ: > 0 if and only if the profile is above δ < 1.

            Below δ it is the tangent of the log, as profiles fall to 0 linearly.
            """
            value, left, error = self._profile(epsilon)
            # near δ the first difference is exact
            over = (value - levels[some]) + (left + slack[some] * error)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                part = over / levels[some]
                log = np.where(part > 0.0, fn.log1p(part), np.maximum(part, -1.0))
            log = np.where((over > 0.0) & ~(log > 0.0), BELOW_DOUBLES, log)  # δ = 0, or underflow
            below = (over <= 0.0) | (levels[some] >= 1.0)
            log = np.where(below, np.minimum(log, -(UNIT**4)), log)
            # NaN: the lower bound of the profile is 0, and the upper one is 1
            return np.where(np.isnan(over) & ~below, np.where(slack[some] < 0.0, -1.0, 1.0), log)

        low, high = np.zeros(3 * size), np.full(3 * size, end)
        ends = np.repeat([0.0, end, np.inf], 3 * size)
        at_low, at_high, at_none = excess(ends, np.tile(np.arange(3 * size), 3)).reshape(3, -1)
        never, beyond = at_none > 0.0, at_high > 0.0
        high[at_low < 0.0] = 0.0
        # answers that follow from the profile at the ends
        known = never | beyond | ((levels == 0.0) & (self.law.infinite()[0] == 0.0))
        high[known] = low[known]
        low, high, at_low, at_high = _narrowed(excess, (low, high, at_low, at_high), end)
        near = high > low
        if near.any():
            low[near], high[near] = falling_bracket(
                lambda epsilon: excess(epsilon, near),
                low[near],
                high[near],
                (at_low[near], at_high[near]),
            )
        high = np.where(never, np.inf, np.where(beyond, last, high))
        parts = high.reshape(3, size)
        least_of_all = np.where(near, low, high).reshape(3, size)[0]
        lower = np.maximum(least_of_all * (1.0 - 4.0 * UNIT), 0.0)
        found = Answer(
            parts[1], lower, np.maximum(parts[2], parts[1]), names(self.engine, size), True
        )
        # if ε may be infinite, that is the safe value
        found.value[found.upper == np.inf] = np.inf
        if self.law.infinite()[0] == 0.0:  # δ = 0 has the largest ε
            none = delta == 0.0
            found.lower[none], found.upper[none] = least, most
            found.value[none] = most if most == np.inf else min(max(end, least), most) + 0.0
        return found


def _narrowed(
    function: Callable[[FloatArray, BoolArray], FloatArray],
    bracket: Ends,
    end: float,
) -> Ends:
    """Narrow brackets until both ends have similar distances from 0, and from ``end``.

    Profiles of bounded losses are linear in ε next to 0 and next to the largest ε, so a root may be
    close to either, and bisection would take a step per leading zero or nine of it.  ``function``
    takes points and the mask of the brackets that they belong to.  A bracket is a lower and an
    upper end in [0, ``end``] and the values there, > 0 and <= 0; if both ends are equal, it stays.
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
