"""Certified rows of epochs of random allocation, and of plain Gaussian steps beside them."""

from __future__ import annotations

import numpy as np

from pyengine.caches import cached_property
from pyengine.engines.certified import ANY, CLOSE, CertifiedSide, log_slope
from pyengine.engines.functionals import A_ABOVE, B_ABOVE, ERRORS, WIDTH, FloatArray
from pyengine.engines.row_bounds import LogBounds
from pyengine.engines.sector import EpochKinds, EpochLaws
from pyengine.laws.allocation import AllocatedLaw
from pyengine.laws.base import ReversedLaw, StepLaw
from pyengine.laws.gaussian import GaussianLaw
from pyengine.numerics.bracketing import falling_root

__all__ = ["EpochSide"]

FALLING = (A_ABOVE, B_ABOVE)  # with the threshold
INSIDE = 1e-9  # of the way between the ends of a law, where it has rows


class EpochSide(CertifiedSide):
    """Certified rows of one ordered pair.

    Parameters
    ----------
    kinds : tuple of (noise, steps, epochs)
        Equal epochs, as `EpochLaws` takes them.
    is_reversed : bool
        Whether A is the law with the record.
    """

    def __init__(self, kinds: EpochKinds, is_reversed: bool) -> None:
        self._laws = EpochLaws(kinds, is_reversed)

    @classmethod
    def of(cls, laws: list[tuple[StepLaw, int]]) -> EpochSide | None:
        """The side of a composition; None of others, and of more steps than are served."""
        kinds, orders = [], set()
        for law, number in laws:
            found = law.tabulated()
            plain = law.law if isinstance(law, ReversedLaw) else law
            if found is not None and isinstance(found[0], AllocatedLaw):
                kinds.append(((found[0].noise, found[0].low), found[0].steps, number))
                orders.add(found[1])
            elif isinstance(plain, GaussianLaw) and plain.low is not None:
                kinds.append(((plain.noise_multiplier, plain.low), 1, number))
            else:
                return None
        if len(orders) != 1:
            return None
        side = cls(tuple(kinds), orders.pop())
        return side if side._laws.serves else None

    @cached_property
    def _ends(self) -> tuple[float, float] | None:
        ends = self._laws.ends()
        if ends is None:
            return None
        room = INSIDE * (ends[1] - ends[0])
        return ends[0] + room, ends[1] - room

    def table(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the law of the loss."""
        table = np.full((c.size, WIDTH), np.nan)
        table[:, ERRORS:] = np.inf
        self._laws.improve(functional, c, table, CLOSE)
        return table

    def estimates(self, functional: int, c: FloatArray) -> FloatArray:
        """The same rows, as no other engine has all of these compositions."""
        return self.table(functional, c)

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds from rows of the law."""
        found = np.full(log_target.size, np.nan)
        known = np.isfinite(log_target)
        if self._ends is None or not known.any():
            return found
        sign, goal = 1.0 if functional in FALLING else -1.0, log_target[known]
        low, high = (np.full(goal.size, x) for x in self._ends)
        middle = 0.5 * (low + high)

        def beyond(c: FloatArray) -> FloatArray:
            value = self._laws.values(functional, c)
            # where there is no row it is next to nothing, or nearly all
            return np.where(np.isnan(value), np.sign(middle - c), sign * (value - goal))

        found[known] = falling_root(beyond, low, high)
        return found

    def solved(self, functional: int, log_target: FloatArray) -> LogBounds:
        """Bounds where a functional lies below its target by twice its error.

        So one row proves both sides: the test's level, or δ, is met by it.
        """
        c = self.threshold(functional, log_target)
        table = self.table(functional, c)
        value, error = table[:, 2 + functional], table[:, ERRORS + functional]
        with np.errstate(invalid="ignore", over="ignore"):
            step = (value - log_target + 2.0 * error) / log_slope(functional, table)
        moved = np.isfinite(step) & (error < ANY.ordinary)
        table[moved] = self.table(functional, c[moved] - step[moved])
        return LogBounds.of_rows(table[:, 0], table)
