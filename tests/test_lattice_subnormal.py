"""Answers of the lattice below the normal range of doubles, where exponentials have few digits."""

from __future__ import annotations

import pytest

import pyengine as pe

# β at α under "add" for plain Laplace steps: inversions of the closed transform along a line in 40
# digits by mpmath, where two spacings agreed.
CASES = [(0.6330113204101373, 1746, 9.97353808014609e-58, 1.74321103659821e-310)]


@pytest.mark.parametrize(("noise", "steps", "alpha", "truth"), CASES)
def test_bounds_hold_the_truth(noise: float, steps: int, alpha: float, truth: float) -> None:
    mechanism = pe.LaplaceMechanism(noise).composed(steps)
    found = pe.trade_off(mechanism, alpha, adjacency="add", method="lattice", bounds=True)
    assert found.lower <= truth <= found.upper


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_small_answers_agree_with_panels(adjacency: str) -> None:
    # polynomials on panels share no code with sums of masses
    mechanism = pe.LaplaceMechanism(0.6330113204101373).composed(1746)
    for fall in range(40, -12, -4):
        alpha = 9.97353808014609e-58 * 2.718281828459045**-fall
        sums = pe.trade_off(mechanism, alpha, adjacency=adjacency, method="lattice", bounds=True)
        panels = pe.trade_off(mechanism, alpha, adjacency=adjacency, bounds=True)
        assert sums.lower <= panels.upper
        assert panels.lower <= sums.upper


def test_profiles_far_down_agree_with_panels() -> None:
    mechanism = pe.LaplaceMechanism(0.6330113204101373).composed(1746)
    for delta in (1e-290, 1e-300, 1e-306, 1e-312, 1e-318):
        epsilon = pe.epsilon(mechanism, delta)
        sums = pe.delta(mechanism, epsilon, method="lattice", bounds=True)
        panels = pe.delta(mechanism, epsilon, bounds=True)
        assert sums.lower <= panels.upper
        assert panels.lower <= sums.upper
