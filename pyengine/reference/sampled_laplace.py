"""Sampled Laplace steps: questions on two discretisations of their law; an estimate."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from pyengine.errors import AccuracyError
from pyengine.reference.answers import Answer
from pyengine.reference.balls import exact, precision, spread
from pyengine.reference.laplace import bracket
from pyengine.reference.piecewise import Pieces

__all__ = ["SampledLaplace"]

MOST_STEPS = 150
MOST_ORDER = 260
ROUNDS = 3


class SampledLaplace:
    """Questions on equal sampled Laplace steps; see `pyengine.reference.answers.Pair`.

    The error is ten times the difference of two runs that differ in the number of nodes and in the
    precision, and their rounding.

    Parameters
    ----------
    noise, probability : float or Fraction
        Of every step; probability in (0, 1).
    steps : int
        Number of steps.
    """

    def __init__(self, noise: float | Fraction, probability: float | Fraction, steps: int) -> None:
        if steps > MOST_STEPS:
            raise AccuracyError(
                f"no ground truth for more than {MOST_STEPS} sampled Laplace steps, got {steps}"
            )
        self.noise, self.probability, self.steps = noise, probability, steps
        self._done: tuple[float, list[tuple[Pieces, int]]] | None = None

    def _order(self, digits: float) -> int:
        """Return how many nodes resolve the density, whose singularity lies left of its range."""
        mu = 1 / float(self.noise)
        away = math.exp(-mu) / (2 * math.sinh(mu))  # to the left end, over the width, for small p
        rate = 1 + 2 * away + 2 * (away * (1 + away)) ** 0.5
        return int((digits + 6) * 2.303 / math.log(rate)) + 12

    def _runs(self, digits: float) -> list[tuple[Pieces, int]]:
        if self._done is None or self._done[0] < digits:
            order, runs = self._order(digits), []
            if order > MOST_ORDER:
                raise AccuracyError(
                    f"{digits:g} digits would need polynomials of degree {order} on each piece; "
                    "ask for fewer digits or add noise"
                )
            for more in (0, 9):
                bits = int(3.4 * digits) + 90 + order + 3 * self.steps + 8 * more
                with precision(bits):
                    pieces = Pieces(self.noise, self.probability, self.steps, order + more)
                runs.append((pieces, bits))
            self._done = digits, runs
        return self._done[1]

    def _ask(self, digits: float, question: Callable[[Pieces, float], Answer | None]) -> Answer:
        depth = digits
        for _ in range(ROUNDS):
            answers = []
            for pieces, bits in self._runs(depth):
                with precision(bits):
                    answers.append(question(pieces, depth))
            one, two = answers
            if one is not None and two is not None:
                with precision(4 * int(depth) + 200):
                    value = two.value + spread(10 * (one.value - two.value))
                    if value.rel_accuracy_bits() > 3.33 * digits or value == 0:
                        return Answer(value, False, two.threshold)
            depth += 12
        raise AccuracyError(f"{digits:g} digits were not reached; ask for fewer digits")

    def trade_off(self, alpha: Fraction, sign: int, wanted: str, digits: float) -> Answer:
        """Return T(A, B)(alpha) (``wanted`` "beta") or 1 - T ("gamma"), for 0 < alpha < 1."""

        def question(law: Pieces, depth: float) -> Answer | None:
            level = exact(alpha)
            a, b = ("p", "q") if sign > 0 else ("q", "p")
            reject = law.above if sign > 0 else law.below
            accept = law.below if sign > 0 else law.above
            # Knots in the order in which they are rejected.
            knots = range(law.steps, -1, -1) if sign > 0 else range(law.steps + 1)
            last = None
            for j in knots:
                if reject(a, j, closed=True) > level:
                    last = j
                    break
            if last is None:
                return None
            scale = (sign * law.knot(last)).exp()
            before = reject(a, last, closed=False)
            if not before > level:
                moved = (level - before) * scale
                gamma = reject(b, last, closed=False) + moved
                beta = accept(b, last, closed=True) - moved
                return Answer(beta if wanted == "beta" else gamma, False, (scale.log()).mid())
            after = last + sign
            low, high = law.knot(min(last, after)), law.knot(max(last, after))
            index = {("p", 1): 0, ("q", -1): 3}[(a, sign)]
            gap = bracket(lambda c: sign * (level - law.tails(c)[index]), low, high, depth / 2 + 4)
            if gap is None:
                return None
            low, high = gap if sign > 0 else gap[::-1]
            p_above, p_below, q_above, q_below = law.tails(low)
            excess = (p_above if sign > 0 else q_below) - level
            moved = (sign * low).union(sign * high).exp() * excess
            gamma, beta = (q_above, q_below) if sign > 0 else (p_below, p_above)
            value = beta + moved if wanted == "beta" else gamma - moved
            return Answer(value, False, sign * low)

        return self._ask(digits, question)

    def profile(self, epsilon: Fraction, sign: int, digits: float) -> Answer:
        """Return H_{exp(epsilon)}(A || B), for epsilon of either sign."""
        return self._ask(
            digits, lambda law, _: Answer(_profile(law, exact(epsilon), sign), False, None)
        )

    def epsilon(self, delta: Fraction, sign: int, digits: float) -> Answer:
        """Return the epsilon >= 0 where the profile is delta, in (0, profile at 0)."""

        def question(law: Pieces, depth: float) -> Answer | None:
            top = law.knot(law.steps) if sign < 0 else -law.knot(0)
            gap = bracket(lambda c: exact(delta) - _profile(law, c, sign), arb(0), top, depth + 3)
            return None if gap is None else Answer(gap[0].union(gap[1]), False, None)

        return self._ask(digits, question)

    def infinite(self, sign: int) -> arb:  # noqa: ARG002 - neither order has any
        """Return the mass of A where B has none."""
        return arb(0)

    def largest(self, sign: int) -> arb:
        """Return the supremum of log dA/dB."""
        mu = 1 / exact(self.noise)
        p, rest = exact(self.probability), exact(1 - Fraction(self.probability))
        if sign > 0:
            return -self.steps * (rest + p * (-mu).exp()).log()
        return self.steps * (rest + p * mu.exp()).log()


def _profile(law: Pieces, epsilon: arb, sign: int) -> arb:
    """Return H_{exp(epsilon)}(P || Q) for sign 1, H(Q || P) for -1."""
    scale = epsilon.exp()
    p_above, p_below, q_above, q_below = law.tails(-sign * epsilon)
    return p_below - scale * q_below if sign > 0 else q_above - scale * p_above
