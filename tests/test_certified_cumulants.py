"""Bounds of cumulants behind certified rows, asked of the C core itself.

No answer shows an error of theirs: aliases are below all digits where the period was chosen well,
and Chernoff's bounds end at the smallest double.
"""

from __future__ import annotations

import ctypes
from fractions import Fraction
from pathlib import Path

import numpy as np
from compiling import CERTIFIED, ROOT, compiled


def test_bound_of_plain_gaussian_steps(tmp_path: Path) -> None:
    """K(theta) is v theta (theta - 1) / 2, and the bound is above it by its allowance at most."""
    sources = [ROOT / "csrc" / f"{name}.c" for name in CERTIFIED]
    door = ROOT / "tests" / "c" / "doors" / "certified.c"
    bound = compiled(tmp_path / "door.so", [*sources, door]).door_gaussian_cumulant
    bound.restype, bound.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    rng = np.random.default_rng(1)
    for _ in range(1000):
        v, theta = float(10.0 ** rng.uniform(-6.0, 6.0)), float(rng.uniform(-30.0, 30.0))
        exact = Fraction(v) * Fraction(theta) * (Fraction(theta) - 1) / 2
        assert exact <= Fraction(bound(v, theta)) <= exact + abs(exact) / 10**11
    assert bound(1.0, 0.0) == bound(1.0, 1.0) == 0.0
