"""ε of a run against its noise, with as few questions as the picture needs."""

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

FACTORS = np.geomspace(0.25, 4.0, 13)  # of the noise, before bends are filled
HALF = math.sqrt(FACTORS[1] / FACTORS[0])
BEND = 5e-3  # of ε, relative: how far a straight piece may pass the curve
LARGEST = 100.0  # ε that is drawn

FloatArray = npt.NDArray[np.float64]


def noise_curve(
    run: Mechanism, delta: float, adjacency: str, *, proven: bool
) -> tuple[FloatArray, tuple[Series, ...]]:
    """ε at δ for more and for less noise, as far as engines answer and ε can be drawn.

    Noise multipliers, increasing, or factors of the noise where steps differ, and one line of ε for
    each of them.  Both are empty for a run without noise.
    """
    make = with_noise(run)
    if make is None:
        return np.empty(0), ()
    words: dict[str, Any] = {"adjacency": adjacency, "tolerance": TOLERANCE, "proven": proven}
    rows: dict[float, Series] = {}

    def found(factor: float) -> float:
        """ε at a factor, kept if it can be drawn; 0 without an answer."""
        try:
            row = asked("epsilon", adjacency, make(factor), [delta], **words)
        except AccuracyError:
            return 0.0
        if 0.0 < row.bounds.upper[0] <= LARGEST:
            rows[factor] = row
        return float(row.bounds.upper[0])

    # ε grows as noise falls, and answers far beyond what is drawn take longest: so from above,
    # and no farther than the first that is not drawn
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
    """Factors beside those at which straight pieces on logarithmic axes are not the curve."""
    factors = sorted(rows)
    at = np.log(factors)
    value = np.log([float(rows[factor].bounds.value[0]) for factor in factors])
    slopes = np.diff(value) / np.diff(at)
    for place in range(1, len(factors) - 1):
        width = at[place + 1] - at[place - 1]
        # a parabola through three points leaves the middle of a piece by h^2 f''/8
        if abs(slopes[place] - slopes[place - 1]) * width / 16.0 > BEND:
            yield from (
                math.sqrt(a * b)
                for a, b in pairwise(factors[place - 1 : place + 2])
                if b / a > 1.01 * HALF
            )


def _foreseen(factor: float, rows: dict[float, Series]) -> float:
    """ε that two points foretell on logarithmic axes, to say where the curve ends."""
    if len(rows) < 2:
        return 0.0
    last, before = sorted(rows)[:2]
    high, low = (float(rows[each].bounds.value[0]) for each in (last, before))
    if not 0.0 < low < high:
        return high
    power = np.log(high / low) / np.log(before / last)
    return float(high * (last / factor) ** power)
