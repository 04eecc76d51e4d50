"""The N-fold sum of lattice steps by one FFT, with a bound on its rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.status import finished
from pyengine.engines.lattice.coarse_cumulants import Part
from pyengine.engines.lattice.discretise import StepMasses, doubles, step_masses
from pyengine.engines.lattice.plan import Plan
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["FFT_ROUNDING", "WIDEST", "Composed", "Sum", "sum_of"]

FloatArray = npt.NDArray[np.float64]

FFT_ROUNDING = 10.0 * UNIT  # per level of the transform: docs/theory/lattice
WIDEST = 2**21  # points of a transform in sums of two doubles
MANY = 1000  # steps from which the rounding of powers counts
LIGHT = 1e-28  # masses that may be left out of a step of few losses
DIVISION = 2.0 * UNIT  # of the masses by their sum; that it is rounded moves no product


@dataclass(frozen=True)
class Sum:
    """Tilted masses of the sum on the window.

    ``first`` is the first index of the window, in the coordinate of the loss; a test's index lies
    ``shift`` further.  The mass at index i = first + shift + j is ``mass[j] e^{log_scale - rate
    i}`` up to absolute errors: ``noise`` on each mass, ``below`` and ``above`` for what lies
    outside the window (its tilted mass, part of which may be counted inside), and the relative
    error ``scale_error``.
    """

    mass: FloatArray
    rate: float
    log_scale: float
    scale_error: float
    noise: float
    below: float
    above: float
    first: int
    shift: int

    @property
    def last(self) -> int:
        """The last index of the window, in the coordinate of the loss."""
        return self.first + self.mass.size - 1


def _moments(array: FloatArray, centre: float, rate: float) -> tuple[float, float]:
    """Sums of y_k e^{rate (k - centre)} and of k - centre times that."""
    out = np.empty(2)
    lib.pe_exponential_sums(array.size, doubles(array), centre, rate, doubles(out, True))
    return float(out[0]), float(out[1])


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
        rate = (tilt - plan.tilt) * plan.spacing
        exponent = -rate * end
        error = 4.0 * UNIT * abs(exponent)
        for array, number, grid in zip(arrays, steps, plan.grids, strict=True):
            moment = _moments(array, grid.centre, rate)[0]
            exponent += number * fn.log(moment) if moment < math.inf else math.inf
            error += number * UNIT * (array.size / 32.0 + 80.0 + 6.0 * abs(rate) * array.size)
        bounds.append(fn.exp(min(exponent + error, 1.0)))
    return bounds[0], bounds[1]


def sum_of(
    arrays: list[FloatArray],
    steps: list[int],
    scales: list[float],
    rate: float,
    shift: int,
    plan: Plan,
    *,
    is_wide: bool,
) -> Sum:
    """Masses of a composition by FFT: of steps with given masses, scales and tilt of the masses.

    In sums of two doubles where ``is_wide``, for which the points are 2^21 at most.
    """
    log_scale = scale_error = 0.0
    normal = []
    for array, number, scale in zip(arrays, steps, scales, strict=True):
        norm = float(array.sum())
        log_scale += number * (scale + fn.log(norm))
        scale_error += number * (DIVISION + 4.0 * UNIT * (abs(scale) + abs(fn.log(norm))))
        normal.append(array / norm)
    below, above = _outside(normal, steps, plan.first + shift, plan)
    cyclic, noise = (_wide_sum if is_wide else _cyclic_sum)(normal, steps, plan)
    start = (plan.first + shift) % cyclic.size
    mass = np.concatenate([cyclic[start:], cyclic[:start]])[: plan.points]
    np.maximum(mass, 0.0, out=mass)
    scale_error += 4.0 * UNIT * (1.0 + abs(log_scale))
    return Sum(mass, rate, log_scale, scale_error, noise, below, above, plan.first, shift)


def _cyclic_sum(arrays: list[FloatArray], steps: list[int], plan: Plan) -> tuple[FloatArray, float]:
    """Masses of the sum at indices modulo the period, and a bound on the rounding of each."""
    points = plan.points
    half = points // 2 + 1
    folds = max(array.size // points for array in arrays)
    level_error = FFT_ROUNDING * (points - 1).bit_length() + UNIT * folds
    bound, slack = np.ones(half), np.zeros(half)
    product: npt.NDArray[np.complex128] | None = None
    total = 0  # steps whose powers are squared repeatedly
    for array, number, grid in zip(arrays, steps, plan.grids, strict=True):
        if number >= MANY and (few := _few_losses(array)).size:
            product = _sparse_power(array, few, number, grid.centre, points, product, bound, slack)
            continue
        total += number
        spectrum = np.fft.rfft(_wrapped(array, grid.centre, points))
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
        del spectrum
    assert product is not None
    # rounding of the forward transforms and of the powers, then of the inverse
    slack += 3.0 * UNIT * (total + len(steps)) + level_error
    noise = 2.0 / points * float((bound * slack).sum()) * (1.0 + 4.0 * UNIT * sum(steps) + 1e-9)
    return np.fft.irfft(product, points), noise


def _few_losses(array: FloatArray) -> npt.NDArray[np.intp]:
    """Where a step has its masses, if these are few; none where a transform serves better."""
    found = np.flatnonzero(array > LIGHT)
    return found if found.size <= lib.PE_MOST_SPARSE else found[:0]


# Map: the power of a step of few losses | test_lattice_sums | theory/lattice
def _sparse_power(
    array: FloatArray,
    few: npt.NDArray[np.intp],
    number: int,
    centre: int,
    points: int,
    product: npt.NDArray[np.complex128] | None,
    bound: FloatArray,
    slack: FloatArray,
) -> npt.NDArray[np.complex128]:
    """Times the power of a step's transform; its phase is that of the heaviest loss."""
    mass = np.ascontiguousarray(array[few])
    heaviest = int(few[np.argmax(mass)])
    place = np.ascontiguousarray((few - heaviest) % points, dtype=np.int64)
    bits = max(points.bit_length() // 2, 1)
    spectrum = np.empty(bound.size, dtype=np.complex128)
    lib.pe_sparse_power(
        bound.size,
        points,
        few.size,
        ffi.from_buffer("int64_t[]", place),
        doubles(mass),
        lib.pe_sum_less_one(mass.size, doubles(mass)),
        LIGHT * array.size,
        float(number),
        (heaviest - centre) * number % points,
        bits,
        doubles(np.empty(2 ** (bits + 1) + 2 * (points // 2**bits + 3)), True),
        ffi.NULL if product is None else ffi.from_buffer("double[]", product),
        ffi.from_buffer("double[]", spectrum, require_writable=True),
        doubles(bound, True),
        doubles(slack, True),
    )
    return spectrum


def _wide_sum(arrays: list[FloatArray], steps: list[int], plan: Plan) -> tuple[FloatArray, float]:
    """The same in sums of two doubles, with a period that is a power of 2."""
    points = 1 << (plan.points - 1).bit_length()
    given = ffi.new("pe_masses[]", len(arrays))
    kept = [np.ascontiguousarray(array) for array in arrays]
    for one, array, number, grid in zip(given, kept, steps, plan.grids, strict=True):
        one.size, one.centre, one.steps, one.mass = array.size, grid.centre, number, doubles(array)
    cyclic, noise = np.empty(points), np.empty(1)
    status = lib.pe_wide_sum(points, len(kept), given, doubles(cyclic, True), doubles(noise, True))
    finished(status, f"a transform of {points} points in sums of two doubles")
    return cyclic, float(noise[0])


def _wrapped(array: FloatArray, centre: int, points: int) -> FloatArray:
    """The masses at index k - centre modulo the period."""
    start = -centre % points
    whole = np.zeros((start + array.size + points - 1) // points * points)
    whole[start : start + array.size] = array
    return whole if whole.size == points else whole.reshape(-1, points).sum(axis=0)


class Composed:
    """A composition at one place: the spread pair and both laws of the tests' index.

    Sums are made when asked for, and not kept: at 2^23 points each takes 64 MB.

    Parameters
    ----------
    parts : tuple of (StepLaw, int)
        The steps.
    plan : Plan
        Their lattice.
    is_wide : bool
        Whether sums are formed in sums of two doubles.

    Attributes
    ----------
    moved : int
        How much further the window of the tests' index lies than that of the loss.
    lost : tuple of float
        Lower and upper bound of the A-mass at loss -infinity.
    shrunk : float
        Log of the factor by which the masses of tests may be too small, those of both laws alike.
    """

    def __init__(self, parts: tuple[Part, ...], plan: Plan, *, is_wide: bool) -> None:
        self.plan, self.is_wide = plan, is_wide
        self._masses = [
            step_masses(law, grid, plan) for (law, _), grid in zip(parts, plan.grids, strict=True)
        ]
        self._steps = [number for _, number in parts]
        # a test's index rounds the loss of every step: the window goes with its mean
        self.moved = round(
            sum(
                number * (_mean(m.a) - _mean(m.spread))
                for number, m in zip(self._steps, self._masses, strict=True)
            )
        )
        self.shrunk = sum(
            number * m.blur for number, m in zip(self._steps, self._masses, strict=True)
        )
        self.lost = _lost(parts, self._masses, self.shrunk)

    @property
    def highest(self) -> int:
        """The largest index that the sum can have."""
        grids = zip(self._steps, self.plan.grids, strict=True)
        return sum(number * (grid.last - grid.centre) for number, grid in grids)

    def _sum(self, arrays: list[FloatArray], scales: list[float], extra: float, shift: int) -> Sum:
        rate = (self.plan.tilt - extra) * self.plan.spacing
        return sum_of(arrays, self._steps, scales, rate, shift, self.plan, is_wide=self.is_wide)

    @property
    def spread(self) -> Sum:
        """The pair with its cells split: masses of A."""
        scales = [grid.log_scale for grid in self.plan.grids]
        return self._sum([m.spread for m in self._masses], scales, 0.0, 0)

    @property
    def a(self) -> Sum:
        """Law of the tests' index under A."""
        scales = [grid.log_scale for grid in self.plan.grids]
        return self._sum([m.a for m in self._masses], scales, 0.0, self.moved)

    @property
    def b(self) -> Sum:
        """Law of the tests' index under B."""
        scales = [m.log_scale_b for m in self._masses]
        return self._sum([m.b for m in self._masses], scales, 1.0, self.moved)


def _mean(array: FloatArray) -> float:
    """Mean index, without what is folded onto the first point."""
    total, first = _moments(array[1:], 0.0, 0.0)
    if not total > 0.0:
        raise AccuracyError(
            "the loss asked for is so near the end of its range that one point of the lattice "
            "holds all: ask for a level further from 0 and 1"
        )
    return first / total


def _lost(parts: tuple[Part, ...], masses: list[StepMasses], blur: float) -> tuple[float, float]:
    """Bounds on the A-mass at loss -infinity: the law's own, and with what folding added."""
    lower, upper = 0.0, 0.0
    for (law, steps), mass in zip(parts, masses, strict=True):
        alone = law.infinite()[0]
        whole = min(alone * (1.0 + 2.0**-48) + mass.lost, 1.0)
        lower += steps * fn.log1p(-alone * (1.0 - 2.0**-48)) if alone < 1.0 else -math.inf
        upper += steps * fn.log1p(-whole) if whole < 1.0 else -math.inf
    return (
        0.0 - fn.expm1(lower) * (1.0 - 2.0**-48),
        min(0.0 - fn.expm1(upper) * (1.0 + 2.0**-48) * fn.exp(blur), 1.0),
    )
