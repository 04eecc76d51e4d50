"""Rows of epochs of random allocation: proven ones by sector laws, and estimates by tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pyengine._core import ffi, lib
from pyengine.engines.functionals import (
    DEFAULT,
    ERRORS,
    ROW,
    WIDTH,
    FloatArray,
    RowEngine,
    call_kernel,
    row_errors,
)
from pyengine.engines.row_bounds import LogBounds
from pyengine.engines.row_sides import ANY, CLOSE, RowSide, beyond, first_found, log_slope
from pyengine.engines.sector import EpochKinds, EpochLaws
from pyengine.laws.base import StepLaw, TabulatedLaw

__all__ = ["EpochSide", "NodesOrTable", "TabulatedEpoch", "tabulated_epochs"]


class EpochSide(RowSide):
    """Certified rows of one ordered pair of epochs; if reversed A is the law with the record."""

    def __init__(self, kinds: EpochKinds, is_reversed: bool) -> None:
        super().__init__()
        self.ends = math.inf, math.inf, math.inf
        self._laws = EpochLaws(kinds, is_reversed)

    @classmethod
    def of(cls, laws: list[tuple[StepLaw, int]]) -> EpochSide | None:
        """The side of epochs and plain Gaussian steps; None for others, and for too many steps."""
        kinds, orders = [], set()
        for law, number in laws:
            found = law.tabulated()
            noise = law.gaussian_noise()
            if found is not None:
                kinds.append(((found[0].noise, found[0].low), found[0].steps, number))
                orders.add(found[1])
            elif noise is not None:
                kinds.append((noise, 1, number))
            else:
                return None
        if len(orders) != 1:
            return None
        side = cls(tuple(kinds), orders.pop())
        return side if side._laws.serves else None

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the sector laws."""
        table = np.full((c.size, WIDTH), np.nan)
        table[:, ERRORS:] = np.inf
        self._laws.improve(functional, c, table, CLOSE)
        return table

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds by the sector laws."""
        ways = self._laws.threshold, self._laws.farthest
        return first_found(ways, functional, log_target)

    def solved(self, functional: int, log_target: FloatArray) -> LogBounds:
        """Bounds at thresholds where a functional passes its target by 1.25 of its error.

        So the level, or δ, is met for certain, and one row gives both bounds.
        """
        c = self.threshold(functional, log_target)
        table = self.table(functional, c)
        value, error = table[:, 2 + functional], table[:, ERRORS + functional]
        with np.errstate(invalid="ignore", over="ignore"):
            step = (value - beyond(functional, log_target, error)) / log_slope(functional, table)
        moved = np.isfinite(step) & (error < ANY.ordinary)
        table[moved] = self.table(functional, c[moved] - step[moved])
        return LogBounds.of_rows(table[:, 0], table)


class TabulatedEpoch:
    """Estimated rows of equal epochs, by tables: a `pyengine.engines.functionals.RowEngine`.

    A is the law without the record, or that with it if reversed.
    """

    name = "convolution"
    ends = (math.inf, math.inf, math.inf)  # losses are unbounded in either order

    def __init__(self, law: TabulatedLaw, is_reversed: bool, epochs: int = 1) -> None:
        self.law, self.is_reversed, self.epochs = law, is_reversed, epochs

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds c."""
        del functional
        return call_kernel(lib.pe_epoch_at, c, self.law.table(self.epochs), self.is_reversed)

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds at which the log of a functional has given values."""
        given = self.law.table(self.epochs), self.is_reversed, functional
        return call_kernel(lib.pe_epoch_solve, log_target, *given)

    def one(self, functional: int, x: float, by_value: bool) -> Any:
        """One row of `at` or `solve`."""
        row, law = ffi.new(ROW), (self.law.table(self.epochs), self.is_reversed)
        if by_value:
            lib.pe_epoch_solve(*law, functional, 1, (x,), row)
        else:
            lib.pe_epoch_at(*law, 1, (x,), row)
        return row


class NodesOrTable:
    """Rows of lines over nodes of epochs; of the table where those have larger errors."""

    name = "spectral"

    def __init__(self, lines: Callable[[], RowEngine], table: TabulatedEpoch) -> None:
        self._lines, self._table = lines, table

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds c."""
        return self._better(functional, self._lines().at(functional, c), c, self._table.at)

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds at which the log of a functional has given values."""
        rows = self._lines().solve(functional, log_target)
        return self._better(functional, rows, log_target, self._table.solve)

    def one(self, functional: int, x: float, by_value: bool) -> Any:
        """One row of `at` or `solve` by the lines; None where it is not good enough."""
        row = self._lines().one(functional, x, by_value)
        return row if row is not None and lib.pe_row_good(row, functional, *DEFAULT) else None

    def _better(
        self,
        functional: int,
        rows: FloatArray,
        x: FloatArray,
        ask: Callable[[int, FloatArray], FloatArray],
    ) -> FloatArray:
        errors, good = row_errors(rows, functional, DEFAULT)
        if not good.all():
            found = ask(functional, x[~good])
            better = row_errors(found, functional, DEFAULT)[0] < errors[~good]
            rows[np.flatnonzero(~good)[better]] = found[better]
        return rows


def tabulated_epochs(laws: list[tuple[StepLaw, int]]) -> TabulatedEpoch | None:
    """Return the engine of equal epochs; None for other laws."""
    if len(laws) != 1:
        return None
    law, epochs = laws[0]
    found = law.tabulated()
    return None if found is None else TabulatedEpoch(*found, epochs)
