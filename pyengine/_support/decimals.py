"""Floats as decimal numbers of a few digits, rounded to a chosen side."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context

__all__ = ["number"]


def number(value: float, digits: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """Text with so many significant digits; bounds are rounded outwards by their ``rounding``.

    Parameters
    ----------
    value : float
        Infinite numbers are "inf" and "-inf".
    digits : int
        Number of significant digits, 1 to 15: so many survive the way through a double.
    rounding : str
        A mode of `decimal`.
    """
    if not math.isfinite(value):
        return str(float(value))
    rounded = Context(prec=digits, rounding=rounding).create_decimal(float(value))
    return f"{float(rounded):.{digits}g}"
