"""Bounds that ask for no composition, where laws are all but told apart or tell all but nothing.

Let M(λ) = ∫ (dA)^{1-λ} (dB)^λ, which of a composition is the product of those of its steps.  As
min(x, y) <= x^{1-λ} y^λ for 0 < λ < 1, the overlap 1 - H_{e^ε}(A‖B) = ∫ min(dA, e^ε dB) is at most
e^{λε} M(λ); and the event {S > c} with e^{λc} = M(λ)/α has A-mass at most α and leaves B a mass of
at most M(λ)^{1/λ} α^{-(1-λ)/λ}.  By Hölder's inequality M of a step is at most the sum of
a^{1-λ} b^λ over the cells of any partition.

As (x - y)^+ <= x^{1+s} y^{-s} for s > 0, finite losses have at most e^{-sε} M(-s) in H_{e^ε}(A‖B);
M(-s) of a step is at most the sum of a e^{-sl} over cells whose losses are at least l.  Outcomes
with a step in cells of hardly any A-mass are left out of it, and that mass is added.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.engines.lattice.coarse_cumulants import Part, survey_cells
from pyengine.laws.base import Cells, StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["ChernoffBounds", "chernoff_bounds"]

FloatArray = npt.NDArray[np.float64]

# The bounds hold for every order, and the least one is taken.
BETWEEN = 1.0 / (1.0 + fn.exp(-np.linspace(-9.0, 9.0, 73)))  # λ
BEYOND = np.geomspace(1e-3, 1e12, 121)  # s
LEAST = -1e280  # stands for the log of no mass
NEGLIGIBLE = -760.0  # log of a mass that no double can show


class ChernoffBounds:
    """Upper bounds of what both laws of a composition have in common, and of what they have not.

    Parameters
    ----------
    parts : tuple of (StepLaw, int)
        At least one step.
    """

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self._between, self._beyond = np.zeros(BETWEEN.size), np.zeros(BEYOND.size)  # log M
        beside = []  # logs of A-masses whose losses are not bounded from below
        for law, number in parts:
            edges, cells = survey_cells(law)
            self._between += number * _log_overlaps(law, cells)
            log_moments, log_beside = _log_moments(law, edges, cells, number)
            self._beyond += number * log_moments
            beside.append(fn.log(number) + log_beside)
        for moments in (self._between, self._beyond):
            moments += 16.0 * UNIT * (1.0 + len(parts)) * np.abs(moments)
        self._beside = float(fn.log_sum(beside)) + 1e-9

    def log_overlap(self, epsilon: FloatArray) -> FloatArray:
        """Upper bounds of log(1 - H_{e^ε}(A‖B)) at finite ε >= 0."""
        return _least(BETWEEN[:, None] * epsilon, self._between[:, None])

    def log_profile(self, epsilon: FloatArray) -> FloatArray:
        """Upper bounds of the log of what finite losses have in H_{e^ε}(A‖B), at finite ε >= 0.

        But for what no cell has: a double can only say that this is at most the least one.
        """
        # a profile falls: at a smaller ε, whose product does not overflow, it is a bound as well
        near = np.minimum(epsilon, 1e300 / BEYOND[:, None])
        finite = _least(-BEYOND[:, None] * near, self._beyond[:, None])
        both = fn.logaddexp(finite, self._beside)
        return np.asarray(both + 8.0 * UNIT * (1.0 + np.abs(both)))

    def log_beta(self, alpha: FloatArray) -> FloatArray:
        """Upper bounds of the log of the trade-off function T(A, B) at α in (0, 1]."""
        second = -((1.0 - BETWEEN) / BETWEEN)[:, None] * fn.log(alpha)
        return _least((self._between / BETWEEN)[:, None], second)


def _least(first: FloatArray, second: FloatArray) -> FloatArray:
    """The least sums of two logs over all orders, rounded upwards."""
    sums = first + second + 16.0 * UNIT * (1.0 + np.abs(first) + np.abs(second))
    return np.asarray(sums.min(axis=0))


def _total(terms: FloatArray) -> FloatArray:
    """Logs of sums over cells, rounded upwards by what every addition may have lost."""
    top = np.maximum(terms.max(axis=1, initial=-math.inf), LEAST)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(over="ignore", divide="ignore"):
        sums = top + fn.log(fn.exp(terms - top[:, None]).sum(axis=1))
    sums = np.maximum(sums, LEAST)
    return np.asarray(sums + UNIT * terms.shape[1] * (8.0 + np.abs(sums)))


def _log_overlaps(law: StepLaw, cells: Cells) -> FloatArray:
    """Log M(λ) of a step, 0 < λ < 1."""
    both = (cells.log_a > -math.inf) & (cells.log_b > -math.inf)
    log_a, log_b = cells.log_a[both], cells.log_b[both]
    doubt = cells.error[both] + UNIT * (32.0 + 8.0 * (np.abs(log_a) + np.abs(log_b)))
    terms = (1.0 - BETWEEN[:, None]) * log_a + BETWEEN[:, None] * log_b + doubt
    missing = np.full((BETWEEN.size, 1), _log(law.left_out()))
    return _total(np.hstack([terms, missing]))


def _log_moments(
    law: StepLaw, edges: FloatArray, cells: Cells, number: int
) -> tuple[FloatArray, float]:
    """Log M(-s) of a step but for the smallest losses, and the log of their A-mass."""
    lowest = law.limits()[0] - law.support_error()
    least = np.maximum(np.append(-math.inf, edges - cells.shift), lowest)
    has_mass = cells.log_a > -math.inf  # the error of others may be infinite
    log_a = np.full(cells.log_a.size, -math.inf)
    known = cells.log_a[has_mass]
    log_a[has_mass] = known + cells.error[has_mass] + UNIT * (32.0 + 8.0 * np.abs(known))
    smallest = fn.log_sums(log_a)
    kept = (smallest > NEGLIGIBLE - fn.log(number)) & (least > -math.inf)
    first = int(np.argmax(kept)) if kept.any() else kept.size
    beside = float(smallest[first - 1]) if first else -math.inf
    beside += UNIT * (8.0 + kept.size) * (1.0 + abs(beside)) if beside > -math.inf else 0.0
    with np.errstate(over="ignore"):  # e to so much is 0, or no bound
        slopes = np.clip(-BEYOND[:, None] * least[first:], -1e300, 1e300)
    terms = log_a[first:] + slopes + 4.0 * UNIT * np.abs(slopes)
    return _total(terms), beside


def _log(mass: float) -> float:
    return fn.log(mass) if mass > 0.0 else -math.inf


@kept(256)
def chernoff_bounds(parts: tuple[Part, ...]) -> ChernoffBounds:
    """Return the bounds of a composition of at least one step."""
    return ChernoffBounds(parts)
