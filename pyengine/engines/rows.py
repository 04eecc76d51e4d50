"""What every engine returns: rows of log values of five functionals of a threshold, with errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib

__all__ = [
    "A_ABOVE",
    "A_BELOW",
    "B_ABOVE",
    "B_BELOW",
    "PROFILE",
    "Engine",
    "Row",
    "Rows",
    "call_kernel",
    "row_error",
]

FloatArray = npt.NDArray[np.float64]
Row = Sequence[float]

A_ABOVE: int = lib.PE_A_ABOVE
A_BELOW: int = lib.PE_A_BELOW
B_ABOVE: int = lib.PE_B_ABOVE
B_BELOW: int = lib.PE_B_BELOW
PROFILE: int = lib.PE_PROFILE
WIDTH: int = lib.PE_ROW
ERRORS = 2 + lib.PE_FUNCTIONALS  # column of the first error
UNDERFLOW = -760.0  # logs below are 0 in double precision


class Rows(NamedTuple):
    """Rows of one answer.

    Parameters
    ----------
    table : ndarray of shape (n, WIDTH)
        Column 0 the threshold c, column 2 + f the log of functional f, column ERRORS + f its
        relative error; NaN where an engine has no answer.
    engine : ndarray of str
        The engine behind each row.
    """

    table: FloatArray
    engine: npt.NDArray[np.str_]


class Engine(Protocol):
    """One engine on one pair.  A row that failed is NaN."""

    name: str

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds of the loss, on terms that suit the functional."""

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds where the log of a functional has given values."""


def row_error(table: FloatArray, functional: int) -> FloatArray:
    """Error that matters to whoever asked for a functional; inf where there is no row.

    It is the functional's own error and, for a tail, that of the smaller of B's two tails, unless
    that one is 0 in double precision.
    """
    own = table[:, ERRORS + functional]
    if functional != PROFILE:
        other = np.fmin(table[:, ERRORS + B_ABOVE], table[:, ERRORS + B_BELOW])
        smaller = np.fmin(table[:, 2 + B_ABOVE], table[:, 2 + B_BELOW])
        vanishes = (smaller < UNDERFLOW) & (other < 0.1)
        own = np.maximum(own, np.where(vanishes, 0.0, other))
    return np.where(np.isnan(own), math.inf, own)


def call_kernel(
    kernel: object, handle: object, functional: int | None, x: FloatArray
) -> FloatArray:
    """Run a kernel of the C core over an array of arguments."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    table = np.full((x.size, WIDTH), np.nan)
    source = ffi.from_buffer("double[]", x)
    target = ffi.from_buffer("double[]", table, require_writable=True)
    if functional is None:
        kernel(handle, x.size, source, target)  # type: ignore[operator]
    else:
        kernel(handle, functional, x.size, source, target)  # type: ignore[operator]
    return table
