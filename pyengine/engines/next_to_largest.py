"""Tests that take next to nothing but the outcomes of the largest likelihood ratio.

No step samples the record there, or nearly so.  Thresholds of such tests differ from the largest
loss by less than doubles do, and no row at one is known; but all ratios on the test are alike.
"""

from __future__ import annotations

from pyengine._core import ffi, lib
from pyengine.engines.pairs import GaussianPair

__all__ = ["NextToLargest"]

FOUND = ffi.typeof("double[7]")


class NextToLargest:
    """Bounds of errors at levels where dB/dA on the test, or dA/dB off it, is next to its largest.

    Losses of sampled Gaussian steps beyond the smallest one add up.  All n of them are at most y/n
    with A's probability of at least the product of those of each, and where that is no less than
    the level, the test that takes the outcomes of the smallest losses takes none beyond y.  The
    arithmetic is in ``csrc/ends.c``.  Logs of levels from `likely` on have no bounds here.
    """

    def __init__(self, pair: GaussianPair) -> None:
        noise, probability, steps, is_reversed = pair
        self._steps = len(steps), noise, probability, steps, is_reversed
        self.likely: float = lib.pe_log_next_to_largest(*self._steps)

    def level(self, functional: int, log_tail: float) -> tuple[float, ...] | None:
        """Bounds of β and of γ, both values and a threshold; None where ratios are further apart.

        The level is A's tail, or one minus it for `A_BELOW`, whose log is known within 2 ulp.
        """
        out = ffi.new(FOUND)
        known = lib.pe_next_to_largest(*self._steps, functional, log_tail, out)
        return tuple(out) if known else None
