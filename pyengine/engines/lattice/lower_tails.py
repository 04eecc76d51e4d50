"""Certified functionals of a composition near one place: profile, tests, lower tails.

All masses are in units of e^base, so that tails below the range of doubles keep their digits.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.compose import Bound, PlaceComposition
from pyengine.engines.lattice.fft_convolution import Sum
from pyengine.engines.lattice.tail_sums import NEAR, Bracket, OnSumRange, SumRange, interpolate
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.scaled import lower_times_exp, upper_times_exp

__all__ = ["LowerTails"]

FloatArray = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

MOST_TESTS = 3 * 2**23  # length of the arrays of tests; about eight are held at once
LOG_LEAST = -700.0  # smaller logs of upper bounds are rounded up to it
SUBNORMAL = 1e-320  # absolute error of an exponential below the normal doubles


class LowerTails(OnSumRange):
    """Lower tails {S <= c} of both laws, and the profile H(A‖B), of an ``outer`` composition.

    In units of e^base (masses of B: e^base_b): ``profile`` are upper bounds of H, without ``lost``,
    at the losses c = x_m of the slice; ``a`` are lower bounds of A(K <= m), ``b`` upper bounds of
    B(K <= m) for the index K of tests.  These arrays start at a lower index if K is shifted up
    against the loss, by merging cells.
    """

    def __init__(self, composed: PlaceComposition) -> None:
        part = self._slice = SumRange(composed)
        self.lost = composed.lost
        main = composed.terms[0]
        self._shift = main.moved
        # first index of the tests, before their shift
        self._first = part.first - max(self._shift, 0)
        last = part.last - min(self._shift, 0)
        if last - self._first >= MOST_TESTS:
            # K is shifted by the number of steps times the shift that merging adds to each mean
            raise AccuracyError(
                f"tests of all losses would take sums at {last - self._first + 1} lattice points, "
                f"at most {MOST_TESTS} are held in memory: use fewer steps"
            )
        index = np.arange(self._first, last + 1, dtype=np.float64)
        self.profile = np.zeros(part.index.size)
        self.a, self._log_b = np.zeros(index.size), np.full(index.size, -math.inf)
        self.base = self.base_b = math.nan
        for term in composed.terms:
            spread = term.spread
            if term is main:
                self.base = spread.log_scale - spread.rate * part.middle
                self.base_b = self.base + part.loss
            self.profile += self._profile(spread)
            del spread
            self.a += self._first_law(term.a, index)
            self._log_b = fn.logaddexp(self._log_b, self._second_law(term.b, index))
        self.profile *= 1.0 + UNIT * (2.0 + len(composed.terms))
        self.a *= 1.0 - UNIT * (2.0 + len(composed.terms))
        self._log_b += UNIT * (8.0 + 4.0 * np.abs(self._log_b)) * len(composed.terms)
        for rest in composed.rest:
            self.profile += self._bound(rest)
        self.profile = np.minimum.accumulate(self.profile[::-1])[::-1]
        self.a = np.maximum.accumulate(self.a)
        self._log_b = np.minimum.accumulate(self._log_b[::-1])[::-1]
        with np.errstate(over="ignore"):
            # an upper bound must not underflow to 0
            self.b = fn.exp(np.maximum(self._log_b + composed.shrunk, LOG_LEAST))
        # the event with the largest ratio a/b, the best one at an end of the support
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.b > 0.0, self.a / self.b, 0.0)
        self._best = int(ratio.argmax())
        self._ratio = float(ratio[self._best])

    def _profile(self, spread: Sum) -> FloatArray:
        """Upper bounds of one term's profile, without `lost`."""
        part = self._slice
        log_q = min(spread.rate, 0.0)
        error = part.error(spread, log_q)
        noise = spread.noise * part.reach_of_profile(spread, log_q) + spread.below
        sums = part.profile(spread, log_q) * (1.0 + error) + noise
        sums[part.index > spread.last] += spread.above
        sums *= part.factor(spread, self.base, part.index) * (1.0 + error)
        return np.where(np.isnan(sums), math.inf, sums)

    def _first_law(self, a: Sum, index: FloatArray) -> FloatArray:
        """Lower bounds of one term's A(K <= m)."""
        part = self._slice
        log_q = min(a.rate, 0.0)
        error = part.error(a, log_q)
        noise = a.noise * part.reach_of(a, log_q) + a.below + a.above
        sums = part.upward(a, log_q, int(index[0]), int(index[-1])) * (1.0 - error) - noise
        factor = np.minimum(part.factor(a, self.base, index + a.shift), 1e300)
        return np.asarray(np.maximum(sums, 0.0) * factor * (1.0 - error))

    def _second_law(self, b: Sum, index: FloatArray) -> FloatArray:
        """Logs of upper bounds of one term's B(K <= m), which may overflow doubles."""
        part = self._slice
        error = part.error(b, b.rate) + 2.0 * part.position_error
        noise = b.noise * part.reach_of(b, b.rate) + b.below
        sums = part.upward(b, b.rate, int(index[0]), int(index[-1])) * (1.0 + error) + noise
        sums[index > b.last] += b.above
        with np.errstate(divide="ignore"):
            return np.asarray(fn.log(sums) + part.exponent(b, self.base_b, index + b.shift) + error)

    def _bound(self, rest: Bound) -> FloatArray:
        """Upper bounds of terms that are not composed, at the indices of the slice."""
        part = self._slice
        exponent = rest.log_value - rest.tilt * (part.loss + part.offset) - self.base
        doubt = UNIT * (64.0 + 8.0 * (abs(rest.tilt * part.loss) + abs(self.base)))
        with np.errstate(over="ignore"):
            return np.asarray(fn.exp(exponent + doubt) * (1.0 + 64.0 * UNIT))

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
        return self.profile.nbytes + 3 * self.a.nbytes

    def _around(self, index: Indices, size: int, sign: int) -> list[Indices]:
        """Candidate indices of tests near an index of a loss (sign 1), or the reverse (-1)."""
        move = sign * (self._slice.first - self._first)
        ends = (move, move - sign * self._shift)
        centres = {ends[0], ends[1], (ends[0] + ends[1]) // 2}
        found = [np.clip(index + m + step, 0, size - 1) for m in centres for step in NEAR]
        if sign < 0:
            return found
        return [*found, np.full_like(index, self._best)]

    def at(self, c: FloatArray) -> Bracket:
        """Bounds of H_{e^-c}(A‖B), and the best test."""
        part, size = self._slice, self.profile.size
        position = part.relative(c)
        floor = np.floor((position - part.offset[0]) / part.h)
        index = np.clip(floor, -1.0, float(size)).astype(np.int64)
        open_end = part.is_open
        beyond = np.where(index < 1, -1, np.where((index >= size - 1) & ~open_end, 1, 0))
        index = np.clip(index, 0, size - 1)
        doubt = 2.0 * part.position_error + 8.0 * UNIT * (np.abs(position) + np.abs(c))
        gap = position + doubt - part.offset[index]
        # H is convex in e^-c: below its chord to the next point, and to H = 1 at e^-c = 0
        inside = index < size - 1
        after = self.profile[np.minimum(index + 1, size - 1)]
        gain = np.maximum(-fn.expm1(-gap), 0.0)
        share = np.minimum(gain / -fn.expm1(-part.h), 1.0)
        upper = self.profile[index] + (after - self.profile[index]) * share
        upper = upper_times_exp(upper, self.base) + self.lost[1]
        upper = np.where(inside, upper, upper + gain * np.maximum(1.0 - upper, 0.0))
        lower, best = np.zeros(c.size), np.zeros(c.size, dtype=np.int64)
        log_ratio = doubt - position
        rounded = 1.0 + UNIT * (16.0 + 4.0 * np.abs(log_ratio))
        for near in self._around(index, self.a.size, 1):
            test = self.a[near] - fn.exp(np.minimum(self._log_b[near] + log_ratio, 700.0)) * rounded
            best = np.where(test > lower, near, best)
            lower = np.maximum(lower, test)
        lower = lower_times_exp(lower, self.base) * (1.0 - 8.0 * UNIT) + self.lost[0]
        upper = np.minimum(upper * (1.0 + 16.0 * UNIT), 1.0)
        upper = np.maximum(upper, SUBNORMAL)  # not 0 where the exponential underflows
        error = 4.0 * part.position_error + UNIT * (64.0 + 8.0 * abs(self.base_b))
        a = lower_times_exp(self.a[best], self.base) * (1.0 - 8.0 * UNIT) + self.lost[0]
        b = upper_times_exp(self.b[best], self.base_b) * (1.0 + error)
        return Bracket(lower, upper, beyond, c, a, b)

    def _scaled(self, mass: FloatArray, lost: float) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(fn.exp(fn.log(np.maximum(mass - lost, 0.0)) - self.base))

    def epsilon(self, delta: FloatArray) -> Bracket:
        """Bounds of the ε = -c at which H_{e^ε}(A‖B) = δ."""
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
            gap = -fn.log1p(np.clip(share, 0.0, 1.0) * fn.expm1(-part.h))
            upper = -(part.offset[index] + gap) - part.loss + doubt
            upper = np.where(none, math.inf, upper)
            large = self._scaled(delta, self.lost[0]) * (1.0 + tiny) + SUBNORMAL
            lower = np.full(delta.size, -math.inf)
            # where the tail is nearly flat, the best test lies far from the threshold
            far = 2 ** np.arange(3, max(self.a.size.bit_length(), 3))
            start = index + self._slice.first - self._first
            beyond_near = [np.minimum(start + step, self.a.size - 1) for step in far.tolist()]
            for near in [*self._around(index, self.a.size, 1), *beyond_near]:
                rest = self.a[near] - large
                # the test proves H > δ up to this ε
                line = fn.log(np.maximum(rest, 0.0)) - self._log_b[near]
                line -= part.loss + doubt + UNIT * (16.0 + 4.0 * np.abs(line))
                lower = np.maximum(lower, np.where(rest > 0.0, line, -math.inf))
        return Bracket.of(lower, upper, beyond, -upper)

    def _beyond(self, index: Indices) -> Indices:
        """-1, 0, 1 where the loss at an index of tests lies below, inside, above the slice."""
        place = index + self._first - self._slice.first
        return np.where(place < 1, -1, np.where(place >= self.profile.size, 1, 0))

    def second_from_first(self, mass: FloatArray) -> Bracket:
        """Bounds of the smallest B(E) of events E = {S <= c} with A(E) = ``mass``."""
        part = self._slice
        tiny = 16.0 * UNIT * (1.0 + abs(self.base))
        enough = self._scaled(mass, self.lost[0]) * (1.0 + tiny) + SUBNORMAL
        index = np.searchsorted(self.a, enough)
        beyond = self._beyond(index)
        index = np.clip(index, 0, self.a.size - 1)
        upper = interpolate(self.a, self.b, index, enough) * (1.0 + 16.0 * UNIT)
        upper = np.where(enough > self.a[-1], math.inf, upper)
        part_of_best = enough <= self.a[self._best]
        if self._ratio > 0.0:
            chord = enough / self._ratio * (1.0 + 16.0 * UNIT)
            upper = np.where(part_of_best, np.minimum(upper, chord), upper)
        less = np.maximum(self._scaled(mass, self.lost[1]) * (1.0 - tiny) - SUBNORMAL, 0.0)
        lower, c = np.zeros(mass.size), np.full(mass.size, part.offset[0])
        for near in self._around(index, self.profile.size, -1):
            line = fn.exp(part.offset[near]) * (less - self.profile[near])
            c = np.where(line > lower, part.offset[near], c)
            lower = np.maximum(lower, line)
        error = 4.0 * part.position_error + UNIT * (64.0 + 8.0 * abs(self.base_b))
        upper = upper_times_exp(upper, self.base_b) * (1.0 + error)
        lower = lower_times_exp(lower, self.base_b) * (1.0 - error)
        return Bracket.of(lower, upper, beyond, part.loss + c)

    def first_from_second(self, mass: FloatArray) -> Bracket:
        """Bounds of the largest A(E) of events E = {S <= c} with B(E) = ``mass``."""
        part = self._slice
        error = 4.0 * part.position_error + 16.0 * UNIT * (1.0 + abs(self.base_b))
        with np.errstate(divide="ignore", over="ignore"):
            scaled = fn.exp(np.minimum(fn.log(mass) - self.base_b, 700.0))
        less, more = scaled * (1.0 - error) - SUBNORMAL, scaled * (1.0 + error) + SUBNORMAL
        less = np.maximum(less, 0.0)
        index = np.searchsorted(self.b, less)
        beyond = self._beyond(index)
        index = np.clip(index, 0, self.a.size - 1)
        lower = interpolate(self.b, self.a, index, less)
        chord = less * self._ratio * (1.0 - 16.0 * UNIT)
        lower = np.where(less <= self.b[self._best], np.maximum(lower, chord), lower)
        upper, c = np.full(mass.size, math.inf), np.zeros(mass.size)
        for near in self._around(index, self.profile.size, -1):
            line = more * fn.exp(-part.offset[near]) + self.profile[near]
            c = np.where(line < upper, part.offset[near], c)
            upper = np.minimum(upper, line)
        tiny = UNIT * (64.0 + 8.0 * abs(self.base))
        return Bracket.of(
            lower_times_exp(lower, self.base) * (1.0 - tiny) + self.lost[0],
            np.minimum(upper_times_exp(upper, self.base) * (1.0 + tiny) + self.lost[1], 1.0),
            beyond,
            part.loss + c,
        )
