"""What is kept between questions: safe among threads, bounded, and forgotten as a whole."""

from __future__ import annotations

import gc
import multiprocessing
import os
import re
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from random_mechanisms import FAMILIES, Draw, made
from thorough import ALL

import pyengine as pe
from pyengine import caches
from pyengine._objects import Guarded
from pyengine.caches import Cache, clear_cache, kept, kept_bytes, size_of
from pyengine.engines.gaussian import _kept
from pyengine.engines.monte_carlo import MonteCarloPair
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.spectral import KeptLines

PAIRS = [GaussianPair((2.0,), (1.0,), (n,), reversed=False) for n in range(1, 5)]


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    clear_cache()
    yield
    clear_cache()


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(caches, "BUDGET", 800_000)
    monkeypatch.setattr(caches, "ROOM", 100_000)
    return 800_000


@pytest.mark.usefixtures("hasty")
def test_threads_ask_while_another_one_clears() -> None:
    over = time.monotonic() + 3.0

    def ask(_: int) -> None:
        while time.monotonic() < over:
            for pair in PAIRS:
                assert isinstance(_kept(pair), KeptLines)

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, i) for i in range(4)]
        while time.monotonic() < over:
            clear_cache()
        for future in asking:
            future.result()


@pytest.mark.usefixtures("hasty", "small_budget")
def test_threads_share_a_cache_that_overflows() -> None:
    cache: Cache[list[int]] = Cache(20, lambda _: 100_000)
    over = time.monotonic() + 2.0

    def ask(start: int) -> None:
        i = start
        while time.monotonic() < over:
            i += 1
            assert cache.get_or_make(i % 37, lambda i=i: [i % 37]) == [i % 37]  # type: ignore[misc]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert len(cache) <= 8


def test_all_who_ask_at_the_same_time_get_the_same_object() -> None:
    cache: Cache[object] = Cache(10)
    together = threading.Barrier(4)

    def make() -> object:
        together.wait(10)
        return object()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: cache.get_or_make("one", make), range(4)))
    assert len({id(x) for x in found}) == 1


def test_what_is_made_while_the_cache_is_cleared_is_not_kept() -> None:
    cache: Cache[int] = Cache(10)

    def make() -> int:
        clear_cache()
        return 1

    assert cache.get_or_make("one", make) == 1
    assert len(cache) == 0


def test_values_used_last_are_kept() -> None:
    cache: Cache[int] = Cache(16)
    for i in range(16):
        cache.get_or_make(i, lambda i=i: i)  # type: ignore[misc]
    assert cache.get_or_make(0, lambda: -1) == 0  # a use
    cache.get_or_make(16, lambda: 16)
    assert cache.peek(0) == 0
    assert cache.peek(1) is None
    assert cache.peek(16) == 16


def test_one_budget_for_all_kinds(small_budget: int) -> None:
    first: Cache[bytes] = Cache(1000)
    second: Cache[bytes] = Cache(1000)
    for i in range(40):
        (first if i % 2 else second).get_or_make(i, lambda: bytes(50_000))
        assert kept_bytes() <= small_budget
    assert 5 <= len(first) <= 8
    assert 5 <= len(second) <= 8
    # the latest value of a kind stays, however large it is
    second.get_or_make("large", lambda: bytes(10 * small_budget))
    assert second.peek("large") is not None
    assert len(second) == 1
    assert len(first) == 1


def test_values_that_grow_are_weighed_again(small_budget: int) -> None:
    cache: Cache[list[bytes]] = Cache(1000, grows=True)
    for i in range(64):
        cache.get_or_make(i, list).append(bytes(50_000))
    assert kept_bytes() <= small_budget + caches.WEIGHINGS * 50_000


def test_a_value_that_grows_later_is_weighed_in_its_turn() -> None:
    cache: Cache[list[int]] = Cache(64, lambda value: 100 * len(value), grows=True)
    values = [[0] for _ in range(40)]
    for i in range(20):
        cache.get_or_make(i, lambda i=i: values[i])  # type: ignore[misc]
    values[5] += [0] * 1000
    for i in range(20, 40):  # each weighs two of some thirty again
        cache.get_or_make(i, lambda i=i: values[i])  # type: ignore[misc]
    assert cache.bytes == 100 * 40 + 100 * 1000


def test_keywords_are_part_of_a_key() -> None:
    calls = []

    @kept(8)
    def twice(x: float, *, plus: float = 0.0) -> float:
        calls.append(x)
        return 2.0 * x + plus

    assert [twice(1.0), twice(1.0), twice(1.0, plus=1.0), twice(1.0, plus=1.0)] == [2, 2, 3, 3]
    assert len(calls) == 2


def test_sizes() -> None:
    array = np.zeros(100_000)
    assert 800_000 <= size_of(array) < 801_000
    assert 800_000 <= size_of(array[::2]) < 801_000
    assert 800_000 <= size_of({"a": [array, array]}) < 802_000
    assert size_of(lambda: array) < 1000
    mechanism = pe.from_probabilities(np.full(1000, 1e-3), np.full(1000, 1e-3))
    assert size_of(mechanism) > 16_000


def measured(value: object) -> int:
    """As `size_of`, in Python."""
    shared = ModuleType, FunctionType, BuiltinFunctionType, Guarded, type, weakref.ref
    seen: set[int] = set()
    open_, total = [value], 0
    while open_:
        found = open_.pop()
        if id(found) in seen or isinstance(found, shared):
            continue
        seen.add(id(found))
        total += sys.getsizeof(found, 64)
        base = getattr(found, "base", None)
        if base is not None and hasattr(found, "nbytes"):
            open_.append(base)
        open_.extend(gc.get_referents(found))
    return total


def test_sizes_are_those_of_everything_referred_to() -> None:
    numbers = np.arange(1000.0)
    run = pe.GaussianMechanism(1.3).composed(7) + pe.LaplaceMechanism(2.0).composed(3)
    pe.gamma_bound(run, 0.1, adjacency="add", bounds=True)
    values = [value for cache in caches._caches for value in cache._values.values()]
    assert len(values) > 20
    several = [
        {i: (str(i), [float(i)]) for i in range(5000)},
        [numbers[1:], numbers[::2]],
        "a" * 99,
    ]
    looped: list[Any] = [1]
    looped.append(looped)
    for value in [*values, *several, looped, run, None, 3, "a" * 99, object(), pe, sys.getsizeof]:
        assert size_of(value) == measured(value)
    for value in [*several, numbers, looped, run]:
        before = sys.getrefcount(value)
        size_of(value)
        assert sys.getrefcount(value) == before


def test_what_cannot_be_measured_says_so() -> None:
    class Unwilling:
        def __sizeof__(self) -> int:
            raise RuntimeError("not now")

    kinds = [type(f"Kind{i}", (), {}) for i in range(600)]  # more than are remembered
    assert size_of([kind() for kind in kinds]) == measured([kind() for kind in kinds])
    with pytest.raises(RuntimeError, match="not now"):
        size_of([1, [Unwilling()]])


def test_contours_are_weighed() -> None:
    pair = GaussianPair((1.0,), (0.01,), (1000,), reversed=False)
    found = _kept(pair)
    before = found.bytes()
    pe.trade_off(pe.dp_sgd(1.0, 0.01, 1000), np.geomspace(1e-30, 0.4, 50), adjacency="add")
    assert _kept(pair) is found
    assert before < 10_000 < 50_000 < found.bytes() < 10_000_000
    assert kept_bytes() > found.bytes()


def everything_that_keeps() -> None:
    """Questions after which each kind of value is kept."""
    few, run = pe.dp_sgd(1.0, 0.05, 2), pe.dp_sgd(1.0, 0.01, 100)
    pe.gamma_bound(run, 0.1)
    pe.gamma_bound(few, 0.1)
    pe.delta(pe.LaplaceMechanism(1.0).poisson_sampled(0.1).composed(20), 0.5)
    pe.gamma_bound(pe.RandomizedResponse(0.75).composed(20), 0.1)
    MonteCarloPair(run, "add", samples=10_000).trade_off(np.array([0.1]))
    model = pe.threat_models.Relaxed(10)
    pe.trade_off(pe.GaussianMechanism(1.0), 0.1, threat_model=model)
    for adjacency in ("add", "substitute"):
        pe.reference.gamma_bound(run, "0.1", adjacency=adjacency, digits=5)


def test_nothing_is_left_when_all_is_cleared() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pe.ApproximationWarning)
        everything_that_keeps()
    used = [cache for cache in caches._caches if len(cache)]
    assert len(used) >= 12
    assert kept_bytes() > 100_000
    clear_cache()
    assert kept_bytes() == 0
    assert not any(len(cache) for cache in caches._caches)


def test_what_is_dropped_is_freed() -> None:
    mechanism = pe.dp_sgd(1.0, 0.01, 1000)
    pe.gamma_bound(mechanism, 0.1)
    found = weakref.ref(_kept(GaussianPair((1.0,), (0.01,), (1000,), reversed=False)))
    assert isinstance(found(), KeptLines)
    clear_cache()
    gc.collect()
    assert found() is None
    assert pe.gamma_bound(mechanism, 0.1) > 0.1


def test_there_is_no_other_cache() -> None:
    """Results are kept by `pyengine.caches` alone: bounded, and forgotten as a whole."""
    package = Path(pe.__file__).parent
    others = re.compile(
        r"lru_cache|functools\.cache\b|import cache\b|OrderedDict"
        r"|^from functools import .*cached_property|register_at_fork",
        re.MULTILINE,
    )
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if others.search(path.read_text(encoding="utf-8"))
    }
    # a lock is no cache, but a child must have its own, too
    assert found == {"_support/forks.py"}


def _in_child(queue: Any) -> None:
    queue.put((kept_bytes(), pe.gamma_bound(pe.dp_sgd(1.0, 0.01, 1000), 0.1)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_starts_with_nothing_and_free_locks() -> None:
    expected = pe.gamma_bound(pe.dp_sgd(1.0, 0.01, 1000), 0.1)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with caches._lock:
            held.set()
            go_on.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=60) == (0, expected)
    finally:
        go_on.set()
        holder.join()
        child.join(60)


def test_sizes_are_counted_as_values_come_and_go() -> None:
    """The sum that limits memory is kept, not formed anew for every value."""
    cache: Cache[list[int]] = Cache(4, lambda value: 100 * len(value), grows=True)
    values = [[0] * n for n in range(1, 20)]
    for n, value in enumerate(values):
        cache.get_or_make(n, lambda value=value: value)
        value.append(0)
        assert cache.bytes == sum(use.size for use in cache._uses.values())
    assert 0 < cache.bytes < 100 * sum(map(len, values))
    cache._clear()
    assert cache.bytes == 0


def known(mechanism: pe.Mechanism, name: str, x: float, adjacency: str) -> Any:
    """Proven bounds, or the refusal."""
    try:
        return getattr(pe, name)(mechanism, x, adjacency=adjacency, bounds=True)
    except pe.AccuracyError as refusal:
        return str(refusal)


def test_beta_after_gamma_is_as_narrow_as_alone() -> None:
    """The lattice had been asked for narrow bounds of γ and was kept for β: [0, 2.5e-7]."""
    run, level = pe.dp_sgd(0.22865116933782997, 0.0965825171719391, 30), 0.9639691213513937
    alone = known(run, "trade_off", level, "remove")
    assert alone.upper - alone.lower < 1e-4 * alone.upper
    clear_cache()
    known(run, "gamma_bound", level, "remove")
    assert known(run, "trade_off", level, "remove") == alone


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "allocation"])
def test_answers_do_not_depend_on_what_was_asked_before(family: str) -> None:
    """Nor on levels or engines that were asked: each bound has the bits that it has alone."""
    d = Draw(20261128)
    for _ in range(20 if ALL else 4):
        run, (name, x), adjacency = made(FAMILIES[family](d)), d.question(), d.adjacency()
        clear_cache()
        alone = known(run, name, x, adjacency)
        clear_cache()
        for _ in range(3):
            other, at = d.question()
            both = {name, other} <= {"gamma_bound", "trade_off"}
            known(run, other, x if both else at, adjacency)
        assert known(run, name, x, adjacency) == alone, (run, name, x, adjacency)
