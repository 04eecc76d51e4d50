"""Bounds next to the smallest loss of a composition, from masses of single steps there.

See docs/theory/lattice, Lemma 7.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.coarse_cumulants import Part
from pyengine.laws.base import Cells, StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.scaled import lower_times_exp

__all__ = ["SmallestLoss", "profile_at_end", "smallest_loss"]

FloatArray = npt.NDArray[np.float64]

BESIDE = 0.05  # largest distance of a threshold from the smallest loss that is tried
PART = 2.0**-24  # half-width of the losses of an event, relative to that distance
LARGEST_ERROR = 1e-6  # relative error from which a mass counts as unknown
LARGEST = 700.0  # about the largest log of a double


class SmallestLoss(NamedTuple):
    """The event F that every step is next to its smallest loss.

    Every finite S is at least ``least``; S <= ``most`` on F, and A(F) >= ``mass``.  A mass of at
    most ``left_out``, not covered by the tables of the laws, may have other losses.
    """

    least: float
    most: float
    mass: float
    left_out: float

    def beta(self, alpha: FloatArray, lost: float) -> tuple[FloatArray, FloatArray]:
        """Bounds of T(A, B) at α >= 1 - mass; A has at most ``lost`` at loss -∞.

        From below by B >= e^least A, from above by tests that accept A on part of F.
        """
        kept = 1.0 - alpha
        lower = np.maximum(kept * (1.0 - 2.0 * UNIT) - lost - self.left_out, 0.0)
        return (
            lower_times_exp(lower, self.least) * (1.0 - 16.0 * UNIT),
            kept * fn.exp(self.most) * (1.0 + 16.0 * UNIT) + 5e-324,
        )

    def gamma_of_reverse(
        self, alpha: FloatArray, lost: tuple[float, float]
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of 1 - T(B, A) at α <= B(F); ``lost`` bounds A's mass at loss -∞."""
        lower = lower_times_exp(alpha, -self.most) * (1.0 - 16.0 * UNIT)
        steepest = fn.exp(-self.least) if -self.least < LARGEST else math.inf
        upper = alpha * steepest * (1.0 + 16.0 * UNIT) + 5e-324
        most = (upper + lost[1] + self.left_out) * (1.0 + 4.0 * UNIT)
        return (lower + lost[0]) * (1.0 - 2.0 * UNIT), most

    @property
    def mass_of_second(self) -> float:
        """A lower bound of B(F)."""
        found = lower_times_exp(np.array([self.mass]), self.least)
        return float(found[0]) * (1.0 - 16.0 * UNIT)

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of the part of H_{e^ε}(A‖B) from finite losses."""
        lower, upper = (-fn.expm1(np.minimum(epsilon + x, 0.0)) for x in (self.most, self.least))
        # rounding of the sums ε + loss, relative to their terms
        doubt = 4.0 * UNIT * (np.abs(epsilon) + abs(self.least) + 1.0)
        lower = np.maximum((lower - doubt) * self.mass * (1.0 - 16.0 * UNIT), 0.0)
        return lower, (upper + doubt) * (1.0 + 16.0 * UNIT) + self.left_out

    def epsilon(
        self, delta: FloatArray, lost: tuple[float, float]
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of the ε at which the profile is δ, for δ in (0, mass); ``lost`` as above."""
        doubt = 8.0 * UNIT * (1.0 + abs(self.least))
        more = np.clip((delta - lost[0]) / self.mass * (1.0 + 8.0 * UNIT), 0.0, 1.0)
        less = np.clip((delta - lost[1] - self.left_out) * (1.0 - 8.0 * UNIT), 0.0, 1.0 - UNIT)
        with np.errstate(divide="ignore"):
            lower = fn.log1p(-more) - self.most
        upper = fn.log1p(-less) - self.least
        return lower - doubt * (1.0 + np.abs(lower)), upper + doubt * (1.0 + np.abs(upper))


def _blur(law: StepLaw, x: float) -> float:
    """Bound of the errors of an edge x next to the smallest loss and of that loss together."""
    rounded = law.support_error() + 4.0 * UNIT * abs(law.support()[0])
    return float(law.cells(np.array([x])).shift[0]) + rounded


def _mass_of(cells: Cells, sign: float) -> float:
    """Upper (sign 1) or lower (-1) bound of log A of the first cell; NaN if it is too uncertain."""
    error = float(cells.error[0]) + UNIT * (64.0 + 4.0 * abs(float(cells.log_a[0])))
    return float(cells.log_a[0]) + 2.0 * sign * error if error < LARGEST_ERROR else math.nan


def smallest_loss(
    parts: tuple[Part, ...], smallest: tuple[float, float], width: float
) -> SmallestLoss | None:
    """The event that every step is next to its smallest loss, within half of ``width`` in all.

    ``smallest`` is a lower and an upper bound of the sum of all smallest losses.  The losses on the
    event span at most ``width``, except for rounding.  None if losses are unbounded, or if masses
    next to their ends are not known.
    """
    least, most = smallest
    if not math.isfinite(least):
        return None
    steps = sum(number for _, number in parts)
    log_mass = 0.0
    for law, number in parts:
        low = law.support()[0]
        blur = _blur(law, low)
        near = max(0.5 * width / steps, 4.0 * blur)
        cells = law.cells(np.array([low + near]))
        known = _mass_of(cells, -1.0)
        if float(cells.shift[0]) > 2.0 * blur or math.isnan(known):
            return None
        most += number * (near + 4.0 * blur)
        # if little mass lies outside, 1 minus that mass is more precise
        missing = fn.exp(float(cells.log_a[1])) * (1.0 + 2.0 * float(cells.error[1]) + 1e-9)
        missing += law.infinite()[0] * (1.0 + 2.0**-48) + law.left_out() + 5e-324
        least_log = fn.log1p(-missing) * (1.0 + 2.0**-48) if missing < 0.5 else -math.inf
        log_mass += number * max(known, least_log)
    most += 8.0 * UNIT * abs(most)
    if log_mass < -LARGEST:
        return None
    left_out = math.fsum(number * law.left_out() for law, number in parts) * (1.0 + 4.0 * UNIT)
    mass = fn.exp(log_mass * (1.0 + 8.0 * UNIT * len(parts))) * (1.0 - 4.0 * UNIT)
    return SmallestLoss(least, most, mass, left_out)


# Map: the profile beside the smallest loss | test_lattice_ends | theory/lattice
def profile_at_end(
    parts: tuple[Part, ...], c: float, smallest: tuple[float, float]
) -> tuple[float, float] | None:
    """Bounds of the part of H from finite losses at a threshold c next to the smallest loss.

    Let low be the smallest loss of the sum.  S <= c needs every step within c - low of its own
    smallest loss, so H is at most the product of those masses times 1 - e^{low - c}.  The event
    that every step is within η of it gives a lower bound: its mass times 1 - e^{low + Nη - c}.
    None if c is too far or the masses are too uncertain; ``smallest`` is as above.
    """
    above = (c - smallest[0]) * (1.0 + 2.0 * UNIT)
    if not 0.0 < above < BESIDE:
        return None
    event = smallest_loss(parts, smallest, 2.0 * PART * above)
    if event is None or not c > event.most:
        return None
    log_most = 0.0
    for law, number in parts:
        low = law.support()[0]
        blur = _blur(law, low + above)
        cells = law.cells(np.array([low + above + 4.0 * blur]))
        known = _mass_of(cells, 1.0)
        if float(cells.shift[0]) > 2.0 * blur or math.isnan(known):
            return None
        log_most += number * known
    tiny = 1.0 + 16.0 * UNIT * (1.0 + abs(log_most))
    gap = (c - event.most) * (1.0 - 2.0 * UNIT)
    return event.mass * -fn.expm1(-gap) / tiny, fn.exp(log_most) * -fn.expm1(-above) * tiny
