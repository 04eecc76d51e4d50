"""Thousands of values of one function of one mechanism, by piecewise Chebyshev interpolation.

Where laws are smooth, the logs of γ, β and δ, and ε itself, are analytic functions of
``sqrt(-log κ)``, or of ``log(1 + ε/s)`` for δ, with s = 4 δ(0): a normal loss has the deviation
2.5 δ(0), others are wider, and the profile is as smooth next to ε = 0 as elsewhere.  That axis is
divided into panels of equal width.  A panel with many arguments gets the polynomial of degree 15
through the values at its Chebyshev points, kept with the mechanism's contours; elsewhere every
argument is asked by itself.

A panel is used if its last coefficients are negligible and two further points agree.  If not, its
halves are tried where the coefficients fall fast enough.  Coefficients that do not fall reveal a
corner of the function, such as the end of a chord of the hull, or noise; arguments there are asked
one by one.  The distance from the engine's own values is an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.engines.functionals import FloatArray, array
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn

__all__ = ["ChebyshevPanels"]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]

CROWD = 2 * lib.PE_CHEBYSHEV  # arguments on a panel from which on interpolation is cheaper
WIDTH, WIDTH_IN_LOG = 0.25, 0.125  # of a panel on sqrt(-log x), and on log(1 + x/s)
SCALE, TINY = 4.0, 1e-300  # s over δ(0), and the smallest δ(0) that is used
# Largest sum of the last two coefficients, and largest error at two further points: relative errors
# of γ, β and δ; for ε relative to the largest ε of the panel.
NEGLIGIBLE = 2e-13
HALVINGS = 2  # of a panel, tried
FALL = 8.0  # if the largest coefficient falls by this factor from four to the last four
LARGE_LEVEL = 31.0 / 32.0  # larger α are asked one by one: 1 - α has few digits there
LEVEL_SCALE = 8.0  # scale of α above 1/2: panels are 1/32 wide

DEGREE = lib.PE_CHEBYSHEV
_ANGLES = math.pi * (np.arange(DEGREE) + 0.5) / DEGREE
_POINTS = np.append(0.5 - 0.5 * fn.cos(_ANGLES), [0.31, 0.72])  # the last two for checks
# Matrix from values at Chebyshev points, in rising order, to coefficients.
_TRANSFORM = 2.0 / DEGREE * fn.cos(np.outer(np.arange(DEGREE), math.pi - _ANGLES))
_TRANSFORM[0] *= 0.5
_AT_CHECKS = fn.cos(np.outer(np.arange(DEGREE), np.arccos(2.0 * _POINTS[DEGREE:] - 1.0)))


class _Axis(NamedTuple):
    """The map from arguments to the axis of panels, its inverse, and whether logs are kept."""

    place: Callable[[FloatArray], FloatArray]
    argument: Callable[[FloatArray], FloatArray]
    of_log: bool
    width: float = WIDTH


def _depth(x: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(-fn.log(x)))


def _from_depth(s: FloatArray) -> FloatArray:
    return np.asarray(fn.exp(-s * s))


def _place_of_level(x: FloatArray) -> FloatArray:
    """sqrt(-log α) for levels up to 1/2; -`LEVEL_SCALE` α above, on panels before those."""
    large = x > 0.5
    s = _depth(np.where(large, 0.25, x))
    return np.where(large, np.where(x < LARGE_LEVEL, -LEVEL_SCALE * x, np.nan), s)


def _level_at(s: FloatArray) -> FloatArray:
    return np.where(s < 0.0, -s / LEVEL_SCALE, _from_depth(np.maximum(s, 0.0)))


_LEVELS = _Axis(_place_of_level, _level_at, True)
_DEPTHS = _Axis(_depth, _from_depth, False)


def _axis_of_profile(at_zero: float) -> _Axis:
    """The axis of ε for δ, given δ(0)."""
    scale = SCALE * max(at_zero, TINY)
    return _Axis(
        lambda x: fn.log(1.0 + x / scale), lambda s: scale * fn.expm1(s), True, WIDTH_IN_LOG
    )


class ChebyshevPanels:
    """Panels of one function of a mechanism, under one adjacency; those of δ depend on δ(0)."""

    def __init__(self, name: str, at_zero: Callable[[], float]) -> None:
        if name == "delta":
            self._axis = _axis_of_profile(at_zero())
        else:
            self._axis = _DEPTHS if name == "epsilon" else _LEVELS
        self._kept: dict[tuple[int, int], FloatArray] = {}  # by halvings and panel

    def bytes(self) -> int:
        """Memory of the kept panels."""
        return len(self._kept) * (8 * DEGREE + 240)

    def values(self, x: FloatArray, ask: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Values, interpolated on panels with a `CROWD` of arguments, else from ``ask``.

        The choice depends on ``x`` alone, not on kept panels.
        """
        place, value = self._axis.place(x), np.full(x.size, np.nan)
        open_ = np.isfinite(place)
        for halvings in range(HALVINGS + 1):
            if open_.any():
                value[open_], open_[open_] = self._on_panels(halvings, place[open_], ask)
        alone = np.isnan(value)
        if alone.any():
            value[alone] = ask(x[alone])
        return value

    def _on_panels(
        self, halvings: int, place: FloatArray, ask: Callable[[FloatArray], FloatArray]
    ) -> tuple[FloatArray, BoolArray]:
        """Values on panels of one width, NaN where none serves, and where to try the halves."""
        width = self._width(halvings)
        panel = np.floor(place / width).astype(np.intp)
        first = int(panel.min())
        crowded = np.bincount(panel - first) >= CROWD
        table = np.full((crowded.size, DEGREE), np.nan)
        value = np.full(place.size, np.nan)
        if not crowded.any():
            return value, np.zeros(place.size, dtype=np.bool_)
        table[crowded] = self._coefficients(halvings, first + np.flatnonzero(crowded), ask)
        halved = np.isposinf(table[:, 0])
        table[halved] = np.nan
        given = array(place), width, first, len(table), array(table), self._axis.of_log
        lib.pe_chebyshev_panels(place.size, *given, array(value, writable=True))
        return value, halved[panel - first]

    def _width(self, halvings: int) -> float:
        return self._axis.width * 0.5**halvings

    def _coefficients(
        self, halvings: int, panels: IntArray, ask: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        keys = [(halvings, panel) for panel in panels.tolist()]
        new = [key for key in keys if key not in self._kept]
        if new:
            made = self._made(halvings, np.array([panel for _, panel in new]), ask)
            self._kept.update(zip(new, made, strict=True))
        return np.array([self._kept[key] for key in keys])

    def _made(
        self, halvings: int, panels: IntArray, ask: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Coefficients of panels; NaN where no polynomial serves, inf where halves may."""
        places = self._width(halvings) * (panels[:, None] + _POINTS)
        argument = self._axis.argument(places)
        try:
            values = ask(argument.ravel()).reshape(places.shape)
        except AccuracyError:  # on some panel, whose arguments are asked one by one
            if len(panels) == 1:
                return np.full((1, DEGREE), np.nan)
            parts = np.array_split(panels, 2)
            return np.concatenate([self._made(halvings, part, ask) for part in parts])
        scale = 1.0 if self._axis.of_log else values.max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # log 0 is no number
            if self._axis.of_log:
                values = fn.log(values)
            made = np.asarray(values[:, :DEGREE] @ _TRANSFORM.T)
            miss = np.abs(made @ _AT_CHECKS - values[:, DEGREE:]).max(axis=1)
            sizes = np.abs(made)
            wrong = ~(np.maximum(miss, sizes[:, -2:].sum(axis=1)) <= scale * NEGLIGIBLE)
            falls = FALL * sizes[:, -4:].max(axis=1) <= sizes[:, -8:-4].max(axis=1)
        made[wrong] = np.where(falls[wrong], np.inf, np.nan)[:, None]
        return made
