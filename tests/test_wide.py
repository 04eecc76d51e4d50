"""Sums of two doubles in Python, and nodes of steps that C makes of them, against exact numbers."""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

from pyengine._core import ffi, lib
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines.gauss import EXTENDED, gauss_nodes
from pyengine.engines.vertical_lines.laplace_shapes import RangeShape
from pyengine.engines.vertical_lines.nodes import PanelRule, edges_of, step_nodes
from pyengine.numerics.wide import Wide, wide_exp, wide_log

FloatArray = npt.NDArray[np.float64]
DIGITS = 60


def numbers(count: int, seed: int, largest: float = 200.0) -> FloatArray:
    """Sums of two doubles of either sign, their logarithms even."""
    random = np.random.default_rng(seed)
    high = random.choice([-1.0, 1.0], count) * np.exp2(random.uniform(-largest, largest, count))
    return np.array([high, high * random.uniform(-1.0, 1.0, count) * 2.0**-54])


def exact(x: Any) -> Fraction:
    """The sum of both parts."""
    return Fraction(float(x.high)) + Fraction(float(x.low))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv"])
def test_an_operation_errs_by_next_to_nothing(name: str) -> None:
    operation = getattr(operator, name)
    a, b = Wide(*numbers(2000, 1)), Wide(*numbers(2000, 2))
    found = operation(a, b)
    for i in range(2000):
        one, other = Wide(a.high[i], a.low[i]), Wide(b.high[i], b.low[i])
        truth = operation(exact(one), exact(other))
        got = Wide(found.high[i], found.low[i])
        assert abs(exact(got) - truth) <= abs(truth) * Fraction(2) ** -102
        alone = operation(one, other)
        assert (alone.high, alone.low) == (got.high, got.low)


def test_numbers_and_arrays_beside_sums() -> None:
    a, c = Wide(1.0, 2.0**-60), np.array([1.0, 3.0])
    assert exact(2 * a) == 2 + Fraction(2) ** -59
    assert exact(1.0 - a) == -(Fraction(2) ** -60)
    assert exact(sum((n * a for n in (1, 2)), Wide(0.0))) == 3 + 3 * Fraction(2) ** -60
    assert (c * a).high.tolist() == [1.0, 3.0]
    assert (c - a).high.tolist() == [-(2.0**-60), 2.0]
    assert float(a) == 1.0
    assert abs(Fraction(str(a)) - exact(a)) < Fraction(10) ** -58
    assert exact(Wide.of(Decimal("0.1"))) != Fraction(0.1)


def test_less_products_are_rounded_once() -> None:
    a = Wide(*numbers(1, 3, 20.0)[:, 0].tolist())
    parts, c = ffi.new("pe_dd *", (a.high, a.low))[0], numbers(1000, 4, 20.0)[0]
    for b in (1.0, 0.7, -3.25e5):
        for each in c.tolist():
            value = lib.pe_less_product(parts, b, each)
            truth = exact(a) - Fraction(b) * Fraction(each)
            beside = abs(exact(a)) + abs(Fraction(b) * Fraction(each))
            assert abs(Fraction(value) - truth) <= abs(truth) / 2**53 + beside / 2**100
    assert lib.pe_less_product(parts, 2.0, np.inf) == -np.inf


def test_exponentials_and_logarithms_beyond_all_doubles() -> None:
    random = np.random.default_rng(5)
    x = np.array(
        [np.append(random.uniform(-15000.0, 1000.0, 300), [0.0, -1e-300, 1e-9]), np.zeros(303)]
    )
    value, power = wide_exp(x)
    logs = wide_log(value, power)
    with mpmath.workdps(DIGITS):
        for i in range(x.shape[1]):
            mass = mpmath.fsum(value[:, i].tolist()) * mpmath.mpf(2) ** int(power[i])
            assert abs(mass / mpmath.exp(x[0, i]) - 1) <= 2 * EXTENDED
            off = abs(mpmath.fsum(logs[:, i].tolist()) - mpmath.log(mass))
            assert off <= EXTENDED * (1 + abs(x[0, i]) * 2.0**-30)
    assert wide_exp(np.array([[-17000.0, -np.inf], [0.0, 0.0]]))[0].tolist() == [[0.0, 0.0]] * 2
    assert wide_log(np.zeros((2, 1)), np.zeros(1))[0, 0] == -np.inf


@pytest.mark.parametrize("epsilon", ["1e-6", "0.3", "40", "170"])
def test_nodes_of_bounded_range(epsilon: str) -> None:
    """Those of a Laplace step on all data, up to ranges whose masses are hardly doubles."""
    shape, rule = RangeShape(Fraction(epsilon), Fraction(1)), PanelRule(3, 14, 0.0)
    nodes, gauss, edges = step_nodes(shape, rule), gauss_nodes(14), edges_of(shape, rule)[:-1]
    with mpmath.workdps(DIGITS):
        end = mpmath.mpf(epsilon)
        norm = -2 * mpmath.expm1(-end)
        assert (nodes.mass[:, :2] == 0.0).all()  # no atoms
        for i in range(42):
            place, weight = (mpmath.fsum(x[:, i % 14].tolist()) for x in gauss[:2])
            left, right = [*map(mpmath.mpf, edges), 2 * end][i // 14 :][:2]
            at = left + (right - left) * place - end
            true = (right - left) * weight * mpmath.exp(-(at + end) / 2) / norm
            loss, mass = (mpmath.fsum(x[:, 2 + i].tolist()) for x in (nodes.loss, nodes.mass))
            assert abs(loss - at) <= nodes.loss_error
            assert abs(mass / true - 1) <= nodes.mass_error


def test_a_step_at_a_tilt_where_masses_are_below_all_doubles() -> None:
    random = np.random.default_rng(6)
    size = 200
    loss = np.array([np.sort(random.uniform(-900.0, 900.0, size)), np.zeros(size)])
    mass, power = wide_exp(np.array([-6.0 * np.abs(loss[0]), np.zeros(size)]))
    share, apart = np.empty((2, size))
    for tilt in (-7.5, 0.0, 0.3, 5.9, 9.0):
        found = ffi.new("pe_dd *")
        nodes = array(loss), array(mass), array(power)
        centre = lib.pe_step_at_tilt(
            size, *nodes, tilt, found, array(share, writable=True), array(apart, writable=True)
        )
        top = ffi.new("double *")
        over = lib.pe_log_mean_of_nodes(size, nodes[0], array(wide_log(mass, power)), tilt, top)
        with mpmath.workdps(DIGITS):
            terms = [
                mpmath.fsum(mass[:, i].tolist())
                * mpmath.mpf(2) ** int(power[i])
                * mpmath.exp(mpmath.mpf(tilt) * loss[0, i])
                for i in range(size)
            ]
            whole = mpmath.fsum(terms)
            log = mpmath.log(whole)
            assert abs(mpmath.mpf(found.h) + found.l - log) <= 8 * EXTENDED
            assert abs(top[0] + over - log) <= (4 * (abs(top[0]) + abs(log)) + size + 16) * 2.0**-53
            for i, term in enumerate(terms):
                assert (
                    abs(share[i] - term / whole)
                    <= (2.0**-53 + 8 * EXTENDED) * term / whole + 1e-305
                )
                assert abs(apart[i] - (mpmath.mpf(loss[0, i]) - centre)) <= 2.0**-53 * abs(apart[i])
