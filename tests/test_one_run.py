"""Audits of one run against exact laws of the number of right guesses, and simulated runs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from error_budget import check_near

import pyengine as pe
from pyengine import audit, duality
from pyengine.workbench.audit.one_run import _binomial_p_values


def response_tail(right: int, named: int, p: Fraction) -> Fraction:
    terms = (math.comb(named, k) * p**k * (1 - p) ** (named - k) for k in range(right, named + 1))
    return sum(terms, Fraction(0))


def test_binomial_test_of_randomized_response() -> None:
    """At δ = 0 the bound is the law of independent randomized responses, exactly."""
    for right, named in ((7, 10), (60, 80), (0, 5), (5, 5)):
        for p in (Fraction(1, 2), Fraction(3, 4), Fraction(9, 10)):
            epsilon = math.log(p / (1 - p))
            found = _binomial_p_values(right, named, named, np.array([epsilon]), 0.0)[0]
            assert found == pytest.approx(float(response_tail(right, named, p)), rel=1e-10)


def test_binomial_test_counts_delta() -> None:
    right, named, total, delta, p = 15, 20, 50, 1e-3, Fraction(2, 3)
    found = _binomial_p_values(right, named, total, np.array([math.log(2.0)]), delta)[0]
    tails = [response_tail(v, named, p) for v in range(right + 1)]
    worst = max((tails[right - i] - tails[right]) / i for i in range(1, right + 1))
    assert found == pytest.approx(float(tails[right]) + 2 * total * delta * float(worst), rel=1e-10)


@pytest.mark.parametrize("p", [0.55, 0.75, 0.9])
def test_recursion_bounds_randomized_response(p: float) -> None:
    """Independent responses attack an ε-DP mechanism: no p-value may be below their tail."""
    epsilon = math.log(p / (1 - p))
    closest = 0.0
    for named, right in ((10, 9), (30, 28), (100, 95), (100, 80)):
        tail = float(response_tail(right, named, Fraction(p)))
        bound = audit.one_run_p_value(
            right,
            named,
            named,
            lambda alpha: duality.trade_off_from_epsilon_delta(epsilon, 0.0, alpha),
        )
        assert tail <= bound * (1 + 1e-9)
        closest = max(closest, math.log(bound) / math.log(tail))
    assert closest > 0.3


def run(mu: float, canaries: int, guesses: int, rng: Any) -> int:
    """Canaries in orthogonal directions: each score is N(0, 1) or N(μ, 1)."""
    coins = rng.integers(0, 2, canaries)
    scores = coins * mu + rng.normal(size=canaries)
    named = np.argsort(np.abs(scores - mu / 2))[::-1][:guesses]
    return int(((scores[named] > mu / 2) == coins[named]).sum())


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_bounds_hold_for_simulated_runs(mu: float) -> None:
    rng = np.random.default_rng(11)
    found = [audit.one_run(run(mu, 500, 100, rng), 100, 500, delta=1e-5) for _ in range(60)]
    assert sum(bound.mu > mu for bound in found) <= 8  # 3 expected at most
    true_epsilon = pe.epsilon(pe.GaussianMechanism(1.0 / mu), 1e-5)
    assert sum(bound.epsilon > true_epsilon for bound in found) <= 8
    if mu >= 1.0:  # below, 100 guesses prove next to nothing
        assert np.median([bound.mu for bound in found]) > 0.3 * mu


def test_tight_function_proves_more_than_epsilon_delta() -> None:
    found = audit.one_run(correct=190, guesses=200, canaries=2000, delta=1e-5)
    assert found.epsilon_of_mu > found.epsilon > 0.0
    assert pe.epsilon(pe.GaussianMechanism(1.0 / found.mu), 1e-5) == pytest.approx(
        found.epsilon_of_mu
    )


def test_more_right_guesses_prove_more() -> None:
    found = [audit.one_run(right, 100, 400) for right in (50, 60, 75, 90, 100)]
    for field in ("epsilon", "mu", "epsilon_of_mu"):
        values = [getattr(bound, field) for bound in found]
        assert values == sorted(values)
    assert found[0] == audit.OneRun(0.0, 0.0, 0.0)
    assert found[-1].mu > 0.5


def test_mechanism_and_function_agree() -> None:
    gaussian = pe.GaussianMechanism(2.0)
    by_mechanism = audit.one_run_p_value(90, 100, 300, gaussian)
    by_function = audit.one_run_p_value(90, 100, 300, lambda alpha: pe.trade_off(gaussian, alpha))
    assert by_mechanism == pytest.approx(by_function, rel=1e-9)
    at_level = audit.one_run(90, 100, 300, confidence=1.0 - by_mechanism)
    check_near("searches.one_run_level", at_level.mu, 0.5)
    assert audit.one_run_p_value(50, 100, 300, gaussian) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: audit.one_run(11, 10, 20), "correct must be at most guesses = 10"),
        (lambda: audit.one_run(1, 21, 20), "guesses must be at most canaries = 20"),
        (lambda: audit.one_run(0, 0, 20), "guesses must be an integer >= 1"),
        (lambda: audit.one_run(1, 2, 10**6), "canaries must be at most 100,000"),
        (lambda: audit.one_run(1, 2, 3, delta=2.0), "delta must lie in"),
        (lambda: audit.one_run(1, 2, 3, confidence=1.0), "confidence"),
        (lambda: audit.one_run_p_value(1, 2, 3, 0.5), "against must be a Mechanism or a function"),
        (lambda: audit.one_run_p_value(1, 2, 3, lambda _: 0.5), "keep the shape"),
    ],
)
def test_wrong_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
