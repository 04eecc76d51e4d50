"""Gauss-Legendre nodes and weights in extended precision, and what that precision is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import kept

__all__ = [
    "EXTENDED",
    "Extended",
    "ExtendedArray",
    "LegendreNodes",
    "gauss_nodes",
    "rough_nodes",
]

FloatArray = npt.NDArray[np.float64]
ExtendedArray = npt.NDArray[Any]
Extended: Any = np.longdouble
EXTENDED = 0.5 * float(np.finfo(np.longdouble).eps)  # of one operation in extended precision
# what tests watch, in roundings of extended precision: errors of Gauss nodes, and of n weights
# relative to them and to n^2
NODES = 1.0
WEIGHTS = 1.0


class LegendreNodes(NamedTuple):
    """Gauss-Legendre nodes and weights on (0, 1), in extended precision.

    ``error`` bounds the errors of the weights relative to them.
    """

    place: ExtendedArray
    weight: ExtendedArray
    error: float


@kept(16)
def rough_nodes(size: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre nodes and weights on (-1, 1), rounded; for choices only."""
    rule = gauss_nodes(size)
    return (2.0 * rule.place - 1.0).astype(np.float64), (2.0 * rule.weight).astype(np.float64)


@kept(64)
def gauss_nodes(size: int) -> LegendreNodes:
    """Return Gauss-Legendre nodes and weights: exact for degrees below 2 ``size``."""
    rule = np.empty((2, 2, size))  # of places and of weights, upper and lower parts
    lib.pe_gauss_nodes(size, *(ffi.from_buffer("double[]", each) for each in rule))
    place, weight = rule.astype(Extended).sum(axis=1)
    return LegendreNodes(place, weight, WEIGHTS * size * size * EXTENDED)
