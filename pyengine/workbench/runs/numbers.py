"""Numbers in specifications and files as exact texts: decimal numbers and fractions of them."""

from __future__ import annotations

from fractions import Fraction

from pyengine._support import checks

__all__ = ["Literal", "fraction", "number_text", "short"]


class Literal(str):
    """Text of a number in a file without quotes, with all its digits."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def number_text(name: str, value: object) -> str:
    """Exact text of a finite number in a file, quoted or not; ValueError for anything else.

    It is a decimal number or a fraction, as it was written but without spaces.

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
    """Exact value of the text of a number."""
    return checks.exact("number", text)


def short(text: str) -> str:
    """Shortest text of the double nearest to a number, which the engines use; integers stay exact.

    >>> short("4096/50000"), short("1000"), short("1e-3")
    ('0.08192', '1000', '0.001')
    """
    value = fraction(text)
    if value.denominator == 1 and text.lstrip("+-").isdecimal():
        return str(value.numerator)
    return repr(checks.as_double(value))
