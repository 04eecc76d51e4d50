"""Membership inference privacy: the paper's tables, conversions and stochastic composition."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from error_budget import check_near
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

import pyengine as pe
from pyengine.membership import (
    ConvexTradeOff,
    GaussianTradeOff,
    NoisySGDStep,
    composed_mu,
    gdp_of_gmip,
    gmip_of_gdp,
    noise_for_gmip,
    sgd_mu,
    step_mu,
    stochastic_composition,
    stochastic_composition_over,
    worst_case,
)

# Leemann et al. (2023), Table 4: N, d, n, epochs, C; and Table 5 as printed, noise for GMIP and GDP
SETTINGS = {
    "CIFAR-10": (48000, 650, 400, 10, 500.0),
    "Purchase": (54855, 2580, 795, 3, 2000.0),
    "Adult": (43000, 1026, 1000, 20, 800.0),
}
MUS = (
    "0.40 0.52 0.66 0.86 1.11 1.43 1.84 2.37 3.05 3.94",
    "5.08 6.55 8.44 10.88 14.03 18.09 23.33 30.08 38.78 50.00",
)
TABLE_5 = {
    "CIFAR-10": (
        "2.84 2.44 2.13 0.00 0.00 0.00 0.00 0.00 0.00 0.00 "
        "0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00",
        "2.84 2.44 2.13 1.89 1.70 1.55 1.42 1.32 1.24 1.17 "
        "1.11 1.06 1.02 0.98 0.94 0.91 0.88 0.85 0.83 0.81",
    ),
    "Purchase": (
        "4.72 4.14 3.68 3.32 3.04 2.81 0.00 0.00 0.00 0.00 "
        "0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00",
        "4.72 4.14 3.68 3.32 3.04 2.81 2.62 2.46 2.32 2.21 "
        "2.11 2.02 1.94 1.87 1.81 1.75 1.70 1.65 1.61 1.57",
    ),
    "Adult": (
        "3.38 2.77 2.30 1.93 1.65 0.00 0.00 0.00 0.00 0.00 "
        "0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00",
        "3.38 2.77 2.30 1.93 1.65 1.43 1.26 1.13 1.02 0.94 "
        "0.87 0.81 0.77 0.73 0.69 0.66 0.63 0.61 0.59 0.57",
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_table_5(name: str) -> None:
    """All printed digits; μ is equally spaced in its logarithm, and printed to two decimals."""
    size, d, n, epochs, clip = SETTINGS[name]
    mus = np.geomspace(0.4, 50.0, 20)
    assert [f"{mu:.2f}" for mu in mus] == " ".join(MUS).split()
    levels = [
        noise_for_gmip(
            mu,
            batch_size=n,
            dataset_size=size,
            steps=epochs * size // n,
            parameters=d,
            clip=clip,
        )
        for mu in mus
    ]
    printed = TABLE_5[name]
    assert [f"{level.noise:.2f}" for level in levels] == printed[0].split()
    assert [f"{level.gdp:.2f}" for level in levels] == printed[1].split()


def test_tables_3_and_4() -> None:
    """Table 3: μ_step ≈ 1.14, and 2.54 after five steps; Table 4: n divides N."""
    for n, d in ((500, 650), (1970, 2580), (790, 1026)):
        mu = NoisySGDStep(n, d, d).mu
        assert mu == pytest.approx(math.sqrt(2 * d / (2 * n + 1)), rel=1e-14)
        assert 1.13 < mu < 1.145
        assert 2.54 < composed_mu([mu] * 5) < 2.56
    assert all(size % n == 0 for size, _, n, _, _ in SETTINGS.values())


def test_equation_8_tends_to_equation_9() -> None:
    """Figure 1: the exact function tends to the Gaussian one as n and d = K grow."""
    alpha = np.linspace(0.01, 0.99, 50)
    gap = []
    for factor in (1, 10, 100, 10_000):
        step = NoisySGDStep(10 * factor, 20 * factor, 20 * factor)
        gap.append(float(np.max(np.abs(step(alpha) - GaussianTradeOff(step.mu)(alpha)))))
    assert all(later < earlier for earlier, later in pairwise(gap))
    assert gap[-1] < 2e-4


def test_equation_8_against_simulation() -> None:
    """Means of normal gradients with and without a record, tested by the likelihood ratio."""
    rng = np.random.default_rng(2)
    n, d, trials = 12, 5, 200_000
    record = rng.normal(size=d) * 1.5
    member = (rng.normal(size=(trials, d)) * math.sqrt(n - 1) + record) / n
    other = rng.normal(size=(trials, d)) / math.sqrt(n)
    step = NoisySGDStep(n, d, float(record @ record))
    scores = [np.sum((x - record) ** 2, axis=1) for x in (other, member)]
    for alpha in (0.01, 0.1, 0.4):
        found = np.mean(scores[1] <= np.quantile(scores[0], alpha))
        assert found == pytest.approx(step.power(alpha), abs=0.006)


def test_noise_counts_as_a_larger_batch() -> None:
    step = NoisySGDStep(400, 650, 600.0, noise=2.5, clip=500.0)
    assert step.effective_batch_size == 404.0
    assert step.trade_off(0.2) == NoisySGDStep(404.0, 650, 600.0).trade_off(0.2)
    exact = NoisySGDStep("400", 650, "600", noise="2.5", clip="500")
    assert exact.trade_off(0.2) == step.trade_off(0.2)
    assert hash(step) == hash(NoisySGDStep(400.0, 650, 600.0, 2.5, 500.0))


@given(
    st.floats(1.5, 1e6),
    st.integers(1, 10**9),
    st.floats(0.05, 20.0),
    st.floats(1e-9, 1.0 - 1e-9),
)
@settings(max_examples=100, deadline=None)
def test_step_properties(n: float, d: int, ratio: float, alpha: float) -> None:
    step = NoisySGDStep(n, d, d * ratio)
    beta = step.trade_off(alpha)
    assert 0.0 <= beta <= 1.0 - alpha + 1e-15
    assert beta + step.power(alpha) == pytest.approx(1.0, abs=1e-14)
    assert math.exp(step.log_trade_off(alpha)) == pytest.approx(beta, rel=1e-9)
    less = NoisySGDStep(n, d, d * ratio * 0.5).trade_off(alpha)
    assert less >= beta * (1 - 1e-9)  # more susceptible is easier
    noisy = NoisySGDStep(n, d, d * ratio, noise=1.0, clip=2.0).trade_off(alpha)
    assert noisy >= beta * (1 - 1e-9)


@given(st.floats(2.0, 1e5), st.integers(1, 10**6), st.floats(-5.0, 5.0))
@settings(max_examples=60, deadline=None)
def test_slope_of_a_step(n: float, d: int, c: float) -> None:
    """No point lies below the tangent at the point of slope -e^c."""
    step = NoisySGDStep(n, d, float(d))
    level, error = (float(x[0]) for x in step.at_slope(np.array([c])))
    alpha = np.concatenate([np.linspace(0.0, 1.0, 101), np.geomspace(1e-12, 0.1, 30)])
    height = step.trade_off(alpha) + math.exp(c) * alpha
    assert np.all(height >= (error + math.exp(c) * level) * (1 - 1e-11))


@given(st.floats(1e-9, 40.0), st.floats(1e-3, 10.0))
@settings(max_examples=100, deadline=None)
def test_sgd_mu_and_its_inverse(s: float, c: float) -> None:
    mu = sgd_mu(s, c)
    if math.isfinite(mu):
        assert sgd_mu(step_mu(mu, c), c) == pytest.approx(mu, rel=1e-12)
        assert mu >= c * s * (1 - 1e-12)


def test_sgd_mu_against_its_integral() -> None:
    """μ² = 2c² E[(R - 1)²; R > 1], R the likelihood ratio of N(s, 1) over N(0, 1)."""
    for s in (1e-3, 0.05, 0.999, 1.0, 1.001, 2.0, 4.999, 5.001):

        def excess(x: float, s: float = s) -> float:
            return float(np.expm1(s * x - 0.5 * s * s) ** 2 * stats.norm.pdf(x))

        square, _ = integrate.quad(excess, 0.5 * s, 2.0 * s + 14.0, epsabs=0, epsrel=1e-12)
        assert sgd_mu(s, 0.3) == pytest.approx(0.3 * math.sqrt(2.0 * square), rel=1e-10)


def test_conversion() -> None:
    for mu in (0.05, 0.2, 0.36):
        step = {"parameters": 650, "batch_size": 5000}
        dp = gdp_of_gmip(mu, **step)
        tau = 2.0 * 7.0 / (5000 * dp)
        # the corrected form: no clipping norm is left
        direct = NoisySGDStep(5000, 650, 650, noise=tau, clip=7.0).mu
        assert direct == pytest.approx(mu, rel=1e-12)
        assert math.sqrt(650 / (5000 + 4 / dp**2 + 0.5)) == pytest.approx(mu, rel=1e-12)
        assert gmip_of_gdp(dp, **step) == pytest.approx(min(mu, dp), rel=1e-12)
    assert gdp_of_gmip(0.41, parameters=650, batch_size=4000) == math.inf
    bare = NoisySGDStep(4000, 650, 650).mu
    assert gmip_of_gdp(math.inf, parameters=650, batch_size=4000) == pytest.approx(bare, rel=1e-14)
    assert gmip_of_gdp(0.01, parameters=650, batch_size=4000) == 0.01
    assert gmip_of_gdp(0.0, parameters=650, batch_size=4000) == 0.0


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-160, 1e-9, 1.0, 1e9, 1e160, 1e300])
def test_parameters_at_the_ends_of_doubles(size: float) -> None:
    mp.mp.dps = 50
    exact = mp.mpf(size)
    for d, n in ((1, 2.0), (650, 4000.0), (10**9, 3e6)):
        forward = min(mp.sqrt(d / (n + 4 / exact**2 + mp.mpf("0.5"))), exact)
        assert gmip_of_gdp(size, parameters=d, batch_size=n) == pytest.approx(float(forward), 1e-14)
        rest = d / exact**2 - n - mp.mpf("0.5")
        back = float(2 / mp.sqrt(rest)) if rest > 0 else math.inf
        assert gdp_of_gmip(size, parameters=d, batch_size=n) == pytest.approx(back, 1e-13)
    assert composed_mu([size] * 4) == pytest.approx(2.0 * size, rel=1e-15)
    if size <= 1e-9:
        share = 1 + exact / mp.sqrt(2 * mp.pi)
        assert sgd_mu(size, 0.5) == pytest.approx(float(exact / 2 * share), rel=1e-15)


def test_noise_for_next_to_nothing_and_for_any_clip() -> None:
    sizes: dict[str, Any] = {"batch_size": 400, "dataset_size": 48000, "parameters": 650}
    for mu in (5e-324, 1e-300, 1e-160, 1e-40, 2.0):
        for k in (None, 1e-3, 650.0, 1e160):
            for clip in (5e-324, 1e-160, 500.0, 1e308):
                level = noise_for_gmip(mu, steps=1200, clip=clip, susceptibility=k, **sizes)
                one = noise_for_gmip(mu, steps=1200, clip=1.0, susceptibility=k, **sizes)
                assert level.noise == (max(clip * one.noise, 5e-324) if one.noise else 0.0)
                if k is None or one.gmip == math.inf or mu < 1e-100:
                    continue  # the other branch asks equation 9
                n = 400 + (400 * mp.mpf(one.gmip)) ** 2
                mu_9 = (650 + (2 * n - 1) * k) / (n * mp.sqrt(1300 + 4 * n * mp.mpf(k)))
                ratio = float(mu_9 / one.step_mu)
                assert ratio == pytest.approx(1.0, rel=1e-9) or (one.gmip == 0.0 and ratio < 1.0)
    tiny = noise_for_gmip(1e-160, steps=1200, clip=1.0, susceptibility=1e160, **sizes)
    assert tiny.noise == tiny.gdp > 1e156  # the attacker's bound is beyond doubles


@pytest.mark.parametrize("susceptibility", [None, 650, 200.0, 3000.0])
def test_calibrated_noise_meets_its_target(susceptibility: float | None) -> None:
    settings: dict[str, Any] = {"batch_size": 400, "dataset_size": 48000, "steps": 1200}
    c = 400 * math.sqrt(1200) / 48000
    for mu in (0.3, 0.5, 0.7, 3.0):
        level = noise_for_gmip(
            mu, parameters=650, clip=500.0, susceptibility=susceptibility, **settings
        )
        k = 650 if susceptibility is None else susceptibility
        step = NoisySGDStep(400, 650, k, noise=level.gmip, clip=500.0)
        assert sgd_mu(step.mu, c) <= mu * (1 + 1e-12)
        if level.gmip > 0.0:
            assert sgd_mu(step.mu, c) == pytest.approx(mu, rel=1e-9)
        assert sgd_mu(2 * 500.0 / (400 * level.gdp), c) == pytest.approx(mu, rel=1e-9)
        assert level.noise == min(level.gmip, level.gdp)
        assert (level.mu_dp == math.inf) == (level.noise == 0.0)


# Stochastic composition


def optimum(functions: list[Callable[[float], float]], weights: list[float], alpha: float) -> float:
    """Definition 4.1 by a general optimiser, for two members."""

    def height(first: float) -> float:
        second = (alpha - weights[0] * first) / weights[1]
        return weights[0] * functions[0](first) + weights[1] * functions[1](second)

    low = min(max(0.0, (alpha - weights[1]) / weights[0]), min(1.0, alpha / weights[0]))
    high = min(1.0, alpha / weights[0])
    found = optimize.minimize_scalar(
        lambda x: height(min(max(x, low), high)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return min(float(found.fun), height(low), height(high))


@pytest.mark.parametrize("weight", [0.03, 0.5, 0.9])
def test_composition_of_two(weight: float) -> None:
    families = (
        [GaussianTradeOff(0.4), GaussianTradeOff(2.5)],
        [NoisySGDStep(500, 650, 300.0), NoisySGDStep(500, 650, 2000.0)],
        [GaussianTradeOff(0.0), NoisySGDStep(50, 10, 60.0)],
    )
    for family in families:
        for alpha in (1e-4, 0.03, 0.3, 0.8, 0.99):
            found = stochastic_composition(family, [weight, 1 - weight], alpha)
            wanted = optimum([lambda a, f=f: f(a) for f in family], [weight, 1 - weight], alpha)  # type: ignore[misc]
            check_near("quadrature.composition_of_two", found, wanted)
            assert found <= wanted * (1 + 1e-12)


def test_composition_of_functions_with_kinks() -> None:
    """Members given as functions: those of (ε, δ) mechanisms are piecewise linear."""

    def generic(epsilon: float, delta: float) -> Callable[[np.ndarray], np.ndarray]:
        return lambda a: np.maximum.reduce(
            [0 * a, 1 - delta - math.exp(epsilon) * a, math.exp(-epsilon) * (1 - delta - a)]
        )

    functions = [generic(0.5, 0.01), generic(2.0, 0.0)]
    alpha = np.array([0.0, 0.003, 0.05, 0.2, 0.5, 0.9, 1.0])
    found = stochastic_composition(functions, [0.3, 0.7], alpha)
    for a, beta in zip(alpha, found, strict=True):
        wanted = optimum([lambda x, f=f: float(f(np.array(x))) for f in functions], [0.3, 0.7], a)  # type: ignore[misc]
        check_near("quadrature.kinks", beta, wanted, absolute=True)
    mechanism = pe.GaussianMechanism(1.0)
    alone = stochastic_composition([lambda a: pe.trade_off(mechanism, a)], [1.0], alpha)
    np.testing.assert_allclose(alone, pe.trade_off(mechanism, alpha), rtol=1e-9, atol=1e-9)


@given(
    st.lists(st.floats(0.01, 8.0), min_size=1, max_size=5),
    st.lists(st.floats(0.05, 1.0), min_size=5, max_size=5),
)
@settings(max_examples=40, deadline=None)
def test_composition_properties(mus: list[float], raw: list[float]) -> None:
    """Theorem 4.1: a trade-off function; Theorem D.2: above the worst case, below the mean."""
    family = [GaussianTradeOff(mu) for mu in mus]
    weights = np.array(raw[: len(mus)]) / sum(raw[: len(mus)])
    alpha = np.concatenate([[0.0, 1e-9, 1e-4], np.linspace(0.01, 1.0, 34)])
    beta = stochastic_composition(family, weights, alpha)
    assert beta[0] == pytest.approx(1.0, abs=1e-15)
    assert beta[-1] == 0.0
    assert np.all(beta <= 1.0 - alpha)
    grid = stochastic_composition(family, weights, np.linspace(0, 1, 34))
    assert np.all(np.diff(grid) <= 1e-12)
    assert np.all(np.diff(grid, 2) >= -1e-11)
    mean = sum(w * member(alpha) for w, member in zip(weights, family, strict=True))
    assert np.all(beta <= mean + 1e-12)
    bound = worst_case(family, alpha)
    assert np.all(beta >= bound - 1e-12)
    np.testing.assert_allclose(bound, GaussianTradeOff(max(mus))(alpha), rtol=1e-9, atol=1e-12)


def test_worst_case_of_crossing_members() -> None:
    """Members that cross: the hull lies on one, the other and a line between them."""
    steep, flat = NoisySGDStep(3, 1, 0.05), GaussianTradeOff(0.35)
    alpha = np.linspace(0.0, 1.0, 801)
    values = np.stack([steep(alpha), flat(alpha)])
    order = np.argmin(values, axis=0)
    assert set(order[1:-1]) == {0, 1}
    bound = worst_case([steep, flat], alpha)
    assert np.all(bound <= values.min(axis=0) + 1e-13)
    assert np.all(np.diff(bound, 2) >= -1e-12)
    assert np.max(values.min(axis=0) - bound) > 1e-6


def test_parametric_family_is_the_limit_of_finite_ones() -> None:
    law = stats.chi2(650)
    found = stochastic_composition_over(lambda k: NoisySGDStep(500, 650, k), law, [1e-3, 0.1, 0.9])
    points = law.ppf((np.arange(400) + 0.5) / 400)
    finite = stochastic_composition(
        [NoisySGDStep(500, 650, k) for k in points], np.full(400, 1 / 400), [1e-3, 0.1, 0.9]
    )
    check_near("limits.parametric_family", found, finite)
    certain = stats.uniform(2.0, 1e-9)
    beta = stochastic_composition_over(GaussianTradeOff, certain, 0.1)
    check_near("limits.certain_family", beta, GaussianTradeOff(2.0)(0.1))


def test_family_that_is_not_smooth_is_refused() -> None:
    with pytest.raises(pe.AccuracyError, match="two quadratures"):
        stochastic_composition_over(
            lambda x: GaussianTradeOff(0.1 if x < 1 / math.pi else 3.0), stats.uniform(), 0.1
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NoisySGDStep(0, 5, 5), "batch_size must be positive"),
        (lambda: NoisySGDStep(1, 5, 5), "batch_size must exceed 1"),
        (lambda: NoisySGDStep(10, 0, 5), "parameters must be an integer >= 1"),
        (lambda: NoisySGDStep(10, 2.5, 5), "parameters must be an integer"),
        (lambda: NoisySGDStep(10, 2 * 10**9, 5), "parameters must be at most"),
        (lambda: NoisySGDStep(10, 5, -1), "susceptibility"),
        (lambda: NoisySGDStep(10, 5, math.inf), "susceptibility"),
        (lambda: NoisySGDStep(10, 5, 5, noise=-1, clip=1), "noise"),
        (lambda: NoisySGDStep(10, 5, 5, noise=1.0), "clip must be finite"),
        (lambda: NoisySGDStep(10, 5, 5, noise=1.0, clip=0), "clip"),
        (lambda: NoisySGDStep(10, 5, 5).trade_off(-0.1), "alpha must lie in"),
        (lambda: NoisySGDStep(10, 5, 5).power("x"), "alpha must hold real numbers"),
        (lambda: GaussianTradeOff(-1.0), "mu must be"),
        (lambda: GaussianTradeOff(1.0)(math.nan), "alpha must lie in"),
        (lambda: ConvexTradeOff(3), "function must be callable"),  # type: ignore[arg-type]
        (lambda: stochastic_composition([], [], 0.1), "at least one"),
        (lambda: stochastic_composition([GaussianTradeOff(1)], [0.5], 0.1), "add up to 1"),
        (lambda: stochastic_composition([GaussianTradeOff(1)], [0.5, 0.5], 0.1), "one number per"),
        (lambda: stochastic_composition([GaussianTradeOff(1)] * 2, [2, -1], 0.1), "weights"),
        (lambda: stochastic_composition([lambda a: 2 + a], [1.0], 0.1), "must lie in"),
        (lambda: sgd_mu(-1.0, 0.1), "step_mu"),
        (lambda: sgd_mu(1.0, 0.0), "participation"),
        (lambda: step_mu(0.0, 0.1), "mu must be positive"),
        (lambda: composed_mu([-1.0]), "mus must lie in"),
        (lambda: gmip_of_gdp(-1.0, parameters=5, batch_size=5), "mu must be non-negative"),
        (lambda: gdp_of_gmip(0.0, parameters=5, batch_size=5), "mu must be positive"),
        (
            lambda: noise_for_gmip(
                1.0, batch_size=10, dataset_size=5, steps=1, parameters=3, clip=1.0
            ),
            "batch_size must be at most",
        ),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
