"""What the tests of all lines of Laplace steps ask: panels, the reference and the lattice."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

import pyengine as pe
from pyengine import reference
from pyengine.engines.panels.sums import LaplaceOrder, LaplaceSteps
from pyengine.engines.vertical_lines.choice import Kinds

__all__ = ["against_the_reference", "laplace", "of_panels", "same_profile", "within_the_lattice"]


def laplace(noise: float, p: float | None, steps: int) -> Any:
    """Equal Laplace steps, plain where there is no rate."""
    step: Any = pe.LaplaceMechanism(noise)
    return (step if p is None else step.poisson_sampled(p)).composed(steps)


def of_panels(kinds: Kinds, exchanged: bool) -> LaplaceOrder:
    """The engine that shares but the step's losses with lines."""
    ((shape, number),) = kinds
    return LaplaceOrder(LaplaceSteps(shape, number), exchanged)


def same_profile(one: Any, other: LaplaceOrder, epsilon: Any) -> tuple[Any, Any]:
    """Profiles of two engines differ by their errors at most; value and error of the first."""
    value, error = one.profile(epsilon)
    truth, off = other.profile(epsilon)
    assert (np.abs(value - truth) <= error + off).all()
    return value, error


def against_the_reference(
    mechanism: Any, adjacency: str, deltas: Iterable[float], places: int, digits: int, slack: str
) -> float:
    """δ at the ε of some δ, rounded to places; returns the largest relative width.

    ``slack`` is what the truth may be off by, relative.
    """
    widths = []
    for delta in deltas:
        epsilon = round(pe.epsilon(mechanism, delta, adjacency=adjacency), places)
        found, engines, proven = pe.api.answers("delta", mechanism, [epsilon], adjacency=adjacency)
        assert (engines, proven) == (["certified"], [True])
        known = reference.delta(mechanism, epsilon, adjacency=adjacency, digits=digits)
        truth = Decimal(str(known))
        off = Decimal(slack) * truth
        assert Decimal(float(found.lower[0])) - off <= truth
        assert truth <= Decimal(float(found.upper[0])) + off
        if truth > 0:  # beyond the largest loss there is nothing
            widths.append(float((found.upper - found.lower)[0] / found.upper[0]))
    return max(widths)


def within_the_lattice(
    mechanism: Any,
    questions: Iterable[tuple[str, float]],
    adjacencies: Iterable[str],
    width: float,
) -> None:
    """Brackets meet those of the lattice, and are no wider than so much of their upper ends."""
    orders = list(adjacencies)
    for question, x in questions:
        ask: Any = getattr(pe, question)
        for adjacency in orders:
            found = ask(mechanism, x, adjacency=adjacency, bounds=True)
            rough = ask(mechanism, x, adjacency=adjacency, bounds=True, method="lattice")
            assert rough.lower <= found.upper
            assert found.lower <= rough.upper
            assert found.upper - found.lower <= width * found.upper
