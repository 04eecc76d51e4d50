"""What several property tests draw."""

from __future__ import annotations

import math

from hypothesis import strategies as st

__all__ = ["log_uniform"]


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers in an interval of positive numbers, of every size alike."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)
