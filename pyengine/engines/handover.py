"""Questions that go to a second engine where the first one refuses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import Answer, ErrorCurve, PairQuestions, Questions
from pyengine.errors import AccuracyError

__all__ = ["Handover", "HandoverOfBoth"]

FloatArray = npt.NDArray[np.float64]
Found = TypeVar("Found")
Asked = TypeVar("Asked")


class _Two(Generic[Asked]):
    """Questions that a second engine answers where the first one refuses them.

    Where both refuse, the refusal of the first one is raised: its advice is about the engine
    that is meant to answer.

    Parameters
    ----------
    first, second : callable
        Make the questions of either engine, when they are needed.
    """

    def __init__(self, first: Callable[[], Asked], second: Callable[[], Asked]) -> None:
        self._first, self._second = first, second

    def _asked(self, ask: Callable[[Asked], Found]) -> Found:
        try:
            return ask(self._first())
        except AccuracyError as refusal:
            try:
                return ask(self._second())
            except AccuracyError:
                raise refusal from None


class Handover(_Two[PairQuestions]):
    """Questions on one ordered pair."""

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        return self._asked(lambda pair: pair.trade_off(alpha))

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        return self._asked(lambda pair: pair.profile(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ, for δ in [0, 1]."""
        return self._asked(lambda pair: pair.epsilon(delta))


class HandoverOfBoth(_Two[Questions], Questions):
    """Questions on both orders of a pair, which either engine answers as a whole."""

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β = T(α) and γ = 1 - T(α), each with its own accuracy."""
        return self._asked(lambda both: both.trade_off(alpha))

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) at ε >= 0."""
        return self._asked(lambda both: both.profile(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ."""
        return self._asked(lambda both: both.epsilon(delta))
