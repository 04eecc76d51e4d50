"""Questions on both orders of a pair, with certified brackets."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from pyengine.answers import Answer, complement_above
from pyengine.curves import ROUNDS, BothOrders, larger, smaller
from pyengine.engines.lattice.pair import LatticePair
from pyengine.errors import AccuracyError
from pyengine.numerics.golden_section import lowest

__all__ = ["LatticeBothOrders"]

FloatArray = npt.NDArray[np.float64]

FINEST = 1e-9  # tolerance to which profiles are asked for
ROUNDED = 2.0**-40  # relative, of a loss and an exponential: far below tolerances


class LatticeBothOrders(BothOrders):
    """Questions on both orders of a composition: adjacency ``add_remove``.

    Points of either curve bound the hull from inside.  From outside it is bounded by lines of slope
    e^c below both curves: the line that touches one curve at α, lowered by what the other order's
    profile exceeds the first one's at c.
    """

    def __init__(self, add: LatticePair, remove: LatticePair) -> None:
        super().__init__(add, remove)
        self._pairs = (add, remove)

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β and γ of the hull: certified bounds."""
        add, remove = self._pairs
        first, second = add.trade_off(alpha), remove.trade_off(alpha)
        if add.parts == remove.parts:
            return first.beta, first.gamma
        beta, gamma = smaller(first.beta, second.beta), larger(first.gamma, second.gamma)
        inner = (alpha > 0.0) & (alpha < 1.0)
        # by the smaller error, in which they differ
        less, more = second.beta.value < first.beta.value, second.gamma.value > first.gamma.value
        use = np.where(first.beta.value < 0.5, less, more)
        for curve, own, other, where in (
            (first, add, remove, inner & ~use),
            (second, remove, add, inner & use),
        ):
            where = where & ((beta.lower > 0.0) | (gamma.upper < 1.0))  # else nothing can be lost
            if where.any():
                beta.lower[where] = curve.beta.lower[where]
                gamma.upper[where] = curve.gamma.upper[where]
                small = self._of_interest(curve.beta.upper[where], curve.gamma.upper[where])
                # the slope is known to some rounding only, which moves the line by as little
                shift = _excess(curve.c[where], small, own, other) + ROUNDED * small
                beta.lower[where] -= shift
                gamma.upper[where] += shift
        self._clip(alpha, beta, gamma)
        for level in (True, False):
            wide = np.flatnonzero(inner & self._is_wide(beta, gamma))
            if not wide.size:
                break
            c = np.zeros(wide.size)
            if not level:
                low, high = (f(first.c[wide], second.c[wide]) for f in (np.minimum, np.maximum))
                low, high = np.clip(low, -700.0, 700.0), np.clip(high, -700.0, 700.0)
                c, _ = lowest(partial(self._odds, alpha[wide]), low, high, rounds=ROUNDS)
            self._bridge(alpha, beta, gamma, c, wide)
            self._clip(alpha, beta, gamma)
        else:
            left = inner & self._is_wide(beta, gamma)
            if left.any():
                raise AccuracyError(
                    "the hull of both trade-off functions has no bracket of relative width "
                    f"{add.tolerance:g} at alpha = {float(alpha[left][0])!r}, where the profiles "
                    "of adjacency 'add' and 'remove' cross or nearly do: ask for each adjacency "
                    "apart, or for a larger tolerance"
                )
        return beta, gamma

    def profile(self, epsilon: FloatArray) -> Answer:
        """The larger of both profiles at ε >= 0, which are the same at 0."""
        first, second = (pair.profile(epsilon) for pair in self._pairs)
        found = larger(first, second)
        same = epsilon == 0.0
        found.lower[same] = np.maximum(first.lower[same], second.lower[same])
        found.upper[same] = np.minimum(first.upper[same], second.upper[same])
        found.value = np.clip(found.value, found.lower, found.upper)
        return found

    def _of_interest(self, beta: FloatArray, gamma: FloatArray) -> FloatArray:
        """The error that is to be narrow, or the smaller one where both are."""
        wanted = self._pairs[0].wanted
        return np.minimum(beta, gamma) if wanted is None else beta if wanted == "beta" else gamma

    def _is_wide(self, beta: Answer, gamma: Answer) -> npt.NDArray[np.bool_]:
        tolerance, wanted = 2.0 * self._pairs[0].tolerance, self._pairs[0].wanted
        wide_beta, wide_gamma = (
            answer.upper - answer.lower > np.maximum(tolerance * answer.upper, rounding)
            for answer, rounding in ((beta, 1e-300), (gamma, 4.0 * 2.0**-53))
        )
        if wanted is None:
            return np.where(beta.upper < gamma.upper, wide_beta, wide_gamma)
        return np.asarray(wide_beta if wanted == "beta" else wide_gamma)

    def _bridge(
        self,
        alpha: FloatArray,
        beta: Answer,
        gamma: Answer,
        c: FloatArray,
        at: npt.NDArray[np.intp],
    ) -> None:
        """Use the line of slope e^c below both curves, and the chord of the points nearest to it.

        At c = 0 both profiles are the same, so that a line touches both curves there.
        """
        line_beta, line_gamma = self._tangent(alpha[at], c)
        # its few operations, relative to the terms of the sum that has the digits
        of_gamma = np.where(c >= 0.0, line_gamma.upper, 1.0)
        of_beta = np.where(c >= 0.0, 1.0, np.exp(c) * (1.0 - alpha[at]))
        line_gamma.upper = line_gamma.upper + 2.0**-49 * of_gamma
        line_beta.lower = line_beta.lower - 2.0**-49 * of_beta
        add, remove = self._pairs
        (p, x), (q, y) = _points(add, c), _points(remove, c)
        left, right = np.minimum(p, q), np.maximum(p, q)
        within = (left <= alpha[at]) & (alpha[at] <= right) & (left < right)
        share = np.where(within, (alpha[at] - p) / np.where(within, q - p, 1.0), 0.0)
        inside = np.where(within, x + share * (y - x) - 2.0**-51, 0.0)
        wins = line_gamma.upper < gamma.upper[at]
        for answer, line in ((beta, line_beta), (gamma, line_gamma)):
            answer.value[at] = np.where(wins & within, line.value, answer.value[at])
        beta.lower[at] = np.maximum(beta.lower[at], line_beta.lower)
        gamma.upper[at] = np.minimum(gamma.upper[at], line_gamma.upper)
        gamma.lower[at] = np.maximum(gamma.lower[at], inside)
        beta.upper[at] = np.minimum(beta.upper[at], 1.0 - inside + 2.0**-52)

    @staticmethod
    def _clip(alpha: FloatArray, beta: Answer, gamma: Answer) -> None:
        for answer, low, high in ((gamma, alpha, 1.0), (beta, 0.0, complement_above(alpha))):
            np.clip(answer.lower, low, high, out=answer.lower)
            np.clip(answer.upper, low, high, out=answer.upper)
            np.clip(answer.value, answer.lower, answer.upper, out=answer.value)


def _excess(c: FloatArray, small: FloatArray, own: LatticePair, other: LatticePair) -> FloatArray:
    """What is to be taken off a line of slope e^c that touches one curve, to be below the other.

    A line of slope e^c below T(A, B) has the intercept 1 - H_{e^c}(B‖A), below T(B, A) the same
    with A and B exchanged, and H_{e^c}(A‖B) = 1 - e^c + e^c H_{e^-c}(B‖A).
    """
    size = np.abs(np.clip(c, -700.0, 700.0))
    weight = np.exp(np.minimum(c, 0.0))
    floor = np.maximum(small, 1e-300) / np.maximum(weight, 1e-300)
    shift = np.empty(c.size)
    for where, first, second in ((c >= 0.0, other, own), (c < 0.0, own, other)):
        at = np.flatnonzero(where)
        if at.size:
            shift[at] = _differences(size[at], floor[at], first, second)
    return shift * weight


def _differences(
    size: FloatArray, floor: FloatArray, first: LatticePair, second: LatticePair
) -> FloatArray:
    """Upper bounds of how much the second profile exceeds the first one, where it does.

    What is left of the brackets' own widths is to be small next to ``floor``: where the profiles
    are larger than that and nearly equal, they are asked for once more with finer brackets.
    """
    tolerance = first.tolerance
    # where the profiles are near 1, what is missing is asked for
    apart = first.is_mostly_apart(size) & second.is_mostly_apart(size)
    excess = np.zeros(size.size)
    for at, compare in (
        (np.flatnonzero(apart), _of_overlaps),
        (np.flatnonzero(~apart), _of_profiles),
    ):
        if not at.size:
            continue
        excess[at], widths, large = compare(size[at], floor[at], first, second)
        unclear = at[(excess[at] > 0.0) & (widths > 0.5 * tolerance * floor[at])]
        if unclear.size:
            finer = 0.1 * tolerance * float(np.min(floor[at] / large))
            if finer > FINEST:
                pairs = [
                    LatticePair(list(pair.parts), finer, most_points=pair.most_points)
                    for pair in (first, second)
                ]
                excess[unclear] = compare(size[unclear], floor[unclear], *pairs)[0]
    return np.maximum(excess, 0.0)


def _of_profiles(
    size: FloatArray, floor: FloatArray, first: LatticePair, second: LatticePair
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Upper bounds of how much the second profile exceeds the first one, both widths, and size."""
    mine, theirs = (pair.rough_profile(size, floor) for pair in (first, second))
    widths = (theirs.upper - theirs.lower) + (mine.upper - mine.lower)
    return theirs.upper - mine.lower, widths, mine.upper


def _of_overlaps(
    size: FloatArray, _floor: FloatArray, first: LatticePair, second: LatticePair
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same from what both laws of a pair have in common, which is small."""
    mine, theirs = first.overlap(size), second.overlap(size)
    widths = (theirs[1] - theirs[0]) + (mine[1] - mine[0])
    return mine[1] - theirs[0], widths, mine[1]


def _points(pair: LatticePair, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points near slope e^c of 1 - T(A, B): levels α, and lower bounds of γ there."""
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
