"""Losses of finite laws to many more digits than a double has, for profiles next to a loss.

At ε next to -l, for a loss l, the profile is the mass there times 1 - e^(ε + l), which the rounding
of l to a double destroys.  Digits are computed only where a question needs them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.numerics.exact_numbers import CONTEXT, as_decimal

__all__ = [
    "MOST_ATOMS",
    "Fine",
    "left_of",
    "logarithm",
    "lost_mass",
    "sampled_decimal",
    "two_parts",
]

FloatArray = npt.NDArray[np.float64]

ROUNDED = 1e-57  # relative error of a few operations to 60 digits
LEAST = 1e-300  # absolute error beside the others, for underflow
LARGE = 10**6  # losses beyond which e^-loss is used in the place of e^loss
SMALL = Decimal("1e-12")  # |x| below which series of four terms have 48 digits
MOST_DIGITS = 1000  # more than 60, for small masses; masses that need more are below all doubles
EXACT_BITS = 1 << 14  # of a product that is formed exactly
MOST_ATOMS = 1024  # their logarithms take less than a second


def logarithm(x: Fraction) -> Decimal:
    """Return the logarithm of a fraction > 0, of absolute error at most ROUNDED (1 + |log|)."""
    return CONTEXT.ln(as_decimal(x))


class Fine(NamedTuple):
    """Losses of a finite law to about 60 digits.

    Parameters
    ----------
    losses : sequence of Decimal
        One for each atom of the law.
    error : float
        Bound on their absolute errors.
    """

    losses: Sequence[Decimal]
    error: float

    @classmethod
    def of(cls, losses: Sequence[Decimal], error: float = 0.0) -> Fine:
        """Losses rounded to 60 digits, with an error of their own besides."""
        largest = max((abs(float(x)) for x in losses), default=0.0)
        return cls(losses, error + ROUNDED * (1.0 + largest))

    @classmethod
    def nothing(cls, number: int) -> Fine:
        """Losses that are all exactly 0: nothing is revealed."""
        return cls([Decimal(0)] * number, 0.0)

    @property
    def is_nothing(self) -> bool:
        """Whether all losses are known to be exactly 0."""
        return self.error == 0.0 and not any(self.losses)

    @property
    def reversed(self) -> Fine:
        """Those of the pair (B, A)."""
        return Fine([x.copy_negate() for x in reversed(self.losses)], self.error)

    def poisson_sampled(self, share: Fraction, *, alone: bool) -> Fine:
        """Those of (A, (1 - p) A + p B); if A has mass ``alone``, its loss comes first."""
        if self.is_nothing and not alone:
            return self
        p, rest = as_decimal(share), as_decimal(1 - share)
        losses = [_sampled(x, p, rest) for x in self.losses]
        if alone:
            losses.insert(0, CONTEXT.ln(rest))
        return Fine.of(losses, 1.01 * self.error)  # the map has slopes of at most 1

    def minus(self, other: Fine) -> Fine:
        """Differences of losses."""
        losses = [CONTEXT.subtract(x, y) for x, y in zip(self.losses, other.losses, strict=True)]
        return Fine(losses, self.error + other.error)

    def taken(self, order: npt.NDArray[np.intp]) -> Fine:
        """Those of the atoms in another order."""
        return Fine([self.losses[i] for i in order.tolist()], self.error)

    def followed(self, between: Sequence[Decimal], other: Fine) -> Fine:
        """These losses, then exact ones ``between``, then another law's."""
        return Fine([*self.losses, *between, *other.losses], max(self.error, other.error))

    def grouped(self, starts: npt.NDArray[np.intp]) -> Fine:
        """Those of groups of atoms: the loss of the first one, with the width as an error."""
        if len(starts) == len(self.losses):
            return self
        ends = [*starts[1:].tolist(), len(self.losses)]
        groups = [self.losses[i:j] for i, j in zip(starts.tolist(), ends, strict=True)]
        width = max(max(group) - min(group) for group in groups)
        return Fine([group[0] for group in groups], self.error + 1.01 * float(width))

    def beside(self, loss: FloatArray) -> tuple[FloatArray, float]:
        """Return the losses minus given doubles next to them, and a bound on the error.

        The bound is for the sum of double and difference.
        """
        pairs = zip(self.losses, loss.tolist(), strict=True)
        low = np.array([float(CONTEXT.subtract(x, Decimal(y))) for x, y in pairs])
        if self.is_nothing and not loss.any():
            return low, 0.0
        off = 2.0**-52 * float(np.abs(low).max(initial=0.0))
        return low, self.error + off + LEAST


def lost_mass(parts: Sequence[tuple[Fraction, int]]) -> tuple[float, float, float]:
    """Return 1 - Π (1 - m)^N over masses m in [0, 1] and numbers N of steps.

    Returns
    -------
    tuple of float
        Two doubles whose sum approximates it, and a bound on the absolute error of the sum.
    """
    some = [(mass, number) for mass, number in parts if mass > 0]
    if not some:
        return 0.0, 0.0, 0.0
    if any(mass == 1 for mass, _ in some):
        return 1.0, 0.0, 0.0
    if sum(mass.denominator.bit_length() * number for mass, number in some) <= EXACT_BITS:
        exact = Fraction(1 - math.prod((1 - mass) ** number for mass, number in some))
        high, low = two_parts(exact)
        if Fraction(high) + Fraction(low) == exact:
            return high, low, 0.0
    smallest = min(mass for mass, _ in some)
    depth = (smallest.denominator.bit_length() - smallest.numerator.bit_length()) // 3
    if depth > MOST_DIGITS:  # the result may then be 0, with an error that says so
        depth = MOST_DIGITS
    context = Context(prec=60 + depth, Emin=CONTEXT.Emin, Emax=CONTEXT.Emax)
    log_kept = Decimal(0)
    for mass, number in some:
        rest = 1 - mass
        kept = context.divide(Decimal(rest.numerator), Decimal(rest.denominator))
        log_kept = context.add(log_kept, context.multiply(number, context.ln(kept)))
    lost = context.subtract(Decimal(1), context.exp(log_kept))
    high = float(lost)
    low = float(context.subtract(lost, Decimal(high)))
    steps = sum(number for _, number in some)
    # 60 digits of the smallest mass, and underflow
    error = 1e-50 * high + 2.0**-105 * abs(low) + steps * 10.0 ** -(min(60 + depth, 320) - 4)
    return high, low, error + 1e-322 * (high < 1e-290)


def two_parts(x: Fraction) -> tuple[float, float]:
    """Return two doubles whose sum is the number to a relative 2^-105."""
    high = float(x)
    return high, float(x - Fraction(high)) if math.isfinite(high) else 0.0


def sampled_decimal(share: Fraction, loss: Fraction) -> Decimal:
    """Return log(1 - p + p e^loss) to more digits than two doubles hold."""
    return Fine.of([as_decimal(loss)]).poisson_sampled(share, alone=False).losses[0]


def left_of(x: FloatArray | float, y: FloatArray | float, total: FloatArray) -> FloatArray:
    """Return the rounding error x + y - total of a sum of doubles, which is a double (Knuth)."""
    part = total - x
    return np.asarray((x - (total - part)) + (y - part))


def _sampled(x: Decimal, p: Decimal, rest: Decimal) -> Decimal:
    """log(1 - p + p e^x), also if e^x exceeds the decimal range."""
    if abs(x) < SMALL:  # by series, since 1 - p + p e^x is next to 1
        with localcontext(CONTEXT):
            y = p * x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4)))
            return y * (1 - y * (Decimal(1) / 2 - y * (Decimal(1) / 3 - y / 4)))
    if x > LARGE:
        return CONTEXT.add(x, CONTEXT.ln(CONTEXT.add(p, CONTEXT.multiply(rest, CONTEXT.exp(-x)))))
    return CONTEXT.ln(CONTEXT.add(rest, CONTEXT.multiply(p, CONTEXT.exp(x))))
