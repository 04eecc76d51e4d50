"""Brackets, valleys, hulls of points and sampled ratios, each against what is known of it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest

from pyengine.numerics.bracketing import bisected, falling_bracket, falling_root
from pyengine.numerics.exact_numbers import (
    as_decimal,
    in_two_doubles,
    log_of_rest,
    root_in_two_doubles,
    two_doubles,
)
from pyengine.numerics.golden_section import lowest
from pyengine.numerics.point_hull import lower_hull
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.sampled_loss import sampled_loss


@pytest.mark.parametrize("ends", [(0.0, 5.0), (5.0, 0.0)])
def test_brackets_close_to_neighbouring_doubles(ends: tuple[float, float]) -> None:
    rng = np.random.default_rng(1)
    places = 5.0 * 10.0 ** rng.uniform(-300.0, 0.0, 200)
    first, second = bisected(
        lambda x: (x <= places) == (ends[0] == 0.0), *(np.full(200, end) for end in ends)
    )
    low, high = np.minimum(first, second), np.maximum(first, second)
    assert (low <= places).all()
    assert (places < high).all()
    assert (np.nextafter(low, np.inf) == high).all()


def test_brackets_stop_where_they_are_told() -> None:
    asked = []

    def reaches(x: float) -> bool:
        asked.append(float(x))
        return x < 0.3

    low, high = bisected(reaches, 0.0, 1.0, rounds=3)
    assert (float(low), float(high), asked) == (0.25, 0.375, [0.5, 0.25, 0.375])
    low, high = bisected(reaches, 0.0, 1.0, is_close=lambda a, b: b - a <= 0.5)
    assert (float(low), float(high)) == (0.0, 0.5)
    # one bracket is done before the other, and stays
    low, high = bisected(lambda x: x < np.array([0.3, 0.3]), [0.0, 0.25], [1.0, 0.5], rounds=1)
    assert (low.tolist(), high.tolist()) == ([0.0, 0.25], [0.5, 0.375])


def test_roots_of_falling_functions() -> None:
    rng = np.random.default_rng(2)
    roots, power = rng.uniform(0.1, 9.0, 300), rng.integers(1, 8, 300)
    found = falling_root(
        lambda x: np.sign(roots - x) * np.abs(roots - x) ** power, np.zeros(300), np.full(300, 10.0)
    )
    # right ends of brackets of two units, where no power underflows
    assert (found >= roots).all()
    assert (found - roots <= 8.0 * UNIT * roots).all()


def test_brackets_of_falling_functions_that_are_not_asked_at_their_ends() -> None:
    """As slopes of trade-off functions are: smooth below levels that are not known, or a jump."""
    rng = np.random.default_rng(4)
    roots = -(10.0 ** rng.uniform(-3.0, 2.8, 300))
    asked = []

    def smooth(x: np.ndarray) -> np.ndarray:
        asked.append(x)
        return np.sqrt(-x) - np.sqrt(-roots)

    def jump(x: np.ndarray) -> np.ndarray:
        return np.where(x < roots, np.inf, -1.0)

    for function in (smooth, jump):
        low, high = falling_bracket(function, np.full(300, -745.0), np.zeros(300))
        unit = UNIT * np.abs(roots)  # square roots of neighbours may be equal
        assert (low - 4.0 * unit <= roots).all()
        assert (roots <= high + 4.0 * unit).all()
        assert (high - low <= 8.0 * unit).all()
    assert all(((x > -745.0) & (x < 0.0)).all() for x in asked)
    assert len(asked) < 40  # halving takes 53


@pytest.mark.parametrize("search", [falling_root, falling_bracket])
def test_a_bracket_does_not_depend_on_its_neighbours(search: Any) -> None:
    rng = np.random.default_rng(6)
    roots, power = 10.0 ** rng.uniform(-9.0, 0.9, 60), rng.uniform(0.2, 7.0, 60)
    roots[:5] = 0.5, 0.25, 2.0, 4.0, 8.0  # exact zeros are met on the way

    def function(which: Any) -> Any:
        return lambda x: roots[which] ** power[which] - x ** power[which]

    low, high = np.zeros(60), np.full(60, 8.0)
    together = np.atleast_2d(search(function(slice(None)), low, high))
    for i in range(60):
        alone = np.atleast_2d(search(function(slice(i, i + 1)), low[:1], high[:1]))
        assert (together[:, i] == alone[:, 0]).all()


def test_valleys_to_half_of_the_digits_and_their_depths_to_all() -> None:
    rng = np.random.default_rng(3)
    at, depth = rng.uniform(-3.0, 3.0, 200), rng.uniform(0.5, 2.0, 200)
    x, value = lowest(
        lambda x: depth + (x - at) ** 2, np.full(200, -4.0), np.full(200, 5.0), rounds=70
    )
    # a rounding of the value hides (x - at)^2 below it
    assert (np.abs(x - at) <= 4.0 * np.sqrt(UNIT * depth)).all()
    assert (np.abs(value - depth) <= 4.0 * UNIT * depth).all()


def test_valleys_beside_a_plateau() -> None:
    def height(x: np.ndarray) -> np.ndarray:
        return np.where(x < 0.0, 1.0, (x - 2.0) ** 2)

    ends = np.array([-10.0]), np.array([3.0])
    left, _ = lowest(height, *ends, rounds=60)
    right, value = lowest(height, *ends, rounds=60, on_plateau=lambda x: x > 0.0)
    assert left[0] < 0.0
    assert value[0] <= UNIT
    assert right[0] == pytest.approx(2.0, abs=math.sqrt(UNIT))
    seen: list[float] = []
    lowest(
        lambda x: seen.append(1.0) or (x - 1.0) ** 2,  # type: ignore[func-returns-value]
        np.zeros(1),
        np.full(1, 3.0),
        rounds=60,
        is_close=lambda low, high: high - low < 0.5,
    )
    assert len(seen) == 6  # two at first, and four that shrink 3 to below 1/2


def test_hulls_are_convex_below_all_points_and_through_some() -> None:
    rng = np.random.default_rng(4)
    points = sorted(
        (Fraction(int(x), 50), Fraction(int(y), 50)) for x, y in rng.integers(0, 50, (400, 2))
    )
    hull = lower_hull(points)
    assert set(hull) <= set(points)
    assert hull[0] == points[0]
    assert hull[-1][0] == points[-1][0]
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in pairwise(hull)]
    assert all(s < t for s, t in pairwise(slopes))
    for (a, b), (c, _), slope in zip(hull, hull[1:], slopes, strict=False):
        assert all(y >= b + slope * (x - a) for x, y in points if a <= x <= c)
    floats = lower_hull((float(x), float(y)) for x, y in points)
    assert floats == [(float(x), float(y)) for x, y in hull]


def test_sampled_losses() -> None:
    """Within the error that the function states, over the whole domain."""
    rng = np.random.default_rng(5)
    for p in (1e-12, 0.01, 0.5, 1.0 - 1e-9, Fraction(1, 3)):
        loss = np.concatenate([rng.normal(0.0, 1.0, 60) * 10.0 ** rng.uniform(-12.0, 4.0, 60)])
        found = sampled_loss(p, loss)
        with mpmath.workdps(60):
            share = mpmath.mpf(Fraction(p).numerator) / Fraction(p).denominator
            for x, y in zip(loss, found, strict=True):
                truth = mpmath.log1p(share * mpmath.expm1(x))
                slope = share * mpmath.exp(x - truth)
                assert abs(y - truth) <= UNIT * (24.0 * abs(truth) + 2.0 * slope * abs(x))


def test_two_doubles_of_exact_numbers() -> None:
    for p in (Fraction(1, 3), Fraction(1, 10**20), Fraction(999, 1000)):
        with mpmath.workdps(50):
            truth = mpmath.log1p(-mpmath.mpf(p.numerator) / p.denominator)
            high, low = log_of_rest(p)
            assert abs(mpmath.mpf(high) + low - truth) <= 2.0**-104 * abs(truth)
            high, low = two_doubles(as_decimal(p))
            assert abs(mpmath.mpf(high) + low - mpmath.mpf(p.numerator) / p.denominator) <= (
                2.0**-104 * p
            )
    assert log_of_rest(1.0) == (-math.inf, 0.0)


def test_quotients_and_roots_of_integers_in_two_doubles() -> None:
    rng = np.random.default_rng(4)
    bits = rng.integers(1, 1200, (400, 2)).tolist()
    for i, (above, below) in enumerate(bits):
        a, b = (int(rng.integers(1, 2**53)) << size for size in (above, below))
        x = Fraction(a + i, b + 1)
        if not 2.0**-900 <= x <= 2.0**900:
            continue
        high, low = in_two_doubles(x)
        assert (high, low) == (float(x), float(x - Fraction(float(x))))
        high, low = root_in_two_doubles(x.numerator, x.denominator)
        root = Fraction(high) + Fraction(low)
        # (1 + e)^2 - 1 is at most 2.1 |e|
        assert abs(root**2 / x - 1) <= 2.1 * 2.0**-105
        assert abs(low) <= math.ulp(high) / 2.0
    assert in_two_doubles(0.1) == (0.1, 0.0)
    assert root_in_two_doubles(9 << 400, 1) == (3.0 * 2.0**200, 0.0)
    assert root_in_two_doubles(1, 4) == (0.5, 0.0)
