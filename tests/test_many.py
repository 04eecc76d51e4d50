"""Many mechanisms in one call: answers of each alone, broadcast, on all cores."""

from __future__ import annotations

import _thread
import pickle
import signal
import threading
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from thorough import ALL

import pyengine as pe
from pyengine._core import lib
from pyengine.engines import many
from pyengine.engines.many import AskedTogether, answered_together, listed
from pyengine.mechanisms.many import Mechanisms

QUESTIONS = {"trade_off": 0.3, "gamma_bound": 1e-3, "delta": 0.5, "epsilon": 1e-6}
ORDERS = ("add", "remove", "add_remove")


def runs_of(rng: np.random.Generator, n: int) -> Any:
    """Such as nearest lines prove, mostly."""
    noise, rate = rng.uniform(0.9, 3.0, n), 10.0 ** rng.uniform(-2.5, -1.0, n)
    return pe.dp_sgd(noise, rate, (10.0 ** rng.uniform(3.1, 4.0, n)).astype(np.int64))


@pytest.mark.parametrize("bounds", [False, True, "estimated"])
@pytest.mark.parametrize("adjacency", ORDERS)
@pytest.mark.parametrize("name", list(QUESTIONS))
def test_answers_have_the_bits_of_each_alone(name: str, adjacency: str, bounds: Any) -> None:
    rng = np.random.default_rng(len(name) + len(adjacency))
    runs, ask = runs_of(rng, 100 if ALL else 9), getattr(pe, name)
    x = QUESTIONS[name] * rng.uniform(0.3, 1.5, len(runs))
    found = ask(runs, x, adjacency=adjacency, bounds=bounds)
    alone = [
        ask(run, float(y), adjacency=adjacency, bounds=bounds)
        for run, y in zip(runs, x, strict=True)
    ]
    assert np.array(found).T.tobytes() == np.array(alone).tobytes()


def test_the_core_answers_most_of_them() -> None:
    runs = runs_of(np.random.default_rng(2), 40)
    for name, x in QUESTIONS.items():
        asked = AskedTogether(name, runs, np.arange(40), np.full(40, x))
        assert answered_together(asked, "add", "auto")[1].mean() > 0.7


def test_shapes_broadcast() -> None:
    runs = pe.dp_sgd([[1.0], [1.5]], [0.01, 0.02, 0.03], 2000)
    assert runs.shape == (2, 3)
    assert (runs.ndim, runs.size, len(runs)) == (2, 6, 2)
    found = pe.delta(runs[..., None], [0.5, 1.0])
    assert found.shape == (2, 3, 2)
    assert found[1, 2, 0] == pe.delta(runs[1, 2], 0.5)
    column = pe.delta(runs, [[0.5], [1.0]], bounds=True)
    assert column.lower.shape == (2, 3)
    assert column.value[1, 1] == found[1, 1, 1]
    # whatever stands together
    assert pe.delta(runs[0], np.array([[0.5], [1.0]])).tolist() == found[0].T.tolist()


def test_lists_take_all_mechanisms() -> None:
    mechanisms = [
        pe.dp_sgd(1.0, 0.01, 2000),
        pe.LaplaceMechanism(2.0),
        pe.dp_sgd("1.1", "1/60", 2000),
        pe.GaussianMechanism(1.5),
        pe.dp_sgd(1.0, 0.01, 2000) + pe.RandomizedResponse(0.75),
    ]
    alone = [pe.gamma_bound(mechanism, 1e-2) for mechanism in mechanisms]
    assert pe.gamma_bound(mechanisms, 1e-2).tolist() == alone
    assert pe.gamma_bound(tuple(mechanisms), 1e-2).tolist() == alone
    square = np.array(mechanisms[:4], dtype=object).reshape(2, 2)
    assert pe.gamma_bound(square, 1e-2).ravel().tolist() == alone[:4]
    bounds = pe.gamma_bound(mechanisms[:3], [1e-2, 1e-3, 1e-2], bounds=True)
    assert (bounds.lower <= bounds.value).all()
    assert (bounds.value <= bounds.upper).all()


def test_ends_and_single_steps_are_those_of_each_alone() -> None:
    runs = pe.dp_sgd(1.0, [0.0, 0.01, 0.01, 1.0, 0.01], [10, 0, 1, 5, 2000])
    for x in (0.0, 0.25, 1.0):
        found = pe.trade_off(runs, x, adjacency="add")
        assert found.tolist() == [pe.trade_off(run, x, adjacency="add") for run in runs]


def test_other_words_are_asked_one_by_one() -> None:
    runs = pe.dp_sgd(1.0, 0.01, [1500, 2500])
    found = pe.delta(runs, 0.5, tolerance=1e-6, bounds=True)
    assert found.value[0] == pe.delta(runs[0], 0.5, tolerance=1e-6)
    former = pe.delta(runs, 0.5, method="spectral")
    assert former[1] == pe.delta(runs[1], 0.5)
    relaxed = pe.gamma_bound([pe.GaussianMechanism(1.0)], 0.1, threat_model="relaxed")
    assert relaxed[0] == pe.gamma_bound(pe.GaussianMechanism(1.0), 0.1, threat_model="relaxed")


def test_nothing_is_asked_of_no_mechanism() -> None:
    runs = pe.dp_sgd([], 0.01, 1000)
    assert runs.shape == (0,)
    assert pe.epsilon(runs, 1e-5).shape == (0,)
    assert pe.epsilon(runs, 1e-5, bounds=True).upper.shape == (0,)
    assert repr(runs).startswith("Mechanisms(shape=(0,), noise_multiplier=none")
    assert listed([]) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (((1.0, -1.0), 0.01, 10), r"noise_multiplier must be positive and finite, got -1.0 at"),
        ((np.array([1.0, np.nan]), 0.01, 10), r"noise_multiplier must .* got nan at index \[1\]"),
        (([1.0], [[0.1, 1.5]], 10), r"sampling_probability must be in \[0, 1\], got 1.5 at .*0, 1"),
        ((1.0, 0.1, [3, 2.5]), r"steps must be non-negative integers .*, got 2.5 at index \[1\]"),
        ((1.0, 0.1, [-1]), "steps must be non-negative integers"),
        (([1.0, 2.0], [0.1, 0.2, 0.3], 10), "shapes must broadcast against each other"),
        ((["1.0", 2.0], 0.1, 10), "noise_multiplier must hold floats"),
        (([1.0, None], 0.1, 10), "noise_multiplier must hold real numbers"),
        (([1.0], None, 10), "sampling_probability must be given"),
        (([1.0], 0.1, None), "steps must be given"),
    ],
)
def test_bad_numbers_are_named(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.dp_sgd(*given)


def test_bad_words_and_arguments() -> None:
    with pytest.raises(ValueError, match="arrays must come with sampling_probability and steps"):
        pe.dp_sgd([1.0], 0.1, 10, sampling="poisson")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="both given"):
        pe.dp_sgd([1.0], 0.1, 10, sample_rate=0.1)
    runs = pe.dp_sgd([1.0, 2.0], 0.01, 2000)
    with pytest.raises(ValueError, match=r"mechanisms of shape \(2,\) and epsilon of shape \(3,\)"):
        pe.delta(runs, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"kappa must lie in \[0, 1\], got 2.0"):
        pe.gamma_bound(runs, 2.0)
    with pytest.raises(ValueError, match="adjacency must be one of"):
        pe.gamma_bound(runs, 0.1, adjacency="both_ways")  # type: ignore[call-overload]
    with pytest.raises(pe.NotDefinedError, match=r"mechanism \[1\]: method='closed_form'"):
        pe.delta([pe.GaussianMechanism(1.0), pe.dp_sgd(1.0, 0.01, 9)], 1.0, method="closed_form")
    with pytest.raises(pe.AccuracyError, match=r"mechanism \[0\]: edgeworth does not prove"):
        pe.delta(runs, 0.5, adjacency="add", method="edgeworth", bounds=True)


def test_it_is_a_value() -> None:
    runs = pe.dp_sgd(np.array([0.8, 1.2]), 0.01, 1000)
    same = pickle.loads(pickle.dumps(runs))
    assert runs == same
    assert hash(runs) == hash(same)
    assert runs != pe.dp_sgd(np.array([0.8, 1.3]), 0.01, 1000)
    assert runs != [0.8, 1.2]
    assert list(runs) == [pe.dp_sgd(0.8, 0.01, 1000), pe.dp_sgd(1.2, 0.01, 1000)]
    assert runs[::-1][0] == runs[-1]
    assert runs[np.array([True, False])].shape == (1,)
    assert isinstance(runs[:, None], Mechanisms)
    with pytest.raises(IndexError):
        runs[2]
    with pytest.raises(AttributeError, match="not to be changed"):
        runs.steps = np.ones(2)
    with pytest.raises(ValueError, match="read-only"):
        runs.steps[0] = 1
    assert len(repr(pe.dp_sgd(np.linspace(0.5, 2.0, 1000), 0.01, 1000))) < 120


def test_threads_ask_at_once() -> None:
    runs = runs_of(np.random.default_rng(7), 50)
    sure, found = pe.gamma_bound(runs, 1e-3), {}

    def ask(i: int) -> None:
        found[i] = pe.gamma_bound(runs, 1e-3)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[i].tobytes() == sure.tobytes() for i in range(3))


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Shells start what runs in their background deaf to SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_work() -> None:
    runs = runs_of(np.random.default_rng(8), 100_000)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        pe.gamma_bound(runs, 1e-3)
    timer.join()
    assert time.monotonic() - start < 10.0  # of a minute of work
    assert pe.gamma_bound(runs[:2], 1e-3)[0] == pe.gamma_bound(runs[0], 1e-3)


class Idle:
    """The C core, which answers nothing."""

    def pe_plan_many(self, *parts: Any) -> int:
        del parts
        return 0

    def __getattr__(self, name: str) -> Any:
        return getattr(lib, name)


def test_memory_of_a_million(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 10**6 if ALL else 10**5
    runs, x = pe.dp_sgd(np.linspace(0.5, 3.0, n), 0.01, 1000), np.full(n, 0.5)
    monkeypatch.setattr(many, "lib", Idle())
    tracemalloc.start()
    try:
        answered_together(AskedTogether("delta", runs, np.arange(n), x), "add", "auto")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 250 * n
