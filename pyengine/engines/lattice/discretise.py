"""Masses of one step on its lattice, tilted, with the rounding on the safe side."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.lattice.plan import Plan, StepGrid
from pyengine.errors import AccuracyError
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["StepMasses", "doubles", "step_masses"]

FloatArray = npt.NDArray[np.float64]

CHUNK = 2**18  # cells made at a time, which bounds the memory of the laws' own arrays


class StepMasses(NamedTuple):
    """One step on the lattice: the pair with cells split onto their ends, and both laws of tests.

    All are tilted and scaled as the plan says, ``b`` was divided by e^log_scale_b, and ``lost``
    bounds the A-mass of ``spread`` at loss -infinity, not tilted.  ``blur`` bounds the relative
    inflation of the masses of ``spread``, and how much too small the masses of tests may be.
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


# Map: rounding losses to a lattice, up and down | test_lattice | theory/lattice
def step_masses(law: StepLaw, grid: StepGrid, plan: Plan) -> StepMasses:
    """Put one step on its lattice."""
    h, outer, tilt = plan.spacing, plan.place.outer, plan.place.tilt
    size = grid.last + 1
    spread, a, b = np.zeros(size), np.zeros(size), np.zeros(size)
    anchor = float(grid.anchor)
    origin = anchor + h * grid.first
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
    for start in range(0, grid.last, CHUNK):
        stop = min(start + CHUNK, grid.last)
        edges = origin + h * np.arange(start, stop + 1, dtype=np.float64)
        cells = law.cells(edges)
        shift = np.ascontiguousarray(
            cells.shift + 4.0 * UNIT * (np.abs(edges) + abs(origin) + abs(anchor))
        )
        log_a, log_b, log_ratio, error, ratio_error = (
            np.ascontiguousarray(x[1:-1])
            for x in (*cells[:2], cells.log_ratio, cells.error, cells.ratio_error)
        )
        given = ffi.new(
            "pe_cells *",
            {
                "start": start + 1,
                "n": stop - start,
                "log_a": doubles(log_a),
                "log_b": doubles(log_b),
                "log_ratio": doubles(log_ratio),
                "error": doubles(error),
                "ratio_error": doubles(ratio_error),
                "shift": doubles(shift),
            },
        )
        lib.pe_lattice_cells(lattice, given, masses)
        if start == 0:
            folded, margin = _fold_below(cells, shift, plan, grid, lattice, spread, a, b)
            masses.lost += folded
            blur = max(blur, margin)
        if stop == grid.last:
            blur = max(blur, _fold_above(cells, shift, plan, grid, lattice, spread, a, b))
    blur = max(blur, float(masses.error)) + 16.0 * UNIT
    return StepMasses(spread, a, b, log_scale_b, float(masses.lost), 6.0 * blur)


def _margin(*terms: float) -> float:
    return UNIT * (64.0 + 8.0 * sum(abs(x) for x in terms if math.isfinite(x)))


def _scaled(log_mass: float) -> float:
    """Exponential of a log mass on the scale of the lattice."""
    if log_mass > 700.0:
        raise AccuracyError(
            "mass beyond the lattice outweighs what is on it: the question is of a tail that "
            "single large steps decide; a smaller epsilon, or a level farther from 0 and 1, is "
            "answered"
        )
    return fn.exp(log_mass)


def _fold_below(
    cells: Any, shift: FloatArray, plan: Plan, grid: StepGrid, lattice: Any, *arrays: FloatArray
) -> tuple[float, float]:
    """Put what lies below the lattice on its first point and on loss -infinity.

    Returns what is lost, and the relative error of the mass that is moved.
    """
    spread, a, b = arrays
    log_a, log_b = float(cells.log_a[0]), float(cells.log_b[0])
    per = plan.place.tilt * plan.spacing
    place = per * (0.0 - grid.centre)
    margin = float(cells.error[0]) + _margin(log_a, log_b, place, lattice.origin, grid.log_scale)
    blur = margin + 4.0 * float(shift[0])
    outer = plan.place.outer
    if log_b > -math.inf:
        b[0] += _scaled(log_b + (per - plan.spacing) * -grid.centre - lattice.log_scale_b) * (
            1.0 + 4.0 * margin
        )
    if log_a == -math.inf:
        return 0.0, margin
    mass = _scaled(log_a + place - grid.log_scale)
    share = fn.exp(min(log_b - log_a - lattice.origin - 8.0 * blur, 0.0))
    a[0] += mass * (1.0 - 4.0 * margin if outer else 1.0 + 4.0 * margin)
    spread[0] += mass * share * (1.0 + 4.0 * margin if outer else 1.0 - 8.0 * blur)
    return fn.exp(log_a) * (1.0 - share * (1.0 - 4.0 * blur)) * (1.0 + 4.0 * margin), margin


def _fold_above(
    cells: Any, shift: FloatArray, plan: Plan, grid: StepGrid, lattice: Any, *arrays: FloatArray
) -> float:
    """Put what lies above the lattice on its last point; the relative error of its mass."""
    spread, a, b = arrays
    log_a, log_b = float(cells.log_a[-1]), float(cells.log_b[-1])
    per = plan.place.tilt * plan.spacing
    end = float(grid.last - grid.centre)
    place = per * end
    margin = float(cells.error[-1]) + _margin(log_a, log_b, place, lattice.origin, grid.log_scale)
    edge = float(shift[-1])
    outer = plan.place.outer
    if log_b > -math.inf:
        b[-1] += _scaled(log_b + (per - plan.spacing) * end - lattice.log_scale_b) * (
            1.0 + 4.0 * margin
        )
    if log_a == -math.inf:
        return margin
    mass = _scaled(log_a + place - grid.log_scale)
    a[-1] += mass * (1.0 - 4.0 * margin if outer else 1.0 + 4.0 * margin)
    if outer:
        spill = min(4.0 * edge / -fn.expm1(-plan.spacing), 1.0)
        spread[-1] += mass * (1.0 - spill) * (1.0 + 4.0 * margin)
        spread[-2] += mass * spill * fn.exp(-per) * (1.0 + 4.0 * margin)
    else:
        spread[-1] += mass * (1.0 - 8.0 * (margin + edge))
    return margin
