"""Composition: the N-fold sum of lattice steps by one FFT, with a bound on its rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.lattice.plan import Plan
from pyengine.engines.lattice.steps import StepMasses, doubles, step_masses
from pyengine.engines.lattice.survey import Part
from pyengine.errors import AccuracyError
from pyengine.laws.base import UNIT

__all__ = ["Composed", "Sum", "compose_on"]

FloatArray = npt.NDArray[np.float64]

FFT_ROUNDING = 10.0 * UNIT  # per level of the transform: docs/theory/lattice
SUM_ROUNDING = 64.0 * UNIT  # of NumPy's pairwise sums of at most 2^25 terms, and the division


@dataclass(frozen=True)
class Sum:
    """Tilted masses of the sum on the window.

    The mass at index i = first + shift + j is ``mass[j] e^{log_scale - rate i}`` up to absolute
    errors: ``noise`` on each mass, ``below`` and ``above`` for what lies outside the window (its
    tilted mass, part of which may be counted inside), and the relative error ``scale_error``.
    """

    mass: FloatArray
    rate: float
    log_scale: float
    scale_error: float
    noise: float
    below: float
    above: float
    shift: int


@dataclass(frozen=True)
class Composed:
    """The composition at one place: the spread pair and both laws of the tests' index.

    Sums are made when asked for, and not kept: at 2^23 points each takes 64 MB.

    Parameters
    ----------
    plan : Plan
        The lattice.
    masses : list of StepMasses
        One entry for each kind of step.
    steps : list of int
        Numbers of steps.
    moved : int
        How much further the window of the tests' index lies than that of the loss.
    lost : tuple of float
        Lower and upper bound of the A-mass at loss -infinity.
    """

    plan: Plan
    masses: list[StepMasses]
    steps: list[int]
    moved: int
    lost: tuple[float, float]

    @property
    def _rate(self) -> float:
        return self.plan.place.tilt * self.plan.spacing

    @property
    def spread(self) -> Sum:
        """The pair with its cells split: masses of A."""
        scales = [grid.log_scale for grid in self.plan.grids]
        return _sum([m.spread for m in self.masses], self.steps, scales, self._rate, 0, self.plan)

    @property
    def a(self) -> Sum:
        """Law of the tests' index under A."""
        scales = [grid.log_scale for grid in self.plan.grids]
        arrays = [m.a for m in self.masses]
        return _sum(arrays, self.steps, scales, self._rate, self.moved, self.plan)

    @property
    def b(self) -> Sum:
        """Law of the tests' index under B."""
        scales = [m.log_scale_b for m in self.masses]
        arrays, rate = [m.b for m in self.masses], self._rate - self.plan.spacing
        return _sum(arrays, self.steps, scales, rate, self.moved, self.plan)


def compose_on(parts: tuple[Part, ...], plan: Plan) -> Composed:
    """Compose on a planned lattice."""
    steps = [number for _, number in parts]
    masses = [
        step_masses(law, grid, plan) for (law, _), grid in zip(parts, plan.grids, strict=True)
    ]
    # a test's index rounds the loss of every step: the window goes with its mean
    moved = sum(
        number * (_mean(m.a) - _mean(m.spread)) for number, m in zip(steps, masses, strict=True)
    )
    return Composed(plan, masses, steps, round(moved), _lost(parts, masses))


def _moments(array: FloatArray, centre: float, rate: float) -> tuple[float, float]:
    """Sums of y_k e^{rate (k - centre)} and of k - centre times that."""
    out = np.empty(2)
    lib.pe_exponential_sums(array.size, doubles(array), centre, rate, doubles(out, True))
    return float(out[0]), float(out[1])


def _mean(array: FloatArray) -> float:
    """Mean index, without what is folded onto the first point."""
    total, first = _moments(array[1:], 0.0, 0.0)
    if not total > 0.0:
        raise AccuracyError(
            "the loss asked for is so near the end of its range that one point of the lattice "
            "holds all: ask for a level further from 0 and 1"
        )
    return first / total


def _lost(parts: tuple[Part, ...], masses: list[StepMasses]) -> tuple[float, float]:
    """Bounds on the A-mass at loss -infinity: the law's own, and with what folding added."""
    lower, upper, blur = 0.0, 0.0, 0.0
    for (law, steps), made in zip(parts, masses, strict=True):
        alone = law.infinite()[0]
        whole = min(alone * (1.0 + 2.0**-48) + made.lost, 1.0)
        lower += steps * math.log1p(-alone * (1.0 - 2.0**-48)) if alone < 1.0 else -math.inf
        upper += steps * math.log1p(-whole) if whole < 1.0 else -math.inf
        blur += steps * made.blur
    return (
        0.0 - math.expm1(lower) * (1.0 - 2.0**-48),
        min(0.0 - math.expm1(upper) * (1.0 + 2.0**-48) * math.exp(blur), 1.0),
    )


def _outside(
    arrays: list[FloatArray], steps: list[int], first: int, plan: Plan
) -> tuple[float, float]:
    """Chernoff bounds on the tilted mass of the sum below and above the window."""
    bounds = []
    ends = [0.0, 0.0]  # of the support
    for array, number, grid in zip(arrays, steps, plan.grids, strict=True):
        inside = np.flatnonzero(array)
        ends[0] += number * (float(inside[0]) - grid.centre)
        ends[1] += number * (float(inside[-1]) - grid.centre)
    for tilt, end, side in zip(plan.aside, (first - 1, first + plan.points), (0, 1), strict=True):
        if (ends[side] > end) if side == 0 else (ends[side] < end):
            bounds.append(0.0)
            continue
        rate = (tilt - plan.place.tilt) * plan.spacing
        exponent = -rate * end
        error = 4.0 * UNIT * abs(exponent)
        for array, number, grid in zip(arrays, steps, plan.grids, strict=True):
            moment = _moments(array, grid.centre, rate)[0]
            exponent += number * math.log(moment) if moment < math.inf else math.inf
            error += number * UNIT * (array.size / 32.0 + 80.0 + 6.0 * abs(rate) * array.size)
        bounds.append(math.exp(min(exponent + error, 1.0)))
    return bounds[0], bounds[1]


def _sum(
    arrays: list[FloatArray],
    steps: list[int],
    scales: list[float],
    rate: float,
    shift: int,
    plan: Plan,
) -> Sum:
    points = plan.points
    half = points // 2 + 1
    folds = max(array.size // points for array in arrays)
    level_error = FFT_ROUNDING * math.log2(points) + UNIT * folds
    bound, slack = np.ones(half), np.zeros(half)
    product: npt.NDArray[np.complex128] | None = None
    log_scale, scale_error = 0.0, 0.0
    normal = []
    for array, number, scale, grid in zip(arrays, steps, scales, plan.grids, strict=True):
        norm = float(array.sum())
        log_scale += number * (scale + math.log(norm))
        scale_error += number * (SUM_ROUNDING + 4.0 * UNIT * (abs(scale) + abs(math.log(norm))))
        normal.append(array / norm)
        spectrum = np.fft.rfft(_wrapped(normal[-1], grid.centre, points))
        lib.pe_spectrum_power(
            half,
            ffi.from_buffer("double[]", spectrum, require_writable=True),
            float(number),
            level_error,
            ffi.NULL if product is None else ffi.from_buffer("double[]", product),
            doubles(bound, True),
            doubles(slack, True),
        )
        product = spectrum
    assert product is not None
    below, above = _outside(normal, steps, plan.first + shift, plan)
    # rounding of the forward transforms and of the powers, then of the inverse
    slack += 3.0 * UNIT * sum(steps) + level_error
    noise = 2.0 / points * float((bound * slack).sum()) * (1.0 + 4.0 * UNIT * sum(steps) + 1e-9)
    del bound, slack, spectrum, normal
    cyclic = np.fft.irfft(product, points)
    del product
    start = (plan.first + shift) % points
    mass = np.concatenate([cyclic[start:], cyclic[:start]])
    np.maximum(mass, 0.0, out=mass)
    scale_error += 4.0 * UNIT * abs(log_scale)
    return Sum(mass, rate, log_scale, scale_error, noise, below, above, shift)


def _wrapped(array: FloatArray, centre: int, points: int) -> FloatArray:
    """The masses at index k - centre modulo the period."""
    start = -centre % points
    whole = np.zeros((start + array.size + points - 1) // points * points)
    whole[start : start + array.size] = array
    return whole if whole.size == points else whole.reshape(-1, points).sum(axis=0)
