"""Double-double arithmetic: sums of two doubles, by error-free transformations.

The relative error of an operation is at most 2^-102, that of a function 2^-63
(docs/theory/arithmetic).  Arrays of them have shape (2, n): upper parts and lower parts.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.numerics.exact_numbers import CONTEXT, two_doubles

__all__ = ["EXTENDED", "Wide", "running_sums", "wide_exp", "wide_log"]

FloatArray = npt.NDArray[np.float64]

EXTENDED = 2.0**-64  # relative error of an operation in proofs; a function counts as two
SPLIT = 134217729.0  # 2^27 + 1


def _sum(a: Any, b: Any) -> tuple[Any, Any]:
    """A rounded sum and its rounding error, exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _joined(a: Any, b: Any) -> Wide:
    """The sum of two numbers, of which the second is small beside the first (Dekker)."""
    s = a + b
    return Wide(s, b - (s - a))


def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """A rounded product and its rounding error, exactly (Dekker)."""
    t, u = SPLIT * a, SPLIT * b
    first, other = t - (t - a), u - (u - b)
    rest, beside = a - first, b - other
    p = a * b
    return p, ((first * other - p) + first * beside + rest * other) + rest * beside


class Wide:
    """The sum of two doubles, or of two arrays of them: the rounded value, and the rest."""

    __array_ufunc__ = None  # NumPy arrays leave operators to this class
    __slots__ = ("high", "low")

    def __init__(self, high: Any, low: Any = 0.0) -> None:
        self.high, self.low = high, low

    @staticmethod
    def of(x: Decimal) -> Wide:
        """The nearest sum of two doubles to a number of 60 digits."""
        return Wide(*two_doubles(x))

    @property
    def parts(self) -> FloatArray:
        """Both parts in one array."""
        return np.array([self.high, self.low], dtype=np.float64)

    def __float__(self) -> float:
        return float(self.high)

    def __str__(self) -> str:
        return str(CONTEXT.add(Decimal(self.high), Decimal(self.low)))

    def __neg__(self) -> Wide:
        return Wide(-self.high, -self.low)

    def __add__(self, other: Any) -> Wide:
        b = _wide(other)
        s, rest = _sum(self.high, b.high)
        t, last = _sum(self.low, b.low)
        both = _joined(s, rest + t)
        return _joined(both.high, both.low + last)

    def __sub__(self, other: Any) -> Wide:
        return self + -_wide(other)

    def __rsub__(self, other: Any) -> Wide:
        return _wide(other) + -self

    def __mul__(self, other: Any) -> Wide:
        b = _wide(other)
        p, rest = _product(self.high, b.high)
        return _joined(p, rest + (self.high * b.low + self.low * b.high))

    def __truediv__(self, other: Any) -> Wide:
        b = _wide(other)
        q = self.high / b.high
        p, rest = _product(q, b.high)
        return _joined(q, ((self.high - p) - rest + self.low - q * b.low) / b.high)

    __radd__, __rmul__ = __add__, __mul__


def _wide(x: Any) -> Wide:
    if isinstance(x, Wide):
        return x
    return Wide(x if isinstance(x, np.ndarray) else float(x))


def _array(x: FloatArray) -> Any:
    return ffi.from_buffer("double[]", x)


def wide_exp(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Exponentials of numbers of at most 16,000, as sums of two doubles times powers of 2.

    Those of numbers below -16,000 are 0.
    """
    given = np.ascontiguousarray(x)
    out, power = np.empty(given.shape), np.empty(given.shape[1])
    lib.pe_wide_exp(power.size, _array(given), _array(out), _array(power))
    return out, power


def wide_log(x: FloatArray, power: FloatArray) -> FloatArray:
    """Logarithms of x times powers of 2, minus infinity for 0."""
    given = np.ascontiguousarray(x)
    out = np.empty(given.shape)
    lib.pe_wide_log(power.size, _array(given), _array(np.ascontiguousarray(power)), _array(out))
    return out


def running_sums(x: FloatArray) -> FloatArray:
    """Return all running sums; the error of each addition is 2^-102 times the size of both."""
    given = np.ascontiguousarray(x)
    out = np.empty(given.shape)
    lib.pe_running_sums(given.shape[1], _array(given), _array(out))
    return out
