"""Numbers of specifications and files as exact text: decimal numbers and fractions of two."""

from __future__ import annotations

from fractions import Fraction

from pyengine._support import checks

__all__ = ["Literal", "fraction", "number_text", "short"]


class Literal(str):
    """Text of a number that a file holds without quotes, digit for digit."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def number_text(name: str, value: object) -> str:
    """Exact text of a finite number that a file holds, quoted or not, or ValueError.

    A decimal number or a fraction of two, as it was written.

    >>> number_text("p", "4096 / 50000"), number_text("p", 1e-3), number_text("steps", 10)
    ('4096/50000', '0.001', '10')
    """
    if isinstance(value, Literal):
        text = str(value).replace("_", "")  # TOML allows 1_000.5, and nan and inf without quotes
        if text.lstrip("+-").lower() == "nan":
            raise ValueError(f"{name} must not be NaN, got {value!r}")
        if text.lstrip("+-").lower() in ("inf", "infinity"):
            raise ValueError(f"{name} must be finite, got {value!r}")
    elif isinstance(value, str):
        text = value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = repr(value)
    else:
        raise ValueError(f"{name} must be a real number, got {value!r}")
    checks.exact(name, text)
    return "".join(text.split())


def fraction(text: str) -> Fraction:
    """Value of the text of a number."""
    return checks.exact("number", text)


def short(text: str) -> str:
    """Text that reads back as the same double: what the engines in double precision work on.

    >>> short("4096/50000"), short("1000"), short("1e-3")
    ('0.08192', '1000', '0.001')
    """
    value = fraction(text)
    if value.denominator == 1 and text.lstrip("+-").isdecimal():
        return str(value.numerator)
    return repr(checks.as_double(value))
