"""Rough proven bounds on profiles of Laplace steps, and what they save."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from laplace_checks import laplace
from nested_steps import NestedLaw, log_mean

import pyengine as pe
from pyengine.caches import clear_cache
from pyengine.engines.vertical_lines import deformation
from pyengine.engines.vertical_lines.chords import chord_bound
from pyengine.engines.vertical_lines.deformation import DeformedOrder
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape
from pyengine.engines.vertical_lines.order import LineOrder

STEPS = [("0.3", "0.001"), ("0.5", "0.000001"), ("1", "0.1"), ("1", "1"), ("10", "0.01")]


@pytest.mark.parametrize(("noise", "p"), STEPS)
@pytest.mark.parametrize("part", [-30.0, -3.0, -0.1, 0.1, 3.0, 30.0, math.nan])
def test_bounds_of_means_lie_above(noise: str, p: str, part: float) -> None:
    """Tilts in lengths of the losses, beyond both poles, and between them; next to the truth."""
    shape = LaplaceShape(1 / Fraction(noise), Fraction(p))
    tilt = (1.0 if part > 0.0 else 0.0) + part / float(shape.length)
    tilt = 0.375 if math.isnan(tilt) else tilt
    with mpmath.workdps(25):
        truth = log_mean(NestedLaw(float(noise), float(p)), tilt)
        above = float(mpmath.mpf(shape.log_mean_bound(tilt)) - truth)
    assert 0.0 <= above <= 1e-8


def test_tilts_on_the_wrong_side_say_nothing() -> None:
    kinds = ((LaplaceShape(Fraction(1), Fraction(1, 10)), 10),)
    far = ((LaplaceShape(Fraction(1000), Fraction(1, 10)), 10),)
    assert chord_bound(kinds, 0.0, 0.1, exchanged=False) == math.inf
    assert chord_bound(kinds, 1.0, 0.1, exchanged=True) == math.inf
    assert chord_bound(far, -1.0, 0.1, exchanged=False) == math.inf


@pytest.mark.parametrize(("noise", "p"), STEPS)
@pytest.mark.parametrize("steps", [3, 30, 300])
@pytest.mark.parametrize("exchanged", [False, True])
def test_rough_profiles_lie_above(noise: str, p: str, steps: int, exchanged: bool) -> None:
    """By a factor of 100 at most where profiles are of interest, with the tilts of lines."""
    shape = LaplaceShape(1 / Fraction(noise), Fraction(p))
    kinds = ((shape, steps),)
    adjacency = "remove" if exchanged else "add"
    mechanism: Any = laplace(float(noise), None if p == "1" else float(p), steps)
    most = float(shape.length) * steps
    orders: list[Any] = [LineOrder(kinds, exchanged), DeformedOrder(kinds, exchanged)]
    for epsilon in most * np.array([1e-3, 0.03, 0.1, 0.4]):
        found = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
        bounds = [order.profile_most(float(epsilon)) for order in orders]
        assert min(bounds) >= found.lower
        assert bounds[0] <= 100.0 * found.upper or not 1e-200 < found.upper < 1e-3


@pytest.mark.parametrize(("noise", "p"), STEPS)
@pytest.mark.parametrize("steps", [3, 30, 300, 3000])
@pytest.mark.parametrize("exchanged", [False, True])
def test_profiles_of_chords_lie_above_and_close(
    noise: str, p: str, steps: int, exchanged: bool
) -> None:
    shape = LaplaceShape(1 / Fraction(noise), Fraction(p))
    adjacency = "remove" if exchanged else "add"
    mechanism: Any = laplace(float(noise), None if p == "1" else float(p), steps)
    law = LineOrder(((shape, steps),), exchanged)
    for delta in (1e-3, 1e-6, 1e-9):
        epsilon = pe.epsilon(mechanism, delta, adjacency=adjacency)
        found = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
        bound = law.profile_most(epsilon)
        assert bound >= found.lower
        # next to the largest loss tilts are rough, and mostly all steps have it
        near = epsilon > 0.9 * steps * float(shape.ends[1] if exchanged else -shape.ends[0])
        assert near or epsilon == 0.0 or bound <= (1.2 if steps <= 30 else 3.0) * found.upper


def test_chords_of_several_kinds_lie_above_and_close() -> None:
    """The lattice of one is none of the other, whose last cell it cuts."""
    parts = (("1", "0.1", 7), ("2", "0.2", 5), ("0.7", "1", 1))
    kinds = tuple((LaplaceShape(1 / Fraction(x), Fraction(p)), n) for x, p, n in parts)
    mechanism: Any = None
    for noise, p, steps in parts:
        part = laplace(float(noise), None if p == "1" else float(p), steps)
        mechanism = part if mechanism is None else mechanism + part
    for exchanged, adjacency in ((False, "add"), (True, "remove")):
        for tilt in (-4.0, -1.0) if not exchanged else (2.0, 5.0):
            for epsilon in (0.01, 1.0, 2.0):
                found = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
                bound = chord_bound(kinds, tilt, epsilon, exchanged=exchanged)
                assert found.lower <= bound <= 1.3 * found.upper  # tilts are not the best ones


@pytest.mark.parametrize("part", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_bounded_ranges_have_no_chords_of_laplace_noise(part: float, adjacency: str) -> None:
    """Whose bound on δ(0) was too small, so that ε was said to be 0."""
    mechanism = pe.ExponentialMechanism(1).composed(2)
    mechanism = mechanism + pe.LaplaceMechanism(1).poisson_sampled(0.1).composed(3)
    delta = part * pe.delta(mechanism, 0.0, adjacency=adjacency, bounds=True).lower
    found = pe.epsilon(mechanism, delta, adjacency=adjacency, bounds=True)
    assert found.lower > 0.0
    below = pe.delta(mechanism, found.lower, adjacency=adjacency, bounds=True, method="lattice")
    assert below.upper >= delta


def test_more_points_than_are_worth_it_say_nothing() -> None:
    kinds = ((LaplaceShape(Fraction(1), Fraction(1, 10)), 10**6),)
    assert chord_bound(kinds, -1.0, 0.1, exchanged=False) == math.inf


@pytest.mark.parametrize(
    ("noise", "p", "steps"),
    [(3.0, 0.01, 100), (10.0, 0.01, 10), (10.0, 0.01, 100), (100.0, None, 1000), (0.5, 1e-6, 10)],
)
def test_one_line_answers_for_epsilon_of_both_orders(
    monkeypatch: pytest.MonkeyPatch, noise: float, p: float | None, steps: int
) -> None:
    """What is asked of the other order, at no ε or beside another tilt, takes no second line."""
    made: list[str] = []
    line = deformation.DeformedLine

    def counted_line(*given: Any) -> Any:
        made.append("line")
        return line(*given)

    monkeypatch.setattr(deformation, "DeformedLine", counted_line)
    clear_cache()
    pe.epsilon(laplace(noise, p, steps), 1e-6, bounds=True)
    assert len(made) == 1


@pytest.mark.parametrize(("noise", "p"), STEPS)
def test_both_orders_are_the_larger_one(noise: str, p: str) -> None:
    """Of few questions, where a rough bound may tell, as of many."""
    mechanism = laplace(float(noise), None if p == "1" else float(p), 40)
    most = pe.epsilon(mechanism, 1e-8)
    epsilon = most * np.linspace(0.0, 1.2, 20)
    alone = np.array(
        [pe.delta(mechanism, epsilon, adjacency=name) for name in ("add", "remove")]
    ).max(axis=0)
    many = pe.delta(mechanism, epsilon)
    few = np.array([pe.delta(mechanism, float(x)) for x in epsilon])
    for found in (many, few):
        assert np.abs(found - alone).max() <= 1e-8 * alone.max()
        inner = alone > 1e-300
        assert np.abs(found / np.where(inner, alone, 1.0) - 1.0)[inner].max() <= 1e-8
