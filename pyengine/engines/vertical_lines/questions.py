"""Questions on Laplace steps: proven bounds from lines, laws on panels, and the lattice.

What is not narrow enough is asked of another engine as well, and lies within the bounds of both.
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

WIDEST = 1e-4  # the lattice's own width
TINIEST = 5e-324
FLATTEST, CLOSER = 1e-6, 1e-3  # widths of ε from which on δ is to leave so much less open
CLOSEST = 1e-12  # bounds of ε of this relative distance are close without looking at δ
FEW = 8  # questions of which each is asked a rough bound first
SURE = 4.0  # how often δ is below δ(0) where that is sure without looking
ASIDE = 2.0**-20  # part of the distance to either end over which a profile's slope is taken
SEEN = 1e4  # roundings of a profile that are next to nothing of its fall over a step,
FURTHER = 64.0  # and how much longer the next step is
FLAT = 1e-9  # slope of a profile, relative to it, that says nothing
CLOSELY = 1.1  # by how much a bound on δ(0) may be too large
CLOSE = 2e-3  # logarithm of what a close bound on a profile may be off by where ε is looked for
TRIES = 12
STEP = 8.0  # by which an ε that is not surely on its side is moved further each time
NEXT = 1e-3  # how far beyond one order's ε that of the other one is looked for first
ENGINE = "certified"


class NobodyElseError(AccuracyError):
    """No engine is left that may know more of what is known to the tolerance asked for."""


class Others(NamedTuple):
    """Whom lines hand over to.

    Parameters
    ----------
    all, closer : callable
        Make the questions of the next engine, which hands over in turn: with all others, and
        without those that know less than what is close enough; `NobodyElseError` says that none is
        left.
    enough : float
        Relative width of that.
    """

    all: Callable[[], Any]
    closer: Callable[[], Any]
    enough: float

    @classmethod
    def of(cls, make: Callable[[], Questions]) -> Others:
        """One engine that is asked whatever is known."""
        return cls(make, make, 0.0)

    def after(
        self, make: Callable[[Others], Questions], make_closer: Callable[[Others], Questions]
    ) -> Others:
        """An engine that hands over to these, with all others and without those."""
        closer = self._replace(all=self.closer)
        return Others(Once(partial(make, self)), Once(partial(make_closer, closer)), self.enough)

    def narrow(
        self,
        answers: Sequence[tuple[Answer, BoolArray]],
        is_close: BoolArray,
        ask: Callable[[Questions, BoolArray], Sequence[Answer]],
    ) -> None:
        """Keep answers, each where it is wide, within the bounds of others.

        What is close enough stays as it is where those know no more.
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
    """Questions that others are asked where bounds are wide: of one error where that is asked.

    Bounds that are wider than ``widest`` are wide, unless they are of what is small alone: values,
    and γ at levels, below ``least_known``.
    """

    wanted: str | None = None
    widest: float
    _others: Others

    @property
    def least_known(self) -> float:
        """What is smaller is known to be small alone."""
        raise NotImplementedError

    def _hands_over(self, found: Triple, level: float, *, is_gamma: bool) -> bool:
        """As what is handed over."""
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
        """From masses, and within another engine's bounds where those leave too much open."""
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
    """Questions on one order; lines and laws are kept elsewhere.

    Parameters
    ----------
    law : LineOrder
        The composed steps.
    tolerance : float or None
        Largest relative width of the bounds; None for that of the lattice.
    others : Others
        Who answers what is wider.
    """

    is_light = True
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
        """As of the law."""
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
        # beyond all losses is what may have none
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
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ; mostly a little ``beyond`` another ε."""
        found = Answer.exact(np.zeros(delta.size))
        found.engine = names(ENGINE, delta.size)
        low, high = (max(-end, 0.0) for end in self.law.lowest()[::-1])
        # no ε does where δ is below what the first law alone shows; the largest loss does at that
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
        # from δ(0) on, which is asked for only where it may not be much larger, ε is 0
        near = asked if beyond is None else asked & ~(beyond > 0.0)
        if near.any():
            near = near & (self.law.expected_epsilon(SURE / self._spread() * known)[0] == 0.0)
        if near.any():
            # a close bound on δ(0) mostly tells on which side of it δ is
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
            # bounds of ε are too far apart where they leave more open of δ than is allowed
            is_open, closer = ~np.isfinite(upper), self.widest < WIDEST
            upper = np.where(is_open, 0.0, upper)  # whose difference is a number
            # of a profile that is flat there an engine beside this one may leave less open
            flat = (upper - lower > FLATTEST * upper) & closer
            widest = np.where(flat, CLOSER, 1.0) * self.widest
            wide = (upper - lower > CLOSEST * upper) & (left > widest * delta[asked])
            wide |= is_open
            wide &= delta[asked] >= self.law.least_known
            # where δ is at least δ(0) no other engine is asked
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
        """About the deviation of the loss, at most 1; next to 0 profiles are as much smaller."""
        low, high = self.law.expected(np.array([0.16, 0.84]))
        middle = 0.5 * (low + high)
        return min(max(0.5 * abs(float(middle[0] - middle[1])), 1e-9), 1.0)

    def _is_zero(self, delta: FloatArray, at: BoolArray) -> npt.NDArray[np.bool_]:
        """Whether ε is 0 at those of the δ that are asked about."""
        if not at.any():
            return at
        value, error = self.law.profile(np.zeros(1))
        return np.asarray(at & (delta >= value[0] + error[0]))

    def _enclosed(
        self, delta: FloatArray, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Lower bound, value and upper bound of ε, and what they leave open of δ.

        It is looked for between ``low`` and ``high`` first.
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
        # what the search kept at hand may be off by more than what serves there best
        step = (first - delta) / slope
        coarse = (np.abs(first - delta) > 0.1 * off + 4.0 * UNIT * delta) & (slope > FLAT * delta)
        coarse &= np.abs(step) <= ASIDE * value
        if coarse.any():
            value = np.where(coarse, np.minimum(value + step, end), value)
            first, off = law.profile(value)
        # no slope is known at the largest ε, below which profiles rise
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
    """Where the search for ε ends, and the largest ε that there is: infinite if not known.

    Rare large losses lie beyond the ends of laws that have none, where tiny profiles are expected.
    """
    least = law.lowest()[0]
    if least > -math.inf:
        return max(-least, 0.0), max(-least, 0.0)
    return max(-2.0 * law.support()[0], 2.0 * expected, 1.0), math.inf


def _over(profile: Callable[[float], float], delta: float) -> Callable[[float], float]:
    """The logarithm of a profile, over that of δ."""
    goal = fn.log(delta)

    def over(epsilon: float) -> float:
        value = profile(epsilon)
        return fn.log(value) - goal if value > 0.0 else -1e300

    return over


def _slope(profile: Callable[[float], float], root: float, end: float) -> float:
    """By how much the profile falls at ε, by what the search for it has at hand.

    Masses would tell as well, but may need another tilt or line.  At the largest ε there is none.
    """
    if root >= end:
        return 0.0
    reach = min(root, end - root) if root > 0.0 else end
    at, apart = profile(root), max(ASIDE * reach, 16.0 * UNIT * root)
    while True:
        fall = profile(root - apart) - at
        # next to 0 a profile is known to its rounding, beside which a small step shows nothing
        if fall > SEEN * UNIT * at or FURTHER * apart > reach:
            return fall / apart
        apart *= FURTHER


class LineBothOrders(HandingOver, ExactBothOrders):
    """Questions on both orders of Laplace steps: adjacency ``add_remove``.

    Parameters
    ----------
    add, remove : LineQuestions
        The ordered pairs.
    others : Others
        Who answers what is wider.
    """

    is_light = True
    _add: LineQuestions
    _remove: LineQuestions

    def __init__(self, add: LineQuestions, remove: LineQuestions, others: Others) -> None:
        super().__init__(add, remove)
        self._others, self.widest = others, add.widest
        self._is_one_law = add.law.is_symmetric

    @property
    def least_known(self) -> float:
        """As of the order of which less is known."""
        return max(order.law.least_known for order in (self._add, self._remove))

    def _decides(self, question: LawQuestion[Any], x: FloatArray, lower: FloatArray) -> BoolArray:
        """By a rough bound, as the other profile mostly is the smaller one by far."""
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
        # the other profile mostly is the smaller one, which a rough bound tells, or one look
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
        """The order whose ε is expected to be the larger one, the other one, and where it is.

        That is ``remove`` but next to the largest loss, where close bounds tell.
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
        """As of either order."""
        first, second = (order.law.expected(alpha) for order in (self._add, self._remove))
        return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])


def is_small(answer: Answer, known: float, level: FloatArray | None = None) -> BoolArray:
    """Return whether values are known to be small alone, of γ at levels.

    What a level is off by moves γ by γ/κ times that at most, as γ is concave.
    """
    small = answer.upper < known
    return np.asarray(small if level is None else small | (level < known))


def _is_wide(
    answer: Answer, most: float, known: float, level: FloatArray | None = None
) -> BoolArray:
    """Whether bounds are further apart than ``most`` of the value, and not small alone."""
    return np.asarray((relative_width(answer) > most) & ~is_small(answer, known, level))


def _is_one_wide(found: Triple, most: float, known: float, level: float | None) -> bool:
    """As `_is_wide` for one value."""
    _, lower, upper = found
    if upper < known or (level is not None and level < known):
        return False
    return not (lower <= upper <= NOTHING or (lower <= upper and (upper - lower) / upper <= most))


def _leave_open(beta: Answer, gamma: Answer, alpha: FloatArray, mass: float) -> None:
    """Add what one law may have where the other one has nothing, at the level 0."""
    if mass > 0.0:
        none = alpha == 0.0
        gamma.upper[none] = np.minimum(np.nextafter(gamma.upper[none] + mass, 2.0), 1.0)
        beta.lower[none] = np.maximum(np.nextafter(beta.lower[none] - mass, -1.0), 0.0)


def _is_whole(alpha: FloatArray | float, hidden: float) -> BoolArray:
    """Whether levels have all of the first law but what it alone shows."""
    return np.asarray((alpha == 1.0) | (1.0 - alpha < hidden * (1.0 - 16.0 * UNIT)))


def _show(beta: Answer, gamma: Answer, alpha: FloatArray, hidden: float, shown: float) -> None:
    """Enter what is known at levels of all but what the first law alone shows, and at 0."""
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
    """Keep the bounds within those of another engine, which are as proven.

    Raises
    ------
    AccuracyError
        Where both have no number in common: one of the proofs fails there.
    """
    # what is no number bounds nothing
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
