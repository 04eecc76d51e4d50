"""The hull of both orders against exact rational arithmetic."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from outcomes import chain, corners, height, product, vectors

import pyengine as pe

Masses = list[Fraction]


def judge(a: Masses, b: Masses, steps: int, alpha: list[float]) -> None:
    """Both errors lie between their bounds, and have the digits of doubles."""
    points = corners(product((vectors(a, b, Fraction), steps)))
    both = chain(points + [(y, x) for x, y in points])
    mechanism = pe.from_probabilities(a, b).composed(steps)
    beta = pe.trade_off(mechanism, alpha, bounds=True)
    gamma = pe.gamma_bound(mechanism, alpha, adjacency="add_remove", bounds=True)
    for i, x in enumerate(alpha):
        truth = height(both, Fraction(x))
        for found, exact in ((beta, truth), (gamma, 1 - truth)):
            lower, value, upper = (Fraction(float(part[i])) for part in found)
            assert lower <= exact <= upper, (a, b, steps, x)
            assert abs(value - exact) <= Fraction(1, 10**12) * exact, (a, b, steps, x)


def test_the_default_adjacency_keeps_the_digits_of_the_tail() -> None:
    a = [Fraction(x) for x in ("6/41", "19/41", "1/82", "31/82")]
    b = [Fraction(x) for x in ("33/97", "23/97", "23/97", "18/97")]
    judge(a, b, 3, [0.9999999843432141, 1e-12, 1e-8, 1e-3, 0.3, 0.9, 1.0 - 2.0**-53, 0.0, 1.0])


@pytest.mark.parametrize("seed", range(12))
def test_random_pairs(seed: int) -> None:
    rng = random.Random(seed)
    size, steps = rng.randint(2, 5), rng.randint(1, 3)
    weights = (
        (lambda: rng.choice([1, 2, 5, 30, 10**4, 10**8]))
        if seed % 2
        else (lambda: rng.randint(1, 40))
    )
    a, b = ([Fraction(weights()) for _ in range(size)] for _ in range(2))
    a, b = ([x / sum(law) for x in law] for law in (a, b))
    alpha = [10 ** rng.uniform(-18, 0) for _ in range(3)]
    alpha += [1.0 - 10 ** rng.uniform(-15, 0) for _ in range(3)] + [rng.random(), 0.0, 1.0]
    judge(a, b, steps, alpha)


def test_masses_that_one_law_alone_shows() -> None:
    half, third = Fraction(1, 2), Fraction(1, 3)
    judge([half, half, 0 * half], [0 * half, third, 2 * third], 2, [0.0, 1e-9, 0.1, 0.3, 0.5])


def test_hull_of_a_symmetric_pair_is_the_pair() -> None:
    mechanism = pe.LaplaceMechanism(1.3).composed(4)
    alpha = np.array([1e-9, 1e-3, 0.2, 0.7, 1.0 - 1e-9])
    both = pe.trade_off(mechanism, alpha, bounds=True)
    one = pe.trade_off(mechanism, alpha, adjacency="add", bounds=True)
    assert both.value == pytest.approx(one.value, rel=1e-12)
    assert np.all(both.lower <= one.upper)
    assert np.all(one.lower <= both.upper)
