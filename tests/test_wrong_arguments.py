"""Arguments of a wrong kind or size: each is named with the rule, whatever function it is given to.

What is here was once answered by an error from inside, by NaN, or not within minutes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine import approximations, audit, baselines, duality, membership
from pyengine.interop import HistoryAccountant, from_history
from pyengine.report import privacy_report
from pyengine.statement import privacy_statement

RUN = pe.dp_sgd(1.0, 0.01, 100)
G = pe.GaussianMechanism(1.0)
STEP = pe.LaplaceMechanism(1.0)
TARGET = pe.targets.EpsilonDelta(1.0, 1e-5)
HUGE = 10**400
MATRIX = [[1.0, 0.0], [1.0, 1.0]]
RAGGED = [[1, [2]]]
RELEASES = np.ones((3, 2))


def profile(epsilon: Any) -> Any:
    return pe.delta(pe.GaussianMechanism(1.0), epsilon)


def step_of(**given: Any) -> None:
    HistoryAccountant().step(**{"noise_multiplier": 1.0, "sample_rate": 0.1, **given})


def run_of(noise: float) -> pe.Mechanism:
    return pe.dp_sgd(noise, 0.01, 100)


WRONG: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("bounds", lambda x: pe.delta(RUN, 1.0, bounds=x), ["no", 3, {0.1}, None, 1.0]),
    ("integer", lambda x: pe.calibrate(run_of, TARGET, integer=x), ["no", 3, None]),
    ("maximize", lambda x: pe.calibrate(run_of, TARGET, maximize=x), [math.nan, "no", 1]),
    ("group_size", lambda x: pe.dp_sgd(1.0, 0.01, 2, group_size=x), [1001, 1e308, HUGE]),
    ("delta", lambda x: pe.epsilon(RUN, x), [np.ma.masked, np.ma.array([0.1], mask=[True])]),
    (
        "delta",
        lambda x: pe.resilience.certificate(pe.GaussianMechanism(1.0), delta=x),
        [np.ma.masked, np.ma.array(0.1, mask=True), [1e-5, 1e-6]],
    ),
    ("noise_multiplier", pe.GaussianMechanism, [np.ma.masked, np.ma.array(1.0, mask=True)]),
    ("steps", lambda x: pe.dp_sgd(1.0, 0.01, x), [np.ma.masked]),
    ("parts", pe.Composition, [None, 3, [RUN], [(RUN, 2)], [(STEP, 1, 1)], "ab", [STEP]]),
    # NumPy dropped imaginary parts
    ("noise_multiplier", pe.GaussianMechanism, [np.complex128(1.0), np.array(1j), np.complex64(1)]),
    ("shifts", lambda x: pe.GaussianMixtureMechanism(1.0, x, [1.0]), [np.array(0.3), "1", {}]),
    ("weights", lambda x: pe.GaussianMixtureMechanism(1.0, [1.0], x), [np.array(0.3), HUGE]),
    ("mechanism", lambda x: pe.delta(x, 1.0), [np.array(0.3), np.array([]), [], ()]),
    ("votes", lambda x: pe.pate_votes(x, 2.0), [{}, 1j, HUGE, [[-1, 2]], [[math.inf, 1]], None]),
    ("queries", lambda x: pe.pate_noisy_max(1.0, x), [-1, 0.5, None]),
    ("steps_per_epoch", lambda x: pe.shuffled_lower_bound(1.0, x), [HUGE, "1e300"]),
    ("keys", lambda x: pe.thresholded_histogram(1.0, 5.0, keys=x), [HUGE, 10**300]),
    (
        "mechanism",
        lambda x: pe.bayes_risk(x, 0.5),
        [np.array(0.3), np.array([]), [], None, pe.GaussianMechanism],
    ),
    (
        "adjacency",
        lambda x: pe.bayes_risk(RUN, 0.5, adjacency=x),
        [["add"], {}, np.array([1]), "x"],
    ),
    (
        "samples",
        lambda x: approximations.monte_carlo_gamma(RUN, 0.1, samples=x),
        [10**18, HUGE, 1, 2.5],
    ),
    (
        "alpha",
        lambda x: pe.reference.relaxed.log_trade_off(G, x, adjacency="add"),
        [math.inf, None, np.array([0.1]), Decimal("nan"), 0, 1, 2.0, [0.1], "x"],
    ),
    (
        "digits",
        lambda x: pe.reference.relaxed.log_trade_off(G, 0.1, adjacency="add", digits=x),
        [0, 201, math.inf, None, True, HUGE, "x", [3]],
    ),
    (
        "adjacency",
        lambda x: pe.reference.relaxed.log_trade_off(G, 0.1, adjacency=x),
        ["add_remove", None, ["add"]],
    ),
    ("bounds", lambda x: pe.delta(RUN, 1.0, bounds=x), [np.array([0.1, 0.2]), np.array([])]),
    ("unit", lambda x: pe.dp_sgd(1.0, 0.1, 3, unit=x), [np.array([0.1, 0.2]), None, ["record"]]),
    (
        "sampling",
        lambda x: pe.dp_sgd(1.0, steps=3, batch_size=1, dataset_size=9, sampling=x),
        [np.array([0.1, 0.2]), ["poisson"], 1.0],
    ),
    ("participation", lambda x: pe.matrix_mechanism(1.0, MATRIX, x), [np.array([0.1, 0.2]), 3]),
    ("repetitions", lambda x: pe.Composition([(STEP, x)]), [-1, 0.5, True, None, "x", HUGE]),
    ("parts", pe.Releases, [None, [RUN], [(RUN, 2)], [], [(STEP, 0)]]),
    ("mechanism", lambda x: pe.Releases([(x, 2)]), [STEP.poisson_sampled(0.5)]),
    # taken for 0, so that epsilon(0) was 0 where it is infinite
    (
        "sampling_probability",
        lambda x: pe.dp_sgd(1.0, x, 10),
        [np.ma.masked, Fraction(1, 10**400), "1e-330"],
    ),
    (
        "delta",
        lambda x: pe.resilience.equivalent_noise(pe.GaussianMechanism, 2.0, delta=x),
        [np.ma.masked, [1e-5, 1e-6], 0.0, 1.0, "0.1"],
    ),
    (
        "reference",
        lambda x: pe.resilience.detection_resilience(pe.GaussianMechanism(1.0), x),
        [pe.GaussianMechanism, 0.5, lambda alpha: math.exp(-alpha), lambda alpha: alpha < 0.5 < 1],
    ),
    ("C", lambda x: pe.matrix_sensitivity([[x]]), [HUGE]),
    (
        "epsilon",
        lambda x: pe.from_profile(lambda e: 0.1 * math.exp(-e), epsilon=x),
        [1.0, 3, RUN, math.nan],
    ),
    ("indent", lambda x: pe.to_json(RUN, indent=x), [-1, 0.5, "  ", HUGE, [2]]),
    ("x", pe.special.ndtr, [HUGE]),
    ("p", pe.special.ndtri, [HUGE]),
    ("function", lambda x: pe.special.threaded(x, 1.0, 2.0, 3.0), [None, "ncx2_sf", math.sin]),
    (
        "workers",
        lambda x: pe.special.threaded(pe.special.ncx2_sf, 1.0, 2.0, 3.0, workers=x),
        [[], 0, 1.5, Decimal("nan")],
    ),
    ("trials", lambda x: audit.gamma_lower_bound(3, x), [0, HUGE, 1.5]),
    ("confidence", lambda x: audit.gamma_lower_bound(3, 10, x), [HUGE, True, "0.9", 1.0]),
    ("orders", lambda x: duality.from_rdp(x, [0.1], 1.0), [[HUGE], 1j, {}, None]),
    ("divergences", lambda x: duality.from_rdp([2.0], x, 1.0), [[HUGE], 1j, {}, None]),
    ("epsilon", lambda x: duality.trade_off_from_epsilon_delta(x, 1e-5, 0.1), [[], [1.0, 2.0]]),
    (
        "accuracy",
        lambda x: duality.gamma_from_profile(profile, 0.1, accuracy=x),
        [[], [1e-6, 1e-6]],
    ),
    ("profile", lambda x: duality.repeat_and_select(x, 1.0, mean=2.0), [None, 0.1, RUN]),
    ("epsilon", lambda x: duality.repeat_and_select(profile, x, mean=2.0), [[], [1.0]]),
    ("functions", lambda x: membership.worst_case(x, 0.1), [None, 1.0, profile]),
    ("clip", lambda x: membership.NoisySGDStep(1, 9, 0.1, 1.0, x), [Decimal("sNaN"), None]),
    ("history", from_history, [None, 1.0, [1.0], [(1.0, 0.1)]]),
    (
        "false_positive_rates",
        lambda x: privacy_statement(RUN, 1e-5, false_positive_rates=x),
        [None, 0.1, [[0.1]], ["0.1"]],
    ),
    ("kappas", lambda x: privacy_statement(RUN, 1e-5, kappas=x), [None, 0.1, [None]]),
    ("proven", lambda x: privacy_statement(RUN, 1e-5, proven=x), ["no", None]),
    ("group_sizes", lambda x: privacy_report(RUN, 1e-5, group_sizes=x), [None, 2]),
    ("kappas", lambda x: privacy_report(RUN, 1e-5, kappas=x), [None, 0.1]),
    (
        "epsilon",
        lambda x: pe.reference.delta(pe.GaussianMechanism(1), x, digits=10),
        [Decimal("sNaN"), Decimal("inf"), math.nan],
    ),
    # NumPy spoke of inhomogeneous shapes
    ("noise_multiplier", pe.GaussianMechanism, [RAGGED]),
    ("steps", lambda x: pe.dp_sgd_allocated(1.0, 10, 1).composed(x), [RAGGED]),
    ("epsilon", lambda x: audit.count_audit(4, 9, 1, 9, epsilon=x), [RAGGED]),
    ("trade-off function", pe.compose, [RAGGED]),
    (
        "diameter",
        lambda x: pe.last_iterate(1.0, 0.1, 9, contraction=0.9, diameter=x),
        ["abc", None, b"1", True, HUGE, -HUGE, math.nan, RAGGED],
    ),
    ("convexify", lambda x: pe.from_profile(profile, convexify=x), ["no", 1, None, [True]]),
    ("norms", lambda x: pe.individual(x, noise_multiplier=1.0, rate=0.1), [1.0, None, math.nan]),
    ("std", lambda x: pe.noise_multiplier(x, 1.0), [b"0.1"]),
    ("true_positives", lambda x: audit.count_audit(x, 9, 1, 9), [True]),
    ("positives", lambda x: audit.count_audit(1, x, 1, 9), [True]),
    ("kappas", lambda x: privacy_statement(RUN, 1e-5, kappas=x), ["", b""]),
    ("sample_rate", lambda x: step_of(sample_rate=x), [[], [0.1], "abc", RAGGED, 2.0]),
    ("noise_multiplier", lambda x: step_of(noise_multiplier=x), [[], [1.0], 0.0]),
    ("threat_model", lambda x: pe.delta(RUN, 1.0, threat_model=x), [HUGE, "x" * 999, None]),
    (
        "batch_size",
        lambda x: G.sampled_with_replacement(batch_size=x, dataset_size=10),
        [2**63, 100_010],
    ),
    ("sampling", lambda x: pe.dp_sgd(1.0, batch_size=9, dataset_size=99, sampling=x), [None]),
]


@pytest.mark.parametrize(
    ("name", "ask", "value"),
    [(name, ask, value) for name, ask, values in WRONG for value in values],
    ids=[f"{name}-{i}-{j}" for i, (name, _, given) in enumerate(WRONG) for j in range(len(given))],
)
def test_the_argument_is_named(name: str, ask: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name} ") as error:
        ask(value)
    assert len(str(error.value)) < 250


TINY, FAR = 1e-310, 1.7e308


@pytest.mark.parametrize(
    "make",
    [
        lambda: pe.dp_sgd(TINY, 0.1, 3),
        lambda: pe.dp_sgd(TINY, 0.1, 3) + pe.LaplaceMechanism(1.0),
        lambda: pe.dp_sgd(TINY, 0.1, 3, group_size=2),
        lambda: pe.GaussianMixtureMechanism(1e-160, [0, 1], [0.5, 0.5]),
        lambda: pe.GaussianMechanism(5e-324).sampled_without_replacement(
            batch_size=1, dataset_size=9
        ),
        lambda: pe.GaussianMechanism(5e-324).truncated_poisson_sampled(
            0.1, batch_size=3, dataset_size=9
        ),
        lambda: pe.DiscreteGaussianMechanism(1e-200),
        lambda: pe.DiscreteGaussianMechanism(1e160),
        lambda: pe.DiscreteGaussianMechanism(1e100),
        lambda: pe.DiscreteLaplaceMechanism(TINY),
        lambda: pe.SkellamMechanism(1e160),
        lambda: pe.SkellamMechanism(1e100),
        lambda: pe.DiscreteGaussianSum(1e-200, 3),
        lambda: pe.pate_votes([[9, 1]], TINY, threshold=5, threshold_noise=1.0),
        lambda: pe.pate_votes([[9, 1]], 1.0, threshold=5, threshold_noise=TINY),
        lambda: (pe.GaussianMechanism(1e160) + pe.LaplaceMechanism(1e160)).poisson_sampled(0.1),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_noise_beyond_the_doubles_is_refused(make: Callable[[], Any]) -> None:
    """It was an error from inside, NaN, or "proven" 1 of the lattice where 0.271 is the truth."""
    for ask in (
        pe.delta,
        lambda run, x, **more: pe.delta(run, [x], **more),
        lambda run, x, **more: pe.delta(run, x, method="lattice", **more),
        lambda run, x, **more: pe.delta(run, x, method="lattice", adjacency="remove", **more),
    ):
        for bounds in (False, True):
            with pytest.raises(pe.AccuracyError) as error:
                ask(make(), 1.0, bounds=bounds)
            assert len(str(error.value)) < 200


def test_noise_over_a_root_stays_within_the_doubles() -> None:
    with pytest.raises(ValueError, match=r"^noise_multiplier must be positive and finite"):
        pe.matrix_mechanism(FAR, [[1.0, 0.25], [0.25, 1.0]], "balls_in_bins", bins=2)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: pe.shuffled_lower_bound(1e308, 100),
        lambda: pe.shuffled_lower_bound(5e-324, 100),
        lambda: approximations.balls_in_bins_delta(5e-324, MATRIX, 2, 0.5),
        lambda: baselines.renyi_divergence(RUN, 1e308),
    ],
)
def test_what_takes_too_much_is_refused(ask: Callable[[], Any]) -> None:
    with pytest.raises(pe.AccuracyError):
        ask()


def test_extreme_arguments_that_have_an_answer() -> None:
    assert approximations.balls_in_bins_delta(1.0, MATRIX, 2, math.inf) == (0.0, 0.0, 0.0)
    found = approximations.balls_in_bins_delta(1.0, MATRIX, 2, [0.5, math.inf])
    assert found.upper[0] > 0.0
    assert found.upper[1] == 0.0
    assert (audit.magnitude_scores(RELEASES, noise=1e300) == 0.0).all()
    assert np.isfinite(audit.log_likelihood_scores(RELEASES, RELEASES, noise=1e300)).all()
    for given in ({"sensitivity": 1e300}, {"steps": 10**300}):
        found = baselines.gaussian_information([0.5, 0.5], 1.0, **given)
        assert math.log(2.0) <= found <= math.log(2.0) * (1 + 1e-14)
    assert baselines.orthogonal_information(5, 5e-324) == math.log(5.0)
    assert baselines.orthogonal_information(5, 1.0, steps=10**300) == math.log(5.0)
    # as many candidates as no array holds
    assert 0.0 < baselines.fano_success(10**15, 1.0) < 0.1
    assert baselines.compare(RUN, 5e-324)[0].kappa == 5e-324
    assert 0.0 <= duality.from_zcdp(5e-324, 1.0) < 1e-300
    far = {"times": 2, "separation": 10**30}  # beyond what indices hold
    assert pe.matrix_sensitivity(MATRIX, "min_separation", **far) == pe.matrix_sensitivity(MATRIX)
    assert pe.noise_multiplier(np.array(2.0), 1.0) == pe.noise_multiplier(2.0, 1.0) == 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pe.delta(STEP.composed(3), 1e308) == 0.0


def test_a_refusal_of_epsilon_speaks_of_epsilon() -> None:
    with pytest.raises(pe.AccuracyError, match=r"^the bounds 4\.37\d+ and 4\.37\d+ of") as error:
        pe.epsilon(pe.GaussianMechanism(1.0), 1e-5, tolerance=1e-300)
    wide = float(str(error.value).split("tolerance=")[1].split()[0])
    assert pe.epsilon(pe.GaussianMechanism(1.0), 1e-5, tolerance=wide) > 4.37


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: pe.dp_sgd(1.0, 0.01, HUGE), "got about 1.000e+400"),
        (lambda: pe.dp_sgd(1.0, 0.01, 10**5000), "got about 1.000e+5000"),
        (lambda: pe.GaussianMechanism(HUGE), "at most 1.798e+308, the largest double, got about"),
        (lambda: pe.delta(RUN, HUGE), "at most 1.798e+308, the largest double, got about 1.000e"),
        (lambda: pe.dp_sgd(1.0, Fraction(HUGE, 3), 1), "[0, 1], got about 3.333e+399"),
        (lambda: pe.dp_sgd(1.0, "1" * 400, 1), "[0, 1], got '111"),
        (lambda: pe.dp_sgd(1.0, 0.01, "ten"), "steps must be a non-negative integer, got 'ten'"),
        (lambda: pe.GaussianMechanism("inf"), "must be a finite number, got 'inf'"),
        (lambda: pe.GaussianMechanism("1e-5000"), "whose exponent has three digits at most, got '"),
        (lambda: pe.ShuffledRandomizer(1.0, 10**300), "at most 10,000,000, got about 1.000e+300"),
        (lambda: pe.epsilon(1e-5, RUN), "got 1e-05; the mechanism is the first argument"),
        (lambda: pe.calibrate(TARGET, run_of), "delta=1e-05); it is the first argument"),
        (lambda: pe.delta(RUN, 1.0, adjacency="replace"), "'replace'; did you mean 'substitute'?"),
        (lambda: pe.delta(RUN, 1.0, adjacency="replace-one"), "did you mean 'substitute'?"),
        (lambda: pe.delta(RUN, 1.0, adjacency="both"), "'both'; did you mean 'add_remove'?"),
        (lambda: pe.delta(RUN, 1.0, bounds="proven"), "got 'proven'; did you mean True?"),
        (lambda: pe.delta(RUN, 1.0, method="proven"), "got 'proven'; did you mean 'certified'?"),
        (lambda: pe.delta(RUN, [0.1] * 500 + [None]), "an array of dtype object"),
        (
            lambda: pe.statement.privacy_statement(RUN, 0.1, kappas=["a" * 999]),
            "(1,001 characters)",
        ),
    ],
)
def test_what_is_said_is_short_and_of_use(ask: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"must|both") as error:
        ask()
    assert message in str(error.value)
    assert len(str(error.value)) < 300
