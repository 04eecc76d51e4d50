"""The ground truth of weak adversaries against closed forms of its own."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import pytest

import pyengine as pe
from pyengine import reference
from pyengine.reference.membership import log_one_step_trade_off
from pyengine.reference.relaxed import log_trade_off


@pytest.mark.parametrize("alpha", ["0.93"])
def test_gaussian_in_one_dimension(alpha: str) -> None:
    """Corollary 1; decimal strings are exact."""
    with mp.workdps(60):
        mu, level = 1 / mp.mpf("0.7"), mp.mpf(alpha)
        z = -mp.sqrt(2) * mp.erfinv(level - 1)
        expected = mp.log(mp.ncdf(z - mu) - mp.ncdf(-z - mu))
        found = log_trade_off(pe.GaussianMechanism("0.7"), alpha, adjacency="add", digits=32)
        assert abs(found / expected - 1) < mp.mpf(10) ** -31


@pytest.mark.parametrize("alpha", ["1e-9", "0.2", "0.93"])
def test_laplace_is_theorem_1(alpha: str) -> None:
    with mp.workdps(60):
        mu, level = 1 / mp.mpf("0.7"), mp.mpf(alpha)
        forward = (
            mp.exp(-mu) * (1 / level - level) / 2
            if level >= mp.exp(-mu)
            else 1 - level * mp.cosh(mu)
        )
        backward = (
            -mp.asinh(level * mp.exp(mu))
            if level < (1 - mp.exp(-2 * mu)) / 2
            else mp.log((1 - level) / mp.cosh(mu))
        )
        mechanism = pe.LaplaceMechanism("0.7")
        for adjacency, expected in (("add", mp.log(forward)), ("remove", backward)):
            found = log_trade_off(mechanism, alpha, adjacency=adjacency, digits=40)
            assert abs(found / expected - 1) < mp.mpf(10) ** -39


def test_inverse_of_a_sampled_mechanism() -> None:
    """Lemma 9 and its inverse undo each other in 10^6 dimensions."""
    mechanism = pe.GaussianMechanism("0.05").poisson_sampled("0.3")
    words: dict[str, Any] = {"dimension": 10**6, "digits": 30}
    with mp.workdps(40):
        beta = mp.exp(log_trade_off(mechanism, "0.25", adjacency="add", **words))
        text = mp.nstr(beta, 32)
        back = mp.exp(log_trade_off(mechanism, text, adjacency="remove", **words))
        assert abs(back - mp.mpf("0.25")) < mp.mpf(10) ** -28


def test_one_step_without_susceptibility_is_central() -> None:
    """K = 0 in two dimensions: both laws are exponential."""
    step: dict[str, Any] = {"batch_size": 12, "parameters": 2, "susceptibility": 0}
    with mp.workdps(50):
        expected = mp.mpf(12) / 11 * mp.log(1 - mp.mpf("0.3"))
        found = log_one_step_trade_off("0.3", **step, digits=35)
        assert abs(found / expected - 1) < mp.mpf(10) ** -34


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_trade_off(pe.GaussianMechanism(1), 0, adjacency="add"), "alpha must lie"),
        (lambda: log_trade_off(pe.GaussianMechanism(1), 0.1, adjacency="both"), "adjacency must"),
        (lambda: log_trade_off(pe.compose(), 0.1, adjacency="add"), "mechanism must be"),
        (
            lambda: log_trade_off(pe.RandomizedResponse(0.7), 0.1, adjacency="add"),
            "mechanism must be",
        ),
        (
            lambda: log_one_step_trade_off(1.5, batch_size=5, parameters=2, susceptibility=1),
            "alpha must lie",
        ),
        (
            lambda: log_one_step_trade_off(0.5, batch_size=1, parameters=2, susceptibility=1),
            "must exceed 1",
        ),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


QUICK: dict[str, Any] = {"digits": 15}


ORDERS = ("add", "remove", "add_remove")


@pytest.mark.parametrize(
    ("mechanism", "dimension", "adjacencies"),
    [
        (pe.LaplaceMechanism("1"), 1, ORDERS),
        (pe.LaplaceMechanism("0.5").poisson_sampled("0.3"), 1, ORDERS),
        (pe.GaussianMechanism("1"), 30, ("remove",)),
        (pe.GaussianMechanism("0.7").composed(2), 10**6, ("add",)),
    ],
    ids=["laplace", "sampled laplace", "gaussian", "many dimensions"],
)
def test_all_questions(
    mechanism: pe.Mechanism, dimension: int, adjacencies: tuple[str, ...]
) -> None:
    """The four questions of pyengine.reference against the engines, and the hull."""
    model = pe.threat_models.Relaxed(dimension)
    for adjacency in adjacencies:
        words: dict[str, Any] = {"adjacency": adjacency, "threat_model": model}
        true_delta = pe.reference.delta(mechanism, "0.001", **words, **QUICK)
        asked = (
            ("trade_off", 0.45, 1e-13),
            ("gamma_bound", 0.02, 1e-13),
            ("delta", 0.001, 1e-13 + 1e-15 / float(true_delta)),
            ("epsilon", 0.5 * float(true_delta), 1e-12 + 1e-14 / float(true_delta)),
        )
        for name, argument, error in asked:
            truth = getattr(pe.reference, name)(mechanism, argument, **words, **QUICK)
            found = getattr(pe, name)(mechanism, argument, **words)
            assert not truth.certified
            assert found == pytest.approx(float(truth), rel=error), name


def test_weights_and_nothing() -> None:
    mixed = pe.compose(pe.GaussianMechanism("1"), pe.GaussianMechanism("2"))
    for combination in ("weighted", "mean"):
        model = pe.threat_models.Relaxed(3, combination)
        words: dict[str, Any] = {"adjacency": "add", "threat_model": model}
        truth = pe.reference.trade_off(mixed, "0.25", **words, **QUICK)
        assert pe.trade_off(mixed, 0.25, **words) == pytest.approx(float(truth), 1e-13)
    assert pe.reference.trade_off(pe.compose(), "0.25", threat_model="relaxed") == 0.75
    laplace = pe.reference.epsilon(pe.LaplaceMechanism("0.5"), 0, threat_model="relaxed", **QUICK)
    assert float(laplace) == pytest.approx(2.0, rel=1e-14)


@pytest.mark.parametrize("adjacency", ["add", "remove"])
@pytest.mark.parametrize(("noise", "epsilon"), [(819.82, 3.6e-9), (544.39, 4.49e-5), (1.1, 0.1)])
def test_bounds_of_small_profiles_enclose_the_truth(
    noise: float, epsilon: float, adjacency: str
) -> None:
    """Small effects, where roundings of ε and of the effect count."""
    words: dict[str, Any] = {"adjacency": adjacency, "threat_model": "relaxed"}
    for mechanism in (
        pe.LaplaceMechanism(noise),
        pe.LaplaceMechanism(noise).poisson_sampled(0.3),
        pe.GaussianMechanism(noise).poisson_sampled(0.3),
    ):
        truth = pe.reference.delta(mechanism, epsilon, **words, digits=18)
        found = pe.delta(mechanism, epsilon, bounds=True, **words)
        assert found.lower <= truth <= found.upper


def test_a_line_whose_aliases_no_tilt_bounds_is_refused_in_words() -> None:
    run = pe.GaussianMechanism(5.197).randomly_allocated(3).composed(3)
    with pytest.raises(pe.AccuracyError, match="would take inf nodes, at most 60,000 are feasible"):
        reference.gamma_bound(run, 2.8497147393258736e-11, adjacency="add")


def test_digits_of_one_step_are_those_asked_for() -> None:
    """Two runs once missed the quantile by the same, which the tail made a thousand times more."""
    step: dict[str, Any] = {"parameters": 650, "batch_size": 500, "susceptibility": 650}
    found, finer = (log_one_step_trade_off(1e-300, **step, digits=x) for x in (30, 45))
    with mp.workdps(50):
        assert abs(found / finer - 1) < mp.mpf(10) ** -30
