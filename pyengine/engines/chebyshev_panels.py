"""Thousands of values of one function of one mechanism: interpolated between some hundred of them.

Where laws are smooth, the log of γ, of β and of δ, and ε itself, are analytic functions of
``sqrt(-log κ)``, or of ``log(1 + ε/s)`` for δ, with s = 4 δ(0): a normal loss spreads 2.5 δ(0),
others farther, and next to ε = 0 the profile is as smooth as elsewhere.  That axis is divided into
panels of one width.  A panel on which many arguments lie is given the polynomial of degree 15
through the values at its Chebyshev points, and is kept with the mechanism's contours; where few
lie, every argument is asked by itself.

A panel is used if its last coefficients are next to nothing and two further points agree.  Where
the coefficients fall fast enough, its halves are tried.  A corner of the function, such as the end
of a chord of the hull, and noise are told by coefficients that do not fall, and asked point by
point.  The distance to the engine's own values is an estimate.
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

CROWD = 2 * lib.PE_CHEBYSHEV  # arguments on one panel from which on a polynomial is the cheaper way
WIDTH, WIDTH_IN_LOG = 0.25, 0.125  # of a panel on sqrt(-log x), and on log(1 + x/s)
SCALE, TINY = 4.0, 1e-300  # s over δ(0), which counts as at least the second number
# What the last two coefficients, and the miss at two further points, may be: a relative error of γ,
# β and δ, and of ε as a part of the largest ε of the panel.
NEGLIGIBLE = 2e-13
HALVINGS = 2  # of panels that one polynomial does not follow,
FALL = 8.0  # if its coefficients fall by this and more from four to the next four
LARGE_LEVEL = 31.0 / 32.0  # α above: 1 - α of a Chebyshev point is too coarse a number
LEVELS = 8.0  # panels of α above 1/2 are 1/32 wide

DEGREE = lib.PE_CHEBYSHEV
_ANGLES = math.pi * (np.arange(DEGREE) + 0.5) / DEGREE
_POINTS = np.append(0.5 - 0.5 * fn.cos(_ANGLES), [0.31, 0.72])  # the last two to check
# From values at Chebyshev points, in rising order, to coefficients.
_TRANSFORM = 2.0 / DEGREE * fn.cos(np.outer(np.arange(DEGREE), math.pi - _ANGLES))
_TRANSFORM[0] *= 0.5
_AT_CHECKS = fn.cos(np.outer(np.arange(DEGREE), np.arccos(2.0 * _POINTS[DEGREE:] - 1.0)))


class _Axis(NamedTuple):
    """Where panels of a function lie, and whether they hold logs of its values."""

    place: Callable[[FloatArray], FloatArray]
    argument: Callable[[FloatArray], FloatArray]
    of_log: bool
    width: float = WIDTH


def _log(x: FloatArray) -> FloatArray:
    out = np.empty(x.size)
    lib.pe_natural_logs(x.size, array(x), array(out, writable=True))
    return out


def _depth(x: FloatArray) -> FloatArray:
    return np.sqrt(-_log(x))


def _from_depth(s: FloatArray) -> FloatArray:
    return np.asarray(fn.exp(-s * s))


def _place_of_level(x: FloatArray) -> FloatArray:
    """The depth of a level up to 1/2; above, on panels of 1/32 that come before those."""
    large = x > 0.5
    s = _depth(np.where(large, 0.25, x))
    return np.where(large, np.where(x < LARGE_LEVEL, -LEVELS * x, np.nan), s)


def _level_at(s: FloatArray) -> FloatArray:
    return np.where(s < 0.0, -s / LEVELS, _from_depth(np.maximum(s, 0.0)))


_LEVELS = _Axis(_place_of_level, _level_at, True)
_DEPTHS = _Axis(_depth, _from_depth, False)


def _axis_of_profile(at_zero: float) -> _Axis:
    """The axis of ε, given δ(0)."""
    scale = SCALE * max(at_zero, TINY)
    return _Axis(lambda x: _log(1.0 + x / scale), lambda s: scale * fn.expm1(s), True, WIDTH_IN_LOG)


class ChebyshevPanels:
    """One function of a mechanism, under one adjacency; the panels of δ are placed by δ(0)."""

    def __init__(self, name: str, at_zero: Callable[[], float]) -> None:
        if name == "delta":
            self._axis = _axis_of_profile(at_zero())
        else:
            self._axis = _DEPTHS if name == "epsilon" else _LEVELS
        self._kept: dict[tuple[int, int], FloatArray] = {}  # by how often halved, and number

    def bytes(self) -> int:
        """Memory of the panels that are kept."""
        return len(self._kept) * (8 * DEGREE + 240)

    def values(self, x: FloatArray, ask: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Values of polynomials on panels with a crowd of arguments; elsewhere ``ask`` has them.

        Which of them does not depend on what is kept.
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
        """Values on panels of one width, NaN where none serves; and where halves may serve."""
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
        """Coefficients of panels; NaN where no polynomial serves, inf where those of halves may."""
        places = self._width(halvings) * (panels[:, None] + _POINTS)
        argument = self._axis.argument(places)
        try:
            values = ask(argument.ravel()).reshape(places.shape)
        except AccuracyError:  # of some panel: arguments on it are asked by themselves
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
