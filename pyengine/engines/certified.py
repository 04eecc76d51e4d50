"""Proven bounds for Poisson-subsampled Gaussian steps, from lines whose errors are theorems.

The spectral engine finds the threshold; rows at it and beside it, whose errors are proven
(docs/theory/spectral), bound the answer.  What they do not reach is left to the lattice.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.answers import Answer, ErrorCurve, Judged, PairQuestions
from pyengine.answers import names as named
from pyengine.caches import cached_property
from pyengine.curves import taken
from pyengine.engines.functionals import (
    A_ABOVE,
    A_BELOW,
    B_ABOVE,
    B_BELOW,
    ERRORS,
    PROFILE,
    FloatArray,
    Limits,
    array,
)
from pyengine.engines.gaussian import largest_epsilon
from pyengine.engines.gaussian_engines import solver
from pyengine.engines.next_to_largest import NextToLargest
from pyengine.engines.row_bounds import (
    SLACK,
    TRIES,
    LogBounds,
    crossed,
    epsilon_bounds,
    gain,
    level_bounds,
    line_bounds,
    profile_bounds,
)
from pyengine.engines.sector import SMALLEST, SectorLaws
from pyengine.engines.spectral import Spectral
from pyengine.errors import AccuracyError
from pyengine.pairs import GaussianPair

__all__ = [
    "WIDEST",
    "CertifiedPair",
    "CertifiedSide",
    "GaussianSide",
    "LineSide",
    "completed_thresholds",
    "log_slope",
    "middle",
    "relative_width",
]

BoolArray = npt.NDArray[np.bool_]
WIDEST = 1e-4  # relative width of bounds that are not left to the lattice, as is the lattice's own
NEAR_ZERO = 1.0 / 16.0  # part of a bound of the profile at 0 from which on δ may be above it
NOTHING = 1e-305  # an answer below this is as narrow as doubles show
ANY = Limits(0.5, 0.5)  # of thresholds, which enter no bound
CLOSE_ROW = 3e-11  # error of rows of lines, for which no law is built
CLOSE = Limits(CLOSE_ROW, CLOSE_ROW)
OFF = 1e-3  # what the log of a functional may be off by at a threshold that is looked for
MISSED = 0.5  # relative error of a row from which on its threshold is looked for anew


class CertifiedSide:
    """Certified rows of one ordered pair.

    Attributes
    ----------
    tells_apart : bool
        Whether there are outcomes that only one of the laws has.
    most_at_zero, largest : float
        Upper bounds of the profile at 0 and of the loss that need no row; 1 and inf where there
        are none.
    next_to_largest : NextToLargest or None
        What is known of levels whose tests take outcomes of the largest likelihood ratio alone.
    """

    tells_apart = False
    most_at_zero = 1.0
    largest = math.inf
    next_to_largest: NextToLargest | None = None

    @cached_property
    def most_at_0(self) -> float:
        """Upper bound of the profile at 0, from a row as well."""
        upper = self.rows(PROFILE, np.zeros(1)).values(PROFILE)[1]
        return min(float(upper[0]), self.most_at_zero)

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds where the log of a functional is about a target; NaN where none is found."""
        raise NotImplementedError

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the C core at thresholds, with proven errors."""
        raise NotImplementedError

    def estimates(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the fast engine at thresholds, which may place others and enter no bound."""
        raise NotImplementedError

    def rows(self, functional: int, c: FloatArray) -> LogBounds:
        """Logs of bounds of all functionals at thresholds."""
        return LogBounds.of_rows(c, self.table(functional, c))

    def most(self, epsilon: FloatArray, *, closely: bool) -> FloatArray:
        """Upper bounds of the profile for which no law is built, and unless closely no line."""
        del closely
        return np.ones(epsilon.size)

    def most_of_one(self, epsilon: float, *, closely: bool) -> float:
        """The same of a float."""
        del epsilon, closely
        return 1.0

    def one(self, functional: int, x: float, *, by_value: bool) -> Any:
        """One row of the C core as `table` or `solved` have it; None without such a way."""
        del functional, x, by_value

    def solved(self, functional: int, log_target: FloatArray) -> LogBounds:
        """Bounds at thresholds where the log of a functional is about a target."""
        return self.rows(functional, self.threshold(functional, log_target))


def completed_thresholds(
    prover: Spectral, functional: int, log_target: FloatArray, table: FloatArray
) -> FloatArray:
    """Thresholds of estimated rows, and where there is no estimate those that proven rows find."""
    found = table[:, 0].copy()
    missing = np.isfinite(log_target) & ~(table[:, ERRORS + functional] <= MISSED)
    if missing.any():
        proven = prover.certified_solve(functional, log_target[missing])[:, 0]
        found[missing] = np.where(np.isnan(proven), found[missing], proven)
    return found


class LineSide(CertifiedSide):
    """Certified rows of steps whose proven lines are kept with their contours."""

    def prover(self) -> Spectral:
        """What holds the lines."""
        raise NotImplementedError

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the lines."""
        return self.prover().certify(functional, c)

    def most(self, epsilon: FloatArray, *, closely: bool) -> FloatArray:
        """By Chernoff's bounds, or by the lines."""
        lines, c = self.prover(), -epsilon
        rows = lines.certify(PROFILE, c) if closely else lines.chernoff(c)
        return LogBounds.of_rows(c, rows).values(PROFILE)[1]

    def most_of_one(self, epsilon: float, *, closely: bool) -> float:
        """The same of a float."""
        lines, c = self.prover(), -epsilon
        row = lines.certified_one(PROFILE, c, None) if closely else lines.chernoff_of_one(c)
        return profile_bounds(row)[1]

    def solved(self, functional: int, log_target: FloatArray) -> LogBounds:
        """Bounds at thresholds that are looked for on the lines, else by the fast engines."""
        table = self.solved_table(functional, log_target)
        return LogBounds.of_rows(table[:, 0], table)

    def solved_table(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at such thresholds."""
        return self._placed(functional, log_target)[0]

    def _placed(self, functional: int, log_target: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Rows at such thresholds, and which of these the fast engines found."""
        table = self.prover().certify_beyond(functional, log_target, SLACK)
        missing = np.isnan(table[:, 0]) & np.isfinite(log_target)
        if missing.any():
            table[missing] = self.table(functional, self.threshold(functional, log_target[missing]))
        return table, missing

    def one(self, functional: int, x: float, *, by_value: bool) -> Any:
        """One row of the lines; None where there is none."""
        row = self.prover().certified_one(functional, x, SLACK if by_value else None)
        if row[ERRORS + functional] <= CLOSE_ROW:
            return row
        return None if math.isnan(row[0]) or self.knows_more(functional, row) else row

    def knows_more(self, functional: int, row: Any) -> bool:
        """Whether `table` may have a closer row than one of the lines."""
        del functional, row
        return False


class GaussianSide(LineSide):
    """Certified rows of sampled Gaussian steps; their lines are kept with the pair's contours.

    What lines do not prove closely about few steps is asked of laws of the loss with proven errors.

    Parameters
    ----------
    pair : GaussianPair
        The ordered pair.
    """

    def __init__(self, pair: GaussianPair) -> None:
        self._pair = pair

    @cached_property
    def _laws(self) -> SectorLaws:
        return SectorLaws(self._pair)

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the lines, and of the law of few steps."""
        table = super().table(functional, c)
        self._laws.improve(functional, c, table, CLOSE)
        return table

    def solved_table(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows of the lines at their thresholds, and of the law of few steps."""
        table, elsewhere = self._placed(functional, log_target)
        if not self._laws.serves:
            return table
        put = self._laws.improve(functional, table[:, 0].copy(), table, CLOSE)
        # where lines knew little, they have found no threshold either
        off = np.isfinite(log_target) & ~(abs(table[:, 2 + functional] - log_target) < OFF)
        if off.any():
            table[off] = self.table(functional, self.threshold(functional, log_target[off]))
        self._approach(functional, log_target, table, put | off | elsewhere)
        return table

    def _approach(
        self, functional: int, log_target: FloatArray, table: FloatArray, chosen: BoolArray
    ) -> None:
        """Move thresholds of rows that came to be closer than those that placed them.

        What a threshold misses counts like an error of its row.  They end where the functional is
        below its target by no more than twice the error.
        """
        value, error = table[:, 2 + functional], table[:, ERRORS + functional]
        miss = value - log_target + 2.0 * error
        far = chosen & (error < OFF) & (abs(miss) > 2.0 * error) & (abs(miss) < OFF)
        if not far.any():
            return
        step = miss[far] / log_slope(functional, table[far])
        moved = self.table(functional, table[far, 0] - step)
        nearer = abs(moved[:, 2 + functional] - log_target[far]) < abs(value - log_target)[far]
        closed = moved[:, ERRORS + functional] <= 2.0 * error[far]
        far[far] = nearer & closed
        table[far] = moved[nearer & closed]

    def knows_more(self, functional: int, row: Any) -> bool:
        """Whether the steps are few and the value is not next to nothing."""
        return row[2 + functional] >= SMALLEST and self._laws.serves

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds of the fast engines."""
        engines = solver(self._pair)
        table = engines.spectral().solve(functional, log_target)
        missing = np.isfinite(log_target) & ~(table[:, ERRORS + functional] <= MISSED)
        if missing.any():
            with contextlib.suppress(AccuracyError):
                rows = engines.solve(functional, log_target[missing], "convolution", ANY)
                table[missing] = rows.table
        return completed_thresholds(engines.spectral(), functional, log_target, table)

    @cached_property
    def next_to_largest(self) -> NextToLargest:  # type: ignore[override]
        """Where no step samples the record, or nearly so."""
        return NextToLargest(self._pair)

    @cached_property
    def most_at_zero(self) -> float:  # type: ignore[override]
        """What lies between the laws is at most the sum of what lies between those of the steps.

        A step differs where it samples, by p times the distance of two normal laws; and no more
        than with the probability that any step samples.
        """
        noise, probability, steps, _ = self._pair
        sizes = zip(noise, probability, steps, strict=True)
        apart = math.fsum(n * p * math.erf(math.sqrt(0.125) / sigma) for sigma, p, n in sizes)
        if 1.0 not in probability:
            sampled = zip(probability, steps, strict=True)
            apart = min(apart, -math.expm1(math.fsum(n * math.log1p(-p) for p, n in sampled)))
        return min(apart * (1.0 + SLACK) + 2.0**-1000, 1.0)

    @cached_property
    def largest(self) -> float:  # type: ignore[override]
        """The largest loss, rounded upwards."""
        return largest_epsilon(self._pair, self._pair.probability)[2]

    def prover(self) -> Spectral:
        """The spectral engine."""
        return solver(self._pair).spectral()

    def estimates(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the spectral engine's contours."""
        return solver(self._pair).spectral().at(functional, c)


class CertifiedPair:
    """Questions on one ordered pair whose every bound is proven.

    Parameters
    ----------
    private, public : CertifiedSide
        Pairs on both sides of the one that is asked for: the more private one bounds the privacy
        loss from below, the other one from above.  Mostly they are the same.
    tolerance : float or None
        Largest relative width of the bounds; None for 1e-4.
    otherwise : callable
        Makes the questions that answer what is not proven here.
    """

    def __init__(
        self,
        private: CertifiedSide,
        public: CertifiedSide,
        tolerance: float | None,
        otherwise: Callable[[], PairQuestions],
    ) -> None:
        self._private, self._public = private, public
        self._widest = WIDEST if tolerance is None else tolerance
        self._otherwise = otherwise

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        curve, weak = self.proven(alpha)
        if weak.any():
            other = self._otherwise().trade_off(alpha[weak])
            curve.beta.put(weak, other.beta)
            curve.gamma.put(weak, other.gamma)
            curve.c[weak] = other.c
        return curve

    def proven(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """T(A, B) by rows alone, and where its bounds are too wide."""
        beta, gamma = Answer.rest(alpha), Answer.exact(alpha.copy())
        c = np.where(alpha == 0.0, np.inf, np.where(alpha == 1.0, -np.inf, 0.0))
        inside = (alpha > 0.0) & (alpha < 1.0)
        for functional in (A_ABOVE, A_BELOW):
            chosen = inside & ((alpha <= 0.5) == (functional == A_ABOVE))
            if chosen.any():
                self._one_side(functional, chosen, alpha, beta, gamma, c)
        width = np.maximum(relative_width(beta), relative_width(gamma))
        weak = inside & ~(width <= self._widest)
        if self._public.tells_apart:  # a test that never errs under A has a γ of its own
            weak |= alpha == 0.0
        return ErrorCurve(beta, gamma, c), weak

    def _both(self, ask: Callable[[CertifiedSide], LogBounds]) -> tuple[LogBounds, LogBounds]:
        """Return what both sides find, which are asked once where they are the same."""
        private = ask(self._private)
        return private, private if self._public is self._private else ask(self._public)

    def _one_side(
        self,
        functional: int,
        chosen: BoolArray,
        alpha: FloatArray,
        beta: Answer,
        gamma: Answer,
        c: FloatArray,
    ) -> None:
        """Bounds from the tail that is solved for, at the levels where it is the smaller one."""
        level = alpha[chosen]
        tail = level if functional == A_ABOVE else 1.0 - level  # exact above 1/2
        target = _logs(tail)
        settled = self._next_to_largest(functional, target, chosen, beta, gamma, c)
        if settled.any():
            chosen = chosen.copy()
            chosen[chosen] = ~settled
            if not chosen.any():
                return
            tail, target = tail[~settled], target[~settled]
        private, public = self._both(lambda side: side.solved(functional, target))
        lower_beta, upper_gamma = public.line(functional, tail)
        upper_beta, lower_gamma = private.chord(
            functional, tail, partial(self._private.rows, functional)
        )
        c[chosen] = np.where(np.isnan(public.c), c[chosen], public.c)
        crossed(lower_beta, upper_beta, lower_gamma, upper_gamma)
        best = public.best(functional, tail)
        for answer, value, low, high in (
            (beta, best[0], lower_beta, upper_beta),
            (gamma, best[1], lower_gamma, upper_gamma),
        ):
            label = named("certified", tail.size)
            answer.put(chosen, Answer(within(value, low, high), low, high, label, True))

    def _next_to_largest(
        self,
        functional: int,
        target: FloatArray,
        chosen: BoolArray,
        beta: Answer,
        gamma: Answer,
        c: FloatArray,
    ) -> BoolArray:
        """Put bounds at levels whose tests take the largest likelihood ratio alone; where."""
        known = self._private.next_to_largest, self._public.next_to_largest
        settled = np.zeros(target.size, dtype=np.bool_)
        if known[0] is None or known[1] is None:
            return settled
        places = np.flatnonzero(chosen)
        here = np.zeros(chosen.size, dtype=np.bool_)
        for i in np.flatnonzero(target < min(known[0].likely, known[1].likely)):
            log_tail = float(target[i])
            inner, outer = (end.level(functional, log_tail) for end in known if end is not None)
            if inner is None or outer is None:
                continue
            settled[i] = here[places[i]] = True
            c[here] = outer[6]
            label = named("certified", 1)
            for answer, low, high, value in (
                (beta, outer[0], inner[1], outer[4]),
                (gamma, inner[2], outer[3], outer[5]),
            ):
                own, least, most = (np.array([x]) for x in (value, low, high))
                answer.put(here, Answer(own, least, most, label, True))
            here[places[i]] = False
        return settled

    def line(self, alpha: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower bounds of β and upper ones of γ at α, on a line of slope -e^c below T(A, B)."""
        beta, gamma = np.zeros(alpha.size), np.ones(alpha.size)
        for functional in (A_ABOVE, A_BELOW):
            chosen = (alpha <= 0.5) == (functional == A_ABOVE)
            if chosen.any():
                level = alpha[chosen]
                tail = level if functional == A_ABOVE else 1.0 - level  # exact above 1/2
                found = self._public.rows(functional, c[chosen])
                beta[chosen], gamma[chosen] = found.line(functional, tail)
        return beta, gamma

    def test(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Upper bounds of both errors of tests of thresholds c, and lower ones of the power.

        NaN where the rows do not prove them closely.
        """
        found = self._private.rows(A_ABOVE, c)
        with np.errstate(invalid="ignore"):
            logs = [found.logs(which) for which in (A_ABOVE, B_BELOW, B_ABOVE)]
            known = np.all([high - low <= self._widest for low, high in logs], axis=0)
        level, error, power = (found.values(which) for which in (A_ABOVE, B_BELOW, B_ABOVE))
        bounds = (level[1], error[1], power[0])
        first, second, third = (np.where(known, bound, np.nan) for bound in bounds)
        return first, second, third

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        ended = self._ended(epsilon)
        c = np.where(ended, np.nan, -epsilon)  # where no row is asked
        private, public = self._both(lambda side: side.rows(PROFILE, c))
        lower, upper = private.values(PROFILE)[0], np.where(ended, 0.0, public.values(PROFILE)[1])
        value = within(public.best_profile(), lower, upper)
        answer = Answer(value, lower, upper, named("certified", epsilon.size), True)
        return self._completed(answer, lambda pair, which: pair.profile(epsilon[which]))

    def _ended(self, epsilon: FloatArray) -> BoolArray:
        """Whether an ε is beyond the largest loss, which nothing exceeds but what A has alone."""
        return (epsilon >= self._public.largest) & (not self._public.tells_apart)

    def most(self, epsilon: FloatArray, *, closely: bool) -> FloatArray:
        """Upper bounds of the profile, as `CertifiedSide.most` has them."""
        ended = self._ended(epsilon)
        if ended.all():
            return np.zeros(epsilon.size)
        return np.where(ended, 0.0, self._public.most(epsilon, closely=closely))

    def is_below(self, epsilon: float, known: float) -> bool:
        """Whether the profile is surely at most a known number: by `CertifiedSide.most_of_one`."""
        side = self._public
        if epsilon >= side.largest and not side.tells_apart:
            return known >= 0.0
        return any(side.most_of_one(epsilon, closely=way) <= known for way in (False, True))

    def gain(self, functional: int, c: FloatArray) -> FloatArray:
        """Lower bounds of the profile at |c| that a line of slope e^c has: of B‖A where c >= 0.

        Parameters
        ----------
        functional : int
            A's tail that suits the thresholds.
        c : ndarray
            Thresholds.
        """
        return self._private.rows(functional, c).gain()

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        nothing = self._is_zero(delta)
        asked = (delta > 0.0) & (delta < 1.0) & ~nothing
        targets = np.where(asked, _logs(delta), np.nan)
        private, public = self._both(lambda side: side.solved(PROFILE, targets))
        lower = self._smallest(delta, private)
        upper = self._largest(delta, public, lower > 0.0)
        value = within(public.best_epsilon(delta), lower, upper)
        lower[nothing] = value[nothing] = upper[nothing] = 0.0
        answer = Answer(value, lower, upper, named("certified", delta.size), True)
        return self._completed(answer, lambda pair, which: pair.epsilon(delta[which]))

    def _is_zero(self, delta: FloatArray) -> BoolArray:
        """Whether even the profile at 0 is no larger, which is looked at where it may be."""
        most = self._public.most_at_zero
        nothing = (delta >= most) & (delta > 0.0)
        near = ~nothing & (delta >= NEAR_ZERO * most)
        if near.any():
            nothing |= near & (delta >= self._public.most_at_0)
        return nothing

    def _smallest(self, delta: FloatArray, found: LogBounds) -> FloatArray:
        """Lower bounds of ε: the profile is convex in e^ε, so it lies above its tangent."""
        start = -found.c
        lower, step = found.tangent(delta)
        # where the slope is not known well enough: an ε where δ is certainly exceeded
        known = lower > start - 2.0 * step
        for _ in range(TRIES):
            open_ = ~known & (start - step > 0.0)
            if not open_.any():
                break
            at = np.where(open_, start - step, np.nan)
            exceeded = open_ & (self._private.rows(PROFILE, -at).values(PROFILE)[0] > delta)
            lower = np.where(exceeded, np.maximum(at, lower), lower)
            known |= exceeded
            step = 8.0 * step
        return lower

    def _largest(self, delta: FloatArray, found: LogBounds, positive: BoolArray) -> FloatArray:
        """Upper bounds of ε, of which some are known to be positive: where δ is certainly met."""
        start = -found.c
        upper = np.where(found.values(PROFILE)[1] <= delta, np.maximum(start, 0.0), np.inf)
        if not positive.all():  # whether no loss at all exceeds 0 by more than δ allows
            upper[~positive & (self._public.most_at_0 <= delta)] = 0.0
        step = found.tangent(delta)[1]
        for _ in range(TRIES):
            open_ = np.isinf(upper) & np.isfinite(start)
            if not open_.any():
                break
            at = np.where(open_, start + step, np.nan)
            most = self._public.rows(PROFILE, -at).values(PROFILE)[1]
            upper = np.where(open_ & (most <= delta), at, upper)
            step = 8.0 * step
        return upper

    def one(self, name: str, x: float) -> Judged | None:
        """A question about a float by one row, with the bits of arrays, where that proves it."""
        side = self._private
        if side is not self._public or not 0.0 < x < (math.inf if name == "delta" else 1.0):
            return None
        if name == "delta":
            if x >= side.largest and not side.tells_apart:
                return 0.0, 0.0, 0.0, True
            row = side.one(PROFILE, -x, by_value=False)
            return None if row is None else self._between(*profile_bounds(row))
        if name == "epsilon":
            most = side.most_at_zero
            if x >= most or (x >= NEAR_ZERO * most and x >= side.most_at_0):
                return 0.0, 0.0, 0.0, True
            row = side.one(PROFILE, lib.pe_natural_log(x), by_value=True)
            both = None if row is None else epsilon_bounds(x, row)
            return None if both is None else self._between(*both)
        found = self.level(x)
        if found is None:
            return None
        beta, gamma, _ = found
        return gamma if name == "gamma_bound" else beta

    @property
    def is_of_one(self) -> bool:
        """Whether one side has all rows."""
        return self._private is self._public

    def level(self, alpha: float) -> tuple[Judged, Judged, float | None] | None:
        """β and γ at a level inside, and the threshold of their row, if they have one."""
        side = self._public
        functional = A_ABOVE if alpha <= 0.5 else A_BELOW
        tail = alpha if functional == A_ABOVE else 1.0 - alpha
        log_tail = lib.pe_natural_log(tail)
        end, row = side.next_to_largest, None
        found = end.level(functional, log_tail) if end and log_tail < end.likely else None
        if found is None:
            row = side.one(functional, log_tail, by_value=True)
            found = None if row is None else level_bounds(functional, tail, row)
        if found is None:
            return None
        beta = self._between(found[0], found[1], found[4])
        gamma = self._between(found[2], found[3], found[5])
        if beta is None or gamma is None:
            return None
        return beta, gamma, None if row is None else row[0]

    def line_at(self, alpha: float, c: float) -> tuple[float, float, float] | None:
        """As `line` and `gain` for a float, at the threshold of its level; None as `one`."""
        functional = A_ABOVE if alpha <= 0.5 else A_BELOW
        row = self._public.one(functional, c, by_value=False)
        if row is None:
            return None
        return *line_bounds(functional, alpha if alpha <= 0.5 else 1.0 - alpha, row), gain(row)

    def _between(self, lower: float, upper: float, value: float) -> Judged | None:
        """A value between proven bounds that are close enough; else None, and where they cross."""
        if upper > NOTHING and 0.0 <= upper - lower <= self._widest * upper < math.inf:
            return min(max(value, lower), upper), lower, upper, True
        return None

    def _completed(
        self, answer: Answer, ask: Callable[[PairQuestions, BoolArray], Answer]
    ) -> Answer:
        """Leave to the other engine what is too wide, unless that is wider still.

        Next to δ(0) the error of a profile is all of a small ε, and that of a lattice is larger.
        """
        weak = ~(relative_width(answer) <= self._widest)
        if weak.any():
            other = ask(self._otherwise(), weak)
            own, width = _widths(taken(answer, weak)), _widths(other)
            closer = ~((own >= 0.0) & (own < width))
            weak[weak] = closer
            answer.put(weak, taken(other, closer))
        return answer


def _logs(x: FloatArray) -> FloatArray:
    """Natural logarithms with the bits of the C library, as those of floats have."""
    out = np.empty(x.size)
    lib.pe_natural_logs(x.size, array(np.ascontiguousarray(x)), array(out, writable=True))
    return out


def log_slope(functional: int, table: FloatArray) -> FloatArray:
    """Slope in the threshold of the log of A's tails or the profile."""
    if functional == PROFILE:
        return np.exp(table[:, 2 + B_BELOW] - table[:, 0] - table[:, 2 + PROFILE])
    sign = -1.0 if functional == A_ABOVE else 1.0
    return sign * np.exp(table[:, 1] - table[:, 2 + functional])


def within(value: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Values between their bounds; where only an upper one is known, as `middle` has it."""
    known = (lower > 0.0) & ~np.isnan(value)
    return np.where(known, np.clip(value, lower, upper), middle(lower, upper))


def _widths(answer: Answer) -> FloatArray:
    """Distances of the bounds; inf where there is no upper one."""
    known = np.isfinite(answer.upper)
    return np.where(known, answer.upper - np.where(known, answer.lower, 0.0), np.inf)


def middle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """A value between bounds; the lower one where there is no other, or both are no doubles."""
    known = np.isfinite(upper) & ((lower > 0.0) | (upper > NOTHING))
    return lower + 0.5 * (np.where(known, upper, lower) - lower)


def relative_width(answer: Answer) -> FloatArray:
    """Relative widths of bounds; inf where there are none, 0 where nothing can be narrower.

    Bounds that no number lies between are none.
    """
    known = np.isfinite(answer.upper) & (answer.upper > NOTHING)
    upper = np.where(known, answer.upper, 1.0)
    rest = np.where(answer.upper <= NOTHING, 0.0, np.inf)
    width = np.where(known, (upper - answer.lower) / upper, rest)
    return np.where(answer.lower <= answer.upper, width, np.inf)
