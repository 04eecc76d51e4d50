"""What every engine returns: rows of log values of five functionals of a threshold, with errors."""

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
ERRORS = 2 + lib.PE_FUNCTIONALS  # column of the first error
# Relative error that an answer may have, and the same for values below 1e-30.
LIMIT, LIMIT_TINY = 1e-11, 1e-9


class Limits(NamedTuple):
    """Relative errors that an answer may have, and that those below 1e-30 may have."""

    ordinary: float = LIMIT
    tiny: float = LIMIT_TINY

    @classmethod
    def of(cls, tolerance: float | None) -> Limits:
        """Return the limits that a relative width of the bounds sets; None for the default."""
        return DEFAULT if tolerance is None else cls(0.5 * tolerance, 0.5 * tolerance)


DEFAULT = Limits()


class RowEngine(Protocol):
    """One engine on one pair.  A row that failed is NaN."""

    name: str

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds of the loss, on terms that suit the functional."""

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds where the log of a functional has given values."""

    def one(self, functional: int, x: float, by_value: bool) -> Any:
        """One row of `at` or `solve`, with the same bits, as an array of the C core.

        None from engines that have no such short way.
        """


def array(x: FloatArray, *, writable: bool = False) -> Any:
    """Return a contiguous array as the C core takes it."""
    return ffi.from_buffer("double[]", x, require_writable=writable)


def row_errors(
    table: FloatArray, functional: int, limits: Limits
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Error that matters to whoever asked for a functional, and whether it is small enough.

    It is the functional's own error and, for a tail, that of the smaller of B's two tails, unless
    that one is 0 in double precision; inf where there is no row.
    """
    errors, good = np.empty(len(table)), np.empty(len(table), dtype=np.bool_)
    rows = array(np.ascontiguousarray(table))
    flags = ffi.from_buffer("unsigned char[]", good.view(np.uint8), require_writable=True)
    lib.pe_rows_judge(len(table), rows, functional, *limits, array(errors, writable=True), flags)
    return errors, good


def call_kernel(
    kernel: Callable[..., int | None], handle: object, functional: int | None, x: FloatArray
) -> FloatArray:
    """Run a kernel of the C core over an array of arguments."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    table = np.full((x.size, WIDTH), np.nan)
    source, target = array(x), array(table, writable=True)
    if functional is None:
        status = kernel(handle, x.size, source, target)
    else:
        status = kernel(handle, functional, x.size, source, target)
    finished(status, "an answer of the C core")  # what was too costly are rows of NaN
    return table
