"""Sums over tails of a composed law, at the lattice points within the reach of its place."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.engines.lattice.compose import PlaceComposition
from pyengine.engines.lattice.discretise import doubles
from pyengine.engines.lattice.fft_convolution import Sum
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["NEAR", "Bracket", "OnSumRange", "SumRange", "interpolate"]

FloatArray = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

SUM_ERROR = 2.0**-51  # relative rounding of a sum per term of a block: 4u (Lemma 12)
# offsets tried around the best index; bounds vary little there, and any index is valid
NEAR = (-5, -3, -2, -1, 0, 1, 2, 4)


class Bracket(NamedTuple):
    """Bounds; ``beyond`` is -1, 0 or 1 where the answer lies left of, within or right of the reach.

    ``c`` is the threshold of the line that bounds a trade-off function.  For a profile, ``a`` and
    ``b`` are a lower bound of A(E) and an upper bound of B(E) of the best event E.
    """

    lower: FloatArray
    upper: FloatArray
    beyond: Indices
    c: FloatArray
    a: FloatArray
    b: FloatArray

    @classmethod
    def empty(cls, size: int) -> Bracket:
        """Return arrays of zeros, to be filled."""
        none = [np.zeros(size) for _ in range(5)]
        return cls(none[0], none[1], np.zeros(size, dtype=np.int64), *none[2:])

    @classmethod
    def of(
        cls,
        lower: FloatArray,
        upper: FloatArray,
        beyond: Indices,
        c: FloatArray,
    ) -> Bracket:
        """Return a bracket without a test."""
        none = np.zeros(lower.size)
        return cls(lower, upper, beyond, c, none, none)


class SumRange:
    """The slice: indices within reach, and tail sums over the whole window at these."""

    def __init__(self, composed: PlaceComposition) -> None:
        plan = composed.terms[0].plan
        self.h = plan.spacing
        high = float(plan.centre)
        self._centre = (high, float(plan.centre - type(plan.centre)(high)))
        low, top = ((x - high) / self.h for x in plan.place.reach)
        starts = [term.plan.first + term.offset for term in composed.terms]
        ends = [
            # at most up to the largest loss of the sum
            start + min(t.plan.points, max(t.highest - t.plan.first, 0) + 2) - 1
            for start, t in zip(starts, composed.terms, strict=True)
        ]
        self.first = max(math.floor(max(low, -1e15)), min(starts))
        self.last = max(min(math.ceil(min(top, 1e15)), max(ends)), self.first)
        self.points = max(term.plan.points for term in composed.terms)
        self.is_open = plan.place.reach[1] == math.inf
        self.index = np.arange(self.first, self.last + 1, dtype=np.float64)
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
        """Bound of the absolute error of `loss` and `relative`, except rounding of the result."""
        return 4.0 * UNIT * (abs(self._centre[0]) + abs(self.h * self.middle))

    def exponent(self, part: Sum, base: float, index: FloatArray) -> FloatArray:
        """log_scale - rate i - base at indices i: the log of a mass unit, relative to e^base."""
        at_middle = part.log_scale - part.rate * (self.middle + part.shift) - base
        return np.asarray(at_middle - part.rate * (index - (self.middle + part.shift)))

    def factor(self, part: Sum, base: float, index: FloatArray) -> FloatArray:
        """Exponential of the same; its relative error is within `error`."""
        with np.errstate(over="ignore"):
            return np.asarray(fn.exp(self.exponent(part, base, index)))

    def error(self, part: Sum, log_q: float) -> float:
        """Bound of the relative error of a tail sum times its factor."""
        blocks = 2.0 * float(lib.PE_SUM_BLOCK) + part.mass.size / lib.PE_SUM_BLOCK
        farthest = max(abs(self.index[0]), abs(self.index[-1])) + 2.0 * abs(part.shift)
        exponents = abs(part.rate) * farthest + abs(part.log_scale)
        sums = SUM_ERROR * blocks * (1.0 + abs(log_q))
        return float(part.scale_error + sums + UNIT * (32.0 + 8.0 * exponents))

    def reach_of_profile(self, part: Sum, log_q: float) -> float:
        """Total weight of the noise in a sum of the profile: Σ (1 - e^{-jh}) q^j over j >= 0."""
        gain = -fn.expm1(-self.h)
        most = part.mass.size * -fn.expm1(-self.h * part.mass.size)
        if log_q == 0.0:
            return most
        q = fn.exp(log_q)
        return min(q * gain / (fn.expm1(log_q) * fn.expm1(log_q - self.h)) * 1.001, most)

    def reach_of(self, part: Sum, log_q: float) -> float:
        """Total weight of the noise in a discounted sum: Σ q^j over j >= 0."""
        return min(-1.0 / fn.expm1(log_q), part.mass.size) if log_q < 0.0 else part.mass.size

    def _up_to(self, part: Sum, last: int) -> FloatArray:
        """Masses at or below an index, with zeros beyond the window."""
        size = last - part.first + 1
        if size <= part.mass.size:
            return part.mass[: max(size, 0)]
        return np.concatenate([part.mass, np.zeros(size - part.mass.size)])

    def _from(self, sums: FloatArray, part: Sum, first: int, last: int) -> FloatArray:
        """Restrict sums that start at the window's first index to indices first ... last."""
        if first >= part.first:
            return sums[first - part.first :]
        below = np.zeros(min(part.first, last + 1) - first)
        return np.concatenate([below, sums])

    def upward(self, part: Sum, log_q: float, first: int, last: int) -> FloatArray:
        """Discounted sums Σ y_k q^{m-k} over k <= m, m = first ... last; unshifted indices."""
        y = self._up_to(part, last)
        sums = np.empty(y.size)
        lib.pe_discounted_sums(y.size, doubles(y), log_q, doubles(sums, True))
        return self._from(sums, part, first, last)

    def profile(self, part: Sum, log_q: float) -> FloatArray:
        """Sums Σ y_k q^{m-k} (1 - e^{-h(m-k)}) over k <= m, at the indices m of the slice."""
        y = self._up_to(part, self.last)
        below, profile = np.empty(y.size), np.empty(y.size)
        lib.pe_profile_sums(
            y.size, doubles(y), log_q, self.h, doubles(below, True), doubles(profile, True)
        )
        return self._from(profile, part, self.first, self.last)

    def downward(self, part: Sum, log_q: float) -> FloatArray:
        """Discounted sums Σ y_k q^{k-m} over k > m, at the indices m of the slice."""
        y = np.ascontiguousarray(part.mass[: self.first - part.first : -1])
        sums = np.zeros(y.size + 1)
        if y.size:
            lib.pe_discounted_sums(y.size, doubles(y), log_q, doubles(sums[1:], True))
        # sums[i] is discounted to its last term; one more factor q takes it to the index below
        return fn.exp(log_q) * sums[::-1][: self.index.size]


class OnSumRange:
    """Base of classes with arrays on a slice, kept as ``_slice``."""

    _slice: SumRange

    @property
    def spacing(self) -> float:
        """Spacing of the lattice."""
        return self._slice.h

    @property
    def points(self) -> int:
        """Number of points of the longest window."""
        return self._slice.points


def interpolate(x: FloatArray, y: FloatArray, at: Indices, x0: FloatArray) -> FloatArray:
    """Chord of (x, y) from index at - 1 to at, evaluated at x0; (0, 0) precedes index 0."""
    first = at == 0
    x1, y1 = (np.where(first, 0.0, z[np.maximum(at - 1, 0)]) for z in (x, y))
    span = x[at] - x1
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(span > 0.0, (x0 - x1) / span, 1.0)
    return np.asarray(y1 + np.clip(share, 0.0, 1.0) * (y[at] - y1))
