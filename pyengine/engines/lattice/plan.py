"""Where a composition is computed: ranges of the steps, the window of the sum, and a lattice.

All numbers here come from coarse cumulants and are guesses; the sums prove what they lead to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.coarse_cumulants import CoarseCumulants, Part, scaled_tail
from pyengine.errors import AccuracyError
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn

__all__ = ["MOST_POINTS", "Place", "Plan", "StepGrid", "common_lattice", "plan_of"]

FloatArray = npt.NDArray[np.float64]
Range = tuple[float, float, npt.NDArray[np.bool_]]  # ends, and the atoms of the survey inside

MOST_POINTS = 2**24
LEAST_POINTS = 2**10
SPARE = 64  # points beyond the window
MOST_BYTES = 3 * 2**29  # of arrays at once
NEARLY_ALL = 0.9  # of the tilted mass of a step
BESIDE = 1e-6  # of the distance of two atoms
SMALL = 1e-3  # what truncation and aliases may take of the tolerance
FACTORS = np.geomspace(2.0**-10, 64.0, 49)  # distances of tilts, in units of 1/sd
NOISE = (1e-12, 1e-25)  # rounding of tail sums in one and in two doubles, in parts of tilted mass
BELOW = 1e-13  # of the tolerance: tails may be so much less than Chernoff's bounds
SMALLER = (0.8, 0.6, 0.4, 0.2)  # tilts tried, as parts of the saddle point's
LIGHT = 16.0  # nats by which what is folded down must lie below the tilted mass


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


class StepGrid(NamedTuple):
    """Lattice of one kind of step: points ``anchor + (first + k) spacing``, k = 0 ... last.

    ``centre`` is the k near the tilted mean, ``log_scale`` the log of the mass, tilted around it.
    """

    anchor: float
    first: int
    last: int
    centre: int
    log_scale: float


class Plan(NamedTuple):
    """A lattice of ``points`` points; index 0 of the sum is the loss ``centre``.

    ``tilt`` is that of the masses, ``aside`` those of Chernoff's bounds below and above the window.
    """

    place: Place
    tilt: float
    spacing: float
    grids: tuple[StepGrid, ...]
    centre: Fraction
    first: int
    points: int
    aside: tuple[float, float]


# ---- ranges of the steps and window of the sum ---------------------------------------------------


class Windows(NamedTuple):
    """Ranges of the steps, and ends and outer tilts of the window, for a tilt."""

    tilt: float
    ranges: list[Range]
    window: tuple[float, float, float, float]

    @property
    def width(self) -> float:
        """Width of the window."""
        return self.window[1] - self.window[0]


# Map: truncation of a lattice to a window | test_lattice | theory/lattice
def _window(
    found: CoarseCumulants, tilt: float, log_small: float
) -> tuple[float, float, float, float]:
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
) -> Range:
    """Where one step's mass may be folded onto the ends of its range, and the atoms inside."""
    bare = fn.log_sums(log_a)
    # for a tilt <= 0, whatever the other steps do, a step adds no more than its bare mass
    outside = bare < log_lost if tilt <= 0.0 else bare + tilt * loss - log_scale < log_small
    low = int(np.argmin(outside))  # the first that must be inside
    above = fn.log_sums((log_a + tilt * loss - log_scale)[::-1])[::-1]
    bare = fn.log_sums((log_a + loss)[::-1])[::-1]
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


def _folded(loss: FloatArray, log_a: FloatArray, inside: npt.NDArray[np.bool_]) -> FloatArray:
    """Masses inside a range, with what is beyond it at its ends, for the larger of both laws."""
    first, last = np.flatnonzero(inside)[[0, -1]]
    kept = log_a[inside].copy()
    kept[0] = fn.log_sum(log_a[: first + 1])
    if last + 1 < loss.size:
        beyond = fn.log_sum((log_a + loss)[last + 1 :]) - loss[last]
        kept[-1] = fn.logaddexp(kept[-1], beyond)
    return kept


def _cut(found: CoarseCumulants, ranges: list[Range]) -> CoarseCumulants:
    """The survey with each step folded onto its range."""
    return CoarseCumulants(
        tuple(loss[r[2]] for loss, r in zip(found.loss, ranges, strict=True)),
        tuple(
            _folded(loss, log_a, r[2])
            for loss, log_a, r in zip(found.loss, found.log_mass, ranges, strict=True)
        ),
        found.steps,
    )


def _lowered(
    loss: FloatArray, given: Range, ceiling: float, log_a: FloatArray, tilt: float
) -> Range:
    """A range without what lies above a ceiling, unless folding gives much tilted mass.

    ``log_a`` is that of all masses as they were at the first loss.
    """
    low, high, inside = given
    away = loss - loss[0]
    folded = fn.log_sums(log_a[::-1])[::-1] + tilt * away
    of_b = fn.log_sums((log_a + away)[::-1])[::-1] + (tilt - 1.0) * away
    folded = np.maximum(folded, of_b)
    heavy = np.flatnonzero(folded > -LIGHT)
    if heavy.size:
        ceiling = max(ceiling, float(loss[min(int(heavy[-1]) + 1, loss.size - 1)]))
    kept = inside & (loss <= ceiling)
    last = int(np.flatnonzero(inside)[-1])
    if ceiling >= high or np.count_nonzero(kept) < 2 or kept[last]:
        return given
    return low, float(loss[np.flatnonzero(kept)[-1]]), kept


def _windows_at(
    parts: tuple[Part, ...], found: CoarseCumulants, place: Place, tilt: float, log_small: float
) -> Windows:
    """Ranges of the steps and window of the sum with a given tilt."""
    log_each = log_small - fn.log(sum(found.steps))
    log_value = found.cumulants(tilt)[0] - tilt * place.reach[0] if place.outer else 0.0
    each = [
        (law, loss, log_a, *cumulants)
        for (law, _), loss, log_a, cumulants in zip(
            parts, found.loss, found.log_mass, found.step_cumulants(tilt), strict=True
        )
    ]
    ranges = [
        _range(law, loss, log_a, tilt, scale, log_each, log_each + log_value)
        for law, loss, log_a, scale, _ in each
    ]
    window = _window(_cut(found, ranges), tilt, log_small)
    if place.outer:
        # a step beyond what takes the sum out of reach, whatever the others do, may lie nearer
        top = place.reach[1]
        if top == math.inf:
            _, mean, variance = found.cumulants(0.0)
            top = max(mean + 2.0 * math.sqrt(variance), 0.0)
        room = 1.1 * (top - window[0])
        ranges = [
            _lowered(loss, ranges[i], mean + room, log_a + tilt * loss[0] - scale, tilt)
            for i, (_, loss, log_a, scale, mean) in enumerate(each)
        ]
        window = _window(_cut(found, ranges), tilt, log_small)
    s_low, s_high, tilt_low, tilt_high = window
    return Windows(tilt, ranges, (min(s_low, place.reach[0]), s_high, tilt_low, tilt_high))


def _windows_of(
    parts: tuple[Part, ...],
    found: CoarseCumulants,
    place: Place,
    tolerance: float,
    *,
    is_wide: bool,
) -> Windows:
    """Ranges and window that take a small part of the tolerance.

    The saddle point needs the fewest digits, but where single large steps matter its tilted law is
    wider than that of a smaller tilt: of those at which rounding does not matter, the narrowest.
    """
    total, _, variance = found.cumulants(place.tilt)
    share = min(scaled_tail(abs(place.tilt) * math.sqrt(max(variance, 1e-300))), 1.0)
    if place.outer:
        share *= -fn.expm1(-min(1.0 / (1.0 + abs(place.tilt)), 0.3 * math.sqrt(variance)))
    share = max(share, 1e-300)
    small = SMALL * tolerance * (BELOW if is_wide else 1.0)
    log_small = fn.log(max(small * share / (1.0 + abs(place.tilt)), 1e-300)) - 3.0
    best = _windows_at(parts, found, place, place.tilt, min(log_small, -3.0))
    if not place.outer or place.tilt == 0.0:
        return best
    allowed = fn.log(max(50.0 * small * share / NOISE[is_wide], 1e-300))
    low = place.reach[0]
    tail = total - place.tilt * low
    for factor in SMALLER:
        tilt = factor * place.tilt
        excess = found.cumulants(tilt)[0] - tilt * low - tail
        if excess > allowed:
            break
        other = _windows_at(parts, found, place, tilt, log_small - excess)
        if other.width < best.width:
            best = other
    return best


# ---- lattices ------------------------------------------------------------------------------------

Landmarks = dict[StepLaw, tuple[float, float]]


def _landmarks_of(parts: tuple[Part, ...], found: CoarseCumulants, tilt: float) -> Landmarks:
    """The two atoms that hold nearly all of a step, tilted, for the kinds that have such.

    On the lattice they are split and merged exactly; off it the error is of the first order.
    """
    marks: Landmarks = {}
    for (law, _), loss, log_mass in zip(parts, found.loss, found.log_mass, strict=True):
        if loss.size < 2:
            continue
        weight = log_mass + tilt * loss
        pair = np.sort(np.argsort(weight)[-2:])
        if fn.log_sum(weight[pair]) < fn.log_sum(weight) + fn.log(NEARLY_ALL):
            continue
        low, high = loss[pair].tolist()
        beside = BESIDE * (high - low)
        cells = law.cells(np.array([low - beside, low + beside, high - beside, high + beside]))
        if np.all(np.abs(cells.log_a[[1, 3]] - log_mass[pair]) < BESIDE):
            marks[law] = low, high
    return marks


def _anchors(
    parts: tuple[Part, ...], spacing: float, landmarks: Landmarks
) -> tuple[list[float], float, float | None]:
    """Anchors on which heavy atoms or ends of supports lie, a spacing and what it must divide."""
    anchors = []
    unit = None
    for law, _ in parts:
        lattice, (lowest, highest) = law.spacing(), law.support()
        if lattice is not None:
            anchors.append(lattice[0])
            unit = unit or lattice[1]
        elif law in landmarks:
            low, high = landmarks[law]
            anchors.append(low)
            unit = unit or high - low
        else:
            finite = [x for x in (lowest, highest) if math.isfinite(x)]
            anchors.append(finite[0] if finite else 0.0)
            if len(finite) == 2 and highest > lowest:
                unit = unit or highest - lowest
    if unit is not None and unit < 0.5 * spacing:
        unit = None  # no such lattice can hold its points
    if unit is not None:
        spacing = unit / max(math.ceil(unit / spacing - 1e-6), 1)
    return anchors, spacing, unit


def common_lattice(parts: tuple[Part, ...]) -> float | None:
    """Spacing of a lattice with the losses of all steps on every other point, if there is one.

    A loss on an edge may be counted on either side: no two losses are to be in one cell.
    """
    lattices = [law.spacing() for law, _ in parts]
    units = [lattice[1] for lattice in lattices if lattice is not None]
    return 0.5 * units[0] if len(units) == len(parts) and len(set(units)) == 1 else None


def _points(needed: float) -> int:
    """A number of points that the FFT likes."""
    power: int = 2 ** math.ceil(math.log2(needed))
    return max(power * 3 // 4 if 4.0 * needed <= 3.0 * power else power, LEAST_POINTS)


def _spacing(
    parts: tuple[Part, ...], spacing: float, width: float, landmarks: Landmarks
) -> tuple[list[float], float]:
    """Anchors, and a spacing of at most the given one."""
    anchors, h, unit = _anchors(parts, spacing, landmarks)
    common = common_lattice(parts)
    fits = common is not None and width / common + SPARE < MOST_POINTS
    if common is not None and fits and spacing > 0.9 * common:
        return anchors, common
    # the points are there: use them
    finer = width / (_points(width / h + SPARE) - SPARE)
    if unit is None:
        h = max(finer, 0.25 * h)
    else:
        h = unit / max(math.floor(unit / max(finer, 0.25 * h)), 1)
    return anchors, h


def plan_of(
    parts: tuple[Part, ...],
    found: CoarseCumulants,
    place: Place,
    spacing: float,
    tolerance: float,
    limit: int = MOST_POINTS,
    *,
    is_wide: bool = False,
) -> Plan:
    """Lay out a lattice of at most a given spacing, and of at most about ``limit`` points.

    ``is_wide`` says that sums will be formed in sums of two doubles.
    """
    landmarks = _landmarks_of(parts, found, place.tilt)
    chosen = _windows_of(parts, found, place, tolerance, is_wide=is_wide)
    widest = max(chosen.width, *(high - low for low, high, _ in chosen.ranges))
    limit = min(max(limit, int(widest * abs(place.tilt))), MOST_POINTS)
    spacing = max(spacing, widest / (limit - SPARE))
    if spacing * abs(place.tilt) > 300.0:
        raise AccuracyError(
            f"a tilted law falls from one point of a lattice of {MOST_POINTS} to the next by more "
            "than a double can hold: the question is of a tail beyond this engine"
        )
    while True:
        plan = _laid_out(
            parts, found, place, chosen, _spacing(parts, spacing, chosen.width, landmarks)
        )
        # of the masses of all steps and the transform
        masses = sum(grid.last for grid in plan.grids)
        needed = 8 * (11 * masses + 8 * plan.points)
        if needed <= MOST_BYTES:
            return plan
        spacing = max(1.5 * spacing, spacing * needed / MOST_BYTES)


def _laid_out(
    parts: tuple[Part, ...],
    found: CoarseCumulants,
    place: Place,
    chosen: Windows,
    lattice: tuple[list[float], float],
) -> Plan:
    """Lattices of the steps and of their sum."""
    anchors, h = lattice
    s_low, s_high, *aside = chosen.window
    points = _points((s_high - s_low) / h + SPARE)
    grids, centre = [], Fraction(0)
    for (low, high, _), (_, steps), anchor, (scale, mean) in zip(
        chosen.ranges, parts, anchors, found.step_cumulants(chosen.tilt), strict=True
    ):
        first, last = math.floor((low - anchor) / h) - 2, math.ceil((high - anchor) / h)
        middle = round((mean - anchor) / h)
        scale -= chosen.tilt * (anchor + middle * h)
        grids.append(StepGrid(anchor, first, last - first, middle - first, scale))
        centre += steps * (Fraction(anchor) + middle * Fraction(h))
    first_point = math.floor((s_low - float(centre)) / h) - SPARE // 2
    room = points - math.ceil((s_high - s_low) / h) - SPARE
    return Plan(
        place,
        chosen.tilt,
        h,
        tuple(grids),
        centre,
        first_point - room // 2,
        points,
        (aside[0], aside[1]),
    )
