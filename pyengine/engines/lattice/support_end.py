"""Beside the smallest loss of a composition: bounds from the masses there of each step."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.coarse_cumulants import Part
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.scaled import lower_times_exp

__all__ = ["SmallestLoss", "profile_at_end", "smallest_loss"]

FloatArray = npt.NDArray[np.float64]

BESIDE = 0.05  # farther than this from the smallest loss nothing is tried
PART = 2.0**-24  # of the distance that one atom may be taken to be wide
LARGEST_ERROR = 1e-6
LARGEST = 700.0  # log of what a double can hold


class SmallestLoss(NamedTuple):
    """The event F that every step is next to its smallest loss.

    S >= ``least`` wherever it is finite, S <= ``most`` on F, and A(F) >= ``mass``; outcomes that
    are ``left_out`` of the laws may have other losses.
    """

    least: float
    most: float
    mass: float
    left_out: float

    def beta(self, alpha: FloatArray, lost: float) -> tuple[FloatArray, FloatArray]:
        """Bounds of T(A, B) at α >= 1 - mass, where A has ``lost`` at most that B has not.

        B >= e^least A bounds it from below, and tests that keep a part of F from above.
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
        """Bounds of 1 - T(B, A) at α up to B(F), where A has ``lost`` that B has not."""
        lower = lower_times_exp(alpha, -self.most) * (1.0 - 16.0 * UNIT)
        steepest = fn.exp(-self.least) if -self.least < LARGEST else math.inf
        upper = alpha * steepest * (1.0 + 16.0 * UNIT) + 5e-324
        most = (upper + lost[1] + self.left_out) * (1.0 + 4.0 * UNIT)
        return (lower + lost[0]) * (1.0 - 2.0 * UNIT), most

    @property
    def mass_of_second(self) -> float:
        """A number not above B(F)."""
        found = lower_times_exp(np.array([self.mass]), self.least)
        return float(found[0]) * (1.0 - 16.0 * UNIT)

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of what finite losses have in H_{e^ε}(A‖B)."""
        lower, upper = (-fn.expm1(np.minimum(epsilon + x, 0.0)) for x in (self.most, self.least))
        # of the sums, which are relative to the larger terms
        doubt = 4.0 * UNIT * (np.abs(epsilon) + abs(self.least) + 1.0)
        lower = np.maximum((lower - doubt) * self.mass * (1.0 - 16.0 * UNIT), 0.0)
        return lower, (upper + doubt) * (1.0 + 16.0 * UNIT) + self.left_out

    def epsilon(
        self, delta: FloatArray, lost: tuple[float, float]
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of the ε at which the profile is δ, for δ in (0, mass)."""
        doubt = 8.0 * UNIT * (1.0 + abs(self.least))
        more = np.clip((delta - lost[0]) / self.mass * (1.0 + 8.0 * UNIT), 0.0, 1.0)
        less = np.clip((delta - lost[1] - self.left_out) * (1.0 - 8.0 * UNIT), 0.0, 1.0 - UNIT)
        with np.errstate(divide="ignore"):
            lower = fn.log1p(-more) - self.most
        upper = fn.log1p(-less) - self.least
        return lower - doubt * (1.0 + np.abs(lower)), upper + doubt * (1.0 + np.abs(upper))


def smallest_loss(
    parts: tuple[Part, ...], smallest: tuple[float, float], width: float
) -> SmallestLoss | None:
    """The event that every step is next to its smallest loss, with most - least <= width.

    Parameters
    ----------
    parts : tuple of (StepLaw, int)
        The composition.
    smallest : tuple of float
        Numbers not above and not below the sum of all smallest losses.
    width : float
        How far losses on the event may lie apart, at most.

    Returns
    -------
    SmallestLoss or None
        None where losses are unbounded or their rounding is larger than the width.
    """
    least, most = smallest
    if not math.isfinite(least):
        return None
    steps = sum(number for _, number in parts)
    log_mass = 0.0
    for law, number in parts:
        low = law.support()[0]
        blur = float(law.cells(np.array([low])).shift[0])
        blur += law.support_error() + 4.0 * UNIT * abs(low)
        near = max(0.5 * width / steps, 4.0 * blur)
        cells = law.cells(np.array([low + near]))
        if float(cells.shift[0]) > 2.0 * blur:
            return None
        error = float(cells.error[0]) + UNIT * (64.0 + 4.0 * abs(float(cells.log_a[0])))
        if not error < LARGEST_ERROR:
            return None
        most += number * (near + 4.0 * blur)
        # what is missing has the digits where that is little
        missing = fn.exp(float(cells.log_a[1])) * (1.0 + 2.0 * float(cells.error[1]) + 1e-9)
        missing += law.infinite()[0] * (1.0 + 2.0**-48) + law.left_out() + 5e-324
        least_log = fn.log1p(-missing) * (1.0 + 2.0**-48) if missing < 0.5 else -math.inf
        log_mass += number * max(float(cells.log_a[0]) - 2.0 * error, least_log)
    most += 8.0 * UNIT * abs(most)
    if most - least > width or log_mass < -LARGEST:
        return None
    left_out = math.fsum(number * law.left_out() for law, number in parts) * (1.0 + 4.0 * UNIT)
    mass = fn.exp(log_mass * (1.0 + 8.0 * UNIT * len(parts))) * (1.0 - 4.0 * UNIT)
    return SmallestLoss(least, most, mass, left_out)


# Map: the profile beside the smallest loss | test_lattice_ends | theory/lattice
def profile_at_end(
    parts: tuple[Part, ...], c: float, smallest: tuple[float, float]
) -> tuple[float, float] | None:
    """Bounds of the mass of finite losses in H at a threshold c, from the steps' own ends.

    With low the smallest loss of all, S <= c needs every step within c - low of its own smallest
    loss, so H is at most the product of those masses times 1 - e^{low - c}; and the event that
    every step is within η of it gives at least its mass times 1 - e^{low + Nη - c}.

    Parameters
    ----------
    parts : tuple of (StepLaw, int)
        The composition; every step has a smallest finite loss.
    c : float
        The threshold.
    smallest : tuple of float
        Numbers not above and not below the sum of all smallest losses.

    Returns
    -------
    tuple of float, or None
        Lower and upper bound; None where c is too far or the masses are not known well enough.
    """
    above, gap = (c - smallest[0]) * (1.0 + 2.0 * UNIT), (c - smallest[1]) * (1.0 - 2.0 * UNIT)
    if not 0.0 < above < BESIDE:
        return None
    steps = sum(number for _, number in parts)
    log_least, log_most = 0.0, 0.0
    for law, number in parts:
        low = law.support()[0]
        blur = float(law.cells(np.array([low + above])).shift[0])
        blur += law.support_error() + 4.0 * UNIT * abs(low)
        near = max(PART * above / steps, 4.0 * blur)
        gap -= number * (near + 4.0 * blur)
        edges = np.array([low + near, low + above + 4.0 * blur])
        if not low < edges[0] < edges[1]:
            return None
        cells = law.cells(edges)
        if float(cells.shift.max()) > 2.0 * blur:
            return None
        error = float(cells.error[:2].max()) + UNIT * (64.0 + 4.0 * abs(float(cells.log_a[0])))
        if not error < LARGEST_ERROR:
            return None
        both = fn.logaddexp(cells.log_a[0], cells.log_a[1])
        log_least += number * (float(cells.log_a[0]) - 2.0 * error)
        log_most += number * (float(both) + 2.0 * error)
    if gap <= 0.0:
        return None
    tiny = 1.0 + 16.0 * UNIT * (1.0 + abs(log_most) + abs(max(log_least, -800.0)))
    lower = fn.exp(log_least) * -fn.expm1(-gap) / tiny
    upper = fn.exp(log_most) * -fn.expm1(-above) * tiny
    return lower, upper
