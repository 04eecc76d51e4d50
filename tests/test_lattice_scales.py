"""The lattice engine where small steps are composed on a lattice of their own."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from comparing import compared, comparing, left_out
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, ndtr

import pyengine as pe
from pyengine.caches import clear_cache
from pyengine.engines.lattice import plan, scales
from pyengine.engines.lattice.central_tails import MiddleTails
from pyengine.engines.lattice.coarse_cumulants import survey
from pyengine.engines.lattice.compose import compose_on
from pyengine.engines.lattice.large_steps import Partition, Term
from pyengine.engines.lattice.lower_tails import LowerTails
from pyengine.engines.lattice.plan import Layout, Place, make_layout
from pyengine.laws.finite import FiniteLaw

Pairs = list[tuple[Fraction, Fraction]]


def _is_divided(layout: Layout) -> bool:
    return any(grid.inner for one in layout.plans for grid in one.grids)


def _binary(tenths: int, rate: Fraction) -> Pairs:
    """Outcomes of sampled randomized response."""
    p = Fraction(tenths, 100)
    return [((1 - x) * rate + x * (1 - rate), x) for x in (p, 1 - p)]


def _sums(kinds: list[tuple[Pairs, int]]) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """Masses of both laws at all outcomes of a composition, those of one count together."""
    found = [(mpmath.mpf(1), mpmath.mpf(1))]
    for pairs, steps in kinds:
        (a, b), (x, y) = [tuple(mpmath.mpf(v.numerator) / v.denominator for v in p) for p in pairs]
        counts = [
            (
                mpmath.binomial(steps, k) * a**k * x ** (steps - k),
                mpmath.binomial(steps, k) * b**k * y ** (steps - k),
            )
            for k in range(steps + 1)
        ]
        found = [(u * p, v * q) for u, v in found for p, q in counts]
    return found


@comparing(0.35)
@settings(max_examples=30, deadline=None)
@given(
    small=st.integers(51, 90),
    log_rate=st.floats(-3.0, -1.0),
    steps=st.integers(20, 300),
    large=st.integers(55, 95),
    others=st.integers(1, 4),
    tilt=st.floats(-3.0, 0.9),
    log_spacing=st.floats(-1.5, 0.0),
    distance=st.floats(-3.0, 1.0),
)
def test_any_division_by_scales_holds_the_truth(
    small: int,
    log_rate: float,
    steps: int,
    large: int,
    others: int,
    tilt: float,
    log_spacing: float,
    distance: float,
) -> None:
    """Whatever the spacings, tilts and places: against sums over all outcomes in 40 digits."""
    rate = Fraction(10.0**log_rate)
    kinds = [(_binary(small, rate), steps), (_binary(large, Fraction(1)), others)]
    parts = tuple((FiniteLaw.from_fractions(pairs), number) for pairs, number in kinds)
    found = survey(parts)
    deviation = math.sqrt(found.cumulants(0.0)[2])
    tilt = tilt if tilt > 0.0 else tilt / deviation
    _, mean, variance = found.cumulants(tilt)
    c = mean + distance * math.sqrt(variance)
    reach = (c - math.sqrt(variance), c + math.sqrt(variance))
    outer = tilt <= 0.0
    place = Place(tilt, outer, reach, -0.5 * (tilt * deviation) ** 2 - 5.0)
    spacing = 10.0**log_spacing * math.sqrt(survey(parts[:1]).cumulants(tilt)[2] / steps)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("LONG", 1.0), ("GAIN", 1e-6), ("MANY", 10)):
            patch.setattr(scales, name, value)
        division = Partition(parts, (Term(0.0, parts, found, tilt),))
        try:
            layout = make_layout(division, place, spacing, 1e-3, 2**16)
            composed = compose_on(parts, layout)
        except pe.AccuracyError:
            left_out()
            return
    if not _is_divided(layout):
        left_out()
        return
    with mpmath.workdps(40):
        outcomes = _sums(kinds)
        ratio = mpmath.exp(-mpmath.mpf(c))
        if outer:
            truth = mpmath.fsum(max(a - ratio * b, 0) for a, b in outcomes)
        else:
            truth = mpmath.fsum(min(a, ratio * b) for a, b in outcomes)
    with np.errstate(all="ignore"):  # what overflows is an infinite bound
        tails: Any = LowerTails(composed) if outer else MiddleTails(composed)
        bracket = (tails.at if outer else tails.overlap)(np.array([c]))
    lower, upper = float(bracket.lower[0]), float(bracket.upper[0])
    (compared if lower > 0.0 and upper < 1.0 else left_out)()
    assert lower <= float(truth) * (1.0 + 1e-14)
    assert float(truth) * (1.0 - 1e-14) <= upper


def _beside_noise(
    small: Pairs, steps: int, noise: float, number: int, epsilon: float, is_reversed: bool
) -> float:
    """δ of small steps of two losses beside plain Gaussian noise: sums of closed forms."""
    p, q = np.array([[float(v) for v in pair] for pair in small]).T
    a, b = (q, p) if is_reversed else (p, q)
    k = np.arange(steps + 1)
    log_ways = math.lgamma(steps + 1) - gammaln(k + 1) - gammaln(steps - k + 1)
    masses = np.exp(log_ways + k * math.log(a[0]) + (steps - k) * math.log(a[1]))
    losses = k * math.log(b[0] / a[0]) + (steps - k) * math.log(b[1] / a[1])  # log B/A
    mu = math.sqrt(number) / noise
    c = epsilon + losses  # H_{e^c} of the Gaussian pair, with A's outcomes shifted
    gaussian = ndtr(0.5 * mu - c / mu) - np.exp(c) * ndtr(-0.5 * mu - c / mu)
    return float(np.sum(masses * gaussian))


@pytest.mark.parametrize("epsilon", [0.1, 3.0, 9.0, 20.0])
@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_tiny_losses_beside_large_ones(epsilon: float, adjacency: str) -> None:
    """400,000 steps of losses of 3e-5 beside five of 1: two lattices, and a narrow bracket."""
    rate = Fraction("0.00002")
    mechanism = pe.compose(
        pe.RandomizedResponse("4/5").poisson_sampled(rate).composed(400_000),
        pe.GaussianMechanism(2.0).composed(20),
    )
    seen = []
    clear_cache()  # one composition serves several of these questions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scales, "LONG", 1024.0)
        whole = plan.by_scales
        patch.setattr(plan, "by_scales", lambda *x: seen.append(whole(*x)) or seen[-1])
        bounds = pe.delta(
            mechanism, epsilon, adjacency=adjacency, bounds=True, tolerance=1e-4, method="lattice"
        )
    assert any(seen)
    pairs = [(a, b) for b, a in _binary(20, rate)]
    truth = _beside_noise(pairs, 400_000, 2.0, 20, epsilon, adjacency == "remove")
    assert bounds.lower <= truth * (1.0 + 1e-9)
    assert truth * (1.0 - 1e-9) <= bounds.upper
    assert bounds.upper - bounds.lower <= 1e-4 * bounds.upper


@pytest.mark.parametrize(
    ("mechanism", "question", "argument", "adjacency"),
    [
        (
            pe.compose(
                pe.RandomizedResponse(0.4146, 3).poisson_sampled(1.247e-05).composed(662225),
                pe.DiscreteLaplaceMechanism(1.498, 2).composed(209),
            ),
            "trade_off",
            0.5461108173867685,
            "add",
        ),
        (
            pe.compose(
                pe.GaussianMechanism(6.607).poisson_sampled(5.41e-05).composed(750134),
                pe.GaussianMechanism(2.059).composed(6),
                pe.from_probabilities(
                    ["22/1000", "238/1000", "552/1000", "188/1000"],
                    ["647/1000", "57/1000", "208/1000", "88/1000"],
                ).composed(63),
            ),
            "trade_off",
            0.21649532643960567,
            "add_remove",
        ),
    ],
    ids=["refused", "34 s"],
)
def test_questions_that_two_lattices_answer(
    mechanism: pe.Mechanism, question: str, argument: float, adjacency: str
) -> None:
    """Both agree with what leaves the small steps out, which tells the laws apart less."""
    bounds = getattr(pe, question)(mechanism, argument, adjacency=adjacency, bounds=True)
    assert bounds.upper - bounds.lower <= 2e-4 * bounds.upper
    less = pe.compose(*(kind.composed(n) for kind, n in mechanism.parts if n < 1000))
    other = getattr(pe, question)(less, argument, adjacency=adjacency, bounds=True)
    assert bounds.lower <= other.upper
    assert other.lower <= 1.02 * bounds.upper
