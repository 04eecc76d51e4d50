"""Proven brackets at levels on and beside the corners of trade-off functions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import fuzz_levels
import numpy as np
import pytest
from error_budget import check
from outcomes import corners, height, vectors
from thorough import some

import pyengine as pe


def test_random_levels() -> None:
    widths = []
    for case in fuzz_levels.cases(120, 101):
        found = fuzz_levels.ask(case)
        assert found.held, (case, found)
        widths.append(found.width)
    # wide only where the next slope is far steeper and the level cannot be told from the corner
    check("exact.levels_median_width", float(np.median(widths)))


def corner_of(p: list[str], q: list[str]) -> tuple[pe.Mechanism, list[tuple[Fraction, Fraction]]]:
    pairs = vectors(p, q, Fraction)
    return pe.from_probabilities(p, q), corners(pairs)


@pytest.mark.parametrize("ulps", some(range(-3, 4), 3))
@pytest.mark.parametrize(
    ("p", "q"),
    [
        # slopes 6e11 and 0.4 meet at a level that no double is
        (["1e-12", "0.6", "0.399999999999"], ["0.6", "0.3", "0.1"]),
        (["0.1", "0.3", "0.6"], ["0.9", "0.0999999999999999999", "1e-19"]),
        (["1/3", "1/3", "1/3"], ["0.999999", "0.000000999999999", "1e-15"]),
    ],
)
def test_beside_a_corner(p: list[str], q: list[str], ulps: int) -> None:
    mechanism, points = corner_of(p, q)
    for corner, _ in points[1:-1]:
        alpha = float(corner)
        for _ in range(abs(ulps)):
            alpha = float(np.nextafter(alpha, np.sign(ulps) * np.inf))
        truth = height(points, Fraction(alpha))
        for method in ("exact", "lattice"):
            beta = pe.trade_off(mechanism, alpha, adjacency="add", method=method, bounds=True)
            assert Fraction(beta.lower) <= truth <= Fraction(beta.upper)
            gamma = pe.gamma_bound(mechanism, alpha, adjacency="add", method=method, bounds=True)
            assert Fraction(gamma.lower) <= 1 - truth <= Fraction(gamma.upper)


def test_inside_an_atom_brackets_are_narrow() -> None:
    mechanism, points = corner_of(["0.25", "0.25", "0.5"], ["0.7", "0.2999", "0.0001"])
    alpha = np.array([0.01, 0.2, 0.3, 0.45, 0.6, 0.999])
    for ask in (pe.trade_off, pe.gamma_bound):
        found = ask(mechanism, alpha, adjacency="add", bounds=True)
        truth = [height(points, Fraction(a)) for a in alpha]
        truth = [float(x if ask is pe.trade_off else 1 - x) for x in truth]
        assert np.allclose(found.value, truth, rtol=2e-15, atol=0.0)
        widths = (found.upper - found.lower) / truth
        check(f"exact.inside_{ask.__name__}", float(widths.max()))


def test_nearly_all_of_a_law_is_out_of_reach() -> None:
    """Masses that round to 1 at infinite losses leave the finite ones their digits."""
    left = Fraction(1, 10**25)
    mechanism = pe.from_probabilities([0, 1], [1 - left, left]).composed(2)
    alpha, share = 3e-26, Fraction(1, 4)
    hidden = pe.trade_off(mechanism, 0.0, adjacency="add", bounds=True)
    assert hidden.lower <= left**2 <= hidden.upper <= float(left**2) * (1 + 1e-12)
    found = pe.trade_off(mechanism, float(left**2 * share), adjacency="remove", bounds=True)
    assert found.lower <= 1 - share <= found.upper < float(1 - share) * (1 + 1e-12)
    assert pe.trade_off(mechanism, alpha, adjacency="remove") < 1e-300


def test_a_level_whose_complement_is_rounded() -> None:
    """1 - α has a few digits only of a small level at which β reaches 0."""
    p, q = ["9999999999/10000000000", "1/10000000000"], ["0", "1"]
    mechanism, alpha = pe.from_probabilities(p, q), 1e-10 * (1 - 1e-7)
    found = pe.trade_off(mechanism, alpha, adjacency="add", bounds=True)
    truth = 1 - Fraction(alpha) * 10**10
    assert Fraction(found.lower) <= truth <= Fraction(found.upper)
    assert abs(found.value / float(truth) - 1) < 1e-7


def test_beta_between_two_doubles_at_its_largest() -> None:
    """1 - α is rounded; β may lie between that and 1 - α itself."""
    mechanism = pe.dp_sgd(0.2255304212833306, 0.0006490157215432952, 1)
    alpha = 2.249140653744654e-14
    gamma = pe.gamma_bound(mechanism, alpha, adjacency="remove", method="lattice")
    beta = pe.trade_off(mechanism, alpha, adjacency="remove", method="lattice", bounds=True)
    assert Fraction(beta.lower) <= 1 - Fraction(gamma) <= Fraction(beta.upper)


@pytest.mark.parametrize("adjacency", ["add", "add_remove"])
@pytest.mark.parametrize(
    "mechanism",
    [
        pe.LaplaceMechanism(1e17).composed(3),
        pe.LaplaceMechanism(1e16).poisson_sampled(0.1),
        pe.ExponentialMechanism(1e-16).composed(3),
    ],
)
def test_losses_below_the_rounding_of_thresholds(mechanism: pe.Mechanism, adjacency: str) -> None:
    """The ends of the losses are nearer to each other than thresholds are searched."""
    alpha = np.array([1e-9, 0.01, 0.3, 0.5, 0.7, 0.99])
    found = pe.trade_off(mechanism, alpha, adjacency=adjacency, method="exact", bounds=True)
    assert np.all(found.lower <= 1.0 - alpha)
    assert np.all(found.upper >= (1.0 - alpha) * (1.0 - 1e-15))
    assert np.all(found.upper - found.lower <= 1e-14)


@pytest.mark.parametrize("scale", [2.0**-60, 1e-20, 1e-60, 1e-300])
@pytest.mark.parametrize("level", [1e-9, 0.5, 0.999])
def test_masses_that_may_be_wrong_by_more_than_themselves(scale: float, level: float) -> None:
    """Losses of 1/scale are rounded by more than 1: nothing but the certain bounds is left."""
    p = 0.1635
    step = pe.LaplaceMechanism(scale).poisson_sampled(p)  # two laws that are told apart
    largest = {"add": level + p * (1.0 - level), "remove": min(level / (1.0 - p), 1.0)}
    for order, gamma in largest.items():
        how: Any = {"adjacency": order, "bounds": True}
        found, beta = pe.gamma_bound(step, level, **how), pe.trade_off(step, level, **how)
        assert found.lower <= gamma * (1.0 + 1e-15)
        assert found.upper >= gamma * (1.0 - 1e-15)
        assert beta.lower <= (1.0 - gamma) + 1e-15
        assert beta.upper >= (1.0 - gamma) - 1e-15


@pytest.mark.parametrize("scale", [1e20, 1e54, 1e60, 1e200])
@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_losses_below_the_digits_of_decimals(scale: float, adjacency: Any) -> None:
    """δ(0) is p (1 - e^(-1 / (2 scale))), next to p / (2 scale); it was proven to be 0."""
    p = 2.0**-20
    step = pe.LaplaceMechanism(scale).poisson_sampled(p)
    found = pe.delta(step, 0.0, adjacency=adjacency, bounds=True)
    assert found.lower <= p / (2.0 * scale) * (1.0 + 1e-15)
    assert found.upper >= p / (2.0 * scale) * (1.0 - 1e-15)
    assert found.upper - found.lower <= 1e-12 * found.upper
