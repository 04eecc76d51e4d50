"""Losses next to the ends of the doubles: answers that hold, or a refusal that says why."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pyengine as pe

# A step whose two losses are ±ε is told from its opposite but for e^-ε, which is below all doubles.
LOUD = [1e17, 6e18, 1e19, 2e19, 1e100, 1e300]


@pytest.mark.parametrize("steps", [1, 2, 3, 1000])
@pytest.mark.parametrize("loss", LOUD)
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_steps_that_show_the_record_for_certain(loss: float, steps: int, method: str) -> None:
    """Logs of masses that no integer counts wrapped round, and made such steps tell nothing."""
    run = pe.GenericMechanism(loss).composed(steps)
    for kappa in (1e-5, 0.3, 1.0 - 1e-9):
        beta = pe.trade_off(run, kappa, method=method, bounds=True)
        assert beta.lower == 0.0
        assert 0.0 <= beta.value <= beta.upper < 1e-300
        gamma = pe.gamma_bound(run, kappa, method=method, bounds=True)
        assert gamma.lower <= gamma.value <= gamma.upper == 1.0
        assert gamma.value == pytest.approx(1.0, abs=1e-15)
    for epsilon in (0.0, 1.0, 0.5 * loss):
        delta = pe.delta(run, epsilon, method=method, bounds=True)
        assert delta.lower <= delta.value <= delta.upper == 1.0
        assert delta.value == pytest.approx(1.0, abs=1e-9)
    whole = pe.epsilon(run, 0.0, method=method, bounds=True)
    assert whole.lower <= steps * loss * (1.0 + 1e-15)
    assert whole.upper >= steps * loss * (1.0 - 1e-15)


RUNS = {
    "faint noise": pe.LaplaceMechanism(1e300),
    "faint noise, 10 steps": pe.LaplaceMechanism(1e300).composed(10),
    "faint noise on samples": pe.LaplaceMechanism(1e300).poisson_sampled(0.1).composed(10),
    "faint noise in batches": pe.LaplaceMechanism(1e300)
    .sampled_without_replacement(batch_size=3, dataset_size=10)
    .composed(3),
    "two kinds of faint noise": pe.GaussianMechanism(1e290) + pe.LaplaceMechanism(1e290),
    "faint choices": pe.ExponentialMechanism(1e-308).composed(10),
    "next to no noise": pe.LaplaceMechanism(1e-300).composed(3),
    "less than normal doubles": pe.LaplaceMechanism(1e-308).composed(2),
    "less noise than doubles": pe.LaplaceMechanism("1e-310"),
    "next to no noise on samples": pe.LaplaceMechanism(1e-300).poisson_sampled(0.1).composed(10),
    "next to no samples": pe.LaplaceMechanism(1e-5).poisson_sampled(1e-300).composed(10),
    "losses that overflow": pe.GenericMechanism(1e308).composed(10),
    "a loss next to the largest": pe.GenericMechanism(1e308),
    "the same on samples": pe.GenericMechanism(1e308).poisson_sampled(0.5).composed(10),
    "the same beside noise": pe.GenericMechanism(1e308).composed(10)
    + pe.LaplaceMechanism(1.0).composed(3),
}
QUESTIONS = [
    *(("trade_off", x) for x in (0.3, 1.0 - 1e-9)),
    ("gamma_bound", 1e-5),
    *(("delta", x) for x in (0.0, 0.5, 1e300)),
    *(("epsilon", x) for x in (1e-5, 0.0, 1e-300)),
]


@pytest.mark.parametrize("method", ["auto", "lattice", "exact"])
@pytest.mark.parametrize("name", RUNS)
def test_answers_or_refusals(name: str, method: str) -> None:
    """No number that is none, no bounds out of order, no warning and no error from inside."""
    answered = 0
    for adjacency in ("add", "remove", "add_remove", "substitute"):
        for question, x in QUESTIONS:
            ask = getattr(pe, question)
            try:
                found = ask(RUNS[name], x, adjacency=adjacency, method=method, bounds=True)
            except (pe.AccuracyError, pe.NotDefinedError):
                continue
            answered += 1
            assert found.lower <= found.value <= found.upper
            if "faint" in name:
                _assert_nothing_told(question, x, found)
    assert (answered > 0) == (name not in REFUSED) or method != "auto"


# What auto cannot answer at all: sums of losses beyond 2^1022, and lattices of squares that are no
# doubles.
REFUSED = {
    "two kinds of faint noise",
    "less than normal doubles",
    "less noise than doubles",
    "losses that overflow",
    "a loss next to the largest",
    "the same on samples",
    "the same beside noise",
}


def _assert_nothing_told(question: str, x: float, found: pe.Bounds) -> None:
    """Losses below 1e-289 in all move nothing by as much as 1e-289."""
    truth = {"trade_off": 1.0 - x, "gamma_bound": x, "delta": 0.0, "epsilon": 0.0}[question]
    assert found.lower <= math.nextafter(truth + 1e-289, math.inf)
    assert found.upper >= math.nextafter(truth - 1e-289, -math.inf)


def test_losses_that_overflow_are_refused() -> None:
    run = pe.GenericMechanism(1e308, 1e-9).composed(10)
    with pytest.raises(pe.AccuracyError, match="losses add up to more than any double"):
        pe.epsilon(run, np.array([0.3, 1e-5]), method="exact")


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
@pytest.mark.parametrize(
    "run",
    [
        pe.LaplaceMechanism(2.0).poisson_sampled(0).composed(5),
        pe.RandomizedResponse("3/4").poisson_sampled(0).composed(5),
        pe.GenericMechanism(0).composed(7),
        pe.LaplaceMechanism(2.0).poisson_sampled(0)
        + pe.RandomizedResponse("3/4").poisson_sampled(0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_steps_that_tell_nothing(run: pe.Mechanism, adjacency: str, method: str) -> None:
    """No rounding of masses below the normal doubles where there are none."""
    for epsilon in (0.0, 1e-300, 1.0):
        found = pe.delta(run, epsilon, adjacency=adjacency, method=method, bounds=True)
        assert found == (0.0, 0.0, 0.0)
    assert pe.epsilon(run, 0.0, adjacency=adjacency, method=method, bounds=True) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (pe.dp_sgd(1e9, 0.1, 10**18), "no window for it"),  # was: math domain error
        (pe.dp_sgd(1e-300, 0.01, 1000), "nothing to resolve$"),  # advised what refuses as well
    ],
)
def test_what_no_lattice_holds_is_refused_in_words(run: pe.Mechanism, words: str) -> None:
    with pytest.raises(pe.AccuracyError, match=words):
        pe.delta(run, 3.0) if "window" in words else pe.epsilon(run, 1e-5)


def faint(noise: float) -> pe.Mechanism:
    return pe.GaussianMixtureMechanism(noise, [0, 1], ["1/2", "1/2"])


# Each ended in an error of its own from inside, in a number that is none, or took gigabytes.
FAR = {
    "1e30 steps": (pe.dp_sgd(1, 0.1, 10**30), "epsilon", 0.01),
    "1e200 steps": (pe.dp_sgd(100, 0.001, 10**200), "epsilon", 0.01),
    "1e308 steps": (pe.dp_sgd(1, 0.1, 10**308), "epsilon", 0.01),
    "1e200 faint steps": (pe.dp_sgd(1e100, 0.1, 10**200), "delta", 1.0),
    "1e308 loud steps": (pe.dp_sgd(0.01, 0.1, 10**308), "trade_off", 0.01),
    "noise beyond squares": (pe.dp_sgd(1e154, 0.1, 10**12), "delta", 1.0),
    "all releases fail": (pe.GenericMechanism(8e-10, 0.01).composed(6652161047), "epsilon", 1e-300),
    "no finite losses": (
        pe.GaussianMechanism(0.004).composed(5613) + pe.LaplaceMechanism(2e-150).composed(10**31),
        "delta",
        1e307,
    ),
    "a middle without end": (faint(8e-50).composed(7), "trade_off", 1e-300),
    "a variance beyond doubles": (
        pe.GaussianMechanism(1e-299).composed(9023)
        + pe.DiscreteLaplaceMechanism(5.8e300).composed(10**210),
        "epsilon",
        1e-300,
    ),
    "tilts beyond doubles": (
        pe.LaplaceMechanism(1e-3).poisson_sampled(1e-100).composed(8223721603681273),
        "epsilon",
        0.01,
    ),
    "two kinds that are far apart": (
        faint(3e300).composed(4)
        + pe.DiscreteLaplaceMechanism(7e-150).poisson_sampled(1e-5).composed(68),
        "delta",
        1.0,
    ),
    "a tail of nothing": (
        pe.LaplaceMechanism(2e-50).poisson_sampled(0.9999999999999999).composed(5230),
        "epsilon",
        1e-300,
    ),
    "masses rounded beyond doubles": (
        pe.DiscreteLaplaceMechanism(4e300).composed(10**20),
        "gamma_bound",
        0.01,
    ),
    "a window turned round": (
        pe.DiscreteGaussianMechanism(8.058296946833325).composed(116830767508344651776),
        "epsilon",
        1e-300,
    ),
}


@pytest.mark.parametrize("adjacency", ["add", "remove", "substitute"])
@pytest.mark.parametrize("name", FAR)
def test_runs_far_beyond_all_others(name: str, adjacency: str) -> None:
    run, question, x = FAR[name]
    try:
        found = getattr(pe, question)(run, x, adjacency=adjacency, bounds=True)
    except pe.AccuracyError:
        return
    assert found.lower <= found.value <= found.upper


@pytest.mark.parametrize(
    "others",
    [
        pe.LaplaceMechanism(0.5).composed(3),
        pe.LaplaceMechanism(2.0).poisson_sampled(0.1).composed(4),
        pe.dp_sgd(1.0, 0.01, 10),
        pe.GaussianMechanism(3.0).composed(4),
        pe.ExponentialMechanism(0.5).composed(3),
        pe.RandomizedResponse(0.7).composed(2),
    ],
    ids=str,
)
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_masses_below_all_doubles_are_not_nothing(others: pe.Mechanism, adjacency: str) -> None:
    """Losses of discrete Gaussian noise have no end: δ is positive at every ε, and was proven 0."""
    run = pe.DiscreteGaussianMechanism(2).composed(2) + others
    assert pe.epsilon(run, 0.0, adjacency=adjacency) == math.inf
    for epsilon in (105.76, 300.0, 1e4):
        found = pe.delta(run, epsilon, adjacency=adjacency, bounds=True)
        assert 0.0 < found.upper < 1e-100
        assert pe.delta(run, [epsilon], adjacency=adjacency, bounds=True).upper[0] > 0.0


def test_beyond_all_losses_there_is_nothing() -> None:
    run = pe.RandomizedResponse(0.7).composed(2) + pe.LaplaceMechanism(0.5).composed(3)
    end = pe.epsilon(run, 0.0, bounds=True)
    assert pe.delta(run, 1.0001 * end.upper, bounds=True).upper == 0.0
