"""Binomial probabilities as decimals, with more digits and a wider range than doubles."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from pyengine.numerics.exact_numbers import as_decimal

__all__ = ["log_probability"]

STIRLING = 200  # from here on logarithms of factorials are Stirling's series
BERNOULLI = tuple(
    Fraction(*pair)
    for pair in (
        (1, 6),
        (-1, 30),
        (1, 42),
        (-1, 30),
        (5, 66),
        (-691, 2730),
        (7, 6),
        (-3617, 510),
        (43867, 798),
        (-174611, 330),
        (854513, 138),
        (-236364091, 2730),
    )
)
LOG_TWO_PI = Decimal("1.8378770664093454835606594728112352797227949472755668256343")


def log_probability(trials: int, p: Fraction, k: int) -> Decimal:
    """Logarithm of the probability of k successes, to 45 digits in the current context."""
    choices = _log_factorial(trials) - _log_factorial(k) - _log_factorial(trials - k)
    return choices + k * as_decimal(p).ln() + (trials - k) * as_decimal(1 - p).ln()


def _log_factorial(k: int) -> Decimal:
    """Logarithm of k!, by Stirling's series: its error is below its first omitted term."""
    if k < STIRLING:
        return Decimal(math.factorial(k)).ln()
    x = Decimal(k)
    total = (x + Decimal("0.5")) * x.ln() - x + LOG_TWO_PI / 2
    for index, number in enumerate(BERNOULLI):
        order = 2 * index + 2
        total += as_decimal(number / (order * (order - 1))) / x ** (order - 1)
    return total
