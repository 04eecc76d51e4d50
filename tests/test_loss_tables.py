"""Laws known by nodes: what is left out of a sum does not matter, however much there is of it."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERRORS, PROFILE
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.spectral import Spectral
from pyengine.laws.normals import LossNodes

NOTHING = GaussianPair((), (), (), reversed=False)


def gaussian(shift: float, reach: float, spacing: float = 0.1, falling: bool = False) -> LossNodes:
    """One Gaussian step, z from -reach to reach; losses decrease if `falling`."""
    half = round(reach / spacing)
    z = spacing * np.arange(-half, half + 1)
    weight = -0.5 * z * z + math.log(spacing / math.sqrt(2.0 * math.pi))
    sign = -1.0 if falling else 1.0
    return LossNodes(shift * (sign * z - 0.5 * shift), weight, 0.4 * math.pi / (spacing * shift))


def truth(functional: int, shift: float, steps: int, c: float) -> mpmath.mpf:
    """Log of a functional of N(-v/2, v) with v = steps shift²."""
    s = mpmath.mpf(shift) * mpmath.sqrt(steps)
    below_a, below_b = c / s + s / 2, c / s - s / 2
    found = {
        A_ABOVE: mpmath.ncdf(-below_a),
        A_BELOW: mpmath.ncdf(below_a),
        B_ABOVE: mpmath.ncdf(-below_b),
        B_BELOW: mpmath.ncdf(below_b),
        PROFILE: mpmath.ncdf(below_a) - mpmath.exp(-c) * mpmath.ncdf(below_b),
    }
    return mpmath.log(found[functional])


def rows(nodes: LossNodes, steps: int, functional: int, c: npt.NDArray[np.float64]) -> list[float]:
    answered = Spectral(NOTHING, nodes=((nodes, steps),)).at(functional, c)
    return [*answered[:, 2 + functional], *answered[:, ERRORS + functional]]


@pytest.mark.parametrize("functional", [A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, PROFILE])
@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize(("shift", "steps"), [(0.02, 10_000), (0.1, 70), (0.5, 70), (1.5, 12)])
def test_steps_against_normal_distribution_functions(
    shift: float, steps: int, falling: bool, functional: int
) -> None:
    deviation = shift * math.sqrt(steps)
    c = deviation * np.linspace(-6.0, 6.0, 8) - 0.5 * deviation**2
    values, errors = np.reshape(
        rows(gaussian(shift, 38.0, falling=falling), steps, functional, c), (2, -1)
    )
    with mpmath.workdps(40):
        for at, value, error in zip(c, values, errors, strict=True):
            if error < 1.0:  # a profile next to 1 is read off another line
                assert abs(mpmath.expm1(value - truth(functional, shift, steps, at))) <= error
    assert np.count_nonzero(errors < 1e-9) >= 4


@pytest.mark.parametrize(("shift", "steps"), [(0.02, 10_000), (0.1, 70), (1.5, 12)])
def test_nodes_beyond_those_that_matter_do_not(shift: float, steps: int) -> None:
    c = shift * math.sqrt(steps) * np.linspace(-5.0, 5.0, 8)
    for functional in (A_ABOVE, PROFILE):
        near, far = (rows(gaussian(shift, reach), steps, functional, c) for reach in (30.0, 38.0))
        assert np.allclose(near, far, rtol=1e-13, atol=0.0, equal_nan=True)
