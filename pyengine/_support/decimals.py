"""Numbers as text: with few digits, rounded in a chosen direction, exponents as in 1e-5."""

from __future__ import annotations

import math
import re
import sys
from decimal import ROUND_HALF_EVEN, Context
from typing import Any

__all__ = ["number", "written"]


def written(value: Any, form: str = "") -> str:
    """Text of a number as by `format`, but with short exponents: 1e-5 instead of 1e-05.

    Without a ``form``, the text of a float reads back as the same float.
    """
    text = format(value, form or "g")
    if not form and isinstance(value, float) and float(text) != value:
        text = repr(float(value)).removesuffix(".0")
    return re.sub(r"e\+?(-?)0*(\d)", r"e\1\2", text)


def number(value: float, digits: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """Text of a number with 1 to 15 significant digits.

    ``rounding`` is a mode of `decimal`, with which bounds are rounded outwards.
    """
    if not math.isfinite(value):
        return str(float(value))
    rounded = Context(prec=digits, rounding=rounding).create_decimal(float(value))
    if 0.0 < abs(value) < sys.float_info.min:  # doubles are too far apart for so many digits
        return written(rounded.normalize(), "e")
    return written(float(rounded), f".{digits}g")
