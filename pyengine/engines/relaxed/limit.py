"""Gaussian noise in many dimensions: the squared lengths as if they were normal (method "clt").

Theorem 3 of Kaissis et al. (2023), corrected: with κ = μ² the noncentrality, j tends to
Φ((z - κ/√(2d)) / √(1 + 2κ/d)), z = Φ⁻¹(1 - α), and for κ << d both j and its inverse tend to
Φ(z - κ/√(2d)).  The first form answers for each order, the second one for ``add_remove``.
"""

from __future__ import annotations

import math

import numpy as np

from pyengine import special
from pyengine.engines.answers import Answer, ErrorCurve, FloatArray, Questions, names
from pyengine.engines.relaxed.gaussian import GaussianDistance
from pyengine.errors import NotDefinedError

__all__ = ["LimitQuestions"]


# Map: Theorem 3 of Kaissis et al. (2023), relaxed: many dimensions | test_relaxed | relaxed
class LimitQuestions(Questions):
    """The normal approximation of one pair; no error bound comes with it."""

    def __init__(self, pair: GaussianDistance, adjacency: str) -> None:
        kappa = pair.effect**2
        self.adjacency = adjacency
        self.shift = kappa / math.sqrt(2.0 * pair.dimension)
        self.scale = math.sqrt(1.0 + 2.0 * kappa / pair.dimension)

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """β and γ at α in [0, 1]."""
        z = -special.ndtri(alpha)
        if self.adjacency == "add":
            x = (z - self.shift) / self.scale
        elif self.adjacency == "remove":
            x = z * self.scale - self.shift
        else:
            x = z - self.shift
        return ErrorCurve(self._answer(special.ndtr(x)), self._answer(special.ndtr(-x)))

    def _answer(self, value: FloatArray | float) -> Answer:
        flat = np.atleast_1d(np.asarray(value, dtype=np.float64))
        return Answer(flat, np.zeros(flat.size), np.ones(flat.size), names("clt", flat.size))

    def profile(self, epsilon: FloatArray) -> Answer:  # noqa: ARG002 - none defined
        """Not defined: the two normal laws have unequal variances, so no threshold test is best."""
        raise NotDefinedError(
            "method='clt' of the relaxed threat model has trade-off functions only"
        )

    def epsilon(self, delta: FloatArray) -> Answer:  # noqa: ARG002 - none defined
        """Not defined either."""
        raise NotDefinedError(
            "method='clt' of the relaxed threat model has trade-off functions only"
        )
