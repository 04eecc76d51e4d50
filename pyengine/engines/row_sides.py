"""Sources of rows for one ordered pair: logs of all functionals at a threshold, with errors.

The spectral engine finds a threshold; rows at it and near it, with proven errors
(docs/theory/line), bound the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.answers import Triple
from pyengine.engines.functionals import (
    A_ABOVE,
    A_BELOW,
    B_BELOW,
    ERRORS,
    PROFILE,
    FloatArray,
    Limits,
    RowEngine,
)
from pyengine.engines.row_bounds import SLACK, LogBounds
from pyengine.engines.spectral import THOROUGH, Spectral
from pyengine.numerics import functions as fn

__all__ = [
    "ANY",
    "CLOSE",
    "EstimatedSide",
    "LineSide",
    "RowSide",
    "beyond",
    "estimated_threshold",
    "first_found",
    "log_slope",
]

BoolArray = npt.NDArray[np.bool_]
Threshold = Callable[[int, FloatArray], FloatArray]
ANY = Limits(0.5, 0.5)  # error of rows that only find thresholds, which enter no bound
CLOSE_ROW = 3e-11  # error of rows of lines up to which no tabulated law is built
CLOSE = Limits(CLOSE_ROW, CLOSE_ROW)
MISSED = 0.5  # relative error of a row above which its threshold is not used


class RowSide:
    """Certified rows of one ordered pair.

    `name` is the engine's name in answers, `most_at_zero` an upper bound of the profile at 0
    without a row, and `ends` the largest loss with its bounds: infinite if unbounded, None if
    unknown.  `memo` caches what several questions share, as long as the lines are kept.
    """

    name = "certified"
    most_at_zero = 1.0
    ends: Triple | None = None
    lines: LineSide | None = None  # the side itself, if the C core answers single numbers

    def __init__(self) -> None:
        self.memo: dict[Any, Any] = {}

    @property
    def largest(self) -> float:
        """Upper bound of the loss; infinite if unbounded or unknown."""
        return math.inf if self.ends is None else self.ends[2]

    @cached_property
    def zero(self) -> Triple:
        """The profile at 0, with its bounds."""
        found = self.rows(PROFILE, np.zeros(1))
        lower, upper = (float(bound[0]) for bound in found.values(PROFILE))
        upper, value = min(upper, self.most_at_zero), float(found.best_profile()[0])
        if math.isnan(value):
            value = 0.5 * (lower + upper)
        return min(max(value, lower), upper), lower, upper

    @cached_property
    def straight(self) -> tuple[float, float]:
        """Levels between which the hull of both orders is the line 1 - α - δ(0).

        The test with threshold 0 has errors a and b with a + b = 1 - δ(0); in the other order they
        are exchanged.  Mixtures of both tests lie on the line, and no test lies below it.
        """
        found = self.rows(A_ABOVE, np.zeros(1))
        (a_low, a_high), (b_low, b_high) = (
            (float(bound[0]) for bound in found.values(which)) for which in (A_ABOVE, B_BELOW)
        )
        return min(a_high, b_high), max(a_low, b_low)

    def next_to_largest(self, functional: int, log_tail: FloatArray) -> FloatArray | None:
        """β and γ at levels whose tests reject only next to the largest loss, where no row is.

        Columns of the C core: bounds of β and of γ, both values, and thresholds; the first is NaN
        at other levels.  None if there are no such levels.
        """
        del functional, log_tail
        return None

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds at which the log of a functional is about a target; NaN if not found."""
        raise NotImplementedError

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the C core at thresholds, with proven errors."""
        raise NotImplementedError

    def rows(self, functional: int, c: FloatArray) -> LogBounds:
        """Bounds of all functionals at thresholds."""
        return LogBounds.of_rows(c, self.table(functional, c))

    def beyond(self, functional: int, c: FloatArray) -> LogBounds:
        """The same, where wide bounds are enough."""
        return self.rows(functional, c)

    def most(self, epsilon: FloatArray, *, closely: bool) -> FloatArray:
        """Upper bounds of the profile without tabulated laws; unless ``closely``, without lines."""
        del closely
        return np.ones(epsilon.size)

    def solved(self, functional: int, log_target: FloatArray) -> LogBounds:
        """Bounds at thresholds at which the log of a functional is about a target."""
        return self.rows(functional, self.threshold(functional, log_target))


def estimated_threshold(lines: Spectral, functional: int, log_target: FloatArray) -> FloatArray:
    """Thresholds from estimated rows; NaN where their error exceeds `MISSED`."""
    table = lines.solve(functional, log_target)
    return np.where(table[:, ERRORS + functional] <= MISSED, table[:, 0], np.nan)


def first_found(ways: Sequence[Threshold], functional: int, log_target: FloatArray) -> FloatArray:
    """Thresholds by the first of ``ways`` that finds each; NaN where none does."""
    found = np.full(log_target.size, np.nan)
    for find in ways:
        missing = np.isnan(found) & np.isfinite(log_target)
        if missing.any():
            found[missing] = find(functional, log_target[missing])
    return found


class LineSide(RowSide):
    """Certified rows from proven lines, which are kept with their contours."""

    @property
    def lines(self) -> LineSide:  # type: ignore[override]
        """The side itself."""
        return self

    @property
    def asked(self) -> int:
        """Which lines are tried first."""
        return THOROUGH

    @property
    def known_largest(self) -> float | None:
        """Upper bound of the loss; None if the C core knows it from the steps."""
        return self.largest

    def prover(self) -> Spectral:
        """The engine that holds the lines."""
        raise NotImplementedError

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the lines."""
        return self.prover().certify(functional, c, lines=self.asked)

    def most(self, epsilon: FloatArray, *, closely: bool) -> FloatArray:
        """By Chernoff's bounds; if ``closely``, by the lines."""
        lines, c = self.prover(), -epsilon
        rows = lines.certify(PROFILE, c, lines=self.asked) if closely else lines.chernoff(c)
        return LogBounds.of_rows(c, rows).values(PROFILE)[1]

    def solved(self, functional: int, log_target: FloatArray) -> LogBounds:
        """Bounds at thresholds found on the lines, else by the fast engines."""
        table = self.solved_table(functional, log_target)
        return LogBounds.of_rows(table[:, 0], table)

    def solved_table(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at such thresholds."""
        return self._placed(functional, log_target)[0]

    def _placed(self, functional: int, log_target: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Rows at such thresholds, and a mask of those that the fast engines found."""
        table = self.prover().certify_beyond(functional, log_target, SLACK, lines=self.asked)
        missing = np.isnan(table[:, 0]) & np.isfinite(log_target)
        if missing.any():
            table[missing] = self.table(functional, self.threshold(functional, log_target[missing]))
        return table, missing


class EstimatedSide(RowSide):
    """Rows with estimated errors, of an engine that is cached elsewhere."""

    def __init__(self, engine: Callable[[], RowEngine], name: str, ends: Triple | None) -> None:
        super().__init__()
        self._engine, self.name, self.ends = engine, name, ends

    @property
    def engine(self) -> RowEngine:
        """The engine that computes the rows."""
        return self._engine()

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds of the engine."""
        return self.engine.solve(functional, log_target)[:, 0]

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the engine."""
        return self.engine.at(functional, c)

    def most(self, epsilon: FloatArray, *, closely: bool) -> FloatArray:
        """Upper ends of the profile from its rows: 1 unless ``closely``."""
        if not closely:
            return np.ones(epsilon.size)
        return self.rows(PROFILE, -epsilon).values(PROFILE)[1]


def beyond(functional: int, log_target: FloatArray, error: FloatArray) -> FloatArray:
    """Log target of a functional at which a row with this error surely meets the level or δ."""
    return log_target + (1.25 if functional == A_BELOW else -1.25) * error


def log_slope(functional: int, table: FloatArray) -> FloatArray:
    """Derivative in c of the log of one of A's tails or of the profile."""
    if functional == PROFILE:
        return np.asarray(fn.exp(table[:, 2 + B_BELOW] - table[:, 0] - table[:, 2 + PROFILE]))
    sign = -1.0 if functional == A_ABOVE else 1.0
    return np.asarray(sign * fn.exp(table[:, 1] - table[:, 2 + functional]))
