"""Printed formulas that are wrong: each fails here, and its correction passes.

One test a row of docs/errata.md, which says where each formula stands; the tests are named
as the rows are.  Truth comes from the definitions: sums over finite laws, densities, samples.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from error_budget import check_near
from outcomes import hockey_stick

import pyengine as pe
from pyengine.special import ncx2_cdf, ncx2_isf, ndtr, ndtri

PAGE = Path(__file__).parents[1] / "docs" / "errata.md"


def gaussian(mu: float, alpha: float) -> float:
    """Trade-off function of N(0, 1) against N(mu, 1)."""
    return float(ndtr(-ndtri(alpha) - mu))


def test_every_row_has_its_test() -> None:
    names = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.M)
    assert sorted(names) == sorted(name[5:] for name in ROWS)


def test_clt_exponent() -> None:
    noise, p, steps = 2.0, 0.002, 10**6
    truth = pe.trade_off(pe.dp_sgd(noise, p, steps), 0.1, adjacency="add")

    def limit(exponent: float) -> float:
        return gaussian(p * math.sqrt(steps * math.expm1(exponent)), 0.1)

    check_near("limits.clt_exponent", limit(1 / noise**2), truth)
    assert limit(1 / noise) < 0.7 * truth


def test_slm_to_epsilon() -> None:
    p, mu, steps = 0.1, 0.5, 20
    # loss of one step with the record, at outputs beyond the shift: the ratio is constant there
    z = np.linspace(mu, 10.0, 50)
    without, shifted = np.exp(-np.abs(z)), np.exp(-np.abs(z - mu))
    largest = steps * float(np.log(((1 - p) * without + p * shifted) / without).max())
    assert steps * math.log1p(p * math.expm1(mu)) == pytest.approx(largest, rel=1e-13)
    assert math.log1p(p * math.expm1(steps * mu)) > 5 * largest


def test_without_replacement() -> None:
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.2, 0.7])
    rate, e_to_epsilon = 1e-9, 1.5
    mixture = (1 - rate) * q + rate * p
    # advanced joint convexity: H_{1 + r(t - 1)}((1 - r) Q + r P ‖ Q) = r H_t(P ‖ Q)
    t = 1 + (e_to_epsilon - 1) / rate
    assert hockey_stick(mixture, q, math.log(e_to_epsilon)) == pytest.approx(
        rate * hockey_stick(p, q, math.log(t)), abs=1e-16
    )
    convex = hockey_stick(mixture, q, math.log(1 + rate * 0.5))
    check_near("quadrature.joint_convexity", convex, rate * hockey_stick(p, q, math.log(1.5)))
    # as printed: a record that is nearly never sampled is given away
    assert hockey_stick(mixture, p, math.log(e_to_epsilon)) > 0.5


def test_number_of_samples() -> None:
    def samples(failure: float) -> int:
        return math.ceil(math.log(2 * 40 / failure) / (2 * 0.001**2))

    assert samples(0.01) == 4_493_599
    assert samples(0.1) == 3_342_306  # the printed number, for 90 % instead of 99 %


def test_table_1() -> None:
    run = pe.dp_sgd(noise_multiplier=0.8, sampling_probability=0.001, steps=10_000)
    delta = [1e-7, 1e-6, 1e-5, 1e-4]
    epsilon = pe.epsilon(run, delta)
    corrected = [1.17076284, 0.94719569, 0.78238778, 0.62860624]
    np.testing.assert_allclose(epsilon, corrected, rtol=0, atol=5e-9)
    printed = np.array([1.19, 0.96, 0.80, 0.64])
    assert np.all(printed - epsilon > 0.01)  # beyond rounding
    assert np.all(pe.delta(run, printed) < 0.95 * np.array(delta))


def mip(n_effective: float, d: int) -> float:
    """Equation 181: μ_MIP at K = d."""
    return math.sqrt(2 * d / (2 * n_effective + 1))


def test_mip_of_dp() -> None:
    n, d, clip, mu = 50, 1000, 3.0, 0.4
    tau = 2 * clip / (n * mu)  # equation 182
    truth = mip(n + (n * tau / clip) ** 2, d)
    assert math.sqrt(d / (n + 4 / mu**2 + 0.5)) == pytest.approx(truth, rel=1e-14)
    assert math.sqrt(d / (n + 4 * clip**2 / mu**2 + 0.5)) < 0.8 * truth


def test_dp_of_mip() -> None:
    n, d = 50, 1000
    limit = mip(n, d)  # without noise

    def variance(mu: float) -> float:
        """Equation 184, divided by the square of C."""
        return (d / mu**2 - 0.5 - n) / n**2

    assert variance(0.9 * limit) > 0.0  # the printed condition says: no solution
    assert variance(1.1 * limit) < 0.0
    mu_dp = 2 / (n * math.sqrt(variance(0.9 * limit)))
    assert mip(n + 4 / mu_dp**2, d) == pytest.approx(0.9 * limit, rel=1e-12)


def test_gdp_composition() -> None:
    mus = (0.1, 0.2, 0.3)
    both = pe.compose(*(pe.GaussianMechanism(1 / mu) for mu in mus))
    truth = pe.trade_off(both, 0.5, adjacency="add")
    assert gaussian(math.sqrt(sum(mu**2 for mu in mus)), 0.5) == pytest.approx(truth, rel=1e-13)
    assert gaussian(math.sqrt(sum(mus)), 0.5) < 0.8 * truth


def glir_samples(n: int, d: int) -> tuple[np.ndarray, float]:
    """Squared distances of a non-member's gradient to averages of n others, and its K; Σ = 1."""
    rng = np.random.default_rng(1)
    theta = np.full(d, 0.8)
    means = rng.standard_normal((40_000, d)) / math.sqrt(n)
    return np.square(means - theta).sum(axis=1), float(theta @ theta)


def test_glir_statistic() -> None:
    n, d = 4, 3
    square, k = glir_samples(n, d)
    four_sigma = 4 * math.sqrt(1 / 12 / square.size)  # of the mean of uniform p-values
    assert abs(ncx2_cdf(n * square, d, n * k).mean() - 0.5) < four_sigma
    assert abs(ncx2_cdf((n - 1) * square, d, n * k).mean() - 0.5) > 20 * four_sigma


def test_glir_p_value() -> None:
    n, d = 4, 3
    square, k = glir_samples(n, d)
    statistic = n * square
    p = ncx2_cdf(statistic, d, n * k)
    # log F(S) of a non-member is minus an exponential variable: mean -1, variance 1
    assert abs(np.log(p).mean() + 1.0) < 4 / math.sqrt(p.size)
    # F⁻¹ takes probabilities, and nearly all statistics are above 1
    assert np.mean(statistic > 1.0) > 0.9


def test_clipping() -> None:
    clip, rng = 1.0, np.random.default_rng(2)
    gradients = rng.standard_normal((100, 5))
    ratio = clip / np.linalg.norm(gradients, axis=1, keepdims=True)
    tolerance = 1 + 1e-12
    assert np.linalg.norm(gradients * np.minimum(1, ratio), axis=1).max() <= clip * tolerance
    assert np.linalg.norm(gradients * np.maximum(1, ratio), axis=1).min() >= clip / tolerance
    assert np.linalg.norm(gradients * np.maximum(1, ratio), axis=1).max() > 2 * clip


def test_norm_of_l1() -> None:
    n, tau = 20, 0.3  # τ̂, of the noise
    difference = np.array([0.5, -1.0, 2.0])  # μ̃ - x̃'
    k = float(difference @ difference)
    l1 = difference + n * tau**2 * difference  # mean of equation 68
    n_effective = n + (n * tau) ** 2
    assert n_effective**2 / n**2 * k == pytest.approx(float(l1 @ l1), rel=1e-14)
    assert n_effective / n**2 * k < 0.1 * float(l1 @ l1)


def test_monte_carlo_mean() -> None:
    mu, kappa, number = 1.0, 0.1, 200_000
    z = np.random.default_rng(0).standard_normal(number)
    ratios = np.sort(np.exp(mu * z - mu * mu / 2))[::-1]
    kept = ratios[: math.ceil(kappa * number)]
    truth = 1.0 - gaussian(mu, kappa)
    check_near("simulations.mean_ratio", kept.sum() / number, truth)
    assert kept.mean() > 1.0


def test_prior_weight() -> None:
    log_likelihood = np.array([-2.0, -1.9])  # s_z
    prior = np.array([0.9, 0.1])
    posterior = np.exp(log_likelihood) * prior
    best = int(posterior.argmax())
    assert int((log_likelihood + np.log(prior)).argmax()) == best
    assert int((log_likelihood * prior).argmax()) != best


def test_blow_up_function() -> None:
    first, second = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.4, 0.2, 0.1, 0.3])
    kappa, truth = 0.05, 0.3  # Neyman and Pearson: the last outcome

    def tv(a: float, one: np.ndarray, other: np.ndarray) -> float:
        return float(np.abs(one - a * other).sum())

    def infimum(*, in_order: bool, zero: bool) -> float:
        values = [0.0] if zero else []
        grid = np.unique(np.concatenate([second / first, first / second, np.linspace(1, 50, 5000)]))
        for a in grid[grid >= 1]:
            left = tv(a, first, second) if in_order else tv(a, second, first)
            values.append(a * kappa + (left + 1 - a) / 2)
            values.append((2 * kappa + tv(a, first, second) + a - 1) / (2 * a))
        return min(values)

    assert infimum(in_order=False, zero=False) == pytest.approx(truth, rel=1e-12)
    assert infimum(in_order=True, zero=True) == 0.0
    assert infimum(in_order=True, zero=False) < 0.3 * truth  # below a supremum that is reached


def test_laplace_magnitude() -> None:
    mu = 0.6

    def folded_cdf(x: float) -> float:
        return (math.exp(-abs(x - mu)) * (0.5 if x < mu else -0.5) + (x >= mu)) - (
            0.5 * math.exp(-x - mu)
        )

    def truth(alpha: float) -> float:
        """Reject large magnitudes: e^{-x} where the folded law has the CDF alpha."""
        low, high = 0.0, 50.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if folded_cdf(middle) < alpha else (low, middle)
        return math.exp(-low)

    def inverse(alpha: float, threshold: float) -> float:
        if alpha < threshold:
            grown = alpha * math.exp(mu)
            return 1 / (grown + math.sqrt(grown**2 + 1))
        return (1 - alpha) / math.cosh(mu)

    right, printed = 0.5 - 0.5 * math.exp(-2 * mu), 0.5 - 0.5 * math.exp(-mu)
    for alpha in (0.1, 0.5 * (right + printed), 0.9):
        assert inverse(alpha, right) == pytest.approx(truth(alpha), rel=1e-12)
    alpha = 0.7 * printed + 0.3 * right
    assert inverse(alpha, printed) != pytest.approx(truth(alpha), rel=1e-3)


def relaxed(alpha: float, d: float, nc: float) -> float:
    return float(ncx2_cdf(ncx2_isf(alpha, d, 0.0), d, nc))


def test_dimension_limit() -> None:
    d, mu, steps, alpha = 10**6, 0.1, 10**5, 0.1
    truth = relaxed(alpha, d, steps * mu**2)
    start = -float(ndtri(alpha))
    check_near("limits.dimension", ndtr(start - steps * mu**2 / math.sqrt(2 * d)), truth)
    assert float(ndtr(start - steps * math.sqrt(mu / (2 * d)))) < 1e-10 * truth


def test_dimension_shift() -> None:
    d, mu, steps, alpha = 10**6, 0.1, 3 * 10**5, 0.1
    nc = steps * mu**2
    root = math.sqrt(2 * nc / d + 1)
    start = -float(ndtri(alpha)) / root
    truth = relaxed(alpha, d, nc)
    check_near("limits.dimension_shift", ndtr(start - nc / (math.sqrt(2 * d) * root)), truth)
    assert float(ndtr(start - math.sqrt(2) * nc / (2 * d * root))) > 4 * truth


def test_effect_size() -> None:
    """Of two mechanisms that differ in the unit of the query only, all answers are the same."""
    clip, sigma, unit = 1.5, 1.0, 10.0
    scaled_clip, scaled_sigma = unit * clip, unit * sigma
    assert scaled_clip / scaled_sigma == clip / sigma
    assert scaled_clip / scaled_sigma**2 != clip / sigma**2
    one = pe.trade_off(pe.GaussianMechanism(sigma / clip), 0.1)
    assert pe.trade_off(pe.GaussianMechanism(scaled_sigma / scaled_clip), 0.1) == one
    as_printed = pe.GaussianMechanism(1 / (scaled_clip / scaled_sigma**2))
    assert abs(pe.trade_off(as_printed, 0.1) - one) > 0.1


def test_unequal_noise() -> None:
    """The estimate of highest likelihood weighs by precision, and finds the record more often."""
    sensitivity, sigma = np.array([1.0, 1.0]), np.array([1.0, 3.0])
    outputs = np.array([0.4, -2.0])
    places = np.linspace(-3.0, 3.0, 60_001)
    misfit = np.sum(((outputs - np.outer(places, sensitivity)) / sigma) ** 2, axis=1)
    likeliest = places[np.argmin(misfit)]
    weights = sensitivity / sigma**2
    assert likeliest == pytest.approx(weights @ outputs / (weights @ sensitivity), abs=1e-9)
    assert abs(likeliest - outputs.mean()) > 0.5
    printed = np.sum(sensitivity) ** 2 / np.sum(sigma**2)
    correct = np.sum(sensitivity**2 / sigma**2)
    for weight, nc in ((np.ones(2), printed), (weights, correct)):
        deviation = math.sqrt(np.sum(weight**2 * sigma**2))
        assert (weight @ sensitivity / deviation) ** 2 == pytest.approx(nc, rel=1e-14)
    assert relaxed(0.1, 1, correct) < relaxed(0.1, 1, printed) - 0.1


ROWS = [
    name
    for name in list(globals())
    if name.startswith("test_") and name != "test_every_row_has_its_test"
]
