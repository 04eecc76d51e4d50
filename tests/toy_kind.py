"""A kind of step in one file: all that a line asks of it, and its lemma.

**Lemma.** Let the loss have the density f(l) e^(-l/2) under A and f(l) e^(l/2) under B, with f
proportional to 1 - |l|/d on [-d, d].  With z = λ - 1/2 + it, x = λ - 1/2, e = d/2 and
sinhc(y) = sinh(y)/y the mean of e^((λ + it) L) is (sinhc(z e)/sinhc(e/2))², and its modulus over
that at t = 0 is at most (2 g/t)², g = |x|/(1 - e^(-2 |x| e)).

*Proof.* The triangle is the convolution of two uniform laws on [-e, e], so the transform is the
square of theirs.  Tilted, each has a monotone density of largest value g, whose jumps and variation
are at most 2 g: by parts its transform is at most 2 g/t.  ∎

Nothing is flat, and nothing removed; beyond T the integral of (2 g/t)² over dt/t is 2 g²/T².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pyengine.engines.vertical_lines.shapes import At, Fall, LossShape
from pyengine.engines.vertical_lines.tilted import TiltedStep, TiltedTransform
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.wide import Wide

FloatArray = npt.NDArray[np.float64]
SLACK = 1.0 + 1e-9


def log_sinhc(y: FloatArray) -> FloatArray:
    """Of y >= 0, within 16 units of 1 + y."""
    far = y + np.log(-np.expm1(-2.0 * np.maximum(y, 0.1))) - np.log(2.0 * np.maximum(y, 0.1))
    square = y * y
    near = np.log1p(square / 6.0 * (1.0 + square / 20.0 * (1.0 + square / 42.0)))
    return np.asarray(np.where(y < 0.1, near, far))


@dataclass(frozen=True)
class TriangularShape(LossShape):
    """The step; its half width e is a double of few digits, so that multiples are exact."""

    half: float
    is_symmetric: ClassVar[bool] = True
    __hash__ = LossShape.__hash__

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest loss."""
        return -2.0 * self.half, 2.0 * self.half

    def log_means(self, tilt: FloatArray) -> FloatArray:
        """Logarithms of the means of e^(tilt loss)."""
        whole = log_sinhc(np.abs(tilt - 0.5) * self.half) - log_sinhc(np.array(0.5 * self.half))
        return np.asarray(2.0 * whole)

    def error_at(self, tilt: float) -> float:
        """Bound on the error of such a logarithm."""
        return 64.0 * UNIT * (2.0 + (abs(tilt) + 1.0) * self.half)

    def log_mean_bound(self, tilt: float) -> float:
        """Bound on the logarithm of the mean of e^(tilt loss)."""
        return float(self.log_means(np.array([tilt]))[0]) + self.error_at(tilt)

    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """About the log mean, mean and variance of the tilted loss."""
        y = (tilt - 0.5) * self.half
        near = np.abs(y) < 1e-2
        far = np.where(near, 1.0, y)
        with np.errstate(over="ignore"):
            mean = np.where(near, y / 3.0, 1.0 / np.tanh(far) - 1.0 / far)
            spread = np.where(
                near, 1.0 / 3.0 - y * y / 15.0, 1.0 / (far * far) - 1.0 / np.sinh(far) ** 2
            )
        variance = np.maximum(2.0 * self.half**2 * spread, 1e-300)
        return self.log_means(tilt), 2.0 * self.half * mean, variance

    def largest(self, tilt: float) -> float:
        """The number g of the lemma."""
        x = abs(tilt - 0.5)
        return (x / -math.expm1(-2.0 * x * self.half) if x else 0.5 / self.half) * SLACK

    def fall(self, at: At, variance: float, frequency: FloatArray) -> Fall:
        """How the transform falls."""
        del variance
        square = (self.largest(at.tilt) / frequency) ** 2
        return Fall(np.minimum(4.0 * square, 1.0), 2.0 * square)

    def tilted(self, at: At, frequency: float, enough: float, spacing: float) -> TriangularStep:
        """The step at a tilt."""
        del frequency, enough, spacing
        return TriangularStep(self, at.tilt)


class TriangularStep(TiltedStep):
    """The step at a tilt."""

    shape: TriangularShape

    def __init__(self, shape: TriangularShape, tilt: float) -> None:
        self.shape, self.tilt = shape, tilt
        log, mean, _ = (float(x[0]) for x in shape.cumulants(np.array([tilt])))
        self.log_mean = Wide(log)
        self.centre = mean

    @property
    def log_error(self) -> float:
        """Of the closed form."""
        return self.shape.error_at(self.tilt)

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """By the lemma."""
        del modulus
        return min((2.0 * self.shape.largest(self.tilt) / float(frequency[0])) ** 2 * SLACK, 1.0)

    def tail(self, frequency: float) -> float:
        """By the lemma."""
        return 2.0 * (self.shape.largest(self.tilt) / frequency) ** 2 * SLACK

    def transform(self, frequency: FloatArray, spacing: float | None = None) -> TiltedTransform:
        """The square of sinh(z e) x/(z sinh(x e)), whose parts err by units of themselves."""
        del spacing
        half, rate = self.shape.half, abs(self.tilt - 0.5)
        rise = -math.expm1(-2.0 * rate * half)
        turn = frequency * half
        top = 0.5 * rise * np.cos(turn) + 0.5j * (2.0 - rise) * np.sin(turn)
        at_zero = 0.5 * rise / rate if rate else half
        z = rate + 1j * frequency
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(frequency > 0.0, top / z / at_zero, 1.0)
            size = np.minimum(1.0 / (np.abs(z) * at_zero), 1.0)
        value = np.conj(value) if self.tilt < 0.5 else value
        modulus, error = np.abs(value), UNIT * (32.0 + 4.0 * (turn + rate * half)) * size
        known = modulus > 4.0 * error
        least = np.where(known, modulus, 1.0)
        log = np.where(known, np.log(least), -np.inf)
        off = 2.0 * error + 16.0 * UNIT * least * (1.0 + np.abs(frequency * self.centre))
        off = off / (least - np.minimum(2.0 * error, 0.5 * least)) + 16.0 * UNIT * np.abs(
            np.log(least)
        )
        most = 2.0 * np.log(modulus + error + 4.0 * UNIT)
        angle = 2.0 * np.angle(value) - frequency * self.centre
        square = modulus * modulus
        whole = error * (2.0 * modulus + error) + 4.0 * UNIT * square
        return TiltedTransform(square, 2.0 * log, angle, whole, np.where(known, off, most))
