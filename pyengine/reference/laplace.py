"""Laplace steps without sampling: exact sums over the knots of a spline.

With mu = 1/noise, a step has loss -mu with P-mass 1/2, mu with P-mass exp(-mu)/2, and in between
the density exp(-(x + mu)/2)/4.  Times exp(x/2) these are two equal atoms and a uniform piece, so
that exp(S/2) dP of n steps is [A (1 + E) + B (1 - E) I]^n applied to the unit mass at -n mu: A =
exp(-mu/2)/2, B = exp(-mu/2)/4, E a shift by 2 mu, I integration.  Under Q, -S has the law of S
under P.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb, fmpz, fmpz_poly

from pyengine.errors import AccuracyError
from pyengine.reference.answers import Answer
from pyengine.reference.balls import exact, precision

__all__ = ["Laplace", "bracket"]

MOST_KNOTS = 3000
MOST_STEPS = 1200
ROUNDS = 7


class _Spline:
    """exp(S/2) dP as atoms and truncated powers at its knots, at one precision."""

    def __init__(self, parts: list[tuple[float | Fraction, int]]) -> None:
        knots: list[tuple[arb, list[arb]]] = [(arb(0), [arb(1)])]
        for noise, steps in parts:
            mu = 1 / exact(noise)
            own = [(2 * mu * k - steps * mu, row) for k, row in enumerate(_rows(mu, steps))]
            knots = [(x + y, _product(a, b)) for x, a in knots for y, b in own]
        self.knots = sorted(knots, key=lambda knot: knot[0].mid())

    def below(self, c: arb, *, closed: bool, knot: int | None = None) -> arb:
        """Return P(S <= c), or P(S < c) if not closed, for c between knots or at a given one."""
        total = arb(0)
        for k, (x, row) in enumerate(self.knots):
            away = c - x if knot is None else (arb(0) if k == knot else c - x)
            if k == knot:
                total += (-x / 2).exp() * row[0] if closed else arb(0)
                continue
            if away < 0:
                continue
            if not away > 0:
                return arb("nan")
            total += (-x / 2).exp() * _gamma_sum(row, away / 2)
        return total


def _gamma_sum(row: list[arb], y: arb) -> arb:
    """Return row[0] + the sum of row[m] 2^m P(m, y), P the regularised lower gamma function."""
    total = row[0]
    term, upper, scale = (-y).exp(), arb(0), arb(1)
    for m in range(1, len(row)):
        upper += term
        term = term * y / m
        scale *= 2
        total += row[m] * scale * (1 - upper)
    return total


def _rows(mu: arb, steps: int) -> list[list[arb]]:
    """Return by knot the factors of the powers m = 0..steps of I."""
    a, b = (-mu / 2).exp() / 2, (-mu / 2).exp() / 4
    rows = [[arb(0)] * (steps + 1) for _ in range(steps + 1)]
    plus, minus = fmpz_poly([1, 1]), fmpz_poly([1, -1])
    for m in range(steps + 1):
        factor = a ** (steps - m) * b**m * fmpz(math.comb(steps, m))
        for k, whole in enumerate((plus ** (steps - m) * minus**m).coeffs()):
            rows[k][m] = factor * whole
    return rows


def _product(a: list[arb], b: list[arb]) -> list[arb]:
    result = [arb(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return result


class Laplace:
    """Questions on a composition of Laplace steps; see `pyengine.reference.answers.Pair`.

    The mechanism is symmetric: both orders have the same answers.

    Parameters
    ----------
    parts : list of (noise multiplier, int)
        Different steps with their numbers.
    """

    def __init__(self, parts: list[tuple[float | Fraction, int]]) -> None:
        knots = math.prod(steps + 1 for _, steps in parts)
        total = sum(steps for _, steps in parts)
        if knots > MOST_KNOTS or total > MOST_STEPS:
            raise AccuracyError(
                f"exact sums of Laplace steps have {knots} knots here, at most {MOST_KNOTS} are "
                f"feasible, for at most {MOST_STEPS} steps"
            )
        self.parts, self.total = parts, total
        self._done: dict[int, _Spline] = {}

    def _spline(self, bits: int) -> _Spline:
        if bits not in self._done:
            self._done.clear()
            self._done[bits] = _Spline(self.parts)
        return self._done[bits]

    def _ask(self, digits: float, question: Callable[[_Spline], Answer | None]) -> Answer:
        bits = int(3.33 * digits) + 80 + 4 * self.total
        for _ in range(ROUNDS):
            with precision(bits):
                answer = question(self._spline(bits))
                if answer is not None and (
                    answer.value.rel_accuracy_bits() > 3.33 * digits or answer.value == 0
                ):
                    return answer
            bits = int(1.6 * bits)
        raise AccuracyError(f"{digits:g} digits were not reached; ask for fewer digits")

    def trade_off(self, alpha: Fraction, sign: int, wanted: str, digits: float) -> Answer:  # noqa: ARG002
        """Return T(A, B)(alpha) (``wanted`` "beta") or 1 - T ("gamma"), for 0 < alpha < 1."""

        def question(law: _Spline) -> Answer | None:
            level, rest = exact(alpha), exact(1 - alpha)
            size = len(law.knots)
            low, high = 0, size - 1
            # The knot with P(S < x) <= 1 - alpha, P(S < next x) > 1 - alpha.
            while low < high:
                middle = (low + high + 1) // 2
                if law.below(law.knots[middle][0], closed=False, knot=middle) > rest:
                    high = middle - 1
                else:
                    low = middle
            x = law.knots[low][0]
            upto = law.below(x, closed=True, knot=low)
            if not upto < rest:
                before = law.below(x, closed=False, knot=low)
                excess, c = rest - before, x
                q_above = law.below(-x, closed=False, knot=size - 1 - low)
                beta = 1 - law.below(-x, closed=True, knot=size - 1 - low)
                moved = excess * c.exp()
                gamma = q_above + (level - (1 - upto)) * c.exp()
                value = beta + moved if wanted == "beta" else gamma
                return Answer(value, True, x.mid())
            if low == size - 1:
                return None
            gap = bracket(
                lambda c: law.below(c, closed=True) - rest, x, law.knots[low + 1][0], digits / 2 + 4
            )
            if gap is None:
                return None
            left, right = gap
            excess = rest - law.below(left, closed=True)
            moved = left.union(right).exp() * excess
            gamma = law.below(-left, closed=True)
            value = 1 - gamma + moved if wanted == "beta" else gamma - moved
            return Answer(value, True, left)

        return self._ask(digits, question)

    def profile(self, epsilon: Fraction, sign: int, digits: float) -> Answer:  # noqa: ARG002
        """Return H_{exp(epsilon)}(A || B), for epsilon of either sign."""
        return self._ask(digits, lambda law: Answer(self._profile(law, exact(epsilon)), True, None))

    def _profile(self, law: _Spline, c: arb) -> arb:
        top = law.knots[-1][0]
        if c >= top:
            return arb(0)
        if c <= -top:
            return -c.expm1()
        for k, (x, _) in enumerate(law.knots):
            if x.overlaps(c):  # an atom at the threshold adds nothing
                return self._at_knot(law, k, c)
        return law.below(-c, closed=True) - c.exp() * (1 - law.below(c, closed=True))

    def _at_knot(self, law: _Spline, k: int, c: arb) -> arb:
        q_above = law.below(-c, closed=False, knot=len(law.knots) - 1 - k)
        return q_above - c.exp() * (1 - law.below(c, closed=True, knot=k))

    def epsilon(self, delta: Fraction, sign: int, digits: float) -> Answer:  # noqa: ARG002
        """Return the epsilon >= 0 where the profile is delta, in (0, profile at 0)."""

        def question(law: _Spline) -> Answer | None:
            goal = exact(delta)
            top = law.knots[-1][0]
            gap = bracket(lambda c: goal - self._profile(law, c), arb(0), top, digits + 3)
            return None if gap is None else Answer(gap[0].union(gap[1]), True, None)

        return self._ask(digits, question)

    def infinite(self, sign: int) -> arb:  # noqa: ARG002 - neither order has any
        """Return the mass of A where B has none."""
        return arb(0)

    def largest(self, sign: int) -> arb:  # noqa: ARG002 - the same for both orders
        """Return the supremum of log dA/dB."""
        return sum((steps / exact(noise) for noise, steps in self.parts), arb(0))


def bracket(
    gap: Callable[[arb], arb], low: arb, high: arb, digits: float
) -> tuple[arb, arb] | None:
    """Return two exact points around the zero of an increasing function, by false position.

    Parameters
    ----------
    gap : callable
        Negative at ``low``, positive at ``high``.
    digits : float
        The points differ by less than 10^-digits of their size.
    """
    low, high = low.mid(), high.mid()
    width = (high - low).mid()
    at_low = at_high = None
    for step in range(400):
        if at_low is None or at_high is None or step % 3 == 2:
            middle = ((low + high) / 2).mid()
        else:
            middle = (low - at_low * (high - low) / (at_high - at_low)).mid()
            # Beyond the zero, so that both ends close in.
            nudge = (high - low) / 64 if step % 3 == 0 else (low - high) / 64
            middle = (middle + nudge).mid() if low < middle + nudge < high else middle
        value = gap(middle)
        if value < 0:
            low, at_low = middle, value.mid()
        elif value > 0:
            high, at_high = middle, value.mid()
        else:
            return None if not value.is_finite() else _around(gap, middle, width, digits)
        scale = abs(middle).max(width / 1000)
        if high - low < scale * arb(10) ** -arb(digits):
            return low, high
    return None


def _around(
    gap: Callable[[arb], arb], middle: arb, width: arb, digits: float
) -> tuple[arb, arb] | None:
    """Return points on both sides of one where the sign cannot be told."""
    away = (width / 1000 * arb(10) ** -arb(digits)).mid()
    low, high = (middle - away).mid(), (middle + away).mid()
    return (low, high) if gap(low) < 0 < gap(high) else None
