"""Densities of users on the spectral engine: digits, and laws that are left to the lattice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats
from smooth_contour import densities

import pyengine as pe
from pyengine.api import answers
from pyengine.laws.density import density_law

DIGITS = 1e-11
STEPS = 50  # fewer may be left to the lattice, as their transforms fall slowly


def composed(p: Any, q: Any, steps: int) -> Any:
    return pe.from_distributions(p, q).composed(steps)


def asked() -> Iterator[tuple[Any, str, str, list[Any]]]:
    """Mechanisms of smooth densities with questions and their truths by another contour."""
    for index in range(14):
        run, truths = densities(np.random.default_rng([1, index]))
        for name, order in sorted({(one.name, one.adjacency) for one in truths}):
            members = [one for one in truths if (one.name, one.adjacency) == (name, order)]
            if run.steps >= STEPS:
                yield run, name, order, members


def test_values_have_eleven_digits() -> None:
    """Logistic, secant and normal densities, moved and stretched, 50 to 2,000 times."""
    count = 0
    for run, name, order, members in asked():
        x = [one.argument for one in members]
        found = getattr(pe, name)(run, x, adjacency=order)
        truth = np.array([float(one.truth) for one in members])
        assert (np.abs(found / truth - 1.0) <= DIGITS).all()
        assert (getattr(pe, name)(run, x, adjacency=order) == found).all()
        count += len(members)
    assert count >= 500


def test_bounds_are_the_lattice_s() -> None:
    """Its brackets hold the estimate; nothing says that they are closer than they are."""
    run = composed(stats.logistic(), stats.logistic(0.3), 200)
    value = pe.delta(run, 1.0, adjacency="add")
    found, engines, _ = answers("delta", run, [1.0], adjacency="add")
    assert engines == ["lattice"]
    assert found.lower[0] < value < found.upper[0]
    assert 1e-8 < (found.upper[0] - found.lower[0]) / value < 2e-4


@pytest.mark.parametrize(
    ("p", "q", "steps"),
    [
        (stats.laplace(), stats.laplace(0.0665), 30),  # two atoms, whose transform comes back
        (stats.laplace(), stats.laplace(0.4), 100),
        (stats.uniform(), stats.uniform(0.0, 1.25), 50),  # infinite losses
        (stats.norm(), stats.norm(0.3, 3.0), 50),  # a transform with next to no strip
    ],
)
def test_laws_that_the_lattice_answers(p: Any, q: Any, steps: int) -> None:
    run = composed(p, q, steps)
    for order in ("add", "remove"):
        found = pe.gamma_bound(run, 1e-3, adjacency=order, bounds="estimated")
        assert found.lower <= pe.gamma_bound(run, 1e-3, adjacency=order) <= found.upper
    engines = answers("delta", run, [0.1], adjacency="add", proven=False)[1]
    assert engines[0] in ("lattice", "exact")


def test_returns_of_a_transform_are_seen() -> None:
    """Two places with nearly all mass: cos(t c)^n falls soon, and comes back at t = π/c."""
    law = density_law(pe.from_distributions(stats.laplace(), stats.laplace(0.0665)))
    assert law.nodes(30) is None
    smooth = density_law(pe.from_distributions(stats.logistic(), stats.logistic(0.3)))
    nodes = smooth.nodes(300)
    assert nodes is not None
    assert (np.diff(nodes.loss) >= 0.0).all()
    assert abs(np.exp(nodes.log_weight).sum() - 1.0) < 1e-14
    assert abs(np.exp(nodes.log_weight + nodes.loss).sum() - 1.0) < 1e-14


@pytest.mark.parametrize("steps", [2, 12, 40])
def test_estimates_are_within_brackets_of_few_steps(steps: int) -> None:
    """Where the engine answers at all."""
    pairs = [
        (stats.norm(), stats.norm(0.5, 1.2)),
        (stats.skewnorm(2), stats.skewnorm(2, loc=0.4)),
        (stats.gumbel_r(), stats.gumbel_r(0.4)),
        (stats.logistic(), stats.logistic(3.0)),
    ]
    seen = 0
    for p, q in pairs:
        run = composed(p, q, steps)
        for x in (0.05, 0.5, 2.0):
            try:
                value = pe.delta(run, x, adjacency="add")
            except pe.AccuracyError:
                continue
            found = pe.delta(run, x, adjacency="add", method="lattice", bounds="estimated")
            assert found.lower * (1.0 - DIGITS) <= value <= found.upper * (1.0 + DIGITS)
            seen += 1
    assert seen >= 1
