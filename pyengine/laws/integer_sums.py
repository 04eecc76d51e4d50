"""Laws of sums of noise on the integers: Skellam noise, and discrete Gaussians of many parties.

Both kinds of noise are log-concave, so the largest move of a query is the worst: ratios of masses
increase with k, optimal tests are thresholds, and their power increases with the move.  Logarithms
of masses are computed down to e^-800 under both laws.  Ratios of Skellam masses are continued
fractions of positive terms.  Sums of parties are convolutions of positive terms, so n terms cost n
units of relative error; where their masses underflow, the noise is tilted first.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.errors import AccuracyError
from pyengine.laws.discrete import noise_law
from pyengine.laws.finite import FiniteLaw
from pyengine.mechanisms.additive import (
    DiscreteGaussianMechanism,
    DiscreteGaussianSum,
    SkellamMechanism,
)
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import in_two_doubles
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.wide import Wide, running_sums, wide_exp

__all__ = ["gaussian_sum_law", "skellam_law"]

FloatArray = npt.NDArray[np.float64]

DEPTH = 805.0  # -log of masses that are left out
TINY = 1e-300  # smaller masses are dropped from convolutions
LEAST_VARIANCE = 1e-300
LEAST = 1e-280  # smallest mass of a convolution that is used: what it lacks is below a unit of it
MOST_PLACES = 36_500  # integers of a law
MOST_RATE = 500.0  # 1/(2σ²) of one of several parties: masses next to a tilt do not underflow
CHUNK = 256  # masses convolved at once
BITS = 11  # binary digits of a tilt after the point


# Map: masses of Skellam noise by Gauss's continued fraction | test_integer_sums | theory/finite
def skellam_law(step: SkellamMechanism, doubled: bool) -> FiniteLaw:
    """Law of a difference of two Poisson variables; ``doubled`` for a replaced record.

    m(k + 1)/m(k) = r_k = 1/(2 (k + 1)/v + r_(k + 1)), a ratio of Bessel functions.  Each step of
    this recursion reduces the relative error that it receives.
    """
    variance = (Fraction(step.noise_multiplier) * step.sensitivity) ** 2
    v = checks.as_double(variance)
    _check(40.0 * math.sqrt(v) + 400.0)
    shift = _shift(step, doubled)
    if v < LEAST_VARIANCE:
        raise AccuracyError(
            f"the variance of the noise is {v:.3g}, below {LEAST_VARIANCE:g}, where ratios of "
            "masses are no doubles: use more noise"
        )
    deviation, last = math.sqrt(v), 64 + shift
    while True:
        ratio, error = _ratios(v, last + math.ceil(3.0 * deviation) + 64, last)
        each = fn.log(ratio)
        logs = np.concatenate([[0.0], running_sums(np.array([each, np.zeros(last)]))[0]])
        if logs[last - shift] < -DEPTH - 20.0:  # m(0) is above e^-20
            break
        last = 2 * last
    kept = int(np.argmax(logs < -DEPTH - 20.0)) + shift
    masses = fn.exp(logs)
    # error of log m(k)/m(0): those of the ratios and of their logarithms
    off = np.concatenate([[0.0], np.cumsum(1.01 * (error + ELEMENTARY * UNIT * np.abs(each)))])
    total = 1.0 + 2.0 * math.fsum(masses[1:])
    total_error = 2.0 * float((masses * (off - UNIT * logs)).sum()) / total
    total_error += (4.0 + ELEMENTARY * (1.0 + fn.log(total))) * UNIT
    logs = logs[: kept + 1] - fn.log(total)
    return _law(
        logs, shift, float(off[kept]) + total_error, float((off[shift:] - off[:-shift]).max())
    )


def _ratios(v: float, first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """Ratios r_0, ..., r_(last - 1) of Bessel functions, and bounds of their relative errors."""
    low, high, off = 0.0, v / (2.0 * first), 0.0
    ratio, error = np.empty(last), np.empty(last)
    for k in range(first - 2, -1, -1):
        a = 2.0 * (k + 1) / v
        off = 4.5 * UNIT + off * (high / (a + high)) * (1.0 + 1e-9)
        low, high = 1.0 / (a + high), 1.0 / (a + low)
        if k < last:
            ratio[k], error[k] = low, off + (high - low) / low
    return ratio, error


# Map: sums of discrete Gaussians, tilted | test_integer_sums | theory/finite
def gaussian_sum_law(step: DiscreteGaussianSum, doubled: bool) -> FiniteLaw:
    """Law of a sum of equal discrete Gaussians; ``doubled`` for a replaced record."""
    if step.summands == 1:
        one = DiscreteGaussianMechanism(step.noise_multiplier, step.sensitivity)
        return noise_law(one, doubled)
    scale = Fraction(step.noise_multiplier) * step.sensitivity
    shift = _shift(step, doubled)
    _check(40.0 * checks.as_double(scale) * math.sqrt(step.summands) + 4.0 + 2 * shift)
    exact = 1 / (2 * scale**2)
    if exact > MOST_RATE:
        raise AccuracyError(
            f"noise_multiplier times sensitivity is {float(scale):.3g}, too little for the sum of "
            "several parties: DiscreteGaussianMechanism with one party's noise bounds it from above"
        )
    rate = Wide(*in_two_doubles(exact))
    low, mass, error = _tilted(rate, 0.0, step.summands)
    mass = mass[-low:]
    logs = fn.log(mass[mass > LEAST])
    error += ELEMENTARY * UNIT * 650.0  # of logs of masses above `LEAST`
    while True:
        deep = np.flatnonzero(logs < -DEPTH)
        if deep.size and logs.size > deep[0] + shift:
            return _law(logs[: deep[0] + shift + 1], shift, error, 2.02 * error)
        edge = logs.size - 1
        tilt = _tilt_of_mean(rate.high, edge / step.summands)
        low, mass, off = _tilted(rate, tilt, step.summands)
        mass = mass[edge - low :]
        mass = mass[mass > LEAST]
        if not mass.size > 1:
            raise AccuracyError("tilted sums end where the others do")
        moved = 2.0 * rate.high * tilt * np.arange(1.0, mass.size)
        logs = np.concatenate([logs, logs[edge] + (fn.log(mass[1:] / mass[0]) - moved)])
        error += 2.0 * off + 4.0 * UNIT * (1100.0 + float(moved.max()))


def _tilt_of_mean(rate: float, mean: float) -> float:
    """Tilt of one variable with about this mean, a multiple of 2^-`BITS`; only a choice.

    Where the noise is small beside the distance of integers, tilt and mean differ.
    """
    reach = math.ceil(math.sqrt(50.0 / rate)) + 1
    low, high = 0, math.ceil(mean + 1.0) << BITS
    while high - low > 1:
        middle = (low + high) // 2
        tilt = middle / 2.0**BITS
        k = math.floor(tilt) + np.arange(-float(reach), reach + 1.0)
        weight = fn.exp(-rate * np.square(k - tilt))
        if float(k @ weight) < mean * float(weight.sum()):
            low = middle
        else:
            high = middle
    return high / 2.0**BITS


def _tilted(rate: Wide, tilt: float, summands: int) -> tuple[int, FloatArray, float]:
    """Law of a sum of integer variables with masses proportional to e^(-rate (k - tilt)²).

    Returns the first integer, the masses, and their relative error; times e^(-2 rate tilt k) the
    masses are proportional to those without tilt.
    """
    reach = math.ceil(math.sqrt(-fn.log(TINY) / rate.high))
    low = math.floor(tilt) - reach
    away = np.arange(low, math.ceil(tilt) + reach + 1.0) - tilt  # exact, as are the squares
    value, power = wide_exp((rate * (-away * away)).parts)
    one = np.ldexp(value[0], power.astype(np.int32))
    kept = np.flatnonzero(one > TINY)
    low += int(kept[0])
    one = one[kept[0] : kept[-1] + 1]
    one, off = one / math.fsum(one), 6.0 * UNIT
    start, total, error = low, one, off
    for bit in bin(summands)[3:]:
        start, total, error = _added((start, total, error), (start, total, error))
        if bit == "1":
            start, total, error = _added((start, total, error), (low, one, off))
    return start, total, error


def _added(
    first: tuple[int, FloatArray, float], second: tuple[int, FloatArray, float]
) -> tuple[int, FloatArray, float]:
    """Convolution of two laws (first integer, masses, error), without masses below `TINY`."""
    (low, one, off), (beside, other, error) = first, second
    found = np.zeros(one.size + other.size - 1)
    with np.errstate(under="ignore"):
        for i in range(0, other.size, CHUNK):
            part = np.convolve(one, other[i : i + CHUNK])
            found[i : i + part.size] += part
    kept = np.flatnonzero(found > TINY)
    terms = CHUNK + other.size / CHUNK + 3.0
    # mass lost by underflow and at the ends of both laws is far below a unit of what is used
    return (
        low + beside + int(kept[0]),
        found[kept[0] : kept[-1] + 1],
        off + error + 1.02 * terms * UNIT,
    )


def _shift(step: SkellamMechanism | DiscreteGaussianSum, doubled: bool) -> int:
    return int(step.sensitivity) * (2 if doubled else 1)


def _check(reach: float) -> None:
    if 2.0 * reach > MOST_PLACES:
        raise AccuracyError(
            f"the sum has about {2.0 * reach:.3g} values that matter, more than {MOST_PLACES}: "
            "scale the query down, or take DiscreteGaussianMechanism of the same variance"
        )


def _law(logs: FloatArray, shift: int, error: float, loss_error: float) -> FiniteLaw:
    """Law of symmetric noise with log masses ``logs`` at 0, 1, ..., and its copy shifted."""
    both = np.concatenate([logs[:0:-1], logs])
    rounded = 4.0 * UNIT * float(np.abs(logs).max())
    made = FiniteLaw.from_atoms(
        both[:-shift] - both[shift:],
        both[shift:],
        (Fraction(0), Fraction(0)),
        loss_error + rounded,
        (-math.inf, math.inf),
        symmetric=True,
    )
    return replace(made, error=made.error + 1.01 * error + rounded)
