"""Masses and profiles of a few Laplace steps on a line that turns into rays at some height.

Below the turn the line is integrated by Gauss's rules.  Beyond it the transform of the sum is a
polynomial in the e^(s d) of the kinds, with coefficients that do not oscillate (`ends`).  Each term
belongs to a *place*, a sum of corners, and is integrated along the ray on which its exponential
decays: to the left for places above the threshold, else to the right.  That takes a few hundred
nodes a place, however near the density's singularity is (docs/theory/laplace, Theorem 7).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi
from pyengine._support.caches import cached_property
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines.corners import Corners, Factors, corners_of, mean_log
from pyengine.engines.vertical_lines.ends import NODES, RayWeights
from pyengine.engines.vertical_lines.gauss import EXTENDED, gauss_nodes
from pyengine.engines.vertical_lines.laplace_shapes import StepShape
from pyengine.engines.vertical_lines.line import (
    KERNELS,
    CoreSide,
    KernelErrors,
    TiltedSum,
    chain_error,
    composed,
)
from pyengine.engines.vertical_lines.low_rule import POLE, LowRule
from pyengine.engines.vertical_lines.nodes import largest_loss, loss_error
from pyengine.engines.vertical_lines.tilted import LaplaceStep
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.wide import Wide, wide_exp

__all__ = ["AtomPlaces", "DeformedLine", "places_error", "places_of"]

FloatArray = npt.NDArray[np.float64]
Steps = Sequence[tuple[LaplaceStep, int]]
ComplexArray = npt.NDArray[np.complex128]
Low = tuple[FloatArray, ComplexArray, KernelErrors, list[CoreSide]]  # as `_set_core` takes it

RATIO = 4.2  # ρ of the ellipses about panels of rays, which stay within 45 degrees of the ray
CHUNKS = (0, 16, 44, 72)  # panels, each twice as long as the last, are made in these groups
MOST_PANELS = CHUNKS[-1]
ABOUT_PANELS = CHUNKS[2]  # for estimates: more are needed only next to a threshold
LEAST_PANELS = 4
FALLEN = 40.0  # terms below e^-40 of their start are left out
SINE = math.sqrt(0.5)  # of the angles of the rays of s
LIGHT = 1e-18  # relative bound of the terms of places that are left out beyond the turn
RAYS = ((0.25 * math.pi, 0.625 * math.pi), (0.75 * math.pi, 0.375 * math.pi))  # of s, and of y
LEAST = 1e-290  # replaces shares of 0 before logarithms are taken


class AtomPlaces(NamedTuple):
    """Places: the sums of one corner's loss for each step.

    Parameters
    ----------
    row : ndarray of shape (kinds, places)
        Power of e^(s d) of each kind: the sum of its steps' corner numbers, from 0.
    place : ndarray of shape (2, places)
        Losses, each a sum of two doubles.
    log_atom : ndarray of shape (places,)
        Logarithms of the tilted masses of the atoms there.
    """

    row: npt.NDArray[np.intp]
    place: FloatArray
    log_atom: FloatArray


def places_of(steps: Steps) -> AtomPlaces:
    """Return the places of all corners of a composition."""
    of_kinds = [corners_of(step.shape) for step, _ in steps]
    ways = [(corners.number - 1) * n for corners, (_, n) in zip(of_kinds, steps, strict=True)]
    rows = np.meshgrid(*(np.arange(number + 1) for number in ways), indexing="ij")
    row = np.stack([x.ravel() for x in rows])
    place, log_atom = Wide(np.zeros(row.shape[1]), np.zeros(row.shape[1])), np.zeros(row.shape[1])
    for gone, number, corners, (step, n) in zip(row, ways, of_kinds, steps, strict=True):
        low, high = _ends(step)
        way = gone.astype(np.float64)
        # a middle corner lies halfway between the ends
        place = place + ((number - way) * low + way * high) / (corners.number - 1)
        log_atom += corners.log_terms(_atoms(corners, step), n)[gone]
    return AtomPlaces(row, place.parts, log_atom)


def _ends(step: LaplaceStep) -> tuple[Wide, Wide]:
    """The least and the largest loss of a step."""
    (low, high), (below, above) = step.nodes.loss[:, :2].tolist()
    return Wide(low, below), Wide(high, above)


def _atoms(corners: Corners, step: LaplaceStep) -> FloatArray:
    """The tilted masses of a step's atoms, by corners."""
    return corners.atoms(*np.maximum(step.share[:2], LEAST).tolist())


def places_error(kinds: Iterable[tuple[StepShape, int]]) -> float:
    """Bound of the absolute errors of a composition's places."""
    return sum(
        n * (loss_error(shape) + 16.0 * EXTENDED * largest_loss(shape)) for shape, n in kinds
    )


class _Ray(NamedTuple):
    """Panels of a ray: weights at nodes s - λ for each place and kernel, and error bounds.

    ``error`` of shape (kernels,) holds for all thresholds; ``turned`` of shape (places, kernels) is
    multiplied by the place's distance from c, whose rounding shifts the phase at the turn.
    """

    weights: RayWeights
    error: FloatArray
    turned: FloatArray


class DeformedLine(TiltedSum):
    """One deformed line for a sum of a few steps.

    Parameters
    ----------
    steps, tilt : list of (LaplaceStep, int), float
        As of `LossLine`.
    height : float
        T, the imaginary part at the turn, up to which the nodes of the steps serve.
    rule : LowRule
        Gauss's rules below the turn.
    """

    removed = 0.0, 0.0  # nothing is truncated

    def __init__(self, steps: Steps, tilt: float, height: float, rule: LowRule) -> None:
        super().__init__(steps, tilt)
        self.rule, self._steps, self._height = rule, steps, height
        self._number = sum(float(n) for _, n in steps)
        # error of the distance of a place from a threshold, its own rounding not counted
        self._off_place = places_error((step.shape, n) for step, n in steps)
        self._corners = [corners_of(step.shape) for step, _ in steps]
        self._shares = [
            _atoms(corners, step) for corners, (step, _) in zip(self._corners, steps, strict=True)
        ]
        self._scales = [
            _scales(step, tilt, corners.number)
            for corners, (step, _) in zip(self._corners, steps, strict=True)
        ]
        self._bounds = [self._corner_bounds(height * part) for part in (1.0, 0.5)]
        self._places = self._kept_places()
        # length of the support: the largest distance of a place from a threshold
        self._span = sum(n * float(step.shape.length) for step, n in steps)
        self._first = min(0.4 * height, 2.0 / self._span)
        self._rays: list[list[_Ray]] = []
        self._low = self._low_of(rule)
        self.add_panels(LEAST_PANELS)

    # ---- bounds of all terms -------------------------------------------------------------------

    def _corner_bounds(self, height: float) -> list[FloatArray]:
        """Bounds of the moduli of each kind's corner factors, tilted, from a height on."""
        return [
            shares + scales * corners.bounds(height)
            for corners, shares, scales in zip(
                self._corners, self._shares, self._scales, strict=True
            )
        ]

    def _log_most(self, pairs: list[FloatArray]) -> float:
        """Log of a bound of the sum of all terms' moduli, from bounds of the factors."""
        return sum(n * fn.log(sum(pair)) for pair, (_, n) in zip(pairs, self._steps, strict=True))

    def _most(self, pairs: list[FloatArray]) -> float:
        """Bound of Σ |term - atom| over places, from bounds ``pairs`` of the factors.

        Π (sum of bounds)^n - Π (sum of atoms)^n, which is convex, so at most its derivative at the
        bounds times the difference.
        """
        log = self._log_most(pairs)
        return (1.0 + 1e-6) * sum(
            n * (sum(pair) - sum(shares)) * fn.exp(min(log - fn.log(sum(pair)), 600.0))
            for (_, n), pair, shares in zip(self._steps, pairs, self._shares, strict=True)
        )

    def _kept_places(self) -> AtomPlaces:
        """The places whose terms are above `LIGHT`; those of others become an error."""
        found = places_of(self._steps)
        log = np.zeros(found.log_atom.size)
        for row, corners, (_, n), bounds in zip(
            found.row, self._corners, self._steps, self._bounds[1], strict=True
        ):
            log += corners.log_terms(bounds, n)[row]
        counts = log > fn.log(LIGHT)
        counts[np.argmax(log)] = True
        self._dropped = 2.0 * float(fn.exp(log[~counts]).sum())
        return AtomPlaces(found.row[:, counts], found.place[:, counts], found.log_atom[counts])

    # ---- below the turn -----------------------------------------------------------------------

    def _log_bound(self, tilt: float) -> float:
        """Upper bound of K(``tilt``)."""
        return float(sum(n * step.bound_at(tilt) for step, n in self._steps))

    def _low_of(self, chosen: LowRule) -> Low:
        """Nodes and weights below the turn, and error bounds as `KernelErrors` takes them."""
        height, tilt = self._height, self.tilt
        count, size, width = chosen
        half, apart = 0.5 * height / count, np.abs(tilt - POLE)
        rule = gauss_nodes(size)
        length = Wide(height) / count
        t = np.ravel(((Wide(*rule.place) + np.arange(float(count))[:, None]) * length).high)
        weight = np.tile((Wide(*rule.weight) * length).high, count)
        value, error, _ = composed(self._steps, t)
        atoms, atoms_error = self._atoms_transform(t)
        value, error = value - atoms, error + atoms_error + 2.0 * UNIT * fn.modulus(value)
        s = tilt + 1j * t
        share = weight / math.pi
        kernels = np.array([share / s, share / (s - 1.0), share / (s * (s - 1.0))])
        terms = value * kernels
        moduli, sums = fn.modulus(terms), fn.modulus(kernels)
        chain = chain_error(t.size) + 16.0 * UNIT + rule.error
        low_error = (moduli * chain + sums * error).sum(axis=1)
        # rounded nodes: |φ'| is at most the tilted deviation, and |k'/k| that of 1/distances
        square = sum(
            n * float((step.share * step.apart * step.apart).sum()) for step, n in self._steps
        )
        slope = math.sqrt(square) * 1.01 + float((1.0 / apart).sum())
        low_error += UNIT * (sums * t).sum(axis=1) * slope
        # quadrature error, but for the factor of the sides that depends on the threshold
        across, ratio = fn.hypot(half, width), (fn.hypot(half, width) + width) / half
        begin = 2.0 * half * np.arange(count)[:, None]
        room = 0.5 * (fn.hypot(apart, begin) + fn.hypot(apart, begin + 2.0 * half)) - across
        kernel = np.array([1.0 / room[:, 0], 1.0 / room[:, 1], 1.0 / (room[:, 0] * room[:, 1])])
        rules = 8.0 * half * fn.power(ratio, -2.0 * size) / (1.0 - 1.0 / ratio) / math.pi
        left = rules * kernel.sum(axis=1) * (1.0 + 1e-9)
        sides = [CoreSide(tilt + each, self._log_bound(tilt + each)) for each in (width, -width)]
        return t, terms, KernelErrors(low_error, (moduli * t).sum(axis=1), left), sides

    def _atoms_transform(self, t: FloatArray) -> tuple[ComplexArray, FloatArray]:
        """The transform of the atoms of all steps at once, centred, and bounds of its errors."""
        total, log = np.ones(t.size, dtype=np.complex128), 0.0
        off = np.zeros(t.size)
        for step, n in self._steps:
            share, apart = step.share[:2], step.apart[:2]
            one = (share * fn.turn(t[:, None] * apart)).sum(axis=1)
            total *= fn.power_by_squares(one, n)
            log += n * fn.log(float(share.sum()))
            turns = t * float(np.abs(apart).max())
            off += n * (12.0 + 4.0 * turns) * UNIT
            off += n * (step.share_error + 2.0 * t * step.nodes.loss_error + 2.0 * step.left)
        return total, 2.0 * fn.exp(log) * fn.expm1(off)

    # ---- beyond the turn ----------------------------------------------------------------------

    def _made_ray(self, angle: float, inner: float, chunk: int) -> _Ray:
        """A group of panels of the ray of s at ``angle``; ``inner`` is the angle of rays of y."""
        rule = gauss_nodes(NODES)
        panels = np.arange(*CHUNKS[chunk : chunk + 2])
        high = np.ldexp(self._first, panels)
        low = np.where(panels == 0, 0.0, 0.5 * high)
        width = (high - low)[:, None]
        tau = (low[:, None] + width * rule.place[0]).ravel()
        weight = (width * rule.weight[0]).ravel() / math.pi
        way = complex(fn.cos(angle), fn.sin(angle))
        moved = 1j * self._height + tau * way
        s = self.tilt + moved
        factors = [self._factors(at, s, inner, step) for at, (step, _) in enumerate(self._steps)]
        terms, whole, off = self._terms_less_atoms(factors)
        kernels = np.array([1.0 / s, 1.0 / (s - 1.0), 1.0 / (s * (s - 1.0))]) * (weight * way)
        moduli = fn.modulus(kernels)
        rounding = (moduli * whole * fn.expm1(off)).sum(axis=1)
        # a relative error of the distance x from the threshold moves a term by τ |x| of itself,
        # times e^(-τ |x| sqrt(1/2)) along the ray
        chain = 104.0 + NODES * panels.size + 2.0 * self._places.log_atom.size
        each = fn.modulus(terms)
        size = each.sum(axis=0)
        rounding += (moduli * size).sum(axis=1) * chain * UNIT
        rounding += self._off_place * (moduli * size * fn.modulus(moved)).sum(axis=1)
        weights = terms[:, None, :] * kernels
        turned = 4.0 * self._height * UNIT * (each @ moduli.T)
        return _Ray(RayWeights.of(moved, weights), rounding + self.left_on(panels), turned)

    def _factors(self, kind: int, s: ComplexArray, inner: float, step: LaplaceStep) -> Factors:
        """Tilted factors of a kind's corners at points s."""
        corners, shares, scales = self._corners[kind], self._shares[kind], self._scales[kind]
        added, error = corners.transforms(s, inner)
        added = scales[:, None] * added
        relative = step.share_error + step.left + step.log_error
        return Factors(shares[:, None], added, scales[:, None] * error, relative)

    def _terms_less_atoms(
        self, factors: list[Factors]
    ) -> tuple[ComplexArray, FloatArray, FloatArray]:
        """Term - atom of each place, a bound of the sum of terms, and errors relative to it."""
        if all(
            corners.is_small(each, n)
            for corners, (_, n), each in zip(self._corners, self._steps, factors, strict=True)
        ):
            return self._small_terms(factors)
        terms = np.ones(
            (self._places.log_atom.size, factors[0].added.shape[1]), dtype=np.complex128
        )
        log_all, off = np.zeros((2, terms.shape[1]))
        for row, corners, (_, n), (shares, added, error, relative) in zip(
            self._places.row, self._corners, self._steps, factors, strict=True
        ):
            factor = shares + added
            both = fn.modulus(factor).sum(axis=0)
            table, rounded = corners.powers(factor, n, row)
            terms *= table
            log_all += n * fn.log(both)
            off += n * (error.sum(axis=0) / both + relative) + rounded
        terms -= self._atom_mass[:, None]
        whole = fn.exp(log_all) + fn.exp(self._log_most(self._shares))
        return terms, whole, off + 16.0 * UNIT

    def _small_terms(self, factors: list[Factors]) -> tuple[ComplexArray, FloatArray, FloatArray]:
        """The same where densities are small beside atoms: without cancellation."""
        size = factors[0].added.shape[1]
        atoms = np.ones(self._places.log_atom.size)
        rest = np.zeros((atoms.size, size), dtype=np.complex128)
        whole, off = np.ones(size), np.zeros(size)
        for row, corners, (_, n), each in zip(
            self._places.row, self._corners, self._steps, factors, strict=True
        ):
            own = corners.beside_atoms(each, n, row)
            rest = rest * (own.atoms[:, None] + own.rest) + atoms[:, None] * own.rest
            atoms *= own.atoms
            whole *= own.whole
            off += own.error
        return rest, whole, off

    def left_on(self, panels: npt.NDArray[np.intp]) -> FloatArray:
        """Bound of the quadrature error on panels of a ray, for each kernel."""
        high = np.ldexp(self._first, panels)
        half = np.where(panels == 0, 0.5 * high, 0.25 * high)
        # ellipses of later panels stay above the turn, that of the first above half its height
        least = np.where(panels == 0, 0.5 * self._height, np.maximum(self._height, 0.15 * high))
        most, most_below = (self._most(pairs) for pairs in self._bounds)
        grown = np.where(panels == 0, most_below * fn.exp(2.5), most)
        rule = 8.0 * half * fn.power(RATIO, -2.0 * NODES) / (1.0 - 1.0 / RATIO) / math.pi * grown
        return np.array(
            [(rule / least).sum(), (rule / least).sum(), (rule / (least * least)).sum()]
        )

    # ---- answers ------------------------------------------------------------------------------

    def _room(self) -> Any:
        return array(np.empty(self._atom_mass.size), writable=True)

    def add_panels(self, panels: int) -> None:
        """Extend both rays to whole groups of `CHUNKS` and hand them to the C core."""
        chunks = bisect_left(CHUNKS, panels)
        made = [*self._rays]
        made += [
            [self._made_ray(*ray, chunk) for ray in RAYS] for chunk in range(len(made), chunks)
        ]
        self._rays = made
        right, left = (RayWeights.joined([pair[side].weights for pair in made]) for side in (0, 1))
        error = np.cumsum([sum(ray.error for ray in pair) for pair in made], axis=0) + self._fixed
        turned = np.cumsum([sum(ray.turned.T for ray in pair) for pair in made], axis=0)
        begin = np.array(CHUNKS[:chunks], dtype=np.int64)
        place = np.ascontiguousarray(self._places.place)
        turn = {
            "places": self._atom_mass.size,
            "blocks": NODES // 8,
            "chunks": chunks,
            "place": array(place.reshape(-1)),
            "atom": array(self._atom_mass),
            "reach": FALLEN / (SINE * self._first),
            "least": LEAST_PANELS,
            "most": MOST_PANELS,
            "about": ABOUT_PANELS,
            "known": CHUNKS[chunks],
            "right": right.core[0],
            "left": left.core[0],
            "begin": ffi.from_buffer("int64_t[]", begin),
            "error": array(error.reshape(-1)),
            "turned": array(turned.reshape(-1)),
        }
        kept = place, self._atom_mass, begin, error, turned, right, left
        self._set_core(*self._low, [()] * KERNELS, ffi.new("pe_line_turn *", turn), kept)

    @cached_property
    def _atom_mass(self) -> FloatArray:
        """Tilted masses of the atoms of all steps at once, by place."""
        return np.asarray(fn.exp(self._places.log_atom))

    @cached_property
    def _fixed(self) -> FloatArray:
        """Errors for all thresholds: beyond the last panels, light places, rounding of atoms."""
        # beyond the last panels: terms next to a place fall like 1/s, others by e^-FALLEN
        rest = self._most(self._corner_bounds(SINE * self._first * 2.0 ** (MOST_PANELS - 1)))
        fallen = fn.exp(-FALLEN) * self._most(self._bounds[0])
        atoms = fn.exp(self._log_most(self._shares))
        rounding = (self._number * 16.0 + 8.0 * self._places.log_atom.size + 32.0) * UNIT
        rounding += (
            4.0
            * UNIT
            * math.fsum(
                n * float(mean_log(shares))
                for shares, (_, n) in zip(self._shares, self._steps, strict=True)
            )
        )
        rounding += sum(
            n * (step.share_error + step.left + step.log_error) for step, n in self._steps
        )
        apart = abs(self.tilt), abs(self.tilt - 1.0)
        # an error of the distance changes the atoms' weights
        rounding += self._off_place * (1.0 + max(apart))
        far = rest + fallen + 100.0 * self._dropped
        heaviest = 1.0 / (1.0 + min(apart)) if self.tilt < 0.0 or self.tilt > 1.0 else 1.0
        height = self._height
        return far * np.array([1.0, 1.0, 1.0 / height]) + atoms * rounding * np.array(
            [1.0, 1.0, heaviest]
        )


def _scales(step: LaplaceStep, tilt: float, number: int) -> FloatArray:
    """Tilted scales of the corners: e^(λ loss - log mean)."""
    low, high = _ends(step)
    places = [low, high] if number == 2 else [low, Wide(0.0), high]
    exponents = np.array([(tilt * place - step.log_mean).parts for place in places]).T
    value, power = wide_exp(exponents)
    return np.asarray(np.ldexp(value[0], power.astype(np.intp)))
