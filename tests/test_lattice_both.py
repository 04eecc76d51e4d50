"""Hull of both orders where both errors are small, against sums of normal distributions."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from thorough import some

import pyengine as pe


def _overlap(mu: float, p: list[float], q: list[float], c: mpmath.mpf) -> mpmath.mpf:
    """∫ min(dA, e^-c dB) of finite outcomes beside one normal step."""
    total = mpmath.mpf(0)
    for a, b in zip(p, q, strict=True):
        # A has the smaller share where log b/a + μx - μ²/2 > c
        edge = (c - mpmath.log(mpmath.mpf(b) / a)) / mu + mpmath.mpf(mu) / 2
        total += a * mpmath.ncdf(-edge) + mpmath.exp(-c) * b * mpmath.ncdf(edge - mu)
    return total


def _hull(mu: float, p: list[float], q: list[float], alpha: float) -> mpmath.mpf:
    """The largest line below both curves at α, by golden section: in its slope it is concave."""

    def line(c: mpmath.mpf) -> mpmath.mpf:
        least = min(_overlap(mu, p, q, c), _overlap(mu, q, p, c))
        return mpmath.exp(c) * (least - alpha)

    high = mpmath.mpf(mu) ** 2 / 2 + 8 * mu
    low = -high
    ratio = (mpmath.sqrt(5) - 1) / 2
    for _ in range(80):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if line(left) > line(right) else (left, high)
    return line((low + high) / 2)


@pytest.mark.parametrize("seed", some(range(8), 2))
def test_hull_where_both_errors_are_small(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mu = 1.0 / float(2.0 ** rng.integers(-4, -1))
    p = rng.uniform(0.05, 1.0, 3)
    q = p * (1.0 + 10.0 ** rng.uniform(-6.0, -0.5) * rng.uniform(-1.0, 1.0, 3))
    p, q = ([float(round(x * 4096)) / 4096 for x in y / y.sum()] for y in (p, q))
    p[0], q[0] = 1.0 - p[1] - p[2], 1.0 - q[1] - q[2]
    mechanism = pe.compose(
        pe.GaussianMechanism(1.0 / mu),
        pe.from_probabilities(p, q),
    )
    alpha = float(10.0 ** rng.uniform(-9.0, -0.5))
    found = pe.trade_off(mechanism, alpha, method="lattice", bounds=True)
    with mpmath.workdps(60):
        truth = _hull(mu, p, q, alpha)
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= 2.1e-4 * found.upper
