"""A new kind of step needs one file: here it stands on the lines of all others."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from toy_kind import TriangularShape

from pyengine.engines.vertical_lines.laplace_shapes import RangeShape
from pyengine.engines.vertical_lines.normal_steps import GaussianShape
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.shapes import At, cumulants_at

HALF, VARIANCE = 0.75, Fraction(7, 5)
SHAPE = TriangularShape(HALF)


@pytest.mark.parametrize("tilt", [-1.25, 0.5, 2.5])
def test_the_lemma(tilt: float) -> None:
    """Transform, mean and what lies beyond a frequency, against integrals in 30 digits."""
    log = cumulants_at(SHAPE, tilt)[0]
    step = SHAPE.tilted(At(tilt, log, 10), 60.0, 1e-18, 0.0)
    t = np.array([0.0, 0.5, 3.0, 7.0, 40.0])
    found = step.transform(t)
    with mpmath.workdps(30):

        def integral(power: mpmath.mpc) -> mpmath.mpc:
            return mpmath.quad(
                lambda x: (1 - abs(x) / (2 * HALF)) * mpmath.exp(power * x),
                mpmath.linspace(-2 * HALF, 2 * HALF, 13),
            )

        norm = integral(mpmath.mpf(0.5))
        whole = integral(mpmath.mpf(tilt) - 0.5)
        assert abs(mpmath.log(whole / norm) - mpmath.mpf(float(step.log_mean))) <= step.log_error
        for i, place in enumerate(t.tolist()):
            value = integral(mpmath.mpc(tilt - 0.5, place)) / whole
            turned = value * mpmath.exp(-1j * place * mpmath.mpf(step.centre))
            own = found.modulus[i] * mpmath.exp(1j * mpmath.mpf(found.angle[i]))
            assert abs(own - turned) <= found.error[i] + 64 * 2.0**-53 * (1 + place) * abs(value)
            assert abs(value) <= step.largest_from(np.array([max(place, 1e-9)]), 1.0) * (1 + 1e-9)


@pytest.mark.parametrize("number", [1, 6])
def test_it_stands_beside_gaussian_noise(number: int) -> None:
    """Twice as many steps of uniform losses, which are another kind, have the same law."""
    gaussian = (GaussianShape(VARIANCE), 1)
    toy = LineOrder(((SHAPE, number), gaussian), False)
    other = LineOrder(((RangeShape(Fraction(HALF), Fraction(1)), 2 * number), gaussian), False)
    c = np.array([-3.0, -0.7, 0.0, 0.4, 2.0])
    one, two = toy.tails(c), other.tails(c)
    for mass, same in zip(one[:4], two[:4], strict=True):
        assert (np.abs(mass / same - 1.0) <= one.error + two.error).all()
    assert (one.error < 1e-11).all()
    epsilon = np.array([0.1, 1.0, 3.0])
    (value, off), (same, known) = toy.profile(epsilon), other.profile(epsilon)
    assert (np.abs(value - same) <= off + known).all()
    assert (off < 1e-11 * value).all()


def test_one_step_beside_gaussian_noise_has_its_integral() -> None:
    """A's mass above thresholds, by the triangle's density and normal tails."""
    order = LineOrder(((SHAPE, 1), (GaussianShape(VARIANCE), 1)), False)
    c = np.array([-1.5, 0.25, 3.0])
    found = order.tails(c)
    with mpmath.workdps(30):
        v = mpmath.mpf(VARIANCE.numerator) / VARIANCE.denominator
        ends = mpmath.linspace(-2 * HALF, 2 * HALF, 9)

        def weight(x: mpmath.mpf) -> mpmath.mpf:
            return (1 - abs(x) / (2 * HALF)) * mpmath.exp(-x / 2)

        norm = mpmath.quad(weight, ends)
        for i, place in enumerate(c.tolist()):
            truth = mpmath.quad(
                lambda x, at=place: weight(x) * mpmath.ncdf((x - v / 2 - at) / mpmath.sqrt(v)),
                ends,
            )
            assert abs(found.a_above[i] / (truth / norm) - 1) <= found.error[i]
