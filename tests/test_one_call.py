"""Floats that one call of the C core answers, with the bits of arrays."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest
from random_mechanisms import Draw, made, sgd
from thorough import ALL

import pyengine as pe
from pyengine._core import ffi, lib
from pyengine._support.caches import clear_cache
from pyengine.api.asking import _asked
from pyengine.engines.equal_steps import FEW, EqualQuestions, questions_of_run
from pyengine.engines.pairs import GaussianPair, largest_epsilon
from pyengine.engines.plan import FloatPlan
from pyengine.mechanisms.dp_sgd import equal_gaussian_steps
from pyengine.numerics.exact_numbers import log_of_rest

QUESTIONS = ("trade_off", "gamma_bound", "delta", "epsilon")
ORDERS = ("add", "remove", "add_remove")


ARGUMENTS = {
    "delta": (0.01, 4.0),
    "epsilon": (1e-9, 0.5),
    "gamma_bound": (1e-9, 0.8),
    "trade_off": (1e-9, 0.999),
}


def run_of(d: Draw) -> pe.Mechanism:
    """Such as the nearest lines prove, mostly; any in a thorough run."""
    if not ALL:
        return made(sgd(d, (0.9, 3), (3e-3, 0.1), (1.3e3, 1e4)))
    few = d.random.random() < 0.3
    return made(sgd(d, (0.6, 3), (1e-4, 0.1), (2, 100) if few else (300, 1e5)))


def alike(first: Any, second: Any) -> bool:
    return np.asarray(first).tobytes() == np.asarray(second).tobytes()


def test_floats_have_the_bits_of_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    d, answered = Draw(11), []
    one = FloatPlan.one

    def noted(self: FloatPlan, name: str, x: float) -> Any:
        found = one(self, name, x)
        answered.append(found is not None)
        return found

    monkeypatch.setattr(FloatPlan, "one", noted)
    for i in range(400 if ALL else 60):
        clear_cache()
        run = run_of(d)
        name, adjacency = QUESTIONS[i % 4], ORDERS[i % 3]
        bounds = equal_gaussian_steps(run)[2] > 1000 and i % 2 == 0
        ask, x = getattr(pe, name), d.number(*ARGUMENTS[name])
        first = ask(run, x, adjacency=adjacency, bounds=bounds)
        clear_cache()
        one_by_one = ask(run, [x], adjacency=adjacency, bounds=bounds)
        assert alike(first, np.ravel(one_by_one)), (run, name, adjacency, x)
        many = np.array(ask(run, [x] * (FEW + 1), adjacency=adjacency, bounds=bounds))
        assert alike(first, many[..., 0]), (run, name, adjacency, x)
        assert alike(many, np.repeat(many[..., :1], FEW + 1, axis=-1))
    assert np.mean(answered) > (0.7 if ALL else 0.8)


def test_few_floats_of_an_array_have_the_bits_and_words_of_others() -> None:
    d, known = Draw(5), 0
    for i in range(400 if ALL else 12):
        run, name = run_of(d), QUESTIONS[i % 4]
        x = np.array([d.number(*ARGUMENTS[name]) for _ in range(d.count(1, FEW))])
        clear_cache()
        asked = _asked(run, ORDERS[i % 3], "auto", "dp", None)
        assert isinstance(asked, EqualQuestions)
        few, others = asked.answer(name, x), asked.others(name).answer(name, x)
        for part in ("value", "lower", "upper", "engine", "certified"):
            assert alike(getattr(few, part), getattr(others, part)), (run, name, x)
        assert alike(asked.values(name, x), asked.others(name).values(name, x))
        known += asked._few(name, x) is not None
    assert known > (200 if ALL else 5)
    assert asked._few(name, np.full(FEW + 1, x[0])) is None


@pytest.mark.parametrize(
    "mechanism",
    [
        pe.dp_sgd("1.1", 0.01, 100),
        pe.dp_sgd(1.1, "1/60", 100),
        pe.dp_sgd(1.1, 0.01, 1),
        pe.dp_sgd(1.1, 1.0, 100),
        pe.dp_sgd(1.1, 0.0, 100),
        pe.dp_sgd(1.1, 0.01, 100) + pe.dp_sgd(1.2, 0.01, 100),
        pe.dp_sgd(1.1, 0.01, 100, group_size=2),
        pe.LaplaceMechanism(1.1).poisson_sampled(0.01).composed(100),
        pe.GaussianMechanism(1.1),
    ],
)
def test_others_are_no_equal_steps_of_doubles(mechanism: pe.Mechanism) -> None:
    assert equal_gaussian_steps(mechanism) is None


def test_equal_steps_are_seen() -> None:
    assert equal_gaussian_steps(pe.dp_sgd(1.1, 0.01, 100)) == (1.1, 0.01, 100)
    assert equal_gaussian_steps([1.1, 0.01, 100]) is None


def test_words_that_the_registry_knows_are_left_to_it() -> None:
    run = pe.dp_sgd(1.1, 0.01, 100)

    def nobody() -> Any:
        raise AssertionError

    assert isinstance(questions_of_run(run, "add", "auto", nobody), EqualQuestions)
    assert questions_of_run(run, "substitute", "auto", nobody) is None
    assert questions_of_run(run, "add", "lattice", nobody) is None
    with pytest.raises(ValueError, match="adjacency must be one of"):
        pe.delta(run, 1.0, adjacency="both_ways")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="method must be one of"):
        pe.delta(run, 1.0, method="fast")  # type: ignore[call-overload]


@pytest.mark.parametrize("adjacency", ORDERS)
def test_ends_of_the_domains(adjacency: str) -> None:
    run = pe.dp_sgd(1.1, 0.01, 100)
    for name, ends in (
        ("trade_off", (0.0, 1.0)),
        ("gamma_bound", (0.0, 1.0)),
        ("delta", (0.0, math.inf)),
        ("epsilon", (0.0, 1.0)),
    ):
        for x in ends:
            first = getattr(pe, name)(run, x, adjacency=adjacency, bounds="estimated")
            many = getattr(pe, name)(run, [x], adjacency=adjacency, bounds="estimated")
            assert alike(first, np.ravel(many))


def test_threads_share_a_run() -> None:
    clear_cache()
    run = pe.dp_sgd(1.0, 0.01, 1000)
    sure = [pe.gamma_bound(run, 1e-4 * (i + 1), adjacency="add_remove") for i in range(40)]
    clear_cache()
    found: dict[int, float] = {}

    def ask(first: int) -> None:
        for i in range(first, 40, 4):
            found[i] = pe.gamma_bound(run, 1e-4 * (i + 1), adjacency="add_remove")

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(40)] == sure


def test_most_at_zero_is_above_the_profile() -> None:
    """Over the sum of distances of the steps' laws, in 40 digits, and closely so."""
    from mpmath import mp, mpf

    rng = np.random.default_rng(5)
    with mp.workdps(40):
        for _ in range(200):
            noise = [float(10.0 ** rng.uniform(-2.0, 4.0)) for _ in range(2)]
            p = [float(10.0 ** rng.uniform(-8.0, -0.01)) for _ in range(2)]
            steps = [float(rng.integers(1, 10**4)) for _ in range(2)]
            found = lib.pe_most_at_zero(2, noise, p, steps)
            apart = sum(
                mpf(n) * mpf(q) * mp.erf(1 / (mp.sqrt(8) * mpf(s)))
                for s, q, n in zip(noise, p, steps, strict=True)
            )
            none = -mp.expm1(sum(mpf(n) * mp.log1p(-mpf(q)) for q, n in zip(p, steps, strict=True)))
            truth = min(apart, none, mpf(1))
            assert truth <= found <= min(truth * (1 + mpf("1e-11")), 1)


def test_the_largest_loss_lies_between_its_bounds() -> None:
    from mpmath import mp, mpf

    rng = np.random.default_rng(6)
    with mp.workdps(40):
        for _ in range(200):
            rates = [float(10.0 ** rng.uniform(-300.0, -1e-6)) for _ in range(3)]
            steps = [int(rng.integers(1, 10**6)) for _ in range(3)]
            pair = GaussianPair((1.0,) * 3, tuple(rates), tuple(steps), False)
            value, low, high = largest_epsilon(pair, rates)
            truth = -sum(n * mp.log1p(-mpf(p)) for p, n in zip(rates, steps, strict=True))
            assert low <= truth <= high
            assert abs(value - truth) <= 4 * mpf(2) ** -53 * truth + mpf(2) ** -1070
            assert abs(log_of_rest(rates[0])[0] - mp.log1p(-mpf(rates[0]))) < 1e-12
    assert largest_epsilon(pair, [1.0, 0.5, 0.5]) == (math.inf,) * 3
    out = ffi.new("double[3]")
    lib.pe_largest_loss(2, (1.0, 0.5), (1.0, 2.0), out)
    assert tuple(out) == (math.inf,) * 3
