"""Logarithms of sums of exponentials without large terms, and exponentials without logarithms.

For large w, log(1 + e^w) is computed as w + log(1 + e^-w): e^w may overflow in doubles, and a ball
about w would give a ball about e^w that is too wide for its logarithm.  A density whose logarithm
is a sum of logarithms is written as a product, which takes fewer functions.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from pyengine.mechanisms.expressions import Expression, exp, log, number, sqrt

__all__ = ["SOFTPLUS", "exponential", "without_large_terms"]

SOFTPLUS = "softplus"  # the operation log(1 + e^x), which evaluators of the result must know

LARGEST_POWER = 64  # largest exponent that is multiplied out

LogOf = Expression | None


# Map: logarithms of sums of exponentials | test_log_sums | theory/analytic_densities
def without_large_terms(expression: Expression) -> Expression:
    """Rewrite logarithms of sums of exponentials by `SOFTPLUS`.

    The function is the same on the real line, and analytic wherever all of its parts are.

    Parameters
    ----------
    expression : Expression
        An analytic function.

    Returns
    -------
    Expression
        The rewritten expression; the given one if it has no such logarithms.
    """
    made: list[Expression] = []
    logs: list[LogOf] = []  # log of each step that is a positive sum of exponentials, else None
    has_changed = False
    for operation, taken in expression.program.steps:
        node = _node(operation, taken, made)
        known = logs[taken[0]] if operation == "log" else None
        if known is not None:
            node, has_changed = known, True
        made.append(node)
        logs.append(_log_of(operation, taken, made, logs))
    return made[-1] if has_changed else expression


def _node(operation: str, taken: tuple[Any, ...], made: list[Expression]) -> Expression:
    """A step, of what is made in the place of earlier ones."""
    if operation in ("z", "number", "pi"):
        return Expression(operation, *taken)
    if operation == "power":
        return Expression(operation, made[taken[0]], taken[1])
    return Expression(operation, *(made[i] for i in taken))


def _log_of(
    operation: str, taken: tuple[int, ...], made: list[Expression], logs: list[LogOf]
) -> LogOf:
    """Logarithm of a step that is a positive sum of exponentials; None for others."""
    if operation == "exp":
        return made[taken[0]]
    if operation == "cosh":
        w = made[taken[0]]
        return w + Expression(SOFTPLUS, -2 * w) - log(2)
    if operation in ("power", "sqrt"):
        base = logs[taken[0]]
        return None if base is None else base * (taken[1] if operation == "power" else "0.5")
    if operation not in _COMBINED or all(logs[i] is None for i in taken):
        return None
    first, second = (_positive(made[i], logs[i]) for i in taken)
    return None if first is None or second is None else _COMBINED[operation](first, second)


_COMBINED: dict[str, Callable[[Expression, Expression], Expression]] = {
    "add": lambda a, b: a + Expression(SOFTPLUS, b - a),
    "multiply": lambda a, b: a + b,
    "divide": lambda a, b: a - b,
}


def _positive(node: Expression, log_of: LogOf) -> LogOf:
    """Logarithm of a positive sum of exponentials or of a positive constant; None for others."""
    if log_of is None and node.operation == "number" and node.arguments[0] > 0:
        return number(0) if node.arguments[0] == 1 else log(node)
    return log(node) if log_of is None and node.operation == "pi" else log_of


def exponential(expression: Expression) -> Expression:
    """Return e^f, in which a logarithm gives way to its argument.

    Parameters
    ----------
    expression : Expression
        An analytic function f.

    Returns
    -------
    Expression
        The same as e^f wherever the arguments of f's logarithms are positive.
    """
    made: list[Expression] = []
    found: list[LogOf] = []  # e to each step; None where that is an exponential
    for operation, taken in expression.program.steps:
        made.append(_node(operation, taken, made))
        found.append(_exponential_of(operation, taken, made, found))
    return exp(made[-1]) if found[-1] is None else found[-1]


def _exponential_of(
    operation: str, taken: tuple[int, ...], made: list[Expression], found: list[LogOf]
) -> LogOf:
    """The exponential of a step as a product or a power; None where it is neither."""
    if operation == "log":
        return made[taken[0]]
    if operation in ("z", "number", "pi", "power"):
        return None
    parts, is_product = list[Expression](), False
    for i in taken:
        part = found[i]
        is_product |= part is not None
        parts.append(exp(made[i]) if part is None else part)
    if not is_product:
        return None
    if operation in _PRODUCTS:
        return _PRODUCTS[operation](*parts)
    if operation == "multiply" and made[taken[0]].operation == "number":
        return _power(parts[1], made[taken[0]].arguments[0])
    if operation == "multiply" and made[taken[1]].operation == "number":
        return _power(parts[0], made[taken[1]].arguments[0])
    if operation == "divide" and made[taken[1]].operation == "number":
        return _power(parts[0], 1 / made[taken[1]].arguments[0])
    return None


_PRODUCTS: dict[str, Callable[..., Expression]] = {
    "add": lambda a, b: a * b,
    "subtract": lambda a, b: a / b,
    "negative": lambda a: 1 / a,
}


def _power(base: Expression, exponent: Fraction) -> LogOf:
    """A power by products and a root."""
    if exponent.denominator > 2 or abs(exponent) > LARGEST_POWER:
        return None
    return base**exponent if exponent.denominator == 1 else sqrt(base) ** (2 * exponent)
