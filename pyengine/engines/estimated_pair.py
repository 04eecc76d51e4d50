"""Questions on one ordered pair, answered from rows with estimated errors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.engines.answers import Answer, Judged, Questions, names
from pyengine.engines.certified import BoolArray, CertifiedPair
from pyengine.engines.functionals import (
    A_ABOVE,
    A_BELOW,
    PROFILE,
    FloatArray,
    Limits,
    array,
    row_errors,
)
from pyengine.engines.row_sides import EstimatedSide
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn

__all__ = ["EstimatedPair"]

BOTH = ffi.typeof("double[6]")
LARGEST = 0.01  # relative error above which no tolerance is advised


def _no_engine() -> Questions:
    """Never called: rows are judged here, and there is no other engine."""
    raise AssertionError


class EstimatedPair(CertifiedPair):
    """Values with bounds from estimated errors of rows, at thresholds that an engine finds."""

    def __init__(self, side: EstimatedSide, tolerance: float | None) -> None:
        super().__init__(side, side, tolerance, _no_engine, proven=False)
        self._side, self._limits = side, Limits.of(tolerance)
        self.widest = (np.inf, np.inf)  # rows are judged themselves

    def _one_side(
        self,
        functional: int,
        chosen: BoolArray,
        alpha: FloatArray,
        beta: Answer,
        gamma: Answer,
        c: FloatArray,
    ) -> None:
        level = alpha[chosen]
        tail = fn.log(level if functional == A_ABOVE else 1.0 - level)  # exact from 1/2 on
        out, label = np.empty((level.size, 6)), names(self._name, level.size)
        table = self._side.engine.solve(functional, tail)
        lib.pe_trade_off_answers(level.size, array(level), array(table), array(out, writable=True))
        self._judge(functional, table)
        c[chosen] = table[:, 0]
        beta.put(chosen, _answer(out[:, :3], label))
        gamma.put(chosen, _answer(out[:, 3:], label))

    def _judge(self, functional: int, table: FloatArray) -> None:
        """Raise if the errors of rows exceed the limits."""
        errors, good = row_errors(table, functional, self._limits)
        if not good.all():
            worst = float(errors[~good].max())
            advice = "give a larger tolerance"
            if self._limits != Limits() and worst < LARGEST:
                advice = f"for this value, tolerance={2.2 * worst:.1e} would do"
            raise AccuracyError(
                f"no answer within the error limit of {self._limits.ordinary:.3g} "
                f"({self._limits.tiny:.3g} below 1e-30): estimated relative error "
                f"{worst:.1e} with method={self._name!r}; {advice}"
            )

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        out, asked = np.zeros((epsilon.size, 3)), ~self._ended(epsilon)
        label = names(self._name, epsilon.size)
        if asked.any():
            table = self._side.engine.at(PROFILE, -epsilon[asked])
            self._judge(PROFILE, table)
            found = np.empty((len(table), 3))
            lib.pe_profile_answers(len(table), array(table), array(found, writable=True))
            out[asked] = found
        return _answer(out, label)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        out, label = np.zeros((delta.size, 3)), names(self._name, delta.size)
        asked = (delta > 0.0) & ~self._is_zero(delta)
        if asked.any():
            level = delta[asked]
            table = self._side.engine.solve(PROFILE, fn.log(level))
            found = np.empty((level.size, 3))
            self._judge(PROFILE, table)
            lib.pe_epsilon_answers(level.size, array(table), array(found, writable=True))
            out[asked] = found
        out[delta == 0.0] = (0.0, 0.0, np.inf) if self._side.ends is None else self._side.ends
        return _answer(out, label)

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number, by one row if that is precise enough."""
        start = {"trade_off": 0, "gamma_bound": 3}.get(name)
        if start is not None and 0.0 < x < 1.0:
            functional, tail = (A_ABOVE, x) if x <= 0.5 else (A_BELOW, 1.0 - x)
            row = self._side.engine.one(functional, fn.log(tail), True)
            if row is not None and lib.pe_row_good(row, functional, *self._limits):
                out = ffi.new(BOTH)
                lib.pe_trade_off_answers(1, (x,), row, out)
                return out[start], out[start + 1], out[start + 2], False
        return super().one(name, x)


def _answer(triples: FloatArray, label: npt.NDArray[np.str_]) -> Answer:
    value, lower, upper = np.ascontiguousarray(triples.T)
    return Answer(value, lower, upper, label)
