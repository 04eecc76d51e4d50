"""Orders whose mixtures of normals end early where lines of whole laws leave much open.

Rare steps have modes far out, which decide where lines of the whole law stand, and masses between
them are sums that cancel.  A law that ends before those modes has lines of its own, and lacks no
more than a bound tells.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.vertical_lines.normal_steps import LEVELS
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.numerics import functions as fn

__all__ = ["CloserOrder"]

FloatArray = npt.NDArray[np.float64]
Pairs = list[tuple[FloatArray, FloatArray]]

OPEN = 1e-11  # part of a value that its error is, from which on laws that end are asked,
LAWS = 3  # so many at most
NEAR = 3.0  # logs that a value may be off
TINIEST = 1e-300


class CloserOrder(LineOrder):
    """A composition with mixtures of normals, some of whose laws end."""

    @cached_property
    def _ending(self) -> list[LineOrder | None]:
        return [None] * len(LEVELS)

    def _at(self, level: int) -> LineOrder:
        """The same steps, whose mixtures end early."""
        found = self._ending[level]
        if found is None:
            kinds = tuple((shape.ending(level), number) for shape, number in self.kinds)
            found = self._ending[level] = LineOrder(kinds, self.exchanged)
        return found

    def _improved(
        self,
        pairs: Pairs,
        ask: Callable[[LineOrder, npt.NDArray[np.intp]], Pairs],
    ) -> Pairs:
        """Values and errors, where they are far apart those of laws that end if they are closer."""
        value, error = (np.array(part) for part in zip(*pairs, strict=True))
        tried = np.full(value.shape[1], len(LEVELS))  # the last one that was tried
        for _ in range(LAWS):
            is_open = (error > OPEN * value).any(axis=0) & (tried > 1)
            if not is_open.any():
                break
            most = np.where(value > error, value, error).min(axis=0)
            level = np.searchsorted(-LEVELS[1:], NEAR - fn.log(np.maximum(most, TINIEST))) + 1
            level = np.minimum(np.where(tried < len(LEVELS), tried + 1, level), len(LEVELS) - 1)
            is_open &= level != tried
            for each in sorted(set(level[is_open].tolist())):
                at = np.flatnonzero(is_open & (level == each))
                found = ask(self._at(each), at)
                other, off = (np.array(part) for part in zip(*found, strict=True))
                better = off < error[:, at]
                value[:, at] = np.where(better, other, value[:, at])
                error[:, at] = np.where(better, off, error[:, at])
            tried = np.where(is_open, level, 0)
        return list(zip(value, error, strict=True))

    def masses(self, c: FloatArray) -> Pairs:
        """Masses as of `Tails`, each with a bound on its absolute error."""
        return self._improved(super().masses(c), lambda law, at: law.masses(c[at]))

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile of the first law against the second one, and a bound on absolute errors."""
        found = super().profile(epsilon)
        return self._improved([found], lambda law, at: [law.profile(epsilon[at])])[0]
