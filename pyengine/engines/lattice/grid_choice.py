"""Choice of lattices for the terms of a composition.

All numbers here come from the survey and are guesses; the composition certifies what they lead to.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pyengine.engines.lattice.coarse_cumulants import Part
from pyengine.engines.lattice.grid import (
    MOST_POINTS,
    Layout,
    Place,
    Plan,
    StepGrid,
)
from pyengine.engines.lattice.partition import Partition, Term
from pyengine.engines.lattice.restricted_law import whole_of
from pyengine.engines.lattice.scales import SmallSteps, by_scales
from pyengine.engines.lattice.truncation import Windows, windows_of_sum, windows_of_term
from pyengine.errors import AccuracyError
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn

__all__ = ["common_lattice", "landmarks_of", "make_layout"]

LEAST_POINTS = 2**10
SPARE = 64  # points beyond the window
NEARLY_ALL = 0.9  # of the tilted mass of a step
BESIDE = 1e-6  # of the distance of two atoms
MOST_BYTES = 3 * 2**29  # of arrays at once
OUTSIDE_SUM = -45.0  # log of the tilted mass that may lie outside of the window of small steps
BEYOND_SUM = -30.0  # log of what A's mass below it may be of the answer


Landmarks = dict[StepLaw, tuple[float, float]]


def landmarks_of(term: Term) -> Landmarks:
    """The two atoms that hold nearly all of a step, tilted, for the kinds that have such.

    On the lattice they are split and merged exactly; off it the error is of the first order.
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
            found.setdefault(whole_of(law), (low, high))
    return found


def _anchors(
    parts: tuple[Part, ...], spacing: float, landmarks: Landmarks
) -> tuple[dict[StepLaw, float], float, float | None]:
    """Anchors on which heavy atoms or ends of supports lie, a spacing and what it must divide."""
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
        unit = None  # no such lattice can hold its points
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
    """Lay out one lattice for all terms, of at most a given spacing.

    No window has more than about ``limit`` points.
    """
    terms = division.terms
    landmarks = landmarks_of(terms[0])
    windows = [
        windows_of_term(term, replace(place, tilt=term.tilt), tolerance, len(terms) == 1)
        for term in terms
    ]
    divided = [
        by_scales(term, one.width, spacing) for term, one in zip(terms, windows, strict=True)
    ]
    times = 1.0  # by which the lattice of all is coarser than that of small steps
    if all(divided):
        # one lattice for all terms: as coarse as each of them allows
        spacing = min(found.fine for found in divided if found)
        times = min(found.coarse for found in divided if found) / spacing
        terms = tuple(found.term for found in divided if found)
        windows = [
            windows_of_term(term, replace(place, tilt=term.tilt), tolerance, len(terms) == 1)
            for term in terms
        ]
    widest = max(max(one.width, *(high - low for low, high, _ in one.ranges)) for one in windows)
    steepest = max(abs(term.tilt) for term in terms)
    limit = min(max(limit, int(widest * steepest)), MOST_POINTS)
    spacing = max(spacing, widest / (times * (limit - SPARE)))
    if times * spacing * steepest > 300.0:
        raise AccuracyError(
            f"a tilted law falls from one point of a lattice of {MOST_POINTS} to the next by more "
            "than a double can hold: the question is of a tail beyond this engine"
        )
    # the spacing goes by the kinds that are on the lattice itself
    small = {whole_of(own) for term in terms for own, _ in _small_parts(term)}
    kinds = tuple(sorted(division.parts, key=lambda part: part[0] in small))
    while True:
        anchors, h = _spacing(kinds, times * spacing, max(one.width for one in windows), landmarks)
        plans = [
            _plan(term, one, replace(place, tilt=one.tilt), anchors, h, spacing)
            for term, one in zip(terms, windows, strict=True)
        ]
        needed = _bytes(plans)
        if needed <= MOST_BYTES:
            break
        spacing = max(1.5 * spacing, spacing * needed / MOST_BYTES)
    return Layout([term.parts for term in terms], plans, division.rest, division.unseen)


def _small_parts(term: Term) -> tuple[Part, ...]:
    """The steps that are composed on a lattice of their own."""
    return next((law.parts for law, _ in term.parts if isinstance(law, SmallSteps)), ())


def _bytes(plans: list[Plan]) -> int:
    """Memory that the masses of all steps and the largest transform take, roughly."""
    plans = plans + [grid.inner for plan in plans for grid in plan.grids if grid.inner]
    masses = sum(grid.last for plan in plans for grid in plan.grids)
    transform = max(plan.points + sum(grid.last for grid in plan.grids) for plan in plans)
    return 8 * (3 * masses + 8 * transform)


def _plan(
    term: Term,
    chosen: Windows,
    place: Place,
    anchors: dict[StepLaw, float],
    h: float,
    finer: float = math.inf,
) -> Plan:
    """Lattices of the steps and of their sum; ``finer`` is the spacing for small steps."""
    s_low, s_high, *aside = chosen.window
    points = _points((s_high - s_low) / h + SPARE)
    grids, centre = [], Fraction(0)
    for (low, high, _), (law, steps), (scale, mean) in zip(
        chosen.ranges, term.parts, term.survey.step_cumulants(chosen.tilt), strict=True
    ):
        inner = None
        anchor: float | Fraction
        if isinstance(law, SmallSteps):
            inner = _plan_of_sum(term, law, chosen.tilt, place, anchors, h, finer)
            anchor = _anchor_of_sum(law, anchors)
            first, last = _reach_of_sum(inner, anchor, h)
        else:
            anchor = anchors[whole_of(law)]
            first, last = math.floor((low - anchor) / h) - 2, math.ceil((high - anchor) / h)
        middle = round((mean - anchor) / h)
        scale -= chosen.tilt * (anchor + middle * h)
        grids.append(StepGrid(anchor, first, last - first, middle - first, scale, inner))
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


def _anchor_of_sum(law: SmallSteps, anchors: dict[StepLaw, float]) -> Fraction:
    """A point of the lattices of the sum of small steps, fine and coarse."""
    return sum((n * Fraction(anchors[whole_of(own)]) for own, n in law.parts), Fraction(0))


def _plan_of_sum(
    term: Term,
    law: SmallSteps,
    tilt: float,
    place: Place,
    anchors: dict[StepLaw, float],
    h: float,
    finer: float,
) -> Plan:
    """Lattice of the sum of small steps, whose spacing times a power of 2 is h."""
    log_lost = math.inf
    if place.outer:
        value = term.log_weight + term.survey.cumulants(tilt)[0] - tilt * place.reach[0]
        log_lost = min(value, place.log_least) - max(term.log_weight, 0.0) + BEYOND_SUM
    chosen = windows_of_sum(law.parts, law.found, tilt, OUTSIDE_SUM, log_lost)
    finer = max(finer, chosen.width / (MOST_POINTS - SPARE))
    finer = h / 2.0 ** max(math.ceil(math.log2(h / finer) - 1e-9), 0)
    alone = Term(0.0, law.parts, law.found, tilt)
    return _plan(alone, chosen, replace(place, tilt=tilt), anchors, finer)


def _reach_of_sum(inner: Plan, anchor: Fraction, h: float) -> tuple[int, int]:
    """First and last point of a coarser lattice that holds all points of a sum."""
    start = (inner.centre - anchor) / Fraction(inner.spacing) + inner.first
    ratio = round(h / inner.spacing)
    return math.floor(start / ratio) - 1, math.ceil((start + inner.points) / ratio) + 1


def _points(needed: float) -> int:
    """A number of points that the FFT likes."""
    power: int = 2 ** math.ceil(math.log2(needed))
    return max(power * 3 // 4 if 4.0 * needed <= 3.0 * power else power, LEAST_POINTS)


def common_lattice(parts: tuple[Part, ...]) -> float | None:
    """Spacing of a lattice with the losses of all steps on every other point, if there is one.

    A loss on an edge may be counted on either side: no two losses are to be in one cell.
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
    # the points are there: use them
    finer = width / (_points(width / h + SPARE) - SPARE)
    if unit is None:
        h = max(finer, 0.25 * h)
    else:
        h = unit / max(math.floor(unit / max(finer, 0.25 * h)), 1)
    return anchors, h
