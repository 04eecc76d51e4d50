"""Proven lines of mixtures: digits of other code, brackets of the lattice, exact numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from comparing import compared, comparing, left_out
from random_mechanisms import Draw, groups, made, sgd, truncated
from test_normal_mixtures import ROWS, mechanism_of
from truth import load

import pyengine as pe
from pyengine.api import answers
from pyengine.laws.base import StepLaw
from pyengine.laws.composition import composition_law
from pyengine.laws.normals import Normals

NAMES = {"delta": "delta", "gamma": "gamma_bound", "epsilon": "epsilon", "beta": "trade_off"}


def certified(
    question: str, mechanism: pe.Mechanism, argument: float, adjacency: str
) -> tuple[float, float, str]:
    """Bounds by the method, and the engine behind them."""
    bounds, engines, proven = answers(
        question, mechanism, [argument], adjacency=adjacency, method="certified"
    )
    assert proven == [True]
    return float(bounds.lower[0]), float(bounds.upper[0]), engines[0]


def test_profiles_against_another_contour() -> None:
    """Of 20 digits, without any slack: the arguments and parameters of the file are exact."""
    widths = []
    for row in ROWS:
        lower, upper, engine = certified(
            "delta", mechanism_of(row), float(row["epsilon"]), row["adjacency"]
        )
        assert Decimal(lower) <= Decimal(row["delta"]) <= Decimal(upper), row
        if engine == "certified":
            widths.append((upper - lower) / upper)
    assert len(widths) == len(ROWS)
    assert np.median(widths) < 1e-12
    assert max(widths) < 1e-10


@pytest.mark.parametrize("row", load("gaussian_mixture.json"))
def test_published_digits(row: dict[str, Any]) -> None:
    mixture = pe.GaussianMixtureMechanism(row["sigma"], row["shifts"], row["weights"])
    lower, upper, engine = certified(
        NAMES[row["question"]],
        mixture.composed(row["steps"]),
        float(row["argument"]),
        row["adjacency"],
    )
    assert engine == "certified"
    rounding = Decimal(row["value"]) * Decimal("1e-14")  # of the argument and of the last digit
    assert Decimal(lower) - rounding <= Decimal(row["value"]) <= Decimal(upper) + rounding
    assert upper - lower < 1e-11 * upper


@comparing(0.8)
def test_bounds_meet_the_brackets_of_the_lattice() -> None:
    """Random mixtures, groups, substitutions and truncated samples, each question."""
    d = Draw(29)
    for number in range(12):
        ranges = (0.6, 4), (1e-3, 0.3), (30, 1e3)
        adjacency = ("add", "remove", "substitute")[number % 2 if number % 4 != 1 else 2]
        noise, p = d.real(0.6, 4), d.number(1e-3, 0.3)
        mixture = f"pe.GaussianMixtureMechanism({noise}, [0, 0.5, 2], [{1 - p}, {p / 2}, {p / 2}])"
        mechanism = made(
            (
                groups(d, *ranges, (3, 3)),
                sgd(d, *ranges),
                f"{mixture}.composed({d.count(30, 1e3)}) + {sgd(d, (1.2, 8), (p, p), (50, 50))}",
                truncated(d),
            )[number % 4]
        )
        question = ("delta", "gamma_bound", "epsilon")[number % 3]
        argument = {"delta": 0.7, "gamma_bound": 0.01, "epsilon": 1e-5}[question]
        lower, upper, engine = certified(question, mechanism, argument, adjacency)
        if engine != "certified":
            left_out()
            continue
        wide, _, _ = answers(question, mechanism, [argument], adjacency=adjacency, method="lattice")
        assert lower <= wide.upper[0]
        assert wide.lower[0] <= upper
        compared()


LAWS: list[tuple[pe.Mechanism, str]] = [
    (pe.GaussianMechanism("1/3"), "add"),
    (pe.GaussianMechanism(0.7).poisson_sampled("1/7"), "remove"),
    (pe.GaussianMechanism("2/3").poisson_sampled("1/7"), "substitute"),
    (pe.GaussianMechanism(0.7).sampled_without_replacement(batch_size=3, dataset_size=11), "add"),
    (pe.GaussianMixtureMechanism("0.3", ["0", "1/3", 2], ["1/7", "5/7", "1/7"]), "remove"),
    (
        pe.GaussianMechanism("0.9").truncated_poisson_sampled(
            "1/10", batch_size=13, dataset_size=100
        ),
        "remove",
    ),
]


@pytest.mark.parametrize(("mechanism", "adjacency"), LAWS)
def test_exact_numbers_round_to_those_of_the_fast_engine(
    mechanism: pe.Mechanism, adjacency: str
) -> None:
    law = composition_law(mechanism, adjacency)[0][0]
    quick, exact = law.mixtures(), law.exact_mixtures()
    assert quick is not None
    assert exact is not None
    assert sum(pair.share for pair in exact) == pytest.approx(1, rel=1e-15)
    for pair, terms in zip(quick, exact, strict=True):
        assert float(terms.share) == pytest.approx(np.exp(pair.log_share), rel=1e-13)
        for place, side in enumerate((pair.a, pair.b)):
            weights = {c: both[place] for c, both in terms.terms.items() if both[place] > 0}
            assert abs(sum(weights.values()) - 1) < Fraction(1, 2**90)
            expected = Normals.of((float(c), float(w)) for c, w in sorted(weights.items()))
            np.testing.assert_allclose(side.shifts, expected.shifts, rtol=1e-15)
            np.testing.assert_allclose(side.weights, expected.weights, rtol=1e-15)


def test_noise_that_is_no_double_is_taken_exactly() -> None:
    """Bounds of the exact number, of its double and of the next one differ as they should."""
    steps = 1000
    bounds = [
        certified("delta", pe.dp_sgd(noise, "0.01", steps), 0.5, "substitute")
        for noise in ("0.7", 0.7, np.nextafter(0.7, 1.0))
    ]
    for lower, upper, engine in bounds:
        assert engine == "certified"
        assert upper - lower < 1e-11 * upper
    assert max(lower for lower, *_ in bounds) <= min(upper for _, upper, _ in bounds)


def test_laws_that_are_no_mixtures_have_no_exact_numbers() -> None:
    mechanisms = (
        pe.LaplaceMechanism(1.0),
        pe.RandomizedResponse("3/4"),
        pe.LaplaceMechanism(2.0).poisson_sampled(0.1),
        pe.GaussianMechanism(1.0).randomly_allocated(steps=4),
    )
    for mechanism in mechanisms:
        law: StepLaw = composition_law(mechanism, "add")[0][0]
        assert law.exact_mixtures() is None


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_what_the_estimates_refuse_is_proven_before_the_lattice_is_asked(adjacency: str) -> None:
    """Rounding by a hundred thousand steps is above the limits of the estimates."""
    step = pe.GaussianMechanism("10.7").truncated_poisson_sampled(
        "0.0109", batch_size=2, dataset_size=184
    )
    run = step.composed(91_630)
    bounds, engines, proven = answers("delta", run, [0.0025, 0.5], adjacency=adjacency)
    assert engines == ["certified"] * 2
    assert proven == [True] * 2
    assert (bounds.upper - bounds.lower < 1e-10 * bounds.value).all()
    # a value alone is that between them
    value = pe.delta(run, 0.5, adjacency=adjacency)
    assert bounds.lower[1] <= value <= bounds.upper[1]
