"""Convolution engine: narrow laws far from their smallest loss, whose axis is rounded most."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from error_budget import check
from test_normal_mixtures import mechanism_of
from thorough import ALL, sampled, some
from truth import load

import pyengine as pe
from pyengine.caches import clear_cache
from pyengine.engines import convolution
from pyengine.engines.convolution import Convolution, bounded_steps
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERRORS, PROFILE
from pyengine.engines.pairs import GaussianPair

flint = pytest.importorskip("flint")
mpmath = pytest.importorskip("mpmath")

# Many small steps, of which a single rare large one decides the value: a transform of the whole
# law loses eleven digits there, so that double precision without a cut gives 4.8682e-24.
BATCH, DATASET, NOISE, STEPS, EPSILON = 28, 91328, 2.698, 118098, 0.8802
TRUTH = 4.8679696355443e-24

# noise, sampling probability, steps, whether the pair is reversed, epsilon
NARROW = [
    (1.349, BATCH / DATASET, STEPS, True, EPSILON),
    (1.4, 4.6e-3, 31731, False, 1.86),
    (4.35, 0.216, 67, True, 4.64),
    (4.29, 2.57e-3, 427, True, 0.0195),
    (4.78, 0.0708, 10468, False, 8.3),
    (4.79, 0.0156, 2465, True, 1.73),
    (3.14, 8.8e-4, 208612, False, 0.338),
    (1.85, 0.105, 61, True, 1.82),
    (3.65, 1.36e-3, 246301, True, 3.55),
]


def _profile(nodes: int, low: int, high: int, tilt: int, spacing: float, last: float) -> float:
    """δ under "remove" by a contour in 140 bits, of the law without the z beyond ``high``.

    At most N p Φ(mu - high) is left out, which is below 1e-50.  The transform is a Gauss-Legendre
    sum over z, and the integral over the contour a trapezoidal one.
    """
    arb, acb, ctx = flint.arb, flint.acb, flint.ctx
    bits, ctx.prec = ctx.prec, 140
    try:
        mu, p, epsilon = 2 / arb(NOISE), arb(BATCH) / DATASET, arb(EPSILON)
        losses, weights = [], []
        for i in range(nodes):
            x, w = arb.legendre_p_root(nodes, i, weight=True)
            z, w = (low + high + (high - low) * x) / 2, (high - low) * w / 2
            losses.append((1 - p + p * (mu * z - mu * mu / 2).exp()).log())
            weights.append(w * (tilt * losses[-1] - z * z / 2).exp() / (2 * arb.pi()).sqrt())
        total = arb(0)
        for k in range(int(last / spacing) + 1):
            t = arb(spacing) * k
            turned = [(t * loss).sin_cos() for loss in losses]
            transform = acb(
                sum((w * c for w, (_, c) in zip(weights, turned, strict=True)), arb(0)),
                sum((w * s for w, (s, _) in zip(weights, turned, strict=True)), arb(0)),
            )
            s = acb(tilt, t)
            term = (STEPS * transform.log() + (1 - s) * epsilon).exp() / (s * (s - 1))
            total += term.real if k else term.real / 2
        return float(total * arb(spacing) / arb.pi())
    finally:
        ctx.prec = bits


def test_a_truth_that_one_large_step_decides_by_two_contours() -> None:
    first = _profile(500, -14, 16, 30, 0.5, 120.0)
    second = _profile(640, -17, 17, 27, 0.37, 150.0)
    assert first == pytest.approx(TRUTH, rel=2e-13)
    assert second == pytest.approx(TRUTH, rel=2e-13)


def test_a_value_that_one_large_step_decides_is_answered() -> None:
    mechanism = pe.GaussianMechanism(NOISE).sampled_without_replacement(
        batch_size=BATCH, dataset_size=DATASET
    )
    lower, value, upper = pe.delta(mechanism.composed(STEPS), EPSILON, bounds="estimated")
    assert lower <= TRUTH <= upper
    assert value == pytest.approx(TRUTH, rel=3e-12)


@pytest.mark.parametrize(("noise", "p", "steps", "is_reversed", "epsilon"), some(NARROW, 2))
def test_the_error_of_a_narrow_law_is_within_its_estimate(
    noise: float, p: float, steps: int, is_reversed: bool, epsilon: float
) -> None:
    pair = GaussianPair((noise,), (p,), (steps,), is_reversed)
    row = Convolution(bounded_steps(pair), reversed=pair.reversed).at(
        PROFILE, np.array([-epsilon])
    )[0]
    value, error = row[2 + PROFILE], row[7 + PROFILE]
    adjacency = "remove" if is_reversed else "add"
    truth = pe.reference.delta(pe.dp_sgd(noise, p, steps), epsilon, adjacency=adjacency, digits=18)
    missed = abs(value - float(mpmath.log(truth)))
    rounding = 2.0**-52 * math.fabs(value)  # of the two logarithms
    assert missed <= 0.5 * error + rounding, (missed, error)
    assert error <= (5e-11 if steps < 2e5 else 2e-10)


def _mixtures() -> list[dict[str, Any]]:
    rows = [row for row in load("normal_mixtures.json") if row["kind"] == "mixture"]
    return rows if ALL else rows[::4]  # a law takes 0.1 to 1 s


def test_mixtures_against_another_contour() -> None:
    """Profiles of mixtures that have a share of N(0, 1), to 20 digits by other code."""
    worst, compared = 0.0, 0
    for row in _mixtures():
        asked = partial(
            pe.delta, adjacency=row["adjacency"], method="convolution", bounds="estimated"
        )
        if "0" not in row["shifts"]:
            with pytest.raises(pe.AccuracyError, match="bounded below"):
                asked(mechanism_of(row), float(row["epsilon"]))
            continue
        found, truth = asked(mechanism_of(row), float(row["epsilon"])), float(row["delta"])
        slack = 2.0**-50 * truth * max(1.0, row["steps"] / 300)  # of weights and truths to doubles
        assert found.lower - slack <= truth <= found.upper + slack, row
        worst, compared = max(worst, abs(found.value / truth - 1.0)), compared + 1
    assert compared > (30 if ALL else 8)
    check("mixtures.convolution", worst, whole=ALL)


# Few loud steps, or rare ones, whose transform falls slowly: group, noise, p, steps, ε, order.
LOUD = [
    (3, 1.0, "1e-6", 2000, 1.0, "remove"),
    (4, 0.8, "0.001", 3, 1.0, "remove"),
    (4, 0.8, "0.001", 3, 0.003, "add"),
    (2, 2.0, "1e-4", 1000, 1.0, "remove"),
    (5, 0.5, "0.02", 4, 9.0, "remove"),
    (2, 0.35, "0.1", 9, 0.9, "add"),
]


@sampled(2)
@pytest.mark.parametrize(("group", "noise", "p", "steps", "epsilon", "adjacency"), LOUD)
def test_groups_that_no_contour_resolves_within_the_lattice_s_brackets(
    group: int, noise: float, p: str, steps: int, epsilon: float, adjacency: str
) -> None:
    run = pe.dp_sgd(noise, Fraction(p), steps, group_size=group)
    asked = partial(pe.delta, run, epsilon, adjacency=adjacency)
    with pytest.raises(pe.AccuracyError):
        asked(method="spectral")
    bracket = asked(method="lattice", bounds=True)
    value = asked()
    assert bracket.lower <= value <= bracket.upper
    assert value == asked(method="convolution")


def test_a_mixture_with_one_shift_is_a_sampled_step() -> None:
    mixture = pe.GaussianMixtureMechanism("0.7", ["0", "1"], ["0.99", "0.01"]).composed(7)
    run = pe.GaussianMechanism("0.7").poisson_sampled("0.01").composed(7)
    for question in (pe.gamma_bound, pe.trade_off, pe.delta):
        ours, theirs = (question(m, 0.02, method="convolution") for m in (mixture, run))
        assert ours == pytest.approx(theirs, rel=1e-12)


def test_a_loss_without_a_lower_end_has_no_such_law() -> None:
    run = pe.dp_sgd(1.0, 0.01, 10)
    with pytest.raises(pe.AccuracyError, match="bounded below; ask method='auto'"):
        pe.delta(run, 0.1, adjacency="substitute", method="convolution")


def test_a_reversed_pair_has_the_same_tails_with_the_same_errors() -> None:
    steps = bounded_steps(GaussianPair((0.8,), (0.01,), (300,), reversed=False))
    c = np.linspace(-2.5, 12.0, 30)
    ours = Convolution(steps, reversed=False).at(PROFILE, c)
    theirs = Convolution(steps, reversed=True).at(PROFILE, -c)
    for own, mirrored in ((A_ABOVE, B_BELOW), (A_BELOW, B_ABOVE), (B_ABOVE, A_BELOW)):
        np.testing.assert_allclose(ours[:, 2 + own], theirs[:, 2 + mirrored], rtol=1e-13)
        np.testing.assert_allclose(ours[:, ERRORS + own], theirs[:, ERRORS + mirrored], rtol=1e-6)


def test_a_tail_that_is_deep_under_one_law_only_takes_the_shallow_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """β is e^-266 where the loss is -260, and either density there is far above the cut."""
    made = []
    compose = convolution._composed

    def counted(steps: convolution.BoundedSteps, deepest: float) -> Any:
        made.append(deepest)
        return compose(steps, deepest)

    monkeypatch.setattr(convolution, "_composed", counted)
    clear_cache()
    run, level = pe.dp_sgd(0.16, 0.1, 1000), 0.0025
    bounds = pe.trade_off(run, level, adjacency="add", method="convolution", bounds="estimated")
    assert made == [convolution.SHALLOW]
    assert bounds.upper < 1e-40
    assert bounds.upper - bounds.lower < 1e-8 * bounds.value
    bracket = pe.trade_off(run, level, adjacency="add", method="lattice", bounds=True)
    assert bracket.lower <= bounds.value <= bracket.upper
    clear_cache()
