"""Closed forms of one step and of plain Gaussians: bounds against ball arithmetic."""

from __future__ import annotations

import math
import re
from functools import partial

import numpy as np
import pytest
from thorough import ALL

pytest.importorskip("flint")

from campaign.find import argument_of, delta_at, truth_of
from campaign.judge import judge
from campaign.pose import pose
from campaign.steps import mechanism_of

import pyengine as pe


def test_epsilon_of_add_at_small_noise() -> None:
    # log(1.4), as there is no overlap: found by bisection up to a threshold of 41, far from it
    found = pe.epsilon(pe.dp_sgd(0.01, 0.5, 1), 0.3, adjacency="add", bounds=True)
    assert found.lower <= 0.336472236621213 <= found.upper
    assert found.upper - found.lower < 1e-14


@pytest.mark.parametrize("noise", [1e-4, 3e-3, 0.0121, 0.0123])
@pytest.mark.parametrize("replacement", [True, False])
def test_epsilon_of_add_without_overlap(noise: float, replacement: bool) -> None:
    # δ(ε) = 1 - e^ε (1 - p) where the laws do not overlap
    gaussian = pe.GaussianMechanism(noise)
    step = (
        gaussian.poisson_sampled(0.25)
        if replacement
        else gaussian.sampled_without_replacement(batch_size=1, dataset_size=4)
    )
    for delta in (1e-12, 1e-3, 0.1, 0.2499):
        found = pe.epsilon(step, delta, adjacency="add", bounds=True)
        truth = math.log((1.0 - delta) / 0.75)
        assert found.value == pytest.approx(truth, rel=1e-13, abs=1e-16)
        assert found.lower - 1e-15 <= truth <= found.upper + 1e-15


def test_delta_of_add_at_small_noise() -> None:
    mechanism = pe.dp_sgd(0.0029103083448841246, 0.00218207, 1)
    found = pe.delta(mechanism, 0.0, adjacency="add", bounds=True)
    assert found.lower <= 0.00218207 <= found.upper
    assert found.value == pytest.approx(0.00218207, rel=1e-15)


def test_random_questions() -> None:
    """A part of ``make campaign SEED=closed-forms-1``."""
    refused = 0
    for index in range(900 if ALL else 300):
        question = pose("closed-forms-test", index)
        argument, _ = argument_of(question)
        ask = getattr(pe, question["question"])
        mechanism, adjacency = mechanism_of(question["steps"]), question["adjacency"]
        try:
            bounds = ask(mechanism, argument, adjacency=adjacency, bounds=True)
        except pe.AccuracyError:
            refused += 1
            continue
        truth = truth_of(question, argument, None).value
        found = judge(question, argument, [list(bounds)], truth, partial(delta_at, question))
        assert found["outside"] is None, (index, mechanism, question, bounds)
        # the digits of an epsilon are those of its δ, which doubles next to the largest loss lack
        fine = found["wrong"] is None and found["error"] < 1e-12
        assert fine or question["question"] == "epsilon", (index, mechanism, question, bounds)
    assert refused <= 1  # β of both orders at 0.8915, 2e-15 next to where one of them is 0


def test_parameters_are_exact() -> None:
    # δ(0) = erf(μ/√8): a tenth and the double next to it differ by 5e-17, relative
    exact = pe.delta(pe.GaussianMechanism("1/3"), 0.0, bounds=True)
    assert exact.lower <= math.erf(3.0 / math.sqrt(8.0)) * (1.0 + 1e-15)
    third = pe.GaussianMechanism(1.0).sampled_without_replacement(batch_size=1, dataset_size=3)
    largest = pe.epsilon(third, 0.0, adjacency="add", bounds=True)
    assert largest.lower <= math.log(1.5) <= largest.upper
    assert largest.upper - largest.lower <= 3e-16


def test_ends() -> None:
    mechanism = pe.dp_sgd(1.0, 0.25, 1)
    assert pe.delta(mechanism, math.inf) == 0.0
    assert pe.delta(mechanism, 1.0, adjacency="add", bounds=True) == (0.0, 0.0, 0.0)
    assert pe.epsilon(mechanism, 1.0) == 0.0
    assert pe.epsilon(mechanism, 0.0) == math.inf
    assert pe.epsilon(mechanism, 0.0, adjacency="add") == pytest.approx(-math.log(0.75))
    for adjacency in ("add", "remove", "add_remove"):
        values = pe.gamma_bound(mechanism, np.array([0.0, 1.0]), adjacency=adjacency)
        assert values.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("noise", "steps", "got"),
    [
        (1e-200, 1, "1e-200"),
        (1e-122, 1, "1e-122"),
        (1e-119, 10**8, "1e-123"),
        (5e-324, 1, "4.94066e-324"),
        (1e122, 1, "1e+122"),
        (1.7e308, 1, "1.7e+308"),
    ],
)
def test_no_noise_out_of_reach_is_answered_wrongly(noise: float, steps: int, got: str) -> None:
    with pytest.raises(pe.AccuracyError, match=f"between .* got {re.escape(got)}"):
        pe.delta(pe.GaussianMechanism(noise).composed(steps), 1.0)


@pytest.mark.parametrize("noise", [1e-119, 1e119])
def test_noise_within_reach_is_answered(noise: float) -> None:
    value = pe.delta(pe.GaussianMechanism(noise), 0.0)
    assert value == pytest.approx(min(1.0, 1.0 / (noise * math.sqrt(2.0 * math.pi))), rel=1e-14)


def test_tolerance_is_the_width() -> None:
    mechanism = pe.dp_sgd(1e-4, 0.3, 1)
    with pytest.raises(pe.AccuracyError, match="tolerance="):
        pe.delta(mechanism, 1.0, tolerance=1e-17)
    bounds = pe.delta(mechanism, 1.0, tolerance=1e-9, bounds=True)
    assert bounds.upper - bounds.lower <= 1e-9 * bounds.value


def test_bounds_say_that_they_are_proven() -> None:
    for step in (pe.GaussianMechanism(1.0), pe.GaussianMechanism(1.0).poisson_sampled(0.1)):
        for name in ("trade_off", "gamma_bound", "delta", "epsilon"):
            _, engines, proven = pe.api.answers(name, step, [0.01, 0.2], adjacency="add_remove")
            assert set(engines) <= {"closed_form", "exact"}
            assert proven == [True] * 2
