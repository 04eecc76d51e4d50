"""ε and γ of many records at once, from sums of polynomials of their norms.

Records with similar laws share a grid, a tilt and the transforms of steps.  Proof and notation:
`theory/individual`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import kept
from pyengine.accounting.norm_laws import (
    BLOCKS,
    DEGREE,
    GRID,
    ROWS,
    Shape,
    Transforms,
    basis,
    step_transforms,
)
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["Asked", "Sums", "solved"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

RATES = 0.25 * 2.0 ** (0.5 * np.arange(30))  # tried exponential tilts λ
ROUNDS = 2  # passes; in the second one only records with wide bounds, on finer grids
AT_ONCE = 1 << 10  # records in one task of a thread
THREADS = 2
MOST_NODES = 1 << 15
FARTHEST = 12.0  # largest reach, in standard deviations of the noise, that a tilt may need
LARGE = 1e200  # stands for an infinite error
TOP = 1e250  # a transform at 0 that is larger gives no bound
MOST_ERROR = 1e3  # an error larger than this, relative to the transform at 0, gives no bound
STANDARD = 9.5  # cutoff of frequencies, in standard deviations of a normal transform
# Per step, the upper law has the error h²/12 and the lower one h²/8 + h²/128 - h²/12
# (theory/adaptive): the share of the width at which the value lies
BETWEEN = (1.0 / 8.0 + 1.0 / 128.0 - 1.0 / 12.0) / (1.0 / 8.0 + 1.0 / 128.0)


@dataclass(frozen=True, eq=False)
class Sums:
    """Summary of all steps with one noise and rate, for each record.

    ``moments`` are sums over the steps of Chebyshev polynomials of the norm, interpolated linearly
    between nodes; shape (records, `BLOCKS`, `DEGREE`).  ``count`` is the number of steps with
    a positive norm, ``below`` the number of those with a norm below the smallest node.
    """

    noise: float
    rate: float
    moments: FloatArray
    count: FloatArray
    below: FloatArray

    @classmethod
    def empty(cls, noise: float, rate: float, records: int) -> Sums:
        """The summary of no steps."""
        return cls(
            noise, rate, np.zeros((records, BLOCKS, DEGREE)), np.zeros(records), np.zeros(records)
        )

    def moments_of(self, chosen: IntArray, is_upper: bool) -> FloatArray:
        """Moments of some records; norms below the smallest node are rounded up to it or to 0."""
        found = self.moments[chosen]
        if is_upper:
            found[:, 0] += self.below[chosen, None] * basis()[0]
        return found


@dataclass(frozen=True)
class Asked:
    """A question: name "epsilon" with a level δ, or "gamma" with a level κ."""

    name: str
    level: float


@dataclass(frozen=True, eq=False)
class _Rough:
    """Estimates for each record: tilt, standard deviation of the loss and of a step's, and ε."""

    tilt: FloatArray
    deviation: FloatArray
    step: FloatArray
    place: FloatArray


@dataclass(frozen=True, eq=False)
class _Part:
    """Some records of one class, with rough ε (``place``), that are evaluated in one task."""

    records: IntArray
    place: FloatArray
    shape: Shape
    blocks: tuple[int, int]

    def answer(
        self, sums: Sequence[Sums], question: Asked, orders: tuple[str, ...]
    ) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds."""
        law = _Composed(sums, self.records, self.shape, self.blocks, orders)
        ask = _epsilons if question.name == "epsilon" else _gammas
        return ask(law, question.level, self.place)


def solved(
    sums: Sequence[Sums], question: Asked, orders: tuple[str, ...], tolerance: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower bounds, values and upper bounds of all records, maximized over the given orders."""
    level = question.level
    records = sums[0].count.size
    nothing = 0.0 if question.name == "epsilon" else level
    lower, upper = np.full(records, nothing), np.full(records, nothing)
    open_ = np.flatnonzero(sum(s.count for s in sums) > 0.0)
    if not open_.size:
        return lower, lower.copy(), upper
    upper[open_] = math.inf if question.name == "epsilon" else 1.0
    rough = _roughly(sums, question, open_)
    fine = np.zeros(open_.size, dtype=np.int64)  # halvings of the spacing
    for _ in range(ROUNDS):
        first: list[_Part] = []  # one of each class, which computes the laws that the others reuse
        others: list[_Part] = []
        for shape, chosen, blocks in _classes(sums, rough, open_, fine, level, tolerance):
            for start in range(0, chosen.size, AT_ONCE):
                some = chosen[start : start + AT_ONCE]
                (others if start else first).append(
                    _Part(open_[some], rough.place[some], shape, blocks)
                )
        with ThreadPoolExecutor(THREADS) as pool:
            for parts in (first, others):
                found = pool.map(lambda part: part.answer(sums, question, orders), parts)
                for part, (low, high) in zip(parts, found, strict=True):
                    at = part.records
                    lower[at] = np.maximum(lower[at], low)
                    upper[at] = np.minimum(upper[at], high)
        size = upper - nothing
        finite = size[np.isfinite(size)]
        floor = 1e-2 * float(finite.max(initial=0.0))
        with np.errstate(invalid="ignore"):
            width = (upper - lower) / np.maximum(size, max(floor, 1e-12))
        width[~np.isfinite(upper)] = math.inf
        bad = width[open_] > tolerance
        if not bad.any():
            break
        more = np.ceil(0.5 * fn.log2(np.clip(width[open_] / tolerance, 1.0, 256.0))).astype(int)
        fine = np.maximum(fine + np.maximum(more, 1), 1)[bad]
        rough = _Rough(*(getattr(rough, name)[bad] for name in _Rough.__dataclass_fields__))
        open_ = open_[bad]
    value = lower + BETWEEN * (upper - lower)
    return lower, np.where(np.isfinite(upper), value, upper), upper


def _roughly(sums: Sequence[Sums], question: Asked, chosen: IntArray) -> _Rough:
    """Estimates from Chernoff bounds; they choose grids only, so no bound depends on them."""
    logs = np.zeros((chosen.size, RATES.size))
    square, fourth = np.zeros(chosen.size), np.zeros(chosen.size)
    for each in sums:
        moments = each.moments_of(chosen, True).reshape(chosen.size, -1)
        logs += moments @ _cumulants(each.noise, each.rate).reshape(-1, RATES.size)
        scale = (each.rate / each.noise) ** 2
        square += scale * (moments @ _powers(2).ravel())
        fourth += scale**2 * (moments @ _powers(4).ravel())
    # a fitted polynomial may be too small: the logs are at least about this
    logs = np.maximum(logs, square[:, None] * 0.25 * RATES * (RATES + 1.0))
    level = -fn.log(question.level)
    if question.name == "epsilon":
        bound = (logs + level - fn.log1p(RATES) - RATES * fn.log1p(1.0 / RATES)) / RATES
    else:
        bound = (logs + level) / (RATES + 1.0)
    best = np.argmin(bound, axis=1)
    row = np.arange(chosen.size)
    place = np.maximum(bound[row, best], 0.0)
    over = 2.0 / (RATES * (RATES + 1.0))
    deviation = np.sqrt(logs[row, best] * over[best])
    step = np.sqrt(fourth / square)
    tilt = np.maximum(RATES[best], 1.5 / deviation)
    return _Rough(tilt, deviation, step, place)


@kept(16)
def _cumulants(noise: float, rate: float) -> FloatArray:
    """Approximate log E_B R^(λ+1) at all λ in `RATES`, as polynomials of the norm on blocks."""
    rows = np.unique(np.rint(ROWS * 0.5 * (1.0 - fn.cos(np.pi * np.arange(17) / 16))).astype(int))
    inverse = np.linalg.pinv(basis()[rows])
    found = np.zeros((BLOCKS, DEGREE, RATES.size))
    for block in range(BLOCKS):
        mu = GRID[block * ROWS + rows] / noise
        for i, power in enumerate(RATES):
            far = min((power + 1.0) * float(mu[-1]), 400.0)
            z = np.arange(-9.0, far + 9.0, 0.125)
            log = fn.logaddexp(
                fn.log1p(-rate) if rate < 1.0 else -math.inf,
                fn.log(rate) + mu[:, None] * z - 0.5 * mu[:, None] ** 2,
            )
            terms = (power + 1.0) * log - 0.5 * z * z
            top = terms.max(axis=1)
            value = fn.log(
                fn.exp(terms - top[:, None]).sum(axis=1) * 0.125 / math.sqrt(2 * math.pi)
            )
            value = np.maximum(value + top, 0.0)
            fitted = inverse @ value
            if (np.abs(basis()[rows] @ fitted - value) > 0.1 * value + 1e-12).any():
                # no good fit: the log grows at least like the squared norm, so this is larger
                fitted = float(value[-1]) * _powers(2)[block] / GRID[block * ROWS + ROWS] ** 2
            found[block, :, i] = fitted
    return found


def _classes(
    sums: Sequence[Sums],
    rough: _Rough,
    open_: IntArray,
    fine: IntArray,
    level: float,
    tolerance: float,
) -> list[tuple[Shape, IntArray, tuple[int, int]]]:
    """Group records into classes with a common shape and range of blocks; indices into open_."""
    spacing = 2.0 * np.floor(0.5 * fn.log2(2.0 * math.sqrt(12.0 * tolerance) * rough.step)) - fine
    used = np.zeros((open_.size, BLOCKS), dtype=bool)
    for each in sums:
        used |= each.moments[open_, :, 0] > 0.0
        used[:, 0] |= each.below[open_] > 0.0
    last = BLOCKS - 1 - np.argmax(used[:, ::-1], axis=1)
    first = np.argmax(used, axis=1)
    # round up to half octaves of norms and to powers of 2 of tilts, so that there are few classes
    last = np.minimum(last | 1, BLOCKS - 1)
    tilt = 2.0 * np.rint(fn.log2(0.8 * rough.tilt))
    for top in np.unique(last):  # reduce tilts under which negligibly rare losses would matter
        at = last == top
        for power in np.unique(tilt[at])[::-1]:
            lower = power
            while lower > -4.0 and _reach(sums, 2.0 ** (0.5 * lower), int(top), level) > FARTHEST:
                lower -= 2.0
            tilt[at & (tilt == power)] = lower
    period = np.maximum(16.0 * rough.deviation, (14.0 - fn.log(level)) * 2.0 ** (-0.5 * tilt))
    length = np.maximum(np.ceil(fn.log2(period)), spacing + 5.0)
    spacing = np.maximum(spacing, length - fn.log2(MOST_NODES))
    size = length - spacing
    keys = np.stack([spacing, tilt, last]).T
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    found = []
    for i, (power, power_of_tilt, top) in enumerate(distinct):
        chosen = np.flatnonzero(which.ravel() == i)
        h, n = 2.0 ** float(power), 1 << int(size[chosen].max())
        least = float(rough.deviation[chosen].min())
        count = math.ceil(STANDARD / least * n * h / (2.0 * math.pi)) + 2
        theta = 2.0 ** (0.5 * float(power_of_tilt))
        reach = _reach(sums, theta, int(top), level)
        shape = Shape(h, theta, n, min(max(count, 8), n // 2 + 1), reach)
        found.append((shape, chosen, (int(first[chosen].min()), int(top))))
    return found


def _reach(sums: Sequence[Sums], tilt: float, last: int, level: float) -> float:
    """Standard deviations of the noise beyond which a tilted step is negligible, at most 14."""
    z = np.arange(5.0, 14.25, 0.25)
    most = fn.log(1e-6 * level)
    found = 5.0
    for each in sums:
        mu, p = float(GRID[(last + 1) * ROWS]) / each.noise, each.rate
        steps = max(float(each.count.max()), 1.0)
        loss = fn.log1p(p * fn.expm1(mu * z - 0.5 * mu * mu))
        plain = fn.log(steps * p) - 0.5 * (z - mu) ** 2
        tilted = plain + np.where(z < (tilt + 1.0) * mu + 9.0, tilt * loss, 0.0)
        enough = (plain <= most + 7.0) & (tilted <= fn.log(1e-6 * tilt))
        found = max(found, float(z[int(np.argmax(enough))]) if enough.any() else 14.0)
    return found


class _Composed:
    """Bounds of H_t at t = e^{Jh} for some records, maximized over the orders.

    The methods take an array ``place`` with one J for each record.
    """

    def __init__(
        self,
        sums: Sequence[Sums],
        chosen: IntArray,
        shape: Shape,
        blocks: tuple[int, int],
        orders: tuple[str, ...],
    ) -> None:
        self.shape = shape
        # a lower bound for one order bounds the maximum, too; "remove" is mostly the larger one
        self.lower = [_Side(sums, chosen, shape, blocks, orders[-1], False)]
        self.upper = [_Side(sums, chosen, shape, blocks, order, True) for order in orders]
        angle = 2.0 * math.pi * np.arange(shape.size) / shape.size
        self._turn = fn.turn(angle)

    def _turns(self, place: IntArray) -> npt.NDArray[np.complex128]:
        return np.asarray(self._turn[place % self.shape.size])

    def low(self, place: IntArray) -> FloatArray:
        """Lower bounds of H_t, each record at its own J."""
        turn = self._turns(place)
        surely = -fn.expm1(np.minimum(place * self.shape.spacing, 0.0))
        sides = [side.bound(place, turn) for side in self.lower]
        return np.asarray(np.maximum.reduce([surely * (1.0 - 8.0 * ELEMENTARY * UNIT), *sides]))

    def high(self, place: IntArray) -> FloatArray:
        """Upper bounds of H_t."""
        turn = self._turns(place)
        sides = [side.bound(place, turn) for side in self.upper]
        return np.asarray(np.minimum(np.maximum.reduce(sides), 1.0))

    def doubt(self, place: IntArray) -> FloatArray:
        """By how much the exact H_t of the lower law may exceed `low`."""
        return np.asarray(np.maximum.reduce([side.doubt(place) for side in self.lower]))


class _Side:
    """The composed upper or lower laws of some records, for one order of the neighbours."""

    def __init__(
        self,
        sums: Sequence[Sums],
        chosen: IntArray,
        shape: Shape,
        blocks: tuple[int, int],
        order: str,
        is_upper: bool,
    ) -> None:
        first, last = blocks
        self._shape, self._is_upper = shape, is_upper
        count = shape.frequencies
        mass, beyond = np.zeros(chosen.size), np.zeros(chosen.size)
        farther = np.zeros((chosen.size, shape.farther.size))
        ratios = np.zeros((chosen.size, count - 1), dtype=np.complex128)
        doubt = np.zeros((chosen.size, count))
        self._far, self._slack = np.zeros(chosen.size), np.zeros(chosen.size)
        for each in sums:
            table: Transforms = step_transforms(
                each.noise, each.rate, shape, first, last, order, is_upper
            )
            moments = each.moments_of(chosen, is_upper)[:, first : last + 1]
            counts, steps = np.maximum(moments[:, :, 0], 0.0), each.count[chosen]
            moments = moments.reshape(chosen.size, -1)
            mass += moments @ table.mass.ravel()
            beyond += moments @ table.beyond.ravel()
            farther += moments @ table.farther.reshape(-1, shape.farther.size)
            flat = table.ratios.reshape(-1, count - 1)
            ratios += (moments @ flat.real) + 1j * (moments @ flat.imag)
            square = moments @ _powers(2)[first : last + 1].ravel()
            doubt += counts @ np.minimum(table.each, LARGE)
            doubt += square[:, None] * np.minimum(table.square, LARGE)
            # rounding of the sums
            size = np.abs(moments).max(axis=1, initial=0.0) * UNIT * (steps + DEGREE + 64.0)
            doubt += size[:, None] * np.concatenate(
                [[np.abs(table.mass).sum()], fn.modulus(flat).sum(axis=0)]
            )
            self._far += steps * table.far
            self._slack += steps * table.slack
        self._is_unknown = self._slack > 0.25
        self._slack = self._slack * (1.0 + self._slack) * (1.0 + 1e-6)
        doubt[:, 1:] += doubt[:, :1]
        self._mass, self._farther = mass, farther
        self._values = fn.complex_exp(ratios)
        omega = 2.0 * math.pi * np.arange(shape.size // 2 + 1) / shape.size
        first_rate, other = shape.tilt * shape.spacing, (shape.tilt + 1.0) * shape.spacing
        near, far = (
            fn.complex_expm1(np.asarray(rate - 1j * omega, dtype=np.complex128))
            for rate in (first_rate, other)
        )
        ends = 1.0 / near - 1.0 / far
        weight = np.full(omega.size, 2.0)
        weight[[0, -1]] = 1.0
        ends = ends * weight / shape.size
        self._ends = ends[:count]
        sizes = fn.modulus(ends)
        with np.errstate(over="ignore", invalid="ignore"):
            grown = fn.expm1(np.minimum(doubt, 500.0)) + 8.0 * UNIT * (count + 64.0)
            magnitudes = np.ones((chosen.size, count))
            magnitudes[:, 1:] = fn.modulus(self._values)
            error = (magnitudes * sizes[:count] * grown).sum(axis=1)
        rest = float(sizes[count:].sum()) * fn.exp(
            np.minimum(beyond, 0.0) + np.minimum(doubt[:, 0], 500.0)
        )
        self._error = (error + rest) * (1.0 + 1e-6)
        self._parts = self._values * self._ends[1:]

    def bound(self, place: IntArray, turn: npt.NDArray[np.complex128]) -> FloatArray:
        """Upper or lower bounds of H_t at t = e^{Jh}, J = ``place``, and turn = e^{2πiJ/n}."""
        total = self._ends[0].real + _turned(self._parts, turn)
        scale, error = self._scale(place), self._error + 1e-13 * np.abs(total)
        is_unknown = self._is_unknown | (scale >= TOP) | ~(error <= MOST_ERROR)
        error = scale * np.minimum(error, MOST_ERROR) * (1.0 + 1e-9)
        if self._is_upper:
            found = (scale * total + error + 1.001 * self._far) * (1.0 + self._slack)
            return np.where(is_unknown, 1.0, found)
        found = np.maximum(scale * total - error - self._aliases(place), 0.0)
        return np.where(is_unknown, 0.0, found * (1.0 - self._slack))

    def doubt(self, place: IntArray) -> FloatArray:
        """By how much the exact H_t of a lower law may exceed `bound`."""
        scale = self._scale(place)
        is_unknown = self._is_unknown | (scale >= TOP) | ~(self._error <= MOST_ERROR)
        error = scale * (np.minimum(self._error, MOST_ERROR) + 1e-12)
        return np.where(is_unknown, 1.0, 2.0 * (error + self._aliases(place)))

    def _scale(self, place: IntArray) -> FloatArray:
        logs = self._mass - self._shape.tilt * self._shape.spacing * place
        return np.asarray(fn.exp(np.clip(logs, -600.0, fn.log(TOP))))

    def _aliases(self, place: IntArray) -> FloatArray:
        """Bound of the aliasing error: the other terms of Poisson's summation formula."""
        period, theta, farther = self._shape.period, self._shape.tilt, self._shape.farther
        near = fn.exp(-theta * period) / -fn.expm1(-theta * period)
        logs = theta * period + self._farther
        logs = logs - farther * (place * self._shape.spacing + period)[:, None]
        gap = -fn.expm1(-float(farther[0] - theta) * period)
        far = fn.exp(np.clip(logs, -600.0, 600.0).min(axis=1)) / gap
        return np.asarray(1.001 * (near + far))


def _turned(parts: npt.NDArray[np.complex128], turn: npt.NDArray[np.complex128]) -> FloatArray:
    """Real part of Σ_f parts_f turn^f over f = 1, 2, ..., for each row; in the C core."""
    out = np.empty(turn.size)
    rows, turns = (
        ffi.from_buffer("double[]", np.ascontiguousarray(array).view(np.float64))
        for array in (parts, turn)
    )
    found = ffi.from_buffer("double[]", out, require_writable=True)
    lib.pe_turned_sums(parts.shape[0], parts.shape[1], rows, turns, found)
    return out


def _powers(power: int) -> FloatArray:
    """Chebyshev coefficients of (norm / clipping norm)^power on all blocks."""
    found = np.zeros((BLOCKS, DEGREE))
    for block, (low, high) in enumerate(pairwise(GRID[::ROWS])):
        line = np.polynomial.Polynomial([0.5 * (high + low), 0.5 * (high - low)])
        found[block, : power + 1] = np.polynomial.chebyshev.poly2cheb((line**power).coef)
    return found


def _epsilons(law: _Composed, delta: float, place: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of the smallest ε with H <= δ, by bisection for the nodes on both sides of it."""
    h = law.shape.spacing
    top = np.maximum(np.ceil(1.05 * place / h).astype(np.int64) + 4, 8)
    zero = np.zeros(place.size, dtype=np.int64)
    high_at = _first(lambda at: law.high(at) <= delta, zero, top)
    low_at = _first(lambda at: law.low(at) <= delta, zero, top)
    end, before = law.high(high_at), law.high(np.maximum(high_at - 1, 0))
    upper = np.where(high_at > 0, _crossing(before, end, delta, high_at - 1, h), 0.0)
    upper = np.where(end <= delta, np.minimum(upper * (1.0 + 1e-12), high_at * h), math.inf)
    start = np.maximum(low_at - 1, 0)
    low, after = law.low(start), np.minimum(law.low(low_at), delta)
    lower = _crossing(low, after, delta, start, h) * (1.0 - 1e-12)
    return np.where((low > delta) & (low_at > 0), lower, 0.0), upper


def _first(
    holds: Callable[[IntArray], npt.NDArray[np.bool_]], start: IntArray, stop: IntArray
) -> IntArray:
    """Bisection: the first J from which on a monotone condition holds, at most ``stop``."""
    low, high = start, stop
    for _ in range(int(fn.log2(float((stop - start).max()))) + 2):
        middle = (low + high) // 2
        fits = holds(middle)
        low, high = np.where(fits, low, np.minimum(middle + 1, high)), np.where(fits, middle, high)
    return high


def _crossing(
    first: FloatArray, second: FloatArray, level: float, at: IntArray, spacing: float
) -> FloatArray:
    """ε at which the chord in e^ε between nodes ``at`` and ``at`` + 1 has the value ``level``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((first - level) / (first - second), 0.0, 1.0)
    share = np.where(first > second, share, 1.0)
    return np.asarray(at * spacing + fn.log1p(share * fn.expm1(spacing)))


def _gammas(law: _Composed, kappa: float, place: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of the minimum of κ t + H_t, convex in t; H of both laws is piecewise linear."""
    h = law.shape.spacing

    def least(at: IntArray) -> FloatArray:
        return np.asarray(kappa * fn.exp(at * h) * (1.0 - 1e-14) + law.low(at))

    reach = np.maximum(np.ceil((1.2 * place + 1.0) / h).astype(np.int64), 8)
    start = -np.minimum(reach, int(3.0 / h))
    best = _first(lambda at: least(at + 1) >= least(at), start, reach)
    t = fn.exp(best * h)
    upper = np.minimum(kappa * t * (1.0 + 1e-14) + law.high(best), 1.0)
    # The curve of the lower law is convex.  If it is surely higher at two nodes on both sides of
    # ``best``, its minimum lies between them, and there it falls no faster than from the opposite
    # side towards ``best``.
    here = least(best)
    top = here + law.doubt(best) + 1e-13 * kappa * t
    width = np.ones_like(best)
    most = max(int(1.0 / h), 1)
    for _ in range(14):
        width = np.minimum(width, most)
        left, right = least(best - width), least(best + width)
        surely = (left >= top) & (right >= top)
        if surely.all():
            break
        width = np.where(surely, width, 2 * width)
    fall = np.zeros(best.size)
    for step, ratio in ((-width, fn.exp(width * h)), (width, fn.exp(-width * h))):
        other = least(best + step) + law.doubt(best + step) + 1e-13 * kappa * t
        np.maximum(fall, (other - here) * ratio * (1.0 + 1e-9), out=fall)
    lower = np.where(surely, np.maximum(here - fall, kappa), kappa)
    return np.minimum(lower, upper), upper
