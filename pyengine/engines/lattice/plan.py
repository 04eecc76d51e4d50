"""Where a composition is computed: ranges of the steps, the window of the sum, and lattices.

All numbers here are estimates from the survey; the composition certifies whatever is chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.coarse_cumulants import CoarseCumulants, Part, scaled_tail
from pyengine.engines.lattice.large_steps import Partition, Rest, Term
from pyengine.errors import AccuracyError
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn

__all__ = [
    "MOST_POINTS",
    "Layout",
    "Place",
    "Plan",
    "StepGrid",
    "common_lattice",
    "landmarks_of",
    "make_layout",
]

FloatArray = npt.NDArray[np.float64]

MOST_POINTS = 2**24  # of a window


@dataclass(frozen=True)
class Place:
    """An interval ``reach`` of thresholds at which a composition has to be accurate, and a tilt.

    ``outer``: below A's mean, for lower tails of the loss under both laws, with a tilt <= 0.
    Otherwise between the means, for A's upper and B's lower tail, with a tilt in (0, 1).
    ``log_least`` estimates the log of A's tail at the lower end of the reach, or is inf.
    """

    tilt: float
    outer: bool
    reach: tuple[float, float]
    log_least: float = math.inf


@dataclass(frozen=True)
class StepGrid:
    """Lattice of one kind of step: points ``anchor + (first + k) spacing``, k = 0 ... last.

    ``centre`` is the k near the tilted mean; ``log_scale`` is the log of the mass, tilted about it.
    """

    anchor: float
    first: int
    last: int
    centre: int
    log_scale: float


@dataclass(frozen=True)
class Plan:
    """A window of ``points`` points from index ``first`` on; index 0 is the loss ``centre``."""

    place: Place
    spacing: float
    grids: tuple[StepGrid, ...]
    centre: Fraction
    first: int
    points: int
    aside: tuple[float, float]  # tilts of the Chernoff bounds below and above the window
    log_weight: float = 0.0


class Layout(NamedTuple):
    """Plans of all terms on one lattice."""

    parts: list[tuple[Part, ...]]
    plans: list[Plan]
    rest: Rest | None
    unseen: tuple[StepLaw, ...]
    faint: tuple[Term, ...] = ()

    def offset(self, plan: Plan) -> int:
        """Position of a plan's index 0 in the indices of the first plan."""
        away = (plan.centre - self.plans[0].centre) / Fraction(plan.spacing)
        if away.denominator != 1:
            raise AccuracyError("lattices of terms have no common points")
        return int(away)


# ---- ranges of the steps and window of the sum ---------------------------------------------------

Range = tuple[float, float, npt.NDArray[np.bool_]]  # ends, and the atoms of the survey inside

SMALL = 1e-3  # share of the tolerance for truncation and aliases
FACTORS = np.geomspace(2.0**-10, 64.0, 49)  # distances of tilts tried, in units of 1/sd


# Map: truncation of a lattice to a window | test_lattice | theory/lattice
def _window(
    found: CoarseCumulants, tilt: float, log_small: float
) -> tuple[float, float, float, float]:
    """Both ends of the window, and the tilts of Chernoff's bounds below and above it.

    Each end is the nearest with at most e^log_small of the tilted law beyond it, by those bounds.
    """
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
    """Range of one step, onto whose ends the mass outside is folded, and the atoms inside it."""
    bare = fn.log_sums(log_a)
    # for a tilt <= 0 it is enough that the untilted mass below is small: it bounds the effect
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


def _ranges(
    parts: tuple[Part, ...],
    found: CoarseCumulants,
    tilt: float,
    log_small: float,
    log_lost: float,
) -> list[Range]:
    """The ranges of all kinds of steps."""
    return [
        _range(law, loss, log_a, tilt, scale, log_small, log_lost)
        for (law, _), loss, log_a, (scale, _) in zip(
            parts, found.loss, found.log_mass, found.step_cumulants(tilt), strict=True
        )
    ]


def _folded(loss: FloatArray, log_a: FloatArray, inside: npt.NDArray[np.bool_]) -> FloatArray:
    """Log masses of A inside a range, with the mass outside folded onto its ends.

    Mass above counts as B's mass over e^loss of the end, which exceeds A's.
    """
    first, last = np.flatnonzero(inside)[[0, -1]]
    kept = log_a[inside].copy()
    kept[0] = fn.log_sum(log_a[: first + 1])
    if last + 1 < loss.size:
        beyond = fn.log_sum((log_a + loss)[last + 1 :]) - loss[last]
        kept[-1] = fn.logaddexp(kept[-1], beyond)
    return kept


class _Windows(NamedTuple):
    """Ranges of the steps, and the window (see `_window`), for a tilt."""

    tilt: float
    ranges: list[Range]
    window: tuple[float, float, float, float]

    @property
    def width(self) -> float:
        """Width of the window."""
        return self.window[1] - self.window[0]


def _windows_at(
    parts: tuple[Part, ...], found: CoarseCumulants, place: Place, tilt: float, log_small: float
) -> _Windows:
    """Ranges of the steps, and the window of the sum, for a given tilt."""
    log_each = log_small - fn.log(sum(found.steps))
    total = found.cumulants(tilt)[0]
    log_value = min(total - tilt * place.reach[0], place.log_least) if place.outer else 0.0
    ranges = _ranges(parts, found, tilt, log_each, log_each + log_value)
    window = _window(_cut(found, ranges), tilt, log_small)
    s_low, s_high, tilt_low, tilt_high = window
    return _Windows(tilt, ranges, (min(s_low, place.reach[0]), s_high, tilt_low, tilt_high))


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


def _windows_of_term(term: Term, place: Place, tolerance: float) -> _Windows:
    """Ranges and a window for which truncation and aliases cost `SMALL` of the tolerance."""
    found = term.survey
    variance = found.cumulants(place.tilt)[2]
    share = min(scaled_tail(abs(place.tilt) * math.sqrt(max(variance, 1e-300))), 1.0)
    if place.outer:
        share *= -fn.expm1(-min(1.0 / (1.0 + abs(place.tilt)), 0.3 * math.sqrt(variance)))
    share = max(share, 1e-300)
    log_small = fn.log(max(SMALL * tolerance * share / (1.0 + abs(place.tilt)), 1e-300)) - 3.0
    log_small = min(log_small - term.excess, -3.0)
    return _windows_at(term.parts, found, place, place.tilt, log_small)


# ---- lattices ------------------------------------------------------------------------------------

LEAST_POINTS = 2**10
SPARE = 64  # points added to the window
NEARLY_ALL = 0.9  # share of the tilted mass of a step on two atoms
BESIDE = 1e-6  # width of cells about two atoms, relative to their distance
MOST_BYTES = 3 * 2**29  # of all arrays at once: 1.5 GB
NO_WINDOW = (
    "the sum of so many losses is rounded by more than its law is wide: the lattice has no window "
    "for it"
)


Landmarks = dict[StepLaw, tuple[float, float]]


def landmarks_of(term: Term) -> Landmarks:
    """For kinds of steps with nearly all tilted mass on two atoms, the losses of these.

    Atoms on lattice points are split and merged without error; elsewhere the error is of first
    order in the spacing.
    """
    found: Landmarks = {}
    for (law, _), loss, log_mass in zip(
        term.parts, term.survey.loss, term.survey.log_mass, strict=True
    ):
        if loss.size < 2:
            continue
        weight = log_mass + term.tilt * loss
        pair = np.sort(np.argsort(weight)[-2:])
        if fn.log_sum(weight[pair]) < fn.log_sum(weight) + fn.log(NEARLY_ALL):
            continue
        low, high = loss[pair].tolist()
        beside = BESIDE * (high - low)
        cells = law.cells(np.array([low - beside, low + beside, high - beside, high + beside]))
        if np.all(np.abs(cells.log_a[[1, 3]] - log_mass[pair]) < BESIDE):
            found.setdefault(law.whole, (low, high))
    return found


def _anchors(
    parts: tuple[Part, ...], spacing: float, landmarks: Landmarks
) -> tuple[dict[StepLaw, float], float, float | None]:
    """Anchors (heavy atoms or ends of supports), a spacing, and the length that it must divide."""
    anchors = {}
    unit = None
    for law, _ in parts:
        lattice, (lowest, highest) = law.spacing(), law.support()
        if lattice is not None:
            anchors[law] = lattice[0]
            unit = unit or lattice[1]
        elif law in landmarks:
            low, high = landmarks[law]
            anchors[law] = low
            unit = unit or high - low
        else:
            finite = [x for x in (lowest, highest) if math.isfinite(x)]
            anchors[law] = finite[0] if finite else 0.0
            if len(finite) == 2 and highest > lowest:
                unit = unit or highest - lowest
    if unit is not None and unit < 0.5 * spacing:
        unit = None  # too short for a lattice of this spacing
    if unit is not None:
        spacing = unit / max(math.ceil(unit / spacing - 1e-6), 1)
    return anchors, spacing, unit


def make_layout(
    division: Partition,
    place: Place,
    spacing: float,
    tolerance: float,
    limit: int = MOST_POINTS,
) -> Layout:
    """Return plans of all terms on one lattice with about the given spacing, or a finer one.

    The spacing is coarser where a window would need more than about ``limit`` points, or all
    arrays more than `MOST_BYTES`.
    """
    terms = division.terms
    landmarks = landmarks_of(terms[0])
    windows = [_windows_of_term(term, replace(place, tilt=term.tilt), tolerance) for term in terms]
    widest = max(max(one.width, *(high - low for low, high, _ in one.ranges)) for one in windows)
    steepest = max(abs(term.tilt) for term in terms)
    limit = int(min(max(limit, widest * steepest), MOST_POINTS))
    spacing = max(spacing, widest / (limit - SPARE))
    if not spacing * steepest <= 300.0:
        raise AccuracyError(
            f"a tilted law falls from one point of a lattice of {MOST_POINTS} to the next by more "
            "than a double can hold: ask for a smaller epsilon, or a level farther from 0 and 1"
        )
    while True:
        anchors, h = _spacing(division.parts, spacing, max(one.width for one in windows), landmarks)
        plans = [
            _plan(term, one, replace(place, tilt=one.tilt), anchors, h)
            for term, one in zip(terms, windows, strict=True)
        ]
        needed = _bytes(plans)
        if needed <= MOST_BYTES:
            break
        spacing = max(1.5 * spacing, spacing * needed / MOST_BYTES)
    parts = [term.parts for term in terms]
    return Layout(parts, plans, division.rest, division.unseen, division.faint)


def _bytes(plans: list[Plan]) -> int:
    """Approximate memory of the masses of all steps and of the largest transform."""
    masses = sum(grid.last for plan in plans for grid in plan.grids)
    transform = max(plan.points + sum(grid.last for grid in plan.grids) for plan in plans)
    return 8 * (3 * masses + 8 * transform)


def _plan(
    term: Term, chosen: _Windows, place: Place, anchors: dict[StepLaw, float], h: float
) -> Plan:
    """The grids of the steps of a term, and the window of their sum."""
    s_low, s_high, *aside = chosen.window
    if not s_low < s_high:
        raise AccuracyError(NO_WINDOW)
    points = _points((s_high - s_low) / h + SPARE)
    grids, centre = [], Fraction(0)
    for (low, high, _), (law, steps), (scale, mean) in zip(
        chosen.ranges, term.parts, term.survey.step_cumulants(chosen.tilt), strict=True
    ):
        anchor = anchors[law.whole]
        first, last = math.floor((low - anchor) / h) - 2, math.ceil((high - anchor) / h)
        middle = round((mean - anchor) / h)
        scale -= chosen.tilt * (anchor + middle * h)
        grids.append(StepGrid(anchor, first, last - first, middle - first, scale))
        centre += steps * (Fraction(anchor) + middle * Fraction(h))
    first_point = math.floor((s_low - float(centre)) / h) - SPARE // 2
    room = points - math.ceil((s_high - s_low) / h) - SPARE
    return Plan(
        place,
        h,
        tuple(grids),
        centre,
        first_point - room // 2,
        points,
        (aside[0], aside[1]),
        term.log_weight,
    )


def _points(needed: float) -> int:
    """The next length 2^k or 3·2^k of an FFT."""
    power: int = 2 ** math.ceil(math.log2(needed))
    return max(power * 3 // 4 if 4.0 * needed <= 3.0 * power else power, LEAST_POINTS)


def common_lattice(parts: tuple[Part, ...]) -> float | None:
    """Spacing of a lattice with the losses of all steps on every other point, if there is one.

    Every other: a loss on an edge may be counted on either side, and a cell must not have two.
    """
    lattices = [law.spacing() for law, _ in parts]
    units = [lattice[1] for lattice in lattices if lattice is not None]
    return 0.5 * units[0] if len(units) == len(parts) and len(set(units)) == 1 else None


def _spacing(
    parts: tuple[Part, ...], spacing: float, width: float, landmarks: Landmarks
) -> tuple[dict[StepLaw, float], float]:
    """Anchors, and a spacing of at most the given one."""
    anchors, h, unit = _anchors(parts, spacing, landmarks)
    common = common_lattice(parts)
    fits = common is not None and width / common + SPARE < MOST_POINTS
    if common is not None and fits and spacing > 0.9 * common:
        return anchors, common
    if not width > 0.0:
        raise AccuracyError(NO_WINDOW)
    # use all points of the transform: at no cost, a finer spacing
    finer = width / (_points(width / h + SPARE) - SPARE)
    if unit is None:
        h = max(finer, 0.25 * h)
    else:
        h = unit / max(math.floor(unit / max(finer, 0.25 * h)), 1)
    return anchors, h
