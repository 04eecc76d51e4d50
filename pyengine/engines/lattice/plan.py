"""Choice of a lattice: spacing, ranges of the steps and window of the sum.

All numbers here come from the survey and are guesses; the composition certifies what they lead to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.survey import Part, Survey, scaled_tail
from pyengine.laws.base import StepLaw

__all__ = ["MOST_POINTS", "Place", "Plan", "StepGrid", "make_plan"]

FloatArray = npt.NDArray[np.float64]

MOST_POINTS = 2**24
SMALL = 1e-3  # what truncation and aliases may take of the tolerance
LEAST_POINTS = 2**10
NOISE = 2.5e-14  # rounding of a transform, roughly, in parts of the mass
SMALLER = (0.8, 0.6, 0.4, 0.2, 0.0)  # tilts tried, as parts of the saddle point's
FACTORS = np.geomspace(2.0**-10, 64.0, 49)  # distances of tilts, in units of 1/sd
SPARE = 64  # points beyond the window


@dataclass(frozen=True)
class Place:
    """Where on the line of losses a composition is to be accurate.

    Parameters
    ----------
    tilt : float
        Exponent of the tilt; at most 0 where ``outer``, else in (0, 1).
    outer : bool
        Whether lower tails of the loss are asked for, under both laws; else A's upper and B's
        lower tail.
    reach : tuple of float
        Range of losses that are asked for.
    """

    tilt: float
    outer: bool
    reach: tuple[float, float]


@dataclass(frozen=True)
class StepGrid:
    """Lattice of one kind of step: points ``anchor + (first + k) spacing``, k = 0 ... last.

    ``centre`` is the k near the tilted mean, ``log_scale`` the log of the mass, tilted around it.
    """

    anchor: float
    first: int
    last: int
    centre: int
    log_scale: float


@dataclass(frozen=True)
class Plan:
    """A lattice of ``points`` points; index 0 of the sum is the loss ``centre``."""

    place: Place
    spacing: float
    grids: tuple[StepGrid, ...]
    centre: Fraction
    first: int
    points: int
    aside: tuple[float, float]  # tilts of the Chernoff bounds below and above the window


def _window(found: Survey, tilt: float, log_small: float) -> tuple[float, float, float, float]:
    """Losses beyond which the tilted law has little mass, and the tilts of Chernoff's bounds."""
    total, _, variance = found.cumulants(tilt)
    deviation = math.sqrt(max(variance, 1e-300))
    ends = []
    for sign in (-1.0, 1.0):
        others = tilt + sign * FACTORS / deviation
        others = others[np.abs(others - tilt) * found.width < 600.0]
        if not others.size:
            others = np.array([tilt + sign * 300.0 / max(found.width, 1e-300)])
        edges = (found.many(others)[0] - total - log_small) / (others - tilt)
        best = int(np.argmin(sign * edges))
        ends += [float(edges[best]), float(others[best])]
    return ends[0], ends[2], ends[1], ends[3]


def _range(
    law: StepLaw,
    loss: FloatArray,
    log_a: FloatArray,
    tilt: float,
    log_scale: float,
    log_small: float,
    log_lost: float,
) -> tuple[float, float, npt.NDArray[np.bool_]]:
    """Where one step's mass may be folded onto the ends of its range, and the atoms inside."""
    bare = np.logaddexp.accumulate(log_a)
    # for a tilt <= 0, whatever the other steps do, a step adds no more than its bare mass
    outside = bare < log_lost if tilt <= 0.0 else bare + tilt * loss - log_scale < log_small
    low = int(np.argmin(outside))  # the first that must be inside
    above = np.logaddexp.accumulate((log_a + tilt * loss - log_scale)[::-1])[::-1]
    bare = np.logaddexp.accumulate((log_a + loss)[::-1])[::-1]
    outside = (above < log_small) & (bare + (tilt - 1.0) * loss - log_scale < log_small)
    high = loss.size - 1 - int(np.argmin(outside[::-1]))
    lowest, highest = law.support()
    inside = np.zeros(loss.size, dtype=np.bool_)
    inside[max(low - 2, 0) : high + 3] = True
    return (
        float(loss[low - 2]) if low >= 2 else max(lowest, float(loss[0]) - 1.0),
        float(loss[high + 2]) if high + 2 < loss.size else min(highest, float(loss[-1]) + 1.0),
        inside,
    )


def _anchors(parts: tuple[Part, ...], spacing: float) -> tuple[list[float], float, float | None]:
    """Anchors on which atoms at the ends of supports lie, a spacing and what it must divide."""
    anchors = []
    unit = None
    for law, _ in parts:
        lattice, (lowest, highest) = law.spacing(), law.support()
        if lattice is not None:
            anchors.append(lattice[0])
            unit = unit or lattice[1]
        else:
            finite = [x for x in (lowest, highest) if math.isfinite(x)]
            anchors.append(finite[0] if finite else 0.0)
            if len(finite) == 2 and highest > lowest:
                unit = unit or highest - lowest
    if unit is not None:
        spacing = unit / max(math.ceil(unit / spacing - 1e-6), 1)
    return anchors, spacing, unit


def _folded(loss: FloatArray, log_a: FloatArray, inside: npt.NDArray[np.bool_]) -> FloatArray:
    """Masses inside a range, with what is beyond it at its ends, for the larger of both laws."""
    first, last = np.flatnonzero(inside)[[0, -1]]
    kept = log_a[inside].copy()
    kept[0] = np.logaddexp.reduce(log_a[: first + 1])
    if last + 1 < loss.size:
        beyond = np.logaddexp.reduce((log_a + loss)[last + 1 :]) - loss[last]
        kept[-1] = np.logaddexp(kept[-1], beyond)
    return kept


class _Sketch(NamedTuple):
    tilt: float
    ranges: list[tuple[float, float, npt.NDArray[np.bool_]]]
    window: tuple[float, float, float, float]

    @property
    def width(self) -> float:
        return self.window[1] - self.window[0]


def _sketch(
    parts: tuple[Part, ...], found: Survey, place: Place, tilt: float, log_small: float
) -> _Sketch:
    """Ranges of the steps and window of the sum with a given tilt."""
    log_each = log_small - math.log(sum(found.steps))
    total = found.cumulants(tilt)[0]
    log_value = total - tilt * place.reach[0] if place.outer else 0.0
    ranges = [
        _range(law, loss, log_a, tilt, scale, log_each, log_each + log_value)
        for (law, _), loss, log_a, (scale, _) in zip(
            parts, found.loss, found.log_mass, found.step_cumulants(tilt), strict=True
        )
    ]
    cut = Survey(
        tuple(loss[r[2]] for loss, r in zip(found.loss, ranges, strict=True)),
        tuple(
            _folded(loss, log_a, r[2])
            for loss, log_a, r in zip(found.loss, found.log_mass, ranges, strict=True)
        ),
        found.steps,
    )
    s_low, s_high, tilt_low, tilt_high = _window(cut, tilt, log_small)
    return _Sketch(tilt, ranges, (min(s_low, place.reach[0]), s_high, tilt_low, tilt_high))


def _best_sketch(parts: tuple[Part, ...], found: Survey, place: Place, tolerance: float) -> _Sketch:
    """The tilt of the narrowest window among those at which rounding does not matter.

    The saddle point needs the fewest digits, but where single large steps matter its tilted law is
    much wider than that of a smaller tilt.
    """
    total, mean, variance = found.cumulants(place.tilt)
    share = min(scaled_tail(abs(place.tilt) * math.sqrt(max(variance, 1e-300))), 1.0)
    if place.outer:
        share *= -math.expm1(-1.0 / (1.0 + abs(place.tilt)))
    log_small = math.log(SMALL * tolerance * share / (1.0 + abs(place.tilt))) - 3.0
    best = _sketch(parts, found, place, place.tilt, log_small)
    if not place.outer or place.tilt == 0.0:
        return best
    bulk = 2.5 * math.sqrt(found.cumulants(0.0)[2])
    for factor in SMALLER:
        tilt = factor * place.tilt
        noise = NOISE * sum(found.steps) / max(bulk * abs(tilt), 1.0)
        allowed = math.log(0.05 * tolerance * share / noise) - 1.0
        excess = (found.cumulants(tilt)[0] - tilt * mean) - (total - place.tilt * mean)
        if excess > allowed:
            break
        other = _sketch(parts, found, place, tilt, log_small - excess)
        if other.width < best.width:
            best = other
    return best


def make_plan(
    parts: tuple[Part, ...],
    found: Survey,
    place: Place,
    spacing: float,
    tolerance: float,
    limit: int = MOST_POINTS,
) -> Plan:
    """Lay out a lattice of at most a given spacing, but of no more than about ``limit`` points."""
    sketch = _best_sketch(parts, found, place, tolerance)
    s_low, s_high, *aside = sketch.window
    widest = max(s_high - s_low, *(high - low for low, high, _ in sketch.ranges))
    spacing = max(spacing, widest / (limit - SPARE))
    anchors, h, points = _layout(parts, spacing, s_high - s_low)
    grids, centre = [], Fraction(0)
    for (low, high, _), anchor, steps, (scale, mean) in zip(
        sketch.ranges, anchors, found.steps, found.step_cumulants(sketch.tilt), strict=True
    ):
        first, last = math.floor((low - anchor) / h) - 2, math.ceil((high - anchor) / h)
        middle = round((mean - anchor) / h)
        scale -= sketch.tilt * (anchor + middle * h)
        grids.append(StepGrid(anchor, first, last - first, middle - first, scale))
        centre += steps * (Fraction(anchor) + middle * Fraction(h))
    first_point = math.floor((s_low - float(centre)) / h) - SPARE // 2
    room = points - math.ceil((s_high - s_low) / h) - SPARE
    return Plan(
        replace(place, tilt=sketch.tilt),
        h,
        tuple(grids),
        centre,
        first_point - room // 2,
        points,
        (aside[0], aside[1]),
    )


def _layout(
    parts: tuple[Part, ...], spacing: float, width: float
) -> tuple[list[float], float, int]:
    """Anchors, a spacing of at most the given one, and a number of points that the FFT likes."""
    anchors, h, unit = _anchors(parts, spacing)
    needed = width / h + SPARE
    power = 2 ** math.ceil(math.log2(needed))
    points = max(power * 3 // 4 if 4.0 * needed <= 3.0 * power else power, LEAST_POINTS)
    # the points are there: use them
    finer = width / (points - SPARE)
    if unit is None:
        h = max(finer, 0.25 * h)
    else:
        h = unit / max(math.floor(unit / max(finer, 0.25 * h)), 1)
    return anchors, h, points
