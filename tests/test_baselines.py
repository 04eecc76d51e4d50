"""Bounds on reconstruction: values, their order, and the papers' table of them."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import mpmath
import numpy as np
import pytest
from error_budget import check_near

import pyengine as pe
from pyengine.baselines import (
    advantage,
    compare,
    dp_gamma,
    fano_success,
    gaussian_information,
    gaussian_renyi_gamma,
    mse_lower_bound,
    orthogonal_information,
    renyi_divergence,
    renyi_gamma,
    renyi_gamma_bound,
    substitution_cost,
)

RUN = pe.dp_sgd(1.0, 0.1, 30)


def test_renyi_divergence_of_integer_order() -> None:
    """Binomial sum of Mironov, Talwar and Zhang 2019, section 3.3."""
    p, noise, steps = 0.01, 0.8, 100
    orders = [2, 3, 7, 20]
    sums = [
        sum(
            comb(a, k) * (1 - p) ** (a - k) * p**k * np.exp(k * (k - 1) / (2 * noise**2))
            for k in range(a + 1)
        )
        for a in orders
    ]
    expected = [steps * np.log(total) / (a - 1) for a, total in zip(orders, sums, strict=True)]
    found = renyi_divergence(pe.dp_sgd(noise, p, steps), orders)
    assert np.allclose(found, expected, rtol=1e-11, atol=0)


def test_renyi_divergence_of_laplace() -> None:
    """Proposition 6 of Mironov 2017."""
    a, mu = np.array([1.5, 3.0, 20.0]), 0.7
    inner = a / (2 * a - 1) * np.exp(mu * (a - 1)) + (a - 1) / (2 * a - 1) * np.exp(-mu * a)
    for adjacency in ("add", "remove"):
        found = renyi_divergence(pe.LaplaceMechanism(1 / mu), a, adjacency=adjacency)
        assert np.allclose(found, np.log(inner) / (a - 1), rtol=1e-11)


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_renyi_divergence_is_continuous_at_order_one(adjacency: str) -> None:
    kl, near = renyi_divergence(RUN, [1.0, 1.0 + 1e-5], adjacency=adjacency)
    check_near("limits.order_one", near, kl)
    assert near > kl


def test_renyi_bound_is_equation_2_without_sampling() -> None:
    mechanism, kappa = pe.GaussianMechanism(3.0).composed(20), np.array([1e-9, 1e-3, 0.1, 0.9])
    closed = gaussian_renyi_gamma(kappa, 3.0, steps=20)
    assert np.allclose(renyi_gamma_bound(mechanism, kappa), closed, rtol=1e-9, atol=1e-9)
    orders = np.geomspace(1.001, 100.0, 4000)
    curve = renyi_gamma(kappa, orders, orders * 20 / (2 * 3.0**2))
    assert np.all(curve >= closed * (1 - 1e-12))
    check_near("quadrature.renyi_orders", curve, closed)
    assert gaussian_renyi_gamma(0.5, 0.3) == 1.0
    assert renyi_gamma(0.0, 2.0, 1.0) == 0.0


@pytest.mark.parametrize("seed", range(25))
def test_every_bound_holds(seed: int) -> None:
    """Drawn at random where the exact engines are quick: they are the same at the edges."""
    rng = np.random.default_rng(seed)
    p = 1.0 if seed % 5 == 0 else rng.uniform(1e-3, 0.5)
    mechanism = pe.dp_sgd(rng.uniform(1.0, 10.0), p, int(rng.integers(100, 3000)))
    (row,) = compare(mechanism, 10 ** rng.uniform(-8.0, -0.01))
    assert row.kappa <= row.exact
    for bound in (row.renyi, row.dp, row.pure_dp):
        assert row.exact <= bound * (1 + 1e-9)


def test_compare() -> None:
    rows = compare(RUN, [0.1, 0.03], delta=1e-3)
    assert [row.kappa for row in rows] == [0.1, 0.03]
    first, second = rows
    assert first.exact == pe.gamma_bound(RUN, 0.1)
    assert first.exact_advantage == pytest.approx((first.exact - 0.1) / 0.9)
    assert first.dp == dp_gamma(0.1, pe.epsilon(RUN, 1e-3, adjacency="remove"), 1e-3)
    assert first.pure_dp == 1.0
    assert first.fano == fano_success(10, renyi_divergence(RUN, 1.0))
    assert np.isnan(second.fano)
    assert first.mse == second.mse == mse_lower_bound(substitution_cost(RUN))
    (silent,) = compare(pe.GaussianMechanism(1.0).composed(0), 0.1)
    assert silent.mse == np.inf


def test_compare_at_tiny_kappa() -> None:
    """Fano's inequality for 10^12 candidates took an array of as many."""
    (row,) = compare(RUN, 1e-12)
    assert row.exact < row.renyi < 1.0
    assert row.exact < row.fano < 1.0


def test_substitution_without_sampling_is_twice_the_distance() -> None:
    assert substitution_cost(pe.GaussianMechanism(2.0).composed(3)) == pytest.approx(3.0, rel=1e-14)
    for noise in (0.2, 1.0, 7.0):  # log(2/3 e^d + 1/3 e^-2d) at distance d
        d = 2.0 / noise
        moment = np.log(2.0 / 3.0 * np.exp(d) + np.exp(-2.0 * d) / 3.0)
        assert substitution_cost(pe.LaplaceMechanism(noise)) == pytest.approx(moment, rel=1e-12)


@pytest.mark.parametrize("p", [1e-6, 0.03, 0.6])
@pytest.mark.parametrize("noise", [0.4, 1.0, 5.0])
def test_substitution_on_a_sample_against_quadrature(noise: float, p: float) -> None:
    mu = 1 / mpmath.mpf(noise)
    for step, log_density in (
        (pe.GaussianMechanism(noise), lambda z: -(z**2) / 2 - mpmath.log(2 * mpmath.pi) / 2),
        (pe.LaplaceMechanism(noise), lambda z: -abs(z) - mpmath.log(2)),
    ):

        def square(z: mpmath.mpf, f: Callable[..., mpmath.mpf] = log_density) -> mpmath.mpf:
            plain, up, down = (mpmath.exp(f(z - s * mu)) for s in (0, 1, -1))
            a, b = (1 - p) * plain + p * up, (1 - p) * plain + p * down
            return (b - a) ** 2 / a

        with mpmath.workdps(30):
            far = 30 + 8 * mu
            chi = mpmath.quad(square, [-far, -3 * mu, -mu, 0, mu, 3 * mu, far])
            truth = float(mpmath.log1p(chi))
        sampled = step.poisson_sampled(p)
        assert substitution_cost(sampled) == pytest.approx(truth, rel=1e-11)
        one_order = renyi_divergence(pe.compose(sampled), 2.0)
        assert substitution_cost(sampled) >= one_order * (1 - 1e-9)


def test_fano_reproduces_hayes_table_2() -> None:
    """Every printed digit, with Δ = √2."""
    noises = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    printed = {
        10: "0.976 0.593 0.380 0.274 0.213 0.174",
        100: "0.861 0.346 0.195 0.131 0.097 0.076",
    }
    for size, text in printed.items():
        for noise, number in zip(noises, text.split(), strict=True):
            information = gaussian_information(size, noise, sensitivity=2**0.5)
            bound = advantage(fano_success(size, information), 1 / size)
            assert f"{bound:.3f}" == number


@pytest.mark.parametrize(("size", "noise"), [(2, 1.0), (10, 0.5), (100, 2.0)])
def test_orthogonal_information_against_samples(size: int, noise: float) -> None:
    mu, number = 1.0 / noise, 50_000
    s = mu * np.random.default_rng(1).standard_normal((number, size))
    s[:, 0] += mu * mu
    loss = np.log(np.exp(s - s[:, :1]).sum(axis=1))
    found = orthogonal_information(size, noise)
    assert abs(np.log(size) - loss.mean() - found) < 5.0 * loss.std() / number**0.5
    assert found <= gaussian_information(size, noise, sensitivity=2**0.5)
    assert orthogonal_information(size, 2 * noise, steps=4) == pytest.approx(found, rel=1e-12)


def test_orthogonal_information_of_two_candidates() -> None:
    """For two candidates it is a one-dimensional integral over their difference."""
    mu = 1.3
    x = np.linspace(-12, 12, 4001)
    weight = np.exp(-0.5 * x * x)
    weight /= weight.sum()
    loss = np.log1p(np.exp(np.sqrt(2) * mu * x - mu * mu))
    expected = np.log(2) - weight @ loss
    assert orthogonal_information(2, 1 / mu) == pytest.approx(expected, rel=1e-11)


def test_order_of_the_bounds_and_where_it_fails() -> None:
    """γ <= Fano with exact information <= Fano <= Rényi has exceptions; these are two."""

    def all_bounds(size: int, noise: float) -> list[float]:
        return [
            float(pe.gamma_bound(pe.GaussianMechanism(noise), 1 / size)),
            fano_success(size, orthogonal_information(size, noise)),
            fano_success(size, gaussian_information(size, noise, sensitivity=2**0.5)),
            gaussian_renyi_gamma(1 / size, noise),
        ]

    # the sizes and noises of the papers' comparison
    for size in (10, 100):
        for noise in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0):
            exact, fine, coarse, renyi = all_bounds(size, noise)
            assert exact <= fine <= coarse
            assert exact <= renyi
    # two candidates: orthogonal gradients cannot reach γ, so a bound for them may lie below it
    exact, fine, *_ = all_bounds(2, 1.0)
    assert fine < exact
    # Rényi's bound is the better one there
    *_, coarse, renyi = all_bounds(10, 1.0)
    assert renyi < coarse


def test_fano_success() -> None:
    # the root is double there
    assert fano_success(10, 0.0) == pytest.approx(0.1, rel=1e-15)
    assert fano_success(10, np.log(10)) == 1.0
    assert fano_success([0.5, 0.25, 0.25], 0.1) < fano_success([0.5, 0.25, 0.25], 0.2)
    # at success 1 - t the inequality holds with equality
    t = 1.0 - fano_success(7, 0.4)
    slack = np.log(7) - 0.4 + t * np.log(t) + (1 - t) * np.log1p(-t) - t * np.log(6)
    assert abs(slack) < 1e-12


def test_dp_mse_advantage() -> None:
    assert dp_gamma(0.01, np.log(5.0), 0.001) == pytest.approx(0.051)
    assert dp_gamma(0.0, np.inf) == 0.0
    assert dp_gamma([0.1, 0.9], 1.0).tolist() == pytest.approx([0.1 * np.e, 1.0], rel=1e-14)
    assert mse_lower_bound(np.log(2.0)) == pytest.approx(0.25)
    assert mse_lower_bound(0.0) == np.inf
    # width² e^-ε/4 is a double where e^(-ε/2) is none
    found = mse_lower_bound(1700.0, diameter=1e268)
    assert found == pytest.approx(1.251182821981427e-203, rel=1e-14, abs=0.0)
    assert mse_lower_bound(np.log(2.0), diameter=[1.0, 3.0]) == pytest.approx(1.25)
    assert advantage(0.55, 0.1) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: renyi_gamma(0.1, 1.0, 1.0), "order must be above 1"),
        (lambda: renyi_gamma(0.1, [2.0, 3.0], 1.0), "must have one shape"),
        (lambda: renyi_divergence(RUN, 0.5), r"order must lie in \[1, inf\]"),
        (lambda: renyi_divergence(RUN, np.inf), "order must be finite"),
        (lambda: renyi_divergence(pe.RandomizedResponse(0.7), 2.0), "Gaussian and Laplace"),
        (lambda: fano_success(1, 0.1), "prior must be an integer >= 2"),
        (lambda: fano_success([0.5, 0.4], 0.1), "sum to 1"),
        (lambda: fano_success(5, -1.0), "information must be at least 0"),
        (lambda: compare(RUN, 1.0), r"kappa must lie in \(0, 1\)"),
        (lambda: advantage(0.5, 1.0), "prior must be below 1"),
        (lambda: mse_lower_bound(1.0, diameter=0.0), "diameter must be positive"),
    ],
)
def test_bad_input(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
