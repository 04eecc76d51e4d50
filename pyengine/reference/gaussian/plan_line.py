"""Inversion on a vertical line: which nodes to take, decided in double precision.

Nothing here is proven and nothing here needs to be:
`pyengine.reference.gaussian.line_inversion` bounds every error that the choices leave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pyengine.reference.cumulants import (
    Array,
    Cumulants,
    away_from_poles,
    log_odds,
)
from pyengine.reference.gaussian.steps import EqualSteps

__all__ = ["Contour", "LineNodes", "LinePlan", "NotFeasibleError", "make_plan"]

MOST_PRODUCTS = 4.0e8
MOST_EXPONENTIALS = 4.0e6
MOST_EXPONENT = 1e12  # in double precision


class NotFeasibleError(Exception):
    """A method cannot serve the question at a bearable cost."""


@dataclass(frozen=True)
class LineNodes:
    """Nodes in z of a phase, and how far below the real axis their error bound reaches."""

    start: float
    spacing: float
    nodes: int
    down: float


@dataclass(frozen=True)
class Contour:
    """The path z + i tau(z), tau = 1 / (1/(gain t Y') + 1/height), on which a transform decays.

    ``log_ratio`` is about the log of the bound on |M(tilt + i t)| / M(tilt).
    """

    gain: float
    height: float
    log_ratio: float = 0.0


@dataclass(frozen=True)
class LinePlan:
    """Discretisation of an inversion.

    Parameters
    ----------
    tilt : float
        Real part of the line; not 0 or 1.
    spacing : float
        Of the nodes in t; the period is 2 pi / spacing.
    count : int
        Number of nodes t = 0, spacing, 2 spacing, ...
    grids, contours : tuple
        One entry per phase; None for phases without sampling.
    beyond : tuple of (float or None)
        Tilts below and above ``tilt`` whose Chernoff bounds limit the aliases.
    bits : int
        Working precision.
    cut : float
        Where the normal law is cut off.
    """

    tilt: float
    spacing: float
    count: int
    grids: tuple[LineNodes | None, ...]
    contours: tuple[Contour | None, ...]
    beyond: tuple[float | None, float | None]
    bits: int
    cut: float

    @property
    def products(self) -> int:
        """Number of products of nodes in z and in t."""
        return self.count * sum(grid.nodes for grid in self.grids if grid is not None)


def make_plan(
    cumulants: Cumulants, threshold: float, depth: float, variant: tuple[float, float] = (1.0, 0.0)
) -> LinePlan:
    """Choose the discretisation.

    Parameters
    ----------
    cumulants : Cumulants
        Those of the composition.
    threshold : float
        Threshold of the sum of Y.
    depth : float
        Natural logarithm of the relative precision aimed at.
    variant : tuple of float
        Least distance of the line from the poles and its displacement, in units of 1/sd.

    Raises
    ------
    NotFeasibleError
        If a mode beyond the nodes matters, or too many nodes would be needed.
    """
    phases = cumulants.phases
    saddle = cumulants.saddle(threshold)
    sd = math.sqrt(cumulants.mean_variance(saddle)[1])
    if sd == 0:
        raise NotFeasibleError("degenerate saddle point")
    tilt = away_from_poles(saddle + variant[1] / sd, variant[0] / sd)
    if cumulants.runs_off(tilt, depth):
        tilt = away_from_poles(_calm(cumulants, tilt, depth), variant[0] / sd)
    period, beyond = _period(cumulants, tilt, threshold, depth + 4)
    steps = sum(phase.steps for phase in phases)
    deep = depth + math.log(steps) + 3
    coarse = [_Coarse(cumulants, i, tilt) for i in range(len(phases))]
    reach, contours = _reach(phases, coarse, depth, 1 / sd)
    count = math.ceil(reach * period / (2 * math.pi)) + 1
    tilts = [tilt, *(x for x in beyond if x is not None)]
    if max(map(abs, tilts)) * max(float(loss[-1]) for loss in cumulants.losses) > MOST_EXPONENT:
        raise NotFeasibleError("a second mode")
    grids = tuple(
        None if phase.full_batch else _grid(cumulants, i, phase, coarse[i], tilts, reach, deep)
        for i, phase in enumerate(phases)
    )
    nodes = sum(grid.nodes for grid in grids if grid is not None)
    if nodes * count > MOST_PRODUCTS or 2 * nodes * math.sqrt(count) > MOST_EXPONENTIALS:
        raise NotFeasibleError(f"{count} nodes in t and {nodes} in z would be needed")
    size = 1 + (abs(tilt) + reach) * (1 + abs(threshold))
    bits = int((depth + math.log(steps) + math.log(size)) / math.log(2)) + 40
    return LinePlan(tilt, 2 * math.pi / period, count, grids, contours, beyond, bits, cumulants.cut)


def _calm(cumulants: Cumulants, tilt: float, depth: float) -> float:
    """Return the largest tilt below a given one whose weight is negligible at the cut."""
    low, high = 0.0, tilt
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if cumulants.runs_off(middle, depth) else (middle, high)
    return low


def _period(
    cumulants: Cumulants, tilt: float, threshold: float, depth: float
) -> tuple[float, tuple[float | None, float | None]]:
    """Return a period with aliases below exp(-depth) of exp(K(tilt) - tilt c), and the tilts."""
    base = cumulants.value(tilt) - tilt * threshold
    sd = math.sqrt(cumulants.mean_variance(tilt)[1])
    if not sd > 1e-300:
        raise NotFeasibleError("degenerate saddle point")
    # Relative to the tail that belongs to the pole.
    bases = {0.0: base, 1.0: base + threshold + cumulants.shift}
    pole_depth = {p: depth - min(b, 0.0) for p, b in bases.items()}
    sides, chosen = [], []
    for sign in (-1.0, 1.0):
        poles = [p for p in (0.0, 1.0) if (p - tilt) * sign > 0]
        bounds = [pole_depth[p] / abs(p - tilt) for p in poles]
        best = None
        if len(poles) < 2:
            trials = [tilt + sign * g / sd for g in np.geomspace(0.1, 60.0, 24)]
            values = [cumulants.value(x) - x * threshold - base for x in trials]
            periods = [(depth + v) / abs(x - tilt) for x, v in zip(trials, values, strict=True)]
            best = trials[int(np.argmin(periods))]
            bounds.append(min(periods))
        sides.append(max(bounds))
        chosen.append(best)
    return max(sides), (chosen[0], chosen[1])


class _Coarse:
    """The tilted law of one step on a coarse grid: moduli of its transform off the real axis."""

    def __init__(self, cumulants: Cumulants, index: int, tilt: float) -> None:
        phase = cumulants.phases[index]
        every = 4
        self.tilt = tilt
        self.mu = 1 / float(phase.noise)
        if phase.full_batch:
            return
        exponent = cumulants.log_weight[::every] + tilt * cumulants.losses[index][::every]
        weight = np.exp(exponent - exponent.max())
        self.log_weight = exponent - exponent.max() - math.log(weight.sum())
        self.weight = weight / weight.sum()
        self.log_w = self.mu * cumulants.z[::every] - self.mu**2 / 2 + log_odds(phase)
        self.share = 1 / (1 + np.exp(-np.maximum(self.log_w, -700)))  # w / (1 + w)
        self.both = 4 * self.share * (1 - self.share)
        self.least = np.exp(-np.abs(self.log_w))  # the smaller one of w and 1/w
        # The larger one of 1 and w is 1 in the scale of the angle of 1 + w exp(i alpha).
        self.of_sine = np.where(self.log_w <= 0, self.least, 1.0)
        self.of_one = np.where(self.log_w <= 0, 1.0, self.least)

    def log_ratio(self, tau: Array, slope: Array, t: float) -> float:
        """Return log of the integral of |f| on z + i tau over M(tilt)."""
        half = 0.5 * self.mu * tau
        sine, cosine = np.sin(half), np.cos(half)
        square = sine * sine
        angle = np.arctan2(
            self.of_sine * (2 * sine * cosine), self.of_one + self.of_sine * (1 - 2 * square)
        )
        shrunk = 0.5 * np.log1p(-self.both * square)
        growth = tau**2 / 2 + self.tilt * shrunk - t * angle + np.log1p(slope**2 / 2)
        if growth.max() < 1:
            # Relative to 1, not to the largest term: the result is raised to the number of steps.
            change = float(self.weight @ np.expm1(growth))
            if change > -0.9:
                return math.log1p(change)
        total = self.log_weight + growth
        top = float(total.max())
        return top + math.log(float(np.sum(np.exp(total - top))))

    def log_end(self, down: float, t: float, step: float) -> float:
        """Return log of what the end of the strip below the axis adds to the error, over M."""
        y = np.linspace(0.0, down, 60)
        turned = 1 + math.exp(min(self.log_w[-1], 300.0)) * np.exp(1j * self.mu * y)
        less = min(self.tilt, 0.0) * np.log(np.abs(turned / turned[0]))
        top = float(np.max(y * y / 2 + t * np.angle(turned) + less - 2 * math.pi * y / step))
        return float(self.log_weight[-1]) + max(top, 0.0)

    def decay(self, t: float, contour: Contour) -> float:
        """Return log of the bound on |M(tilt + i t)| / M(tilt) by a contour."""
        beta = contour.gain * t * self.mu
        high = contour.height
        lift = beta * self.share
        tau = high * lift / (high + lift)
        slope = tau**2 / np.maximum(beta * self.share, 1e-300) * self.mu * (1 - self.share)
        return self.log_ratio(tau, slope, t)

    def best(self, t: float) -> tuple[float, Contour]:
        """Return the best bound at t and its contour."""
        top = math.pi / 2 / self.mu
        trials = [
            Contour(gain, height * top)
            for gain in (0.15, 0.3, 0.5, 0.7, 0.9, 1.0)
            for height in (0.1, 0.25, 0.5, 0.75, 0.98)
        ]
        values = [self.decay(t, contour) for contour in trials]
        best = int(np.argmin(values))
        return values[best], replace(trials[best], log_ratio=values[best])


def _reach(
    phases: tuple[EqualSteps, ...], coarse: list[_Coarse], depth: float, unit: float
) -> tuple[float, tuple[Contour | None, ...]]:
    """Return t beyond which the transform is below exp(-depth) M(tilt), and the contours."""

    def total(t: float) -> tuple[float, list[Contour | None]]:
        result, contours = 0.0, list[Contour | None]()
        for phase, one in zip(phases, coarse, strict=True):
            if phase.full_batch:
                result -= phase.steps * one.mu**2 * t * t / 2
                contours.append(None)
            else:
                value, contour = one.best(t)
                result += phase.steps * value
                contours.append(contour)
        return result, contours

    high = unit
    while total(high)[0] > -depth:
        high *= 2
        if high > 1e7 * unit:
            raise NotFeasibleError("the transform does not decay")
    low = high / 2
    while high / low > 1.03:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if total(middle)[0] <= -depth else (middle, high)
    return high, tuple(total(high)[1])


def _grid(
    cumulants: Cumulants,
    index: int,
    phase: EqualSteps,
    coarse: _Coarse,
    tilts: list[float],
    reach: float,
    depth: float,
) -> LineNodes:
    """Return the z nodes of a phase."""
    low = min(cumulants.window(index, tilt, depth + 8)[0] for tilt in tilts)
    high = cumulants.cut
    top = math.pi / 2 * float(phase.noise) * 0.99
    wide = math.sqrt(2 * depth)
    ones = np.ones_like(coarse.log_w)

    def spacing(tau: float, t: float) -> float:
        growth = coarse.log_ratio(-tau * ones, 0 * ones, t)
        return 2 * math.pi * tau / (depth + max(growth, 0.0))

    downs = [min(wide * x, top) for x in np.geomspace(0.003, 1.0, 36)]
    down = max(downs, key=lambda tau: spacing(tau, reach))
    up = max(downs, key=lambda tau: spacing(tau, 0.0))
    step = min(spacing(down, reach), spacing(up, 0.0))
    while coarse.log_end(down, reach, step) > -depth:
        step *= 0.93
        if step < 1e-6:
            raise NotFeasibleError("a second mode")
    step = float(np.float32(step))
    first = math.floor(min(low, -1.0) / step)  # the bound on what is left of it needs z < 0
    return LineNodes(first * step, step, math.ceil(high / step) - first + 1, float(down))
