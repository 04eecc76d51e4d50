"""The transform of one step as an integral along a turned line, and bounds on it.

With Y = exp(y) and z = (Y + log(1 - exp(-Y)) - log odds + mu^2/2) / mu,

    M(lambda) = integral of g(y) exp(lambda e^y) dy,  g(y) = phi(z) Y / (mu (1 - exp(-Y))),

along the line Im y = angle, for any |angle| < pi/4: the loss Y is then on a ray.  There
|g exp(lambda e^y)| = |g| exp(s r) with r = |Y| and s = Re(lambda e^{i angle}); its integral
B(angle, s) bounds |M| and increases with s.
"""

from __future__ import annotations

import math
import operator
from typing import NamedTuple

from flint import acb, arb

from pyengine.reference.balls import precision, upper_normal
from pyengine.reference.gaussian.steps import EqualSteps

__all__ = ["Majorant", "Nodes", "RotatedStep"]

BOUND_BITS = 64  # working precision of bounds
SQUARINGS = 10  # of exp(lambda Y) before it is computed anew; each costs a bit
MORE, MOST_BOXES = 16, 100_000  # boxes added at a time, and in all


class RotatedStep:
    """The density g of y = log Y at complex y, for p < 1, at the working precision."""

    def __init__(self, phase: EqualSteps) -> None:
        self.mu = phase.mu()
        self.low = phase.odds().log() - self.mu**2 / 2
        self.front = 1 / (self.mu * (2 * arb.pi()).sqrt())

    def parts(self, y: acb) -> tuple[acb, acb, acb]:
        """Return Y, z and Y / (1 - exp(-Y))."""
        loss = y.exp()
        rest = -((-loss).expm1())
        return loss, (loss + rest.log() - self.low) / self.mu, loss / rest

    def density(self, y: acb) -> tuple[acb, acb]:
        """Return Y and g."""
        loss, z, ratio = self.parts(y)
        return loss, (-z * z / 2).exp() * ratio * self.front

    def left(self, v: arb, angle: arb, s: arb) -> arb:
        """Bound the part of B below log r = v, by a function that increases with v.

        For |Y| < 1/2, |mu z + log odds - mu^2/2 - y| <= 2 |Y| and |Y / (1 - exp(-Y))| < 3/2.
        """
        slack = 2 * v.exp()
        away = (self.low - slack - v) / self.mu
        if not (slack < 1 and away > 0):
            return arb("inf")
        grown = ((angle + slack) / self.mu) ** 2 / 2 + (s * slack).max(arb(0))
        return upper_normal(away) * grown.exp() * 3 / 2

    def right(self, v: arb, angle: arb, s: arb) -> arb:
        """Bound the part of B above log r = v, by a function that decreases with v.

        |log(1 - exp(-Y))| is at most exp(-Re Y) / (1 - exp(-Re Y)), and the rest of the exponent is
        concave in r.
        """
        r, cosine, sine = v.exp(), angle.cos(), angle.sin()
        rest = -((-r * cosine).expm1())
        slack = (1 - rest) / rest
        ahead, beside = r * cosine - self.low - slack, r * sine + slack
        slope = s - (ahead * cosine - beside * sine) / self.mu**2
        if not (ahead > 0 and cosine > sine and slope * r < -1):
            return arb("inf")
        exponent = (beside**2 - ahead**2) / (2 * self.mu**2) + s * r
        return exponent.exp() * self.front / (rest * -slope)


class _Box(NamedTuple):
    """Coefficients of the bound on the integral over one box, for s of one sign.

    The log of W |g| exp(|s| R W/2) sinh(x)/x, x = ``at_zero`` + s ``rate``, is at most
    ``constant`` + s ``slope`` + s^2 ``square``, from sinh(x)/x <= exp(x^2/6), and at most
    ``size`` + s ``push`` + |x|.  ``here`` and ``turn`` are x at 0 and its derivative as doubles.
    """

    constant: arb
    slope: arb
    square: arb
    size: arb
    push: arb
    at_zero: arb
    rate: arb
    here: float
    turn: float


class Majorant:
    """Upper bounds on B(angle, s) of one line, angle in [0, pi/4).

    On a box of width W around v the exponent h = log|g| + s r has a derivative between D - R and D
    + R, so the integral is at most W exp(h(v) + R W/2) sinh(x)/x, x = D W/2.  Boxes are added until
    the closed bounds on the parts left and right of them are small.  ``width`` is the width of a
    box in units of min(1, mu, mu / r).
    """

    def __init__(self, phase: EqualSteps, angle: float, width: float) -> None:
        with precision(BOUND_BITS):
            self.step, self.angle = RotatedStep(phase), arb(angle)
            self.width, self._mu = width, 1 / float(phase.noise)
            # dyadic numbers, so that boxes meet exactly
            self._ends = [float(math.floor(float(self.step.low)))] * 2
            self._boxes = list[_Box](), list[_Box]()

    def _extended(self, side: int) -> list[tuple[_Box, _Box]]:
        """Add `MORE` boxes on the left (0) or on the right (1), and return them."""
        added = []
        for _ in range(MORE):
            at = self._ends[side]
            size = self.width * min(1, self._mu * math.exp(-max(at, 0.0)))
            half = math.ldexp(math.ceil(2**20 * size), -21)
            away = half if side else -half
            added.append(self._box(arb(at + away), arb(half)))
            self._ends[side] = at + 2 * away
            for boxes, box in zip(self._boxes, added[-1], strict=True):
                boxes.append(box)
        return added

    def _box(self, middle: arb, half: arb) -> tuple[_Box, _Box]:
        """Return the coefficients of the bounds for s >= 0 and for s < 0."""
        loss, z, ratio = self.step.parts(acb(middle, self.angle))
        log_size = (ratio.real**2 + ratio.imag**2).log() / 2 - (z * z).real / 2
        wide = acb(middle + arb(0, half), self.angle)
        loss_all, z_all, ratio_all = self.step.parts(wide)
        slope = (1 + loss_all - ratio_all - z_all * ratio_all / self.step.mu).real
        log_size += (2 * half * self.step.front).log() + slope.rad() * half
        r = abs(loss)
        size, slope, stretch = log_size.upper(), slope.mid(), (r * half.expm1() * half).upper()
        at_zero, rate = slope * half, r * half
        constant, square = size + at_zero * at_zero / 6, rate * rate / 6
        made = (
            (constant, push + at_zero * rate / 3, square, size, push, at_zero, rate)
            for push in (r + stretch, r - stretch)
        )
        above, below = (_Box(*parts, float(at_zero), float(rate)) for parts in made)
        return above, below

    def bound(self, s: arb) -> arb:
        """Return an upper bound on B(angle, s)."""
        with precision(BOUND_BITS):
            s = s.upper()  # B increases with s, and an exact s has a sign
            if not s.is_finite():
                return arb("inf")
            total = self._over(self._boxes[s < 0], s)
            for side, closed in enumerate((self.step.left, self.step.right)):
                rest = closed(arb(self._ends[side]), self.angle, s)
                while not rest < (self.width / 10) ** 2 * total:
                    if len(self._boxes[0]) > MOST_BOXES:
                        return arb("inf")
                    total += self._over([pair[s < 0] for pair in self._extended(side)], s)
                    rest = closed(arb(self._ends[side]), self.angle, s)
                total += rest
            return total.upper()

    def _over(self, boxes: list[_Box], s: arb) -> arb:
        """Bound the integral over boxes."""
        total, near = arb(0), float(s)
        for constant, slope, square, size, push, at_zero, rate, here, turn in boxes:
            # both bounds hold for all x; doubles choose the smaller one
            if -6 < here + near * turn < 6:
                exponent = constant + s * (slope + s * square)
            else:
                exponent = size + s * push + abs(at_zero + s * rate)
            total += exponent.exp()
        return total


class Nodes:
    """Nodes of the trapezoidal rule on one line, log 2 / ``halves`` apart from ``start`` on.

    So Y doubles every ``halves`` nodes, and exp(lambda Y) is the square of an earlier one.
    """

    def __init__(
        self, phase: EqualSteps, angle: float, start: float, halves: int, count: int
    ) -> None:
        self.step, self.angle, self.halves = RotatedStep(phase), arb(angle), halves
        self.start, self.spacing = arb(start), arb.const_log2() / halves
        self.losses, self.weights = list[acb](), list[acb]()
        for k in range(count):
            loss, density = self.step.density(acb(self.start + k * self.spacing, self.angle))
            self.losses.append(loss)
            self.weights.append(density * self.spacing)

    def sum(self, place: acb) -> tuple[acb, arb]:
        """Return the sum over the nodes for lambda = ``place``, and a bound on the truncation."""
        total, count = acb(0), len(self.losses)
        for begin in range(0, count, SQUARINGS * self.halves):
            grown = [(place * loss).exp() for loss in self.losses[begin : begin + self.halves]]
            for k in range(begin, min(begin + SQUARINGS * self.halves, count), self.halves):
                total += sum(map(operator.mul, grown, self.weights[k : k + self.halves]), acb(0))
                grown = [x * x for x in grown]
        with precision(BOUND_BITS):
            s = (place * acb(0, self.angle).exp()).real
            missing = self.step.left(self.start, self.angle, s)
            end = self.start + (count - 1) * self.spacing
            return total, (missing + self.step.right(end, self.angle, s)).upper()
