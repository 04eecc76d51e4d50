"""What holds for all engines when answers on ordered pairs become answers on an adjacency."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import Answer, FloatArray, Judged, PairQuestions, Questions

__all__ = ["NothingReleased", "OneOrder", "Substitution", "larger", "smaller", "taken"]


def _nothing(name: str, x: float) -> None:
    """The short way of a pair that has none."""


class NothingReleased(Questions):
    """Questions on a mechanism that releases nothing about the record."""

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β = 1 - α and γ = α."""
        return Answer.rest(alpha), Answer.exact(alpha.copy())

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ = 0."""
        return Answer.exact(np.zeros(epsilon.size))

    def epsilon(self, delta: FloatArray) -> Answer:
        """ε = 0."""
        return Answer.exact(np.zeros(delta.size))


class OneOrder(Questions):
    """Questions on one order of the pair: every adjacency but ``add_remove``.

    A pair may have a short way for floats, ``one``, which gives None where arrays have to be asked.
    """

    def __init__(self, pair: PairQuestions) -> None:
        self._pair = pair
        self._short: Callable[[str, float], Judged | None] = getattr(pair, "one", _nothing)

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number, by the short way where there is one."""
        return self._short(name, x) or super().one(name, x)

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
        first.certified & second.certified,
    )


def taken(answer: Answer, where: npt.NDArray[np.bool_]) -> Answer:
    """Return the entries of a mask."""
    return Answer(
        answer.value[where],
        answer.lower[where],
        answer.upper[where],
        answer.engine[where],
        answer.certified[where],
    )


def smaller(first: Answer, second: Answer) -> Answer:
    """Return the smaller of two answers to one question, entry by entry."""
    return Answer(
        np.minimum(first.value, second.value),
        np.minimum(first.lower, second.lower),
        np.minimum(first.upper, second.upper),
        np.where(second.value < first.value, second.engine, first.engine),
        first.certified & second.certified,
    )


class Substitution(Questions):
    """Questions on a substituted record where only bounds are known: values are the safe ones.

    Parameters
    ----------
    dominating : PairQuestions
        A pair that dominates all pairs of data sets: its answers are on the safe side.
    attained : list of PairQuestions
        Pairs of data sets, each of which bounds the truth from the other side.
    """

    def __init__(self, dominating: PairQuestions, attained: list[PairQuestions]) -> None:
        self._dominating = dominating
        self._attained = attained

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β and γ of the dominating pair, bounded from the other side by the attained ones."""
        curve = self._dominating.trade_off(alpha)
        others = [pair.trade_off(alpha) for pair in self._attained]
        beta, gamma = curve.beta, curve.gamma
        upper = np.min([other.beta.upper for other in others], axis=0)
        proven = _all_certified(beta, [other.beta for other in others])
        beta = Answer(beta.lower, beta.lower, np.maximum(upper, beta.lower), beta.engine, proven)
        return beta, _safe(gamma, [other.gamma for other in others])

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) of the dominating pair."""
        others = [pair.profile(epsilon) for pair in self._attained]
        return _safe(self._dominating.profile(epsilon), others)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 at which the dominating pair's profile is <= δ."""
        others = [pair.epsilon(delta) for pair in self._attained]
        return _safe(self._dominating.epsilon(delta), others)


def _safe(dominating: Answer, others: list[Answer]) -> Answer:
    """The upper bound of the dominating pair, above the lower bounds of the others."""
    lower = np.max([other.lower for other in others], axis=0)
    upper = dominating.upper
    proven = _all_certified(dominating, others)
    return Answer(upper, np.minimum(lower, upper), upper, dominating.engine, proven)


def _all_certified(first: Answer, others: list[Answer]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.all([first.certified, *(other.certified for other in others)], axis=0))
