"""Both orders of smooth steps beside few losses: proven rows, and the lattice level by level.

The hull of both orders takes lines of both; where those of one order are not proven, a lattice that
knows both orders answers the level, and not a hull of brackets of which one comes from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyengine.answers import Answer, ErrorCurve, Questions, complement_above, names
from pyengine.engines.certified import relative_width
from pyengine.engines.certified_hull import CertifiedBothOrders
from pyengine.engines.functionals import FloatArray
from pyengine.engines.hull import BoolArray

__all__ = ["LinesOfBoth", "NothingKnown", "ProductBothOrders"]


class NothingKnown:
    """Questions on an ordered pair of which nothing is proven: bounds that always hold."""

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """Bounds 0 and 1 - α of β, α and 1 of γ."""
        label, rest, zero = names("certified", alpha.size), complement_above(alpha), 0.0 * alpha
        return ErrorCurve(
            Answer(rest.copy(), zero, rest, label, True),
            Answer(alpha.copy(), alpha.copy(), 1.0 + zero, label, True),
            zero.copy(),
        )

    def profile(self, epsilon: FloatArray) -> Answer:
        """Bounds 0 and 1."""
        zero = np.zeros(epsilon.size)
        return Answer(zero + 1.0, zero, zero + 1.0, names("certified", epsilon.size), True)

    def epsilon(self, delta: FloatArray) -> Answer:
        """Bounds 0 and infinity."""
        none = np.full(delta.size, np.inf)
        label = names("certified", delta.size)
        return Answer(none, np.zeros(delta.size), none.copy(), label, True)


class LinesOfBoth(CertifiedBothOrders):
    """The hull by one line at each level: more of them would take longer than the lattice does."""

    def _is_wide(
        self, beta: Answer, gamma: Answer, widths: tuple[FloatArray, FloatArray]
    ) -> BoolArray:
        """Nowhere: what is wide is left to the lattice."""
        del gamma, widths
        return np.zeros(beta.value.size, dtype=np.bool_)


class ProductBothOrders(Questions):
    """Questions on both orders.

    Parameters
    ----------
    proven : Questions
        Both orders by rows alone; its bounds are wide where a row is not proven.
    profiles : Questions
        What answers profiles and their inverse.
    otherwise : callable
        Makes the questions that answer the levels whose bounds are too wide.
    widest : float
        Largest relative width of bounds.
    """

    def __init__(
        self,
        proven: Questions,
        profiles: Questions,
        otherwise: Callable[[], Questions],
        widest: float,
    ) -> None:
        self._proven, self._profiles = proven, profiles
        self._otherwise, self._widest = otherwise, widest

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β = T(α) and γ = 1 - T(α), each with its own accuracy."""
        beta, gamma = self._proven.trade_off(alpha)
        width = np.maximum(relative_width(beta), relative_width(gamma))
        weak = (alpha < 1.0) & ~(width <= self._widest)
        weak |= alpha == 0.0  # where outcomes count that one law alone has
        if weak.any():
            other = self._otherwise().trade_off(alpha[weak])
            beta.put(weak, other[0])
            gamma.put(weak, other[1])
        return beta, gamma

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) at ε >= 0."""
        return self._profiles.profile(epsilon)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ."""
        return self._profiles.epsilon(delta)
