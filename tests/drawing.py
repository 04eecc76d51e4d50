"""Random mechanisms and numbers as strategies of Hypothesis, by the builder of ``tools``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from random_mechanisms import Draw, made

__all__ = ["log_uniform", "mechanisms"]


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers in an interval of positive numbers, of every size alike."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


class _Source:
    """What Hypothesis draws, so that it can make failing examples smaller."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def uniform(self, low: float, high: float) -> float:
        return self._draw(st.floats(low, high))

    def integers(self, number: int) -> int:
        return self._draw(st.integers(0, number - 1))


@st.composite
def mechanisms(draw: st.DrawFn, text: Callable[[Draw], str]) -> Any:
    """Mechanisms of a family, or of a function that draws their text."""
    return made(text(Draw(_Source(draw))))
