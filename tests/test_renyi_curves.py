"""Curves of Rényi divergences as mechanisms, against Bernoulli laws that the curves allow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import thorough

import pyengine as pe
from pyengine import duality

FloatArray = npt.NDArray[np.float64]
SEEDS = thorough.some(range(321), 321)
EXCESS = 1e-4  # what chords may add


def log_divergence(tau: FloatArray, p: Any, q: Any) -> FloatArray:
    """(τ - 1) D_τ of Bernoulli laws."""
    first = tau * np.log(p) + (1.0 - tau) * np.log(q)
    second = tau * np.log1p(-p) + (1.0 - tau) * np.log1p(-q)
    return np.asarray(np.logaddexp(first, second))


def allowed_power(orders: FloatArray, values: FloatArray, alpha: float) -> float:
    """Largest γ for which (γ, α) and (α, γ) keep all orders, by halving: the region is convex."""
    low, high = alpha, 1.0 - 1e-16
    room = (orders - 1.0) * values
    for _ in range(70):
        middle = 0.5 * (low + high)
        both = (middle, alpha), (alpha, middle)
        keeps = all((log_divergence(orders, p, q) <= room).all() for p, q in both)
        low, high = (middle, high) if keeps else (low, middle)
    return low


@pytest.mark.parametrize("seed", SEEDS)
def test_finite_orders(seed: int) -> None:
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1, 8))
    orders = np.sort(1.0 + 10.0 ** rng.uniform(-1.5, 1.7, number))
    values = np.sort(10.0 ** rng.uniform(-3, 0.8, number))
    curve = pe.RenyiCurve(orders, values)
    alpha = np.concatenate([10.0 ** rng.uniform(-7, -0.5, 4), rng.uniform(0.1, 0.9, 2)])
    for level in alpha.tolist():
        truth = allowed_power(orders, values, level)
        found = 1.0 - pe.trade_off(curve, level)
        gamma = pe.gamma_bound(curve, level, bounds=True)
        assert truth * (1.0 - 1e-9) <= gamma.upper  # attained by Bernoulli laws
        assert gamma.lower <= truth * (1.0 + EXCESS)
        assert found == pytest.approx(gamma.value, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_zero_concentrated(seed: int) -> None:
    rng = np.random.default_rng(seed + 500)
    rho, xi = float(10.0 ** rng.uniform(-3, 0.7)), float(rng.choice([0.0, 0.1, 1.0]))
    curve = pe.ZeroConcentrated(rho, xi)
    x = np.geomspace(1e-6, 1e5, 2500)
    orders, values = 1.0 + x, xi + (1.0 + x) * rho
    for level in (10.0 ** rng.uniform(-6, -0.4, 3)).tolist():
        gamma = pe.gamma_bound(curve, level)
        # of a fine grid of orders: at least the truth, and near it
        truth = allowed_power(orders, values, level)
        assert truth * (1.0 - 5e-5) <= gamma <= truth * (1.0 + EXCESS)
        if xi == 0.0:
            assert gamma >= pe.gamma_bound(pe.GaussianMechanism((2.0 * rho) ** -0.5), level)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_curve_beside_other_steps(seed: int) -> None:
    """Randomized response beside a curve: a mean of its profile, from Bernoulli laws again."""
    rng = np.random.default_rng(seed + 900)
    orders = np.sort(rng.uniform(1.2, 20.0, 4))
    values = np.sort(rng.uniform(0.01, 1.0, 4))
    truth, epsilon = float(rng.uniform(0.5, 0.8)), float(rng.uniform(0.1, 1.5))
    run = pe.RenyiCurve(orders, values) + pe.RandomizedResponse(truth)

    def profile(e: float) -> float:
        """Largest γ - e^ε α, by golden section in log odds: γ is concave in α."""

        def excess(place: float) -> float:
            level = 1.0 / (1.0 + math.exp(-place))
            return allowed_power(orders, values, level) - math.exp(e) * level

        low, high = -40.0, 8.0
        for _ in range(80):
            one, other = high - 0.618 * (high - low), low + 0.618 * (high - low)
            low, high = (one, high) if excess(one) < excess(other) else (low, other)
        return max(excess(0.5 * (low + high)), 0.0, 1.0 - math.exp(e))

    loss = math.log(truth / (1.0 - truth))
    exact = truth * profile(epsilon - loss) + (1.0 - truth) * profile(epsilon + loss)
    found = pe.delta(run, epsilon, bounds=True)
    assert exact <= found.upper * (1.0 + 1e-9)
    assert found.lower <= exact * (1.0 + EXCESS)


def test_how_much_better_than_the_older_conversion() -> None:
    """The figures of the docs."""

    epsilon = np.linspace(0.0, 20.0, 40_001)

    def older(orders: FloatArray, rho: FloatArray, kappa: float) -> float:
        x = orders - 1.0
        logs = np.full(epsilon.size, 0.0)
        for one, cost in zip(x.tolist(), rho.tolist(), strict=True):
            least = (
                one * (cost - epsilon) - math.log(one) + (1.0 + one) * math.log(one / (1.0 + one))
            )
            logs = np.minimum(logs, least)
        delta = np.exp(logs)
        first = kappa * np.exp(epsilon) + delta
        second = 1.0 - np.exp(-epsilon) * (1.0 - kappa - delta)
        return float(min(first.min(), second.min()))

    before = older(np.array([2.0]), np.array([0.1]), 1e-3)
    found = pe.gamma_bound(pe.RenyiCurve([2.0], [0.1]), 1e-3)
    assert before / found == pytest.approx(2.95, abs=0.01)
    orders = 1.0 + np.geomspace(1e-3, 1e2, 400)
    before = older(orders, orders, 0.1)
    assert before / pe.gamma_bound(pe.ZeroConcentrated(1.0), 0.1) == pytest.approx(1.11, abs=0.01)


def test_curves_add() -> None:
    ten, whole = pe.ZeroConcentrated("1/200").composed(10), pe.ZeroConcentrated("1/20")
    assert pe.epsilon(ten, 1e-5) == pe.epsilon(whole, 1e-5)
    first, second = pe.RenyiCurve([2, 4], [0.1, 0.3]), pe.RenyiCurve([2, 4], [0.2, 0.2])
    both = pe.RenyiCurve([2, 4], [0.4, 0.8])
    assert pe.delta(first.composed(2) + second, 1.0) == pytest.approx(pe.delta(both, 1.0), rel=1e-9)
    beside = pe.RenyiCurve([2, 4], [0.1 + 2 * 0.05, 0.3 + 4 * 0.05])
    found = pe.delta(first + pe.ZeroConcentrated(0.05), 0.5)
    assert found == pytest.approx(pe.delta(beside, 0.5), rel=1e-9)
    # between two orders (α - 1) D_α is convex: at 3 at most ((2 - 1) .1 + (4 - 1) .3)/2/2
    other = pe.RenyiCurve([3], [0.1])
    at_three = pe.RenyiCurve([2, 3], [0.1 + 0.1, 0.25 + 0.1])
    assert pe.delta(first + other, 0.8) == pytest.approx(pe.delta(at_three, 0.8), rel=1e-9)
    # a sample of a curve is a step of its own
    sampled = whole.poisson_sampled(0.1)
    assert 0.0 < pe.delta(sampled.composed(2), 0.1) < pe.delta(whole.composed(2), 0.1)


def test_approximate_curves() -> None:
    plain, rough = pe.ZeroConcentrated(0.1), pe.ZeroConcentrated(0.1, delta="1/1000")
    for epsilon in (0.2, 1.0, 3.0):
        one = 1e-3 + 0.999 * pe.delta(plain, epsilon)
        assert pe.delta(rough, epsilon) == pytest.approx(one, rel=1e-12)
        told = 1.0 - 0.999**3
        thrice = told + (1.0 - told) * pe.delta(pe.ZeroConcentrated(0.3), epsilon)
        assert pe.delta(rough.composed(3), epsilon) == pytest.approx(thrice, rel=1e-9)
    curve = pe.RenyiCurve([2], [0.1], "0.01")
    assert pe.delta(curve, 0.3) == pytest.approx(
        0.01 + 0.99 * pe.delta(pe.RenyiCurve([2], [0.1]), 0.3), rel=1e-12
    )


def test_ends() -> None:
    assert pe.delta(pe.ZeroConcentrated(0), 0.0) == 0.0
    pure = pe.ZeroConcentrated(0, 1)  # D_α <= 1 for all α
    for epsilon in (0.0, 0.5, 0.99):
        exact = (math.e - math.exp(epsilon)) / (1.0 + math.e)
        assert exact <= pe.delta(pure, epsilon, bounds=True).upper
        assert pe.delta(pure, epsilon) == pytest.approx(exact, rel=5e-3)
    assert pe.delta(pure, 1.001) < 1e-7
    for unknown in (pe.RenyiCurve([2], [math.inf]), pe.ZeroConcentrated(1, 0, 1)):
        assert pe.delta(unknown, 3.0) == 1.0
        assert pe.gamma_bound(unknown, 0.1) == 1.0
    assert pe.epsilon(pe.RenyiCurve([1.0001], [3.0]), 1e-6) == math.inf
    assert pe.delta(pe.ZeroConcentrated(1e5), 10.0) == 1.0
    huge = pe.RenyiCurve([2, 1e300], [5.0, 0.01])
    assert pe.delta(huge, 0.02) < 1e-6


def test_the_functions_and_the_mechanism_agree() -> None:
    curve = pe.ZeroConcentrated(0.5)
    for epsilon in (1.0, 2.0, 4.0):
        bound = duality.from_zcdp(0.5, epsilon)
        assert bound * (1.0 - 1e-9) <= pe.delta(curve, epsilon) <= bound * (1.0 + EXCESS)
    orders = [1.5, 3.0, 9.0]
    values = [0.2, 0.3, 0.5]
    curve = pe.RenyiCurve(orders, values)
    for epsilon in (0.1, 1.0):
        assert pe.delta(curve, epsilon) <= duality.from_rdp(orders, values, epsilon) * (1 + EXCESS)


def test_json_and_words() -> None:
    curve = pe.RenyiCurve([1.5, 2, math.e], [0.1, 0.2, math.inf], "1/100")
    for made in (
        curve,
        pe.ZeroConcentrated("1/3", 1, "1/7"),
        curve.composed(3).poisson_sampled(0.1),
    ):
        assert pe.from_json(pe.to_json(made)) == made
    assert repr(pe.ZeroConcentrated(0.5).composed(3)) == "any 0.5-zCDP mechanism, 3 steps"
    assert repr(pe.RenyiCurve([2, 8], [0.1, 0.2])) == (
        "any mechanism with bounded Rényi divergences of 2 orders from 2 to 8"
    )
    assert pe.mechanisms.label_of(curve)[0].known == "upper bound"


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: pe.RenyiCurve([1], [1]), "orders must be finite numbers above 1"),
        (lambda: pe.RenyiCurve([2, math.inf], [1, 1]), "orders must be finite numbers above 1"),
        (lambda: pe.RenyiCurve([2], [-1]), "values must be >= 0"),
        (lambda: pe.RenyiCurve([2, 3], [1]), "one entry for each"),
        (lambda: pe.RenyiCurve([], []), "at least one order"),
        (lambda: pe.RenyiCurve(2, 1), "orders must be a sequence"),
        (lambda: pe.RenyiCurve([2], [1], 2), r"delta must lie in \[0, 1\]"),
        (lambda: pe.ZeroConcentrated(-1), "rho must be finite and >= 0"),
        (lambda: pe.ZeroConcentrated(1, math.inf), "xi must be finite and >= 0"),
        (lambda: pe.ZeroConcentrated(1, 0, -1), r"delta must lie in \[0, 1\]"),
    ],
)
def test_what_is_wrong_is_said(ask: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ask()
