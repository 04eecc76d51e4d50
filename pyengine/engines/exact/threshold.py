"""Questions on a law whose masses above and below any threshold are known to a proven error.

With masses known within a relative error e, γ is known within about 2e, because γ = max Σ φ dB over
tests φ with Σ φ dA <= α is concave in α; docs/theory/exact has the proofs.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pyengine.answers import Answer, Curve, names

__all__ = ["ComposedLaw", "Tails", "ThresholdQuestions"]

FloatArray = npt.NDArray[np.float64]

HALF_ULP = 2.0**-53
SUBNORMAL = 1e-320  # what rounding below the normal range may take


class Tails(NamedTuple):
    """Masses of A and B above a threshold and at most there, infinite losses included."""

    a_above: FloatArray
    a_below: FloatArray
    b_above: FloatArray
    b_below: FloatArray
    error: FloatArray  # a bound on the relative error of each


class ComposedLaw(Protocol):
    """An ordered pair (A, B) of composed laws with loss S = log dB/dA."""

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss."""

    def infinite(self) -> tuple[float, float]:
        """Mass of A at loss -inf and of B at loss inf."""

    def tails(self, c: FloatArray) -> Tails:
        """Masses above c and at most c, for finite c."""

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """H_{e^ε}(A‖B) at ε >= 0, and a bound on its absolute error."""


class ThresholdQuestions:
    """All questions on one composed law."""

    def __init__(self, law: ComposedLaw, engine: str = "exact") -> None:
        self._law = law
        self._engine = engine

    def trade_off(self, alpha: FloatArray) -> Curve:
        """T(A, B) at α in [0, 1]."""
        law = self._law
        a_lost, b_lost = law.infinite()
        low, high = law.support()
        lower, upper = np.full(alpha.size, low), np.full(alpha.size, high)
        # room for the rounding of losses, so that no atom at an end is outside
        room = 32.0 * HALF_ULP * (1.0 + max(abs(low), abs(high)))
        lower -= room
        upper += room
        rest = 1.0 - alpha
        small = alpha <= 0.5

        def exceeds(tails: Tails) -> npt.NDArray[np.bool_]:
            """Whether {S > c} has more of A than α."""
            return np.where(small, tails.a_above > alpha, tails.a_below < rest)

        while True:
            middle = 0.5 * (lower + upper)
            open_ = (upper - lower > 0.25 * room) & (middle > lower) & (middle < upper)
            if not open_.any():
                break
            over = exceeds(law.tails(middle))
            lower = np.where(open_ & over, middle, lower)
            upper = np.where(open_ & ~over, middle, upper)
        first, last = law.tails(upper), law.tails(lower)
        width = upper - lower
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(
                small,
                (alpha - first.a_above) / (last.a_above - first.a_above),
                (first.a_below - rest) / (first.a_below - last.a_below),
            )
            # formed apart: 1 - share has no digits where share is nearly 1
            other = np.where(
                small, 1.0 - share, (rest - last.a_below) / (first.a_below - last.a_below)
            )
        share = np.clip(np.nan_to_num(share, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
        other = np.clip(np.nan_to_num(other, nan=1.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
        jump = np.maximum(
            np.where(
                first.b_above < 0.5, last.b_above - first.b_above, first.b_below - last.b_below
            ),
            0.0,
        )
        error = np.maximum(first.error, last.error) + 8.0 * HALF_ULP
        gamma = first.b_above + share * jump
        gamma_error = gamma * (3.0 * error + 2.0 * width)
        beta = last.b_below + other * jump
        with np.errstate(over="ignore"):
            # the level is met within the error of the smaller side, and β moves e^c times as much
            level = np.where(small, alpha, np.minimum(rest, first.a_below))
            pull = np.minimum(np.exp(upper) * level, 1.0)
        beta_error = (beta + pull) * (3.0 * error + 2.0 * width)
        # α = 0 and all of A that B cannot show
        edge = float(law.tails(np.array([low - 1.0])).error[0])
        nothing, all_ = alpha == 0.0, rest <= a_lost
        for mask, value in ((nothing, b_lost), (all_, 1.0)):
            gamma[mask], beta[mask] = value, 1.0 - value
            whole = 4.0 * HALF_ULP * (0.0 < value < 1.0)
            gamma_error[mask] = beta_error[mask] = whole + min(value, 1.0 - value) * 3.0 * edge
        c = np.where(nothing, np.inf, np.where(all_, -np.inf, upper))
        return _curve(alpha, beta, beta_error, gamma, gamma_error, c, self._engine)

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        value, error = self._profile(epsilon)
        answer = Answer.around(value, error, names(self._engine, value.size))
        np.clip(answer.lower, 0.0, 1.0, out=answer.lower)
        np.clip(answer.upper, 0.0, 1.0, out=answer.upper)
        return answer

    def _profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Profile and error, at ε = inf too."""
        value = np.full(epsilon.size, self._law.infinite()[0])
        low, _ = self._law.support()
        error = value * (4.0 * HALF_ULP + 2.5 * self._law.tails(np.array([low - 1.0])).error)
        finite = np.isfinite(epsilon)
        if finite.any():
            inner, inner_error = self._law.profile(epsilon[finite])
            value[finite], error[finite] = inner, inner_error + SUBNORMAL
        return np.minimum(value, 1.0), error

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        largest = max(-self._law.support()[0], 0.0)
        size = delta.size
        if not size:
            return Answer.exact(np.zeros(0))
        parts = []
        for slack in (-1.0, 0.0, 1.0):  # by a profile too low, as computed, and too high
            low, high = np.zeros(size), np.full(size, largest * (1.0 + 4.0 * HALF_ULP))

            def reaches(epsilon: FloatArray, slack: float = slack) -> npt.NDArray[np.bool_]:
                value, error = self._profile(epsilon)
                return value + slack * error <= delta

            never = ~reaches(np.full(size, np.inf))
            high[reaches(low)] = 0.0
            for _ in range(1100):
                middle = 0.5 * (low + high)
                open_ = (middle > low) & (middle < high)
                open_ &= high - low > HALF_ULP * high
                if not open_.any():
                    break
                done = reaches(middle)
                high = np.where(open_ & done, middle, high)
                low = np.where(open_ & ~done, middle, low)
            parts.append(np.where(never, np.inf, high))
        lower = np.maximum(parts[0] * (1.0 - 4.0 * HALF_ULP), 0.0)
        return Answer(parts[1], lower, parts[2], names(self._engine, size))


def _curve(
    alpha: FloatArray,
    beta: FloatArray,
    beta_error: FloatArray,
    gamma: FloatArray,
    gamma_error: FloatArray,
    c: FloatArray,
    engine: str,
) -> Curve:
    """Both errors add up to 1; the one that is known less well is taken from the other."""
    rounding = 2.0 * HALF_ULP
    better = gamma_error <= beta_error
    beta = np.where(better, 1.0 - gamma, beta)
    gamma = np.where(better, gamma, 1.0 - beta)
    beta_error = np.where(better, gamma_error + rounding, beta_error) + rounding * beta + SUBNORMAL
    gamma_error = np.where(better, gamma_error, beta_error + rounding) + rounding * gamma
    gamma_error += SUBNORMAL
    gamma = np.clip(gamma, alpha, 1.0)
    beta = np.clip(beta, 0.0, 1.0 - alpha)
    engines = names(engine, alpha.size)
    return Curve(
        _clipped(Answer.around(beta, beta_error, engines), np.zeros(alpha.size), 1.0 - alpha),
        _clipped(Answer.around(gamma, gamma_error, engines), alpha, np.ones(alpha.size)),
        c,
    )


def _clipped(answer: Answer, low: FloatArray, high: FloatArray) -> Answer:
    answer.lower = np.clip(answer.lower, low, high)
    answer.upper = np.clip(answer.upper, low, high)
    return answer
