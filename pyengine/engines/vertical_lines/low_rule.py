"""Gauss's rules for the part of a deformed line below its turn, with as few nodes as may serve.

Chosen by an estimate of the remainder; the line itself proves a bound of it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.engines.vertical_lines.shapes import Kinds, cumulants, cumulants_at
from pyengine.numerics import functions as fn

__all__ = ["POLE", "LowRule", "Window", "low_rule"]

FloatArray = npt.NDArray[np.float64]

POLE = np.array([0.0, 1.0])
SIZES = (12, 16, 20, 24, 32, 40, 48, 64, 80)  # nodes on a panel
WIDTHS = np.array([0.35, 0.6, 1.0, 1.7, 2.8])  # half-axes of ellipses, times the deviation of S
GROWTHS = [1.5**i for i in range(9)]  # numbers of panels tried, relative to the smallest
GOAL = 38.0  # -log of the relative remainder aimed at: e^-38 is 3e-17


class Window(NamedTuple):
    """The range of thresholds that a line is expected to serve."""

    low: float
    high: float


class LowRule(NamedTuple):
    """Rules of ``size`` nodes on equal panels; ``width`` is their ellipses' half-axis in λ."""

    panels: int
    size: int
    width: float


def low_rule(kinds: Kinds, tilt: float, height: float, window: Window) -> LowRule | None:
    """Return the rules for the line below ``height``; None where none is expected to serve."""
    known = [(number, cumulants_at(shape, tilt)) for shape, number in kinds]
    total, variance = (sum(number * each[i] for number, each in known) for i in (0, 2))
    spread = math.sqrt(variance)
    best: LowRule | None = None
    apart = np.abs(tilt - POLE)
    widths = WIDTHS / spread
    ends = cumulants(kinds, np.concatenate([tilt + widths, tilt - widths]))[0] - total
    ends = ends.reshape(2, -1) + np.array([[-window.low], [window.high]]) * widths
    logs = ends.max(axis=0, initial=0.0)
    for width, most in zip(widths.tolist(), logs.tolist(), strict=True):
        for count in _counts(height * spread):
            half = 0.5 * height / count
            across = fn.hypot(half, width)
            # least distance of an ellipse from each pole, by the pole's distances from its foci
            room = 0.5 * (apart + fn.hypot(apart, 2.0 * half)) - across
            if (room <= 0.0).any():
                continue
            log = fn.log(8.0 * height) + most + GOAL
            log += float(fn.log(np.maximum(apart, 1e-3) / room).sum())
            needed = 0.5 * log / fn.log((across + width) / half)
            size = next((n for n in SIZES if n >= needed), None)
            if size is not None and (best is None or count * size < best.panels * best.size):
                best = LowRule(count, size, width)
    return best


def _counts(turns: float) -> list[int]:
    """Numbers of panels worth trying, for a height in 1/deviations."""
    first = max(1.0, turns / 12.0)
    return sorted({math.ceil(first * growth) for growth in GROWTHS})
