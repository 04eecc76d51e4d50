"""Masses and profiles of few losses beside other steps, as sums over the losses, with bounds.

A(S > c) = Σ a_i A(L > c - l_i) for few losses l_i of masses a_i and the other steps' loss L
(docs/theory/line, Lemma 10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
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

SLACK = 1.0 + 1e-9  # covers the rounding of a bound
# masses over the heaviest one that separate groups of losses, which are summed heaviest first
SHARES = (1.0, 1e-22, 1e-60, 1e-140, -1.0)
LEAST, ABOUT = 1e-14, 1e-2  # relative errors wanted of sums, and of A's mass beside a profile
UNIT_WEIGHT = np.ones((1, 1, 1))  # weight of thresholds that are not summed
COUNTS = 1e-17  # lighter groups with less than this of the sum are left out, as an error
MOST_POINTS = 2**19  # thresholds of one call for the other steps
MOST_JUMPS = 4096  # atoms of the sum above which none are listed
GUIDED = 1e-5  # relative errors up to which another order's masses are estimates


class Group(NamedTuple):
    """Some of the few losses, ``loss`` + ``low``, and their masses ``a`` and ``b``.

    ``rest_a`` and ``rest_b`` bound both laws' masses of all lighter losses.
    """

    loss: FloatArray
    low: FloatArray
    a: FloatArray
    b: FloatArray
    rest_a: float
    rest_b: float


class WeightedOrder(LineOrder):
    """A composition of few losses and other steps, for which one line would take too many nodes.

    Masses and profiles are sums over the few losses.  Where thresholds are expected is that of a
    `LineOrder` of all steps; estimates are those of ``guide`` where it is close.

    Parameters
    ----------
    kinds, exchanged
        As of a `LineOrder`.
    weights : Weights
        The few losses, with masses of the ordered pair.
    inner : Inner
        The other steps, of the same ordered pair.
    """

    is_called = True
    guide: LineOrder | None = None

    def __init__(self, kinds: Kinds, exchanged: bool, weights: Weights, inner: Inner) -> None:
        super().__init__(kinds, exchanged)
        self.inner, self._weights = inner, weights
        # the inner masses hold the infinite losses of all steps, if those have any
        self._added = (0.0, 0.0) if any(inner.alone_masses) else self.alone_masses

    @cached_property
    def _low(self) -> tuple[FloatArray, float]:
        """Low parts of the losses, and a bound of the errors of the sums of both parts.

        Losses known as doubles are logarithms of ratios of masses, which have relative errors.
        """
        w = self._weights
        return w.low or (np.zeros(w.loss.size), 2.0 * w.error)

    @property
    def work(self) -> float:
        """Number of terms: those of the other steps, at each of the few losses."""
        return self._weights.loss.size * self.inner.terms

    def guided(self, guide: LineOrder | None) -> WeightedOrder:
        """The same with the estimates of another order of all steps where these are close."""
        found = copy(self)
        found.guide = guide
        return found

    @cached_property
    def _sorted(self) -> list[Group]:
        """The few losses in groups, the heaviest first."""
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
        """Bounds of the smallest loss: the sum of both infima."""
        w, (low, high) = self._weights, self.inner.lowest()
        least, most = w.lowest
        off = 2.0 * w.error + 8.0 * UNIT * (1.0 + abs(low) + float(np.abs(w.loss).max()))
        return low + least - off, high + most + off

    @property
    def least_known(self) -> float:
        """That of the other steps."""
        return self.inner.least_known

    @property
    def has_atoms(self) -> bool:
        """Whether the other steps have atoms that count; each stands beside each loss."""
        return self.inner.has_atoms and self.jumps.size > 0

    @cached_property
    def jumps(self) -> FloatArray:
        """Losses of the sum's atoms, rising; empty where they are too many."""
        inner, few = self.inner.jumps, self._weights.loss
        if inner.size * few.size > MOST_JUMPS:
            return np.zeros(0)
        return np.unique(np.add.outer(few, inner))

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The four masses of `Tails`, each with a bound of its absolute error."""
        return [(x[0, :, 0], x[1, :, 0]) for x in self.masses_for(c[:, None], UNIT_WEIGHT, LEAST)]

    def masses_for(self, c: FloatArray, weight: FloatArray, least: float) -> FloatArray:
        """The same for thresholds whose values will be summed with weights; see `Inner`."""
        return self._over_groups(self._masses_at, MASSES, c, weight, least)

    def _over_groups(
        self,
        ask: Callable[[Group, FloatArray, FloatArray, float], FloatArray],
        functionals: int,
        places: FloatArray,
        weight: FloatArray,
        least: float,
    ) -> FloatArray:
        """Sums over the groups of losses, until lighter ones are negligible."""
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
        found[:, 1] += self._weights.left_out
        if not self.is_whole:
            found[:, 1] += 4.0 * UNIT * found[:, 0]
        return found

    def _masses_at(self, w: Group, c: FloatArray, weight: FloatArray, least: float) -> FloatArray:
        """Masses summed over one group, and bounds of their errors."""
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
        """Sums over the last axis of ``places``, in blocks of at most `MOST_POINTS`."""
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
                # terms may have underflowed
                sums[:, 1] += SUBNORMAL * (inner > 0.0).any(axis=(1, 4))
                found[:, :, of_rows, of_each] = sums
        relative = 1.01 * self._weights.error + UNIT * (losses + 4.0)
        found[:, 1] += relative * found.sum(axis=1)
        return found

    def shift(self, c: FloatArray) -> FloatArray:
        """Bounds of the errors of thresholds: of losses, of two differences, and of the inner."""
        w, (low, off_losses) = self._weights, self._low
        size = np.abs(c) + float(np.abs(w.loss).max()) + 2.0 * float(np.abs(low).max())
        inner = np.zeros(c.size)
        if self.inner.has_atoms:
            part = np.subtract.outer(c, w.loss)
            inner = self.inner.shift(part.ravel()).reshape(part.shape).max(axis=1)
        return np.asarray(inner + 1.01 * off_losses + 4.0 * UNIT * size)

    def roughly(self, c: float) -> RoughTails:
        """Estimates of A(S > c), A(S <= c), B(S > c) and B(S <= c)."""

        def terms(w: Group, far: bool) -> FloatArray:
            weights = np.array([w.a, w.a, w.b, w.b])
            found = self.inner.rough_masses((c - w.loss) - w.low, weights, far)
            return np.asarray(found * weights)

        known = None
        if self.guide is not None:
            known = np.array(self.guide.masses(np.array([c])))[..., 0]
        found = self._about(terms, np.array([0.0, *self._added, 0.0]), known)
        a_above, a_below, b_above, b_below = found.tolist()
        return a_above, a_below, b_above, b_below

    def profile_about(self, near: float) -> Callable[[float], float]:
        """A function that estimates the profile at ε."""
        del near

        def about(epsilon: float) -> float:
            def terms(w: Group, far: bool) -> FloatArray:
                places = (epsilon + w.loss) + w.low
                return (self.inner.rough_profile(places, w.a, far) * w.a)[None]

            known = None
            if self.guide is not None:
                known = np.array([self.guide.profile(np.array([epsilon]))])[..., 0]
            return float(self._about(terms, np.array(self._added[:1]), known)[0])

        return about

    def _about(
        self,
        terms: Callable[[Group, bool], FloatArray],
        added: FloatArray,
        known: FloatArray | None,
    ) -> FloatArray:
        """Estimates of functionals: those of the guide if close, or else sums over the losses.

        The guide's serve also where the other steps have no estimates.

        Parameters
        ----------
        terms : callable
            The terms of a group of losses, with guesses in the far tails or NaN.
        added : ndarray of shape (functionals,)
            Masses besides.
        known : ndarray of shape (functionals, 2), or None
            The guide's values, with bounds of their errors.
        """
        if known is not None and (known[:, 1] <= GUIDED * known[:, 0]).all():
            return known[:, 0]
        found = added.copy()
        for w in self._sorted:
            found += terms(w, known is None).sum(axis=1)
            if known is not None and np.isnan(found).any():
                return known[:, 0]
            rest = max(w.rest_a, w.rest_b) if found.size == MASSES else w.rest_a
            if rest <= ROUGHLY * float(found.min()):
                break
        return found

    def _profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile at finite ε, and bounds of its errors."""
        ((value, error),) = self.profiles_for(epsilon[:, None], UNIT_WEIGHT, LEAST)
        return value[:, 0], error[:, 0]

    def profiles_for(self, epsilon: FloatArray, weight: FloatArray, least: float) -> FloatArray:
        """The same for ε whose values will be summed with weights; see `Inner`."""
        found = self._over_groups(self._profile_at, 1, epsilon, weight, least)
        # |dδ/dε| is at most A's mass of finite losses above the threshold
        off, alone = self.shift(epsilon.ravel()).reshape(epsilon.shape), self.first.mass
        mass, unknown = self.masses_for(2.0 * off - epsilon, weight, max(least, ABOUT))[1]
        finite = np.maximum(mass - alone, 0.0)
        found[0, 1] += 1.01 * off * (finite + (unknown + 4.0 * UNIT * alone))
        return found

    def _profile_at(
        self, w: Group, epsilon: FloatArray, weight: FloatArray, least: float
    ) -> FloatArray:
        """The profile summed over one group, and a bound of its error."""
        part = np.add.outer(epsilon, w.loss) + w.low
        return self._summed(self.inner.profiles_for, part, w, weight, least)
