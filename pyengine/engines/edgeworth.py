"""Edgeworth's approximation of the test between both laws of the composed privacy loss.

The loss has an expansion under each hypothesis; a level is turned into a threshold by the first and
the threshold into a power by the second (Zheng et al. 2020, section 3.1; Kaissis et al. 2023,
section 4.3).
"""

from __future__ import annotations

import math

import numpy as np

from pyengine.engines.answers import Answer, ErrorCurve
from pyengine.engines.approximate import (
    ApproximatePair,
    FloatArray,
    alone,
    curve_of,
    inverse_profile,
)
from pyengine.engines.edgeworth_series import MAX_ORDER, Expansion, cumulants
from pyengine.engines.loss_quadrature import losses
from pyengine.mechanisms import Mechanism

__all__ = ["EdgeworthPair"]

NAME = "edgeworth"


class EdgeworthPair(ApproximatePair):
    """An expansion on one ordered pair, up to terms of size steps^(-order/2), order 0 to 4."""

    def __init__(self, mechanism: Mechanism, adjacency: str, order: int = MAX_ORDER) -> None:
        terms = losses(mechanism, adjacency)
        self._trivial = not terms
        if self._trivial:
            return
        self._a, self._b = (
            Expansion.of(cumulants((t.loss, getattr(t, under), t.steps) for t in terms), order)
            for under in ("under_a", "under_b")
        )
        self._largest = math.fsum(t.largest * t.steps for t in terms)

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        if self._trivial:
            return curve_of(alpha, 1.0 - alpha, alpha, 0.0 * alpha, NAME)
        c = self._a.threshold(np.where((alpha > 0.0) & (alpha < 1.0), alpha, 0.5))
        return curve_of(alpha, self._b.below(c), self._b.above(c), c, NAME)

    def middle(self) -> tuple[float, float]:
        """A(S > 0) and B(S <= 0)."""
        if self._trivial:
            return 0.5, 0.5
        zero = np.zeros(1)
        return float(self._a.above(zero)[0]), float(self._b.below(zero)[0])

    def _delta(self, epsilon: FloatArray) -> FloatArray:
        """A(S <= -ε) - e^ε B(S <= -ε)."""
        with np.errstate(over="ignore", invalid="ignore"):
            second = np.exp(epsilon) * self._b.below(-epsilon)
        second = np.where(np.isfinite(second), second, 1.0)
        value = np.clip(self._a.below(-epsilon) - second, 0.0, 1.0)
        return np.where(epsilon >= self._largest, 0.0, value)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        return alone(0.0 * epsilon if self._trivial else self._delta(epsilon), NAME)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ, for δ in [0, 1]."""
        if self._trivial:
            return alone(0.0 * delta, NAME)
        return alone(inverse_profile(self._delta, delta, self._largest), NAME)
