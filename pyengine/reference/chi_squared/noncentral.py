"""Noncentral chi-squared tails and their roots in arbitrary precision.

The inversion integral has no proven error bound here: each number is computed on two parabolas that
differ in bend, base point and step, and only what both agree on is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from flint import arb, ctx

from pyengine.errors import AccuracyError
from pyengine.reference.chi_squared.ncx2 import FIRST, SECOND, Curve, inversion

__all__ = ["ChiSquareTails", "agreed", "solve", "tails"]


RUNS = (FIRST, SECOND)
NEAR, NEAR_BITS = 1e-6, 50  # from where on Newton's method is left alone, and precision before


class ChiSquareTails(NamedTuple):
    """Distribution function, survival function and density at one point."""

    below: arb
    above: arb
    density: arb


def tails(x: arb, d: arb, lam: arb, run: Curve, bits: int) -> ChiSquareTails:
    """Both tails of χ²_d(lam) at x; the smaller one is the integral, the other its complement."""
    upper = bool(x > d + lam)
    found = inversion(x, d, lam, "sf" if upper else "cdf", run, bits)
    tail, density = (value.mid() for value in found)
    return ChiSquareTails(*((1 - tail, tail) if upper else (tail, 1 - tail)), density)


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


def agreed(compute: Callable[[Curve, int], arb], digits: int) -> arb:
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
