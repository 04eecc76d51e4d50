"""Bounds on profiles of Laplace steps from losses on a coarse lattice: proven, and close.

A step whose losses are spread to the lattice points on both sides of each, so that the mass of
either law stays what it is, has chords for its profile, and so has every sum of such steps: it lies
above.  One transform of a few thousand points tells the profile within some thousandths, where
Chernoff's bound is ten times as large (docs/theory/laplace).
"""

from __future__ import annotations

import math
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.engines.lattice.fft_convolution import FFT_ROUNDING
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape
from pyengine.engines.vertical_lines.shapes import Kinds
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["chord_bound"]

FloatArray = npt.NDArray[np.float64]

CELLS = 300.0  # of the longest step, over the root of the number of steps
LEAST_CELLS, MOST_CELLS = 8, 96
FARTHEST = 300  # half of the largest v, so that e^v is a number
REACH = 16.0  # standard deviations that the lattice holds at least, before it is folded
MOST_POINTS = 2**13  # of a transform: more take longer than what they spare
MOST_OFF = 1e-2  # logarithm of what rounding may add
MOST = 700.0  # exponent of a bound that says nothing


class LatticeStep(NamedTuple):
    """A's masses at the least loss plus multiples of a spacing, all with a relative error."""

    mass: FloatArray
    error: float


# Map: profiles of sums of Laplace steps, from chords | test_laplace_chernoff | theory/laplace
def chord_bound(kinds: Kinds, tilt: float, epsilon: float, *, exchanged: bool) -> float:
    """Return a number not below H_{e^ε}(A‖B), or H_{e^ε}(B‖A) if ``exchanged``.

    Parameters
    ----------
    kinds : tuple of (LossShape, int)
        The steps, A without the record; of others than Laplace steps the bound is infinite.
    tilt : float
        That of the lattice's masses, below 0, or above 1 if ``exchanged``: others say nothing.
    epsilon : float
        At least 0.
    exchanged : bool
        Which order is asked about.
    """
    is_usable = tilt > 1.0 if exchanged else tilt < 0.0
    # a bounded range has another density, and no atoms
    if not is_usable or any(type(shape) is not LaplaceShape for shape, _ in kinds):
        return math.inf
    number = sum(n for _, n in kinds)
    cells = min(max(int(CELLS / math.sqrt(number)), LEAST_CELLS), MOST_CELLS)
    spacing = max(float(shape.length) for shape, _ in kinds) / cells
    log, size, off, low, spread, last = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    tilted: list[tuple[FloatArray, int]] = []
    for shape, n in kinds:
        step = _on_lattice(shape, spacing)
        if step is None:
            return math.inf
        k = np.arange(float(step.mass.size))
        exponent = tilt * spacing * k
        across = float(exponent[-1])
        top = max(across, 0.0)
        mass = step.mass * fn.exp(exponent - top)
        total = float(mass.sum())
        mass /= total
        mean = float(mass @ k)
        spread += n * max(float(mass @ (k * k)) - mean * mean, 0.0)
        least = float(shape.ends[0])
        each = tilt * least + top + fn.log(total)
        log, low, last = log + n * each, low + n * least, last + n * (step.mass.size - 1)
        size += n * (abs(each) + abs(tilt * least) + abs(across) + 1.0)
        off += n * (step.error + UNIT * (8.0 + 4.0 * abs(across)))
        tilted.append((mass, n))
    points = min(REACH * math.sqrt(spread), float(last)) + max(len(mass) for mass, _ in tilted)
    levels = math.ceil(points).bit_length()
    rate = tilt - 1.0 if exchanged else -tilt
    wide = spacing * max(last, 1 << levels)  # the largest distance on the lattice
    c = epsilon if exchanged else -epsilon
    off += 32.0 * UNIT * (size * len(kinds) + abs(tilt * c) + abs(c) + rate * wide + 1.0)
    if 1 << levels > MOST_POINTS or not off < MOST_OFF:
        return math.inf
    # places of the lattice and the threshold are rounded, and so is the largest loss of a step
    moved = 16.0 * UNIT * (abs(low) + abs(c) + wide) * len(kinds)
    beyond = ((low - c) if exchanged else (c - low)) / spacing
    weight = _weights(beyond, rate, spacing, 1 << levels, exchanged=exchanged) + 2.0 * moved
    total, error = _mean(tilted, weight, levels)
    log += (c if exchanged else 0.0) - tilt * c + off
    return (total + error) * fn.exp(log) if log < MOST else math.inf


def _weights(
    beyond: float, rate: float, spacing: float, points: int, *, exchanged: bool
) -> FloatArray:
    """Bounds on e^(-rate y) (1 - e^-y) at all places of each class of a folded lattice.

    y > 0 is the distance beyond the threshold, ``beyond`` that of the first place in spacings.
    """
    k = np.arange(float(points))
    y = spacing * np.mod(beyond + k if exchanged else beyond - k, float(points))
    # the weight rises up to its largest value and falls from there; further places of a class
    # follow after a period
    highest = fn.log1p(1.0 / rate)
    after = np.maximum(y + spacing * points, highest)
    first = fn.exp(-rate * y) * -fn.expm1(-y)
    return np.asarray(np.maximum(first, fn.exp(-rate * after) * -fn.expm1(-after)))


def _mean(
    tilted: list[tuple[FloatArray, int]], weight: FloatArray, levels: int
) -> tuple[float, float]:
    """The mean of the weights under the folded law of the sum, and a bound on its rounding.

    Transforms are off by a part of the norm, which is at most 1, and powers of numbers of modulus
    at most 1 by as many times that; sums with weights by Cauchy and Schwarz.
    """
    factors = [fn.power_by_squares(np.fft.rfft(mass, weight.size), n) for mass, n in tilted]
    number = sum(n for _, n in tilted)
    law = np.fft.irfft(reduce(np.multiply, factors), weight.size)
    level = FFT_ROUNDING * levels
    error = 1.1 * (number * (level + 4.0 * UNIT) + level) * math.sqrt(float(weight @ weight))
    error += UNIT * weight.size * float(np.abs(law) @ weight)
    return float(law @ weight), error


@kept(64)
def _on_lattice(shape: LaplaceShape, spacing: float) -> LatticeStep | None:
    """Return a step with its losses on a lattice; None where v is too large for doubles.

    e^loss is an affine function of y = e^v, of which A has the density e^(-v/2)/4 between atoms, so
    that a cell of v of the length w has the mean (1 + e^(w/2))^-1 of the part of the way in y.
    """
    if shape.distance > FARTHEST:
        return None
    length, far = float(shape.length), 2.0 * float(shape.distance)
    count = max(math.ceil(length / spacing * (1.0 - 8.0 * UNIT)), 1)
    rise = float(shape.slope) * fn.expm1(spacing * np.arange(count + 1.0))  # y - 1
    v = np.minimum(fn.log1p(rise), far)
    v[-1] = far
    width = np.diff(v)
    least = float(width.min())
    if not least > 0.0:
        return None
    error = 128.0 * UNIT * (1.0 + far + length) / min(least, 1.0)
    cell = 0.5 * fn.exp(-0.5 * v[:-1]) * -fn.expm1(-0.5 * width)
    part = 1.0 / (1.0 + fn.exp(0.5 * width))
    # the last cell ends inside of one of the lattice, and so does the last atom
    end = min((fn.expm1(far) - float(rise[-2])) / float(rise[-1] - rise[-2]), 1.0)
    part[-1] *= end
    first, last = (float(atom) for atom in shape.atoms)
    mass = np.zeros(count + 1)
    mass[0] = first
    mass[:-1] += cell * (1.0 - part)
    mass[1:] += cell * part
    mass[-2] += last * (1.0 - end + error)
    mass[-1] += last * end
    return LatticeStep(mass, error)
