"""Exact sums and the lattice engine on the same random problems: their brackets must meet."""

from __future__ import annotations

from typing import Any

import pytest
from comparing import compared, comparing, left_out
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import ALL

import pyengine as pe

noises = st.floats(0.3, 6.0)
rates = st.sampled_from([1.0, 0.5, 0.1, 0.01])


@st.composite
def mechanisms(draw: Any) -> Any:
    kind = draw(st.sampled_from(["response", "generic", "pair", "laplace", "discrete", "two"]))
    rate = draw(rates)
    if kind == "response":
        step: Any = pe.RandomizedResponse(draw(st.floats(0.3, 0.95)), draw(st.integers(2, 6)))
        return step.poisson_sampled(rate).composed(draw(st.integers(1, 60)))
    if kind == "generic":
        step = pe.GenericMechanism(
            draw(st.floats(0.01, 2.0)), draw(st.sampled_from([0, 1e-6, 0.1]))
        )
        return step.poisson_sampled(rate).composed(draw(st.integers(1, 40)))
    if kind == "pair":
        p = [1, *draw(st.lists(st.integers(0, 9), min_size=2, max_size=2))]
        q = [1, *draw(st.lists(st.integers(0, 9), min_size=2, max_size=2))]
        step = pe.from_probabilities([x / sum(p) for x in p], [x / sum(q) for x in q])
        return step.poisson_sampled(rate).composed(draw(st.integers(1, 8)))
    if kind == "laplace":
        return pe.LaplaceMechanism(draw(noises)).composed(draw(st.integers(1, 80)))
    if kind == "discrete":
        step = pe.DiscreteLaplaceMechanism(draw(noises), draw(st.integers(1, 4)))
        return step.poisson_sampled(rate).composed(draw(st.integers(1, 6)))
    first = pe.LaplaceMechanism(draw(noises)).poisson_sampled(rate)
    return first + pe.LaplaceMechanism(draw(noises)).poisson_sampled(draw(rates))


def meet(first: Any, second: Any) -> bool:
    slack = 1e-14 * abs(first.value) + 1e-300
    return bool(first.lower <= second.upper + slack and second.lower <= first.upper + slack)


@comparing(0.7)
@settings(max_examples=30 if ALL else 12, deadline=None)
@given(
    mechanisms(),
    st.sampled_from(["add", "remove"]),
    st.floats(0.0, 3.0),
    st.sampled_from([1e-12, 1e-5, 0.03, 0.5, 0.97]),
)
def test_brackets_meet(mechanism: Any, adjacency: str, epsilon: float, alpha: float) -> None:
    for ask, x in ((pe.delta, epsilon), (pe.gamma_bound, alpha), (pe.trade_off, alpha)):
        exact = ask(mechanism, x, adjacency=adjacency, method="exact", bounds=True)
        try:
            lattice = ask(
                mechanism, x, adjacency=adjacency, method="lattice", bounds=True, tolerance=1e-3
            )
        except pe.AccuracyError:  # near an end of the range, which exact sums reach
            left_out()
            continue
        compared()
        assert meet(exact, lattice), (ask.__name__, x, exact, lattice)


@pytest.mark.parametrize("kind", [pe.GaussianMechanism, pe.LaplaceMechanism])
def test_substitution_laws_compose(kind: Any) -> None:
    """Many small steps of a sampled mechanism under substitution: more than under add or remove."""
    run = kind(2.0).poisson_sampled(0.05).composed(200)
    found = pe.delta(run, 0.5, adjacency="substitute", bounds=True)
    assert found.lower > 1.5 * pe.delta(run, 0.5)
    assert found.upper - found.lower < 2e-4 * found.value
    # a substituted record is one removed and one added
    assert found.value <= 1.0
    doubled = pe.delta(kind(1.0).poisson_sampled(0.05).composed(200), 0.5)
    assert found.upper < doubled


def test_discrete_noise_tends_to_continuous_noise() -> None:
    """Fine integer queries with discrete noise release what continuous noise releases."""
    for discrete, continuous in (
        (pe.DiscreteGaussianMechanism(2.0, 40), pe.GaussianMechanism(2.0)),
        (pe.DiscreteLaplaceMechanism(2.0, 400), pe.LaplaceMechanism(2.0)),
    ):
        for adjacency in ("add", "substitute"):
            ask: Any = {"adjacency": adjacency, "bounds": True}
            first = pe.delta(discrete.poisson_sampled(0.2).composed(3), 0.4, **ask)
            second = pe.delta(continuous.poisson_sampled(0.2).composed(3), 0.4, **ask)
            assert first.value == pytest.approx(second.value, rel=2e-3)
