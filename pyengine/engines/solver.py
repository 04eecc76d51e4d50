"""The engines of Poisson-subsampled Gaussian steps, tried in turn.

The closed form where there is one, else the spectral engine, else the convolution engine; an answer
is given only where its error estimate is small enough.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.engines.closed_form import ClosedForm
from pyengine.engines.convolution import Convolution, composed_law
from pyengine.engines.rows import LIMIT, LIMIT_TINY, Engine, FloatArray, Rows, row_errors
from pyengine.engines.spectral import Spectral
from pyengine.errors import AccuracyError
from pyengine.pairs import GaussianPair

__all__ = ["Epoch", "Solver", "clear_cache", "solver"]


class Solver:
    """All engines on one ordered pair of laws."""

    def __init__(self, pair: GaussianPair) -> None:
        self.pair = pair
        self._engines: dict[str, Engine] = {}
        self._closed = ClosedForm.available(pair)
        self.memo: dict[tuple[str, str], Any] = {}  # what several questions need, by method

    def _engine(self, name: str) -> Engine:
        engine = self._engines.get(name)
        if engine is None:
            makers: dict[str, Callable[[GaussianPair], Engine]] = {
                "closed_form": ClosedForm,
                "spectral": Spectral,
                "convolution": Convolution,
            }
            engine = self._engines.setdefault(name, makers[name](self.pair))
        return engine

    def _first(self, method: str) -> str:
        """Name of the engine that is asked first."""
        if method != "auto":
            return method
        return "closed_form" if self._closed else "spectral"

    def one(self, functional: int, x: float, method: str, *, by_value: bool) -> Any:
        """One row for a float, as an array of the C core with the bits of `at` or `solve`.

        None where the first engine's answer is not good enough: ask for an array then.
        """
        row = self._engine(self._first(method)).one(functional, x, by_value)
        if row is None or not lib.pe_row_good(row, functional, LIMIT, LIMIT_TINY):
            return None
        return row

    def at(self, functional: int, c: FloatArray, method: str) -> Rows:
        """Rows at thresholds of the loss."""
        return self._ask(lambda engine, x: engine.at(functional, x), functional, c, method)

    def solve(self, functional: int, log_target: FloatArray, method: str) -> Rows:
        """Rows at the thresholds where the log of a functional has given values."""
        return self._ask(
            lambda engine, x: engine.solve(functional, x), functional, log_target, method
        )

    def _ask(
        self,
        question: Callable[[Engine, FloatArray], FloatArray],
        functional: int,
        x: FloatArray,
        method: str,
    ) -> Rows:
        first = self._first(method)
        table = question(self._engine(first), x)
        names = np.full(x.size, first, dtype="<U12")
        if method == "auto" and first == "spectral":
            weak = ~row_errors(table, functional)[1]
            if weak.any():
                self._improve(question, functional, x, table, names, weak)
        errors, good = row_errors(table, functional)
        if not good.all():
            self._refuse(float(errors[~good][0]), method)
        return Rows(table, names)

    def _improve(
        self,
        question: Callable[[Engine, FloatArray], FloatArray],
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
        better = row_errors(other, functional)[0] < row_errors(table[rows], functional)[0]
        table[rows[better]] = other[better]
        names[rows[better]] = "convolution"

    def _refuse(self, error: float, method: str) -> None:
        pair = self.pair
        advice = (
            "method='auto' may find an engine that can"
            if method != "auto"
            else "composing steps of one kind, more steps or more noise makes the loss smoother"
        )
        raise AccuracyError(
            f"no answer within the error limit of {LIMIT:g} ({LIMIT_TINY:g} below 1e-30): "
            f"estimated relative error {error:.1e} with method={method!r} for "
            f"noise_multiplier={pair.noise[0]:g}, sampling_probability={pair.probability[0]:g}, "
            f"steps={pair.steps[0]}{' and further phases' if len(pair.steps) > 1 else ''}; {advice}"
        )


_CACHE_SIZE = 128
_solvers: OrderedDict[GaussianPair, Solver] = OrderedDict()
_lock = Lock()


class Epoch:
    """The time between two calls of `clear_cache`; solvers kept outside do not outlive theirs."""

    current = object()


def solver(pair: GaussianPair) -> Solver:
    """Return the solver of a pair; the most recently used ones are kept with their contours."""
    with _lock:
        found = _solvers.get(pair)
        if found is None:
            found = _solvers[pair] = Solver(pair)
            if len(_solvers) > _CACHE_SIZE:
                _solvers.popitem(last=False)
        else:
            _solvers.move_to_end(pair)
        return found


def clear_cache() -> None:
    """Forget all contours and laws, as a new process would."""
    global _lock
    _lock = Lock()
    Epoch.current = object()
    _solvers.clear()
    composed_law.cache_clear()


# A child forked while another thread held a lock would wait for it for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=clear_cache)
