"""Masses and profiles of a sum of Laplace losses, by trapezoidal sums on one vertical line.

With K(s) the logarithm of the mean of e^(s S) under A and a threshold c, the line through λ gives

    I(c) = integral of e^(K(s) - s c)/k(s) ds/(2 π i),  k(s) = s, s - 1 or s (s - 1):

A's mass above c, e^-c times B's, and the profile, but for what the poles between lines add.  The
sum differs from it by aliases, by what lies beyond the last node, by the mass at the ends of all
steps, and by rounding, which are bounded each (docs/theory/line).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.vertical_lines.gauss import EXTENDED
from pyengine.engines.vertical_lines.tilted import TiltedStep
from pyengine.engines.vertical_lines.trig_sums import ANGLE_ERROR, TrigSums, chain_error
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.wide import Wide, less_products

__all__ = ["KERNELS", "POLES", "LossLine", "Side", "Steps", "TiltedSum", "composed"]

FloatArray = npt.NDArray[np.float64]
Steps = Sequence[tuple[TiltedStep, int]]

TINY = 1e-300  # stands for a mass of 0
SLACK = 1.0 + 1e-9  # for the rounding of bounds
KERNELS = 3  # A's masses, B's, and profiles
# poles of 1/k, and what they leave
POLES = (((0.0, 1.0),), ((1.0, 1.0),), ((0.0, -1.0), (1.0, 1.0)))


class Side(NamedTuple):
    """A tilt beyond a line, and a bound on the logarithm of the mean of e^(tilt S)."""

    tilt: float
    log_mean: float


class CrossedPole(NamedTuple):
    """What a pole adds to aliases: sign e^(constant + apart c), but for a relative error.

    To the error ``known`` come the roundings of what depends on c.
    """

    sign: float
    apart: float
    constant: float
    known: float


def composed(
    steps: Steps, frequency: FloatArray, spacing: float | None = None
) -> tuple[npt.NDArray[np.complex128], FloatArray, FloatArray]:
    """Return the transform of the centred sum, its errors, and moduli at the last frequency."""
    size = frequency.size
    log, most, angle, off = np.zeros((4, size))
    last = np.empty(len(steps))
    for i, (step, number) in enumerate(steps):
        found = step.transform(frequency, spacing)
        known = np.isfinite(found.log)
        log += number * found.log
        angle += number * found.angle
        off += number * np.where(known, found.log_error, 0.0)
        # of the modulus' logarithm
        most += number * (np.where(known, found.log, 0.0) + found.log_error)
        last[i] = found.modulus[-1] + found.error[-1] + 4.0 * UNIT * (1.0 + found.modulus[-1])
    modulus = fn.exp(log)
    off += (2.0 * ELEMENTARY + 4.0 * len(steps)) * UNIT * (1.0 + np.abs(angle))
    off += 4.0 * len(steps) * UNIT * np.where(np.isfinite(log), np.abs(log), 0.0)
    close = np.isfinite(log) & (off < 0.5)
    error = np.where(
        close,
        modulus * fn.expm1(np.minimum(off, 1.0)),
        modulus + fn.exp(np.minimum(most, 50.0)),
    )
    return modulus * fn.turn(angle), error * (1.0 + 1e-9), last


class TiltedSum:
    """A sum of steps at a tilt, to whose scale all integrals on a line are relative.

    Parameters
    ----------
    steps : sequence of (TiltedStep, int)
        The kinds, all at the tilt, and how many there are of each.
    tilt : float
        Where the line crosses the real axis, neither 0 nor 1.
    """

    def __init__(self, steps: Steps, tilt: float) -> None:
        self.tilt = tilt
        self._log_mean = sum((n * step.log_mean for step, n in steps), Wide(0.0))
        self._centre = sum((n * Wide(step.centre) for step, n in steps), Wide(0.0))
        self._log_error = sum(float(n) * step.log_error for step, n in steps)
        self._log_error += EXTENDED * sum(4.0 * n * abs(float(step.log_mean)) for step, n in steps)
        self._off_centre = EXTENDED * sum(4.0 * n * abs(step.centre) for step, n in steps)

    def log_scale_at(self, c: float) -> float:
        """About K(λ) - λ c."""
        return float(self._log_mean) - self.tilt * c

    def log_scale(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K(λ) - λ c, rounded, and a bound on its error."""
        log = less_products(self._log_mean, self.tilt, c)
        size = np.abs(float(self._log_mean)) + np.abs(self.tilt * c)
        return log, self._log_error + 4.0 * EXTENDED * size + UNIT * np.abs(log)

    def _distance(self, c: FloatArray) -> FloatArray:
        """Distances of thresholds from the centre, rounded once."""
        return -less_products(self._centre, 1.0, c)

    def _off_angle(self, c: FloatArray) -> FloatArray:
        """What angles err by, in parts of the frequency."""
        off = ANGLE_ERROR * np.abs(self._distance(c)) + self._off_centre
        return np.asarray(off + 4.0 * EXTENDED * np.abs(c))


# Map: many Laplace steps on vertical lines | test_laplace_lines | theory/line
class LossLine(TiltedSum):
    """One line for a sum of steps.

    Parameters
    ----------
    steps : list of (TiltedStep, int)
        The kinds, all at the tilt of the line, and how many there are of each.
    tilt : float
        Where the line crosses the real axis, neither 0 nor 1.
    spacing : float
        Between nodes; a number of few digits.
    count : int
        Nodes above the axis.
    sides : pair of Side
        Tilts below and above that of the line, for the bounds on aliases.

    Attributes
    ----------
    removed : pair of float
        Bounds on what the masses of A and B are below 1.
    """

    def __init__(
        self, steps: Steps, tilt: float, spacing: float, count: int, sides: tuple[Side, Side]
    ) -> None:
        super().__init__(steps, tilt)
        self._sides, self._period = sides, 2.0 * math.pi / spacing
        self._ends_at = [_mass_at_ends(steps, pole) for pole in (0.0, 1.0)]
        # of A's and B's finite losses, which poles leave
        self._log_masses = [
            sum(n * step.shape.log_masses[law] for step, n in steps) for law in (0, 1)
        ]
        of_a, of_b = (sum(n * step.removed[law] for step, n in steps) * SLACK for law in (0, 1))
        self.removed = float(of_a), float(of_b)
        self._frequency = spacing * np.arange(count + 1.0)
        value, error, last = composed(steps, self._frequency, spacing)
        self._weights(steps, spacing, value, error, last)

    def _weights(
        self,
        steps: Steps,
        spacing: float,
        value: npt.NDArray[np.complex128],
        error: FloatArray,
        last: FloatArray,
    ) -> None:
        """What the sums need of each kernel, and bounds that are the same for all thresholds."""
        t, tilt = self._frequency, self.tilt
        s = tilt + 1j * t
        share = np.where(t > 0.0, 2.0, 1.0) * spacing / (2.0 * math.pi)
        kernels = np.array([share / s, share / (s - 1.0), share / (s * (s - 1.0))])
        weight = value * kernels
        self._sums = TrigSums(t, weight)
        moduli, sums = fn.modulus(weight), fn.modulus(kernels)
        rounding = (moduli * chain_error(t.size) + sums * error).sum(axis=1)
        self._per_distance = (moduli * t).sum(axis=1)
        # the mass at the ends of all steps has no part in the sum, but in its nodes
        at_ends = fn.exp(sum(n * fn.log(max(step.at_ends, TINY)) for step, n in steps))
        apart = abs(tilt), abs(tilt - 1.0)
        both = max(*apart, float(t[-1]))
        heaviest = np.array(
            [1.0, 1.0, 1.0 / (1.0 + min(apart)) if tilt < 0.0 or tilt > 1.0 else 1.0]
        )
        ends = at_ends * (heaviest + sums.sum(axis=1))
        # beyond the last node
        log, tails, whole = 0.0, 0.0, math.inf
        for (step, number), modulus in zip(steps, last, strict=True):
            beyond = max(min(step.largest_from(t[-1:], float(modulus)), 1.0), TINY)
            log += number * fn.log(beyond)
            tail = step.tail(float(t[-1])) / beyond
            tails += number * tail
            # where all of the transform of a step falls, its integral alone bounds that of all
            if step.at_ends == 0.0:
                whole = min(whole, tail)
        rest = fn.exp(log) * min(tails, whole) / math.pi
        beyond_all = rest * np.array([1.0, 1.0, 1.0 / both])
        self._error = (rounding + ends + beyond_all) * (1.0 + 1e-9)

    @property
    def is_known(self) -> bool:
        """Whether all errors that are the same for all thresholds are numbers."""
        return math.isfinite(self._log_error) and not bool(np.isnan(self._error).any())

    def sums(self, c: FloatArray, kernels: slice) -> FloatArray:
        """I(c)/e^(K(λ) - λ c) of kernels at thresholds, of shape (k, n)."""
        return self._sums.at(self._distance(c), kernels).T - self._residues(c, kernels)

    def rough_sums(self, c: float, kernels: slice) -> list[float]:
        """About `sums` at one threshold."""
        found = self._sums.at_one(c - float(self._centre), kernels)
        for i, poles in enumerate(self._crossed[kernels]):
            for sign, apart, constant, _ in poles:
                found[i] -= sign * fn.exp(min(constant + apart * c, 300.0))
        return found

    def errors(self, c: FloatArray, kernels: slice) -> FloatArray:
        """Bounds on the errors of `sums`."""
        error = self._error[kernels, None] + self._per_distance[kernels, None] * self._off_angle(c)
        error += self._residue_errors(c, kernels) + self._aliases(c)
        error += self._sums.far_errors(self._distance(c), kernels)
        return np.asarray(error * (1.0 + 1e-9))

    def _residues(self, c: FloatArray, kernels: slice) -> FloatArray:
        """What poles add to the values that the sum has from thresholds whole periods away.

        Relative to e^(K(λ) - λ c), of shape (k, n).  Poles between the sides alone, as the bounds
        beyond need no others.
        """
        crossed = self._crossed[kernels]
        found = np.zeros((len(crossed), c.size))
        for row, poles in zip(found, crossed, strict=True):
            for sign, apart, constant, _ in poles:
                row += sign * fn.exp(np.minimum(constant + apart * c, 300.0))
        return found

    def _residue_errors(self, c: FloatArray, kernels: slice) -> FloatArray:
        """Bounds on the errors of `_residues`; infinite where those are beyond all doubles."""
        crossed = self._crossed[kernels]
        found = np.zeros((len(crossed), c.size))
        for row, poles in zip(found, crossed, strict=True):
            for _, apart, constant, known in poles:
                moved = apart * c
                exponent = constant + moved
                off = known + 16.0 * UNIT * np.abs(moved)
                row += np.where(exponent < 300.0, fn.exp(np.minimum(exponent, 300.0)) * off, np.inf)
        return found

    @cached_property
    def _crossed(self) -> list[list[CrossedPole]]:
        """Poles between the sides, for each kernel."""
        below, above = self._sides
        found: list[list[CrossedPole]] = []
        for poles in POLES:
            found.append([])
            for pole, residue in poles:
                if below.tilt < pole < above.tilt:
                    apart = self.tilt - pole
                    fall = abs(apart) * self._period
                    log_mass = self._log_masses[int(pole)]
                    constant = -float(self._log_mean) - fall - fn.log(-fn.expm1(-fall))
                    constant += log_mass
                    known = self._ends_at[int(pole)] * fn.exp(-log_mass) + self._log_error
                    known += 4.0 * ELEMENTARY * UNIT * (1.0 - log_mass)
                    known += 8.0 * UNIT * (1.0 + abs(float(self._log_mean)) + fall)
                    sign = math.copysign(residue, apart * residue)
                    found[-1].append(CrossedPole(sign, apart, constant, known))
        return found

    def _aliases(self, c: FloatArray) -> FloatArray:
        """Bound on those values less what poles add, by the tilts of the sides; relative."""
        log, log_error = self.log_scale(c)
        total = np.zeros(c.size)
        for place, mean in self._sides:
            fall = -abs(place - self.tilt) * self._period
            # from the period on; all further ones together
            exponent = mean - place * c - log + log_error + fall
            size = fn.exp(np.minimum(exponent, 300.0)) / -fn.expm1(fall)
            total += np.where(exponent < 300.0, size, np.inf)
        return total * (1.0 + 1e-6)


def _mass_at_ends(steps: Steps, pole: float) -> float:
    """Bound on the mass that A (0) or B (1) lacks of 1, or has at the ends of all steps."""
    log, lacking = 0.0, 0.0
    for step, number in steps:
        log += number * fn.log(min(max(step.mass_at_ends(pole), TINY) * (1.0 + 1e-12), 1.0))
        lacking += number * step.removed[int(pole)]
    return (fn.exp(log) + lacking) * (1.0 + 1e-9)
