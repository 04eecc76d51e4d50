"""Answers of an engine that proves its bounds, on laws whose masses nobody has proven."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import Answer, ErrorCurve, Judged, PairQuestions, Questions

__all__ = ["UnprovenMasses", "UnprovenPair"]

FloatArray = npt.NDArray[np.float64]


class UnprovenMasses(Questions):
    """Questions whose bounds hold if the masses of the steps err by no more than is estimated.

    Parameters
    ----------
    asked : Questions
        The engine's own; nothing that they answer is called proven.
    """

    def __init__(self, asked: Questions) -> None:
        self._asked = asked

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β = T(α) and γ = 1 - T(α), each with its own accuracy."""
        beta, gamma = self._asked.trade_off(alpha)
        return _estimated(beta), _estimated(gamma)

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) at ε >= 0."""
        return _estimated(self._asked.profile(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ."""
        return _estimated(self._asked.epsilon(delta))

    def values(self, name: str, x: FloatArray) -> FloatArray:
        """As `answer` without bounds."""
        return self._asked.values(name, x)

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number."""
        return *self._asked.one(name, x)[:3], False


class UnprovenPair:
    """The same on one ordered pair.

    Parameters
    ----------
    asked : PairQuestions
        The engine's own.
    """

    def __init__(self, asked: PairQuestions) -> None:
        self._asked = asked

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        curve = self._asked.trade_off(alpha)
        return ErrorCurve(_estimated(curve.beta), _estimated(curve.gamma), curve.c)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        return _estimated(self._asked.profile(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        return _estimated(self._asked.epsilon(delta))


def _estimated(answer: Answer) -> Answer:
    answer.certified[:] = False
    return answer
