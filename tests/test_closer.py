"""Lines of rare mixtures of normals that end before modes far out; docs/theory/line, Lemma 6."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

import pyengine as pe
from pyengine.engines.vertical_lines.closer import OPEN, CloserOrder
from pyengine.engines.vertical_lines.normal_steps import LEVELS, MixtureShape
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.laws.composition import composition_law

RUNS = {
    "loud": pe.dp_sgd(0.8, 1e-4, 200),
    "few": pe.dp_sgd(1.0, 0.01, 20),
    "quiet": pe.dp_sgd(1.5, 0.01, 50),
    "groups": pe.dp_sgd(3.186, 0.001812, 20, group_size=4),
}
EPSILONS = {"loud": (0.2, 2.0), "few": (0.5, 2.0), "quiet": (0.3, 1.0), "groups": (0.05, 0.4, 0.8)}


def order_of(run: str, adjacency: str, level: int = 0) -> LineOrder:
    laws = tuple(composition_law(RUNS[run], adjacency))
    kinds = ((MixtureShape(laws, level), 1),)
    return LineOrder(kinds, False) if level else CloserOrder(kinds, False)


def is_within(value: float, error: float, truth: Decimal) -> bool:
    return abs(Decimal(value) - truth) <= Decimal(error) + truth * Decimal("1e-19")


@pytest.mark.parametrize("run", ["loud", "few", "quiet"])
def test_laws_that_end_hold_the_truth(run: str) -> None:
    """Whatever level serves: what is lacking is a part of the error."""
    for epsilon in EPSILONS[run]:
        truth = Decimal(str(pe.reference.delta(RUNS[run], epsilon, adjacency="remove", digits=20)))
        for level in range(len(LEVELS)):
            value, error = order_of(run, "remove", level).profile(np.array([epsilon]))
            assert is_within(float(value[0]), float(error[0]), truth)


def test_laws_that_end_know_more_between_modes() -> None:
    """Where the whole law's line sums what cancels, one of its neighbours' does not."""
    gained = 0
    for run in RUNS:
        for adjacency in ("add", "remove"):
            order = order_of(run, adjacency)
            assert isinstance(order, CloserOrder)
            at = np.array(EPSILONS[run])
            value, error = order.profile(at)
            plain, wide = LineOrder.profile(order, at)
            assert (error <= wide).all()
            assert (np.abs(value - plain) <= error + wide).all()
            gained += int(((error < 0.1 * wide) & (wide > OPEN * plain)).sum())
    assert gained > 0


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_masses_of_laws_that_end_meet_those_of_the_whole(adjacency: str) -> None:
    for run, epsilons in EPSILONS.items():
        order, c = order_of(run, adjacency), np.array(epsilons)
        pairs = zip(order.masses(c), LineOrder.masses(order, c), strict=True)
        for (value, error), (plain, wide) in pairs:
            assert (error <= wide).all()
            assert (np.abs(value - plain) <= error + wide).all()
