"""Thresholds on both sides of levels, and ε on both sides of δ, from a first guess.

Only where bounds are asked is chosen here.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyengine.engines.exact.levels import Tails, Thresholds, excess
from pyengine.engines.vertical_lines.ordered import RoughTails
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["points_at", "root_of"]

FloatArray = npt.NDArray[np.float64]
Function = Callable[[float], float]
Bracket = tuple[float, float]

TRIES = 12
STEPS = 400
# parts of the expected distance by which thresholds may be apart, with atoms and without
NEAR, SMOOTH = 1e-10, 1e-7
GROWTH = 4.0  # of steps outwards, where roots lie beyond what was expected
STEP = 8.0  # by which a threshold that is not surely on its side is moved further each time


def root_of(
    function: Function,
    expected: Bracket,
    ends: Bracket,
    room: float = 0.0,
    jumps: list[float] | None = None,
    noise: float = 0.0,
) -> Bracket:
    """Return a narrow bracket of the place where a falling function becomes negative.

    Parameters
    ----------
    function : callable
        The function.
    expected : pair of float
        Between which numbers the place is expected.
    ends : pair of float
        Between which it is for sure.
    room : float
        Width that is narrow enough beside a rounding.
    jumps : list of float, optional
        Where the function may jump, rising.
    noise : float
        Values that are as good as 0: a place with one is returned as both ends.
    """
    least, most = ends
    low, high = (min(max(x, least), most) for x in expected)
    at_low = function(low) if low > least else math.inf
    at_high = -math.inf
    if at_low >= 0.0:
        at_high = function(high) if high < most else -math.inf
    step = max(high - low, 1e-12 * (most - least))
    for attempt in range(TRIES):
        if at_low >= 0.0 >= at_high:
            break
        is_last = attempt == TRIES - 1
        if at_low < 0.0:
            high, at_high = low, at_low
            low = least if is_last else max(low - step, least)
            at_low = function(low) if low > least else math.inf
        else:
            low, at_low = high, at_high
            high = most if is_last else min(high + step, most)
            at_high = function(high) if high < most else -math.inf
        step *= GROWTH
    if jumps:
        low, at_low, high, at_high = _between(function, jumps, low, at_low, high, at_high, room)
        if high - low <= 2.0 * room:
            return low, high
    return _closed(function, high, at_high, low, at_low, room, noise)


def _between(
    function: Function,
    jumps: list[float],
    low: float,
    at_low: float,
    high: float,
    at_high: float,
    near: float,
) -> tuple[float, float, float, float]:
    """A bracket between jumps, or around one.

    A level that lies on an atom would be searched for by halving, as its function has no root.
    """
    while True:
        first, last = bisect_right(jumps, low + near), bisect_left(jumps, high - near)
        if first >= last:
            return low, at_low, high, at_high
        jump = jumps[(first + last) // 2]
        before = function(jump - near)
        if before < 0.0:
            high, at_high = jump - near, before
            continue
        after = function(jump + near)
        if after < 0.0:
            return jump - near, before, jump + near, after
        low, at_low = jump + near, after


def _closed(
    function: Function, a: float, fa: float, b: float, fb: float, room: float, noise: float
) -> Bracket:
    """A narrow bracket from a wider one of different signs.

    Inverse quadratic interpolation or halving by the rule of Chandrupatla (1997), as
    `pyengine.numerics.bracketing` does for arrays.
    """
    c, fc = b, fb
    t = fa / (fa - fb) if math.isfinite(fa - fb) and fa != fb else 0.5
    for _ in range(STEPS):
        nearest = abs(a) if abs(fa) < abs(fb) else abs(b)
        limit = (2.0 * UNIT * nearest + room) / abs(b - a) if a != b else 1.0
        if limit > 0.5:
            break
        x = a + min(max(t, limit), 1.0 - limit) * (b - a)
        fx = function(x)
        if abs(fx) <= noise:
            return x, x
        if (fx > 0.0) == (fa > 0.0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        t = _part(a, fa, b, fb, c, fc)
    return min(a, b), max(a, b)


def _part(a: float, fa: float, b: float, fb: float, c: float, fc: float) -> float:
    """Where between a and b the root is expected."""
    if not math.isfinite(fa - fb) or not math.isfinite(fc - fb) or fc in (fa, fb) or c == b:
        return 0.5
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if not (phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi):
        return 0.5
    inner = fa / (fb - fa) * fc / (fb - fc)
    return inner + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)


def points_at(
    law: Thresholds,
    roughly: Callable[[float], RoughTails],
    alpha: FloatArray,
    low: FloatArray,
    high: FloatArray,
    jumps: FloatArray,
    *,
    has_atoms: bool,
) -> tuple[FloatArray, Tails]:
    """Return thresholds at which A's mass is surely on both sides of α, as `thresholds` does.

    Parameters
    ----------
    law : Thresholds
        The masses, with bounds.
    roughly : callable
        About the masses above a threshold and below.
    alpha : ndarray
        Levels in (0, 1).
    low, high : ndarray
        Where thresholds are expected.
    jumps : ndarray
        Losses that may be atoms, rising.
    has_atoms : bool
        Whether atoms count.
    """
    ends = law.support()
    room = 32.0 * UNIT * (1.0 + max(abs(ends[0]), abs(ends[1])))
    least, most = ends[0] - room, ends[1] + room
    # what lies between thresholds is known to the square of their distance, or to the distance
    # times the mass of an atom
    near = (NEAR if has_atoms else SMOOTH) * np.abs(high - low)
    places, found = jumps.tolist(), []
    for level, *expected, apart in zip(
        alpha.tolist(), low.tolist(), high.tolist(), near.tolist(), strict=True
    ):
        over = _small_tail(roughly, level) if level <= 0.5 else _large_tail(roughly, level)
        found.append(root_of(over, (expected[0], expected[1]), (least, most), apart, places))
    first, second = np.array(found).T
    # apart from the threshold by more than its rounding, so that masses are surely on their sides
    up = down = near + 64.0 * UNIT * (np.abs(first) + 2.0**-10 * abs(most))
    c = np.array([first, second, first, second])
    for _ in range(TRIES):
        c[0], c[3] = np.minimum(second + up, most), np.maximum(first - down, least)
        points = Tails(*(part.reshape(c.shape) for part in law.tails(c.ravel())))
        least_off, most_off = excess(points, alpha)
        above = (most_off[0] > 0.0) & (c[0] < most)
        below = (least_off[3] < 0.0) & (c[3] > least)
        if not (above.any() or below.any()):
            break
        up, down = np.where(above, STEP * up, up), np.where(below, STEP * down, down)
    return c, points


def _small_tail(roughly: Callable[[float], RoughTails], level: float) -> Function:
    """The logarithm of A's mass above, over that of a level."""
    goal = fn.log(level)

    def over(c: float) -> float:
        above = roughly(c)[0]
        return fn.log(above) - goal if above > 0.0 else -1e300

    return over


def _large_tail(roughly: Callable[[float], RoughTails], level: float) -> Function:
    """The same of the masses below, with the other sign."""
    goal = fn.log(1.0 - level)

    def over(c: float) -> float:
        below = roughly(c)[1]
        return goal - fn.log(below) if below > 0.0 else 1e300

    return over
