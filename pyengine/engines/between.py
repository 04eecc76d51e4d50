"""Questions on a law that two other laws enclose, from what the latter are answered."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import Answer, ErrorCurve, PairQuestions, Questions

__all__ = ["BetweenPairs", "BetweenQuestions"]

FloatArray = npt.NDArray[np.float64]

SHARE = 1.0 / 3.0  # of the bracket that is due to the law below, which loses half of what is gained


def _between(small: Answer, large: Answer) -> Answer:
    """From the lower bounds of one answer and the upper ones of another."""
    lower, upper = small.lower, large.upper
    with np.errstate(invalid="ignore"):
        value = np.where(upper < np.inf, lower + SHARE * (upper - lower), upper)
    # what an engine gives a value for without a bracket has that value still
    same = (small.value == large.value) & (lower <= small.value) & (small.value <= upper)
    value = np.where(same, small.value, value)
    certified = small.certified & large.certified
    return Answer(value, lower, upper, large.engine, certified)


class BetweenPairs:
    """Questions on one ordered pair of laws.

    Parameters
    ----------
    below, above : PairQuestions
        Questions on a less and on a more informative pair.
    """

    def __init__(self, below: PairQuestions, above: PairQuestions) -> None:
        self._below, self._above = below, above

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1], which is the smaller the more informative the pair is."""
        below, above = self._below.trade_off(alpha), self._above.trade_off(alpha)
        beta = _between(above.beta, below.beta)
        return ErrorCurve(beta, _between(below.gamma, above.gamma), above.c)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        return _between(self._below.profile(epsilon), self._above.profile(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ, for δ in [0, 1]."""
        return _between(self._below.epsilon(delta), self._above.epsilon(delta))


class BetweenQuestions(Questions):
    """All questions on both orders of such a pair.

    Parameters
    ----------
    below, above : Questions
        As of `BetweenPairs`.
    """

    def __init__(self, below: Questions, above: Questions) -> None:
        self._below, self._above = below, above

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β = T(α) and γ = 1 - T(α), each with its own accuracy."""
        below, above = self._below.trade_off(alpha), self._above.trade_off(alpha)
        return _between(above[0], below[0]), _between(below[1], above[1])

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) at ε >= 0."""
        return _between(self._below.profile(epsilon), self._above.profile(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ."""
        return _between(self._below.epsilon(delta), self._above.epsilon(delta))
