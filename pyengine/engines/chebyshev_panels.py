"""Thousands of values of one function of one mechanism: interpolated between some hundred of them.

Where laws are smooth, the log of γ, of β and of δ, and ε itself, are analytic functions of
``sqrt(-log κ)``, or of ``log(1 + ε/s)`` for δ, with s = 4 δ(0): a normal loss spreads 2.5 δ(0),
others farther, and next to ε = 0 the profile is as smooth as elsewhere.  That axis is divided into
panels of one width.  A panel on which many arguments lie is given the polynomial of degree 15
through the values at its Chebyshev points, and is kept with the mechanism's contours; where few
lie, and where values are below 1e-30, every argument is asked by itself.

A panel is used if its last coefficients are next to nothing and two further points agree: a corner
of the function, such as the end of a chord of the hull, is told by that and asked point by point.
The distance to the engine's own values is an estimate, as those errors are that the values have.
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

CROWD = 2 * lib.PE_CHEBYSHEV  # arguments on one panel from which on a polynomial is the cheaper way
WIDTH, WIDTH_IN_LOG = 0.25, 0.125  # of a panel on sqrt(-log x), and on log(1 + x/s)
SCALE, TINY = 4.0, 1e-300  # s over δ(0), which counts as at least the second number
# What the last two coefficients, and the miss at two further points, may be: a relative error of γ,
# β and δ, and of ε as a part of the largest ε of the panel.
NEGLIGIBLE = 2e-13
NOISY_LOG = -69.0  # values below 1e-30 have errors of 1e-12 and more, which no polynomial follows
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
    """One function of a mechanism, under one adjacency.

    Parameters
    ----------
    name : {"trade_off", "gamma_bound", "delta", "epsilon"}
        The function.
    at_zero : callable
        δ(0) of the mechanism; asked for the panels of δ.
    """

    def __init__(self, name: str, at_zero: Callable[[], float]) -> None:
        if name == "delta":
            self._axis = _axis_of_profile(at_zero())
        else:
            self._axis = _DEPTHS if name == "epsilon" else _LEVELS
        self._kept: dict[int, FloatArray] = {}  # coefficients by the number of the panel

    def bytes(self) -> int:
        """Memory of the panels that are kept."""
        return len(self._kept) * (8 * DEGREE + 200)

    def values(self, x: FloatArray, ask: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Values at many arguments.

        Parameters
        ----------
        x : ndarray
            Arguments within the domain of the function.
        ask : callable
            Values of the function; may raise `AccuracyError`.

        Returns
        -------
        ndarray
            The polynomials' values on panels with a crowd of arguments, what ``ask`` returns
            elsewhere; which of them does not depend on what is kept.
        """
        place = self._axis.place(x)
        value = np.full(x.size, np.nan)
        found = self._crowded(place)
        if found is not None:
            first, crowded = found
            coefficients = self._coefficients(first + np.flatnonzero(crowded), ask)
            table = np.full((crowded.size, DEGREE), np.nan)
            table[crowded] = coefficients
            lib.pe_chebyshev_panels(
                x.size,
                array(place),
                self._axis.width,
                first,
                len(table),
                array(table),
                self._axis.of_log,
                array(value, writable=True),
            )
        alone = np.isnan(value)
        if alone.any():
            value[alone] = ask(x[alone])
        return value

    def _crowded(self, place: FloatArray) -> tuple[int, npt.NDArray[np.bool_]] | None:
        """The first panel, and on which panels from there on many places lie."""
        panel = np.floor(place / self._axis.width)
        known = np.isfinite(panel)
        panels = panel[known].astype(np.intp)
        if not panels.size:
            return None
        first = int(panels.min())
        crowded = np.bincount(panels - first) >= CROWD
        return (first, crowded) if crowded.any() else None

    def _coefficients(
        self, panels: npt.NDArray[np.intp], ask: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        new = np.array([i for i in panels.tolist() if i not in self._kept], dtype=np.intp)
        if new.size:
            made = self._made(new, ask)
            self._kept.update(zip(new.tolist(), made, strict=True))
        return np.array([self._kept[i] for i in panels.tolist()])

    def _made(
        self, panels: npt.NDArray[np.intp], ask: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Coefficients of panels; NaN where no polynomial serves."""
        places = self._axis.width * (panels[:, None] + _POINTS)
        argument = self._axis.argument(places)
        try:
            values = ask(argument.ravel()).reshape(places.shape)
        except AccuracyError:  # of some panel: arguments on it are asked by themselves
            if len(panels) == 1:
                return np.full((1, DEGREE), np.nan)
            parts = np.array_split(panels, 2)
            return np.concatenate([self._made(part, ask) for part in parts])
        scale = 1.0
        if self._axis.of_log:
            with np.errstate(divide="ignore"):  # log 0 is no number that a polynomial has
                values = fn.log(values)
        else:
            scale = values.max(axis=1)
        with np.errstate(invalid="ignore"):
            made = np.asarray(values[:, :DEGREE] @ _TRANSFORM.T)
            miss = np.abs(made @ _AT_CHECKS - values[:, DEGREE:]).max(axis=1)
            last = np.abs(made[:, -2:]).sum(axis=1)
            made[~(np.maximum(miss, last) <= scale * NEGLIGIBLE)] = np.nan
            if self._axis.of_log:
                made[values.min(axis=1) < NOISY_LOG] = np.nan
        return made
