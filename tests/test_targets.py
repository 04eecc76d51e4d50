"""Targets are values: their numbers, their words, and what they say of a mechanism."""

from __future__ import annotations

import math
import pickle
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from error_budget import check_near

import pyengine as pe
from pyengine.targets import Advantage, EpsilonDelta, Gamma, GaussianDP, TradeOff

MECHANISM = pe.dp_sgd(1.0, 0.01, 1000)
ALL = [
    EpsilonDelta(1.0, 0.01),
    EpsilonDelta(10.0, 0.0, adjacency="remove"),
    Gamma(1e-3, 5e-3),
    TradeOff(0.05, 0.8),
    Advantage(0.3),
    GaussianDP(40.0),
    GaussianDP(1.0, 1e-6),
]


@pytest.mark.parametrize("target", ALL, ids=repr)
def test_achieved_is_where_a_target_begins_to_be_met(target: pe.targets.Target) -> None:
    achieved = target.achieved(MECHANISM)
    assert type(achieved) is type(target)
    assert achieved.is_met(MECHANISM)
    assert target.is_met(MECHANISM) == (target.excess(MECHANISM) <= 0.0)
    more_noise, less_noise = pe.dp_sgd(1.1, 0.01, 1000), pe.dp_sgd(0.9, 0.01, 1000)
    assert target.excess(less_noise) >= target.excess(MECHANISM) >= target.excess(more_noise)
    if math.isfinite(target.excess(MECHANISM)):
        assert achieved.is_met(more_noise)
        assert not achieved.is_met(less_noise)


@pytest.mark.parametrize("target", ALL, ids=repr)
def test_targets_are_values(target: pe.targets.Target) -> None:
    copy = pickle.loads(pickle.dumps(target))
    assert copy == target
    assert hash(copy) == hash(target)
    assert eval(repr(target), vars(pe.targets)) == target
    assert target != Advantage(0.123)
    assert target.shape == ()
    with pytest.raises(AttributeError):
        target.adjacency = "add"  # type: ignore[misc]


def test_arrays() -> None:
    target = EpsilonDelta([[1.0], [2.0]], np.array([1e-5, 1e-6, 1e-7]))
    assert target.shape == (2, 3)
    assert target.at((1, 2)) == EpsilonDelta(2.0, 1e-7)
    assert target == EpsilonDelta([[1.0], [2.0]], [1e-5, 1e-6, 1e-7])
    assert target != EpsilonDelta(1.0, 1e-5)
    assert not target.delta.flags.writeable
    assert Advantage(1).eta == 1.0


def test_what_everything_meets() -> None:
    everything = [EpsilonDelta(math.inf, 0.0), EpsilonDelta(0.0, 1.0), Gamma(0.5, 1.0)]
    everything += [TradeOff(0.5, 0.0), Advantage(1.0), GaussianDP(1e-9, 1.0)]
    for target in everything:
        assert target.is_met(pe.dp_sgd(1e-9, 1.0, 10**9))


def test_nothing_released_meets_everything() -> None:
    nothing = pe.compose()
    for target in (
        EpsilonDelta(0.0, 0.0),
        Gamma(0.2, 0.2),
        Advantage(0.0),
        GaussianDP(0.0),
        GaussianDP(1.0),
    ):
        assert target.is_met(nothing)
        assert not target.is_met(pe.dp_sgd(0.5, 1.0, 100))
    assert GaussianDP(1.0).achieved(nothing).mu == 0.0
    assert GaussianDP(1.0, 1e-9).achieved(nothing).mu == 0.0


def test_adjacency_and_method_reach_the_engine() -> None:
    add, remove = (
        EpsilonDelta(1.0, 1.0, adjacency=a).achieved(MECHANISM) for a in ("add", "remove")
    )
    assert add.delta < remove.delta
    with pytest.raises(ValueError, match="closed_form"):
        EpsilonDelta(1.0, 1e-6, method="closed_form").is_met(MECHANISM)


def test_gaussian_dp_of_other_mechanisms_asks_for_slack() -> None:
    mixed = MECHANISM + pe.LaplaceMechanism(10.0)
    with pytest.raises((ValueError, pe.AccuracyError)):
        GaussianDP(1.0).is_met(mixed)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EpsilonDelta(-1.0, 1e-6), r"epsilon must lie in \[0, inf\], got -1.0"),
        (lambda: EpsilonDelta(1.0, 1.5), r"delta must lie in \[0, 1\], got 1.5"),
        (lambda: EpsilonDelta("1", 0.5), "epsilon must hold real numbers"),
        (lambda: EpsilonDelta(1.0, math.nan), r"delta must lie in \[0, 1\]"),
        (lambda: Gamma(1.1, 0.5), r"kappa must lie in \[0, 1\], got 1.1"),
        (lambda: TradeOff(0.5, [0.5, 2.0]), r"beta must lie in \[0, 1\], got 2.0"),
        (lambda: Advantage(None), "eta must hold real numbers"),
        (lambda: GaussianDP(-1.0), "mu must lie in"),
        (lambda: GaussianDP(1.0, -1e-9), r"slack must lie in \[0, 1\]"),
        (lambda: EpsilonDelta([1.0, 2.0], [1e-6] * 3), "must broadcast together"),
        (lambda: Advantage(0.1, adjacency="both"), "adjacency must be one of"),
        (lambda: Advantage(0.1, method="magic"), "method must be one of"),
        (lambda: Advantage(0.1, threat_model="none"), "threat_model must be one of"),
        (lambda: Advantage(0.1, tolerance=-1.0), "tolerance must be positive"),
    ],
)
def test_bad_input(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("kinds", [1, 2, 16, 17, 40])
def test_mu_of_gaussian_steps_is_rounded_up_once(kinds: int) -> None:
    """25 releases of noise 5 are 1-GDP; sums of many kinds may be a few units above the root."""
    five = pe.GaussianMechanism(5.0).composed(25)
    assert GaussianDP(1.0, bounds=True).achieved(five) == GaussianDP(1.0, bounds=True)
    assert GaussianDP(1.0, bounds=True).is_met(five)
    random_ = random.Random(kinds)
    for _ in range(50):
        noises = [math.exp(random_.uniform(-3, 3)) for _ in range(kinds)]
        counts = [random_.randint(1, 1000) for _ in range(kinds)]
        run = pe.compose(
            *(pe.GaussianMechanism(s).composed(n) for s, n in zip(noises, counts, strict=True))
        )
        found = Fraction(GaussianDP(1.0).achieved(run).mu)
        square = sum(Fraction(n) / Fraction(s) ** 2 for s, n in zip(noises, counts, strict=True))
        assert found**2 >= square
        below = math.nextafter(found, 0.0) if kinds <= 16 else float(found) * (1 - 1e-14)
        assert Fraction(below) ** 2 < square
    for extreme in (1e-300, 1e300):
        assert GaussianDP(1.0).achieved(pe.GaussianMechanism(extreme)).mu == pytest.approx(
            1 / extreme, rel=1e-15
        )


@pytest.mark.parametrize("slack", [0.03, 0.05, 0.07, 0.09])
def test_a_slack_is_one_of_the_adjacency_that_is_asked(slack: float) -> None:
    # total variation distances of this step: .040 without a record, .080 with another in its place
    step = pe.GaussianMechanism(10.0)
    for adjacency, distance in (("add_remove", 0.1), ("substitute", 0.2)):
        at_zero = pe.delta(step, 0.0, adjacency=adjacency)
        fit = pe.gaussian_fit(step, slack, adjacency=adjacency)
        assert (fit.mu == 0.0) == (at_zero <= slack)
        achieved = GaussianDP(0.1, slack, adjacency=adjacency).achieved(step)
        assert achieved.is_met(step)
        if fit.mu > 0.0:
            check_near("calibration.mu_of_a_gaussian_step", fit.mu, distance)


def test_what_leaks_at_least_meets_no_target() -> None:
    least = pe.shuffled_lower_bound(2.0, 10)
    beside = pe.dp_sgd(1.0, 0.01, 10) + least
    target = EpsilonDelta(1.0, 1e-5)
    asked = [
        lambda: target.is_met(least),
        lambda: target.excess(beside),
        lambda: target.achieved(pe.adaptive([pe.GaussianMechanism(9.0), least], 2)),
        lambda: pe.calibrate(lambda noise: pe.shuffled_lower_bound(noise, 10), target),
        lambda: pe.calibrate(lambda noise: pe.dp_sgd(noise, 0.01, 10) + least, target),
        lambda: pe.calibrate(lambda n: least.composed(n), target, integer=True, maximize=True),
        lambda: pe.gaussian_fit(least, 1e-6),
        lambda: pe.gaussian_fit(beside, 0.5),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match="the least that leaks, and no guarantee"):
            ask()
