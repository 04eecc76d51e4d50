"""Decay of the transform of a step of analytic densities, from bounds on cells of the real line.

On a short cell, either the loss is proven monotone, or its second derivative is proven to have a
sign, or the cell counts as flat.  Where it is monotone, integration by parts bounds the transform
by V/t, and the density of the loss is at least a step function, a mixture of uniform laws.  Where
it turns, van der Corput's lemma gives W/√t.  The flat part is bounded by its mass, which is tiny
(docs/theory/analytic_densities, Theorem 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from flint import arb

from pyengine.engines.analytic_lines.balls import (
    BOUND_BITS,
    ORDER,
    enclosed,
    evaluator_at_points,
    evaluator_on_line,
    lower,
    on_line,
    precision,
    upper,
)
from pyengine.engines.analytic_lines.strips import Strips
from pyengine.engines.vertical_lines.decay import Decay
from pyengine.mechanisms.expressions import Evaluator, Program
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["LossCells"]

FloatArray = npt.NDArray[np.float64]

SLACK = 1.0 + 1e-9  # factor for the rounding of bounds
TINY = 1e-300  # above the underflow of a product
LIGHT = 1e-30  # mass of a cell below which it counts as flat
CORPUT = 8.0  # the constant of van der Corput's lemma for the second derivative


@dataclass(frozen=True)
class LossCells:
    """Bounds on cells of the real line; all arrays have one entry per cell.

    Parameters
    ----------
    width : ndarray
        Lengths of the cells.
    density_low, density_high : ndarray
        Bounds on log p.
    loss_low, loss_high : ndarray
        Bounds on the loss.
    slope_low, slope_high : ndarray
        Bounds on the derivative of the loss.
    bend_low, bend_high : ndarray
        Bounds on its second derivative.
    fall : ndarray
        Bound on the modulus of the derivative of log p.
    first, last : ndarray
        The losses at both ends, rounded once.
    off : ndarray
        Bound on the error of both, without that rounding.
    """

    width: FloatArray
    density_low: FloatArray
    density_high: FloatArray
    loss_low: FloatArray
    loss_high: FloatArray
    slope_low: FloatArray
    slope_high: FloatArray
    bend_low: FloatArray
    bend_high: FloatArray
    fall: FloatArray
    first: FloatArray
    last: FloatArray
    off: FloatArray

    @classmethod
    def of(cls, program: Program, places: FloatArray) -> LossCells:
        """Return the cells between places, for a program of log p and the loss."""
        edges, rows = places.tolist(), []
        with precision(BOUND_BITS):
            on = evaluator_on_line(program)
            at = evaluator_at_points(program)
            points = [at(arb(x))[1] for x in edges]
            losses = [float(loss.mid()) for loss in points]
            doubts = [upper(loss.rad()) for loss in points]
            for (left, right), ends, doubt in zip(
                pairwise(edges), pairwise(losses), pairwise(doubts), strict=True
            ):
                rows.append((*_bounds(on, left, right), *ends, max(doubt)))
        columns = np.array(rows).T
        return cls(*(np.ascontiguousarray(column) for column in columns))

    def decay(
        self, tilt: float, log_mean: float, doubt: float, spare: float, strips: Strips | None
    ) -> Decay:
        """Return bounds of the transform of the tilted law, p e^(``tilt`` loss) over its mean.

        Parameters
        ----------
        tilt : float
            The exponential tilt.
        log_mean, doubt : float
            The logarithm of the mean of e^(``tilt`` loss), and a bound on its error.
        spare : float
            Flat mass that is allowed, under A, B and the tilted law: the cells with the largest
            share of V for their mass count as flat, up to it.
        strips : Strips or None
            Bounds from lines beside the real one.
        """
        ends = tilt * self.loss_low, tilt * self.loss_high
        largest = np.maximum(np.abs(self.density_low), np.abs(self.density_high))
        off = doubt + 4.0 * UNIT * (
            largest + np.maximum(np.abs(ends[0]), np.abs(ends[1])) + abs(log_mean)
        )
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            most = fn.exp(self.density_high + np.maximum(*ends) - log_mean + off) * SLACK
            least = fn.exp(self.density_low + np.minimum(*ends) - log_mean - off) / SLACK
            slope = np.maximum(np.maximum(self.slope_low, -self.slope_high), 0.0)
            steepest = np.maximum(np.abs(self.slope_low), np.abs(self.slope_high))
            bend = np.maximum(np.maximum(self.bend_low, -self.bend_high), 0.0)
            bent = np.maximum(np.abs(self.bend_low), np.abs(self.bend_high))
            mass = most * self.width
            by_parts = mass * ((self.fall + bent / slope) / slope + abs(tilt))
            ends_of = most / slope
            turning = CORPUT / np.sqrt(bend) * (most + mass * (self.fall + abs(tilt) * steepest))
        # a cell of tiny mass is flat: its other bounds may overflow
        rises = (mass > LIGHT) & (slope > 0.0) & np.isfinite(by_parts + ends_of)
        turns = (mass > LIGHT) & ~rises & (bend > 0.0) & np.isfinite(turning)
        side = np.where(rises, np.where(self.slope_low > 0.0, 1, -1), 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            height = np.where(rises, least / steepest, 0.0)
        layers = _layers(side, height, self.first, self.last, float(self.off.max()))
        with np.errstate(over="ignore"):
            of_a = fn.exp(self.density_high) * self.width
            of_b = fn.exp(self.density_high + self.loss_high) * self.width
        # fill the allowed flat mass with the cells that add most to V for their mass
        known = np.flatnonzero(rises)
        dearest = known[np.argsort(-by_parts[known] / mass[known])]
        is_spared = np.ones(dearest.size, dtype=np.bool_)
        for masses in (mass, of_a, of_b):
            flat = float(masses[~rises & ~turns].sum())
            is_spared &= flat + np.cumsum(masses[dearest]) <= spare
        rises[dearest[is_spared]] = False
        side = np.where(rises, side, 0)
        variation = float(by_parts[rises].sum())
        breaks = np.append(True, side[1:] != side[:-1])
        starts, stops = breaks & rises, np.append(breaks[1:], True) & rises
        variation += float(ends_of[starts].sum() + ends_of[stops].sum())
        root = float(turning[turns].sum())
        is_flat = ~rises & ~turns
        flat = float(mass[is_flat].sum())
        flat_masses = float(of_a[is_flat].sum()) * SLACK, float(of_b[is_flat].sum()) * SLACK
        found = () if strips is None else strips.at(tilt, log_mean - doubt)
        return Decay(*layers, variation * SLACK, root * SLACK, flat * SLACK, flat_masses, found)


def _bounds(on: Evaluator, left: float, right: float) -> tuple[float, ...]:
    """One row of `LossCells`, without the losses at both ends."""
    middle, half = (arb(left) + arb(right)) / 2, (arb(right) - arb(left)) / 2
    log_p, loss = on_line(on, middle + arb(0, upper(half)))
    apart = arb(0, upper(half))
    slope = [k * loss[k] for k in range(1, ORDER)]
    bend = [k * (k - 1) * loss[k] for k in range(2, ORDER)]
    density, value = enclosed(log_p, apart), enclosed(loss, apart)
    rate, turn = enclosed(slope, apart), enclosed(bend, apart)
    fall = enclosed([k * log_p[k] for k in range(1, ORDER)], apart)
    return (
        upper(2 * half),
        *(bound(x) for x in (density, value, rate, turn) for bound in (lower, upper)),
        max(upper(fall), -lower(fall)),
    )


def _layers(
    side: npt.NDArray[np.int_],
    height: FloatArray,
    first: FloatArray,
    last: FloatArray,
    off: float,
) -> tuple[FloatArray, FloatArray]:
    """Uniform laws below the step functions ``height`` on runs of cells: masses, and lengths.

    A run has one ``side``, the sign of the slope; ``first`` and ``last`` are losses at cell ends.
    """
    masses: list[float] = []
    lengths: list[float] = []
    ahead: list[tuple[float, float]] = []  # open layers: loss at their begin, and height

    def end(place: float, down_to: float) -> float:
        """End all open layers above a height, and return where the lowest of them began."""
        begin = place
        while ahead and ahead[-1][1] > down_to:
            begin, top = ahead.pop()
            base = max(down_to, ahead[-1][1] if ahead else 0.0)
            # shorten the law by the error of the losses: it still lies below the step function
            doubt = 4.0 * UNIT * (abs(place) + abs(begin)) + 2.0 * off + TINY
            length = max(abs(place - begin) - doubt, 0.0)
            masses.append((top - base) * length)
            lengths.append(length)
        return begin

    run, stop = 0, 0.0
    for sign, level, begin, place in zip(
        side.tolist(), height.tolist(), first.tolist(), last.tolist(), strict=True
    ):
        if sign != run:
            end(stop, 0.0)
            ahead.clear()
            run = sign
        if sign:
            start = end(begin, level)
            if not ahead or ahead[-1][1] < level:
                ahead.append((start, level))
        stop = place
    if run:
        end(stop, 0.0)
    return np.array(masses), np.array(lengths)
