"""Expressions as Taylor series in ball arithmetic, about points of the plane and about parts of it.

A series about a ball encloses those about all of its points, and has finite coefficients only where
the expression is known to be analytic on all of it.  With the series about the middle it encloses
the values on the ball far more closely than operations on the ball itself do, whose terms do not
know of each other: the loss is a difference of two logarithms that are much larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from operator import itemgetter, methodcaller
from typing import Any

from flint import acb, acb_poly, acb_series, arb, arb_poly, arb_series, ctx, fmpq

from pyengine._support.forks import BallArithmetic
from pyengine.laws.log_sums import SOFTPLUS, without_large_terms
from pyengine.mechanisms.expressions import Evaluator, Expression, Program

__all__ = [
    "BITS",
    "BOUND_BITS",
    "ORDER",
    "WIDE",
    "enclosed",
    "evaluator_at_points",
    "evaluator_on_line",
    "evaluator_on_plane",
    "lower",
    "on_line",
    "on_plane",
    "precision",
    "upper",
    "values_of",
]

BITS = 160  # of nodes
BOUND_BITS = 128  # of bounds: two words, which FLINT keeps within the number
# coefficients of series, the last one of which is that of the remainder: on wide balls more of them
# say less
WIDE, ORDER = 5, 9
NOTHING = float("nan")
# operations that are not known to be analytic everywhere: their arguments are enclosed closely,
# unless they divide by a constant
NARROWED = ("divide", "log", "sqrt", "lgamma", SOFTPLUS)
LARGEST = 1.7e308
IS_FINITE = methodcaller("is_finite")


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at a precision in bits, alone."""
    with BallArithmetic.lock:
        before, cap = ctx.prec, ctx.cap
        ctx.prec, ctx.cap = bits, ORDER
        try:
            yield
        finally:
            ctx.prec, ctx.cap = before, cap


def _of_fraction(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def _operations(
    series: Any, is_analytic: Callable[[Any], bool], first: Callable[[Any], Any]
) -> dict[str, Callable[..., Any]]:
    """Operations on what ``series`` makes of coefficients, the ``first`` of which is the value.

    ``is_analytic`` says where a logarithm has no cut.
    """

    def constant(value: Any) -> Any:
        return series([value])

    def unknown() -> Any:
        """No number, nor any coefficient."""
        return series([NOTHING] * ORDER)

    def guarded(name: str, allowed: Callable[[Any], bool]) -> Callable[[Any], Any]:
        function = methodcaller(name)

        def found(x: Any) -> Any:
            return function(x) if allowed(first(x)) else unknown()

        return found

    def cosh(x: Any) -> Any:
        return (x.exp() + (-x).exp()) / 2

    def sinh(x: Any) -> Any:
        return (x.exp() - (-x).exp()) / 2

    def softplus(x: Any) -> Any:
        """log(1 + e^x): beside x where that is large, and its imaginary part below pi."""
        value = first(x)
        if not value.real.mid() > 0:
            return logarithm(one + x.exp())
        is_known = abs(value.imag) < arb.pi()
        return x + logarithm(one + (-x).exp()) if is_known else unknown()

    def divide(x: Any, y: Any) -> Any:
        value = first(y)
        return unknown() if value.contains(0) or not value.is_finite() else x / y

    one = constant(1)
    logarithm = guarded("log", is_analytic)
    return {
        "number": lambda value: constant(_of_fraction(value)),
        "pi": lambda: constant(arb.pi()),
        "add": lambda x, y: x + y,
        "subtract": lambda x, y: x - y,
        "multiply": lambda x, y: x * y,
        "divide": divide,
        "negative": lambda x: -x,
        "power": lambda x, n: x**n if n >= 0 else divide(one, x ** (-n)),
        "exp": lambda x: x.exp(),
        "log": logarithm,
        "sqrt": guarded("sqrt", is_analytic),
        "sinh": sinh,
        "cosh": cosh,
        "tanh": lambda x: divide(sinh(x), cosh(x)),
        "erfc": lambda x: x.erfc(),
        "lgamma": guarded("lgamma", lambda x: acb(x).real > 0),
        SOFTPLUS: softplus,
        "pair": lambda x, y: (x, y),
    }


def _misses_cut(x: acb) -> bool:
    """Whether a rectangle has no number <= 0."""
    return bool(x.real > 0) or x.log(analytic=True).is_finite()


_PLANE = _operations(partial(acb_series, prec=ORDER), _misses_cut, itemgetter(0))
_LINE = _operations(partial(arb_series, prec=ORDER), lambda x: bool(x > 0), itemgetter(0))
_POINT = _operations(lambda terms: arb(terms[0]), lambda x: bool(x > 0), lambda x: x) | {
    "cosh": methodcaller("cosh"),
    "sinh": methodcaller("sinh"),
}


def values_of(first: Expression, second: Expression) -> Program:
    """Return what evaluates two expressions at once, without terms that are large."""
    return Expression("pair", *map(without_large_terms, (first, second))).program


def evaluator_on_line(program: Program) -> Evaluator:
    """Return what evaluates a pair of expressions on the line, at the working precision."""
    return Evaluator(program, _LINE)


def evaluator_on_plane(program: Program) -> Evaluator:
    """Return what evaluates a pair of expressions on the plane, at the working precision."""
    return Evaluator(program, _PLANE)


def evaluator_at_points(program: Program) -> Callable[[arb], tuple[arb, arb]]:
    """Return what evaluates a pair of expressions at points of the line."""
    return Evaluator(program, _POINT)


def _enclosed(on: Evaluator, ball: Any, order: int, series: Any) -> tuple[list[Any], list[Any]]:
    center = ball.mid()
    middle = on.parts(series([center, 1], prec=order))
    apart = ball - center

    def closer(i: int, value: Any) -> Any:
        """A step's series on the ball, with the values that the series about its middle tells."""
        terms = value.coeffs()
        if not all(map(IS_FINITE, terms)):
            return value
        near = enclosed(_with_remainder(middle[i], value, order), apart)
        return series([_meet(value[0], near), *terms[1:]], prec=order)

    all_ = on.parts(series([ball, 1], prec=order), closer, *NARROWED)
    found = []
    for near, far in zip(middle[-1], all_[-1], strict=True):
        is_known = all(map(IS_FINITE, far.coeffs()))
        unknown = [type(ball)(NOTHING)] * order
        found.append(_with_remainder(near, far, order) if is_known else unknown)
    return found[0], found[1]


def _with_remainder(near: Any, far: Any, order: int) -> list[Any]:
    """Coefficients of one series, and the last one of another."""
    terms = near.coeffs()[: order - 1]
    terms += [near[order]] * (order - 1 - len(terms))  # zeros
    return [*terms, far[order - 1]]


def _meet(x: Any, y: Any) -> Any:
    """What two balls around one number have in common."""
    if isinstance(x, acb):
        return acb(_meet(x.real, y.real), _meet(x.imag, y.imag))
    return x.intersection(y) if x.is_finite() and y.is_finite() else x


def on_line(on: Evaluator, interval: arb) -> tuple[list[arb], list[arb]]:
    """Return coefficients about the middle of an interval, the last one such that the sum encloses.

    Of both of a pair of expressions: f(middle + x) lies in the sum of coefficient k times x^k.
    """
    return _enclosed(on, interval, ORDER, arb_series)


def on_plane(on: Evaluator, ball: acb, order: int) -> tuple[list[acb], list[acb]]:
    """Return the same about the middle of a rectangle of the plane."""
    return _enclosed(on, ball, order, acb_series)


def upper(x: arb) -> float:
    """Return a double not below a ball; infinite where that is not known."""
    top = x.mid() + x.rad()
    if not top.is_finite():
        return float("inf")
    near = max(float(top), -LARGEST)
    return near + 1e-15 * abs(near) + 1e-320


def lower(x: arb) -> float:
    """Return a double not above a ball."""
    return -upper(-x)


def enclosed(coefficients: list[Any], apart: Any) -> Any:
    """Return the sum of a series, by Horner's rule."""
    polynomial = acb_poly if isinstance(apart, acb) else arb_poly
    return polynomial(coefficients)(apart)
