"""Elementary functions with proven errors and the same bits on every machine.

A Python float gives a float, other arguments give what NumPy's functions give.  Errors are at most
2 units in the last place for `exp`, `expm1`, `log` and `log1p`, 4 for `sin`, `cos`, `arctan2`,
`hypot` and `power`, and 2 plus an absolute 2^-51 for `logaddexp`; the relative error of `erfc` is
at most 16 × 2^-53 (docs/theory/arithmetic).  NaN gives NaN, and so does an argument outside the
domain; the logarithm of 0 is minus infinity; nothing warns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib

__all__ = [
    "arcsinh",
    "arctan2",
    "arctanh",
    "complex_exp",
    "complex_expm1",
    "complex_log",
    "complex_root",
    "cos",
    "erfc",
    "exp",
    "expm1",
    "hypot",
    "log",
    "log1p",
    "log2",
    "log_integer",
    "log_sum",
    "log_sums",
    "logaddexp",
    "modulus",
    "power",
    "power_by_squares",
    "sin",
    "sinh",
    "turn",
]

FloatArray = npt.NDArray[np.float64]
NUMBERS = (float, int)  # Python numbers; NumPy's give NumPy results
PLAIN = np.dtype(np.float64)
DOUBLES = ffi.typeof("double[]")
from_buffer = ffi.from_buffer


class _OfOne:
    """A function of one argument."""

    def __init__(self, name: str) -> None:
        self._at: Callable[[float], float] = getattr(lib, f"pe_{name}_at")
        self._array: Callable[..., None] = getattr(lib, f"pe_{name}_array")

    @overload
    def __call__(self, x: float) -> float: ...
    @overload
    def __call__(self, x: npt.ArrayLike) -> Any: ...
    def __call__(self, x: Any) -> Any:
        kind = type(x)
        if kind is float:
            return self._at(x)
        if kind is int:
            return self._of_integer(x)
        if kind is np.float64:
            return np.float64(self._at(x))
        given = x if _is_plain(x) else _doubles(x)
        out = np.empty(given.shape)
        self._array(given.size, from_buffer(DOUBLES, given), from_buffer(DOUBLES, out))
        return out if out.ndim else out[()]

    def _of_integer(self, x: int) -> float:
        return self._at(x)


class _Log(_OfOne):
    """Logarithms, also of integers of any size."""

    def _of_integer(self, x: int) -> float:
        return self._at(x) if x.bit_length() < 1000 else log_integer(x)


class _OfTwo:
    """A function of two arguments, which broadcast."""

    def __init__(self, name: str) -> None:
        self._at: Callable[[float, float], float] = getattr(lib, f"pe_{name}_at")
        self._array: Callable[..., None] = getattr(lib, f"pe_{name}_array")

    @overload
    def __call__(self, x: float, y: float) -> float: ...
    @overload
    def __call__(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Any: ...
    def __call__(self, x: Any, y: Any) -> Any:
        if type(x) in NUMBERS and type(y) in NUMBERS:
            return self._at(x, y)
        first, second = (each if _is_plain(each) else _doubles(each) for each in (x, y))
        if first.shape != second.shape:
            first, second = (
                each.astype(np.float64, order="C", copy=False)
                for each in np.broadcast_arrays(first, second)
            )
        out = np.empty(first.shape)
        buffers = from_buffer(DOUBLES, first), from_buffer(DOUBLES, second)
        self._array(out.size, *buffers, from_buffer(DOUBLES, out))
        return out if out.ndim else out[()]


def _is_plain(x: Any) -> bool:
    """Whether the argument is a contiguous array of doubles."""
    return type(x) is np.ndarray and x.dtype is PLAIN and x.flags.c_contiguous


def _doubles(x: npt.ArrayLike) -> FloatArray:
    given = np.asarray(x)
    if given.dtype.kind == "c" or given.dtype.itemsize > 8:
        raise TypeError(f"functions of doubles take no {given.dtype}")
    return given.astype(np.float64, order="C", copy=False)


def _pointer(array: FloatArray) -> Any:
    return from_buffer(DOUBLES, array)


exp, expm1 = _OfOne("exp"), _OfOne("expm1")
log, log1p = _Log("log"), _OfOne("log1p")
sin, cos, erfc = _OfOne("sin"), _OfOne("cos"), _OfOne("erfc")
arctan2, hypot, power = _OfTwo("atan2"), _OfTwo("hypot"), _OfTwo("pow")
logaddexp = _OfTwo("logaddexp")


def log_sum(x: npt.ArrayLike, axis: int | None = None) -> Any:
    """Logarithm of the sum of exponentials along an axis, or of all; -inf for an empty sum."""
    given = _doubles(x)
    if given.size == 0:
        shape = () if axis is None else np.delete(given.shape, axis)
        return np.full(shape, -np.inf)[()]
    top = given.max(axis=axis, keepdims=True)
    at = np.where(np.isfinite(top), top, 0.0)
    sums = exp(given - at).sum(axis=axis, keepdims=True)
    return np.squeeze(np.asarray(at + log(sums)), axis=axis)[()]


def log_sums(x: npt.ArrayLike) -> FloatArray:
    """Logarithms of the running sums of exponentials, along the last axis."""
    given = np.asarray(x, dtype=np.float64, order="C")
    out = np.empty(given.shape)
    for row, to in zip(_rows(given), _rows(out), strict=True):
        lib.pe_log_sums(row.size, _pointer(row), _pointer(to))
    return out


def _rows(array: FloatArray) -> FloatArray:
    return array.reshape(-1, array.shape[-1])


def modulus(z: npt.ArrayLike) -> Any:
    """Modulus of complex numbers, as `hypot`."""
    given = np.asarray(z, dtype=np.complex128)
    return hypot(given.real, given.imag)


def complex_exp(z: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
    """Exponential of complex numbers, within 7 units in the last place of its modulus."""
    return np.asarray(exp(z.real) * turn(z.imag))


def complex_expm1(z: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
    """The exponential less 1, within 24 units of 2^-53 of z e^|z|."""
    out = np.empty(np.shape(z), dtype=np.complex128)
    half, rise = sin(0.5 * z.imag), expm1(z.real)
    out.real = rise * cos(z.imag) - 2.0 * half * half
    out.imag = (rise + 1.0) * sin(z.imag)
    return out


def complex_log(z: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
    """Logarithm of complex numbers, within 4 units in the last place of itself and of 1."""
    out = np.empty(np.shape(z), dtype=np.complex128)
    out.real, out.imag = log(modulus(z)), arctan2(z.imag, z.real)
    return out


def complex_root(z: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
    """Square root of complex numbers, within 4 units in the last place of its modulus."""
    large = np.sqrt(0.5 * (modulus(z) + np.abs(z.real)))
    with np.errstate(divide="ignore", invalid="ignore"):
        small = 0.5 * z.imag / large
    out = np.empty(np.shape(z), dtype=np.complex128)
    is_right = z.real >= 0.0
    out.real = np.where(is_right, large, np.abs(small))
    out.imag = np.where(is_right, small, np.copysign(large, z.imag))
    return out


def power_by_squares(z: Any, number: int) -> Any:
    """Powers of an array to a natural number, by multiplications."""
    if number == 0:
        return np.ones_like(z)
    half = power_by_squares(z, number // 2)
    square = half * half
    return square * z if number % 2 else square


def log2(x: npt.ArrayLike) -> Any:
    """Binary logarithm, exact for powers of 2; only for choices, not for bounds."""
    part, exponent = np.frexp(x)
    return exponent - 1.0 + 1.4426950408889634 * log(2.0 * part)


def turn(angle: npt.ArrayLike) -> npt.NDArray[np.complex128]:
    """e^(i angle), as an array."""
    out = np.empty(np.shape(angle), dtype=np.complex128)
    out.real, out.imag = cos(angle), sin(angle)
    return out[()]


def log_integer(n: int) -> float:
    """Logarithm of a positive integer of any size, to 4 units in the last place."""
    beyond = max(n.bit_length() - 64, 0)
    return log(float(n >> beyond)) + beyond * log(2.0)


def sinh(x: npt.ArrayLike) -> Any:
    """Hyperbolic sine, to 5 units in the last place."""
    size = np.abs(x)
    return np.sign(x) * 0.5 * (expm1(size) - expm1(-size))


def arcsinh(x: npt.ArrayLike) -> Any:
    """Inverse hyperbolic sine, to 6 units in the last place."""
    size = np.abs(x)
    near = np.minimum(size, 2.0**500)  # whose squares are doubles
    found = log1p(near + near * near / (1.0 + np.sqrt(1.0 + near * near)))
    return np.sign(x) * (found + log(np.maximum(size, 2.0**500) * 2.0**-500))


def arctanh(x: npt.ArrayLike) -> Any:
    """Inverse hyperbolic tangent, to 6 units in the last place."""
    size = np.abs(x)
    return np.sign(x) * 0.5 * log1p(2.0 * size / (1.0 - size))
