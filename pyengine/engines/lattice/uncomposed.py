"""Answers without a composition, from Chernoff bounds and from the ends of the support."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property, kept
from pyengine.engines.answers import Answer, ErrorCurve, complement_above, names
from pyengine.engines.lattice.chernoff import chernoff_bounds
from pyengine.engines.lattice.coarse_cumulants import Part
from pyengine.engines.lattice.support_end import SmallestLoss, smallest_loss
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = [
    "EXCESS",
    "LARGEST",
    "SATURATED",
    "Uncomposed",
    "answer_of",
    "clip_curve",
    "put_both",
    "reverse",
    "uncomposed",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

SMALL = 1e-300  # below, absolute roundings of subnormal doubles are counted
LARGEST = 1e300  # a larger ε is replaced by it
SATURATED = 0.01  # overlap that needs no composition, relative to the tolerance
AT_END = 0.1  # largest spread of losses that count as the smallest one, relative to the tolerance
VANISHING = 5e-324  # the smallest double above 0
FEW = 128.0  # bound of the number of roundings in an answer without sums over cells
EXCESS = 1.0 / 3.0  # place of a value in its bracket: merging costs half of what splitting costs


def reverse(law: StepLaw) -> StepLaw:
    """The law of the reversed pair."""
    return law if getattr(law, "symmetric", False) else law.exchanged()


class Uncomposed:
    """Bounds for a composition from masses of single steps alone.

    ``tolerance`` and ``wanted`` are those of a `LatticePair`.
    """

    def __init__(self, parts: tuple[Part, ...], tolerance: float, wanted: str | None) -> None:
        self.parts, self.tolerance, self._wanted = parts, tolerance, wanted
        self._ends: dict[bool, SmallestLoss | None] = {}

    def curve(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """Bounds of T(A, B) at α in [0, 1], and where they are not narrow enough."""
        rest = complement_above(alpha)
        beta, gamma = Answer.exact(1.0 - alpha), Answer.exact(alpha.copy())
        beta.upper = rest
        is_double = 1.0 - beta.value == alpha
        beta.lower = np.where(is_double, beta.value, np.nextafter(beta.value, 0.0))
        c = np.where(alpha == 0.0, math.inf, np.where(alpha == 1.0, -math.inf, 0.0))
        curve, ahead = ErrorCurve(beta, gamma, c), (alpha > 0.0) & (alpha < 1.0)
        if not self.parts:
            return curve, np.zeros(alpha.size, dtype=np.bool_)
        enough = SATURATED * self.tolerance if self._wanted == "gamma" else VANISHING
        if ahead.any() and self._least_ratio * (1.0 - alpha[ahead].max()) <= 2.0 * enough:
            most = np.ones(alpha.size)
            most[ahead] = self._most_beta(alpha[ahead])
            apart = ahead & (most <= enough)
            put_both(beta, gamma, apart, np.zeros(int(apart.sum())), most[apart], 0.0)
            ahead &= ~apart
        if ahead.any():
            self._trade_off_at_ends(alpha, ahead, beta, gamma, c)
        none = alpha == 0.0
        least, most = (np.full(int(none.sum()), x) for x in self.lost(True))
        put_both(gamma, beta, none, least, most, 0.5)
        clip_curve(alpha, curve)
        return curve, ahead

    def _trade_off_at_ends(
        self,
        alpha: FloatArray,
        ahead: npt.NDArray[np.bool_],
        beta: Answer,
        gamma: Answer,
        c: FloatArray,
    ) -> None:
        """Enter bounds from the events of the smallest and largest loss, and clear ``ahead``."""
        own, other = self.end(False), self.end(True)
        found = []
        if own is not None:
            lower, upper = own.beta(alpha, self.lost(False)[1])
            found.append((beta, gamma, 1.0 - alpha <= own.mass, lower, upper, own.least, 0.0))
        if other is not None:
            lower, upper = other.gamma_of_reverse(alpha, self.lost(True))
            within = alpha <= other.mass_of_second
            found.append((gamma, beta, within, lower, upper, -other.least, 1.0))
        for small, large, within, lower, upper, slope, share in found:
            size = np.maximum(upper, VANISHING)
            if self._wanted != ("beta" if small is beta else "gamma"):
                rest = np.maximum(1.0 - upper, VANISHING)
                size = np.minimum(size, rest) if self._wanted is None else rest
            there = ahead & within & (upper - lower <= self.tolerance * size)
            put_both(small, large, there, lower[there], upper[there], share)
            c[there] = slope
            ahead &= ~there

    @cached_property
    def _least_ratio(self) -> float:
        """Lower bound of B(E)/A(E) over all events: e to the smallest loss."""
        if self.lost(False)[1] > 0.0:
            return 0.0
        return fn.exp(min(self.smallest(False, of_all=True)[0], 0.0))

    def _most_beta(self, alpha: FloatArray) -> FloatArray:
        """Chernoff's upper bounds of the trade-off function at α in (0, 1)."""
        log_beta = np.minimum(chernoff_bounds(self.parts).log_beta(alpha), 0.0)
        return np.asarray(fn.exp(log_beta * (1.0 - 4.0 * UNIT)) * (1.0 + 16.0 * UNIT) + VANISHING)

    def profile(self, epsilon: FloatArray) -> tuple[Answer, npt.NDArray[np.bool_]]:
        """Bounds of H_{e^ε}(A‖B), and where they are not narrow enough."""
        overlap = self._most_overlap(epsilon)
        told_apart = overlap <= SATURATED * self.tolerance
        answer = answer_of(1.0 - overlap - UNIT, np.ones(epsilon.size), EXCESS)
        lost, finite = self.lost(False), np.minimum(epsilon, LARGEST)
        rest = ~told_apart
        end = self.end(False)
        if end is not None and rest.any():
            lower, upper = end.profile(finite)
            lower, upper = (lower + lost[0]) * (1.0 - UNIT), (upper + lost[1]) * (1.0 + 2.0 * UNIT)
            upper = np.minimum(upper, 1.0)
            narrow = rest & (upper - lower <= self.tolerance * upper)
            answer.put(narrow, answer_of(lower[narrow], upper[narrow], 1.0))
            rest &= ~narrow
        return answer, rest

    def _most_overlap(self, epsilon: FloatArray) -> FloatArray:
        """Chernoff's upper bounds of 1 - H_{e^ε}(A‖B)."""
        log_overlap = chernoff_bounds(self.parts).log_overlap(np.minimum(epsilon, LARGEST))
        return np.asarray(
            fn.exp(np.minimum(log_overlap, 0.0) * (1.0 - 4.0 * UNIT)) * (1.0 + 16.0 * UNIT)
        )

    def end(self, is_reversed: bool) -> SmallestLoss | None:
        """The event of the smallest losses, if they agree to `AT_END` of the tolerance."""
        if is_reversed not in self._ends:
            width = AT_END * self.tolerance
            parts = tuple((reverse(law), n) for law, n in self.parts)
            found = smallest_loss(
                parts if is_reversed else self.parts, self.smallest(is_reversed), width
            )
            is_near = found is not None and found.most - found.least <= width
            self._ends[is_reversed] = found if is_near else None
        return self._ends[is_reversed]

    def smallest(self, is_reversed: bool, of_all: bool = False) -> tuple[float, float]:
        """Bounds of the smallest finite loss: within the laws' supports, or ``of_all`` losses."""
        lows, off = [], 0.0
        for law, number in self.parts:
            ends = law.limits() if of_all else law.support()
            low = -ends[1] if is_reversed else ends[0]
            if low == -math.inf:
                return low, low
            lows.append(number * low)
            # errors of the end, and of the product
            off += number * law.support_error() + 2.0 * UNIT * abs(lows[-1])
        low = math.fsum(lows)
        off = off * (1.0 + 2.0**-40) + 2.0 * UNIT * abs(low)
        return low - off, low + off

    @property
    def left_out(self) -> float:
        """Bound of the mass of finite losses beyond the supports of the laws."""
        return math.fsum(number * law.left_out() for law, number in self.parts)

    def lost(self, is_reversed: bool) -> tuple[float, float]:
        """Bounds of the mass of A (of B if reversed) where the other law has none."""
        log_kept = 0.0
        for law, number in self.parts:
            alone = law.infinite()[1 if is_reversed else 0]
            log_kept += number * fn.log1p(-alone) if alone < 1.0 else -math.inf
        mass = 0.0 - fn.expm1(log_kept)
        # masses below the normal doubles are rounded up, so that none of them is 0
        least = mass * (1.0 - 2.0**-47) if mass > SMALL else 0.0
        return least, min(mass * (1.0 + 2.0**-47), 1.0)


@kept(256, lambda _: 4096)
def uncomposed(parts: tuple[Part, ...], tolerance: float, wanted: str | None) -> Uncomposed:
    """Return the cached `Uncomposed` of a composition."""
    return Uncomposed(parts, tolerance, wanted)


def clip_curve(alpha: FloatArray, curve: ErrorCurve) -> None:
    """Clip both errors to 0 <= β <= 1 - α and α <= γ <= 1, in place."""
    rest = complement_above(alpha)
    for answer, low, high in ((curve.gamma, alpha, 1.0), (curve.beta, 0.0, rest)):
        for part in (answer.lower, answer.value, answer.upper):
            np.clip(part, low, high, out=part)


def answer_of(
    lower: FloatArray, upper: FloatArray, share: float | FloatArray, roundings: float = FEW
) -> Answer:
    """An answer from brackets, with values at ``share`` of their width.

    Bounds below `SMALL` are widened by ``roundings`` times the smallest double: relative allowances
    do not cover subnormal numbers.
    """
    off = roundings * VANISHING
    lower = np.where(lower < SMALL, np.maximum(lower - off, 0.0), lower)
    upper = np.where((upper > 0.0) & (upper < SMALL), upper + off, upper)
    with np.errstate(invalid="ignore"):
        value = np.where(upper > lower, lower + share * (upper - lower), upper)
    return Answer(np.clip(value, lower, upper), lower, upper, names("lattice", lower.size), True)


def put_both(
    small: Answer,
    large: Answer,
    where: npt.NDArray[np.bool_],
    lower: FloatArray,
    upper: FloatArray,
    share: float,
    roundings: float = FEW,
) -> None:
    """Enter a bracket of one of β and γ, and of the other, as β + γ = 1."""
    if not where.any():
        return
    answer = answer_of(lower, upper, share, roundings)
    small.put(where, answer)
    rounded = 2.0**-52
    other = Answer(
        1.0 - answer.value, 1.0 - upper - rounded, 1.0 - lower + rounded, answer.engine, True
    )
    large.put(where, other)
