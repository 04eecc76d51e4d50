"""Law of a sum of lattice steps by one FFT, with a bound of its rounding.

The rounding error of a transform is proportional to the log of its length at every frequency; the
N-th power multiplies it by N (docs/theory/lattice, Theorem 11).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.lattice.discretise import doubles
from pyengine.engines.lattice.plan import Plan
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["Sum", "moments", "sum_of"]

FloatArray = npt.NDArray[np.float64]

FFT_ROUNDING = 10.0 * UNIT  # relative, per radix-2 level of the transform (Lemma 10)
DIVISION = 2.0 * UNIT  # relative, of masses divided by their computed sum


@dataclass(frozen=True)
class Sum:
    """Tilted masses of the sum on the window.

    ``first`` is the first index of the window for the loss; the window of the index of tests starts
    ``shift`` later.  The mass at index i = first + shift + j is ``mass[j] e^{log_scale - rate i}``.
    Absolute errors of tilted masses: ``noise`` of each (rounding); ``below`` and ``above`` bound
    the mass outside the window, which may also be aliased into it.  ``scale_error`` is the relative
    error of the factor.
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
        """The last index of the window for the loss."""
        return self.first + self.mass.size - 1


def moments(array: FloatArray, centre: float, rate: float) -> tuple[float, float]:
    """Sums over k of y_k e^{rate (k - centre)} and of (k - centre) y_k e^{rate (k - centre)}."""
    out = np.empty(2)
    lib.pe_exponential_sums(array.size, doubles(array), centre, rate, doubles(out, True))
    return float(out[0]), float(out[1])


def _outside(
    arrays: list[FloatArray], steps: list[int], first: int, plan: Plan
) -> tuple[float, float]:
    """Chernoff bounds of the tilted mass of the sum below and above the window (Lemma 9)."""
    bounds = []
    ends = [0.0, 0.0]  # smallest and largest index of the sum
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
            moment = moments(array, grid.centre, rate)[0]
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
    offset: int,
) -> Sum:
    """Compose by FFT ``steps[i]`` steps with tilted masses ``arrays[i]``, in units e^``scales[i]``.

    ``rate`` is the tilt per lattice point, ``shift`` that of the window (see `Sum`).
    """
    points = plan.points
    half = points // 2 + 1
    folds = max(array.size // points for array in arrays)
    level_error = FFT_ROUNDING * (points - 1).bit_length() + UNIT * folds
    bound, slack = np.ones(half), np.zeros(half)
    product: npt.NDArray[np.complex128] | None = None
    # for indices of the first term, with this term's weight
    log_scale = plan.log_weight + rate * offset
    scale_error = 8.0 * UNIT * (abs(plan.log_weight) + abs(rate * offset))
    normal = []
    for array, number, scale, grid in zip(arrays, steps, scales, plan.grids, strict=True):
        norm = float(array.sum())
        log_scale += number * (scale + fn.log(norm))
        scale_error += number * (DIVISION + 4.0 * UNIT * (abs(scale) + abs(fn.log(norm))))
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
        del spectrum
    assert product is not None
    below, above = _outside(normal, steps, plan.first + shift, plan)
    # rounding of the forward transforms and of the powers, then of the inverse
    slack += 3.0 * UNIT * (sum(steps) + len(steps))
    doubt = float((slack * bound).sum()) + level_error * float(bound.sum())
    noise = 2.0 / points * doubt * (1.0 + 4.0 * UNIT * sum(steps) + 1e-9)
    del bound, slack, normal
    cyclic = np.fft.irfft(product, points)
    del product
    start = (plan.first + shift) % points
    mass = np.concatenate([cyclic[start:], cyclic[:start]])
    np.maximum(mass, 0.0, out=mass)
    scale_error += 4.0 * UNIT * abs(log_scale)
    return Sum(mass, rate, log_scale, scale_error, noise, below, above, plan.first + offset, shift)


def _wrapped(array: FloatArray, centre: int, points: int) -> FloatArray:
    """Masses at index k - centre modulo the period ``points``."""
    start = -centre % points
    whole = np.zeros((start + array.size + points - 1) // points * points)
    whole[start : start + array.size] = array
    return whole if whole.size == points else whole.reshape(-1, points).sum(axis=0)
