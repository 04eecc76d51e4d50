"""Survey of a composition: estimated cumulants of its loss, from coarse cells of uneven width.

Nothing here enters a bound: tilts, windows and spacings are chosen from these numbers, and bounds
come from the fine lattice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property, kept
from pyengine.laws.base import Cells, StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["ROOT_TWO_PI", "CoarseCumulants", "Part", "scaled_tail", "survey", "survey_cells"]

FloatArray = npt.NDArray[np.float64]
Part = tuple[StepLaw, int]

# smallest edge, largest edge usually and for laws with larger losses, edges per decade
SMALLEST, LARGEST, FARTHEST, PER_DECADE = 1e-12, 1e4, 1e15, 24
# width of cells from 0 to 40: e^{tilt L} varies by tilt times the width within a cell
STRIDE, STRIDES = 0.125, 320
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
LOG_TINY = -800.0  # log of a negligible mass: below all doubles
DEEPEST = 45.0  # the largest signed root w that matters: e^{-w²/2} is below all doubles
MOST_KNOWN = 64  # tilts whose cumulants are kept
REFINEMENTS = 20  # rounds in which rows are inserted into a table
STEEP = 3.0  # change of A's log density from cell to cell above which both cells are halved
NARROW = 1e-3  # width of a cell that is not halved, relative to 1 + |loss|
SPREAD = 0.25  # the same, relative to the root of 1 + |loss|
# rounds of halving, usually and for laws with losses beyond `LARGEST`; and most edges
HALVINGS, MOST_HALVINGS, MOST_EDGES = 6, 24, 6000
ATOM = 0.3  # tilt² times the variance, below which one atom has most of a tilted law


def scaled_tail(x: float) -> float:
    """e^{x²/2} Φ(-x) for x >= 0: a normal tail relative to its Chernoff bound."""
    if x < 25.0:
        return 0.5 * fn.exp(0.5 * x * x) * fn.erfc(x / math.sqrt(2.0))
    return 1.0 / (ROOT_TWO_PI * (x + 1.0 / x))


@dataclass(frozen=True, eq=False)
class CoarseCumulants:
    """Atoms of each kind of step, one per coarse cell, and the number of steps of each kind.

    ``loss`` is log(b/a) of a cell with mass under both laws, ``log_mass`` the log of A's mass a.
    """

    loss: tuple[FloatArray, ...]
    log_mass: tuple[FloatArray, ...]
    steps: tuple[int, ...]
    _known: dict[float, tuple[float, float, float]] = field(default_factory=dict, init=False)

    @np.errstate(over="ignore", invalid="ignore")  # `TiltGrid` refuses tilts without numbers
    def many(self, tilts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Cumulant generating function log E_A e^{tilt S}, and its first two derivatives."""
        total, first, second = np.zeros(tilts.size), np.zeros(tilts.size), np.zeros(tilts.size)
        for loss, log_mass, steps in zip(self.loss, self.log_mass, self.steps, strict=True):
            weight = log_mass + tilts[:, None] * loss
            top = weight.max(axis=1)
            weight = fn.exp(weight - top[:, None])
            norm = weight.sum(axis=1)
            mean = (weight * loss).sum(axis=1) / norm
            spread = (weight * (loss - mean[:, None]) ** 2).sum(axis=1) / norm
            total += steps * (top + fn.log(norm))
            first += steps * mean
            second += steps * spread
        return total, first, second

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """The same at one tilt; the first `MOST_KNOWN` tilts are kept."""
        known = self._known.get(tilt)
        if known is None:
            total, first, second = self.many(np.array([tilt]))
            known = float(total[0]), float(first[0]), float(second[0])
            if len(self._known) < MOST_KNOWN:
                self._known[tilt] = known
        return known

    def step_cumulants(self, tilt: float) -> list[tuple[float, float]]:
        """For each kind of step, log E_A e^{tilt L} and the mean of the tilted loss."""
        found = []
        for loss, log_mass in zip(self.loss, self.log_mass, strict=True):
            one = CoarseCumulants((loss,), (log_mass,), (1,)).cumulants(tilt)
            found.append((one[0], one[1]))
        return found

    @cached_property
    @np.errstate(over="ignore", invalid="ignore")  # `TiltGrid` refuses a table with such an end
    def table(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Signed roots, tilts and tilted means, all increasing, over the support of S.

        The signed root w of a tilt is that of the saddle point formula: A's tail beyond the tilted
        mean is about Φ(-|w|).  A side ends where the last atom has most of the tilted law, or where
        the tail is below all doubles.
        """
        deviation = max(math.sqrt(self.cumulants(0.0)[2]), 1e-300)
        sides = []
        for sign in (-1.0, 1.0):
            rows: list[FloatArray] = []
            start = 0.2 / deviation
            for _ in range(40):
                tilts = sign * start * 2.0 ** (np.arange(16) / 4.0)
                total, mean, variance = self.many(tilts)
                root = _signed_root(tilts, mean, total)
                # λ² times the variance is small near λ = 0, and where one atom has nearly all mass
                is_atom = (variance * tilts * tilts < ATOM) & (np.abs(tilts) * deviation > 2.0)
                is_atom &= self._beside_end(tilts, int(sign)) < 1.0
                ends = (np.abs(root) > DEEPEST) | is_atom
                last = int(np.argmax(ends)) + 1 if ends.any() else tilts.size
                rows.append(np.array([root, tilts, mean])[:, :last])
                if ends.any():
                    break
                start *= 16.0
            sides.append(np.concatenate(rows, axis=1))
        centre = np.array([[0.0], [0.0], [self.cumulants(0.0)[1]]])
        table = np.concatenate([sides[0][:, ::-1], centre, sides[1]], axis=1)
        for _ in range(REFINEMENTS):  # the mean jumps where single large steps take over
            size = np.abs(table[0])
            inner = np.minimum(size[1:], size[:-1]) < DEEPEST
            wide = np.flatnonzero((np.diff(table[0]) > 0.25) & inner)
            if not wide.size:
                break
            tilts = 0.5 * (table[1][wide] + table[1][wide + 1])
            total, mean, _ = self.many(tilts)
            root = _signed_root(tilts, mean, total)
            table = np.insert(table, wide + 1, np.array([root, tilts, mean]), axis=1)
        table = np.maximum.accumulate(table, axis=1)
        return table[0], table[1], table[2]

    def _beside_end(self, tilts: FloatArray, sign: int) -> FloatArray:
        """Expected number of steps, under the tilted law, off the last loss on a side."""
        number = np.zeros(tilts.size)
        for loss, log_mass, steps in zip(self.loss, self.log_mass, self.steps, strict=True):
            weight = (log_mass + tilts[:, None] * loss)[:, ::sign]
            whole = fn.log_sum(weight, axis=1)
            number -= steps * fn.expm1(weight[:, -1] - whole)
        return number

    def root(self, tilt: float) -> float:
        """Signed root of a tilt."""
        total, mean, _ = self.many(np.array([tilt]))
        return float(_signed_root(np.array([tilt]), mean, total)[0])

    def tilt_at(self, root: float) -> float:
        """The tilt with a given signed root; the last one of the table beyond its end."""
        return float(np.interp(root, self.table[0], self.table[1]))

    def mean_at(self, root: float) -> float:
        """The tilted mean of S at a given signed root."""
        return float(np.interp(root, self.table[0], self.table[2]))

    @property
    def width(self) -> float:
        """Largest range of the losses of one step, over all kinds."""
        return max(float(x[-1] - x[0]) for x in self.loss)


def _signed_root(tilts: FloatArray, mean: FloatArray, total: FloatArray) -> FloatArray:
    """sign(λ) √(2(λ K'(λ) - K(λ))); 0 where the difference is within rounding."""
    product = tilts * mean
    square = 2.0 * (product - total)
    square[square < 64.0 * UNIT * (np.abs(product) + np.abs(total))] = 0.0
    return np.asarray(np.sign(tilts) * np.sqrt(square))


@kept(256, grows=True)
def survey(parts: tuple[Part, ...], per_decade: int = PER_DECADE) -> CoarseCumulants:
    """Return the survey of a composition of at least one step."""
    losses, masses, numbers = [], [], []
    for law, steps in parts:
        _, cells = survey_cells(law, per_decade)
        keep = _seen(cells)
        losses.append(cells.log_b[keep] - cells.log_a[keep])
        masses.append(cells.log_a[keep])
        numbers.append(steps)
    return CoarseCumulants(tuple(losses), tuple(masses), tuple(numbers))


@kept(64)
def survey_cells(law: StepLaw, per_decade: int = PER_DECADE) -> tuple[FloatArray, Cells]:
    """Uneven edges, refined where the density is steep, and the cells between them.

    Edges reach up to `FARTHEST` for laws with mass beyond `LARGEST`.
    """
    for largest in (LARGEST, FARTHEST):
        edges = _edges(law, largest, per_decade)
        cells = law.cells(edges)
        outside = [x[end] for x in (cells.log_a, cells.log_b) for end in (0, -1)]
        if max(outside) < LOG_TINY or max(map(abs, law.support())) <= largest:
            break
    for _ in range(HALVINGS if largest == LARGEST else MOST_HALVINGS):
        steep = _steep(edges, cells)
        if not steep.size or edges.size > MOST_EDGES:
            break
        edges = np.insert(edges, steep, 0.5 * (edges[steep - 1] + edges[steep]))
        cells = law.cells(edges)
    return edges, cells


def _edges(law: StepLaw, largest: float, per_decade: int) -> FloatArray:
    """Edges dense at 0 and at the ends of a law's support."""
    decades = math.log10(largest / SMALLEST)
    positive = np.unique(
        np.concatenate(
            [
                np.geomspace(SMALLEST, largest, int(per_decade * decades) + 1),
                np.arange(STRIDE, STRIDES * STRIDE, STRIDE),
            ]
        )
    )
    lowest, highest = law.support()
    edges = np.concatenate([-positive[::-1], [0.0], positive])
    edges = edges[(edges > lowest) & (edges < highest)]
    for end, towards in ((lowest, 1.0), (highest, -1.0)):
        if math.isfinite(end):  # a density may be steep or infinite at an end of its support
            near = end + towards * positive[positive < 0.2 * (1.0 + abs(end))]
            edges = np.concatenate([edges, [end], near[(near > lowest) & (near < highest)]])
    return np.unique(edges)


def _seen(cells: Cells) -> npt.NDArray[np.bool_]:
    """Cells with mass under both laws, one of them above e^`LOG_TINY`."""
    small, large = np.minimum(cells.log_a, cells.log_b), np.maximum(cells.log_a, cells.log_b)
    return np.asarray((small > -math.inf) & (large > LOG_TINY))


def _steep(edges: FloatArray, cells: Cells) -> npt.NDArray[np.intp]:
    """Indices of the upper edges of cells to halve: A's density is steep next to them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        density = cells.log_a[1:-1] - fn.log(np.diff(edges))
        change = np.abs(np.diff(density))
    seen = _seen(cells)[1:-1]
    change = np.where(seen[1:] & seen[:-1], change, 0.0)
    at = np.zeros(edges.size - 1, dtype=np.bool_)
    at[1:] |= change > STEEP
    at[:-1] |= change > STEEP
    # a loss that is a sum of many has a standard deviation of the order of its root
    size = 1.0 + np.abs(edges[1:])
    wide = np.diff(edges) > np.minimum(NARROW * size, SPREAD * np.sqrt(size))
    return np.flatnonzero(at & wide) + 1
