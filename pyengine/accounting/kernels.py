"""One step between two laws on a geometric grid of likelihood ratios.

An ordered pair (A, B) with R = dA/dB is known by its call function C(k) = E_B (R - k)+ =
H_k(A‖B).  For convex W with W(0) = 0 the mean E_B W(rR) grows with C, so a law on the grid
k_j = e^{jh} whose call function lies above C, or below it, bounds that mean on its side.  Kept is
V(k) = C(k) - (1 - k)+, which is small at both ends and known to the last digits there.

`Kernel.slack` makes the proof one of floating point: whatever the weights are, call functions are
summed up from them and compared with C at every node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from pyengine import api
from pyengine._support.caches import kept
from pyengine.mechanisms import Mechanism
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

if TYPE_CHECKING:
    from pyengine.api.typing import Adjacency

__all__ = ["GradedLaw", "Kernel", "StepProfile", "between", "graded", "kernel", "values_below"]

FloatArray = npt.NDArray[np.float64]

ORDERS: tuple[Adjacency, ...] = ("add", "remove")
REVERSED = {"add": "remove", "remove": "add"}
PARTS = 8  # of a cell: lower bounds are chords between the parts 3 and 5
DISTANCES = np.geomspace(2.0**-12, 300.0, 1400)  # at which steps may be cut off
DOUBLED = 3  # how often the nodes of a graded law thin out by 2
Ends = tuple[float, float]


@dataclass(frozen=True)
class StepProfile:
    """V(k) of one step and order at k = e^x, between bounds that are proven."""

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

    def end(self, cut: float, side: int) -> float:
        """Some |x| on a side of 0 from which on V is at most ``cut``."""
        return float(DISTANCES[min(int(np.sum(_far_values(self, side) > cut)), DISTANCES.size - 1)])

    @property
    def variation(self) -> float:
        """Total variation between both laws, from above."""
        return float(self.at(np.zeros(1))[1][0])


@kept(256)
def _far_values(profile: StepProfile, side: int) -> FloatArray:
    """V at all `DISTANCES` on a side of 0, from above; it falls."""
    return profile.at(side * DISTANCES)[1]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A law of R on the nodes k_j = e^{jh}, j = first <= 0, first + 1, ..., beside that of a step.

    ``weights`` are B-masses, ``far`` the A-mass where R is infinite, ``values`` V at the nodes, of
    the call function that the weights have up to ``slack`` λ: with S the call function of weights
    and ``far``, |S/C' - 1| <= λ, where C' is that of ``values``, at all k >= 0; and C' lies on its
    side of the step's C.
    """

    first: int
    weights: FloatArray
    far: float
    values: FloatArray
    slack: float
    is_upper: bool

    @property
    def last(self) -> int:
        """Index of the last node."""
        return self.first + self.weights.size - 1


# Map: laws of one step on a grid, above and below | test_adaptive | theory/adaptive
@kept(256)
def kernel(profile: StepProfile, spacing: float, low: float, high: float, is_upper: bool) -> Kernel:
    """Law on the grid that bounds a step from one side.

    The spacing h is a power of two, so that all jh are doubles; nodes reach from about -low to
    high.
    """
    first, last = -math.ceil(low / spacing) - 1, math.ceil(high / spacing) + 1
    index = np.arange(first, last + 1)
    return Kernel(first, *_law(profile, index * np.float64(spacing), is_upper), is_upper)


@dataclass(frozen=True, eq=False)
class GradedLaw:
    """As `Kernel`, on some of the nodes: all about k = 1, fewer farther out.

    ``index`` has j of each; beyond ``dense`` they are multiples of what the law is made with.
    """

    dense: int
    index: npt.NDArray[np.int64]
    weights: FloatArray
    far: float
    values: FloatArray
    slack: float


@kept(64)
def graded(
    profile: StepProfile, spacing: float, nodes: int, parts: int, ends: Ends, is_upper: bool
) -> GradedLaw:
    """Law on a grid that bounds a step from one side, with few nodes where little of it lies.

    All nodes from -nodes to nodes are taken, and every second, fourth and so on from there to
    twice, four times and so on as far, up to `DOUBLED` times; beyond only multiples of ``parts``,
    of which ``nodes`` is one.  ``ends`` says how far they reach below and above 0.
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
    return GradedLaw(starts[-1], index, *_law(profile, index * np.float64(spacing), is_upper))


def _law(
    profile: StepProfile, nodes: FloatArray, is_upper: bool
) -> tuple[FloatArray, float, FloatArray, float]:
    """Weights, A-mass at infinity, values and slack of a law on some nodes, of which 0 is one."""
    values = profile.at(nodes)[1] if is_upper else values_below(profile, nodes)
    values, weights = _corners(nodes, values, int(np.flatnonzero(nodes == 0.0)[0]), is_upper)
    far = float(values[-1])
    k = fn.exp(nodes)
    call = values + np.where(nodes < 0.0, -fn.expm1(np.minimum(nodes, 0.0)), 0.0)
    above, error = _suffix_sums(weights)
    gaps = k[:-1] * fn.expm1(np.diff(nodes))
    areas, more = _suffix_sums(gaps * above[1:])
    error += more + (3.0 * ELEMENTARY + 8.0) * UNIT
    summed = np.append(areas, 0.0) + far
    total = float(summed[0] + k[0] * above[0])  # at k = 0, where the true one is 1
    shrink = 1.0
    if is_upper:  # a mean of at most 1 keeps slopes of W at most 1
        shrink = min(1.0, 1.0 / (total * (1.0 + error))) * (1.0 - 4.0 * UNIT)
    alive = call > 0.0
    if (summed[~alive] > 0.0).any():
        raise AssertionError("weights where the call function vanishes")
    off = np.abs(summed[alive] / call[alive] - 1.0).max(initial=abs(total - 1.0))
    slack = (float(off) + 2.0 * error + (1.0 - shrink)) * (1.0 + 1e-6)
    return weights * shrink, far * shrink, values, slack


def between(lower: FloatArray, upper: FloatArray, steps: int) -> FloatArray:
    """The mean of lower and upper values of so many steps in which errors of order h² cancel.

    In units of h² k² C'' the upper call function is right at the nodes, the lower one off by
    1/8 + 1/128; each of the ``steps - 1`` convolutions of chords adds 1/12 to both.
    """
    above = (steps - 1) / 12.0
    below = steps * (1.0 / 8.0 + 1.0 / 128.0) - above
    return np.asarray((below * upper + above * lower) / (below + above))


class StepBounds(Protocol):
    """What has V at k = e^x between proven bounds, for one step or for several, row by row."""

    def at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds."""
        ...


def values_below(profile: StepBounds, nodes: FloatArray) -> FloatArray:
    """Values at the nodes of a function that is linear on cells and lies below V.

    On each cell: the chord between the parts p and q around the middle m, extended, lies below V
    outside of [p, q]; inside, V lies below it by at most 1 + e^η times what it does at m, η an
    eighth of the cell.
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
    # where a line ends below 0 only 0 lies below V and has no corner within the cell
    is_line = (left >= 0.0) & (right >= 0.0)
    left, right = (np.where(is_line, ends, 0.0) for ends in (left, right))
    values = np.zeros((*left.shape[:-1], nodes.size))
    values[..., 1:-1] = np.minimum(right[..., :-1], left[..., 1:])
    return values


def _corners(
    nodes: FloatArray, values: FloatArray, middle: int, is_upper: bool
) -> tuple[FloatArray, FloatArray]:
    """Values of a convex call function and the weights that have it, its differences of slopes.

    Nodes at which the function is not convex are left out: chords over them lie above a convex C
    whose upper bounds the values are, and below the function itself where these are lower bounds.
    Both ends stay; what rounding does there, `Kernel.slack` has.
    """
    keep = np.arange(nodes.size)
    if not is_upper:  # both ends are 0: no corner before the chord from there touches the function
        k = fn.exp(nodes)
        low, high = slice(1, middle), slice(middle + 1, nodes.size - 1)
        start = 1 + int(np.argmin(values[low] / (k[low] - k[0])))
        stop = middle + 1 + int(np.argmin(values[high] / (k[-1] - k[high])))
        keep = np.concatenate([[0], keep[start : stop + 1], [nodes.size - 1]])
    while True:
        k = fn.exp(nodes[keep])
        gaps = k[:-1] * fn.expm1(np.diff(nodes[keep]))
        slopes = np.diff(values[keep]) / gaps  # of V; those of C are less by 1 at k < 1
        less = np.where(keep[1:] <= middle, -1.0, 0.0)
        across = (keep[:-1] < middle) & (keep[1:] > middle)
        if across.any():  # V has a corner where k = 1, and C need not have one
            slopes[across] -= -fn.expm1(nodes[keep[:-1][across]]) / gaps[across]
        left = float(values[keep[0]] / k[0]) if is_upper else 0.0
        bends = np.diff(np.concatenate([[left], slopes, [0.0]]))
        bends += np.diff(np.concatenate([[-1.0], less, [0.0]]))
        wrong = bends < 0.0
        wrong[[0, -1]] = False
        if not wrong.any():
            break
        keep = keep[~wrong]
    weights = np.zeros(nodes.size)
    weights[keep] = np.maximum(bends, 0.0)
    k = fn.exp(nodes)
    whole = np.interp(k, k[keep], values[keep])
    if across.any():
        first, last = keep[:-1][across][0], keep[1:][across][0]
        part = slice(first + 1, last)
        whole[part] = values[last] + slopes[across] * (k[part] - k[last])
        whole[part] -= np.maximum(1.0 - k[part], 0.0)
    return whole, weights


def _suffix_sums(values: FloatArray) -> tuple[FloatArray, float]:
    """Sums of values >= 0 from each index on, and a bound on their relative error."""
    block = max(1, math.isqrt(values.size))
    padded = np.zeros(-(-values.size // block) * block)
    padded[: values.size] = values[::-1]
    inner = np.cumsum(padded.reshape(-1, block), axis=1)
    before = np.concatenate([[0.0], np.cumsum(inner[:, -1])[:-1]])
    sums = (inner + before[:, None]).ravel()[: values.size]
    return sums[::-1].copy(), UNIT * (2.0 * block + 8.0)
