"""A composition on a fine lattice as the masses of one step on a coarser one.

Every point of the coarse lattice is one of the fine lattice.  A point of the spread pair has the
ratio e^x exactly: it is split onto the two coarse points around it, which makes the pair more
informative.  The index of a test is a function of the outcome, and so is its nearest multiple.
docs/theory/lattice proves both.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.discretise import StepMasses
from pyengine.engines.lattice.fft_convolution import Sum
from pyengine.engines.lattice.plan import Plan, StepGrid
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["Regridded", "regridded"]

FloatArray = npt.NDArray[np.float64]

UNBOUNDED = 0.5  # tilted mass from which the bounds of what is outside of a window say nothing


class Regridded(NamedTuple):
    """Masses on the coarse lattice, and the A-mass that went to loss -infinity."""

    masses: StepMasses
    beyond: float


class _Lattices(NamedTuple):
    """``ratio`` fine points to a coarse one; ``zero`` is where the fine sum has its index 0."""

    ratio: int
    zero: int
    grid: StepGrid
    size: int


# Map: a composition on a coarser lattice | test_lattice_scales | theory/lattice
def regridded(spread: Sum, a: Sum, b: Sum, fine: Plan, grid: StepGrid, plan: Plan) -> Regridded:
    """Put the sums of a composition on ``fine`` onto the lattice ``grid`` of a plan."""
    if max(part for s in (spread, a, b) for part in (s.below, s.above)) > UNBOUNDED:
        raise AccuracyError(
            "the sum of the small steps has more mass outside of its window than can be bounded: "
            "ask for a larger tolerance, or for each kind of steps apart"
        )
    outer, tilt = plan.place.outer, plan.place.tilt
    ratio = round(plan.spacing / fine.spacing)
    zero = (fine.centre - Fraction(grid.anchor)) / Fraction(fine.spacing)
    assert plan.spacing == ratio * fine.spacing
    assert zero.denominator == 1
    on = _Lattices(ratio, int(zero), grid, grid.last + 1)
    rate = tilt * plan.spacing
    rate_b = rate - plan.spacing
    # of B, such that its sum is scaled by nothing
    log_scale_b = _exponent(b, on, rate_b)[0]
    split = _split(spread, on, plan.spacing, rate, grid.log_scale, outer)
    beyond = 0.0
    if outer:
        lost = spread.log_scale - spread.rate * (spread.first - 1.0)
        doubt = UNIT * (64.0 + 8.0 * (abs(spread.log_scale) + abs(spread.rate * spread.first)))
        beyond = spread.below * fn.exp(min(lost + doubt + spread.scale_error, 700.0))
    first = _merged(a, on, rate, grid.log_scale, not outer)
    second = _merged(b, on, rate_b, log_scale_b, True)
    return Regridded(StepMasses(split, first, second, log_scale_b, 0.0, 0.0), beyond)


def _exponent(part: Sum, on: _Lattices, rate: float) -> tuple[float, float]:
    """Log of a mass at a coarse point over what is kept there, and the error of its relatives.

    The fine index i = ratio k' - zero of a coarse one has the exponent log_scale - rate_f i, where
    rate = ratio rate_f, and what is kept is tilted by rate (k' - first - centre).
    """
    place = part.rate * (on.zero - part.shift)
    centre = rate * (on.grid.first + on.grid.centre)
    doubt = UNIT * (64.0 + 8.0 * (abs(part.log_scale) + abs(place) + abs(centre)))
    return part.log_scale + place - centre, doubt + part.scale_error


def _rows(values: FloatArray, start: int, ratio: int) -> tuple[FloatArray, int]:
    """Values from an index on in rows of multiples of the ratio, and the first such multiple."""
    before = start % ratio
    after = -(before + values.size) % ratio
    rows = np.concatenate([np.zeros(before), values, np.zeros(after)]).reshape(-1, ratio)
    return rows, start // ratio


def _bounded(part: Sum, is_upper: bool) -> FloatArray:
    """Masses of a sum that are not below, or not above, the true ones."""
    if is_upper:
        return part.mass + part.noise
    return np.maximum(part.mass - (part.noise + part.below + part.above), 0.0)


def _split(
    part: Sum, on: _Lattices, spacing: float, rate: float, log_scale: float, is_upper: bool
) -> FloatArray:
    """Every point onto the coarse ones around it, with its mass of both laws."""
    rows, first = _rows(_bounded(part, is_upper), on.zero + part.first, on.ratio)
    share = np.arange(on.ratio) / on.ratio
    # (1 - f, f) with (1 - f) + f e^h = e^{share h}: both without cancellation
    whole = fn.expm1(spacing)
    up = fn.expm1(share * spacing) / whole
    down = fn.exp(share * spacing) * fn.expm1((1.0 - share) * spacing) / whole
    spread = np.zeros(on.size)
    at = first - on.grid.first
    spread[at : at + len(rows)] += rows @ (down * fn.exp(-rate * share))
    spread[at + 1 : at + 1 + len(rows)] += rows @ (up * fn.exp(rate * (1.0 - share)))
    if is_upper:  # what lies above may lose in ratio, but not in mass
        spread[at + len(rows) - 1] += part.above * fn.exp(2.0 * abs(rate))
    return _scaled(spread, part, on, rate, log_scale, is_upper)


def _merged(part: Sum, on: _Lattices, rate: float, log_scale: float, is_upper: bool) -> FloatArray:
    """Every point to the nearest coarse one: a test's index is any function of the outcome."""
    half = on.ratio // 2
    rows, first = _rows(_bounded(part, is_upper), on.zero + part.first + half, on.ratio)
    share = (np.arange(on.ratio) - half) / on.ratio
    merged = np.zeros(on.size)
    at = first - on.grid.first
    merged[at : at + len(rows)] = rows @ fn.exp(-rate * share)
    if is_upper:  # outcomes outside of the window count at its ends
        merged[at] += part.below * fn.exp(2.0 * abs(rate))
        merged[at + len(rows) - 1] += part.above * fn.exp(2.0 * abs(rate))
    return _scaled(merged, part, on, rate, log_scale, is_upper)


def _scaled(
    array: FloatArray, part: Sum, on: _Lattices, rate: float, log_scale: float, is_upper: bool
) -> FloatArray:
    exponent, doubt = _exponent(part, on, rate)
    doubt += UNIT * (64.0 + 2.0 * on.ratio + 8.0 * abs(rate) + 4.0 * abs(log_scale))
    scale = fn.exp(exponent - log_scale)
    return array * (scale * (1.0 + 2.0 * doubt if is_upper else 1.0 - 2.0 * doubt))
