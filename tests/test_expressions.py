"""Expressions: what they are, how they are evaluated, and what they refuse."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyengine import analytic as an
from pyengine.laws.analytic import AnalyticLaw
from pyengine.mechanisms.analytic import from_analytic_densities

flint = pytest.importorskip("flint")

from pyengine.engines.analytic_lines import balls  # noqa: E402 needs what may be missing

z = an.z
LOGISTIC = -z - 2 * an.log(1 + an.exp(-z))
EVERYTHING = (
    an.sqrt(2 + an.tanh(z)) * an.cosh(z / 3)
    - an.sinh(z) / (1 + z**2)
    + an.erfc(z) * an.lgamma(3 + an.tanh(z)) ** 2
    + (2 + an.tanh(z)) ** Fraction(-1, 3)
    + an.pi * z ** (-2)
)


def everything(x: Any) -> Any:
    """The same by mpmath."""
    import mpmath as mp

    tanh = mp.tanh(x)
    return (
        mp.sqrt(2 + tanh) * mp.cosh(x / 3)
        - mp.sinh(x) / (1 + x**2)
        + mp.erfc(x) * mp.loggamma(3 + tanh) ** 2
        + (2 + tanh) ** (-mp.mpf(1) / 3)
        + mp.pi / x**2
    )


def test_equal_expressions_are_equal_and_hash_alike() -> None:
    other = -z - 2 * an.log(1 + an.exp(-z))
    assert other == LOGISTIC
    assert hash(other) == hash(LOGISTIC)
    assert LOGISTIC.at(z - "0.1") != LOGISTIC
    assert LOGISTIC != 0
    assert pickle.loads(pickle.dumps(LOGISTIC)) == LOGISTIC


def test_numbers_are_exact() -> None:
    assert an.number("0.1") == an.number(Fraction(1, 10)) == an.number(Decimal("0.1"))
    assert an.number(0.1) != an.number("0.1")
    assert an.number(0.1) == an.number(Fraction(0.1))
    assert (np.float64(0.5) * z) == (0.5 * z)


def test_text_can_be_evaluated() -> None:
    """What is shown is the expression, with functions by their names."""
    names = {name: getattr(an, name) for name in (*an.FUNCTIONS, "z", "pi")}
    shown = repr(LOGISTIC.at(z - "0.1"))
    assert shown == "((-(z - 1/10)) - (2*log((1 + exp((-(z - 1/10)))))))"
    found = an.Evaluator(eval(shown, names).program, DOUBLES)(1.7)
    assert found == pytest.approx(an.Evaluator(LOGISTIC.program, DOUBLES)(1.6), rel=1e-14)


DOUBLES: dict[str, Any] = {
    "number": float,
    "pi": lambda: math.pi,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "negative": lambda x: -x,
    "power": lambda x, n: x**n,
    **{name: getattr(math, name) for name in an.FUNCTIONS},
}


@pytest.mark.parametrize("x", [0.3, 1.7, -2.2])
def test_all_functions_in_doubles_and_in_balls(x: float) -> None:
    """Against mpmath: values in doubles, values and slopes in balls."""
    import mpmath as mp

    assert an.Evaluator(EVERYTHING.program, DOUBLES)(x) == pytest.approx(float(everything(x)))
    pair = balls.values_of(EVERYTHING, z)
    with mp.workdps(50), balls.precision(balls.BITS):
        point, argument = balls.evaluator_at_points(pair)(flint.arb(x))
        assert argument == flint.arb(x)
        truth = flint.arb(mp.nstr(everything(mp.mpf(x)), 45))
        assert abs(point - truth) < 1e-38
        around = flint.arb(x, 1e-3)
        series = balls.on_line(balls.evaluator_on_line(pair), around)[0]
        assert (series[1] - flint.arb(mp.nstr(mp.diff(everything, mp.mpf(x)), 30))).overlaps(
            flint.arb(0, 1e-20)
        )
        value = balls.enclosed(series, flint.arb(0, 1e-3))
        for moved in (-0.9e-3, 0.0, 0.5e-3):
            assert value.contains(flint.arb(mp.nstr(everything(mp.mpf(x) + moved), 40)))


def test_balls_that_functions_are_not_analytic_on_give_no_number() -> None:
    pair = balls.values_of(an.log(z), 1 / (1 + z))
    root = balls.values_of(an.sqrt(z), an.lgamma(z))
    with balls.precision(balls.BITS):
        on = balls.evaluator_on_plane(pair)
        for middle, of_log, of_quotient in (
            (2.0, True, True),
            (0.1, False, True),
            (-1.1, False, False),
        ):
            ball = flint.acb(flint.arb(middle, 0.3), flint.arb(0, 0.3))
            log, quotient = balls.on_plane(on, ball, balls.WIDE)
            assert log[0].is_finite() == of_log
            assert quotient[0].is_finite() == of_quotient
        # above the cut both are analytic, and below it as well, but not across
        above = flint.acb(flint.arb(-2, 0.3), flint.arb(1, 0.3))
        assert balls.on_plane(on, above, balls.WIDE)[0][0].is_finite()
        across = flint.acb(flint.arb(-2, 0.3), flint.arb(0, 0.3))
        for part in balls.on_plane(balls.evaluator_on_plane(root), across, balls.WIDE):
            assert not part[0].is_finite()


def test_a_series_is_closer_than_operations_on_a_ball() -> None:
    """The loss of laws that lie next to each other, a difference of large logarithms."""
    loss = LOGISTIC.at(z - "0.001") - LOGISTIC
    with balls.precision(balls.BITS):
        pair = balls.values_of(loss, z)
        series = balls.on_line(balls.evaluator_on_line(pair), flint.arb(1, 0.05))[0]
        value = balls.enclosed(series, flint.arb(0, 0.05))
        assert float(value.rad()) < 1e-4
        ends = [balls.evaluator_at_points(pair)(flint.arb(x))[0] for x in (0.95, 1.05)]
        assert all(value.contains(end) for end in ends)


def test_precision_is_given_back() -> None:
    before = flint.ctx.prec, flint.ctx.cap
    with balls.precision(333):
        assert flint.ctx.prec == 333
    assert (flint.ctx.prec, flint.ctx.cap) == before


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (lambda: z > 1, TypeError),
        (lambda: bool(z), TypeError),
        (lambda: float(z), TypeError),
        (lambda: math.exp(z), TypeError),  # type: ignore[arg-type]
        (lambda: np.exp(z), TypeError),
        (lambda: z + None, TypeError),
        (lambda: z + True, TypeError),
        (lambda: z + math.inf, ValueError),
        (lambda: z * "a tenth", ValueError),
        (lambda: an.number(math.nan), ValueError),
        (lambda: z**z, TypeError),
    ],
)
def test_what_is_no_expression_is_refused(bad: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        bad()


@pytest.mark.parametrize(
    ("log_p", "support", "ends"),
    [
        (-z * z / 2 - an.log(2 * an.pi) / 2, (-math.inf, math.inf), (-30.0, -12.0, 12.0, 30.0)),
        (LOGISTIC, (-math.inf, math.inf), (-300.0, -100.0, 100.0, 300.0)),
        (
            LOGISTIC.at(z - 10**6),
            (-math.inf, math.inf),
            (999_700.0, 999_900.0, 1_000_100.0, 1_000_300.0),
        ),
        (-z, (0.0, math.inf), (0.0, 1e-30, 100.0, 300.0)),
        (z, (-math.inf, 0.0), (-300.0, -100.0, -1e-30, 0.0)),
        (an.log(6 * z * (1 - z)), (0.0, 1.0), (0.0, 1e-20, 1.0 - 1e-15, 1.0)),
        (an.number(0) * z, (0.0, 1.0), (0.0, 0.0, 1.0, 1.0)),
    ],
)
def test_where_the_mass_of_a_law_lies(
    log_p: an.Expression, support: tuple[float, float], ends: tuple[float, ...]
) -> None:
    law = AnalyticLaw(from_analytic_densities(log_p, log_p, support=support))
    low, high = law.ends
    assert ends[0] <= low <= ends[1]
    assert ends[2] <= high <= ends[3]


def test_where_the_mass_of_a_singular_law_lies() -> None:
    """Beside a uniform law."""
    singular = from_analytic_densities(-an.log(z) / 2 - an.log(2), 0 * z, support=(0.0, 1.0))
    low, high = AnalyticLaw(singular).ends
    assert 0.0 < low < 1e-50
    assert high == 1.0
