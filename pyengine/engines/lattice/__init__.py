"""Lattice engine: certified bounds for compositions of steps with tabulated loss laws.

All losses are rounded to one lattice, twice: split, which makes the pair more informative, and
merged, which makes it less informative.  One FFT composes each; the bounds cover discretisation,
truncation, aliases and rounding (docs/theory/lattice).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyengine._support.lazy import finder

if TYPE_CHECKING:
    from pyengine.engines.lattice.pair import TOLERANCE, LatticePair

__all__ = ["TOLERANCE", "LatticePair"]

# lazy: other engines import single modules of this package
__getattr__ = finder(__name__, {"pair": "TOLERANCE LatticePair"})
