"""Certified rows of smooth steps beside steps of few losses: sums over the few.

With masses a_i and b_i of the losses l_i of the few, the test {S > c} is {L > c - l_i} where the
few show l_i, so every functional of the composition is a sum of those of the smooth steps, with
weights a_i or b_i; H_{e^ε} is the mean of the smooth profile at ε + l_i (docs/theory/certified).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pyengine.engines.certified import SLACK, CertifiedSide, LogBounds
from pyengine.engines.exact.finite import FiniteComposition
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, PROFILE, FloatArray
from pyengine.numerics.bracketing import falling_root
from pyengine.numerics.rounding import UNIT

__all__ = ["MOST_LOSSES", "ProductSide"]

MOST_LOSSES = 128  # each of which asks for a row at every threshold
FALLING = (A_ABOVE, B_ABOVE)
OF_B = (B_ABOVE, B_BELOW)
TAILS = (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW)
INWARDS = np.array([0.05, 0.15, 0.3, 0.5, 0.75])  # of the way to the median of the loss
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
        with np.errstate(divide="ignore"):
            self._log_a, self._log_b = np.log(weights.a), np.log(weights.b)
        self._lost = few.infinite()
        self.tells_apart = max(self._lost) > 0.0

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds between those of the smooth steps moved by the least and the largest loss."""
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
        goal = finite[known]

        def beyond(c: FloatArray) -> FloatArray:
            lower, upper = self._at(functional, c).logs(functional)
            middle = np.where(np.isfinite(lower), 0.5 * (lower + upper), upper)
            difference = sign * (self._mean(functional, middle) - goal)
            return np.where(np.abs(difference) <= RESOLVED, 0.0, difference)

        low, high = start[known] + self._loss.min(), start[known] + self._loss.max()
        room = 1e-9 * (1.0 + np.abs(low) + np.abs(high))
        found[known] = falling_root(beyond, low - room, high + room)
        return found

    @cached_property
    def _middle(self) -> float:
        """The median of the smooth steps' loss under A, or 0 where it is not found."""
        found = float(self._smooth.threshold(A_ABOVE, np.log([0.5]))[0])
        return found if np.isfinite(found) else 0.0

    def rows(self, functional: int, c: FloatArray) -> LogBounds:
        """Logs of bounds of all functionals at thresholds."""
        # losses are logs of ratios of masses, and c less one of them is rounded
        doubt = 2.0 * self._error + 8.0 * UNIT * (1.0 + np.abs(c) + float(np.abs(self._loss).max()))
        with np.errstate(invalid="ignore"):
            below, above = (self._at(functional, c + off) for off in (-doubt, doubt))

        def bounds(which: int) -> tuple[FloatArray, FloatArray]:
            least, most = (above, below) if which in FALLING else (below, above)
            lower = self._mean(which, least.logs(which)[0])
            upper = self._mean(which, most.logs(which)[1])
            slack = 2.0 * self._error + SLACK * (self._loss.size + np.abs(upper))
            with np.errstate(divide="ignore"):
                log_lost = np.log(self._infinite(which))
            return (
                np.logaddexp(lower - slack, log_lost - SLACK),
                np.minimum(np.logaddexp(upper + slack, log_lost + SLACK), 0.0),
            )

        return LogBounds(c, bounds)

    def _at(self, functional: int, c: FloatArray) -> LogBounds:
        """Bounds of the smooth steps for every threshold and every loss of the few."""
        with np.errstate(invalid="ignore"):  # an infinite threshold has no row
            asked = (c[:, None] - self._loss).ravel()
        found = self._smooth.rows(functional, asked)
        needed = (PROFILE,) if functional == PROFILE else TAILS
        known = np.all([np.isfinite(found.logs(which)[0]) for which in needed], axis=0)
        open_ = np.isfinite(asked) & ~known
        if not open_.any():
            return found
        # far out, where no line is proven, rows further inside bound what can only be less
        inner = (asked[open_] + INWARDS[:, None] * (self._middle - asked[open_])).ravel()
        more = self._smooth.rows(functional, inner)
        places = np.concatenate([asked, inner])

        def bounds(which: int) -> tuple[FloatArray, FloatArray]:
            both = [
                np.concatenate(pair)
                for pair in zip(found.logs(which), more.logs(which), strict=True)
            ]
            lower, upper = _monotone(which, places, (both[0], both[1]))
            return lower[: asked.size], upper[: asked.size]

        return LogBounds(asked, bounds)

    def _mean(self, which: int, logs: FloatArray) -> FloatArray:
        """Log of the sum over the losses of the few, with the masses of the functional's law."""
        weights = self._log_b if which in OF_B else self._log_a
        terms = logs.reshape(-1, weights.size) + weights
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
    which: int, c: FloatArray, bounds: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Bounds at thresholds that also use those at smaller and at larger ones."""
    order = np.argsort(c)  # NaN comes last
    order = order[: np.count_nonzero(~np.isnan(c))]
    lower, upper = (part.copy() for part in bounds)
    least, most = lower[order], upper[order]
    if which in FALLING:
        lower[order] = np.maximum.accumulate(least[::-1])[::-1]
        upper[order] = np.minimum.accumulate(most)
    else:
        lower[order] = np.maximum.accumulate(least)
        upper[order] = np.minimum.accumulate(most[::-1])[::-1]
    return lower, upper
