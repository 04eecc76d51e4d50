"""The result of a reference computation: an mpmath number with its error."""

from __future__ import annotations

import math
from typing import Any

import mpmath
from flint import arb
from mpmath.libmp import from_man_exp, to_str

from pyengine.reference.balls import precision

__all__ = ["MOST_DIGITS", "Value"]

MOST_DIGITS = 200  # largest number of significant decimal digits that may be asked for


class Value(mpmath.mpf):  # type: ignore[misc]
    """A number of arbitrary precision with a bound or an estimate of its error.

    It is an ``mpmath.mpf``: printing shows the digits that the error leaves; arithmetic follows
    ``mpmath.mp.prec`` and gives plain ``mpmath.mpf`` numbers.

    Attributes
    ----------
    error : mpmath.mpf
        Absolute error: the truth lies within ``error`` of the value.
    certified : bool
        True if that is proven in ball arithmetic, False if ``error`` is an estimate.
    """

    error: mpmath.mpf
    certified: bool

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._mpf_, self.error._mpf_, self.certified)

    @property
    def lower(self) -> mpmath.mpf:
        """The value less its error, rounded down."""
        return mpmath.mp.make_mpf(mpmath.libmp.mpf_sub(self._mpf_, self.error._mpf_, 0, "f"))

    @property
    def upper(self) -> mpmath.mpf:
        """The value and its error, rounded up."""
        return mpmath.mp.make_mpf(mpmath.libmp.mpf_add(self._mpf_, self.error._mpf_, 0, "c"))

    @property
    def digits(self) -> float:
        """Decimal digits that the error leaves; inf for an exact value."""
        if self.error == 0:
            return math.inf
        if mpmath.isinf(self.error) or self == 0:
            return 0.0
        with mpmath.workprec(53):
            return max(0.0, float(-mpmath.log10(abs(self.error / self))))

    def decimal(self, digits: int | None = None) -> str:
        """Return the value as a decimal string.

        Parameters
        ----------
        digits : int, optional
            Number of significant digits; by default those that the error leaves, at most 200.
        """
        if digits is None:
            digits = max(1, int(min(self.digits, 200.0)))
        return str(to_str(self._mpf_, digits, strip_zeros=True))

    def __str__(self) -> str:
        return self.decimal()

    def __repr__(self) -> str:
        kind = "certified" if self.certified else "estimate"
        return f"Value('{self.decimal()}', error={mpmath.nstr(self.error, 2)}, {kind})"

    __hash__ = mpmath.mpf.__hash__


def make(ball: arb, *, certified: bool) -> Value:
    """Turn a ball into a value: the midpoint, with the radius as error."""
    with precision(30):
        radius = abs(ball.rad()).upper()
    return _restore(_raw(ball.mid()), _raw(radius), certified)


def _raw(number: arb) -> Any:
    if not number.is_finite():
        return mpmath.mpf("inf")._mpf_ if number > 0 else mpmath.mpf("nan")._mpf_
    mantissa, exponent = number.man_exp()
    return from_man_exp(int(mantissa), int(exponent))


def _restore(value: Any, error: Any, certified: bool) -> Value:
    result = object.__new__(Value)
    result._mpf_ = value
    result.error = mpmath.mp.make_mpf(error)
    result.certified = certified
    return result
