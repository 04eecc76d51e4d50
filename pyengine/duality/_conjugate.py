"""Conjugates of decreasing convex functions from finitely many values, bounded on both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._objects import Guarded
from pyengine._support import checks
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.scaled import LOST

__all__ = ["Curve", "Enclosure", "FloatArray", "Function", "Refined", "least", "source"]

FloatArray = npt.NDArray[np.float64]
Function = Callable[[FloatArray], FloatArray]
Curve = Callable[[Any], Any] | tuple[Any, Any]

CONVEX = 1e-7  # deviation from convexity taken for rounding, relative to the value to the left
APART = 16.0  # least distance of abscissae, in units of their rounding
SMALLEST = 1e-290  # least distance of abscissae near 0, so that slopes stay finite
ROUNDS, INSERTED = 6, 12  # refinements near the minima, and parts into which an interval is cut


class Enclosure(NamedTuple):
    """Bounds that enclose the truth if the given values of a curve are exact to ``accuracy``.

    Parameters
    ----------
    lower, upper : float or ndarray
        Both bounds.
    """

    lower: Any
    upper: Any


def source(
    name: str, curve: Curve, grid: FloatArray, top: float
) -> tuple[Function | None, FloatArray, FloatArray]:
    """The curve as a function of arrays (None for a pair of arrays), abscissae and values."""
    if callable(curve):
        given = Guarded(curve)

        def function(x: FloatArray) -> FloatArray:
            return _asked(name, given, x)

        return function, grid, function(grid)
    try:
        x, y = curve
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a callable or a pair of arrays, got {checks.shown(curve)}"
        ) from None
    x = checks.real_array(f"{name}[0]", x, 0.0, top).ravel()
    y = checks.real_array(f"{name}[1]", y, 0.0, 1.0).ravel()
    if x.size != y.size or not x.size:
        raise ValueError(f"{name} must hold two arrays of one length >= 1, got {x.size}, {y.size}")
    if not (np.diff(x) > 0.0).all():
        raise ValueError(f"{name}[0] must increase, got {checks.shown(x)}")
    return None, x, y


def _asked(name: str, curve: Callable[[Any], Any], x: FloatArray) -> FloatArray:
    """Values in [0, 1] of a function of arrays, or of floats."""
    try:
        values = np.asarray(curve(x), dtype=float)
    except (TypeError, ValueError):
        values = np.zeros(())
    if values.shape != x.shape:
        values = np.array([checks.real(name, curve(float(point))) for point in x])
    bad = ~((values >= 0.0) & (values <= 1.0))
    if bad.any():
        raise ValueError(f"{name} must lie in [0, 1], got {values[bad][0]!r} at {x[bad][0]!r}")
    return values


class Refined(NamedTuple):
    """A function for more values at abscissae >= ``lowest``; None if there are no more."""

    function: Function | None
    lowest: float


def least(
    name: str,
    refined: Refined,
    x: FloatArray,
    y: FloatArray,
    slope: FloatArray,
    end: float,
    accuracy: float,
) -> Enclosure:
    """Bounds of min over x in [0, end] of y(x) + slope x for a decreasing convex y.

    The values give an upper bound.  The lower envelope of all convex functions through them, with
    vertices where extended chords meet, gives a lower bound.
    """
    # rounding of a value and a sum, and of an abscissa e^(log x)
    rounding = 8.0 * UNIT + 2.0 * UNIT * float(np.abs(fn.log(x[x > 0.0])).max(initial=0.0))
    error = checks.scalar("accuracy", accuracy, 0.0, 1e-3) + rounding
    x, y = _spaced(x, y, APART * rounding)
    _check_convex(name, x, y, CONVEX + 4.0 * error)
    function = refined.function
    for _ in range(ROUNDS):
        corners = _corners(x, y, end, error, rounding)
        lower, low_at = _minimum(*corners, slope)
        upper, high_at = _minimum(x, y, slope)
        lower = np.minimum(lower, upper)
        open_ = upper - lower > max(1e-9, 4.0 * float(error)) * upper
        if function is None or not open_.any():
            break
        places = np.append(corners[0][low_at[open_]], x[high_at[open_]])
        near = np.unique(np.searchsorted(x, places)[:, None] + np.arange(-2, 2))
        near = near[(near >= 0) & (near < x.size - 1)]
        share = np.arange(1.0, INSERTED) / INSERTED
        extra = np.setdiff1d((x[near, None] + share * np.diff(x)[near][:, None]).ravel(), x)
        extra = extra[extra >= refined.lowest]
        order = np.argsort(np.concatenate([x, extra]))
        y = np.concatenate([y, function(extra)])[order]
        x, y = _spaced(np.concatenate([x, extra])[order], y, APART * rounding)
    lost = np.where(slope > 0.0, LOST, 0.0)
    return Enclosure(
        np.maximum(lower * (1.0 - 2.0 * error) - lost, 0.0),
        np.minimum(upper * (1.0 + error) + lost, 1.0),
    )


def _spaced(x: FloatArray, y: FloatArray, gap: float) -> tuple[FloatArray, FloatArray]:
    """Drop points that are too close to an earlier one: their chords would have no digits."""
    if (np.diff(x) > gap * x[1:] + SMALLEST).all():
        return x, y
    kept = [0]
    for i in range(1, x.size):
        if x[i] - x[kept[-1]] > gap * x[i] + SMALLEST:
            kept.append(i)
    return x[kept], y[kept]


def _check_convex(name: str, x: FloatArray, y: FloatArray, tolerance: float) -> None:
    if (np.diff(y) > tolerance * y[:-1]).any():
        raise ValueError(f"{name} must not increase")
    left, right = x[1:-1] - x[:-2], x[2:] - x[1:-1]
    chord = (y[:-2] * right + y[2:] * left) / (left + right)
    # an error of an abscissa counts as an error of the value, times the slope
    slack = tolerance * y[:-2] + 1e-15 * x[1:-1] * (y[:-2] - y[1:-1]) / left
    dent = y[1:-1] - chord > slack
    if dent.any():
        raise ValueError(f"{name} must be convex, but is not near {float(x[1:-1][dent][0])!r}")


def _corners(
    x: FloatArray, y: FloatArray, end: float, error: float, rounding: float
) -> tuple[FloatArray, FloatArray]:
    """Vertices of the largest function below every convex function through the points.

    Slopes of chords are moved outwards by the errors of values and abscissae.  An error in the
    abscissa of a vertex does no harm: its height is the lower of two lines, one of which is below
    the function to its left and the other to its right.
    """

    def line(height: Any, slope: Any, distance: Any) -> Any:
        """Height + slope × distance, rounded down."""
        with np.errstate(over="ignore"):
            move = slope * distance
        return height + move - 4.0 * UNIT * (height + np.abs(move))

    if x.size == 1:
        return np.array([0.0, x[0], x[0]]), np.array([y[0], y[0], 0.0])
    gaps = np.diff(x)
    chord = np.minimum(np.diff(y) / gaps, 0.0)
    tilt = (2.0 * error * y[:-1] - 4.0 * rounding * chord * x[1:]) / gaps
    steep, flat = chord - tilt, np.minimum(chord + tilt, 0.0)
    ends_x, ends_y = [x[0], x[-2]], [y[1], y[-1]]  # a single interval: only monotonicity is known
    if chord.size > 1:  # the first and the last interval have one neighbour
        level = x[-1]
        if steep[-2] < 0.0:  # up to where the extended chord reaches the last value
            level = min(level, x[-2] + _ratio(y[-2] - y[-1], -steep[-2]))
        ends_x = [x[0], level]
        ends_y = [line(y[1], flat[1], -gaps[0]), min(line(y[-2], steep[-2], level - x[-2]), y[-1])]
    ends_x.append(0.0)
    ends_y.append(line(y[0], flat[0], -x[0]))
    if steep[-1] < 0.0:
        beyond = x[-1] + _ratio(y[-1], -steep[-1])  # where the last chord reaches 0
        last = min(end, 1e300)
        ends_x.append(min(beyond, last))
        ends_y.append(0.0 if beyond <= last else line(y[-1], steep[-1], last - x[-1]))
    left, right = steep[:-2], flat[2:]  # within an interval, the chords of both neighbours meet
    x0, y0, x1, y1 = x[1:-2], y[1:-2], x[2:-1], y[2:-1]
    bends = right > left
    bend = np.where(bends, right - left, 1.0)
    with np.errstate(over="ignore"):
        meet = np.where(bends, x0 + ((y1 - y0) - right * (x1 - x0)) / bend, x0)
    meet = np.clip(meet, x0, x1)
    height = np.minimum(line(y0, left, meet - x0), line(y1, right, meet - x1))
    corners_x = np.concatenate([x, meet, ends_x])
    return corners_x, np.clip(np.concatenate([y, height, ends_y]), 0.0, 1.0)


def _ratio(a: Any, b: Any) -> float:
    with np.errstate(over="ignore"):
        return float(a / b)


def _minimum(
    x: FloatArray, y: FloatArray, slope: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Smallest y + slope x over the points, and the index where it is attained."""
    at = np.empty(slope.size, dtype=np.intp)
    rows = max(1, (1 << 21) // x.size)
    for start in range(0, slope.size, rows):
        part = slice(start, start + rows)
        at[part] = (y + slope[part, None] * x).argmin(axis=1)
    return np.minimum(y[at] + slope * x[at], 1.0), at
