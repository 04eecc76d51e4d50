"""Equal epochs of random allocation: rows from the tabulated density of their loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyengine._core import ffi, lib
from pyengine.answers import Triple
from pyengine.caches import Cache, cached_property
from pyengine.engines.functionals import ROW, FloatArray, Limits, Rows, call_kernel, row_errors
from pyengine.engines.row_questions import RowQuestions
from pyengine.errors import AccuracyError
from pyengine.laws.base import StepLaw, TabulatedLaw

__all__ = ["EpochQuestions", "TabulatedEpoch", "tabulated_epochs"]


class TabulatedEpoch:
    """Rows of one epoch or several; a `pyengine.engines.functionals.RowEngine`.

    Parameters
    ----------
    law : TabulatedLaw
        The pair (A, B), A without the record.
    is_reversed : bool
        Whether A is the law with the record instead.
    epochs : int
        Number of epochs.
    """

    name = "convolution"

    def __init__(self, law: TabulatedLaw, is_reversed: bool, epochs: int = 1) -> None:
        self.law, self.is_reversed, self.epochs = law, is_reversed, epochs

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds of the loss."""
        kernel = lib.pe_epoch_reversed_at if self.is_reversed else lib.pe_epoch_at
        return call_kernel(kernel, self.law.table(self.epochs), functional, c)

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds where the log of a functional has given values."""
        kernel = lib.pe_epoch_reversed_solve if self.is_reversed else lib.pe_epoch_solve
        return call_kernel(kernel, self.law.table(self.epochs), functional, log_target)

    def one(self, functional: int, x: float, by_value: bool) -> Any:
        """One row of `at` or `solve`."""
        if self.is_reversed:
            kernel = lib.pe_epoch_reversed_solve if by_value else lib.pe_epoch_reversed_at
        else:
            kernel = lib.pe_epoch_solve if by_value else lib.pe_epoch_at
        row = ffi.new(ROW)
        kernel(self.law.table(self.epochs), functional, 1, (x,), row)
        return row


def tabulated_epochs(laws: list[tuple[StepLaw, int]]) -> TabulatedEpoch | None:
    """Return the engine of laws that are equal epochs; None of others."""
    if len(laws) != 1:
        return None
    law, epochs = laws[0]
    found = law.tabulated()
    return None if found is None else TabulatedEpoch(*found, epochs)


_memos: Cache[dict[Any, Any]] = Cache(256)


class EpochQuestions(RowQuestions):
    """Questions on one ordered pair of one epoch or several.

    Parameters
    ----------
    engine : TabulatedEpoch
        Gives the rows.
    tolerance : float or None
        Relative width of the bounds; None for the limits that every engine has.
    """

    is_trivial = False

    def __init__(self, engine: TabulatedEpoch, tolerance: float | None) -> None:
        self._engine, self.limits = engine, Limits.of(tolerance)

    def _judged(self, functional: int, table: FloatArray) -> Rows:
        errors, good = row_errors(table, functional, self.limits)
        if not good.all():
            law, worst = self._engine.law, float(errors[~good].max())
            raise AccuracyError(
                f"no answer within the error limit of {self.limits.ordinary:.3g}: estimated "
                f"relative error {worst:.1e} for noise_multiplier={law.noise:g} and {law.steps} "
                "steps an epoch; method='reference' may answer"
            )
        return Rows(table, np.full(len(table), self._engine.name, dtype="<U12"))

    def _at(self, functional: int, c: FloatArray) -> Rows:
        return self._judged(functional, self._engine.at(functional, c))

    def _solve(self, functional: int, log_target: FloatArray) -> Rows:
        return self._judged(functional, self._engine.solve(functional, log_target))

    def _row(self, functional: int, x: float, *, by_value: bool) -> Any:
        row = self._engine.one(functional, x, by_value)
        return row if lib.pe_row_good(row, functional, *self.limits) else None

    def _memo(self) -> dict[Any, Any]:
        engine = self._engine
        key = engine.law, engine.is_reversed, engine.epochs, self.limits
        memo: dict[Any, Any] = _memos.get_or_make(key, dict)
        return memo

    @cached_property
    def ends(self) -> Triple:
        """No ε is the largest one, in either order."""
        return math.inf, math.inf, math.inf
