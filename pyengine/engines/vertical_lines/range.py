"""Which compositions lines serve, decided before any question."""

from __future__ import annotations

from pyengine.caches import kept
from pyengine.engines.panels.shape import shape_of
from pyengine.engines.vertical_lines.build import is_served
from pyengine.engines.vertical_lines.choice import Kinds
from pyengine.engines.vertical_lines.deformation import (
    DeformedOrder,
    is_deformable,
    is_deformed,
)
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.laws.base import PoissonSampledLaw, ReversedLaw, StepLaw
from pyengine.laws.laplace import LaplaceLaw
from pyengine.laws.substituted import SubstitutedLaplace

__all__ = ["deformed_order", "line_order"]

LEAST = 20  # steps
MOST_KINDS = 64


def line_order(laws: list[tuple[StepLaw, int]]) -> LineOrder | None:
    """Return one order of a composition of Laplace steps that lines serve; None of others."""
    return _order(tuple(laws)) if all(_is_laplace(law) for law, _ in laws) else None


def _is_laplace(law: StepLaw) -> bool:
    """Whether a law may have a shape, told without exact numbers."""
    while isinstance(law, ReversedLaw | PoissonSampledLaw):
        law = law.law
    return isinstance(law, LaplaceLaw | SubstitutedLaplace)


def deformed_order(laws: list[tuple[StepLaw, int]]) -> DeformedOrder | None:
    """Return one order of a composition that has deformed lines, be they the quickest or not."""
    return _deformed(tuple(laws)) if all(_is_laplace(law) for law, _ in laws) else None


@kept(64)
def _deformed(laws: tuple[tuple[StepLaw, int], ...]) -> DeformedOrder | None:
    found = _kinds(laws)
    return DeformedOrder(*found) if found is not None and is_deformable(found[0]) else None


@kept(64)
def _order(laws: tuple[tuple[StepLaw, int], ...]) -> LineOrder | None:
    found = _kinds(laws)
    if found is None:
        return None
    if sum(number for _, number in laws) >= LEAST and is_served(found[0]):
        return LineOrder(*found)
    return DeformedOrder(*found) if is_deformed(found[0]) else None


def _kinds(laws: tuple[tuple[StepLaw, int], ...]) -> tuple[Kinds, bool] | None:
    """The kinds of steps, and whether the pair is exchanged; None where there are no lines."""
    if len(laws) > MOST_KINDS:
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
    return tuple(kinds), exchanged == {True}
