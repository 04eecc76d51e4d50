"""Questions on laws that are all but told apart, or whose answers are huge."""

from __future__ import annotations

import math

import numpy as np
import pytest
from error_budget import check_near
from scipy import stats

import pyengine as pe
from pyengine.engines.lattice.chernoff import ChernoffBounds
from pyengine.laws.composition import composition_law


def _parts(mechanism: pe.Mechanism) -> tuple[tuple[object, int], ...]:
    return tuple(composition_law(mechanism, "add"))


def test_bounds_lie_above_what_gaussian_laws_have_in_common() -> None:
    rng = np.random.default_rng(20261122)
    compared = 0
    for _ in range(60):
        noise, steps = float(rng.uniform(0.2, 3.0)), int(10 ** rng.uniform(0.0, 4.0))
        bound = ChernoffBounds(_parts(pe.GaussianMechanism(noise).composed(steps)))
        mu = math.sqrt(steps) / noise
        alpha, epsilon = 10.0 ** rng.uniform(-12.0, -0.1, 20), 10.0 ** rng.uniform(-2.0, 1.5, 20)
        beta = stats.norm.logcdf(stats.norm.isf(alpha) - mu)
        assert np.all(bound.log_beta(alpha) >= beta)
        # 1 - δ = Φ(ε/μ - μ/2) + e^ε Φ(-ε/μ - μ/2)
        overlap = np.logaddexp(
            stats.norm.logcdf(epsilon / mu - 0.5 * mu),
            epsilon + stats.norm.logcdf(-epsilon / mu - 0.5 * mu),
        )
        assert np.all(bound.log_overlap(epsilon) >= overlap)
        # Chernoff's bound has the right exponent
        far = beta < -60.0
        assert np.all(bound.log_beta(alpha)[far] <= 0.8 * beta[far])
        compared += int(far.sum())
    assert compared > 100


def test_bounds_lie_above_what_random_responses_have_in_common() -> None:
    rng = np.random.default_rng(7)
    for _ in range(40):
        truth, steps = float(rng.uniform(0.52, 0.9)), int(rng.integers(1, 300))
        bound = ChernoffBounds(_parts(pe.RandomizedResponse(truth).composed(steps)))
        k = np.arange(steps + 1)
        a, b = (stats.binom.logpmf(k, steps, p) for p in (1.0 - truth, truth))
        for epsilon in (0.0, 0.3, 2.0):
            overlap = np.logaddexp.reduce(np.minimum(a, epsilon + b))
            assert bound.log_overlap(np.array([epsilon]))[0] >= overlap - 1e-9
        above = np.logaddexp.accumulate(a[::-1])[::-1]  # the test {k >= m}
        below = np.append(-math.inf, np.logaddexp.accumulate(b)[:-1])
        at = np.flatnonzero(np.isfinite(below) & (above < math.log(0.5)))
        if at.size:
            assert np.all(bound.log_beta(np.exp(above[at])) >= below[at] - 1e-9)


SATURATED = [
    (
        pe.compose(
            pe.GaussianMechanism(0.4017).composed(20305),
            pe.RandomizedResponse(0.6361).composed(59660),
        ),
        0.8205056796982446,
    ),
    (
        pe.compose(
            pe.DiscreteLaplaceMechanism(0.7313, 2).sampled_without_replacement(
                batch_size=33210, dataset_size=702076
            ),
            pe.GaussianMechanism(4.146).composed(820),
            pe.GaussianMechanism(0.4251).composed(358979),
        ),
        0.0003603732866154094,
    ),
    (pe.RandomizedResponse(0.8909, 3).composed(429349), 6.8964007317744074e-06),
]


@pytest.mark.parametrize(("mechanism", "level"), SATURATED)
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_laws_that_are_told_apart_have_answers(
    mechanism: pe.Mechanism, level: float, adjacency: str
) -> None:
    beta = pe.trade_off(mechanism, level, adjacency=adjacency, bounds=True)
    assert beta.lower == beta.value == 0.0
    assert 0.0 < beta.upper < 1e-300
    gamma = pe.gamma_bound(mechanism, level, adjacency=adjacency, bounds=True)
    assert 1.0 - 1e-12 < gamma.lower < gamma.value == gamma.upper == 1.0
    assert pe.delta(mechanism, level, adjacency=adjacency) > 1.0 - 1e-6


def test_some_levels_of_an_array_may_be_told_apart() -> None:
    mechanism = pe.LaplaceMechanism(1.0).composed(60)
    epsilon = np.array([0.5, 35.0, 1.0, 40.0])
    together = pe.delta(mechanism, epsilon)
    alone = [pe.delta(mechanism, float(x)) for x in epsilon]
    assert together.tolist() == pytest.approx(alone, rel=1e-9)
    assert together[0] > 0.99
    assert together[3] < 0.01


def test_epsilon_of_losses_beyond_ten_thousand() -> None:
    # plain Gaussian steps beside steps that tell nothing a tolerance could show
    noise, steps, delta = 2.966, 319322, 1e-5
    mechanism = pe.compose(
        pe.GaussianMechanism(noise).composed(steps), pe.LaplaceMechanism(50.0).composed(2)
    )
    least = pe.epsilon(pe.GaussianMechanism(noise).composed(steps), delta)
    found = pe.epsilon(mechanism, delta, bounds=True)
    assert least > 1e4
    assert least * (1.0 - 1e-9) <= found.upper <= (least + 0.04) * (1.0 + 1e-4)
    assert found.lower >= least * (1.0 - 1e-4)


def test_epsilon_of_a_tail_that_is_flat_beside_the_tolerance() -> None:
    mechanism = pe.compose(
        pe.DiscreteLaplaceMechanism(1.814, 3)
        .sampled_without_replacement(batch_size=9, dataset_size=174)
        .composed(33),
        pe.LaplaceMechanism(0.3752).composed(714107),
    )
    found = pe.epsilon(mechanism, 2.1e-9, adjacency="add", bounds=True)
    # mean and deviation of the sum of Laplace losses: the tail is nearly normal
    t = 1.0 / 0.3752
    mean = t - 1.0 + math.exp(-t)
    draws = np.random.default_rng(5).laplace(0.0, 0.3752, 400_000)
    deviation = float(np.std((np.abs(draws) - np.abs(draws - 1.0)) / 0.3752))
    about = 714107 * mean + 5.86 * math.sqrt(714107) * deviation
    assert found.lower <= found.value <= found.upper <= found.lower * (1.0 + 1e-4)
    check_near("simulations.flat_tail", found.value, about)


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "adjacency"),
    [
        (pe.GaussianMechanism(9.796).poisson_sampled(0.000144).composed(368), 0.0701, "substitute"),
        (
            pe.compose(
                pe.from_probabilities([0.393, 0.607], [0.724, 0.276]),
                pe.GaussianMechanism(4.627).poisson_sampled(3.261e-05).composed(7286),
            ),
            5.623,
            "add_remove",
        ),
    ],
)
def test_deltas_below_all_doubles_are_zero(
    mechanism: pe.Mechanism, epsilon: float, adjacency: str
) -> None:
    found = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
    assert found.lower == found.value == 0.0
    assert found.upper < 1e-300


@pytest.mark.parametrize("epsilon", [7.0, 10.813115620603917, 50.0])
def test_vanishing_profile_beside_atoms_that_are_left_out(epsilon: float) -> None:
    """Discrete Gaussian noise leaves out atoms below e^-800, which a double can only round up."""
    mechanism = pe.compose(
        pe.GaussianMechanism(12.49).composed(5),
        pe.DiscreteGaussianMechanism(13.32, 2).poisson_sampled(0.0006823).composed(1),
    )
    bounds = pe.delta(mechanism, epsilon, adjacency="add", bounds=True)
    assert bounds.lower == bounds.value == 0.0
    # sums on a line count roundings of subnormal numbers
    assert 0.0 < bounds.upper < 1e-316
