"""Checks of arguments: one message form, the argument's name, the rule and the value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def real(name: str, value: Any) -> float:
    """Return a real number as a float, or raise ValueError."""
    if isinstance(value, float):
        number = value
    elif isinstance(value, (bool, np.bool_, str, bytes)) or value is None:
        raise ValueError(f"{name} must be a real number, got {value!r}")
    else:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name} must be a real number, got {value!r}") from None
    if math.isnan(number):
        raise ValueError(f"{name} must not be NaN, got {value!r}")
    return number


def positive(name: str, value: Any) -> float:
    """Return a finite number above 0."""
    number = real(name, value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return number


def probability(name: str, value: Any) -> float:
    """Return a number in [0, 1]."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return number


def count(name: str, value: Any) -> int:
    """Return an integer >= 0; an integral float such as 1e6 is taken as the integer it is."""
    number = real(name, value)
    if not (number >= 0.0 and number.is_integer()):
        raise ValueError(f"{name} must be a non-negative integer, got {value!r}")
    return int(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise ValueError(f"{name} must be one of {words}; got {value!r}")
    return value


def real_array(name: str, value: Any, low: float, high: float) -> FloatArray:
    """Return an array of real numbers within [low, high], of the shape of ``value``."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a number or a regular array, got {value!r}") from None
    if array.dtype.kind not in "fiu":
        if array.size == 0:
            return np.zeros(array.shape)
        raise ValueError(
            f"{name} must hold real numbers, got {value!r}"
            if array.size < 8
            else f"{name} must hold real numbers, got an array of dtype {array.dtype}"
        )
    array = np.asarray(array, dtype=np.float64)
    outside = ~((array >= low) & (array <= high))
    if outside.any():
        interval = f"[{low:g}, {high:g}]" if high < math.inf else f"[{low:g}, inf]"
        raise ValueError(f"{name} must lie in {interval}, got {float(array[outside].flat[0])!r}")
    return array
