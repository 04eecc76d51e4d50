"""Cumulants, saddle points and tail estimates in double precision, for planning only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "Cumulants",
    "NormalGrid",
    "StepCumulants",
    "WeightedLosses",
    "away_from_poles",
    "log_upper_normal",
]

Array = NDArray[np.float64]
_SPACING = 0.025  # largest spacing of the grid of z
HALVINGS = 44  # bisections of an interval of 120, to 7e-12; planning needs no more
_LOG_2PI = math.log(2 * math.pi)


class StepCumulants(Protocol):
    """The law of the loss L of one step."""

    def log_moment(self, tilt: float) -> float:
        """Return log E exp(tilt L)."""

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Return the first two derivatives of that."""


@dataclass(frozen=True)
class WeightedLosses:
    """Finitely many losses with the logarithms of their masses."""

    log_mass: Array
    loss: Array

    def log_moment(self, tilt: float) -> float:
        """Return log E exp(tilt L)."""
        exponent = self.log_mass + tilt * self.loss
        top = float(exponent.max())
        return top + math.log(float(np.exp(exponent - top).sum()))

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Return the first two derivatives of that."""
        exponent = self.log_mass + tilt * self.loss
        weight = np.exp(exponent - exponent.max())
        weight /= weight.sum()
        mean = float(weight @ self.loss)
        return mean, float(weight @ (self.loss - mean) ** 2)


@dataclass(frozen=True)
class NormalGrid(WeightedLosses):
    """Losses and log masses at equidistant places z of a normal law, which may be truncated."""

    z: Array

    def runs_off(self, tilt: float, depth: float = 75.0) -> bool:
        """Whether the tilted weight at an end exceeds exp(-depth - 15) of its peak."""
        exponent = self.log_mass[::8] + tilt * self.loss[::8]
        return bool(max(exponent[0], exponent[-1]) > exponent.max() - depth - 15)

    def window(self, tilt: float, depth: float) -> tuple[float, float]:
        """Return the range of z where the tilted weight is above exp(-depth) of its peak."""
        exponent = self.log_mass + tilt * self.loss
        inside = self.z[exponent > exponent.max() - depth]
        spacing = float(self.z[1] - self.z[0])
        return float(inside[0]) - spacing, float(inside[-1]) + spacing


def normal_places(cut: float, span: float, steepest: float) -> tuple[Array, Array]:
    """Return equidistant places in [-span, cut] and the logs of their normal masses.

    ``steepest`` bounds the slope of the loss in z: neighbouring losses differ by 0.2 at most.
    """
    spacing = min(_SPACING, 0.2 / steepest)
    z = np.arange(-span, cut + spacing / 2, spacing)
    return z, -(z**2) / 2 + math.log(spacing) - _LOG_2PI / 2


class Cumulants:
    """Cumulant generating function K of a sum of independent losses, in double precision.

    ``rows`` are laws and their numbers of steps; the total loss is their sum plus ``shift``, which
    K leaves out.
    """

    def __init__(self, rows: list[tuple[StepCumulants, int]], shift: float = 0.0) -> None:
        self.rows, self.shift = rows, shift

    def value(self, tilt: float) -> float:
        """Return K(tilt)."""
        return sum(number * measure.log_moment(tilt) for measure, number in self.rows)

    log_moment = value  # so that a sum is a `StepCumulants`, too

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Return K'(tilt) and K''(tilt)."""
        mean = variance = 0.0
        for measure, number in self.rows:
            first, second = measure.mean_variance(tilt)
            mean += number * first
            variance += number * second
        return mean, variance

    def saddle(self, threshold: float) -> float:
        """Return the tilt where K' equals the threshold (of the sum without ``shift``)."""
        return self._bisect(lambda tilt: self.mean_variance(tilt)[0] - threshold)

    def exponent(self, tilt: float) -> float:
        """Return the rate function tilt * c - K(tilt) at c = K'(tilt), with the sign of the tilt.

        The log of the tail beyond c is about minus its absolute value.
        """
        size = tilt * self.mean_variance(tilt)[0] - self.value(tilt)
        return math.copysign(max(size, 0.0), tilt)

    def tilt_of(self, exponent: float) -> float:
        """Return the tilt with a given `exponent`."""
        return self._bisect(lambda tilt: self.exponent(tilt) - exponent)

    def threshold(self, measure: str, log_tail: float) -> float:
        """Return a threshold, less ``shift``, where the tail ``measure`` is about exp(log_tail)."""
        sign = 1.0 if measure.endswith("above") else -1.0
        tilt = self._bisect(lambda x: sign * (log_tail - self.log_tail(measure, x)))
        return self.mean_variance(tilt)[0]

    def log_tail(self, measure: str, tilt: float) -> float:
        """Return the saddle-point estimate of the log of a tail at the threshold K'(tilt).

        It is Barndorff-Nielsen's log Phi(-(r + log(q/r)/r)), for Q with the tilt counted from 1.
        """
        threshold, variance = self.mean_variance(tilt)
        base = 0.0 if measure.startswith("p") else 1.0
        away = tilt - base
        start = 0.0 if base == 0.0 else self.value(1.0)
        exponent = away * threshold - (self.value(tilt) - start)
        r = math.copysign(math.sqrt(2 * max(exponent, 0.0)), away)
        q = away * math.sqrt(variance)
        if abs(r) > 1e-3 and q / r > 0:
            change = math.log(q / r) / r
            r += change if abs(change) < 1 else 0.0
        return log_upper_normal(r if measure.endswith("above") else -r)

    def chernoff(self, threshold: float) -> float:
        """Return the log of the Chernoff bound, min over the tilt of K(tilt) - tilt * threshold."""
        tilt = self.saddle(threshold)
        return self.value(tilt) - tilt * threshold

    def _bisect(self, increasing: object) -> float:
        unit = 1 / math.sqrt(self.mean_variance(0.0)[1])
        low, high = -60.0, 60.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if increasing(unit * math.sinh(middle)) > 0:  # type: ignore[operator]
                high = middle
            else:
                low = middle
        return unit * math.sinh((low + high) / 2)


def log_upper_normal(x: float) -> float:
    """Return about log(1 - Phi(x))."""
    if x < 25:
        return math.log(max(0.5 * math.erfc(x / math.sqrt(2)), 1e-300))
    return -x * x / 2 - _LOG_2PI / 2 - math.log(x) - 1 / x**2


def away_from_poles(tilt: float, distance: float) -> float:
    """Return the tilt moved so that it is at least a distance away from the poles 0 and 1."""
    if abs(tilt) >= distance and abs(tilt - 1) >= distance:
        return tilt
    if distance < 0.45:
        pole = 0.0 if tilt < 0.5 else 1.0
        return pole + math.copysign(distance, tilt - pole)
    return 1 + distance if tilt > 0.5 else -distance
