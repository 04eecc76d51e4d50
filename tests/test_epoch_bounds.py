"""Proven bounds of one epoch of random allocation, and of several, against truths of other code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from thorough import ALL, sampled, some
from truth import load

import pyengine as pe
from pyengine.api import answers
from pyengine.laws.allocation import AllocatedLaw
from pyengine.laws.base import Enclosing
from pyengine.laws.epoch_bounds import epoch_bounds
from pyengine.laws.ratios import RatioLaw

QUESTIONS = {
    "delta": pe.delta,
    "gamma": pe.gamma_bound,
    "epsilon": pe.epsilon,
    "beta": pe.trade_off,
}
NAMES = {"delta": "delta", "gamma": "gamma_bound", "epsilon": "epsilon", "beta": "trade_off"}
ROWS = load("random_allocation.json")
# all questions on some of the runs: the laws of a run take most of the time
RUNS = some(dict.fromkeys((row["sigma"], row["steps"], row["epochs"]) for row in ROWS), 4)
CHOSEN = [row for row in ROWS if (row["sigma"], row["steps"], row["epochs"]) in RUNS]
SLACK = 1e-12  # relative to a value, beside what estimates say that they err by


@sampled(4)
@pytest.mark.parametrize("row", CHOSEN)
def test_published_digits_lie_between_the_bounds(row: dict[str, Any]) -> None:
    run = pe.dp_sgd_allocated(float(row["sigma"]), row["steps"], row["epochs"])
    x, truth = float(row["argument"]), float(row["value"])
    found = QUESTIONS[row["question"]](run, x, adjacency=row["adjacency"], bounds=True)
    assert found.lower <= truth * (1.0 + 1e-14)
    assert truth * (1.0 - 1e-14) <= found.upper
    assert found.upper - found.lower <= 5e-3 * found.upper
    *_, proven = answers(
        NAMES[row["question"]], run, [x], adjacency=row["adjacency"], method="lattice"
    )
    assert proven == [True]


def profiles_of_few_steps(noise: float, steps: int, epsilon: float) -> tuple[float, float]:
    """δ(ε) under remove and under add of two or three steps.

    Trapezoidal sums over all steps but the last, whose integral has a closed form; of three steps
    they err by some 2e-11, of which four times as many nodes leave nothing.
    """
    mu = 1.0 / noise
    z = np.linspace(-11.0, 11.0 + mu, 2**18 if steps == 2 else 1761)
    weight = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) * (z[1] - z[0])
    ratio = np.exp(mu * z - 0.5 * mu * mu)
    others = ratio if steps == 2 else np.add.outer(ratio, ratio)
    mass = weight if steps == 2 else np.multiply.outer(weight, weight)

    def rest(k: float) -> Any:
        """What the last ratio w has to be for a sum of k, and E (w - rest)+ of it."""
        left = k - others
        edge = np.log(np.maximum(left, 1e-300)) / mu + 0.5 * mu
        call = ndtr(mu - edge) - left * ndtr(-edge)
        return left, np.where(left > 0.0, call, 1.0 - left)

    left, above = rest(steps * math.exp(epsilon))
    remove = float((mass * above).sum()) / steps
    left, above = rest(steps * math.exp(-epsilon))
    below = above - (1.0 - left)  # E (rest - w)+
    return remove, float((mass * below).sum()) / steps * math.exp(epsilon)


@pytest.mark.parametrize(("noise", "steps"), [(0.5, 2), (1.0, 2), (3.0, 2), (1.0, 3), (3.0, 3)])
def test_few_steps_against_integrals(noise: float, steps: int) -> None:
    run = pe.dp_sgd_allocated(noise, steps, 1)
    for epsilon in (0.0, 0.3 / noise, 1.0 / noise):
        truths = profiles_of_few_steps(noise, steps, epsilon)
        for adjacency, truth in zip(("remove", "add"), truths, strict=True):
            found = pe.delta(run, epsilon, adjacency=adjacency, bounds=True)
            assert found.lower <= truth * (1.0 + 1e-10)
            assert truth * (1.0 - 1e-10) <= found.upper
            assert found.upper - found.lower <= 1e-11 * found.upper


def random_case(rng: np.random.Generator) -> tuple[float, int, int, str, str, float]:
    noise = math.exp(rng.uniform(math.log(0.3), math.log(20.0)))
    steps = int(math.exp(rng.uniform(math.log(2.0), math.log(1e4))))
    epochs = int(math.exp(rng.uniform(0.0, math.log(100.0))))
    adjacency = str(rng.choice(["add", "remove", "add_remove"]))
    return noise, steps, epochs, adjacency, str(rng.choice(list(NAMES))), rng.uniform(-12.0, -2.0)


@pytest.mark.parametrize("seed", range(500 if ALL else 3))
def test_random_epochs_hold_their_estimates(seed: int) -> None:
    noise, steps, epochs, adjacency, question, level = random_case(np.random.default_rng(seed))
    run = pe.dp_sgd_allocated(noise, steps, epochs)
    x = 10.0**level
    if question == "delta":
        x = pe.epsilon(run, x, adjacency=adjacency)
    ask = QUESTIONS[question]
    sure = ask(run, x, adjacency=adjacency, bounds=True)
    quick = ask(run, x, adjacency=adjacency, bounds="estimated")
    slack = SLACK * quick.value
    assert sure.lower <= quick.upper + slack
    assert quick.lower - slack <= sure.upper
    assert sure.lower <= sure.value <= sure.upper


def test_bounds_fall_with_epsilon_and_grow_with_the_epochs() -> None:
    epsilon = np.linspace(0.0, 2.0, 41)
    last = np.zeros(epsilon.size)
    for epochs in (1, 3, 9):
        found = pe.delta(pe.dp_sgd_allocated(1.0, 30, epochs), epsilon, bounds=True)
        assert (np.diff(found.lower) <= 0.0).all()
        assert (np.diff(found.upper) <= 0.0).all()
        assert (found.upper > last).all()
        last = found.lower


def call_of(law: RatioLaw, t: float) -> float:
    """E (L - t)+ of the ratio."""
    return float((law.mass * np.maximum(law.ratio - t, 0.0)).sum())


@pytest.mark.parametrize(("noise", "steps"), [(0.15, 7), (0.6, 100), (30.0, 1000)])
def test_the_law_below_lies_below_and_more_nodes_bring_both_together(
    noise: float, steps: int
) -> None:
    apart = []
    for nodes in (512, 1024):
        below, above = epoch_bounds(noise, steps, nodes)
        for law in (below, above):
            assert isinstance(law, RatioLaw)
            assert abs(math.log(law.mass.sum())) <= law.error
            assert abs(math.log((law.mass * law.ratio).sum())) <= law.error + law.ratio_error
        width = np.linspace(*np.log(above.ratio[[1, -2]]), 301)
        rounding = 4.0 * (below.error + above.error)
        calls = [[call_of(law, math.exp(x)) for law in (below, above)] for x in width]
        assert all(low <= high * (1.0 + rounding) + 1e-300 for low, high in calls)
        apart.append(call_of(above, 1.0) / call_of(below, 1.0) - 1.0)
    assert 0.0 < apart[1] < 0.35 * apart[0]


def test_enclosing_laws_differ_and_are_kept() -> None:
    law = AllocatedLaw(1.0, 25)
    assert not law.has_cells
    below, above = law.enclosed(None)
    assert below != above
    assert law.enclosed(None) is AllocatedLaw(1.0, 25).enclosed(None)
    assert isinstance(law.enclosed(1e-3), Enclosing)


def test_a_tolerance_is_met_by_more_nodes_or_refused() -> None:
    run = pe.dp_sgd_allocated(1.0, 2, 2)
    wide = pe.delta(run, 1.5, adjacency="add", bounds=True)
    close = pe.delta(run, 1.5, adjacency="add", bounds=True, tolerance=2e-5)
    assert close.upper - close.lower <= 2e-5 * close.upper
    assert wide.lower <= close.lower <= close.upper <= wide.upper
    with pytest.raises(pe.AccuracyError, match="or more gives this answer"):
        pe.delta(run, 1.5, adjacency="add", method="lattice", tolerance=1e-7)


def test_beside_other_steps() -> None:
    epochs = pe.dp_sgd_allocated(1.0, 20, 2)
    for other, truth in (
        (pe.GaussianMechanism(2.0), "reference"),
        (pe.GaussianMechanism(3.0).poisson_sampled("0.1").composed(5), "reference"),
    ):
        found = pe.delta(epochs + other, 0.7, adjacency="add", bounds=True)
        assert found.lower <= found.upper <= found.lower * (1.0 + 2e-3)
        value = pe.delta(epochs + other, 0.7, adjacency="add", method=truth)
        assert found.lower <= value <= found.upper
    found = pe.delta(epochs + pe.LaplaceMechanism(2.0), 0.7, bounds=True)
    alone = pe.delta(epochs, 0.7, bounds=True)
    assert alone.upper < found.lower <= found.upper <= found.lower * (1.0 + 2e-3)


def test_calibration_by_proven_bounds() -> None:
    target = pe.targets.EpsilonDelta(1.0, 1e-5, bounds=True)
    found = pe.calibrate(lambda noise: pe.dp_sgd_allocated(noise, 4, 2), target)
    assert pe.delta(found.mechanism, 1.0, bounds=True).upper <= 1e-5
    quick = pe.calibrate(
        lambda noise: pe.dp_sgd_allocated(noise, 4, 2), pe.targets.EpsilonDelta(1.0, 1e-5)
    )
    assert quick.value <= found.value <= quick.value * (1.0 + 1e-4)


def test_what_is_refused_has_an_answer_elsewhere() -> None:
    run = pe.dp_sgd_allocated(0.12, 10, 1)
    with pytest.raises(pe.AccuracyError, match=r"enclosed for noise_multiplier >= 0\.15"):
        pe.delta(run, 1.0, method="lattice")
    with pytest.raises(pe.AccuracyError, match="only between two others"):
        AllocatedLaw(1.0, 10).cells(np.zeros(1))
    with pytest.raises(pe.AccuracyError, match="method='exact' needs the law of each step"):
        pe.delta(pe.dp_sgd_allocated(1.0, 10, 1), 1.0, method="exact")
