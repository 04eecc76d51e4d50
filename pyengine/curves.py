"""What holds for all engines when answers on ordered pairs become answers on an adjacency."""

from __future__ import annotations

import numpy as np

from pyengine.answers import Answer, FloatArray, PairQuestions

__all__ = ["OneOrder", "larger"]


class OneOrder:
    """Questions on one order of the pair: every adjacency but ``add_remove``."""

    def __init__(self, pair: PairQuestions) -> None:
        self._pair = pair

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β = T(α) and γ = 1 - T(α) at α in [0, 1]."""
        curve = self._pair.trade_off(alpha)
        return curve.beta, curve.gamma

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) at ε >= 0."""
        return self._pair.profile(epsilon)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ."""
        return self._pair.epsilon(delta)


def larger(first: Answer, second: Answer) -> Answer:
    """Return the larger of two answers to one question, entry by entry."""
    return Answer(
        np.maximum(first.value, second.value),
        np.maximum(first.lower, second.lower),
        np.maximum(first.upper, second.upper),
        np.where(second.value > first.value, second.engine, first.engine),
    )
