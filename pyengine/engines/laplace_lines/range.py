"""Which compositions lines serve, decided before any question."""

from __future__ import annotations

from pyengine.engines.laplace_lines.build import is_served
from pyengine.engines.laplace_lines.choice import Kinds
from pyengine.engines.laplace_lines.order import LineOrder
from pyengine.engines.panels.shape import shape_of
from pyengine.laws.base import StepLaw

__all__ = ["line_order"]

LEAST = 20  # steps
MOST_KINDS = 64


def line_order(laws: list[tuple[StepLaw, int]]) -> LineOrder | None:
    """Return one order of a composition of Laplace steps that lines serve; None of others."""
    if len(laws) > MOST_KINDS or sum(number for _, number in laws) < LEAST:
        return None
    kinds, exchanged = [], set()
    for law, number in laws:
        found = shape_of(law)
        if found is None:
            return None
        kinds.append((found[0], number))
        if not found[0].is_symmetric:
            exchanged.add(found[1])
    if len(exchanged) > 1:
        return None
    every: Kinds = tuple(kinds)
    return LineOrder(every, exchanged == {True}) if is_served(every) else None
