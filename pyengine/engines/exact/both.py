"""Questions on both orders of a pair whose masses are known to proven errors."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from pyengine.answers import Answer, PairQuestions
from pyengine.curves import BothOrders
from pyengine.engines.exact.levels import ComposedLaw, Tails, reach_of, tangents

__all__ = ["ExactBothOrders"]

FloatArray = npt.NDArray[np.float64]


class ExactPair(PairQuestions, Protocol):
    """Questions on a law, with one whose trade-off function is nowhere above its own."""

    @property
    def outer(self) -> ComposedLaw:
        """The law below."""


class ExactBothOrders(BothOrders):
    """Questions on both orders of a composition: adjacency ``add_remove``.

    A line below both curves is below their hull.  Lines of the slopes that both curves have at α,
    and of the bridge between them, are lowered until they are; their distance to the curves keeps
    the digits of β and of γ, which profiles do not.
    """

    def __init__(self, add: ExactPair, remove: ExactPair) -> None:
        super().__init__(add, remove)
        self._laws = (add.outer, remove.outer)

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β and γ of the hull: proven bounds."""
        first, second = self._add.trade_off(alpha), self._remove.trade_off(alpha)
        beta, gamma, bridge = self._hull(alpha, first, second)
        c = np.array([first.c, second.c, bridge])
        inner = (alpha > 0.0) & np.isfinite(c).all(axis=0)
        if not inner.any():
            return beta, gamma
        at, level = c[:, inner], alpha[inner]
        points = [
            Tails(*(x.reshape(at.shape) for x in law.tails(at.ravel()))) for law in self._laws
        ]
        reach = np.maximum(*(reach_of(seen, at) for seen in points))
        lines = [tangents(seen, at, level, reach) for seen in points]
        below = np.minimum(*(line[0] for line in lines)).max(axis=0)
        above = np.maximum(*(line[1] for line in lines)).min(axis=0)
        slack = 2.0**-52
        beta.lower[inner] = np.clip(np.maximum(below, 1.0 - above - slack), 0.0, 1.0 - level)
        gamma.upper[inner] = np.clip(np.minimum(above, 1.0 - below + slack), level, 1.0)
        for answer in (beta, gamma):
            answer.value = np.clip(answer.value, answer.lower, answer.upper)
        return beta, gamma
