"""Two laws that enclose that of one epoch of random allocation, with proven errors.

Without the record the likelihood ratio of an epoch is the mean of t independent ratios of Gaussian
steps.  Means are formed by doubling.  Each time the mass between two nodes is moved: it is split
onto both nodes with its mean kept, which raises all hockey-stick divergences, or merged at its
mean, which lowers them (docs/theory/epochs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pyengine import special
from pyengine._core import ffi, lib
from pyengine.laws.base import Cells, Enclosing, FloatArray, StepLaw
from pyengine.laws.gaussian import GaussianLaw
from pyengine.laws.ratios import RatioLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = [
    "DEPTH",
    "EVEN",
    "LEAST_MASS",
    "Mean",
    "RatioStep",
    "epoch_bounds",
    "means",
    "normal_scores",
]

FEW_NODES = 256  # of the coarse law by which nodes are placed
DEPTH = 27.0  # standard deviations at which a step is cut: the log of the mass beyond is -369
EVEN = 7.0  # standard deviations up to which nodes are equally dense
WIDEST = 0.5  # log of the largest ratio of neighbouring nodes
KNOTS = 0.7  # spacing of the normal scores between which nodes are interpolated
LEAST_MASS = 2.0**-1000  # the C core leaves out smaller products of masses


class _CellMasses(NamedTuple):
    """Masses of cells between edges, and the part of each that its upper end gets when split."""

    edge: FloatArray
    mass: FloatArray
    share: FloatArray


@dataclass(frozen=True)
class Mean:
    """Law of a mean of likelihood ratios, with the masses of cells split or merged.

    ``error`` and ``off`` bound the errors of log masses and log ratios; ``lost`` times the number
    of steps bounds the mass that is left out under either law.
    """

    ratio: FloatArray
    mass: FloatArray
    error: float
    off: float
    lost: float


def _split(moved: _CellMasses) -> tuple[FloatArray, FloatArray]:
    """Split the mass of each cell onto its two nodes, with its mean kept."""
    mass = np.zeros(moved.edge.size)
    above = np.clip(moved.share, 0.0, moved.mass)  # only rounding may leave that range
    mass[:-1] += moved.mass - above
    mass[1:] += above
    some = mass > 0.0
    return np.ascontiguousarray(moved.edge[some]), np.ascontiguousarray(mass[some])


def _merged(moved: _CellMasses) -> tuple[FloatArray, FloatArray]:
    """Put the mass of each cell at its mean."""
    some = moved.mass > 0.0
    low, high, mass = moved.edge[:-1][some], moved.edge[1:][some], moved.mass[some]
    mean = low + np.clip(moved.share[some] / mass, 0.0, 1.0) * (high - low)
    # rounding may put neighbouring means out of order
    return np.maximum.accumulate(mean), mass


WAYS = (_merged, _split)  # laws below and above


class RatioStep:
    """Likelihood ratio of one Gaussian step, discretised on nodes.

    Parameters
    ----------
    noise : float
        Noise multiplier.
    depth, even : float
        Standard deviations at which the step is cut, and up to which nodes are equally dense.
    """

    def __init__(self, noise: float, depth: float, even: float) -> None:
        self.law: StepLaw = GaussianLaw(noise)
        self.mu = 1.0 / noise
        self._depth, self._even = depth, even
        self.ends = self.log_ratio(np.array([-depth, depth + self.mu]))
        # mass beyond the ends, under either law
        self.beyond = 2.0 * special.ndtr(-depth) * (1.0 + 1e-6)

    def log_ratio(self, z: FloatArray) -> FloatArray:
        """Loss of a step at z standard deviations without the record."""
        return self.mu * z - 0.5 * self.mu * self.mu

    def scores(self, number: int) -> FloatArray:
        """Normal scores of nodes: evenly spaced in the middle, then as the square of the score."""
        half = self._even + 0.5 * self.mu
        end = self._depth + 0.5 * self.mu
        u = np.linspace(-1.0, 1.0, number) * half * (2.0 - half / end)
        size = np.abs(u)
        far = half / np.maximum(2.0 - size / half, half / end)
        return np.where(size <= half, u, np.sign(u) * far) + 0.5 * self.mu

    def nodes(self, log_ratio: FloatArray) -> FloatArray:
        """Increasing nodes from end to end, none farther from the next one than `WIDEST`."""
        low, high = self.ends
        between = np.arange(low, high, WIDEST)
        inner = np.clip(np.append(log_ratio, between), low, high)
        return np.unique(np.append(inner, self.ends))

    def edges(self, number: int) -> FloatArray:
        """Losses of the nodes for the step itself."""
        return self.nodes(self.log_ratio(self.scores(number)))

    def placed(self, number: int, score: FloatArray, mean: FloatArray) -> FloatArray:
        """About ``number`` nodes for a mean, whose values at some normal scores are given."""
        knots = np.arange(-DEPTH, DEPTH + self.mu + KNOTS, KNOTS)
        places = np.interp(knots, score, fn.log(mean))
        return np.asarray(fn.exp(self.nodes(np.interp(self.scores(number), knots, places))))

    def outside(self, cells: Cells) -> float:
        """Bound on the mass of either law beyond the first and the last edge."""
        del cells
        return self.beyond

    def on_nodes(self, number: int, way: int) -> Mean:
        """The step itself, on about ``number`` nodes; ``way`` is an index of `WAYS`."""
        loss = self.edges(number)
        edge, first = np.unique(fn.exp(loss), return_index=True)
        loss = loss[first]
        cells = self.law.cells(loss)
        some = cells.log_a[1:-1] > -math.inf  # errors of empty cells mean nothing
        log_a, log_ratio, error, off = (
            x[1:-1][some] for x in (cells.log_a, cells.log_ratio, cells.error, cells.ratio_error)
        )
        mass, share = np.zeros(some.size), np.zeros(some.size)
        mass[some] = fn.exp(log_a)
        place = (fn.exp(log_ratio) - edge[:-1][some]) / np.diff(edge)[some]
        share[some] = mass[some] * np.clip(place, 0.0, 1.0)
        ratio, moved = WAYS[way](_CellMasses(edge, mass, share))
        largest = float(np.abs(log_ratio).max() + np.abs(loss).max())
        return Mean(
            ratio,
            moved,
            float(error.max()) + 2.0 * ELEMENTARY * UNIT,
            float(off.max() + 2.0 * cells.shift.max())
            + UNIT * (4.0 * ELEMENTARY + 16.0 + 2.0 * largest),
            self.outside(cells),
        )


def _mean(first: Mean, second: Mean, steps: tuple[int, int], edge: FloatArray, way: int) -> Mean:
    """The mean of ``steps`` of the first and the second kind, on the cells between edges."""
    is_square = first is second
    p, q = (number / sum(steps) for number in steps)
    mass, share = np.zeros(edge.size - 1), np.zeros(edge.size - 1)
    lib.pe_mean_cells(
        first.ratio.size,
        ffi.from_buffer("double[]", first.ratio),
        ffi.from_buffer("double[]", first.mass),
        second.ratio.size,
        ffi.from_buffer("double[]", second.ratio),
        ffi.from_buffer("double[]", second.mass),
        p,
        q,
        is_square,
        edge.size - 1,
        ffi.from_buffer("double[]", edge),
        ffi.from_buffer("double[]", mass, require_writable=True),
        ffi.from_buffer("double[]", share, require_writable=True),
    )
    ratio, moved = WAYS[way](_CellMasses(edge, mass, share))
    roundings = float(first.ratio.size + second.ratio.size + 8)
    width = float((1.0 - edge[:-1] / edge[1:]).max())
    # products below the least mass are lost; under B the largest ratio multiplies them
    small = first.ratio.size * second.ratio.size * LEAST_MASS * max(1.0, float(edge[-1]))
    return Mean(
        ratio,
        moved,
        first.error + second.error + roundings * UNIT,
        max(first.off, second.off) + UNIT * (16.0 + 2.0 * roundings * width),
        max(first.lost, second.lost) + small,
    )


def _scores(first: Mean, second: Mean, steps: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Normal scores of the mean, increasing, and its values there, from pairs of coarse nodes."""
    p, q = (number / sum(steps) for number in steps)
    mean = np.add.outer(p * first.ratio, q * second.ratio).ravel()
    mass = np.multiply.outer(first.mass, second.mass).ravel()
    order = np.argsort(mean)
    mean, mass = mean[order], mass[order]
    return normal_scores(np.cumsum(mass), np.cumsum(mass[::-1])[::-1]), mean


def normal_scores(below: FloatArray, above: FloatArray) -> FloatArray:
    """Normal scores of increasing points, from the masses below and above each."""
    tail = fn.log(np.maximum(np.minimum(below, above), 1e-300))
    score = special.ndtri_exp(np.minimum(tail, fn.log(0.5)))
    return np.asarray(np.maximum.accumulate(np.where(below < above, score, -score)))


class _Chain:
    """Laws of the mean of a growing number of steps: below, above, and a coarse one.

    Parameters
    ----------
    step : RatioStep
        One of the steps.
    nodes : int
        Number of nodes of each law.
    """

    def __init__(self, step: RatioStep, nodes: int) -> None:
        self.step, self.nodes, self.number = step, nodes, 1
        self.laws = _all_ways(step, nodes)
        self.coarse = self._single = step.on_nodes(FEW_NODES, way=1)

    def double(self) -> None:
        """Double the number of steps."""
        self._add(self.coarse, self.laws, self.number)

    def add_one(self) -> None:
        """Add one step, on fewer nodes since it has a small share in the mean."""
        number = max(FEW_NODES, int(self.nodes / math.sqrt(self.number + 1)))
        self._add(self._single, _all_ways(self.step, number), 1)

    def _add(self, coarse: Mean, laws: list[Mean], number: int) -> None:
        steps = self.number, number
        known = _scores(self.coarse, coarse, steps)
        nodes, few = (np.unique(self.step.placed(n, *known)) for n in (self.nodes, FEW_NODES))
        self.coarse = _mean(self.coarse, coarse, steps, few, way=1)
        self.laws = [
            _mean(mine, theirs, steps, nodes, way)
            for way, (mine, theirs) in enumerate(zip(self.laws, laws, strict=True))
        ]
        self.number += number


def _all_ways(step: RatioStep, number: int) -> list[Mean]:
    return [step.on_nodes(number, way) for way in range(len(WAYS))]


def means(step: RatioStep, steps: int, nodes: int) -> list[Mean]:
    """Return the laws of the mean ratio of ``steps`` steps, with merged and with split cells."""
    chain = _Chain(step, nodes)
    for bit in bin(steps)[3:]:
        chain.double()
        if bit == "1":
            chain.add_one()
    return chain.laws


# Map: an epoch between two laws of means | test_epoch_bounds | theory/epochs
def epoch_bounds(noise: float, steps: int, nodes: int) -> Enclosing:
    """Return laws below and above that of one epoch of random allocation.

    Parameters
    ----------
    noise : float
        Noise multiplier.
    steps : int
        Number t of steps, >= 2.
    nodes : int
        Approximate number of nodes of each law; their distance falls with its square.

    Returns
    -------
    Enclosing
        Proven, floating point included.
    """
    below, above = (
        _law(mean, steps) for mean in means(RatioStep(noise, DEPTH, EVEN), steps, nodes)
    )
    # mass in no cell of the law below is merged with its heaviest atom, far within its error
    return Enclosing(replace(below, alone=0.0), above)


def _law(mean: Mean, steps: int) -> RatioLaw:
    """The law of a mean, without atoms whose mass under B is below `LEAST_MASS`."""
    kept = mean.mass * mean.ratio > LEAST_MASS
    lost = steps * mean.lost + float(mean.mass[~kept].sum()) + mean.mass.size * LEAST_MASS
    return RatioLaw(mean.ratio[kept], mean.mass[kept], mean.error, mean.off, 1.001 * lost)
