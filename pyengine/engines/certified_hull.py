"""Questions on both orders and their hull, answered from certified rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyengine.engines.answers import (
    PROFILE,
    Answer,
    ErrorCurve,
    LawQuestion,
)
from pyengine.engines.certified import CertifiedPair, Interpolated
from pyengine.engines.functionals import A_ABOVE, A_BELOW, FloatArray
from pyengine.engines.hull import BoolArray, BothOrders, joined, mixed
from pyengine.engines.plan import plan_of
from pyengine.errors import AccuracyError

__all__ = ["CertifiedBothOrders"]


class CertifiedBothOrders(Interpolated, BothOrders):
    """Questions on both orders: adjacency ``add_remove``, from rows of the decisive order.

    Where neither order decides alone, the hull is a line or a chord.  If rows are too wide for one
    order, a chord would need another engine at about a hundred levels, so those levels go to the
    other engines of both orders, which answer together.
    """

    def __init__(self, add: CertifiedPair, remove: CertifiedPair) -> None:
        super().__init__(add, remove)
        self._pairs, self._keeper = (add, remove), add
        self._plan = plan_of(add, remove)

    def _decides(self, question: LawQuestion[Any], x: FloatArray, lower: FloatArray) -> BoolArray:
        """Where an upper bound of the other order's profile shows it."""
        return self._is_alone(x, lower) if question is PROFILE else self._is_alone(lower, x)

    def _is_alone(self, epsilon: FloatArray, delta: FloatArray) -> BoolArray:
        """Whether the profile of ``add`` at ε is proven to be at most δ.

        Then ``remove`` has the larger answer, of which δ or ε is a lower bound.  Cheap bounds are
        tried first.
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
        """By the lower of both orders' lines, at the slopes of both; else as the base class.

        The lower line keeps all its digits, which a difference of profiles would not.
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
        if wide.any():  # the hull is a line that touches both, or only the lattice has a proof
            at = np.zeros(alpha.size, dtype=np.bool_)
            at[inner] = wide
            others = own[0].taken(wide), own[1].taken(wide)
            super()._bound_from_outside(alpha[at], first.taken(at), second.taken(at), *others)
            others[0].lower = np.maximum(others[0].lower, low[wide])
            others[1].upper = np.minimum(others[1].upper, high[wide])
            beta.put(at, others[0])
            gamma.put(at, others[1])

    def _lines(self, alpha: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower bounds of β and upper bounds of γ on the lower of both lines of slope -e^c."""
        (beta, gamma), (other_beta, other_gamma) = (pair.line(alpha, c) for pair in self._pairs)
        return np.minimum(beta, other_beta), np.maximum(gamma, other_gamma)

    def _tangent(self, alpha: FloatArray, c: FloatArray) -> tuple[Answer, Answer]:
        """As the base class, improved by rows."""
        beta, gamma = super()._tangent(alpha, c)
        low, high = self._lines(alpha, c)
        beta.lower, gamma.upper = np.maximum(beta.lower, low), np.minimum(gamma.upper, high)
        return beta, gamma

    def _chord(self, alpha: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """By the chord between both orders' tests with threshold c; else as the base class."""
        power, error, within = mixed(alpha, [pair.test(c) for pair in self._pairs])
        if not within.all():  # rows are too wide there
            rest = ~within
            power[rest], error[rest], within[rest] = super()._chord(alpha[rest], c[rest])
        return power, error, within

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """Levels where the hull is the line of slope -1, or the curve of one order."""
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
        """One order's curve with bounds of the hull, where its tangent is below the other curve.

        Both orders' lines of slope -e^c differ by the difference of the profiles at |c|.
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
        # for the other sign of c, the own line has the profile of `add`
        settled &= curve.c >= 0.0 if functional == A_ABOVE else curve.c <= 0.0
        at = np.flatnonzero(settled)
        if at.size:
            gain = pair.gain(functional, curve.c[at])
            settled[at] = self._is_alone(np.abs(curve.c[at]), gain)
        return curve, settled

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        """Levels at which both orders are needed."""
        found, nothing = self._keeper.next_to_nothing(alpha)
        if nothing.all():
            return found
        (first, weak), (second, too_weak) = (pair.proven(alpha) for pair in self._pairs)
        weak |= too_weak
        if not (weak.any() or nothing.any()):
            return self.hull(alpha, first, second)
        if weak.all():
            try:
                return joined(*(pair.next_engine() for pair in self._pairs)).trade_off(alpha)
            except AccuracyError as refusal:
                own = first.beta, first.gamma, second.beta, second.gamma
                self._keeper.raise_unless_known(refusal, *own)
                return self.hull(alpha, first, second)
        for where in (weak & ~nothing, ~weak & ~nothing):
            if where.any():
                found.put(where, self._inside(alpha[where]))
        return found
