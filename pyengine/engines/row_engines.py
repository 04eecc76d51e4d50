"""The engines of one pair that give rows, asked in turn: the spectral one, else the convolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.engines.functionals import FloatArray, Limits, RowEngine, Rows, row_errors
from pyengine.engines.spectral import Spectral
from pyengine.errors import AccuracyError

__all__ = ["RowEngines"]

KEPT_BYTES = 4096  # of engines that have answered nothing yet


class RowEngines:
    """The engines of one pair, each made when it is asked first.

    Attributes
    ----------
    convolves : bool
        Whether there is a convolution beside the spectral engine.
    """

    convolves = True

    def __init__(self) -> None:
        self._engines: dict[str, RowEngine] = {}
        self.memo: dict[Any, Any] = {}  # what several questions need

    def _made(self, name: str) -> RowEngine:
        """Make the engine "spectral" or "convolution"."""
        raise NotImplementedError

    def _engine(self, name: str) -> RowEngine:
        engine = self._engines.get(name)
        if engine is None:
            engine = self._engines.setdefault(name, self._made(name))
        return engine

    def spectral(self) -> Spectral:
        """Return the spectral engine, whose contours and certified lines are kept here."""
        engine = self._engine("spectral")
        assert isinstance(engine, Spectral)
        return engine

    def bytes(self) -> int:
        """Memory that this and its contours take; the laws of the convolution are kept apart."""
        if not self._engines:
            return KEPT_BYTES
        spectral = self._engines.get("spectral")
        total = KEPT_BYTES + (spectral.bytes() if isinstance(spectral, Spectral) else 0)
        for memo in self.memo.values():
            total += sum(kept.bytes() for kept in memo.values() if hasattr(kept, "bytes"))
        return total

    @staticmethod
    def _first(method: str) -> str:
        """Name of the engine that is asked first."""
        return "spectral" if method == "auto" else method

    def one(self, functional: int, x: float, method: str, limits: Limits, *, by_value: bool) -> Any:
        """One row for a float, as an array of the C core with the bits of `at` or `solve`.

        None where the first engine's answer is not good enough: ask for an array then.
        """
        row = self._engine(self._first(method)).one(functional, x, by_value)
        if row is None or not lib.pe_row_good(row, functional, *limits):
            return None
        return row

    def at(self, functional: int, c: FloatArray, method: str, limits: Limits) -> Rows:
        """Rows at thresholds of the loss, to be judged by their errors."""
        return self._rows(lambda engine, x: engine.at(functional, x), functional, c, method, limits)

    def solve(self, functional: int, log_target: FloatArray, method: str, limits: Limits) -> Rows:
        """Rows at the thresholds where the log of a functional has given values."""
        return self._rows(
            lambda engine, x: engine.solve(functional, x), functional, log_target, method, limits
        )

    def _rows(
        self,
        question: Callable[[RowEngine, FloatArray], FloatArray],
        functional: int,
        x: FloatArray,
        method: str,
        limits: Limits,
    ) -> Rows:
        first = self._first(method)
        table = question(self._engine(first), x)
        names = np.full(x.size, first, dtype="<U12")
        if method == "auto" and self.convolves:
            weak = ~row_errors(table, functional, limits)[1]
            if weak.any():
                self._improve(question, functional, x, table, names, weak)
        return Rows(table, names)

    def _improve(
        self,
        question: Callable[[RowEngine, FloatArray], FloatArray],
        functional: int,
        x: FloatArray,
        table: FloatArray,
        names: npt.NDArray[np.str_],
        weak: npt.NDArray[np.bool_],
    ) -> None:
        try:
            other = question(self._engine("convolution"), x[weak])
        except AccuracyError:
            return  # the first engine's rows are judged by their own errors
        rows = np.flatnonzero(weak)
        found, had = (row_errors(part, functional, Limits())[0] for part in (other, table[rows]))
        better = found < had
        table[rows[better]] = other[better]
        names[rows[better]] = "convolution"
