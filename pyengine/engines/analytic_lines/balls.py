"""Taylor series of expressions in ball arithmetic, about points and about balls.

The series about a ball encloses those about all of its points; its coefficients are finite only if
the expression is proven to be analytic on the ball.  Its last coefficient bounds the remainder of
the series about the midpoint.  That encloses values on the ball far more tightly than evaluation on
the ball, which ignores dependencies: the loss is a difference of two much larger logarithms.
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

BITS = 160  # precision of nodes
BOUND_BITS = 128  # precision of bounds: two words, which FLINT stores without allocation
# coefficients of a series, of which the last bounds the remainder: on wide balls and otherwise;
# on wide balls more of them widen the enclosure
WIDE, ORDER = 5, 9
NOTHING = float("nan")
# operations that are not analytic everywhere: their arguments are enclosed by their own series,
# unless the divisor is a constant
NARROWED = ("divide", "log", "sqrt", "lgamma", SOFTPLUS)
LARGEST = 1.7e308
IS_FINITE = methodcaller("is_finite")


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set the working precision in bits, under the lock of ball arithmetic."""
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
    """Operations on series, which ``series`` makes of coefficients; ``first`` returns the value.

    ``is_analytic`` tells whether a ball misses the branch cut of the logarithm.
    """

    def constant(value: Any) -> Any:
        return series([value])

    def unknown() -> Any:
        """A series of NaN: the function may not be analytic."""
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
        """log(1 + e^x); x + log(1 + e^-x) for Re x > 0, if the imaginary part is below pi."""
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
    """Whether a rectangle contains no real number <= 0."""
    return bool(x.real > 0) or x.log(analytic=True).is_finite()


_PLANE = _operations(partial(acb_series, prec=ORDER), _misses_cut, itemgetter(0))
_LINE = _operations(partial(arb_series, prec=ORDER), lambda x: bool(x > 0), itemgetter(0))
_POINT = _operations(lambda terms: arb(terms[0]), lambda x: bool(x > 0), lambda x: x) | {
    "cosh": methodcaller("cosh"),
    "sinh": methodcaller("sinh"),
}


def values_of(first: Expression, second: Expression) -> Program:
    """Return a program that evaluates two expressions together, with large terms removed."""
    return Expression("pair", *map(without_large_terms, (first, second))).program


def evaluator_on_line(program: Program) -> Evaluator:
    """Return an evaluator of a pair of expressions by real series, at the working precision."""
    return Evaluator(program, _LINE)


def evaluator_on_plane(program: Program) -> Evaluator:
    """Return an evaluator of a pair of expressions by complex series, at the working precision."""
    return Evaluator(program, _PLANE)


def evaluator_at_points(program: Program) -> Callable[[arb], tuple[arb, arb]]:
    """Return a function that evaluates a pair of expressions at real points."""
    return Evaluator(program, _POINT)


def _enclosed(on: Evaluator, ball: Any, order: int, series: Any) -> tuple[list[Any], list[Any]]:
    center = ball.mid()
    middle = on.parts(series([center, 1], prec=order))
    apart = ball - center

    def closer(i: int, value: Any) -> Any:
        """An operation's series on the ball, its value enclosed by the series about the middle."""
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
    """Coefficients of ``near``, and the last one of ``far`` as the remainder."""
    terms = near.coeffs()[: order - 1]
    terms += [near[order]] * (order - 1 - len(terms))  # zeros
    return [*terms, far[order - 1]]


def _meet(x: Any, y: Any) -> Any:
    """The intersection of two balls around one number."""
    if isinstance(x, acb):
        return acb(_meet(x.real, y.real), _meet(x.imag, y.imag))
    return x.intersection(y) if x.is_finite() and y.is_finite() else x


def on_line(on: Evaluator, interval: arb) -> tuple[list[arb], list[arb]]:
    """Return enclosing series of both expressions about the middle of an interval.

    For middle + x in the interval, f(middle + x) lies in the sum over k of coefficient k times x^k.
    """
    return _enclosed(on, interval, ORDER, arb_series)


def on_plane(on: Evaluator, ball: acb, order: int) -> tuple[list[acb], list[acb]]:
    """Return the same about the middle of a rectangle of the plane."""
    return _enclosed(on, ball, order, acb_series)


def upper(x: arb) -> float:
    """Return an upper bound of a ball as a double; infinite for NaN."""
    top = x.mid() + x.rad()
    if not top.is_finite():
        return float("inf")
    near = max(float(top), -LARGEST)
    return near + 1e-15 * abs(near) + 1e-320


def lower(x: arb) -> float:
    """Return a lower bound of a ball as a double."""
    return -upper(-x)


def enclosed(coefficients: list[Any], apart: Any) -> Any:
    """Return the sum of a series, by Horner's rule."""
    polynomial = acb_poly if isinstance(apart, acb) else arb_poly
    return polynomial(coefficients)(apart)
