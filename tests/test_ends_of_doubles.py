"""Numbers beyond the doubles, signed zeros, tolerances, and the direction of a search."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

import pyengine as pe
from pyengine.calibration.search import Domain, NoiseSearch, Unbounded
from pyengine.cli.main import main

SGD = pe.dp_sgd(1.0, 0.01, 100)


@pytest.mark.parametrize(
    "mechanism",
    [
        SGD,
        pe.GaussianMechanism(1.0),
        pe.dp_sgd(1.0, 0.1, 1),
        pe.LaplaceMechanism(1.0),
        pe.compose(),
    ],
    ids=str,
)
def test_no_negative_zero(mechanism: pe.Mechanism) -> None:
    for question in (pe.gamma_bound, pe.trade_off, pe.delta, pe.epsilon):
        for x in (-0.0, np.array([-0.0, 0.5])):
            answer = np.atleast_1d(question(mechanism, x, bounds=True))
            assert not np.signbit(np.asarray(answer)).any()


def test_what_is_below_all_doubles_is_zero() -> None:
    for mechanism in (pe.GaussianMechanism(2.66), SGD):
        assert pe.delta(mechanism, 400.0) == 0.0
        assert pe.delta(mechanism, math.inf) == 0.0
    for mechanism in (pe.GaussianMechanism(2.66), SGD):

        def profile(epsilon: float, mechanism: pe.Mechanism = mechanism) -> float:
            return float(pe.delta(mechanism, epsilon))

        gamma = pe.duality.gamma_from_profile(profile, 0.01, symmetric=True)
        assert gamma.lower <= pe.gamma_bound(mechanism, 0.01, adjacency="add_remove") <= gamma.upper
        beta = pe.duality.trade_off_from_profile(profile, 0.01, symmetric=True)
        assert beta.lower <= pe.trade_off(mechanism, 0.01) <= beta.upper


@pytest.mark.parametrize("adjacency", ["add", "add_remove"])
def test_what_both_laws_have_may_be_below_all_doubles(
    adjacency: Literal["add", "add_remove"],
) -> None:
    """β(0) was 0 and γ(0) 1 to all digits: only of laws without a common outcome they are."""
    rest = Fraction(1, 10**340)
    nearly = pe.from_probabilities([1, 0], [rest, 1 - rest])
    half = pe.from_probabilities([1, 0], [Fraction(1, 10**170), 1 - Fraction(1, 10**170)])
    for run, truth in (
        (nearly, rest),
        (nearly.composed(2), rest**2),
        (half.composed(2), rest),
        (pe.GenericMechanism(0, 1 - rest), rest),
    ):
        beta, gamma = (
            ask(run, 0.0, adjacency=adjacency, bounds=True)
            for ask in (pe.trade_off, pe.gamma_bound)
        )
        assert Fraction(beta.lower) <= truth <= Fraction(beta.upper) < Fraction(1, 10**300)
        assert Fraction(gamma.lower) <= 1 - truth <= Fraction(gamma.upper)
    apart = pe.from_probabilities([1, 0], [0, 1])
    for run in (apart, apart + half, pe.GenericMechanism(1, 1)):
        assert pe.trade_off(run, 0.0, adjacency=adjacency, bounds=True) == (0.0, 0.0, 0.0)
        assert pe.gamma_bound(run, 0.0, adjacency=adjacency, bounds=True) == (1.0, 1.0, 1.0)


def test_tolerance_decides_what_is_refused() -> None:
    mechanism = pe.dp_sgd(0.5, 1e-7, 10**8)
    value = pe.epsilon(mechanism, 1e-5, tolerance=1e-6)
    assert 0.0197 < value < 0.0199
    tolerance = 1e-15
    for _ in range(4):  # an answer takes a few values: both orders, and that at epsilon = 0
        try:
            assert pe.epsilon(mechanism, 1e-5, tolerance=tolerance) == value
            break
        except pe.AccuracyError as refused:
            advice = float(str(refused).split("tolerance=")[1].split()[0])
            assert advice > tolerance
            tolerance = advice
    else:
        pytest.fail("no advice was true")


def test_calibration_finds_its_direction() -> None:
    target = pe.targets.GaussianDP(0.8111, slack=9.244e-05)
    found = pe.calibrate(lambda s: pe.dp_sgd(s, 0.04292, 1), target)
    assert float(found) == pytest.approx(0.5608731368, rel=1e-9)
    excesses = [target.excess(pe.dp_sgd(s, 0.04292, 1)) for s in np.geomspace(0.3, 30.0, 25)]
    assert np.all(np.diff(excesses) < 0.0)  # one scale, on which noise only helps


def test_a_misleading_slope_does_not_end_a_search() -> None:
    # met from 4 on, but less and less so: the slope at the start points away from the boundary
    search = NoiseSearch(
        lambda x: 1.0 if x < 4.0 else -1.0 / x, lambda _: True, Domain(1e-6, 1e6, False), 1e-9
    )
    found, grows = search.undirected(16.0, monotone=False)
    assert found == pytest.approx(4.0, rel=1e-9)
    assert not grows
    search = NoiseSearch(lambda x: -1.0 / x, lambda _: True, Domain(1e-6, 1e6, False), 1e-9)
    with pytest.raises(Unbounded, match=r"every parameter from .* meets the target"):
        search.undirected(16.0, monotone=False)


CALIBRATE = ["calibrate", "--noise", "0.3", "--p", "0.5", "--vary", "steps"]


@pytest.mark.parametrize(
    "words",
    [
        [*CALIBRATE, "--epsilon", "0.01", "--delta", "1e-9"],
        [
            "calibrate",
            "--p",
            "0.01",
            "--steps",
            "1",
            "--epsilon",
            "0.1",
            "--delta",
            "1.23456788599e-6",
        ],
        [
            "calibrate",
            "--p",
            "0.3",
            "--steps",
            "1",
            "--kappa",
            "0.001",
            "--gamma",
            "0.0123456789012345",
        ],
        ["calibrate", "--p", "0.3", "--steps", "1", "--advantage", "0.0123456789012345"],
    ],
    ids=lambda words: words[-2],
)
def test_what_is_printed_does_not_pass_its_target(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "achieves" in line)
    shown = line.replace(",", "").split("(adjacency")[0].split()[1:]
    asked = dict(itertools.pairwise(words))
    for name, figure in zip(shown[::2], shown[1::2], strict=True):
        option = "--gamma" if name.startswith("gamma(") else f"--{name}"
        assert Fraction(figure) <= Fraction(asked[option])


def test_targets_that_are_no_doubles_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["calibrate", "--p", "0.01", "--steps", "1", "--epsilon", "1", "--delta", "1e-400"]
    assert main(words) == 2
    assert "--delta must be 0 or at least" in capsys.readouterr().err


def test_numbers_that_are_no_doubles_go_to_the_reference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("flint")
    words = ["--noise", "1", "--digits", "10", "--json"]
    assert main(["epsilon", *words, "--delta", "1e-400", "0"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows[0]["engine"] == "reference"
    from mpmath import mp

    with mp.workdps(60):
        x = mp.mpf(rows[0]["value"])
        delta = mp.ncdf(0.5 - x) - mp.exp(x) * mp.ncdf(-0.5 - x)
        assert abs(delta * mp.mpf(10) ** 400 - 1) < 1e-6  # ten digits of epsilon, times its slope
    assert rows[1]["value"] == "inf"
    assert main(["gamma", *words, "--kappa", "1e-400"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert 0 < Fraction(row["lower"]) <= Fraction(row["upper"]) < Fraction(1, 10**380)
    near = "0." + "9" * 40
    assert main(["tradeoff", *words, "--alpha", near]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert 0 < Fraction(row["value"]) < 1 - Fraction(near)
    assert main(["epsilon", *words, "--delta", "1e-400", "--method", "lattice"]) == 1
    assert json.loads(capsys.readouterr().out)["rows"][0]["value"] is None


@pytest.mark.parametrize("noise", [1e-9, 4e-14, 1e-100])
def test_one_step_without_noise_to_speak_of(noise: float) -> None:
    """The rounding of squares as large as these moves no profile that is 1 around them."""
    lower, value, upper = pe.delta(pe.dp_sgd(noise, 1.0, 1), 1.0, bounds=True)
    assert 1.0 - 1e-15 <= lower <= value == upper == 1.0
    step = pe.dp_sgd(noise, "0.25", 1)
    lower, value, upper = pe.delta(step, 1.0, adjacency="remove", bounds=True)
    assert 0.25 - 1e-15 <= lower <= value <= upper <= 0.25 + 1e-15


def test_tolerance_is_honoured_by_exact_sums() -> None:
    """Next to the level from which on β is 0, no digit of it is left, and none is promised."""
    pair = pe.from_probabilities(["3/5", "3/10", "1/10", "0", "0"], ["3/5", "0", "0", "1/5", "1/5"])
    found = pe.trade_off(pair, 0.6, adjacency="remove", bounds=True)
    assert found.lower <= 2.220446049250313e-17 <= found.upper < 1e-14
    for tolerance in (1e-9, 0.5):
        with pytest.raises(pe.AccuracyError, match="method='reference' answers"):
            pe.trade_off(pair, 0.6, adjacency="remove", tolerance=tolerance)
    sure = pe.trade_off(pair, 0.6, adjacency="remove", method="reference", bounds=True)
    assert sure.lower <= 2.220446049250313e-17 <= sure.upper < 2.3e-17
    assert pe.gamma_bound(pair, 0.6, adjacency="remove", tolerance=1e-9) == pytest.approx(1.0)
    step = pe.LaplaceMechanism(2.47048559611895).poisson_sampled("3/500")
    for method in ("auto", "lattice"):
        given = {"adjacency": "substitute", "method": method}
        with pytest.raises(pe.AccuracyError, match="wider than asked"):
            pe.delta(step, 0.004988602747516522, tolerance=1e-4, **given)
        with pytest.raises(pe.AccuracyError) as refused:
            pe.epsilon(step, 1e-5, tolerance=1e-13, **given)
        advice = float(str(refused.value).split("tolerance=")[1].split()[0])
        value = pe.epsilon(step, 1e-5, **given)
        assert pe.epsilon(step, 1e-5, tolerance=advice, **given) == value


def test_profiles_far_beyond_all_losses() -> None:
    step = pe.LaplaceMechanism(2.5).poisson_sampled(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for adjacency in ("add", "remove", "add_remove", "substitute"):
            for method in ("auto", "lattice"):
                given = {"adjacency": adjacency, "method": method}
                assert pe.delta(step, [800.0, 1e5, 1e300], **given).tolist() == [0.0] * 3


ENDS = {
    "sampled Gaussian": pe.dp_sgd(1.0, 0.01, 1),
    "lines": pe.LaplaceMechanism(1.0).poisson_sampled(0.1).composed(5),
    "exponential": pe.ExponentialMechanism(0.1).composed(20),
    "mixed": pe.dp_sgd(1.0, 0.01, 100) + pe.LaplaceMechanism(2.0).composed(3),
    "batch": pe.LaplaceMechanism(1.0).sampled_without_replacement(batch_size=3, dataset_size=10),
    "truncated": pe.mechanisms.TruncatedPoissonSampled(pe.GaussianMechanism(1.0), 0.1, 10, 100),
}


@pytest.mark.parametrize("mechanism", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove", "substitute"])
def test_no_warnings_at_the_ends_of_the_doubles(mechanism: pe.Mechanism, adjacency: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for argument in (5e-324, 1e308):
            assert 0.0 <= pe.delta(mechanism, argument, adjacency=adjacency) <= 1.0
        if mechanism in (ENDS["lines"], ENDS["exponential"]):  # whose search ends in time
            assert 0.0 < pe.epsilon(mechanism, 5e-324, adjacency=adjacency) <= 10.0


@pytest.mark.parametrize("mechanism", [SGD, pe.dp_sgd(1.0, 0.01, 100, group_size=2)], ids=str)
@pytest.mark.parametrize("kappa", [5e-324, 1e-310, 1e-308])
def test_gamma_below_the_normal_doubles(mechanism: pe.Mechanism, kappa: float) -> None:
    """It was 0, below κ and below its own lower bound, where rows know no digit."""
    truth = pe.reference.gamma_bound(mechanism, kappa, adjacency="remove", digits=12)
    bounds = pe.gamma_bound(mechanism, kappa, adjacency="remove", bounds=True)
    assert kappa <= bounds.lower <= bounds.value <= bounds.upper
    assert bounds.lower <= truth <= bounds.upper
    for found in (
        pe.gamma_bound(mechanism, kappa, adjacency="remove"),
        pe.gamma_bound(mechanism, [0.5, kappa], adjacency="remove")[1],
        pe.gamma_bound(mechanism, [0.5, kappa], adjacency="remove", bounds=True).value[1],
    ):
        assert found == bounds.value
        assert found >= truth * (1 - 1e-9)
