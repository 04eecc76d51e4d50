"""The spectral engine on steps whose sides are mixtures of normals, against other code's digits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from error_budget import check
from hypothesis import given, settings
from hypothesis import strategies as st
from truth import load

import pyengine as pe
from pyengine.engines.registry import questions
from pyengine.laws.composition import composition_law
from pyengine.laws.normals import MixturePair, Normals, sampled, swapped

ROWS = load("normal_mixtures.json")
ROUNDING = 2.0**-50  # of the truths to doubles, of the arguments, and of weights by 3,000 steps


def mechanism_of(row: dict[str, Any]) -> pe.Mechanism:
    noise = Fraction(row["noise"])
    if row["kind"] == "mixture":
        step: Any = pe.GaussianMixtureMechanism(noise, row["shifts"], row["weights"])
    elif row["kind"] == "substitute":
        step = pe.GaussianMechanism(noise).poisson_sampled(Fraction(row["p"]))
    else:
        step = pe.GaussianMechanism(noise).truncated_poisson_sampled(
            Fraction(row["p"]), batch_size=row["batch_size"], dataset_size=row["dataset_size"]
        )
    return step.composed(row["steps"])


def test_profiles_against_another_contour() -> None:
    """Every truth lies within the estimated error, and few questions are left to the lattice."""
    worst, refused = 0.0, 0
    for row in ROWS:
        try:
            found = pe.delta(
                mechanism_of(row),
                float(row["epsilon"]),
                adjacency=row["adjacency"],
                bounds="estimated",
            )
        except pe.AccuracyError:
            refused += 1
            continue
        truth = float(row["delta"])
        slack = ROUNDING * truth * max(1.0, row["steps"] / 300)
        assert found.lower - slack <= truth <= found.upper + slack, row
        worst = max(worst, abs(found.value / truth - 1.0))
    check("mixtures.profile", worst)
    check("mixtures.profiles_refused", refused / len(ROWS))


@pytest.mark.parametrize("row", ROWS[::10])
def test_what_is_refused_is_left_to_the_lattice(row: dict[str, Any]) -> None:
    found = pe.delta(mechanism_of(row), float(row["epsilon"]), adjacency=row["adjacency"])
    assert found == pytest.approx(float(row["delta"]), rel=1e-9, abs=0)


def test_published_digits() -> None:
    names = {"delta": "delta", "gamma": "gamma_bound", "epsilon": "epsilon", "beta": "trade_off"}
    worst = 0.0
    for row in load("gaussian_mixture.json"):
        mixture = pe.GaussianMixtureMechanism(row["sigma"], row["shifts"], row["weights"])
        found = getattr(pe, names[row["question"]])(
            mixture.composed(row["steps"]),
            float(row["argument"]),
            adjacency=row["adjacency"],
            bounds="estimated",
        )
        truth = float(row["value"])
        assert found.lower <= truth <= found.upper
        worst = max(worst, abs(found.value / truth - 1.0))
    check("mixtures.published", worst)


def test_one_record_of_a_mixture_is_poisson_sampling() -> None:
    mixture = pe.GaussianMixtureMechanism("0.9", ["0", "1"], ["0.97", "0.03"]).composed(300)
    sampled_run = pe.GaussianMechanism("0.9").poisson_sampled("0.03").composed(300)
    kappa = np.array([1e-12, 1e-6, 1e-3, 0.3])
    for adjacency in ("add", "remove", "add_remove"):
        for question in (pe.gamma_bound, pe.trade_off, pe.delta):
            ours = question(mixture, kappa, adjacency=adjacency)
            np.testing.assert_allclose(
                ours, question(sampled_run, kappa, adjacency=adjacency), rtol=1e-12
            )


@settings(max_examples=25, deadline=None)
@given(
    noise=st.floats(0.7, 8.0),
    p=st.floats(0.01, 0.5),
    steps=st.integers(20, 500),
    kappa=st.floats(1e-8, 0.9),
)
def test_substitution_is_symmetric_and_leaks_more(
    noise: float, p: float, steps: int, kappa: float
) -> None:
    """T is its own inverse, and two neighbours by addition are no farther apart."""
    run = pe.dp_sgd(noise, p, steps)
    beta = pe.trade_off(run, kappa, adjacency="substitute")
    if beta > 1e-200:
        back = pe.trade_off(run, beta, adjacency="substitute")
        assert back == pytest.approx(kappa, rel=1e-9)
    gamma = pe.gamma_bound(run, kappa, adjacency="substitute")
    assert gamma >= pe.gamma_bound(run, kappa, adjacency="add_remove") * (1.0 - 1e-10)


@settings(max_examples=25, deadline=None)
@given(
    noise=st.floats(0.7, 8.0),
    raw=st.lists(st.integers(1, 1000), min_size=3, max_size=3),
    steps=st.integers(20, 500),
    epsilon=st.floats(0.0, 3.0),
    other=st.integers(1, 300),
)
def test_order_of_composition_and_monotonicity(
    noise: float, raw: list[int], steps: int, epsilon: float, other: int
) -> None:
    weights = [Fraction(w, sum(raw)) for w in raw]
    mixture = pe.GaussianMixtureMechanism(noise, [0, 1, 2], weights).composed(steps)
    sgd = pe.dp_sgd(1.5, 0.05, other)
    both = pe.delta(pe.compose(mixture, sgd), epsilon)
    assert both == pytest.approx(pe.delta(pe.compose(sgd, mixture), epsilon), rel=1e-10)
    assert both >= pe.delta(mixture, epsilon) * (1.0 - 1e-10)
    louder = pe.GaussianMixtureMechanism(2.0 * noise, [0, 1, 2], weights).composed(steps)
    assert pe.delta(louder, epsilon) <= pe.delta(mixture, epsilon) * (1.0 + 1e-10)


def test_values_stand_between_bounds_that_are_proven() -> None:
    run = pe.dp_sgd(1.0, 0.02, 200)
    asked = questions(run, adjacency="substitute", method="auto", threat_model="dp", tolerance=None)
    answer = asked.profile(np.array([0.5]))
    value = pe.delta(run, 0.5, adjacency="substitute")
    assert bool(answer.certified[0])
    assert answer.lower[0] <= answer.value[0] <= answer.upper[0]
    # where bounds are narrow the value comes from what proves them
    assert answer.value[0] == pytest.approx(value, rel=1e-11)
    assert answer.engine[0] == "certified"
    assert answer.upper[0] - answer.lower[0] < 1e-11 * value


def test_few_loud_steps_are_left_to_the_lattice() -> None:
    run = pe.GaussianMixtureMechanism("0.3", [0, 1, 2], ["0.8", "0.1", "0.1"]).composed(2)
    assert pe.delta(run, 0.1) == pytest.approx(pe.delta(run, 0.1, method="lattice"), rel=1e-9)


def test_sides_of_a_law() -> None:
    pair = MixturePair(Normals((0.0,), (1.0,)), Normals((0.0, 2.0), (0.75, 0.25)))
    found = sampled((pair,), 0.5, 0.5)
    assert found is not None
    assert found[0].b == Normals((0.0, 2.0), (0.875, 0.125))
    assert swapped(found) == (MixturePair(found[0].b, found[0].a),)
    assert sampled(None, 0.5, 0.5) is None
    laws = composition_law(pe.LaplaceMechanism(1.0).composed(2), "add")
    assert laws[0][0].mixtures() is None
    assert laws[0][0].nodes(1) is None
