"""Corners of Laplace steps: their part of the transform, and powers of it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from laplace_checks import mean_of

from pyengine.engines.vertical_lines.corners import Corners, Factors, corners_of
from pyengine.engines.vertical_lines.deformed import RAYS
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape, StepShape, SubstitutedShape

SHAPES: dict[str, StepShape] = {
    "sampled": LaplaceShape(Fraction(1), Fraction(1, 10)),
    "substituted": SubstitutedShape(Fraction(2), Fraction(1, 5)),
    "substituted rarely": SubstitutedShape(Fraction(3), Fraction(1, 1000)),
    "substituted often": SubstitutedShape(Fraction(1, 3), Fraction(9, 10)),
}


@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize("side", [0, 1])
def test_corners_make_the_transform(name: str, side: int) -> None:
    """Each factor times e^(s loss), on panels of both rays, against the integral over the step."""
    shape, corners = SHAPES[name], corners_of(SHAPES[name])
    angle, inner = RAYS[side]
    height = max(70.0, 12.0 / float(shape.length))
    s = 1.7 + 1j * height + height * np.linspace(0.0, 0.3, 16) * np.exp(1j * angle)
    added, error = corners.transforms(s, inner)
    bounds = corners.bounds(height)
    assert (np.abs(added) <= bounds[:, None] + error).all()
    with mpmath.workdps(30):
        places = [mpmath.mpf(str(end)) for end in shape.ends]
    if corners.number == 3:
        places.insert(1, mpmath.mpf(0))
    atoms = corners.atoms(*(float(atom) for atom in shape.atoms))
    for i in (0, 7, 15):
        with mpmath.workdps(30):
            point = mpmath.mpc(complex(s[i]))
            weights = [abs(mpmath.exp(point * place)) for place in places]
            found = sum(
                mpmath.exp(point * place) * (float(atom) + mpmath.mpc(complex(x)))
                for place, atom, x in zip(places, atoms, added[:, i], strict=True)
            )
            off = abs(mean_of(shape, point) - found)
            known = sum(
                w * (float(e) + 2.0**-52 * float(atom))
                for w, e, atom in zip(weights, error[:, i], atoms, strict=True)
            )
        assert off <= known
        assert known <= 1e-11 * sum(weights)


def exact_power(factor: Any, number: int) -> list[Any]:
    """Coefficients of a power of a polynomial in many digits."""
    return _power([mpmath.mpc(complex(x)) for x in factor], number)


def some_factors(corners: int, size: int, seed: int) -> Any:
    draws = np.random.default_rng(seed)
    turned = np.exp(2j * math.pi * draws.random((corners, size)))
    return np.asarray(draws.random((corners, size)) * turned / corners)


@pytest.mark.parametrize("name", ["sampled", "substituted"])
@pytest.mark.parametrize("number", [1, 2, 7, 25])
def test_powers_are_within_their_errors(name: str, number: int) -> None:
    corners = corners_of(SHAPES[name])
    factor = some_factors(corners.number, 3, number)
    row = np.arange((corners.number - 1) * number + 1)
    found, error = corners.powers(factor, number, row)
    with mpmath.workdps(40):
        for i in range(3):
            truth = exact_power(factor[:, i], number)
            off = sum(
                abs(x - mpmath.mpc(complex(y))) for x, y in zip(truth, found[:, i], strict=True)
            )
            whole = float(np.abs(factor[:, i]).sum()) ** number
            assert off <= error[i] * whole
            assert error[i] <= 1e-14 * (30.0 + 4.0 * number)


@pytest.mark.parametrize("name", ["sampled", "substituted"])
@pytest.mark.parametrize("number", [1, 2, 7, 25])
@pytest.mark.parametrize("small", [1e-3, 1e-7])
def test_terms_beside_atoms_are_within_their_errors(name: str, number: int, small: float) -> None:
    """Far below the atoms: of a difference of powers nothing would be left."""
    corners = corners_of(SHAPES[name])
    shares = corners.atoms(0.7, 0.25)[:, None]
    added = small * some_factors(corners.number, 3, number)
    factors = Factors(shares, added, np.zeros(added.shape), 0.0)
    assert corners.is_small(factors, number)
    row = np.arange((corners.number - 1) * number + 1)
    found = corners.beside_atoms(factors, number, row)
    with mpmath.workdps(60):
        atoms = exact_power(shares[:, 0], number)
        for i in range(3):
            summed = [
                mpmath.mpc(complex(x)) + mpmath.mpf(float(y))
                for x, y in zip(added[:, i], shares[:, 0], strict=True)
            ]
            truth = _power(summed, number)
            off = sum(
                abs(x - y - mpmath.mpc(complex(z)))
                for x, y, z in zip(truth, atoms, found.rest[:, i], strict=True)
            )
            assert off <= found.error[i] * found.whole[i]
            assert found.error[i] <= 1e-13 * small * number * number
            size = sum(abs(x - y) for x, y in zip(truth, atoms, strict=True))
            assert off <= 1e-13 * size * number


def _power(factor: list[Any], number: int) -> list[Any]:
    found = [mpmath.mpc(1)]
    for _ in range(number):
        more = [mpmath.mpc(0)] * (len(found) + len(factor) - 1)
        for i, x in enumerate(found):
            for j, y in enumerate(factor):
                more[i + j] += x * y
        found = more
    return found


def test_more_steps_at_the_middle_than_are_counted_are_not_small() -> None:
    corners = corners_of(SHAPES["substituted"])
    added = np.full((3, 2), 2e-3 + 0j)
    shares = corners.atoms(0.7, 0.25)[:, None]
    assert isinstance(corners, Corners)
    assert corners.is_small(Factors(shares, added, np.zeros((3, 2)), 0.0), 3)
    assert not corners.is_small(Factors(shares, added, np.zeros((3, 2)), 0.0), 500)
