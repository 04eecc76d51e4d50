"""Worst strategies of steps with finitely many outcomes: W is piecewise linear, stored by corners.

The notation is that of `theory/adaptive`, "Finitely many outcomes".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.accounting.kernels import ORDERS, REVERSED
from pyengine.accounting.recursion import StatePlan
from pyengine.engines.answers import Answer, ByFunction, Triple, names
from pyengine.errors import AccuracyError
from pyengine.laws.composition import step_law
from pyengine.laws.finite import LOG_ERROR, ROUNDED, FiniteLaw
from pyengine.mechanisms import Mechanism, steps_of
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.wide import Wide, running_sums

__all__ = ["CornerRun", "OutcomePair", "finite_steps"]

FloatArray = npt.NDArray[np.float64]
Shape = tuple[FloatArray, FloatArray, float]  # t and H_t of the corners, and the error of H

SUMMED = 2.0**-100  # relative error, for each term, of a running sum in double-double
MOST_OUTCOMES = 256  # most outcomes of one choice
MOST_CORNERS = 1 << 17
MOST_PRODUCTS = 1 << 23  # most products of corners and outcomes, over all states
SAME = 64.0 * UNIT  # corners at a smaller relative distance are merged
LEVEL = 4.0 * UNIT  # differences of W below this times r count as ties


@dataclass(frozen=True, eq=False)
class OutcomePair:
    """An ordered pair (A, B) of laws on finitely many outcomes.

    ``ratio`` has R > 0 of each outcome and ``mass`` its A-mass; ``alone`` is the A-mass where R is
    infinite.  ``error``: rounding of these numbers changes E_B W(rR), for any W with slopes in
    [0, 1], by at most ``error`` times r.
    """

    ratio: FloatArray
    mass: FloatArray
    alone: float
    error: float

    def followed_by(self, other: OutcomePair) -> OutcomePair:
        """The composition of both steps, as a pair of product laws."""
        ratio = np.multiply.outer(self.ratio, other.ratio).ravel()
        mass = np.multiply.outer(self.mass, other.mass).ravel()
        alone = self.alone + other.alone * float(self.mass.sum())
        return OutcomePair(ratio, mass, alone, self.error + other.error + 8.0 * UNIT)


def finite_steps(choice: Mechanism, order: str) -> OutcomePair | None:
    """A choice as a pair of finite laws; None unless it has few outcomes with exact laws."""
    found = OutcomePair(np.ones(1), np.ones(1), 0.0, 0.0)
    for step, count in steps_of(choice):
        law = step_law(step, order)
        if not isinstance(law, FiniteLaw) or step.words.known or law.ends is not None:
            return None
        if law.error or law.loss_error or law.loss.size ** min(count, 64) > MOST_OUTCOMES:
            return None
        mass = fn.exp(law.log_a)
        off = (mass * (LOG_ERROR * (1.0 + np.abs(law.log_a)) + 2.0 * ELEMENTARY * UNIT)).sum()
        # a relative error of a corner changes the mean by at most this share of r
        off += ROUNDED * float(np.abs(law.loss).max(initial=0.0)) + 2.0 * ELEMENTARY * UNIT
        part = OutcomePair(fn.exp(-law.loss), mass, law.a_infinite, float(off))
        for _ in range(count):
            found = found.followed_by(part)
            if found.ratio.size > MOST_OUTCOMES:
                return None
    return found


@dataclass(frozen=True, eq=False)
class CornerFunction:
    """W(r) = at_zero r + Σ mass (r - k)+ with an error <= ``error`` r; corners k > 0 ascend."""

    k: FloatArray
    mass: FloatArray
    at_zero: float
    error: float

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Slope s and offset m of W = s r - m right of the first j corners, as double-doubles."""
        slopes = Wide(np.append(self.at_zero, self.mass), np.zeros(self.k.size + 1))
        moments = Wide(np.append(0.0, self.mass)) * np.append(0.0, self.k)
        return running_sums(slopes.parts), running_sums(moments.parts)

    def at(self, r: FloatArray) -> tuple[Wide, Wide]:
        """Values at some r, and the slopes to the right of them."""
        count = np.searchsorted(self.k, r, side="right")
        slope, moment = (Wide(*sums[:, count]) for sums in self._sums)
        return slope * r - moment, slope

    def after(self, step: OutcomePair) -> CornerFunction:
        """E_B W(rR) as a function of r, for a step before this W."""
        if self.k.size * step.ratio.size > MOST_PRODUCTS // 8:
            raise AccuracyError("the worst strategy has more corners than are kept")
        k = np.divide.outer(self.k, step.ratio).ravel()
        mass = np.multiply.outer(self.mass, step.mass).ravel()
        at_zero = self.at_zero * float(step.mass.sum()) + step.alone
        return _merged(k, mass, at_zero, self.error + step.error + 8.0 * UNIT)


def _merged(k: FloatArray, mass: FloatArray, at_zero: float, error: float) -> CornerFunction:
    """Sort the corners, and merge those that differ by rounding only."""
    if not k.size:  # a step tells both laws apart for certain: a corner without mass
        k, mass = np.ones(1), np.zeros(1)
    order = np.argsort(k, kind="stable")
    k, mass = k[order], mass[order]
    start = np.concatenate([[True], np.diff(k) > SAME * k[1:]])
    first = np.flatnonzero(start)
    if first.size > MOST_CORNERS:
        raise AccuracyError("the worst strategy has more corners than are kept")
    last = np.concatenate([first[1:] - 1, [k.size - 1]])
    sums = np.add.reduceat(mass, first)
    apart = float((sums * (k[last] / k[first] - 1.0)).sum())
    # rounding of sums of at most ``longest`` terms; all masses together are at most 1
    longest = float((last - first).max()) + 8.0
    return CornerFunction(k[first], sums, at_zero, error + apart + longest * UNIT)


def _larger(one: CornerFunction, two: CornerFunction) -> CornerFunction:
    """The maximum of two functions, with a corner wherever the larger one changes."""
    k = np.union1d(one.k, two.k)
    (first, slope), (second, other) = one.at(k), two.at(k)
    apart, steeper = (first - second).high, (slope - other).high
    sign = np.where(np.abs(apart) > LEVEL * k, np.sign(apart), 0.0)
    known = np.flatnonzero(sign)
    if not known.size:
        return CornerFunction(one.k, one.mass, one.at_zero, _off(one, two, k, one))
    # at a tie the function that was larger before counts as the larger one
    decided = np.maximum.accumulate(np.where(sign != 0.0, np.arange(k.size), known[0]))
    owner = sign[decided] > 0.0
    change = np.flatnonzero(owner[1:] != owner[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = apart[change] / (apart[change] - apart[change + 1])
    share = np.clip(np.where(np.isfinite(share), share, 1.0), 0.0, 1.0)
    cross = np.asarray(k[change] + share * (k[change + 1] - k[change]), dtype=np.float64)
    rise = np.where(owner, -steeper, steeper)[change]
    corners, masses = [cross], [np.asarray(np.maximum(rise, 0.0), dtype=np.float64)]
    for each, mine in ((one, owner), (two, ~owner)):
        at = np.searchsorted(k, each.k)
        corners.append(each.k[mine[at]])
        masses.append(each.mass[mine[at]])
    at_zero = one.at_zero if owner[0] else two.at_zero
    made = _merged(np.concatenate(corners), np.concatenate(masses), at_zero, 0.0)
    error = _off(one, two, np.union1d(k, cross), made)
    return CornerFunction(made.k, made.mass, made.at_zero, error)


def _off(one: CornerFunction, two: CornerFunction, k: FloatArray, made: CornerFunction) -> float:
    """Error of ``made`` as the maximum of two functions: theirs, and its distance at corners."""
    k = np.union1d(k, made.k)
    (first, slope), (second, other), (found, last) = one.at(k), two.at(k), made.at(k)
    off = float((np.abs((found - _maximum(first, second)).high) / k).max())
    end = abs(float((last - _maximum(slope, other)).high[-1]))
    start = abs(made.at_zero - max(one.at_zero, two.at_zero))
    rounding = 4.0 * SUMMED * (one.k.size + two.k.size + made.k.size) + 8.0 * UNIT
    return max(one.error, two.error) + off + end + start + rounding


def _maximum(one: Wide, two: Wide) -> Wide:
    """The larger of two numbers, elementwise."""
    is_first = (one - two).high > 0.0
    return Wide(np.where(is_first, one.high, two.high), np.where(is_first, one.low, two.low))


class CornerRun(ByFunction):
    """Bounds for the worst strategy of steps with finitely many outcomes.

    ``steps`` has the choices for each order of the neighbours, ``plan`` the states of the run.
    """

    def __init__(
        self,
        steps: Mapping[str, Sequence[OutcomePair]],
        plan: StatePlan,
        adjacency: str,
        tolerance: float,
    ) -> None:
        self._steps, self._plan = steps, plan
        self._adjacency, self._tolerance = adjacency, tolerance
        self._made: dict[str, CornerFunction] = {}

    def _function(self, order: str) -> CornerFunction:
        """W of the initial state; for "add_remove" the maximum over both orders."""
        if order not in self._made:
            if order == "add_remove":
                self._made[order] = _larger(*(self._function(each) for each in ORDERS))
            else:
                self._made[order] = self._worst(self._steps[order])
        return self._made[order]

    def _worst(self, steps: Sequence[OutcomePair]) -> CornerFunction:
        moves = self._plan.moves
        kept = {0: CornerFunction(np.ones(1), np.ones(1), 0.0, 0.0)}
        left = MOST_PRODUCTS
        for state, tried, _ in self._plan.walk(kept):
            found = kept.get(state)
            for choice, then in (moves[state][number] for number in tried):
                left -= kept[then].k.size * steps[choice].ratio.size
                if left < 0:
                    raise AccuracyError("the worst strategy has more corners than are kept")
                made = kept[then].after(steps[choice])
                found = made if found is None else _larger(found, made)
            if found is None:
                raise AssertionError("a state without choices that is not the first one")
            kept[state] = found
        return kept[len(moves) - 1]

    def _own(self, name: str, x: FloatArray) -> Answer:
        order, is_test = self._adjacency, name in ("trade_off", "gamma_bound")
        worst = self._function(REVERSED[order] if is_test and order != "add_remove" else order)
        ask: Callable[[float], Triple]
        if name == "delta":
            ask = partial(_delta, worst)
        else:
            asks = {"epsilon": _epsilon, "gamma_bound": _gamma, "trade_off": _beta}
            ask = partial(asks[name], _profile(worst, from_zero=is_test))
        found = np.array([ask(float(at)) for at in x]).reshape(-1, 3)
        value, lower, upper = found.T.copy()
        scale = np.maximum(value, 1e-3) if name == "epsilon" else value
        if (upper - lower > self._tolerance * scale).any():
            raise AccuracyError("rounding of corners is wider than the bounds that are asked for")
        return Answer(value, lower, upper, names("adaptive", x.size), True)


def _delta(worst: CornerFunction, epsilon: float) -> Triple:
    t = fn.exp(min(epsilon, 700.0))
    parts = worst.mass * np.maximum(1.0 - worst.k * t, 0.0)
    value = worst.at_zero + float(parts.sum())
    # errors of t, of 1 - kt where k < 1 / t, and of the sum
    error = worst.error + (2.0 * ELEMENTARY + 16.0 + parts.size * max(value, 0.0)) * UNIT
    return min(value, 1.0), max(value - error, 0.0), min(value + error, 1.0)


def _epsilon(shape: Shape, delta: float) -> Triple:
    t, h, error = shape
    found = []
    for level in (delta + error, delta, delta - error):
        if float(h[0]) <= level:
            found.append(0.0)
            continue
        below = np.flatnonzero(h <= level)
        if not below.size:
            raise AccuracyError("delta is below what the corners keep")
        j = int(below[0])
        share = float((h[j - 1] - level) / (h[j - 1] - h[j]))
        crossing = float(t[j - 1]) + min(share, 1.0) * float(t[j] - t[j - 1])
        found.append(fn.log(max(crossing, 1.0)))
    lower, value, upper = found
    off = 8.0 * ELEMENTARY * UNIT * (1.0 + upper)
    return value, max(lower - off, 0.0), upper + off if upper > 0.0 else 0.0


def _gamma(shape: Shape, level: float) -> Triple:
    """γ = min over t of level t + H_t, the largest over all strategies, even randomized ones."""
    t, h, error = shape
    sums = level * t + h
    value = float(sums.min())
    off = error + (4.0 + 4.0 * level * float(t[int(np.argmin(sums))])) * UNIT
    low, high = max(value - off, level), min(value + off, 1.0)
    return min(max(value, low), high), low, high


def _beta(shape: Shape, level: float) -> Triple:
    value, low, high = _gamma(shape, level)
    return 1.0 - value, max(1.0 - high - 2.0 * UNIT, 0.0), min(1.0 - low + UNIT, 1.0)


def _profile(worst: CornerFunction, *, from_zero: bool = False) -> Shape:
    """H_t at all its corners t >= 1 (or t > 0), in ascending order, and its error."""
    k = worst.k[::-1]
    t = 1.0 / k
    values, _ = worst.at(worst.k)
    h = values.high[::-1] * t
    error = worst.error + 4.0 * SUMMED * worst.k.size + 12.0 * UNIT
    if from_zero:
        return np.append(0.0, t), np.append(1.0, h), error
    one, _ = worst.at(np.ones(1))
    far = t > 1.0
    return np.append(1.0, t[far]), np.append(one.high, h[far]), error
