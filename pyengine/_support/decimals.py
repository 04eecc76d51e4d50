"""Numbers as people write them: a few digits, rounded to a chosen side, exponents as in 1e-5."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_EVEN, Context
from typing import Any

__all__ = ["number", "written"]


def written(value: Any, form: str = "") -> str:
    """Text of a number as `format` has it, but with the exponent as people write it.

    Without a form that of a float reads back as the same one.
    """
    text = format(value, form or "g")
    if not form and isinstance(value, float) and float(text) != value:
        text = repr(float(value)).removesuffix(".0")
    return re.sub(r"e\+?(-?)0*(\d)", r"e\1\2", text)


def number(value: float, digits: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """Text with so many significant digits; bounds are rounded outwards by their ``rounding``.

    From 1 to 15 digits survive the way through a double; ``rounding`` is a mode of `decimal`.
    """
    if not math.isfinite(value):
        return str(float(value))
    rounded = Context(prec=digits, rounding=rounding).create_decimal(float(value))
    return written(float(rounded), f".{digits}g")
