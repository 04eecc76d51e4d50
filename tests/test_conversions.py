"""Conversions and private selection against finite laws of which all is computed exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from error_budget import check_near
from outcomes import hockey_stick
from thorough import ALL

pytest.importorskip("flint")

from conversion_truth import CONVERSIONS, LogLinear, campaign

import pyengine as pe
from pyengine import duality
from pyengine.special import ndtr, ndtri

RNG = np.random.default_rng(7)


def pair(size: int, width: float) -> tuple[Any, Any]:
    q = RNG.dirichlet(np.ones(size))
    p = q * np.exp(RNG.uniform(-width, width, size))
    return p / p.sum(), q


def test_rdp_holds_for_finite_laws() -> None:
    orders = np.concatenate([1.0 + np.geomspace(1e-3, 1.0, 20), np.linspace(2.1, 200.0, 200)])
    for _ in range(200 if ALL else 40):
        p, q = pair(int(RNG.integers(2, 7)), float(RNG.choice([0.1, 1.0, 3.0])))
        logs = orders[:, None] * np.log(p) + (1.0 - orders[:, None]) * np.log(q)
        divergences = np.logaddexp.reduce(logs, axis=1) / (orders - 1.0)
        for epsilon in (0.0, 0.1, 0.5, 2.0):
            real = hockey_stick(p, q, epsilon)
            found = duality.from_rdp(orders, np.maximum(divergences, 0.0), epsilon)
            assert real <= found * (1 + 1e-12) + 1e-15


def test_rdp_is_not_above_the_older_formula() -> None:
    for alpha, rho, epsilon in ((2.0, 0.5, 1.0), (1.01, 0.1, 0.3), (300.0, 3.0, 4.0)):
        with mpmath.workdps(40):
            a, r, e = (mpmath.mpf(x) for x in (alpha, rho, epsilon))
            older = min(mpmath.exp((a - 1) * (r - e)) / (a - 1) * (1 - 1 / a) ** a, 1)
            found = duality.from_rdp([alpha], [rho], epsilon)
            assert 0.05 * older < found <= older * (1 + mpmath.mpf(10) ** -11)
    assert duality.from_rdp([2.0, 3.0], [math.inf, math.inf], 1.0) == 1.0


def test_zcdp_takes_the_best_order() -> None:
    orders = 1.0 + np.geomspace(1e-9, 1e5, 3000)
    for rho in (1e-3, 0.1, 0.5, 4.0):
        for epsilon in (0.0, 0.2, 1.0, 5.0, 30.0):
            fine = duality.from_rdp(orders, orders * rho, epsilon)
            found = duality.from_zcdp(rho, epsilon)
            assert found <= fine * (1 + 1e-9)
            assert found >= fine * (1 - 3e-3)  # the grid of orders is 1e-2 wide
            noise = pe.GaussianMechanism(math.sqrt(0.5 / rho))
            assert found >= pe.delta(noise, epsilon, adjacency="add")
    assert duality.from_zcdp(0.1, [[0.5, 1.0]]).shape == (1, 2)


def test_gdp_of_pure_privacy_touches_from_below() -> None:
    alpha = np.linspace(1e-6, 1 - 1e-6, 20_001)
    for epsilon in (0.01, 0.5, 1.0, 3.0, 8.0):
        mu = duality.to_gdp(epsilon)
        pure = duality.trade_off_from_epsilon_delta(epsilon, 0.0, alpha)
        gaussian = np.asarray(ndtr(-np.asarray(ndtri(alpha)) - mu))
        assert (pure >= gaussian * (1 - 1e-12)).all()
        corner = 1.0 / (1.0 + math.exp(epsilon))
        assert ndtr(-ndtri(corner) - mu) == pytest.approx(corner, rel=1e-12)
    assert duality.to_gdp(0.0) == 0.0


@pytest.mark.parametrize("name", CONVERSIONS)
def test_random_inputs(name: str) -> None:
    """Of ``tools/campaigns.py conversions``: on the promised side, within the stated error."""
    found = campaign(name, 2000 if ALL else 100, "test")
    assert not found.examples, found.examples[:5]


def test_rdp_next_to_order_one_where_nearly_all_is_lost() -> None:
    """The smaller of both ratios was e^-1097 at least, and δ up to 1e-3 above the best one.

    The truths are of two Bernoulli laws, the largest p - e^ε q by a search in 50 digits.
    """
    for x, rho, epsilon, rest in (
        (2.0**-24, 7.0, 0.0, 0.000911881965554516),
        (2.0**-33, 10.0, 0.0, 4.53999297624849e-5),
        (2.0**-16, 9.0, 0.5, 0.000203468369010644),
    ):
        found = 1.0 - duality.from_rdp([1.0 + x], [rho], epsilon)
        assert rest - 1e-11 < found <= rest + 1e-15


def test_rdp_next_to_order_one() -> None:
    """(1 - 1/α)^α was formed from 1/α, and lost the digits of α - 1.

    Only such orders have the older formula alone: no divergence of order α is no loss at all.
    """
    x = 2.0**-45
    found = duality.from_rdp([1.0 + x], [0.0], 0.0)
    with mpmath.workdps(40):
        truth = mpmath.exp(-x * mpmath.log1p(1 / mpmath.mpf(x)) - mpmath.log1p(x))
    assert truth < found < truth + 1e-15
    assert 0.0 < duality.from_rdp([1.000000007451473], [0.0], 0.0) < 1e-12


def test_gdp_of_little_privacy_loss() -> None:
    """The quantile was asked next to 1/2."""
    assert duality.to_gdp(2.89e-12) == pytest.approx(3.6220778568418e-12, rel=1e-12)


def generating(runs: str, **numbers: float) -> Any:
    if runs == "poisson":
        return lambda x: np.exp(numbers["mean"] * (x - 1.0))
    eta, gamma = numbers["shape"], numbers["stopping"]
    if eta == 0.0:
        return lambda x: np.log1p(-(1 - gamma) * x) / math.log(gamma)
    return lambda x: ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


LAWS: list[dict[str, Any]] = [
    {"runs": "poisson", "mean": 3.0},
    {"runs": "poisson", "mean": 0.5},
    {"runs": "negative_binomial", "shape": 1.0, "stopping": 0.2},
    {"runs": "negative_binomial", "shape": 0.0, "stopping": 0.1},
    {"runs": "negative_binomial", "shape": -0.5, "stopping": 0.3},
    {"runs": "negative_binomial", "shape": 2.5, "stopping": 0.4},
]


@pytest.mark.parametrize("law", LAWS)
def test_selection_bounds_the_best_of_finite_runs(law: dict[str, Any]) -> None:
    phi, closest = generating(**law), 0.0
    for _ in range(60):
        p, q = pair(6, float(RNG.choice([0.05, 0.3, 1.0])))
        best = [np.diff(phi(np.concatenate([[0.0], np.cumsum(x)]))) for x in (p, q)]

        def profile(epsilon: Any, p: Any = p, q: Any = q) -> Any:
            return np.array([max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in epsilon])

        for epsilon in (0.1, 0.5, 1.0, 2.0):
            real = max(hockey_stick(*best, epsilon), hockey_stick(*best[::-1], epsilon))
            bound = duality.repeat_and_select(profile, epsilon, **law)
            assert real <= bound + 1e-15
            closest = max(closest, real / bound if bound > 1e-12 else 0.0)
    assert closest > 0.02


SHAPES = (1.0, 0.0, -0.5, -1 / 700, -0.9, -1.0 + 1e-15, 2.5, 1e-3, 1e300, 1.7e308)
ENDS: list[tuple[LogLinear, float, dict[str, Any]]] = [
    *(
        (LogLinear(a, 1.0), 50.0, {"runs": "negative_binomial", "shape": eta, "stopping": gamma})
        for a in (700.0, 744.0)
        for eta in SHAPES
        for gamma in (5e-324, 5e-320, 5e-313, 1e-310, 1e-300, 0.9, 1.0 - 2.0**-53)
    ),
    *((LogLinear(700.0, 50.0), 700.0, {"mean": mean}) for mean in (1e-300, 1e300, 1.79e308)),
]


def test_selection_from_runs_beyond_all_doubles() -> None:
    """The expected number of runs, and what is charged for failures, overflowed to δ = 1."""
    judge, found = CONVERSIONS["repeat_and_select"].judge, []
    for profile, epsilon, law in ENDS:
        bound = duality.repeat_and_select(profile, epsilon, **law)
        error, unsafe = judge(bound, profile, epsilon, law)
        assert error <= 1.0, (profile, epsilon, law, bound)
        assert not unsafe
        found.append(bound)
    assert sum(0.0 < bound < 1.0 for bound in found) > len(found) / 4


@pytest.mark.parametrize("law", LAWS[2:])
def test_means_are_those_of_the_laws(law: dict[str, Any]) -> None:
    from pyengine.numerics.selection import _mean

    phi, h = generating(**law), 1e-6
    mean = math.ldexp(*_mean(law["shape"], law["stopping"]))
    check_near("quadrature.means_of_runs", mean, (phi(1.0) - phi(1.0 - h)) / h)


def test_filter_is_exact_and_keeps_its_total() -> None:
    budget = duality.GaussianFilter(1)
    assert all(budget.spend("1/1000") for _ in range(10**4))
    assert budget.spent == pytest.approx(0.1)
    assert budget.left == pytest.approx(math.sqrt(0.99))
    assert not budget.spend(0.995)
    assert budget.spend("0.99")
    total = duality.GaussianFilter(math.sqrt(2.0))
    assert total.spend(1.0)
    assert total.spend(total.left * (1 - 1e-12))
    assert Fraction(total.spent) <= Fraction(math.sqrt(2.0)) * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: duality.from_rdp([1.0], [1.0], 1.0), "orders must be finite numbers above 1"),
        (lambda: duality.from_rdp([2.0], [-1.0], 1.0), "divergences must be >= 0"),
        (lambda: duality.from_rdp([2.0, 3.0], [1.0], 1.0), "one for each order"),
        (lambda: duality.from_zcdp(0.0, 1.0), "rho must be positive"),
        (lambda: duality.to_gdp(-1.0), "epsilon must lie in"),
        (lambda: duality.GaussianFilter(0), "mu must be positive"),
        (lambda: duality.GaussianFilter(1).spend(-1), "mu must be finite and >= 0"),
        (lambda: duality.repeat_and_select(np.zeros_like, 1.0), "needs mean"),
        (
            lambda: duality.repeat_and_select(np.zeros_like, 1.0, mean=1.0, shape=1.0),
            "none of shape",
        ),
        (
            lambda: duality.repeat_and_select(np.zeros_like, 1.0, runs="negative_binomial"),
            "needs shape and stopping",
        ),
        (
            lambda: duality.repeat_and_select(
                np.zeros_like, 1.0, runs="negative_binomial", shape=-1.0, stopping=0.5
            ),
            "shape must be finite and above -1",
        ),
        (
            lambda: duality.repeat_and_select(
                np.zeros_like, 1.0, runs="negative_binomial", shape=1.0, stopping=1.0
            ),
            r"stopping must lie in \(0, 1\)",
        ),
        (lambda: duality.repeat_and_select(np.ones_like, 1.0, runs="fixed"), "runs must be one of"),
        (lambda: duality.repeat_and_select(lambda _: 0.5, 1.0, mean=1.0), "keep the shape"),
    ],
)
def test_wrong_input(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
