"""Lattice engine: certified bounds for every composition of steps given by their loss's law.

The laws of all steps are put on one lattice, twice: split so that the pair becomes more
informative, and merged so that it becomes less.  One FFT composes each, and what is computed lies
between bounds that cover discretisation, truncation, aliases and rounding (docs/theory/lattice).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyengine._support.lazy import finder

if TYPE_CHECKING:
    from pyengine.engines.lattice.pair import TOLERANCE, LatticePair

__all__ = ["TOLERANCE", "LatticePair"]

# Other engines use parts of this one, which are imported without the rest.
__getattr__ = finder(__name__, {"pair": "TOLERANCE LatticePair"})
