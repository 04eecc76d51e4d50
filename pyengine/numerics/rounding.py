"""Units of rounding, from which the bounds of errors are made."""

from __future__ import annotations

__all__ = ["LIBM", "UNIT"]

UNIT = 2.0**-53  # unit roundoff of doubles: the largest relative error of one operation
LIBM = 4.0  # errors of exp, log, expm1, log1p in units of UNIT; the libraries in use stay below 2
