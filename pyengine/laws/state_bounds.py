"""Two laws that enclose that of an epoch with each record in two random steps, with proven errors.

Without the record the likelihood ratio of the epoch is 2 e₂/(t(t - 1)), with e₂ the sum of the
products of all pairs of t independent ratios of Gaussian steps.  The state of a group of n steps is
(x, p): the sum x of its ratios, and p = 2 e₂ of them.  Two groups make one with x + x' and
p + p' + 2xx'.  The e₂ of all steps is an affine function of the state of one group, so states are
moved as means are in `epoch_bounds`: split onto nodes around them with their means kept, which
raises all hockey-stick divergences, or merged at the means of cells, which lowers them
(docs/theory/epochs).

Nodes lie on lines of equal w = p + 2(t - n)x, up to constants the mean of e₂ given the state, and
on each line at shares 2(t - n)x/w.  They are chosen by the same recursion on few nodes.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pyengine import special
from pyengine._core import ffi, lib
from pyengine.laws.base import Enclosing, FloatArray
from pyengine.laws.epoch_bounds import LEAST_MASS, RatioStep
from pyengine.laws.ratios import RatioLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["state_bounds"]

DEPTH, EVEN = 14.0, 5.0  # standard deviations of the ends of a step, and of equally dense nodes
FEW_LINES, FEW_SHARES, FEW_SINGLE = 40, 8, 80  # nodes of the coarse law
LAST = 4096  # lines of the whole epoch, which need no shares
BINS = 1.0  # width in normal scores of a bin of lines whose shares are chosen together
WIDEST = 0.5  # largest log ratio of neighbouring lines, unless that takes too many
OUTER = (4.6, 6.0)  # normal scores of the outer shares
SPREAD = 1.7  # of the normal scores of the other shares: optimal density is mass^(1/3)
NEAREST = 1e-7  # least distance of inner shares from 0 and 1


class _State(NamedTuple):
    """Law of the state of a group of ``number`` steps, on nodes.

    ``rows`` are the sums x, the p and the masses.  ``error`` bounds the errors of log masses,
    ``off`` those of log x and half of those of log p; ``lost`` times the number of steps bounds the
    mass that is left out under either law.
    """

    number: int
    rows: FloatArray
    error: float
    off: float
    lost: float


class _Lines(NamedTuple):
    line: FloatArray
    share: FloatArray  # of each line


def _put(first: _State, second: _State, steps: int, nodes: _Lines, *, apart: bool) -> _State:
    """Law of both groups as one; cells are split if ``apart``, else merged."""
    number = first.number + second.number
    slope = 2.0 * (steps - number)
    lines, shares = nodes.share.shape
    cells = (lines - 1) * max(shares - 1, 1)
    out = np.zeros(lines * shares if apart else 3 * cells)
    count = np.zeros(lines)
    lib.pe_state_cells(
        first.rows.shape[1],
        ffi.from_buffer("double[]", first.rows),
        second.rows.shape[1],
        ffi.from_buffer("double[]", second.rows),
        first is second,
        slope,
        lines,
        ffi.from_buffer("double[]", nodes.line),
        shares,
        ffi.from_buffer("double[]", nodes.share),
        apart,
        ffi.from_buffer("double[]", out, require_writable=True),
        ffi.from_buffer("double[]", count, require_writable=True),
    )
    roundings = float((count + np.append(0.0, count[:-1])).max()) + 8.0
    if apart:
        line = np.broadcast_to(nodes.line[:, None], nodes.share.shape)
        sums = nodes.share * line / slope if slope else np.zeros_like(line)
        products = (1.0 - nodes.share) * line if slope else line
        rows = np.stack([sums.ravel(), products.ravel(), out])
        inner = nodes.share[:, 1:-1]
        moved = 16.0 / min(float(inner.min()), 1.0 - float(inner.max())) if slope else 16.0
    else:
        mass, sums, products = out.reshape(3, cells)
        some = np.maximum(mass, LEAST_MASS)
        rows = np.stack([sums / some, products / some, mass])
        moved = 2.0 * roundings + 16.0
    small = first.rows.shape[1] * second.rows.shape[1] * LEAST_MASS
    return _State(
        number,
        np.ascontiguousarray(rows[:, rows[2] > 0.0]),
        first.error + second.error + roundings * UNIT,
        max(first.off, second.off) + moved * UNIT,
        max(first.lost, second.lost) + 2.0 * small * max(1.0, float(nodes.line[-1])),
    )


def _single(step: RatioStep, number: int, *, apart: bool) -> _State:
    mean = step.on_nodes(number, int(apart))
    rows = np.stack([mean.ratio, np.zeros(mean.ratio.size), mean.mass])
    return _State(1, rows, mean.error, mean.off, mean.lost)


def _places(x: FloatArray, mass: FloatArray, scores: FloatArray) -> FloatArray:
    """Values at normal scores, from sorted values with masses."""
    below, above = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
    least = fn.exp(special.log_ndtr(-np.abs(scores)))
    low = np.searchsorted(below, least * below[-1])
    high = x.size - np.searchsorted(above[::-1], least * below[-1])
    at = np.where(scores < 0.0, low, high)
    return np.asarray(x[np.clip(at, 0, x.size - 1)])


def _ends(groups: tuple[_State, _State], steps: int) -> tuple[float, float]:
    """Bounds of w for both groups together, from those of each.

    For given w of both groups it is affine in the share of each, so the ends are at shares 0 or 1.
    """
    slope = 2.0 * (steps - sum(group.number for group in groups))
    found = []
    for end in (np.min, np.max):
        corners = []
        for shares in ((0, 0), (0, 1), (1, 0), (1, 1)):
            sums, total = [], 0.0
            for share, group in zip(shares, groups, strict=True):
                own = 2.0 * (steps - group.number)
                place = float(end(group.rows[1] + own * group.rows[0]))
                sums.append(share * place / own)
                total += (1 - share) * place
            corners.append(total + 2.0 * sums[0] * sums[1] + slope * sum(sums))
        found.append(float(end(np.array(corners))))
    return found[0] * (1.0 - 1e-9), found[1] * (1.0 + 1e-9)


class _Map:
    """Distribution of w and of shares for two groups on few nodes, by which nodes are chosen."""

    def __init__(
        self, step: RatioStep, groups: tuple[_State, _State], steps: int, ends: tuple[float, float]
    ) -> None:
        first, second = groups
        slope = 2.0 * (steps - first.number - second.number)
        sums = np.add.outer(first.rows[0], second.rows[0])
        place = np.add.outer(first.rows[1], second.rows[1])
        place += 2.0 * np.multiply.outer(first.rows[0], second.rows[0]) + slope * sums
        place, mass = place.ravel(), np.multiply.outer(first.rows[2], second.rows[2]).ravel()
        order = np.argsort(place)
        self._mass, self._log = mass[order], np.asarray(fn.log(place[order]))
        share = (slope * sums).ravel()[order] / place[order]
        self._odds = np.asarray(fn.log(share) - fn.log(np.maximum(1.0 - share, 1e-16)))
        self._step, self._log_ends, self._slope = step, fn.log(np.array(ends)), slope
        self._knots = np.arange(-DEPTH, DEPTH + step.mu + BINS, BINS)
        self._at = _places(self._log, self._mass, self._knots)

    def nodes(self, lines: int, shares: int) -> _Lines:
        """About ``lines`` lines, with ``shares`` shares on each (one for the whole epoch)."""
        x = np.interp(self._step.scores(lines), self._knots, self._at)
        low, high = self._log_ends
        x = np.append(x, np.arange(low, high, max(WIDEST, (high - low) / lines)))
        x = np.append(np.clip(x, *self._log_ends), self._log_ends)
        line = np.unique(fn.exp(np.unique(x)))
        if not self._slope:
            return _Lines(line, np.ones((line.size, 1)))
        scores = SPREAD * special.ndtri((np.arange(shares - 6) + 0.5) / (shares - 6))
        scores = np.concatenate([np.negative(OUTER[::-1]), scores, OUTER])
        bins = np.unique(np.searchsorted(self._log, self._at))
        rows, where = [], []
        for start, stop in itertools.pairwise(bins):
            odds, mass, at = (x[start:stop] for x in (self._odds, self._mass, self._log))
            if stop - start < 16 or not mass.sum() > 0.0:
                continue
            order = np.argsort(odds)
            rows.append(_places(odds[order], mass[order], scores))
            where.append(float((at * mass).sum() / mass.sum()))
        known, log_line = np.array(rows), fn.log(line)
        odds = np.stack([np.interp(log_line, where, row) for row in known.T], axis=1)
        share = np.clip(1.0 / (1.0 + fn.exp(-odds)), NEAREST, 1.0 - NEAREST)
        # strictly increasing, even if the coarse law has few different shares
        apart = 0.5 * NEAREST / shares * np.arange(shares - 2)
        share = np.maximum.accumulate(share, axis=1) * (1.0 - NEAREST) + apart
        outer = np.zeros((line.size, 1))
        return _Lines(line, np.ascontiguousarray(np.hstack([outer, share, outer + 1.0])))


# Map: an epoch with two steps of a record between two laws | test_state_bounds | theory/epochs
def state_bounds(noise: float, steps: int, lines: int, shares: int) -> Enclosing:
    """Return laws below and above that of an epoch with each record in two of its steps.

    Parameters
    ----------
    noise : float
        Noise multiplier.
    steps : int
        Number t of steps, >= 3.
    lines, shares : int
        Numbers of nodes; the distance of both laws falls with the squares of both.

    Returns
    -------
    Enclosing
        Proven, floating point included.
    """
    step = RatioStep(noise, DEPTH, EVEN)
    both = [_single(step, 2 * lines, apart=apart) for apart in (False, True)]
    coarse = single = _single(step, FEW_SINGLE, apart=True)
    for bit in bin(steps)[3:]:
        both, coarse = _joined(step, (both, both), (coarse, coarse), steps, (lines, shares))
        if bit == "1":
            ones = [_single(step, 2 * lines, apart=apart) for apart in (False, True)]
            both, coarse = _joined(step, (both, ones), (coarse, single), steps, (lines, shares))
    below, above = (_law(state, steps) for state in both)
    # mass in no cell of the law below is merged with its heaviest atom, far within its error
    return Enclosing(replace(below, alone=0.0), above)


def _joined(
    step: RatioStep,
    groups: tuple[list[_State], list[_State]],
    coarse: tuple[_State, _State],
    steps: int,
    size: tuple[int, int],
) -> tuple[list[_State], _State]:
    number = coarse[0].number + coarse[1].number
    each = [_ends(pair, steps) for pair in (*zip(*groups, strict=True), coarse)]
    ends = min(low for low, _ in each), max(high for _, high in each)
    found = _Map(step, coarse, steps, ends)
    # in a group of few steps, p matters little beside x
    shares = max(8, round(size[1] * min(1.0, math.sqrt(4.0 * number / steps))))
    nodes = found.nodes(LAST if number == steps else size[0], shares)
    few = found.nodes(FEW_LINES, FEW_SHARES)
    made = [
        _put(*pair, steps, nodes, apart=apart)
        for apart, pair in zip((False, True), zip(*groups, strict=True), strict=True)
    ]
    return made, _put(*coarse, steps, few, apart=True)


def _law(state: _State, steps: int) -> RatioLaw:
    """The law of the ratio, without atoms whose mass under B is below `LEAST_MASS`."""
    _, products, mass = state.rows
    ratio, first = np.unique(products / (steps * (steps - 1.0)), return_index=True)
    mass = np.add.reduceat(mass[np.argsort(products, kind="stable")], first)
    kept = mass * ratio > LEAST_MASS
    lost = steps * state.lost + float(mass[~kept].sum()) + mass.size * LEAST_MASS
    off = 2.0 * state.off + 4.0 * UNIT
    return RatioLaw(ratio[kept], mass[kept], state.error + 2.0 * UNIT, off, 1.001 * lost)
