"""ε of a run as a function of its noise, at as few points as the plot needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism
from pyengine.workbench.plots.series import Series, asked, joined
from pyengine.workbench.report.alternatives import TOLERANCE
from pyengine.workbench.report.variants import noise_of, with_noise

__all__ = ["LARGEST", "noise_curve"]

FACTORS = np.geomspace(0.25, 4.0, 13)  # first factors of the noise; more are added at bends
HALF = math.sqrt(FACTORS[1] / FACTORS[0])
BEND = 5e-3  # largest relative error of ε by drawing straight lines
LARGEST = 100.0  # largest ε that is drawn

FloatArray = npt.NDArray[np.float64]


def noise_curve(
    run: Mechanism, delta: float, adjacency: str, *, proven: bool
) -> tuple[FloatArray, tuple[Series, ...]]:
    """ε at δ for more and for less noise, up to `LARGEST` and as far as engines answer.

    Returns increasing noise multipliers, or factors of the noise if steps differ in it, and a tuple
    of one series with an ε for each of them.  Both are empty for a run without noise.
    """
    make = with_noise(run)
    if make is None:
        return np.empty(0), ()
    words: dict[str, Any] = {"adjacency": adjacency, "tolerance": TOLERANCE, "proven": proven}
    rows: dict[float, Series] = {}

    def found(factor: float) -> float:
        """ε at a factor, stored in ``rows`` if it is drawn; 0 without an answer."""
        try:
            row = asked("epsilon", adjacency, make(factor), [delta], **words)
        except AccuracyError:
            return 0.0
        if 0.0 < row.bounds.upper[0] <= LARGEST:
            rows[factor] = row
        return float(row.bounds.upper[0])

    # start with much noise and stop at the first ε that is too large to draw: larger ones would
    # take longest
    beyond = 0.0
    for factor in FACTORS[::-1].tolist():
        if _foreseen(factor, rows) > LARGEST or (beyond := found(factor)) > LARGEST:
            break
    if len(rows) > 1 and (end := min(rows) / HALF) > FACTORS[0]:
        nearest = float(rows[min(rows)].bounds.upper[0])
        between = math.sqrt(nearest * beyond) if beyond > LARGEST else _foreseen(end, rows)
        if between <= LARGEST:
            found(end)
    for factor in sorted(set(_bends(rows))):
        found(factor)
    if len(rows) < 2:
        return np.empty(0), ()
    factors = sorted(rows)
    line = joined([rows[factor] for factor in factors])
    return np.array(factors) * (noise_of(run) or 1.0), (line,)


def _bends(rows: dict[float, Series]) -> Iterator[float]:
    """Further factors where straight lines on logarithmic axes are too far from the curve."""
    factors = sorted(rows)
    at = np.log(factors)
    value = np.log([float(rows[factor].bounds.value[0]) for factor in factors])
    slopes = np.diff(value) / np.diff(at)
    for place in range(1, len(factors) - 1):
        width = at[place + 1] - at[place - 1]
        # the distance of a parabola from its chord is h² f''/8
        if abs(slopes[place] - slopes[place - 1]) * width / 16.0 > BEND:
            yield from (
                math.sqrt(a * b)
                for a, b in pairwise(factors[place - 1 : place + 2])
                if b / a > 1.01 * HALF
            )


def _foreseen(factor: float, rows: dict[float, Series]) -> float:
    """ε extrapolated from the last two points on logarithmic axes, to see where the curve ends."""
    if len(rows) < 2:
        return 0.0
    last, before = sorted(rows)[:2]
    high, low = (float(rows[each].bounds.value[0]) for each in (last, before))
    if not 0.0 < low < high:
        return high
    power = np.log(high / low) / np.log(before / last)
    return float(high * (last / factor) ** power)
