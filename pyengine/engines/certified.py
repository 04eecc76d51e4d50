"""From rows of log values to answers to questions on one ordered pair, with bounds.

Bounds are proven where the errors of the rows are (docs/theory/conversions).  Where they are too
wide another engine is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import cached_property
from pyengine.engines.answers import Answer, ErrorCurve, Judged, Questions
from pyengine.engines.answers import names as named
from pyengine.engines.functionals import (
    A_ABOVE,
    A_BELOW,
    B_ABOVE,
    B_BELOW,
    PROFILE,
    FloatArray,
    array,
)
from pyengine.engines.plan import FloatPlan, plan_of
from pyengine.engines.refusals import LOOSEST
from pyengine.engines.row_bounds import TRIES, LogBounds, crossed
from pyengine.engines.row_sides import LineSide, RowSide
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn

__all__ = ["NOTHING", "WIDEST", "CertifiedPair", "Interpolated", "middle", "relative_width"]

BoolArray = npt.NDArray[np.bool_]
MANY = 2048  # least number of values that are interpolated where they lie close together
WIDEST = 1e-4  # relative width above which the lattice is asked, whose own bounds are as wide
NEARLY = 0.5  # part of the allowed width that bounds by `most_at_zero` may take
TINY = 1e-30  # below it widths may be those for tiny values
NOTHING = 1e-305  # upper bounds up to this count as 0: subnormal doubles have few digits
NEAR_ZERO = 1.0 / 16.0  # of the rough bound of δ(0): larger δ are compared with a proven δ(0)


class Interpolated(Questions):
    """Questions whose values are interpolated where thousands are asked at once."""

    is_light = True
    _keeper: CertifiedPair  # whose memo keeps the polynomials
    _plan: FloatPlan | None  # for floats that lines are enough for

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number, in one call of the C core where lines are enough."""
        found = self._plan and self._plan.one(name, x)
        return found or super().one(name, x)

    @property
    def is_estimated(self) -> bool:
        """Whether answers are estimates, but for trivial ones."""
        return not self._keeper.is_proven

    def values(self, name: str, x: FloatArray) -> FloatArray:
        """As `answer` without bounds; thousands by piecewise Chebyshev interpolation."""
        if x.size < MANY or not self._keeper.is_ordinary:
            return super().values(name, x)
        from pyengine.engines.chebyshev_panels import ChebyshevPanels

        memo, key = self._keeper.memo, (type(self), name)
        if key not in memo:
            try:
                memo[key] = ChebyshevPanels(name, self._at_zero)
            except AccuracyError:  # for δ(0), which places the panels
                return super().values(name, x)
        panels: ChebyshevPanels = memo[key]
        return panels.values(x, partial(super().values, name))

    def _at_zero(self) -> float:
        return float(self.profile(np.zeros(1)).value[0])


class CertifiedPair(Interpolated):
    """Questions on one ordered pair, answered from rows; proven where the rows are.

    The more private of two sides bounds the privacy loss from below, the other from above; they
    are the same unless parameters had to be rounded.  `widest` are the relative widths up to which
    bounds are kept, for ordinary values and for those below 1e-30; wider ones are asked of
    ``otherwise``.  Without a tolerance the pair is ordinary, and values may be interpolated.
    """

    def __init__(
        self,
        private: RowSide,
        public: RowSide,
        tolerance: float | None,
        otherwise: Callable[[], Questions],
        *,
        proven: bool = True,
    ) -> None:
        self._private, self._public = private, public
        self._proven, self._name = proven, public.name
        self.widest = (WIDEST, WIDEST) if tolerance is None else (tolerance, tolerance)
        self.is_ordinary = tolerance is None
        self.next_engine, self._keeper = otherwise, self

    @cached_property
    def _plan(self) -> FloatPlan | None:  # type: ignore[override]
        return plan_of(self)

    @property
    def is_proven(self) -> bool:
        """Whether bounds from rows are proven."""
        return self._proven

    @property
    def is_of_one(self) -> bool:
        """Whether both sides are the same."""
        return self._private is self._public

    @property
    def lines(self) -> LineSide | None:
        """The side for which the C core answers floats; None if arrays have better means."""
        return self._public.lines if self.is_of_one else None

    @property
    def memo(self) -> dict[Any, Any]:
        """A store shared by questions on the same lines."""
        return self._public.memo

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        curve, weak = self.proven(alpha)
        if weak.any():
            try:
                found = self.next_engine().trade_off(alpha[weak])
            except AccuracyError as refusal:
                self.raise_unless_known(refusal, *curve.taken(weak))
            else:
                curve.put(weak, found)
        return curve

    def raise_unless_known(self, refusal: AccuracyError, *own: Answer) -> None:
        """Raise another engine's refusal unless the rows' own bounds are within `LOOSEST`.

        A tolerance that was set is checked later, by `WithinTolerance`.
        """
        if not max(relative_width(answer).max() for answer in own) <= LOOSEST:
            raise refusal

    def proven(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """T(A, B) by rows alone, and where the bounds are too wide."""
        curve = ErrorCurve.trivial(alpha)
        curve.c = np.where(alpha == 0.0, np.inf, np.where(alpha == 1.0, -np.inf, 0.0))
        beta, gamma = curve
        inside = (alpha > 0.0) & (alpha < 1.0)
        for functional in (A_ABOVE, A_BELOW):
            chosen = inside & ((alpha <= 0.5) == (functional == A_ABOVE))
            if chosen.any():
                self._one_side(functional, chosen, alpha, beta, gamma, curve.c)
        weak = inside & ~(self._is_close(beta) & self._is_close(gamma))
        if weak.any():
            known, nothing = self.next_to_nothing(alpha)
            for answer, part in zip(curve, known.taken(weak & nothing), strict=True):
                answer.put(weak & nothing, part)
            weak &= ~nothing
        return curve, weak

    def next_to_nothing(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """β and γ from γ <= α + δ(0) alone, for either order, and where that is close enough."""
        most = self._public.most_at_zero
        found = ErrorCurve.trivial(alpha)
        beta, gamma = found
        beta.lower = np.maximum(np.nextafter(beta.lower - most, -1.0), 0.0)
        gamma.upper = np.minimum(np.nextafter(alpha + most, 2.0), 1.0)
        for answer in (beta, gamma):
            answer.engine, answer.certified[:] = named(self._name, alpha.size), self._proven
        enough = most <= NEARLY * min(self.widest[0], WIDEST) * np.minimum(alpha, 1.0 - alpha)
        return found, np.asarray(enough & (alpha > 0.0) & (alpha < 1.0))

    def _is_close(self, answer: Answer) -> BoolArray:
        """Whether bounds are as narrow as `widest` asks."""
        widest = np.where(answer.upper < TINY, self.widest[1], self.widest[0])
        return np.asarray((relative_width(answer) <= widest) | (answer.lower == np.inf))

    def _both(self, ask: Callable[[RowSide], LogBounds]) -> tuple[LogBounds, LogBounds]:
        """The bounds of both sides; a single side is asked once."""
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
        """Put bounds at the ``chosen`` levels, where A's tail ``functional`` is the smaller one."""
        level = alpha[chosen]
        tail = level if functional == A_ABOVE else 1.0 - level  # exact from 1/2 on
        target = np.asarray(fn.log(tail))
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
            functional, tail, partial(self._private.beyond, functional)
        )
        c[chosen] = np.where(np.isnan(public.c), c[chosen], public.c)
        crossed(lower_beta, upper_beta, lower_gamma, upper_gamma)
        best = public.best(functional, tail)
        for answer, value, low, high in (
            (beta, best[0], lower_beta, upper_beta),
            (gamma, best[1], lower_gamma, upper_gamma),
        ):
            label = named(self._name, tail.size)
            answer.put(chosen, Answer(within(value, low, high), low, high, label, self._proven))

    def _next_to_largest(
        self,
        functional: int,
        target: FloatArray,
        chosen: BoolArray,
        beta: Answer,
        gamma: Answer,
        c: FloatArray,
    ) -> BoolArray:
        """Put bounds at tiny levels, decided next to the largest loss; return where."""
        outer = self._public.next_to_largest(functional, target)
        inner = outer if self.is_of_one else self._private.next_to_largest(functional, target)
        if inner is None or outer is None:
            return np.zeros(target.size, dtype=np.bool_)
        settled = ~np.isnan(inner[:, 0]) & ~np.isnan(outer[:, 0])
        here = chosen.copy()
        here[chosen] = settled
        inner, outer = inner[settled].T, outer[settled].T
        c[here], label = outer[6], named(self._name, int(settled.sum()))
        beta.put(here, Answer(outer[4], outer[0], inner[1], label, self._proven))
        gamma.put(here, Answer(outer[5], inner[2], outer[3], label, self._proven))
        return settled

    def line(self, alpha: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower bounds of β and upper ones of γ at α, by a line of slope -e^c below T(A, B)."""
        beta, gamma = np.zeros(alpha.size), np.ones(alpha.size)
        for functional in (A_ABOVE, A_BELOW):
            chosen = (alpha <= 0.5) == (functional == A_ABOVE)
            if chosen.any():
                level = alpha[chosen]
                tail = level if functional == A_ABOVE else 1.0 - level  # exact from 1/2 on
                found = self._public.rows(functional, c[chosen])
                beta[chosen], gamma[chosen] = found.line(functional, tail)
        return beta, gamma

    def test(self, c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Upper bounds of both errors of the tests {S > c}, and lower ones of their power.

        NaN where bounds are wider than `widest`.
        """
        found = self._private.rows(A_ABOVE, c)
        with np.errstate(invalid="ignore"):
            logs = [found.logs(which) for which in (A_ABOVE, B_BELOW, B_ABOVE)]
            known = np.all([high - low <= self.widest[0] for low, high in logs], axis=0)
        level, error, power = (found.values(which) for which in (A_ABOVE, B_BELOW, B_ABOVE))
        bounds = (level[1], error[1], power[0])
        first, second, third = (np.where(known, bound, np.nan) for bound in bounds)
        return first, second, third

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        ended = self._ended(epsilon)
        c = np.where(ended, np.nan, -epsilon)  # NaN asks for no row
        private, public = self._both(lambda side: side.rows(PROFILE, c))
        lower, upper = private.values(PROFILE)[0], np.where(ended, 0.0, public.values(PROFILE)[1])
        value = within(public.best_profile(), lower, upper)
        answer = Answer(value, lower, upper, named(self._name, epsilon.size), self._proven)
        return self._completed(answer, lambda pair, which: pair.profile(epsilon[which]))

    def _ended(self, epsilon: FloatArray) -> BoolArray:
        """Whether an ε is at or beyond the largest loss, where the profile is 0."""
        return np.asarray(epsilon >= self._public.largest)

    def most(self, epsilon: FloatArray, *, closely: bool) -> FloatArray:
        """Upper bounds of the profile, quickly: see `RowSide.most`."""
        ended = self._ended(epsilon)
        if ended.all():
            return np.zeros(epsilon.size)
        return np.where(ended, 0.0, self._public.most(epsilon, closely=closely))

    def gain(self, functional: int, c: FloatArray) -> FloatArray:
        """Lower bounds of the profile at |c|, of (A, B) for c < 0 and of (B, A) for c >= 0."""
        return self._private.rows(functional, c).gain()

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        nothing = self._is_zero(delta)
        asked = (delta > 0.0) & (delta < 1.0) & ~nothing
        targets = np.where(asked, fn.log(delta), np.nan)
        private, public = self._both(lambda side: side.solved(PROFILE, targets))
        lower = np.where(nothing, 0.0, self._smallest(delta, private))
        upper = self._largest(delta, public, lower > 0.0)
        value = within(public.best_epsilon(delta), lower, upper)
        for end, bound in zip((1, 0, 2), (lower, value, upper), strict=True):
            bound[nothing] = 0.0
            if self._public.ends is not None:
                bound[delta == 0.0] = self._public.ends[end]
        answer = Answer(value, lower, upper, named(self._name, delta.size), self._proven)
        return self._completed(answer, lambda pair, which: pair.epsilon(delta[which]))

    def _is_zero(self, delta: FloatArray) -> BoolArray:
        """Whether δ(0) <= δ, so that ε is 0; δ(0) is proven only where it matters."""
        most = self._public.most_at_zero
        nothing = (delta >= most) & (delta > 0.0)
        near = ~nothing & (delta >= NEAR_ZERO * most)
        if near.any():
            nothing |= near & (delta >= self._public.zero[2])
        return nothing

    def _smallest(self, delta: FloatArray, found: LogBounds) -> FloatArray:
        """Lower bounds of ε: the profile is convex in e^ε, so it lies above its tangent."""
        start = -found.c
        lower, step = found.tangent(delta)
        # where the slope is too inexact: step back to an ε at which δ is certainly exceeded
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
        """Upper bounds of ε, where δ is certainly met; ``positive`` ones are known not to be 0."""
        start = -found.c
        upper = np.where(found.values(PROFILE)[1] <= delta, np.maximum(start, 0.0), np.inf)
        if not positive.all():  # ε is 0 where δ(0) <= δ
            upper[~positive & (self._public.zero[2] <= delta)] = 0.0
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

    def straight(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray]:
        """β and γ where the hull of both orders is a straight line, and where that is."""
        side, n = self._public, alpha.size
        out, where = np.empty((2, n, 3)), np.empty(n, dtype=np.bool_)
        beta, gamma = (array(part, writable=True) for part in out)
        flags = ffi.from_buffer("unsigned char[]", where.view(np.uint8), require_writable=True)
        given = array(np.ascontiguousarray(alpha)), side.zero, side.straight, self.widest
        known = lib.pe_straight_levels(n, *given, beta, gamma, flags)
        answers = []
        for part in out:
            value, lower, upper = part[where].T.copy()
            answers.append(Answer(value, lower, upper, named(self._name, known), self._proven))
        return ErrorCurve(answers[0], answers[1]), where

    def _completed(self, answer: Answer, ask: Callable[[Questions, BoolArray], Answer]) -> Answer:
        """Replace bounds that are too wide by those of the other engine, where these are narrower.

        For δ next to δ(0), ε is near 0 and any error of the profile is a large part of it.
        """
        weak = ~self._is_close(answer)
        if weak.any():
            known = answer.taken(weak)
            try:
                other = ask(self.next_engine(), weak)
            except AccuracyError as refusal:
                self.raise_unless_known(refusal, known)
            else:
                own, width = _widths(known), _widths(other)
                closer = ~((own >= 0.0) & (own < width))
                weak[weak] = closer
                answer.put(weak, other.taken(closer))
        return answer


def within(value: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Values clipped to their bounds; where only an upper bound is known, `middle`."""
    known = (lower > 0.0) & ~np.isnan(value)
    return np.where(known, np.clip(value, lower, upper), middle(lower, upper))


def _widths(answer: Answer) -> FloatArray:
    """Absolute widths of bounds; infinite without an upper one."""
    known = np.isfinite(answer.upper)
    return np.where(known, answer.upper - np.where(known, answer.lower, 0.0), np.inf)


def middle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The middle of bounds; the lower bound without a finite upper one, or if both are about 0."""
    known = np.isfinite(upper) & ((lower > 0.0) | (upper > NOTHING))
    return lower + 0.5 * (np.where(known, upper, lower) - lower)


def relative_width(answer: Answer) -> FloatArray:
    """Relative widths of bounds: 0 for upper bounds up to `NOTHING`.

    Infinite without an upper bound, and where the lower bound is above it.
    """
    known = np.isfinite(answer.upper) & (answer.upper > NOTHING)
    upper = np.where(known, answer.upper, 1.0)
    rest = np.where(answer.upper <= NOTHING, 0.0, np.inf)
    width = np.where(known, (upper - answer.lower) / upper, rest)
    return np.where(answer.lower <= answer.upper, width, np.inf)
