"""Noncentral chi-squared tails and their roots in arbitrary precision.

The inversion integral of the law's Laplace transform on a parabola through a point near the saddle
point, by the midpoint rule, which converges like exp(-constant/h).  There is no proven error bound:
each number is computed on two parabolas that differ in bend, base point and step, and only what
both agree on is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from flint import acb, arb, ctx, fmpq

from pyengine.errors import AccuracyError

__all__ = ["ChiSquareTails", "Run", "agreed", "exact", "solve", "tails"]


class Run(NamedTuple):
    """One way to compute: bend and base point of the curve, fineness of the rule."""

    bend: str
    offset: float
    fineness: float


RUNS = (Run("0.25", 0.7, 15.3), Run("0.4", 0.95, 17.0))
BITS_OF_RUN = 125  # what the finenesses above resolve, in bits


class ChiSquareTails(NamedTuple):
    """Distribution function, survival function and density at one point."""

    below: arb
    above: arb
    density: arb


def exact(value: float | Fraction) -> arb:
    """Return a double or a fraction as a ball at the current precision."""
    ratio = Fraction(value)
    return arb(fmpq(ratio.numerator, ratio.denominator))


def _inversion(x: arb, d: arb, lam: arb, run: Run, upper: bool, bits: int) -> tuple[arb, arb]:
    """Tail and density on one curve; the pole at 1/w lies right of it for the upper tail."""
    w = ((d + (d * d + 4 * lam * x).sqrt()) / (2 * x)).mid()
    kappa = float(x * w + lam / w)
    u = float(1 / w)
    gap = run.offset / math.sqrt(kappa)
    c = 1.0
    if abs(u - 1) < gap:
        c = u - min(gap, 0.45 * u) if upper else u + min(gap, 0.45)
    distance = min(abs(float(1 / w - arb(c))), 0.5, 2.5 / math.sqrt(kappa))
    h = arb(distance / run.fineness * min(1.0, BITS_OF_RUN / bits))
    tail, density = arb(0), arb(0)
    first = None
    bend = arb(run.bend)
    for k in range(200_000):
        t = (k + arb(0.5)) * h
        z = acb(c - bend * t * t, t)
        zw = z * w
        term = (-d / 2 * zw.log() + lam / 2 * (1 / zw - 1) - x / 2 * (1 - zw)).exp()
        term *= w * acb(arb(1), 2 * bend * t)
        tail += (term / (1 - zw)).real
        density += term.real / 2
        size = abs(term)
        first = size if first is None else first
        if size < first * arb(2) ** -bits:
            break
    scale = h / arb.pi()
    return ((tail if upper else -tail) * scale).mid(), (density * scale).mid()


def tails(x: arb, d: arb, lam: arb, run: Run, bits: int) -> ChiSquareTails:
    """Both tails of χ²_d(lam) at x; the smaller one is the integral, the other its complement."""
    upper = bool(x > d + lam)
    tail, density = _inversion(x, d, lam, run, upper, bits)
    return (
        ChiSquareTails(1 - tail, tail, density)
        if upper
        else ChiSquareTails(tail, 1 - tail, density)
    )


def solve(
    function: Callable[[arb, int], tuple[arb, arb]], low: float, high: float, bits: int
) -> arb:
    """Root in x of an increasing function of log x, given with its derivative by x.

    Bisection at low precision finds where, Newton's method at full precision says what.
    """
    for _ in range(200):
        middle = 0.5 * (low + high)
        value = function(arb(middle).exp().mid(), 50)[0].mid()
        low, high = (middle, high) if value < 0 else (low, middle)
        if high - low < 1e-3 * max(1e-9, min(1.0, abs(float(value)))) or high - low < 1e-13:
            break
    x = arb(0.5 * (low + high)).exp().mid()
    for _ in range(100):
        value, slope = function(x, bits)
        step = (value / slope).mid()
        limit = x / 2
        step = step if abs(step) < limit else (limit if step > 0 else -limit).mid()
        x = (x - step).mid()
        if abs(step) < x * arb(2) ** -(bits - 12):
            return x
    raise AccuracyError("Newton's method did not converge; ask for fewer digits")


def agreed(compute: Callable[[Run, int], arb], digits: int) -> arb:
    """Compute by both runs, at more precision until they agree on so many digits."""
    old = ctx.prec
    try:
        for factor in (1, 2, 4):
            bits = factor * (math.ceil(3.33 * digits) + 20)
            ctx.prec = bits + 160
            first, second = (compute(run, bits) for run in RUNS)
            if abs(first - second) <= abs(first) * arb(10) ** -digits:
                return first.mid()
    finally:
        ctx.prec = old
    raise AccuracyError(f"two runs do not agree on {digits} digits; ask for fewer")
