"""Rows whose errors are estimates: of the spectral engine, or a convolution that knows more.

They answer what lines do not prove, where no proof is asked for, and place thresholds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.engines.functionals import FloatArray, Limits, RowEngine, row_errors
from pyengine.errors import AccuracyError

__all__ = ["Estimates"]

GOOD = Limits()


class Estimates:
    """Both engines on one pair; a `pyengine.engines.functionals.RowEngine`.

    Parameters
    ----------
    spectral : callable
        Returns the spectral engine, which is kept elsewhere.
    convolution : callable
        Makes the other one; None where a loss is unbounded below, or there are too many kinds.
    word : {"auto", "spectral", "convolution"}
        Both, or the one that is asked by name.
    """

    def __init__(
        self,
        spectral: Callable[[], RowEngine],
        convolution: Callable[[], RowEngine | None],
        word: str = "auto",
    ) -> None:
        self.name, self._first = "spectral", spectral
        self._convolution, self._improves = convolution, word == "auto"
        if word == "convolution":
            self.name, self._first = word, self._alone

    def _alone(self) -> RowEngine:
        """The convolution, which is asked by name."""
        other = self._convolution()
        if other is None:
            raise AccuracyError(
                "method='convolution' answers for Gaussian steps and mixtures whose losses are "
                "bounded below; ask method='auto'"
            )
        return other

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds of the loss."""
        return self.labelled(functional, c, by_value=False)[0]

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds where the log of a functional has given values."""
        return self.labelled(functional, log_target, by_value=True)[0]

    def labelled(
        self, functional: int, x: FloatArray, *, by_value: bool
    ) -> tuple[FloatArray, npt.NDArray[np.str_]]:
        """Rows of `at` or `solve`, and the engine of each."""

        def ask(engine: RowEngine, x: FloatArray) -> FloatArray:
            return engine.solve(functional, x) if by_value else engine.at(functional, x)

        table = ask(self._first(), x)
        return table, np.where(self._improved(functional, table, x, ask), "convolution", self.name)

    def one(self, functional: int, x: float, by_value: bool) -> Any:
        """One row of `at` or `solve`; None where the first engine knows too little."""
        row = self._first().one(functional, x, by_value)
        return row if row is not None and lib.pe_row_good(row, functional, *GOOD) else None

    def _improved(
        self,
        functional: int,
        table: FloatArray,
        x: FloatArray,
        ask: Callable[[RowEngine, FloatArray], FloatArray],
    ) -> npt.NDArray[np.bool_]:
        """Put rows of the convolution where the first engine's are not good; where it has."""
        errors, good = row_errors(table, functional, GOOD)
        improved = np.zeros(x.size, dtype=np.bool_)
        other = None if good.all() or not self._improves else self._convolution()
        if other is None:
            return improved
        weak = np.flatnonzero(~good)
        try:
            found = ask(other, x[weak])
        except AccuracyError:
            return improved  # the first engine's rows are judged by their own errors
        better = row_errors(found, functional, GOOD)[0] < errors[weak]
        table[weak[better]] = found[better]
        improved[weak[better]] = True
        return improved
