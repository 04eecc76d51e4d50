"""Exact numbers, and the doubles next to them."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

from pyengine.errors import AccuracyError

__all__ = [
    "BEYOND",
    "CONTEXT",
    "as_decimal",
    "in_two_doubles",
    "log_of_rest",
    "ratio_in_two_doubles",
    "root_in_two_doubles",
    "two_doubles",
]

BEYOND = "the noise, or one over it, leaves the range of doubles: use noise nearer to 1"
CONTEXT = Context(prec=60, Emin=-(10**9), Emax=10**9)


def as_decimal(x: Fraction) -> Decimal:
    """Return a number as a decimal of 60 digits."""
    return CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


def two_doubles(x: Decimal) -> tuple[float, float]:
    """Return a number of 60 digits as a sum of two doubles, with a relative error of 2^-105."""
    high = float(x)
    return high, float(CONTEXT.subtract(x, Decimal(high)))


def in_two_doubles(x: float | Fraction) -> tuple[float, float]:
    """Return the nearest double, and the double nearest to the remainder."""
    return (x, 0.0) if isinstance(x, float) else ratio_in_two_doubles(x.numerator, x.denominator)


def ratio_in_two_doubles(numerator: int, denominator: int) -> tuple[float, float]:
    """As `in_two_doubles`, for a quotient of integers >= 0."""
    try:
        high = numerator / denominator  # integers divide exactly, and are rounded once
    except (OverflowError, ZeroDivisionError):
        raise AccuracyError(BEYOND) from None
    top, bottom = high.as_integer_ratio()
    return high, (numerator * bottom - top * denominator) / (denominator * bottom)


def root_in_two_doubles(numerator: int, denominator: int) -> tuple[float, float]:
    """Return the root of a quotient > 0 as a sum of two doubles, with a relative error of 2^-105.

    The root is truncated after about 127 bits.
    """
    places = (254 - numerator.bit_length() + denominator.bit_length()) // 2
    up, down = max(places, 0), max(-places, 0)
    root = math.isqrt((numerator << 2 * up) // (denominator << 2 * down))
    return ratio_in_two_doubles(root << down, 1 << up)


def log_of_rest(probability: float | Fraction) -> tuple[float, float]:
    """Return log(1 - probability) as a sum of two doubles; -inf at probability 1.

    A single double would move thresholds near the smallest loss by much more than the rounding of
    the answer.
    """
    p = Fraction(probability)
    if p == 1:
        return -math.inf, 0.0
    if p > Fraction(1, 10**15):
        return two_doubles(CONTEXT.ln(as_decimal(1 - p)))
    # 1 - p would lose the digits of p
    return two_doubles(-as_decimal(sum((p**k / k for k in range(1, 5)), Fraction(0))))
