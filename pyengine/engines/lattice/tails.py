"""Certified functionals of a composition near one place: profile, tests, and both tails.

Everything is kept relative to e^base, so that tails below the range of doubles lose nothing.  A
result that lies outside the place's reach is NaN, with the direction in which to look for it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.engines.lattice.compose import Composed, Sum
from pyengine.engines.lattice.steps import doubles
from pyengine.laws.base import UNIT

__all__ = ["Bracket", "LowerTails", "MiddleTails"]

FloatArray = npt.NDArray[np.float64]

SUM_ERROR = 2.0**-51
NEAR = (-5, -3, -2, -1, 0, 1, 2, 4)  # around the best index, which is flat; any index is valid


class Bracket(NamedTuple):
    """Bounds, and -1, 0 or 1 where the answer lies left of, within or right of the reach.

    ``c`` is the loss at which a bound of the trade-off function touches its curve.  For a profile,
    ``a`` and ``b`` are those of the best test: at least A(E) and at most B(E) of one event.
    """

    lower: FloatArray
    upper: FloatArray
    beyond: npt.NDArray[np.int64]
    c: FloatArray
    a: FloatArray
    b: FloatArray

    @classmethod
    def empty(cls, size: int) -> Bracket:
        """Arrays of zeros to be filled."""
        none = [np.zeros(size) for _ in range(5)]
        return cls(none[0], none[1], np.zeros(size, dtype=np.int64), *none[2:])

    @classmethod
    def of(
        cls,
        lower: FloatArray,
        upper: FloatArray,
        beyond: npt.NDArray[np.int64],
        c: FloatArray,
    ) -> Bracket:
        """Without a test."""
        none = np.zeros(lower.size)
        return cls(lower, upper, beyond, c, none, none)


class _Slice:
    """The indices within reach, and sums over tails of the whole window at them."""

    def __init__(self, composed: Composed) -> None:
        plan = composed.plan
        self.h = plan.spacing
        high = float(plan.centre)
        self._centre = (high, float(plan.centre - type(plan.centre)(high)))
        low, top = ((x - high) / self.h for x in plan.place.reach)
        first = max(math.floor(max(low, -1e15)) - plan.first, 0)
        last = min(math.ceil(min(top, 1e15)) - plan.first, plan.points - 1)
        self.first, self.last, self.points = first, max(last, first), plan.points
        self.index = plan.first + np.arange(self.first, self.last + 1, dtype=np.float64)
        self.middle = float(self.index[self.index.size // 2])
        self.offset = self.h * (self.index - self.middle)  # x_m - x_mid

    @property
    def loss(self) -> float:
        """Loss at the middle of the slice."""
        return (self._centre[0] + self.h * self.middle) + self._centre[1]

    def relative(self, c: FloatArray) -> FloatArray:
        """Difference c - x_mid."""
        return ((c - self._centre[0]) - self.h * self.middle) - self._centre[1]

    @property
    def position_error(self) -> float:
        """Bound on the error of `loss` and of `relative`, but for that of rounding the result."""
        return 4.0 * UNIT * (abs(self._centre[0]) + abs(self.h * self.middle))

    def factor(self, part: Sum, base: float) -> FloatArray:
        """e^{log_scale - rate m - base}; its relative error is within `_error`."""
        at_middle = part.log_scale - part.rate * (self.middle + part.shift) - base
        return np.exp(at_middle - part.rate * (self.index - self.middle))

    def error(self, part: Sum, log_q: float) -> float:
        """Relative error of a sum with its factor."""
        blocks = 2.0 * float(lib.PE_SUM_BLOCK) + part.mass.size / lib.PE_SUM_BLOCK
        farthest = max(abs(self.index[0]), abs(self.index[-1])) + abs(part.shift)
        exponents = abs(part.rate) * farthest + abs(part.log_scale)
        sums = SUM_ERROR * blocks * (1.0 + abs(log_q))
        return float(part.scale_error + sums + UNIT * (32.0 + 8.0 * exponents))

    def reach_of(self, part: Sum, log_q: float) -> float:
        """Total weight of the noise in a sum."""
        return min(-1.0 / math.expm1(log_q), part.mass.size) if log_q < 0.0 else part.mass.size

    def upward(self, part: Sum, log_q: float) -> FloatArray:
        """Discounted sums of what lies at or below each index of the slice."""
        y = part.mass[: self.last + 1]
        sums = np.empty(y.size)
        lib.pe_discounted_sums(y.size, doubles(y), log_q, doubles(sums, True))
        return sums[self.first :]

    def downward(self, part: Sum, log_q: float) -> FloatArray:
        """Discounted sums of what lies above each index of the slice, at that index."""
        y = np.ascontiguousarray(part.mass[: self.first : -1])
        sums = np.zeros(y.size + 1)
        if y.size:
            lib.pe_discounted_sums(y.size, doubles(y), log_q, doubles(sums[1:], True))
        # sums[i] is discounted to the last of its terms; one more step takes it to the index below
        return math.exp(log_q) * sums[::-1][: self.index.size]


def _outside(index: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    return np.where(index < 1, -1, np.where(index >= size, 1, 0))


def _interpolate(
    x: FloatArray, y: FloatArray, at: npt.NDArray[np.int64], x0: FloatArray
) -> FloatArray:
    """Chord of (x, y) between at - 1 and at, at x0; before index 0 there is (0, 0)."""
    first = at == 0
    x1, y1 = (np.where(first, 0.0, z[np.maximum(at - 1, 0)]) for z in (x, y))
    span = x[at] - x1
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(span > 0.0, (x0 - x1) / span, 1.0)
    return np.asarray(y1 + np.clip(share, 0.0, 1.0) * (y[at] - y1))


class LowerTails:
    """Lower tails {S <= c} of both laws, and the profile H(A‖B), of an ``outer`` composition.

    Attributes, over the slice and relative to e^base (masses of B to e^base_b):
    ``profile`` upper bounds of H at c = x_m, but for ``lost``; ``a`` lower bounds of A(K <= m),
    ``b`` upper bounds of B(K <= m).
    """

    def __init__(self, composed: Composed) -> None:
        part = self._slice = _Slice(composed)
        spread, a, b = composed.spread, composed.a, composed.b
        self.lost = composed.lost
        self.base = spread.log_scale - spread.rate * part.middle
        self.base_b = self.base + part.loss
        y = spread.mass[: part.last + 1]
        below, profile = np.empty(y.size), np.empty(y.size)
        log_q = min(spread.rate, 0.0)
        lib.pe_profile_sums(
            y.size, doubles(y), log_q, part.h, doubles(below, True), doubles(profile, True)
        )
        factor = part.factor(spread, self.base)
        error = part.error(spread, log_q)
        noise = spread.noise * part.reach_of(spread, log_q) + spread.below
        sums = (profile[part.first :] * (1.0 + error) + noise) * factor * (1.0 + error)
        self.profile = np.minimum.accumulate(sums[::-1])[::-1]
        del below, profile
        log_q = min(a.rate, 0.0)
        error = part.error(a, log_q)
        noise = a.noise * part.reach_of(a, log_q) + a.below + a.above
        sums = part.upward(a, log_q) * (1.0 - error) - noise
        sums = np.maximum(sums, 0.0) * part.factor(a, self.base) * (1.0 - error)
        self.a = np.maximum.accumulate(sums)
        error = part.error(b, b.rate) + 2.0 * part.position_error
        noise = b.noise * part.reach_of(b, b.rate) + b.below
        sums = part.upward(b, b.rate) * (1.0 + error) + noise
        sums = sums * part.factor(b, self.base_b) * (1.0 + error)
        self.b = np.minimum.accumulate(sums[::-1])[::-1]

    @property
    def bytes(self) -> int:
        """Memory held."""
        return 5 * self.a.nbytes

    def at(self, c: FloatArray) -> Bracket:
        """H_{e^-c}(A‖B)."""
        part = self._slice
        position = part.relative(c)
        index = np.floor((position - part.offset[0]) / part.h).astype(np.int64)
        open_end = part.last == part.points - 1
        beyond = np.where(index < 1, -1, np.where((index >= self.a.size - 1) & ~open_end, 1, 0))
        index = np.clip(index, 1, self.a.size - 1)
        doubt = 2.0 * part.position_error + 8.0 * UNIT * (np.abs(position) + np.abs(c))
        gap = position + doubt - part.offset[index]
        scale = math.exp(min(self.base, 700.0))
        # H is convex in e^-c: below its chord to the next point, and to H = 1 at e^-c = 0
        inside = index < self.a.size - 1
        after = self.profile[np.minimum(index + 1, self.a.size - 1)]
        gain = np.maximum(-np.expm1(-gap), 0.0)
        upper = self.profile[index] + (after - self.profile[index]) * np.minimum(
            gain / -math.expm1(-part.h), 1.0
        )
        upper = upper * scale + self.lost[1]
        upper = np.where(inside, upper, upper + gain * np.maximum(1.0 - upper, 0.0))
        lower, best = np.zeros(c.size), index.copy()
        for step in NEAR:
            near = np.clip(index + step, 0, self.a.size - 1)
            test = self.a[near] - self.b[near] * np.exp(np.minimum(doubt - position, 700.0))
            best = np.where(test > lower, near, best)
            lower = np.maximum(lower, test)
        lower = lower * scale * (1.0 - 8.0 * UNIT) + self.lost[0]
        upper = np.minimum(upper * (1.0 + 16.0 * UNIT), 1.0)
        scale_b = math.exp(min(self.base_b, 700.0))
        error = 4.0 * part.position_error + UNIT * (64.0 + 8.0 * abs(self.base_b))
        a = self.a[best] * scale * (1.0 - 8.0 * UNIT) + self.lost[0]
        b = self.b[best] * scale_b * (1.0 + error)
        return Bracket(lower, upper, beyond, c, a, b)

    def _scaled(self, mass: FloatArray, lost: float) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            return np.exp(np.log(np.maximum(mass - lost, 0.0)) - self.base)

    def epsilon(self, delta: FloatArray) -> Bracket:
        """The ε = -c at which H_{e^ε}(A‖B) = δ."""
        part = self._slice
        doubt = 2.0 * part.position_error + 16.0 * UNIT * (abs(part.loss) + np.abs(part.offset[-1]))
        small = self._scaled(delta, self.lost[1]) * (1.0 - 16.0 * UNIT * (1.0 + abs(self.base)))
        index = np.searchsorted(self.profile, small, side="right") - 1
        beyond = np.where(index < 1, -1, np.where(index >= self.a.size - 1, 1, 0))
        none = index < 0
        index = np.clip(index, 0, self.a.size - 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (small - self.profile[index]) / (self.profile[index + 1] - self.profile[index])
            gap = -np.log1p(np.clip(share, 0.0, 1.0) * math.expm1(-part.h))
            upper = -(part.offset[index] + gap) - part.loss + doubt
            upper = np.where(none, math.inf, upper)
            large = self._scaled(delta, self.lost[0]) * (1.0 + 16.0 * UNIT * (1.0 + abs(self.base)))
            lower = np.full(delta.size, -math.inf)
            for step in NEAR:
                near = np.clip(index + step, 0, self.a.size - 1)
                rest = self.a[near] - large
                # the test proves H > δ up to this ε
                line = np.log(np.maximum(rest, 0.0) / self.b[near]) - part.loss - doubt
                lower = np.maximum(lower, np.where(rest > 0.0, line, -math.inf))
        return Bracket.of(lower, upper, beyond, -upper)

    def second_from_first(self, mass: FloatArray) -> Bracket:
        """β = B(E) for the best E with A(E) = ``mass`` among lower sets of the loss."""
        part = self._slice
        tiny = 16.0 * UNIT * (1.0 + abs(self.base))
        enough = self._scaled(mass, self.lost[0]) * (1.0 + tiny)
        index = np.searchsorted(self.a, enough)
        beyond = _outside(index, self.a.size)
        index = np.clip(index, 0, self.a.size - 1)
        upper = _interpolate(self.a, self.b, index, enough) * (1.0 + 16.0 * UNIT)
        upper = np.where(enough > self.a[-1], math.inf, upper)
        less = self._scaled(mass, self.lost[1]) * (1.0 - tiny)
        lower, c = np.zeros(mass.size), np.full(mass.size, part.offset[0])
        for step in NEAR:
            near = np.clip(index + step, 0, self.a.size - 1)
            line = np.exp(part.offset[near]) * (less - self.profile[near])
            c = np.where(line > lower, part.offset[near], c)
            lower = np.maximum(lower, line)
        error = 4.0 * part.position_error + UNIT * (64.0 + 8.0 * abs(self.base_b))
        scale = math.exp(min(self.base_b, 700.0))
        return Bracket.of(
            lower * scale * (1.0 - error), upper * scale * (1.0 + error), beyond, part.loss + c
        )

    def first_from_second(self, mass: FloatArray) -> Bracket:
        """γ = A(E) for the best E with B(E) = ``mass`` among lower sets of the loss."""
        part = self._slice
        error = 4.0 * part.position_error + 16.0 * UNIT * (1.0 + abs(self.base_b))
        with np.errstate(divide="ignore", over="ignore"):
            scaled = np.exp(np.log(mass) - self.base_b)
        less, more = scaled * (1.0 - error), scaled * (1.0 + error)
        index = np.searchsorted(self.b, less)
        beyond = _outside(index, self.a.size)
        index = np.clip(index, 0, self.a.size - 1)
        lower = _interpolate(self.b, self.a, index, less)
        upper, c = np.full(mass.size, math.inf), np.zeros(mass.size)
        for step in NEAR:
            near = np.clip(index + step, 0, self.a.size - 1)
            line = more * np.exp(-part.offset[near]) + self.profile[near]
            c = np.where(line < upper, part.offset[near], c)
            upper = np.minimum(upper, line)
        scale = math.exp(min(self.base, 700.0))
        tiny = UNIT * (64.0 + 8.0 * abs(self.base))
        return Bracket.of(
            lower * scale * (1.0 - tiny) + self.lost[0],
            np.minimum(upper * scale * (1.0 + tiny) + self.lost[1], 1.0),
            beyond,
            part.loss + c,
        )


class MiddleTails:
    """A's upper and B's lower tail, of a composition that is not ``outer``.

    Relative to e^base and e^base_b: ``a``, ``b`` upper bounds of A(K > m) and B(K <= m);
    ``spread_a``, ``spread_b`` lower bounds of the same of the spread pair.
    """

    def __init__(self, composed: Composed) -> None:
        part = self._slice = _Slice(composed)
        spread, a, b = composed.spread, composed.a, composed.b
        self.base = spread.log_scale - spread.rate * part.middle
        self.base_b = self.base + part.loss
        sums = self._tail(a, self.base, True, True)
        self.a = np.minimum.accumulate(sums)
        sums = self._tail(b, self.base_b, False, True)
        self.b = np.minimum.accumulate(sums[::-1])[::-1]
        self.spread_a = self._tail(spread, self.base, True, False)
        rate = spread.rate - part.h
        of_b = Sum(
            spread.mass,
            rate,
            spread.log_scale + float(composed.plan.centre),
            spread.scale_error,
            spread.noise,
            spread.below,
            spread.above,
            spread.shift,
        )
        self.spread_b = self._tail(of_b, self.base_b, False, False)

    @property
    def bytes(self) -> int:
        """Memory held."""
        return 6 * self.a.nbytes

    def _tail(self, sums: Sum, base: float, above: bool, is_upper: bool) -> FloatArray:
        part = self._slice
        log_q = min(-abs(sums.rate), 0.0)
        error = part.error(sums, log_q) + 4.0 * part.position_error
        noise = sums.noise * part.reach_of(sums, log_q)
        values = part.downward(sums, log_q) if above else part.upward(sums, log_q)
        if is_upper:
            noise += sums.above if above else sums.below
            values = values * (1.0 + error) + noise
            return values * part.factor(sums, base) * (1.0 + error)
        values = np.maximum(values * (1.0 - error) - noise - sums.above - sums.below, 0.0)
        return values * part.factor(sums, base) * (1.0 - error)

    def second_from_first(self, alpha: FloatArray) -> Bracket:
        """β = B(not E) for the best E with A(E) = α among upper sets of the loss."""
        part = self._slice
        error = UNIT * (16.0 + 4.0 * abs(self.base))
        scaled = np.exp(np.log(alpha) - self.base)
        less, more = scaled * (1.0 - error), scaled * (1.0 + error)
        falling = self.a[::-1]
        index = self.a.size - np.searchsorted(falling, less, side="right")  # first with a <= less
        beyond = _outside(index, self.a.size)
        index = np.clip(index, 1, self.a.size - 1)
        upper = _interpolate(-self.a, self.b, index, -less) * (1.0 + 16.0 * UNIT)
        upper = np.where(less < self.a[-1], math.inf, upper)
        lower, c = np.zeros(alpha.size), np.zeros(alpha.size)
        for step in NEAR:
            near = np.clip(index + step, 0, self.a.size - 1)
            line = np.exp(part.offset[near]) * (self.spread_a[near] - more) + self.spread_b[near]
            c = np.where(line > lower, part.offset[near], c)
            lower = np.maximum(lower, line)
        error = 4.0 * part.position_error + UNIT * (64.0 + 8.0 * abs(self.base_b))
        scale = math.exp(min(self.base_b, 700.0))
        return Bracket.of(
            lower * scale * (1.0 - error), upper * scale * (1.0 + error), beyond, part.loss + c
        )
