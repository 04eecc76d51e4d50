"""Noncentral chi-squared tails and their roots in arbitrary precision.

The inversion has no proven error bound: each number is computed on two parabolas that differ in
bend, base point and spacing, and only digits on which both agree are returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from flint import arb, ctx

from pyengine.errors import AccuracyError
from pyengine.reference.chi_squared.ncx2 import FIRST, SECOND, Curve, inversion
from pyengine.reference.roots import bracket

__all__ = ["agreed", "solve", "tails"]


RUNS = (FIRST, SECOND)
APART = 12  # bits of precision by which the second run exceeds the first
NEAR_BITS = 50  # precision of the first search for a root


def tails(x: arb, d: arb, lam: arb, run: Curve, bits: int) -> tuple[arb, arb]:
    """Masses of χ²_d(lam) below and above x, the smaller one by inversion; no bound."""
    upper = bool(x > d + lam)
    tail = inversion(x, d, lam, "sf" if upper else "cdf", run, bits).mid()
    return (1 - tail, tail) if upper else (tail, 1 - tail)


def solve(gap: Callable[[arb, int], arb], low: float, high: float, bits: int) -> arb:
    """Root x, with log x in [low, high], of an increasing function ``gap(x, bits)``."""
    ends = arb(low), arb(high)
    for asked in (NEAR_BITS, bits):
        found = bracket(partial(_along, gap, asked), *ends, 0.3 * asked - 5)
        if found is None:
            raise AccuracyError("a root was not found; ask for fewer digits")
        ends = found
    return ((ends[0] + ends[1]) / 2).exp().mid()


def _along(gap: Callable[[arb, int], arb], bits: int, log_x: arb) -> arb:
    return gap(log_x.exp().mid(), bits)


def agreed(compute: Callable[[Curve, int], arb], digits: int) -> arb:
    """Compute by both runs, with more and more bits, until they agree on so many digits.

    The second run has more bits, so that roundings differ, too.
    """
    old = ctx.prec
    try:
        for factor in (1, 2, 4):
            bits = factor * (math.ceil(3.33 * digits) + 36)
            ctx.prec = bits + APART + 160
            first, second = (compute(run, bits + k * APART) for k, run in enumerate(RUNS))
            if abs(first - second) <= abs(second) * arb(10) ** -digits:
                return second.mid()
    finally:
        ctx.prec = old
    raise AccuracyError(f"two runs do not agree on {digits} digits; ask for fewer")
