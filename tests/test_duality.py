"""Trade-off functions and profiles into each other: both bounds, and the safe direction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyengine as pe
from pyengine import duality

MECHANISMS = [
    pe.GaussianMechanism(1.0),
    pe.dp_sgd(1.0, 0.01, 1000),
    pe.LaplaceMechanism(2.0).composed(10),
    pe.RandomizedResponse("3/4").poisson_sampled("1/2").composed(2),
    pe.GenericMechanism(1.0, 1e-3),
]
KAPPA = np.array([0.0, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_gamma_from_profile(mechanism: Any) -> None:
    both = duality.gamma_from_profile(lambda e: pe.delta(mechanism, e), KAPPA, symmetric=True)
    truth = pe.gamma_bound(mechanism, KAPPA, adjacency="add_remove")
    assert (both.lower <= truth + 1e-15).all()
    assert (truth <= both.upper + 1e-15).all()
    assert (both.upper - both.lower <= truth * 1e-5 + 1e-15).all()
    one = duality.gamma_from_profile(
        lambda e: pe.delta(mechanism, e, adjacency="remove"), KAPPA[:4]
    )
    truth = pe.gamma_bound(mechanism, KAPPA[:4], adjacency="add")
    assert (one.lower <= truth + 1e-15).all()
    assert (truth <= one.upper + 1e-15).all()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_round_trip(mechanism: Any) -> None:
    epsilon = np.array([0.0, 0.1, 1.0, 2.0])
    for first, second in (("add", "remove"), ("remove", "add")):
        found = duality.profile_from_trade_off(
            lambda a, first=first: pe.trade_off(mechanism, a, adjacency=first), epsilon
        )
        truth = pe.delta(mechanism, epsilon, adjacency=second)
        assert (found.lower <= truth + 1e-15).all()
        assert (truth <= found.upper + 1e-15).all()
        assert (found.upper - found.lower <= 1e-6).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.floats(0.2, 3.0), st.floats(0.0, 1.0), st.integers(0, 2**31))
def test_samples_bracket_the_truth(size: int, mu: float, alpha: float, seed: int) -> None:
    """A Gaussian trade-off function at random places; the other curve lies between the bounds."""
    rng = np.random.default_rng(seed)
    mechanism = pe.GaussianMechanism(1.0 / mu)
    epsilon = np.sort(rng.uniform(0, 4, size))
    samples = epsilon, pe.delta(mechanism, epsilon)
    for symmetric in (False, True):
        found = duality.trade_off_from_profile(samples, alpha, symmetric=symmetric)
        assert found.lower - 1e-15 <= pe.trade_off(mechanism, alpha) <= found.upper + 1e-15
    levels = np.sort(rng.uniform(0, 1, size))
    found = duality.profile_from_trade_off((levels, pe.trade_off(mechanism, levels)), 4 * alpha)
    assert found.lower - 1e-15 <= pe.delta(mechanism, 4 * alpha) <= found.upper + 1e-15


def test_single_guarantee() -> None:
    """(ε, δ) -> γ is an upper bound, and attained by the least private mechanism."""
    epsilon, delta = 0.7, 1e-4
    kappa = np.array([0.0, 1e-3, 0.1, 0.3, 0.9, 1.0])
    bound = duality.gamma_from_epsilon_delta(epsilon, delta, kappa)
    generic = pe.GenericMechanism(epsilon, delta)
    gamma = pe.gamma_bound(generic, kappa)
    assert (gamma <= bound * (1 + 1e-15)).all()
    assert gamma[:4] == pytest.approx(bound[:4], rel=1e-14)
    assert duality.gamma_from_epsilon_delta(epsilon, delta, 0.1) == pytest.approx(bound[2])
    beta = duality.trade_off_from_epsilon_delta(epsilon, delta, kappa)
    assert pe.trade_off(generic, kappa) == pytest.approx(beta, abs=1e-15)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.5), (1.0, 0.9), (3.0, 1e-5), (0.5, 0.0)])
def test_where_one_guarantee_says_no_more(epsilon: float, delta: float) -> None:
    """Of large δ e^ε κ <= 1/2 was said to suffice: 0.942 at κ = 0.4, where both give 0.910."""
    most = (1.0 - delta) / (1.0 + math.exp(epsilon))
    for kappa, is_best in ((0.5 * most, True), (0.99 * most, True), (1.1 * most, False)):
        bound = duality.gamma_from_epsilon_delta(epsilon, delta, kappa)
        best = 1.0 - duality.trade_off_from_epsilon_delta(epsilon, delta, kappa)
        assert (bound == pytest.approx(best, rel=1e-12)) == is_best


def test_attack_gives_a_lower_bound() -> None:
    """Points above the trade-off function, as an attack finds them, never overstate δ."""
    mechanism = pe.GaussianMechanism(1.0)
    alpha = np.array([0.01, 0.05, 0.2, 0.5])
    worse = np.minimum(pe.trade_off(mechanism, alpha) * 1.05, 1.0 - alpha)
    found = duality.profile_from_trade_off((alpha, worse), 1.0)
    assert 0 < found.lower < pe.delta(mechanism, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: duality.gamma_from_profile(([0, 1], [0.1, 0.2]), 0.1), "must not increase"),
        (lambda: duality.gamma_from_profile(([0, 0.5, 1], [0.3, 0.29, 0.0]), 0.1), "convex"),
        (lambda: duality.gamma_from_profile(([1, 0], [0.1, 0.0]), 0.1), "must increase"),
        (lambda: duality.gamma_from_profile(([0, 1], [0.1]), 0.1), "one length"),
        (lambda: duality.gamma_from_profile(3.0, 0.1), "callable or a pair"),  # type: ignore[arg-type]
        (lambda: duality.gamma_from_profile(lambda e: 2.0 - e, 0.1), "must lie in"),
        (lambda: duality.trade_off_from_profile(lambda _: "x", 0.1), "real number"),
        (lambda: duality.gamma_from_epsilon_delta(-1.0, 0.0, 0.1), "epsilon must lie"),
        (lambda: duality.gamma_from_epsilon_delta(1.0, 2.0, 0.1), "delta must lie"),
        (lambda: duality.profile_from_trade_off(lambda a: 1 - a, 1.0, accuracy=1.0), "accuracy"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_nothing_released() -> None:
    found = duality.profile_from_trade_off(lambda a: 1.0 - a, [0.0, 1.0])
    assert found.lower.tolist() == [0.0, 0.0]
    assert (found.upper < 1e-9).all()
    assert math.isclose(duality.gamma_from_profile(lambda e: 0.0 * e, 0.25).upper, 0.25)


def test_values_at_one_abscissa() -> None:
    """Both exponentials are 1: the bounds were NaN."""
    found = duality.gamma_from_profile(([0.0, 1e-17, 1.0], [0.3, 0.3, 0.1]), 0.1)
    assert 0.1 <= found.lower <= found.upper <= 0.4


def test_nothing_is_left_of_a_height_of_zero() -> None:
    """γ(κ) = e κ of pure privacy: rounding of the height 0 was a lower bound of 1e-21 for it."""
    epsilon = np.linspace(0.0, 0.999, 20)
    profile = epsilon, np.maximum((math.e - np.exp(epsilon)) / (1.0 + math.e), 0.0)
    for kappa in (1e-200, 1e-30, 1e-3):
        found = duality.gamma_from_profile(profile, kappa, symmetric=True, accuracy=0.0)
        assert found.lower <= math.e * kappa * (1 + 1e-15)
