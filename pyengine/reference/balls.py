"""Ball arithmetic: conversion of exact numbers, working precision, and accuracy of balls."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TypeVar

from flint import acb, arb, ctx, fmpq

__all__ = [
    "Ball",
    "exact",
    "key_of",
    "lacking_digits",
    "precision",
    "spread",
    "to_fraction",
    "upper_normal",
]

FAR = 1000  # standard deviations of a normal tail beyond which it is an incomplete gamma function
ZERO = 400  # a ball that holds 0 and is within 10^-ZERO of it is accurate enough
LN10 = math.log(10)
Ball = TypeVar("Ball", arb, acb)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at a precision in bits, and restore the old one afterwards."""
    before, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = before


def exact(number: float | Fraction) -> arb:
    """Return a double or a fraction, rounded once to the working precision."""
    numerator, denominator = number.as_integer_ratio()
    return arb(fmpq(numerator, denominator))


def to_fraction(number: arb) -> Fraction:
    """Return the exact value of the midpoint of a ball."""
    mantissa, exponent = number.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def key_of(ball: arb) -> tuple[str, str]:
    """Return a dictionary key for a ball: its exact midpoint and radius."""
    return str(ball.mid().man_exp()), str(ball.rad().man_exp())


def spread(radius: arb) -> arb:
    """Return the ball around 0 with an upper bound of |radius| as radius; NaN if it is infinite."""
    bound = abs(radius).upper()
    return arb(0, bound) if bound.is_finite() else arb("nan")


def upper_normal(x: arb) -> arb:
    """Return 1 - Phi(x), the upper tail of the standard normal law.

    From some 1e5 on FLINT's erfc has no digits; its incomplete gamma function keeps them.
    """
    if x > FAR:
        return (x * x / 2).gamma_upper(arb(1) / 2) / arb.pi().sqrt() / 2
    return (x / arb(2).sqrt()).erfc() / 2


def log_magnitude(x: arb) -> float:
    """Return the natural logarithm of |midpoint of x| in double precision; -inf for 0."""
    middle = abs(x.mid())
    return float(middle.log()) if middle > 0 else -math.inf


def lacking_digits(value: arb, digits: float) -> float:
    """Return how many of so many significant decimal digits a ball lacks; <= 0 if none.

    A ball that holds 0 lacks none if it is within 10^-ZERO of 0.
    """
    if not value.is_finite():
        return 12.0
    if value == 0:
        return 0.0
    if value.overlaps(arb(0)):
        small = -log_magnitude(abs(value).upper()) / LN10
        return 0.0 if small > ZERO else min(max(digits, small), ZERO - small + 3)
    return digits - value.rel_accuracy_bits() / 3.33
