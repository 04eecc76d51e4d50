"""Objects of the real libraries, where they are installed (extra ``peers``)."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine.accounting.conformance.adapters import KNOWN
from pyengine.conformance import load, run
from pyengine.interop import (
    from_dp_event,
    from_prvs,
    to_dp_event,
    to_history,
    to_privacy_loss_distribution,
    to_prvs,
)

RUN = pe.dp_sgd(1.0, 0.01, 100)
ALL = pe.compose(
    RUN,
    pe.GaussianMechanism(3.0),
    pe.LaplaceMechanism(2.0).poisson_sampled(0.5),
    pe.DiscreteLaplaceMechanism(2.0, 3),
    pe.RandomizedResponse("5/8", 4),
    pe.GaussianMechanism(2.0).sampled_without_replacement(batch_size=5, dataset_size=50),
)


def test_events() -> None:
    pytest.importorskip("dp_accounting")
    assert from_dp_event(to_dp_event(RUN)) == RUN
    assert from_dp_event(to_dp_event(pe.compose())) == pe.compose()
    back = pe.mechanisms.steps_of(from_dp_event(to_dp_event(ALL)))
    assert [type(step) for step, _ in back] == [type(s) for s, _ in pe.mechanisms.steps_of(ALL)]
    for undescribed in (pe.GenericMechanism(1.0), pe.RandomizedResponse(0.1)):
        with pytest.raises(ValueError, match="must have an event of dp_accounting"):
            to_dp_event(undescribed)


def test_every_event_is_known_or_named() -> None:
    """A new kind of event of the library must not pass for something else."""
    dp_event = pytest.importorskip("dp_accounting").dp_event
    for name in dir(dp_event):
        if not name.endswith("DpEvent") or name in ("DpEvent", "NoOpDpEvent", "NonPrivateDpEvent"):
            continue
        cls = getattr(dp_event, name)
        made = cls.__new__(cls)
        # known ones miss their fields here, unknown ones are named
        with pytest.raises((ValueError, AttributeError)) as caught:
            from_dp_event(made)
        assert caught.type is AttributeError or name in str(caught.value)


def test_the_accountant_agrees() -> None:
    dp_accounting = pytest.importorskip("dp_accounting")
    accountant = dp_accounting.pld.PLDAccountant()
    event = to_dp_event(RUN)
    accountant.compose(event)
    assert accountant.get_epsilon(1e-5) == pytest.approx(pe.epsilon(event, 1e-5), rel=1e-4)


def test_distributions() -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    theirs = pld.from_gaussian_mechanism(
        1.0, sampling_prob=0.01, value_discretization_interval=1e-3
    ).self_compose(100)
    ours = to_privacy_loss_distribution(RUN, interval=1e-3)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        truth = pe.delta(RUN, epsilon)
        assert ours.get_delta_for_epsilon(epsilon) == pytest.approx(truth, rel=1e-9)
        assert pe.delta(theirs, epsilon) == pytest.approx(truth, rel=5e-3)
        between = epsilon + 0.0005
        assert ours.get_delta_for_epsilon(between) >= pe.delta(RUN, between) * (1 - 1e-12)
    twice = ours.compose(ours)
    assert twice.get_delta_for_epsilon(0.5) == pytest.approx(pe.delta(RUN + RUN, 0.5), rel=1e-3)
    assert pe.gamma_bound(ours, 1e-3) >= pe.gamma_bound(RUN, 1e-3)
    assert pe.gamma_bound(ours, 1e-3) == pytest.approx(pe.gamma_bound(RUN, 1e-3), rel=1e-3)
    with pytest.raises(ValueError, match="interval must be at least"):
        to_privacy_loss_distribution(RUN, interval=1e-9)
    with pytest.raises(ValueError, match="mass of infinite loss"):
        to_privacy_loss_distribution(pe.GenericMechanism(1.0, 1e-6))


def test_histories() -> None:
    accountants = pytest.importorskip("opacus.accountants")
    accountant = accountants.RDPAccountant()
    for _ in range(100):
        accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    assert pe.epsilon(accountant, 1e-5) == pe.epsilon(RUN, 1e-5) < accountant.get_epsilon(1e-5)
    accountant.history = to_history(RUN)
    assert pe.epsilon(accountant, 1e-5) == pe.epsilon(RUN, 1e-5)


@pytest.mark.parametrize("module", ["riskcal.accountants", "gdpnum"])
def test_ctd_accountants(module: str) -> None:
    accountant = pytest.importorskip(module).CTDAccountant()
    for _ in range(100):
        accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    assert pe.epsilon(accountant, 1e-5) == pe.epsilon(RUN, 1e-5)
    assert accountant.get_epsilon(delta=1e-5) == pytest.approx(pe.epsilon(RUN, 1e-5), rel=1e-3)


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "pyengine"])
def test_conformance_asks_the_accountant(name: str) -> None:
    """The adapter still fits the library: it answers one question in each of its ways."""
    adapter = KNOWN[name].rpartition(":")
    pytest.importorskip(name)
    methods = getattr(importlib.import_module(adapter[0]), adapter[2])().methods
    results = []
    for question in {questions[0] for questions in methods.values()}:
        case = next(c for c in load() if (c.setting.name, c.question) == ("a", question))
        found, absent = run([name], [case], limit=600.0)
        assert not absent
        results += found
    assert {result.method for result in results} == set(methods)
    for result in results:
        assert result.message == ""
        assert result.value is not None
        assert result.value > 0.0


def test_privacy_random_variables() -> None:
    module: Any = pytest.importorskip("prv_accountant")
    mixed = pe.compose(RUN, pe.GaussianMechanism(4.0), pe.LaplaceMechanism(2.0))
    prvs, numbers = to_prvs(mixed)
    assert from_prvs(prvs, numbers) == mixed
    sampled = module.PoissonSubsampledGaussianMechanism(
        sampling_probability=0.01, noise_multiplier=1.0
    )
    assert pe.delta(sampled, 0.1) == pe.delta(pe.dp_sgd(1.0, 0.01, 1), 0.1)
    approximate = module.privacy_random_variables.ApproximateDPMechanism(1.0, 1e-6)
    assert from_prvs(approximate) == pe.GenericMechanism(1.0, 1e-6).composed(1)
    with pytest.raises(ValueError, match="must have a counterpart in prv_accountant"):
        to_prvs(pe.RandomizedResponse(0.75))


def test_riskcal_is_below_the_truth() -> None:
    """The case that pyengine conformance reports, by the library's own call."""
    riskcal = pytest.importorskip("riskcal.calibration.dpsgd")
    from pyengine.interop import get_beta_for_dpsgd

    run = {"noise_multiplier": 0.8, "sample_rate": 0.001, "num_steps": 10_000}
    alpha = np.array([1e-5])
    ours = 1 - get_beta_for_dpsgd(**run, alpha=alpha)
    assert ours[0] == pytest.approx(2.6444857137466681e-5, rel=1e-10)
    theirs = 1 - riskcal.get_beta_for_dpsgd(**run, alpha=alpha)
    assert theirs[0] < 0.5 * ours[0] or theirs[0] == pytest.approx(ours[0], rel=0.05)
