"""Rows by convolution, which audits trust: narrow laws far from their smallest loss."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from convolution_rows import Convolution, bounded_steps
from thorough import sampled, some

import pyengine as pe
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


@pytest.mark.parametrize(("noise", "p", "steps", "is_reversed", "epsilon"), some(NARROW, 3))
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
    bracket = asked(method="lattice", bounds=True)
    assert bracket.lower <= asked() <= bracket.upper


def test_a_reversed_pair_has_the_same_tails_with_the_same_errors() -> None:
    steps = bounded_steps(GaussianPair((0.8,), (0.01,), (300,), reversed=False))
    c = np.linspace(-2.5, 12.0, 30)
    ours = Convolution(steps, reversed=False).at(PROFILE, c)
    theirs = Convolution(steps, reversed=True).at(PROFILE, -c)
    for own, mirrored in ((A_ABOVE, B_BELOW), (A_BELOW, B_ABOVE), (B_ABOVE, A_BELOW)):
        np.testing.assert_allclose(ours[:, 2 + own], theirs[:, 2 + mirrored], rtol=1e-13)
        np.testing.assert_allclose(ours[:, ERRORS + own], theirs[:, ERRORS + mirrored], rtol=1e-9)
