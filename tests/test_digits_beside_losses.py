"""Profiles at an ε next to a loss, where the loss as a double has no digits left.

The truths are sums over all outcomes in 60 digits, from the definitions of the mechanisms.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from outcomes import (
    Outcomes,
    discrete_laplace,
    generic,
    number,
    product,
    profile,
    sampled,
    vectors,
)

import pyengine as pe

DIGITS = 80
NARROW, LAST = 1e-9, 2.0**-93


def beside(rng: random.Random, outcomes: Outcomes, adjacency: str) -> float:
    """An ε >= 0 next to one of the losses, or at it."""
    sign = 1 if adjacency == "add" else -1
    losses = [sign * mpmath.log(a / b) for a, b in outcomes if a > 0 and b > 0]
    losses = [x for x in losses if x > 0] or [mpmath.mpf(0)]
    chosen = max(losses) if rng.random() < 0.5 else rng.choice(losses)
    epsilon = float(chosen)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 8))):
        epsilon = math.nextafter(epsilon, rng.choice((0.0, math.inf)))
    return epsilon


def is_held(found: Any, truth: Any, epsilon: float, *, narrow: bool = True) -> None:
    assert found.lower <= truth <= found.upper, (found, mpmath.nstr(truth, 20))
    assert found.lower <= found.value <= found.upper
    if narrow and truth > 1e-290:  # a loss is known to the digits of two doubles
        width = NARROW * truth + LAST * (1.0 + epsilon)
        assert found.upper - found.lower <= width, (found, mpmath.nstr(truth, 20))


def cases(rng: random.Random) -> tuple[Any, Outcomes]:
    """A mechanism with few outcomes, and all of them."""
    kind = rng.randrange(4)
    if kind == 0:
        epsilon = math.exp(rng.uniform(-4.0, 5.0))
        delta = rng.choice((0.0, 1e-9, 0.3, 1.0 - 2.0**-40))
        step, outcomes = pe.GenericMechanism(epsilon, delta), generic(epsilon, delta)
    elif kind == 1:
        noise = math.exp(rng.uniform(-3.0, 4.0))
        step, outcomes = pe.DiscreteLaplaceMechanism(noise), discrete_laplace(noise)
    else:
        cut = [sorted(rng.choice((1, 7, 10**6, 10**15)) for _ in range(3)) for _ in range(2)]
        p, q = ([Fraction(x, sum(row)) for x in row] for row in cut)
        rng.shuffle(q)
        if kind == 3:
            p, q = [*p, Fraction(0)], [Fraction(0), *q]
        step = pe.from_probabilities(p, q)
        outcomes = vectors(p, q)
    rate: float | Fraction
    if rng.random() < 0.6:
        rate = rng.choice((rng.random(), 1e-9, 1.0 - 1e-9, 1 - Fraction(1, 10**25), Fraction(1, 3)))
        step, outcomes = step.poisson_sampled(rate), sampled(outcomes, rate)
    steps = rng.choice((1, 1, 2, 3, 5))
    return step.composed(steps), product((outcomes, steps))


def test_random_finite_losses() -> None:
    rng = random.Random(7)
    with mpmath.workdps(DIGITS):
        for _ in range(120):
            mechanism, outcomes = cases(rng)
            adjacency = rng.choice(("add", "remove"))
            epsilon = beside(rng, outcomes, adjacency)
            truth = profile(outcomes, mpmath.exp(epsilon), adjacency)
            found = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
            # losses that differ by less than what is merged are blurred, on the safe side
            losses = sorted(float(mpmath.log(b / a)) for a, b in outcomes if a > 0 and b > 0)
            gaps = [y - x for x, y in pairwise(losses)]
            is_held(found, truth, epsilon, narrow=all(x == 0.0 or x > 1e-12 for x in gaps))


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "adjacency", "truth"),
    [
        (pe.DiscreteLaplaceMechanism(3.973689152238674), 0.2516553161780724, "remove",
         "1.764128009597291064e-18"),
        (pe.DiscreteLaplaceMechanism(1.12).poisson_sampled(0.0009571601150274364).composed(2),
         0.001130756077483117, "add", "4.771616792527618282e-20"),
        (pe.from_probabilities(
            [0.09637684615764419, 0.9036231446858649, 9.156490898831748e-09], [0.0, 0.0, 1.0]
        ).composed(6), 111.05281692783088, "remove", "9.347071585275829900e-16"),
    ],
)  # fmt: skip
def test_next_to_the_largest_loss(
    mechanism: Any, epsilon: float, adjacency: str, truth: str
) -> None:
    with mpmath.workdps(DIGITS):
        found = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
        is_held(found, mpmath.mpf(truth) * (1 + mpmath.mpf(10) ** -19), epsilon)
        is_held(found, mpmath.mpf(truth) * (1 - mpmath.mpf(10) ** -19), epsilon)


def test_epsilon_is_the_inverse_there() -> None:
    with mpmath.workdps(DIGITS):
        noise, level = 3.973689152238674, 1e-18
        outcomes = discrete_laplace(noise)
        mechanism = pe.DiscreteLaplaceMechanism(noise)
        found = pe.epsilon(mechanism, level, adjacency="add", bounds=True)
        end = mpmath.log(outcomes[0][0] / outcomes[0][1])
        truth = end + mpmath.log1p(-mpmath.mpf(level) / outcomes[0][0])
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower < 1e-15


@pytest.mark.parametrize("steps", [1, 2, 6])
def test_delta_next_to_the_mass_of_infinite_losses(steps: int) -> None:
    rate = 0.9999999999988333
    p, q = ["0", "3/5", "2/5"], ["4/5", "1/10", "1/10"]
    mechanism = pe.from_probabilities(p, q).poisson_sampled(rate).composed(steps)
    with mpmath.workdps(DIGITS):
        outcomes = sampled(vectors(p, q), rate)
        alone = 1 - (1 - outcomes[0][1]) ** steps
        near = float(alone)
        for level in (math.nextafter(near, 0.0), near, math.nextafter(near, 1.0)):
            found = pe.epsilon(mechanism, level, adjacency="remove", bounds=True)
            if level < alone:
                assert found == (math.inf, math.inf, math.inf)
            else:
                assert found.lower <= found.value <= found.upper < math.inf
                several = product((outcomes, steps))
                assert profile(several, mpmath.exp(found.upper), "remove") <= level
                if found.lower > 0.0:
                    assert profile(several, mpmath.exp(found.lower), "remove") >= level


def test_masses_below_all_doubles_are_not_nothing() -> None:
    tiny, none, half = Fraction(1, 10**400), Fraction(0), Fraction(1, 2)
    p, q = [half - tiny, half, tiny, none], [half / 2, 3 * half / 2 - 2 * tiny, none, 2 * tiny]
    mechanism = pe.from_probabilities(p, q)
    for method in ("exact", "lattice"):
        for repeated in (mechanism, mechanism.composed(3), mechanism.poisson_sampled("1/2")):
            found = pe.epsilon(repeated, 0.0, method=method, bounds=True)
            assert found.value == found.upper == math.inf
            assert pe.delta(repeated, 5.0, method=method, bounds=True).upper > 0.0
            gamma = pe.gamma_bound(repeated, 0.0, method=method, bounds=True)
            assert gamma.lower == 0.0 < gamma.upper


@pytest.mark.parametrize("method", ["exact", "lattice"])
def test_profiles_below_all_doubles_are_not_nothing(method: str) -> None:
    """The largest loss is infinite, so no ε makes δ 0."""
    for step in (
        pe.DiscreteGaussianMechanism(1.0),
        pe.GaussianMechanism(1.0).poisson_sampled("1/2"),
    ):
        found = pe.delta(step, 120.0, adjacency="remove", method=method, bounds=True)
        assert found.lower == 0.0 < found.upper < 1e-300


def of_laplace(ratio: Any, epsilon: Any) -> Any:
    """Profile of one Laplace step at any ε."""
    if epsilon >= ratio:
        return mpmath.mpf(0)
    if epsilon <= -ratio:
        return 1 - mpmath.exp(epsilon)
    return 1 - mpmath.exp((epsilon - ratio) / 2)


def test_laplace_noise_beside_its_largest_loss() -> None:
    rng = random.Random(11)
    with mpmath.workdps(DIGITS):
        for _ in range(40):
            noise: float | Fraction = math.exp(rng.uniform(-3.0, 4.0))
            noise = rng.choice((noise, Fraction(rng.randrange(1, 99), 7)))
            ratio = 1 / number(noise)
            epsilon = float(ratio)
            for _ in range(rng.choice((0, 1, 3))):
                epsilon = math.nextafter(epsilon, rng.choice((0.0, math.inf)))
            found = pe.delta(pe.LaplaceMechanism(noise), epsilon, adjacency="add", bounds=True)
            is_held(found, of_laplace(ratio, mpmath.mpf(epsilon)), epsilon)


@pytest.mark.parametrize("steps", [2, 5])
def test_laplace_compositions_beside_their_largest_loss(steps: int) -> None:
    """Only the first atom of all counts within 1e-9 of the largest loss, for few steps."""
    noise = 0.7312
    with mpmath.workdps(DIGITS):
        ratio = 1 / number(noise)
        epsilon = math.nextafter(float(steps * ratio), 0.0)
        gap = steps * ratio - mpmath.mpf(epsilon)
        truth = -mpmath.expm1(-gap) / mpmath.mpf(2) ** steps
        mechanism = pe.LaplaceMechanism(noise).composed(steps)
        found = pe.delta(mechanism, epsilon, adjacency="add", bounds=True)
        assert found.lower * (1 - 1e-12) <= truth <= found.upper
        assert found.upper - found.lower < 1e-9 * truth


def test_finite_and_laplace_losses_beside_their_largest_sum() -> None:
    rng = random.Random(13)
    with mpmath.workdps(DIGITS):
        for _ in range(30):
            epsilon, noise = math.exp(rng.uniform(-2.0, 2.0)), math.exp(rng.uniform(-2.0, 3.0))
            ratio, outcomes = 1 / number(noise), generic(epsilon, 0.0)[1:3]
            mechanism = pe.compose(pe.GenericMechanism(epsilon, 0.0), pe.LaplaceMechanism(noise))
            at = float(number(epsilon) + ratio)
            for _ in range(rng.choice((0, 1, 2))):
                at = math.nextafter(at, rng.choice((0.0, math.inf)))
            truth = mpmath.fsum(
                a * of_laplace(ratio, mpmath.mpf(at) + mpmath.log(b / a)) for a, b in outcomes
            )
            is_held(pe.delta(mechanism, at, adjacency="add", bounds=True), truth, at)


def test_sampled_laplace_beside_its_ends() -> None:
    rng = random.Random(17)
    with mpmath.workdps(DIGITS):
        for _ in range(60):
            ratio = Fraction(math.exp(rng.uniform(-4.0, 3.6)))
            rate = rng.choice((Fraction(rng.random()), 1 - Fraction(1, 10 ** rng.randrange(1, 40))))
            mu, p = number(ratio), number(rate)
            adjacency = rng.choice(("add", "remove"))
            side = 1 if adjacency == "remove" else -1
            end = side * mpmath.log(1 - p + p * mpmath.exp(side * mu))
            epsilon = float(end) * rng.choice((1.0, 1.0, rng.random()))
            epsilon = math.nextafter(epsilon, rng.choice((0.0, epsilon, math.inf)))
            if side == 1:  # (1 - p) P + p Q against P, where the plain loss is above g
                g = mpmath.log((mpmath.expm1(epsilon) + p) / p)
                truth = p * (1 - mpmath.exp((g - mu) / 2)) if epsilon < end else mpmath.mpf(0)
            else:
                rest = mpmath.exp(-mpmath.mpf(epsilon)) - (1 - p)
                g = mpmath.log(rest / p) if epsilon < end else -mu
                above, below = mpmath.exp(-(g + mu) / 2) / 2, mpmath.exp((g - mu) / 2) / 2
                t = mpmath.exp(epsilon)
                truth = (1 - above) - t * ((1 - p) * (1 - above) + p * below)
            mechanism = pe.LaplaceMechanism(1 / ratio).poisson_sampled(rate)
            found = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
            is_held(found, truth if epsilon < end else mpmath.mpf(0), epsilon)


def test_values_are_safe_where_bounds_say_nothing() -> None:
    """What an engine cannot tell from 0 is given as the upper bound."""
    from pyengine.engines.exact.levels import ComposedLaw, KnownProfile, Tails
    from pyengine.engines.exact.threshold import ThresholdQuestions

    class Blurred(ComposedLaw):
        """A law whose profile is not known beside its largest loss."""

        def support(self) -> tuple[float, float]:
            return -1.0, 1.0

        def tails(self, c: Any) -> Tails:
            raise NotImplementedError

        def profile(self, epsilon: Any) -> KnownProfile:
            none = np.zeros(epsilon.size)
            return KnownProfile(none, none + 1e-12, none)

    found = ThresholdQuestions(Blurred()).profile(np.array([0.999]))
    assert found.value[0] == found.upper[0] >= 1e-12
    assert found.lower[0] == 0.0
