"""Audits: coverage of the bands, attacks against theory, wrong input, the example on real data."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from error_budget import check_near
from hypothesis import given
from hypothesis import strategies as st
from thorough import ALL

import pyengine as pe
from pyengine import audit, special

ROOT = Path(__file__).parent.parent


def gaussian(alpha: Any, mu: float = 1.0) -> Any:
    return special.ndtr(-special.ndtri(np.asarray(alpha)) - mu)


def test_bands_cover_and_detect() -> None:
    """1,000 runs of a test whose trade-off function is known: about 5 % may miss, at most."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(1000):
        null, alternative = rng.normal(0.0, 1.0, 300), rng.normal(1.0, 1.0, 300)
        missed += not audit.empirical_trade_off(null, alternative).compare(gaussian).attained
    assert missed <= 50
    null, alternative = rng.normal(0.0, 1.0, 20_000), rng.normal(1.0, 1.0, 20_000)
    curve = audit.empirical_trade_off(null, alternative)
    assert curve.compare(lambda alpha: gaussian(alpha, 0.8)).violated  # claims too much
    above = curve.compare(lambda alpha: gaussian(alpha, 1.2))
    assert not above.violated
    assert not above.attained


def test_bands_cover_with_ties() -> None:
    """Scores on five values: the bands must hold for laws with atoms, at every threshold."""
    rng = np.random.default_rng(2)
    first, second = np.array([0.4, 0.3, 0.1, 0.1, 0.1]), np.array([0.1, 0.1, 0.1, 0.3, 0.4])
    at_least = {k: (first[k:].sum(), second[:k].sum()) for k in range(5)}
    missed = 0
    for _ in range(500):
        curve = audit.empirical_trade_off(
            rng.choice(5, 200, p=first), rng.choice(5, 200, p=second), confidence=0.9
        )
        for row, threshold in enumerate(curve.threshold):
            alpha, beta = at_least.get(int(threshold), (0.0, 1.0)) if threshold < 9 else (0.0, 1.0)
            inside = curve.alpha_lower[row] <= alpha <= curve.alpha_upper[row]
            inside &= curve.beta_lower[row] <= beta <= curve.beta_upper[row]
            if not inside:
                missed += 1
                break
    assert missed <= 50


@given(
    null=st.lists(st.floats(allow_nan=False), min_size=1, max_size=30),
    alternative=st.lists(st.floats(allow_nan=False), min_size=1, max_size=30),
)
def test_bands_enclose_the_shares(null: list[float], alternative: list[float]) -> None:
    curve = audit.empirical_trade_off(null, alternative)
    assert np.all(curve.threshold[1:] < curve.threshold[:-1])
    for share, low, high in (
        (curve.alpha, curve.alpha_lower, curve.alpha_upper),
        (curve.beta, curve.beta_lower, curve.beta_upper),
    ):
        assert np.all((low >= 0.0) & (high <= 1.0))
        assert np.all((low <= share + 1e-12) & (share - 1e-12 <= high))
    assert curve.alpha[-1] == 1.0
    assert curve.beta[-1] == 0.0
    upper = curve.upper(np.linspace(0.0, 1.0, 21))
    assert np.all(np.diff(upper) <= 1e-12)
    assert np.all(np.diff(upper, 2) >= -1e-12)
    assert not curve.compare(lambda alpha: 0.0 * alpha).violated


def test_clopper_pearson_against_binomial_sums() -> None:
    low, high = audit.clopper_pearson(7, 50, 0.9)
    tail = sum(math.comb(50, k) * low**k * (1 - low) ** (50 - k) for k in range(7, 51))
    head = sum(math.comb(50, k) * high**k * (1 - high) ** (50 - k) for k in range(8))
    assert tail == pytest.approx(0.05, rel=1e-10)
    assert head == pytest.approx(0.05, rel=1e-10)
    assert audit.clopper_pearson(50, 50)[1] == 1.0
    assert audit.gamma_lower_bound(50, 50) == pytest.approx(0.05 ** (1 / 50), rel=1e-12)
    assert audit.gamma_lower_bound(0, 50) == 0.0


def test_lower_bounds_stay_below_the_truth() -> None:
    rng = np.random.default_rng(4)
    curve = audit.empirical_trade_off(rng.normal(0.0, 1.0, 50_000), rng.normal(1.0, 1.0, 50_000))
    mechanism = pe.GaussianMechanism(1.0)
    assert 0.9 < audit.mu_lower_bound(curve) <= 1.0
    assert 2.0 < audit.epsilon_lower_bound(curve, 1e-5) <= pe.epsilon(mechanism, 1e-5)
    same = rng.normal(0.0, 1.0, 50_000)
    nothing = audit.empirical_trade_off(same, rng.normal(0.0, 1.0, 50_000))
    assert audit.mu_lower_bound(nothing) < 0.01
    assert audit.epsilon_lower_bound(nothing) < 0.1


@pytest.mark.parametrize(
    ("size", "dimension", "noise"), [(10, 5, 0.0), (50, 50, 0.0), (100, 20, 0.05), (8, 64, 0.1)]
)
def test_glir_follows_its_theory(size: int, dimension: int, noise: float) -> None:
    """Known parameters, all susceptibilities K: the errors are those of eq. 8."""
    rng = np.random.default_rng(size)
    trials, k = 20_000, float(dimension)
    root = rng.normal(size=(dimension, dimension)) / math.sqrt(dimension) + np.eye(dimension)
    law = audit.GradientDistribution.known(np.arange(dimension), root @ root.T)
    scores = []
    for member in (0, 1):
        away = rng.normal(size=(trials, dimension))
        away *= math.sqrt(k) / np.linalg.norm(away, axis=1, keepdims=True)
        others = rng.normal(size=(trials, dimension)) * math.sqrt(size - member)
        mean = (others + member * away) / size + noise * rng.normal(size=(trials, dimension))
        gradients, means = (law.mean + v @ np.linalg.inv(law.whitening).T for v in (away, mean))
        log_p = audit.glir_log_p_values(
            means[None], gradients, law, batch_size=size, noise_ratio=noise
        )
        scores.append(-log_p)
    effective = size + (noise * size) ** 2
    gap = audit.empirical_trade_off(*scores).compare(
        lambda alpha: special.one_step_sgd_beta(alpha, float(dimension), effective, k)
    )
    assert gap.attained


def test_glir_without_noise_is_the_papers_statistic() -> None:
    rng = np.random.default_rng(5)
    mean, gradients = rng.normal(size=4), rng.normal(size=(3, 4))
    law = audit.GradientDistribution.known(np.zeros(4), [1.0, 2.0, 3.0, 4.0])
    statistic = 20 * np.sum((mean - gradients) ** 2 / [1.0, 2.0, 3.0, 4.0], axis=1)
    expected = special.ncx2_logcdf(statistic, 4.0, 20 * law.susceptibility(gradients))
    once = audit.glir_log_p_values(mean, gradients, law, batch_size=20)
    assert once == pytest.approx(expected, rel=1e-12)
    twice = audit.glir_log_p_values([mean, mean], gradients, [law, law], batch_size=20)
    assert twice == pytest.approx(2 * once, rel=1e-14)
    centre = audit.glir_log_p_values(mean, np.zeros((1, 4)), law, batch_size=20)
    assert centre[0] == pytest.approx(
        special.ncx2_logcdf(20 * np.sum(mean**2 / [1.0, 2.0, 3.0, 4.0]), 4.0, 0.0), rel=1e-12
    )


@pytest.mark.parametrize(("dimension", "mu"), [(1, 1.0), (50, 2.0), (50, 0.0)])
def test_canary_follows_the_relaxed_theory(dimension: int, mu: float) -> None:
    rng = np.random.default_rng(6)
    noise = 0.5
    canary = audit.dirac_canary(dimension, mu * noise) if mu else np.zeros(dimension)
    null, alternative = (
        audit.magnitude_scores(
            centre + 3.0 + rng.normal(0.0, noise, (20_000, dimension)),
            noise=noise,
            known=np.full(dimension, 3.0),
        )
        for centre in (0.0, canary)
    )
    gap = audit.empirical_trade_off(null, alternative).compare(
        lambda alpha: special.relaxed_beta(alpha, float(dimension), mu)
    )
    assert gap.attained


def test_offline_scores_of_normal_statistics() -> None:
    rng = np.random.default_rng(7)
    shadow = rng.normal(2.0, 3.0, 100_000)
    scores = audit.offline_scores([2.0, 5.0, 2.0 + 30 * 3.0], shadow)
    truths = [math.log(2.0), -special.log_ndtr(-1.0), -special.log_ndtr(-30.0)]
    check_near("simulations.offline_scores", scores, truths)


@pytest.mark.parametrize("steps", [1, 4])
def test_prior_aware_attack_on_orthogonal_candidates(steps: int) -> None:
    rng = np.random.default_rng(8)
    count, noise, trials = 10, 2.0, 20_000
    candidates = np.eye(count, 16)
    truth = rng.integers(count, size=trials)
    releases = candidates[truth][:, None] + rng.normal(0.0, noise, (trials, steps, 16))
    scores = audit.inner_product_scores(releases, candidates)
    successes = int(np.sum(np.argmax(scores, axis=1) == truth))
    low, high = audit.clopper_pearson(successes, trials, 0.9999)
    expected = audit.orthogonal_success(count, math.sqrt(steps) / noise)
    assert low <= expected <= high
    bound = pe.gamma_bound(pe.GaussianMechanism(noise).composed(steps), 1.0 / count)
    assert expected <= bound
    likelihood = audit.log_likelihood_scores(releases, candidates, noise=noise)
    assert np.array_equal(np.argmax(likelihood, axis=1), np.argmax(scores, axis=1))


@pytest.mark.parametrize(
    ("count", "mu"),
    [(1, 2.0), (2, 0.3), (10, 1.0), (1000, 5.0), (10**6, 2.0), (10**9, 30.0), (10**15, 3.0)],
)
def test_orthogonal_success_against_arbitrary_precision(count: int, mu: float) -> None:
    """It was 1.4e-14 off, as 0.05 is no double, and 2.7e-11 of 10^15 candidates."""
    with mpmath.workdps(25):
        exact = mpmath.quad(
            lambda z: mpmath.npdf(z) * mpmath.ncdf(z + mu) ** (count - 1), range(-14, 22, 2)
        )
    assert audit.orthogonal_success(count, mu) == pytest.approx(float(exact), rel=2e-15)


def test_sampled_attacks() -> None:
    """With Poisson sampling the top-qT sum beats the plain sum, the likelihood both."""
    rng = np.random.default_rng(9)
    count, noise, rate, steps, trials = 10, 0.5, 0.3, 10, 5000
    candidates = np.eye(count, 16)
    truth = rng.integers(count, size=trials)
    drawn = rng.random((trials, steps, 1)) < rate
    releases = drawn * candidates[truth][:, None] + rng.normal(0.0, noise, (trials, steps, 16))
    shares = [
        np.mean(np.argmax(scores, axis=1) == truth)
        for scores in (
            audit.inner_product_scores(releases, candidates),
            audit.inner_product_scores(releases, candidates, sampling_probability=rate),
            audit.log_likelihood_scores(
                releases, candidates, noise=noise, sampling_probability=rate
            ),
        )
    ]
    assert shares[0] < shares[1] < shares[2]
    bound = pe.gamma_bound(pe.dp_sgd(noise, rate, steps), 1.0 / count)
    assert audit.gamma_lower_bound(int(shares[2] * trials), trials) < bound


def test_candidates_step_by_step() -> None:
    """An array, an iterable of arrays and one run of many give the same scores."""
    rng = np.random.default_rng(10)
    candidates, releases = rng.normal(size=(5, 3)), rng.normal(size=(4, 6, 3))
    for arguments in ({}, {"sampling_probability": 0.4}):
        whole = audit.inner_product_scores(releases, candidates, **arguments)
        for run, scores in zip(releases, whole, strict=True):
            stepwise = (candidates for _ in run)
            assert audit.inner_product_scores(run, stepwise, **arguments) == pytest.approx(scores)
        whole = audit.log_likelihood_scores(releases, candidates, noise=2.0, **arguments)
        for run, scores in zip(releases, whole, strict=True):
            stepwise = [candidates] * 6
            one = audit.log_likelihood_scores(run, stepwise, noise=2.0, **arguments)
            assert one == pytest.approx(scores)


def test_prior_is_a_summand_of_the_log_likelihood() -> None:
    """Bayes: the posterior by hand, for a prior that the printed product would ignore."""
    releases, candidates = np.array([[0.2, 0.1]]), np.eye(2)
    prior = np.array([0.001, 0.999])
    scores = audit.log_likelihood_scores(releases, candidates, noise=1.0, prior=prior)
    densities = np.exp(-0.5 * np.sum((releases - candidates) ** 2, axis=1)) * prior
    assert np.exp(scores - np.logaddexp.reduce(scores)) == pytest.approx(
        densities / densities.sum(), rel=1e-13
    )
    assert int(np.argmax(scores)) == 1
    certain = audit.log_likelihood_scores(releases, candidates, noise=1.0, prior=[1.0, 0.0])
    assert certain[1] == -math.inf


def test_shrinkage_serves_few_samples() -> None:
    rng = np.random.default_rng(11)
    for estimator in ("ledoit_wolf", "oas"):
        law = audit.GradientDistribution.estimated(rng.normal(size=(20, 50)), estimator=estimator)
        assert np.all(np.isfinite(law.susceptibility(rng.normal(size=(3, 50)))))
    many = rng.normal(size=(5000, 3)) @ np.diag([1.0, 2.0, 3.0])
    law = audit.GradientDistribution.estimated(many, estimator="empirical")
    check_near("simulations.susceptibility", law.susceptibility([[1.0, 2.0, 3.0]]), 3.0)


LAW = audit.GradientDistribution.known([0.0, 0.0], [1.0, 1.0])
MEANS, POINTS = np.zeros((3, 2)), np.zeros((5, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: audit.empirical_trade_off([], [1.0]), "null must be one-dimensional and not"),
        (lambda: audit.empirical_trade_off([1.0], [math.nan]), "alternative must not hold NaN"),
        (lambda: audit.empirical_trade_off([1.0], ["a"]), "alternative must hold real numbers"),
        (lambda: audit.empirical_trade_off([[1.0]], [1.0]), "null must be one-dimensional"),
        (lambda: audit.empirical_trade_off([1.0], [1.0], confidence=1.0), "confidence must lie"),
        (lambda: audit.clopper_pearson(3, 2), r"successes must be an integer in \[0, 2\]"),
        (lambda: audit.clopper_pearson(0, 0), r"trials must be an integer in \[1, 2\^53\]"),
        (lambda: audit.gamma_lower_bound(1, 2, 1.5), "confidence must lie in"),
        (lambda: audit.epsilon_lower_bound(1.0), "curve must be an EmpiricalTradeOff"),
        (lambda: audit.GradientDistribution.known([0.0], np.eye(2)), "covariance must have shape"),
        (
            lambda: audit.GradientDistribution.known([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]]),
            "covariance must be positive definite",
        ),
        (
            lambda: audit.GradientDistribution.known([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]),
            "covariance must be symmetric",
        ),
        (
            lambda: audit.GradientDistribution.estimated(np.eye(3), estimator="empirical"),
            "gradients must have more rows than columns",
        ),
        (lambda: audit.GradientDistribution.estimated([[1.0, 2.0]]), "at least 2 rows"),
        (
            lambda: audit.GradientDistribution.estimated(np.zeros((9, 2))),
            "covariance must be positive definite",
        ),
        (
            lambda: audit.GradientDistribution.estimated([[1.0, math.inf], [0.0, 0.0]]),
            "gradients must be finite, got 1",
        ),
        (lambda: LAW.susceptibility(np.zeros((1, 3))), "gradients must have 2 entries"),
        (
            lambda: audit.glir_log_p_values(MEANS, POINTS, LAW, batch_size=1),
            "batch_size must be above 1",
        ),
        (
            lambda: audit.glir_log_p_values(MEANS, POINTS, [LAW], batch_size=9),
            "distribution must be one for each of the 3 steps",
        ),
        (
            lambda: audit.glir_log_p_values(MEANS, POINTS, "law", batch_size=9),
            "distribution must be a GradientDistribution",
        ),
        (
            lambda: audit.glir_log_p_values(MEANS, np.zeros((2, 5, 2)), LAW, batch_size=9),
            "gradients must have one array for each of the 3 steps",
        ),
        (
            lambda: audit.glir_log_p_values(np.zeros((1, 4, 2)), POINTS, LAW, batch_size=9),
            "means must have one row for each of the 5 records",
        ),
        (
            lambda: audit.glir_log_p_values(MEANS, POINTS, LAW, batch_size=9, noise_ratio=-1.0),
            "noise_ratio must be finite and >= 0",
        ),
        (lambda: audit.inner_product_scores(MEANS, np.zeros((5, 3))), "must have 2 columns"),
        (lambda: audit.inner_product_scores(MEANS, [POINTS] * 2), "must yield an array for each"),
        (lambda: audit.inner_product_scores(MEANS, [POINTS] * 4), "must yield 3 arrays"),
        (
            lambda: audit.inner_product_scores(MEANS, [POINTS, POINTS[:2], POINTS]),
            "candidates must keep their number",
        ),
        (lambda: audit.inner_product_scores(MEANS, 3), "candidates must be an array"),
        (
            lambda: audit.inner_product_scores(MEANS[None], iter([POINTS])),
            "releases of several runs need candidates",
        ),
        (
            lambda: audit.inner_product_scores(MEANS, POINTS, sampling_probability=0.0),
            "sampling_probability must be above 0",
        ),
        (
            lambda: audit.log_likelihood_scores(MEANS, POINTS, noise=0.0),
            "noise must be positive",
        ),
        (
            lambda: audit.log_likelihood_scores(MEANS, POINTS, noise=1.0, prior=[1.0]),
            "prior must have one entry for each of 5",
        ),
        (
            lambda: audit.log_likelihood_scores(MEANS, POINTS, noise=1.0, prior=[0.5] * 5),
            "prior must be non-negative with sum 1",
        ),
        (lambda: audit.dirac_canary(3, 1.0, index=3), "index must be below dimension"),
        (lambda: audit.dirac_canary(3, 0.0), "norm must be positive"),
        (
            lambda: audit.magnitude_scores(np.zeros((4, 2)), noise=1.0, known=[0.0]),
            "known must have the shape of one trial",
        ),
        (lambda: audit.offline_scores([1.0], [1.0]), "shadow must hold at least 2 runs"),
        (lambda: audit.offline_scores([1.0], [1.0, 1.0]), "shadow must not hold equal values"),
        (lambda: audit.offline_scores([[1.0], [1.0, 2.0]], [1.0]), "observed must be a regular"),
        (
            lambda: audit.offline_scores(["1"], [1.0, 2.0]),
            "must hold real numbers, got .*U1",
        ),
        (lambda: audit.offline_scores([[1.0]], [1.0]), r"1 dimensions, got shape \(1, 1\)"),
        (
            lambda: audit.offline_scores([], [1.0, 2.0]),
            r"must not be empty, got shape \(0,",
        ),
        (lambda: audit.offline_scores([1.0], [np.nan, np.inf]), "shadow must be finite, got 2"),
        (lambda: audit.empirical_trade_off([[1.0], [1.0, 2.0]], [0.5]), "null must be a one-dim"),
        (lambda: audit.empirical_trade_off(["x"], [0.5]), "null must hold real numbers"),
        (
            lambda: audit.empirical_trade_off([], [0.5]),
            "must be one-dimensional and not empty",
        ),
        (
            lambda: audit.empirical_trade_off([0.1], [np.nan]),
            "must not hold NaN, got 1",
        ),
        (lambda: audit.gamma_lower_bound(1, 2, "x"), "confidence must be a real number, got .x."),
    ],
)
def test_wrong_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_zero_gradients_say_nothing() -> None:
    scores = audit.inner_product_scores(np.ones((3, 2)), np.zeros((4, 2)))
    assert scores.tolist() == [0.0] * 4
    likelihood = audit.log_likelihood_scores(np.ones((3, 2)), np.zeros((4, 2)), noise=1.0)
    assert likelihood == pytest.approx(-math.log(4.0))


def test_report_and_picture() -> None:
    rng = np.random.default_rng(12)
    curve = audit.empirical_trade_off(rng.normal(0.0, 1.0, 2000), rng.normal(1.0, 1.0, 2000))
    findings = [
        audit.Finding("honest", curve, gaussian),
        audit.Finding("wrong", curve, lambda alpha: gaussian(alpha, 0.1)),
    ]
    text, content = audit.report(findings)
    assert "honest: attains the bound" in text
    assert "wrong: BEATS THE BOUND" in text
    rows = json.loads(content)
    assert [row["violated"] for row in rows] == [False, True]
    assert audit.picture(findings).startswith(b"\x89PNG")


def test_reports_round_to_the_safe_side() -> None:
    """What an attack shows is rounded down, what it attains at most up, a claimed β down."""
    rng = np.random.default_rng(14)
    for mu in np.linspace(0.5, 2.0, 12):
        curve = audit.empirical_trade_off(rng.normal(0.0, 1.0, 500), rng.normal(mu, 1.0, 500))
        text, content = audit.report(
            [audit.Finding("run", curve, functools.partial(gaussian, mu=mu))]
        )
        (row,) = json.loads(content)
        for name, key in (("epsilon", "epsilon_lower_bound"), ("mu", "mu_lower_bound")):
            for shown in re.findall(rf"{name} >= ([\d.e-]+\d)", text):
                assert 0.99 * row[key] < float(shown) <= row[key]
        shown = re.findall(r"bound (\d\.\d{4}), attack at most (\d\.\d{4}),", text)
        for (claimed, most), level in zip(shown, row["levels"], strict=True):
            assert level["beta_bound"] - 1e-4 < float(claimed) <= level["beta_bound"]
            assert level["beta_attack_upper"] <= float(most) < level["beta_attack_upper"] + 1e-4


def test_audit_without_power_cannot_tell() -> None:
    """Few runs, or a weak attack: the sample fits the claim, and guessing just as well."""
    rng = np.random.default_rng(13)
    few = audit.empirical_trade_off(rng.normal(0.0, 1.0, 8), rng.normal(1.0, 1.0, 8))
    weak = audit.empirical_trade_off(rng.normal(0.0, 1.0, 2000), rng.normal(0.0, 1.0, 2000))
    for curve, mu in ((few, 1.0), (weak, 0.02)):
        claim = functools.partial(gaussian, mu=mu)
        gap = curve.compare(claim)
        assert (gap.violated, gap.attained, gap.undecided) == (False, False, True)
        text, content = audit.report([audit.Finding("run", curve, claim)])
        assert "run: cannot tell" in text
        assert ">= 0" not in text
        assert "proven" not in text
        (row,) = json.loads(content)
        assert (row["verdict"], row["epsilon_lower_bound"]) == ("cannot tell", 0.0)
    # a weak attack against a strong claim is told from it: that needs no power against guessing
    assert weak.compare(gaussian).verdict == "stays below the bound"
    # a claim of perfect privacy is all that guessing attains
    assert weak.compare(lambda alpha: 1.0 - alpha).verdict == "attains the bound within its band"


def test_example_on_real_data(tmp_path: Path) -> None:
    runs = 30 if ALL else 10
    run = subprocess.run(
        [sys.executable, "examples/audit_dp_sgd", "-o", str(tmp_path), "--runs", str(runs)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert run.returncode == 0, run.stderr
    assert f"{12 * runs}/{12 * runs} runs" in run.stderr
    content = json.loads((tmp_path / "report.json").read_text())
    assert set(content) == {"digits", "breast_cancer", "diabetes"}
    assert not any(row["violated"] for task in content.values() for row in task["attacks"])
    assert (tmp_path / "curves.png").stat().st_size > 20_000
    assert (tmp_path / "report.txt").read_text() == run.stdout


def test_curves_have_an_identity_and_no_values_to_compare() -> None:
    """Equality of their arrays was asked as if it were one truth."""
    curve, other = (audit.empirical_trade_off([0.0, 1.0], [1.0, 2.0]) for _ in range(2))
    assert curve == curve
    assert curve != other
    assert len({curve, other}) == 2
