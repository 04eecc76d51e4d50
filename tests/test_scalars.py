"""Floats take a short way: the same bits as arrays, whoever asks, in whatever process."""

from __future__ import annotations

import copy
import math
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from thorough import ALL, sampled

import pyengine as pe
from pyengine.api import asking
from pyengine.caches import clear_cache

MECHANISMS = {
    "equal steps": pe.dp_sgd(1.0, 0.01, 1000),
    "two phases": pe.dp_sgd(1.0, 0.01, 300) + pe.dp_sgd(2.0, 0.02, 500),
    "closed form": pe.dp_sgd(4.0, 1.0, 10),
    "one step": pe.dp_sgd(0.8, 0.3, 1),
    "two steps": pe.dp_sgd(1.0, 0.05, 2),
    "atoms": pe.RandomizedResponse(0.75).composed(3),
    "nothing": pe.compose(),
}
PROBABILITIES = np.concatenate(
    [[0.0, 1e-300, 1e-40], np.geomspace(1e-12, 0.4, 9), [0.5, 0.7, 0.999, 1 - 2.0**-53, 1.0]]
)
NARROW = 1e-10  # relative width that no bracket of the lattice has
ARGUMENTS = {
    pe.trade_off: PROBABILITIES,
    pe.gamma_bound: PROBABILITIES,
    pe.epsilon: PROBABILITIES,
    pe.delta: np.array([0.0, 1e-9, 0.01, 0.3, 1.0, 3.0, 7.0, 40.0, 1e4, math.inf]),
}


@sampled(3)
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
@pytest.mark.parametrize("question", ARGUMENTS, ids=lambda question: question.__name__)
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("bounds", [True, "estimated"])
def test_same_bits_as_arrays(bounds: bool | str, name: str, question: Any, adjacency: str) -> None:
    mechanism, arguments = MECHANISMS[name], ARGUMENTS[question]
    if name == "two steps":  # slow, and slower where values are tiny and on both orders
        arguments = arguments[[4, -6]] if question is not pe.delta else arguments[2:4]
        arguments = arguments if ALL or adjacency != "add_remove" else arguments[:1]
    elif not ALL:
        arguments = arguments[::2]
    one_by_one = []
    for x in arguments:
        try:
            found = question(mechanism, float(x), adjacency=adjacency, bounds=bounds)
            one_by_one.append(found)
        except pe.AccuracyError:
            one_by_one.append(None)
    known = np.array([bounds is not None for bounds in one_by_one])
    assert known.mean() >= 0.9
    clear_cache()
    together = question(mechanism, arguments[known], adjacency=adjacency, bounds=bounds)
    kept = [bounds for bounds in one_by_one if bounds is not None]
    lower, value, upper = np.array(kept).T
    # a bracket of the lattice depends on what is asked together
    same = (upper <= lower + NARROW * value) | (bounds == "estimated")
    assert np.mean(same) >= (0.75 if name != "two steps" else 0.0)
    for part, values in zip(together, (lower, value, upper), strict=True):
        assert np.array_equal(part[same], values[same])
    assert np.all(np.maximum(lower, together.lower) <= np.minimum(upper, together.upper))
    plain = question(mechanism, float(arguments[known][0]), adjacency=adjacency)
    assert type(plain) is float
    # where proven bounds are narrow the value comes from what proves them
    assert plain == pytest.approx(kept[0].value, rel=1e-10, abs=0.0)
    last = question(mechanism, np.float64(arguments[known][-1]), adjacency=adjacency)
    assert last == pytest.approx(kept[-1].value, rel=1e-10, abs=0.0)
    assert plain == question(mechanism, arguments[known][:1], adjacency=adjacency)[0]


def test_bad_floats_are_refused_however_often_they_are_asked() -> None:
    mechanism = MECHANISMS["equal steps"]
    for _ in range(2):
        for bad in (-0.1, 1.1, math.nan, math.inf):
            for question in (pe.gamma_bound, pe.trade_off, pe.epsilon):
                with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
                    question(mechanism, bad)
        for bad in (-0.1, math.nan, -math.inf):
            with pytest.raises(ValueError, match=r"epsilon must lie in \[0, inf\]"):
                pe.delta(mechanism, bad)
        with pytest.raises(ValueError, match="adjacency must be one of"):
            pe.gamma_bound(mechanism, 0.1, adjacency=["add"])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="tolerance must be"):
            pe.gamma_bound(mechanism, 0.1, tolerance=-1.0)
        with pytest.raises(pe.AccuracyError, match="or more gives this answer"):
            pe.epsilon(pe.dp_sgd(0.5, 1e-7, 10**8), 1e-5, tolerance=1e-15)


def test_words_are_read_anew_however_often_they_are_asked() -> None:
    mechanism, other = pe.dp_sgd(1.0, 0.01, 2000), pe.dp_sgd(1.1, 0.01, 2000)
    words: list[dict[str, Any]] = [
        {},
        {"bounds": True},
        {"bounds": np.True_},
        {"bounds": np.False_},
        {"bounds": "".join(("estim", "ated"))},
        {"adjacency": "".join(("re", "move"))},
        {"method": "certified"},
        {"threat_model": pe.threat_models.DifferentialPrivacy()},
        {"tolerance": 1e-3},
    ]

    def asked(how: dict[str, Any]) -> list[Any]:
        xs = (0.1, 0.1, np.float64(0.1), 0.0, -0.0, 1.0)
        found = [pe.gamma_bound(run, x, **how) for x in xs for run in (mechanism, other)]
        return [(type(one), one) for one in found]

    alone = []
    for how in words:
        clear_cache()
        alone.append(asked(how))
    clear_cache()
    for _ in range(2):
        assert [asked(how) for how in words] == alone
    assert [type(pe.gamma_bound(mechanism, 0.1, **how)) is float for how in words] == [
        not how.get("bounds", False) for how in words
    ]


def test_threads_share_a_mechanism() -> None:
    mechanism = MECHANISMS["equal steps"]
    kappa = [float(k) for k in np.geomspace(1e-9, 0.4, 400)]
    expected = pe.gamma_bound(mechanism, np.array(kappa)).tolist()
    clear_cache()

    def work(shift: int) -> list[float]:
        order = kappa[shift:] + kappa[:shift]
        found = [pe.gamma_bound(mechanism, k) for k in order]
        return found[len(kappa) - shift :] + found[: len(kappa) - shift]

    with ThreadPoolExecutor(8) as pool:
        assert all(found == expected for found in pool.map(work, range(0, 400, 25)))


def test_more_mechanisms_than_are_kept() -> None:
    mechanisms = [pe.GaussianMechanism(1.0 + i / 64) for i in range(300)]
    first = [pe.gamma_bound(m, 0.01) for m in mechanisms]
    assert first == [pe.gamma_bound(m, 0.01) for m in mechanisms]
    assert first == sorted(first, reverse=True)


def test_copies_are_equal_and_answer_alike() -> None:
    for mechanism in MECHANISMS.values():
        value = pe.gamma_bound(mechanism, 0.01)
        hash(mechanism)  # kept from here on
        for same in (
            copy.copy(mechanism),
            copy.deepcopy(mechanism),
            pickle.loads(pickle.dumps(mechanism)),
        ):
            assert same == mechanism
            assert hash(same) == hash(mechanism)
            assert "_hash" not in pickle.dumps(mechanism).decode("latin-1")
            assert pe.gamma_bound(same, 0.01) == value
    assert len({pe.dp_sgd(1.0, 0.1, 5), pe.dp_sgd(1.0, 0.1, 2) + pe.dp_sgd(1.0, 0.1, 3)}) == 1


def _in_another_process(mechanism: pe.Mechanism, kappa: float) -> tuple[pe.Mechanism, float]:
    return mechanism, pe.gamma_bound(mechanism, kappa)


def test_mechanisms_travel_to_spawned_processes() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        jobs = [(mechanism, 0.01) for mechanism in MECHANISMS.values()]
        found = pool.starmap(_in_another_process, jobs)
    for (same, value), mechanism in zip(found, MECHANISMS.values(), strict=True):
        assert same == mechanism
        assert value == pe.gamma_bound(mechanism, 0.01)


@pytest.mark.parametrize(
    "mechanism",
    [
        pe.LaplaceMechanism(0.5).composed(10),
        pe.GenericMechanism(0.1, 1e-6).composed(20),
        pe.LaplaceMechanism(1.0).poisson_sampled(0.01).composed(20),
        pe.dp_sgd(1.0, 0.01, 1000) + pe.LaplaceMechanism(1.0),
    ],
)
@pytest.mark.parametrize("adjacency", ["add", "add_remove"])
def test_prepared_questions_are_kept(mechanism: pe.Mechanism, adjacency: str) -> None:
    """What takes little memory is not chosen again for each number."""
    first, second = (asking._asked(mechanism, adjacency, "auto", "dp", None) for _ in range(2))
    assert first is second
