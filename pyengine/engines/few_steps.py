"""Rows of lines, and of the law on pieces of few steps where these prove little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyengine.engines.functionals import ERRORS, FloatArray
from pyengine.engines.row_bounds import LogBounds
from pyengine.engines.row_sides import CLOSE, BoolArray, LineSide, beyond, log_slope

if TYPE_CHECKING:
    from pyengine.engines.sector import SectorLaws

__all__ = ["FewSteps"]

NEAR = 0.2  # of an error: thresholds that are so near to where they are to be are not moved
OFF = 1e-3  # what the log of a functional may be off by at a threshold that is looked for


class FewSteps(LineSide):
    """Certified rows of steps that may be few enough for laws of the loss with proven errors."""

    @property
    def laws(self) -> SectorLaws:
        """Those laws, which may serve none."""
        raise NotImplementedError

    def _weak_rows(self, functional: int, c: FloatArray, table: FloatArray) -> None:
        """Put closer rows into a table where others than lines and laws have some."""

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the lines, and of the law of few steps."""
        table = super().table(functional, c)
        self.laws.improve(functional, c, table, CLOSE)
        self._weak_rows(functional, c, table)
        return table

    def beyond(self, functional: int, c: FloatArray) -> LogBounds:
        """Rows of the lines where a law of many steps would be made for these alone."""
        if not self.laws.are_costly:
            return super().beyond(functional, c)
        return LogBounds.of_rows(c, super().table(functional, c))

    def solved_table(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows of the lines at their thresholds, and of the law of few steps."""
        table, elsewhere = self._placed(functional, log_target)
        if not self.laws.serves:
            return table
        put = self.laws.improve(functional, table[:, 0].copy(), table, CLOSE)
        # where lines knew little, they have found no threshold either
        off = np.isfinite(log_target) & ~(abs(table[:, 2 + functional] - log_target) < OFF)
        if off.any():
            table[off] = self.table(functional, self.threshold(functional, log_target[off]))
        self._approach(functional, log_target, table, put | off | elsewhere)
        return table

    def _approach(
        self, functional: int, log_target: FloatArray, table: FloatArray, chosen: BoolArray
    ) -> None:
        """Move thresholds of rows that came to be closer than those that placed them.

        What a threshold misses counts like an error of its row.  They end on the side of the target
        where the level, or δ, is met for certain, by no more than one and a half errors.
        """
        error = table[:, ERRORS + functional]
        aim = beyond(functional, log_target, error)
        miss = table[:, 2 + functional] - aim
        far = chosen & (error < OFF) & (abs(miss) > NEAR * error) & (abs(miss) < OFF)
        if not far.any():
            return
        step = miss[far] / log_slope(functional, table[far])
        moved = self.table(functional, table[far, 0] - step)
        nearer = abs(moved[:, 2 + functional] - aim[far]) < abs(miss)[far]
        closed = moved[:, ERRORS + functional] <= 2.0 * error[far]
        far[far] = nearer & closed
        table[far] = moved[nearer & closed]
