"""Upper and lower bounds of one step by laws on a geometric grid of likelihood ratios.

An ordered pair (A, B) with R = dA/dB is determined by its call function C(k) = E_B (R - k)+ =
H_k(A‖B).  For convex W with W(0) = 0 the mean E_B W(rR) increases with C, so a law on the grid
k_j = e^{jh} whose call function lies above (below) C bounds that mean from above (below).  We store
V(k) = C(k) - (1 - k)+, which is small at both ends and keeps its relative accuracy there.

`Kernel.slack` covers floating point: whatever the weights are, their call function is summed up and
compared with C at every node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from pyengine import api
from pyengine._core import ffi, lib
from pyengine._support.caches import kept
from pyengine.engines.functionals import array
from pyengine.laws.composition import step_law
from pyengine.mechanisms import Mechanism, steps_of
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

if TYPE_CHECKING:
    from pyengine.api.typing import Adjacency

__all__ = [
    "FARTHEST",
    "GradedLaw",
    "Kernel",
    "StepProfile",
    "between",
    "graded",
    "kernel",
    "values_below",
]

FloatArray = npt.NDArray[np.float64]

ORDERS: tuple[Adjacency, ...] = ("add", "remove")
REVERSED = {"add": "remove", "remove": "add"}
PARTS = 8  # parts of a cell: lower bounds are chords through the points 3/8 and 5/8 of it
FARTHEST = 300.0
DISTANCES = np.geomspace(
    2.0**-12, FARTHEST, 1400
)  # values of |log R| at which a law may be cut off
ROUNDED_FAR = 1e-13  # relative width of bounds of V where it no longer decreases, roughly
DOUBLED = 3  # how often the spacing of a graded law doubles, before it becomes the coarse one
Ends = tuple[float, float]


@dataclass(frozen=True)
class StepProfile:
    """Proven bounds of V(k), k = e^x, for one step and one order of the neighbours."""

    step: Mechanism
    order: Adjacency

    def at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds: H_k(A‖B) for k >= 1, and k H_{1/k}(B‖A) below."""
        lower, upper = np.empty(x.size), np.empty(x.size)
        other: Adjacency = "add" if self.order == "remove" else "remove"
        for order, part in ((self.order, x >= 0.0), (other, x < 0.0)):
            if part.any():
                found = api.delta(self.step, np.abs(x[part]), adjacency=order, bounds=True)
                lower[part], upper[part] = found.lower, found.upper
        weight = fn.exp(np.minimum(x, 0.0))
        error = (ELEMENTARY + 4.0) * UNIT
        return lower * weight * (1.0 - error), upper * weight * (1.0 + error)

    def end(self, cut: float, side: int, rare: float = FARTHEST) -> float:
        """Some |x| beyond which V is at most ``cut``, for x < 0 (side -1) or x > 0 (side 1).

        For x > 0 more than at log k = ``rare``.
        """
        if side > 0:
            cut += self.least(rare) * (1.0 + ROUNDED_FAR)
        return float(DISTANCES[min(int(np.sum(_far_values(self, side) > cut)), DISTANCES.size - 1)])

    def least(self, rare: float) -> float:
        """Lower bound of V for 0 <= log k <= ``rare``: almost the A-mass of larger log R."""
        return _least(self, rare)

    @property
    def ends_of_losses(self) -> set[float]:
        """|log R| at the finite ends of the step's losses, where laws may have atoms."""
        if len(steps_of(self.step)) != 1 or steps_of(self.step)[0][1] != 1:
            return set()
        law = step_law(steps_of(self.step)[0][0], self.order)
        return {abs(end) for end in law.support() if 0.0 < abs(end) < math.inf}

    @property
    def variation(self) -> float:
        """Upper bound of the total variation distance of both laws."""
        return float(self.at(np.zeros(1))[1][0])


@kept(256)
def _least(profile: StepProfile, rare: float) -> float:
    """`StepProfile.least`."""
    return float(profile.at(np.array([rare]))[0][0])


@kept(256)
def _far_values(profile: StepProfile, side: int) -> FloatArray:
    """Upper bounds of V at ``side * DISTANCES``, which decrease."""
    return profile.at(side * DISTANCES)[1]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A law of R on the nodes k_j = e^{jh}, j = first <= 0, first + 1, ..., that bounds a step.

    ``weights`` are the B-masses of the nodes, ``far`` is the A-mass where R is infinite, and
    ``values`` are V at the nodes for a call function C' that lies above (``is_upper``) or below the
    step's C.  The call function S of ``weights`` and ``far`` is C' up to the ``slack`` λ, which
    covers rounding: |S/C' - 1| <= λ at all k >= 0.  For a lower bound log R is only known to be at
    least ``rare`` where it is infinite.
    """

    first: int
    weights: FloatArray
    far: float
    values: FloatArray
    slack: float
    is_upper: bool
    rare: float = math.inf

    @property
    def last(self) -> int:
        """Index of the last node."""
        return self.first + self.weights.size - 1


# Map: laws of one step on a grid, above and below | test_adaptive | theory/adaptive
@kept(256)
def kernel(
    profile: StepProfile,
    spacing: float,
    low: float,
    high: float,
    is_upper: bool,
    rare: float = FARTHEST,
) -> Kernel:
    """A law on the grid that bounds a step from above or from below.

    The spacing h must have so few digits that all jh are doubles.  The nodes jh reach from about
    -low to high.
    """
    first, last = -math.ceil(low / spacing) - 1, math.ceil(high / spacing) + 1
    index = np.arange(first, last + 1)
    law = _law(profile, index * np.float64(spacing), is_upper, rare)
    return Kernel(first, *law, is_upper, rare)


@dataclass(frozen=True, eq=False)
class GradedLaw:
    """As `Kernel`, but on a subset of the nodes: all of them near k = 1, fewer farther out.

    ``index`` has the j of each node; for |j| > ``dense`` they are multiples of the ``parts`` of
    `graded`.
    """

    dense: int
    index: npt.NDArray[np.int64]
    weights: FloatArray
    far: float
    values: FloatArray
    slack: float


@kept(64)
def graded(
    profile: StepProfile,
    spacing: float,
    nodes: int,
    parts: int,
    ends: Ends,
    is_upper: bool,
    rare: float = FARTHEST,
) -> GradedLaw:
    """A law that bounds a step from above or below, on a grid that is coarser in the tails.

    It has all nodes j with |j| <= nodes, every second one up to 2 nodes, every fourth one up to
    4 nodes, and so on for `DOUBLED` doublings; beyond, only multiples of ``parts``, of which
    ``nodes`` must be one.  ``ends`` says how far jh reaches below and above 0.
    """
    last = [(math.ceil(end / (spacing * parts)) + 1) * parts for end in ends]
    steps = [min(1 << level, parts) for level in range(DOUBLED + 1)]
    starts = [0] + [nodes << level for level in range(DOUBLED + 1)]
    sides = []
    for end in last:
        pieces = [
            np.arange(start, min(stop, end), step)
            for (start, stop), step in zip(pairwise(starts), steps, strict=True)
        ]
        pieces.append(np.arange(starts[-1], end, parts))
        sides.append(np.append(np.concatenate(pieces), end))
    index = np.concatenate([-sides[0][:0:-1], sides[1]])
    return GradedLaw(starts[-1], index, *_law(profile, index * np.float64(spacing), is_upper, rare))


def _law(
    profile: StepProfile, nodes: FloatArray, is_upper: bool, rare: float
) -> tuple[FloatArray, float, FloatArray, float]:
    """Weights, A-mass at infinity, values and slack of a law on given nodes, which include 0."""
    least = profile.least(rare) if nodes[-1] <= rare else 0.0
    bounds = profile.at(nodes)[1] if is_upper else values_below(profile, nodes, least)
    middle = int(np.flatnonzero(nodes == 0.0)[0])
    values, weights = _corners(nodes, bounds, middle, is_upper)
    far = float(values[-1])
    k = fn.exp(nodes)
    call = values + np.where(nodes < 0.0, -fn.expm1(np.minimum(nodes, 0.0)), 0.0)
    above, error = _suffix_sums(weights)
    gaps = k[:-1] * fn.expm1(np.diff(nodes))
    areas, more = _suffix_sums(gaps * above[1:])
    error += more + (3.0 * ELEMENTARY + 8.0) * UNIT
    summed = np.append(areas, 0.0) + far
    total = float(summed[0] + k[0] * above[0])  # call function at k = 0, which should be 1
    shrink = 1.0
    if is_upper:  # with a mean of R of at most 1 the slopes of W stay at most 1
        shrink = min(1.0, 1.0 / (total * (1.0 + error))) * (1.0 - 4.0 * UNIT)
    alive = call > 0.0
    if (summed[~alive] > 0.0).any():
        raise AssertionError("weights where the call function vanishes")
    off = np.abs(summed[alive] / call[alive] - 1.0).max(initial=abs(total - 1.0))
    if not is_upper:  # corners left out by rounding might make it larger than the bounds
        off += ((values - bounds)[alive] / call[alive]).max(initial=0.0)
    slack = (float(off) + 2.0 * error + (1.0 - shrink)) * (1.0 + 1e-6)
    return weights * shrink, far * shrink, values, slack


def between(lower: FloatArray, upper: FloatArray, steps: int) -> FloatArray:
    """Mean of lower and upper values after ``steps`` steps, weighted so that O(h²) errors cancel.

    In units of h² k² C'', the upper call function has no error at the nodes and the lower one an
    error of 1/8 + 1/128; each of the ``steps - 1`` convolutions of chords adds 1/12 to both.
    """
    above = (steps - 1) / 12.0
    below = steps * (1.0 / 8.0 + 1.0 / 128.0) - above
    return np.asarray((below * upper + above * lower) / (below + above))


class StepBounds(Protocol):
    """Anything with proven bounds of V at k = e^x, for one step or for several in rows."""

    def at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds at each x."""
        ...


def values_below(profile: StepBounds, nodes: FloatArray, least: float = 0.0) -> FloatArray:
    """Values at the nodes of a piecewise linear function below V, which is at least ``least``.

    On each cell, the chord of the convex V through its points p and q at 3/8 and 5/8, extended,
    lies below V outside [p, q].  Inside, V is lower than the chord by at most 1 + e^η times the
    distance at the middle m, where η is an eighth of the cell; the chord is lowered by that much.
    """
    spacing = np.diff(nodes)
    part = spacing / PARTS
    places = [nodes[:-1] + number * part for number in (3, 4, 5)]
    bounds = [profile.at(place) for place in places]
    (at_p, at_m, at_q), tops = ([pair[side] for pair in bounds] for side in (0, 1))
    doubt = np.maximum.reduce([top - low for low, top in bounds]) + 8.0 * UNIT * np.maximum(
        tops[0], tops[2]
    )
    width = fn.expm1(2.0 * part)
    rise = at_q - at_p
    middle = at_p + rise * (fn.expm1(part) / width)
    excess = np.maximum(middle - at_m, 0.0)
    lower = (1.0 + fn.exp(part)) * excess + 5.0 * (1.0 + spacing) * doubt
    left = at_p + rise * (fn.expm1(-3.0 * part) / width) - lower
    right = at_p + rise * (fn.expm1(5.0 * part) / width) - lower
    # a line that becomes less than V ever is is replaced by that, without a corner in the cell
    floor = np.where(nodes[:-1] >= 0.0, least, 0.0)
    is_line = (left >= floor) & (right >= floor)
    left, right = (np.where(is_line, ends, floor) for ends in (left, right))
    values = np.zeros((*left.shape[:-1], nodes.size))
    values[..., -1] = least
    values[..., 1:-1] = np.minimum(right[..., :-1], left[..., 1:])
    return values


def _corners(
    nodes: FloatArray, values: FloatArray, middle: int, is_upper: bool
) -> tuple[FloatArray, FloatArray]:
    """Make a call function convex; its values, and the weights, which are its changes of slope.

    Nodes at which it is not convex are left out.  The chord over them lies above the convex C if
    the values are upper bounds of it, and below the given values if they are lower bounds.  Both
    end nodes stay; rounding there is covered by `Kernel.slack`.
    """
    k = fn.exp(nodes)
    keep, slopes = np.empty(nodes.size, dtype=np.int64), np.empty(nodes.size)
    count = lib.pe_call_corners(
        nodes.size,
        middle,
        array(nodes),
        array(k),
        array(np.ascontiguousarray(values)),
        ffi.from_buffer("int64_t[]", keep, require_writable=True),
        array(slopes, writable=True),
    )
    keep, slopes = keep[:count], slopes[1:count]
    less = np.where(keep[1:] <= middle, -1.0, 0.0)  # the slopes of C are less by 1 at k < 1
    left = float(values[0] / k[0]) if is_upper else 0.0
    bends = np.diff(np.concatenate([[left], slopes, [0.0]]))
    bends += np.diff(np.concatenate([[-1.0], less, [0.0]]))
    weights = np.zeros(nodes.size)
    weights[keep] = np.maximum(bends, 0.0)
    # V increases before k = 1 and decreases behind it: no digits cancel from the lower end on
    index, cell = np.arange(nodes.size - 1), np.repeat(np.arange(count - 1), np.diff(keep))
    across = (keep[cell] < middle) & (keep[cell + 1] > middle)  # slopes are those of C there
    before = index < middle
    end = keep[np.where(before, cell, cell + 1)]
    whole = values[end] + (slopes[cell] + (across & before)) * (k[index] - k[end])
    whole = np.append(np.maximum(whole, 0.0), values[-1])
    whole[keep] = values[keep]
    return whole, weights


def _suffix_sums(values: FloatArray) -> tuple[FloatArray, float]:
    """Sums of values >= 0 from each index to the end, and a bound on their relative error."""
    block = max(1, math.isqrt(values.size))
    padded = np.zeros(-(-values.size // block) * block)
    padded[: values.size] = values[::-1]
    inner = np.cumsum(padded.reshape(-1, block), axis=1)
    before = np.concatenate([[0.0], np.cumsum(inner[:, -1])[:-1]])
    sums = (inner + before[:, None]).ravel()[: values.size]
    return sums[::-1].copy(), UNIT * (2.0 * block + 8.0)
