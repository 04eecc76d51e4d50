"""One epoch of random allocation: rows from the tabulated density of its loss."""

from __future__ import annotations

from typing import Any

from pyengine._core import ffi, lib
from pyengine.engines.rows import ROW, FloatArray, call_kernel
from pyengine.laws.allocation import AllocatedLaw

__all__ = ["TabulatedEpoch"]


class TabulatedEpoch:
    """Rows of one epoch; a `pyengine.engines.rows.RowEngine`.

    Parameters
    ----------
    law : AllocatedLaw
        The pair (A, B), A without the record.
    is_reversed : bool
        Whether A is the law with the record instead.
    """

    name = "tabulated"

    def __init__(self, law: AllocatedLaw, is_reversed: bool) -> None:
        self.law, self.is_reversed = law, is_reversed

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds of the loss."""
        kernel = lib.pe_epoch_reversed_at if self.is_reversed else lib.pe_epoch_at
        return call_kernel(kernel, self.law.table(), functional, c)

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds where the log of a functional has given values."""
        kernel = lib.pe_epoch_reversed_solve if self.is_reversed else lib.pe_epoch_solve
        return call_kernel(kernel, self.law.table(), functional, log_target)

    def one(self, functional: int, x: float, by_value: bool) -> Any:
        """One row of `at` or `solve`."""
        if self.is_reversed:
            kernel = lib.pe_epoch_reversed_solve if by_value else lib.pe_epoch_reversed_at
        else:
            kernel = lib.pe_epoch_solve if by_value else lib.pe_epoch_at
        row = ffi.new(ROW)
        kernel(self.law.table(), functional, 1, (x,), row)
        return row
