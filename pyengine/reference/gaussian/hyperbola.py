"""Inversion on a hyperbola in ball arithmetic, every error enclosed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from flint import acb, arb

from pyengine.reference.balls import precision, spread
from pyengine.reference.gaussian.integrand_sizes import TURN
from pyengine.reference.gaussian.plan_hyperbola import Edge, HyperbolaPlan
from pyengine.reference.gaussian.rotated_transform import BOUND_BITS, Majorant, Nodes
from pyengine.reference.gaussian.steps import EqualSteps, offset
from pyengine.reference.tails import BallTails

__all__ = ["Hyperbola"]

COARSE, FINE = 0.4, 0.3  # widths of boxes, the second over the root of the number of steps
PARTS = 8


@dataclass(frozen=True)
class _SidePiece:
    """Part of a side: its least Re lambda, and integrals of |F| exp(lambda c') over kernels."""

    place: arb
    over_zero: arb
    over_one: arb
    over_both: arb


@dataclass(frozen=True)
class _StripSide:
    """A side of the strip, and what bounds the transform beyond its end."""

    angle: arb
    share: arb
    pieces: list[_SidePiece]
    end: arb
    product: arb


class Hyperbola:
    """One transform of a composition, ready for any threshold.

    Parameters
    ----------
    phases : tuple of Phase
        The composition; p < 1.
    plan : HyperbolaPlan
        The discretisation; sharp near the threshold that it was made for.
    """

    certified = True

    def __init__(self, phases: tuple[EqualSteps, ...], plan: HyperbolaPlan) -> None:
        self.phases, self.plan, self.bits = phases, plan, plan.bits
        self._majorants: dict[tuple[int, int, float], Majorant] = {}
        with precision(plan.bits):
            self._prepare()
        self._majorants.clear()  # most of the memory, and of no more use

    def _prepare(self) -> None:
        plan = self.plan
        self.offset = offset(self.phases)
        self.corner, self.scale = arb(plan.corner), arb(plan.scale)
        self.angle, self.spacing = arb(plan.angle), arb(plan.spacing)
        tables = [
            {
                rule.line: Nodes(phase, rule.line * TURN, rule.start, rule.halves, rule.count)
                for rule in rules
            }
            for phase, rules in zip(self.phases, plan.rules, strict=True)
        ]
        self.places, self.terms = list[acb](), list[acb]()
        for k, rows in enumerate(plan.rows):
            turned = acb(self.angle, k * self.spacing)
            place = self.corner + self.scale * turned.sin()
            term = self.scale * turned.cos() * self.spacing / arb.pi()
            for i, row in enumerate(rows):
                nodes = tables[i][row.line]
                value, missing = nodes.sum(place, row.first, row.last)
                error = spread(missing + self._aliased(i, row.line, row.strip, nodes, place))
                term *= (value + acb(error, error)) ** self.phases[i].steps
            self.places.append(place)
            self.terms.append(term / 2 if k == 0 else term)
        with precision(BOUND_BITS):
            self.edges = [self._edge(edge, side) for side, edge in enumerate(plan.edges)]
            last = (len(plan.rows) - 1) * self.spacing
            self.end = last, self._product(plan.beyond, self.places[-1])

    def _bound(self, phase: int, line: int, place: acb, width: float) -> arb:
        """Bound |M| of a phase by B on a line, at a place or at all where s is smaller."""
        key = phase, abs(line), width
        if key not in self._majorants:
            ends = self.plan.ranges[phase]
            self._majorants[key] = Majorant(self.phases[phase], abs(line) * TURN, *ends, width)
        with precision(BOUND_BITS):
            return self._majorants[key].bound((place * acb(0, arb(line * TURN)).exp()).real)

    def _aliased(self, phase: int, line: int, strip: int, nodes: Nodes, place: acb) -> arb:
        """Bound the error of the trapezoidal rule on a line."""
        sides = self._bound(phase, line + strip, place, COARSE)
        sides += self._bound(phase, line - strip, place, COARSE)
        return sides / (2 * arb.pi() * strip * arb(TURN) / nodes.spacing).expm1()

    def _product(self, lines: tuple[int, ...], *places: acb) -> arb:
        """Bound the product of all M^n where every s is at most the larger one of the places."""
        result = arb(1)
        for i, line in enumerate(lines):
            steps = self.phases[i].steps
            width = FINE / math.sqrt(steps)
            result *= max((self._bound(i, line, x, width) for x in places), key=float) ** steps
        return result

    def _edge(self, edge: Edge, side: int) -> _StripSide:
        """Prepare the bound on the integral along a side of the strip."""
        width = arb(edge.width)
        angle = self.angle + width if side else self.angle - width
        pieces = list[_SidePiece]()
        ends = [arb(u) for u in edge.ends]
        places = [self.corner + self.scale * acb(angle, u).sin() for u in ends]
        for k, lines in enumerate(edge.lines[:-1]):
            size = self._product(lines, places[k], places[k + 1])
            size *= self.scale * ends[k + 1].cosh() * (ends[k + 1] - ends[k]) / arb.pi()
            zero, one = self._distances(angle, ends[k], ends[k + 1])
            pieces.append(_SidePiece(places[k].real, size / zero, size / one, size / (zero * one)))
        share = 1 / (2 * arb.pi() * width / self.spacing).expm1()
        return _StripSide(angle, share, pieces, ends[-1], self._product(edge.lines[-1], places[-1]))

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
            return self._six(zero + at_zero, one + at_one, both + at_one - at_zero, c)

    def _errors(self, threshold: arb) -> tuple[arb, arb, arb]:
        """Bound the errors of the three sums: the trapezoidal rule's and what is left out."""
        with precision(BOUND_BITS):
            total = list(self._rest(self.angle, *self.end, threshold))
            for side in self.edges:
                found = list(self._rest(side.angle, side.end, side.product, threshold))
                for piece in side.pieces:
                    scale = (-piece.place * threshold).exp()
                    sizes = (piece.over_zero, piece.over_one, piece.over_both)
                    found = [a + b * scale for a, b in zip(found, sizes, strict=True)]
                total = [a + b * side.share for a, b in zip(total, found, strict=True)]
            return total[0], total[1], total[2]

    def _rest(self, angle: arb, start: arb, size: arb, threshold: arb) -> tuple[arb, arb, arb]:
        """Bound the integrals beyond a place, where |F| exp(lambda c') is at most ``size``."""
        rate = threshold * self.scale * angle.sin()
        if not (rate > 0 and start > 0):
            return (arb("inf"),) * 3
        result = size * (-threshold * self.corner - rate * start.cosh()).exp()
        result *= start.cosh() / (start.sinh() ** 2 * rate * angle.cos() * arb.pi())
        return result, result, result / (self.scale * angle.cos() * start.sinh())

    def _residue(self, pole: int) -> arb:
        """Return what a pole in the strip, of residue 1, adds to the trapezoidal sum."""
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

    def _six(self, zero: arb, one: arb, both: arb, c: arb) -> BallTails:
        """Turn the three contour integrals into tails and divergences."""
        vertex, grow = self.corner + self.scale * self.angle.sin(), c.exp()
        one = one * grow
        p_above, p_below = (1 + zero, -zero) if vertex < 0 else (zero, 1 - zero)
        q_above, q_below = (1 + one, -one) if vertex < 1 else (one, 1 - one)
        if vertex > 1:
            h_qp, h_pq = grow * both, both - (-c).expm1()
        elif vertex > 0:
            h_qp, h_pq = grow * both + 1, both + 1
        else:
            h_qp, h_pq = grow * both - c.expm1(), both
        return BallTails(p_above, p_below, q_above, q_below, h_qp, h_pq)
