"""Logarithms of sums of exponentials without large terms, against the same in 60 digits."""

from __future__ import annotations

import math
import random
from typing import Any

import mpmath
import numpy as np
import pytest

from pyengine.analytic import Evaluator, Expression, cosh, erfc, exp, log, pi, sqrt, z
from pyengine.laws.log_sums import SOFTPLUS, exponential, without_large_terms

OPERATIONS: dict[str, Any] = {
    "number": lambda x: mpmath.mpf(x.numerator) / x.denominator,
    "pi": lambda: +mpmath.pi,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "negative": lambda x: -x,
    "power": lambda x, n: x**n,
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sqrt": mpmath.sqrt,
    "cosh": mpmath.cosh,
    "erfc": mpmath.erfc,
    SOFTPLUS: lambda x: mpmath.log1p(mpmath.exp(x)),
}
LOGISTIC = -z - 2 * log(1 + exp(-z))
SUMS = {
    "logistic": LOGISTIC,
    "secant": -log(cosh(z / 2)) - log(2 * pi),
    "two normals": log("0.3" * exp(-z * z / 2) + "0.7" * exp(-((z - 1) ** 2) / 2))
    - log(2 * pi) / 2,
    "three": log(exp(z) + 2 * exp(-z) + "0.5"),
    "power": log((1 + exp(z)) ** 3 / (pi + exp(2 * z))),
    "root": log(sqrt(1 + exp(-z))),
    "of a sample": log("0.9" + "0.1" * exp(LOGISTIC.at(z - 1) - LOGISTIC)),
    "of a product": log(exp(z) * exp(-2 * z)),
}


@pytest.mark.parametrize("name", SUMS)
def test_it_is_the_same_function(name: str) -> None:
    expression = SUMS[name]
    written = without_large_terms(expression)
    assert written != expression
    draw = random.Random(name)
    with mpmath.workdps(60):
        first, second = (Evaluator(x.program, OPERATIONS) for x in (expression, written))
        for _ in range(50):
            x = mpmath.mpf(draw.uniform(-30.0, 30.0))
            assert abs(first(x) - second(x)) < 1e-40


@pytest.mark.parametrize(
    "expression",
    [
        -z * z / 2 - log(2 * pi) / 2,
        log(1 + z * z),
        log(1 - exp(-z * z)),  # terms of both signs
        log(erfc(z)),
        log(z),
        exp(z),
    ],
)
def test_others_stay_as_they_are(expression: Expression) -> None:
    assert without_large_terms(expression) is expression


PRODUCTS = {  # with the functions that are left
    "logistic": (LOGISTIC, {"exp"}),
    "secant": (SUMS["secant"], {"cosh"}),
    "two normals": (SUMS["two normals"], {"exp", "sqrt"}),
    "normal": (-z * z / 2 - log(2 * pi) / 2, {"exp", "sqrt"}),
    "student": (log(2 / (pi * sqrt(3))) - 2 * log(1 + z * z / 3), {"sqrt"}),
    "large power": (-100 * log(1 + z * z / 199), {"exp", "log"}),
    "no half": (log(1 + z * z) * "0.3" - log(7) * -3, {"exp", "log"}),
    "root": (-log(1 + z * z) * "1.5" - z, {"sqrt", "exp"}),
    "sums": (-(log(1 + z * z) - z) + (log(2 + z * z) - log(pi)), {"exp"}),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_an_exponential_without_logarithms_is_the_same(name: str) -> None:
    expression, left = PRODUCTS[name]
    written = exponential(expression)
    assert {step for step, _ in written.program.steps} & {"exp", "log", "sqrt", "cosh"} == left
    draw = random.Random(name)
    with mpmath.workdps(60):
        first, second = (Evaluator(x.program, OPERATIONS) for x in (expression, written))
        for _ in range(50):
            x = mpmath.mpf(draw.uniform(-30.0, 30.0))
            assert abs(second(x) / mpmath.exp(first(x)) - 1) < 1e-50


def test_doubles_do_not_overflow() -> None:
    """Far out e^-z is beyond all doubles, and the logarithm of the density is not."""
    from pyengine.laws.analytic import _in_doubles

    on = _in_doubles(LOGISTIC)
    assert on(np.array([-2000.0, 2000.0])).tolist() == [-2000.0, -2000.0]


def test_balls_are_narrow_far_out() -> None:
    """About points whose e^-z is beyond 1e300 a ball tells the loss as closely as next to 0."""
    pytest.importorskip("flint")
    from flint import acb, arb

    from pyengine.engines.analytic_lines import balls

    loss = log("0.9" + "0.1" * exp(LOGISTIC.at(z - "0.5") - LOGISTIC))
    with balls.precision(balls.BITS):
        on = balls.evaluator_on_plane(balls.values_of(LOGISTIC, loss))
        for x in (-700.0, 700.0):
            ball = acb(arb(x, 0.8), arb(0.8, 0.8))
            apart = acb(arb(0, 0.8), arb(0, 0.8))
            _, found = balls.on_plane(on, ball, balls.WIDE)
            value = balls.enclosed(found, apart)
            exact = math.log(0.9 + 0.1 * math.exp(math.copysign(0.5, x)))
            assert abs(float(value.real.mid()) - exact) < 1e-15
            assert float(value.real.rad()) < 1e-40
            assert float(value.imag.rad()) < 1e-40


def test_a_ball_beyond_the_branch_is_not_known() -> None:
    """log(1 + e^x) has its cut at imaginary parts of pi where x is large."""
    pytest.importorskip("flint")
    from flint import acb, arb

    from pyengine.engines.analytic_lines import balls

    with balls.precision(balls.BITS):
        on = balls.evaluator_on_plane(balls.values_of(LOGISTIC, z))
        for height, is_known in ((3.0, True), (3.2, False)):
            for x in (-5.0, -500.0):
                found, _ = balls.on_plane(on, acb(x, arb(height, 1e-9)), balls.WIDE)
                assert found[0].is_finite() == is_known


def test_what_one_part_does_not_know_no_part_does() -> None:
    """On a ball with a pole of Student's law no coefficient of its loss is a number."""
    pytest.importorskip("flint")
    from flint import acb, arb

    from pyengine.engines.analytic_lines import balls

    student = -2 * log(1 + z * z / 3)
    loss = log("0.96" + "0.04" * exp(student.at(z - "0.93") - student))
    with balls.precision(balls.BITS):
        on = balls.evaluator_on_plane(balls.values_of(student, loss))
        for x, half in ((0.828, 7.0), (0.0, 2.0), (5.0, 30.0)):
            both = balls.on_plane(on, acb(arb(x, half), arb(half, half)), balls.WIDE)
            assert not any(each.is_finite() for found in both for each in found)
