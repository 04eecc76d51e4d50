"""Rows of engines: a threshold, the logs of five functionals at it, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.status import finished

__all__ = [
    "A_ABOVE",
    "A_BELOW",
    "B_ABOVE",
    "B_BELOW",
    "PROFILE",
    "Limits",
    "Row",
    "RowEngine",
    "array",
    "call_kernel",
    "row_errors",
]

FloatArray = npt.NDArray[np.float64]
Row = Sequence[float]

A_ABOVE: int = lib.PE_A_ABOVE
A_BELOW: int = lib.PE_A_BELOW
B_ABOVE: int = lib.PE_B_ABOVE
B_BELOW: int = lib.PE_B_BELOW
PROFILE: int = lib.PE_PROFILE
WIDTH: int = lib.PE_ROW
ROW = ffi.typeof(f"double[{WIDTH}]")
ERRORS = 2 + lib.PE_FUNCTIONALS  # column of the first error; values begin in column 2
LIMIT, LIMIT_TINY = 1e-11, 1e-9  # default `Limits`


class Limits(NamedTuple):
    """Largest relative errors of answers, and of answers below 1e-30."""

    ordinary: float = LIMIT
    tiny: float = LIMIT_TINY

    @classmethod
    def of(cls, tolerance: float | None) -> Limits:
        """Return the limits for a relative width of bounds; the default ones for None."""
        return DEFAULT if tolerance is None else cls(0.5 * tolerance, 0.5 * tolerance)


DEFAULT = Limits()


class RowEngine(Protocol):
    """One engine on one ordered pair.  A row that failed is NaN."""

    name: str

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds c, by contours that suit the functional."""

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds at which the log of a functional has given values."""

    def one(self, functional: int, x: float, by_value: bool) -> Any:
        """One row of `at` or `solve`, with the same bits, as a C array; None if not available."""


def array(x: FloatArray, *, writable: bool = False) -> Any:
    """Return a contiguous array as a C buffer of doubles."""
    return ffi.from_buffer("double[]", x, require_writable=writable)


def row_errors(
    table: FloatArray, functional: int, limits: Limits
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Relative errors of rows that were asked for a functional, and whether they are in limits.

    The error is that of the functional and, for a tail of A, that of B's better known tail, unless
    this one underflows; infinite where there is no row.
    """
    errors, good = np.empty(len(table)), np.empty(len(table), dtype=np.bool_)
    rows = array(np.ascontiguousarray(table))
    flags = ffi.from_buffer("unsigned char[]", good.view(np.uint8), require_writable=True)
    lib.pe_rows_judge(len(table), rows, functional, *limits, array(errors, writable=True), flags)
    return errors, good


def call_kernel(kernel: Callable[..., int | None], x: FloatArray, *given: object) -> FloatArray:
    """Return the rows of a C kernel for an array of arguments; NaN where it was too costly.

    ``given`` is what the kernel takes before the arguments.
    """
    x = np.ascontiguousarray(x, dtype=np.float64)
    table = np.full((x.size, WIDTH), np.nan)
    status = kernel(*given, x.size, array(x), array(table, writable=True))
    finished(status, "an answer of the C core")
    return table
