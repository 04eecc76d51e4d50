"""ε next to 0 of single Gaussian steps and plain ones: bounds with relative digits."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import pyengine as pe
from pyengine.engines.small_epsilon import DECIMALS, _SampledStep, small_epsilon

NONE = (1.0, 0.0)


def lost(mu: Any, p: Any, y: Any) -> Any:
    """What the profile of `remove` loses from ε = 0 to log(1 + y), from its definition."""
    inside = 1 + y / p
    z = mpmath.log(inside) / mu + mu / 2
    profile = p * (mpmath.ncdf(mu - z) - inside * mpmath.ncdf(-z))
    return p * (2 * mpmath.ncdf(mu / 2) - 1) - profile


def drawn(seed: int) -> tuple[Any, Any, Any]:
    """Shift, rate and epsilon."""
    rng = np.random.default_rng(seed)
    mu = math.exp(rng.uniform(math.log(0.02), math.log(7.5)))
    p = 1.0 if seed % 5 == 0 else math.exp(rng.uniform(math.log(1e-4), -0.05))
    return mu, p, math.exp(rng.uniform(math.log(1e-9), math.log(3e-3)))


@pytest.mark.parametrize("seed", range(60))
def test_bounds_hold_and_have_relative_digits(seed: int) -> None:
    """The δ is a double, and so is not quite that of the ε that was drawn."""
    mu, p, epsilon = drawn(seed)
    with mpmath.workdps(60):
        exact = mpmath.mpf(mu), mpmath.mpf(p)
        total = exact[1] * (2 * mpmath.ncdf(exact[0] / 2) - 1)
        delta = float(total - lost(*exact, mpmath.expm1(epsilon)))
        goal = total - mpmath.mpf(delta)
        if goal <= 0:
            pytest.skip("the double is that of 0")
        start = mpmath.expm1(epsilon)
        root = mpmath.findroot(lambda y: (lost(*exact, y) - goal) / goal, (start, start * 1.01))
        truth = mpmath.log1p(root)
        found = small_epsilon((mu, 0.0), (p, 0.0), delta, epsilon)
        if mpmath.log1p(start / exact[1]) / exact[0] + exact[0] / 2 > 7.9:
            return  # left to doubles
        assert found is not None
        assert found[1] <= truth <= found[2]
        assert found[1] <= found[0] <= found[2]
        # μ and p are known to 1e-28 of the profile at 0
        assert found[2] - found[1] <= 1e-15 * found[0]


@pytest.mark.parametrize("mu", [1e-6, 0.3, 2.0, 8.0])
def test_profiles_have_many_digits(mu: float) -> None:
    step = _SampledStep(Decimal(mu), Decimal("0.25"))
    for y in (0.0, 1e-9, 1e-3 * mu):
        with localcontext(DECIMALS):
            found = step.profile(Decimal(y))[0]
        with mpmath.workdps(80):
            p, z = mpmath.mpf("0.25"), mpmath.log1p(4 * mpmath.mpf(y)) / mu + mpmath.mpf(mu) / 2
            truth = p * mpmath.ncdf(mu - z) - (p + y) * mpmath.ncdf(-z)
            assert abs(mpmath.mpf(str(found)) - truth) < mpmath.mpf(10) ** -41


def test_what_is_large_is_left() -> None:
    assert small_epsilon(NONE, NONE, 0.1, 0.5) is None
    assert small_epsilon((9.0, 0.0), NONE, 0.1, 1e-5) is None
    assert small_epsilon(NONE, NONE, 0.9, 1e-5) is None


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_answers_are_closer(adjacency: str) -> None:
    """With a rate that is no double; under `add`, and for larger ε, as they were."""
    step = pe.dp_sgd(Fraction("0.9"), Fraction(3, 7), 1)
    at_zero = pe.delta(step, 0.0, adjacency=adjacency)
    delta = at_zero * (1.0 - np.geomspace(1e-8, 1e-3, 12))
    many = pe.epsilon(step, delta, adjacency=adjacency, bounds=True)
    for i, one in enumerate(delta.tolist()):
        found = pe.epsilon(step, one, adjacency=adjacency, bounds=True)
        assert (found.lower, found.value, found.upper) == tuple(
            part[i] for part in many_parts(many)
        )
        profile = pe.delta(step, found.value, adjacency=adjacency, bounds=True)
        assert profile.lower <= one <= profile.upper
    apart = (many.upper - many.lower) / many.value
    assert (apart.max() < 1e-10) == (adjacency != "add")


def many_parts(found: Any) -> tuple[Any, Any, Any]:
    return found.lower, found.value, found.upper
