"""Sampled Gaussian steps beside steps with corners, by quadrature over the loss of the former.

Few or rare sampled Gaussian steps have a sector law: the loss is floor + Y, and the density of
w = log Y is analytic in a sector.  Laplace steps and steps of bounded range have masses that are
analytic between their corners.  So the masses of all steps are sums of the others' masses over
Gauss nodes, on pieces of w that end where the threshold meets a corner (docs/theory/kinds, Lemma 5
and Theorem 6).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine._support.caches import cached_property
from pyengine.engines.functionals import array
from pyengine.engines.sampled import SampledSteps
from pyengine.engines.sector import SectorLaws
from pyengine.engines.vertical_lines.deformed import places_error
from pyengine.engines.vertical_lines.gauss import gauss_nodes
from pyengine.engines.vertical_lines.laplace_shapes import StepShape
from pyengine.engines.vertical_lines.ordered import Inner
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.wide import Wide

__all__ = ["CornerBounds", "NodedOrder"]

FloatArray = npt.NDArray[np.float64]
CornerKinds = tuple[tuple[StepShape, int], ...]

MOST_PLACES = 3000  # of the other steps, few losses included
SIZES = (16, 32, 64)  # nodes on a piece
LARGE = (60.0, 160.0)  # logs of bound over wanted remainder from which on rules are larger
RHO = np.array([1.5, 2.0, 2.7, 3.6, 5.0, 7.0, 10.0, 15.0, 25.0])  # of Bernstein ellipses
TILTS = np.concatenate([[0.0], np.ldexp(1.0, np.arange(-3, 14))])  # σ of Lemma 5
PIECE = 0.5  # largest length of a piece in w; pieces are bisected until rules are close enough,
HALVED = 40  # at most so often
MOST_PIECES = 4000
LEFT = 36.0  # relative errors wanted of rules and of the ends of laws are e^-LEFT
FIRST_LOG = -4.0  # log of the masses that are assumed at first
TURNS = 8  # attempts; each assumes masses of at least e^-FURTHER times those of the last
FURTHER = 80.0
ENOUGH, ROUGH, TINY = (
    3e-13,
    1e-12,
    1e-290,
)  # relative errors that end the attempts, of bounds and of estimates, and a mass that does
LEAST, ABOUT = 1e-12, 1e-10  # relative errors wanted of the other steps, for bounds and estimates
MOST_LOG = 600.0  # larger exponents overflow
SMALL, DEEPER = (
    1e-9,
    1e-11,
)  # masses below SMALL with relative errors above DEEPER try a law that ends farther out
SLACK = 1.0 + 1e-9  # covers the rounding of a bound
CELLS = 600  # of the integrals K of Lemma 5
WEDGE = 2.0**1.25 * (1.0 + 1e-6)  # factor 2^(5/4) of K: an integral along a ray over the real one
HIGHEST = 1.25  # largest imaginary part of a distance from a corner, as Lemma 5 asks
NEAR = 0.4  # log of the factor e^0.4 of Lemma 5
MERGED = 4.0 * UNIT  # relative distance below which places are one


class CornerBounds:
    """Places, sums of corners of all steps, and bounds of masses off the real axis (Lemma 5).

    Parameters
    ----------
    kinds : tuple of (StepShape, int)
        The steps, A without the record, and the number of each.
    losses : ndarray of shape (2, n)
        Losses of the finite steps beside them, sums of two doubles.
    masses : ndarray of shape (n,)
        A's masses of these losses.
    off : float
        Bound of the absolute errors of these losses.
    """

    def __init__(
        self, kinds: CornerKinds, losses: FloatArray, masses: FloatArray, off: float
    ) -> None:
        places, low, atoms = losses[0], losses[1], masses
        for shape, number in kinds:
            j = np.arange(number + 1.0)
            ends = [Wide.of(end) for end in shape.ends]
            own = ((number - j) * ends[0] + j * ends[1]).parts
            logs = np.array([fn.log_integer(math.comb(number, k)) for k in range(number + 1)])
            first, last = (max(float(x), 1e-300) for x in shape.atoms)
            logs += (number - j) * fn.log(first) + j * fn.log(last)
            whole = np.add.outer(places, own[0])
            back = whole - places[:, None]
            rounded = (places[:, None] - (whole - back)) + (own[0] - back)  # exact, Knuth
            low = (np.add.outer(low, own[1]) + rounded).ravel()
            places = whole.ravel()
            atoms = np.multiply.outer(atoms, fn.exp(logs)).ravel()
        order = np.argsort(places)
        places, low, atoms = places[order], low[order], atoms[order]
        size = 1.0 + float(np.abs(places).max())
        starts = np.flatnonzero(np.append(True, np.diff(places) > MERGED * size))
        ends_at = np.append(starts[1:], places.size) - 1
        self.atoms = np.add.reduceat(atoms, starts) * SLACK
        # a merged place errs by the distance of its first and last one
        spread = np.where(ends_at > starts, places[ends_at] - places[starts] + MERGED * size, 0.0)
        self.off = spread + places_error(kinds) + off + UNIT * UNIT * 64.0 * size
        self.places, self.low = places[starts], low[starts]
        slopes = [float(shape.slope) for shape, _ in kinds]
        near = fn.log1p(0.5 / max(slopes))
        with np.errstate(divide="ignore"):
            self.near = np.minimum(near, 0.2 / TILTS)  # radius r of Lemma 5, for each tilt
        fall = np.minimum(np.outer(TILTS, losses[0] - losses[0].min()), MOST_LOG)
        self.log_grown = fn.log((fn.exp(-fall) @ masses) * SLACK)
        self._steepest = 0.0
        for shape, number in kinds:
            self.log_grown += number * fn.log(_grown(shape, self.near))
            share = float(shape.branches[0].falling)
            self._steepest += 2.0 * number * share * float(shape.slope)

    def tilt_at(self, above: float) -> int:
        """Index of the tilt with the best bound at the distance ``above`` from the least place."""
        return int(np.argmin(TILTS * max(above, 0.0) + self.log_grown))

    def at(self, tilt: int, above: FloatArray, apart: FloatArray) -> FloatArray:
        """Logs of upper bounds of |A(S <= z)| for complex z; infinite where Lemma 5 has none.

        ``above`` is the largest real part of z - least place, and ``apart`` the largest distance
        from the nearest place below, or 0 where z lies in the wedge right of it.
        """
        logs = TILTS[tilt] * np.maximum(above, 0.0) + (self.log_grown[tilt] + NEAR)
        return np.asarray(np.where(3.0 * apart <= self.near[tilt], logs, np.inf))

    def beside(
        self, off: FloatArray, index: npt.NDArray[np.intp], atoms_off: FloatArray
    ) -> FloatArray:
        """Bounds of the errors of ∫ T near places, T being A's distribution function.

        An atom counts with ``atoms_off``, the rest with its slope times ``off``², where ``off`` is
        how far thresholds or nodes may be off.
        """
        return np.asarray(self.atoms[index] * atoms_off + self._steepest * off * off)


def _grown(shape: StepShape, near: FloatArray) -> FloatArray:
    """The factor of one step in Lemma 5, a_0 + K_0 + e^(-σ d) (a_1 + K_1), for all tilts σ."""
    slope, length, mu = (float(x) for x in (shape.slope, shape.length, shape.distance))
    share = float(shape.branches[0].falling)
    u = np.concatenate([[0.0], fn.exp(np.linspace(fn.log(1e-9 / slope), fn.log(100.0), CELLS))])
    grown = fn.expm1(u)
    up = slope * fn.exp(length)
    found = np.zeros(TILTS.size)
    fall = fn.exp(-np.minimum(np.outer(TILTS, u), MOST_LOG))
    pairs = zip((1.0, fn.exp(2.0 * mu)), (slope, up), (0.0, length), shape.atoms, strict=True)
    for base, rate, start, atom in pairs:
        rest = 0.5 / np.sqrt(base + rate * grown)
        cells = np.append(-np.diff(rest), rest[-1])
        own = WEDGE * share * (fall @ cells) + 1e-13
        disc = near * 0.25 * share * rate * fn.exp(near) * 2.0**1.5 / (base * math.sqrt(base))
        own = np.maximum(own, disc * fn.exp(0.2))
        found += fn.exp(-TILTS * start) * (float(atom) + own)
    return found * SLACK


class _Law(NamedTuple):
    """A sector law: its handle, floor, ends in w, and logs of A's and B's masses beyond them."""

    core: Any
    floor: float
    floor_low: float
    low: float
    high: float
    below: FloatArray
    above: FloatArray


class _Nodes(NamedTuple):
    """Nodes Y = loss - floor, and A's masses, with bounds of their relative errors.

    ``missed``, of shape (2,), bounds the quadrature error of masses under A and B.
    """

    y: FloatArray
    mass: FloatArray
    error: FloatArray
    missed: FloatArray


def _taken(core: Any) -> _Law:
    out = np.empty(8)
    lib.pe_sector_beyond(core, array(out, writable=True))
    floor, low_part, low, high, *rest = out.tolist()
    return _Law(core, floor, low_part, low, high, np.array(rest[:2]), np.array(rest[2:]))


class NodedOrder(Inner):
    """One ordered pair of sampled Gaussian steps beside others that have corners.

    Parameters
    ----------
    steps : SampledSteps
        The sampled Gaussian steps.
    laws : SectorLaws
        Their sector laws.
    others : Inner
        The other steps, in the same order.
    corners : CornerBounds
        The other steps' corners, A without the record.
    """

    def __init__(
        self, steps: SampledSteps, laws: SectorLaws, others: Inner, corners: CornerBounds
    ) -> None:
        self._is_reversed, self._laws = steps.is_reversed, laws
        self._others, self._corners = others, corners
        self.alone_masses = others.alone_masses
        self._end = steps.end

    @cached_property
    def jumps(self) -> FloatArray:
        """Floor plus corners, rising: the mass may be concentrated next to these."""
        places = self._corners.places - self._end[0]
        return np.asarray(-places[::-1] if self._is_reversed else places)

    @property
    def least_known(self) -> float:
        """That of the other steps."""
        return self._others.least_known

    def lowest(self) -> tuple[float, float]:
        """Bounds of the smallest loss; -∞ where there is none."""
        if self._is_reversed:
            return -math.inf, -math.inf
        low, high = self._others.lowest()
        least, most = -self._end[2], -self._end[1]
        off = 4.0 * UNIT * (abs(low) + abs(least))
        return low + least - off, high + most + off

    def shift(self, c: FloatArray) -> FloatArray:
        """Bounds of the errors of thresholds: the other steps', and roundings of losses."""
        above = np.maximum((-c if self._is_reversed else c) + self._end[2], 0.0)
        most = np.maximum(above - self._corners.places[0], 0.0)  # below all places masses are 0
        return np.asarray(self._inner_shift + UNIT * (2.0 * (np.abs(c) + above) + 4.0 * most))

    @cached_property
    def _inner_shift(self) -> float:
        """Bound of the errors of the other steps' thresholds."""
        places = self._corners.places
        return float(self._others.shift(np.array([places[0], 0.0, places[-1]])).max())

    def _law(self, depth: int) -> _Law | None:
        core = self._laws.law(depth)
        return None if core is None else _taken(core)

    # ---- nodes ---------------------------------------------------------------------------------

    def _nodes(self, law: _Law, x: float, x_low: float, goal: FloatArray, size: int) -> _Nodes:
        """Nodes for the threshold floor + x, with quadrature errors of some e^goal of A and B."""
        corners = self._corners
        met = x - corners.places
        back = met - x
        rounded = (x - (met - back)) - (corners.places + back)  # exact, Knuth
        met = met + (rounded + (x_low - corners.low))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(met > 0.0, fn.log(np.maximum(met, 1e-300)), -np.inf)
        inside = (ends > law.low) & (ends < law.high)
        base = np.linspace(law.low, law.high, 1 + math.ceil((law.high - law.low) / PIECE))
        edges = np.unique(np.concatenate([base, ends[inside]]))
        left, right = edges[:-1], edges[1:]
        rising = np.sort(ends)  # `_left_out` looks for the first corner at or above a piece
        missed, kept_left, kept_right = np.zeros(2), [], []
        c = x + law.floor
        share = goal - fn.log(64.0)
        for turn in range(HALVED + 1):
            mid, half = 0.5 * (left + right), 0.5 * (right - left)
            remainder, whole = self._left_out(law, x, c, mid, half, right, rising, size)
            is_last = turn == HALVED or left.size > MOST_PIECES
            is_nothing = np.asarray((whole <= share).all(axis=1) | is_last)
            missed += fn.exp(np.minimum(whole[is_nothing], MOST_LOG)).sum(axis=0)
            serves = ~is_nothing & (remainder <= share).all(axis=1)
            missed += fn.exp(remainder[serves]).sum(axis=0)
            kept_left.append(left[serves])
            kept_right.append(right[serves])
            rest = ~is_nothing & ~serves
            if not rest.any():
                break
            left, mid, right = left[rest], mid[rest], right[rest]
            left, right = np.concatenate([left, mid]), np.concatenate([mid, right])
        nodes = self._placed(
            law, np.concatenate(kept_left), np.concatenate(kept_right), size, missed
        )
        # pieces end a little beside the corners, by errors of places and thresholds
        at = np.flatnonzero(inside)
        if at.size:
            moved = -c if self._is_reversed else c
            place = 2.0 * corners.off[at] + 8.0 * UNIT * met[at] * (1.0 + np.abs(ends[at]))
            off = place + 2.0 * float(self.shift(np.array([moved]))[0])
            near = np.minimum(np.maximum(1e-9, 2.0 * off / met[at]), 0.5)
            log_top = self._tops(law, ends[at], near)
            density = fn.exp(np.minimum(log_top - ends[at], MOST_LOG))
            density[2.0 * off > 0.4 * met[at]] = np.inf
            # an atom is on the right side of every node that is farther away than ``off``
            is_sure = _distance(met[at], nodes.y) > off
            beside = corners.beside(off, at, np.where(is_sure, place, off))
            jump = min(float((density * beside).sum()) * 2.0, 1.0)
            missed += jump * np.array([1.0, fn.exp(min(c, MOST_LOG))])
        return nodes

    def _tops(self, law: _Law, mid: FloatArray, half: FloatArray) -> FloatArray:
        """Logs of upper bounds of the density of w on pieces."""
        return self._ellipses(law, mid, half, np.ones(1))[:, 0]

    @staticmethod
    def _ellipses(law: _Law, mid: FloatArray, half: FloatArray, rho: FloatArray) -> FloatArray:
        out = np.empty((mid.size, rho.size))
        lib.pe_sector_ellipses(
            law.core,
            mid.size,
            array(np.ascontiguousarray(mid)),
            array(np.ascontiguousarray(half)),
            rho.size,
            array(rho),
            array(out.reshape(-1), writable=True),
        )
        return out

    def _left_out(
        self,
        law: _Law,
        x: float,
        c: float,
        mid: FloatArray,
        half: FloatArray,
        right: FloatArray,
        rising: FloatArray,
        size: int,
    ) -> tuple[FloatArray, FloatArray]:
        """Logs of bounds of the rules' remainders on pieces, and of the pieces' own masses.

        Both of shape (pieces, 2), under A and B.
        """
        corners = self._corners
        real = half[:, None] * (0.5 * (RHO + 1.0 / RHO))
        imag = half[:, None] * (0.5 * (RHO - 1.0 / RHO))
        middle = mid[:, None]
        tops = self._ellipses(law, mid, half, RHO)
        # nearest corner below x - Y for all Y of a piece; infinite without any
        at = np.searchsorted(rising, right * (1.0 - 0.0), side="left")
        meets = np.append(rising, np.inf)[at][:, None]
        in_wedge = middle + fn.hypot(real, imag) <= meets
        exponent = np.minimum(middle + real, MOST_LOG)
        in_wedge &= fn.exp(exponent) * imag <= HIGHEST
        way = (meets - middle) + real
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.where(
                np.isfinite(meets),
                fn.exp(np.minimum(meets, MOST_LOG)) * fn.expm1(np.minimum(way, MOST_LOG)),
                np.inf,
            )
        nothing = np.isinf(meets)  # without a corner below there is no mass
        above = (x - corners.places[0]) - fn.exp(middle - real) * fn.cos(imag)
        tilt = corners.tilt_at(x - float(corners.places[0]))
        log_mass = corners.at(tilt, above * SLACK + 1e-12, np.where(in_wedge, 0.0, apart * SLACK))
        log_mass = np.where(nothing, -np.inf, log_mass)
        rule = tops - 2.0 * size * fn.log(RHO) - fn.log1p(-1.0 / (RHO * RHO))
        rule += fn.log(64.0 / 15.0 * half)[:, None] + 1e-6
        grown = law.floor + fn.exp(exponent)
        under_a = rule + fn.logaddexp(0.0, log_mass)
        under_b = rule + fn.logaddexp(grown, c + log_mass)
        best = np.argmin(np.maximum(under_a, under_b), axis=1)[:, None]
        found = np.concatenate(
            [np.take_along_axis(each, best, axis=1) for each in (under_a, under_b)], axis=1
        )
        whole = self._tops(law, mid, half) + fn.log(2.0 * half) + 1e-6
        most = law.floor + fn.exp(np.minimum(right, MOST_LOG))
        return found, np.stack([whole, whole + most], axis=1)

    def _placed(
        self, law: _Law, left: FloatArray, right: FloatArray, size: int, missed: FloatArray
    ) -> _Nodes:
        rule = gauss_nodes(size)
        width = (right - left)[:, None]
        step = (width * rule.place[0]).ravel()
        start = np.repeat(left, size)
        value, error = np.empty((2, step.size))
        lib.pe_sector_densities(
            law.core,
            step.size,
            array(start),
            array(step),
            array(value, writable=True),
            array(error, writable=True),
        )
        place = start + step
        low = step - (place - start)  # exact next to the larger one
        y = fn.exp(place) * (1.0 + low)
        mass = (width * rule.weight[0]).ravel() * fn.exp(value)
        error = error * (1.0 + 1e-6) + rule.error + 12.0 * UNIT + UNIT * np.abs(value)
        return _Nodes(y, mass, error, missed)

    # ---- masses --------------------------------------------------------------------------------

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """The four masses of `Tails`, each with a bound of its absolute error."""
        found = np.array([self._best(float(each), None) for each in c]).reshape(-1, 4, 2)
        return [(found[:, i, 0], found[:, i, 1]) for i in range(4)]

    def _best(self, c: float, epsilon: float | None, *, roughly: bool = False) -> FloatArray:
        """Values and errors by the law that proves most; deeper laws are tried as needed."""
        best: FloatArray | None = None
        first, second = self.alone_masses
        alone = np.array([first] if epsilon is not None else [0.0, first, second, 0.0])
        for depth in range(self._laws.depths):
            law = self._law(depth)
            if law is None:
                continue
            found = self._of_law(law, c, epsilon, roughly=roughly)
            if best is None:
                best = found
            else:
                better = found[:, 1] < best[:, 1]
                best[better] = found[better]
            small, least = best.sum(axis=1) - alone < SMALL, DEEPER * best[:, 0]
            beyond = fn.exp(max(law.below.max(), law.above.max()))
            if roughly or not (small & (best[:, 1] > least) & (beyond > least)).any():
                break
        if best is None:
            return np.array([[0.5, 0.5 * SLACK]] * (4 if epsilon is None else 1))
        return best

    def _of_law(self, law: _Law, c: float, epsilon: float | None, *, roughly: bool) -> FloatArray:
        threshold = -c if self._is_reversed else c
        x = threshold - law.floor
        back = x - threshold
        x_low = ((threshold - (x - back)) - (law.floor + back)) - law.floor_low  # exact, Knuth
        goal = np.full(2, FIRST_LOG - LEFT)
        if not math.isfinite(x):
            return self._beyond(above_all=(x > 0.0) != self._is_reversed)
        above = x - float(self._corners.places[0])
        if above < -16.0 * UNIT * (abs(x) + self._end[2]):  # below all losses
            if epsilon is None:
                return self._beyond(above_all=self._is_reversed)
            first, second = self.alone_masses
            parts = [first]
            if self._is_reversed:
                parts = [-fn.expm1(epsilon), fn.exp(min(epsilon, MOST_LOG)) * second]
            off = 8.0 * UNIT if first or second else 4.0 * UNIT
            return np.array([[sum(parts), off * sum(map(abs, parts))]])
        tilt = self._corners.tilt_at(above)
        log_mass = float(TILTS[tilt] * above + self._corners.log_grown[tilt])
        best: FloatArray | None = None
        for _ in range(TURNS):
            size = SIZES[bisect_left(LARGE, max(log_mass, 0.0) - float(goal.min()))]
            nodes = self._nodes(law, x, x_low, goal, size)
            found = self._summed(law, nodes, x, epsilon, ABOUT if roughly else LEAST)
            has_ended = False  # True if the law's ends or errors dominate
            if best is not None:
                has_ended = bool((0.5 * best[:, 1] <= found[:, 1]).all())
                worse = best[:, 1] <= found[:, 1]
                found[worse] = best[worse]
            best = found
            known = self._least(found[:, 0], threshold, epsilon)
            enough = nodes.missed <= (ROUGH if roughly else ENOUGH) * known
            enough |= np.maximum(nodes.missed, known) < TINY
            # the search for thresholds uses A's masses alone
            asked = enough[int(self._is_reversed)] if roughly and epsilon is None else enough.all()
            if asked or has_ended:
                break
            # a mass below the errors so far is unknown: assume at most e^-FURTHER less
            expected = np.maximum(fn.log(np.maximum(known, TINY)), goal + LEFT - FURTHER)
            if (expected - LEFT >= goal).all():
                break
            goal = np.minimum(goal, expected - LEFT)
        assert best is not None
        return best

    def _beyond(self, *, above_all: bool) -> FloatArray:
        """The masses where a threshold is above all finite losses, or below all."""
        first, second = self.alone_masses
        found = [0.0, 1.0, second, 1.0 - second] if above_all else [1.0 - first, first, 1.0, 0.0]
        off = 8.0 * UNIT * bool(first or second)
        return np.array([[mass, off * mass] for mass in found])

    def _least(self, value: FloatArray, c: float, epsilon: float | None) -> FloatArray:
        """Estimates of the values that ``missed`` of A and of B must be small beside."""
        if epsilon is None:
            least = value.reshape(2, 2).min(axis=1)
            return np.asarray(least[::-1] if self._is_reversed else least)
        # the profile is A's mass minus e^ε times B's, so errors of A count 1 and those of B e^ε
        grown = fn.exp(min(max(c, -MOST_LOG), MOST_LOG))
        return np.asarray(np.array([1.0 / grown if self._is_reversed else 1.0, grown]) * value)

    def _summed(
        self, law: _Law, nodes: _Nodes, x: float, epsilon: float | None, least: float
    ) -> FloatArray:
        """Sums over nodes and bounds of errors, of shape (4, 2), or (1, 2) of the profile."""
        sign = -1.0 if self._is_reversed else 1.0
        ends = fn.exp([law.low, law.high])
        at = np.concatenate([nodes.y, [0.0], ends])
        where = sign * (x - at)
        # masses under A, without the record, and under B, e^loss times as large
        of_a = nodes.mass
        of_b = nodes.mass * fn.exp(np.minimum(law.floor + nodes.y, MOST_LOG))
        rounded = nodes.error + UNIT * (8.0 + 4.0 * (abs(law.floor) + nodes.y))
        below, above = fn.exp(law.below), fn.exp(law.above)
        missed = nodes.missed
        if self._is_reversed:
            of_a, of_b, below, above, missed = of_b, of_a, below[::-1], above[::-1], missed[::-1]
        count = nodes.y.size
        # the three values after the nodes are at Y = 0 and at the ends, with the masses beyond
        weights = [
            np.concatenate([weight, np.full(3, low + high)])
            for weight, low, high in zip((of_a, of_b), below, above, strict=True)
        ]
        if epsilon is not None:
            inner = self._others.profiles_for(-where[None], weights[0][None, None], least)
            value, off = inner[0, :, 0]
            # the others' profile falls with Y, and in the reversed order rises
            most = np.minimum(value + off, 1.0)[count:]
            ends = most[1 if self._is_reversed else 0], 1.0 if self._is_reversed else most[2]
            beyond = list(zip((below[0], above[0]), ends, strict=True))
            total, wrong = _mean(of_a, rounded, value, off, beyond)
            both = missed[0] + fn.exp(min(epsilon, MOST_LOG)) * missed[1]
            return np.array([[total, (wrong + both) * SLACK]])
        each = np.array([weights[0], weights[0], weights[1], weights[1]])
        inner = self._others.masses_for(where[None], each[:, None], least)
        found = []
        for i, (value, off) in enumerate(inner[:, :, 0]):
            law_index, is_above = i // 2, i % 2 == 0
            weight = (of_a, of_b)[law_index]
            # bounds of the others' masses below the first end and above the last
            rises = is_above != self._is_reversed  # with Y
            low, high = (
                np.minimum(value + off, 1.0)[count:][k] for k in ((1, 2) if rises else (0, 2))
            )
            ends = low, 1.0 if rises else high
            beyond = list(zip((below[law_index], above[law_index]), ends, strict=True))
            total, wrong = _mean(weight, rounded, value, off, beyond)
            found.append([total, (wrong + missed[law_index]) * SLACK])
        table = np.array(found)
        for one in (0, 2):  # the larger mass as the complement of the smaller
            for small, large in ((one, one + 1), (one + 1, one)):
                value, off = table[small]
                if value + off < 0.5 and off + 2.0 * UNIT < table[large, 1]:
                    table[large] = 1.0 - value, off + 2.0 * UNIT
        return table

    def rough_masses(self, c: FloatArray, weight: FloatArray, far: bool = True) -> FloatArray:
        """Estimates of the masses, of shape (4, n)."""
        del weight, far
        found = [self._best(float(each), None, roughly=True)[:, 0] for each in c]
        return np.array(found).reshape(-1, 4).T

    def rough_profile(
        self, epsilon: FloatArray, weight: FloatArray, far: bool = True
    ) -> FloatArray:
        """Estimates of the profile at any real ε."""
        del weight, far
        return np.array([self._best(-float(e), float(e), roughly=True)[0, 0] for e in epsilon])

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile, and bounds of its absolute errors."""
        found = np.array([self._best(-float(e), float(e))[0] for e in epsilon]).reshape(-1, 2)
        return found[:, 0], found[:, 1]


def _distance(places: FloatArray, nodes: FloatArray) -> FloatArray:
    """Distance of places from the nearest node."""
    known = np.concatenate([[-np.inf], np.sort(nodes), [np.inf]])
    at = np.searchsorted(known, places)
    return np.asarray(np.minimum(places - known[at - 1], known[at] - places))


def _mean(
    weight: FloatArray,
    rounded: FloatArray,
    value: FloatArray,
    off: FloatArray,
    beyond: list[tuple[float, float]],
) -> tuple[float, float]:
    """Σ weight value over nodes, and a bound of its error.

    Weights have relative errors ``rounded``, values the absolute errors ``off``; ``beyond`` lists
    masses beyond the ends and bounds of the values there.  As the total mass is 1, the sum is also
    a reference value plus Σ weight (value - reference), where errors of weights count with the
    differences only; the smaller bound is returned.
    """
    count = weight.size
    own, error = value[:count], off[:count] * (1.0 + rounded)
    total = float(weight @ own)
    wrong = float(weight @ (error + rounded * own)) + count * UNIT * total
    wrong += sum(mass * most for mass, most in beyond)
    at = int(np.argmax(weight * own)) if count else 0
    first, unsure = (float(part[at]) for part in (own, error)) if count else (0.0, 1.0)
    apart = own - first
    size = np.abs(apart)
    close = float(weight @ (error + (rounded + (count + 4.0) * UNIT) * size))
    close += unsure * (1.0 + float(weight.sum())) + 4.0 * UNIT * first
    close += sum(mass * max(most, first + unsure) for mass, most in beyond)
    return (first + float(weight @ apart), close) if close < wrong else (total, wrong)
