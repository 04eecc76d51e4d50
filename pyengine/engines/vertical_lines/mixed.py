"""Masses and profiles of few losses beside steps of other kinds, with bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.exact.levels import SUBNORMAL
from pyengine.engines.exact.mixed import Weights
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.ordered import Inner, RoughTails
from pyengine.engines.vertical_lines.shapes import Kinds
from pyengine.numerics.rounding import UNIT

__all__ = ["WeightedOrder"]

FloatArray = npt.NDArray[np.float64]

SLACK = 1.0 + 1e-9
# parts of the heaviest loss, between which losses are summed together, the heaviest first,
SHARES = (1.0, 1e-22, 1e-60, 1e-140, -1.0)
ROUGHLY = 1e-10  # the same where thresholds are only placed
COUNTS = 1e-17  # and parts of a value, below which the other losses' masses are an error
MOST_POINTS = 2**19  # of one evaluation of the other steps
MOST_JUMPS = 4096  # places of atoms that are looked at


class Group(NamedTuple):
    """Some of the few losses, what they are above the doubles, and their masses.

    ``rest_a`` and ``rest_b`` bound what both laws have at lighter ones.
    """

    loss: FloatArray
    low: FloatArray
    a: FloatArray
    b: FloatArray
    rest_a: float
    rest_b: float


class WeightedOrder(LineOrder):
    """A composition whose transform does not fall, as few losses beside one that has an order.

    Masses are sums over the few losses; what is expected, and where, is told as of all others.

    Parameters
    ----------
    kinds, exchanged
        As of a `LineOrder`.
    weights : Weights
        The few losses, with masses of the very pair that is asked about.
    inner : Inner
        The other steps, of that pair.
    """

    def __init__(self, kinds: Kinds, exchanged: bool, weights: Weights, inner: Inner) -> None:
        super().__init__(kinds, exchanged)
        self.inner, self._weights = inner, weights
        # losses are logarithms of ratios of masses unless they are known to more digits
        none = np.zeros(weights.loss.size), 2.0 * weights.error
        self._low, self._off_losses = weights.low or none

    @property
    def work(self) -> float:
        """As of the lines of all others, at each of the few losses."""
        return self._weights.loss.size * self.inner.terms

    @cached_property
    def _sorted(self) -> list[Group]:
        """The few losses, heavy ones first."""
        w, found = self._weights, []
        heavy = np.maximum(w.a / w.a.max(), w.b / w.b.max())
        for most, least in pairwise(SHARES):
            at, rest = (heavy <= most) & (heavy > least), heavy <= least
            if not at.any():
                continue
            of_a, of_b = (
                math.fsum(x[rest]) * (1.0 + 2.0 * w.error + 1e-9) + SUBNORMAL * bool(rest.any())
                for x in (w.a, w.b)
            )
            found.append(Group(w.loss[at], self._low[at], w.a[at], w.b[at], of_a, of_b))
        return found

    def lowest(self) -> tuple[float, float]:
        """Sums of both infima, and of both errors."""
        w, (low, high) = self._weights, self.inner.lowest()
        least, most = w.lowest
        off = 2.0 * w.error + 8.0 * UNIT * (1.0 + abs(low) + float(np.abs(w.loss).max()))
        return low + least - off, high + most + off

    @property
    def least_known(self) -> float:
        """As of the other steps."""
        return self.inner.least_known

    @property
    def has_atoms(self) -> bool:
        """Atoms of the other steps count, beside each of the few losses."""
        return self.inner.has_atoms and self.jumps.size > 0

    @cached_property
    def jumps(self) -> FloatArray:
        """Losses with atoms that count, rising; none where they are too many."""
        inner, few = self.inner.jumps, self._weights.loss
        if inner.size * few.size > MOST_JUMPS:
            return np.zeros(0)
        return np.unique(np.add.outer(few, inner))

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Masses as of `Tails`, each with a bound on its absolute error."""
        found, open_ = np.zeros((4, 2, c.size)), np.arange(c.size)
        for group in self._sorted:
            found[..., open_] += self._masses_at(group, c[open_])
            rest = np.array([group.rest_a] * 2 + [group.rest_b] * 2)[:, None]
            counts = (rest > COUNTS * found[:, 0, open_]).any(axis=0)
            found[:, 1, open_[~counts]] += rest
            open_ = open_[counts]
            if not open_.size:
                break
        return [(mass, error * SLACK) for mass, error in found]

    def _masses_at(self, w: Group, c: FloatArray) -> FloatArray:
        """Sums over some of the losses, and bounds on their errors."""
        found = np.zeros((4, 2, c.size))
        step = max(1, MOST_POINTS // w.loss.size)
        for start in range(0, c.size, step):
            part = np.subtract.outer(c[start : start + step], w.loss) - w.low
            inner = self.inner.masses(part.ravel())
            for row, pair, weight in zip(found, inner, (w.a, w.a, w.b, w.b), strict=True):
                row[:, start : start + step] = _summed(pair, part.shape, weight)
        relative = 1.01 * self._weights.error + UNIT * (w.loss.size + 4.0)
        found[:, 1] += relative * found.sum(axis=1)
        return found

    def shift(self, c: FloatArray) -> FloatArray:
        """Losses are off, and two differences are rounded."""
        w = self._weights
        size = np.abs(c) + float(np.abs(w.loss).max()) + 2.0 * float(np.abs(self._low).max())
        inner = np.zeros(c.size)
        if self.inner.has_atoms:
            part = np.subtract.outer(c, w.loss)
            inner = self.inner.shift(part.ravel()).reshape(part.shape).max(axis=1)
        return np.asarray(inner + 1.01 * self._off_losses + 4.0 * UNIT * size)

    def roughly(self, c: float) -> RoughTails:
        """About the masses of both laws above a threshold and at most at it."""
        found = np.zeros(4)
        for w in self._sorted:
            inner = self.inner.rough_masses((c - w.loss) - w.low)
            found += [x @ y for x, y in zip(inner, (w.a, w.a, w.b, w.b), strict=True)]
            if max(w.rest_a, w.rest_b) <= ROUGHLY * float(found.min()):
                break
        a_above, a_below, b_above, b_below = found.tolist()
        return a_above, a_below, b_above, b_below

    def profile_about(self, near: float) -> Callable[[float], float]:
        """The profile at ε."""
        del near

        def about(epsilon: float) -> float:
            found = 0.0
            for w in self._sorted:
                found += float(self.inner.rough_profile((epsilon + w.loss) + w.low) @ w.a)
                if w.rest_a <= ROUGHLY * found:
                    break
            return found

        return about

    def profile(
        self, epsilon: FloatArray, low: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The profile of the first law against the second one, and a bound on absolute errors."""
        assert low is None
        found, open_ = np.zeros((2, epsilon.size)), np.arange(epsilon.size)
        for group in self._sorted:
            found[:, open_] += self._profile_at(group, epsilon[open_])
            counts = group.rest_a > COUNTS * found[0, open_]
            found[1, open_[~counts]] += group.rest_a
            open_ = open_[counts]
            if not open_.size:
                break
        # profiles fall by no more than A's mass there times what a threshold is off by
        off = self.shift(epsilon)
        mass, unknown = self.masses(2.0 * off - epsilon)[1]
        value, error = found
        return value, error * SLACK + 1.01 * off * (mass + unknown)

    def _profile_at(self, w: Group, epsilon: FloatArray) -> FloatArray:
        """Mean of the other steps' profile over some of the losses, and a bound on its error."""
        found = np.zeros((2, epsilon.size))
        step = max(1, MOST_POINTS // w.loss.size)
        for start in range(0, epsilon.size, step):
            part = np.add.outer(epsilon[start : start + step], w.loss) + w.low
            inner = self.inner.profile(part.ravel())
            found[:, start : start + step] = _summed(inner, part.shape, w.a)
        relative = 1.01 * self._weights.error + UNIT * (w.loss.size + 4.0)
        found[1] += relative * found.sum(axis=0)
        return found


def _summed(
    pair: tuple[FloatArray, FloatArray], shape: tuple[int, ...], weight: FloatArray
) -> FloatArray:
    """Sums of values over losses, and of their errors; what is no number is at most 1.

    What is not 0 may have lost what lies below all doubles.
    """
    value, error = (np.where(np.isnan(x), 1.0, x).reshape(shape) for x in pair)
    lost = SUBNORMAL * ((value > 0.0) | (error > 0.0)).any(axis=1)
    return np.array([value @ weight, error @ weight + lost])
