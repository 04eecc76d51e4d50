"""Threads and forked children: whoever shares an object, all get answers."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

from pyengine import duality
from pyengine._support import forks, pool
from pyengine.caches import cached_property
from pyengine.interop import HistoryAccountant

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
ignore_warning = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
SECONDS = 20  # after which a child counts as hanging


def child_of(work: Callable[[], bool]) -> int:
    """Status of a forked child that works."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        code = 2
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


class Slow:
    """A value that takes as long as it is told to."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    @cached_property
    def value(self) -> object:
        self.asked.set()
        self.go_on.wait()
        return object()


@needs_fork
@ignore_warning
def test_no_lock_joins_values_of_other_objects() -> None:
    slow, other = Slow(), Slow()
    other.go_on.set()
    with ThreadPoolExecutor(3) as pool:
        both = [pool.submit(lambda: slow.value) for _ in range(2)]
        slow.asked.wait()
        try:
            assert pool.submit(lambda: other.value).result(SECONDS) is other.value
            fresh = Slow()
            fresh.go_on.set()
            assert child_of(lambda: fresh.value is not None) == 0
        finally:
            slow.go_on.set()
        assert both[0].result() is both[1].result() is slow.value


def locks() -> list[Callable[[], Any]]:
    return [
        lambda: forks.BallArithmetic.lock,
        lambda: pool._lock,
    ]


@needs_fork
@ignore_warning
@pytest.mark.parametrize("lock", locks())
def test_a_child_has_free_locks(lock: Callable[[], Any]) -> None:
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with lock():
            held.set()
            go_on.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert child_of(lambda: lock().acquire() is True) == 0
    finally:
        go_on.set()
        thread.join()


class Paused:
    """Finds one module, and is not done with it before it may be."""

    def __init__(self, module: str) -> None:
        self.module, self.asked, self.go_on = module, threading.Event(), threading.Event()

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == self.module else None  # type: ignore[arg-type]

    def create_module(self, _: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        self.asked.set()
        self.go_on.wait()
        module.__dict__["value"] = 1


def importer(module: str, asker: str) -> Callable[[], Any]:
    """A function of a module that imports another one."""
    names: dict[str, Any] = {"__name__": asker}
    exec(f"def load():\n    import {module} as found\n    return found.value", names)
    return names["load"]  # type: ignore[no-any-return]


@pytest.fixture
def paused(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paused]:
    finder = Paused(request.param)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    yield finder
    finder.go_on.set()
    sys.modules.pop(request.param, None)


@needs_fork
@ignore_warning
@pytest.mark.parametrize(
    ("paused", "asker"),
    [("pyengine.paused", "elsewhere"), ("other", "pyengine.asking")],
    indirect=["paused"],
)
def test_a_fork_waits_for_imports(paused: Paused, asker: str) -> None:
    """Of the package's own modules, and of those that it asks for; a child could never end them."""
    load = importer(paused.module, asker)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(load)
        paused.asked.wait()
        later = threading.Timer(0.2, paused.go_on.set)
        later.start()
        assert child_of(lambda: load() == 1) == 0
        later.join()


@needs_fork
@ignore_warning
@pytest.mark.parametrize("paused", ["other"], indirect=True)
def test_a_fork_waits_for_no_import_of_others(paused: Paused) -> None:
    """A program may run for hours while its main module is imported."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(importer(paused.module, "elsewhere"))
        paused.asked.wait()
        assert child_of(lambda: True) == 0
        assert not paused.go_on.is_set()
        paused.go_on.set()


@needs_fork
@ignore_warning
def test_a_fork_waits_for_a_compiler() -> None:
    held = threading.Event()

    def compile_() -> None:
        with forks.Undivided.lock:
            held.set()
            time.sleep(0.2)

    thread = threading.Thread(target=compile_)
    thread.start()
    held.wait()
    start = time.monotonic()
    assert child_of(lambda: forks.Undivided.lock.acquire(blocking=False)) == 0
    assert time.monotonic() - start > 0.1
    thread.join()


PROGRAM = f"""
import os, signal, sys, threading, time
import pyengine as pe

def ask(k):
    run = pe.compose(pe.DiscreteGaussianMechanism(2 + k * 1e-3), pe.dp_sgd(1.0, 0.01, 10))
    pe.delta(pe.dp_sgd(1 + k * 1e-3, 0.01, 10), 1.0)
    return pe.gamma_bound(run, 0.1, bounds=True).upper

def asking():
    k = 0
    while True:
        ask(k := k + 1)

threading.Thread(target=asking, daemon=True).start()
pause = 0.003
while pause < 0.9:  # from the first import on, through all that it imports and asks
    time.sleep(pause)
    child = os.fork()
    if child == 0:
        signal.alarm({SECONDS})
        os._exit(0 if ask(0) > 0.1 else 1)
    status = os.waitpid(child, 0)[1]
    if status:
        print(f"status {{status}} after a pause of {{pause}} s")
        os._exit(1)
    pause *= 4
os._exit(0)
"""


@needs_fork
def test_children_answer_whenever_they_are_forked() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=20 * SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("hasty")
def test_threads_cannot_overspend() -> None:
    most = int(Fraction(1) / Fraction(0.05) ** 2)
    for _ in range(20):
        budget = duality.GaussianFilter(1)
        start = threading.Barrier(8)

        def spend(budget: Any = budget, start: Any = start) -> int:
            start.wait()
            return sum(budget.spend(0.05) for _ in range(100))

        with ThreadPoolExecutor(8) as pool:
            counts = [future.result() for future in [pool.submit(spend) for _ in range(8)]]
        assert sum(counts) == most
        assert budget.spent <= 1.0


def test_what_is_left_can_be_spent_and_no_more() -> None:
    random_ = random.Random(7)
    for _ in range(2000):
        mu = math.exp(random_.choice((random_.uniform(-3, 3), random_.uniform(-700, 700))))
        total, spent = Fraction(mu) ** 2, Fraction(0)
        budget = duality.GaussianFilter(mu)
        for share in (random_.random() ** 4, random_.random()):
            spent += Fraction(mu * share) ** 2 if budget.spend(mu * share) else 0
        assert spent <= total
        below = budget.spent
        assert (
            Fraction(below) ** 2 >= spent > Fraction(math.nextafter(below, 0.0)) ** 2 or not spent
        )
        left = budget.left
        assert (
            spent + Fraction(left) ** 2
            <= total
            < spent + Fraction(math.nextafter(left, 9e999)) ** 2
        )
        assert budget.spend(left)
        assert not budget.spend(mu)
        assert Fraction(budget.spent) ** 2 <= total * (1 + Fraction(1, 2**51))


class Slowly(float):
    """A number that lets other threads go on where it is compared."""

    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        time.sleep(1e-5)
        return float(self) == other


def test_no_step_of_an_accountant_is_lost() -> None:
    accountant = HistoryAccountant()

    def train(worker: int) -> None:
        for step in range(50):
            noise = 1.0 + (worker + step // 10) % 2
            accountant.step(noise_multiplier=Slowly(noise), sample_rate=0.01)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(train, range(4)))
    assert len(accountant) == 200
    assert sum(steps for noise, _, steps in accountant.history if float(noise) == 1.0) == 100
