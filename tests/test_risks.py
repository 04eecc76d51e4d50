"""Risks in words that need no ε: Bayes risk, μ with its regret, and the names of γ(κ)."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

import pyengine as pe
from pyengine._support.certainty import ESTIMATE, PROVEN
from pyengine.cli import main
from pyengine.report import privacy_report
from pyengine.statement import privacy_statement
from pyengine.targets import GaussianDP
from pyengine.threat.risks import risk_answers
from pyengine.workbench.explore.replies import reply
from pyengine.workbench.explore.settings import Settings
from pyengine.workbench.tables.cells import auto, reference
from pyengine.workbench.tables.spec import SpecificationError, parse

mp = mpmath.MPContext()
mp.dps = 40
RUN = pe.dp_sgd(1.0, 0.01, 1000)


def gaussian_bayes(mu: float, prior: float) -> Any:
    """Error of the likelihood ratio test with the threshold of Bayes."""
    mu, prior = mp.mpf(mu), mp.mpf(prior)
    x = mp.log((1 - prior) / prior) / mu + mu / 2  # of N(0, 1) against N(μ, 1)
    return (1 - prior) * mp.ncdf(-x) + prior * mp.ncdf(x - mu)


@pytest.mark.parametrize("mu", [1e-3, 0.3, 1.0, 4.0, 12.0])
def test_bayes_risk_of_gaussian_noise(mu: float) -> None:
    priors = np.array([1e-12, 1e-5, 0.01, 0.3, 0.5, 0.6, 0.9, 1 - 1e-6])
    noise = pe.GaussianMechanism(1.0 / mu)
    for adjacency in ("add", "remove", "add_remove"):
        found = pe.bayes_risk(noise, priors, adjacency=adjacency, bounds=True)
        for i, prior in enumerate(priors.tolist()):
            truth = gaussian_bayes(1.0 / (1.0 / mu), prior)
            assert found.lower[i] <= truth * (1 + mp.mpf(10) ** -15)
            assert truth <= found.upper[i] * (1 + mp.mpf(10) ** -15)
            assert found.upper[i] - found.lower[i] <= 1e-11 * min(prior, 1 - prior)


def test_bayes_risk_by_all_tests() -> None:
    """Of finite laws the best test is one of finitely many: exact arithmetic over all of them."""
    without = [Fraction(k, 20) for k in (9, 5, 4, 2)]
    with_record = [Fraction(k, 20) for k in (2, 3, 5, 10)]
    pair = pe.from_probabilities(without, with_record)
    for prior in (
        Fraction(1, 100),
        Fraction(1, 4),
        Fraction(1, 2),
        Fraction(5, 8),
        Fraction(9, 10),
    ):
        errors = []
        for guess in itertools.product((0, 1), repeat=4):
            wrong_in = sum(q for q, said in zip(with_record, guess, strict=True) if not said)
            wrong_out = sum(p for p, said in zip(without, guess, strict=True) if said)
            errors.append(prior * wrong_in + (1 - prior) * wrong_out)
        truth = float(min(errors))
        found = pe.bayes_risk(pair, float(prior), adjacency="add", bounds=True)
        assert found.lower <= truth * (1 + 1e-15)
        assert truth <= found.upper * (1 + 1e-15)
        assert found.upper - found.lower < 1e-13
        # with the laws exchanged, the prior is of the other one
        other = pe.bayes_risk(pair, float(1 - prior), adjacency="remove")
        assert other == pytest.approx(truth, rel=1e-12)
        worse = pe.bayes_risk(pair, float(prior))
        assert worse <= truth * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove", "substitute"])
def test_bayes_risk_is_the_least_mean_error(adjacency: str) -> None:
    run = pe.dp_sgd(1.0, 0.1, 50)
    alpha = np.concatenate([np.geomspace(1e-5, 0.5, 500), np.linspace(0.5, 1.0, 200)])
    beta = pe.trade_off(run, alpha, adjacency=adjacency)
    for prior in (0.02, 0.4, 0.5, 0.7, 0.97):
        least = float(((1.0 - prior) * alpha + prior * beta).min())
        found = pe.bayes_risk(run, prior, adjacency=adjacency)
        assert found <= least * (1 + 1e-12)
        assert found == pytest.approx(least, rel=1e-3)


def test_bayes_risk_below_the_normal_doubles() -> None:
    """A lower bound was rounded to the prior, which a release that tells some surely is below."""
    pair = pe.from_probabilities(["1/8", "3/4", "1/8"], [0, "1/2", "1/2"])
    for prior in (5e-324, 1e-323, 2e-320):
        for adjacency, share in (("add", Fraction(1)), ("remove", Fraction(7, 8))):
            found = pe.bayes_risk(pair, prior, adjacency=adjacency, bounds=True)
            truth = share * Fraction(prior)
            assert Fraction(found.lower) <= truth <= Fraction(found.upper)


def test_bayes_risk_at_the_ends() -> None:
    found = pe.bayes_risk(RUN, [0.0, 1.0, 0.5], bounds=True)
    assert found.value[:2].tolist() == found.upper[:2].tolist() == [0.0, 0.0]
    assert found.value[2] == pytest.approx(0.5 * (1 - pe.delta(RUN, 0.0)), rel=1e-12)
    assert isinstance(pe.bayes_risk(RUN, 0.5), float)
    with pytest.raises(ValueError, match="prior must"):
        pe.bayes_risk(RUN, 1.5)
    unproven = pe.from_distributions(stats.norm(), stats.norm(0.3))
    with pytest.raises(pe.AccuracyError, match=r"Bayes risk at prior = 0\.25"):
        pe.bayes_risk(unproven, 0.25, bounds=True)


def test_published_mu_and_regret() -> None:
    """The example of gdpnum's README, (9.4, 0.328, 2000): 1.56856 and 0.00102."""
    run = pe.dp_sgd(9.4, 0.328, 2000)
    fit = pe.gaussian_fit(run, 1e-8)
    assert (round(fit.mu, 5), fit.certainty) == (1.56916, PROVEN)
    assert fit.mu == GaussianDP(1.0, 1e-8, bounds=True).achieved(run).mu
    assert fit.mu == pytest.approx(1.5685621993129137, rel=5e-4)
    assert fit.regret == pytest.approx(0.0010208130697719753, rel=0.12)


def largest_gap(run: pe.Mechanism, mu: float) -> float:
    """The regret by its definition: the smallest κ with T(α + κ) - κ <= G_μ(α) at all α."""
    gaussian = pe.GaussianMechanism(1.0 / mu)
    level = np.linspace(1e-3, 0.999, 120)
    below = pe.trade_off(gaussian, level, adjacency="add")

    def excess(kappa: float) -> float:
        inside = level + kappa <= 1.0
        shifted = pe.trade_off(run, (level + kappa)[inside]) - kappa
        return float((shifted - below[inside]).max())

    return float(optimize.brentq(excess, 0.0, 0.5, xtol=1e-7)) if excess(0.0) > 0.0 else 0.0


@pytest.mark.parametrize(
    ("run", "slack"),
    [
        (RUN, 1e-6),
        (pe.dp_sgd(0.8, 0.1, 200), 1e-5),
        (pe.LaplaceMechanism(1.0), 0.0),
        (pe.LaplaceMechanism(3.0) + pe.GaussianMechanism(2.0), 1e-8),
        (pe.GenericMechanism(1.0, 0.01), 0.01),
        (pe.RandomizedResponse("3/4"), 0.0),
    ],
)
def test_regret_and_mu(run: pe.Mechanism, slack: float) -> None:
    bounds, _, proven = risk_answers("gaussian_regret", run, [slack], adjacency="add_remove")
    assert proven == [True]
    fit = pe.gaussian_fit(run, slack)
    assert bounds.upper[0] == fit.regret
    assert bounds.upper[0] <= bounds.lower[0] * 1.0011 + 1e-9
    gap = largest_gap(run, fit.mu)
    assert gap <= fit.regret * (1 + 1e-9) + 2e-7
    assert gap == pytest.approx(fit.regret, rel=2e-2, abs=1e-5)
    # no right guess is overstated by more
    priors = np.linspace(0.01, 0.99, 99)
    truth = pe.bayes_risk(run, priors)
    stated = pe.bayes_risk(pe.GaussianMechanism(1.0 / fit.mu), priors)
    beyond = (truth - stated).max()
    assert beyond <= fit.regret * (1 + 1e-9) + 1e-9
    # μ holds, and one that is a little smaller does not
    (least,), _, (mu,) = risk_answers("gaussian_mu", run, [slack], adjacency="add_remove")[0]
    assert mu == fit.mu
    assert mu * (1 - 1e-6) < least <= mu
    epsilon = np.linspace(0.0, 12.0, 400)
    own, other = (
        pe.delta(each, epsilon) for each in (run, pe.GaussianMechanism(1.0 / (mu * (1 + 1e-9))))
    )
    assert (own <= np.maximum(other, slack) * (1 + 1e-10)).all()
    assert not GaussianDP(least * (1 - 1e-4), slack, bounds=True).is_met(run)


def test_gaussians_have_no_regret() -> None:
    for noise in (0.3, 2.0, 40.0):
        fit = pe.gaussian_fit(pe.GaussianMechanism(noise), 0.0)
        assert fit.mu == pytest.approx(1.0 / noise, rel=1e-15)
        assert fit.regret < 2e-9


def test_what_no_gaussian_dominates() -> None:
    fit = pe.gaussian_fit(pe.GenericMechanism(1.0, 0.01), 0.005)  # the loss is infinite too often
    assert (fit.mu, fit.regret) == (math.inf, 1.0)
    assert pe.gaussian_fit(RUN, 1.0)[:3] == (0.0, 1.0, 0.0)
    assert pe.gaussian_fit(pe.compose(), 0.0)[:3] == (0.0, 0.0, 0.0)
    assert pe.gaussian_fit(RUN, 1e-6, bounds="estimated").certainty == ESTIMATE
    with pytest.raises(ValueError, match="bounds must be True or 'estimated'"):
        pe.gaussian_fit(RUN, 1e-6, bounds=False)
    with pytest.raises(ValueError, match="slack must"):
        pe.gaussian_fit(RUN, -1.0)


def test_far_from_the_boundary_is_quick() -> None:
    """Profiles far below the slack are not asked for: 37 s before, of which engines took all."""
    target = GaussianDP(1.0, 1e-8, bounds=True)
    assert target.achieved(pe.dp_sgd(4.0, 0.01, 1000)).mu == pytest.approx(
        0.0818780780609, rel=1e-9
    )


def test_statement_and_report() -> None:
    stated = privacy_statement(RUN, 1e-5, priors=[0.5, 0.01], slack=1e-6)
    figures = {(each.metric, each.at): each for each in stated.figures}
    half = figures["right_guess", 0.5]
    assert half.bound == pytest.approx(0.5 + 0.5 * figures["advantage", 0.0].bound, rel=1e-12)
    assert half.lower <= 1 - pe.bayes_risk(RUN, 0.5) <= half.bound
    fit = pe.gaussian_fit(RUN, 1e-6)
    assert figures["gaussian_mu", 1e-6].bound == fit.mu
    assert figures["gaussian_regret", 1e-6].bound == fit.regret
    assert {each.certainty for each in stated.figures} == {PROVEN}
    assert "μ of Gaussian DP, up to δ = 1e-6" in str(stated)
    few = pe.dp_sgd_allocated(1.0, 20, 2)  # whose proofs take longer
    quick = privacy_statement(few, 1e-5, priors=[0.5], slack=1e-6, proven=False)
    assert {each.certainty for each in quick.figures} == {ESTIMATE}
    plain = privacy_statement(RUN, 1e-5)
    assert not {"right_guess", "gaussian_mu"} & {each.metric for each in plain.figures}
    with pytest.raises(ValueError, match="slack must"):
        privacy_statement(RUN, 1e-5, slack=2.0)
    report = privacy_report(RUN, 1e-5, priors=[0.5], slack=1e-6, group_sizes=[], proven=False)
    assert [each.metric for each in report.statement.figures[-3:]] == [
        *("right_guess", "gaussian_mu", "gaussian_regret")
    ]
    assert [each.what for each in report.stated][2] == "γ at κ = 0.0001"


def test_explore_shows_them() -> None:
    numbers = {
        "noise_multiplier": 1.0,
        "sampling_probability": 0.001,
        "steps": 5,
        "batch_size": 10,
        "dataset_size": 1000,
        "epochs": 1.0,
        "dimension": 1,
        "delta": 1e-5,
        "false_positive_rate": 1e-3,
        "kappa": 1e-4,
        "prior": 0.5,
    }
    words = {
        "size": "rate",
        "sampling": "poisson",
        "adjacency": "add_remove",
        "threat_model": "dp",
    }
    for proven in (False, True):
        content = reply(Settings.read({**numbers, **words, "proven": proven}))
        found = {figure["metric"]: figure for figure in content["figures"]}
        assert found["right_guess"]["at"] == 0.5
        assert ("gaussian_mu" in found) is proven
        certain = {figure["certainty"] for figure in found.values()}
        assert certain == {PROVEN}


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["statement", "--noise", "1", "--p", "0.01", "--steps", "1000", "--delta", "1e-5"]
    assert main([*words, "--prior", "1/2", "--slack", "1e-6", "--format", "json"]) == 0
    figures = {each["metric"]: each for each in json.loads(capsys.readouterr().out)["figures"]}
    assert figures["right_guess"]["value"] == pytest.approx(0.5805083, rel=1e-6)
    assert figures["gaussian_mu"]["certainty"] == PROVEN
    assert main([*words, "--slack", "2"]) == 2
    assert "slack must lie in [0, 1]" in capsys.readouterr().err


TABLE = """
[[workflow]]
name = "run"
noise_multiplier = 1.0
sampling_probability = 0.01
steps = 1000
[{question}]
{argument} = [{at}]
adjacency = ["add_remove"]
"""


def test_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = {
        "true_positive_rate": ("false_positive_rate", "0.01"),
        "unified_risk": ("baseline", "0.01"),
        "bayes_risk": ("prior", "0.01"),
        "gaussian_mu": ("slack", "1e-6"),
        "gaussian_regret": ("slack", "1e-6"),
    }
    for question, (argument, at) in questions.items():
        text = TABLE.format(question=question, argument=argument, at=at)
        (cell,) = auto(RUN, question, "add_remove", [at])
        assert cell.certainty == PROVEN, question
        assert float(cell.lower or "nan") <= float(cell.value or "nan") <= float(cell.upper or "0")
        if question in ("true_positive_rate", "unified_risk"):
            parse(f'engine = "reference"\n{text}', "here")
            (truth,) = reference(RUN, question, "add_remove", [at], 20)
            assert float(cell.lower or 1) <= float(truth.value or 0) <= float(cell.upper or 0)
        else:
            with pytest.raises(SpecificationError, match="has no engine = "):
                parse(f'engine = "reference"\n{text}', "here")
    path = tmp_path / "table.toml"
    path.write_text(TABLE.format(question="bayes_risk", argument="prior", at="0.5"), "utf-8")
    assert main(["table", str(path), "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "Bayes risk: the least probability of a wrong guess" in printed
    assert "0.4195" in printed
    (refused,) = auto(RUN, "bayes_risk", "add_remove", ["0.5"], "relaxed")
    assert "threat_model must be 'dp'" in refused.message
