"""Questions on laws of the total loss that have atoms at known knots only.

A law gives the masses above, at and below a threshold.  Knots whose balls overlap are merged to one
knot: the loss, and so the log slope of the trade-off function, is then known to the width of the
merged ball.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

from flint import arb

from pyengine.errors import AccuracyError
from pyengine.reference.answers import BallAnswer
from pyengine.reference.balls import exact, lacking_digits, precision, spread
from pyengine.reference.recent import Recent
from pyengine.reference.roots import bracket

__all__ = ["AtomicLaw", "AtomicPair", "Source", "ThresholdMasses", "grouped", "hit"]

ROUNDS = 9  # attempts, each at more depth
SPARE = 5  # decimal digits lost to cancellation and to the factor 10 of the error estimate
STEP = 5.0  # depths, in decimal digits, are multiples of it, so that questions share laws
MOST_KEPT = 3  # laws, by depth


class ThresholdMasses(NamedTuple):
    """Masses of P and Q above a threshold, at it and below it."""

    p_above: arb
    p_at: arb
    p_below: arb
    q_above: arb
    q_at: arb
    q_below: arb


class AtomicLaw(Protocol):
    """The law of the total loss log dQ/dP, at one precision.

    Infinite losses count as above or below every threshold.
    """

    @property
    def knots(self) -> list[arb]:
        """Places of atoms and of kinks of the density: disjoint balls in increasing order.

        The mass below the first and above the last one is zero or negligible.
        """

    @property
    def cost(self) -> int:
        """About how many sums of a hundred terms or so `masses` takes."""

    def masses(self, c: arb) -> ThresholdMasses:
        """Return masses at a threshold; a c that overlaps a knot is taken to equal it."""


class Source(Protocol):
    """A law that can be computed at any precision; ``certified`` if its balls are proven."""

    certified: bool

    def bits(self, depth: float, variant: int) -> int:
        """Return the working precision for a depth in decimal digits."""

    def law(self, depth: float, variant: int) -> AtomicLaw:
        """Return the law at the working precision.

        Laws that are not certified have two variants with different discretisations.
        """

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the finite losses."""

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""


@dataclass(frozen=True)
class _Oriented:
    """Masses of A and B above, at and below u = sign * loss; tests of A reject large values."""

    a_above: arb
    a_at: arb
    a_below: arb
    b_above: arb
    b_at: arb
    b_below: arb


def _oriented(point: ThresholdMasses, sign: int) -> _Oriented:
    if sign > 0:
        return _Oriented(*point)
    p, q = point[:3], point[3:]
    return _Oriented(*q[::-1], *p[::-1])


class AtomicPair:
    """Questions on a law with knots; see `pyengine.reference.answers.Pair`.

    If its source is not certified, the error is estimated: ten times the difference of its two
    variants, and their rounding.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._kept: Recent[list[tuple[AtomicLaw, int]]] = Recent(MOST_KEPT)

    def _runs(self, depth: float) -> list[tuple[AtomicLaw, int]]:
        runs = []
        for variant in range(1 if self.source.certified else 2):
            bits = self.source.bits(depth, variant)
            with precision(bits):
                runs.append((self.source.law(depth, variant), bits))
        return runs

    def _ask(
        self,
        digits: float,
        question: Callable[[AtomicLaw, float], BallAnswer | None],
        enough: arb | None = None,
    ) -> BallAnswer:
        wanted = digits if self.source.certified else digits + SPARE
        for _ in range(ROUNDS):
            depth = STEP * math.ceil(wanted / STEP)
            answers = []
            for law, bits in self._kept.get(depth, partial(self._runs, depth)):
                with precision(bits):
                    answers.append(question(law, depth))
            joined = _joined([answer for answer in answers if answer is not None], depth)
            if joined is None or len(answers) > sum(answer is not None for answer in answers):
                wanted = 1.5 * depth + 12
                continue
            lacking = lacking_digits(joined.value, digits)
            if lacking <= 0 or (enough is not None and joined.value.rad() < enough):
                return BallAnswer(joined.value, self.source.certified, joined.threshold)
            wanted = depth + min(lacking + 3, 2 * depth + 30)
        raise AccuracyError(f"{digits:g} digits were not reached; ask for fewer digits")

    def trade_off(self, alpha: Fraction, sign: int, wanted: str, digits: float) -> BallAnswer:
        """Return T(A, B)(alpha) (``wanted`` "beta") or 1 - T ("gamma"), for 0 < alpha < 1."""
        before: list[arb] = []
        return self._ask(
            digits, lambda law, depth: _TradeOff(law, alpha, sign, wanted, depth, before).answer()
        )

    def profile(
        self, epsilon: Fraction, sign: int, digits: float, enough: arb | None = None
    ) -> BallAnswer:
        """Return H_{exp(epsilon)}(A || B), for epsilon of either sign."""

        def question(law: AtomicLaw, _: float) -> BallAnswer:
            return BallAnswer(_profile(law, exact(epsilon), sign), True, None)

        return self._ask(digits, question, enough)

    def epsilon(self, delta: Fraction, sign: int, digits: float) -> BallAnswer:
        """Return the epsilon >= 0 where the profile is delta, for 0 < delta < profile at 0."""
        before: list[arb] = []

        def question(law: AtomicLaw, depth: float) -> BallAnswer | None:
            def gap(x: arb) -> arb:
                return exact(delta) - _profile(law, x, sign)

            places = [arb(0), *(x for x in _along(law.knots, -sign) if x > 0)]
            k = bisect_left(places, True, lo=1, key=lambda x: not gap(x) < 0)
            if k == len(places):
                return None
            if not gap(places[k]) > 0:
                k += 1
            if k == len(places):  # the root is at the largest losses, or cannot be told from them
                top = _oriented(law.masses(-sign * places[-1]), sign)
                least = (top.a_below + top.a_at - exact(delta)) / (top.b_below + top.b_at)
                return BallAnswer(least.log().union(places[-1]), True, None)
            ends = _bracket(gap, places[k - 1], places[k], depth + 3, before)
            return None if ends is None else BallAnswer(ends[0].union(ends[1]), True, None)

        return self._ask(digits, question)

    def infinite(self, sign: int) -> arb:
        """Return the mass of A where B has none."""
        with precision(900):
            only_p, only_q = self.source.infinite()
            return only_p if sign > 0 else only_q

    def largest(self, sign: int) -> arb | None:
        """Return the supremum of log dA/dB where it is finite; None if there is none."""
        with precision(900):
            low, high = self.source.ends()
            top = -low if sign > 0 else high
            return top if top.is_finite() else None


def _joined(answers: list[BallAnswer], depth: float) -> BallAnswer | None:
    if not answers:
        return None
    if len(answers) == 1:
        return answers[0]
    one, two = answers
    with precision(4 * int(depth) + 200):
        return BallAnswer(two.value + spread(10 * (one.value - two.value)), False, two.threshold)


class _TradeOff:
    """One point of a trade-off function of one law, at a depth in decimal digits.

    ``before`` holds the root found with the other variant, near which to look first.
    """

    def __init__(
        self,
        law: AtomicLaw,
        alpha: Fraction,
        sign: int,
        wanted: str,
        depth: float,
        before: list[arb],
    ) -> None:
        self.law, self.sign, self.wanted, self.depth = law, sign, wanted, depth
        self.before = before
        self.level, self.rest = exact(alpha), exact(1 - alpha)
        self.small = alpha <= Fraction(1, 2)
        self.places = _along(law.knots, sign)

    def at(self, u: arb) -> _Oriented:
        return _oriented(self.law.masses(self.sign * u), self.sign)

    def excess(self, there: _Oriented) -> arb:
        """Return the level less A's mass above u."""
        if self.small:
            return self.level - there.a_above
        return there.a_at + there.a_below - self.rest

    def answer(self) -> BallAnswer | None:
        """Return the value, or None where the balls are too wide to find the threshold."""
        low = bisect_left(self.places[:-1], True, key=lambda u: not self.excess(self.at(u)) < 0)
        u, there = self.places[low], self.at(self.places[low])
        excess = self.excess(there)
        if not excess.is_finite() or not (excess > 0 or low + 1 < len(self.places)):
            return None
        inside = there.a_at - excess
        if inside < 0 and low == 0:
            # all knots are rejected: what is left of B lies below them or is 0
            beta = there.b_below.union(arb(0))
            return BallAnswer(beta if self.wanted == "beta" else 1 - beta, True, None)
        if inside < 0:
            return self._between(self.places[low - 1], u)
        # if the level may lie at an edge of the atom, the slope may be any up to the next knot's
        slope = u.exp()
        if not excess > 0:
            slope = slope.union(self.places[low + 1].exp())
            value = there.b_below + there.b_at - excess * slope
        else:
            if not inside > 0:
                slope = slope.union(self.places[low - 1].exp() if low > 0 else arb(0))
            value = there.b_below + inside * slope
        if self.wanted == "gamma":
            value = there.b_above + excess * slope
        return BallAnswer(value, True, u.mid())

    def _between(self, low: arb, high: arb) -> BallAnswer | None:
        def gap(u: arb) -> arb:
            there = self.at(u)
            away = self.excess(there)
            return away if there.a_at == 0 else arb("nan")

        ends = _bracket(gap, low, high, self.depth / 2 + 4, self.before)
        if ends is None:
            return None
        left, right = ends
        there = self.at(left)
        moved = left.union(right).exp() * -self.excess(there)
        value = there.b_below + moved if self.wanted == "beta" else there.b_above - moved
        return BallAnswer(value, True, left)


def _bracket(
    gap: Callable[[arb], arb], low: arb, high: arb, digits: float, before: list[arb]
) -> tuple[arb, arb] | None:
    """Return points around a zero, looking next to the other variant's zero first."""
    ends = bracket(gap, low, high, digits, before.pop() if before else None)
    before += ends[:1] if ends else ()
    return ends


def _along(knots: list[arb], sign: int) -> list[arb]:
    return knots if sign > 0 else [-knot for knot in reversed(knots)]


def _profile(law: AtomicLaw, epsilon: arb, sign: int) -> arb:
    """Return H_{exp(epsilon)}(A || B); an atom at the threshold adds nothing."""
    c, scale = -sign * epsilon, epsilon.exp()
    there = _oriented(law.masses(c), sign)
    value = there.a_below - scale * there.b_below
    k, at = hit(law.knots, c)
    if there.a_at != 0 and not (at and c == law.knots[k]):
        value += spread(there.a_at - scale * there.b_at)  # the atom may lie on either side
    return value.max(arb(0)) if value.overlaps(arb(0)) else value


def hit(knots: list[arb], c: arb) -> tuple[int, bool]:
    """Return the index of the knot that c overlaps and True, or the number below c and False.

    Knots must be disjoint and c narrow: if c overlaps two knots, the first one is returned, and the
    mass of the second one is taken to lie above c.
    """
    k = bisect_left(knots, float(c.mid()), key=_double)
    # doubles find the neighbourhood, balls decide
    while k > 0 and not knots[k - 1] < c:
        k -= 1
    while k < len(knots) and knots[k] < c:
        k += 1
    return k, k < len(knots) and knots[k].overlaps(c)


def _double(knot: arb) -> float:
    return float(knot.mid())


def grouped(knots: Iterable[arb]) -> list[arb]:
    """Return balls in increasing order, overlapping ones merged."""
    result: list[arb] = []
    for knot in sorted(knots, key=lambda ball: ball.mid()):
        if result and result[-1].overlaps(knot):
            result[-1] = result[-1].union(knot)
        else:
            result.append(knot)
    if any(one.overlaps(two) for one, two in pairwise(result)):
        raise AccuracyError("knots are not told apart at this precision")
    return result
