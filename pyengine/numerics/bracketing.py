"""Roots of many monotone functions at once, each in a bracket."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["bisected", "falling_bracket", "falling_root", "inverse_profile"]

FloatArray = npt.NDArray[np.float64]
STEPS = 400
SMALLEST = 5e-324
SMALLEST_ROOM = 1e-300  # absolute width at which a bracket is narrow enough
LARGEST_EPSILON = 1e6
HALVINGS = 1100  # from the largest double to the smallest one, and 52 more for its digits


def bisected(
    reaches: Callable[[Any], Any],
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    rounds: int = HALVINGS,
    is_close: Callable[[FloatArray, FloatArray], Any] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return brackets of the points where predicates change, by bisection.

    ``reaches`` says whether the change lies between its argument and ``second``.  It is assumed
    true at ``first`` and false at ``second``, without evaluation; either may be the larger.
    Brackets end as neighbouring doubles, or when ``is_close`` of both ends is true.
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    for _ in range(rounds):
        middle = 0.5 * (first + second)
        open_ = (middle != first) & (middle != second)
        if is_close is not None:
            open_ &= ~np.asarray(is_close(first, second))
        if not open_.any():
            break
        reached = np.asarray(reaches(middle), dtype=np.bool_)
        first = np.where(open_ & reached, middle, first)
        second = np.where(open_ & ~reached, middle, second)
    return np.asarray(first), np.asarray(second)


def falling_root(
    function: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Right ends of brackets of the roots of falling functions, to a rounding of the argument.

    Values are >= 0 at ``low`` and <= 0 at ``high``.
    """
    (a, fa), (b, fb) = _closed(function, (high, function(high)), (low, function(low)))
    return np.where(fa <= 0.0, np.where(fb <= 0.0, np.maximum(a, b), a), b)


def falling_bracket(
    function: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    known: tuple[FloatArray, FloatArray] | None = None,
    room: FloatArray | float = SMALLEST_ROOM,
) -> tuple[FloatArray, FloatArray]:
    """Brackets of the points where functions fall below 0, to a rounding of the argument.

    Functions are assumed positive at ``low`` and negative at ``high``, without evaluation; if their
    values there are ``known``, the first point is interpolated.  ``room`` is an absolute width that
    is narrow enough.
    """
    above, below = np.full(low.size, np.inf), np.full(low.size, -np.inf)

    def fallen(x: FloatArray) -> FloatArray:
        value = function(x)
        return np.where(value == 0.0, -SMALLEST, value)  # a zero would end the search on one side

    start: FloatArray | float = 0.5
    if known is not None:
        above, below = known
        with np.errstate(invalid="ignore"):
            start = below / (below - above)
    (a, _), (b, _) = _closed(fallen, (high, below), (low, above), start, room)
    return np.minimum(a, b), np.maximum(a, b)


def inverse_profile(
    profile: Callable[[FloatArray], FloatArray],
    delta: FloatArray,
    largest: float,
    end: float = LARGEST_EPSILON,
) -> FloatArray:
    """The smallest ε with profile(ε) <= δ, to a rounding of ε, for a non-increasing profile.

    ``largest``, where the profile vanishes, is the answer for δ = 0 and if no ε up to ``end`` has
    profile(ε) <= δ.
    """
    end = min(largest, end)
    low, high = np.zeros(delta.size), np.full(delta.size, min(1.0, end))
    zero = (delta > 0.0) & (profile(low) <= delta)
    last = np.full(delta.size, math.nextafter(end, 0.0))
    beyond = (delta == 0.0) | (profile(last) > delta)
    settled = zero | beyond
    while (behind := ~settled & (profile(high) > delta) & (high < end)).any():
        low = np.where(behind, high, low)
        high = np.where(behind, np.minimum(8.0 * high, end), high)
    if not settled.all():
        log_delta = fn.log(np.where(settled, 1.0, delta))

        def excess(epsilon: FloatArray) -> FloatArray:  # the log of a tail is nearly linear
            log = fn.log(np.maximum(profile(epsilon), SMALLEST))
            return np.where(settled, 0.0, log - log_delta)

        high = falling_root(excess, low, high)
    return np.where(zero, 0.0, np.where(beyond, largest, high))


Ends = tuple[FloatArray, FloatArray]


def _closed(
    function: Callable[[FloatArray], FloatArray],
    first: Ends,
    second: Ends,
    start: FloatArray | float = 0.5,
    room: FloatArray | float = SMALLEST_ROOM,
) -> tuple[Ends, Ends]:
    """Shrink brackets whose ends have different signs; return both ends with their values.

    Inverse quadratic interpolation or bisection, by the rule of Chandrupatla (1997).  A jump over 0
    is bracketed; values that are not finite are not interpolated.
    """
    (a, fa), (b, fb) = first, second
    c, fc = b.copy(), fb.copy()
    t = np.broadcast_to(np.where(np.isfinite(start), start, 0.5), a.shape)
    open_ = np.ones(a.size, dtype=np.bool_)  # closed brackets stay as they are
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(STEPS):
            x = np.where(open_, a + t * (b - a), a)
            fx = function(x)
            same = (fx > 0.0) == (fa > 0.0)
            c, fc = np.where(open_ & ~same, b, a), np.where(open_ & ~same, fb, fa)
            b, fb = np.where(open_ & ~same, a, b), np.where(open_ & ~same, fa, fb)
            a, fa = x, np.where(open_, fx, fa)
            nearest = np.where(np.abs(fa) < np.abs(fb), np.abs(a), np.abs(b))
            limit = (2.0 * UNIT * nearest + room) / np.abs(b - a)
            open_ &= ~((limit > 0.5) | (fa == 0.0) | (a == b))
            if not open_.any():
                break
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            smooth = (phi * phi < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
            inner = fa / (fb - fa) * fc / (fb - fc)
            inner += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
            t = np.where(smooth & np.isfinite(inner), inner, 0.5)
            t = np.clip(t, np.minimum(limit, 0.5), 1.0 - np.minimum(limit, 0.5))
    return (a, fa), (b, fb)
