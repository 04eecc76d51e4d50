"""Noncentral chi-squared tails and their roots in arbitrary precision.

The inversion integral has no proven error bound here: each number is computed on two parabolas that
differ in bend, base point and step, and only what both agree on is returned.
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
APART = 12  # bits between two runs
NEAR_BITS = 50  # precision that finds the neighbourhood of a root


def tails(x: arb, d: arb, lam: arb, run: Curve, bits: int) -> tuple[arb, arb]:
    """What χ²_d(lam) has below and above x: the smaller one is the integral."""
    upper = bool(x > d + lam)
    tail = inversion(x, d, lam, "sf" if upper else "cdf", run, bits).mid()
    return (1 - tail, tail) if upper else (tail, 1 - tail)


def solve(gap: Callable[[arb, int], arb], low: float, high: float, bits: int) -> arb:
    """Root in x of a function that increases with log x, first at low precision."""
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
    """Compute by both runs, at more precision until they agree on so many digits.

    The second one has more bits, so that both do not miss a root alike.
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
