"""Proven upper bounds of profiles of Laplace steps, from losses on a coarse lattice.

Each loss is split between the lattice points on both sides so that both laws keep their mass.  The
profile of a step becomes its own chords, and that of a sum can only grow (docs/theory/laplace,
Lemma 5).  One transform of a few thousand points comes within some thousandths of the profile;
Chernoff's bound is ten times as large.
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

CELLS = 300.0  # of the longest step, times the root of the number of steps
LEAST_CELLS, MOST_CELLS = 8, 96
FARTHEST = 300  # largest μ: e^(2 μ) is a double
REACH = 16.0  # least period of the lattice, in standard deviations; farther losses are folded
MOST_POINTS = 2**13  # of a transform: more take longer than the question itself
MOST_ROUNDING = 1e-2  # log of the factor by which rounding may raise the bound
MOST_LOG = 700.0  # larger exponents overflow


class LatticeStep(NamedTuple):
    """A's masses at the least loss plus multiples of the spacing; ``error`` is relative."""

    mass: FloatArray
    error: float


# Map: profiles of sums of Laplace steps, from chords | test_laplace_chernoff | theory/laplace
def chord_bound(kinds: Kinds, tilt: float, epsilon: float, *, exchanged: bool) -> float:
    """Return an upper bound of H_{e^ε}(A‖B), or of H_{e^ε}(B‖A) if ``exchanged``.

    Parameters
    ----------
    kinds : tuple of (LossShape, int)
        The steps, A without the record.  The bound is infinite unless all are Laplace steps.
    tilt : float
        λ of the bound: below 0, or above 1 if ``exchanged``; infinite for others.
    epsilon : float
        At least 0.
    exchanged : bool
        Whether the pair is (B, A).
    """
    is_usable = tilt > 1.0 if exchanged else tilt < 0.0
    # not subclasses: steps of bounded range have another density and no atoms
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
    if 1 << levels > MOST_POINTS or not off < MOST_ROUNDING:
        return math.inf
    # roundings of lattice points, of the threshold and of each step's largest loss
    moved = 16.0 * UNIT * (abs(low) + abs(c) + wide) * len(kinds)
    beyond = ((low - c) if exchanged else (c - low)) / spacing
    weight = _weights(beyond, rate, spacing, 1 << levels, exchanged=exchanged) + 2.0 * moved
    total, error = _mean(tilted, weight, levels)
    log += (c if exchanged else 0.0) - tilt * c + off
    return (total + error) * fn.exp(log) if log < MOST_LOG else math.inf


def _weights(
    beyond: float, rate: float, spacing: float, points: int, *, exchanged: bool
) -> FloatArray:
    """Upper bounds of e^(-rate y) (1 - e^-y) over each residue class of the folded lattice.

    y > 0 is the distance beyond the threshold; ``beyond`` is that of the first point, in spacings.
    """
    k = np.arange(float(points))
    y = spacing * np.mod(beyond + k if exchanged else beyond - k, float(points))
    # the function rises to its maximum and then falls: the first point, and the later ones of the
    # class from the next period or the maximum on
    highest = fn.log1p(1.0 / rate)
    after = np.maximum(y + spacing * points, highest)
    first = fn.exp(-rate * y) * -fn.expm1(-y)
    return np.asarray(np.maximum(first, fn.exp(-rate * after) * -fn.expm1(-after)))


def _mean(
    tilted: list[tuple[FloatArray, int]], weight: FloatArray, levels: int
) -> tuple[float, float]:
    """The mean of the weights under the folded law of the sum, and a bound of its rounding.

    Transforms err by `FFT_ROUNDING` per level of the Euclidean norm, which is at most 1; an n-th
    power of a modulus of at most 1 by n times that; the weighted sum by Cauchy and Schwarz.
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
    """Return a step with its losses split between lattice points; None where e^v overflows.

    e^loss is affine in e^v, and A's density of v is e^(-v/2)/4 between the atoms.  So of the mass
    of a cell of length w in v the part 1/(1 + e^(w/2)) goes to the upper lattice point.
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
    # the largest loss lies inside the last cell of the lattice
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
