"""One step of any law, from its masses below and above the threshold itself.

A threshold c is the edge between the cells {L <= c} and {L > c}; the law bounds the error of the
edge (docs/theory/finite, Lemma 6).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine.engines.exact.levels import SUBNORMAL, ClosedLaw, KnownProfile, Tails
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["SingleStep"]

FloatArray = npt.NDArray[np.float64]

VANISHES = -740.0  # log of a mass that counts as 0: below what `SUBNORMAL` covers
LARGEST = 1e300  # largest end of the support that is searched
FAR = 50.0  # largest error of an edge in the exponential of a bound


class SingleStep(ClosedLaw):
    """One step as a `ComposedLaw`."""

    def __init__(self, law: StepLaw) -> None:
        self._law = law
        low, high = law.support()
        self._support = (
            low if math.isfinite(low) else -self._end(-1.0),
            high if math.isfinite(high) else self._end(1.0),
        )

    def _end(self, sign: float) -> float:
        """Loss beyond which the masses of both laws are below all doubles."""
        end = 1.0
        while end < LARGEST:
            cells = self._law.cells(np.array([sign * end]))
            outside = -1 if sign > 0.0 else 0
            if max(cells.log_a[outside], cells.log_b[outside]) < VANISHES:
                break
            end *= 2.0
        return end

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss; if unbounded, the largest with a mass in doubles."""
        return self._support

    def lowest(self) -> tuple[float, float]:
        """Lower and upper bound of the infimum of all finite losses."""
        low, off = self._law.limits()[0], self._law.support_error()
        return low - off, low + off

    def infinite(self) -> tuple[float, float]:
        """Mass of A at loss -inf and of B at loss inf."""
        return self._law.infinite()

    def alone(self) -> tuple[float, float, float]:
        """Mass of A at loss -inf as a sum of two doubles, and a bound of its absolute error."""
        lost = self.infinite()[0]
        return lost, 0.0, 4.0 * UNIT * lost + (5e-324 if 0.0 < lost < 1e-300 else 0.0)

    def _edges(
        self, c: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Logs of A's mass above and below c and of B's, without infinite losses; error and shift.

        Masses are sums over cells, of positive terms, so they keep their relative error.
        """
        edges, place = np.unique(c, return_inverse=True)
        cells = self._law.cells(edges)
        # weight errors by mass: a cell between nearly equal thresholds is imprecise, but light
        sums, off = [], np.zeros(edges.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_error = fn.log(cells.error)
            for log_mass in (cells.log_a, cells.log_b):
                below, above = _both_sums(log_mass)
                for mass, part in zip(
                    (below, above), _both_sums(log_mass + log_error), strict=True
                ):
                    off = np.fmax(off, fn.exp(part - mass))  # nothing where there is no mass
                sums += [above[place], below[place]]
        size = np.max([np.where(np.isfinite(x), np.abs(x), 0.0) for x in sums], axis=0)
        rounds = 4.0 * edges.size.bit_length()
        error = off[place] * (1.0 + 64.0 * UNIT * (rounds + size))
        error += UNIT * (8.0 + rounds * (1.0 + size))
        return sums[0], sums[1], sums[2], sums[3], error, cells.shift[place]

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        a_lost, b_lost = self.infinite()
        *logs, error, shift = self._edges(c)
        a_above, a_below, b_above, b_below = (fn.exp(x) for x in logs)
        error = error + 4.0 * UNIT
        return Tails(a_above, a_below + a_lost, b_above + b_lost, b_below, error, shift)

    def profile(self, epsilon: FloatArray, low: FloatArray | None = None) -> KnownProfile:
        """A(L <= -ε) - e^ε B(L <= -ε) for finite losses L.

        An error s of the edge changes the difference by at most (e^s - 1) A(L <= -ε + s); ``low``,
        which is added to ε, counts as part of s.
        """
        _, log_a, _, log_b, error, shift = self._edges(-epsilon)
        if low is not None:
            shift = shift + np.abs(low)
        # losses within the error of the edge may be on either side
        off = self._law.support_error()
        beyond = self._edges(-epsilon + 2.0 * (np.where(np.isfinite(shift), shift, 0.0) + off))
        near = fn.exp(np.maximum(log_a, beyond[1]))
        with np.errstate(under="ignore"):
            a_below = fn.exp(log_a)
            # at most A's mass, except for rounding: every loss here is at most -ε
            scaled = fn.exp(np.minimum(epsilon + log_b, log_a))
        inner = a_below - scaled
        rounding = 8.0 * UNIT * (1.0 + np.abs(epsilon))
        moved = fn.expm1(np.minimum(shift + off, FAR))  # at `FAR` the bound exceeds all mass
        bound = (error + rounding) * (a_below + scaled) + 2.0 * moved * near
        bound += SUBNORMAL + self._law.left_out()
        vanishes = epsilon > -(self._law.limits()[0] - off)
        value, error = np.where(vanishes, 0.0, inner), np.where(vanishes, 0.0, bound)
        return KnownProfile(value, error, np.where(vanishes, 0.0, scaled))


def _both_sums(log_mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logs of the sums below and above each edge."""
    return _running(log_mass)[:-1], _running(log_mass[::-1])[::-1][1:]


def _running(log_mass: FloatArray) -> FloatArray:
    """Logs of running sums, by doubling their length, so each has O(log n) roundings."""
    sums, length = log_mass.copy(), 1
    while length < sums.size:
        sums[length:] = fn.logaddexp(sums[length:], sums[:-length])
        length *= 2
    return sums
