"""Chernoff's bounds on profiles of Laplace steps: proven, quick and rough.

They tell that the profile of one order is below that of the other one, so that nobody has to know
its digits (docs/theory/panels).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine.caches import kept
from pyengine.engines.panels.shape import LaplaceShape, StepShape
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
        if not isinstance(shape, LaplaceShape):
            return math.inf
        each = number * log_mean_bound(shape, tilt)
        log, size = log + each, size + abs(each)
    c = epsilon if exchanged else -epsilon
    log += (c if exchanged else 0.0) - tilt * c - math.log(tilt if exchanged else 1.0 - tilt)
    log += 16.0 * UNIT * (size * len(kinds) + abs(tilt * c) + abs(c) + 1.0)
    return math.exp(log) * SLACK if log < MOST else math.inf


@kept(256)
def log_mean_bound(shape: LaplaceShape, tilt: float) -> float:
    """Return a number not below the logarithm of the mean of e^(tilt loss) under A.

    As a function of y = e^v the ratio's power is convex for tilts outside of (0, 1), so that chords
    on cells of v are above it; their integrals have closed forms.
    """
    if 0.0 < tilt < 1.0:
        raise ValueError(f"tilt must not lie between 0 and 1, got {tilt!r}")
    if shape.distance > FARTHEST:
        return math.inf
    slope, (low, high) = float(shape.slope), (float(end) for end in shape.ends)
    v = 2.0 * float(shape.distance) * np.arange(CELLS + 1.0) / CELLS
    exponent = tilt * (low + np.log1p(np.expm1(v) / slope))
    top = float(exponent.max())
    value = np.exp(exponent - top)
    mass = 0.5 * np.exp(-0.5 * v[:-1]) * -math.expm1(-0.5 * float(v[1]))
    # the mean of (e^v - 1)/(e^w - 1) on a cell of the length w, where v has the density e^(-v/2)
    part = 1.0 / (1.0 + math.exp(0.5 * float(v[1])))
    total = float((mass * ((1.0 - part) * value[:-1] + part * value[1:])).sum())
    total += sum((shape.atoms.astype(np.float64) * value[[0, -1]]).tolist())
    size = abs(tilt) * (abs(low) + abs(high) + float(shape.length))
    return top + math.log(total * SLACK) + 32.0 * UNIT * (size + 1.0)
