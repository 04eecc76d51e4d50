"""Questions on both orders of a pair, with certified brackets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import Answer, ErrorCurve
from pyengine.engines.curves import larger
from pyengine.engines.hull import STEEPEST, BoolArray, BothOrders, mixed
from pyengine.errors import AccuracyError
from pyengine.numerics.rounding import UNIT

if TYPE_CHECKING:
    from pyengine.engines.lattice.pair import LatticePair

__all__ = ["LatticeBothOrders"]

FloatArray = npt.NDArray[np.float64]


class LatticeBothOrders(BothOrders):
    """Questions on both orders of a composition: adjacency ``add_remove``.

    Profiles are computed as precisely as the smaller error of a test needs.
    """

    def __init__(self, add: LatticePair, remove: LatticePair) -> None:
        super().__init__(add, remove)
        self._pairs = (add, remove)
        self._is_one_law = add.parts == remove.parts

    def wanting(self, wanted: str | None) -> LatticeBothOrders:
        """The same questions, with a narrow bracket of one error, or of both (None)."""
        add, remove = (pair.wanting(wanted) for pair in self._pairs)
        return LatticeBothOrders(add, remove)

    def hull(self, alpha: FloatArray, first: ErrorCurve, second: ErrorCurve) -> ErrorCurve:
        """As the base class; AccuracyError where the bounds are too wide."""
        curve = super().hull(alpha, first, second)
        left = (alpha > 0.0) & (alpha < 1.0) & self._is_wide(curve.beta, curve.gamma)
        if left.any():
            tolerance = self._pairs[0].tolerance
            raise AccuracyError(
                "the hull of both trade-off functions has no bracket of relative width "
                f"{tolerance:g} at alpha = {float(alpha[left][0])!r}, where the profiles "
                "of adjacency 'add' and 'remove' cross or nearly do: ask for each adjacency "
                "apart, or for a larger tolerance"
            )
        return curve

    def profile(self, epsilon: FloatArray) -> Answer:
        """The larger of both profiles at ε >= 0; at 0 they are equal."""
        first, second = (pair.profile(epsilon) for pair in self._pairs)
        found = larger(first, second)
        same = epsilon == 0.0
        found.lower[same] = np.maximum(first.lower[same], second.lower[same])
        found.upper[same] = np.minimum(first.upper[same], second.upper[same])
        found.value = np.clip(found.value, found.lower, found.upper)
        return found

    def _of_interest(self, beta: FloatArray, gamma: FloatArray) -> FloatArray:
        """The wanted error, or the smaller one if both are wanted."""
        wanted = self._pairs[0].wanted
        return np.minimum(beta, gamma) if wanted is None else beta if wanted == "beta" else gamma

    def _is_wide(
        self, beta: Answer, gamma: Answer, widths: tuple[FloatArray, FloatArray] | None = None
    ) -> BoolArray:
        """Whether the bracket of the error of interest is wider than twice the tolerance."""
        del widths
        tolerance, wanted = 2.0 * self._pairs[0].tolerance, self._pairs[0].wanted
        wide_beta, wide_gamma = (
            answer.upper - answer.lower > np.maximum(tolerance * answer.upper, rounding)
            for answer, rounding in ((beta, 1e-300), (gamma, 4.0 * UNIT))
        )
        if wanted is None:
            return np.where(beta.upper < gamma.upper, wide_beta, wide_gamma)
        return np.asarray(wide_beta if wanted == "beta" else wide_gamma)

    def _chord(self, alpha: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """As the base class, from the optimal tests of both profiles at slope e^c."""
        points = [_points(pair, c) for pair in self._pairs]
        return mixed(alpha, [(level, np.ones(c.size), power) for level, power in points])

    def _differences(
        self, size: FloatArray, floor: FloatArray, first: LatticePair, second: LatticePair
    ) -> tuple[FloatArray, BoolArray]:
        """As the base class; where both profiles are near 1, from 1 - H, which loses no digits."""
        size = np.minimum(size, STEEPEST)
        apart = first.is_mostly_apart(size) & second.is_mostly_apart(size)
        excess = np.zeros(size.size)
        if apart.any():
            mine, theirs = (pair.overlap(size[apart]) for pair in (first, second))
            excess[apart] = mine[1] - theirs[0]
        if not apart.all():
            near, least = size[~apart], floor[~apart]
            profiles = first.rough_profile(near, least), second.rough_profile(near, least)
            excess[~apart] = profiles[1].upper - profiles[0].lower
        return np.maximum(excess, 0.0), np.ones(size.size, dtype=np.bool_)


def _points(pair: LatticePair, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points of 1 - T(A, B) near slope e^c: levels α, and lower bounds of 1 - T there."""
    level, gamma = np.zeros(c.size), np.zeros(c.size)
    falls = c <= 0.0
    if falls.any():
        kept, missed = pair.tests(c[falls])
        level[falls], gamma[falls] = 1.0 - kept, 1.0 - missed - 2.0**-52
    rises = c >= 0.0
    if rises.any():
        found, shown = pair.reversed().tests(-c[rises])
        better = found - shown > gamma[rises] - level[rises]
        level[rises] = np.where(better, shown, level[rises])
        gamma[rises] = np.where(better, found, gamma[rises])
    return level, gamma
