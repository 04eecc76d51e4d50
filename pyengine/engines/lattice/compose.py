"""Composition of all terms on one planned lattice, at one place (one tilt)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.coarse_cumulants import Part
from pyengine.engines.lattice.discretise import StepMasses, step_masses
from pyengine.engines.lattice.fft_convolution import Sum, moments, sum_of
from pyengine.engines.lattice.large_steps import Rest, Term
from pyengine.engines.lattice.plan import Layout, Plan, StepGrid
from pyengine.errors import AccuracyError
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["Bound", "Composed", "PlaceComposition", "compose_on"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Composed:
    """One term at one place: the split pair, and the laws of the index K of tests.

    Sums are computed on access and not kept: each takes 64 MB at 2^23 points.  The window of K
    starts ``moved`` points after that of the loss; ``offset`` is the position of this term's index
    0 in the indices of the first term.
    """

    plan: Plan
    masses: list[StepMasses]
    steps: list[int]
    moved: int
    offset: int

    @property
    def highest(self) -> int:
        """The largest index of the sum with mass."""
        grids = zip(self.steps, self.plan.grids, strict=True)
        return sum(number * (grid.last - grid.centre) for number, grid in grids)

    def _sum(self, name: str, scales: list[float], moved: int) -> Sum:
        """The composition of one array of `StepMasses`: ``spread``, ``a`` or ``b``."""
        h = self.plan.spacing
        rate = self.plan.place.tilt * h - (h if name == "b" else 0.0)
        arrays = [getattr(masses, name) for masses in self.masses]
        return sum_of(arrays, self.steps, scales, rate, moved, self.plan, self.offset)

    @property
    def spread(self) -> Sum:
        """Masses of A of the split pair."""
        return self._sum("spread", [grid.log_scale for grid in self.plan.grids], 0)

    @property
    def a(self) -> Sum:
        """Law of the index K of tests under A."""
        return self._sum("a", [grid.log_scale for grid in self.plan.grids], self.moved)

    @property
    def b(self) -> Sum:
        """Law of the index K of tests under B."""
        return self._sum("b", [masses.log_scale_b for masses in self.masses], self.moved)


@dataclass(frozen=True)
class Bound:
    """An upper bound e^{log_value - tilt c} of A(S <= c), for terms that are not composed."""

    log_value: float
    tilt: float


@dataclass(frozen=True)
class PlaceComposition:
    """All terms at one place, and bounds of what is not composed.

    ``lost`` is a lower and an upper bound of the A-mass at loss -∞; ``shrunk`` is the log of the
    largest factor by which masses of tests are too small, the same for both laws.
    """

    terms: list[Composed]
    rest: list[Bound]
    lost: tuple[float, float]
    shrunk: float


def compose_on(parts: tuple[Part, ...], layout: Layout) -> PlaceComposition:
    """Compose all terms on a planned lattice."""
    uses: dict[StepLaw, list[tuple[StepGrid, Plan]]] = {}
    for own, plan in zip(layout.parts, layout.plans, strict=True):
        for (law, _), grid in zip(own, plan.grids, strict=True):
            uses.setdefault(law, []).append((grid, plan))
    lost: dict[StepLaw, float] = {}
    blurs: dict[StepLaw, float] = {}
    kept: dict[StepLaw, list[_OnLattice]] = {}
    made: dict[StepLaw, Iterator[StepMasses]] = {}
    for law, places in uses.items():
        found = step_masses(law, [grid for grid, _ in places], [plan for _, plan in places])
        lost[law] = max(mass.lost for mass in found)
        blurs[law] = max(mass.blur for mass in found)
        kept[law] = [_OnLattice(m.spread, *place) for m, place in zip(found, places, strict=True)]
        made[law] = iter(found)
    terms: list[Composed] = []
    for own, plan in zip(layout.parts, layout.plans, strict=True):
        masses = [next(made[law]) for law, _ in own]
        steps = [number for _, number in own]
        # K sums rounded losses of the steps, so its mean is shifted: shift the window with it
        moved = sum(
            number * (_mean(m.a) - _mean(m.spread)) for number, m in zip(steps, masses, strict=True)
        )
        terms.append(Composed(plan, masses, steps, round(moved), layout.offset(plan)))
    rest = _faint(layout.faint, kept)
    if layout.rest is not None:
        rest.append(_rest(layout.rest, parts, kept))
    for law in layout.unseen:
        cells = law.cells(np.zeros(1))
        lost[law] = float(fn.exp(fn.log_sum(cells.log_a))) * 1.001
    shrunk = sum(
        number * max(blur for own, blur in blurs.items() if own.whole == law)
        for law, number in parts
    )
    return PlaceComposition(terms, rest, _lost(parts, lost, shrunk), shrunk)


def _faint(terms: tuple[Term, ...], kept: dict[StepLaw, list[_OnLattice]]) -> list[Bound]:
    """Chernoff bounds of terms from moments of their steps, added up for each tilt."""
    logs: dict[float, list[float]] = {}
    for term in terms:
        log = term.log_weight + 8.0 * UNIT * abs(term.log_weight)
        for law, number in term.parts:
            moment, error = _log_moment(kept[law], term.tilt)
            log += number * (moment + error)
        log += 1e-6 * (1.0 + abs(log))
        logs.setdefault(term.tilt, []).append(log)
    return [Bound(float(fn.log_sum(np.array(found))) + 1e-6, tilt) for tilt, found in logs.items()]


def _log_moment(places: list[_OnLattice], tilt: float) -> tuple[float, float]:
    """`_OnLattice.log_moment` of a step, from the lattice with the nearest tilt."""
    nearest = min(places, key=lambda place: abs(place.plan.place.tilt - tilt))
    return nearest.log_moment(tilt)


class _OnLattice(NamedTuple):
    """Split masses of a step, tilted and scaled, and their lattice."""

    spread: FloatArray
    grid: StepGrid
    plan: Plan

    def log_moment(self, tilt: float) -> tuple[float, float]:
        """Log of an upper bound of ∫ e^{tilt L} dA, and the error of that log."""
        grid, plan = self.grid, self.plan
        rate = (tilt - plan.place.tilt) * plan.spacing
        centre = grid.anchor + plan.spacing * (grid.first + grid.centre)
        moment = moments(self.spread, grid.centre, rate)[0]
        if not 0.0 < moment < math.inf:
            return math.inf, 0.0
        return (
            grid.log_scale + tilt * float(centre) + fn.log(moment),
            UNIT * (self.spread.size / 32.0 + 80.0 + 6.0 * abs(rate) * self.spread.size),
        )


def _rest(rest: Rest, parts: tuple[Part, ...], kept: dict[StepLaw, list[_OnLattice]]) -> Bound:
    """Bound of all terms with more than ``most`` large steps (docs/theory/lattice, Theorem 8).

    With moments a_i of the small and b_i of the large losses of a kind, it is the sum of
    Π a_i^{N_i} ρ^k/k! over k > most, where ρ = Σ N_i b_i/a_i.
    """
    tilt, most = rest
    base, doubt, odds = 0.0, 0.0, 0.0
    for whole, number in parts:
        small, large = math.inf, []
        for law, places in kept.items():
            if law.whole != whole:
                continue
            log_moment, error = _log_moment(places, tilt)
            doubt += number * error
            if law.is_above_cuts:
                small = log_moment
            else:
                large.append(log_moment)
        base += number * small
        odds += sum(number * fn.exp(min(moment - small, 600.0)) for moment in large)
    ratio = odds / (most + 2)
    if not (ratio < 1.0 and base < math.inf):
        return Bound(math.inf, tilt)
    first = (most + 1) * fn.log(max(odds, 1e-300)) - fn.log(np.arange(2.0, most + 2.0)).sum()
    doubt += 1e-6 * (1.0 + abs(base))
    return Bound(base + first - fn.log1p(-ratio) + doubt, tilt)


def _mean(array: FloatArray) -> float:
    """Mean index, without the mass folded onto the first point."""
    total, first = moments(array[1:], 0.0, 0.0)
    if not total > 0.0:
        raise AccuracyError(
            "the loss asked for is so near the end of its range that one point of the lattice "
            "holds all: ask for a level further from 0 and 1"
        )
    return first / total


def _lost(parts: tuple[Part, ...], lost: dict[StepLaw, float], blur: float) -> tuple[float, float]:
    """Bounds of the A-mass at loss -∞: the laws' own, and that plus what folding moved there."""
    lower, upper = 0.0, 0.0
    for law, steps in parts:
        alone = law.infinite()[0]
        folded = sum(mass for own, mass in lost.items() if own.whole == law)
        whole = min(alone * (1.0 + 2.0**-48) + folded, 1.0)
        lower += steps * fn.log1p(-alone * (1.0 - 2.0**-48)) if alone < 1.0 else -math.inf
        upper += steps * fn.log1p(-whole) if whole < 1.0 else -math.inf
    return (
        0.0 - fn.expm1(lower) * (1.0 - 2.0**-48),
        min(0.0 - fn.expm1(upper) * (1.0 + 2.0**-48) * fn.exp(blur), 1.0),
    )
