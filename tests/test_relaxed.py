"""The relaxed threat model: what holds for every mechanism, and what is refused."""

from __future__ import annotations

import math
import re
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from error_budget import check_near
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import chain
from thorough import ALL

import pyengine as pe
from pyengine.threat_models import Relaxed

ALPHAS = np.array([0.0, 1e-12, 1e-6, 1e-3, 0.03, 0.2, 0.5, 0.8, 0.97, 1 - 1e-3, 1 - 1e-9, 1.0])
NOISES = st.floats(0.05, 500.0)
RATES = st.one_of(st.just(1.0), st.floats(1e-4, 0.999))


@st.composite
def gaussians(draw: Any) -> tuple[pe.Mechanism, Relaxed]:
    step = pe.GaussianMechanism(draw(NOISES)).poisson_sampled(draw(RATES))
    dimension = draw(st.one_of(st.just(1), st.integers(2, 100), st.integers(100, 10**9)))
    return step, Relaxed(dimension)


@st.composite
def laplaces(draw: Any) -> tuple[pe.Mechanism, Relaxed]:
    return pe.LaplaceMechanism(draw(NOISES)).poisson_sampled(draw(RATES)), Relaxed()


@settings(max_examples=40, deadline=None)
@given(gaussians())
def test_dp_implies_the_relaxed_guarantee(case: tuple[pe.Mechanism, Relaxed]) -> None:
    """Lemma 6: J >= f, and so for each order."""
    mechanism, model = case
    for adjacency in ("add", "remove", "add_remove"):
        relaxed = pe.trade_off(mechanism, ALPHAS, adjacency=adjacency, threat_model=model)
        dp = pe.trade_off(mechanism, ALPHAS, adjacency=adjacency)
        assert np.all(relaxed >= dp * (1 - 1e-10)), adjacency
    assert pe.delta(mechanism, 0.0, threat_model=model) <= pe.delta(mechanism, 0.0) + 1e-14


@settings(max_examples=40, deadline=None)
@given(laplaces(), st.floats(1e-9, 1 - 1e-9))
def test_dp_implies_the_relaxed_guarantee_for_laplace(
    case: tuple[pe.Mechanism, Relaxed], alpha: float
) -> None:
    """Against equation 19 of the paper, the function of Dong, Roth and Su (2022), sampled."""
    mechanism, model = case
    step = mechanism if isinstance(mechanism, pe.LaplaceMechanism) else mechanism.mechanism  # type: ignore[attr-defined]
    p = float(getattr(mechanism, "probability", 1.0))
    mu = 1.0 / float(step.noise_multiplier)
    if alpha < math.exp(-mu) / 2:
        dp = 1 - math.exp(mu) * alpha
    elif alpha <= 0.5:
        dp = math.exp(-mu) / (4 * alpha)
    else:
        dp = math.exp(-mu) * (1 - alpha)
    dp = p * dp + (1 - p) * (1 - alpha)
    assert pe.trade_off(mechanism, alpha, adjacency="add", threat_model=model) >= dp * (1 - 1e-12)


@settings(max_examples=40, deadline=None)
@given(st.one_of(gaussians(), laplaces()))
def test_shape(case: tuple[pe.Mechanism, Relaxed]) -> None:
    """Functions fall from 1 to 0, are convex and inverse to each other, and J is symmetric."""
    mechanism, model = case
    alpha = np.linspace(0.0, 1.0, 41)
    curves = {
        word: pe.trade_off(mechanism, alpha, adjacency=word, threat_model=model)
        for word in ("add", "remove", "add_remove")
    }
    for beta in curves.values():
        assert beta[-1] == 0.0
        assert np.all(beta <= 1.0 - alpha)
        assert np.all(np.diff(beta) <= 1e-15)
        assert np.all(np.diff(beta, 2) >= -1e-13)
    assert np.all(curves["add_remove"] <= np.minimum(curves["add"], curves["remove"]) + 1e-15)
    inside = (curves["add"] > 1e-9) & (alpha > 0.0) & (alpha < 1.0)
    back = pe.trade_off(mechanism, curves["add"][inside], adjacency="remove", threat_model=model)
    np.testing.assert_allclose(back, alpha[inside], rtol=1e-9, atol=1e-12)
    inside = curves["add_remove"] > 1e-9
    back = pe.trade_off(mechanism, curves["add_remove"][inside], threat_model=model)
    np.testing.assert_allclose(back, alpha[inside], rtol=1e-9, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.one_of(gaussians(), laplaces()), st.sampled_from(["add", "remove", "add_remove"]))
def test_both_errors_and_the_profile(case: tuple[pe.Mechanism, Relaxed], adjacency: str) -> None:
    """β + γ = 1; the profile is the conjugate; ε inverts it; bounds enclose the value."""
    mechanism, model = case
    keywords: dict[str, Any] = {"adjacency": adjacency, "threat_model": model}
    alpha = np.linspace(0.0, 1.0, 201)
    beta = pe.trade_off(mechanism, alpha, **keywords)
    np.testing.assert_allclose(
        beta + pe.gamma_bound(mechanism, alpha, **keywords), 1.0, rtol=1e-12, atol=1e-14
    )
    for epsilon in (0.0, 0.05, 0.7):
        delta = pe.delta(mechanism, epsilon, bounds="estimated", **keywords)
        assert delta.lower <= delta.value <= delta.upper
        # H(A‖B) = 1 - min over α of (α + e^ε β)
        below = 1.0 - np.min(alpha + math.exp(epsilon) * beta)
        assert below - 1e-13 <= delta.value <= below + 6e-3
        if delta.value > 1e-8:
            back = pe.delta(mechanism, pe.epsilon(mechanism, delta.value, **keywords), **keywords)
            assert back == pytest.approx(delta.value, rel=1e-9)


def test_many_dimensions_hide_the_record() -> None:
    mechanism = pe.GaussianMechanism(noise_multiplier=1.0)
    alpha = np.linspace(0.01, 0.99, 9)
    gap = [
        np.max(1.0 - alpha - pe.trade_off(mechanism, alpha, threat_model=Relaxed(dimension)))
        for dimension in (1, 30, 1000, 10**6, 10**9)
    ]
    assert all(later < earlier for earlier, later in pairwise(gap))
    assert gap[-1] < 1e-5
    dp = [pe.trade_off(mechanism, alpha)] * 2
    np.testing.assert_array_equal(*dp)


@pytest.mark.parametrize("noise", [0.3, 0.6, 1.4])
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.6, 0.9, 1.0])
def test_hull_against_points(noise: float, rate: float) -> None:
    """J between the lower hull of points on both functions, and its own definition."""
    alpha = np.linspace(0.002, 0.998, 97)
    grid = np.concatenate([np.geomspace(1e-9, 0.5, 3000), 1.0 - np.geomspace(1e-9, 0.5, 3000)])
    for make in (pe.LaplaceMechanism, pe.GaussianMechanism):
        mechanism = make(noise).poisson_sampled(rate)
        j = pe.trade_off(mechanism, grid, adjacency="add", threat_model="relaxed")
        points = np.concatenate([np.stack([grid, j]), np.stack([j, grid])], axis=1)
        outer = np.interp(alpha, *np.transpose(chain(map(tuple, points.T))))
        found = pe.trade_off(mechanism, alpha, threat_model="relaxed")
        assert np.all(found <= outer + 1e-12)
        assert np.all(found >= outer - 1e-5)


def test_composition_of_gaussians_is_lemma_8() -> None:
    alpha = np.array([1e-6, 0.1, 0.6])
    keywords: dict[str, Any] = {"adjacency": "add", "threat_model": Relaxed(7)}
    twenty = pe.GaussianMechanism(6.0).composed(20)
    one = pe.GaussianMechanism(6.0 / math.sqrt(20.0))
    np.testing.assert_allclose(
        pe.trade_off(twenty, alpha, **keywords), pe.trade_off(one, alpha, **keywords), rtol=1e-13
    )
    mixed = pe.compose(pe.GaussianMechanism(1.0), pe.GaussianMechanism(2.0))
    for combination, square in (("mean", 4.0 / 5.0), ("weighted", 1.25)):
        model = Relaxed(7, combination)
        np.testing.assert_allclose(
            pe.trade_off(mixed, alpha, adjacency="add", threat_model=model),
            pe.special.relaxed_beta(alpha, 7.0, math.sqrt(square)),
            rtol=1e-13,
        )


def test_equal_weights_are_not_the_best_test() -> None:
    """Simulated: with unequal noise, the weighted sum finds the record more often than the mean."""
    rng = np.random.default_rng(1)
    noises, size = np.array([1.0, 2.0]), 200_000
    releases = rng.normal(size=(size, 2, 3)) * noises[:, None]
    shifted = releases + np.array([1.0, 0.0, 0.0])
    powers = {}
    for word, weights in (("mean", np.ones(2)), ("weighted", 1.0 / noises**2)):
        null, other = (np.sum((x * weights[:, None]).sum(1) ** 2, 1) for x in (releases, shifted))
        powers[word] = np.mean(other > np.quantile(null, 0.9))
        mechanism = pe.compose(*(pe.GaussianMechanism(float(noise)) for noise in noises))
        expected = pe.resilience.power(mechanism, 0.1, threat_model=Relaxed(3, word))
        assert powers[word] == pytest.approx(expected, abs=0.006)
    assert powers["weighted"] > powers["mean"] + 0.03


def test_nothing_is_released() -> None:
    alpha = np.linspace(0, 1, 5)
    for mechanism in (
        pe.compose(),
        pe.GaussianMechanism(1.0).poisson_sampled(0.0),
        pe.LaplaceMechanism(1.0).composed(0),
    ):
        for word in ("add", "remove", "add_remove"):
            beta = pe.trade_off(mechanism, alpha, adjacency=word, threat_model="relaxed")
            np.testing.assert_array_equal(beta, 1.0 - alpha)
        assert pe.delta(mechanism, 0.0, threat_model="relaxed") == 0.0
        assert pe.epsilon(mechanism, 0.0, threat_model="relaxed") == 0.0
        assert pe.resilience.log_trade_off(mechanism, 0.25) == math.log(0.75)


def test_ends() -> None:
    for mechanism in (pe.GaussianMechanism(1e-3), pe.LaplaceMechanism(1e-3)):
        for word in ("add", "remove", "add_remove"):
            keywords: dict[str, Any] = {"adjacency": word, "threat_model": "relaxed"}
            assert pe.trade_off(mechanism, [0.0, 1.0], **keywords).tolist() == [1.0, 0.0]
            assert pe.gamma_bound(mechanism, [0.0, 1.0], **keywords).tolist() == [0.0, 1.0]
            assert pe.delta(mechanism, math.inf, **keywords) == 0.0
            assert pe.epsilon(mechanism, 1.0, **keywords) == 0.0
    largest = pe.epsilon(pe.LaplaceMechanism(0.5), 0.0, adjacency="remove", threat_model="relaxed")
    assert largest == pytest.approx(math.log(math.cosh(2.0)), rel=1e-14)
    assert pe.epsilon(pe.GaussianMechanism(0.5), 0.0, threat_model="relaxed") == math.inf


@pytest.mark.parametrize("make", [pe.LaplaceMechanism, pe.GaussianMechanism])
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_epsilon_does_not_fall_as_delta_does(make: Any, adjacency: str) -> None:
    """Where rounding leaves more of the profile at its end than δ, the end is the answer."""
    delta = 10.0 ** -np.array([1.0, 3.0, 9.0, 20.0, 40.0, 90.0, 300.0])
    for noise, rate in product((0.06, 0.9, 9.0, 340.0), (0.005, 0.1, 0.3, 0.6)):
        step = make(noise).poisson_sampled(rate)
        found = pe.epsilon(
            step, delta, adjacency=adjacency, threat_model="relaxed", bounds="estimated"
        )
        assert (np.diff(found.value) >= 0.0).all()
        assert (found.upper[1:] >= found.lower[:-1]).all()


def test_limit_of_many_dimensions() -> None:
    """Theorem 3, corrected, against the exact functions: Figure 2a of the paper."""
    mechanism = pe.GaussianMechanism(5.0).composed(150)
    model = Relaxed(dimension=300)
    alpha = np.linspace(0.01, 0.99, 99)
    for word in ("add", "remove", "add_remove"):
        exact = pe.trade_off(mechanism, alpha, adjacency=word, threat_model=model)
        limit = pe.trade_off(mechanism, alpha, adjacency=word, threat_model=model, method="clt")
        assert np.max(np.abs(exact - limit)) < 0.008
    many = pe.GaussianMechanism(0.1)
    far = Relaxed(dimension=10**8)
    exact = pe.trade_off(many, alpha, threat_model=far)
    limit = pe.trade_off(many, alpha, threat_model=far, method="clt")
    check_near("limits.many_dimensions", limit, exact, absolute=True)
    mu = pe.resilience.asymptotic_mu(many, far)
    np.testing.assert_allclose(limit, pe.membership.GaussianTradeOff(mu)(alpha), rtol=1e-13)
    assert pe.resilience.asymptotic_mu(pe.compose()) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Relaxed(0), "dimension must be an integer >= 1, got 0"),
        (lambda: Relaxed(2 * 10**9), "dimension must be at most"),
        (lambda: Relaxed(1.5), "dimension must be an integer"),
        (lambda: Relaxed(combination="sum"), "combination must be one of"),
        (lambda: pe.trade_off(pe.dp_sgd(1, 0.1, 3), 0.1, threat_model="weak"), "threat_model"),
        (lambda: pe.trade_off(pe.dp_sgd(1, 0.1, 3), 0.1, threat_model=3), "threat_model"),
        (
            lambda: pe.trade_off(pe.LaplaceMechanism(1), 0.1, threat_model=Relaxed(2)),
            "dimension must be 1",
        ),
        (
            lambda: pe.trade_off(pe.RandomizedResponse(0.7), 0.1, threat_model="relaxed"),
            "covers Gaussian and Laplace",
        ),
        (
            lambda: pe.trade_off(pe.LaplaceMechanism(1), 0.1, threat_model="relaxed", method="clt"),
            "covers Gaussian steps",
        ),
        (
            lambda: pe.delta(pe.GaussianMechanism(1), 0.1, threat_model="relaxed", method="clt"),
            "trade-off functions only",
        ),
        (
            lambda: pe.trade_off(
                pe.GaussianMechanism(1), 0.1, threat_model="relaxed", method="edgeworth"
            ),
            "does not answer for threat_model",
        ),
        (lambda: pe.trade_off(pe.GaussianMechanism(1), 1.1, threat_model="relaxed"), "alpha"),
        (lambda: pe.trade_off(pe.GaussianMechanism(1), math.nan, threat_model="relaxed"), "alpha"),
        (lambda: pe.resilience.log_trade_off(pe.GaussianMechanism(1), 2.0), "alpha"),
        (lambda: pe.resilience.log_trade_off(3, 0.5), "mechanism must be"),
        (
            lambda: pe.resilience.log_trade_off(pe.GaussianMechanism(1), 0.5, threat_model="dp"),
            "must be the relaxed one",
        ),
        (
            lambda: pe.resilience.log_trade_off(pe.GaussianMechanism(1), 0.5, adjacency="swap"),
            "adjacency",
        ),
        (lambda: pe.resilience.asymptotic_mu(pe.LaplaceMechanism(1)), "without sampling"),
        (lambda: pe.resilience.detection_resilience(pe.GaussianMechanism(1), 3), "reference"),
        (
            lambda: pe.resilience.equivalent_noise(pe.GaussianMechanism, 1.0, levels=(0.5, 0.1)),
            "levels must be",
        ),
        (lambda: pe.resilience.equivalent_noise(pe.GaussianMechanism, -1.0), "noise_multiplier"),
        (lambda: pe.resilience.equivalent_noise(3, 1.0), "make must be callable"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_resilience() -> None:
    mechanism = pe.GaussianMechanism(1.0)
    found = pe.resilience.detection_resilience(mechanism, mechanism)
    assert found.holds
    assert found.margin > 0.1
    assert found.dp_holds
    assert found.dp_margin == 0.0
    found = pe.resilience.detection_resilience(mechanism, pe.GaussianMechanism(3.0))
    assert not found.holds
    assert not found.dp_holds
    own = pe.resilience.detection_resilience(
        mechanism, lambda alpha: pe.trade_off(mechanism, alpha, threat_model="relaxed")
    )
    assert own.holds
    assert abs(own.margin) < 1e-9
    assert not own.dp_holds


@pytest.mark.parametrize("dimension", [1, 20])
def test_equivalent_noise_is_a_sandwich(dimension: int) -> None:
    model, levels = Relaxed(dimension), (1e-4, 1.0 - 1e-4)
    found = pe.resilience.equivalent_noise(
        pe.GaussianMechanism, 2.0, levels=levels, threat_model=model
    )
    assert found.lower < found.upper == found.noise_multiplier < 2.0
    alpha = np.concatenate([np.geomspace(1e-4, 0.5, 80), 1.0 - np.geomspace(1e-4, 0.5, 80)])
    wanted = pe.trade_off(pe.GaussianMechanism(2.0), alpha)
    above = pe.trade_off(pe.GaussianMechanism(found.upper), alpha, threat_model=model)
    below = pe.trade_off(pe.GaussianMechanism(found.lower), alpha, threat_model=model)
    assert np.all(above >= wanted * (1.0 - 2e-4))
    assert np.all(below <= wanted * (1.0 + 2e-4))
    less = pe.trade_off(pe.GaussianMechanism(0.99 * found.upper), alpha, threat_model=model)
    assert np.any(less < wanted)
    assert found.epsilon == pe.epsilon(pe.GaussianMechanism(found.upper), 1e-5)
    assert found.epsilon > found.reference_epsilon


def test_certificate_reports_both() -> None:
    found = pe.resilience.certificate(pe.GaussianMechanism(1.0), [0.01, 0.1])
    assert np.all(found.relaxed > found.dp)
    assert found.epsilon == pe.epsilon(pe.GaussianMechanism(1.0), 1e-5)
    text = str(found)
    assert "differential privacy: epsilon = 4.37718 at delta = 1e-5" in text
    assert "no differential privacy" in text
    for noise in np.linspace(0.7, 3.0, 12):  # each number is rounded so that it holds
        found = pe.resilience.certificate(
            pe.GaussianMechanism(noise), [0.0123456789], delta=1.23456789e-5
        )
        head, *_, row = str(found).splitlines()
        epsilon, delta = re.findall(r"= ([\d.e-]+)", head)
        assert found.epsilon <= float(epsilon) < found.epsilon + 1e-4
        alpha, *errors = map(float, row.split())
        assert (float(delta), alpha) == (found.delta, 0.0123456789)
        for shown, exact in zip(errors, (found.dp[0], found.relaxed[0]), strict=True):
            assert exact - 1e-7 < shown <= exact


def test_calibration() -> None:
    """pe.calibrate passes the threat model through: words and objects."""
    for model in ("relaxed", Relaxed(dimension=10)):
        target = pe.targets.TradeOff(0.1, 0.6, threat_model=model)
        noise = pe.calibrate(pe.GaussianMechanism, target).value
        found = pe.trade_off(pe.GaussianMechanism(noise), 0.1, threat_model=model)
        assert found == pytest.approx(0.6, rel=1e-9)
        assert found >= 0.6
        dp = pe.calibrate(pe.GaussianMechanism, pe.targets.TradeOff(0.1, 0.6)).value
        assert noise < dp


@settings(max_examples=40 if ALL else 15, deadline=None)
@given(
    st.sampled_from([pe.GaussianMechanism, pe.LaplaceMechanism]),
    st.floats(-4.0, 8.0),
    st.sampled_from([1.0, 1e-12, 1e-3, 0.5, 1.0 - 1e-9]),
    st.sampled_from([1, 2, 1000, 10**9]),
    st.sampled_from(["add", "remove", "add_remove"]),
)
def test_extremes(make: Any, power: float, rate: float, dimension: int, adjacency: str) -> None:
    """No NaN, no disorder, no warning, from noise 1e-4 to 1e8 and at the smallest levels."""
    mechanism = make(10.0**power).poisson_sampled(rate)
    model = Relaxed(dimension if make is pe.GaussianMechanism else 1)
    keywords: dict[str, Any] = {"adjacency": adjacency, "threat_model": model}
    alpha = np.array([0.0, 5e-324, 1e-310, 1e-100, 1e-20, 0.1, 0.9, 1 - 1e-12, 1 - 2**-53, 1.0])
    beta = pe.trade_off(mechanism, alpha, bounds="estimated", **keywords)
    gamma = pe.gamma_bound(mechanism, alpha, bounds="estimated", **keywords)
    epsilon = np.array([0.0, 1e-12, 0.1, 10.0, 700.0, 1e4, math.inf])
    delta = pe.delta(mechanism, epsilon, bounds="estimated", **keywords)
    largest = pe.epsilon(mechanism, [0.0, 1e-300, 1e-8, 0.5, 1.0], bounds="estimated", **keywords)
    for found in (beta, gamma, delta, largest):
        assert not np.isnan(found).any()
        assert np.all(found.lower <= found.value)
        assert np.all(found.value <= found.upper)
    assert np.all(np.diff(beta.value) <= 1e-15)
    assert np.all(np.diff(delta.value) <= 1e-13)
    np.testing.assert_allclose(beta.value + gamma.value, 1.0, rtol=1e-12, atol=1e-14)
    assert not np.isnan(pe.resilience.log_trade_off(mechanism, alpha, **keywords)).any()
