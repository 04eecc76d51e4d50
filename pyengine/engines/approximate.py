"""Common parts of the approximations: warnings, intervals, and both orders of a pair."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.answers import (
    EPSILON,
    PROFILE,
    TRADE_OFF,
    Answer,
    ErrorCurve,
    Found,
    LawQuestion,
    Questions,
    complement_above,
    names,
)
from pyengine.engines.curves import NothingReleased
from pyengine.engines.hull import BothOrders
from pyengine.engines.loss_quadrature import parts
from pyengine.errors import AccuracyError, ApproximationWarning
from pyengine.mechanisms import Mechanism, steps_of
from pyengine.numerics.bracketing import inverse_profile

__all__ = [
    "ApproximatePair",
    "BesideTruth",
    "curve_of",
    "in_orders",
    "warn_where",
]

FloatArray = npt.NDArray[np.float64]

DOUBTFUL = 0.1  # relative error above which an approximation warns


class BesideTruth(Questions):
    """Values of an approximation, with bounds that contain them and the true interval."""

    def __init__(self, found: Questions, method: str, make_truth: Callable[[], Questions]) -> None:
        self._found, self._method, self._make_truth = found, method, make_truth

    @cached_property
    def _truth(self) -> Questions:
        return self._make_truth()

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """The values, with a warning if they are far from the truth."""
        found = question(self._found, x)
        try:
            found = found.each(self._holding, question(self._truth, x))
        except AccuracyError:
            if x.size > 1:  # the truth may be known for single arguments
                for here in np.eye(x.size, dtype=np.bool_):
                    found.put(here, self.ask(question, x[here]))
                return found
            found = found.each(self._holding, _possible(question, x))
        answers = list(found.parts().values())
        with np.errstate(invalid="ignore"):
            rows = np.array([(answer.value, answer.upper - answer.lower) for answer in answers])
        # judge the smaller of β and γ, as the other one lacks its digits; NaN is ∞ - ∞
        value, width = np.take_along_axis(rows, rows[:, :1].argmin(axis=0)[None], axis=0)[0]
        warn_where(value, np.where(np.isnan(width), 0.0, width), self._method)
        return found

    def _holding(self, answers: Sequence[Answer], falls: bool) -> Answer:
        """The value of the first answer, with the bounds of the second, widened to contain it."""
        del falls
        value, truth = answers[0].value, answers[1]
        low, high = np.minimum(value, truth.lower), np.maximum(value, truth.upper)
        return Answer(value, low, high, names(self._method, value.size))


def _possible(question: LawQuestion[Found], x: FloatArray) -> Found:
    """The trivial bounds."""
    least = x if question is TRADE_OFF else 0.0 * x
    most = np.full(x.size, np.inf if question is EPSILON else 1.0)

    def widest(answers: Sequence[Answer], falls: bool) -> Answer:
        low, high = (0.0 * x, complement_above(x)) if falls else (least, most)
        return Answer(high, low, high, answers[0].engine)

    return question.nothing(x).each(widest)


class ApproximatePair(Questions):
    """Questions on one ordered pair, answered by an approximation.

    The profile is 0 from the ε `largest` on.  Approximations with an error estimate override
    `interval`.
    """

    name: ClassVar[str]
    largest: float

    def middle(self) -> tuple[float, float]:
        """A(S > 0) and B(S <= 0): the point (α, β) of slope -1."""
        raise NotImplementedError

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """Approximation of A(S <= -ε) - e^ε B(S <= -ε)."""
        raise NotImplementedError

    def interval(
        self, question: LawQuestion[Any], x: FloatArray, value: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Estimated interval of the profile, or of ε; read-only."""
        del question, x
        return value, value

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, npt.NDArray[np.bool_]]:
        """The trivial errors at α = 0 and 1."""
        return ErrorCurve.trivial(alpha), (alpha == 0.0) | (alpha == 1.0)

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """Profiles and ε with their intervals, and a warning where these are wide."""
        is_profile = question is PROFILE
        value = self.delta(x) if is_profile else inverse_profile(self.delta, x, self.largest)
        lower, upper = self.interval(question, x, value)
        with np.errstate(invalid="ignore"):
            reach = np.maximum(upper - value, value - lower)
        warn_where(value, np.where(lower == upper, 0.0, reach), self.name)
        return question.made(
            Answer(value, lower.copy(), upper.copy(), names(self.name, value.size))
        )


class _JoinedOrders(BothOrders):
    """Adjacency ``add_remove``: T_add, its tangent of slope -1, then T_remove.

    For Poisson-sampled Gaussian and Laplace noise, the profile of ``remove`` is the larger one at
    every ε > 0; approximations do not check that, other engines do.  The hull is T_add left of its
    point (a, b) of slope -1, the line α + β = a + b up to the mirror image (b, a), and T_remove,
    the mirror image of T_add, beyond.
    """

    _add: ApproximatePair
    _remove: ApproximatePair

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, npt.NDArray[np.bool_]]:
        """β and γ of the hull by its known shape, at all levels."""
        a, b = self._add.middle()
        found = ErrorCurve.trivial(alpha)
        line = (alpha > a) & (alpha < b)
        left = (alpha <= a) & ~line
        right = ~left & ~line
        if line.any():
            found.put(line, self._on_line(alpha[line], a, b))
        if left.any():
            found.put(left, _within(self._add, alpha[left], 0.0, max(a, 1.0 - b)))
        if right.any():
            found.put(right, _within(self._remove, alpha[right], min(b, 1.0 - a), 1.0))
        return found, np.ones(alpha.size, dtype=np.bool_)

    def _on_line(self, alpha: FloatArray, a: float, b: float) -> ErrorCurve:
        """β and γ between both points of slope -1, with the error of these points."""
        ends = self._add.trade_off(np.array([a]))
        spread = float(ends.beta.upper[0] - ends.beta.lower[0])
        if not 0.0 < a < b < 1.0:  # no such line: the expansion is out of its range at 0
            spread = 1.0
        error, engine = np.full(alpha.size, spread), np.full(alpha.size, ends.beta.engine[0])
        low = np.zeros(alpha.size)
        beta = Answer.around(a + b - alpha, error, engine)
        gamma = Answer.around(1.0 - (a + b) + alpha, error, engine)
        return ErrorCurve(_clipped(beta, low, 1.0 - alpha), _clipped(gamma, alpha, low + 1.0))


def _within(pair: ApproximatePair, alpha: FloatArray, least: float, most: float) -> ErrorCurve:
    """Errors of one curve with γ clipped to a range, as approximate curves need not meet."""
    curve = pair.trade_off(alpha)
    beta = _moved(curve.beta, 1.0 - most, 1.0 - least)
    return ErrorCurve(beta, _moved(curve.gamma, least, most))


def in_orders(
    make: Callable[[Mechanism, str], ApproximatePair], mechanism: Mechanism, adjacency: str
) -> Questions:
    """Return questions for an adjacency; ``make`` returns the pair of one order."""
    if all(parts(step)[1] == 0.0 for step, _ in steps_of(mechanism)):
        return NothingReleased()
    if adjacency != "add_remove":
        return make(mechanism, adjacency)
    return _JoinedOrders(make(mechanism, "add"), make(mechanism, "remove"))


def _clipped(answer: Answer, least: FloatArray, most: FloatArray) -> Answer:
    value, lower, upper = (
        np.clip(part, least, most) for part in (answer.value, answer.lower, answer.upper)
    )
    return Answer(value, lower, upper, answer.engine)


def _moved(answer: Answer, least: float, most: float) -> Answer:
    """Clip values to a range, and widen intervals to contain them, as the range is approximate."""
    value = np.clip(answer.value, least, most)
    lower, upper = np.minimum(answer.lower, value), np.maximum(answer.upper, value)
    return Answer(value, np.maximum(lower, 0.0), np.minimum(upper, 1.0), answer.engine)


def curve_of(
    alpha: FloatArray, beta: FloatArray, gamma: FloatArray, c: FloatArray, engine: str
) -> ErrorCurve:
    """Return the curve with these values, without errors, at α in (0, 1)."""
    beta, gamma = np.clip(beta, 0.0, 1.0 - alpha), np.clip(gamma, alpha, 1.0)
    first, second = (Answer.around(x, 0.0 * x, names(engine, x.size)) for x in (beta, gamma))
    return ErrorCurve(first, second, c)


def warn_where(value: FloatArray, error: FloatArray, method: str) -> None:
    """Warn if the error of a value exceeds a tenth of it."""
    doubtful = error > DOUBTFUL * np.abs(value)
    if doubtful.any():
        worst = int(np.argmax(np.where(doubtful, error / np.maximum(np.abs(value), 1e-300), -1.0)))
        warnings.warn(
            f"method={method!r} is outside its range for {int(doubtful.sum())} of {value.size} "
            f"values, for example {value[worst]:.3g} with an error of "
            f"{error[worst]:.1g}; method='auto' is exact",
            ApproximationWarning,
            stacklevel=2,
        )
