"""Units of rounding, in which error bounds are expressed."""

from __future__ import annotations

__all__ = ["ELEMENTARY", "ERFC", "UNIT"]

UNIT = 2.0**-53  # unit roundoff of doubles: the largest relative error of one operation
# Relative errors of the C core's functions, in multiples of UNIT; a unit in the last place is at
# most two of them (docs/theory/arithmetic).
ELEMENTARY = 4.0  # of exp, log, expm1, log1p
ERFC = 16.0
