"""Questions answered with proven bounds from lines, and by other engines where these are wide.

Such an answer lies within the bounds of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import Once
from pyengine.engines.answers import (
    WANTED,
    Answer,
    ErrorCurve,
    LawQuestion,
    Questions,
    Triple,
    names,
)
from pyengine.engines.certified import NOTHING, relative_width
from pyengine.engines.curves import larger
from pyengine.engines.exact.both import ExactBothOrders
from pyengine.engines.exact.levels import LevelQuestions, bounded
from pyengine.engines.exact.threshold import ThresholdQuestions
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.search import root_of
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["WIDEST", "LineBothOrders", "LineQuestions", "NobodyElseError", "Others", "is_small"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

WIDEST = 1e-4  # default relative width of bounds, as of the lattice
TINIEST = 5e-324
# relative width of ε above which the profile counts as flat, and the factor by which δ is then
# wanted closer
FLATTEST, CLOSER = 1e-6, 1e-3
CLOSEST = 1e-12  # relative width of ε that is narrow enough, whatever δ is
FEW = 8  # questions up to which each is given a rough bound first
SURE = 4.0  # δ below δ(0) by this factor is so by estimates alone
ASIDE = 2.0**-20  # step of a profile's difference quotient, relative to the distance of either end
SEEN = 1e4  # least fall of the profile over that step, in its roundings; else the step
FURTHER = 64.0  # grows by this factor
FLAT = 1e-9  # relative slope below which Newton's step is not used
CLOSELY = 1.1  # factor by which the quick bound of δ(0) may be too large
CLOSE = 2e-3  # log of the accuracy of the bound of a profile by chords, in a search for ε
TRIES = 12  # enclosing steps of ε
STEP = 8.0  # factor of the next enclosing step
NEXT = 1e-3  # relative width of the first bracket beyond the other order's ε
ENGINE = "certified"


class NobodyElseError(AccuracyError):
    """No engine is left that may narrow an answer that is close enough."""


class Others(NamedTuple):
    """The engines that answer where an engine's bounds are too wide.

    Parameters
    ----------
    all, closer : callable
        Make the questions of the next engine, which hands over in turn: among all engines, and
        among those that may be closer than ``enough``; `NobodyElseError` if there is none.
    enough : float
        Relative width of bounds that are close enough.
    """

    all: Callable[[], Any]
    closer: Callable[[], Any]
    enough: float

    @classmethod
    def of(cls, make: Callable[[], Questions]) -> Others:
        """A single engine, asked however close the bounds are."""
        return cls(make, make, 0.0)

    def after(
        self, make: Callable[[Others], Questions], make_closer: Callable[[Others], Questions]
    ) -> Others:
        """These engines after another one, made with ``all`` and with only ``closer`` of them."""
        closer = self._replace(all=self.closer)
        return Others(Once(partial(make, self)), Once(partial(make_closer, closer)), self.enough)

    def narrow(
        self,
        answers: Sequence[tuple[Answer, BoolArray]],
        is_close: BoolArray,
        ask: Callable[[Questions, BoolArray], Sequence[Answer]],
    ) -> None:
        """Intersect the bounds of answers, where these are wide, with those of other engines.

        Answers that are close enough stay where no closer engine is left.
        """
        wide = np.logical_or.reduce([at for _, at in answers])
        for make, is_enough, some in (
            (self.all, False, wide & ~is_close),
            (self.closer, True, wide & is_close),
        ):
            if not some.any():
                continue
            try:
                found = ask(make(), some)
            except NobodyElseError:
                if is_enough:
                    continue
                raise
            for (own, at), theirs in zip(answers, found, strict=True):
                _narrow(own, at & some, theirs.taken(at[some]))


class HandingOver(LevelQuestions):
    """Questions handed over to other engines where bounds are too wide.

    That is, relatively wider than ``widest``, unless the value, or the level of γ, is below
    ``least_known``.  Of trade-off functions only the error ``wanted`` counts, if one is.
    """

    wanted: str | None = None
    widest: float
    _others: Others

    @property
    def least_known(self) -> float:
        """Values below this may have bounds that are far apart."""
        raise NotImplementedError

    def _hands_over(self, found: Triple, level: float, *, is_gamma: bool) -> bool:
        """Whether one answer is handed over, as `_inside` decides for arrays."""
        return _is_one_wide(found, self.widest, self.least_known, level if is_gamma else None)

    def wanting(self, wanted: str | None) -> HandingOver:
        """The same for one error, or both."""
        if wanted == self.wanted:
            return self
        found = copy(self)
        found.wanted = wanted
        return found

    def _own(self, name: str, x: FloatArray) -> Answer:
        asked = self.wanting(WANTED.get(name))
        return super(HandingOver, asked)._own(name, x)

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        """β and γ from masses, intersected with other engines' bounds where they are too wide."""
        curve, most, known = super()._inside(alpha), self.widest, self.least_known
        wanted, others = self.wanted, self._others
        parts = [(curve.beta, None), (curve.gamma, alpha)]
        if wanted is not None:
            parts = [parts[wanted == "gamma"]]
        wide = [_is_wide(part, most, known, level) for part, level in parts]
        if not np.logical_or.reduce(wide).any():
            return curve
        is_close = ~np.logical_or.reduce(
            [_is_wide(part, others.enough, known, level) for part, level in parts]
        )

        def ask(other: Questions, at: BoolArray) -> Sequence[Answer]:
            found = other.wanting(wanted).trade_off(alpha[at])
            if curve.c.size:
                curve.c[at] = found.c
            both = found.beta, found.gamma
            return both if wanted is None else both[wanted == "gamma" :][:1]

        others.narrow([(p, w) for (p, _), w in zip(parts, wide, strict=True)], is_close, ask)
        return curve


class LineQuestions(HandingOver, ThresholdQuestions):
    """Questions on one order; its lines are kept elsewhere.

    Parameters
    ----------
    law : LineOrder
        The composed steps.
    tolerance : float or None
        Largest relative width of the bounds; None for that of the lattice.
    others : Others
        Engines for answers with wider bounds.
    """

    law: LineOrder

    def __init__(self, law: LineOrder, tolerance: float | None, others: Others) -> None:
        super().__init__(law, ENGINE)
        self.widest = WIDEST if tolerance is None else tolerance
        self._others = others

    @property
    def shown(self) -> float:
        """B's mass where A has none."""
        return self.law.alone_masses[1]

    @property
    def least_known(self) -> float:
        """That of the composed steps."""
        return self.law.least_known

    def _is_inside(self, level: float) -> bool:
        return level > 0.0 and not _is_whole(level, self.law.alone_masses[0])

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        hidden, shown = self.law.alone_masses
        curve = ErrorCurve.trivial(alpha)
        beta, gamma = curve
        _show(beta, gamma, alpha, hidden, shown)
        _leave_open(beta, gamma, alpha, self.law.infinite()[1])
        curve.c = np.where(alpha == 0.0, np.inf, -np.inf)
        return curve, (alpha == 0.0) | _is_whole(alpha, hidden)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        value, error = np.zeros(epsilon.size), np.zeros(epsilon.size)
        finite = np.isfinite(epsilon)
        if finite.any():
            value[finite], error[finite] = self.law.profile(epsilon[finite])
        # at ε = ∞ remain A's mass at infinite losses, and what truncation removed
        alone = self.law.alone_masses[0]
        value[~finite] = alone
        error[~finite] = self.law.infinite()[0] + 8.0 * UNIT * alone + TINIEST * (alone > 0.0)
        rounded = error > 0.0
        lower = np.where(rounded, np.nextafter(value - error, -1.0), value)
        upper = np.where(rounded, np.nextafter(value + error, 2.0), value)
        answer = bounded((value, lower, upper), 0.0, 1.0, ENGINE)
        weak = _is_wide(answer, self.widest, self.law.least_known)
        if weak.any():
            is_close = relative_width(answer) <= self._others.enough
            self._others.narrow(
                [(answer, weak)], is_close, lambda other, at: [other.profile(epsilon[at])]
            )
        return answer

    def epsilon(self, delta: FloatArray, beyond: FloatArray | None = None) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ; ``beyond`` are lower estimates of it."""
        found = Answer.exact(np.zeros(delta.size))
        found.engine = names(ENGINE, delta.size)
        low, high = (max(-end, 0.0) for end in self.law.lowest()[::-1])
        # with δ below A's mass at infinite losses no ε serves; with δ equal to it the largest loss
        alone, _, rest, unsure = self.law.first
        above = (delta - alone) - rest  # exact next to 0
        nothing = (above == 0.0) & (unsure == 0.0)
        found.lower[nothing], found.upper[nothing] = low, high
        found.value[nothing] = high
        never = above < -unsure - UNIT * UNIT * alone
        found.lower[never] = found.value[never] = found.upper[never] = math.inf
        asked = (delta > 0.0) & (delta < 1.0) & ~never & ~nothing
        known = np.where(asked, delta, 0.5)
        ends = self.law.expected_epsilon(known)
        # ε is 0 for δ >= δ(0), which is compared only where estimates leave that open
        near = asked if beyond is None else asked & ~(beyond > 0.0)
        if near.any():
            near = near & (self.law.expected_epsilon(SURE / self._spread() * known)[0] == 0.0)
        if near.any():
            # a quick bound of δ(0) first, and its value only where that decides nothing
            most = self.law.profile_most(0.0)
            asked &= ~(near & (delta >= most))
            asked &= ~self._is_zero(delta, asked & near & (delta >= most / CLOSELY))
        if beyond is not None:
            is_near = beyond > 0.0
            ends = (
                np.where(is_near, beyond, ends[0]),
                np.where(is_near, beyond * (1.0 + NEXT), ends[1]),
            )
        if asked.any():
            lower, value, upper, left = self._enclosed(delta[asked], *(end[asked] for end in ends))
            label = names(ENGINE, value.size)
            found.put(asked, Answer(np.clip(value, lower, upper), lower, upper, label, True))
            # bounds of ε are too wide if the profiles at them are too far apart
            is_open, closer = ~np.isfinite(upper), self.widest < WIDEST
            upper = np.where(is_open, 0.0, upper)  # avoids ∞ - ∞
            # where the profile is flat another engine may be closer
            flat = (upper - lower > FLATTEST * upper) & closer
            widest = np.where(flat, CLOSER, 1.0) * self.widest
            wide = (upper - lower > CLOSEST * upper) & (left > widest * delta[asked])
            wide |= is_open
            wide &= delta[asked] >= self.law.least_known
            # for δ >= δ(0) ε is 0, and no other engine is asked
            nothing = self._is_zero(delta, asked & (found.lower == 0.0))
            found.value[nothing] = found.upper[nothing] = 0.0
            wide &= ~nothing[asked]
            if wide.any():
                weak, is_close = np.zeros((2, delta.size), dtype=np.bool_)
                weak[asked] = wide
                is_close[asked] = ~is_open & (left <= self._others.enough * delta[asked])
                self._others.narrow(
                    [(found, weak)], is_close, lambda other, at: [other.epsilon(delta[at])]
                )
        return found

    def _spread(self) -> float:
        """The standard deviation of the loss, estimated, at most 1; it scales δ near ε = 0."""
        low, high = self.law.expected(np.array([0.16, 0.84]))
        middle = 0.5 * (low + high)
        return min(max(0.5 * abs(float(middle[0] - middle[1])), 1e-9), 1.0)

    def _is_zero(self, delta: FloatArray, at: BoolArray) -> npt.NDArray[np.bool_]:
        """Where, among ``at``, δ >= δ(0), so that ε is 0."""
        if not at.any():
            return at
        value, error = self.law.profile(np.zeros(1))
        return np.asarray(at & (delta >= value[0] + error[0]))

    def _enclosed(
        self, delta: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Lower bounds, values and upper bounds of ε, and the distance of δ at these bounds.

        The search starts between ``low`` and ``high``.
        """
        law = self.law
        end, most = _farthest(law, float(high.max()))
        roots, slopes = [], []
        for goal, *expected in zip(delta.tolist(), low.tolist(), high.tolist(), strict=True):
            noise = UNIT * (1.0 + abs(fn.log(goal)))
            profile = law.profile_about(0.5 * sum(expected))
            over = _over(profile, goal)
            root = root_of(over, (expected[0], expected[1]), (0.0, end), noise=noise)[1]
            roots.append(root)
            slopes.append(max(_slope(profile, root, end), FLAT * goal, math.ulp(0.0)))
        value, slope = np.array(roots), np.array(slopes)
        first, off = law.profile(value)
        # one Newton step where the line of the search was less accurate than the best one
        step = (first - delta) / slope
        coarse = (np.abs(first - delta) > 0.1 * off + 4.0 * UNIT * delta) & (slope > FLAT * delta)
        coarse &= np.abs(step) <= ASIDE * value
        if coarse.any():
            value = np.where(coarse, np.minimum(value + step, end), value)
            first, off = law.profile(value)
        # at the largest ε there is no slope
        moved = np.where(value < end, 1.01 * (np.abs(first - delta) + off) / slope, 0.0)
        apart = moved + 4.0 * UNIT * value
        for _ in range(TRIES):
            lower, upper = np.maximum(value - apart, 0.0), np.minimum(value + apart, end)
            found, off = (x.reshape(2, -1) for x in law.profile(np.concatenate([lower, upper])))
            is_low = (lower == 0.0) | (found[0] - off[0] > delta)
            is_high = (upper == most) | (found[1] + off[1] <= delta)
            done = is_low & is_high
            if done.all():
                break
            apart = np.where(done, apart, STEP * apart)
        lower, upper = np.where(is_low, lower, 0.0), np.where(is_high, upper, most)
        left = np.where(done, (found[0] + off[0]) - (found[1] - off[1]), 1.0)
        return lower * (1.0 - 4.0 * UNIT), value, upper * (1.0 + 4.0 * UNIT), left


def _farthest(law: LineOrder, expected: float) -> tuple[float, float]:
    """The end of the search for ε, and an upper bound of all ε, which may be infinite.

    Truncated laws have rare larger losses beyond their ends, which tiny δ need.
    """
    least = law.lowest()[0]
    if least > -math.inf:
        return max(-least, 0.0), max(-least, 0.0)
    return max(-2.0 * law.support()[0], 2.0 * expected, 1.0), math.inf


def _over(profile: Callable[[float], float], delta: float) -> Callable[[float], float]:
    """The function log profile(ε) - log δ."""
    goal = fn.log(delta)

    def over(epsilon: float) -> float:
        value = profile(epsilon)
        return fn.log(value) - goal if value > 0.0 else -1e300

    return over


def _slope(profile: Callable[[float], float], root: float, end: float) -> float:
    """Minus the slope of the profile at ε, by a difference quotient; 0 at the largest ε.

    Masses would give it as well, but may need another line.
    """
    if root >= end:
        return 0.0
    reach = min(root, end - root) if root > 0.0 else end
    at, apart = profile(root), max(ASIDE * reach, 16.0 * UNIT * root)
    while True:
        fall = profile(root - apart) - at
        # a fall that is too small is lost in the profile's rounding
        if fall > SEEN * UNIT * at or FURTHER * apart > reach:
            return fall / apart
        apart *= FURTHER


class LineBothOrders(HandingOver, ExactBothOrders):
    """Questions on both orders: adjacency ``add_remove``.

    Parameters
    ----------
    add, remove : LineQuestions
        The ordered pairs.
    others : Others
        Engines for answers with wider bounds.
    """

    _add: LineQuestions
    _remove: LineQuestions

    def __init__(self, add: LineQuestions, remove: LineQuestions, others: Others) -> None:
        super().__init__(add, remove)
        self._others, self.widest = others, add.widest
        self._is_one_law = add.law.is_symmetric

    @property
    def least_known(self) -> float:
        """The larger one of both orders."""
        return max(order.law.least_known for order in (self._add, self._remove))

    def _decides(self, question: LawQuestion[Any], x: FloatArray, lower: FloatArray) -> BoolArray:
        """As for exact sums, with rough bounds first: mostly the other profile is far smaller."""
        decides = super()._decides(question, x, lower)
        if x.size <= FEW:
            law = self._add.law
            for i in np.flatnonzero(np.isfinite(x)).tolist():
                known = float(lower[i])
                decides[i] = law.profile_most(float(x[i]), known) <= known
        return decides

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 at which both profiles are <= δ."""
        first, second, near = self._by_size(delta)
        found = first.epsilon(delta, near)
        if self._is_one_law:
            return found
        # the other profile is mostly smaller: shown by a rough bound, or else by its value
        law, positive = second.law, found.lower > 0.0
        is_smaller = np.zeros(delta.size, dtype=np.bool_)
        if delta.size <= FEW:
            for i in np.flatnonzero(positive):
                known = float(delta[i])
                is_smaller[i] = law.profile_most(float(found.lower[i]), known) <= known
        look = positive & ~is_smaller
        if look.any():
            value, error = law.profile(found.lower[look])
            is_smaller[look] = value + error <= delta[look]
        if is_smaller.all():
            return found
        return larger(found, second.epsilon(delta, found.lower if law.has_atoms else None))

    def _by_size(self, delta: FloatArray) -> tuple[LineQuestions, LineQuestions, FloatArray | None]:
        """The order with the larger ε, as expected, the other, and a lower estimate of that ε.

        That is ``remove`` except next to its largest loss, where the bounds by chords decide.
        """
        first, second = self._remove, self._add
        if self._is_one_law or delta.size != 1 or not 0.0 < delta[0] < 1.0:
            return first, second, None
        usual, other = first.law, second.law
        low, high = (float(x[0]) for x in usual.expected_epsilon(delta))
        if low == 0.0 or low + high >= float(np.sum(other.expected_epsilon(delta))):
            return first, second, None
        goal, end = float(delta[0]), _farthest(usual, high)[0]
        over = _over(usual.profile_most, goal)
        near = root_of(over, (low, high), (0.0, end), noise=CLOSE)[0]
        if other.profile_most(near) <= goal:
            return first, second, None
        return second, first, np.array([near])

    def _is_alone(self, alpha: FloatArray) -> BoolArray:
        laws = self._add.law, self._remove.law
        whole = _is_whole(alpha, max(law.alone_masses[0] for law in laws))
        return super()._is_alone(alpha) | whole

    def _is_inside(self, level: float) -> bool:
        return super()._is_inside(level) and not self._is_alone(np.array([level]))[0]

    def _expected(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The brackets that hold those of both orders."""
        first, second = (order.law.expected(alpha) for order in (self._add, self._remove))
        return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])


def is_small(answer: Answer, known: float, level: FloatArray | None = None) -> BoolArray:
    """Return whether values, or levels of γ, are below ``known``, where bounds may be far apart.

    An error of a level κ moves γ by at most γ/κ times that, as γ is concave.
    """
    small = answer.upper < known
    return np.asarray(small if level is None else small | (level < known))


def _is_wide(
    answer: Answer, most: float, known: float, level: FloatArray | None = None
) -> BoolArray:
    """Whether bounds are relatively wider than ``most``, of values that are not `is_small`."""
    return np.asarray((relative_width(answer) > most) & ~is_small(answer, known, level))


def _is_one_wide(found: Triple, most: float, known: float, level: float | None) -> bool:
    """As `_is_wide` for one value."""
    _, lower, upper = found
    if upper < known or (level is not None and level < known):
        return False
    return not (lower <= upper <= NOTHING or (lower <= upper and (upper - lower) / upper <= most))


def _leave_open(beta: Answer, gamma: Answer, alpha: FloatArray, mass: float) -> None:
    """Widen bounds at the level 0 by B's mass where A may have none, which truncation removed."""
    if mass > 0.0:
        none = alpha == 0.0
        gamma.upper[none] = np.minimum(np.nextafter(gamma.upper[none] + mass, 2.0), 1.0)
        beta.lower[none] = np.maximum(np.nextafter(beta.lower[none] - mass, -1.0), 0.0)


def _is_whole(alpha: FloatArray | float, hidden: float) -> BoolArray:
    """Whether levels include all of A but its mass ``hidden`` at infinite losses."""
    return np.asarray((alpha == 1.0) | (1.0 - alpha < hidden * (1.0 - 16.0 * UNIT)))


def _show(beta: Answer, gamma: Answer, alpha: FloatArray, hidden: float, shown: float) -> None:
    """Put the exact values at the level 0, γ = ``shown``, and at levels from 1 - ``hidden`` on."""
    if shown > 0.0:
        none, off = alpha == 0.0, 16.0 * UNIT * shown
        gamma.value[none], gamma.lower[none], gamma.upper[none] = shown, shown - off, shown + off
        beta.value[none], beta.lower[none] = 1.0 - shown, max(1.0 - shown - off - UNIT, 0.0)
        beta.upper[none] = min(1.0 - shown + off + UNIT, 1.0)
    if hidden > 0.0:
        whole = _is_whole(alpha, hidden)
        for part, value in ((beta, 0.0), (gamma, 1.0)):
            part.value[whole] = part.lower[whole] = part.upper[whole] = value


def _narrow(answer: Answer, at: BoolArray, other: Answer) -> None:
    """Intersect bounds with those of another engine, which are proven as well.

    Raises
    ------
    AccuracyError
        Where the intersection is empty: one of the proofs is wrong.
    """
    # fmax and fmin: NaN is no bound
    lower = np.fmax(other.lower, answer.lower[at])
    upper = np.fmin(other.upper, answer.upper[at])
    if (lower > upper).any():
        raise AccuracyError(
            "the proven bounds of two engines do not meet, which is a defect to be reported; "
            "method='lattice' asks one of them alone"
        )
    other.lower, other.upper = lower, upper
    other.value = np.clip(other.value, other.lower, other.upper)
    answer.put(at, other)
