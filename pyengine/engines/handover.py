"""Questions that go to a second engine where the first one refuses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pyengine.answers import Answer, ErrorCurve, PairQuestions
from pyengine.errors import AccuracyError

__all__ = ["Handover"]

FloatArray = npt.NDArray[np.float64]
Found = TypeVar("Found", Answer, ErrorCurve)


class Handover:
    """Questions on one ordered pair that a second engine answers where the first one refuses.

    Where both refuse, the refusal of the first one is raised: its advice is about the engine
    that is meant to answer.

    Parameters
    ----------
    first, second : callable
        Make the questions of either engine, when they are needed.
    """

    def __init__(
        self, first: Callable[[], PairQuestions], second: Callable[[], PairQuestions]
    ) -> None:
        self._first, self._second = first, second

    def _asked(self, ask: Callable[[PairQuestions], Found]) -> Found:
        try:
            return ask(self._first())
        except AccuracyError as refusal:
            try:
                return ask(self._second())
            except AccuracyError:
                raise refusal from None

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        return self._asked(lambda pair: pair.trade_off(alpha))

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        return self._asked(lambda pair: pair.profile(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ, for δ in [0, 1]."""
        return self._asked(lambda pair: pair.epsilon(delta))
