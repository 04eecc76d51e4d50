"""Edgeworth's approximation of the test between both laws of the composed privacy loss.

The loss has an expansion under each hypothesis; a level is turned into a threshold by the first and
the threshold into a power by the second (Zheng et al. 2020, section 3.1; Kaissis et al. 2023,
section 4.3).  The error estimate of order k is the difference from order k - 1 and, because terms
change their sign, a quarter of that from order k - 2.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from pyengine.engines.answers import Answer, ErrorCurve, names
from pyengine.engines.approximate import (
    DOUBTFUL,
    ApproximatePair,
    FloatArray,
    JoinedOrders,
    curve_of,
    inverse_profile,
    warn_where,
)
from pyengine.engines.edgeworth_series import MAX_ORDER, Expansion, cumulants
from pyengine.engines.loss_quadrature import losses
from pyengine.engines.saddle_point import SaddlePoint
from pyengine.mechanisms import Mechanism

__all__ = ["EdgeworthPair", "edgeworth_questions"]

# Relative, of a tail: thresholds are taken for found to that much of their level, and cumulants of
# up to 10^8 steps move a far tail by less.
ROUNDING = 1e-9
# Tails above this, some 2.5 standard deviations, are judged by the orders of the expansion alone:
# there they do it better than the saddle-point formula.
JUDGED = 6e-3


class EdgeworthPair(ApproximatePair):
    """Expansions of order 0 to 4 on one ordered pair.

    Parameters
    ----------
    mechanism : Mechanism
        Gaussian and Laplace steps, with or without Poisson sampling.
    adjacency : {"add", "remove"}
        Which law is A.
    order : int
        Terms of the expansion, up to those of size steps^(-order/2).
    """

    def __init__(self, mechanism: Mechanism, adjacency: str, order: int = MAX_ORDER) -> None:
        terms = losses(mechanism, adjacency)
        self._trivial = not terms
        self._order = order
        if self._trivial:
            return
        laws = [
            [(t.loss, getattr(t, under), t.steps) for t in terms]
            for under in ("under_a", "under_b")
        ]
        self._cumulants = tuple(cumulants(law) for law in laws)
        self._judges = tuple(SaddlePoint(law) for law in laws)
        self._largest = math.fsum(t.largest * t.steps for t in terms)
        self._pairs = {k: self._laws(k) for k in (order, *self._compared())}

    def _laws(self, order: int) -> tuple[Expansion, Expansion]:
        a, b = (Expansion.of(cumulant, order) for cumulant in self._cumulants)
        return a, b

    def _compared(self) -> dict[int, float]:
        """Orders that the result is compared with, and how much each difference counts."""
        if self._order < 2:
            return {1 - self._order: 1.0}
        return {self._order - 1: 1.0, self._order - 2: 0.25}

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        if self._trivial:
            return curve_of(alpha, 1 - alpha, alpha, 0 * alpha, 0 * alpha, "edgeworth")
        level = np.where((alpha > 0.0) & (alpha < 1.0), alpha, 0.5)
        beta, gamma, c, outside = self._at(self._order, level)
        # what is near 1 has none of the digits in which its complement differs
        smaller = _smaller(beta, gamma)
        error = np.where(outside, 1.0, ROUNDING * smaller)
        for order, share in self._compared().items():
            other_beta, other_gamma = self._at(order, level, c)[:2]
            other = np.where(beta < gamma, other_beta, other_gamma)
            error += share * np.abs(smaller - other)
        missed = self._missed(level, c, beta, gamma)
        outside |= np.isinf(missed)
        error = np.where(outside, 1.0, error + missed)
        # every trade-off function lies between 0 and 1 - α: how far this one does not is its error
        error += np.maximum(beta - (1.0 - level), 0.0) + np.maximum(level - gamma, 0.0)
        inner = (alpha > 0.0) & (alpha < 1.0)
        smaller = _smaller(np.minimum(beta, 1.0 - level), np.maximum(gamma, level))
        warn_where(smaller[inner], error[inner], outside[inner], "edgeworth")
        return curve_of(alpha, beta, gamma, error, c, "edgeworth")

    def _missed(
        self, level: FloatArray, c: FloatArray, beta: FloatArray, gamma: FloatArray
    ) -> FloatArray:
        """How far tails at a threshold are from those of the saddle-point formula; inf if it fails.

        All orders of an expansion can be wrong together far out, and agree.  Where the formula's
        second term is no small part of it, a few large steps decide, and its size counts as well.
        """
        total = np.zeros(c.size)
        for law, above, below in ((0, level, 1.0 - level), (1, gamma, beta)):
            sign, tail, own = self._judges[law].tails(c)
            ours = np.where(sign > 0.0, above, below)
            with np.errstate(invalid="ignore", over="ignore"):
                distance = np.abs(ours - tail) + np.where(own > DOUBTFUL, own * tail, 0.0)
                if law == 0:  # a wrong level moves β by the slope of the curve
                    distance = distance * np.exp(c)
            missed = np.where(np.isnan(tail), own, distance)
            total += np.where(ours < JUDGED, missed, 0.0)
        return total

    def _at(
        self, order: int, level: FloatArray, start: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray, npt.NDArray[np.bool_]]:
        a, b = self._pairs[order]
        c = a.threshold(level, start)
        reached = np.abs(a.above(c) - level) <= 1e-9 * np.minimum(level, 1.0 - level)
        outside = np.logical_not(reached & b.inside(c))
        return b.below(c), b.above(c), c, outside

    def middle(self) -> tuple[float, float]:
        """A(S > 0) and B(S <= 0)."""
        if self._trivial:
            return 0.5, 0.5
        a, b = self._pairs[self._order]
        zero = np.zeros(1)
        return float(a.above(zero)[0]), float(b.below(zero)[0])

    def _signed(self, order: int, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A(S <= -ε) - e^ε B(S <= -ε), of either sign, and the rounding of both."""
        a, b = self._pairs[order]
        with np.errstate(over="ignore", invalid="ignore"):
            second = np.exp(epsilon) * b.below(-epsilon)
        second = np.where(np.isfinite(second), second, 1.0)
        first = a.below(-epsilon)
        return first - second, ROUNDING * (first + second)

    def _delta(self, order: int, epsilon: FloatArray) -> FloatArray:
        value = np.clip(self._signed(order, epsilon)[0], 0.0, 1.0)
        return np.where(epsilon >= self._largest, 0.0, value)

    def _delta_error(self, epsilon: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Error estimate of a profile, 1 where an expansion does not reach; and where that is."""
        value, error = self._signed(self._order, epsilon)
        for order, share in self._compared().items():
            other, rounding = self._signed(order, epsilon)
            error += share * (np.abs(value - other) + rounding)
        error += np.abs(value - np.clip(value, 0.0, 1.0))  # outside of what profiles may be
        a, b = self._pairs[self._order]
        outside = ~(a.inside(-epsilon) & b.inside(-epsilon))
        possible = epsilon < self._largest
        return np.where(possible, np.where(outside, 1.0, error), 0.0), possible & outside

    def _profile_missed(self, epsilon: FloatArray) -> FloatArray:
        """How far a profile's two masses are from those of the saddle-point formula, at most 1.

        B's mass is far out in its tail wherever ε counts, and e^ε makes up for what it lacks.
        """
        total, c = np.zeros(epsilon.size), -epsilon
        for law, expansion in enumerate(self._pairs[self._order]):
            sign, tail, own = self._judges[law].tails(c)
            ours = np.where(sign > 0.0, expansion.above(c), expansion.below(c))
            with np.errstate(invalid="ignore", over="ignore"):
                distance = np.abs(ours - tail) + np.where(own > DOUBTFUL, own * tail, 0.0)
                missed = np.where(np.isnan(tail), own, distance)
                if law == 1:
                    missed = missed * np.exp(epsilon)
            total += np.where((ours < JUDGED) & (epsilon < self._largest), missed, 0.0)
        return np.minimum(np.where(np.isnan(total), 1.0, total), 1.0)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        if self._trivial:
            return Answer.exact(np.zeros(epsilon.size))
        value = self._delta(self._order, epsilon)
        error, outside = self._delta_error(epsilon)
        error = np.minimum(error + self._profile_missed(epsilon), 1.0)
        warn_where(value, error, outside, "edgeworth")
        lower, upper = np.maximum(value - error, 0.0), np.minimum(value + error, 1.0)
        return Answer(value, lower, upper, names("edgeworth", value.size))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ, for δ in [0, 1]."""
        if self._trivial:
            return Answer.exact(np.zeros(delta.size))
        value = inverse_profile(partial(self._delta, self._order), delta, self._largest)
        error = np.where(delta > 0.0, ROUNDING * value, 0.0)
        with np.errstate(invalid="ignore"):
            for order, share in self._compared().items():
                other = inverse_profile(partial(self._delta, order), delta, self._largest)
                error += np.where(value == other, 0.0, share * np.abs(value - other))
            # where the profile may cross δ if it is off by its own error
            for side in (-1.0, 1.0):
                end = inverse_profile(partial(self._moved, side), delta, self._largest)
                off = np.where(value == end, 0.0, np.abs(value - end))
                error = np.where(delta > 0.0, np.maximum(error, off), error)
            # the same for what the saddle-point formula says of the profile there
            known = np.where(np.isfinite(value), value, 0.0)
            missed = self._profile_missed(known)
            for level in (delta - missed, delta + missed):
                level = np.clip(level, 0.0, 1.0)
                end = inverse_profile(partial(self._delta, self._order), level, self._largest)
                off = np.where((value == end) | (missed == 0.0), 0.0, np.abs(value - end))
                error = np.where(delta > 0.0, error + off, error)
        a, b = self._pairs[self._order]
        finite = np.where(np.isfinite(value), value, 0.0)
        inside = a.inside(-finite) & b.inside(-finite)
        outside = (value > 0.0) & (value < self._largest) & ~inside
        outside |= np.isinf(value) & (delta > 0.0)
        warn_where(value, error, outside, "edgeworth")
        error = np.where(outside, math.inf, error)
        with np.errstate(invalid="ignore"):
            lower = np.maximum(np.where(np.isfinite(error), value - error, 0.0), 0.0)
        lower = np.where(np.isinf(value) & ~outside, value, lower)
        return Answer(value, lower, value + error, names("edgeworth", value.size))

    def _moved(self, side: float, epsilon: FloatArray) -> FloatArray:
        return np.clip(
            self._delta(self._order, epsilon) + side * self._delta_error(epsilon)[0], 0.0, 1.0
        )


def _smaller(beta: FloatArray, gamma: FloatArray) -> FloatArray:
    return np.where(beta < gamma, beta, gamma)


def edgeworth_questions(
    mechanism: Mechanism, adjacency: str, order: int = MAX_ORDER
) -> EdgeworthPair | JoinedOrders:
    """Return what answers by Edgeworth's expansion of the given order."""
    if adjacency == "add_remove":
        return JoinedOrders(
            EdgeworthPair(mechanism, "add", order), EdgeworthPair(mechanism, "remove", order)
        )
    return EdgeworthPair(mechanism, adjacency, order)
