"""Poisson-subsampled Gaussian steps: questions answered from the rows of the engines.

For an ordered pair (A, B) with loss S = log dB/dA: T(A, B)(α) = B(S <= c) at A(S > c) = α, and the
profile H_{e^ε}(A‖B) = E_A max(0, 1 - e^{S+ε}).  Laws here have no atoms, so no test is randomised.
"""

from __future__ import annotations

import math

import numpy as np

from pyengine.answers import Answer, Curve
from pyengine.curves import larger
from pyengine.engines.rows import (
    A_ABOVE,
    A_BELOW,
    B_ABOVE,
    B_BELOW,
    ERRORS,
    PROFILE,
    FloatArray,
)
from pyengine.engines.solver import solver
from pyengine.errors import AccuracyError
from pyengine.pairs import GaussianPair

__all__ = ["GaussianPairQuestions", "GaussianQuestions"]

HALF_ULP = 2.0**-53
SUBNORMAL = 1e-323  # what rounding below the normal range may take: a value of 0 is not exact


class GaussianPairQuestions:
    """Questions on one ordered pair; ``method`` names an engine or is "auto"."""

    def __init__(self, pair: GaussianPair, method: str) -> None:
        self.pair = pair
        self.method = method

    def trade_off(self, alpha: FloatArray) -> Curve:
        """T(A, B) at α in [0, 1]."""
        pair = self.pair
        beta, gamma = Answer.exact(1.0 - alpha), Answer.exact(alpha.copy())
        c = np.where(alpha == 0.0, math.inf, np.where(alpha == 1.0, -math.inf, 0.0))
        if pair.is_trivial:
            return Curve(beta, gamma, c)
        for functional in (A_ABOVE, A_BELOW):
            if functional == A_ABOVE:
                chosen = (alpha > 0.0) & (alpha <= 0.5)
                tail = alpha[chosen]
            else:
                chosen = (alpha > 0.5) & (alpha < 1.0)
                tail = 1.0 - alpha[chosen]  # exact for doubles above 1/2
            if not chosen.any():
                continue
            table, names = solver(pair).solve(functional, np.log(tail), self.method)
            c[chosen] = table[:, 0]
            for answer, side in ((beta, B_BELOW), (gamma, B_ABOVE)):
                with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
                    value = np.exp(np.minimum(table[:, 2 + side], 0.0))
                    # an error of the solved tail moves B's tail by e^c times as much
                    shift = np.exp(table[:, 0]) * tail * table[:, ERRORS + functional]
                    error = value * table[:, ERRORS + side]
                    error = np.where(np.isfinite(error), error, 0.0)
                    error += np.minimum(shift, 1.0) + 4.0 * value * HALF_ULP + SUBNORMAL
                answer.put(chosen, Answer.around(value, np.minimum(error, 1.0), names))
        # they add up to 1, and the smaller one is the certain one
        inside = (alpha > 0.0) & (alpha < 1.0)
        for small, large in ((beta, gamma), (gamma, beta)):
            swap = inside & (small.value < 0.5)
            large.value[swap] = 1.0 - small.value[swap]
            large.lower[swap] = 1.0 - small.upper[swap] - 4.0 * HALF_ULP
            large.upper[swap] = 1.0 - small.lower[swap] + 4.0 * HALF_ULP
        # true of every trade-off function, and rounding must not hide it
        np.clip(gamma.value, alpha, 1.0, out=gamma.value)
        np.clip(beta.value, 0.0, 1.0 - alpha, out=beta.value)
        return Curve(beta, gamma, c)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        pair = self.pair
        answer = Answer.exact(np.zeros(epsilon.size))
        chosen = epsilon < largest_epsilon(pair)
        if pair.is_trivial or not chosen.any():
            return answer
        table, names = solver(pair).at(PROFILE, -epsilon[chosen], self.method)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            value = np.exp(np.minimum(table[:, 2 + PROFILE], 0.0))
            error = value * (table[:, ERRORS + PROFILE] + 4.0 * HALF_ULP)
        error = np.where(np.isfinite(error), error, 0.0) + SUBNORMAL
        answer.put(chosen, Answer.around(value, error, names))
        return answer

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        pair = self.pair
        if pair.is_trivial:
            return Answer.exact(np.zeros(delta.size))
        answer = Answer.exact(np.full(delta.size, largest_epsilon(pair)))
        chosen = delta > 0.0
        if chosen.any():
            at_zero = self.profile(np.zeros(1)).value[0]
            answer.put(delta >= at_zero, Answer.exact(np.zeros(int(np.sum(delta >= at_zero)))))
            chosen &= delta < at_zero
        if chosen.any():
            table, names = solver(pair).solve(PROFILE, np.log(delta[chosen]), self.method)
            epsilon = np.maximum(-table[:, 0], 0.0)
            with np.errstate(over="ignore", under="ignore", divide="ignore"):
                # d log δ / dε = -e^{ε} B(S <= -ε) / δ
                slope = np.exp(table[:, 2 + B_BELOW] + epsilon - table[:, 2 + PROFILE])
                error = table[:, ERRORS + PROFILE] / slope + 2.0 * HALF_ULP * (1.0 + epsilon)
            answer.put(chosen, Answer.around(epsilon, error, names))
        return answer


def largest_epsilon(pair: GaussianPair) -> float:
    """The ε at which the profile vanishes: the loss of A against B is at most this."""
    if not pair.reversed and 1.0 not in pair.probability:
        terms = zip(pair.probability, pair.steps, strict=True)
        return -math.fsum(n * math.log1p(-p) for p, n in terms)
    return math.inf


class GaussianQuestions:
    """Questions on both orders of the pair: adjacency ``add_remove``."""

    def __init__(self, add: GaussianPair, remove: GaussianPair, method: str) -> None:
        self._add = GaussianPairQuestions(add, method)
        self._remove = GaussianPairQuestions(remove, method)

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """Lower convex hull of T_add and T_remove (Definition F.1 of Dong, Roth and Su 2022).

        The hull's conjugate is the larger of both profiles.  Where the profile of ``remove`` is the
        larger one at every ε > 0, the hull is T_add left of its point (a, b) of slope -1, the line
        α + β = a + b up to the mirror image (b, a), and T_remove, the mirror image of T_add, from
        there.  That order of the profiles is checked at each answer's own slope.
        """
        add, remove = self._add, self._remove
        beta, gamma = Answer.exact(1.0 - alpha), Answer.exact(alpha.copy())
        if add.pair.is_trivial:
            return beta, gamma
        table, names = solver(add.pair).at(PROFILE, np.zeros(1), add.method)
        distance = math.exp(table[0, 2 + PROFILE])  # total variation: a + b = 1 - distance
        distance_error = distance * table[0, ERRORS + PROFILE]
        a, b = (math.exp(min(table[0, 2 + side], 0.0)) for side in (A_ABOVE, B_BELOW))
        line = (alpha > a) & (alpha < b)
        if line.any():
            count = int(line.sum())
            error = np.full(count, distance_error + 4.0 * HALF_ULP)
            engine = np.full(count, names[0])
            beta.put(line, Answer.around((1.0 - distance) - alpha[line], error, engine))
            gamma.put(line, Answer.around(distance + alpha[line], error, engine))
        for questions, other, chosen in (
            (add, remove, (alpha <= a) & ~line),
            (remove, add, (alpha > a) & ~line),
        ):
            if not chosen.any():
                continue
            curve = questions.trade_off(alpha[chosen])
            beta.put(chosen, curve.beta)
            gamma.put(chosen, curve.gamma)
            _check_order(questions, other, curve.c)
        return beta, gamma

    def profile(self, epsilon: FloatArray) -> Answer:
        """The larger of both profiles at ε >= 0."""
        return larger(self._remove.profile(epsilon), self._add.profile(epsilon))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 at which both profiles are <= δ."""
        return larger(self._remove.epsilon(delta), self._add.epsilon(delta))


def _check_order(pair: GaussianPairQuestions, other: GaussianPairQuestions, c: FloatArray) -> None:
    """Raise if the tangent of slope -e^c to one curve cuts the other one.

    The tangent's intercept is 1 - H_{e^c}(B‖A); for c < 0 the comparison is the same as the one of
    the exchanged laws at -c.
    """
    inner = c[np.isfinite(c)]
    if not inner.size:
        return
    size = np.abs(inner)
    own = np.empty(inner.size)
    rest = np.empty(inner.size)
    for mask, first, second in ((inner >= 0, other, pair), (inner < 0, pair, other)):
        if mask.any():
            own[mask] = first.profile(size[mask]).value
            rest[mask] = second.profile(size[mask]).value
    bad = np.where(inner >= 0, rest > own * (1 + 1e-9) + 1e-300, own * (1 + 1e-9) < rest)
    if bad.any():
        raise AccuracyError(
            "the profiles of adjacency 'add' and 'remove' cross near epsilon "
            f"{float(size[bad][0]):.6g}; ask for each adjacency apart"
        )
