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
NEAR, NEAR_BITS = 1e-6, 50  # from where on Newton's method is left alone, and precision before
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

    Newton's method at low precision, with halving wherever it does not shorten its steps by half,
    finds where; then each of its steps is asked for as many bits as it can gain, and the last one
    for all.
    """
    place, last = 0.5 * (low + high), high - low  # of log x, and the step before
    for _ in range(400):
        at = arb(place).exp().mid()
        value, slope = function(at, NEAR_BITS)
        low, high = (place, high) if value.mid() < 0 else (low, place)
        step = -float((value / (slope * at)).mid())
        if not (abs(step) <= 0.5 * abs(last) and low < place + step < high):
            step = 0.5 * (low + high) - place
        place, last = place + step, step
        if abs(step) < NEAR:
            break
    x, asked = arb(place).exp().mid(), min(2 * NEAR_BITS, bits)
    for _ in range(100):
        value, slope = function(x, asked)
        move = (value / slope).mid()
        limit = x / 2
        move = move if abs(move) < limit else (limit if move > 0 else -limit).mid()
        x = (x - move).mid()
        if asked == bits and abs(move) < x * arb(2) ** -(bits - 12):
            return x
        gained = 0 if move == 0 else -int(float((abs(move) / x).log()) / math.log(2.0))
        asked = min(bits, max(2 * gained + NEAR_BITS, asked + 20))
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
