"""Certified functionals of a composition from A's upper and B's lower tail of its loss S.

They serve thresholds between the means of S under A and B, where both tails are small.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.compose import PlaceComposition
from pyengine.engines.lattice.fft_convolution import Sum
from pyengine.engines.lattice.tail_sums import NEAR, Bracket, OnSumRange, SumRange, interpolate
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.scaled import lower_times_exp, upper_times_exp

__all__ = ["MiddleTails"]

FloatArray = npt.NDArray[np.float64]

SUBNORMAL = 1e-320  # absolute error of an exponential below the normal range


class MiddleTails(OnSumRange):
    """A's upper and B's lower tail, of a composition that is not ``outer``.

    ``a`` and ``b`` are upper bounds of A(K > m) and B(K <= m) for the index K of tests (merged
    cells), in units of e^base and e^base_b; ``spread_a`` and ``spread_b`` are lower bounds of the
    same tails of the split pair.
    """

    def __init__(self, composition: PlaceComposition) -> None:
        part = self._slice = SumRange(composition)
        (composed,) = composition.terms
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
            spread.first,
            spread.shift,
        )
        self.spread_b = self._tail(of_b, self.base_b, False, False)

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
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
            return values * part.factor(sums, base, part.index + sums.shift) * (1.0 + error)
        values = np.maximum(values * (1.0 - error) - noise - sums.above - sums.below, 0.0)
        return values * part.factor(sums, base, part.index + sums.shift) * (1.0 - error)

    def overlap(self, c: FloatArray) -> Bracket:
        """Bounds of G_{e^-c}(A, B) = ∫ min(dA, e^-c dB)."""
        part, size = self._slice, self.a.size
        position = part.relative(c)
        floor = np.floor((position - part.offset[0]) / part.h)
        index = np.clip(floor, -1.0, float(size)).astype(np.int64)
        beyond = np.where(index < 1, -1, np.where(index >= size - 1, 1, 0))
        index = np.clip(index, 0, size - 1)
        doubt = 2.0 * part.position_error + 8.0 * UNIT * (np.abs(position) + np.abs(c))
        error = doubt + UNIT * (64.0 + 8.0 * abs(self.base))
        # masses of B are relative to e^base_b, and base_b = base + loss
        with np.errstate(over="ignore"):
            weight = fn.exp(-position)
        lower = self.spread_a[index] + weight * self.spread_b[index]
        upper = np.full(c.size, math.inf)
        for step in NEAR:
            near = np.clip(index + step, 0, size - 1)
            upper = np.minimum(upper, self.a[near] + weight * self.b[near])
        upper = upper_times_exp(upper, self.base) * (1.0 + error) + SUBNORMAL
        lower = lower_times_exp(lower, self.base) * (1.0 - error)
        return Bracket.of(lower, np.minimum(upper, 1.0), beyond, c)

    def second_from_first(self, alpha: FloatArray) -> Bracket:
        """Bounds of β(α): the smallest B(not E) of events E = {S > c} with A(E) = α."""
        part = self._slice
        error = UNIT * (16.0 + 4.0 * abs(self.base))
        scaled = fn.exp(fn.log(alpha) - self.base)
        less, more = scaled * (1.0 - error), scaled * (1.0 + error) + SUBNORMAL
        falling = self.a[::-1]
        index = self.a.size - np.searchsorted(falling, less, side="right")  # first with a <= less
        beyond = np.where(index < 1, -1, np.where(index >= self.a.size, 1, 0))
        smaller = np.minimum(index, self.a.size - 1)
        index = np.clip(index, 1, self.a.size - 1)
        upper = interpolate(-self.a, self.b, index, -less) * (1.0 + 16.0 * UNIT)
        # or, where one loss beyond the slice has much mass of both laws, a test that rejects on a
        # smaller event, and otherwise at random
        size = upper_times_exp(self.a[smaller], self.base) * (1.0 + error)
        part_of_b = np.divide(1.0 - alpha, 1.0 - size, where=size <= alpha, out=np.ones(alpha.size))
        upper = np.minimum(upper, self.b[smaller] * part_of_b * (1.0 + 16.0 * UNIT))
        upper = np.where(less < self.a[-1], math.inf, upper)
        lower, c = np.zeros(alpha.size), np.zeros(alpha.size)
        for step in NEAR:
            near = np.clip(index + step, 0, self.a.size - 1)
            line = fn.exp(part.offset[near]) * (self.spread_a[near] - more) + self.spread_b[near]
            c = np.where(line > lower, part.offset[near], c)
            lower = np.maximum(lower, line)
        error = 4.0 * part.position_error + UNIT * (64.0 + 8.0 * abs(self.base_b))
        lower = lower_times_exp(lower, self.base_b) * (1.0 - error)
        upper = upper_times_exp(upper, self.base_b) * (1.0 + error)
        return Bracket.of(lower, upper, beyond, part.loss + c)
