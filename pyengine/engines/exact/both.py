"""Questions on both orders of a pair whose masses are known to proven errors."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from pyengine.answers import Answer, PairQuestions
from pyengine.curves import BothOrders, larger, smaller
from pyengine.engines.exact.levels import ComposedLaw
from pyengine.engines.exact.mixed import joined
from pyengine.engines.hull import hull

__all__ = ["ExactBothOrders"]

FloatArray = npt.NDArray[np.float64]


class ExactPair(PairQuestions, Protocol):
    """Questions on a law between two laws that are known."""

    @property
    def inner(self) -> ComposedLaw:
        """A law whose trade-off function is nowhere below its own."""

    @property
    def outer(self) -> ComposedLaw:
        """A law whose trade-off function is nowhere above its own."""

    engine: str


class ExactBothOrders(BothOrders):
    """Questions on both orders of a composition: adjacency ``add_remove``."""

    _add: ExactPair
    _remove: ExactPair

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β and γ of the hull: proven bounds."""
        beta, gamma = Answer.rest(alpha), Answer.exact(alpha.copy())
        nothing, inside = alpha == 0.0, (alpha > 0.0) & (alpha < 1.0)
        if nothing.any():  # what only one law of a pair shows
            first, second = (pair.trade_off(alpha[nothing]) for pair in (self._add, self._remove))
            beta.put(nothing, smaller(first.beta, second.beta))
            gamma.put(nothing, larger(first.gamma, second.gamma))
        if inside.any():
            add, remove, level = self._add, self._remove, alpha[inside]
            beta_in, gamma_in = hull(add.outer, remove.outer, level, add.engine)
            if add.inner is not add.outer:
                beta_up, gamma_low = hull(add.inner, remove.inner, level, add.engine)
                beta_in, gamma_in = joined(beta_in, beta_up), joined(gamma_low, gamma_in)
            beta.put(inside, beta_in)
            gamma.put(inside, gamma_in)
        return beta, gamma
