"""Laws of continuous pairs: two densities on the line, or one and a log-likelihood ratio.

The line is cut into pieces on which the loss is monotone, constant or infinite.  An edge of a cell
is a point of each monotone piece, found by inverse interpolation.  Masses between points are
Gauss-Legendre integrals of both densities; the difference of rules of two orders gives the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._objects import Guarded
from pyengine._support.caches import cached_property, kept
from pyengine._support.extras import needed
from pyengine._support.forks import Undivided
from pyengine.laws.base import Cells, StepLaw, largest_finite
from pyengine.laws.density_nodes import DensityNodes, density_nodes
from pyengine.laws.finite import FiniteLaw, grouped
from pyengine.laws.normals import LossNodes
from pyengine.mechanisms.general import DistributionPair, LikelihoodRatio
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.special import ndtr

__all__ = ["DensityLaw", "density_law", "ratio_law"]

FloatArray = npt.NDArray[np.float64]
Function = Callable[[FloatArray], FloatArray]

NORMALISED = 1e-6  # largest error of a total mass
SETTLING = 32  # nodes next to an end, over which a loss with a limit there no longer changes
SETTLED = 2e-12  # relative change over a constant piece beyond which it counts as monotone
FLAT = 1e-12  # a loss that changes by less, relative to 1 + |loss|, is constant
ORDERS = (9, 6)  # points of the two Gauss-Legendre rules on an interval
MARGIN = 10.0  # factor on the difference of the two rules
ROUNDING = 1e-13  # relative error beside that difference
BLOCK = 1 << 16  # intervals integrated at once
# normal scores of the quantiles that are nodes, and of those between rules of many points
SCORES = np.concatenate([np.arange(-37.0, -8.0, 1.0 / 16.0), np.arange(-8.0, 0.0, 1.0 / 32.0)])
PANELS = np.arange(-37.0, 0.5, 0.5)


class _Piece(NamedTuple):
    """An interval of nodes first..last; kind is the sign of the loss's slope, or 0 if constant."""

    first: int
    last: int
    kind: int
    level: float  # loss of a constant piece
    spread: float = 0.0  # largest distance of the losses of a constant piece from its level


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """Merge neighbouring monotone pieces of one sign."""
    out: list[_Piece] = []
    for piece in pieces:
        if out and piece.kind and out[-1].kind == piece.kind:
            out[-1] = out[-1]._replace(last=piece.last)
        else:
            out.append(piece)
    return out


def _thirds(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two points inside of each interval between nodes."""
    left, right = np.nextafter(x[:-1], math.inf), np.nextafter(x[1:], -math.inf)
    return left + (right - left) / 3.0, left + (right - left) * (2.0 / 3.0)


@kept(1)
def _rules() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes of both Gauss-Legendre rules on [-1, 1], concatenated, and the weights of each."""
    (nodes, weights), (fewer, other) = map(np.polynomial.legendre.leggauss, ORDERS)
    return np.concatenate([nodes, fewer]), weights, other


def _guarded(distribution: Any) -> SimpleNamespace:
    """The methods of a distribution, guarded, as they may be a user's functions."""
    names = ("logpdf", "ppf", "isf", "support")
    return SimpleNamespace(**{name: Guarded(getattr(distribution, name)) for name in names})


def density_law(step: DistributionPair) -> DensityLaw:
    """Law of a pair of distributions."""
    p, q = _guarded(step.p), _guarded(step.q)
    return DensityLaw(
        lambda x: np.asarray(p.logpdf(x)),
        lambda x: np.asarray(q.logpdf(x)),
        (p, q),
        step.breakpoints,
    )


def ratio_law(step: LikelihoodRatio) -> DensityLaw:
    """Law of a distribution and a log-likelihood ratio."""
    ratio, distribution = _compiled(step.log_ratio), _guarded(step.base)

    def log_p(x: FloatArray) -> FloatArray:
        return np.asarray(distribution.logpdf(x))

    def log_q(x: FloatArray) -> FloatArray:
        base = log_p(x)
        inside = base > -math.inf
        out = np.full(x.shape, -math.inf)
        values = ratio(x[inside])
        if np.isnan(values).any() or (values == math.inf).any():
            raise ValueError("log_ratio must be a number or -inf wherever the base has mass")
        out[inside] = base[inside] + values
        return out

    return DensityLaw(log_p, log_q, (distribution,), step.breakpoints, step.infinite_mass)


def _compiled(function: Callable[[float], float]) -> Function:
    with needed("from_log_likelihood_ratio", "distributions"):
        import numba

    try:
        compiler: Any = numba.vectorize
        with Undivided.lock:  # a child would wait for the compiler's own lock
            kernel = compiler(["float64(float64)"], nopython=True)(
                getattr(function, "py_func", function)
            )
    except (numba.core.errors.NumbaError, TypeError) as error:
        raise ValueError(f"log_ratio must be a function that Numba can compile: {error}") from None
    return lambda x: np.asarray(kernel(x))


def _nodes(
    distributions: tuple[Any, ...], breakpoints: tuple[float, ...], scores: FloatArray
) -> FloatArray:
    """Quantiles of all laws at normal scores, ends of their supports, and the breakpoints."""
    levels = ndtr(scores)
    with np.errstate(all="ignore"):
        points = [np.asarray(d.ppf(levels), dtype=float) for d in distributions]
        points += [np.asarray(d.isf(levels), dtype=float) for d in distributions]
    points += [np.asarray(d.support(), dtype=float) for d in distributions]
    points.append(np.array(breakpoints, dtype=float))
    joined = np.concatenate(points)
    joined = np.unique(joined[np.isfinite(joined)])
    if joined.size < 2:
        raise ValueError("p and q must spread over an interval")
    keep = np.append(True, np.diff(joined) > 1e-14 * np.abs(joined[1:]))
    return np.asarray(joined[keep])


def _scale(distributions: tuple[Any, ...]) -> float:
    """A hundredth of the smallest interquartile range of the laws.

    Quartiles of the nodes would not do: nodes of heavy tails reach 1e298.
    """
    with np.errstate(all="ignore"):
        widths = [float(d.ppf(0.75)) - float(d.ppf(0.25)) for d in distributions]
    known = [width for width in widths if 0.0 < width < math.inf]
    return 0.01 * min(known, default=0.0)


class DensityLaw(StepLaw):
    """The ordered pair (A, B) of two densities; see `StepLaw`.

    Parameters
    ----------
    log_p, log_q : callable
        Logarithms of the densities of A and B on arrays.
    distributions : tuple
        Frozen distributions, whose quantiles show where the mass is.
    breakpoints : tuple of float
        Points that no interval of integration may contain.
    expected_infinite : float
        Mass of B where A has none, beside that of ``log_q``.
    """

    is_proven = False  # nothing is known of the densities between nodes

    def __init__(
        self,
        log_p: Function,
        log_q: Function,
        distributions: tuple[Any, ...],
        breakpoints: tuple[float, ...],
        expected_infinite: float = 0.0,
    ) -> None:
        self._log_p, self._log_q = log_p, log_q
        self._given = distributions, breakpoints
        nodes = self._refined(_nodes(distributions, breakpoints, SCORES), _scale(distributions))
        self._x = nodes
        self._pieces = self._cut(nodes)
        masses = fn.exp(self._node_integrals[0])
        kinds = np.array([p.level for p in self._pieces for _ in range(p.last - p.first)])
        lost = [
            float(masses[0][kinds == -math.inf].sum()),
            float(masses[1][kinds == math.inf].sum()),
        ]
        expected = (1.0, 1.0 - expected_infinite)
        for name, mass, right in zip("pq", masses, expected, strict=True):
            if not abs(mass.sum() - right) <= NORMALISED:
                raise ValueError(
                    f"{name} must have total mass {right:.9g}, got {mass.sum():.9g}: the density "
                    "is not normalised, is not smooth between the breakpoints, or its mass lies "
                    "where the given quantiles do not reach"
                )
        self._infinite = lost[0], lost[1] + expected_infinite

    @cached_property
    def _node_integrals(self) -> tuple[FloatArray, FloatArray]:
        """Logs of masses of all intervals between nodes, and their relative errors."""
        return self._integrals(self._x[:-1], self._x[1:])

    @cached_property
    def _rising(self) -> list[FloatArray]:
        """For each piece the losses at its nodes times the sign of its slope, non-decreasing."""
        return [
            np.maximum.accumulate(self._inner_losses(piece.first, piece.last) * piece.kind)
            if piece.kind
            else np.zeros(0)
            for piece in self._pieces
        ]

    def _loss(self, x: FloatArray) -> FloatArray:
        return self._loss_and_noise(x)[0]

    def _loss_and_noise(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Losses, and bounds on their rounding if log-densities are accurate to a few ulps."""
        with np.errstate(invalid="ignore"):
            p, q = self._log_p(x), self._log_q(x)
            loss = np.where(p == -math.inf, np.where(q == -math.inf, np.nan, math.inf), q - p)
            sizes = np.abs(p) + np.abs(q)
        return loss, 8.0 * UNIT * np.where(np.isfinite(sizes), sizes, 0.0)

    def _kinds(self, x: FloatArray) -> FloatArray:
        """Kind of each interval between nodes: slope's sign, 0 for flat, ±inf, NaN for no mass."""
        third, two = (self._loss(points) for points in _thirds(x))
        with np.errstate(invalid="ignore"):
            change = two - third
            flat = np.abs(change) <= FLAT * (1.0 + np.abs(two))
            kind = np.where(flat, 0.0, np.sign(change))
        same = third == two
        return np.where(same & ~np.isfinite(third), third, np.where(np.isnan(change), np.nan, kind))

    def _refined(self, x: FloatArray, scale: float) -> FloatArray:
        """Refine nodes by bisection where the kind of the loss changes.

        An interval is small relative to ``scale`` + |x|.
        """
        for _ in range(60):
            kinds = self._kinds(x)
            codes = np.nan_to_num(kinds, nan=9.0, posinf=8.0, neginf=7.0)
            turn = codes[1:] != codes[:-1]
            mixed = np.zeros(codes.size, dtype=bool)
            mixed[:-1] |= turn
            mixed[1:] |= turn
            wide = np.diff(x) > 1e-15 * (scale + np.abs(x[1:]))
            split = mixed & wide
            if not split.any():
                break
            x = np.sort(np.concatenate([x, 0.5 * (x[:-1] + x[1:])[split]]))
        return x

    def _cut(self, x: FloatArray) -> list[_Piece]:
        kinds = self._kinds(x)
        codes = np.nan_to_num(kinds, nan=9.0, posinf=8.0, neginf=7.0)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1, [codes.size]])
        pieces = []
        for first, last in pairwise(starts):
            kind, level = kinds[first], 0.0
            if kind == 0.0:
                middle = 0.5 * (x[first] + x[last])
                level = float(self._loss(np.array([middle]))[0])
                pieces.append(self._settled(int(first), int(last), level))
                continue
            if not np.isfinite(kind):
                level, kind = (0.0 if np.isnan(kind) else float(kind)), 0.0
            pieces.append(_Piece(int(first), int(last), int(kind), level))
        return _joined(pieces)

    def _settled(self, first: int, last: int, level: float) -> _Piece:
        """A piece whose loss is constant to rounding on each interval, but perhaps not on all.

        In a heavy tail the loss tends to its limit too slowly for a single interval to show it.
        """
        losses = self._loss(np.stack(_thirds(self._x[first : last + 1]), axis=1).ravel())
        losses = losses[np.isfinite(losses)]  # an interval of the last places may be cut by an end
        change = losses[-1] - losses[0]
        if abs(change) > SETTLED * (1.0 + abs(level)):
            rising = losses * np.sign(change)
            if (np.maximum.accumulate(rising) - rising).max() < 0.1 * abs(change):
                return _Piece(first, last, int(np.sign(change)), 0.0)
        # the outermost thirds of the piece are not among the points, and all losses are rounded
        points = self._x[first : last + 1]
        noise = self._loss_and_noise(points[np.isfinite(points)])[1]
        rounded = float(noise.max(initial=0.0))
        return _Piece(first, last, 0, level, 2.0 * float(np.abs(losses - level).max()) + rounded)

    def _inner_losses(self, first: int, last: int) -> FloatArray:
        """Losses at the nodes of a piece; at its ends, those just inside."""
        x = self._x[first : last + 1].copy()
        x[0], x[-1] = np.nextafter(x[0], math.inf), np.nextafter(x[-1], -math.inf)
        return self._loss(x)

    def _integrals(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logs of A's and B's masses of intervals, shape (2, n), and their relative errors.

        Densities are scaled by their largest value, since one that underflows may still matter.
        """
        masses, errors = np.empty((2, low.size)), np.empty((2, low.size))
        nodes, weights, fewer_weights = _rules()
        for start in range(0, low.size, BLOCK):
            part = slice(start, start + BLOCK)
            half = 0.5 * (high[part] - low[part])
            centre = low[part] + half
            x = centre[:, None] + half[:, None] * nodes
            for row, log_density in enumerate((self._log_p, self._log_q)):
                logs = log_density(x.ravel()).reshape(x.shape)
                first, second = logs[:, : weights.size], logs[:, weights.size :]
                top = np.where(np.isfinite(first), first, -math.inf).max(axis=1)
                top = np.where(np.isfinite(top), top, 0.0)
                with np.errstate(under="ignore"):
                    sums = (
                        fn.exp(first - top[:, None]) @ weights,
                        fn.exp(second - top[:, None]) @ fewer_weights,
                    )
                with np.errstate(divide="ignore", invalid="ignore"):
                    masses[row, part] = fn.log(half) + fn.log(sums[0]) + top
                    off = np.where(sums[0] > 0.0, np.abs(sums[1] / sums[0] - 1.0), 0.0)
                errors[row, part] = MARGIN * off + ROUNDING + 8.0 * UNIT * np.abs(top)
        return masses, errors

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss at the nodes."""
        finite = self._node_losses[np.isfinite(self._node_losses)]
        levels = [p.level for p in self._pieces if p.kind == 0 and np.isfinite(p.level)]
        everything = np.concatenate([finite, levels]) if len(levels) else finite
        return (float(everything.min()), float(everything.max())) if everything.size else (0.0, 0.0)

    def support_error(self) -> float:
        """An estimate: the error of inverting the loss, and the spread of constant pieces."""
        spread = max((piece.spread for piece in self._pieces), default=0.0)
        return 1e-12 * (1.0 + largest_finite(self.support())) + spread

    def limits(self) -> tuple[float, float]:
        """The support; infinite where the loss still changes at the last quantiles."""
        return self._limits

    @cached_property
    def _limits(self) -> tuple[float, float]:
        low, high = self.support()
        for at, first, step in ((0, 0, 1), (-1, -1, -1)):
            piece, rising = self._pieces[at], self._rising[at]
            if not piece.kind or rising.size <= SETTLING:
                continue
            last = rising[first] * piece.kind
            change = last - rising[first + step * SETTLING] * piece.kind
            if np.isfinite(last) and abs(change) > 1e-4 * abs(last) + SETTLED:
                low, high = (low, math.inf) if change > 0.0 else (-math.inf, high)
        return low, high

    def left_out(self) -> float:
        """Mass beyond the last quantiles of either law."""
        return 2.4e-299

    @cached_property
    def _node_losses(self) -> FloatArray:
        """Losses at the nodes of all monotone pieces."""
        out = []
        for piece in self._pieces:
            if piece.kind:
                out.append(self._inner_losses(piece.first, piece.last))
        return np.concatenate(out) if out else np.zeros(0)

    def infinite(self) -> tuple[float, float]:
        """Mass of A where B has none, and of B where A has none."""
        return self._infinite

    def nodes(self, number: int) -> LossNodes | None:
        """A discrete measure of the loss, if two quadrature rules agree on it."""
        found = self._measure
        return None if found is None else found.serving(number)

    @cached_property
    def _measure(self) -> DensityNodes | None:
        """That measure for any number of steps; None where losses are infinite."""
        if max(self._infinite) > 0.0:
            return None
        ends = self._x[[piece.first for piece in self._pieces] + [-1]]
        edges = np.unique(np.concatenate([_nodes(*self._given, PANELS), ends]))
        return density_nodes(self._log_p, self._log_q, edges)

    def spacing(self) -> tuple[float, float] | None:
        """None: the losses lie on no lattice."""
        return None

    def _preimage(
        self, piece: _Piece, loss: FloatArray, edges: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Points of a monotone piece where the loss passes each edge, and how far it is off there.

        ``loss`` is that of the piece in `_rising`.
        """
        x = self._x[piece.first : piece.last + 1]
        ends = x.copy()
        ends[0], ends[-1] = np.nextafter(x[0], math.inf), np.nextafter(x[-1], -math.inf)
        target = edges * piece.kind
        inside = (target > loss[0]) & (target < loss[-1])
        at = np.clip(np.searchsorted(loss, target), 1, loss.size - 1)
        low, high = ends[at - 1], ends[at]
        f_low, f_high = loss[at - 1] - target, loss[at] - target
        for step in range(40):  # regula falsi with bisection, until the miss is mere rounding
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(f_high > f_low, -f_low / (f_high - f_low), 0.5)
            share = np.where(np.isfinite(share) & (step % 3 != 2), share, 0.5)
            middle = low + np.clip(share, 0.0, 1.0) * (high - low)
            loss_there, noise = self._loss_and_noise(middle)
            f_middle = loss_there * piece.kind - target
            up = f_middle <= 0.0
            low, f_low = np.where(up, middle, low), np.where(up, f_middle, f_low)
            high, f_high = np.where(up, high, middle), np.where(up, f_high, f_middle)
            miss = np.where(inside, np.abs(f_middle), 0.0)
            if (miss <= 1e-14 * (1.0 + np.abs(edges))).all():
                break
        point = np.where(inside, middle, np.where(target <= loss[0], x[0], x[-1]))
        # an edge within rounding of the first or the last loss may lie on its other side
        beyond = np.minimum(np.abs(target - loss[0]), np.abs(target - loss[-1]))
        passed = np.maximum(self._loss_and_noise(ends[[0, -1]])[1].max() - beyond, 0.0)
        return point, np.where(inside, miss + noise, passed)

    def as_finite(self) -> FiniteLaw | None:
        """The same law as atoms, if the loss is constant on every piece; else None."""
        if any(piece.kind for piece in self._pieces):
            return None
        finite = [p for p in self._pieces if np.isfinite(p.level)]
        loss = np.array([piece.level for piece in finite])
        log_masses, relative = self._node_integrals
        masses, errors = (
            np.array([part[:, p.first : p.last].sum(axis=1) for p in finite]).reshape(-1, 2)
            for part in (fn.exp(log_masses), fn.exp(log_masses) * relative)
        )
        keep = (masses > 0.0).all(axis=1)
        order = np.argsort(loss[keep], kind="stable")
        a, b = masses[keep][order].T
        error = float((errors[keep] / masses[keep]).max()) if keep.any() else ROUNDING
        off = ROUNDING + max((piece.spread for piece in finite), default=0.0)
        return grouped(loss[keep][order], fn.log(a), fn.log(b), self._infinite, error, off)

    def cells(self, edges: FloatArray) -> Cells:
        """Masses of the cells between edges; see the module's docstring for their errors."""
        size = edges.size + 1
        shift = 4e-15 * (1.0 + np.abs(edges))
        node_masses, node_errors = self._node_integrals
        homes, masses, errors = [], [], []  # of intervals, from all pieces
        for piece, rising in zip(self._pieces, self._rising, strict=True):
            x, nodes = self._x[piece.first : piece.last + 1], slice(piece.first, piece.last)
            if piece.kind == 0:
                if np.isfinite(piece.level):
                    # an edge inside of the piece's losses may have any part of it on either side
                    inside = np.abs(edges - piece.level) <= piece.spread
                    shift = np.where(inside, np.maximum(shift, 2.0 * piece.spread), shift)
                    cell = int(np.searchsorted(edges, piece.level, side="left"))
                    homes.append(np.full(piece.last - piece.first, cell))
                    masses.append(node_masses[:, nodes])
                    errors.append(node_errors[:, nodes])
                continue
            points, miss = self._preimage(piece, rising, edges)
            shift = np.maximum(shift, miss + 4e-15 * (1.0 + np.abs(edges)))
            points = points[:: piece.kind]
            all_points = np.sort(np.concatenate([x, points]))
            low, high = all_points[:-1], all_points[1:]
            keep = high > low
            low, high = low[keep], high[keep]
            # the cell of an interval: the number of edges passed before it
            passed = np.searchsorted(points, low, side="right")
            homes.append(passed if piece.kind > 0 else edges.size - passed)
            # only intervals that an edge cuts are integrated again
            node = np.clip(np.searchsorted(x, low, side="right") - 1, 0, x.size - 2)
            cut = (low != x[node]) | (high != x[node + 1])
            m, e = node_masses[:, nodes][:, node], node_errors[:, nodes][:, node]
            m[:, cut], e[:, cut] = self._integrals(low[cut], high[cut])
            masses.append(m)
            errors.append(e)
        if not homes:
            none = np.full(size, -math.inf)
            return Cells(none, none.copy(), np.zeros(size), shift)
        home = np.concatenate(homes)
        sums = [
            _summed(home, m, e, size)
            for m, e in zip(
                np.concatenate(masses, axis=1), np.concatenate(errors, axis=1), strict=True
            )
        ]
        relative = np.maximum(sums[0][1], sums[1][1])
        return Cells(sums[0][0], sums[1][0], relative, shift)


def _summed(
    home: npt.NDArray[np.int64], log_mass: FloatArray, error: FloatArray, size: int
) -> tuple[FloatArray, FloatArray]:
    """Logs of the sums of masses of each cell, and their relative errors."""
    top = np.full(size, -math.inf)
    np.maximum.at(top, home, log_mass)
    scale = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(under="ignore", divide="ignore", invalid="ignore"):
        part = fn.exp(log_mass - scale[home])
        sums = np.bincount(home, part, minlength=size)
        off = np.bincount(home, part * error, minlength=size)
        return scale + fn.log(sums), np.where(sums > 0.0, off / sums, 0.0)
