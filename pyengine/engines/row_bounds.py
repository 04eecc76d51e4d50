"""From rows with proven errors to bounds of β, γ, δ and ε; the arithmetic is in the C core.

`csrc/row_bounds.c` rounds every bound outwards; docs/theory/conversions proves the tangents and
chords.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyengine._core import lib
from pyengine.engines.functionals import FloatArray, array

__all__ = [
    "SLACK",
    "TRIES",
    "LogBounds",
    "crossed",
]

SLACK = 2.0**-49  # relative rounding of the operations that form a bound
TRIES = 8  # thresholds tried next to one on the wrong side of its level
COLUMNS: int = lib.PE_BOUNDS


class LogBounds:
    """Proven bounds of the five functionals at thresholds.

    The table has lower and upper bounds of the log of each functional, and of its value; ``rows``
    are the rows of the C core behind them, if kept.
    """

    def __init__(self, c: FloatArray, table: FloatArray, rows: FloatArray | None = None) -> None:
        self.c, self._table, self._rows = np.ascontiguousarray(c), table, rows

    @classmethod
    def of_rows(cls, c: FloatArray, rows: FloatArray) -> LogBounds:
        """Bounds from rows of the C core with proven errors; 0 and 1 for rows without one."""
        table = np.empty((c.size, COLUMNS))
        lib.pe_bounds_of_rows(c.size, array(rows), SLACK, array(table, writable=True))
        return cls(c, table, rows)

    def logs(self, functional: int) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of the log of a functional; read-only views."""
        return self._table[:, 4 * functional], self._table[:, 4 * functional + 1]

    def values(self, functional: int) -> tuple[FloatArray, FloatArray]:
        """Bounds of a functional itself, rounded outwards; read-only views."""
        return self._table[:, 4 * functional + 2], self._table[:, 4 * functional + 3]

    def line(self, functional: int, tail: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower bounds of β and upper bounds of γ: the convex T lies above its tangent.

        ``tail`` is the level α, or 1 - α for `A_BELOW`.
        """
        out = np.empty((2, self.c.size))
        given = array(np.ascontiguousarray(tail)), array(self.c), array(self._table)
        beta, gamma = (array(part, writable=True) for part in out)
        lib.pe_bounds_line(self.c.size, functional, *given, SLACK, beta, gamma)
        return out[0], out[1]

    def chord(
        self, functional: int, tail: FloatArray, rows: Callable[[FloatArray], LogBounds]
    ) -> tuple[FloatArray, FloatArray]:
        """Upper bounds of β and lower bounds of γ at α.

        From the level of the threshold c down to α, T rises at most with the slope at a threshold
        beyond that of α; a second row proves that it lies beyond.
        """
        n, work = self.c.size, np.empty((4, self.c.size))
        level, c, table = array(np.ascontiguousarray(tail)), array(self.c), array(self._table)
        beyond, at, beta, gamma = (array(part, writable=True) for part in work)
        there, attempt = table, 0
        while lib.pe_bounds_aside(n, functional, level, c, table, attempt, there, beyond, at):
            there, attempt = array(rows(work[1])._table), attempt + 1
        lib.pe_bounds_chord(n, functional, level, beyond, table, SLACK, beta, gamma)
        return work[2], work[3]

    def gain(self) -> FloatArray:
        """Lower bounds of the profile at |c| behind a line of slope -e^c: of B‖A if c >= 0."""
        out = np.empty(self.c.size)
        given = array(self.c), array(self._table)
        lib.pe_bounds_gain(self.c.size, *given, SLACK, array(out, writable=True))
        return out

    def best(self, functional: int, tail: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Best estimates of β and γ from the rows; NaN where there is none."""
        out = np.full((2, self.c.size), np.nan)
        if self._rows is not None:
            given = array(np.ascontiguousarray(tail)), array(self._rows)
            beta, gamma = (array(part, writable=True) for part in out)
            lib.pe_bounds_best(self.c.size, functional, *given, beta, gamma)
        return out[0], out[1]

    def best_epsilon(self, delta: FloatArray) -> FloatArray:
        """Best estimate of ε at δ from the rows; NaN where there is none."""
        out = np.full(self.c.size, np.nan)
        if self._rows is not None:
            given = array(np.ascontiguousarray(delta)), array(self._rows)
            lib.pe_bounds_best_epsilon(self.c.size, *given, array(out, writable=True))
        return out

    def best_profile(self) -> FloatArray:
        """Best estimate of the profile from the rows; NaN where there is none."""
        out = np.full((self.c.size, 3), np.nan)
        if self._rows is not None:
            lib.pe_profile_answers(self.c.size, array(self._rows), array(out, writable=True))
        return out[:, 0]

    def tangent(self, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower bounds of ε at δ, as profiles are convex in e^ε, and a distance.

        At that distance from the threshold, the profile is very likely on the right side of δ.
        """
        out = np.empty((2, self.c.size))
        given = array(np.ascontiguousarray(delta)), array(self.c), array(self._table)
        lower, step = (array(part, writable=True) for part in out)
        lib.pe_bounds_tangent(self.c.size, *given, SLACK, lower, step)
        return out[0], out[1]


def crossed(
    lower_beta: FloatArray, upper_beta: FloatArray, lower_gamma: FloatArray, upper_gamma: FloatArray
) -> None:
    """Let bounds of β and of γ bound each other, in place."""
    parts = [
        array(part, writable=True) for part in (lower_beta, upper_beta, lower_gamma, upper_gamma)
    ]
    lib.pe_bounds_cross(lower_beta.size, *parts)
