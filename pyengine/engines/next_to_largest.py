"""Tests that reject only outcomes with nearly the largest likelihood ratio.

On these, almost no step samples the record.  The thresholds of such tests are closer to the largest
loss than doubles resolve, so there are no rows; but all ratios on the test are nearly equal.
"""

from __future__ import annotations

from pyengine._core import ffi, lib
from pyengine.engines.pairs import GaussianPair

__all__ = ["NextToLargest"]

FOUND = ffi.typeof("double[7]")


class NextToLargest:
    """Bounds of β and γ at levels where dB/dA on the test, or dA/dB off it, is nearly constant.

    The A-mass of the event that each of n losses is within y/n of its end is a product over steps.
    If it is at least the level, the test of the extreme losses takes none farther than y from the
    end of the sum.  The arithmetic is in ``csrc/ends.c``.  Log levels from `likely` on have no
    bounds here.
    """

    def __init__(self, pair: GaussianPair) -> None:
        noise, probability, steps, is_reversed = pair
        self._steps = len(steps), noise, probability, steps, is_reversed
        self.likely: float = lib.pe_log_next_to_largest(*self._steps)

    def level(self, functional: int, log_tail: float) -> tuple[float, ...] | None:
        """β and γ with bounds, and a threshold; None if the ratios differ too much.

        ``log_tail`` is the log of the level, or of 1 minus the level for `A_BELOW`, to 2 ulp.
        """
        out = ffi.new(FOUND)
        known = lib.pe_next_to_largest(*self._steps, functional, log_tail, out)
        return tuple(out) if known else None
