"""ε next to 0 of one Gaussian step: from what a profile has lost since ε = 0, in decimals.

δ(ε) in doubles has an error of some 1e-14, which is all of a small ε: it is as large as what the
profile loses from 0 to ε.  With y = e^ε - 1 the profile of `remove`, or of plain steps, is

    H = p Φ(μ - z) - (p + y) Φ(-z),   z = log(1 + y/p)/μ + μ/2,

whose derivative -Φ(-z) rises with y, so that Newton's method finds where H is δ (docs,
theory/closed_form).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from typing import NamedTuple

from pyengine._support.caches import kept
from pyengine.engines.answers import Triple

__all__ = ["small_epsilon"]

LARGEST = 0.01  # epsilon that is looked at
FARTHEST = 8.0  # mu and z, beyond which the series of Φ is long
DECIMALS = Context(prec=45)
KNOWN = Decimal("1e-28")  # relative, of H(0): mu and p are sums of two doubles
ROUNDING = Decimal("1e-40")  # of H, several hundred operations on numbers of at most 1
ROOT_TWO_PI = Decimal("2.50662827463100050241576528481104525300698674060993831662992357634229")
ROUNDS = 10


def _normal(x: Decimal) -> Decimal:
    """Φ(x) = 1/2 + x φ(x) Σ x^{2k}/(2k + 1)!!, in the context's digits."""
    square, k = x * x, 0
    term = total = Decimal(1)
    while term > total * Decimal("1e-44"):
        k += 1
        term *= square / (2 * k + 1)
        total += term
    return Decimal("0.5") + x * (-square / 2).exp() / ROOT_TWO_PI * total


class _SampledStep(NamedTuple):
    """Shift over noise, and sampling probability."""

    mu: Decimal
    p: Decimal

    def z(self, y: Decimal) -> Decimal:
        """Where both densities are at the ratio 1 + y, over the noise."""
        return (1 + y / self.p).ln() / self.mu + self.mu / 2

    def profile(self, y: Decimal) -> tuple[Decimal, Decimal]:
        """H at ε = log(1 + y), and Φ(-z), by which it falls."""
        z = self.z(y)
        fall = _normal(-z)
        return self.p * _normal(self.mu - z) - (self.p + y) * fall, fall


@kept(64)
def _at_zero(step: _SampledStep) -> Decimal:
    """H(0)."""
    with localcontext(DECIMALS):
        return step.profile(Decimal(0))[0]


def small_epsilon(
    mu: tuple[float, float], p: tuple[float, float], delta: float, near: float
) -> Triple | None:
    """Value and proven bounds of ε at which the profile of `remove`, or of plain steps, is δ.

    μ and p are sums of two doubles, p is 1 of plain steps, and ``near`` is a positive approximation
    of ε.  None where ε, μ or z are too large, or the bounds are close to nothing.
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
        # within it Φ(-z) is not half as large: z moves by less than reach/(μ (p + y - reach))
        reach = 4 * doubt / fall
        if not (abs(height - goal) <= doubt and reach < y and 40 * reach < step.mu * step.p):
            return None
        value, lower, upper = (float((1 + end).ln()) for end in (y, y - reach, y + reach))
    return value, math.nextafter(lower, 0.0), math.nextafter(upper, 1.0)
