"""Worst strategies of steps with finitely many outcomes: W is piecewise linear, stored by corners.

The notation is that of `theory/adaptive`, "Finitely many outcomes".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.accounting.kernels import ORDERS, REVERSED
from pyengine.accounting.recursion import StatePlan
from pyengine.engines.answers import Answer, ByFunction, Triple, names
from pyengine.engines.within import BELOW_DOUBLES
from pyengine.errors import AccuracyError
from pyengine.laws.composition import step_law
from pyengine.laws.finite import LOG_ERROR, ROUNDED, FiniteLaw
from pyengine.mechanisms import Mechanism, steps_of
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.wide import Wide, running_sums

__all__ = ["CornerRun", "OutcomePair", "finite_steps", "tells_apart"]

FloatArray = npt.NDArray[np.float64]
# t and H_t of the corners, and bounds of H_t from above and below
Shape = tuple[FloatArray, FloatArray, FloatArray, FloatArray]

SUMMED = 2.0**-100  # relative error, for each term, of a running sum in double-double
MOST_OUTCOMES = 256  # most outcomes of one choice
MOST_CORNERS = 1 << 17
MOST_PRODUCTS = 1 << 23  # most products of corners and outcomes, over all states
SMALLEST = 1e-280  # corners lie between this and its inverse: no quotient of them overflows
LARGEST = 1e300  # stands for an infinite ε as the scale of a tolerance
SAME = 64.0 * UNIT  # corners at a smaller relative distance are merged
LEVEL = 4.0 * UNIT  # differences of W below this times r and the slope count as ties
NEAR = 1e-9  # relative distance of corners that may be one
SUBNORMAL = 2e-317  # absolute error of sums of masses, each rounded below the normal doubles


@dataclass(frozen=True, eq=False)
class OutcomePair:
    """An ordered pair (A, B) of laws on finitely many outcomes.

    ``ratio`` has R > 0 of each outcome and ``mass`` its A-mass; ``alone`` is the A-mass where R is
    infinite.  ``error``: bound of the relative error of a mass plus twice that of a ratio.
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
        off = LOG_ERROR * (1.0 + float(np.abs(law.log_a).max(initial=0.0)))
        off += 2.0 * ROUNDED * float(np.abs(law.loss).max(initial=0.0)) + 6.0 * ELEMENTARY * UNIT
        part = OutcomePair(fn.exp(-law.loss), mass, law.a_infinite, float(off))
        for _ in range(count):
            found = found.followed_by(part)
            if found.ratio.size > MOST_OUTCOMES:
                return None
    return found


def tells_apart(choice: Mechanism) -> bool:
    """Whether a choice has no outcome that is possible under both laws."""
    found = finite_steps(choice, "remove")
    return found is not None and not found.ratio.size


@dataclass(frozen=True, eq=False)
class CornerFunction:
    """W(r) = at_zero r + Σ mass (r - k)+; corners k > 0 ascend.

    Its error is at most ``error`` r S, where S is the largest slope of any strategy up to
    (1 + ``near``) r, see `slack`, and ``moved`` (1 + r) for corners moved to 0 or left out.
    """

    k: FloatArray
    mass: FloatArray
    at_zero: float
    error: float
    near: float = NEAR
    moved: float = 0.0

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Slope s and offset m of W = s r - m right of the first j corners, as double-doubles."""
        slopes = Wide(np.append(self.at_zero, self.mass), np.zeros(self.k.size + 1))
        moments = Wide(np.append(0.0, self.mass)) * np.append(0.0, self.k)
        return running_sums(slopes.parts), running_sums(moments.parts)

    def at(self, r: FloatArray) -> tuple[Wide, Wide]:
        """Values at some r, and the slopes to the left of them."""
        count = np.searchsorted(self.k, r, side="left")
        slope, moment = (Wide(*sums[:, count]) for sums in self._sums)
        return slope * r - moment, slope

    def slope(self, r: FloatArray) -> Wide:
        """Slopes to the right of some r."""
        return Wide(*self._sums[0][:, np.searchsorted(self.k, r, side="right")])

    def slack(self, r: FloatArray) -> FloatArray:
        """Bound of the error of W(r)/r.

        The W of one strategy is convex and at most the largest, so its slope at r is at most
        W(e^a r) / (r e^a - r) for any a > 0; the factor 1.1 covers ``near``, which is below a / 64.
        """
        off = self.error + 16.0 * UNIT
        with np.errstate(over="ignore", invalid="ignore"):

            def share(a: float, rest: Callable[[FloatArray], FloatArray]) -> FloatArray:
                far = r * fn.exp(a)
                found = 1.1 * (self.at(far)[0].high / r + off * fn.exp(a) * rest(far))
                return np.asarray(np.nan_to_num(found / fn.expm1(a), nan=1.0, posinf=1.0))

            def rough(far: FloatArray) -> FloatArray:
                found = 1.1 * self.at(math.e * far)[0].high / far + 2.0 * off
                return np.asarray(np.minimum(found, 1.0))

            slopes = [share(a, rough) for a in np.geomspace(64.0 * self.near, 4.0, 16).tolist()]
        # S is that of the stored W up to ``moved``: a factor of 2 is ample
        rest = SUBNORMAL + 2.0 * self.moved * (1.0 + 1.0 / r)
        return np.asarray(off * np.minimum(np.minimum.reduce(slopes), 1.0) + rest)

    def after(self, step: OutcomePair) -> CornerFunction:
        """E_B W(rR) as a function of r, for a step before this W."""
        if self.k.size * step.ratio.size > MOST_PRODUCTS // 8:
            raise AccuracyError("the worst strategy has more corners than are kept")
        with np.errstate(over="ignore", divide="ignore"):
            k = np.divide.outer(self.k, step.ratio).ravel()
        mass = np.multiply.outer(self.mass, step.mass).ravel()
        at_zero = self.at_zero * float(step.mass.sum()) + step.alone
        # μ (r - k)+ is within μ k of μ r, and within μ r of 0
        is_small, is_large = k < SMALLEST, k > 1.0 / SMALLEST
        gone = float(mass[is_small].sum())
        moved = self.moved + 1.01 * (gone * SMALLEST + float(mass[is_large].sum()))
        left = ~(is_small | is_large)
        error, near = self.error + step.error + 8.0 * UNIT, self.near + NEAR
        return _merged(k[left], mass[left], at_zero + gone, error, near, moved)


def _merged(
    k: FloatArray, mass: FloatArray, at_zero: float, error: float, near: float, moved: float
) -> CornerFunction:
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
    apart = float((k[last] / k[first] - 1.0).max())
    if apart > NEAR:
        raise AccuracyError("the worst strategy has too many corners at nearly the same places")
    # rounding of sums of at most ``longest`` terms
    longest = float((last - first).max()) + 8.0
    return CornerFunction(k[first], sums, at_zero, error + apart + longest * UNIT, near, moved)


def _larger(one: CornerFunction, two: CornerFunction) -> CornerFunction:
    """The maximum of two functions, with a corner wherever the larger one changes."""
    k = np.union1d(one.k, two.k)
    (first, before), (second, other) = one.at(k), two.at(k)
    apart, steeper = (first - second).high, (one.slope(k) - two.slope(k)).high
    level = LEVEL * k * np.maximum(before.high, other.high)
    sign = np.where(np.abs(apart) > level, np.sign(apart), 0.0)
    none = (first.high == 0.0) & (second.high == 0.0)  # values below all doubles: slopes decide
    sign[none] = np.sign((before - other).high)[none]
    known = np.flatnonzero(sign)
    near, moved = max(one.near, two.near) + 2.0 * NEAR, max(one.moved, two.moved)
    if not known.size:
        return CornerFunction(one.k, one.mass, one.at_zero, _off(one, two, k, one), near, moved)
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
    made = _merged(np.concatenate(corners), np.concatenate(masses), at_zero, 0.0, near, moved)
    error = _off(one, two, np.union1d(k, cross), made)
    return CornerFunction(made.k, made.mass, made.at_zero, error, near, moved)


def _off(one: CornerFunction, two: CornerFunction, k: FloatArray, made: CornerFunction) -> float:
    """Error of ``made`` as the maximum of two functions: theirs, and its distance at corners.

    All three are linear between corners, so the distance at the end of a piece is compared with the
    larger slope on it, or next to it if the piece is shorter than `NEAR`.
    """
    k = np.union1d(k, made.k)
    (first, slope), (second, other), (found, _) = one.at(k), two.at(k), made.at(k)
    steepest = np.maximum(one.slope(k * (1.0 + NEAR)).high, two.slope(k * (1.0 + NEAR)).high)
    is_short = np.append(False, k[1:] <= k[:-1] * (1.0 + NEAR))
    steep = np.where(is_short, steepest, np.maximum(slope.high, other.high))
    distance = np.abs((found - _maximum(first, second)).high) / k
    with np.errstate(divide="ignore", invalid="ignore"):
        off = float(np.nan_to_num(distance / steep, nan=0.0, posinf=math.inf).max())
    last = made.slope(k).high
    if not (last <= steepest * (1.0 + NEAR)).all():
        raise AccuracyError("the slopes of the worst strategy are not known")
    end = abs(last[-1] / steepest[-1] - 1.0) if steepest[-1] > 0.0 else 0.0
    at_zero = max(one.at_zero, two.at_zero)
    start = abs(made.at_zero / at_zero - 1.0) if at_zero > 0.0 else 0.0
    rounding = 4.0 * SUMMED * (one.k.size + two.k.size + made.k.size) + 8.0 * UNIT
    return max(one.error, two.error) + off + float(end) + start + rounding


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
        scale = np.clip(value, 1e-3, LARGEST) if name == "epsilon" else value
        apart = upper > np.maximum(lower, BELOW_DOUBLES)
        if (upper[apart] - lower[apart] > self._tolerance * scale[apart]).any():
            raise AccuracyError("rounding of corners is wider than the bounds that are asked for")
        return Answer(value, lower, upper, names("adaptive", x.size), True)


def _delta(worst: CornerFunction, epsilon: float) -> Triple:
    t = fn.exp(min(epsilon, 700.0))
    parts = worst.mass * np.maximum(1.0 - np.minimum(worst.k, 1.0) * t, 0.0)  # t >= 1
    value = worst.at_zero + float(parts.sum())
    # errors of t and of 1 - kt where k < 1 / t, and of the sum
    slack = float(worst.slack(np.array([1.0 / t]))[0])
    error = slack * (1.0 + 2.0 * ELEMENTARY) + parts.size * UNIT * value
    return min(value, 1.0), max(value - error, 0.0), min(value + error, 1.0)


def _epsilon(shape: Shape, delta: float) -> Triple:
    t, h, above, below = shape
    found = []
    for curve in (below, h, above):
        if float(curve[0]) <= delta:
            found.append(0.0)
            continue
        under = np.flatnonzero(curve <= delta)
        if not under.size:  # the mass at infinite loss is larger
            found.append(math.inf)
            continue
        j = int(under[0])
        share = float((curve[j - 1] - delta) / (curve[j - 1] - curve[j]))
        crossing = float(t[j - 1]) + min(share, 1.0) * float(t[j] - t[j - 1])
        found.append(fn.log(max(crossing, 1.0)))
    lower, value, upper = found
    off = 8.0 * ELEMENTARY * UNIT
    upper += off * (1.0 + upper) if upper > 0.0 else 0.0
    return value, lower if lower == math.inf else max(lower - off * (1.0 + lower), 0.0), upper


def _gamma(shape: Shape, level: float) -> Triple:
    """γ = min over t of level t + H_t, the largest over all strategies, even randomized ones."""
    t, h, above, below = shape
    value, high, low = (float((level * t + curve).min()) for curve in (h, above, below))
    low, high = max(low * (1.0 - 4.0 * UNIT), level), min(high * (1.0 + 4.0 * UNIT), 1.0)
    return min(max(value, low), high), low, high


def _beta(shape: Shape, level: float) -> Triple:
    value, low, high = _gamma(shape, level)
    return 1.0 - value, max(1.0 - high - 2.0 * UNIT, 0.0), min(1.0 - low + UNIT, 1.0)


def _profile(worst: CornerFunction, *, from_zero: bool = False) -> Shape:
    """H_t at all its corners t >= 1 (or t > 0), in ascending order, and bounds of it.

    Lines through the points of the lower bound are below H_t between them: the error at a corner is
    that of the corner before, which is the larger one.
    """
    k = worst.k[::-1]
    if not from_zero:
        k = np.append(1.0, k[k < 1.0])
    t, h = 1.0 / k, (worst.at(k)[0].high) / k
    error = worst.slack(k) + 12.0 * UNIT * h
    if from_zero:
        t, h, error = np.append(0.0, t), np.append(1.0, h), np.append(worst.error, error)
    before = np.maximum.accumulate(np.append(error[0], error[:-1])[::-1])[::-1]
    return t, h, h + error, np.maximum(h - np.maximum(before, error), 0.0)
