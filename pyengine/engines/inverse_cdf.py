"""A step's loss as a function of one standard normal variate, for sampling by inversion.

The increasing map x -> z that carries the normal law to the law of z under A tilted by e^{λL} is
tabulated, and so is the loss L(z(x)), by cubics.  Beyond the table lies an atom (Laplace) or a
probability below 1e-18 (Gaussian).  Samples of the summed loss are seeded, and do not depend on
the number of threads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.loss_quadrature import parts, ratio
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Step
from pyengine.special import ndtri_exp, normal_pdf

__all__ = ["LossTable", "loss_table", "sample_losses"]

FloatArray = npt.NDArray[np.float64]

REACH = 9.5  # standard deviations of z beyond the outermost mode
WIDEST = 9.0  # largest |x| of the table
FINEST, MAX_CELLS = 1.0 / 64.0, 2**17  # largest cell of z in the map; cells of a table
MAX_NODES = 2**20  # of the map, with 48 bytes each in several arrays
CHUNK = 2**15  # samples of one task
BIAS = 1e-7  # mean absolute error of the summed loss by interpolation, at most


@dataclass(frozen=True, eq=False)
class LossTable:
    """The loss of one step under a tilted law as a function of x, for the C core.

    Cells start at ``low``, ``per_width`` of them per unit of x; ``last`` is the largest position in
    cells.  Each has the coefficients of a cubic in the position within it.  ``log_mgf`` is
    K(λ) = log E_A e^{λL} of one step.
    """

    low: float
    per_width: float
    last: float
    coefficients: FloatArray
    log_mgf: float
    steps: int


def loss_table(step: Step, steps: int, tilt: float, *, reversed_: bool) -> LossTable:
    """Tabulate the loss of a Gaussian or Laplace step, sampled or not, under A tilted by e^{λL}.

    Cells are refined until the error of all ``steps`` is below `BIAS`.
    """
    noise, probability = parts(step)
    mu = 1.0 / float(noise.multiplier)
    gaussian = noise.family == "gaussian"
    # without the record the density is f, with it f (1 + r): tilted, f (1 + r)^power
    power = 1.0 - tilt if reversed_ else tilt
    if gaussian:
        shift = power * mu
        ends = min(0.0, shift) - REACH, max(0.0, shift) + REACH
    else:
        ends = 0.0, mu

    def gain(z: FloatArray) -> FloatArray:
        """log(1 + r)."""
        return ratio(mu * (z - 0.5 * mu) if gaussian else 2.0 * z - mu, probability)

    def log_density(z: FloatArray) -> FloatArray:
        own = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi) if gaussian else -z - math.log(2.0)
        return own + power * gain(z)

    cell = min(FINEST, 1.0 / (16.0 * mu))
    if not gaussian:
        cell = min(cell, 0.5 / (1.0 + abs(power)))  # the density changes less than e-fold in a cell
    if not (ends[1] - ends[0]) / cell < MAX_NODES:
        raise AccuracyError(_too_steep(step, MAX_NODES, "nodes"))
    z = np.linspace(*ends, max(16, math.ceil((ends[1] - ends[0]) / cell)) + 1)
    atoms = (-math.inf, -math.inf)
    if not gaussian:
        least, most = (float(gain(np.array(end))) for end in ends)
        atoms = (power * least - math.log(2.0), power * most - mu - math.log(2.0))
    log_left, log_right, total = _cumulative(z, log_density, atoms)
    with np.errstate(invalid="ignore"):
        x = np.where(log_left < log_right, ndtri_exp(log_left), -ndtri_exp(log_right))
    sign = -1.0 if reversed_ else 1.0

    def loss_at(points: FloatArray) -> FloatArray:
        return sign * gain(_inverse(points, x, z, log_density(z) - total))

    inside = np.flatnonzero(np.abs(x) <= WIDEST)
    low, high = x[inside[0]], x[inside[-1]]  # beyond are atoms, or negligible mass
    cells = 512
    while cells <= MAX_CELLS:
        table, bias = _cubics(loss_at, float(low), float(high), cells)
        if bias * steps <= BIAS:
            return LossTable(
                float(low), cells / float(high - low), cells - 1e-9, table, total, steps
            )
        cells *= 4
    raise AccuracyError(_too_steep(step, MAX_CELLS, "cells"))


def _too_steep(step: Step, most: int, of: str) -> str:
    return (
        f"the loss of {step!r} is too steep to be sampled from a table of {most} {of}; "
        "method='auto' needs no samples"
    )


def _cumulative(
    z: FloatArray, log_density: object, atoms: tuple[float, float]
) -> tuple[FloatArray, FloatArray, float]:
    """Logs of the masses left and right of each node, normalised, and of the total mass."""
    nodes, weights = np.polynomial.legendre.leggauss(6)
    half = 0.5 * np.diff(z)[:, None]
    values = log_density((z[:-1, None] + half) + half * nodes)  # type: ignore[operator]
    top = max(float(values.max()), *atoms)
    mass = (np.exp(values - top) * (weights * half)).sum(axis=1)
    first, last = (math.exp(atom - top) for atom in atoms)
    left = np.concatenate(([first], first + np.cumsum(mass)))
    right = np.concatenate(([last], last + np.cumsum(mass[::-1])))[::-1]
    whole = left[-1] + last
    with np.errstate(divide="ignore"):
        return np.log(left / whole), np.log(right / whole), math.log(whole) + top


def _inverse(
    points: FloatArray, x: FloatArray, z: FloatArray, log_density: FloatArray
) -> FloatArray:
    """The map x -> z at ``points``, by Hermite cubics with the slopes φ(x)/density."""
    finite = np.isfinite(x) & np.append(True, x[1:] > x[:-1])
    x, z, log_density = x[finite], z[finite], log_density[finite]
    k = np.clip(np.searchsorted(x, points, side="right") - 1, 0, x.size - 2)
    width, rise = x[k + 1] - x[k], z[k + 1] - z[k]
    t = np.clip((points - x[k]) / width, 0.0, 1.0)
    slope = np.exp(-0.5 * x * x - 0.5 * math.log(2.0 * math.pi) - log_density)
    # limits that keep the cubic increasing (Fritsch and Carlson 1980)
    s0, s1 = (np.minimum(slope[i] * width, 3.0 * rise) for i in (k, k + 1))
    return z[k] + t * (s0 + t * (3.0 * rise - 2.0 * s0 - s1 + t * (s0 + s1 - 2.0 * rise)))


def _cubics(loss_at: object, low: float, high: float, cells: int) -> tuple[FloatArray, float]:
    """Cubics through four points of each cell, and their mean absolute error at the middles."""
    width = (high - low) / cells
    start = low + width * np.arange(cells)
    grid = loss_at(low + width / 3.0 * np.arange(3 * cells + 1))  # type: ignore[operator]
    f0, f1, f2, f3 = (grid[i : 3 * cells + i - 2 : 3] if i else grid[:-1:3] for i in range(4))
    table = np.empty((cells, 4))
    table[:, 0] = f0
    table[:, 1] = (-11.0 * f0 + 18.0 * f1 - 9.0 * f2 + 2.0 * f3) / 2.0
    table[:, 2] = (18.0 * f0 - 45.0 * f1 + 36.0 * f2 - 9.0 * f3) / 2.0
    table[:, 3] = (-9.0 * f0 + 27.0 * f1 - 27.0 * f2 + 9.0 * f3) / 2.0
    middle = start + 0.5 * width
    fit = table @ np.array([1.0, 0.5, 0.25, 0.125])
    error = np.abs(fit - loss_at(middle))  # type: ignore[operator]
    weight = normal_pdf(middle) * width
    return table, float(weight @ error)


def sample_losses(
    tables: Sequence[LossTable], samples: int, seed: int, threads: int | None = None
) -> FloatArray:
    """Samples of the summed loss of all steps; memory is that of the result alone."""
    kernel_tables = ffi.new("pe_loss_table[]", max(1, len(tables)))
    kept = [np.ascontiguousarray(table.coefficients) for table in tables]
    for target, table, coefficients in zip(kernel_tables, tables, kept, strict=False):
        target.steps = table.steps
        target.low, target.per_width, target.last = table.low, table.per_width, table.last
        target.coefficients = ffi.from_buffer("double[]", coefficients)
    out = np.empty(samples)

    def run(first: int) -> None:
        part = out[first : first + CHUNK]
        buffer = ffi.from_buffer("double[]", part, require_writable=True)
        lib.pe_sample_losses(seed, first, part.size, len(tables), kernel_tables, buffer)

    starts = range(0, samples, CHUNK)
    workers = min(threads or _processors(), max(1, len(starts)))
    if workers == 1:
        for start in starts:
            run(start)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(run, start) for start in starts]:
                done.result()
    return out


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
