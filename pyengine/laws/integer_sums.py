"""Laws of sums of noise on the integers: Skellam noise, and discrete Gaussians of many parties.

All terms of a convolution are positive, so that n of them cost n units of relative error.  Both
kinds of noise are log-concave, so that a query's largest move is the worst one: ratios of masses
grow with k, the best tests are thresholds, and these tell more of a larger move.  What is rarer
than 1e-280 is told outright.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine.errors import AccuracyError
from pyengine.laws.finite import FiniteLaw
from pyengine.mechanisms.additive import DiscreteGaussianSum, SkellamMechanism
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["gaussian_sum_law", "skellam_law"]

FloatArray = npt.NDArray[np.float64]

LEAST = 1e-280  # masses below it are told
TINY = 1e-300  # of a part of a sum
MOST_PLACES = 1 << 15


def skellam_law(step: SkellamMechanism, doubled: bool) -> FiniteLaw:
    """Law of a difference of two Poisson variables; ``doubled`` for a record in another's place."""
    variance = (Fraction(step.noise_multiplier) * step.sensitivity) ** 2
    _check(36.0 * math.sqrt(float(variance)) + 400.0)
    rate = float(variance / 2)
    mode = math.floor(rate)
    up = rate / np.arange(mode + 1.0, mode + 60.0 * math.sqrt(rate) + 300.0)
    down = np.arange(float(mode), max(mode - 60.0 * math.sqrt(rate) - 300.0, 0.0), -1.0) / rate
    with np.errstate(under="ignore"):
        mass = np.concatenate([np.cumprod(down)[::-1], [1.0], np.cumprod(up)])
    mass = mass[mass > TINY]
    # three units for each factor, that of the rate among them
    error = 3.0 * UNIT * (mass.size + 2.0)
    mass, error = mass / mass.sum(), 2.0 * error + UNIT * mass.size
    return _law(
        np.convolve(mass, mass[::-1]), 2.0 * error + 1.01 * (mass.size + 2) * UNIT, step, doubled
    )


def gaussian_sum_law(step: DiscreteGaussianSum, doubled: bool) -> FiniteLaw:
    """Law of a sum of equal discrete Gaussians; ``doubled`` for a record in another's place."""
    scale = Fraction(step.noise_multiplier) * step.sensitivity
    _check(36.0 * float(scale) * math.sqrt(step.summands) + 4.0)
    rate = float(1 / (2 * scale**2))
    reach = math.ceil(math.sqrt(-fn.log(TINY) / rate))
    k = np.arange(-float(reach), reach + 1.0)
    exponents = rate * k * k
    one = fn.exp(-exponents)
    error = UNIT * (3.0 * float(exponents.max()) + ELEMENTARY + 2.0)
    one, error = one / one.sum(), 2.0 * error + UNIT * k.size
    total, off = one, error
    for bit in bin(step.summands)[3:]:
        total, off = _added(total, off, total, off)
        if bit == "1":
            total, off = _added(total, off, one, error)
    return _law(total, off, step, doubled)


def _added(
    first: FloatArray, off: float, second: FloatArray, error: float
) -> tuple[FloatArray, float]:
    """The convolution of two symmetric laws without what is rare, and its relative error."""
    with np.errstate(under="ignore"):
        found = np.convolve(first, second)
    kept = np.flatnonzero(found > TINY)
    terms = min(first.size, second.size) + 2
    # what underflow and the ends of both laws leave out is far below a unit of what is kept
    return found[kept[0] : kept[-1] + 1], off + error + 1.02 * terms * UNIT


def _check(reach: float) -> None:
    if 2.0 * reach > MOST_PLACES:
        raise AccuracyError(
            f"the sum has about {2.0 * reach:.0f} values that matter, more than {MOST_PLACES}: "
            "scale the query down, or take DiscreteGaussianMechanism of the same variance"
        )


def _law(
    mass: FloatArray,
    error: float,
    step: SkellamMechanism | DiscreteGaussianSum,
    doubled: bool,
) -> FiniteLaw:
    """Law of symmetric noise with these masses around 0, moved by the sensitivity, or by two."""
    shift = step.sensitivity * (2 if doubled else 1)
    kept = np.flatnonzero(mass > LEAST)
    mass = mass[kept[0] : kept[-1] + 1]
    if shift >= mass.size:
        none = np.zeros(0)
        return FiniteLaw(none, none, none, 1.0, 1.0, alone=(Fraction(1), Fraction(1)))
    told = Fraction(float(mass[:shift].sum()) * (1.0 + error + 4.0 * UNIT) + 2.0 * LEAST)
    with_record, without = mass[: mass.size - shift], mass[shift:]
    made = FiniteLaw.from_atoms(
        fn.log(with_record / without),
        fn.log(without),
        (told, told),
        2.02 * error + 4.0 * UNIT,
        symmetric=True,
    )
    return replace(made, error=made.error + 1.01 * error)
