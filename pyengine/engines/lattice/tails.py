"""Certified functionals of a composition near one place: profile, tests, and both tails.

Everything is kept relative to e^base, so that tails below the range of doubles lose nothing.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.engines.lattice.compose import Composed, Sum
from pyengine.engines.lattice.slices import Bracket, Slice, interpolate
from pyengine.engines.lattice.steps import doubles
from pyengine.laws.base import UNIT

__all__ = ["LowerTails", "MiddleTails"]

FloatArray = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Around the best index, which is flat; any index is valid.
NEAR = (-5, -3, -2, -1, 0, 1, 2, 4)


class LowerTails:
    """Lower tails {S <= c} of both laws, and the profile H(A‖B), of an ``outer`` composition.

    Attributes, relative to e^base (masses of B to e^base_b): ``profile`` upper bounds of H at the
    losses c = x_m of the slice, but for ``lost``; ``a`` lower bounds of A(K <= m) and ``b`` upper
    bounds of B(K <= m) for the index K of tests, from a lower index on if K is shifted: steps with
    atoms on the lattice shift it less than others.
    """

    def __init__(self, composed: Composed) -> None:
        part = self._slice = Slice(composed)
        spread = composed.spread
        self.lost = composed.lost
        self.base = spread.log_scale - spread.rate * part.middle
        self.base_b = self.base + part.loss
        y = spread.mass[: part.last + 1]
        below, profile = np.empty(y.size), np.empty(y.size)
        log_q = min(spread.rate, 0.0)
        lib.pe_profile_sums(
            y.size, doubles(y), log_q, part.h, doubles(below, True), doubles(profile, True)
        )
        error = part.error(spread, log_q)
        noise = spread.noise * part.reach_of(spread, log_q) + spread.below
        sums = (profile[part.first :] * (1.0 + error) + noise) * part.factor(spread, self.base)
        self.profile = np.minimum.accumulate((sums * (1.0 + error))[::-1])[::-1]
        del below, profile, sums, y, spread
        a = composed.a
        self._shift = a.shift
        self._first = max(part.first - max(a.shift, 0), 0)  # of the tests, in their window
        last = min(part.last - min(a.shift, 0), part.points - 1)
        index = composed.plan.first + a.shift + np.arange(self._first, last + 1, dtype=np.float64)
        log_q = min(a.rate, 0.0)
        error = part.error(a, log_q)
        noise = a.noise * part.reach_of(a, log_q) + a.below + a.above
        sums = part.upward(a, log_q, self._first, last) * (1.0 - error) - noise
        factor = np.minimum(part.factor(a, self.base, index), 1e300)
        sums = np.maximum(sums, 0.0) * factor * (1.0 - error)
        self.a = np.maximum.accumulate(sums)
        del a
        b = composed.b
        error = part.error(b, b.rate) + 2.0 * part.position_error
        noise = b.noise * part.reach_of(b, b.rate) + b.below
        sums = part.upward(b, b.rate, self._first, last) * (1.0 + error) + noise
        with np.errstate(invalid="ignore", over="ignore"):
            sums = sums * part.factor(b, self.base_b, index) * (1.0 + error)
        sums = np.where(np.isnan(sums), math.inf, sums)
        self.b = np.minimum.accumulate(sums[::-1])[::-1]
        # the event of the largest ratio, which is the best one at an end of the support
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.b > 0.0, self.a / self.b, 0.0)
        self._best = int(ratio.argmax())
        self._ratio = float(ratio[self._best])

    @property
    def spacing(self) -> float:
        """Spacing of the lattice."""
        return self._slice.h

    @property
    def points(self) -> int:
        """Number of points of the lattice."""
        return self._slice.points

    @property
    def bytes(self) -> int:
        """Memory held."""
        return 3 * self.profile.nbytes + 2 * self.a.nbytes

    def _around(self, index: Indices, size: int, sign: int) -> list[Indices]:
        """Candidates in the other array for a loss's (sign 1) or a test's (-1) index."""
        move = sign * (self._slice.first - self._first)
        ends = (move, move - sign * self._shift)
        centres = {ends[0], ends[1], (ends[0] + ends[1]) // 2}
        found = [np.clip(index + m + step, 0, size - 1) for m in centres for step in NEAR]
        return [*found, np.full_like(index, self._best)] if sign > 0 else found

    def at(self, c: FloatArray) -> Bracket:
        """H_{e^-c}(A‖B)."""
        part, size = self._slice, self.profile.size
        position = part.relative(c)
        floor = np.floor((position - part.offset[0]) / part.h)
        index = np.clip(floor, -1.0, float(size)).astype(np.int64)
        open_end = part.is_open
        beyond = np.where(index < 1, -1, np.where((index >= size - 1) & ~open_end, 1, 0))
        index = np.clip(index, min(1, size - 1), size - 1)
        doubt = 2.0 * part.position_error + 8.0 * UNIT * (np.abs(position) + np.abs(c))
        gap = position + doubt - part.offset[index]
        scale = math.exp(min(self.base, 700.0))
        # H is convex in e^-c: below its chord to the next point, and to H = 1 at e^-c = 0
        inside = index < size - 1
        after = self.profile[np.minimum(index + 1, size - 1)]
        gain = np.maximum(-np.expm1(-gap), 0.0)
        share = np.minimum(gain / -math.expm1(-part.h), 1.0)
        upper = self.profile[index] + (after - self.profile[index]) * share
        upper = upper * scale + self.lost[1]
        upper = np.where(inside, upper, upper + gain * np.maximum(1.0 - upper, 0.0))
        lower, best = np.zeros(c.size), np.zeros(c.size, dtype=np.int64)
        ratio = np.exp(np.minimum(doubt - position, 700.0))
        for near in self._around(index, self.a.size, 1):
            test = self.a[near] - self.b[near] * ratio
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
        part, size = self._slice, self.profile.size
        doubt = 2.0 * part.position_error + 16.0 * UNIT * (abs(part.loss) + np.abs(part.offset[-1]))
        tiny = 16.0 * UNIT * (1.0 + abs(self.base))
        small = self._scaled(delta, self.lost[1]) * (1.0 - tiny)
        index = np.searchsorted(self.profile, small, side="right") - 1
        beyond = np.where(index < 1, -1, np.where(index >= size - 1, 1, 0))
        none = index < 0
        index = np.clip(index, 0, max(size - 2, 0))
        after = self.profile[np.minimum(index + 1, size - 1)]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (small - self.profile[index]) / (after - self.profile[index])
            share = np.where(after > self.profile[index], share, 0.0)
            gap = -np.log1p(np.clip(share, 0.0, 1.0) * math.expm1(-part.h))
            upper = -(part.offset[index] + gap) - part.loss + doubt
            upper = np.where(none, math.inf, upper)
            large = self._scaled(delta, self.lost[0]) * (1.0 + tiny)
            lower = np.full(delta.size, -math.inf)
            for near in self._around(index, self.a.size, 1):
                rest = self.a[near] - large
                # the test proves H > δ up to this ε
                line = np.log(np.maximum(rest, 0.0) / self.b[near]) - part.loss - doubt
                lower = np.maximum(lower, np.where(rest > 0.0, line, -math.inf))
        return Bracket.of(lower, upper, beyond, -upper)

    def _beyond(self, index: Indices) -> Indices:
        """Whether the losses that belong to indices of tests lie outside the slice."""
        place = index + self._first - self._slice.first
        return np.where(place < 1, -1, np.where(place >= self.profile.size, 1, 0))

    def second_from_first(self, mass: FloatArray) -> Bracket:
        """β = B(E) for the best E with A(E) = ``mass`` among lower sets of the loss."""
        part = self._slice
        tiny = 16.0 * UNIT * (1.0 + abs(self.base))
        enough = self._scaled(mass, self.lost[0]) * (1.0 + tiny)
        index = np.searchsorted(self.a, enough)
        beyond = self._beyond(index)
        index = np.clip(index, 0, self.a.size - 1)
        upper = interpolate(self.a, self.b, index, enough) * (1.0 + 16.0 * UNIT)
        upper = np.where(enough > self.a[-1], math.inf, upper)
        part_of_best = enough <= self.a[self._best]
        if self._ratio > 0.0:
            chord = enough / self._ratio * (1.0 + 16.0 * UNIT)
            upper = np.where(part_of_best, np.minimum(upper, chord), upper)
        less = self._scaled(mass, self.lost[1]) * (1.0 - tiny)
        lower, c = np.zeros(mass.size), np.full(mass.size, part.offset[0])
        for near in self._around(index, self.profile.size, -1):
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
            scaled = np.exp(np.minimum(np.log(mass) - self.base_b, 700.0))
        less, more = scaled * (1.0 - error), scaled * (1.0 + error)
        index = np.searchsorted(self.b, less)
        beyond = self._beyond(index)
        index = np.clip(index, 0, self.a.size - 1)
        lower = interpolate(self.b, self.a, index, less)
        chord = less * self._ratio * (1.0 - 16.0 * UNIT)
        lower = np.where(less <= self.b[self._best], np.maximum(lower, chord), lower)
        upper, c = np.full(mass.size, math.inf), np.zeros(mass.size)
        for near in self._around(index, self.profile.size, -1):
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
        part = self._slice = Slice(composed)
        spread = composed.spread
        self.base = spread.log_scale - spread.rate * part.middle
        self.base_b = self.base + part.loss
        sums = self._tail(composed.a, self.base, True, True)
        self.a = np.minimum.accumulate(sums)
        sums = self._tail(composed.b, self.base_b, False, True)
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
    def spacing(self) -> float:
        """Spacing of the lattice."""
        return self._slice.h

    @property
    def points(self) -> int:
        """Number of points of the lattice."""
        return self._slice.points

    @property
    def bytes(self) -> int:
        """Memory held."""
        return 6 * self.a.nbytes

    def _tail(self, sums: Sum, base: float, above: bool, is_upper: bool) -> FloatArray:
        part = self._slice
        log_q = min(-abs(sums.rate), 0.0)
        error = part.error(sums, log_q) + 4.0 * part.position_error
        noise = sums.noise * part.reach_of(sums, log_q)
        if above:
            values = part.downward(sums, log_q)
        else:
            values = part.upward(sums, log_q, part.first, part.last)
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
        beyond = np.where(index < 1, -1, np.where(index >= self.a.size, 1, 0))
        index = np.clip(index, 1, self.a.size - 1)
        upper = interpolate(-self.a, self.b, index, -less) * (1.0 + 16.0 * UNIT)
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
