"""Discrete noise of several kinds whose losses are multiples of one spacing."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import pyengine as pe
from pyengine.engines.exact import finite
from pyengine.engines.exact.finite import FiniteComposition, composition
from pyengine.laws.composition import composition_law

CENSUS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)


def noise(variance: float) -> Any:
    return pe.DiscreteGaussianMechanism(math.sqrt(variance))


def census(parts: Any) -> Any:
    """Noise of the variances 100/m: losses are odd multiples of m/200."""
    steps = [noise(100.0 / m) for m in parts]
    return pe.compose(*steps)


def direct(parts: Any) -> tuple[Any, Any]:
    """Losses and A's masses of the same by NumPy's convolutions on the lattice of 1/200."""
    least, masses = 0, np.ones(1)
    for m in parts:
        reach = math.ceil(math.sqrt(1400.0 * 100.0 / m))
        k = np.arange(-reach, reach + 1)
        weight = np.exp(-k * k * m / 200.0)
        one = np.zeros(4 * reach * m + 1)
        one[2 * m * (k + reach)] = weight / weight.sum()
        least += m * (-2 * reach - 1)
        masses = np.convolve(masses, one)
    return (least + np.arange(masses.size)) / 200.0, masses


@pytest.mark.parametrize("parts", [(1, 2, 3), CENSUS])
def test_a_dozen_kinds_have_eleven_digits(parts: tuple[int, ...]) -> None:
    mechanism = census(parts)
    loss, mass = direct(parts)
    for epsilon in (0.0, 0.3, 2.0):
        truth = float((mass * -np.expm1(np.minimum(epsilon + loss, 0.0))).sum())
        found, engines, proven = pe.api.answers("delta", mechanism, [epsilon], adjacency="add")
        assert (engines, proven) == (["exact"], [True])
        lower, upper = float(found.lower[0]), float(found.upper[0])
        assert lower * (1.0 - 1e-12) <= truth <= upper * (1.0 + 1e-12)
        assert upper - lower <= 1e-10 * upper


def parted(mechanism: Any, monkeypatch: pytest.MonkeyPatch, few: int) -> FiniteComposition:
    """The composition with a lattice looked for from so many products on."""
    monkeypatch.setattr(finite, "FEW_PRODUCTS", few)
    return composition(composition_law(mechanism, "add"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "mechanism",
    [
        noise(4.0) + noise(2.0) + noise(1.0),
        noise(9.0).composed(5),
        noise(6.25) + pe.DiscreteLaplaceMechanism(2),
    ],
    ids=["three", "equal", "beside Laplace"],
)
def test_sums_on_a_lattice_are_those_of_all_products(
    mechanism: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, on_lattice = (parted(mechanism, monkeypatch, few) for few in (1 << 24, 800))
    c = np.linspace(-9.0, 9.0, 41) + 0.0123
    first, second = every.tails(c), on_lattice.tails(c)
    for one, other in zip(first[:4], second[:4], strict=True):
        assert (np.abs(one - other) <= first.error * one + second.error * other + 1e-305).all()
    assert second.error.max() < 1e-9
    epsilon = np.concatenate([np.linspace(0.0, 12.0, 25), -every._loss[every._loss <= 0.0][:40]])
    value, error, _ = every.profile(epsilon)
    other, off, _ = on_lattice.profile(epsilon)
    assert (np.abs(value - other) <= error + off).all()
    assert (off[:20] <= 1e-9 * other[:20]).all()


@pytest.mark.parametrize("apart", [1e-3, 1e-9, 1e-14])
def test_next_to_the_largest_loss_lattices_keep_its_digits(apart: float) -> None:
    """There the profile is one mass times 1 - e^(ε - largest loss)."""
    steps = 100
    mechanism = pe.compose(
        *(pe.DiscreteLaplaceMechanism(scale).composed(steps) for scale in (3, 6))
    )
    with mpmath.workdps(40):
        end = mpmath.mpf(steps) / 3 + mpmath.mpf(steps) / 6
        epsilon = float(end) * (1.0 - apart)
        ends = (1 + mpmath.exp(-mpmath.mpf(1) / scale) for scale in (3, 6))
        truth = mpmath.fprod(x**-steps for x in ends) * -mpmath.expm1(epsilon - end)
    law = composition(composition_law(mechanism, "add"))  # type: ignore[arg-type]
    assert law.size < (steps + 1) ** 2 // 8  # on a lattice
    found = pe.delta(mechanism, epsilon, adjacency="add", bounds=True)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1e-10 * found.upper


def test_losses_that_are_off_are_in_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spacing that is wrong by what is allowed moves losses, and bounds say by how much."""
    spacing = finite._spacing
    monkeypatch.setattr(finite, "_spacing", lambda x, y: spacing(x, y) * (1.0 + 2e-15))
    mechanism = noise(4.0) + noise(2.0) + noise(1.0)
    every, on_lattice = (parted(mechanism, monkeypatch, few) for few in (1 << 24, 800))
    epsilon = np.linspace(0.0, 9.0, 30)
    value = every.profile(epsilon).value
    other, off, _ = on_lattice.profile(epsilon)
    apart = np.abs(value - other)
    assert (apart <= off).all()
    assert (apart > 1e-14 * value).any()  # so that bounds without them would fail


def test_spacings_without_a_common_one_are_left_to_the_lattice() -> None:
    mechanism = noise(100.0) + noise(99.8001) + noise(97.123)
    _, engines, _ = pe.api.answers("delta", mechanism, [0.3], adjacency="add")
    assert engines == ["lattice"]
