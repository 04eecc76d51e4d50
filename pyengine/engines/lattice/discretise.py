"""Tilted masses of one step on its lattice, split and merged, rounded to the safe side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.lattice.plan import Plan, StepGrid
from pyengine.errors import AccuracyError
from pyengine.laws.base import Cells, StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["StepMasses", "doubles", "step_masses"]

FloatArray = npt.NDArray[np.float64]

CHUNK = 2**18  # cells computed at a time, to bound the memory of the laws' own arrays


class StepMasses(NamedTuple):
    """One step on the lattice: A of the split pair, and both laws of the index of tests.

    All are tilted; ``spread`` and ``a`` are in units of e^log_scale of the step's grid, ``b`` in
    units of e^log_scale_b.  ``lost`` bounds the untilted A-mass of the split pair at loss -∞.
    ``blur`` bounds the log of the factor by which masses of ``spread`` are too large, and those of
    tests too small.
    """

    spread: FloatArray
    a: FloatArray
    b: FloatArray
    log_scale_b: float
    lost: float
    blur: float


def doubles(array: FloatArray, writable: bool = False) -> Any:
    """View of a contiguous array for the C core."""
    return ffi.from_buffer("double[]", array, require_writable=writable)


class _LatticeCells:
    """Cells of a law on a lattice that contains several grids; each is computed once.

    Parameters
    ----------
    law : StepLaw
        The step, or a part of it.
    grids : list of StepGrid
        Grids with the same anchor.
    spacing : float
        Spacing of all grids.
    """

    def __init__(self, law: StepLaw, grids: list[StepGrid], spacing: float) -> None:
        self._law, self._spacing = law, spacing
        self.anchor = float(grids[0].anchor)
        self.first = min(grid.first for grid in grids)
        self._last = max(grid.first + grid.last for grid in grids) - self.first
        self._origin = self.anchor + spacing * self.first
        self._made: dict[int, Cells] = {}

    def between(self, start: int, stop: int) -> Iterator[tuple[int, dict[str, FloatArray]]]:
        """Yield the cells between two points in chunks, each with the index of its first point."""
        at = start
        while at < stop:
            begin = at - at % CHUNK
            end = min(begin + CHUNK, self._last)
            if begin not in self._made:
                self._made[begin] = self.around(begin, end)
            made, last = self._made[begin], min(end, stop)
            inside = slice(at - begin + 1, last - begin + 1)
            yield (
                at,
                {
                    "log_a": made.log_a[inside],
                    "log_b": made.log_b[inside],
                    "log_ratio": made.log_ratio[inside],
                    "error": made.error[inside],
                    "ratio_error": made.ratio_error[inside],
                    "shift": made.shift[at - begin : last - begin + 1],
                },
            )
            at = last

    def around(self, start: int, stop: int) -> Cells:
        """Cells below, between and above points; ``shift`` includes the rounding of the points."""
        edges = self._origin + self._spacing * np.arange(start, stop + 1, dtype=np.float64)
        cells = self._law.cells(edges)
        moved = 4.0 * UNIT * (np.abs(edges) + abs(self._origin) + abs(self.anchor))
        return Cells(
            cells.log_a,
            cells.log_b,
            cells.error,
            cells.shift + moved,
            cells.ratio_error,
            cells.log_ratio,
        )


def step_masses(law: StepLaw, grids: list[StepGrid], plans: list[Plan]) -> list[StepMasses]:
    """Return the masses of one step on each of its grids, which have one spacing and anchor."""
    cells = _LatticeCells(law, grids, plans[0].spacing)
    return [_on_grid(cells, grid, plan) for grid, plan in zip(grids, plans, strict=True)]


# Map: rounding losses to a lattice, up and down | test_lattice | theory/lattice
def _on_grid(cells_of: _LatticeCells, grid: StepGrid, plan: Plan) -> StepMasses:
    """Masses of one step on one grid, with the mass outside folded onto its ends."""
    h, outer, tilt = plan.spacing, plan.place.outer, plan.place.tilt
    size = grid.last + 1
    spread, a, b = np.zeros(size), np.zeros(size), np.zeros(size)
    origin = cells_of.anchor + h * grid.first
    log_scale_b = grid.log_scale + (origin + h * grid.centre)
    lattice = ffi.new(
        "pe_lattice *",
        {
            "origin": origin,
            "spacing": h,
            "tilt": tilt,
            "centre": float(grid.centre),
            "log_scale_a": grid.log_scale,
            "log_scale_b": log_scale_b,
            "outer": int(outer),
        },
    )
    arrays = [doubles(array, True) for array in (spread, a, b)]
    masses = ffi.new("pe_lattice_masses *", dict(zip(("spread", "a", "b"), arrays, strict=True)))
    blur = 0.0
    move = grid.first - cells_of.first
    for at, cells in cells_of.between(move, move + grid.last):
        held = {name: np.ascontiguousarray(array) for name, array in cells.items()}
        given = ffi.new("pe_cells *", {name: doubles(array) for name, array in held.items()})
        given.start, given.n = at - move + 1, held["log_a"].size
        lib.pe_lattice_cells(lattice, given, masses)
    for below in (True, False):
        at = move if below else move + grid.last
        folded, margin = _fold(cells_of.around(at, at), below, plan, grid, lattice, spread, a, b)
        masses.lost += folded
        blur = max(blur, margin)
    blur = max(blur, float(masses.error)) + 16.0 * UNIT
    return StepMasses(spread, a, b, log_scale_b, float(masses.lost), 6.0 * blur)


def _margin(*terms: float) -> float:
    return UNIT * (64.0 + 8.0 * sum(abs(x) for x in terms if math.isfinite(x)))


def _scaled(log_mass: float) -> float:
    """Exponential of a log mass in the units of the lattice."""
    if log_mass > 700.0:
        raise AccuracyError(
            "the mass beyond the lattice is larger than that on it, because single large steps "
            "decide this tail: ask for a smaller epsilon, or a level farther from 0 and 1"
        )
    return fn.exp(log_mass)


def _fold(
    cells: Cells, below: bool, plan: Plan, grid: StepGrid, lattice: Any, *arrays: FloatArray
) -> tuple[float, float]:
    """Add the mass below or above the lattice to its first or last point (Lemma 5).

    Part of A's mass below goes to loss -∞, and all of that above if its edge is off by more than
    the spacing.  Returns a bound of what goes there, and the relative error of the folded mass.
    """
    spread, a, b = arrays
    end = 0 if below else -1
    log_a, log_b = float(cells.log_a[end]), float(cells.log_b[end])
    per, outer = plan.place.tilt * plan.spacing, plan.place.outer
    away = float((0 if below else grid.last) - grid.centre)
    place = per * away
    margin = float(cells.error[end]) + _margin(log_a, log_b, place, lattice.origin, grid.log_scale)
    edge = float(cells.shift[0])
    if log_b > -math.inf:
        b[end] += _scaled(log_b + (per - plan.spacing) * away - lattice.log_scale_b) * (
            1.0 + 4.0 * margin
        )
    if log_a == -math.inf:
        return 0.0, margin
    mass = _scaled(log_a + place - grid.log_scale)
    a[end] += mass * (1.0 - 4.0 * margin if outer else 1.0 + 4.0 * margin)
    if below:
        blur = margin + 4.0 * edge
        share = fn.exp(min(log_b - log_a - lattice.origin - 8.0 * blur, 0.0))
        spread[0] += mass * share * (1.0 + 4.0 * margin if outer else 1.0 - 8.0 * blur)
        return fn.exp(log_a) * (1.0 - share * (1.0 - 4.0 * blur)) * (1.0 + 4.0 * margin), margin
    if outer and edge > plan.spacing:
        return fn.exp(log_a) * (1.0 + 4.0 * margin), margin
    if outer:
        spill = min(4.0 * edge / -fn.expm1(-plan.spacing), 1.0)
        spread[-1] += mass * (1.0 - spill) * (1.0 + 4.0 * margin)
        spread[-2] += mass * spill * fn.exp(-per) * (1.0 + 4.0 * margin)
    else:
        spread[-1] += mass * (1.0 - 8.0 * (margin + edge))
    return 0.0, margin
