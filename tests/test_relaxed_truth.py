"""Trade-off functions of weak adversaries against arbitrary precision."""

from __future__ import annotations

import csv
import gzip
import math
from collections import Counter
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import error_budget
import numpy as np
import pytest

import pyengine as pe

PATH = Path(__file__).parent / "data" / "adversaries_reference.csv.gz"
CONTEXT = Context(prec=40, Emin=-10_000_000, Emax=10_000_000)
MOST = 1e-12  # what is promised: of β in relative terms, or of its logarithm


def rows() -> list[dict[str, str]]:
    with gzip.open(PATH, "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


ROWS = rows()


def error_of(log_beta: float, row: dict[str, str]) -> float:
    """Return the relative error of β: the absolute one of its logarithm."""
    return abs(float(Decimal(log_beta) - Decimal(row["log_beta"])))


def relative_error(value: float, truth: Decimal) -> float:
    return abs(float(CONTEXT.subtract(CONTEXT.divide(Decimal(value), truth), Decimal(1))))


def mechanism_of(row: dict[str, str]) -> pe.Mechanism:
    make = pe.LaplaceMechanism if row["kind"] == "laplace" else pe.GaussianMechanism
    step = make(float(row["noise"])).poisson_sampled(float(row["probability"]))
    return step.composed(int(row["steps"]))


def test_points_cover_the_domain() -> None:
    kinds = Counter((row["kind"], row["adjacency"]) for row in ROWS)
    relaxed = sum(n for (kind, _), n in kinds.items() if kind != "membership")
    assert relaxed >= 300
    assert kinds["membership", ""] >= 300
    assert all(kinds["gaussian", word] > 50 for word in ("add", "remove", "add_remove"))
    alphas = [float(row["alpha"]) for row in ROWS]
    assert min(alphas) < 1e-11
    assert max(alphas) > 1 - 1e-11
    assert max(int(row["dimension"]) for row in ROWS) > 3e8
    effects = [
        math.sqrt(float(row["steps"])) / float(row["noise"])
        for row in ROWS
        if row["kind"] == "gaussian"
    ]
    assert min(effects) < 2e-3
    assert max(effects) > 35


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_relaxed(kind: str, adjacency: str) -> None:
    worst: dict[str, float] = {"log_beta": 0.0, "beta": 0.0, "gamma": 0.0}
    for row in ROWS:
        if (row["kind"], row["adjacency"]) != (kind, adjacency):
            continue
        mechanism, alpha = mechanism_of(row), float(row["alpha"])
        keywords: dict[str, Any] = {
            "adjacency": adjacency,
            "threat_model": pe.threat_models.Relaxed(dimension=int(row["dimension"])),
        }
        log_beta = pe.resilience.log_trade_off(mechanism, alpha, **keywords)
        worst["log_beta"] = max(worst["log_beta"], error_of(log_beta, row))
        truth = CONTEXT.exp(Decimal(row["log_beta"]))
        if truth > Decimal("1e-300"):
            lower, beta, upper = pe.trade_off(mechanism, alpha, bounds="estimated", **keywords)
            worst["beta"] = max(worst["beta"], relative_error(beta, truth))
            assert Decimal(lower) <= truth <= Decimal(upper), row
        gamma = pe.gamma_bound(mechanism, alpha, **keywords)
        worst["gamma"] = max(worst["gamma"], relative_error(gamma, CONTEXT.subtract(1, truth)))
    for name, measured in worst.items():
        assert measured <= MOST, name
        error_budget.check(f"adversaries.{kind}_{adjacency}_{name}", measured)


def test_membership() -> None:
    worst = {"log_beta": 0.0, "beta": 0.0, "power": 0.0}
    for row in ROWS:
        if row["kind"] != "membership":
            continue
        step = pe.membership.NoisySGDStep(
            batch_size=float(row["batch_size"]),
            parameters=int(row["dimension"]),
            susceptibility=float(row["susceptibility"]),
            noise=float(row["noise"]),
            clip=float(row["clip"]),
        )
        alpha = float(row["alpha"])
        truth = CONTEXT.exp(Decimal(row["log_beta"]))
        worst["log_beta"] = max(worst["log_beta"], error_of(step.log_trade_off(alpha), row))
        if truth > Decimal("1e-300"):
            worst["beta"] = max(worst["beta"], relative_error(step.trade_off(alpha), truth))
        power = relative_error(step.power(alpha), CONTEXT.subtract(1, truth))
        worst["power"] = max(worst["power"], power)
    for name, measured in worst.items():
        assert measured <= MOST, name
        error_budget.check(f"adversaries.membership_{name}", measured)


def test_gaussian_in_one_dimension_is_corollary_1() -> None:
    alpha = np.array([1e-9, 1e-3, 0.3, 0.9])
    for mu in (0.1, 1.0, 4.0):
        z = -pe.special.ndtri(0.5 * alpha)
        printed = pe.special.ndtr(z - mu) - pe.special.ndtr(-z - mu)
        found = pe.trade_off(
            pe.GaussianMechanism(1.0 / mu), alpha, adjacency="add", threat_model="relaxed"
        )
        np.testing.assert_allclose(found, printed, rtol=1e-13)


@pytest.mark.parametrize("dimension", [630, 650])
def test_truth_where_the_library_has_no_likelihood_ratio(dimension: int) -> None:
    """From 640 dimensions on balls of 0F1 were no numbers at an effect of 10."""
    found, truth = (
        ask(pe.GaussianMechanism(0.1), 0.1, adjacency="add", **words)
        for ask, words in (
            (pe.resilience.log_trade_off, {"threat_model": pe.threat_models.Relaxed(dimension)}),
            (pe.reference.relaxed.log_trade_off, {"dimension": dimension, "digits": 15}),
        )
    )
    assert found == pytest.approx(float(truth), rel=1e-13)
