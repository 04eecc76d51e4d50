"""Rows of lines, improved by sector laws where steps are few and lines prove little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyengine.engines.functionals import ERRORS, FloatArray
from pyengine.engines.row_bounds import LogBounds
from pyengine.engines.row_sides import CLOSE, BoolArray, LineSide, beyond, log_slope

if TYPE_CHECKING:
    from pyengine.engines.sector import SectorLaws

__all__ = ["FewSteps"]

LEAST_MOVE = 0.2  # thresholds that miss by less than this part of the row's error are not moved
MOST_MISS = 1e-3  # largest miss of the log of a functional at a solved threshold


class FewSteps(LineSide):
    """Certified rows of steps that may be few enough for sector laws."""

    @property
    def laws(self) -> SectorLaws:
        """The sector laws, which may not serve."""
        raise NotImplementedError

    def _weak_rows(self, functional: int, c: FloatArray, table: FloatArray) -> None:
        """Improve rows by further means, if a subclass has any."""

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the lines, improved by the laws."""
        table = super().table(functional, c)
        self.laws.improve(functional, c, table, CLOSE)
        self._weak_rows(functional, c, table)
        return table

    def beyond(self, functional: int, c: FloatArray) -> LogBounds:
        """Rows; of the lines alone where laws would take too long."""
        if not self.laws.are_costly:
            return super().beyond(functional, c)
        return LogBounds.of_rows(c, super().table(functional, c))

    def solved_table(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at thresholds that the lines solve for, improved by the laws."""
        table, elsewhere = self._placed(functional, log_target)
        if not self.laws.serves:
            return table
        put = self.laws.improve(functional, table[:, 0].copy(), table, CLOSE)
        # where lines prove little their thresholds are wrong, too
        off = np.isfinite(log_target) & ~(abs(table[:, 2 + functional] - log_target) < MOST_MISS)
        if off.any():
            table[off] = self.table(functional, self.threshold(functional, log_target[off]))
        self._approach(functional, log_target, table, put | off | elsewhere)
        return table

    def _approach(
        self, functional: int, log_target: FloatArray, table: FloatArray, chosen: BoolArray
    ) -> None:
        """Move the thresholds of ``chosen`` rows, which are closer than those that placed them.

        A threshold's miss of the target widens bounds like an error of its row.  Afterwards the
        level, or δ, is met for certain, by at most 1.5 errors.
        """
        error = table[:, ERRORS + functional]
        aim = beyond(functional, log_target, error)
        miss = table[:, 2 + functional] - aim
        far = (
            chosen
            & (error < MOST_MISS)
            & (abs(miss) > LEAST_MOVE * error)
            & (abs(miss) < MOST_MISS)
        )
        if not far.any():
            return
        step = miss[far] / log_slope(functional, table[far])
        moved = self.table(functional, table[far, 0] - step)
        nearer = abs(moved[:, 2 + functional] - aim[far]) < abs(miss)[far]
        closed = moved[:, ERRORS + functional] <= 2.0 * error[far]
        far[far] = nearer & closed
        table[far] = moved[nearer & closed]
