"""Thousands of values at once: polynomials between the engine's own values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import log_uniform
from error_budget import check
from hypothesis import given, settings
from hypothesis import strategies as st

import pyengine as pe
from pyengine.caches import clear_cache, kept_bytes
from pyengine.engines import chebyshev_panels
from pyengine.engines.certified import MANY
from pyengine.engines.chebyshev_panels import CROWD, ChebyshevPanels

KEPT = pe.dp_sgd(1.0, 0.01, 1000)
NORMAL = 1e-305
QUESTIONS = [pe.gamma_bound, pe.trade_off, pe.delta, pe.epsilon]


def _one_by_one(question: Any, mechanism: pe.Mechanism, x: Any, **words: Any) -> Any:
    """The engine's own values: few are asked at a time."""
    parts = np.array_split(x, len(x) // (MANY - 1) + 1)
    return np.concatenate([question(mechanism, part, **words) for part in parts])


def _miss(question: Any, values: Any, own: Any) -> float:
    """Relative error; of ε as a part of the largest one."""
    if question is pe.epsilon:
        return float(np.abs(values - own).max() / max(own.max(), 1e-300))
    some = own > NORMAL  # below doubles lose their digits
    assert np.all(values[~some] <= NORMAL * (1.0 + 1e-9))
    return float(np.abs(values[some] / own[some] - 1.0).max(initial=0.0))


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_polynomials_take_the_place_of_values(question: Any, adjacency: str) -> None:
    x = np.geomspace(1e-300, 1.0, 10_001)
    if question in (pe.delta, pe.trade_off):
        x = np.linspace(0.0, 12.0 if question is pe.delta else 1.0, 10_001)
    values = question(KEPT, x, adjacency=adjacency)
    own = _one_by_one(question, KEPT, x, adjacency=adjacency)
    assert np.mean((values != own)[own > 1e-29]) > 0.5
    assert _miss(question, values, own) < 1e-12
    # of the polynomials alone, whose values at nodes are estimates
    words = {"adjacency": adjacency, "method": "auto"}
    own = _one_by_one(question, KEPT, x, **words)
    check(f"chebyshev_panels.{question.__name__}", _miss(question, question(KEPT, x, **words), own))


@settings(max_examples=15)
@given(
    noise=log_uniform(0.3, 30.0),
    probability=log_uniform(1e-5, 1.0),
    steps=log_uniform(2.0, 1e5).map(int),
    question=st.sampled_from(QUESTIONS),
    adjacency=st.sampled_from(["add", "remove", "add_remove"]),
    depth=log_uniform(1.0, 600.0),
    seed=st.integers(0, 2**32),
)
def test_any_mechanism(
    noise: float,
    probability: float,
    steps: int,
    question: Any,
    adjacency: str,
    depth: float,
    seed: int,
) -> None:
    mechanism = pe.dp_sgd(noise, probability, steps)
    x = np.exp(-depth * np.random.default_rng(seed).uniform(size=MANY))
    if question is pe.delta:
        x *= 10.0
    try:
        own = _one_by_one(question, mechanism, x, adjacency=adjacency)
    except pe.AccuracyError:
        with pytest.raises(pe.AccuracyError):
            question(mechanism, x, adjacency=adjacency)
        return
    values = question(mechanism, x, adjacency=adjacency)
    assert _miss(question, values, own) < 2e-12


@pytest.mark.parametrize("size", [MANY, 5000])
@pytest.mark.parametrize(
    ("mechanism", "end"),
    [
        (pe.dp_sgd(2.0, 0.01, 200, group_size=3), 8.0),
        (pe.GaussianMixtureMechanism(2.0, (0, 1, 2), (0.5, 0.3, 0.2)).composed(20), 40.0),
    ],
)
def test_values_below_1e_30_are_as_close_as_others(
    mechanism: pe.Mechanism, end: float, size: int
) -> None:
    x = np.linspace(0.0, end, size)
    for adjacency in ("add", "remove", "add_remove"):
        own = _one_by_one(pe.delta, mechanism, x, adjacency=adjacency)
        assert own.min() < 1e-30
        # the log of 1e-200 is known to 6e-14, which is the relative error of the value
        assert _miss(pe.delta, pe.delta(mechanism, x, adjacency=adjacency), own) < 2e-12


def test_the_same_values_whatever_was_asked_before() -> None:
    kappa = np.geomspace(1e-9, 0.9, 5000)
    clear_cache()
    first = pe.gamma_bound(KEPT, kappa)
    pe.gamma_bound(KEPT, np.linspace(1e-6, 0.999, 7000))
    assert np.array_equal(first, pe.gamma_bound(KEPT, kappa))
    backwards = pe.gamma_bound(KEPT, kappa[::-1])
    assert np.array_equal(first, backwards[::-1])


def test_bounds_tolerances_and_few_values_are_the_engine_s_own() -> None:
    kappa = np.geomspace(1e-9, 0.4, MANY)
    own = _one_by_one(pe.gamma_bound, KEPT, kappa)
    few = pe.gamma_bound(KEPT, kappa[::97], bounds=True)
    for part, same in zip(pe.gamma_bound(KEPT, kappa, bounds=True), few, strict=True):
        assert np.array_equal(part[::97], same)
    assert np.array_equal(pe.gamma_bound(KEPT, kappa, tolerance=1e-9), own)
    assert np.array_equal(pe.gamma_bound(KEPT, kappa[1:]), own[1:])
    assert not np.array_equal(pe.gamma_bound(KEPT, kappa), own)


def test_ends_of_the_domain_are_the_engine_s_own() -> None:
    x = np.concatenate([[0.0, 1.0, 1.0 - 2.0**-53, 5e-324], np.linspace(0.2, 0.3, MANY)])
    for question in QUESTIONS:
        found = question(KEPT, x)
        assert np.array_equal(found[:4], question(KEPT, x[:4])), question
    with pytest.raises(ValueError, match=r"kappa must lie in \[0, 1\]"):
        pe.gamma_bound(KEPT, np.append(x, 1.5))


def _no_profile() -> float:
    raise AssertionError("only the panels of δ need δ(0)")


def _count(function: Any) -> tuple[Any, list[int]]:
    sizes: list[int] = []

    def ask(x: Any) -> Any:
        sizes.append(x.size)
        return function(x)

    return ask, sizes


def test_a_corner_is_asked_point_by_point() -> None:
    ask, sizes = _count(lambda x: np.maximum(x, 0.01))  # as the hull of two curves
    x = np.geomspace(1e-6, 0.4, MANY)
    panels = ChebyshevPanels("gamma_bound", _no_profile)
    values = panels.values(x, ask)
    assert np.abs(values / np.maximum(x, 0.01) - 1.0).max() < 1e-13
    near = np.floor(4.0 * np.sqrt(-np.log(x))) == np.floor(4.0 * np.sqrt(-np.log(0.01)))
    assert near.sum() <= sizes[1] < MANY / 4
    assert np.array_equal(values[near], np.maximum(x, 0.01)[near])


def test_noise_of_a_lattice_is_no_polynomial() -> None:
    ask, sizes = _count(lambda x: x * (1.0 + 1e-6 * np.sin(1e9 * x)))
    x = np.geomspace(1e-6, 0.4, MANY)
    assert np.array_equal(ChebyshevPanels("gamma_bound", _no_profile).values(x, ask), ask(x))
    assert sizes[1] == x.size


def test_a_panel_that_is_refused_is_asked_point_by_point() -> None:
    def ask(x: Any) -> Any:
        if (x < 1e-5).any() and (x > 9e-6).any():
            raise pe.AccuracyError("as an engine refuses")
        return x**0.5

    # no argument is refused, but points of one panel are
    x = np.concatenate([np.geomspace(1e-5, 0.4, MANY), np.geomspace(9e-7, 1e-6, MANY)])
    found = ChebyshevPanels("gamma_bound", _no_profile).values(x[:MANY], ask)
    assert np.abs(found / np.sqrt(x[:MANY]) - 1.0).max() < 1e-13
    with pytest.raises(pe.AccuracyError, match="as an engine"):
        ChebyshevPanels("gamma_bound", _no_profile).values(
            x, lambda x: ask(np.append(x, [1e-5, 9.5e-6]))
        )


def test_few_values_on_a_panel_are_asked() -> None:
    ask, sizes = _count(np.sqrt)
    panels = ChebyshevPanels("gamma_bound", _no_profile)
    x = np.concatenate([np.full(MANY, 0.3), np.full(CROWD - 1, 1e-20)])
    assert np.array_equal(panels.values(x, ask)[MANY:], np.sqrt(x[MANY:]))
    assert sizes == [18, CROWD - 1]


def test_memory_is_counted_and_bounded() -> None:
    clear_cache()
    pe.gamma_bound(KEPT, np.geomspace(1e-2, 0.4, MANY - 1))
    before = kept_bytes()
    pe.gamma_bound(KEPT, np.geomspace(1e-300, 1.0, 100_000))
    panels = chebyshev_panels.ChebyshevPanels("gamma_bound", _no_profile)
    panels.values(np.geomspace(1e-300, 1.0, 100_000), lambda x: x)
    assert 0 < panels.bytes() < 150 * 400
    assert kept_bytes() - before > panels.bytes()


def test_small_epsilons_lie_on_panels_too() -> None:
    ask, sizes = _count(lambda x: 0.04 * np.exp(-((x / 0.1) ** 2)))
    x = np.linspace(0.0, 0.3, MANY)
    found = ChebyshevPanels("delta", lambda: 0.04).values(x, ask)
    assert np.abs(found / (0.04 * np.exp(-((x / 0.1) ** 2))) - 1.0).max() < 1e-12
    assert sum(sizes) <= 12 * 18


def test_a_profile_that_is_refused_at_zero_is_asked_point_by_point(monkeypatch: Any) -> None:
    run, x = pe.dp_sgd(0.9, 0.01, 900), np.linspace(0.5, 3.0, MANY)
    own = np.concatenate([pe.delta(run, part) for part in np.array_split(x, 4)])

    def refuse(_: Any) -> float:
        raise pe.AccuracyError("as an engine refuses")

    monkeypatch.setattr("pyengine.engines.certified_hull.CertifiedBothOrders._at_zero", refuse)
    clear_cache()
    assert np.array_equal(pe.delta(run, x), own)
