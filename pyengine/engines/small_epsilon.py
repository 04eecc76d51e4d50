"""ε near 0 of one Gaussian step, by Newton's method in decimals.

δ(ε) in doubles has an error of about 1e-14, which for small ε is as large as δ(0) - δ(ε).  With
y = e^ε - 1 the profile of `remove`, or of plain steps, is

    H = p Φ(μ - z) - (p + y) Φ(-z),   z = log(1 + y/p)/μ + μ/2.

Its derivative in y is -Φ(-z), which increases with y, so Newton's method finds the root of H = δ
(docs/theory/closed_form, Lemma 6).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from typing import NamedTuple

from pyengine._support.caches import kept
from pyengine.engines.answers import Triple

__all__ = ["small_epsilon"]

LARGEST = 0.01  # largest ε that is computed here
FARTHEST = 8.0  # largest μ and z: beyond, the series of Φ is long
DECIMALS = Context(prec=45)
KNOWN = Decimal("1e-28")  # error of H relative to H(0), as μ and p are sums of two doubles
ROUNDING = Decimal("1e-40")  # absolute rounding of H: some hundred operations on numbers up to 1
ROOT_TWO_PI = Decimal("2.50662827463100050241576528481104525300698674060993831662992357634229")
ROUNDS = 10  # most Newton steps


def _normal(x: Decimal) -> Decimal:
    """Φ(x) = 1/2 + x φ(x) Σ x^{2k}/(2k + 1)!!, in the precision of the context."""
    square, k = x * x, 0
    term = total = Decimal(1)
    while term > total * Decimal("1e-44"):
        k += 1
        term *= square / (2 * k + 1)
        total += term
    return Decimal("0.5") + x * (-square / 2).exp() / ROOT_TWO_PI * total


class _SampledStep(NamedTuple):
    """μ, the shift over the noise, and the sampling probability p."""

    mu: Decimal
    p: Decimal

    def z(self, y: Decimal) -> Decimal:
        """The threshold, in units of the noise, at which the likelihood ratio is 1 + y."""
        return (1 + y / self.p).ln() / self.mu + self.mu / 2

    def profile(self, y: Decimal) -> tuple[Decimal, Decimal]:
        """H at ε = log(1 + y), and minus its derivative, Φ(-z)."""
        z = self.z(y)
        fall = _normal(-z)
        return self.p * _normal(self.mu - z) - (self.p + y) * fall, fall


@kept(64)
def _at_zero(step: _SampledStep) -> Decimal:
    """H at ε = 0, cached."""
    with localcontext(DECIMALS):
        return step.profile(Decimal(0))[0]


def small_epsilon(
    mu: tuple[float, float], p: tuple[float, float], delta: float, near: float
) -> Triple | None:
    """Value and proven bounds of ε at which the profile of `remove`, or of plain steps, is δ.

    μ and p are sums of two doubles, with p = 1 for plain steps; ``near`` is a positive
    approximation of ε.  None if ε, μ or z are too large, or if Lemma 6 does not apply.
    """
    if not (0.0 < near <= LARGEST and mu[0] <= FARTHEST):
        return None
    with localcontext(DECIMALS):
        step = _SampledStep(*(Decimal(high) + Decimal(low) for high, low in (mu, p)))
        y, whole = Decimal(near).exp() - 1, _at_zero(step)
        goal, doubt = Decimal(delta), whole * KNOWN + ROUNDING
        for _ in range(ROUNDS):
            if not (y > 0 and step.z(y) <= FARTHEST):
                return None
            height, fall = step.profile(y)
            if abs(height - goal) <= doubt:
                break
            y += (height - goal) / fall
        # within reach, Φ(-z) stays above half of it: z moves by less than reach/(μ (p + y - reach))
        reach = 4 * doubt / fall
        if not (abs(height - goal) <= doubt and reach < y and 40 * reach < step.mu * step.p):
            return None
        value, lower, upper = (float((1 + end).ln()) for end in (y, y - reach, y + reach))
    return value, math.nextafter(lower, 0.0), math.nextafter(upper, 1.0)
