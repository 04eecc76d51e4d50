"""Exact sums and the lattice engine on the same random problems: their brackets must meet."""

from __future__ import annotations

from typing import Any

import pytest
from comparing import compared, comparing, left_out
from drawing import mechanisms
from error_budget import check_near
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import Draw, laplace
from thorough import ALL

import pyengine as pe
from pyengine.mechanisms import steps_of


def losses(d: Draw) -> str:
    """Steps of few losses and two Laplace steps, perhaps sampled, or many of the latter."""

    def sample() -> str:
        return f".poisson_sampled({d.one_of(1.0, 0.5, 0.1, 0.01)})"

    def vector() -> list[str]:
        row = [1, *(d.one_of(*range(10)) for _ in range(2))]
        return [f"{x}/{sum(row)}" for x in row]

    kind = d.one_of("response", "generic", "pair", "discrete", "two", "laplace")
    if kind == "laplace":
        return laplace(d, (0.3, 6), (1, 80))
    if kind == "two":
        return " + ".join(f"pe.LaplaceMechanism({d.real(0.3, 6)}){sample()}" for _ in range(2))
    step, most = {
        "response": (f"RandomizedResponse({d.real(0.3, 0.95)}, {d.one_of(2, 3, 4, 5, 6)})", 60),
        "generic": (f"GenericMechanism({d.real(0.01, 2)}, {d.one_of(0, 1e-6, 0.1)})", 40),
        "pair": (f"from_probabilities({vector()}, {vector()})", 8),
        "discrete": (f"DiscreteLaplaceMechanism({d.real(0.3, 6)}, {d.one_of(1, 2, 3, 4)})", 6),
    }[kind]
    return f"pe.{step}{sample()}.composed({d.count(1, most)})"


def meet(first: Any, second: Any) -> bool:
    slack = 1e-14 * abs(first.value) + 1e-300
    return bool(first.lower <= second.upper + slack and second.lower <= first.upper + slack)


@comparing(0.7)
@settings(max_examples=30 if ALL else 12, deadline=None)
@given(
    mechanisms(losses),
    st.sampled_from(["add", "remove"]),
    st.floats(0.0, 3.0),
    st.sampled_from([1e-12, 1e-5, 0.03, 0.5, 0.97]),
)
def test_brackets_meet(mechanism: Any, adjacency: str, epsilon: float, alpha: float) -> None:
    single = len(steps_of(mechanism)) == 1
    method = "exact" if single else "auto"  # lines know two Laplace steps
    for ask, x in ((pe.delta, epsilon), (pe.gamma_bound, alpha), (pe.trade_off, alpha)):
        exact = ask(mechanism, x, adjacency=adjacency, method=method, bounds=True)
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
            check_near("limits.discrete_noise", first.value, second.value)
