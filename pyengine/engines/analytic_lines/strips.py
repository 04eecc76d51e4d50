"""Decay of the transform of a step, from moving its integral off the real line.

On a line Im z = y the integrand of the mean of e^((tilt + it) loss) has the factor e^(-t Im loss).
It decays with t where the imaginary part of the loss is positive, which it is where the loss rises.
Elsewhere, out in the tails, the integral stays on the real line (docs/theory/analytic_densities,
Theorem 4 (c)).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from flint import acb, arb

from pyengine.engines.analytic_lines.balls import (
    BOUND_BITS,
    ORDER,
    enclosed,
    evaluator_on_plane,
    lower,
    on_plane,
    precision,
    upper,
)
from pyengine.engines.vertical_lines.decay import Strip
from pyengine.mechanisms.expressions import Evaluator, Program
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["Strips"]

FloatArray = npt.NDArray[np.float64]

SLACK = 1.0 + 1e-9  # factor for the rounding of bounds
NOT_KNOWN = np.array([np.inf, -np.inf, np.inf, -np.inf, np.inf])


@dataclass(frozen=True)
class Strips:
    """Bounds on cells of lines beside the real one, of shape (heights, cells).

    Parameters
    ----------
    place : ndarray of shape (cells + 1,)
        Ends of the cells.
    height : ndarray of shape (heights,)
        Imaginary parts y of the lines.
    log_density : ndarray
        Upper bounds of the real part of log p on the cells of a line; infinite if unknown.
    low, high : ndarray
        Bounds of the real part of the loss there.
    turn_low, turn_high : ndarray
        Bounds of its imaginary part.
    side : ndarray
        1 if Re l' > 0 is proven at all heights up to the line, -1 if Re l' < 0 is, else 0.
    way_density, way_low, way_high : ndarray
        The same bounds as for a line, on the rectangles between it and the real line.
    real_density, real_low, real_high : ndarray of shape (cells,)
        The same bounds on the real line.
    """

    place: FloatArray
    height: FloatArray
    log_density: FloatArray
    low: FloatArray
    high: FloatArray
    turn_low: FloatArray
    turn_high: FloatArray
    side: npt.NDArray[np.int_]
    way_density: FloatArray
    way_low: FloatArray
    way_high: FloatArray
    real_density: FloatArray
    real_low: FloatArray
    real_high: FloatArray

    @classmethod
    def of(cls, program: Program, place: FloatArray, heights: FloatArray) -> Strips:
        """Return the bounds on cells between places, by series in ball arithmetic."""
        cells = place.size - 1
        found = np.tile(NOT_KNOWN, (heights.size + 1, cells, 1))
        ways = np.tile(NOT_KNOWN[:3], (heights.size, cells, 1))
        side = np.zeros((heights.size, cells), dtype=np.int_)
        with precision(BOUND_BITS):
            on = evaluator_on_plane(program)
            for i, (left, right) in enumerate(pairwise(place.tolist())):
                real = (arb(left) + arb(right)) / 2 + arb(0, upper((arb(right) - arb(left)) / 2))
                found[0, i], _ = _bounds(on, acb(real, 0.0))
                for j, height in enumerate(heights.tolist()):
                    half = 0.5 * height * SLACK
                    way, side[j, i] = _bounds(on, acb(real, arb(half, half)))
                    ways[j, i] = way[:3]
                    if not side[j, i]:
                        break  # higher lines have side 0 as well
                    found[j + 1, i], _ = _bounds(on, acb(real, height))
        density, low, high, turn_low, turn_high = np.moveaxis(found[1:], 2, 0)
        of_ways, of_real = np.moveaxis(ways, 2, 0), found[0].T
        return cls(
            place,
            heights,
            density,
            low,
            high,
            turn_low,
            turn_high,
            side,
            *(of_ways[k] for k in range(3)),
            *(of_real[k] for k in range(3)),
        )

    def at(self, tilt: float, log_mean: float) -> tuple[Strip, ...]:
        """Return bounds of the transform of the density p e^(``tilt`` loss - ``log_mean``)."""
        width = np.diff(self.place) * SLACK
        with np.errstate(over="ignore"):  # an infinite bound is not used
            real = _size(self.real_density, self.real_low, self.real_high, tilt, log_mean) * width
        found = []
        for i, height in enumerate(self.height.tolist()):
            size = _size(self.log_density[i], self.low[i], self.high[i], tilt, log_mean)
            ways = _size(self.way_density[i], self.way_low[i], self.way_high[i], tilt, log_mean)
            for sign, turn in ((1, self.turn_low[i]), (-1, -self.turn_high[i])):
                core = (self.side[i] == sign) & (turn > 0.0) & np.isfinite(size)
                first, last = _heaviest(core, real)
                if first == last:
                    continue
                # the ways up and down lie in the outermost cells, without the factor e^(-t Im l)
                up_down = height * float(ways[[first, last - 1]].sum())
                beside = float(real[:first].sum() + real[last:].sum())
                with np.errstate(over="ignore"):
                    weight = size[first:last] * width[first:last]
                found.append(Strip(weight, turn[first:last] / SLACK, beside + up_down))
        return tuple(found)


def _size(
    log_density: FloatArray, low: FloatArray, high: FloatArray, tilt: float, log_mean: float
) -> FloatArray:
    """Upper bounds of the modulus of the tilted density; infinite if unknown."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(np.abs(tilt * low), np.abs(tilt * high))
        off = 4.0 * UNIT * (np.abs(log_density) + largest + abs(log_mean))
        exponent = log_density + np.maximum(tilt * low, tilt * high) - log_mean
        found = fn.exp(exponent + off) * SLACK
        return np.asarray(np.where(np.isnan(found), np.inf, found))


def _heaviest(core: npt.NDArray[np.bool_], mass: FloatArray) -> tuple[int, int]:
    """First and one past the last index of the run of ``core`` cells with the largest mass."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], core.astype(np.int_), [0]])))
    runs = edges.reshape(-1, 2)
    if not runs.size:
        return 0, 0
    total = np.append(0.0, np.cumsum(mass))
    best = int(np.argmax(total[runs[:, 1]] - total[runs[:, 0]]))
    return int(runs[best, 0]), int(runs[best, 1])


def _bounds(on: Evaluator, ball: acb) -> tuple[FloatArray, int]:
    """Bounds of Re log p and of the loss on a ball, and the sign of Re l', 0 if it is unknown."""
    log_p, loss = on_plane(on, ball, ORDER)
    apart = ball - ball.mid()
    density, value = enclosed(log_p, apart), enclosed(loss, apart)
    if not (density.is_finite() and value.is_finite()):
        return NOT_KNOWN, 0
    slope = enclosed([k * loss[k] for k in range(1, ORDER)], apart).real
    found = (
        upper(density.real),
        lower(value.real),
        upper(value.real),
        lower(value.imag),
        upper(value.imag),
    )
    return np.array(found), 1 if slope > 0 else -1 if slope < 0 else 0
