"""The ground truth against published values, and its answers as numbers."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import mpmath
import pytest
from comparing import compared, comparing, left_out
from flint import arb
from outcomes import gaussian_delta
from thorough import ALL, some

import pyengine as pe
from pyengine import reference
from pyengine.reference.balls import precision
from pyengine.reference.gaussian.law import SampledGaussianLaw
from pyengine.reference.gaussian.steps import EqualSteps
from pyengine.reference.tails import BallTails

DATA = Path(__file__).parent / "data"
PUBLISHED = json.loads((DATA / "dp_sgd_published.json").read_text(encoding="utf-8"))


def mechanism(row: dict[str, Any]) -> pe.Mechanism:
    return pe.dp_sgd(row["sigma"], row["p"], row["steps"])


def agrees(value: reference.Value, text: str, digits: float) -> None:
    """The enclosure holds the published number, as far as its digits go."""
    with mpmath.workdps(60):
        truth = mpmath.mpf(text)
        rounding = abs(truth) * mpmath.mpf(10) ** (1 - min(digits, 29.0))
        assert abs(value - truth) <= value.error + rounding
        assert value.error <= abs(value) * mpmath.mpf(10) ** -30


@pytest.mark.parametrize(
    "row", some(PUBLISHED["gamma"], 2), ids=lambda row: f"{row['sigma']}-{row['kappa']}"
)
def test_published_trade_off(row: dict[str, Any]) -> None:
    for question, name in ((reference.gamma_bound, "gamma"), (reference.trade_off, "beta")):
        value = question(mechanism(row), row["kappa"], adjacency=row["adjacency"])
        assert value.certified
        agrees(value, row[name], row[f"digits_{name}"])


@pytest.mark.parametrize(
    "row", some(PUBLISHED["delta"], 2), ids=lambda r: f"{r['sigma']}-{r['epsilon']}"
)
def test_published_profile(row: dict[str, Any]) -> None:
    value = reference.delta(mechanism(row), row["epsilon"], adjacency=row["adjacency"])
    assert value.certified
    agrees(value, row["delta"], row["digits"])


def test_value_is_a_number() -> None:
    value = reference.delta(pe.dp_sgd("4", 1, 100), "0.5", digits=40)
    assert isinstance(value, mpmath.mpf)
    assert value.certified
    assert value.digits >= 40
    assert value.lower < value < value.upper
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert again.error == value.error
    assert again.certified
    assert Decimal(value.decimal(35)) == Decimal(str(mpmath.nstr(value, 35)))


def test_tails_a_million_deviations_out_keep_their_digits() -> None:
    """They were refused: balls of erfc have no digits there."""
    noise, steps, epsilon = 0.000393170980641602, 85042, 275070496567.55835
    run = pe.dp_sgd(noise, 1, steps)
    found = reference.delta(run, epsilon, adjacency="remove", digits=20)
    assert found.certified
    with mpmath.workdps(60):
        truth = gaussian_delta(mpmath.sqrt(steps) / mpmath.mpf(noise), epsilon)
        assert abs(found / truth - 1) < 1e-20
    bounds = pe.delta(run, epsilon, adjacency="remove", bounds=True)
    assert bounds.lower < truth < bounds.upper


def random_points() -> list[dict[str, Any]]:
    """Some points of the random file, more on request; `test_reference_few.py` has the others."""
    points = json.loads((DATA / "dp_sgd_random.json").read_text(encoding="utf-8"))["points"]
    kept = [p for p in points if sum(p["steps"]) >= 60 and len(p["noise"]) < 5]
    return kept[:: 11 if ALL else 397]


@comparing(0.9)
def test_random_points() -> None:
    """Enclosures hold what two runs of another program agreed on, also far in the tails.

    A few laws are refused, or known to less than 50 bits: that is said, and nothing is wrong.
    """
    for point in random_points():
        rows = zip(point["noise"], point["p"], point["steps"], strict=True)
        law = SampledGaussianLaw(tuple(EqualSteps(*row) for row in rows))
        try:
            local = law.near(arb(point["c"]), 60.0)
        except pe.AccuracyError:
            left_out()
            continue
        with precision(300):
            six = local.at(arb(point["c"]))
            names = [name for name in BallTails.__dataclass_fields__ if name in point]
            for name, digits in zip(names, point["digits"], strict=True):
                value, truth = getattr(six, name), arb(point[name])
                slack = abs(truth) * arb(10) ** (1 - min(digits, 20))
                assert abs(value.mid() - truth) <= value.rad() + slack, point
            sharp = max(getattr(six, name).rel_accuracy_bits() for name in ("p_above", "p_below"))
        compared() if sharp > 50 else left_out()
