"""Cells of a table: one answer each, as text that is the same on all machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import Any

from pyengine._support import checks
from pyengine._support.certainty import ESTIMATE, PROVEN, certainty
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism
from pyengine.threat.risks import ASKED, REFERENCED, risk_answers
from pyengine.workbench.runs.numbers import fraction
from pyengine.workbench.tables.models import model_of

__all__ = ["INTERNAL", "Cell", "auto", "each", "from_doubles", "from_mpf", "reference", "singly"]

# First words of the message in a cell without a value because of a defect of this package.
INTERNAL = "internal error: "


@dataclass(frozen=True)
class Cell:
    """An answer with its bounds as decimal texts: lower <= truth <= upper.

    They are None if there is no answer; ``message`` then says why.  ``error`` is the larger
    distance of a bound from the value; ``certainty`` is "proven" if the bounds are proven, and
    "estimate" if they follow from an error estimate.
    """

    value: str | None = None
    lower: str | None = None
    upper: str | None = None
    error: str | None = None
    certainty: str = ""
    engine: str = ""
    message: str = ""


def auto(
    mechanism: Mechanism,
    question: str,
    adjacency: str,
    values: Sequence[str],
    threat_model: str = "dp",
) -> list[Cell]:
    """Answers in double precision, each as the shortest text of a double.

    A value for which no engine has an answer gets a cell with a message.
    """
    doubles = [checks.as_double(fraction(value)) for value in values]
    model = model_of(threat_model)

    def ask(points: Sequence[float]) -> list[Cell]:
        bounds, engines, proven = risk_answers(
            question, mechanism, points, adjacency=adjacency, threat_model=model
        )
        numbers = (each.tolist() for each in (bounds.value, bounds.lower, bounds.upper))
        return [from_doubles(*cell) for cell in zip(*numbers, engines, proven, strict=True)]

    return each(ask, doubles)


def each(ask: Callable[[Sequence[Any]], list[Cell]], values: Sequence[Any]) -> list[Cell]:
    """Answer all values at once, or one by one if that fails; failures become messages.

    Messages of internal errors are marked, since they say nothing about the mechanism; but they
    must not end the computation of a long table either.
    """
    try:
        return ask(values)
    except Exception as error:
        if len(values) > 1:
            return [cell for value in values for cell in each(ask, [value])]
        if isinstance(error, AccuracyError | NotDefinedError):
            return [Cell(message=str(error))]
        return [Cell(message=f"{INTERNAL}{type(error).__name__}: {error}")]


def singly(ask: Callable[[str], Cell], values: Sequence[str]) -> list[Cell]:
    """Answer one value after the other."""
    return [cell for value in values for cell in each(lambda one: [ask(one[0])], [value])]


def from_doubles(value: float, lower: float, upper: float, engine: str, proven: bool) -> Cell:
    """Make a cell of doubles, each as its shortest text."""
    error = 0.0 if lower == value == math.inf else max(upper - value, value - lower)
    texts = (repr(value), repr(lower), repr(upper), repr(error))
    return Cell(*texts, certainty(proven), engine)


def reference(
    mechanism: Mechanism,
    question: str,
    adjacency: str,
    values: Sequence[str],
    digits: int,
    threat_model: str = "dp",
) -> list[Cell]:
    """Answers in arbitrary precision, each with ``digits`` significant digits."""
    from pyengine import reference as truth

    words = {"adjacency": adjacency, "threat_model": model_of(threat_model), "digits": digits}
    ask = partial(getattr(truth, REFERENCED[question]), mechanism, **words)
    ceiling = ASKED[question].ceiling

    return singly(lambda point: from_mpf(ask(point), digits, ceiling), values)


def from_mpf(answer: Any, digits: int, ceiling: float | None) -> Cell:
    """Make a cell of a reference value, rounded to ``digits`` digits; the error covers that."""
    from mpmath import isinf

    sure = PROVEN if answer.certified else ESTIMATE
    if isinf(answer):
        return Cell("inf", "inf", "inf", "0", sure, "reference")
    exact = _exact(answer)
    with localcontext() as context:
        context.prec = digits
        value = Decimal(exact.numerator) / Decimal(exact.denominator)
    # half a unit of the last digit instead of the actual rounding error, so that the text of the
    # error does not depend on further digits of the answer
    half_unit = Fraction(10) ** (value.adjusted() - digits + 1) / 2
    rounding = half_unit if Fraction(value) != exact else Fraction(0)
    error = _rounded_up(rounding + _exact(answer.error))
    with localcontext() as context:
        context.prec = 10_000  # sums of two decimal numbers are exact
        lower, upper = max(value - error, Decimal(0)), value + error
        if ceiling == 1.0:
            upper = min(upper, Decimal(1))
        return Cell(_plain(value), _plain(lower), _plain(upper), _plain(error), sure, "reference")


def _exact(number: Any) -> Fraction:
    sign, mantissa, exponent, _ = number._mpf_
    size = Fraction(int(mantissa)) * (Fraction(2) ** int(exponent))
    return -size if sign else size


def _rounded_up(error: Fraction) -> Decimal:
    """Round up to two significant digits."""
    with localcontext() as context:
        context.prec, context.rounding = 2, ROUND_UP
        return Decimal(error.numerator) / Decimal(error.denominator)


def _plain(value: Decimal) -> str:
    return str(value).replace("E+", "e").replace("E", "e")
