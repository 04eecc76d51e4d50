"""Gaussian noise in many dimensions: the squared lengths as if they were normal (method "clt").

Theorem 3 of Kaissis et al. (2023), corrected: with κ = μ² the noncentrality, j tends to
Φ((z - κ/√(2d)) / √(1 + 2κ/d)), z = Φ⁻¹(1 - α), and for κ << d both j and its inverse tend to
Φ(z - κ/√(2d)).  The first form answers for each order, the second one for ``add_remove``.
"""

from __future__ import annotations

import numpy as np

from pyengine import special
from pyengine.engines.answers import (
    TRADE_OFF,
    Answer,
    FloatArray,
    Found,
    LawQuestion,
    Questions,
    names,
)
from pyengine.errors import NotDefinedError

__all__ = ["LimitQuestions"]


# Map: Theorem 3 of Kaissis et al. (2023), relaxed: many dimensions | test_relaxed | relaxed
class LimitQuestions(Questions):
    """The normal approximation of one pair; no error bound comes with it."""

    def __init__(self, shift: float, scale: float, adjacency: str) -> None:
        self.shift, self.scale, self.adjacency = shift, scale, adjacency

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """β and γ at α in [0, 1]."""
        if question is not TRADE_OFF:  # the normal laws differ in variance: thresholds are not best
            raise NotDefinedError(
                "method='clt' of the relaxed threat model has trade-off functions only"
            )
        z = -special.ndtri(x)
        if self.adjacency == "add":
            at = (z - self.shift) / self.scale
        elif self.adjacency == "remove":
            at = z * self.scale - self.shift
        else:
            at = z - self.shift
        return question.made(self._answer(special.ndtr(at)), self._answer(special.ndtr(-at)))

    def _answer(self, value: FloatArray | float) -> Answer:
        flat = np.atleast_1d(np.asarray(value, dtype=np.float64))
        return Answer(flat, np.zeros(flat.size), np.ones(flat.size), names("clt", flat.size))
