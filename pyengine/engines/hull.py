"""The lower convex hull of both orders' trade-off functions: adjacency ``add_remove``.

The hull (Definition F.1 of Dong, Roth and Su 2022) is the largest of all lines below both
functions, and its conjugate is the larger profile: γ(α) = min over c of α e^c + D(c).  It is one of
both functions wherever the tangent of that one does not cut the other, and a line that touches both
elsewhere.  Both profiles are the same at 0, so that one such line has slope -1.

An engine says what it knows of a line of slope -e^c; where the hull lies between the lines and
chords is said here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import (
    Answer,
    ErrorCurve,
    FloatArray,
    Found,
    LawQuestion,
    Questions,
    complement_above,
)
from pyengine.engines.curves import MadeOf, larger, smaller
from pyengine.engines.refusals import crossed
from pyengine.numerics import functions as fn

__all__ = ["Between", "BothOrders", "joined", "mixed"]

BoolArray = npt.NDArray[np.bool_]
Test = tuple[FloatArray, FloatArray, FloatArray]  # bounds of α and β from above, of γ from below

NARROW = 1e-11  # relative width of bounds of both errors that nothing more is asked for
ROUNDS = 70  # of a search that shrinks its interval to 0.62 of it
SHARE = 1.0 / 3.0  # of the bracket that is due to the law below, which loses half of what is gained
STEEPEST = 700.0  # e^c of a larger c is beyond all doubles, or below them
SLOPE = 2.0**-40  # relative, of a loss and an exponential: what a line moves by that has that slope
CHORD = 2.0**-50  # of the few operations of a chord, relative to its positive terms
UNDERFLOW = 2e-323  # of both products and of the last one, where they are no normal doubles
LINE = 2.0**-49  # of the few operations of a line, relative to the terms of its sum


# Map: Definition F.1 of Dong, Roth and Su (2022): hull | test_curves | theory/conversions
class BothOrders(Questions):
    """Questions on both orders (A, B) and (B, A) of the pair: adjacency ``add_remove``.

    Profiles are the larger of both.  The trade-off function is bounded from outside by lines below
    both curves, and from inside by the curves and by chords between their points; so its bounds are
    proven where those of the pairs are.
    """

    _is_one_law = False  # that is its own mirror image, and answers for both orders

    def __init__(self, add: Questions, remove: Questions) -> None:
        self._add = add
        self._remove = remove

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """Of profiles and of ε the larger one of both orders."""
        found = question(self._remove, x)
        if self._is_one_law:
            return found
        open_ = ~self._decides(question, x, found.parts()[""].lower)
        if open_.any():
            other = question(self._add, x[open_])
            found.put(open_, found.taken(open_).each(_larger, other))
        return found

    def _decides(self, question: LawQuestion[Any], x: FloatArray, lower: FloatArray) -> BoolArray:
        """Where ``remove`` is known to have the larger answer, by a lower bound of its own."""
        del question, lower
        return np.zeros(x.size, dtype=np.bool_)

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray] | None:
        """All of the one law where both orders have the same."""
        if self._is_one_law:
            return self._add.trade_off(alpha), np.ones(alpha.size, dtype=np.bool_)
        return super()._settled(alpha)

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        """β and γ of the hull: the better of both curves, or a line that touches both."""
        return self.hull(alpha, self._add.trade_off(alpha), self._remove.trade_off(alpha))

    def hull(self, alpha: FloatArray, first: ErrorCurve, second: ErrorCurve) -> ErrorCurve:
        """The hull, from the curves of ``add`` and ``remove`` at α."""
        beta, gamma = smaller(first.beta, second.beta), larger(first.gamma, second.gamma)
        inner = (alpha > 0.0) & (alpha < 1.0)
        widths = 2.0 * (beta.upper - beta.lower), 2.0 * (gamma.upper - gamma.lower)
        self._bound_from_outside(alpha, first, second, beta, gamma)
        _clip(alpha, beta, gamma)
        for slope_is_one in (True, False):
            wide = np.flatnonzero(inner & self._is_wide(beta, gamma, widths))
            if not wide.size:
                break
            c = np.zeros(wide.size)
            if not slope_is_one:  # the slope of the hull lies between those of both curves
                low, high = (f(first.c[wide], second.c[wide]) for f in (np.minimum, np.maximum))
                low, high = (np.clip(end, -STEEPEST, STEEPEST) for end in (low, high))
                from pyengine.numerics.golden_section import lowest  # few levels need it

                c, _ = lowest(partial(self._odds, alpha[wide]), low, high, rounds=ROUNDS)
            self._bridge(alpha, beta, gamma, c, wide)
            _clip(alpha, beta, gamma)
        return ErrorCurve(beta, gamma)

    def _bound_from_outside(
        self,
        alpha: FloatArray,
        first: ErrorCurve,
        second: ErrorCurve,
        beta: Answer,
        gamma: Answer,
    ) -> None:
        """Set the lower bounds of β and the upper ones of γ, from lines that touch one curve.

        Each is lowered by what the other order's profile exceeds the first one's at its slope.
        """
        inner = (alpha > 0.0) & (alpha < 1.0)
        # by the smaller error, in which they differ
        less, more = second.beta.value < first.beta.value, second.gamma.value > first.gamma.value
        use = np.where(first.beta.value < 0.5, less, more)
        add, remove = self._add, self._remove
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
                shift, proven = self._excess(curve.c[where], small, own, other)
                shift = shift * (1.0 + LINE) + SLOPE * small
                for answer, side in ((beta, -shift), (gamma, shift)):
                    answer.certified[where] &= proven
                    bound = answer.lower if answer is beta else answer.upper
                    bound[where] += side

    def _excess(
        self, c: FloatArray, small: FloatArray, own: Questions, other: Questions
    ) -> tuple[FloatArray, BoolArray]:
        """What a line of slope e^c that touches one curve is lowered by, to be below the other.

        A line of slope e^c below T(A, B) has the intercept 1 - H_{e^c}(B‖A), below T(B, A) the same
        with A and B exchanged, and H_{e^c}(A‖B) = 1 - e^c + e^c H_{e^-c}(B‖A).
        """
        size = np.abs(c)
        weight = fn.exp(np.clip(c, -STEEPEST, 0.0))
        floor = np.maximum(small, 1e-300) / np.maximum(weight, 1e-300)
        shift, proven = np.full(c.size, np.inf), np.ones(c.size, dtype=np.bool_)
        for where, first, second in ((c >= 0.0, other, own), (c < 0.0, own, other)):
            at = np.flatnonzero(where)
            if at.size:
                shift[at], proven[at] = self._differences(size[at], floor[at], first, second)
        return shift * weight, proven

    def _differences(
        self, size: FloatArray, floor: FloatArray, first: Any, second: Any
    ) -> tuple[FloatArray, BoolArray]:
        """Upper bounds of what the second profile exceeds the first one by, and which are proven.

        What a bound exceeds the difference by matters next to ``floor``.
        """
        del floor
        finite = np.minimum(size, STEEPEST)
        mine, theirs = first.profile(finite), second.profile(finite)
        # beyond, the profile at the largest slope bounds the second one, and 0 the first one
        least = np.where(size > STEEPEST, 0.0, mine.lower)
        return np.maximum(theirs.upper - least, 0.0), mine.certified & theirs.certified

    def _of_interest(self, beta: FloatArray, gamma: FloatArray) -> FloatArray:
        """The error that is to be narrow: the smaller one."""
        return np.minimum(beta, gamma)

    def _is_wide(
        self, beta: Answer, gamma: Answer, widths: tuple[FloatArray, FloatArray]
    ) -> BoolArray:
        """Whether bounds are wider than twice those of the better curve, and not narrow anyway."""
        wider = (beta.upper - beta.lower > widths[0]) | (gamma.upper - gamma.lower > widths[1])
        return np.asarray(wider & ~_is_narrow(beta, gamma))

    def _bridge(
        self,
        alpha: FloatArray,
        beta: Answer,
        gamma: Answer,
        c: FloatArray,
        at: npt.NDArray[np.intp],
    ) -> None:
        """Use the line of slope e^c below both curves, else the chord of points next to it too."""
        level = alpha[at]
        line_beta, line_gamma = self._tangent(level, c)
        # a line has the digits of γ for c >= 0, and those of β otherwise
        wins = np.where(
            c >= 0.0, line_gamma.upper < gamma.upper[at], line_beta.lower > beta.lower[at]
        )
        beta.lower[at] = np.maximum(beta.lower[at], line_beta.lower)
        gamma.upper[at] = np.minimum(gamma.upper[at], line_gamma.upper)
        for answer, line in ((beta, line_beta), (gamma, line_gamma)):
            answer.certified[at] &= line.certified
        open_ = ~_is_narrow(beta, gamma)[at]
        if not open_.any():  # a chord takes some hundred levels of both curves
            return
        at = at[open_]
        power, error, within = self._chord(level[open_], c[open_])
        touched = wins[open_] & within
        for answer, line in ((beta, line_beta), (gamma, line_gamma)):
            answer.value[at[touched]] = line.value[open_][touched]
            answer.engine[at[touched]] = line.engine[open_][touched]
        gamma.lower[at] = np.maximum(gamma.lower[at], power)
        beta.upper[at] = np.minimum(beta.upper[at], np.minimum(error, 1.0 - power + 2.0**-52))

    def _tangent(self, alpha: FloatArray, c: FloatArray) -> tuple[Answer, Answer]:
        """β and γ at α on the line of slope e^c that touches the hull from outside.

        γ is α e^c + D(c), and for c < 0, where D(c) = 1 - e^c + e^c D(-c) as the relation of
        neighbours is symmetric, β is e^c (1 - α - D(-c)).
        """
        d = self.profile(np.abs(c))
        slope, rest = fn.exp(c), 1.0 - alpha
        values = []
        for value in (d.value, d.lower, d.upper):
            gamma = np.clip(alpha * slope + value, alpha, 1.0)
            beta = np.clip(slope * (rest - value), 0.0, rest)
            values.append(np.where(c >= 0.0, (1.0 - gamma, gamma), (beta, 1.0 - beta)))
        value, lower, upper = values
        # rounding, relative to the terms of the sum that has the digits; to 1 for its complement
        of_gamma = LINE * np.where(c >= 0.0, upper[1], 1.0)
        of_beta = LINE * np.where(c >= 0.0, 1.0, slope * rest)
        low, high = np.maximum(upper[0] - of_beta, 0.0), np.minimum(upper[1] + of_gamma, 1.0)
        return (
            Answer(value[0], low, lower[0] + of_beta, d.engine, d.certified),
            Answer(value[1], lower[1] - of_gamma, high, d.engine, d.certified),
        )

    def _odds(self, alpha: FloatArray, c: FloatArray) -> FloatArray:
        """Logarithm of γ/β on a tangent, which has digits for whichever is small."""
        beta, gamma = self._tangent(alpha, c)
        with np.errstate(divide="ignore"):
            return np.asarray(fn.log(gamma.value) - fn.log(beta.value))

    def _chord(self, alpha: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Bounds from inside of the hull at α, from the points of slope e^c on both curves.

        Lower ones of γ, upper ones of β, and whether a chord between those points passes a level.
        """
        ends = []
        for pair in (self._add, self._remove):
            steeper_by = partial(_steeper_by, pair, c)
            far = np.full(alpha.size, -745.0)  # of log α
            near = np.where(steeper_by(far) > 0.0, 0.0, far)
            from pyengine.numerics.bracketing import falling_bracket

            for end in falling_bracket(steeper_by, far, near):
                place = fn.exp(end)
                curve = pair.trade_off(place)
                ends.append((place, curve.beta.upper, curve.gamma.lower))
        power, error, _ = mixed(alpha, ends)
        return power, error, np.ones(alpha.size, dtype=np.bool_)


# Map: chords of the hull, from tests of both orders | test_curves | theory/conversions
def mixed(alpha: FloatArray, tests: Sequence[Test]) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Lower bounds of γ at α and upper ones of β, from chances between two tests; and where.

    The shares are those that make the level α; seven roundings take less than the allowance.
    """
    power, error, within = alpha.copy(), np.ones(alpha.size), np.zeros(alpha.size, dtype=np.bool_)
    for (x, missed, shown), (u, missed_too, shown_too) in product(tests, repeat=2):
        inside = (x <= alpha) & (alpha <= u) & (x < u)
        whole = np.where(inside, u - x, 1.0)
        first, second = (end / whole for end in (u - alpha, alpha - x))
        more = (first * shown + second * shown_too) * (1.0 - CHORD) - UNDERFLOW
        less = (first * missed + second * missed_too) * (1.0 + CHORD) + UNDERFLOW
        power = np.where(inside, np.maximum(power, more), power)
        error = np.where(inside, np.minimum(error, less), error)
        within |= inside
    return power, error, within


def _larger(found: Sequence[Answer], _: bool) -> Answer:
    return larger(*found)


def _is_narrow(beta: Answer, gamma: Answer) -> BoolArray:
    """Whether both errors are known as well as any curve is."""
    return np.asarray(
        (beta.upper - beta.lower <= NARROW * beta.upper)
        & (gamma.upper - gamma.lower <= NARROW * gamma.upper)
    )


def _steeper_by(pair: Questions, c: FloatArray, log_alpha: FloatArray) -> FloatArray:
    """What the slope at a level exceeds another one by, as logarithms."""
    return pair.trade_off(fn.exp(log_alpha)).c - c


def _clip(alpha: FloatArray, beta: Answer, gamma: Answer) -> None:
    """Keep bounds within what is possible, and values between bounds; proven ones may not cross."""
    for answer, low, high in ((gamma, alpha, 1.0), (beta, 0.0, complement_above(alpha))):
        wrong = answer.certified & ~(answer.lower <= answer.upper)
        if wrong.any():
            i = int(np.argmax(wrong))
            what = f"both orders together at the level {float(alpha[i])!r}"
            raise crossed(what, float(answer.lower[i]), float(answer.upper[i]))
        np.clip(answer.lower, low, high, out=answer.lower)
        np.clip(answer.upper, low, high, out=answer.upper)
        np.clip(answer.value, answer.lower, answer.upper, out=answer.value)
        np.minimum(answer.lower, answer.value, out=answer.lower)  # of estimates that disagree


def joined(add: Questions, remove: Questions) -> Questions:
    """Return questions on both orders, from those of one engine on each."""
    return add.beside(remove) or BothOrders(add, remove)


class Between(MadeOf):
    """Questions on a law between a less and a more informative one."""

    def __init__(self, below: Questions, above: Questions) -> None:
        super().__init__(_enclosed, above, below)
        self._below, self._above = below, above

    def beside(self, remove: Between) -> Questions:
        """Between both orders of the one law and of the other one."""
        sides = (self._below, remove._below), (self._above, remove._above)
        return Between(*(joined(*side) for side in sides))


def _enclosed(found: Sequence[Answer], falls: bool) -> Answer:
    small, large = found if falls else found[::-1]
    lower, upper = small.lower, large.upper
    with np.errstate(invalid="ignore"):
        part = (1.0 - SHARE if falls else SHARE) * (upper - lower)
        value = np.where(upper < np.inf, lower + part, upper)
    # what an engine gives a value for without a bracket has that value still
    same = (small.value == large.value) & (lower <= small.value) & (small.value <= upper)
    value = np.where(same, small.value, value)
    certified = small.certified & large.certified
    return Answer(value, lower, upper, large.engine, certified)
