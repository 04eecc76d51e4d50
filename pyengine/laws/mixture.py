"""One step of a Gaussian mixture: A = N(0, 1), B = Σ wⱼ N(cⱼ, 1), L = log dB/dA.

With the records replaced by others: A = Σ wⱼ N(-cⱼ, 1) and the same B; the ratio increases in z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pyengine.laws.base import Cells, FloatArray, Law
from pyengine.laws.normals import (
    STANDARD,
    Alternatives,
    ExactAlternatives,
    ExactMixturePair,
    MixturePair,
    Normals,
    normal_cells,
)
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["GaussianMixtureLaw", "SubstitutedMixture"]

FAR = 1e160  # largest |z| of a node; the log of the mass beyond overflows
EMPTY = 450.0  # standard deviations beyond which the mass is below exp(-1e5)
HALVINGS = 60  # steps of a bracketed Newton iteration
NEWTON_STEPS = 60  # at most 13 were needed for 400 random mixtures, mostly 3
BLOCK = 2**14  # nodes at a time, so that the terms of the sum stay in the cache


def _rightmost_falls(slopes: FloatArray, offsets: FloatArray, heights: FloatArray) -> FloatArray:
    """Solve log Σ exp(offset + slope z) = height by Newton's method from the right."""
    # each term is below the sum: where the first one reaches the height, the sum has passed it
    z: FloatArray = ((heights - offsets) / slopes).min(axis=0)
    for _ in range(NEWTON_STEPS):
        exponents = offsets + slopes * z
        top = exponents.max(axis=0)
        shares = fn.exp(exponents - top)
        total = shares.sum(axis=0)
        step = (top + fn.log(total) - heights) * total / (slopes * shares).sum(axis=0)
        z -= step
        if np.all(step <= 4.0 * UNIT * (1.0 + np.abs(z))):
            break
    return z


# Map: mixtures of Gaussians with one shift each | test_gaussian_mixture | theory/gaussian
@dataclass(frozen=True)
class GaussianMixtureLaw(Law):
    """The pair N(0, 1), Σ wⱼ N(cⱼ, 1).

    Parameters
    ----------
    shifts : tuple of float
        cⱼ = shift/noise >= 0, increasing, of relative error at most 4 units.
    weights : tuple of float
        wⱼ > 0, of relative error at most 1 unit, with exact sum 1.
    low : tuple of float or None
        Shifts and then weights minus their doubles; None where they are unknown, and nothing can be
        proven.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]
    low: tuple[float, ...] | None = None

    def support(self) -> tuple[float, float]:
        """From the log of the weight at shift 0, if there is one, to infinity."""
        lowest = fn.log(self.weights[0]) if self.shifts[0] == 0.0 else -math.inf
        return lowest, math.inf

    def support_error(self) -> float:
        """Error of the log, and of a weight near 1, whose rounding is absolute in its log."""
        return super().support_error() + 4.0 * UNIT

    def mixtures(self) -> Alternatives | None:
        """A standard normal and the mixture."""
        return (MixturePair(STANDARD, Normals(self.shifts, self.weights)),)

    def exact_mixtures(self) -> ExactAlternatives | None:
        """A standard normal and the mixture, with numbers as sums of two doubles."""
        found = self.exact_terms()
        if found is None:
            return None
        one, none = Fraction(1), Fraction(0)
        terms = {none: (one, none)}
        for shift, weight in found:
            terms[shift] = (one if shift == 0 else none, weight)
        return (ExactMixturePair(terms),)

    def loss(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return L(z) and a bound on its error, including that of the shifts and weights."""
        exponents = np.array(
            [fn.log(w) + c * (z - 0.5 * c) for c, w in zip(self.shifts, self.weights, strict=True)]
        )
        sizes = np.array(
            [
                abs(fn.log(w)) + 4.0 + 8.0 * (c * np.abs(z) + c * c)
                for c, w in zip(self.shifts, self.weights, strict=True)
            ]
        )
        top = exponents.max(axis=0)
        shares = fn.exp(exponents - top)
        total = shares.sum(axis=0)
        # the error of an exponent counts with the share of its term; the sum adds its rounding
        error = UNIT * ELEMENTARY * ((shares * sizes).sum(axis=0) / total + len(self.shifts) + 4.0)
        loss = top + fn.log(total)
        return loss, error + UNIT * ELEMENTARY * np.abs(loss)

    def slope(self, z: FloatArray) -> FloatArray:
        """Return dL/dz, the mean of the shifts weighted by their terms; for searches only."""
        shifts, weights = np.array(self.shifts)[:, None], np.array(self.weights)[:, None]
        exponents = fn.log(weights) + shifts * (z - 0.5 * shifts)
        shares = fn.exp(exponents - exponents.max(axis=0))
        return np.asarray((shifts * shares).sum(axis=0) / shares.sum(axis=0))

    def _nodes(self, edges: FloatArray) -> FloatArray:
        """Return z with L(z) near the edges, -FAR for edges below all losses; no bound needs it.

        The term of shift 0 is a constant, so the equation is log Σ wⱼ exp(cⱼ z - cⱼ²/2) =
        log(eᴸ - w₀) over the other shifts.  Its left side is convex in z, with slopes between the
        smallest and the largest of these shifts, so Newton's method from the right of the root
        converges monotonically, in few steps however near L is to its smallest value.
        """
        heights = np.asarray(edges, dtype=np.float64)
        shifts, weights = np.array(self.shifts), np.array(self.weights)
        if self.shifts[0] == 0.0:
            rest = fn.log(self.weights[0])
            with np.errstate(divide="ignore", invalid="ignore"):
                heights = heights + fn.log(-fn.expm1(rest - heights))
            shifts, weights = shifts[1:], weights[1:]
        z = np.full(heights.shape, -FAR)
        reached = np.flatnonzero(heights > -math.inf)
        offsets = (fn.log(weights) - 0.5 * shifts * shifts)[:, None]
        slopes = shifts[:, None]
        for first in range(0, reached.size, BLOCK):
            block = reached[first : first + BLOCK]
            z[block] = _rightmost_falls(slopes, offsets, heights[block])
        return z

    def cells(self, edges: FloatArray) -> Cells:
        """Normal masses between nodes whose losses are near the edges.

        ``shift`` bounds the distance of the nodes' true losses from the edges, whatever the nodes.
        """
        z = np.maximum.accumulate(self._nodes(edges))
        if self.shifts[0] == 0.0:  # near the smallest loss nodes go to -∞
            z = np.where(z < -EMPTY, -FAR, z)
        loss, error = self.loss(z)
        shift = np.abs(loss - edges) + error + 2.0 * UNIT * np.abs(edges)
        floor = self.support()[0] - self.support_error()
        below = edges < floor  # there is no mass below: put the node at -FAR
        shift = np.where(below, 0.0, shift)
        z = np.where(below, -FAR, z)
        log_a, log_b = normal_cells(z, 0.0), self.masses(z)
        return Cells(log_a, log_b, self.mass_errors(z, log_a, log_b), shift)

    def masses(self, z: FloatArray, sign: float = 1.0) -> FloatArray:
        """Logs of the masses of Σ wⱼ N(±cⱼ, 1) between increasing points."""
        parts = [
            normal_cells(z, sign * c) + fn.log(w)
            for c, w in zip(self.shifts, self.weights, strict=True)
        ]
        with np.errstate(invalid="ignore"):
            return np.asarray(fn.log_sum(np.array(parts), axis=0))

    def mass_errors(self, z: FloatArray, log_a: FloatArray, log_b: FloatArray) -> FloatArray:
        """Bounds on the relative errors of masses of both laws between increasing points.

        An error of a mean moves the log of a mass by at most that error times the larger distance
        of the ends from it and, if the cell is longer than 1, times 2 (distance of the cell + 2).
        """
        left, right = np.append(-math.inf, z), np.append(z, math.inf)
        largest = np.maximum(np.abs(left), np.abs(right)) + self.shifts[-1]
        away = np.maximum(np.maximum(left, -right), 0.0) + self.shifts[-1]
        reach = np.where(right - left >= 1.0, np.minimum(largest, 2.0 * (away + 2.0)), largest)
        reach = np.where(np.isfinite(log_a) | np.isfinite(log_b), reach, 0.0)
        finite = np.where(np.isfinite(log_a), np.abs(log_a), 0.0)
        widest = max(abs(fn.log(w)) for w in self.weights)
        with np.errstate(over="ignore"):  # an infinite error says that nothing is known
            finite += np.where(np.isfinite(log_b), np.abs(log_b), 0.0)
            errors = UNIT * (80.0 + 4.0 * finite + 4.0 * widest + 12.0 * reach * reach)
        return np.asarray(errors + UNIT * ELEMENTARY * len(self.shifts))

    def exact_terms(self) -> list[tuple[Fraction, Fraction]] | None:
        """Shifts and weights as sums of two doubles; None where only doubles are known."""
        if self.low is None:
            return None
        numbers = zip((*self.shifts, *self.weights), self.low, strict=True)
        exact = [Fraction(high) + Fraction(low) for high, low in numbers]
        count = len(self.shifts)
        return list(zip(exact[:count], exact[count:], strict=True))


# Map: mixtures under substitution | test_gaussian_mixture | theory/adjacency
@dataclass(frozen=True)
class SubstitutedMixture(Law):
    """The pair Σ wⱼ N(-cⱼ, 1), Σ wⱼ N(cⱼ, 1); both orders have the same law.

    Parameters
    ----------
    mixture : GaussianMixtureLaw
        The mixture, of at least two shifts.
    """

    mixture: GaussianMixtureLaw
    symmetric: ClassVar[bool] = True

    def support(self) -> tuple[float, float]:
        """All losses."""
        return -math.inf, math.inf

    def mixtures(self) -> Alternatives | None:
        """The mixture and its mirror image."""
        shifts, weights = self.mixture.shifts, self.mixture.weights
        mirrored = Normals(tuple(-c for c in reversed(shifts)), tuple(reversed(weights)))
        return (MixturePair(mirrored, Normals(shifts, weights)),)

    def exact_mixtures(self) -> ExactAlternatives | None:
        """Both, with numbers as sums of two doubles."""
        found = self.mixture.exact_terms()
        if found is None:
            return None
        none = Fraction(0)
        terms = {-c: (w, none) for c, w in found} | {c: (none, w) for c, w in found}
        terms |= {c: (w, w) for c, w in found if c == 0}
        return (ExactMixturePair(terms),)

    def _loss(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """L(z) = l(z) - l(-z), l the loss against N(0, 1), and a bound on its error."""
        (up, up_error), (down, down_error) = self.mixture.loss(z), self.mixture.loss(-z)
        loss = up - down
        return loss, up_error + down_error + UNIT * np.abs(loss)

    def _nodes(self, edges: FloatArray) -> FloatArray:
        """Return z >= 0 with L(z) near the edges >= 0; no bound needs it.

        For z >= 0, l(-z) <= 0, so L reaches an edge before any single term of l does.  Newton steps
        that leave the bracket are replaced by bisection.
        """
        shifts, weights = np.array(self.mixture.shifts), np.array(self.mixture.weights)
        moves = shifts > 0.0
        c, log_w = shifts[moves][:, None], fn.log(weights[moves])[:, None]
        z = np.empty(edges.size)
        for first in range(0, edges.size, BLOCK):
            block = slice(first, first + BLOCK)
            target = edges[block]
            low = np.zeros(target.size)
            high = ((target - log_w + 0.5 * c * c) / c).min(axis=0)
            now = np.minimum(high, 0.5 * target / shifts[-1])
            for _ in range(HALVINGS):
                loss, _ = self._loss(now)
                off = loss - target
                low, high = np.where(off < 0.0, now, low), np.where(off < 0.0, high, now)
                step = off / self._slope(now)
                near = np.abs(step) <= 4.0 * UNIT * (1.0 + now)
                now = now - step
                now = np.where((now >= low) & (now <= high), now, 0.5 * (low + high))
                if near.all():
                    break
            z[block] = now
        return z

    def _slope(self, z: FloatArray) -> FloatArray:
        return self.mixture.slope(z) + self.mixture.slope(-z)

    def cells(self, edges: FloatArray) -> Cells:
        """Masses of both mixtures between nodes, whose true losses lie ``shift`` from the edges."""
        z = np.maximum.accumulate(np.sign(edges) * self._nodes(np.abs(edges)))
        loss, error = self._loss(z)
        shift = np.abs(loss - edges) + error + 2.0 * UNIT * np.abs(edges)
        log_a, log_b = self.mixture.masses(z, -1.0), self.mixture.masses(z)
        return Cells(log_a, log_b, self.mixture.mass_errors(z, log_a, log_b), shift)
