"""Special functions in tables: their values over grids of parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyengine._support import checks
from pyengine._support.certainty import ESTIMATE
from pyengine.workbench.runs.numbers import fraction, number_text
from pyengine.workbench.tables.cells import Cell, from_doubles, from_mpf, singly

__all__ = ["FUNCTIONS", "Special", "argument_of", "special", "special_cells", "specials"]

# For each name in pyengine.special, the argument and the other parameters in their order.
FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ncx2_cdf": ("x", ("df", "nc")),
    "ncx2_sf": ("x", ("df", "nc")),
    "ncx2_ppf": ("p", ("df", "nc")),
    "ncx2_isf": ("p", ("df", "nc")),
    "marcum_q": ("b", ("order", "a")),
    "marcum_p": ("b", ("order", "a")),
}
IN_REFERENCE = {"marcum_p": "marcum_q_complement"}
UNIT = 2.0**-52
MEASURED = 16.0  # error in units: four times the largest error that the tests allow
MANY = 1_000_000  # most functions in a grid
SMALLEST = math.ulp(0.0)


@dataclass(frozen=True)
class Special:
    """A special function, one of `FUNCTIONS`, with the values of all parameters but its argument.

    ``parameters`` are pairs of name and exact text in the order of the function; ``name`` is the
    name in the table.
    """

    name: str
    function: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def argument(self) -> str:
        """Name of the argument."""
        return FUNCTIONS[self.function][0]

    def get(self, parameter: str) -> str | None:
        """Text of a parameter; None if there is no such parameter."""
        return dict(self.parameters).get(parameter)


def argument_of(function: str, value: object) -> str:
    """Exact text of a function's argument; ValueError if it is outside the domain."""
    return _in_domain(FUNCTIONS[function][0], value)


def _in_domain(name: str, value: object) -> str:
    text = number_text(name, value)
    number = fraction(text)
    if name == "p":
        checks.probability(name, number)
    elif name in ("df", "order"):
        checks.positive(name, number)
    else:
        checks.non_negative(name, number)
    return text


def special(function: str, table: Mapping[str, object], name: str = "") -> Special:
    """Return a function with its parameters, or raise ValueError for wrong ones."""
    names = FUNCTIONS[function][1]
    for key in names:
        if key not in table:
            raise ValueError(f"{key} is missing")
    for key in table:
        if key not in names:
            raise ValueError(f"unknown key {key!r}; {function} allows {', '.join(names)}")
    found = tuple((key, _in_domain(key, table[key])) for key in names)
    return Special(name or function, function, found)


def specials(table: Mapping[str, Any]) -> list[tuple[Special, tuple[str, ...]]]:
    """Return the functions of a grid, each with the values of its argument.

    The table has ``function``, its argument and its parameters, each a number or a list of numbers,
    and optionally a ``name``.  ValueError for anything else.
    """
    rest = dict(table)
    function = checks.choice("function", rest.pop("function", None), tuple(FUNCTIONS))
    name = rest.pop("name", function)
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"name must be a printable string, got {name!r}")
    argument, _ = FUNCTIONS[function]
    if argument not in rest:
        raise ValueError(f"{argument} is missing")
    values = tuple(argument_of(function, value) for value in _list(argument, rest.pop(argument)))
    if len(set(map(fraction, values))) < len(values):
        raise ValueError(f"{argument} holds a value twice")
    axes = {key: _list(key, value) for key, value in rest.items()}
    number = 1
    for choices in axes.values():
        number *= len(choices)
    if number > MANY:
        raise ValueError(f"a grid must have at most {MANY:,} functions, got {number:,}")
    found = []
    for chosen in itertools.product(*axes.values()):
        one = special(function, dict(zip(axes, chosen, strict=True)), name)
        words = [f"{key}={value}" for key, value in one.parameters if isinstance(rest[key], list)]
        label = f"{name} ({', '.join(words)})" if words else name
        found.append((Special(label, function, one.parameters), values))
    return found


def _list(key: str, value: Any) -> list[Any]:
    if isinstance(value, list) and not value:
        raise ValueError(f"{key} must be a number or a list of numbers, got []")
    return value if isinstance(value, list) else [value]


def special_cells(function: Special, values: Sequence[str], engine: str, digits: int) -> list[Cell]:
    """Values of a function in double precision or from the reference, one cell each."""
    ask = _reference if engine == "reference" else _double
    return singly(lambda at: ask(function, at, digits), values)


def _arguments(function: Special, at: str) -> list[str]:
    others = [text for _, text in function.parameters]
    return [*others, at] if function.argument == "b" else [at, *others]


def _reference(function: Special, at: str, digits: int) -> Cell:
    from pyengine.reference import special as truth

    ask = getattr(truth, IN_REFERENCE.get(function.function, function.function))
    ceiling = None if function.argument == "p" else 1
    return from_mpf(ask(*_arguments(function, at), digits=digits), digits, ceiling)


def _double(function: Special, at: str, digits: int) -> Cell:  # noqa: ARG001 - that of a double
    """Value in double precision; its error is estimated from the largest measured error."""
    from pyengine import special as fast

    numbers = [checks.as_double(fraction(text)) for text in _arguments(function, at)]
    value = float(getattr(fast, function.function)(*numbers))
    if value == 0.0:  # possibly an underflow
        return from_doubles(0.0, 0.0, SMALLEST, "special", proven=False)
    if value == math.inf:
        return from_doubles(value, value, value, "special", proven=False)
    error = MEASURED * UNIT * value
    upper = value + error
    if function.argument == "p":
        # the rounding of the probability changes the quantile, too
        _, df, nc = numbers
        density = float(fast.ncx2_pdf(value, df, nc))
        tail = min(float(fast.ncx2_cdf(value, df, nc)), float(fast.ncx2_sf(value, df, nc)))
        error += MEASURED * UNIT * tail / density
        upper = value + error
    else:
        upper = min(upper, 1.0)
    lower = max(value - error, 0.0)
    texts = (repr(value), repr(lower), repr(upper), repr(error))
    return Cell(*texts, ESTIMATE, "special")
