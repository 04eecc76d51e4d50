"""The best of a random number of runs, against sums over all runs of finite mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import thorough
from mpmath import mp
from outcomes import hockey_stick

import pyengine as pe
from pyengine import duality
from pyengine.numerics.selection import stopping_of

FloatArray = npt.NDArray[np.float64]
SEEDS = thorough.some(range(320), 80)


def generating(runs: str, **numbers: Any) -> Callable[[FloatArray], FloatArray]:
    """Generating function of the number of runs."""
    if runs == "poisson":
        return lambda x: np.exp(numbers["mean"] * (x - 1.0))
    if runs == "fixed":
        return lambda x: x ** numbers["number"]
    if runs == "binomial":
        n, p = numbers["number"], numbers["probability"]
        return lambda x: (1.0 - p + p * x) ** n
    gamma = numbers["stopping"]
    eta = 1.0 if runs == "geometric" else numbers["shape"]
    if eta == 0.0:
        return lambda x: np.log1p(-(1.0 - gamma) * x) / math.log(gamma)
    return lambda x: ((1.0 - (1.0 - gamma) * x) ** -eta - 1.0) / (gamma**-eta - 1.0)


def drawn(rng: np.random.Generator, word: str) -> dict[str, Any]:
    """Parameters of a law."""
    stopping = float(rng.uniform(0.05, 0.9))
    return {
        "poisson": {"mean": float(10.0 ** rng.uniform(-1, 1.3))},
        "geometric": {"stopping": stopping},
        "negative_binomial": {
            "shape": float(rng.choice([-0.5, 0.0, 1.0, 2.5])),
            "stopping": stopping,
        },
        "binomial": {
            "number": int(rng.integers(1, 12)),
            "probability": float(rng.uniform(0.05, 0.9)),
        },
        "fixed": {"number": int(rng.integers(1, 5))},
    }[word]


@pytest.mark.parametrize("word", ["poisson", "geometric", "negative_binomial", "binomial", "fixed"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_of_finite_runs_is_bounded(seed: int, word: str) -> None:
    """Scores are any order of the outcomes; the best run's law is a difference of φ(F)."""
    rng = np.random.default_rng([seed, len(word)])
    numbers = drawn(rng, word)
    q = rng.dirichlet(np.ones(5))
    p = q * np.exp(rng.uniform(-1, 1, 5) * float(rng.choice([0.05, 0.3, 1.0])))
    p /= p.sum()
    base = pe.from_probabilities(p, q)
    p, q = np.array(base.p), np.array(base.q)
    tuned = pe.repeat_and_select(base, word, **numbers)
    phi = generating(word, **numbers)
    laws = []
    for masses in (p, q):
        edges = phi(np.minimum(np.concatenate([[0.0], np.cumsum(masses)]), 1.0))
        laws.append(np.concatenate([[edges[0]], np.diff(edges)]))
    for epsilon in (0.05, 0.3, 1.0):
        orders = {
            name: hockey_stick(one, other, epsilon)
            for name, one, other in (("add", *laws), ("remove", *laws[::-1]))
        }
        orders["add_remove"] = max(orders.values())
        for adjacency, real in orders.items():
            bound = pe.delta(tuned, epsilon, adjacency=adjacency, bounds=True)
            assert real <= bound.upper + 1e-13
            assert bound.lower <= real + 1e-13
    # all events of the pair on the safe side of γ
    order = np.argsort(laws[1] / np.maximum(laws[0], 1e-300))[::-1]
    kappa, gamma = (np.cumsum(law[order]) for law in laws)
    inside = (kappa > 1e-6) & (kappa < 1.0 - 1e-6)
    if inside.any():
        found = pe.gamma_bound(tuned, kappa[inside], bounds=True)
        assert (gamma[inside] <= found.upper + 1e-12).all()


@pytest.mark.parametrize(
    ("word", "law"),
    [
        ("poisson", {"mean": 10.0}),
        ("geometric", {"stopping": 0.05}),
        ("binomial", {"number": 10, "probability": 0.2}),
    ],
)
def test_the_mechanism_is_the_bound_of_its_profile(word: str, law: dict[str, Any]) -> None:
    run = pe.dp_sgd(1.0, 0.01, 100)
    tuned = pe.repeat_and_select(run, word, **law)
    words = {"runs": word, **law}
    if word == "geometric":
        words = {"runs": "negative_binomial", "shape": 1.0, **law}
    for epsilon in (1.0, 2.0, 4.0):
        bound = duality.repeat_and_select(lambda e: pe.delta(run, e), epsilon, **words)
        found = pe.delta(tuned, epsilon)
        assert found <= bound * 1.01 + 1e-15
        if bound < 0.1:  # elsewhere chords of the profile, which is convex, are better
            assert found >= 0.5 * bound
    twice = tuned.composed(2)
    assert pe.epsilon(tuned, 1e-5) < pe.epsilon(twice, 1e-5) < 2.2 * pe.epsilon(tuned, 1e-6)
    beside = pe.epsilon(tuned + pe.GaussianMechanism(5.0), 1e-5)
    assert pe.epsilon(tuned, 1e-5) < beside < pe.epsilon(tuned, 1e-5) + 1.0


def test_fixed_runs_count_as_if_all_were_published() -> None:
    run = pe.dp_sgd(1.0, 0.01, 100)
    tuned = pe.repeat_and_select(run, "fixed", number=5)
    assert pe.epsilon(tuned, 1e-5) == pe.epsilon(run.composed(5), 1e-5)
    assert pe.epsilon(tuned, 1e-5, bounds=True).lower == 0.0  # nothing is known from below
    nothing = pe.repeat_and_select(pe.dp_sgd(1.0, 0, 5), "poisson", mean=3)
    assert pe.delta(nothing, 0.1) == 0.0


def test_binomial_runs_of_the_function() -> None:
    """One run at most is a run or nothing; one that surely runs has no bound of this kind."""

    def profile(epsilon: Any) -> Any:
        return pe.delta(pe.GaussianMechanism(1.0), epsilon)

    one = duality.repeat_and_select(profile, 1.0, runs="binomial", number=1, probability=0.25)
    assert one == pytest.approx(0.25 * profile(1.0), rel=1e-12)
    sure = duality.repeat_and_select(profile, 1.0, runs="binomial", number=2, probability=1.0)
    assert sure == 1.0


def test_json_and_words() -> None:
    run = pe.dp_sgd(1.1, "256/60000", 4688)
    tuned = pe.repeat_and_select(run, "geometric", stopping=0.05)
    mixed = pe.repeat_and_select(
        pe.revealed_mixture([("1/2", pe.GaussianMechanism(1)), ("1/2", pe.GaussianMechanism(2))]),
        "binomial",
        number=3,
        probability=0.5,
    )
    for made in (tuned, mixed.composed(2), tuned + mixed):
        assert pe.from_json(pe.to_json(made)) == made
    assert repr(tuned) == (
        "best of a geometric number of runs, mean 20, of (DP-SGD, noise multiplier 1.1, 4,688 "
        "steps at rate 256/60000)"
    )
    label = pe.mechanisms.label_of(tuned)[0]
    assert label.known == "upper bound"
    assert "Poisson sampling" in label.batches


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: pe.repeat_and_select(3, "poisson", mean=1), "mechanism must be a Mechanism"),
        (lambda: tuning("often", mean=1), "runs must be one of"),
        (lambda: tuning("poisson"), "runs 'poisson' needs mean"),
        (lambda: tuning("poisson", mean=1, number=3), "check number"),
        (lambda: tuning("geometric", mean=3), "runs 'geometric' needs stopping"),
        (lambda: tuning("poisson", mean=0), "mean must be positive and finite"),
        (lambda: tuning("geometric", stopping=1), r"stopping must lie in \(0, 1\)"),
        (lambda: tuning("negative_binomial", shape=-1, stopping=0.5), "above -1"),
        (lambda: tuning("binomial", number=0, probability=0.5), "number must be an integer >= 1"),
        (lambda: tuning("fixed", number=2).poisson_sampled(0.5), "sample what a run does"),
    ],
)
def test_what_is_wrong_is_said(ask: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ask()


def tuning(runs: str, **numbers: Any) -> pe.RepeatAndSelect:
    return pe.repeat_and_select(pe.GaussianMechanism(1.0), runs, **numbers)


def test_a_run_that_is_no_proof_is_refused() -> None:
    from scipy import stats

    run = pe.from_distributions(stats.norm(), stats.norm(1))
    with pytest.raises(pe.AccuracyError):
        pe.delta(pe.repeat_and_select(run, "poisson", mean=2), 1.0)
    with pytest.raises(pe.AccuracyError, match="only bounds: ask method='auto'"):
        pe.delta(tuning("poisson", mean=1), 1.0, method="exact")


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.3, 1.0, 4.0, 60.0])
def test_laws_of_a_mean(shape: float) -> None:
    """The mean of P(k) ∝ (1 - γ)^k Γ(k + η)/k!, in 40 digits, is the one asked for or above."""
    for mean in (1.0 + 1e-9, 1.001, 1.5, 4.0, 100.0, 1e6):
        gamma = stopping_of(mean, shape)
        with mp.workdps(40):
            g, eta = mp.mpf(gamma), mp.mpf(shape)
            sizes = (1 - g, -mp.log(g)) if shape == 0 else (eta * (1 - g), 1 - g**eta)
            found = sizes[0] / (g * sizes[1])
            assert mean <= found <= mean * (1.0 + 2e-13 * (2.0 + shape))
    with pytest.raises(ValueError, match="mean must be finite and above 1"):
        stopping_of(1.0, 2.0)
