"""Laws of a length, without the record and with it, as a pair that answers all questions.

P and Q are laws of a distance (squared for Gaussian noise) with an increasing likelihood ratio, so
every best test is a threshold x.  All numbers come from the tails at x; nothing here is proven, and
each answer is computed twice (see `pyengine.reference.chi_squared.noncentral`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from flint import arb, ctx

from pyengine.errors import AccuracyError
from pyengine.reference.answers import BallAnswer
from pyengine.reference.balls import exact
from pyengine.reference.chi_squared.ncx2 import Curve
from pyengine.reference.chi_squared.noncentral import agreed, solve, tails

__all__ = ["LengthPair"]

FAR = 1e9  # difference of logs that stands for an infinite one
LOWEST = -2000.0  # log of a distance below all that matters


class LengthPoint(NamedTuple):
    """Tails and densities of P and of the mixture with Q at one distance."""

    p_below: arb
    p_above: arb
    q_below: arb
    q_above: arb
    p: arb
    q: arb


@dataclass(frozen=True)
class LengthPair:
    """Gaussian noise in some dimension or Laplace noise, on a Poisson sample.

    Parameters
    ----------
    square : Fraction
        Square of the effect: sensitivity over standard deviation or scale.
    probability : Fraction
        Sampling probability, in (0, 1].
    dimension : int
        Of the query, >= 1.
    laplace : bool
        Which noise.
    """

    square: Fraction
    probability: Fraction
    dimension: int
    laplace: bool

    # The questions of pyengine.reference.answers.Pair

    def trade_off(self, alpha: Fraction, sign: int, wanted: str, digits: float) -> BallAnswer:
        """T(P, Q) for sign 1, T(Q, P) for -1, or 1 - T."""
        slopes: list[arb] = []

        def compute(run: Curve, bits: int) -> arb:
            point = self._at_level(alpha, sign, run, bits)[1]
            slopes.append(sign * (point.q.log() - point.p.log()))
            if sign == 1:
                return point.q_below if wanted == "beta" else point.q_above
            return point.p_above if wanted == "beta" else point.p_below

        value = _ball(agreed(compute, _places(digits)), digits)
        return BallAnswer(value, False, slopes[-1].mid())

    def profile(
        self,
        epsilon: Fraction,
        sign: int,
        digits: float,
        enough: arb | None = None,  # noqa: ARG002 - the digits are reached
    ) -> BallAnswer:
        """H(P‖Q) for sign 1, H(Q‖P) for -1, at ε of either sign."""

        def compute(run: Curve, bits: int) -> arb:
            factor = exact(epsilon).exp()
            x = self._at_loss(-sign * exact(epsilon), bits)
            if x is None:  # beyond the losses: all or nothing
                everything = (1 - factor).max(arb(0))
                return everything if epsilon < 0 else arb(0)
            point = self._point(x, run, bits)
            if sign == 1:
                return point.p_below - factor * point.q_below
            return point.q_above - factor * point.p_above

        return BallAnswer(_ball(agreed(compute, _places(digits)), digits), False, None)

    def epsilon(self, delta: Fraction, sign: int, digits: float) -> BallAnswer:
        """The ε >= 0 where the profile is δ."""

        def compute(run: Curve, bits: int) -> arb:
            target = exact(delta).log()
            extra = 30 + max(0, math.ceil(-float(target) / math.log(2.0)))  # lost by cancellation

            def function(x: arb, bits: int) -> tuple[arb, arb]:
                point = self._point(x, run, bits + extra)
                slope = self._slope(x, point)
                ratio = point.p / point.q if sign == 1 else point.q / point.p  # e^ε
                if sign == 1:
                    lost = ratio * point.q_below
                    value = point.p_below - lost
                else:
                    lost = ratio * point.p_above
                    value = point.q_above - lost
                if not value > 0:  # cancelled: far below δ
                    return arb(-sign * FAR), arb(1)
                # d value/dx = e^ε (mass of the other law) dL/dx, growing for sign 1 only
                return sign * (value.log() - target), lost * slope / value

            high = math.log(float(self._effect())) if self.laplace else self._high(Fraction(1, 2))
            point = self._point(solve(function, LOWEST, high, bits), run, bits)
            loss = point.q.log() - point.p.log()
            return -loss if sign == 1 else loss

        return BallAnswer(_ball(agreed(compute, _places(digits)), digits), False, None)

    def infinite(self, sign: int) -> arb:  # noqa: ARG002 - the same in both orders
        """No mass where the other law has none."""
        return arb(0)

    def largest(self, sign: int) -> arb | None:
        """Supremum of log dA/dB."""
        mu = self._effect()
        if sign == 1:
            lowest = (-mu if self.laplace else -mu * mu / 2).exp()
            return -self._mixed(lowest).log()
        return self._mixed(mu.cosh()).log() if self.laplace else None

    def log_beta(self, alpha: Fraction, sign: int, digits: int) -> arb:
        """Logarithm of T, accurate in relative terms also where T is near 1."""

        def compute(run: Curve, bits: int) -> arb:
            point = self._at_level(alpha, sign, run, bits)[1]
            below, above = point.q_below, point.q_above
            if sign == -1:
                below, above = point.p_above, point.p_below
            return below.log() if below < above else (-above).log1p()

        return agreed(compute, digits)

    # Distances

    def _effect(self) -> arb:
        return exact(self.square).sqrt()

    def _mixed(self, ratio: arb) -> arb:
        """Likelihood ratio of the mixture."""
        p = exact(self.probability)
        return 1 - p + p * ratio

    def _high(self, level: Fraction) -> float:
        """Log of a distance beyond all that matters."""
        d = 1 if self.laplace else self.dimension
        depth = 2.0 * (50.0 - math.log(float(min(level, 1 - level))))
        return math.log(d + 4.0 * float(self.square) + 4.0 * depth + 4.0 * math.sqrt(d * depth))

    def _at_level(
        self, alpha: Fraction, sign: int, run: Curve, bits: int
    ) -> tuple[arb, LengthPoint]:
        """The distance that P exceeds, or the mixture stays below, with probability α."""
        small = 2 * alpha <= 1
        target = exact(alpha if small else 1 - alpha).log()
        upper = small == (sign == 1)  # whether the smaller tail of the level lies above

        def function(x: arb, bits: int) -> tuple[arb, arb]:
            point = self._point(x, run, bits)
            if sign == 1:
                tail, density = point.p_above if upper else point.p_below, point.p
            else:
                tail, density = point.q_above if upper else point.q_below, point.q
            return (-1 if upper else 1) * (tail.log() - target), density / tail

        x = solve(function, LOWEST, self._high(alpha), bits)
        return x, self._point(x, run, bits)

    def _at_loss(self, loss: arb, bits: int) -> arb | None:
        """The distance with log dQ/dP = loss; None where no distance has it."""
        p = exact(self.probability)
        ratio = (loss.exp() - 1 + p) / p  # of the laws without sampling
        mu = self._effect()
        lowest = (-mu if self.laplace else -mu * mu / 2).exp()
        if not ratio > lowest:
            return None
        if self.laplace:
            if not ratio < mu.cosh():
                return None
            return ((2 * ratio * mu.exp() - 1).log() / 2).mid()
        goal = ratio.log() + mu * mu / 2
        a = arb(self.dimension) / 2

        def function(x: arb, bits: int) -> tuple[arb, arb]:  # noqa: ARG001 - at ctx.prec
            z = mu * mu * x / 4
            value = _0f1(a, z)
            return value.log() - goal, mu * mu / 4 * _0f1(a + 1, z) / (a * value)

        # log 0F1(; a; z) grows at least like that of a = d/2 beyond z = w² + 2 a w
        w = max(float(goal), 1e-300)
        high = math.log(4.0 * (w * w + 2.0 * float(a) * w + 1e-290) / float(self.square)) + 5.0
        return solve(function, LOWEST, high, bits)

    def _slope(self, x: arb, point: LengthPoint) -> arb:
        """dL/dx, from that of the laws without sampling."""
        p, mu = exact(self.probability), self._effect()
        share = 1 - (1 - p) * point.p / point.q  # of the sampled part in Q
        if self.laplace:
            return share * (1 + x.tanh())
        a, z = arb(self.dimension) / 2, mu * mu * x / 4
        return share * mu * mu / 4 * _0f1(a + 1, z) / (a * _0f1(a, z))

    def _point(self, x: arb, run: Curve, bits: int) -> LengthPoint:
        parts = self._laplace(x) if self.laplace else self._gaussian(x, run, bits)
        p, rest = exact(self.probability), 1 - exact(self.probability)
        below = p * parts.q_below + rest * parts.p_below
        above = p * parts.q_above + rest * parts.p_above
        return LengthPoint(
            parts.p_below, parts.p_above, below, above, parts.p, p * parts.q + rest * parts.p
        )

    def _gaussian(self, x: arb, run: Curve, bits: int) -> LengthPoint:
        d = arb(self.dimension)
        p = tails(x, d, arb(0), run, bits)
        q = tails(x, d, exact(self.square), run, bits)
        return LengthPoint(p.below, p.above, q.below, q.above, p.density, q.density)

    def _laplace(self, x: arb) -> LengthPoint:
        mu, p_above = self._effect(), (-x).exp()
        if x < mu:
            q_below, q = (-mu).exp() * x.sinh(), (-mu).exp() * x.cosh()
            q_above = 1 - q_below
        else:
            q_above = q = p_above * mu.cosh()
            q_below = 1 - q_above
        return LengthPoint(-(-x).expm1(), p_above, q_below, q_above, p_above, q)


def _0f1(a: arb, z: arb) -> arb:
    """0F1(; a; z) for positive arguments; by its series where the library's method cancels."""
    if a < 1000:
        return z.hypgeom_0f1(a)
    term = total = arb(1)
    for k in range(1, 1_000_000):
        term = term * z / (k * (a + k - 1))
        total += term
        if term < total * arb(2) ** -ctx.prec:
            return total
    raise AccuracyError("a likelihood ratio has too many terms; take a smaller effect")


def _places(digits: float) -> int:
    return math.ceil(digits) + 1


def _ball(value: arb, digits: float) -> arb:
    """The value with the error that two runs do not exceed."""
    return arb(value, abs(value) * arb(10) ** -_places(digits))
