"""ε next to 0 of one Gaussian step: what a profile has lost since ε = 0, without a difference.

δ(ε) in doubles has an error of some 1e-14, which is all of a small ε: it is as large as what the
profile loses from 0 to ε.  With y = e^ε - 1 and H the profile of `remove`, or of plain steps,

    H(0) - H = ∫ a(u) du from 0 to y,   a(u) = Φ(-z(u)),   z(u) = log(1 + u/p)/μ + μ/2,

the mass of the best test under the law without the record.  z > 0 rises and is concave, so a
falls and is convex: its midpoint sums lie below the integral, its trapezoidal ones above.  H(0) is
p erf(μ/√8) in decimals, from which the exact δ is taken (docs/theory/closed_form).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal

from pyengine._support.caches import kept
from pyengine.engines.answers import Triple
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ERFC, UNIT

__all__ = ["small_epsilon"]

LARGEST = 0.01  # epsilon that is looked at
FARTHEST = 8.0  # mu, beyond which the series of erf is long
MOST_PARTS = 64  # of the integral
FINE = 3e-6  # change of z on each part, times 1 + mu, which makes bounds some 1e-12 wide
DECIMALS = Context(prec=60)
KNOWN = Decimal("1e-28")  # relative, of H(0): mu and p are sums of two doubles
HALF_PI_ROOT = Decimal("0.886226925452758013649083741670572591398774728061193564106904")
SLACK = 16.0 * UNIT  # of a logarithm
TRIES = 12


@kept(64)
def _at_zero(mu: tuple[float, float], p: tuple[float, float]) -> Decimal:
    """The profile at 0, p erf(μ/√8).

    By a series of positive terms, erf x = 2x e^{-x²} Σ (2x²)^k/(2k+1)!!/√π.
    """
    context = DECIMALS
    shift = context.add(Decimal(mu[0]), Decimal(mu[1]))
    square = context.divide(context.multiply(shift, shift), Decimal(8))
    term = total = Decimal(1)
    k = 0
    while term > total * Decimal("1e-55"):
        k += 1
        factor = context.divide(context.multiply(Decimal(2), square), Decimal(2 * k + 1))
        term = context.multiply(term, factor)
        total = context.add(total, term)
    scale = context.multiply(context.sqrt(square), context.exp(context.minus(square)))
    found = context.divide(context.multiply(scale, total), HALF_PI_ROOT)
    return context.multiply(found, context.add(Decimal(p[0]), Decimal(p[1])))


def _mass(u: float, mu: float, p: float) -> float:
    """a(u), with a relative error below `_error`."""
    return 0.5 * fn.erfc((fn.log1p(u / p) / mu + 0.5 * mu) * math.sqrt(0.5))


def _sums(y: float, mu: float, p: float, parts: int) -> tuple[float, float, float]:
    """Bounds of the integral from 0 to y, and the integrand there."""
    h = y / parts
    inner = [_mass(k * h, mu, p) for k in range(parts + 1)]
    middle = [_mass((k + 0.5) * h, mu, p) for k in range(parts)]
    z = fn.log1p(y / p) / mu + 0.5 * mu
    # z and the argument of erfc err by 19 z units of rounding, which erfc makes 19 z (z + 1)
    error = (24.0 + ERFC + 24.0 * z * (z + 1.0)) * UNIT
    low = h * math.fsum(middle) * (1.0 - error)
    high = h * (math.fsum(inner) - 0.5 * (inner[0] + inner[-1])) * (1.0 + error)
    return low, high, inner[-1]


def small_epsilon(
    mu: tuple[float, float], p: tuple[float, float], delta: float, near: float
) -> Triple | None:
    """Value and bounds of ε at which the profile of `remove`, or of plain steps, is δ.

    Parameters
    ----------
    mu, p : tuple of two floats
        Shift over noise, and sampling probability, as sums of two doubles; p is 1 of plain steps.
    delta : float
        In (0, 1).
    near : float
        A positive approximation of ε.

    Returns
    -------
    tuple of float or None
        Proven bounds, given what docs/theory/arithmetic assumes of log1p and erfc; None where they
        are not for so large an ε or μ, or close to nothing.
    """
    if not (0.0 < near <= LARGEST and mu[0] <= FARTHEST):
        return None
    first = _at_zero(mu, p)
    exact = DECIMALS.subtract(first, Decimal(delta))
    doubt = DECIMALS.multiply(first, KNOWN)
    least = float(DECIMALS.subtract(exact, doubt)) * (1.0 - 2.0 * UNIT)
    most = float(DECIMALS.add(exact, doubt)) * (1.0 + 2.0 * UNIT)
    if not least > 0.0:
        return None
    y = fn.expm1(near)
    parts = max(1, math.ceil(min(y * (1.0 + mu[0]) / (p[0] * mu[0] * FINE), MOST_PARTS)))
    for _ in range(2):
        low, high, slope = _sums(y, mu[0], p[0], parts)
        y += (0.5 * (least + most) - (2.0 * low + high) / 3.0) / slope
        if not y > 0.0:
            return None
    reach = (high - low) / low
    for _ in range(TRIES):
        below, above = y * (1.0 - reach), y * (1.0 + reach)
        lost = (_sums(end, mu[0], p[0], parts) for end in (below, above))
        if next(lost)[1] <= least and next(lost)[0] >= most:
            lower, upper = fn.log1p(below) * (1.0 - SLACK), fn.log1p(above) * (1.0 + SLACK)
            return fn.log1p(y), lower, upper
        reach *= 1.5
    return None
