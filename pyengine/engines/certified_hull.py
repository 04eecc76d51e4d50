"""Questions that rows answer: of one order, and of both orders and their hull."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyengine.engines.answers import (
    PROFILE,
    Answer,
    ErrorCurve,
    Judged,
    LawQuestion,
    Questions,
)
from pyengine.engines.certified import CertifiedPair, Interpolated
from pyengine.engines.functionals import A_ABOVE, A_BELOW, FloatArray
from pyengine.engines.hull import BoolArray, BothOrders, mixed
from pyengine.engines.plan import plan_of
from pyengine.errors import AccuracyError

__all__ = ["CertifiedBothOrders"]


class CertifiedBothOrders(Interpolated, BothOrders):
    """Questions on both orders: adjacency ``add_remove``, by rows of the order that decides.

    Levels where both decide are on a line, or on chords of both curves.  A hull of rows of one
    order and another engine's brackets of the other one would ask that engine at some hundred
    levels for each chord, so such levels go to what knows both at once.
    """

    def __init__(
        self, add: CertifiedPair, remove: CertifiedPair, otherwise: Callable[[], Questions]
    ) -> None:
        super().__init__(add, remove)
        self._pairs, self._keeper = (add, remove), add
        self._plan = plan_of(add, remove)
        self._otherwise = otherwise

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number, in one call of the C core where lines say all."""
        found = self._plan and self._plan.one(name, x)
        return found or super().one(name, x)

    def _decides(self, question: LawQuestion[Any], x: FloatArray, lower: FloatArray) -> BoolArray:
        """By an upper bound of the other order's profile."""
        return self._is_alone(x, lower) if question is PROFILE else self._is_alone(lower, x)

    def _is_alone(self, epsilon: FloatArray, delta: FloatArray) -> BoolArray:
        """Whether the profile of ``add`` is at most δ, which is asked closely where that is needed.

        So ``remove`` has the larger answer, of which δ or ε is a lower bound.
        """
        alone = np.zeros(epsilon.size, dtype=np.bool_)
        for closely in (False, True):
            open_ = np.flatnonzero(~alone)
            if open_.size:
                alone[open_] = self._pairs[0].most(epsilon[open_], closely=closely) <= delta[open_]
        return alone

    def _bound_from_outside(
        self,
        alpha: FloatArray,
        first: ErrorCurve,
        second: ErrorCurve,
        beta: Answer,
        gamma: Answer,
    ) -> None:
        """By the lower line of both orders, at the slopes of both; else as the base class.

        A line that is not above the other order's keeps all of its digits, which a difference of
        profiles would not.
        """
        inner = (alpha > 0.0) & (alpha < 1.0)
        lines = [self._lines(alpha[inner], curve.c[inner]) for curve in (first, second)]
        low = np.maximum(lines[0][0], lines[1][0])
        high = np.minimum(lines[0][1], lines[1][1])
        low = np.maximum(low, np.nextafter(1.0 - high, 0.0))
        own = beta.taken(inner), gamma.taken(inner)
        wide = own[0].upper - low > 2.0 * (own[0].upper - own[0].lower)
        wide |= high - own[1].lower > 2.0 * (own[1].upper - own[1].lower)
        beta.lower[inner], gamma.upper[inner] = low, high
        if wide.any():  # a line that touches both, or what has no proof but the lattice's
            at = np.zeros(alpha.size, dtype=np.bool_)
            at[inner] = wide
            others = own[0].taken(wide), own[1].taken(wide)
            super()._bound_from_outside(alpha[at], first.taken(at), second.taken(at), *others)
            others[0].lower = np.maximum(others[0].lower, low[wide])
            others[1].upper = np.minimum(others[1].upper, high[wide])
            beta.put(at, others[0])
            gamma.put(at, others[1])

    def _lines(self, alpha: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower bounds of β and upper ones of γ on the lower line of slope -e^c of both orders."""
        (beta, gamma), (other_beta, other_gamma) = (pair.line(alpha, c) for pair in self._pairs)
        return np.minimum(beta, other_beta), np.maximum(gamma, other_gamma)

    def _tangent(self, alpha: FloatArray, c: FloatArray) -> tuple[Answer, Answer]:
        """As the base class, and from rows where they say more."""
        beta, gamma = super()._tangent(alpha, c)
        low, high = self._lines(alpha, c)
        beta.lower, gamma.upper = np.maximum(beta.lower, low), np.minimum(gamma.upper, high)
        return beta, gamma

    def _chord(self, alpha: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Between the tests of threshold c of both orders; else as the base class."""
        power, error, within = mixed(alpha, [pair.test(c) for pair in self._pairs])
        if not within.all():  # what rows do not prove closely
            rest = ~within
            power[rest], error[rest], within[rest] = super()._chord(alpha[rest], c[rest])
        return power, error, within

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """Where the hull is a line, or the tangent of one order."""
        add, remove = self._pairs
        found, settled = ErrorCurve.trivial(alpha), np.zeros(alpha.size, dtype=np.bool_)
        if add.is_of_one and remove.is_of_one:
            line, straight = add.straight(alpha)
            found.put(straight, line)
            settled |= straight
        for pair, functional in ((add, A_ABOVE), (remove, A_BELOW)):
            asked = ~settled & (alpha > 0.0) & (alpha < 1.0)
            asked &= (alpha <= 0.5) == (functional == A_ABOVE)
            if asked.any():
                curve, known = self._alone(pair, functional, alpha[asked])
                asked[asked] = known
                settled |= asked
                found.put(asked, curve.taken(known))
        return found, settled

    def _alone(
        self, pair: CertifiedPair, functional: int, alpha: FloatArray
    ) -> tuple[ErrorCurve, BoolArray]:
        """One order's curve with bounds of the hull, where its tangent does not cut the other one.

        Both orders' lines of slope e^c differ by the profiles at |c|.
        """
        curve, weak = pair.proven(alpha)
        widths = [answer.upper - answer.lower for answer in (curve.beta, curve.gamma)]
        lower, upper = pair.line(alpha, curve.c)
        low = np.maximum(lower, np.nextafter(1.0 - upper, 0.0))
        high = np.minimum(upper, np.nextafter(1.0 - lower, 2.0))
        for answer, bound in ((curve.beta, low), (curve.gamma, np.minimum(high, 1.0))):
            (answer.lower if answer is curve.beta else answer.upper)[:] = bound
            answer.value = np.clip(answer.value, answer.lower, answer.upper)
        narrow = curve.beta.upper - low <= 2.0 * widths[0]
        settled = ~weak & narrow & (high - curve.gamma.lower <= 2.0 * widths[1])
        # elsewhere the own line has the profile of `add`
        settled &= curve.c >= 0.0 if functional == A_ABOVE else curve.c <= 0.0
        at = np.flatnonzero(settled)
        if at.size:
            gain = pair.gain(functional, curve.c[at])
            settled[at] = self._is_alone(np.abs(curve.c[at]), gain)
        return curve, settled

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        """Where both orders have to be known."""
        found, nothing = self._keeper.next_to_nothing(alpha)
        if nothing.all():
            return found
        (first, weak), (second, too_weak) = (pair.proven(alpha) for pair in self._pairs)
        weak |= too_weak
        if not (weak.any() or nothing.any()):
            return self.hull(alpha, first, second)
        if weak.all():
            try:
                return self._otherwise().trade_off(alpha)
            except AccuracyError as refusal:
                own = first.beta, first.gamma, second.beta, second.gamma
                self._keeper.raise_unless_known(refusal, *own)
                return self.hull(alpha, first, second)
        for where in (weak & ~nothing, ~weak & ~nothing):
            if where.any():
                found.put(where, self._inside(alpha[where]))
        return found
