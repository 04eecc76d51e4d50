"""Choices that are left out of a menu, against call functions of their own formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from adaptive_truth import Choice, profile
from thorough import ALL

import pyengine as pe
from pyengine.accounting.dominated import without_dominated
from pyengine.accounting.kernels import ORDERS, StepProfile
from pyengine.accounting.recursion import StatePlan


def kept(menu: list[Choice], order: Any, plan: StatePlan | None = None) -> list[int]:
    if plan is None:
        plan = pe.adaptive([choice.mechanism for choice in menu], 2).plan
    return without_dominated([StepProfile(choice.mechanism, order) for choice in menu], plan)[0]


def drawn(rng: np.random.Generator) -> list[Choice]:
    kinds = rng.choice(["sampled gaussian", "laplace", "response"], int(rng.integers(2, 9)))
    menu = []
    for kind in kinds:
        rate = math.exp(rng.uniform(math.log(1e-3), math.log(0.3)))
        noise = rng.uniform(0.52, 0.9) if kind == "response" else rng.uniform(0.6, 4.0)
        menu.append(Choice(str(kind), noise, rate))
    return menu


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_left_out_is_never_best(order: Any) -> None:
    """E W(rR) of random convex W is not larger than that of a choice that is left."""
    rng = np.random.default_rng(7)
    gone = 0
    for _ in range(60 if ALL else 15):
        menu = drawn(rng)
        left = kept(menu, order)
        assert left
        places = [choice for choice in range(len(menu)) if choice not in left]
        gone += len(places)
        for _ in range(300):
            x = rng.choice([0.003, 0.03, 0.3, 3.0]) * rng.normal(size=int(rng.integers(1, 6)))
            weights = rng.exponential(size=x.size) ** 3 * np.exp(-x)
            worth = np.array([profile(choice, x, order) @ weights for choice in menu])
            assert worth[places].max(initial=0.0) <= worth[left].max() * (1.0 + 1e-9) + 1e-300
    assert gone > (90 if ALL else 20)


@pytest.mark.parametrize("order", ORDERS)
def test_means_of_the_ends_of_a_menu(order: Any) -> None:
    """Rates that grow as a power of the noise: one above 1 leaves both ends, one below it all."""
    noises = np.geomspace(1.0, 2.5, 6)
    for power, left in ((1.5, [0, 5]), (0.8, list(range(6)))):
        menu = [Choice("sampled gaussian", float(s), float(0.01 * s**power)) for s in noises]
        assert kept(menu, order) == left
        # states of their own, where all may be better than what the others lead to
        apart = StatePlan(
            ((), *(((i, 0),) for i in range(6)), tuple((i, 1 + i) for i in range(6))), 2
        )
        assert kept(menu, order, apart) == list(range(6))


def test_a_menu_without_them_has_the_same_bounds() -> None:
    """And the strategy names its choices as the menu does."""
    noises = np.geomspace(1.0, 2.5, 4)
    menu = [pe.GaussianMechanism(s).poisson_sampled(0.01 * s**1.5) for s in noises.tolist()]
    whole, ends = pe.adaptive(menu, 12), pe.adaptive([menu[0], menu[3]], 12)
    found, same = (
        pe.delta(run, 0.3, adjacency="remove", bounds=True, tolerance=1e-4) for run in (whole, ends)
    )
    assert (found.lower, found.value, found.upper) == (same.lower, same.value, same.upper)
    best = {choice for *_, choice in whole.strategy(0.3).intervals()}
    assert {3} <= best <= {-1, 0, 3}


def test_choices_that_release_nothing_or_everything() -> None:
    """Exact steps by corners, steps beside Gaussian ones by tables; beside filters, too."""
    nothing = pe.FinitePair(["1/2", "1/2"], ["1/2", "1/2"])
    everything = pe.FinitePair([1, 0], [0, 1])
    loud, quiet = pe.GaussianMechanism(3.0), pe.GaussianMechanism(6.0)
    assert pe.delta(pe.adaptive([nothing, everything], 2), 0.3) == 1.0
    assert pe.gamma_bound(pe.adaptive([everything, nothing], 2), 0.25) == 1.0
    alone = pe.delta(loud.composed(3), 0.3, adjacency="remove")
    for menu in ([nothing, loud], [loud, nothing, quiet], [nothing, nothing, loud]):
        found = pe.delta(pe.adaptive(menu, 3), 0.3, adjacency="remove", bounds=True)
        assert found.lower <= alone <= found.upper <= alone * (1.0 + 1e-5)
    unsampled = loud.poisson_sampled(0)
    for menu in ([unsampled], [unsampled, nothing]):
        assert pe.delta(pe.adaptive(menu, 3, budget=2, costs=[1] * len(menu)), 0.3) <= 1e-12
    odometer = pe.Odometer([nothing, loud])
    assert all(odometer.spend(choice) for choice in (0, 1, 0))
    spent = pe.delta(odometer.run, 0.3, adjacency="remove")
    assert pe.delta(loud, 0.3, adjacency="remove") <= spent <= alone * (1.0 + 1e-5)
