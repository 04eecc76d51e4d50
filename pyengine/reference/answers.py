"""Questions on an ordered pair of laws, and the joint answer for both orders of a pair."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from flint import arb

from pyengine.errors import AccuracyError
from pyengine.reference.balls import exact, precision, to_fraction

__all__ = ["BallAnswer", "Pair", "hull", "larger"]

MOST_HALVINGS = 60  # bisections of u in `hull`, besides 4 for each digit


@dataclass(frozen=True)
class BallAnswer:
    """A ball with the answer, proven to enclose the truth if ``certified``.

    For a trade-off function, the tangent of slope -exp(``threshold``) passes through the ball at
    alpha, too.
    """

    value: arb
    certified: bool
    threshold: arb | None


class Pair(Protocol):
    """A pair of laws (P, Q); ``sign`` = 1 asks about (A, B) = (P, Q), -1 about (Q, P)."""

    def trade_off(self, alpha: Fraction, sign: int, wanted: str, digits: float) -> BallAnswer:
        """Return T(A, B)(alpha) (``wanted`` "beta") or 1 - T ("gamma"), for 0 < alpha < 1."""

    def profile(
        self, epsilon: Fraction, sign: int, digits: float, enough: arb | None = None
    ) -> BallAnswer:
        """Return H_{exp(epsilon)}(A || B), for epsilon of either sign.

        An absolute error below ``enough`` is accepted, too: an answer of 0 has no relative error.
        """

    def epsilon(self, delta: Fraction, sign: int, digits: float) -> BallAnswer:
        """Return the epsilon >= 0 where the profile is delta, for 0 < delta < profile at 0."""

    def infinite(self, sign: int) -> arb:
        """Return the mass of A where B has none."""

    def largest(self, sign: int) -> arb | None:
        """Return the supremum of log dA/dB where it is finite; None if there is none."""


def larger(one: BallAnswer, two: BallAnswer) -> BallAnswer:
    """Return the larger of two answers."""
    with precision(4000):
        return BallAnswer(one.value.max(two.value), one.certified and two.certified, None)


def hull(pair: Pair, alpha: Fraction, wanted: str, digits: float) -> BallAnswer:
    """Return the lower convex hull of T(P, Q) and T(Q, P) at 0 < alpha < 1, or 1 minus it.

    ``wanted`` is "beta" for the hull and "gamma" for 1 minus it.  The hull is the supremum over u
    of 1 - max(H_{exp(u)}(Q || P), H_{exp(u)}(P || Q)) - exp(u) alpha.  If at the u of the tangent
    of T(P, Q) the divergence of (Q, P) is the larger one, the hull equals T(P, Q) there, and
    likewise with P and Q exchanged.  Otherwise the supremum is at the u between both tangents'
    where the divergences are equal, which bisection finds.
    """
    ends = []
    for sign in (1, -1):
        answer = pair.trade_off(alpha, sign, wanted, digits)
        if answer.threshold is None:
            return answer
        met = _met(pair, answer, sign, wanted, digits)
        if met is not None:
            return met
        ends.append(to_fraction(answer.threshold))
    if min(ends) <= 0 <= max(ends):
        return _line(pair, Fraction(0), alpha, wanted, digits)
    low, high = ends
    for _ in range(MOST_HALVINGS + int(4 * digits)):
        middle = (low + high) / 2
        one, two = pair.profile(middle, -1, digits), pair.profile(middle, 1, digits)
        if one.value < two.value:
            low = middle
        elif two.value < one.value:
            high = middle
        else:
            return _line(pair, middle, alpha, wanted, digits)
    return _line(pair, low, alpha, wanted, digits)


def _met(
    pair: Pair, answer: BallAnswer, sign: int, wanted: str, digits: float
) -> BallAnswer | None:
    """Return the hull if it equals T(A, B) at alpha, whose ``answer`` is given; None if it is less.

    The hull is lower by at most the excess of the other order's divergence over T's own.  This
    excess needs the absolute accuracy of the value; where β is tiny, both divergences are near 1
    and need more digits than the value.
    """
    assert answer.threshold is not None
    u = to_fraction(answer.threshold)
    with precision(64):
        size = abs(answer.value).lower()
        missing = float((-size.log() / arb(10).log()).mid()) if size > 0 else 0.0
        enough = (size * arb(10) ** -int(digits + 2)).lower()
    for places in (digits, digits + max(missing, 0.0) + 3.0):
        # the conjugate of T(P, Q) is H(Q || P), and that of T(Q, P) is H(P || Q)
        own = pair.profile(u, -sign, places, enough)
        other = pair.profile(u, sign, places, enough)
        if own.value < other.value:
            return None
        with precision(int(4 * places) + 200):
            excess = (other.value - own.value).upper()
            if excess <= size * arb(10) ** -int(digits + 1):
                low = answer.value - excess.max(arb(0))
                high = answer.value + excess.max(arb(0))
                value = answer.value.union(low if wanted == "beta" else high)
                certified = answer.certified and own.certified and other.certified
                return BallAnswer(value, certified, answer.threshold)
    raise AccuracyError(f"{digits:g} digits of the hull were not reached; ask for fewer digits")


def _line(pair: Pair, u: Fraction, alpha: Fraction, wanted: str, digits: float) -> BallAnswer:
    """Return the tangent of slope -exp(u) to both functions, at a u where their divergences agree.

    Near it one divergence falls and the other grows, so the truth lies between the lines of both.
    """
    extra = 4.0
    for _ in range(6):
        one, two = pair.profile(u, -1, digits + extra), pair.profile(u, 1, digits + extra)
        with precision(int(4 * (digits + extra)) + 200):
            both = one.value if u == 0 else one.value.union(two.value)
            moved = both + exact(u).exp() * exact(alpha)
            value = 1 - moved if wanted == "beta" else moved
            if value.rel_accuracy_bits() > digits * 3.33:
                return BallAnswer(value, one.certified and two.certified, exact(u))
        extra += 8
    raise AccuracyError(f"{digits:g} digits of the hull were not reached; ask for fewer digits")
