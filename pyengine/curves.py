"""What holds for all engines when answers on ordered pairs become answers on an adjacency."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine.answers import Answer, ErrorCurve, FloatArray, PairQuestions, Questions
from pyengine.numerics.bracketing import bisected
from pyengine.numerics.golden_section import lowest

__all__ = ["BothOrders", "NothingReleased", "OneOrder", "Substitution", "larger", "smaller"]


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
        first.certified & second.certified,
    )


ROUNDS = 70  # of a search that shrinks its interval to 0.62 of it


class BothOrders(Questions):
    """Questions on both orders of the pair: adjacency ``add_remove``.

    Profiles are the larger of both.  The trade-off function is the lower convex hull of both
    (Definition F.1 of Dong, Roth and Su 2022), whose conjugate is the larger profile:
    γ(α) = min over c of α e^c + D(c).
    """

    def __init__(self, add: PairQuestions, remove: PairQuestions) -> None:
        self._add = add
        self._remove = remove

    def profile(self, epsilon: FloatArray) -> Answer:
        """The larger of both profiles at ε >= 0."""
        return larger(self._remove.profile(epsilon), self._add.profile(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 at which both profiles are <= δ."""
        return larger(self._remove.epsilon(delta), self._add.epsilon(delta))

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β and γ of the hull: the better of both curves, or a line that touches both."""
        first, second = self._add.trade_off(alpha), self._remove.trade_off(alpha)
        beta, gamma, _ = self._hull(alpha, first, second)
        return beta, gamma

    def _hull(
        self, alpha: FloatArray, first: ErrorCurve, second: ErrorCurve
    ) -> tuple[Answer, Answer, FloatArray]:
        """β and γ, and the slope's c where a line may touch both curves, else that of the first."""
        gamma = larger(first.gamma, second.gamma)
        beta = smaller(first.beta, second.beta)
        # the slope of the hull lies between those of both curves
        low = np.clip(np.minimum(first.c, second.c), -700.0, 700.0)
        high = np.clip(np.maximum(first.c, second.c), -700.0, 700.0)
        open_ = (alpha > 0.0) & (alpha < 1.0) & (high > low)
        slope = first.c.copy()
        if not open_.any():
            return beta, gamma, slope
        at = np.flatnonzero(open_)
        c, _ = lowest(lambda x: self._odds(alpha[at], x), low[at], high[at], rounds=ROUNDS)
        slope[at] = c
        tangent_beta, tangent_gamma = self._tangent(alpha[at], c)
        # a tangent has the digits of γ for c >= 0, and those of β otherwise
        bridged = np.where(
            c >= 0.0,
            tangent_gamma.value > gamma.upper[at],
            tangent_beta.value < beta.lower[at],
        )
        if not bridged.any():
            return beta, gamma, slope
        at, c = at[bridged], c[bridged]
        line_beta, line_gamma = taken(tangent_beta, bridged), taken(tangent_gamma, bridged)
        # tangents bound the hull from outside, points of both curves from inside
        inside = self._chord(alpha[at], c) * (1.0 - 2.0**-50)
        line_gamma.lower = np.minimum(np.maximum(gamma.lower[at], inside), line_gamma.value)
        other = np.minimum(beta.upper[at], 1.0 - inside + 2.0**-52)
        line_beta.upper = np.maximum(other, line_beta.value)
        where = np.zeros(alpha.size, dtype=np.bool_)
        where[at] = True
        gamma.put(where, line_gamma)
        beta.put(where, line_beta)
        return beta, gamma, slope

    def _tangent(self, alpha: FloatArray, c: FloatArray) -> tuple[Answer, Answer]:
        """β and γ at α on the line of slope e^c that touches the hull from outside.

        γ is α e^c + D(c), and for c < 0, where D(c) = 1 - e^c + e^c D(-c) as the relation of
        neighbours is symmetric, β is e^c (1 - α - D(-c)).
        """
        d = self.profile(np.abs(c))
        slope, rest = np.exp(c), 1.0 - alpha
        values = []
        for value in (d.value, d.lower, d.upper):
            gamma = np.clip(alpha * slope + value, alpha, 1.0)
            beta = np.clip(slope * (rest - value), 0.0, rest)
            values.append(np.where(c >= 0.0, (1.0 - gamma, gamma), (beta, 1.0 - beta)))
        slack = 2.0**-52
        value, lower, upper = values
        return (
            Answer(
                value[0],
                np.maximum(upper[0] - slack, 0.0),
                lower[0] + slack,
                d.engine,
                d.certified,
            ),
            Answer(
                value[1],
                lower[1] - slack,
                np.minimum(upper[1] + slack, 1.0),
                d.engine,
                d.certified,
            ),
        )

    def _odds(self, alpha: FloatArray, c: FloatArray) -> FloatArray:
        """Logarithm of γ/β on a tangent, which has digits for whichever is small."""
        beta, gamma = self._tangent(alpha, c)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(gamma.value) - np.log(beta.value))

    def _chord(self, alpha: FloatArray, c: FloatArray) -> FloatArray:
        """Lower bound of the hull at α from the points of slope e^c on both curves."""
        ends = []
        for pair in (self._add, self._remove):
            far, near = np.full(alpha.size, -745.0), np.zeros(alpha.size)  # of log α
            for end in bisected(partial(_is_steeper, pair, c), far, near, rounds=ROUNDS):
                place = np.exp(end)
                ends.append((place, pair.trade_off(place).gamma.lower))
        best = alpha.copy()
        for x, y in ends:
            for u, v in ends:
                inside = (x <= alpha) & (alpha <= u) & (x < u)
                share = np.where(inside, (alpha - x) / np.where(inside, u - x, 1.0), 0.0)
                best = np.where(inside, np.maximum(best, y + share * (v - y)), best)
        return best


def _is_steeper(pair: PairQuestions, c: FloatArray, log_alpha: FloatArray) -> Any:
    return pair.trade_off(np.exp(log_alpha)).c > c


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
