"""Gauss-Legendre nodes and weights in sums of two doubles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import kept
from pyengine.numerics.wide import EXTENDED

__all__ = ["EXTENDED", "LegendreNodes", "gauss_nodes", "rough_nodes"]

FloatArray = npt.NDArray[np.float64]
# error bounds in units of `EXTENDED`, held by tests: of nodes, absolute, and of the weights of n
# nodes, relative and per n^2
NODES = 1.0
WEIGHTS = 1.0


class LegendreNodes(NamedTuple):
    """Gauss-Legendre nodes and weights on (0, 1): arrays of shape (2, n), sums of two doubles.

    ``error`` bounds the relative errors of the weights.
    """

    place: FloatArray
    weight: FloatArray
    error: float


@kept(16)
def rough_nodes(size: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights on (-1, 1) as doubles; for estimates only."""
    rule = gauss_nodes(size)
    return 2.0 * rule.place[0] - 1.0, 2.0 * rule.weight[0]


@kept(64)
def gauss_nodes(size: int) -> LegendreNodes:
    """Return the Gauss-Legendre rule of ``size`` nodes, exact for degrees below 2 ``size``."""
    place, weight = np.empty((2, 2, size))
    lib.pe_gauss_nodes(size, *(ffi.from_buffer("double[]", each) for each in (place, weight)))
    return LegendreNodes(place, weight, WEIGHTS * size * size * EXTENDED)
