"""Edgeworth's approximation of the test between both laws of the composed privacy loss.

With the standardised cumulants λ_k of a sum, the density at x standard deviations from the mean is
φ(x) (1 + Σ_m c_m He_m(x)); c_m collects the terms of exp(Σ_k λ_{k+2} t^{k+2}/(k+2)!) whose order,
the sum of their k, is at most the order of the expansion (Hall 1992, chapter 2).  The loss has an
expansion under each hypothesis: the one under A gives the threshold of a level, the one under B the
power at that threshold (Zheng et al. 2020, section 3.1; Kaissis et al. 2023, section 4.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import hermite_e

from pyengine.engines.answers import ErrorCurve
from pyengine.engines.approximate import ApproximatePair, FloatArray, curve_of
from pyengine.engines.loss_quadrature import losses
from pyengine.mechanisms import Mechanism
from pyengine.numerics.bracketing import falling_root
from pyengine.special import ndtr, normal_pdf

__all__ = ["MAX_ORDER", "EdgeworthPair"]

NAME = "edgeworth"


MAX_ORDER = 4
WIDEST = 37.0  # standard deviations: the normal tail beyond is subnormal


def cumulants(terms: Iterable[tuple[FloatArray, FloatArray, int]]) -> FloatArray:
    """First six cumulants of a sum of independent terms, each (values, weights, number)."""
    total = np.zeros(6)
    for value, weight, number in terms:
        mean = float(weight @ value)
        y = value - mean
        m = [0.0, 0.0, *(float(weight @ y**k) for k in range(2, 7))]
        total += number * np.array(
            [
                mean,
                m[2],
                m[3],
                m[4] - 3.0 * m[2] ** 2,
                m[5] - 10.0 * m[3] * m[2],
                m[6] - 15.0 * m[4] * m[2] - 10.0 * m[3] ** 2 + 30.0 * m[2] ** 3,
            ]
        )
    return total


@dataclass(frozen=True, eq=False)
# Map: Edgeworth expansion | test_approximations | approximations
class Expansion:
    """Edgeworth's approximation of one law, on the range around its mean where it is monotone.

    The density is φ(x) Σ d_m He_m(x), and the upper tail Φ(-x) + φ(x) Σ t_m He_m(x).  The range
    from ``low`` to ``high``, in standard deviations, is that of a positive density.
    """

    mean: float
    deviation: float
    density: FloatArray
    tail: FloatArray
    low: float
    high: float

    @classmethod
    def of(cls, cumulant: FloatArray, order: int) -> Expansion:
        """Expansion of the given order, 0 to 4, from six cumulants."""
        deviation = math.sqrt(cumulant[1])
        size = 3 * order + 1
        powers = [np.eye(1, size)[0]]  # coefficients in t of the terms of each order
        g: list[FloatArray] = []
        for k in range(1, order + 1):
            standardised = cumulant[k + 1] / deviation ** (k + 2)
            term = np.zeros(size)
            term[k + 2] = standardised / math.factorial(k + 2)
            g.append(term)
            products = (
                np.convolve(g[i - 1], powers[k - i])[:size] * (i / k) for i in range(1, k + 1)
            )
            powers.append(np.sum(list(products), axis=0))
        density: FloatArray = np.sum(powers, axis=0)
        low, high = -WIDEST, WIDEST
        if order and np.any(density[1:]):
            roots = hermite_e.hermeroots(np.trim_zeros(density, "b"))
            real = roots.real[np.abs(roots.imag) <= 1e-9 * (1.0 + np.abs(roots))]
            low = max((r for r in real if r < 0.0), default=low)
            high = min((r for r in real if r >= 0.0), default=high)
            if hermite_e.hermeval(0.0, density) <= 0.0:  # not positive at the mean: no range
                low = high = 0.0
        return cls(
            float(cumulant[0]),
            deviation,
            density,
            density[1:] if density.size > 1 else np.zeros(1),
            max(float(low), -WIDEST),
            min(float(high), WIDEST),
        )

    def above(self, c: FloatArray) -> FloatArray:
        """Probability of a loss above c; constant beyond the monotone range."""
        return self._side(np.clip((c - self.mean) / self.deviation, self.low, self.high), 1.0)

    def below(self, c: FloatArray) -> FloatArray:
        """Probability of a loss of at most c; constant beyond the monotone range."""
        return self._side(np.clip((c - self.mean) / self.deviation, self.low, self.high), -1.0)

    def _side(self, x: FloatArray, sign: FloatArray | float) -> FloatArray:
        correction = normal_pdf(x) * hermite_e.hermeval(x, self.tail)
        return np.clip(ndtr(-sign * x) + sign * correction, 0.0, 1.0)

    def threshold(self, alpha: FloatArray) -> FloatArray:
        """The c that is exceeded with probability α in (0, 1), clipped to the monotone range."""
        sign, tail = np.where(alpha <= 0.5, 1.0, -1.0), np.minimum(alpha, 1.0 - alpha)

        def excess(x: FloatArray) -> FloatArray:
            with np.errstate(divide="ignore"):  # far out, the log of a tail is nearly linear
                return np.asarray(sign * (np.log(self._side(x, sign)) - np.log(tail)))

        low, high = np.full(alpha.shape, self.low), np.full(alpha.shape, self.high)
        below, above = excess(low) < 0.0, excess(high) > 0.0
        low, high = np.where(above, high, low), np.where(below, low, high)
        return self.mean + self.deviation * falling_root(excess, low, high)


class EdgeworthPair(ApproximatePair):
    """An expansion on one ordered pair, up to terms of size steps^(-order/2), order 0 to 4."""

    name = NAME

    def __init__(self, mechanism: Mechanism, adjacency: str, order: int = MAX_ORDER) -> None:
        terms = losses(mechanism, adjacency)
        self._a, self._b = (
            Expansion.of(cumulants((t.loss, getattr(t, under), t.steps) for t in terms), order)
            for under in ("under_a", "under_b")
        )
        self.largest = math.fsum(t.largest * t.steps for t in terms)

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        c = self._a.threshold(alpha)
        return curve_of(alpha, self._b.below(c), self._b.above(c), c, NAME)

    def middle(self) -> tuple[float, float]:
        """A(S > 0) and B(S <= 0): the point (α, β) of slope -1."""
        zero = np.zeros(1)
        return float(self._a.above(zero)[0]), float(self._b.below(zero)[0])

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """A(S <= -ε) - e^ε B(S <= -ε)."""
        with np.errstate(over="ignore", invalid="ignore"):
            second = np.exp(epsilon) * self._b.below(-epsilon)
        second = np.where(np.isfinite(second), second, 1.0)
        value = np.clip(self._a.below(-epsilon) - second, 0.0, 1.0)
        return np.where(epsilon >= self.largest, 0.0, value)
