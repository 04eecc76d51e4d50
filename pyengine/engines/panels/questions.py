"""Questions on Laplace steps: proven bounds from lines, laws on panels, and the lattice.

What is not narrow enough is asked of another engine as well, and lies within the bounds of both.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyengine.answers import Answer, ErrorCurve, PairQuestions, Questions, names
from pyengine.curves import OneOrder, larger
from pyengine.engines.certified import relative_width
from pyengine.engines.exact.both import hull
from pyengine.engines.exact.levels import Tails, Thresholds, between, bounds
from pyengine.engines.hull import BothOrders
from pyengine.engines.panels.ordered import OrderedLaw
from pyengine.engines.panels.search import enclosed, points_at
from pyengine.errors import AccuracyError
from pyengine.numerics.rounding import UNIT

__all__ = ["PanelBothOrders", "PanelOneOrder", "PanelQuestions"]

FloatArray = npt.NDArray[np.float64]

WIDEST = 1e-4  # the lattice's own width
CLOSE = 1e-12  # bounds of ε of this relative distance are close without looking at δ
NEXT = 1e-3  # how far beyond one order's ε that of the other one is looked for first
ENGINE = "certified"


class PanelQuestions:
    """Questions on one order.

    Parameters
    ----------
    law : OrderedLaw
        The composed steps.
    tolerance : float or None
        Largest relative width of the bounds; None for that of the lattice.
    otherwise : callable
        Makes the questions of the engine that answers what is wider.
    """

    def __init__(
        self,
        law: OrderedLaw,
        tolerance: float | None,
        otherwise: Callable[[], PairQuestions],
    ) -> None:
        self.law = law
        self.widest = WIDEST if tolerance is None else tolerance
        self._otherwise = otherwise

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        beta, gamma = Answer.rest(alpha), Answer.exact(alpha.copy())
        c = np.where(alpha == 0.0, np.inf, np.where(alpha == 1.0, -np.inf, 0.0))
        inside = (alpha > 0.0) & (alpha < 1.0)
        if inside.any():
            level = alpha[inside]
            law = self.law
            at, points = points_at(
                law, law.sides, level, *law.expected(level), law.jumps, has_atoms=law.has_atoms
            )
            value_beta, value_gamma, row = between(points, level)
            found = bounds(points, at, level, 0.0)
            beta.put(inside, _answer(value_beta, found.beta_lower, found.beta_upper, 1.0 - level))
            gamma.put(inside, _answer(value_gamma, found.gamma_lower, found.gamma_upper, 1.0))
            c[inside] = np.take_along_axis(at, np.minimum(row, 3)[None], axis=0)[0]
            width = np.maximum(relative_width(beta), relative_width(gamma))
            weak = width > self.widest
            if weak.any():
                other = self._otherwise().trade_off(alpha[weak])
                _narrow(beta, weak, other.beta)
                _narrow(gamma, weak, other.gamma)
                c[weak] = other.c
        return ErrorCurve(beta, gamma, c)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        value, error = np.zeros(epsilon.size), np.zeros(epsilon.size)
        finite = np.isfinite(epsilon)
        if finite.any():
            value[finite], error[finite] = self.law.profile(epsilon[finite])
        answer = _answer(value, value - error, value + error, 1.0)
        weak = relative_width(answer) > self.widest
        if weak.any():
            _narrow(answer, weak, self._otherwise().profile(epsilon[weak]))
        return answer

    def epsilon(self, delta: FloatArray, beyond: FloatArray | None = None) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ; mostly a little ``beyond`` another ε."""
        found = Answer.exact(np.zeros(delta.size))
        found.engine = names(ENGINE, delta.size)
        low, high = (max(-end, 0.0) for end in self.law.lowest()[::-1])
        nothing = delta == 0.0
        found.lower[nothing], found.upper[nothing] = low, high
        found.value[nothing] = high
        asked = (delta > 0.0) & (delta < 1.0)
        if asked.any():
            ends = self.law.expected_epsilon(delta[asked])
            if beyond is not None:
                near = beyond[asked]
                ends = (
                    np.where(near > 0.0, near, ends[0]),
                    np.where(near > 0.0, near * (1.0 + NEXT), ends[1]),
                )
            lower, value, upper = self._enclosed(delta[asked], *ends)
            value = np.clip(value, lower, upper)
            label = names(ENGINE, value.size)
            found.put(asked, Answer(value, lower, upper, label, True))
            weak = np.zeros(delta.size, dtype=np.bool_)
            weak[asked] = self._are_far_apart(delta[asked], lower, upper)
            if weak.any():
                _narrow(found, weak, self._otherwise().epsilon(delta[weak]))
        return found

    def _are_far_apart(
        self, delta: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> npt.NDArray[np.bool_]:
        """Whether bounds of ε leave more open of δ than is allowed."""
        wide = upper - lower > CLOSE * upper
        if wide.any():
            ends = [self.law.profile(end[wide]) for end in (lower, upper)]
            left = (ends[0][0] + ends[0][1]) - (ends[1][0] - ends[1][1])
            wide[wide] = left > self.widest * delta[wide]
        return wide

    def _enclosed(
        self, delta: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Bounds of ε, and what profiles too low, as computed, and too high say of it.

        It is looked for between ``low`` and ``high`` first.
        """
        size = delta.size
        slack = np.repeat([-1.0, 0.0, 1.0], size)
        level = np.tile(delta, 3)

        def over(epsilon: FloatArray, which: npt.NDArray[np.intp]) -> FloatArray:
            value, error = self.law.profile(epsilon)
            difference = (value - level[which]) + slack[which] * error
            with np.errstate(divide="ignore"):
                log = np.log1p(np.maximum(difference / level[which], -1.0))
            return np.where(difference > 0.0, np.maximum(log, 1e-300), np.minimum(log, -1e-300))

        end = max(-self.law.lowest()[0], 0.0)
        zero, last = np.zeros(3 * size), np.full(3 * size, end)
        low, high = enclosed(over, np.tile(low, 3), np.tile(high, 3), zero, last)
        at_zero = np.flatnonzero(low == 0.0)
        if at_zero.size:
            none = at_zero[over(zero[at_zero], at_zero) < 0.0]
            low[none], high[none] = 0.0, 0.0
        parts = high.reshape(3, size)
        lower = np.maximum(low.reshape(3, size)[0] * (1.0 - 4.0 * UNIT), 0.0)
        upper = parts[2] * (1.0 + 4.0 * UNIT)
        return lower, parts[1], np.maximum(upper, lower)


class PanelOneOrder(OneOrder):
    """Questions on one order of Laplace steps; lines and laws are kept elsewhere."""

    is_light = True


class PanelBothOrders(BothOrders):
    """Questions on both orders of Laplace steps: adjacency ``add_remove``.

    Parameters
    ----------
    add, remove : PanelQuestions
        The ordered pairs.
    otherwise : callable
        Makes the questions that answer what is too wide.
    """

    is_light = True
    _add: PanelQuestions
    _remove: PanelQuestions

    def __init__(
        self, add: PanelQuestions, remove: PanelQuestions, otherwise: Callable[[], Questions]
    ) -> None:
        super().__init__(add, remove)
        self._otherwise = otherwise
        self._is_symmetric = add.law.exchanged == remove.law.exchanged

    def profile(self, epsilon: FloatArray) -> Answer:
        """The larger of both profiles at ε >= 0."""
        return self._add.profile(epsilon) if self._is_symmetric else super().profile(epsilon)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 at which both profiles are <= δ."""
        found = self._remove.epsilon(delta)
        if self._is_symmetric:
            return found
        # the other profile mostly is the smaller one, and one look tells
        value, error = self._add.law.profile(found.lower)
        is_smaller = (found.lower > 0.0) & (value + error <= delta)
        if is_smaller.all():
            return found
        near = found.lower if self._add.law.has_atoms else None
        return larger(found, self._add.epsilon(delta, near))

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β and γ of the hull of both orders."""
        beta, gamma = Answer.rest(alpha), Answer.exact(alpha.copy())
        inside = (alpha > 0.0) & (alpha < 1.0)
        if not inside.any():
            return beta, gamma
        level = alpha[inside]
        orders = (self._add.law, self._remove.law)

        def find(law: Thresholds, levels: FloatArray) -> tuple[FloatArray, Tails]:
            first, second = (order.expected(levels) for order in orders)
            low, high = np.minimum(first[0], second[0]), np.maximum(first[1], second[1])

            def sides(c: FloatArray) -> tuple[FloatArray, FloatArray]:
                masses = law.tails(c)
                return masses.a_above, masses.a_below

            def jumps(least: FloatArray, most: FloatArray) -> FloatArray:
                return np.concatenate([order.jumps(least, most) for order in orders])

            has_atoms = any(order.has_atoms for order in orders)
            return points_at(law, sides, levels, low, high, jumps, has_atoms=has_atoms)

        found = hull(*orders, level, ENGINE, find)
        beta.put(inside, found[0])
        gamma.put(inside, found[1])
        width = np.maximum(relative_width(beta), relative_width(gamma))
        weak = width > self._add.widest
        if weak.any():
            other = self._otherwise().trade_off(alpha[weak])
            _narrow(beta, weak, other[0])
            _narrow(gamma, weak, other[1])
        return beta, gamma


def _answer(
    value: FloatArray, lower: FloatArray, upper: FloatArray, most: FloatArray | float
) -> Answer:
    """A value between bounds that are moved outwards by a rounding where they are not exact."""
    exact = lower == upper
    lower = np.clip(np.where(exact, lower, np.nextafter(lower, -1.0)), 0.0, most)
    upper = np.clip(np.where(exact, upper, np.nextafter(upper, 2.0)), 0.0, most)
    engine = names(ENGINE, value.size)
    return Answer(np.clip(value, lower, upper), lower, upper, engine, True)


def _narrow(answer: Answer, at: npt.NDArray[np.bool_], other: Answer) -> None:
    """Keep the bounds within those of another engine, which are as proven.

    Raises
    ------
    AccuracyError
        Where both have no number in common: one of the proofs fails there.
    """
    lower = np.maximum(other.lower, answer.lower[at])
    upper = np.minimum(other.upper, answer.upper[at])
    if (lower > upper).any():
        raise AccuracyError(
            "the proven bounds of two engines do not meet, which is a defect to be reported; "
            "method='lattice' asks one of them alone"
        )
    other.lower, other.upper = lower, upper
    other.value = np.clip(other.value, other.lower, other.upper)
    answer.put(at, other)
