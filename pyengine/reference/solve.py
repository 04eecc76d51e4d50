"""Questions on pairs whose loss has no atoms, answered from tails and divergences at thresholds.

(A, B) is (P, Q) for ``sign`` = 1 and (Q, P) for ``sign`` = -1.  With c a threshold of log dQ/dP,
u = sign * c: the level of the test falls as u grows.  By convexity, values at two thresholds on
either side of the root enclose the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from flint import arb

from pyengine.errors import AccuracyError
from pyengine.reference.answers import BallAnswer
from pyengine.reference.balls import exact, log_magnitude, precision
from pyengine.reference.tails import BallTails

__all__ = ["AtomlessLaw", "Continuous", "Local"]

GUARD = 4.0  # decimal digits beyond those asked for
ROUNDS = 8  # attempts, each at more depth
ROUGH = 25.0  # depth (natural log) of the evaluations that improve a first guess
SURE_BITS = 900  # working precision for comparing a level with the mass where B has none
LN10 = math.log(10)


class Local(Protocol):
    """A law prepared for evaluation near a threshold, at a working precision in bits."""

    certified: bool
    bits: int

    def at(self, c: arb) -> BallTails:
        """Return tails and divergences at a threshold."""


class AtomlessLaw(Protocol):
    """The law of the total loss of a composition, without atoms of finite loss."""

    def guess(self, name: str, log_target: float) -> arb:
        """Return a threshold at which a quantity of `BallTails` has about the given logarithm."""

    def near(self, c: arb, depth: float) -> Local:
        """Prepare evaluation near a threshold with relative errors of about exp(-depth)."""

    def lowest(self) -> arb | None:
        """Return the infimum of the total loss; None if there is none."""

    def infinite(self) -> tuple[arb, arb]:
        """Return the masses that only P, and only Q, has."""


class Continuous:
    """Questions on a law without atoms; see `pyengine.reference.answers.Pair`."""

    def __init__(self, law: AtomlessLaw) -> None:
        self.law = law

    def trade_off(self, alpha: Fraction, sign: int, wanted: str, digits: float) -> BallAnswer:
        """Return T(A, B)(alpha) (``wanted`` "beta") or 1 - T ("gamma"), for 0 < alpha < 1."""
        with precision(SURE_BITS):
            if not exact(1 - alpha) > self.infinite(sign):
                return BallAnswer(arb(0) if wanted == "beta" else arb(1), True, None)
        return _trade_off(self.law, alpha, sign, wanted, digits)

    def profile(
        self, epsilon: Fraction, sign: int, digits: float, enough: arb | None = None
    ) -> BallAnswer:
        """Return H_{exp(epsilon)}(A || B), for epsilon of either sign."""
        return _profile(self.law, epsilon, sign, digits, enough)

    def epsilon(self, delta: Fraction, sign: int, digits: float) -> BallAnswer:
        """Return the epsilon >= 0 where the profile is delta, for 0 < delta < profile at 0."""
        return _epsilon(self.law, delta, sign, digits)

    def infinite(self, sign: int) -> arb:
        """Return the mass of A where B has none."""
        with precision(SURE_BITS):
            return self.law.infinite()[sign < 0]

    def largest(self, sign: int) -> arb | None:
        """Return the supremum of log dA/dB where it is finite; None if there is none."""
        floor = self.law.lowest()
        return None if floor is None or sign < 0 else -floor


def _trade_off(
    law: AtomlessLaw, alpha: Fraction, sign: int, wanted: str, digits: float
) -> BallAnswer:
    level, rest, gamma, beta = ("p_above", "p_below", "q_above", "q_below")
    if sign < 0:
        level, rest, gamma, beta = ("q_below", "q_above", "p_below", "p_above")
    small = alpha <= Fraction(1, 2)
    name, target = (level, alpha) if small else (rest, 1 - alpha)
    value_name = beta if wanted == "beta" else gamma

    def enclose(local: Local, u: arb, slope: float, fine: float) -> tuple[arb, arb] | None:
        step = exact(Fraction(_power_of_ten(-fine) / max(abs(slope), 1e-300)))
        goal = exact(target)
        low, high = (u - step).mid(), (u + step).mid()
        one, two = local.at(sign * low), local.at(sign * high)
        excess = getattr(one, name) - goal
        lack = goal - getattr(two, name)
        if not small:
            excess, lack = -excess, -lack
        if not (excess > 0 and lack > 0):
            return None
        moved = low.union(high).exp() * excess
        value = getattr(one, value_name)
        # the ball also holds the tangent of slope -exp(low) at alpha
        return (value + moved if wanted == "beta" else value - moved), low

    return _solve(law, sign, name, target, digits, enclose, order=2)


def _epsilon(law: AtomlessLaw, delta: Fraction, sign: int, digits: float) -> BallAnswer:
    name = "h_pq" if sign > 0 else "h_qp"

    def enclose(local: Local, u: arb, slope: float, fine: float) -> tuple[arb, arb] | None:
        step = exact(Fraction(_power_of_ten(-fine) / max(abs(slope), 1e-300)))
        goal = exact(delta)
        low, high = (u - step).mid(), (u + step).mid()
        one = getattr(local.at(sign * low), name) - goal
        two = getattr(local.at(sign * high), name) - goal
        if not (one < 0 < two or two < 0 < one):
            return None
        return -low.union(high), low

    return _solve(law, sign, name, delta, digits, enclose, order=1)


def _profile(
    law: AtomlessLaw, epsilon: Fraction, sign: int, digits: float, enough: arb | None
) -> BallAnswer:
    c = -sign * epsilon
    name = "h_pq" if sign > 0 else "h_qp"
    depth = (digits + GUARD) * LN10
    floor = law.lowest()
    with precision(int(4 * digits) + 200):
        if floor is not None and exact(c) <= floor:
            value = arb(0) if sign > 0 else -(exact(c).expm1())
            return BallAnswer(value, True, None)
    for _ in range(ROUNDS):
        with precision(int(2 * depth) + 200):
            local = law.near(exact(c), depth)
        with precision(local.bits):
            value = getattr(local.at(exact(c)), name)
            short = _shortfall(value, digits)
        if short <= 0 or (enough is not None and value.rad() < enough):
            return BallAnswer(value, local.certified, None)
        depth += (short + 1) * LN10
    raise _failed(digits)


def _solve(
    law: AtomlessLaw,
    sign: int,
    name: str,
    target: Fraction,
    digits: float,
    enclose: Callable[[Local, arb, float, float], tuple[arb, arb] | None],
    order: int,
) -> BallAnswer:
    """Find the threshold where a quantity of `BallTails` is ``target``, then enclose the answer.

    An error h of the threshold changes the answer by O(h^order).
    """
    log_target = _log(target)
    depth, fine = (digits + GUARD) * LN10, digits / order + 2
    with precision(int(2 * depth) + 200):
        u = sign * law.guess(name, log_target)
    if name.startswith("h_"):
        u = _refined_guess(law, sign, name, target, u)
    for _ in range(ROUNDS):
        with precision(int(2 * depth) + 200):
            local = law.near(sign * u, depth)
        with precision(local.bits):
            root, slope = _root(local, law, sign, name, target, u, fine)
            found = enclose(local, root, slope, fine)
            if found is not None:
                short = _shortfall(found[0], digits)
                if short <= 0:
                    return BallAnswer(found[0], local.certified, found[1])
                fine += short / order + 1
                depth += (short + 1) * LN10
            else:
                depth += 6 * LN10
        u = root
    raise _failed(digits)


def _refined_guess(law: AtomlessLaw, sign: int, name: str, target: Fraction, u: arb) -> arb:
    """Improve a guess at low precision until the value there is within a factor e of the target."""
    for _ in range(ROUNDS):
        with precision(int(2 * ROUGH) + 200):
            local = law.near(sign * u, ROUGH)
        with precision(local.bits):
            value = getattr(local.at(sign * u), name)
            u, _slope = _root(local, law, sign, name, target, u, 2.0)
            if abs((value / exact(target)).log()) < 1:
                break
    return u


def _root(
    local: Local, law: AtomlessLaw, sign: int, name: str, target: Fraction, start: arb, fine: float
) -> tuple[arb, float]:
    """Return a threshold u, by secant steps on the log of the quantity, and the slope of that log.

    The log is within 0.2 * 10^-fine of the target's unless rounding or 60 steps end the search.
    """
    goal = exact(target)
    floor = law.lowest()

    def gap(u: arb) -> float | None:
        value = getattr(local.at(sign * u), name).mid()
        ratio = value / goal
        if not ratio > 0:
            return None
        away = ratio - 1
        return float(away.log1p()) if abs(away) < 0.5 else log_magnitude(ratio)

    def inside(u: arb) -> arb:
        if floor is None:
            return u
        limit = sign * floor
        near = (start - limit) / 64
        return limit + near if abs(u - limit) < abs(near) or (u - limit) * near < 0 else u

    u, before = start, gap(start)
    if before is None:
        return start, 1.0
    width = 1e-4 * (
        max(1e-3, abs(float(start))) if floor is None else float(abs(start - sign * floor))
    )
    other = inside(u + exact(width))
    after = gap(other)
    slope = 1.0
    for _ in range(60):
        if after is None or after == before:
            break
        slope = (after - before) / float(other - u)
        if abs(after) < 0.2 * _power_of_ten(-fine):
            break
        u, before = other, after
        step = max(-3.0 / abs(slope), min(3.0 / abs(slope), -after / slope))
        other = inside((other + exact(step)).mid())
        after = gap(other)
    return other, slope


def _shortfall(value: arb, digits: float) -> float:
    """Return how many of so many significant decimal digits a ball lacks; <= 0 if none."""
    if not value.is_finite():
        return 10.0
    middle, radius = abs(value.mid()), abs(value.rad())
    if radius == 0:
        return -1.0
    if not middle > radius:
        return min(60.0, max(10.0, log_magnitude(radius / arb(1)) / LN10 + digits))
    return digits + log_magnitude(radius / middle) / LN10


def _log(target: Fraction) -> float:
    return math.log(target.numerator) - math.log(target.denominator)


def _power_of_ten(exponent: float) -> float:
    return math.pow(10.0, max(exponent, -290.0))


def _failed(digits: float) -> AccuracyError:
    return AccuracyError(
        f"{digits:g} digits were not reached within {ROUNDS} rounds; ask for fewer digits"
    )
