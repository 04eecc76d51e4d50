"""Inversion on a hyperbola in ball arithmetic, every error enclosed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from flint import acb, arb

from pyengine.reference.balls import precision, spread
from pyengine.reference.cumulants import Array
from pyengine.reference.gaussian.fewest_nodes import log_sizes
from pyengine.reference.gaussian.integrand_sizes import LINES, TURN
from pyengine.reference.gaussian.plan_hyperbola import HyperbolaPlan
from pyengine.reference.gaussian.rotated_transform import BOUND_BITS, Majorant, Nodes
from pyengine.reference.gaussian.steps import EqualSteps, offset
from pyengine.reference.tails import BallTails, integrated

__all__ = ["Hyperbola"]

COARSE, FINE = 0.4, 0.3  # widths of the boxes of a `Majorant`; FINE is divided by sqrt(steps)
PARTS, PIECES = 8, 40  # parts of a piece for distances from the poles, and pieces of a side


@dataclass(frozen=True)
class _StripSide:
    """One side of the strip, with bounds on the integrals along it.

    ``share`` is the factor of these in the error of the trapezoidal rule.  Each of ``pieces`` has
    its least Re lambda and bounds on the integrals of |product of M^n| divided by |lambda|, by
    |lambda - 1| and by both.  From ``end`` in u on, ``product`` bounds |product of M^n|.
    """

    angle: arb
    share: arb
    pieces: list[tuple[arb, list[arb]]]
    end: arb
    product: arb


class Hyperbola:
    """The transform of a composition with all p < 1 on a hyperbola; valid for any threshold.

    It is sharp near the threshold of its plan; see `pyengine.reference.solve.Local`.
    """

    certified = True

    def __init__(self, phases: tuple[EqualSteps, ...], plan: HyperbolaPlan) -> None:
        self.phases, self.plan, self.bits = phases, plan, plan.bits
        self._majorants: dict[tuple[int, int, float], Majorant] = {}
        with precision(plan.bits):
            self._prepare()
        self._majorants.clear()  # most of the memory, and no longer needed

    def _prepare(self) -> None:
        curve = self.plan.curve
        self.offset = offset(self.phases)
        self.corner, self.scale = arb(curve.corner), arb(curve.scale)
        self.angle, self.spacing = arb(curve.angle), arb(curve.spacing)
        turns = [acb(self.angle, k * self.spacing) for k in range(self.plan.count)]
        self.places = [self.corner + self.scale * turn.sin() for turn in turns]
        self.terms = [self.scale * turn.cos() * self.spacing / arb.pi() for turn in turns]
        self.terms[0] /= 2
        for i, (phase, column) in enumerate(zip(self.phases, self.plan.columns, strict=True)):
            tables = {line: Nodes(phase, line * TURN, *rule) for line, rule in column.rules.items()}
            for k, (line, strip) in enumerate(zip(column.lines, column.strips, strict=True)):
                place, nodes = self.places[k], tables[line]
                value, missing = nodes.sum(place)
                error = spread(missing + self._aliased(i, line, strip, nodes, place))
                self.terms[k] *= (value + acb(error, error)) ** phase.steps
        with precision(BOUND_BITS):
            self.edges = [self._edge(side) for side in (0, 1)]
            last = (self.plan.count - 1) * self.spacing
            least = math.ceil(curve.angle / TURN)
            self.end = last, self._product(self.places[-1:], least)

    def _bound(self, phase: int, line: int, place: acb, width: float) -> arb:
        """Bound |M| of one step by B on a line, at ``place`` and wherever s is smaller."""
        key = phase, abs(line), width
        if key not in self._majorants:
            self._majorants[key] = Majorant(self.phases[phase], abs(line) * TURN, width)
        with precision(BOUND_BITS):
            return self._majorants[key].bound((place * acb(0, arb(line * TURN)).exp()).real)

    def _aliased(self, phase: int, line: int, strip: int, nodes: Nodes, place: acb) -> arb:
        """Bound the error of the trapezoidal rule for M on a line, by B on the lines beside it."""
        sides = self._bound(phase, line + strip, place, COARSE)
        sides += self._bound(phase, line - strip, place, COARSE)
        return sides / (2 * arb.pi() * strip * arb(TURN) / nodes.spacing).expm1()

    def _product(self, places: list[acb], least: int = 0) -> arb:
        """Bound |product of M^n| wherever every s is at most its largest value at the places.

        The line of each phase is the best one in doubles, of index ``least`` at least.
        """
        result, near = arb(1), np.array([complex(place) for place in places])
        for i, (phase, sketch) in enumerate(zip(self.phases, self.plan.sketches, strict=True)):
            line = least + int(sketch.table(near, range(least, LINES)).max(axis=1).argmin())
            width = FINE / math.sqrt(phase.steps)
            bounds = (self._bound(i, line, place, width) for place in places)
            result *= max(bounds, key=float) ** phase.steps
        return result

    def _edge(self, side: int) -> _StripSide:
        """Bound the integrals along a side of the strip (0: left, 1: right), on pieces."""
        plan, curve = self.plan, self.plan.curve
        away = curve.widths[side] * (1 if side else -1)
        least = math.ceil((curve.angle + away) / TURN)
        u: Array = np.linspace(0.0, 9.0, 200)
        places = curve.places(u, away)
        log = curve.log_kernel(u, plan.threshold, away)
        tables = [sketch.table(places, range(LINES)) for sketch in plan.sketches]
        late = log + log_sizes(plan.sketches, [table[least:] for table in tables])
        above = np.nonzero(late > (log + log_sizes(plan.sketches, tables)).max() - 3)[0]
        reach = float(u[min(above[-1] + 1, len(u) - 1)]) if above.size else float(u[1])
        angle, ends = self.angle + away, [arb(x) for x in np.linspace(0.0, reach, PIECES + 1)]
        at, pieces = [self.corner + self.scale * acb(angle, x).sin() for x in ends], []
        for k, (start, stop) in enumerate(pairwise(ends)):
            size = self._product(at[k : k + 2])
            size *= self.scale * stop.cosh() * (stop - start) / arb.pi()
            zero, one = self._distances(angle, start, stop)
            pieces.append((at[k].real, [size / zero, size / one, size / (zero * one)]))
        share = 1 / (2 * arb.pi() * abs(arb(away)) / self.spacing).expm1()
        return _StripSide(angle, share, pieces, ends[-1], self._product(at[-1:], least))

    def _distances(self, angle: arb, start: arb, stop: arb) -> tuple[arb, arb]:
        """Return lower bounds on |lambda| and |lambda - 1| on a piece."""
        half = (stop - start) / (2 * PARTS)
        zero = one = arb("inf")
        for k in range(PARTS):
            u = start + (2 * k + 1) * half + arb(0, half.upper())
            place = self.corner + self.scale * acb(angle, u).sin()
            zero, one = zero.min(place.abs_lower()), one.min((place - 1).abs_lower())
        return zero, one

    def at(self, c: arb) -> BallTails:
        """Return enclosures of tails and divergences at a threshold.

        Parameters
        ----------
        c : arb
            The threshold of the total loss.
        """
        with precision(self.bits):
            threshold = c - self.offset
            if threshold <= 0:  # the loss is above its infimum
                return BallTails(arb(1), arb(0), arb(1), arb(0), -c.expm1(), arb(0))
            zero = one = both = arb(0)
            for place, term in zip(self.places, self.terms, strict=True):
                value = term * (-place * threshold).exp()
                less = value / (place - 1)
                over = value / place
                zero, one, both = zero + over.real, one + less.real, both + (less / place).real
            errors = self._errors(threshold)
            zero, one, both = (
                x + spread(y) for x, y in zip((zero, one, both), errors, strict=True)
            )
            at_zero, at_one = self._residue(0), self._residue(1) * (-c).exp()
            zero, one, both = zero + at_zero, one + at_one, both + at_one - at_zero
            vertex = self.corner + self.scale * self.angle.sin()
            return integrated(vertex, zero, one, both, c)

    def _errors(self, threshold: arb) -> tuple[arb, arb, arb]:
        """Bound the errors of the three sums: of the trapezoidal rule, and of truncation."""
        with precision(BOUND_BITS):
            total = list(self._rest(self.angle, *self.end, threshold))
            for side in self.edges:
                found = list(self._rest(side.angle, side.end, side.product, threshold))
                for place, sizes in side.pieces:
                    scale = (-place * threshold).exp()
                    found = [a + b * scale for a, b in zip(found, sizes, strict=True)]
                total = [a + b * side.share for a, b in zip(total, found, strict=True)]
            return total[0], total[1], total[2]

    def _rest(self, angle: arb, start: arb, size: arb, threshold: arb) -> tuple[arb, arb, arb]:
        """Bound the three integrals from u = ``start`` on, where |product of M^n| <= ``size``."""
        rate = threshold * self.scale * angle.sin()
        if not (rate > 0 and start > 0):
            return (arb("inf"),) * 3
        result = size * (-threshold * self.corner - rate * start.cosh()).exp()
        result *= start.cosh() / (start.sinh() ** 2 * rate * angle.cos() * arb.pi())
        return result, result, result / (self.scale * angle.cos() * start.sinh())

    def _residue(self, pole: int) -> arb:
        """Return the correction of the sum for a pole in the strip, 0 or 1, of residue 1."""
        sine = (pole - self.corner) / self.scale
        if sine > 1 or sine < -1:
            return arb(0)
        x, (left, right) = sine.asin(), self.edges
        if x < left.angle or x > right.angle:
            return arb(0)
        if not (x > left.angle and x < right.angle):
            return arb("nan")
        rate = 2 * arb.pi() / self.spacing
        if x > self.angle:
            return 1 / (rate * (x - self.angle)).expm1()
        return -1 / (rate * (self.angle - x)).expm1()
