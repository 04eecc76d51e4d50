"""Analytic functions of one variable, written once and evaluated in several arithmetics.

`from_analytic_densities` takes log-densities as expressions in the variable `z`.  The same
expression is evaluated in doubles (for searches only), in complex ball arithmetic, and as a Taylor
series.  Constants are exact::

    from pyengine.mechanisms.expressions import exp, log, z

    log_p = -z - 2 * log(1 + exp(-z))       # the logistic distribution
    log_q = log_p.at(z - "0.1")

Functions of NumPy and `math` do not apply to expressions, and expressions cannot be compared: an
analytic function has no cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, NoReturn

from pyengine._support.caches import cached_property

__all__ = [
    "FUNCTIONS",
    "Evaluator",
    "Expression",
    "Program",
    "cosh",
    "erfc",
    "exp",
    "lgamma",
    "log",
    "number",
    "pi",
    "sinh",
    "sqrt",
    "tanh",
    "z",
]

Number = int | float | Fraction | Decimal | str
FUNCTIONS = ("exp", "log", "sqrt", "sinh", "cosh", "tanh", "erfc", "lgamma")
SHOWN = {"add": " + ", "subtract": " - ", "multiply": "*", "divide": "/", "power": "**"}


class Program(NamedTuple):
    """Operations of an expression in order; operands are indices of earlier operations.

    Except that ``number`` holds the number itself, and ``power`` an index and the exponent.
    ``constant`` says which operations do not depend on `z`.
    """

    steps: tuple[tuple[str, tuple[Any, ...]], ...]
    constant: tuple[bool, ...]


class Expression:
    """An analytic function of `z`, made of numbers, `pi` and the functions of this module.

    Operators combine expressions with each other and with numbers: integers, fractions, decimal
    numbers, text such as ``"0.1"`` for that very number, and floats for the doubles that they are.

    Parameters
    ----------
    operation : str
        Name of the operation; use operators and functions instead of this constructor.
    *arguments : Expression, Fraction or int
        Its operands.
    """

    __array_ufunc__ = None  # so that NumPy leaves its operators to this class
    __slots__ = ("__dict__", "arguments", "operation")

    def __init__(self, operation: str, *arguments: Any) -> None:
        self.operation, self.arguments = operation, arguments

    @cached_property
    def program(self) -> Program:
        """Its operations, with equal subexpressions once."""
        steps: list[tuple[str, tuple[Any, ...]]] = []
        places: dict[tuple[str, tuple[Any, ...]], int] = {}
        known: dict[int, int] = {}
        ahead: list[tuple[Expression, bool]] = [(self, False)]
        while ahead:
            node, is_ready = ahead.pop()
            if id(node) in known:
                continue
            parts = [x for x in node.arguments if isinstance(x, Expression)]
            if not is_ready and parts:
                ahead.append((node, True))
                ahead += [(part, False) for part in parts]
                continue
            taken = tuple(known[id(x)] if isinstance(x, Expression) else x for x in node.arguments)
            step = node.operation, taken
            if step not in places:
                places[step] = len(steps)
                steps.append(step)
            known[id(node)] = places[step]
        constant: list[bool] = []
        for operation, taken in steps:
            inner = taken[:1] if operation == "power" else taken
            is_leaf = operation in ("z", "number", "pi")
            constant.append(operation != "z" if is_leaf else all(constant[i] for i in inner))
        return Program(tuple(steps), tuple(constant))

    def at(self, argument: Expression | Number) -> Expression:
        """Replace `z` by another expression.

        Parameters
        ----------
        argument : Expression or number
            What replaces `z`.

        Returns
        -------
        Expression
            The composed function.
        """
        inner, made = _expression(argument), list[Expression]()
        for operation, taken in self.program.steps:
            if operation == "z":
                made.append(inner)
            elif operation in ("number", "pi"):
                made.append(Expression(operation, *taken))
            elif operation == "power":
                made.append(Expression(operation, made[taken[0]], taken[1]))
            else:
                made.append(Expression(operation, *(made[i] for i in taken)))
        return made[-1]

    @cached_property
    def _hash(self) -> int:
        return hash(self.program)

    def __hash__(self) -> int:
        """Equal for equal expressions."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Whether both do the same operations on the same numbers."""
        return isinstance(other, Expression) and self.program == other.program

    def __bool__(self) -> NoReturn:
        """An expression is neither true nor false."""
        raise TypeError("an analytic function has no cases: its argument cannot be compared")

    def __float__(self) -> NoReturn:
        """An expression is no number."""
        raise TypeError("an expression is no number: take functions of pyengine.analytic")

    def __add__(self, other: Expression | Number) -> Expression:
        return Expression("add", self, _expression(other))

    def __radd__(self, other: Number) -> Expression:
        return Expression("add", _expression(other), self)

    def __sub__(self, other: Expression | Number) -> Expression:
        return Expression("subtract", self, _expression(other))

    def __rsub__(self, other: Number) -> Expression:
        return Expression("subtract", _expression(other), self)

    def __mul__(self, other: Expression | Number) -> Expression:
        return Expression("multiply", self, _expression(other))

    def __rmul__(self, other: Number) -> Expression:
        return Expression("multiply", _expression(other), self)

    def __truediv__(self, other: Expression | Number) -> Expression:
        return Expression("divide", self, _expression(other))

    def __rtruediv__(self, other: Number) -> Expression:
        return Expression("divide", _expression(other), self)

    def __neg__(self) -> Expression:
        return Expression("negative", self)

    def __pos__(self) -> Expression:
        return self

    def __pow__(self, other: Number) -> Expression:
        exponent = _exact(other)
        if exponent.denominator == 1:
            return Expression("power", self, int(exponent))
        return exp(_expression(exponent) * log(self))

    def __repr__(self) -> str:
        """The expression in Python syntax."""
        made: list[str] = []
        for operation, taken in self.program.steps:
            if operation in ("z", "pi"):
                made.append(operation)
            elif operation == "number":
                made.append(str(taken[0]))
            elif operation == "negative":
                made.append(f"(-{made[taken[0]]})")
            elif operation == "power":
                made.append(f"({made[taken[0]]}**{taken[1]})")
            elif operation in SHOWN:
                made.append(f"({made[taken[0]]}{SHOWN[operation]}{made[taken[1]]})")
            else:
                made.append(f"{operation}({made[taken[0]]})")
        return made[-1]


def _exact(value: Any) -> Fraction:
    """The number as an exact fraction."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal | str):
        raise TypeError(
            "expressions combine with integers, floats, fractions, decimal numbers and text, got "
            f"{value!r}"
        )
    try:
        return Fraction(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"a number of an expression must be finite, got {value!r}") from error


def _expression(value: Any) -> Expression:
    return value if isinstance(value, Expression) else Expression("number", _exact(value))


def number(value: Number) -> Expression:
    """Return a constant: ``number("0.1")`` is a tenth, ``number(0.1)`` the double next to it.

    Parameters
    ----------
    value : int, float, Fraction, Decimal or str
        A finite number.

    Returns
    -------
    Expression
        The constant, exactly.

    Raises
    ------
    TypeError, ValueError
        For a value that is not a number, and for numbers that are not finite.
    """
    return _expression(value)


z = Expression("z")
pi = Expression("pi")


def exp(x: Expression | Number) -> Expression:
    """Return the exponential.

    Parameters
    ----------
    x : Expression or number
        The argument.

    Returns
    -------
    Expression
        The function applied to ``x``.
    """
    return Expression("exp", _expression(x))


def log(x: Expression | Number) -> Expression:
    """Return the principal logarithm.

    Parameters
    ----------
    x : Expression or number
        The argument.  Analytic where it is not <= 0.

    Returns
    -------
    Expression
        The function applied to ``x``.
    """
    return Expression("log", _expression(x))


def sqrt(x: Expression | Number) -> Expression:
    """Return the principal root.

    Parameters
    ----------
    x : Expression or number
        The argument.  Analytic where it is not <= 0.

    Returns
    -------
    Expression
        The function applied to ``x``.
    """
    return Expression("sqrt", _expression(x))


def sinh(x: Expression | Number) -> Expression:
    """Return the hyperbolic sine.

    Parameters
    ----------
    x : Expression or number
        The argument.

    Returns
    -------
    Expression
        The function applied to ``x``.
    """
    return Expression("sinh", _expression(x))


def cosh(x: Expression | Number) -> Expression:
    """Return the hyperbolic cosine.

    Parameters
    ----------
    x : Expression or number
        The argument.

    Returns
    -------
    Expression
        The function applied to ``x``.
    """
    return Expression("cosh", _expression(x))


def tanh(x: Expression | Number) -> Expression:
    """Return the hyperbolic tangent.

    Parameters
    ----------
    x : Expression or number
        The argument.

    Returns
    -------
    Expression
        The function applied to ``x``.
    """
    return Expression("tanh", _expression(x))


def erfc(x: Expression | Number) -> Expression:
    """Return the complementary error function.

    Parameters
    ----------
    x : Expression or number
        The argument.

    Returns
    -------
    Expression
        The function applied to ``x``.
    """
    return Expression("erfc", _expression(x))


def lgamma(x: Expression | Number) -> Expression:
    """Return the logarithm of the gamma function.

    Parameters
    ----------
    x : Expression or number
        The argument.  Its real part must be positive.

    Returns
    -------
    Expression
        The function applied to ``x``.
    """
    return Expression("lgamma", _expression(x))


class Evaluator:
    """Evaluates an expression in one arithmetic; subexpressions without `z` are evaluated once.

    ``operations`` maps names to functions of that arithmetic: ``number`` (of a fraction), ``pi``
    (without argument), ``add``, ``subtract``, ``multiply``, ``divide``, ``negative``, ``power`` (of
    a base and an integer), and `FUNCTIONS`.
    """

    def __init__(self, program: Program, operations: Mapping[str, Callable[..., Any]]) -> None:
        self._names = [operation for operation, _ in program.steps]
        self._varying: dict[int, list[int]] = {}  # by step; none where its last argument is fixed
        self._made: list[Any] = []
        self._argument: list[int] = []
        self._plan: list[tuple[int, Callable[..., Any], int, int]] = []
        power = operations["power"]
        for i, ((operation, taken), is_constant) in enumerate(
            zip(program.steps, program.constant, strict=True)
        ):
            value = None
            if operation == "z":
                self._argument.append(i)
            elif operation == "number":
                value = operations["number"](taken[0])
            else:
                function, places = operations[operation], taken
                if operation == "power":
                    function, places = partial(lambda n, base: power(base, n), taken[1]), taken[:1]
                if is_constant:
                    value = function(*[self._made[j] for j in places])
                else:
                    self._plan.append((i, function, places[0], (*places, -1)[1]))
                    varying = [j for j in places if not program.constant[j]]
                    self._varying[i] = varying if places[-1] in varying else []
            self._made.append(value)

    def __call__(self, argument: Any) -> Any:
        """Return the value at ``argument``."""
        return self.parts(argument)[-1]

    def parts(
        self, argument: Any, closer: Callable[[int, Any], Any] | None = None, *names: str
    ) -> list[Any]:
        """Return the values of all operations; the last one is that of the expression.

        Operations called ``names`` whose last operand is no constant take ``closer(i, value)``, a
        tighter enclosure, in the place of the value of operation i.
        """
        made = self._made.copy()
        for i in self._argument:
            made[i] = argument
        for i, function, first, second in self._plan:
            if closer is not None and self._names[i] in names:
                for j in self._varying[i]:
                    made[j] = closer(j, made[j])
            made[i] = function(made[first]) if second < 0 else function(made[first], made[second])
        return made
