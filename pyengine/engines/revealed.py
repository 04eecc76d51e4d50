"""Mixtures whose release names the part that ran, by questions on the parts.

As the release reveals the part, profiles add up: H = Σ wᵢ Hᵢ in each order of the pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import Answer, ErrorCurve, FloatArray, Questions, complement_above
from pyengine.engines.curves import larger
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import falling_bracket
from pyengine.numerics.golden_section import lowest
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["RevealedPair"]

BoolArray = npt.NDArray[np.bool_]

STEEPEST = 700.0  # largest |c|: e^c overflows beyond
MARGIN = 1e-6  # relative margin of the search for c about those of the parts
ROUNDS, ROUNDS_OF_ALL = 44, 80  # of golden section, between the parts' slopes or over all
FIRST_STEP, GROWTH, TRIES = (
    2.0**-24,
    4.0,
    12,
)  # first distance, factor and number of enclosing steps
TINIEST = 5e-324
EPSILON_WIDTH = 1e-9  # relative width of a bracket of ε in which the profile is nearly straight
SLOPE_WIDTH = (
    1e-8  # relative width of a bracket of c at which golden section stops; chords do the rest
)
LINE_ERROR = 2.0 * (ELEMENTARY + 4.0) * UNIT  # rounding of a line's height, relative to its terms


class Heights(NamedTuple):
    """Heights at α of lines below T, convex in e^c: values, bounds, whether they are proven."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    proven: BoolArray

    def taken(self, at: npt.NDArray[np.intp]) -> Heights:
        """Those at some indices."""
        value, lower, upper, proven = self
        return Heights(value[at], lower[at], upper[at], proven[at])


# Map: revealed mixtures by their parts | test_revealed | theory/adjacency
class RevealedPair(Questions):
    """Questions on one order of a mixture whose release names the part.

    Parameters
    ----------
    shares : sequence of Fraction
        Probabilities of the parts, which add up to 1.
    forward, reverse : sequence of Questions
        On the pairs (A, B) and (B, A) of the parts; answers are proven if all of these are.
    """

    def __init__(
        self, shares: Sequence[Fraction], forward: Sequence[Questions], reverse: Sequence[Questions]
    ) -> None:
        self._shares = [float(share) for share in shares]
        self._forward, self._reverse = forward, reverse

    def profile(self, epsilon: FloatArray) -> Answer:
        """The sum of the parts' profiles."""
        return self._sum(self._forward, epsilon)

    def _sum(self, parts: Sequence[Questions], epsilon: FloatArray) -> Answer:
        answers = [part.profile(epsilon) for part in parts]
        rows = zip(self._shares, answers, strict=True)
        terms = [(w * x.value, w * x.lower, w * x.upper) for w, x in rows]
        value, lower, upper = (reduce(np.add, column) for column in zip(*terms, strict=True))
        rounded = (len(terms) + 4.0) * UNIT
        some = np.any([answer.upper > 0.0 for answer in answers], axis=0)
        upper = np.minimum(upper * (1.0 + rounded) + len(terms) * TINIEST * some, 1.0)
        lower = np.maximum(lower * (1.0 - rounded) - len(terms) * TINIEST, 0.0)
        proven = np.all([answer.certified for answer in answers], axis=0)
        return Answer(np.clip(value, lower, upper), lower, upper, answers[0].engine, proven)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The ε at which the sum is δ, between the smallest and the largest ε of the parts."""
        ends = [part.epsilon(delta) for part in self._forward]
        found = reduce(larger, ends)  # the answer for δ = 0
        found.certified = np.all([end.certified for end in ends], axis=0)
        asked = np.flatnonzero((delta > 0.0) & (found.upper > 0.0))
        if not asked.size:
            return found
        goal = delta[asked]
        low = np.min([end.lower[asked] for end in ends], axis=0)
        never = self.profile(np.full(asked.size, np.inf))
        high = np.where(never.lower > goal, np.inf, found.upper[asked])
        low = np.where(np.isinf(high) & (never.lower > goal), np.inf, low)
        open_ = np.isinf(high) & np.isfinite(low)
        if open_.any():
            high[open_] = self._met(goal[open_], low[open_])
        value = np.where(np.isinf(low), low, high)
        inside = (low < high) & np.isfinite(high)
        if inside.any():
            ends_of = self._enclosed(goal[inside], low[inside], high[inside])
            low[inside], value[inside], high[inside], proven = ends_of
            found.certified[asked[inside]] &= proven
        for bound, own in ((found.lower, low), (found.value, value), (found.upper, high)):
            bound[asked] = own
        return found

    def _enclosed(
        self, delta: FloatArray, first: FloatArray, last: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
        """Lower bounds, values and upper bounds of ε within [first, last], and whether proven."""

        def over(x: FloatArray) -> Any:
            with np.errstate(divide="ignore"):
                return fn.log(self.profile(x).value) - fn.log(delta)

        low, high = falling_bracket(over, first, last, room=EPSILON_WIDTH * (1.0 + last))
        near, far = self.profile(low), self.profile(high)
        with np.errstate(divide="ignore", invalid="ignore"):
            fall = near.value - far.value
            share = np.clip((near.value - delta) / fall, 0.0, 1.0)
            apart = 1.1 * (near.upper - near.lower) * (high - low) / fall
        apart += 8.0 * UNIT * (1.0 + high)
        value = np.where(np.isfinite(share), low + share * (high - low), high)
        apart = np.where(np.isfinite(apart), apart, high - low)
        lower, upper = first.copy(), last.copy()
        proven = near.certified.copy()
        for bound, side in ((lower, -1.0), (upper, 1.0)):
            open_, step = np.ones(delta.size, dtype=np.bool_), apart.copy()
            for _ in range(TRIES):
                at = np.clip(value + side * step, first, last)
                answer = self.profile(at)
                shown = answer.lower > delta if side < 0.0 else answer.upper <= delta
                bound[open_ & shown] = at[open_ & shown]
                proven &= answer.certified
                open_ &= ~shown
                if not open_.any():
                    break
                step *= GROWTH
        return lower, np.clip(value, lower, upper), upper, proven

    def _met(self, delta: FloatArray, low: FloatArray) -> FloatArray:
        """An ε at which δ is certainly met, at most `STEEPEST`; infinite where none is found."""
        at = np.maximum(2.0 * low, 1.0)
        while True:
            is_met = self.profile(np.minimum(at, STEEPEST)).upper <= delta
            if np.all(is_met | (at >= STEEPEST)):
                return np.where(is_met, np.minimum(at, STEEPEST), np.inf)
            at = np.where(is_met, at, 2.0 * at)

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """At α = 0 γ is B's mass where A has none; at α = 1 the trivial values."""
        curve, none = ErrorCurve.trivial(alpha), alpha == 0.0
        curve.c = np.where(none, np.inf, -np.inf)
        if none.any():
            shown = self._sum(self._reverse, np.full(int(none.sum()), np.inf))
            curve.gamma.put(none, shown)
            curve.beta.put(none, _rest(shown))
        return curve, none | (alpha == 1.0)

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        """T at α as the highest of the lines below it, from the sum of profiles, with bounds."""
        curves = [part.trade_off(alpha) for part in self._forward]
        slopes = [curve.c for curve in curves]
        if all(c.size for c in slopes):
            low, high, rounds = np.min(slopes, axis=0), np.max(slopes, axis=0), ROUNDS
        else:
            low, high = np.full(alpha.size, -np.inf), np.full(alpha.size, np.inf)
            rounds = ROUNDS_OF_ALL
        low, high = (np.clip(end, -STEEPEST, STEEPEST) for end in (low, high))
        room = MARGIN * (1.0 + np.maximum(abs(low), abs(high)))
        odds = partial(self._odds, alpha)
        c, _ = lowest(odds, low - room, high + room, rounds=rounds, is_close=_are_close)
        of_gamma = c >= 0.0  # γ is small there and keeps its digits; elsewhere β does
        found = self._height(alpha, c, of_gamma)
        # the tests of level α in every part are one test of the mixture
        rounded = (len(curves) + 4.0) * UNIT
        rows = list(zip(self._shares, curves, strict=True))
        power = reduce(np.add, [w * curve.gamma.lower for w, curve in rows]) * (1.0 - rounded)
        error = reduce(np.add, [w * curve.beta.upper for w, curve in rows]) * (1.0 + rounded)
        error += len(curves) * TINIEST
        inside = np.where(of_gamma, np.maximum(power - len(curves) * TINIEST, alpha), -error)
        least, place = self._bottom(alpha, c, of_gamma, found, inside)
        other = self._height(alpha, place, of_gamma)
        better = other.upper < found.upper
        c, value, most = (
            np.where(better, b, a)
            for a, b in ((c, place), (found.value, other.value), (found.upper, other.upper))
        )
        sign = np.where(of_gamma, 1.0, -1.0)
        ends = np.where(of_gamma, (least, most), (-most, -least))
        lower, upper = np.maximum(ends[0], 0.0), np.minimum(ends[1], 1.0)
        lower = np.where(of_gamma, np.maximum(lower, alpha), lower)
        upper = np.where(of_gamma, upper, np.minimum(upper, complement_above(alpha)))
        own = Answer(np.clip(sign * value, lower, upper), lower, upper, curves[0].beta.engine)
        sure = [part.certified for curve in curves for part in curve]
        own.certified = found.proven & other.proven & np.all(sure, axis=0)
        beta, gamma = own.taken(~np.zeros(alpha.size, dtype=np.bool_)), _rest(own)
        beta.put(of_gamma, gamma.taken(of_gamma))
        gamma.put(of_gamma, own.taken(of_gamma))
        return ErrorCurve(beta, gamma, c)

    def _odds(self, alpha: FloatArray, c: FloatArray) -> FloatArray:
        """log(γ/β) at α on the line of slope -e^c, accurate for small γ and for small β."""
        of_gamma = c >= 0.0
        height = self._height(alpha, c, of_gamma).value
        value = np.clip(np.where(of_gamma, height, -height), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            odds = fn.log(value) - fn.log1p(-value)
        return np.asarray(np.where(of_gamma, odds, -odds))

    def _height(self, alpha: FloatArray, c: FloatArray, of_gamma: BoolArray) -> Heights:
        """γ at α on the line of slope -e^c below T, or -β: both are convex in e^c.

        γ = α e^c + D(c), where D(c) = H_{e^c}(B‖A) for c >= 0, and 1 - e^c + e^c H_{e^-c}(A‖B)
        otherwise.
        """
        slope, right = fn.exp(c), c >= 0.0
        found = Answer.zero(c)
        for where, parts in ((right, self._reverse), (~right, self._forward)):
            if where.any():
                found.put(where, self._sum(parts, abs(c[where])))
        scale = np.where(right, 1.0, slope)
        # the terms beside the profile, and the sum of all terms' sizes
        rest = np.where(right, alpha * slope, alpha * slope - fn.expm1(c))
        alone = np.where(right, alpha * slope - 1.0, slope * (alpha - 1.0))
        beside = np.where(of_gamma, rest, alone)
        size = np.where(of_gamma, rest, np.where(right, 1.0 + rest, abs(alone)))
        value, lower, upper = (
            beside + scale * part for part in (found.value, found.lower, found.upper)
        )
        off = LINE_ERROR * (size + scale * found.upper) + TINIEST
        return Heights(value, lower - off, upper + off, found.certified)

    def _bottom(
        self,
        alpha: FloatArray,
        c: FloatArray,
        of_gamma: BoolArray,
        heights: Heights,
        known: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Lower bounds of the least height over c, and a c next to the minimum.

        Where heights are proven larger on both sides of c the minimum lies between, where a convex
        function is above the extensions of its chords from both sides.
        """
        found, place, apart = known.copy(), c.copy(), FIRST_STEP
        open_ = np.ones(c.size, dtype=np.bool_)
        for _ in range(TRIES):
            at = np.flatnonzero(open_)
            if not at.size:
                break
            level, where = alpha[at], of_gamma[at]
            middle = heights.taken(at)
            left, right = (
                [self._height(level, c[at] + side * k * apart, where) for k in (1.0, 2.0)]
                for side in (-1.0, 1.0)
            )
            is_valley = (left[0].lower >= middle.upper) & (right[0].lower >= middle.upper)
            bottoms = [
                _between(-apart, c[at], middle, left, right[0]),
                _between(apart, c[at], middle, right, left[0]),
            ]
            lower = bottoms[1][0] < bottoms[0][0]
            bound, moved = (np.where(lower, b, a) for a, b in zip(*bottoms, strict=True))
            settled = at[is_valley]
            found[settled] = np.maximum(found[settled], bound[is_valley])
            place[settled] += moved[is_valley]
            open_[settled] = False
            apart *= GROWTH
        return np.minimum(found, heights.lower), place


def _are_close(low: FloatArray, high: FloatArray) -> BoolArray:
    return np.asarray(high - low <= SLOPE_WIDTH * (1.0 + np.maximum(abs(low), abs(high))))


def _between(
    apart: float, c: FloatArray, middle: Heights, near: list[Heights], across: Heights
) -> tuple[FloatArray, FloatArray]:
    """A lower bound between c and c + apart by extended chords, and the distance from c.

    One chord is through c + apart and c + 2 apart, the other through c and c - apart.
    """
    step, back = abs(fn.expm1(apart)), abs(fn.expm1(-apart))  # of e^c
    outer = abs(fn.expm1(2.0 * apart) - fn.expm1(apart))
    room = 1.0 + 16.0 * UNIT * (1.0 + abs(c)) / abs(apart)  # rounding of quotients of distances
    first, second = near

    def carried(known: Heights, behind: Heights, share: float) -> FloatArray:
        fall = known.lower - behind.upper
        return known.lower + np.where(fall < 0.0, room, 1.0 / room) * share * fall

    falling = carried(first, second, step / outer), first.lower  # at c, and at c + apart
    rising = middle.lower, carried(middle, across, step / back)
    gap = falling[0] - rising[0], rising[1] - falling[1]
    ends = np.maximum(falling[0], rising[0]), np.maximum(falling[1], rising[1])
    crosses = (gap[0] * gap[1]) > 0.0
    share = np.where(crosses, gap[0] / np.where(crosses, gap[0] + gap[1], 1.0), 0.0)
    meet = falling[0] + share * (falling[1] - falling[0])
    least = np.where(crosses, np.minimum(meet, np.minimum(*ends)), np.minimum(*ends))
    return least - LINE_ERROR * abs(least), share * apart


def _rest(answer: Answer) -> Answer:
    """One minus an answer."""
    lower = np.maximum(np.nextafter(1.0 - answer.upper, -1.0), 0.0)
    upper = np.minimum(np.nextafter(1.0 - answer.lower, 2.0), 1.0)
    return Answer(1.0 - answer.value, lower, upper, answer.engine, answer.certified)
