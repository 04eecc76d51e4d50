"""Checks of arrays of measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks

__all__ = ["finite_array", "probability_level", "scores"]

FloatArray = npt.NDArray[np.float64]


def finite_array(name: str, value: Any, dimensions: tuple[int, ...]) -> FloatArray:
    """Return an array of finite real numbers with one of the given numbers of dimensions."""
    array = _real(name, value, "a regular array")
    if array.ndim not in dimensions:
        rule = " or ".join(map(str, dimensions))
        raise ValueError(f"{name} must have {rule} dimensions, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    bad = int(array.size - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise ValueError(f"{name} must be finite, got {bad} entries that are NaN or infinite")
    return array


def scores(name: str, value: Any) -> FloatArray:
    """Return a sample of scores; infinities are allowed, NaN is not."""
    array = _real(name, value, "a one-dimensional array")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    missing = int(np.count_nonzero(np.isnan(array)))
    if missing:
        raise ValueError(f"{name} must not hold NaN, got {missing} of {array.size}")
    return array


def _real(name: str, value: Any, what: str) -> FloatArray:
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be {what} of real numbers") from None
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must hold real numbers, got an array of dtype {array.dtype}")
    return array.astype(np.float64, copy=False)


def probability_level(name: str, value: Any) -> float:
    """Return a number in (0, 1)."""
    level = checks.real(name, value)
    if not 0.0 < level < 1.0:
        raise ValueError(f"{name} must lie in (0, 1), got {value!r}")
    return level
