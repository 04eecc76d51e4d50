"""Sampling rates whose complement is no double: 1 - p is in every loss, with digits of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from outcomes import number

import pyengine as pe
from pyengine.api import answers

DIGITS = 60
RATES = (1 - Fraction(1, 3 * 10**15), 1 - Fraction(1, 10**20), 1 - Fraction(7, 10**30))
Cdf = Callable[[Any], Any]


def gaussian(mu: Any) -> Cdf:
    """Upper tail of N(0, 1) at z/μ, for places z in sensitivities."""
    return lambda z: mpmath.erfc(z * mu / mpmath.sqrt(2)) / 2


def laplace(mu: Any) -> Cdf:
    return lambda z: mpmath.exp(-mu * z) / 2 if z > 0 else 1 - mpmath.exp(mu * z) / 2


def log_ratio(kind: str, mu: Any) -> Callable[[Any, Any], Any]:
    """Log of the density around one centre over that around another, at z."""
    if kind == "gaussian":
        return lambda z, centre: mu * mu * (z * centre - centre * centre / 2)
    return lambda z, centre: mu * (abs(z) - abs(z - centre))


def profile(kind: str, mu: Any, p: Any, with_: tuple[Any, ...], epsilon: Any) -> Any:
    """H_{e^ε} of mixtures (1 - p) P(0) + p P(centre); a centre of 0 leaves P(0) alone.

    The loss grows from the centre of the one to that of the other.
    """
    tail = gaussian(mu) if kind == "gaussian" else laplace(mu)
    ratio = log_ratio(kind, mu)
    first, second = with_

    def loss(z: Any) -> Any:  # of the first law over the second
        a = (1 - p) + p * mpmath.exp(ratio(z, first)) if first else mpmath.mpf(1)
        b = (1 - p) + p * mpmath.exp(ratio(z, second)) if second else mpmath.mpf(1)
        return mpmath.log(a / b)

    low, high = mpmath.mpf(-10000), mpmath.mpf(10000)
    if first < second:  # the loss falls with z
        low, high = high, low
    for _ in range(230):
        middle = (low + high) / 2
        low, high = (low, middle) if loss(middle) > epsilon else (middle, high)
    sign = 1 if first > second else -1

    def mass(centre: Any) -> Any:
        return tail(sign * (high - centre))

    a = (1 - p) * mass(0) + p * mass(first) if first else mass(0)
    b = (1 - p) * mass(0) + p * mass(second) if second else mass(0)
    return a - mpmath.exp(epsilon) * b


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_single_steps(kind: str, rate: Fraction) -> None:
    noise = Fraction("0.15") if kind == "gaussian" else Fraction("0.03")
    plain = pe.GaussianMechanism(noise) if kind == "gaussian" else pe.LaplaceMechanism(noise)
    mechanism = plain.poisson_sampled(rate)
    asked = [
        ("substitute", (1, -1), 25.0),
        ("substitute", (1, -1), 3.0),
        ("add", (0, 1), 20.0),
        ("add", (0, 1), 30.0),
        ("remove", (1, 0), 12.0),
    ]
    with mpmath.workdps(DIGITS):
        mu, p = 1 / number(noise), number(rate)
        for adjacency, centres, epsilon in asked:
            truth = profile(kind, mu, p, tuple(map(mpmath.mpf, centres)), mpmath.mpf(epsilon))
            found = pe.delta(mechanism, epsilon, adjacency=adjacency, method="lattice", bounds=True)
            assert found.lower <= truth <= found.upper, (adjacency, epsilon, found, truth)
            assert found.upper - found.lower <= 1e-4 * truth + 1e-300


@pytest.mark.parametrize("rate", RATES)
def test_the_largest_loss(rate: Fraction) -> None:
    with mpmath.workdps(DIGITS):
        truth = -mpmath.log(1 - number(rate))
        for plain in (pe.GaussianMechanism("1/2"), pe.GenericMechanism(900.0, 0.0)):
            for method in ("auto", "lattice"):
                mechanism = plain.poisson_sampled(rate)
                found = pe.epsilon(mechanism, 0.0, adjacency="add", method=method, bounds=True)
                assert found.lower <= truth <= found.upper
                assert found.upper - found.lower < 1e-10


def test_cells_between_the_smallest_loss_and_the_others() -> None:
    """Where e^L is far below 1, neither it nor 1 - p is to be taken from 1."""
    from pyengine.laws.base import PoissonSampledLaw
    from pyengine.laws.gaussian import GaussianLaw

    rate = 1.0 - 2.0**-45
    law = PoissonSampledLaw(GaussianLaw(0.2), rate)
    with mpmath.workdps(DIGITS):
        p, mu = number(Fraction(rate)), mpmath.mpf(1) / mpmath.mpf(0.2)
        for above in (0.3, 0.6, 1.0, 3.0, 9.0):
            edge = float(mpmath.log(1 - p)) + above
            cells = law.cells(np.array([edge]))
            places = []
            for side in (-1, 1):
                inner = mpmath.log((mpmath.exp(edge + side * cells.shift[0]) - (1 - p)) / p)
                z = inner / mu + mu / 2
                places.append(mpmath.erfc(-z / mpmath.sqrt(2)) / 2)
            mass = mpmath.exp(mpmath.mpf(cells.log_a[0]))
            slack = 1 + 2 * mpmath.mpf(cells.error[0])
            assert places[0] / slack <= mass <= places[1] * slack
            assert cells.shift[0] < 1e-12


@pytest.mark.parametrize(
    "rate",
    [Fraction(1, 3), 1 - Fraction(1, 3 * 10**9), 1 - Fraction(1, 10**20), 0.3, 1e-12],
)
def test_the_largest_loss_of_several_gaussian_steps(rate: Fraction | float) -> None:
    """It has bounds, and they hold for the rate as it was given."""
    mechanism = pe.GaussianMechanism(1.0).poisson_sampled(rate).composed(7)
    with mpmath.workdps(DIGITS):
        truth = -7 * mpmath.log1p(-number(Fraction(rate)))
        for level in (0.0, np.array([0.0])):
            found = pe.epsilon(mechanism, level, adjacency="add", bounds=True)
            lower, upper = (float(np.ravel(x)[0]) for x in (found.lower, found.upper))
            assert lower < truth < upper
            assert upper - lower < 1e-14 * truth
        beside = float(truth)
        for epsilon in (beside, np.nextafter(beside, 0.0), np.nextafter(beside, 99.0)):
            left = pe.delta(mechanism, float(epsilon), adjacency="add", bounds=True)
            assert left.lower == 0.0
            assert epsilon >= truth or left.upper > 0.0


def test_the_largest_loss_is_proven() -> None:
    """Questions at the ends say that their bounds are proven, and no rate is rounded to 1."""
    near_one = pe.GaussianMechanism(1.0).poisson_sampled(1 - Fraction(1, 10**20)).composed(7)
    for mechanism in (pe.dp_sgd(1.0, 0.3, 5), near_one):
        for adjacency in ("add", "remove", "add_remove"):
            bounds, _, certified = answers("epsilon", mechanism, [0.0], adjacency=adjacency)
            assert certified == [True]
            assert math.isfinite(bounds.upper[0]) == (adjacency == "add")
        largest = float(answers("epsilon", mechanism, [0.0], adjacency="add")[0].upper[0])
        beyond, _, certified = answers("delta", mechanism, [largest, 400.0], adjacency="add")
        assert certified == [True, True]
        assert not beyond.upper.any()
