"""The time of a question, as the comparisons of this folder measure it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

__all__ = ["median_time"]


def median_time(
    action: Callable[[], Any], runs: int = 5, clock: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    """Median of the times of some runs by a clock, and the last result."""
    times, found = [], None
    for _ in range(runs):
        start = clock()
        found = action()
        times.append(clock() - start)
    return statistics.median(times), found
