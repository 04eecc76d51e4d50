"""Noncentral chi-squared distribution and Marcum's Q function in arbitrary precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

from flint import arb

from pyengine._support import checks
from pyengine.errors import AccuracyError
from pyengine.reference.balls import exact, key_of, precision, spread
from pyengine.reference.chi_squared.ncx2 import FIRST, SECOND, inversion, proven
from pyengine.reference.exclusive import exclusive
from pyengine.reference.roots import bracket
from pyengine.reference.value import MOST_DIGITS, Value, make

__all__ = [
    "marcum_q",
    "marcum_q_complement",
    "ncx2_cdf",
    "ncx2_isf",
    "ncx2_ppf",
    "ncx2_sf",
]

ROUNDS = 7  # precisions tried, each twice the last
Number = float | Fraction


@exclusive
def ncx2_cdf(
    x: checks.NumberLike, df: checks.NumberLike, nc: checks.NumberLike, *, digits: int = 30
) -> Value:
    """Distribution function of the noncentral chi-squared law.

    Parameters
    ----------
    x : float or exact number (str, Fraction, Decimal)
        In [0, ∞).
    df : float or exact number
        Degrees of freedom, in (0, ∞).
    nc : float or exact number
        Noncentrality, in [0, ∞).
    digits : int
        Significant decimal digits, in [1, 200].

    Returns
    -------
    Value
        With its error: proven for x + df + nc < 6000, else estimated from two inversions that share
        no node.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where the digits are out of reach.

    References
    ----------
    N. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 2 (1995), (29.3).

    Examples
    --------
    >>> from pyengine.reference import special
    >>> special.ncx2_cdf(4, 2, 2)
    Value('0.605703141107668433611039658...', error=..., certified)
    """
    return _tail(x, df, nc, "cdf", digits)


@exclusive
def ncx2_sf(
    x: checks.NumberLike, df: checks.NumberLike, nc: checks.NumberLike, *, digits: int = 30
) -> Value:
    """Survival function 1 - cdf of the noncentral chi-squared law.

    Parameters
    ----------
    x, df, nc, digits
        As in `ncx2_cdf`.

    Returns
    -------
    Value
        As in `ncx2_cdf`.

    Raises
    ------
    ValueError, AccuracyError
        As in `ncx2_cdf`.
    """
    return _tail(x, df, nc, "sf", digits)


@exclusive
def ncx2_ppf(
    p: checks.NumberLike, df: checks.NumberLike, nc: checks.NumberLike, *, digits: int = 30
) -> Value:
    """Quantile: the x with ``ncx2_cdf(x, df, nc) = p``.

    Parameters
    ----------
    p : float or exact number (str, Fraction, Decimal)
        In [0, 1].
    df, nc, digits
        As in `ncx2_cdf`.

    Returns
    -------
    Value
        As in `ncx2_cdf`; inf for p = 1.

    Raises
    ------
    ValueError, AccuracyError
        As in `ncx2_cdf`.
    """
    level = Fraction(checks.probability("p", p))
    return _inverse(level, df, nc, digits)


@exclusive
def ncx2_isf(
    p: checks.NumberLike, df: checks.NumberLike, nc: checks.NumberLike, *, digits: int = 30
) -> Value:
    """Inverse of the survival function: the x with ``ncx2_sf(x, df, nc) = p``.

    Parameters
    ----------
    p, df, nc, digits
        As in `ncx2_ppf`.

    Returns
    -------
    Value
        As in `ncx2_cdf`; inf for p = 0.

    Raises
    ------
    ValueError, AccuracyError
        As in `ncx2_cdf`.
    """
    return _inverse(1 - Fraction(checks.probability("p", p)), df, nc, digits)


def _inverse(level: Fraction, df: checks.NumberLike, nc: checks.NumberLike, digits: int) -> Value:
    d, lam = checks.positive("df", df), checks.non_negative("nc", nc)
    places = checks.count("digits", digits, least=1, most=MOST_DIGITS)
    if level in (0, 1):
        return make(arb(0) if level == 0 else arb("inf"), certified=True)
    side, target = ("cdf", level) if level <= Fraction(1, 2) else ("sf", 1 - level)
    return _quantile(target, d, lam, side, places)


@exclusive
def marcum_q(
    order: checks.NumberLike, a: checks.NumberLike, b: checks.NumberLike, *, digits: int = 30
) -> Value:
    """Marcum's Q function Q_order(a, b) = ncx2_sf(b², 2 order, a²).

    Parameters
    ----------
    order : float or exact number
        In (0, ∞).
    a, b : float or exact number
        In [0, ∞).
    digits
        As in `ncx2_cdf`.

    Returns
    -------
    Value
        As in `ncx2_cdf`.

    Raises
    ------
    ValueError, AccuracyError
        As in `ncx2_cdf`.
    """
    return _marcum(order, a, b, "sf", digits)


@exclusive
def marcum_q_complement(
    order: checks.NumberLike, a: checks.NumberLike, b: checks.NumberLike, *, digits: int = 30
) -> Value:
    """1 - Q_order(a, b) = ncx2_cdf(b², 2 order, a²).

    Parameters
    ----------
    order, a, b, digits
        As in `marcum_q`.

    Returns
    -------
    Value
        As in `ncx2_cdf`.

    Raises
    ------
    ValueError, AccuracyError
        As in `ncx2_cdf`.
    """
    return _marcum(order, a, b, "cdf", digits)


def _marcum(
    order: checks.NumberLike, a: checks.NumberLike, b: checks.NumberLike, side: str, digits: int
) -> Value:
    half = Fraction(checks.positive("order", order))
    first = Fraction(checks.non_negative("a", a))
    second = Fraction(checks.non_negative("b", b))
    return _tail(second**2, 2 * half, first**2, side, digits)


def _tail(
    x: checks.NumberLike, df: checks.NumberLike, nc: checks.NumberLike, side: str, digits: int
) -> Value:
    at = checks.non_negative("x", x)
    d, lam = checks.positive("df", df), checks.non_negative("nc", nc)
    places = checks.count("digits", digits, least=1, most=MOST_DIGITS)
    if at == 0:
        return make(arb(0 if side == "cdf" else 1), certified=True)
    value, certified = _reach(lambda bits: _evaluate(at, d, lam, side, bits), places)
    return make(value, certified=certified)


def _reach(question: Callable[[int], tuple[arb, bool]], digits: int) -> tuple[arb, bool]:
    """Double the precision until the ball has so many significant digits."""
    bits = int(3.33 * digits) + 60
    for _ in range(ROUNDS):
        value, certified = question(bits)
        if value.rel_accuracy_bits() > 3.33 * digits:
            return value, certified
        bits *= 2
    raise AccuracyError(f"{digits} digits were not reached; ask for fewer digits")


def _evaluate(x: Number | arb, df: Number, nc: Number, side: str, bits: int) -> tuple[arb, bool]:
    """Return a tail ("cdf" or "sf") at x, and whether its ball is proven."""
    with precision(bits + 40):
        z = x if isinstance(x, arb) else exact(x)
        d, lam = exact(df), exact(nc)
        found = proven(z, d, lam, side, bits + 40)
        if found is not None:
            return found, True
        near = "sf" if z >= d + lam else "cdf"
        one = inversion(z, d, lam, near, FIRST, bits)
        two = inversion(z, d, lam, near, SECOND, bits)
        # estimate of the error: ten times the difference; the radii cover rounding
        ball = one + spread(10 * (one - two))
        return (ball if near == side else 1 - ball), False


def _quantile(target: Fraction, df: Number, nc: Number, side: str, digits: int) -> Value:
    """Return the x where a tail equals ``target``, by false position in log x on the log tail."""
    proofs = dict[tuple[str, str], bool]()

    def gap(log_x: arb, bits: int) -> arb:
        with precision(bits + 40):
            value, proofs[key_of(log_x)] = _evaluate(log_x.exp(), df, nc, side, bits)
            away = (value / exact(target)).log()
            return away if side == "cdf" else -away

    low = high = arb(math.log(float(df) + float(nc)))
    width = 1.0
    while gap(low, 60) > 0:
        low, width = low - width, 2 * width
    width = 1.0
    while gap(high, 60) < 0:
        high, width = high + width, 2 * width
    for bits in (60, int(3.33 * digits) + 60, 2 * int(3.33 * digits) + 120):
        with precision(bits + 40):
            ends = bracket(partial(gap, bits=bits), low, high, 0.3 * (bits - 40))
            low, high = ends or (low, high)
            x = low.union(high).exp()
            if x.rel_accuracy_bits() > 3.33 * digits:
                return make(x, certified=all(proofs[key_of(end)] for end in (low, high)))
    raise AccuracyError(f"{digits} digits were not reached; ask for fewer digits")
