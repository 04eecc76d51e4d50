"""One step of any law from its masses at one edge, against closed forms and exact sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import compared, comparing, left_out
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import ALL

import pyengine as pe
from pyengine.engines.exact.single import SingleStep
from pyengine.engines.exact.threshold import ThresholdQuestions
from pyengine.laws.composition import step_law

ADJACENCIES = ("add", "remove", "add_remove")
noises = st.floats(math.log(0.1), math.log(30.0)).map(math.exp)
rates = st.one_of(st.just(1.0), st.floats(math.log(1e-6), 0.0).map(math.exp))
levels = st.floats(math.log(1e-100), 0.0).map(math.exp)


def assert_encloses(certified: pe.Bounds, other: pe.Bounds, width: float) -> None:
    slack = max(other.upper - other.value, other.value - other.lower)
    assert certified.lower <= other.value + slack
    assert other.value - slack <= certified.upper
    assert certified.upper - certified.lower <= width * certified.upper + 1e-300


@comparing(0.95)
@settings(max_examples=25 if ALL else 10, deadline=None)
@given(noise=noises, rate=rates, level=levels, adjacency=st.sampled_from(ADJACENCIES))
def test_gaussian_against_closed_forms(
    noise: float, rate: float, level: float, adjacency: str
) -> None:
    mechanism = pe.dp_sgd(noise, rate, 1)
    epsilon = -math.log(level) / 50.0
    for question, at in ((pe.gamma_bound, level), (pe.trade_off, level), (pe.delta, epsilon)):
        try:
            other = question(mechanism, at, adjacency=adjacency, bounds=True)
        except pe.AccuracyError:
            left_out()
            continue
        compared()
        found = question(mechanism, at, adjacency=adjacency, method="lattice", bounds=True)
        assert_encloses(found, other, 1e-4)


@pytest.mark.parametrize(
    "step",
    [
        pe.RandomizedResponse(0.75),
        pe.RandomizedResponse(0.6, 5).poisson_sampled(0.1),
        pe.GenericMechanism(1.0, 1e-3),
        pe.LaplaceMechanism(0.7),
        pe.LaplaceMechanism(0.7).poisson_sampled(1e-3),
        pe.DiscreteLaplaceMechanism(1.3),
        pe.from_probabilities([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    ],
    ids=str,
)
@pytest.mark.parametrize("order", ["add", "remove"])
def test_other_laws_against_exact_sums(step: pe.Mechanism, order: str) -> None:
    single = ThresholdQuestions(SingleStep(step_law(step, order)))
    alpha, epsilon = (
        np.array([0.0, 1e-30, 1e-3, 0.2, 0.5, 0.9, 1.0]),
        np.array([0.0, 1e-3, 0.3, 5.0]),
    )
    curve = single.trade_off(alpha)
    for found, question, at in (
        (curve.gamma, pe.gamma_bound, alpha),
        (curve.beta, pe.trade_off, alpha),
        (single.profile(epsilon), pe.delta, epsilon),
    ):
        other = question(step, at, adjacency=order, bounds=True)
        slack = 1e-14 * other.value + 1e-300
        assert np.all(found.lower <= other.upper + slack)
        assert np.all(other.lower - slack <= found.upper)
        assert np.all(found.upper - found.lower <= 1e-9 * found.upper + 1e-300)
