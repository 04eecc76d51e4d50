"""About how the transform of a step falls along a line: for choices, which bounds judge later."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.vertical_lines.decay import decay_of
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape, StepShape, SubstitutedShape
from pyengine.engines.vertical_lines.shapes import At
from pyengine.engines.vertical_lines.tilted import NOTHING_LOST
from pyengine.numerics import functions as fn

__all__ = ["Fall", "fall_of", "log_at_ends"]

FloatArray = npt.NDArray[np.float64]


class Fall(NamedTuple):
    """Bounds, or nearly that, at some frequencies.

    Parameters
    ----------
    modulus : ndarray
        Of the transform from there on.
    tail : ndarray
        Of the integral over t, from there on, of what is beside the part that need not fall.
    """

    modulus: FloatArray
    tail: FloatArray


@singledispatch
def fall_of(
    shape: Any,
    tilt: float,
    log_mean: float,
    variance: float,
    frequency: FloatArray,
    steps: int,
    log_lost: float = NOTHING_LOST,
) -> Fall:
    """Return how the transform of a step at a tilt falls, one of so many steps of all kinds.

    ``log_mean`` and ``variance`` are those of the tilted law; ``log_lost`` as of `tilted_step`.
    """
    found: Fall = shape.fall(At(tilt, log_mean, steps, log_lost), variance, frequency)
    return found


@fall_of.register(LaplaceShape)
@fall_of.register(SubstitutedShape)
def _(
    shape: StepShape,
    tilt: float,
    log_mean: float,
    variance: float,
    frequency: FloatArray,
    steps: int,
    log_lost: float = NOTHING_LOST,
) -> Fall:
    del steps, log_lost
    decay, length = decay_of(shape, tilt, log_mean), float(shape.length)
    most = decay.largest(np.maximum(frequency, np.pi / length))
    turn = np.minimum(frequency * length, np.pi)
    square = 1.0 - 2.0 * variance * (1.0 - fn.cos(turn)) / (length * length)
    near = np.where(frequency * length < np.pi, np.sqrt(np.maximum(square, 0.0)), 0.0)
    return Fall(np.maximum(most, near), decay.tail(frequency))


@singledispatch
def log_at_ends(shape: Any, tilt: float, log_mean: float, steps: int) -> float:
    """Return the logarithm of the tilted mass of the part whose transform need not fall."""
    return float(shape.log_at_ends(At(tilt, log_mean, steps, NOTHING_LOST)))


@log_at_ends.register(LaplaceShape)
@log_at_ends.register(SubstitutedShape)
def _(shape: StepShape, tilt: float, log_mean: float, steps: int) -> float:
    del steps
    mass = math.fsum(
        fn.exp(min(tilt * float(end) - log_mean + fn.log(float(atom)), 0.0))
        for end, atom in zip(shape.ends, shape.atoms, strict=True)
    )
    return fn.log(min(mass, 1.0))
