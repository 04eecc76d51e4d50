"""Accountants that take the place of others', without the libraries that they are made for."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine import api, epsilon
from pyengine.api.relations import ADJACENCY, mechanism_under
from pyengine.calibration.proven import proven_bounds, proven_noise
from pyengine.errors import AccuracyError
from pyengine.interop import HistoryAccountant, from_history
from pyengine.interop.pfl import PyengineJointPrivacyAccountant, PyenginePrivacyAccountant
from pyengine.interop.prv_accountant import (
    Accountant,
    DPSGDAccountant,
    PRVAccountant,
    find_noise_multiplier,
)

RUN = pe.dp_sgd(1.0, 0.01, 100)
QUESTIONS = {"trade_off": 0.01, "gamma_bound": 1e-3, "delta": 0.25, "epsilon": 1e-5}


def accountant(steps: int = 100) -> HistoryAccountant:
    made = HistoryAccountant()
    made.history = [(1.0, 0.01, steps)]
    return made


@pytest.mark.parametrize("name", QUESTIONS)
def test_bounds_are_proven(name: str) -> None:
    """They are those of the engines that prove, and the value is that of the fastest one."""
    at = QUESTIONS[name]
    asked = pe.engines.registry.questions(
        RUN, adjacency="add_remove", method="certified", threat_model="dp", tolerance=None
    )
    answer = asked.answer(name, np.array([at]))
    assert answer.certified.all()
    lower, value, upper = proven_bounds(name, RUN, at)
    assert lower <= value <= upper
    assert 0.0 < upper - lower < 1e-8 * upper
    truth = getattr(pe, name)(RUN, at, adjacency="add_remove", method="lattice", bounds=True)
    assert truth.lower <= lower < upper <= truth.upper
    assert value == pytest.approx(getattr(pe, name)(RUN, at, adjacency="add_remove"), rel=1e-11)
    together = proven_bounds(name, RUN, [[at, at]])
    assert together.upper.shape == (1, 2)
    assert isinstance(lower, float)


def test_bounds_are_as_wide_as_they_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the default width is refused, a larger one is asked for, unless the caller chose."""
    widths: list[float | None] = []

    def asked(mechanism: pe.Mechanism, delta: float, **words: Any) -> Any:
        if words.get("bounds") is True:
            widths.append(words["tolerance"])
            if words["tolerance"] is None or words["tolerance"] < 0.05:
                raise AccuracyError(f"refused at {words['tolerance']}")
        return epsilon(mechanism, delta, **words)

    monkeypatch.setattr(api, "epsilon", asked)
    found = proven_bounds("epsilon", RUN, 1e-5)
    assert widths == [None, 0.01, 0.1]
    assert found.lower < pe.epsilon(RUN, 1e-5, adjacency="add_remove") < found.upper
    with pytest.raises(AccuracyError, match=r"refused at 0.01 \(an estimate"):
        proven_bounds("epsilon", RUN, 1e-5, tolerance=0.01)


def test_words_of_other_accountants_change_nothing() -> None:
    made = accountant()
    words = {"alphas": [2.0, 3.0], "eps_error": 0.01, "delta_error": 1e-9, "poisson": True}
    assert made.get_epsilon(delta=1e-5, **words) == made.get_epsilon(1e-5)
    grid = {"grid_step": 1e-2, "use_connect_dots": False}
    assert made.get_beta(alpha=0.01, **grid) == made.get_beta(0.01)
    assert made.get_gamma(0.01, **grid) == made.get_gamma(0.01)
    assert made.get_advantage(**grid) == made.get_advantage() == made.get_delta(0.0, **grid)
    with pytest.raises(TypeError, match=r"keywords must be proven.*, got grid_size"):
        made.get_epsilon(delta=1e-5, grid_size=1e-2)


def test_composed_variable() -> None:
    step = pe.GaussianMechanism(1.0).poisson_sampled(0.01)
    made = PRVAccountant(step, eps_error=0.1, delta_error=1e-8, max_self_compositions=100)
    composed = made.compute_composition([100])
    assert composed.composition == RUN
    assert composed.compute_epsilon(1e-5, 1e-8, 0.1) == made.compute_epsilon(1e-5, [100])
    low, value, high = made.compute_delta(0.5, [100])
    assert low <= composed.compute_delta_estimate(0.5) <= high
    assert composed.compute_delta_estimate(0.5) == value
    with pytest.raises(ValueError, match="at most max_self_compositions, 100, got 101"):
        made.compute_composition([101])
    with pytest.raises(ValueError, match="epsilon_error must"):
        composed.compute_epsilon(1e-5, 1e-8, 0.0)


def test_a_proof_is_not_asked_for_twice() -> None:
    lower, _, upper = proven_bounds("epsilon", pe.GaussianMechanism(2.0), 1e-5)
    assert upper - lower < 1e-12
    with pytest.raises(ValueError, match=r"delta must lie in \[0, 1\], got 2.0"):
        proven_bounds("epsilon", RUN, 2.0)


def test_what_cannot_be_proven_is_said_with_the_estimate() -> None:
    with pytest.raises(pe.AccuracyError, match=r"\(an estimate without proof: 0\.030568\d+\)"):
        proven_bounds("delta", RUN.composed(10), 0.5, tolerance=1e-13)


def test_noise_is_proven() -> None:
    noise = proven_noise(lambda s: pe.dp_sgd(s, 0.01, 100), 1.0, 1e-5)
    assert proven_bounds("delta", pe.dp_sgd(noise, 0.01, 100), 1.0).upper <= 1e-5
    exact = pe.calibrate(lambda s: pe.dp_sgd(s, 0.01, 100), pe.targets.EpsilonDelta(1.0, 1e-5))
    assert float(exact) <= noise <= float(exact) * 1.0002
    assert noise == find_noise_multiplier(0.01, 100, target_epsilon=1.0, target_delta=1e-5)


def test_steps_become_a_history() -> None:
    made = HistoryAccountant()
    assert made.get_epsilon(1e-5) == 0.0
    for _ in range(3):
        made.step(noise_multiplier=1.0, sample_rate=0.01)
    made.step(noise_multiplier=2.0, sample_rate=0.01)
    for _ in range(2):
        made.step(noise_multiplier=1.0, sample_rate=0.01)
    history = [(1.0, 0.01, 3), (2.0, 0.01, 1), (1.0, 0.01, 2)]
    assert made.history == history
    assert len(made) == 6
    expected = pe.compose(pe.dp_sgd(1.0, 0.01, 5), pe.dp_sgd(2.0, 0.01, 1))
    assert made.composition() == from_history(history) == pe.compose(made) == expected
    assert pe.compose(history) == expected
    for wrong in ({"sample_rate": 1.5}, {"noise_multiplier": 0.0}):
        with pytest.raises(ValueError, match="must"):
            made.step(**{"noise_multiplier": 1.0, "sample_rate": 0.1, **wrong})
    assert made.history == history


def test_answers_are_on_the_safe_side() -> None:
    asked = accountant()
    for found, truth in (
        (asked.get_epsilon(1e-5), pe.epsilon(RUN, 1e-5)),
        (asked.get_delta(0.25), pe.delta(RUN, 0.25)),
        (asked.get_gamma(1e-3), pe.gamma_bound(RUN, 1e-3)),
        (asked.get_advantage(), pe.delta(RUN, 0.0)),
    ):
        assert truth <= found <= truth * 1.0002
    beta = pe.trade_off(RUN, [0.01, 0.1])
    found = asked.get_beta([0.01, 0.1])
    assert np.all((beta * 0.9998 <= found) & (found <= beta))
    assert asked.get_epsilon(1e-5, proven=False) == pe.epsilon(RUN, 1e-5) == pe.epsilon(asked, 1e-5)
    assert asked.get_gamma(1e-3, proven=False) == pe.gamma_bound(RUN, 1e-3)


def test_states_go_around() -> None:
    kept = accountant().state_dict()
    again = HistoryAccountant()
    again.load_state_dict(kept)
    kept["history"].append((9.0, 0.5, 1))
    assert again.history == [(1.0, 0.01, 100)]
    given: dict[str, Any] = {"others": 1}
    assert again.state_dict(given) is given
    assert given["mechanism"] == "pyengine"
    for state in ({}, {"history": []}):
        with pytest.raises(ValueError, match="must have 'history' and 'mechanism'"):
            again.load_state_dict(state)
    with pytest.raises(ValueError, match="accountant 'pyengine', got 'prv'"):
        again.load_state_dict({"history": [], "mechanism": "prv"})


def test_the_hook_notes_what_the_optimizer_did() -> None:
    made = HistoryAccountant()
    note = made.get_optimizer_hook_fn(sample_rate=0.25)
    for accumulated in (1, 2, 2):
        note(SimpleNamespace(noise_multiplier=1.5, accumulated_iterations=accumulated))
    assert made.history == [(1.5, 0.25, 1), (1.5, 0.5, 2)]


def test_filters_admit_steps_that_adapt() -> None:
    menu = [pe.GaussianMechanism(s).poisson_sampled(p) for s, p in ((1, 0.02), (2, 0.06))]
    menu.append(pe.GaussianMechanism(20))  # on all records: it covers none of the steps below
    budget = pe.Filter(menu, pe.targets.EpsilonDelta(1.0, 1e-4), costs=[1, 1, 2])
    made = HistoryAccountant()
    with pytest.raises(ValueError, match=r"allows\(\) must follow take_filter"):
        made.allows(noise_multiplier=1.0, sample_rate=0.02)
    made.take_filter(budget)
    steps = [(1.5, 0.02), (1.0, 0.01), (2.0, 0.05), (3.0, 0.06)]
    for noise, rate in steps:
        assert made.allows(noise_multiplier=noise, sample_rate=rate)
        made.step(noise_multiplier=noise, sample_rate=rate)
    assert budget.choices == (0, 0, 1, 1)  # no more noise, no smaller rate
    for noise, rate in ((0.9, 0.02), (1.5, 0.03), (5.0, 0.07)):
        with pytest.raises(ValueError, match="must be those of a step that the menu covers"):
            made.allows(noise_multiplier=noise, sample_rate=rate)
    worst = pe.delta(made.run, 1.0, bounds=True, tolerance=1e-3)
    assert made.run == budget.run_of(budget.budget)
    assert worst.lower <= made.get_delta(1.0) <= 1e-4
    assert made.get_epsilon(1e-4) <= 1.0
    for ask in (made.composition, made.shuffled_composition):
        with pytest.raises(ValueError, match="must be asked without a filter"):
            ask()
    kept = made.state_dict()
    again = HistoryAccountant()
    again.load_state_dict(kept)
    again.take_filter(pickle.loads(pickle.dumps(budget)))
    assert again.run == made.run
    with pytest.raises(ValueError, match=r"must have booked the steps .* lacks 4 of 4"):
        again.take_filter(pe.Filter(menu[:2], pe.targets.EpsilonDelta(1.0, 1e-4)))
    with pytest.raises(ValueError, match="budget must be a Filter"):
        again.take_filter(1.0)  # type: ignore[arg-type]
    while budget.spend(0):
        pass
    with pytest.raises(ValueError, match=r"ask allows\(\) before each step"):
        made.step(noise_multiplier=1.0, sample_rate=0.02)
    with pytest.raises(ValueError, match="admitted by the filter, and 1 were not"):
        made.get_epsilon(1e-5)


def test_the_signatures_of_prv_accountant() -> None:
    step = pe.GaussianMechanism(1.0).poisson_sampled(0.01)
    one = PRVAccountant(step, eps_error=0.1, delta_error=1e-8, max_self_compositions=100)
    low, value, high = one.compute_epsilon(1e-5, 100)
    assert low < value < high <= low + 0.1
    # beside narrow bounds stands the value of the line that proves them, which rounds by itself
    assert value == pytest.approx(pe.epsilon(RUN, 1e-5), rel=1e-12, abs=0.0)
    assert pe.epsilon(one, 1e-5) == pe.epsilon(RUN, 1e-5)
    assert one.compute_epsilon(1e-5) == proven_bounds("epsilon", step, 1e-5)  # once, as there
    assert one.compute_delta(0.25, [100]) == proven_bounds("delta", RUN, 0.25)
    close = PRVAccountant([step], 1e-6, 1e-8, [100], eps_max=3.0).compute_epsilon(1e-5, [100])
    assert close[2] - close[1] <= 1e-6 > close[1] - close[0]
    old = Accountant(1.0, 0.01, delta=1e-5, max_compositions=100, eps_error=0.1)
    sgd = DPSGDAccountant(noise_multiplier=1.0, sampling_probability=0.01, max_steps=100)
    assert old.compute_epsilon(100) == sgd.compute_epsilon(1e-5, 100) == (low, value, high)
    assert sgd.compute_delta(epsilon=0.25, num_steps=100) == proven_bounds("delta", RUN, 0.25)
    two = PRVAccountant([step, pe.LaplaceMechanism(2)], 0.1, 1e-8, [100, 2])
    assert pe.compose(two) == pe.compose(RUN, pe.LaplaceMechanism(2).composed(2))
    for wrong, message in (
        (lambda: one.compute_epsilon(1e-5, 101), "at most max_self_compositions, 100, got 101"),
        (lambda: PRVAccountant([step], 0.1, 1e-8, [1, 2]), "as many entries as prvs, 1, got 2"),
        (lambda: PRVAccountant(step, 0.0, 1e-8), "eps_error must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_the_dataclass_of_pfl() -> None:
    run = {"num_compositions": 100, "sampling_probability": 0.01, "mechanism": "Gaussian"}
    calibrated = PyenginePrivacyAccountant(**run, epsilon=1.0, delta=1e-5, noise_scale=0.5)
    noise = calibrated.noise_parameter
    assert noise == find_noise_multiplier(0.01, 100, 1.0, 1e-5)
    assert calibrated.cohort_noise_parameter == noise / 2
    assert calibrated.composition() == pe.compose(calibrated) == pe.dp_sgd(noise, 0.01, 100)
    known = PyenginePrivacyAccountant(**run, noise_parameter=1.0, delta=1e-5)
    assert known.epsilon == proven_bounds("epsilon", RUN, 1e-5).upper
    other = PyenginePrivacyAccountant(**run, noise_parameter=1.0, epsilon=known.epsilon)
    assert other.delta == pytest.approx(1e-5, rel=1e-9)
    PyenginePrivacyAccountant(**run, noise_parameter=noise, epsilon=1.0, delta=1e-5)
    laplace = PyenginePrivacyAccountant(
        **{**run, "mechanism": "laplace"}, noise_parameter=2.0, delta=1e-5
    )
    truth = pe.epsilon(pe.LaplaceMechanism(2.0).poisson_sampled(0.01).composed(100), 1e-5)
    assert truth <= laplace.epsilon <= truth * 1.001
    for wrong, message in (
        ({"noise_parameter": 0.9 * noise, "epsilon": 1.0, "delta": 1e-5}, "must be large enough"),
        ({"epsilon": 1.0}, "two of epsilon, delta and noise_parameter"),
        ({"epsilon": 1.0, "delta": 0.0}, r"delta must lie in \(0, 1\)"),
        ({"epsilon": 1.0, "delta": 0.1, "noise_scale": 2.0}, r"noise_scale must lie in \(0, 1\]"),
        ({"epsilon": 1.0, "delta": 0.1, "mechanism": "gauss"}, "did you mean 'gaussian'"),
    ):
        with pytest.raises(ValueError, match=message):
            PyenginePrivacyAccountant(**{**run, **wrong})


def test_the_joint_dataclass_of_pfl() -> None:
    run = {"mechanisms": ["Gaussian", "laplace"], "num_compositions": [100, 20]}
    run["sampling_probability"] = 0.01
    shared = PyengineJointPrivacyAccountant(
        **run, total_epsilon=1.0, total_delta=1e-5, budget_proportions=[0.75, 0.25], noise_scale=0.5
    )
    first, second = shared.noise_parameters
    together = pe.dp_sgd(first, 0.01, 100)
    together += pe.LaplaceMechanism(second).poisson_sampled(0.01).composed(20)
    assert shared.composition() == pe.compose(shared) == together
    found = pe.epsilon(together, 1e-5, bounds=True)
    assert found.lower <= 1.0
    assert 0.999 < found.upper <= 1.0 + 1e-9
    assert shared.cohort_noise_parameters == [first / 2, second / 2]
    # less noise than for the shares alone, in the same proportion
    alone = find_noise_multiplier(0.01, 100, 0.75, 0.75e-5)
    assert first < 0.95 * alone
    known = PyengineJointPrivacyAccountant(
        **run, noise_parameters=[first, second], total_delta=1e-5
    )
    assert known.total_epsilon == proven_bounds("epsilon", together, 1e-5).upper
    other = PyengineJointPrivacyAccountant(
        **run, noise_parameters=[first, second], total_epsilon=1.0
    )
    assert other.total_delta == proven_bounds("delta", together, 1.0).upper
    each = PyengineJointPrivacyAccountant(
        **run,
        mechanism_epsilons=[0.75, 0.25],
        mechanism_deltas=[0.75e-5, 0.25e-5],
        total_delta=1e-5,
    )
    assert each.noise_parameters[0] == pytest.approx(alone, rel=1e-9)
    assert each.total_epsilon < 0.95
    for wrong, message in (
        ({"total_epsilon": 1.0}, "total_epsilon and total_delta must be given, or one of them"),
        ({"total_epsilon": 1.0, "total_delta": 1.0}, r"total_delta must lie in \(0, 1\)"),
        ({"mechanism_epsilons": [1.0, 1.0]}, "must be given together"),
        ({"noise_parameters": [1.0], "total_delta": 1e-5}, "one entry for each of 2 mechanisms"),
        (
            {"noise_parameters": [first, second], "total_epsilon": 0.9, "total_delta": 1e-5},
            "noise_parameters must be large enough",
        ),
        (
            {"total_epsilon": 1.0, "total_delta": 1e-5, "budget_proportions": [0.5, 0.4]},
            "budget_proportions must be positive with the sum 1",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            PyengineJointPrivacyAccountant(**{**run, **wrong})


def event(name: str, **fields: Any) -> Any:
    return type(f"{name}DpEvent", (), fields)()


def test_relations_of_dp_accounting() -> None:
    response = event("RandomizedResponse", noise_parameter=0.5, num_buckets=4)
    gaussian = event("Gaussian", noise_multiplier=2.0)
    batch = event("SampledWithoutReplacement", source_dataset_size=9, sample_size=3, event=gaussian)
    tree = event("SingleEpochTreeAggregation", noise_multiplier=2.0, step_counts=[3, 8, 7])
    several = event("Composed", events=[gaussian, event("SelfComposed", event=gaussian, count=3)])
    assert set(ADJACENCY.values()) == {"add_remove", "substitute"}
    for relation in ADJACENCY:
        assert mechanism_under(several, relation) == pe.GaussianMechanism(2.0).composed(4)
    special = mechanism_under(response, "REPLACE_SPECIAL")
    assert special == pe.from_probabilities(["1/4", "3/4"], ["5/8", "3/8"])
    assert mechanism_under(response, "REPLACE_ONE") == pe.RandomizedResponse("5/8", 4)
    for relation in ("REPLACE_ONE", "REPLACE_SPECIAL"):  # a leaf of 8 has 3 nodes above it
        assert mechanism_under(tree, relation) == pe.GaussianMechanism(2.0).composed(4)
    twice = event("DiscreteGaussian", sigma=2.0, sensitivity=1.0, dimension=None)
    assert mechanism_under(twice, "REPLACE_SPECIAL") == pe.ZeroConcentrated("1/8")
    assert mechanism_under(twice, "REPLACE_ONE") == pe.ZeroConcentrated("1/2")
    drawn = event("SampledWithReplacement", source_dataset_size=3, sample_size=2, event=gaussian)
    weights = ["4/9", "4/9", "1/9"]
    for relation, moves in (
        ("ADD_OR_REMOVE_ONE", [0, 2, 4]),
        ("REPLACE_ONE", [0, 2, 4]),
        ("REPLACE_SPECIAL", [0, 1, 2]),
    ):
        made = mechanism_under(drawn, relation)
        assert made == pe.GaussianMixtureMechanism(2.0, moves, weights).composed(1)
    best = event("RepeatAndSelect", event=response, mean=2.0, shape=math.inf)
    assert mechanism_under(best, "REPLACE_SPECIAL").base == special
    assert mechanism_under(best, "REPLACE_ONE").base == pe.RandomizedResponse("5/8", 4)
    epoch = event("RandomAllocation", event=gaussian, num_selected=1, num_steps=9)
    allocated = pe.GaussianMechanism(2.0).randomly_allocated(9)
    assert mechanism_under(epoch, "REPLACE_ONE") == allocated
    sampled = event("PoissonSampled", sampling_probability=0.5, event=response)
    mixture = event(
        "MixtureOfGaussians", standard_deviation=1.0, sensitivities=[1], sampling_probs=[1]
    )
    assert mechanism_under(mixture, "REPLACE_ONE") == pe.GaussianMixtureMechanism(1.0, [1], [1])
    silent = event(
        "MixtureOfGaussians",
        standard_deviation=0.0,
        sensitivities=[0, 1],
        sampling_probs=[0.5, 0.5],
    )
    for wrong, relation in (
        (response, "ADD_OR_REMOVE_ONE"),
        (tree, "ADD_OR_REMOVE_ONE"),
        (silent, "REPLACE_ONE"),
        (batch, "REPLACE_SPECIAL"),
        (sampled, "REPLACE_ONE"),
        (event("Composed", events=[several, batch]), "REPLACE_SPECIAL"),
        (event("RandomAllocation", event=response, num_selected=1, num_steps=9), "REPLACE_ONE"),
        (event("RepeatAndSelect", event=tree, mean=2.0, shape=0.0), "ADD_OR_REMOVE_ONE"),
    ):
        with pytest.raises(ValueError, match=f"must be defined under {relation}"):
            mechanism_under(wrong, relation)


def test_batches_whose_neighbours_are_others() -> None:
    """A record pushes another one out, and in an epoch it is missing from most batches.

    The curve of a discrete Gaussian of two dimensions moved by one record there, so that δ(0.2) was
    0.0245; along one of its coordinates it is that of one dimension, 0.0716.
    """
    two, one = (event("DiscreteGaussian", sigma=3.0, sensitivity=1, dimension=d) for d in (2, 1))
    nested = event("Composed", events=[event("SelfComposed", event=two, count=1)])
    sizes = {"source_dataset_size": 2, "sample_size": 1}
    for relation in ("ADD_OR_REMOVE_ONE", "REPLACE_ONE"):
        found = [
            mechanism_under(event("SampledWithoutReplacement", event=inner, **sizes), relation)
            for inner in (two, nested, one)
        ]
        assert found[0] == found[1]
        asked = [pe.delta(made, 0.2, adjacency=ADJACENCY[relation]) for made in found]
        assert asked[2] < asked[0] < 2.0 * asked[2]
    for name, fields in (
        ("EpsilonDelta", {"epsilon": 1.0, "delta": 0.0}),
        ("ZC", {"rho": 0.1, "xi": 0.0}),
        ("ExponentialMechanism", {"epsilon": 1.0}),
        ("PermuteAndFlip", {"epsilon": 1.0}),
    ):
        inner = event("Composed", events=[event(name, **fields), one])
        batch = event("SampledWithoutReplacement", event=inner, **sizes)
        epoch = event("RandomAllocation", event=event(name, **fields), num_selected=1, num_steps=3)
        for drawn, right, wrong in (
            (batch, "REPLACE_ONE", "ADD_OR_REMOVE_ONE"),
            (epoch, "ADD_OR_REMOVE_ONE", "REPLACE_ONE"),
        ):
            assert mechanism_under(drawn, right) is not None
            with pytest.raises(ValueError, match=f"must be defined under {wrong}"):
                mechanism_under(drawn, wrong)


def test_what_has_no_steps_is_not_composed() -> None:
    for thing in (abs, [(0.0, 1.0), (1.0, 0.0)], 3.0, "dp_sgd"):
        with pytest.raises(ValueError, match="mechanism must be a Mechanism or describe one"):
            pe.compose(RUN, thing)


def test_no_host_is_imported() -> None:
    code = (
        "import sys, pyengine as pe, pyengine.interop, pyengine.interop.pfl\n"
        "import pyengine.interop.prv_accountant\n"
        "pe.compose([(1.0, 0.5, 2)])\n"
        "print({'opacus', 'dp_accounting', 'prv_accountant', 'pfl'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
    code = (
        "import sys, pyengine; print([m for m in sys.modules if m.startswith('pyengine.interop')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
