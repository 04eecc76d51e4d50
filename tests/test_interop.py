"""Other libraries' objects, profiles and sampled trade-off functions.

The libraries are not needed here: their classes are told by name and module, so stand-ins with the
same fields serve; tests/test_interop_peers.py asks the real ones where they are installed.
"""

from __future__ import annotations

import math
import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from error_budget import check_near
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import ALL

import pyengine as pe
from pyengine.interop import (
    find_noise_multiplier_for_advantage,
    find_noise_multiplier_for_err_rates,
    from_dp_event,
    from_history,
    from_prvs,
    get_advantage_for_dpsgd,
    get_beta_for_dpsgd,
    recognise,
    to_history,
)

RUN = pe.dp_sgd(0.8, 0.001, 10_000)
SYMMETRIC = pe.GaussianMechanism(1.5)


def stand_in(module: str, base: str, name: str, **fields: Any) -> Any:
    """Object of a class that looks like that of another library."""
    parent = type(base, (), {"__module__": module})
    return type(name, (parent,), {"__module__": module, **fields})()


def event(name: str, **fields: Any) -> Any:
    return stand_in("dp_accounting.dp_event", "DpEvent", f"{name}DpEvent", **fields)


GAUSSIAN = event("Gaussian", noise_multiplier=2.0)
LAPLACE = event("Laplace", noise_multiplier=2.0)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (GAUSSIAN, pe.GaussianMechanism(2.0)),
        (LAPLACE, pe.LaplaceMechanism(2.0)),
        (event("NoOp"), pe.compose()),
        (event("NonPrivate"), pe.GenericMechanism(0, 1)),
        (event("Gaussian", noise_multiplier=0.0), pe.GenericMechanism(0, 1)),
        (event("SelfComposed", event=GAUSSIAN, count=5), pe.GaussianMechanism(2.0).composed(5)),
        (
            event("Composed", events=[GAUSSIAN, LAPLACE, GAUSSIAN]),
            pe.compose(pe.GaussianMechanism(2.0).composed(2), pe.LaplaceMechanism(2.0)),
        ),
        (
            event(
                "SelfComposed",
                event=event("PoissonSampled", sampling_probability=0.01, event=GAUSSIAN),
                count=1000,
            ),
            pe.dp_sgd(2.0, 0.01, 1000),
        ),
        (
            event(
                "PoissonSampled",
                sampling_probability=0.5,
                event=event("PoissonSampled", sampling_probability=0.25, event=LAPLACE),
            ),
            pe.LaplaceMechanism(2.0).poisson_sampled("1/8"),
        ),
        (
            # four equal queries on one sample: as one of noise 2 / sqrt(4)
            event(
                "PoissonSampled",
                sampling_probability=0.5,
                event=event("SelfComposed", event=GAUSSIAN, count=4),
            ),
            pe.GaussianReleases([2.0], [4]).poisson_sampled(0.5),
        ),
        (
            event(
                "PoissonSampled",
                sampling_probability=0.5,
                event=event("Composed", events=[GAUSSIAN, LAPLACE]),
            ),
            (pe.GaussianMechanism(2.0) + pe.LaplaceMechanism(2.0)).poisson_sampled(0.5),
        ),
        (
            event("PoissonSampled", sampling_probability=0.5, event=event("NoOp")),
            pe.compose(),
        ),
        (
            event(
                "SampledWithoutReplacement",
                source_dataset_size=100,
                sample_size=10,
                event=GAUSSIAN,
            ),
            pe.GaussianMechanism(2.0).sampled_without_replacement(batch_size=10, dataset_size=100),
        ),
        (
            event("DiscreteLaplace", noise_parameter=0.25, sensitivity=2),
            pe.DiscreteLaplaceMechanism("2", 2),
        ),
        (
            event("RandomizedResponse", noise_parameter=0.5, num_buckets=4),
            pe.RandomizedResponse("5/8", 4),
        ),
        (event("RandomizedResponse", noise_parameter=0.5, num_buckets=1), pe.compose()),
        (event("EpsilonDelta", epsilon=0.5, delta=1e-6), pe.GenericMechanism(0.5, 1e-6)),
        (event("ZC", rho=0.5, xi=0.25), pe.ZeroConcentrated(0.5, 0.25)),
        (event("ExponentialMechanism", epsilon=0.5), pe.ExponentialMechanism(0.5)),
        (event("PermuteAndFlip", epsilon=0.5), pe.permute_and_flip(0.5)),
        (
            event("DiscreteGaussian", sigma=6.0, sensitivity=3.5, dimension=1),
            pe.DiscreteGaussianMechanism(2, 3),  # an integer moves by an integer
        ),
        (event("DiscreteGaussian", sigma=6.0, sensitivity=0.5, dimension=1), pe.compose()),
        (
            event("DiscreteGaussian", sigma=2.0, sensitivity=1.5, dimension=None),
            pe.ZeroConcentrated("9/32"),
        ),
        (
            event("RepeatAndSelect", event=LAPLACE, mean=4.0, shape=math.inf),
            pe.repeat_and_select(pe.LaplaceMechanism(2.0), "poisson", mean=4.0),
        ),
        (
            event("RepeatAndSelect", event=LAPLACE, mean=4.0, shape=1.0),
            pe.repeat_and_select(pe.LaplaceMechanism(2.0), "geometric", stopping=0.25),
        ),
        (
            event("RepeatAndSelect", event=LAPLACE, mean=1.0, shape=0.0),
            pe.LaplaceMechanism(2.0),
        ),
        (
            event("RandomAllocation", event=GAUSSIAN, num_selected=2, num_steps=9),
            pe.GaussianMechanism(2.0).randomly_allocated(9, 2),
        ),
        (
            event("RandomAllocation", event=GAUSSIAN, num_selected=9, num_steps=9),
            pe.GaussianMechanism(2.0).composed(9),
        ),
        (
            event("SampledWithReplacement", source_dataset_size=3, sample_size=2, event=GAUSSIAN),
            pe.GaussianMixtureMechanism(2.0, [0, 2, 4], ["4/9", "4/9", "1/9"]).composed(1),
        ),
        (
            event(
                "SampledWithReplacement",
                source_dataset_size=3,
                sample_size=2,
                event=event("NonPrivate"),
            ),
            pe.GenericMechanism(0, 1).poisson_sampled("5/9"),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_events(tree: Any, expected: pe.Mechanism) -> None:
    assert from_dp_event(tree) == expected
    assert recognise(tree, "add_remove") == expected


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (event("Unsupported"), "got UnsupportedDpEvent"),
        (
            event("Composed", events=[GAUSSIAN, event("New")]),
            "got NewDpEvent",
        ),
        (
            event("SampledWithReplacement", source_dataset_size=9, sample_size=3, event=LAPLACE),
            "only Gaussian noise on a sample with replacement",
        ),
        (
            event(
                "SampledWithoutReplacement",
                source_dataset_size=9,
                sample_size=3,
                event=event("PoissonSampled", sampling_probability=0.5, event=GAUSSIAN),
            ),
            "a sample of PoissonSampledDpEvent",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_events_without_counterpart(tree: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_dp_event(tree)
    with pytest.raises(ValueError, match=message):
        pe.delta(tree, 1.0)


def test_histories() -> None:
    history = [(2.0, 0.01, 100), (1.0, 0.01, 900), (3.0, 1.0, 1)]
    mechanism = from_history(history)
    assert mechanism == (
        pe.dp_sgd(2.0, 0.01, 100) + pe.dp_sgd(1.0, 0.01, 900) + pe.GaussianMechanism(3.0)
    )
    assert sorted(to_history(mechanism)) == sorted(history)
    assert pe.epsilon(history, 1e-5) == pe.epsilon(mechanism, 1e-5)
    for library, base in (
        ("opacus", "IAccountant"),
        ("riskcal", "CTDAccountant"),
        ("gdpnum", "CTDAccountant"),
    ):
        accountant = stand_in(f"{library}.accountants", base, "RDPAccountant", history=history)
        assert recognise(accountant, "add") == mechanism
    with pytest.raises(ValueError, match="Gaussian steps, got LaplaceMechanism"):
        to_history(pe.LaplaceMechanism(1.0))
    with pytest.raises(ValueError, match="sampling_probability must lie in"):
        pe.epsilon([(1.0, 2.0, 3)], 1e-5)


def prv(name: str, **fields: Any) -> Any:
    module = "prv_accountant.privacy_random_variables"
    return stand_in(module, "PrivacyRandomVariable", name, **fields)


def test_privacy_random_variables() -> None:
    sampled = prv(
        "PoissonSubsampledGaussianMechanism", p=np.longdouble(0.01), sigma=np.longdouble(2.0)
    )
    laplace = prv("LaplaceMechanism", mu=0.5)
    approximate = prv("ApproximateDPMechanism", delta=1e-6, pure_dp=SimpleNamespace(eps=1.0))
    assert from_prvs(sampled, 1000) == pe.dp_sgd(2.0, 0.01, 1000)
    assert from_prvs([sampled, laplace], [3, 2]) == pe.compose(
        pe.dp_sgd(2.0, 0.01, 3), pe.LaplaceMechanism("2").composed(2)
    )
    assert recognise(prv("GaussianMechanism", mu=0.25), "add") == pe.GaussianMechanism("4")
    assert recognise(prv("PureDPMechanism", eps=1.0), "add") == pe.GenericMechanism(1.0)
    assert recognise(approximate, "add") == pe.GenericMechanism(1.0, 1e-6)
    assert pe.delta(sampled, 0.1) == pe.delta(pe.dp_sgd(2.0, 0.01, 1), 0.1)
    with pytest.raises(ValueError, match="exact counterpart, got Truncated"):
        recognise(prv("Truncated"), "add")
    with pytest.raises(ValueError, match="as many entries as prvs, 2, got 1"):
        from_prvs([sampled, laplace], 3)


def test_riskcal_calls() -> None:
    alpha = np.array([[1e-5, 0.1], [0.5, 0.9]])
    beta = get_beta_for_dpsgd(
        noise_multiplier=0.8, sample_rate=0.001, num_steps=10_000, alpha=alpha
    )
    np.testing.assert_array_equal(beta, pe.trade_off(RUN, alpha))
    assert get_beta_for_dpsgd(0.8, 0.001, 10_000, 0.1) == beta[0, 1]
    assert get_advantage_for_dpsgd(0.8, 0.001, 10_000) == pe.delta(RUN, 0.0)


def test_riskcal_calibration() -> None:
    noise = find_noise_multiplier_for_advantage(0.1, sample_rate=0.01, num_steps=1000)
    assert pe.delta(pe.dp_sgd(noise, 0.01, 1000), 0.0) <= 0.1
    assert pe.delta(pe.dp_sgd(noise * (1 - 1e-9), 0.01, 1000), 0.0) > 0.1
    noise = find_noise_multiplier_for_err_rates(0.01, 0.9, sample_rate=0.01, num_steps=1000)
    assert pe.trade_off(pe.dp_sgd(noise, 0.01, 1000), 0.01) >= 0.9
    assert pe.trade_off(pe.dp_sgd(noise * (1 - 1e-9), 0.01, 1000), 0.01) < 0.9


def test_nothing_is_imported() -> None:
    pe.delta(event("Composed", events=[GAUSSIAN, GAUSSIAN]), 1.0)
    pe.gamma_bound([(1.0, 0.01, 100)], 0.1)
    assert not {"dp_accounting", "opacus", "prv_accountant", "riskcal", "torch"} & set(sys.modules)


# Profiles


def scalars_only(epsilon: float) -> float:
    if not isinstance(epsilon, float):
        raise TypeError("one at a time")
    return float(pe.delta(SYMMETRIC, epsilon))


@pytest.mark.parametrize("profile", [lambda e: pe.delta(SYMMETRIC, e), scalars_only])
def test_exact_profile_of_a_symmetric_pair(profile: Any) -> None:
    """Conjugates of an exact profile are exact: the minimisation loses nothing that is seen."""
    for kappa in (0.0, 1e-300, 1e-9, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-9, 1.0):
        bounds = pe.gamma_bound(profile, kappa, bounds="estimated")
        truth = pe.gamma_bound(SYMMETRIC, kappa)
        assert bounds.lower == kappa
        assert bounds.value == bounds.upper
        if kappa > 1e-200:
            assert bounds.value == pytest.approx(truth, rel=1e-11)
        assert bounds.value >= truth * (1 - 1e-12)
        beta = pe.trade_off(profile, kappa, bounds="estimated")
        assert beta.lower == beta.value <= pe.trade_off(SYMMETRIC, kappa) + 1e-15
    for delta in (1e-12, 1e-3, 0.3, 0.9):
        found = pe.epsilon(profile, delta)
        assert found == pytest.approx(pe.epsilon(SYMMETRIC, delta), rel=1e-11, abs=1e-15)
        assert pe.delta(profile, found) <= delta
    assert pe.delta(profile, 1.0) == pe.delta(SYMMETRIC, 1.0)
    assert pe.delta(profile, math.inf) == 0.0


def test_one_guarantee() -> None:
    """(ε, δ)-DP alone: min of the two lines of Dong, Roth and Su, equation 5."""
    epsilon, delta = 1.0, 0.01
    kappa = np.array([1e-3, 0.1, 0.5, 0.9])
    found = pe.gamma_bound(lambda e: delta if e >= epsilon else 1.0, kappa)
    lines = np.minimum(
        math.e**epsilon * kappa + delta, 1 - math.exp(-epsilon) * (1 - kappa - delta)
    )
    assert np.all(found >= lines - 1e-15)
    check_near("searches.one_guarantee", found, lines)
    assert pe.epsilon(lambda e: delta if e >= epsilon else 1.0, 0.02) == pytest.approx(1.0)
    assert pe.epsilon(lambda e: 0.5 + 0.0 * e, 0.02) == math.inf


@settings(max_examples=25 if ALL else 8, deadline=None)
@given(
    st.floats(0.5, 5.0),
    st.floats(1e-2, 1.0),
    st.integers(10, 100),
    st.floats(1e-9, 0.999),
    st.sampled_from(["add", "remove", "add_remove"]),
)
def test_profiles_bound_every_order(
    noise: float, p: float, steps: int, kappa: float, adjacency: str
) -> None:
    run = pe.dp_sgd(noise, p, steps)
    bound = pe.gamma_bound(lambda e: pe.delta(run, e), kappa, adjacency=adjacency)
    assert bound >= pe.gamma_bound(run, kappa, adjacency=adjacency) * (1 - 1e-10)
    assert bound <= 1.0


@pytest.mark.parametrize("wrong", [1.5, -0.1, math.nan])
def test_no_profile(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"a privacy profile must lie in \[0, 1\], got"):
        pe.gamma_bound(lambda e: wrong + 0.0 * e, 0.1)


def test_what_is_no_mechanism_is_told_in_words() -> None:
    run = pe.dp_sgd(1.0, 0.1, 3)
    with pytest.raises(ValueError, match=r"got a list of them; .* compose\(\*mechanisms\)"):
        pe.compose([run, run])
    with pytest.raises(ValueError, match=r"taken for a privacy profile δ\(ε\) and refused ε = 0:"):
        pe.epsilon(pe.dp_sgd, 1e-5)
    with pytest.raises(ValueError, match="fixed steps here, got a run that adapts"):
        pe.report.privacy_report(pe.adaptive([pe.GaussianMechanism(3.0)], 4), delta=1e-5)


def test_own_words_only() -> None:
    with pytest.raises(ValueError, match="method must be 'auto'"):
        pe.gamma_bound(lambda e: 0.0 * e, 0.1, method="spectral")


# Samples


def samples(mechanism: pe.Mechanism, alpha: Any, adjacency: str = "add") -> np.ndarray:
    return np.column_stack([alpha, pe.trade_off(mechanism, alpha, adjacency=adjacency)])


ALPHA = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 60)])


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_samples_bound_everything_between(adjacency: str) -> None:
    points = samples(RUN, ALPHA)
    inside = np.concatenate([np.geomspace(1e-8, 0.999, 101), ALPHA])
    for function, argument in (
        (pe.gamma_bound, inside),
        (pe.trade_off, inside),
        (pe.delta, np.linspace(0.0, 2.0, 21)),
        (pe.epsilon, np.geomspace(1e-6, 0.5, 21)),
    ):
        lower, value, upper = function(points, argument, adjacency=adjacency, bounds="estimated")
        truth = function(RUN, argument, adjacency=adjacency)
        assert np.all(lower <= truth + 1e-13)
        assert np.all(truth <= upper + 1e-13)
        assert np.all(value == (lower if function is pe.trade_off else upper))


def test_samples_answer_themselves() -> None:
    points = samples(RUN, ALPHA)
    np.testing.assert_allclose(pe.trade_off(points, ALPHA, adjacency="add"), points[:, 1], 1e-13)
    shuffled = np.random.default_rng(3).permutation(points[:-1])  # (1, 0) belongs to them
    np.testing.assert_array_equal(
        pe.gamma_bound(shuffled, 0.123), pe.gamma_bound(points.tolist(), 0.123)
    )


def test_samples_converge() -> None:
    """Twice as many samples bring the bounds four times as near."""
    widths = []
    for count in (50, 100, 200):
        points = samples(SYMMETRIC, np.linspace(0.0, 1.0, count + 1))
        lower, _, upper = pe.gamma_bound(points, np.linspace(0.2, 0.8, 1001), bounds="estimated")
        widths.append(float(np.max(upper - lower)))
    assert widths[0] / widths[1] > 3
    assert widths[1] / widths[2] > 3


def test_pure_guarantee_from_samples() -> None:
    """Straight lines are exact: randomized response has a corner only."""
    t = 0.75
    points = np.array([[0.0, 1.0], [1 - t, 1 - t], [1.0, 0.0]])
    truth = pe.RandomizedResponse(t)
    for adjacency in ("add", "remove", "add_remove"):
        for kappa in (0.1, 0.25, 0.6):
            bounds = pe.gamma_bound(points, kappa, adjacency=adjacency, bounds="estimated")
            assert bounds.lower == pytest.approx(min(3 * kappa, (2 + kappa) / 3))
            assert bounds.lower <= bounds.upper
    assert pe.epsilon(points, 1e-9, bounds="estimated").lower <= math.log(3)
    assert pe.gamma_bound(truth, 0.1) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0.1, 0.95], [0.5, 0.4]], r"β <= 1 - α, got 0\.95 at 0\.1"),
        ([[0.1, 0.5], [0.1, 0.4]], "distinct α"),
        ([[0.0, 0.5], [0.3, 0.45], [0.5, 0.1]], r"convex, .* turn down at α = 0\.3"),
        ([[0.1, 0.5], [0.3, 2.0]], r"must lie in \[0, 1\]"),
        ([[0.1, 0.5]], r"shape \(n, 2\), n >= 2"),
        ([[0.1, 0.5, 0.2, 0.1]], "rows of 4 numbers"),
        ([1.0, 2.0], "rows of 1 numbers"),
    ],
)
def test_no_trade_off_function(points: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.gamma_bound(points, 0.1)


def test_no_substitution_from_samples() -> None:
    with pytest.raises(ValueError, match="for samples, got 'substitute'"):
        pe.gamma_bound(samples(RUN, ALPHA), 0.1, adjacency="substitute")


@pytest.mark.parametrize("thing", [1.0, None, "gaussian", pe.GaussianMechanism, {}, []])
def test_nothing_known(thing: Any) -> None:
    with pytest.raises(ValueError, match="mechanism must be a Mechanism or describe one"):
        pe.gamma_bound(thing, 0.1)


NAMED = [
    {"noise_multiplier": 2.0, "sample_rate": 0.01, "num_steps": 100},
    {"steps": 900, "noise_multiplier": 1.0, "sampling_probability": 0.01},
]
ROWS = [(2.0, 0.01, 100), (1.0, 0.01, 900)]


@pytest.mark.parametrize(
    "history",
    [np.array(ROWS), tuple(ROWS), NAMED, {"history": ROWS, "mechanism": "rdp"}, {"history": NAMED}],
    ids=["array", "tuple", "named", "state", "named state"],
)
def test_a_history_in_other_clothes(history: Any) -> None:
    run = from_history(ROWS)
    assert from_history(history) == pe.compose(history) == run
    assert pe.epsilon(history, 1e-5) == pe.epsilon(run, 1e-5)


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ({}, "history must be a list, or a mapping that holds one, got nothing"),
        ({"steps": 3}, "history must be a list, or a mapping that holds one, got steps"),
        ({"history": None}, "history must be a sequence, got None"),
        ([{"noise_multiplier": 1.0}], "must hold entries with noise_multiplier, sample_rate, num_"),
        ([{**NAMED[0], "clip": 1.0}], "must hold entries with noise_multiplier, sample_rate, num_"),
        ([{**NAMED[0], "num_steps": 1.5}], "steps must be a non-negative integer, got 1.5"),
        (np.ones((2, 4)), "of a history, got ndarray with rows of 4 numbers"),
        ((1.0, 0.01, 1000), "of a history, got tuple with rows of 1 numbers"),
    ],
)
def test_what_is_no_history(history: Any, message: str) -> None:
    ask = from_history if isinstance(history, dict) else lambda thing: pe.epsilon(thing, 1e-5)
    with pytest.raises(ValueError, match=re.escape(message)):
        ask(history)
