"""The engines of Poisson-subsampled Gaussian steps, tried in turn.

The spectral engine, else the convolution engine; an answer is given only where its error estimate
is small enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.caches import Cache
from pyengine.engines.convolution import Convolution
from pyengine.engines.functionals import FloatArray, Limits, RowEngine, Rows, row_errors
from pyengine.engines.spectral import Spectral
from pyengine.errors import AccuracyError
from pyengine.pairs import GaussianPair

__all__ = ["Solver", "solver"]

SOLVER_BYTES = 4096  # of one that has answered nothing yet


class Solver:
    """All engines on one ordered pair of laws."""

    def __init__(self, pair: GaussianPair) -> None:
        self.pair = pair
        self._engines: dict[str, RowEngine] = {}
        self.memo: dict[tuple[Any, ...], Any] = {}  # what several questions need, by method

    def _engine(self, name: str) -> RowEngine:
        engine = self._engines.get(name)
        if engine is None:
            makers: dict[str, Callable[[GaussianPair], RowEngine]] = {
                "spectral": Spectral,
                "convolution": Convolution,
            }
            engine = self._engines.setdefault(name, makers[name](self.pair))
        return engine

    def spectral(self) -> Spectral:
        """Return the spectral engine, whose contours and certified lines are kept here."""
        engine = self._engine("spectral")
        assert isinstance(engine, Spectral)
        return engine

    def bytes(self) -> int:
        """Memory that this and its contours take; the laws of the convolution are kept apart."""
        spectral = self._engines.get("spectral")
        return SOLVER_BYTES + (spectral.bytes() if isinstance(spectral, Spectral) else 0)

    def _first(self, method: str) -> str:
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
        """Rows at thresholds of the loss."""
        return self._ask(lambda engine, x: engine.at(functional, x), functional, c, method, limits)

    def solve(self, functional: int, log_target: FloatArray, method: str, limits: Limits) -> Rows:
        """Rows at the thresholds where the log of a functional has given values."""
        return self._ask(
            lambda engine, x: engine.solve(functional, x), functional, log_target, method, limits
        )

    def _ask(
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
        if method == "auto" and first == "spectral":
            weak = ~row_errors(table, functional, limits)[1]
            if weak.any():
                self._improve(question, functional, x, table, names, weak)
        errors, good = row_errors(table, functional, limits)
        if not good.all():
            self._refuse(float(errors[~good].max()), method, limits)
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

    def _refuse(self, error: float, method: str, limits: Limits) -> None:
        pair = self.pair
        if error < 0.1:
            advice = f"for this value, tolerance={2.2 * error:.1e} would do"
        elif method != "auto":
            advice = "method='auto' may find an engine that can"
        else:
            advice = "method='lattice' brackets what this engine does not resolve"
        raise AccuracyError(
            f"no answer within the error limit of {limits.ordinary:.3g} ({limits.tiny:.3g} below "
            f"1e-30): estimated relative error {error:.1e} with method={method!r} for "
            f"noise_multiplier={pair.noise[0]:g}, sampling_probability={pair.probability[0]:g}, "
            f"steps={pair.steps[0]}{' and further phases' if len(pair.steps) > 1 else ''}; {advice}"
        )


_solvers: Cache[Solver] = Cache(128, lambda kept: kept.bytes(), grows=True)


def solver(pair: GaussianPair) -> Solver:
    """Return the solver of a pair; the most recently used ones are kept with their contours."""
    return _solvers.get_or_make(pair, lambda: Solver(pair))
