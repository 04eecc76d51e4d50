"""Proven bounds for Poisson-subsampled Gaussian steps, from lines whose errors are theorems.

The spectral engine finds the threshold; rows at it and beside it, whose errors are proven
(docs/theory/spectral), bound the answer.  What they do not reach is left to the lattice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from pyengine.answers import Answer, ErrorCurve, PairQuestions
from pyengine.answers import names as named
from pyengine.engines.functionals import (
    A_ABOVE,
    A_BELOW,
    B_ABOVE,
    B_BELOW,
    ERRORS,
    PROFILE,
    FloatArray,
    Limits,
)
from pyengine.engines.gaussian_engines import solver
from pyengine.engines.spectral import Spectral
from pyengine.errors import AccuracyError
from pyengine.pairs import GaussianPair

__all__ = [
    "SLACK",
    "WIDEST",
    "CertifiedPair",
    "CertifiedSide",
    "GaussianSide",
    "LogBounds",
    "completed_thresholds",
    "middle",
    "relative_width",
]

BoolArray = npt.NDArray[np.bool_]
WIDEST = 1e-4  # relative width of bounds that are not left to the lattice, as is the lattice's own
SLACK = 2.0**-50  # of bounds, for the rounding of the few operations that form them
LEAST = 5e-324  # the smallest double: what underflows is below it
LONGEST = 800.0  # no log of a double is larger: its rounding is that of an exponent
NOTHING = 1e-305  # an answer below this is as narrow as doubles show
ANY = Limits(0.5, 0.5)  # of thresholds, which enter no bound
MISSED = 0.5  # relative error of a row from which on its threshold is looked for anew
# distances of a second threshold, as shares of a value: losses of rare steps are tiny
ASIDE = (1e-3, 1e-5, 1e-2, 1e-7, 1e-1, 1e-9, 1.0, 1e-11)
TRIES = 8


class CertifiedSide:
    """Certified rows of one ordered pair.

    Attributes
    ----------
    tells_apart : bool
        Whether there are outcomes that only one of the laws has.
    """

    tells_apart = False

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
        return LogBounds(c, partial(_logs_of_rows, self.table(functional, c)))


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


class GaussianSide(CertifiedSide):
    """Certified rows of sampled Gaussian steps; their lines are kept with the pair's contours.

    Parameters
    ----------
    pair : GaussianPair
        The ordered pair.
    """

    def __init__(self, pair: GaussianPair) -> None:
        self._pair = pair

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds of the fast engines."""
        engines = solver(self._pair)
        table = engines.spectral().solve(functional, log_target)
        missing = np.isnan(table[:, 0]) & np.isfinite(log_target)
        if missing.any():
            with contextlib.suppress(AccuracyError):
                rows = engines.solve(functional, log_target[missing], "convolution", ANY)
                table[missing] = rows.table
        return completed_thresholds(engines.spectral(), functional, log_target, table)

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the spectral engine's lines."""
        return solver(self._pair).spectral().certify(functional, c)

    def estimates(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the spectral engine's contours."""
        return solver(self._pair).spectral().at(functional, c)


class LogBounds:
    """Logs of proven bounds of the five functionals at thresholds.

    Parameters
    ----------
    c : ndarray
        The thresholds.
    make : callable
        Makes lower and upper bounds of the log of a functional, when they are asked.
    """

    def __init__(self, c: FloatArray, make: Callable[[int], tuple[FloatArray, FloatArray]]) -> None:
        self.c, self._make = c, make
        self._found: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._values: dict[int, tuple[FloatArray, FloatArray]] = {}

    def logs(self, functional: int) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of the log of a functional."""
        if functional not in self._found:
            self._found[functional] = self._make(functional)
        return self._found[functional]

    def values(self, functional: int) -> tuple[FloatArray, FloatArray]:
        """Bounds of a functional itself, rounded outwards; not to be written to."""
        if functional not in self._values:
            lower, upper = self.logs(functional)
            low = np.exp(lower) * (1.0 - SLACK)
            high = np.minimum(np.maximum(np.exp(upper) * (1.0 + SLACK), LEAST), 1.0)
            self._values[functional] = low, high
        return self._values[functional]


def _logs_of_rows(table: FloatArray, functional: int) -> tuple[FloatArray, FloatArray]:
    """Bounds of the log of a functional from rows of the C core."""
    value, error = table[:, 2 + functional], table[:, ERRORS + functional]
    known = (error <= 1.0) & (value < np.inf)
    value, error = np.where(known, value, 0.0), np.where(known, error, 1.0)
    with np.errstate(divide="ignore"):
        rounded = SLACK * (1.0 + np.abs(value))  # of the sums of logs
        lower = value + np.log1p(-error) - rounded
        upper = np.minimum(value + np.log1p(error) + rounded, 0.0)
    return np.where(known, lower, -np.inf), np.where(known, upper, 0.0)


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
        if weak.any():
            other = self._otherwise().trade_off(alpha[weak])
            beta.put(weak, other.beta)
            gamma.put(weak, other.gamma)
            c[weak] = other.c
        return ErrorCurve(beta, gamma, c)

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
        private, public = self._both(lambda side: _solved(side, functional, tail))
        lower_beta, upper_gamma = _line(public, functional, tail)
        upper_beta, lower_gamma = _chord(self._private, private, functional, tail)
        c[chosen] = np.where(np.isnan(public.c), c[chosen], public.c)
        # each of the two also bounds the other, which has the digits where one of them is near 1
        lower_gamma = np.maximum(lower_gamma, np.nextafter(1.0 - upper_beta, 0.0))
        lower_beta = np.maximum(lower_beta, np.nextafter(1.0 - upper_gamma, 0.0))
        upper_gamma = np.minimum(upper_gamma, 1.0)
        for answer, low, high in (
            (beta, lower_beta, upper_beta),
            (gamma, lower_gamma, upper_gamma),
        ):
            put = Answer(middle(low, high), low, high, named("certified", level.size), True)
            answer.put(chosen, put)

    def line(self, alpha: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower bounds of β and upper ones of γ at α, on a line of slope -e^c below T(A, B)."""
        beta, gamma = np.zeros(alpha.size), np.ones(alpha.size)
        for functional in (A_ABOVE, A_BELOW):
            chosen = (alpha <= 0.5) == (functional == A_ABOVE)
            if chosen.any():
                level = alpha[chosen]
                tail = level if functional == A_ABOVE else 1.0 - level  # exact above 1/2
                found = self._public.rows(functional, c[chosen])
                beta[chosen], gamma[chosen] = _line(found, functional, tail)
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
        private, public = self._both(lambda side: side.rows(PROFILE, -epsilon))
        lower, upper = private.values(PROFILE)[0], public.values(PROFILE)[1]
        # nothing exceeds an infinite loss, unless one law alone has some outcome
        upper = np.where(np.isinf(epsilon), np.inf if self._public.tells_apart else 0.0, upper)
        answer = Answer(middle(lower, upper), lower, upper, named("certified", epsilon.size), True)
        return self._completed(answer, lambda pair, which: pair.profile(epsilon[which]))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        asked = (delta > 0.0) & (delta < 1.0)
        with np.errstate(divide="ignore"):
            targets = np.where(asked, np.log(delta), np.nan)

        def start(side: CertifiedSide) -> LogBounds:
            return side.rows(PROFILE, side.threshold(PROFILE, targets))

        private, public = self._both(start)
        lower, upper = self._smallest(delta, private), self._largest(delta, public)
        answer = Answer(middle(lower, upper), lower, upper, named("certified", delta.size), True)
        return self._completed(answer, lambda pair, which: pair.epsilon(delta[which]))

    def _smallest(self, delta: FloatArray, found: LogBounds) -> FloatArray:
        """Lower bounds of ε: the profile is convex in e^ε, so it lies above its tangent."""
        start = -found.c
        least, slope = found.values(PROFILE)[0], found.logs(B_BELOW)
        height = least - delta
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            log_slope = np.where(height >= 0.0, slope[1], slope[0]) + start
            gained = height * np.exp(-log_slope)
            way = np.log1p(np.where(gained > -0.5, gained, np.nan))  # what is less has no digits
            moved = (start + way) - SLACK * (4.0 * np.abs(start) + LONGEST * np.abs(way))
        lower = np.where(np.isfinite(moved), np.maximum(moved, 0.0), 0.0)
        # where the slope is not known well enough: an ε where δ is certainly exceeded
        step = self._step(found, delta, start)
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

    @staticmethod
    def _step(found: LogBounds, delta: FloatArray, start: FloatArray) -> FloatArray:
        """Distance from a threshold beyond which the profile is on the right side of δ."""
        low, high = found.values(PROFILE)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            log_width = np.log((high - low) + np.abs(low - delta))
            step = 2.0 * np.exp(log_width - found.logs(B_BELOW)[0] - start)
            least = 16.0 * SLACK * np.abs(start)
        return np.where(np.isfinite(step), step, 0.0) + least

    def _largest(self, delta: FloatArray, found: LogBounds) -> FloatArray:
        """Upper bounds of ε: where the profile is certainly at most δ."""
        start = -found.c
        # first whether no loss at all exceeds 0 by more than δ allows
        at_zero = self._public.rows(PROFILE, np.zeros(1)).values(PROFILE)[1]
        upper = np.where(at_zero <= delta, 0.0, np.inf)
        step = self._step(found, delta, start)
        for _ in range(TRIES):
            open_ = np.isinf(upper) & np.isfinite(start)
            if not open_.any():
                break
            at = np.where(open_, start + step, np.nan)
            most = self._public.rows(PROFILE, -at).values(PROFILE)[1]
            upper = np.where(open_ & (most <= delta), at, upper)
            step = 8.0 * step
        return upper

    def _completed(
        self, answer: Answer, ask: Callable[[PairQuestions, BoolArray], Answer]
    ) -> Answer:
        """Leave to the other engine what is too wide."""
        weak = ~(relative_width(answer) <= self._widest)
        if weak.any():
            answer.put(weak, ask(self._otherwise(), weak))
        return answer


def middle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """A value between bounds; the lower one where there is no other, or both are no doubles."""
    known = np.isfinite(upper) & ((lower > 0.0) | (upper > NOTHING))
    return lower + 0.5 * (np.where(known, upper, lower) - lower)


def relative_width(answer: Answer) -> FloatArray:
    """Relative widths of bounds; inf where there are none, 0 where nothing can be narrower."""
    known = np.isfinite(answer.upper) & (answer.upper > NOTHING)
    upper = np.where(known, answer.upper, 1.0)
    rest = np.where(answer.upper <= NOTHING, 0.0, np.inf)
    return np.where(known, (upper - answer.lower) / upper, rest)


def _sides(found: LogBounds, functional: int, tail: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of a_c - α, where a_c is the level of the test at the threshold."""
    low, high = found.values(functional)
    return (low - tail, high - tail) if functional == A_ABOVE else (tail - high, tail - low)


def _times_exp(x: FloatArray, log_factor: FloatArray) -> FloatArray:
    """Return x e^log_factor, without the overflow of the factor alone."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(x == 0.0, 0.0, np.copysign(np.exp(np.log(np.abs(x)) + log_factor), x))


def _solved(side: CertifiedSide, functional: int, tail: FloatArray) -> LogBounds:
    """Rows at the thresholds where a functional is about as large as asked."""
    return side.rows(functional, side.threshold(functional, np.log(tail)))


def _line(found: LogBounds, functional: int, tail: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower bounds of β and upper ones of γ: the convex T lies above its tangent of slope -e^c."""
    c = found.c
    least, _ = _sides(found, functional, tail)
    moved = _times_exp(least, c)
    moved -= np.abs(moved) * (SLACK * (LONGEST + np.abs(c)))
    with np.errstate(invalid="ignore"):
        beta = np.maximum(found.values(B_BELOW)[0] + moved, 0.0) * (1.0 - SLACK)
        gamma = (found.values(B_ABOVE)[1] - moved) * (1.0 + SLACK)
    return np.where(np.isnan(beta), 0.0, beta), np.where(np.isnan(gamma), np.inf, gamma)


def _chord(
    side: CertifiedSide, found: LogBounds, functional: int, tail: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Upper bounds of β and lower ones of γ.

    T falls, and from the level of the threshold c down to α it rises by at most the slope at a
    threshold beyond that of α, which a second row proves to lie there.
    """
    c = found.c
    low, high = found.logs(functional)
    beyond = np.full(c.size, np.inf)
    _, most = _sides(found, functional, tail)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        density = np.minimum(found.logs(B_BELOW)[0], found.logs(B_ABOVE)[0])
        value, width = np.minimum(1.0, np.exp(low - density)), 4.0 * (high - low)
        for share in ASIDE:
            at = c + share * value + width
            open_ = (most > 0.0) & np.isinf(beyond) & np.isfinite(at)
            if not open_.any():
                break
            at = np.where(open_, at, np.nan)
            reached = _sides(side.rows(functional, at), functional, tail)[1]
            beyond = np.where(open_ & (reached <= 0.0), at, beyond)
        moved = np.where(most <= 0.0, 0.0, _times_exp(np.maximum(most, 0.0), beyond))
        moved *= 1.0 + SLACK * (LONGEST + np.where(np.isfinite(beyond), np.abs(beyond), 0.0))
        beta = (found.values(B_BELOW)[1] + moved) * (1.0 + SLACK)
        gamma = np.maximum(found.values(B_ABOVE)[0] - moved, 0.0) * (1.0 - SLACK)
    beta = np.where(np.isnan(beta), np.inf, beta)
    return beta, np.where(np.isnan(gamma), 0.0, gamma)
