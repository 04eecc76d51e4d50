"""Units of rounding, from which the bounds of errors are made."""

from __future__ import annotations

from pyengine.numerics.libm import ALLOWED

__all__ = ["ERFC", "LIBM", "UNIT"]

UNIT = 2.0**-53  # unit roundoff of doubles: the largest relative error of one operation
# Relative errors in units of UNIT, of which a unit in the last place is at most two.
LIBM = 2.0 * ALLOWED["exp"]  # of exp, log, expm1, log1p
ERFC = 2.0 * ALLOWED["erfc"]
