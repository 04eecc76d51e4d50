"""Sums of lattice steps by one FFT: masses, and what lies outside the window, by convolution."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from pyengine.engines.lattice.fft_convolution import Sum, sum_of
from pyengine.engines.lattice.plan import Place, Plan, StepGrid

FloatArray = npt.NDArray[np.float64]

# two kinds of steps, neither symmetric, with zeros at their ends that are not of the support
KINDS = (
    np.array([0.0, 0.3, 1.0, 0.05, 0.0, 0.02, 0.0, 0.0]),
    np.array([0.01, 0.0, 0.5, 0.25, 0.0]),
)
STEPS, CENTRES, SCALES = (5, 3), (2, 1), (-0.25, 0.5)
TILT, SPACING = -0.5, 0.125


def truth() -> tuple[int, npt.NDArray[np.longdouble]]:
    """The first index of the sum, and its masses by repeated convolution in extended precision."""
    mass, first = np.ones(1, dtype=np.longdouble), 0
    for array, steps, centre in zip(KINDS, STEPS, CENTRES, strict=True):
        one = array.astype(np.longdouble) / array.astype(np.longdouble).sum()
        for _ in range(steps):
            mass = np.convolve(mass, one)
            first -= centre
    return first, mass


def plan(first: int, points: int) -> Plan:
    grids = tuple(
        StepGrid(0.0, 0, array.size - 1, centre, 0.0)
        for array, centre in zip(KINDS, CENTRES, strict=True)
    )
    place = Place(TILT, True, (0.0, 1.0))
    # tilts of Chernoff's bounds, to the left and to the right of the masses' own one
    aside = (TILT - 8.0, TILT + 12.0)
    return Plan(place, SPACING, grids, Fraction(0), first, points, aside, 0.75)


def found(of: Plan, shift: int = 0) -> Sum:
    arrays: list[FloatArray] = [array.copy() for array in KINDS]
    return sum_of(arrays, list(STEPS), list(SCALES), TILT * SPACING, shift, of, 7)


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize(("first", "points"), [(-8, 16), (-3, 16), (-20, 16), (2, 8), (-20, 64)])
def test_masses_and_what_lies_outside(first: int, points: int, shift: int) -> None:
    start, mass = truth()
    index = start + np.arange(mass.size)
    got = found(plan(first, points), shift)
    low, high = first + shift, first + shift + points
    below, above = float(mass[index < low].sum()), float(mass[index >= high].sum())
    assert below <= got.below
    assert above <= got.above
    # Chernoff's bounds tell something where little is outside
    if 0.0 < below < 1e-3:
        assert got.below < 200.0 * math.sqrt(below)
    if 0.0 < above < 1e-3:
        assert got.above < 200.0 * math.sqrt(above)
    window = np.zeros(points, dtype=np.longdouble)
    inside = (index >= low) & (index < high)
    window[index[inside] - low] = mass[inside]
    away = got.mass - window
    assert float(away.min()) >= -got.noise
    assert float(away.max()) <= got.noise + below + above
    assert got.noise < 1e-12
    assert (got.first, got.last, got.shift) == (first + 7, first + 7 + points - 1, shift)
    norms = [math.log(float(array.sum())) for array in KINDS]
    scale = 0.75 + TILT * SPACING * 7
    scale += sum(n * (s + x) for n, s, x in zip(STEPS, SCALES, norms, strict=True))
    assert abs(got.log_scale - scale) <= got.scale_error < 1e-12
    assert got.rate == TILT * SPACING


def test_nothing_lies_outside_a_window_that_holds_all() -> None:
    start, mass = truth()
    support = start + np.flatnonzero(mass)
    points = 1 << math.ceil(math.log2(support[-1] - support[0] + 1))
    for first in (int(support[0]), int(support[-1]) - points + 1):
        got = found(plan(first, points))
        assert (got.below, got.above) == (0.0, 0.0)
    # one point less on either side and there is something
    assert found(plan(int(support[0]) + 1, points)).below > 0.0
    assert found(plan(int(support[-1]) - points, points)).above > 0.0


def test_bounds_outside_hold_for_any_tilts() -> None:
    start, mass = truth()
    index = start + np.arange(mass.size)
    middle = plan(-8, 16)
    below, above = float(mass[index < -8].sum()), float(mass[index >= 8].sum())
    for away in (0.0, 0.5, 3.0, 30.0):
        got = found(replace(middle, aside=(TILT - away, TILT + away)))
        assert below <= got.below
        assert above <= got.above
