"""ε of composed laws by few profiles, between bounds that the profiles themselves confirm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine.engines.exact.threshold import ThresholdQuestions

RUNS = {
    "laplace": pe.LaplaceMechanism(4.0).composed(50),
    "response": pe.RandomizedResponse(0.7).composed(30),
    "mixture": pe.GaussianMixtureMechanism(1.0, [0, 1, 3], ["0.7", "0.2", "0.1"]),
    "generic": pe.GenericMechanism(1.0, 1e-9).composed(20),
    "nearly nothing": pe.GaussianMechanism(1e6).poisson_sampled(1e-6),
}
DELTAS = [1e-250, 1e-60, 1e-12, 1e-7, 1e-3, 0.1]


BOUNDED = ("laplace", "response", "generic")  # losses, of which profiles are exact sums


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the arrays of ε at which profiles are asked for."""
    sizes: list[int] = []
    profile = ThresholdQuestions._profile

    def counted(self: ThresholdQuestions, epsilon: Any) -> Any:
        sizes.append(epsilon.size)
        return profile(self, epsilon)

    monkeypatch.setattr(ThresholdQuestions, "_profile", counted)
    return sizes


@pytest.mark.parametrize("name", RUNS)
def test_few_profiles_are_asked(name: str, asked: list[int]) -> None:
    method = "exact" if name in BOUNDED else "lattice"
    for delta in DELTAS[2:]:
        asked.clear()
        pe.epsilon(RUNS[name], delta, adjacency="add", method=method, bounds=True)
        assert 1 <= len(asked) <= 24  # halving takes 58 and more


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("delta", DELTAS)
def test_next_to_the_largest_loss_no_more_are_asked(
    name: str, delta: float, asked: list[int]
) -> None:
    pe.epsilon(RUNS[name], delta, adjacency="add", method="exact", bounds=True)
    assert len(asked) <= 24  # as many as δ has zeros, and more, where brackets are halved


@pytest.mark.parametrize("steps", [1, 3, 10, 400])
def test_orders_that_are_one_law_are_asked_once(steps: int, asked: list[int]) -> None:
    mechanism = pe.LaplaceMechanism(3.0).composed(steps)
    of_both, counts = {}, {}
    for adjacency in ("add", "add_remove"):
        asked.clear()
        words = {"adjacency": adjacency, "method": "exact", "bounds": True}
        of_both[adjacency] = [
            pe.epsilon(mechanism, 1e-6, **words),
            pe.delta(mechanism, 0.5, **words),
            pe.gamma_bound(mechanism, 0.1, **words),
        ]
        counts[adjacency] = len(asked)
    assert of_both["add"] == of_both["add_remove"]
    assert counts["add"] == counts["add_remove"]


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_profiles_confirm_the_bounds(name: str, adjacency: str) -> None:
    run, words = RUNS[name], {"adjacency": adjacency, "bounds": True}
    lower, value, upper = pe.epsilon(run, DELTAS, **words)
    assert np.all((lower <= value) & (value <= upper))
    for low, high, delta in zip(lower, upper, DELTAS, strict=True):
        if low > 0.0:  # as close to the change as doubles show
            assert pe.delta(run, low * (1.0 - 1e-14), **words).upper >= delta
        if high < np.inf:
            assert pe.delta(run, high * (1.0 + 1e-14), **words).lower <= delta


def test_losses_below_the_doubles_are_bounded_safely() -> None:
    run = pe.GaussianMechanism(1e290).poisson_sampled(1e-9)
    with np.errstate(all="ignore"):
        lower, value, upper = pe.epsilon(run, [0.3, 1e-5], method="exact", bounds=True)
    assert np.all(lower <= 0.0)
    assert np.all(upper >= 0.0)
    assert np.all((lower <= value) & (value <= upper))


def test_losses_beyond_the_doubles_are_refused() -> None:
    run = pe.GaussianMixtureMechanism(1e-160, [0, 1], ["0.5", "0.5"])
    with pytest.raises(pe.AccuracyError, match="leaves the range of doubles"):
        pe.epsilon(run, 1e-5, method="exact", bounds=True)
