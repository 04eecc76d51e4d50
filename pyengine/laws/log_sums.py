"""Logarithms of sums of exponentials, written so that no term is large.

For large w, log(1 + e^w) is computed as w + log(1 + e^-w): e^w may overflow in doubles, and a ball
about w would give a ball about e^w that is too wide for its logarithm.
"""

from __future__ import annotations

from collections.abc import Callable

from pyengine.mechanisms.expressions import Expression, log, number

__all__ = ["SOFTPLUS", "without_large_terms"]

SOFTPLUS = "softplus"  # the operation log(1 + e^x), which evaluators of the result must know

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
        if operation in ("z", "number", "pi"):
            node = Expression(operation, *taken)
        elif operation == "power":
            node = Expression(operation, made[taken[0]], taken[1])
        else:
            node = Expression(operation, *(made[i] for i in taken))
        known = logs[taken[0]] if operation == "log" else None
        if known is not None:
            node, has_changed = known, True
        made.append(node)
        logs.append(_log_of(operation, taken, made, logs))
    return made[-1] if has_changed else expression


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
