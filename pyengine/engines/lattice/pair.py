"""Questions on one ordered pair of laws, answered with certified brackets."""

from __future__ import annotations

import math
import sys

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import Answer, ErrorCurve, Questions
from pyengine.engines.lattice.coarse_cumulants import Part, scaled_tail
from pyengine.engines.lattice.lower_tails import LowerTails
from pyengine.engines.lattice.plan import MOST_POINTS
from pyengine.engines.lattice.refine import Search
from pyengine.engines.lattice.support_end import profile_at_end
from pyengine.engines.lattice.tail_sums import Bracket
from pyengine.engines.lattice.tilt_grid import STEP, TiltGrid, rungs_of
from pyengine.engines.lattice.uncomposed import (
    EXCESS,
    LARGEST,
    SATURATED,
    answer_of,
    clip_curve,
    put_both,
    reverse,
    uncomposed,
)
from pyengine.errors import AccuracyError
from pyengine.laws.base import overflow_of
from pyengine.laws.gaussian import GaussianLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import bisected
from pyengine.numerics.rounding import UNIT

__all__ = ["TOLERANCE", "LatticePair"]

FloatArray = npt.NDArray[np.float64]

TOLERANCE = 1e-4  # default relative width of a bracket
VANISHES = 710.0  # -log of a profile below which one place serves all: e^-710 is subnormal
BEYOND_LOST = 1e-6  # relative distance of δ above the mass at ε = ∞ that is surely resolved
JOINED_ERROR = 4.0  # of a joined noise, in u: half that of Σ 1/noise², root and quotient
MANY = 2.0 * MOST_POINTS  # roundings: more than a sum over a lattice has
CLOSE = 2e-11  # relative width that is tried for answers without a composition
NEAR_END = 0.05  # of the tolerance: a rung this near to the smallest loss serves all beyond


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    """The parts with all Gaussian steps joined to one, for which Σ 1/noise² is the same."""
    squares, others, own = [], [], 0.0
    for law, number in parts:
        noise = law.rough_noise()
        if noise is None:
            others.append((law, number))
        else:
            squares.append(number / noise[0] / noise[0])
            own = max(own, noise[1])
    if not squares:
        return tuple(others)
    square = math.fsum(squares)
    if not sys.float_info.min < square < math.inf:
        raise AccuracyError(
            "the lattice joins Gaussian steps whose noise multipliers, divided by the root of "
            f"their number, lie between 1e-154 and 1e154; the squares add up to {square:.1e}"
        )
    return (*others, (GaussianLaw(1.0 / math.sqrt(square), own + JOINED_ERROR), 1))


class LatticePair(Questions):
    """Questions on a composition of steps, answered with certified brackets.

    ``tolerance`` is the relative width of a bracket; of a trade-off function, that of the error
    ``wanted``, or of both (None).  Where it cannot be met, widths up to ``loosest`` are accepted.
    """

    def __init__(
        self,
        parts: list[Part],
        tolerance: float = TOLERANCE,
        wanted: str | None = None,
        loosest: float = 0.0,
    ) -> None:
        overflow = overflow_of(parts)
        if overflow is not None:
            raise AccuracyError(overflow)
        # double reversal removes reversals of symmetric laws, so that equal pairs compare equal
        self.parts = _joined([(reverse(reverse(law)), n) for law, n in parts if n > 0])
        self.tolerance, self.wanted = tolerance, wanted
        self.loosest = loosest
        self._rungs: dict[bool, TiltGrid] = {}
        self._simple = uncomposed(self.parts, tolerance, wanted)

    def rungs(self, is_reversed: bool) -> TiltGrid:
        """Rungs of the pair or of its reverse."""
        if is_reversed not in self._rungs:
            self._rungs[is_reversed] = rungs_of(
                self.reversed().parts if is_reversed else self.parts
            )
        return self._rungs[is_reversed]

    def reversed(self) -> LatticePair:
        """Questions on the reversed pair."""
        parts = [(reverse(law), number) for law, number in self.parts]
        return LatticePair(parts, self.tolerance, self.wanted, self.loosest)

    def wanting(self, wanted: str | None) -> LatticePair:
        """The same questions, with a narrow bracket of one error, or of both (None)."""
        if wanted == self.wanted:
            return self
        return LatticePair(list(self.parts), self.tolerance, wanted, self.loosest)

    def beside(self, remove: LatticePair) -> Questions:
        """The hull of this order and of ``remove``."""
        from pyengine.engines.lattice.both import LatticeBothOrders

        return LatticeBothOrders(self, remove)

    def _search(self, rungs: TiltGrid, outer: bool, share: str, last: int | None = None) -> Search:
        """The search for brackets on the given rungs, up to rung ``last``."""
        if last is None:
            last = (rungs.lower_rungs if outer else rungs.middle_rungs()) - 1
        return Search(rungs, outer, share, self.tolerance, self.loosest, last)

    def tests(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each c, a lower bound of A(E) and an upper bound of B(E) of one event E.

        E is near {S <= c}, the best event for the profile at c; it is empty below all losses.
        """
        a, b = np.zeros(c.size), np.zeros(c.size)
        some = c >= self._lowest(False)
        end = self._simple.end(False)
        if end is not None:
            a[some], b[some] = end.mass, min(fn.exp(end.most) * (1.0 + 16.0 * UNIT), 1.0)
            # F is the best event where nearly all of A lies there
            some &= end.mass < 1.0 - SATURATED * self.tolerance
        if self.parts and some.any():
            found = self._profile(c[some])
            a[some], b[some] = found.a, found.b
        return a, b

    def _profile(self, c: FloatArray, floor: FloatArray | None = None) -> Bracket:
        rungs = self.rungs(False)
        rung = np.searchsorted(-rungs.marks[0], -c)
        # where the profile is below all doubles, a place nearer to the mean bounds it
        vanishes = int(np.searchsorted(-rungs.marks[3], VANISHES)) + 1
        search = self._search(rungs, True, "profile", min(vanishes, rungs.lower_rungs - 1))
        return search.brackets(lambda tails, x: tails.at(x), c, rung, floor)

    def rough_profile(self, epsilon: FloatArray, floor: FloatArray) -> Answer:
        """Bounds of H_{e^ε}(A‖B) at ε >= 0, of a width relative to max(H, ``floor``)."""
        if not self.parts:
            return Answer.exact(np.zeros(epsilon.size))
        loss, _, _, log_profile = self.rungs(False).marks
        with np.errstate(divide="ignore"):
            deep = np.searchsorted(-log_profile, -fn.log(0.02 * self.tolerance * floor))
        # H falls with ε: where it is far below the floor, a smaller ε bounds it
        least = np.append(loss, -math.inf)[deep]
        far = -epsilon < least
        answer = self.profile(np.where(far, np.maximum(-least, 0.0), epsilon), floor)
        answer.lower[far] = self._simple.lost(False)[0]
        return answer

    def profile(self, epsilon: FloatArray, floor: FloatArray | None = None) -> Answer:
        """Certified bounds of H_{e^ε}(A‖B) at ε >= 0."""
        if not self.parts:
            return Answer.exact(np.zeros(epsilon.size))
        answer, rest = self._simple.profile(epsilon)
        if rest.any():
            answer.put(
                rest, self._open_profile(epsilon[rest], None if floor is None else floor[rest])
            )
        return answer

    def overlap(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of 1 - H_{e^ε}(A‖B), narrow where that is small, for -ε between the means."""
        rungs = self.rungs(False)
        roots, _, means = rungs.survey.table
        root = np.interp(-epsilon, means, roots)
        rung = np.clip((root - 1.0) / STEP, 0.0, rungs.middle_rungs() - 1.0).astype(np.int64)
        search = self._search(rungs, False, "a")
        found = search.brackets(lambda tails, x: tails.overlap(x), -epsilon, rung)
        return found.lower, found.upper

    def is_mostly_apart(self, epsilon: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether H_{e^ε}(A‖B) is above a half, roughly: -ε lies between the means."""
        if not self.parts:
            return np.zeros(epsilon.size, dtype=np.bool_)
        return np.asarray(-epsilon > self.rungs(False).survey.cumulants(0.0)[1])

    def _open_profile(self, epsilon: FloatArray, floor: FloatArray | None) -> Answer:
        """The same where `Uncomposed` has no bracket narrow enough."""
        lower, upper = np.empty(epsilon.size), np.empty(epsilon.size)
        lost = self._simple.lost(False)
        # within rounding of the smallest loss, relative widths cannot be met
        lowest, highest = self._simple.smallest(False)
        finite = np.minimum(epsilon, LARGEST)
        above = -finite - lowest
        end = (above < 2.0**-40 * finite) | (epsilon == math.inf)
        lower[end] = lost[0]
        inside = -fn.expm1(-np.maximum(above[end], 0.0)) * (1.0 + 2.0**-50)
        inside = np.where(epsilon[end] == math.inf, 0.0, inside + self._simple.left_out)
        upper[end] = np.minimum((lost[1] + inside) * (1.0 + 2.0**-52), 1.0)
        some = ~end
        for i in np.flatnonzero(some & (above < math.inf)).tolist():
            beside = profile_at_end(self.parts, -float(epsilon[i]), (lowest, highest))
            if beside is not None and beside[1] - beside[0] <= self.tolerance * beside[1]:
                lower[i] = (lost[0] + beside[0]) * (1.0 - 2.0**-50)
                upper[i] = min((lost[1] + beside[1]) * (1.0 + 2.0**-50), 1.0)
                some[i] = False
        if some.any():
            found = self._profile(-epsilon[some], None if floor is None else floor[some])
            lower[some], upper[some] = (
                found.lower,
                np.minimum(found.upper + self._simple.left_out, 1.0),
            )
        return answer_of(lower, upper, EXCESS, MANY)

    def _lowest(self, is_reversed: bool) -> float:
        """A lower bound of the smallest loss in the supports of the laws."""
        return self._simple.smallest(is_reversed)[0]

    def epsilon(self, delta: FloatArray) -> Answer:
        """Certified bounds of the smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        if not self.parts:
            return Answer.exact(np.zeros(delta.size))
        lower, upper = np.zeros(delta.size), np.zeros(delta.size)
        lost = self._simple.lost(False)
        never = delta <= lost[0]
        if lost[0] > 0.0:
            lower[never] = upper[never] = math.inf
        else:
            upper[never], lower[never] = (
                0.0 - x for x in self._simple.smallest(False, of_all=True)
            )
            if lost[1] > 0.0:
                upper[never] = math.inf
        # δ is within rounding of the mass at ε = ∞: ε may be infinite, and is at least that of a
        # slightly larger δ
        unclear = ~never & (delta < lost[1])
        delta = np.where(unclear, min(lost[1] * (1.0 + BEYOND_LOST), 1.0), delta)
        end, share = self._simple.end(False), np.full(delta.size, EXCESS)
        if end is not None:
            low, high = end.epsilon(delta, lost)
            at_end = ~never & ~unclear & (high - low <= self.tolerance * high)
            lower[at_end], upper[at_end] = low[at_end], high[at_end]
            share[at_end] = 1.0
            never |= at_end
            if never.all():
                return answer_of(np.maximum(lower, 0.0), np.maximum(upper, 0.0), share)
        rungs = self.rungs(False)
        # δ(0) is computed only where δ may exceed it
        likely = float(np.interp(0.0, rungs.marks[0][::-1], rungs.marks[3][::-1])) - 2.0
        near = ~never & (delta > fn.exp(min(likely, -1.0)))
        some = ~never
        if near.any():
            try:
                at_zero = self.profile(np.zeros(1), np.array([float(delta[near].min())]))
            except AccuracyError:  # losses of very different sizes: ε may still have a bracket
                near[:] = False
            else:
                some &= delta < at_zero.upper[0]
                near &= delta >= at_zero.lower[0]
        if some.any():
            with np.errstate(divide="ignore"):
                log_delta = fn.log(np.maximum(delta[some] - lost[0], 0.0))
            rung = np.searchsorted(-rungs.marks[3], -log_delta)
            deviation = math.sqrt(rungs.survey.cumulants(0.0)[2])
            scale = deviation / (1.0 + np.sqrt(np.maximum(-2.0 * log_delta, 0.0)))
            last = rungs.near_end(NEAR_END * self.tolerance * abs(rungs.lowest))
            try:
                found = self._search(rungs, True, "epsilon", last).brackets(
                    lambda tails, x: self._near_end(tails.epsilon(x)), delta[some], rung, scale
                )
            except AccuracyError:
                highest = -self._simple.smallest(False)[0]
                if highest == math.inf:
                    raise
                lower[some], upper[some] = self._between_profiles(delta[some], highest)
            else:
                lower[some], upper[some] = found.lower, found.upper
            lower[near] = 0.0
        upper[unclear] = math.inf
        return answer_of(np.maximum(lower, 0.0), np.maximum(upper, 0.0), share, MANY)

    def _between_profiles(self, delta: FloatArray, highest: float) -> tuple[FloatArray, FloatArray]:
        """Bounds of ε by bisecting profiles, if no lattice resolves both the bulk and ε."""
        ends = np.zeros(delta.size), np.full(delta.size, highest)

        def is_close(low: FloatArray, high: FloatArray) -> FloatArray:
            return np.asarray(high - low <= 0.25 * self.tolerance * high)

        lower, _ = bisected(lambda x: self.profile(x).lower > delta, *ends, is_close=is_close)
        ends = lower, ends[1]
        _, upper = bisected(lambda x: self.profile(x).upper > delta, *ends, is_close=is_close)
        return lower, upper

    def _near_end(self, found: Bracket) -> Bracket:
        """The bracket, cut at minus the smallest loss, which no ε exceeds."""
        end = -self._simple.smallest(False, of_all=True)[0]
        return found._replace(upper=np.minimum(found.upper, end))

    def _end_of_first(self, tails: LowerTails, mass: FloatArray) -> Bracket:
        """Brackets of γ; B's masses are at most e^{-lowest} of A's, the smallest reversed loss."""
        found = tails.first_from_second(mass)
        lowest = self._lowest(True)
        if lowest == -math.inf:
            return found
        with np.errstate(over="ignore"):
            most = self._simple.lost(True)[1] + mass * fn.exp(-lowest) * (1.0 + 2.0**-45)
        return found._replace(
            upper=np.minimum(found.upper, most), c=np.where(most < found.upper, lowest, found.c)
        )

    def _end_of_second(self, tails: LowerTails, mass: FloatArray) -> Bracket:
        """Brackets of β; B's masses are at least e^{lowest} of A's, the smallest loss."""
        found = tails.second_from_first(mass)
        lowest = self._lowest(False)
        if lowest == -math.inf:
            return found
        least = (mass - self._simple.lost(False)[1]) * fn.exp(lowest) * (1.0 - 2.0**-45)
        return found._replace(
            lower=np.maximum(found.lower, least), c=np.where(least > found.lower, lowest, found.c)
        )

    def _scale(self, computed: str, where: npt.NDArray[np.bool_]) -> FloatArray | None:
        """Smallest size that a width is relative to, if the other error is wanted; else None."""
        if self.wanted in (None, computed):
            return None
        return np.full(int(where.sum()), 0.5)

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, npt.NDArray[np.bool_]]:
        """Certified bounds that need no composition, and where they are narrow enough."""
        curve, rest = self._simple.curve(alpha)
        if (~rest & (alpha > 0.0) & (alpha < 1.0)).any() and self.tolerance > CLOSE:
            closer, wide = uncomposed(self.parts, CLOSE, self.wanted).curve(alpha)
            curve.put(~wide, closer.taken(~wide))
        return curve, ~rest

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        """Both errors at α in (0, 1) by composing, with the loss c of the best test."""
        curve, c = ErrorCurve.trivial(alpha), np.zeros(alpha.size)
        beta, gamma = curve
        log_alpha, log_rest = fn.log(alpha), fn.log1p(-alpha)
        total, mean, variance = self.rungs(False).survey.cumulants(1.0)
        at_b = total - mean + fn.log(scaled_tail(math.sqrt(max(variance, 1e-300))))
        is_lower = alpha > 0.5
        is_upper = (log_alpha <= at_b) & ~is_lower
        is_middle = ~is_lower & ~is_upper
        for where, is_reversed, log_x, x, (small, large), name in (
            (is_upper, True, log_alpha, alpha, (gamma, beta), "gamma"),
            (is_lower, False, log_rest, 1.0 - alpha, (beta, gamma), "beta"),
        ):
            if not where.any():
                continue
            rungs = self.rungs(is_reversed)
            rung = np.searchsorted(-rungs.marks[2 if is_reversed else 1], -log_x[where])
            last = rungs.near_end(NEAR_END * self.tolerance)
            search = self._search(rungs, True, "a" if is_reversed else "b", last)
            ask = self._end_of_first if is_reversed else self._end_of_second
            found = search.brackets(ask, x[where], rung, self._scale(name, where))
            share = EXCESS if is_reversed else 1.0 - EXCESS
            put_both(small, large, where, found.lower, found.upper, share, MANY)
            c[where] = -found.c if is_reversed else found.c
        if is_middle.any():
            rungs = self.rungs(False)
            guess = np.clip((np.sqrt(-2.0 * log_alpha[is_middle]) - 1.0) / STEP, 0, None)
            rung = np.minimum(guess, float(rungs.middle_rungs() - 1)).astype(np.int64)
            found = self._search(rungs, False, "b").brackets(
                lambda t, x: t.second_from_first(x),
                alpha[is_middle],
                rung,
                self._scale("beta", is_middle),
            )
            put_both(beta, gamma, is_middle, found.lower, found.upper, 1.0 - EXCESS, MANY)
            c[is_middle] = found.c
        curve.c = c
        clip_curve(alpha, curve)
        return curve
