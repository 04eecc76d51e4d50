"""What bounds=True returns is proven, whichever engine answers, or refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import stats
from thorough import sampled, some

import pyengine as pe
from pyengine.api import answers
from pyengine.approximations import edgeworth_gamma
from pyengine.cli import main

RUN = pe.dp_sgd(1.0, 0.01, 100)
FAR = pe.dp_sgd(
    1.0, 1e-8, 10**9
)  # at deltas of 1e-300 neither lines nor the lattice prove anything
EPOCHS = pe.dp_sgd_allocated(0.12, 100, 3)  # of less noise than laws enclose
HEAVY = pe.from_distributions(stats.t(3), stats.t(3, loc=0.5))
NORMAL = pe.from_distributions(stats.norm(), stats.norm(loc=0.5))
QUESTIONS: dict[str, tuple[Any, float]] = {
    "trade_off": (pe.trade_off, 0.1),
    "gamma_bound": (pe.gamma_bound, 1e-3),
    "delta": (pe.delta, 0.5),
    "epsilon": (pe.epsilon, 1e-5),
}
UNPROVEN: dict[str, tuple[pe.Mechanism, dict[str, Any]]] = {
    "an approximation": (RUN, {"method": "edgeworth", "adjacency": "add"}),
    "samples": (RUN, {"method": "monte_carlo", "adjacency": "add"}),
    "epochs of very little noise": (EPOCHS, {}),
    "blocks of little noise": (pe.GaussianMechanism(0.12).randomly_allocated(30, selected=2), {}),
    "densities of SciPy in one step": (HEAVY, {}),
    "on Poisson samples": (HEAVY.poisson_sampled(0.1).composed(5), {}),
    "beside other steps": (pe.compose(NORMAL, pe.RandomizedResponse(0.6)), {}),
    "under the lattice's name": (HEAVY.composed(3), {"method": "lattice"}),
    "lengths of noise in many dimensions": (
        pe.GaussianMechanism(2.0),
        {"threat_model": pe.threat_models.Relaxed(dimension=3)},
    ),
    "and on samples": (
        RUN,
        {"threat_model": pe.threat_models.Relaxed(dimension=3)},
    ),
}
PROVEN: dict[str, tuple[pe.Mechanism, dict[str, Any]]] = {
    "certified lines": (RUN, {}),
    "a closed form": (pe.GaussianMechanism(1.0), {}),
    "lines of Laplace steps": (pe.LaplaceMechanism(1.0).poisson_sampled(0.1).composed(300), {}),
    "the lattice": (RUN, {"method": "lattice", "adjacency": "add"}),
    "finite losses": (pe.RandomizedResponse(0.6).composed(5), {}),
    "an epoch of random allocation": (pe.dp_sgd_allocated(1.0, 4, 1), {}),
    "epochs of random allocation": (pe.dp_sgd_allocated(1.0, 4, 3), {}),
    "blocks": (pe.GaussianMechanism(1.0).randomly_allocated(6, selected=2), {}),
}


@sampled(3)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("case", UNPROVEN)
@pytest.mark.filterwarnings("ignore::pyengine.ApproximationWarning")
def test_no_estimate_is_passed_for_a_proof(case: str, question: str) -> None:
    mechanism, words = UNPROVEN[case]
    ask, x = QUESTIONS[question]
    for argument in (x, [x, x]):
        with pytest.raises(pe.AccuracyError, match=f"prove.* bounds of {question} at .*estimated"):
            ask(mechanism, argument, bounds=True, **words)
    # what the refusal advises does answer
    found = ask(mechanism, x, bounds="estimated", **words)
    assert found.lower <= found.value <= found.upper
    together = ask(mechanism, [x], bounds="estimated", **words)
    assert together.upper.shape == (1,)
    others = {"adjacency": "add_remove", **words}
    bounds, _, proven = answers(question, mechanism, [x], **others)
    assert proven == [False]
    assert bounds.lower[0] <= bounds.upper[0]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("case", PROVEN)
def test_what_is_proven_is_returned_for_floats_and_arrays(case: str, question: str) -> None:
    mechanism, words = PROVEN[case]
    ask, x = QUESTIONS[question]
    one = ask(mechanism, x, bounds=True, **words)
    many = ask(mechanism, [x], bounds=True, **words)
    assert one.lower <= many.upper[0]
    assert many.lower[0] <= one.upper
    quick = ask(mechanism, x, bounds="estimated", **words)
    assert max(one.lower, quick.lower) <= min(one.upper, quick.upper)
    others = {"adjacency": "add" if question == "gamma_bound" else "add_remove", **words}
    *_, proven = answers(question, mechanism, [x], **others)
    assert proven == [True]


def test_one_entry_without_a_proof_refuses_an_array() -> None:
    assert pe.epsilon(FAR, [1e-6], bounds=True).upper[0] > 0.0
    for bounds in some([True, "estimated", False], 2):  # each takes seconds
        with pytest.raises(pe.AccuracyError, match="lattice points"):
            pe.epsilon(FAR, [1e-6, 1e-300], bounds=bounds)


@pytest.mark.parametrize("wrong", [1, 0, "proven", "", None, [True]])
def test_other_words_are_refused_however_often_they_are_asked(wrong: Any) -> None:
    pe.delta(RUN, 0.5, bounds=True)  # what is kept for True must not answer for 1
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"bounds must be True \(proven\), False or 'estimated', got"
        ):
            pe.delta(RUN, 0.5, bounds=wrong)
    assert isinstance(pe.delta(RUN, 0.5, bounds=np.True_), pe.Bounds)
    assert isinstance(pe.delta(RUN, 0.5, bounds=np.False_), float)


def test_approximations_have_estimates_alone() -> None:
    with pytest.raises(ValueError, match="as approximations prove none, got True"):
        edgeworth_gamma(RUN, 0.1, bounds=True)
    found = edgeworth_gamma(RUN, 0.1, bounds="estimated")
    assert found.lower <= found.value <= found.upper


def test_the_command_line_refuses_what_is_not_proven(capsys: pytest.CaptureFixture[str]) -> None:
    epochs = [
        "epsilon",
        "--noise",
        "0.12",
        "--steps-per-epoch",
        "100",
        "--epochs",
        "3",
        "--delta",
        "1e-5",
    ]
    assert main([*epochs, "--bounds"]) == 1
    row = capsys.readouterr().out.splitlines()[-1]
    assert "refused" in row
    assert row.endswith("does not prove bounds here: --bounds estimated prints estimates of them")
    assert main([*epochs, "--bounds", "estimated"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("estimate")


@pytest.mark.parametrize(
    "target",
    [
        pe.targets.EpsilonDelta(1.0, 1e-6, bounds=True),
        pe.targets.Gamma(1e-3, 2e-3, bounds=True),
        pe.targets.TradeOff(0.05, 0.9, bounds=True),
        pe.targets.Advantage(0.1, bounds=True),
    ],
)
def test_calibration_by_proven_bounds(target: pe.targets.Target) -> None:
    found = pe.calibrate(lambda noise: pe.dp_sgd(noise, 0.01, 500), target)
    assert target.is_met(found.mechanism)
    assert found.achieved.bounds is True
    quick = pe.calibrate(
        lambda noise: pe.dp_sgd(noise, 0.01, 500),
        dataclasses.replace(target, bounds="estimated"),
    )
    assert found.value == pytest.approx(quick.value, rel=1e-9)
    assert pe.from_json(pe.to_json(target)) == target


def test_the_proven_noise_meets_what_is_proven() -> None:
    target = pe.targets.EpsilonDelta(0.7, 1e-7, bounds=True)
    found = pe.calibrate(lambda noise: pe.dp_sgd(noise, 0.003, 20_000), target)
    assert pe.delta(found.mechanism, 0.7, bounds=True).upper <= 1e-7
    assert pe.delta(pe.dp_sgd(found.value * (1 - 1e-10), 0.003, 20_000), 0.7) > 1e-7


def test_targets_that_nothing_proves_are_refused() -> None:
    def steps(noise: float) -> pe.Mechanism:
        return pe.from_distributions(stats.norm(), stats.norm(loc=1.0 / noise)).composed(2)

    with pytest.raises(pe.AccuracyError, match="no engine proves"):
        pe.calibrate(steps, pe.targets.EpsilonDelta(1.0, 1e-5, bounds=True))
    assert float(pe.calibrate(steps, pe.targets.EpsilonDelta(1.0, 1e-5))) > 0.0
    for wrong in (False, "proven", 1):
        with pytest.raises(ValueError, match="bounds must be True"):
            pe.targets.EpsilonDelta(1.0, 1e-5, bounds=wrong)


def test_calibration_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    run = [
        "calibrate",
        "--p",
        "0.01",
        "--steps",
        "500",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--proven",
        "--digits",
        "15",
    ]
    assert main(run) == 0
    noise = float(capsys.readouterr().out.split()[1])
    assert pe.delta(pe.dp_sgd(noise, "0.01", 500), 1.0, bounds=True).upper <= 1e-6


def schedule(rounds: int, factor: float) -> pe.Mechanism:
    """Noise that falls from 2 by a factor, in as many steps of their own kind."""
    noise = (2.0 * factor ** (-step / rounds) for step in range(rounds))
    return pe.compose(*(pe.dp_sgd(sigma, 0.004, 1) for sigma in noise))


def kinds(number: int) -> pe.Mechanism:
    inverse = np.random.default_rng(0).uniform(0.05, 1.0, number)
    return pe.compose(*(pe.dp_sgd(1.0 / float(x), 0.01, 1) for x in inverse))


@sampled(3)
@pytest.mark.parametrize(
    ("mechanism", "truth"),
    [
        (schedule(1000, 2.0), 0.41991727958),
        (schedule(2000, 3.0), 1.57921353598),
        (kinds(300), 0.5951176318307),
    ],
    ids=["halved", "divided by three", "many kinds"],
)
def test_schedules_have_the_value_of_the_proof(mechanism: pe.Mechanism, truth: float) -> None:
    found = pe.epsilon(mechanism, 1e-5)
    assert found == pytest.approx(truth, rel=2e-11)
    proven = pe.epsilon(mechanism, 1e-5, bounds=True)
    assert proven.lower <= found <= proven.upper
    both = pe.epsilon(mechanism, np.array([1e-3, 1e-5, 0.1]))
    assert both.tolist() == [pe.epsilon(mechanism, x) for x in (1e-3, 1e-5, 0.1)]


def test_a_refusal_says_which_tolerance_would_do() -> None:
    with pytest.raises(pe.AccuracyError, match="or more gives this answer") as refused:
        pe.delta(RUN, 0.5, tolerance=1e-15)
    tolerance = float(str(refused.value).split("tolerance=")[1].split()[0])
    assert pe.delta(RUN, 0.5, tolerance=tolerance) == pe.delta(RUN, 0.5)
