"""Certified rows of smooth steps beside steps of few losses: sums over the few.

With masses a_i and b_i of the losses l_i of the few, the test {S > c} is {L > c - l_i} where the
few show l_i, so every functional of the composition is a sum of those of the smooth steps, with
weights a_i or b_i; H_{e^ε} is the mean of the smooth profile at ε + l_i (docs/theory/line).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine.caches import cached_property
from pyengine.engines.exact.finite import FiniteComposition
from pyengine.engines.functionals import (
    A_ABOVE,
    A_BELOW,
    B_ABOVE,
    B_BELOW,
    ERRORS,
    PROFILE,
    FloatArray,
)
from pyengine.engines.row_bounds import SLACK, LogBounds
from pyengine.engines.row_sides import RowSide
from pyengine.numerics.bracketing import falling_root
from pyengine.numerics.rounding import UNIT

__all__ = ["MOST_LOSSES", "ProductSide"]

Flags = npt.NDArray[np.bool_]
Bounded = dict[int, tuple[FloatArray, FloatArray]]  # logs of bounds of each functional

MOST_LOSSES = 128  # each of which asks for a row at every threshold
FALLING = (A_ABOVE, B_ABOVE)
OF_B = (B_ABOVE, B_BELOW)
TAILS = (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW)
ALL = (*TAILS, PROFILE)
MOST_ROWS = 2**16  # in memory at once
TINY = 2.3e-308  # a mass below this has not all of its digits
INWARDS = np.array([0.05, 0.15, 0.3, 0.5, 0.75])  # of the way to the median of the loss
LOG_GOOD = np.log(1e-10)  # relative error of what may place a threshold
LOG_BEYOND = -40.0  # of the mass beyond a window, and
LOG_FARTHER = np.array([-100.0, -250.0, -700.0])  # beyond places that bound what lies farther out
LOG_CLOSED = np.log(1e-14)  # what bounds beyond the window may leave open of a sum
RESOLVED = 1e-11  # of a threshold


# Map: smooth steps beside few losses | test_product | theory/line
class ProductSide(RowSide):
    """Certified rows of one ordered pair.

    Parameters
    ----------
    few : FiniteComposition
        Steps with finitely many losses.
    smooth : RowSide
        The other steps.
    """

    def __init__(self, few: FiniteComposition, smooth: RowSide) -> None:
        self._smooth = smooth
        weights = few.weights()
        self._loss, self._error = weights.loss, weights.error
        # losses are logs of ratios of masses unless they are known to more digits
        known = weights.low or (np.zeros(self._loss.size), 2.0 * self._error)
        self._low, self._loss_error = known
        with np.errstate(divide="ignore"):
            self._log_a, self._log_b = np.log(weights.a), np.log(weights.b)
        self._lost = few.infinite()
        self._log_tiny = np.log(TINY * self._loss.size)
        self.tells_apart = max(self._lost) > 0.0

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds between those of the smooth steps moved by the least and the largest loss."""
        if log_target.size > self._at_once:
            parts = range(0, log_target.size, self._at_once)
            return np.concatenate(
                [self.threshold(functional, log_target[i : i + self._at_once]) for i in parts]
            )
        lost = 0.0 if functional == A_ABOVE else self._lost[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            # what the finite losses are to have, and the mean of it over them
            finite = np.log(np.exp(log_target) - lost) if lost else log_target
            start = self._smooth.threshold(functional, finite - np.log1p(-self._lost[0]))
        found = np.full(log_target.size, np.nan)
        known = np.isfinite(start) & np.isfinite(finite)
        if not known.any():
            return found
        sign = 1.0 if functional in FALLING else -1.0
        goal, first = finite[known], np.full(np.count_nonzero(known), np.nan)

        def beyond(c: FloatArray) -> FloatArray:
            difference = sign * (self._approximate(functional, c) - goal)
            there = np.abs(difference) <= RESOLVED
            first[there & np.isnan(first)] = c[there & np.isnan(first)]
            return np.where(there, 0.0, difference)

        low, high = start[known] + self._loss.min(), start[known] + self._loss.max()
        room = 1e-9 * (1.0 + np.abs(low) + np.abs(high))
        root = falling_root(beyond, low - room, high + room)
        # the first that is near enough, which does not depend on what else is asked
        found[known] = np.where(np.isnan(first), root, first)
        return found

    def _approximate(self, functional: int, c: FloatArray) -> FloatArray:
        """Logs of a functional, of estimates where they are good: they place thresholds only."""
        asked = self._asked(c, 0.0)
        low, high = self._window
        inside = (asked >= low) & (asked <= high)
        found, good = self._estimated(functional, asked, inside)
        open_ = ~good & ~inside.all(axis=1)
        if open_.any():
            every = np.ones((np.count_nonzero(open_), asked.shape[1]), dtype=np.bool_)
            found[open_], good[open_] = self._estimated(functional, asked[open_], every)
        if not good.all():
            bounds = self._at(functional, c[~good], which=(functional,), limit=LOG_GOOD)
            lower, upper = bounds[functional]
            middle = np.where(np.isfinite(lower), 0.5 * (lower + upper), upper)
            found[~good] = self._mean(functional, middle)
        return found

    def _estimated(
        self, functional: int, asked: FloatArray, inside: Flags
    ) -> tuple[FloatArray, Flags]:
        """Logs of sums of estimates, asked ``inside`` alone, and whether they are good.

        Elsewhere, and where there is none, a functional lies between what the others say, and none
        or all of the law.
        """
        ends = np.array([x for x in self._window if np.isfinite(x)])
        size = asked.shape[1]
        places = np.concatenate([asked, np.tile(ends, (len(asked), 1))], axis=1)
        value, error = np.full((2, *places.shape), np.nan)
        table = self._smooth.estimates(functional, np.concatenate([asked[inside], ends]))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for part, i in ((value, 2), (error, ERRORS)):
                row = table[:, i + functional]
                part[:, :size][inside], part[:, size:] = row[: inside.sum()], row[inside.sum() :]
            off = value + np.log(error)
            known = (value < np.inf) & (off < np.inf)
            least = value + np.log1p(-np.minimum(np.exp(off - value), 1.0))
            lower, upper = _monotone(
                functional,
                places,
                np.where(known, least, -np.inf),
                np.where(known, np.minimum(np.logaddexp(value, off), 0.0), 0.0),
            )
            value = np.where(known, value, lower)[:, :size]
            off = np.where(known, off, _log_difference(upper, lower))[:, :size]
            found = self._mean(functional, value)
            # what is known badly may be next to nothing of the sum
            return found, self._mean(functional, off) <= found + LOG_GOOD

    @cached_property
    def _window(self) -> tuple[float, float]:
        """Losses of the smooth steps beyond which hardly anything lies under A."""
        depth = np.array([LOG_BEYOND])
        low, high = (float(self._smooth.threshold(x, depth)[0]) for x in (A_BELOW, A_ABOVE))
        return (-np.inf if np.isnan(low) else low), (np.inf if np.isnan(high) else high)

    @cached_property
    def _ends(self) -> FloatArray:
        """The ends of the window, and places farther out that leave less beyond themselves.

        Beyond the least loss that the smooth steps can have no line is proven, as hardly any is
        next to it.
        """
        farther = [self._smooth.threshold(x, LOG_FARTHER) for x in (A_BELOW, A_ABOVE)]
        ends = np.concatenate([np.array(self._window), *farther])
        return np.asarray(ends[np.isfinite(ends)])

    @cached_property
    def _middle(self) -> float:
        """The median of the smooth steps' loss under A, or 0 where it is not found."""
        found = float(self._smooth.threshold(A_ABOVE, np.log([0.5]))[0])
        return found if np.isfinite(found) else 0.0

    def rows(self, functional: int, c: FloatArray) -> LogBounds:
        """Logs of bounds of all functionals at thresholds."""
        step = self._at_once
        parts = [self._bounds(functional, c[i : i + step]) for i in range(0, max(c.size, 1), step)]
        return LogBounds.of_logs(c, np.concatenate(parts))

    @property
    def _at_once(self) -> int:
        """Thresholds whose rows are in memory together."""
        return max(1, MOST_ROWS // self._loss.size)

    def _bounds(self, functional: int, c: FloatArray) -> FloatArray:
        """The logs of both bounds of each functional, shape (n, 5, 2)."""
        below, above = (self._at(functional, c, side) for side in (-1.0, 1.0))
        found = np.empty((c.size, len(ALL), 2))
        for which in ALL:
            least, most = (above, below) if which in FALLING else (below, above)
            lower, upper = self._mean(which, least[which][0]), self._mean(which, most[which][1])
            slack = 2.0 * self._error + SLACK * (self._loss.size + np.abs(upper))
            with np.errstate(divide="ignore", invalid="ignore"):
                log_lost = np.log(self._infinite(which))
                # masses of the few that are no normal doubles are known to an absolute error
                share = np.exp(np.minimum(self._log_tiny - lower, 0.0))
                lower = lower + np.log1p(-share) - slack
            upper = np.logaddexp(upper + slack, self._log_tiny)
            found[:, which, 0] = np.logaddexp(lower, log_lost - SLACK)
            found[:, which, 1] = np.minimum(np.logaddexp(upper, log_lost + SLACK), 0.0)
        return found

    def _asked(self, c: FloatArray, side: float) -> FloatArray:
        """Thresholds of the smooth steps, on one side of all that they can be, or about there."""
        with np.errstate(invalid="ignore"):  # an infinite threshold has no row
            asked = (c[:, None] - self._loss) - self._low
            # two differences are rounded, and so is what is added
            doubt = 1.01 * self._loss_error + 4.0 * UNIT * (np.abs(asked) + 2.0 * np.abs(self._low))
            return np.asarray(asked + side * doubt)

    def _at(
        self,
        functional: int,
        c: FloatArray,
        side: float = 0.0,
        *,
        which: tuple[int, ...] = (),
        limit: float = LOG_CLOSED,
    ) -> Bounded:
        """Bounds of the smooth steps for every threshold and every loss of the few.

        Places far beyond the window are bounded by those next to it, unless that leaves more than
        a limit open of some functionals: of all that a question needs, or of ``which``.
        """
        which = which or ((PROFILE,) if functional == PROFILE else TAILS)
        asked = self._asked(c, side)
        needed = self._innermost(asked, *self._window)
        found = self._partly(functional, asked, needed)
        open_ = np.flatnonzero(~self._closed(asked, found, which, limit))
        if open_.size:  # where hardly any line is proven far out, the ends have one
            ends = np.tile(self._ends, (open_.size, 1))
            places = np.concatenate([asked[open_], ends], axis=1)
            known = np.concatenate([needed[open_], np.ones(ends.shape, dtype=np.bool_)], axis=1)
            size, better = asked.shape[1], self._partly(functional, places, known)
            _sharpen(found, open_, {x: (y[:, :size], z[:, :size]) for x, (y, z) in better.items()})
            open_ = open_[~self._closed(asked, found, which, limit)[open_]]
        if open_.size:
            _sharpen(found, open_, self._everywhere(functional, asked[open_]))
        return found

    def _closed(
        self, asked: FloatArray, found: Bounded, functionals: tuple[int, ...], limit: float
    ) -> Flags:
        """Whether bounds beyond the window leave next to nothing open of sums over the losses."""
        low, high = self._window
        closed = np.ones(len(asked), dtype=np.bool_)
        for which in functionals:
            least, most = found[which]
            left = np.where((asked < low) | (asked > high), _log_difference(most, least), -np.inf)
            closed &= self._mean(which, left) <= self._mean(which, least) + limit
        return closed

    def _innermost(self, asked: FloatArray, low: float, high: float) -> Flags:
        """Places in the window, and the next one beyond either end for each threshold."""
        above, below = np.where(asked > high, asked, np.inf), np.where(asked < low, asked, -np.inf)
        first, last = above.min(axis=1, keepdims=True), below.max(axis=1, keepdims=True)
        return np.asarray((asked >= np.minimum(low, last)) & (asked <= np.maximum(high, first)))

    def _partly(self, functional: int, asked: FloatArray, needed: Flags) -> Bounded:
        """Bounds of the smooth steps from rows at some places, between which others lie."""
        found, known = {}, self._known(functional, asked[needed])
        for which in ALL:
            both = []
            for values, unknown in zip(known[which], (-np.inf, 0.0), strict=True):
                both.append(np.full(asked.shape, unknown))
                both[-1][needed] = values
            found[which] = _monotone(which, asked, both[0], both[1])
        return found

    def _known(self, functional: int, c: FloatArray) -> Bounded:
        """Bounds of the smooth steps from rows at places.

        Beyond the window rows are asked for the tail that is small there, and not for one that is
        next to 1 and good enough while the other one is unknown.
        """
        found = {which: (np.full(c.size, -np.inf), np.zeros(c.size)) for which in ALL}
        low, high = self._window
        sought = np.full(c.size, functional)
        if functional != PROFILE:
            sought[c < low], sought[c > high] = A_BELOW, A_ABOVE
        for one in np.unique(sought):
            there = sought == one
            rows = self._smooth.rows(int(one), c[there])
            for which, (lower, upper) in found.items():
                lower[there], upper[there] = rows.logs(which)
        return found

    def _everywhere(self, functional: int, asked: FloatArray) -> Bounded:
        """Bounds of the smooth steps from rows at all places, and inwards of those without."""
        rows = self._known(functional, asked.ravel())
        found = {
            which: (lower.reshape(asked.shape), upper.reshape(asked.shape))
            for which, (lower, upper) in rows.items()
        }
        needed = (PROFILE,) if functional == PROFILE else TAILS
        known = np.all([np.isfinite(found[which][0]) for which in needed], axis=0)
        open_ = np.isfinite(asked) & ~known
        if not open_.any():
            return found
        # far out, where no line is proven, rows further inside bound what can only be less; those
        # of one threshold alone, so that it does not matter which others are asked with it
        inner = np.full((*asked.shape, INWARDS.size), np.nan)
        inner[open_] = asked[open_, None] + INWARDS * (self._middle - asked[open_, None])
        seen = np.isfinite(inner)
        more = self._known(functional, inner[seen])
        places = np.concatenate([asked[:, :, None], inner], axis=2).reshape(len(asked), -1)
        for which, (lower, upper) in found.items():
            both = []
            for outer, part, unknown in ((lower, 0, -np.inf), (upper, 1, 0.0)):
                values = np.full(inner.shape, unknown)
                values[seen] = more[which][part]
                both.append(np.concatenate([outer[:, :, None], values], axis=2))
            shaped = both[0].reshape(len(asked), -1), both[1].reshape(len(asked), -1)
            lower, upper = _monotone(which, places, *shaped)
            found[which] = (
                lower.reshape(both[0].shape)[:, :, 0],
                upper.reshape(both[0].shape)[:, :, 0],
            )
        return found

    def _mean(self, which: int, logs: FloatArray) -> FloatArray:
        """Log of the sum over the losses of the few, with the masses of the functional's law."""
        weights = self._log_b if which in OF_B else self._log_a
        terms = logs + weights
        top = terms.max(axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.exp(terms - top[:, None]).sum(axis=1)) + top)

    def _infinite(self, which: int) -> float:
        """What an infinite loss adds: A's mass at -inf lies below, and B's at inf above."""
        if which in (A_BELOW, PROFILE):
            return self._lost[0]
        return self._lost[1] if which == B_ABOVE else 0.0


def _sharpen(found: Bounded, at: npt.NDArray[np.intp], others: Bounded) -> None:
    """Let other bounds of some thresholds sharpen those that are known, in place."""
    for which, (lower, upper) in others.items():
        found[which][0][at] = np.maximum(found[which][0][at], lower)
        found[which][1][at] = np.minimum(found[which][1][at], upper)


def _log_difference(upper: FloatArray, lower: FloatArray) -> FloatArray:
    """Log of the difference of numbers given by their logs, at least -inf."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(lower > -np.inf, lower - upper, -np.inf)
        return np.asarray(upper + np.log(-np.expm1(np.minimum(gap, 0.0))))


def _monotone(
    which: int, c: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds at the thresholds of each row that also use those at smaller and at larger ones."""
    order = np.argsort(c, axis=1)  # NaN, of which nothing is known, comes last
    least, most = (np.take_along_axis(part, order, axis=1) for part in (lower, upper))
    if which in FALLING:
        least = np.maximum.accumulate(least[:, ::-1], axis=1)[:, ::-1]
        most = np.minimum.accumulate(most, axis=1)
    else:
        least = np.maximum.accumulate(least, axis=1)
        most = np.minimum.accumulate(most[:, ::-1], axis=1)[:, ::-1]
    back = np.argsort(order, axis=1)
    found = [np.take_along_axis(part, back, axis=1) for part in (least, most)]
    return found[0], found[1]
