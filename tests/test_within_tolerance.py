"""``tolerance=``: bounds that are as narrow as asked, or a refusal whose advice is true."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from thorough import ALL, sampled, some

import pyengine as pe
from pyengine.engines.lattice import refine
from pyengine.engines.lattice.tail_sums import Bracket

GAUSSIAN, LAPLACE = pe.GaussianMechanism(1.0), pe.LaplaceMechanism(1.0)
EPOCH = pe.GaussianMechanism(1.0).randomly_allocated(12, selected=2)
FAMILIES: dict[str, pe.Mechanism] = {
    "gaussian": GAUSSIAN.composed(3),
    "dp_sgd": pe.dp_sgd(1.0, 0.01, 100),
    "few steps": pe.dp_sgd(0.7, 0.1, 3),
    "groups": pe.dp_sgd(2.0, 0.01, 200, group_size=3),
    "mixture": pe.GaussianMixtureMechanism(2.0, (0, 1, 2), (0.5, 0.3, 0.2)).composed(20),
    "one batch": GAUSSIAN.sampled_without_replacement(batch_size=2, dataset_size=100),
    "batches": GAUSSIAN.sampled_without_replacement(batch_size=2, dataset_size=100).composed(50),
    "Laplace batches": LAPLACE.sampled_without_replacement(batch_size=2, dataset_size=9).composed(
        3
    ),
    "epoch": GAUSSIAN.randomly_allocated(10),
    "epochs": pe.GaussianMechanism(2.0).randomly_allocated(10).composed(3),
    "steps of an epoch": EPOCH,
    "steps of an epoch, Gaussian step": pe.compose(EPOCH, pe.GaussianMechanism(3.0)),
    "Laplace": LAPLACE,
    "Laplace steps": pe.LaplaceMechanism(2.0).composed(5),
    "Laplace samples": LAPLACE.poisson_sampled(0.1).composed(20),
    "response": pe.RandomizedResponse(0.7, 3).composed(4),
    "generic": pe.GenericMechanism(0.3, 1e-5).composed(7),
    "discrete Gaussian": pe.DiscreteGaussianMechanism(2).composed(3),
    "discrete Laplace": pe.DiscreteLaplaceMechanism(2).composed(3),
    "exponential": pe.ExponentialMechanism(0.5).composed(10),
    "Gaussian and Laplace": pe.compose(pe.GaussianMechanism(2.0).composed(9), LAPLACE),
    "dp_sgd and Laplace": pe.compose(pe.dp_sgd(1.0, 0.01, 100), pe.LaplaceMechanism(3.0)),
    "dp_sgd and response": pe.compose(pe.dp_sgd(1.0, 0.01, 100), pe.GenericMechanism(0.1)),
}
ARGUMENTS = {
    "trade_off": (1e-6, 0.1, 0.6),
    "gamma_bound": (1e-3, 0.3),
    "delta": (0.1, 1.0),
    "epsilon": (1e-8, 1e-3, 0.05),
}
# Others take seconds for a narrow bracket of the lattice.
QUICK = ("dp_sgd", "groups", "steps of an epoch", "Laplace steps", "response")
ADJACENCIES = ("add", "remove", "add_remove", "substitute")
TOLERANCES = (1e-2, 1e-4, 1e-6, 1e-9)
ADVICE = re.compile(r"tolerance=(\S+) (?:or more gives this answer|would do)")


def _width(question: str, mechanism: pe.Mechanism, x: float, found: Any, **words: Any) -> float:
    """Relative width of bounds; for ε by how much of δ the profile changes between them."""
    if found.lower == found.upper:
        return 0.0
    if question == "epsilon":
        ends = [pe.delta(mechanism, end, **words) for end in (found.lower, found.upper)]
        return (ends[0] - ends[1]) / x
    assert found.lower <= found.value <= found.upper
    return (found.upper - found.lower) / found.value if found.value > 1e-300 else 0.0


@sampled(2)
@pytest.mark.parametrize("bounds", [True, "estimated"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("family", FAMILIES if ALL else QUICK)
def test_every_engine_honours_it(family: str, adjacency: str, bounds: Any) -> None:
    mechanism = FAMILIES[family]
    for question, arguments in ARGUMENTS.items():
        for i, x in enumerate(some(arguments, 1)):
            tolerance = TOLERANCES[(i + len(family) + len(question)) % len(TOLERANCES)]
            words = {"adjacency": adjacency}
            try:
                ask = getattr(pe, question)
                found = ask(mechanism, x, tolerance=tolerance, bounds=bounds, **words)
            except pe.AccuracyError:
                continue
            except ValueError:
                assert adjacency == "substitute"
                return
            assert _width(question, mechanism, x, found, **words) <= tolerance


# by the lattice, whose refusals foresee lattices that were not made, and by lines, which judge ε
# as such where δ at it is what counts
REFUSED = [
    (
        pe.compose(pe.dp_sgd(4.215, 2.341e-5, 1), pe.DiscreteGaussianMechanism(2).composed(27)),
        6e-10,
    ),
    (pe.dp_sgd(2.836, 2.486e-6, 16123), 2e-11),
    (pe.dp_sgd(1.437, 6.383e-5, 782801), 1e-13),
    (pe.RandomizedResponse(0.69).poisson_sampled(4.5e-4).composed(154), 2e-11),
    (FAMILIES["Laplace samples"], 1e-11),
]


@pytest.mark.parametrize("question", ARGUMENTS)
@pytest.mark.parametrize("method", ["auto", "lattice"])
def test_the_advice_of_refusals_is_true(method: str, question: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(refine, "MOST_POINTS", 2**15)
    monkeypatch.setattr(refine, "FIRST_POINTS", 2**13)
    random, ask, advised = np.random.default_rng(20261127), getattr(pe, question), 0
    for mechanism, tolerance in REFUSED:
        x = 10.0 ** random.uniform(*(-1.0, 0.5) if question == "delta" else (-7.0, -2.0))
        words = {"adjacency": random.choice(ADJACENCIES[:3]), "method": method, "bounds": True}
        try:
            ask(mechanism, x, tolerance=tolerance, **words)
        except pe.AccuracyError as refusal:
            advice = ADVICE.search(str(refusal))
            if advice is not None:
                ask(mechanism, x, tolerance=float(advice[1]), **words)
                advised += 1
    assert advised or method == "auto"


THREE = pe.GaussianMechanism(1.0).randomly_allocated(9, selected=3)
BETWEEN = [
    (THREE, "add_remove"),
    (pe.compose(THREE, pe.GaussianMechanism(3.0)), "remove"),
    (FAMILIES["batches"], "substitute"),
    (FAMILIES["Laplace batches"], "substitute"),
]


@sampled(2)
@pytest.mark.parametrize("question", ARGUMENTS)
@pytest.mark.parametrize(("mechanism", "adjacency"), BETWEEN)
def test_what_is_known_between_bounds_only_is_refused(
    mechanism: pe.Mechanism, adjacency: str, question: str
) -> None:
    x = {"trade_off": 0.3, "gamma_bound": 0.01, "delta": 0.5, "epsilon": 1e-3}[question]
    ask: Any = getattr(pe, question)
    known = ask(mechanism, x, adjacency=adjacency, bounds=True)
    width = _width(question, mechanism, x, known, adjacency=adjacency)
    for bounds in (False, "estimated", True):
        for tolerance in (1e-6, 0.9 * width):
            with pytest.raises(pe.AccuracyError) as refused:
                ask(mechanism, x, adjacency=adjacency, tolerance=tolerance, bounds=bounds)
            advice = ADVICE.search(str(refused.value))
            assert advice is not None
            assert width / 1.01 < float(advice[1]) < 1.2 * width
            wider = {"adjacency": adjacency, "tolerance": float(advice[1]), "bounds": bounds}
            value = ask(mechanism, x, **wider)
            value = value if bounds is False else value.value
            assert known.lower <= value <= known.upper


def test_monte_carlo_is_held_to_it() -> None:
    with pytest.raises(pe.AccuracyError, match="are wider than asked"):
        pe.delta(FAMILIES["dp_sgd"], 0.1, method="monte_carlo", tolerance=1e-13)


def test_bounds_of_epsilon_are_asked_for_again_before_they_are_refused() -> None:
    """Engines judge ε by scales of their own, here of a steep profile."""
    run = FAMILIES["Gaussian and Laplace"]
    found = pe.epsilon(run, 1e-8, tolerance=1e-4, bounds=True)
    assert _width("epsilon", run, 1e-8, found) <= 1e-4


def test_an_epsilon_of_no_delta_has_a_width_of_its_own() -> None:
    found = pe.epsilon(LAPLACE, 0.0, tolerance=1e-12, bounds=True)
    assert found.lower <= 1.0 <= found.upper
    assert pe.epsilon(GAUSSIAN, 0.0, tolerance=1e-12) == math.inf


def test_samples_of_a_trade_off_function_are_held_to_it() -> None:
    samples = [[0.0, 1.0], [0.25, 0.5], [0.5, 0.25], [1.0, 0.0]]
    known = pe.trade_off(samples, 0.3, bounds="estimated")
    assert known.upper > 1.01 * known.lower
    with pytest.raises(pe.AccuracyError, match="wider than asked"):
        pe.trade_off(samples, 0.3, tolerance=1e-3)


class _Rungs:
    """Lattices whose brackets fall with the square of the spacing, but for a part that stays."""

    def __init__(self, first: float, stays: float, finest: float) -> None:
        self.stays, self.finest, self.first = stays, finest, first
        self.made: list[float] = []

    def first_spacing(self, *_: Any) -> float:
        return self.first

    def least_spacing(self, _: int) -> float:
        return 0.0

    def spacing(self, _: int, outer: bool, spacing: float, *rest: float) -> float:
        del outer, rest
        return max(spacing, self.finest)

    def tails(self, rung: int, outer: bool, spacing: float, *rest: float) -> Any:
        h = self.spacing(rung, outer, spacing, *rest)
        self.made.append(h)
        return SimpleNamespace(
            spacing=h, points=int(2**19 * self.first / h), width=self.stays + h * h
        )


def _bracket(tails: Any, x: Any) -> Any:
    none = np.zeros(x.size, dtype=np.int64)
    return Bracket.of(np.full(x.size, 1.0 - tails.width), np.ones(x.size), none, np.zeros(x.size))


@pytest.mark.parametrize(
    ("stays", "finest", "made"),
    [
        (0.0, 0.0, 3),  # the first one, twice as fine, and as fine as is needed
        (0.3, 0.0, 2),  # where twice as fine a one does not help, no finer one does
        (0.0, 0.1, 2),  # none is made again that is the same
    ],
)
def test_no_lattice_is_laid_out_for_nothing(stays: float, finest: float, made: int) -> None:
    rungs = _Rungs(0.2, stays, finest)
    search = refine.Search(rungs, True, "a", 1e-4, 0.0, 0)  # type: ignore[arg-type]
    none = np.zeros(1, dtype=np.int64)
    if made == 3:
        found = search.brackets(_bracket, np.ones(1), none)
        assert found.upper[0] - found.lower[0] <= 1e-4
    else:
        with pytest.raises(pe.AccuracyError, match="stays at a relative width"):
            search.brackets(_bracket, np.ones(1), none)
    assert len(rungs.made) == made
    assert len(set(rungs.made)) == made


class _SlowRungs(_Rungs):
    """Lattices of which twice as many points help little, and sixteen times as many enough."""

    def tails(self, rung: int, outer: bool, spacing: float, *rest: float) -> Any:
        made = super().tails(rung, outer, spacing, *rest)
        made.points *= 4
        made.width = (0.02, 0.015, 5e-5)[min(len(self.made), 3) - 1]
        return made


def test_twice_as_many_points_do_not_refuse_what_more_answer() -> None:
    """Three γ of 2,145,083 steps (1e-121 to 1e-220) had been refused for it."""
    rungs = _SlowRungs(0.2, 0.0, 0.0)
    search = refine.Search(rungs, True, "a", 1e-4, 0.0, 0)  # type: ignore[arg-type]
    found = search.brackets(_bracket, np.ones(1), np.zeros(1, dtype=np.int64))
    assert found.upper[0] - found.lower[0] <= 1e-4
    assert len(rungs.made) == 3
