"""Questions on a law with proven masses above and below any threshold.

`pyengine.engines.exact.levels` bounds the trade-off function; its value is that of the chord
between the two tests with thresholds on both sides of a level.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine._support.caches import cached_property
from pyengine._support.status import finished
from pyengine.engines.answers import Answer, ErrorCurve, Questions, names
from pyengine.engines.exact.levels import (
    ANSWERS,
    ROUNDING,
    SUBNORMAL,
    ComposedLaw,
    LawProfile,
    LevelQuestions,
    Parts,
    bounded,
)
from pyengine.engines.functionals import array
from pyengine.numerics.rounding import UNIT

__all__ = ["ThresholdQuestions"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


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
        return self._answer(self._profile.deltas(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        return self._answer(self._profile.epsilons(delta))

    def _answer(self, found: Parts) -> Answer:
        return Answer(*found, names(self.engine, found[0].size), True)

    @cached_property
    def _profile(self) -> LawProfile:
        return LawProfile(self.law)
