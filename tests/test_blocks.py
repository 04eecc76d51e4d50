"""Epochs with several random steps of each record: bounds by blocks, and samples of the epoch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from thorough import some

import pyengine as pe
from pyengine import reference
from pyengine.cli.main import main
from pyengine.engines import shifted_samples
from pyengine.engines.shifted_samples import ShiftedSampleQuestions

QUESTIONS = (
    (pe.delta, 0.3),
    (pe.delta, 1.0),
    (pe.epsilon, 1e-2),
    (pe.gamma_bound, 0.02),
    (pe.gamma_bound, 0.4),
)


def two_of_three(noise: float, epsilon: float, adjacency: str) -> float:
    """δ(ε) of an epoch with each record in two of three steps, over a plane of two normals.

    e^L = c (y₁y₂ + y₃(y₁ + y₂))/3 with normal log yᵢ; the integral over y₃ is in closed form.
    """
    mu = 1.0 / noise
    x = np.linspace(-9.0, 9.0, 1001)
    phi = np.exp(-0.5 * x * x) * (x[1] - x[0]) / math.sqrt(2.0 * math.pi)
    y = np.exp(mu * x - 0.5 * mu * mu)
    product, total = np.multiply.outer(y, y), np.add.outer(y, y)
    k = math.exp(epsilon if adjacency == "remove" else -epsilon)
    edge = (3.0 * k - product) / total  # of y₃
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(edge > 0.0, np.log(np.maximum(edge, 1e-300)) / mu + 0.5 * mu, -np.inf)
    if adjacency == "remove":  # E (e^L - e^ε)+
        inner = (product / 3.0 - k) * ndtr(-z) + total / 3.0 * ndtr(mu - z)
        return float(phi @ inner @ phi)
    inner = (k - product / 3.0) * ndtr(z) - total / 3.0 * ndtr(z - mu)  # E (e^-ε - e^L)+
    return float(phi @ inner @ phi) / k


@pytest.mark.parametrize("adjacency", ["add", "remove"])
@pytest.mark.parametrize("noise", some([0.7, 1.5, 4.0], 2))
def test_bounds_hold_for_two_of_three_steps(
    noise: float, adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shifted_samples, "WORK", 1e6)
    run = pe.GaussianMechanism(noise).randomly_allocated(3, selected=2)
    for epsilon in (0.0, 0.2, 1.0):
        truth = two_of_three(noise, epsilon, adjacency)
        lower, value, upper = pe.delta(run, epsilon, adjacency=adjacency, bounds="estimated")
        assert lower <= truth <= value * (1.0 + 1e-10) <= upper * (1.0 + 2e-10)
        assert value < 1.6 * truth or truth < 1e-3
        sampled = pe.delta(
            run, epsilon, adjacency=adjacency, bounds="estimated", method="monte_carlo"
        )
        assert sampled.lower <= truth <= sampled.upper


def test_blocks_are_as_long_as_steps_allow() -> None:
    noise = pe.GaussianMechanism(2.0)
    epoch = noise.randomly_allocated(11, selected=3)
    assert isinstance(epoch, pe.RandomlyAllocated)
    longer, shorter = noise.randomly_allocated(4), noise.randomly_allocated(3)
    assert epoch.blocks() == pe.compose(longer.composed(2), shorter)
    for question, x in QUESTIONS:
        assert question(epoch.composed(2), x) == question(epoch.blocks().composed(2), x)
    for question, x in QUESTIONS:
        lower, value, upper = question(epoch, x, bounds="estimated")
        assert 0.0 < lower < value <= upper


def test_every_step_is_the_plain_mechanism() -> None:
    epoch = pe.GaussianMechanism(2.0).randomly_allocated(5, selected=5)
    plain = pe.GaussianMechanism(2.0).composed(5)
    for question, x in QUESTIONS:
        lower, value, upper = question(epoch, x, bounds="estimated")
        assert value == question(plain, x)
        assert upper - lower < 1e-12 * value


def test_the_answer_says_that_it_is_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--noise 2 --steps-per-epoch 30 --selected 3 --epochs 2 --epsilon 1"
    assert main(["delta", *flags.split(), "--bounds", "estimated"]) == 0
    printed = capsys.readouterr().out
    assert "2 epochs of 30 batches, each record in 3 of them" in printed
    assert "blocks" in printed.splitlines()[-1]
    run = pe.dp_sgd_allocated("2", 30, 2, selected=3)
    assert f"{pe.delta(run, 1.0):.6g}"[:7] in printed
    assert pe.from_json(pe.to_json(run)) == run


def test_what_answers_and_what_does_not() -> None:
    epoch = pe.GaussianMechanism(1.0).randomly_allocated(20, selected=2)
    with pytest.raises(pe.AccuracyError, match="only bounds are known"):
        reference.delta(epoch, "0.5")
    with pytest.raises(pe.NotDefinedError, match="substitute"):
        pe.delta(epoch, 0.5, adjacency="substitute")
    for run in (epoch, epoch + pe.LaplaceMechanism(1.0)):
        sure, quick = (pe.delta(run, 0.5, bounds=kind) for kind in (True, "estimated"))
        assert 0.0 < sure.lower <= quick.lower < quick.value <= sure.upper
        assert sure.upper <= quick.value * (1.0 + 1e-3)
    with pytest.raises(pe.NotDefinedError, match="beside plain Gaussian steps"):
        pe.delta(epoch + pe.dp_sgd(1.0, 0.1, 2), 0.5, method="monte_carlo")
    with pytest.raises(pe.AccuracyError, match="selected > 1"):
        pe.delta(pe.GaussianMechanism(1.0), 0.5, method="blocks")
    proven = pe.delta(epoch, 0.5, adjacency="remove", method="reference", bounds=True)
    assert proven.upper == pytest.approx(pe.delta(epoch, 0.5, adjacency="remove"), rel=1e-12)
    assert pe.delta(epoch + pe.dp_sgd(1.0, 0.1, 2), 0.5) > proven.value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda noise: noise.randomly_allocated(3, selected=4), "selected must be at most"),
        (lambda noise: noise.randomly_allocated(1, selected=2), "selected must be at most"),
        (lambda noise: noise.randomly_allocated(3, 0), "selected must be an integer >= 1"),
        (lambda noise: noise.randomly_allocated(3, 1.5), "selected must be an integer"),
        (lambda _: pe.dp_sgd_allocated(1.0, 2, 1, selected=3), "selected must be at most"),
        (lambda _: pe.RandomlyAllocated(pe.GaussianMechanism(1), 2, 3), "selected must be at most"),
    ],
)
def test_wrong_input(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(pe.GaussianMechanism(1.0))


def test_intervals_hold_where_the_truth_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs with one step of each record, in both orders and with plain steps beside them."""
    monkeypatch.setattr(shifted_samples, "WORK", 1e6)
    rng = np.random.default_rng(17)
    for adjacency in ("add", "remove", "add_remove"):
        epoch = pe.GaussianMechanism(float(rng.uniform(0.6, 4.0))).randomly_allocated(
            int(rng.integers(2, 30))
        )
        run = epoch.composed(int(rng.integers(1, 4))) + pe.GaussianMechanism(9.0).composed(3)
        asked = ShiftedSampleQuestions(run, adjacency)
        epsilon = np.array([float(rng.uniform(0.0, 1.0))])
        delta = pe.delta(run, epsilon, adjacency=adjacency)
        alpha = np.array([float(10.0 ** -rng.uniform(0.1, 3.0))])
        gamma = pe.gamma_bound(run, alpha, adjacency=adjacency)
        for found, truth in (
            (asked.profile(epsilon), delta),
            (asked.epsilon(delta), epsilon),
            (asked.trade_off(alpha)[1], gamma),
        ):
            assert found.lower <= truth <= found.upper
            assert found.lower <= found.value <= found.upper
            assert not found.certified.any()


def test_moved_samples_reach_far_tails() -> None:
    """Samples as they come never see a δ of 1e-7 at this size; moved ones know its size."""
    epoch = pe.GaussianMechanism(2.0).randomly_allocated(5)
    truth = pe.delta(epoch, 2.0, adjacency="remove")
    assert truth < 1e-7
    found = pe.delta(epoch, 2.0, adjacency="remove", method="monte_carlo", bounds="estimated")
    assert found.lower <= truth <= found.upper < 1e-5
    assert found.value == pytest.approx(truth, rel=0.2)


@pytest.mark.parametrize(
    ("question", "x"), [(pe.delta, 30.668731266225752), (pe.gamma_bound, 1e-4), (pe.epsilon, 1e-3)]
)
def test_no_value_without_a_digit(question: Any, x: float) -> None:
    """Samples moved too far see weights of 1e-307 where the truth is about 1e-8."""
    run = pe.dp_sgd_allocated(0.6937009850264324, 19, 8, selected=3)
    with pytest.raises(pe.AccuracyError, match="no digit of it is known; method='auto' bounds it"):
        question(run, x, adjacency="remove", method="monte_carlo")


def test_a_value_without_a_digit_beside_a_known_larger_one_does_no_harm() -> None:
    epoch = pe.GaussianMechanism(1.0).randomly_allocated(12, selected=2)
    with pytest.raises(pe.AccuracyError, match="no digit"):
        pe.delta(epoch, 10.0, adjacency="add", method="monte_carlo")
    both = pe.delta(epoch, 10.0, method="monte_carlo")
    assert both == pe.delta(epoch, 10.0, adjacency="remove", method="monte_carlo") > 1e-22
