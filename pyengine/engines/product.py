"""Certified rows of smooth steps beside steps of few losses: sums over the few.

With masses a_i and b_i of the losses l_i of the few, the test {S > c} is {L > c - l_i} where the
few show l_i, so every functional of the composition is a sum of those of the smooth steps, with
weights a_i or b_i; H_{e^ε} is the mean of the smooth profile at ε + l_i (docs/theory/certified).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pyengine.engines.certified import CertifiedSide
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
from pyengine.numerics.bracketing import falling_root
from pyengine.numerics.rounding import UNIT

__all__ = ["MOST_LOSSES", "ProductSide"]

MOST_LOSSES = 128  # each of which asks for a row at every threshold
FALLING = (A_ABOVE, B_ABOVE)
OF_B = (B_ABOVE, B_BELOW)
TAILS = (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW)
ALL = (*TAILS, PROFILE)
MOST_ROWS = 2**16  # in memory at once
TINY = 2.3e-308  # a mass below this has not all of its digits
INWARDS = np.array([0.05, 0.15, 0.3, 0.5, 0.75])  # of the way to the median of the loss
LOG_GOOD = np.log(1e-10)  # relative error of an estimate that may place a threshold
RESOLVED = 1e-11  # of a threshold; what it is off by widens bounds with its square


# Map: smooth steps beside few losses | test_product | theory/certified
class ProductSide(CertifiedSide):
    """Certified rows of one ordered pair.

    Parameters
    ----------
    few : FiniteComposition
        Steps with finitely many losses.
    smooth : CertifiedSide
        The other steps.
    """

    def __init__(self, few: FiniteComposition, smooth: CertifiedSide) -> None:
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
        known = np.isfinite(start)
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
        table = self._smooth.estimates(functional, asked.ravel())
        value, error = (table[:, i + functional].reshape(asked.shape) for i in (2, ERRORS))
        with np.errstate(invalid="ignore", divide="ignore"):
            found = self._mean(functional, value)
            # what is known badly may be next to nothing of the sum
            good = self._mean(functional, value + np.log(error)) <= found + LOG_GOOD
        if not good.all():
            lower, upper = self._at(functional, c[~good])[functional]
            middle = np.where(np.isfinite(lower), 0.5 * (lower + upper), upper)
            found[~good] = self._mean(functional, middle)
        return found

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
        self, functional: int, c: FloatArray, side: float = 0.0
    ) -> dict[int, tuple[FloatArray, FloatArray]]:
        """Bounds of the smooth steps for every threshold and every loss of the few."""
        asked = self._asked(c, side)
        rows = self._smooth.rows(functional, asked.ravel())
        found = {
            which: (
                rows.logs(which)[0].reshape(asked.shape),
                rows.logs(which)[1].reshape(asked.shape),
            )
            for which in ALL
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
        more = self._smooth.rows(functional, inner[seen])
        places = np.concatenate([asked[:, :, None], inner], axis=2).reshape(c.size, -1)
        for which, (lower, upper) in found.items():
            both = []
            for outer, part, unknown in ((lower, 0, -np.inf), (upper, 1, 0.0)):
                values = np.full(inner.shape, unknown)
                values[seen] = more.logs(which)[part]
                both.append(np.concatenate([outer[:, :, None], values], axis=2))
            shaped = both[0].reshape(c.size, -1), both[1].reshape(c.size, -1)
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
