"""Trade-off functions and privacy profiles of a mechanism from the rows of the engines.

For an ordered pair (A, B) with loss S = log dB/dA: T(A, B)(α) = B(S <= c) at A(S > c) = α, and the
profile H_{e^ε}(A‖B) = E_A max(0, 1 - e^{S+ε}).  Laws here have no atoms, so no test is randomised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyengine.engines.rows import (
    A_ABOVE,
    A_BELOW,
    B_ABOVE,
    B_BELOW,
    ERRORS,
    PROFILE,
    FloatArray,
)
from pyengine.engines.select import solver
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism
from pyengine.pairs import GaussianPair, ordered_pair

__all__ = ["Answer", "epsilon_of_delta", "profile", "trade_off_curve"]

HALF_ULP = 2.0**-53
SUBNORMAL = 1e-323  # what rounding below the normal range may take: a value of 0 is not exact


@dataclass
class Answer:
    """Values with absolute errors and the engine behind each, as flat arrays."""

    value: FloatArray
    error: FloatArray
    engine: npt.NDArray[np.str_]

    @classmethod
    def exact(cls, value: FloatArray) -> Answer:
        """Values that need no engine."""
        return cls(value, np.zeros(value.size), np.full(value.size, "exact", dtype="<U12"))

    def put(self, where: npt.NDArray[np.bool_], other: Answer) -> None:
        """Replace the entries of a mask."""
        self.value[where] = other.value
        self.error[where] = other.error
        self.engine[where] = other.engine


@dataclass
class Curve:
    """T(A, B) at some α: both errors of the test, with slope -e^c."""

    beta: Answer
    gamma: Answer
    c: FloatArray


def _pair_curve(pair: GaussianPair, alpha: FloatArray, method: str) -> Curve:
    """T(A, B) for one ordered pair at α in [0, 1]."""
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
        table, names = solver(pair).solve(functional, np.log(tail), method)
        c[chosen] = table[:, 0]
        for answer, side in ((beta, B_BELOW), (gamma, B_ABOVE)):
            with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
                value = np.exp(np.minimum(table[:, 2 + side], 0.0))
                # an error of the solved tail moves B's tail by e^c times as much
                shift = np.exp(table[:, 0]) * tail * table[:, ERRORS + functional]
                error = value * table[:, ERRORS + side]
                error = np.where(np.isfinite(error), error, 0.0)
                error += np.minimum(shift, 1.0) + 4.0 * value * HALF_ULP + SUBNORMAL
            answer.put(chosen, Answer(value, np.minimum(error, 1.0), names))
    # they add up to 1, and the smaller one is the certain one
    inside = (alpha > 0.0) & (alpha < 1.0)
    for small, large in ((beta, gamma), (gamma, beta)):
        swap = inside & (small.value < 0.5)
        large.value[swap] = 1.0 - small.value[swap]
        large.error[swap] = small.error[swap] + 4.0 * HALF_ULP
    # true of every trade-off function, and rounding must not hide it
    np.clip(gamma.value, alpha, 1.0, out=gamma.value)
    np.clip(beta.value, 0.0, 1.0 - alpha, out=beta.value)
    return Curve(beta, gamma, c)


def _pair_profile(pair: GaussianPair, epsilon: FloatArray, method: str) -> Answer:
    """H_{e^ε}(A‖B) for one ordered pair at ε >= 0."""
    answer = Answer.exact(np.zeros(epsilon.size))
    chosen = epsilon < largest_epsilon(pair)
    if pair.is_trivial or not chosen.any():
        return answer
    table, names = solver(pair).at(PROFILE, -epsilon[chosen], method)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        value = np.exp(np.minimum(table[:, 2 + PROFILE], 0.0))
        error = value * (table[:, ERRORS + PROFILE] + 4.0 * HALF_ULP)
    answer.put(chosen, Answer(value, np.where(np.isfinite(error), error, 0.0) + SUBNORMAL, names))
    return answer


def _pair_epsilon(pair: GaussianPair, delta: FloatArray, method: str) -> Answer:
    """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ for one ordered pair."""
    if pair.is_trivial:
        return Answer.exact(np.zeros(delta.size))
    answer = Answer.exact(np.full(delta.size, largest_epsilon(pair)))
    at_zero = _pair_profile(pair, np.zeros(1), method)
    answer.put(
        delta >= at_zero.value[0], Answer.exact(np.zeros(int(np.sum(delta >= at_zero.value[0]))))
    )
    chosen = (delta > 0.0) & (delta < at_zero.value[0])
    if chosen.any():
        table, names = solver(pair).solve(PROFILE, np.log(delta[chosen]), method)
        epsilon = np.maximum(-table[:, 0], 0.0)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            # d log δ / dε = -e^{ε} B(S <= -ε) / δ
            slope = np.exp(table[:, 2 + B_BELOW] + epsilon - table[:, 2 + PROFILE])
            error = table[:, ERRORS + PROFILE] / slope + 2.0 * HALF_ULP * (1.0 + epsilon)
        answer.put(chosen, Answer(epsilon, error, names))
    return answer


def largest_epsilon(pair: GaussianPair) -> float:
    """The ε at which the profile vanishes: the loss of A against B is at most this."""
    if not pair.reversed and 1.0 not in pair.probability:
        terms = zip(pair.probability, pair.steps, strict=True)
        return -math.fsum(n * math.log1p(-p) for p, n in terms)
    return math.inf


def trade_off_curve(
    mechanism: Mechanism, alpha: FloatArray, adjacency: str, method: str
) -> tuple[Answer, Answer]:
    """β = T(α) and γ = 1 - T(α), each with its own accuracy, for flat α in [0, 1]."""
    if adjacency != "add_remove":
        curve = _pair_curve(ordered_pair(mechanism, adjacency), alpha, method)
        return curve.beta, curve.gamma
    return _symmetric_curve(mechanism, alpha, method)


def _symmetric_curve(mechanism: Mechanism, alpha: FloatArray, method: str) -> tuple[Answer, Answer]:
    """Lower convex hull of T_add and T_remove (Definition F.1 of Dong, Roth and Su 2022).

    The hull's conjugate is the larger of both profiles.  Where the profile of ``remove`` is the
    larger one at every ε > 0, the hull is T_add left of its point (a, b) of slope -1, the line
    α + β = a + b up to the mirror image (b, a), and T_remove, the mirror image of T_add, from
    there.  That order of the profiles is checked at each answer's own slope.
    """
    add, remove = ordered_pair(mechanism, "add"), ordered_pair(mechanism, "remove")
    beta, gamma = Answer.exact(1.0 - alpha), Answer.exact(alpha.copy())
    if add.is_trivial:
        return beta, gamma
    table, names = solver(add).at(PROFILE, np.zeros(1), method)
    distance = math.exp(table[0, 2 + PROFILE])  # total variation: a + b = 1 - distance
    distance_error = distance * table[0, ERRORS + PROFILE]
    a, b = (math.exp(min(table[0, 2 + side], 0.0)) for side in (A_ABOVE, B_BELOW))
    line = (alpha > a) & (alpha < b)
    if line.any():
        count = int(line.sum())
        error = np.full(count, distance_error + 4.0 * HALF_ULP)
        engine = np.full(count, names[0])
        beta.put(line, Answer((1.0 - distance) - alpha[line], error, engine))
        gamma.put(line, Answer(distance + alpha[line], error.copy(), engine))
    for pair, other, chosen in (
        (add, remove, (alpha <= a) & ~line),
        (remove, add, (alpha > a) & ~line),
    ):
        if not chosen.any():
            continue
        curve = _pair_curve(pair, alpha[chosen], method)
        beta.put(chosen, curve.beta)
        gamma.put(chosen, curve.gamma)
        _check_order(pair, other, curve.c, method)
    return beta, gamma


def _check_order(pair: GaussianPair, other: GaussianPair, c: FloatArray, method: str) -> None:
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
            own[mask] = _pair_profile(first, size[mask], method).value
            rest[mask] = _pair_profile(second, size[mask], method).value
    bad = np.where(inner >= 0, rest > own * (1 + 1e-9) + 1e-300, own * (1 + 1e-9) < rest)
    if bad.any():
        raise AccuracyError(
            "the profiles of adjacency 'add' and 'remove' cross near epsilon "
            f"{float(size[bad][0]):.6g}; ask for each adjacency apart"
        )


def profile(mechanism: Mechanism, epsilon: FloatArray, adjacency: str, method: str) -> Answer:
    """δ(ε) for flat ε >= 0."""
    if adjacency != "add_remove":
        return _pair_profile(ordered_pair(mechanism, adjacency), epsilon, method)
    first = _pair_profile(ordered_pair(mechanism, "remove"), epsilon, method)
    second = _pair_profile(ordered_pair(mechanism, "add"), epsilon, method)
    return _larger(first, second)


def epsilon_of_delta(
    mechanism: Mechanism, delta: FloatArray, adjacency: str, method: str
) -> Answer:
    """The smallest ε >= 0 with δ(ε) <= δ, for flat δ in [0, 1]."""
    if adjacency != "add_remove":
        return _pair_epsilon(ordered_pair(mechanism, adjacency), delta, method)
    first = _pair_epsilon(ordered_pair(mechanism, "remove"), delta, method)
    second = _pair_epsilon(ordered_pair(mechanism, "add"), delta, method)
    return _larger(first, second)


def _larger(first: Answer, second: Answer) -> Answer:
    where = second.value > first.value
    first.put(where, Answer(second.value[where], second.error[where], second.engine[where]))
    return first
