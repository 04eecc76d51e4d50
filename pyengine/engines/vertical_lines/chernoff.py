"""Chernoff's bounds on profiles of Laplace steps: proven, quick and rough.

They tell that the profile of one order is below that of the other one, so that nobody has to know
its digits (docs/theory/laplace).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.engines.vertical_lines.laplace_shapes import StepShape
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["log_mean_bound", "profile_bound"]

FloatArray = npt.NDArray[np.float64]

CELLS = 192
SLACK = 1.0 + 1e-9  # for the rounding of sums and of masses
MOST = 700.0  # exponent of a bound that says nothing
FARTHEST = 300  # half of the largest v, so that e^v is a number


def profile_bound(
    kinds: tuple[tuple[StepShape, int], ...], tilt: float, epsilon: float, *, exchanged: bool
) -> float:
    """Return a number not below H_{e^ε}(A‖B), or H_{e^ε}(B‖A) if ``exchanged``.

    With x the distance of the sum S from the threshold c the profile is the mean of (1 - e^x)_+ at
    c = -ε, or e^c times that of (e^x - 1)_+ at c = ε.  On their sides these are at most e^(λ x)
    over 1 - λ, and over λ.

    Parameters
    ----------
    kinds : tuple of (StepShape, int)
        The steps, A without the record, and how many there are of each.
    tilt : float
        λ, below 0, or above 1 if ``exchanged``: other ones say nothing, and the bound is infinite.
    epsilon : float
        At least 0.
    exchanged : bool
        Which order is asked about.
    """
    if not (tilt > 1.0 if exchanged else tilt < 0.0):
        return math.inf
    log, size = 0.0, 0.0
    for shape, number in kinds:
        each = number * log_mean_bound(shape, tilt)
        log, size = log + each, size + abs(each)
    c = epsilon if exchanged else -epsilon
    log += (c if exchanged else 0.0) - tilt * c - fn.log(tilt if exchanged else 1.0 - tilt)
    log += 16.0 * UNIT * (size * len(kinds) + abs(tilt * c) + abs(c) + 1.0)
    return fn.exp(log) * SLACK if log < MOST else math.inf


@kept(256)
def log_mean_bound(shape: StepShape, tilt: float) -> float:
    """Return a number not below the logarithm of the mean of e^(tilt loss) under A.

    As a function of y = e^v the power of the ratio, or of its inverse where losses fall, is convex
    unless the exponent lies in (0, 1), so that chords on cells of v are above it; their integrals
    have closed forms.  Elsewhere the larger end of a cell is above it.
    """
    if 0.0 < tilt < 1.0:
        raise ValueError(f"tilt must not lie between 0 and 1, got {tilt!r}")
    if shape.distance > FARTHEST:
        return math.inf
    slope, (low, high) = float(shape.slope), (float(end) for end in shape.ends)
    v = 2.0 * float(shape.distance) * np.arange(CELLS + 1.0) / CELLS
    away, width = fn.log1p(fn.expm1(v) / slope), fn.exp(0.5 * float(v[1]))
    logs = [tilt * (float(each.origin) + each.sign * away) for each in shape.branches]
    top = max(tilt * low, tilt * high, *(float(log.max()) for log in logs))
    atoms = np.array([float(atom) for atom in shape.atoms])
    total = math.fsum((atoms * fn.exp(tilt * np.array([low, high]) - top)).tolist())
    # the mean of (e^v - 1)/(e^w - 1) on a cell of the length w, where v has either density
    falling = 0.5 * fn.exp(-0.5 * v[:-1]) * (1.0 - 1.0 / width), 1.0 / (1.0 + width)
    rising = 0.5 * fn.exp(0.5 * v[:-1]) * (width - 1.0), (width + 2.0) / (3.0 * (width + 1.0))
    for each, log in zip(shape.branches, logs, strict=True):
        value = fn.exp(log - top)
        is_convex = not 0.0 < tilt * each.sign < 1.0
        largest = np.maximum(value[:-1], value[1:])
        for (mass, part), weight in ((falling, each.falling), (rising, each.rising)):
            mean = (1.0 - part) * value[:-1] + part * value[1:] if is_convex else largest
            total += float(weight) * float((mass * mean).sum())
    size = abs(tilt) * (abs(low) + abs(high) + float(shape.length))
    return top + fn.log(total * SLACK) + 32.0 * UNIT * (size + 1.0)
