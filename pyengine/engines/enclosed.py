"""Values of a fast engine between the bounds of one that proves them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyengine.answers import Answer, Judged, Questions
from pyengine.curves import taken
from pyengine.errors import AccuracyError

__all__ = ["EnclosedQuestions"]

FloatArray = npt.NDArray[np.float64]

NARROW = 1e-10  # relative width of bounds beside which no estimate is needed
# The ends of the domains.
INSIDE = {"trade_off": 1.0, "gamma_bound": 1.0, "delta": math.inf, "epsilon": 1.0}


class EnclosedQuestions(Questions):
    """Questions whose bounds one engine proves, and values that another one estimates between them.

    Where the bounds are narrow the value is that of what proves them: an estimate says no more.

    Parameters
    ----------
    quick : Questions
        Estimates values; what lies beside the bounds moves between them.
    sure : callable
        Makes the questions that give bounds.
    """

    is_light = True

    def __init__(self, quick: Questions, sure: Callable[[], Questions]) -> None:
        self._quick, self._is_estimated = quick, quick.is_estimated
        self._make = sure
        self._made: Questions | None = None

    @property
    def _sure(self) -> Questions:
        if self._made is None:
            self._made = self._make()
        return self._made

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β = T(α) and γ = 1 - T(α), each with its own accuracy."""
        beta, gamma = self._enclosed(lambda asked: asked.trade_off(alpha))
        return beta, gamma

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) at ε >= 0."""
        return self._enclosed(lambda asked: (asked.profile(epsilon),))[0]

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ."""
        return self._enclosed(lambda asked: (asked.epsilon(delta),))[0]

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number; the value is asked for without an array where that can be."""
        if not (self._is_estimated and 0.0 < x < INSIDE[name]):
            return super().one(name, x)
        try:
            sure = self._sure.one(name, x)
        except AccuracyError:  # of a hull that needs what has no proof
            return self._quick.one(name, x)
        value, lower, upper, proven = sure
        if upper <= lower + NARROW * abs(value):
            return sure
        try:
            value = self._quick.one(name, x)[0]
        except AccuracyError:  # what is proven stands without an estimate
            return sure
        return min(max(value, lower), upper), lower, upper, proven

    def _enclosed(self, ask: Callable[[Questions], tuple[Answer, ...]]) -> tuple[Answer, ...]:
        try:
            quick = ask(self._quick)
        except AccuracyError:  # what is proven stands without an estimate
            return ask(self._sure)
        if all(bool(answer.certified.all()) for answer in quick):
            return quick
        try:
            sure = ask(self._sure)
        except AccuracyError:  # of a hull that needs what has no proof
            return quick
        for fast, answer in zip(quick, sure, strict=True):
            narrow = answer.upper <= answer.lower + NARROW * np.abs(answer.value)
            within = np.clip(fast.value, answer.lower, answer.upper)
            answer.value = np.where(narrow, answer.value, within)
            known = fast.certified  # ends of the domain, as a number asked by itself is answered
            answer.put(known, taken(fast, known))
        return sure
