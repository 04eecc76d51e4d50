"""Bounds of cumulants behind certified rows, asked of the C core itself.

No answer shows an error of theirs: aliases are below all digits where the period was chosen well,
and Chernoff's bounds end at the smallest double.
"""

from __future__ import annotations

import ctypes
from fractions import Fraction

import numpy as np
import pytest
from audits import core

import pyengine as pe
from pyengine.engines.functionals import PROFILE
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.row_bounds import LogBounds
from pyengine.engines.spectral import Spectral


def test_bound_of_plain_gaussian_steps() -> None:
    """K(theta) is v theta (theta - 1) / 2, and the bound is above it by its allowance at most."""
    bound = core().library.door_gaussian_cumulant
    bound.restype, bound.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    rng = np.random.default_rng(1)
    for _ in range(1000):
        v, theta = float(10.0 ** rng.uniform(-6.0, 6.0)), float(rng.uniform(-30.0, 30.0))
        exact = Fraction(v) * Fraction(theta) * (Fraction(theta) - 1) / 2
        assert exact <= Fraction(bound(v, theta)) <= exact + abs(exact) / 10**11
    assert bound(1.0, 0.0) == bound(1.0, 1.0) == 0.0


def test_exponent_of_profiles() -> None:
    """(1 - y) y^m is nowhere above m^m / (1 + m)^(1 + m), and touches it at m / (1 + m)."""
    exponent = core().library.door_chernoff_exponent
    exponent.restype, exponent.argtypes = ctypes.c_double, [ctypes.c_double]
    rng = np.random.default_rng(2)
    for m in 10.0 ** rng.uniform(-6.0, 6.0, 1000):
        y = np.append(rng.uniform(0.0, 1.0, 20) ** (1.0 / m), m / (1.0 + m))
        y = y[(y > 0.0) & (y < 1.0)]
        logs = np.log1p(-y) + m * np.log(y)
        assert logs.max() <= exponent(-m) + 1e-8
        assert exponent(-m) == pytest.approx(logs[-1], abs=1e-9)


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_bound_of_profiles(adjacency: str) -> None:
    """At 4 or 5 standard deviations Chernoff's bound is at most 30 times the profile."""
    for noise, rate, steps in ((1.0, 0.01, 1000), (0.8, 0.001, 10_000), (10.5, 0.08192, 1000)):
        lines = Spectral(GaussianPair((noise,), (rate,), (steps,), adjacency == "remove"))
        epsilon = np.array([4.0, 5.0]) * rate * np.sqrt(steps) / noise
        bound = LogBounds.of_rows(-epsilon, lines.chernoff(-epsilon)).values(PROFILE)[1]
        truth = pe.delta(pe.dp_sgd(noise, rate, steps), epsilon, adjacency=adjacency, bounds=True)
        assert (truth.upper <= bound).all()
        assert (bound <= 30.0 * truth.lower).all()
