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
from pyengine.engines.vertical_lines.ordered import MASSES, ROUGHLY, Inner, RoughTails
from pyengine.engines.vertical_lines.shapes import Kinds
from pyengine.numerics.rounding import UNIT

__all__ = ["WeightedOrder"]

FloatArray = npt.NDArray[np.float64]

SLACK = 1.0 + 1e-9
# parts of the heaviest loss, between which losses are summed together, the heaviest first,
SHARES = (1.0, 1e-22, 1e-60, 1e-140, -1.0)
LEAST, ABOUT = 1e-14, 1e-2  # parts of sums that errors are brought down to
EACH = np.ones((1, 1, 1))  # weight of places that are not summed
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

    is_called = True

    def __init__(self, kinds: Kinds, exchanged: bool, weights: Weights, inner: Inner) -> None:
        super().__init__(kinds, exchanged)
        self.inner, self._weights = inner, weights
        # what the other steps have of infinite losses is in their masses
        self._added = (0.0, 0.0) if any(inner.alone_masses) else self.alone_masses

    @cached_property
    def _low(self) -> tuple[FloatArray, float]:
        """What losses are above the doubles, and a bound of what both together are off by.

        They are logarithms of ratios of masses unless they are known to more digits.
        """
        w = self._weights
        return w.low or (np.zeros(w.loss.size), 2.0 * w.error)

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
            found.append(Group(w.loss[at], self._low[0][at], w.a[at], w.b[at], of_a, of_b))
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
        return [(x[0, :, 0], x[1, :, 0]) for x in self.masses_for(c[:, None], EACH, LEAST)]

    def masses_for(self, c: FloatArray, weight: FloatArray, least: float) -> FloatArray:
        """The same at places whose weighted values are summed."""
        return self._over_groups(self._masses_at, MASSES, c, weight, least)

    def _over_groups(
        self,
        ask: Callable[[Group, FloatArray, FloatArray, float], FloatArray],
        functionals: int,
        places: FloatArray,
        weight: FloatArray,
        least: float,
    ) -> FloatArray:
        """Sums over the few losses, those that are heavy enough to count."""
        found, open_ = np.zeros((functionals, 2, *places.shape)), np.arange(len(places))
        first, second = self._added
        alone = [0.0, first, second, 0.0] if functionals == MASSES else [first]
        found[:, 0] = np.array(alone)[:, None, None]
        each = np.broadcast_to(weight, (functionals, *places.shape))
        for group in self._sorted:
            found[:, :, open_] += ask(group, places[open_], each[:, open_], least)
            rest = np.array([group.rest_a] * 2 + [group.rest_b] * 2)[:functionals, None]
            sums = (found[:, 0, open_] * each[:, open_]).sum(axis=-1)
            counts = (rest * each[:, open_].sum(axis=-1) > COUNTS * sums).any(axis=0)
            found[:, 1, open_[~counts]] += rest[..., None]
            open_ = open_[counts]
            if not open_.size:
                break
        found[:, 1] *= SLACK
        if not self.is_whole:
            found[:, 1] += 4.0 * UNIT * found[:, 0]
        return found

    def _masses_at(self, w: Group, c: FloatArray, weight: FloatArray, least: float) -> FloatArray:
        """Sums over some of the losses, and bounds on their errors."""
        part = np.subtract.outer(c, w.loss) - w.low
        return self._summed(self.inner.masses_for, part, w, weight, least)

    def _summed(
        self,
        ask: Callable[[FloatArray, FloatArray, float], FloatArray],
        places: FloatArray,
        w: Group,
        weight: FloatArray,
        least: float,
    ) -> FloatArray:
        """Sums over the last axis of the places; rows of what is summed, in as many as fit."""
        rows, each, losses = places.shape
        of_loss = np.array([w.a, w.a, w.b, w.b])[: len(weight)]
        found = np.empty((len(weight), 2, rows, each))
        together = max(1, MOST_POINTS // losses)
        step = max(1, together // each)
        for i in range(0, rows, step):
            for j in range(0, each, together):
                of_rows, of_each = slice(i, i + step), slice(j, j + together)
                part = places[of_rows, of_each]
                both = weight[:, of_rows, of_each, None] * of_loss[:, None, None, :]
                shape = part.shape[0], part.shape[1] * losses
                inner = ask(part.reshape(shape), both.reshape(len(weight), *shape), least)
                inner = inner.reshape(len(weight), 2, *part.shape)
                sums = np.einsum("fenmk,fk->fenm", inner, of_loss)
                # what is not 0 may have lost what lies below all doubles
                sums[:, 1] += SUBNORMAL * (inner > 0.0).any(axis=(1, 4))
                found[:, :, of_rows, of_each] = sums
        relative = 1.01 * self._weights.error + UNIT * (losses + 4.0)
        found[:, 1] += relative * found.sum(axis=1)
        return found

    def shift(self, c: FloatArray) -> FloatArray:
        """Losses are off, and two differences are rounded."""
        w, (low, off_losses) = self._weights, self._low
        size = np.abs(c) + float(np.abs(w.loss).max()) + 2.0 * float(np.abs(low).max())
        inner = np.zeros(c.size)
        if self.inner.has_atoms:
            part = np.subtract.outer(c, w.loss)
            inner = self.inner.shift(part.ravel()).reshape(part.shape).max(axis=1)
        return np.asarray(inner + 1.01 * off_losses + 4.0 * UNIT * size)

    def roughly(self, c: float) -> RoughTails:
        """About the masses of both laws above a threshold and at most at it."""
        found = np.array([0.0, *self._added, 0.0])
        for w in self._sorted:
            weights = np.array([w.a, w.a, w.b, w.b])
            inner = self.inner.rough_masses((c - w.loss) - w.low, weights)
            found += (inner * weights).sum(axis=1)
            if max(w.rest_a, w.rest_b) <= ROUGHLY * float(found.min()):
                break
        a_above, a_below, b_above, b_below = found.tolist()
        return a_above, a_below, b_above, b_below

    def profile_about(self, near: float) -> Callable[[float], float]:
        """The profile at ε."""
        del near

        def about(epsilon: float) -> float:
            found = self._added[0]
            for w in self._sorted:
                found += float(self.inner.rough_profile((epsilon + w.loss) + w.low, w.a) @ w.a)
                if w.rest_a <= ROUGHLY * found:
                    break
            return found

        return about

    def _profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """At finite ε."""
        ((value, error),) = self.profiles_for(epsilon[:, None], EACH, LEAST)
        return value[:, 0], error[:, 0]

    def profiles_for(self, epsilon: FloatArray, weight: FloatArray, least: float) -> FloatArray:
        """The same at places whose weighted values are summed."""
        found = self._over_groups(self._profile_at, 1, epsilon, weight, least)
        # profiles fall by no more than A's mass of finite losses there times what a threshold is
        # off by
        off, alone = self.shift(epsilon.ravel()).reshape(epsilon.shape), self.first.mass
        mass, unknown = self.masses_for(2.0 * off - epsilon, weight, max(least, ABOUT))[1]
        finite = np.maximum(mass - alone, 0.0)
        found[0, 1] += 1.01 * off * (finite + (unknown + 4.0 * UNIT * alone))
        return found

    def _profile_at(
        self, w: Group, epsilon: FloatArray, weight: FloatArray, least: float
    ) -> FloatArray:
        """Mean of the other steps' profile over some of the losses, and a bound on its error."""
        part = np.add.outer(epsilon, w.loss) + w.low
        return self._summed(self.inner.profiles_for, part, w, weight, least)
