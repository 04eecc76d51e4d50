"""ε of composed laws by few profiles, between bounds that the profiles themselves confirm."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from outcomes import number, product, profile, vectors

import pyengine as pe
from pyengine.engines.exact.levels import ComposedLaw, LawProfile, Tails
from pyengine.engines.exact.threshold import ThresholdQuestions

RUNS = {
    "laplace": pe.LaplaceMechanism(4.0).composed(50),
    "response": pe.RandomizedResponse(0.7).composed(30),
    "mixture": pe.GaussianMixtureMechanism(1.0, [0, 1, 3], ["0.7", "0.2", "0.1"]),
    "generic": pe.GenericMechanism(1.0, 1e-9).composed(20),
    "nearly nothing": pe.GaussianMechanism(1e6).poisson_sampled(1e-6),
}
DELTAS = [1e-250, 1e-60, 1e-12, 1e-7, 1e-3, 0.1]


BOUNDED = ("laplace", "response", "generic")  # losses, of which profiles are exact sums


class Counted(ComposedLaw):
    """A law that lists the sizes of the arrays of ε at which its profile is asked for."""

    def __init__(self, law: ComposedLaw, sizes: list[int]) -> None:
        self.law, self.sizes = law, sizes

    def support(self) -> tuple[float, float]:
        return self.law.support()

    def lowest(self) -> tuple[float, float]:
        return self.law.lowest()

    def alone(self) -> tuple[float, float, float]:
        return self.law.alone()

    def tails(self, c: Any) -> Tails:
        return self.law.tails(c)

    def profile(self, epsilon: Any) -> Any:
        self.sizes.append(epsilon.size)
        return self.law.profile(epsilon)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the arrays of ε at which profiles are asked for."""
    sizes: list[int] = []

    def counted(self: ThresholdQuestions) -> LawProfile:
        return LawProfile(Counted(self.law, sizes))

    monkeypatch.setattr(ThresholdQuestions, "_profile", property(counted))
    return sizes


@pytest.mark.parametrize("name", RUNS)
def test_few_profiles_are_asked(name: str, asked: list[int]) -> None:
    method = "exact" if name in BOUNDED else "lattice"
    for delta in DELTAS[2:]:
        asked.clear()
        pe.epsilon(RUNS[name], delta, adjacency="add", method=method, bounds=True)
        assert 1 <= len(asked) <= 16  # halving takes 58 and more


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("delta", DELTAS)
def test_next_to_the_largest_loss_no_more_are_asked(
    name: str, delta: float, asked: list[int]
) -> None:
    pe.epsilon(RUNS[name], delta, adjacency="add", method="exact", bounds=True)
    assert len(asked) <= 16  # as many as δ has zeros, and more, where brackets are halved


@pytest.mark.parametrize("steps", [1, 3, 10, 400])
def test_orders_that_are_one_law_are_asked_once(steps: int, asked: list[int]) -> None:
    mechanism = pe.LaplaceMechanism(3.0).composed(steps)
    of_both, counts = {}, {}
    for adjacency in ("add", "add_remove"):
        asked.clear()
        words = {"adjacency": adjacency, "method": "exact", "bounds": True}
        of_both[adjacency] = [
            pe.epsilon(mechanism, 1e-6, **words),
            pe.delta(mechanism, 0.5, **words),
            pe.gamma_bound(mechanism, 0.1, **words),
        ]
        counts[adjacency] = len(asked)
    assert of_both["add"] == of_both["add_remove"]
    assert counts["add"] == counts["add_remove"]


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_profiles_confirm_the_bounds(name: str, adjacency: str) -> None:
    run, words = RUNS[name], {"adjacency": adjacency, "bounds": True}
    lower, value, upper = pe.epsilon(run, DELTAS, **words)
    assert np.all((lower <= value) & (value <= upper))
    for low, high, delta in zip(lower, upper, DELTAS, strict=True):
        if low > 0.0:  # as close to the change as doubles show
            assert pe.delta(run, low * (1.0 - 1e-14), **words).upper >= delta
        if high < np.inf:
            assert pe.delta(run, high * (1.0 + 1e-14), **words).lower <= delta


Truth = Callable[[Any], Any]  # the profile at ε
DIGITS = 120


def finite_run(rng: np.random.Generator) -> tuple[pe.Mechanism, Truth]:
    """Random vectors of probabilities, some of them 0, composed with themselves."""
    size = int(rng.integers(2, 5))
    laws = [[Fraction(float(x) ** 3) for x in rng.random(size)] for _ in range(2)]
    for law, zero in zip(laws, rng.random(2) < 0.4, strict=True):
        law[0] *= not zero
    p, q = ([x / sum(law) for x in law] for law in laws)
    steps = int(rng.integers(1, 5))
    outcomes = product((vectors(p, q), steps))
    return (
        pe.from_probabilities(p, q).composed(steps),
        lambda epsilon: profile(outcomes, mpmath.exp(epsilon)),
    )


def laplace_run(rng: np.random.Generator) -> tuple[pe.Mechanism, Truth]:
    """Laplace steps, whose loss is a mixture of shifted Irwin-Hall laws."""
    mu, steps = Fraction(float(10.0 ** rng.uniform(-3.0, 1.0))), int(rng.integers(1, 7))
    unit = [np.polynomial.Polynomial(x) for x in ([1, 1], [1, -1])]

    def below(count: int, rate: Any, x: Any) -> Any:
        """The integral of y^(count - 1) e^(-rate y)/(count - 1)! over (0, x)."""
        part = mpmath.fsum((rate * x) ** i / mpmath.factorial(i) for i in range(count))
        return (1 - mpmath.exp(-rate * x) * part) / rate**count

    def truth(epsilon: Any) -> Any:
        ratio = number(mu)
        y, weight = (steps - epsilon / ratio) / 2, mpmath.exp(epsilon - steps * ratio)
        total = mpmath.mpf(0)
        for count in range(steps + 1):
            places = (unit[0] ** (steps - count) * unit[1] ** count).coef
            for place, of_place in enumerate(places):
                if place >= y:
                    continue
                masses = [
                    mpmath.exp(sign * ratio * place)
                    * (below(count, -sign * ratio, y - place) if count else 1)
                    for sign in (-1, 1)
                ]
                share = math.comb(steps, count) * ratio**count * int(of_place)
                total += share * (masses[0] - weight * masses[1])
        return total / mpmath.mpf(2) ** steps

    return pe.LaplaceMechanism(1 / mu).composed(steps), truth


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("draw", [finite_run, laplace_run])
def test_the_truth_lies_between_the_bounds(
    draw: Callable[[np.random.Generator], tuple[pe.Mechanism, Truth]], seed: int
) -> None:
    """Anywhere, and at deltas beside those of ε = 0 and of infinite losses, and next to 0."""
    rng = np.random.default_rng([20261128, seed])
    words = {"adjacency": "add", "method": "exact"}
    with mpmath.workdps(DIGITS):
        run, truth = draw(rng)
        ends = [pe.delta(run, end, **words) for end in (0.0, math.inf)]
        near = [end * (1.0 + x) for end in ends for x in (0.0, 2e-16, -2e-16, 1e-9, -1e-9, -1e-3)]
        anywhere = [*10.0 ** -rng.uniform(0.0, 15.0, 8), 10.0 ** -rng.uniform(15.0, 320.0)]
        deltas = np.clip([*near, *anywhere, rng.random(), 0.0, 5e-324, 1.0], 0.0, 1.0)
        found = pe.epsilon(run, deltas, **words, bounds=True)
        for delta, lower, value, upper in zip(deltas, *found, strict=True):
            assert lower <= value <= upper
            if lower > 0.0:
                far = truth(mpmath.mpf(float(lower) if lower < math.inf else 1e9))
                assert far >= float(delta), (delta, lower)
            if upper < math.inf:
                assert truth(mpmath.mpf(float(upper))) <= float(delta), (delta, upper)


def test_losses_below_the_doubles_are_bounded_safely() -> None:
    run = pe.GaussianMechanism(1e290).poisson_sampled(1e-9)
    with np.errstate(all="ignore"):
        lower, value, upper = pe.epsilon(run, [0.3, 1e-5], method="exact", bounds=True)
    assert np.all(lower <= 0.0)
    assert np.all(upper >= 0.0)
    assert np.all((lower <= value) & (value <= upper))


def test_losses_beyond_the_doubles_are_refused() -> None:
    run = pe.GaussianMixtureMechanism(1e-160, [0, 1], ["0.5", "0.5"])
    with pytest.raises(pe.AccuracyError, match="leaves the range of doubles"):
        pe.epsilon(run, 1e-5, method="exact", bounds=True)
