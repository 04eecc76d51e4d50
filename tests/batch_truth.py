"""Independent truth for schemes of batches: nothing here shares code with pyengine.

- One epoch of random allocation: Laplace inversion of the law of a sum of lognormal numbers on a
  hyperbola, in ball arithmetic used as long floats (python-flint); two hyperbolas and two lattices
  must agree.
- Truncated Poisson samples: binomial tails as exact fractions, and closed profiles of single steps.
- Bounded range: the outer parameter by brute force.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import mpmath
import numpy as np
from flint import acb, arb
from outcomes import sampled_gaussian_delta

__all__ = ["bounded_range_profile", "epoch_profile", "truncated_profile"]

BITS = 400
DEPTH = 85.0  # errors are e^-DEPTH of the terms
AGREED = 1e-30  # relative difference of two values of one profile


class NoTruthError(Exception):
    """Two ways to compute a value do not agree."""


def _plain_transform(mu: float, z: float) -> float:
    x = np.linspace(-12.0, 12.0, 4001)
    with np.errstate(over="ignore"):
        terms = np.exp(-0.5 * x * x - z * np.exp(mu * x - 0.5 * mu * mu))
    return float(terms.sum() * (x[1] - x[0]) / math.sqrt(2.0 * math.pi))


def _saddle(mu: float, steps: int, k: float) -> float:
    """The point on the positive axis where e^{zk} l(z)^t / z² is smallest."""

    def exponent(log_z: float) -> float:
        z = math.exp(log_z)
        return z * k + steps * math.log(max(_plain_transform(mu, z), 1e-300)) - 2.0 * log_z

    grid = np.linspace(-14.0, 9.0, 93).tolist()
    best = min(range(len(grid)), key=lambda i: exponent(grid[i]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    for _ in range(30):
        one, two = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, two) if exponent(one) < exponent(two) else (one, high)
    return math.exp(0.5 * (low + high))


def _partial_mean(mu: arb, steps: int, k: arb, angle: float, finer: float) -> arb:
    """E (k - S)+ as (1/2πi) times the integral of e^{zk} l(z)^t / z² over a hyperbola."""
    slope = float(mu)
    vertex = _saddle(slope, steps, float(k))
    scale = arb(vertex) / (1 - arb(angle).sin())
    kept = 0.7  # angle of z that a shift of x does not remove
    strip = min((math.pi / 2 - kept) / slope * 0.95, 15.0)
    most = (math.pi / 2 + angle - kept) / slope  # shift of x
    width = arb(2.0 * math.pi * strip / (DEPTH + 0.5 * strip**2 + 0.5 * most**2) / finer)
    reach = math.sqrt(2.0 * (DEPTH + 0.5 * most**2)) + 1.0
    count = int(reach / float(width)) + 1
    places = [width * j for j in range(-count, count + 1)]
    factors = [(mu * x - mu * mu / 2).exp() for x in places]
    bells = [(-x * x / 2).exp() * width / (2 * arb.pi()).sqrt() for x in places]

    def transform(z: acb) -> acb:
        turn = arb(z.arg().mid())
        rest = max(abs(float(turn)) - kept, 0.0)
        psi = arb(math.copysign(rest, float(turn)))
        shift = psi / mu
        turned = z * acb(0, -psi).exp()
        total = acb(0)
        for x, factor, bell in zip(places, factors, bells, strict=True):
            phase = acb(shift * shift / 2, x * shift)
            total += bell * (phase - turned * factor).exp()
        return acb(total.real.mid(), total.imag.mid())

    step = arb(2.0 * math.pi * 0.9 * angle / DEPTH / finer)  # e^{zk} may grow beyond this angle
    total, peak, quiet, j = arb(0), 0.0, 0, 0
    while quiet < 6:
        u = step * j
        cosh, sinh = u.cosh(), u.sinh()
        z = acb(scale * (1 - arb(angle).sin() * cosh), scale * arb(angle).cos() * sinh)
        slope_z = acb(-scale * arb(angle).sin() * sinh, scale * arb(angle).cos() * cosh)
        term = ((z * k).exp() * transform(z) ** steps / (z * z) * slope_z / acb(0, 1)).real.mid()
        total += term if j else term / 2
        size = float(abs(term).log()) if term != 0 else -1e9
        peak = size if j == 0 else max(peak, size)
        quiet = quiet + 1 if size < peak - DEPTH else 0
        j += 1
        if j > 3000:
            raise NoTruthError("the hyperbola is too long")
    return arb((total * step / arb.pi()).mid())


def epoch_profile(noise: float, steps: int, epsilon: float, adjacency: str) -> Any:
    """δ(ε) of one epoch of random allocation, as an mpmath number of some 30 digits.

    `NoTruthError` where two hyperbolas do not agree.
    """
    found = []
    before = flint.ctx.prec
    flint.ctx.prec = BITS
    try:
        mu = 1 / arb(noise)
        for angle, finer in ((0.35, 1.0), (0.45, 1.1)):
            if adjacency == "remove":
                k = steps * arb(epsilon).exp()
                value = (_partial_mean(mu, steps, k, angle, finer) - k + steps) / steps
            else:
                k = steps * (-arb(epsilon)).exp()
                value = _partial_mean(mu, steps, k, angle, finer) / k
            found.append(mpmath.mpf(value.mid().str(60, radius=False)))
    finally:
        flint.ctx.prec = before
    if not abs(found[0] - found[1]) <= AGREED * abs(found[0]):
        raise NoTruthError(f"{found[0]} and {found[1]}")
    return found[0]


def sampled_profile(noise: Any, p: Any, epsilon: Any, adjacency: str) -> Any:
    """δ(ε) of one Poisson-sampled Gaussian step."""
    return sampled_gaussian_delta(1 / mpmath.mpf(noise), p, mpmath.exp(epsilon), adjacency)


def truncated_profile(
    noise: float, p: Fraction, batch: int, records: int, epsilon: float, adjacency: str
) -> Any:
    """δ(ε) of one truncated Poisson sample: known laws, mixed by exact binomial tails."""

    def at_least(trials: int, least: int) -> Fraction:
        top, bottom = p.numerator, p.denominator
        terms = (
            math.comb(trials, i) * top**i * (bottom - top) ** (trials - i)
            for i in range(least, trials + 1)
        )
        return Fraction(sum(terms), bottom**trials)

    full = at_least(records - 1, batch)
    inside = at_least(records, batch + 1) * batch / (records * full)
    with mpmath.workdps(60):
        share, q, rate = (mpmath.mpf(x.numerator) / x.denominator for x in (full, inside, p))
        e = mpmath.mpf(epsilon)
        below = sampled_profile(mpmath.mpf(noise), rate, e, adjacency)
        above = sampled_profile(mpmath.mpf(noise) / 2, q, e, adjacency)
        return (1 - share) * below + share * above


def bounded_range_profile(width: float, steps: int, epsilon: float) -> Any:
    """Best δ(ε) of equal steps of one outer parameter t, by search over t (mpmath)."""
    with mpmath.workdps(30):
        w, e = mpmath.mpf(width), mpmath.mpf(epsilon)

        def profile(t: Any) -> Any:
            a = (mpmath.exp(-t) - mpmath.exp(-w)) / (1 - mpmath.exp(-w))
            b = a * mpmath.exp(t)
            total, slope = mpmath.mpf(0), mpmath.exp(e)
            for i in range(steps + 1):  # losses fall with i
                gain = b ** (steps - i) * (1 - b) ** i - slope * a ** (steps - i) * (1 - a) ** i
                if gain <= 0:
                    break
                total += math.comb(steps, i) * gain
            return total

        count = 12 * (steps + 1)  # each of at most k pieces has one maximum
        grid = [w * i / count for i in range(count + 1)]
        values = [profile(t) for t in grid]
        top, best = max(values), max(values[0], values[-1])
        for i in range(1, count):
            if values[i] >= max(values[i - 1], values[i + 1], 0.8 * top):
                low, high = grid[i - 1], grid[i + 1]
                for _ in range(45):
                    x, y = low + (high - low) * 0.382, low + (high - low) * 0.618
                    low, high = (low, y) if profile(x) > profile(y) else (x, high)
                best = max(best, profile((low + high) / 2))
        return best
