"""The lower convex hull of both orders' trade-off functions: adjacency ``add_remove``.

The hull (Definition F.1 of Dong, Roth and Su 2022) is the supremum of all lines below both
functions, and its conjugate is the larger profile D: γ(α) = min over c of α e^c + D(c).  Where the
tangent of one function stays below the other, the hull is that function; elsewhere it is a line
that touches both.  Both profiles are equal at 0, so one such line has slope -1.

Engines supply lines of slope -e^c and points; this module bounds the hull by lines and chords.
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

NARROW = 1e-11  # relative width of bounds of β and γ that are not improved further
ROUNDS = 70  # golden section steps, each of which shrinks the interval by 0.62
SHARE = 1.0 / 3.0  # place of a value in a bracket: the law below is about twice as close
STEEPEST = 700.0  # largest |c|: e^c must be a normal double
SLOPE = 2.0**-40  # relative error of a slope e^c, and so of a line with that slope
CHORD = 2.0**-50  # rounding of a chord, relative to its positive terms
UNDERFLOW = 2e-323  # absolute error of three products below the normal doubles
LINE = 2.0**-49  # rounding of a line, relative to the terms of its sum


# Map: Definition F.1 of Dong, Roth and Su (2022): hull | test_curves | theory/conversions
class BothOrders(Questions):
    """Questions on both orders (A, B) and (B, A) of the pair: adjacency ``add_remove``.

    Profiles are the larger of both.  The trade-off function is bounded from below by lines below
    both curves, and from above by the curves and by chords between their points; its bounds are
    proven if those of the pairs are.
    """

    _is_one_law = False  # whether the pair is symmetric, so that both orders are the same

    def __init__(self, add: Questions, remove: Questions) -> None:
        self._add = add
        self._remove = remove

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """δ or ε: the larger one of both orders."""
        found = question(self._remove, x)
        if self._is_one_law:
            return found
        open_ = ~self._decides(question, x, found.parts()[""].lower)
        if open_.any():
            other = question(self._add, x[open_])
            found.put(open_, found.taken(open_).each(_larger, other))
        return found

    def _decides(self, question: LawQuestion[Any], x: FloatArray, lower: FloatArray) -> BoolArray:
        """Where ``remove`` is proven to have the larger answer, given its lower bound."""
        del question, lower
        return np.zeros(x.size, dtype=np.bool_)

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray] | None:
        """The whole curve, if the pair is symmetric."""
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
        """Set the lower bounds of β and upper bounds of γ, from tangents of one curve.

        Each tangent is lowered by the excess of the other order's profile at its slope, which puts
        it below both curves.
        """
        inner = (alpha > 0.0) & (alpha < 1.0)
        # compare the smaller error, which has the digits
        less, more = second.beta.value < first.beta.value, second.gamma.value > first.gamma.value
        use = np.where(first.beta.value < 0.5, less, more)
        add, remove = self._add, self._remove
        for curve, own, other, where in (
            (first, add, remove, inner & ~use),
            (second, remove, add, inner & use),
        ):
            where = where & ((beta.lower > 0.0) | (gamma.upper < 1.0))  # else bounds are trivial
            if where.any():
                beta.lower[where] = curve.beta.lower[where]
                gamma.upper[where] = curve.gamma.upper[where]
                small = self._of_interest(curve.beta.upper[where], curve.gamma.upper[where])
                # rounding of the slope moves the line by the same relative amount
                shift, proven = self._excess(curve.c[where], small, own, other)
                shift = shift * (1.0 + LINE) + SLOPE * small
                for answer, side in ((beta, -shift), (gamma, shift)):
                    answer.certified[where] &= proven
                    bound = answer.lower if answer is beta else answer.upper
                    bound[where] += side

    def _excess(
        self, c: FloatArray, small: FloatArray, own: Questions, other: Questions
    ) -> tuple[FloatArray, BoolArray]:
        """Bounds of how far a tangent of slope -e^c of one curve exceeds that of the other.

        The tangent of T(A, B) has the intercept 1 - H_{e^c}(B‖A), that of T(B, A) the same with A
        and B exchanged, and H_{e^c}(A‖B) = 1 - e^c + e^c H_{e^-c}(B‖A).
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
        """Upper bounds of the second profile minus the first at ε = size, and which are proven.

        Their precision matters relative to ``floor``.
        """
        del floor
        finite = np.minimum(size, STEEPEST)
        mine, theirs = first.profile(finite), second.profile(finite)
        # for larger ε: the second profile is at most that at `STEEPEST`, the first one at least 0
        least = np.where(size > STEEPEST, 0.0, mine.lower)
        return np.maximum(theirs.upper - least, 0.0), mine.certified & theirs.certified

    def _of_interest(self, beta: FloatArray, gamma: FloatArray) -> FloatArray:
        """The error whose bounds must be narrow: the smaller one."""
        return np.minimum(beta, gamma)

    def _is_wide(
        self, beta: Answer, gamma: Answer, widths: tuple[FloatArray, FloatArray]
    ) -> BoolArray:
        """Whether bounds are not `NARROW`, and wider than twice those of the better curve."""
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
        """Improve bounds by the line of slope -e^c below both curves; if needed, by a chord."""
        level = alpha[at]
        line_beta, line_gamma = self._tangent(level, c)
        # a line is precise for γ if c >= 0, and for β otherwise
        wins = np.where(
            c >= 0.0, line_gamma.upper < gamma.upper[at], line_beta.lower > beta.lower[at]
        )
        beta.lower[at] = np.maximum(beta.lower[at], line_beta.lower)
        gamma.upper[at] = np.minimum(gamma.upper[at], line_gamma.upper)
        for answer, line in ((beta, line_beta), (gamma, line_gamma)):
            answer.certified[at] &= line.certified
        open_ = ~_is_narrow(beta, gamma)[at]
        if not open_.any():  # a chord needs about a hundred levels of both curves
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
        """β and γ at α on the tangent of the hull with slope -e^c.

        γ = α e^c + D(c) for c >= 0.  Adjacency is symmetric, so D(c) = 1 - e^c + e^c D(-c), and
        β = e^c (1 - α - D(-c)) for c < 0.
        """
        d = self.profile(np.abs(c))
        slope, rest = fn.exp(c), 1.0 - alpha
        values = []
        for value in (d.value, d.lower, d.upper):
            gamma = np.clip(alpha * slope + value, alpha, 1.0)
            beta = np.clip(slope * (rest - value), 0.0, rest)
            values.append(np.where(c >= 0.0, (1.0 - gamma, gamma), (beta, 1.0 - beta)))
        value, lower, upper = values
        # rounding, relative to the terms of the precise error, or to 1 for its complement
        of_gamma = LINE * np.where(c >= 0.0, upper[1], 1.0)
        of_beta = LINE * np.where(c >= 0.0, 1.0, slope * rest)
        low, high = np.maximum(upper[0] - of_beta, 0.0), np.minimum(upper[1] + of_gamma, 1.0)
        return (
            Answer(value[0], low, lower[0] + of_beta, d.engine, d.certified),
            Answer(value[1], lower[1] - of_gamma, high, d.engine, d.certified),
        )

    def _odds(self, alpha: FloatArray, c: FloatArray) -> FloatArray:
        """log(γ/β) on a tangent, which is precise if either is small."""
        beta, gamma = self._tangent(alpha, c)
        with np.errstate(divide="ignore"):
            return np.asarray(fn.log(gamma.value) - fn.log(beta.value))

    def _chord(self, alpha: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Lower bounds of γ and upper bounds of β at α, from points of slope -e^c on both curves.

        Also whether a chord between those points covers the level.
        """
        ends = []
        for pair in (self._add, self._remove):
            steeper_by = partial(_steeper_by, pair, c)
            far = np.full(alpha.size, -745.0)  # log of the smallest double
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
    """Lower bounds of γ and upper bounds of β at α, from random mixtures of two tests; and where.

    The shares make the level α; seven roundings are less than `CHORD`.
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
    """Whether the bounds of both errors are as narrow as `NARROW`."""
    return np.asarray(
        (beta.upper - beta.lower <= NARROW * beta.upper)
        & (gamma.upper - gamma.lower <= NARROW * gamma.upper)
    )


def _steeper_by(pair: Questions, c: FloatArray, log_alpha: FloatArray) -> FloatArray:
    """log(-slope) of the curve at a level, minus c."""
    return pair.trade_off(fn.exp(log_alpha)).c - c


def _clip(alpha: FloatArray, beta: Answer, gamma: Answer) -> None:
    """Clip bounds to the possible, and values to bounds; raise if proven bounds cross."""
    for answer, low, high in ((gamma, alpha, 1.0), (beta, 0.0, complement_above(alpha))):
        wrong = answer.certified & ~(answer.lower <= answer.upper)
        if wrong.any():
            i = int(np.argmax(wrong))
            what = f"both orders together at the level {float(alpha[i])!r}"
            raise crossed(what, float(answer.lower[i]), float(answer.upper[i]))
        np.clip(answer.lower, low, high, out=answer.lower)
        np.clip(answer.upper, low, high, out=answer.upper)
        np.clip(answer.value, answer.lower, answer.upper, out=answer.value)
        np.minimum(answer.lower, answer.value, out=answer.lower)  # estimates may disagree


def joined(add: Questions, remove: Questions) -> Questions:
    """Return questions on both orders, from those of one engine on each."""
    return add.beside(remove) or BothOrders(add, remove)


class Between(MadeOf):
    """Questions on a law enclosed by a less and a more informative one."""

    def __init__(self, below: Questions, above: Questions) -> None:
        super().__init__(_enclosed, above, below)
        self._below, self._above = below, above

    def beside(self, remove: Between) -> Questions:
        """The hull, enclosed by those of the less and of the more informative law."""
        sides = (self._below, remove._below), (self._above, remove._above)
        return Between(*(joined(*side) for side in sides))


def _enclosed(found: Sequence[Answer], falls: bool) -> Answer:
    small, large = found if falls else found[::-1]
    lower, upper = small.lower, large.upper
    with np.errstate(invalid="ignore"):
        part = (1.0 - SHARE if falls else SHARE) * (upper - lower)
        value = np.where(upper < np.inf, lower + part, upper)
    # equal values on both sides, such as those of no engine, are kept
    same = (small.value == large.value) & (lower <= small.value) & (small.value <= upper)
    value = np.where(same, small.value, value)
    certified = small.certified & large.certified
    return Answer(value, lower, upper, large.engine, certified)
