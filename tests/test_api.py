"""The questions' contract: shapes, edges, wrong input, engines, threads and forks."""

from __future__ import annotations

import copy
import math
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine.caches import clear_cache

MECHANISM = pe.dp_sgd(1.0, 0.01, 1000)
QUESTIONS = (pe.trade_off, pe.gamma_bound, pe.delta, pe.epsilon)
NAMES = {"trade_off": "alpha", "gamma_bound": "kappa", "delta": "epsilon", "epsilon": "delta"}


@pytest.mark.parametrize("question", QUESTIONS)
def test_shapes(question: Any) -> None:
    assert type(question(MECHANISM, 0.1)) is float
    assert type(question(MECHANISM, np.float64(0.1))) is float
    assert question(MECHANISM, [0.1, 0.2]).shape == (2,)
    assert question(MECHANISM, np.full((2, 3, 1), 0.1)).shape == (2, 3, 1)
    assert question(MECHANISM, []).shape == (0,)
    assert question(MECHANISM, np.empty((0, 3))).shape == (0, 3)
    bounds = question(MECHANISM, [0.1, 0.2], bounds=True)
    assert isinstance(bounds, pe.Bounds)
    assert np.all(bounds.lower <= bounds.value)
    assert np.all(bounds.value <= bounds.upper)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "value",
    [-0.1, math.nan, -math.inf, "0.1", b"0.1", None, [0.1, "x"], [[0.1], [0.1, 0.2]], 1j, [None]],
    ids=str,
)
def test_wrong_argument(question: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=NAMES[question.__name__]) as caught:
        question(MECHANISM, value)
    assert "must" in str(caught.value)


@pytest.mark.parametrize("question", [pe.trade_off, pe.gamma_bound, pe.epsilon])
def test_probabilities_above_one(question: Any) -> None:
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\], got 1\.5"):
        question(MECHANISM, [0.5, 1.5])


@pytest.mark.parametrize("question", QUESTIONS)
def test_wrong_words(question: Any) -> None:
    for keyword in ("adjacency", "method", "threat_model"):
        with pytest.raises(ValueError, match=f"{keyword} must be one of .*'nonsense'"):
            question(MECHANISM, 0.1, **{keyword: "nonsense"})
    with pytest.raises(ValueError, match="mechanism must be a Mechanism"):
        question(1.0, 0.1)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0.0, 0.1, 1), "noise_multiplier"),
        ((-1.0, 0.1, 1), "noise_multiplier"),
        ((math.nan, 0.1, 1), "noise_multiplier"),
        ((math.inf, 0.1, 1), "noise_multiplier"),
        (("one", 0.1, 1), "noise_multiplier"),
        (("1/0", 0.1, 1), "noise_multiplier"),
        ((True, 0.1, 1), "noise_multiplier"),
        ((None, 0.1, 1), "noise_multiplier"),
        ((["one"], 0.1, 1), "noise_multiplier"),
        ((1.0, -0.1, 1), "sampling_probability"),
        ((1.0, 1.1, 1), "sampling_probability"),
        ((1.0, math.nan, 1), "sampling_probability"),
        ((1.0, "half", 1), "sampling_probability"),
        ((1.0, 0.1, -1), "steps"),
        ((1.0, 0.1, 1.5), "steps"),
        ((1.0, 0.1, math.inf), "steps"),
        ((1.0, 0.1, "3.5"), "steps"),
        ((1.0, 0.1, math.nan), "steps"),
    ],
)
def test_wrong_mechanism(arguments: tuple[Any, Any, Any], name: str) -> None:
    with pytest.raises(ValueError, match=name) as caught:
        pe.dp_sgd(*arguments)
    position = ("noise_multiplier", "sampling_probability", "steps").index(name)
    assert repr(arguments[position]) in str(caught.value)


def test_nothing_released() -> None:
    for nothing in (pe.dp_sgd(1.0, 0.0, 100), pe.dp_sgd(1.0, 0.1, 0), pe.compose()):
        for adjacency in ("add", "remove", "add_remove"):
            assert pe.gamma_bound(nothing, 0.3, adjacency=adjacency) == 0.3
            assert pe.trade_off(nothing, 0.3, adjacency=adjacency) == 0.7
            assert pe.delta(nothing, 0.0, adjacency=adjacency) == 0.0
            assert pe.epsilon(nothing, 0.0, adjacency=adjacency) == 0.0


@pytest.mark.parametrize(
    "mechanism", [MECHANISM, pe.dp_sgd(1.0, 1.0, 3), pe.dp_sgd(0.5, 0.1, 1), pe.dp_sgd(0.5, 0.1, 3)]
)
def test_edges(mechanism: pe.Mechanism) -> None:
    for adjacency in ("add", "remove", "add_remove"):
        assert pe.gamma_bound(mechanism, [0.0, 1.0], adjacency=adjacency).tolist() == [0.0, 1.0]
        assert pe.trade_off(mechanism, [0.0, 1.0], adjacency=adjacency).tolist() == [1.0, 0.0]
        assert pe.delta(mechanism, math.inf, adjacency=adjacency) == 0.0
        assert pe.epsilon(mechanism, 1.0, adjacency=adjacency) == 0.0
    assert pe.epsilon(mechanism, 0.0, adjacency="remove") == math.inf


def test_smallest_loss_ends_the_profile_of_add() -> None:
    mechanism = pe.dp_sgd(0.5, 0.1, 3)
    end = -3 * math.log1p(-0.1)
    assert pe.epsilon(mechanism, 0.0, adjacency="add") == pytest.approx(end, rel=1e-15)
    assert pe.delta(mechanism, end * 1.01, adjacency="add") == 0.0
    assert pe.delta(mechanism, end * 0.9, adjacency="add") > 0.0


def test_extreme_arguments() -> None:
    mechanism = pe.dp_sgd(0.8, 0.001, 10_000)
    kappa = np.array([1e-300, 1e-200, 1e-100, 1e-16, 1 - 2.0**-53])
    gamma = pe.gamma_bound(mechanism, kappa)
    assert np.all(gamma >= kappa)
    assert np.all(np.diff(gamma) >= 0)
    beta = pe.trade_off(mechanism, 1 - 2.0**-53, adjacency="add")
    assert 0.0 < beta < 2.0**-53
    assert pe.delta(mechanism, 1000.0) >= 0.0


def test_sampling_and_composition() -> None:
    gaussian = pe.GaussianMechanism(noise_multiplier=2.0)
    assert gaussian.poisson_sampled(1.0) == gaussian
    assert gaussian.poisson_sampled(0.1).composed(10) == pe.dp_sgd(2.0, 0.1, 10)
    assert pe.dp_sgd(2.0, 0.1, 4).composed(5) == pe.dp_sgd(2.0, 0.1, 20)
    first, second = pe.dp_sgd(2.0, 0.1, 4), pe.dp_sgd(1.0, 0.2, 5)
    assert first + second == pe.compose(second, first)
    assert (first + second).steps == 9
    # four full-batch steps of noise 4 are one of noise 2
    four, one = pe.dp_sgd(4.0, 1.0, 4), gaussian.composed(1)
    assert pe.gamma_bound(four, 0.01) == pytest.approx(pe.gamma_bound(one, 0.01), rel=1e-14)


def test_mechanisms_are_values() -> None:
    other = pe.dp_sgd(1.0, 0.01, 1000)
    assert other == MECHANISM
    assert hash(other) == hash(MECHANISM)
    assert pickle.loads(pickle.dumps(MECHANISM)) == MECHANISM
    assert copy.deepcopy(MECHANISM) == MECHANISM
    with pytest.raises(AttributeError):
        pe.GaussianMechanism(1.0).noise_multiplier = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("word", ["spectral", "convolution"])
def test_engines_of_earlier_versions_are_auto(word: str) -> None:
    kappa = np.geomspace(1e-60, 0.4, 12)
    former = pe.gamma_bound(MECHANISM, kappa, method=word)  # type: ignore[call-overload]
    assert (former == pe.gamma_bound(MECHANISM, kappa)).all()
    found = pe.gamma_bound(MECHANISM, 1e-3, method=word, bounds=True)  # type: ignore[call-overload]
    assert found == pe.gamma_bound(MECHANISM, 1e-3, bounds=True)


@pytest.mark.parametrize("question", ["gamma_bound", "trade_off", "delta", "epsilon"])
def test_values_are_those_between_proven_bounds(question: str) -> None:
    ask, x = getattr(pe, question), np.geomspace(1e-30, 0.5, 10)
    for run in (MECHANISM, pe.dp_sgd(0.9, 1e-6, 400), pe.dp_sgd(2.0, 0.01, 9, group_size=3)):
        bounds = ask(run, x, bounds=True)
        assert (ask(run, x) == bounds.value).all()
        middle = float(x[5])
        assert ask(run, middle) == ask(run, middle, bounds=True).value


def test_closed_form_is_refused_where_there_is_none() -> None:
    with pytest.raises(ValueError, match="closed_form"):
        pe.gamma_bound(MECHANISM, 0.1, method="closed_form")


def test_accuracy_error_says_what_would_help() -> None:
    run = pe.dp_sgd(0.5, 1e-7, 10**8)
    with pytest.raises(pe.AccuracyError, match=r"tolerance=\S+ or more gives this answer"):
        pe.epsilon(run, 1e-5, tolerance=1e-15)


def test_scalar_and_array_give_the_same_bits() -> None:
    kappa = np.geomspace(1e-40, 0.9, 200)
    together = pe.gamma_bound(MECHANISM, kappa)
    clear_cache()
    backwards = [pe.gamma_bound(MECHANISM, float(k)) for k in kappa[::-1]]
    assert np.array_equal(together[::-1], backwards)


def test_threads_give_the_same_bits() -> None:
    mechanisms = [pe.dp_sgd(1.0 + 0.1 * i, 0.01, 500) for i in range(6)]
    kappa = np.geomspace(1e-20, 0.5, 64)
    expected = [pe.gamma_bound(m, kappa) for m in mechanisms]
    clear_cache()
    jobs = [(i % 6, kappa) for i in range(48)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda job: pe.gamma_bound(mechanisms[job[0]], job[1]), jobs))
    for (i, _), gamma in zip(jobs, found, strict=True):
        assert np.array_equal(gamma, expected[i])


def _child(queue: Any) -> None:
    queue.put(pe.gamma_bound(MECHANISM, 1e-3))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_child_forked_after_use() -> None:
    expected = pe.gamma_bound(MECHANISM, 1e-3)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    found = queue.get(timeout=60)
    child.join(60)
    assert found == expected
    assert child.exitcode == 0
