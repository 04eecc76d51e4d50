"""Substitution of a record where no dominating pair is known: by removing one, adding another.

The profiles of both orders of the pairs without and with a record compose to a bound
(docs/theory/allocation, Theorem 4).
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

ROOM = 1.0 + 4.0 * (ELEMENTARY + 4.0) * UNIT  # covers the rounding of a few operations
ROUNDS = 32  # of golden section, to 2e-7 of the interval: the minimum is flat
HALVINGS = 50  # of bisection
FARTHEST = 50.0  # largest distance of the best ε' from [0, ε]
LARGEST = 600.0  # ε from which on ε' is not optimised: e^ε' may overflow


def needs_the_rest(mechanism: Mechanism) -> bool:
    """Whether a step has no dominating pair under ``substitute``, only these bounds."""
    return any(_is_bounded(step) for step, _ in steps_of(mechanism))


def _is_bounded(step: Step) -> bool:
    return step.scheme == "allocated" or bool(step.repeated or step.enclosing)


def summed(mechanism: Mechanism) -> Mechanism:
    """A dominated mechanism: epochs release their sums, and selections nothing."""

    def below(step: Step) -> Mechanism:
        return (step.summed or compose()) if _is_bounded(step) else step

    return compose(*(below(step).composed(number) for step, number in steps_of(mechanism)))


class ThroughTheRest(Questions):
    """Upper bounds under ``substitute`` from questions on ``add`` and on ``remove``."""

    def __init__(self, add: Questions, remove: Questions) -> None:
        self._add, self._remove = add, remove

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """γ_add(γ_remove(α)), and β there."""
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
        """The least δ_remove(ε') + e^ε' δ_add(ε - ε') over ε'; it is convex in e^ε'."""
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
        """The least ε' + ε_add(e^-ε' (δ - δ_remove(ε'))) over ε'; it is quasi-convex."""
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
        """The largest s in [0, `FARTHEST`] with δ_remove(-s) <= δ; 0 where there is none."""

        def fits(s: FloatArray) -> Any:
            return _signed(self._remove, self._add, -s).upper <= delta

        ends = np.zeros(delta.size), np.full(delta.size, FARTHEST)
        return bisected(fits, *ends, rounds=HALVINGS)[0]

    def _far(self) -> float:
        """How far outside of [0, ε] the search for ε' goes."""
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
    """A profile at any x: for x < 0 it is 1 - e^x + e^x δ_other(-x)."""
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
    """An answer with an upper bound; the lower one is the value, and is replaced by others."""
    return Answer(value, value, np.maximum(upper, value), like.engine, like.certified & sure)


def _least(f: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Where unimodal functions have their minima, by golden section."""
    place, value = lowest(f, low, high, rounds=ROUNDS)
    if not np.isfinite(value).all():
        raise AccuracyError("no bound by the data set without the record was found")
    return place
