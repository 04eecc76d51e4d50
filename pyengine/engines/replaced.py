"""Another record in its place, where no pair of both data sets is known: by the one without it.

What the record tells beside none, and none beside the other one, bound both together
(docs/theory/allocation, theorem 7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyengine.engines.answers import Answer, ErrorCurve, FloatArray, Questions
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism, Step, compose, steps_of
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import bisected
from pyengine.numerics.golden_section import lowest
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["ThroughTheRest", "needs_the_rest", "summed"]

ROOM = 1.0 + 4.0 * (ELEMENTARY + 4.0) * UNIT  # what rounding takes from sums of a few terms
ROUNDS = 32  # of golden section: 2e-7 of the interval, and the least value is flat
HALVINGS = 50
FARTHEST = 50.0
LARGEST = 600.0  # of the ε that e^ε' is formed beside


def needs_the_rest(mechanism: Mechanism) -> bool:
    """Whether a step has no pair of two data sets with one record replaced, but these bounds."""
    return any(_is_bounded(step) for step, _ in steps_of(mechanism))


def _is_bounded(step: Step) -> bool:
    return step.scheme == "allocated" or bool(step.repeated or step.enclosing)


def summed(mechanism: Mechanism) -> Mechanism:
    """What is dominated: of epochs the sum of the releases, of selections nothing."""

    def below(step: Step) -> Mechanism:
        return (step.summed or compose()) if _is_bounded(step) else step

    return compose(*(below(step).composed(number) for step, number in steps_of(mechanism)))


class ThroughTheRest(Questions):
    """Upper bounds from both orders of the pairs without and with a record."""

    def __init__(self, add: Questions, remove: Questions) -> None:
        self._add, self._remove = add, remove

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """γ of the one order at γ of the other, and β there."""
        inner = self._remove.trade_off(alpha).gamma
        levels = np.minimum(np.concatenate([inner.value, inner.upper]), 1.0)
        beta, gamma = self._add.trade_off(levels)
        n = alpha.size
        sure = beta.certified[n:] & inner.certified, gamma.certified[n:] & inner.certified
        return ErrorCurve(
            Answer(beta.value[:n], np.minimum(beta.lower[n:], beta.value[:n]), beta.value[:n],
                   beta.engine[n:], sure[0]),
            Answer(gamma.value[:n], gamma.value[:n], np.maximum(gamma.upper[n:], gamma.value[:n]),
                   gamma.engine[n:], sure[1]),
        )  # fmt: skip

    def profile(self, epsilon: FloatArray) -> Answer:
        """The least δ_remove(ε') + e^ε' δ_add(ε - ε'), which is convex in e^ε'."""
        found = Answer.exact(np.zeros(epsilon.size))
        inside = epsilon < LARGEST
        if inside.any():
            at, far = epsilon[inside], self._far()
            place = _least(lambda x: self._both(at, x).upper, np.full(at.size, -far), at + far)
            found.put(inside, self._both(at, place))
        beyond = ~inside & np.isfinite(epsilon)
        if beyond.any():
            found.put(beyond, self._both(epsilon[beyond], np.full(beyond.sum(), 0.5 * LARGEST)))
        return found

    def epsilon(self, delta: FloatArray) -> Answer:
        """The least ε' + ε_add(e^-ε' (δ - δ_remove(ε'))), whose lower level sets are intervals."""
        first = self._remove.epsilon(delta)
        found = Answer.exact(np.where(delta < 1.0, np.inf, 0.0))
        inside = np.isfinite(first.upper) & (delta < 1.0)
        none = inside & (delta == 0.0)
        if none.any():
            rest = self._add.epsilon(delta[none])
            one = first.upper[none]
            found.put(none, _upper(rest, one + rest.value, one + rest.upper, first.certified[none]))
        inside &= delta > 0.0
        if inside.any():
            found.put(inside, self._inverse(delta[inside], first.upper[inside]))
        return found

    def _inverse(self, delta: FloatArray, low: FloatArray) -> Answer:
        first = np.where(low > 0.0, low, -self._before(delta))

        def total(x: FloatArray, level: FloatArray) -> Answer:
            one = _signed(self._remove, self._add, x)
            rest = np.minimum((level - one.upper) * fn.exp(-x) / ROOM, 1.0)
            other = self._add.epsilon(np.maximum(rest, 0.0))
            nothing = rest < 0.0
            ends = (np.where(nothing, np.inf, x + each) for each in (other.value, other.upper))
            value, upper = (np.maximum(each * ROOM, 0.0) for each in ends)
            return _upper(other, value, upper, one.certified)

        start = np.maximum(self._remove.epsilon(0.5 * delta).upper, first)
        end = total(start, delta).upper
        ready = np.isfinite(end)
        at = start.copy()
        if ready.any():
            level = delta[ready]
            at[ready] = _least(
                lambda x: total(x, level).upper, first[ready], np.maximum(end, start)[ready]
            )
        return total(at, delta)

    def _before(self, delta: FloatArray) -> FloatArray:
        """The s >= 0 with δ_remove(-s) at most δ, up to `FARTHEST`; 0 where δ_remove(0) is more."""

        def fits(s: FloatArray) -> Any:
            return _signed(self._remove, self._add, -s).upper <= delta

        ends = np.zeros(delta.size), np.full(delta.size, FARTHEST)
        return bisected(fits, *ends, rounds=HALVINGS)[0]

    def _far(self) -> float:
        """How far beyond 0 and ε the least value may lie."""
        ends = [asked.epsilon(np.array([0.01])).upper[0] for asked in (self._add, self._remove)]
        return float(np.clip(max(ends), 0.1, FARTHEST))

    def _both(self, epsilon: FloatArray, x: FloatArray) -> Answer:
        one = _signed(self._remove, self._add, x)
        rest = _signed(self._add, self._remove, epsilon - x)
        scale = fn.exp(x)
        value = np.minimum(one.value + scale * rest.value, 1.0)
        upper = np.minimum((one.upper + scale * rest.upper) * ROOM, 1.0)
        return _upper(one, value, upper, rest.certified)


def _signed(asked: Questions, other: Questions, x: FloatArray) -> Answer:
    """A profile at any x: below 0 it is 1 - e^x + e^x times that of the other order at -x."""
    found = Answer.exact(np.zeros(x.size))
    right, left = x >= 0.0, x < 0.0
    if right.any():
        found.put(right, asked.profile(x[right]))
    if left.any():
        turned, scale, gap = other.profile(-x[left]), fn.exp(x[left]), -fn.expm1(x[left])
        value, upper = gap + scale * turned.value, (gap + scale * turned.upper) * ROOM
        found.put(left, _upper(turned, value, upper, True))
    return found


def _upper(like: Answer, value: FloatArray, upper: FloatArray, sure: Any) -> Answer:
    """A value and its upper bound; from below nothing is told, as others tell that."""
    return Answer(value, value, np.maximum(upper, value), like.engine, like.certified & sure)


def _least(f: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Where functions that fall and then rise are smallest, by golden section."""
    place, value = lowest(f, low, high, rounds=ROUNDS)
    if not np.isfinite(value).all():
        raise AccuracyError("no bound by the data set without the record was found")
    return place
