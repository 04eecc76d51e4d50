"""Thresholds on both sides of levels, and ε on both sides of δ, from a first guess.

Only where bounds are asked is chosen here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pyengine.engines.exact.levels import Tails, Thresholds, excess
from pyengine.numerics.bracketing import falling_bracket
from pyengine.numerics.rounding import UNIT

__all__ = ["enclosed", "points_at"]

FloatArray = npt.NDArray[np.float64]
Function = Callable[[FloatArray, npt.NDArray[np.intp]], FloatArray]
Jumps = Callable[[FloatArray, FloatArray], FloatArray]
Sides = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


TRIES = 12
# parts of the expected distance by which thresholds may be apart, with atoms and without
NEAR, SMOOTH = 1e-10, 1e-7
AROUND = 2.0  # widths of what is expected, in which jumps are looked at
GROWTH = 4.0  # of steps outwards, where roots lie beyond what was expected
STEP = 8.0  # by which a threshold that is not surely on its side is moved further each time


def enclosed(
    function: Function,
    low: FloatArray,
    high: FloatArray,
    least: FloatArray,
    most: FloatArray,
    room: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Return narrow brackets of the roots of falling functions.

    Parameters
    ----------
    function : callable
        Takes arguments and the numbers of their functions.
    low, high : ndarray
        Where roots are expected.
    least, most : ndarray
        Where they are for sure.
    room : ndarray or float
        Width that is narrow enough beside a rounding.
    """
    size = low.size
    ends = np.array([np.clip(low, least, most), np.clip(high, least, most)])
    value = np.array([np.full(size, np.inf), np.full(size, -np.inf)])
    last, sign = np.array([least, most]), np.array([[1.0], [-1.0]])
    step = np.maximum(ends[1] - ends[0], 1e-12 * (most - least))
    open_ = ends != last
    for attempt in range(TRIES):
        if open_.any():
            side, which = np.nonzero(open_)
            value[open_] = function(ends[open_], which)
            open_[open_] = sign[side, 0] * value[open_] < 0.0
        if not open_.any():
            break
        # what lies beyond one end is beyond the other end's place
        further = np.clip(ends - sign * step, least, most) if attempt < TRIES - 1 else last
        for beyond, other in ((0, 1), (1, 0)):
            moved = open_[beyond]
            ends[other, moved], value[other, moved] = ends[beyond, moved], value[beyond, moved]
            ends[beyond, moved] = further[beyond, moved]
            value[beyond, moved] = sign[beyond, 0] * np.inf
        open_ &= ends != last
        step = GROWTH * step
    everywhere = np.arange(size)
    known = value[0], value[1]
    return falling_bracket(lambda x: function(x, everywhere), ends[0], ends[1], known, room)


def _between_jumps(
    function: Function, jumps: Jumps, low: FloatArray, high: FloatArray, near: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Narrower places for roots: between jumps of the functions, or around one.

    A level that lies on an atom would be searched for by halving, as its function has no root.
    """
    width = high - low
    least, most = low - AROUND * width, high + AROUND * width
    places = jumps(least, most)
    which, jump = np.nonzero((places > least[:, None]) & (places < most[:, None]))
    if not which.size:
        return low, high
    points = places[jump] + near[which] * np.array([[-1.0], [1.0]])
    value = function(points.ravel(), np.tile(which, 2)).reshape(points.shape)
    before, after = np.full((2, low.size), [[-np.inf], [np.inf]])
    np.maximum.at(before, which, np.where(value > 0.0, points, -np.inf).max(axis=0))
    np.minimum.at(after, which, np.where(value < 0.0, points, np.inf).min(axis=0))
    # what jumps say is known, and what was expected is not
    first, last = np.clip(low, before, after), np.clip(high, before, after)
    before = np.where(np.isfinite(before), before, after - width)
    after = np.where(np.isfinite(after), after, before + width)
    return np.where(first < last, first, before), np.where(first < last, last, after)


def points_at(
    law: Thresholds,
    sides: Sides,
    alpha: FloatArray,
    low: FloatArray,
    high: FloatArray,
    jumps: Jumps,
    *,
    has_atoms: bool,
) -> tuple[FloatArray, Tails]:
    """Return thresholds at which A's mass is surely on both sides of α, as `thresholds` does.

    Parameters
    ----------
    law : Thresholds
        The masses, with bounds.
    sides : callable
        About A's masses above thresholds and below.
    alpha : ndarray
        Levels in (0, 1).
    low, high : ndarray
        Where thresholds are expected.
    jumps : callable
        Losses that may be atoms, from the least of some to the largest of others.
    has_atoms : bool
        Whether atoms count.
    """
    rest, small = 1.0 - alpha, alpha <= 0.5
    goal = np.log(np.where(small, alpha, rest))

    def over(c: FloatArray, which: npt.NDArray[np.intp]) -> FloatArray:
        above, below = sides(c)
        is_small = small[which]
        with np.errstate(divide="ignore"):
            log = np.log(np.where(is_small, above, below)) - goal[which]
        return np.clip(np.where(is_small, log, -log), -1e300, 1e300)

    ends = law.support()
    room = 32.0 * UNIT * (1.0 + max(abs(ends[0]), abs(ends[1])))
    least, most = np.full(alpha.size, ends[0] - room), np.full(alpha.size, ends[1] + room)
    # what lies between thresholds is known to the square of their distance, or to the distance
    # times the mass of an atom
    near = (NEAR if has_atoms else SMOOTH) * np.abs(high - low)
    low, high = _between_jumps(over, jumps, low, high, near)
    first, second = enclosed(over, low, high, least, most, near)
    # apart from the threshold by more than its rounding, so that masses are surely on their sides
    step = near + 64.0 * UNIT * (np.abs(first) + 2.0**-10 * np.abs(most))
    step = step * np.ones((2, 1))
    for _ in range(TRIES):
        outer = np.clip(np.array([second + step[0], first - step[1]]), least, most)
        c = np.array([outer[0], second, first, outer[1]])
        points = Tails(*(part.reshape(c.shape) for part in law.tails(c.ravel())))
        least_off, most_off = excess(points, alpha)
        open_ = np.array([most_off[0] > 0.0, least_off[3] < 0.0])
        open_ &= (outer > least) & (outer < most)
        if not open_.any():
            break
        step = np.where(open_, STEP * step, step)
    return c, points
